/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A vertical slice of the atmosphere: warm air in a wind that grows with height. Every array is (z, x). */
#ifndef SLICE_MODEL_H
#define SLICE_MODEL_H

enum { NX = 200, NZ = 50 };
#define DX 20.0       /* m */
#define DZ 20.0       /* m */
#define DT (1.0 / 6)  /* s */
#define STEPS_APART 3 /* steps between outputs: half a second, as far as doubles tell */

/* The columns lower to upper - 1 of the slice. */
typedef struct slice {
  int lower, upper;
  double time;   /* s */
  double* theta; /* deviation of the potential temperature, K, in the middle of the cells */
} slice;

void slice_begin(slice* s, int lower, int upper);
/* Advances one step. `left` has the values of the column beside `lower`, from the bottom to the top. */
void slice_step(slice* s, const double* left);
/* The wind at a height index, m/s, on all faces between columns. */
double slice_wind(int k);
/* Copies column i. */
void slice_column(const slice* s, int i, double* column);
void slice_end(slice* s);

#endif
