/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "model.h"

#include <math.h>
#include <stdlib.h>

float *t, *u, *v, *tb, *ps, *rain;
int64_t step = 0, dt = 600, last = 54;
static int64_t lo[2], up[2];
static const float* boundary; /* the temperature of the outermost points of the grid */

void relax_to(const float* temperature) { boundary = temperature; }

void allocate_state(const int64_t* lower, const int64_t* upper) {
  size_t points = (size_t)((upper[0] - lower[0]) * (upper[1] - lower[1]));
  for (int d = 0; d < 2; d++) {
    lo[d] = lower[d];
    up[d] = upper[d];
  }
  t = calloc(points * NLEV, sizeof *t);
  u = calloc(points * NLEV, sizeof *u);
  v = calloc(points * NLEV, sizeof *v);
  tb = calloc(points * NLEV, sizeof *tb);
  boundary = tb;
  ps = calloc(points, sizeof *ps);
  rain = calloc(points, sizeof *rain);
}

static int at_the_rim(int64_t y, int64_t x) { return y == 0 || y == NY - 1 || x == 0 || x == NX - 1; }

/* A travelling wave: every value inside is a function of its place and the time alone. */
void advance(void) {
  float *pt = t, *pu = u, *pv = v, *pp = ps, *pr = rain;
  step++;
  for (int lev = 0; lev < NLEV; lev++)
    for (int64_t y = lo[0]; y < up[0]; y++)
      for (int64_t x = lo[1]; x < up[1]; x++) {
        float phase = 0.1f * (float)x + 0.07f * (float)y - 0.02f * (float)step;
        *pt = at_the_rim(y, x) ? boundary[pt - t] : 220.0f + 2.0f * (float)lev + 5.0f * sinf(phase);
        pt++;
        *pu++ = 20.0f * cosf(phase);
        *pv++ = 10.0f * sinf(phase);
        if (lev == 0) {
          *pp++ = 101325.0f - 500.0f * sinf(phase);
          *pr++ += 0.1f + 0.1f * sinf(phase);
        }
      }
}

int every(int hours) { return step * dt % (hours * 3600) == 0; }
