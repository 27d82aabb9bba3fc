// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Global arrays.
#include "api/c/arguments.hpp"
#include "api/c/state.hpp"
#include "faces/shared/definition.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using shared::GlobalArray;

namespace {

Result<shared::GlobalDefinition> define_global(int type, tr_index count, const char* options,
                                               tr_global** global) {
  if (global == nullptr) return null_pointer("global");
  if (size_of(ElementType{type}) == 0 || is_text(ElementType{type}))
    return Status(Code::argument, cat("element type ", type, " is none of TR_I8 .. TR_U64"));
  Bytes page = shared::Definition::default_page;
  TR_TRY(shared::global_options.read(text_of(options), page));
  TR_TRY(shared::check_count(ElementType{type}, count, page));
  return shared::GlobalDefinition{ElementType{type}, count, page};
}

int create_global(Result<std::shared_ptr<files::Group>> group, const char* call, int type, tr_index count,
                  const char* options, tr_global** global) {
  if (global != nullptr) *global = nullptr;
  if (!group.is_ok()) return fail(group.status().in(call));
  const std::string text =
      cat(std::string_view(call), "(", name_of(ElementType{type}), ", ", count, ", ", quoted(options), ")");
  Result<std::unique_ptr<GlobalArray>> created =
      GlobalArray::create(*group, text, guarded([&] { return define_global(type, count, options, global); }));
  if (!created.is_ok()) return fail(created.status());
  *global = new tr_global{std::move(*created)};
  state().global_arrays.push_back(*global);
  return TR_OK;
}

GlobalArray* global_of(const tr_global* global, const char* call) {
  const tr_global* const found = find_open(state().global_arrays, global, call, "global array");
  return found == nullptr ? nullptr : found->array.get();
}

int fail_in_global(const char* call, const GlobalArray& array, const Status& status) {
  return fail(status.in(cat(std::string_view(call), "(", array.name(), ")")));
}

Status check_elements(tr_index n, const void* indices, const void* values) {
  if (n < 0) return {Code::argument, cat("n is ", n, ", below 0")};
  if (n > 0 && indices == nullptr) return null_pointer("indices");
  return n > 0 && values == nullptr ? null_pointer("values") : Status();
}

Status check_values(tr_index n, const void* values) {
  if (n < 0) return {Code::argument, cat("n is ", n, ", below 0")};
  return n > 0 && values == nullptr ? null_pointer("values") : Status();
}

/// Runs a local call on an open array. `checked` is the error found in its arguments.
template <typename Body>
int in_global(const char* call, const tr_global* global, const Status& checked, const Body& body) {
  GlobalArray* const array = global_of(global, call);
  if (array == nullptr) return TR_ERR_STATE;
  const Status status = checked.is_ok() ? guarded([&] { return body(*array); }) : checked;
  return status.is_ok() ? TR_OK : fail_in_global(call, *array, status);
}

std::span<const Index> numbers(const tr_index* indices, tr_index n) {
  return {indices, static_cast<std::size_t>(n)};
}
std::byte* bytes_at(void* values) { return static_cast<std::byte*>(values); }
const std::byte* bytes_at(const void* values) { return static_cast<const std::byte*>(values); }

/// Collective. Frees the array. The handle is gone, whatever is returned.
Status free_global(tr_global* global) { return take_off(state().global_arrays, global)->array->free(); }

}  // namespace

namespace tailrace::capi {

Status end_global_arrays() {
  return close_all(state().global_arrays, [](tr_global* global) {
    if (state().session->rank() == 0)
      log(LogLevel::warn, cat("the global array ", global->array->name(), " was left: tr_finalize frees it"));
    return free_global(global);
  });
}

}  // namespace tailrace::capi

int tr_global_create(int type, tr_index count, const char* options, tr_global** global) {
  if (session_for("tr_global_create") == nullptr) return TR_ERR_STATE;
  return create_global(state().groups->of(state().bootstrap->compute(), "tr_global_create"),
                       "tr_global_create", type, count, options, global);
}

int tr_global_create_comm(MPI_Comm comm, int type, tr_index count, const char* options, tr_global** global) {
  if (session_for("tr_global_create_comm") == nullptr) return TR_ERR_STATE;
  return create_global(state().groups->of(comm, "tr_global_create_comm"), "tr_global_create_comm", type,
                       count, options, global);
}

int tr_global_create_comm_f(MPI_Fint comm, int type, tr_index count, const char* options,
                            tr_global** global) {
  // While there is a session, MPI runs. Before that no handle can be converted.
  if (session_for("tr_global_create_comm") == nullptr) return TR_ERR_STATE;
  return tr_global_create_comm(MPI_Comm_f2c(comm), type, count, options, global);
}

int tr_global_count(const tr_global* global, tr_index* count) {
  const Status checked = count == nullptr ? null_pointer("count") : Status();
  return in_global("tr_global_count", global, checked, [&](const GlobalArray& array) {
    *count = array.count();
    return Status();
  });
}

int tr_global_gather(tr_global* global, tr_index n, const tr_index* indices, void* values) {
  return in_global("tr_global_gather", global, check_elements(n, indices, values),
                   [&](GlobalArray& array) { return array.gather(numbers(indices, n), bytes_at(values)); });
}

int tr_global_scatter(tr_global* global, tr_index n, const tr_index* indices, const void* values) {
  return in_global("tr_global_scatter", global, check_elements(n, indices, values),
                   [&](GlobalArray& array) { return array.scatter(numbers(indices, n), bytes_at(values)); });
}

int tr_global_accumulate(tr_global* global, tr_index n, const tr_index* indices, const void* values,
                         int lock) {
  Status checked = check_elements(n, indices, values);
  if (checked.is_ok() && lock != TR_LOCKED && lock != TR_UNLOCKED)
    checked = Status(Code::argument, cat("lock is ", lock, ", neither TR_LOCKED nor TR_UNLOCKED"));
  return in_global("tr_global_accumulate", global, checked, [&](GlobalArray& array) {
    return array.accumulate(numbers(indices, n), bytes_at(values), lock == TR_LOCKED);
  });
}

int tr_global_read(tr_global* global, tr_index begin, tr_index n, void* values) {
  return in_global("tr_global_read", global, check_values(n, values),
                   [&](GlobalArray& array) { return array.read(begin, n, bytes_at(values)); });
}

int tr_global_write(tr_global* global, tr_index begin, tr_index n, const void* values) {
  return in_global("tr_global_write", global, check_values(n, values),
                   [&](GlobalArray& array) { return array.write(begin, n, bytes_at(values)); });
}

int tr_global_local(tr_global* global, tr_index part, void** values, tr_index* first, tr_index* count) {
  Status checked;
  if (values == nullptr) checked = null_pointer("values");
  if (first == nullptr) checked = null_pointer("first");
  if (count == nullptr) checked = null_pointer("count");
  return in_global("tr_global_local", global, checked, [&](const GlobalArray& array) {
    const GlobalArray::LocalPage page = array.local(part);
    *values = page.values;
    *first = page.first;
    *count = page.count;
    return part < 0 ? Status(Code::argument, cat("part is ", part, ", below 0")) : Status();
  });
}

int tr_global_sync(tr_global* global) {
  GlobalArray* const array = global_of(global, "tr_global_sync");
  return array == nullptr ? TR_ERR_STATE : result(array->sync());
}

int tr_global_resize(tr_global* global, tr_index count) {
  GlobalArray* const array = global_of(global, "tr_global_resize");
  return array == nullptr ? TR_ERR_STATE : result(array->resize(count));
}

int tr_global_free(tr_global** global) {
  tr_global* const given = global == nullptr ? nullptr : *global;
  if (global_of(given, "tr_global_free") == nullptr) return TR_ERR_STATE;
  *global = nullptr;
  return result(free_global(given));
}
