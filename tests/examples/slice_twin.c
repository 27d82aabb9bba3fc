/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes what examples/slice writes, by one process and the NetCDF library: slice_twin FILE STEPS */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static void must(int code) {
  if (code == NC_NOERR) return;
  fprintf(stderr, "slice_twin: %s\n", nc_strerror(code));
  exit(1);
}

static void text(int file, int variable, const char* name, const char* value) {
  must(nc_put_att_text(file, variable, name, strlen(value), value));
}

static int axis(int file, const char* name, int dimension, const char* axis_letter) {
  int variable;
  must(nc_def_var(file, name, NC_DOUBLE, 1, &dimension, &variable));
  text(file, variable, "units", "m");
  text(file, variable, "axis", axis_letter);
  return variable;
}

int main(int argc, char** argv) {
  int file, time_dim, z_dim, x_dim, xu_dim, bnds_dim, time, z, x, x_bnds, xu, theta, u;
  if (argc != 3) return 2;
  must(nc_create(argv[1], NC_64BIT_DATA, &file));
  must(nc_def_dim(file, "time", NC_UNLIMITED, &time_dim));
  must(nc_def_dim(file, "z", NZ, &z_dim));
  must(nc_def_dim(file, "x", NX, &x_dim));
  must(nc_def_dim(file, "xu", NX + 1, &xu_dim));
  must(nc_def_dim(file, "bnds", 2, &bnds_dim));
  text(file, NC_GLOBAL, "Conventions", "CF-1.8");
  text(file, NC_GLOBAL, "title", "Warm air in a sheared wind");
  must(nc_def_var(file, "time", NC_DOUBLE, 1, &time_dim, &time));
  text(file, time, "long_name", "time");
  text(file, time, "units", "s");
  text(file, time, "axis", "T");
  z = axis(file, "z", z_dim, "Z");
  text(file, z, "positive", "up");
  x = axis(file, "x", x_dim, "X");
  text(file, x, "bounds", "x_bnds");
  must(nc_def_var(file, "x_bnds", NC_DOUBLE, 2, (int[]){x_dim, bnds_dim}, &x_bnds));
  xu = axis(file, "xu", xu_dim, "X");
  must(nc_def_var(file, "theta", NC_DOUBLE, 3, (int[]){time_dim, z_dim, x_dim}, &theta));
  text(file, theta, "units", "K");
  must(nc_def_var(file, "u", NC_DOUBLE, 3, (int[]){time_dim, z_dim, xu_dim}, &u));
  text(file, u, "units", "m s-1");
  must(nc_enddef(file));

  slice s;
  double left[NZ], heights[NZ], middles[NX], edges[2 * NX], faces[NX + 1], wind[NZ * (NX + 1)];
  slice_begin(&s, 0, NX);
  for (int k = 0; k < NZ; ++k) heights[k] = (k + 0.5) * DZ;
  for (int i = 0; i < NX; ++i)
    middles[i] = (i + 0.5) * DX, edges[2 * i] = i * DX, edges[2 * i + 1] = (i + 1) * DX;
  for (int i = 0; i <= NX; ++i) faces[i] = i * DX;
  for (int n = 0; n < NZ * (NX + 1); ++n) wind[n] = slice_wind(n / (NX + 1));
  must(nc_put_var_double(file, z, heights));
  must(nc_put_var_double(file, x, middles));
  must(nc_put_var_double(file, x_bnds, edges));
  must(nc_put_var_double(file, xu, faces));
  for (int step = 0; step <= atoi(argv[2]); ++step) {
    if (step % STEPS_APART == 0) {
      const size_t record = (size_t)(step / STEPS_APART), at[3] = {record, 0, 0};
      must(nc_put_var1_double(file, time, &record, &s.time));
      must(nc_put_vara_double(file, theta, at, (size_t[]){1, NZ, NX}, s.theta));
      must(nc_put_vara_double(file, u, at, (size_t[]){1, NZ, NX + 1}, wind));
    }
    slice_column(&s, NX - 1, left);
    slice_step(&s, left);
  }
  slice_end(&s);
  must(nc_close(file));
  return 0;
}
