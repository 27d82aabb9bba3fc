/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_BELOW = 28 }; /* those that follow latitudes */
static const double degrees = 180 / 3.14159265358979323846, radians = 3.14159265358979323846 / 180;
static const double southern_edge = -75, cap_edge = 60, pole_longitude = 80;

/* The cap is a hemisphere in stereographic projection, on which rows run from one pole of the grid to the
 * other, like meridians of a globe that lies on its side (Murray 1996). */
void ocean_place(double y, double x, double* latitude, double* longitude) {
  const double along = (x + 0.5) / NX * 360 * radians;
  const double below = (y + 0.5) / ROWS_BELOW;
  if (below <= 1) {
    *latitude = southern_edge + (cap_edge - southern_edge) * below;
    *longitude = remainder(pole_longitude + along * degrees, 360);
    return;
  }
  const double up = (y + 0.5 - ROWS_BELOW) / (NY - ROWS_BELOW) * 90 * radians;
  const double to_pole = cos(along), across = sin(along) * cos(up), height = fabs(sin(along)) * sin(up);
  const double r = tan((90 - cap_edge) / 2 * radians) * hypot(to_pole, across) / (1 + height);
  *latitude = 90 - 2 * atan(r) * degrees;
  *longitude = remainder(pole_longitude + atan2(across, to_pole) * degrees, 360);
}

void ocean_corners(int y, int x, double* latitudes, double* longitudes) {
  static const double beside[CORNERS][2] = {{-0.5, -0.5}, {-0.5, 0.5}, {0.5, 0.5}, {0.5, -0.5}};
  double north, east;
  ocean_place(y, x, &north, &east);
  for (int c = 0; c < CORNERS; ++c) {
    ocean_place(y + beside[c][0], x + beside[c][1], latitudes + c, longitudes + c);
    longitudes[c] = east + remainder(longitudes[c] - east, 360);
  }
}

static void to_space(double latitude, double longitude, double* at) {
  at[0] = cos(latitude * radians) * cos(longitude * radians);
  at[1] = cos(latitude * radians) * sin(longitude * radians);
  at[2] = sin(latitude * radians);
}

/* Depth grows with the distance from land, which lies around a few places and in the south. */
float ocean_depth(int y, int x) {
  static const double land[][3] = {{62, 80, 25}, {55, -100, 22}, {5, 20, 20}, {-15, -60, 15}, {-25, 135, 12}};
  double latitude, longitude, here[3], there[3], nearest = 90;
  ocean_place(y, x, &latitude, &longitude);
  to_space(latitude, longitude, here);
  nearest = latitude + 70;
  for (size_t i = 0; i < sizeof land / sizeof *land; ++i) {
    to_space(land[i][0], land[i][1], there);
    const double cosine = here[0] * there[0] + here[1] * there[1] + here[2] * there[2];
    nearest = fmin(nearest, acos(fmax(-1, fmin(1, cosine))) * degrees - land[i][2]);
  }
  return nearest <= 0 ? 0 : (float)(8 + 3 * nearest);
}

/* Half the product of the diagonals. */
double ocean_area(int y, int x) {
  double lats[CORNERS], lons[CORNERS], at[CORNERS][3], u[3], v[3];
  ocean_corners(y, x, lats, lons);
  for (int c = 0; c < CORNERS; ++c) to_space(lats[c], lons[c], at[c]);
  for (int d = 0; d < 3; ++d) u[d] = at[2][d] - at[0][d], v[d] = at[3][d] - at[1][d];
  const double a = u[1] * v[2] - u[2] * v[1], b = u[2] * v[0] - u[0] * v[2], c = u[0] * v[1] - u[1] * v[0];
  return sqrt(a * a + b * b + c * c) / 2 * 6.371e6 * 6.371e6;
}

float ocean_level(int k) {
  static const float levels[NZ] = {5, 15, 30};
  return levels[k];
}

static int is_sea(int k, int y, int x) { return y >= 0 && y < NY && ocean_depth(y, x) > ocean_level(k); }

float* ocean_row(const ocean* o, int k, int y) {
  return o->warmth + ((size_t)k * (size_t)(o->upper - o->lower + 2) + (size_t)(y - o->lower + 1)) * NX;
}

void ocean_begin(ocean* o, int lower, int upper) {
  o->lower = lower, o->upper = upper;
  o->warmth = malloc(sizeof(float) * NZ * NX * (size_t)(upper - lower + 2));
  for (int k = 0; k < NZ; ++k)
    for (int y = lower - 1; y <= upper; ++y)
      for (int x = 0; x < NX; ++x)
        ocean_row(o, k, y)[x] = is_sea(k, y, x) ? (float)(8 - k + (y > 10 && y < 20 ? 18 : 0)) : MISSING;
}

void ocean_step(ocean* o) {
  const size_t bytes = sizeof(float) * NX * (size_t)(o->upper - o->lower + 2);
  ocean before = {o->lower, o->upper, malloc(NZ * bytes)};
  memcpy(before.warmth, o->warmth, NZ * bytes);
  for (int k = 0; k < NZ; ++k)
    for (int y = o->lower; y < o->upper; ++y)
      for (int x = 0; x < NX; ++x) {
        if (!is_sea(k, y, x)) continue;
        static const int beside[4][2] = {{-1, 0}, {0, -1}, {0, 1}, {1, 0}};
        const float here = ocean_row(&before, k, y)[x];
        float gained = 0;
        for (int n = 0; n < 4; ++n) {
          const int folds = y + beside[n][0] == NY, y2 = folds ? y : y + beside[n][0];
          const int x2 = folds ? NX - 1 - x : (x + beside[n][1] + NX) % NX;
          if (is_sea(k, y2, x2)) gained += ocean_row(&before, k, y2)[x2] - here;
        }
        ocean_row(o, k, y)[x] = here + 0.2f * gained;
      }
  free(before.warmth);
}

float ocean_surface(const ocean* o, int y, int x) {
  return is_sea(0, y, x) ? 0.01f * (ocean_row(o, 0, y)[x] - 12) : MISSING;
}

void ocean_end(ocean* o) { free(o->warmth); }
