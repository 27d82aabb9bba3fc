/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Reads one field for each line of its input, in a run on one rank, and prints "ok" or the error. A line has
 * pattern, stream options, lead in seconds, name and options of the field, with tabs between them; the grid
 * is that of docs/input.md. Without a lead the program only opens and closes the stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

enum { PARTS = 5, MOST_VALUES = 1 << 20 };

static int read_line(char** part, double* values) {
  tr_layout* area;
  tr_stream* stream;
  if (tr_layout_block(2, (tr_index[]){94, 117}, NULL, &area) || tr_stream_open(part[0], part[1], &stream))
    return 1;
  int failed = tr_stream_define(stream, part[3], area, TR_F64, part[4]);
  if (!failed && *part[2]) {
    tr_stream_begin(stream, strtoll(part[2], NULL, 10));
    tr_stream_get(stream, part[3], values);
    failed = tr_stream_end(stream);
  }
  return failed || tr_stream_close(&stream) || tr_layout_free(&area);
}

int main(int argc, char** argv) {
  static char line[10000];
  double* const values = calloc(MOST_VALUES, sizeof *values);
  MPI_Comm model;
  MPI_Init(&argc, &argv);
  if (tr_init(MPI_COMM_WORLD, &model, NULL)) return puts(tr_error()), 1;
  while (fgets(line, sizeof line, stdin)) {
    char* part[PARTS];
    char* rest = line;
    line[strcspn(line, "\n")] = '\0';
    for (int n = 0; n < PARTS; n++) {
      part[n] = rest ? rest : "";
      rest = rest ? strchr(rest, '\t') : NULL;
      if (rest) *rest++ = '\0';
    }
    puts(read_line(part, values) ? tr_error() : "ok");
  }
  free(values);
  const int failed = tr_finalize();
  return MPI_Finalize() || failed;
}
