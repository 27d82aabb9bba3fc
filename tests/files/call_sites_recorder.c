/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Takes the library's place for call_sites.c: tells which calls came with a result although nobody uses it
 * (argument "exact": a failure), and which came without although somebody does (always a failure). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct tr_file tr_file;
static int wrong, exact, calls;

static void note(const char* text, int with_result) {
  const int nobody_uses = strstr(text, "unused") != NULL;
  ++calls;
  if (with_result != nobody_uses || (with_result && !exact)) return;
  printf("%s: %s a result\n", text, with_result ? "with" : "without");
  ++wrong;
}

tr_file* tr_standard_stream(int number) { return number == 1 ? (tr_file*)&calls : NULL; }
int tr_fputs(const char* text, tr_file* file) { return note(text, 1), file != NULL; }
void tr_fputs_nr(const char* text, tr_file* file) { note(text, file == NULL); }
int tr_putchar(int character) { return character; }
int tr_remove(const char* path) { return path != NULL ? 7 : 0; }
int tr_rename(const char* from, const char* to) { return from != NULL && to != NULL ? 7 : 0; }

/* What else call_sites.cpp calls. */
#define UNCALLED(name)         \
  int name(void) { return 0; } \
  struct uncalled
UNCALLED(tr_vfprintf);
UNCALLED(tr_vfprintf_nr);
UNCALLED(tr_vprintf);
UNCALLED(tr_vprintf_nr);
UNCALLED(tr_vfscanf);
UNCALLED(tr_vfscanf_nr);
UNCALLED(tr_vscanf);
UNCALLED(tr_vscanf_nr);
UNCALLED(tr_fgets);
UNCALLED(tr_fgets_nr);
UNCALLED(tr_ungetc);
UNCALLED(tr_ungetc_nr);
UNCALLED(tr_fputc);
UNCALLED(tr_fputc_nr);
UNCALLED(tr_putc);
UNCALLED(tr_putc_nr);
UNCALLED(tr_putchar_nr);
UNCALLED(tr_puts);
UNCALLED(tr_puts_nr);
UNCALLED(tr_fread);
UNCALLED(tr_fread_nr);
UNCALLED(tr_fwrite);
UNCALLED(tr_fwrite_nr);
UNCALLED(tr_fseek);
UNCALLED(tr_fseek_nr);

int make_calls(int x);

int main(int argc, char** argv) {
  (void)argv;
  exact = argc > 1;
  make_calls(5);
  if (calls < 20) printf("only %d calls\n", calls);
  return wrong > 0 || calls < 20;
}
