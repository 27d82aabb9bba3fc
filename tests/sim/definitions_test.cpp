// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Definitions travel in the lanes of the ranks that make them. Whatever lane comes to a stream first, each
// server opens the stream once, with all that the ranks told of it. No server keeps anything of a stream that
// no rank begins.
#include "engine/pipeline/server/definitions.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "engine/pipeline/compute/stream_client.hpp"
#include "fibre_world.hpp"
#include "ground/base/text.hpp"
#include "ground/sim/disk.hpp"

namespace tailrace::sim {
namespace definitions_test {

using node::Descriptor;
using pipeline::Definitions;
using pipeline::Opening;
using pipeline::StreamClient;
using pipeline::Told;

constexpr int computes = 4, servers = 3, streams = 6;
constexpr int own = 50;  // elements of each compute rank

/// Returns element i of rank c. The elements of the ranks interleave, so that only the rank itself knows its
/// own.
Index element(int c, int i) { return static_cast<Index>(i) * computes + c; }

/// The values of a field without time.
std::shared_ptr<const ByteVector> mask() { return std::make_shared<const ByteVector>(7, std::byte{3}); }

/// Returns what the program has told of field a.
std::shared_ptr<const codec::Coordinates> places() {
  static const auto told = std::make_shared<const codec::Coordinates>(
      codec::Coordinates{{7}, 0, 99, ByteVector(7 * 16, std::byte{3})});
  return told;
}

/// The calls of all compute ranks. Every rank defines the same streams, and then begins or forgets each of
/// them.
struct Program {
  std::vector<std::deque<Told>> lanes{computes};  // entries that no server has read yet
  std::vector<bool> begun;

  Program(std::mt19937& random, const comm::Line& line, const exchange::Roster& roster) {
    for (int stream = 1; stream <= streams; ++stream) begun.push_back(random() % 3 != 0);
    const int pieces = static_cast<int>(random() % 100) + 1;
    for (int c = 0; c < computes; ++c) {
      std::vector<Index> indices;
      for (int i = 0; i < own; ++i) indices.push_back(element(c, i));
      const layout::Layout part = *layout::Layout::indexed_part({computes * own}, c, computes, indices);
      for (int stream = 1; stream <= streams; ++stream) call(c, stream, part, indices, pieces, line, roster);
    }
  }

  void call(int c, int stream, const layout::Layout& part, const std::vector<Index>& indices, int pieces,
            const comm::Line& line, const exchange::Roster& roster) {
    StreamClient client(line, roster, c, cat("stream ", stream), TimeAxis());
    client.definitions().set_stream(static_cast<std::uint32_t>(stream));
    Opening head;
    head.ledger = cat("stream ", stream);
    tell(c, client.definitions().begin(head), pieces);
    codec::FieldDefinition field;
    field.name = "a";
    field.georeference.coordinates = places();
    const layout::Layout block = *layout::Layout::block({7}, computes);
    tell(c, client.definitions().add({&field, ByteVector(30, std::byte{5}), &block, 1, false, {}}), pieces);
    field.name = "b";
    field.georeference.coordinates = nullptr;
    tell(c, client.definitions().add({&field, {}, &part, 2, true, indices}), pieces);
    field.name = "mask";
    field.type = ElementType::i8;
    field.shape = {7};
    field.has_time = false;
    tell(c, client.definitions().add({&field, {}, &block, 1, false, {}}), pieces);
    tell(c, client.definitions().add_values(2, mask()), pieces);
    if (begun[static_cast<std::size_t>(stream) - 1]) {
      EXPECT_TRUE(client.begin(0));
      tell(c, {{client.descriptor(Descriptor::Kind::begin), {}}}, 0);
    } else {
      tell(c, {client.definitions().forget()}, pieces);
    }
  }

  /// Puts entries into the lane of rank c, in pieces of at most `most` bytes, as if the lane had no room for
  /// more. With 0, puts them whole.
  void tell(int c, const std::vector<Told>& all, int most) {
    for (const Told& told : all) {
      ByteVector whole = told.bytes;
      if (told.behind) whole.insert(whole.end(), told.behind->begin(), told.behind->end());
      std::span<const std::byte> rest = whole;
      do {
        const auto bytes =
            most == 0 ? rest : rest.first(std::min(static_cast<std::size_t>(most), rest.size()));
        rest = rest.subspan(bytes.size());
        Told piece{told.descriptor, ByteVector(bytes.begin(), bytes.end())};
        if (most != 0) piece.descriptor.level = rest.empty() ? 0 : 1;
        lanes[static_cast<std::size_t>(c)].push_back(std::move(piece));
      } while (!rest.empty());
    }
  }
};

/// One server: reads the lanes of its ranks, and waits at the beginning of a stream until it is open.
class Reader {
 public:
  Reader(FibreRank& rank, const exchange::Roster& roster, Program& program, std::uint64_t seed)
      : rank_(rank),
        program_(program),
        random_(static_cast<unsigned>(seed) * 7919U + static_cast<unsigned>(rank.rank())),
        executor_(scheduler_, 1, nullptr, [] {}),
        files_(storage::memory_target()),
        line_(rank.board(), comm::line_number::session, members()),
        context_{line_, roster, rank.rank(), executor_, files_, {}, 0, 0, statistics_, {}},
        definitions_(
            context_, [this](Opening opening) { open(std::move(opening)); },
            [](const Status& why) { ADD_FAILURE() << why.text(); }) {}

  void run() {
    const std::vector<int> homed = context_.roster.homed(rank_.rank());
    rank_.board().wait(
        [&] {
          bool done = true;
          for (const int c : homed) {
            for (int steps = static_cast<int>(random_() % 4); steps > 0 && read(c); --steps) continue;
            done = done && program_.lanes[static_cast<std::size_t>(c)].empty();
          }
          return done && static_cast<std::ptrdiff_t>(opened_.size()) ==
                             std::count(program_.begun.begin(), program_.begun.end(), true);
        },
        "all streams");
  }

  [[nodiscard]] std::size_t kept() const { return definitions_.kept(); }

 private:
  static std::shared_ptr<const comm::Members> members() {
    std::vector<int> all;
    for (int server = 0; server < servers; ++server) all.push_back(server);
    return std::make_shared<const comm::Members>(std::move(all));
  }

  bool read(int c) {
    auto& lane = program_.lanes[static_cast<std::size_t>(c)];
    if (lane.empty()) return false;
    if (random_() % 8 == 0) rank_.stall(static_cast<Nanoseconds>(random_() % 50'000));
    const Told& told = lane.front();
    if (told.descriptor.kind == Descriptor::Kind::define) {
      definitions_.on_entry(c, told.descriptor, told.bytes);
    } else if (opened_.count(told.descriptor.stream) == 0) {
      definitions_.want(told.descriptor);
      return false;
    }
    lane.pop_front();
    return true;
  }

  void open(Opening opening) {
    EXPECT_TRUE(program_.begun[opening.stream - 1]);
    EXPECT_EQ(++opened_[opening.stream], 1);
    EXPECT_EQ(opening.ledger, cat("stream ", opening.stream));
    EXPECT_EQ(opening.reference, 0);
    ASSERT_EQ(opening.fields.size(), 3U);
    EXPECT_EQ(opening.fields[1].name, "b");
    EXPECT_EQ(opening.prepared[0], ByteVector(30, std::byte{5}));
    EXPECT_EQ(opening.layout_of, (std::vector<int>{0, 1, 0}));
    const auto& told = opening.fields[0].georeference.coordinates;
    ASSERT_TRUE(told && told->are_those_of(*places()));
    const bool is_root = context_.is_home(opening.reference);
    EXPECT_EQ(told->values, is_root ? places()->values : ByteVector()) << "the root alone has heads";
    EXPECT_FALSE(opening.fields[1].georeference.coordinates);
    EXPECT_TRUE(opening.fields[1].has_time && !opening.fields[1].values && !opening.fields[2].has_time);
    ASSERT_EQ(opening.fields[2].values != nullptr, is_root) << "the root alone has heads";
    if (is_root) {
      EXPECT_EQ(*opening.fields[2].values, *mask());
    }
    Unpacker in(opening.layouts[1]);
    const layout::Layout layout = *layout::Layout::unpack(in);
    for (int c = 0; c < computes; ++c) EXPECT_EQ(layout.owner(element(c, 3)), c);
  }

  FibreRank& rank_;
  Program& program_;
  std::mt19937 random_;
  Scheduler scheduler_{1};  // of encoding jobs: this test has none
  SimThreads executor_;
  pipeline::OpenFiles files_;
  pipeline::Statistics statistics_;
  comm::Line line_;
  pipeline::Context context_;
  std::map<std::uint32_t, int> opened_;
  Definitions definitions_;
};

TEST(sim_definitions, open_each_stream_once_on_every_server_whichever_lane_comes_to_it_first) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    FibreWorld world(servers, seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    exchange::Roster roster;
    for (int c = 0; c < computes; ++c) roster.compute_transport.push_back(servers + c);
    for (int server = 0; server < servers; ++server) roster.server_transport.push_back(server);
    // The last server has no compute rank of its own: it hears of streams from other servers alone.
    for (int c = 0; c < computes; ++c) roster.home.push_back(static_cast<int>(random() % (servers - 1)));
    const comm::Line line(world.board(0), comm::line_number::computes,
                          std::make_shared<const comm::Members>(std::vector<int>{0}));
    Program program(random, line, roster);
    std::vector<std::unique_ptr<Reader>> readers;
    for (int server = 0; server < servers; ++server)
      readers.push_back(std::make_unique<Reader>(world.rank(server), roster, program, seed));
    // Servers to which no message comes nap between looks, and a lane may have thousands of entries.
    const auto stuck =
        world.run([&](FibreRank& rank) { readers[static_cast<std::size_t>(rank.rank())]->run(); },
                  100 * FibreWorld::hour);
    EXPECT_EQ(stuck, std::vector<std::string>()) << "seed " << seed;
    world.settle();
    for (int server = 0; server < servers; ++server) {
      while (world.board(server).pump()) continue;
      EXPECT_EQ(readers[static_cast<std::size_t>(server)]->kept(), 0U) << "seed " << seed;
    }
    if (HasFailure()) return;
  }
}

}  // namespace definitions_test
}  // namespace tailrace::sim
