/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Warm water spreads in a bay with an island. The grid is curved: its rows and columns follow no latitudes
 * and longitudes. Every array is (y, x) or (level, y, x). */
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
double ocean_latitude(double y, double x);
double ocean_longitude(double y, double x);
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
