// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/mirror.hpp"
#include "checkpoint/part.hpp"

namespace tailrace::checkpoint {

/// What all ranks know of a save.
struct SavePlan {
  std::string path;  // of the copy
  Mode mode = Mode::parallel;
  SaveId id;
  Compression compression;
  std::int64_t saved_at = 0;
};

/// One rank's share of one save: what is written, in which order. Knows nothing of other ranks but their
/// parts' sizes; its owner makes them vote between the steps:
///
///   place -> [capture] -> write -> seal -> (all ranks voted) -> commit, on the first rank alone -> (all
///   ranks voted)
///
/// write, seal and commit touch storage and may run on any one thread.
class Saving {
 public:
  Saving(storage::Target& target, SavePlan plan, int rank, int ranks, std::vector<SaveItem> items);

  [[nodiscard]] const SavePlan& plan() const { return plan_; }
  [[nodiscard]] Bytes part_bytes() const { return part_.bytes(); }
  [[nodiscard]] Bytes data_bytes() const { return part_.data_bytes(); }
  /// What the first rank has decided: path, generation and time. Part sizes do not depend on them.
  void know(const SavePlan& plan);
  /// `part_bytes`: of every rank.
  void place(const std::vector<Bytes>& part_bytes);
  /// What the first rank is to keep of the session's streams; while no seal() runs.
  void set_outputs(ByteVector outputs) { directory_.outputs = std::move(outputs); }
  /// What this rank has to make durable before its part may count: seal() does it first.
  void set_make_durable(std::function<Status()> make_durable) { make_durable_ = std::move(make_durable); }
  /// What is to be done once the copy is committed, on the first rank: commit() does it last.
  void set_clean_up(std::function<void()> clean_up) { clean_up_ = std::move(clean_up); }
  /// Copies all elements into `image`, of data_bytes(), which must live until write() is over; without it
  /// they are read from the caller's arrays then.
  void capture(std::byte* image);
  /// Of memory that the next takes.
  [[nodiscard]] Bytes mirror_bytes();
  /// The same, but what can be copied behind the caller is: into `memory`, of mirror_bytes(). write() waits
  /// for `behind`, whoever destroys this before has to. Returns why nothing could be left to it.
  Status capture_behind(std::byte* memory, CopyOnWrite& behind);

  Status write();
  /// What makes this rank's part whole, and the part durable. On the first rank also the directory and the
  /// header: from then on the copy counts, if all other parts are whole.
  Status seal();
  /// First rank, once all ranks have sealed: makes the names durable and says so in the header. Then takes
  /// away what an earlier save with more parts has left.
  Status commit();
  /// First rank, after a failure: the copy must not count. What storage has lost may still be seen in memory,
  /// and would be taken for good by a later run.
  void abandon();
  /// First rank, after abandon() and close() of all ranks: takes the files away.
  void remove();
  Status close();
  void cancel() { cancelled_ = true; }

 private:
  [[nodiscard]] bool is_first() const { return rank_ == 0; }
  [[nodiscard]] Header header(bool committed) const;
  Status open();
  static Status cut(storage::File& file, Bytes end);
  void remove_parts(int from);
  void make_void(storage::File& file, Bytes offset, Bytes bytes);

  storage::Target& target_;
  SavePlan plan_;
  const int rank_;
  const int ranks_;
  std::vector<SaveItem> items_;
  Part part_;
  Directory directory_;
  Extent directory_place_;
  const std::byte* image_ = nullptr;
  std::optional<Mirror> mirror_;
  CopyOnWrite* behind_ = nullptr;  // what still captures
  std::function<Status()> make_durable_;
  std::function<void()> clean_up_;
  std::unique_ptr<storage::File> own_;   // where this rank's part goes
  std::unique_ptr<storage::File> copy_;  // the first rank's in the local mode, where that is another file
  std::atomic<bool> cancelled_{false};
};

}  // namespace tailrace::checkpoint
