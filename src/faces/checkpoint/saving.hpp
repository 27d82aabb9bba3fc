// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faces/checkpoint/mirror.hpp"
#include "faces/checkpoint/part.hpp"

namespace tailrace::checkpoint {

/// The facts of a save that all ranks know.
struct SavePlan {
  std::string path;  // of the copy
  Mode mode = Mode::parallel;
  SaveId id;
  Compression compression;
  std::int64_t saved_at = 0;
  bool is_given = false;  // the user has named the copy's file: it may be a link
  bool is_link = false;   // `path` is a link that the user has not named: make_room() has to remove it
};

/// One rank's share of one save. It decides which bytes the rank writes, in which order. Of other ranks, it
/// only knows how many bytes the parts of all lower ranks take up; the first rank knows the size of each
/// part. Its owner makes the ranks vote between the steps:
///
///   place -> [capture] -> [make_room, on the first rank alone -> (all ranks voted)] -> write -> seal
///         -> (all ranks voted) -> commit, on the first rank alone -> (all ranks voted)
///
/// make_room, write, seal and commit work on storage. Any thread may call them, one at a time.
class Saving {
 public:
  Saving(storage::Target& target, SavePlan plan, int rank, int ranks, std::vector<SaveItem> items);

  [[nodiscard]] const SavePlan& plan() const { return plan_; }
  [[nodiscard]] Bytes part_bytes() const { return part_.bytes(); }
  [[nodiscard]] Bytes data_bytes() const { return part_.data_bytes(); }
  /// Takes what the first rank has decided: path, generation and time. Part sizes do not depend on them.
  void know(const SavePlan& plan);
  /// Returns the bytes that this rank's part takes up in the copy's file.
  [[nodiscard]] Bytes placed_bytes() const { return align(part_bytes(), part_alignment); }
  /// Places this rank's part. The parts of all lower ranks take up `before` bytes of the copy's file.
  void place_behind(Bytes before);
  /// On the first rank, which writes the directory, places the parts of all ranks. `part_bytes` has their
  /// sizes.
  void place(const std::vector<Bytes>& part_bytes);
  /// Sets the positions of the session's streams and files, which the first rank writes into the directory.
  /// Call it while no seal() runs.
  void set_outputs(ByteVector outputs) { directory_.outputs = std::move(outputs); }
  /// seal() first calls `make_durable`: this rank's part may count only after that.
  void set_make_durable(std::function<Status()> make_durable) { make_durable_ = std::move(make_durable); }
  /// On the first rank commit() first makes sure that none of these files, in which a failed save had zeroed
  /// its header, can be a copy again.
  void set_failed(std::vector<std::string> paths) { failed_ = std::move(paths); }
  /// On the first rank commit() calls `clean_up` last, once the copy is committed. A failure of it is logged.
  void set_clean_up(std::function<Status()> clean_up) { clean_up_ = std::move(clean_up); }
  /// Copies all elements into `image`, of data_bytes(), which must live until write() is over. Without a
  /// capture, write() reads them from the caller's arrays.
  void capture(std::byte* image);
  /// Returns the bytes of memory that capture_behind() takes.
  [[nodiscard]] Bytes mirror_bytes();
  /// As capture(), but into `memory` of mirror_bytes(), and leaves to `behind` what it can copy while the
  /// program goes on. write() waits for `behind`. The destructor must not run while `behind` still copies. If
  /// `behind` refuses, captures everything at once, and returns the reason as an error.
  Status capture_behind(std::byte* memory, capture::CopyOnWrite& behind);

  /// Removes the link that has the name of the copy's file.
  Status make_room();
  /// Writes the elements of this rank's part.
  Status write();
  /// Makes this rank's part whole and durable. On the first rank it also writes the directory and the header:
  /// from then on the copy counts, if all other parts are whole.
  Status seal();
  /// On the first rank, once all ranks have sealed. Makes the names durable and says so in the header. Then
  /// removes the files that an earlier save with more parts has left.
  Status commit();
  /// On the first rank, after a failure. Makes the copy not count. Otherwise a later run might find bytes in
  /// the kernel's memory that storage has lost, and take the copy for whole.
  void abandon();
  /// On the first rank, after abandon() and close() of all ranks. Removes the files, if the save has begun to
  /// write them.
  void remove();
  Status close();
  void cancel() { cancelled_ = true; }

 private:
  [[nodiscard]] bool is_first() const { return rank_ == 0; }
  [[nodiscard]] storage::File* copy_file() const { return copy_ ? copy_.get() : own_.get(); }
  Status open();
  Status open_part();
  Status open_copy(std::unique_ptr<storage::File>& file);
  Status write_header(bool committed);
  void remove_parts(int from);

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
  capture::CopyOnWrite* behind_ = nullptr;  // set if it still captures
  std::function<Status()> make_durable_;
  std::function<Status()> clean_up_;
  std::unique_ptr<storage::File> own_;  // the file of this rank's part
  std::unique_ptr<storage::File>
      copy_;  // of the first rank in the local mode: the copy's file is another one
  std::vector<std::string> failed_;
  bool has_begun_ = false;   // the first rank has made the copy's file its own
  bool has_header_ = false;  // the first rank has written the header, so that the file may count as a copy
  std::atomic<bool> cancelled_{false};
};

}  // namespace tailrace::checkpoint
