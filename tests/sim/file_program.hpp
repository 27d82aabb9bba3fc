// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "faces/files/file.hpp"
#include "session_world.hpp"

namespace tailrace::sim {

/// One collective call on a file, and its expected effect.
struct FileCall {
  enum class Kind { open, write, read, text, seek, flush, close };
  Kind kind = Kind::open;
  int number = 0;  // in the program
  int file = 0;
  std::string mode;               // of open
  std::vector<Index> shape;       // of an array, of 8-byte elements
  int layout = 0;                 // its kind
  std::string words;              // of text
  Bytes position = 0;             // of seek
  Index elements = 0;             // how many elements write or read must move
  std::vector<std::uint64_t> is;  // the elements that read must get, in the global order
  bool gives_later = false;       // the call is asynchronous: its result is there after the next flush

  [[nodiscard]] std::string name() const;
};

/// The state in which the calls so far must leave a file.
struct FileModel {
  std::string bytes;
  std::string dirty;   // for each byte '1' if it was written since the last durable flush
  Bytes durable = -1;  // how many bytes the last durable flush covered; -1: there was none
  Bytes position = 0;
  std::string mode;
  bool is_open = false;
  bool was_open = false;
  bool appends = false;
  char last = ' ';  // what the last call did: 'r'ead, 'w'rite
  void put(const std::string& what);
};

/// A correct parallel program: one sequence of calls on files of overlapping groups of ranks. Each rank makes
/// the calls of its own groups, in this order.
class FileProgram {
 public:
  struct Size {
    int ranks = 0;
    int files = 0;
    int calls = 0;
    Index elements = 4000;   // of the largest array
    bool all_ranks = false;  // each file belongs to all of them
  };
  /// Makes a random program.
  FileProgram(Scheduler& dice, const Size& size);

  /// What a rank was told by a call.
  struct Said {
    std::int64_t value = 0;  // elements, or 0
    Code code = Code::ok;
    std::string text = {};  // of the error
    [[nodiscard]] bool is(std::int64_t wanted, Code as) const { return value == wanted && code == as; }
  };
  /// By call and rank: what the rank was told.
  using Heard = std::map<int, std::map<int, Said>>;

  /// Runs on a rank: makes its calls up to `last` (-1: all), with stalls in between. Adds what the rank was
  /// told to `heard`, and a text for each wrong outcome to `wrong`.
  void run(SessionRank& rank, Scheduler& dice, Heard& heard, std::vector<std::string>& wrong,
           int last = -1) const;

  [[nodiscard]] const std::vector<FileCall>& calls() const { return calls_; }
  [[nodiscard]] const std::vector<int>& ranks_of(int file) const {
    return groups_[static_cast<std::size_t>(file)];
  }
  [[nodiscard]] static std::string path_of(int file) { return "file." + std::to_string(file); }
  /// Returns the files as the calls before `call` (-1: all) leave them.
  [[nodiscard]] std::map<int, FileModel> models(int call = -1) const;
  /// Returns a text for each file on `disk` that differs from the state in which all calls must leave it.
  [[nodiscard]] std::vector<std::string> differences(storage::Target& disk) const;
  /// Checks the files on `disk` after a loss of power. Returns a text for each file that lacks bytes that a
  /// durable flush had covered and no later call may have written over. `heard` has what the ranks were told
  /// before. Adds the number of checked bytes to `looked_at`.
  [[nodiscard]] std::vector<std::string> lost(storage::Target& disk, const Heard& heard,
                                              Bytes& looked_at) const;

 private:
  using Files = std::map<int, std::unique_ptr<files::File>>;
  struct Reading {
    FileCall call;
    std::vector<std::uint64_t> memory;
    std::vector<Index> global;  // of each element of the memory
  };
  using Readings = std::map<int, std::vector<Reading>>;
  static void model(const FileCall& call, FileModel& file);
  [[nodiscard]] std::map<int, FileModel> durable_models(const Heard& heard) const;
  FileCall random_call(Scheduler& dice, int number, int file, const FileModel& now) const;
  void random_array(Scheduler& dice, FileCall& call) const;
  Said make(SessionRank& rank, const FileCall& call, Files& files, Readings& readings) const;
  Said move_array(files::File& file, const FileCall& call, Readings& readings) const;
  static void check(const Reading& reading, int rank, std::vector<std::string>& wrong);

  Size size_;
  std::vector<std::vector<int>> groups_;
  std::vector<FileCall> calls_;
};

}  // namespace tailrace::sim
