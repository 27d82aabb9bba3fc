/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Many small calls: the library's without result on all ranks, and the C library's own on one. Prints the
 * seconds of each repetition, the longest of all ranks, until the file is closed, as one line of JSON.
 *   --calls N --repeat N --file PATH   --libc (the C library, for one rank) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>
#include <unistd.h>

struct options {
  long calls, repeat;
  const char* file;
  int libc;
};

static struct options read_options(int count, char** words) {
  struct options o = {.calls = 100000, .repeat = 6, .file = "small.txt"};
  for (int i = 1; i < count; i++) {
    const char *name = words[i], *value = i + 1 < count ? words[i + 1] : "";
    if (strcmp(name, "--libc") == 0) o.libc = 1;
    if (strcmp(name, "--calls") == 0) o.calls = atol(value);
    if (strcmp(name, "--repeat") == 0) o.repeat = atol(value);
    if (strcmp(name, "--file") == 0) o.file = value;
  }
  return o;
}

static void must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "bench: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void with_libc(const struct options* o, int formatted) {
  FILE* file = fopen(o->file, "w");
  must(file != NULL, "fopen");
  for (long i = 0; i < o->calls; i++) {
    if (formatted)
      fprintf(file, "%ld %g\n", i, (double)i / 8);
    else
      fputc('a' + (int)(i % 26), file);
  }
  must(fclose(file) == 0, "fclose");
}

static void with_tailrace(const struct options* o, int formatted) {
  tr_file* file = tr_fopen(o->file, "w");
  must(file != NULL, tr_error());
  for (long i = 0; i < o->calls; i++) {
    if (formatted)
      tr_fprintf_nr(file, "%ld %g\n", i, (double)i / 8);
    else
      tr_fputc_nr('a' + (int)(i % 26), file);
  }
  must(tr_fclose(file) == 0, tr_error());
}

static void all_repetitions(const struct options* o, int formatted, int rank) {
  if (rank == 0) printf("\"%s\": [", formatted ? "fprintf" : "fputc");
  for (long i = 0; i < o->repeat; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    (o->libc ? with_libc : with_tailrace)(o, formatted);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%s%.6f", i ? ", " : "", MPI_Wtime() - begin);
    if (rank == 0) unlink(o->file);
  }
  if (rank == 0) printf("]");
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const struct options options = read_options(argc, argv);
  must(tr_init(MPI_COMM_WORLD, &compute, NULL) == TR_OK, tr_error());
  if (rank == 0) printf("{");
  all_repetitions(&options, 1, rank);
  if (rank == 0) printf(", ");
  all_repetitions(&options, 0, rank);
  if (rank == 0) printf("}\n");
  must(tr_finalize() == TR_OK, tr_error());
  MPI_Finalize();
  return 0;
}
