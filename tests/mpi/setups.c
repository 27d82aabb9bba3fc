// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
/* Programs that begin with a field without time, and do not always come to the field that has time.
 *
 *   setups FILE OPTIONS HOW
 *
 * HOW has words: `steps` (three steps follow), `killed` (the process ends behind them), `refused` (the
 * definition of the field of the steps fails), `mended` (it is repeated without time), `unclosed`
 * (tr_finalize comes without tr_stream_close), `saved` (behind the checkpoint, which `steps` saves). */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tailrace.h>
#include <unistd.h>

enum { NY = 4, NX = 5 };
static int failures = 0;

static void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  fprintf(stderr, "%s\n", tr_error());
}

static void write_steps(tr_stream* stream) {
  static float t[NY * NX];
  for (int step = 0; step < 3; ++step) {
    tr_stream_begin(stream, 3600 * step);
    tr_stream_put(stream, "t", t);
    expect(tr_stream_end(stream));
  }
  expect(tr_stream_wait(stream, TR_DURABLE));
}

int main(int argc, char** argv) {
  static signed char mask[NY * NX];
  static float t[NY * NX];
  const tr_index shape[2] = {NY, NX};
  tr_layout* layout = NULL;
  tr_stream* stream = NULL;
  tr_checkpoint* saved = NULL;
  int64_t generation = 0;
  int found = 0;
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  expect(tr_init(MPI_COMM_WORLD, &compute, NULL));
  const char* const how = argc > 3 ? argv[3] : "";
  const int has_steps = strstr(how, "steps") != NULL;
  expect(tr_layout_block(2, shape, NULL, &layout));
  expect(tr_layout_dimensions(layout, "y,x"));
  if (strstr(how, "saved") != NULL) {
    expect(tr_checkpoint_create("setups/restart", NULL, &saved));
    expect(tr_checkpoint_begin(saved, TR_LOAD, &found));
    if (found) tr_checkpoint_item(saved, "generation", &generation, TR_I64, NULL);
    expect(tr_checkpoint_end(saved));
  }
  expect(tr_stream_create(argv[1], argv[2], &stream));
  expect(tr_stream_define(stream, "mask", layout, TR_I8, "time=none"));
  expect(tr_stream_put(stream, "mask", mask));
  if (has_steps) expect(tr_stream_define(stream, "t", layout, TR_F32, NULL));
  if (strstr(how, "refused") != NULL && tr_stream_define(stream, "t", layout, TR_F32, "bits=99999") == TR_OK)
    ++failures;
  if (strstr(how, "mended") != NULL) {
    expect(tr_stream_define(stream, "t", layout, TR_F32, "time=none"));
    expect(tr_stream_put(stream, "t", t));
  }
  if (has_steps) write_steps(stream);
  if (has_steps && saved != NULL) {
    expect(tr_checkpoint_begin(saved, TR_SAVE, NULL));
    tr_checkpoint_item(saved, "generation", &generation, TR_I64, NULL);
    expect(tr_checkpoint_end(saved));
    expect(tr_checkpoint_wait(saved));
  }
  if (strstr(how, "killed") != NULL) kill(getpid(), SIGKILL);
  if (strstr(how, "unclosed") == NULL) expect(tr_stream_close(&stream));
  if (saved != NULL) expect(tr_checkpoint_close(&saved));
  expect(tr_layout_free(&layout));
  expect(tr_finalize());
  MPI_Finalize();
  return failures > 0;
}
