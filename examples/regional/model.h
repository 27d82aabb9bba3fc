/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Stands in for a model's state: t, u, v and tb, the boundary's temperature (lev,y,x), and ps, rain (y,x),
 * halo included. */
#include <stdint.h>

enum { NX = 117, NY = 94, NLEV = 40, HALO = 2 };
extern float *t, *u, *v, *tb, *ps, *rain;
extern int64_t step, dt, last;
void allocate_state(const int64_t* lower, const int64_t* upper);
void relax_to(const float* temperature);
void advance(void);
int every(int hours);
