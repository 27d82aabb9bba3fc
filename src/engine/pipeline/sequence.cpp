// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/sequence.hpp"

#include <array>

namespace tailrace::pipeline {

namespace {

/// The numbers of an entry beside its kind. They are unsigned, so that differences of any two are defined.
using Numbers = std::array<std::uint64_t, 8>;

Numbers numbers_of(const SequenceEntry& entry) {
  const auto as = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };
  return {as(entry.field), as(entry.level), as(entry.owner),          entry.chunk,
          as(entry.step),  as(entry.lead),  as(entry.interval_start), as(entry.calls)};
}

SequenceEntry entry_of(SequenceEntry::Kind kind, const Numbers& numbers) {
  const auto small = [&](std::size_t i) { return static_cast<std::int32_t>(numbers[i]); };
  const auto large = [&](std::size_t i) { return static_cast<std::int64_t>(numbers[i]); };
  return {.kind = kind,
          .field = small(0),
          .level = small(1),
          .owner = small(2),
          .chunk = numbers[3],
          .step = large(4),
          .lead = large(5),
          .interval_start = large(6),
          .calls = large(7)};
}

/// Sender and receiver both expect each number of an entry to grow by as much as it grew from the last but
/// one entry of its kind to the last. The sender packs only the numbers that do not.
class Expected {
 public:
  [[nodiscard]] Numbers next(SequenceEntry::Kind kind) const {
    const Past& past = of(kind);
    Numbers expected;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 2 * past.last[i] - past.before[i];
    return expected;
  }
  void note(SequenceEntry::Kind kind, const Numbers& numbers) {
    Past& past = of(kind);
    past.before = past.last;
    past.last = numbers;
  }

 private:
  struct Past {
    Numbers last{}, before{};
  };
  static constexpr std::size_t kinds = 8;
  [[nodiscard]] const Past& of(SequenceEntry::Kind kind) const {
    return past_[static_cast<std::size_t>(kind) % kinds];
  }
  Past& of(SequenceEntry::Kind kind) { return past_[static_cast<std::size_t>(kind) % kinds]; }
  std::array<Past, kinds> past_;
};

}  // namespace

void pack_sequence(Packer& out, std::span<const SequenceEntry> entries) {
  out.put(static_cast<std::int64_t>(entries.size()));
  Expected expected;
  for (const SequenceEntry& entry : entries) {
    const Numbers numbers = numbers_of(entry);
    const Numbers likely = expected.next(entry.kind);
    std::uint8_t differing = 0;  // a bit for each number
    for (std::size_t i = 0; i < numbers.size(); ++i)
      differing = static_cast<std::uint8_t>(differing | (numbers[i] != likely[i] ? 1U << i : 0U));
    out.put(static_cast<std::uint8_t>(entry.kind)).put(differing);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if ((differing >> i & 1U) != 0) out.put(numbers[i]);
    }
    expected.note(entry.kind, numbers);
  }
}

std::vector<SequenceEntry> unpack_sequence(Unpacker& in) {
  std::vector<SequenceEntry> entries;
  Expected expected;
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
    const auto kind = static_cast<SequenceEntry::Kind>(in.get<std::uint8_t>());
    const auto differing = in.get<std::uint8_t>();
    Numbers numbers = expected.next(kind);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if ((differing >> i & 1U) != 0) numbers[i] = in.get<std::uint64_t>();
    }
    expected.note(kind, numbers);
    if (in.ok()) entries.push_back(entry_of(kind, numbers));
  }
  return entries;
}

}  // namespace tailrace::pipeline
