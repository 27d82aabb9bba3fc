// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/communicators.hpp"

#include <numeric>
#include <vector>

#include "ground/base/text.hpp"
#include "ground/comm/mpi_process.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::comm {

void await_everybody(Switchboard& board, MPI_Comm comm, const std::string& what) {
  MPI_Request arrived = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &arrived);
  const auto have_come = [&] {
    int done = 0;
    MPI_Test(&arrived, &done, MPI_STATUS_IGNORE);
    return done != 0;
  };
  board.wait(have_come, what);
}

Communicators::~Communicators() {
  if (!mpi_is_running()) return;  // the program ended without tr_finalize
  while (!attributes_.empty()) MPI_Comm_delete_attr(attributes_.front().comm, key_);
  if (key_ != MPI_KEYVAL_INVALID) MPI_Comm_free_keyval(&key_);
}

/// MPI calls this when the program frees the communicator. ~Communicators() makes MPI call it, too.
int Communicators::on_free(MPI_Comm, int, void* value, void*) {
  auto* const attribute = static_cast<Attribute*>(value);
  attribute->owner->attributes_.remove_if([&](const Attribute& each) { return &each == attribute; });
  return MPI_SUCCESS;
}

std::shared_ptr<void> Communicators::find(MPI_Comm comm) const {
  if (comm == MPI_COMM_NULL || key_ == MPI_KEYVAL_INVALID) return nullptr;
  Attribute* attribute = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm, key_, static_cast<void*>(&attribute), &found);
  return found != 0 ? attribute->what : nullptr;
}

void Communicators::keep(MPI_Comm comm, std::shared_ptr<void> what) {
  if (key_ == MPI_KEYVAL_INVALID) MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &key_, nullptr);
  Attribute& attribute = attributes_.emplace_back(Attribute{this, comm, std::move(what)});
  MPI_Comm_set_attr(comm, key_, &attribute);
}

/// Returns the numbers that the ranks of `comm` have in the transport.
Result<std::vector<int>> Communicators::transport_ranks(MPI_Comm comm) const {
  if (comm == MPI_COMM_NULL) return Status(Code::argument, "the communicator is MPI_COMM_NULL");
  int joins_two = 0;
  MPI_Comm_test_inter(comm, &joins_two);
  if (joins_two != 0)
    return Status(Code::argument, "the communicator is an inter-communicator; merge it first");
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<int> ranks(numbers.size());
  MPI_Group part = MPI_GROUP_NULL;
  MPI_Group whole = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &part);
  MPI_Comm_group(compute_, &whole);
  MPI_Group_translate_ranks(part, size, numbers.data(), whole, ranks.data());
  MPI_Group_free(&part);
  MPI_Group_free(&whole);
  for (int& rank : ranks) {
    if (rank == MPI_UNDEFINED) {
      return Status(Code::argument,
                    "the communicator has ranks that are none of the session's compute ranks; make it from "
                    "the one that tr_init gave");
    }
    rank = computes_.members()->transport_rank(rank);
  }
  return ranks;
}

Result<std::unique_ptr<Line>> Communicators::open_line(MPI_Comm comm, const std::string& call) {
  Result<std::vector<int>> ranks = transport_ranks(comm);
  TR_TRY(ranks.status());
  Result<std::unique_ptr<Line>> line =
      Line::open_among(computes_.board(), std::make_shared<const Members>(std::move(*ranks)), call);
  TR_TRY(line.status());
  (*line)->name_ranks([](int rank) { return cat("rank ", rank, " of its communicator"); });
  return line;
}

}  // namespace tailrace::comm
