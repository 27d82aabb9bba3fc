/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes the list of elements of a finite-element grid into one file, from all ranks, and reads it back: many
 * small pieces, dealt to the ranks in turn. The test program of DONIO (Oak Ridge, 1994), with the calls of
 * tailrace/shared.h; fem.f90 is the same with DONIO's own names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

enum { VERTICES = 8, ELEMENT_BYTES = VERTICES * (int)sizeof(int32_t), SECTIONS = 6 };

static const char help[] =
    "fem: writes the elements of a grid of hexahedra into one file, from all ranks, and reads them back.\n"
    "\n"
    "usage: mpirun -n N fem NX NY NZ [FILE]\n"
    "\n"
    "  NX NY NZ   vertices along each side, 2 or more\n"
    "  FILE       the file; it stays                       (fem.bin)\n"
    "  --help\n"
    "\n"
    "examples\n"
    "  # the three grids of the study of 1994: files of 1.5, 12.3 and 41.5 MB\n"
    "  mpirun -n 4 fem 41 41 31\n"
    "  mpirun -n 4 fem 81 81 61\n"
    "  mpirun -n 4 fem 121 121 91\n"
    "  # the bytes are the same for any number of ranks\n"
    "  mpirun -n 1 fem 41 41 31 one.bin && mpirun -n 4 fem 41 41 31 four.bin && cmp one.bin four.bin\n"
    "\n"
    "The file has 8 numbers of 4 bytes for each element: its vertices, counted from 1.\n"
    "Exit status: 0 done, 1 failed (the reason is printed), 2 a wrong argument.\n";

/* Counts along x, y and z: vertices and elements. */
struct grid {
  int64_t vertices[3], elements[3];
};

struct run {
  struct grid grid;
  const char* path;
  MPI_Comm comm;
  int rank, ranks;
  int32_t* column;          /* the vertices of the elements of one column */
  double seconds[SECTIONS]; /* of wopen, write, wclose, ropen, read, rclose */
};

/* Every rank gets the same error of a collective call, and so all end together. A launcher may lose the last
 * lines of a job that aborts. */
static void check(const struct run* r, int code) {
  if (code == TR_OK) return;
  if (r->rank == 0) fprintf(stderr, "fem: %s\n", tr_error());
  tr_finalize();
  MPI_Finalize();
  exit(1);
}

/* Does the same for a call of this rank alone. The others would wait for it in the next collective call. */
static void check_alone(const struct run* r, int code) {
  if (code == TR_OK) return;
  fprintf(stderr, "fem: rank %d: %s\n", r->rank, tr_error());
  MPI_Abort(r->comm, 1);
}

/* Fills `column` with the vertices of the elements of column (ix, iy), from below. All numbers are from 0,
 * but those of the vertices in the file, which are from 1. */
static void fill_column(const struct grid* g, int64_t ix, int64_t iy, int32_t* column) {
  static const int dx[VERTICES] = {0, 1, 1, 0, 0, 1, 1, 0};
  static const int dy[VERTICES] = {0, 0, 1, 1, 0, 0, 1, 1};
  static const int dz[VERTICES] = {0, 0, 0, 0, 1, 1, 1, 1};
  const int64_t nx = g->vertices[0], nz = g->vertices[2];
  for (int64_t iz = 0; iz < g->elements[2]; iz++)
    for (int i = 0; i < VERTICES; i++)
      *column++ = (int32_t)(1 + (iz + dz[i]) + (ix + dx[i]) * nz + (iy + dy[i]) * nz * nx);
}

/* Returns the number of columns of this rank. Its n-th one is column n * ranks + rank. */
static int64_t columns_of(const struct run* r) {
  const int64_t all = r->grid.elements[0] * r->grid.elements[1];
  return (all - r->rank + r->ranks - 1) / r->ranks;
}

/* Moves to this rank's n-th column, whose vertices it returns in `column`. */
static void seek_column(const struct run* r, tr_shared* file, int64_t n, int32_t* column) {
  const int64_t number = n * r->ranks + r->rank;
  fill_column(&r->grid, number % r->grid.elements[0], number / r->grid.elements[0], column);
  check_alone(r, tr_shared_seek(file, number * r->grid.elements[2] * ELEMENT_BYTES, SEEK_SET, NULL));
}

static void write_columns(struct run* r, tr_shared* file) {
  for (int64_t n = 0; n < columns_of(r); n++) {
    seek_column(r, file, n, r->column);
    check_alone(r, tr_shared_write(file, r->column, r->grid.elements[2] * ELEMENT_BYTES));
  }
}

/* Returns how many numbers are wrong. `read` has room for a column. */
static int64_t read_columns(struct run* r, tr_shared* file, int32_t* read) {
  int64_t wrong = 0;
  for (int64_t n = 0; n < columns_of(r); n++) {
    seek_column(r, file, n, r->column);
    check_alone(r, tr_shared_read(file, read, r->grid.elements[2] * ELEMENT_BYTES, NULL));
    for (int64_t i = 0; i < r->grid.elements[2] * VERTICES; i++) wrong += read[i] != r->column[i];
  }
  return wrong;
}

/* Ends a section of the run, which began at *begin, and lets all ranks begin the next one together. They wait
 * for each other in the library and not in MPI_Barrier: a rank that waits for MPI answers nobody who reads
 * its pages from another node. Opening and closing wait for all ranks by themselves. */
static void end_section(struct run* r, int section, tr_shared* file, double* begin) {
  r->seconds[section] = MPI_Wtime() - *begin;
  if (file != NULL) check(r, tr_shared_sync(file));
  *begin = MPI_Wtime();
}

static int64_t file_bytes(const struct grid* g) {
  return g->elements[0] * g->elements[1] * g->elements[2] * ELEMENT_BYTES;
}

static int64_t write_and_read(struct run* r, int32_t* read) {
  tr_shared* file = NULL;
  MPI_Barrier(r->comm);
  double begin = MPI_Wtime();
  check(r, tr_shared_open_comm(r->comm, r->path, "w", NULL, &file));
  end_section(r, 0, file, &begin);
  write_columns(r, file);
  end_section(r, 1, file, &begin);
  check(r, tr_shared_close(&file));
  end_section(r, 2, file, &begin);
  check(r, tr_shared_open_comm(r->comm, r->path, "r", NULL, &file));
  end_section(r, 3, file, &begin);
  const int64_t wrong = read_columns(r, file, read);
  end_section(r, 4, file, &begin);
  check(r, tr_shared_close(&file));
  end_section(r, 5, file, &begin);
  return wrong;
}

static void print(const struct run* r) {
  const struct grid* g = &r->grid;
  const int64_t bytes = file_bytes(g);
  printf("%lld x %lld x %lld elements from %d %s: %s, %lld bytes\n", (long long)g->elements[0],
         (long long)g->elements[1], (long long)g->elements[2], r->ranks, r->ranks == 1 ? "rank" : "ranks",
         r->path, (long long)bytes);
  printf("     wopen     write    wclose     ropen      read    rclose   s, the longest of all ranks\n");
  for (int i = 0; i < SECTIONS; i++) printf("%10.4f", r->seconds[i]);
  printf("\n");
}

/* Returns the program's exit status, the same on every rank. */
static int run(struct run* r) {
  const size_t numbers = (size_t)r->grid.elements[2] * VERTICES;
  long long wrong = 0;
  int32_t* read = malloc(numbers * sizeof *read);
  r->column = malloc(numbers * sizeof *r->column);
  if (read == NULL || r->column == NULL) {
    fprintf(stderr, "fem: rank %d: there is no memory for a column of %lld elements\n", r->rank,
            (long long)r->grid.elements[2]);
    MPI_Abort(r->comm, 1);
  }
  wrong = write_and_read(r, read);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG_LONG, MPI_SUM, r->comm);
  MPI_Allreduce(MPI_IN_PLACE, r->seconds, SECTIONS, MPI_DOUBLE, MPI_MAX, r->comm);
  if (r->rank == 0) {
    print(r);
    if (wrong == 0) printf("checked: every number was read as it was written\n");
    if (wrong != 0) fprintf(stderr, "fem: %lld numbers in %s were read wrong\n", wrong, r->path);
  }
  free(read);
  free(r->column);
  return wrong != 0;
}

static int read_count(const char* text, int64_t* value) {
  char* end = NULL;
  errno = 0;
  *value = strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && *value >= 2 && *value <= INT32_MAX;
}

/* Returns what is wrong with the counts, or NULL. Numbers of vertices have 4 bytes in the file. */
static const char* read_grid(char** words, struct grid* g) {
  for (int d = 0; d < 3; d++) {
    if (!read_count(words[d], &g->vertices[d])) return words[d];
    g->elements[d] = g->vertices[d] - 1;
  }
  const int64_t plane = g->vertices[0] * g->vertices[1];
  return plane > INT32_MAX || plane * g->vertices[2] > INT32_MAX ? "NX * NY * NZ" : NULL;
}

/* Returns the program's exit status, or -1 to go on. `talks` is non-zero on the rank that prints. */
static int read_arguments(int count, char** words, int talks, struct run* r) {
  for (int i = 1; i < count; i++) {
    if (strcmp(words[i], "--help") != 0 && strcmp(words[i], "-h") != 0) continue;
    if (talks) fputs(help, stdout);
    return 0;
  }
  if (count < 4 || count > 5) {
    if (talks) fprintf(stderr, "fem: expected NX NY NZ [FILE]; see fem --help\n");
    return 2;
  }
  const char* wrong = read_grid(words + 1, &r->grid);
  if (wrong != NULL) {
    if (talks)
      fprintf(stderr, "fem: %s: expected 2 or more vertices along each side, 2147483647 in all at most\n",
              wrong);
    return 2;
  }
  if (count == 5) r->path = words[4];
  return -1;
}

/* Returns the program's exit status. tr_log prints on one rank. */
static int run_in_session(struct run* r) {
  if (tr_init(MPI_COMM_WORLD, &r->comm, NULL) != TR_OK) {
    tr_log(tr_error());
    return 1;
  }
  int status = 0;
  if (r->comm != MPI_COMM_NULL) {
    MPI_Comm_rank(r->comm, &r->rank);
    MPI_Comm_size(r->comm, &r->ranks);
    status = run(r);
  }
  if (tr_finalize() == TR_OK) return status;
  tr_log(tr_error());
  return 1;
}

int main(int argc, char** argv) {
  struct run r = {.path = "fem.bin"};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
  int status = read_arguments(argc, argv, r.rank == 0, &r);
  if (status < 0) status = run_in_session(&r);
  MPI_Finalize();
  return status;
}
