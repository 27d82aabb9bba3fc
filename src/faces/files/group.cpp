// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/group.hpp"

#include <cerrno>

#include "ground/base/text.hpp"

namespace tailrace::files {

Group::Group(Service& service, std::unique_ptr<comm::Line> line)
    : exchange::Group(
          std::move(line), [&service](int rank) { return service.session().topology().node_of(rank); },
          service.threads(), service.settings(), service.budget()),
      service_(service) {}

/// The broadcast carries the call's name. Without it, a rank that makes another call would take the outcome
/// for its own call's.
Outcome Group::share(Outcome mine, const std::string& call) {
  // On a line that has ended, nothing was done for the call.
  if (is_io_rank() && line().ended()) return {-1, EINVAL, {}, line().ended()->why.text()};
  if (size() == 1) return mine;
  Packer out;
  if (is_io_rank())
    out.put_text(call).put(mine.value).put(mine.error).put_bytes(mine.data).put_text(mine.text);
  const Result<ByteVector> said = line().broadcast(out.take(), call, cat("the I/O rank in ", call));
  if (!said.is_ok()) return {-1, EINVAL, {}, said.status().text()};
  if (is_io_rank()) return mine;
  Unpacker in(*said);
  if (const std::string theirs = in.get_text(); theirs != call)
    return {-1, EINVAL, {}, cat("ranks disagree: the I/O rank is in ", theirs)};
  mine.value = in.get<std::int64_t>();
  mine.error = in.get<int>();
  const auto data = in.get_bytes();
  mine.data.assign(data.begin(), data.end());
  mine.text = in.get_text();
  return mine;
}

Status Opened::check(Direction direction) const {
  const bool writes = direction == Direction::write;
  if (writes ? mode.writes() : mode.reads()) return {};
  return {Code::state,
          cat(path, " was opened for ", writes ? "reading only" : "writing only: open it with + or r"),
          EBADF};
}

comm::Verdict Opened::agree(const std::string& call, Status mine, ByteVector told) const {
  if (owner.group == nullptr) return {std::move(mine), {}};
  return owner.group->agree({mine.at({-1, -1, owner.rank}), cat(call, " of file ", epoch), std::move(told)});
}

}  // namespace tailrace::files
