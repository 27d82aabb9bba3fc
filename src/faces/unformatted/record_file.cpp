// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/unformatted/record_file.hpp"

#include <cstring>

#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::unformatted {

namespace {

/// Returns the number of bytes that an array has in the file.
Result<Bytes> array_bytes(const Array& array, const files::Owner& owner) {
  if (array.layout == nullptr) return Status(Code::argument, "the layout was not made, or is freed");
  if (owner.group == nullptr) {
    const auto plan = make_local_plan(array, owner.rank);
    TR_TRY(plan.status());
    return (*plan)->bytes();
  }
  const Result<std::vector<Index>> shape = array.shape();
  TR_TRY(shape.status());
  return layout::product(*shape) * size_of(array.type);
}

}  // namespace

RecordFile::RecordFile(files::File& file, const Form& form, Bytes size,
                       const std::optional<journal::Position>& from)
    : file_(file), form_(form), position_(form.at_end ? size : 0), stream_(file, size) {
  if (!from) return;
  position_ = from->position;
  after_end_ = from->behind_end;
}

Status RecordFile::check(Direction direction) const {
  if (after_end_)
    return {Code::state,
            cat(file_.path(), ": the file stands behind its end; rewind or backspace comes first")};
  const bool writes = direction == Direction::write;
  if (writes ? form_.writes : form_.reads) return {};
  return {Code::state, cat(file_.path(), " was opened for ", writes ? "reading" : "writing", " only")};
}

Status RecordFile::ended(const std::string& what) {
  has_ended_ = true;
  if (record_) record_->has_ended = true;
  return {Code::state, cat(file_.path(), ": the file ends ", what)};
}

Status RecordFile::begin(Direction direction) {
  has_ended_ = false;
  if (record_) return {Code::state, cat(file_.path(), ": the record before has not ended")};
  TR_TRY(check(direction));
  // ISO C99 7.19.5.3: a stream must be positioned between reading and writing.
  if (std::exchange(last_, direction) != direction) stream_.forget_position();
  if (direction == Direction::write) {
    // A sequential file that is written from its begin is made anew: it will end behind the last record
    // written.
    if (form_.sequential && position_ == 0 && stream_.size() > 0) file_.forget(0);
    TR_TRY(know_markers());
    stream_.begin_at(position_);
    record_.emplace(Record{form_, direction, position_});
    wrote_ = true;
    if (form_.sequential) record_->open_part(stream_);
    return {};
  }
  stream_.send();
  TR_TRY(cut());
  Record record{form_, direction, position_};
  if (form_.sequential) {
    const Result<files::Outcome> outcome = stream_.ask("the markers of a record", [&](std::FILE* stream) {
      Form form = form_;
      if (form.marker == 0) form.marker = told_marker(stream, form.swapped);
      files::Outcome found = Record{form, direction, position_}.find(stream);
      if (found.value == 0) found.value = form.marker;
      return found;
    });
    TR_TRY(outcome.status());
    record.take(*outcome);
    after_end_ = record.parts.empty();
    if (after_end_) return ended("before a record");
    form_.marker = outcome->value;
  }
  record_.emplace(std::move(record));
  return {};
}

/// Finds out how many bytes the markers have. A file that is written from its begin gets the usual 4;
/// otherwise its first record tells.
Status RecordFile::know_markers() {
  if (!form_.sequential || form_.marker != 0) return {};
  if (position_ == 0) {
    form_.marker = 4;
    return {};
  }
  const Result<files::Outcome> outcome =
      stream_.ask("the markers of the first record", [this](std::FILE* stream) -> files::Outcome {
        return {told_marker(stream, form_.swapped), 0, {}};
      });
  TR_TRY(outcome.status());
  form_.marker = outcome->value;
  return {};
}

Status RecordFile::end() {
  has_ended_ = record_ && record_->has_ended;
  if (!record_) return {Code::state, cat(file_.path(), ": no record has begun")};
  Record& record = *record_;
  const Status failure = record.failure;
  if (record.direction == Direction::read) {
    if (form_.sequential)
      position_ = record.begin + record.total_in_file();
    else
      position_ += failure.is_ok() ? record.done : 0;
  } else if (failure.is_ok()) {
    if (form_.sequential) record.close_part(stream_, false);
    position_ = stream_.end();
    stream_.send_many();
  }
  record_.reset();
  return failure;
}

/// Returns the error of an item that stands in no record, or in one of the other direction. That record
/// fails.
Status RecordFile::misplaced(Direction direction) {
  const Status why(Code::state,
                   cat(file_.path(), direction == Direction::write ? ": write" : ": read",
                       record_ ? " within a record of the other direction" : " outside of a record"));
  if (record_ && record_->failure.is_ok()) abandon_record(why, false);
  return why;
}

void RecordFile::abandon_record(const Status& why, bool torn) {
  record_->failure = why;
  if (record_->direction == Direction::write) stream_.take_back(record_->begin, torn);
}

Status RecordFile::move(const Array& array, Direction direction, Status mine) {
  has_ended_ = false;
  if (!record_ || record_->direction != direction) return misplaced(direction);
  if (!record_->failure.is_ok()) return {};
  const Result<Bytes> bytes = array_bytes(array, file_.owner());
  if (mine.is_ok()) mine = bytes.status();
  const Bytes count = bytes.is_ok() ? *bytes : 0;
  const RecordStream before = stream_;
  const Status status =
      direction == Direction::write ? move_out(array, count, mine) : move_in(array, count, mine);
  if (status.is_ok()) return {};
  // The file may hold nothing, or any part, of the failed record and of the records that the stream still
  // carried.
  if (direction == Direction::write) stream_ = before;
  abandon_record(status, true);
  return status;
}

Status RecordFile::put(std::span<const std::byte> item, Bytes unit) {
  has_ended_ = false;
  if (!record_ || record_->direction != Direction::write) return misplaced(Direction::write);
  if (!record_->failure.is_ok()) return {};
  ByteVector turned;
  if (form_.swapped && unit > 1) {
    turned.assign(item.begin(), item.end());
    files::swap_units(turned, unit);
    item = turned;
  }
  record_->put(stream_, item);
  return {};
}

Status RecordFile::move_out(const Array& array, Bytes bytes, const Status& mine) {
  const std::string call = "write";
  // A collective call: it comes before any look at the arguments, so that ranks with a bad argument make it,
  // too.
  if (!record_->parts.empty()) TR_TRY(file_.before_move(call));
  std::shared_ptr<files::Framing> framing;
  if (mine.is_ok() && bytes > 0) {
    framing = record_->frame_out(stream_, bytes, scalar_size_of(array.type));
    stream_.pass(bytes + framing->inserted());
    record_->done += bytes;
  }
  return file_.move_arrays(call, {&array, 1}, Direction::write, mine, framing).status;
}

Status RecordFile::get(std::span<std::byte> item, Bytes unit) {
  has_ended_ = false;
  if (!record_ || record_->direction != Direction::read) return misplaced(Direction::read);
  Record& record = *record_;
  if (!record.failure.is_ok()) return {};
  const auto bytes = static_cast<Bytes>(item.size());
  record.failure = record.check_rest(file_.path(), bytes);
  if (!record.failure.is_ok()) return record.failure;
  if (record.is_small()) {
    std::memcpy(item.data(), record.content.data() + record.done, item.size());
  } else {
    record.failure = file_.reads_to_all(bytes) ? load_together(item) : load(item);
    if (!record.failure.is_ok()) return record.failure;
  }
  if (form_.swapped) files::swap_units(item, unit);
  record.done += bytes;
  return {};
}

/// Collective. Has the I/O rank read a part of the record, and send it to all ranks.
Status RecordFile::load(std::span<std::byte> item) {
  const auto bytes = static_cast<Bytes>(item.size());
  const Result<files::Outcome> outcome =
      stream_.ask("an item of a record", [&](std::FILE* stream) { return record_->load(stream, bytes); });
  TR_TRY(outcome.status());
  if (outcome->value < bytes) return ended("within an item");
  std::memcpy(item.data(), outcome->data.data(), item.size());
  return {};
}

/// Collective. Reads a part of the record, as an array of which every rank has the whole.
Status RecordFile::load_together(std::span<std::byte> item) {
  const auto bytes = static_cast<Bytes>(item.size());
  const std::shared_ptr<const files::Framing> framing = record_->frame_in(bytes, 1);
  stream_.move_to(record_->offset_of(record_->done), bytes + framing->inserted());
  const files::ArrayOutcome outcome = file_.read_to_all("read", item, {}, framing);
  TR_TRY(outcome.status);
  if (outcome.elements == bytes) return {};
  stream_.forget_position();
  return ended("within an item");
}

Status RecordFile::move_in(const Array& array, Bytes bytes, const Status& mine) {
  Record& record = *record_;
  const Status refusal = mine.is_ok() ? record.check_rest(file_.path(), bytes) : mine;
  std::shared_ptr<files::Framing> framing;
  if (refusal.is_ok() && bytes > 0) {
    framing = record.frame_in(bytes, scalar_size_of(array.type));
    stream_.move_to(record.offset_of(record.done), bytes + framing->inserted());
  }
  const files::ArrayOutcome outcome =
      file_.move_arrays("read", {&array, 1}, Direction::read, refusal, framing);
  TR_TRY(outcome.status);
  record.done += bytes;
  if (bytes == 0 || outcome.elements * size_of(array.type) == bytes) return {};
  stream_.forget_position();
  return ended("within an array");
}

/// Cuts a sequential file behind the record that was written last.
Status RecordFile::cut() {
  if (!wrote_ || !form_.sequential) return {};
  stream_.send();
  wrote_ = false;
  return stream_.ends_at(position_) ? Status() : stream_.cut(position_);
}

Status RecordFile::rewind() {
  has_ended_ = false;
  if (record_) return {Code::state, cat(file_.path(), ": rewind within a record")};
  stream_.send();
  TR_TRY(cut());
  TR_TRY(file_.before_move("rewind"));
  position_ = 0;
  after_end_ = false;
  return {};
}

Status RecordFile::backspace() {
  has_ended_ = false;
  if (record_) return {Code::state, cat(file_.path(), ": backspace within a record")};
  if (!form_.sequential)
    return {Code::state, cat(file_.path(), ": a stream file has no records to step back over")};
  stream_.send();
  TR_TRY(cut());
  if (std::exchange(after_end_, false) || position_ == 0) return {};
  TR_TRY(know_markers());
  const Result<files::Outcome> outcome = stream_.ask(
      "the markers of a record", [this](std::FILE* stream) { return find_back(stream, position_, form_); });
  TR_TRY(outcome.status());
  position_ = outcome->value;
  return {};
}

Status RecordFile::endfile() {
  has_ended_ = false;
  if (record_) return {Code::state, cat(file_.path(), ": endfile within a record")};
  TR_TRY(check(Direction::write));
  wrote_ = false;
  TR_TRY(stream_.cut(position_));
  after_end_ = form_.sequential;
  return {};
}

Status RecordFile::seek(Bytes position) {
  has_ended_ = false;
  if (record_ || form_.sequential || position < 0)
    return {Code::argument, cat(file_.path(), ": a position needs access='stream', and be at least 1")};
  TR_TRY(file_.before_move("a new position"));
  position_ = position;
  return {};
}

Status RecordFile::wait() {
  has_ended_ = false;
  stream_.send();
  return file_.wait();
}

Status RecordFile::flush() {
  has_ended_ = false;
  stream_.send();
  return file_.flush(false);
}

Status RecordFile::rest() {
  if (record_)
    return {Code::state,
            cat(file_.path(), ": a record has begun and not ended: a checkpoint is saved between records")};
  stream_.send();
  return file_.rest();
}

/// Does not cut the file. cut() does so later, or the run that goes on here.
Result<journal::Position> RecordFile::recorded_position(journal::Overwritten overwritten) {
  Result<journal::Position> at = file_.position(overwritten);
  TR_TRY(at.status());
  at->position = position_;
  at->behind_end = after_end_;
  if (wrote_ && form_.sequential) at->size = position_;
  return at;
}

Status RecordFile::finish() {
  if (record_) (void)end();
  stream_.send();
  return cut();
}

Status RecordFile::close() {
  const Status finished = finish();
  const Status closed = file_.close();
  return finished.is_ok() ? closed : finished;
}

}  // namespace tailrace::unformatted
