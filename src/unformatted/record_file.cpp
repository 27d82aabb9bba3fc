// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "unformatted/record_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace tailrace::unformatted {

namespace {

constexpr Bytes marker_bytes = 4;
/// The most bytes that are carried before they are handed to the stream.
constexpr Bytes carry_most = Bytes{1} << 16;

files::Outcome corrupt(const std::string& text) { return {-1, EILSEQ, {}, text}; }

/// Reads a marker at `at`. Returns how many bytes were there.
std::size_t read_marker(std::FILE* stream, Bytes at, bool swapped, std::int32_t& value) {
  ByteVector bytes(marker_bytes);
  if (files::flush_before_seek(stream) != 0 || ::fseeko(stream, at, SEEK_SET) != 0) return 0;
  const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), stream);
  if (swapped) files::swap_units(bytes, marker_bytes);
  std::memcpy(&value, bytes.data(), sizeof value);
  return got;
}

Bytes length_of(std::int32_t value) { return value < 0 ? -Bytes{value} : Bytes{value}; }

/// Returns the size of the part of an element that is byte-swapped as one: a complex number has two parts.
Bytes unit_of(ElementType type) {
  const bool is_complex = type == ElementType::c64 || type == ElementType::c128;
  return is_complex ? size_of(type) / 2 : size_of(type);
}

Status truncate(storage::Target& target, const std::string& path, Bytes size) {
  const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY((*file)->truncate(size));
  return (*file)->close();
}

}  // namespace

RecordFile::RecordFile(files::File& file, const Form& form, Bytes size,
                       const std::optional<journal::Position>& from)
    : file_(file), form_(form), position_(form.at_end ? size : 0), extent_(size) {
  if (!from) return;
  position_ = from->position;
  after_end_ = from->behind_end;
}

Status RecordFile::check(Direction direction) const {
  if (after_end_)
    return {Code::state,
            cat(file_.path(), ": the file stands behind its end; rewind or backspace comes first")};
  const bool able = direction == Direction::write ? form_.writes : form_.reads;
  if (able) return {};
  return {Code::state, cat(file_.path(), direction == Direction::write ? " was opened for reading only"
                                                                       : " was opened for writing only")};
}

Status RecordFile::ended(const std::string& what) {
  has_ended_ = true;
  return {Code::state, cat(file_.path(), ": the file ends ", what)};
}

Status RecordFile::begin(Direction direction) {
  has_ended_ = false;
  if (record_) return {Code::state, cat(file_.path(), ": the record before has not ended")};
  TR_TRY(check(direction));
  turn_to(direction);
  Record record;
  record.direction = direction;
  record.begin = position_;
  if (direction == Direction::write) {
    // A sequential file that is written from its begin is made anew: it will end behind the last record
    // written.
    if (form_.sequential && position_ == 0 && extent_ > 0) file_.forget(0);
    if (carry_.count > 0 && carry_.end() != position_) send_carry();
    if (carry_.count == 0) carry_.at = position_;
    record_ = std::move(record);
    wrote_ = true;
    if (form_.sequential) open_part();
    return {};
  }
  send_carry();
  TR_TRY(cut());
  if (!form_.sequential) {
    record_ = std::move(record);
    return {};
  }
  const Result<files::Outcome> outcome =
      ask("the markers of a record", [this](std::FILE* stream) { return scan(stream, position_); });
  TR_TRY(outcome.status());
  Unpacker in(outcome->data);
  record.parts = in.get_list<Bytes>();
  if (record.parts.empty()) {
    after_end_ = true;
    return ended("before a record");
  }
  const auto content = in.get_bytes();
  if (in.get<bool>()) record.content.emplace(content.begin(), content.end());
  record_ = std::move(record);
  return {};
}

/// ISO C99 7.19.5.3: a stream must be positioned between reading and writing.
void RecordFile::turn_to(Direction direction) {
  if (std::exchange(last_, direction) != direction) stream_at_ = -1;
}

Status RecordFile::end() {
  if (!record_) return {Code::state, cat(file_.path(), ": no record has begun")};
  Record& record = *record_;
  const Status failure = record.failure;
  if (record.direction == Direction::read) {
    if (form_.sequential)
      position_ = record.begin + total() + 2 * marker_bytes * std::ssize(record.parts);
    else
      position_ += failure.is_ok() ? record.done : 0;
  } else if (failure.is_ok()) {
    if (form_.sequential) close_part(false);
    position_ = carry_.end();
    if (carry_.count >= carry_most) send_carry();
  }
  record_.reset();
  return failure;
}

/// An item of the wrong direction makes the record fail in which it stands.
Status RecordFile::misplaced(Direction direction) {
  const char* const verb = direction == Direction::write ? "write" : "read";
  const Status why(Code::state,
                   cat(file_.path(), ": ", verb,
                       record_ ? " within a record of the other direction" : " outside of a record"));
  if (record_ && record_->failure.is_ok()) abandon_record(why);
  return why;
}

/// The next record writes over the bytes that a failed record has left in the file, or they are cut off.
void RecordFile::abandon_record(const Status& why) {
  Record& record = *record_;
  record.failure = why;
  if (record.direction == Direction::read) return;
  // The next record may go through other aggregators. A verdict against this comes again with the next vote.
  (void)file_.before_move("a failed record");
  if (carry_.at <= record.begin) {
    carry_.count = record.begin - carry_.at;
    if (file_.holds_stream()) carry_.bytes.resize(static_cast<std::size_t>(carry_.count));
  } else {
    extent_ = std::max(extent_, carry_.at);
    carry_.bytes.clear();
    carry_.count = 0;
    carry_.at = record.begin;
  }
  file_.forget(record.begin);
  stream_at_ = -1;
}

Status RecordFile::move(const Array& array, Direction direction, Status mine) {
  if (!record_ || record_->direction != direction) return misplaced(direction);
  if (!record_->failure.is_ok()) return {};
  const Result<Bytes> bytes = array_bytes(array);
  if (mine.is_ok()) mine = bytes.status();
  const Bytes count = bytes.is_ok() ? *bytes : 0;
  const Carry before = carry_;
  const Bytes extent = extent_;
  const Status status =
      direction == Direction::write ? move_out(array, count, mine) : move_in(array, count, mine);
  if (status.is_ok()) return {};
  // The file may hold nothing, or any part, of the failed record and of the records that it carried along.
  carry_ = before;
  extent_ = extent;
  torn_ = direction == Direction::write;
  abandon_record(status);
  return status;
}

/// Returns the number of bytes that an array has in the file.
Result<Bytes> RecordFile::array_bytes(const Array& array) const {
  if (array.layout == nullptr) return Status(Code::argument, "the layout was not made, or is freed");
  if (file_.place().group == nullptr) {
    const Result<std::shared_ptr<const ArrayPlan>> plan = make_local_plan(array, file_.place().rank);
    TR_TRY(plan.status());
    return (*plan)->bytes();
  }
  Index elements = array.layout->elements();
  if (array.section) {
    const Result<std::vector<Index>> shape = array.section->shape();
    TR_TRY(shape.status());
    elements = 1;
    for (const Index extent : *shape) elements *= extent;
  }
  return elements * size_of(array.type);
}

ByteVector RecordFile::marker(Bytes length) const {
  const auto value = static_cast<std::int32_t>(length);
  ByteVector bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  if (form_.swapped) files::swap_units(bytes, marker_bytes);
  return bytes;
}

void RecordFile::append(std::span<const std::byte> bytes) {
  if (file_.holds_stream()) carry_.bytes.insert(carry_.bytes.end(), bytes.begin(), bytes.end());
  carry_.count += static_cast<Bytes>(bytes.size());
}

void RecordFile::open_part() {
  record_->head_at = carry_.end();
  record_->head = 0;
  record_->filled = 0;
  append(marker(0));
}

/// The marker in front has its sign set if another subrecord follows. The marker behind has it set if one
/// came before.
void RecordFile::close_part(bool continues) {
  Record& record = *record_;
  set_head(continues ? -record.filled : record.filled);
  append(marker(record.parts.empty() ? record.filled : -record.filled));
  record.parts.push_back(record.filled);
}

/// Sets the marker in the carry, or in the file if an array has taken the marker along.
void RecordFile::set_head(Bytes length) {
  Record& record = *record_;
  if (record.head == length && record.head_at < carry_.at) return;
  record.head = length;
  const ByteVector bytes = marker(length);
  if (record.head_at >= carry_.at) {
    if (file_.holds_stream())
      std::memcpy(carry_.bytes.data() + (record.head_at - carry_.at), bytes.data(), bytes.size());
    return;
  }
  // Behind 2 GiB any aggregator may have taken the marker along and has to have written it; before that only
  // the I/O rank can have. A verdict against this comes again with the next vote.
  if (!record.parts.empty()) (void)file_.before_move("the marker of a subrecord");
  file_.write_over(record.head_at, bytes);
  stream_at_ = record.head_at + marker_bytes;
}

void RecordFile::send_carry() {
  if (carry_.count == 0) return;
  move_stream(carry_.at);
  file_.stream().tell_bytes(carry_.bytes);
  carry_.bytes.clear();
  carry_.at += std::exchange(carry_.count, 0);
  stream_at_ = carry_.at;
  extent_ = std::max(extent_, carry_.at);
}

void RecordFile::move_stream(Bytes position) {
  if (stream_at_ == position) return;
  stream_at_ = position;
  file_.stream().tell([position](std::FILE* stream) {
    const bool failed = files::flush_before_seek(stream) != 0 || ::fseeko(stream, position, SEEK_SET) != 0;
    return files::Outcome{0, failed ? errno : 0, {}};
  });
}

Status RecordFile::put(std::span<const std::byte> item, Bytes unit) {
  if (!record_ || record_->direction != Direction::write) return misplaced(Direction::write);
  if (!record_->failure.is_ok()) return {};
  ByteVector turned;
  if (form_.swapped && unit > 1) {
    turned.assign(item.begin(), item.end());
    files::swap_units(turned, unit);
    item = turned;
  }
  while (!item.empty()) {
    Bytes room = static_cast<Bytes>(item.size());
    if (form_.sequential) {
      if (record_->filled == form_.subrecord) {
        close_part(true);
        open_part();
      }
      room = std::min(room, form_.subrecord - record_->filled);
    }
    append(item.first(static_cast<std::size_t>(room)));
    item = item.subspan(static_cast<std::size_t>(room));
    record_->filled += room;
    record_->done += room;
  }
  return {};
}

/// Returns the frame of the next array of a record, carry included. Markers get the lengths known by now.
std::shared_ptr<files::Framing> RecordFile::frame_out(Bytes bytes, Bytes unit) {
  Record& record = *record_;
  auto framing = std::make_shared<files::Framing>(bytes, form_.swapped ? unit : 1);
  Bytes at = 0;
  Bytes markers = 0;
  if (form_.sequential) {
    if (record.filled == form_.subrecord) {
      close_part(true);
      open_part();
    }
    const Bytes first = std::min(bytes, form_.subrecord - record.filled);
    record.filled += first;
    at = first;
    set_head(at < bytes ? -record.filled : record.filled);
  }
  const Bytes start = carry_.end();
  ByteVector ahead = std::move(carry_.bytes);
  ahead.resize(static_cast<std::size_t>(carry_.count));
  framing->insert(0, std::move(ahead));
  for (; form_.sequential && at < bytes;) {
    ByteVector between = marker(record.parts.empty() ? record.filled : -record.filled);
    record.parts.push_back(record.filled);
    record.head_at = start + at + markers + marker_bytes;
    record.filled = std::min(bytes - at, form_.subrecord);
    record.head = at + record.filled < bytes ? -record.filled : record.filled;
    const ByteVector head = marker(record.head);
    between.insert(between.end(), head.begin(), head.end());
    framing->insert(at, std::move(between));
    markers += 2 * marker_bytes;
    at += record.filled;
  }
  return framing;
}

Status RecordFile::move_out(const Array& array, Bytes bytes, const Status& mine) {
  const std::string call = "write";
  // It stands here because ranks with a bad argument come by as well.
  if (!record_->parts.empty()) TR_TRY(file_.before_move(call));
  if (!mine.is_ok() || bytes == 0) return file_.move_arrays(call, {&array, 1}, Direction::write, mine).status;
  const std::shared_ptr<files::Framing> framing = frame_out(bytes, unit_of(array.type));
  move_stream(carry_.at);
  carry_.bytes.clear();
  carry_.at += bytes + framing->inserted();
  carry_.count = 0;
  extent_ = std::max(extent_, carry_.at);
  stream_at_ = carry_.at;
  record_->done += bytes;
  return file_.move_arrays(call, {&array, 1}, Direction::write, mine, framing).status;
}

Bytes RecordFile::total() const {
  Bytes sum = 0;
  for (const Bytes part : record_->parts) sum += part;
  return sum;
}

/// Returns the place in the file of byte `done` of the record's items.
Bytes RecordFile::offset_of(Bytes done) const {
  if (!form_.sequential) return record_->begin + done;
  Bytes offset = record_->begin + marker_bytes + done;
  Bytes end = 0;
  for (const Bytes part : record_->parts) {
    end += part;
    if (done < end || end == total()) break;
    offset += 2 * marker_bytes;
  }
  return offset;
}

Status RecordFile::get(std::span<std::byte> item, Bytes unit) {
  if (!record_ || record_->direction != Direction::read) return misplaced(Direction::read);
  Record& record = *record_;
  if (!record.failure.is_ok()) return {};
  const auto bytes = static_cast<Bytes>(item.size());
  if (form_.sequential && record.done + bytes > total()) {
    record.failure = Status(Code::argument, cat(file_.path(), ": the record has ", counted(total(), "byte"),
                                                ", ", record.done + bytes, " are to be read"));
    return record.failure;
  }
  if (record.content) {
    std::memcpy(item.data(), record.content->data() + record.done, item.size());
  } else {
    const Result<files::Outcome> outcome =
        ask("an item of a record", [&](std::FILE* stream) { return load(stream, record.done, bytes); });
    record.failure = outcome.status();
    if (outcome.is_ok() && outcome->value < bytes) record.failure = ended("within an item");
    if (!record.failure.is_ok()) return record.failure;
    std::memcpy(item.data(), outcome->data.data(), item.size());
  }
  if (form_.swapped) files::swap_units(item, unit);
  record.done += bytes;
  return {};
}

/// Returns the frame of the next array of a record that is read: the markers within it.
std::shared_ptr<files::Framing> RecordFile::frame_in(Bytes bytes, Bytes unit) const {
  auto framing = std::make_shared<files::Framing>(bytes, form_.swapped ? unit : 1);
  Bytes end = 0;
  for (const Bytes part : record_->parts) {
    end += part;
    if (end > record_->done && end < record_->done + bytes)
      framing->insert(end - record_->done, ByteVector(2 * marker_bytes));
  }
  return framing;
}

Status RecordFile::move_in(const Array& array, Bytes bytes, const Status& mine) {
  Record& record = *record_;
  const std::string call = "read";
  Status refusal = mine;
  if (refusal.is_ok() && form_.sequential && record.done + bytes > total()) {
    refusal = Status(Code::argument, cat(file_.path(), ": the record has ", counted(total(), "byte"), ", ",
                                         record.done + bytes, " are to be read"));
  }
  if (!refusal.is_ok() || bytes == 0)
    return file_.move_arrays(call, {&array, 1}, Direction::read, refusal).status;
  const std::shared_ptr<files::Framing> framing = frame_in(bytes, unit_of(array.type));
  move_stream(offset_of(record.done));
  stream_at_ += bytes + framing->inserted();
  const files::ArrayOutcome outcome = file_.move_arrays(call, {&array, 1}, Direction::read, refusal, framing);
  TR_TRY(outcome.status);
  record.done += bytes;
  const Bytes element = size_of(array.type);
  if (outcome.elements * element == bytes) return {};
  stream_at_ = -1;
  return ended("within an array");
}

Result<files::Outcome> RecordFile::ask(const char* what, const files::Operation& operation) {
  const std::string call = cat(what, " of ", file_.path());
  stream_at_ = -1;
  files::Outcome outcome = file_.ask(call, operation);
  if (outcome.error == 0) return outcome;
  if (!outcome.text.empty()) return Status(Code::corrupt, cat(file_.path(), ": ", outcome.text));
  return io_error(cat("find ", what, " of"), file_.path(), outcome.error);
}

/// Returns the lengths of the subrecords of the record at `at` (none at the end of the file), and small
/// contents.
files::Outcome RecordFile::scan(std::FILE* stream, Bytes at) const {
  std::vector<Bytes> parts;
  std::vector<Bytes> begins;
  Bytes sum = 0;
  for (bool continues = true; continues;) {
    std::int32_t head = 0;
    std::int32_t tail = 0;
    const std::size_t got = read_marker(stream, at, form_.swapped, head);
    if (got < marker_bytes && std::ferror(stream) != 0) return {-1, errno, {}};
    if (got == 0 && parts.empty()) break;
    const Bytes length = length_of(head);
    if (got < marker_bytes ||
        read_marker(stream, at + marker_bytes + length, form_.swapped, tail) < marker_bytes)
      return corrupt(
          cat("the record at byte ", at, " is cut off, or this is no sequential file, or convert= is wrong"));
    if (length_of(tail) != length || (length != 0 && (tail < 0) == parts.empty()))
      return corrupt(cat("the markers of the record at byte ", at, " do not agree: ", head, " and ", tail,
                         "; is this a sequential file, and convert= right?"));
    parts.push_back(length);
    begins.push_back(at + marker_bytes);
    sum += length;
    at += length + 2 * marker_bytes;
    continues = head < 0;
  }
  constexpr Bytes small = 4096;
  ByteVector content;
  const bool is_small = !parts.empty() && sum <= small;
  for (std::size_t i = 0; is_small && i < parts.size(); ++i) {
    const std::size_t before = content.size();
    content.resize(before + static_cast<std::size_t>(parts[i]));
    if (::fseeko(stream, begins[i], SEEK_SET) != 0 ||
        std::fread(content.data() + before, 1, content.size() - before, stream) < content.size() - before)
      return {-1, errno != 0 ? errno : EIO, {}};
  }
  Packer out;
  out.put_list(std::span<const Bytes>(parts)).put_bytes(content).put(is_small);
  return {0, 0, out.take()};
}

/// Returns the begin of the record that ends before `at`.
files::Outcome RecordFile::scan_back(std::FILE* stream, Bytes at) const {
  for (bool first = false; !first;) {
    std::int32_t tail = 0;
    std::int32_t head = 0;
    if (at < 2 * marker_bytes || read_marker(stream, at - marker_bytes, form_.swapped, tail) < marker_bytes ||
        at < length_of(tail) + 2 * marker_bytes ||
        read_marker(stream, at - length_of(tail) - 2 * marker_bytes, form_.swapped, head) < marker_bytes ||
        length_of(head) != length_of(tail))
      return corrupt(cat("there are no markers of a record before byte ", at));
    at -= length_of(tail) + 2 * marker_bytes;
    first = tail >= 0;
  }
  return {at, 0, {}};
}

files::Outcome RecordFile::load(std::FILE* stream, Bytes from, Bytes bytes) const {
  files::Outcome outcome;
  outcome.data.resize(static_cast<std::size_t>(bytes));
  Bytes part_end = 0;
  std::size_t part = 0;
  for (Bytes got = 0; got < bytes;) {
    Bytes now = bytes - got;
    if (form_.sequential) {
      while (part_end <= from + got) part_end += record_->parts[part++];
      now = std::min(now, part_end - from - got);
    }
    if (files::flush_before_seek(stream) != 0 || ::fseeko(stream, offset_of(from + got), SEEK_SET) != 0)
      return {-1, errno, {}};
    const std::size_t read = std::fread(outcome.data.data() + got, 1, static_cast<std::size_t>(now), stream);
    if (std::ferror(stream) != 0) return {-1, errno, {}};
    got += static_cast<Bytes>(read);
    outcome.value = got;
    if (static_cast<Bytes>(read) < now) break;
  }
  return outcome;
}

/// Cuts a sequential file behind the record that was written last.
Status RecordFile::cut() {
  if (!wrote_ || !form_.sequential) return {};
  send_carry();
  wrote_ = false;
  return torn_ || extent_ > position_ ? cut_here() : Status();
}

Status RecordFile::cut_here() {
  send_carry();
  const Result<files::Outcome> outcome = ask("the end", [this](std::FILE* stream) {
    if (std::fflush(stream) != 0) return files::Outcome{-1, errno, {}};
    Status status = file_.will_cut(position_);
    if (status.is_ok()) status = truncate(file_.place().service->target(), file_.path(), position_);
    if (status.is_ok()) return files::Outcome();
    return files::Outcome{-1, status.error_number() != 0 ? status.error_number() : EIO, {}};
  });
  TR_TRY(outcome.status());
  extent_ = position_;
  torn_ = false;
  return {};
}

Status RecordFile::rewind() {
  if (record_) return {Code::state, cat(file_.path(), ": rewind within a record")};
  has_ended_ = false;
  send_carry();
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
  send_carry();
  TR_TRY(cut());
  if (std::exchange(after_end_, false) || position_ == 0) return {};
  const Result<files::Outcome> outcome =
      ask("the markers of a record", [this](std::FILE* stream) { return scan_back(stream, position_); });
  TR_TRY(outcome.status());
  position_ = outcome->value;
  return {};
}

Status RecordFile::endfile() {
  has_ended_ = false;
  if (record_) return {Code::state, cat(file_.path(), ": endfile within a record")};
  TR_TRY(check(Direction::write));
  wrote_ = false;
  TR_TRY(cut_here());
  after_end_ = form_.sequential;
  return {};
}

Status RecordFile::seek(Bytes position) {
  if (record_ || form_.sequential || position < 0)
    return {Code::argument, cat(file_.path(), ": a position needs access='stream', and be at least 1")};
  TR_TRY(file_.before_move("a new position"));
  position_ = position;
  return {};
}

Status RecordFile::wait() {
  send_carry();
  return file_.wait();
}

Status RecordFile::flush() {
  send_carry();
  return file_.flush(false);
}

Status RecordFile::rest() {
  if (record_)
    return {Code::state, cat(file_.path(),
                             ": a record has begun and not ended: a checkpoint is saved between "
                             "records")};
  send_carry();
  return file_.rest();
}

/// Leaves the cut to cut(), or to the run that goes on here.
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
  send_carry();
  return cut();
}

Status RecordFile::close() {
  const Status finished = finish();
  const Status closed = file_.close();
  return finished.is_ok() ? closed : finished;
}

}  // namespace tailrace::unformatted
