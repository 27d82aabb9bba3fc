// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>

#include "base/text.hpp"
#include "layout/layout.hpp"
#include "layout/shape.hpp"

namespace tailrace::layout {
namespace {

/// Returns the first element that `rank` watches: the least e with e*ranks/elements >= rank.
Index first_watched(Index elements, int ranks, int rank) {
  return static_cast<Index>((static_cast<Wide>(rank) * elements + ranks - 1) / ranks);
}

}  // namespace

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
  if (twice < missing) {
    const int holder = first[static_cast<std::size_t>(twice - begin)];
    const std::string who = holder == second ? cat("named twice by rank ", holder)
                                             : cat("owned by both rank ", holder, " and rank ", second);
    return layout_error("global element ", twice, " is ", who, ": name each element once, without halo");
  }
  if (missing == end) return {};
  return layout_error("global element ", missing, " is in no rank's list of indices (ranks 0 to ", ranks_ - 1,
                      "): the lists must name every element");
}

}  // namespace tailrace::layout
