/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A serial program's lines, unchanged: only the include differs, and arrays are registered. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace/stdio.h>
#include <unistd.h>

enum { ROWS = 60, COLUMNS = 45 };

static int failures = 0;

static void check(int holds, const char* what) {
  if (holds) return;
  ++failures;
  printf("FAILED: %s (%s)\n", what, tr_error());
}

/* Writes what one rank alone writes. */
static void serial_lines(const char* name, double* B, int step) {
  FILE* f = fopen(name, "w");
  check(f != NULL, "fopen");
  fprintf(f, "step %d\n", step);
  check(fwrite(B, sizeof(double), ROWS * COLUMNS, f) == ROWS * COLUMNS, "fwrite of a distributed array");
  check(fputs("end\n", f) >= 0, "fputs");
  check(fclose(f) == 0, "fclose");
}

static void serial_lines_back(const char* name, double* B, int expected) {
  char line[16];
  int step = 0;
  FILE* f = fopen(name, "r");
  check(f != NULL, "fopen for reading");
  check(fscanf(f, "step %d", &step) == 1 && step == expected, "fscanf");
  check(getc(f) == '\n', "getc");
  check(fread(B, sizeof(double), ROWS * COLUMNS, f) == ROWS * COLUMNS, "fread of a distributed array");
  check(fgets(line, sizeof line, f) == line && strcmp(line, "end\n") == 0, "fgets");
  check(fgetc(f) == EOF && feof(f), "the end of the file");
  fclose(f);
}

/* Returns the global index of the i-th element that a rank owns, row by row. */
static double global_index(tr_index i, const tr_index* lower, const tr_index* upper) {
  const tr_index columns = upper[1] - lower[1];
  return (double)((lower[0] + i / columns) * COLUMNS + lower[1] + i % columns);
}

/* Reads past the library: the bytes are those of a serial program. */
static void compare_with_serial(const char* name, int rank) {
  enum { MOST = ROWS * COLUMNS * sizeof(double) + 64 };
  static char expected[MOST], held[MOST];
  if (rank != 0) return;
  size_t length = (size_t)snprintf(expected, MOST, "step 17\n");
  for (int i = 0; i < ROWS * COLUMNS; ++i, length += sizeof(double)) {
    const double value = i;
    memcpy(expected + length, &value, sizeof value);
  }
  memcpy(expected + length, "end\n", 4);
  length += 4;
  const int descriptor = open(name, O_RDONLY);
  check(descriptor >= 0 && read(descriptor, held, MOST) == (ssize_t)length, "the length of the file");
  check(memcmp(held, expected, length) == 0, "the bytes of the file");
  close(descriptor);
}

static void wrong_size(const char* name, double* B) {
  FILE* f = fopen(name, "r+");
  check(f != NULL, "fopen for update");
  check(fwrite(B, sizeof(double), 7, f) == 0, "a size that is not the global array's is refused");
  check(strstr(tr_error(), "distributed one of") != NULL, "the refusal says why");
  check(fwrite(B + 1, sizeof(double), 7, f) == 0, "a part of the array is refused");
  check(strstr(tr_error(), "lies within a distributed array") != NULL, "the refusal of a part says why");
  check(ftell(f) == 0, "a refusal moves nothing");
  fclose(f);
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  tr_layout* layout;
  tr_index count, lower[2], upper[2];
  const tr_index shape[] = {ROWS, COLUMNS};
  char name[64];
  MPI_Init(&argc, &argv);
  if (tr_init(MPI_COMM_WORLD, &comm, "parallel_threshold=0") != TR_OK) return 1;
  check(tr_layout_block(2, shape, NULL, &layout) == TR_OK, "layout");
  tr_layout_count(layout, &count);
  tr_layout_bounds(layout, 0, lower, upper);
  int ranks = 0, rank = 0;
  MPI_Comm_size(comm, &ranks);
  MPI_Comm_rank(comm, &rank);
  snprintf(name, sizeof name, "unchanged_test.%d", ranks);

  double* mine = count > 0 ? malloc((size_t)count * sizeof *mine) : NULL;
  double* B = tr_distribute(mine, TR_F64, layout);
  check(B != NULL && (mine == NULL || B == mine), "tr_distribute");
  check(tr_distribute(B, TR_F64, layout) == NULL, "an array is registered once");
  for (tr_index i = 0; i < count; ++i) B[i] = global_index(i, lower, upper);
  serial_lines(name, B, 17);
  compare_with_serial(name, rank);
  for (tr_index i = 0; i < count; ++i) B[i] = -1;
  serial_lines_back(name, B, 17);
  for (tr_index i = 0; i < count; ++i) check(B[i] == global_index(i, lower, upper), "what was read");
  wrong_size(name, B);
  check(tr_undistribute(B) == TR_OK, "tr_undistribute");
  check(tr_undistribute(B) != TR_OK, "an array is forgotten once");
  check(remove(name) == 0, "remove");
  free(mine);
  tr_layout_free(&layout);
  check(tr_finalize() == TR_OK, "tr_finalize");
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures > 0;
}
