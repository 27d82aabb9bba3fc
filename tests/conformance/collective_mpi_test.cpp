// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The suite of collective files over MPI-IO.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "collective_cases.hpp"
#include "ground/comm/collective/mpi_files.hpp"
#include "support/mpi_test.hpp"

using namespace tailrace;
using namespace tailrace::mpi_test;

namespace {

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
  if (std::getenv("TEST_ALL") != nullptr) add(comm::large_collective_cases());
  return true;
}();

}  // namespace

MPI_TEST_MAIN_WITH(MPI_THREAD_MULTIPLE)
