// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/file_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ground/base/text.hpp"

namespace tailrace::files {

namespace {

/// Small calls of an asynchronous file are gathered up to this size before they become a task.
constexpr std::size_t pending_bytes = std::size_t{64} << 10;

/// Makes feof() true if the stream stands at the end of its file, or behind it.
void find_end(std::FILE* stream) {
  if (const int found = std::fgetc(stream); found != EOF) std::ungetc(found, stream);
}

}  // namespace

void Tasks::begin() {
  if (!first_) return;
  file_.owner.service->threads().submit(key_,
                                        [this, task = std::exchange(first_, nullptr)] { attempt(task); });
}

void Tasks::run(std::function<void()> task) {
  begin();
  if (file_.mode.async)
    file_.owner.service->threads().submit(key_, [this, task = std::move(task)] { attempt(task); });
  else
    attempt(task);
}

void Tasks::attempt(const std::function<void()>& task) {
  note(guarded([&]() -> Status {
    task();
    return {};
  }));
}

void Tasks::wait(const std::string& call) {
  begin();
  executor::Threads& threads = file_.owner.service->threads();
  if (threads.is_idle(key_)) return;
  threads.hasten(key_);
  file_.owner.service->session().wait([&] { return threads.is_idle(key_); },
                                      cat("the asynchronous operations on ", file_.path, " in ", call));
}

void Tasks::note(const Outcome& outcome) {
  if (outcome.error == 0) return;
  note(outcome.text.empty() ? io_error("write", file_.path, outcome.error)
                            : Status(Code::io, cat(file_.path, ": ", outcome.text), outcome.error));
}

void Tasks::note(const Status& status) {
  const std::lock_guard lock(mutex_);
  failure_ = first_cause(failure_, status.at({-1, -1, file_.owner.rank}));
}

void Tasks::note_moved(const Status& status, Bytes got, Bytes wanted) {
  note(status);
  if (got >= wanted) return;
  note(Status(Code::io,
              cat(file_.path, " ended after ", got, " of the ", counted(wanted, "byte"), " of an array"),
              ended_with_file));
}

Status Tasks::unheard_failure() {
  if (!file_.mode.async) return {};
  const std::lock_guard lock(mutex_);
  return failure_;
}

Status Tasks::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, Status());
}

FileStream::~FileStream() {
  if (c_stream_.stream != nullptr && !c_stream_.is_adopted) std::fclose(c_stream_.stream);
}

void FileStream::take(CStream opened, Bytes position) {
  c_stream_ = std::move(opened);
  if (c_stream_.file != nullptr && file_.mode.access != Mode::Access::append) position_ = position;
  cutting_ = c_stream_.is_uncut;
  if (!c_stream_.is_uncut) return;
  tasks_.begin_with([this] {
    tasks_.note(c_stream_.file->truncate(0));
    cutting_ = false;
  });
}

void FileStream::tell(Operation operation) {
  if (!file_.holds_stream()) return;
  send_pending();
  position_.reset();
  tasks_.run([this, operation = std::move(operation)] {
    errno = 0;
    tasks_.note(operation(c_stream_.stream));
  });
}

void FileStream::tell_bytes(std::span<const std::byte> bytes) {
  if (!file_.holds_stream()) return;
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  if (!file_.mode.async || pending_.size() >= pending_bytes) send_pending();
}

void FileStream::send_pending() {
  if (pending_.empty()) return;
  position_.reset();
  tasks_.run([this, bytes = std::exchange(pending_, {})] {
    if (!tasks_.unheard_failure().is_ok()) return;
    errno = 0;
    const std::size_t written = std::fwrite(bytes.data(), 1, bytes.size(), c_stream_.stream);
    if (written != bytes.size()) tasks_.note(Outcome{-1, errno, {}});
  });
}

void FileStream::wait_for_tasks(const std::string& call) {
  send_pending();
  tasks_.wait(call);
}

void FileStream::clear_failure() {
  std::clearerr(c_stream_.stream);
  failed_beside_ = false;
}

Result<Bytes> FileStream::position_of_stream(Direction direction) {
  if (c_stream_.file == nullptr) {
    return Status(Code::argument,
                  cat(file_.path, " has no positions: open it without p, in the serial mode"));
  }
  errno = 0;
  if (std::fflush(c_stream_.stream) != 0) return io_error("write", file_.path, errno);
  if (c_stream_.least_end && direction == Direction::write) {
    const Result<Bytes> size = c_stream_.file->size();
    TR_TRY(size.status());
    return std::max(*size, c_stream_.least_end->load());
  }
  const off_t position = ::ftello(c_stream_.stream);
  if (position < 0) return io_error("ftell", file_.path, errno);
  return Bytes{position};
}

Result<Bytes> FileStream::find_position(const std::string& call, Direction direction) {
  send_pending();  // this moves the position
  if (position_ && (!c_stream_.least_end || position_for_ == direction)) return *position_;
  wait_for_tasks(call);
  const Result<Bytes> position = position_of_stream(direction);
  if (position.is_ok()) will_stand_at(*position, direction);
  return position;
}

void FileStream::will_stand_at(Bytes position, Direction direction) {
  position_ = position;
  position_for_ = direction;
}

void FileStream::move_to(Bytes position, Direction direction, bool is_end) {
  will_stand_at(position, direction);
  if (c_stream_.least_end && direction == Direction::write) *c_stream_.least_end = position;
  tasks_.run([this, position, is_end] {
    std::FILE* const stream = c_stream_.stream;
    if (!seek_to(stream, position))
      tasks_.note(io_error("seek", file_.path, errno));
    else if (is_end)
      find_end(stream);
  });
}

void FileStream::stop_short(const Status& status, Bytes begin) {
  if (status.is_ok()) {
    std::FILE* const stream = c_stream_.stream;
    flush_before_seek(stream);
    ::fseeko(stream, 0, SEEK_END);
    if (::ftello(stream) < begin) ::fseeko(stream, begin, SEEK_SET);
    find_end(stream);
  } else {
    failed_beside_ = true;
    if (c_stream_.least_end) *c_stream_.least_end = 0;  // the file's own end counts
  }
  position_.reset();
}

Result<Bytes> FileStream::end_to_read() const {
  const Bytes written = c_stream_.growth ? c_stream_.growth->end() : 0;
  if (cutting_) return written;
  const Result<Bytes> size = c_stream_.file->size();
  TR_TRY(size.status());
  return std::max(*size, written);
}

exchange::WriteBytes FileStream::writer(bool parallel) {
  return [this, parallel](std::span<const std::byte> bytes, Bytes offset) -> Status {
    TR_TRY(parallel ? c_stream_.file->write(bytes, offset) : tasks_.unheard_failure());
    errno = 0;
    if (!parallel && std::fwrite(bytes.data(), 1, bytes.size(), c_stream_.stream) != bytes.size())
      return io_error("write", file_.path, errno);
    // The device begins to write now, while nobody waits for it. Otherwise ext4 would begin that when a file
    // that had been cut is closed, and the program would wait for it (auto_da_alloc in ext4(5)).
    if (file_.mode.async && c_stream_.file != nullptr) c_stream_.file->begin_write_back();
    return {};
  };
}

exchange::ReadBytes FileStream::reader(bool parallel) {
  return [this, parallel](std::span<std::byte> bytes, Bytes offset) -> Result<Bytes> {
    if (parallel) return c_stream_.file->read(bytes, offset);
    errno = 0;
    const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), c_stream_.stream);
    if (got < bytes.size() && std::ferror(c_stream_.stream) != 0) return io_error("read", file_.path, errno);
    return static_cast<Bytes>(got);
  };
}

Status FileStream::flush(bool durable) {
  std::FILE* const stream = c_stream_.stream;
  errno = 0;
  if (stream != nullptr && std::fflush(stream) != 0) return io_error("write", file_.path, errno);
  if (!durable || c_stream_.file == nullptr || !file_.mode.writes()) return {};
  TR_TRY(c_stream_.file->sync());
  return stream != nullptr ? file_.owner.service->target().sync_directory_of(file_.path) : Status();
}

Status FileStream::close() {
  if (!file_.holds_stream() && c_stream_.file != nullptr)
    return std::exchange(c_stream_.file, nullptr)->close();
  if (c_stream_.stream == nullptr) return {};
  if (c_stream_.is_adopted) return file_.mode.writes() ? flush(false) : Status();
  errno = 0;
  const int code = std::fclose(std::exchange(c_stream_.stream, nullptr));
  return code == 0 ? Status() : io_error("close", file_.path, errno);
}

}  // namespace tailrace::files
