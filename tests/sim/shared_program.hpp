// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "faces/shared/elements/global_array.hpp"
#include "faces/shared/shared_file.hpp"
#include "session_world.hpp"

namespace tailrace::sim {

/// The ranks of a world and their nodes.
struct Shape {
  int ranks = 1;
  int ranks_per_node = 1;
};

/// Returns 0, 1, ... `ranks` - 1.
std::vector<int> all_ranks(int ranks);

/// Notes what the ranks were told by their collective calls, and texts about wrong results.
class Hearing {
 public:
  /// One collective call on one rank, with the text of its status.
  struct Said {
    std::string call;
    std::string text;  // "" for success
  };
  explicit Hearing(int ranks) : said_(static_cast<std::size_t>(ranks)) {}

  /// Notes a collective call. Returns true if it succeeded.
  bool collective(int rank, const std::string& call, const Status& status);
  /// Notes a call of one rank. Returns true if it succeeded.
  bool local(const Status& status);
  void wrong(const std::string& text) { wrong_.push_back(text); }

  [[nodiscard]] const std::vector<std::string>& wrong() const { return wrong_; }
  /// True if any call has failed; or for local_failed(), any call of one rank alone.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool local_failed() const { return local_failed_; }
  /// Returns how many collective calls have failed on rank 0.
  [[nodiscard]] int failures() const;
  [[nodiscard]] const std::vector<Said>& said(int rank) const {
    return said_[static_cast<std::size_t>(rank)];
  }
  /// Returns a text for each collective call that all ranks have made and in which they were told different
  /// things.
  [[nodiscard]] std::vector<std::string> disagreements() const;

 private:
  std::vector<std::vector<Said>> said_;  // by rank
  std::vector<std::string> wrong_;
  bool failed_ = false;
  bool local_failed_ = false;
};

/// A correct parallel program on one shared file. It has phases, which end with collective calls. In a phase
/// each rank writes small pieces of its own in any order, or appends pieces. Afterwards each rank reads what
/// others have written.
class SharedProgram {
 public:
  struct Size {
    int ranks = 0;
    int phases = 0;
    int pieces = 0;    // that one rank writes in a phase
    Bytes piece = 0;   // the length of the longest piece
    Bytes memory = 0;  // for pages, of a node
  };
  SharedProgram(std::uint64_t seed, const Size& size);

  /// Runs on a rank: makes its calls up to the collective call number `last` (-1: all). All ranks share this
  /// object, which keeps the content that the file must have.
  void run(SessionRank& rank, Hearing& hearing, int last = -1);
  /// Returns a text if the file on `disk` differs from the content that all calls must leave.
  [[nodiscard]] std::string difference(storage::Target& disk) const;
  /// Returns the number of collective calls in a run without failures.
  [[nodiscard]] int calls() const { return 1 + 3 * size_.phases + 1; }

  static constexpr const char* path = "shared";

 private:
  enum class Kind { pieces, appends, rewrites };
  enum class End { sync, flush, resize };
  struct Phase {
    Kind kind = Kind::pieces;
    End end = End::sync;
    Bytes piece = 0;
    std::vector<int> owners;  // by piece
    Bytes size = 0;           // the size to which the file is resized
  };
  using File = std::unique_ptr<shared::SharedFile>;
  struct Course;

  void write(Course& course, const Phase& phase);
  void write_piece(Course& course, Bytes offset, Bytes length);
  void append(Course& course, const Phase& phase);
  void read(Course& course);
  void compare(Course& course, Bytes offset, std::span<const std::byte> bytes, const Result<Bytes>& got,
               const char* whose);
  Status end(shared::SharedFile& file, const Phase& phase) const;
  void put(Bytes offset, std::span<const std::byte> bytes);

  const std::uint64_t seed_;
  const Size size_;
  std::vector<Phase> phases_;
  std::string content_;
  std::vector<char> is_resized_;  // by phase: `content_` was resized
};

/// A correct parallel program on one global array. It has phases, which end with syncs. In a phase each rank
/// changes elements of its own, or all ranks add to any elements. Afterwards each rank reads what others have
/// changed.
class GlobalProgram {
 public:
  struct Size {
    int ranks = 0;
    int phases = 0;
    Index count = 0;
    int elements = 0;  // that one rank changes in a phase
  };
  GlobalProgram(std::uint64_t seed, const Size& size);

  /// As SharedProgram::run().
  void run(SessionRank& rank, Hearing& hearing, int last = -1);
  [[nodiscard]] int calls() const { return 1 + 3 * size_.phases + 1; }

 private:
  using Value = std::int64_t;
  struct Phase {
    bool adds = false;
    Index run = 1;  // how many elements of one owner follow one another
    Index count = 0;
    Index next_count = 0;  // the array is resized to this count, if it differs from `count`
  };
  struct Course;

  void change(Course& course, const Phase& phase);
  void change_own(Course& course, const Phase& phase);
  void add(Course& course, const Phase& phase);
  void look(Course& course, Index count);

  const std::uint64_t seed_;
  const Size size_;
  std::vector<Phase> phases_;
  std::vector<Value> content_;
  std::vector<char> is_resized_;
};

}  // namespace tailrace::sim
