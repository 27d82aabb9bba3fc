// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/status.hpp"

namespace tailrace::pipeline {

/// How the data of a stream reaches the servers.
enum class Handoff : std::uint32_t {
  automatic = 0,  // as `shared` where a rank's node has a server, as `messages` from other nodes
  shared = 1,     // in memory that the rank's servers map
  messages = 2,
  onesided = 3,
};

/// A row of the table in handoff.cpp; the rows stand in the order of Handoff.
struct HandoffRow {
  std::string_view name;
  std::string_view meaning;  // as docs/streams.md says it
};
std::span<const HandoffRow> handoffs();
[[nodiscard]] std::string_view name_of(Handoff handoff);
/// Local. Returns Code::settings, with the nearest name, if no handoff is called so. "" is `auto`.
Result<Handoff> find_handoff(std::string_view name);
/// Returns what docs/streams.md says of all handoffs, separated by "; ".
std::string about_handoffs();

}  // namespace tailrace::pipeline
