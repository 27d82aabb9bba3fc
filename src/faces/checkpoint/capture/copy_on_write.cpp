// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/capture/copy_on_write.hpp"

#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "faces/checkpoint/capture/memory_kind.hpp"
#include "ground/base/thread.hpp"

namespace tailrace::capture {

namespace {

/// Copies as memcpy does. Returns false if the memory is not mapped, where memcpy would end the process.
bool copy_if_there(std::byte* to, const std::byte* from, std::size_t bytes) {
  const iovec here{to, bytes};
  const iovec there{const_cast<std::byte*>(from), bytes};
  return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace

Result<std::unique_ptr<CopyOnWrite>> CopyOnWrite::create() {
  std::byte from{1};
  std::byte to{0};
  if (!copy_if_there(&to, &from, 1))
    return Status(Code::unsupported, "this process may not read its own memory by process_vm_readv(2)");
  Result<Userfault> faults = Userfault::open();
  TR_TRY(faults.status());
  return std::unique_ptr<CopyOnWrite>(new CopyOnWrite(std::move(*faults)));
}

CopyOnWrite::~CopyOnWrite() { join(); }

void CopyOnWrite::join() {
  if (copier_.joinable()) copier_.join();
}

Status CopyOnWrite::begin(std::vector<CopiedRange> ranges) {
  join();
  ranges_ = std::move(ranges);
  first_units_.clear();
  std::size_t units = 0;
  std::vector<MemoryRange> memory;
  for (const CopiedRange& range : ranges_) {
    first_units_.push_back(units);
    units += static_cast<std::size_t>(range.bytes / unit);
    memory.push_back({range.begin, range.bytes});
  }
  is_copied_.assign(units, 0);
  left_ = units;
  cursor_ = 0;
  state_ = State::idle;
  if (units == 0) return {};
  TR_TRY(check_private(memory));
  TR_TRY(check_not_registered());
  return protect();
}

/// Starts the copier before it protects the first range: while it protects the others, this thread or another
/// may write to a protected unit, and only the copier lets a writer go on.
Status CopyOnWrite::protect() {
  state_ = State::protecting;
  // start_thread() blocks all signals on the copier: a handler that ran there and wrote to protected memory
  // would wait for the copier itself.
  Result<std::thread> started = start_thread([this] { run(); });
  if (!started.is_ok()) {
    state_ = State::idle;
    return {Code::unsupported, started.status().text()};
  }
  copier_ = std::move(*started);
  for (const CopiedRange& range : ranges_) {
    Status done = faults_.protect(range.begin, range.bytes);
    if (done.is_ok()) continue;
    state_ = State::giving_up;
    join();
    state_ = State::idle;
    return done;
  }
  state_ = State::copying;
  return {};
}

Status CopyOnWrite::wait() {
  for (State now = state_; now == State::copying; now = state_) state_.wait(now);
  if (state_ != State::lost) return {};
  return {Code::argument,
          "memory of an item was unmapped or discarded before it was captured: with capture=copy_on_write it "
          "must stay until the save is written (tr_checkpoint_status, tr_checkpoint_wait)"};
}

/// The copier. It takes no lock and allocates nothing: a thread that holds a lock, of malloc for example, may
/// be waiting for the copier.
void CopyOnWrite::run() {
  bool is_whole = true;
  while (state_ == State::protecting) {
    is_whole = serve() && is_whole;
    ::sched_yield();
  }
  while (state_ == State::copying && is_whole && left_ > 0) {
    is_whole = serve();
    if (!is_whole || left_ == 0) break;
    while (is_copied_[cursor_] != 0) cursor_ = (cursor_ + 1) % is_copied_.size();
    is_whole = copy(cursor_);
  }
  for (const CopiedRange& range : ranges_) faults_.release(range.begin, range.bytes);
  // A program thread that is about to discard some of the memory waits until the copier has taken the event.
  // Take all events before the copier ends.
  while (faults_.lift(ranges_.front().begin, unit) == Userfault::Lifted::busy) {
    const std::optional<Userfault::Event> event = faults_.next();
    if (event && event->kind == Userfault::Event::Kind::discard && left_ > 0)
      is_whole = note(*event) && is_whole;
    if (!event) ::sched_yield();
  }
  if (state_ == State::giving_up) return;
  state_ = is_whole ? State::copied : State::lost;
  state_.notify_all();
}

/// Copies the units for which threads of the program wait. Returns false if memory that is not copied yet is
/// gone.
bool CopyOnWrite::serve() {
  bool is_whole = true;
  while (const std::optional<Userfault::Event> event = faults_.next()) {
    is_whole = note(*event) && is_whole;
    if (event->kind == Userfault::Event::Kind::write && cursor_ < is_copied_.size())
      is_whole = copy(cursor_) && is_whole;
  }
  return is_whole;
}

/// Looks at an event. After a write, its unit is the next to be copied. Returns false if the program is about
/// to discard memory that is not copied yet.
bool CopyOnWrite::note(const Userfault::Event& event) {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const CopiedRange& range = ranges_[i];
    const std::byte* const begin = std::max(event.begin, range.begin);
    const std::byte* const end = std::min(event.end, range.begin + range.bytes);
    if (begin >= end) continue;
    const std::size_t first = first_units_[i] + static_cast<std::size_t>((begin - range.begin) / unit);
    const std::size_t last = first_units_[i] + static_cast<std::size_t>((end - 1 - range.begin) / unit);
    // The copier goes on from there, since the writer will probably come to the units behind.
    if (event.kind == Userfault::Event::Kind::write) cursor_ = first;
    for (std::size_t u = first; event.kind == Userfault::Event::Kind::discard && u <= last; ++u) {
      if (is_copied_[u] == 0) return false;
    }
  }
  return true;
}

/// Copies a unit, unless it is copied, and lets its writers go on. Returns false if its memory is gone.
bool CopyOnWrite::copy(std::size_t number) {
  std::size_t i = ranges_.size() - 1;
  while (first_units_[i] > number) --i;
  const Bytes offset = static_cast<Bytes>(number - first_units_[i]) * unit;
  const std::byte* const from = ranges_[i].begin + offset;
  if (is_copied_[number] == 0) {
    if (!copy_if_there(ranges_[i].copy + offset, from, static_cast<std::size_t>(unit))) return false;
    is_copied_[number] = 1;
    --left_;
  }
  for (;;) {
    const Userfault::Lifted lifted = faults_.lift(from, unit);
    if (lifted != Userfault::Lifted::busy) return lifted == Userfault::Lifted::yes;
    // Another thread may wait for another unit: the copier copies it next, or when its turn comes.
    const std::optional<Userfault::Event> event = faults_.next();
    if (event && !note(*event)) return false;
    if (!event) ::sched_yield();
  }
}

}  // namespace tailrace::capture
