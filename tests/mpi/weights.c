/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Fields that are means and sums over some of their dimensions, weighted by fields without time.
 *
 *   weights PATTERN OPTIONS FIRST STEPS [HOW]
 *
 * The first step is at lead FIRST hours, each step an hour later. HOW: `wrong` (definitions that no stream
 * takes), `negative` (a weight is negative when it is put), `defined` (the same, and the field that needs it
 * is defined later), `late` (the weights of levels are put before the field that needs them is defined),
 * `zero` (integers without missing=, and a row of weights that are all 0), `unput` (weights are not put),
 * `other` (another field has the weights). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

enum { NY = 6, NX = 7, LEVELS = 3, MOST = NY * NX * LEVELS };
static int failures = 0, rank = 0;
static const char* how = "";

static int is(const char* name) { return strcmp(how, name) == 0; }
static void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  tr_log(tr_error());
}

static tr_layout *cells = NULL, *map = NULL, *columns = NULL, *rows = NULL, *one = NULL;
static float warm[MOST];
static int16_t counts[MOST];
static double area[MOST], thick[MOST], across[NX], layer[LEVELS], weights_of_rows[NY];

#define GLOBE                                                                   \
  "keys='gridType=regular_ll, latitudeOfFirstGridPointInDegrees=50, "           \
  "latitudeOfLastGridPointInDegrees=45, longitudeOfFirstGridPointInDegrees=0, " \
  "longitudeOfLastGridPointInDegrees=12, iDirectionIncrementInDegrees=2'"

static void make_layouts(void) {
  static const tr_index shape[2] = {NY, NX}, row[1] = {NX}, column[1] = {NY};
  expect(tr_layout_block(2, shape, NULL, &cells));
  expect(tr_layout_dimensions(cells, "y,x"));
  expect(tr_layout_block(2, shape, NULL, &map));
  expect(tr_layout_georeference(map, GLOBE));
  expect(tr_layout_block(1, row, NULL, &columns));
  expect(tr_layout_dimensions(columns, "x"));
  expect(tr_layout_replicated(1, column, &rows));
  expect(tr_layout_dimensions(rows, "y"));
  expect(tr_layout_replicated(0, NULL, &one));
}

/* Fills what this rank owns. Sums of these values depend on their order. */
static void fill(int lead) {
  tr_index lower[2], upper[2], first = 0, last = 0, i = 0;
  expect(tr_layout_bounds(cells, 0, lower, upper));
  const tr_index count = (upper[0] - lower[0]) * (upper[1] - lower[1]);
  for (tr_index y = lower[0]; y < upper[0]; ++y) {
    for (tr_index x = lower[1]; x < upper[1]; ++x, ++i) {
      const double here = (double)(y * NX + x);
      area[i] = y == 3 ? 0 : y == 1 && x == 2 ? -9 : 1.5 + cos(here); /* -9 is missing */
      if ((is("negative") || is("defined")) && here == 4) area[i] = -0.5;
      counts[i] = (int16_t)(here * 700 + lead);
      for (tr_index level = 0; level < LEVELS; ++level) {
        const double there = here + (double)(level * NY * NX);
        warm[level * count + i] =
            (y == 2 && x > 1) || (x == 3 && level != 1) ? -7.0F : (float)(1000 * sin(there + lead));
        thick[level * count + i] = y == 5 ? 0 : 2 + sin(3 * there);
      }
    }
  }
  expect(tr_layout_bounds(columns, 0, &first, &last));
  for (tr_index x = first; x < last; ++x) across[x - first] = 1.0 / (double)(x + 1);
  /* The numbers of compute rank 0 count. */
  for (int y = 0; y < NY; ++y) weights_of_rows[y] = rank == 0 ? 10 - y : 99;
  for (int level = 0; level < LEVELS; ++level) layer[level] = rank == 0 ? 1 + level * level : 99;
}

static const struct {
  const char *name, *options;
  int of; /* 0: warm on cells, 1: counts, 2: warm at the first level on the map */
} fields[] = {{"warm", "levels=height:5,10,20 missing=-7", 0},
              {"mean_area", "levels=height:5,10,20 missing=-7 over=mean:y,x weights=area", 0},
              {"sum_area", "levels=height:5,10,20 missing=-7 over=sum:y,x weights=area", 0},
              {"zonal_area", "levels=height:5,10,20 missing=-7 over=mean:x weights=area", 0},
              {"open_zonal", "levels=height:5,10,20 over=mean:x weights=area", 0},
              {"zonal_across", "levels=height:5,10,20 missing=-7 over=mean:x weights=across", 0},
              {"mean_rows", "levels=height:5,10,20 missing=-7 over=mean:x,y weights=rows", 0},
              {"mean_thick", "levels=height:5,10,20 missing=-7 over=mean:y,x weights=thick", 0},
              {"column_thick", "levels=height:5,10,20 missing=-7 over=mean:levels weights=thick", 0},
              {"content", "levels=height:5,10,20 missing=-7 over=sum:levels weights=thick", 0},
              {"column_layer", "levels=height:5,10,20 missing=-7 over=mean:levels weights=layer", 0},
              {"section", "levels=height:5,10,20 missing=-7 over=mean:levels,y weights=area", 0},
              {"counts_across", "over=mean:x weights=across", 1},
              {"map_area", "missing=-7 over=mean:lat,lon weights=globe", 2}};

static void define_wrongly(tr_stream* stream) {
  static const char* const wrong[] = {"over=mean:x weights=nothing",
                                      "over=mean:x weights=warm",
                                      "weights=area",
                                      "over=maximum:x weights=area",
                                      "over=mean:x weights=rows",
                                      "over=mean:x weights=thick",
                                      "over=mean:x weights=flag",
                                      "levels=height:1,2,3 over=mean:levels weights=area",
                                      "levels=height:1,2 over=mean:levels weights=thick",
                                      "levels=height:20,10,5 over=mean:levels weights=layer",
                                      "levels=height:5,10,21 over=mean:x weights=thick",
                                      "levels=depth:5,10,20 over=mean:x weights=thick",
                                      "levels=height:1,2,3 over=mean:levels,x weights=thick"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    expect(tr_stream_define(stream, "wrong", cells, TR_F32, wrong[i]));
  expect(tr_stream_define(stream, "wrong", map, TR_F32, "over=mean:lon weights=across"));
  expect(tr_stream_define(stream, "wrong", rows, TR_F32, "over=mean:y weights=area"));
}

static void define_weights(tr_stream* stream) {
  expect(tr_stream_define(stream, "area", cells, TR_F64, "time=none missing=-9"));
  expect(tr_stream_define(stream, "thick", cells, TR_F64, "time=none levels=height:5,10,20"));
  expect(tr_stream_define(stream, "across", columns, TR_F64, "time=none"));
  expect(tr_stream_define(stream, "rows", rows, TR_F64, "time=none"));
  expect(tr_stream_define(stream, "layer", one, TR_F64, "time=none levels=height:5,10,20"));
  expect(tr_stream_define(stream, "globe", map, TR_F64, "time=none missing=-9"));
}

static void put_weights(tr_stream* stream) {
  if (!is("unput")) expect(tr_stream_put(stream, "area", area));
  expect(tr_stream_put(stream, "thick", thick));
  expect(tr_stream_put(stream, "across", across));
  expect(tr_stream_put(stream, "rows", weights_of_rows));
  expect(tr_stream_put(stream, "layer", layer));
  expect(tr_stream_put(stream, "globe", area));
}

static void write_steps(char** arguments) {
  const int is_timed = strstr(arguments[2], "interval") != NULL;
  const int count = (int)(sizeof fields / sizeof *fields);
  tr_stream* stream = NULL;
  make_layouts();
  fill(0);
  expect(tr_stream_create(arguments[1], arguments[2], &stream));
  if (stream == NULL) return;
  define_weights(stream);
  if (is("late") || is("defined")) put_weights(stream);
  if (is("wrong")) {
    expect(tr_stream_define(stream, "flag", cells, TR_TEXT(4), "time=none"));
    expect(tr_stream_define(stream, "warm", cells, TR_F32, "levels=height:5,10,20 missing=-7"));
    define_wrongly(stream);
  }
  if (is("zero")) expect(tr_stream_define(stream, "zero", cells, TR_I16, "over=mean:x weights=area"));
  for (int i = 0; failures == 0 && i < count; ++i) {
    tr_layout* const layouts[] = {cells, cells, map};
    static const int types[] = {TR_F32, TR_I16, TR_F32};
    char options[200];
    const int is_other = is("other") && strcmp(fields[i].name, "zonal_area") == 0;
    snprintf(options, sizeof options, "%s%s",
             is_other ? "levels=height:5,10,20 missing=-7 over=mean:x weights=across" : fields[i].options,
             is_timed ? " operation=mean" : "");
    expect(tr_stream_define(stream, fields[i].name, layouts[fields[i].of], types[fields[i].of], options));
  }
  if (!is("late") && !is("defined") && !is("wrong")) put_weights(stream);
  for (int step = 0; failures == 0 && step < atoi(arguments[4]); ++step) {
    const int hour = atoi(arguments[3]) + step;
    fill(hour);
    tr_stream_begin(stream, 3600 * hour);
    for (int i = 0; i < count; ++i)
      tr_stream_put(stream, fields[i].name, fields[i].of == 1 ? (const void*)counts : (const void*)warm);
    if (is("zero")) tr_stream_put(stream, "zero", counts);
    expect(tr_stream_end(stream));
  }
  expect(tr_stream_close(&stream));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  expect(tr_init(MPI_COMM_WORLD, &compute, NULL));
  if (argc > 5) how = argv[5];
  if (compute != MPI_COMM_NULL) MPI_Comm_rank(compute, &rank);
  if (argc >= 5 && compute != MPI_COMM_NULL) write_steps(argv);
  expect(tr_layout_free(&cells));
  expect(tr_layout_free(&map));
  expect(tr_layout_free(&columns));
  expect(tr_layout_free(&rows));
  expect(tr_layout_free(&one));
  expect(tr_finalize());
  MPI_Finalize();
  return failures > 0;
}
