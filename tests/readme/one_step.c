/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes steps of one field for each line of its input, in a run on one rank, and prints "ok" or the error. A
 * line has pattern, leads in seconds (21600,43200), shape (181x360), stream options, name, options and grid
 * options of the field, with tabs between them. Without grid options the layout has no georeference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

enum { PARTS = 7, MOST_DIMS = 4, MOST_VALUES = 1 << 20 };

static int shape_of(const char* text, tr_index* shape) {
  for (int ndims = 0; ndims < MOST_DIMS;) {
    char* end;
    shape[ndims++] = strtoll(text, &end, 10);
    if (*end != 'x') return ndims;
    text = end + 1;
  }
  return 0;
}

/* A field without time is put before the first step; nothing remains to be put in steps then. */
static int put_steps(tr_stream* stream, int at_times, const char* leads, const char* field,
                     const char* options, const double* values) {
  if (strstr(options, "time=none") != NULL) return tr_stream_put(stream, field, values);
  for (;;) {
    char* end;
    const int64_t lead = strtoll(leads, &end, 10);
    if (at_times ? tr_stream_begin_at(stream, (double)lead) : tr_stream_begin(stream, lead)) return 1;
    if (tr_stream_put(stream, field, values) || tr_stream_end(stream)) return 1;
    if (*end != ',') return 0;
    leads = end + 1;
  }
}

static int write_line(char* const* part, const double* values) {
  tr_layout* layout = NULL;
  tr_stream* stream = NULL;
  tr_index shape[MOST_DIMS];
  const int ndims = shape_of(part[2], shape);
  const int has_weights = strstr(part[5], "weights=area") != NULL; /* a field that the program puts, too */
  const int failed =
      tr_layout_block(ndims, shape, NULL, &layout) ||
      (part[6][0] != '\0' && tr_layout_georeference(layout, part[6])) ||
      tr_stream_create(part[0], part[3], &stream) ||
      (has_weights && tr_stream_define(stream, "area", layout, TR_F64, "time=none")) ||
      tr_stream_define(stream, part[4], layout, TR_F64, part[5]) ||
      (has_weights && tr_stream_put(stream, "area", values)) ||
      put_steps(stream, strstr(part[3], "time=model") != NULL, part[1], part[4], part[5], values) ||
      tr_stream_close(&stream);
  puts(failed ? tr_error() : "ok");
  if (stream != NULL) (void)tr_stream_close(&stream);
  if (layout != NULL) (void)tr_layout_free(&layout);
  return failed;
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  char line[4096];
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* method=mpiio needs it */
  double* values = malloc(sizeof *values * MOST_VALUES);
  int failed = values == NULL || tr_init(MPI_COMM_WORLD, &compute, NULL);
  for (int n = 0; !failed && n < MOST_VALUES; n++) values[n] = 280 + n % 100 * 0.1;
  while (!failed && fgets(line, sizeof line, stdin) != NULL) {
    char *part[PARTS], *rest = line;
    line[strcspn(line, "\n")] = '\0';
    for (int n = 0; n < PARTS; n++) part[n] = strsep(&rest, "\t");
    if (part[PARTS - 1] == NULL)
      puts("expected seven parts");
    else
      (void)write_line(part, values);
  }
  free(values);
  failed = tr_finalize() || failed;
  return MPI_Finalize() || failed;
}
