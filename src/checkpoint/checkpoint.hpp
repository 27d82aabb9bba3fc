// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays/array.hpp"
#include "capture/capture_memory.hpp"
#include "checkpoint/part_directory.hpp"
#include "checkpoint/saving.hpp"
#include "checkpoint/service.hpp"
#include "checkpoint/slots.hpp"

namespace tailrace::checkpoint {

/// The outputs of the session. A checkpoint records how far they had come. Every rank makes these calls; they
/// are local.
class Outputs {
 public:
  /// One rank's contribution to the vote on a save.
  struct Standing {
    ByteVector told;  // told to the other ranks, which do not know it
    std::function<Status()>
        make_durable;  // runs on any thread; the rank's part counts only after it. Empty: nothing to do
  };
  virtual ~Outputs() = default;
  /// Blocks until the system has everything that this rank had to write so far. Fails if a write failed, and
  /// if the checkpoint cannot record one of the outputs.
  virtual Result<Standing> stand(journal::Overwritten overwritten) = 0;
  /// Returns OK if a checkpoint can record together all outputs that the ranks have told of.
  [[nodiscard]] virtual Status check(const std::vector<ByteVector>& told,
                                     journal::Overwritten overwritten) const = 0;
  /// Returns how far the outputs are now. `told` has each rank's Standing::told.
  virtual ByteVector positions(const std::vector<ByteVector>& told) = 0;
  /// Returns true if storage holds the outputs as far as `positions` says.
  [[nodiscard]] virtual bool are_settled(const ByteVector& positions) const = 0;
  /// Returns `positions` with the failures among them that are known by now.
  [[nodiscard]] virtual ByteVector with_failures(const ByteVector& positions) const = 0;
  /// From now on until the session ends, the outputs keep the bytes of `positions` before the program writes
  /// over them. A program that loads this generation of the checkpoint, or an earlier one that has recorded
  /// the bytes, finds them.
  virtual void keep_since(const std::string& checkpoint, std::int64_t generation,
                          const ByteVector& positions) = 0;
  /// Any thread. Returns the oldest generation whose undo files are needed to go on from `positions` of a
  /// generation; all later ones are needed, too.
  [[nodiscard]] virtual std::int64_t oldest_undo(const ByteVector& positions,
                                                 std::int64_t generation) const = 0;
  /// Makes the outputs go on from what the copy has recorded.
  virtual Status resume(const Copy& copy) = 0;
};

/// The options of a checkpoint, read from an options string.
struct Options {
  enum class Busy { wait, drop, replace };
  enum class Capture { copy, copy_on_write };
  int keep = 2;
  std::int64_t keep_every = 0;
  Mode mode = Mode::parallel;
  bool async = true;
  Busy busy = Busy::wait;
  Capture capture = Capture::copy;
  journal::Overwritten overwritten = journal::Overwritten::refuse;
  Compression compression;
};
/// Returns Code::settings with the nearest valid key or value.
Result<Options> parse_options(const std::string& text);

/// The stage that a save has reached, as far as one rank knows.
enum class Progress { committed = 0, none = 1, captured = 2, written = 3, failed = 4, dropped = 5 };

/// An item as the program names it.
struct NamedItem {
  std::string name;
  arrays::Array array;  // its layout lives in `scalar` if there is no other
  std::shared_ptr<const layout::Layout> scalar;
  std::vector<Index> halo;
};

/// A save on its way behind the program.
struct Behind {
  enum class Stage { writing, waiting_for_outputs, sealing, agreeing, committing, confirming };
  /// The last task that the writing thread was given, and its result.
  struct Task {
    std::atomic<bool> done{false};
    Status status;
    std::int64_t nanoseconds = 0;
  };
  std::unique_ptr<Saving> saving;
  ByteVector outputs;
  Stage stage = Stage::writing;
  std::shared_ptr<Task> task;
  std::uint64_t vote = 0;
  std::int64_t began = 0;   // nanoseconds of the session's clock
  std::int64_t worked = 0;  // time of this rank's capture and tasks: the cost of a save, waits left out
};

/// A checkpoint on one rank. See include/tailrace/checkpoints.h for the contract of each call. create(),
/// begin(), end(), wait() and close() are collective and return the same Status on every rank.
class Checkpoint {
 public:
  enum class Direction { save, load };

  /// Collective. Returns the same Status on every rank. `files` has the names of the copies; if it is empty,
  /// they are NAME.0, NAME.1, ... `how` has the options as the program gave them. All ranks must give the
  /// same.
  static Result<std::unique_ptr<Checkpoint>> create(Service& service, Outputs& outputs,
                                                    const std::string& name, const std::string& how,
                                                    Result<Options> options,
                                                    std::vector<std::string> files = {});
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  Status begin(Direction direction, bool* found);
  void item(NamedItem item);
  /// Keeps an error for end().
  void latch(const Status& status);
  /// Local. Says that the first save will probably have this many bytes of this rank. A thread then makes
  /// memory for it.
  void expect(Bytes bytes);
  /// Local. Says that the first save will probably have these items.
  void expect(const std::vector<NamedItem>& items);
  Status end();
  /// Collective. As end(), but for this save `async` replaces the option async=. The Status is the same on
  /// every rank.
  Status end(bool async);
  [[nodiscard]] bool in_bracket() const { return bracket_.has_value(); }
  Status wait();
  Status close();
  [[nodiscard]] Progress progress() const;
  [[nodiscard]] const Status& last_failure() const { return failure_; }
  [[nodiscard]] std::int64_t generation() const { return generation_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Checkpoint(Service& service, Outputs& outputs, comm::LineNumber number, std::string name, Options options);
  void open_copy_on_write();
  void tell_fallback(const Status& why);
  Status open_slots(std::vector<std::string> files);
  Status tell_recorded(Packer& told) const;
  void keep_recorded(Unpacker& told);

  // Saving.
  Status begin_save();
  Status end_save(bool async);
  [[nodiscard]] Result<std::vector<SaveItem>> save_items(const std::vector<NamedItem>& items) const;
  [[nodiscard]] Bytes capture_bytes(Saving& saving) const;
  void prepare(Bytes bytes);
  void capture(Saving& saving);
  void start(std::unique_ptr<Saving> saving, const comm::Verdict& verdict, bool async);
  Status place_parts(const comm::Verdict& verdict);
  void clean_up_undo_files(Saving& saving);
  void submit(Status (*body)(Saving&), std::int64_t delay = 0);
  bool advance();
  void after_task();
  void after_vote(const Status& verdict);
  void end_behind(const Status& status);
  void wait_behind(const char* call);
  Status take_failure();

  // Loading.
  Status begin_load(bool* found);
  Status end_load();
  using Plan = std::shared_ptr<const arrays::ArrayPlan>;
  Status load_newest(const std::vector<Plan>& plans);
  ByteVector next_candidate();
  Status take_next(const std::string& call, Status mine);
  Result<Copy> with_undo_files(Copy copy);
  void pass_over(const std::string& path, const Status& why);
  void pass_over_unfinished(const std::string& path) const;
  [[nodiscard]] Status none_whole() const;
  Status take_copy(const comm::Verdict& verdict);
  [[nodiscard]] Status check_items(const Copy& copy) const;
  /// Makes the plan of each item, in their order.
  Status make_plans(std::vector<Plan>& plans) const;
  // ---- finding the parts that a rank needs
  Status check_parts();
  Status read_share(PartDirectory::Messages& told);
  Status find_parts(const std::vector<Plan>& plans, Status mine);
  [[nodiscard]] Result<std::vector<PartDirectory::Share>> shares() const;
  Status read_tables(const std::map<std::int32_t, PartPlace>& parts);
  [[nodiscard]] ByteVector replicated_tables(const std::vector<Plan>& plans) const;
  Status take_tables(const ByteVector& bytes);
  Status read_items(const Copy& copy, const std::vector<Plan>& plans);
  Status loaded(const Copy& copy);

  Service& service_;
  Outputs& outputs_;
  const std::string name_;
  const Options options_;
  comm::Line line_;
  const executor::Key key_;
  int work_ = 0;
  capture::CaptureMemory memory_;
  bool knows_items_ = false;                             // the contents of the next save were told, or loaded
  std::unique_ptr<capture::CopyOnWrite> copy_on_write_;  // nullptr: captures are made at once
  bool fallback_told_ = false;
  Uuid run_;

  std::optional<Direction> bracket_;
  bool dropped_ = false;  // the save of this bracket was dropped
  std::vector<NamedItem> items_;
  Status latched_;

  std::optional<Behind> behind_;
  Progress progress_ = Progress::none;  // of the last save that was begun
  bool left_out_ = false;               // a save that came after it was left out
  Status failure_;                      // of the last save
  bool failure_told_ = true;
  std::int64_t generation_ = 0;

  std::optional<Copy> copy_;                     // the copy that the bracket loads
  std::optional<PartDirectory> part_directory_;  // of that copy
  std::vector<Table> own_tables_;                // the tables that this rank has read to check that copy
  // Only the first rank uses these.
  std::optional<Slots> slots_;
  std::shared_ptr<void> lock_;
  std::vector<Found> candidates_;  // copies that may still be loaded, the newest first
  std::string broken_;             // copies that cannot be loaded, and why
  Status not_given_;               // why storage did not give one of the copies
};

}  // namespace tailrace::checkpoint
