/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Shared files: one binary file in which every rank reads and writes small pieces anywhere, as it likes. The
 * file lies in the memory of all ranks, in pages. Small calls copy between the caller's memory and a page.
 * The disk gets large blocks: when the file is flushed or closed, and when a page is needed or must make
 * room. Included by tailrace.h.
 *
 *   tr_shared_open("elements.bin", "w", NULL, &file);
 *   for (each of my elements)
 *     tr_shared_pwrite(file, vertices, 32, 32 * element);
 *   tr_shared_close(&file);
 *
 * The file on disk has the bytes that were written, as a serial program would leave it. Bytes that nobody
 * wrote are zeros, and the file ends after the highest byte written. Offsets, positions and sizes are in
 * bytes.
 *
 * Local calls may wait for storage and for ranks of other nodes: each says for what. All calls return
 * TR_ERR_STATE for a handle that is not open. They return TR_ERR_ARGUMENT for a null pointer that must not be
 * one, and for a number of bytes, or a place in the file, below 0. A local call that reads or writes fails if
 * a page cannot be read or can make no room (TR_ERR_IO, TR_ERR_SPACE, TR_ERR_MEMORY). Only the caller gets
 * that error.
 *
 * Visibility: a rank reads its own writes at once, in the order in which it made them. A rank is certain to
 * read the writes of another rank if both ranks have called tr_shared_sync or tr_shared_flush between the
 * write and the read; on one node it may read them earlier. Ranks that write the same bytes need a sync
 * between the writes. Without it, each page keeps the bytes of one of the writers. After a sync all ranks see
 * the same file size. With TAILRACE_CHECK_CONFLICTS=on each sync prints where a sync was missing
 * (docs/shared-files.md).
 *
 * Memory: the pages of a file take at most `memory=` bytes on each node. The file draws them on the node's
 * budget as it needs them. When the memory is full, the library reuses pages that were not used lately, and
 * first writes changed ones to the file. Without `memory=` it begins to reuse pages that were used once and
 * are stored when the file has taken 128 MiB, or a sixteenth of the budget if that is less. A rank that reads
 * forward finds the next pages in memory, because a thread brings them in ahead.
 *
 * Several nodes: a rank asks the ranks of other nodes for their pages by messages. Who answers, on the other
 * node?
 *
 *   - If the node has an I/O server (TAILRACE_SERVERS), its first server answers at any time, with one
 *     exception. The server never stores pages. If a page has to be brought in, and all pages in the memory
 *     of its node have changed, a rank of the node has to make room, inside a call or on a service thread.
 *   - Otherwise, if the program has initialised MPI with MPI_THREAD_MULTIPLE and TAILRACE_IO_THREADS is not
 *     0, a service thread of each rank answers at any time.
 *   - Otherwise ranks answer inside any call of the library, tr_progress too. A call that reads or writes
 *     only pages of its own node answers now and then. Ranks do not answer while they wait in MPI: if a rank
 *     in MPI_Barrier waits for a reader, the reader hangs. Let ranks wait in tr_shared_sync instead. This
 *     holds also for the exception above. */
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

/* Collective over the compute ranks, which pass the same arguments. Opens a file. Blocks until the file is
 * open on all of them.
 *
 *   mode     as in fopen(3), ISO C99 7.19.5.3: "r" reads; "r+" reads and writes a file that exists; "w" makes
 *            the file, or empties it, and writes; "w+" also reads; "a" and "a+" make the file if it does not
 *            exist, and every tr_shared_write goes to its end. A letter "b" means nothing. "x" with "w": the
 *            file must not exist (ISO C11 7.21.5.3).
 *
 *   options  page=BYTES: the size of a page (1MiB), a power of 2 from 4KiB to 1GiB. memory=BYTES: the most
 *            that pages of this file may take on each node; without it, half of what the budget of the node
 *            leaves. safety=: the content of the file after a crash, see below. NULL for none.
 *
 * safety=none (the default): if the program is killed or loses power, the file has what was stored so far;
 * some parts may be older than others. This costs nothing.
 *
 * safety=journal: whenever the program ends, the file can be brought back to the complete content of the last
 * tr_shared_flush (or of the open, before the first flush). Before flushed bytes are overwritten or cut off,
 * the library keeps them in files FILE.undo* beside the file. If a program has not closed the file, the next
 * tr_shared_open of it, in any mode, or `tailrace repair FILE` brings it back. Until then, programs that read
 * it by other means see what the crash has left.
 *
 * The cost of journal: flushed bytes that change are read and written once more between two flushes, and
 * synchronised before the page makes room. Each flush makes and renames a small file. tr_shared_close waits
 * for fsync, as tr_shared_flush does. Bytes after the flushed size cost nothing. Modes "w" and "w+" empty the
 * file at once: a crash before the first flush leaves an empty file.
 *
 * safety=rename, for modes "w" and "w+": until the first flush or close, the new file is written as
 * FILE.tmp-flush, and an old file FILE stays as it is. If there is an old file, only the owner may read the
 * new one until then. At the first flush or close the new file takes the name in one step, with the owner,
 * group and permissions of the old file as far as is allowed. Hard links and extended attributes stay with
 * the old file. TR_ERR_IO if the old file may not be written. After the first flush everything is as with
 * journal. A file that is closed without a flush has no undo files.
 *
 * With journal and rename, only one program at a time can have the file open for writing. Another open with
 * safety= fails (TR_ERR_STATE) until all processes of that program have ended, also after a kill. If a
 * program writes to the file in any other way meanwhile, the promise is void. A close that fails early leaves
 * the last flushed content. A flush that fails at its very end (its error says so) ends all changes: close
 * the file, and open it again. Do not copy, rename or replace a file that has files FILE.undo*, and do not
 * remove these: a program brings back what it finds. Once a checkpoint has recorded a flush, files FILE.undo*
 * stay beside the file, also when it is closed, so that a load can bring it back there (docs/checkpoints.md).
 * The directory may be moved. Programs that only read do not need to write to the directory, unless a killed
 * program has left FILE.undo*: then TR_ERR_IO says so.
 *
 * The file is opened by this name on every rank, so relative names need the same working directory on all
 * ranks. The file may be larger than memory. Errors, the same on every rank:
 *
 *   TR_ERR_IO            the file cannot be opened or made
 *   TR_ERR_MEMORY        the node has no memory for four pages for each of its ranks
 *   TR_ERR_ARGUMENT      no such mode
 *   TR_ERR_SETTINGS      no such option, or safety=rename in another mode
 *   TR_ERR_UNSUPPORTED   safety=rename for a file that a checkpoint with overwritten=journal has recorded */
TR_API int tr_shared_open(const char* path, const char* mode, const char* options, tr_shared** file);
/* Collective over `comm`, whose ranks must be compute ranks of the session. As tr_shared_open. `comm` may be
 * freed before the file is closed. */
TR_API int tr_shared_open_comm(MPI_Comm comm, const char* path, const char* mode, const char* options,
                               tr_shared** file);
/* As tr_shared_open_comm, with a Fortran integer handle, for bindings. */
TR_API int tr_shared_open_comm_f(MPI_Fint comm, const char* path, const char* mode, const char* options,
                                 tr_shared** file);

/* Local. Moves the caller's own position to `offset` bytes from the beginning of the file (SEEK_SET), from
 * the position (SEEK_CUR) or from the end of the file (SEEK_END, which waits as tr_shared_size). *position
 * (may be NULL) becomes the new position. It may lie after the end. TR_ERR_ARGUMENT, and the position stays,
 * if it would lie before the beginning, or if `whence` is none of the three. */
TR_API int tr_shared_seek(tr_shared* file, int64_t offset, int whence, int64_t* position);
/* Local; waits for nobody. *position becomes the caller's position, in bytes. After the open it is 0 on every
 * rank. */
TR_API int tr_shared_tell(const tr_shared* file, int64_t* position);

/* Local. Reads up to `bytes` bytes into `data`: tr_shared_read at the caller's position, which it moves by
 * the bytes read, and tr_shared_pread at `offset`. *got (may be NULL) becomes the number of bytes read, which
 * is less than asked only at the end of the file. With got == NULL, fewer bytes than asked are TR_ERR_IO.
 * Waits for storage if the page is not in memory, and for the rank that has the page if that is on another
 * node. TR_ERR_STATE in modes "w" and "a". */
TR_API int tr_shared_read(tr_shared* file, void* data, int64_t bytes, int64_t* got);
TR_API int tr_shared_pread(tr_shared* file, void* data, int64_t bytes, int64_t offset, int64_t* got);
/* Local. Writes `bytes` bytes from `data`: tr_shared_write at the caller's position, which it moves, and
 * tr_shared_pwrite at `offset`. `data` may change after the call. The file grows as needed, also if the call
 * fails.
 *
 * Waits for room in memory; for storage, if it writes only a part of a page that is not in memory; while much
 * is on its way to other nodes; and in modes "a" and "a+" as tr_shared_size. TR_ERR_STATE in mode "r".
 * TR_ERR_ARGUMENT if the file would have more than 2^63 - 1 - 2^30 bytes.
 *
 * A write that fails on another node returns TR_OK. Each later tr_shared_sync and _resize returns the first
 * such failure on all ranks, until a tr_shared_flush or _close has returned it. */
TR_API int tr_shared_write(tr_shared* file, const void* data, int64_t bytes);
TR_API int tr_shared_pwrite(tr_shared* file, const void* data, int64_t bytes, int64_t offset);
/* Local. As tr_shared_pread and _pwrite for each of `count` pieces, in any order. *got (may be NULL) becomes
 * the number of bytes read in all. tr_shared_readv asks other nodes for 4 MiB at a time, with one request to
 * each rank that has some of these pages. If pieces of one tr_shared_writev overlap, they are written in the
 * order of the list. */
TR_API int tr_shared_readv(tr_shared* file, const tr_piece* pieces, int64_t count, int64_t* got);
TR_API int tr_shared_writev(tr_shared* file, const tr_piece* pieces, int64_t count);
/* Local. Writes at the end of the file, wherever it is at that moment: no other rank's append gets the same
 * bytes. The bytes go after those that ranks of other nodes have written with other calls, if both ranks have
 * synchronised since. *offset (may be NULL) becomes the place where they begin. Waits as tr_shared_size and
 * tr_shared_write, and fails as tr_shared_write. */
TR_API int tr_shared_append(tr_shared* file, const void* data, int64_t bytes, int64_t* offset);

/* Local. *size becomes the size of the file in bytes. It includes all writes of the caller, and the writes of
 * other ranks that the caller can see. On several nodes it waits for rank 0 to answer. */
TR_API int tr_shared_size(tr_shared* file, int64_t* size);
/* Collective. Cuts the file to `size` bytes, or extends it with zeros. All ranks pass the same size. Does
 * tr_shared_sync before and after, and blocks until that is done. TR_ERR_STATE in mode "r". TR_ERR_ARGUMENT
 * if `size` is below 0, or more than 2^63 - 1 - 2^30. TR_ERR_IO if the file cannot be cut; it stays as it
 * is. */
TR_API int tr_shared_resize(tr_shared* file, int64_t size);

/* Collective; blocks until all ranks have called it. Afterwards every rank sees what any rank wrote before.
 * Does not touch the disk. Returns the first failure of a write to another node (see tr_shared_write), the
 * same on every rank. */
TR_API int tr_shared_sync(tr_shared* file);
/* Collective; blocks until everything that was written, and the file's size, is durable (fsync). Does
 * tr_shared_sync. Returns the first failure since the last flush, the same on every rank. If nobody has
 * changed the file, does not touch it. */
TR_API int tr_shared_flush(tr_shared* file);
/* Collective. Flushes the file as tr_shared_flush, blocking likewise, and closes it. Without safety= it does
 * not wait for fsync. *file becomes NULL, whatever is returned. tr_finalize closes files that are left open,
 * with a warning. */
TR_API int tr_shared_close(tr_shared** file);

#ifdef __cplusplus
}
#endif
#endif
