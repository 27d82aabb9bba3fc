/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "model.h"

#include <math.h>
#include <stdlib.h>

static const double turn = 6.28318530717958647692;
static const double seen[SPECIES] = {1, 0.8}; /* the part of the wave that a species sees on its orbit */
const double plasma_mass[SPECIES] = {1 / 1836.15, 1};
const int plasma_charge[SPECIES] = {-1, 1};

/* The electric potential at the lower left corner of a cell, as far as the species sees it. */
static double potential(const plasma* p, int s, int x, int y) {
  const double kx = turn / (NX * SIDE), ky = turn / (NY * SIDE);
  return cos(ky * y * SIDE) + 0.4 * seen[s] * cos(kx * x * SIDE - 0.3 * p->time) * sin(ky * y * SIDE);
}

/* The drift E x B through the left (0) or lower (1) side of a cell. What flows into a cell flows out of it.
 */
static double drift(const plasma* p, int s, int component, int x, int y) {
  const double other = component == 0 ? potential(p, s, x, y + 1) : potential(p, s, x + 1, y);
  return (component == 0 ? potential(p, s, x, y) - other : other - potential(p, s, x, y)) / SIDE;
}

static size_t cells(const plasma* p, int beside) {
  return (size_t)(p->upper[0] - p->lower[0] + 2 * beside) * (size_t)(p->upper[1] - p->lower[1] + 2 * beside);
}

size_t plasma_at(const plasma* p, int species, int x, int y) {
  const int row = x - p->lower[0] + 1, width = p->upper[1] - p->lower[1] + 2;
  return (size_t)species * cells(p, 1) + (size_t)(row * width + y - p->lower[1] + 1);
}

void plasma_begin(plasma* p, const int* lower, const int* upper) {
  for (int d = 0; d < 2; ++d) p->lower[d] = lower[d], p->upper[d] = upper[d];
  p->time = 0;
  p->density = calloc(SPECIES * cells(p, 1), sizeof(double));
  p->pressure = calloc(SPECIES * cells(p, 1), sizeof(double));
  p->temperature = calloc(SPECIES * cells(p, 1), sizeof(double));
  p->velocity = calloc(SPECIES * COMPONENTS * cells(p, 0), sizeof(double));
  for (int s = 0; s < SPECIES; ++s)
    for (int x = lower[0]; x < upper[0]; ++x)
      for (int y = lower[1]; y < upper[1]; ++y) {
        const double height = sin(turn * (y + 0.5) / NY), hot = exp(-pow((x - NX / 2) * 0.1, 2));
        p->density[plasma_at(p, s, x, y)] = 1 + 0.5 * height;
        p->pressure[plasma_at(p, s, x, y)] = (1 + 0.5 * height) * (s == 0 ? 0.5 : 0.5 + hot);
      }
}

void plasma_diagnose(plasma* p) {
  double* velocity = p->velocity;
  for (int s = 0; s < SPECIES; ++s)
    for (int c = 0; c < COMPONENTS; ++c)
      for (int x = p->lower[0]; x < p->upper[0]; ++x)
        for (int y = p->lower[1]; y < p->upper[1]; ++y)
          *velocity++ = (drift(p, s, c, x, y) + drift(p, s, c, x + (c == 0), y + (c == 1))) / 2;
  for (size_t i = 0; i < SPECIES * cells(p, 1); ++i)
    p->temperature[i] = p->density[i] > 0 ? p->pressure[i] / p->density[i] : 0;
}

/* What flows through a side in a step comes from the cell upwind. */
static double flow(const plasma* p, const double* moment, int s, int component, int x, int y) {
  const double speed = drift(p, s, component, x, y);
  const int upwind_x = speed > 0 ? x - (component == 0) : x, upwind_y = speed > 0 ? y - (component == 1) : y;
  return speed * DT / SIDE * moment[plasma_at(p, s, upwind_x, upwind_y)];
}

static void advect(const plasma* p, double** moment) {
  double* const next = calloc(SPECIES * cells(p, 1), sizeof(double));
  for (int s = 0; s < SPECIES; ++s)
    for (int x = p->lower[0]; x < p->upper[0]; ++x)
      for (int y = p->lower[1]; y < p->upper[1]; ++y)
        next[plasma_at(p, s, x, y)] = (*moment)[plasma_at(p, s, x, y)] + flow(p, *moment, s, 0, x, y) -
                                      flow(p, *moment, s, 0, x + 1, y) + flow(p, *moment, s, 1, x, y) -
                                      flow(p, *moment, s, 1, x, y + 1);
  free(*moment);
  *moment = next;
}

void plasma_step(plasma* p) {
  advect(p, &p->density);
  advect(p, &p->pressure); /* the drift compresses nothing */
  p->time += DT;
}

void plasma_end(plasma* p) { free(p->density), free(p->pressure), free(p->temperature), free(p->velocity); }
