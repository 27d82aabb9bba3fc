// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/file.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "engine/exchange/channel.hpp"
#include "ground/base/text.hpp"

namespace tailrace::files {

File::File(const Owner& owner, const std::string& path, const Mode& mode)
    : opened_{owner, path, mode, owner.group != nullptr ? owner.group->new_epoch() : 0} {}

Result<std::unique_ptr<File>> File::open(const Owner& owner, const std::string& path, const Mode& mode,
                                         const std::optional<journal::Position>& from) {
  std::unique_ptr<File> file(new File(owner, path, mode));
  Service& service = *file->owner().service;
  const exchange::Channel* channel = nullptr;
  if (mode.parallel) {
    const Result<exchange::Channel*> found = file->owner().group->channel(cat("tr_fopen(\"", path, "\")"));
    TR_TRY(found.status());
    channel = *found;
  }
  Status mine;
  if (file->holds_stream()) {
    // Only if there is no other aggregator: its tasks would not wait for the task here that cuts the file.
    const bool may_be_uncut = mode.async && (channel == nullptr || channel->aggregators() == 1);
    Result<CStream> stream = guarded(
        [&] { return open_stream(service.target(), path, mode, may_be_uncut, from, service.journals()); });
    mine = stream.status();
    if (stream.is_ok()) file->stream_.take(std::move(*stream), from ? from->position : 0);
  }
  TR_TRY(file->opened_.agree(cat("tr_fopen(\"", path, "\", \"", mode.for_libc(), "\")"), mine).status);
  if (channel != nullptr && channel->aggregators() > 1) TR_TRY(file->open_beside(*channel));
  if (mode.local) TR_TRY(file->local_arrays_.open(from));
  return file;
}

/// Collective. The other aggregators open the file that the I/O rank has made.
Status File::open_beside(const exchange::Channel& channel) {
  Status mine;
  if (!holds_stream() && channel.own(channel.aggregators())) {
    const storage::OpenMode how = mode().writes() ? storage::OpenMode::existing : storage::OpenMode::read;
    Result<std::unique_ptr<storage::File>> file =
        guarded([&] { return owner().service->target().open(path(), how); });
    mine = file.status();
    CStream beside;
    if (file.is_ok()) beside.file = std::make_shared<journal::LastingFile>(std::move(*file));
    stream_.take(std::move(beside), 0);
  }
  return opened_.agree(cat("tr_fopen(\"", path(), "\") on the aggregators"), mine).status;
}

std::unique_ptr<File> File::adopt(const Owner& owner, const std::string& name, const Mode& mode,
                                  std::FILE* stream) {
  std::unique_ptr<File> file(new File(owner, name, mode));
  CStream adopted;
  adopted.is_adopted = true;
  if (file->holds_stream()) adopted.stream = stream;
  file->stream_.take(std::move(adopted), 0);
  return file;
}

Outcome File::ask(const std::string& call, const Operation& operation) {
  if (const Status over = before_move(call); !over.is_ok()) return {-1, EINVAL, {}, over.text()};
  Group* const group = owner().group.get();
  Outcome outcome;
  if (holds_stream()) {
    stream_.wait_for_tasks(call);
    stream_.forget_position();
    if (group == nullptr || !group->line().ended())
      outcome = attempted([&] { return operation(stream_.c_stream().stream); });
  }
  return group == nullptr ? outcome : group->share(std::move(outcome), call);
}

Status File::before_move(const std::string& call) {
  if (!array_calls_.are_outstanding()) return {};
  stream_.wait_for_tasks(call);
  return array_calls_.agree_on_tasks(call, {});
}

ArrayOutcome File::move_arrays(const std::string& name, std::span<const Array> arrays, Direction direction,
                               const Status& mine, const std::shared_ptr<const Framing>& framing) {
  return owner().group == nullptr ? local_arrays_.move(name, arrays, direction, mine, framing)
                                  : array_calls_.move(name, arrays, direction, mine, framing);
}

bool File::reads_to_all(Bytes bytes) const {
  return owner().group != nullptr && owner().group->size() > 1 && !mode().async && bytes > 0 &&
         bytes >= owner().service->settings().parallel_threshold;
}

ArrayOutcome File::read_to_all(const std::string& name, std::span<std::byte> memory, const Status& mine,
                               const std::shared_ptr<const Framing>& framing) {
  Result<layout::Layout> layout = Status(Code::memory, "no memory for a layout");
  // A rank that finds no memory here still takes part in the vote.
  const Status laid_out = guarded([&] {
    layout = layout::Layout::replicated({std::ssize(memory)}, owner().group->size());
    return layout.status();
  });
  Array array;
  array.data = memory.data();
  array.type = ElementType::i8;
  if (laid_out.is_ok()) array.layout = &*layout;
  return array_calls_.move(name, {&array, 1}, Direction::read, mine.is_ok() ? laid_out : mine, framing);
}

/// Collective. Waits for the tasks of calls without a result, then does `end`. Returns the first failure.
Status File::finish(const std::string& call, const std::function<Status()>& end) {
  array_calls_.wait(call);
  Status mine = stream_.tasks().take_failure();
  const Status ended = guarded(end);
  if (mine.is_ok()) mine = ended;
  return array_calls_.agree_on_tasks(call, mine.in(call));
}

Status File::wait() {
  return finish(cat("tr_fwait(", path(), ")"), [] { return Status(); });
}

Status File::flush(bool durable) {
  return finish(cat("tr_fflush(", path(), ")"), [&] { return stream_.flush(durable); });
}

Status File::close() {
  return finish(cat("tr_fclose(", path(), ")"), [&] {
    const Status closed = stream_.close();
    return closed.is_ok() ? local_arrays_.store_sidecar() : closed;
  });
}

Status File::rest() {
  const std::string call = cat("a save, which brings ", path(), " to rest");
  array_calls_.wait(call);
  Status mine = stream_.tasks().take_failure();
  std::FILE* const stream = stream_.c_stream().stream;
  errno = 0;
  // A stream that is being read is not flushed: fflush would take back what ungetc has given.
  if (mine.is_ok() && stream != nullptr && flush_before_seek(stream) != 0)
    mine = io_error("write", path(), errno);
  if (mine.is_ok()) mine = local_arrays_.store_sidecar();
  return mine.in(path()).at({-1, -1, owner().rank});
}

Result<journal::Position> File::position(journal::Overwritten overwritten) {
  const CStream& held = stream_.c_stream();
  const off_t position = ::ftello(held.stream);
  if (position < 0) return io_error("ftell", path(), errno);
  const Result<Bytes> size = held.file->size();
  TR_TRY(size.status());
  const std::optional<Bytes> at = held.growth->overwritten_at();
  if (at && overwritten == journal::Overwritten::refuse) {
    return Status(
        Code::state,
        cat(path(), " was written over at byte ", *at,
            ": a checkpoint records only files that grow, since others cannot be brought back to what "
            "they were. Save with overwritten=journal, close it before the save, or write what changes to "
            "a file that is made anew"));
  }
  // This rank may not see the file as long yet as other aggregators have made it, so the end that Growth
  // knows counts, too.
  return journal::Position{path(), position, std::max(*size, held.growth->end()), false};
}

void File::write_over(Bytes position, ByteVector bytes) {
  stream_.tell([this, position, bytes = std::move(bytes)](std::FILE* stream) {
    if (!stream_.tasks().unheard_failure().is_ok()) return Outcome();
    bool failed = !seek_to(stream, position);
    if (!failed) {
      std::optional<journal::Growth::Completing> completing;
      if (has_position()) completing.emplace(*stream_.c_stream().growth);
      failed = std::fwrite(bytes.data(), 1, bytes.size(), stream) < bytes.size() || std::fflush(stream) != 0;
    }
    return Outcome{0, failed ? (errno != 0 ? errno : EIO) : 0, {}};
  });
}

void File::forget(Bytes from) {
  stream_.tell([this, from](std::FILE* stream) {
    flush_before_seek(stream);
    if (has_position()) stream_.c_stream().growth->forget(from);
    return Outcome();
  });
}

Status File::cut(Bytes size) {
  Service& service = *owner().service;
  if (const CStream& held = stream_.c_stream(); held.growth) {
    TR_TRY(service.journals().keep(path(), *held.file, size, std::numeric_limits<Bytes>::max()));
    held.growth->cut(size);
  }
  const Result<std::unique_ptr<storage::File>> file =
      service.target().open(path(), storage::OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY((*file)->truncate(size));
  return (*file)->close();
}

}  // namespace tailrace::files
