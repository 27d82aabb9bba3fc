// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/outofcore/out_of_core.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/layout/rows.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::outofcore {

namespace {

constexpr Bytes line = 64;  // slots begin at multiples of a cache line

std::vector<Index> extents_of(const layout::Box& box) {
  std::vector<Index> extents;
  for (std::size_t d = 0; d < box.lower.size(); ++d) extents.push_back(box.upper[d] - box.lower[d]);
  return extents;
}

/// Returns zeroed memory, or nullptr if the system has not enough. The memory is mapped and not taken from
/// the heap, so that the system gets all of it back at the end. Every page is touched here, since a first
/// touch costs several times as much as a copy.
Mapped map_memory(std::size_t length, bool huge_pages) {
  void* const mapped = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (huge_pages) ::madvise(mapped, length, MADV_HUGEPAGE);  // a kernel without huge pages may refuse
  std::memset(mapped, 0, length);
  return {static_cast<std::byte*>(mapped), Unmap{length}};
}

/// Calls body(bytes, offset) for each run of elements of `box` that follow one another in the file. `bytes`
/// is the run in `memory`, which has the elements of `held` in C order; `box` is part of `held`. `offset` is
/// the run's place in the file. Makes no list of the runs, since there may be as many as elements. Ends with
/// the first error.
template <typename Byte, typename Body>
Status for_each_run(const OutOfCore::Definition& what, const layout::Box& held, const layout::Box& box,
                    Byte* memory, const Body& body) {
  const std::vector<Index>& shape = what.tiling.shape();
  const std::vector<Index> strides = layout::strides_of(shape);
  const std::vector<Index> places = layout::strides_of(extents_of(held));
  std::vector<Index> outer = extents_of(box);
  // If the box has all elements of a dimension, its rows follow one another in the file, and so in `held`:
  // join the dimension with the one before it.
  Index count = outer.back();
  outer.pop_back();
  for (; !outer.empty() && count == strides[outer.size() - 1]; outer.pop_back()) count *= outer.back();
  std::vector<Index> at(outer.size(), 0);
  do {
    Index first = 0;
    Index place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Index index = box.lower[d] + (d < at.size() ? at[d] : 0);
      first += index * strides[d];
      place += (index - held.lower[d]) * places[d];
    }
    const auto length = static_cast<std::size_t>(count * what.element());
    TR_TRY(body(std::span(memory + place * what.element(), length), what.offset + first * what.element()));
  } while (layout::advance(at, outer));
  return {};
}

}  // namespace

void Unmap::operator()(std::byte* memory) const { ::munmap(memory, length); }

Bytes OutOfCore::Definition::file_bytes() const {
  return offset + layout::product(tiling.shape()) * element();
}

OutOfCore::OutOfCore(std::shared_ptr<files::Group> group, std::uint64_t epoch, const Definition& what)
    : group_(std::move(group)), what_(what), epoch_(epoch), drawn_(group_->budget(), node::Use::portions) {
  const Index count = what_.tiling.count();
  const Index behind = count - group_->rank();  // portions that no lower rank has in the first round
  turns_ = behind <= 0 ? 0 : (behind - 1) / group_->size() + 1;
}

/// Allocates the slots: one for the current portion, and `depth` for portions that are read ahead or still to
/// be written. Access::update does both, and has one more.
Status OutOfCore::allocate() {
  const Index wanted = what_.depth + (what_.access == Access::update ? 2 : 1);
  const Index slots = std::min(wanted, turns_);
  if (slots == 0) return {};
  const Bytes bytes = what_.tiling.most_held() * what_.element();
  Bytes apart = 0;
  Bytes total = 0;
  Status taken;
  if (!__builtin_add_overflow(bytes, (line - bytes % line) % line, &apart) &&
      !__builtin_mul_overflow(slots, apart, &total)) {
    taken = drawn_.take(total);
    if (taken.is_ok())
      memory_ = map_memory(static_cast<std::size_t>(total), group_->service().settings().huge_pages);
  }
  if (memory_ == nullptr) {
    return {Code::memory,
            cat("there is no memory for ", slots, " portions of ", counted(bytes, "byte"), ", halo included",
                taken.is_ok() ? "" : cat(" (", taken.text(), ")"), ": make portions smaller")};
  }
  for (Index i = 0; i < slots; ++i)
    slots_.push_back({group_->service().threads().new_key(), memory_.get() + i * apart, {}});
  return {};
}

Status OutOfCore::open_file(storage::OpenMode mode) {
  Result<std::unique_ptr<storage::File>> file = group_->service().target().open(what_.path, mode);
  TR_TRY(file.status());
  file_ = std::move(*file);
  return {};
}

/// The I/O rank's part of opening: makes the file, or checks that there is one that holds all of the array.
Status OutOfCore::make_or_check() {
  journal::Journals& journals = group_->service().journals();
  const bool is_kept = what_.access != Access::read && journals.has(what_.path);
  if (what_.access == Access::write) {
    TR_TRY(open_file(is_kept ? storage::OpenMode::keep : storage::OpenMode::create));
    if (is_kept) {
      TR_TRY(journals.keep(what_.path, *file_, 0, std::numeric_limits<Bytes>::max()));
      TR_TRY(file_->truncate(0));
    }
    return file_->truncate(what_.file_bytes());  // the whole: other ranks may write far behind its end
  }
  TR_TRY(open_file(what_.access == Access::read ? storage::OpenMode::read : storage::OpenMode::existing));
  const Result<Bytes> size = file_->size();
  TR_TRY(size.status());
  // Keep the bytes of the whole array before any rank writes a portion: the ranks write in any order.
  if (*size >= what_.file_bytes())
    return is_kept ? journals.keep(what_.path, *file_, what_.offset, what_.file_bytes() - what_.offset)
                   : Status();
  return {Code::layout, cat(what_.path, " has ", counted(*size, "byte"), ", but an array of ",
                            layout::extents(what_.tiling.shape()), " ", name_of(what_.type), " from byte ",
                            what_.offset, " on ends at byte ", what_.file_bytes())};
}

Status OutOfCore::vote(const std::string& call, const Status& mine) {
  return group_->agree({mine, cat(call, " of file ", epoch_), {}}).status;
}

Result<std::unique_ptr<OutOfCore>> OutOfCore::open(const std::shared_ptr<files::Group>& group,
                                                   const std::string& call, const Result<Definition>& given) {
  const Cause cause{-1, -1, group->rank()};
  const std::uint64_t epoch = group->new_epoch();  // also after an error: every rank counts the opens
  std::unique_ptr<OutOfCore> made;
  Status mine = given.status();
  if (mine.is_ok()) {
    mine = guarded([&] {
      made.reset(new OutOfCore(group, epoch, *given));
      return made->allocate();
    });
  }
  // The I/O rank creates, and so truncates, the file only after all ranks have voted that they mean the same
  // one.
  TR_TRY(group->agree({mine.in(call).at(cause), call, {}}).status);
  if (group->is_io_rank()) mine = guarded([&] { return made->make_or_check(); });
  TR_TRY(made->vote(call, mine.in(call).at(cause)));
  if (!group->is_io_rank() && made->turns_ > 0) {
    const bool reads = given->access == Access::read;
    mine = guarded(
        [&] { return made->open_file(reads ? storage::OpenMode::read : storage::OpenMode::existing); });
  }
  TR_TRY(made->vote(call, mine.in(call).at(cause)));
  made->read_ahead();
  return made;
}

std::optional<Index> OutOfCore::current() const {
  return is_current_ ? std::optional(number_of(turn_)) : std::nullopt;
}

Status OutOfCore::mark_dirty() {
  if (what_.access == Access::read)
    return {Code::state, cat(what_.path, " was opened for reading: nothing is written back")};
  dirty_ = true;
  return {};
}

Result<std::byte*> OutOfCore::next() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  if (is_current_) leave_current();
  if (turn_ < turns_) ++turn_;
  read_ahead();
  Result<std::byte*> memory = enter();
  waited_ += std::chrono::duration<double>(Clock::now() - begin).count();
  return memory;
}

void OutOfCore::leave_current() {
  is_current_ = false;
  if (what_.access == Access::read || (what_.access == Access::update && !dirty_)) return;
  dirty_ = false;
  const Index number = number_of(turn_);
  const Slot& slot = slot_of(turn_);
  const Status queued = guarded([&] {
    group_->service().threads().submit(slot.key, [this, number, memory = slot.memory] {
      note(number, guarded([&] { return write(number, memory); }));
    });
    return Status();
  });
  note(number, queued);
}

/// Queues reads of as many portions as may be held ahead. After a failure it queues no more.
void OutOfCore::read_ahead() {
  if (what_.access == Access::write) return;
  const Index end = std::min(turns_, turn_ + 1 + what_.depth);
  for (; begun_ < end && failure().is_ok(); ++begun_) {
    const Index number = number_of(begun_);
    Slot& slot = slot_of(begun_);
    const Status queued = guarded([&] {
      group_->service().threads().submit(slot.key, [this, number, &slot] {
        slot.read = guarded([&] { return read(number, slot.memory); });
      });
      return Status();
    });
    note(number, queued);
  }
}

/// Blocks until the portion of `turn_` is read, and the portion before it in the same slot is written.
/// Returns the portion's memory.
Result<std::byte*> OutOfCore::enter() {
  if (turn_ < turns_ && failure().is_ok()) {
    const Index number = number_of(turn_);
    const Slot& slot = slot_of(turn_);
    wait_for(slot, what_.tiling.text(number));
    if (what_.access != Access::write) note(number, slot.read);
  }
  TR_TRY(failure());
  if (turn_ >= turns_) return nullptr;
  is_current_ = true;
  return slot_of(turn_).memory;
}

void OutOfCore::wait_for(const Slot& slot, const std::string& what) {
  const executor::Threads& threads = group_->service().threads();
  if (threads.is_idle(slot.key)) return;
  group_->service().session().wait([&] { return threads.is_idle(slot.key); }, cat(what, ", of ", what_.path));
}

Status OutOfCore::read(Index number, std::byte* memory) {
  const layout::Box held = what_.tiling.held(number);
  return for_each_run(what_, held, held, memory, [&](std::span<std::byte> bytes, Bytes offset) {
    const Result<Bytes> got = file_->read(bytes, offset);
    TR_TRY(got.status());
    if (*got == std::ssize(bytes)) return Status();
    return Status(Code::io,
                  cat(what_.path, " ends at byte ", offset + *got, ": it was cut short after it was opened"));
  });
}

Status OutOfCore::write(Index number, const std::byte* memory) {
  const Tiling& tiling = what_.tiling;
  return for_each_run(
      what_, tiling.held(number), tiling.own(number), memory,
      [&](std::span<const std::byte> bytes, Bytes offset) { return file_->write(bytes, offset); });
}

void OutOfCore::note(Index number, const Status& status) {
  if (status.is_ok()) return;
  const std::lock_guard lock(failure_mutex_);
  failure_ = first_cause(failure_, status.in(what_.tiling.text(number)).at({-1, number, group_->rank()}));
}

Status OutOfCore::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

Status OutOfCore::close() {
  const std::string call = cat("tr_window_close(", what_.path, ")");
  if (is_current_) leave_current();
  for (const Slot& slot : slots_) wait_for(slot, cat("the last portions in ", call));
  Status mine = failure();
  if (file_ != nullptr) {
    const Status closed = std::exchange(file_, nullptr)->close();
    mine = first_cause(mine, closed.at({-1, what_.tiling.count(), group_->rank()}));
  }
  return vote(call, mine.in(call));
}

}  // namespace tailrace::outofcore
