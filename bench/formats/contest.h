/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* All contenders of `./dev bench formats` share these options, values and turns. */
#ifndef TAILRACE_BENCH_CONTEST_H
#define TAILRACE_BENCH_CONTEST_H

#include <mpi.h>

struct options {
  const char *format, *name;
  long size, levels, steps;
  const char* compress;  /* what ours is told; empty for formats that compress nothing */
  long deflate;          /* level of the peers of NetCDF-4 */
  const char* buffering; /* romio_cb_write: "enable", "disable" or "automatic" */
  int turns;             /* wait for a line of standard input before each turn */
  int values;            /* also write NAME.values, from which a peer without MPI reads its field */
};
extern struct options options;

enum { burst = 4 }; /* steps of a turn, which all contenders write alike */

/* Reads `--format F --name PATH --size N --levels N --steps N --compress W --deflate N
 * --buffering W --turns 1 --values 1`. */
void parse_options(int argc, char** argv);

/* Prints what went wrong and ends the job unless `good`. */
void must(int good, const char* what, const char* why);

/* Fills (level, row, column) with a smooth field of `options.size` points along each side, of which the last
 * 9 or 10 bits of each value are noise, as in a model. Equal points have equal values in every contender. */
void make_values(float* data, const long lower[2], const long upper[2]);

/* Returns the hints for MPI-IO: no data sieving, since what ranks write lies in long pieces, and collective
 * buffering as the options say. */
MPI_Info hints(void);

/* Binds each process of MPI_COMM_WORLD to a core of its own if there are as many. */
void bind_to_cores(void);

/* Returns the seconds since `begin`, the longest of all ranks. Collective. */
double longest_since(double begin, MPI_Comm comm);

/* Waits for a line and returns its first character on every rank, or 0 after the last line. Collective. Ranks
 * sleep meanwhile, since another contender has its turn. */
char next_turn(MPI_Comm comm);

/* Writes the steps of each turn, one after another, until the last line. `write_step` returns the seconds of
 * one. Collective over MPI_COMM_WORLD. */
void write_turns(double (*write_step)(long step));

/* Prints on rank 0 how long a turn took and how many bytes of values it wrote. */
void end_turn(int rank, double seconds, long steps);

#endif
