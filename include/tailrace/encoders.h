/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A program's own encoder, as a format of streams. Included by tailrace.h.
 *
 * The program registers functions under a name on every rank, and opens streams with format=NAME. The library
 * gathers each record (one level of one field in one step), hands it to the encoder, and writes the bytes
 * that come back: order, places, commit, index and restart are those of every format (docs/streams.md).
 *
 * The functions run on the servers, and with 0 servers inside of tr_stream_end. Several threads call them at
 * the same time, for different records. Bytes may depend on the record alone: then the file is the same for
 * any number of ranks and servers. The functions call nothing of MPI, and of this library only what this
 * header declares. */
#ifndef TAILRACE_ENCODERS_H
#define TAILRACE_ENCODERS_H

#include <stddef.h>
#include <stdint.h>

#ifndef TR_API
#if defined(TAILRACE_BUILDING) || defined(__GNUC__)
#define TR_API __attribute__((visibility("default")))
#else
#define TR_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A record and the definitions behind it. The library owns all of it; it is valid during the call. Later
 * versions may add members at the end. */
typedef struct tr_record {
  const char* stream;     /* the pattern of the stream's files */
  const char* field;      /* the field's name */
  int32_t type;           /* of the values, as the field was defined: TR_F32, ... */
  int32_t ndims;          /* number of dimensions */
  const int64_t* shape;   /* of the record, slowest dimension first: that of the layout */
  int64_t count;          /* number of values: the product of the shape */
  const void* values;     /* the whole record in C order; NULL in `bound` and `head` */
  const char* level_type; /* "surface", "hybrid", "isobaricInhPa", ... */
  double level;           /* the value of the level; hPa for isobaricInhPa */
  double level_bottom;    /* its second surface, if levels of this type are layers; else equal to `level` */
  int64_t levels;         /* number of levels of the field */
  const double* level_values; /* their values, in the order of the array's level dimension */
  int64_t level_number;       /* this level among them, from 0 */
  int64_t field_number;       /* this field among those of the stream, from 0, in the order of definition */
  const char* statistic;      /* "instant", "accum", "average", "maximum" or "minimum" */
  int64_t lead;               /* seconds from the base time to the time of validity */
  int64_t interval_start;     /* lead at which the statistic's interval began; equal to `lead` if instant */
  const char* base_time;      /* "2026-03-01T00:00:00Z" */
  const char* calendar;       /* "proleptic_gregorian", "360_day", "noleap", "julian" or "all_leap" */
  int32_t member;             /* number of this run in the ensemble; -1: none */
  int32_t bits;               /* bits= of the field; 0: not given */
  double accuracy;            /* accuracy= of the field; NaN: not given */
  double relative_accuracy;   /* relative_accuracy= of the field; NaN: not given */
  double missing;      /* missing= of the field, the value that means "no value", if has_missing, as elements
                          of the type hold it: values[i] == missing finds 1e20 in float32, too */
  int32_t has_missing; /* 1 if missing= was given, else 0 */
  const char* const* keys; /* name, value, name, value, ..., NULL: other options; see tr_record_key */
} tr_record;

/* Local. Returns the value of an option that Tailrace does not know, as quality=3 of the field or else of the
 * stream, or NULL. */
TR_API const char* tr_record_key(const tr_record* record, const char* name);

/* Takes the bytes of one record, or of the head of files. */
typedef struct tr_encoded tr_encoded;

/* Local. Appends `count` bytes. Returns 0. If there would be more than the bound, nothing is appended, the
 * result is not 0, and the step fails. */
TR_API int tr_encoded_append(tr_encoded* out, const void* bytes, int64_t count);
/* Local. Appends `count` bytes of zero for the caller to fill. Returns their address, which is valid until
 * the next call on `out`, or NULL where tr_encoded_append would not return 0. */
TR_API void* tr_encoded_room(tr_encoded* out, int64_t count);
/* Local. Says that only the first `count` bytes of the last room are used. The others are dropped. Returns 0,
 * or 1 and fails the step if there was less room. */
TR_API int tr_encoded_used(tr_encoded* out, int64_t count);
/* Local. Fails the step on every rank with this text. The library adds format, field, level and lead.
 * `index`: the position in the record of a value that cannot be encoded, in C order from 0, so that the rank
 * that owns it is named and the error is TR_ERR_DATA; -1: none, and TR_ERR_FORMAT. Returns 1, so that an
 * encoder may end with return tr_encoded_fail(...). */
TR_API int tr_encoded_fail(tr_encoded* out, int64_t index, const char* text);

/* The functions of an encoder: tr_encoder functions = TR_ENCODER; functions.encode = ...;
 * `user` is what was given to tr_encoder_register. All but `encode` may be NULL. A result that is not 0 is an
 * error. Later versions may add functions at the end. */
typedef struct tr_encoder {
  size_t size; /* TR_ENCODER sets it: how much of this struct the program knows */
  /* Appends the bytes of `record` to `out`, at least one and at most its bound. An error fails the step on
   * every rank. `thread` is what thread_begin returned. */
  int (*encode)(const tr_record* record, tr_encoded* out, void* thread, void* user);
  /* Returns the most bytes that a record of this field takes. NULL: twice the bytes of its values, and 4096.
   * Servers keep that much memory for a record. `out` takes no bytes; with tr_encoded_fail the function says
   * why it refuses the field. It runs on every compute rank at each tr_stream_define, and an error is that
   * call's. What compute rank 0 gets counts, on servers too. */
  int64_t (*bound)(const tr_record* field, tr_encoded* out, void* user);
  /* Appends what each file begins with, at most 1 MiB. `fields` points to one record for each field defined
   * so far, with its first level. It runs where and when `bound` does, and compute rank 0's bytes count. */
  int (*head)(const tr_record* const* fields, int32_t count, tr_encoded* out, void* user);
  /* Make and free what one thread needs to encode the records of one stream, as a workspace. NULL may be
   * returned, and is passed on. thread_begin runs on the thread that then encodes; thread_end may run on
   * another one, when nobody encodes any more. */
  void* (*thread_begin)(void* user);
  void (*thread_end)(void* thread, void* user);
} tr_encoder;

/* The value with which a tr_encoder begins: its size, and no functions. */
#define TR_ENCODER \
  { sizeof(tr_encoder), NULL, NULL, NULL, NULL, NULL }

/* Local, without a session or in one. Makes format=NAME mean these functions for the rest of the process, on
 * this rank. `name` has letters, digits, "_" and "-", at most 32, and is not that of another format. The
 * functions are copied; `user` must live as long as a stream of the format may be open. Every rank registers
 * the same names, before tr_stream_create, and before tr_init if the job has servers, since those work
 * inside of it: otherwise tr_stream_create is TR_ERR_SETTINGS on every rank and names a rank that lacks the
 * encoder. TR_ERR_ARGUMENT if `functions` was not begun with TR_ENCODER. TR_ERR_STATE if the name is
 * registered with other functions; to register it again with the same ones changes nothing. Returns TR_OK or
 * a code, with tr_error(). */
TR_API int tr_encoder_register(const char* name, const tr_encoder* functions, void* user);

#ifdef __cplusplus
}
#endif

#endif
