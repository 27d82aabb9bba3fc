// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Undo files: whatever is damaged in them, a file is either brought back to what was recorded, or nobody is
// told that it was. A journal keeps each byte once, and enough of them.
#include "ground/journal/undo_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <set>
#include <sstream>

#include "ground/base/checksum.hpp"
#include "ground/journal/journal.hpp"
#include "ground/storage/forwarding.hpp"
#include "ground/storage/scratch.hpp"
#include "support/crash.hpp"

namespace tailrace::journal {
namespace {

using What = UndoRecord::What;
using Disk = std::shared_ptr<storage::CrashTarget>;
using Kept = std::tuple<What, Bytes, Bytes>;  // offset, length
using Count = std::optional<std::size_t>;

constexpr Bytes sector = 512;
Bytes padded(Bytes bytes) { return (bytes + sector - 1) / sector * sector; }

ByteVector random_bytes(std::uint64_t seed, Bytes count) {
  std::mt19937_64 random(seed);
  ByteVector bytes(static_cast<std::size_t>(count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

ByteVector piece(const ByteVector& of, Bytes from, Bytes to) { return {of.begin() + from, of.begin() + to}; }

void put(storage::Target& target, const std::string& path, std::span<const std::byte> bytes) {
  EXPECT_TRUE((*target.open(path, storage::OpenMode::create))->write(bytes, 0).is_ok()) << path;
}

ByteVector get(storage::Target& target, const std::string& path) {
  const auto file = *target.open(path, storage::OpenMode::read);
  ByteVector bytes(static_cast<std::size_t>(*file->size()));
  EXPECT_EQ(*file->read(bytes, 0), static_cast<Bytes>(bytes.size()));
  return bytes;
}

Result<std::vector<UndoRecord>> read_all(storage::Target& target, const UndoName& name) {
  std::vector<UndoRecord> records;
  UndoReader reader = *UndoReader::open(target, name);
  for (auto record = reader.next();; record = reader.next()) {
    TR_TRY(record.status());
    if (!*record) return records;
    records.push_back(std::move(**record));
  }
}

Status bring_back(storage::Target& target, const Position& from) {
  return bring_back(target, **target.open(from.path, storage::OpenMode::existing), from);
}

/// Where the parts of a record lie.
struct Place {
  bool is_sealed = false;
  Bytes head = 0, kept = 0, kept_end = 0, tail = 0, end = 0;
};

/// An undo file of generation 4, the last `unsealed` records of which were added but not sealed.
struct Sample {
  std::string path;
  UndoName name;
  std::vector<UndoRecord> records;
  std::vector<Place> places;
  ByteVector undo;
  ByteVector recorded = random_bytes(1, 2000), now = random_bytes(2, 2050);  // in the other file

  explicit Sample(std::vector<Kept> kept, std::string of = "log", std::size_t unsealed = 0)
      : path(std::move(of)), name{undo_path("run", 4, undo_key(path), 0), 4, undo_key(path), 0} {
    const Disk disk = storage::crash_target();
    const auto writer = *UndoWriter::create(*disk, "run", name.generation, path);
    const Bytes head = padded(68 + static_cast<Bytes>(path.size()));
    Bytes at = 0;
    for (const auto& [what, offset, length] : kept) {
      records.push_back({what, path, offset, piece(recorded, offset, offset + length)});
      EXPECT_TRUE(writer->add(what, offset, records.back().bytes).is_ok());
      const std::size_t left = kept.size() - records.size();
      EXPECT_TRUE(left != unsealed || writer->seal().is_ok());
      const Bytes tail = at + head + padded(length);
      places.push_back({left >= unsealed, at, at + head, at + head + length, tail, tail + head});
      at = tail + head;
    }
    undo = get(*disk, name.path);
  }

  /// Returns the contents of the other file and its sidecar once the first `count` records have been put
  /// back.
  [[nodiscard]] std::pair<ByteVector, std::optional<std::string>> after(std::size_t count) const {
    ByteVector bytes = piece(now, 0, std::ssize(recorded));
    std::optional<std::string> text;
    for (const UndoRecord& each : std::span(records).first(count)) {
      if (each.what == What::bytes) std::copy(each.bytes.begin(), each.bytes.end(), &bytes[each.offset]);
      if (each.what == What::sidecar)
        text.emplace(reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size());
    }
    return {bytes, text};
  }
};

/// Returns how many records of the undo file count if it holds `undo`, or nothing if it is found damaged. The
/// other file never gets bytes that it did not hold, whatever `undo` is.
Count counted(const Sample& sample, const ByteVector& undo, const UndoName& name) {
  const Disk disk = storage::crash_target();
  put(*disk, name.path, undo);
  put(*disk, sample.path, sample.now);
  const Position from{.path = sample.path, .size = std::ssize(sample.recorded), .undo = {name}};
  const auto read = read_all(*disk, name);
  const Status brought = bring_back(*disk, from);
  const auto sidecar = recorded_sidecar(*disk, from);
  const ByteVector found = get(*disk, sample.path);
  EXPECT_EQ(brought.code(), read.is_ok() ? Code::ok : Code::corrupt);
  EXPECT_EQ(sidecar.status().code(), brought.code());
  if (!read.is_ok()) {
    EXPECT_TRUE(brought.error_number() == EIO && found.size() == sample.now.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i] == sample.now[i] || found[i] == sample.recorded[i]) << i;
    return {};
  }
  const auto equal = [](const UndoRecord& a, const UndoRecord& b) {
    return a.what == b.what && a.path == b.path && a.offset == b.offset && a.bytes == b.bytes;
  };
  const bool known = read->size() <= sample.records.size() &&
                     std::equal(read->begin(), read->end(), sample.records.begin(), equal);
  EXPECT_TRUE(known && std::pair(found, *sidecar) == sample.after(read->size()));
  return read->size();
}

const std::vector<Kept> some_kept = {
    {What::bytes, 7, 100}, {What::bytes, 300, 700}, {What::sidecar, 0, 20}, {What::bytes, 1500, 0}};

TEST(undo_file, any_changed_byte_is_harmless_or_noticed) {
  const Sample sample(some_kept);
  for (Bytes at = 0; at < std::ssize(sample.undo) && !HasFailure(); ++at) {
    const bool is_kept = std::any_of(sample.places.begin(), sample.places.end(), [&](const Place& place) {
      return at >= place.kept && at < place.kept_end;  // a head and a tail stand in for each other
    });
    for (const std::byte mask : {std::byte{0xff}, std::byte{1}}) {
      ByteVector changed = sample.undo;
      changed[static_cast<std::size_t>(at)] ^= mask;
      EXPECT_EQ(counted(sample, changed, sample.name), is_kept ? Count() : Count(4)) << at;
    }
  }
}

/// If the file is cut, nothing tells that it was longer: a known limit. The records before it count.
TEST(undo_file, cut_anywhere_it_gives_the_first_records) {
  const Sample sample(some_kept);
  for (Bytes size = 0; size <= std::ssize(sample.undo) && !HasFailure(); ++size) {
    const auto whole = std::count_if(sample.places.begin(), sample.places.end(),
                                     [&](const Place& place) { return place.kept_end <= size; });
    EXPECT_EQ(counted(sample, piece(sample.undo, 0, size), sample.name), whole) << size;
  }
}

/// Applies the rules for reading to an undo file that has lost some sectors.
Count by_the_rules(const Sample& sample, const std::vector<bool>& lost) {
  const auto is_there = [&](Bytes begin, Bytes end) {
    return std::count(lost.begin() + begin / sector, lost.begin() + padded(end) / sector, true) == 0;
  };
  const auto has_tail = [&](const Place& of) { return of.is_sealed && is_there(of.tail, of.end); };
  for (auto place = sample.places.begin(); place != sample.places.end(); ++place) {
    const bool has_head = has_tail(*place) || is_there(place->head, place->kept);
    if (has_head && is_there(place->kept, place->kept_end)) continue;
    if (std::any_of(place, sample.places.end(), has_tail)) return {};
    return place - sample.places.begin();
  }
  return sample.places.size();
}

/// Loses each set of sectors from `begin` on. Returns the outcomes that were seen.
std::set<Count> lose_sectors(const Sample& sample, Bytes begin = 0) {
  std::set<Count> outcomes;
  const Bytes size = std::ssize(sample.undo), first = begin / sector, sectors = padded(size) / sector;
  for (std::uint64_t set = 0; set >> (sectors - first) == 0 && !testing::Test::HasFailure(); ++set) {
    ByteVector undo = sample.undo;
    std::vector<bool> lost;
    for (Bytes i = 0; i < sectors; ++i) {
      lost.push_back(i >= first && (set >> (i - first) & 1) != 0);
      if (lost.back())
        for (Bytes at = i * sector; at < std::min((i + 1) * sector, size); ++at)
          undo[static_cast<std::size_t>(at)] ^= std::byte{0x5a};
    }
    const Count count = counted(sample, undo, sample.name);
    EXPECT_EQ(count, by_the_rules(sample, lost)) << "set " << set;
    outcomes.insert(count);
  }
  return outcomes;
}

TEST(undo_file, of_lost_sectors_those_of_sealed_records_are_noticed) {
  EXPECT_EQ(lose_sectors(Sample(some_kept)).size(), 6U);
  const Sample long_heads({{What::bytes, 7, 100}, {What::bytes, 1500, 500}}, std::string(600, 'p'));
  EXPECT_EQ(lose_sectors(long_heads).size(), 4U);
  for (const std::size_t length : {444, 445, 4096}) {
    const Sample whole(some_kept, std::string(length, 'p'));
    EXPECT_EQ(counted(whole, whole.undo, whole.name), 4U) << length;
  }
}

TEST(undo_file, records_that_were_not_sealed_are_whole_or_count_for_nothing) {
  const Sample sample({{What::bytes, 7, 100}, {What::bytes, 300, 700}, {What::sidecar, 0, 20}}, "log", 2);
  EXPECT_EQ(lose_sectors(sample, sample.places[0].end), (std::set<Count>{1, 2, 3}));
}

TEST(undo_file, records_of_another_generation_or_out_of_their_order_are_noticed) {
  const Sample sample(some_kept);
  for (const std::int64_t generation : {0, 3, 5}) {
    const UndoName other{undo_path("run", generation, sample.name.key, 0), generation, sample.name.key, 0};
    EXPECT_EQ(counted(sample, sample.undo, other), Count());
    ByteVector headless = sample.undo;
    std::fill_n(headless.begin(), sector, std::byte{0});
    EXPECT_EQ(counted(sample, headless, other), Count());
  }
  const auto count = [&](const std::vector<std::size_t>& which) {
    ByteVector undo;
    for (const std::size_t i : which) {
      const ByteVector record = piece(sample.undo, sample.places[i].head, sample.places[i].end);
      undo.insert(undo.end(), record.begin(), record.end());
    }
    return counted(sample, undo, sample.name);
  };
  EXPECT_EQ(count({0, 1}), 2U);
  const std::vector<std::size_t> wrong[] = {{1}, {3}, {0, 0}, {1, 0}, {0, 2}, {0, 1, 3}, {0, 1, 2, 3, 0}};
  for (const auto& which : wrong) EXPECT_EQ(count(which), Count()) << testing::PrintToString(which);
  ByteVector moved = sample.undo;  // the tail lies where the head was
  moved.erase(moved.begin() + sample.places[3].head, moved.begin() + sample.places[3].kept);
  EXPECT_EQ(counted(sample, moved, sample.name), Count());
}

/// Returns how many records are read of `undo` and a hole up to 100 GiB with `behind` at its end, or nothing
/// if it is found damaged.
Count counted_in_100_gib(const ByteVector& undo, std::span<const std::byte> behind = {}) {
  constexpr Bytes size = Bytes{100} << 30;
  const storage::ScratchDirectory scratch;
  const auto target = storage::posix_target();
  const UndoName name{undo_path(scratch / "run", 4, undo_key("log"), 0), 4, undo_key("log"), 0};
  put(*target, name.path, undo);
  const auto file = *target->open(name.path, storage::OpenMode::existing);
  EXPECT_TRUE(file->truncate(size).is_ok() && file->write(behind, size - std::ssize(behind)).is_ok());
  const auto read = read_all(*target, name);
  return read.is_ok() ? Count(read->size()) : Count();
}

TEST(undo_file, of_100_gib_that_is_a_hole_is_read_at_once) {
  const Sample sample(some_kept);
  EXPECT_EQ(counted_in_100_gib(sample.undo), 4U);
  EXPECT_EQ(counted_in_100_gib({}), 0U);
  const ByteVector tail = piece(sample.undo, sample.places[3].tail, sample.places[3].end);
  EXPECT_EQ(counted_in_100_gib(piece(sample.undo, 0, sample.places[0].end), tail), Count());
  // A whole head that asks for 64 GiB of the hole.
  ByteVector greedy = piece(sample.undo, 0, sector);
  greedy[36 + 4] = std::byte{16};
  const Bytes covered = 60 + std::ssize(sample.path);
  Packer sum;
  sum.put(checksum(std::span(greedy).first(static_cast<std::size_t>(covered))));
  std::copy(sum.bytes().begin(), sum.bytes().end(), greedy.begin() + covered);
  EXPECT_EQ(counted_in_100_gib(greedy), 0U);
}

TEST(undo_file, of_another_file_with_the_same_key_is_passed_over) {
  const Sample sample({{What::bytes, 7, 100}, {What::sidecar, 0, 20}}, "log");
  const Sample other({{What::bytes, 50, 900}, {What::sidecar, 0, 7}}, "other");
  const Disk disk = storage::crash_target();
  Position from{.path = "./log", .size = 2000};
  for (const Sample* each : {&other, &sample, &other}) {
    const std::int64_t number = std::ssize(from.undo);
    from.undo.push_back({undo_path("run", 4, sample.name.key, number), 4, sample.name.key, number});
    put(*disk, from.undo.back().path, each->undo);
  }
  put(*disk, "log", sample.now);
  ASSERT_TRUE(bring_back(*disk, from).is_ok());
  EXPECT_TRUE(std::pair(get(*disk, "log"), *recorded_sidecar(*disk, from)) == sample.after(2));
}

/// Bytes recorded behind that size at another time are not put there.
TEST(undo_file, a_file_that_is_too_short_is_noticed) {
  const Sample sample({{What::bytes, 300, 700}});
  const Disk disk = storage::crash_target();
  put(*disk, sample.name.path, sample.undo);
  put(*disk, "log", piece(sample.now, 0, 200));
  EXPECT_EQ(bring_back(*disk, {.path = "log", .size = 250, .undo = {sample.name}}).code(), Code::corrupt);
}

/// Makes empty files whose names end so; '@' is a key.
void put_names(storage::Target& target, const std::string& name, const std::string& ends) {
  std::istringstream in(ends);
  for (std::string end; in >> end;) {
    if (const auto key = end.find('@'); key != std::string::npos) end.replace(key, 1, "0123456789abcdef");
    put(target, name + end, {});
  }
}

TEST(undo_file, only_names_of_their_form_are_found_and_the_newest_generation_first) {
  const Disk disk = storage::crash_target();
  ASSERT_TRUE(disk->make_directories("out/dir").is_ok());
  for (const std::string name : {"run", "out/run"}) {
    put_names(*disk, name, ".u .u1 .u1. .u1..0 .u1.abc.0 .u1.0123456789abcde.0 .u1.0@.0 .u1.@a.0 x.u1.@.0");
    put_names(*disk, name, ".u1.0123456789ABCDEF.0 .u1.0x23456789abcdef.0 .u01.@.0 .u.@.0 .u+1.@.0 u1.@.0");
    put_names(*disk, name, ".ux.@.0 .v1.@.0 .u1.@ .u1.@. .u1.@.00 .u1.@.x .u1.@.0x .u1.@.0.tmp .u1.@.0.0");
    put_names(*disk, name, ".u99999999999999999999.@.0 .u1.@.99999999999999999999 .u1.x.u1.@.0 xrun.u1.@.0");
    // No checkpoint was saved so often: generations behind these have to be left.
    put_names(*disk, name, ".u9223372036854775807.@.0 .u1099511627777.@.0");
    put_names(*disk, name, ".u12.@.0 .u3.ffffffffffffffff.12 .u0.@.3");
  }
  for (const std::string name : {"run", "./run", "out/run", "out//run", "out/dir/../run"}) {
    const std::uint64_t key = 0x0123456789abcdef, other_key = ~std::uint64_t{0};
    const std::vector<UndoName> expected = {{name + ".u12.0123456789abcdef.0", 12, key, 0},
                                            {name + ".u3.ffffffffffffffff.12", 3, other_key, 12},
                                            {name + ".u0.0123456789abcdef.3", 0, key, 3}};
    EXPECT_EQ(*find_undo_files(*disk, name), expected) << name;
  }
  put_names(*disk, "minus", ".u-1.@.0 .u1.@.-1 .u1.-123456789abcdef.0");
  for (const char* name : {"ru", "minus", "nowhere/run", "/nowhere/at/all/run"})
    EXPECT_TRUE(find_undo_files(*disk, name)->empty()) << name;
}

/// A program that changes a file in any way and records it now and then, beside a map of its bytes.
class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed), now_(random_bytes(seed, 300'000)) {
    put(*disk_, "data", now_);
    file_ = *disk_->open("data", storage::OpenMode::existing);
  }
  void record() { begin(++newest_); }
  /// Goes on from any generation, as another run does. Later generations are forgotten.
  void restart() {
    const std::int64_t generation = std::next(recorded_.begin(), below(std::ssize(recorded_)))->first;
    ASSERT_TRUE(bring_back(*disk_, from(generation)).is_ok());
    recorded_.erase(recorded_.upper_bound(generation), recorded_.end());
    now_ = recorded_[generation];
    journal_.emplace(*disk_, "run");
    begin(generation);
  }
  void work(int times) {
    for (int i = 0; i < times; ++i) {
      const Bytes size = std::ssize(now_), offset = below(size + 2000), kind = below(8);
      if (kind == 0) cut(below(size + 1));
      if (kind == 1) write(size, 100'000);
      if (kind == 2) keep(offset, below(100'000));
      if (kind == 3) write(0, below(size + 1));
      if (kind > 3) write(offset, below(kind == 4 ? 100'000 : 2000));
    }
  }
  /// Checks that each generation comes back, whatever followed. Each byte is kept once in the undo file of
  /// each begin.
  void check() {
    for (const auto& [generation, bytes] : recorded_) {
      using Policy = storage::CrashPolicy;
      const Disk copy = disk_->crash({Policy::Writes::kept, Policy::Entries::kept}, 0);
      ASSERT_TRUE(bring_back(*copy, from(generation)).is_ok());
      EXPECT_TRUE(get(*copy, "data") == bytes) << generation;
    }
    for (const UndoName& name : from(1).undo) {
      const std::vector<UndoRecord> records = *read_all(*disk_, name);
      EXPECT_LT(name.number, begun_[name.generation]) << name.path;
      std::map<Bytes, Bytes> ends;
      for (const UndoRecord& each : records) ends[each.offset] = each.offset + std::ssize(each.bytes);
      EXPECT_EQ(ends.size(), records.size()) << name.path;
      Bytes end = 0;
      for (const auto& [from, to] : ends) EXPECT_GE(from, std::exchange(end, to)) << name.path;
      EXPECT_LE(end, largest_);
    }
  }

 private:
  Bytes below(Bytes limit) { return static_cast<Bytes>(random_() % static_cast<std::uint64_t>(limit)); }
  void begin(std::int64_t generation) {
    recorded_[generation] = now_;
    const Position position{.path = "./data", .size = std::ssize(now_)};
    journal_->begin(generation, std::span(&position, 1));
    ++begun_[generation];
    largest_ = std::max(largest_, position.size);
  }
  Position from(std::int64_t generation) {
    Position position{
        .path = "data",
        .size = std::ssize(recorded_[generation]),
    };
    position.undo = *find_undo_files(*disk_, "run");
    std::erase_if(position.undo, [&](const UndoName& each) { return each.generation < generation; });
    return position;
  }
  void keep(Bytes offset, Bytes bytes) {
    ASSERT_TRUE(journal_->keep(below(2) == 0 ? "data" : "x/../data", *file_, offset, bytes).is_ok());
  }
  void write(Bytes offset, Bytes bytes) {
    keep(offset, bytes);
    const ByteVector fresh = random_bytes(random_(), bytes);
    ASSERT_TRUE(file_->write(fresh, offset).is_ok());
    if (bytes > 0) now_.resize(static_cast<std::size_t>(std::max(std::ssize(now_), offset + bytes)));
    if (bytes > 0) std::copy(fresh.begin(), fresh.end(), now_.begin() + offset);
  }
  void cut(Bytes size) {
    keep(size, INT64_MAX);
    ASSERT_TRUE(file_->truncate(size).is_ok());
    now_.resize(static_cast<std::size_t>(size));
  }
  std::mt19937_64 random_;
  const Disk disk_ = storage::crash_target();
  ByteVector now_;
  std::unique_ptr<storage::File> file_;
  std::optional<Journal> journal_{std::in_place, *disk_, "run"};
  std::map<std::int64_t, ByteVector> recorded_;
  std::map<std::int64_t, std::int64_t> begun_;  // generation: number of begins
  std::int64_t newest_ = 0;
  Bytes largest_ = 0;
};

/// A file in a directory of its own, and the undo file that a journal makes when it is written over.
class Beside {
 public:
  Beside() {
    EXPECT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
    put(*target_, file_, std::as_bytes(std::span("a secret")));
  }
  [[nodiscard]] const std::string& file() const { return file_; }
  /// Returns the permissions and the group that the undo file has.
  [[nodiscard]] std::pair<unsigned, unsigned> made() const {
    const std::string name = directory_.path() + "/run";
    Journal journal(*target_, name);
    const Position recorded[] = {{.path = file_, .size = 8}};
    journal.begin(++generation_, recorded);
    const auto file = *target_->open(file_, storage::OpenMode::read);
    const Status kept = journal.keep(file_, *file, 0, 8);
    EXPECT_TRUE(kept.is_ok()) << kept.text();
    struct stat undo {};
    EXPECT_EQ(::stat(undo_path(name, generation_, undo_key(file_), 0).c_str(), &undo), 0);
    return {undo.st_mode & 07777, undo.st_gid};
  }

 private:
  storage::ScratchDirectory directory_;
  std::unique_ptr<storage::Target> target_ = storage::posix_target();
  std::string file_ = directory_.path() + "/f";
  mutable std::int64_t generation_ = 0;
};

TEST(undo_file, is_read_by_nobody_who_may_not_read_the_file) {
  const Beside beside;
  for (const unsigned mode : {0600U, 0640U, 0604U, 0664U, 0400U}) {
    ASSERT_EQ(::chmod(beside.file().c_str(), mode), 0);
    EXPECT_EQ(beside.made(), std::pair(mode | 0600U, ::getegid()));
  }
}

TEST(undo_file, has_the_group_of_the_file_or_grants_its_own_nothing_more) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has several users and groups";
  constexpr unsigned group = 54321, nobody = 65534;
  const Beside beside;
  ASSERT_EQ(::chown(beside.file().c_str(), nobody, group), 0);
  for (const auto& [mode, without] :
       {std::pair(0660U, 0600U), std::pair(0664U, 0644U), std::pair(0604U, 0600U), std::pair(0646U, 0644U)}) {
    ASSERT_EQ(::chmod(beside.file().c_str(), mode), 0);
    EXPECT_EQ(beside.made(), std::pair(mode, group));
    ASSERT_TRUE(::setegid(nobody) == 0 && ::seteuid(nobody) == 0);
    const auto made = beside.made();
    ASSERT_TRUE(::seteuid(0) == 0 && ::setegid(0) == 0);
    EXPECT_EQ(made, std::pair(without, nobody));
  }
}

/// Has the name of each new undo file moved, and a link to `victim` put there, before anybody can use it.
class Moving final : public storage::ForwardingTarget {
 public:
  Moving(std::shared_ptr<Target> below, std::string victim)
      : ForwardingTarget(std::move(below)), victim_(std::move(victim)) {}
  using storage::Target::open;
  Result<std::unique_ptr<storage::File>> open(const std::string& path, storage::OpenMode mode,
                                              unsigned permissions) override {
    auto file = below_->open(path, mode, permissions);
    if (file.is_ok())
      EXPECT_TRUE(::rename(path.c_str(), (path + ".moved").c_str()) == 0 &&
                  ::symlink(victim_.c_str(), path.c_str()) == 0);
    return file;
  }

 private:
  const std::string victim_;
};

TEST(undo_file, opens_no_other_file_to_readers_that_somebody_puts_at_its_name) {
  const storage::ScratchDirectory directory;
  const std::shared_ptr<storage::Target> disk = storage::posix_target();
  const std::string victim = directory.path() + "/victim", file = directory.path() + "/f";
  put(*disk, victim, std::as_bytes(std::span("a secret")));
  put(*disk, file, std::as_bytes(std::span("for all")));
  ASSERT_TRUE(::chmod(victim.c_str(), 0600) == 0 && ::chmod(file.c_str(), 0666) == 0);
  Moving moving(disk, victim);
  const auto rights = (*disk->open(file, storage::OpenMode::read))->rights();
  const auto writer = UndoWriter::create(moving, directory.path() + "/run", 1, file, {}, rights);
  ASSERT_TRUE(writer.is_ok()) << writer.status().text();
  struct stat secret {
  }, undo{};
  ASSERT_EQ(::stat(victim.c_str(), &secret), 0);
  EXPECT_EQ(secret.st_mode & 07777, 0600U);
  ASSERT_EQ(::stat(((*writer)->own_path() + ".moved").c_str(), &undo), 0);
  EXPECT_EQ(undo.st_mode & 07777, 0666U);
}

/// The group's part of the mode is then the most that anybody in the list may do.
TEST(undo_file, of_a_file_with_an_access_control_list_is_its_owners) {
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  constexpr std::uint32_t none = ~std::uint32_t{0};
  const struct {
    std::uint32_t version = 2;
    Entry entries[5] = {{0x01, 6, none}, {0x02, 6, 1234}, {0x04, 0, none}, {0x10, 6, none}, {0x20, 0, none}};
  } list;
  const Beside beside;
  if (::setxattr(beside.file().c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0)
    GTEST_SKIP() << "no access control lists here";
  EXPECT_EQ(beside.made().first, 0600U);
}

TEST(journal, any_generation_comes_back_whatever_was_written_since) {
  for (std::uint64_t seed = 1; seed <= 30 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Program program(seed);
    program.work(3);  // nothing is recorded yet
    for (std::uint64_t i = 0; i < 6; ++i) {
      i < 2 || (seed + i) % 3 != 0 ? program.record() : program.restart();
      program.work(static_cast<int>(seed % 9) + 1);
      program.check();
    }
  }
}

}  // namespace
}  // namespace tailrace::journal
