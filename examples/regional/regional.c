/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A regional forecast that reads its boundaries, writes GRIB2 and can be gone on with: everything that a
 * model in C needs to say. Its computing stands in model.c. */
#include <stdio.h>
#include <tailrace.h>

#include "model.h"

#define OK(call)                            \
  do {                                      \
    if ((call) != TR_OK) return tr_error(); \
  } while (0) /* the same verdict on every rank */
#define ML "levels=hybrid:1-40 vertical=vcoord.txt "
#define NAME(s) s "_{base:%Y%m%d%H}+{lead:03h}.grib2", "base=2026-03-01T00:00Z "

static const char* state(tr_checkpoint* cp, const tr_layout* g) { /* one list, both directions */
  tr_checkpoint_item(cp, "step", &step, TR_I64, NULL);            /* errors inside a bracket ... */
  tr_checkpoint_item(cp, "t", t, TR_F32, g);
  tr_checkpoint_item(cp, "u", u, TR_F32, g);
  tr_checkpoint_item(cp, "v", v, TR_F32, g);
  tr_checkpoint_item(cp, "tb", tb, TR_F32, g); /* a run may be stopped between two boundaries */
  tr_checkpoint_item(cp, "ps", ps, TR_F32, g);
  tr_checkpoint_item(cp, "rain", rain, TR_F32, g);
  OK(tr_checkpoint_end(cp)); /* ... are kept for its end */
  return NULL;
}

static const char* forecast(void) {
  tr_layout* g;
  tr_stream *fc, *bd;
  tr_checkpoint* cp;
  tr_index lower[2], upper[2];
  int warm, stopping = 0;
  const char* why;
  OK(tr_layout_block(2, (tr_index[]){NY, NX}, (tr_index[]){HALO, HALO}, &g)); /* C order: y, x */
  OK(tr_layout_georeference(g, "sample=climate.grib2"));
  OK(tr_layout_bounds(g, 1, lower, upper));
  allocate_state(lower, upper);
  OK(tr_checkpoint_create("restart", "keep=2", &cp));
  OK(tr_checkpoint_begin(cp, TR_LOAD, &warm));
  if (warm) {
    if ((why = state(cp, g))) return why;
  } else {
    OK(tr_checkpoint_end(cp));
  }
  OK(tr_stream_create(NAME("fc") "packing=ccsds centre=98", &fc));
  OK(tr_stream_define(fc, "t", g, TR_F32, ML "accuracy=0.01"));
  OK(tr_stream_define(fc, "u", g, TR_F32, ML "accuracy=0.05"));
  OK(tr_stream_define(fc, "v", g, TR_F32, ML "accuracy=0.05"));
  OK(tr_stream_define(fc, "sp", g, TR_F32, "levels=surface accuracy=1"));
  OK(tr_stream_define(fc, "tp", g, TR_F32, "levels=surface accuracy=0.01 statistic=accum since=start"));
  OK(tr_stream_open(NAME("bd") "prefetch=2", &bd));
  OK(tr_stream_define(bd, "t", g, TR_F32, ML));
  while (step < last && !stopping) {
    if (every(3)) {
      tr_stream_begin(bd, step * dt);
      tr_stream_get(bd, "t", tb); /* my part and its halo; waits only if it is late */
      OK(tr_stream_end(bd));
      relax_to(tb);
    }
    advance();
    if (every(3)) {
      tr_stream_begin(fc, step * dt);
      tr_stream_put(fc, "t", t);
      tr_stream_put(fc, "u", u);
      tr_stream_put(fc, "v", v);
      tr_stream_put(fc, "sp", ps);
      tr_stream_put(fc, "tp", rain);
      OK(tr_stream_end(fc)); /* captured: t may change now */
    }
    stopping = tr_should_stop(); /* the same on every rank */
    if (every(6) || stopping) {
      tr_checkpoint_begin(cp, TR_SAVE, NULL);
      if ((why = state(cp, g))) return why;
    }
  }
  OK(tr_stream_close(&bd));
  OK(tr_stream_close(&fc));
  OK(tr_checkpoint_close(&cp)); /* durable, or why not */
  OK(tr_layout_free(&g));
  return NULL;
}

int main(int argc, char** argv) {
  MPI_Comm model;
  const char* why = NULL;
  MPI_Init(&argc, &argv);
  if (tr_init(MPI_COMM_WORLD, &model, NULL) != TR_OK)
    why = tr_error();
  else if (model != MPI_COMM_NULL)
    why = forecast();
  if (why) fprintf(stderr, "%s\n", why);
  if (tr_finalize() != TR_OK && !why) why = tr_error(); /* closes what is still open */
  MPI_Finalize();
  return why != NULL;
}
