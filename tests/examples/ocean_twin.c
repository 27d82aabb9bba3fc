/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes what examples/ocean writes, by one process and the NetCDF library: ocean_twin NAME.nc DAYS */
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
  static double values[4][POINTS * CORNERS];
  for (int i = 0; i < POINTS; ++i) {
    const int y = i / NX, x = i % NX;
    ocean_place(y, x, values[0] + i, values[1] + i);
    ocean_corners(y, x, values[2] + CORNERS * i, values[3] + CORNERS * i);
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

/* Defines the time, which is dimension 0, and the grid. Returns the number of the variable of time. */
static int define_grid(const char* title, int* plane, int* lat, int* lon) {
  int t;
  must(nc_def_dim(file, "time", NC_UNLIMITED, &t));
  must(nc_def_dim(file, "y", NY, plane));
  must(nc_def_dim(file, "x", NX, plane + 1));
  must(nc_def_dim(file, "vertices", CORNERS, plane + 2));
  texts(NC_GLOBAL, (const char*[]){"Conventions", "CF-1.8", "title", title, NULL});
  const int time =
      variable("time", NC_DOUBLE, 1, &t,
               (const char*[]){"standard_name", "time", "long_name", "time", "units",
                               "days since 2026-01-01 00:00:00", "calendar", "noleap", "axis", "T", NULL});
  lat[0] = variable("lat", NC_DOUBLE, 2, plane,
                    (const char*[]){"standard_name", "latitude", "long_name", "latitude", "units",
                                    "degrees_north", "bounds", "lat_bnds", NULL});
  lat[1] = variable("lat_bnds", NC_DOUBLE, 3, plane, (const char*[]){NULL});
  lon[0] = variable("lon", NC_DOUBLE, 2, plane,
                    (const char*[]){"standard_name", "longitude", "long_name", "longitude", "units",
                                    "degrees_east", "bounds", "lon_bnds", NULL});
  lon[1] = variable("lon_bnds", NC_DOUBLE, 3, plane, (const char*[]){NULL});
  return time;
}

/* Writes means over three days to another file. */
static void write_means(const char* path, int days) {
  enum { DAYS_OF_MEAN = 3 };
  static double sum[POINTS];
  static float mean[POINTS];
  const float missing = MISSING;
  int bnds, lat[2], lon[2], plane[3];
  char name[500];
  snprintf(name, sizeof name, "%.*s_means.nc", (int)strlen(path) - 3, path);
  must(nc_create(name, NC_64BIT_DATA, &file));
  const int time = define_grid("Warm water in all seas, means", plane, lat, lon);
  must(nc_def_dim(file, "bnds", 2, &bnds));
  texts(NC_GLOBAL, (const char*[]){"external_variables", "areacello", NULL});
  texts(time, (const char*[]){"bounds", "time_bnds", NULL});
  const int bounds = variable("time_bnds", NC_DOUBLE, 2, (const int[]){0, bnds}, (const char*[]){NULL});
  const int tos = variable(
      "tos", NC_FLOAT, 3, (const int[]){0, plane[0], plane[1]},
      (const char*[]){"cell_methods", "time: mean", "coordinates", "lat lon", "standard_name",
                      "sea_surface_temperature", "units", "degC", "cell_measures", "area: areacello", NULL});
  must(nc_put_att_float(file, tos, "_FillValue", NC_FLOAT, 1, &missing));
  must(nc_enddef(file));
  put_places(lat, lon);
  ocean o;
  ocean_begin(&o, 0, NY);
  for (int day = 1; day <= days; ++day) {
    ocean_step(&o);
    for (int i = 0; i < POINTS; ++i) sum[i] += ocean_row(&o, 0, 0)[i];
    if (day % DAYS_OF_MEAN != 0) continue;
    const size_t start[3] = {(size_t)(day / DAYS_OF_MEAN - 1), 0, 0};
    for (int i = 0; i < POINTS; ++i)
      mean[i] = ocean_depth(i / NX, i % NX) > ocean_level(0) ? (float)(sum[i] / DAYS_OF_MEAN) : MISSING,
      sum[i] = 0;
    must(nc_put_var1_int(file, time, start, &day));
    must(nc_put_vara_int(file, bounds, start, (size_t[]){1, 2}, (const int[]){day - DAYS_OF_MEAN, day}));
    must(nc_put_vara_float(file, tos, start, (size_t[]){1, NY, NX}, mean));
  }
  ocean_end(&o);
  must(nc_close(file));
}

int main(int argc, char** argv) {
  int plane[3];
  int z, lat[2], lon[2];
  const float missing = MISSING;
  if (argc != 3) return 2;
  must(nc_create(argv[1], NC_64BIT_DATA, &file));
  const int time = define_grid("Warm water in all seas", plane, lat, lon);
  must(nc_def_dim(file, "depth", NZ, &z));
  const int steps[3] = {0, plane[0], plane[1]}, levels[4] = {0, z, plane[0], plane[1]};
  const int mask = variable("mask", NC_BYTE, 2, plane,
                            (const char*[]){"coordinates", "lat lon", "standard_name", "sea_binary_mask",
                                            "flag_meanings", "land sea", NULL});
  must(nc_put_att_schar(file, mask, "flag_values", NC_BYTE, 2, (const signed char[]){0, 1}));
  const int deptho =
      variable("deptho", NC_FLOAT, 2, plane,
               (const char*[]){"coordinates", "lat lon", "standard_name", "sea_floor_depth_below_geoid",
                               "units", "m", "cell_measures", "area: areacello", NULL});
  const int areacello =
      variable("areacello", NC_DOUBLE, 2, plane,
               (const char*[]){"coordinates", "lat lon", "standard_name", "cell_area", "units", "m2", NULL});
  const int zos =
      variable("zos", NC_FLOAT, 3, steps,
               (const char*[]){"coordinates", "lat lon", "standard_name", "sea_surface_height_above_geoid",
                               "units", "m", "cell_measures", "area: areacello", NULL});
  const int depth = variable("depth", NC_DOUBLE, 1, &z,
                             (const char*[]){"standard_name", "depth", "long_name", "depthBelowSea", "units",
                                             "m", "positive", "down", "axis", "Z", NULL});
  const int thetao =
      variable("thetao", NC_FLOAT, 4, levels,
               (const char*[]){"coordinates", "lat lon", "standard_name", "sea_water_potential_temperature",
                               "units", "degC", "cell_measures", "area: areacello", NULL});
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
  write_means(argv[1], atoi(argv[2]));
  return 0;
}
