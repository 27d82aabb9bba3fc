/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Collective files: C's standard input and output for all ranks together. Included by tailrace.h.
 *
 * A file belongs to the communicator that opened it: the session's, or the one passed to a _comm call. One of
 * its ranks, the I/O rank (rank 0), opens the file and works on it with the stdio of its C library. Therefore
 * the rules of that library hold (ISO C99 7.19, cited below). All ranks call the same functions in the same
 * order. There are four kinds of calls:
 *
 *   with a result      Collective. Every rank returns what the I/O rank's call returned, with the same errno
 *                      after a failure, the same data in its arguments and the same tr_error(). Costs one
 *                      broadcast. The other ranks wait for the I/O rank. The I/O rank goes on at once, unless
 *                      the others still have 32 MiB of results to take. In files opened with p and s every
 *                      rank waits for all others after an array call.
 *
 *   without (_nr,      Local: no message, no waiting. Only the I/O rank does something. A failure is kept for
 *   and C's own void)  the file's next tr_fwait, tr_fflush, tr_fclose or tr_finalize. Two kinds are
 *                      collective, as with a result: calls that read (tr_fread_nr, tr_fgets_nr, tr_fscanf_nr
 *                      and its like), and calls that move an array registered by tr_distribute.
 *
 *   opening, closing   Collective. Block until all ranks have called them and the I/O rank is done. The ranks
 *   and flushing       agree about arguments and result, for a few messages up and down a tree.
 *
 *   on local files     Local (mode letter l): each rank has a stream of its own, and nothing is shared.
 *
 * For writing, only the data and arguments of the I/O rank count. The other ranks must make the call, but
 * their data is not looked at. Data that is read, and every other result, arrives on all ranks, which must
 * provide room for it. The constants have C's names: EOF, SEEK_SET, _IOFBF, BUFSIZ, L_tmpnam.
 *
 * A null pointer or a file that is not open gives the failure value of the call, with errno EBADF (file),
 * EFAULT (memory) or EINVAL (text and values). tr_error() says which argument it was. */
#ifndef TAILRACE_FILES_H
#define TAILRACE_FILES_H

#include <stdarg.h>
#include <stdio.h>

#if defined(__GNUC__)
#define TR_FORMAT(kind, text, first) __attribute__((format(kind, text, first)))
#else
#define TR_FORMAT(kind, text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_file tr_file;
/* A position that tr_fgetpos returns, the same on every rank. */
typedef fpos_t tr_fpos;

/* The session's standard streams: those of its I/O rank. Only the output of the I/O rank is printed. Input is
 * read on the I/O rank and arrives on all ranks. They are open from tr_init to tr_finalize. tr_fclose flushes
 * them and leaves the program's own stdin, stdout and stderr open. */
#define tr_stdin tr_standard_stream(0)
#define tr_stdout tr_standard_stream(1)
#define tr_stderr tr_standard_stream(2)
/* Local. Returns standard input (0), output (1) or error (2) of the session, or NULL outside of a session or
 * if the stream was closed. */
TR_API tr_file* tr_standard_stream(int number);
/* Returns a standard stream of the I/O rank of `comm`. Collective over `comm`, and blocks until all its ranks
 * have called it, if it is the first call of the library for `comm`. Otherwise local. */
TR_API tr_file* tr_standard_stream_comm(MPI_Comm comm, int number);

/* Opening and closing. */

/* Collective over the compute ranks; with mode letter l local. Opens a file. Blocks until all ranks have
 * called it and the I/O rank has opened the file. ISO C99 7.19.5.3, with the letters p, l (or i) and s
 * besides C's own, in any order. Returns NULL with the errno of the I/O rank's open, or with EINVAL for a
 * mode that makes no sense. If ranks pass different arguments, every rank gets an error before anything is
 * opened or truncated. Relative names are looked up in the I/O rank's working directory.
 *
 * A file that exists and is opened with w and s is emptied by the first operation on it, at the latest by the
 * next tr_fwait, tr_fflush or tr_fclose. If emptying fails, these three calls return the error.
 *
 * A file goes on where it stood if it is opened for writing under a name that the checkpoint loaded last has
 * recorded, whatever the mode. The bytes beyond the recorded ones are cut off, nothing else. If the file
 * holds fewer bytes, the result is EIO with the text of TR_ERR_CORRUPT. This happens once; the next open is
 * like any other. */
TR_API tr_file* tr_fopen(const char* path, const char* mode);
/* Collective over `comm`, whose ranks must be compute ranks of the session. As tr_fopen; rank 0 of `comm` is
 * the I/O rank. Creates no communicator. `comm` may be freed before its files are closed. */
TR_API tr_file* tr_fopen_comm(MPI_Comm comm, const char* path, const char* mode);
/* Collective over the file's ranks; blocks until they have all called it and the I/O rank is done. ISO C99
 * 7.19.5.4: closes the file, even if that fails, and opens `path` (NULL: the same file) in the same handle,
 * for the same communicator. If opening fails, returns NULL with errno, and the handle is gone. Reopening a
 * standard stream leaves the program's own stdin, stdout and stderr as they are. With a `path` the letter l
 * decides, as in tr_fopen, whether it is a file for each rank from now on, or one of all ranks; standard
 * streams, too. Local, if it was for each rank and stays so. Without a `path` it stays what it was (EINVAL if
 * the letters say otherwise). A kept failure of earlier calls without result is lost. */
TR_API tr_file* tr_freopen(const char* path, const char* mode, tr_file* file);
/* Collective over the file's ranks. Closes the file. Blocks until other programs see everything that was
 * written. ISO C99 7.19.5.1. Returns 0, or EOF with errno if this call, or an earlier one without result,
 * failed. The handle is gone, whatever is returned. */
TR_API int tr_fclose(tr_file* file);
/* Collective over the file's ranks, or with NULL over those of all open files. Blocks until other programs
 * see everything that was written. ISO C99 7.19.5.2. Returns 0, or EOF with errno if this call, or an earlier
 * one without result, failed. */
TR_API int tr_fflush(tr_file* file);
/* As tr_fflush. On return, the data and the file's name also survive a loss of power (fsync). */
TR_API int tr_fflush_durable(tr_file* file);
/* Local. Without result. The I/O rank passes its buffer to the system. */
TR_API void tr_fflush_nr(tr_file* file);

/* Local; call it after opening and before anything else. ISO C99 7.19.5.5, 7.19.5.6. Only the I/O rank's
 * `buffer` is used; it must outlive the file. A new file has a buffer of 1 MiB. */
TR_API void tr_setbuf(tr_file* file, char* buffer);
/* Collective; call it after opening and before anything else. Returns 0, or non-zero for an invalid mode. */
TR_API int tr_setvbuf(tr_file* file, char* buffer, int mode, size_t size);

/* Files without opening them. */

/* Collective. ISO C99 7.19.4.1, 7.19.4.2. The I/O rank removes a file or an empty directory, or renames it
 * and replaces a file that had the name. Returns 0, or -1 with errno. */
TR_API int tr_remove(const char* path);
TR_API int tr_remove_comm(MPI_Comm comm, const char* path);
/* Collective; block until all ranks have called them. Remove, or rename, the files of the local mode whose
 * names come from a pattern ("out.%04d"), for any number of ranks, and the .layout files beside them. The I/O
 * rank takes those that it finds in the directory, then each other rank its own, if it is still there: on a
 * disk of its node. Return 0, or -1 with errno (ENOENT: no rank found any). */
TR_API int tr_remove_local(const char* pattern);
TR_API int tr_rename_local(const char* from, const char* to);
TR_API int tr_rename(const char* from, const char* to);
TR_API int tr_rename_comm(MPI_Comm comm, const char* from, const char* to);
/* Collective; blocks as tr_fopen. ISO C99 7.19.4.3: opens a file without a name, in mode w+b, which is gone
 * when it is closed. Returns NULL with errno if that fails. */
TR_API tr_file* tr_tmpfile(void);
TR_API tr_file* tr_tmpfile_comm(MPI_Comm comm);
/* Local. As tr_tmpfile and tr_tmpnam, for this rank alone: a file of the local mode, and a name that no file
 * on the rank's own system has. */
TR_API tr_file* tr_tmpfile_local(void);
TR_API char* tr_tmpnam_local(char* name);
/* Collective. ISO C99 7.19.4.4. Returns a name that no file on the I/O rank's system has, the same on every
 * rank. Stores it in `name` (room for L_tmpnam), or with NULL in memory that the next call overwrites.
 * Returns NULL with errno if there is none. */
TR_API char* tr_tmpnam(char* name);
TR_API char* tr_tmpnam_comm(MPI_Comm comm, char* name);

/* Formatted output and input. */

/* Collective. ISO C99 7.19.6.1, .3, .8, .10. The I/O rank's format and arguments count; %n stores on the I/O
 * rank alone. Returns the number of bytes written, or a negative value with errno. */
TR_API int tr_fprintf(tr_file* file, const char* format, ...) TR_FORMAT(printf, 2, 3);
TR_API int tr_vfprintf(tr_file* file, const char* format, va_list arguments) TR_FORMAT(printf, 2, 0);
TR_API int tr_printf(const char* format, ...) TR_FORMAT(printf, 1, 2);
TR_API int tr_vprintf(const char* format, va_list arguments) TR_FORMAT(printf, 1, 0);
/* Local. Without result. */
TR_API void tr_fprintf_nr(tr_file* file, const char* format, ...) TR_FORMAT(printf, 2, 3);
TR_API void tr_vfprintf_nr(tr_file* file, const char* format, va_list arguments) TR_FORMAT(printf, 2, 0);
TR_API void tr_printf_nr(const char* format, ...) TR_FORMAT(printf, 1, 2);
TR_API void tr_vprintf_nr(const char* format, va_list arguments) TR_FORMAT(printf, 1, 0);

/* Collective. ISO C99 7.19.6.2, .4, .9, .11. The I/O rank reads its stream in its own format. The values that
 * it finds are stored through every rank's pointers. Returns the number of items assigned, or EOF.
 * Conversions that ISO C99 does not have are refused (-1 with EINVAL). */
TR_API int tr_fscanf(tr_file* file, const char* format, ...) TR_FORMAT(scanf, 2, 3);
TR_API int tr_vfscanf(tr_file* file, const char* format, va_list arguments) TR_FORMAT(scanf, 2, 0);
TR_API int tr_scanf(const char* format, ...) TR_FORMAT(scanf, 1, 2);
TR_API int tr_vscanf(const char* format, va_list arguments) TR_FORMAT(scanf, 1, 0);
/* Collective, as tr_fscanf: without the number of items, but the values are stored on every rank. Input that
 * does not match is no failure, as in C: a program that has to know calls tr_fscanf. */
TR_API void tr_fscanf_nr(tr_file* file, const char* format, ...) TR_FORMAT(scanf, 2, 3);
TR_API void tr_vfscanf_nr(tr_file* file, const char* format, va_list arguments) TR_FORMAT(scanf, 2, 0);
TR_API void tr_scanf_nr(const char* format, ...) TR_FORMAT(scanf, 1, 2);
TR_API void tr_vscanf_nr(const char* format, va_list arguments) TR_FORMAT(scanf, 1, 0);

/* Characters, lines and blocks. */

/* Collective. ISO C99 7.19.7.1, .5, .6: returns the next character, or EOF. */
TR_API int tr_fgetc(tr_file* file);
TR_API int tr_getc(tr_file* file);
TR_API int tr_getchar(void);
/* Collective. ISO C99 7.19.7.2: reads at most size - 1 characters, up to and including a newline. Returns
 * `text`, or NULL at the end of the file or after an error. */
TR_API char* tr_fgets(char* text, int size, tr_file* file);
/* Collective. ISO C99 7.19.7.11. Returns the character pushed back, or EOF. */
TR_API int tr_ungetc(int character, tr_file* file);
/* Collective. ISO C99 7.19.7.3, .8, .9: returns the character written, or EOF with errno. */
TR_API int tr_fputc(int character, tr_file* file);
TR_API int tr_putc(int character, tr_file* file);
TR_API int tr_putchar(int character);
/* Collective. ISO C99 7.19.7.4, .10: returns a non-negative value, or EOF with errno. */
TR_API int tr_fputs(const char* text, tr_file* file);
TR_API int tr_puts(const char* text);
/* Collective. ISO C99 7.19.8.1, .2: returns the number of complete elements read or written. It is less than
 * `count` at the end of the file, or after an error with errno. */
TR_API size_t tr_fread(void* data, size_t size, size_t count, tr_file* file);
TR_API size_t tr_fwrite(const void* data, size_t size, size_t count, tr_file* file);
/* Collective, as tr_fgets and tr_fread: without the result that C returns, but the bytes arrive on every
 * rank. The end of the file is no failure: tr_feof tells of it. */
TR_API void tr_fgets_nr(char* text, int size, tr_file* file);
TR_API void tr_fread_nr(void* data, size_t size, size_t count, tr_file* file);
/* Local. Without result. tr_fwrite_nr of a registered array (tr_distribute) is collective, as tr_fwrite. */
TR_API void tr_ungetc_nr(int character, tr_file* file);
TR_API void tr_fputc_nr(int character, tr_file* file);
TR_API void tr_putc_nr(int character, tr_file* file);
TR_API void tr_putchar_nr(int character);
TR_API void tr_fputs_nr(const char* text, tr_file* file);
TR_API void tr_puts_nr(const char* text);
TR_API void tr_fwrite_nr(const void* data, size_t size, size_t count, tr_file* file);

/* There is no tr_gets, because gets(3) writes without a bound (C11 has removed it). A use of it does not
 * compile or, with a compiler that cannot refuse it, does not link. */
#if defined(__has_attribute)
#if __has_attribute(unavailable)
char* tr_gets(char* text)
    __attribute__((unavailable("gets has no bound on what it writes; use tr_fgets(text, size, tr_stdin)")));
#elif __has_attribute(error)
char* tr_gets(char* text)
    __attribute__((error("gets has no bound on what it writes; use tr_fgets(text, size, tr_stdin)")));
#endif
#endif

/* Positions, ends and errors. */

/* Collective. ISO C99 7.19.9.1, .3. Returns 0, or non-zero with errno. */
TR_API int tr_fgetpos(tr_file* file, tr_fpos* position);
TR_API int tr_fsetpos(tr_file* file, const tr_fpos* position);
/* Collective. ISO C99 7.19.9.2, .4. Returns 0 or the position; -1 with errno, which is ESPIPE for a file
 * without positions. */
TR_API int tr_fseek(tr_file* file, long offset, int whence);
TR_API long tr_ftell(tr_file* file);
/* Local, without result. ISO C99 7.19.9.5, and tr_fseek without result. After an array call on a file opened
 * with p and s these calls are collective, until tr_fwait, tr_fflush or a call with a result: they wait until
 * the array is written, because the next operation must not overtake it. */
TR_API void tr_rewind(tr_file* file);
TR_API void tr_fseek_nr(tr_file* file, long offset, int whence);

/* Local. ISO C99 7.19.10.1. */
TR_API void tr_clearerr(tr_file* file);
/* Collective. ISO C99 7.19.10.2, .3. Return non-zero at the end of the file, or after an error. */
TR_API int tr_feof(tr_file* file);
TR_API int tr_ferror(tr_file* file);
/* Local. ISO C99 7.19.10.4: prints `text` (may be NULL) and the meaning of errno on standard error, on the
 * session's I/O rank alone. */
TR_API void tr_perror(const char* text);

#ifdef __cplusplus
}
#endif
#endif
