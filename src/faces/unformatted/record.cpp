// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/unformatted/record.hpp"

#include <cerrno>
#include <cstring>
#include <numeric>

#include "ground/base/text.hpp"

namespace tailrace::unformatted {

namespace {

constexpr Bytes longest_record = Bytes{1} << 62;

files::Outcome corrupt(const std::string& text) { return {-1, EILSEQ, {}, text}; }

/// Reads a marker at `at`. Returns true if all its bytes were there.
bool read_marker(std::FILE* stream, Bytes at, const Form& form, std::int64_t& value, std::size_t& got) {
  ByteVector bytes(static_cast<std::size_t>(form.marker));
  got = files::seek_to(stream, at) ? std::fread(bytes.data(), 1, bytes.size(), stream) : 0;
  if (got < bytes.size()) return false;
  if (form.swapped) files::swap_units(bytes, form.marker);
  if (form.marker == sizeof value) {
    std::memcpy(&value, bytes.data(), sizeof value);
  } else {
    std::int32_t narrow = 0;
    std::memcpy(&narrow, bytes.data(), sizeof narrow);
    value = narrow;
  }
  return true;
}

bool read_marker(std::FILE* stream, Bytes at, const Form& form, std::int64_t& value) {
  std::size_t got = 0;
  return read_marker(stream, at, form, value, got);
}

Bytes length_of(std::int64_t value) {
  if (value < -longest_record) return longest_record;
  return std::min<Bytes>(value < 0 ? -value : value, longest_record);
}

ByteVector marker(Bytes length, const Form& form) {
  const auto narrow = static_cast<std::int32_t>(length);
  const bool is_wide = form.marker == sizeof length;
  ByteVector bytes(static_cast<std::size_t>(form.marker));
  std::memcpy(bytes.data(), is_wide ? static_cast<const void*>(&length) : &narrow, bytes.size());
  if (form.swapped) files::swap_units(bytes, form.marker);
  return bytes;
}

/// Finds the lengths of the subrecords of the record at `begin`; none at the end of the file.
files::Outcome find_parts(std::FILE* stream, Bytes begin, const Form& form, std::vector<Bytes>& parts) {
  Bytes at = begin;
  for (bool continues = true; continues;) {
    std::int64_t head = 0, tail = 0;
    std::size_t got = 0;
    const bool has_head = read_marker(stream, at, form, head, got);
    if (!has_head && std::ferror(stream) != 0) return {-1, errno, {}};
    if (got == 0 && parts.empty()) break;
    const Bytes length = length_of(head);
    if (!has_head || length == longest_record || !read_marker(stream, at + form.marker + length, form, tail))
      return corrupt(cat("the record at byte ", at,
                         " is cut off, or this is no sequential file, or convert= or marker= is wrong"));
    if (length_of(tail) != length || (length != 0 && (tail < 0) == parts.empty()))
      return corrupt(cat("the markers of ", form.marker, " bytes of the record at byte ", at,
                         " do not agree: ", head, " and ", tail,
                         "; is this a sequential file, and are convert= and marker= right?"));
    parts.push_back(length);
    at += length + 2 * form.marker;
    continues = head < 0;
  }
  return {};
}

}  // namespace

Bytes Record::total() const { return std::reduce(parts.begin(), parts.end()); }

Bytes Record::total_in_file() const { return total() + 2 * form.marker * std::ssize(parts); }

Bytes Record::offset_of(Bytes at) const {
  if (!form.sequential) return begin + at;
  Bytes offset = begin + form.marker + at;
  Bytes end = 0;
  for (const Bytes part : parts) {
    end += part;
    if (at < end || end == total()) break;
    offset += 2 * form.marker;
  }
  return offset;
}

Status Record::check_rest(const std::string& path, Bytes bytes) const {
  if (!form.sequential || done + bytes <= total()) return {};
  return {Code::argument,
          cat(path, ": the record has ", counted(total(), "byte"), ", ", done + bytes, " are to be read")};
}

std::shared_ptr<files::Framing> Record::frame_in(Bytes bytes, Bytes unit) const {
  auto framing = std::make_shared<files::Framing>(bytes, form.swapped ? unit : 1);
  Bytes end = 0;
  for (const Bytes part : parts) {
    end += part;
    if (end > done && end < done + bytes)
      framing->insert(end - done, ByteVector(static_cast<std::size_t>(2 * form.marker)));
  }
  return framing;
}

files::Outcome Record::load(std::FILE* stream, Bytes bytes) const {
  const auto read = [stream](std::span<std::byte> room, Bytes offset) -> Result<Bytes> {
    if (!files::seek_to(stream, offset)) return Status(Code::io, "seek", errno);
    const std::size_t got = std::fread(room.data(), 1, room.size(), stream);
    if (std::ferror(stream) != 0) return Status(Code::io, "read", errno);
    return static_cast<Bytes>(got);
  };
  files::Outcome outcome;
  outcome.data.resize(static_cast<std::size_t>(bytes));
  const Result<Bytes> got = frame_in(bytes, 1)->read(outcome.data, 0, read, offset_of(done));
  if (!got.is_ok()) return {-1, got.status().error_number(), {}};
  outcome.value = *got;
  return outcome;
}

files::Outcome Record::find(std::FILE* stream) const {
  Record found{form, direction, begin};
  files::Outcome outcome = find_parts(stream, begin, form, found.parts);
  if (outcome.value < 0) return outcome;
  const files::Outcome loaded = found.load(stream, found.is_small() ? found.total() : 0);
  if (loaded.value < std::ssize(loaded.data)) return {-1, loaded.error != 0 ? loaded.error : EIO, {}};
  Packer out;
  out.put_list(std::span<const Bytes>(found.parts)).put_bytes(loaded.data);
  return {0, 0, out.take()};
}

void Record::take(const files::Outcome& found) {
  Unpacker in(found.data);
  parts = in.get_list<Bytes>();
  const auto bytes = in.get_bytes();
  content.assign(bytes.begin(), bytes.end());
}

void Record::open_part(RecordStream& stream) {
  head_at = stream.end();
  head = 0;
  filled = 0;
  stream.append(marker(0, form));
}

/// The marker in front of a subrecord has its sign set if another subrecord follows.
void Record::close_part(RecordStream& stream, bool continues) {
  set_head(stream, continues ? -filled : filled);
  stream.append(tail());
  parts.push_back(filled);
}

/// Returns the marker behind the current subrecord. It has its sign set if another subrecord came before.
ByteVector Record::tail() const { return marker(parts.empty() ? filled : -filled, form); }

void Record::set_head(RecordStream& stream, Bytes length) {
  if (std::exchange(head, length) == length) return;
  // Only the I/O rank can have written the marker of the first subrecord. An array may have taken along the
  // marker of a later one (behind 2 GiB), and any aggregator may have written it: all of them must be done
  // first.
  stream.write_over(head_at, marker(length, form), !parts.empty());
}

/// Goes on in a new subrecord if the current one is full.
void Record::make_room(RecordStream& stream) {
  if (!form.sequential || filled < form.subrecord) return;
  close_part(stream, true);
  open_part(stream);
}

void Record::put(RecordStream& stream, std::span<const std::byte> item) {
  while (!item.empty()) {
    make_room(stream);
    const Bytes room = form.sequential ? form.subrecord - filled : std::ssize(item);
    const auto now = item.first(static_cast<std::size_t>(std::min(room, std::ssize(item))));
    stream.append(now);
    item = item.subspan(now.size());
    filled += std::ssize(now);
    done += std::ssize(now);
  }
}

std::shared_ptr<files::Framing> Record::frame_out(RecordStream& stream, Bytes bytes, Bytes unit) {
  auto framing = std::make_shared<files::Framing>(bytes, form.swapped ? unit : 1);
  Bytes at = bytes;
  if (form.sequential) {
    make_room(stream);
    at = std::min(bytes, form.subrecord - filled);
    filled += at;
    set_head(stream, at < bytes ? -filled : filled);
  }
  const Bytes start = stream.end();
  framing->insert(0, stream.carried());
  for (Bytes markers = form.marker; at < bytes; markers += 2 * form.marker, at += filled) {
    ByteVector between = tail();
    parts.push_back(filled);
    head_at = start + at + markers;
    filled = std::min(bytes - at, form.subrecord);
    head = at + filled < bytes ? -filled : filled;
    const ByteVector next = marker(head, form);
    between.insert(between.end(), next.begin(), next.end());
    framing->insert(at, std::move(between));
  }
  return framing;
}

files::Outcome find_back(std::FILE* stream, Bytes at, const Form& form) {
  const Bytes both = 2 * form.marker;
  for (bool first = false; !first;) {
    std::int64_t tail = 0, head = 0;
    if (at < both || !read_marker(stream, at - form.marker, form, tail) || at - both < length_of(tail) ||
        !read_marker(stream, at - length_of(tail) - both, form, head) || length_of(head) != length_of(tail))
      return corrupt(cat("there are no markers of a record before byte ", at));
    at -= length_of(tail) + both;
    first = tail >= 0;
  }
  return {at, 0, {}};
}

Bytes told_marker(std::FILE* stream, bool swapped) {
  const auto holds = [&](Bytes marker, int records) {
    Form form;
    form.swapped = swapped;
    form.marker = marker;
    Bytes at = 0;
    for (int i = 0; i < records; ++i) {
      Record record{form, Direction::read, at};
      if (find_parts(stream, at, form, record.parts).value < 0) return false;
      if (record.parts.empty()) break;
      at += record.total_in_file();
    }
    return true;
  };
  if (!holds(8, 1)) return 4;
  if (!holds(4, 1)) return 8;
  // Records of zeros, or of one number that is their length, agree with both sizes.
  constexpr int many = 1000;
  return holds(4, many) || !holds(8, many) ? 4 : 8;
}

}  // namespace tailrace::unformatted
