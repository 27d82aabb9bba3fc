// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "engine/arrays/array.hpp"
#include "engine/exchange/group.hpp"
#include "faces/files/mode.hpp"
#include "faces/files/outcome.hpp"
#include "faces/files/service.hpp"

namespace tailrace::files {

using arrays::Array;
using arrays::ArrayPlan;
using arrays::Direction;

/// The ranks that open files together. All their files share one line: each file has an epoch, which tells it
/// from the others.
class Group final : public exchange::Group {
 public:
  Group(Service& service, std::unique_ptr<comm::Line> line);

  [[nodiscard]] Service& service() { return service_; }
  /// Memory that the last shared file of the group has left for the next one.
  [[nodiscard]] std::shared_ptr<void>& kept_pages() { return kept_pages_; }
  std::uint64_t new_epoch() { return next_epoch_++; }

  /// Collective. Returns the I/O rank's outcome on every rank. Blocks until the I/O rank has sent it.
  Outcome share(Outcome mine, const std::string& call);

 private:
  Service& service_;
  std::shared_ptr<void> kept_pages_;
  std::uint64_t next_epoch_ = 0;
};

/// The ranks to which a file belongs: the group that opened it, or one rank alone in the local mode.
struct Owner {
  Service* service = nullptr;
  std::shared_ptr<Group> group;  // nullptr: local
  int rank = 0;                  // in the communicator that opened it
};

/// A file as its ranks have opened it.
struct Opened {
  Owner owner;
  std::string path;
  Mode mode;
  std::uint64_t epoch = 0;  // 0 for a local file

  /// Returns true if this rank holds the stream: the I/O rank, or every rank of a local file.
  [[nodiscard]] bool holds_stream() const { return owner.group == nullptr || owner.group->is_io_rank(); }
  /// Returns Code::state if the mode does not allow arrays to be moved in `direction`.
  [[nodiscard]] Status check(Direction direction) const;
  /// Collective (local files: local). Votes with this rank's Status `mine`, and tells the other ranks `told`.
  /// Blocks until all ranks have voted. Returns the verdict.
  [[nodiscard]] comm::Verdict agree(const std::string& call, Status mine, ByteVector told = {}) const;
};

}  // namespace tailrace::files
