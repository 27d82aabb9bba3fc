/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Relaxes an array in a file that is several times larger than the memory allowed for it: every point becomes
 * the mean of its four neighbours, from one file to another and back. While a portion is computed, the next
 * one is read and the last one is written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

struct options {
  long size, sweeps, budget, depth; /* budget in MiB */
  const char* out;
  int check;
};

static const char help[] =
    "relax: relaxes an array of L x L numbers in a file, with less memory than the array takes.\n"
    "\n"
    "usage: mpirun -n N relax [options]\n"
    "\n"
    "  --size L      numbers along each side                                  (4000)\n"
    "  --sweeps N    times that the array is relaxed                          (4)\n"
    "  --budget M    MiB of memory for portions of the array, on each rank    (16)\n"
    "  --depth N     portions that are read ahead                             (1)\n"
    "  --out DIR     where the two files go; it must exist                    (.)\n"
    "  --check       compare the result with that of the same in memory\n"
    "  --help\n"
    "\n"
    "examples\n"
    "  # 128 MB with 16 MiB a rank\n"
    "  mpirun -n 2 relax\n"
    "  # 8 GB with 256 MiB a rank\n"
    "  mpirun -n 4 relax --size 32000 --budget 256\n"
    "  # the same without overlap: everything is read and written inside of the calls\n"
    "  TAILRACE_IO_THREADS=0 mpirun -n 2 relax\n"
    "\n"
    "Files: relax_a.dat and relax_b.dat, float64, row after row; removed at the end.\n"
    "Exit status: 0 done, 1 failed (the reason is printed), 2 a wrong option.\n";

struct relaxation {
  struct options options;
  MPI_Comm comm;
  int rank;
  tr_index shape[2], portion[2];
  char path[2][4096]; /* of the array before and after a sweep, in turn */
  double waited;      /* seconds in tr_window_next */
};

/* Every rank gets the same error of a collective call, and so all end together. A launcher may lose the last
 * lines of a job that aborts. */
static void check(const struct relaxation* r, int code) {
  if (code == TR_OK) return;
  if (r->rank == 0) fprintf(stderr, "relax: %s\n", tr_error());
  tr_finalize();
  MPI_Finalize();
  exit(1);
}

/* Does the same for a call of this rank alone. The others would wait for it in the next collective call. */
static void check_alone(const struct relaxation* r, int code) {
  if (code == TR_OK) return;
  fprintf(stderr, "relax: rank %d: %s\n", r->rank, tr_error());
  MPI_Abort(r->comm, 1);
}

/* Returns as many whole rows as the budget allows. A window that reads and one that writes hold depth + 1
 * portions each, and the one that reads has a row more on either side. */
static tr_index rows_within(const struct options* o) {
  const long long rows = ((long long)o->budget << 20) / 8 / o->size / (o->depth + 1);
  return rows < 4 ? 0 : (rows - 2) / 2;
}

static tr_window* open_window(struct relaxation* r, int file, const char* mode) {
  static const tr_index halo[2] = {1, 0};
  tr_window* window = NULL;
  check(r, tr_window_open(r->path[file], mode, TR_F64, 2, r->shape, r->portion, *mode == 'r' ? halo : NULL,
                          (int)r->options.depth, NULL, &window));
  return window;
}

static void close_window(struct relaxation* r, tr_window** window) {
  double seconds = 0;
  tr_window_waited(*window, &seconds);
  r->waited += seconds;
  check(r, tr_window_close(window));
}

/* Returns the caller's next portion, or NULL. */
static double* next(const struct relaxation* r, tr_window* window, tr_index* lower, tr_index* upper) {
  void* data = NULL;
  check_alone(r, tr_window_next(window, &data, lower, upper));
  return data;
}

static void fill_row(tr_index row, tr_index count, double* to) {
  for (tr_index j = 0; j < count; j++) to[j] = (double)((row * 31 + j * 17) % 101);
}

/* Relaxes row `row` of `rows`, at `from` between its neighbours. The edges of the array stay as they are. */
static void relax_row(tr_index row, tr_index rows, tr_index count, const double* from, double* to) {
  memcpy(to, from, (size_t)count * sizeof *to);
  if (row == 0 || row == rows - 1) return;
  const double *above = from - count, *below = from + count;
  for (tr_index j = 1; j < count - 1; j++) to[j] = 0.25 * (above[j] + below[j] + from[j - 1] + from[j + 1]);
}

static void fill(struct relaxation* r) {
  tr_index lower[2], upper[2];
  tr_window* window = open_window(r, 0, "w");
  for (double* data; (data = next(r, window, lower, upper)) != NULL;)
    for (tr_index i = lower[0]; i < upper[0]; i++)
      fill_row(i, r->shape[1], data + (i - lower[0]) * r->shape[1]);
  check(r, tr_window_close(&window));
}

static void sweep(struct relaxation* r, int from) {
  const tr_index count = r->shape[1];
  tr_index lower[2], upper[2], held[2], held_end[2];
  tr_window* before = open_window(r, from, "r");
  tr_window* after = open_window(r, !from, "w");
  for (const double* data; (data = next(r, before, lower, upper)) != NULL;) {
    double* const result = next(r, after, NULL, NULL); /* the same portion: both are cut alike */
    check_alone(r, tr_window_bounds(before, 1, held, held_end));
    for (tr_index i = lower[0]; i < upper[0]; i++)
      relax_row(i, r->shape[0], count, data + (i - held[0]) * count, result + (i - lower[0]) * count);
  }
  next(r, after, NULL, NULL); /* leaves the last portion */
  close_window(r, &before);
  close_window(r, &after);
}

/* Returns how many numbers of the file differ from those that one loop over the whole array gives, or -1. */
static long count_wrong(const struct relaxation* r) {
  const tr_index rows = r->shape[0], count = r->shape[1];
  double* arrays[2];
  for (int i = 0; i < 2; i++) arrays[i] = malloc((size_t)(rows * count) * sizeof(double));
  double* row = malloc((size_t)count * sizeof *row);
  FILE* file = fopen(r->path[r->options.sweeps % 2], "rb");
  long wrong = arrays[0] && arrays[1] && row && file ? 0 : -1;
  for (tr_index i = 0; i < rows && !wrong; i++) fill_row(i, count, arrays[0] + i * count);
  for (long n = 0; n < r->options.sweeps && !wrong; n++)
    for (tr_index i = 0; i < rows; i++)
      relax_row(i, rows, count, arrays[n % 2] + i * count, arrays[(n + 1) % 2] + i * count);
  for (tr_index i = 0; i < rows && wrong >= 0; i++) {
    if (fread(row, sizeof *row, (size_t)count, file) != (size_t)count) wrong = -1;
    const double* expected = arrays[r->options.sweeps % 2] + i * count;
    for (tr_index j = 0; j < count && wrong >= 0; j++) wrong += row[j] != expected[j];
  }
  if (file) fclose(file);
  free(row);
  free(arrays[0]);
  free(arrays[1]);
  return wrong;
}

/* Returns a line of /proc/self/status in MiB, 0 if there is none: VmRSS, what the process holds, or VmHWM,
 * the most it has held. */
static double memory_in_use(const char* name) {
  char line[256];
  double kib = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, name, strlen(name)) == 0) kib = atof(line + strlen(name) + 1);
  if (file) fclose(file);
  return kib / 1024;
}

static void print(const struct relaxation* r, double seconds, double grown) {
  const double bytes = 8.0 * (double)r->shape[0] * (double)r->shape[1];
  double figures[3] = {seconds, r->waited, grown};
  MPI_Allreduce(MPI_IN_PLACE, figures, 3, MPI_DOUBLE, MPI_MAX, r->comm);
  if (r->rank != 0) return;
  printf("%ld x %ld numbers relaxed %ld times in portions of %ld rows\n", r->options.size, r->options.size,
         r->options.sweeps, (long)r->portion[0]);
  printf("  array     %10.1f MiB\n", bytes / 1048576);
  printf("  budget    %10ld MiB on each rank\n", r->options.budget);
  printf("  memory    %10.1f MiB more than at the start, at most\n", figures[2]);
  printf("  time      %10.3f s\n", figures[0]);
  printf("  waiting   %10.3f s for portions, the longest of all ranks\n", figures[1]);
  printf("  moved     %10.2f GB/s, reading and writing together\n",
         2 * bytes * (double)r->options.sweeps / figures[0] / 1e9);
}

static int relax(const struct options* options, MPI_Comm comm) {
  struct relaxation r = {.options = *options, .comm = comm, .shape = {options->size, options->size}};
  MPI_Comm_rank(comm, &r.rank);
  r.portion[0] = rows_within(options);
  r.portion[1] = options->size;
  if (r.portion[0] == 0) {
    if (r.rank == 0) fprintf(stderr, "relax: the budget is too small for 4 rows at a time\n");
    return 1;
  }
  for (int i = 0; i < 2; i++) snprintf(r.path[i], sizeof r.path[i], "%s/relax_%c.dat", options->out, "ab"[i]);
  const double at_start = memory_in_use("VmRSS");
  fill(&r);
  const double begin = MPI_Wtime();
  for (long n = 0; n < options->sweeps; n++) sweep(&r, n % 2);
  print(&r, MPI_Wtime() - begin, memory_in_use("VmHWM") - at_start);
  long wrong = 0;
  if (options->check && r.rank == 0) {
    wrong = count_wrong(&r);
    if (wrong < 0) fprintf(stderr, "relax: the result cannot be compared\n");
    if (wrong > 0) fprintf(stderr, "relax: %ld numbers are wrong\n", wrong);
    if (wrong == 0) printf("  checked   the same as in memory\n");
  }
  MPI_Bcast(&wrong, 1, MPI_LONG, 0, comm);
  for (int i = 0; i < 2; i++) tr_remove(r.path[i]);
  return wrong != 0;
}

static int read_count(const char* text, long least, long* value) {
  char* end = NULL;
  errno = 0;
  if (text) *value = strtol(text, &end, 10);
  return errno == 0 && end != text && end && *end == '\0' && *value >= least;
}

/* Reads an option with its value. Returns 0 if it is none. */
static int read_value(const char* name, const char* value, struct options* o) {
  if (strcmp(name, "--size") == 0) return read_count(value, 3, &o->size);
  if (strcmp(name, "--sweeps") == 0) return read_count(value, 1, &o->sweeps);
  if (strcmp(name, "--budget") == 0) return read_count(value, 1, &o->budget);
  if (strcmp(name, "--depth") == 0) return read_count(value, 1, &o->depth) && o->depth <= 1000;
  if (strcmp(name, "--out") == 0) return (o->out = value) != NULL;
  return 0;
}

/* Returns the program's exit status, or -1 to go on. */
static int read_options(int count, char** words, int talks, struct options* o) {
  for (int i = 1; i < count; i++) {
    if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0) {
      if (talks) fputs(help, stdout);
      return 0;
    }
    if (strcmp(words[i], "--check") == 0) {
      o->check = 1;
      continue;
    }
    const char* value = i + 1 < count ? words[i + 1] : NULL;
    if (read_value(words[i], value, o)) {
      i++;
      continue;
    }
    if (talks) fprintf(stderr, "relax: %s %s: see --help\n", words[i], value ? value : "");
    return 2;
  }
  return -1;
}

int main(int argc, char** argv) {
  struct options options = {.size = 4000, .sweeps = 4, .budget = 16, .depth = 1, .out = "."};
  MPI_Comm comm;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int status = read_options(argc, argv, rank == 0, &options);
  if (status < 0) {
    status = tr_init(MPI_COMM_WORLD, &comm, NULL) != TR_OK;
    if (status == 0 && comm != MPI_COMM_NULL) status = relax(&options, comm);
    if (tr_finalize() != TR_OK) status = 1;
    if (status && rank == 0 && *tr_error()) fprintf(stderr, "relax: %s\n", tr_error());
  }
  MPI_Finalize();
  return status;
}
