// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/position.hpp"

#include <algorithm>
#include <cstdint>

#include "ground/storage/paths.hpp"

namespace tailrace::journal {

std::int64_t oldest_undo(std::span<const Position> positions, std::int64_t generation) {
  for (const Position& each : positions) {
    if (each.since > 0) generation = std::min(generation, each.since);
  }
  return generation;
}

void put_positions(Packer& out, std::span<const Position> positions) {
  out.put(static_cast<std::int64_t>(positions.size()));
  for (const Position& each : positions) {
    out.put_text(each.path).put(each.position).put(each.size);
    out.put(static_cast<std::int32_t>(each.behind_end ? 1 : 0)).put(each.since);
  }
}

Result<std::vector<Position>> get_positions(Unpacker& in) {
  std::vector<Position> positions;
  const auto count = in.get<std::int64_t>();
  bool good = in.ok() && count >= 0;
  for (std::int64_t i = 0; good && i < count; ++i) {
    Position each;
    each.path = in.get_text();
    each.position = in.get<Bytes>();
    each.size = in.get<Bytes>();
    each.behind_end = in.get<std::int32_t>() != 0;
    each.since = in.get<std::int64_t>();
    good = in.ok() && !each.path.empty() && each.position >= 0 && each.size >= 0 && each.since >= 0;
    if (good) positions.push_back(std::move(each));
  }
  if (!good) return Status(Code::corrupt, "the positions of the files are damaged");
  return positions;
}

bool is_same_path(const std::string& a, const std::string& b) {
  return a == b || storage::tidy_path(a) == storage::tidy_path(b);
}

}  // namespace tailrace::journal
