// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/local_arrays.hpp"

#include <algorithm>

#include "ground/base/text.hpp"

namespace tailrace::files {

namespace {

/// A local file is written and read this many bytes at a time.
constexpr Bytes most_at_once = Bytes{2} << 20;

}  // namespace

Status LocalArrays::open(const std::optional<journal::Position>& from) {
  storage::Target& target = file_.owner.service->target();
  if (from) TR_TRY(guarded([&] { return bring_back_sidecar(target, *from); }));
  sidecar_ = read_sidecar(target, file_.path, file_.mode, from);
  return {};
}

Status LocalArrays::store_sidecar() {
  if (!file_.mode.local || !file_.mode.writes()) return {};
  Service& service = *file_.owner.service;
  if (service.journals().has(file_.path)) {
    const Result<std::string> text = sidecar_text(service.target(), file_.path);
    TR_TRY(text.status());
    TR_TRY(service.journals().keep_sidecar(file_.path, *text));
  }
  if (sidecar_.entries.empty() && file_.mode.access == Mode::Access::write)
    return remove_sidecar(service.target(), file_.path);
  return write_sidecar(service.target(), file_.path, sidecar_);
}

ArrayOutcome LocalArrays::move(const std::string& name, std::span<const Array> arrays, Direction direction,
                               const Status& mine, const std::shared_ptr<const Framing>& framing) {
  ArrayOutcome outcome;
  outcome.status = mine.is_ok() ? file_.check(direction) : mine;
  for (const Array& array : arrays) {
    if (!outcome.status.is_ok()) break;
    const Result<std::shared_ptr<const ArrayPlan>> plan =
        guarded([&] { return make_local_plan(array, file_.owner.rank); });
    outcome.status = plan.status();
    if (!plan.is_ok()) break;
    const Bytes bytes = (*plan)->bytes();
    const std::optional<Bytes> end =
        direction == Direction::read && bytes > 0 ? end_where_it_stands() : std::nullopt;
    if (end) {
      stream_.stop_short({}, *end);  // as if nothing was read
      break;
    }
    const Result<Bytes> offset = check(array, direction, bytes, framing.get());
    outcome.status = offset.status();
    if (!offset.is_ok()) break;
    const Bytes moved = move_one(array, *plan, direction, framing, outcome.status);
    outcome.elements += moved / (*plan)->element;
    if (moved == bytes) continue;
    if (direction == Direction::write) sidecar_.forget(*offset);
    stream_.forget_position();
    break;
  }
  if (!outcome.status.is_ok()) stream_.note_failure_beside();
  outcome.status = outcome.status.in(cat(name, "(", file_.path, ")")).at({-1, -1, file_.owner.rank});
  return outcome;
}

/// Returns the end of the file if the stream stands there for reading. No array was written there, so the
/// sidecar must not be asked.
std::optional<Bytes> LocalArrays::end_where_it_stands() {
  if (stream_.c_stream().file == nullptr) return std::nullopt;
  const Result<Bytes> position = stream_.find_position("an array call", Direction::read);
  if (!position.is_ok()) return std::nullopt;
  const Result<Bytes> size = stream_.c_stream().file->size();
  return size.is_ok() && *position >= *size ? std::optional(*position) : std::nullopt;
}

/// Notes an array that is written in the sidecar, or compares an array that is read with it. Returns where
/// the array begins in the file.
Result<Bytes> LocalArrays::check(const Array& array, Direction direction, Bytes bytes,
                                 const Framing* framing) {
  const Result<Bytes> position = stream_.find_position("an array call", direction);
  TR_TRY(position.status());
  const Bytes offset = *position + (framing == nullptr ? 0 : framing->ahead());
  const Sidecar::Entry entry = sidecar_entry(array, file_.owner.rank, bytes);
  if (direction == Direction::write)
    sidecar_.note(offset, entry);
  else
    TR_TRY(check_sidecar(sidecar_, offset, entry));
  stream_.will_stand_at(*position + bytes + (framing == nullptr ? 0 : framing->inserted()), direction);
  return offset;
}

/// Returns how many bytes were moved or, in an asynchronous file, will be.
Bytes LocalArrays::move_one(const Array& array, const std::shared_ptr<const ArrayPlan>& plan,
                            Direction direction, const std::shared_ptr<const Framing>& framing,
                            Status& status) {
  if (direction == Direction::write) {
    const exchange::WriteBytes writer = framed(stream_.writer(false), framing, 0);
    if (!file_.mode.async) return write(array.data, *plan, writer, status);
    write_later(array.data, *plan, writer);
    return plan->bytes();
  }
  const exchange::ReadBytes reader = framed(stream_.reader(false), framing, 0);
  if (!file_.mode.async) return read(array.data, *plan, reader, status);
  stream_.tasks().run([this, base = array.data, plan, reader] {
    Status failure;
    const Bytes got = read(base, *plan, reader, failure);
    stream_.tasks().note_moved(failure, got, plan->bytes());
  });
  return plan->bytes();
}

Bytes LocalArrays::write(const std::byte* base, const ArrayPlan& plan, const exchange::WriteBytes& writer,
                         Status& status) {
  Bytes reached = plan.bytes();
  ByteVector buffer = file_.owner.service->take_buffer(std::min(most_at_once, plan.bytes()));
  for (Bytes at = 0; status.is_ok() && at < plan.bytes(); at += most_at_once) {
    const Bytes end = std::min(at + most_at_once, plan.bytes());
    plan.mine.gather(base, at, end, buffer.data());
    status = writer({buffer.data(), static_cast<std::size_t>(end - at)}, at);
    if (!status.is_ok()) reached = at;
  }
  file_.owner.service->give_back(std::move(buffer));
  return reached;
}

Bytes LocalArrays::read(std::byte* base, const ArrayPlan& plan, const exchange::ReadBytes& reader,
                        Status& status) {
  ByteVector buffer = file_.owner.service->take_buffer(std::min(most_at_once, plan.bytes()));
  Bytes reached = 0;
  for (Bytes at = 0; reached == at && at < plan.bytes(); at += most_at_once) {
    const Bytes wanted = std::min(most_at_once, plan.bytes() - at);
    const Result<Bytes> got = reader({buffer.data(), static_cast<std::size_t>(wanted)}, at);
    status = got.status();
    reached = at + (got.is_ok() ? *got : 0);
    plan.mine.scatter(base, at, reached, buffer.data());
    if (reached < at + wanted) break;
  }
  file_.owner.service->give_back(std::move(buffer));
  return reached;
}

/// Captures the array, `most_at_once` bytes at a time. Before each capture, the call waits until the bytes
/// fit TAILRACE_IO_BUFFER and the node's budget. Once all earlier bytes of the file are written, it captures
/// the next ones in any case: otherwise it would wait for memory that other files and checkpoints hold.
void LocalArrays::write_later(const std::byte* base, const ArrayPlan& plan,
                              const exchange::WriteBytes& writer) {
  const Bytes most = file_.owner.service->settings().io_buffer;
  auto held = std::make_unique<executor::Threads::Hold>(file_.owner.service->threads());
  for (Bytes at = 0; at < plan.bytes(); at += most_at_once) {
    const Bytes size = std::min(most_at_once, plan.bytes() - at);
    const auto draw = [&] {
      return (captured_bytes_ == 0 || captured_bytes_ + size <= most) && drawn_.take(size).is_ok();
    };
    bool is_drawn = draw();
    if (captured_bytes_ > 0 && !is_drawn) {
      held.reset();
      file_.owner.service->session().wait(
          [&] { return captured_bytes_ == 0 || (is_drawn = draw()); },
          cat("memory for what ", file_.path, " captures (TAILRACE_IO_BUFFER, TAILRACE_MEMORY)"));
    }
    auto captured = std::make_shared<ByteVector>(file_.owner.service->take_buffer(size));
    plan.mine.gather(base, at, at + size, captured->data());
    captured_bytes_ += size;
    stream_.tasks().run([this, captured, writer, at, size, is_drawn] {
      stream_.tasks().note(writer(*captured, at));
      if (is_drawn) drawn_.give_back(size);
      captured_bytes_ -= size;
      file_.owner.service->give_back(std::move(*captured));
    });
  }
}

}  // namespace tailrace::files
