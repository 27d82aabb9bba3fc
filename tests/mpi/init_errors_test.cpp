// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A tr_init that fails on one rank fails on all, with the same text, and the next one is as good as the
// first.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>

#include "files/fixture.hpp"
#include "support/captured_stderr.hpp"
#include "support/variable.hpp"

using namespace tailrace::files_test;
using tailrace::Variable;

namespace {

/// Expects tr_init with these options on this rank to fail on all.
void fails(const std::string& mine, const std::string& what) {
  MPI_Comm compute = MPI_COMM_SELF;
  const CapturedStderr captured;  // warnings
  const int code = tr_init(state().comm, &compute, mine.c_str());
  CHECK(code != TR_OK);
  CHECK(compute == MPI_COMM_NULL);
  CHECK(same_on_all_ranks(std::to_string(code) + tr_error()));
  if (!CHECK(mentions(tr_error(), what))) std::fprintf(stderr, "  %s: %s\n", what.c_str(), tr_error());
  CHECK_EQ(tr_finalize(), TR_ERR_STATE);
}

/// Writes and reads an array in a file between ranks.
void array_works(const std::string& path) {
  const tr_index all = tr_index{100} * size();
  tr_layout* layout = nullptr;
  CHECK_EQ(tr_layout_block(1, &all, nullptr, &layout), TR_OK);
  std::vector<double> values(100, rank()), read(100);
  tr_file* const file = tr_fopen(path.c_str(), "w+ps");
  if (!CHECK(file != nullptr)) return;
  CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), all);
  tr_rewind(file);
  CHECK_EQ(tr_fread_array(read.data(), TR_F64, layout, file), all);
  CHECK_EQ(tr_fclose(file), 0);
  CHECK(read == values);
  tr_layout_free(&layout);
}

/// Runs a session that writes and reads files, and saves a checkpoint.
void works(const std::string& servers, const std::string& directory) {
  const Session session("parallel_threshold=0 " + servers);
  if (session.compute() == MPI_COMM_NULL) return;
  tr_file* const file = tr_fopen((directory + "/text").c_str(), "w+");
  if (!CHECK(file != nullptr)) return;
  CHECK_EQ(tr_fputs("it works", file) >= 0, true);
  CHECK_EQ(tr_fclose(file), 0);
  CHECK(contents(directory + "/text") == "it works");
  if (servers == "servers=0") array_works(directory + "/array");
  tr_checkpoint* cp = nullptr;
  double value = 7;
  CHECK_EQ(tr_checkpoint_create((directory + "/run").c_str(), "", &cp), TR_OK);
  CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
  tr_checkpoint_item(cp, "value", &value, TR_F64, nullptr);
  CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
}

/// With and without a server, which is the last rank.
template <typename Body>
void with_and_without_servers(const std::string& name, const Body& body) {
  const std::string directory = fresh_directory(name);
  for (const std::string servers : {"servers=0", "servers=1"}) {
    body(servers, directory);
    works(servers, directory);
  }
  remove_directory(directory);
}

}  // namespace

MPI_TEST(init_errors, a_bad_option_of_one_rank) {
  with_and_without_servers("init-option", [](const std::string& servers, const std::string& directory) {
    for (const int victim : {0, size() - 1}) {
      for (const char* bad : {"logg=info", "staging=0", "timeout=soon"}) {
        fails(servers + (rank() == victim ? std::string(" ") + bad : std::string()),
              std::string(bad).substr(0, 4));
      }
      works(servers, directory);
    }
  });
}

/// Ranks share memory with nobody else's processes, and nobody waits for a rank that is another user.
MPI_TEST(init_errors, ranks_of_two_users) {
  if (::geteuid() != 0) return skip("only root has several users");
  with_and_without_servers("init-users", [](const std::string& servers, const std::string&) {
    for (const int victim : {0, size() - 1}) {
      MPI_Barrier(state().comm);
      const double begin = MPI_Wtime();
      if (rank() == victim) CHECK_EQ(::seteuid(65534), 0);
      fails(servers, victim == 0 ? "run as users 65534 and 0" : "run as users 0 and 65534");
      if (rank() == victim) CHECK_EQ(::seteuid(0), 0);
      ::prctl(PR_SET_DUMPABLE, 1);  // MPI may read from its memory
      CHECK(MPI_Wtime() - begin < 20);
    }
  });
}

MPI_TEST(init_errors, a_bad_variable_of_one_rank) {
  with_and_without_servers("init-variable", [](const std::string& servers, const std::string&) {
    for (const int victim : {0, size() - 1}) {
      const Variable mine(rank() == victim ? "TAILRACE_IO_THREADS" : "ANOTHER", "many");
      fails(servers, "TAILRACE_IO_THREADS");
    }
  });
}

// The error is known once the lines are open: the session that has begun ends on every rank.
MPI_TEST(init_errors, bad_storage_of_one_rank) {
  with_and_without_servers("init-storage", [](const std::string& servers, const std::string& directory) {
    for (int victim = 0; victim < size(); ++victim) {
      for (const char* bad : {"throttle=fast", "fault=\"rank=x nth=1\"", "fault=\"nth=0\""})
        fails(servers + (rank() == victim ? std::string(" ") + bad : std::string()),
              std::string(bad).substr(0, 5));
      works(servers, directory);
    }
  });
}

// The first server looks at the end if it can write the report: rank 0 without servers, and the last rank
// with one.
MPI_TEST(init_errors, a_report_that_its_rank_cannot_write) {
  with_and_without_servers("init-report", [](const std::string& servers, const std::string&) {
    const int victim = servers == "servers=1" ? size() - 1 : 0;
    for (const std::string what : {"report", "trace"}) {
      const std::string bad = " " + what + "=no/such/directory/file.json";
      fails(servers + (rank() == victim ? bad : std::string()),
            what == "report" ? "TAILRACE_REPORT" : "TAILRACE_TRACE");
    }
  });
}

MPI_TEST(init_errors, servers_that_leave_nobody_and_staging_that_nobody_has) {
  with_and_without_servers("init-all", [](const std::string& servers, const std::string&) {
    fails("servers=" + std::to_string(size()), "start more ranks or ask for other servers");
    fails(servers + " staging=4000000GiB", "TAILRACE_STAGING");
  });
}

MPI_TEST_MAIN
