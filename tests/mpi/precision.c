/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes steps of a smooth field with noise and of one without information, with accuracy=auto.
 *   precision PATTERN OPTIONS FIRST END FIELD_OPTIONS */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "tailrace.h"

enum { NY = 60, NX = 80 };

static int failures = 0;

static void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  tr_log(tr_error());
}

/* 12 bits that know nothing of their neighbours, from 0 to 1. */
static double noise_of(tr_index place, long step) {
  uint32_t hash = (uint32_t)(place * 2654435761u + (uint32_t)step * 40503u);
  hash ^= hash >> 15;
  hash *= 2246822519u;
  hash ^= hash >> 13;
  return (double)(hash >> 20) / 4096;
}

static void write_steps(char** argv) {
  static const tr_index shape[2] = {NY, NX};
  static float smooth[NY * NX], noise[NY * NX];
  tr_layout* map = NULL;
  tr_stream* stream = NULL;
  tr_index lower[2], upper[2];
  expect(tr_layout_block(2, shape, NULL, &map));
  expect(tr_layout_georeference(map,
                                "keys='gridType=regular_ll, latitudeOfFirstGridPointInDegrees=59, "
                                "latitudeOfLastGridPointInDegrees=0, longitudeOfFirstGridPointInDegrees=0, "
                                "longitudeOfLastGridPointInDegrees=79'"));
  expect(tr_layout_bounds(map, 0, lower, upper));
  expect(tr_stream_create(argv[1], argv[2], &stream));
  if (stream != NULL) {
    expect(tr_stream_define(stream, "t", map, TR_F32, argv[5]));
    expect(tr_stream_define(stream, "u", map, TR_F32, argv[5]));
  }
  for (long step = atol(argv[3]); step < atol(argv[4]) && failures == 0; ++step) {
    tr_stream_begin(stream, step * 3600);
    tr_index i = 0;
    for (tr_index y = lower[0]; y < upper[0]; ++y) {
      for (tr_index x = lower[1]; x < upper[1]; ++x, ++i) {
        const tr_index place = y * NX + x;
        const double angle = 0.004 * (double)x + 0.1 * (double)y + (double)step;
        smooth[i] = (float)(280 + 10 * sin(angle) + 0.5 * noise_of(place, step));
        noise[i] = (float)(1 + noise_of(place, step + 77));
      }
    }
    tr_stream_put(stream, "t", smooth);
    tr_stream_put(stream, "u", noise);
    expect(tr_stream_end(stream));
  }
  expect(tr_stream_close(&stream));
  expect(tr_layout_free(&map));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  expect(tr_init(MPI_COMM_WORLD, &compute, NULL));
  if (argc == 6 && compute != MPI_COMM_NULL) write_steps(argv);
  expect(tr_finalize());
  MPI_Finalize();
  return failures > 0;
}
