// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/pipeline/server/encoding.hpp"
#include "engine/pipeline/server/writing.hpp"

namespace tailrace::pipeline {

/// Stands between Encoding and Writing in a stream whose servers take offsets by themselves
/// (Method::takes_offsets). The root says once for each step where it begins. A chunk of that step then takes
/// room for all of its records by one add to the root's counter, is written at once, and the root is told
/// where and how it went.
class TakingOffsets {
 public:
  TakingOffsets(OpenStream& stream, Encoding& encoding, Writing& writing)
      : stream_(stream), encoding_(encoding), writing_(writing) {}

  /// Takes a chunk whose records are all encoded. A chunk that cannot be written, or has no bytes, takes no
  /// room, so that nothing of a file stays unwritten for its sake.
  void take(std::uint64_t number, WholeChunk chunk);
  /// Notes that the root has begun a step, or leaves it out. Chunks of the steps before are all over.
  void on_begun(Unpacker& in);

 private:
  struct Waiting {
    std::uint64_t number = 0;
    WholeChunk chunk;
  };
  /// The last step of which the root has told.
  struct Step {
    std::int64_t number = -1;
    bool is_written = false;
    std::string path;
    Bytes committed = 0;  // all bytes of the file before this offset are durable
    Bytes begin = 0;      // bytes before this offset are of other steps
    int counter = 0;      // of the root, by which chunks take room
  };
  void begin(Waiting waiting);
  void write(Waiting waiting, Bytes offset);
  void drop(Waiting waiting, const Status& why = {});
  void say(const Waiting& over, const Status& written);

  OpenStream& stream_;
  Encoding& encoding_;
  Writing& writing_;
  Step step_;
  std::map<std::int64_t, std::vector<Waiting>> waiting_;  // by step: chunks of steps that have not begun
};

}  // namespace tailrace::pipeline
