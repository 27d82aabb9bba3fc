// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The suite of collective files over MPI-IO.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "collective_cases.hpp"
#include "ground/comm/collective/mpi_files.hpp"
#include "support/mpi_test.hpp"

using namespace tailrace;
using namespace tailrace::mpi_test;

namespace {

/// What MPI was given when it opened the last file: the name, and the values of two hints.
struct Opened {
  std::string name, nodes, sieving;
};
Opened last_opened;

std::string value_of(MPI_Info info, const char* key) {
  std::string value(MPI_MAX_INFO_VAL, '\0');
  int is_there = 0;
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value.data(), &is_there);
  return is_there != 0 ? value.c_str() : "";
}

class Process final : public comm::CollectiveEnd {
 public:
  Process() {
    MPI_Comm_dup(state().comm, &comm_);
    files_ = *comm::MpiFiles::create(comm_, {});
    if (rank() == 0) std::filesystem::create_directories(directory_);
    meet();
  }
  ~Process() override {
    files_.reset();
    MPI_Comm_free(&comm_);
    meet();
    if (rank() == 0) std::filesystem::remove_all(directory_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  comm::CollectiveFiles& files() override { return *files_; }
  storage::Target& target() override { return *target_; }
  [[nodiscard]] int rank() const override { return mpi_test::rank(); }
  [[nodiscard]] int size() const override { return mpi_test::size(); }
  [[nodiscard]] std::string path(const std::string& name) const override { return directory_ + "/" + name; }
  void meet() override { MPI_Barrier(state().comm); }
  void idle() override { std::this_thread::sleep_for(std::chrono::microseconds(50)); }
  void check(bool holds, const std::string& what) override {
    if (!holds) fail(__FILE__, __LINE__, what);
  }

 private:
  const std::string directory_ = "collective_files";
  const std::unique_ptr<storage::Target> target_ = storage::posix_target();
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::unique_ptr<comm::CollectiveFiles> files_;
};

Status wait(Process& process, const std::shared_ptr<std::optional<Status>>& told) {
  while (!told->has_value()) {
    if (!process.files().poll()) process.idle();
  }
  return **told;
}

/// Makes an empty file, and opens it on all processes.
Status open(Process& process, const std::string& path, comm::Hints hints) {
  if (process.rank() == 0) process.check(storage::create_empty(process.target(), path).is_ok(), "made");
  process.meet();
  const auto opened = std::make_shared<std::optional<Status>>();
  process.files().open(
      path, std::move(hints), [] { return Status(); },
      [opened](const Status& own, bool is_open) { *opened = is_open ? own : Status(Code::io, own.text()); });
  return wait(process, opened);
}

void close(Process& process, const std::string& path) {
  const auto closed = std::make_shared<std::optional<Status>>();
  process.files().close(
      path, [] { return Status(); }, [closed](const Status& own) { *closed = own; });
  process.check(wait(process, closed).is_ok(), "closed");
}

void hints_reach_the_mpi() {
  Process process;
  const std::string path = process.path("hints");
  process.check(open(process, path, {{"cb_nodes", "1"}}).is_ok(), "open");
  process.check(last_opened.nodes == "1" && last_opened.sieving == "disable", "the hint, and the usual one");
  close(process, path);
  process.check(open(process, path, {{"romio_ds_write", "automatic"}}).is_ok(), "open again");
  process.check(last_opened.nodes.empty() && last_opened.sieving == "automatic", "the hint counts");
  close(process, path);
}

/// Each case of the suite is a case here.
const bool registered = [] {
  const auto add = [](const std::vector<comm::CollectiveCase>& suite) {
    for (const comm::CollectiveCase& one : suite) {
      cases().push_back({one.name, [&one] {
                           Process process;
                           one.run(process);
                         }});
    }
  };
  add(comm::collective_cases());
  cases().push_back({"hints_reach_the_mpi", hints_reach_the_mpi});
  if (std::getenv("TEST_ALL") != nullptr) add(comm::large_collective_cases());
  return true;
}();

}  // namespace

/// Takes the place of the MPI library's function (MPI 3.1, 14.2.1).
extern "C" __attribute__((visibility("default"))) int MPI_File_open(MPI_Comm comm, const char* name, int mode,
                                                                    MPI_Info info, MPI_File* file) {
  last_opened = {name, value_of(info, "cb_nodes"), value_of(info, "romio_ds_write")};
  return PMPI_File_open(comm, name, mode, info, file);
}

MPI_TEST_MAIN_WITH(MPI_THREAD_MULTIPLE)
