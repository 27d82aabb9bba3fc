/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Times contenders that take turns within one run, and prints the seconds of each section and repetition,
 * until the last rank is done, as one line of JSON.
 *   --contenders NAME,NAME        tailrace, tailrace_list, posix, stdio, mpi_at, mpi_all, blocks
 *   --grid NXxNYxNZ               a hexahedral grid's list of elements: a piece is a column
 *   --piece BYTES --pieces N      or numbered pieces of a multiple of 4 bytes
 *   --repeat N --file PATH        each repetition makes the file and removes it
 *   --sync                        before it is closed, it is on storage
 * Every file is checked whole in the first repetition, and a word of each piece whenever it is read. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "contender.h"
#include "content.h"
#include "slow_storage.h"

enum section { wopen, write_pieces, wclose, ropen, read_pieces, rclose, sections };
enum { most_contenders = 8, counts_of_call = sizeof(struct slow_storage_counts) / sizeof(long) };

static const char* const section_names[] = {"wopen", "write", "wclose", "ropen", "read", "rclose"};
static const char* const count_names[] = {"writes", "bytes_written", "small_writes", "last_write_is_small",
                                          "reads",  "bytes_read",    "small_reads",  "syncs"};
static const struct contender* const known[] = {&tailrace, &tailrace_list, &posix, &standard_io,
                                                &mpi_at,   &mpi_all,       &blocks};

struct options {
  struct content content;
  long pieces, repeat;
  const char *file, *contenders;
  int sync;
};

struct results {
  double seconds[sections];
  struct slow_storage_counts counts; /* of all ranks */
};

struct run {
  struct options options;
  struct share share;
  const struct contender* contenders[most_contenders];
  int count;
  int* piece;  /* one */
  int* pieces; /* all of this rank, if a contender wants them */
  const struct contender* now;
};

static const char* name_now = "driver";

void must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "bench: %s: %s\n", name_now, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void sync_file(const char* path, const struct share* share) {
  MPI_Barrier(share->comm);
  if (share->rank == 0) {
    const int file = open(path, O_RDWR);
    must(file >= 0 && fsync(file) == 0 && close(file) == 0, "fsync");
  }
  MPI_Barrier(share->comm);
}

/* ---- what is asked for
 * ---------------------------------------------------------------------------------------- */

static struct options read_options(int count, char** words) {
  struct options o = {
      .content = {.bytes = 1024}, .pieces = 4096, .repeat = 2, .file = "shared.dat", .contenders = "posix"};
  for (int i = 1; i < count; i++) {
    const char *name = words[i], *value = i + 1 < count ? words[i + 1] : "";
    if (strcmp(name, "--sync") == 0) o.sync = 1;
    if (strcmp(name, "--contenders") == 0) o.contenders = value;
    if (strcmp(name, "--piece") == 0) o.content.bytes = atol(value);
    if (strcmp(name, "--pieces") == 0) o.pieces = atol(value);
    if (strcmp(name, "--repeat") == 0) o.repeat = atol(value);
    if (strcmp(name, "--file") == 0) o.file = value;
    if (strcmp(name, "--grid") == 0)
      must(sscanf(value, "%ldx%ldx%ld", &o.content.nx, &o.content.ny, &o.content.nz) == 3, "--grid NXxNYxNZ");
  }
  struct content* const c = &o.content;
  if (c->nx > 0) {
    must(c->nx > 1 && c->ny > 1 && c->nz > 1, "--grid: at least 2 vertices in each direction");
    c->bytes = (c->nz - 1) * 32;
    o.pieces = (c->nx - 1) * (c->ny - 1);
  }
  must(c->bytes >= 4 && c->bytes % 4 == 0, "--piece: a multiple of 4 bytes");
  return o;
}

/* The test program counts columns from 1: its first column is rank 1's, and rank 0 begins with the last of
 * the first turn. Numbered pieces begin with rank 0. */
static struct share make_share(const struct options* o) {
  struct share s = {.comm = MPI_COMM_WORLD, .bytes = o->content.bytes, .all = o->pieces};
  MPI_Comm_rank(s.comm, &s.rank);
  MPI_Comm_size(s.comm, &s.ranks);
  s.first = o->content.nx > 0 ? (s.rank + s.ranks - 1) % s.ranks : s.rank;
  s.pieces = s.first < s.all ? (s.all - s.first - 1) / s.ranks + 1 : 0;
  return s;
}

static void choose_contenders(struct run* r) {
  static char text[256];
  snprintf(text, sizeof text, "%s", r->options.contenders);
  for (char* word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
    const int before = r->count;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
      if (strcmp(word, known[i]->name) == 0 && r->count < most_contenders)
        r->contenders[r->count++] = known[i];
    must(r->count > before,
         "--contenders: tailrace, tailrace_list, posix, stdio, mpi_at, mpi_all or blocks, with commas");
  }
}

/* ---- sections
 * ------------------------------------------------------------------------------------------------- */

static void open_to_write(struct run* r) { r->now->open(r->options.file, &r->share, 1); }
static void open_to_read(struct run* r) { r->now->open(r->options.file, &r->share, 0); }
static void close_written(struct run* r) { r->now->close(r->options.file, &r->share, r->options.sync); }
static void close_read(struct run* r) { r->now->close(r->options.file, &r->share, 0); }

static long number_of(const struct share* s, long k) { return s->first + k * s->ranks; }
static int* piece_of_all(const struct run* r, long k) { return r->pieces + k * (r->share.bytes / 4); }

static void write_share(struct run* r) {
  const struct share* const s = &r->share;
  const struct content content = r->options.content;
  if (r->now->put_all != NULL) {
    for (long k = 0; k < s->pieces; k++) fill_piece(&content, number_of(s, k), piece_of_all(r, k));
    r->now->put_all(r->pieces, s);
    return;
  }
  for (long k = 0; k < s->pieces; k++) {
    fill_piece(&content, number_of(s, k), r->piece);
    r->now->put(r->piece, s->bytes, offset_of(s, k));
  }
}

static void read_share(struct run* r) {
  const struct share* const s = &r->share;
  const struct content content = r->options.content;
  if (r->now->get_all != NULL) {
    r->now->get_all(r->pieces, s);
    for (long k = 0; k < s->pieces; k++)
      must(*piece_of_all(r, k) == first_word(&content, number_of(s, k)), "read wrong values");
    return;
  }
  for (long k = 0; k < s->pieces; k++) {
    r->now->get(r->piece, s->bytes, offset_of(s, k));
    must(*r->piece == first_word(&content, number_of(s, k)), "read wrong values");
  }
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* From when the first rank begins until the last one is done: all are on one machine, with one clock. A time
 * that each rank took by itself would leave out that it waited for a core, which has the ranks that call
 * nothing collective look faster than the machine. MPI_Wtime counts from another moment in each process. */
static double seconds_of(void (*section)(struct run*), struct run* r) {
  int64_t begin = 0, end = 0;
  MPI_Barrier(r->share.comm);
  const int64_t my_begin = now_ns();
  section(r);
  const int64_t my_end = now_ns();
  MPI_Allreduce(&my_begin, &begin, 1, MPI_INT64_T, MPI_MIN, r->share.comm);
  MPI_Allreduce(&my_end, &end, 1, MPI_INT64_T, MPI_MAX, r->share.comm);
  return (double)(end - begin) * 1e-9;
}

/* Compares every byte of the file with what it should hold, and every rank a part. */
static void check_file(struct run* r) {
  const struct share* const s = &r->share;
  const int file = open(r->options.file, O_RDONLY);
  int* const found = malloc((size_t)s->bytes);
  must(file >= 0 && found != NULL, "the file cannot be opened to check it");
  must(lseek(file, 0, SEEK_END) == s->all * s->bytes, "the file has another size");
  prepare_piece(&r->options.content, r->piece); /* reading has written over it */
  for (long number = s->all * s->rank / s->ranks; number < s->all * (s->rank + 1) / s->ranks; number++) {
    fill_piece(&r->options.content, number, r->piece);
    must(pread(file, found, (size_t)s->bytes, number * s->bytes) == s->bytes,
         "the file cannot be read to check it");
    must(memcmp(found, r->piece, (size_t)s->bytes) == 0, "wrong values in the file");
  }
  free(found);
  close(file);
}

/* ---- repetitions
 * ---------------------------------------------------------------------------------------------- */

static slow_storage_take* find_counter(void) {
  slow_storage_take* take = NULL;
  *(void**)&take = dlsym(RTLD_DEFAULT, "slow_storage_take_counts");
  return take;
}

/* Of all ranks since the last call; `charges` says whether storage is slow from here on. */
static struct slow_storage_counts take_counts(int charges, const struct share* s) {
  slow_storage_take* const take = find_counter();
  struct slow_storage_counts mine = {0}, sum = {0};
  if (take == NULL) return sum;
  mine = take(charges);
  MPI_Allreduce(&mine, &sum, counts_of_call, MPI_LONG, MPI_SUM, s->comm);
  return sum;
}

static struct results repetition(struct run* r, const struct contender* contender, int is_checked) {
  static void (*const steps[])(struct run*) = {open_to_write, write_share, close_written,
                                               open_to_read,  read_share,  close_read};
  struct results results;
  r->now = contender;
  name_now = contender->name;
  if (r->share.rank == 0) unlink(r->options.file);
  memset(r->piece, 0, (size_t)r->share.bytes);
  prepare_piece(&r->options.content, r->piece);
  take_counts(1, &r->share);
  for (int i = 0; i < sections; i++) results.seconds[i] = seconds_of(steps[i], r);
  results.counts = take_counts(0, &r->share);
  if (is_checked) check_file(r);
  MPI_Barrier(r->share.comm);
  if (r->share.rank == 0) unlink(r->options.file);
  return results;
}

static void print_counts(const struct results* results, long repeat) {
  for (int i = 0; i < counts_of_call; i++) {
    printf(", \"%s\": [", count_names[i]);
    for (long k = 0; k < repeat; k++) printf("%s%ld", k ? ", " : "", ((const long*)&results[k].counts)[i]);
    printf("]");
  }
}

static void print_results(const struct run* r, const struct results* results) {
  const long repeat = r->options.repeat;
  printf("{\"bytes\": %ld, \"pieces\": %ld, \"contenders\": {", r->share.all * r->share.bytes, r->share.all);
  for (int c = 0; c < r->count; c++, results += repeat) {
    printf("%s\"%s\": {", c ? ", " : "", r->contenders[c]->name);
    for (int i = 0; i < sections; i++) {
      printf("%s\"%s\": [", i ? ", " : "", section_names[i]);
      for (long k = 0; k < repeat; k++) printf("%s%.9f", k ? ", " : "", results[k].seconds[i]);
      printf("]");
    }
    if (find_counter() != NULL) print_counts(results, repeat);
    printf("}");
  }
  printf("}}\n");
}

static void prepare(struct run* r) {
  int wants_all = 0;
  for (int c = 0; c < r->count; c++) wants_all |= r->contenders[c]->put_all != NULL;
  r->piece = malloc((size_t)r->share.bytes);
  if (wants_all) r->pieces = malloc((size_t)(r->share.bytes * r->share.pieces) + 4);
  must(r->piece != NULL && (!wants_all || r->pieces != NULL), "out of memory for the pieces");
  if (wants_all)
    for (long k = 0; k < r->share.pieces; k++) {
      memset(piece_of_all(r, k), 0, (size_t)r->share.bytes);
      prepare_piece(&r->options.content, piece_of_all(r, k));
    }
}

/* Each repetition begins with another contender: what comes first finds other caches than what comes next. */
static void all_repetitions(struct run* r) {
  const long repeat = r->options.repeat;
  struct results* const results = calloc((size_t)(r->count * repeat), sizeof *results);
  must(results != NULL, "out of memory for the results");
  for (long k = 0; k < repeat; k++)
    for (int i = 0; i < r->count; i++) {
      const int c = (int)((i + k) % r->count);
      results[c * repeat + k] = repetition(r, r->contenders[c], k == 0);
    }
  if (r->share.rank == 0) print_results(r, results);
  free(results);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct run run = {.options = read_options(argc, argv)};
  run.share = make_share(&run.options);
  choose_contenders(&run);
  prepare(&run);
  for (int c = 0; c < run.count; c++)
    if (run.contenders[c]->start != NULL) run.contenders[c]->start(&run.share);
  all_repetitions(&run);
  for (int c = run.count; c-- > 0;)
    if (run.contenders[c]->stop != NULL) run.contenders[c]->stop();
  free(run.piece);
  free(run.pieces);
  MPI_Finalize();
  return 0;
}
