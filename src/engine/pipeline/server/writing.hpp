// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "engine/pipeline/server/encoding.hpp"

namespace tailrace::pipeline {

/// One chunk with its place, as the root has given it: what writing takes.
struct Placed {
  Encoded chunk;
  std::string path;
  std::vector<Bytes> offsets;  // of the records
  Bytes committed = 0;         // the file ends here, or behind: all before is durable
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
  /// Says that a step has its verdict. A file in which it failed is closed once no later step has bytes in it
  /// here: what was cut off lies on storage as long as a descriptor of it is open.
  void on_verdict(std::int64_t step, const Status& status);
  /// Closes the files: a later stream may find others under their names.
  void forget_files();

 private:
  struct Spent;
  Status write_patiently(const std::string& path, std::int64_t step, std::span<const storage::Extent> extents,
                         Spent& spent);
  using Records = std::pair<std::size_t, std::size_t>;  // from the first to one behind the last
  Status write_records(Placed& placed, Spent& spent);
  Status write_bytes(const Placed& placed, Records records, Spent& spent);
  Status write_values(const Placed& placed, Records records, Spent& spent);
  void forget(const std::string& path);
  Status write_patch(const std::string& path, std::int64_t step, const codec::Patch& patch, Spent& spent);

  OpenStream& stream_;
  // Before the first write of a step this server looks whether a file is whole. Each file opened here has the
  // last step whose look found it so.
  std::map<std::string, std::int64_t> written_;
  /// The steps without a verdict that this server writes to a file. A file that is closed loses what it knows
  /// of bytes to synchronise.
  struct Undecided {
    std::set<std::int64_t> steps;
    bool has_failed = false;
  };
  std::map<std::string, Undecided> undecided_;
};

}  // namespace tailrace::pipeline
