// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "collective_program.hpp"

#include <numeric>

#include "ground/base/text.hpp"

namespace tailrace::sim {

namespace {

/// Returns random members, in any order.
std::vector<int> random_members(Scheduler& dice, int ranks) {
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  for (std::size_t i = members.size(); i > 1; --i)
    std::swap(members[i - 1],
              members[static_cast<std::size_t>(dice.random(0, static_cast<std::int64_t>(i) - 1))]);
  members.resize(static_cast<std::size_t>(dice.random(1, ranks)));
  return members;
}

/// Returns bytes that differ from those of all other ranks and calls.
ByteVector content(const CollectiveCall& call, int rank) {
  ByteVector bytes(call.bytes);
  const auto salt = static_cast<std::size_t>(call.number * 257 + rank * 31 + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte((salt + i * 7) >> 8 * (i % 2));
  return bytes;
}

/// Returns how long a rank stalls: mostly not at all or briefly, now and then as long as a model computes a
/// time step.
Nanoseconds random_stall(Scheduler& dice) {
  if (dice.once_in(2)) return 0;
  return dice.random(0, dice.once_in(10) ? 5 * FibreWorld::second : 1'000'000);
}

}  // namespace

std::string CollectiveCall::name() const {
  return cat(is_broadcast ? "broadcast" : "agreement", " ", number, " on line ", line);
}

CollectiveProgram::CollectiveProgram(Scheduler& dice, const Size& size) {
  for (int line = 0; line < size.lines; ++line) {
    groups_.push_back({std::make_shared<const comm::Members>(random_members(dice, size.ranks))});
  }
  for (int call = 0; call < size.calls; ++call) {
    const bool is_broadcast = dice.once_in(2);
    // Above 16 KiB a broadcast is only announced, and fetched by its receivers.
    const std::int64_t most = is_broadcast && dice.once_in(5) ? 60'000 : 40;
    calls_.push_back({call, static_cast<int>(dice.random(0, size.lines - 1)), is_broadcast,
                      static_cast<std::size_t>(dice.random(0, most))});
  }
}

std::vector<CollectiveCall> CollectiveProgram::calls_of(int rank) const {
  std::vector<CollectiveCall> calls;
  for (const CollectiveCall& call : calls_) {
    if (groups_[static_cast<std::size_t>(call.line)].members->find(rank) >= 0) calls.push_back(call);
  }
  return calls;
}

std::string CollectiveProgram::make(comm::Line& line, const CollectiveCall& call) const {
  if (call.is_broadcast) {
    const ByteVector mine = line.rank() == 0 ? content(call, 0) : ByteVector();
    const Result<ByteVector> said = line.broadcast(mine, call.name(), call.name());
    if (!said.is_ok()) return said.status().text();
    return *said == content(call, 0) ? "" : "other bytes";
  }
  const comm::Verdict verdict = line.agree({{}, call.name(), content(call, line.rank())});
  if (!verdict.status.is_ok()) return verdict.status.text();
  if (verdict.contributions.size() != static_cast<std::size_t>(line.size())) return "other contributions";
  for (int rank = 0; rank < line.size(); ++rank) {
    if (verdict.contributions[static_cast<std::size_t>(rank)] != content(call, rank))
      return cat("another contribution of rank ", rank, " of its line");
  }
  return "";
}

void CollectiveProgram::run(FibreRank& rank, const std::vector<CollectiveCall>& calls, Scheduler& dice,
                            Lines& lines, std::vector<std::string>& wrong) const {
  for (const CollectiveCall& call : calls) {
    if (const Nanoseconds stall = random_stall(dice); stall > 0) rank.stall(stall);
    std::unique_ptr<comm::Line>& line = lines[call.line];
    if (!line) {
      const auto& members = groups_[static_cast<std::size_t>(call.line)].members;
      Result<std::unique_ptr<comm::Line>> opened =
          comm::Line::open_among(rank.board(), members, cat("opening line ", call.line));
      if (!opened.is_ok()) {
        wrong.push_back(cat("rank ", rank.rank(), ", ", call.name(), ": ", opened.status().text()));
        continue;
      }
      line = std::move(*opened);
    }
    if (const std::string text = make(*line, call); !text.empty())
      wrong.push_back(cat("rank ", rank.rank(), ", ", call.name(), ": ", text));
  }
}

void CollectiveProgram::leave(FibreRank& rank, Lines& lines) {
  lines.clear();
  rank.board().wait([&] { return rank.board().all_sent(); }, "its messages to leave");
}

}  // namespace tailrace::sim
