// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// One rank's n-th storage call fails, for n = 1, 2, ... until none does. Every rank is told the same, the
// file holds exactly the whole steps that its index tells, and the next session is as good as new.
#include <algorithm>

#include "fault/forecast.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::mpi_test;
using namespace tailrace::scene;
using tailrace::fault::Forecast;

namespace {

const std::vector<std::int64_t> leads = {0, 3600, 7200};

struct Outcome {
  bool struck = false;
  int verdicts = 0;
  int code = TR_OK;
  std::string text;
  std::vector<std::int64_t> committed;
  bool finished = false;
};

/// Writes three steps with this fault plan. Collective over the world. All ranks are told whether it struck.
Outcome forecast_with(int servers, const std::string& name, const std::string& fault) {
  Outcome outcome;
  const std::int64_t failures = state().failures;
  CapturedStderr captured;
  tailrace::fault::session(
      servers, "fault=\"" + fault + "\"", [&](MPI_Comm compute, const std::string& label) {
        Forecast run(compute, label + "-" + name);
        for (const std::int64_t lead : leads) run.good_step(lead);
        run.wait(TR_DURABLE);
        run.close();
        CHECK(run.agreed());
        outcome.verdicts = run.verdicts();
        outcome.code = run.first_code();
        outcome.text = run.first_text();
        outcome.committed = run.steps_in_index();
        outcome.finished = run.is_finished();
        if (fault.find("for=good") == std::string::npos) CHECK(run.holds_steps(outcome.committed));
        // Each step is either told as failed or is there, never neither.
        for (const std::int64_t lead : leads) {
          const bool there = std::count(outcome.committed.begin(), outcome.committed.end(), lead) > 0;
          CHECK(there || outcome.verdicts > 0);
        }
      });
  outcome.struck = any_rank(captured.text().find("it struck\n") != std::string::npos);
  if (any_rank(state().failures > failures) && rank() == 0)
    std::fprintf(stderr, "  servers=%d fault=%s: %s\n", servers, fault.c_str(), outcome.text.c_str());
  return outcome;
}

/// Tries all n for one victim, until none strikes.
void every_call(int servers, int victim, const std::string& kind, int code) {
  for (int n = 1;; ++n) {
    const std::string fault = "rank=" + std::to_string(victim) + " nth=" + std::to_string(n) + " " + kind;
    const Outcome outcome = forecast_with(servers, "v" + std::to_string(victim), fault);
    if (!outcome.struck) {
      CHECK_EQ(outcome.verdicts, 0);
      CHECK(n > 1 || victim != 0);  // the root's calls are counted in any case
      return;
    }
    if (!CHECK(n < 200)) return;
    const bool computes = rank() < 3;
    const bool told = outcome.verdicts > 0 && outcome.code == code;
    // A failure to finish the file is mended when it is tried again.
    const bool healed = outcome.verdicts == 0 && outcome.committed == leads && outcome.finished &&
                        kind.find("for=good") == std::string::npos;
    const bool right = !computes || told || healed;
    if (!CHECK(right) && rank() == 0) {
      std::fprintf(stderr, "  servers=%d fault=%s: %d verdicts, code %d, \"%s\", %zu steps\n", servers,
                   fault.c_str(), outcome.verdicts, outcome.code, outcome.text.c_str(),
                   outcome.committed.size());
    }
  }
}

}  // namespace

MPI_TEST(fault, any_call_of_any_compute_rank_without_servers) {
  for (int victim = 0; victim < 3; ++victim) every_call(0, victim, "", TR_ERR_IO);
}

MPI_TEST(fault, any_call_of_any_server) {
  for (int victim = 3; victim < 5; ++victim) every_call(2, victim, "", TR_ERR_IO);
}

MPI_TEST(fault, a_full_disk_from_any_call_on) {
  every_call(0, 0, "fault=enospc for=good", TR_ERR_SPACE);
  every_call(2, 3, "fault=edquot for=good", TR_ERR_SPACE);
}

MPI_TEST(fault, interrupted_and_short_calls_are_nobodys_business) {
  for (const char* kind : {"nth=1 fault=eintr for=good", "nth=1 fault=short for=good"}) {
    for (const int servers : {0, 2}) {
      const Outcome outcome = forecast_with(servers, "hidden", kind);
      CHECK(outcome.struck);
      CHECK_EQ(outcome.verdicts, 0);
      CHECK(rank() >= 3 || outcome.committed == leads);
    }
  }
}

MPI_TEST(fault, on_a_rank_that_touches_no_storage_changes_nothing) {
  const Outcome outcome = forecast_with(2, "compute", "rank=1 nth=1 for=good");
  CHECK(!outcome.struck);
  CHECK_EQ(outcome.verdicts, 0);
}

MPI_TEST_MAIN
