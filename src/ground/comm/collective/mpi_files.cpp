// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/collective/mpi_files.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>

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

/// ROMIO takes what stands before a colon for the kind of the file system. "ufs:" is any POSIX file system,
/// and ROMIO takes it off.
std::string name_for_mpi(const std::string& path) {
#ifndef OPEN_MPI
  if (path.find(':') != std::string::npos) return cat("ufs:", path);
#endif
  return path;
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

}  // namespace

Result<std::unique_ptr<CollectiveFiles>> MpiFiles::create(MPI_Comm comm, std::function<void()> wake) {
  std::unique_ptr<MpiFiles> files(new MpiFiles(comm, std::move(wake)));
  Result<std::thread> thread = start_thread([self = files.get()] { self->run(); });
  if (!thread.is_ok()) return thread.status().in("no thread for collective calls can be started");
  files->thread_ = std::move(*thread);
  return std::unique_ptr<CollectiveFiles>(std::move(files));
}

MpiFiles::~MpiFiles() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  queued_.notify_one();
  thread_.join();
}

void MpiFiles::enqueue(Own call, Done done) {
  {
    const std::lock_guard lock(mutex_);
    calls_.emplace_back(std::move(call), std::move(done));
  }
  queued_.notify_one();
}

void MpiFiles::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [this] { return stopping_ || !calls_.empty(); });
    if (calls_.empty()) return;
    auto [call, done] = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    Status status = committed("a collective call on a file", [&] { return call(); });
    call = nullptr;  // frees the call's captures before its end is told
    lock.lock();
    made_.emplace_back(std::move(done), std::move(status));
    if (wake_) wake_();
  }
}

bool MpiFiles::poll() {
  std::deque<std::pair<Done, Status>> made;
  {
    const std::lock_guard lock(mutex_);
    made.swap(made_);
  }
  for (const auto& [done, status] : made) done(status);
  return !made.empty();
}

/// Blocks until the threads of all processes have come here. Processes that serve themselves hear of a call
/// only inside of their own calls of the library, which may be seconds later: so the thread sleeps.
void MpiFiles::meet() const {
  using std::chrono::microseconds;
  MPI_Request request = MPI_REQUEST_NULL;
  expect_success(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  GrowingPause pause(microseconds(20), microseconds(1000));
  for (int have_met = 0; have_met == 0;) {
    expect_success(MPI_Test(&request, &have_met, MPI_STATUS_IGNORE), "MPI_Test");
    if (have_met == 0) std::this_thread::sleep_for(pause.next());
  }
}

void MpiFiles::open(std::string path, Hints hints, Own own, Done done) {
  enqueue([this, path = std::move(path), hints = std::move(hints),
           own = std::move(own)] { return open_now(path, hints, own); },
          std::move(done));
}

/// All processes agree before and after the call of MPI: closing is collective, too, so a file must not be
/// open on some of them. A handle that only some have got is lost.
Status MpiFiles::open_now(const std::string& path, const Hints& hints, const Own& own) {
  const auto all_are = [this](const Status& mine) {
    int ok = mine.is_ok() ? 1 : 0;
    expect_success(MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, comm_), "MPI_Allreduce");
    return ok != 0;
  };
  const Status looked = guarded([&] { return own(); });
  meet();
  if (!all_are(looked)) return looked;
  MPI_Info info = info_of(hints);
  MPI_File file = MPI_FILE_NULL;
  const Status opened = file_status(
      MPI_File_open(comm_, name_for_mpi(path).c_str(), MPI_MODE_RDWR, info, &file), "MPI_File_open", path);
  MPI_Info_free(&info);
  if (!all_are(opened)) return opened;
  files_[path] = file;
  return {};
}

void MpiFiles::write(std::string path, std::vector<Run> runs, int calls, Own own, Done done) {
  enqueue([this, path = std::move(path), runs = std::move(runs), calls,
           own = std::move(own)] { return write_now(path, runs, calls, own); },
          std::move(done));
}

Status MpiFiles::write_now(const std::string& path, const std::vector<Run>& runs, int calls, const Own& own) {
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
  meet();
  for (const Share& share : shares) {
    const Status written = file_status(write_share(file->second, share), "MPI_File_write_at_all", path);
    if (status.is_ok()) status = written;
  }
  return status;
}

void MpiFiles::sync(std::string path, Own own, Done done) {
  enqueue(
      [this, path = std::move(path), own = std::move(own)]() -> Status {
        const auto file = files_.find(path);
        if (file == files_.end())
          return {Code::state, cat("sync ", path, ": the servers have not opened it")};
        meet();
        const Status synced = file_status(MPI_File_sync(file->second), "MPI_File_sync", path);
        const Status mine = guarded([&] { return own(); });
        return synced.is_ok() ? mine : synced;
      },
      std::move(done));
}

void MpiFiles::close(std::string path, Own own, Done done) {
  enqueue(
      [this, path = std::move(path), own = std::move(own)]() -> Status {
        auto file = files_.extract(path);
        Status closed;
        if (!file.empty()) {
          meet();
          closed = file_status(MPI_File_close(&file.mapped()), "MPI_File_close", path);
        }
        const Status mine = guarded([&] { return own(); });
        return closed.is_ok() ? mine : closed;
      },
      std::move(done));
}

}  // namespace tailrace::comm
