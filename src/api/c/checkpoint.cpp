// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "api/c/arguments.hpp"
#include "api/c/arrays.hpp"
#include "api/c/state.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using checkpoint::Checkpoint;

namespace {

/// The one item of a commit without data.
constexpr const char* step_item = "step";

tr_checkpoint* handle_of(tr_checkpoint* handle, const char* call) {
  return find_open(state().checkpoints, handle, call, "checkpoint");
}

Checkpoint* checkpoint_of(tr_checkpoint* handle, const char* call) {
  tr_checkpoint* const found = handle_of(handle, call);
  return found == nullptr ? nullptr : found->checkpoint.get();
}

/// Collective. The common part of the two calls that create checkpoints.
int create(const char* call, const char* name, const char* how, Result<checkpoint::Options> options,
           std::vector<std::string> files, tr_checkpoint** handle) {
  if (session_for(call) == nullptr) return TR_ERR_STATE;
  if (handle == nullptr) return fail(Status(Code::argument, cat(call, ": `checkpoint` is a null pointer")));
  *handle = nullptr;
  Result<std::unique_ptr<Checkpoint>> made = Checkpoint::create(
      *state().session, *state().outputs, text_of(name), text_of(how), std::move(options), std::move(files));
  if (!made.is_ok()) return fail(made.status());
  *handle = state().checkpoints.emplace_back(new tr_checkpoint{std::move(*made)});
  return TR_OK;
}

checkpoint::NamedItem item_of(const std::string& name, const tr_array& array) {
  checkpoint::NamedItem item;
  item.name = name;
  item.array = array_of(array);
  if (array.layout != nullptr) return item;
  // A scalar is an array of one element that every rank has.
  Result<layout::Layout> one = layout::Layout::replicated({1}, state().session->ranks());
  if (one.is_ok()) item.scalar = std::make_shared<const layout::Layout>(std::move(*one));
  return item;
}

/// Finds how the caller's array of these extents lies in memory. Its last `own` dimensions are those of a
/// rank's part, with or without halo. Any number of dimensions before them are levels.
Status fit_dimensions(checkpoint::NamedItem& item, const tr_layout& layout, std::size_t own,
                      std::vector<Index> extents, const tr_index* strides) {
  const layout::Layout& placed = layout.placed.layout;
  if (extents.size() < own)
    return {Code::layout, cat("the array has ", extents.size(), " dimensions and its layout ", own)};
  const std::size_t more = extents.size() - own;
  std::vector<Bytes> bytes(extents.size());
  if (strides != nullptr) bytes.assign(strides, strides + extents.size());
  // Several dimensions before those of the layout count as one if they lie in memory without gaps.
  while (extents.size() > own + 1) {
    if (strides != nullptr && extents[1] > 1 && extents[0] > 1 && bytes[0] != bytes[1] * extents[1])
      return {Code::layout,
              "the dimensions before those of the layout do not lie one after another in memory"};
    if (extents[1] == 1) bytes[1] = bytes[0];
    extents[1] *= extents[0];
    extents.erase(extents.begin());
    bytes.erase(bytes.begin());
  }
  layout::Allocation allocation;
  allocation.level_axis = more > 0 ? 0 : -1;
  allocation.levels = more > 0 ? extents.front() : 1;
  if (placed.is_box() || placed.is_tiled()) allocation.halo = layout.placed.halo;
  Result<layout::Allocation> matched =
      layout::match_extents(placed, state().session->rank(), allocation, extents);
  TR_TRY(matched.status());
  item.array.halo = nullptr;
  item.halo = matched->halo;
  if (more > 0) item.array.levels = extents.front();
  if (strides != nullptr) item.array.strides = bytes;
  return {};
}

/// Does so with the dimensions that a rank's part has. Several boxes are one dimension more than the layout,
/// or a list of elements.
Status fit_shape(checkpoint::NamedItem& item, const tr_layout& layout, const std::vector<Index>& extents,
                 const tr_index* strides) {
  const layout::Layout& placed = layout.placed.layout;
  const std::size_t dims = placed.shape().size();
  if (placed.is_box()) return fit_dimensions(item, layout, dims, extents, strides);
  if (!placed.is_tiled() || extents.size() < dims + 1)
    return fit_dimensions(item, layout, 1, extents, strides);
  // An array of a rank that owns nothing fits both forms. Its last extent is 0 in both, but only a list has
  // an extent other than 0 where the stacked form counts the boxes.
  const bool is_list = placed.count(state().session->rank()) == 0 && extents.back() == 0 &&
                       extents[extents.size() - dims - 1] != 0;
  if (is_list) return fit_dimensions(item, layout, 1, extents, strides);
  const Status stacked = fit_dimensions(item, layout, dims + 1, extents, strides);
  if (stacked.is_ok()) return stacked;
  return fit_dimensions(item, layout, 1, extents, strides).is_ok() ? Status() : stacked;
}

/// Reads the mode of the older form, whose letters mean the same as for files.
Result<checkpoint::Options> options_of_mode(const char* mode) {
  checkpoint::Options options;
  const std::string letters = text_of(mode);
  const std::size_t unknown = letters.find_first_not_of("pPlLiIsSwrb+");
  if (unknown != std::string::npos)
    return Status(Code::argument,
                  cat("mode \"", letters, "\" of a checkpoint: '", letters[unknown],
                      "' is none of p (one file), l or i (a file per rank) and s (asynchronous)"));
  if (letters.find_first_of("lLiI") == std::string::npos) return options;
  options.mode = checkpoint::Mode::local;
  if (letters.find_first_of("pP") != std::string::npos)
    return Status(Code::argument,
                  cat("mode \"", letters,
                      "\" of a checkpoint: p is one file, l and i are a file per rank: choose one"));
  return options;
}

void name_variables(const tr_checkpoint& handle) {
  for (const auto& [name, array] : handle.variables) handle.checkpoint->item(item_of(name, array));
}

}  // namespace

namespace tailrace::capi {

void expect_arrays() {
  const State& held = state();
  if (held.checkpoints.size() == 1) held.checkpoints.front()->checkpoint->expect(held.layout_bytes);
}

void count_layout(const layout::Layout& layout, int times) {
  State& held = state();
  // The program may free a layout of an earlier session, which had another number of ranks.
  if (layout.ranks() != held.session->ranks()) return;
  held.layout_bytes += times * layout.count(held.session->rank()) * size_of(ElementType::f64);
  held.layout_bytes = std::max<Bytes>(0, held.layout_bytes);
  expect_arrays();
}

void note_going_on() {
  if (!state().checkpoints.empty()) state().outputs->note_going_on();
}

void take_failures() {
  for (tr_checkpoint* each : state().checkpoints) each->checkpoint->take_failures();
}

Status end_checkpoints() {
  State& held = state();
  const Status first = close_all(held.checkpoints, [&](tr_checkpoint* handle) {
    return take_off(held.checkpoints, handle)->checkpoint->close();
  });
  held.layout_bytes = 0;
  return first;
}

}  // namespace tailrace::capi

int tr_checkpoint_create(const char* name, const char* options, tr_checkpoint** handle) {
  const int code =
      create("tr_checkpoint_create", name, options, checkpoint::parse_options(text_of(options)), {}, handle);
  if (code == TR_OK) expect_arrays();
  return code;
}

int tr_checkpoint_begin(tr_checkpoint* handle, int direction, int* found) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_begin");
  if (open == nullptr) return TR_ERR_STATE;
  if (found != nullptr) *found = 0;
  if (direction != TR_SAVE && direction != TR_LOAD) {
    return fail(Status(Code::argument,
                       cat("tr_checkpoint_begin: direction ", direction, " is neither TR_SAVE nor TR_LOAD")));
  }
  bool whole = false;
  const Status status =
      open->begin(direction == TR_SAVE ? Checkpoint::Direction::save : Checkpoint::Direction::load, &whole);
  if (found != nullptr) *found = whole ? 1 : 0;
  return result(status);
}

void tr_checkpoint_item(tr_checkpoint* handle, const char* name, void* data, int type,
                        const tr_layout* layout) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_item");
  if (open != nullptr) open->item(item_of(text_of(name), whole_array(data, type, layout)));
}

void tr_checkpoint_item_section(tr_checkpoint* handle, const char* name, const tr_array* array) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_item_section");
  if (open == nullptr) return;
  if (array == nullptr || array->layout == nullptr) {
    open->latch(
        Status(Code::argument, cat("item ", text_of(name), ": a section needs an array with a layout")));
    return;
  }
  open->item(item_of(text_of(name), *array));
}

void tr_checkpoint_item_shaped(tr_checkpoint* handle, const char* name, void* data, int type,
                               const tr_layout* layout, int ndims, const tr_index* extents,
                               const tr_index* strides) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_item_shaped");
  if (open == nullptr) return;
  checkpoint::NamedItem item = item_of(text_of(name), whole_array(data, type, layout));
  if (layout != nullptr && ndims > 0 && extents != nullptr) {
    const Status fits = fit_shape(item, *layout, {extents, extents + ndims}, strides);
    if (!fits.is_ok()) open->latch(fits.in(cat("item ", item.name)));
  }
  open->item(std::move(item));
}

int tr_checkpoint_end(tr_checkpoint* handle) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_end");
  return open == nullptr ? TR_ERR_STATE : result(open->end());
}

int tr_checkpoint_covers(tr_checkpoint* handle, const char* path) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_covers");
  return open == nullptr ? TR_ERR_STATE : result(open->cover(text_of(path)));
}

int tr_checkpoint_commit(tr_checkpoint* handle, int64_t step, const char* restart) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_commit");
  if (open == nullptr) return TR_ERR_STATE;
  const bool nested = open->in_bracket();
  // The result of the save before is returned once this one is under way, as in tr_checkpoint_save.
  const Status before = open->begin(Checkpoint::Direction::save, nullptr);
  if (nested || !open->in_bracket()) return fail(before);
  // A capture by copy on write may read the step later.
  const auto kept = std::make_shared<std::int64_t>(step);
  checkpoint::NamedItem item = item_of(step_item, whole_array(kept.get(), TR_I64, nullptr));
  item.keep = kept;
  open->item(std::move(item));
  const Status status = open->end_commit(restart == nullptr ? std::string() : text_of(restart));
  return result(status.is_ok() ? before : status);
}

int tr_checkpoint_resume(tr_checkpoint* handle, int64_t* step, int* found) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_resume");
  if (open == nullptr) return TR_ERR_STATE;
  if (found != nullptr) *found = 0;
  const bool nested = open->in_bracket();
  bool whole = false;
  const Status begun = open->begin(Checkpoint::Direction::load, &whole);
  if (nested || !open->in_bracket()) return fail(begun);
  std::int64_t loaded = 0;
  if (begun.is_ok() && whole) open->item(item_of(step_item, whole_array(&loaded, TR_I64, nullptr)));
  const Status status = open->end();
  if (begun.is_ok() && whole && status.is_ok()) {
    if (step != nullptr) *step = loaded;
    if (found != nullptr) *found = 1;
  }
  return result(begun.is_ok() ? status : begun);
}

int tr_checkpoint_wait(tr_checkpoint* handle) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_wait");
  return open == nullptr ? TR_ERR_STATE : result(open->wait());
}

int tr_checkpoint_status(tr_checkpoint* handle) {
  Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_status");
  if (open == nullptr) return TR_SAVE_FAILED;
  state().session->board().pump();
  const checkpoint::Progress progress = open->saves().progress();
  if (progress == checkpoint::Progress::failed) fail(open->saves().last_failure());
  return static_cast<int>(progress);
}

int64_t tr_checkpoint_generation(tr_checkpoint* handle) {
  const Checkpoint* const open = checkpoint_of(handle, "tr_checkpoint_generation");
  return open == nullptr ? 0 : open->saves().generation();
}

int tr_checkpoint_close(tr_checkpoint** handle) {
  Checkpoint* const open = checkpoint_of(handle == nullptr ? nullptr : *handle, "tr_checkpoint_close");
  if (open == nullptr) return TR_ERR_STATE;
  const Status status = open->close();
  take_off(state().checkpoints, std::exchange(*handle, nullptr));
  return result(status);
}

int tr_checkpoint_create_registered(const char* name, const tr_variable* variables, int count,
                                    const char* const* files, int file_count, const char* mode,
                                    tr_checkpoint** handle) {
  Result<checkpoint::Options> options = options_of_mode(mode);
  if (variables == nullptr || count < 1)
    options = Status(Code::argument,
                     "a checkpoint of no variables: `variables` is a null pointer, or `count` below 1");
  std::vector<std::string> paths;
  for (int i = 0; files != nullptr && i < file_count; ++i) paths.push_back(text_of(files[i]));
  const int code =
      create("tr_checkpoint_create_registered", name, mode, std::move(options), std::move(paths), handle);
  if (code != TR_OK) return code;
  std::vector<checkpoint::NamedItem> items;
  for (const tr_variable& each : std::span(variables, static_cast<std::size_t>(count))) {
    const auto& [variable, array] =
        (*handle)->variables.emplace_back(text_of(each.name), whole_array(each.data, each.type, each.layout));
    items.push_back(item_of(variable, array));
  }
  (*handle)->checkpoint->expect(items);
  return TR_OK;
}

int tr_checkpoint_save(tr_checkpoint* given, int async) {
  tr_checkpoint* const handle = handle_of(given, "tr_checkpoint_save");
  if (handle == nullptr) return TR_ERR_STATE;
  const bool nested = handle->checkpoint->in_bracket();
  // The result of the save before is returned once this save is under way.
  const Status before = handle->checkpoint->begin(Checkpoint::Direction::save, nullptr);
  if (nested || !handle->checkpoint->in_bracket()) return fail(before);
  name_variables(*handle);
  const Status status = handle->checkpoint->end(async != 0);
  return result(status.is_ok() ? before : status);
}

int tr_checkpoint_load(tr_checkpoint* given, int* found) {
  tr_checkpoint* const handle = handle_of(given, "tr_checkpoint_load");
  if (handle == nullptr) return TR_ERR_STATE;
  const bool nested = handle->checkpoint->in_bracket();
  bool whole = false;
  const Status begun = handle->checkpoint->begin(Checkpoint::Direction::load, &whole);
  if (found != nullptr) *found = whole ? 1 : 0;
  if (nested || !handle->checkpoint->in_bracket()) return fail(begun);
  if (begun.is_ok() && whole) name_variables(*handle);
  const Status status = handle->checkpoint->end();
  return result(begun.is_ok() ? status : begun);
}

double tr_checkpoint_interval(double save, double failures) {
  if (!(save > 0) || !(failures > 0)) return 0;
  if (save >= 2 * failures) return failures;
  const double ratio = std::sqrt(save / (2 * failures));
  return std::sqrt(2 * save * failures) * (1 + ratio / 3 + save / (2 * failures) / 9) - save;
}
