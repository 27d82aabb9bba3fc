// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cerrno>
#include <iterator>
#include <memory>

#include "api/c/arrays.hpp"
#include "api/c/files.hpp"
#include "api/c/state.hpp"
#include "ground/base/text.hpp"

namespace tailrace::capi {

namespace {

/// Returns OK if `size` times `items` are the bytes of the registered global array, otherwise an error that
/// says how they differ.
Status check_extent(const Distributed& array, std::size_t size, std::size_t items) {
  const Bytes element = size_of(static_cast<ElementType>(array.type));
  const Bytes whole = array.layout.placed.layout.elements() * element;
  Bytes named = 0;
  const bool overflows = __builtin_mul_overflow(static_cast<Bytes>(size), static_cast<Bytes>(items), &named);
  if (!overflows && named == whole) return {};
  return {Code::layout,
          cat("the array is a distributed one of ", whole, " bytes in all (",
              array.layout.placed.layout.elements(), " elements of ", element, "), the call names ", items,
              " items of ", size, " bytes: name the global array, or use tr_fwrite_arrays for sections")};
}

/// Returns how many bytes lie between the beginning of a rank's memory and the end of the last element that
/// it owns.
Bytes extent_of(const arrays::Array& array, int rank) {
  const auto plan = arrays::make_local_plan(array, rank);
  return plan.is_ok() ? (*plan)->mine.memory_extent().end : 0;
}

}  // namespace

std::optional<std::size_t> move_distributed(const char* call, const void* data, std::size_t size,
                                            std::size_t items, tr_file* handle, arrays::Direction direction,
                                            Failures failures) {
  const auto& known = state().distributed;
  if (known.empty()) return std::nullopt;
  const auto found = known.find(data);
  if (found == known.end()) return std::nullopt;
  const Distributed& array = *found->second;
  const tr_array moved = whole_array(data, array.type, &array.layout);
  const std::size_t elements =
      move_arrays(call, &moved, 1, handle, direction, check_extent(array, size, items), failures);
  const auto bytes = elements * static_cast<std::size_t>(size_of(static_cast<ElementType>(array.type)));
  return size == 0 ? 0 : bytes / size;
}

std::size_t move_registered(const char* call, const void* data, std::size_t size, std::size_t items,
                            tr_file* handle, arrays::Direction direction, Failures failures) {
  if (const auto moved = move_distributed(call, data, size, items, handle, direction, failures))
    return *moved;
  files::File* const file = file_of(handle, call);
  if (file == nullptr) return 0;
  const auto refuse = [](std::FILE*) {
    return refused(0, EINVAL, "`data` is no distributed array: tr_distribute registers arrays");
  };
  ask(*file, call, refuse, failures);
  return 0;
}

bool is_within_distributed(const void* data) {
  const auto& known = state().distributed;
  const auto behind = known.upper_bound(data);
  if (behind == known.begin()) return false;
  const auto& [begin, array] = *std::prev(behind);
  return data != begin && static_cast<const char*>(data) < static_cast<const char*>(begin) + array->bytes;
}

}  // namespace tailrace::capi

using namespace tailrace;
using namespace tailrace::capi;

void* tr_distribute(void* data, int type, const tr_layout* layout) {
  session::Session* const session = session_for("tr_distribute");
  if (session == nullptr) return nullptr;
  std::unique_ptr<char[]> own;
  Status mine = arrays::check(array_of(whole_array(data, type, layout)), session->rank());
  if (mine.is_ok() && data != nullptr && state().distributed.count(data) != 0)
    mine = Status(Code::state, "the array is registered already: tr_undistribute comes first");
  if (mine.is_ok() && data == nullptr) own = std::make_unique<char[]>(1);  // an address that nothing else has
  const std::string call =
      cat("tr_distribute(type ", type, ", layout ", layout == nullptr ? -1 : layout->placed.id, ")");
  const Status status = session->agree({mine.in(call).at({-1, -1, session->rank()}), call, {}}).status;
  if (!status.is_ok()) {
    fail_with_errno(status);
    return nullptr;
  }
  if (own) data = own.get();
  const Bytes bytes = extent_of(array_of(whole_array(data, type, layout)), session->rank());
  state().distributed[data] = std::make_unique<Distributed>(
      Distributed{type, *layout, std::move(own), state().arrays_registered++, bytes});
  return data;
}

int tr_undistribute(void* data) {
  session::Session* const session = session_for("tr_undistribute");
  if (session == nullptr) return TR_ERR_STATE;
  const auto found = state().distributed.find(data);
  const bool known = found != state().distributed.end();
  const Status mine =
      known ? Status() : Status(Code::argument, "the array is not registered (tr_distribute)");
  const std::string call = cat("tr_undistribute(array ", known ? found->second->number : -1, ")");
  const Status status = session->agree({mine.in(call).at({-1, -1, session->rank()}), call, {}}).status;
  if (known && status.is_ok()) state().distributed.erase(found);
  return result(status);
}

size_t tr_fwrite_distributed(const void* data, size_t size, size_t count, tr_file* file) {
  return move_registered("tr_fwrite_distributed", data, size, count, file, arrays::Direction::write);
}

size_t tr_fread_distributed(void* data, size_t size, size_t count, tr_file* file) {
  return move_registered("tr_fread_distributed", data, size, count, file, arrays::Direction::read);
}

void tr_fwrite_distributed_nr(const void* data, size_t size, size_t count, tr_file* file) {
  move_registered("tr_fwrite_distributed_nr", data, size, count, file, arrays::Direction::write,
                  Failures::kept);
}

void tr_fread_distributed_nr(void* data, size_t size, size_t count, tr_file* file) {
  move_registered("tr_fread_distributed_nr", data, size, count, file, arrays::Direction::read,
                  Failures::kept);
}
