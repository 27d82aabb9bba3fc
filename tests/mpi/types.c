/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A field of each type of numbers that NetCDF-4 has.
 *
 *   types PATTERN OPTIONS STEPS [HOW]
 *
 * HOW: `read` (each field is read in its own type), `wide` (in a longer one), `wrong` (in types that do not
 * have all values), `old` (a field of TR_U16 alone), `operations` (means and extremes of unsigned numbers);
 * `texts` writes fields of texts, `read-texts` reads them, `wide-texts` into longer ones, and `wrong-texts`
 * defines what texts cannot be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

enum { NY = 4, NX = 5, KINDS = 10, MOST = NY * NX };
static int failures = 0, rank = 0;
static tr_layout* cells = NULL;

static void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  tr_log(tr_error());
}

/* `wide` has all values of `code`. `marked` is the option for files in which an element has the value that
 * the NetCDF library gives to missing ones. */
static const struct {
  const char* name;
  int code, wide;
  size_t size;
  const char* marked;
} kinds[KINDS] = {{"i8", TR_I8, TR_I16, 1, NULL},
                  {"i16", TR_I16, TR_I32, 2, NULL},
                  {"i32", TR_I32, TR_I64, 4, NULL},
                  {"i64", TR_I64, TR_I64, 8, NULL},
                  {"u8", TR_U8, TR_I16, 1, NULL},
                  {"u16", TR_U16, TR_I32, 2, "missing=65535"},
                  {"u32", TR_U32, TR_U64, 4, "missing=4294967295"},
                  {"u64", TR_U64, TR_U64, 8, NULL},
                  {"f32", TR_F32, TR_F64, 4, NULL},
                  {"f64", TR_F64, TR_F64, 8, NULL}};

static size_t size_of(int code) {
  for (int kind = 0; kind < KINDS; ++kind)
    if (kinds[kind].code == code) return kinds[kind].size;
  return 0;
}

/* The bits of an integer: its lowest bytes are those of each type. */
static uint64_t bits_of(size_t size, tr_index element, int step) {
  if (element == 0) return 0;
  if (element == 1) return UINT64_MAX;                    /* -1, or the largest */
  if (element == 2) return (uint64_t)1 << (8 * size - 1); /* the smallest, or the half */
  return (uint64_t)(element + MOST * step) * 0x9E3779B97F4A7C15U;
}

static int is_signed(int code) { return code <= TR_I64; }

/* Stores an element of `kind` as the type `code`. */
static void store(char* to, int kind, int code, tr_index element, int step) {
  const double real = 0.25 * (double)element - (double)step;
  const float narrow = (float)real;
  uint64_t bits = bits_of(kinds[kind].size, element, step);
  const unsigned unused = 64 - 8 * (unsigned)kinds[kind].size;
  if (code == TR_F32)
    memcpy(to, &narrow, 4);
  else if (code == TR_F64)
    memcpy(to, &real, 8);
  else {
    bits <<= unused;
    bits = is_signed(kinds[kind].code) ? (uint64_t)((int64_t)bits >> unused) : bits >> unused;
    memcpy(to, &bits, size_of(code)); /* of the little-endian number */
  }
}

/* Fills this rank's part of a field, and returns the number of its elements. */
static tr_index fill(char* to, int kind, int code, int step) {
  tr_index lower[2], upper[2], count = 0;
  expect(tr_layout_bounds(cells, 0, lower, upper));
  for (tr_index y = lower[0]; y < upper[0]; ++y)
    for (tr_index x = lower[1]; x < upper[1]; ++x, ++count)
      store(to + (size_t)count * size_of(code), kind, code, y * NX + x, step);
  return count;
}

static void give(tr_stream* stream, const char* of, int type, tr_index count, const void* values) {
  expect(
      tr_stream_attribute(stream, of, strcmp(of, "u16") ? "flag_masks" : "flag_values", type, count, values));
  expect(tr_stream_attribute_text(stream, of, "flag_meanings", "wet frozen broken"));
}

static void write_steps(tr_stream* stream, int steps) {
  /* Without servers the arrays of a step stay as they are until its end. */
  static char data[KINDS + 2][MOST * 8];
  for (int kind = 0; kind < KINDS; ++kind)
    expect(tr_stream_define(
        stream, kinds[kind].name, cells, kinds[kind].code,
        strcmp(kinds[kind].name, "u32") ? NULL : "attributes=\"valid_range='0,4294967295'\""));
  expect(tr_stream_define(stream, "holes", cells, TR_U16, "missing=65535"));
  expect(tr_stream_define(stream, "late", cells, TR_U64, NULL));
  expect(tr_stream_define(stream, "still", cells, TR_U32, "time=none"));
  give(stream, "u8", TR_U8, 3, (const uint8_t[]){1, 2, 128});
  give(stream, "u16", TR_U16, 3, (const uint16_t[]){0, 40000, 65535});
  give(stream, "u64", TR_U64, 3, (const uint64_t[]){1, 2, (uint64_t)1 << 63});
  give(stream, "i8", TR_I8, 3, (const int8_t[]){1, 2, -128});
  expect(tr_stream_attribute(stream, "u64", "valid_max", TR_U64, 1, (const uint64_t[]){UINT64_MAX}));
  fill(data[0], 6, TR_U32, 7);
  expect(tr_stream_put(stream, "still", data[0]));
  for (int step = 0; step < steps && failures == 0; ++step) {
    expect(tr_stream_begin(stream, 3600 * step));
    for (int kind = 0; kind < KINDS; ++kind) {
      fill(data[kind], kind, kinds[kind].code, step);
      expect(tr_stream_put(stream, kinds[kind].name, data[kind]));
    }
    fill(data[KINDS], 5, TR_U16, step);
    expect(tr_stream_put(stream, "holes", data[KINDS]));
    fill(data[KINDS + 1], 7, TR_U64, step);
    if (step > 0) expect(tr_stream_put(stream, "late", data[KINDS + 1]));
    expect(tr_stream_end(stream));
  }
}

static void compare(const char* name, const char* got, int kind, int code, int step) {
  char wanted[MOST * 8];
  const tr_index count = fill(wanted, kind, code, step);
  if (memcmp(got, wanted, (size_t)count * size_of(code)) == 0) return;
  printf("FAILED: rank %d, step %d: %s is not what was put, read as type %d\n", rank, step, name, code);
  ++failures;
}

static void read_steps(tr_stream* stream, int steps, int is_wide) {
  char data[MOST * 8];
  for (int kind = 0; kind < KINDS; ++kind)
    expect(tr_stream_define(stream, kinds[kind].name, cells, is_wide ? kinds[kind].wide : kinds[kind].code,
                            kinds[kind].marked));
  expect(tr_stream_define(stream, "holes", cells, is_wide ? TR_I32 : TR_U16,
                          is_wide ? "missing=-1" : "missing=7"));
  expect(tr_stream_define(stream, "still", cells, TR_U32, "missing=4294967295"));
  for (int step = 0; step < steps && failures == 0; ++step) {
    expect(tr_stream_begin(stream, 3600 * step));
    for (int kind = 0; kind < KINDS; ++kind) {
      const int code = is_wide ? kinds[kind].wide : kinds[kind].code;
      expect(tr_stream_get(stream, kinds[kind].name, data));
      compare(kinds[kind].name, data, kind, code, step);
    }
    expect(tr_stream_get(stream, "still", data));
    compare("still", data, 6, TR_U32, 7);
    memset(data, 0, sizeof data);
    expect(tr_stream_get(stream, "holes", data));
    tr_index lower[2], upper[2];
    expect(tr_layout_bounds(cells, 0, lower, upper));
    for (tr_index y = lower[0]; y < upper[0]; ++y)
      for (tr_index x = lower[1]; x < upper[1]; ++x) {
        const tr_index at = (y - lower[0]) * (upper[1] - lower[1]) + x - lower[1];
        const uint16_t put = (uint16_t)bits_of(2, y * NX + x, step);
        int32_t got = 0;
        memcpy(&got, data + (size_t)at * (is_wide ? 4 : 2), is_wide ? 4 : 2);
        if (got != (put == 65535 ? (is_wide ? -1 : 7) : put)) {
          printf("FAILED: rank %d, step %d: a hole is %d\n", rank, step, (int)got);
          ++failures;
        }
      }
    expect(tr_stream_end(stream));
  }
}

enum { STATIONS = 7, LENGTH = 12, WIDE = 20 };
/* Blanks at the end, and what stands behind a zero, are no part of a text. */
static const char names[STATIONS][LENGTH + 1] = {
    "Z\xc3\xbcrich", "", "abcdefghijkl", "two words", "blanks  ", "end\0no more", "\xe6\x9d\xb1\xe4\xba\xac"};
static const char* const ends[STATIONS] = {
    "Z\xc3\xbcrich", "", "abcdefghijkl", "two words", "blanks", "end", "\xe6\x9d\xb1\xe4\xba\xac"};

static void write_texts(tr_stream* stream, int steps) {
  char own[STATIONS][LENGTH], gaps[STATIONS][2][LENGTH], note[LENGTH];
  float warmth[STATIONS] = {0};
  tr_layout *stations = NULL, *one = NULL;
  tr_index shape[1] = {STATIONS}, lower[1], upper[1], strides[1] = {2 * LENGTH}, extents[1];
  expect(tr_layout_block(1, shape, NULL, &stations));
  expect(tr_layout_dimensions(stations, "station"));
  expect(tr_layout_replicated(0, NULL, &one));
  expect(tr_layout_bounds(stations, 0, lower, upper));
  extents[0] = upper[0] - lower[0];
  expect(tr_stream_define(stream, "station_name", stations, TR_TEXT(LENGTH),
                          "time=none attributes=\"long_name='name of the station'\""));
  expect(tr_stream_define(stream, "remark", stations, TR_TEXT(LENGTH), NULL));
  expect(tr_stream_define(stream, "levels", stations, TR_TEXT(LENGTH), "levels=depth:1,2"));
  expect(tr_stream_define(stream, "note", one, TR_TEXT(LENGTH), NULL));
  expect(tr_stream_define(stream, "late", one, TR_TEXT(3), NULL));
  expect(tr_stream_define(stream, "warmth", stations, TR_F32, "attributes=\"coordinates=station_name\""));
  for (tr_index i = lower[0]; i < upper[0]; ++i) memcpy(own[i - lower[0]], names[i], LENGTH);
  expect(tr_stream_put(stream, "station_name", own));
  for (int step = 0; step < steps && failures == 0; ++step) {
    char both[2][STATIONS][LENGTH];
    for (tr_index i = lower[0]; i < upper[0]; ++i) {
      memcpy(gaps[i - lower[0]][0], names[(i + step) % STATIONS], LENGTH);
      for (tr_index level = 0; level < 2; ++level)
        memcpy((char*)both + (size_t)(level * extents[0] + i - lower[0]) * LENGTH,
               names[(i + level) % STATIONS], LENGTH);
    }
    memset(note, ' ', LENGTH);
    snprintf(note, LENGTH, "step %d", step);
    expect(tr_stream_begin(stream, 3600 * step));
    expect(tr_stream_put_array(stream, "remark", gaps, TR_TEXT(LENGTH), 1, extents, strides));
    expect(tr_stream_put(stream, "levels", both));
    expect(tr_stream_put(stream, "note", note));
    if (step > 0) expect(tr_stream_put(stream, "late", "abc"));
    expect(tr_stream_put(stream, "warmth", warmth));
    expect(tr_stream_end(stream));
  }
  expect(tr_layout_free(&stations));
  expect(tr_layout_free(&one));
}

static void compare_texts(const char* field, const char* got, int length, tr_index first, tr_index count,
                          int shift, int step) {
  for (tr_index i = 0; i < count; ++i) {
    char wanted[WIDE] = {0};
    strncpy(wanted, ends[(first + i + shift) % STATIONS], WIDE - 1);
    if (memcmp(got + i * length, wanted, (size_t)length) == 0) continue;
    printf("FAILED: rank %d, step %d: %s %d is '%.*s'\n", rank, step, field, (int)(first + i), length,
           got + i * length);
    ++failures;
  }
}

static void read_texts(tr_stream* stream, int steps, int length) {
  char data[2 * STATIONS * WIDE];
  tr_layout *stations = NULL, *one = NULL;
  tr_index shape[1] = {STATIONS}, lower[1], upper[1];
  expect(tr_layout_block(1, shape, NULL, &stations));
  expect(tr_layout_replicated(0, NULL, &one));
  expect(tr_layout_bounds(stations, 0, lower, upper));
  expect(tr_stream_define(stream, "station_name", stations, TR_TEXT(length), NULL));
  expect(tr_stream_define(stream, "remark", stations, TR_TEXT(length), NULL));
  expect(tr_stream_define(stream, "levels", stations, TR_TEXT(length), "levels=depth:1,2"));
  expect(tr_stream_define(stream, "note", one, TR_TEXT(length), NULL));
  for (int step = 0; step < steps && failures == 0; ++step) {
    char note[WIDE] = {0};
    const tr_index count = upper[0] - lower[0];
    expect(tr_stream_begin(stream, 3600 * step));
    expect(tr_stream_get(stream, "station_name", data));
    compare_texts("station_name", data, length, lower[0], count, 0, step);
    expect(tr_stream_get(stream, "remark", data));
    compare_texts("remark", data, length, lower[0], count, step, step);
    expect(tr_stream_get(stream, "levels", data));
    for (int level = 0; level < 2; ++level)
      compare_texts("levels", data + level * count * length, length, lower[0], count, level, step);
    expect(tr_stream_get(stream, "note", data));
    snprintf(note, sizeof note, "step %d", step);
    if (memcmp(data, note, (size_t)length) != 0) {
      printf("FAILED: rank %d: the note is '%.*s'\n", rank, length, data);
      ++failures;
    }
    expect(tr_stream_end(stream));
  }
  expect(tr_layout_free(&stations));
  expect(tr_layout_free(&one));
}

static void define_texts_wrongly(tr_stream* stream) {
  static const struct {
    int type;
    const char* options;
  } wrong[] = {{TR_TEXT(LENGTH), "missing=0"},
               {TR_TEXT(LENGTH), "accuracy=0.1"},
               {TR_TEXT(LENGTH), "operation=mean"},
               {TR_TEXT(0), NULL},
               {TR_TEXT(4097), NULL},
               {TR_TEXT(LENGTH), "statistic=maximum"},
               {TR_TEXT(LENGTH), NULL}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    expect(tr_stream_define(stream, i == 0 ? "a" : "b", cells, wrong[i].type, wrong[i].options));
  expect(tr_layout_axis(cells, "y", TR_TEXT(3), NY, "abcdefghijkl", NULL, NULL));
  expect(tr_stream_attribute(stream, "b", "flag", TR_TEXT(3), 1, "abc"));
}

/* Each call that fails tells why. */
static void read_wrongly(tr_stream* stream) {
  static const struct {
    const char* field;
    int type;
    const char* options;
  } wrong[] = {{"i32", TR_I16, NULL},        {"u8", TR_I8, NULL},   {"i8", TR_U64, NULL},
               {"f32", TR_I64, NULL},        {"u16", TR_U16, NULL}, {"i16", TR_C64, NULL},
               {"u32", TR_U32, "missing=-1"}};
  char data[MOST * 16];
  const char* defined[8];
  int count = 0;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    const int code = tr_stream_define(stream, wrong[i].field, cells, wrong[i].type, wrong[i].options);
    if (code == TR_OK) defined[count++] = wrong[i].field;
    expect(code);
  }
  for (int i = 0; i < count; ++i) {
    expect(tr_stream_begin(stream, 0));
    tr_stream_get(stream, defined[i], data);
    expect(tr_stream_end(stream));
  }
}

/* Fields of unsigned numbers beyond the signed types. */
static void operate(tr_stream* stream, int steps) {
  uint16_t mean[MOST];
  uint64_t top[MOST];
  uint8_t low[MOST];
  uint32_t sum[MOST];
  expect(tr_stream_define(stream, "mean", cells, TR_U16, "operation=mean"));
  expect(tr_stream_define(stream, "top", cells, TR_U64, "operation=maximum"));
  expect(tr_stream_define(stream, "low", cells, TR_U8, "operation=minimum missing=255"));
  expect(tr_stream_define(stream, "sum", cells, TR_U32, "operation=accum"));
  for (int step = 0; step < steps && failures == 0; ++step) {
    for (int i = 0; i < MOST; ++i) {
      mean[i] = (uint16_t)(50000 + 10 * step);
      top[i] = ((uint64_t)1 << 63) + 5 - (uint64_t)step;
      low[i] = (uint8_t)(step % 2 ? 255 : 200 + step);
      sum[i] = 2000000000U + (uint32_t)step;
    }
    expect(tr_stream_begin(stream, 3600 * step));
    expect(tr_stream_put(stream, "mean", mean));
    expect(tr_stream_put(stream, "top", top));
    expect(tr_stream_put(stream, "low", low));
    expect(tr_stream_put(stream, "sum", sum));
    expect(tr_stream_end(stream));
  }
}

static void run(char** arguments, const char* how) {
  const tr_index shape[2] = {NY, NX};
  const int steps = atoi(arguments[3]), is_wide = strcmp(how, "wide") == 0,
            is_wrong = strcmp(how, "wrong") == 0;
  const int reads_texts = strcmp(how, "read-texts") == 0 || strcmp(how, "wide-texts") == 0;
  const int reads = strcmp(how, "read") == 0 || is_wide || is_wrong || reads_texts;
  tr_stream* stream = NULL;
  expect(tr_layout_block(2, shape, NULL, &cells));
  expect(tr_layout_dimensions(cells, "y,x"));
  expect(reads ? tr_stream_open(arguments[1], arguments[2], &stream)
               : tr_stream_create(arguments[1], arguments[2], &stream));
  if (stream == NULL) return;
  if (strcmp(how, "texts") == 0)
    write_texts(stream, steps);
  else if (reads_texts)
    read_texts(stream, steps, strcmp(how, "wide-texts") == 0 ? WIDE : LENGTH);
  else if (strcmp(how, "wrong-texts") == 0)
    define_texts_wrongly(stream);
  else if (is_wrong)
    read_wrongly(stream);
  else if (reads)
    read_steps(stream, steps, is_wide);
  else if (strcmp(how, "old") == 0)
    expect(tr_stream_define(stream, "u16", cells, TR_U16, NULL));
  else if (strcmp(how, "operations") == 0)
    operate(stream, steps);
  else
    write_steps(stream, steps);
  expect(tr_stream_close(&stream));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  expect(tr_init(MPI_COMM_WORLD, &compute, NULL));
  if (argc >= 4 && compute != MPI_COMM_NULL) {
    MPI_Comm_rank(compute, &rank);
    run(argv, argc > 4 ? argv[4] : "");
  }
  expect(tr_layout_free(&cells));
  expect(tr_finalize());
  MPI_Finalize();
  return failures > 0;
}
