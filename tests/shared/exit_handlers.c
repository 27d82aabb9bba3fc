/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A program that ends the library in a handler of atexit(3), which it has registered before the library
 * began: by MPI_Finalize alone, or first by tr_finalize. By then exit(3) may have destroyed the library's
 * objects of static and thread storage. The argument says what is still open at exit. With "mpi" everything
 * is, since do_nio has begun MPI. With "failure" it is the same, and the last rank exits with a failure while
 * the other ranks wait for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace/donio.h>

static int rank, ranks;
static const char* left = "";

/* Returns 1 if do_nio begins MPI. */
static int is_begun_by_donio(void) { return strcmp(left, "mpi") == 0 || strcmp(left, "failure") == 0; }

static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "FAILED on rank %d: %s (%s)\n", rank, what, tr_error());
  _Exit(1);
}

/* Checks that every rank has written its number to the file, as an int. */
static void check_file(const char* name) {
  if (rank != 0) return;
  FILE* file = fopen(name, "rb");
  check(file != NULL, name);
  int found = -1;
  for (int i = 0; i < ranks; ++i) check(fread(&found, sizeof found, 1, file) == 1 && found == i, name);
  fclose(file);
}

static void end_everything(void) {
  if (strcmp(left, "stream") == 0) check(tr_finalize() == TR_OK, "tr_finalize");
  if (strcmp(left, "stream") == 0) check(tr_progress() == TR_ERR_STATE && strlen(tr_error()) > 0, "tr_error");
  int finalized = 0;
  if (strcmp(left, "failure") == 0) return;
  if (strcmp(left, "mpi") != 0) MPI_Finalize();
  check(MPI_Finalized(&finalized) == MPI_SUCCESS && finalized, "MPI_Finalize");
  if (strcmp(left, "stream") != 0) check_file("exit_handlers.bin");
}

static void write_with_donio(void) {
  check(do_nio(rank, ranks) == 0, "do_nio");
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  check(!is_begun_by_donio() || provided == MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE");
  const int fd = do_open("exit_handlers.bin", DO_WRONLY | DO_CREAT, 0644);
  check(fd >= 3 && do_lsize(fd, 4 * ranks) >= 0 && do_lseek(fd, 4 * rank, SEEK_SET) >= 0, "do_open");
  check(do_write(fd, &rank, 4) == 4, "do_write");
  check(do_close(1000) == -1, "the text of an error, longer than what a string holds in itself");
  if (strcmp(left, "failure") == 0 && rank == ranks - 1) exit(3);
  if (strcmp(left, "failure") == 0) MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(left, "file") != 0 && !is_begun_by_donio()) check(do_close(fd) == 0, "do_close");
  if (strcmp(left, "nothing") == 0) check(tr_finalize() == TR_OK, "tr_finalize");
}

static void write_stream(void) {
  MPI_Comm model;
  check(tr_init(MPI_COMM_WORLD, &model, NULL) == TR_OK, "tr_init");
  tr_layout* grid;
  const tr_index shape[] = {8, 8};
  float part[64] = {0};
  tr_stream* out;
  check(tr_layout_block(2, shape, NULL, &grid) == TR_OK, "tr_layout_block");
  check(tr_stream_create("exit_handlers.raw", "base=2026-03-01T00:00Z format=raw", &out) == TR_OK, "create");
  check(tr_stream_define(out, "t", grid, TR_F32, NULL) == TR_OK, "define");
  tr_stream_begin(out, 0);
  tr_stream_put(out, "t", part);
  check(tr_stream_end(out) == TR_OK, "end");
}

/* Returns a number that the launcher of Open MPI or MPICH has put into the environment. */
static int told(const char* openmpi, const char* mpich) {
  const char* const text = getenv(openmpi) != NULL ? getenv(openmpi) : getenv(mpich);
  check(text != NULL, "the launcher tells rank and size");
  return atoi(text);
}

int main(int argc, char** argv) {
  left = argv[1];
  if (is_begun_by_donio()) {
    rank = told("OMPI_COMM_WORLD_RANK", "PMI_RANK");
    ranks = told("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
  } else {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  }
  atexit(end_everything);
  strcmp(left, "stream") == 0 ? write_stream() : write_with_donio();
  return 0;
}
