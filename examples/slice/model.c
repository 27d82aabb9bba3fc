/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "model.h"

#include <math.h>
#include <stdlib.h>

double slice_wind(int k) { return 10 + 0.8 * k; }

void slice_begin(slice* s, int lower, int upper) {
  const int width = upper - lower;
  s->lower = lower, s->upper = upper, s->time = 0;
  s->theta = malloc(sizeof(double) * NZ * (size_t)(width > 0 ? width : 1));
  for (int k = 0; k < NZ; ++k)
    for (int i = lower; i < upper; ++i) {
      const double x = (i + 0.5) * DX - 1000, z = (k + 0.5) * DZ - 300;
      s->theta[k * width + i - lower] = 3 * exp(-(x * x + z * z) / 40000);
    }
}

void slice_step(slice* s, const double* left) {
  const int width = s->upper - s->lower;
  for (int k = 0; k < NZ; ++k) {
    const double share = slice_wind(k) * DT / DX; /* of the air that leaves a cell to the right */
    double before = left[k];
    for (int i = 0; i < width; ++i) {
      const double here = s->theta[k * width + i];
      s->theta[k * width + i] = here - share * (here - before);
      before = here;
    }
  }
  s->time += DT;
}

void slice_column(const slice* s, int i, double* column) {
  const int width = s->upper - s->lower;
  for (int k = 0; k < NZ; ++k) column[k] = s->theta[k * width + i - s->lower];
}

void slice_end(slice* s) { free(s->theta); }
