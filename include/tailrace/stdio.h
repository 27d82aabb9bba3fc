/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* C's own names for the calls of tailrace/files.h. Include this file instead of <stdio.h>, and serial code
 * works on collective files. If the array of a call was registered by tr_distribute, fwrite(B,
 * sizeof(double), n, f) and fread(B, sizeof(double), n, f), with n of the global array, write and read the
 * distributed array. A size that does not match is an error on every rank. Everything else is done once, on
 * the I/O rank, with the result on all ranks.
 *
 * Code that wants a stream of its own on each rank includes <stdio.h>. C only: in C++ these names are
 * functions of namespace std. */
#ifndef TAILRACE_STDIO_H
#define TAILRACE_STDIO_H

#ifdef __cplusplus
#error "tailrace/stdio.h is for C: in C++ call the functions by their tr_ names"
#endif

#include <stdio.h>
#include <tailrace.h>
#include <wchar.h>

#define FILE tr_file
#undef stdin
#undef stdout
#undef stderr
#define stdin tr_stdin
#define stdout tr_stdout
#define stderr tr_stderr

#undef remove
#define remove tr_remove
#undef rename
#define rename tr_rename
#undef tmpfile
#define tmpfile tr_tmpfile
#undef tmpnam
#define tmpnam tr_tmpnam
#undef fopen
#define fopen tr_fopen
#undef freopen
#define freopen tr_freopen
#undef fclose
#define fclose tr_fclose
#undef fflush
#define fflush tr_fflush
#undef setbuf
#define setbuf tr_setbuf
#undef setvbuf
#define setvbuf tr_setvbuf
#undef fprintf
#define fprintf tr_fprintf
#undef fscanf
#define fscanf tr_fscanf
#undef printf
#define printf tr_printf
#undef scanf
#define scanf tr_scanf
#undef vfprintf
#define vfprintf tr_vfprintf
#undef vfscanf
#define vfscanf tr_vfscanf
#undef vprintf
#define vprintf tr_vprintf
#undef vscanf
#define vscanf tr_vscanf
#undef fgetc
#define fgetc tr_fgetc
#undef fgets
#define fgets tr_fgets
#undef gets
#define gets tr_gets /* a use does not compile, see files.h: C99 still has the name */
#undef fputc
#define fputc tr_fputc
#undef fputs
#define fputs tr_fputs
#undef getc
#define getc tr_getc
#undef getchar
#define getchar tr_getchar
#undef putc
#define putc tr_putc
#undef putchar
#define putchar tr_putchar
#undef puts
#define puts tr_puts
#undef ungetc
#define ungetc tr_ungetc
#undef fread
#define fread tr_fread
#undef fwrite
#define fwrite tr_fwrite
#undef fgetpos
#define fgetpos tr_fgetpos
#undef fsetpos
#define fsetpos tr_fsetpos
#undef fseek
#define fseek tr_fseek
#undef ftell
#define ftell tr_ftell
#undef rewind
#define rewind tr_rewind
#undef clearerr
#define clearerr tr_clearerr
#undef feof
#define feof tr_feof
#undef ferror
#define ferror tr_ferror
#undef perror
#define perror tr_perror
#define fpos_t tr_fpos

/* POSIX's fast forms of four calls. Two of these take no file: left alone, they would read and write each
 * rank's own streams. */
#undef getc_unlocked
#define getc_unlocked tr_getc
#undef getchar_unlocked
#define getchar_unlocked tr_getchar
#undef putc_unlocked
#define putc_unlocked tr_putc
#undef putchar_unlocked
#define putchar_unlocked tr_putchar

/* Wide characters have no collective calls. The names that take no FILE would compile, and work on each
 * rank's own streams. Therefore a use of them does not compile or, with a compiler that cannot refuse it,
 * does not link. */
#if defined(__has_attribute)
#if __has_attribute(unavailable)
#define TR_NOT_WIDE \
  __attribute__((unavailable("files of all ranks have no wide characters; use printf with %ls")))
#elif __has_attribute(error)
#define TR_NOT_WIDE __attribute__((error("files of all ranks have no wide characters; use printf with %ls")))
#endif
#endif
#ifdef TR_NOT_WIDE
int tr_wprintf(const wchar_t* format, ...) TR_NOT_WIDE;
int tr_wscanf(const wchar_t* format, ...) TR_NOT_WIDE;
int tr_vwprintf(const wchar_t* format, va_list arguments) TR_NOT_WIDE;
int tr_vwscanf(const wchar_t* format, va_list arguments) TR_NOT_WIDE;
wint_t tr_getwchar(void) TR_NOT_WIDE;
wint_t tr_putwchar(wchar_t character) TR_NOT_WIDE;
#endif
#undef wprintf
#define wprintf tr_wprintf
#undef wscanf
#define wscanf tr_wscanf
#undef vwprintf
#define vwprintf tr_vwprintf
#undef vwscanf
#define vwscanf tr_vwscanf
#undef getwchar
#define getwchar tr_getwchar
#undef putwchar
#define putwchar tr_putwchar

#endif
