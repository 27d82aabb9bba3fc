// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/items.hpp"

#include <algorithm>
#include <utility>

#include "ground/base/text.hpp"

namespace tailrace::checkpoint {

arrays::Array NamedItem::whole() const {
  arrays::Array whole = array;
  if (scalar) whole.layout = scalar.get();
  if (!halo.empty()) whole.halo = &halo;
  return whole;
}

Result<std::vector<SaveItem>> to_save(const std::vector<NamedItem>& items, int rank) {
  if (items.empty()) return Status(Code::argument, "nothing is to be saved: no item was named");
  std::vector<SaveItem> list;
  for (const NamedItem& item : items) {
    const arrays::Array array = item.whole();
    Result<arrays::Owned> owned = arrays::find_owned(array, rank);
    if (!owned.is_ok()) return owned.status().in(cat("item ", item.name));
    ItemInfo info{item.name, array.type, item.scalar ? std::vector<Index>() : owned->shape};
    info.has_unowned = array.layout->has_unowned();
    list.push_back({std::move(info), std::move(*owned), array.data, item.keep});
  }
  return list;
}

void Items::add(NamedItem item) {
  if (item.name.empty()) latch(Status(Code::argument, "the name of an item is empty"));
  if (is_own_name(item.name))
    latch(Status(Code::argument, cat("item ", item.name, ": names that begin with ", own_prefix,
                                     " belong to the library: choose another")));
  if (std::ranges::find(list_, item.name, &NamedItem::name) != list_.end())
    latch(Status(Code::argument, cat("item ", item.name, " is named twice")));
  list_.push_back(std::move(item));
}

void Items::add_own(std::vector<NamedItem> items) { std::ranges::move(items, std::back_inserter(list_)); }

void Items::latch(const Status& status) {
  if (error_.is_ok()) error_ = status;
}

void Items::clear() {
  list_.clear();
  error_ = {};
}

std::string Items::text() const {
  std::string text;
  for (const NamedItem& item : list_)
    text += cat("; ", item.name, " ", item.scalar ? "scalar" : item.array.text());
  return text;
}

Status Items::match(const Copy& copy) const {
  const auto& items = copy.directory.items;
  for (const NamedItem& named : list_) {
    const int number = copy.find(named.name);
    if (number < 0) {
      std::string known;
      for (const ItemInfo& item : items) known += cat(known.empty() ? "" : ", ", item.name);
      return {Code::argument, cat("item ", named.name, " is not in ", copy.path, ", which has ", known)};
    }
    ItemInfo mine{named.name, named.array.type, {}};
    if (!named.scalar) {
      if (named.array.layout == nullptr)
        return {Code::argument, cat("item ", named.name, ": the layout is a null pointer")};
      Result<std::vector<Index>> shape = named.array.shape();
      if (!shape.is_ok()) return shape.status().in(cat("item ", named.name));
      mine.shape = std::move(*shape);
    }
    const ItemInfo& saved = items[static_cast<std::size_t>(number)];
    mine.has_unowned = saved.has_unowned;  // another layout may own all elements, or leave out others
    if (mine != saved)
      return {Code::argument, cat("item ", named.name, ": the program has ", mine.text(), ", ", copy.path,
                                  " has ", saved.text())};
  }
  for (const ItemInfo& item : items) {
    if (!is_own_name(item.name) && std::ranges::find(list_, item.name, &NamedItem::name) == list_.end())
      return {Code::argument,
              cat("item ", item.name, " (", item.text(), ") of ", copy.path, " is not named by the program")};
  }
  return {};
}

Result<std::vector<Plan>> Items::plans(int rank) const {
  std::vector<Plan> plans;
  for (const NamedItem& item : list_) {
    Result<Plan> plan = arrays::make_plan(item.whole(), rank, arrays::Direction::read);
    if (!plan.is_ok()) return plan.status().in(cat("item ", item.name));
    plans.push_back(std::move(*plan));
  }
  return plans;
}

}  // namespace tailrace::checkpoint
