// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "session/bootstrap.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/bytes.hpp"
#include "comm/communicators.hpp"
#include "comm/mpi_process.hpp"
#include "session/affinity.hpp"

namespace tailrace::session {

namespace {

/// CPUs on which any rank of the node may run: the batch system may have left this job a part of them, and
/// the launcher each rank a part of those. At least 1.
int cpus_of_node(MPI_Comm node) {
  cpu_set_t cpus = own_cpus();
  int unknown = CPU_COUNT(&cpus) == 0 ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &unknown, 1, MPI_INT, MPI_MAX, node);
  MPI_Allreduce(MPI_IN_PLACE, &cpus, sizeof cpus, MPI_BYTE, MPI_BOR, node);
  if (unknown == 0) return CPU_COUNT(&cpus);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

/// The file name of the executable.
std::string program_name() {
  std::string program = "/proc/self/exe";
  char path[4096];
  if (const auto length = ::readlink(program.c_str(), path, sizeof path); length > 0) {
    program.assign(path, static_cast<std::size_t>(length));
  }
  return program.substr(program.rfind('/') + 1);
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

Bootstrap::Bootstrap(MPI_Comm world) : world_(world) { MPI_Comm_rank(world, &rank_); }

Bootstrap::~Bootstrap() {
  if (!comm::mpi_is_running()) return;
  if (transport_) transport_->free();
  if (compute_ != MPI_COMM_NULL) MPI_Comm_free(&compute_);
}

void Bootstrap::await_everybody(comm::Switchboard& board) const {
  comm::await_everybody(
      board, world_,
      "the other ranks in tr_init, which every rank of its communicator calls: those that print no "
      "such line have not called it, or not again after tr_finalize");
}

std::vector<ByteVector> Bootstrap::gather(const ByteVector& mine) const {
  int size = 0;
  MPI_Comm_size(world_, &size);
  const auto length = static_cast<int>(mine.size());
  std::vector<int> lengths(static_cast<std::size_t>(size));
  MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, world_);
  std::vector<int> offsets;
  int total = 0;
  for (const int each : lengths) {
    offsets.push_back(total);
    total += each;
  }
  ByteVector all(static_cast<std::size_t>(total));
  MPI_Allgatherv(mine.data(), length, MPI_BYTE, all.data(), lengths.data(), offsets.data(), MPI_BYTE, world_);
  std::vector<ByteVector> parts;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto begin = all.begin() + offsets[i];
    parts.emplace_back(begin, begin + lengths[i]);
  }
  return parts;
}

Status Bootstrap::same_everywhere(const Status& mine) const {
  Packer packer;
  mine.pack(packer);
  for (const ByteVector& each : gather(packer.bytes())) {
    Unpacker in(each);
    Status status = Status::unpack(in);
    if (!status.is_ok()) return status;
  }
  return {};
}

std::vector<RankFacts> Bootstrap::gather_facts() const {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
  int leader = rank_;
  MPI_Bcast(&leader, 1, MPI_INT, 0, node);
  const cpu_set_t cpus = own_cpus();
  Packer mine;
  mine.put(leader).put_text(host_name()).put_text(program_name());
  mine.put(static_cast<int>(CPU_COUNT(&cpus))).put(cpus_of_node(node));
  MPI_Comm_free(&node);
  std::vector<RankFacts> facts;
  for (const ByteVector& each : gather(mine.bytes())) {
    Unpacker in(each);
    RankFacts& rank = facts.emplace_back();
    rank.node = in.get<int>();
    rank.host = in.get_text();
    rank.program = in.get_text();
    rank.cpus = in.get<int>();
    rank.node_cpus = in.get<int>();
  }
  return facts;
}

Status Bootstrap::connect(bool serves) {
  MPI_Comm_split(world_, serves ? MPI_UNDEFINED : 0, rank_, &compute_);
  Result<std::unique_ptr<comm::MpiTransport>> transport = comm::MpiTransport::create(world_);
  TR_TRY(same_everywhere(transport.status()));
  transport_ = std::move(*transport);
  return {};
}

}  // namespace tailrace::session
