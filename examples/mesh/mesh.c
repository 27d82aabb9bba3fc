/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes a tracer on the faces and nodes of an unstructured mesh, and the mesh, to NetCDF as UGRID 1.0 says.
 *   mpirun -n 4 mesh [FILE [STEPS]] */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tailrace.h>

#include "model.h"

enum { STEPS_APART = 10 };

/* The faces and the nodes of this rank, in the order of its arrays. */
typedef struct part {
  tr_index face_count, node_count, faces[FACES], nodes[NODES];
} part;

typedef struct layouts {
  tr_layout *faces, *nodes, *corners, *one;
} layouts;

static int failed(int code) {
  if (code != TR_OK) tr_log(tr_error());
  return code != TR_OK;
}

/* Deals out the faces along a spiral. A node goes to the rank of the first face that has it. */
static void deal_out(const mesh* m, MPI_Comm compute, part* mine) {
  int ranks, rank, owner[FACES];
  MPI_Comm_size(compute, &ranks);
  MPI_Comm_rank(compute, &rank);
  mine->face_count = mine->node_count = 0;
  for (int f = 0; f < FACES; ++f) {
    const double turn = atan2(m->middle_y[f], m->middle_x[f]) / 6.283185307179586 + 1;
    owner[f] = (int)(fmod(turn + hypot(m->middle_x[f], m->middle_y[f]) / 3000, 1) * ranks) % ranks;
    if (owner[f] == rank) mine->faces[mine->face_count++] = f;
  }
  for (int n = 0; n < NODES; ++n)
    for (int f = 0, found = 0; f < FACES && !found; ++f)
      for (int c = 0; c < CORNERS; ++c)
        if (m->nodes[f][c] == n && !found) {
          found = 1;
          if (owner[f] == rank) mine->nodes[mine->node_count++] = n;
        }
}

/* The middle of each face, and its corners, for readers that know no UGRID. */
static int give_places(const mesh* m, const part* mine, tr_layout* faces) {
  static double lat[FACES], lon[FACES], lats[FACES][CORNERS], lons[FACES][CORNERS];
  for (int i = 0; i < mine->face_count; ++i) {
    const tr_index f = mine->faces[i];
    lat[i] = mesh_latitude(m->middle_y[f]), lon[i] = mesh_longitude(m->middle_x[f]);
    for (int c = 0; c < CORNERS; ++c) {
      lats[i][c] = mesh_latitude(m->y[m->nodes[f][c]]);
      lons[i][c] = mesh_longitude(m->x[m->nodes[f][c]]);
    }
  }
  return failed(tr_layout_coordinates(faces, lat, lon, CORNERS, lats[0], lons[0]));
}

/* Faces and nodes are lists of numbers; the corners of a face stay with it. */
static int make_layouts(const mesh* m, const part* mine, layouts* l) {
  static tr_index corners[FACES * CORNERS];
  for (int i = 0; i < mine->face_count * CORNERS; ++i)
    corners[i] = mine->faces[i / CORNERS] * CORNERS + i % CORNERS;
  return failed(tr_layout_indexed(1, (tr_index[]){FACES}, mine->face_count, mine->faces, 0, &l->faces)) ||
         failed(tr_layout_indexed(1, (tr_index[]){NODES}, mine->node_count, mine->nodes, 0, &l->nodes)) ||
         failed(tr_layout_indexed(2, (tr_index[]){FACES, CORNERS}, mine->face_count * CORNERS, corners, 0,
                                  &l->corners)) ||
         failed(tr_layout_replicated(0, NULL, &l->one)) || failed(tr_layout_dimensions(l->faces, "face")) ||
         failed(tr_layout_dimensions(l->nodes, "node")) ||
         failed(tr_layout_dimensions(l->corners, "face,corner")) || give_places(m, mine, l->faces);
}

static int put_table(tr_stream* out, const layouts* l, const part* mine, const char* name,
                     const int32_t (*all)[CORNERS], const char* options) {
  static int32_t table[FACES][CORNERS];
  const int32_t start = 0;
  for (int i = 0; i < mine->face_count; ++i)
    for (int c = 0; c < CORNERS; ++c) table[i][c] = all[mine->faces[i]][c];
  return failed(tr_stream_define(out, name, l->corners, TR_I32, options)) ||
         failed(tr_stream_attribute(out, name, "start_index", TR_I32, 1, &start)) ||
         failed(tr_stream_put(out, name, table));
}

/* The mesh: a variable that says which others describe it, and those, all without time. */
static int put_mesh(tr_stream* out, const mesh* m, const layouts* l, const part* mine) {
  static double lon[NODES], lat[NODES], stream[NODES], area[FACES];
  const int32_t nothing = 0, dimensions = 2;
  for (int i = 0; i < mine->node_count; ++i) {
    const tr_index n = mine->nodes[i];
    lon[i] = mesh_longitude(m->x[n]), lat[i] = mesh_latitude(m->y[n]), stream[i] = m->stream[n];
  }
  for (int i = 0; i < mine->face_count; ++i) area[i] = m->area[mine->faces[i]];
  return failed(tr_stream_define(
             out, "mesh", l->one, TR_I32,
             "time=none attributes=\"cf_role=mesh_topology, node_coordinates='node_lon node_lat', "
             "face_node_connectivity=face_nodes, face_face_connectivity=face_links, face_dimension=face, "
             "face_coordinates='lon lat'\"")) ||
         failed(tr_stream_attribute(out, "mesh", "topology_dimension", TR_I32, 1, &dimensions)) ||
         failed(tr_stream_put(out, "mesh", &nothing)) ||
         put_table(out, l, mine, "face_nodes", m->nodes,
                   "time=none attributes=\"cf_role=face_node_connectivity\"") ||
         put_table(out, l, mine, "face_links", m->links,
                   "time=none missing=-1 attributes=\"cf_role=face_face_connectivity\"") ||
         failed(tr_stream_define(out, "node_lon", l->nodes, TR_F64,
                                 "time=none standard_name=longitude units=degrees_east")) ||
         failed(tr_stream_put(out, "node_lon", lon)) ||
         failed(tr_stream_define(out, "node_lat", l->nodes, TR_F64,
                                 "time=none standard_name=latitude units=degrees_north")) ||
         failed(tr_stream_put(out, "node_lat", lat)) ||
         failed(tr_stream_define(
             out, "area", l->faces, TR_F64,
             "time=none standard_name=cell_area units=m2 attributes=\"mesh=mesh, location=face\"")) ||
         failed(tr_stream_put(out, "area", area)) ||
         failed(tr_stream_define(
             out, "stream", l->nodes, TR_F64,
             "time=none long_name='stream function of the flow, by its depth' units='m2 s-1' "
             "attributes=\"mesh=mesh, location=node, coordinates='node_lon node_lat'\"")) ||
         failed(tr_stream_put(out, "stream", stream));
}

static int define_fields(tr_stream* out, const layouts* l) {
  return failed(tr_stream_define(
             out, "tracer", l->faces, TR_F64,
             "long_name='concentration of the tracer' units='kg m-3' attributes=\"mesh=mesh, location=face, "
             "cell_measures='area: area', cell_methods='area: mean'\"")) ||
         failed(tr_stream_define(out, "tracer_at_nodes", l->nodes, TR_F64,
                                 "long_name='concentration of the tracer' units='kg m-3' "
                                 "attributes=\"mesh=mesh, location=node, coordinates='node_lon node_lat'\""));
}

static int put_step(tr_stream* out, const mesh* m, const part* mine, int step) {
  double faces[FACES], nodes[NODES];
  for (int i = 0; i < mine->face_count; ++i) faces[i] = m->tracer[mine->faces[i]];
  for (int i = 0; i < mine->node_count; ++i) nodes[i] = mesh_at_node(m, (int)mine->nodes[i]);
  tr_stream_begin(out, (int64_t)(step * DT));
  tr_stream_put(out, "tracer", faces);
  tr_stream_put(out, "tracer_at_nodes", nodes);
  return failed(tr_stream_end(out));
}

/* Each rank computes its faces. The others' zeros leave its numbers as they are. */
static void advance(mesh* m, const part* mine, MPI_Comm compute) {
  double next[FACES] = {0};
  for (int i = 0; i < mine->face_count; ++i) next[mine->faces[i]] = mesh_step(m, (int)mine->faces[i]);
  MPI_Allreduce(next, m->tracer, FACES, MPI_DOUBLE, MPI_SUM, compute);
}

static int run(MPI_Comm compute, const char* file, int steps) {
  static mesh m;
  static part mine;
  layouts l = {NULL, NULL, NULL, NULL};
  tr_stream* out = NULL;
  mesh_begin(&m);
  deal_out(&m, compute, &mine);
  if (make_layouts(&m, &mine, &l) ||
      failed(tr_stream_create(file,
                              "base=2026-07-01 "
                              "attributes=\"title='A tracer in a round lake', "
                              "Conventions='CF-1.8 UGRID-1.0'\"",
                              &out)) ||
      put_mesh(out, &m, &l, &mine) || define_fields(out, &l))
    return 1;
  for (int step = 0; step <= steps; ++step) {
    if (step % STEPS_APART == 0 && put_step(out, &m, &mine, step)) return 1;
    advance(&m, &mine, compute);
  }
  return failed(tr_stream_close(&out)) || failed(tr_layout_free(&l.faces)) ||
         failed(tr_layout_free(&l.nodes)) || failed(tr_layout_free(&l.corners)) ||
         failed(tr_layout_free(&l.one));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  int ended = 0;
  MPI_Init(&argc, &argv);
  if (failed(tr_init(MPI_COMM_WORLD, &compute, NULL))) MPI_Abort(MPI_COMM_WORLD, 1);
  if (compute != MPI_COMM_NULL)
    ended = run(compute, argc > 1 ? argv[1] : "mesh.nc", argc > 2 ? atoi(argv[2]) : 300);
  if (failed(tr_finalize())) ended = 1;
  MPI_Finalize();
  return ended;
}
