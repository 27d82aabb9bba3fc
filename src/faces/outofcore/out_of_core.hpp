// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "faces/files/group.hpp"
#include "faces/outofcore/tiling.hpp"

namespace tailrace::outofcore {

struct Unmap {
  std::size_t length = 0;
  void operator()(std::byte* memory) const;
};
/// Memory that is given back to the system when the pointer dies.
using Mapped = std::unique_ptr<std::byte, Unmap>;

/// An array in a file, larger than memory, that is worked on in portions. Rank p % size works on portion p.
/// While the caller computes on the current portion, threads read later portions and write earlier ones.
///
/// A rank holds its portions in a ring of slots, each portion in the next slot. The tasks of a slot have a
/// key of their own, and so run one after another: a portion is read into a slot after the portion before has
/// been written from there. Tasks of other slots do not wait for them. Every portion is visited once, so that
/// no two tasks work on the same bytes of the file. Halos are the exception: a halo may be read before or
/// after the neighbouring portions that own its elements are written.
class OutOfCore {
 public:
  enum class Access { read, update, write };
  struct Definition {
    std::string path;
    Access access = Access::read;
    ElementType type = ElementType::f64;
    Tiling tiling;
    Bytes offset = 0;  // of the array's first byte in the file
    Index depth = 1;   // portions held ahead of the current one

    [[nodiscard]] Bytes element() const { return size_of(type); }
    [[nodiscard]] Bytes file_bytes() const;  // Returns the size of a file that ends with the array.
  };

  /// Collective over the group. Blocks until all ranks have opened the file. `call` names the program's call
  /// and its arguments; `given` is the definition that they ask for, or what is wrong with them. Returns the
  /// same Status on every rank.
  static Result<std::unique_ptr<OutOfCore>> open(const std::shared_ptr<files::Group>& group,
                                                 const std::string& call, const Result<Definition>& given);
  OutOfCore(const OutOfCore&) = delete;
  OutOfCore& operator=(const OutOfCore&) = delete;

  [[nodiscard]] const Definition& definition() const { return what_; }

  /// Local. Leaves the current portion and goes to this rank's next one. The portion that is left is written
  /// back later if it was marked, or if the array was opened with Access::write. Blocks until the next
  /// portion is read. Returns its memory, or nullptr after the last one. After an error there is no current
  /// portion, and every further call returns the error again.
  Result<std::byte*> next();
  /// Local. Returns the number of the current portion, or nothing before the first and after the last one.
  [[nodiscard]] std::optional<Index> current() const;
  /// Local. Marks the current portion, which must exist, to be written back. Returns Code::state if the array
  /// was opened for reading.
  Status mark_dirty();
  /// Local. Returns how long next() has taken so far.
  [[nodiscard]] double seconds_waited() const { return waited_; }

  /// Collective. Blocks until all ranks have written all of their portions. If portions have failed, on any
  /// rank, returns the failure of the one with the lowest number, the same on every rank.
  Status close();

 private:
  struct Slot {
    executor::Key key = 0;
    std::byte* memory = nullptr;
    Status read;  // of the portion read last: a task of `key` sets it; wait for the key before reading it
  };

  OutOfCore(std::shared_ptr<files::Group> group, std::uint64_t epoch, const Definition& what);
  Status allocate();
  Status open_file(storage::OpenMode mode);
  Status make_or_check();
  Status vote(const std::string& call, const Status& mine);

  [[nodiscard]] Index number_of(Index turn) const { return group_->rank() + turn * group_->size(); }
  Slot& slot_of(Index turn) { return slots_[static_cast<std::size_t>(turn) % slots_.size()]; }
  void leave_current();
  void read_ahead();
  Result<std::byte*> enter();
  void wait_for(const Slot& slot, const std::string& what);
  Status read(Index number, std::byte* memory);
  Status write(Index number, const std::byte* memory);
  void note(Index number, const Status& status);
  [[nodiscard]] Status failure() const;

  const std::shared_ptr<files::Group> group_;
  const Definition what_;
  const std::uint64_t epoch_;
  std::unique_ptr<storage::File> file_;
  node::Draw drawn_;  // the bytes of memory_
  Mapped memory_;     // of all slots
  std::vector<Slot> slots_;
  Index turns_ = 0;  // number of this rank's portions
  Index turn_ = -1;  // the current one of them; -1 before the first
  Index begun_ = 0;  // how many of them are read or being read
  bool is_current_ = false;
  bool dirty_ = false;
  double waited_ = 0;
  mutable std::mutex failure_mutex_;
  Status failure_;  // of the lowest portion that failed
};

}  // namespace tailrace::outofcore
