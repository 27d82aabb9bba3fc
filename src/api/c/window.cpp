// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Out-of-core arrays.
#include <algorithm>

#include "api/c/arguments.hpp"
#include "api/c/state.hpp"
#include "faces/outofcore/options.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using outofcore::OutOfCore;

namespace {

/// The arguments of tr_window_open, as the caller passed them.
struct Arguments {
  const char* path;
  const char* mode;
  int type;
  int ndims;
  const tr_index* shape;
  const tr_index* portion;
  const tr_index* halo;
  int depth;
  const char* options;

  [[nodiscard]] std::string text() const;
};

/// Returns the values as a list. Returns an empty list if arrays cannot have `count` dimensions;
/// check_arguments() then returns the error.
std::vector<Index> checked_list_of(const tr_index* values, int count) {
  return count < 1 || count > most_dimensions ? std::vector<Index>() : list_of(values, count);
}

/// Returns a text that is the same on every rank that passes the same arguments.
std::string Arguments::text() const {
  const auto list = [this](const tr_index* values) {
    return values == nullptr ? "none" : layout::extents(checked_list_of(values, ndims));
  };
  return cat("tr_window_open(", quoted(path), ", ", quoted(mode), ", ", name_of(ElementType{type}), " ",
             list(shape), ", portions of ", list(portion), ", halo ", list(halo), ", depth ", depth, ", ",
             quoted(options), ")");
}

Result<OutOfCore::Access> read_mode(const std::string& mode) {
  if (mode == "r") return OutOfCore::Access::read;
  if (mode == "r+") return OutOfCore::Access::update;
  if (mode == "w") return OutOfCore::Access::write;
  return Status(Code::argument, cat("the mode is one of \"r\", \"r+\" and \"w\", not \"", mode, "\""));
}

Status check_arguments(const Arguments& given, tr_window** window) {
  const auto null = [](const char* name) {
    return Status(Code::argument, cat("`", name, "` is a null pointer"));
  };
  if (window == nullptr) return null("window");
  if (given.path == nullptr) return null("path");
  if (given.mode == nullptr) return null("mode");
  if (given.shape == nullptr) return null("shape");
  if (given.portion == nullptr) return null("portion");
  if (given.ndims < 1 || given.ndims > most_dimensions) {
    return {Code::argument,
            cat("ndims is ", given.ndims, "; arrays have 1 to ", most_dimensions, " dimensions")};
  }
  if (size_of(ElementType{given.type}) == 0 || is_text(ElementType{given.type}))
    return {Code::argument, cat("element type ", given.type, " is none of TR_I8 .. TR_U64")};
  if (given.depth < 0) return {Code::argument, cat("depth is ", given.depth, ", below 0")};
  return {};
}

Status check_bytes(const OutOfCore::Definition& what) {
  Bytes end = 0;
  const Index elements = layout::product(what.tiling.shape());
  if (!__builtin_mul_overflow(elements, what.element(), &end) &&
      !__builtin_add_overflow(end, what.offset, &end))
    return {};
  return {Code::layout, "the array ends behind the last byte that a file can have"};
}

Result<OutOfCore::Definition> define(const Arguments& given, tr_window** window) {
  TR_TRY(check_arguments(given, window));
  const Result<OutOfCore::Access> access = read_mode(given.mode);
  TR_TRY(access.status());
  const std::vector<Index> halo = checked_list_of(given.halo, given.ndims);
  const bool has_halo = std::ranges::any_of(halo, [](Index width) { return width > 0; });
  if (*access == OutOfCore::Access::write && has_halo) {
    return Status(Code::argument, "nothing is read in mode \"w\", so there is no halo: pass NULL");
  }
  Result<outofcore::Tiling> tiling = outofcore::Tiling::make(
      checked_list_of(given.shape, given.ndims), checked_list_of(given.portion, given.ndims), halo);
  TR_TRY(tiling.status());
  Bytes offset = outofcore::default_offset;
  TR_TRY(outofcore::window_options.read(text_of(given.options), offset));
  OutOfCore::Definition what{given.path,         *access, ElementType{given.type},
                             std::move(*tiling), offset,  std::max(given.depth, 1)};
  TR_TRY(check_bytes(what));
  return what;
}

/// Returns the array behind a handle, or nullptr with tr_error().
OutOfCore* array_of(const tr_window* window, const char* call) {
  const tr_window* const found = find_open(state().windows, window, call, "window");
  return found == nullptr ? nullptr : found->array.get();
}

int fail_in(const char* call, const OutOfCore& array, const Status& status) {
  return fail(status.in(cat(call, "(", array.definition().path, ")")));
}

int no_portion(const char* call, const OutOfCore& array) {
  return fail_in(call, array, {Code::state, "there is no current portion: tr_window_next comes first"});
}

void tell(const layout::Box& box, tr_index* lower, tr_index* upper) {
  if (lower != nullptr) std::copy(box.lower.begin(), box.lower.end(), lower);
  if (upper != nullptr) std::copy(box.upper.begin(), box.upper.end(), upper);
}

/// Collective. Closes the window. The handle is gone, whatever is returned.
Status close_window(tr_window* window) { return take_off(state().windows, window)->array->close(); }

}  // namespace

namespace tailrace::capi {

Status end_windows() { return close_all(state().windows, close_window); }

}  // namespace tailrace::capi

int tr_window_open(const char* path, const char* mode, int type, int ndims, const tr_index* shape,
                   const tr_index* portion, const tr_index* halo, int depth, const char* options,
                   tr_window** window) {
  if (session_for("tr_window_open") == nullptr) return TR_ERR_STATE;
  const Result<std::shared_ptr<files::Group>> group =
      state().groups->of(state().bootstrap->compute(), "tr_window_open");
  if (!group.is_ok()) return fail(group.status().in("tr_window_open"));
  const Arguments given{path, mode, type, ndims, shape, portion, halo, depth, options};
  Result<std::unique_ptr<OutOfCore>> array =
      OutOfCore::open(*group, given.text(), guarded([&] { return define(given, window); }));
  if (!array.is_ok()) {
    if (window != nullptr) *window = nullptr;
    return fail(array.status());
  }
  *window = new tr_window{std::move(*array)};
  state().windows.push_back(*window);
  return TR_OK;
}

int tr_window_next(tr_window* window, void** data, tr_index* lower, tr_index* upper) {
  if (data != nullptr) *data = nullptr;
  OutOfCore* const array = array_of(window, "tr_window_next");
  if (array == nullptr) return TR_ERR_STATE;
  if (data == nullptr) return fail_in("tr_window_next", *array, {Code::argument, "`data` is a null pointer"});
  const Result<std::byte*> memory = array->next();
  if (!memory.is_ok()) return fail_in("tr_window_next", *array, memory.status());
  *data = *memory;
  if (*data != nullptr) tell(array->definition().tiling.own(*array->current()), lower, upper);
  return TR_OK;
}

int tr_window_bounds(const tr_window* window, int with_halo, tr_index* lower, tr_index* upper) {
  const OutOfCore* const array = array_of(window, "tr_window_bounds");
  if (array == nullptr) return TR_ERR_STATE;
  const std::optional<Index> number = array->current();
  if (!number) return no_portion("tr_window_bounds", *array);
  const outofcore::Tiling& tiling = array->definition().tiling;
  tell(with_halo != 0 ? tiling.held(*number) : tiling.own(*number), lower, upper);
  return TR_OK;
}

int tr_window_dirty(tr_window* window) {
  OutOfCore* const array = array_of(window, "tr_window_dirty");
  if (array == nullptr) return TR_ERR_STATE;
  if (!array->current()) return no_portion("tr_window_dirty", *array);
  const Status status = array->mark_dirty();
  return status.is_ok() ? TR_OK : fail_in("tr_window_dirty", *array, status);
}

int tr_window_waited(const tr_window* window, double* seconds) {
  const OutOfCore* const array = array_of(window, "tr_window_waited");
  if (array == nullptr) return TR_ERR_STATE;
  if (seconds == nullptr)
    return fail_in("tr_window_waited", *array, {Code::argument, "`seconds` is a null pointer"});
  *seconds = array->seconds_waited();
  return TR_OK;
}

int tr_window_close(tr_window** window) {
  tr_window* const given = window == nullptr ? nullptr : *window;
  if (array_of(given, "tr_window_close") == nullptr) return TR_ERR_STATE;
  *window = nullptr;
  return result(close_window(given));
}
