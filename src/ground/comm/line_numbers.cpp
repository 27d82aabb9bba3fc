// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/line_numbers.hpp"

#include <algorithm>

#include "ground/base/checksum.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::comm {

LineNumber LineNumbers::next_meeting(const Members& members) {
  Packer ranks;
  for (int rank = 0; rank < members.size(); ++rank) ranks.put(members.transport_rank(rank));
  const std::uint64_t hash = checksum(ranks.bytes()) >> 24;
  const std::uint64_t count = meetings_[hash]++;
  return line_number::meeting | (hash * most_meetings + count % most_meetings) << line_number::tag_bits;
}

LineNumber LineNumbers::next_without_data() {
  return line_number::without_data | ++without_data_ << line_number::tag_bits;
}

void LineNumbers::note_opened(LineNumber line) {
  if (line_number::tag_of(line) >= line_number::first_free)
    count_ = std::max(count_, line_number::count_of(line));
}

bool LineNumbers::was_opened(LineNumber line) const {
  const std::uint64_t count = line_number::count_of(line);
  switch (line_number::tag_of(line)) {
    case line_number::session:
    case line_number::computes:
    case line_number::settlement:
      return true;
    case line_number::without_data:
      return count <= without_data_;
    case line_number::meeting: {
      const auto met = meetings_.find(count / most_meetings);
      return met != meetings_.end() && (met->second - 1 - count) % most_meetings < most_meetings / 2;
    }
    default:
      return count <= count_;
  }
}

}  // namespace tailrace::comm
