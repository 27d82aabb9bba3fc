/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Steps of one field through a stream, four at a time, in turn with peers that write the same values and call
 * fsync after each step. As one line of JSON: seconds of each four steps, the longest of all compute ranks.
 *   --format raw|cdf5|netcdf4|zarr  --size N (points along each side)  --levels N  --steps N  --name PATH
 *   --compress W (netcdf4 and zarr)
 * Peers: one process that writes the bytes of a step, as they lie in memory, by pwrite; and for cdf5 PnetCDF
 * on the compute ranks, the values as one variable of a CDF-5 file, with and without collective buffering.
 * With `--turns 1` standard input says whose turn is next, since other peers are other programs: "ours" or
 * "plain". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>
#include <unistd.h>
#ifdef HAVE_PNETCDF
#include <pnetcdf.h>
#endif
#include "contest.h"

enum { most_steps = 100, piece = 16 << 20 };

static MPI_Comm compute;
static int rank, ranks;
static tr_layout* layout;
static tr_index lower[2], upper[2];
static float* data; /* (level, own rows, columns) */

static void check(int good, const char* what) { must(good, what, tr_error()); }

static size_t own_bytes(void) {
  return (size_t)(options.levels * (upper[0] - lower[0]) * (upper[1] - lower[1])) * sizeof(float);
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
  if (options.compress[0] != 0)
    snprintf(text + strlen(text), sizeof text - strlen(text), " compress=%s", options.compress);
  check(tr_stream_create(path, text, &stream) == TR_OK, path);
  snprintf(text, sizeof text, "levels=hybrid:1-%ld", options.levels);
  check(tr_stream_define(stream, "t", layout, TR_F32, text) == TR_OK, "define");
}

static double stream_step(long step) {
  MPI_Barrier(compute);
  const double begin = MPI_Wtime();
  for (long i = 0; i < burst; i++) {
    check(tr_stream_begin(stream, 3600 * (burst * step + i)) == TR_OK, "begin");
    check(tr_stream_put(stream, "t", data) == TR_OK, "put");
    check(tr_stream_end(stream) == TR_OK, "end");
  }
  check(tr_stream_wait(stream, TR_DURABLE) == TR_OK, "wait");
  return longest_since(begin, compute);
}

/* ---- one process with pwrite ---- */

static int file = -1;
static char* bytes;

static void open_plain(void) {
  char path[4096];
  path_of(path, sizeof path, "plain");
  if (rank == 0) check((file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666)) >= 0, path);
}

static double plain_step(long step) {
  const size_t all = (size_t)(options.levels * options.size * options.size) * sizeof(float);
  MPI_Barrier(compute);
  const double begin = MPI_Wtime();
  for (long i = 0; i < burst && rank == 0; i++) {
    for (size_t at = 0; at < all; at += piece) {
      const size_t part = all - at < piece ? all - at : piece;
      check(pwrite(file, bytes + at, part, (off_t)(all * (size_t)(burst * step + i) + at)) == (ssize_t)part,
            "pwrite");
    }
    check(fsync(file) == 0, "fsync");
  }
  return longest_since(begin, compute);
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
  return longest_since(begin, compute);
}
#endif

/* ---- */

static void make_data(void) {
  const tr_index shape[] = {options.size, options.size};
  check(tr_layout_block(2, shape, NULL, &layout) == TR_OK, "layout");
  check(tr_layout_bounds(layout, 0, lower, upper) == TR_OK, "bounds");
  data = malloc(own_bytes());
  check(data != NULL, "memory");
  const long from[] = {lower[0], lower[1]}, to[] = {upper[0], upper[1]};
  make_values(data, from, to);
  if (rank != 0) return;
  const size_t all = (size_t)(options.levels * options.size * options.size) * sizeof(float);
  const long begin[] = {0, 0}, end[] = {options.size, options.size};
  bytes = malloc(all);
  check(bytes != NULL, "memory");
  make_values((float*)bytes, begin, end);
}

/* Another program reads the values from there. */
static void write_values(void) {
  char path[4096];
  path_of(path, sizeof path, "values");
  const size_t all = (size_t)(options.levels * options.size * options.size) * sizeof(float);
  FILE* values = fopen(path, "wb");
  check(values != NULL && fwrite(bytes, 1, all, values) == all && fclose(values) == 0, path);
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
  check(tr_stream_close(&stream) == TR_OK, "close");
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

/* Takes turns with contenders in other programs. */
static void take_turns(void) {
  long ours = 0, plain = 0;
  open_stream();
  open_plain();
  if (rank == 0 && options.values) write_values();
  for (char word = 0; (word = next_turn(compute)) != 0;)
    end_turn(rank, word == 'o' ? stream_step(ours++) : plain_step(plain++), burst);
  check(tr_stream_close(&stream) == TR_OK, "close");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  parse_options(argc, argv);
  check(options.steps <= most_steps, "too many steps");
  bind_to_cores();
  check(tr_init(MPI_COMM_WORLD, &compute, NULL) == TR_OK, "tr_init");
  if (compute != MPI_COMM_NULL) {
    MPI_Comm_rank(compute, &rank);
    MPI_Comm_size(compute, &ranks);
    make_data();
    if (options.turns)
      take_turns();
    else
      measure();
    tr_layout_free(&layout);
  }
  check(tr_finalize() == TR_OK, "tr_finalize");
  MPI_Finalize();
  return 0;
}
