// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/available_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "ground/storage/scratch.hpp"

namespace tailrace::node {
namespace {

constexpr Bytes no_limit = std::numeric_limits<Bytes>::max();

/// A tree of control groups as the system shows it.
class Groups {
 public:
  void put(const std::string& group, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(place_ / group);
    std::ofstream(place_ / (group + "/" + file)) << text;
  }
  void limit(const std::string& group, const std::string& most, Bytes used) {
    put(group, "memory.max", most + "\n");
    put(group, "memory.current", std::to_string(used) + "\n");
  }
  void limit_1(const std::string& group, Bytes most, Bytes used) {
    put("memory" + group, "memory.limit_in_bytes", std::to_string(most) + "\n");
    put("memory" + group, "memory.usage_in_bytes", std::to_string(used) + "\n");
  }
  [[nodiscard]] Bytes left(const std::string& own) const {
    std::istringstream text(own);
    return left_by_cgroups(text, place_.path());
  }

 private:
  storage::ScratchDirectory place_;
};

TEST(cgroups, the_limit_of_every_group_above_holds) {
  const std::string task = "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0";
  for (std::size_t end = task.size(); end != std::string::npos; end = task.rfind('/', end - 1)) {
    if (end == 0) break;
    Groups groups;
    groups.limit(task, "max", 10);
    groups.limit(task.substr(0, end), "1000", 300);
    EXPECT_EQ(groups.left("0::" + task + "\n"), 700) << task.substr(0, end);
  }
}

TEST(cgroups, the_least_of_several_limits_counts) {
  Groups groups;
  groups.limit("/job_7/step_0/task_0", "900", 100);
  groups.limit("/job_7/step_0", "1000", 400);
  groups.limit("/job_7", "2000", 500);
  EXPECT_EQ(groups.left("0::/job_7/step_0/task_0\n"), 600);
  groups.limit("/job_7", "800", 900);
  EXPECT_EQ(groups.left("0::/job_7/step_0/task_0\n"), 0) << "more is used than the limit allows";
}

TEST(cgroups, so_it_is_with_version_1) {
  Groups groups;
  groups.limit_1("/slurm/uid_0/job_7", 1000, 250);
  groups.limit_1("/slurm/uid_0/job_7/step_0/task_0", 9223372036854771712, 10);
  EXPECT_EQ(groups.left("4:cpu,cpuacct:/other\n3:memory:/slurm/uid_0/job_7/step_0/task_0\n0::/other\n"), 750);
}

TEST(cgroups, without_a_limit_in_version_1_more_pages_of_files_than_memory_in_use_take_nothing_away) {
  Groups groups;
  groups.limit_1("/job", 9223372036854771712, 10'000);
  groups.put("memory/job", "memory.stat", "total_inactive_file 50000\ntotal_active_file 1\n");
  EXPECT_EQ(groups.left("3:memory:/job\n"), 9223372036854771712);
}

TEST(cgroups, a_container_that_sees_only_its_own_group_has_its_limit_at_the_root) {
  Groups groups;
  groups.limit("", "1000", 100);
  EXPECT_EQ(groups.left("0::/docker/0123\n"), 900);
  EXPECT_EQ(groups.left("0::/../../elsewhere\n"), 900);
}

TEST(cgroups, pages_of_files_count_as_free) {
  Groups groups;
  groups.limit("/job", "1000", 950);
  groups.put("/job", "memory.stat", "anon 200\nfile 700\nshmem 50\ninactive_file 500\nactive_file 150\n");
  EXPECT_EQ(groups.left("0::/job\n"), 700);
}

TEST(cgroups, without_a_limit_or_without_groups_there_is_none) {
  Groups groups;
  EXPECT_EQ(groups.left(""), no_limit);
  groups.limit("/job", "max", 10);
  EXPECT_EQ(groups.left("0::/job\n"), no_limit);
  EXPECT_EQ(groups.left("nonsense\n"), no_limit);
}

TEST(cgroups, this_machine_has_memory_to_give) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_LT(available_memory(), no_limit);
}

}  // namespace
}  // namespace tailrace::node
