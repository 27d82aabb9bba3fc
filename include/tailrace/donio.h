/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The calls of DONIO (Oak Ridge, 1994), for programs that were written for them: include this file, link
 * tailrace, and the program works on shared files (tailrace/shared.h). In Fortran the calls are external
 * procedures of -ltailrace_fortran, as they were: donio, doopen, dolsize, dolseek, doread, dowrite, doflush,
 * doclose and dogsync. New programs do more with tr_shared_*.
 *
 *   do_nio(rank, ranks);
 *   fd = do_open("elements.bin", DO_WRONLY | DO_CREAT, 0644);
 *   do_lsize(fd, bytes_in_all);
 *   do_lseek(fd, 32 * element, SEEK_SET);
 *   do_write(fd, vertices, 32);
 *   do_close(fd);
 *
 * Each call returns -1 if it fails, and tr_error() says why; collective ones then do so on every rank. In
 * Fortran all but doopen and dolseek may be called as subroutines, which see no failure: it ends all ranks
 * with its text. A program that takes the results as functions sets TAILRACE_DONIO_ERRORS=return and gets -1.
 * Differences from 1994: bytes that nobody wrote are zeros; files may be larger than do_lsize said, and
 * larger than memory; do_lseek goes up to 2 GiB; and MPI_Finalize closes files that are left open, with a
 * warning. If that fails, it ends all ranks.
 *
 * On several nodes a rank answers those that read its part of a file while it is in any call of the library,
 * and at any time if MPI was initialised with MPI_THREAD_MULTIPLE. Without that a rank in MPI_Barrier answers
 * nobody, and do_open fails (TR_ERR_STATE) until the program has called do_gsync: as long as files are open,
 * let ranks wait for each other there. Programs that stay as they are get threads by their environment,
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

/* Collective; blocks until all ranks have called it. Comes before all others. If the program has not
 * initialised MPI, this does it, with MPI_THREAD_MULTIPLE, and finalises it at exit(3), but (with glibc) not
 * at an exit with a failure, which ends all ranks. If no session is open, all ranks of MPI_COMM_WORLD begin
 * one without servers, and MPI_Finalize ends it: programs of 1994 have no call for that. `myid` and `nproc`
 * are the caller's rank and the number of ranks, from 0, in MPI_COMM_WORLD or in the communicator of the
 * session's compute ranks. Returns 0. A second call in a session is an error. */
TR_API int tr_do_nio(int myid, int nproc);

/* Collective; blocks until all ranks have called it, with the same arguments. Returns a descriptor, 3 or
 * more. `flags`:
 *
 *   DO_RDONLY  reads a file that exists
 *   DO_WRONLY  writes, and empties a file that exists
 *   DO_RDWR    reads and writes, and leaves what is there
 *   DO_CREAT   with the last two: makes the file if there is none. Without it a missing file is an error.
 *
 * The flags of <fcntl.h> on Linux mean the same here, although O_CREAT is 64 there and 512 is O_TRUNC: 64
 * makes the file, too, and in its company 512 empties it. So O_WRONLY | O_CREAT | O_TRUNC (577) and
 * O_WRONLY | O_CREAT (65) do what DO_WRONLY | DO_CREAT does, and O_RDWR | O_CREAT | O_TRUNC (578) begins an
 * empty file. 512 alone makes a file and never empties one: O_RDWR | O_TRUNC (514) is DO_RDWR | DO_CREAT.
 * Other flags are errors.
 *
 * `mode` has the permissions of a file that is made, as in chmod(2), of which the umask takes its part. The
 * file's owner may read and write it until all ranks have opened it. */
TR_API int tr_do_open(const char* path, int flags, int mode);

/* Collective; blocks until all ranks have called it. Says how many bytes the file will have, and comes
 * before the first write. Returns `nbytes`. On disk the file ends behind the highest byte that was written,
 * whatever was said. An error if the file was opened for reading only. */
TR_API int tr_do_lsize(int fd, int nbytes);

/* Local. Moves the caller's own position by `offset` bytes from the begin (SEEK_SET, 0), the position
 * (SEEK_CUR, 1) or the end of the file (SEEK_END, 2, which may wait for rank 0). Returns the new one, in
 * bytes. An error, and nothing moves, if it lies before the begin or does not fit an int. */
TR_API int tr_do_lseek(int fd, int offset, int whence);

/* Local. Reads `nbytes` bytes at the caller's position, and moves it. Returns `nbytes`. An error, and
 * nothing moves, if the file ends before them or was opened for writing only. Waits as tr_shared_read. What
 * other ranks write to an open file is certain to be seen after dogsync or do_flush. */
TR_API int tr_do_read(int fd, void* buf, int nbytes);

/* Local. Writes `nbytes` bytes at the caller's position, and moves it. Returns `nbytes`. Waits as
 * tr_shared_write. An error before do_lsize, and if the file was opened for reading only. */
TR_API int tr_do_write(int fd, const void* buf, int nbytes);

/* Collective; blocks until everything that was written is on disk. A file that nobody has changed is not
 * touched. Returns 0. */
TR_API int tr_do_flush(int fd);

/* Collective; blocks until everything that was written is in the file. A file that nobody has changed since
 * the last do_flush is not touched. The descriptor is gone, whatever is returned: 0 or -1. */
TR_API int tr_do_close(int fd);

/* Collective: Fortran's dogsync. Blocks until all ranks have called it. Every rank then sees what any rank
 * has written. The disk is not touched. Returns 0. */
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
