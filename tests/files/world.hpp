// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Helpers for tests of collective files that use the classes below the public face: a session with its own
// settings, and a file name.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "engine/session/bootstrap.hpp"
#include "faces/files/file.hpp"
#include "faces/files/groups.hpp"
#include "ground/storage/faulty.hpp"
#include "support/mpi_test.hpp"

namespace tailrace::files_test {

using namespace tailrace::mpi_test;
using namespace tailrace::files;

/// A session with its own settings, on all ranks of the test.
class World {
 public:
  explicit World(const std::string& options)
      : bootstrap_(*session::Bootstrap::create(state().comm, options.c_str())),
        session_(*session::Session::create(bootstrap_->transport(), bootstrap_->take_facts(),
                                           [](const auto&, const auto&, const auto&) {
                                             return Result<std::unique_ptr<pipeline::Ledger>>(
                                                 Status(Code::unsupported, "no streams here"));
                                           })),
        service_(std::make_unique<Service>(*session_)),
        groups_(std::make_unique<Groups>(*service_, bootstrap_->compute())),
        group_(*groups_->of(bootstrap_->compute(), "World")) {}
  ~World() {
    group_.reset();
    groups_.reset();
    service_.reset();
    session_->computing().leave();
    session_.reset();
    bootstrap_->meet_at_the_end();
  }
  [[nodiscard]] Group& group() { return *group_; }
  [[nodiscard]] const std::shared_ptr<Group>& own_group() const { return group_; }
  /// Collective over `comm`.
  std::shared_ptr<Group> group_of(MPI_Comm comm) { return *groups_->of(comm, "World"); }
  /// True if the session's fault plan has made a call fail on this rank.
  [[nodiscard]] bool struck() {
    auto* const faulty = dynamic_cast<storage::FaultyTarget*>(&session_->target());
    return faulty != nullptr && faulty->fired();
  }

  /// Returns the last call of storage that the session's fault plan has made fail on this rank, if any.
  [[nodiscard]] std::optional<storage::Call> struck_call() {
    auto* const faulty = dynamic_cast<storage::FaultyTarget*>(&session_->target());
    return faulty != nullptr ? faulty->struck() : std::nullopt;
  }
  [[nodiscard]] Service& service() { return *service_; }

  /// Returns nullptr if the file could not be opened, which is a failure of the test.
  std::unique_ptr<File> open(const std::string& path, const std::string& mode) {
    return open_in(group_, path, mode);
  }
  /// Opens a file on the ranks of `group`.
  std::unique_ptr<File> open_in(const std::shared_ptr<Group>& group, const std::string& path,
                                const std::string& mode) {
    const Mode parsed = *parse_mode(mode);
    Owner owner{service_.get(), parsed.local ? nullptr : group, rank()};
    Result<std::unique_ptr<File>> file = File::open(std::move(owner), path, parsed);
    CHECK_EQ(file.status().text(), std::string());
    return file.is_ok() ? std::move(*file) : nullptr;
  }
  Result<std::unique_ptr<File>> try_to_open(const std::string& path, const std::string& mode) {
    return File::open({service_.get(), group_, rank()}, path, *parse_mode(mode));
  }

 private:
  std::unique_ptr<session::Bootstrap> bootstrap_;
  std::unique_ptr<session::Session> session_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Groups> groups_;
  std::shared_ptr<Group> group_;
};

inline std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A file name of this test run, the same on every rank. The I/O rank removes the file at the end.
class Scratch {
 public:
  Scratch() {
    int id = ::getpid();
    MPI_Bcast(&id, 1, MPI_INT, 0, state().comm);
    path_ = "arrays_test." + std::to_string(id) + "." + std::to_string(size());
  }
  ~Scratch() {
    MPI_Barrier(state().comm);
    if (rank() == 0) std::remove(path_.c_str());
    MPI_Barrier(state().comm);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Collective. Returns the file's bytes on every rank. No rank may write meanwhile.
  [[nodiscard]] std::string bytes() const {
    MPI_Barrier(state().comm);
    std::string held = contents(path_);
    MPI_Barrier(state().comm);
    return held;
  }

 private:
  std::string path_;
};

}  // namespace tailrace::files_test
