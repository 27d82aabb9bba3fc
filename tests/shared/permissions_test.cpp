// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Who may read and write a shared file: as its name comes, while it has a temporary one, beside it in its
// undo files, and when it takes the place of another file. If root runs this, rank 0 opens some files as
// nobody.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/fixture.hpp"

using namespace tailrace::files_test;

namespace {

namespace fs = std::filesystem;
constexpr unsigned nobody = 65534;

void ok(int code) {
  if (!CHECK_EQ(code, TR_OK)) std::fprintf(stderr, "  %s\n", tr_error());
}

tr_shared* open(const std::string& path, const char* mode, const char* options = nullptr) {
  tr_shared* file = nullptr;
  ok(tr_shared_open(path.c_str(), mode, options, &file));
  return file;
}

struct stat look(const std::string& path) {
  struct stat found {};
  CHECK_EQ(::stat(path.c_str(), &found), 0);
  return found;
}

unsigned permissions(const std::string& path) { return look(path).st_mode & 07777; }
unsigned group_of(const std::string& path) { return look(path).st_gid; }

/// Collective, in a session. As long as it lives rank 0, which looks after the names of files, is a user
/// without rights of its own.
class Unprivileged {
 public:
  Unprivileged() : was_root_(rank() == 0 && ::geteuid() == 0) {
    // Processes of different users share no new memory. The next file takes over that of this one.
    tr_shared* file = open("shared-memory", "w");
    ok(tr_shared_close(&file));
    if (was_root_) CHECK(::setegid(nobody) == 0 && ::seteuid(nobody) == 0);
  }
  ~Unprivileged() {
    if (!was_root_) return;
    CHECK(::seteuid(0) == 0 && ::setegid(0) == 0);
    ::prctl(PR_SET_DUMPABLE, 1);  // MPI may read from its memory
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool was_root_;
};

void on_rank_0(const std::function<void()>& body) {
  if (rank() == 0) body();
  MPI_Barrier(state().comm);
}

}  // namespace

MPI_TEST(shared_permissions, a_new_file_has_what_the_umask_leaves) {
  const std::string directory = fresh_directory("shared-umask");
  const mode_t before = ::umask(027);
  {
    const Session session;
    for (const char* safety : {"safety=none", "safety=journal", "safety=rename"}) {
      const std::string path = directory + "/" + safety;
      tr_shared* file = open(path, "w", safety);
      const std::string now = mentions(safety, "rename") ? path + ".tmp-flush" : path;
      CHECK_EQ(permissions(now), 0640U);
      MPI_Barrier(state().comm);
      ok(tr_shared_close(&file));
      CHECK_EQ(permissions(path), 0640U);
    }
  }
  ::umask(before);
  remove_directory(directory);
}

MPI_TEST(shared_permissions, what_replaces_a_file_is_its_owners_as_that_was) {
  const std::string directory = fresh_directory("shared-owner");
  const std::string path = directory + "/f";
  const bool is_root = ::geteuid() == 0;
  const Session session;
  for (const unsigned wanted : {0600U, 0664U, 0461U}) {
    on_rank_0([&] {
      write_file(path, "old");
      write_file(path + ".tmp-flush", "left by a program that was killed");
      fs::permissions(path + ".tmp-flush", fs::perms{0666});
      fs::permissions(path, fs::perms{wanted | 0200});
      if (is_root) CHECK_EQ(::chown(path.c_str(), 12345, 54321), 0);
    });
    tr_shared* file = open(path, "w+", "safety=rename");
    CHECK_EQ(permissions(path + ".tmp-flush"), 0600U);
    CHECK_EQ(contents(path + ".tmp-flush").size(), 0U);
    MPI_Barrier(state().comm);
    on_rank_0([&] { fs::permissions(path, fs::perms{wanted}); });  // while the file is open
    ok(tr_shared_pwrite(file, "new", 3, 0));
    ok(tr_shared_flush(file));
    CHECK_EQ(permissions(path), wanted);
    if (is_root) CHECK(look(path).st_uid == 12345 && look(path).st_gid == 54321);
    ok(tr_shared_close(&file));
    CHECK_EQ(permissions(path), wanted);
    CHECK(contents(path) == "new");
    MPI_Barrier(state().comm);
    on_rank_0([&] { fs::remove(path); });
  }
  remove_directory(directory);
}

/// Whoever may write to the directory can put a link at the temporary name, to a file of somebody else.
MPI_TEST(shared_permissions, no_other_file_gets_the_owner_and_permissions_of_the_one_that_is_replaced) {
  const std::string directory = fresh_directory("shared-moved");
  const std::string path = directory + "/f", victim = directory + "/victim";
  const bool is_root = ::geteuid() == 0;
  on_rank_0([&] {
    write_file(path, "old");
    write_file(victim, "a secret");
    fs::permissions(victim, fs::perms{0600});
    fs::permissions(path, fs::perms{0666});
    if (is_root) CHECK_EQ(::chown(path.c_str(), nobody, nobody), 0);
  });
  const unsigned user = look(victim).st_uid;
  const Session session;
  tr_shared* file = open(path, "w+", "safety=rename");
  ok(tr_shared_pwrite(file, "new", 3, 0));
  on_rank_0([&] {
    fs::rename(path + ".tmp-flush", directory + "/taken");
    fs::create_symlink(victim, path + ".tmp-flush");
  });
  CHECK_EQ(tr_shared_flush(file), TR_ERR_STATE);
  if (!CHECK(mentions(tr_error(), "f.tmp-flush is not the file that this program has written")))
    std::fprintf(stderr, "  %s\n", tr_error());
  CHECK(permissions(victim) == 0600U && look(victim).st_uid == user);
  CHECK(contents(path) == "old");
  MPI_Barrier(state().comm);
  on_rank_0([&] { fs::rename(directory + "/taken", path + ".tmp-flush"); });
  ok(tr_shared_close(&file));
  CHECK(contents(path) == "new" && permissions(path) == 0666U && permissions(victim) == 0600U);
  MPI_Barrier(state().comm);
  remove_directory(directory);
}

/// The file that is replaced may be moved too: the new one is not opened to the readers of what is there
/// then.
MPI_TEST(shared_permissions, a_file_that_takes_the_name_meanwhile_hands_on_nothing) {
  const std::string directory = fresh_directory("shared-taken");
  const std::string path = directory + "/f";
  on_rank_0([&] {
    write_file(path, "a secret");
    fs::permissions(path, fs::perms{0600});
  });
  const Session session;
  tr_shared* file = open(path, "w+", "safety=rename");
  on_rank_0([&] {
    fs::remove(path);
    write_file(path, "of another user");
    fs::permissions(path, fs::perms{0666});
  });
  ok(tr_shared_pwrite(file, "new", 3, 0));
  ok(tr_shared_close(&file));
  CHECK(contents(path) == "new" && permissions(path) == 0600U);
  MPI_Barrier(state().comm);
  remove_directory(directory);
}

MPI_TEST(shared_permissions, a_file_that_may_not_be_written_is_not_replaced) {
  const std::string directory = fresh_directory("shared-read-only");
  const std::string path = directory + "/f";
  on_rank_0([&] {
    write_file(path, "precious");
    fs::permissions(directory, fs::perms{0777});
    fs::permissions(path, fs::perms{0444});
  });
  const Session session;
  for (const char* safety : {"safety=none", "safety=journal", "safety=rename"}) {
    tr_shared* file = nullptr;
    const Unprivileged somebody;
    CHECK_EQ(tr_shared_open(path.c_str(), "w", safety, &file), TR_ERR_IO);
    if (!CHECK(mentions(tr_error(), "Permission denied"))) std::fprintf(stderr, "  %s\n", tr_error());
    CHECK(contents(path) == "precious");
  }
  CHECK_EQ(permissions(path), 0444U);
  MPI_Barrier(state().comm);
  if (rank() == 0) CHECK_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 1);
  remove_directory(directory);
}

MPI_TEST(shared_permissions, undo_files_are_read_by_those_who_may_read_the_file) {
  const std::string directory = fresh_directory("shared-undo");
  const std::string path = directory + "/f";
  on_rank_0([&] {
    write_file(path, "a secret");
    fs::permissions(path, fs::perms{0640});
    if (::geteuid() == 0) CHECK_EQ(::chown(path.c_str(), static_cast<uid_t>(-1), nobody), 0);
  });
  const Session session;
  tr_shared* file = open(path, "r+", "safety=journal");
  ok(tr_shared_resize(file, 3));  // the rest is kept
  int kept = 0;
  for (const auto& each : fs::directory_iterator(directory)) {
    if (!mentions(each.path().string(), "f.undo.u")) continue;
    ++kept;
    CHECK_EQ(permissions(each.path().string()), 0640U);
    CHECK_EQ(group_of(each.path().string()), group_of(path));
  }
  CHECK_EQ(kept, 1);
  MPI_Barrier(state().comm);
  ok(tr_shared_close(&file));
  remove_directory(directory);
}

MPI_TEST(shared_permissions, who_may_only_read_opens_a_file_that_another_one_writes) {
  const std::string directory = fresh_directory("shared-reader");
  const std::string path = directory + "/f";
  on_rank_0([&] { write_file(path, "as it was flushed"); });
  const Session session;
  tr_shared* writer = open(path, "r+", "safety=journal");
  on_rank_0([&] {
    for (const auto& each : fs::directory_iterator(directory)) fs::permissions(each, fs::perms{0644});
    fs::permissions(directory, fs::perms{0555});
  });
  char text[5] = {};
  {
    const Unprivileged somebody;
    tr_shared* reader = open(path, "r");
    ok(tr_shared_pread(reader, text, 5, 0, nullptr));
    ok(tr_shared_close(&reader));
  }
  CHECK(std::string(text, 5) == "as it");
  on_rank_0([&] { fs::permissions(directory, fs::perms{0755}); });
  ok(tr_shared_close(&writer));
  // A program was killed: its file may be torn, and the reader cannot bring it back.
  on_rank_0([&] {
    write_file(path + ".undo", "what a killed program has left");
    fs::permissions(directory, fs::perms{0555});
  });
  {
    const Unprivileged somebody;
    tr_shared* reader = nullptr;
    CHECK_EQ(tr_shared_open(path.c_str(), "r", nullptr, &reader), TR_ERR_IO);
    if (!CHECK(mentions(tr_error(), "tailrace repair"))) std::fprintf(stderr, "  %s\n", tr_error());
  }
  on_rank_0([&] { fs::permissions(directory, fs::perms{0755}); });
  remove_directory(directory);
}

MPI_TEST_MAIN
