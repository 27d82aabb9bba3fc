// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "faces/files/group.hpp"
#include "faces/input/field.hpp"
#include "faces/input/files.hpp"
#include "faces/input/leads.hpp"
#include "faces/input/loader.hpp"

namespace tailrace::input {

/// The rings of an input stream's fields, on a compute rank: makes them, reads ahead into them by an I/O
/// thread of this rank if no server does, and looks for steps that come while the stream is open.
class Rings final {
 public:
  /// `stream` is the stream's name in texts. Files are opened with `open`.
  Rings(std::shared_ptr<files::Group> group, std::string stream, FilesDefinition files, Opener open);
  /// Blocks until the thread reads no more.
  ~Rings();
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;

  [[nodiscard]] const FilesDefinition& files() const { return files_; }
  /// Counts of the records that this rank has read, and of those that servers have told of.
  [[nodiscard]] const LoadCounts& counts() const { return counts_; }

  /// Collective over the ranks of the node. Makes the field's ring, unless they need no part of the field.
  Status make(const FieldDefinition& definition, const std::string& call, Field& field);
  /// Local. Adds a field that all ranks have defined. It must outlive this.
  void add(Field& field);
  /// Local. Takes the ring back: the server does not use it any more on return.
  void take_back(Field& field);

  /// Local. Returns the ring of the first field that this node needs, or nullptr.
  [[nodiscard]] Ring* first() const;
  /// Local. Returns the leads of the files' steps that make the step at `lead`; see FilesDefinition::around.
  [[nodiscard]] Result<std::vector<std::int64_t>> around(std::int64_t lead) const;
  /// Local. Begins the step in all rings. Returns the leads of the files' steps that make it, as the first
  /// ring has chosen them. `disagreed`: nodes have made the step before of different ones, so that this node
  /// may not know all steps.
  Result<std::vector<std::int64_t>> begin(std::int64_t step, std::int64_t lead, bool disagreed);
  /// Local. Calls Ring::seek on all rings.
  void seek(std::int64_t step, std::int64_t lead);

  /// Local. Wakes the thread that reads ahead, if this rank has one and there is work.
  void read_ahead();
  /// Local. Looks once for new steps, if it is this rank's turn on the node. `ring` is first(). The stream
  /// must follow its files.
  void look_for_steps(Ring& ring);
  /// Local. Returns why the last look could not read a file, or success.
  [[nodiscard]] Status last_failure();
  /// Local. Blocks until the thread reads no more. It does not begin again.
  void stop();

 private:
  [[nodiscard]] std::optional<int> serving_rank() const;
  void hand_over(Field& field);
  void renew(std::int64_t step, std::int64_t lead, bool disagreed);
  void forget_steps(const std::vector<std::int64_t>& gone);
  [[nodiscard]] std::vector<Loader*> loaders(bool served_too);
  bool has_work_ahead();
  void work();
  bool follow();

  const std::shared_ptr<files::Group> group_;
  const std::string stream_;
  const FilesDefinition files_;
  const Opener open_;
  const std::shared_ptr<Files> opened_;
  LoadCounts counts_;
  std::vector<Field*> fields_;
  std::mutex mutex_;                    // guards fields_: the thread reads, add() writes
  std::atomic<bool> is_busy_{false};    // the thread has a job
  std::atomic<std::int64_t> asked_{0};  // number of times it was asked to look
  std::atomic<bool> is_closed_{false};
  std::mutex look_mutex_;
  const std::unique_ptr<Follower> follower_;  // with follow=on; look_mutex_ guards it
  DrawnScratch scratch_;                      // of the thread
  const executor::Key key_;                   // of the thread's jobs
};

}  // namespace tailrace::input
