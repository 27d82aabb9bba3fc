// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Shared files are not recorded: their tests run over the library.
#include "recorder.h"
#include "tailrace/shared.h"

int tr_shared_open(const char* path, const char* mode, const char* options, tr_shared** file) {
  (void)path, (void)mode, (void)options;
  *file = 0;
  return TR_ERR_UNSUPPORTED;
}
int tr_shared_open_comm_f(MPI_Fint comm, const char* path, const char* mode, const char* options,
                          tr_shared** file) {
  (void)comm;
  return tr_shared_open(path, mode, options, file);
}
int tr_shared_sync(tr_shared* file) {
  (void)file;
  return TR_ERR_UNSUPPORTED;
}
int tr_shared_flush(tr_shared* file) { return tr_shared_sync(file); }
int tr_shared_close(tr_shared** file) { return tr_shared_sync(*file); }
int tr_shared_seek(tr_shared* file, int64_t offset, int whence, int64_t* position) {
  (void)offset, (void)whence, (void)position;
  return tr_shared_sync(file);
}
int tr_shared_tell(const tr_shared* file, int64_t* position) {
  (void)file, (void)position;
  return TR_ERR_UNSUPPORTED;
}
int tr_shared_size(tr_shared* file, int64_t* size) { return tr_shared_tell(file, size); }
int tr_shared_resize(tr_shared* file, int64_t size) { return tr_shared_tell(file, &size); }
int tr_shared_read(tr_shared* file, void* data, int64_t bytes, int64_t* got) {
  (void)data, (void)bytes, (void)got;
  return tr_shared_sync(file);
}
int tr_shared_pread(tr_shared* file, void* data, int64_t bytes, int64_t offset, int64_t* got) {
  (void)offset;
  return tr_shared_read(file, data, bytes, got);
}
int tr_shared_write(tr_shared* file, const void* data, int64_t bytes) {
  (void)data, (void)bytes;
  return tr_shared_sync(file);
}
int tr_shared_pwrite(tr_shared* file, const void* data, int64_t bytes, int64_t offset) {
  (void)offset;
  return tr_shared_write(file, data, bytes);
}
int tr_shared_append(tr_shared* file, const void* data, int64_t bytes, int64_t* offset) {
  (void)offset;
  return tr_shared_write(file, data, bytes);
}
int tr_shared_readv(tr_shared* file, const tr_piece* pieces, int64_t count, int64_t* got) {
  (void)pieces;
  return tr_shared_read(file, 0, count, got);
}
int tr_shared_writev(tr_shared* file, const tr_piece* pieces, int64_t count) {
  return tr_shared_readv(file, pieces, count, 0);
}
