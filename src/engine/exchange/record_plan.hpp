// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "engine/exchange/roster.hpp"
#include "ground/layout/layout.hpp"
#include "ground/layout/stretch.hpp"

namespace tailrace::exchange {

/// The fixed schedule by which the pieces of one layout come together as whole records on a server. Immutable
/// once built; all fields of the layout share it.
class RecordPlan {
 public:
  RecordPlan(layout::Layout layout, const Roster& roster, int me);

  [[nodiscard]] const layout::Layout& layout() const { return layout_; }
  [[nodiscard]] Index count(int c) const { return counts_[static_cast<std::size_t>(c)]; }
  [[nodiscard]] std::span<const layout::Rows> rows(int c) const { return rows_[static_cast<std::size_t>(c)]; }
  /// Returns the elements that no rank owns.
  [[nodiscard]] std::span<const layout::Rows> unowned() const { return unowned_; }
  /// Returns true if rank `c` has elements in a stretch of a record.
  [[nodiscard]] bool meets(int c, const layout::Stretch& stretch) const {
    return reaches_[static_cast<std::size_t>(c)].meets(stretch);
  }
  /// True if a server can put the stretches of a record together one after another (layout::place_stretch) in
  /// about the time that copying takes: each stretch has few ranks and entries to look at.
  [[nodiscard]] bool comes_in_stretches() const { return comes_in_stretches_; }
  /// Returns the servers that send this server the pieces from lanes that it does not see.
  [[nodiscard]] const std::vector<int>& senders() const { return senders_; }
  /// Returns the compute ranks whose pieces this server sends to `owner`.
  [[nodiscard]] const std::vector<int>& sent_to(int owner) const {
    return sent_to_[static_cast<std::size_t>(owner)];
  }

 private:
  layout::Layout layout_;
  std::vector<Index> counts_;
  std::vector<std::vector<layout::Rows>> rows_;
  std::vector<layout::Rows> unowned_;
  std::vector<layout::Reach> reaches_;
  bool comes_in_stretches_ = true;
  std::vector<int> senders_;
  std::vector<std::vector<int>> sent_to_;
};

}  // namespace tailrace::exchange
