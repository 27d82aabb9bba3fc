// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The calls of DONIO: shared files behind descriptors.
#include "tailrace/donio.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <optional>
#include <span>

#include "api/c/arguments.hpp"
#include "api/c/fortran_files.hpp"
#include "api/c/shared.hpp"
#include "api/c/state.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/end_job.hpp"
#include "ground/comm/mpi_process.hpp"
#include "ground/compat/environment.hpp"
#include "ground/settings/settings.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using shared::SharedFile;

namespace {

struct DonioFile {
  tr_shared* handle = nullptr;  // closed with the session
  bool has_size = false;        // do_lsize was called

  [[nodiscard]] SharedFile& file() const { return *handle->file; }
};

/// The state of the DONIO calls in this process. All ranks open and close files together, so that a file has
/// the same descriptor on every rank.
struct Donio {
  // Descriptors of the standard streams are not used, nor is 0, which programs test for.
  static constexpr int first_descriptor = 3;

  bool has_begun = false;
  bool owns_session = false;
  bool has_synced = false;                      // the program has called do_gsync
  std::vector<std::optional<DonioFile>> files;  // index 0 is the first descriptor
};

Donio& donio() {
  static Donio& held = *new Donio;  // never destroyed: handlers of atexit(3) may use it
  return held;
}

int refuse(const Status& status) {
  fail(status);
  return -1;
}

int answer(const Status& status, int good = 0) { return status.is_ok() ? good : refuse(status); }

Result<std::shared_ptr<files::Group>> donio_group(const char* call) {
  return state().groups->of(state().bootstrap->compute(), call);
}

/// True if do_nio has been called. Otherwise keeps TR_ERR_STATE, with `call` in its text.
bool has_begun(const char* call) {
  if (donio().has_begun) return session_for(call) != nullptr;
  fail(Status(Code::state, cat(call, ": do_nio comes first")));
  return false;
}

/// Returns the file behind a descriptor, or nullptr with tr_error().
DonioFile* donio_file(int fd, const char* call) {
  if (!has_begun(call)) return nullptr;
  std::vector<std::optional<DonioFile>>& files = donio().files;
  const int place = fd - Donio::first_descriptor;
  if (fd >= Donio::first_descriptor && place < static_cast<int>(files.size()) && files[place])
    return &*files[place];
  fail(Status(Code::state, cat(call, ": ", fd, " is not the descriptor of an open file")));
  return nullptr;
}

const std::string& path_of(const DonioFile& open) { return open.file().definition().path; }

int refuse_in(const char* call, const DonioFile& open, const Status& status) {
  return refuse(status.in(cat(call, "(", path_of(open), ")")));
}

/// Collective. Returns the same Status on every rank. `call` is the call with its arguments.
Status agree_on(const std::string& call, const Status& mine) {
  const Result<std::shared_ptr<files::Group>> group = donio_group(call.c_str());
  TR_TRY(group.status().in(call));
  return (*group)->agree({mine.in(call).at({-1, -1, (*group)->rank()}), call, {}}).status;
}

/// Returns Code::settings if the environment asks for servers. do_nio would not return on servers, but the
/// program that calls it expects all ranks back.
Status check_no_servers() {
  const Result<Settings> settings = Settings::read("", compat::environment());
  if (!settings.is_ok() || settings->servers.none()) return {};  // tr_init reports what is wrong
  return {
      Code::settings,
      cat("the environment asks for servers by ", environment_name("servers"),
          ", but all ranks of a program that begins with do_nio compute: unset it, or call tr_init before "
          "do_nio, on all ranks, and do_nio on those that get a communicator")};
}

/// Collective. Begins a session of all ranks.
Status begin_own_session() {
  TR_TRY(check_no_servers().in("do_nio"));
  MPI_Comm compute = MPI_COMM_NULL;
  const int code = tr_init(MPI_COMM_WORLD, &compute, "servers=0");
  return code == TR_OK ? Status() : Status(static_cast<Code>(code), cat("do_nio: ", tr_error()));
}

Status check_ranks(int myid, int nproc) {
  const Result<std::shared_ptr<files::Group>> group = donio_group("do_nio");
  TR_TRY(group.status());
  const int rank = (*group)->rank();
  const int ranks = (*group)->size();
  if (myid == rank && nproc == ranks) return {};
  return {Code::argument, cat("myid is ", myid, " and nproc is ", nproc, ", but this is rank ", rank, " of ",
                              ranks, ": pass what MPI_Comm_rank and MPI_Comm_size return")};
}

/// Reads the flags of NX, where O_CREAT is 512, and of Linux, where O_CREAT is 64 and 512 is O_TRUNC. NX has
/// no flag 64.
Result<shared::Access> read_flags(int flags) {
  constexpr int linux_create = 64;
  const int what = flags & 3;
  const int rest = flags & ~3;
  if (what == 3 || (rest & ~(linux_create | DO_CREAT)) != 0) {
    return Status(Code::argument,
                  cat("flags ", flags,
                      " are none of DO_RDONLY (0), DO_WRONLY (1) and DO_RDWR (2), the last two "
                      "with DO_CREAT (512) or with Linux's O_CREAT (64) and O_TRUNC (512)"));
  }
  if (what == DO_RDONLY && rest != 0) {
    return Status(Code::argument, cat("flags ", flags,
                                      " would make or empty a file that is only read: pass "
                                      "DO_RDONLY (0) alone, or DO_RDWR (2)"));
  }
  shared::Access access;
  access.reads = what != DO_WRONLY;
  access.writes = what != DO_RDONLY;
  access.creates = rest != 0;
  access.empties = what == DO_WRONLY || rest == (linux_create | DO_CREAT);
  return access;
}

/// Returns an error if ranks of other nodes could wait forever. On several nodes a rank that waits in MPI
/// answers nobody, unless a thread or a server answers for it. A program that calls do_gsync can let ranks
/// wait there. A program whose barrier is MPI_Barrier, as in most, would hang.
Status check_answered(files::Group& group) {
  const std::vector<int>& nodes = group.nodes();
  const session::Session& session = *state().session;
  const bool may_have_threads = session.settings().io_threads > 0;
  const auto is_here = [&](int node) { return node == nodes.front(); };
  const auto is_served = [&](int node) { return session.topology().servers_on(node) > 0; };
  if (donio().has_synced || std::ranges::all_of(nodes, is_here) || std::ranges::all_of(nodes, is_served) ||
      (may_have_threads && comm::threads_may_call_mpi()))
    return {};
  return {
      Code::state,
      cat("the ranks are on several nodes, and ",
          may_have_threads ? "MPI lets no thread answer for a rank" : "TAILRACE_IO_THREADS is 0",
          ": a rank that waits in MPI_Barrier and one that reads its part of a file would wait for ever. ",
          may_have_threads ? "Set OMPI_MPI_THREAD_LEVEL=3 (Open MPI) or MPIR_CVAR_DEFAULT_THREAD_LEVEL="
                             "MPI_THREAD_MULTIPLE (MPICH) if the program calls MPI_Init, or let it call "
                             "MPI_Init_thread with MPI_THREAD_MULTIPLE"
                           : "Leave it out, with MPI_THREAD_MULTIPLE",
          "; or let ranks wait in do_gsync (dogsync) as long as files are open, and call it once before")};
}

/// All ranks open a new file for reading and writing, so its owner gets these rights, whatever he has
/// afterwards.
constexpr unsigned for_opening = S_IRUSR | S_IWUSR;

/// Reads the arguments of do_open. On the rank that `looks`, also looks for the file, and sets `is_new` if it
/// has to be made.
Result<shared::Definition> define_donio(const char* path, int flags, int mode, bool looks, bool& is_new) {
  if (path == nullptr) return Status(Code::argument, "`path` is a null pointer");
  const Result<shared::Access> access = read_flags(flags);
  TR_TRY(access.status());
  shared::Definition what;
  what.path = path;
  what.access = *access;
  what.permissions = (static_cast<unsigned>(mode) & 0777) | for_opening;
  if (!looks) return what;
  const Result<bool> exists = state().file_service->target().exists(what.path);
  TR_TRY(exists.status());
  is_new = !*exists && what.access.creates;
  // A file that is only read is never made: the open that follows reports that it is missing.
  if (*exists || what.access.creates || !what.access.writes) return what;
  return Status(Code::io, cat(what.path, " does not exist: DO_CREAT (512) makes a file"), ENOENT);
}

/// Puts `file` behind the lowest free descriptor, and returns that.
int keep_file(std::unique_ptr<SharedFile> file) {
  std::vector<std::optional<DonioFile>>& files = donio().files;
  std::size_t place = 0;
  while (place < files.size() && files[place]) ++place;
  if (place == files.size()) files.emplace_back();
  files[place] = DonioFile{keep_shared(std::move(file))};
  return Donio::first_descriptor + static_cast<int>(place);
}

std::string octal(int mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%#o", static_cast<unsigned>(mode));
  return text;
}

Status check_writable(const DonioFile& open) {
  if (open.file().definition().access.writes) return {};
  return {Code::state, "it was opened for reading only: DO_WRONLY or DO_RDWR write"};
}

Status check_buffer(const void* buf, int nbytes) {
  if (nbytes < 0) return {Code::argument, cat("nbytes is ", nbytes, ", below 0")};
  if (buf == nullptr && nbytes > 0) return {Code::argument, "`buf` is a null pointer"};
  return {};
}

Result<shared::Whence> read_whence(int whence) {
  if (whence == SEEK_SET) return shared::Whence::begin;
  if (whence == SEEK_CUR) return shared::Whence::position;
  if (whence == SEEK_END) return shared::Whence::end;
  return Status(Code::argument,
                cat("whence is ", whence, ", none of SEEK_SET (0), SEEK_CUR (1) and SEEK_END (2)"));
}

/// Moves the position and returns it. Nothing moves if the new position does not fit an int.
Result<Bytes> move_position(SharedFile& file, int offset, int whence) {
  const Result<shared::Whence> from = read_whence(whence);
  TR_TRY(from.status());
  const Bytes before = file.position();
  const Result<Bytes> position = file.seek(offset, *from);
  TR_TRY(position.status());
  if (*position <= INT_MAX) return position;
  file.move_to(before);
  return Status(Code::argument, cat("position ", *position,
                                    " does not fit the int that do_lseek returns: use "
                                    "tr_shared_open and tr_shared_seek for files above 2 GiB"));
}

/// Reads all of `bytes`. If there are fewer, returns an error, and the position does not move.
Status read_all(const DonioFile& open, std::span<std::byte> bytes) {
  SharedFile& file = open.file();
  if (!file.definition().access.reads)
    return {Code::state, "it was opened for writing only: DO_RDONLY or DO_RDWR read"};
  const Bytes before = file.position();
  const Result<Bytes> got = file.read_here(bytes);
  TR_TRY(got.status());
  if (*got == static_cast<Bytes>(bytes.size())) return {};
  file.move_to(before);
  return {Code::io, cat("there are ", counted(*got, "byte"), " from byte ", before, " on, not ", bytes.size(),
                        ": do_lseek(fd, 0, SEEK_END) tells where the file ends")};
}

Status write_all(const DonioFile& open, std::span<const std::byte> bytes) {
  TR_TRY(check_writable(open));
  if (!open.has_size) return {Code::state, "do_lsize comes before the first write"};
  return open.file().write_here(bytes);
}

}  // namespace

namespace tailrace::capi {

void end_donio() { donio() = {}; }

bool donio_owns_session() { return donio().owns_session; }

}  // namespace tailrace::capi

int tr_do_nio(int myid, int nproc) {
  if (donio().has_begun) return refuse(Status(Code::state, "do_nio: it was called already"));
  const bool owns = state().session == nullptr;
  comm::begin_mpi();
  if (owns) {
    const Status begun = begin_own_session();
    if (!begun.is_ok()) return refuse(begun);
  }
  const Status status = agree_on("do_nio", guarded([&] { return check_ranks(myid, nproc); }));
  if (status.is_ok()) {
    donio().has_begun = true;
    donio().owns_session = owns;
  } else if (owns) {
    tr_finalize();
  }
  return answer(status);
}

int tr_do_open(const char* path, int flags, int mode) {
  if (!has_begun("do_open")) return -1;
  const Result<std::shared_ptr<files::Group>> group = donio_group("do_open");
  if (!group.is_ok()) return refuse(group.status().in("do_open"));
  bool is_new = false;
  const bool looks = (*group)->is_io_rank();
  const Result<shared::Definition> what = guarded([&]() -> Result<shared::Definition> {
    TR_TRY(check_answered(**group));
    return define_donio(path, flags, mode, looks, is_new);
  });
  const std::string call = cat("do_open(", quoted(path), ", ", flags, ", ", octal(mode), ")");
  Result<std::unique_ptr<SharedFile>> file = SharedFile::open(*group, call, what);
  if (!file.is_ok()) return refuse(file.status());
  const unsigned granted = static_cast<unsigned>(mode) & 0777;
  if (is_new && (granted & for_opening) != for_opening) {
    const Status narrowed = (*file)->narrow(granted);  // its owner, too, gets only what `mode` says
    if (!narrowed.is_ok()) log(LogLevel::warn, narrowed.in("do_open").text());
  }
  return keep_file(std::move(*file));
}

int tr_do_lsize(int fd, int nbytes) {
  DonioFile* const open = donio_file(fd, "do_lsize");
  if (open == nullptr) return -1;
  Status mine = check_writable(*open);
  if (mine.is_ok() && nbytes < 0) mine = {Code::argument, "nbytes is below 0"};
  const Status status = agree_on(cat("do_lsize(", path_of(*open), ", ", nbytes, ")"), mine);
  if (status.is_ok()) open->has_size = true;
  return answer(status, nbytes);
}

int tr_do_lseek(int fd, int offset, int whence) {
  const DonioFile* const open = donio_file(fd, "do_lseek");
  if (open == nullptr) return -1;
  const Result<Bytes> position = guarded([&] { return move_position(open->file(), offset, whence); });
  return position.is_ok() ? static_cast<int>(*position) : refuse_in("do_lseek", *open, position.status());
}

int tr_do_read(int fd, void* buf, int nbytes) {
  const DonioFile* const open = donio_file(fd, "do_read");
  if (open == nullptr) return -1;
  Status status = check_buffer(buf, nbytes);
  if (status.is_ok()) {
    const std::span bytes(static_cast<std::byte*>(buf), static_cast<std::size_t>(nbytes));
    status = guarded([&] { return read_all(*open, bytes); });
  }
  return status.is_ok() ? nbytes : refuse_in("do_read", *open, status);
}

int tr_do_write(int fd, const void* buf, int nbytes) {
  const DonioFile* const open = donio_file(fd, "do_write");
  if (open == nullptr) return -1;
  Status status = check_buffer(buf, nbytes);
  if (status.is_ok()) {
    const std::span bytes(static_cast<const std::byte*>(buf), static_cast<std::size_t>(nbytes));
    status = guarded([&] { return write_all(*open, bytes); });
  }
  return status.is_ok() ? nbytes : refuse_in("do_write", *open, status);
}

int tr_do_flush(int fd) {
  const DonioFile* const open = donio_file(fd, "do_flush");
  return open == nullptr ? -1 : answer(open->file().flush("do_flush"));
}

int tr_do_close(int fd) {
  DonioFile* const open = donio_file(fd, "do_close");
  if (open == nullptr) return -1;
  const std::unique_ptr<tr_shared> handle = take_off(state().shared_files, open->handle);
  donio().files[static_cast<std::size_t>(fd - Donio::first_descriptor)].reset();
  return answer(handle->file->close("do_close"));
}

int tr_do_gsync(void) {
  if (!has_begun("dogsync")) return -1;
  Status first = agree_on("dogsync", {});
  if (first.code() == Code::order) return refuse(first);
  donio().has_synced = true;
  for (const std::optional<DonioFile>& open : donio().files) {
    if (!open || !open->file().definition().access.writes) continue;
    const Status status = open->file().sync("dogsync");
    if (first.is_ok()) first = status;
  }
  return answer(first);
}

void tr_donio_failed_f(int together) {
  const session::Session* const session = state().session.get();
  const Result<Settings> settings =
      session != nullptr ? Result<Settings>(session->settings()) : Settings::read("", compat::environment());
  const bool returns = settings.is_ok() && settings->donio_returns;
  if (returns && together != 0) return tr_log(tr_error());
  if (returns) {
    std::fprintf(stderr, "%s\n", tr_error());
    return;
  }
  const std::string why =
      cat(tr_error(),
          "\nAll ranks stop: a program that makes this call as a subroutine would not see "
          "that it failed. Set ",
          environment_name("donio_errors"), "=return if the program takes its result");
  if (together == 0) comm::end_job(why);
  end_job_together(why);
}
