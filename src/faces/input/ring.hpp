// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "faces/input/definition.hpp"
#include "ground/comm/doorbell.hpp"
#include "ground/comm/transport.hpp"
#include "ground/node/shared_lock.hpp"

namespace tailrace::input {

/// The decoded records of one field on one node: a ring of slots in memory that processes share, one for each
/// step that is needed now or soon. Each level of a slot is a task. A worker claims it, decodes the record
/// into the slot, and says that it is ready or has failed. The memory also has the definitions of files and
/// field, so that a process that has nothing but the memory can work on it.
///
/// A slot keeps its step as long as the step that the ranks have begun last needs it. All ranks have got from
/// a step before any of them begins the next one: nobody reads a slot that is taken for another step.
class Ring {
 public:
  /// Returns the bytes of memory that a ring needs.
  static Bytes bytes_for(const FilesDefinition& files, const FieldDefinition& field);
  /// Makes a ring in memory that nobody uses yet. Other processes see it once the caller has told them.
  static void make(std::byte* memory, const FilesDefinition& files, const FieldDefinition& field);
  /// Uses the ring that make() has made there. `transport` lets others run while the caller waits.
  Ring(std::byte* memory, comm::Transport& transport);

  [[nodiscard]] const FilesDefinition& files() const { return files_; }
  [[nodiscard]] const FieldDefinition& field() const { return field_; }

  /// Says that a rank has come to step number `step` (from 0), at `lead`: the slots are planned anew. Tasks
  /// of that step that had failed while they were read ahead are done once more. Returns the lead of the rank
  /// that came first.
  std::int64_t begin(std::int64_t step, std::int64_t lead);
  /// Returns the number of the step that was begun last; -1 before the first.
  [[nodiscard]] std::int64_t step();
  /// Says that the step with the number `step`, which this rank has not begun, will be at `lead`. Does
  /// nothing if another rank has begun it.
  void seek(std::int64_t step, std::int64_t lead);

  /// Does FilesDefinition::around() with the steps that the node knows of by now. For the step that has been
  /// begun the first answer that names steps stands: all ranks make it of the same ones, whatever comes
  /// later.
  [[nodiscard]] Result<std::vector<std::int64_t>> around(std::int64_t lead);
  /// Says from which steps of the files the step that has been begun is made: another ring of the node has
  /// told.
  void make_of(std::span<const std::int64_t> leads);
  /// Returns the steps that the node knows of.
  [[nodiscard]] std::vector<std::int64_t> steps();
  /// Returns true if fewer steps are there than are wanted.
  [[nodiscard]] bool lacks_steps();
  /// Returns true if it is the caller's turn to look for new steps. One worker of the node does so, and more
  /// and more seldom while none come.
  bool may_look();
  /// Adds the steps that the files have by now.
  void add_steps(std::span<const std::int64_t> leads);
  /// Says that the writer has taken these steps back: they may come once more. The open step keeps what it
  /// has.
  void forget_steps(std::span<const std::int64_t> leads);
  /// Says that the step of the files at `lead` has this version, before a rank begins step number `step`:
  /// records of another one are read anew. Does nothing if another rank has begun the step.
  void renew(std::int64_t step, std::int64_t lead, std::uint64_t version);

  enum class State : std::uint32_t { empty, wanted, loading, ready, failed };
  /// A task that the caller has claimed, and ends with finish().
  struct Claim {
    Index slot = 0;
    Index level = 0;  // position in the field's levels
    std::int64_t lead = 0;
    std::span<std::byte> values;
  };
  /// Returns how many steps from now the first one is needed that has a task to claim. Returns none if there
  /// is none.
  [[nodiscard]] std::optional<Index> soonest();
  /// Claims a task of a step that is needed at most `ahead` steps from now (0: now), or nothing.
  std::optional<Claim> claim(Index ahead);
  /// Claims this task, if nobody has yet.
  std::optional<Claim> claim(Index slot, Index level);
  /// Leaves a task that was claimed to the next worker.
  void put_back(const Claim& claim);
  /// `version` is that of the step from which the record is; 0: it cannot be taken back.
  void finish(const Claim& claim, const Status& status, std::uint64_t version);

  /// Returns the slot of a step that is needed now, if it has one. It stays until the next begin().
  [[nodiscard]] std::optional<Index> find(std::int64_t lead);
  [[nodiscard]] State state(Index slot, Index level) const;
  /// Returns the version of the step that a task that is ready has read.
  [[nodiscard]] std::uint64_t version(Index slot, Index level) const;
  /// Returns the error of a task that has failed.
  [[nodiscard]] Status error(Index slot, Index level) const;
  /// Returns the values of a task that is ready: those of the definition's `cut`, in C order.
  [[nodiscard]] const std::byte* values(Index slot, Index level) const;
  /// Rings when a task has ended.
  [[nodiscard]] comm::Doorbell& bell() { return head().bell; }

 private:
  static constexpr std::int32_t unwanted = -1;
  static constexpr std::size_t text_bytes = 1000;
  struct Head {
    node::SharedLock lock;
    comm::Doorbell bell;
    Bytes definition_bytes = 0;
    // The lock guards what follows, and the slots.
    std::int64_t step = -1;
    std::int64_t lead = 0;
    bool is_backward = false;
    bool has_started = false;  // the program has begun a step, or sought one
    bool lacks_slot = false;   // a step that is wanted waits for a slot that is busy
    Index leads = 0;           // steps that are known
    // The step at `lead` is made of these steps of the files: none are chosen yet, one, or the two around it.
    std::array<std::int64_t, 2> chosen{};
    Index chosen_count = 0;
    std::int64_t next_look = 0;
    std::int64_t pause = 0;
  };
  struct Slot {
    std::int64_t lead = 0;
    std::int32_t position = unwanted;  // among the steps that are wanted now
    bool is_used = false;
    bool is_stale = false;  // the writer has taken the step back while it was open
  };
  struct alignas(64) Task {
    std::atomic<State> state{State::empty};
    Code code = Code::ok;
    std::int32_t error_number = 0;
    std::uint64_t version = 0;
    char text[text_bytes] = {};
  };
  /// The offsets at which the parts of the memory begin.
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
  /// The caller of each of these has the lock.
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
