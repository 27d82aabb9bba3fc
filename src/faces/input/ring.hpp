// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "faces/input/definition.hpp"
#include "ground/comm/doorbell.hpp"
#include "ground/comm/transport.hpp"
#include "ground/node/shared_lock.hpp"

namespace tailrace::input {

/// The decoded records of one field on one node: a ring of slots in memory that processes share, with one
/// slot for each step that is needed now or soon. Each level of a slot is a task. A worker claims the task,
/// decodes the record into the slot, and marks it as ready or failed. The memory also holds the definitions
/// of files and field, so that a process can work on it without anything else.
///
/// A slot keeps its step as long as the step that was begun last needs it. No rank begins a step before all
/// ranks have got their values of the one before, so nobody reads a slot that is given to another step.
class Ring {
 public:
  /// Returns the bytes of memory that a ring needs.
  static Bytes bytes_for(const FilesDefinition& files, const FieldDefinition& field);
  /// Makes a ring in memory that no other process uses yet. The caller tells other processes when it is made.
  static void make(std::byte* memory, const FilesDefinition& files, const FieldDefinition& field);
  /// Uses a ring that make() has made. While the caller waits, `transport` lets others run.
  Ring(std::byte* memory, comm::Transport& transport);

  [[nodiscard]] const FilesDefinition& files() const { return files_; }
  [[nodiscard]] const FieldDefinition& field() const { return field_; }

  /// Notes that a rank begins step number `step` (from 0), at `lead`. For the first rank that does, plans the
  /// slots anew and has failed tasks tried again. Returns the lead with which the first rank has begun the
  /// step.
  std::int64_t begin(std::int64_t step, std::int64_t lead);
  /// Returns the number of the last step that was begun; -1 before the first.
  [[nodiscard]] std::int64_t step();
  /// Notes that step number `step`, which this rank has not begun, will be at `lead`. Does nothing if another
  /// rank has begun it.
  void seek(std::int64_t step, std::int64_t lead);

  /// Calls FilesDefinition::around() with the steps that the node knows now. For the step that has been
  /// begun, the first answer with any leads is kept: all ranks make it from the same ones, whatever comes
  /// later.
  [[nodiscard]] Result<std::vector<std::int64_t>> around(std::int64_t lead);
  /// Sets the files' steps that make the step that has been begun, as another ring of the node has chosen
  /// them.
  void make_of(std::span<const std::int64_t> leads);
  /// Returns the leads of the files' steps that the node knows.
  [[nodiscard]] std::vector<std::int64_t> steps();
  /// True if fewer steps are known than there are slots.
  [[nodiscard]] bool lacks_steps();
  /// True if it is the caller's turn to look for new steps. One worker of the node looks at a time, and less
  /// and less often while no steps come.
  bool may_look();
  /// Adds steps that the files have now.
  void add_steps(std::span<const std::int64_t> leads);
  /// Removes steps that the writer has taken back. They may come again. The step that has been begun keeps
  /// its slots.
  void forget_steps(std::span<const std::int64_t> leads);
  /// Has records of the files' step at `lead` read anew if they have another version than `version`. Call it
  /// before a rank begins step number `step`: it does nothing once a rank has begun it.
  void renew(std::int64_t step, std::int64_t lead, std::uint64_t version);

  enum class State : std::uint32_t { empty, wanted, loading, ready, failed };
  /// A task that the caller has claimed, and must end with finish() or put_back().
  struct Claim {
    Index slot = 0;
    Index level = 0;  // position in the field's levels
    std::int64_t lead = 0;
    std::span<std::byte> values;
  };
  /// Returns the distance, in steps from now, of the first step with a task to claim, or nothing if there is
  /// none.
  [[nodiscard]] std::optional<Index> soonest();
  /// Claims a task of a step that is needed at most `ahead` steps from now (0: now). Returns nothing if there
  /// is none.
  std::optional<Claim> claim(Index ahead);
  /// Claims this task. Returns nothing if it needs no work or another worker has claimed it.
  std::optional<Claim> claim(Index slot, Index level);
  /// Gives a claimed task back, for the next worker.
  void put_back(const Claim& claim);
  /// Ends a claimed task. `version` is that of the step that the record belongs to; 0: the step cannot be
  /// taken back.
  void finish(const Claim& claim, const Status& status, std::uint64_t version);

  /// Returns the slot of a files' step at `lead`, or nothing if it has none. It stays until the next begin().
  [[nodiscard]] std::optional<Index> find(std::int64_t lead);
  [[nodiscard]] State state(Index slot, Index level) const;
  /// Returns the version of the step that a ready task has read.
  [[nodiscard]] std::uint64_t version(Index slot, Index level) const;
  /// Returns the error of a failed task.
  [[nodiscard]] Status error(Index slot, Index level) const;
  /// Returns the values of a ready task: those inside the definition's `cut`, in C order.
  [[nodiscard]] const std::byte* values(Index slot, Index level) const;
  /// Rings when a task has ended or steps were added.
  [[nodiscard]] comm::Doorbell& bell() { return head().bell; }

 private:
  static constexpr std::int32_t unwanted = -1;
  static constexpr std::size_t text_bytes = 1000;
  struct Head {
    node::SharedLock lock;
    comm::Doorbell bell;
    Bytes definition_bytes = 0;
    // The lock guards the members below, and the slots.
    std::int64_t step = -1;
    std::int64_t lead = 0;
    bool is_backward = false;
    bool has_started = false;  // the program has begun a step
    bool lacks_slot = false;   // a wanted step waits for a slot that a worker uses
    Index leads = 0;           // number of known steps
    // The files' steps that make the step at `lead`: none are chosen yet, one, or the two around it.
    std::array<std::int64_t, 2> chosen{};
    Index chosen_count = 0;
    std::int64_t next_look = 0;
    std::int64_t pause = 0;
  };
  struct Slot {
    std::int64_t lead = 0;
    std::int32_t position = unwanted;  // position among the wanted steps
    bool is_used = false;
    bool is_stale = false;  // the writer has taken the step back while it was begun
  };
  struct alignas(64) Task {
    std::atomic<State> state{State::empty};
    Code code = Code::ok;
    std::int32_t error_number = 0;
    std::uint64_t version = 0;
    char text[text_bytes] = {};
  };
  /// The offsets of the parts of the memory.
  struct Places {
    Bytes definition = 0, leads = 0, slots = 0, tasks = 0, values = 0, end = 0;
  };
  static Places places_of(Bytes definition_bytes, Index leads, Index slots, Index levels, Bytes level_bytes);

  [[nodiscard]] Head& head() const { return *reinterpret_cast<Head*>(memory_); }
  [[nodiscard]] Slot& slot(Index number) const {
    return reinterpret_cast<Slot*>(memory_ + places_.slots)[number];
  }
  [[nodiscard]] Task& task(Index slot, Index level) const {
    return reinterpret_cast<Task*>(memory_ + places_.tasks)[slot * levels_ + level];
  }
  [[nodiscard]] std::span<std::int64_t> leads() const {
    return {reinterpret_cast<std::int64_t*>(memory_ + places_.leads), static_cast<std::size_t>(head().leads)};
  }
  /// The caller of each of these functions has the lock.
  Result<std::vector<std::int64_t>> choose();
  [[nodiscard]] std::vector<std::int64_t> wanted();
  bool merge(std::span<const std::int64_t> more);
  void plan();
  void plan_again();
  void drop_stale();
  [[nodiscard]] bool has_task(Index number) const;
  [[nodiscard]] std::optional<Index> first_with_task(Index ahead);
  [[nodiscard]] bool is_busy(Index number) const;
  void take_for(Slot& slot, Index number, std::int64_t lead);
  [[nodiscard]] Claim claimed(Index slot, Index level);

  std::byte* memory_;
  comm::Transport& transport_;
  FilesDefinition files_;
  FieldDefinition field_;
  Index slots_ = 0;
  Index levels_ = 0;
  Bytes level_bytes_ = 0;
  Places places_;
};

}  // namespace tailrace::input
