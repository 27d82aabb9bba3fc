/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The calls of DONIO (Oak Ridge, 1994), for programs that were written for them. Include this file, link
 * tailrace, and the program works on shared files (tailrace/shared.h). In Fortran the calls are external
 * procedures of -ltailrace_fortran, with their old names: donio, doopen, dolsize, dolseek, doread, dowrite,
 * doflush, doclose and dogsync. New programs can do more with tr_shared_*.
 *
 *   do_nio(rank, ranks);
 *   fd = do_open("elements.bin", DO_WRONLY | DO_CREAT, 0644);
 *   do_lsize(fd, bytes_in_all);
 *   do_lseek(fd, 32 * element, SEEK_SET);
 *   do_write(fd, vertices, 32);
 *   do_close(fd);
 *
 * A call that fails returns -1, and tr_error() says why. If a collective call fails, it does so on every
 * rank. In Fortran all calls but doopen and dolseek may be made as subroutines, which return no failure: a
 * failure then ends all ranks with its text. A program that makes the calls as functions sets
 * TAILRACE_DONIO_ERRORS=return, and gets -1.
 *
 * Differences from 1994: bytes that nobody wrote are zeros. Files may be larger than do_lsize said, and
 * larger than memory. do_lseek goes up to 2 GiB. MPI_Finalize closes files that are left open, with a
 * warning; if a close fails, it ends all ranks.
 *
 * On several nodes each rank has a part of each file, and answers ranks of other nodes that read it. It
 * answers while it is in any call of the library, and at any time if MPI was initialised with
 * MPI_THREAD_MULTIPLE. Without MPI_THREAD_MULTIPLE a rank in MPI_Barrier answers nobody. Therefore do_open
 * fails (TR_ERR_STATE) until the program has called do_gsync once: while files are open, let ranks wait for
 * each other in do_gsync. A program that is not to be changed gets threads by its environment:
 * OMPI_MPI_THREAD_LEVEL=3 for Open MPI, MPIR_CVAR_DEFAULT_THREAD_LEVEL=MPI_THREAD_MULTIPLE for MPICH. */
#ifndef TAILRACE_DONIO_H
#define TAILRACE_DONIO_H

#include <tailrace.h>

/* Flags of do_open, with the values of Intel's NX. */
#define DO_RDONLY 0
#define DO_WRONLY 1
#define DO_RDWR 2
#define DO_CREAT 512

#ifdef __cplusplus
extern "C" {
#endif

/* Collective; blocks until all ranks have called it. Call it before all other calls.
 *
 * If the program has not initialised MPI, this call initialises it, with MPI_THREAD_MULTIPLE, and finalises
 * it at exit(3). With glibc it does not finalise MPI if the program exits with a failure, which ends all
 * ranks. If no session is open, all ranks of MPI_COMM_WORLD begin one without servers. MPI_Finalize ends it,
 * because programs of 1994 have no call for that.
 *
 * `myid` and `nproc` are the caller's rank, from 0, and the number of ranks, in MPI_COMM_WORLD or in the
 * communicator of the session's compute ranks. Returns 0. A second call in a session is an error. */
TR_API int tr_do_nio(int myid, int nproc);

/* Collective; blocks until all ranks have called it, with the same arguments. Opens a file. Returns a
 * descriptor, 3 or more. `flags`:
 *
 *   DO_RDONLY  reads a file that exists
 *   DO_WRONLY  writes, and empties a file that exists
 *   DO_RDWR    reads and writes, and leaves the content of a file that exists
 *   DO_CREAT   with the last two: makes the file if there is none. Without it a missing file is an error.
 *
 * The flags of <fcntl.h> on Linux work too, although O_CREAT is 64 there and 512 is O_TRUNC. 64 makes the
 * file, too, and together with 64, 512 empties it. So O_WRONLY | O_CREAT | O_TRUNC (577) and O_WRONLY |
 * O_CREAT (65) do the same as DO_WRONLY | DO_CREAT, and O_RDWR | O_CREAT | O_TRUNC (578) begins an empty
 * file. 512 alone makes a file and never empties one: O_RDWR | O_TRUNC (514) is DO_RDWR | DO_CREAT. Other
 * flags are errors.
 *
 * `mode` has the permissions of a new file, as in chmod(2), from which the umask is removed. Until all ranks
 * have opened the file, its owner may read and write it. */
TR_API int tr_do_open(const char* path, int flags, int mode);

/* Collective; blocks until all ranks have called it. Announces how many bytes the file will have. Call it
 * before the first write. Returns `nbytes`. On disk the file ends after the highest byte that was written,
 * whatever was announced. An error if the file was opened for reading only. */
TR_API int tr_do_lsize(int fd, int nbytes);

/* Local. Moves the caller's own position to `offset` bytes from the beginning (SEEK_SET, 0), the position
 * (SEEK_CUR, 1) or the end of the file (SEEK_END, 2, which may wait for rank 0). Returns the new position, in
 * bytes. If it lies before the beginning or does not fit an int, this is an error, and nothing moves. */
TR_API int tr_do_lseek(int fd, int offset, int whence);

/* Local. Reads `nbytes` bytes at the caller's position, and moves the position. Returns `nbytes`. If the file
 * ends before them, or was opened for writing only, this is an error, and nothing moves. Waits as
 * tr_shared_read. Writes of other ranks to an open file are certain to be seen after do_gsync or do_flush. */
TR_API int tr_do_read(int fd, void* buf, int nbytes);

/* Local. Writes `nbytes` bytes at the caller's position, and moves the position. Returns `nbytes`. Waits as
 * tr_shared_write. An error before do_lsize, and if the file was opened for reading only. */
TR_API int tr_do_write(int fd, const void* buf, int nbytes);

/* Collective; blocks until everything that was written is on disk. If nobody has changed the file, does not
 * touch it. Returns 0. */
TR_API int tr_do_flush(int fd);

/* Collective. Closes the file. Blocks until everything that was written is in the file. If nobody has changed
 * it since the last do_flush, does not touch it. Returns 0 or -1; the descriptor is gone in both cases. */
TR_API int tr_do_close(int fd);

/* Collective: Fortran's dogsync. Blocks until all ranks have called it. Afterwards every rank sees what any
 * rank has written. Does not touch the disk. Returns 0. */
TR_API int tr_do_gsync(void);

static inline int do_nio(int myid, int nproc) { return tr_do_nio(myid, nproc); }
static inline int do_open(const char* path, int flags, int mode) { return tr_do_open(path, flags, mode); }
static inline int do_lsize(int fd, int nbytes) { return tr_do_lsize(fd, nbytes); }
static inline int do_lseek(int fd, int offset, int whence) { return tr_do_lseek(fd, offset, whence); }
static inline int do_read(int fd, void* buf, int nbytes) { return tr_do_read(fd, buf, nbytes); }
static inline int do_write(int fd, const void* buf, int nbytes) { return tr_do_write(fd, buf, nbytes); }
static inline int do_flush(int fd) { return tr_do_flush(fd); }
static inline int do_close(int fd) { return tr_do_close(fd); }
static inline int do_gsync(void) { return tr_do_gsync(); }

#ifdef __cplusplus
}
#endif
#endif
