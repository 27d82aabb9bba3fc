/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The calls behind the Fortran face: those of its type(tr_file) (bindings/fortran/parts/files.inc), for
 * unformatted files, and those that move arrays to and from the I/O rank, which formats them. They are not
 * part of the C face. Indices and extents are in C order. Functions return TR_OK, a TR_ERR_* code, or
 * TR_END_F at the end of a file. tr_error() has the text. */
#ifndef TAILRACE_FORTRAN_FILES_H
#define TAILRACE_FORTRAN_FILES_H

#include <stdint.h>

#include "tailrace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TR_END_F = -1 };

/* Handles a failed call of DONIO that the Fortran program may have made as a subroutine
 * (bindings/fortran/donio.F90). Prints tr_error() and ends all ranks; with TAILRACE_DONIO_ERRORS=return it
 * prints and returns. `together` is not 0 if the call has failed on every rank. */
TR_API void tr_donio_failed_f(int together);

/* A variable of a Fortran read or write. Without a layout every rank has the whole of it, and `element` may
 * be any size. */
typedef struct tr_item_f {
  void* data;
  const tr_layout* layout;
  int32_t type;
  int32_t ndims;
  int32_t section_dims; /* 0: the whole array */
  int32_t unused;
  int64_t element; /* bytes */
  int64_t unit;    /* bytes of each number in an element */
  int64_t extents[8];
  int64_t strides[8]; /* bytes */
  int64_t start[8];
  int64_t stop[8];
  int64_t stride[8];
} tr_item_f;

/* Collective (mode letter l: local), as are all calls up to tr_close_f. Opens an unformatted file. `status`
 * and `action` are Fortran's words, or "". `letters`: p, s, l. `marker`: the bytes of the length before and
 * after a record, 4 or 8; 0: as the file has them, or 4 in a new file. */
TR_API int tr_open_f(const char* path, const char* status, const char* action, const char* letters,
                     int sequential, int swapped, int marker, int at_end, tr_file** file);
TR_API int tr_begin_f(tr_file* file, int reads);
/* Reads or writes an item: the next part of the current record, or outside of a record a record of its own.
 * If `ndims` is 0, the item is an array allocated as the layout says, of which only the address is known. */
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
/* Local. Sets the length of subrecords. For tests, which cannot write 2 GiB. */
TR_API int tr_set_subrecord_f(tr_file* file, int64_t bytes);

/* Local. Returns 1 on the I/O rank of the session. */
TR_API int tr_formats_f(void);
/* Local. Returns how many bytes the item takes in a file. */
TR_API int64_t tr_bytes_f(const tr_item_f* item);
/* Collective. Gathers the item, in the order of a file, into `whole` on the I/O rank. If `back` is not 0,
 * scatters it from there to every rank. */
TR_API int tr_gather_f(const tr_item_f* item, void* whole, int back);
/* Collective. Copies the I/O rank's bytes at `data` to `data` on every rank. */
TR_API int tr_share_f(void* data, int64_t bytes);

/* Where a formatted file stands, for checkpoints. Any other value means that its bytes could not be
 * flushed. */
enum {
  TR_STANDS_UNWRITTEN = 0, /* nothing was written since it was opened */
  TR_STANDS_AT_END = 1,
  TR_STANDS_ELSEWHERE = 2,
  TR_STANDS_OVERWRITTEN = 3,
  TR_STANDS_IN_RECORD = 4
};
/* Local. Call it before a formatted file is opened that may be written. *continues becomes 1 if the file goes
 * on where a checkpoint has recorded it: then the file has the recorded bytes and no more, and has to be
 * opened as an existing file, at its end. Otherwise `empties` says whether the file begins anew. Fails on the
 * I/O rank only. */
TR_API int tr_text_continue_f(const char* path, int empties, int* continues);
/* Local, on the I/O rank. Keeps the bytes of the file for checkpoints. Call it before anything is written
 * elsewhere than at the file's end. */
TR_API int tr_text_overwrites_f(const char* path);
/* Local, on the I/O rank. Returns an error if the open file `descriptor` is shorter than `reached`, the byte
 * up to which it was written. With a negative `reached` it returns an error for any length. `kept` bytes are
 * known to have been in the file. Returns TR_OK for a file that is not regular, because it has no end. */
TR_API int tr_text_lost_f(const char* path, int descriptor, int64_t reached, int64_t kept);
/* Local. Notes that the file is open. When a checkpoint is saved, `stand` is called on the I/O rank: it
 * flushes the file, and returns its size in bytes and one of the values above. If `cuts` is not 0, a
 * sequential file that was overwritten ends behind the last record from then on. */
TR_API void tr_text_opened_f(const char* path, int (*stand)(void* handle, int cuts, int64_t* size),
                             void* handle);
/* Local. Notes that the file is about to be closed. */
TR_API void tr_text_closed_f(void* handle);

/* Prints `text` on one rank: on compute rank 0, or on another one if rank 0 does not call this within
 * seconds. Each rank whose collective call failed without `ierr` calls it before it ends its process. Returns
 * once the text is printed, so that no rank ends the job before. */
TR_API void tr_print_once_f(const char* text);

#ifdef __cplusplus
}
#endif
#endif
