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

/// An array in a file, larger than memory, that is worked on in portions. While the caller computes on the
/// current portion, later ones are read and earlier ones are written. Portion p is rank p % size's.
///
/// A rank holds a ring of slots, and each of its portions has the next one. The tasks of a slot have a key of
/// their own: a portion is read into a slot after the one before has been written from there, and nothing
/// else waits for either. Every portion is visited once, so that no task meets another one's bytes; only the
/// halo may be read before or after a neighbour is written.
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

  /// Collective over the group; blocks. `call` names the call and its arguments, `given` is what the caller
  /// made of them. Returns the same Status on every rank.
  static Result<std::unique_ptr<OutOfCore>> open(const std::shared_ptr<files::Group>& group,
                                                 const std::string& call, const Result<Definition>& given);
  OutOfCore(const OutOfCore&) = delete;
  OutOfCore& operator=(const OutOfCore&) = delete;

  [[nodiscard]] const Definition& definition() const { return what_; }

  /// Local. Leaves the current portion, which is written back if it was marked, and goes to the caller's next
  /// one. Waits until that is read. Returns its memory, or nullptr after the last one. After an error there
  /// is no current portion, and every further call returns the error again.
  Result<std::byte*> next();
  /// Local. Returns the number of the current portion, or nothing before the first and after the last one.
  [[nodiscard]] std::optional<Index> current() const;
  /// Local. Marks the current portion, which must exist, to be written back. Returns Code::state if nothing
  /// is written.
  Status mark_dirty();
  /// Local. Returns how long next() has taken so far.
  [[nodiscard]] double seconds_waited() const { return waited_; }

  /// Collective; blocks until everything is written. Returns the failure of the first portion that failed, on
  /// whatever rank.
  Status close();

 private:
  struct Slot {
    executor::Key key = 0;
    std::byte* memory = nullptr;
    Status read;  // of the last portion read into it; the key's tasks write it, and those who waited for them
                  // read it
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
  Index turns_ = 0;  // number of the caller's portions
  Index turn_ = -1;  // the current one of them; -1 before the first
  Index begun_ = 0;  // how many of them are read or being read
  bool is_current_ = false;
  bool dirty_ = false;
  double waited_ = 0;
  mutable std::mutex failure_mutex_;
  Status failure_;  // of the lowest portion that failed
};

}  // namespace tailrace::outofcore
