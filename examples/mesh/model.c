/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "model.h"

#include <math.h>

static const double island = 400, shore = 2000, diffusivity = 2, pi = 3.14159265358979323846;

double mesh_latitude(double y) { return 46.5 + y / 6.371e6 * 180 / pi; }
double mesh_longitude(double x) { return 6.5 + x / (6.371e6 * cos(46.5 * pi / 180)) * 180 / pi; }

/* The numbers of a node and of a face are far from those of their neighbours. The factors share none with the
 * counts, so that each number comes once. */
static int node_number(int ring, int k) { return (ring * AROUND + k % AROUND) * 203 % NODES; }
static int face_number(int n) { return n * 371 % FACES; }

static void place_nodes(mesh* m) {
  for (int ring = 0; ring < RINGS; ++ring)
    for (int k = 0; k < AROUND; ++k) {
      const int node = node_number(ring, k);
      const double r = island + (shore - island) * ring / (RINGS - 1);
      const double angle = 2 * pi * (k + 0.5 * (ring % 2)) / AROUND;
      m->x[node] = r * cos(angle), m->y[node] = r * sin(angle);
      m->stream[node] = 60 * cos(pi * (r - island) / (shore - island) / 2); /* the same all along a shore */
    }
}

/* Two triangles between neighbours on one ring and those on the next, which is turned by half a cell. */
static void join_nodes(mesh* m) {
  for (int ring = 0; ring + 1 < RINGS; ++ring)
    for (int k = 0; k < AROUND; ++k) {
      const int first = 2 * (ring * AROUND + k), turned = ring % 2;
      const int32_t a = node_number(ring, k), b = node_number(ring, k + 1);
      const int32_t c = node_number(ring + 1, k), d = node_number(ring + 1, k + 1);
      int32_t *one = m->nodes[face_number(first)], *other = m->nodes[face_number(first + 1)];
      one[0] = a, one[1] = turned ? d : c, one[2] = b;
      other[0] = turned ? a : b, other[1] = c, other[2] = d;
    }
}

/* Finds the face beyond each side: the one that has both nodes of it. */
static void link_faces(mesh* m) {
  for (int f = 0; f < FACES; ++f)
    for (int side = 0; side < CORNERS; ++side) {
      const int from = m->nodes[f][side], to = m->nodes[f][(side + 1) % CORNERS];
      m->links[f][side] = NOTHING;
      for (int g = 0; g < FACES; ++g)
        for (int s = 0; s < CORNERS; ++s)
          if (m->nodes[g][s] == to && m->nodes[g][(s + 1) % CORNERS] == from) m->links[f][side] = g;
    }
}

void mesh_begin(mesh* m) {
  place_nodes(m);
  join_nodes(m);
  for (int f = 0; f < FACES; ++f) {
    int32_t* n = m->nodes[f];
    double twice = (m->x[n[1]] - m->x[n[0]]) * (m->y[n[2]] - m->y[n[0]]) -
                   (m->x[n[2]] - m->x[n[0]]) * (m->y[n[1]] - m->y[n[0]]);
    if (twice < 0) {
      const int32_t last = n[2];
      n[2] = n[1], n[1] = last, twice = -twice;
    }
    m->area[f] = twice / 2;
    m->middle_x[f] = (m->x[n[0]] + m->x[n[1]] + m->x[n[2]]) / 3;
    m->middle_y[f] = (m->y[n[0]] + m->y[n[1]] + m->y[n[2]]) / 3;
    m->tracer[f] = exp(-(pow(m->middle_x[f] - 1200, 2) + pow(m->middle_y[f], 2)) / 1e5);
  }
  link_faces(m);
}

double mesh_step(const mesh* m, int face) {
  double gained = 0;
  for (int side = 0; side < CORNERS; ++side) {
    const int from = m->nodes[face][side], to = m->nodes[face][(side + 1) % CORNERS];
    const int beyond = m->links[face][side];
    if (beyond == NOTHING) continue;
    const double inflow = m->stream[to] - m->stream[from];
    const double length = hypot(m->x[to] - m->x[from], m->y[to] - m->y[from]);
    const double apart =
        hypot(m->middle_x[beyond] - m->middle_x[face], m->middle_y[beyond] - m->middle_y[face]);
    gained += inflow * m->tracer[inflow > 0 ? beyond : face] +
              diffusivity * length / apart * (m->tracer[beyond] - m->tracer[face]);
  }
  return m->tracer[face] + DT * gained / m->area[face];
}

double mesh_at_node(const mesh* m, int node) {
  double sum = 0, area = 0;
  for (int f = 0; f < FACES; ++f)
    for (int c = 0; c < CORNERS; ++c)
      if (m->nodes[f][c] == node) sum += m->area[f] * m->tracer[f], area += m->area[f];
  return sum / area;
}
