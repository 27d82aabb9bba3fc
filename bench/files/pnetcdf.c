/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* PnetCDF: one variable for each array in a CDF-5 file, written collectively. */
#include <pnetcdf.h>
#include <stdio.h>

#include "contender.h"

static void define(int file, const struct block* b, int number) {
  int dims[2], variable;
  char name[16];
  for (int d = 0; d < 2; d++) {
    snprintf(name, sizeof name, "%c%d", "yx"[d], number);
    must(ncmpi_def_dim(file, name, b->shape[d], &dims[d]) == NC_NOERR, "ncmpi_def_dim");
  }
  snprintf(name, sizeof name, "array%d", number);
  must(ncmpi_def_var(file, name, NC_DOUBLE, 2, dims, &variable) == NC_NOERR, "ncmpi_def_var");
}

static void write_arrays(const char* path, const struct block* b, int arrays, int sync) {
  const MPI_Offset lower[] = {b->lower[0], b->lower[1]}, count[] = {b->count[0], b->count[1]};
  int file;
  must(ncmpi_create(b->comm, path, NC_CLOBBER | NC_64BIT_DATA, hints(), &file) == NC_NOERR, "ncmpi_create");
  for (int i = 0; i < arrays; i++) define(file, b, i);
  must(ncmpi_enddef(file) == NC_NOERR, "ncmpi_enddef");
  for (int i = 0; i < arrays; i++)
    must(ncmpi_put_vara_double_all(file, i, lower, count, b->data) == NC_NOERR, "ncmpi_put_vara_double_all");
  must(ncmpi_close(file) == NC_NOERR, "ncmpi_close");
  if (sync) sync_file(path, b);
}

const struct contender contender = {"pnetcdf", 0, NULL, NULL, write_arrays, NULL};
