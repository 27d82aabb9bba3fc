/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A slice of a model on a staggered grid. Its steps are closer than a second, or at times that count from no
 * date.
 *
 *   times PATTERN OPTIONS CALL STEPS [MISUSE]
 *
 * CALL: lead (the step's number times 667) or time (0.1 more with each step, added up as models do).
 *
 * MISUSE: `other` (the call of the other kind), `nan` (a time that is none), `back` (the first step once
 * more), `below` (a lead below 0), `axes` (coordinates that differ, and wrong calls) or `early` (a wrong call
 * before the first step, then times below 0).
 *
 * `read`: the files are read in place of that, each value compared, first to last and back, with a step that
 * is interpolated where OPTIONS have between=linear. `read_wrong`: wrong calls stand before the steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

static const tr_index shape[2] = {5, 8}, staggered[2] = {5, 9};
static int failures = 0;

static void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  tr_log(tr_error());
}

static void begin(tr_stream* stream, const char* call, int step, double time) {
  if (strcmp(call, "lead") == 0)
    tr_stream_begin(stream, step * 667);
  else
    tr_stream_begin_at(stream, time);
}

/* Fills this rank's part of an array with the global index of each element, and 100 for each step. */
static void fill(const tr_layout* layout, tr_index width, int step, double* values) {
  tr_index lower[2], upper[2];
  expect(tr_layout_bounds(layout, 0, lower, upper));
  for (tr_index z = lower[0]; z < upper[0]; ++z)
    for (tr_index x = lower[1]; x < upper[1]; ++x) *values++ = 100.0 * step + (double)(z * width + x);
}

/* With a shift the coordinates of z differ, and wrong calls follow. */
static void give_axes(tr_layout* layout, tr_layout* faces, int shift) {
  double x[8], bounds[16];
  int32_t z[5];
  for (int i = 0; i < 8; ++i) x[i] = 0.5 + i, bounds[2 * i] = i, bounds[2 * i + 1] = i + 1;
  for (int i = 0; i < 5; ++i) z[i] = 100 * i;
  expect(tr_layout_axis(layout, "x", TR_F64, 8, x, bounds, "units=km axis=X long_name='from the left wall'"));
  expect(tr_layout_axis(layout, "z", TR_I32, 5, z, NULL, "units=m axis=Z positive=up standard_name=height"));
  z[4] += shift;
  expect(tr_layout_axis(faces, "z", TR_I32, 5, z, NULL, "units=m axis=Z positive=up standard_name=height"));
  if (shift == 0) return;
  tr_layout* bare = NULL;
  expect(tr_layout_block(1, shape, NULL, &bare));
  expect(tr_layout_axis(bare, "x", TR_F64, 5, x, NULL, NULL));
  expect(tr_layout_dimensions(bare, "a,b"));
  expect(tr_layout_dimensions(faces, "z,z"));
  expect(tr_layout_axis(layout, "xs", TR_F64, 8, x, NULL, NULL));
  expect(tr_layout_axis(layout, "x", TR_F64, 7, x, NULL, NULL));
  expect(tr_layout_axis(layout, "x", TR_C64, 8, x, NULL, NULL));
  expect(tr_layout_axis(layout, "x", TR_F64, 8, NULL, NULL, NULL));
  expect(tr_layout_axis(layout, "x", TR_F64, 8, x, NULL, "unit=m"));
  expect(tr_layout_free(&bare));
}

static void write_steps(char** arguments, int count) {
  const char* const misuse = count > 5 ? arguments[5] : "";
  tr_layout *layout = NULL, *faces = NULL;
  tr_stream* stream = NULL;
  expect(tr_layout_block(2, shape, NULL, &layout));
  expect(tr_layout_block(2, staggered, NULL, &faces));
  expect(tr_layout_dimensions(layout, "z, x"));
  expect(tr_layout_dimensions(faces, "z,xu"));
  give_axes(layout, faces, strcmp(misuse, "axes") == 0);
  expect(tr_stream_create(arguments[1], arguments[2], &stream));
  if (stream == NULL || layout == NULL || faces == NULL) return;
  expect(tr_stream_define(stream, "theta", layout, TR_F64, NULL));
  expect(tr_stream_define(stream, "u", faces, TR_F64, NULL));
  double* const theta = malloc(sizeof *theta * (size_t)(shape[0] * shape[1]));
  double* const u = malloc(sizeof *u * (size_t)(staggered[0] * staggered[1]));
  double time = 0;
  if (strcmp(misuse, "early") == 0) {
    /* A first step without a time, and a time before 0. */
    const char* const wrong = strcmp(arguments[3], "lead") == 0 ? "time" : "lead";
    begin(stream, wrong, 0, 0);
    expect(tr_stream_end(stream));
    time = -0.3;
  }
  for (int step = 0; step < atoi(arguments[4]); ++step, time += 0.1) {
    fill(layout, shape[1], step, theta);
    fill(faces, staggered[1], step, u);
    begin(stream, arguments[3], step, time);
    tr_stream_put(stream, "theta", theta);
    tr_stream_put(stream, "u", u);
    expect(tr_stream_end(stream));
  }
  if (strcmp(misuse, "other") == 0)
    begin(stream, strcmp(arguments[3], "lead") == 0 ? "time" : "lead", 100, 100);
  if (strcmp(misuse, "nan") == 0) tr_stream_begin_at(stream, NAN);
  if (strcmp(misuse, "back") == 0) begin(stream, arguments[3], 0, 0);
  if (strcmp(misuse, "below") == 0) begin(stream, arguments[3], -1, 0);
  if (*misuse != '\0' && strcmp(misuse, "axes") != 0 && strcmp(misuse, "early") != 0) {
    tr_stream_put(stream, "theta", theta);
    expect(tr_stream_end(stream));
  }
  free(theta);
  free(u);
  expect(tr_stream_close(&stream));
  expect(tr_layout_free(&layout));
  expect(tr_layout_free(&faces));
}

/* Gets both fields of a step and compares this rank's parts with those of fill(), `part` of a step further.
 */
static void expect_step(tr_stream* stream, const tr_layout* const* layouts, const char* call, int step,
                        double time, double part) {
  const tr_index widths[2] = {shape[1], staggered[1]};
  const char* const names[2] = {"theta", "u"};
  double got[2][45], expected[45];
  begin(stream, call, step, time);
  for (int field = 0; field < 2; ++field) tr_stream_get(stream, names[field], got[field]);
  const int code = tr_stream_end(stream);
  expect(code);
  for (int field = 0; code == TR_OK && field < 2; ++field) {
    tr_index lower[2], upper[2];
    expect(tr_layout_bounds(layouts[field], 0, lower, upper));
    fill(layouts[field], widths[field], step, expected);
    for (tr_index i = 0; i < (upper[0] - lower[0]) * (upper[1] - lower[1]); ++i)
      if (fabs(got[field][i] - expected[i] - 100 * part) > 1e-9) {
        ++failures;
        tr_log("a value differs from the one that was written");
        break;
      }
  }
}

/* Ends a step that was begun in a wrong way, which every rank has to be told. */
static void expect_refusal(tr_stream* stream) {
  const int code = tr_stream_end(stream);
  if (code == TR_OK) ++failures;
  tr_log(code == TR_OK ? "a wrong call succeeded" : tr_error());
}

static void read_steps(char** arguments) {
  const char* const call = arguments[3];
  const int steps = atoi(arguments[4]), is_lead = strcmp(call, "lead") == 0;
  tr_layout *layout = NULL, *faces = NULL;
  tr_stream* stream = NULL;
  expect(tr_layout_block(2, shape, NULL, &layout));
  expect(tr_layout_block(2, staggered, NULL, &faces));
  expect(tr_stream_open(arguments[1], arguments[2], &stream));
  if (stream != NULL) {
    const tr_layout* const layouts[2] = {layout, faces};
    expect(tr_stream_define(stream, "theta", layout, TR_F64, NULL));
    expect(tr_stream_define(stream, "u", faces, TR_F64, NULL));
    double times[16] = {0};
    for (int step = 1; step < steps; ++step) times[step] = times[step - 1] + 0.1;
    if (strcmp(arguments[5], "read_wrong") == 0) {
      begin(stream, is_lead ? "time" : "lead", 1, 0.1);
      expect_refusal(stream);
      begin(stream, call, 1000, 1000);
      expect_refusal(stream);
      tr_stream_begin_at(stream, NAN);
      expect_refusal(stream);
      if (tr_stream_seek(stream, is_lead ? 1 : 0) == TR_OK) ++failures;
      tr_log(tr_error());
    }
    for (int step = 0; step < steps; ++step) expect_step(stream, layouts, call, step, times[step], 0);
    if (is_lead) expect(tr_stream_seek(stream, (int64_t)(steps - 1) * 667));
    for (int step = steps; step-- > 0;) expect_step(stream, layouts, call, step, times[step], 0);
    if (strstr(arguments[2], "between=linear") != NULL && !is_lead)
      expect_step(stream, layouts, call, 1, 0.125, (0.125 - 0.1) / (times[2] - times[1]));
    expect(tr_stream_close(&stream));
  }
  expect(tr_layout_free(&layout));
  expect(tr_layout_free(&faces));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  expect(tr_init(MPI_COMM_WORLD, &compute, NULL));
  if (argc >= 5 && compute != MPI_COMM_NULL) {
    if (argc > 5 && strncmp(argv[5], "read", 4) == 0)
      read_steps(argv);
    else
      write_steps(argv, argc);
  }
  expect(tr_finalize());
  MPI_Finalize();
  return failures > 0;
}
