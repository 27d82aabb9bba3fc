// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/unformatted/record_stream.hpp"

#include <cerrno>
#include <cstring>

#include "ground/base/text.hpp"

namespace tailrace::unformatted {

void RecordStream::append(std::span<const std::byte> bytes) {
  if (file_->holds_stream()) bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  count_ += std::ssize(bytes);
}

void RecordStream::send() {
  if (count_ == 0) return;
  move_to(at_);
  file_->stream().tell_bytes(bytes_);
  pass(count_);
}

ByteVector RecordStream::carried() {
  bytes_.resize(static_cast<std::size_t>(count_));
  return std::move(bytes_);
}

void RecordStream::pass(Bytes bytes) {
  move_to(at_, bytes);
  bytes_.clear();
  count_ = 0;
  at_ += bytes;
  size_ = std::max(size_, at_);
}

void RecordStream::write_over(Bytes at, const ByteVector& bytes, bool by_any) {
  if (at >= at_) {
    if (file_->holds_stream()) std::memcpy(bytes_.data() + (at - at_), bytes.data(), bytes.size());
    return;
  }
  // If before_move() fails here, the next vote returns the same error.
  if (by_any) (void)file_->before_move("the marker of a subrecord");
  file_->write_over(at, bytes);
  stream_at_ = at + std::ssize(bytes);
}

void RecordStream::take_back(Bytes begin, bool torn) {
  // The next record may go through other aggregators. If before_move() fails here, the next vote returns the
  // same error.
  (void)file_->before_move("a failed record");
  count_ = std::max<Bytes>(begin - at_, 0);
  at_ = begin - count_;
  if (file_->holds_stream()) bytes_.resize(static_cast<std::size_t>(count_));
  torn_ = torn_ || torn;
  file_->forget(begin);
  stream_at_ = -1;
}

void RecordStream::move_to(Bytes position, Bytes bytes) {
  if (std::exchange(stream_at_, position + bytes) == position) return;
  file_->stream().tell([position](std::FILE* stream) {
    return files::Outcome{0, files::seek_to(stream, position) ? 0 : errno, {}};
  });
}

Result<files::Outcome> RecordStream::ask(const char* what, const files::Operation& operation) {
  const std::string call = cat(what, " of ", file_->path());
  stream_at_ = -1;
  files::Outcome outcome = file_->ask(call, operation);
  if (outcome.error == 0) return outcome;
  if (!outcome.text.empty()) return Status(Code::corrupt, cat(file_->path(), ": ", outcome.text));
  return io_error(cat("find ", what, " of"), file_->path(), outcome.error);
}

Status RecordStream::cut(Bytes size) {
  send();
  const Result<files::Outcome> outcome = ask("the end", [this, size](std::FILE* stream) {
    if (std::fflush(stream) != 0) return files::Outcome{-1, errno, {}};
    const Status status = file_->cut(size);
    if (status.is_ok()) return files::Outcome();
    return files::Outcome{-1, status.error_number() != 0 ? status.error_number() : EIO, {}};
  });
  TR_TRY(outcome.status());
  size_ = size;
  torn_ = false;
  return {};
}

}  // namespace tailrace::unformatted
