/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Out-of-core arrays: an array in a file, larger than memory, that is worked on in portions. While the
 * program computes on the current portion, the next ones are read and the last ones are written. Included by
 * tailrace.h.
 *
 * The array is cut into portions: boxes of one shape, those at the upper edges smaller. They are numbered in
 * C order and dealt to the compute ranks in turn: portion p belongs to rank p % ranks. Each rank visits its
 * own portions, each once, at its own pace:
 *
 *   tr_window_open("a.dat", "r+", TR_F64, 2, shape, portion, NULL, 1, NULL, &window);
 *   while (tr_window_next(window, &data, lower, upper) == TR_OK && data != NULL) {
 *     compute(data, lower, upper);
 *     tr_window_dirty(window);
 *   }
 *   tr_window_close(&window);
 *
 * On disk the array lies in the element order of the global array (C order of `shape`), in native byte order,
 * as tr_fwrite_array leaves it. Shapes and indices are in C order (slowest first) and start at 0. Portions
 * that span whole rows of the array are read and written in the largest pieces.
 *
 * Memory of a rank: depth + 1 portions ("r+": depth + 2), halo included, and never more than the portions it
 * has. tr_window_open allocates all of it, and tr_window_close gives it back. */
#ifndef TAILRACE_WINDOWS_H
#define TAILRACE_WINDOWS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_window tr_window;

/* Collective over the compute ranks, which pass the same arguments; blocks until the file is open everywhere.
 *
 *   mode     "r": the array is read.
 *
 *            "r+": read, and portions marked by tr_window_dirty are written back.
 *
 *            "w": nothing is read; the file is made anew, or emptied, with its full size, and every
 *            visited portion is written. The others are zeros.
 *
 *   portion  extents of a portion; larger ones are cut to those of the array.
 *
 *   halo     elements on each side of a portion that are read with it, or NULL; not for "w". In "r+" they
 *            are what the file holds at that moment: old values, new values, or both, if a neighbouring
 *            portion is changed in the same pass. To compute new values from old neighbours, read one file
 *            and write another.
 *
 *   depth    portions that are read ahead of the current one ("w": that may be on their way to the file
 *            behind it); 0: one. TAILRACE_IO_THREADS=0 reads and writes all of them inside the calls.
 *
 *   options  "offset=BYTES": where in the file the array begins (0). NULL for none.
 *
 * The file is opened by that name on every rank that has portions, so relative names need one working
 * directory. TR_ERR_IO: it cannot be opened or made. TR_ERR_LAYOUT: it is too short for the array.
 * TR_ERR_MEMORY: there is no memory for the portions; an existing file is left as it was. The same error on
 * every rank. */
TR_API int tr_window_open(const char* path, const char* mode, int type, int ndims, const tr_index* shape,
                          const tr_index* portion, const tr_index* halo, int depth, const char* options,
                          tr_window** window);

/* Local. Leaves the current portion and goes to the caller's next one: lower[d] <= i[d] < upper[d] without
 * halo (either may be NULL). *data is its memory, a box in C order: the portion and its halo as far as that
 * lies inside of the array, from max(lower[d] - halo[d], 0) to below min(upper[d] + halo[d], shape[d]). It is
 * aligned to 64 bytes and valid until the next call for this window. In "w" its content is undefined: fill
 * all of it. *data = NULL after the last portion. The call waits until this portion is read and, if its
 * memory was another portion's, until that one is written, and for nothing else. An error is that of a
 * portion of the caller's that could not be read or written. *data is NULL then; the following calls return
 * the error again, and so does tr_window_close on every rank. */
TR_API int tr_window_next(tr_window* window, void** data, tr_index* lower, tr_index* upper);

/* Local. Returns the bounds of the current portion, with or without halo. with_halo != 0 gives the box that
 * lies at the address returned by tr_window_next. TR_ERR_STATE if there is no current portion. */
TR_API int tr_window_bounds(const tr_window* window, int with_halo, tr_index* lower, tr_index* upper);

/* Local. Marks the current portion, without its halo: it is written back when the program leaves it. Not
 * needed in "w". TR_ERR_STATE in "r" and if there is no current portion. */
TR_API int tr_window_dirty(tr_window* window);

/* Local. Returns the seconds that the caller has spent in tr_window_next so far. */
TR_API int tr_window_waited(const tr_window* window, double* seconds);

/* Collective; blocks until every rank has called it and everything is written, so that a program that opens
 * the file then sees it. Portions not visited are left as they are. Returns the verdict of all ranks: the
 * failure of the lowest portion that could not be read or written. *window becomes NULL, whatever is
 * returned. tr_finalize closes windows that are left open. */
TR_API int tr_window_close(tr_window** window);

#ifdef __cplusplus
}
#endif
#endif
