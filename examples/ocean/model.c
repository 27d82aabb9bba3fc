/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double turn = 0.35, spacing = 0.25, radians = 3.14159265358979323846 / 180;

double ocean_latitude(double y, double x) {
  return 43 + spacing * (y * cos(turn) + x * sin(turn)) + 1e-3 * x * x / NX;
}
double ocean_longitude(double y, double x) { return -9 + spacing * (x * cos(turn) - y * sin(turn)); }

float ocean_depth(int y, int x) {
  if (y < 3 || x < 3 || x >= NX - 2) return 0;
  const int to_island = (y - 20) * (y - 20) + (x - 30) * (x - 30);
  if (to_island < 12) return 0;
  return (float)(8 + 0.6 * y + (to_island < 60 ? 0 : 10));
}

double ocean_area(int y, int x) {
  const double side = spacing * radians * 6.371e6;
  return side * side * cos(ocean_latitude(y, x) * radians);
}

float ocean_level(int k) {
  static const float levels[NZ] = {5, 15, 30};
  return levels[k];
}

static int is_sea(int k, int y, int x) {
  return y >= 0 && y < NY && x >= 0 && x < NX && ocean_depth(y, x) > ocean_level(k);
}

float* ocean_row(const ocean* o, int k, int y) {
  return o->warmth + ((size_t)k * (size_t)(o->upper - o->lower + 2) + (size_t)(y - o->lower + 1)) * NX;
}

void ocean_begin(ocean* o, int lower, int upper) {
  o->lower = lower, o->upper = upper;
  o->warmth = malloc(sizeof(float) * NZ * NX * (size_t)(upper - lower + 2));
  for (int k = 0; k < NZ; ++k)
    for (int y = lower - 1; y <= upper; ++y)
      for (int x = 0; x < NX; ++x)
        ocean_row(o, k, y)[x] = is_sea(k, y, x) ? (float)(12 - k + (y > 24 && x < 12 ? 8 : 0)) : MISSING;
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
          const int y2 = y + beside[n][0], x2 = x + beside[n][1];
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
