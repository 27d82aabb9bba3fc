// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "faces/checkpoint/context.hpp"
#include "faces/checkpoint/items.hpp"
#include "faces/checkpoint/part_directory.hpp"

namespace tailrace::checkpoint {

/// The copies that a load has not tried yet, the newest first. The first rank alone uses it; all functions
/// are local.
class Candidates {
 public:
  explicit Candidates(Context& context) : context_(context) {}

  /// Looks for the copies on storage anew.
  Status look();
  /// Returns the newest copy that may be whole, packed and without the places of its parts, or no bytes if
  /// there never was a copy. Logs each copy that it passes over. Returns an error if there are only copies
  /// that are not whole.
  Result<ByteVector> next();
  /// Notes and logs that the copy at `path` is not whole. Never fails.
  Status pass_over(const std::string& path, const Status& why);
  /// Logs that `path` holds a save that never came to its end. Never fails.
  Status pass_over_unfinished(const std::string& path) const;
  void clear() { found_.clear(); }

 private:
  Status add_undo_files(Copy& copy) const;
  [[nodiscard]] Status none_whole() const;

  Context& context_;
  std::vector<Found> found_;
  std::string broken_;  // copies that cannot be loaded, and why
  Status not_given_;    // why storage did not give one of the copies
};

/// The load of a bracket: it finds the newest whole copy, and reads the items from it. If a copy turns out to
/// be damaged, all ranks go on with the copy before it.
///
/// The ranks find the parts that they need as follows. First each rank reads the tables of a share of the
/// parts and tells the watchers of their elements (PartDirectory). The watchers check that no element is
/// missing. Then each rank asks the watchers of its own elements, and reads the tables of the parts that have
/// its elements.
class Load {
 public:
  explicit Load(Context& context) : context_(context), candidates_(context) {}

  /// Collective. Finds the newest whole copy, if there is one. The Status is the same on every rank. `call`
  /// is the program's call, here and below.
  Status begin(const std::string& call);
  /// Returns the copy that is being loaded, if there is one.
  [[nodiscard]] const std::optional<Copy>& copy() const { return copy_; }
  /// Collective. Reads the items. If the copy was whole but not committed, the first rank then commits it.
  /// The Status is the same on every rank.
  Status end(const Items& items);
  /// Collective. Checks that a copy, packed and without the places of its parts, is whole, apart from the
  /// elements themselves. The Status is the same on every rank.
  Status check(const std::string& call, std::span<const std::byte> packed);
  /// Local. Frees the memory that is only needed to find the parts.
  void forget_parts();

 private:
  Status take_next(const std::string& call, Status mine);
  Status take(const std::string& call, std::span<const std::byte> packed);
  [[nodiscard]] std::int32_t first_part_of(std::int64_t rank) const;
  Result<std::vector<PartPlace>> places_of_first(const std::string& vote);
  Status read_share(PartDirectory::Messages& told, std::vector<PartPlace> places);
  Status read_from_newest(const Items& named);
  Status find_parts(const Items& items, const std::vector<Plan>& plans, Status mine);
  [[nodiscard]] Result<std::vector<PartDirectory::Share>> shares(const Items& items) const;
  Status read_tables(const std::map<std::int32_t, PartPlace>& parts);
  [[nodiscard]] ByteVector replicated_tables(const Items& items, const std::vector<Plan>& plans) const;
  Status take_tables(const ByteVector& bytes);
  Status read_items(const Items& items, const std::vector<Plan>& plans) const;
  Status share_replicated(const Items& items, const std::vector<Plan>& plans, Status mine) const;

  Context& context_;
  Candidates candidates_;
  std::optional<Copy> copy_;
  std::optional<PartDirectory> part_directory_;  // of that copy
  std::vector<Table> own_tables_;                // the tables that this rank has read to check that copy
};

}  // namespace tailrace::checkpoint
