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

/// One rank's share of one save: which bytes are written, in which order. It knows nothing of other ranks but
/// their parts' sizes. Its owner makes the ranks vote between the steps:
///
///   place -> [capture] -> write -> seal -> (all ranks voted) -> commit, on the first rank alone
///         -> (all ranks voted)
///
/// write, seal and commit touch storage and may run on any one thread.
class Saving {
 public:
  Saving(storage::Target& target, SavePlan plan, int rank, int ranks, std::vector<SaveItem> items);

  [[nodiscard]] const SavePlan& plan() const { return plan_; }
  [[nodiscard]] Bytes part_bytes() const { return part_.bytes(); }
  [[nodiscard]] Bytes data_bytes() const { return part_.data_bytes(); }
  /// Takes what the first rank has decided: path, generation and time. Part sizes do not depend on them.
  void know(const SavePlan& plan);
  /// What this rank's part takes of the copy's file.
  [[nodiscard]] Bytes placed_bytes() const { return align(part_bytes(), part_alignment); }
  /// `before` has the size what the parts of all lower ranks take of it.
  void place_behind(Bytes before);
  /// The same on the first rank, which writes the directory: `part_bytes` of every rank's part.
  void place(const std::vector<Bytes>& part_bytes);
  /// Sets what the first rank is to keep of the session's streams. Call it while no seal() runs.
  void set_outputs(ByteVector outputs) { directory_.outputs = std::move(outputs); }
  /// seal() first calls `make_durable`: this rank's part may count only after that.
  void set_make_durable(std::function<Status()> make_durable) { make_durable_ = std::move(make_durable); }
  /// On the first rank commit() calls `clean_up` last, once the copy is committed.
  void set_clean_up(std::function<void()> clean_up) { clean_up_ = std::move(clean_up); }
  /// Copies all elements into `image`, of data_bytes(), which must live until write() is over. Without a
  /// capture, write() reads them from the caller's arrays.
  void capture(std::byte* image);
  /// Returns the bytes of memory that capture_behind() takes.
  [[nodiscard]] Bytes mirror_bytes();
  /// As capture(), into `memory` of mirror_bytes(), but leaves to `behind` what can be copied behind the
  /// caller. write() waits for `behind`. The destructor must not run before `behind` was waited for. Returns
  /// why nothing could be left to it.
  Status capture_behind(std::byte* memory, capture::CopyOnWrite& behind);

  Status write();
  /// Makes this rank's part whole and durable. On the first rank it also writes the directory and the header:
  /// from then on the copy counts, if all other parts are whole.
  Status seal();
  /// First rank, once all ranks have sealed. Makes the names durable and says so in the header. Then removes
  /// what an earlier save with more parts has left.
  Status commit();
  /// First rank, after a failure. Makes the copy not count: bytes that storage has lost may still be seen in
  /// memory, and a later run would take them for good.
  void abandon();
  /// First rank, after abandon() and close() of all ranks. Removes the files.
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
  PartPlace place_;  // of this rank's part
  Directory directory_;
  Extent directory_place_;
  const std::byte* image_ = nullptr;
  std::optional<Mirror> mirror_;
  capture::CopyOnWrite* behind_ = nullptr;  // it still captures
  std::function<Status()> make_durable_;
  std::function<void()> clean_up_;
  std::unique_ptr<storage::File> own_;   // the file of this rank's part
  std::unique_ptr<storage::File> copy_;  // the first rank's copy file in the local mode, where it is another
                                         // one
  std::atomic<bool> cancelled_{false};
};

}  // namespace tailrace::checkpoint
