// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faces/checkpoint/context.hpp"
#include "faces/checkpoint/items.hpp"
#include "faces/checkpoint/load.hpp"
#include "faces/checkpoint/saves.hpp"

namespace tailrace::checkpoint {

/// A checkpoint on one rank. See include/tailrace/checkpoints.h for the contract of each call. create(),
/// begin(), end(), wait() and close() are collective and return the same Status on every rank.
class Checkpoint {
 public:
  enum class Direction { save, load };

  /// Collective. Returns the same Status on every rank. `files` has the names of the copies; if it is empty,
  /// they are NAME.0, NAME.1, ... `how` has the options as the program gave them. All ranks must give the
  /// same. `session` and `outputs` must outlive the checkpoint.
  static Result<std::unique_ptr<Checkpoint>> create(session::Session& session, Outputs& outputs,
                                                    const std::string& name, const std::string& how,
                                                    Result<Options> options,
                                                    std::vector<std::string> files = {});

  Status begin(Direction direction, bool* found);
  void item(NamedItem item);
  /// Keeps an error, if it is the bracket's first: end() returns it.
  void latch(const Status& status) { items_.latch(status); }
  /// Local. Tells that the first save will probably have this many bytes of this rank, or these items: memory
  /// to capture them can then be made early.
  void expect(Bytes bytes) { saves_.capture().expect(bytes); }
  void expect(const std::vector<NamedItem>& items) { saves_.capture().expect(items); }
  Status end() { return end(context_.options.async); }
  /// Collective. As end(), but for this save `async` replaces the option async=. The Status is the same on
  /// every rank.
  Status end(bool async);
  /// Local. Call it when a stream has been closed, while it is still among the outputs: a running save takes
  /// its failures.
  void take_failures() { saves_.take_failures(); }
  /// Collective. As end() of a save without data: `restart` is the program's own restart file of this
  /// generation, or "". The first rank's counts.
  Status end_commit(const std::string& restart);
  [[nodiscard]] bool in_bracket() const { return bracket_.has_value(); }
  /// Collective. The Status is the same on every rank.
  Status cover(const std::string& path);
  Status wait();
  Status close();
  [[nodiscard]] const Saves& saves() const { return saves_; }
  /// Local, in a process that ends without close(). Its threads write to the end, and wait for no step.
  void stop_waiting() { saves_.stop_waiting(); }

 private:
  Checkpoint(Context context, comm::LineNumber number)
      : context_(std::move(context)), saves_(context_, number), load_(context_) {}
  Status open_slots(std::vector<std::string> files, Packer& told);
  Status take_lock(storage::Target& target);
  void tell_copies(const std::vector<Found>& found, Packer& told) const;
  Status check_copies(const std::string& call, Unpacker& told);
  Status tell_recorded(const std::vector<Found>& found, Packer& told) const;
  Status keep_recorded(Unpacker& told);
  Status end_load();
  Status loaded(const Copy& copy);

  Context context_;
  bool goes_on_ = false;        // a load or a save has succeeded
  std::shared_ptr<void> sign_;  // of a killed run, on the first rank: its end puts it back unless goes_on_
  std::shared_ptr<void> lock_;  // on the first rank; kept until no save runs
  Saves saves_;
  Load load_;
  Items items_;
  std::optional<Direction> bracket_;
  bool dropped_ = false;  // the save of this bracket was dropped
};

}  // namespace tailrace::checkpoint
