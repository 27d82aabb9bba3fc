// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bitset>
#include <cstdint>
#include <map>

#include "ground/comm/transport.hpp"

namespace tailrace::comm {

class Members;

/// A line's number is the same on all its ranks. Two lines that are open on one rank never have the same
/// number.
///
///   bits 0 .. 12   the tag: the transport tells data messages of two lines apart by their tags
///   bits 13 .. 62  a count of lines, so that no number is used twice
///   bit 63         marks the line of those ranks of another line that share a node; it has no data messages
namespace line_number {

/// MPI promises tags up to 32767 (MPI 3.1, 8.1.2). Each line needs two.
inline constexpr int tag_bits = 13;
inline constexpr LineNumber tags = LineNumber{1} << tag_bits;
inline constexpr LineNumber node_bit = LineNumber{1} << 63;

inline constexpr LineNumber session = 0;       // all ranks
inline constexpr LineNumber computes = 1;      // the compute ranks
inline constexpr LineNumber without_data = 2;  // the tag of lines without data messages
inline constexpr LineNumber meeting = 3;       // the tag of meetings, which choose a line's number
inline constexpr LineNumber settlement = 4;    // the compute ranks, once their order of calls is broken
inline constexpr LineNumber first_free = 5;    // the first tag that ranks may choose for a line

using Tags = std::bitset<tags>;  // the tags that are free

constexpr LineNumber tag_of(LineNumber number) { return number % tags; }
constexpr std::uint64_t count_of(LineNumber number) { return (number & ~node_bit) >> tag_bits; }

}  // namespace line_number

/// Gives numbers to the lines of a process, and remembers which lines it has opened.
class LineNumbers {
 public:
  /// Returns the number of the meeting in which the ranks `members` open their next line. It is the same on
  /// all of them, because they meet in the same order.
  LineNumber next_meeting(const Members& members);
  /// Returns the number of the next line without data messages. It is the same on all ranks of that line,
  /// because they open these lines in the same order.
  LineNumber next_without_data();
  void note_opened(LineNumber line);
  /// True if this rank has opened the line, even if it has closed it since.
  [[nodiscard]] bool was_opened(LineNumber line) const;
  /// Returns the highest count among the lines whose tags were chosen in a meeting.
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  /// The count in a meeting's number consists of a 40-bit hash of its ranks and the number of their meetings
  /// so far, modulo 1024.
  static constexpr std::uint64_t most_meetings = 1024;

  std::uint64_t count_ = 0;
  std::uint64_t without_data_ = 0;
  std::map<std::uint64_t, std::uint64_t> meetings_;  // by the hash of their ranks
};

}  // namespace tailrace::comm
