// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Lines on a switchboard: each hears the messages sent on it, whole and in order, however many lines are
// open, whoever opens them first, and whatever the network does.
#include "ground/comm/line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fibre_world.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::sim {
namespace {

namespace number = comm::line_number;
using comm::Line;
using comm::LineNumber;
using comm::Members;

constexpr std::uint32_t word_message = 100;  // kinds of the tests' own
constexpr std::uint32_t open_message = 101;
constexpr std::uint32_t unknown_message = 4711;

ByteVector message(std::uint32_t kind, int content) {
  Packer out;
  out.put(kind).put(content);
  return out.take();
}

std::shared_ptr<const Members> members_of(std::vector<int> ranks) {
  return std::make_shared<const Members>(std::move(ranks));
}

std::vector<int> count_up_to(int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
  return ranks;
}

/// Runs `program` on all ranks, to its end.
void run_to_the_end(FibreWorld& world, const std::function<void(FibreRank&)>& program) {
  EXPECT_EQ(world.run(program), std::vector<std::string>());
  for (int rank = 0; rank < world.size(); ++rank) {
    world.board(rank).pump();
    EXPECT_EQ(world.board(rank).strays(), 0);
    EXPECT_TRUE(world.board(rank).all_sent());
  }
}

TEST(sim_line, ranks_count_from_0_in_the_order_of_the_members) {
  const std::vector<std::vector<int>> lists = {{0, 1, 2, 3, 4}, {0, 1, 2}, {4, 3, 2, 1, 0}, {3}, {4, 0, 2}};
  for (const std::vector<int>& list : lists) {
    const Members members(list);
    EXPECT_EQ(members.size(), static_cast<int>(list.size()));
    for (int transport_rank = 0; transport_rank < 6; ++transport_rank) {
      const auto found = std::find(list.begin(), list.end(), transport_rank);
      const int expected = found == list.end() ? -1 : static_cast<int>(found - list.begin());
      EXPECT_EQ(members.find(transport_rank), expected);
      if (expected < 0) continue;
      EXPECT_EQ(members.transport_rank(expected), transport_rank);
    }
  }
}

bool is_free(const comm::Switchboard& board, LineNumber tag) { return board.free_tags().test(tag); }

TEST(sim_line, a_tag_is_free_again_once_its_line_is_closed_and_its_number_never) {
  FibreWorld world(2, 1);
  comm::Switchboard& board = world.board(0);
  const auto both = members_of({0, 1});
  const Line session(board, number::session, both);
  for (LineNumber tag = 0; tag < number::tags; ++tag)
    ASSERT_EQ(is_free(board, tag), tag >= number::first_free);
  EXPECT_EQ(board.numbers().count(), 0U);
  for (std::uint64_t count = 1; count < 4; ++count) {
    const LineNumber mine = number::first_free | count << number::tag_bits;
    auto line = std::make_unique<Line>(board, mine, both);
    auto node = std::make_unique<Line>(board, mine | number::node_bit, both);
    EXPECT_EQ(board.numbers().count(), count);
    EXPECT_FALSE(is_free(board, number::first_free));
    EXPECT_TRUE(is_free(board, number::first_free + 1));
    if (count == 2)
      node.reset();
    else
      line.reset();
    EXPECT_FALSE(is_free(board, number::first_free));  // the other one is open still
    line.reset();
    node.reset();
    EXPECT_TRUE(is_free(board, number::first_free));
    EXPECT_EQ(board.numbers().count(), count);
  }
  std::make_unique<Line>(board, (number::tags - 1) | LineNumber{70} << number::tag_bits, both);
  EXPECT_EQ(board.numbers().count(), 70U);
  std::make_unique<Line>(board, number::first_free | LineNumber{5} << number::tag_bits, both);
  EXPECT_EQ(board.numbers().count(), 70U);
}

TEST(sim_line, lines_without_data_take_no_tag_and_count_for_themselves) {
  FibreWorld world(1, 1);
  comm::Switchboard& board = world.board(0);
  const auto alone = members_of({0});
  std::set<LineNumber> numbers;
  std::vector<std::unique_ptr<Line>> lines;
  for (int i = 0; i < 20; ++i) {
    const LineNumber next = board.numbers().next_without_data();
    EXPECT_EQ(number::tag_of(next), number::without_data);
    EXPECT_TRUE(numbers.insert(next).second);
    lines.push_back(std::make_unique<Line>(board, next, alone));
    if (i % 3 == 0) lines.pop_back();
    EXPECT_EQ(board.numbers().count(), 0U);
  }
  for (LineNumber tag = 0; tag < number::tags; ++tag)
    ASSERT_EQ(is_free(board, tag), tag >= number::first_free);
}

constexpr int words = 6;  // of each rank to each
constexpr LineNumber some_line = number::first_free | LineNumber{1} << number::tag_bits;

TEST(sim_line, what_comes_before_a_line_is_open_is_delivered_in_order_and_before_what_comes_later) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Scheduler dice(seed * 7919);
    FibreWorld world(static_cast<int>(dice.random(2, 9)), seed);
    const int late = static_cast<int>(dice.random(0, world.size() - 1));
    const auto all = members_of(count_up_to(world.size()));
    run_to_the_end(world, [&](FibreRank& rank) {
      const int me = rank.rank();
      Line session(rank.board(), number::session, all);
      int ahead = 0;  // ranks with half of their words on the way
      session.on(open_message, [&](int, Unpacker&) { ++ahead; });
      if (me == late) {
        // Their words came before this, and have been kept here.
        rank.board().wait([&] { return ahead == world.size() - 1; }, "half of the words of all others");
      } else {
        rank.stall(world.scheduler().random(0, 50'000));
      }
      std::vector<std::vector<int>> heard(static_cast<std::size_t>(world.size()));
      Line line(rank.board(), some_line, all);
      line.on(word_message, [&](int source, Unpacker& in) {
        heard[static_cast<std::size_t>(source)].push_back(in.get<int>());
      });
      for (int word = 0; word < words; ++word) {
        if (word == words / 2 && me != late) session.send(late, message(open_message, 0));
        for (int to = 0; to < world.size(); ++to) line.send(to, message(word_message, word));
        rank.stall(world.scheduler().random(0, 20'000));
        rank.board().pump();
      }
      const auto complete = [&] {
        return std::all_of(heard.begin(), heard.end(), [](const auto& list) { return list.size() >= words; });
      };
      rank.board().wait(complete, "all words");
      for (const std::vector<int>& list : heard) EXPECT_EQ(list, count_up_to(words)) << "seed " << seed;
      rank.board().wait([&] { return rank.board().all_sent(); }, "its own words to leave");
    });
    if (testing::Test::HasFailure()) return;
  }
}

TEST(sim_line, early_messages_wait_for_their_own_line_alone) {
  FibreWorld world(2, 5);
  const auto both = members_of({0, 1});
  const LineNumber other_line = some_line + 1;
  std::vector<std::string> heard;
  const auto listen = [&heard](Line& line, const std::string& name) {
    line.on(word_message, [&heard, name](int source, Unpacker& in) {
      heard.push_back(cat(name, " from ", source, ": ", in.get<int>()));
    });
  };
  Line from(world.board(0), some_line, both);
  Line from_other(world.board(0), other_line, both);
  from.send(1, message(word_message, 1));
  from_other.send(1, message(word_message, 2));
  from.send(1, message(word_message, 3));
  world.settle();
  world.board(1).pump();
  Line other(world.board(1), other_line, both);
  listen(other, "other");
  world.board(1).pump();
  EXPECT_EQ(heard, std::vector<std::string>{"other from 0: 2"});
  heard.clear();
  Line line(world.board(1), some_line, both);
  listen(line, "line");
  world.board(1).pump();
  EXPECT_EQ(heard, (std::vector<std::string>{"line from 0: 1", "line from 0: 3"}));
  EXPECT_EQ(world.board(1).strays(), 0);
}

TEST(sim_line, a_line_that_is_opened_while_messages_are_delivered_hears_the_early_ones_first) {
  FibreWorld world(2, 3);
  const auto both = members_of({0, 1});
  Line session(world.board(0), number::session, both);
  Line line(world.board(0), some_line, both);
  line.send(1, message(word_message, 0));
  line.send(1, message(word_message, 1));
  session.send(1, message(open_message, 0));
  line.send(1, message(word_message, 2));
  std::vector<int> heard;
  std::unique_ptr<Line> opened;
  Line receiver(world.board(1), number::session, both);
  receiver.on(open_message, [&](int, Unpacker&) {
    opened = std::make_unique<Line>(world.board(1), some_line, both);
    opened->on(word_message, [&](int, Unpacker& in) { heard.push_back(in.get<int>()); });
  });
  world.settle();  // all four have arrived, and are taken in one pass
  world.board(1).pump();
  line.send(1, message(word_message, 3));
  world.settle();
  world.board(1).pump();
  EXPECT_EQ(heard, count_up_to(4));
}

TEST(sim_line, a_message_of_a_kind_that_nobody_takes_is_counted_and_told_and_loses_no_other) {
  FibreWorld world(2, 2);
  const auto both = members_of({0, 1});
  int heard = 0;
  Line from(world.board(0), some_line, both);
  from.send(1, message(unknown_message, 0));
  from.send(1, message(word_message, 0));
  world.settle();
  testing::internal::CaptureStderr();
  world.board(1).pump();
  EXPECT_EQ(world.board(1).strays(), 0);  // early: the rank that opens the line may know it
  Line line(world.board(1), some_line, both);
  line.on(word_message, [&](int, Unpacker&) { ++heard; });
  world.board(1).pump();
  EXPECT_EQ(world.board(1).strays(), 1);
  from.send(1, message(unknown_message, 0));
  from.send(1, {});  // has no kind at all
  from.send(1, message(word_message, 0));
  world.settle();
  world.board(1).pump();
  EXPECT_EQ(world.board(1).strays(), 3);
  EXPECT_EQ(heard, 2);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find(cat("unknown kind ", unknown_message, " from rank 0 on line ", some_line)),
            std::string::npos)
      << told;
}

/// Takes the place of two calls of MPI_Allreduce: the members of a line agree on its number as Communicators
/// does.
class Meeting {
 public:
  explicit Meeting(std::vector<int> its_members) : members(std::move(its_members)) {}
  void join(FibreRank& rank) {
    free_ &= rank.board().free_tags();
    count_ = std::max(count_, rank.board().numbers().count() + 1);
    here_.push_back(&rank);
    if (!is_complete()) return;
    for (FibreRank* each : here_) each->poke();
  }
  [[nodiscard]] bool is_complete() const { return here_.size() == members.size(); }
  [[nodiscard]] LineNumber number() const {
    LineNumber tag = 0;
    while (!free_.test(tag)) ++tag;
    return tag | count_ << number::tag_bits;
  }

  const std::vector<int> members;

 private:
  number::Tags free_ = number::Tags().set();
  std::uint64_t count_ = 0;
  std::vector<FibreRank*> here_;
};

/// The amount of messages on each line.
struct Talk {
  int rounds = 3;                                      // of agreements, of broadcasts, and of words
  std::vector<std::size_t> data = {8, 4096, 0, 1500};  // bytes of the data messages of each pair
};

/// Returns the same bytes on sender and receiver, like those of no other message.
ByteVector data_of(int line, int source, int destination, std::size_t number, std::size_t size) {
  const auto salt = static_cast<std::size_t>(line * 131 + source * 17 + destination * 5) + number;
  ByteVector bytes(size);
  for (std::size_t i = 0; i < std::min<std::size_t>(size, 64); ++i) {
    bytes[i] = std::byte(salt >> 8 * (i % 2));
    bytes[size - 1 - i] = bytes[i];
  }
  return bytes;
}

/// One rank on one line: it says and hears as `Talk` tells.
class Talker {
 public:
  Talker(FibreRank& rank, const Meeting& meeting, int name, const Talk& talk)
      : talk_(talk), name_(name), line_(rank.board(), meeting.number(), members_of(meeting.members)) {
    const auto peers = static_cast<std::size_t>(line_.size());
    words_.resize(peers);
    data_.resize(peers);
    line_.on(word_message, [this](int source, Unpacker& in) {
      EXPECT_EQ(in.get<int>(), word(source, words_[static_cast<std::size_t>(source)]++));
    });
    EXPECT_EQ(meeting.members[static_cast<std::size_t>(line_.rank())], rank.rank());
  }

  /// Says the next thing. Returns false if everything is said.
  bool say() {
    if (said_ < talk_.rounds) {
      agreements_.push_back(line_.agreements().post(vote(line_.rank(), said_)));
      const ByteVector mine = line_.rank() == 0 ? speech(said_) : ByteVector();
      broadcasts_.push_back(line_.broadcasts().post(mine));
      for (int to = 0; to < line_.size(); ++to) {
        Packer out;
        out.put(word_message).put(word(line_.rank(), said_));
        line_.send(to, out.take());
      }
    } else if (const auto next = static_cast<std::size_t>(said_ - talk_.rounds); next < talk_.data.size()) {
      for (int to = 0; to < line_.size(); ++to)
        line_.send_data(to, data_of(name_, line_.rank(), to, next, talk_.data[next]));
    } else {
      return false;
    }
    ++said_;
    return true;
  }

  /// Takes what there is. Returns true once that was everything.
  bool hear() {
    while (verdicts_ < agreements_.size()) {
      const auto verdict = line_.agreements().take(agreements_[verdicts_]);
      if (!verdict) break;
      check(*verdict, static_cast<int>(verdicts_++));
    }
    while (speeches_ < broadcasts_.size()) {
      const auto told = line_.broadcasts().take(broadcasts_[speeches_]);
      if (!told) break;
      EXPECT_EQ(*told, speech(static_cast<int>(speeches_++)));
    }
    bool all = true;
    for (int source = 0; source < line_.size(); ++source) {
      std::size_t& taken = data_[static_cast<std::size_t>(source)];
      while (taken < talk_.data.size()) {
        const auto bytes = line_.receive_data(source);
        if (!bytes) break;
        EXPECT_TRUE(*bytes == data_of(name_, source, line_.rank(), taken, talk_.data[taken]))
            << "message " << taken << " from " << source << " on line " << name_;
        ++taken;
      }
      all = all && taken == talk_.data.size() && words_[static_cast<std::size_t>(source)] == talk_.rounds;
    }
    return all && static_cast<int>(verdicts_) == talk_.rounds && static_cast<int>(speeches_) == talk_.rounds;
  }
  [[nodiscard]] const Line& line() const { return line_; }

 private:
  [[nodiscard]] int word(int source, int round) const { return name_ * 1'000'000 + source * 1000 + round; }
  [[nodiscard]] ByteVector speech(int round) const {
    return data_of(name_, 0, 1, 7, static_cast<std::size_t>(round) * 900 + 3);
  }
  /// Returns true if the rank has an error: on every third line one rank, in the second round.
  [[nodiscard]] bool fails(int rank, int round) const {
    return name_ % 3 == 0 && round == 1 && rank == line_.size() / 2;
  }
  [[nodiscard]] comm::Vote vote(int rank, int round) const {
    comm::Vote vote{{}, cat("call ", round, " on line ", name_), data_of(name_, rank, rank, 1, 16)};
    if (fails(rank, round)) vote.status = Status(Code::io, cat("an error on line ", name_));
    return vote;
  }
  void check(const comm::Verdict& verdict, int round) const {
    EXPECT_EQ(verdict.status.text(), name_ % 3 == 0 && round == 1 ? cat("an error on line ", name_) : "");
    EXPECT_EQ(verdict.contributions.size(), static_cast<std::size_t>(line_.size()));
    for (int rank = 0; rank < line_.size(); ++rank)
      EXPECT_EQ(verdict.contributions[static_cast<std::size_t>(rank)], data_of(name_, rank, rank, 1, 16));
  }

  const Talk& talk_;
  const int name_;
  Line line_;
  int said_ = 0;
  std::vector<std::uint64_t> agreements_, broadcasts_;
  std::size_t verdicts_ = 0, speeches_ = 0;
  std::vector<int> words_;         // heard, by source
  std::vector<std::size_t> data_;  // taken, by source
};

/// Batches of lines among ranks of a world. The ranks open the lines of a batch in its order, each in its own
/// time. They talk on all of them at once, and close each when everything was heard.
struct Plan {
  std::vector<std::vector<Meeting>> batches;
  Talk talk;
  bool drains = true;  // lines are closed once nothing of them is unsent
};

void talk_in_batches(FibreWorld& world, FibreRank& rank, Plan& plan, std::set<LineNumber>& numbers) {
  Scheduler& dice = world.scheduler();
  int name = 0;
  for (std::vector<Meeting>& batch : plan.batches) {
    std::vector<std::unique_ptr<Talker>> talkers;
    for (Meeting& meeting : batch) {
      ++name;
      const auto& members = meeting.members;
      if (std::find(members.begin(), members.end(), rank.rank()) == members.end()) continue;
      rank.stall(dice.random(0, 30'000));
      meeting.join(rank);
      rank.board().wait([&meeting] { return meeting.is_complete(); }, cat("the others of line ", name));
      EXPECT_TRUE(numbers.insert(meeting.number()).second) << "a number is given again";
      for (const auto& each : talkers)
        EXPECT_NE(number::tag_of(each->line().number()), number::tag_of(meeting.number()));
      talkers.push_back(std::make_unique<Talker>(rank, meeting, name, plan.talk));
    }
    std::size_t silent = 0;
    while (silent < talkers.size()) {
      const auto turn =
          static_cast<std::size_t>(dice.random(0, static_cast<std::int64_t>(talkers.size()) - 1));
      silent = 0;
      if (!talkers[turn]->say()) {
        for (const auto& each : talkers) silent += each->say() ? 0U : 1U;
      }
      if (dice.once_in(2)) rank.stall(0);
      if (dice.once_in(2)) rank.board().pump();
    }
    const auto over = [&] {
      std::erase_if(talkers, [&](const std::unique_ptr<Talker>& each) {
        return each->hear() && (!plan.drains || each->line().unsent_data() == 0);
      });
      return talkers.empty();
    };
    rank.board().wait(over, "what others say");
  }
}

/// Returns some of the ranks, in any order.
std::vector<int> any_members(Scheduler& dice, int size) {
  std::vector<int> all = count_up_to(size);
  for (std::size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1], all[static_cast<std::size_t>(dice.random(0, static_cast<std::int64_t>(i) - 1))]);
  all.resize(static_cast<std::size_t>(dice.random(1, size)));
  return all;
}

/// Returns the numbers that each rank's lines had.
std::vector<std::set<LineNumber>> talk(FibreWorld& world, Plan& plan) {
  std::vector<std::set<LineNumber>> numbers(static_cast<std::size_t>(world.size()));
  run_to_the_end(world, [&](FibreRank& rank) {
    talk_in_batches(world, rank, plan, numbers[static_cast<std::size_t>(rank.rank())]);
  });
  return numbers;
}

TEST(sim_line, many_lines_of_overlapping_ranks_are_open_at_once_and_nothing_mixes) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scheduler dice(seed * 104729);
    FibreWorld world(static_cast<int>(dice.random(2, 8)), seed);
    Plan plan;
    plan.drains = dice.once_in(2);
    std::size_t most = 0;
    for (int batch = 0; batch < 3; ++batch) {
      plan.batches.emplace_back();
      for (std::int64_t line = dice.random(1, 5); line > 0; --line)
        plan.batches.back().emplace_back(any_members(dice, world.size()));
      most = std::max(most, plan.batches.back().size());
    }
    for (const std::set<LineNumber>& numbers : talk(world, plan)) {
      // A rank may begin a batch while others are in the one before.
      for (const LineNumber each : numbers)
        EXPECT_LT(number::tag_of(each), number::first_free + plan.batches.size() * most);
    }
    for (int rank = 0; rank < world.size(); ++rank)
      EXPECT_TRUE(is_free(world.board(rank), number::first_free)) << "all lines are closed";
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(sim_line, the_same_ranks_open_and_close_lines_again_and_again) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    FibreWorld world(3, seed);
    Plan plan;
    plan.talk = {1, {8, 2000}};
    for (int batch = 0; batch < 15; ++batch) {
      plan.batches.emplace_back();
      plan.batches.back().emplace_back(std::vector<int>{2, 0, 1});
    }
    for (const std::set<LineNumber>& numbers : talk(world, plan)) {
      EXPECT_EQ(numbers.size(), 15U);
      for (const LineNumber each : numbers) EXPECT_LE(number::tag_of(each), number::first_free + 2);
    }
  }
}

TEST(sim_line, large_data_of_two_lines_of_the_same_ranks_does_not_mix) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    FibreWorld world(3, seed);
    Plan plan;
    plan.talk = {1, {8, std::size_t{2} << 20, 8}};
    plan.batches.emplace_back();
    for (int line = 0; line < 2; ++line) plan.batches.back().emplace_back(std::vector<int>{0, 1, 2});
    talk(world, plan);
  }
}

TEST(sim_line, rank_0_of_a_broadcast_waits_while_more_than_32_mib_of_it_are_not_taken) {
  FibreWorld world(2, 1);
  const auto both = members_of({0, 1});
  Nanoseconds sent = 0;
  const Nanoseconds late = 3 * FibreWorld::second;
  run_to_the_end(world, [&](FibreRank& rank) {
    Line line(rank.board(), some_line, both);
    if (rank.rank() == 1) rank.stall(late);
    for (int number = 0; number < 2; ++number) {
      const ByteVector bytes(std::size_t{20} << 20, std::byte(number));
      EXPECT_TRUE(*line.broadcast(rank.rank() == 0 ? bytes : ByteVector(), "a call", "the test") == bytes);
      if (rank.rank() == 0 && number == 0) sent = world.scheduler().now();
    }
    EXPECT_LT(sent, late) << "the first alone";
    EXPECT_GE(world.scheduler().now(), late);
  });
}

TEST(sim_line, a_rank_that_waits_long_warns_once_by_the_transports_clock) {
  FibreWorld world(3, 1);
  const auto all = members_of({0, 1, 2});
  testing::internal::CaptureStderr();
  run_to_the_end(world, [&](FibreRank& rank) {
    rank.board().watch().warn_seconds = 4;
    Line line(rank.board(), some_line, all);
    for (const Nanoseconds stall : {3, 60}) {
      if (rank.rank() == 2) rank.stall(stall * FibreWorld::second);
      EXPECT_TRUE(line.agree({{}, cat("call ", stall), {}}).status.is_ok());
    }
  });
  const std::string told = testing::internal::GetCapturedStderr();
  for (const std::string warned :
       {"rank 0 has waited 4 s for the other ranks in call 60: nothing from rank 2",
        "rank 1 has waited 4 s for the other ranks in call 60"}) {
    const std::size_t at = told.find(warned);
    ASSERT_NE(at, std::string::npos) << told;
    EXPECT_EQ(told.find(warned, at + 1), std::string::npos) << told;
  }
  EXPECT_EQ(told.find("call 3:"), std::string::npos) << told;
}

TEST(sim_line, ranks_that_wait_for_a_lost_one_are_named_and_unwound) {
  FibreWorld world(4, 1);
  const auto all = members_of(count_up_to(4));
  const auto owned = std::make_shared<int>(0);
  const std::vector<std::string> unfinished = world.run([&](FibreRank& rank) {
    const std::shared_ptr<int> mine = owned;
    Line line(rank.board(), some_line, all);
    EXPECT_TRUE(line.agree({{}, "the first call", {}}).status.is_ok());
    if (rank.rank() == 3) {
      rank.lose();
      rank.stall(1);
    }
    line.agree({{}, "the second call", {}});
    ADD_FAILURE() << "agreed without rank 3";
  });
  EXPECT_EQ(unfinished, (std::vector<std::string>{"rank 0 waits for the other ranks in the second call",
                                                  "rank 1 waits for the other ranks in the second call",
                                                  "rank 2 waits for the other ranks in the second call"}));
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace tailrace::sim
