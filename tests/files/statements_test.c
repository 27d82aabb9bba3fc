/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Calls under C's own names, as C and as C++ (statements_test.cpp): a call whose result nobody uses sends no
 * message, another one has its result on every rank, and the ranks never come apart. */
#include <stdlib.h>
#include <string.h>
#include <tailrace/stdio.h>

static int failures = 0;
static int sent = 0;

/* The library sends its messages by this call alone. */
#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) int
    MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  ++sent;
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

static int ranks, rank;

static void check(int holds, const char* what) {
  if (holds) return;
  ++failures;
  (fprintf)(tr_stdout, "FAILED: %s (%s)\n", what, tr_error());
}

/* Returns how many messages the ranks have sent since the last call. */
static int count_sent(void) {
  int total = 0;
  MPI_Allreduce(&sent, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  sent = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  return total;
}

/* Returns the messages of `calls` calls with a result. */
static int cost_of(int calls) { return calls * (ranks - 1); }

static inline int print_line(FILE* f, int number) { return fprintf(f, "%d\n", number); }

static void statements(const char* name) {
  FILE* f = fopen(name, "w");
  int i, dropped;
  check(f != NULL, "fopen");
  count_sent();
  fprintf(f, "%d\n", 12);
  (void)fputs("a line\n", f);
  fputc('c', f), putc('d', f);
  for (i = 0; i < 100; ++i) fprintf(f, "%d ", i);
  ranks > 0 ? (void)fwrite("xy", 1, 2, f) : (void)0;
  if (fputs("\n", f) < 0) {
  }
  dropped = fseek(f, 0, SEEK_END);
  (void)dropped;
  check(count_sent() == (TR_CALL_SITES ? 0 : cost_of(107)), "statements send no message");
  (fputs)("plain\n", f);
  check(count_sent() == cost_of(1), "a name in parentheses has its result");
  check(fclose(f) == 0, "fclose");
}

static void results(const char* name) {
  int (*print)(FILE*, const char*, ...) = fprintf;
  int (*put)(const char*) = &puts;
  int length, nobody = 0, i;
  FILE* f = fopen(name, "w");
  check(f != NULL, "fopen");
  count_sent();
  check(fprintf(f, "%s", "four") == 4, "fprintf's result");
  length = fprintf(f, "%d", 123);
  if (rank == 0) nobody += length; /* on one rank alone: the call stays where it is, on all ranks */
  check(count_sent() == cost_of(2), "a result costs one broadcast");
  for (i = 0; i < 3; ++i) nobody += fputs("x", f) < 0;
  check(count_sent() == cost_of(3), "results in a loop");
  print_line(f, 1); /* this copy uses no result, the next one does: one place has one answer */
  check(print_line(f, 22) == 3, "the result of an inlined function");
  check(fprintf(f, "%d", fprintf(f, "%s", "five5")) == 1, "a call in the arguments of another");
  check(print(f, "%s", "six666") == 6, "a pointer to fprintf");
  check(put != NULL && nobody == (rank == 0 ? 3 : 0), "a pointer to puts");
  check(ftell(f) == 4 + 3 + 3 + 2 + 3 + 6 + 6, "all of it lies in the file");
  check(fclose(f) == 0, "fclose");
}

static void reads(const char* name) {
  char line[16] = "", block[4] = "";
  int number = 0, other = 0;
  FILE* f = fopen(name, "w+");
  check(f != NULL, "fopen");
  fputs("17 18\na line\nabcdef", f);
  fseek(f, 0, SEEK_SET);
  fscanf(f, "%d", &number);
  check(number == 17, "fscanf without a result stores on every rank");
  check(fscanf(f, "%d", &other) == 1 && other == 18, "fscanf with one");
  check(getc(f) == '\n', "getc");
  fgets(line, sizeof line, f);
  check(strcmp(line, "a line\n") == 0, "fgets without a result stores on every rank");
  fread(block, 1, 3, f);
  check(memcmp(block, "abc", 4) == 0, "fread without a result stores on every rank");
  ungetc('C', f);
  check(fgetc(f) == 'C' && fgetc(f) == 'd', "ungetc without a result");
  fread(block, 1, 4, f);
  check(feof(f) && !ferror(f), "the end of the file is no failure");
  check(fclose(f) == 0, "fclose");
}

/* A failure of a call without a result, with whatever rank fails, is that of fclose. */
static void failures_are_kept(const char* name) {
  char line[8] = "";
  char* const text = rank == ranks - 1 ? NULL : line;
  FILE* f = fopen(name, "r");
  check(f != NULL, "fopen");
  tr_fgets_nr(text, sizeof line, f);
  check(text == NULL || strcmp(line, "17 18\n") == 0, "the other ranks have the line");
  check(fclose(f) == EOF && strstr(tr_error(), "tr_fgets_nr") != NULL, "fclose returns it on every rank");
  f = fopen(name, "w");
  tr_fread_nr(line, 1, 4, f);
  check(ferror(f) != 0, "ferror tells of it at once");
  check(fflush(f) == EOF && strstr(tr_error(), "tr_fread_nr") != NULL, "fflush returns it on every rank");
  check(fclose(f) == 0, "it is returned once");
}

static void arrays(const char* name) {
  const tr_index shape[] = {30};
  tr_layout* layout;
  tr_index count, lower[1], upper[1], i;
  double whole[30] = {0}, *B;
  FILE* f;
  check(tr_layout_block(1, shape, NULL, &layout) == TR_OK, "layout");
  tr_layout_count(layout, &count);
  tr_layout_bounds(layout, 0, lower, upper);
  B = (double*)malloc((size_t)(count + 1) * sizeof(double));
  for (i = 0; i < count; ++i) B[i] = (double)(lower[0] + i);
  check(tr_distribute(B, TR_F64, layout) == B, "tr_distribute");
  f = fopen(name, "w+");
  fwrite(B, sizeof(double), 30, f);
  fseek(f, 0, SEEK_SET);
  check(fread(whole, sizeof(double), 30, f) == 30, "the whole array was written");
  for (i = 0; i < 30; ++i) check(whole[i] == (double)i, "each element");
  for (i = 0; i < count; ++i) B[i] = -1;
  rewind(f);
  fread(B, sizeof(double), 30, f);
  for (i = 0; i < count; ++i) check(B[i] == (double)(lower[0] + i), "the array was read");
  tr_fwrite_nr(B, sizeof(double), 7, f);
  check(fclose(f) == EOF && strstr(tr_error(), "distributed one of") != NULL, "a wrong size is kept");
  check(tr_undistribute(B) == TR_OK, "tr_undistribute");
  free(B);
  tr_layout_free(&layout);
}

/* Ranks that run different programs: one wants a result that the I/O rank's program does not send. */
static void ranks_that_differ(const char* name) {
  FILE* f = fopen(name, "w");
  if (rank == 0) {
    tr_fputs_nr("x", f);
    check(ftell(f) == 1, "the I/O rank goes on");
  } else {
    check((fputs)("x", f) == EOF, "a rank that waits for another result gets an error");
    check(strstr(tr_error(), "tr_fputs(") != NULL && strstr(tr_error(), "is in tr_ftell(") != NULL,
          "it names both calls");
  }
  check(fclose(f) == 0, "fclose");
}

#ifdef __cplusplus
template <int number>
int print_twice(FILE* f) {
  std::fprintf(f, "%d", number);
  return std::fprintf(f, "%d", number);
}

struct Log {
  FILE* file;
  int add(const char* text) {
    std::fputs(text, file);
    return ::fputs(text, file);
  }
};

static void names_of_cpp(const char* name) {
  std::FILE* f = std::fopen(name, "w");
  count_sent();
  check(print_twice<7>(f) == 1 && print_twice<88>(f) == 2, "templates");
  Log log{f};
  check(log.add("x") >= 0, "members");
  const auto in_lambda = [f](int number) {
    fprintf(f, "%d", number);
    return fprintf(f, "%d", number);
  };
  check(in_lambda(3) == 1, "lambdas");
  check(count_sent() == cost_of(TR_CALL_SITES ? 4 : 8), "their statements send no message");
  check(std::fclose(f) == 0, "std::fclose");
}
#endif

int main(int argc, char** argv) {
  MPI_Comm comm;
  char name[64];
  MPI_Init(&argc, &argv);
  if (tr_init(MPI_COMM_WORLD, &comm, NULL) != TR_OK) return 1;
  MPI_Comm_size(comm, &ranks);
  MPI_Comm_rank(comm, &rank);
  snprintf(name, sizeof name, "statements_test.%d", ranks);
  statements(name);
  results(name);
  reads(name);
  failures_are_kept(name);
  arrays(name);
  ranks_that_differ(name);
#ifdef __cplusplus
  names_of_cpp(name);
  check(std::rename(name, "statements_test.renamed") == 0, "std::rename is that of all ranks");
  check(remove("statements_test.renamed") == 0, "remove is that of all ranks");
#else
  check(remove(name) == 0, "remove");
#endif
  check(tr_finalize() == TR_OK, "tr_finalize");
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures > 0;
}
