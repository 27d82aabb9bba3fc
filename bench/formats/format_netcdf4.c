/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* netCDF-C on a parallel HDF5: the ranks write a step in one collective nc_put_vara_float. A chunk is one
 * level of one step. */
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdlib.h>

#include "contest.h"

static int rank, ranks, file, variable;
static long lower[2], upper[2];
static float* data;

static void good(int error, const char* what) { must(error == NC_NOERR, what, nc_strerror(error)); }

static void open_file(void) {
  const size_t chunk[] = {1, 1, (size_t)options.size, (size_t)options.size};
  int dimensions[4];
  good(nc_create_par(options.name, NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, hints(), &file), "nc_create_par");
  good(nc_def_dim(file, "time", NC_UNLIMITED, &dimensions[0]), "nc_def_dim");
  good(nc_def_dim(file, "lev", (size_t)options.levels, &dimensions[1]), "nc_def_dim");
  good(nc_def_dim(file, "y", (size_t)options.size, &dimensions[2]), "nc_def_dim");
  good(nc_def_dim(file, "x", (size_t)options.size, &dimensions[3]), "nc_def_dim");
  good(nc_def_var(file, "t", NC_FLOAT, 4, dimensions, &variable), "nc_def_var");
  good(nc_def_var_chunking(file, variable, NC_CHUNKED, chunk), "nc_def_var_chunking");
  good(nc_def_var_fill(file, variable, NC_NOFILL, NULL), "nc_def_var_fill");
  if (options.deflate > 0)
    good(nc_def_var_deflate(file, variable, 1, 1, (int)options.deflate), "nc_def_var_deflate");
  good(nc_enddef(file), "nc_enddef");
  good(nc_var_par_access(file, variable, NC_COLLECTIVE), "nc_var_par_access");
}

static double write_step(long step) {
  const size_t begin[] = {(size_t)step, 0, (size_t)lower[0], 0};
  const size_t count[] = {1, (size_t)options.levels, (size_t)(upper[0] - lower[0]), (size_t)options.size};
  const double started = MPI_Wtime();
  good(nc_put_vara_float(file, variable, begin, count, data), "nc_put_vara_float");
  good(nc_sync(file), "nc_sync"); /* H5Fflush, and with it MPI_File_sync */
  return longest_since(started, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  parse_options(argc, argv);
  bind_to_cores();
  lower[0] = options.size * rank / ranks, upper[0] = options.size * (rank + 1) / ranks;
  lower[1] = 0, upper[1] = options.size;
  data = malloc((size_t)(options.levels * (upper[0] - lower[0]) * options.size) * sizeof *data);
  must(data != NULL, "memory", "none");
  make_values(data, lower, upper);
  open_file();
  write_turns(write_step);
  good(nc_close(file), "nc_close");
  MPI_Finalize();
  return 0;
}
