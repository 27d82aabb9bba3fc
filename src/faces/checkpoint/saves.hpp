// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "faces/checkpoint/capture/capture_memory.hpp"
#include "faces/checkpoint/context.hpp"
#include "faces/checkpoint/items.hpp"
#include "faces/checkpoint/saving.hpp"
#include "faces/checkpoint/seal_gate.hpp"

namespace tailrace::checkpoint {

/// The stage that a save has reached, as far as one rank knows.
enum class Progress { committed = 0, none = 1, captured = 2, written = 3, failed = 4, dropped = 5 };

/// The memory into which a rank's asynchronous saves are captured, and the way of capturing. All functions
/// are local. Each rank decides for itself whether it captures by copy on write: the saved file is the same
/// either way.
class SaveCapture {
 public:
  explicit SaveCapture(const Context& context)
      : context_(context), memory_(context.session.memory().budget()) {}

  /// Decides whether this rank captures by copy on write: if the option asks for it and the system allows it.
  void open();
  /// Tells that the first save will probably have this many bytes of this rank. A thread then makes memory
  /// for it.
  void expect(Bytes bytes);
  /// Tells that the first save will probably have these items.
  void expect(const std::vector<NamedItem>& items);
  /// Reserves memory for the capture. Call it before the ranks' vote. Returns Code::memory if the capture
  /// does not fit.
  Status reserve(Saving& saving) { return memory_.reserve(bytes_of(saving)); }
  /// Returns the memory that take() needs of the node.
  [[nodiscard]] node::MemoryNeed need() const { return memory_.need(context_.session.topology().node()); }
  void give_back(bool all) { memory_.give_back(all); }
  /// Captures the save. Call it after the ranks' vote.
  void take(Saving& saving);
  /// True if take() captures everything before it returns.
  [[nodiscard]] bool is_at_once() const { return copy_on_write_ == nullptr; }

 private:
  [[nodiscard]] Bytes bytes_of(Saving& saving) const;
  void prepare(Bytes bytes);
  void tell_fallback(const Status& why);

  const Context& context_;
  capture::CaptureMemory memory_;
  bool knows_items_ = false;  // expect() was told the items: a number of bytes counts no more
  std::unique_ptr<capture::CopyOnWrite> copy_on_write_;  // nullptr: captures are made at once
  bool fallback_told_ = false;
};

/// A save on one rank, after the vote that begins it. It goes on while the program computes, until the ranks
/// have voted on its commit.
class RunningSave {
 public:
  /// The save will vote on `line`, and queue its tasks under `key`.
  RunningSave(Context& context, comm::Line& line, executor::Key key, std::unique_ptr<Saving> saving);

  /// Local. Captures the items if there is a `capture`, and begins to write. `begun` is the verdict of the
  /// vote that begins the save. After a failure here, this rank writes nothing: the vote on the parts tells
  /// all ranks.
  void start(const comm::Verdict& begun, SaveCapture* capture);
  /// Takes the next step, unless it has to wait for a task or a vote. Returns true if something moved.
  bool advance();
  /// Returns the Status of the save, the same on every rank, once it has ended.
  [[nodiscard]] const std::optional<Status>& verdict() const { return verdict_; }
  /// True if this rank has written and synchronised its part.
  [[nodiscard]] bool is_written() const { return stage_ >= Stage::agreeing; }
  void cancel() { saving_->cancel(); }
  /// Local, before the end of the session. Lets no thread wait for steps any more.
  void stop_waiting() {
    if (gate_) gate_->shut();
  }
  /// Takes the failures of the outputs, of which one will be closed.
  void take_failures();
  /// True on rank 0 if the save fails because a step that it covers has failed.
  [[nodiscard]] bool lacks_step() const { return !unknown_.is_ok(); }
  /// Local, after the end. Closes the files, and removes them if the save failed and no other save will take
  /// their place.
  void close();
  [[nodiscard]] const SavePlan& plan() const { return saving_->plan(); }
  /// Returns the nanoseconds since the save began.
  [[nodiscard]] std::int64_t age() const { return now() - began_; }
  /// Returns the nanoseconds that this rank has worked on the save.
  [[nodiscard]] std::int64_t worked() const { return worked_; }

 private:
  /// In the order of time. Some are left out: making_room if there is no link, waiting_for_outputs if
  /// nothing has to be waited for. The stage `sealing` then includes the writing. If the thread waits at a
  /// gate, the stage `writing` includes that, and the sealing if the gate opens.
  enum class Stage { making_room, writing, waiting_for_outputs, sealing, agreeing, committing, confirming };
  /// The last task that the writing thread was given, and its result.
  struct Task {
    std::atomic<bool> done{false};
    Status status;
    std::int64_t nanoseconds = 0;
  };

  [[nodiscard]] std::int64_t now() const { return context_.session.line().now(); }
  void place(const comm::Verdict& begun);
  void clean_up_undo_files();
  void write();
  void submit(std::function<Status(Saving&)> body, std::int64_t delay = 0);
  void vote(Stage next, const Status& mine);
  void after_task();
  bool know_outputs();
  bool settle_outputs();
  bool decide_gate();
  void after_vote(const Status& verdict);

  Context& context_;
  comm::Line& line_;
  const executor::Key key_;
  std::unique_ptr<Saving> saving_;
  ByteVector outputs_;
  Stage stage_ = Stage::writing;
  std::shared_ptr<Task> task_;
  std::shared_ptr<SealGate> gate_;  // set if the thread itself waits for the outputs
  std::uint64_t vote_ = 0;
  const std::int64_t began_;
  std::int64_t delay_ = 0;   // of the first write
  std::int64_t worked_ = 0;  // by this rank's capture and tasks: the cost of a save, without waits
  Status unknown_;           // the failure of a step, which fails the save
  std::optional<Status> verdict_;
};

/// The saves of a checkpoint on one rank. At most one runs behind the program.
class Saves {
 public:
  Saves(Context& context, comm::LineNumber number);
  ~Saves();
  Saves(const Saves&) = delete;
  Saves& operator=(const Saves&) = delete;

  [[nodiscard]] SaveCapture& capture() { return capture_; }
  /// Collective. Begins to save the items. Blocks until the save has ended, or with `async` until the items
  /// are captured. The Status is the same on every rank.
  Status save(const Items& named, bool async);
  [[nodiscard]] bool is_running() const { return running_.has_value(); }
  void cancel() {
    if (running_) running_->cancel();
  }
  /// Blocks until no save runs. `call` is for the watchdog.
  void wait(const char* call);
  /// Returns the failure of the last save if no call has returned it yet.
  Status take_failure();
  /// Notes that a save was dropped, or that a generation was loaded.
  void leave_out() { left_out_ = true; }
  void note_loaded(std::int64_t generation);
  [[nodiscard]] Progress progress() const;
  void take_failures() {
    if (running_) running_->take_failures();
  }
  /// Local. Lets no thread wait for steps any more.
  void stop_waiting() {
    if (running_) running_->stop_waiting();
  }
  [[nodiscard]] const Status& last_failure() const { return failure_; }
  [[nodiscard]] std::int64_t generation() const { return generation_; }

 private:
  bool advance();
  void end_running();
  void note_failure(const Status& failure, bool told);
  /// On the first rank alone: decides which generation the save is, and its place.
  Status decide(SavePlan& plan);

  Context& context_;
  comm::Line line_;
  const executor::Key key_;
  const int work_;
  SaveCapture capture_;
  std::optional<RunningSave> running_;
  Progress progress_ = Progress::none;  // of the last save that was begun
  bool left_out_ = false;               // a later save was dropped
  Status failure_;                      // of the last save
  bool failure_told_ = true;
  bool failure_is_of_step_ = false;  // on rank 0
  std::int64_t generation_ = 0;
};

}  // namespace tailrace::checkpoint
