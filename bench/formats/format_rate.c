/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Steps of one field through a stream, four at a time, in turn with peers that write as many bytes and call
 * fsync after each step. As one line of JSON: seconds of each four steps, the longest of all compute ranks.
 *   --format raw|cdf5  --size N (points along each side)  --levels N  --steps N  --name PATH
 * Peers: one process that writes the bytes of a step, as they lie in memory, by pwrite; and PnetCDF on the
 * compute ranks, the values as one variable of a CDF-5 file, with and without collective buffering. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>
#include <unistd.h>
#ifdef HAVE_PNETCDF
#include <pnetcdf.h>
#endif

enum { most_steps = 100, piece = 16 << 20, burst = 4 };

static struct {
  const char *format, *name;
  long size, levels, steps;
} options = {"cdf5", "rate", 1000, 40, 6};

static MPI_Comm compute;
static int rank, ranks;
static tr_layout* layout;
static tr_index lower[2], upper[2];
static float* data; /* (level, own rows, columns) */

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "format_rate: %s: %s\n", what, tr_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static size_t own_bytes(void) {
  return (size_t)(options.levels * (upper[0] - lower[0]) * (upper[1] - lower[1])) * sizeof(float);
}

/* Returns the seconds since `begin`, the longest of all ranks. */
static double longest_since(double begin) {
  double mine = MPI_Wtime() - begin, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, compute);
  return all;
}

static void path_of(char* path, size_t size, const char* ending) {
  snprintf(path, size, "%s.%s", options.name, ending);
}

/* ---- the stream ---- */

static tr_stream* stream;

static void open_stream(void) {
  char path[4096], text[256];
  path_of(path, sizeof path, options.format);
  snprintf(text, sizeof text, "base=2026-03-01T00:00Z manifest=off format=%s", options.format);
  must(tr_stream_create(path, text, &stream) == TR_OK, path);
  snprintf(text, sizeof text, "levels=hybrid:1-%ld", options.levels);
  must(tr_stream_define(stream, "t", layout, TR_F32, text) == TR_OK, "define");
}

static double stream_step(long step) {
  MPI_Barrier(compute);
  const double begin = MPI_Wtime();
  for (long i = 0; i < burst; i++) {
    must(tr_stream_begin(stream, 3600 * (burst * step + i)) == TR_OK, "begin");
    must(tr_stream_put(stream, "t", data) == TR_OK, "put");
    must(tr_stream_end(stream) == TR_OK, "end");
  }
  must(tr_stream_wait(stream, TR_DURABLE) == TR_OK, "wait");
  return longest_since(begin);
}

/* ---- one process with pwrite ---- */

static int file = -1;
static char* bytes;

static void open_plain(void) {
  char path[4096];
  path_of(path, sizeof path, "plain");
  if (rank == 0) must((file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666)) >= 0, path);
}

static double plain_step(long step) {
  const size_t all = (size_t)(options.levels * options.size * options.size) * sizeof(float);
  MPI_Barrier(compute);
  const double begin = MPI_Wtime();
  for (long i = 0; i < burst && rank == 0; i++) {
    for (size_t at = 0; at < all; at += piece) {
      const size_t part = all - at < piece ? all - at : piece;
      must(pwrite(file, bytes + at, part, (off_t)(all * (size_t)(burst * step + i) + at)) == (ssize_t)part,
           "pwrite");
    }
    must(fsync(file) == 0, "fsync");
  }
  return longest_since(begin);
}

/* ---- PnetCDF ---- */

#ifdef HAVE_PNETCDF
static int netcdf[2], variable[2];

static void good(int error) {
  if (error == NC_NOERR) return;
  fprintf(stderr, "format_rate: PnetCDF: %s\n", ncmpi_strerror(error));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void open_pnetcdf(int buffered) {
  char path[4096];
  int dimensions[4];
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "romio_cb_write", buffered ? "enable" : "disable");
  MPI_Info_set(hints, "romio_ds_write", "disable");
  path_of(path, sizeof path, buffered ? "buffered.nc" : "direct.nc");
  good(ncmpi_create(compute, path, NC_CLOBBER | NC_64BIT_DATA, hints, &netcdf[buffered]));
  good(ncmpi_def_dim(netcdf[buffered], "time", NC_UNLIMITED, &dimensions[0]));
  good(ncmpi_def_dim(netcdf[buffered], "lev", options.levels, &dimensions[1]));
  good(ncmpi_def_dim(netcdf[buffered], "y", options.size, &dimensions[2]));
  good(ncmpi_def_dim(netcdf[buffered], "x", options.size, &dimensions[3]));
  good(ncmpi_def_var(netcdf[buffered], "t", NC_FLOAT, 4, dimensions, &variable[buffered]));
  good(ncmpi_enddef(netcdf[buffered]));
  MPI_Info_free(&hints);
}

static double pnetcdf_step(int buffered, long step) {
  MPI_Offset start[] = {burst * step, 0, lower[0], lower[1]};
  const MPI_Offset count[] = {1, options.levels, upper[0] - lower[0], upper[1] - lower[1]};
  MPI_Barrier(compute);
  const double begin = MPI_Wtime();
  for (long i = 0; i < burst; i++, start[0]++) {
    good(ncmpi_put_vara_float_all(netcdf[buffered], variable[buffered], start, count, data));
    good(ncmpi_sync(netcdf[buffered]));
  }
  return longest_since(begin);
}
#endif

/* ---- */

static void parse(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *key = argv[i], *value = argv[i + 1];
    if (strcmp(key, "--format") == 0) options.format = value;
    if (strcmp(key, "--name") == 0) options.name = value;
    if (strcmp(key, "--size") == 0) options.size = atol(value);
    if (strcmp(key, "--levels") == 0) options.levels = atol(value);
    if (strcmp(key, "--steps") == 0) options.steps = atol(value);
  }
  must(options.steps <= most_steps, "too many steps");
}

static void make_data(void) {
  const tr_index shape[] = {options.size, options.size};
  must(tr_layout_block(2, shape, NULL, &layout) == TR_OK, "layout");
  must(tr_layout_bounds(layout, 0, lower, upper) == TR_OK, "bounds");
  data = malloc(own_bytes());
  must(data != NULL, "memory");
  for (size_t i = 0; i < own_bytes() / sizeof *data; i++) data[i] = (float)(i % 1000) + 0.5F * (float)rank;
  if (rank != 0) return;
  const size_t all = (size_t)(options.levels * options.size * options.size) * sizeof(float);
  bytes = malloc(all);
  must(bytes != NULL, "memory");
  memset(bytes, 1, all);
}

static void print_list(const char* name, const double* seconds) {
  printf(", \"%s\": [", name);
  for (long i = 0; i < options.steps; i++) printf("%s%.6f", i ? ", " : "", seconds[i]);
  printf("]");
}

static void measure(void) {
  static double ours[most_steps], plain[most_steps], pnetcdf[2][most_steps];
  open_stream();
  open_plain();
#ifdef HAVE_PNETCDF
  for (int buffered = 0; buffered < 2; buffered++) open_pnetcdf(buffered);
#endif
  for (long step = 0; step < options.steps; step++) {
    if (step % 2 == 0) ours[step] = stream_step(step);
    plain[step] = plain_step(step);
    if (step % 2 == 1) ours[step] = stream_step(step);
#ifdef HAVE_PNETCDF
    for (int buffered = 0; buffered < 2; buffered++) pnetcdf[buffered][step] = pnetcdf_step(buffered, step);
#endif
  }
  must(tr_stream_close(&stream) == TR_OK, "close");
  if (rank == 0) {
    printf("{\"bytes\": %ld", burst * options.levels * options.size * options.size * (long)sizeof(float));
    print_list("ours", ours);
    print_list("plain", plain);
  }
#ifdef HAVE_PNETCDF
  for (int buffered = 0; buffered < 2; buffered++) good(ncmpi_close(netcdf[buffered]));
  if (rank == 0) {
    print_list("direct", pnetcdf[0]);
    print_list("buffered", pnetcdf[1]);
  }
#endif
  if (rank == 0) printf("}\n");
}

/* Each process has a core of its own if there are as many. */
static void bind(void) {
  int world, me;
  cpu_set_t may, one;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (sched_getaffinity(0, sizeof may, &may) != 0 || CPU_COUNT(&may) < world) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; core++) {
    if (!CPU_ISSET(core, &may) || seen++ != me) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  parse(argc, argv);
  bind();
  must(tr_init(MPI_COMM_WORLD, &compute, NULL) == TR_OK, "tr_init");
  if (compute != MPI_COMM_NULL) {
    MPI_Comm_rank(compute, &rank);
    MPI_Comm_size(compute, &ranks);
    make_data();
    measure();
    tr_layout_free(&layout);
  }
  must(tr_finalize() == TR_OK, "tr_finalize");
  MPI_Finalize();
  return 0;
}
