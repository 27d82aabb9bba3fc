// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/handoff.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::pipeline {

namespace {

constexpr std::array handoff_rows{
    HandoffRow{"auto", "as `shared` from ranks whose node has a server, as `messages` from the others"},
    HandoffRow{"shared", "servers read what ranks put in memory of the node; every node must have a server"},
    HandoffRow{"messages", "ranks send it in messages, also to a server of their own node"},
    HandoffRow{"onesided",
               "servers get it out of a window of MPI by one-sided gets, if the MPI passes a test; otherwise "
               "as `messages`"},
};

}  // namespace

std::span<const HandoffRow> handoffs() { return handoff_rows; }

std::string_view name_of(Handoff handoff) { return handoff_rows.at(static_cast<std::size_t>(handoff)).name; }

Result<Handoff> find_handoff(std::string_view name) {
  if (name.empty()) return Handoff::automatic;
  const auto found = std::ranges::find(handoff_rows, name, &HandoffRow::name);
  if (found != handoff_rows.end()) return static_cast<Handoff>(found - handoff_rows.begin());
  std::vector<std::string_view> names;
  for (const HandoffRow& each : handoff_rows) names.push_back(each.name);
  return unknown_word("handoff", name, names);
}

std::string about_handoffs() {
  std::string text;
  for (const HandoffRow& each : handoff_rows)
    text += cat(text.empty() ? "" : "; ", "`", each.name, "`: ", each.meaning);
  return text;
}

}  // namespace tailrace::pipeline
