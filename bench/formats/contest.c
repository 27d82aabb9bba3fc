/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#define _GNU_SOURCE
#include "contest.h"

#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options options = {"cdf5", "rate", 1000, 10, 6, "", 1, "automatic", 0, 0};

void parse_options(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *key = argv[i], *value = argv[i + 1];
    if (strcmp(key, "--format") == 0) options.format = value;
    if (strcmp(key, "--name") == 0) options.name = value;
    if (strcmp(key, "--size") == 0) options.size = atol(value);
    if (strcmp(key, "--levels") == 0) options.levels = atol(value);
    if (strcmp(key, "--steps") == 0) options.steps = atol(value);
    if (strcmp(key, "--compress") == 0) options.compress = value;
    if (strcmp(key, "--deflate") == 0) options.deflate = atol(value);
    if (strcmp(key, "--buffering") == 0) options.buffering = value;
    if (strcmp(key, "--turns") == 0) options.turns = atoi(value);
    if (strcmp(key, "--values") == 0) options.values = atoi(value);
  }
}

void must(int good, const char* what, const char* why) {
  if (good) return;
  fprintf(stderr, "bench formats: %s: %s: %s\n", options.name, what, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void make_values(float* data, const long lower[2], const long upper[2]) {
  const double step = 2 * acos(-1.0) / (double)options.size;
  double* const waves = malloc((size_t)options.size * 3 * sizeof *waves); /* of each column */
  must(waves != NULL, "memory", "none");
  for (long x = lower[1]; x < upper[1]; x++) {
    waves[3 * x] = cos(3 * step * (double)x);
    waves[3 * x + 1] = 1.5 * sin(17 * step * (double)x);
    waves[3 * x + 2] = 1.5 * cos(17 * step * (double)x);
  }
  for (long level = 0; level < options.levels; level++) {
    for (long y = lower[0]; y < upper[0]; y++) {
      const double b = step * (double)y, long_wave = 12 * sin(b + 0.3 * (double)level);
      const double cosine = cos(5 * b), sine = sin(5 * b), mean = 288 - 2.5 * (double)level;
      for (long x = lower[1]; x < upper[1]; x++) {
        const double* const wave = waves + 3 * x;
        uint32_t noise = (uint32_t)((level * options.size + y) * options.size + x) * 2654435761U;
        noise = (noise ^ noise >> 16) * 0x85ebca6bU;
        noise = (noise ^ noise >> 13) & 0xffff;
        *data++ = (float)(mean + long_wave * wave[0] + wave[1] * cosine + wave[2] * sine +
                          0.02 * (noise / 65536.0 - 0.5));
      }
    }
  }
  free(waves);
}

MPI_Info hints(void) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", options.buffering);
  MPI_Info_set(info, "romio_ds_write", "disable");
  return info;
}

void bind_to_cores(void) {
  int world, me;
  cpu_set_t may, one;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (sched_getaffinity(0, sizeof may, &may) != 0 || CPU_COUNT(&may) < world) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; core++) {
    if (!CPU_ISSET(core, &may) || seen++ != me) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
}

double longest_since(double begin, MPI_Comm comm) {
  double mine = MPI_Wtime() - begin, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, comm);
  return all;
}

char next_turn(MPI_Comm comm) {
  char line[80], word = 0;
  int rank, done = 0;
  MPI_Request request;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0 && fgets(line, sizeof line, stdin) != NULL) word = line[0];
  MPI_Ibcast(&word, 1, MPI_CHAR, 0, comm, &request);
  for (;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) break;
    usleep(1000);
  }
  MPI_Barrier(comm);
  return word;
}

void end_turn(int rank, double seconds, long steps) {
  if (rank != 0) return;
  printf("%.6f %ld\n", seconds, steps * options.levels * options.size * options.size * (long)sizeof(float));
  fflush(stdout);
}

void write_turns(double (*write_step)(long step)) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long step = 0; next_turn(MPI_COMM_WORLD); step += burst) {
    double seconds = 0;
    for (long i = 0; i < burst; i++) seconds += write_step(step + i);
    end_turn(rank, seconds, burst);
  }
}
