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

/// What ranks were told by their collective calls, and the wrong things that they saw.
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
  /// Returns true if any call has failed, or any of one rank alone.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool local_failed() const { return local_failed_; }
  /// Counts the collective calls that failed on rank 0.
  [[nodiscard]] int failures() const;
  [[nodiscard]] const std::vector<Said>& said(int rank) const {
    return said_[static_cast<std::size_t>(rank)];
  }
  /// Returns texts for collective calls of which ranks were told different things, as far as all ranks have
  /// made them.
  [[nodiscard]] std::vector<std::string> disagreements() const;

 private:
  std::vector<std::vector<Said>> said_;  // by rank
  std::vector<std::string> wrong_;
  bool failed_ = false;
  bool local_failed_ = false;
};

/// A correct parallel program on one shared file: phases between two collective calls, in which each rank
/// writes small pieces of its own, in any order, or appends some. Then each reads what others have written.
class SharedProgram {
 public:
  struct Size {
    int ranks = 0;
    int phases = 0;
    int pieces = 0;    // of a rank, in a phase
    Bytes piece = 0;   // the longest
    Bytes memory = 0;  // of a node
  };
  SharedProgram(std::uint64_t seed, const Size& size);

  /// Runs on a rank: makes its calls up to the collective one with the number `last` (-1: all). Ranks of one
  /// program share the object: it keeps the content that the file must have.
  void run(SessionRank& rank, Hearing& hearing, int last = -1);
  /// Returns a text if the file is not as all calls must leave it.
  [[nodiscard]] std::string difference(storage::Target& disk) const;
  /// Counts the collective calls of a run without failures.
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
    Bytes size = 0;           // to which it is resized
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
  std::vector<char> is_resized_;  // by phase: the content is
};

/// A correct parallel program on one global array: phases between two syncs, in which each rank changes
/// elements of its own, or all add to any. Then each looks at what others have changed.
class GlobalProgram {
 public:
  struct Size {
    int ranks = 0;
    int phases = 0;
    Index count = 0;
    int elements = 0;  // that a rank changes, in a phase
  };
  GlobalProgram(std::uint64_t seed, const Size& size);

  /// As of SharedProgram.
  void run(SessionRank& rank, Hearing& hearing, int last = -1);
  [[nodiscard]] int calls() const { return 1 + 3 * size_.phases + 1; }

 private:
  using Value = std::int64_t;
  struct Phase {
    bool adds = false;
    Index run = 1;  // elements of an owner that follow one another
    Index count = 0;
    Index next_count = 0;  // to which it is resized, if it is another one
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
