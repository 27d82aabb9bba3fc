/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Times one contender and prints the seconds of each repetition as one line of JSON.
 *   --rows N --columns N   the global array of float64, cut into blocks over the ranks
 *   --repeat N --file PATH --arrays N (the array N times in one file, one after another)
 *   --sync                 until it is on storage       --read   reads a file instead, which is left there
 *   --keep                 the last file is left there */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contender.h"

struct options {
  long rows, columns, repeat, arrays;
  const char* file;
  int sync, read, keep;
};

void must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "bench: %s: %s\n", contender.name, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void sync_file(const char* path, const struct block* block) {
  if (block->rank == 0) {
    const int file = open(path, O_RDWR);
    must(file >= 0 && fsync(file) == 0 && close(file) == 0, "fsync");
  }
  MPI_Barrier(block->comm);
}

MPI_Info hints(void) {
  static MPI_Info info = MPI_INFO_NULL;
  static char text[1024];
  const char* const given = getenv("BENCH_HINTS");
  if (info != MPI_INFO_NULL || given == NULL || *given == 0) return info;
  snprintf(text, sizeof text, "%s", given);
  MPI_Info_create(&info);
  for (char* word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
    char* const value = strchr(word, '=');
    must(value != NULL, "BENCH_HINTS: key=value,key=value");
    *value = 0;
    MPI_Info_set(info, word, value + 1);
  }
  return info;
}

static int says(const char* variable, const char* word) {
  const char* const given = getenv(variable);
  return given != NULL && strcmp(given, word) == 0;
}

int is_independent(void) { return says("BENCH_TRANSFER", "independent"); }

int chunk_of_blocks(const struct block* block, long chunk[2]) {
  if (!says("BENCH_LAYOUT", "chunks")) return 0;
  long mine[2] = {block->count[0], block->count[1]};
  MPI_Allreduce(mine, chunk, 2, MPI_LONG, MPI_MAX, block->comm);
  /* If the block were cut elsewhere two ranks would share a chunk. */
  must(block->lower[0] % chunk[0] == 0 && block->lower[1] % chunk[1] == 0, "blocks of equal size for chunks");
  return 1;
}

MPI_Datatype part_of_whole(const struct block* b) {
  const int shape[] = {(int)b->shape[0], (int)b->shape[1]}, count[] = {(int)b->count[0], (int)b->count[1]};
  const int lower[] = {(int)b->lower[0], (int)b->lower[1]};
  MPI_Datatype part;
  MPI_Type_create_subarray(2, shape, count, lower, MPI_ORDER_C, MPI_DOUBLE, &part);
  MPI_Type_commit(&part);
  return part;
}

static struct options read_options(int count, char** words) {
  struct options o = {.rows = 4096, .columns = 4096, .repeat = 3, .arrays = 1, .file = "files.dat"};
  for (int i = 1; i < count; i++) {
    const char *name = words[i], *value = i + 1 < count ? words[i + 1] : "";
    if (strcmp(name, "--sync") == 0) o.sync = 1;
    if (strcmp(name, "--read") == 0) o.read = 1;
    if (strcmp(name, "--keep") == 0) o.keep = 1;
    if (strcmp(name, "--rows") == 0) o.rows = atol(value);
    if (strcmp(name, "--columns") == 0) o.columns = atol(value);
    if (strcmp(name, "--repeat") == 0) o.repeat = atol(value);
    if (strcmp(name, "--arrays") == 0) o.arrays = atol(value);
    if (strcmp(name, "--file") == 0) o.file = value;
  }
  return o;
}

static double value_at(long row, long column, const struct block* b) {
  return (double)(row * b->shape[1] + column) + 0.25;
}

static struct block make_block(const struct options* o) {
  struct block b = {.comm = MPI_COMM_WORLD, .shape = {o->rows, o->columns}};
  int cut[2] = {0, 0};
  MPI_Comm_rank(b.comm, &b.rank);
  MPI_Comm_size(b.comm, &b.ranks);
  MPI_Dims_create(b.ranks, 2, cut);
  const int place[2] = {b.rank / cut[1], b.rank % cut[1]};
  for (int d = 0; d < 2; d++) {
    b.lower[d] = b.shape[d] * place[d] / cut[d];
    b.count[d] = b.shape[d] * (place[d] + 1) / cut[d] - b.lower[d];
  }
  b.data = malloc((size_t)(b.count[0] * b.count[1]) * sizeof *b.data);
  must(b.data != NULL, "out of memory");
  for (long i = 0; i < b.count[0]; i++)
    for (long j = 0; j < b.count[1]; j++)
      b.data[i * b.count[1] + j] = value_at(b.lower[0] + i, b.lower[1] + j, &b);
  return b;
}

/* Checks every element of every rank after reading. */
static void check_block(const struct block* b) {
  for (long i = 0; i < b->count[0]; i++)
    for (long j = 0; j < b->count[1]; j++)
      must(b->data[i * b->count[1] + j] == value_at(b->lower[0] + i, b->lower[1] + j, b),
           "read wrong values");
}

/* Checks some elements all over the file after writing. */
static void check_file(const char* path, const struct block* b) {
  const int file = open(path, O_RDONLY);
  const long elements = b->shape[0] * b->shape[1];
  must(file >= 0 && lseek(file, 0, SEEK_END) % (elements * 8) == 0, "the file has another size");
  for (long i = 0; i < elements; i += elements / 997 + 1) {
    double value = 0;
    must(pread(file, &value, sizeof value, i * 8) == sizeof value, "the file cannot be read");
    must(value == value_at(i / b->shape[1], i % b->shape[1], b), "wrong values in the file");
  }
  close(file);
}

static double repetition(const struct options* o, struct block* b) {
  if (o->read) memset(b->data, 0, (size_t)(b->count[0] * b->count[1]) * sizeof *b->data);
  MPI_Barrier(b->comm);
  const double begin = MPI_Wtime();
  if (o->read)
    contender.read(o->file, b);
  else
    contender.write(o->file, b, (int)o->arrays, o->sync);
  MPI_Barrier(b->comm);
  const double seconds = MPI_Wtime() - begin;
  if (o->read) check_block(b);
  return seconds;
}

static void all_repetitions(const struct options* o, struct block* b) {
  if (b->rank == 0) printf("{\"contender\": \"%s\", \"seconds\": [", contender.name);
  for (long i = 0; i < o->repeat; i++) {
    if (b->rank == 0 && !o->read) unlink(o->file);
    const double seconds = repetition(o, b);
    if (b->rank == 0) printf("%s%.6f", i ? ", " : "", seconds);
  }
  if (b->rank != 0) return;
  printf("]}\n");
  if (o->read) return;
  if (contender.is_plain) check_file(o->file, b);
  if (!o->keep) unlink(o->file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const struct options options = read_options(argc, argv);
  must(!options.read || contender.read != NULL, "this one only writes");
  struct block block = make_block(&options);
  if (contender.start) contender.start(&block);
  all_repetitions(&options, &block);
  if (contender.stop) contender.stop();
  free(block.data);
  MPI_Finalize();
  return 0;
}
