// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "faces/files/group.hpp"
#include "ground/node/budget.hpp"

namespace tailrace::shared {

/// A use of bytes of a shared file, or of elements of a global array. Without a sync between them, several
/// ranks may read the same bytes or elements, or add to the same elements. Any other two uses of the same
/// bytes or elements by two ranks are a conflict.
enum class Doing : std::uint8_t { read, write, add };
constexpr std::size_t doings = 3;

/// Bytes or elements that follow one another: from `begin` on, before `end`.
struct Range {
  Index begin = 0;
  Index end = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

/// A range, and what a rank has done with it.
struct Done {
  Range range;
  int rank = 0;
  Doing doing = Doing::read;
};

/// A range, and what two ranks have done with it although that needs a sync between them.
struct Conflict {
  struct Side {
    int rank = 0;
    Doing doing = Doing::read;
    friend bool operator==(const Side&, const Side&) = default;
  };
  Range range;
  Side first;
  Side second;
  friend bool operator==(const Conflict&, const Conflict&) = default;
};

/// Returns one conflict for each range that has any, in the order of the ranges. In `done`, the ranges of one
/// rank and one Doing must not overlap.
std::vector<Conflict> find_conflicts(const std::vector<Done>& done);

/// Finds the conflicts between two syncs, for the setting check_conflicts. Each rank notes the ranges that it
/// uses. In a sync the ranks send each other their ranges: each rank compares all ranges in its stretches of
/// the file or array, and rank 0 prints the conflicts. A conflict does not change what a call returns.
class Conflicts {
 public:
  /// The most memory that a rank takes for its notes. A sync needs about as much again in messages.
  static constexpr Bytes most_bytes = Bytes{16} << 20;

  /// `unit` is "byte" or "element". `group` must outlive it.
  Conflicts(files::Group& group, std::string_view unit)
      : group_(group), unit_(unit), drawn_(group.budget(), node::Use::pages) {}

  /// Local; waits for nobody. Notes that this rank has used `count` bytes or elements from `begin` on.
  void note(Doing doing, Index begin, Index count);
  /// Collective over the group; blocks until all ranks have called it. Compares the noted ranges as far as
  /// they lie before `end`, and forgets all notes. `call` names the sync. `end` and `call` are the same on
  /// every rank.
  void compare(Index end, const std::string& call);

 private:
  using Ranges = std::vector<Range>;
  using Noted = std::array<Ranges, doings>;

  bool make_room(Ranges& ranges);
  [[nodiscard]] std::map<int, ByteVector> deal_out(Index end);
  [[nodiscard]] static ByteVector found_in(const std::map<int, ByteVector>& messages, bool was_full);
  void print(const std::vector<ByteVector>& found, const std::string& call) const;
  [[nodiscard]] std::string text(const Conflict& conflict) const;

  files::Group& group_;
  const std::string_view unit_;
  node::Draw drawn_;
  Noted noted_;
  bool is_full_ = false;  // a range was not noted, for lack of memory
};

}  // namespace tailrace::shared
