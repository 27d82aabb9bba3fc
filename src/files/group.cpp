// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/group.hpp"

#include <cerrno>

#include "base/text.hpp"

namespace tailrace::files {

namespace {

ByteVector pack(const Outcome& outcome) {
  Packer out;
  out.put(outcome.value).put(outcome.error).put_bytes(outcome.data).put_text(outcome.text);
  return out.take();
}

Outcome unpack_outcome(const ByteVector& bytes) {
  Unpacker in(bytes);
  Outcome outcome;
  outcome.value = in.get<std::int64_t>();
  outcome.error = in.get<int>();
  const auto data = in.get_bytes();
  outcome.data.assign(data.begin(), data.end());
  outcome.text = in.get_text();
  return outcome;
}

}  // namespace

Group::Group(Service& service, std::unique_ptr<comm::Line> line)
    : exchange::Group(
          std::move(line), [&service](int rank) { return service.session().topology().node_of(rank); },
          service.threads(), service.settings(), service.budget()),
      service_(service) {}

Result<ByteVector> Group::broadcast(ByteVector bytes, const std::string& call) {
  return line().broadcast(std::move(bytes), call, cat("the I/O rank in ", call));
}

/// The result carries the call's name: a rank that makes another call would take it for its own.
Outcome Group::share(Outcome mine, const std::string& call) {
  // On a line that has ended, nothing was done for the call.
  if (is_io_rank() && line().ended()) return {-1, EINVAL, {}, line().ended()->why.text()};
  if (size() == 1) return mine;
  if (!is_io_rank()) {
    const Result<ByteVector> said = broadcast({}, call);
    if (!said.is_ok()) return {-1, EINVAL, {}, said.status().text()};
    Unpacker in(*said);
    const std::string theirs = in.get_text();
    const auto outcome = in.get_bytes();
    if (theirs == call) return unpack_outcome({outcome.begin(), outcome.end()});
    return {-1, EINVAL, {}, cat("ranks disagree: the I/O rank is in ", theirs)};
  }
  Packer out;
  out.put_text(call).put_bytes(pack(mine));
  if (const Status told = broadcast(out.take(), call).status(); !told.is_ok())
    return {-1, EINVAL, {}, told.text()};
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
  if (place.group == nullptr) return {std::move(mine), {}};
  return place.group->agree({mine.at({-1, -1, place.rank}), cat(call, " of file ", epoch), std::move(told)});
}

}  // namespace tailrace::files
