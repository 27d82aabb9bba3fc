/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* C's own names for the calls of tailrace/files.h. Include this file instead of <stdio.h>, and serial code
 * works on collective files. If the array of a call was registered by tr_distribute, fwrite(B,
 * sizeof(double), n, f) and fread(B, sizeof(double), n, f), with n of the global array, write and read the
 * distributed array. A size that does not match is an error on every rank. Everything else is done once, on
 * the I/O rank, with the result on all ranks.
 *
 * fprintf, fscanf, printf, scanf, their v forms, fgets, fputc, fputs, putc, putchar, puts, ungetc, fread,
 * fwrite and fseek are the calls without result where the program does not use the result, so that
 * fprintf(f, ...); sends no message (call_sites.h). (fprintf)(f, ...) always has its result.
 *
 * For C and C++. Include it behind all other headers: what they do with files of their own stays theirs. In
 * C++ the names are also those of namespace std, and a call needs a function around it. Code that wants a
 * stream of its own on each rank includes <stdio.h>. */
#ifndef TAILRACE_STDIO_H
#define TAILRACE_STDIO_H

#ifdef __cplusplus
#include <cstdio>
#include <cwchar>
#endif
#include <stdio.h>
#include <tailrace/call_sites.h>
#include <wchar.h>

#define FILE tr_file
#undef stdin
#undef stdout
#undef stderr
#define stdin tr_stdin
#define stdout tr_stdout
#define stderr tr_stderr

#ifdef __cplusplus
/* Containers and <filesystem> have functions of these names, too, so no macro may change them. The calls of C
 * themselves lead to the library. */
#ifdef __THROW
#define TR_C_THROWS __THROW
#else
#define TR_C_THROWS
#endif
extern "C" int remove(const char* path) TR_C_THROWS __asm__("tr_remove");
extern "C" int rename(const char* from, const char* to) TR_C_THROWS __asm__("tr_rename");
/* Again, since clang takes what std::remove means from the declaration that the name was brought in with. */
namespace std {
using ::remove;
using ::rename;
}  // namespace std
#else
#undef remove
#define remove tr_remove
#undef rename
#define rename tr_rename
#endif
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
#ifdef __cplusplus
extern "C" {
#endif
int tr_wprintf(const wchar_t* format, ...) TR_NOT_WIDE;
int tr_wscanf(const wchar_t* format, ...) TR_NOT_WIDE;
int tr_vwprintf(const wchar_t* format, va_list arguments) TR_NOT_WIDE;
int tr_vwscanf(const wchar_t* format, va_list arguments) TR_NOT_WIDE;
wint_t tr_getwchar(void) TR_NOT_WIDE;
wint_t tr_putwchar(wchar_t character) TR_NOT_WIDE;
#ifdef __cplusplus
}
#endif
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

#ifdef __cplusplus
namespace std {
using ::tr_clearerr;
using ::tr_fclose;
using ::tr_feof;
using ::tr_ferror;
using ::tr_fflush;
using ::tr_fgetc;
using ::tr_fgetpos;
using ::tr_fgets;
using ::tr_file;
using ::tr_fopen;
using ::tr_fpos;
using ::tr_fprintf;
using ::tr_fputc;
using ::tr_fputs;
using ::tr_fread;
using ::tr_freopen;
using ::tr_fscanf;
using ::tr_fseek;
using ::tr_fsetpos;
using ::tr_ftell;
using ::tr_fwrite;
using ::tr_getc;
using ::tr_getchar;
using ::tr_perror;
using ::tr_printf;
using ::tr_putc;
using ::tr_putchar;
using ::tr_puts;
using ::tr_rewind;
using ::tr_scanf;
using ::tr_setbuf;
using ::tr_setvbuf;
using ::tr_tmpfile;
using ::tr_tmpnam;
using ::tr_ungetc;
using ::tr_vfprintf;
using ::tr_vfscanf;
using ::tr_vprintf;
using ::tr_vscanf;
}  // namespace std
#endif

#endif
