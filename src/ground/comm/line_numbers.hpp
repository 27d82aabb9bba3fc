// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bitset>
#include <cstdint>
#include <map>

#include "ground/comm/transport.hpp"

namespace tailrace::comm {

class Members;

/// A line's number is the same on all its ranks. No two lines that are open on a rank have the same number.
///
///   bits 0 .. 12   the tag: data messages of two lines with the same tag would be taken for each other's
///   bits 13 .. 62  counts lines, so that a number is used once
///   bit 63         the line of those ranks of another line that share a node; it carries no data messages
namespace line_number {

/// MPI promises tags up to 32767 (MPI 3.1, 8.1.2), and each line needs two.
inline constexpr int tag_bits = 13;
inline constexpr LineNumber tags = LineNumber{1} << tag_bits;
inline constexpr LineNumber node_bit = LineNumber{1} << 63;

inline constexpr LineNumber session = 0;       // all ranks
inline constexpr LineNumber computes = 1;      // the compute ranks
inline constexpr LineNumber without_data = 2;  // the tag of lines that carry no data messages
inline constexpr LineNumber meeting = 3;       // the tag of lines on which ranks choose another line's number
inline constexpr LineNumber settlement = 4;    // the compute ranks, after their order of calls was broken
inline constexpr LineNumber first_free = 5;    // ranks that open lines choose tags from here on

using Tags = std::bitset<tags>;  // which of them are free

constexpr LineNumber tag_of(LineNumber number) { return number % tags; }
constexpr std::uint64_t count_of(LineNumber number) { return (number & ~node_bit) >> tag_bits; }

}  // namespace line_number

/// Gives numbers to the lines of a process, and knows which it has opened.
class LineNumbers {
 public:
  /// Returns the number of the line on which these ranks meet to open another one. It is the same on all of
  /// them, as they meet in the same order.
  LineNumber next_meeting(const Members& members);
  /// Returns the number of the next line without data messages. Its ranks open such lines in the same order.
  LineNumber next_without_data();
  void note_opened(LineNumber line);
  /// Returns true if this rank has opened the line, even if it has closed it since.
  [[nodiscard]] bool was_opened(LineNumber line) const;
  /// Returns the highest count of the lines whose tags were chosen.
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  /// A meeting's number has a hash of its ranks in 40 bits, and counts their meetings in 10.
  static constexpr std::uint64_t most_meetings = 1024;

  std::uint64_t count_ = 0;
  std::uint64_t without_data_ = 0;
  std::map<std::uint64_t, std::uint64_t> meetings_;  // by the hash of their ranks
};

}  // namespace tailrace::comm
