// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/groups.hpp"

#include <algorithm>
#include <numeric>

namespace tailrace::files {

namespace {

/// Whether every rank of `comm` is one of `all`.
bool is_part_of(MPI_Comm comm, MPI_Comm all) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> places(ranks.size());
  MPI_Group part = MPI_GROUP_NULL;
  MPI_Group whole = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &part);
  MPI_Comm_group(all, &whole);
  MPI_Group_translate_ranks(part, size, ranks.data(), whole, places.data());
  MPI_Group_free(&part);
  MPI_Group_free(&whole);
  return std::find(places.begin(), places.end(), MPI_UNDEFINED) == places.end();
}

}  // namespace

Groups::~Groups() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) return;  // the program has left without tr_finalize
  while (!entries_.empty()) MPI_Comm_delete_attr(entries_.front().comm, key_);
  if (key_ != MPI_KEYVAL_INVALID) MPI_Comm_free_keyval(&key_);
}

/// MPI calls this when the user frees the communicator, and we when the session ends.
int Groups::on_free(MPI_Comm, int, void* attribute, void*) {
  auto* const entry = static_cast<Entry*>(attribute);
  entry->owner->entries_.remove_if([&](const Entry& each) { return &each == entry; });
  return MPI_SUCCESS;
}

Status Groups::check(MPI_Comm comm) const {
  if (comm == MPI_COMM_NULL) return {Code::argument, "the communicator is MPI_COMM_NULL"};
  int joins_two = 0;
  MPI_Comm_test_inter(comm, &joins_two);
  if (joins_two != 0) return {Code::argument, "the communicator is an inter-communicator; merge it first"};
  if (!is_part_of(comm, service_.session().compute())) {
    return {Code::argument,
            "the communicator has ranks that are none of the session's compute ranks; make it from the one "
            "that tr_init gave"};
  }
  return {};
}

Result<std::shared_ptr<Group>> Groups::of(MPI_Comm comm, const std::string& call) {
  if (key_ == MPI_KEYVAL_INVALID) MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &key_, nullptr);
  if (comm != MPI_COMM_NULL) {
    Entry* entry = nullptr;
    int found = 0;
    MPI_Comm_get_attr(comm, key_, static_cast<void*>(&entry), &found);
    if (found != 0) return entry->group;
  }
  TR_TRY(check(comm));
  Result<std::shared_ptr<Group>> group = Group::create(service_, comm, call);
  TR_TRY(group.status());
  Entry& entry = entries_.emplace_back(Entry{this, comm, *group});
  MPI_Comm_set_attr(comm, key_, &entry);
  return group;
}

}  // namespace tailrace::files
