// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/arrays/array.hpp"
#include "faces/checkpoint/copy.hpp"
#include "faces/checkpoint/part.hpp"

namespace tailrace::checkpoint {

using Plan = std::shared_ptr<const arrays::ArrayPlan>;

/// An item as the program names it.
struct NamedItem {
  std::string name;
  arrays::Array array;  // whole() adds the layout of a scalar, and the halo
  std::shared_ptr<const layout::Layout> scalar;
  std::vector<Index> halo;
  std::shared_ptr<const void> keep = nullptr;  // as SaveItem::keep

  /// Returns the array with its layout and halo. The result must not outlive this item.
  [[nodiscard]] arrays::Array whole() const;
};

/// Items whose names begin so are the library's own: the state of its outputs.
constexpr std::string_view own_prefix = "tailrace:";
inline bool is_own_name(std::string_view name) { return name.starts_with(own_prefix); }

/// Local. Returns the items with the elements that `rank` owns.
Result<std::vector<SaveItem>> to_save(const std::vector<NamedItem>& items, int rank);

/// The items of one bracket, in their order, and the first error that the program made with them. All
/// functions are local.
class Items {
 public:
  void add(NamedItem item);
  /// Adds the library's own items.
  void add_own(std::vector<NamedItem> items);
  /// Keeps an error, if it is the bracket's first: the vote that ends the bracket returns it.
  void latch(const Status& status);
  [[nodiscard]] const Status& error() const { return error_; }
  void clear();
  [[nodiscard]] const std::vector<NamedItem>& list() const { return list_; }
  /// Returns the items as text, "; NAME TYPE SHAPE; ...", which a vote compares over all ranks.
  [[nodiscard]] std::string text() const;
  /// Returns Code::argument unless the copy has these items and no others besides the library's own.
  [[nodiscard]] Status match(const Copy& copy) const;
  /// Makes the plan of each item, in their order.
  [[nodiscard]] Result<std::vector<Plan>> plans(int rank) const;

 private:
  std::vector<NamedItem> list_;
  Status error_;
};

}  // namespace tailrace::checkpoint
