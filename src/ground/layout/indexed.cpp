// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <limits>
#include <mutex>

#include "ground/base/text.hpp"
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

/// Returns the error for an element that two lists name, or one list names twice.
Status named_twice(std::string_view element, int holder, int other) {
  const std::string who = holder == other ? cat("named twice by rank ", holder)
                                          : cat("owned by both rank ", holder, " and rank ", other);
  return layout_error(element, " is ", who, ": name each element once, without halo");
}

Status named_by_none(std::string_view element, int ranks) {
  return layout_error(element, " is in no rank's list of indices (ranks 0 to ", ranks - 1,
                      "): the lists must name every element");
}

std::vector<Rows> rows_of(const std::vector<Index>& indices) {
  RowsBuilder rows;
  for (const Index global : indices) rows.add(global, 1);
  return rows.take();
}

Status check_indices(const std::vector<Index>& shape, const std::vector<Index>& indices, std::size_t rank) {
  const Index elements = product(shape);
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= elements)
      return layout_error("global index ", indices[i], ", entry ", i, " of rank ", rank,
                          ", is outside of 0 .. ", elements - 1, ", the elements of an array of ",
                          extents(shape));
  return {};
}

class IndexedRule final : public Layout::Rule {
 public:
  IndexedRule(std::vector<Index> shape, std::vector<std::vector<Index>> indices)
      : Rule(std::move(shape), static_cast<int>(indices.size())), indices_(std::move(indices)) {
    for (const auto& list : indices_) given_ += static_cast<Index>(list.size());
  }

  [[nodiscard]] std::string_view name() const override { return "indexed"; }
  [[nodiscard]] Index count(int rank) const override { return static_cast<Index>(of(rank).size()); }
  [[nodiscard]] std::vector<Rows> rows(int rank) const override { return rows_of(of(rank)); }
  [[nodiscard]] int owner(Index global) const override;
  [[nodiscard]] Status validate() const override;
  void pack(Packer& out) const override {
    out.put(Kind::indexed).put_list<Index>(shape()).put<std::int32_t>(ranks());
    for (const auto& list : indices_) out.put_list<Index>(list);
  }

 private:
  [[nodiscard]] const std::vector<Index>& of(int rank) const {
    return indices_[static_cast<std::size_t>(rank)];
  }

  std::vector<std::vector<Index>> indices_;
  Index given_ = 0;  // the number of indices of all ranks
  // The owner of each element. Filled when owner() is first called, because a program that only writes never
  // calls it.
  mutable std::once_flag owners_once_;
  mutable std::vector<std::int32_t> owners_;
};

int IndexedRule::owner(Index global) const {
  // Not every element has an owner: the table could be far larger than the lists.
  if (given_ < elements()) {
    for (int r = 0; r < ranks(); ++r)
      if (std::find(of(r).begin(), of(r).end(), global) != of(r).end()) return r;
    return -1;
  }
  std::call_once(owners_once_, [this] {
    owners_.assign(static_cast<std::size_t>(elements()), -1);
    for (int r = ranks(); r-- > 0;)
      for (const Index index : of(r)) owners_[static_cast<std::size_t>(index)] = r;
  });
  return owners_[static_cast<std::size_t>(global)];
}

Status IndexedRule::validate() const {
  // With more elements than indices, one of the first given_ + 1 elements must be missing. Looking at these
  // is enough.
  const Index watched = std::min(elements(), given_ + 1);
  std::vector<bool> seen(static_cast<std::size_t>(watched), false);
  Index twice = watched;
  for (const auto& list : indices_)
    for (const Index global : list) {
      if (global >= watched) continue;
      if (seen[static_cast<std::size_t>(global)]) twice = std::min(twice, global);
      seen[static_cast<std::size_t>(global)] = true;
    }
  const auto missing = static_cast<Index>(std::find(seen.begin(), seen.end(), false) - seen.begin());
  if (twice < missing) {
    std::vector<int> holders;
    for (int r = 0; r < ranks(); ++r)
      for (const Index index : of(r))
        if (index == twice) holders.push_back(r);
    return named_twice(element_text(twice, shape()), holders[0], holders[1]);
  }
  return missing == watched ? Status() : named_by_none(element_text(missing, shape()), ranks());
}

class IndexedPartRule final : public Layout::Rule {
 public:
  IndexedPartRule(std::vector<Index> shape, int me, int ranks, std::vector<Index> indices,
                  std::vector<int> idle)
      : Rule(std::move(shape), ranks), me_(me), indices_(std::move(indices)), idle_(std::move(idle)) {}

  [[nodiscard]] std::string_view name() const override { return "indexed"; }
  [[nodiscard]] Index count(int rank) const override {
    return rank == me_ ? static_cast<Index>(indices_.size()) : 0;
  }
  [[nodiscard]] bool has_share(int rank) const override {
    return rank == me_ ? !indices_.empty() : !std::binary_search(idle_.begin(), idle_.end(), rank);
  }
  [[nodiscard]] std::vector<Rows> rows(int rank) const override {
    return rank == me_ ? rows_of(indices_) : std::vector<Rows>();
  }
  [[nodiscard]] int owner(Index global) const override {
    std::call_once(sorted_once_, [this] {
      sorted_ = indices_;
      std::sort(sorted_.begin(), sorted_.end());
    });
    return std::binary_search(sorted_.begin(), sorted_.end(), global) ? me_ : -1;
  }
  void pack(Packer& out) const override {
    out.put(Kind::indexed_part).put_list<Index>(shape()).put<std::int32_t>(me_);
    out.put<std::int32_t>(ranks()).put_list<Index>(indices_).put_list<int>(idle_);
  }

 private:
  int me_;
  std::vector<Index> indices_;
  std::vector<int> idle_;  // ranks that own nothing
  mutable std::once_flag sorted_once_;
  mutable std::vector<Index> sorted_;
};

/// Returns the first element that `rank` watches: the least e with e*ranks/elements >= rank.
Index first_watched(Index elements, int ranks, int rank) {
  return static_cast<Index>((static_cast<Wide>(rank) * elements + ranks - 1) / ranks);
}

}  // namespace

Result<Layout> Layout::indexed(std::vector<Index> shape, std::vector<std::vector<Index>> indices) {
  TR_TRY(check_shape(shape));
  if (indices.empty() || indices.size() > std::numeric_limits<int>::max())
    return layout_error("an indexed layout needs one list of indices for each rank, but got ",
                        indices.size());
  for (std::size_t r = 0; r < indices.size(); ++r) TR_TRY(check_indices(shape, indices[r], r));
  return Rule::wrap(std::make_shared<IndexedRule>(std::move(shape), std::move(indices)));
}

Result<Layout> Layout::indexed_part(std::vector<Index> shape, int me, int ranks, std::vector<Index> indices,
                                    std::vector<int> idle) {
  TR_TRY(check_shape(shape));
  if (me < 0 || me >= ranks)
    return layout_error("rank ", me, " is outside of the ", counted(ranks, "rank"),
                        " among which an indexed layout is cut");
  if (!std::is_sorted(idle.begin(), idle.end()))
    return layout_error("the ranks that own nothing are not in their order");
  TR_TRY(check_indices(shape, indices, static_cast<std::size_t>(me)));
  return Rule::wrap(
      std::make_shared<IndexedPartRule>(std::move(shape), me, ranks, std::move(indices), std::move(idle)));
}

Result<std::vector<Index>> indices_by_callback(const std::vector<Index>& shape, int ranks, int me,
                                               const std::function<int(std::span<const Index>)>& owner_of) {
  TR_TRY(check_shape(shape));
  std::vector<Index> mine;
  if (product(shape) == 0) return mine;
  std::vector<Index> at(shape.size(), 0);
  Index global = 0;
  do {
    const int owner = owner_of(at);
    if (owner < 0 || owner >= ranks)
      return layout_error("the layout's callback gave rank ", owner, " as owner of ",
                          element_text(global, shape), " expected 0 .. ", ranks - 1);
    if (owner == me) mine.push_back(global);
    ++global;
  } while (advance(at, shape));
  return mine;
}

Result<std::map<int, std::vector<Index>>> Directory::requests(int me, std::span<const Index> indices) const {
  std::map<int, std::vector<Index>> requests;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Index global = indices[i];
    if (global < 0 || global >= elements_)
      return layout_error("global index ", global, ", entry ", i, " of rank ", me, ", is outside of 0 .. ",
                          elements_ - 1);
    const auto watcher = static_cast<Wide>(global) * ranks_ / elements_;
    requests[static_cast<int>(watcher)].push_back(global);
  }
  return requests;
}

Status Directory::check(int me, const std::map<int, std::vector<Index>>& received) const {
  const Index begin = first_watched(elements_, ranks_, me);
  const Index end = first_watched(elements_, ranks_, me + 1);
  std::vector<int> first(static_cast<std::size_t>(end - begin), -1);
  Index twice = end;
  int second = -1;
  for (const auto& [r, indices] : received)
    for (const Index global : indices) {
      if (global < begin || global >= end)
        return layout_error("rank ", r, " asked rank ", me, " about global index ", global, ", expected ",
                            begin, " .. ", end - 1, ": the ranks disagree about the size of the array");
      int& holder = first[static_cast<std::size_t>(global - begin)];
      if (holder < 0) {
        holder = r;
      } else if (global < twice) {
        twice = global;
        second = r;
      }
    }
  const Index missing = begin + (std::find(first.begin(), first.end(), -1) - first.begin());
  if (twice < missing)
    return named_twice(cat("global element ", twice), first[static_cast<std::size_t>(twice - begin)], second);
  return missing == end ? Status() : named_by_none(cat("global element ", missing), ranks_);
}

}  // namespace tailrace::layout
