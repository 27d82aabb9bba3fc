// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>

#include "engine/pipeline/context.hpp"

namespace tailrace::pipeline {

/// The files of a stream as its root knows them. Begins, cuts, finishes and announces them through the
/// ledger, whose calls are jobs of each file's own key: a file that waits for space or for its hook does not
/// hold up the others.
class StreamFiles {
 public:
  using Done = std::function<void(const Status&)>;
  struct File {
    bool begun = false;
    bool beginning = false;
    bool left_open = false;    // the run before has left it: must be finished, begun or not
    Begun start;               // what the ledger's begin_file returned
    bool cutting = false;      // nothing is placed meanwhile
    Bytes end = 0;             // behind the last step that was not dropped
    Bytes committed = 0;       // behind the last step in the index
    int steps = 0;             // number of steps without a verdict yet
    bool lacks_steps = false;  // one of its steps has failed
    Status broken;             // why nothing may be written into it any more
  };

  /// Asked before a file is finished: true if no server has it open that writes it together with others.
  using IsClosed = std::function<bool(const std::string& path)>;
  /// `on_broken` is called with the reason if no step can succeed any more, including steps that have begun.
  StreamFiles(Context& context, const Opening& opening, Result<std::unique_ptr<Ledger>> ledger,
              Done on_broken, IsClosed is_closed);
  /// Returns why no step can succeed, or OK. A stream without a ledger is broken from the beginning.
  [[nodiscard]] const Status& broken() const { return broken_; }
  /// Returns the file of the next step. Files before it are complete once their steps have verdicts.
  Result<std::string> enter(std::int64_t lead);
  File& at(const std::string& path) { return files_[path]; }
  /// Returns true if the file was begun and may be written. Otherwise begins it, once no other file is being
  /// finished, for the step at `lead`, which takes `expected` bytes at least. `done` gets the outcome of
  /// beginning it.
  bool is_ready(const std::string& path, std::int64_t lead, Bytes expected, Done done);
  /// Commits the step if `synced` is OK. If it is not, or the commit fails, cuts the file behind the last
  /// committed step.
  void commit(const StepEntry& entry, const Status& synced, Done done);
  /// Looks whether the file is still this run's (Ledger::check_owner).
  void check_owner(const std::string& path, Done done);
  /// Cuts the file at `size`. A file that cannot be cut is broken.
  void cut(const std::string& path, Bytes size, std::function<void()> done);
  /// Returns true if a file is being finished, or is to be.
  [[nodiscard]] bool finishes() const;
  /// Has advance() finish the files that are not whole once more, at most once for each step. Returns false
  /// if there is nothing to try.
  bool try_again(std::int64_t step);
  /// Returns why a file is not whole, or OK if all are.
  [[nodiscard]] Status not_whole() const;
  /// Finishes the next file to which no step can come any more: `closing` if none comes to any.
  /// `knows_failures`: the program has heard of all failed steps, and has gone on all the same. Only then is
  /// a file that lacks steps announced. A program that ends when it hears of them writes the file again,
  /// whole, when it is restarted.
  bool advance(bool closing, bool knows_failures);
  /// Returns true if all files are finished, or were tried for the last time. Asked while the stream closes.
  [[nodiscard]] bool are_over() const;
  /// Returns why a file is not finished or not announced, or OK if all are.
  [[nodiscard]] Status unfinished() const;

 private:
  /// A file that could not be finished or announced. A file that is not whole is tried again before each step
  /// that follows. A whole file is tried again with the next file, and when the stream is closed. A file
  /// without an error waits until it may be announced.
  struct Unfinished {
    Status why;
    bool is_whole = false;  // true: it only was not announced
    bool try_now = false;
    bool lacks_steps = false;

    [[nodiscard]] bool only_waits() const { return is_whole && why.is_ok(); }
  };

  [[nodiscard]] bool is_complete(const std::string& path, const File& file, bool closing) const {
    return file.steps == 0 && (closing || path != current_path_);
  }
  bool try_all(bool whole_ones);
  /// Finishes a file that was taken out of `files_`, or that is tried again.
  void start_finish(const std::string& path, bool begun, bool lacks_steps);
  void on_finished(const std::string& path, bool begun, Unfinished now, bool announced);
  void run(const std::string& path, std::function<Status(Ledger&)> job, Done done);

  Context& context_;
  const Opening& opening_;
  Status broken_;
  std::unique_ptr<Ledger> ledger_;
  Done on_broken_;
  IsClosed is_closed_;
  std::map<std::string, File> files_;
  std::string current_path_;
  bool finishing_ = false;  // a file is being finished, on the ledger
  bool knows_failures_ = false;
  std::map<std::string, Unfinished> unfinished_;
  std::int64_t tried_for_ = -1;  // the last step before which files were tried again
  bool tried_last_ = false;
};

}  // namespace tailrace::pipeline
