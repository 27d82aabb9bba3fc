// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A program that standard_streams_test.py launches. It reads numbers and a line from standard input on every
// rank, and prints what each rank has got. The exit code is 1 if the ranks differ.
#include <tailrace.h>

#include <cerrno>
#include <cstring>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm compute = MPI_COMM_NULL;
  if (tr_init(MPI_COMM_WORLD, &compute, "staging=1MiB") != TR_OK) MPI_Abort(MPI_COMM_WORLD, 1);
  int number = 0;
  double real = 0;
  char word[20] = {};
  const int items = tr_scanf("%d %lf %19s", &number, &real, word);
  const int newline = tr_getchar();
  char line[40] = {};
  tr_fgets(line, sizeof line, tr_stdin);
  const int end = tr_getchar();
  int mine[5] = {items, number, static_cast<int>(real * 4), newline, end};
  int sums[5] = {};
  MPI_Allreduce(mine, sums, 5, MPI_INT, MPI_SUM, compute);
  int size = 1;
  MPI_Comm_size(compute, &size);
  bool same = std::strcmp(word, "word") == 0 && std::strcmp(line, "a whole line\n") == 0;
  for (int i = 0; i < 5; ++i) same = same && sums[i] == mine[i] * size;
  tr_printf("%d items: %d %g %s\n", items, number, real, word);
  tr_puts(line);
  tr_putchar('#');
  tr_printf_nr("%d", end);
  tr_putchar_nr('\n');
  tr_puts_nr(tr_feof(tr_stdin) != 0 ? "at the end" : "not at the end");
  errno = ENOENT;
  tr_perror("told once");
  // Reopens tr_stdout on a file. The program's own stdout must stay where it is.
  if (argc > 1 && tr_freopen(argv[1], "w", tr_stdout) == nullptr) same = false;
  tr_printf("to the file\n");
  same = tr_finalize() == TR_OK && same;
  MPI_Finalize();
  return same ? 0 : 1;
}
