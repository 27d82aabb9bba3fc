/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Times tr_global_gather and tr_global_scatter of random elements of 8 bytes in turn with a loop that copies
 * by the same numbers from memory of the rank's own, or to there. Prints one line of JSON with the seconds of
 * each repetition: until the last rank is done, until a sync behind it has ended (NAME_synced), and of
 * processor time of all ranks (NAME_processor).
 *   --elements N --batch N --batches N   all ranks pass `batches` lists of `batch` numbers, a list a call
 *   --others                             the numbers are those of other ranks' elements only
 *   --alone                              only rank 0 calls anything; the others sleep (with --threads)
 *   --repeat N
 *   --threads                            MPI is initialised with MPI_THREAD_MULTIPLE
 * What is gathered is checked in every repetition. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>
#include <time.h>

enum { page_bytes = 1 << 20, elements_in_page = page_bytes / 8 };
enum { sections = 4 };

static const char* const section_names[sections] = {"plain_gather", "gather", "plain_scatter", "scatter"};

struct seconds {
  double done, synced;
  double processor; /* until it is done, of all ranks' own threads */
};

struct options {
  long elements, batch, batches, repeat;
  int others, alone, threads;
};

struct run {
  struct options options;
  int rank, ranks;
  tr_global* array;
  int64_t* own;      /* as many elements as the array has */
  tr_index* numbers; /* batches * batch */
  int64_t* values;   /* of those */
  int64_t round;     /* the rank's listed elements were last set to number + round * elements */
};

static void must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "bench: array_elements: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int code) {
  if (code != TR_OK) must(0, tr_error());
}

static struct options read_options(int count, char** words) {
  struct options o = {.elements = 1000000, .batch = 100000, .batches = 10, .repeat = 6};
  for (int i = 1; i < count; i++) {
    const char *name = words[i], *value = i + 1 < count ? words[i + 1] : "";
    if (strcmp(name, "--elements") == 0) o.elements = atol(value);
    if (strcmp(name, "--batch") == 0) o.batch = atol(value);
    if (strcmp(name, "--batches") == 0) o.batches = atol(value);
    if (strcmp(name, "--repeat") == 0) o.repeat = atol(value);
    if (strcmp(name, "--others") == 0) o.others = 1;
    if (strcmp(name, "--alone") == 0) o.alone = 1;
    if (strcmp(name, "--threads") == 0) o.threads = 1;
  }
  must(!o.alone || o.threads, "--alone: nobody else answers without --threads");
  must(o.elements > 0 && o.batch > 0 && o.batches > 0 && o.repeat > 0, "sizes above 0");
  return o;
}

/* ---- what is copied ----------------------------------------------------------------------------- */

/* Marsaglia's xorshift64: the same numbers on any machine. */
static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static int is_own(const struct run* r, tr_index number) {
  return number / elements_in_page % r->ranks == r->rank;
}

static void draw_numbers(struct run* r) {
  const struct options* const o = &r->options;
  uint64_t state = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(r->rank + 1);
  must(!o->others || (r->ranks > 1 && o->elements > (r->ranks - 1) * elements_in_page),
       "--others: pages for every rank, and more than 1 rank");
  for (long k = 0; k < o->batch * o->batches;) {
    const tr_index number = (tr_index)(next_random(&state) % (uint64_t)o->elements);
    if (!o->others || !is_own(r, number)) r->numbers[k++] = number;
  }
}

static int64_t value_of(const struct run* r, tr_index number) {
  return number + r->round * r->options.elements;
}

/* Both memories are touched before anything is timed: the array by its owners, the rank's own by itself. */
static void fill(struct run* r) {
  void* page;
  tr_index first, count;
  for (tr_index part = 0;; part++) {
    check(tr_global_local(r->array, part, &page, &first, &count));
    if (count == 0) break;
    for (tr_index i = 0; i < count; i++) ((int64_t*)page)[i] = value_of(r, first + i);
  }
  for (tr_index i = 0; i < r->options.elements; i++) r->own[i] = value_of(r, i);
  check(tr_global_sync(r->array));
}

static void prepare(struct run* r) {
  const struct options* const o = &r->options;
  char page[32];
  r->own = malloc((size_t)o->elements * sizeof *r->own);
  r->numbers = malloc((size_t)(o->batch * o->batches) * sizeof *r->numbers);
  r->values = malloc((size_t)(o->batch * o->batches) * sizeof *r->values);
  must(r->own != NULL && r->numbers != NULL && r->values != NULL, "out of memory");
  snprintf(page, sizeof page, "page=%d", page_bytes);
  check(tr_global_create(TR_I64, o->elements, page, &r->array));
  draw_numbers(r);
  fill(r);
}

/* ---- what is timed ------------------------------------------------------------------------------ */

static void gather_plainly(struct run* r) {
  const long n = r->options.batch * r->options.batches;
  for (long i = 0; i < n; i++) r->values[i] = r->own[r->numbers[i]];
}

static void scatter_plainly(struct run* r) {
  const long n = r->options.batch * r->options.batches;
  for (long i = 0; i < n; i++) r->own[r->numbers[i]] = r->values[i];
}

static void gather_from_array(struct run* r) {
  const long n = r->options.batch, end = n * r->options.batches;
  for (long at = 0; at < end; at += n) check(tr_global_gather(r->array, n, r->numbers + at, r->values + at));
}

static void scatter_to_array(struct run* r) {
  const long n = r->options.batch, end = n * r->options.batches;
  for (long at = 0; at < end; at += n) check(tr_global_scatter(r->array, n, r->numbers + at, r->values + at));
}

static int64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int takes_part(const struct run* r) { return !r->options.alone || r->rank == 0; }

/* Ranks that take no part are in no call of the library, and leave their core, until rank 0 is done. */
static void wait_for_alone(const struct run* r) {
  const struct timespec pause = {0, 100000};
  MPI_Request request;
  int is_done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!is_done) {
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    if (!is_done && r->rank != 0) nanosleep(&pause, NULL);
  }
}

/* From when the first rank begins until the last one is done, and until it is through a sync: all are on one
 * machine, with one clock. Whoever is done early answers the others in that sync. */
static struct seconds seconds_of(void (*step)(struct run*), struct run* r) {
  int64_t my_begin = INT64_MAX, begin = 0, mine[2] = {0, 0}, last[2], my_processor, processor = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  my_processor = -now_ns(CLOCK_THREAD_CPUTIME_ID);
  if (takes_part(r)) {
    my_begin = now_ns(CLOCK_MONOTONIC);
    step(r);
    mine[0] = now_ns(CLOCK_MONOTONIC);
  }
  my_processor += now_ns(CLOCK_THREAD_CPUTIME_ID);
  if (r->options.alone) wait_for_alone(r);
  check(tr_global_sync(r->array));
  mine[1] = now_ns(CLOCK_MONOTONIC);
  MPI_Allreduce(&my_begin, &begin, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(mine, last, 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&my_processor, &processor, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return (struct seconds){(double)(last[0] - begin) * 1e-9, (double)(last[1] - begin) * 1e-9,
                          (double)processor * 1e-9};
}

/* ---- repetitions -------------------------------------------------------------------------------- */

static void forget_values(struct run* r) {
  memset(r->values, 0, (size_t)(r->options.batch * r->options.batches) * sizeof *r->values);
}

static void check_values(const struct run* r) {
  const long n = takes_part(r) ? r->options.batch * r->options.batches : 0;
  for (long i = 0; i < n; i++) must(r->values[i] == value_of(r, r->numbers[i]), "gather found wrong values");
}

/* Ranks write the same values to the same elements. */
static void make_values(struct run* r) {
  const long n = r->options.batch * r->options.batches;
  r->round++;
  for (long i = 0; i < n; i++) r->values[i] = value_of(r, r->numbers[i]);
}

/* The next repetition's gather finds what this one scatters. Either way comes first in every other
 * repetition. */
static void repetition(struct run* r, long k, struct seconds* taken) {
  static void (*const gathers[])(struct run*) = {gather_plainly, gather_from_array};
  static void (*const scatters[])(struct run*) = {scatter_plainly, scatter_to_array};
  for (int i = 0; i < 2; i++) {
    const int way = (int)((i + k) % 2);
    forget_values(r);
    taken[way] = seconds_of(gathers[way], r);
    check_values(r);
  }
  make_values(r);
  for (int i = 0; i < 2; i++) {
    const int way = (int)((i + k) % 2);
    taken[2 + way] = seconds_of(scatters[way], r);
  }
}

static void print_list(const char* name, const char* more, const struct seconds* first, long repeat) {
  printf(", \"%s%s\": [", name, more);
  for (long k = 0; k < repeat; k++) {
    const struct seconds one = first[k * sections];
    printf("%s%.9f", k ? ", " : "",
           *more == 0                     ? one.done
           : strcmp(more, "_synced") == 0 ? one.synced
                                          : one.processor);
  }
  printf("]");
}

static void print_results(const struct run* r, const struct seconds* taken, int provided) {
  printf("{\"each\": %ld, \"threads\": %s", r->options.batch * r->options.batches,
         provided == MPI_THREAD_MULTIPLE ? "true" : "false");
  for (int i = 0; i < sections; i++) {
    print_list(section_names[i], "", taken + i, r->options.repeat);
    print_list(section_names[i], "_synced", taken + i, r->options.repeat);
    print_list(section_names[i], "_processor", taken + i, r->options.repeat);
  }
  printf("}\n");
}

static void all_repetitions(struct run* r, int provided) {
  struct seconds* const taken = calloc((size_t)(r->options.repeat * sections), sizeof *taken);
  must(taken != NULL, "out of memory for the results");
  for (long k = 0; k < r->options.repeat; k++) repetition(r, k, taken + k * sections);
  forget_values(r);
  gather_from_array(r);
  check_values(r);
  check(tr_global_sync(r->array));
  if (r->rank == 0) print_results(r, taken, provided);
  free(taken);
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  int provided;
  struct run run = {.options = read_options(argc, argv)};
  MPI_Init_thread(&argc, &argv, run.options.threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
  check(tr_init(MPI_COMM_WORLD, &compute, NULL));
  prepare(&run);
  all_repetitions(&run, provided);
  check(tr_global_free(&run.array));
  check(tr_finalize());
  free(run.own), free(run.numbers), free(run.values);
  MPI_Finalize();
  return 0;
}
