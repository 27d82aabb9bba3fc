// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The suite of transports over MPI, alone and shared.
#include <cstdlib>

#include "ground/comm/mpi_transport.hpp"
#include "support/mpi_test.hpp"
#include "transport_cases.hpp"

using namespace tailrace;
using namespace tailrace::mpi_test;

namespace {

class Process final : public comm::End {
 public:
  explicit Process(bool shared) : transport_(std::move(*comm::MpiTransport::create(state().comm))) {
    if (shared) shared_.connect(*transport_);
  }
  ~Process() override { transport_->free(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  comm::Transport& transport() override {
    return shared_.is_connected() ? static_cast<comm::Transport&>(shared_) : *transport_;
  }
  [[nodiscard]] int size() const override { return mpi_test::size(); }
  void meet() override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(state().comm, &request);
    for (int complete = 0; complete == 0; transport().idle(0, "the others")) {
      MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    }
  }
  void check(bool holds, const std::string& what) override {
    if (!holds) fail(__FILE__, __LINE__, what);
  }

 private:
  std::unique_ptr<comm::MpiTransport> transport_;
  comm::SharedTransport shared_;
};

/// Each case of the suite is a case here, over MPI alone and over a shared transport.
const bool registered = [] {
  for (const comm::TransportCase& one : comm::transport_cases()) {
    for (const bool shared : {false, true}) {
      cases().push_back({one.name + (shared ? ".shared" : ".mpi"), [&one, shared] {
                           Process process(shared);
                           one.run(process);
                         }});
    }
  }
  for (const comm::TransportCase& one : comm::large_transport_cases()) {
    if (std::getenv("TEST_ALL") == nullptr) continue;
    cases().push_back({one.name, [&one] {
                         Process process(false);
                         one.run(process);
                       }});
  }
  return true;
}();

}  // namespace

MPI_TEST_MAIN
