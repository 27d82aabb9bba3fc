// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/collective/mpi_files.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <mutex>

#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/base/waiting.hpp"
#include "ground/comm/end_job.hpp"

namespace tailrace::comm {

/// Where the parts of a write lie in memory, for the arguments of a call of MPI: anywhere. A datatype
/// describes them from the lowest address on, and nothing is copied.
struct WritePlace {
  const std::byte* base = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;

  void release() {
    if (type != MPI_BYTE) MPI_Type_free(&type);
    type = MPI_BYTE;
  }
};

namespace {

/// Returns the error of a call of MPI-IO, with the errno that its class stands for.
Status file_status(int code, std::string_view call, const std::string& path) {
  if (code == MPI_SUCCESS) return {};
  int kind = MPI_ERR_IO;
  MPI_Error_class(code, &kind);
  const int number = kind == MPI_ERR_NO_SPACE       ? ENOSPC
                     : kind == MPI_ERR_QUOTA        ? EDQUOT
                     : kind == MPI_ERR_NO_SUCH_FILE ? ENOENT
                     : kind == MPI_ERR_ACCESS       ? EACCES
                     : kind == MPI_ERR_READ_ONLY    ? EROFS
                                                    : EIO;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  const Status plain = io_error(call, path, number);
  return {plain.code(),
          cat(plain.text(), " (", std::string_view(text, static_cast<std::size_t>(length)), ")"), number};
}

/// Ends the job if a call failed on which the other processes count.
void expect_success(int code, const char* call) {
  if (code != MPI_SUCCESS) end_job(cat("MPI itself failed in ", call, " among the servers"));
}

/// Returns the info of the hints. Unless they say otherwise, ROMIO does not sieve: it would read what lies
/// between the bytes of one process, which may belong to others, and write it again.
MPI_Info info_of(const Hints& hints) {
  MPI_Info info = MPI_INFO_NULL;
  expect_success(MPI_Info_create(&info), "MPI_Info_create");
  MPI_Info_set(info, "romio_ds_write", "disable");
  for (const auto& [key, value] : hints) MPI_Info_set(info, key.c_str(), value.c_str());
  return info;
}

/// Returns the names by which a file may be opened, the first one first. ROMIO takes what stands before a
/// colon for the kind of the file system. "ufs:" is any POSIX file system, and ROMIO takes it off; OMPIO,
/// which Open MPI uses unless told otherwise, does not.
std::vector<std::string> names_for_mpi(const std::string& path) {
  if (path.find(':') == std::string::npos) return {path};
#ifdef OPEN_MPI
  return {path, cat("ufs:", path)};
#else
  return {cat("ufs:", path), path};
#endif
}

/// A part of a run that one call can write.
struct Share {
  Bytes offset = 0;
  std::vector<std::span<const std::byte>> parts;
};

/// Cuts the runs into shares of at most CollectiveFiles::most_at_once.
std::vector<Share> shares_of(const std::vector<CollectiveFiles::Run>& runs) {
  std::vector<Share> shares;
  for (const CollectiveFiles::Run& run : runs) {
    Bytes at = run.offset;
    Bytes room = 0;
    for (std::span<const std::byte> part : run.parts) {
      while (!part.empty()) {
        if (room == 0) {
          shares.push_back({at, {}});
          room = CollectiveFiles::most_at_once;
        }
        const auto taken = part.first(std::min(part.size(), static_cast<std::size_t>(room)));
        shares.back().parts.push_back(taken);
        part = part.subspan(taken.size());
        at += static_cast<Bytes>(taken.size());
        room -= static_cast<Bytes>(taken.size());
      }
    }
  }
  return shares;
}

WritePlace place_of(const std::vector<std::span<const std::byte>>& parts) {
  if (parts.empty()) return {};
  const std::byte* base = parts.front().data();
  for (const auto& part : parts) base = std::min(base, part.data(), std::less<>());
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  for (const auto& part : parts) {
    lengths.push_back(static_cast<int>(part.size()));
    places.push_back(static_cast<MPI_Aint>(reinterpret_cast<std::uintptr_t>(part.data()) -
                                           reinterpret_cast<std::uintptr_t>(base)));
  }
  if (lengths.size() == 1) return {base, lengths.front(), MPI_BYTE};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  expect_success(MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(),
                                          MPI_BYTE, &type),
                 "MPI_Type_create_hindexed");
  expect_success(MPI_Type_commit(&type), "MPI_Type_commit");
  return {base, 1, type};
}

/// Writes one share, or takes part without bytes.
int write_share(MPI_File file, const Share& share) {
  MPI_Status status;
  WritePlace place = place_of(share.parts);
  const int code = MPI_File_write_at_all(file, share.offset, place.base, place.count, place.type, &status);
  place.release();
  return code;
}

Bytes size_of(const CollectiveFiles::Run::Parts& parts) {
  Bytes size = 0;
  for (const auto& part : parts) size += static_cast<Bytes>(part.size());
  return size;
}

/// Returns the names by which a trial of appends opens its file. With Open MPI there is one that only ROMIO
/// takes: nonblocking writes of OMPIO do not bear other threads inside of MPI. Ten streams at once, with Open
/// MPI 4.1.4, broke the heap in about half of the runs: any thread's progress goes through a list of such
/// writes, which other threads change. To OMPIO the name is one in a directory "ufs:" or "ufs:.".
std::vector<std::string> names_for_trial(const std::string& path) {
#ifdef OPEN_MPI
  return {cat("ufs:", path.starts_with('/') ? "" : "./", path)};
#else
  return names_for_mpi(path);
#endif
}

Status not_tried([[maybe_unused]] const Status& why) {
#ifdef OPEN_MPI
  return {Code::unsupported,
          cat("it needs ROMIO, since nonblocking writes of OMPIO do not bear other threads "
              "inside of MPI: set OMPI_MCA_io=^ompio (",
              why.text(), ")")};
#else
  return why;
#endif
}

/// Returns false while the write is under way. Otherwise frees the request, and `status` tells what became of
/// the write, unless it has failed before.
bool end_write(MPI_Request& request, const std::string& path, Bytes size, Status& status) {
  if (request == MPI_REQUEST_NULL) return true;
  int is_over = 0;
  MPI_Status mpi;
#ifdef OPEN_MPI
  // MPI_Test and MPI_Wait of Open MPI 4.1.4 may end the process by a signal if such a write has failed
  // (OMPIO). The number of bytes tells of that.
  const int code = MPI_Request_get_status(request, &is_over, &mpi);
  if (code == MPI_SUCCESS && is_over == 0) return false;
  MPI_Request_free(&request);
#else
  const int code = MPI_Test(&request, &is_over, &mpi);
  if (code == MPI_SUCCESS && is_over == 0) return false;
#endif
  if (status.is_ok()) status = file_status(code, "MPI_File_iwrite_shared", path);
  int bytes = 0;
  if (status.is_ok()) MPI_Get_elements(&mpi, MPI_BYTE, &bytes);
  if (status.is_ok() && bytes != size)
    status = io_error(cat("MPI_File_iwrite_shared, of ", size, " bytes ", bytes, " of"), path, EIO);
  return true;
}

/// The appends of a file that are under way on this process: while one is written, the next one is handed
/// over.
constexpr std::size_t most_appends = 2;

/// How long a process that goes waits for a call of MPI to end: longer than a write of a round should take.
constexpr std::chrono::seconds patience_at_the_end(5);

/// How long the thread sleeps between two looks at what is under way.
constexpr std::chrono::microseconds shortest_look(20), longest_look(1000);

Status abandoned() { return {Code::state, "the collective call was abandoned: this process goes"}; }

}  // namespace

/// The calls that are queued and made, and what the thread needs for them.
class MpiFiles::Calls {
 public:
  Calls(MPI_Comm comm, std::function<void()> wake) : comm_(comm), wake_(std::move(wake)) {}

  void enqueue(Own call, Done done);
  bool poll();
  /// Makes the calls that are queued, until abandon(). The thread runs it.
  void run();
  /// Has the thread make no further call. Returns false if it is inside of MPI and stays there. It then never
  /// touches again what its owner or the calls refer to.
  bool abandon();

  // The thread alone calls these.
  Status open(const std::string& path, const Hints& hints, const Own& own, bool& is_open);
  Status write(const std::string& path, const std::vector<Run>& runs, int calls, const Own& own);
  Status append(const std::string& path, Bytes offset, const Run::Parts& parts, const Own& own, Done& done);
  Status seek(const std::string& path, Bytes offset);
  Status try_appends(const std::string& path);
  Status sync(const std::string& path, const Own& own);
  Status close(const std::string& path, const Own& own);

 private:
  /// A write at the shared file pointer that is under way.
  struct Append {
    std::string path;
    Bytes size = 0;
    WritePlace place{};
    MPI_Request request = MPI_REQUEST_NULL;
    Done done{};
    Status failed{};  // the call that should have begun it has written nothing, or not all
  };
  /// A file with a communicator of its own: OMPIO of Open MPI 4.1.4 knows a shared file pointer by the number
  /// of the communicator and the file's name without its directory. Files with the same name in different
  /// directories would share one.
  struct OpenFile {
    MPI_File file = MPI_FILE_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
  };
  template <typename Call>
  int in_mpi(const Call& call);
  template <typename Over>
  bool sleep_until(const Over& over);
  void wait_for_write(Append& append);
  bool look_at_appends();
  bool wait_for_appends(const std::string& path, std::size_t most);
  bool end_appends();
  Status append_in_turn(MPI_File file, const std::string& path, Bytes offset, Append& append);
  Status append_in_turns(MPI_File file, const std::string& path);
  [[nodiscard]] bool meet();
  bool all_are(const Status& mine);
  Status open_as(const std::string& path, const std::string& name, MPI_Info info, OpenFile& file);

  const MPI_Comm comm_;
  const std::function<void()> wake_;
  // The thread alone uses these:
  std::map<std::string, OpenFile> files_;
  std::list<Append> appends_;  // oldest first
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<Own, Done>> calls_;
  std::deque<std::pair<Done, Status>> made_;
  bool is_abandoned_ = false;
  bool is_in_mpi_ = false;
  bool is_left_ = false;  // nobody waits for the thread
  bool has_ended_ = false;
};

void MpiFiles::Calls::enqueue(Own call, Done done) {
  {
    const std::lock_guard lock(mutex_);
    calls_.emplace_back(std::move(call), std::move(done));
  }
  changed_.notify_all();
}

void MpiFiles::Calls::run() {
  std::unique_lock lock(mutex_);
  GrowingPause pause(shortest_look, longest_look);
  while (!is_abandoned_) {
    if (calls_.empty() && appends_.empty()) {
      changed_.wait(lock);
      continue;
    }
    if (calls_.empty()) {
      lock.unlock();
      const bool moved = look_at_appends();
      lock.lock();
      if (moved) pause.moved();
      if (!moved && calls_.empty() && !is_abandoned_) changed_.wait_for(lock, pause.next());
      continue;
    }
    auto [call, done] = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    Status status = committed("a collective call on a file", [&] { return call(); });
    call = nullptr;  // frees the call's captures before its end is told
    lock.lock();
    made_.emplace_back(std::move(done), std::move(status));
    if (wake_ && !is_abandoned_) wake_();
  }
  lock.unlock();
  // The MPI uses the bytes of these. Nobody hears of their ends.
  for (Append& each : appends_) {
    wait_for_write(each);
    each.place.release();
  }
  lock.lock();
  has_ended_ = true;
  changed_.notify_all();
}

bool MpiFiles::Calls::abandon() {
  std::unique_lock lock(mutex_);
  is_abandoned_ = true;
  changed_.notify_all();
  const auto give_up = std::chrono::steady_clock::now() + patience_at_the_end;
  while (!has_ended_) {
    if (!is_in_mpi_)
      changed_.wait(lock);
    else if (changed_.wait_until(lock, give_up) == std::cv_status::timeout && is_in_mpi_)
      is_left_ = true;
    if (is_left_) return false;
  }
  return true;
}

bool MpiFiles::Calls::poll() {
  std::deque<std::pair<Done, Status>> made;
  {
    const std::lock_guard lock(mutex_);
    made.swap(made_);
  }
  for (const auto& [done, status] : made) done(status);
  return !made.empty();
}

/// Makes a call that blocks until the other processes make it, too. If nobody waits for this thread any more
/// when the call is over, the thread stays here until the process ends.
template <typename Call>
int MpiFiles::Calls::in_mpi(const Call& call) {
  {
    const std::lock_guard lock(mutex_);
    is_in_mpi_ = true;
  }
  const int code = call();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_left_; });
  is_in_mpi_ = false;
  changed_.notify_all();
  return code;
}

/// Blocks until the threads of all processes have come here. Processes that serve themselves hear of a call
/// only inside of their own calls of the library, which may be seconds later: so the thread sleeps. Returns
/// false if the call is abandoned.
bool MpiFiles::Calls::meet() {
  MPI_Request request = MPI_REQUEST_NULL;
  expect_success(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  return sleep_until([&] {
    int have_met = 0;
    expect_success(MPI_Test(&request, &have_met, MPI_STATUS_IGNORE), "MPI_Test");
    return have_met != 0;
  });
}

/// Sleeps until `over` returns true, and moves appends on meanwhile. Returns false if the call is abandoned.
template <typename Over>
bool MpiFiles::Calls::sleep_until(const Over& over) {
  GrowingPause pause(shortest_look, longest_look);
  while (!over()) {
    look_at_appends();
    {
      const std::lock_guard lock(mutex_);
      if (is_abandoned_) return false;
    }
    std::this_thread::sleep_for(pause.next());
  }
  return true;
}

bool MpiFiles::Calls::all_are(const Status& mine) {
  int ok = mine.is_ok() ? 1 : 0;
  expect_success(in_mpi([&] { return MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, comm_); }),
                 "MPI_Allreduce");
  return ok != 0;
}

Status MpiFiles::Calls::open_as(const std::string& path, const std::string& name, MPI_Info info,
                                OpenFile& file) {
  return file_status(
      in_mpi([&] { return MPI_File_open(file.comm, name.c_str(), MPI_MODE_RDWR, info, &file.file); }),
      "MPI_File_open", path);
}

/// All processes agree before and after the call of MPI: closing is collective, too, so a file must not be
/// open on some of them. A handle that only some have got is lost.
Status MpiFiles::Calls::open(const std::string& path, const Hints& hints, const Own& own, bool& is_open) {
  const Status looked = guarded([&] { return own(); });
  if (!meet()) return abandoned();
  if (!all_are(looked)) return looked;
  MPI_Info info = info_of(hints);
  OpenFile file;
  expect_success(in_mpi([&] { return MPI_Comm_dup(comm_, &file.comm); }), "MPI_Comm_dup");
  Status first;
  for (const std::string& name : names_for_mpi(path)) {
    const Status opened = open_as(path, name, info, file);
    if (first.is_ok()) first = opened;
    if (!all_are(opened)) continue;
    // Files inherit the handler of MPI_FILE_NULL, which the program may have changed.
    MPI_File_set_errhandler(file.file, MPI_ERRORS_RETURN);
    files_[path] = file;
    is_open = true;
    break;
  }
  MPI_Info_free(&info);
  if (!is_open) in_mpi([&] { return MPI_Comm_free(&file.comm); });
  return is_open ? Status() : first;
}

Status MpiFiles::Calls::write(const std::string& path, const std::vector<Run>& runs, int calls,
                              const Own& own) {
  const auto file = files_.find(path);
  if (file == files_.end()) return {Code::state, cat("write ", path, ": the servers have not opened it")};
  Status status = guarded([&] { return own(); });
  std::vector<Share> shares;
  if (status.is_ok()) shares = shares_of(runs);
  if (std::ssize(shares) > calls) {
    status = Status(Code::state, cat("write ", path, ": ", shares.size(),
                                     " calls are needed, and the servers make ", calls));
    shares.clear();
  }
  shares.resize(static_cast<std::size_t>(calls));
  if (!meet()) return abandoned();
  for (const Share& share : shares) {
    const Status written = file_status(in_mpi([&] { return write_share(file->second.file, share); }),
                                       "MPI_File_write_at_all", path);
    if (status.is_ok()) status = written;
  }
  return status;
}

/// Waits until the write of an append is over, or has not begun. `append.failed` tells what became of it.
void MpiFiles::Calls::wait_for_write(Append& append) {
  in_mpi([&] {
    GrowingPause pause(shortest_look, longest_look);
    while (!end_write(append.request, append.path, append.size, append.failed))
      std::this_thread::sleep_for(pause.next());
    return MPI_SUCCESS;
  });
}

/// Tells of appends that are over. Returns true if there was one.
bool MpiFiles::Calls::look_at_appends() {
  bool moved = false;
  for (auto append = appends_.begin(); append != appends_.end();) {
    Status status = append->failed;
    if (!end_write(append->request, append->path, append->size, status)) {
      ++append;
      continue;
    }
    append->place.release();
    {
      const std::lock_guard lock(mutex_);
      made_.emplace_back(std::move(append->done), std::move(status));
      if (wake_ && !is_abandoned_) wake_();
    }
    append = appends_.erase(append);
    moved = true;
  }
  return moved;
}

/// Waits until at most `most` appends of a file are under way. Returns false if the call is abandoned.
bool MpiFiles::Calls::wait_for_appends(const std::string& path, std::size_t most) {
  return sleep_until(
      [&] { return std::ranges::count(appends_, path, &Append::path) <= static_cast<std::ptrdiff_t>(most); });
}

/// Waits until no append is under way, before a call that all processes make. MPI demands it of the file's
/// own appends. While those of any file are under way, MPI_File_sync of Open MPI 4.1.4 (OMPIO) fails at once
/// on that process, and the others wait in it for ever.
bool MpiFiles::Calls::end_appends() {
  return sleep_until([&] { return appends_.empty(); });
}

/// Hands a write over while no other process moves the pointer. As soon as the write has begun, the pointer
/// stands behind it (MPI 4.0, 14.4.4): so the place of the write is known, and looked at.
Status MpiFiles::Calls::append_in_turn(MPI_File file, const std::string& path, Bytes offset, Append& append) {
  const auto expect = [&](Bytes place) -> Status {
    MPI_Offset found = -1;
    const int code = in_mpi([&] { return MPI_File_get_position_shared(file, &found); });
    TR_TRY(file_status(code, "MPI_File_get_position_shared", path));
    if (found == place) return {};
    return {Code::io, cat("append to ", path, ": the shared file pointer of the MPI is at ", found,
                          ", expected ", place, "; choose another method")};
  };
  TR_TRY(expect(offset));
  const WritePlace& place = append.place;
  append.failed =
      file_status(in_mpi([&] {
                    return MPI_File_iwrite_shared(file, place.base, place.count, place.type, &append.request);
                  }),
                  "MPI_File_iwrite_shared", path);
  const Status moved = expect(offset + append.size);
  return append.failed.is_ok() || moved.is_ok() ? moved : append.failed;
}

Status MpiFiles::Calls::append(const std::string& path, Bytes offset, const Run::Parts& parts, const Own& own,
                               Done& done) {
  const auto file = files_.find(path);
  if (file == files_.end()) return {Code::state, cat("append to ", path, ": the servers have not opened it")};
  TR_TRY(guarded([&] { return own(); }));
  if (!wait_for_appends(path, most_appends - 1)) return abandoned();
  Append& append =
      appends_.emplace_back(Append{.path = path, .size = size_of(parts), .place = place_of(parts)});
  const Status begun = append_in_turn(file->second.file, path, offset, append);
  if (begun.is_ok()) {
    append.done = std::move(done);
    return {};
  }
  wait_for_write(append);
  append.place.release();
  appends_.pop_back();
  return begun;
}

Status MpiFiles::Calls::seek(const std::string& path, Bytes offset) {
  const auto file = files_.find(path);
  if (file == files_.end()) return {Code::state, cat("seek in ", path, ": the servers have not opened it")};
  if (!end_appends() || !meet()) return abandoned();
  return file_status(in_mpi([&] { return MPI_File_seek_shared(file->second.file, offset, MPI_SEEK_SET); }),
                     "MPI_File_seek_shared", path);
}

/// Each process appends a few bytes in its turn, from a place on that is not the file's begin.
Status MpiFiles::Calls::append_in_turns(MPI_File file, const std::string& path) {
  constexpr Bytes size = 8;
  int me = 0, processes = 0;
  MPI_Comm_rank(comm_, &me);
  MPI_Comm_size(comm_, &processes);
  const std::vector<std::byte> bytes(static_cast<std::size_t>(size), std::byte{'a'});
  Status mine = file_status(in_mpi([&] { return MPI_File_seek_shared(file, size, MPI_SEEK_SET); }),
                            "MPI_File_seek_shared", path);
  // With many servers only the first of them and the last have a turn: each costs all of them a barrier.
  constexpr int most_turns = 16;
  for (int turn = 0; turn < std::min(processes, most_turns); ++turn) {
    const int whose = turn == most_turns - 1 ? processes - 1 : turn;
    if (!all_are(mine)) return mine;
    if (whose != me) continue;
    Append append{.path = path, .size = size, .place = place_of({bytes})};
    mine = append_in_turn(file, path, size * (turn + 1), append);
    wait_for_write(append);
    append.place.release();
    if (mine.is_ok()) mine = append.failed;
  }
  all_are(mine);
  return mine;
}

Status MpiFiles::Calls::try_appends(const std::string& path) {
  if (!meet()) return abandoned();
  MPI_Info info = info_of({});
  Status status;
  for (const std::string& name : names_for_trial(path)) {
    MPI_File file = MPI_FILE_NULL;
    const int mode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE;
    status = file_status(in_mpi([&] { return MPI_File_open(comm_, name.c_str(), mode, info, &file); }),
                         "MPI_File_open", path);
    const bool is_open = all_are(status);
    if (!is_open && !status.is_ok()) status = not_tried(status);
    if (!is_open) continue;
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    status = append_in_turns(file, path);
    const Status closed = file_status(in_mpi([&] { return MPI_File_close(&file); }), "MPI_File_close", path);
    if (status.is_ok()) status = closed;
    break;
  }
  MPI_Info_free(&info);
  // A process that has opened it where another could not cannot close it alone, so nothing has removed it.
  std::remove(path.c_str());
  return status;
}

Status MpiFiles::Calls::sync(const std::string& path, const Own& own) {
  const auto file = files_.find(path);
  if (file == files_.end()) return {Code::state, cat("sync ", path, ": the servers have not opened it")};
  if (!end_appends() || !meet()) return abandoned();
  const Status synced =
      file_status(in_mpi([&] { return MPI_File_sync(file->second.file); }), "MPI_File_sync", path);
  const Status mine = guarded([&] { return own(); });
  return synced.is_ok() ? mine : synced;
}

Status MpiFiles::Calls::close(const std::string& path, const Own& own) {
  auto file = files_.extract(path);
  Status closed;
  if (!file.empty()) {
    if (!end_appends() || !meet()) return abandoned();
    OpenFile& open = file.mapped();
    closed = file_status(in_mpi([&] { return MPI_File_close(&open.file); }), "MPI_File_close", path);
    in_mpi([&] { return MPI_Comm_free(&open.comm); });
  }
  const Status mine = guarded([&] { return own(); });
  return closed.is_ok() ? mine : closed;
}

Result<std::unique_ptr<CollectiveFiles>> MpiFiles::create(MPI_Comm comm, std::function<void()> wake) {
  std::unique_ptr<MpiFiles> files(new MpiFiles(std::make_shared<Calls>(comm, std::move(wake))));
  Result<std::thread> thread = start_thread([calls = files->calls_] { calls->run(); });
  if (!thread.is_ok()) return thread.status().in("no thread for collective calls can be started");
  files->thread_ = std::move(*thread);
  return std::unique_ptr<CollectiveFiles>(std::move(files));
}

MpiFiles::~MpiFiles() {
  if (!thread_.joinable()) return;
  if (calls_->abandon())
    thread_.join();
  else
    thread_.detach();
}

bool MpiFiles::poll() { return calls_->poll(); }

void MpiFiles::open(std::string path, Hints hints, Own own, Opened opened) {
  const auto is_open = std::make_shared<bool>(false);
  calls_->enqueue([&calls = *calls_, is_open, path = std::move(path), hints = std::move(hints),
                   own = std::move(own)] { return calls.open(path, hints, own, *is_open); },
                  [is_open, opened = std::move(opened)](const Status& status) { opened(status, *is_open); });
}

void MpiFiles::write(std::string path, std::vector<Run> runs, int calls, Own own, Done done) {
  calls_->enqueue([&to = *calls_, path = std::move(path), runs = std::move(runs), calls,
                   own = std::move(own)] { return to.write(path, runs, calls, own); },
                  std::move(done));
}

void MpiFiles::append(std::string path, Bytes offset, Run::Parts parts, Own own, Done started, Done done) {
  calls_->enqueue(
      [&to = *calls_, path = std::move(path), offset, parts = std::move(parts), own = std::move(own),
       done = std::move(done)]() mutable { return to.append(path, offset, parts, own, done); },
      std::move(started));
}

void MpiFiles::seek(std::string path, Bytes offset, Done done) {
  calls_->enqueue([&calls = *calls_, path = std::move(path), offset] { return calls.seek(path, offset); },
                  std::move(done));
}

void MpiFiles::try_appends(std::string path, Done done) {
  calls_->enqueue([&calls = *calls_, path = std::move(path)] { return calls.try_appends(path); },
                  std::move(done));
}

void MpiFiles::sync(std::string path, Own own, Done done) {
  calls_->enqueue(
      [&calls = *calls_, path = std::move(path), own = std::move(own)] { return calls.sync(path, own); },
      std::move(done));
}

void MpiFiles::close(std::string path, Own own, Done done) {
  calls_->enqueue(
      [&calls = *calls_, path = std::move(path), own = std::move(own)] { return calls.close(path, own); },
      std::move(done));
}

}  // namespace tailrace::comm
