/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes what examples/plasma writes, by one process and the NetCDF library: plasma_twin FILE STEPS */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { STEPS_APART = 5 };

static int file;

static void must(int code) {
  if (code == NC_NOERR) return;
  fprintf(stderr, "plasma_twin: %s\n", nc_strerror(code));
  exit(1);
}

static void text(int variable, const char* name, const char* value) {
  must(nc_put_att_text(file, variable, name, strlen(value), value));
}

static int dimension(const char* name, size_t length) {
  int made;
  must(nc_def_dim(file, name, length, &made));
  return made;
}

static int variable(const char* name, nc_type type, int ndims, const int* dims, const char* long_name,
                    const char* units) {
  int made;
  must(nc_def_var(file, name, type, ndims, dims, &made));
  text(made, "long_name", long_name);
  if (units != NULL) text(made, "units", units);
  return made;
}

/* The cells of one species in a row, for the model has all of them and one more on each side. */
static void put_moment(int variable, size_t record, const plasma* p, const double* moment) {
  for (int s = 0; s < SPECIES; ++s)
    for (int x = 0; x < NX; ++x)
      must(nc_put_vara_double(file, variable, (size_t[]){record, (size_t)s, (size_t)x, 0},
                              (size_t[]){1, 1, 1, NY}, moment + plasma_at(p, s, x, 0)));
}

/* The plane is periodic. */
static void close_plane(const plasma* p, double* moment) {
  for (int s = 0; s < SPECIES; ++s) {
    for (int x = 0; x < NX; ++x) {
      moment[plasma_at(p, s, x, -1)] = moment[plasma_at(p, s, x, NY - 1)];
      moment[plasma_at(p, s, x, NY)] = moment[plasma_at(p, s, x, 0)];
    }
    for (int y = 0; y < NY; ++y) {
      moment[plasma_at(p, s, -1, y)] = moment[plasma_at(p, s, NX - 1, y)];
      moment[plasma_at(p, s, NX, y)] = moment[plasma_at(p, s, 0, y)];
    }
  }
}

int main(int argc, char** argv) {
  double places[NX > NY ? NX : NY];
  if (argc != 3) return 2;
  must(nc_create(argv[1], NC_64BIT_DATA, &file));
  const int t = dimension("time", NC_UNLIMITED), s = dimension("species", SPECIES), x = dimension("x", NX);
  const int y = dimension("y", NY), c = dimension("component", COMPONENTS);
  text(NC_GLOBAL, "Conventions", "CF-1.8");
  text(NC_GLOBAL, "title", "Electrons and ions in a wave on a shear flow");
  const int time = variable("time", NC_DOUBLE, 1, &t, "time", "Alfven times");
  text(time, "axis", "T");
  const int species = variable("species", NC_INT, 1, &s, "electrons (0) and ions (1)", NULL);
  const int xs = variable("x", NC_DOUBLE, 1, &x, "distance in ion inertial lengths", "1");
  text(xs, "axis", "X");
  const int ys = variable("y", NC_DOUBLE, 1, &y, "distance in ion inertial lengths", "1");
  text(ys, "axis", "Y");
  const int mass = variable("mass", NC_DOUBLE, 1, &s, "mass in ion masses", "1");
  const int charge = variable("charge", NC_INT, 1, &s, "charge in elementary charges", "1");
  const int letters = dimension("string9", 9);
  const int name =
      variable("species_name", NC_CHAR, 2, (const int[]){s, letters}, "name of the species", NULL);
  text(name, "_Encoding", "utf-8");
  const int moment_dims[4] = {t, s, x, y}, vector_dims[5] = {t, s, c, x, y};
  const int density = variable("density", NC_DOUBLE, 4, moment_dims, "number density, by its mean", "1");
  const int velocity =
      variable("velocity", NC_DOUBLE, 5, vector_dims, "velocity along x and y in Alfven speeds", "1");
  const int temperature =
      variable("temperature", NC_DOUBLE, 4, moment_dims, "temperature, by that of ions far away", "1");
  must(nc_enddef(file));

  must(nc_put_var_int(file, species, (const int[]){0, 1}));
  for (int i = 0; i < NX; ++i) places[i] = (i + 0.5) * SIDE;
  must(nc_put_var_double(file, xs, places));
  must(nc_put_var_double(file, ys, places));
  must(nc_put_var_double(file, mass, plasma_mass));
  must(nc_put_var_int(file, charge, plasma_charge));
  must(nc_put_var_text(file, name, "electronsions\0\0\0\0"));
  plasma p;
  plasma_begin(&p, (const int[]){0, 0}, (const int[]){NX, NY});
  for (int step = 0; step <= atoi(argv[2]); ++step) {
    if (step % STEPS_APART == 0) {
      const size_t record = (size_t)(step / STEPS_APART);
      plasma_diagnose(&p);
      must(nc_put_var1_double(file, time, &record, &p.time));
      put_moment(density, record, &p, p.density);
      must(nc_put_vara_double(file, velocity, (size_t[]){record, 0, 0, 0, 0},
                              (size_t[]){1, SPECIES, COMPONENTS, NX, NY}, p.velocity));
      put_moment(temperature, record, &p, p.temperature);
    }
    close_plane(&p, p.density);
    close_plane(&p, p.pressure);
    plasma_step(&p);
  }
  plasma_end(&p);
  must(nc_close(file));
  return 0;
}
