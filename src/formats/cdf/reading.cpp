// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cdf/reading.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "formats/cdf/classic.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cdf {

namespace {

using cf::FoundAttribute;
using cf::FoundVariable;
using cf::Number;

/// The types of elements by their numbers in a header (netcdf.h). Texts (2) are no numbers.
constexpr std::array<Number, 12> header_types{
    Number::none,    Number::int8,  Number::none,   Number::int16,  Number::int32, Number::float32,
    Number::float64, Number::uint8, Number::uint16, Number::uint32, Number::int64, Number::uint64};
constexpr std::int64_t text_type = 2;

Bytes bytes_of(std::int64_t type) {
  return type == text_type ? 1 : cf::size_of(header_types[static_cast<std::size_t>(type)]);
}

/// Reads the values of a header one after the other. It reads the file in large parts. After the first error
/// all further values are 0, and status() returns the error.
class HeaderReader {
 public:
  HeaderReader(const codec::ReadBytes& read, Bytes size) : read_(read), size_(size) {}

  void set_version(Version version) { version_ = version; }
  [[nodiscard]] Version version() const { return version_; }
  [[nodiscard]] bool ok() const { return status_.is_ok(); }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] Bytes left() const { return size_ - next_; }
  [[nodiscard]] Bytes next() const { return next_; }
  void fail(Bytes at, std::string_view expected, std::string_view got) {
    if (ok())
      status_ = {Code::corrupt,
                 cat("byte ", at, " of the NetCDF header: expected ", expected, ", got ", got)};
  }

  std::int64_t number(Bytes width) {
    std::int64_t value = 0;
    for (const std::byte each : take(width)) value = value << 8 | static_cast<std::int64_t>(each);
    return value;
  }
  /// Takes a number that must not be negative.
  std::int64_t count() {
    const Bytes at = next_;
    const std::int64_t value = number(version_ == Version::cdf5 ? 8 : 4);
    const bool is_negative = version_ == Version::cdf5 ? value < 0 : value > 0x7fffffff;
    if (is_negative) fail(at, "a count", "a negative number");
    return ok() ? value : 0;
  }
  Bytes offset() { return number(version_ == Version::cdf1 ? 4 : 8); }
  std::string text(Bytes length) {
    const auto bytes = take_padded(length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string name() { return text(count()); }
  ByteVector values(Bytes length, Bytes element) {
    const auto bytes = take_padded(length);
    ByteVector values(bytes.size());
    if (!bytes.empty())
      copy_ordered(values.data(), bytes.data(), std::ssize(bytes), element, std::endian::big);
    return values;
  }
  /// Takes the tag of a list, which must be `expected` or, if the list is empty, may be 0, and returns the
  /// list's length. Each entry has at least `least` bytes, so that the file's size limits the length.
  std::int64_t list(std::int64_t expected, Bytes least) {
    const Bytes at = next_;
    const std::int64_t tag = number(4), length = count();
    if (tag != expected && (tag != 0 || length != 0))
      fail(at, cat("a list with the mark ", expected), cat("the mark ", tag));
    if (length > left() / least)
      fail(at, cat("a list that fits into the ", left(), " bytes up to the end of the file"),
           counted(length, "entry", "entries"));
    return ok() ? length : 0;
  }

 private:
  /// Returns the next bytes; they are valid until the next call.
  std::span<const std::byte> take(Bytes length) {
    if (!ok()) return {};
    // Limits the length, because the file's size is no good limit: a sparse file may have any size at no
    // cost.
    constexpr Bytes longest = Bytes{16} << 20;
    if (length > longest) {
      fail(next_, cat("a name or an attribute of at most ", counted(longest, "byte")),
           counted(length, "byte"));
      return {};
    }
    if (length < 0 || length > left()) {
      fail(next_, counted(length, "byte"),
           counted(std::max<Bytes>(left(), 0), "byte") + " up to the end of the file");
      return {};
    }
    if (next_ < begin_ || next_ + length > begin_ + std::ssize(buffer_)) fill(length);
    if (!ok()) return {};
    const auto part = std::span(buffer_).subspan(static_cast<std::size_t>(next_ - begin_),
                                                 static_cast<std::size_t>(length));
    next_ += length;
    return part;
  }
  std::span<const std::byte> take_padded(Bytes length) {
    const auto part = take(length);
    // The file may end before the padding of the last part of its header.
    if (ok()) next_ = std::min(size_, next_ + (4 - length % 4) % 4);
    return part;
  }
  void fill(Bytes least) {
    constexpr Bytes part = 64 << 10;
    begin_ = next_;
    buffer_.resize(static_cast<std::size_t>(std::min(left(), std::max(least, part))));
    const Result<Bytes> got = read_(buffer_, begin_);
    if (!got.is_ok()) {
      status_ = got.status();
    } else if (*got < std::ssize(buffer_)) {
      fail(begin_, counted(std::ssize(buffer_), "byte"), counted(*got, "byte"));
    }
  }

  const codec::ReadBytes& read_;
  Bytes size_;
  Version version_ = Version::cdf1;
  ByteVector buffer_;
  Bytes begin_ = 0;  // where the buffer lies in the file
  Bytes next_ = 0;
  Status status_;
};

std::int64_t read_type(HeaderReader& in) {
  const Bytes at = in.next();
  const std::int64_t type = in.number(4);
  const std::int64_t last = in.version() == Version::cdf5 ? 11 : 6;
  if (type < 1 || type > last) in.fail(at, cat("a type from 1 to ", last), std::to_string(type));
  return in.ok() ? type : 1;
}

std::vector<FoundAttribute> read_attributes(HeaderReader& in) {
  std::vector<FoundAttribute> attributes;
  for (std::int64_t left = in.list(12, 12); left > 0 && in.ok(); --left) {
    FoundAttribute each{in.name(), {}, {}, {}};
    const std::int64_t type = read_type(in);
    const Bytes at = in.next(), count = in.count(), size = bytes_of(type);
    if (count > in.left() / size) in.fail(at, "an attribute inside of the file", counted(count, "value"));
    if (!in.ok()) break;
    each.type = header_types[static_cast<std::size_t>(type)];
    if (type == text_type)
      each.text = in.text(count);
    else
      each.values = in.values(count * size, size);
    attributes.push_back(std::move(each));
  }
  return attributes;
}

/// Reads one variable, and adds it and its place to `header`.
void read_variable(HeaderReader& in, std::optional<int> record_dimension, ReadHeader& header) {
  FoundVariable variable;
  variable.name = in.name();
  const Bytes at = in.next();
  const std::int64_t dimensions = in.count();
  if (dimensions > std::ssize(header.contents.dimensions) * 4 + 4)
    in.fail(at, cat("no more dimensions than the file has (", header.contents.dimensions.size(), ")"),
            std::to_string(dimensions));
  ReadHeader::VariablePlace place;
  Bytes elements = 1;
  for (std::int64_t i = 0; i < dimensions && in.ok(); ++i) {
    const Bytes place_of = in.next();
    const std::int64_t number = in.count();
    if (number >= std::ssize(header.contents.dimensions))
      in.fail(place_of, cat("one of ", counted(std::ssize(header.contents.dimensions), "dimension")),
              cat("number ", number));
    if (!in.ok()) return;
    const bool is_record = record_dimension && number == *record_dimension;
    if (is_record && i > 0)
      in.fail(place_of, "the record dimension as the first one of a variable", cat("as number ", i));
    place.has_records = place.has_records || is_record;
    const Index length = header.contents.dimensions[static_cast<std::size_t>(number)].length;
    if (!is_record && __builtin_mul_overflow(elements, length, &elements))
      in.fail(at, "a variable of less than 2^63 elements", "more");
    variable.dimensions.push_back(static_cast<int>(number));
  }
  variable.attributes = read_attributes(in);
  const std::int64_t type = read_type(in);
  variable.type = header_types[static_cast<std::size_t>(type)];
  if (__builtin_mul_overflow(elements, bytes_of(type), &place.size))
    in.fail(at, "a variable of less than 2^63 bytes", "more");
  if (type == text_type && place.has_records < dimensions) {
    const Index length =
        header.contents.dimensions[static_cast<std::size_t>(variable.dimensions.back())].length;
    if (length > 0 && length <= most_text) {
      variable.text_bytes = length;
      variable.dimensions.pop_back();
    }
  }
  // Skips the size of the variable. It is wrong for large variables in older versions, so readers compute it.
  in.number(in.version() == Version::cdf5 ? 8 : 4);
  const Bytes begin_at = in.next();
  place.begin = in.offset();
  if (place.begin < 0) in.fail(begin_at, "an offset", std::to_string(place.begin));
  if (!in.ok()) return;
  header.contents.variables.push_back(std::move(variable));
  header.of_variables.push_back(place);
}

/// Adds up the size of a record. If only one variable has records, its records have no padding.
Status add_record_size(ReadHeader& header) {
  int count = 0;
  Bytes alone = 0;
  for (const ReadHeader::VariablePlace& each : header.of_variables) {
    if (!each.has_records) continue;
    ++count;
    alone = each.size;
    Bytes padded = 0;
    if (__builtin_add_overflow(each.size, (4 - each.size % 4) % 4, &padded) ||
        __builtin_add_overflow(header.record_size, padded, &header.record_size))
      return {Code::corrupt, "the NetCDF header: a record has more than 2^63 bytes"};
  }
  if (count == 1) header.record_size = alone;
  return {};
}

Status check_inside(const ReadHeader& header, Bytes size) {
  for (std::size_t i = 0; i < header.of_variables.size(); ++i) {
    const ReadHeader::VariablePlace& each = header.of_variables[i];
    Bytes end = 0;
    const Index further = each.has_records ? header.records - 1 : 0;
    if (each.has_records && header.records == 0) continue;
    if (__builtin_mul_overflow(further, header.record_size, &end) ||
        __builtin_add_overflow(end, each.begin, &end) || __builtin_add_overflow(end, each.size, &end) ||
        end > size)
      return {
          Code::corrupt,
          cat("variable '", header.contents.variables[i].name, "' begins at byte ", each.begin, " and has ",
              each.has_records ? cat(counted(header.records, "record"), " of ") : std::string(), each.size,
              " bytes: expected a file that reaches behind it, got one of ", size, " bytes")};
  }
  return {};
}

/// Returns how many whole records a file of `size` bytes has room for, if its header does not state their
/// number.
Index records_by_size(const ReadHeader& header, Bytes size) {
  Bytes begin = size;
  for (const ReadHeader::VariablePlace& each : header.of_variables) {
    if (each.has_records) begin = std::min(begin, each.begin);
  }
  return header.record_size > 0 ? (size - begin) / header.record_size : 0;
}

}  // namespace

bool is_classic(std::span<const std::byte> first) {
  return first.size() >= 4 && std::memcmp(first.data(), "CDF", 3) == 0 &&
         (first[3] == std::byte{1} || first[3] == std::byte{2} || first[3] == std::byte{5});
}

Result<ReadHeader> read_header(const codec::ReadBytes& read, Bytes size) {
  HeaderReader in(read, size);
  const std::int64_t mark = in.number(4);
  const auto version = static_cast<Version>(mark & 0xff);
  const bool known = version == Version::cdf1 || version == Version::cdf2 || version == Version::cdf5;
  if (mark >> 8 != 0x434446 || !known) in.fail(0, "CDF and 1, 2 or 5", "other bytes");
  in.set_version(version);
  ReadHeader header;
  const Bytes width = version == Version::cdf5 ? 8 : 4;
  const std::int64_t records = in.number(width);
  const bool is_streaming = version == Version::cdf5 ? records == -1 : records == 0xffffffff;
  if (!is_streaming && (records < 0 || (width == 4 && records > 0x7fffffff)))
    in.fail(4, "a number of records", std::to_string(records));
  std::optional<int> record_dimension;
  for (std::int64_t left = in.list(10, 2 * width); left > 0 && in.ok(); --left) {
    cf::Dimension each{in.name(), 0};
    const Bytes at = in.next();
    each.length = in.count();
    if (each.length == 0 && record_dimension)
      in.fail(at, "one record dimension (of length 0)", "a second one");
    if (each.length == 0) record_dimension = static_cast<int>(header.contents.dimensions.size());
    header.contents.dimensions.push_back(std::move(each));
  }
  header.contents.attributes = read_attributes(in);
  for (std::int64_t left = in.list(11, 8 + 3 * width); left > 0 && in.ok(); --left)
    read_variable(in, record_dimension, header);
  TR_TRY(in.status());
  TR_TRY(add_record_size(header));
  header.records = is_streaming ? records_by_size(header, size) : records;
  TR_TRY(check_inside(header, size));
  if (record_dimension)
    header.contents.dimensions[static_cast<std::size_t>(*record_dimension)].length = header.records;
  return header;
}

}  // namespace tailrace::cdf
