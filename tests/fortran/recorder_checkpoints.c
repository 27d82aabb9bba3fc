// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The recorder's functions for checkpoints. They record the last call as one line of text, and keep a
// checkpoint in memory. As in the library, only tr_checkpoint_end reads or fills the items, so that a test
// finds out whether the face has passed the program's own memory. With RECORDER_REFUSE=tr_checkpoint_end this
// function fails.
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

enum { most_items = 16, most_bytes = 4096 };

struct item {
  char name[32];
  char* data;
  int type, ndims;
  tr_index extents[8], strides[8];
};
struct tr_checkpoint {
  int direction, used;
  struct item items[most_items];
};
struct saved {
  char name[32];
  int64_t bytes;
  char values[most_bytes];
};

// Handles are never released, so they need not be allocated.
static struct tr_checkpoint checkpoints[16], registered;
static unsigned made_checkpoints;
static struct saved store[most_items];
static int stored;
static int64_t committed; /* the step of tr_checkpoint_commit */

static int make(tr_checkpoint** checkpoint) {
  *checkpoint = &checkpoints[made_checkpoints++ % 16];
  memset(*checkpoint, 0, sizeof **checkpoint);
  return TR_OK;
}
int tr_checkpoint_create(const char* name, const char* options, tr_checkpoint** checkpoint) {
  begin("tr_checkpoint_create");
  say(" [%s] [%s]", name, options);
  const int code = verdict("tr_checkpoint_create");
  return code == TR_OK ? make(checkpoint) : code;
}
int tr_checkpoint_covers(tr_checkpoint* checkpoint, const char* path) {
  (void)checkpoint;
  begin("tr_checkpoint_covers");
  say(" [%s]", path);
  return verdict("tr_checkpoint_covers");
}
int tr_checkpoint_commit(tr_checkpoint* checkpoint, int64_t step, const char* restart) {
  (void)checkpoint;
  begin("tr_checkpoint_commit");
  say(" step=%lld [%s]", (long long)step, restart);
  committed = step;
  return verdict("tr_checkpoint_commit");
}
int tr_checkpoint_resume(tr_checkpoint* checkpoint, int64_t* step, int* found) {
  (void)checkpoint;
  begin("tr_checkpoint_resume");
  if (committed) *step = committed;
  *found = committed != 0;
  return verdict("tr_checkpoint_resume");
}
int tr_checkpoint_begin(tr_checkpoint* checkpoint, int direction, int* found) {
  begin("tr_checkpoint_begin");
  say(" direction=%d", direction);
  if (!checkpoint) return refuse(TR_ERR_ARGUMENT, "tr_checkpoint_begin: no checkpoint");
  checkpoint->direction = direction;
  checkpoint->used = 0;
  if (found) *found = direction == TR_LOAD && stored > 0;
  return verdict("tr_checkpoint_begin");
}

static void say_item(const char* name, int type) { say(" [%s] type=%d", name, type); }
static struct item* add(tr_checkpoint* checkpoint, const char* name, void* data, int type) {
  struct item* made = &checkpoint->items[checkpoint->used++];
  memset(made, 0, sizeof *made);
  strncpy(made->name, name, sizeof made->name - 1);
  made->data = data;
  made->type = type;
  return made;
}
// Sets the extents and strides of an item from its layout.
static void shape(struct item* made, const tr_layout* layout) {
  made->ndims = layout->ndims;
  tr_index stride = element_bytes[made->type];
  for (int d = layout->ndims - 1; d >= 0; --d) {
    made->extents[d] = layout->shape[d] + 2 * layout->halo[d];
    made->strides[d] = stride;
    stride *= made->extents[d];
  }
}
void tr_checkpoint_item(tr_checkpoint* checkpoint, const char* name, void* data, int type,
                        const tr_layout* layout) {
  begin("tr_checkpoint_item");
  say_item(name, type);
  say(layout ? " layout" : " scalar");
  struct item* made = add(checkpoint, name, data, type);
  if (layout) shape(made, layout);
}
void tr_checkpoint_item_section(tr_checkpoint* checkpoint, const char* name, const tr_array* array) {
  begin("tr_checkpoint_item_section");
  say_item(name, array->type);
  say_indices("start", array->layout->ndims, array->start);
  say_indices("stop", array->layout->ndims, array->stop);
  say_indices("stride", array->layout->ndims, array->stride);
  shape(add(checkpoint, name, array->data, array->type), array->layout);
}
void tr_checkpoint_item_shaped(tr_checkpoint* checkpoint, const char* name, void* data, int type,
                               const tr_layout* layout, int ndims, const tr_index* extents,
                               const tr_index* strides) {
  begin("tr_checkpoint_item_shaped");
  say_item(name, type);
  say(layout ? " layout" : " scalar");
  say_indices("extents", ndims, extents);
  say_indices("strides", ndims, strides);
  if (ndims < 0) type = 0;
  struct item* made = add(checkpoint, name, data, type);
  tr_index stride = element_bytes[type];
  for (int d = ndims - 1; d >= 0; --d) {
    made->extents[d] = extents[d];
    made->strides[d] = strides ? strides[d] : stride;
    stride *= extents[d];
  }
  made->ndims = ndims;
}

// Copies elements in C order to `values`, or with `back` from there. Returns the place of the next one.
static char* copy(const struct item* of, int d, char* at, char* values, int back) {
  const size_t bytes = (size_t)element_bytes[of->type];
  if (d >= of->ndims) {
    memcpy(back ? at : values, back ? values : at, bytes);
    return values + bytes;
  }
  for (tr_index i = 0; i < of->extents[d]; ++i)
    values = copy(of, d + 1, at + i * of->strides[d], values, back);
  return values;
}
static int load(const struct item* of) {
  for (int i = 0; i < stored; ++i) {
    if (strcmp(store[i].name, of->name) != 0) continue;
    if (copy(of, 0, of->data, store[i].values, 1) != store[i].values + store[i].bytes) break;
    return TR_OK;
  }
  return refuse(TR_ERR_ARGUMENT, "tr_checkpoint_end: no such item, or of another size");
}
int tr_checkpoint_end(tr_checkpoint* checkpoint) {
  begin("tr_checkpoint_end");
  if (!checkpoint) return refuse(TR_ERR_ARGUMENT, "tr_checkpoint_end: no checkpoint");
  int code = verdict("tr_checkpoint_end");
  if (checkpoint->direction == TR_SAVE) stored = 0;
  for (int i = 0; i < checkpoint->used && code == TR_OK; ++i) {
    const struct item* of = &checkpoint->items[i];
    if (of->type < 1 || of->type > 9) {
      code = refuse(TR_ERR_ARGUMENT, "tr_checkpoint_end: an item of no known type");
    } else if (checkpoint->direction == TR_LOAD) {
      code = load(of);
    } else {
      struct saved* to = &store[stored++];
      strcpy(to->name, of->name);
      to->bytes = copy(of, 0, of->data, to->values, 0) - to->values;
    }
  }
  return code;
}
int tr_checkpoint_wait(tr_checkpoint* checkpoint) {
  (void)checkpoint;
  begin("tr_checkpoint_wait");
  return verdict("tr_checkpoint_wait");
}
int tr_checkpoint_status(tr_checkpoint* checkpoint) {
  return !checkpoint ? TR_SAVE_NONE : stored ? TR_SAVE_CAPTURED : TR_SAVE_NONE;
}
int64_t tr_checkpoint_generation(tr_checkpoint* checkpoint) { return checkpoint ? 5000000000 : 0; }
int tr_checkpoint_close(tr_checkpoint** checkpoint) {
  begin("tr_checkpoint_close");
  *checkpoint = NULL;
  return verdict("tr_checkpoint_close");
}

int tr_checkpoint_create_registered(const char* name, const tr_variable* variables, int count,
                                    const char* const* files, int file_count, const char* mode,
                                    tr_checkpoint** checkpoint) {
  begin("tr_checkpoint_create_registered");
  say(" [%s]", name);
  memset(&registered, 0, sizeof registered);
  int known = 1;
  for (int i = 0; i < count; ++i) {
    const tr_variable* v = &variables[i];
    say_item(v->name, v->type);
    say(v->layout ? " layout" : " scalar");
    if (v->type < 1) known = 0;
    struct item* made = add(&registered, v->name, v->data, v->type);
    if (v->layout && known) shape(made, v->layout);
  }
  say(" files");
  for (int i = 0; i < file_count; ++i) say(" [%s]", files[i]);
  say(" mode [%s]", mode);
  if (!known) return refuse(TR_ERR_ARGUMENT, "tr_checkpoint_create_registered: a variable of no known type");
  return make(checkpoint);
}
int tr_checkpoint_save(tr_checkpoint* checkpoint, int async) {
  *checkpoint = registered;
  checkpoint->direction = TR_SAVE;
  const int code = tr_checkpoint_end(checkpoint);
  begin("tr_checkpoint_save");
  say(" async=%d", async);
  return code;
}
int tr_checkpoint_load(tr_checkpoint* checkpoint, int* found) {
  *checkpoint = registered;
  checkpoint->direction = TR_LOAD;
  if (found) *found = stored > 0;
  const int code = stored > 0 ? tr_checkpoint_end(checkpoint) : TR_OK;
  begin("tr_checkpoint_load");
  return code;
}
double tr_checkpoint_interval(double save, double failures) { return 10 * save + failures; }
