// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "ground/storage/scratch.hpp"

namespace tailrace::storage {
namespace {

/// A child process that takes the lock, says if it got it, and then waits to be killed.
class Holder {
 public:
  enum class Has { all, first_share, share };
  explicit Holder(const std::string& path, Has has = Has::all) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto target = posix_target();
      auto lock = has == Has::share ? target->share_lock(path, nullptr) : target->lock(path);
      if (has == Has::first_share && lock.is_ok()) lock = target->share_lock(path, *lock);
      const char got = lock.is_ok() ? 'y' : 'n';
      (void)!::write(ends[1], &got, 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    (void)!::read(ends[0], &got_, 1);
    ::close(ends[0]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] bool got() const { return got_ == 'y'; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  char got_ = '?';
};

TEST(posix_lock, another_process_is_refused_and_told_who_holds_it) {
  const ScratchDirectory scratch;
  const Holder holder(scratch / "lock");
  ASSERT_TRUE(holder.got());
  const auto refused = posix_target()->lock(scratch / "lock");
  ASSERT_FALSE(refused.is_ok());
  EXPECT_EQ(refused.status().code(), Code::state);
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  const std::string expected = "host " + std::string(host) + " pid " + std::to_string(holder.pid());
  EXPECT_NE(refused.status().text().find(expected), std::string::npos) << refused.status().text();
}

TEST(posix_lock, vanishes_with_a_killed_process) {
  const ScratchDirectory scratch;
  Holder holder(scratch / "lock");
  ASSERT_TRUE(holder.got());
  holder.kill();
  EXPECT_TRUE(*posix_target()->exists(scratch / "lock")) << "the stale file is what this test is about";
  const auto taken = posix_target()->lock(scratch / "lock");
  EXPECT_TRUE(taken.is_ok()) << taken.status().text();
  const Holder second(scratch / "lock");
  EXPECT_FALSE(second.got());
}

/// The first process of a program may be killed before the others.
TEST(posix_lock, is_held_until_the_last_process_with_a_share_is_gone) {
  const ScratchDirectory scratch;
  Holder first(scratch / "lock", Holder::Has::first_share);
  ASSERT_TRUE(first.got());
  Holder second(scratch / "lock", Holder::Has::share);
  ASSERT_TRUE(second.got());
  first.kill();
  EXPECT_EQ(posix_target()->lock(scratch / "lock").status().code(), Code::state);
  second.kill();
  EXPECT_TRUE(posix_target()->lock(scratch / "lock").is_ok());
  EXPECT_FALSE(*posix_target()->exists(scratch / "lock"));
}

TEST(posix_lock, a_child_that_inherits_it_and_ends_does_not_release_it) {
  const ScratchDirectory scratch;
  auto lock = posix_target()->lock(scratch / "lock");
  ASSERT_TRUE(lock.is_ok());
  const pid_t child = ::fork();
  if (child == 0) {
    lock = Status(Code::state, "the child's copy dies");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(*posix_target()->exists(scratch / "lock"));
  EXPECT_FALSE(posix_target()->lock(scratch / "lock").is_ok());
}

TEST(posix_lock, of_many_processes_at_once_one_holds_it) {
  const ScratchDirectory scratch;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Holder>> holders;
    for (int i = 0; i < 5; ++i) holders.push_back(std::make_unique<Holder>(scratch / "lock"));
    int got = 0;
    for (const auto& holder : holders) got += holder->got() ? 1 : 0;
    EXPECT_EQ(got, 1);
  }
}

/// Processes take and release the lock as fast as they can, each time checking that they are alone.
TEST(posix_lock, is_exclusive_while_others_take_and_release_it) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "lock", inside = scratch / "inside";
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    const auto target = posix_target();
    int taken = 0;
    for (int attempt = 0; attempt < 200'000 && taken < 200; ++attempt) {
      const auto lock = target->lock(path);
      if (!lock.is_ok()) {
        if (lock.status().code() != Code::state) ::_exit(2);
        continue;
      }
      const int alone = ::open(inside.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
      if (alone < 0) ::_exit(1);
      ::close(alone);
      ::unlink(inside.c_str());
      ++taken;
    }
    ::_exit(taken > 0 ? 0 : 3);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

/// What a user hears who may not write to what lies in a directory, and to the directory as `permissions`
/// say.
std::string told_to_another(const std::string& directory, const std::string& path, unsigned permissions) {
  std::filesystem::permissions(path, std::filesystem::perms{0644});
  std::filesystem::permissions(directory, std::filesystem::perms{permissions});
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) ::_exit(1);
    const Status status = posix_target()->lock(path).status();
    const std::string text = std::to_string(static_cast<int>(status.code())) + " " + status.text();
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string told(1000, ' ');
  const ssize_t got = ::read(ends[0], told.data(), told.size());
  told.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  std::filesystem::permissions(directory, std::filesystem::perms{0755});
  return told;
}

TEST(posix_lock, who_may_only_read_there_is_told_who_holds_it) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, which can become another user";
  const ScratchDirectory scratch;
  Holder holder(scratch / "lock");
  ASSERT_TRUE(holder.got());
  const std::string held = told_to_another(scratch.path(), scratch / "lock", 0555);
  EXPECT_TRUE(held.starts_with(std::to_string(static_cast<int>(Code::state)) + " ")) << held;
  EXPECT_NE(held.find(" pid " + std::to_string(holder.pid())), std::string::npos) << held;
  holder.kill();
  const std::string left = told_to_another(scratch.path(), scratch / "lock", 0555);
  EXPECT_NE(left.find("Permission denied"), std::string::npos) << left;
  const std::string taken = told_to_another(scratch.path(), scratch / "lock", 0777);
  EXPECT_TRUE(taken.starts_with("0 ")) << taken;
  EXPECT_TRUE(posix_target()->lock(scratch / "lock").is_ok());
}

TEST(posix_lock, a_holder_that_has_not_signed_yet_is_still_refused) {
  const ScratchDirectory scratch;
  const int descriptor = ::open((scratch / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  const auto refused = posix_target()->lock(scratch / "lock");
  EXPECT_EQ(refused.status().code(), Code::state);
  EXPECT_NE(refused.status().text().find("just started"), std::string::npos) << refused.status().text();
  ::close(descriptor);
}

TEST(posix_lock, a_stale_file_is_signed_anew) {
  const ScratchDirectory scratch;
  std::ofstream(scratch / "lock") << "tailrace lock: host elsewhere with a very long name pid 123456789\n";
  const auto lock = posix_target()->lock(scratch / "lock");
  ASSERT_TRUE(lock.is_ok()) << lock.status().text();
  const std::string text = contents_of(*posix_target(), scratch / "lock");
  EXPECT_EQ(text.find("elsewhere"), std::string::npos) << text;
  EXPECT_NE(text.find("pid " + std::to_string(::getpid()) + "\n"), std::string::npos) << text;
}

/// Returns what a loss of power may leave of a lock file: its size without its bytes, or without some of
/// them.
std::vector<std::string> torn_lock_files() {
  const std::string whole = "tailrace lock: host elsewhere pid 123456789\n";
  return {"",
          std::string(33, '\0'),
          std::string(512, '\0'),
          "t",
          "tailrace lo",
          "tailrace lo" + std::string(40, '\0'),
          "tailrace lock: ",
          "tailrace lock: ho" + std::string(27, '\0'),
          whole + std::string(9, '\0')};
}

TEST(posix_lock, a_file_that_a_loss_of_power_has_torn_is_signed_anew) {
  for (const std::string& torn : torn_lock_files()) {
    const ScratchDirectory scratch;
    std::ofstream(scratch / "lock") << torn;
    const auto lock = posix_target()->lock(scratch / "lock");
    ASSERT_TRUE(lock.is_ok()) << testing::PrintToString(torn) << ": " << lock.status().text();
    const std::string text = contents_of(*posix_target(), scratch / "lock");
    EXPECT_TRUE(text.starts_with("tailrace lock: host ")) << text;
    EXPECT_TRUE(text.ends_with(" pid " + std::to_string(::getpid()) + "\n")) << text;
  }
}

TEST(posix_lock, a_holder_of_a_torn_file_is_refused_without_its_name) {
  const ScratchDirectory scratch;
  std::ofstream(scratch / "lock") << "tailrace lo" << std::string(20, '\0');
  const int descriptor = ::open((scratch / "lock").c_str(), O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  const auto refused = posix_target()->lock(scratch / "lock");
  EXPECT_EQ(refused.status().code(), Code::state);
  EXPECT_NE(refused.status().text().find("just started"), std::string::npos) << refused.status().text();
  ::close(descriptor);
}

TEST(posix_lock, what_no_lock_file_can_have_become_is_left_untouched) {
  for (const std::string& other :
       {std::string("tailrace log: of a run"), "tail" + std::string(3, '\0') + "x",
        std::string(33, '\0') + "data", std::string(4096, '\0'), std::string(" ")}) {
    const ScratchDirectory scratch;
    std::ofstream(scratch / "lock") << other;
    const auto refused = posix_target()->lock(scratch / "lock");
    EXPECT_EQ(refused.status().code(), Code::argument) << testing::PrintToString(other);
    EXPECT_EQ(contents_of(*posix_target(), scratch / "lock"), other);
  }
}

/// Returns the number with which a child process ends `body`, or -1 if it dies otherwise.
template <typename Body>
int in_a_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum : int { as_expected, refused, not_exclusive, has_a_name, left_behind, not_possible };

/// The lock works even if the name of its holder does not fit into the file.
int lock_without_a_name(const std::string& path) {
  auto lock = posix_target()->lock(path);
  if (!lock.is_ok()) return refused;
  if (posix_target()->lock(path).status().code() != Code::state) return not_exclusive;
  if (std::filesystem::file_size(path) != 0) return has_a_name;
  *lock = nullptr;
  return std::filesystem::exists(path) ? left_behind : as_expected;
}

/// Half a name must not be taken for a whole one.
/// Everybody can know the name of a lock file.
TEST(posix_lock, a_link_is_not_followed) {
  const ScratchDirectory scratch;
  const auto target = posix_target();
  ASSERT_TRUE(put_file(*target, scratch / "empty", "").is_ok());
  for (const std::string& behind : {scratch / "empty", scratch / "none"}) {
    std::filesystem::create_symlink(behind, scratch / "lock");
    for (const Status& status :
         {target->lock(scratch / "lock").status(), target->share_lock(scratch / "lock", nullptr).status()}) {
      EXPECT_EQ(status.error_number(), ELOOP) << status.text();
      EXPECT_NE(status.text().find("it is a link"), std::string::npos) << status.text();
    }
    std::filesystem::remove(scratch / "lock");
  }
  EXPECT_EQ(contents_of(*target, scratch / "empty"), "");
  EXPECT_FALSE(std::filesystem::exists(scratch / "none"));
}

TEST(posix_lock, is_had_where_only_the_beginning_of_the_name_can_be_written) {
  const ScratchDirectory scratch;
  const int outcome = in_a_child([&]() -> int {
    const rlimit few_bytes{20, 20};
    if (::setrlimit(RLIMIT_FSIZE, &few_bytes) != 0) return not_possible;
    return lock_without_a_name(scratch / "lock");
  });
  EXPECT_EQ(outcome, as_expected);
}

/// Returns true if this process, which gets a mount namespace of its own, has a file system of one page
/// there.
bool mount_one_page(const std::string& path, const char* options) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", path.c_str(), "tmpfs", 0, options) == 0;
}

TEST(posix_lock, is_had_on_a_full_disk) {
  const ScratchDirectory scratch;
  const int outcome = in_a_child([&]() -> int {
    if (!mount_one_page(scratch.path(), "size=4096")) return not_possible;
    if (!(std::ofstream(scratch / "all") << std::string(4096, 'x') << std::flush)) return not_possible;
    return lock_without_a_name(scratch / "lock");
  });
  if (outcome == not_possible) GTEST_SKIP() << "a small file system needs mount namespaces";
  EXPECT_EQ(outcome, as_expected);
}

TEST(posix_lock, tells_that_there_is_no_room_for_its_file) {
  const ScratchDirectory scratch;
  const int outcome = in_a_child([&]() -> int {
    if (!mount_one_page(scratch.path(), "size=4096,nr_inodes=1")) return not_possible;  // that of the root
    const auto lock = posix_target()->lock(scratch / "lock");
    return lock.status().code() == Code::space ? as_expected : refused;
  });
  if (outcome == not_possible) GTEST_SKIP() << "a small file system needs mount namespaces";
  EXPECT_EQ(outcome, as_expected);
}

}  // namespace
}  // namespace tailrace::storage
