/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Out-of-core arrays: an array in a file, larger than memory, on which the program works in portions. While
 * it computes on the current portion, the library reads the next ones and writes the last ones. Included by
 * tailrace.h.
 *
 * The array is cut into portions: boxes of one shape, smaller at the upper edges. They are numbered in C
 * order and dealt to the compute ranks in turn: portion p belongs to rank p % ranks. Each rank visits its own
 * portions, each once, at its own pace:
 *
 *   tr_window_open("a.dat", "r+", TR_F64, 2, shape, portion, NULL, 1, NULL, &window);
 *   while (tr_window_next(window, &data, lower, upper) == TR_OK && data != NULL) {
 *     compute(data, lower, upper);
 *     tr_window_dirty(window);
 *   }
 *   tr_window_close(&window);
 *
 * In the file the array has the element order of the global array (C order of `shape`) and native byte order,
 * as tr_fwrite_array writes it. Shapes and indices are in C order (slowest first) and start at 0. Portions
 * that span whole rows of the array are read and written in the largest pieces.
 *
 * Each rank needs memory for depth + 1 portions ("r+": depth + 2), halo included, but never for more portions
 * than it has. tr_window_open allocates all of it, and tr_window_close frees it. */
#ifndef TAILRACE_WINDOWS_H
#define TAILRACE_WINDOWS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_window tr_window;

/* Collective over the compute ranks, which pass the same arguments. Opens an array in a file. Blocks until
 * the file is open on all ranks that have portions.
 *
 *   mode     "r": the array is read.
 *
 *            "r+": the array is read, and portions marked by tr_window_dirty are written back.
 *
 *            "w": nothing is read. The file is made anew, or emptied, with its full size, and every visited
 *            portion is written. The other portions are zeros.
 *
 *   portion  the extents of a portion. Larger ones are cut to those of the array.
 *
 *   halo     the number of elements on each side of a portion that are read with it, or NULL. Not for "w".
 *            In "r+" the halo has what the file has at that moment: old values, new values, or both, if a
 *            neighbouring portion is changed in the same pass. To compute new values from old neighbours,
 *            read one file and write another.
 *
 *   depth    the number of portions that are read ahead of the current one; in "w", of portions that may
 *            still be on their way to the file. 0 means one. With TAILRACE_IO_THREADS=0 all portions are
 *            read and written inside the calls.
 *
 *   options  "offset=BYTES": where in the file the array begins (0). NULL for none.
 *
 * The file is opened by this name on every rank that has portions, so relative names need the same working
 * directory on all ranks. Errors, the same on every rank: TR_ERR_IO if the file cannot be opened or made.
 * TR_ERR_LAYOUT if it is too short for the array. TR_ERR_MEMORY if there is no memory for the portions; an
 * existing file then stays as it was. */
TR_API int tr_window_open(const char* path, const char* mode, int type, int ndims, const tr_index* shape,
                          const tr_index* portion, const tr_index* halo, int depth, const char* options,
                          tr_window** window);

/* Local. Leaves the current portion and goes to the caller's next one. `lower` and `upper` (either may be
 * NULL) become its bounds without halo: lower[d] <= i[d] < upper[d].
 *
 * *data becomes its memory, a box in C order: the portion with its halo, as far as the halo lies inside the
 * array, from max(lower[d] - halo[d], 0) to below min(upper[d] + halo[d], shape[d]). It is aligned to 64
 * bytes and valid until the next call for this window. In "w" its content is undefined: fill all of it. After
 * the last portion *data is NULL.
 *
 * Waits until the portion is read and, if its memory was that of another portion, until that portion is
 * written; for nothing else. Returns an error if one of the caller's portions could not be read or written.
 * *data is NULL then. The following calls return the error again, and so does tr_window_close on every
 * rank. */
TR_API int tr_window_next(tr_window* window, void** data, tr_index* lower, tr_index* upper);

/* Local. Returns the bounds of the current portion, with or without halo. With with_halo != 0 they are those
 * of the box at the address that tr_window_next has returned. TR_ERR_STATE if there is no current portion. */
TR_API int tr_window_bounds(const tr_window* window, int with_halo, tr_index* lower, tr_index* upper);

/* Local. Marks the current portion, without its halo, as changed: it is written back when the program leaves
 * it. Not needed in "w". TR_ERR_STATE in "r", and if there is no current portion. */
TR_API int tr_window_dirty(tr_window* window);

/* Local. *seconds becomes the time that the caller has spent in tr_window_next so far. */
TR_API int tr_window_waited(const tr_window* window, double* seconds);

/* Collective. Closes the window. Blocks until every rank has called it and everything is written: a program
 * that opens the file afterwards sees it. Portions not visited stay as they are. Returns the verdict of all
 * ranks: the failure of the lowest portion that could not be read or written. *window becomes NULL, whatever
 * is returned. tr_finalize closes windows that are left open. */
TR_API int tr_window_close(tr_window** window);

#ifdef __cplusplus
}
#endif
#endif
