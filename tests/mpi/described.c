/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A model whose output a description decides, and the same model with streams of its own.
 *
 *   described FILE OPTIONS STEPS [HOW]    streams as FILE says; a step is an hour
 *   described own DIRECTORY STEPS [adds]  the streams of described_test.py, made one by one
 *   described wrong FILE...               only tr_streams_configure: each file has an error
 *
 * HOW: `unknown` (rank 1 puts a field that is none, in the second step, which no stream with every: 2h has),
 * `again` (a field is defined twice, and wrong calls), `open` (nothing is closed: tr_finalize does it),
 * `goes_on` (the run goes on where the checkpoint `state` has it, and saves it behind its last step;
 * half.yaml is refused before), `killed` (likewise, and all ranks end behind the save), `adds` (the field
 * `late` is defined behind the third step, with an attribute), `addsinside` (within that step),
 * `twice` (the mask is put in the second step, too). Each rank
 * writes each error that it gets to `errors.RANK`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>
#include <tailrace/checkpoints.h>

enum { NY = 4, NX = 6, LEVELS = 2 };
static int failures = 0, rank = 0;
static FILE* told = NULL; /* standard output would mix the lines of ranks */
static tr_layout *cells = NULL, *scalar = NULL;
static double temperature[NY * NX], mask[NY * NX], energy;
static float wind[LEVELS * NY * NX];

static int expect(int code) {
  if (code == TR_OK) return 1;
  ++failures;
  tr_log(tr_error());
  if (told != NULL) fprintf(told, "%s\n", tr_error());
  return 0;
}

static void fill(int step) {
  tr_index lower[2], upper[2], n = 0;
  expect(tr_layout_bounds(cells, 0, lower, upper));
  const tr_index count = (upper[0] - lower[0]) * (upper[1] - lower[1]);
  for (tr_index y = lower[0]; y < upper[0]; ++y)
    for (tr_index x = lower[1]; x < upper[1]; ++x, ++n) {
      temperature[n] = 280 + sin((double)(y * NX + x) + step);
      mask[n] = (double)((x + y) % 2);
      for (int level = 0; level < LEVELS; ++level)
        wind[level * count + n] = (float)(10 * level + step) + 0.1F * (float)(y * NX + x);
    }
  energy = 1e6 / (step + 1);
}

/* A field that comes behind a step, with what is known of it then. */
static void define_late(tr_stream* stream) {
  if (!expect(tr_stream_define(stream, "late", cells, TR_F64, NULL))) return;
  expect(tr_stream_attribute_text(stream, "late", "comment", "came later"));
}

static void write_own(const char* directory, int steps, int adds) {
  tr_stream *history = NULL, *means = NULL;
  char name[300];
  snprintf(name, sizeof name, "%s/history_{lead:03h}.nc", directory);
  expect(tr_stream_create(name, "base=2026-03-01T00:00Z attributes=\"title='a history, of 2 h'\"", &history));
  snprintf(name, sizeof name, "%s/means.nc", directory);
  expect(tr_stream_create(name, "base=2026-03-01T00:00Z interval=3h format=cdf2", &means));
  const char* const kelvin = "attributes=\"units=K, standard_name=air_temperature\"";
  char mean[200], most[200];
  snprintf(mean, sizeof mean, "%s operation=mean", kelvin);
  snprintf(most, sizeof most,
           "attributes=\"units=K, standard_name=air_temperature, long_name='the most'\" operation=maximum");
  expect(tr_stream_define(history, "temperature", cells, TR_F64, kelvin));
  expect(tr_stream_define(means, "t_mean", cells, TR_F64, mean));
  expect(tr_stream_define(means, "t_max", cells, TR_F64, most));
  expect(tr_stream_define(history, "u", cells, TR_F32, "levels=height:10,100 attributes='units=m/s'"));
  expect(tr_stream_define(history, "u_mean", cells, TR_F32, "levels=height:10,100 over=mean:levels,x"));
  expect(tr_stream_define(means, "energy", scalar, TR_F64, "attributes='units=J'"));
  expect(tr_stream_define(history, "mask", cells, TR_F64, "time=none"));
  expect(tr_stream_attribute_text(history, NULL, "model", "small"));
  expect(tr_stream_attribute_text(means, NULL, "model", "small"));
  expect(tr_stream_attribute_text(means, NULL, "title", "of the program"));
  fill(0);
  expect(tr_stream_put(history, "mask", mask));
  for (int step = 0; step < steps; ++step) {
    fill(step);
    if (step % 2 == 0) tr_stream_begin(history, 3600 * step);
    tr_stream_begin(means, 3600 * step);
    if (step % 2 == 0) tr_stream_put(history, "temperature", temperature), tr_stream_put(history, "u", wind);
    if (step % 2 == 0) tr_stream_put(history, "u_mean", wind);
    tr_stream_put(means, "t_mean", temperature);
    tr_stream_put(means, "t_max", temperature);
    tr_stream_put(means, "energy", &energy);
    if (adds && step > 2 && step % 2 == 0) tr_stream_put(history, "late", temperature);
    if (step % 2 == 0) expect(tr_stream_end(history));
    expect(tr_stream_end(means));
    if (adds && step == 2) define_late(history);
  }
  expect(tr_stream_close(&history));
  expect(tr_stream_close(&means));
}

static void misuse(tr_stream* out) {
  /* One of two streams refuses it, and the other one does not have it then. */
  expect(tr_stream_define(out, "late", scalar, TR_F64, "time=none"));
  if (!expect(tr_stream_define(out, "late", scalar, TR_F64, NULL))) printf("late is not taken\n");
  expect(tr_stream_define(out, "temperature", cells, TR_F64, NULL));
  expect(tr_stream_define(out, "humidity", cells, TR_F64, "levels"));
  expect(tr_stream_define(out, "humidity", NULL, TR_F64, NULL));
  expect(tr_stream_attribute_text(out, "nothing", "units", "K"));
  expect(tr_stream_get(out, "temperature", temperature));
  expect(tr_stream_wait(out, 7));
}

/* Loads the number of the next step, or saves it. */
static void transfer(tr_checkpoint* state, int direction, int64_t* step) {
  int found = 0;
  expect(tr_checkpoint_begin(state, direction, &found));
  if (direction == TR_SAVE || found) tr_checkpoint_item(state, "step", step, TR_I64, NULL);
  expect(tr_checkpoint_end(state));
}

static void write_described(const char* file, const char* options, int steps, const char* how) {
  tr_stream* out = NULL;
  tr_checkpoint* state = NULL;
  int wanted = 0;
  int64_t first = 0;
  const int adds = strcmp(how, "adds") == 0;
  const int is_killed = strcmp(how, "killed") == 0, goes_on = is_killed || strcmp(how, "goes_on") == 0;
  if (goes_on) {
    expect(tr_checkpoint_create("state", NULL, &state));
    transfer(state, TR_LOAD, &first);
    if (tr_streams_configure("half.yaml", options, &out) == TR_OK || out != NULL) expect(TR_ERR_STATE);
  }
  if (!expect(tr_streams_configure(file, options, &out))) return;
  if (tr_stream_wants(out, "temperature"))
    expect(tr_stream_define(out, "temperature", cells, TR_F64, "units=degC"));
  else
    expect(tr_stream_define(out, "temperature", cells, TR_F64, NULL));
  expect(tr_stream_define(out, "wind", cells, TR_F32, "levels=height:10,100"));
  expect(tr_stream_define(out, "energy", scalar, TR_F64, "units=J"));
  expect(tr_stream_define(out, "mask", cells, TR_F64, "time=none"));
  expect(tr_stream_define(out, "diagnostic", cells, TR_F64, NULL));
  expect(tr_stream_attribute_text(out, NULL, "model", "small"));
  expect(tr_stream_attribute_text(out, NULL, "title", "of the program"));
  expect(
      tr_stream_attribute_text(out, "temperature", "units", "degC")); /* units: K of the description wins */
  if (strcmp(how, "again") == 0) misuse(out);
  fill(0);
  expect(tr_stream_put(out, "mask", mask));
  if (tr_stream_wants(out, "diagnostic")) expect(TR_ERR_STATE);
  for (int step = (int)first; step < steps; ++step) {
    fill(step);
    tr_stream_begin(out, 3600 * step);
    wanted += tr_stream_wants(out, "wind");
    tr_stream_put(out, "temperature", temperature);
    tr_stream_put(out, "wind", wind);
    tr_stream_put(out, "energy", &energy);
    expect(tr_stream_put(out, "diagnostic", NULL)); /* no stream has it: nobody looks at the array */
    if (adds && step > 2) tr_stream_put(out, "late", temperature);
    if (step == 2 && strcmp(how, "addsinside") == 0) define_late(out);
    if (step == 1 && strcmp(how, "twice") == 0) tr_stream_put(out, "mask", mask);
    if (strcmp(how, "unknown") == 0 && step == 1 && rank == 1) tr_stream_put(out, "temperture", temperature);
    expect(tr_stream_end(out));
    if (adds && step == 2) define_late(out);
    if (adds && step == 2 && tr_stream_attribute_text(out, "wind", "comment", "late") != TR_ERR_STATE)
      ++failures;
  }
  if (rank == 0) printf("wind was wanted in %d of %d steps\n", wanted, steps);
  expect(tr_stream_wait(out, TR_DURABLE));
  first = steps;
  if (goes_on) transfer(state, TR_SAVE, &first);
  if (goes_on) expect(tr_checkpoint_wait(state));
  if (is_killed) MPI_Abort(MPI_COMM_WORLD, 9);
  if (strcmp(how, "open") != 0) expect(tr_stream_close(&out));
}

int main(int argc, char** argv) {
  MPI_Comm model;
  MPI_Init(&argc, &argv);
  expect(tr_init(MPI_COMM_WORLD, &model, NULL));
  if (model != MPI_COMM_NULL) {
    char name[40];
    MPI_Comm_rank(model, &rank);
    snprintf(name, sizeof name, "errors.%d", rank);
    told = fopen(name, "w");
    expect(tr_layout_block(2, (tr_index[]){NY, NX}, NULL, &cells));
    expect(tr_layout_dimensions(cells, "y,x"));
    expect(tr_layout_replicated(0, NULL, &scalar));
    if (strcmp(argv[1], "wrong") == 0) {
      for (int i = 2; i < argc; ++i) {
        tr_stream* out = NULL;
        if (expect(tr_streams_configure(argv[i], "base=2026-03-01T00:00Z", &out)) || out != NULL)
          printf("rank %d takes %s\n", rank, argv[i]);
      }
    } else if (strcmp(argv[1], "own") == 0) {
      write_own(argv[2], atoi(argv[3]), argc > 4);
    } else {
      write_described(argv[1], argv[2], atoi(argv[3]), argc > 4 ? argv[4] : "");
    }
  }
  expect(tr_finalize());
  if (told != NULL) fclose(told);
  MPI_Finalize();
  return failures > 0;
}
