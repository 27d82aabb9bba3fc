/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* netCDF-4 on parallel HDF5: one variable for each array, contiguous or in chunks (BENCH_LAYOUT), written
 * collectively or not (BENCH_TRANSFER). */
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>

#include "contender.h"

static int define(int file, const struct block* b, int number) {
  int dims[2], variable;
  char name[16];
  for (int d = 0; d < 2; d++) {
    snprintf(name, sizeof name, "%c%d", "yx"[d], number);
    must(nc_def_dim(file, name, (size_t)b->shape[d], &dims[d]) == NC_NOERR, "nc_def_dim");
  }
  snprintf(name, sizeof name, "array%d", number);
  must(nc_def_var(file, name, NC_DOUBLE, 2, dims, &variable) == NC_NOERR, "nc_def_var");
  long chunk[2] = {0, 0};
  const int how = chunk_of_blocks(b, chunk) ? NC_CHUNKED : NC_CONTIGUOUS;
  const size_t extents[] = {(size_t)chunk[0], (size_t)chunk[1]};
  must(nc_def_var_chunking(file, variable, how, extents) == NC_NOERR, "nc_def_var_chunking");
  must(nc_def_var_fill(file, variable, NC_NOFILL, NULL) == NC_NOERR, "nc_def_var_fill");
  return variable;
}

static void write_arrays(const char* path, const struct block* b, int arrays, int sync) {
  const size_t lower[] = {(size_t)b->lower[0], (size_t)b->lower[1]};
  const size_t count[] = {(size_t)b->count[0], (size_t)b->count[1]};
  const int access = is_independent() ? NC_INDEPENDENT : NC_COLLECTIVE;
  int file;
  must(nc_create_par(path, NC_CLOBBER | NC_NETCDF4, b->comm, hints(), &file) == NC_NOERR, "nc_create_par");
  for (int i = 0; i < arrays; i++) {
    const int variable = define(file, b, i);
    must(nc_enddef(file) == NC_NOERR, "nc_enddef");
    must(nc_var_par_access(file, variable, access) == NC_NOERR, "nc_var_par_access");
    must(nc_put_vara_double(file, variable, lower, count, b->data) == NC_NOERR, "nc_put_vara_double");
    if (i + 1 < arrays) must(nc_redef(file) == NC_NOERR, "nc_redef");
  }
  must(nc_close(file) == NC_NOERR, "nc_close");
  if (sync) sync_file(path, b);
}

const struct contender contender = {"netcdf4", 0, NULL, NULL, write_arrays, NULL};
