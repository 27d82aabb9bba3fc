// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Below the public face: lines of overlapping communicators over MPI. All ranks of a line know it by the same
// number, and a message sent on one is heard on no other.
#include <algorithm>
#include <random>
#include <set>

#include "ground/base/text.hpp"
#include "ground/comm/communicators.hpp"
#include "ground/comm/mpi_transport.hpp"
#include "ground/comm/switchboard.hpp"
#include "support/mpi_test.hpp"

using namespace tailrace;
using namespace tailrace::mpi_test;
using comm::Line;
using comm::LineNumber;
namespace number = tailrace::comm::line_number;

namespace {

constexpr std::uint32_t word_message = 100;

std::shared_ptr<const comm::Members> all_ranks() {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r) ranks.push_back(r);
  return std::make_shared<const comm::Members>(std::move(ranks));
}

/// The lines of a session, on all ranks of the test.
class Process {
 public:
  Process() : transport_(*comm::MpiTransport::create(state().comm)) {
    board_.connect(*transport_);
    computes_ = std::make_unique<Line>(board_, number::computes, all_ranks());
    communicators_ = std::make_unique<comm::Communicators>(state().comm, *computes_);
  }
  ~Process() {
    CHECK_EQ(board_.strays(), 0);
    communicators_.reset();
    computes_.reset();
    transport_->free();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  comm::Switchboard& board() { return board_; }
  Line& computes() { return *computes_; }
  comm::Communicators& communicators() { return *communicators_; }

  /// Collective over `comm`.
  std::unique_ptr<Line> open(MPI_Comm comm) {
    Result<std::unique_ptr<Line>> line = communicators_->open_line(comm, "the test");
    CHECK_EQ(line.status().text(), std::string());
    return line.is_ok() ? std::move(*line) : nullptr;
  }
  void wait(const std::function<bool()>& done) { board_.wait(done, "the test"); }

 private:
  std::unique_ptr<comm::MpiTransport> transport_;
  comm::Switchboard board_;
  std::unique_ptr<Line> computes_;
  std::unique_ptr<comm::Communicators> communicators_;
};

/// A part of the ranks, reversed or not.
class Part {
 public:
  Part(int color, bool reversed) { MPI_Comm_split(state().comm, color, reversed ? -rank() : rank(), &comm_); }
  ~Part() { MPI_Comm_free(&comm_); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  [[nodiscard]] MPI_Comm comm() const { return comm_; }
  /// Collective over the part.
  [[nodiscard]] bool is_same(LineNumber mine) const {
    LineNumber least = mine;
    LineNumber most = mine;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, comm_);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, comm_);
    return least == most;
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// No other message has this content: `salt` tells lines apart.
ByteVector data_of(int salt, int source, int destination, std::size_t size) {
  ByteVector bytes(size, std::byte(salt * 64 + source * 8 + destination + 1));
  return bytes;
}

}  // namespace

MPI_TEST(lines, of_overlapping_communicators_have_one_number_on_all_their_ranks_and_none_twice) {
  Process process;
  std::mt19937 same(7);  // the same on all ranks
  std::mt19937 own(static_cast<unsigned>(rank()) + 100);
  std::set<LineNumber> had;
  std::vector<std::unique_ptr<Line>> open;
  for (int i = 0; i < 80; ++i) {
    const auto colors = static_cast<unsigned>(same());
    const bool reversed = same() % 2 == 0;
    const bool both = same() % 3 == 0;
    const int color = static_cast<int>(colors >> rank() & 1);
    const Part part(color, reversed);
    // Mostly only one of the two parts takes part: then ranks have different tags taken, and different
    // counts.
    if (color == 0 || both) {
      auto line = process.open(part.comm());
      if (!CHECK(line != nullptr)) break;
      const LineNumber mine = line->number();
      CHECK(part.is_same(mine));
      CHECK(had.insert(mine).second);
      CHECK(number::tag_of(mine) >= number::first_free);
      CHECK(number::tag_of(mine) < number::first_free + 80);
      for (const auto& each : open) CHECK(number::tag_of(each->number()) != number::tag_of(mine));
      int place = -1;
      MPI_Comm_rank(part.comm(), &place);
      CHECK_EQ(line->rank(), place);
      CHECK_EQ(line->members()->transport_rank(place), rank());
      open.push_back(std::move(line));
    }
    // Each rank closes its own choice: no message is on its way.
    if (own() % 2 == 0 && !open.empty())
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(own() % open.size()));
  }
}

MPI_TEST(lines, of_communicators_with_the_same_ranks_do_not_mix_their_data) {
  Process process;
  const Part reversed(0, true);
  const auto first = process.open(state().comm);
  const auto second = process.open(reversed.comm());
  if (!CHECK(first != nullptr && second != nullptr)) return;
  const std::size_t sizes[] = {8, std::size_t{2} << 20, 0, 8};
  const auto expect = [&](Line& line, int salt, int source, std::size_t bytes) {
    std::optional<ByteVector> got;
    process.wait([&] { return (got = line.receive_data(source)).has_value(); });
    CHECK(*got == data_of(salt, source, line.rank(), bytes));
  };
  for (const std::size_t bytes : sizes) {
    for (int to = 0; to < size(); ++to) first->send_data(to, data_of(1, first->rank(), to, bytes));
    for (int to = 0; to < size(); ++to) second->send_data(to, data_of(2, second->rank(), to, bytes));
    // They are received against the order in which they were sent.
    for (int source = size() - 1; source >= 0; --source) expect(*second, 2, source, bytes);
    for (int source = 0; source < size(); ++source) expect(*first, 1, source, bytes);
  }
  process.wait([&] { return first->unsent_data() == 0 && second->unsent_data() == 0; });
  CHECK(process.board().all_sent());
}

MPI_TEST(lines, of_several_communicators_agree_and_broadcast_at_once) {
  Process process;
  const Part parts[] = {
      {0, false}, {0, true}, {rank() % 2, false}, {rank() < (size() + 1) / 2 ? 0 : 1, false}};
  std::vector<std::unique_ptr<Line>> lines;
  for (const Part& part : parts) lines.push_back(process.open(part.comm()));
  const auto name = [](std::size_t line, int round) {
    // Broadcasts are of both kinds: those that come with their announcement, and those that are fetched.
    return data_of(static_cast<int>(line), round, 0, round % 2 == 0 ? 40000 : 4000);
  };
  constexpr int rounds = 5;
  std::vector<std::vector<std::uint64_t>> votes(lines.size()), words(lines.size());
  for (int round = 0; round < rounds; ++round) {
    // Each rank has an order of its own.
    for (std::size_t turn = 0; turn < lines.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(rank() + round)) % lines.size();
      votes[i].push_back(lines[i]->agreements().post({{}, "round " + std::to_string(round), name(i, round)}));
      words[i].push_back(lines[i]->broadcasts().post(lines[i]->rank() == 0 ? name(i, round) : ByteVector()));
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = lines.size(); i-- > 0;) {
      const auto r = static_cast<std::size_t>(round);
      std::optional<comm::Verdict> verdict;
      process.wait([&] { return (verdict = lines[i]->agreements().take(votes[i][r])).has_value(); });
      CHECK_EQ(verdict->status.text(), std::string());
      CHECK_EQ(verdict->contributions.size(), lines[i]->size());
      for (const ByteVector& each : verdict->contributions) CHECK(each == name(i, round));
      std::optional<ByteVector> told;
      process.wait([&] { return (told = lines[i]->broadcasts().take(words[i][r])).has_value(); });
      CHECK(*told == name(i, round));
    }
  }
}

/// Rank 0 waits for nobody, and the test calls nothing else there.
MPI_TEST(lines, a_rank_0_that_only_broadcasts_lets_go_of_what_it_has_sent) {
  Process process;
  const std::unique_ptr<Line> line = process.open(state().comm);
  bool is_gone = false;
  for (int round = 0; round < 2000 && !is_gone; ++round) {
    const bool gone = rank() == 0 && round > 0 && process.board().all_sent();
    const Result<ByteVector> told =
        line->broadcast(ByteVector(8, gone ? std::byte{1} : std::byte{0}), "a call", "the test");
    is_gone = told.is_ok() && told->front() == std::byte{1};
  }
  CHECK(is_gone);
}

/// The last rank leaves out calls that the others make.
MPI_TEST(lines, a_large_broadcast_that_a_rank_leaves_out_is_taken_for_no_other_and_holds_nobody_up) {
  Process process;
  std::unique_ptr<Line> line = process.open(state().comm);
  const bool absent = size() > 1 && rank() == size() - 1;
  const auto said = [](int round) { return data_of(0, round, 0, 40000); };
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t number = line->broadcasts().post(rank() == 0 ? said(round) : ByteVector());
    if (absent && round != 1) continue;
    std::optional<ByteVector> told;
    process.wait([&] { return (told = line->broadcasts().take(number)).has_value(); });
    CHECK(*told == said(round));
  }
  comm::await_everybody(process.board(), state().comm, "the others");
  line.reset();
  process.wait([&] { return process.board().all_sent(); });
  comm::await_everybody(process.board(), state().comm, "the others");
}

MPI_TEST(lines, are_heard_from_the_beginning_by_a_rank_that_opens_them_late) {
  Process process;
  const LineNumber mine = process.board().numbers().next_without_data();
  const int late = size() - 1;
  int ahead = 0;
  process.computes().on(word_message, [&](int, Unpacker&) { ++ahead; });
  if (rank() == late) process.wait([&] { return ahead == size() - 1; });
  Line line(process.board(), mine, all_ranks());
  std::vector<std::vector<int>> heard(static_cast<std::size_t>(size()));
  line.on(word_message, [&](int source, Unpacker& in) {
    heard[static_cast<std::size_t>(source)].push_back(in.get<int>());
  });
  for (int word = 0; word < 40; ++word) {
    Packer out;
    out.put(word_message).put(word);
    for (int to = 0; to < size(); ++to) line.send(to, out.bytes());
    // It comes behind half of the words on their way to the same rank.
    if (word == 20 && rank() != late) process.computes().send(late, out.bytes());
  }
  process.wait([&] {
    return std::all_of(heard.begin(), heard.end(), [](const auto& list) { return list.size() == 40; });
  });
  for (const std::vector<int>& list : heard) {
    for (int word = 0; word < 40; ++word) CHECK_EQ(list[static_cast<std::size_t>(word)], word);
  }
}

MPI_TEST(lines, without_a_free_tag_are_refused_on_every_rank_until_one_is_free) {
  Process process;
  const auto all = all_ranks();
  std::vector<std::unique_ptr<Line>> open;
  // Half of the tags are taken on the first rank, the others on the last.
  for (LineNumber tag = number::first_free; tag < number::tags; ++tag) {
    if (rank() == (tag % 2 == 0 ? 0 : size() - 1))
      open.push_back(std::make_unique<Line>(process.board(), tag | LineNumber{1} << number::tag_bits, all));
  }
  const Result<std::unique_ptr<Line>> refused = process.communicators().open_line(state().comm, "the test");
  CHECK(refused.status().code() == Code::state);
  CHECK(refused.status().text().find(cat(number::tags - number::first_free,
                                         " communicators are in use already")) != std::string::npos);
  CHECK(same_on_all_ranks(refused.status().text()));
  std::erase_if(open, [](const auto& each) { return number::tag_of(each->number()) == 5000; });
  const auto line = process.open(state().comm);
  if (line != nullptr) CHECK_EQ(line->number(), 5000U | LineNumber{2} << number::tag_bits);
}

MPI_TEST_MAIN
