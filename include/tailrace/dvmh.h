/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The names of DVM's runtime for C (Keldysh Institute) for the calls of tailrace/files.h: programs that DVM's
 * compiler has translated, or that were written with its names, compile with this header in place of
 * dvmhlib_stdio.h. docs/coming-from-dvm.md says what is different. C's own names are those of
 * tailrace/stdio.h, which this header includes: where a result is not used, dvmh_fprintf is
 * dvmh_void_fprintf, as DVM's compiler chooses it.
 *
 * The array of a _distrib call is the address that tr_distribute has registered, in place of DVM's
 * descriptor. An address that is not registered is an error on every rank. dvmh_gets and dvmh_void_gets do
 * not compile: see tr_gets. */
#ifndef TAILRACE_DVMH_H
#define TAILRACE_DVMH_H

#include <tailrace/stdio.h>

#define dvmh_stdin tr_stdin
#define dvmh_stdout tr_stdout
#define dvmh_stderr tr_stderr

#define dvmh_remove tr_remove
#define dvmh_rename tr_rename
#define dvmh_tmpfile tr_tmpfile
#define dvmh_tmpnam tr_tmpnam
#define dvmh_fclose tr_fclose
#define dvmh_fflush tr_fflush
#define dvmh_fopen tr_fopen
#define dvmh_freopen tr_freopen
#define dvmh_setbuf tr_setbuf
#define dvmh_setvbuf tr_setvbuf
#define dvmh_fprintf tr_fprintf
#define dvmh_fscanf tr_fscanf
#define dvmh_printf tr_printf
#define dvmh_scanf tr_scanf
#define dvmh_vfprintf tr_vfprintf
#define dvmh_vfscanf tr_vfscanf
#define dvmh_vprintf tr_vprintf
#define dvmh_vscanf tr_vscanf
#define dvmh_fgetc tr_fgetc
#define dvmh_fgets tr_fgets
#define dvmh_fputc tr_fputc
#define dvmh_fputs tr_fputs
#define dvmh_getc tr_getc
#define dvmh_getchar tr_getchar
#define dvmh_gets tr_gets
#define dvmh_putc tr_putc
#define dvmh_putchar tr_putchar
#define dvmh_puts tr_puts
#define dvmh_ungetc tr_ungetc
#define dvmh_fread tr_fread
#define dvmh_fwrite tr_fwrite
#define dvmh_fgetpos tr_fgetpos
#define dvmh_fseek tr_fseek
#define dvmh_fsetpos tr_fsetpos
#define dvmh_ftell tr_ftell
#define dvmh_rewind tr_rewind
#define dvmh_clearerr tr_clearerr
#define dvmh_feof tr_feof
#define dvmh_ferror tr_ferror
#define dvmh_perror tr_perror

/* Without result. */
#define dvmh_void_fprintf tr_fprintf_nr
#define dvmh_void_fscanf tr_fscanf_nr
#define dvmh_void_printf tr_printf_nr
#define dvmh_void_scanf tr_scanf_nr
#define dvmh_void_vfprintf tr_vfprintf_nr
#define dvmh_void_vfscanf tr_vfscanf_nr
#define dvmh_void_vprintf tr_vprintf_nr
#define dvmh_void_vscanf tr_vscanf_nr
#define dvmh_void_fgets tr_fgets_nr
#define dvmh_void_fputc tr_fputc_nr
#define dvmh_void_fputs tr_fputs_nr
#define dvmh_void_putc tr_putc_nr
#define dvmh_void_putchar tr_putchar_nr
#define dvmh_void_puts tr_puts_nr
#define dvmh_void_ungetc tr_ungetc_nr
#define dvmh_void_fread tr_fread_nr
#define dvmh_void_fwrite tr_fwrite_nr
#define dvmh_void_fseek tr_fseek_nr
#define dvmh_void_gets tr_gets

/* Distributed arrays. */
#define dvmh_fread_distrib tr_fread_distributed
#define dvmh_fwrite_distrib tr_fwrite_distributed
#define dvmh_void_fread_distrib tr_fread_distributed_nr
#define dvmh_void_fwrite_distrib tr_fwrite_distributed_nr

/* Local files. */
#define dvmh_remove_local tr_remove_local
#define dvmh_rename_local tr_rename_local
#define dvmh_tmpfile_local tr_tmpfile_local
#define dvmh_tmpnam_local tr_tmpnam_local

#endif
