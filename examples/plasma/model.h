/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Moments of a plasma, of electrons and of ions, which drift across a magnetic field along z in the potential
 * of a wave on a shear flow. Ions gyrate on wide orbits: the wave is weaker for them. Lengths are in ion
 * inertial lengths, times in Alfven times, speeds in Alfven speeds. The plane is periodic. */
#ifndef PLASMA_MODEL_H
#define PLASMA_MODEL_H

#include <stddef.h>

enum { SPECIES = 2, COMPONENTS = 2, NX = 48, NY = 32 };
#define SIDE 0.25 /* of a cell */
#define DT 0.07

/* The cells lower[d] to upper[d] - 1 of the plane. Arrays are (species, x, y) with one more cell on each side
 * in x and y, or (species, component, x, y) without. */
typedef struct plasma {
  int lower[2], upper[2];
  double time;
  double *density, *pressure, *temperature, *velocity;
} plasma;

extern const double plasma_mass[SPECIES]; /* ion masses */
extern const int plasma_charge[SPECIES];

void plasma_begin(plasma* p, const int* lower, const int* upper);
/* The place of a cell in an array with one more cell on each side. */
size_t plasma_at(const plasma* p, int species, int x, int y);
/* Computes velocity and temperature of this time. */
void plasma_diagnose(plasma* p);
/* Advances a step. The cells beside those that belong here are those of the neighbours. */
void plasma_step(plasma* p);
void plasma_end(plasma* p);

#endif
