// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/part_directory.hpp"

#include <algorithm>

#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::checkpoint {

namespace {

using layout::Rows;

/// Tells which rank watches each element of an item.
struct Watchers {
  Index elements = 0;
  int ranks = 1;

  [[nodiscard]] int of(Index element) const {
    return static_cast<int>(static_cast<layout::Wide>(element) * ranks / elements);
  }
  /// Returns the first element that `rank` or a higher rank watches.
  [[nodiscard]] Index first(int rank) const {
    return static_cast<Index>((static_cast<layout::Wide>(rank) * elements + ranks - 1) / ranks);
  }
  /// Adds the elements that `rows` names to the lists of their watchers, at most three entries to each list.
  void deal_out(const Rows& rows, std::map<int, std::vector<Rows>>& lists) const {
    Index into = 0;  // the elements of this row that went to watchers before
    for (Index row = 0; rows.count > 0 && row < rows.rows;) {
      const Index begin = rows.global + row * rows.stride;
      const int watcher = of(begin + into);
      const Index end = first(watcher + 1);
      if (into == 0 && begin + rows.count <= end) {
        const Index fit = rows.rows > 1 ? (end - rows.count - begin) / rows.stride + 1 : 1;
        const Index whole = std::min(rows.rows - row, fit);
        lists[watcher].push_back({begin, rows.count, rows.stride, whole});
        row += whole;
        continue;
      }
      const Index count = std::min(rows.count - into, end - begin - into);
      lists[watcher].push_back({begin + into, count, 0, 1});
      into += count;
      if (into < rows.count) continue;
      into = 0;
      ++row;
    }
  }
  [[nodiscard]] std::map<int, std::vector<Rows>> dealt_out(const std::vector<Rows>& all) const {
    std::map<int, std::vector<Rows>> lists;
    for (const Rows& rows : all) deal_out(rows, lists);
    return lists;
  }
};

void put(Packer& out, const std::vector<std::int32_t>& items, const std::vector<Rows>& rows) {
  out.put_list(std::span<const std::int32_t>(items)).put_list(std::span<const Rows>(rows));
}

PartDirectory::Messages taken(std::map<int, Packer>& packers) {
  PartDirectory::Messages messages;
  for (auto& [rank, packer] : packers) messages[rank] = packer.take();
  return messages;
}

}  // namespace

PartDirectory::PartDirectory(std::vector<ItemInfo> items, int rank, int ranks)
    : items_(std::move(items)), rank_(rank), ranks_(ranks) {}

PartDirectory::Messages PartDirectory::tell(std::span<const Table> tables) const {
  std::map<int, Packer> out;
  for (const Table& table : tables) {
    // One entry tells of all items that lie alike.
    std::map<std::pair<std::int32_t, Index>, std::vector<std::int32_t>> alike;
    for (const PartItem& item : table.items) alike[{item.map, elements_of(item.item)}].push_back(item.item);
    for (const auto& [key, items] : alike) {
      const auto& [map, elements] = key;
      const Watchers watchers{elements, ranks_};
      for (const auto& [watcher, rows] : watchers.dealt_out(table.maps[static_cast<std::size_t>(map)])) {
        out[watcher].put(table.part).put(table.place);
        put(out[watcher], items, rows);
      }
    }
  }
  return taken(out);
}

bool PartDirectory::are_items(const std::vector<std::int32_t>& items) const {
  return std::ranges::all_of(items, [this](std::int32_t item) {
    return item >= 0 && static_cast<std::size_t>(item) < items_.size();
  });
}

void PartDirectory::take(std::span<const std::byte> told) {
  for (Unpacker in(told); in.ok() && !in.rest().empty();) {
    Told next{in.get<std::int32_t>(), in.get<PartPlace>(), in.get_list<std::int32_t>(), in.get_list<Rows>()};
    if (in.ok() && are_items(next.items)) told_.push_back(std::move(next));
  }
}

Status PartDirectory::check() {
  std::vector<std::vector<std::size_t>> told_of(items_.size());
  for (std::size_t i = 0; i < told_.size(); ++i) {
    for (const std::int32_t item : told_[i].items) told_of[static_cast<std::size_t>(item)].push_back(i);
  }
  // Items lie alike if the same entries tell of them.
  std::map<std::pair<Index, std::vector<std::size_t>>, std::size_t> known;
  for (std::size_t item = 0; item < items_.size(); ++item) {
    const auto [same, is_new] =
        known.try_emplace({items_[item].elements(), std::move(told_of[item])}, runs_.size());
    runs_of_item_.push_back(same->second);
    if (!is_new) continue;
    TR_TRY(check_rows(items_[item], same->first.second));
    runs_.push_back(runs_of(same->first.second));
    TR_TRY(check_runs(items_[item], runs_.back()));
  }
  return {};
}

/// A damaged copy may name the same elements any number of times. Check the rows before memory is allocated
/// for them.
Status PartDirectory::check_rows(const ItemInfo& item, const std::vector<std::size_t>& told) const {
  const Watchers watchers{item.elements(), ranks_};
  Index left = watchers.first(rank_ + 1) - watchers.first(rank_);
  for (const std::size_t each : told) {
    for (const Rows& rows : told_[each].rows) {
      if (rows.rows > left) return {Code::corrupt, cat("an element of ", item.name, " is there twice")};
      left -= rows.rows;
    }
  }
  return {};
}

std::vector<PartDirectory::Run> PartDirectory::runs_of(const std::vector<std::size_t>& told) const {
  std::vector<Run> runs;
  for (const std::size_t each : told) {
    for (const Rows& rows : told_[each].rows) {
      for (Index row = 0; row < rows.rows; ++row) {
        const Index begin = rows.global + row * rows.stride;
        runs.push_back({begin, begin + rows.count, each});
      }
    }
  }
  std::ranges::sort(runs, {}, &Run::begin);
  return runs;
}

Status PartDirectory::check_runs(const ItemInfo& item, const std::vector<Run>& runs) const {
  const Watchers watchers{item.elements(), ranks_};
  Index at = watchers.first(rank_);
  const Index end = watchers.first(rank_ + 1);
  for (const Run& run : runs) {
    if (item.has_unowned ? run.begin < at : run.begin != at)
      return {Code::corrupt, cat("element ", std::min(run.begin, at), " of ", item.name,
                                 run.begin < at ? " is there twice" : " is in no part")};
    at = run.end;
  }
  if (at == end || (item.has_unowned && at < end)) return {};
  return {Code::corrupt, cat("element ", at, " of ", item.name, " is in no part")};
}

PartDirectory::Messages PartDirectory::ask(std::span<const Share> wanted) const {
  std::map<int, Packer> out;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto is_alike = [&](const Share& other) {
      return elements_of(other.item) == elements_of(wanted[i].item) && other.rows == wanted[i].rows;
    };
    const auto begin = wanted.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(wanted.begin(), begin, is_alike)) continue;  // the first of them asks for all
    std::vector<std::int32_t> items;
    for (const Share& other : wanted.subspan(i)) {
      if (is_alike(other)) items.push_back(other.item);
    }
    const Watchers watchers{elements_of(wanted[i].item), ranks_};
    for (const auto& [watcher, rows] : watchers.dealt_out(wanted[i].rows)) put(out[watcher], items, rows);
  }
  return taken(out);
}

ByteVector PartDirectory::answer(std::span<const std::byte> question) const {
  std::map<std::int32_t, PartPlace> parts;
  for (Unpacker in(question); in.ok() && !in.rest().empty();) {
    const std::vector<std::int32_t> items = in.get_list<std::int32_t>();
    const std::vector<Rows> wanted = in.get_list<Rows>();
    if (!in.ok() || !are_items(items)) break;
    for (const std::int32_t item : items) {
      const std::vector<Run>& runs = runs_[runs_of_item_[static_cast<std::size_t>(item)]];
      for (const Rows& rows : wanted) {
        for (Index row = 0; row < rows.rows; ++row) {
          const Index begin = rows.global + row * rows.stride;
          auto run = std::ranges::upper_bound(runs, begin, {}, &Run::end);
          for (; run != runs.end() && run->begin < begin + rows.count; ++run)
            parts[told_[run->told].part] = told_[run->told].place;
        }
      }
    }
  }
  Packer out;
  for (const auto& [part, place] : parts) out.put(part).put(place);
  return out.take();
}

void PartDirectory::take_answer(std::span<const std::byte> answer, std::map<std::int32_t, PartPlace>& parts) {
  for (Unpacker in(answer); in.ok() && !in.rest().empty();) {
    const auto part = in.get<std::int32_t>();
    parts[part] = in.get<PartPlace>();
  }
}

}  // namespace tailrace::checkpoint
