// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cdf/classic.hpp"

#include <algorithm>
#include <limits>

#include "ground/base/text.hpp"

namespace tailrace::cdf {

namespace {

using cf::Attribute;
using cf::Contents;
using cf::Dimension;
using cf::Type;
using cf::Variable;

constexpr std::int64_t dimension_tag = 10, variable_tag = 11, attribute_tag = 12;

Bytes padded(Bytes size) { return (size + 3) / 4 * 4; }

/// Writes the parts of a header, with counts and offsets as wide as the version says.
class Writer {
 public:
  explicit Writer(Version version) : version_(version) {}

  Writer& tag(std::int64_t value) {
    cf::put_big_endian(out_, static_cast<std::int32_t>(value));
    return *this;
  }
  Writer& count(std::int64_t value) {
    if (version_ == Version::cdf5) {
      cf::put_big_endian(out_, value);
    } else {
      cf::put_big_endian(out_, static_cast<std::uint32_t>(value));
    }
    return *this;
  }
  Writer& offset(Bytes value) {
    if (version_ == Version::cdf1) {
      cf::put_big_endian(out_, static_cast<std::int32_t>(value));
    } else {
      cf::put_big_endian(out_, value);
    }
    return *this;
  }
  Writer& name(std::string_view text) {
    count(static_cast<std::int64_t>(text.size()));
    return bytes(std::as_bytes(std::span(text)));
  }
  /// Writes the values, and zeros up to a multiple of 4 bytes.
  Writer& bytes(std::span<const std::byte> values) {
    out_.insert(out_.end(), values.begin(), values.end());
    out_.resize(static_cast<std::size_t>(padded(static_cast<Bytes>(out_.size()))));
    return *this;
  }
  /// Begins a list. An empty list has the tag 0.
  Writer& list(std::int64_t list_tag, std::size_t size) {
    return tag(size == 0 ? 0 : list_tag).count(static_cast<std::int64_t>(size));
  }
  Writer& attributes(const std::vector<Attribute>& attributes) {
    list(attribute_tag, attributes.size());
    for (const Attribute& each : attributes) {
      name(each.name).tag(static_cast<std::int64_t>(each.type));
      count(static_cast<Bytes>(each.values.size()) / size_of(each.type)).bytes(each.values);
    }
    return *this;
  }
  ByteVector take() { return std::move(out_); }

 private:
  Version version_;
  ByteVector out_;
};

/// Returns everything before the variables' data, which begin at `data`. The size of the result does not
/// depend on `data`.
ByteVector encode_header(const Contents& contents, const Places& places, Bytes data) {
  Writer out(places.version);
  const char magic[] = {'C', 'D', 'F', static_cast<char>(places.version)};
  out.bytes(std::as_bytes(std::span(magic))).count(0);
  const int first = contents.has_records ? 0 : 1;  // number of the first dimension in the file
  const auto dimensions = std::span(contents.dimensions).subspan(static_cast<std::size_t>(first));
  out.list(dimension_tag, dimensions.size());
  for (const Dimension& each : dimensions) out.name(each.name).count(each.length);
  out.attributes(contents.attributes);
  out.list(variable_tag,
           static_cast<std::size_t>(std::ranges::count_if(
               contents.variables, [&](const Variable& each) { return contents.is_in_file(each); })));
  for (std::size_t i = 0; i < contents.variables.size(); ++i) {
    const Variable& each = contents.variables[i];
    if (!contents.is_in_file(each)) continue;
    const Places::Place& place = places.of_variables[i];
    out.name(each.name).count(static_cast<std::int64_t>(each.dimensions.size()));
    for (const int dimension : each.dimensions) out.count(dimension - first);
    // A size that 32 bits do not hold is written as all ones. Readers compute sizes from the dimensions.
    constexpr Bytes most = std::numeric_limits<std::uint32_t>::max();
    const Bytes size = places.version == Version::cdf5 ? place.size : std::min(place.size, most);
    const Bytes begin = data + place.offset + (Contents::is_record(each) ? places.fixed_size : 0);
    out.attributes(each.attributes).tag(static_cast<std::int64_t>(each.type)).count(size).offset(begin);
  }
  return out.take();
}

/// Reads a header that a Writer has written. After a read beyond the end, ok() is false and all further
/// values are 0.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> head) : head_(head) {
    version_ = static_cast<Version>(number(4) & 0xff);
  }
  std::int64_t tag() { return number(4); }
  std::int64_t count() { return number(version_ == Version::cdf5 ? 8 : 4); }
  Bytes offset() { return number(version_ == Version::cdf1 ? 4 : 8); }
  std::string name() {
    const std::span<const std::byte> text = bytes(count());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  static bool is_text(std::span<const std::byte> values, std::string_view text) {
    return std::ranges::equal(values, std::as_bytes(std::span(text)));
  }
  /// Skips the tag of a list, and returns the length of the list.
  std::int64_t list() {
    tag();
    return count();
  }
  /// Adds the attributes that must stay to `lasting`, but those of a grid mapping, which are computed.
  /// Returns true if the variable stands for a grid mapping or the member.
  bool attributes(const std::string& owner, std::vector<cf::Fixed>& lasting) {
    const std::size_t before = lasting.size();
    bool is_mapping = false, is_member = false;
    for (std::int64_t left = list(); left > 0 && ok_; --left) {
      const std::string its_name = name();
      const auto type = static_cast<Type>(tag());
      const std::span<const std::byte> values = bytes(count() * size_of(type));
      is_mapping = is_mapping || its_name == cf::grid_mapping_name;
      is_member = is_member || (its_name == "standard_name" && is_text(values, "realization"));
      if (cf::must_stay(its_name, type == Type::text))
        lasting.push_back({cat(owner, ":", its_name), type, values});
    }
    if (is_mapping) lasting.resize(before);
    return is_mapping || is_member;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::span<const std::byte> at(Bytes begin, Bytes size) {
    ok_ = ok_ && begin >= 0 && size >= 0 && size <= std::ssize(head_) && begin <= std::ssize(head_) - size;
    return ok_ ? head_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size))
               : std::span<const std::byte>();
  }

 private:
  std::int64_t number(Bytes size) {
    std::int64_t value = 0;
    for (const std::byte each : at(next_, size)) value = value << 8 | static_cast<std::int64_t>(each);
    next_ += size;
    return value;
  }
  std::span<const std::byte> bytes(Bytes size) {
    const auto found = at(next_, size);
    next_ += ok_ ? padded(size) : 0;
    return found;
  }

  std::span<const std::byte> head_;
  Version version_ = Version::cdf5;
  Bytes next_ = 0;
  bool ok_ = true;
};

std::string_view name_of(Version version) {
  return version == Version::cdf1 ? "cdf1" : version == Version::cdf2 ? "cdf2" : "cdf5";
}

Status beyond(Version version, const Variable& variable, std::string_view what) {
  return {Code::format, cat("variable '", variable.name, "' ", what, ", which format=", name_of(version),
                            " cannot hold: choose format=cdf5")};
}

}  // namespace

Status Places::add_last(const Contents& contents) {
  const Variable& variable = contents.variables.back();
  Place place{0, padded(*contents.bytes_of(variable))};
  if (version != Version::cdf5) {
    if (place.size > std::int64_t{4294967292}) return beyond(version, variable, "has 4 GiB or more");
    if (variable.type == Type::int64) return beyond(version, variable, "holds integers of 64 bits");
    if (variable.type == Type::uint8) return beyond(version, variable, "holds unsigned bytes");
    if (cf::is_unsigned(variable.type)) return beyond(version, variable, "holds unsigned integers");
  }
  Bytes& end = Contents::is_record(variable) ? record_size : fixed_size;
  place.offset = end;
  if (__builtin_add_overflow(end, place.size, &end))
    return {Code::argument, cat("with variable '", variable.name, "' a record has more than 2^63 bytes")};
  of_variables.push_back(place);
  if (version != Version::cdf1) return {};
  const Bytes begin =
      static_cast<Bytes>(encode_header(contents, *this, 0).size()) + fixed_size + place.offset;
  // Attributes that are added later move all variables.
  constexpr Bytes room = 64 << 10;
  if (begin <= std::numeric_limits<std::int32_t>::max() - room) return {};
  return beyond(version, variable, "begins behind 2 GiB");
}

Status Places::check(const Contents& contents) const {
  if (version != Version::cdf1) return {};
  const auto header = static_cast<Bytes>(encode_header(contents, *this, 0).size());
  for (std::size_t i = 0; i < of_variables.size(); ++i) {
    const Variable& variable = contents.variables[i];
    const Bytes begin = header + of_variables[i].offset + (Contents::is_record(variable) ? fixed_size : 0);
    if (begin > std::numeric_limits<std::int32_t>::max())
      return beyond(version, variable, "begins behind 2 GiB");
  }
  return {};
}

ByteVector encode(const Contents& contents, const Places& places) {
  const Bytes size = static_cast<Bytes>(encode_header(contents, places, 0).size());
  ByteVector out = encode_header(contents, places, size);
  for (const Variable& each : contents.variables) {
    if (Contents::is_record(each)) continue;
    const ByteVector data = each.data();
    out.insert(out.end(), data.begin(), data.end());
    out.resize(static_cast<std::size_t>(padded(static_cast<Bytes>(out.size()))));
  }
  return out;
}

Result<Lasting> lasting_in(std::span<const std::byte> head) {
  Reader in(head);
  in.count();  // of the records
  std::vector<Bytes> lengths;
  for (std::int64_t left = in.list(); left > 0 && in.ok(); --left) {
    in.name();
    lengths.push_back(in.count());
  }
  Lasting lasting;
  std::vector<cf::Fixed> of_file;  // need not stay (cf::must_stay)
  in.attributes("", of_file);
  for (std::int64_t left = in.list(); left > 0 && in.ok(); --left) {
    cf::Fixed each;
    each.name = in.name();
    Bytes size = 1;
    for (std::int64_t dimensions = in.count(); dimensions > 0 && in.ok(); --dimensions) {
      const auto number = static_cast<std::size_t>(in.count());
      const Bytes length = number < lengths.size() ? lengths[number] : 0;
      if (__builtin_mul_overflow(size, length, &size)) size = -1;
    }
    const bool is_mapping_or_member = in.attributes(each.name, lasting.attributes);
    each.type = static_cast<Type>(in.tag());
    if (__builtin_mul_overflow(size, cf::size_of(each.type), &size)) size = -1;
    in.count();  // its size; in older versions it may be too large for the header
    const Bytes begin = in.offset();
    // In a variable with records the record dimension has the length 0.
    // The number of a grid mapping means nothing, and runs of other members may go on.
    if (size == 0 || is_mapping_or_member) continue;
    each.values = in.at(begin, size);
    lasting.variables.push_back(std::move(each));
  }
  if (in.ok()) return lasting;
  return Status(Code::corrupt, "the head of the file is no whole NetCDF header");
}

ByteVector encode_records(Version version, std::int64_t records) {
  return Writer(version).count(records).take();
}

}  // namespace tailrace::cdf
