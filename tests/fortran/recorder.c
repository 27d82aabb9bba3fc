// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A library that takes Tailrace's place in tests of the Fortran face, and records what the face passes to it:
// the last call as one line of text, and the elements of the last array that was put, packed in C order. With
// RECORDER_REFUSE=tr_stream_end this function fails.
#include "recorder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tr_stream {
  int unused;
};

static char line[65536], failure[256];
static unsigned char packed[65536];
static int64_t packed_bytes;
// Handles are never released, so they need not be allocated.
static struct tr_layout layouts[64];
static struct tr_stream streams[64];
static unsigned made_layouts, made_streams;

const char* recorder_line(void) { return line; }
const void* recorder_packed(int64_t* bytes) {
  *bytes = packed_bytes;
  return packed;
}

void say(const char* format, ...) {
  const size_t used = strlen(line);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + used, sizeof line - used, format, arguments);
  va_end(arguments);
}
void begin(const char* name) {
  line[0] = '\0';
  say("%s", name);
}
void say_indices(const char* name, int count, const tr_index* values) {
  say(values ? " %s=" : " %s=none", name);
  for (int i = 0; values && i < count; ++i) say(i ? ",%lld" : "%lld", (long long)values[i]);
}
static void say_ints(const char* name, int count, const int* values) {
  say(values ? " %s=" : " %s=none", name);
  for (int i = 0; values && i < count; ++i) say(i ? ",%d" : "%d", values[i]);
}
int verdict(const char* name) {
  const char* refused = getenv("RECORDER_REFUSE");
  if (!refused || strcmp(refused, name) != 0) return TR_OK;
  snprintf(failure, sizeof failure, "%s: refused by the recorder", name);
  return TR_ERR_IO;
}
int refuse(int code, const char* text) {
  snprintf(failure, sizeof failure, "%s", text);
  return code;
}
static int make(int ndims, const tr_index* shape, const tr_index* halo, tr_layout** layout) {
  if (ndims < 1 || ndims > 7) {
    snprintf(failure, sizeof failure, "a layout has 1 to 7 dimensions, not %d", ndims);
    return TR_ERR_ARGUMENT;
  }
  *layout = &layouts[made_layouts++ % 64];
  memset(*layout, 0, sizeof **layout);
  (*layout)->ndims = ndims;
  memcpy((*layout)->shape, shape, (size_t)ndims * sizeof *shape);
  if (halo) memcpy((*layout)->halo, halo, (size_t)ndims * sizeof *halo);
  return TR_OK;
}

const char* tr_error(void) { return failure; }
const char* tr_version(void) { return "0.1.0"; }
void tr_log(const char* message) { fprintf(stderr, "%s\n", message); }
void tr_print_once_f(const char* text) { fprintf(stderr, "%s\n", text); }
int tr_progress(void) { return verdict("tr_progress"); }
int tr_should_stop(void) {
  static int calls;
  begin("tr_should_stop");
  return calls++ > 0;  // no, and from then on yes
}
int tr_init(MPI_Comm world, MPI_Comm* compute, const char* options) {
  begin("tr_init");
  say(" options=[%s]", options);
  *compute = world;
  return verdict("tr_init");
}
int tr_init_f(MPI_Fint world, MPI_Fint* compute, const char* options) {
  begin("tr_init");
  say(" world=%d options=[%s]", (int)world, options);
  *compute = world + 1;
  return verdict("tr_init");
}
int tr_finalize(void) {
  begin("tr_finalize");
  return verdict("tr_finalize");
}

int tr_layout_block(int ndims, const tr_index* shape, const tr_index* halo, tr_layout** layout) {
  begin("tr_layout_block");
  say_indices("shape", ndims, shape);
  say_indices("halo", ndims, halo);
  return make(ndims, shape, halo, layout);
}
int tr_layout_block_grid(int ndims, const tr_index* shape, const tr_index* halo, const int* grid,
                         tr_layout** layout) {
  begin("tr_layout_block_grid");
  say_indices("shape", ndims, shape);
  say_indices("halo", ndims, halo);
  say_ints("grid", ndims, grid);
  return make(ndims, shape, halo, layout);
}
int tr_layout_block_cyclic(int ndims, const tr_index* shape, const tr_index* block, const int* grid,
                           tr_layout** layout) {
  begin("tr_layout_block_cyclic");
  say_indices("shape", ndims, shape);
  say_indices("block", ndims, block);
  say_ints("grid", ndims, grid);
  return make(ndims, shape, NULL, layout);
}
int tr_layout_weighted(int ndims, const tr_index* shape, const tr_index* halo, const int* grid,
                       const double* const* weights, tr_layout** layout) {
  begin("tr_layout_weighted");
  say_indices("shape", ndims, shape);
  say_indices("halo", ndims, halo);
  say_ints("grid", ndims, grid);
  for (int d = 0; d < ndims; ++d) {
    say(" weights%d=", d);
    for (int i = 0; i < grid[d]; ++i) say(i ? ",%g" : "%g", weights[d][i]);
  }
  return make(ndims, shape, halo, layout);
}
int tr_layout_box(int ndims, const tr_index* shape, const tr_index* halo, const tr_index* lower,
                  const tr_index* upper, tr_layout** layout) {
  begin("tr_layout_box");
  say_indices("shape", ndims, shape);
  say_indices("halo", ndims, halo);
  say_indices("lower", ndims, lower);
  say_indices("upper", ndims, upper);
  return make(ndims, shape, halo, layout);
}
int tr_layout_boxes(int ndims, const tr_index* shape, const tr_index* halo, tr_index count,
                    const tr_index* lower, const tr_index* upper, int unowned, tr_layout** layout) {
  begin("tr_layout_boxes");
  say_indices("shape", ndims, shape);
  say_indices("halo", ndims, halo);
  say(" count=%d", (int)count);
  say_indices("lower", count < 0 ? 0 : ndims * (int)count, lower);
  say_indices("upper", count < 0 ? 0 : ndims * (int)count, upper);
  say(" unowned=%d", unowned);
  return make(ndims, shape, halo, layout);
}
int tr_layout_indexed(int ndims, const tr_index* shape, tr_index count, const tr_index* indices, int base,
                      tr_layout** layout) {
  begin("tr_layout_indexed");
  say_indices("shape", ndims, shape);
  say_indices("indices", (int)count, indices);
  say(" base=%d", base);
  return make(ndims, shape, NULL, layout);
}
int tr_layout_replicated(int ndims, const tr_index* shape, tr_layout** layout) {
  begin("tr_layout_replicated");
  say_indices("shape", ndims, shape);
  if (ndims == 0) return (*layout = &layouts[made_layouts++ % 64])->ndims = 0, TR_OK;
  return make(ndims, shape, NULL, layout);
}
int tr_layout_callback(int ndims, const tr_index* shape, int (*owner)(const tr_index* index, void* context),
                       void* context, tr_layout** layout) {
  const tr_index index[7] = {10, 11, 12, 13, 14, 15, 16};
  begin("tr_layout_callback");
  say_indices("shape", ndims, shape);
  say(" owner=%d", owner(index, context));
  return make(ndims, shape, NULL, layout);
}
int tr_layout_bounds(const tr_layout* layout, int with_halo, tr_index* lower, tr_index* upper) {
  for (int d = 0; d < layout->ndims; ++d) {
    lower[d] = 5 * d - (with_halo ? layout->halo[d] : 0);
    upper[d] = 5 * d + layout->shape[d] + (with_halo ? layout->halo[d] : 0);
  }
  return verdict("tr_layout_bounds");
}
int tr_layout_count(const tr_layout* layout, tr_index* count) {
  *count = 1;
  for (int d = 0; d < layout->ndims; ++d) *count *= layout->shape[d];
  return verdict("tr_layout_count");
}
int tr_layout_dimensions(tr_layout* layout, const char* names) {
  (void)layout;
  begin("tr_layout_dimensions");
  say(" [%s]", names);
  return verdict("tr_layout_dimensions");
}
int tr_layout_axis(tr_layout* layout, const char* dimension, int type, tr_index count, const void* values,
                   const void* bounds, const char* options) {
  (void)layout, (void)values;
  begin("tr_layout_axis");
  say(" [%s] type=%d count=%lld bounds=%s [%s]", dimension, type, (long long)count,
      bounds == NULL ? "no" : "yes", options);
  return verdict("tr_layout_axis");
}
int tr_layout_georeference(tr_layout* layout, const char* options) {
  (void)layout;
  begin("tr_layout_georeference");
  say(" [%s]", options);
  return verdict("tr_layout_georeference");
}
int tr_layout_coordinates_array(tr_layout* layout, const double* latitudes, const double* longitudes,
                                int ndims, const tr_index* extents, int corners,
                                const double* latitude_bounds, const double* longitude_bounds) {
  (void)layout;
  begin("tr_layout_coordinates_array");
  for (int d = 0; d < ndims; ++d) say(d == 0 ? " extents=%lld" : ",%lld", (long long)extents[d]);
  if (ndims == 0) say("%s", " no extents");
  if (ndims > 0) say(" first=%g,%g corners=%d", latitudes[0], longitudes[0], corners);
  if (corners > 0 && ndims > 0) say(" second corner=%g,%g", latitude_bounds[1], longitude_bounds[1]);
  return verdict("tr_layout_coordinates_array");
}
int tr_layout_free(tr_layout** layout) {
  *layout = NULL;
  return TR_OK;
}

int tr_stream_create(const char* pattern, const char* options, tr_stream** stream) {
  begin("tr_stream_create");
  say(" [%s] [%s]", pattern, options);
  *stream = &streams[made_streams++ % 64];
  return verdict("tr_stream_create");
}
int tr_stream_define(tr_stream* stream, const char* field, const tr_layout* layout, int type,
                     const char* options) {
  (void)stream;
  (void)layout;
  begin("tr_stream_define");
  say(" [%s] type=%d [%s]", field, type, options);
  return verdict("tr_stream_define");
}
int tr_stream_attribute(tr_stream* stream, const char* of, const char* name, int type, tr_index count,
                        const void* values) {
  (void)stream;
  begin("tr_stream_attribute");
  const double first = type == TR_I8    ? *(const int8_t*)values
                       : type == TR_I16 ? *(const int16_t*)values
                       : type == TR_I32 ? *(const int32_t*)values
                       : type == TR_I64 ? (double)*(const int64_t*)values
                       : type == TR_F32 ? (double)*(const float*)values
                                        : *(const double*)values;
  say(" [%s] [%s] type=%d count=%lld first=%g", of == NULL ? "" : of, name, type, (long long)count, first);
  return verdict("tr_stream_attribute");
}
int tr_stream_attribute_text(tr_stream* stream, const char* of, const char* name, const char* text) {
  (void)stream;
  begin("tr_stream_attribute_text");
  say(" [%s] [%s] [%s]", of == NULL ? "" : of, name, text);
  return verdict("tr_stream_attribute_text");
}
int tr_stream_begin(tr_stream* stream, int64_t lead) {
  (void)stream;
  begin("tr_stream_begin");
  say(" lead=%lld", (long long)lead);
  return verdict("tr_stream_begin");
}
int tr_stream_begin_at(tr_stream* stream, double time) {
  (void)stream;
  begin("tr_stream_begin_at");
  say(" time=%.17g", time);
  return verdict("tr_stream_begin_at");
}
int tr_stream_put(tr_stream* stream, const char* field, const void* data) {
  (void)stream;
  begin("tr_stream_put");
  say(" [%s]", field);
  memcpy(packed, data, packed_bytes = 8);
  return verdict("tr_stream_put");
}

const int element_bytes[] = {0, 1, 2, 4, 8, 4, 8, 8, 16, 1, 2, 4, 8};

static void pack_array(const unsigned char* at, int bytes, int ndims, const tr_index* extents,
                       const tr_index* strides) {
  if (ndims == 0) {
    memcpy(packed + packed_bytes, at, (size_t)bytes);
    packed_bytes += bytes;
    return;
  }
  for (tr_index i = 0; i < extents[0]; ++i)
    pack_array(at + i * strides[0], bytes, ndims - 1, extents + 1, strides + 1);
}
int tr_stream_put_array(tr_stream* stream, const char* field, const void* data, int type, int ndims,
                        const tr_index* extents, const tr_index* strides) {
  (void)stream;
  begin("tr_stream_put_array");
  say(" [%s] type=%d", field, type);
  say_indices("extents", ndims, extents);
  say_indices("strides", ndims, strides);
  packed_bytes = 0;
  tr_index contiguous[8];
  for (int d = ndims - 1; !strides && d >= 0; --d)
    contiguous[d] = d == ndims - 1 ? element_bytes[type] : contiguous[d + 1] * extents[d + 1];
  if (!strides) strides = contiguous;
  if (data) pack_array(data, element_bytes[type], ndims, extents, strides);
  return verdict("tr_stream_put");
}
int tr_streams_configure(const char* file, const char* options, tr_stream** stream) {
  begin("tr_streams_configure");
  say(" [%s] [%s]", file, options);
  *stream = &streams[made_streams++ % 64];
  return verdict("tr_streams_configure");
}
int tr_stream_wants(tr_stream* stream, const char* field) {
  (void)stream;
  begin("tr_stream_wants");
  say(" [%s]", field);
  return strcmp(field, "wanted") == 0;
}
int tr_stream_open(const char* pattern, const char* options, tr_stream** stream) {
  begin("tr_stream_open");
  say(" [%s] [%s]", pattern, options);
  *stream = &streams[made_streams++ % 64];
  return verdict("tr_stream_open");
}
int tr_stream_get(tr_stream* stream, const char* field, void* data) {
  (void)stream;
  begin("tr_stream_get");
  say(" [%s]", field);
  memcpy(data, "8 bytes", 8);
  return verdict("tr_stream_get");
}

// Fills the elements with 1, 2, 3, ... in C order.
static void fill_array(unsigned char* at, int type, int ndims, const tr_index* extents,
                       const tr_index* strides, int* count) {
  if (ndims == 0) {
    const double wide = ++*count;
    const float narrow = (float)wide;
    memcpy(at, type == TR_F64 ? (const void*)&wide : (const void*)&narrow, (size_t)element_bytes[type]);
    return;
  }
  for (tr_index i = 0; i < extents[0]; ++i)
    fill_array(at + i * strides[0], type, ndims - 1, extents + 1, strides + 1, count);
}
int tr_stream_get_array(tr_stream* stream, const char* field, void* data, int type, int ndims,
                        const tr_index* extents, const tr_index* strides) {
  (void)stream;
  begin("tr_stream_get_array");
  say(" [%s] type=%d", field, type);
  say_indices("extents", ndims, extents);
  say_indices("strides", ndims, strides);
  if (ndims < 0) return refuse(TR_ERR_ARGUMENT, "an array has no fewer than 0 dimensions");
  tr_index contiguous[8];
  for (int d = ndims - 1; !strides && d >= 0; --d)
    contiguous[d] = d == ndims - 1 ? element_bytes[type] : contiguous[d + 1] * extents[d + 1];
  int count = 0;
  if (data) fill_array(data, type, ndims, extents, strides ? strides : contiguous, &count);
  return verdict("tr_stream_get");
}
int tr_stream_seek(tr_stream* stream, int64_t lead) {
  (void)stream;
  begin("tr_stream_seek");
  say(" lead=%lld", (long long)lead);
  return verdict("tr_stream_seek");
}
int tr_stream_end(tr_stream* stream) {
  (void)stream;
  begin("tr_stream_end");
  return verdict("tr_stream_end");
}
int tr_stream_wait(tr_stream* stream, int event) {
  (void)stream;
  begin("tr_stream_wait");
  say(" event=%d", event);
  return verdict("tr_stream_wait");
}
int tr_stream_close(tr_stream** stream) {
  begin("tr_stream_close");
  *stream = NULL;
  return verdict("tr_stream_close");
}
