/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes moments (species, x, y) of a plasma, in Alfven times, to NetCDF.
 *   mpirun -n 4 plasma [FILE [STEPS]] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tailrace.h>

#include "model.h"

enum { STEPS_APART = 5 };

static int failed(int code) {
  if (code != TR_OK) tr_log(tr_error());
  return code != TR_OK;
}

/* The part of this rank: both species, and its cells in x and y. Dimensions of one name are shared. */
static int make_layouts(const plasma* p, tr_layout** moments, tr_layout** vectors, tr_layout** kinds) {
  const tr_index moments_shape[3] = {SPECIES, NX, NY}, vectors_shape[4] = {SPECIES, COMPONENTS, NX, NY};
  const tr_index halo[3] = {0, 1, 1}, lower[4] = {0, 0, p->lower[0], p->lower[1]};
  const tr_index upper[4] = {SPECIES, COMPONENTS, p->upper[0], p->upper[1]};
  const tr_index upper_of_moments[3] = {SPECIES, p->upper[0], p->upper[1]};
  const int32_t species[SPECIES] = {0, 1};
  double x[NX], y[NY];
  for (int i = 0; i < NX; ++i) x[i] = (i + 0.5) * SIDE;
  for (int i = 0; i < NY; ++i) y[i] = (i + 0.5) * SIDE;
  return failed(tr_layout_box(3, moments_shape, halo, lower + 1, upper_of_moments, moments)) ||
         failed(tr_layout_box(4, vectors_shape, NULL, lower, upper, vectors)) ||
         failed(tr_layout_replicated(1, moments_shape, kinds)) ||
         failed(tr_layout_dimensions(*moments, "species,x,y")) ||
         failed(tr_layout_dimensions(*vectors, "species,component,x,y")) ||
         failed(tr_layout_dimensions(*kinds, "species")) ||
         failed(tr_layout_axis(*moments, "species", TR_I32, SPECIES, species, NULL,
                               "long_name='electrons (0) and ions (1)'")) ||
         failed(tr_layout_axis(*moments, "x", TR_F64, NX, x, NULL,
                               "axis=X long_name='distance in ion inertial lengths' units=1")) ||
         failed(tr_layout_axis(*moments, "y", TR_F64, NY, y, NULL,
                               "axis=Y long_name='distance in ion inertial lengths' units=1"));
}

static int define_fields(tr_stream* out, const tr_layout* moments, const tr_layout* vectors,
                         const tr_layout* kinds) {
  static const char names[SPECIES][9] = {"electrons", "ions"};
  return failed(tr_stream_define(out, "mass", kinds, TR_F64,
                                 "time=none attributes=\"long_name='mass in ion masses', units=1\"")) ||
         failed(tr_stream_define(
             out, "charge", kinds, TR_I32,
             "time=none attributes=\"long_name='charge in elementary charges', units=1\"")) ||
         failed(tr_stream_define(out, "species_name", kinds, TR_TEXT(sizeof *names),
                                 "time=none attributes=\"long_name='name of the species'\"")) ||
         failed(tr_stream_put(out, "species_name", names)) ||
         failed(tr_stream_put(out, "mass", plasma_mass)) ||
         failed(tr_stream_put(out, "charge", plasma_charge)) ||
         failed(tr_stream_define(out, "density", moments, TR_F64,
                                 "attributes=\"long_name='number density, by its mean', units=1\"")) ||
         failed(tr_stream_define(
             out, "velocity", vectors, TR_F64,
             "attributes=\"long_name='velocity along x and y in Alfven speeds', units=1\"")) ||
         failed(
             tr_stream_define(out, "temperature", moments, TR_F64,
                              "attributes=\"long_name='temperature, by that of ions far away', units=1\""));
}

/* Gets the cells beside those that belong here. */
static void exchange(const plasma* p, double* moment, MPI_Comm plane) {
  for (int s = 0; s < SPECIES; ++s)
    for (int d = 0; d < 2; ++d) {
      const int across = 1 - d, count = p->upper[across] - p->lower[across];
      int below, above;
      MPI_Datatype line;
      MPI_Cart_shift(plane, d, 1, &below, &above);
      MPI_Type_vector(count, 1, d == 0 ? 1 : p->upper[1] - p->lower[1] + 2, MPI_DOUBLE, &line);
      MPI_Type_commit(&line);
      int from[2] = {p->lower[0], p->lower[1]}, to[2] = {p->lower[0], p->lower[1]};
      from[d] = p->upper[d] - 1, to[d] = p->lower[d] - 1;
      MPI_Sendrecv(moment + plasma_at(p, s, from[0], from[1]), 1, line, above, 0,
                   moment + plasma_at(p, s, to[0], to[1]), 1, line, below, 0, plane, MPI_STATUS_IGNORE);
      from[d] = p->lower[d], to[d] = p->upper[d];
      MPI_Sendrecv(moment + plasma_at(p, s, from[0], from[1]), 1, line, below, 1,
                   moment + plasma_at(p, s, to[0], to[1]), 1, line, above, 1, plane, MPI_STATUS_IGNORE);
      MPI_Type_free(&line);
    }
}

/* Deals out the plane in boxes. */
static MPI_Comm begin(plasma* p, MPI_Comm compute) {
  const int cells[2] = {NX, NY}, periodic[2] = {1, 1};
  int ranks, rank, parts[2] = {0, 0}, place[2], lower[2], upper[2];
  MPI_Comm plane;
  MPI_Comm_size(compute, &ranks);
  MPI_Dims_create(ranks, 2, parts);
  MPI_Cart_create(compute, 2, parts, periodic, 0, &plane);
  MPI_Comm_rank(plane, &rank);
  MPI_Cart_coords(plane, rank, 2, place);
  for (int d = 0; d < 2; ++d)
    lower[d] = place[d] * cells[d] / parts[d], upper[d] = (place[d] + 1) * cells[d] / parts[d];
  plasma_begin(p, lower, upper);
  return plane;
}

static int run(MPI_Comm compute, const char* file, int steps) {
  tr_layout *moments = NULL, *vectors = NULL, *kinds = NULL;
  tr_stream* out = NULL;
  plasma p;
  MPI_Comm plane = begin(&p, compute);
  if (make_layouts(&p, &moments, &vectors, &kinds) ||
      failed(tr_stream_create(file,
                              "format=cdf5 time=model time_units='Alfven times' "
                              "attributes=\"title='Electrons and ions in a wave on a shear flow'\"",
                              &out)) ||
      define_fields(out, moments, vectors, kinds))
    return 1;
  for (int step = 0; step <= steps; ++step) {
    if (step % STEPS_APART == 0) {
      plasma_diagnose(&p);
      tr_stream_begin_at(out, p.time);
      tr_stream_put(out, "density", p.density);
      tr_stream_put(out, "velocity", p.velocity);
      tr_stream_put(out, "temperature", p.temperature);
      if (failed(tr_stream_end(out))) return 1;
    }
    exchange(&p, p.density, plane);
    exchange(&p, p.pressure, plane);
    plasma_step(&p);
  }
  plasma_end(&p);
  MPI_Comm_free(&plane);
  return failed(tr_stream_close(&out)) || failed(tr_layout_free(&moments)) ||
         failed(tr_layout_free(&vectors)) || failed(tr_layout_free(&kinds));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  int ended = 0;
  MPI_Init(&argc, &argv);
  if (failed(tr_init(MPI_COMM_WORLD, &compute, NULL))) MPI_Abort(MPI_COMM_WORLD, 1);
  if (compute != MPI_COMM_NULL)
    ended = run(compute, argc > 1 ? argv[1] : "plasma.nc", argc > 2 ? atoi(argv[2]) : 60);
  if (failed(tr_finalize())) ended = 1;
  MPI_Finalize();
  return ended;
}
