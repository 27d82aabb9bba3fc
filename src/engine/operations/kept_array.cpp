// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/kept_array.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ground/base/text.hpp"

namespace tailrace::operations {

namespace {

/// Consecutive elements of a global array.
struct KeptRun {
  Index begin = 0;
  Index count = 0;
};

Index begin_of(const layout::Layout& blocks, int rank) { return blocks.box(rank).lower.front(); }
Index end_of(const layout::Layout& blocks, int rank) { return blocks.box(rank).upper.front(); }

/// Calls body(rank, KeptRun) for each run of the rows that one rank has, in the order of the rows.
template <typename Body>
void for_each_kept_run(const layout::Layout& blocks, std::span<const layout::Rows> rows, const Body& body) {
  for (const layout::Rows& each : rows) {
    for (Index row = 0; row < each.rows; ++row) {
      Index at = each.global + row * each.stride;
      for (const Index end = at + each.count; at < end;) {
        const int rank = blocks.owner(at);
        const KeptRun run{at, std::min(end, end_of(blocks, rank)) - at};
        body(rank, run);
        at += run.count;
      }
    }
  }
}

ByteVector answer(const KeptArray& kept, Index begin, const ByteVector& question) {
  const Bytes element = size_of(kept.type);
  ByteVector bytes;
  Unpacker in(question);
  for (const KeptRun& run : in.get_list<KeptRun>()) {
    const auto from = kept.memory->bytes.begin() + (run.begin - begin) * element;
    bytes.insert(bytes.end(), from, from + run.count * element);
  }
  return bytes;
}

}  // namespace

Result<KeptArray> make_kept(ElementType type, Index elements, int rank, int ranks, node::Budget& budget) {
  Result<layout::Layout> blocks = layout::Layout::block({elements}, ranks);
  TR_TRY(blocks.status());
  KeptArray kept{type, std::make_shared<const layout::Layout>(std::move(*blocks)),
                 std::make_shared<KeptArray::Memory>(budget)};
  const Bytes bytes = kept.blocks->count(rank) * size_of(type);
  TR_TRY(kept.memory->drawn.take(bytes).in(
      cat("what a stream has accumulated takes ", counted(bytes, "byte"), " on this rank")));
  kept.memory->bytes.resize(static_cast<std::size_t>(bytes));
  return kept;
}

std::string name_of_values(const std::string& stream, const std::string& field) {
  return cat("tailrace:values:", stream, ":", field);
}

std::string name_of_counts(const std::string& stream, const std::string& field) {
  return cat("tailrace:counts:", stream, ":", field);
}

/// Each of the two exchanges is also a vote, to which each rank brings its errors. After the second one
/// nothing can fail.
Status take_kept(comm::Line& line, const KeptArray& kept, std::span<const layout::Rows> rows, std::byte* to,
                 const Status& mine, const std::string& call) {
  const Bytes element = size_of(kept.type);
  std::map<int, ByteVector> messages;
  std::map<int, Bytes> taken;  // by rank: bytes of its answer used so far
  Status status = mine;
  if (status.is_ok()) {
    status = guarded([&]() -> Status {
      std::map<int, std::vector<KeptRun>> wanted;
      for_each_kept_run(*kept.blocks, rows,
                        [&](int rank, const KeptRun& run) { wanted[rank].push_back(run); });
      for (const auto& [rank, runs] : wanted) {
        messages[rank] = Packer().put_list(std::span<const KeptRun>(runs)).take();
        taken[rank] = 0;
      }
      return {};
    });
  }
  const auto questions =
      line.exchange(std::move(messages), {status.in(call), cat(call, ": what a checkpoint has kept"), {}});
  TR_TRY(questions.status());
  std::map<int, ByteVector> answers;
  status = guarded([&]() -> Status {
    const bool owns = !kept.memory->bytes.empty();
    const Index begin = owns ? begin_of(*kept.blocks, line.rank()) : 0;
    for (const auto& [rank, question] : *questions) answers[rank] = answer(kept, begin, question);
    return {};
  });
  const auto answered = line.exchange(std::move(answers), {status.in(call), cat(call, ": the answers"), {}});
  TR_TRY(answered.status());
  for_each_kept_run(*kept.blocks, rows, [&](int rank, const KeptRun& run) {
    Bytes& at = taken.at(rank);
    std::memcpy(to, answered->at(rank).data() + at, static_cast<std::size_t>(run.count * element));
    at += run.count * element;
    to += run.count * element;
  });
  return {};
}

}  // namespace tailrace::operations
