// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/collective/mpi_files.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <map>
#include <mutex>

#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/base/waiting.hpp"
#include "ground/comm/end_job.hpp"

namespace tailrace::comm {

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

/// Writes one share, or takes part without bytes. The parts lie anywhere in memory: a datatype describes them
/// from the lowest address on, and nothing is copied here.
int write_share(MPI_File file, const Share& share) {
  MPI_Status status;
  if (share.parts.empty()) return MPI_File_write_at_all(file, 0, nullptr, 0, MPI_BYTE, &status);
  const std::byte* base = share.parts.front().data();
  for (const auto& part : share.parts) base = std::min(base, part.data(), std::less<>());
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  for (const auto& part : share.parts) {
    lengths.push_back(static_cast<int>(part.size()));
    places.push_back(static_cast<MPI_Aint>(reinterpret_cast<std::uintptr_t>(part.data()) -
                                           reinterpret_cast<std::uintptr_t>(base)));
  }
  if (lengths.size() == 1)
    return MPI_File_write_at_all(file, share.offset, base, lengths.front(), MPI_BYTE, &status);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  expect_success(MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(),
                                          MPI_BYTE, &type),
                 "MPI_Type_create_hindexed");
  expect_success(MPI_Type_commit(&type), "MPI_Type_commit");
  const int code = MPI_File_write_at_all(file, share.offset, base, 1, type, &status);
  MPI_Type_free(&type);
  return code;
}

/// How long a process that goes waits for a call of MPI to end: longer than a write of a round should take.
constexpr std::chrono::seconds patience_at_the_end(5);

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
  Status sync(const std::string& path, const Own& own);
  Status close(const std::string& path, const Own& own);

 private:
  template <typename Call>
  int in_mpi(const Call& call);
  [[nodiscard]] bool meet();
  bool all_are(const Status& mine);
  Status open_as(const std::string& path, const std::string& name, MPI_Info info, MPI_File& file);

  const MPI_Comm comm_;
  const std::function<void()> wake_;
  std::map<std::string, MPI_File> files_;  // the thread alone uses it
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
  while (!is_abandoned_) {
    if (calls_.empty()) {
      changed_.wait(lock);
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
  using std::chrono::microseconds;
  MPI_Request request = MPI_REQUEST_NULL;
  expect_success(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  GrowingPause pause(microseconds(20), microseconds(1000));
  for (int have_met = 0; have_met == 0;) {
    expect_success(MPI_Test(&request, &have_met, MPI_STATUS_IGNORE), "MPI_Test");
    if (have_met != 0) break;
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
                                MPI_File& file) {
  file = MPI_FILE_NULL;
  return file_status(in_mpi([&] { return MPI_File_open(comm_, name.c_str(), MPI_MODE_RDWR, info, &file); }),
                     "MPI_File_open", path);
}

/// All processes agree before and after the call of MPI: closing is collective, too, so a file must not be
/// open on some of them. A handle that only some have got is lost.
Status MpiFiles::Calls::open(const std::string& path, const Hints& hints, const Own& own, bool& is_open) {
  const Status looked = guarded([&] { return own(); });
  if (!meet()) return abandoned();
  if (!all_are(looked)) return looked;
  MPI_Info info = info_of(hints);
  Status first;
  for (const std::string& name : names_for_mpi(path)) {
    MPI_File file = MPI_FILE_NULL;
    const Status opened = open_as(path, name, info, file);
    if (first.is_ok()) first = opened;
    if (!all_are(opened)) continue;
    // Files inherit the handler of MPI_FILE_NULL, which the program may have changed.
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    files_[path] = file;
    is_open = true;
    break;
  }
  MPI_Info_free(&info);
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
    const Status written =
        file_status(in_mpi([&] { return write_share(file->second, share); }), "MPI_File_write_at_all", path);
    if (status.is_ok()) status = written;
  }
  return status;
}

Status MpiFiles::Calls::sync(const std::string& path, const Own& own) {
  const auto file = files_.find(path);
  if (file == files_.end()) return {Code::state, cat("sync ", path, ": the servers have not opened it")};
  if (!meet()) return abandoned();
  const Status synced =
      file_status(in_mpi([&] { return MPI_File_sync(file->second); }), "MPI_File_sync", path);
  const Status mine = guarded([&] { return own(); });
  return synced.is_ok() ? mine : synced;
}

Status MpiFiles::Calls::close(const std::string& path, const Own& own) {
  auto file = files_.extract(path);
  Status closed;
  if (!file.empty()) {
    if (!meet()) return abandoned();
    closed = file_status(in_mpi([&] { return MPI_File_close(&file.mapped()); }), "MPI_File_close", path);
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
