// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "files/file.hpp"

namespace tailrace::files {

namespace {

/// A local file is written and read this many bytes at a time.
constexpr Bytes most_at_once = Bytes{2} << 20;

std::string call_text(const std::string& name, const std::string& path) { return cat(name, "(", path, ")"); }

}  // namespace

/// Local. Every array of the call goes to, or comes from, the stream of this rank alone.
ArrayOutcome File::move_local(const std::string& name, std::span<const Array> arrays, Direction direction,
                              const Status& mine, const std::shared_ptr<const Framing>& framing) {
  ArrayOutcome outcome;
  const exchange::WriteBytes writer = framed(this->writer(false), framing, 0);
  const exchange::ReadBytes reader = framed(this->reader(false), framing, 0);
  outcome.status = mine.is_ok() ? check_direction(direction) : mine;
  for (const Array& array : arrays) {
    if (!outcome.status.is_ok()) break;
    const Result<std::shared_ptr<const ArrayPlan>> plan =
        guarded([&] { return make_local_plan(array, place_.rank); });
    outcome.status = plan.status();
    if (plan.is_ok() && direction == Direction::read && (*plan)->bytes() > 0 && stands_at_end()) {
      stop_stream_short({}, *position_);  // as if nothing was read
      break;
    }
    if (plan.is_ok()) outcome.status = check_local(array, direction, (*plan)->bytes(), framing.get());
    if (!outcome.status.is_ok()) break;
    Bytes moved = (*plan)->bytes();
    if (!mode_.async)
      moved = direction == Direction::write ? write_local(array.data, **plan, writer, outcome.status)
                                            : read_local(array.data, **plan, reader, outcome.status);
    else if (direction == Direction::write)
      write_local_later(array.data, **plan, writer);
    else
      run_or_queue([this, base = array.data, plan = *plan, reader] {
        Status status;
        const Bytes got = read_local(base, *plan, reader, status);
        note(status);
        note(complete(got, plan->bytes()));
      });
    outcome.elements += moved / (*plan)->element;
    if (moved == (*plan)->bytes()) continue;
    const Bytes begun =
        *position_ - (*plan)->bytes() - (framing ? framing->inserted() - framing->ahead() : 0);
    if (direction == Direction::write) sidecar_.forget(begun);
    position_.reset();
    break;
  }
  if (!outcome.status.is_ok()) failed_beside_ = true;
  outcome.status = outcome.status.in(call_text(name, path_)).at({-1, -1, place_.rank});
  return outcome;
}

/// Returns true if a local file that is read stands at its end: no array was written there, because nothing
/// was.
bool File::stands_at_end() {
  if (stream_.file == nullptr || !find_position("an array call", Direction::read).is_ok()) return false;
  const Result<Bytes> size = stream_.file->size();
  return size.is_ok() && *position_ >= *size;
}

/// Notes what is written for the sidecar, or compares what is read with it.
Status File::check_local(const Array& array, Direction direction, Bytes bytes, const Framing* framing) {
  TR_TRY(find_position("an array call", direction));
  const Bytes offset = *position_ + (framing == nullptr ? 0 : framing->ahead());
  const Sidecar::Entry entry = sidecar_entry(array, place_.rank, bytes);
  if (direction == Direction::write)
    sidecar_.note(offset, entry);
  else
    TR_TRY(check_sidecar(sidecar_, offset, entry));
  position_ = *position_ + bytes + (framing == nullptr ? 0 : framing->inserted());
  return {};
}

Bytes File::write_local(const std::byte* base, const ArrayPlan& plan, const exchange::WriteBytes& writer,
                        Status& status) {
  Bytes reached = plan.bytes();
  ByteVector buffer = place_.service->take_buffer(std::min(most_at_once, plan.bytes()));
  for (Bytes at = 0; status.is_ok() && at < plan.bytes(); at += most_at_once) {
    const Bytes end = std::min(at + most_at_once, plan.bytes());
    plan.mine.gather(base, at, end, buffer.data());
    status = writer({buffer.data(), static_cast<std::size_t>(end - at)}, at);
    if (!status.is_ok()) reached = at;
  }
  place_.service->give_back(std::move(buffer));
  return reached;
}

Bytes File::read_local(std::byte* base, const ArrayPlan& plan, const exchange::ReadBytes& reader,
                       Status& status) {
  ByteVector buffer = place_.service->take_buffer(std::min(most_at_once, plan.bytes()));
  Bytes reached = 0;
  for (Bytes at = 0; reached == at && at < plan.bytes(); at += most_at_once) {
    const Bytes wanted = std::min(most_at_once, plan.bytes() - at);
    const Result<Bytes> got = reader({buffer.data(), static_cast<std::size_t>(wanted)}, at);
    status = got.status();
    reached = at + (got.is_ok() ? *got : 0);
    plan.mine.scatter(base, at, reached, buffer.data());
    if (reached < at + wanted) break;
  }
  place_.service->give_back(std::move(buffer));
  return reached;
}

/// Captures at most `most_at_once` bytes, then the next ones. Before each capture, the call waits until the
/// bytes fit TAILRACE_IO_BUFFER and the node's budget, or until all earlier bytes of the file are written.
/// They are then captured in any case: waiting longer would be waiting for memory that other files and
/// checkpoints hold.
void File::write_local_later(const std::byte* base, const ArrayPlan& plan,
                             const exchange::WriteBytes& writer) {
  const Bytes most = place_.service->settings().io_buffer;
  auto held = std::make_unique<executor::Threads::Hold>(place_.service->threads());
  for (Bytes at = 0; at < plan.bytes(); at += most_at_once) {
    const Bytes size = std::min(most_at_once, plan.bytes() - at);
    const auto draw = [&] {
      return (captured_bytes_ == 0 || captured_bytes_ + size <= most) && drawn_.take(size).is_ok();
    };
    bool is_drawn = draw();
    if (captured_bytes_ > 0 && !is_drawn) {
      held.reset();
      place_.service->session().wait(
          [&] { return captured_bytes_ == 0 || (is_drawn = draw()); },
          cat("memory for what ", path_, " captures (TAILRACE_IO_BUFFER, TAILRACE_MEMORY)"));
    }
    auto captured = std::make_shared<ByteVector>(place_.service->take_buffer(size));
    plan.mine.gather(base, at, at + size, captured->data());
    captured_bytes_ += size;
    run_or_queue([this, captured, writer, at, size, is_drawn] {
      note(writer(*captured, at));
      if (is_drawn) drawn_.give_back(size);
      captured_bytes_ -= size;
      place_.service->give_back(std::move(*captured));
    });
  }
}

}  // namespace tailrace::files
