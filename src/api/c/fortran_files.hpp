/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The calls behind the Fortran face: those of its type(tr_file) (bindings/fortran/parts/files.inc),
 * unformatted files, and the way of arrays to and from the I/O rank, which formats. They are no part of the C
 * face. Indices and extents are in C order. Functions return TR_OK, a TR_ERR_* code, or TR_END_F if the file
 * ended; tr_error() has the text. */
#ifndef TAILRACE_FORTRAN_FILES_H
#define TAILRACE_FORTRAN_FILES_H

#include <stdint.h>

#include "tailrace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TR_END_F = -1 };

/* A call of DONIO has failed that the Fortran program may have made as a subroutine
 * (bindings/fortran/donio.F90). `together`: on every rank. Prints tr_error(), and returns with
 * TAILRACE_DONIO_ERRORS=return alone. */
TR_API void tr_donio_failed_f(int together);

/* A variable. Without a layout every rank has the whole of it, and `element` may be any size. */
typedef struct tr_item_f {
  void* data;
  const tr_layout* layout;
  int32_t type;
  int32_t ndims;
  int32_t section_dims; /* 0: the whole array */
  int32_t unused;
  int64_t element; /* bytes */
  int64_t unit;    /* bytes of each number that an element consists of */
  int64_t extents[8];
  int64_t strides[8]; /* bytes */
  int64_t start[8];
  int64_t stop[8];
  int64_t stride[8];
} tr_item_f;

/* Collective (mode letter l: local), as all calls up to tr_close_f. `status` and `action` are Fortran's
 * words, or "". `letters`: p, s, l. `marker`: 4 or 8 bytes around a record; 0: as the file has them, or 4. */
TR_API int tr_open_f(const char* path, const char* status, const char* action, const char* letters,
                     int sequential, int swapped, int marker, int at_end, tr_file** file);
TR_API int tr_begin_f(tr_file* file, int reads);
/* Outside of a record it is a record by itself. `ndims` 0: an array allocated as the layout says, known only
 * by its address. */
TR_API int tr_move_f(tr_file* file, int reads, const tr_item_f* item);
TR_API int tr_end_f(tr_file* file);
TR_API int tr_backspace_f(tr_file* file);
TR_API int tr_rewind_f(tr_file* file);
TR_API int tr_endfile_f(tr_file* file);
TR_API int tr_flush_f(tr_file* file);
TR_API int tr_wait_f(tr_file* file);
TR_API int tr_close_f(tr_file* file, int removes);
/* Local. Positions count from 0. */
TR_API int tr_in_record_f(tr_file* file);
TR_API int tr_seek_f(tr_file* file, int64_t position);
TR_API int64_t tr_position_f(tr_file* file);
TR_API int64_t tr_size_f(tr_file* file);
TR_API int tr_is_local_f(tr_file* file);
/* Local. Sets the length of subrecords, for tests, which cannot write 2 GiB. */
TR_API int tr_set_subrecord_f(tr_file* file, int64_t bytes);

/* Local. Returns 1 on the I/O rank of the session. */
TR_API int tr_formats_f(void);
/* Local. Returns the bytes that the item has in a file. */
TR_API int64_t tr_bytes_f(const tr_item_f* item);
/* Collective. Gathers the item, as it lies in a file, into `whole` on the I/O rank. With `back` it goes from
 * there into every rank. */
TR_API int tr_gather_f(const tr_item_f* item, void* whole, int back);
/* Collective. Returns the I/O rank's bytes on every rank. */
TR_API int tr_share_f(void* data, int64_t bytes);

/* Where a formatted file stands, for checkpoints. Any other value: what was written could not be flushed. */
enum {
  TR_STANDS_UNWRITTEN = 0, /* nothing was written to it since it was opened */
  TR_STANDS_AT_END = 1,
  TR_STANDS_ELSEWHERE = 2,
  TR_STANDS_OVERWRITTEN = 3,
  TR_STANDS_IN_RECORD = 4
};
/* Local, before a formatted file is opened that may be written. Says in `continues` if the file goes on where
 * a checkpoint has recorded it. Then the file has those bytes and no more, and is to be opened as an existing
 * one, at its end. Otherwise `empties` says that it is begun anew. Fails on the I/O rank alone. */
TR_API int tr_text_continue_f(const char* path, int empties, int* continues);
/* Local, on the I/O rank. Call it before anything is written but at the file's end. */
TR_API int tr_text_overwrites_f(const char* path);
/* Local, on the I/O rank. Returns an error if the file that is open as `descriptor` ends before byte
 * `reached`, up to which it was written, or whatever it holds if `reached` is negative. `kept` bytes are
 * known to have been there. A file that is not regular has no end. */
TR_API int tr_text_lost_f(const char* path, int descriptor, int64_t reached, int64_t kept);
/* Local. Says that the file is open. `stand` is called on the I/O rank when a checkpoint is saved: it flushes
 * the file, and gives its size in bytes and one of the values above. With `cuts` a sequential file that was
 * written over ends behind the last record from then on. */
TR_API void tr_text_opened_f(const char* path, int (*stand)(void* handle, int cuts, int64_t* size),
                             void* handle);
/* Local. Says that the file is about to be closed. */
TR_API void tr_text_closed_f(void* handle);

/* Called by each rank whose collective call failed without `ierr`, before it ends its process. Prints `text`
 * on one of them: on compute rank 0, or on another one if rank 0 does not come here within seconds. Returns
 * once the text is out, so that no rank ends the job before. */
TR_API void tr_print_once_f(const char* text);

#ifdef __cplusplus
}
#endif
#endif
