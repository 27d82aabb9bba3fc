// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "faces/input/committed_steps.hpp"
#include "faces/input/definition.hpp"
#include "faces/input/request.hpp"
#include "formats/sources/source.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::input {

/// Opens a file for reading.
using Opener = std::function<Result<std::shared_ptr<const sources::Source>>(const std::string& path)>;

/// Local. Blocks on storage. Finds the files of the pattern and their steps: by the files' names if a name
/// belongs to one lead, otherwise by their inventories. Without base=, the base time is the reference time of
/// the first file. Without lead_unit=, the index beside that file says what leads count. `cache` is handed on
/// to those who open the files later. Code::io with ENOENT if no file has such a name and the stream does not
/// follow.
Result<FilesDefinition> find_steps(storage::Target& target, const OpenRequest& request,
                                   const std::string& cache, const Opener& open);

/// Finds steps of files that are being written, in repeated looks. A step with an index beside its file
/// exists once the index has it, which is after its commit. A file without an index is another program's: its
/// steps exist once FILE.ready lies beside it, or once its size has not changed for two seconds and it can be
/// read. A directory has no size, so it needs FILE.ready.
class Follower {
 public:
  explicit Follower(const FilesDefinition& files);
  /// Local. Blocks on storage. Returns the steps that exist at `now` (nanoseconds), ascending, up to the
  /// first file that cannot be read yet; last_failure() has the reason.
  Result<std::vector<std::int64_t>> look(storage::Target& target, const Opener& open, std::int64_t now);
  [[nodiscard]] const Status& last_failure() const { return failure_; }
  /// Returns those of the steps `known` that belong to a file with an index, but were not in it at the last
  /// look: the writer has taken them back.
  [[nodiscard]] std::vector<std::int64_t> taken_back(std::span<const std::int64_t> known) const;

 private:
  struct Seen {
    Bytes size = -1;
    std::int64_t since = 0;
    std::optional<storage::Identity> index;
    bool is_read = false;  // read with this size and index
    std::vector<std::int64_t> leads;
  };
  Result<std::vector<std::int64_t>> look_once(storage::Target& target, const Opener& open, std::int64_t now);
  static Result<bool> is_ready(storage::Target& target, const std::string& path, Seen& seen,
                               std::int64_t now);
  /// True if the file whose least lead is `lead` may be one of an earlier run.
  [[nodiscard]] bool may_be_earlier(std::int64_t lead) const { return lead < 0 && !files_.time.is_model(); }
  Status read_leads(const Opener& open, const std::string& path, std::int64_t lead, Seen& seen) const;

  const FilesDefinition files_;
  OpenRequest request_;
  std::map<std::string, Seen> seen_;  // by path
  std::set<std::string> looked_at_;   // paths of indexed files, read by the last look
  Status failure_;
};

/// Returns the steps of this stream in the file `path`, ascending: leads for which the pattern gives this
/// name. `lead` is the least of them, and the only step of a file without times.
std::vector<std::int64_t> leads_in(const sources::Inventory& inventory, const FilesDefinition& files,
                                   const streams::Pattern& pattern, const std::string& path,
                                   std::int64_t lead);

}  // namespace tailrace::input
