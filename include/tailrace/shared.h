/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Shared files: one binary file, in which every rank reads and writes small pieces anywhere, as it likes. The
 * file lies in the memory of all ranks, in pages. Small calls copy between the caller's memory and a page;
 * the disk sees large blocks, when the file is flushed or closed, and when a page is needed or must make
 * room. Included by tailrace.h.
 *
 *   tr_shared_open("elements.bin", "w", NULL, &file);
 *   for (each of my elements)
 *     tr_shared_pwrite(file, vertices, 32, 32 * element);
 *   tr_shared_close(&file);
 *
 * The file on disk holds what was written, byte for byte as a serial program would leave it; bytes that
 * nobody wrote are zeros, and it ends behind the highest byte written. Offsets, positions and sizes are in
 * bytes.
 *
 * Local calls may wait for storage and for ranks of other nodes: each says for what. All calls return
 * TR_ERR_STATE for a handle that is not open, and TR_ERR_ARGUMENT for a null pointer that must not be one,
 * and for a number of bytes, or a place in the file, below 0. Local calls that read or write fail if a page
 * cannot be read, or can make no room (TR_ERR_IO, TR_ERR_SPACE, TR_ERR_MEMORY). That error is the caller's
 * alone.
 *
 * Visibility: a rank reads its own writes at once, in the order in which it made them. A rank reads the
 * writes of another rank if both ranks have called tr_shared_sync or tr_shared_flush between the write and
 * the read; on one node it may read them earlier. Ranks that write the same bytes need a sync between the
 * writes. Without one, each page keeps the bytes of one of the writers. After a sync all ranks see the same
 * file size.
 * With TAILRACE_CHECK_CONFLICTS=on each sync prints where one was missing (docs/shared-files.md).
 *
 * Memory: the pages of a file take at most `memory=` bytes on each node. They draw on the node's budget as
 * they come into use. When the memory is full, the library reuses that of pages that were not used lately,
 * and first writes those that have changed to the file. Without `memory=` it begins with pages that were used
 * once and are stored as soon as the file has taken 128 MiB, or a sixteenth of the budget if that is less. A
 * rank that reads forward finds the next pages in memory: a thread brings them in.
 *
 * Several nodes: a rank asks the ranks of other nodes for their pages by messages. If the node has an I/O
 * server (TAILRACE_SERVERS), its first one answers at any time, except as said below. If it has none, the
 * program has initialised MPI with MPI_THREAD_MULTIPLE, and TAILRACE_IO_THREADS is not 0, a service thread
 * of each rank answers at any time. Otherwise ranks answer inside of any call of the library, tr_progress
 * too (one that reads or writes pages of its own node alone does so now and then), and not while they wait
 * in MPI. A rank in MPI_Barrier that waits for a reader then hangs the reader: let ranks wait in
 * tr_shared_sync. With a server the same happens if the page has to be brought in and all pages in the
 * memory of its node have changed: the server never stores, so that a rank of the node has to, inside of a
 * call or on a service thread. */
#ifndef TAILRACE_SHARED_H
#define TAILRACE_SHARED_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_shared tr_shared;

/* Bytes in the caller's memory, and their place in the file. */
typedef struct tr_piece {
  void* data; /* tr_shared_writev does not change it */
  int64_t bytes;
  int64_t offset;
} tr_piece;

/* Collective over the compute ranks, which pass the same arguments; blocks until the file is open everywhere.
 *
 *   mode     as in fopen(3), ISO C99 7.19.5.3: "r" reads; "r+" reads and writes a file that exists; "w" makes
 *            the file, or empties it, and writes; "w+" also reads; "a" and "a+" make the file if it is not
 *            there, and every tr_shared_write goes to its end. A letter "b" means nothing; "x" with "w": the
 *            file must not exist (ISO C11 7.21.5.3).
 *
 *   options  page=BYTES: of a page (1MiB), a power of 2 from 4KiB to 1GiB. memory=BYTES: the most that
 *            pages of this file may take on each node; without it, half of what the budget of the node
 *            leaves. safety=: the content of the file after a crash, see below. NULL for none.
 *
 * safety=none (the default): a program that is killed, or loses power, leaves what was stored so far, parts
 * of it older than others. That costs nothing.
 *
 * safety=journal: the file has the content of the last tr_shared_flush (or of the open, before the first
 * one), whole, whenever the program ends. Before flushed bytes are written over or cut off in the file they
 * are kept in files FILE.undo* beside it. If a program has not closed the file, the next tr_shared_open of it
 * in any mode, or `tailrace repair FILE`, brings it back; until then, programs that read it by other
 * means see what the crash has left. It costs: flushed bytes that change are read and written once more
 * between two flushes, and synchronised before the page makes room; each flush makes and renames a small
 * file, and tr_shared_close waits for fsync as tr_shared_flush does. Bytes behind the flushed size cost
 * nothing. Modes "w" and "w+" empty the file at once: before the first flush a crash leaves an empty one.
 *
 * safety=rename, for modes "w" and "w+": until the first flush or close the file is written as
 * FILE.tmp-flush, which only its owner may read if there is an old one, and the old one stays whole. Then
 * the new one takes its name in one step, with the owner, group and permissions of the old one, as far as is
 * allowed; hard links and extended attributes stay with the old one. TR_ERR_IO: the old one may not be
 * written. After the first flush all is as with journal; a file that is only closed has no undo files.
 *
 * With either, one program at a time has the file open to write: another open with safety= fails
 * (TR_ERR_STATE), also after a kill, until all processes of that program have ended. A program that writes to
 * it in any other way meanwhile voids the promise. A close that fails before its end leaves the last flush. A
 * flush that fails at its very end (its error says so) ends all changes: close the file, and open it again.
 * Do not copy, rename or replace a file that has files FILE.undo*, or remove these: a program brings back
 * what it finds. The directory may move. Programs that only read need not write to it, unless a killed
 * program has left FILE.undo*: TR_ERR_IO says so.
 *
 * The file is opened by that name on every rank, so relative names need one working directory. The file may
 * be larger than memory. TR_ERR_IO: it cannot be opened or made. TR_ERR_MEMORY: the node has no memory for
 * four pages for each of its ranks. TR_ERR_ARGUMENT: no such mode. TR_ERR_SETTINGS: no such option, or
 * safety=rename in another mode. TR_ERR_UNSUPPORTED: safety=rename for a file that a checkpoint with
 * overwritten=journal has recorded. The same error on every rank. */
TR_API int tr_shared_open(const char* path, const char* mode, const char* options, tr_shared** file);
/* Collective over `comm`, whose ranks are compute ranks of the session. As tr_shared_open. `comm` may be
 * freed before the file is closed. */
TR_API int tr_shared_open_comm(MPI_Comm comm, const char* path, const char* mode, const char* options,
                               tr_shared** file);
/* The same with a Fortran integer handle, for bindings. */
TR_API int tr_shared_open_comm_f(MPI_Fint comm, const char* path, const char* mode, const char* options,
                                 tr_shared** file);

/* Local. Moves the caller's own position to `offset` bytes from the file's begin (SEEK_SET), from the
 * position (SEEK_CUR) or from the file's end (SEEK_END, which waits as tr_shared_size). *position (may be
 * NULL) becomes the new one. It may lie behind the end. TR_ERR_ARGUMENT: it would lie before the begin, or
 * `whence` is none of the three; the position stays. */
TR_API int tr_shared_seek(tr_shared* file, int64_t offset, int whence, int64_t* position);
/* Local; waits for nobody. Returns the caller's position, in bytes. A file that was just opened has 0 on
 * every rank. */
TR_API int tr_shared_tell(const tr_shared* file, int64_t* position);

/* Local. Reads up to `bytes` bytes at the caller's position, or at `offset`, into `data`. *got (may be NULL)
 * is the number of bytes read, less than asked only at the end of the file. tr_shared_read moves the position
 * by it. Waits for storage if the page is not in memory, and for the rank that has the page if that is on
 * another node. TR_ERR_STATE in modes "w" and "a". With got == NULL fewer bytes than asked are TR_ERR_IO. */
TR_API int tr_shared_read(tr_shared* file, void* data, int64_t bytes, int64_t* got);
TR_API int tr_shared_pread(tr_shared* file, void* data, int64_t bytes, int64_t offset, int64_t* got);
/* Local. Writes `bytes` bytes from `data` at the caller's position, or at `offset`; `data` may change on
 * return. tr_shared_write moves the position. The file grows as needed, also if the call fails. Waits for
 * room in memory, for storage if only a part of a page is written that is not in memory, while much is on its
 * way to other nodes, and in modes "a" and "a+" as tr_shared_size. TR_ERR_STATE in mode "r". TR_ERR_ARGUMENT:
 * the file would have more than 2^63 - 1 - 2^30 bytes. Failures on other nodes come later: each
 * tr_shared_sync and _resize returns the first one on all ranks, until a tr_shared_flush or _close has
 * returned it. */
TR_API int tr_shared_write(tr_shared* file, const void* data, int64_t bytes);
TR_API int tr_shared_pwrite(tr_shared* file, const void* data, int64_t bytes, int64_t offset);
/* Local. As tr_shared_pread and _pwrite for each of `count` pieces, in any order. tr_shared_readv asks other
 * nodes for 4 MiB at a time, with one request to each rank that serves some of these pages. *got (may be
 * NULL) is the number of bytes read in all. The pieces of a tr_shared_writev that overlap are written in the
 * order of the list. */
TR_API int tr_shared_readv(tr_shared* file, const tr_piece* pieces, int64_t count, int64_t* got);
TR_API int tr_shared_writev(tr_shared* file, const tr_piece* pieces, int64_t count);
/* Local. Writes at the end of the file, wherever that is by now: no other rank's append gets the same bytes.
 * It goes behind what ranks of other nodes have written with other calls if both have synchronised since.
 * *offset (may be NULL) is where they begin. Waits as tr_shared_size, and fails, as tr_shared_write. */
TR_API int tr_shared_append(tr_shared* file, const void* data, int64_t bytes, int64_t* offset);

/* Local. Returns the size of the file in bytes: at least behind all writes of the caller, and those of others
 * that it can see. On several nodes it waits for rank 0 to answer. */
TR_API int tr_shared_size(tr_shared* file, int64_t* size);
/* Collective. Cuts the file to `size` bytes, or extends it with zeros. Blocks until that is done: it does
 * tr_shared_sync before and after. All ranks pass the same size. TR_ERR_STATE in mode "r". TR_ERR_ARGUMENT:
 * `size` is below 0, or more than 2^63 - 1 - 2^30. TR_ERR_IO: the file cannot be cut, and stays as it is. */
TR_API int tr_shared_resize(tr_shared* file, int64_t size);

/* Collective; blocks until all ranks have called it. Every rank then sees what any rank wrote before. The
 * disk is not touched. Returns the first failure of a write to another node (see tr_shared_write), the same
 * on every rank. */
TR_API int tr_shared_sync(tr_shared* file);
/* Collective; blocks until everything that was written is durable (fsync), the file's size included. Does
 * tr_shared_sync. Returns the first failure since the last flush, the same on every rank. A file that nobody
 * has changed is not touched. */
TR_API int tr_shared_flush(tr_shared* file);
/* Collective; blocks as tr_shared_flush, which it does, except that without safety= it waits for no fsync.
 * *file becomes NULL, whatever is returned. tr_finalize closes files that are left open, with a warning. */
TR_API int tr_shared_close(tr_shared** file);

#ifdef __cplusplus
}
#endif
#endif
