/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A program's own encoder, as a format of streams. Included by tailrace.h.
 *
 * The program registers functions under a name on every rank, and opens streams with format=NAME. The library
 * gathers each record (one level of one field in one step), passes it to the encoder, and writes the bytes
 * that the encoder returns. Order, places, commit, index and restart are the same as for every format
 * (docs/streams.md).
 *
 * The functions run on the servers, and with 0 servers inside tr_stream_end. Several threads call them at the
 * same time, for different records. If the bytes depend on the record alone, the file is the same for any
 * number of ranks and servers. The functions must not call MPI, and of this library only what this header
 * declares. */
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

/* A record and the definitions that it comes from. The library owns all of it; it is valid during the call.
 * Later versions may add members at the end. */
typedef struct tr_record {
  const char* stream;     /* the pattern of the stream's files */
  const char* field;      /* the field's name */
  int32_t type;           /* type of the values, as the field was defined: TR_F32, ... */
  int32_t ndims;          /* number of dimensions; 0: one number */
  const int64_t* shape;   /* shape of the record and its layout, slowest dimension first */
  int64_t count;          /* number of values: the product of the shape */
  const void* values;     /* the whole record in C order; NULL in `bound` and `head` */
  const char* level_type; /* "surface", "hybrid", "isobaricInhPa", ... */
  double level;           /* the value of the level; in hPa for isobaricInhPa */
  double level_bottom;    /* the bottom of a layer; equal to `level` if levels of this type are no layers */
  int64_t levels;         /* number of levels of the field */
  const double* level_values; /* the values of the levels, in the order of the array's level dimension */
  int64_t level_number;       /* the number of this level among them, from 0 */
  int64_t field_number;       /* the number of this field in the stream, from 0, in the order of definition */
  const char* statistic;      /* "instant", "accum", "average", "maximum" or "minimum" */
  /* Seconds from the base time to the time of validity, or other units if lead_unit= says so; 0 with
   * time=model. `time` has the time of any stream. */
  int64_t lead;
  int64_t interval_start;   /* lead at which the statistic's interval began; equal to `lead` if instant */
  const char* base_time;    /* "2026-03-01T00:00:00Z"; "" with time=model and no base= */
  const char* calendar;     /* "proleptic_gregorian", "360_day", "noleap", "julian" or "all_leap" */
  int32_t member;           /* number of this run in the ensemble; -1: none */
  int32_t bits;             /* bits= of the field; 0: not given */
  double accuracy;          /* accuracy= of the field; NaN: not given */
  double relative_accuracy; /* relative_accuracy= of the field; NaN: not given */
  /* missing= of the field, if has_missing: the value that means "no value". It is as elements of the type
   * hold it, so that values[i] == missing finds 1e20 in float32, too. */
  double missing;
  int32_t has_missing;     /* 1 if missing= was given, else 0 */
  const char* const* keys; /* other options: name, value, name, value, ..., NULL; see tr_record_key */
  double time;             /* the time as a variable of time has it, in time_units */
  double interval_begin;   /* the time at which the statistic's interval began; equal to `time` if instant */
  const char* time_units;  /* "seconds since 2026-03-01 00:00:00"; with time=model and no base=, as "s" */
} tr_record;

/* Local. Returns the value of an option that Tailrace does not know, such as quality=3, as given for the
 * field, or otherwise for the stream. Returns NULL if it was not given. */
TR_API const char* tr_record_key(const tr_record* record, const char* name);

/* Takes the bytes of one record, or of the head of files. */
typedef struct tr_encoded tr_encoded;

/* Local. Appends `count` bytes. Returns 0. If that would exceed the bound, appends nothing, returns another
 * value, and the step fails. */
TR_API int tr_encoded_append(tr_encoded* out, const void* bytes, int64_t count);
/* Local. Appends `count` bytes of zero for the caller to fill. Returns their address, which is valid until
 * the next call on `out`. Returns NULL in the cases in which tr_encoded_append does not return 0. */
TR_API void* tr_encoded_room(tr_encoded* out, int64_t count);
/* Local. Keeps the first `count` bytes of the last room and drops the others. Returns 0. If the room was
 * smaller, returns 1, and the step fails. */
TR_API int tr_encoded_used(tr_encoded* out, int64_t count);
/* Local. Fails the step on every rank with this text, to which the library adds format, field, level and
 * lead. `index` is the position in the record, in C order from 0, of a value that cannot be encoded: the
 * error is then TR_ERR_DATA, and names the rank that owns the value. With -1 it is TR_ERR_FORMAT. Returns 1,
 * so that an encoder may end with return tr_encoded_fail(...). */
TR_API int tr_encoded_fail(tr_encoded* out, int64_t index, const char* text);

/* The functions of an encoder. Set them as in: tr_encoder functions = TR_ENCODER; functions.encode = ...; All
 * but `encode` may be NULL. `user` is the pointer given to tr_encoder_register. A result that is not 0 is an
 * error. Later versions may add functions at the end. */
typedef struct tr_encoder {
  size_t size; /* TR_ENCODER sets it: the part of this struct that the program knows */
  /* Appends the bytes of `record` to `out`: at least one byte, and at most as many as `bound` says. An error
   * fails the step on every rank. `thread` is the result of thread_begin. */
  int (*encode)(const tr_record* record, tr_encoded* out, void* thread, void* user);
  /* Returns the most bytes that a record of this field takes. NULL means twice the bytes of its values, plus
   * 4096. Servers keep that much memory for a record. `out` takes no bytes here; with tr_encoded_fail the
   * function tells why it refuses the field. It runs on every compute rank at each tr_stream_define, which
   * returns its error, and once more in the first tr_stream_begin of a run that goes on. The value from
   * compute rank 0 counts, on servers too. */
  int64_t (*bound)(const tr_record* field, tr_encoded* out, void* user);
  /* Appends the bytes with which each file begins, at most 1 MiB. `fields` points to one record for each
   * field defined so far, with its first level. It runs where and when `bound` does, and the bytes from
   * compute rank 0 count. */
  int (*head)(const tr_record* const* fields, int32_t count, tr_encoded* out, void* user);
  /* Make and free the workspace that one thread needs to encode the records of one stream. thread_begin may
   * return NULL, which is passed on. It runs on the thread that then encodes. thread_end may run on another
   * thread, once nobody encodes any more. */
  void* (*thread_begin)(void* user);
  void (*thread_end)(void* thread, void* user);
} tr_encoder;

/* The initial value of a tr_encoder: its size, and no functions. */
#define TR_ENCODER \
  { sizeof(tr_encoder), NULL, NULL, NULL, NULL, NULL }

/* Local, inside or outside of a session. Registers functions under a name: format=NAME means them for the
 * rest of the process, on this rank. `name` has letters, digits, "_" and "-", at most 32 of them, and must
 * not be the name of another format. The functions are copied. `user` must live as long as a stream of the
 * format may be open.
 *
 * Every rank registers the same names before tr_stream_create. If the job has servers, it does so before
 * tr_init, because servers work inside tr_init. Otherwise tr_stream_create returns TR_ERR_SETTINGS on every
 * rank and names a rank that lacks the encoder.
 *
 * Returns TR_OK or a code, with tr_error(). TR_ERR_ARGUMENT if `functions` was not initialised with
 * TR_ENCODER. TR_ERR_STATE if the name is registered with other functions. Registering it again with the same
 * functions changes nothing. */
TR_API int tr_encoder_register(const char* name, const tr_encoder* functions, void* user);

#ifdef __cplusplus
}
#endif

#endif
