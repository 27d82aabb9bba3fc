// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/pipeline/messages.hpp"
#include "session_world.hpp"

namespace tailrace::sim {

/// A stream that ranks put as fast as they can, by one method of writing, on a machine with stated costs.
/// Each server gets the same number of records in each step, however many servers there are.
struct MethodTrial {
  std::string method;
  int servers = 1;
  int steps = 4;
  int records = 4;                  // for each server in each step
  Bytes record_bytes = 4 << 20;     // of float32; the encoder makes 16 bits of each value
  Bytes miniature_bytes = 1 << 16;  // that the simulation holds of a record
  int servers_of_node = 32;         // each node also has one compute rank
  Costs costs{};
};

/// What a process did, in parts of the elapsed time. Some of it goes on at the same time.
struct MethodShares {
  double encoding = 0;
  double writing = 0;
  double syncing = 0;
  double data = 0;      // its adapter carries pieces of records, or encoded ones
  double messages = 0;  // it carries other messages, or the process sends and takes any
  double idle = 0;      // none of these
};

/// How often a message was sent: to other processes, and by a process to itself.
struct MessageCount {
  std::int64_t sent = 0;
  std::int64_t kept = 0;

  [[nodiscard]] std::int64_t all() const { return sent + kept; }
};

struct MethodResult {
  Status status;
  double seconds = 0;  // from the first put until everything is durable and closed
  double bytes = 0;    // of the file, in full
  std::int64_t chunks = 0;
  MethodShares root;     // the guard, or the writer
  MethodShares servers;  // the mean of the others; of the root if there are none
  std::map<pipeline::Message, MessageCount> messages;
  MessageCount pieces;       // data messages: parts of records for their owners
  MessageCount sent_chunks;  // data messages: encoded chunks for the root
  std::int64_t collective_calls = 0;

  [[nodiscard]] double bytes_per_second() const { return bytes / seconds; }
};

/// Runs the trial. At most one at a time.
MethodResult run_trial(const MethodTrial& trial);

}  // namespace tailrace::sim
