// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Pages in the memory of several nodes: what shared files hold when calls fail, when they are cut, and when
// they take over the memory of another file, and what global arrays hold.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "faces/shared/elements/global_array.hpp"
#include "faces/shared/shared_file.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

using shared::GlobalArray;
using shared::NodePages;
using shared::Safety;
using shared::SharedFile;

constexpr Bytes page = 4096;

std::vector<int> all_of(const SessionRank& rank) {
  std::vector<int> all(static_cast<std::size_t>(rank.ranks()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

shared::Definition definition(const char* mode, Bytes memory) {
  return {"data", *shared::read_mode(mode), page, memory};
}

Status write(SharedFile& file, Bytes offset, std::string_view bytes) {
  const shared::Source sources[] = {{std::as_bytes(std::span(bytes)), offset}};
  return file.write(sources);
}

std::string read(SharedFile& file, Bytes offset, std::size_t bytes) {
  std::string into(bytes, '?');
  const shared::Sink sinks[] = {{std::as_writable_bytes(std::span(into)), offset}};
  const Result<Bytes> got = file.read(sinks);
  return got.is_ok() ? into.substr(0, static_cast<std::size_t>(*got)) : got.status().text();
}

std::string stored(storage::Target& disk) {
  const ByteVector bytes = read_file(disk, "data");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void put(storage::Target& disk, const std::string& content) {
  const auto file = *disk.open("data", storage::OpenMode::create);
  EXPECT_TRUE(file->write(std::as_bytes(std::span(content)), 0).is_ok());
}

/// A job of so many ranks on nodes of `per_node`, each of which runs `program` with a shared file.
void with_file(Job job, const shared::Definition& what,
               const std::function<void(SessionWorld&, SessionRank&, SharedFile&)>& program,
               Nanoseconds limit = FibreWorld::hour) {
  SessionWorld world(std::move(job));
  const Texts stuck = world.run(
      [&](SessionRank& rank) {
        const auto group = rank.group(all_of(rank));
        const auto file = SharedFile::open(*group, "open", what);
        EXPECT_TRUE(file.is_ok()) << file.status().text();
        if (file.is_ok()) program(world, rank, **file);
      },
      limit);
  EXPECT_EQ(stuck, Texts());
}

/// The writer has long been told that its write is done.
TEST(sim_pages, what_another_node_could_not_write_is_told_until_a_flush) {
  Job job;
  job.nodes = nodes_of(3, 1);
  put(*job.storage, std::string(5 * page, 'o'));
  with_file(job, definition("r+", 16 * page), [](SessionWorld& world, SessionRank& rank, SharedFile& file) {
    if (rank.rank() == 1)
      world.storage_at(1).restart({1, storage::Fault::io_error, set_of(storage::Call::read), true});
    EXPECT_TRUE(file.sync().is_ok());
    // A part of page 1, which is that of node 1 and has to be read.
    if (rank.rank() == 0) {
      EXPECT_TRUE(write(file, page + 5, "lost").is_ok());
    }
    EXPECT_EQ(file.sync().code(), Code::io);
    if (rank.rank() == 1) world.storage_at(1).restart({});
    EXPECT_EQ(file.sync().code(), Code::io)
        << "it was told by the last sync, but the bytes are still missing";
    EXPECT_EQ(file.resize(6 * page).code(), Code::io);
    EXPECT_EQ(file.flush().code(), Code::io);
    EXPECT_TRUE(file.sync().is_ok());
    if (rank.rank() == 0) {
      EXPECT_TRUE(write(file, page + 5, "here").is_ok());
    }
    EXPECT_TRUE(file.close().is_ok());
  });
  const std::string found = stored(*job.storage);
  EXPECT_EQ(std::ssize(found), 6 * page);
  EXPECT_EQ(found.substr(page + 4, 6), "ohereo");
}

TEST(sim_pages, a_file_that_cannot_be_cut_stays_as_it_is) {
  for (const int per_node : {1, 2, 4}) {
    Job job;
    job.nodes = nodes_of(4, per_node);
    const std::string content(7 * page + 99, 'c');
    put(*job.storage, content);
    with_file(job, definition("r+", 64 * page),
              [&](SessionWorld& world, SessionRank& rank, SharedFile& file) {
                EXPECT_EQ(read(file, rank.rank() * page, page), std::string(page, 'c'));
                if (rank.rank() == 0)
                  world.storage_at(0).restart({1, storage::Fault::io_error, set_of(storage::Call::truncate)});
                EXPECT_TRUE(file.sync().is_ok());
                EXPECT_EQ(file.resize(page / 2).code(), Code::io);
                EXPECT_EQ(*file.size(), std::ssize(content));
                EXPECT_TRUE(read(file, 0, content.size()) == content);
                EXPECT_TRUE(file.flush().is_ok());
                EXPECT_TRUE(file.resize(page / 2).is_ok());
                EXPECT_TRUE(file.resize(3 * page).is_ok());
                EXPECT_TRUE(read(file, 0, content.size()) ==
                            std::string(page / 2, 'c') + std::string(page * 5 / 2, '\0'));
                EXPECT_TRUE(file.close().is_ok());
              });
    EXPECT_TRUE(stored(*job.storage) == std::string(page / 2, 'c') + std::string(page * 5 / 2, '\0'));
  }
}

/// The budget leaves little memory to the next file, so that frames are used again after the first 256 pages.
TEST(sim_pages, a_file_whose_frames_are_used_again_holds_what_was_written) {
  constexpr Bytes pages = 1000;
  for (const int per_node : {1, 3}) {
    Job job;
    job.nodes = nodes_of(3, per_node);
    job.settings = "memory=16MiB";
    std::string content(pages * page, 'o');
    put(*job.storage, content);
    const auto letter = [](Index number, int round) {
      return static_cast<char>('a' + (number + round) % 23);
    };
    shared::Definition what = definition("r+", 0);
    what.memory.reset();
    with_file(job, what, [&](SessionWorld& /*world*/, SessionRank& rank, SharedFile& file) {
      for (int round = 0; round < 2; ++round) {
        for (Index each = rank.rank(); each < pages; each += rank.ranks())
          EXPECT_TRUE(write(file, each * page + 10 * round, std::string(9, letter(each, round))).is_ok());
        EXPECT_TRUE(file.flush().is_ok());
        for (Index each = 0; each < pages; ++each) {
          EXPECT_EQ(read(file, each * page + 10 * round, 10), std::string(9, letter(each, round)) + "o");
        }
        EXPECT_TRUE(file.sync().is_ok());
      }
      EXPECT_TRUE(file.close().is_ok());
    });
    for (int round = 0; round < 2; ++round)
      for (Index each = 0; each < pages; ++each)
        content.replace(static_cast<std::size_t>(each * page + 10 * round), 9, 9, letter(each, round));
    EXPECT_TRUE(stored(*job.storage) == content);
  }
}

/// There is no memory to note which of its pages are kept.
TEST(sim_pages, a_file_of_the_largest_size_is_not_flushed_without_its_notes) {
  Job job;
  job.nodes = nodes_of(2, 1);
  shared::Definition what = definition("w+", 16 * page);
  what.safety = Safety::journal;
  with_file(job, what, [](SessionWorld& /*world*/, SessionRank& rank, SharedFile& file) {
    if (rank.rank() == 0) {
      EXPECT_TRUE(write(file, 0, "begin").is_ok());
    }
    EXPECT_TRUE(file.flush().is_ok());
    EXPECT_TRUE(file.resize(shared::Definition::most_size).is_ok());
    EXPECT_EQ(file.flush().code(), Code::memory);
    EXPECT_TRUE(file.resize(9).is_ok());
    EXPECT_TRUE(file.flush().is_ok());
    EXPECT_EQ(read(file, 0, 100), std::string("begin\0\0\0\0", 9));
    EXPECT_TRUE(file.close().is_ok());
  });
  EXPECT_EQ(stored(*job.storage), std::string("begin\0\0\0\0", 9));
}

/// The second open must not take away what the first needs after a crash.
TEST(sim_pages, an_open_that_fails_leaves_what_another_program_has_beside_the_file) {
  for (const Safety safety : {Safety::journal, Safety::rename}) {
    Job job;
    job.nodes = nodes_of(2, 1);
    put(*job.storage, "old");
    shared::Definition what = definition("w+", 16 * page);
    what.safety = safety;
    with_file(job, what, [&](SessionWorld& /*world*/, SessionRank& rank, SharedFile& file) {
      if (rank.rank() == 0) {
        EXPECT_TRUE(write(file, 0, "new").is_ok());
      }
      const auto group = rank.group(all_of(rank));
      EXPECT_EQ(SharedFile::open(*group, "again", what).status().code(), Code::state);
      EXPECT_TRUE(*job.storage->exists(safety == Safety::journal ? "data.undo" : "data.tmp-flush"));
      EXPECT_TRUE(file.flush().is_ok());
      EXPECT_EQ(SharedFile::open(*group, "again", what).status().code(), Code::state);
      EXPECT_TRUE(*job.storage->exists("data.undo"));
      EXPECT_TRUE(file.close().is_ok());
    });
    EXPECT_EQ(stored(*job.storage), "new");
    EXPECT_EQ(*job.storage->list("."), (Texts{"data"}));
  }
}

/// Files of one group use the same memory, one after another.
TEST(sim_pages, a_file_begins_anew_in_the_memory_of_another) {
  for (const int per_node : {1, 3}) {
    Job job;
    job.nodes = nodes_of(3, per_node);
    SessionWorld world(job);
    const Texts stuck = world.run([&](SessionRank& rank) {
      const auto group = rank.group(all_of(rank));
      const std::string mine(static_cast<std::size_t>(3 * page), static_cast<char>('a' + rank.rank()));
      for (const Bytes length : {3 * page, Bytes{10}, 2 * page + 7}) {
        const auto file = SharedFile::open(*group, "open", definition("w+", 24 * page));
        const std::string_view some = std::string_view(mine).substr(0, static_cast<std::size_t>(length));
        EXPECT_EQ(*(*file)->size(), 0);
        EXPECT_TRUE((*file)->sync().is_ok());
        EXPECT_TRUE(write(**file, rank.rank() * 4 * page + 5, some).is_ok());
        EXPECT_TRUE((*file)->sync().is_ok());
        EXPECT_EQ(*(*file)->size(), 8 * page + 5 + length);
        EXPECT_EQ(read(**file, 0, 6), std::string("\0\0\0\0\0a", 6));
        EXPECT_EQ(read(**file, 4 * page + 5 + length - 1, 3), std::string("b\0\0", 3));
        EXPECT_TRUE((*file)->sync().is_ok());
        EXPECT_TRUE((*file)->close().is_ok());
        if (rank.rank() == 0) {
          std::string wanted(static_cast<std::size_t>(8 * page + 5 + length), '\0');
          for (std::size_t r = 0; r < 3; ++r)
            wanted.replace(r * 4 * page + 5, some.size(), some.size(), static_cast<char>('a' + r));
          EXPECT_TRUE(stored(*job.storage) == wanted) << length;
        }
      }
    });
    EXPECT_EQ(stuck, Texts());
  }
}

/// Whoever need not agree on new memory agrees less often.
TEST(sim_pages, all_ranks_of_a_node_take_over_the_memory_of_the_last_file) {
  Job job;
  job.nodes = nodes_of(3, 3);
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto group = rank.group(all_of(rank));
    std::vector<std::int64_t> sent;
    for (int i = 0; i < 2; ++i) {
      const std::int64_t before = rank.fibre().port().messages();
      const auto file = SharedFile::open(*group, "open", definition("w+", 24 * page));
      sent.push_back(rank.fibre().port().messages() - before);
      EXPECT_TRUE(write(**file, rank.rank() * page, "some").is_ok());
      EXPECT_TRUE((*file)->close().is_ok());
    }
    EXPECT_LT(sent[1], sent[0]);
  });
  EXPECT_EQ(stuck, Texts());
}

/// The memory of closed files is not in the way of a file that needs nearly all there is.
TEST(sim_pages, memory_that_was_kept_is_free_for_a_file_with_other_pages) {
  constexpr Bytes mebibyte = Bytes{1} << 20;
  Job job;
  job.nodes = nodes_of(1, 1);
  job.settings = "memory=68MiB";
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto group = rank.group({0});
    ASSERT_EQ((*group)->budget().limit(), 68 * mebibyte);
    const auto small = SharedFile::open(*group, "small", definition("w+", 8 * mebibyte));
    EXPECT_TRUE(write(**small, 0, std::string(7 * mebibyte, 's')).is_ok());
    EXPECT_TRUE((*small)->close().is_ok());
    EXPECT_LE((*group)->budget().left(), 61 * mebibyte) << "it was kept";
    shared::Definition large = definition("w+", 64 * mebibyte);
    large.page = 16 * mebibyte;
    const auto file = SharedFile::open(*group, "large", large);
    EXPECT_TRUE(file.is_ok()) << file.status().text();
    if (file.is_ok()) {
      EXPECT_TRUE((*file)->close().is_ok());
    }
  });
  EXPECT_EQ(stuck, Texts());
}

/// Frames hold old pages when new ones come to them.
TEST(sim_pages, pages_behind_the_end_begin_with_zeros_whatever_their_frames_held) {
  Job job;
  job.nodes = nodes_of(2, 2);
  constexpr Bytes pages = 40;
  with_file(job, definition("w+", 8 * page),
            [&](SessionWorld& /*world*/, SessionRank& rank, SharedFile& file) {
              if (rank.rank() == 0) {
                EXPECT_TRUE(write(file, 0, std::string(20 * page, 'x')).is_ok());
              }
              EXPECT_TRUE(file.sync().is_ok());
              for (Bytes number = 20 + rank.rank(); number < pages; number += 2)
                EXPECT_TRUE(write(file, number * page + 100, "y").is_ok());
              EXPECT_TRUE(file.sync().is_ok());
              for (Bytes number = 20; number < pages; ++number)
                EXPECT_EQ(read(file, number * page + 99, 3),
                          number + 1 < pages ? std::string("\0y\0", 3) : std::string("\0y", 2));
              EXPECT_TRUE(file.close().is_ok());
            });
  std::string wanted(20 * page, 'x');
  wanted.resize((pages - 1) * page + 101, '\0');
  for (Bytes number = 20; number < pages; ++number)
    wanted[static_cast<std::size_t>(number * page + 100)] = 'y';
  EXPECT_TRUE(stored(*job.storage) == wanted);
}

/// All ranks miss the same page, and each stores another one to make room for it. The first one to have room
/// brings the page in, and the others give their room back.
TEST(sim_pages, ranks_that_make_room_for_the_same_page_bring_it_in_once) {
  constexpr int ranks = 4;
  constexpr Bytes frames = 4 * ranks, rounds = 40, part = page / ranks;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Job job;
    job.nodes = nodes_of(ranks, ranks);
    job.seed = seed;
    job.pauses_in_storage = true;
    const auto byte_of = [](Bytes number, Bytes rank) {
      return static_cast<char>('a' + (5 * number + rank) % 26);
    };
    with_file(
        job, definition("w+", frames * page),
        [&](SessionWorld& world, SessionRank& rank, SharedFile& file) {
          const auto mine = [&](Bytes number) { return std::string(part, byte_of(number, rank.rank())); };
          const auto come_at_once = [&] {
            constexpr Nanoseconds step = 1'000'000;
            EXPECT_TRUE(file.sync().is_ok());
            rank.compute(step - world.world().scheduler().now() % step);
          };
          for (Bytes number = 0; number < frames + rounds; ++number) {
            if (number >= frames) come_at_once();
            EXPECT_TRUE(write(file, number * page + rank.rank() * part, mine(number)).is_ok());
          }
          EXPECT_TRUE(file.sync().is_ok());
          for (Bytes number = 0; number < frames + rounds; ++number)
            EXPECT_EQ(read(file, number * page + rank.rank() * part, part), mine(number)) << number;
          EXPECT_TRUE(file.flush().is_ok());
          // No frame was lost on the way: as many pages as there are frames stay in memory.
          for (int pass = 0; pass < 5 && rank.rank() == 0; ++pass) {
            if (pass == 4)
              world.storage_at(0).restart({1, storage::Fault::io_error, set_of(storage::Call::read), true});
            for (Bytes number = 0; number < frames; ++number)
              EXPECT_EQ(read(file, number * page, part), std::string(part, byte_of(number, 0)));
          }
          EXPECT_TRUE(file.close().is_ok());
        },
        60 * FibreWorld::second);
    std::string wanted;
    for (Bytes number = 0; number < frames + rounds; ++number) {
      for (Bytes rank = 0; rank < ranks; ++rank) wanted.append(part, byte_of(number, rank));
    }
    EXPECT_TRUE(stored(*job.storage) == wanted) << "seed " << seed;
  }
}

/// Pages that have changed and are not used any more are stored at last: the others would have one frame for
/// all.
TEST(sim_pages, pages_that_are_read_stay_where_all_others_have_changed) {
  constexpr Bytes frames = 16, read_often = 4;
  Job job;
  job.nodes = nodes_of(2, 2);
  put(*job.storage, std::string(read_often * page, 'r'));
  with_file(
      job, definition("r+", frames * page), [](SessionWorld& world, SessionRank& rank, SharedFile& file) {
        for (Bytes number = read_often; number < 3 * frames && rank.rank() == 0; ++number)
          EXPECT_TRUE(write(file, number * page, "w").is_ok());
        EXPECT_TRUE(file.sync().is_ok());
        for (int pass = 0; pass < 8 && rank.rank() == 1; ++pass) {
          if (pass == 3)
            world.storage_at(1).restart({1, storage::Fault::io_error, set_of(storage::Call::read), true});
          for (Bytes number = 0; number < read_often; ++number)
            EXPECT_EQ(read(file, number * page, 3), "rrr") << pass;
        }
        EXPECT_TRUE(file.close().is_ok());
      });
}

/// The last file has left no frame free, and this one has more pages than frames, too.
TEST(sim_pages, a_file_takes_over_frames_that_were_all_in_use) {
  constexpr Bytes frames = 12, pages = 40;
  Job job;
  job.nodes = nodes_of(3, 3);
  job.pauses_in_storage = true;
  SessionWorld world(job);
  const Texts stuck = world.run(
      [&](SessionRank& rank) {
        const auto group = rank.group(all_of(rank));
        for (const char letter : {'a', 'b', 'c'}) {
          const auto file = SharedFile::open(*group, "open", definition("w+", frames * page));
          ASSERT_TRUE(file.is_ok()) << file.status().text();
          for (Bytes number = rank.rank(); number < pages; number += 3)
            EXPECT_TRUE(write(**file, number * page + 1, std::string(7, letter)).is_ok());
          EXPECT_TRUE((*file)->sync().is_ok());
          for (Bytes number = pages; number-- > 0;)
            EXPECT_EQ(read(**file, number * page, 9), cat(std::string(1, '\0'), std::string(7, letter),
                                                          number + 1 < pages ? std::string(1, '\0') : ""));
          EXPECT_TRUE((*file)->sync().is_ok());
          EXPECT_TRUE((*file)->close().is_ok());
        }
      },
      60 * FibreWorld::second);
  EXPECT_EQ(stuck, Texts());
}

/// A node's pages, of which all four frames have changed, and the same pages on a server of the node.
struct ServerAndRank {
  static constexpr int ranks = 1;
  static constexpr Bytes memory = 4 * page;
  explicit ServerAndRank(SessionRank& rank) : group(*rank.group({0})) {
    shared::Disk disk;
    disk.load = [this](std::span<std::byte>, Bytes) { return at_storage(), Status(); };
    disk.store = [this](storage::Parts, Bytes) {
      at_storage();
      return is_full ? io_error("write", "data", ENOSPC) : Status();
    };
    const auto deal = std::make_shared<shared::PageDeal>(page, group->node_ranks());
    mine = *NodePages::create(group->node(), {page, memory, deal}, false, group->budget(), disk);
    Packer told;
    mine->memory().tell(told);
    Unpacker in(told.bytes());
    server =
        *NodePages::attach(group->line().board().transport(), {page, memory, deal}, ranks, group->budget(),
                           disk, *node::NodeMemory::attach(::dup(mine->memory().descriptor()), in));
    write_to(0);
  }
  /// Afterwards all frames have pages that have changed, from this one on.
  void write_to(Index first) const {
    const ByteVector bytes(5);
    for (Index number = first; number < first + 4; ++number) {
      mine->raise_size((number + 1) * page);
      EXPECT_TRUE(mine->write(number, 0, bytes).is_ok());
    }
  }
  [[nodiscard]] Status read(NodePages& pages, Index number) const {
    ByteVector bytes(5);
    return pages.read(number, 0, bytes);
  }

  std::shared_ptr<files::Group> group;
  bool is_full = false;
  std::function<void()> at_storage = [] {};
  std::unique_ptr<NodePages> mine, server;
};

void with_server_and_rank(const std::function<void(ServerAndRank&)>& program) {
  Job job;
  job.nodes = nodes_of(1, 1);
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    ServerAndRank both(rank);
    program(both);
  });
  EXPECT_EQ(stuck, Texts());
}

/// A rank brings in the page for which its server wants room: from then on nobody stores anything for it.
TEST(sim_pages, a_server_that_finds_its_page_wants_no_room_any_more) {
  with_server_and_rank([](ServerAndRank& both) {
    EXPECT_TRUE(NodePages::is_for_later(both.read(*both.server, 9)));
    EXPECT_TRUE(both.mine->is_room_wanted());
    EXPECT_TRUE(both.read(*both.mine, 9).is_ok());
    EXPECT_TRUE(both.read(*both.server, 9).is_ok());
    EXPECT_FALSE(both.mine->is_room_wanted());
  });
}

/// Storage may hang while a rank has a page's lock to store it, and while a page comes from there.
TEST(sim_pages, the_loop_of_a_server_does_not_wait_for_a_page_that_is_at_storage) {
  with_server_and_rank([](ServerAndRank& both) {
    const auto write = [&](Index number) {
      return both.server->write(number, 0, ByteVector(5), NodePages::User::progress);
    };
    for (Index number = 0; number < 4; ++number) EXPECT_TRUE(write(number).is_ok());
    EXPECT_TRUE(NodePages::is_for_later(write(9)));
    int for_later = 0;
    int stored = 0;
    both.at_storage = [&] {
      ++stored;
      for (Index number = 0; number < 4; ++number)
        for_later += NodePages::is_for_later(write(number)) ? 1 : 0;
    };
    EXPECT_TRUE(both.mine->store_changed(0, 1).is_ok());
    EXPECT_EQ(stored, 1) << "four pages that follow one another";
    EXPECT_EQ(for_later, 0) << "a flush locks no page";
    both.write_to(0);
    EXPECT_TRUE(NodePages::is_for_later(both.read(*both.server, 9)));
    EXPECT_TRUE(both.mine->make_room());
    EXPECT_GE(for_later, 1) << "a page that makes room is locked while it is stored";
    both.mine->set_stored(100 * page);
    both.at_storage = [&] { EXPECT_TRUE(NodePages::is_for_later(write(9))); };
    EXPECT_TRUE(both.read(*both.server, 9).is_ok());
    both.at_storage = [] {};
    EXPECT_TRUE(write(9).is_ok());
  });
}

/// Pages of 1 MiB, of which 4 are stored ahead together. Frames are used again after the first 8 pages.
struct PagesAhead {
  static constexpr Bytes large = Bytes{1} << 20;
  static constexpr Index count = 24;
  explicit PagesAhead(SessionRank& rank) : group(*rank.group({0})) {
    shared::Disk disk;
    disk.load = [](std::span<std::byte>, Bytes) { return Status(); };
    disk.store = [this](storage::Parts parts, Bytes) { return stored += std::ssize(parts), Status(); };
    pages = *NodePages::create(group->node(), {large, 64 * large, nullptr, 8 * large}, false, group->budget(),
                               disk);
    pages->store_ahead_by([this] { return pages->store_offered(), Status(); });
    pages->set_size(count * large);
  }
  void read_all() const {
    ByteVector bytes(5);
    pages->set_stored(count * large);
    for (Index number = 0; number < count; ++number) EXPECT_TRUE(pages->read(number, 0, bytes).is_ok());
  }
  /// Returns how many pages were stored meanwhile.
  Index write_in_halves(Index pages_written = count) {
    const ByteVector half(static_cast<std::size_t>(large / 2));
    stored = 0;
    for (Index number = 0; number < pages_written; ++number)
      for (const Bytes from : {Bytes{0}, large / 2}) EXPECT_TRUE(pages->write(number, from, half).is_ok());
    return stored;
  }

  std::shared_ptr<files::Group> group;
  Index stored = 0;
  std::unique_ptr<NodePages> pages;
};

void with_pages_ahead(const std::function<void(PagesAhead&)>& program) {
  Job job;
  job.nodes = nodes_of(1, 1);
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    PagesAhead ahead(rank);
    program(ahead);
  });
  EXPECT_EQ(stuck, Texts());
}

TEST(sim_pages, that_come_back_are_stored_ahead_if_they_were_only_read) {
  with_pages_ahead([](PagesAhead& ahead) {
    ahead.read_all();
    EXPECT_LE(ahead.pages->taken(), 12 * PagesAhead::large) << "frames were used again";
    EXPECT_EQ(ahead.write_in_halves(), PagesAhead::count);
  });
}

TEST(sim_pages, that_come_back_after_a_flush_are_stored_ahead_once_more) {
  with_pages_ahead([](PagesAhead& ahead) {
    EXPECT_EQ(ahead.write_in_halves(), PagesAhead::count);
    EXPECT_LE(ahead.pages->taken(), 12 * PagesAhead::large) << "frames were used again";
    EXPECT_TRUE(ahead.pages->store_changed(0, 1).is_ok());
    EXPECT_EQ(ahead.write_in_halves(), PagesAhead::count);
  });
  with_pages_ahead([](PagesAhead& ahead) {
    EXPECT_EQ(ahead.write_in_halves(), PagesAhead::count);
    EXPECT_EQ(ahead.write_in_halves(8), 0) << "they were stored since the last flush";
  });
}

/// Nothing is free for others in between: another draw can take nothing of it.
TEST(sim_pages, what_a_server_has_drawn_goes_over_to_its_rank) {
  node::Budget::Account account;
  node::Budget budget(account, 100);
  node::Draw server(budget, node::Use::pages);
  EXPECT_TRUE(server.take(60).is_ok());
  {
    node::Draw rank(budget, node::Use::pages);
    EXPECT_TRUE(rank.take(40).is_ok());
    const Bytes left = server.bequeath();
    EXPECT_EQ(budget.left(), 0);
    rank.inherit(left);
    server.give_back();
    EXPECT_EQ(budget.left(), 0);
    EXPECT_EQ(rank.bytes(), 100);
  }
  EXPECT_EQ(budget.left(), 100);
}

/// A page that could not be stored once makes no later request fail.
TEST(sim_pages, a_server_is_told_once_that_no_room_could_be_made) {
  with_server_and_rank([](ServerAndRank& both) {
    const auto fail_to_make_room = [&] {
      both.is_full = true;
      EXPECT_TRUE(both.mine->make_room());
      both.is_full = false;
    };
    EXPECT_TRUE(NodePages::is_for_later(both.read(*both.server, 9)));
    fail_to_make_room();
    EXPECT_EQ(both.read(*both.server, 9).code(), Code::space);
    EXPECT_TRUE(NodePages::is_for_later(both.read(*both.server, 9))) << "it asks anew";
    fail_to_make_room();
    EXPECT_TRUE(both.read(*both.mine, 9).is_ok());
    EXPECT_TRUE(both.read(*both.server, 9).is_ok());
    both.write_to(20);
    EXPECT_TRUE(NodePages::is_for_later(both.read(*both.server, 30))) << "the page came another way";
    fail_to_make_room();
    EXPECT_TRUE(both.mine->store_changed(0, 1).is_ok());
    both.write_to(40);
    EXPECT_TRUE(NodePages::is_for_later(both.read(*both.server, 30))) << "a flush has stored everything";
  });
}

/// Runs `program` on every rank with a global array of 64-bit integers, with one node, and with several.
void with_array(Index count, const std::function<void(SessionRank&, GlobalArray&)>& program) {
  for (const int per_node : {1, 2, 4}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(testing::Message() << per_node << " ranks on a node, seed " << seed);
      Job job;
      job.nodes = nodes_of(4, per_node);
      job.seed = seed;
      SessionWorld world(job);
      const Texts stuck = world.run([&](SessionRank& rank) {
        const auto group = rank.group(all_of(rank));
        const auto array =
            GlobalArray::create(*group, "create", shared::GlobalDefinition{ElementType::i64, count, page});
        ASSERT_TRUE(array.is_ok()) << array.status().text();
        program(rank, **array);
        EXPECT_TRUE((*array)->free().is_ok());
      });
      EXPECT_EQ(stuck, Texts());
      if (testing::Test::HasFailure()) return;
    }
  }
}

const std::byte* bytes_of(const std::vector<std::int64_t>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

std::vector<std::int64_t> gather(GlobalArray& array, const std::vector<Index>& indices) {
  std::vector<std::int64_t> values(indices.size(), -1);
  const Status status = array.gather(indices, reinterpret_cast<std::byte*>(values.data()));
  EXPECT_TRUE(status.is_ok()) << status.text();
  return values;
}

std::vector<std::int64_t> read_all(GlobalArray& array) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(array.count()), -1);
  const Status status = array.read(0, array.count(), reinterpret_cast<std::byte*>(values.data()));
  EXPECT_TRUE(status.is_ok()) << status.text();
  return values;
}

TEST(sim_global, every_rank_finds_what_any_rank_wrote_or_added) {
  constexpr Index count = 3000;
  with_array(count, [](SessionRank& rank, GlobalArray& array) {
    for (int round = 1; round <= 3; ++round) {
      std::vector<Index> mine;
      std::vector<std::int64_t> values;
      for (Index i = rank.rank(); i < count; i += rank.ranks()) {
        mine.push_back((i * 701 + round) % count);
        values.push_back(mine.back() * round);
      }
      EXPECT_TRUE(array.scatter(mine, bytes_of(values)).is_ok());
      EXPECT_TRUE(array.sync().is_ok());
      const std::vector<Index> hot{7, count - 1, 7, 513};
      const std::vector<std::int64_t> ones(hot.size(), 1);
      EXPECT_TRUE(array.accumulate(hot, bytes_of(ones), true).is_ok());
      EXPECT_TRUE(array.sync().is_ok());
      std::vector<std::int64_t> wanted(count);
      for (Index i = 0; i < count; ++i) wanted[static_cast<std::size_t>(i)] = i * round;
      for (const Index i : hot) wanted[static_cast<std::size_t>(i)] += rank.ranks();
      EXPECT_TRUE(read_all(array) == wanted);
      EXPECT_EQ(gather(array, {513, 8, count - 1, 7}),
                (std::vector<std::int64_t>{wanted[513], wanted[8], wanted[count - 1], wanted[7]}));
      EXPECT_TRUE(array.sync().is_ok());
    }
  });
}

TEST(sim_global, a_resize_keeps_what_was_there_and_nothing_of_what_was_cut_off) {
  with_array(4000, [](SessionRank& rank, GlobalArray& array) {
    std::vector<std::int64_t> wanted(4000);
    std::iota(wanted.begin(), wanted.end(), 1);
    if (rank.rank() == 1) {
      EXPECT_TRUE(array.write(0, 4000, bytes_of(wanted)).is_ok());
    }
    for (const Index count : {Index{9000}, Index{700}, Index{690}, Index{5000}}) {
      EXPECT_TRUE(array.resize(count).is_ok());
      wanted.resize(static_cast<std::size_t>(count), 0);
      EXPECT_TRUE(read_all(array) == wanted) << count;
      EXPECT_EQ(gather(array, {count - 1, 0}), (std::vector<std::int64_t>{wanted.back(), 1}));
      EXPECT_TRUE(array.sync().is_ok());
    }
  });
}

TEST(sim_global, elements_that_the_array_does_not_have_are_refused_and_nothing_is_done) {
  constexpr Index largest = std::numeric_limits<Index>::max();
  with_array(1000, [](SessionRank& rank, GlobalArray& array) {
    std::vector<std::int64_t> values{5, 6, 7};
    std::byte* const into = reinterpret_cast<std::byte*>(values.data());
    for (const Index bad : {Index{1000}, Index{-1}, largest, std::numeric_limits<Index>::min()}) {
      const std::vector<Index> indices{0, bad, 999};
      EXPECT_EQ(array.gather(indices, into).code(), Code::argument) << bad;
      EXPECT_EQ(array.scatter(indices, into).code(), Code::argument) << bad;
      EXPECT_EQ(array.accumulate(indices, into, true).code(), Code::argument) << bad;
      EXPECT_EQ(array.read(bad, 1, into).code(), Code::argument) << bad;
      EXPECT_EQ(array.write(bad, 1, into).code(), Code::argument) << bad;
    }
    EXPECT_EQ(array.read(999, 2, into).code(), Code::argument);
    EXPECT_EQ(array.write(3, largest, into).code(), Code::argument);
    EXPECT_EQ(array.read(3, largest, into).code(), Code::argument);
    EXPECT_EQ(array.write(0, -1, into).code(), Code::argument);
    EXPECT_EQ(array.resize(-1).code(), Code::argument);
    EXPECT_EQ(values, (std::vector<std::int64_t>{5, 6, 7}));
    EXPECT_TRUE(array.sync().is_ok());
    EXPECT_EQ(gather(array, {0, 999}), (std::vector<std::int64_t>{0, 0}));
    EXPECT_EQ(array.local(-1).count, 0);
    EXPECT_EQ(array.local(1).count, 0);
    EXPECT_EQ(array.local(0).count, rank.rank() == 0 ? 512 : rank.rank() == 1 ? 488 : 0);
  });
}

}  // namespace
}  // namespace tailrace::sim
