// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/codec/codec.hpp"
#include "ground/base/bytes.hpp"
#include "ground/comm/account.hpp"

namespace tailrace::pipeline {

/// Counters of one stream on one rank. Times in nanoseconds.
struct Counters {
  std::int64_t steps = 0;
  std::int64_t records = 0;
  std::int64_t captured_bytes = 0;  // compute: bytes that puts copied or lent
  std::int64_t interval_bytes = 0;  // compute: memory of what is accumulated over intervals
  std::int64_t blocked = 0;         // compute: all time inside our calls
  std::int64_t capture = 0;         // compute: part of `blocked` spent packing or accumulating
  std::int64_t staging_full = 0;    // compute: part spent waiting for free staging
  std::int64_t staging_full_count = 0;
  std::int64_t verdict_wait = 0;  // compute: part spent waiting for the verdict of the step before (skew)
  std::int64_t encode = 0;        // servers, summed over worker threads
  std::int64_t assemble = 0;
  std::int64_t write = 0;
  std::int64_t sync = 0;
  std::int64_t commit = 0;  // beginning, committing, cutting and finishing files
  std::int64_t wait = 0;    // waiting for room on a full disk
  std::int64_t encoded_bytes = 0;
  std::int64_t sent_bytes = 0;      // servers: pieces and chunks sent between nodes
  std::int64_t workspace_peak = 0;  // servers: most bytes encoded and not yet written, or kept for records
  std::int64_t method = 0;          // servers: the method's position in pipeline::methods()
  std::int64_t rounds = 0;          // servers: collective writes in which the server took part
  std::int64_t offsets = 0;         // servers: how they have taken offsets; 0: not at all
  std::int64_t handoff = 0;         // servers: a Handoff
  std::int64_t way = 0;             // servers: the way of the writes, storage::WriteWay
  std::int64_t space_waits = 0;     // number of times that the stream waited for space on a full disk
  // The stream's root counts these:
  std::int64_t files = 0;          // files that were begun, or finished without a step
  std::int64_t durable_steps = 0;  // steps that are durable
  std::int64_t durable_bytes = 0;  // bytes of their records
  std::int64_t failed_steps = 0;
  // Compute ranks count these for each stream that is read:
  std::int64_t gets_in_memory = 0;  // gets that found everything in memory
  std::int64_t gets_late = 0;       // gets that had to wait, or to read
  std::int64_t get_wait = 0;        // part of `blocked` spent in late gets
  std::int64_t records_read = 0;    // records that this rank has decoded, for all ranks of its node
  std::int64_t read_bytes = 0;      // bytes of files that this rank has read, for all ranks of its node
  std::int64_t is_input = 0;        // 1: the stream is read
};

/// The bits that records of a field with accuracy=auto have kept on one rank.
struct Precision {
  static constexpr std::size_t most_bits = 64;

  double share = 0;        // of their information that they were to keep
  std::int64_t whole = 0;  // records that kept all bits, since nothing told which of them matter
  std::vector<std::int64_t> records = std::vector<std::int64_t>(most_bits + 1);  // the others, by kept bits
  double least_information = 1;
  double most_left_out = 0;  // share of the information that was taken for a trace of earlier rounding

  void add(const codec::KeptBits& kept);
  void add(const Precision& other);
  [[nodiscard]] std::int64_t count() const;
};

/// How a server takes offsets by itself (Counters::offsets).
enum class OffsetsBy : std::int64_t { none = 0, one_sided = 1, messages = 2 };

/// A span of time on one thread, for the trace.
struct Span {
  std::string name;
  std::int64_t thread = 0;  // 0: the rank's own, 1...: workers
  std::int64_t begin = 0;   // nanoseconds of the node's clock
  std::int64_t end = 0;
  /// A span of work on records names the first of them. Any other span has `records` 0.
  struct About {
    std::string stream{};
    std::string field{};
    double level = 0;
    std::int64_t lead = 0;  // in the stream's unit
    std::int64_t records = 0;

    void pack(Packer& out) const;
    static About unpack(Unpacker& in);
  } about{};
};

/// The number of the thread that makes collective calls, in spans: behind all workers.
inline constexpr std::int64_t calling_thread = 1000;

/// One rank's account of its time: its own thread's, and the number of threads that work for it.
struct Process {
  comm::Spent spent;             // by its own thread
  std::int64_t elapsed = 0;      // nanoseconds since the session began; the sum of `spent`
  std::int64_t threads = 0;      // workers of its server; 0: its own thread does their jobs
  std::int64_t encoders = 0;     // those of them that encode
  std::int64_t makes_calls = 0;  // 1: one more thread makes collective calls
};

/// The figures of one rank for the report and the trace. Only the rank's own thread uses them. Workers return
/// their figures with their results.
struct Statistics {
  std::map<std::string, Counters> streams;  // by file pattern
  std::map<std::string, std::vector<double>>
      durable;  // seconds from a rank's end of step to durable, as its home saw it
  std::map<std::string, std::string> why_method;    // of streams with method=auto, on servers
  std::map<std::string, std::string> last_durable;  // by stream: its last durable step, on its root
  std::map<std::string, std::string> failed;        // by stream: why a step or a file's end failed, likewise
  Process process;
  std::string error;    // compute ranks: why tr_finalize has failed
  std::string stopped;  // compute ranks: why tr_should_stop has told the program to stop
  std::map<std::string, std::map<std::string, Precision>>
      precisions;  // by file pattern and field, on servers
  std::vector<Span> spans;
  bool tracing = false;

  void add_span(std::string name, std::int64_t thread, std::int64_t begin, std::int64_t end) {
    if (tracing) spans.push_back({std::move(name), thread, begin, end});
  }
  /// The same with what the span was about, which `about` returns. Nobody asks it without a trace.
  template <typename About>
  void add_span(std::string name, std::int64_t thread, std::int64_t begin, std::int64_t end, About about) {
    if (tracing) spans.push_back({std::move(name), thread, begin, end, about()});
  }
  void add_span(std::string name, std::int64_t thread, std::int64_t begin, std::int64_t end,
                const std::shared_ptr<const Span::About>& about) {
    if (tracing) spans.push_back({std::move(name), thread, begin, end, about ? *about : Span::About()});
  }
  static constexpr std::ptrdiff_t most_durable_so_far = 128;  // values of `durable`, of each stream
  /// Returns the figures without the spans, which only the trace at the end has, and without all but the last
  /// values of `durable`: they would grow without bound, and travel each second.
  [[nodiscard]] Statistics so_far() const;
  void pack(Packer& out) const;
  static Statistics unpack(Unpacker& in);
};

/// Figures by transport rank that a thread may read while others come.
using Figures = std::map<int, std::shared_ptr<const Statistics>>;

}  // namespace tailrace::pipeline
