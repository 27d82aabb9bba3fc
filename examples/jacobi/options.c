/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct mode modes[] = {{"old", "", 0, 0},
                                    {"parallel", "p", 0, 0},
                                    {"local", "l", 1, 0},
                                    {"async-local", "ls", 1, 1},
                                    {"async-parallel", "ps", 0, 1}};

static const char help[] =
    "jacobi_c: the Jacobi iteration on a grid of L x L points, cut into blocks, that saves its array every "
    "few\n"
    "iterations and prints what that cost.\n"
    "\n"
    "usage: mpirun -n N jacobi_c [options]\n"
    "\n"
    "  --size L             points along each side                                    (1000)\n"
    "  --iterations N                                                                 (100)\n"
    "  --save-every N       iterations between saves of the array; 0: never           (10)\n"
    "  --mode MODE          old, parallel, local, async-local or async-parallel       (parallel)\n"
    "  --out DIR            where the files go; it must exist                         (.)\n"
    "  --keep               a file for each save; without it two are overwritten in turn\n"
    "  --verify             read the result back, in the same mode, and compare it\n"
    "  --checkpoint N       iterations between checkpoints of the run; 0: never       (0)\n"
    "  --checkpoint-mode M  p: one file, l: a file for each rank                      (p)\n"
    "  --sync               checkpoints are on storage before the next iteration\n"
    "  --restart            go on from the last checkpoint in the directory, if there is one\n"
    "  --progress HOW       auto, bar, lines or none                                  (auto)\n"
    "  --quiet              the same as --progress none\n"
    "  --json               print all figures as one line of JSON, and nothing else\n"
    "  --help\n"
    "\n"
    "The modes: old sends everything through one rank; parallel writes one file from several; local writes "
    "a\n"
    "file for each rank; the asynchronous ones copy the array and write while the program computes on. All "
    "but\n"
    "the local ones write the same bytes, for any number of ranks.\n"
    "\n"
    "examples\n"
    "  # 100 iterations of 1000 x 1000 points, saved 10 times into two files that take turns\n"
    "  mpirun -n 4 jacobi_c\n"
    "  # the same on a disk of 20 MB/s, saved while the program computes on\n"
    "  TAILRACE_THROTTLE=20MB/s mpirun -n 4 jacobi_c --mode async-parallel\n"
    "  # all saves are kept: jacobi_0010.dat, jacobi_0020.dat, ...\n"
    "  mkdir -p saves && mpirun -n 4 jacobi_c --size 400 --keep --out saves\n"
    "  # memory for a save of 8000 x 8000 points, so that none has to wait for the disk\n"
    "  TAILRACE_IO_BUFFER=600MiB mpirun -n 4 jacobi_c --size 8000 --mode async-parallel\n"
    "  # stopped after 60 iterations, it goes on on another number of ranks\n"
    "  mpirun -n 4 jacobi_c --iterations 60 --checkpoint 20\n"
    "  mpirun -n 3 jacobi_c --iterations 100 --checkpoint 20 --restart\n"
    "\n"
    "Files: jacobi_a.dat and jacobi_b.dat (or jacobi_0010.dat, ...), and jacobi_result.dat; of the local "
    "modes\n"
    "one for each rank, as jacobi_result.0003.dat. Float64, row after row. Checkpoints: jacobi_first.ckpt "
    "and\n"
    "jacobi_second.ckpt in turn.\n"
    "Exit status: 0 done, 1 failed (the reason is printed), 2 a wrong option.\n";

static int read_count(const char* text, long least, long* value) {
  char* end = NULL;
  errno = 0;
  *value = strtol(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && *value >= least;
}

static int read_mode(const char* text, const struct mode** mode) {
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(text, modes[i].name) == 0) {
      *mode = &modes[i];
      return 1;
    }
  }
  return 0;
}

static int is_progress(const char* text) {
  return strcmp(text, "auto") == 0 || strcmp(text, "bar") == 0 || strcmp(text, "lines") == 0 ||
         strcmp(text, "none") == 0;
}

/* Reads an option without a value. Returns 0 if `name` is none of them. */
static int read_switch(const char* name, struct options* chosen) {
  if (strcmp(name, "--keep") == 0) return chosen->keep = 1;
  if (strcmp(name, "--verify") == 0) return chosen->verify = 1;
  if (strcmp(name, "--json") == 0) return chosen->json = 1;
  if (strcmp(name, "--sync") == 0) return chosen->sync = 1;
  if (strcmp(name, "--restart") == 0) return chosen->restart = 1;
  if (strcmp(name, "--quiet") != 0) return 0;
  chosen->progress = "none";
  return 1;
}

/* Reads an option with its value. Returns what was expected instead, or NULL if all is well. */
static const char* read_value(const char* name, const char* value, struct options* chosen) {
  const char* missing = "an option of this name; see --help";
  int ok = 0;
  if (strcmp(name, "--size") == 0) {
    missing = "a whole number of at least 3";
    ok = value && read_count(value, 3, &chosen->size);
  } else if (strcmp(name, "--iterations") == 0) {
    missing = "a whole number of at least 1";
    ok = value && read_count(value, 1, &chosen->iterations);
  } else if (strcmp(name, "--save-every") == 0) {
    missing = "a whole number, 0 for never";
    ok = value && read_count(value, 0, &chosen->save_every);
  } else if (strcmp(name, "--mode") == 0) {
    missing = "old, parallel, local, async-local or async-parallel";
    ok = value && read_mode(value, &chosen->mode);
  } else if (strcmp(name, "--checkpoint") == 0) {
    missing = "a whole number, 0 for never";
    ok = value && read_count(value, 0, &chosen->checkpoint_every);
  } else if (strcmp(name, "--checkpoint-mode") == 0) {
    missing = "p or l";
    ok = (chosen->checkpoint_mode = value) && (strcmp(value, "p") == 0 || strcmp(value, "l") == 0);
  } else if (strcmp(name, "--out") == 0) {
    missing = "a directory";
    ok = (chosen->out = value) != NULL;
  } else if (strcmp(name, "--progress") == 0) {
    missing = "auto, bar, lines or none";
    ok = (chosen->progress = value) != NULL && is_progress(value);
  }
  return ok ? NULL : missing;
}

int read_options(int count, char** words, int talks, struct options* chosen) {
  *chosen = (struct options){.size = 1000,
                             .iterations = 100,
                             .save_every = 10,
                             .out = ".",
                             .progress = "auto",
                             .checkpoint_mode = "p"};
  chosen->mode = &modes[1];
  for (int i = 1; i < count; i++) {
    const char* name = words[i];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
      if (talks) fputs(help, stdout);
      return 0;
    }
    if (read_switch(name, chosen)) continue;
    const char* value = i + 1 < count ? words[++i] : NULL;
    const char* expected = read_value(name, value, chosen);
    if (expected) {
      if (talks)
        fprintf(stderr, "jacobi_c: %s %s: expected %s\n", name, value ? value : "(no value)", expected);
      return 2;
    }
  }
  if (chosen->json) chosen->progress = "none";
  return -1;
}
