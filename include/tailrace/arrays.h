/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Distributed arrays in collective files. Included by tailrace.h.
 *
 * In a file an array has the element order of the global array, for any number of ranks: C order of the
 * layout's shape. The Fortran face reverses the extents of Fortran's arrays, so that they lie as Fortran
 * writes them. In memory each rank's part is allocated as its layout says, with its halo.
 *
 * All calls are collective over the ranks that opened the file. On files of the local mode they are local:
 * each rank reads and writes what it owns, in the order of its own elements. They block until the data is
 * where fwrite(3) or fread(3) would have it. In files of the asynchronous mode a write returns as soon as the
 * array is captured, and a read returns at once: the array is complete after the next tr_fwait, and must not
 * be touched before. If ranks pass different arguments, every rank gets no elements, errno EINVAL and the
 * same tr_error(), and nothing is written. */
#ifndef TAILRACE_ARRAYS_H
#define TAILRACE_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One array of a call, or a section of it: the elements start[d], start[d] + stride[d], ... below stop[d], in
 * global indices of dimension d. With start = NULL it is the whole array, with stride = NULL every element.
 * `data` is the caller's part of the whole array; it may be NULL on ranks that own nothing. */
typedef struct tr_array {
  void* data;
  int type; /* TR_F64 ... */
  const tr_layout* layout;
  const tr_index* start;
  const tr_index* stop;
  const tr_index* stride;
} tr_array;

/* Collective. Writes the array at the file's position. Returns, as fwrite does, the number of elements
 * written, counted over the global array, the same on every rank. If it is less than the array has, errno is
 * set and tr_error() says why. */
TR_API size_t tr_fwrite_array(const void* data, int type, const tr_layout* layout, tr_file* file);
/* Collective. Reads the array from the file's position. Returns the number of elements read, counted over the
 * global array. It is less than the array has at the end of the file (feof) or after an error (ferror). */
TR_API size_t tr_fread_array(void* data, int type, const tr_layout* layout, tr_file* file);
/* Collective. Write or read several arrays or sections, one after another in the file. */
TR_API size_t tr_fwrite_arrays(const tr_array* arrays, int count, tr_file* file);
TR_API size_t tr_fread_arrays(const tr_array* arrays, int count, tr_file* file);

/* Collective (local files: local). Blocks until all asynchronous operations on the file are done. Returns 0,
 * or EOF with errno and tr_error() of the first operation, not reported yet, that failed or found the end of
 * the file. */
TR_API int tr_fwait(tr_file* file);

/* Collective. Registers the caller's part of an array. Returns the address by which <tailrace/stdio.h> and
 * tr_undistribute know the array: `data`, or an address of the library's own if `data` is NULL (a rank that
 * owns nothing). Returns NULL with tr_error() if the ranks disagree. The layout may be freed afterwards. */
TR_API void* tr_distribute(void* data, int type, const tr_layout* layout);
/* Collective. Forgets a registered array. `data` is the address that tr_distribute returned. */
TR_API int tr_undistribute(void* data);
/* Collective. As tr_fwrite and tr_fread of an array that tr_distribute has registered. Another address is an
 * error on every rank: they return 0 with EINVAL. tr_fwrite and tr_fread take such an address for memory of
 * the I/O rank. */
TR_API size_t tr_fwrite_distributed(const void* data, size_t size, size_t count, tr_file* file);
TR_API size_t tr_fread_distributed(void* data, size_t size, size_t count, tr_file* file);
/* Collective, as these. Without result: a failure is kept for tr_fwait, tr_fflush or tr_fclose. */
TR_API void tr_fwrite_distributed_nr(const void* data, size_t size, size_t count, tr_file* file);
TR_API void tr_fread_distributed_nr(void* data, size_t size, size_t count, tr_file* file);

#ifdef __cplusplus
}
#endif
#endif
