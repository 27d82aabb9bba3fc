// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/file.hpp"

#include <cerrno>

#include "base/text.hpp"
#include "exchange/channel.hpp"

namespace tailrace::files {

namespace {

/// Small calls of an asynchronous file are gathered up to this size before they become a task.
constexpr std::size_t pending_bytes = std::size_t{64} << 10;

}  // namespace

File::File(Place place, std::string path, const Mode& mode)
    : place_(std::move(place)),
      path_(std::move(path)),
      mode_(mode),
      key_(place_.service->threads().new_key()),
      drawn_(place_.service->budget(), node::Use::stripes) {
  if (place_.group != nullptr) epoch_ = place_.group->new_epoch();
}

File::~File() {
  if (stream_.stream != nullptr && !adopted_) std::fclose(stream_.stream);
}

Result<std::unique_ptr<File>> File::open(Place place, const std::string& path, const Mode& mode,
                                         const std::optional<journal::Position>& from) {
  std::unique_ptr<File> file(new File(std::move(place), path, mode));
  int aggregators = 1;
  if (mode.parallel) {
    const Result<exchange::Channel*> channel = file->place_.group->channel(cat("tr_fopen(\"", path, "\")"));
    TR_TRY(channel.status());
    aggregators = (*channel)->aggregators();
  }
  Status mine;
  if (file->holds_stream()) {
    // The tasks of other aggregators know nothing of the tasks here.
    Result<CStream> stream = guarded([&] {
      return open_stream(file->place_.service->target(), path, mode, mode.async && aggregators == 1, from,
                         file->place_.service->journals());
    });
    mine = stream.status();
    if (stream.is_ok()) file->stream_ = std::move(*stream);
  }
  TR_TRY(file->agree(cat("tr_fopen(\"", path, "\", \"", mode.for_libc(), "\")"), mine));
  if (mode.parallel) file->shared_ = file->stream_.file;
  if (file->stream_.file != nullptr && mode.access != Mode::Access::append)
    file->position_ = from ? from->position : 0;
  if (aggregators > 1) TR_TRY(file->open_shared());
  if (mode.local && from)
    TR_TRY(guarded([&] { return bring_back_sidecar(file->place_.service->target(), *from); }));
  if (mode.local) file->sidecar_ = read_sidecar(file->place_.service->target(), path, mode, from);
  return file;
}

/// The other aggregators open the file that the I/O rank has made.
Status File::open_shared() {
  const exchange::Channel& channel = **place_.group->channel("tr_fopen");
  Status mine;
  if (!holds_stream() && channel.own(channel.aggregators())) {
    const storage::OpenMode how = mode_.writes() ? storage::OpenMode::existing : storage::OpenMode::read;
    Result<std::unique_ptr<storage::File>> file =
        guarded([&] { return place_.service->target().open(path_, how); });
    mine = file.status();
    if (file.is_ok()) shared_ = std::make_shared<journal::LastingFile>(std::move(*file));
  }
  return agree(cat("tr_fopen(\"", path_, "\") on the aggregators"), mine);
}

std::unique_ptr<File> File::adopt(Place place, const std::string& name, const Mode& mode, std::FILE* stream) {
  std::unique_ptr<File> file(new File(std::move(place), name, mode));
  file->adopted_ = true;
  if (file->holds_stream()) file->stream_.stream = stream;
  return file;
}

Status File::agree(const std::string& call, Status mine) {
  if (place_.group == nullptr) return mine;
  return place_.group->agree({mine.at({-1, -1, place_.rank}), cat(call, " of file ", epoch_), {}}).status;
}

/// Runs after the tasks of array calls: the rank that holds the stream hears whether any of them failed.
Status File::agree_on_tasks(const std::string& call, const Status& mine) {
  if (place_.group == nullptr) return mine;
  Packer told;
  if (task_failed_.exchange(false)) told.put(std::int32_t{1});
  const comm::Verdict verdict =
      place_.group->agree({mine.at({-1, -1, place_.rank}), cat(call, " of file ", epoch_), told.take()});
  for (const ByteVector& said : verdict.contributions) {
    if (!said.empty()) failed_beside_ = true;
  }
  return verdict.status;
}

/// Queues the cut of a file that was opened uncut. It has to come before any other task.
void File::queue_cut() {
  if (!std::exchange(stream_.is_uncut, false)) return;
  cutting_ = true;
  place_.service->threads().submit(key_, [this] {
    note(stream_.file->truncate(0));
    cutting_ = false;
  });
}

void File::wait_for_tasks(const std::string& call) {
  queue_cut();
  send_pending();
  const executor::Threads& threads = place_.service->threads();
  if (threads.is_idle(key_)) return;
  place_.service->session().wait([&] { return threads.is_idle(key_); },
                                 cat("the asynchronous operations on ", path_, " in ", call));
}

/// Waits until all bytes that asynchronous array calls read are where they belong.
void File::wait_for_deliveries(const std::string& call) {
  if (place_.group == nullptr || !place_.group->has_channel()) return;
  const exchange::Channel& channel = **place_.group->channel("tr_fopen");
  if (channel.is_idle()) return;
  place_.group->wait([&] { return channel.is_idle(); }, cat("what ", call, " reads"));
}

/// Collective. Nobody goes on before the aggregators have done what array calls left to them.
Status File::drain(const std::string& call) {
  wait_for_tasks(call);
  outstanding_ = false;
  return agree_on_tasks(call, {});
}

Outcome File::ask(const std::string& call, const Operation& operation) {
  if (const Status over = before_move(call); !over.is_ok()) return {-1, EINVAL, {}, over.text()};
  Outcome outcome;
  if (holds_stream()) {
    wait_for_tasks(call);
    position_.reset();
    if (place_.group == nullptr || !place_.group->line().ended())
      outcome = attempted([&] { return operation(stream_.stream); });
  }
  if (place_.group == nullptr) return outcome;
  return place_.group->share(std::move(outcome), call);
}

void File::run_or_queue(std::function<void()> task) {
  queue_cut();
  if (mode_.async)
    place_.service->threads().submit(key_, std::move(task));
  else
    task();
}

void File::tell(Operation operation) {
  if (!holds_stream()) return;
  send_pending();
  position_.reset();
  run_or_queue([this, operation = std::move(operation)] { note(operation(stream_.stream)); });
}

void File::tell_bytes(std::span<const std::byte> bytes) {
  if (!holds_stream()) return;
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  if (!mode_.async || pending_.size() >= pending_bytes) send_pending();
}

void File::send_pending() {
  if (pending_.empty()) return;
  position_.reset();
  run_or_queue([this, bytes = std::exchange(pending_, {})] {
    if (!unheard_failure().is_ok()) return;
    errno = 0;
    const std::size_t written = std::fwrite(bytes.data(), 1, bytes.size(), stream_.stream);
    if (written != bytes.size()) note(Outcome{-1, errno, {}});
  });
}

void File::note(const Outcome& outcome) {
  if (outcome.error != 0) note(io_error("write", path_, outcome.error));
}

void File::note(const Status& status) {
  const std::lock_guard lock(failure_mutex_);
  failure_ = first_cause(failure_, status.at({-1, -1, place_.rank}));
}

/// Returns a failure that nobody was told of. Bytes written behind it would lie in the wrong place.
Status File::unheard_failure() {
  if (!mode_.async) return {};
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

Status File::take_failure() {
  const std::lock_guard lock(failure_mutex_);
  return std::exchange(failure_, Status());
}

Status File::flush_stream(bool durable) {
  if (stream_.stream == nullptr) return {};
  errno = 0;
  if (std::fflush(stream_.stream) != 0) return io_error("write", path_, errno);
  if (!durable || stream_.file == nullptr || !mode_.writes()) return {};
  TR_TRY(stream_.file->sync());
  return place_.service->target().sync_directory_of(path_);
}

Status File::close_stream() {
  if (stream_.stream == nullptr) return {};
  if (adopted_)
    return mode_.writes() ? flush_stream(false) : Status();  // the program goes on with the
                                                             // stream
  errno = 0;
  const int code = std::fclose(std::exchange(stream_.stream, nullptr));
  return code == 0 ? Status() : io_error("close", path_, errno);
}

/// Ends what the calls without result left behind, then does `end`. The first failure counts.
Status File::finish(const std::string& call, const std::function<Status()>& end) {
  wait_for_tasks(call);
  wait_for_deliveries(call);
  outstanding_ = false;
  Status mine = take_failure();
  const Status ended = guarded(end);
  if (mine.is_ok()) mine = ended;
  return agree_on_tasks(call, mine.in(call));
}

Status File::wait() {
  return finish(cat("tr_fwait(", path_, ")"), [] { return Status(); });
}

Status File::flush(bool durable) {
  return finish(cat("tr_fflush(", path_, ")"), [&] {
    TR_TRY(flush_stream(durable));
    return durable && opened_beside() && mode_.writes() ? shared_->sync() : Status();
  });
}

Status File::close() {
  return finish(cat("tr_fclose(", path_, ")"), [&] {
    Status closed = close_stream();
    if (opened_beside()) {
      const Status ours = std::exchange(shared_, nullptr)->close();
      if (closed.is_ok()) closed = ours;
    }
    return closed.is_ok() ? store_sidecar() : closed;
  });
}

Status File::store_sidecar() {
  if (!mode_.local || !mode_.writes()) return {};
  storage::Target& target = place_.service->target();
  if (place_.service->journals().has(path_)) {
    const Result<std::string> text = sidecar_text(target, path_);
    TR_TRY(text.status());
    TR_TRY(place_.service->journals().keep_sidecar(path_, *text));
  }
  if (sidecar_.entries.empty() && mode_.access == Mode::Access::write) return remove_sidecar(target, path_);
  return write_sidecar(target, path_, sidecar_);
}

}  // namespace tailrace::files
