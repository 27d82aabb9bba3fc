/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Warm water spreads in all seas. The grid is tripolar: rows follow latitudes up to 60 N, and north of them
 * they bend around two poles on land, in Siberia and in Canada. The last row is folded: its cells have their
 * northern neighbours in it. Every array is (y, x) or (level, y, x). */
#ifndef OCEAN_MODEL_H
#define OCEAN_MODEL_H

enum { NX = 48, NY = 36, NZ = 3, CORNERS = 4 };
#define MISSING (-999.0f) /* on land, and below the bottom */

/* The rows lower to upper - 1 of the sea. Arrays have these rows and one more on each side. */
typedef struct ocean {
  int lower, upper;
  float* warmth; /* degC, (level, y, x) */
} ocean;

/* The place of a point, or of a corner beside it: x and y count points. Degrees. */
void ocean_place(double y, double x, double* latitude, double* longitude);
/* The corners of a cell, anticlockwise. Longitudes are within half a turn of the point's. */
void ocean_corners(int y, int x, double* latitudes, double* longitudes);
/* Metres; 0 on land. */
float ocean_depth(int y, int x);
/* Square metres. */
double ocean_area(int y, int x);
/* Metres below the surface. */
float ocean_level(int k);

void ocean_begin(ocean* o, int lower, int upper);
/* Row y of a level, also one beside those that belong here. */
float* ocean_row(const ocean* o, int k, int y);
/* Advances a day. The rows beside those that belong here are those of the neighbours. */
void ocean_step(ocean* o);
/* The height of the surface at a point, m. */
float ocean_surface(const ocean* o, int y, int x);
void ocean_end(ocean* o);

#endif
