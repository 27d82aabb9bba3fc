// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/loader.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "faces/input/interpolation.hpp"
#include "formats/cf/found.hpp"
#include "formats/opening/open.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/base/waiting.hpp"

namespace tailrace::input {

namespace {

/// The most tries to read a record while its writer commits. A commit during a read is rare, and so many in a
/// row are not expected.
constexpr int most_reads = 20;

/// How long a thread leaves memory to others. A rank without memory asks for some each millisecond.
constexpr std::chrono::milliseconds way_for_others{3};

/// How long a thread without memory rests. Nobody wakes it when memory is given back.
constexpr std::chrono::milliseconds shortest_wait{2};
constexpr std::chrono::milliseconds longest_wait{50};

/// The least time in which a killed program can be started again and write a step again.
constexpr std::chrono::seconds least_restart{3};

Status taken_back(const std::string& path, const std::string& step) {
  return {Code::state,
          cat(path, ": its writer has taken the step at ", step,
              " back, as one does that goes on from an earlier checkpoint: try the step again, which waits "
              "until it comes once more")};
}

template <typename T>
std::span<T> values_of(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <typename T>
void replace_missing(std::span<T> values, double missing) {
  for (T& each : values)
    if (std::isnan(each)) each = static_cast<T>(missing);
}

/// Returns Code::argument if only one of field and file has texts, or if those of the file are longer.
Status check_texts(const FieldDefinition& field, const std::optional<ElementType>& there) {
  const bool has_texts = there && is_text(*there);
  if (has_texts && is_text(field.type) && size_of(field.type) < size_of(*there))
    return {Code::argument, cat("are texts of ", counted(size_of(*there), "byte"),
                                ": define the field as TR_TEXT(", size_of(*there), "), or as longer texts")};
  if (has_texts == is_text(field.type)) return {};
  return {Code::argument, has_texts ? cat("are texts: define the field as TR_TEXT(", size_of(*there), ")")
                                    : "are numbers: define the field as TR_F64 or TR_F32"};
}

/// Prepares `values` for integers, of which missing ones leave what stands there. Returns Code::argument
/// unless the file has integers (of the type `there`) that all are values of the field's type. The same for
/// texts.
Status prepare_exact(const FieldDefinition& field, const std::optional<ElementType>& there,
                     std::span<std::byte> values) {
  TR_TRY(check_texts(field, there));
  if (!is_integer(field.type)) return {};
  if (!there)
    return {Code::argument, cat("are real numbers, or packed ones, and not ", name_of(field.type),
                                ": define the field as TR_F64 or TR_F32")};
  if (!has_all_of(field.type, *there))
    return {Code::argument, cat("are ", name_of(*there), ", which can be beyond ", name_of(field.type),
                                ": define the field with the type of the file, or as TR_F64")};
  if (!field.missing) return {};
  ByteVector element;
  cf::append(element, cf::number_of(field.type), *field.missing);
  for (std::size_t at = 0; at < values.size(); at += element.size())
    std::ranges::copy(element, values.begin() + static_cast<std::ptrdiff_t>(at));
  return {};
}

/// Returns the field's part of a record on this grid. Field and grid may differ in dimensions of length 1.
layout::Box cut_on(const sources::Grid& grid, const FieldDefinition& field) {
  layout::Box cut;
  std::size_t d = 0;
  for (const Index extent : grid.shape) {
    while (extent != 1 && field.shape[d] == 1) ++d;
    cut.lower.push_back(extent == 1 ? 0 : field.cut.lower[d]);
    cut.upper.push_back(extent == 1 ? 1 : field.cut.upper[d]);
    if (extent != 1) ++d;
  }
  return cut;
}

}  // namespace

Status DrawnScratch::reserve(Bytes bytes, const std::string& what) {
  refused_ = Status();
  if (bytes <= draw_.bytes()) return {};
  release();
  refused_ =
      draw_.take(bytes).in(cat(what, ": decoding a record takes up to ", size_text(bytes),
                               " beside the steps in memory: set prefetch= lower or TAILRACE_MEMORY higher"));
  if (!refused_.is_ok()) return refused_;
  ++budget_.decoders();
  refusals_ = budget_.refusals();
  return {};
}

void DrawnScratch::release() {
  memory_ = sources::Scratch();
  if (draw_.bytes() == 0) return;
  draw_.give_back();
  --budget_.decoders();
}

void DrawnScratch::make_way() {
  if (draw_.bytes() == 0 || budget_.refusals() == refusals_) return;
  release();
  std::this_thread::sleep_for(way_for_others);
}

bool work_on_soonest(std::span<Loader* const> loaders, DrawnScratch& scratch) {
  scratch.forget_refusal();
  std::vector<std::pair<Index, Loader*>> soonest;
  for (Loader* const loader : loaders)
    if (const std::optional<Index> ahead = loader->ring().soonest()) soonest.emplace_back(*ahead, loader);
  std::ranges::stable_sort(soonest, {}, [](const auto& each) { return each.first; });
  // With very many rings, looking at all of them for each record would take longer than reading the record.
  constexpr int most_at_once = 64;
  int worked = 0;
  Index first = 0;
  for (const auto& [ahead, loader] : soonest) {
    if (worked == most_at_once || (worked > 0 && ahead > first)) break;
    if (worked > 0) scratch.make_way();
    if (!loader->work_once(ahead, scratch)) continue;
    first = ahead;
    ++worked;
  }
  return worked > 0;
}

Status work_on_all(const std::function<std::vector<Loader*>()>& loaders, const std::atomic<bool>& is_over,
                   DrawnScratch& scratch) {
  GrowingPause rest(shortest_wait, longest_wait);
  const Status worked = guarded([&] {
    while (!is_over) {
      if (work_on_soonest(loaders(), scratch)) {
        rest.moved();
        scratch.make_way();
        continue;
      }
      if (scratch.refused().is_ok()) break;
      std::this_thread::sleep_for(rest.next());
    }
    return Status();
  });
  scratch.release();
  return worked;
}

bool Loader::work_once(Index ahead, DrawnScratch& scratch) {
  const std::optional<Ring::Claim> claim = ring_.claim(ahead);
  return claim && work(*claim, scratch);
}

bool Loader::work_on(Index slot, Index level, DrawnScratch& scratch) {
  const std::optional<Ring::Claim> claim = ring_.claim(slot, level);
  return claim && work(*claim, scratch);
}

/// Reads a claimed record and ends its task in any case, because other ranks wait for it. If there is no
/// memory to decode, leaves the task to another worker.
bool Loader::work(const Ring::Claim& claim, DrawnScratch& scratch) {
  const DefaultArithmetic guard;
  std::uint64_t version = 0;
  scratch.forget_refusal();
  const Status loaded = guarded([&] { return load(claim, scratch, version); });
  if (!scratch.refused().is_ok()) {
    ring_.put_back(claim);
    return false;
  }
  ring_.finish(claim, loaded, version);
  return true;
}

/// Reads a record, and again until it is surely that of a committed step: the index must have the same
/// version of the step before and after reading. CommittedSteps of other steps do not matter.
Status Loader::load(const Ring::Claim& claim, DrawnScratch& scratch, std::uint64_t& version) {
  const auto step = [&] { return ring_.files().time.at(claim.lead); };
  const Result<std::string> path = files_->path_of(claim.lead);
  TR_TRY(path.status());
  for (int tries = 1;; ++tries) {
    const Result<std::shared_ptr<const CommittedSteps>> before = files_->commits(claim.lead);
    TR_TRY(before.status());
    const auto began = std::chrono::steady_clock::now();
    Result<std::shared_ptr<const OpenFile>> file = files_->at(claim.lead);
    const Status loaded = file.is_ok() ? load_from(*file, claim, scratch) : file.status();
    if (*before == nullptr || !scratch.refused().is_ok()) return loaded;
    const Result<std::shared_ptr<const CommittedSteps>> behind = files_->commits(claim.lead);
    TR_TRY(behind.status());
    const bool is_unchanged = (*behind)->are_those_of(**before);
    if (is_unchanged && !(*behind)->has_index()) return loaded;
    const std::optional<std::uint64_t> committed = (*behind)->version(claim.lead);
    // A writer that begins the file anew replaces the index first: until it has written the new head, the
    // file cannot be opened.
    if ((*behind)->has_index() && !committed) return taken_back(*path, step());
    if (!file.is_ok() && is_unchanged) return loaded;
    const bool is_same = committed && (*before)->version(claim.lead) == committed && file.is_ok() &&
                         (*file)->commits()->version(claim.lead) == committed;
    // A step that was taken back and written again may have its old version. If the index has changed, accept
    // the record only if reading took too little time for that.
    const bool was_quick = std::chrono::steady_clock::now() - began < least_restart;
    if (is_same && (is_unchanged || (was_quick && loaded.is_ok()))) {
      version = *committed;
      return loaded;
    }
    if (tries == most_reads)
      return {Code::state, cat(*path, ": its index has changed each of the ", most_reads, " times that '",
                               ring_.field().name, "' was read at ", step(), ": try the step again")};
    if (!loaded.is_ok()) files_->forget(claim.lead);
  }
}

/// Reads a record of `file`. If the file has to be opened anew, sets `file` to the new one.
Status Loader::load_from(std::shared_ptr<const OpenFile>& file, const Ring::Claim& claim,
                         DrawnScratch& scratch) {
  const FieldDefinition& field = ring_.field();
  const double level = field.levels.values[static_cast<std::size_t>(claim.level)];
  Result<const sources::Record*> record = file->find(ring_.files(), field, claim.lead, level);
  if (!record.is_ok() && ring_.files().follows) {
    // The file may have grown since it was opened.
    forget_once(claim.lead);
    const Result<std::shared_ptr<const OpenFile>> anew = files_->at(claim.lead);
    TR_TRY(anew.status());
    file = *anew;
    record = file->find(ring_.files(), field, claim.lead, level);
  }
  TR_TRY(record.status());
  const sources::Source& source = file->source();
  const sources::Grid& grid = source.inventory().grids[static_cast<std::size_t>((*record)->grid)];
  TR_TRY(check_grid(*file, grid));
  TR_TRY(scratch.reserve(source.scratch_bound((*record)->place, grid), file->path()));
  TR_TRY(prepare_exact(field, source.exact_type((*record)->place), claim.values)
             .in(cat("the values of '", field.name, "' in ", file->path())));
  const Result<Index> missing = source.read((*record)->place, grid, cut_on(grid, field), field.type,
                                            claim.values.data(), scratch.memory());
  // The file may have been replaced: the next try opens it anew.
  if (!missing.is_ok()) files_->forget(claim.lead);
  TR_TRY(missing.status());
  ++counts_.records;
  counts_.bytes += std::ssize(scratch.memory().bytes);
  if (field.missing && field.type == ElementType::f64 && source.holds_float32((*record)->place))
    widen_missing(values_of<double>(claim.values), *field.missing);
  return *missing > 0 ? fill_missing(*file, claim, *missing) : Status();
}

/// Forgets a file without the wanted record, but only once for each step of the program: a step is known only
/// after its file has it, so opening the file once more is enough. Other threads find the file forgotten
/// already.
void Loader::forget_once(std::int64_t lead) {
  const std::pair<std::int64_t, std::int64_t> now{ring_.step(), lead};
  const std::lock_guard lock(mutex_);
  if (std::exchange(opened_anew_, now) != now) files_->forget(lead);
}

/// Checks the grid of a record. Most records of a stream have the same grid, which is checked only once.
Status Loader::check_grid(const OpenFile& file, const sources::Grid& grid) {
  const FieldDefinition& field = ring_.field();
  if (grid.shape == field.shape) {
    const std::lock_guard lock(mutex_);
    if (!checked_.empty() && checked_ == grid.keys) return {};
  }
  TR_TRY(sources::check_grid(grid, field.shape, field.georeference)
             .in(cat("field '", field.name, "' in ", file.path())));
  const std::lock_guard lock(mutex_);
  checked_ = grid.keys;
  return {};
}

Status Loader::fill_missing(const OpenFile& file, const Ring::Claim& claim, Index missing) const {
  const FieldDefinition& field = ring_.field();
  if (!field.missing) {
    const double level = field.levels.values[static_cast<std::size_t>(claim.level)];
    return {Code::data, cat("'", field.name, "' at level ", level, " in ", file.path(), " has no value at ",
                            counted(missing, "point"),
                            " that the ranks need: give missing=VALUE, which is stored there")};
  }
  // Interpolation needs the NaN, and replaces them afterwards. Integers have the value already.
  if (ring_.files().is_linear || is_integer(field.type)) return {};
  if (field.type == ElementType::f32)
    replace_missing(values_of<float>(claim.values), codec::missing_in(field.type, *field.missing));
  else
    replace_missing(values_of<double>(claim.values), *field.missing);
  return {};
}

}  // namespace tailrace::input
