// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A program of one process that writes files at random places, and saves checkpoints that keep overwritten
// bytes. It uses the library's own classes. It also remembers what every file held at every generation.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "faces/checkpoint/ranks.hpp"
#include "faces/checkpoint/slots.hpp"
#include "faces/files/cookie.hpp"
#include "faces/restart/recorded_files.hpp"
#include "ground/journal/journal.hpp"

namespace tailrace::checkpoint {

/// The contents and position of a file when a generation was captured.
struct Held {
  ByteVector bytes;
  Bytes position = 0;
};

/// The history of one checkpoint.
struct Story {
  std::map<std::int64_t, std::map<std::string, Held>> captured;  // by generation and path
  std::int64_t committed = 0;                                    // the last generation that was committed
};
using History = std::map<std::string, Story>;  // by checkpoint

/// The newest whole copy, which was committed as a run does it, and the undo files that bring its files back.
struct Loaded {
  std::int64_t generation = 0;
  std::string path;
  std::vector<journal::Position> positions;
  std::vector<journal::UndoName> undo;
};

std::vector<journal::Position> positions_of(const Copy& copy);
std::int64_t oldest_undo_of(const Copy& copy);
bool is_good(storage::Target& target, const Copy& copy);
Loaded load_newest(storage::Target& target, const std::string& name);
ByteVector all_of(storage::File& file);

/// One run of the program, until its script ends or storage fails.
class Life {
 public:
  /// Loads the first of `checkpoints`. A new file gets `first_bytes` bytes.
  Life(std::shared_ptr<storage::Target> target, History& history, std::vector<std::string> checkpoints,
       std::uint64_t seed, Bytes first_bytes = 3000);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  [[nodiscard]] std::int64_t loaded() const { return loaded_.generation; }
  /// True if no call of storage has failed.
  [[nodiscard]] bool is_alive() const { return alive_; }

  /// Writes files, and saves `saves` times. It may open a recorded file late, so that saves before record the
  /// file's old position again.
  void run(int saves);

  /// Checks that every loaded file has the bytes that were captured, in storage and through its stream.
  void check_files();

 private:
  struct Open {
    files::CStream stream;
    ByteVector bytes;  // its contents once it is flushed
  };
  using Checkpoint = std::pair<std::string, Slots>;

  std::size_t below(std::size_t end) { return random_() % end; }

  /// Does what Checkpoint::create() does.
  void keep_recorded(const Checkpoint& checkpoint);
  void resume(const std::string& name);
  Status open(const std::string& path, const char* mode);
  void open_all();
  void put(Open& file, Bytes offset, Bytes count);
  void write_anywhere(Open& file);
  /// Does what File::cut() does.
  void cut(const std::string& path, Open& file);
  void close(const std::string& path);
  void open_anew(const std::string& path, const char* mode);
  void work(std::size_t steps);
  /// Does what the session's outputs do when a save is captured.
  std::vector<journal::Position> stand(const std::string& name, std::int64_t generation);
  void clean_up(const Checkpoint& checkpoint);
  std::function<Status()> what_makes_durable();
  /// Saves as Checkpoint does; the program goes on during the save.
  void save(Checkpoint& checkpoint);

  const std::shared_ptr<storage::Target> target_;
  History& history_;
  std::mt19937_64 random_;
  const Bytes first_bytes_;
  const Uuid run_ = Uuid::random();
  RankData data_{0, 1};
  std::vector<Checkpoint> slots_;
  journal::Journals journals_;
  restart::RecordedFiles recorded_;
  Loaded loaded_;
  std::map<std::string, Open> open_;
  bool alive_ = true;
};

}  // namespace tailrace::checkpoint
