// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Global arrays are not recorded: their tests run over the library.
#include "recorder.h"
#include "tailrace/global.h"

int tr_global_create(int type, tr_index count, const char* options, tr_global** global) {
  (void)type, (void)count, (void)options;
  *global = 0;
  return TR_ERR_UNSUPPORTED;
}
int tr_global_create_comm_f(MPI_Fint comm, int type, tr_index count, const char* options,
                            tr_global** global) {
  (void)comm;
  return tr_global_create(type, count, options, global);
}
int tr_global_sync(tr_global* global) {
  (void)global;
  return TR_ERR_UNSUPPORTED;
}
int tr_global_free(tr_global** global) { return tr_global_sync(*global); }
int tr_global_count(const tr_global* global, tr_index* count) {
  (void)global, (void)count;
  return TR_ERR_UNSUPPORTED;
}
int tr_global_resize(tr_global* global, tr_index count) { return tr_global_count(global, &count); }
int tr_global_gather(tr_global* global, tr_index n, const tr_index* indices, void* values) {
  (void)n, (void)indices, (void)values;
  return tr_global_sync(global);
}
int tr_global_scatter(tr_global* global, tr_index n, const tr_index* indices, const void* values) {
  (void)n, (void)indices, (void)values;
  return tr_global_sync(global);
}
int tr_global_accumulate(tr_global* global, tr_index n, const tr_index* indices, const void* values,
                         int lock) {
  (void)lock;
  return tr_global_scatter(global, n, indices, values);
}
int tr_global_read(tr_global* global, tr_index begin, tr_index n, void* values) {
  (void)begin, (void)n, (void)values;
  return tr_global_sync(global);
}
int tr_global_write(tr_global* global, tr_index begin, tr_index n, const void* values) {
  (void)begin, (void)n, (void)values;
  return tr_global_sync(global);
}
int tr_global_local(tr_global* global, tr_index part, void** values, tr_index* first, tr_index* count) {
  (void)part, (void)values, (void)first, (void)count;
  return tr_global_sync(global);
}
