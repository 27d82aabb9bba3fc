/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A tracer is carried around a round lake with an island, and spreads: finite volumes on triangles. Nodes and
 * faces are numbered in no order, as mesh generators do. Every process has the whole mesh, which is small. */
#ifndef MESH_MODEL_H
#define MESH_MODEL_H

#include <stdint.h>

enum { RINGS = 9, AROUND = 60, NODES = RINGS * AROUND, FACES = 2 * (RINGS - 1) * AROUND, CORNERS = 3 };
#define NOTHING (-1) /* beside a face on the shore */
#define DT 100.0     /* s */

typedef struct mesh {
  double x[NODES], y[NODES];     /* m, from the middle of the lake */
  int32_t nodes[FACES][CORNERS]; /* of each face, anticlockwise */
  int32_t links[FACES][CORNERS]; /* the face beyond the side from this corner to the next, or NOTHING */
  double stream[NODES];          /* m2 s-1: what flows between two nodes is the difference */
  double area[FACES];            /* m2 */
  double tracer[FACES];          /* kg m-3 */
  double middle_x[FACES], middle_y[FACES];
} mesh;

void mesh_begin(mesh* m);
/* The places of a point on the globe, in degrees. */
double mesh_latitude(double y);
double mesh_longitude(double x);
/* Returns what the tracer of a face is after a step. */
double mesh_step(const mesh* m, int face);
/* Returns the mean of the faces around a node, weighted by their areas. */
double mesh_at_node(const mesh* m, int node);

#endif
