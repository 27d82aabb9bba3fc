// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/posix.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <limits>

#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/gather.hpp"
#include "ground/storage/scratch.hpp"
#include "ground/storage/temporary.hpp"

namespace tailrace::storage {
namespace {

/// Makes the real system calls, some of which a fault clock strikes. FaultyTarget does the same above a
/// target; here it is done below it, so that the loops in between are tested.
class FaultySystem final : public System {
 public:
  explicit FaultySystem(FaultPlan plan) : clock(plan) {}
  FaultClock clock;
  CallSet interrupted_for_good = 0;

  int open(const char* path, int flags, mode_t mode) override {
    return play<int>(Call::open, [&] { return System::open(path, flags, mode); });
  }
  ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t offset) override {
    if (interrupted_for_good & set_of(Call::write)) return -EINTR;
    if (!clock.strikes(Call::write)) return System::pwritev(descriptor, parts, count, offset);
    if (clock.plan().fault != Fault::short_write) return -error_number_of(clock.plan().fault);
    // It writes only half of the first part: the loop must go on inside of it.
    const iovec half{parts[0].iov_base, (parts[0].iov_len + 1) / 2};
    return System::pwritev(descriptor, &half, 1, offset);
  }
  ssize_t pread(int descriptor, void* data, std::size_t size, off_t offset) override {
    const bool few = clock.plan().fault == Fault::short_write;
    return play<ssize_t>(
        Call::read, [&] { return System::pread(descriptor, data, few ? (size + 1) / 2 : size, offset); });
  }
  int fsync(int descriptor) override {
    return play<int>(Call::sync, [&] { return System::fsync(descriptor); });
  }
  int ftruncate(int descriptor, off_t size) override {
    return play<int>(Call::truncate, [&] { return System::ftruncate(descriptor, size); });
  }
  int close(int descriptor) override {
    const int closed = System::close(descriptor);
    return closed < 0 ? closed : play<int>(Call::close, [] { return 0; });
  }
  int rename(const char* from, const char* to) override {
    return play<int>(Call::rename, [&] { return System::rename(from, to); });
  }
  int unlink(const char* path) override {
    return play<int>(Call::remove, [&] { return System::unlink(path); });
  }
  int mkdir(const char* path, mode_t mode) override {
    return play<int>(Call::make_directories, [&] { return System::mkdir(path, mode); });
  }

 private:
  template <typename T, typename Real>
  T play(Call call, Real&& real) {
    if (interrupted_for_good & set_of(call)) return -EINTR;
    if (clock.strikes(call)) return -error_number_of(clock.plan().fault);
    return real();
  }
};

/// Takes every write without moving a byte, and checks that the calls tile the file and stay small enough.
class CountingSystem final : public System {
 public:
  ssize_t pwritev(int, const iovec* parts, int count, off_t offset) override {
    Bytes total = 0;
    for (int i = 0; i < count; ++i) total += static_cast<Bytes>(parts[i].iov_len);
    EXPECT_LT(total, Bytes{1} << 31);
    EXPECT_LE(count, IOV_MAX);
    EXPECT_EQ(offset, end);
    end = offset + total;
    ++calls;
    return total;
  }
  Bytes end = 0;
  int calls = 0;
};

/// Allocates as the system does, until a call fails with an error.
class FullSystem final : public System {
 public:
  FullSystem(int calls, int error) : calls_(calls), error_(error) {}
  int fallocate(int descriptor, int mode, off_t offset, off_t size) override {
    return calls_-- > 0 ? System::fallocate(descriptor, mode, offset, size) : -error_;
  }

 private:
  int calls_;
  const int error_;
};

/// Address space of any size that takes no memory as long as it is only read or only named.
class Emptiness {
 public:
  explicit Emptiness(Bytes size) : size_(static_cast<std::size_t>(size)) {
    memory_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Emptiness() { ::munmap(memory_, size_); }
  Emptiness(const Emptiness&) = delete;
  Emptiness& operator=(const Emptiness&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(memory_), memory_ == MAP_FAILED ? 0 : size_};
  }

 private:
  std::size_t size_;
  void* memory_;
};

/// Makes every kind of call: directories; a file written in parts, cut, synced, renamed and read back;
/// another removed.
Status exercise(Target& target, const std::string& root) {
  TR_TRY(target.make_directories(root + "/d/e"));
  auto file = target.open(root + "/d/e/tmp", OpenMode::create);
  if (!file.is_ok()) return file.status();
  const ByteVector one = bytes_of("abcdefgh"), two = bytes_of("ij"), three = bytes_of("klmnopqrstuvwxyz0123");
  const std::span<const std::byte> parts[] = {one, two, three};
  TR_TRY((*file)->write_gathered(parts, 0));
  TR_TRY((*file)->write(bytes_of("A"), 0));
  TR_TRY((*file)->truncate(28));
  TR_TRY((*file)->sync());
  TR_TRY((*file)->close());
  TR_TRY(target.rename(root + "/d/e/tmp", root + "/d/e/final"));
  TR_TRY(target.sync_directory_of(root + "/d/e/final"));
  auto other = target.open(root + "/d/other", OpenMode::create);
  if (!other.is_ok()) return other.status();
  TR_TRY((*other)->close());
  TR_TRY(target.remove(root + "/d/other"));
  auto again = target.open(root + "/d/e/final", OpenMode::read);
  if (!again.is_ok()) return again.status();
  ByteVector data(100);
  const auto size = (*again)->read(data, 0);
  if (!size.is_ok()) return size.status();
  data.resize(static_cast<std::size_t>(*size));
  TR_TRY((*again)->close());
  const std::string got = text_of(data);
  return got == "Abcdefghijklmnopqrstuvwxyz01" ? Status() : Status(Code::corrupt, "read back: " + got);
}

TEST(posix_reserve, a_failure_gives_back_all_that_was_taken) {
  for (const char* const directory : {"/dev/shm", "/tmp"}) {
    const std::string path = cat(directory, "/tailrace-reserve-", ::getpid());
    PosixTarget target(std::make_shared<FullSystem>(2, ENOSPC));
    const auto file = *target.open(path, OpenMode::anew);
    const auto blocks = [&] {
      struct stat info {};
      return ::stat(path.c_str(), &info) == 0 ? info.st_blocks : -1;
    };
    EXPECT_TRUE(file->write(bytes_of("kept"), 0).is_ok());
    EXPECT_TRUE(file->sync().is_ok());
    const auto before = blocks();
    const Status status =
        file->reserve(std::vector<Range>{{4, 1 << 20}, {3 << 20, 1 << 20}, {5 << 20, 1 << 20}});
    EXPECT_EQ(status.code(), Code::space);
    EXPECT_NE(status.text().find("room for 3145728 bytes of"), std::string::npos) << status.text();
    EXPECT_EQ(blocks(), before) << directory;
    EXPECT_EQ(contents_of(target, path), "kept");
    EXPECT_TRUE(file->close().is_ok());
    EXPECT_TRUE(target.remove(path).is_ok());
  }
}

TEST(posix_reserve, room_that_is_not_used_can_be_given_back) {
  const ScratchDirectory scratch;
  const auto target = posix_target();
  const auto file = *target->open(scratch / "a", OpenMode::create);
  EXPECT_TRUE(file->write(bytes_of("kept"), 0).is_ok());
  EXPECT_TRUE(file->sync().is_ok());
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat((scratch / "a").c_str(), &before), 0);
  EXPECT_TRUE(file->reserve(std::vector<Range>{{4, 8 << 20}}).is_ok());
  file->give_back_room();
  ASSERT_EQ(::stat((scratch / "a").c_str(), &after), 0);
  EXPECT_EQ(after.st_blocks, before.st_blocks);
  EXPECT_EQ(contents_of(*target, scratch / "a"), "kept");
}

TEST(posix_reserve, without_the_call_all_ranges_together_must_fit) {
  const ScratchDirectory scratch;
  PosixTarget target(std::make_shared<FullSystem>(0, EOPNOTSUPP));
  const auto file = *target.open(scratch / "a", OpenMode::create);
  const Bytes most = target.space(scratch.path())->free / 3 * 2;
  EXPECT_TRUE(file->reserve(std::vector<Range>{{0, most}}).is_ok());
  EXPECT_EQ(file->reserve(std::vector<Range>{{0, most}, {most, most}}).code(), Code::space);
}

TEST(posix_loops, hide_an_interruption_of_any_system_call) {
  for (const bool for_good : {false, true}) {
    for (std::int64_t n = 1;; ++n) {
      const ScratchDirectory scratch;
      const auto system =
          std::make_shared<FaultySystem>(FaultPlan{n, Fault::interrupted, all_calls, for_good});
      PosixTarget target(system);
      const Status status = exercise(target, scratch.path());
      EXPECT_TRUE(status.is_ok()) << "call " << n << ": " << status.text();
      if (!system->clock.fired()) break;
      ASSERT_LT(n, 1000);
    }
  }
}

TEST(posix_loops, hide_an_interruption_of_any_system_call_of_a_lock) {
  for (std::int64_t n = 1;; ++n) {
    const ScratchDirectory scratch;
    const auto system = std::make_shared<FaultySystem>(FaultPlan{n, Fault::interrupted, all_calls, true});
    auto lock = PosixTarget(system).lock(scratch / "lock");
    EXPECT_TRUE(lock.is_ok()) << "call " << n << ": " << lock.status().text();
    EXPECT_TRUE(contents_of(*posix_target(), scratch / "lock").ends_with("\n"));
    lock = Status(Code::state, "let go");
    EXPECT_FALSE(std::filesystem::exists(scratch / "lock")) << "call " << n;
    if (!system->clock.fired()) break;
    ASSERT_LT(n, 1000);
  }
}

TEST(posix_directories, that_are_missing_are_told_with_the_way_to_make_them) {
  const ScratchDirectory scratch;
  PosixTarget target(std::make_shared<System>());
  const std::string path = scratch / "none/out";
  const Status opened = target.open(path, OpenMode::create).status();
  EXPECT_EQ(opened.error_number(), ENOENT);
  EXPECT_NE(
      opened.text().find(cat("directory ", scratch / "none", " does not exist: make it with `mkdir -p")),
      std::string::npos)
      << opened.text();
  EXPECT_EQ(target.open(path, OpenMode::read).status().text().find("mkdir"), std::string::npos);
  // Nobody may make directories there, not even root.
  const Status made = target.make_directories("/proc/none/out");
  EXPECT_FALSE(made.is_ok());
  EXPECT_NE(made.text().find("directory /proc/none/out does not exist and cannot be made"), std::string::npos)
      << made.text();
  EXPECT_NE(made.text().find("`mkdir -p /proc/none/out`"), std::string::npos) << made.text();
}

TEST(posix_directories, a_file_with_the_name_of_a_directory_is_told_of) {
  const ScratchDirectory scratch;
  PosixTarget target(std::make_shared<System>());
  const std::string file = scratch / "file";
  ASSERT_TRUE(target.open(file, OpenMode::create).is_ok());
  for (const std::string& below : {file, file + "/dir"}) {
    const Status opened = target.open(below + "/out", OpenMode::create).status();
    EXPECT_EQ(opened.error_number(), ENOTDIR);
    EXPECT_NE(opened.text().find(cat("; ", file, " is not a directory: move it away")), std::string::npos)
        << opened.text();
    const Status made = target.make_directories(below);
    EXPECT_EQ(made.error_number(), ENOTDIR);
    EXPECT_NE(made.text().find(cat("make directory ", file)), std::string::npos) << made.text();
    EXPECT_NE(made.text().find("what has that name is not a directory"), std::string::npos) << made.text();
    for (const Status& status : {opened, made})
      EXPECT_EQ(status.text().find("mkdir -p"), std::string::npos) << status.text();
  }
}

TEST(posix_open, a_pipe_and_a_device_are_no_regular_files_and_nobody_waits_for_them) {
  const ScratchDirectory scratch;
  const std::string pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto target = posix_target();
  for (const std::string& path : {pipe, std::string("/dev/null")})
    EXPECT_EQ(target->open(path, OpenMode::read_regular).status().error_number(), ENOENT) << path;
}

/// Opens a name in each mode that opens what is there.
template <typename Check>
void in_each_mode(Target& target, const std::string& path, const Check& check) {
  for (const OpenMode mode : {OpenMode::read, OpenMode::create, OpenMode::keep, OpenMode::existing,
                              OpenMode::own, OpenMode::own_existing})
    check(target.open(path, mode).status());
}

TEST(posix_open, what_is_no_regular_file_is_refused_by_name_in_every_mode_and_nobody_waits_for_it) {
  const ScratchDirectory scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  ASSERT_TRUE(std::filesystem::create_directory(scratch / "directory"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string socket = scratch / "socket";
  socket.copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
  const int end = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(end, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const std::string_view name : {"posix", "uring"}) {
    const auto target = make_target(name);
    if (!target.is_ok()) continue;  // the kernel does not grant io_uring
    for (const auto& [path, kind] : {std::pair(scratch / "pipe", "a pipe"), std::pair(socket, "a socket"),
                                     std::pair(std::string("/dev/full"), "a device")}) {
      in_each_mode(**target, path, [&, path = path, kind = kind](const Status& status) {
        EXPECT_EQ(status.error_number(), ESPIPE) << status.text();
        EXPECT_NE(status.text().find(cat(path, ": it is ", kind)), std::string::npos) << status.text();
      });
    }
    in_each_mode(**target, scratch / "directory",
                 [](const Status& status) { EXPECT_EQ(status.error_number(), EISDIR) << status.text(); });
  }
  ::close(end);
}

TEST(posix_open, a_link_is_followed_only_under_names_that_users_give) {
  const ScratchDirectory scratch;
  const auto target = posix_target();
  const std::string victim = scratch / "victim", link = scratch / "link";
  for (const OpenMode mode : {OpenMode::create, OpenMode::keep, OpenMode::existing}) {
    ASSERT_TRUE(put_file(*target, victim, "precious").is_ok());
    std::filesystem::create_symlink(victim, link);
    const auto file = target->open(link, mode);
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    EXPECT_TRUE((*file)->write(bytes_of("written "), 0).is_ok());
    EXPECT_EQ(contents_of(*target, victim), "written ");
    std::filesystem::remove(link);
  }
  ASSERT_TRUE(put_file(*target, victim, "precious").is_ok());
  for (const std::string& behind : {victim, scratch / "none"}) {
    std::filesystem::create_symlink(behind, link);
    for (const OpenMode mode : {OpenMode::own, OpenMode::own_existing}) {
      const Status status = target->open(link, mode).status();
      EXPECT_EQ(status.error_number(), ELOOP) << status.text();
      EXPECT_NE(status.text().find(link + ": it is a link"), std::string::npos) << status.text();
    }
    const auto file = target->open(link, OpenMode::anew);
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    EXPECT_FALSE(std::filesystem::is_symlink(link));
    EXPECT_TRUE((*file)->write(bytes_of("new"), 0).is_ok());
    EXPECT_EQ(contents_of(*target, link), "new");
    EXPECT_EQ(contents_of(*target, victim), "precious");
    EXPECT_FALSE(std::filesystem::exists(scratch / "none"));
    std::filesystem::remove(link);
  }
}

/// Somebody puts a link there again and again.
TEST(posix_open, a_new_file_follows_no_link_that_comes_back) {
  class Planting final : public System {
   public:
    explicit Planting(std::string victim) : victim_(std::move(victim)) {}
    int open(const char* path, int flags, mode_t mode) override {
      if (planted++ < times) std::filesystem::create_symlink(victim_, path);
      return System::open(path, flags, mode);
    }
    int planted = 0, times = 3;

   private:
    std::string victim_;
  };
  const ScratchDirectory scratch;
  ASSERT_TRUE(put_file(*posix_target(), scratch / "victim", "precious").is_ok());
  const auto system = std::make_shared<Planting>(scratch / "victim");
  PosixTarget target(system);
  EXPECT_TRUE(target.open(scratch / "a", OpenMode::anew).is_ok());
  system->times = 1000;
  EXPECT_EQ(target.open(scratch / "b", OpenMode::anew).status().error_number(), EEXIST);
  EXPECT_EQ(contents_of(*posix_target(), scratch / "victim"), "precious");
}

/// A pipe takes the file's place between the look at the file and its opening.
TEST(posix_open, a_pipe_that_takes_a_files_place_meanwhile_is_not_waited_for) {
  class Replacing final : public System {
   public:
    int open(const char* path, int flags, mode_t mode) override {
      EXPECT_EQ(::unlink(path), 0);
      EXPECT_EQ(::mkfifo(path, 0600), 0);
      EXPECT_NE(flags & O_NONBLOCK, 0);
      return System::open(path, flags | O_NONBLOCK, mode);
    }
    int close(int descriptor) override {
      ++closed;
      return System::close(descriptor);
    }
    int closed = 0;
  };
  const ScratchDirectory scratch;
  const auto system = std::make_shared<Replacing>();
  PosixTarget target(system);
  ASSERT_TRUE(put_file(*posix_target(), scratch / "file", "text").is_ok());
  EXPECT_EQ(target.open(scratch / "file", OpenMode::read_regular).status().error_number(), ENOENT);
  EXPECT_EQ(system->closed, 1);
}

/// Another program that shares the file has to be told before it is opened, as Samba does; fcntl(2), Leases.
TEST(posix_file, rights_are_those_of_the_open_file_and_never_of_what_has_its_name) {
  const ScratchDirectory directory;
  const auto target = posix_target();
  const std::string path = directory.path() + "/f", victim = directory.path() + "/victim";
  const auto file = *target->open(path, OpenMode::create, 0600);
  ASSERT_TRUE((*target->open(victim, OpenMode::create, 0600))->close().is_ok());
  EXPECT_TRUE(file->is_named(path) && !file->is_named(victim));
  ASSERT_TRUE(::rename(path.c_str(), (path + ".moved").c_str()) == 0 &&
              ::symlink(victim.c_str(), path.c_str()) == 0);
  EXPECT_FALSE(file->is_named(path));
  EXPECT_TRUE(file->set_permissions(0640).is_ok() && file->set_owner({}, ::getegid()).is_ok());
  // Only root can give a file to others, and so only root's tests tell whose owner has changed.
  const bool is_root = ::geteuid() == 0;
  const unsigned user = is_root ? 1234 : ::geteuid(), group = is_root ? 4321 : ::getegid();
  EXPECT_TRUE(file->set_owner(user, group).is_ok());
  const std::optional<Rights> rights = file->rights();
  ASSERT_TRUE(rights.has_value());
  EXPECT_EQ(rights->permissions, 0640U);
  EXPECT_EQ(rights->user, user);
  EXPECT_EQ(rights->group, group);
  struct stat secret {};
  ASSERT_EQ(::stat(victim.c_str(), &secret), 0);
  EXPECT_EQ(secret.st_mode & 07777, 0600U);
  EXPECT_EQ(secret.st_uid, ::geteuid());
  EXPECT_EQ(secret.st_gid, ::getegid());
  ASSERT_TRUE(::unlink(path.c_str()) == 0 && ::symlink((path + ".moved").c_str(), path.c_str()) == 0);
  EXPECT_FALSE(file->is_named(path)) << "a link to the file is not the file";
  EXPECT_TRUE(file->close().is_ok());
  EXPECT_FALSE(file->rights().has_value());
  EXPECT_EQ(file->set_permissions(0600).code(), Code::state);
}

TEST(posix_open, files_that_are_one_have_one_number_whatever_their_names) {
  const ScratchDirectory scratch;
  const std::string posix_name = scratch / "a", posix_other = scratch / "b";
  const auto expect = [](Target& target, const std::string& name, const std::string& other_name) {
    const auto file = *target.open(name, OpenMode::create);
    const auto other = *target.open(other_name, OpenMode::create);
    const auto again = *target.open(name, OpenMode::read_regular);
    EXPECT_NE(file->number(), FileNumber());
    EXPECT_EQ(file->number(), again->number());
    EXPECT_NE(file->number(), other->number());
    ASSERT_TRUE(target.rename(other_name, name).is_ok());
    EXPECT_EQ(other->number(), (*target.open(name, OpenMode::read))->number());
    EXPECT_NE(file->number(), other->number());
  };
  expect(*posix_target(), posix_name, posix_other);
  expect(*memory_target(), "a", "b");
}

TEST(posix_open, a_file_that_is_made_has_the_permissions_asked_for_less_the_umask) {
  const mode_t before = ::umask(027);
  for (const std::string_view name : {"posix", "uring"}) {
    const auto target = make_target(name);
    if (!target.is_ok()) continue;  // the kernel does not grant io_uring
    const ScratchDirectory scratch;
    const auto permissions = [&](OpenMode mode, std::string_view file, unsigned asked) {
      EXPECT_TRUE((*target)->open(scratch / file, mode, asked).is_ok());
      struct stat info {};
      EXPECT_EQ(::stat((scratch / file).c_str(), &info), 0);
      return info.st_mode & 07777;
    };
    EXPECT_EQ(permissions(OpenMode::create, "a", 0662), 0640U);
    EXPECT_EQ(permissions(OpenMode::create, "a", 0600), 0640U) << "it is there already";
    EXPECT_EQ(permissions(OpenMode::keep, "b", 0600), 0600U);
    EXPECT_EQ(permissions(OpenMode::create, "c", usual_permissions), 0640U);
  }
  ::umask(before);
}

TEST(posix_open, a_lease_is_waited_for) {
  class Leased final : public System {
   public:
    int open(const char* path, int flags, mode_t mode) override {
      return (flags & O_NONBLOCK) != 0 ? -EWOULDBLOCK : System::open(path, flags, mode);
    }
  };
  const ScratchDirectory scratch;
  PosixTarget target(std::make_shared<Leased>());
  ASSERT_TRUE(put_file(*posix_target(), scratch / "file", "text").is_ok());
  EXPECT_TRUE(target.open(scratch / "file", OpenMode::read_regular).is_ok());
}

TEST(temporary, is_new_and_empty_and_follows_no_link) {
  const ScratchDirectory scratch;
  const auto first = make_temporary(scratch / "out"), second = make_temporary(scratch / "out");
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  EXPECT_NE(first->name, second->name);
  EXPECT_EQ(std::filesystem::file_size(first->name), 0);
  EXPECT_EQ(std::filesystem::path(first->name).parent_path(),
            std::filesystem::path(scratch / "out").parent_path());
  const Status status = make_temporary(scratch / "none/out").status();
  EXPECT_NE(status.text().find("mkdir -p"), std::string::npos) << status.text();
}

/// Others who write to the directory may put a link in its place at any time.
TEST(temporary, is_written_whatever_has_its_name_by_then) {
  const ScratchDirectory scratch;
  const auto target = posix_target();
  ASSERT_TRUE(put_file(*target, scratch / "precious", "precious").is_ok());
  auto made = make_temporary(scratch / "out");
  ASSERT_TRUE(made.is_ok());
  std::filesystem::remove(made->name);
  std::filesystem::create_symlink(scratch / "precious", made->name);
  EXPECT_TRUE(made->file->write(bytes_of("one"), 0).is_ok());
  EXPECT_EQ(contents_of(*target, made->opened), "one");
  const auto again = target->open(made->opened, OpenMode::create);
  ASSERT_TRUE(again.is_ok());
  ASSERT_TRUE((*again)->write(bytes_of("another"), 0).is_ok());
  ByteVector buffer(7);
  EXPECT_EQ(*made->file->read(buffer, 0), 7);
  EXPECT_EQ(text_of(buffer), "another");
  EXPECT_EQ(contents_of(*target, scratch / "precious"), "precious");
}

TEST(temporary, takes_its_name_durably_or_leaves_nothing) {
  for (const Call call : {Call::rename, Call::sync_directory}) {
    const ScratchDirectory scratch;
    const auto target = posix_target();
    ASSERT_TRUE(put_file(*target, scratch / "out", "old").is_ok());
    auto made = make_temporary(scratch / "out");
    ASSERT_TRUE(made.is_ok());
    ASSERT_TRUE(made->file->write(bytes_of("new"), 0).is_ok());
    const auto faulty = faulty_target(posix_target(), {1, Fault::io_error, set_of(call), false});
    EXPECT_EQ(take_name(*faulty, *made, scratch / "out").code(), Code::io) << static_cast<int>(call);
    EXPECT_EQ(*target->list(scratch.path()), std::vector<std::string>{"out"}) << static_cast<int>(call);
    EXPECT_EQ(contents_of(*target, scratch / "out"), call == Call::rename ? "old" : "new");
  }
  const ScratchDirectory scratch;
  auto made = make_temporary(scratch / "out");
  ASSERT_TRUE(made.is_ok());
  ASSERT_TRUE(made->file->write(bytes_of("new"), 0).is_ok());
  const auto target = posix_target();
  EXPECT_TRUE(take_name(*target, *made, scratch / "out").is_ok());
  EXPECT_EQ(contents_of(*target, scratch / "out"), "new");
}

TEST(posix_loops, end_where_a_system_call_is_interrupted_for_good) {
  for (const Call call : {Call::open, Call::write, Call::read, Call::sync, Call::truncate, Call::rename,
                          Call::remove, Call::make_directories}) {
    const ScratchDirectory scratch;
    const auto system = std::make_shared<FaultySystem>(FaultPlan{});
    system->interrupted_for_good = set_of(call);
    PosixTarget target(system);
    const Status status = exercise(target, scratch.path());
    EXPECT_EQ(status.error_number(), EINTR) << static_cast<int>(call) << ": " << status.text();
    const bool locks = set_of(call) & set_of(Call::open, Call::write, Call::read, Call::truncate);
    EXPECT_EQ(target.lock(scratch / "lock").status().error_number(), locks ? EINTR : 0)
        << static_cast<int>(call);
  }
}

TEST(posix_loops, hide_short_writes_and_short_reads) {
  for (const bool for_good : {false, true}) {
    for (std::int64_t n = 1;; ++n) {
      const ScratchDirectory scratch;
      const auto system =
          std::make_shared<FaultySystem>(FaultPlan{n, Fault::short_write, all_calls, for_good});
      PosixTarget target(system);
      const Status status = exercise(target, scratch.path());
      EXPECT_TRUE(status.is_ok()) << "call " << n << ": " << status.text();
      if (!system->clock.fired()) break;
      ASSERT_LT(n, 1000);
    }
  }
}

TEST(posix_loops, report_an_error_of_any_system_call_with_its_errno_and_path) {
  for (const Fault fault : {Fault::io_error, Fault::no_space, Fault::quota}) {
    for (std::int64_t n = 1;; ++n) {
      const ScratchDirectory scratch;
      const auto system = std::make_shared<FaultySystem>(FaultPlan{n, fault});
      PosixTarget target(system);
      const Status status = exercise(target, scratch.path());
      if (!system->clock.fired()) {
        EXPECT_TRUE(status.is_ok()) << status.text();
        EXPECT_GT(n, 15);
        break;
      }
      EXPECT_EQ(status.error_number(), error_number_of(fault)) << "call " << n << ": " << status.text();
      EXPECT_EQ(status.code(), fault == Fault::io_error ? Code::io : Code::space);
      EXPECT_NE(status.text().find(scratch.path()), std::string::npos) << status.text();
    }
  }
}

TEST(posix_loops, leave_no_descriptor_open_whatever_fails) {
  for (std::int64_t n = 1;; ++n) {
    const ScratchDirectory scratch;
    const auto open_now = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    };
    const auto before = open_now();
    const auto system = std::make_shared<FaultySystem>(FaultPlan{n});
    PosixTarget target(system);
    (void)exercise(target, scratch.path()).is_ok();
    EXPECT_EQ(open_now(), before) << "call " << n;
    if (!system->clock.fired()) break;
  }
}

TEST(posix_loops, end_when_a_write_takes_nothing) {
  class Stuck final : public System {
    ssize_t pwritev(int, const iovec*, int, off_t) override { return 0; }
  };
  const ScratchDirectory scratch;
  PosixTarget target(std::make_shared<Stuck>());
  const auto file = target.open(scratch / "a", OpenMode::create);
  const Status status = (*file)->write(bytes_of("x"), 0);
  EXPECT_EQ(status.error_number(), EIO) << status.text();
}

TEST(posix_loops, a_write_error_names_its_offset_and_the_bytes_left) {
  const ScratchDirectory scratch;
  PosixTarget target(std::make_shared<FaultySystem>(FaultPlan{2, Fault::no_space, set_of(Call::write)}));
  const auto file = target.open(scratch / "a", OpenMode::create);
  ASSERT_TRUE((*file)->write(bytes_of("12345"), 0).is_ok());
  const Status status = (*file)->write(bytes_of("123"), 5);
  EXPECT_EQ(status.text(),
            "write of 3 bytes at offset 5 of " + (scratch / "a") + ": No space left on device");
}

TEST(posix_sync, a_failure_is_remembered_for_good) {
  const ScratchDirectory scratch;
  const auto system = std::make_shared<FaultySystem>(FaultPlan{1, Fault::io_error, set_of(Call::sync)});
  PosixTarget target(system);
  const auto file = target.open(scratch / "a", OpenMode::create);
  ASSERT_TRUE((*file)->write(bytes_of("x"), 0).is_ok());
  const Status first = (*file)->sync();
  EXPECT_EQ(first.error_number(), EIO);
  EXPECT_EQ((*file)->sync().text(), first.text());
  ASSERT_TRUE((*file)->write(bytes_of("y"), 0).is_ok());
  EXPECT_EQ((*file)->sync().text(), first.text());
  EXPECT_EQ(system->clock.calls(), 1) << "the kernel was asked again";
  const auto other = target.open(scratch / "b", OpenMode::create);
  EXPECT_TRUE((*other)->sync().is_ok()) << "another file is not concerned";
}

TEST(posix_close, an_error_is_reported_once_and_the_descriptor_is_gone) {
  const ScratchDirectory scratch;
  PosixTarget target(std::make_shared<FaultySystem>(FaultPlan{1, Fault::quota, set_of(Call::close)}));
  const auto file = target.open(scratch / "a", OpenMode::create);
  EXPECT_EQ((*file)->close().code(), Code::space);
  EXPECT_EQ((*file)->close().code(), Code::state);
}

TEST(posix_large, one_write_beyond_2_gib_is_cut_into_calls_below) {
  const Emptiness empty((Bytes{5} << 30) + 12345);
  ASSERT_FALSE(empty.bytes().empty());
  const ScratchDirectory scratch;
  const auto system = std::make_shared<CountingSystem>();
  PosixTarget target(system);
  const auto file = target.open(scratch / "a", OpenMode::create);
  system->end = Bytes{7} << 30;
  ASSERT_TRUE((*file)->write(empty.bytes(), system->end).is_ok());
  EXPECT_EQ(system->end, (Bytes{12} << 30) + 12345);
  EXPECT_EQ(system->calls, 6);
}

TEST(posix_large, many_parts_beyond_2_gib_are_cut_by_bytes_and_by_number) {
  const Emptiness empty(Bytes{3} << 30);
  std::vector<std::span<const std::byte>> parts{empty.bytes()};
  for (int i = 0; i < 3000; ++i)
    parts.push_back(empty.bytes().first(static_cast<std::size_t>(i % 3) * (1 << 20)));
  Bytes total = 0;
  for (const auto& part : parts) total += static_cast<Bytes>(part.size());
  const ScratchDirectory scratch;
  const auto system = std::make_shared<CountingSystem>();
  PosixTarget target(system);
  const auto file = target.open(scratch / "a", OpenMode::create);
  ASSERT_TRUE((*file)->write_gathered(parts, 0).is_ok());
  EXPECT_EQ(system->end, total);
}

/// Makes the real calls of a target, on a device that takes any number of bytes and copies none.
void write_3_gib_to_null(Target& target) {
  const Emptiness empty((Bytes{3} << 30) + 1);
  const auto file = target.open("/dev/null", OpenMode::existing);
  ASSERT_TRUE(file.is_ok()) << file.status().text();
  const std::span<const std::byte> parts[] = {empty.bytes(), empty.bytes().first(5), empty.bytes()};
  const Status status = (*file)->write_gathered(parts, 3);
  EXPECT_TRUE(status.is_ok()) << status.text();
}

TEST(posix_large, the_kernel_takes_6_gib_in_one_gathered_write) { write_3_gib_to_null(*posix_target()); }

TEST(uring_large, the_kernel_takes_6_gib_in_one_gathered_write) {
  const auto target = uring_target();
  if (!target.is_ok()) GTEST_SKIP() << target.status().text();
  write_3_gib_to_null(**target);
}

TEST(posix_open, descriptors_are_closed_in_programs_that_are_started) {
  class Watching final : public System {
   public:
    int open(const char* path, int flags, mode_t mode) override {
      EXPECT_TRUE(flags & O_CLOEXEC) << path;
      ++opened;
      return System::open(path, flags, mode);
    }
    int opened = 0;
  };
  const ScratchDirectory scratch;
  const auto system = std::make_shared<Watching>();
  PosixTarget target(system);
  EXPECT_TRUE(exercise(target, scratch.path()).is_ok());
  EXPECT_GT(system->opened, 3);
}

TEST(posix_directories, each_new_one_is_made_durable_in_its_parent) {
  const ScratchDirectory scratch;
  const auto system = std::make_shared<FaultySystem>(FaultPlan{0, Fault::io_error, set_of(Call::sync)});
  PosixTarget target(system);
  ASSERT_TRUE(target.make_directories(scratch / "a/b/c").is_ok());
  EXPECT_EQ(system->clock.calls(), 3);
  ASSERT_TRUE(target.make_directories(scratch / "a/b/c").is_ok());
  EXPECT_EQ(system->clock.calls(), 3);
}

/// proc(5) reports 0 blocks in all, like some FUSE file systems.
TEST(posix_space, of_storage_that_does_not_tell_its_size_is_not_none) {
  PosixTarget target(std::make_shared<System>());
  const Result<Space> space = target.space("/proc/self/new_file");
  ASSERT_TRUE(space.is_ok()) << space.status().text();
  EXPECT_EQ(space->free, std::numeric_limits<Bytes>::max());
  const ScratchDirectory scratch;
  const Result<Space> known = target.space(scratch / "new_file");
  ASSERT_TRUE(known.is_ok()) << known.status().text();
  EXPECT_LT(known->free, std::numeric_limits<Bytes>::max());
}

TEST(gather, steps_end_exactly_where_the_bytes_do) {
  const ByteVector data(100);
  const std::span<const std::byte> all(data);
  const std::span<const std::byte> parts[] = {all.first(0), all.first(10), all.first(0), all.first(5),
                                              all.first(1)};
  for (Bytes step = 1; step <= 16; ++step) {
    Gather gather(parts);
    std::array<iovec, 2> room;
    Bytes done = 0;
    while (gather.left() > 0) {
      Bytes offered = 0;
      for (const iovec& part : gather.next(room)) offered += static_cast<Bytes>(part.iov_len);
      ASSERT_GT(offered, 0);
      const Bytes taken = std::min(offered, step);
      gather.advance(taken);
      done += taken;
    }
    EXPECT_EQ(done, 16) << step;
  }
}

}  // namespace
}  // namespace tailrace::storage
