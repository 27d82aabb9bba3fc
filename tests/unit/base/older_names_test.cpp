// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The older systems' names of settings mean the same as ours.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/settings.hpp"
#include "compat/environment.hpp"

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

TEST(older_names, with_bad_values_are_errors) {
  const Result<Settings> settings = Settings::read("", compat::translated({"DVMH_IO_THREAD_COUNT=many"}));
  EXPECT_NE(settings.status().text().find("TAILRACE_IO_THREADS"), std::string::npos);
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
