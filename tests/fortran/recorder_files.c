// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Collective files are not recorded: their tests run over the library.
#include "api/c/fortran_files.hpp"

int tr_open_f(const char* path, const char* status, const char* action, const char* letters, int sequential,
              int swapped, int marker, int at_end, tr_file** file) {
  (void)path, (void)status, (void)action, (void)letters, (void)sequential, (void)swapped, (void)marker;
  (void)at_end;
  *file = 0;
  return TR_ERR_UNSUPPORTED;
}
int tr_move_f(tr_file* file, int reads, const tr_item_f* item) {
  (void)file, (void)reads, (void)item;
  return TR_ERR_UNSUPPORTED;
}
int tr_begin_f(tr_file* file, int reads) {
  (void)file, (void)reads;
  return TR_ERR_UNSUPPORTED;
}
int tr_close_f(tr_file* file, int removes) { return tr_begin_f(file, removes); }
int tr_end_f(tr_file* file) { return tr_begin_f(file, 0); }
int tr_backspace_f(tr_file* file) { return tr_begin_f(file, 0); }
int tr_rewind_f(tr_file* file) { return tr_begin_f(file, 0); }
int tr_endfile_f(tr_file* file) { return tr_begin_f(file, 0); }
int tr_flush_f(tr_file* file) { return tr_begin_f(file, 0); }
int tr_wait_f(tr_file* file) { return tr_begin_f(file, 0); }
int tr_in_record_f(tr_file* file) { return tr_begin_f(file, 0); }
int tr_is_local_f(tr_file* file) { return tr_begin_f(file, 0); }
int tr_seek_f(tr_file* file, int64_t position) { return tr_begin_f(file, position > 0); }
int64_t tr_position_f(tr_file* file) { return tr_begin_f(file, 0); }
int64_t tr_size_f(tr_file* file) { return tr_begin_f(file, 0); }
int tr_formats_f(void) { return 1; }
int64_t tr_bytes_f(const tr_item_f* item) { return item->element; }
int tr_gather_f(const tr_item_f* item, void* whole, int back) {
  (void)item, (void)whole, (void)back;
  return TR_ERR_UNSUPPORTED;
}
int tr_text_continue_f(const char* path, int empties, int* continues) {
  (void)path, (void)empties;
  *continues = 0;
  return TR_ERR_UNSUPPORTED;
}
int tr_text_overwrites_f(const char* path) {
  (void)path;
  return TR_ERR_UNSUPPORTED;
}
void tr_text_opened_f(const char* path, int (*stand)(void* handle, int cuts, int64_t* size), void* handle) {
  (void)path, (void)stand, (void)handle;
}
void tr_text_closed_f(void* handle) { (void)handle; }
int tr_text_lost_f(const char* path, int descriptor, int64_t reached, int64_t kept) {
  (void)path, (void)descriptor, (void)reached, (void)kept;
  return 0;
}
int tr_share_f(void* data, int64_t bytes) {
  (void)data, (void)bytes;
  return TR_ERR_UNSUPPORTED;
}
