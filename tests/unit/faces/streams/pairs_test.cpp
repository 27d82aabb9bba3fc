// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/files/pairs.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>

#include "ground/base/text.hpp"
#include "ground/storage/every_crash.hpp"
#include "ground/storage/posix.hpp"
#include "ground/storage/scratch.hpp"
#include "index_samples.hpp"
#include "resume_samples.hpp"

// A stream comes to a file with its fourth step. What may stand there by then, and what the stream does with
// it: every cell of the table tells. docs/design/032-five-ways-to-commit.md has the table for people.
namespace tailrace::streams {
namespace {

namespace fs = std::filesystem;

constexpr int per_day = 4;
const std::string kPath = "out/fc_20260301.raw";

/// What has the file's name.
enum class Data {
  absent,
  empty,
  ours,      // two steps
  cut_off,   // two steps, of which something else has cut off the end
  foreign,   // longer than two steps
  link,      // to two steps in another directory
  dangling,  // a link to a name that is free
  directory
};
/// What has the index's name. All but `foreign` and `directory` tell of two steps.
enum class Beside { absent, open, closed, other_run, damaged /* its header */, foreign, link, directory };
/// The second pair, which has three steps.
enum class Again {
  absent,
  further,
  behind /* it has one step */,
  data_alone,
  index_alone /* of two steps: a replacement was interrupted between its renames */
};
/// How the stream comes: by existing=, or from a checkpoint behind the second step.
enum class Way { replace, resume, fail, overwrite, checkpoint };
constexpr std::array ways = {"existing=replace", "existing=continue", "existing=fail", "existing=overwrite",
                             ""};
/// What keeps the stream from the lock.
enum class LockFile { held, foreign, link };

enum Does {
  anew,      // the file is empty, its index has no steps, and there is no second pair
  goes_on,   // behind the two steps of the first pair
  replaced,  // the second pair has taken the place of the first, and the stream goes on behind its three
             // steps
  replaced_by_one,  // the same with the one step of the second pair
  second,           // goes on in the second pair behind its two steps; the first pair stays
  // Refused, and nothing has changed:
  state,
  corrupt,
  is_directory,
  // Refused, but what held no committed step is gone, or a replacement was completed:
  state_changed,
  corrupt_changed,
  other  // none of these
};

struct Cell {
  Data data;
  Beside beside;
  Again again;
  std::array<Does, ways.size()> expected;  // by Way
};

// Columns: replace, continue, fail, overwrite, checkpoint.
const Cell kCells[] = {
    {Data::absent, Beside::absent, Again::absent, {anew, anew, anew, anew, corrupt}},
    {Data::absent, Beside::open, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::absent, Beside::closed, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::absent, Beside::other_run, Again::absent, {anew, corrupt, anew, anew, state}},
    {Data::absent, Beside::damaged, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::absent, Beside::foreign, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::absent, Beside::link, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::absent,
     Beside::directory,
     Again::absent,
     {is_directory, is_directory, is_directory, is_directory, is_directory}},
    {Data::empty, Beside::absent, Again::absent, {anew, anew, state, anew, corrupt}},
    {Data::empty, Beside::open, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::empty, Beside::closed, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::empty, Beside::other_run, Again::absent, {anew, corrupt, state, anew, state}},
    {Data::empty, Beside::damaged, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::empty, Beside::foreign, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::empty, Beside::link, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::empty,
     Beside::directory,
     Again::absent,
     {is_directory, is_directory, state, is_directory, is_directory}},
    {Data::ours, Beside::absent, Again::absent, {state, state, state, anew, corrupt}},
    {Data::ours, Beside::open, Again::absent, {anew, goes_on, state, anew, goes_on}},
    {Data::ours, Beside::closed, Again::absent, {anew, goes_on, state, anew, second}},
    {Data::ours, Beside::other_run, Again::absent, {anew, goes_on, state, anew, state}},
    {Data::ours, Beside::damaged, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::ours, Beside::foreign, Again::absent, {state, corrupt, state, anew, corrupt}},
    {Data::ours, Beside::link, Again::absent, {anew, goes_on, state, anew, goes_on}},
    {Data::ours,
     Beside::directory,
     Again::absent,
     {is_directory, is_directory, state, is_directory, is_directory}},
    {Data::cut_off, Beside::absent, Again::absent, {state, state, state, anew, corrupt}},
    {Data::cut_off, Beside::open, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::cut_off, Beside::closed, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::cut_off, Beside::other_run, Again::absent, {anew, corrupt, state, anew, state}},
    {Data::cut_off, Beside::damaged, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::cut_off, Beside::foreign, Again::absent, {state, corrupt, state, anew, corrupt}},
    {Data::cut_off, Beside::link, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::cut_off,
     Beside::directory,
     Again::absent,
     {is_directory, is_directory, state, is_directory, is_directory}},
    {Data::foreign, Beside::absent, Again::absent, {state, state, state, anew, corrupt}},
    {Data::foreign, Beside::open, Again::absent, {anew, goes_on, state, anew, goes_on}},
    {Data::foreign, Beside::closed, Again::absent, {anew, goes_on, state, anew, second}},
    {Data::foreign, Beside::other_run, Again::absent, {anew, goes_on, state, anew, state}},
    {Data::foreign, Beside::damaged, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::foreign, Beside::foreign, Again::absent, {state, corrupt, state, anew, corrupt}},
    {Data::foreign, Beside::link, Again::absent, {anew, goes_on, state, anew, goes_on}},
    {Data::foreign,
     Beside::directory,
     Again::absent,
     {is_directory, is_directory, state, is_directory, is_directory}},
    {Data::link, Beside::absent, Again::absent, {state, state, state, anew, corrupt}},
    {Data::link, Beside::open, Again::absent, {anew, goes_on, state, anew, goes_on}},
    {Data::link, Beside::closed, Again::absent, {anew, goes_on, state, anew, second}},
    {Data::link, Beside::other_run, Again::absent, {anew, goes_on, state, anew, state}},
    {Data::link, Beside::damaged, Again::absent, {anew, corrupt, state, anew, corrupt}},
    {Data::link, Beside::foreign, Again::absent, {state, corrupt, state, anew, corrupt}},
    {Data::link, Beside::link, Again::absent, {anew, goes_on, state, anew, goes_on}},
    {Data::link,
     Beside::directory,
     Again::absent,
     {is_directory, is_directory, state, is_directory, is_directory}},
    {Data::dangling, Beside::absent, Again::absent, {anew, anew, anew, anew, corrupt}},
    {Data::dangling, Beside::open, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::dangling, Beside::closed, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::dangling, Beside::other_run, Again::absent, {anew, corrupt, anew, anew, state}},
    {Data::dangling, Beside::damaged, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::dangling, Beside::foreign, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::dangling, Beside::link, Again::absent, {anew, corrupt, anew, anew, corrupt}},
    {Data::dangling,
     Beside::directory,
     Again::absent,
     {is_directory, is_directory, is_directory, is_directory, is_directory}},
    {Data::directory,
     Beside::absent,
     Again::absent,
     {is_directory, is_directory, state, is_directory, corrupt}},
    {Data::directory,
     Beside::open,
     Again::absent,
     {is_directory, is_directory, state, is_directory, is_directory}},
    {Data::directory,
     Beside::closed,
     Again::absent,
     {is_directory, is_directory, state, is_directory, is_directory}},
    {Data::directory,
     Beside::other_run,
     Again::absent,
     {is_directory, is_directory, state, is_directory, state}},
    {Data::directory, Beside::damaged, Again::absent, {is_directory, corrupt, state, is_directory, corrupt}},
    {Data::directory, Beside::foreign, Again::absent, {is_directory, corrupt, state, is_directory, corrupt}},
    {Data::directory,
     Beside::link,
     Again::absent,
     {is_directory, is_directory, state, is_directory, is_directory}},
    {Data::directory,
     Beside::directory,
     Again::absent,
     {is_directory, is_directory, state, is_directory, is_directory}},
    {Data::absent, Beside::absent, Again::further, {anew, replaced, state, anew, second}},
    {Data::absent, Beside::absent, Again::behind, {anew, replaced_by_one, state, anew, corrupt}},
    {Data::absent, Beside::absent, Again::data_alone, {anew, anew, anew, anew, corrupt}},
    {Data::absent, Beside::absent, Again::index_alone, {anew, anew, anew, anew, corrupt}},
    {Data::absent, Beside::open, Again::further, {anew, replaced, anew, anew, second}},
    {Data::absent, Beside::open, Again::behind, {anew, corrupt, anew, anew, corrupt}},
    {Data::absent, Beside::open, Again::data_alone, {anew, corrupt_changed, anew, anew, corrupt}},
    {Data::absent, Beside::open, Again::index_alone, {anew, corrupt_changed, anew, anew, corrupt}},
    {Data::absent, Beside::closed, Again::further, {anew, replaced, anew, anew, second}},
    {Data::absent, Beside::closed, Again::behind, {anew, corrupt, anew, anew, corrupt}},
    {Data::absent, Beside::closed, Again::data_alone, {anew, corrupt_changed, anew, anew, corrupt}},
    {Data::absent, Beside::closed, Again::index_alone, {anew, corrupt_changed, anew, anew, corrupt}},
    {Data::ours, Beside::absent, Again::further, {state, state, state, anew, second}},
    {Data::ours, Beside::absent, Again::behind, {state, state, state, anew, corrupt}},
    {Data::ours, Beside::absent, Again::data_alone, {state, state, state, anew, corrupt}},
    {Data::ours, Beside::absent, Again::index_alone, {anew, goes_on, state_changed, anew, second}},
    {Data::ours, Beside::open, Again::further, {anew, replaced, state, anew, second}},
    {Data::ours, Beside::open, Again::behind, {anew, goes_on, state, anew, goes_on}},
    {Data::ours, Beside::open, Again::data_alone, {anew, goes_on, state, anew, goes_on}},
    {Data::ours, Beside::open, Again::index_alone, {anew, goes_on, state_changed, anew, second}},
    {Data::ours, Beside::closed, Again::further, {anew, replaced, state, anew, second}},
    {Data::ours, Beside::closed, Again::behind, {anew, goes_on, state, anew, second}},
    {Data::ours, Beside::closed, Again::data_alone, {anew, goes_on, state, anew, second}},
    {Data::ours, Beside::closed, Again::index_alone, {anew, goes_on, state_changed, anew, second}},
    {Data::cut_off, Beside::absent, Again::further, {state, state, state, anew, second}},
    {Data::cut_off, Beside::absent, Again::behind, {state, state, state, anew, corrupt}},
    {Data::cut_off, Beside::absent, Again::data_alone, {state, state, state, anew, corrupt}},
    {Data::cut_off, Beside::absent, Again::index_alone, {state, state, state, anew, corrupt}},
    {Data::cut_off, Beside::open, Again::further, {anew, replaced, state, anew, second}},
    {Data::cut_off, Beside::open, Again::behind, {anew, corrupt, state, anew, corrupt}},
    {Data::cut_off, Beside::open, Again::data_alone, {anew, corrupt_changed, state, anew, corrupt}},
    {Data::cut_off, Beside::open, Again::index_alone, {anew, corrupt_changed, state, anew, corrupt}},
    {Data::cut_off, Beside::closed, Again::further, {anew, replaced, state, anew, second}},
    {Data::cut_off, Beside::closed, Again::behind, {anew, corrupt, state, anew, corrupt}},
    {Data::cut_off, Beside::closed, Again::data_alone, {anew, corrupt_changed, state, anew, corrupt}},
    {Data::cut_off, Beside::closed, Again::index_alone, {anew, corrupt_changed, state, anew, corrupt}},
    {Data::foreign, Beside::absent, Again::further, {state, state, state, anew, second}},
    {Data::foreign, Beside::absent, Again::behind, {state, state, state, anew, corrupt}},
    {Data::foreign, Beside::absent, Again::data_alone, {state, state, state, anew, corrupt}},
    {Data::foreign, Beside::absent, Again::index_alone, {anew, goes_on, state_changed, anew, second}},
    {Data::foreign, Beside::open, Again::further, {anew, replaced, state, anew, second}},
    {Data::foreign, Beside::open, Again::behind, {anew, goes_on, state, anew, goes_on}},
    {Data::foreign, Beside::open, Again::data_alone, {anew, goes_on, state, anew, goes_on}},
    {Data::foreign, Beside::open, Again::index_alone, {anew, goes_on, state_changed, anew, second}},
    {Data::foreign, Beside::closed, Again::further, {anew, replaced, state, anew, second}},
    {Data::foreign, Beside::closed, Again::behind, {anew, goes_on, state, anew, second}},
    {Data::foreign, Beside::closed, Again::data_alone, {anew, goes_on, state, anew, second}},
    {Data::foreign, Beside::closed, Again::index_alone, {anew, goes_on, state_changed, anew, second}},
    {Data::link, Beside::absent, Again::further, {state, state, state, anew, second}},
    {Data::link, Beside::absent, Again::behind, {state, state, state, anew, corrupt}},
    {Data::link, Beside::absent, Again::data_alone, {state, state, state, anew, corrupt}},
    {Data::link, Beside::absent, Again::index_alone, {anew, goes_on, state_changed, anew, second}},
    {Data::link, Beside::open, Again::further, {anew, replaced, state, anew, second}},
    {Data::link, Beside::open, Again::behind, {anew, goes_on, state, anew, goes_on}},
    {Data::link, Beside::open, Again::data_alone, {anew, goes_on, state, anew, goes_on}},
    {Data::link, Beside::open, Again::index_alone, {anew, goes_on, state_changed, anew, second}},
    {Data::link, Beside::closed, Again::further, {anew, replaced, state, anew, second}},
    {Data::link, Beside::closed, Again::behind, {anew, goes_on, state, anew, second}},
    {Data::link, Beside::closed, Again::data_alone, {anew, goes_on, state, anew, second}},
    {Data::link, Beside::closed, Again::index_alone, {anew, goes_on, state_changed, anew, second}},
};

/// Durability is not what is tested here, and takes most of the time.
class Hasty : public storage::System {
  int fsync(int /*descriptor*/) override { return 0; }
};

/// Returns data and index of a run that has ended so many steps.
std::map<std::string, ByteVector> files_behind(int steps, bool closed) {
  static std::map<std::pair<int, bool>, std::map<std::string, ByteVector>> all;
  std::map<std::string, ByteVector>& files = all[{steps, closed}];
  if (!files.empty()) return files;
  const auto disk = make_disk();
  Plan plan;
  plan.per_day = per_day;
  plan.until = steps;
  plan.stays_open = !closed;
  EXPECT_TRUE(forecast(disk, plan).status.is_ok());
  return files = files_of(*disk);
}
ByteVector data_of(int steps) { return files_behind(steps, false).at(kPath); }
ByteVector index_of(int steps, bool closed) { return files_behind(steps, closed).at(index_path(kPath)); }

/// A directory of its own, which is the current one as long as it lives.
class Place {
 public:
  explicit Place(const Cell& cell) {
    fs::current_path(scratch_.path());
    fs::create_directories("out");
    fs::create_directories("far");
    make(cell.data);
    make(cell.beside);
    make(cell.again);
  }
  ~Place() { fs::current_path(before_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void put(const std::string& path, const ByteVector& bytes) { put_bytes(*target_, path, bytes); }
  void link(const std::string& path, const std::string& to) { fs::create_symlink("../" + to, path); }

  /// Begins the file with the fourth step, and returns what the stream then has, or its error.
  Result<pipeline::Begun> begin(Way way) {
    std::optional<Position> from;
    if (way == Way::checkpoint) from = position_behind(2, per_day);
    const auto ledger = make_sample_ledger(target_, from, "t", ways[static_cast<std::size_t>(way)]);
    return ledger->begin_file(kPath, lead_of(3, per_day), 1);
  }
  Does outcome_of(const Result<pipeline::Begun>& begun) {
    if (!begun.is_ok()) return refusal(begun.status());
    const Result<IndexContents> index = load_index(*target_, index_path(begun->path));
    if (!index.is_ok() || index->data_end() != begun->end) return other;
    const bool is_cut = size_of_file(*target_, begun->path) == begun->end;
    const bool has_second = fs::exists(again_path(kPath)) || fs::exists(index_path(again_path(kPath)));
    if (!is_cut || index->closed || has_second != (begun->path != kPath)) return other;
    const std::size_t steps = index->steps.size();
    if (has_second) return steps == 2 ? second : other;
    return steps == 0   ? anew
           : steps == 2 ? goes_on
           : steps == 3 ? replaced
           : steps == 1 ? replaced_by_one
                        : other;
  }
  /// Returns everything that is there, by its name.
  std::map<std::string, std::string> look() {
    std::map<std::string, std::string> found;
    for (const fs::directory_entry& each : fs::recursive_directory_iterator(".")) {
      const std::string name = each.path().string();
      found[name] = each.is_symlink()     ? "link to " + fs::read_symlink(each.path()).string()
                    : each.is_directory() ? "directory"
                                          : storage::text_of(get_bytes(*target_, name));
    }
    return found;
  }

 private:
  static Does refusal(const Status& status) {
    if (status.error_number() == EISDIR) return is_directory;
    return status.code() == Code::state ? state : status.code() == Code::corrupt ? corrupt : other;
  }
  void make(Data data) {
    switch (data) {
      case Data::absent:
        return;
      case Data::empty:
        return put(kPath, {});
      case Data::ours:
        return put(kPath, data_of(2));
      case Data::cut_off: {
        ByteVector bytes = data_of(2);
        bytes.resize(bytes.size() - 9);
        return put(kPath, bytes);
      }
      case Data::foreign:
        return put(kPath, ByteVector(5000, std::byte{'x'}));
      case Data::link:
        put("far/data", data_of(2));
        return link(kPath, "far/data");
      case Data::dangling:
        return link(kPath, "far/data");
      case Data::directory:
        fs::create_directory(kPath);
    }
  }
  void make(Beside beside) {
    const std::string path = index_path(kPath);
    switch (beside) {
      case Beside::absent:
        return;
      case Beside::open:
        return put(path, index_of(2, false));
      case Beside::closed:
        return put(path, index_of(2, true));
      case Beside::other_run: {
        IndexContents contents = *decode_index(index_of(2, false));
        contents.header.run = *Uuid::parse("00000000-0000-4000-8000-000000000001");
        return put(path, encode_index(contents.header, contents.steps));
      }
      case Beside::damaged: {
        ByteVector bytes = index_of(2, false);
        bytes[static_cast<std::size_t>(kIndexPrefix) + 8] ^= std::byte{1};
        return put(path, bytes);
      }
      case Beside::foreign:
        return put(path, ByteVector(300, std::byte{'1'}));
      case Beside::link:
        put("far/index", index_of(2, false));
        return link(path, "far/index");
      case Beside::directory:
        fs::create_directory(path);
    }
  }
  void make(Again again) {
    const std::string data = again_path(kPath);
    const int steps = again == Again::behind ? 1 : 3;
    if (again == Again::further || again == Again::behind || again == Again::data_alone)
      put(data, data_of(steps));
    if (again == Again::further || again == Again::behind) put(index_path(data), index_of(steps, false));
    if (again == Again::index_alone) put(index_path(data), index_of(2, true));
  }

  const storage::ScratchDirectory scratch_;
  const fs::path before_ = fs::current_path();
  const std::shared_ptr<storage::Target> target_ =
      std::make_shared<storage::PosixTarget>(std::make_shared<Hasty>());
};

Does with_changes(Does refused) {
  return refused == state ? state_changed : refused == corrupt ? corrupt_changed : refused;
}

std::string text_of(const Cell& cell) {
  return cat("data ", static_cast<int>(cell.data), ", index ", static_cast<int>(cell.beside),
             ", second pair ", static_cast<int>(cell.again));
}

template <typename Body>
void for_each_cell(const Body& body) {
  for (const Cell& cell : kCells) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      SCOPED_TRACE(cat(text_of(cell), ", way ", way));
      body(cell, static_cast<Way>(way), cell.expected[way]);
    }
  }
}

/// Checks that the stream does what the table says, and leaves no lock file.
void expect_outcome(Place& place, Way way, Does expected) {
  const auto before = place.look();
  const Result<pipeline::Begun> begun = place.begin(way);
  Does outcome = place.outcome_of(begun);
  const auto after = place.look();
  if (!begun.is_ok() && after != before) outcome = with_changes(outcome);
  EXPECT_EQ(static_cast<int>(outcome), static_cast<int>(expected)) << begun.status().text();
  EXPECT_EQ(after.count("./" + lock_path(kPath)), 0U);
}

TEST(pairs, do_with_what_is_there_as_the_table_says) {
  for_each_cell([](const Cell& cell, Way way, Does expected) {
    Place place(cell);
    expect_outcome(place, way, expected);
  });
}

TEST(pairs, do_the_same_beside_the_remains_of_a_crash) {
  for_each_cell([](const Cell& cell, Way way, Does expected) {
    Place place(cell);
    // The temporary file of an index is a link, so that a call that writes through it shows.
    place.put("far/victim", ByteVector(10, std::byte{'v'}));
    place.link(index_path(kPath) + ".new", "far/victim");
    // The lock file is left: its holder was killed.
    const std::string lock = "tailrace lock: host gone pid 1\n";
    place.put(lock_path(kPath), storage::bytes_of(lock));
    const Result<pipeline::Begun> begun = place.begin(way);
    const Does outcome = place.outcome_of(begun);
    EXPECT_TRUE(outcome == expected || with_changes(outcome) == expected) << begun.status().text();
    const auto after = place.look();
    EXPECT_EQ(after.count("./" + lock_path(kPath)), 0U);
    EXPECT_EQ(after.at("./far/victim"), std::string(10, 'v'));
    // A new index takes the temporary name. A stream that goes on makes none.
    if (!begun.is_ok()) return;
    EXPECT_EQ(after.count("./" + index_path(kPath) + ".new"), expected == anew ? 0U : 1U);
  });
}

TEST(pairs, change_nothing_without_the_lock) {
  for (const Cell& cell : kCells) {
    Place place(cell);
    const auto before = place.look();
    for (const LockFile kind : {LockFile::held, LockFile::foreign, LockFile::link}) {
      std::shared_ptr<void> held;
      if (kind == LockFile::held) held = *storage::posix_target()->lock(lock_path(kPath));
      if (kind == LockFile::foreign) place.put(lock_path(kPath), ByteVector(40, std::byte{'l'}));
      if (kind == LockFile::link) place.link(lock_path(kPath), "far/lock");
      const Code expected = kind == LockFile::held      ? Code::state
                            : kind == LockFile::foreign ? Code::argument
                                                        : Code::io;
      for (std::size_t way = 0; way < ways.size(); ++way) {
        SCOPED_TRACE(cat(text_of(cell), ", way ", way, ", lock ", static_cast<int>(kind)));
        const Status status = place.begin(static_cast<Way>(way)).status();
        EXPECT_EQ(status.code(), expected) << status.text();
        EXPECT_TRUE(fs::symlink_status(lock_path(kPath)).type() != fs::file_type::not_found);
      }
      held.reset();
      fs::remove(lock_path(kPath));
      EXPECT_TRUE(place.look() == before) << text_of(cell);
    }
  }
}

/// Links to a data file are the user's. A link stays, unless a second pair takes its place.
TEST(pairs, follow_a_link_to_the_data) {
  for_each_cell([](const Cell& cell, Way way, Does expected) {
    if (cell.data != Data::link && cell.data != Data::dangling) return;
    Place place(cell);
    static_cast<void>(place.begin(way));
    EXPECT_EQ(fs::is_symlink(kPath), expected != replaced);
    if (expected == anew) EXPECT_EQ(fs::file_size("far/data"), 0U);
  });
}

TEST(pairs, do_not_get_back_what_a_failed_step_has_left) {
  const auto disk = make_disk();
  const auto ledger = make_sample_ledger(disk, {});
  const Result<pipeline::Begun> begun = ledger->begin_file(kPath, 0, 1);
  ASSERT_TRUE(begun.is_ok()) << begun.status().text();
  put_bytes(*disk, kPath, data_of(2));
  ASSERT_TRUE(storage::make_durable(*disk, kPath).is_ok());
  ASSERT_TRUE(ledger->cut(kPath, begun->end).is_ok());
  storage::after_every_crash(
      *disk, 4, [&](storage::CrashTarget& left) { EXPECT_EQ(size_of_file(left, kPath), begun->end); });
}

}  // namespace
}  // namespace tailrace::streams
