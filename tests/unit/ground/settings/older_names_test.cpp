// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The older systems' names of settings mean the same as ours.
#include <gtest/gtest.h>

#include <cstdlib>

#include "ground/compat/environment.hpp"
#include "ground/settings/settings.hpp"

namespace tailrace {
namespace {

Settings read(std::vector<std::string> environment) {
  const Result<Settings> settings = Settings::read("", compat::translated(std::move(environment)));
  EXPECT_TRUE(settings.is_ok()) << settings.status().text();
  return settings.is_ok() ? *settings : Settings();
}

TEST(older_names, of_dvm_are_understood) {
  const Settings settings =
      read({"DVMH_PARALLEL_IO_THRES=4096", "DVMH_IO_BUF_SIZE=1048576", "DVMH_IO_THREAD_COUNT=2"});
  EXPECT_EQ(settings.parallel_threshold, 4096);
  EXPECT_EQ(settings.io_buffer, 1048576);
  EXPECT_EQ(settings.io_threads, 2);
}

TEST(older_names, give_way_to_ours) {
  const Settings settings = read({"DVMH_IO_THREAD_COUNT=2", "TAILRACE_IO_THREADS=3"});
  EXPECT_EQ(settings.io_threads, 3);
}

TEST(older_names, with_bad_values_are_errors_that_name_what_was_given) {
  const std::vector<std::string> given{"DVMH_IO_THREAD_COUNT=-1"};
  const Result<Settings> settings = Settings::read("", compat::translated(given));
  EXPECT_EQ(compat::as_given(settings.status(), given).text(),
            "DVMH_IO_THREAD_COUNT=-1: -1 is out of range; it may be 0 to 1024 (it stands for "
            "TAILRACE_IO_THREADS)");
  const std::vector<std::string> ours{"TAILRACE_IO_THREADS=-1", "DVMH_IO_THREAD_COUNT=2"};
  const Status own = Settings::read("", compat::translated(ours)).status();
  EXPECT_EQ(compat::as_given(own, ours).text(), own.text());
}

TEST(environment, tells_variables_that_are_nearly_ours) {
  const std::vector<std::string> lines =
      compat::near_misses({"PATH=/bin", "TAILRCE_SERVERS=1", "tailrace_log=info", "TAILRACEX=1",
                           "TAILRACE_SERVERS=1", "TAILRACESTAGING=1GiB", "TRACE_LOG=1"});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0],
            "the environment variable TAILRCE_SERVERS means nothing to Tailrace; did you mean "
            "TAILRACE_SERVERS?");
  EXPECT_NE(lines[1].find("TAILRACE_LOG?"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find("TAILRACE_STAGING?"), std::string::npos) << lines[2];
}

TEST(environment, tells_of_the_launcher_of_another_mpi) {
  EXPECT_EQ(compat::other_launcher({"PATH=/bin", "PMI_SIZE=1", "SLURM_NTASKS=8", "PMI_RANK=0"}), "");
  EXPECT_EQ(compat::other_launcher({"OMPI_COMM_WORLD_SIZE=x"}), "");
  const std::string text = compat::other_launcher({"PMI_RANK=0", "PMI_SIZE=3"});
  EXPECT_NE(text.find("PMI_SIZE=3: another MPI's launcher"), std::string::npos) << text;
  EXPECT_NE(text.find("3 jobs of one rank each"), std::string::npos) << text;
}

TEST(older_names, the_process_environment_is_read) {
  ASSERT_EQ(::setenv("TAILRACE_THREADS", "5", 1), 0);
  ASSERT_EQ(::setenv("DVMH_IO_THREAD_COUNT", "7", 1), 0);
  const Result<Settings> settings = Settings::read("threads=1", compat::environment());
  ::unsetenv("TAILRACE_THREADS");
  ::unsetenv("DVMH_IO_THREAD_COUNT");
  ASSERT_TRUE(settings.is_ok()) << settings.status().text();
  EXPECT_EQ(settings->threads, 5);
  EXPECT_EQ(settings->io_threads, 7);
}

}  // namespace
}  // namespace tailrace
