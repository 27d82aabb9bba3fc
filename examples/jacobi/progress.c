/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "progress.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { cells = 30 };
static const char* style = "none";
static double start, shown;
static long tenths;

void progress_start(const char* how) {
  style = how;
  if (strcmp(how, "auto") == 0) style = isatty(STDOUT_FILENO) ? "bar" : "lines";
  start = shown = MPI_Wtime();
  tenths = 0;
}

static void print_figures(long iteration, long iterations) {
  const double taken = MPI_Wtime() - start;
  const int done = iteration == iterations;
  const double shows = done ? taken : taken / (double)iteration * (double)(iterations - iteration);
  printf("%3ld %%  iteration %ld of %ld   %s %02d:%02d", 100 * iteration / iterations, iteration, iterations,
         done ? "took" : "still", (int)shows / 60, (int)shows % 60);
}

static void print_bar(long iteration, long iterations) {
  const long filled = cells * iteration / iterations;
  printf("\r  ");
  for (long i = 0; i < cells; i++) fputs(i < filled ? "\u2588" : "\u2591", stdout);
  printf(" ");
  print_figures(iteration, iterations);
  printf("\033[K%s", iteration == iterations ? "\n" : "");
}

void progress_show(long iteration, long iterations) {
  const double now = MPI_Wtime();
  if (strcmp(style, "bar") == 0) {
    if (now - shown < 0.2 && iteration < iterations) return;
    shown = now;
    print_bar(iteration, iterations);
  } else if (strcmp(style, "lines") == 0 && 10 * iteration / iterations > tenths) {
    tenths = 10 * iteration / iterations;
    printf("  ");
    print_figures(iteration, iterations);
    printf("\n");
  }
  fflush(stdout);
}
