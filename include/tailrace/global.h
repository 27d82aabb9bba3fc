/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Global arrays: elements of one type that lie in the memory of all ranks, in pages. Each rank reads, writes
 * and adds to elements anywhere, as it likes. Included by tailrace.h.
 *
 *   tr_global_create(TR_F64, vertices, NULL, &mass);
 *   for (each of my elements)
 *     tr_global_accumulate(mass, 8, its_vertices, its_masses, TR_LOCKED);
 *   tr_global_sync(mass);
 *   tr_global_gather(mass, n, my_vertices, values);
 *   tr_global_free(&mass);
 *
 * Page p belongs to rank p % ranks of the communicator, its owner. On one node every rank loads and stores
 * elements directly. Elements of other nodes travel in messages, many elements in each, to and from the
 * owners of their pages. Who answers, on the other node?
 *
 *   - If the node has an I/O server (TAILRACE_SERVERS), its first server answers for the owners at any time.
 *   - Otherwise, if the program has initialised MPI with MPI_THREAD_MULTIPLE and TAILRACE_IO_THREADS is not
 *     0, a service thread of each owner answers at any time.
 *   - Otherwise owners answer in calls of this library: in calls that wait, in calls on global arrays with
 *     ranks on several nodes, and in tr_progress. An owner that computes, or waits in a call of MPI such as
 *     MPI_Barrier, answers nobody: ranks of other nodes that need its elements wait for it.
 *
 * Visibility: a rank reads its own writes at once, in the order in which it made them. A rank is certain to
 * read the writes of another rank if both ranks have called tr_global_sync between the write and the read; on
 * one node it may read them earlier. Ranks that write the same element need a sync between the writes.
 * Without it, the element keeps the value of one of the writers; an element of TR_C128 may mix parts of two
 * values. With TAILRACE_CHECK_CONFLICTS=on each sync prints where a sync was missing (docs/global-arrays.md).
 *
 * Local calls may wait for ranks of other nodes: each says for what. A scatter, write or accumulate that
 * fails on another node returns TR_OK. The next tr_global_sync, _resize or _free returns the first such error
 * on all ranks, once. All calls return TR_ERR_STATE for a handle of no array.
 *
 * Elements are numbered from 0. A call with an index that the array does not have does nothing. It returns
 * TR_ERR_ARGUMENT, whose text names the index and its position in the list; other ranks go on. The library
 * draws memory on the nodes' budgets, whole pages at a time. */
#ifndef TAILRACE_GLOBAL_H
#define TAILRACE_GLOBAL_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_global tr_global;

/* How tr_global_accumulate adds. */
enum { TR_UNLOCKED = 0, TR_LOCKED = 1 };

/* Collective over the compute ranks, which pass the same arguments. Makes an array of `count` elements of
 * `type` (TR_I8 to TR_U64), all zero. Blocks until the array is there on all ranks.
 *
 *   options  page=BYTES: the size of a page (1MiB), a power of 2 from 4KiB to 1GiB. NULL for none.
 *
 * TR_ERR_MEMORY if a node's budget or memory is too small. Errors are the same on every rank. */
TR_API int tr_global_create(int type, tr_index count, const char* options, tr_global** global);
/* Collective over `comm`, whose ranks must be compute ranks of the session. As tr_global_create. `comm` may
 * be freed before the array is. */
TR_API int tr_global_create_comm(MPI_Comm comm, int type, tr_index count, const char* options,
                                 tr_global** global);
/* As tr_global_create_comm, with a Fortran integer handle, for bindings. */
TR_API int tr_global_create_comm_f(MPI_Fint comm, int type, tr_index count, const char* options,
                                   tr_global** global);

/* Local; waits for nobody. *count becomes the number of elements. */
TR_API int tr_global_count(const tr_global* global, tr_index* count);

/* Local. Copies `n` elements to the caller's memory: values[i] becomes element indices[i]. Indices may come
 * in any order, and more than once. Waits for the owners of elements on other nodes. */
TR_API int tr_global_gather(tr_global* global, tr_index n, const tr_index* indices, void* values);
/* Local. Copies values[i] into element indices[i]. If an index is listed twice, the last value counts.
 * `values` may change after the call. Waits only while too much is on its way to other nodes. */
TR_API int tr_global_scatter(tr_global* global, tr_index n, const tr_index* indices, const void* values);
/* Local. Adds values[i] to element indices[i], as often as the index is listed. `values` may change after the
 * call. Integers wrap around. Waits as tr_global_scatter.
 *
 *   TR_LOCKED    Several ranks may add to the same elements with TR_LOCKED, and nothing is lost. Waits, for
 *                microseconds, for other ranks of the node that add to the same page. tr_global_scatter, and
 *                stores through tr_global_local, do not heed the lock.
 *   TR_UNLOCKED  Loads, adds and stores. Only one rank may add to an element between two syncs. Faster.
 *
 * The order of additions is not fixed, so sums of floating-point numbers may differ in their last bits from
 * run to run. TR_ERR_ARGUMENT for arrays of TR_I8, TR_I16, TR_U8 or TR_U16. */
TR_API int tr_global_accumulate(tr_global* global, tr_index n, const tr_index* indices, const void* values,
                                int lock);

/* Local. Copy the `n` elements from number `begin` on: tr_global_read into `values`, tr_global_write from
 * `values`. They wait as tr_global_gather and tr_global_scatter. TR_ERR_ARGUMENT, and nothing is copied, if
 * the array lacks some of the elements. */
TR_API int tr_global_read(tr_global* global, tr_index begin, tr_index n, void* values);
TR_API int tr_global_write(tr_global* global, tr_index begin, tr_index n, const void* values);

/* Local; waits for nobody. Returns the page with number `part`, from 0, among the pages of the caller:
 * *values is its address, *first the number of its first element, and *count the number of its elements.
 * After the last page *values is NULL and *count 0. The caller may load and store there until
 * tr_global_resize or tr_global_free. Its stores are writes.
 *
 *   for (tr_index part = 0; !tr_global_local(mass, part, &values, &first, &count) && count > 0; part++) */
TR_API int tr_global_local(tr_global* global, tr_index part, void** values, tr_index* first, tr_index* count);

/* Collective; blocks until all ranks have called it. Afterwards every rank sees what any rank wrote or added
 * before. */
TR_API int tr_global_sync(tr_global* global);
/* Collective; blocks until all ranks have called it. Does tr_global_sync, and changes the number of elements
 * to `count`. Elements that existed before keep their values; new ones are zeros. All ranks pass the same
 * count. If the number of pages changes, the old and the new array take memory at the same time for a moment
 * (TR_ERR_MEMORY). After an error the array is as it was. */
TR_API int tr_global_resize(tr_global* global, tr_index count);
/* Collective; blocks until all ranks have called it. Frees the array. *global becomes NULL, whatever is
 * returned. tr_finalize frees arrays that are left, with a warning. */
TR_API int tr_global_free(tr_global** global);

#ifdef __cplusplus
}
#endif
#endif
