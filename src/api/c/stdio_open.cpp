// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Opening, flushing and closing (ISO C99 7.19.5), and calls on files that are not open (7.19.4).
#include <unistd.h>

#include <cerrno>

#include "api/c/arguments.hpp"
#include "api/c/files.hpp"
#include "api/c/state.hpp"
#include "faces/files/local_name.hpp"
#include "faces/files/sidecar.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using files::File;
using files::Group;
using files::LocalFile;
using files::Mode;
using files::Outcome;
using files::Owner;

namespace {

/// Restores errno at the end of the scope, because a successful call leaves errno as it was and the code
/// below sets it to 0 in between.
class KeptErrno {
 public:
  KeptErrno() = default;
  ~KeptErrno() { errno = number_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;
  /// Sets the errno of a failed call instead. Keeps the text for tr_error().
  void fail_with(const Status& status) {
    fail_with_errno(status);
    number_ = errno;
  }

 private:
  int number_ = errno;
};

Result<Mode> read_arguments(const char* path, const char* letters) {
  if (path == nullptr) return Status(Code::argument, "`path` is a null pointer");
  if (letters == nullptr) return Status(Code::argument, "`mode` is a null pointer");
  return files::parse_mode(letters);
}

/// Adds to "no such file" which rank has looked, and in which directory.
Status tell_where(const Status& status, const std::string& path) {
  if (status.error_number() != ENOENT || path.starts_with("/")) return status;
  return {status.code(),
          cat(status.text(),
              "; a relative name is looked up in the working directory of the I/O rank, the only "
              "one that opens the file"),
          ENOENT};
}

/// Logs the name of the files if the program has given the rank no place in it.
void tell_local_name(const char* path, const std::string& name, int rank) {
  if (rank != 0 || name == path || std::strchr(path, '%') != nullptr) return;
  log(LogLevel::info, cat("the local file \"", path,
                          "\" has no %d in its name: each rank's number comes behind it, as in ", name));
}

/// Which ranks an open waits for.
enum class Opening {
  by_mode,   // files of the local mode are opened locally, others by all ranks together
  together,  // also local files: the ranks agree first, because each may have made another call
  alone      // locally, whatever the mode: it could not be read
};

/// Opens a file. No rank opens, and so truncates, anything before all ranks have agreed that they mean the
/// same file.
Result<std::unique_ptr<File>> open_file(const std::shared_ptr<Group>& group, const std::string& call,
                                        const char* path, const Result<Mode>& mode,
                                        Opening opening = Opening::by_mode) {
  const bool local = opening == Opening::alone || (mode.is_ok() && mode->local);
  const Status mine = mode.status().in(call);
  TR_TRY(local && opening != Opening::together ? mine : group->agree({mine, call, {}}).status);
  Owner owner{state().file_service.get(), local ? nullptr : group, group->rank()};
  Result<std::string> name = local ? files::local_name(path, owner.rank, group->size()) : std::string(path);
  TR_TRY(name.status().in(call));
  if (local) tell_local_name(path, *name, owner.rank);
  restart::RecordedFiles& recorded = state().outputs->files();
  const journal::Position* const found = mode->writes() ? recorded.find(*name) : nullptr;
  const std::optional<journal::Position> from = found != nullptr ? std::optional(*found) : std::nullopt;
  const bool holds = local || owner.group->is_io_rank();
  Result<std::unique_ptr<File>> file = File::open(std::move(owner), *name, *mode, from);
  if (file.is_ok()) {
    if (from) recorded.take(*name);
    if (!from && holds && mode->access == Mode::Access::write) recorded.emptied(*name);
    return file;
  }
  return (local ? file.status() : tell_where(file.status(), path)).in(call);
}

tr_file* open_handle(const std::shared_ptr<Group>& group, const std::string& call, const char* path,
                     const Result<Mode>& mode) {
  KeptErrno number;
  Result<std::unique_ptr<File>> file = open_file(group, call, path, mode);
  if (file.is_ok()) {
    tr_file* const handle = keep(std::move(*file));
    handle->name = path;  // the pattern, for a local file
    handle->group = group;
    return handle;
  }
  number.fail_with(file.status());
  return nullptr;
}

bool is_local(const tr_file& handle) { return handle.file->owner().group == nullptr; }

Result<Mode> mode_to_reopen(const tr_file& handle, const char* path, const char* letters) {
  Result<Mode> mode = read_arguments(handle.name.c_str(), letters);
  TR_TRY(mode.status());
  if (path == nullptr && handle.standard >= 0) {
    return Status(Code::argument,
                  cat(handle.file->path(), " has no name under which it could be opened again; give one"));
  }
  if (path != nullptr) return mode;
  // Without a name it is the same file, or the same files.
  const bool was_local = is_local(handle);
  if (mode->local && !was_local) {
    return Status(Code::argument, "one file of all ranks cannot become one for each rank; give a name");
  }
  if (was_local && mode->parallel) {
    return Status(Code::argument, "files of the local mode cannot become one of all ranks; give a name");
  }
  mode->local = was_local;
  return mode;
}

int flush_one(File& file, bool durable) {
  KeptErrno number;
  const Status status = file.flush(durable);
  if (status.is_ok()) return 0;
  number.fail_with(status);
  return EOF;
}

int flush_all(const char* call, bool durable) {
  if (session_for(call) == nullptr) {
    errno = EBADF;
    return EOF;
  }
  int code = 0;
  for (tr_file* const handle : state().files) {
    if (handle->file->mode().writes() && flush_one(*handle->file, durable) != 0) code = EOF;
  }
  return code;
}

int flush(tr_file* handle, const char* call, bool durable) {
  if (handle == nullptr) return flush_all(call, durable);
  File* const file = file_of(handle, call);
  return file == nullptr ? EOF : flush_one(*file, durable);
}

Outcome outcome_of_status(const Status& status) {
  return status.is_ok() ? Outcome() : refused(-1, number_of(status), status.text());
}

Outcome outcome_of_libc(int code, const char* operation, const std::string& path) {
  return code == 0 ? Outcome() : outcome_of_status(io_error(operation, path, errno));
}

Outcome remove_there(storage::Target& target, const char* path) {
  if (path == nullptr) return refused(-1, EINVAL, "`path` is a null pointer");
  const Status removed = target.remove(path);
  // A target removes only files. C's remove also removes empty directories.
  return outcome_of_status(removed.error_number() == EISDIR ? target.remove_directory(path) : removed);
}

Outcome rename_there(storage::Target& target, const char* from, const char* to) {
  if (from == nullptr || to == nullptr) return refused(-1, EINVAL, "a name is a null pointer");
  const Status status = target.rename(from, to);
  // A target moves files only within a directory. C's rename moves them wherever the system can.
  if (status.code() != Code::argument) return outcome_of_status(status);
  return outcome_of_libc(std::rename(from, to), "rename", cat(from, " to ", to));
}

/// Makes a new, empty file and returns its name. Goes past storage::Target: C's temporary files lie in the
/// directory of the system for them.
Outcome make_temporary() {
  char name[] = P_tmpdir "/trXXXXXX";
  static_assert(sizeof name <= L_tmpnam);
  const int descriptor = ::mkstemp(name);
  if (descriptor < 0) return outcome_of_libc(-1, "create a temporary file in", P_tmpdir);
  ::close(descriptor);
  const auto bytes = std::as_bytes(std::span(name));
  return {0, 0, {bytes.begin(), bytes.end()}};
}

Status rename_local(storage::Target& target, const LocalFile& file, const char* to) {
  if (to == nullptr) return null_pointer("to");
  const Result<std::string> name = files::local_name_as(file, to);
  TR_TRY(name.status());
  const auto move = [&](const std::string& from, const std::string& target_name) -> Status {
    const Outcome moved = rename_there(target, from.c_str(), target_name.c_str());
    if (moved.error == 0) note_renamed(from, target_name);
    return moved.error == 0 ? Status() : Status(Code::io, moved.text, moved.error);
  };
  TR_TRY(move(file.path, *name));
  const Status beside = move(files::sidecar_path(file.path), files::sidecar_path(*name));
  // A file without arrays has no sidecar. One of the replaced file would describe arrays that are gone.
  return beside.error_number() == ENOENT ? files::remove_sidecar(target, *name) : beside;
}

/// Collective. Does `work` on the files of the local mode by `pattern`: the I/O rank on all that it sees,
/// then each other rank on its own, if that is still there because the directory is one of its node alone.
int on_local_files(const char* name, const std::string& call, const char* pattern,
                   const std::function<Status(storage::Target&, const LocalFile&)>& work) {
  const std::shared_ptr<Group> group = group_of(session_comm(), name);
  if (group == nullptr) return -1;
  storage::Target& target = group->service().target();
  std::int64_t done = 0;
  const auto work_on = [&](const Result<std::vector<LocalFile>>& found) -> Status {
    TR_TRY(found.status());
    Status first;
    for (const LocalFile& file : *found) {
      const Status status = work(target, file);
      if (first.is_ok()) first = status;
      ++done;
    }
    return first;
  };
  const auto agree = [&](const Status& mine) {
    comm::Vote vote{mine.in(call).at({-1, -1, group->rank()}), call, {}};
    vote.bid = done;
    return group->agree(std::move(vote));
  };
  const auto all = [&]() -> Status {
    // Waits for all ranks. Calls on local files wait for nobody, so without this vote the I/O rank would work
    // on files that other ranks still write.
    TR_TRY(agree(pattern == nullptr ? null_pointer("pattern") : Status()).status);
    Status mine;
    if (group->is_io_rank()) mine = guarded([&] { return work_on(files::local_files(target, pattern)); });
    TR_TRY(agree(mine).status);
    if (!group->is_io_rank()) {
      mine = guarded(
          [&] { return work_on(files::local_file_of(target, pattern, group->rank(), group->size())); });
    }
    const comm::Verdict verdict = agree(mine);
    TR_TRY(verdict.status);
    return verdict.largest_bid > 0 ? Status() : io_error("find", pattern, ENOENT).in(call);
  };
  KeptErrno number;
  const Status status = all();
  if (status.is_ok()) return 0;
  number.fail_with(status);
  return -1;
}

const char* text_in(const Outcome& outcome) { return reinterpret_cast<const char*>(outcome.data.data()); }

}  // namespace

tr_file* tr_standard_stream(int number) {
  if (state().session == nullptr || number < 0 || number > 2) return nullptr;
  const std::shared_ptr<Group> group = group_of(session_comm(), "tr_standard_stream");
  return group == nullptr ? nullptr : standard_file(group, number);
}

tr_file* tr_standard_stream_comm(MPI_Comm comm, int number) {
  const std::shared_ptr<Group> group = group_of(comm, "tr_standard_stream_comm");
  if (group == nullptr) return nullptr;
  if (number >= 0 && number <= 2) return open_standard(group, number);
  fail_with_errno(
      Status(Code::argument, cat("tr_standard_stream_comm: there is no standard stream ", number)));
  return nullptr;
}

tr_file* tr_fopen(const char* path, const char* mode) { return tr_fopen_comm(session_comm(), path, mode); }

tr_file* tr_fopen_comm(MPI_Comm comm, const char* path, const char* mode) {
  const std::shared_ptr<Group> group = group_of(comm, "tr_fopen");
  if (group == nullptr) return nullptr;
  const std::string call = cat("tr_fopen(", quoted(path), ", ", quoted(mode), ")");
  return open_handle(group, call, path, read_arguments(path, mode));
}

tr_file* tr_freopen(const char* path, const char* mode, tr_file* handle) {
  if (file_of(handle, "tr_freopen") == nullptr) return nullptr;
  // The pattern, not this rank's own name: the same text on all ranks.
  const std::string was = path != nullptr ? std::exchange(handle->name, path) : handle->name;
  const bool was_local = is_local(*handle);
  KeptErrno number;
  const std::string call = cat("tr_freopen(", quoted(path), ", ", quoted(mode), ", ", was, ")");
  const Result<Mode> read = mode_to_reopen(*handle, path, mode);
  // ISO C99 7.19.5.4: a failure to close is ignored, and the file is closed whatever follows.
  if (!handle->temporary) note_closing(*handle->file);
  static_cast<void>(handle->file->close());
  const Opening opening = !was_local ? Opening::together : !read.is_ok() ? Opening::alone : Opening::by_mode;
  Result<std::unique_ptr<File>> file = open_file(handle->group, call, handle->name.c_str(), read, opening);
  if (file.is_ok()) {
    handle->file = std::move(*file);
    handle->temporary = handle->temporary && path == nullptr;
    return handle;
  }
  take_off(state().files, handle);
  number.fail_with(file.status());
  return nullptr;
}

int tr_fclose(tr_file* handle) {
  File* const file = file_of(handle, "tr_fclose");
  if (file == nullptr) return EOF;
  KeptErrno number;
  if (!handle->temporary) note_closing(*file);
  const Status status = file->close();
  take_off(state().files, handle);
  if (status.is_ok()) return 0;
  number.fail_with(status);
  return EOF;
}

int tr_fflush(tr_file* handle) { return flush(handle, "tr_fflush", false); }

int tr_fflush_durable(tr_file* handle) { return flush(handle, "tr_fflush_durable", true); }

void tr_fflush_nr(tr_file* handle) {
  File* const file = file_of(handle, "tr_fflush_nr");
  if (file != nullptr) tell(*file, [](std::FILE* stream) { return outcome_of(0, std::fflush(stream) != 0); });
}

int tr_setvbuf(tr_file* handle, char* buffer, int mode, size_t size) {
  return ask_for_int(handle, "tr_setvbuf", EOF, [&](std::FILE* stream) {
    const int code = std::setvbuf(stream, buffer, mode, size);
    return outcome_of(code, code != 0);
  });
}

void tr_setbuf(tr_file* handle, char* buffer) {
  File* const file = file_of(handle, "tr_setbuf");
  if (file == nullptr) return;
  tell(*file, [buffer](std::FILE* stream) {
    std::setbuf(stream, buffer);
    return Outcome();
  });
}

int tr_remove(const char* path) { return tr_remove_comm(session_comm(), path); }

int tr_remove_comm(MPI_Comm comm, const char* path) {
  const std::shared_ptr<Group> group = group_of(comm, "tr_remove");
  if (group == nullptr) return -1;
  const auto operation = [&] { return remove_there(group->service().target(), path); };
  return static_cast<int>(ask(*group, cat("tr_remove(", quoted(path), ")"), operation).value);
}

int tr_remove_local(const char* pattern) {
  const auto remove = [](storage::Target& target, const LocalFile& file) {
    return files::remove_local(target, file);
  };
  return on_local_files("tr_remove_local", cat("tr_remove_local(", quoted(pattern), ")"), pattern, remove);
}

int tr_rename_local(const char* from, const char* to) {
  const auto rename = [to](storage::Target& target, const LocalFile& file) {
    return rename_local(target, file, to);
  };
  return on_local_files("tr_rename_local", cat("tr_rename_local(", quoted(from), ", ", quoted(to), ")"), from,
                        rename);
}

int tr_rename(const char* from, const char* to) { return tr_rename_comm(session_comm(), from, to); }

int tr_rename_comm(MPI_Comm comm, const char* from, const char* to) {
  const std::shared_ptr<Group> group = group_of(comm, "tr_rename");
  if (group == nullptr) return -1;
  const auto operation = [&] { return rename_there(group->service().target(), from, to); };
  const std::string call = cat("tr_rename(", quoted(from), ", ", quoted(to), ")");
  const int code = static_cast<int>(ask(*group, call, operation).value);
  // A closed file is made durable under the name that it has when the checkpoint is saved.
  if (code == 0) note_renamed(from, to);
  return code;
}

tr_file* tr_tmpfile_local(void) {
  const std::shared_ptr<Group> group = group_of(session_comm(), "tr_tmpfile_local");
  if (group == nullptr) return nullptr;
  KeptErrno number;
  const Outcome made = files::attempted(make_temporary);
  Result<std::unique_ptr<File>> file = made.error != 0
                                           ? Status(Code::io, made.text, made.error)
                                           : File::open({state().file_service.get(), nullptr, group->rank()},
                                                        text_in(made), *files::parse_mode("w+bl"));
  if (made.error == 0) ::unlink(text_in(made));  // the file lasts as long as it is open
  if (!file.is_ok()) {
    number.fail_with(file.status().in("tr_tmpfile_local"));
    return nullptr;
  }
  tr_file* const handle = keep(std::move(*file));
  handle->group = group;
  handle->temporary = true;
  return handle;
}

tr_file* tr_tmpfile(void) { return tr_tmpfile_comm(session_comm()); }

tr_file* tr_tmpfile_comm(MPI_Comm comm) {
  const std::shared_ptr<Group> group = group_of(comm, "tr_tmpfile");
  if (group == nullptr) return nullptr;
  const Outcome made = ask(*group, "tr_tmpfile", make_temporary);
  if (made.error != 0) return nullptr;
  tr_file* const handle = open_handle(group, "tr_tmpfile", text_in(made), files::parse_mode("w+b"));
  const KeptErrno number;
  if (group->is_io_rank()) ::unlink(text_in(made));  // the file lasts as long as it is open
  if (handle != nullptr) handle->temporary = true;
  return handle;
}

char* tr_tmpnam_local(char* name) {
  static char own[L_tmpnam];
  if (session_for("tr_tmpnam_local") == nullptr) return nullptr;
  KeptErrno number;
  const Outcome made = files::attempted(make_temporary);
  if (made.error != 0) {
    number.fail_with(Status(Code::io, cat("tr_tmpnam_local: ", made.text), made.error));
    return nullptr;
  }
  ::unlink(text_in(made));
  std::memcpy(name == nullptr ? own : name, made.data.data(), made.data.size());
  return name == nullptr ? own : name;
}

char* tr_tmpnam(char* name) { return tr_tmpnam_comm(session_comm(), name); }

char* tr_tmpnam_comm(MPI_Comm comm, char* name) {
  static char own[L_tmpnam];
  const std::shared_ptr<Group> group = group_of(comm, "tr_tmpnam");
  if (group == nullptr) return nullptr;
  const Outcome made = ask(*group, "tr_tmpnam", [] {
    Outcome outcome = make_temporary();
    if (outcome.error == 0) ::unlink(text_in(outcome));
    return outcome;
  });
  if (made.error != 0) return nullptr;
  std::memcpy(name == nullptr ? own : name, made.data.data(), made.data.size());
  return name == nullptr ? own : name;
}
