/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A model with tiles: a rank has several of them, or none, and nobody has those on land.
 *
 *   boxes write DIR LAYOUT ENDING...    a checkpoint, a collective file (written, read and compared), and for
 *                                       each ENDING (raw, or one that promises a format) a stream
 * DIR/a.ENDING; of means over an interval DIR/mean.nc boxes read DIR LAYOUT ENDING...     what another layout
 * has written: the checkpoint and the streams are read and compared, halos included boxes wrong calls that do
 * not fit: prints their errors
 *
 * LAYOUT: `block` (one block for each rank; land holds the missing value), `tiles` (equal tiles with a halo,
 * levels within each), `patches` (boxes of many sizes in a list), and `land-tiles`, `land-patches` (the same
 * without those on land). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

enum { NY = 12, NX = 15, TY = 4, TX = 5, LEVELS = 3, HALO = 1, MOST = 4 * NY * NX * LEVELS };
static int failures = 0, rank = 0, ranks = 1;

static void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  tr_log(tr_error());
}

/* One box of this rank, and where its first owned element lies in an array of one level. */
typedef struct {
  tr_index lower[2], upper[2];
} box;

static box boxes[64];
static tr_index count = 0;
static int halo = 0, levels_inside = 0, is_flat = 0, without_land = 0;
static tr_layout* layout = NULL;

static int on_land(tr_index y, tr_index x) {
  const tr_index tile = y / TY * (NX / TX) + x / TX;
  return tile == 1 || tile == 4 || tile == 8;
}

static void add(tr_index y, tr_index x, tr_index y_end, tr_index x_end) {
  if (without_land && on_land(y, x)) return;
  boxes[count++] = (box){{y, x}, {y_end, x_end}};
}

static void make(const char* kind) {
  static const tr_index shape[2] = {NY, NX};
  tr_index lower[128], upper[128], widths[2] = {HALO, HALO};
  without_land = strncmp(kind, "land-", 5) == 0;
  kind += without_land ? 5 : 0;
  if (strcmp(kind, "block") == 0) {
    expect(tr_layout_block(2, shape, NULL, &layout));
    expect(tr_layout_bounds(layout, 0, boxes[0].lower, boxes[0].upper));
    count = 1;
  } else {
    const int tiles = strcmp(kind, "tiles") == 0;
    halo = tiles ? HALO : 0;
    levels_inside = tiles;
    is_flat = !tiles;
    /* Of 4 ranks and more one has nothing. Tiles are dealt backwards: packed order is no C order. */
    const int owners = ranks > 3 ? ranks - 1 : ranks;
    for (int tile = NY / TY * (NX / TX) - 1; tile >= 0; --tile) {
      if (tile % owners != rank) continue;
      const tr_index y = tile / (NX / TX) * TY, x = tile % (NX / TX) * TX;
      if (tiles) {
        add(y, x, y + TY, x + TX);
      } else {
        add(y, x + 2, y + 1, x + TX);
        add(y + 1, x, y + TY, x + TX);
        add(y, x, y + 1, x + 2);
        boxes[count++] = (box){{y, x}, {y, x + 1}}; /* empty */
      }
    }
    for (tr_index b = 0; b < count; ++b) {
      memcpy(lower + 2 * b, boxes[b].lower, sizeof boxes[b].lower);
      memcpy(upper + 2 * b, boxes[b].upper, sizeof boxes[b].upper);
    }
    expect(tr_layout_boxes(2, shape, halo ? widths : NULL, count, lower, upper, without_land, &layout));
  }
  tr_index owned = 0, told = 0;
  for (tr_index b = 0; b < count; ++b)
    owned += (boxes[b].upper[0] - boxes[b].lower[0]) * (boxes[b].upper[1] - boxes[b].lower[1]);
  expect(tr_layout_count(layout, &told));
  if (told != owned)
    printf("FAILED: rank %d owns %lld, not %lld\n", rank, (long long)told, (long long)owned), ++failures;
  expect(tr_layout_dimensions(layout, "y,x"));
  expect(tr_layout_georeference(layout,
                                "keys=\"gridType=regular_ll, latitudeOfFirstGridPointInDegrees=50, "
                                "longitudeOfFirstGridPointInDegrees=5, latitudeOfLastGridPointInDegrees=39, "
                                "longitudeOfLastGridPointInDegrees=19\""));
}

static tr_index elements_of(tr_index b) {
  const tr_index rows = boxes[b].upper[0] - boxes[b].lower[0],
                 columns = boxes[b].upper[1] - boxes[b].lower[1];
  return rows == 0 || columns == 0 ? 0 : (rows + 2 * halo) * (columns + 2 * halo);
}

/* Returns the place of an element of box `b` (y and x may lie in its halo) in an array of `levels` levels. */
static tr_index place(tr_index b, tr_index level, tr_index levels, tr_index y, tr_index x) {
  tr_index before = 0, all = 0;
  for (tr_index i = 0; i < count; ++i) {
    if (i < b) before += elements_of(i);
    all += elements_of(i);
  }
  const tr_index width = boxes[b].upper[1] - boxes[b].lower[1] + 2 * halo;
  const tr_index within = (y - boxes[b].lower[0] + halo) * width + x - boxes[b].lower[1] + halo;
  if (levels_inside) return before * levels + level * elements_of(b) + within;
  return level * all + before + within;
}

static double value(tr_index level, tr_index y, tr_index x, int step) {
  if (on_land(y, x)) return -999;
  return 280 + (double)(y * NX + x) / 4 + 1000.0 * (double)level + 0.5 * step;
}

/* Calls visit for all owned elements, or with `with_halo` for all that lie in the global array as well. */
static void each(int with_halo, tr_index levels,
                 void (*visit)(tr_index at, tr_index level, tr_index y, tr_index x)) {
  const int wide = with_halo ? halo : 0;
  for (tr_index b = 0; b < count; ++b) {
    if (elements_of(b) == 0) continue;
    for (tr_index level = 0; level < levels; ++level)
      for (tr_index y = boxes[b].lower[0] - wide; y < boxes[b].upper[0] + wide; ++y)
        for (tr_index x = boxes[b].lower[1] - wide; x < boxes[b].upper[1] + wide; ++x)
          if (y >= 0 && y < NY && x >= 0 && x < NX) visit(place(b, level, levels, y, x), level, y, x);
  }
}

static float t[MOST];
static double s[MOST];
static int16_t n[MOST];
static uint16_t flags[MOST];
static int now = 0;
static void set_t(tr_index at, tr_index level, tr_index y, tr_index x) {
  t[at] = (float)value(level, y, x, now);
}
static void set_s(tr_index at, tr_index level, tr_index y, tr_index x) { s[at] = value(level, y, x, now); }
static void set_n(tr_index at, tr_index level, tr_index y, tr_index x) {
  (void)level, n[at] = (int16_t)(on_land(y, x) ? -999 : y * NX + x);
}
static char short_texts[MOST][5], long_texts[MOST][20];
static void set_texts(tr_index at, tr_index level, tr_index y, tr_index x) {
  char text[40];
  (void)level, sprintf(text, "%02d-%02d of the grid (%d)", (int)y, (int)x, now);
  memcpy(short_texts[at], text, sizeof short_texts[at]);
  memcpy(long_texts[at], text, sizeof long_texts[at]);
  if (on_land(y, x)) short_texts[at][0] = long_texts[at][0] = 0;
}
static uint16_t flag(tr_index y, tr_index x) {
  return (uint16_t)(on_land(y, x) ? 65535 : 40000 + y * NX + x + 2 * now);
}
static void set_flags(tr_index at, tr_index level, tr_index y, tr_index x) {
  (void)level, flags[at] = flag(y, x);
}

static void wrong_value(const char* name, double got, double wanted, tr_index y, tr_index x) {
  if (got == wanted || ++failures > 9) return;
  printf("FAILED: rank %d, step %d: %s(%lld, %lld) is %.17g, not %.17g\n", rank, now, name, (long long)y,
         (long long)x, got, wanted);
}
static void same_t(tr_index at, tr_index level, tr_index y, tr_index x) {
  wrong_value("t", t[at], (float)value(level, y, x, now), y, x);
}
static void same_s(tr_index at, tr_index level, tr_index y, tr_index x) {
  wrong_value("s", s[at], value(level, y, x, now), y, x);
}
static void same_flags(tr_index at, tr_index level, tr_index y, tr_index x) {
  (void)level, wrong_value("flags", flags[at], flag(y, x), y, x);
}

static const char* levels_option(char* text, const char* more) {
  sprintf(text, "levels=pressure:850,500,250 missing=-999 %s %s", levels_inside ? "level_axis=1" : "", more);
  return text;
}

/* Names that GRIB knows, too. */
static void define_all(tr_stream* stream, int has_flags, const char* more) {
  char text[200], plain[100];
  expect(tr_stream_define(stream, "t", layout, TR_F32, levels_option(text, more)));
  sprintf(plain, "missing=-999 %s", more);
  expect(tr_stream_define(stream, "sp", layout, TR_F64, plain));
  sprintf(plain, "missing=65535 %s", more);
  if (has_flags) expect(tr_stream_define(stream, "lsm", layout, TR_U16, plain));
}

/* What tiles leave out on land is no part of a mean. */
static void define_over(tr_stream* stream, const char* more) {
  char text[200], all[100];
  sprintf(all, "over=mean:x %s", more);
  expect(tr_stream_define(stream, "zonal", layout, TR_F32, levels_option(text, all)));
  sprintf(all, "over=mean:levels,y,x %s", more);
  expect(tr_stream_define(stream, "whole", layout, TR_F32, levels_option(text, all)));
  sprintf(all, "over=minimum:y missing=65535 %s", more);
  expect(tr_stream_define(stream, "least", layout, TR_U16, all));
}

static void write_step(tr_stream* stream, tr_index lead, int has_over, int has_texts) {
  each(0, LEVELS, set_t);
  each(0, 1, set_s);
  each(0, 1, set_flags);
  tr_stream_begin(stream, lead);
  tr_stream_put(stream, "t", t);
  tr_stream_put(stream, "sp", s);
  tr_stream_put(stream, "lsm", flags);
  if (has_over) {
    tr_stream_put(stream, "zonal", t);
    tr_stream_put(stream, "whole", t);
    tr_stream_put(stream, "least", flags);
  }
  if (has_texts) {
    each(0, 1, set_texts);
    tr_stream_put(stream, "remark", long_texts);
  }
  expect(tr_stream_end(stream));
}

static void write_stream(const char* directory, const char* ending) {
  char text[200], path[200];
  tr_stream* stream = NULL;
  sprintf(path, "%s/a.%s", directory, ending);
  sprintf(text, "%sbase=2026-03-01", strcmp(ending, "raw") == 0 ? "format=raw " : "");
  expect(tr_stream_create(path, text, &stream));
  if (stream == NULL) return;
  if (strcmp(ending, "raw") != 0 && strncmp(ending, "grib", 4) != 0) {
    expect(tr_stream_define(stream, "n", layout, TR_I16, "time=none missing=-999"));
    expect(tr_stream_define(stream, "depth", layout, TR_F64, levels_option(text, "time=none")));
    each(0, 1, set_n);
    each(0, LEVELS, set_s);
    expect(tr_stream_define(stream, "name", layout, TR_TEXT(5), "time=none"));
    each(0, 1, set_texts);
    expect(tr_stream_put(stream, "name", short_texts));
    expect(tr_stream_put(stream, "n", n));
    expect(tr_stream_put(stream, "depth", s));
  }
  define_all(stream, 1, strncmp(ending, "grib", 4) == 0 ? "accuracy=0.125" : "");
  const int has_texts = strncmp(ending, "grib", 4) != 0;
  if (has_texts) expect(tr_stream_define(stream, "remark", layout, TR_TEXT(20), ""));
  if (has_texts) define_over(stream, "");
  for (now = 0; now < 2; ++now) write_step(stream, 3600 * now, has_texts, has_texts);
  expect(tr_stream_close(&stream));
}

/* Each of two intervals has two steps of the model. */
static void write_means(const char* directory) {
  char path[200];
  tr_stream* stream = NULL;
  sprintf(path, "%s/mean.nc", directory);
  expect(tr_stream_create(path, "format=cdf5 base=2026-03-01 interval=1h", &stream));
  if (stream == NULL) return;
  define_all(stream, 1, "operation=mean");
  define_over(stream, "operation=mean");
  for (now = 0; now < 4; ++now) write_step(stream, 1800 * (now + 1), 1, 0);
  expect(tr_stream_close(&stream));
}

/* Nobody owns anything, and everybody puts. */
static void write_nothing(const char* directory) {
  static const tr_index shape[2] = {NY, NX};
  char path[200];
  tr_layout* nothing = NULL;
  tr_stream* stream = NULL;
  sprintf(path, "%s/nothing.nc", directory);
  expect(tr_layout_boxes(2, shape, NULL, 0, NULL, NULL, 1, &nothing));
  expect(tr_stream_create(path, "format=cdf5 base=2026-03-01", &stream));
  if (nothing == NULL || stream == NULL) return;
  expect(tr_stream_define(stream, "t", nothing, TR_F32, "missing=-999"));
  tr_stream_begin(stream, 0);
  tr_stream_put(stream, "t", NULL);
  expect(tr_stream_end(stream));
  expect(tr_stream_close(&stream));
  expect(tr_layout_free(&nothing));
}

/* What nobody delivers keeps the value that it has. */
static void expect_kept(const float* array, tr_index size) {
  tr_index kept = 0, wanted = MOST - size;
  for (tr_index i = 0; i < MOST; ++i) kept += array[i] == -77;
  if (kept != wanted)
    printf("FAILED: rank %d: %lld elements were left alone, not %lld\n", rank, (long long)kept,
           (long long)wanted),
        ++failures;
}
static tr_index delivered = 0;
static void count_one(tr_index at, tr_index level, tr_index y, tr_index x) {
  (void)at, (void)level, (void)y, (void)x, ++delivered;
}

static void read_stream(const char* directory, const char* ending) {
  char path[200];
  const int has_flags = strncmp(ending, "grib", 4) != 0; /* GRIB gives real numbers */
  tr_stream* stream = NULL;
  sprintf(path, "%s/a.%s", directory, ending);
  expect(tr_stream_open(path, "", &stream));
  if (stream == NULL) return;
  define_all(stream, has_flags, "");
  for (now = 0; now < 2; ++now) {
    for (tr_index i = 0; i < MOST; ++i) t[i] = -77;
    tr_stream_begin(stream, 3600 * now);
    tr_stream_get(stream, "t", t);
    tr_stream_get(stream, "sp", s);
    if (has_flags) tr_stream_get(stream, "lsm", flags);
    expect(tr_stream_end(stream));
    each(1, LEVELS, same_t);
    each(1, 1, same_s);
    if (has_flags) each(1, 1, same_flags);
    delivered = 0;
    each(1, LEVELS, count_one);
    expect_kept(t, delivered);
  }
  expect(tr_stream_close(&stream));
}

static void through_file(const char* directory) {
  char path[200];
  sprintf(path, "%s/file", directory);
  tr_file* file = tr_fopen(path, "w");
  if (file == NULL) exit(1);
  each(0, 1, set_s);
  now = 1, each(0, 1, set_t), now = 0;
  if (tr_fwrite_array(s, TR_F64, layout, file) != NY * NX ||
      tr_fwrite_array(t, TR_F32, layout, file) != NY * NX)
    ++failures;
  if (tr_fclose(file) != 0) ++failures;
  memset(s, 0, sizeof s);
  for (tr_index i = 0; i < MOST; ++i) t[i] = -77;
  file = tr_fopen(path, "r");
  if (file == NULL) exit(1);
  if (tr_fread_array(s, TR_F64, layout, file) != NY * NX ||
      tr_fread_array(t, TR_F32, layout, file) != NY * NX)
    ++failures;
  if (tr_fclose(file) != 0) ++failures;
  each(0, 1, same_s);
  now = 1, each(0, 1, same_t), now = 0;
  delivered = 0;
  each(0, 1, count_one);
  expect_kept(t, delivered);
}

static void through_checkpoint(const char* directory, int direction) {
  char name[200];
  sprintf(name, "%s/save", directory);
  tr_checkpoint* checkpoint = NULL;
  int found = 0;
  expect(tr_checkpoint_create(name, "", &checkpoint));
  if (checkpoint == NULL) return;
  if (direction == TR_SAVE) each(0, 1, set_s), each(0, 1, set_t);
  if (direction == TR_LOAD)
    for (tr_index i = 0; i < MOST; ++i) t[i] = -77, s[i] = -999;
  expect(tr_checkpoint_begin(checkpoint, direction, &found));
  tr_checkpoint_item(checkpoint, "s", s, TR_F64, layout);
  tr_checkpoint_item(checkpoint, "t", t, TR_F32, layout);
  expect(tr_checkpoint_end(checkpoint));
  if (direction == TR_LOAD) {
    if (!found) ++failures, printf("FAILED: no checkpoint\n");
    each(0, 1, same_s); /* where nobody saved, the array keeps what it has */
  }
  expect(tr_checkpoint_close(&checkpoint));
}

static void refused(int code, int wanted) {
  if (code != wanted) printf("FAILED: code %d, not %d\n", code, wanted), ++failures;
  printf("rank %d: %s\n", rank, tr_error());
}

static void call_wrongly(void) {
  static const tr_index shape[2] = {4, 6}, left[4] = {0, 0, 0, 3}, right[4] = {4, 3, 4, 6};
  const tr_index overlap[4] = {4, 4, 4, 6}, beyond[4] = {4, 3, 5, 6};
  tr_layout* made = NULL;
  const int first = rank == 0;
  refused(tr_layout_boxes(2, shape, NULL, first ? 2 : 0, left, overlap, 0, &made), TR_ERR_LAYOUT);
  refused(tr_layout_boxes(2, shape, NULL, first ? 2 : 1, left, right, 1, &made), TR_ERR_LAYOUT);
  refused(tr_layout_boxes(2, shape, NULL, first ? 2 : 0, left, beyond, 1, &made), TR_ERR_LAYOUT);
  refused(tr_layout_boxes(2, shape, NULL, first ? 1 : 0, left, right, 0, &made), TR_ERR_LAYOUT);
  refused(tr_layout_boxes(2, shape, NULL, first ? -1 : 0, left, right, 0, &made), TR_ERR_ARGUMENT);
  refused(tr_layout_boxes(2, shape, NULL, first ? 1LL << 40 : 0, left, right, 0, &made), TR_ERR_ARGUMENT);
  refused(tr_layout_boxes(2, shape, NULL, first ? 2 : 0, left, first ? NULL : right, 0, &made),
          TR_ERR_ARGUMENT);
  if (made != NULL) ++failures;
  expect(tr_layout_boxes(2, shape, NULL, first ? 1 : 0, left, right, 1, &made));
  tr_stream* stream = NULL;
  expect(tr_stream_create("wrong{lead:03h}.raw", "format=raw base=2026-03-01", &stream));
  refused(tr_stream_define(stream, "a", made, TR_F32, ""), TR_ERR_SETTINGS);
  refused(tr_stream_define(stream, "a", made, TR_I16, "missing=1e20"), TR_ERR_SETTINGS);
  refused(tr_stream_define(stream, "a", made, TR_U16, "missing=-1"), TR_ERR_SETTINGS);
  refused(tr_stream_define(stream, "a", made, TR_F32, "levels=height:2,10 missing=0 level_axis=4"),
          TR_ERR_SETTINGS);
  refused(tr_stream_define(stream, "a", made, TR_TEXT(4), "over=mean:x"), TR_ERR_SETTINGS);
  refused(tr_stream_define(stream, "a", made, TR_F32, "over=mean:x missing=0"), TR_ERR_SETTINGS);
  double places[24] = {0};
  refused(tr_layout_coordinates(made, places, places, 0, NULL, NULL), TR_ERR_ARGUMENT);
  expect(tr_stream_close(&stream));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm compute;
  expect(tr_init(MPI_COMM_WORLD, &compute, NULL));
  if (compute != MPI_COMM_NULL) {
    MPI_Comm_rank(compute, &rank);
    MPI_Comm_size(compute, &ranks);
    const char* const what = argv[1];
    if (strcmp(what, "wrong") == 0) {
      call_wrongly();
    } else {
      const int writes = strcmp(what, "write") == 0;
      make(argv[3]);
      through_checkpoint(argv[2], writes ? TR_SAVE : TR_LOAD);
      if (writes) through_file(argv[2]);
      if (writes) write_means(argv[2]);
      if (writes) write_nothing(argv[2]);
      for (int i = 4; i < argc; ++i) {
        if (writes)
          write_stream(argv[2], argv[i]);
        else
          read_stream(argv[2], argv[i]);
      }
      expect(tr_layout_free(&layout));
    }
  }
  expect(tr_finalize());
  MPI_Finalize();
  return failures > 0;
}
