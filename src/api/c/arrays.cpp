// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "api/c/arrays.hpp"

#include <cerrno>

#include "api/c/files.hpp"
#include "api/c/state.hpp"
#include "ground/base/text.hpp"

namespace tailrace::capi {

namespace {

std::vector<Index> list_of(const tr_index* values, std::size_t count, Index otherwise) {
  return values == nullptr ? std::vector<Index>(count, otherwise)
                           : std::vector<Index>(values, values + count);
}

std::optional<layout::Section> section_of(const tr_array& given, const layout::Layout& layout) {
  if (given.start == nullptr && given.stop == nullptr && given.stride == nullptr) return std::nullopt;
  const std::size_t dims = layout.shape().size();
  layout::Section section;
  section.start = list_of(given.start, dims, 0);
  section.stop = given.stop == nullptr ? layout.shape() : list_of(given.stop, dims, 0);
  section.stride = list_of(given.stride, dims, 1);
  return section;
}

}  // namespace

arrays::Array array_of(const tr_array& given) {
  arrays::Array array;
  array.data = static_cast<std::byte*>(given.data);
  array.type = static_cast<ElementType>(given.type);
  if (given.layout == nullptr) return array;
  const streams::PlacedLayout& placed = given.layout->placed;
  array.layout = &placed.layout;
  array.layout_number = placed.id;
  array.halo = &placed.halo;
  array.in_parts = placed.in_parts;
  array.section = section_of(given, placed.layout);
  return array;
}

std::size_t move_arrays(const char* call, const tr_array* arrays, int count, tr_file* handle,
                        arrays::Direction direction, const Status& mine, Failures failures) {
  files::File* const file = file_of(handle, call);
  if (file == nullptr) return 0;
  Status wrong = mine;
  if (wrong.is_ok() && count < 0) wrong = Status(Code::argument, cat("the number of arrays is ", count));
  if (wrong.is_ok() && count > 0 && arrays == nullptr)
    wrong = Status(Code::argument, "`arrays` is a null pointer", EFAULT);
  std::vector<arrays::Array> list;
  for (int i = 0; arrays != nullptr && i < count; ++i) list.push_back(array_of(arrays[i]));
  const files::ArrayOutcome outcome = file->move_arrays(call, list, direction, wrong);
  settle(*file, outcome.status, failures);
  return static_cast<std::size_t>(outcome.elements);
}

}  // namespace tailrace::capi

using namespace tailrace;
using namespace tailrace::capi;

size_t tr_fwrite_array(const void* data, int type, const tr_layout* layout, tr_file* file) {
  const tr_array array = whole_array(data, type, layout);
  return move_arrays("tr_fwrite_array", &array, 1, file, arrays::Direction::write);
}

size_t tr_fread_array(void* data, int type, const tr_layout* layout, tr_file* file) {
  const tr_array array = whole_array(data, type, layout);
  return move_arrays("tr_fread_array", &array, 1, file, arrays::Direction::read);
}

size_t tr_fwrite_arrays(const tr_array* arrays, int count, tr_file* file) {
  return move_arrays("tr_fwrite_arrays", arrays, count, file, arrays::Direction::write);
}

size_t tr_fread_arrays(const tr_array* arrays, int count, tr_file* file) {
  return move_arrays("tr_fread_arrays", arrays, count, file, arrays::Direction::read);
}

int tr_fwait(tr_file* handle) {
  files::File* const file = file_of(handle, "tr_fwait");
  if (file == nullptr) return EOF;
  const Status status = file->wait();
  if (status.is_ok()) return 0;
  fail_with_errno(status);
  return EOF;
}
