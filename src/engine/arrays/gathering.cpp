// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/arrays/gathering.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::arrays {

namespace {

/// Elements of a rank that follow one another in the global array.
struct Run {
  Index global = 0;
  Index count = 0;
};

/// Returns the elements of this rank whose global numbers lie from `begin` to `end`, with their values.
ByteVector portion(const Gathering& gathering, Index begin, Index end) {
  std::vector<Run> runs;
  std::vector<Index> owned;  // by run: its first element, in packed order
  for_each_run(gathering.rows, [&](Index global, Index count, Index first) {
    const Index from = std::max(global, begin), to = std::min(global + count, end);
    if (from >= to) return;
    const Index at = first + from - global;
    // Elements of an indexed layout may be neighbours in runs of their own.
    if (!runs.empty() && runs.back().global + runs.back().count == from &&
        owned.back() + runs.back().count == at)
      runs.back().count += to - from;
    else
      runs.push_back({from, to - from}), owned.push_back(at);
  });
  if (runs.empty()) return {};
  Packer out;
  out.put_list(std::span<const Run>(runs));
  for (const OwnPart& part : gathering.parts) {
    const Bytes element = part.size * part.width;
    ByteVector values;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const auto first = part.values.begin() + owned[r] * element;
      values.insert(values.end(), first, first + runs[r].count * element);
    }
    out.put_bytes(values);
  }
  return out.take();
}

/// Copies a portion that any rank has sent to its place in the whole.
Status place(const Gathering& gathering, std::span<const std::byte> portion, ByteVector& whole) {
  Unpacker in(portion);
  const std::vector<Run> runs = in.get_list<Run>();
  const Index elements = gathering.layout.elements();
  Bytes begin = 0;  // of the part in the whole
  for (const OwnPart& part : gathering.parts) {
    const std::span<const std::byte> values = in.get_bytes();
    const Bytes element = part.size * part.width;
    Bytes at = 0;
    for (const Run& run : runs) {
      const bool is_inside = run.global >= 0 && run.count >= 0 && run.count <= elements - run.global;
      if (!in.ok() || !is_inside || std::ssize(values) - at < run.count * element)
        return {Code::corrupt, cat("a part of the ", gathering.what, " is not whole")};
      copy_ordered(whole.data() + begin + run.global * element, values.data() + at, run.count * element,
                   part.size, std::endian::big);
      at += run.count * element;
    }
    begin += elements * element;
  }
  return {};
}

Index elements_in_portion(const Gathering& gathering) {
  constexpr Bytes usual = Bytes{8} << 20;
  Bytes element = 1;
  for (const OwnPart& part : gathering.parts) element += part.size * part.width;
  return std::max<Index>(1, usual / element);
}

}  // namespace

comm::Verdict gather(const Gathering& gathering, ByteVector& whole, const std::function<ByteVector()>& told) {
  const Index elements = gathering.layout.elements(), in_portion = elements_in_portion(gathering);
  Status placed;
  for (Index begin = 0; begin < elements; begin += in_portion) {
    std::map<int, ByteVector> messages;
    const Status packed = guarded([&]() -> Status {
      ByteVector own = portion(gathering, begin, std::min(begin + in_portion, elements));
      if (!own.empty()) messages.emplace(0, std::move(own));
      return {};
    });
    const Result<std::map<int, ByteVector>> received = gathering.line.exchange(
        std::move(messages), {packed.in(gathering.call), cat(gathering.call, ": ", gathering.what), {}});
    if (!received.is_ok()) {
      comm::Verdict failed;
      failed.status = received.status();
      return failed;
    }
    for (const auto& [rank, bytes] : *received) {
      if (placed.is_ok()) placed = guarded([&] { return place(gathering, bytes, whole); });
    }
  }
  ByteVector contribution;
  if (told && gathering.line.rank() == 0 && placed.is_ok())
    placed = guarded([&]() -> Status {
      contribution = told();
      return {};
    });
  return gathering.agree({placed.in(gathering.call), gathering.call, std::move(contribution)});
}

}  // namespace tailrace::arrays
