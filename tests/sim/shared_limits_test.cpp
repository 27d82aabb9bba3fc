// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Shared files and global arrays where something is short or late: clients that know an old size of a file,
// cuts of very many pages, and nodes that have no memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "faces/shared/elements/global_array.hpp"
#include "faces/shared/shared_file.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/memory.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

using shared::GlobalArray;
using shared::Safety;
using shared::SharedFile;
using storage::OpenMode;

/// Passes all calls on.
class FileBelow : public storage::File {
 public:
  explicit FileBelow(std::unique_ptr<File> below) : below_(std::move(below)) {}
  Status write_gathered(storage::Parts parts, Bytes offset) override {
    return below_->write_gathered(parts, offset);
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override { return below_->read(data, offset); }
  Status sync() override { return below_->sync(); }
  Status truncate(Bytes size) override { return below_->truncate(size); }
  Result<Bytes> size() override { return below_->size(); }
  Status close() override { return below_->close(); }

 private:
  const std::unique_ptr<File> below_;
};

/// Puts a file of the test around each file of a MemoryTarget.
class WrappingTarget : public storage::MemoryTarget {
 public:
  using Target::open;
  WrappingTarget() : MemoryTarget(false) {}
  Result<std::unique_ptr<storage::File>> open(const std::string& path, OpenMode mode,
                                              unsigned permissions) final {
    Result<std::unique_ptr<storage::File>> file = MemoryTarget::open(path, mode, permissions);
    if (!file.is_ok()) return file;
    return wrap(path, std::move(*file));
  }

 private:
  virtual std::unique_ptr<storage::File> wrap(const std::string& path,
                                              std::unique_ptr<storage::File> file) = 0;
};

/// Sends what was written when it is synchronised or closed, as a client of NFS may. It reads its own writes.
class LateFile final : public FileBelow {
 public:
  explicit LateFile(std::unique_ptr<File> below) : FileBelow(std::move(below)) {}
  ~LateFile() override { (void)send().is_ok(); }
  Status write_gathered(storage::Parts parts, Bytes offset) override {
    for (const auto& part : parts) {
      late_.push_back({offset, {part.begin(), part.end()}});
      offset += std::ssize(part);
    }
    return {};
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    TR_TRY(send());
    return FileBelow::read(data, offset);
  }
  Status sync() override {
    TR_TRY(send());
    return FileBelow::sync();
  }
  Status close() override {
    TR_TRY(send());
    return FileBelow::close();
  }

 private:
  Status send() {
    for (const auto& [offset, bytes] : std::exchange(late_, {}))
      TR_TRY(FileBelow::write_gathered(std::array{std::span<const std::byte>(bytes)}, offset));
    return {};
  }
  std::vector<std::pair<Bytes, ByteVector>> late_;
};

class LateWrites final : public WrappingTarget {
  std::unique_ptr<storage::File> wrap(const std::string& /*path*/,
                                      std::unique_ptr<storage::File> file) override {
    return std::make_unique<LateFile>(std::move(file));
  }
};

/// Knows only as much of its file's size as it saw when it was opened, and what it has made of it itself: so
/// does a client of NFS, for a minute.
class OldSizeFile final : public FileBelow {
 public:
  OldSizeFile(std::unique_ptr<File> below, Bytes size) : FileBelow(std::move(below)), size_(size) {}
  Status write_gathered(storage::Parts parts, Bytes offset) override {
    size_ = std::max(size_, offset + storage::bytes_in(parts));
    return FileBelow::write_gathered(parts, offset);
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    const Bytes there = std::clamp<Bytes>(size_ - offset, 0, std::ssize(data));
    return FileBelow::read(data.first(static_cast<std::size_t>(there)), offset);
  }
  Status truncate(Bytes size) override {
    size_ = size;
    return FileBelow::truncate(size);
  }
  Result<Bytes> size() override { return size_; }

 private:
  Bytes size_;
};

class OldSizes final : public WrappingTarget {
  std::unique_ptr<storage::File> wrap(const std::string& /*path*/,
                                      std::unique_ptr<storage::File> file) override {
    const Bytes size = *file->size();
    return std::make_unique<OldSizeFile>(std::move(file), size);
  }
};

/// Counts the writes since the last begin_write_back(), and notes that number at each sync.
class Begun final : public WrappingTarget {
 public:
  struct Counts {
    int waiting = 0;
    std::vector<int> at_sync;
  };
  std::unique_ptr<storage::File> wrap(const std::string& /*path*/,
                                      std::unique_ptr<storage::File> file) override {
    return std::make_unique<BegunFile>(std::move(file), counts);
  }
  Counts counts;

 private:
  class BegunFile final : public FileBelow {
   public:
    BegunFile(std::unique_ptr<File> below, Counts& counts) : FileBelow(std::move(below)), counts_(counts) {}
    Status write_gathered(storage::Parts parts, Bytes offset) override {
      ++counts_.waiting;
      return FileBelow::write_gathered(parts, offset);
    }
    void begin_write_back() override { counts_.waiting = 0; }
    Status sync() override {
      counts_.at_sync.push_back(counts_.waiting);
      return FileBelow::sync();
    }

   private:
    Counts& counts_;
  };
};

/// Counts the bytes of undo files that are not durable yet.
class Counted final : public WrappingTarget {
 public:
  struct Count {
    Bytes unsynced = 0;
    Bytes most = 0;
    int syncs = 0;
  };
  std::unique_ptr<storage::File> wrap(const std::string& path, std::unique_ptr<storage::File> file) override {
    if (path.find(".undo.u") == std::string::npos) return file;
    return std::make_unique<CountedFile>(std::move(file), count);
  }
  Count count;

 private:
  class CountedFile final : public FileBelow {
   public:
    CountedFile(std::unique_ptr<File> below, Count& count) : FileBelow(std::move(below)), count_(count) {}
    Status write_gathered(storage::Parts parts, Bytes offset) override {
      count_.unsynced += storage::bytes_in(parts);
      count_.most = std::max(count_.most, count_.unsynced);
      return FileBelow::write_gathered(parts, offset);
    }
    Status sync() override {
      count_.unsynced = 0;
      ++count_.syncs;
      return FileBelow::sync();
    }

   private:
    Count& count_;
  };
};

shared::Definition small_pages(const char* mode, Safety safety) {
  shared::Definition what{"data", *shared::read_mode(mode), 4096, 16384};
  what.safety = safety;
  return what;
}

Status put(SharedFile& file, const std::string& text, Bytes offset) {
  const shared::Source sources[] = {{std::as_bytes(std::span(text)), offset}};
  return file.write(sources);
}

/// One rank makes the file longer. What the other one keeps of it then is there, although its client does not
/// know.
TEST(sim_shared_limits, flushed_bytes_are_kept_by_a_node_that_knows_an_old_size) {
  const auto disk = std::make_shared<OldSizes>();
  SessionWorld world({nodes_of(2, 1), {}, {}, disk, 1});
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto group = rank.group({0, 1});
    const auto file = SharedFile::open(*group, "open", small_pages("w+", Safety::journal));
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    EXPECT_TRUE((*file)->resize(20 * 4096).is_ok());
    EXPECT_TRUE((*file)->flush().is_ok());
    const std::string page(4096, 'x');
    for (Bytes i = rank.rank(); i < 20; i += 2) {
      const Status written = put(**file, page, i * 4096);
      EXPECT_TRUE(written.is_ok()) << written.text();
    }
    const Status flushed = (*file)->flush();
    EXPECT_TRUE(flushed.is_ok()) << flushed.text();
    EXPECT_TRUE((*file)->close().is_ok());
  });
  EXPECT_EQ(stuck, Texts());
  EXPECT_EQ(std::ssize(read_file(*disk, "data")), 20 * 4096);
}

/// All that is stored before or in a flush goes to the device while the rest is stored. A close without a
/// flush leaves that to the system.
TEST(sim_shared_limits, flushed_bytes_are_on_their_way_before_they_are_waited_for) {
  const auto disk = std::make_shared<Begun>();
  SessionWorld world({nodes_of(2, 2), {}, {}, disk, 1});
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto group = rank.group({0, 1});
    shared::Definition what = small_pages("w", Safety::none);
    what.memory = 32768;
    const auto file = SharedFile::open(*group, "open", what);
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    const std::string page(4096, 'x');
    const auto write = [&] {
      for (Bytes i = rank.rank(); i < 80; i += 4) EXPECT_TRUE(put(**file, page, i * 4096).is_ok());
    };
    write();  // 40 pages, more than there is memory for
    EXPECT_TRUE((*file)->flush().is_ok());
    write();
    EXPECT_TRUE((*file)->close().is_ok());
    EXPECT_EQ(disk->counts.waiting, 40);
  });
  EXPECT_EQ(stuck, Texts());
  EXPECT_EQ(disk->counts.at_sync, std::vector<int>{0});
}

TEST(sim_shared_limits, a_file_is_cut_where_clients_know_old_sizes_and_send_late) {
  for (const int kind : {0, 1, 2, 3}) {
    const Safety safety = kind < 2 ? Safety::none : Safety::journal;
    const std::shared_ptr<storage::Target> disk =
        kind % 2 == 0 ? std::shared_ptr<storage::Target>(std::make_shared<OldSizes>())
                      : std::make_shared<LateWrites>();
    SessionWorld world({nodes_of(2, 1), {}, {}, disk, 1});
    const Texts stuck = world.run([&](SessionRank& rank) {
      const auto group = rank.group({0, 1});
      const auto file = SharedFile::open(*group, "open", small_pages("w+", safety));
      ASSERT_TRUE(file.is_ok()) << file.status().text();
      // With its four pages, rank 1 has stored most of these before the file is cut.
      const std::string page(4096, 'x');
      for (Bytes i = 1; rank.rank() == 1 && i < 40; i += 2) EXPECT_TRUE(put(**file, page, i * 4096).is_ok());
      EXPECT_TRUE((*file)->resize(5000).is_ok());
      EXPECT_TRUE((*file)->resize(9 * 4096).is_ok());  // what was cut off must not come back
      EXPECT_TRUE((*file)->close().is_ok());
    });
    EXPECT_EQ(stuck, Texts());
    const ByteVector found = read_file(*disk, "data");
    EXPECT_EQ(std::ssize(found), 9 * 4096);
    EXPECT_EQ(std::count(found.begin(), found.end(), std::byte{'x'}), 5000 - 4096);
  }
}

/// Every second page belongs to the node, so that each is a record, with a tail in memory until it is sealed.
TEST(sim_shared_limits, much_that_is_cut_off_is_kept_part_by_part) {
  constexpr Bytes pages = 20'000;
  const auto disk = std::make_shared<Counted>();
  ASSERT_TRUE((*disk->open("data", OpenMode::create))->truncate(pages * 4096).is_ok());
  SessionWorld world({nodes_of(2, 1), {}, {}, disk, 1});
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto group = rank.group({0, 1});
    const auto file = SharedFile::open(*group, "open", small_pages("r+", Safety::journal));
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    const Status cut = (*file)->resize(10);
    EXPECT_TRUE(cut.is_ok()) << cut.text();
  });
  EXPECT_EQ(stuck, Texts());
  EXPECT_GE(disk->count.syncs, 4);
  EXPECT_LE(disk->count.most, Bytes{2} * 4096 * (4096 + 2 * 512));
  EXPECT_TRUE(*journal::bring_back_flushed(*disk, "data"));
  EXPECT_EQ(std::ssize(read_file(*disk, "data")), pages * 4096);
}

using Group = std::shared_ptr<files::Group>;

/// Returns what the ranks have heard, where every node, or one of them alone, has this much memory.
Texts heard_with(Bytes memory, bool on_one_node, const std::function<Status(const Group&, int)>& body) {
  constexpr int ranks = 6;
  Job job;
  job.nodes = nodes_of(ranks, 2);
  job.staging = Bytes{64} << 10;
  const std::string settings = cat("memory=", memory);
  if (on_one_node)
    job.more_settings = {{2, settings}, {3, settings}};
  else
    job.settings = settings;
  SessionWorld world(job);
  Texts heard(ranks);
  const Texts stuck = world.run([&](SessionRank& rank) {
    std::vector<int> all(ranks);
    std::iota(all.begin(), all.end(), 0);
    const Result<Group> group = rank.group(all);
    const Status status = group.is_ok() ? body(*group, rank.rank()) : group.status();
    EXPECT_TRUE(status.is_ok() || status.code() == Code::memory) << status.text();
    heard[static_cast<std::size_t>(rank.rank())] = status.text();
  });
  EXPECT_EQ(stuck, Texts()) << settings;
  EXPECT_EQ(heard, Texts(ranks, heard.front())) << settings;
  return heard;
}

/// Tries the body with more and more memory: with little it is refused, and with much it is not.
void with_any_memory(const std::function<Status(const Group&, int)>& body) {
  for (const bool on_one_node : {false, true}) {
    Texts heard;
    int refused = 0;
    for (Bytes memory = Bytes{128} << 10; memory <= Bytes{8} << 20; memory += memory / 2) {
      heard = heard_with(memory, on_one_node, body);
      refused += !heard.front().empty();
    }
    EXPECT_GT(refused, 2);
    EXPECT_EQ(heard.front(), "");
  }
}

TEST(sim_shared_limits, a_shared_file_without_memory_is_refused_on_all_ranks_alike) {
  for (const Safety safety : {Safety::none, Safety::journal}) {
    with_any_memory([&](const Group& group, int rank) -> Status {
      shared::Definition what{"data", *shared::read_mode("w+"), Bytes{64} << 10, {}};
      what.safety = safety;
      const auto file = SharedFile::open(group, "open", what);
      TR_TRY(file.status());
      // What fails here is this rank's alone, and none of the calls that follow.
      for (Bytes i = rank; i < 60; i += 6) (void)put(**file, std::string(65536, 'x'), i * 65536).is_ok();
      const Status flushed = (*file)->flush();
      // The notes about pages become larger, too.
      const Status resized = (*file)->resize(Bytes{64} << 30);
      const Status again = (*file)->flush();
      const Status closed = (*file)->close();
      return first_cause(first_cause(flushed, resized), first_cause(again, closed));
    });
  }
}

TEST(sim_shared_limits, a_global_array_without_memory_is_refused_on_all_ranks_alike) {
  with_any_memory([](const Group& group, int rank) -> Status {
    const auto array =
        GlobalArray::create(group, "create", shared::GlobalDefinition{ElementType::f64, 50'000, 4096});
    TR_TRY(array.status());
    const double one = 1;
    for (Index i = rank; i < 50'000; i += 601)
      EXPECT_TRUE((*array)->write(i, 1, reinterpret_cast<const std::byte*>(&one)).is_ok());
    const Status synced = (*array)->sync();
    const Status resized = (*array)->resize(200'000);
    // A refused array is as it was.
    const Index count = resized.is_ok() ? 200'000 : 50'000;
    EXPECT_EQ((*array)->count(), count);
    for (Index i = rank; i < 50'000; i += 601) {
      double got = 0;
      EXPECT_TRUE((*array)->read(i, 1, reinterpret_cast<std::byte*>(&got)).is_ok());
      EXPECT_EQ(got, 1);
    }
    return first_cause(first_cause(synced, resized), (*array)->free());
  });
}

}  // namespace
}  // namespace tailrace::sim
