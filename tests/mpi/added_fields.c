/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A stream that gets fields and attributes while it runs: they begin with its next file.
 *
 *   added_fields PATTERN OPTIONS FIRST LAST ADD [HOW]
 *
 * Steps are at leads FIRST to LAST hours. The fields are there from the beginning but for `late`, `edge` and
 * `still`, which come behind the step at ADD hours, or before the first step if it lies behind that. `edge`
 * alone has the dimension `along`, which has a coordinate. HOW:
 * `saved` (a checkpoint is saved behind the last step, and the run is killed), `restarted` (it goes on behind
 * the checkpoint), `swapped` (likewise, without a checkpoint with existing=continue, and what comes later is
 * defined before `early`), `killed` (there is no checkpoint), `early` (puts `late` at once), `unput` (does
 * not put `still`), `other` (compute rank 1 defines another type), `alone` (compute rank 1 does not define),
 * `inside` (defines inside of a step), `few` (defines an attribute alone), `cut` (cuts the file CUT_FILE when
 * the step at ADD is durable), `marked` (makes a directory MARKER behind the step at ADD). */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tailrace.h>
#include <unistd.h>

enum { NY = 4, NX = 5, EDGES = 7 };
static int failures = 0, rank = 0;
static const char* how = "";

static int is(const char* name) { return strcmp(how, name) == 0; }
static int expect(int code) {
  if (code == TR_OK) return 1;
  ++failures;
  tr_log(tr_error());
  return 0;
}

static tr_layout *cells = NULL, *edges = NULL;
static double latitudes[NY * NX], longitudes[NY * NX];
static float early[NY * NX], late[NY * NX], still[NY * NX];
static int64_t edge[EDGES];
static int is_grib = 0, is_grib1 = 0; /* of either edition, of the first */
#define A_ROW                                                                       \
  "keys=\"gridType=regular_ll, Ni=20, Nj=1, latitudeOfFirstGridPointInDegrees=50, " \
  "longitudeOfFirstGridPointInDegrees=0, latitudeOfLastGridPointInDegrees=50, "     \
  "longitudeOfLastGridPointInDegrees=19\""

static tr_index owned = 0, owned_edges = 0, first_cell = 0, first_edge = 0;

/* GRIB2 knows fields by its own names, and has no edges. */
static const char* of_early(void) { return is_grib ? "t" : "early"; }
static const char* of_late(void) { return is_grib ? "q" : "late"; }

static void make_layouts(void) {
  static const tr_index shape[1] = {NY * NX}, all[1] = {EDGES};
  int32_t numbers[NY * NX];
  tr_index end = 0;
  for (int i = 0; i < NY * NX; ++i) numbers[i] = 7 * i;
  expect(tr_layout_block(1, shape, NULL, &cells));
  expect(tr_layout_dimensions(cells, "column"));
  expect(tr_layout_axis(cells, "column", TR_I32, NY * NX, numbers, NULL, NULL));
  expect(tr_layout_bounds(cells, 0, &first_cell, &end));
  owned = end - first_cell;
  for (tr_index i = 0; i < owned; ++i) {
    latitudes[i] = 50 + 0.25 * (double)(first_cell + i);
    longitudes[i] = 10 + (double)((first_cell + i) % NX);
    still[i] = (float)(first_cell + i) / 8;
  }
  if (is_grib)
    expect(tr_layout_georeference(cells, is_grib1 ? A_ROW : "keys=\"gridType=unstructured_grid\""));
  else
    expect(tr_layout_coordinates(cells, latitudes, longitudes, 0, NULL, NULL));
  expect(tr_layout_block(1, all, NULL, &edges));
  expect(tr_layout_dimensions(edges, "along"));
  expect(tr_layout_axis(edges, "along", TR_I32, EDGES, numbers, NULL, "units=km"));
  expect(tr_layout_bounds(edges, 0, &first_edge, &end));
  owned_edges = end - first_edge;
}

static int takes_attributes(const char* options) {
  return strstr(options, "cdf5") || strstr(options, "netcdf4") || strstr(options, "zarr");
}

static void define_late(tr_stream* stream, const char* options, int is_late) {
  static const double numbers[] = {1.5, 2.5};
  if (is("alone") && rank == 1) return;
  if (!is("few")) {
    const int type = is("other") && rank == 1 ? TR_F64 : TR_F32;
    if (!expect(tr_stream_define(stream, of_late(), cells, type,
                                 strstr(options, "interval") ? "operation=mean" : NULL)))
      return;
    if (!is_grib) expect(tr_stream_define(stream, "edge", edges, TR_I64, NULL));
  }
  if (!takes_attributes(options)) return;
  expect(tr_stream_attribute(stream, is("few") ? "early" : "late", "range", TR_F64, 2, numbers));
  if (is_late) expect(tr_stream_attribute_text(stream, NULL, "remark", "with more"));
  if (is("few")) return;
  expect(tr_stream_attribute(stream, "along", "spacing", TR_F64, 1, numbers));
  expect(tr_stream_define(stream, "still", cells, TR_F32, "time=none"));
  if (!is("unput")) expect(tr_stream_put(stream, "still", still));
}

static void step_at(tr_stream* stream, int hour, int add) {
  for (tr_index i = 0; i < owned; ++i) {
    early[i] = (float)(100 * hour + first_cell + i);
    late[i] = -early[i];
  }
  for (tr_index i = 0; i < owned_edges; ++i) edge[i] = 1000 * hour + first_edge + i;
  tr_stream_begin(stream, hour * INT64_C(3600));
  tr_stream_put(stream, of_early(), early);
  if (tr_stream_wants(stream, of_late()) || (is("early") && hour > add))
    tr_stream_put(stream, of_late(), late);
  if (tr_stream_wants(stream, "edge")) tr_stream_put(stream, "edge", edge);
}

static void define_early(tr_stream* stream, const char* options, int has_late) {
  expect(tr_stream_define(stream, of_early(), cells, TR_F32,
                          strstr(options, "interval") ? "operation=mean" : NULL));
  if (takes_attributes(options))
    expect(tr_stream_attribute_text(stream, NULL, "remark", has_late ? "with more" : "as it began"));
}

static void run(char** arguments) {
  const char* const options = arguments[2];
  int64_t first = atoi(arguments[3]);
  const int last = atoi(arguments[4]), add = atoi(arguments[5]);
  tr_stream* stream = NULL;
  tr_checkpoint* checkpoint = NULL;
  int found = 0;
  is_grib1 = strstr(options, "grib1") != NULL;
  is_grib = is_grib1 || strstr(options, "grib2") != NULL;
  make_layouts();
  if (is("saved") || is("restarted") || (is("swapped") && !strstr(options, "existing=continue"))) {
    expect(tr_checkpoint_create("added.restart", "keep=2", &checkpoint));
    expect(tr_checkpoint_begin(checkpoint, TR_LOAD, &found));
    if (found) tr_checkpoint_item(checkpoint, "hour", &first, TR_I64, NULL);
    expect(tr_checkpoint_end(checkpoint));
    if (found) ++first;
  }
  if (!expect(tr_stream_create(arguments[1], options, &stream))) return;
  if (is("swapped")) define_late(stream, options, 0);
  define_early(stream, options, add < first);
  if (add < first && !is("swapped")) define_late(stream, options, 0);
  for (int64_t hour = first; hour <= last; ++hour) {
    step_at(stream, (int)hour, add);
    if (is("inside") && hour == add) define_late(stream, options, 1);
    expect(tr_stream_end(stream));
    if (hour == add && !is("inside")) define_late(stream, options, 1);
    if (hour == add && is("cut")) {
      expect(tr_stream_wait(stream, TR_DURABLE));
      if (rank == 0 && truncate(getenv("CUT_FILE"), 10) != 0) ++failures;
    }
    // A file that is begun removes what has the name of its marker.
    if (hour == add && is("marked")) expect(tr_stream_wait(stream, TR_DURABLE));
    if (hour == add && is("marked") && rank == 0 && mkdir(getenv("MARKER"), 0755) != 0) ++failures;
  }
  if (is("saved")) {
    int64_t hour = last;
    expect(tr_checkpoint_begin(checkpoint, TR_SAVE, NULL));
    tr_checkpoint_item(checkpoint, "hour", &hour, TR_I64, NULL);
    expect(tr_checkpoint_end(checkpoint));
    expect(tr_checkpoint_wait(checkpoint));
  }
  if (is("saved") || is("killed")) {
    expect(tr_stream_wait(stream, TR_DURABLE));
    if (failures == 0) kill(getpid(), SIGKILL);
  }
  expect(tr_stream_close(&stream));
  if (checkpoint != NULL) expect(tr_checkpoint_close(&checkpoint));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  expect(tr_init(MPI_COMM_WORLD, &compute, NULL));
  if (argc > 6) how = argv[6];
  if (compute != MPI_COMM_NULL) MPI_Comm_rank(compute, &rank);
  if (argc >= 6 && compute != MPI_COMM_NULL) run(argv);
  expect(tr_layout_free(&cells));
  expect(tr_layout_free(&edges));
  expect(tr_finalize());
  MPI_Finalize();
  return failures > 0;
}
