/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A file that every rank reads as a whole: tr_fread in the serial and the parallel mode, an array of a
 * replicated layout, and fread on one rank followed by MPI_Bcast. Prints the seconds of each repetition, from
 * opening until the slowest rank has all bytes, as one line of JSON.
 *   --bytes N --repeat N --file PATH */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>
#include <unistd.h>

enum { WAYS = 4 };
static const char* const names[WAYS] = {"serial", "parallel", "array", "bcast"};

static void must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "bench: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void make_file(const char* path, const char* bytes, size_t count) {
  FILE* file = fopen(path, "wb");
  must(file != NULL && fwrite(bytes, 1, count, file) == count && fclose(file) == 0, "cannot write the file");
}

static void read_ours(const char* path, const char* mode, char* bytes, size_t count,
                      const tr_layout* layout) {
  tr_file* file = tr_fopen(path, mode);
  must(file != NULL, tr_error());
  const size_t got =
      layout == NULL ? tr_fread(bytes, 1, count, file) : tr_fread_array(bytes, TR_I8, layout, file);
  must(got == count, "tr_fread");
  must(tr_fclose(file) == 0, tr_error());
}

static void read_and_broadcast(const char* path, char* bytes, size_t count, int rank) {
  if (rank == 0) {
    FILE* file = fopen(path, "rb");
    must(file != NULL && fread(bytes, 1, count, file) == count && fclose(file) == 0, "fread");
  }
  MPI_Bcast(bytes, (int)count, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static double seconds_of(int way, const char* path, char* bytes, size_t count, const tr_layout* layout,
                         int rank) {
  memset(bytes, 0, count); /* into memory that was touched before */
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if (way == 3)
    read_and_broadcast(path, bytes, count, rank);
  else
    read_ours(path, way == 1 ? "rp" : "r", bytes, count, way == 2 ? layout : NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - begin;
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  long count = 64L << 20, repeat = 6;
  const char* path = "whole.dat";
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--bytes") == 0) count = atol(argv[i + 1]);
    if (strcmp(argv[i], "--repeat") == 0) repeat = atol(argv[i + 1]);
    if (strcmp(argv[i], "--file") == 0) path = argv[i + 1];
  }
  must(tr_init(MPI_COMM_WORLD, &compute, NULL) == TR_OK, tr_error());
  char* bytes = malloc((size_t)count);
  must(bytes != NULL, "no memory");
  memset(bytes, rank + 1, (size_t)count);
  if (rank == 0) make_file(path, bytes, (size_t)count);
  const tr_index extent[] = {count};
  tr_layout* layout = NULL;
  must(tr_layout_replicated(1, extent, &layout) == TR_OK, tr_error());
  double taken[WAYS];
  for (long i = 0; i < repeat; i++) {
    for (int way = 0; way < WAYS; way++) {
      taken[way] = seconds_of(way, path, bytes, (size_t)count, layout, rank);
      must(bytes[0] == 1 && bytes[count - 1] == 1, "wrong bytes");
    }
    if (rank > 0) continue;
    printf("%s{", i == 0 ? "{\"turns\": [" : ", ");
    for (int way = 0; way < WAYS; way++) printf("%s\"%s\": %.6f", way ? ", " : "", names[way], taken[way]);
    printf("}");
  }
  if (rank == 0) printf("]}\n");
  if (rank == 0) unlink(path);
  tr_layout_free(&layout);
  free(bytes);
  must(tr_finalize() == TR_OK, tr_error());
  MPI_Finalize();
  return 0;
}
