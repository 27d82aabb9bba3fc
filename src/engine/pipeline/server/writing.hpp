// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "engine/pipeline/server/encoding.hpp"

namespace tailrace::pipeline {

/// One chunk with its place, as the root has given it: what writing takes.
struct Placed {
  Encoded chunk;
  std::string path;
  std::vector<Bytes> offsets;  // of the records
  Bytes committed = 0;         // all bytes before this offset are durable
};

/// The last stage. It takes chunks with their places (Placed), writes them, and synchronises each step when
/// the root says so. Files are used by jobs of their own keys, one after another.
class Writing {
 public:
  using Done = std::function<void(const Status&)>;
  explicit Writing(OpenStream& stream) : stream_(stream) {}

  using Written = std::function<void(const Status&, Encoded)>;
  /// Writes a chunk that has bytes. `done` runs when it is written, or has failed, and gets the chunk back.
  void write(Placed placed, Written done);
  /// Writes the patches, and then makes everything durable that was written of the file.
  void sync(const std::string& path, std::int64_t step, std::vector<codec::Patch> patches, Done done);
  /// Notes that a step has its verdict. If a step has failed in a file, this server closes the file once it
  /// has no other step without a verdict there: the bytes that were cut off lie on storage as long as a
  /// descriptor of the file is open.
  void on_verdict(std::int64_t step, const Status& status);
  /// Closes the files: a later stream may find other files under their names.
  void forget_files();

 private:
  struct Spent;
  Status patiently(const std::string& path, Spent& spent, const std::function<Status()>& attempt);
  Status sync_patiently(const std::string& path, Spent& spent);
  Status write_patiently(const std::string& path, std::int64_t step, std::span<const storage::Extent> extents,
                         Spent& spent, std::optional<Status> first = {});
  using Records = std::pair<std::size_t, std::size_t>;  // from the first to one behind the last
  Status write_records(Placed& placed, Spent& spent);
  Status write_bytes(const Placed& placed, Records records, Spent& spent);
  Status write_values(const Placed& placed, Records records, Spent& spent);
  void forget(const std::string& path);
  void count(const Placed& placed, const Spent& spent, const Status& status);

  // With Method::is_overlapped:
  struct Flight;
  using Flights = std::list<Flight>;
  using Work = std::function<void(Flights& under_way, Flights& ended)>;
  void write_overlapped(Placed placed, bool looks, Written done);
  void queue_work(const std::string& path, std::shared_ptr<const Span::About> about, Work work);
  void on_worked(const std::string& path, Flights& ended);
  void begin(Flight& flight);
  void end_oldest(Flights& under_way, Flights& ended);
  Status write_patch(const std::string& path, std::int64_t step, const codec::Patch& patch, Spent& spent);

  OpenStream& stream_;
  std::atomic<bool> lacks_room_ =
      false;  // a write has waited for room, and none has gone through at once since
  // By file: the last step before whose first write this server looked at the file, and found it whole.
  std::map<std::string, std::int64_t> written_;
  /// The steps without a verdict that this server writes to a file. The file stays open for them: when it is
  /// closed, the server forgets which of its bytes are to be synchronised.
  struct Undecided {
    std::set<std::int64_t> steps;
    bool has_failed = false;
  };
  std::map<std::string, Undecided> undecided_;
  /// The chunks of a file whose writes are under way. Jobs of the file's key alone use `under_way`, while
  /// there are any.
  struct Overlapped {
    std::shared_ptr<Flights> under_way;  // oldest first
    int jobs = 0;
  };
  std::map<std::string, Overlapped> overlapped_;
};

}  // namespace tailrace::pipeline
