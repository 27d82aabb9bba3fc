// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <list>

#include "files/group.hpp"

namespace tailrace::files {

/// The groups of this process, one for each communicator that has opened files. A group is kept as an
/// attribute of the user's communicator and forgotten when that is freed; its files keep it alive.
class Groups {
 public:
  explicit Groups(Service& service) : service_(service) {}
  /// Collective over each communicator whose group has no files any more.
  ~Groups();
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  /// Collective over `comm` when it is asked for the first time: it then blocks until all ranks of `comm`
  /// have asked. The same Status on every rank. `call` is the program's, for the watchdog.
  Result<std::shared_ptr<Group>> of(MPI_Comm comm, const std::string& call);

 private:
  struct Entry {
    Groups* owner = nullptr;
    MPI_Comm comm = MPI_COMM_NULL;
    std::shared_ptr<Group> group;
  };
  static int on_free(MPI_Comm comm, int key, void* entry, void* unused);
  [[nodiscard]] Status check(MPI_Comm comm) const;

  Service& service_;
  int key_ = MPI_KEYVAL_INVALID;
  std::list<Entry> entries_;  // in the order of creation
};

}  // namespace tailrace::files
