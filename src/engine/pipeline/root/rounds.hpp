// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/pipeline/context.hpp"
#include "formats/codec/codec.hpp"

namespace tailrace::pipeline {

/// The collective calls of a stream (Method::is_collective), as its root decides about them: one after the
/// other, each made by all servers. All chunks that have got their places while a call is made are the next
/// round. With Method::appends a round is no call: the owners of its chunks have a turn each, in the order of
/// the places, and tell their chunks' ends themselves (Message::written). A state machine.
class Rounds {
 public:
  using Done = std::function<void(const Status&)>;
  /// Called with the step of a round that is over, the number of its chunks and the round's outcome.
  using Over = std::function<void(std::int64_t step, int chunks, const Status&)>;
  Rounds(Context& context, const Opening& opening, Over over)
      : context_(context), opening_(opening), over_(std::move(over)) {}

  /// A chunk of a step, with its place in a file.
  struct Chunk {
    std::uint64_t number = 0;
    int owner = 0;
    std::vector<Bytes> offsets;  // of the records
    std::vector<Bytes> lengths;
  };
  /// Takes the next chunk to be written. All bytes of the file before `committed` are durable. The chunks of
  /// one step come before those of the next.
  void add(const std::string& path, std::int64_t step, Bytes committed, Chunk chunk);
  /// Writes the patches and makes the step durable on all servers.
  void sync(const std::string& path, std::int64_t step, std::vector<codec::Patch> patches, Done done);
  /// Notes that a step has its verdict. After a failure the file is closed once no other step without a
  /// verdict was written to it: the next write opens it anew. A descriptor whose fsync failed stays failed.
  void on_verdict(std::int64_t step, const Status& status);
  /// Returns true if the servers do not have the file open. Otherwise has them close it.
  bool is_closed(const std::string& path);
  /// Returns true if the servers have no file open. Otherwise has them close all.
  bool are_closed();
  void on_called(int source, Unpacker& in);
  /// Names, for the watchdog, the call that is made and the servers on which it is not over.
  [[nodiscard]] std::string waiting_for() const;
  bool advance();

 private:
  struct File {
    bool is_open = false;
    bool is_to_close = false;
    bool has_failed = false;           // a step in it has failed: it is to be opened anew
    std::set<std::int64_t> undecided;  // steps without a verdict that were written to it
    std::int64_t looked = -1;          // the last step before which the root looked at it, and found it whole
    Bytes pointer = -1;                // where the shared file pointer stands; -1: not known
  };
  struct Sync {
    std::string path;
    std::int64_t step = 0;
    std::vector<codec::Patch> patches;
    Done done;
  };
  /// The call that is being made.
  struct Call {
    CallKind kind = CallKind::open;
    std::string path;
    std::int64_t step = 0;
    std::vector<Chunk> chunks = {};          // round
    std::vector<codec::Patch> patches = {};  // sync
    Done done = {};                          // sync
    bool is_told = false;                    // the servers know of it
    std::set<int> answered = {};  // transport ranks of the servers that have told what became of it
    Status status = {};
    std::int64_t began = 0;
    Bytes place = 0;          // seek: where to
    std::size_t in_turn = 0;  // append: the first `in_turn` chunks have the turn; all are of one owner
  };
  struct Waiting {
    std::string path;
    std::int64_t step = 0;
    Bytes committed = 0;
    Chunk chunk;
  };

  bool begin_sync();
  bool begin_round();
  bool begin_seek(const std::string& path, std::int64_t step, Bytes place);
  bool begin_close();
  void prepare(std::vector<storage::Range> ranges, bool looks, std::chrono::nanoseconds pause);
  void on_prepared(const Status& status);
  void tell_round();
  void tell_turn();
  void end_turn();
  void tell_sync();
  [[nodiscard]] bool takes_part(int server) const;
  void tell(const std::function<void(int server, Packer& out)>& part, int calls, Bytes offset);
  void ask_for_turn();
  void drop_round(const Status& why);
  void end_call();
  [[nodiscard]] bool is_worth_another_try() const;

  Context& context_;
  const Opening& opening_;
  const Over over_;
  std::map<std::string, File> files_;
  std::deque<Waiting> waiting_;  // chunks with places, in order
  std::deque<Sync> syncs_;
  std::optional<Call> call_;
  std::int64_t number_ = 0;  // of the call that is made, or was made last
  Bytes committed_ = 0;      // of the round that is made
};

}  // namespace tailrace::pipeline
