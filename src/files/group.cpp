// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/group.hpp"

#include <cerrno>
#include <map>

#include "base/text.hpp"
#include "files/channel.hpp"

namespace tailrace::files {

Group::Group(Service& service, std::unique_ptr<comm::Line> line) : service_(service), line_(std::move(line)) {
  find_nodes();
}

Group::~Group() = default;

Result<Channel*> Group::channel(const std::string& call) {
  if (channel_ == nullptr) {
    TR_TRY(agree({{}, call, {}}).status);
    Result<std::unique_ptr<Channel>> made = Channel::create(*this);
    TR_TRY(made.status());
    channel_ = std::move(*made);
  }
  return channel_.get();
}

void Group::find_nodes() {
  std::map<int, int> lowest;  // of the group's ranks, by the session's node
  std::vector<int> mine;      // ranks of the node: in the transport, and in the group
  std::vector<int> ranks;
  const session::Session& session = service_.session();
  for (int r = 0; r < size(); ++r) {
    const int place = line_->members().transport_rank(r);
    const int node = session.node_of(place);
    nodes_.push_back(lowest.try_emplace(node, r).first->second);
    if (node != session.my_node()) continue;
    mine.push_back(place);
    ranks.push_back(r);
  }
  node_ = std::make_unique<comm::Line>(line_->board(), line_->number() | comm::line_number::node_bit,
                                       std::make_shared<const comm::Members>(std::move(mine)));
  node_->name_ranks(
      [this, ranks](int rank) { return line_->name_of(ranks[static_cast<std::size_t>(rank)]); });
}

void Group::wait(const std::function<bool()>& done, const std::string& what) {
  line_->board().wait(done, what);
}

comm::Verdict Group::agree(comm::Vote vote) { return line_->agree(std::move(vote)); }

Result<ByteVector> Group::broadcast(ByteVector bytes, const std::string& call) {
  return line_->broadcast(std::move(bytes), call, cat("the I/O rank in ", call));
}

/// With the call's name, since a rank that makes another one would take the result for its own.
Outcome Group::share(Outcome mine, const std::string& call) {
  // Nothing was done for a call on a line that has ended.
  if (is_io_rank() && line_->ended()) return {-1, EINVAL, {}, line_->ended()->why.text()};
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

}  // namespace tailrace::files
