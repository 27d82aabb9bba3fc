/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A program with the names of DVM's runtime alone. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace/dvmh.h>

enum { N = 40 };
static int failures = 0;

static void check(int holds, const char* what) {
  if (holds) return;
  ++failures;
  dvmh_void_fprintf(dvmh_stderr, "FAILED: %s (%s)\n", what, tr_error());
}

static int print_list(FILE* f, const char* format, ...) {
  int length;
  va_list list;
  va_start(list, format);
  length = dvmh_vfprintf(f, format, list);
  va_end(list);
  va_start(list, format);
  dvmh_void_vfprintf(f, format, list);
  va_end(list);
  return length;
}

static int scan_list(FILE* f, const char* format, ...) {
  int items;
  va_list list;
  va_start(list, format);
  items = dvmh_vfscanf(f, format, list);
  va_end(list);
  va_start(list, format);
  dvmh_void_vfscanf(f, format, list);
  va_end(list);
  return items;
}

/* The calls on standard streams, as functions: this test reads nothing from there. */
static void standard_streams(void) {
  int (*print)(const char*, va_list) = dvmh_vprintf;
  void (*print_void)(const char*, va_list) = dvmh_void_vprintf;
  int (*scan)(const char*, va_list) = dvmh_vscanf;
  void (*scan_void)(const char*, va_list) = dvmh_void_vscanf;
  int (*scanf_)(const char*, ...) = dvmh_scanf;
  void (*scanf_void)(const char*, ...) = dvmh_void_scanf;
  int (*get)(void) = dvmh_getchar;
  check(print && print_void && scan && scan_void && scanf_ && scanf_void && get, "names");
  check(dvmh_printf("%s", "a") == 1 && dvmh_putchar('b') == 'b' && dvmh_puts("c") >= 0, "standard output");
  dvmh_void_printf("%s", "d");
  dvmh_void_putchar('e');
  dvmh_void_puts("f");
  check(dvmh_stdin != NULL && dvmh_fflush(dvmh_stdout) == 0, "standard streams");
  dvmh_perror("perror");
}

static void text(const char* name) {
  char line[16] = "";
  int number = 0;
  fpos_t position;
  FILE* f = dvmh_fopen(name, "w+");
  check(f != NULL && dvmh_setvbuf(f, NULL, _IOFBF, 512) == 0, "fopen, setvbuf");
  dvmh_setbuf(f, NULL);
  check(dvmh_fprintf(f, "%d ", 1) == 2 && print_list(f, "%d ", 2) == 2, "fprintf");
  dvmh_void_fprintf(f, "%d ", 3);
  check(dvmh_fputc('x', f) == 'x' && dvmh_putc('y', f) == 'y' && dvmh_fputs("z\n", f) >= 0, "characters");
  dvmh_void_fputc('1', f);
  dvmh_void_putc('2', f);
  dvmh_void_fputs("3\nlast\n", f);
  dvmh_rewind(f);
  check(dvmh_fscanf(f, "%d", &number) == 1 && number == 1, "fscanf");
  check(scan_list(f, "%d", &number) == 1 && number == 2, "vfscanf");
  dvmh_void_fscanf(f, "%d ", &number);
  check(number == 3 && dvmh_fgetc(f) == 'x' && dvmh_getc(f) == 'y', "fgetc");
  check(dvmh_fgetpos(f, &position) == 0 && dvmh_ungetc('Y', f) == 'Y' && dvmh_fgetc(f) == 'Y', "ungetc");
  dvmh_void_ungetc('W', f);
  check(dvmh_fgets(line, sizeof line, f) == line && strcmp(line, "Wz\n") == 0, "fgets");
  dvmh_void_fgets(line, sizeof line, f);
  check(strcmp(line, "123\n") == 0, "fgets without a result");
  check(dvmh_fsetpos(f, &position) == 0 && dvmh_getc(f) == 'z', "fsetpos");
  check(dvmh_fseek(f, 0, SEEK_END) == 0 && dvmh_ftell(f) == 21, "fseek, ftell");
  dvmh_void_fseek(f, 1, SEEK_SET);
  check(dvmh_getc(f) == ' ' && !dvmh_feof(f) && !dvmh_ferror(f), "feof, ferror");
  dvmh_clearerr(f);
  f = dvmh_freopen(name, "r", f);
  check(f != NULL && dvmh_fclose(f) == 0, "freopen, fclose");
}

static void blocks(const char* name, tr_layout* layout, double* B, tr_index count) {
  tr_index i;
  double whole[N];
  FILE* f = dvmh_fopen(name, "wb+p");
  check(dvmh_fwrite_distrib(B, sizeof(double), N, f) == N, "fwrite_distrib");
  dvmh_void_fwrite_distrib(B, sizeof(double), N, f);
  check(dvmh_fwrite("12", 1, 2, f) == 2, "fwrite");
  dvmh_void_fwrite("34", 1, 2, f);
  dvmh_rewind(f);
  check(dvmh_fread(whole, sizeof(double), N, f) == N && whole[N - 1] == N - 1, "fread");
  for (i = 0; i < count; ++i) B[i] = -1;
  dvmh_void_fread_distrib(B, sizeof(double), N, f);
  for (i = 0; i < count; ++i) check(B[i] >= 0, "fread_distrib without a result");
  dvmh_void_fread(whole, 1, 4, f);
  check(memcmp(whole, "1234", 4) == 0, "fread without a result");
  dvmh_rewind(f);
  check(dvmh_fread_distrib(B, sizeof(double), N, f) == N, "fread_distrib");
  check(dvmh_fread_distrib(whole, sizeof(double), N, f) == 0, "an array that is not registered");
  check(strstr(tr_error(), "tr_distribute") != NULL, "the error says how to register it");
  dvmh_void_fwrite_distrib(whole, sizeof(double), N, f);
  check(dvmh_fclose(f) == EOF && strstr(tr_error(), "tr_distribute") != NULL, "without a result it is kept");
  check(layout != NULL, "layout");
}

static void local(const char* name) {
  char pattern[64], other[64], own[L_tmpnam];
  FILE* f;
  snprintf(pattern, sizeof pattern, "%s.%%d", name);
  snprintf(other, sizeof other, "%s.other.%%d", name);
  f = dvmh_fopen(pattern, "wl");
  check(f != NULL && dvmh_fclose(f) == 0, "a local file");
  check(dvmh_rename_local(pattern, other) == 0 && dvmh_remove_local(other) == 0,
        "rename_local, remove_local");
  f = dvmh_tmpfile_local();
  check(f != NULL && dvmh_fclose(f) == 0 && dvmh_tmpnam_local(own) == own, "tmpfile_local, tmpnam_local");
  f = dvmh_tmpfile();
  check(f != NULL && dvmh_fclose(f) == 0 && dvmh_tmpnam(own) == own, "tmpfile, tmpnam");
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  tr_layout* layout;
  const tr_index shape[] = {N};
  tr_index count, lower[1], upper[1], i;
  char name[64], other[80];
  double* B;
  int ranks;
  MPI_Init(&argc, &argv);
  if (tr_init(MPI_COMM_WORLD, &comm, NULL) != TR_OK) return 1;
  MPI_Comm_size(comm, &ranks);
  snprintf(name, sizeof name, "dvmh_names.%d", ranks);
  snprintf(other, sizeof other, "%s.renamed", name);
  standard_streams();
  text(name);
  check(tr_layout_block(1, shape, NULL, &layout) == TR_OK, "layout");
  tr_layout_count(layout, &count);
  tr_layout_bounds(layout, 0, lower, upper);
  B = (double*)malloc((size_t)(count + 1) * sizeof(double));
  for (i = 0; i < count; ++i) B[i] = (double)(lower[0] + i);
  check(tr_distribute(B, TR_F64, layout) == B, "tr_distribute");
  blocks(name, layout, B, count);
  check(tr_undistribute(B) == TR_OK, "tr_undistribute");
  free(B);
  tr_layout_free(&layout);
  local(name);
  check(dvmh_rename(name, other) == 0 && dvmh_remove(other) == 0, "rename, remove");
  check(tr_finalize() == TR_OK, "tr_finalize");
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures > 0;
}
