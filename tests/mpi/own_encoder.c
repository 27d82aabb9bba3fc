// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A model with an encoder of its own, in C: own_encoder PATTERN OPTIONS MODE FIRST LAST. Each compute rank
// prints the verdict of each step. own_encoder.cpp and own_encoder.F90 write the same bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

static const char* mode;
static int world_rank;

static int is_mode(const char* word) { return strcmp(mode, word) == 0; }

static double value_of(const tr_record* record, int64_t i) {
  return record->type == TR_F32 ? ((const float*)record->values)[i] : ((const double*)record->values)[i];
}

// Appends the name, the level, the lead, and each run of equal values.
static int encode(const tr_record* record, tr_encoded* out, void* thread, void* user) {
  int32_t run = 0;
  (void)thread;
  if (strcmp((const char*)user, "run-length") != 0) return tr_encoded_fail(out, -1, "lost its user data");
  const int is_it = strcmp(record->field, "t") == 0 && record->level == 850 && record->lead == 7200;
  if (is_it && is_mode("fail")) return tr_encoded_fail(out, 11, "too hot");
  if (is_it && is_mode("big") && tr_encoded_room(out, 100000)) return 2;
  tr_encoded_append(out, record->field, (int64_t)strlen(record->field));
  tr_encoded_append(out, &record->level, sizeof record->level);
  tr_encoded_append(out, &record->lead, sizeof record->lead);
  for (int64_t i = 0; i < record->count; ++i) {
    const double value = value_of(record, i);
    ++run;
    if (i + 1 < record->count && value_of(record, i + 1) == value) continue;
    tr_encoded_append(out, &run, sizeof run);
    tr_encoded_append(out, &value, sizeof value);
    run = 0;
  }
  return 0;
}

static int64_t bound(const tr_record* field, tr_encoded* out, void* user) {
  (void)user;
  if (is_mode("bound")) tr_encoded_fail(out, -1, "no bound for that");
  return 64 + 12 * field->count;
}

static int head(const tr_record* const* fields, int32_t count, tr_encoded* out, void* user) {
  (void)user;
  for (int32_t i = 0; i < count; ++i) {
    tr_encoded_append(out, fields[i]->field, (int64_t)strlen(fields[i]->field));
    tr_encoded_append(out, " ", 1);
  }
  return is_mode("head") ? tr_encoded_fail(out, -1, "no head for that") : 0;
}

static void say(const char* call, int64_t step, int code) {
  printf("rank %d: %s %lld: %d %s\n", world_rank, call, (long long)step, code, code ? tr_error() : "");
}

static int enlist(void) {
  tr_encoder functions = TR_ENCODER;
  functions.encode = encode;
  functions.bound = bound;
  functions.head = head;
  return tr_encoder_register("runs", &functions, "run-length");
}

static void run(const char* pattern, const char* options, int64_t first, int64_t last) {
  tr_layout* grid;
  tr_stream* out;
  tr_index lower[2], upper[2];
  float t[2 * 6 * 8];
  double q[6 * 8];
  if (tr_layout_block(2, (tr_index[]){6, 8}, NULL, &grid)) return say("layout", 0, 1);
  tr_layout_bounds(grid, 0, lower, upper);
  int code = tr_stream_create(pattern, options, &out);
  if (code) return say("create", 0, code);
  code = tr_stream_define(out, "t", grid, TR_F32, "levels=pressure:1000,850 quality=3");
  if (!code) code = tr_stream_define(out, "q", grid, TR_F64, "levels=surface");
  if (code) say("define", 0, code);
  for (int64_t step = first; !code && step <= last; ++step) {
    float* next = t;
    double* other = q;
    for (int level = 0; level < 2; ++level)
      for (tr_index j = lower[0]; j < upper[0]; ++j)
        for (tr_index i = lower[1]; i < upper[1]; ++i)
          *next++ = (float)(step + 100 * level + (8 * j + i) / 3 + 0.25);
    for (tr_index j = lower[0]; j < upper[0]; ++j)
      for (tr_index i = lower[1]; i < upper[1]; ++i) *other++ = (double)(j * step);
    tr_stream_begin(out, 3600 * step);
    tr_stream_put(out, "t", t);
    tr_stream_put(out, "q", q);
    code = tr_stream_end(out);
    if (!code) code = tr_stream_wait(out, TR_DURABLE);
    say("step", step, code);
    code = 0;
  }
  say("close", 0, tr_stream_close(&out));
}

int main(int argc, char** argv) {
  MPI_Comm model;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  mode = argv[3];
  const int lacks = strncmp(mode, "without", 7) == 0 && atoi(mode + 7) == world_rank;
  int code = lacks || is_mode("late") ? 0 : enlist();
  if (code || tr_init(MPI_COMM_WORLD, &model, NULL)) {
    say("init", 0, 1);
  } else if (model != MPI_COMM_NULL) {
    if (is_mode("late")) enlist();
    run(argv[1], argv[2], atoi(argv[4]), atoi(argv[5]));
  }
  code = tr_finalize();
  return MPI_Finalize() || code;
}
