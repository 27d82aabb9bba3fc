/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes what examples/ocean writes, by one process and the NetCDF library: ocean_twin FILE DAYS */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { POINTS = NY * NX };

static void must(int code) {
  if (code == NC_NOERR) return;
  fprintf(stderr, "ocean_twin: %s\n", nc_strerror(code));
  exit(1);
}

static int file;

/* Gives a variable texts: names and values in turn, then NULL. */
static void texts(int variable, const char* const* all) {
  for (; all[0] != NULL; all += 2) must(nc_put_att_text(file, variable, all[0], strlen(all[1]), all[1]));
}

static int variable(const char* name, nc_type type, int ndims, const int* dims, const char* const* all) {
  int made;
  must(nc_def_var(file, name, type, ndims, dims, &made));
  texts(made, all);
  return made;
}

static void put_places(const int* lat, const int* lon) {
  static const double beside[CORNERS][2] = {{-0.5, -0.5}, {-0.5, 0.5}, {0.5, 0.5}, {0.5, -0.5}};
  static double values[4][POINTS * CORNERS];
  for (int i = 0; i < POINTS; ++i) {
    const int y = i / NX, x = i % NX;
    values[0][i] = ocean_latitude(y, x), values[1][i] = ocean_longitude(y, x);
    for (int c = 0; c < CORNERS; ++c) {
      values[2][CORNERS * i + c] = ocean_latitude(y + beside[c][0], x + beside[c][1]);
      values[3][CORNERS * i + c] = ocean_longitude(y + beside[c][0], x + beside[c][1]);
    }
  }
  must(nc_put_var_double(file, lat[0], values[0]));
  must(nc_put_var_double(file, lon[0], values[1]));
  must(nc_put_var_double(file, lat[1], values[2]));
  must(nc_put_var_double(file, lon[1], values[3]));
}

static void put_fields_without_time(int mask, int deptho, int areacello) {
  static signed char is_sea[POINTS];
  static float depth[POINTS];
  static double area[POINTS];
  for (int i = 0; i < POINTS; ++i) {
    depth[i] = ocean_depth(i / NX, i % NX), area[i] = ocean_area(i / NX, i % NX);
    is_sea[i] = depth[i] > 0;
  }
  must(nc_put_var_schar(file, mask, is_sea));
  must(nc_put_var_float(file, deptho, depth));
  must(nc_put_var_double(file, areacello, area));
}

int main(int argc, char** argv) {
  int t, y, x, vertices, z, lat[2], lon[2];
  const float missing = MISSING;
  if (argc != 3) return 2;
  must(nc_create(argv[1], NC_64BIT_DATA, &file));
  must(nc_def_dim(file, "time", NC_UNLIMITED, &t));
  must(nc_def_dim(file, "y", NY, &y));
  must(nc_def_dim(file, "x", NX, &x));
  must(nc_def_dim(file, "vertices", CORNERS, &vertices));
  must(nc_def_dim(file, "depth", NZ, &z));
  texts(NC_GLOBAL, (const char*[]){"Conventions", "CF-1.8", "title", "Warm water in a bay", NULL});
  const int time =
      variable("time", NC_DOUBLE, 1, &t,
               (const char*[]){"standard_name", "time", "long_name", "time", "units",
                               "days since 2026-01-01 00:00:00", "calendar", "noleap", "axis", "T", NULL});
  const int plane[3] = {y, x, vertices}, steps[3] = {t, y, x}, levels[4] = {t, z, y, x};
  lat[0] = variable("lat", NC_DOUBLE, 2, plane,
                    (const char*[]){"standard_name", "latitude", "long_name", "latitude", "units",
                                    "degrees_north", "bounds", "lat_bnds", NULL});
  lat[1] = variable("lat_bnds", NC_DOUBLE, 3, plane, (const char*[]){NULL});
  lon[0] = variable("lon", NC_DOUBLE, 2, plane,
                    (const char*[]){"standard_name", "longitude", "long_name", "longitude", "units",
                                    "degrees_east", "bounds", "lon_bnds", NULL});
  lon[1] = variable("lon_bnds", NC_DOUBLE, 3, plane, (const char*[]){NULL});
  const int mask = variable("mask", NC_BYTE, 2, plane,
                            (const char*[]){"coordinates", "lat lon", "standard_name", "sea_binary_mask",
                                            "flag_meanings", "land sea", NULL});
  must(nc_put_att_schar(file, mask, "flag_values", NC_BYTE, 2, (const signed char[]){0, 1}));
  const int deptho = variable("deptho", NC_FLOAT, 2, plane,
                              (const char*[]){"coordinates", "lat lon", "standard_name",
                                              "sea_floor_depth_below_geoid", "units", "m", NULL});
  const int areacello =
      variable("areacello", NC_DOUBLE, 2, plane,
               (const char*[]){"coordinates", "lat lon", "standard_name", "cell_area", "units", "m2", NULL});
  const int zos = variable("zos", NC_FLOAT, 3, steps,
                           (const char*[]){"coordinates", "lat lon", "standard_name",
                                           "sea_surface_height_above_geoid", "units", "m", NULL});
  const int depth = variable("depth", NC_DOUBLE, 1, &z,
                             (const char*[]){"standard_name", "depth", "long_name", "depthBelowSea", "units",
                                             "m", "positive", "down", "axis", "Z", NULL});
  const int thetao = variable("thetao", NC_FLOAT, 4, levels,
                              (const char*[]){"coordinates", "lat lon", "standard_name",
                                              "sea_water_potential_temperature", "units", "degC", NULL});
  must(nc_put_att_float(file, zos, "_FillValue", NC_FLOAT, 1, &missing));
  must(nc_put_att_float(file, thetao, "_FillValue", NC_FLOAT, 1, &missing));
  must(nc_enddef(file));

  ocean o;
  static float surface[POINTS];
  put_places(lat, lon);
  put_fields_without_time(mask, deptho, areacello);
  ocean_begin(&o, 0, NY);
  for (int k = 0; k < NZ; ++k)
    must(nc_put_var1_float(file, depth, &(size_t){(size_t)k}, &(float){ocean_level(k)}));
  for (int day = 0; day <= atoi(argv[2]); ++day) {
    const size_t record = (size_t)day;
    for (int i = 0; i < POINTS; ++i) surface[i] = ocean_surface(&o, i / NX, i % NX);
    must(nc_put_var1_int(file, time, &record, &day));
    must(nc_put_vara_float(file, zos, (size_t[]){record, 0, 0}, (size_t[]){1, NY, NX}, surface));
    for (size_t k = 0; k < NZ; ++k)
      must(nc_put_vara_float(file, thetao, (size_t[]){record, k, 0, 0}, (size_t[]){1, 1, NY, NX},
                             ocean_row(&o, (int)k, 0)));
    ocean_step(&o);
  }
  ocean_end(&o);
  must(nc_close(file));
  return 0;
}
