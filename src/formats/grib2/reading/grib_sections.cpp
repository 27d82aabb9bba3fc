// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/reading/grib_sections.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sources {

namespace {

using grib2::get_number;
using grib2::put_number;

constexpr Bytes window = 8192;
constexpr Bytes longest_header = Bytes{16} << 20;
constexpr Bytes length_of_end = 4;

/// Reads one message, section by section.
class MessageReader {
 public:
  MessageReader(const Fetch& fetch, Bytes offset, Bytes size) : fetch_(fetch), begin_(offset), size_(size) {}

  Result<Bytes> read(std::vector<GribField>& fields) {
    const Result<std::span<const std::byte>> head = need(0, 8, "its first 8 bytes");
    TR_TRY(head.status());
    if (std::memcmp(head->data(), "GRIB", 4) != 0) return wrong("begins with", "GRIB", "something else");
    field_.message = begin_;
    field_.edition = std::to_integer<int>((*head)[7]);
    if (field_.edition == 1) {
      length_ = static_cast<Bytes>(get_number(&(*head)[4], 3));
      TR_TRY(read_edition_1(fields));
    } else if (field_.edition == 2) {
      TR_TRY(read_edition_2(fields));
    } else {
      return wrong("edition", "1 or 2", cat(field_.edition));
    }
    return length_;
  }

 private:
  Status wrong(std::string_view what, std::string_view expected, const std::string& got) const {
    return {Code::corrupt, cat("GRIB message at byte ", begin_, ": ", what, ": expected ", expected, ", got ",
                               got, "; the file is damaged there, or is no GRIB file")};
  }

  /// Returns `count` bytes of the message. Code::corrupt if the file ends before the last of them; `what`
  /// names them in the error.
  Result<std::span<const std::byte>> need(Bytes at, Bytes count, std::string_view what) const {
    Result<std::span<const std::byte>> bytes = fetch_(begin_ + at, count);
    TR_TRY(bytes.status());
    if (static_cast<Bytes>(bytes->size()) == count) return bytes;
    return Status(Code::corrupt, cat("GRIB message at byte ", begin_, ": expected ", what, " at byte ",
                                     begin_ + at, ", got the end of the file (", counted(size_, "byte"),
                                     "); the file was cut, or is still being written"));
  }

  /// Checks `length_`: the whole message lies in the file, and ends with "7777".
  Status check_length(Bytes least) {
    if (length_ < least) return wrong("length", cat("at least ", least), cat(length_));
    if (length_ > size_ - begin_)
      return {Code::corrupt,
              cat("GRIB message at byte ", begin_, ": expected ", counted(length_, "byte"), ", got ",
                  size_ - begin_, " up to the end of the file; it was cut, or is still being written")};
    const Result<std::span<const std::byte>> end = need(length_ - length_of_end, length_of_end, "7777");
    TR_TRY(end.status());
    if (std::memcmp(end->data(), "7777", 4) != 0)
      return wrong(cat("the last 4 bytes (", counted(length_, "byte"), " long)"), "7777", "others");
    return {};
  }

  Status too_long(int number, Bytes at, Bytes length) const {
    return wrong(cat("section ", number, " at byte ", begin_ + at),
                 cat("a length that fits into the ", counted(length_, "byte"), " of the message"),
                 cat(length));
  }

  /// Adds the section of GRIB1 that begins at `at`, and moves `at` behind it.
  Status take_edition_1(int number, Bytes least, Bytes& at) {
    const Result<std::span<const std::byte>> bytes = need(at, 3, cat("section ", number));
    TR_TRY(bytes.status());
    const auto length = static_cast<Bytes>(get_number(&(*bytes)[0], 3));
    if (length < least) return wrong(cat("length of section ", number), cat("at least ", least), cat(length));
    field_.sections[static_cast<std::size_t>(number)] = {at, length};
    at += length;
    return {};
  }

  Status read_edition_1(std::vector<GribField>& fields) {
    constexpr Bytes least_product = 28, least_grid = 7, least_bitmap = 6, least_data = 11;
    Bytes at = 8;
    TR_TRY(take_edition_1(1, least_product, at));
    const Result<std::span<const std::byte>> flag = need(8 + 7, 1, "the flags of section 1");
    TR_TRY(flag.status());
    const unsigned flags = std::to_integer<unsigned>(flag->front());
    if ((flags & 0x80) != 0) TR_TRY(take_edition_1(2, least_grid, at));
    if ((flags & 0x40) != 0) TR_TRY(take_edition_1(3, least_bitmap, at));
    const Bytes data_at = at;
    // ECMWF's convention for a message beyond 2^23 bytes: its length counts units of 120 bytes, and the
    // length of its data section says how many bytes of the last unit are unused.
    constexpr Bytes large = 0x800000, unit = 120;
    const bool is_large = (length_ & large) != 0;
    TR_TRY(take_edition_1(4, is_large ? 0 : least_data, at));
    GribSection& data = field_.sections[4];
    if (is_large && data.length < unit) {
      length_ = (length_ - large) * unit - data.length + length_of_end;
      data.length = length_ - length_of_end - data_at;
    }
    TR_TRY(check_length(data_at + least_data + length_of_end));
    if (data.length < least_data || data.length > length_ - length_of_end - data_at)
      return too_long(4, data_at, data.length);
    field_.length = length_;
    fields.push_back(field_);
    return {};
  }

  /// Returns true if section `next` may follow section `before`.
  static bool follows(int before, int next) {
    if (before == 7) return next == 2 || next == 3 || next == 4;
    return next == before + 1 || (before == 1 && next == 3);
  }

  /// A field may say that it uses the bitmap of an earlier field. Sets `bitmap` to that one then; otherwise
  /// notes the field's own bitmap in `before`.
  Status take_bitmap(Bytes at, GribSection& bitmap, GribSection& before) {
    constexpr unsigned own = 0, as_before = 254;
    const Result<std::span<const std::byte>> bytes = need(at, 6, "section 6");
    TR_TRY(bytes.status());
    const unsigned indicator = std::to_integer<unsigned>((*bytes)[5]);
    if (indicator == own) before = bitmap;
    if (indicator != as_before) return {};
    if (before.length == 0)
      return wrong(cat("section 6 at byte ", begin_ + at), "a bitmap",
                   "that of a field before, which has none");
    bitmap = before;
    return {};
  }

  Status read_edition_2(std::vector<GribField>& fields) {
    constexpr std::array<Bytes, 8> least{16, 21, 5, 14, 9, 11, 6, 5};
    const Result<std::span<const std::byte>> head = need(8, 8, "its length");
    TR_TRY(head.status());
    const std::uint64_t stated = get_number(&(*head)[0], 8);
    if (stated >> 62 != 0) return wrong("length", "a number of bytes", cat(stated));
    length_ = static_cast<Bytes>(stated);
    TR_TRY(check_length(least[0] + length_of_end));
    const std::size_t first = fields.size();
    field_.length = length_;
    GribSection last_bitmap;
    int before = 0;
    for (Bytes at = least[0]; at < length_ - length_of_end;) {
      const Result<std::span<const std::byte>> bytes = need(at, 5, "a section");
      TR_TRY(bytes.status());
      const auto length = static_cast<Bytes>(get_number(&(*bytes)[0], 4));
      const int number = std::to_integer<int>((*bytes)[4]);
      if (!follows(before, number))
        return wrong(cat("section behind section ", before, ", at byte ", begin_ + at), cat(before % 7 + 1),
                     cat(number));
      const auto row = static_cast<std::size_t>(number);
      if (length < least[row])
        return wrong(cat("length of section ", number, " at byte ", begin_ + at),
                     cat("at least ", least[row]), cat(length));
      if (length > length_ - length_of_end - at) return too_long(number, at, length);
      field_.sections[row] = {at, length};
      if (number == 6) TR_TRY(take_bitmap(at, field_.sections[6], last_bitmap));
      if (number == 7) {
        field_.number = static_cast<int>(fields.size() - first);
        fields.push_back(field_);
      }
      before = number;
      at += length;
    }
    if (before != 7) return wrong("last section", "7", cat(before));
    return {};
  }

  const Fetch& fetch_;
  const Bytes begin_;
  const Bytes size_;
  Bytes length_ = 0;
  GribField field_;
};

/// Consecutive bytes of a file that one call has read.
struct Window {
  ByteVector bytes;
  Bytes begin = 0;
  Bytes got = 0;
};

void append(ByteVector& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append_end(ByteVector& to) { append(to, std::as_bytes(std::span("7777", 4))); }

/// Returns section 4 of GRIB1 for codes of 0 bits: all values are the reference value, 0.
ByteVector constant_values_1() {
  ByteVector section(12);
  section[2] = std::byte{12};
  section[3] = std::byte{8};  // unused bits of the last octets
  return section;
}

ByteVector constant_values_2(std::span<const std::byte> points) {
  ByteVector sections(21 + 6 + 5);
  sections[3] = std::byte{21};
  sections[4] = std::byte{5};
  std::ranges::copy(points, sections.begin() + 5);
  sections[21 + 3] = std::byte{6};
  sections[21 + 4] = std::byte{6};
  sections[21 + 5] = std::byte{255};
  sections[27 + 3] = std::byte{5};
  sections[27 + 4] = std::byte{7};
  return sections;
}

/// Writes the length into section 0.
void put_length(ByteVector& message, int edition) {
  if (edition == 1)
    put_number(&message[4], message.size(), 3);
  else
    put_number(&message[8], message.size(), 8);
}

}  // namespace

Fetch fetch_from(storage::File& file) {
  const auto held = std::make_shared<Window>();
  return [&file, held](Bytes offset, Bytes count) -> Result<std::span<const std::byte>> {
    if (offset < held->begin || offset + count > held->begin + held->got) {
      held->bytes.resize(static_cast<std::size_t>(std::max(count, window)));
      held->begin = offset;
      held->got = 0;
      const Result<Bytes> got = file.read(held->bytes, offset);
      TR_TRY(got.status());
      held->got = *got;
    }
    const Bytes skipped = offset - held->begin;
    return std::span<const std::byte>(held->bytes)
        .subspan(static_cast<std::size_t>(skipped),
                 static_cast<std::size_t>(std::clamp<Bytes>(held->got - skipped, 0, count)));
  };
}

Fetch fetch_from(std::span<const std::byte> message, Bytes begin) {
  return [message, begin](Bytes offset, Bytes count) -> Result<std::span<const std::byte>> {
    const auto skipped = static_cast<std::size_t>(std::max<Bytes>(offset - begin, 0));
    if (skipped >= message.size()) return std::span<const std::byte>();
    return message.subspan(skipped, std::min(static_cast<std::size_t>(count), message.size() - skipped));
  };
}

Result<Bytes> read_message(const Fetch& fetch, Bytes offset, Bytes size, std::vector<GribField>& fields) {
  return MessageReader(fetch, offset, size).read(fields);
}

Result<Bytes> next_message(const Fetch& fetch, Bytes offset, Bytes size) {
  constexpr std::string_view mark = "GRIB";
  Bytes others = 0;
  Bytes at = offset;
  while (at < size) {
    const Result<std::span<const std::byte>> bytes = fetch(at, std::min(window, size - at));
    TR_TRY(bytes.status());
    // If another program has cut the file since its size was taken, the file ends here.
    if (bytes->size() < mark.size() && at + static_cast<Bytes>(bytes->size()) < size) return size;
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    // A message may begin in the last 7 bytes of the window, so the next window begins with them. At `offset`
    // itself a message is expected: there the word GRIB alone counts as one.
    const bool is_last = at + static_cast<Bytes>(text.size()) >= size;
    const std::size_t found = at == offset && text.starts_with(mark) ? 0 : find_message(text, is_last);
    const std::size_t seen = text.size() - (is_last ? 0 : std::min(edition_octet, text.size() - 1));
    const std::string_view gap = text.substr(0, std::min(found, seen));
    others += static_cast<Bytes>(gap.size()) - std::ranges::count(gap, '\0');
    if (others > longest_gap)
      return Status(Code::corrupt, cat("behind byte ", offset, ": expected a GRIB message, got more than ",
                                       longest_gap, " other bytes; the file is damaged there"));
    at += static_cast<Bytes>(gap.size());
    if (found != text.npos) return at;
  }
  return size;
}

Result<ByteVector> header_message(const Fetch& fetch, const GribField& field) {
  ByteVector message;
  const int last = field.edition == 1 ? 2 : 4;
  const Bytes first = field.edition == 1 ? 8 : 16;
  const auto take = [&](Bytes at, Bytes count) -> Status {
    if (count > longest_header)
      return {Code::corrupt, cat("GRIB message at byte ", field.message, ": a header of ",
                                 counted(count, "byte"), "; expected at most ", longest_header)};
    const Result<std::span<const std::byte>> bytes = fetch(field.message + at, count);
    TR_TRY(bytes.status());
    if (static_cast<Bytes>(bytes->size()) < count)
      return {Code::corrupt,
              cat("GRIB message at byte ", field.message, ": the file was cut while it was read")};
    append(message, *bytes);
    return {};
  };
  TR_TRY(take(0, first));
  for (int number = 1; number <= last; ++number) {
    const GribSection& section = field.sections[static_cast<std::size_t>(number)];
    if (section.length > 0) TR_TRY(take(section.offset, section.length));
  }
  if (field.edition == 1) {
    message[8 + 7] &= std::byte{0xbf};  // no bitmap
    append(message, constant_values_1());
  } else {
    ByteVector points(4);
    const Result<std::span<const std::byte>> bytes = fetch(field.message + field.sections[3].offset + 6, 4);
    TR_TRY(bytes.status());
    if (bytes->size() == 4) std::ranges::copy(*bytes, points.begin());
    append(message, constant_values_2(points));
  }
  append_end(message);
  put_length(message, field.edition);
  return message;
}

ByteVector single_message(std::span<const std::byte> message, const GribField& field) {
  ByteVector single;
  append(single, message.first(field.edition == 1 ? 8 : 16));
  for (const GribSection& section : field.sections) {
    if (section.length == 0) continue;
    const std::size_t at = single.size();
    append(single, message.subspan(static_cast<std::size_t>(section.offset),
                                   static_cast<std::size_t>(section.length)));
    // The bitmap that this field shares with an earlier one is now in its own section 6: say so.
    if (&section == &field.sections[6] && single[at + 5] == std::byte{254}) single[at + 5] = std::byte{0};
  }
  append_end(single);
  put_length(single, field.edition);
  return single;
}

}  // namespace tailrace::sources
