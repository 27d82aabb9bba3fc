/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The time of saves and loads of one checkpoint, in turn with their peers, as one line of JSON: seconds of
 * each repetition, each the longest of all ranks.
 *   --bytes N --repeat N     the array in all; the first repetitions are cold, and the driver drops them
 *   --name PATH              of the checkpoint      --options TEXT  of it (mode=local)
 *   --load COPY --parts N    loads instead; COPY is the newest copy's file, N its parts in the local mode
 *   --saves async            asynchronous saves only, for the cost of compression
 *   --saves rewritten        asynchronous saves while none, 5 % (one piece) or all of the array is rewritten
 *   --saves first            asynchronous saves with a second of computing before each: the first one's cost
 *   --saves raw_first        the same behind the peer, whose first files are then the first of the run
 *   --saves journal          a file that holds the array is written over after each save, on one rank */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field.h"
#include "raw.h"

struct options {
  size_t bytes;
  long repeat, parts;
  const char *name, *text, *load, *saves;
};

enum { most_series = 12 };
static struct series {
  const char* name;
  double seconds[1000];
  long count;
} all[most_series];

static void add(const char* name, double seconds) {
  struct series* s = all;
  while (s->name && strcmp(s->name, name) != 0) s++;
  s->name = name;
  s->seconds[s->count++] = seconds;
}

/* Adds the cost to two series: NAME, and NAME_thread. */
static void add_cost(const char* name, const char* thread_name, struct cost cost) {
  add(name, cost.wall);
  add(thread_name, cost.thread);
}

static void print_json(const struct field* f, double extra_sync, double extra_async) {
  double sums[2] = {extra_sync, extra_async}, bytes = (double)f->bytes, sum = 0;
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, f->comm);
  MPI_Allreduce(&bytes, &sum, 1, MPI_DOUBLE, MPI_SUM, f->comm);
  if (f->rank != 0) return;
  printf("{\"ranks\": %d, \"bytes\": %.0f, \"extra_sync\": %.0f, \"extra_async\": %.0f", f->ranks, sum,
         sums[0], sums[1]);
  for (const struct series* s = all; s < all + most_series && s->name; s++) {
    printf(", \"%s\": [", s->name);
    for (long i = 0; i < s->count; i++) printf("%s%.6f", i ? ", " : "", s->seconds[i]);
    printf("]");
  }
  printf("}\n");
}

static void check(int code) { must(code == TR_OK, tr_error()); }

/* Returns the most bytes of memory that this process has had at once. */
static double peak_memory(void) {
  char line[256];
  double kibibytes = 0;
  FILE* const status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %lf", &kibibytes);
  if (status) fclose(status);
  return kibibytes * 1024;
}

static tr_checkpoint* open_checkpoint(const struct options* o, const char* more) {
  char text[256];
  tr_checkpoint* checkpoint;
  snprintf(text, sizeof text, "%s %s", o->text, more);
  check(tr_checkpoint_create(o->name, text, &checkpoint));
  return checkpoint;
}

/* Saves once. Adds the time blocked, and the time until the save was committed. */
static void save(tr_checkpoint* checkpoint, const struct field* f, int is_async) {
  int64_t step = 1;
  MPI_Barrier(f->comm);
  const struct cost begin = cost_now();
  check(tr_checkpoint_begin(checkpoint, TR_SAVE, NULL));
  tr_checkpoint_item(checkpoint, "step", &step, TR_I64, NULL);
  tr_checkpoint_item(checkpoint, "t", f->data, TR_F64, f->layout);
  check(tr_checkpoint_end(checkpoint));
  const struct cost end = cost_now();
  check(tr_checkpoint_wait(checkpoint));
  const double last = MPI_Wtime();
  if (is_async)
    add_cost("async", "async_thread", longest_cost(f, begin, end));
  else
    add("sync", longest(f, end.wall - begin.wall));
  if (is_async) add("durable", longest(f, last - begin.wall));
}

/* Two checkpoints, since async= belongs to one: each with two copies that take turns. */
static void measure_saves(const struct options* o, const struct field* f) {
  char sync_name[4096], raw_name[4096];
  const int is_local = strstr(o->text, "local") != NULL;
  snprintf(sync_name, sizeof sync_name, "%s.sync", o->name);
  snprintf(raw_name, sizeof raw_name, "%s.raw", o->name);
  struct options other = *o;
  other.name = sync_name;
  tr_checkpoint* waiting = open_checkpoint(&other, "async=off");
  const double at_first = peak_memory();
  save(waiting, f, 0);
  const double after_sync = peak_memory();
  /* It is opened only now, because it begins to make its memory at once. */
  tr_checkpoint* behind = open_checkpoint(o, "async=on");
  save(behind, f, 1);
  const double after_async = peak_memory();
  void* const room = warm_memory(f->bytes);
  add_cost("copy", "copy_thread", raw_copy(f, room));
  add("raw", raw_write(f, raw_name, is_local));
  for (long i = 1; i < o->repeat; i++) {
    /* The first of the two finds another state of caches and storage: they take turns. */
    if (i % 2 == 0) save(behind, f, 1);
    add_cost("copy", "copy_thread", raw_copy(f, room));
    if (i % 2 == 1) save(behind, f, 1);
    if (i % 2 == 0) save(waiting, f, 0);
    add("raw", raw_write(f, raw_name, is_local));
    if (i % 2 == 1) save(waiting, f, 0);
  }
  check(tr_checkpoint_close(&behind));
  check(tr_checkpoint_close(&waiting));
  free(room);
  print_json(f, after_sync - at_first, after_async - at_first);
}

static void measure_async(const struct options* o, const struct field* f) {
  tr_checkpoint* checkpoint = open_checkpoint(o, "async=on");
  void* const room = warm_memory(f->bytes);
  for (long i = 0; i < o->repeat; i++) {
    add_cost("copy", "copy_thread", raw_copy(f, room));
    save(checkpoint, f, 1);
  }
  check(tr_checkpoint_close(&checkpoint));
  free(room);
  print_json(f, 0, 0);
}

static void begin_save(tr_checkpoint* checkpoint, const struct field* f) {
  check(tr_checkpoint_begin(checkpoint, TR_SAVE, NULL));
  tr_checkpoint_item(checkpoint, "t", f->data, TR_F64, f->layout);
  check(tr_checkpoint_end(checkpoint));
}

/* Returns the seconds of a pass over the middle `share` of the rank's block. */
static double rewrite(const struct field* f, double share) {
  const size_t count = f->bytes / sizeof(double), some = (size_t)(share * (double)count);
  double* const first = f->data + (count - some) / 2;
  const double begin = MPI_Wtime();
  for (size_t i = 0; i < some; i++) first[i] += 1;
  return MPI_Wtime() - begin;
}

/* The cost of a save to a program that goes on with this pass: the time blocked, and how much longer the pass
 * takes than without a save. */
static void save_and_rewrite(tr_checkpoint* checkpoint, const struct field* f, const char* name,
                             double share) {
  const double alone = rewrite(f, share);
  MPI_Barrier(f->comm);
  const double begin = MPI_Wtime();
  begin_save(checkpoint, f);
  const double cost = MPI_Wtime() - begin + rewrite(f, share) - alone;
  check(tr_checkpoint_wait(checkpoint));
  if (share == 0) add("durable", longest(f, MPI_Wtime() - begin));
  add(name, longest(f, cost));
}

/* Computes a step before it saves, as a program does. */
static void compute_for(const struct field* f, double seconds) {
  const double begin = MPI_Wtime();
  while (MPI_Wtime() - begin < seconds) rewrite(f, 1);
}

/* The peer has two files that take turns, like the copies of the checkpoint. */
static void measure_first(const struct options* o, const struct field* f) {
  tr_checkpoint* checkpoint = open_checkpoint(o, "async=on");
  const int peer_is_first = strcmp(o->saves, "raw_first") == 0, is_local = strstr(o->text, "local") != NULL;
  for (long i = 0; i < o->repeat; i++) {
    char raw_name[4096];
    snprintf(raw_name, sizeof raw_name, "%s.raw%ld", o->name, i % 2);
    compute_for(f, 1);
    if (peer_is_first) add("raw", raw_write(f, raw_name, is_local));
    save(checkpoint, f, 1);
    if (!peer_is_first) add("raw", raw_write(f, raw_name, is_local));
  }
  check(tr_checkpoint_close(&checkpoint));
  print_json(f, 0, 0);
}

static void measure_rewritten(const struct options* o, const struct field* f) {
  void* const room = warm_memory(f->bytes);
  /* It is read here, since the thread of a checkpoint touches its memory from the start. */
  const double at_first = peak_memory();
  tr_checkpoint* checkpoint = open_checkpoint(o, "async=on");
  for (long i = 0; i < o->repeat; i++) {
    add_cost("copy", "copy_thread", raw_copy(f, room));
    save_and_rewrite(checkpoint, f, "blocked", 0);
    save_and_rewrite(checkpoint, f, "part", 0.05);
    save_and_rewrite(checkpoint, f, "all", 1);
  }
  const double extra = peak_memory() - at_first;
  check(tr_checkpoint_close(&checkpoint));
  free(room);
  print_json(f, 0, extra);
}

/* Writes the array, or a number that changes, over what the file holds. */
static double write_over(tr_file* file, const struct field* f, int all_of_it) {
  const size_t count = f->bytes / sizeof(double);
  const double begin = MPI_Wtime();
  must(tr_fseek(file, 0, SEEK_SET) == 0, "seek");
  if (all_of_it)
    must(tr_fwrite_array(f->data, TR_F64, f->layout, file) == count, "array");
  else
    must(tr_fwrite(f->data, sizeof(double), 1, file) == 1, "number");
  must(tr_fflush(file) == 0, "flush");
  return MPI_Wtime() - begin;
}

/* The first write over recorded bytes keeps them; the second finds them kept. */
static void write_over_recorded(tr_checkpoint* checkpoint, const struct field* f, tr_file* file,
                                int all_of_it, const char* first, const char* second) {
  int64_t step = 1;
  check(tr_checkpoint_begin(checkpoint, TR_SAVE, NULL));
  tr_checkpoint_item(checkpoint, "step", &step, TR_I64, NULL);
  check(tr_checkpoint_end(checkpoint));
  add(first, write_over(file, f, all_of_it));
  add(second, write_over(file, f, all_of_it));
}

static void measure_journal(const struct options* o, const struct field* f) {
  char path[4096], kept[4096];
  void* const room = warm_memory(16 << 20);
  tr_checkpoint* checkpoint = open_checkpoint(o, "overwritten=journal async=off");
  snprintf(path, sizeof path, "%s.file", o->name);
  snprintf(kept, sizeof kept, "%s.kept", o->name);
  tr_file* file = tr_fopen(path, "w+");
  must(file != NULL && f->ranks == 1, "one rank with a file");
  write_over(file, f, 1);
  for (long i = 0; i < o->repeat; i++) {
    add("raw_array", raw_keep(path, kept, f->bytes, room));
    write_over_recorded(checkpoint, f, file, 1, "first_array", "second_array");
    for (int times = 0; times < 5; times++) {
      add("raw_number", raw_keep(path, kept, 64 << 10, room));
      write_over_recorded(checkpoint, f, file, 0, "first_number", "second_number");
    }
  }
  must(tr_fclose(file) == 0, "close");
  check(tr_checkpoint_close(&checkpoint));
  free(room);
  print_json(f, 0, 0);
}

static void load(tr_checkpoint* checkpoint, struct field* f) {
  int64_t step = 0;
  int found = 0;
  memset(f->data, 0, f->bytes);
  MPI_Barrier(f->comm);
  const double begin = MPI_Wtime();
  check(tr_checkpoint_begin(checkpoint, TR_LOAD, &found));
  tr_checkpoint_item(checkpoint, "step", &step, TR_I64, NULL);
  tr_checkpoint_item(checkpoint, "t", f->data, TR_F64, f->layout);
  check(tr_checkpoint_end(checkpoint));
  add("load", longest(f, MPI_Wtime() - begin));
  must(step == 1 && field_is_right(f), "the loaded values are wrong");
}

static void measure_loads(const struct options* o, struct field* f) {
  const size_t room_bytes = raw_share(f, o->load, (int)o->parts);
  char* const room = warm_memory(room_bytes);
  tr_checkpoint* checkpoint = open_checkpoint(o, "");
  for (long i = 0; i < o->repeat; i++) {
    if (i % 2 == 0) load(checkpoint, f);
    memset(room, 0, room_bytes); /* each finds its memory in the state in which this leaves the caches */
    add("raw", raw_read(f, o->load, (int)o->parts, room, room_bytes));
    if (i % 2 == 1) load(checkpoint, f);
  }
  check(tr_checkpoint_close(&checkpoint));
  free(room);
  print_json(f, 0, 0);
}

static struct options read_options(int count, char** words) {
  struct options o = {.bytes = 32 << 20, .repeat = 9, .name = "checkpoint", .text = ""};
  for (int i = 1; i + 1 < count; i += 2) {
    const char *name = words[i], *value = words[i + 1];
    if (strcmp(name, "--bytes") == 0) o.bytes = strtoull(value, NULL, 10);
    if (strcmp(name, "--repeat") == 0) o.repeat = atol(value);
    if (strcmp(name, "--parts") == 0) o.parts = atol(value);
    if (strcmp(name, "--name") == 0) o.name = value;
    if (strcmp(name, "--options") == 0) o.text = value;
    if (strcmp(name, "--load") == 0) o.load = value;
    if (strcmp(name, "--saves") == 0) o.saves = value;
  }
  return o;
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  const struct options options = read_options(argc, argv);
  must(options.repeat < 1000, "--repeat: less than 1000");
  check(tr_init(MPI_COMM_WORLD, &compute, NULL));
  struct field field = field_create(compute, options.bytes);
  if (options.load)
    measure_loads(&options, &field);
  else if (options.saves && strcmp(options.saves, "rewritten") == 0)
    measure_rewritten(&options, &field);
  else if (options.saves && strstr(options.saves, "first"))
    measure_first(&options, &field);
  else if (options.saves && strcmp(options.saves, "journal") == 0)
    measure_journal(&options, &field);
  else if (options.saves)
    measure_async(&options, &field);
  else
    measure_saves(&options, &field);
  free(field.data);
  check(tr_layout_free(&field.layout));
  check(tr_finalize());
  MPI_Finalize();
  return 0;
}
