/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes one of each kind of file that C programs write, into the working directory. */
#include <stdio.h>
#include <stdlib.h>
#include <tailrace.h>

#define ROWS 37
#define COLUMNS 72
#define GLOBE                                                                                               \
  "keys='gridType=regular_ll, latitudeOfFirstGridPointInDegrees=90, latitudeOfLastGridPointInDegrees=-90, " \
  "longitudeOfFirstGridPointInDegrees=0, iDirectionIncrementInDegrees=5'"

#define OK(call)                                      \
  do {                                                \
    if (!(call)) {                                    \
      fprintf(stderr, "%s: %s\n", #call, tr_error()); \
      MPI_Abort(MPI_COMM_WORLD, 1);                   \
    }                                                 \
  } while (0)

static const tr_index shape[] = {ROWS, COLUMNS};
static tr_index mine[ROWS * COLUMNS], count; /* the elements that this rank owns in an indexed layout */
static float part[ROWS * COLUMNS], other[ROWS * COLUMNS];

/* Fills this rank's part of a block layout: the same global array for any number of ranks. */
static void fill(const tr_layout* grid, float* next, int salt) {
  tr_index lower[2], upper[2];
  OK(tr_layout_bounds(grid, 0, lower, upper) == TR_OK);
  for (tr_index row = lower[0]; row < upper[0]; row++)
    for (tr_index column = lower[1]; column < upper[1]; column++)
      *next++ = 250 + (float)((row * 31 + column * 17 + salt * 7) % 101) * 0.25f;
}

static void write_stream(const tr_layout* grid, const char* pattern, const char* options, const char* field) {
  tr_stream* out;
  OK(tr_stream_create(pattern, options, &out) == TR_OK);
  OK(tr_stream_define(out, "sp", grid, TR_F32, field) == TR_OK);
  OK(tr_stream_define(out, "skt", grid, TR_F32, field) == TR_OK);
  for (int hour = 0; hour < 4; hour++) {
    tr_stream_begin(out, hour * 3600);
    fill(grid, part, hour);
    fill(grid, other, hour + 50);
    tr_stream_put(out, "sp", part);
    tr_stream_put(out, "skt", other);
    OK(tr_stream_end(out) == TR_OK);
  }
  OK(tr_stream_close(&out) == TR_OK);
}

static void write_file(const tr_layout* grid, const tr_layout* dealt, const char* path, const char* mode) {
  const tr_index from[] = {3, 5}, to[] = {30, 60};
  tr_file* file = tr_fopen(path, mode);
  OK(file != NULL);
  fill(grid, part, 1);
  tr_fprintf_nr(file, "a field of %d rows\n", ROWS);
  OK(tr_fwrite_array(part, TR_F32, grid, file) > 0);
  const tr_array inner = {part, TR_F32, grid, from, to, NULL};
  OK(tr_fwrite_arrays(&inner, 1, file) > 0);
  OK(tr_fwait(file) == 0);
  for (tr_index i = 0; i < count; i++) other[i] = (float)mine[i];
  OK(tr_fwrite_array(other, TR_F32, dealt, file) > 0);
  OK(tr_fwait(file) == 0);
  OK(tr_fclose(file) == 0);
}

static void save(const tr_layout* grid, const tr_layout* dealt, const char* name, const char* options) {
  tr_checkpoint* copies;
  OK(tr_checkpoint_create(name, options, &copies) == TR_OK);
  for (int64_t step = 0; step < 3; step++) {
    fill(grid, part, (int)step);
    for (tr_index i = 0; i < count; i++) other[i] = (float)(mine[i] + step);
    OK(tr_checkpoint_begin(copies, TR_SAVE, NULL) == TR_OK);
    tr_checkpoint_item(copies, "step", &step, TR_I64, NULL);
    tr_checkpoint_item(copies, "t", part, TR_F32, grid);
    tr_checkpoint_item(copies, "dealt", other, TR_F32, dealt);
    OK(tr_checkpoint_end(copies) == TR_OK);
  }
  OK(tr_checkpoint_close(&copies) == TR_OK);
}

static void write_all(MPI_Comm model) {
  tr_layout *grid, *dealt;
  int rank, ranks;
  MPI_Comm_rank(model, &rank);
  MPI_Comm_size(model, &ranks);
  OK(tr_layout_block(2, shape, NULL, &grid) == TR_OK);
  OK(tr_layout_georeference(grid, GLOBE) == TR_OK);
  for (tr_index e = rank; e < ROWS * COLUMNS; e += ranks) mine[count++] = e;
  OK(tr_layout_indexed(2, shape, count, mine, 0, &dealt) == TR_OK);

  write_stream(grid, "simple_{lead:03h}.grib2", "base=2026-03-01T00:00Z centre=98",
               "levels=surface accuracy=0.01");
  write_stream(grid, "ccsds.grib2", "base=2026-03-01T00:00Z centre=98 packing=ccsds",
               "levels=surface accuracy=0.01");
  write_stream(grid, "field.raw", "base=2026-03-01T00:00Z format=raw", NULL);
  write_file(grid, dealt, "serial.bin", "w");
  write_file(grid, dealt, "parallel.bin", "wp");
  write_file(grid, dealt, "asynchronous.bin", "wps");
  write_file(grid, dealt, "local_%d.bin", "wl");
  save(grid, dealt, "one", "keep=2");
  save(grid, dealt, "small", "keep=2 compress=zstd async=off");
  save(grid, dealt, "parts", "keep=2 mode=local");
  OK(tr_layout_free(&grid) == TR_OK && tr_layout_free(&dealt) == TR_OK);
}

int main(int argc, char** argv) {
  MPI_Comm model;
  MPI_Init(&argc, &argv);
  OK(tr_init(MPI_COMM_WORLD, &model, NULL) == TR_OK);
  if (model != MPI_COMM_NULL) write_all(model);
  OK(tr_finalize() == TR_OK);
  return MPI_Finalize();
}
