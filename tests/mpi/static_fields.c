/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* An ocean model's grid: fields without time (mask, depth, metrics of several levels, numbers of edges) among
 * fields with time.
 *
 *   static_fields PATTERN OPTIONS FIRST STEPS [HOW]
 *
 * The first step is at lead FIRST hours, each step an hour later. HOW: `other` (another depth), `unput` (the
 * depth is not put), `twice` (the mask is put twice), `null` (compute rank 1 puts a null pointer), `within`
 * (the mask is put in a step, too), `late` (the mask is put behind the first step), `wide` (the depth is put
 * from an array that is wider than what the layout says), `define` (definitions that no stream takes), `read`
 * (OPTIONS are those of a stream that is read: all fields of STEPS steps are compared), `holes` (the same,
 * without a value for the depth where there is none), `attributes` (attributes
 * of all types), `over` (fields over some of their dimensions, with OPTIONS; STEPS steps from FIRST on),
 * `overchanged` (another operation of one), `overdefined` (over= that no field takes), `revised` (other
 * numbers in them), `retold` (another text, and another number of the file, in them), `misgiven` (attributes
 * that no stream takes), `alone` (no field has time, and all STEPS steps are empty ones), `aloneother`,
 * `aloneunput` (the same with another depth, and without it), `alonesaved` (a checkpoint is saved behind the
 * puts, and the first run is killed then), `alonesavedother` (the same with another depth), `aloneread` (such
 * a file is read). */
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>
#include <unistd.h>

enum { NY = 6, NX = 7, LEVELS = 3, EDGES = 11, MOST = NY * NX * LEVELS };
static int failures = 0, rank = 0, ranks = 1;

static void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  tr_log(tr_error());
}

static tr_layout *cells = NULL, *edges = NULL;
static int8_t mask[MOST];
static float depth[MOST], surface[MOST];
static double metric[MOST];
static int64_t number[EDGES];

/* Fills this rank's parts. `width` is how many elements of a row the array of the depth has. */
static void fill(int shift, tr_index* width, tr_index* rows) {
  tr_index lower[2], upper[2], first, last;
  expect(tr_layout_bounds(cells, 0, lower, upper));
  const tr_index count = (upper[0] - lower[0]) * (upper[1] - lower[1]);
  *rows = upper[0] - lower[0];
  *width = upper[1] - lower[1] + shift;
  tr_index i = 0;
  for (tr_index y = lower[0]; y < upper[0]; ++y) {
    for (tr_index x = lower[1]; x < upper[1]; ++x, ++i) {
      const double here = (double)(y * NX + x);
      mask[i] = (int8_t)((y + x) % 2);
      surface[i] = (float)here;
      for (tr_index level = 0; level < LEVELS; ++level)
        metric[level * count + i] = here + 1000.0 * (double)level;
      depth[(y - lower[0]) * *width + x - lower[1]] = here == 5 ? -1.0F : (float)(here * 10);
    }
  }
  expect(tr_layout_bounds(edges, 0, &first, &last));
  for (tr_index edge = first; edge < last; ++edge) number[edge - first] = ((int64_t)1 << 53) + 1 + edge;
}

static void define_wrongly(tr_stream* stream) {
  static const char* const wrong[] = {
      "time=some",         "time=none statistic=accum", "time=none accuracy=0.1",
      "time=none bits=12", "time=none chunks=3x3",      "time=none compress=none"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    expect(tr_stream_define(stream, "wrong", cells, TR_F32, wrong[i]));
}

/* Compute rank 0 gives the numbers, the others nothing. */
static int give(tr_stream* stream, const char* of, const char* name, int type, tr_index count,
                const void* values) {
  return tr_stream_attribute(stream, of, name, type, rank == 0 ? count : 0, rank == 0 ? values : NULL);
}

static void give_attributes(tr_stream* stream, const char* how) {
  const int is_revised = strcmp(how, "revised") == 0, is_retold = strcmp(how, "retold") == 0;
  const double weights[] = {0.5, NAN, INFINITY, 1.0 / 3.0};
  const float range[] = {0, is_revised ? 2000 : 1000}, spacing = 2.5F;
  const int16_t shorts[] = {-300, 300};
  expect(give(stream, NULL, "revision", TR_I32, 1, (const int32_t[]){is_retold ? 8 : 7}));
  expect(give(stream, NULL, "weights", TR_F64, 4, weights));
  expect(tr_stream_attribute_text(stream, NULL, "comment",
                                  is_retold ? "told anew"
                                            : "Meeresoberfl\xc3\xa4"
                                              "che \xe6\xb5\xb7"));
  expect(give(stream, "depth", "valid_range", TR_F32, 2, range));
  expect(give(stream, "surface", "shorts", TR_I16, 2, shorts));
  expect(give(stream, "surface", "small", TR_I8, 1, (const int8_t[]){-5}));
  expect(give(stream, "x", "spacing", TR_F32, 1, &spacing));
  expect(tr_stream_attribute_text(stream, "time", "comment", "of the model"));
  expect(give(stream, "number", "flag_values", TR_I64, 2, (const int64_t[]){((int64_t)1 << 53) + 1, -1}));
  expect(tr_stream_attribute_text(stream, "number", "flag_meanings", "edge none"));
  expect(give(stream, "surface", "bytes", TR_BYTE, 3, (const unsigned char[]){0, 128, 255}));
}

static void give_wrongly(tr_stream* stream) {
  const double one = 1, complex_one[2] = {1, 0};
  static const char* const reserved[] = {
      "_FillValue",   "scale_factor",      "coordinates",       "bounds",
      "grid_mapping", "_ARRAY_DIMENSIONS", "quantization_step", "cell_methods"};
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; ++i)
    expect(give(stream, "surface", reserved[i], TR_F64, 1, &one));
  expect(give(stream, "surface", "units", TR_F64, 1, &one));
  expect(give(stream, "time", "units", TR_F64, 1, &one));
  expect(give(stream, NULL, "Conventions", TR_F64, 1, &one));
  expect(give(stream, "nothing", "a", TR_F64, 1, &one));
  expect(give(stream, "edge", "a", TR_F64, 1, &one));
  expect(give(stream, "depth", "valid_range", TR_F64, 1, &one));
  expect(give(stream, "depth", "a/b", TR_F64, 1, &one));
  expect(give(stream, "depth", "a", TR_F64, 0, &one));
  expect(give(stream, "depth", "a", TR_F64, 1, NULL));
  expect(give(stream, "depth", "a", TR_F64, 100000, &one));
  expect(give(stream, "depth", "a", TR_C128, 1, complex_one));
  expect(give(stream, "depth", "a", 77, 1, &one));
  expect(tr_stream_attribute_text(stream, "depth", "a", "\xe4"));
  expect(tr_stream_attribute_text(stream, "depth", "flag_masks", "1 2"));
  expect(give(stream, "depth", "a", TR_F64, 1, &one)); /* the first that is right */
  expect(give(stream, "depth", "a", TR_F64, 1, &one));
  expect(tr_stream_attribute(stream, "depth", rank == 0 ? "b" : "c", TR_F64, 1, &one));
}

static void expect_values(const char* name, double got, double wanted, int64_t lead) {
  if (got == wanted) return;
  if (++failures < 10)
    printf("FAILED: rank %d, lead %lld: %s is %.17g, not %.17g\n", rank, (long long)lead, name, got, wanted);
}

/* Reads what write_steps() has written, in steps of an hour or, with between=linear, of 20 minutes. */
static void read_steps(char** arguments, const char* how) {
  static float at_surface[MOST], of_mask[MOST], of_depth[MOST];
  static double of_metric[MOST], of_number[EDGES];
  const int64_t step = strstr(arguments[2], "linear") ? 1200 : 3600;
  tr_stream* stream = NULL;
  tr_index width = 0, rows = 0, first = 0, last = 0;
  fill(0, &width, &rows);
  expect(tr_layout_bounds(edges, 0, &first, &last));
  expect(tr_stream_open(arguments[1], arguments[2], &stream));
  if (stream == NULL) return;
  expect(tr_stream_define(stream, "surface", cells, TR_F32, NULL));
  expect(tr_stream_define(stream, "mask", cells, TR_F32, "time=none"));
  expect(tr_stream_define(stream, "depth", cells, TR_F32, strcmp(how, "holes") == 0 ? NULL : "missing=-7"));
  expect(tr_stream_define(stream, "metric", cells, TR_F64, "levels=height:10,5"));
  expect(tr_stream_define(stream, "number", edges, TR_F64, NULL));
  for (int i = 0; i < atoi(arguments[4]) && failures == 0; ++i) {
    const int64_t lead = 3600 * atoi(arguments[3]) + step * i;
    tr_stream_begin(stream, lead);
    tr_stream_get(stream, "surface", at_surface);
    tr_stream_get(stream, "mask", of_mask);
    tr_stream_get(stream, "depth", of_depth);
    tr_stream_get(stream, "metric", of_metric);
    tr_stream_get(stream, "number", of_number);
    expect(tr_stream_end(stream));
    const tr_index count = rows * width;
    for (tr_index at = 0; at < count && failures == 0; ++at) {
      const float there = surface[at] + 100.0F * (float)lead / 3600.0F;
      if (!(at_surface[at] > there - 0.01F && at_surface[at] < there + 0.01F))
        expect_values("surface", at_surface[at], there, lead);
      expect_values("mask", of_mask[at], mask[at], lead);
      expect_values("depth", of_depth[at], depth[at] == -1 ? -7 : depth[at], lead);
      expect_values("metric at level 10", of_metric[at], metric[count + at], lead);
      expect_values("metric at level 5", of_metric[count + at], metric[at], lead);
    }
    for (tr_index edge = 0; edge < last - first && failures == 0; ++edge)
      expect_values("number", of_number[edge], (double)number[edge], lead);
  }
  expect(tr_stream_close(&stream));
}

enum { POINTS = 13 };
static float warm[MOST];
static int16_t counts[MOST];
static double points[POINTS], everywhere[NX];

/* Fills what this rank owns. Sums of these values depend on their order. */
static void fill_over(tr_layout* scattered, int lead) {
  tr_index lower[2], upper[2], i = 0, mine = 0;
  expect(tr_layout_bounds(cells, 0, lower, upper));
  const tr_index count = (upper[0] - lower[0]) * (upper[1] - lower[1]);
  for (tr_index y = lower[0]; y < upper[0]; ++y) {
    for (tr_index x = lower[1]; x < upper[1]; ++x, ++i) {
      for (tr_index level = 0; level < LEVELS; ++level) {
        const double here = (double)((level * NY + y) * NX + x);
        const int is_missing = y == 2 || (x == 3 && level != 1) || (y == 4 && x == 5);
        warm[level * count + i] = is_missing ? -7.0F : (float)(1000 * sin(here + lead));
      }
      counts[i] = (int16_t)((y * NX + x) * 700 + lead);
    }
  }
  expect(tr_layout_count(scattered, &mine));
  for (tr_index k = 0; k < mine; ++k) points[k] = sin(3.0 * (double)(POINTS - 1 - (k * ranks + rank)) + lead);
  for (int x = 0; x < NX; ++x) everywhere[x] = x - 2.5 + lead;
}

/* Numbers that this rank owns of POINTS: dealt out in turn, the last one first. */
static tr_layout* deal_points(void) {
  tr_layout* scattered = NULL;
  tr_index numbers[POINTS], count = 0;
  for (tr_index k = rank; k < POINTS; k += ranks) numbers[count++] = POINTS - 1 - k;
  const tr_index shape[1] = {POINTS};
  expect(tr_layout_indexed(1, shape, count, numbers, 0, &scattered));
  expect(tr_layout_dimensions(scattered, "point"));
  return scattered;
}

static void define_over_wrongly(tr_stream* stream) {
  static const char* const wrong[] = {"over=x",
                                      "over=median:x",
                                      "over=mean:z",
                                      "over=mean:x,x",
                                      "over=mean:",
                                      "over=mean:x time=none",
                                      "over=mean:levels",
                                      "over=mean:x missing=0.1",
                                      "over=mean:x,y operation=mean"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    expect(tr_stream_define(stream, "wrong", cells, i == 7 ? TR_I16 : TR_F32, wrong[i]));
  expect(tr_stream_define(stream, "wrong", cells, TR_C64, "over=mean:x"));
  tr_layout* unnamed = NULL;
  static const tr_index shape[2] = {NY, NX};
  expect(tr_layout_block(2, shape, NULL, &unnamed));
  expect(tr_stream_define(stream, "wrong", unnamed, TR_F32, "over=mean:x"));
  expect(tr_layout_free(&unnamed));
  expect(tr_stream_define(stream, "2t", cells, TR_F32, "over=mean:x")); /* only GRIB refuses it */
}

static const struct {
  const char *name, *options;
  int of; /* 0: warm, 1: counts, 2: points, 3: everywhere, 4: warm at the first level on the map */
} over_fields[] = {{"warm", "levels=height:5,10,20 missing=-7", 0},
                   {"zonal", "levels=height:5,10,20 missing=-7 over=mean:x", 0},
                   {"meridional", "levels=height:5,10,20 missing=-7 over=sum:y", 0},
                   {"profile", "levels=height:5,10,20 missing=-7 over=mean:y,x", 0},
                   {"column", "levels=height:5,10,20 missing=-7 over=sum:levels", 0},
                   {"section", "levels=height:5,10,20 missing=-7 over=mean:levels,y", 0},
                   {"most", "levels=height:5,10,20 missing=-7 over=maximum:levels,y,x", 0},
                   {"least", "levels=height:5,10,20 over=minimum:x,y", 0},
                   {"rounded", "over=mean:x", 1},
                   {"lowest", "over=minimum:y", 1},
                   {"points", "over=sum:point", 2},
                   {"everywhere", "over=mean:x", 3},
                   {"map", "missing=-7", 4},
                   {"map_zonal", "missing=-7 over=mean:lon", 4},
                   {"map_mean", "missing=-7 over=mean:lat,lon", 4}};

/* Points of a map in three dimensions with names. */
static void define_deep_map(tr_stream* stream) {
  static const tr_index shape[3] = {1, NY, NX};
  tr_layout* deep = NULL;
  expect(tr_layout_block(3, shape, NULL, &deep));
  expect(tr_layout_dimensions(deep, "k,y,x"));
  expect(
      tr_layout_georeference(deep,
                             "keys='gridType=regular_ll, Ni=7, Nj=6, latitudeOfFirstGridPointInDegrees=50, "
                             "latitudeOfLastGridPointInDegrees=45, longitudeOfFirstGridPointInDegrees=0, "
                             "longitudeOfLastGridPointInDegrees=12, iDirectionIncrementInDegrees=2'"));
  expect(tr_stream_define(stream, "deep", deep, TR_F32, "over=mean:x"));
  expect(tr_layout_free(&deep));
}

/* Fields of which several are one array over other dimensions. With interval= they are means over time first.
 */
static void write_over(char** arguments, const char* how) {
  static const tr_index row[1] = {NX}, shape[2] = {NY, NX};
  const int count = (int)(sizeof over_fields / sizeof *over_fields);
  const int is_timed = strstr(arguments[2], "interval") != NULL;
  tr_layout *replicated = NULL, *map = NULL, *scattered = deal_points();
  tr_stream* stream = NULL;
  expect(tr_layout_replicated(1, row, &replicated));
  expect(tr_layout_dimensions(replicated, "x"));
  expect(tr_layout_block(2, shape, NULL, &map));
  expect(tr_layout_georeference(map,
                                "keys='gridType=regular_ll, latitudeOfFirstGridPointInDegrees=50, "
                                "latitudeOfLastGridPointInDegrees=45, longitudeOfFirstGridPointInDegrees=0, "
                                "longitudeOfLastGridPointInDegrees=12, iDirectionIncrementInDegrees=2'"));
  expect(tr_stream_create(arguments[1], arguments[2], &stream));
  if (stream != NULL && strcmp(how, "overdefined") == 0) {
    define_over_wrongly(stream);
    define_deep_map(stream);
  }
  for (int i = 0; stream != NULL && failures == 0 && i < count; ++i) {
    tr_layout* const layouts[] = {cells, cells, scattered, replicated, map};
    static const int types[] = {TR_F32, TR_I16, TR_F64, TR_F64, TR_F32};
    char options[200];
    const int is_other = strcmp(how, "overchanged") == 0 && strcmp(over_fields[i].name, "rounded") == 0;
    snprintf(options, sizeof options, "%s%s", is_other ? "over=maximum:x" : over_fields[i].options,
             is_timed ? " operation=mean" : "");
    expect(tr_stream_define(stream, over_fields[i].name, layouts[over_fields[i].of], types[over_fields[i].of],
                            options));
  }
  for (int step = 0; stream != NULL && failures == 0 && step < atoi(arguments[4]); ++step) {
    const int hour = atoi(arguments[3]) + step;
    const void* const arrays[] = {warm, counts, points, everywhere, warm};
    fill_over(scattered, hour);
    tr_stream_begin(stream, 3600 * hour);
    for (int i = 0; i < count; ++i) tr_stream_put(stream, over_fields[i].name, arrays[over_fields[i].of]);
    expect(tr_stream_end(stream));
  }
  if (stream != NULL) expect(tr_stream_close(&stream));
  expect(tr_layout_free(&scattered));
  expect(tr_layout_free(&replicated));
  expect(tr_layout_free(&map));
}

/* A stream without any field that has time, as for a file that describes the grid. */
static void write_alone(char** arguments, const char* how) {
  tr_stream* stream = NULL;
  tr_checkpoint* saved = NULL;
  tr_index width = 0, rows = 0;
  int64_t generation = 0;
  int found = 0;
  fill(0, &width, &rows);
  if (strcmp(how, "aloneother") == 0)
    for (int i = 0; i < MOST; ++i) depth[i] += 1;
  if (strncmp(how, "alonesaved", 10) == 0) {
    expect(tr_checkpoint_create("alone/restart", NULL, &saved));
    expect(tr_checkpoint_begin(saved, TR_LOAD, &found));
    if (found) tr_checkpoint_item(saved, "generation", &generation, TR_I64, NULL);
    expect(tr_checkpoint_end(saved));
    if (found && strcmp(how, "alonesavedother") == 0)
      for (int i = 0; i < MOST; ++i) depth[i] += 1;
  }
  expect(tr_stream_create(arguments[1], arguments[2], &stream));
  if (stream == NULL) return;
  expect(tr_stream_define(stream, "mask", cells, TR_I8,
                          "time=none attributes=\"flag_values='0,1', flag_meanings='sea land'\""));
  expect(tr_stream_define(stream, "depth", cells, TR_F32, "time=none missing=-1 attributes=\"units=m\""));
  expect(tr_stream_define(stream, "metric", cells, TR_F64, "time=none levels=height:5,10,20"));
  expect(tr_stream_put(stream, "mask", mask));
  if (strcmp(how, "aloneunput") != 0) expect(tr_stream_put(stream, "depth", depth));
  expect(tr_stream_put(stream, "metric", metric));
  for (int step = 0; step < atoi(arguments[4]); ++step) {
    tr_stream_begin(stream, 3600 * step);
    expect(tr_stream_end(stream));
  }
  if (saved != NULL) {
    ++generation;
    expect(tr_checkpoint_begin(saved, TR_SAVE, NULL));
    tr_checkpoint_item(saved, "generation", &generation, TR_I64, NULL);
    expect(tr_checkpoint_end(saved));
    expect(tr_checkpoint_wait(saved));
    if (generation == 1) kill(getpid(), SIGKILL);
  }
  expect(tr_stream_close(&stream));
  if (saved != NULL) expect(tr_checkpoint_close(&saved));
}

/* Reads what write_alone() has written, in a step at lead 0. */
static void read_alone(char** arguments) {
  static float of_mask[MOST], of_depth[MOST];
  tr_stream* stream = NULL;
  tr_index width = 0, rows = 0;
  fill(0, &width, &rows);
  expect(tr_stream_open(arguments[1], arguments[2], &stream));
  if (stream == NULL) return;
  expect(tr_stream_define(stream, "mask", cells, TR_F32, NULL));
  expect(tr_stream_define(stream, "depth", cells, TR_F32, "missing=-7"));
  tr_stream_begin(stream, 0);
  tr_stream_get(stream, "mask", of_mask);
  tr_stream_get(stream, "depth", of_depth);
  expect(tr_stream_end(stream));
  for (tr_index at = 0; at < rows * width && failures == 0; ++at) {
    expect_values("mask", of_mask[at], mask[at], 0);
    expect_values("depth", of_depth[at], depth[at] == -1 ? -7 : depth[at], 0);
  }
  expect(tr_stream_close(&stream));
}

static void write_steps(char** arguments, int count) {
  const char* const how = count > 5 ? arguments[5] : "";
  static const tr_index shape[2] = {NY, NX}, all_edges[1] = {EDGES};
  tr_stream* stream = NULL;
  expect(tr_layout_block(2, shape, NULL, &cells));
  expect(tr_layout_dimensions(cells, "y,x"));
  expect(tr_layout_block(1, all_edges, NULL, &edges));
  expect(tr_layout_dimensions(edges, "edge"));
  const int gives =
      strcmp(how, "attributes") == 0 || strcmp(how, "revised") == 0 || strcmp(how, "retold") == 0;
  if (gives) {
    double x[NX];
    for (int i = 0; i < NX; ++i) x[i] = 2.5 * i;
    expect(tr_layout_axis(cells, "x", TR_F64, NX, x, NULL, "units=m attributes='valid_min=-1'"));
  }
  if (strcmp(how, "read") == 0 || strcmp(how, "holes") == 0) {
    read_steps(arguments, how);
    return;
  }
  if (strncmp(how, "alone", 5) == 0) {
    strcmp(how, "aloneread") == 0 ? read_alone(arguments) : write_alone(arguments, how);
    return;
  }
  if (strncmp(how, "over", 4) == 0) {
    write_over(arguments, how);
    return;
  }
  expect(tr_stream_create(arguments[1], arguments[2], &stream));
  if (stream == NULL) return;
  tr_index width = 0, rows = 0;
  fill(strcmp(how, "wide") == 0 ? 2 : 0, &width, &rows);
  if (strcmp(how, "define") == 0) define_wrongly(stream);
  expect(tr_stream_define(stream, "mask", cells, TR_I8,
                          "time=none attributes=\"flag_values='0,1', flag_meanings='sea land'\""));
  if (strcmp(how, "define") == 0) return;
  expect(tr_stream_put(stream, "mask", mask));
  expect(tr_stream_define(
      stream, "surface", cells, TR_F32,
      strcmp(how, "places") == 0 ? "attributes=\"units=m, coordinates=mask\"" : "attributes=\"units=m\""));
  expect(tr_stream_define(stream, "depth", cells, TR_F32, "time=none missing=-1 attributes=\"units=m\""));
  expect(tr_stream_define(stream, "metric", cells, TR_F64, "time=none levels=height:5,10,20"));
  expect(tr_stream_define(stream, "number", edges, TR_I64, "time=none"));
  if (gives) give_attributes(stream, how);
  if (strcmp(how, "misgiven") == 0) give_wrongly(stream);
  if (strcmp(how, "other") == 0)
    for (int i = 0; i < MOST; ++i) depth[i] += 1;
  expect(tr_stream_put(stream, "number", number));
  if (strcmp(how, "wide") == 0)
    expect(tr_stream_put_array(stream, "depth", depth, TR_F32, 2, (const tr_index[]){rows, width - 2},
                               (const tr_index[]){width * 4, 4}));
  else if (strcmp(how, "unput") != 0)
    expect(tr_stream_put(stream, "depth", strcmp(how, "null") == 0 && rank == 1 ? NULL : depth));
  expect(tr_stream_put(stream, "metric", metric));
  if (strcmp(how, "twice") == 0) expect(tr_stream_put(stream, "mask", mask));
  for (int step = 0; step < atoi(arguments[4]); ++step) {
    for (int i = 0; i < NX * NY; ++i) surface[i] += step == 0 ? 0.0F : 100.0F;
    tr_stream_begin(stream, 3600 * (atoi(arguments[3]) + step));
    tr_stream_put(stream, "surface", surface);
    if (strcmp(how, "within") == 0) tr_stream_put(stream, "mask", mask);
    expect(tr_stream_end(stream));
    if (strcmp(how, "late") == 0 && step == 0) expect(tr_stream_put(stream, "mask", mask));
    if (gives && step == 0) {
      if (tr_stream_attribute_text(stream, NULL, "late", "") != TR_ERR_STATE) ++failures;
    }
  }
  expect(tr_stream_close(&stream));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  expect(tr_init(MPI_COMM_WORLD, &compute, NULL));
  if (compute != MPI_COMM_NULL) MPI_Comm_rank(compute, &rank), MPI_Comm_size(compute, &ranks);
  if (argc >= 5 && compute != MPI_COMM_NULL) write_steps(argv, argc);
  expect(tr_layout_free(&cells));
  expect(tr_layout_free(&edges));
  expect(tr_finalize());
  MPI_Finalize();
  return failures > 0;
}
