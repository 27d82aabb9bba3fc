/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "content.h"

/* The vertex of the grid, from 1, with the coordinates ix, iy and iz, from 0. */
static int vertex(const struct content* c, long ix, long iy, long iz) {
  return (int)(1 + iz + ix * c->nz + iy * c->nz * c->nx);
}

void fill_piece(const struct content* c, long number, int* words) {
  static const int dx[8] = {0, 1, 1, 0, 0, 1, 1, 0}, dy[8] = {0, 0, 1, 1, 0, 0, 1, 1};
  static const int dz[8] = {0, 0, 0, 0, 1, 1, 1, 1};
  if (c->nx == 0) {
    words[0] = (int)number;
    return;
  }
  const long ix = number % (c->nx - 1), iy = number / (c->nx - 1);
  int corner[8];
  for (int v = 0; v < 8; v++) corner[v] = vertex(c, ix + dx[v], iy + dy[v], dz[v]);
  for (int iz = 0; iz < c->nz - 1; iz++)
    for (int v = 0; v < 8; v++) words[8 * iz + v] = corner[v] + iz;
}

void prepare_piece(const struct content* c, int* words) {
  if (c->nx > 0) return;
  for (int i = 1; i < c->bytes / 4; i++) words[i] = i * 0x01010101;
}

int first_word(const struct content* c, long number) {
  return c->nx == 0 ? (int)number : vertex(c, number % (c->nx - 1), number / (c->nx - 1), 0);
}
