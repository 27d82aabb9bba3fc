/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Checkpoints: named data that survives the run, in two or more copies. Included by tailrace.h.
 * docs/checkpoints.md is the guide; docs/formats/checkpoint.md describes the files.
 *
 * The same routine saves and loads:
 *
 *   tr_checkpoint_begin(cp, TR_SAVE, NULL);
 *   tr_checkpoint_item(cp, "step", &step, TR_I64, NULL);
 *   tr_checkpoint_item(cp, "t", t, TR_F64, layout);
 *   tr_checkpoint_end(cp);
 *
 * The calls from begin to end are a bracket. A save is *captured* when tr_checkpoint_end returns: the data
 * may change. It is *committed* once it is on storage on every rank: from then on it can be loaded, whatever
 * happens.
 *
 * A save also records where the session's streams and files that are open for writing stand. It is committed
 * only once they are durable up to that place. A stream or file that is opened under its name after the
 * checkpoint was loaded goes on from there. */
#ifndef TAILRACE_CHECKPOINTS_H
#define TAILRACE_CHECKPOINTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_checkpoint tr_checkpoint;

/* The direction of a bracket. */
enum { TR_SAVE = 1, TR_LOAD = 2 };

/* The state of the last save, as tr_checkpoint_status returns it. */
enum {
  TR_SAVE_COMMITTED = 0, /* on storage */
  TR_SAVE_NONE = 1,      /* nothing was saved yet */
  TR_SAVE_CAPTURED = 2,  /* being written: the data may change */
  TR_SAVE_WRITTEN = 3,   /* this rank's part is on storage, other parts may not be */
  TR_SAVE_FAILED = 4,    /* tr_error() says why */
  /* busy=drop: the save before was still being written; busy=replace: a newer save took its place. It is the
   * state until the next save or load, or until the save before turns out to have failed. */
  TR_SAVE_DROPPED = 5
};

/* Collective. Opens a checkpoint. Blocks while the first rank looks for copies. `name` is a path. The copies
 * are the files NAME.0, NAME.1, ... Options:
 *
 *   keep=N  number of copies, 2 or more (default 2)
 *   keep_every=N  each N-th generation stays forever, as NAME.gGENERATION (default 0: none)
 *   mode=parallel|local  one file, or a file for each rank
 *   capture=copy|copy_on_write  copy: an asynchronous save takes the data before tr_checkpoint_end returns.
 *     copy_on_write: it takes the data while the program goes on. The program may then write to the arrays,
 *     but must not free them before the save is written
 *   async=on|off  tr_checkpoint_end returns once everything is captured (on, default), or committed (off)
 *   busy=wait|drop|replace  what happens if a save begins while the last one is still being written: the new
 *     save waits for it, is dropped, or takes its place
 *   overwritten=refuse|journal  what happens if the program overwrites bytes of an open file. refuse: the
 *     next save is refused. journal: the first write over bytes that a save has recorded waits until the
 *     bytes are kept in NAME.u...
 *   compress=none|lz4|zstd|zstd:LEVEL  levels -7 to 19
 *
 * Unless async=off, a thread begins to allocate memory for the first save: an array of 8-byte elements for
 * each layout. Later layouts add theirs. Errors: TR_ERR_STATE if another program has the checkpoint open,
 * TR_ERR_SETTINGS, TR_ERR_IO. */
TR_API int tr_checkpoint_create(const char* name, const char* options, tr_checkpoint** checkpoint);

/* Collective; every rank names the same file. Has all later saves of the checkpoint cover a file that the
 * program writes without the library: a log, or a file of another library. The file may only grow. The first
 * rank records in tr_checkpoint_end how many bytes the system has of it then: the first rank closes or
 * flushes it before that call, other ranks before tr_checkpoint_begin. The save counts as committed only once
 * they are on storage. A load cuts the file back to them, and later saves cover it again: load before you
 * open it. A file that is not there has 0 bytes. TR_ERR_ARGUMENT for a name that is no file's. A load returns
 * TR_ERR_CORRUPT if the file has fewer bytes, or if its first or last recorded bytes have changed. */
TR_API int tr_checkpoint_covers(tr_checkpoint* checkpoint, const char* path);

/* Collective. Begins a bracket.
 *
 * TR_SAVE: with busy=wait it blocks until the save before has ended. If that save failed, its error is
 * returned, but the new save has begun all the same.
 *
 * TR_LOAD: blocks while the copies are looked at. *found (or NULL) becomes 1 if a copy is complete. If
 * nothing was saved yet, *found is 0 and the result TR_OK. If no copy is complete, *found is 0 and the result
 * TR_ERR_CORRUPT, or TR_ERR_IO if storage failed to deliver a copy that may be complete. In all three cases
 * end the bracket without items. */
TR_API int tr_checkpoint_begin(tr_checkpoint* checkpoint, int direction, int* found);

/* Local. Names an item of the bracket. With layout NULL it is a scalar: the first rank's value is saved, and
 * every rank gets it. Otherwise it is the caller's part of a distributed array, allocated as the layout says,
 * with its halo, which is neither saved nor loaded. tr_checkpoint_end reads or fills the data, which must
 * stay there until it returns.
 *
 * All ranks must name the same items in the same order. On loading the order may differ from that of the
 * save, and every item of the checkpoint must be named. Names that begin with "tailrace:" belong to the
 * library. It saves and loads these items itself: values that streams with interval= have accumulated.
 *
 * Errors are kept for tr_checkpoint_end. Outside of a bracket they are kept for the next tr_checkpoint_begin,
 * which then returns TR_ERR_STATE on every rank and begins nothing. */
TR_API void tr_checkpoint_item(tr_checkpoint* checkpoint, const char* name, void* data, int type,
                               const tr_layout* layout);
/* Local. Names a section of an array as an item. On loading the section must have the shape of the saved
 * one. */
TR_API void tr_checkpoint_item_section(tr_checkpoint* checkpoint, const char* name, const tr_array* array);
/* Local. Names an array whose shape the caller knows as an item. `extents`, in C order, end with the owned
 * extents or owned + 2*halo. Extents before these are levels of a field, all of which are saved. `strides`
 * are in bytes; NULL for a contiguous array. A layout of NULL means a scalar. */
TR_API void tr_checkpoint_item_shaped(tr_checkpoint* checkpoint, const char* name, void* data, int type,
                                      const tr_layout* layout, int ndims, const tr_index* extents,
                                      const tr_index* strides);

/* Collective. Ends the bracket.
 *
 * Saving: blocks until the items are captured (async=off: committed) and the system has everything that open
 * files had to write. Returns TR_ERR_STATE and saves nothing in two cases: overwritten=refuse, and an open
 * file was overwritten before its end; or a file with the name of a copy was not written by a checkpoint.
 * A save behind a failed step of a stream fails, and names the step, until a call has told the program of a
 * failed step of the stream and the program has begun another step or save.
 *
 * Loading: fills the items from the newest copy that is complete on all ranks. If a copy turns out to be
 * incomplete, the copy before it is taken, and a warning says why. TR_ERR_ARGUMENT, and nothing is filled, if
 * items are missing, are not named by the program, or have another type or shape. A bracket that found
 * nothing and names no items ends with TR_OK. */
TR_API int tr_checkpoint_end(tr_checkpoint* checkpoint);

/* Collective. A commit without data, for a program that has a restart file of its own: a save whose only item
 * is `step`. It blocks and fails as tr_checkpoint_begin and tr_checkpoint_end do. All outputs of the run,
 * streams, files and covered files, then count as one generation. `restart` is the program's restart file of
 * this step, which the program has written and closed before, or NULL or ""; the first rank's counts. The
 * commit counts only once this file is on storage, too, and the generation is loaded only if it still has the
 * bytes: give each step's file its own name, and remove or replace the file of an older step only once the
 * commit behind it is committed and keep= generations have passed. TR_ERR_ARGUMENT if `restart` is no file.
 */
TR_API int tr_checkpoint_commit(tr_checkpoint* checkpoint, int64_t step, const char* restart);

/* Collective. Loads what tr_checkpoint_commit has committed: *step is that of the newest generation, and the
 * outputs go on from there. The program then reads its own restart file of this step. *found (or NULL) and
 * the errors are as in tr_checkpoint_begin and tr_checkpoint_end; without a generation *step stays. */
TR_API int tr_checkpoint_resume(tr_checkpoint* checkpoint, int64_t* step, int* found);

/* Collective. Blocks until the last save is committed or has failed. Returns its verdict, the same on every
 * rank. A failure that a call has returned is not returned again. */
TR_API int tr_checkpoint_wait(tr_checkpoint* checkpoint);

/* Local. Returns the state of the last save (TR_SAVE_COMMITTED ...), as far as this rank knows. */
TR_API int tr_checkpoint_status(tr_checkpoint* checkpoint);

/* Local. Returns the generation that was committed or loaded last, or 0 if there is none. Generations count
 * the saves of a checkpoint over all runs. */
TR_API int64_t tr_checkpoint_generation(tr_checkpoint* checkpoint);

/* Collective. Waits as tr_checkpoint_wait, and closes the checkpoint. *checkpoint becomes NULL, whatever is
 * returned. An open bracket ends without saving. */
TR_API int tr_checkpoint_close(tr_checkpoint** checkpoint);

/* The older form: registered variables and explicit file names. */

typedef struct tr_variable {
  const char* name;
  void* data;
  int type;                /* TR_F64 ... */
  const tr_layout* layout; /* NULL: a scalar */
} tr_variable;

/* Collective. Creates a checkpoint of these variables. Its copies are the files of these names, two or more;
 * with `file_count` 0 they are `name`.0 and `name`.1. The table of variables is copied; the layouts and the
 * data must live as long as the checkpoint. `mode` has letters as in tr_fopen: "p" (or "", NULL) for one
 * file, "l" for a file for each rank. */
TR_API int tr_checkpoint_create_registered(const char* name, const tr_variable* variables, int count,
                                           const char* const* files, int file_count, const char* mode,
                                           tr_checkpoint** checkpoint);
/* Collective. Saves the registered variables: begin, item for each, end. If `async` is not 0 it returns once
 * they are captured, otherwise once they are committed. */
TR_API int tr_checkpoint_save(tr_checkpoint* checkpoint, int async);
/* Collective. Loads the registered variables. *found (or NULL) is as in tr_checkpoint_begin. */
TR_API int tr_checkpoint_load(tr_checkpoint* checkpoint, int* found);

/* When to save, when to stop. */

/* Local. Returns the seconds between saves with which the program loses least time. `save` is the cost of a
 * save to the program, and `failures` the mean time between failures, both in seconds. Returns 0 if a value
 * is not positive. Daly's higher-order estimate (J. T. Daly, Future Generation Computer Systems 22, 2006, eq.
 * 37). */
TR_API double tr_checkpoint_interval(double save, double failures);

#ifdef __cplusplus
}
#endif
#endif
