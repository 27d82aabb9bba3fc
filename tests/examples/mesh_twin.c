/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes what examples/mesh writes, by one process and the NetCDF library: mesh_twin FILE STEPS */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { STEPS_APART = 10 };

static int file;

static void must(int code) {
  if (code == NC_NOERR) return;
  fprintf(stderr, "mesh_twin: %s\n", nc_strerror(code));
  exit(1);
}

/* Defines a variable and gives it texts: names and values in turn, then NULL. */
static int variable(const char* name, nc_type type, int ndims, const int* dims, const char* const* texts) {
  int made;
  must(nc_def_var(file, name, type, ndims, dims, &made));
  for (; texts[0] != NULL; texts += 2)
    must(nc_put_att_text(file, made, texts[0], strlen(texts[1]), texts[1]));
  return made;
}

static int dimension(const char* name, size_t length) {
  int made;
  must(nc_def_dim(file, name, length, &made));
  return made;
}

static void number(int variable, const char* name, int value) {
  must(nc_put_att_int(file, variable, name, NC_INT, 1, &value));
}

/* Defines the latitudes or longitudes of the faces and of their corners, and puts them later. */
static void define_places(const int* face_vertices, int places[4]) {
  places[0] = variable("lat", NC_DOUBLE, 1, face_vertices,
                       (const char*[]){"standard_name", "latitude", "long_name", "latitude", "units",
                                       "degrees_north", "bounds", "lat_bnds", NULL});
  places[1] = variable("lat_bnds", NC_DOUBLE, 2, face_vertices, (const char*[]){NULL});
  places[2] = variable("lon", NC_DOUBLE, 1, face_vertices,
                       (const char*[]){"standard_name", "longitude", "long_name", "longitude", "units",
                                       "degrees_east", "bounds", "lon_bnds", NULL});
  places[3] = variable("lon_bnds", NC_DOUBLE, 2, face_vertices, (const char*[]){NULL});
}

static void put_places(const mesh* m, const int places[4], int node_lon, int node_lat) {
  static double lat[FACES], lon[FACES], lats[FACES][CORNERS], lons[FACES][CORNERS], north[NODES], east[NODES];
  for (int f = 0; f < FACES; ++f) {
    lat[f] = mesh_latitude(m->middle_y[f]), lon[f] = mesh_longitude(m->middle_x[f]);
    for (int c = 0; c < CORNERS; ++c) {
      lats[f][c] = mesh_latitude(m->y[m->nodes[f][c]]);
      lons[f][c] = mesh_longitude(m->x[m->nodes[f][c]]);
    }
  }
  for (int n = 0; n < NODES; ++n) north[n] = mesh_latitude(m->y[n]), east[n] = mesh_longitude(m->x[n]);
  must(nc_put_var_double(file, places[0], lat));
  must(nc_put_var_double(file, places[1], lats[0]));
  must(nc_put_var_double(file, places[2], lon));
  must(nc_put_var_double(file, places[3], lons[0]));
  must(nc_put_var_double(file, node_lon, east));
  must(nc_put_var_double(file, node_lat, north));
}

static void put_step(const mesh* m, int step, const int* step_variables) {
  const size_t start[2] = {(size_t)(step / STEPS_APART), 0};
  double nodes[NODES];
  for (int n = 0; n < NODES; ++n) nodes[n] = mesh_at_node(m, n);
  must(nc_put_var1_double(file, step_variables[0], start, &(double){step * DT}));
  must(nc_put_vara_double(file, step_variables[1], start, (size_t[]){1, FACES}, m->tracer));
  must(nc_put_vara_double(file, step_variables[2], start, (size_t[]){1, NODES}, nodes));
}

static void define_steps(int t, int face, int node, int* step_variables) {
  const int on_faces[2] = {t, face}, on_nodes[2] = {t, node};
  step_variables[0] = variable("time", NC_DOUBLE, 1, &t,
                               (const char*[]){"standard_name", "time", "long_name", "time", "units",
                                               "seconds since 2026-07-01 00:00:00", "calendar",
                                               "proleptic_gregorian", "axis", "T", NULL});
  step_variables[1] =
      variable("tracer", NC_DOUBLE, 2, on_faces,
               (const char*[]){"coordinates", "lat lon", "long_name", "concentration of the tracer", "units",
                               "kg m-3", "mesh", "mesh", "location", "face", "cell_measures", "area: area",
                               "cell_methods", "area: mean", NULL});
  step_variables[2] =
      variable("tracer_at_nodes", NC_DOUBLE, 2, on_nodes,
               (const char*[]){"coordinates", "node_lon node_lat", "long_name", "concentration of the tracer",
                               "units", "kg m-3", "mesh", "mesh", "location", "node", NULL});
}

int main(int argc, char** argv) {
  static mesh m;
  int places[4], step_variables[3];
  double next[FACES];
  if (argc != 3) return 2;
  must(nc_create(argv[1], NC_64BIT_DATA, &file));
  const int t = dimension("time", NC_UNLIMITED), face = dimension("face", FACES);
  const int node = dimension("node", NODES), corner = dimension("corner", CORNERS);
  const int vertices = dimension("vertices", CORNERS);
  must(nc_put_att_text(file, NC_GLOBAL, "Conventions", 16, "CF-1.8 UGRID-1.0"));
  must(nc_put_att_text(file, NC_GLOBAL, "title", 24, "A tracer in a round lake"));
  const int topology =
      variable("mesh", NC_INT, 0, NULL,
               (const char*[]){"cf_role", "mesh_topology", "node_coordinates", "node_lon node_lat",
                               "face_node_connectivity", "face_nodes", "face_face_connectivity", "face_links",
                               "face_dimension", "face", "face_coordinates", "lon lat", NULL});
  number(topology, "topology_dimension", 2);
  const int face_nodes = variable("face_nodes", NC_INT, 2, (const int[]){face, corner},
                                  (const char*[]){"cf_role", "face_node_connectivity", NULL});
  number(face_nodes, "start_index", 0);
  const int links = variable("face_links", NC_INT, 2, (const int[]){face, corner},
                             (const char*[]){"cf_role", "face_face_connectivity", NULL});
  number(links, "_FillValue", NOTHING);
  number(links, "start_index", 0);
  const int node_lon = variable("node_lon", NC_DOUBLE, 1, &node,
                                (const char*[]){"standard_name", "longitude", "units", "degrees_east", NULL});
  const int node_lat = variable("node_lat", NC_DOUBLE, 1, &node,
                                (const char*[]){"standard_name", "latitude", "units", "degrees_north", NULL});
  define_places((const int[]){face, vertices}, places);
  const int area = variable("area", NC_DOUBLE, 1, &face,
                            (const char*[]){"coordinates", "lat lon", "standard_name", "cell_area", "units",
                                            "m2", "mesh", "mesh", "location", "face", NULL});
  const int stream = variable("stream", NC_DOUBLE, 1, &node,
                              (const char*[]){"coordinates", "node_lon node_lat", "long_name",
                                              "stream function of the flow, by its depth", "units", "m2 s-1",
                                              "mesh", "mesh", "location", "node", NULL});
  define_steps(t, face, node, step_variables);
  must(nc_enddef(file));

  mesh_begin(&m);
  must(nc_put_var_int(file, topology, (const int[]){0}));
  must(nc_put_var_int(file, face_nodes, m.nodes[0]));
  must(nc_put_var_int(file, links, m.links[0]));
  put_places(&m, places, node_lon, node_lat);
  must(nc_put_var_double(file, area, m.area));
  must(nc_put_var_double(file, stream, m.stream));
  for (int step = 0; step <= atoi(argv[2]); ++step) {
    if (step % STEPS_APART == 0) put_step(&m, step, step_variables);
    for (int f = 0; f < FACES; ++f) next[f] = mesh_step(&m, f);
    memcpy(m.tracer, next, sizeof next);
  }
  must(nc_close(file));
  return 0;
}
