// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/group.hpp"

#include <cerrno>
#include <numeric>

#include "base/text.hpp"
#include "files/channel.hpp"

namespace tailrace::files {

namespace {

/// Bytes of results that the I/O rank may be ahead of the others.
constexpr Bytes most_unsent = Bytes{32} << 20;

std::vector<int> count_up_to(int size) {
  std::vector<int> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

Result<std::shared_ptr<Group>> Group::create(Service& service, MPI_Comm comm, const std::string& call) {
  service.session().await_everybody(
      comm, cat("the other ranks of the communicator in ", call, ", which all of them call together"));
  Result<std::unique_ptr<comm::MpiTransport>> transport = comm::MpiTransport::create(comm);
  TR_TRY(transport.status());
  std::shared_ptr<Group> group(new Group(service, std::move(*transport)));
  group->find_nodes(comm);
  return group;
}

Group::Group(Service& service, std::unique_ptr<comm::MpiTransport> transport)
    : service_(service),
      transport_(std::move(transport)),
      agreements_(*transport_, count_up_to(transport_->size()), transport_->rank()),
      broadcasts_(*transport_, transport_->size(), transport_->rank()) {}

Group::~Group() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) return;
  // Whoever closed the last file has got everything: only the completion of our sends is not seen yet.
  while (transport_->unsent() > 0) transport_->progress();
  channel_.reset();  // with the communicators of its own
  transport_->free();
  if (node_ != MPI_COMM_NULL) MPI_Comm_free(&node_);
}

Result<Channel*> Group::channel(const std::string& call) {
  if (channel_ == nullptr) {
    // Its communicators would wait in silence for ranks that never come.
    TR_TRY(agree({{}, call, {}}).status);
    Result<std::unique_ptr<Channel>> made = Channel::create(*this);
    TR_TRY(made.status());
    channel_ = std::move(*made);
  }
  return channel_.get();
}

void Group::find_nodes(MPI_Comm comm) {
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &node_);
  int leader = rank();
  MPI_Bcast(&leader, 1, MPI_INT, 0, node_);
  nodes_.resize(static_cast<std::size_t>(size()));
  MPI_Allgather(&leader, 1, MPI_INT, nodes_.data(), 1, MPI_INT, comm);
}

void Group::pump() {
  transport_->progress();
  while (std::optional<comm::Envelope> envelope = transport_->receive()) {
    Unpacker in(envelope->bytes);
    const auto kind = in.get<std::uint32_t>();
    if (agreements_.on_message(kind, envelope->source, in) || broadcasts_.on_message(kind, in)) continue;
    log(LogLevel::error, cat("files: a message of unknown kind ", kind, " from rank ", envelope->source));
  }
}

void Group::wait(const std::function<bool()>& done, const std::string& what,
                 const std::function<std::string()>& missing) {
  service_.session().wait(
      [&] {
        pump();
        return done();
      },
      what, missing);
}

/// Ranks are those of this communicator, which need not be those of the session.
std::string Group::missing(std::uint64_t agreement) const {
  std::string text;
  for (const int rank : agreements_.missing(agreement))
    text += cat(" nothing from rank ", rank, " of its communicator or those behind it;");
  return text.empty() ? text : ":" + text;
}

comm::Verdict Group::agree(comm::Vote vote) {
  const std::string what = cat("the other ranks in ", vote.call);
  const std::uint64_t number = agreements_.post(std::move(vote));
  std::optional<comm::Verdict> verdict;
  wait([&] { return (verdict = agreements_.take(number)).has_value(); }, what,
       [&] { return missing(number); });
  return std::move(*verdict);
}

ByteVector Group::broadcast(ByteVector bytes, const std::string& call) {
  const std::uint64_t number = broadcasts_.post(std::move(bytes));
  std::optional<ByteVector> said;
  wait([&] { return (said = broadcasts_.take(number)).has_value(); }, cat("the I/O rank in ", call));
  return std::move(*said);
}

/// With the call's name, since a rank that makes another one would take the result for its own.
Outcome Group::share(Outcome mine, const std::string& call) {
  if (size() == 1) return mine;
  if (!is_io_rank()) {
    const ByteVector said = broadcast({}, call);
    Unpacker in(said);
    const std::string theirs = in.get_text();
    const auto outcome = in.get_bytes();
    if (theirs == call) return unpack_outcome({outcome.begin(), outcome.end()});
    return {-1, EINVAL, {}, cat("ranks disagree: the I/O rank is in ", theirs)};
  }
  Packer out;
  out.put_text(call).put_bytes(pack(mine));
  broadcast(out.take(), call);
  // The others may be far behind: what they have not taken is memory here.
  if (transport_->unsent() > most_unsent)
    wait([&] { return transport_->unsent() <= most_unsent; },
         cat("the other ranks to take the result of ", call));
  return mine;
}

}  // namespace tailrace::files
