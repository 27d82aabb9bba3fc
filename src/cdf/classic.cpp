// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "cdf/classic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/byte_order.hpp"
#include "base/text.hpp"

namespace tailrace::cdf {

namespace {

constexpr std::int64_t dimension_tag = 10, variable_tag = 11, attribute_tag = 12;

template <typename T>
void put_integer(ByteVector& out, T value) {
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  swap(bytes, sizeof value);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Bytes padded(Bytes size) { return (size + 3) / 4 * 4; }

/// Writes a header. Counts and offsets are as wide as the version says.
class Writer {
 public:
  explicit Writer(Version version) : version_(version) {}

  Writer& tag(std::int64_t value) {
    put_integer(out_, static_cast<std::int32_t>(value));
    return *this;
  }
  Writer& count(std::int64_t value) {
    if (version_ == Version::cdf5) {
      put_integer(out_, value);
    } else {
      put_integer(out_, static_cast<std::uint32_t>(value));
    }
    return *this;
  }
  Writer& offset(Bytes value) {
    if (version_ == Version::cdf1) {
      put_integer(out_, static_cast<std::int32_t>(value));
    } else {
      put_integer(out_, value);
    }
    return *this;
  }
  Writer& name(std::string_view text) {
    count(static_cast<std::int64_t>(text.size()));
    return bytes(std::as_bytes(std::span(text)));
  }
  /// Pads with zeros to a multiple of 4.
  Writer& bytes(std::span<const std::byte> values) {
    out_.insert(out_.end(), values.begin(), values.end());
    out_.resize(static_cast<std::size_t>(padded(static_cast<Bytes>(out_.size()))));
    return *this;
  }
  /// An empty list has no tag.
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

/// Writes everything before the variables' data, which begin at `data`. Its size does not depend on `data`.
ByteVector encode_header(const Head& head, Bytes data) {
  Writer out(head.version);
  const char magic[] = {'C', 'D', 'F', static_cast<char>(head.version)};
  out.bytes(std::as_bytes(std::span(magic))).count(0);
  out.list(dimension_tag, head.dimensions.size());
  for (const Dimension& each : head.dimensions) out.name(each.name).count(each.length);
  out.attributes(head.attributes);
  out.list(variable_tag, head.variables.size());
  for (const Variable& each : head.variables) {
    out.name(each.name).count(static_cast<std::int64_t>(each.dimensions.size()));
    for (const int dimension : each.dimensions) out.count(dimension);
    // A size that 32 bits do not hold is written as all ones. Readers compute sizes from the dimensions.
    constexpr Bytes most = std::numeric_limits<std::uint32_t>::max();
    const Bytes size = head.version == Version::cdf5 ? each.size : std::min(each.size, most);
    const Bytes begin = data + each.offset + (Head::is_record(each) ? head.fixed_size : 0);
    out.attributes(each.attributes).tag(static_cast<std::int64_t>(each.type)).count(size).offset(begin);
  }
  return out.take();
}

std::string_view name_of(Version version) {
  return version == Version::cdf1 ? "cdf1" : version == Version::cdf2 ? "cdf2" : "cdf5";
}

Status beyond(const Head& head, const Variable& variable, std::string_view what) {
  return {Code::format, cat("variable '", variable.name, "' ", what, ", which format=", name_of(head.version),
                            " cannot hold: choose format=cdf5")};
}

}  // namespace

Bytes size_of(Type type) {
  switch (type) {
    case Type::int8:
    case Type::text:
    case Type::uint8:
      return 1;
    case Type::int16:
      return 2;
    case Type::int32:
    case Type::float32:
      return 4;
    case Type::float64:
    case Type::int64:
      return 8;
  }
  return 0;
}

bool holds(Type type, double value) {
  if (type == Type::float64) return true;
  if (type == Type::float32)
    return !std::isfinite(value) || std::fabs(value) <= std::numeric_limits<float>::max();
  const bool is_unsigned = type == Type::uint8;
  const double bits = 8.0 * static_cast<double>(size_of(type));
  const double low = is_unsigned ? 0 : -std::exp2(bits - 1);
  const double beyond = std::exp2(is_unsigned ? bits : bits - 1);
  return value >= low && value < beyond && value == std::floor(value);
}

void swap(std::span<std::byte> elements, Bytes element_size) {
  copy_ordered(elements.data(), elements.data(), static_cast<Bytes>(elements.size()), element_size,
               std::endian::big);
}

void put_number(ByteVector& out, Type type, double value) {
  switch (type) {
    case Type::int8:
    case Type::text:
    case Type::uint8:
      return put_integer(out, static_cast<std::int8_t>(static_cast<std::int64_t>(value)));
    case Type::int16:
      return put_integer(out, static_cast<std::int16_t>(value));
    case Type::int32:
      return put_integer(out, static_cast<std::int32_t>(value));
    case Type::int64:
      return put_integer(out, static_cast<std::int64_t>(value));
    case Type::float32:
      return put_integer(out, static_cast<float>(value));
    case Type::float64:
      return put_integer(out, value);
  }
}

Attribute Attribute::text(std::string_view name, std::string_view value) {
  const auto bytes = std::as_bytes(std::span(value));
  return {std::string(name), Type::text, {bytes.begin(), bytes.end()}};
}

Attribute Attribute::number(std::string_view name, Type type, double value) {
  Attribute attribute{std::string(name), type, {}};
  put_number(attribute.values, type, value);
  return attribute;
}

std::optional<Index> Head::elements(const Variable& variable) const {
  Index product = 1;
  for (std::size_t i = is_record(variable) ? 1 : 0; i < variable.dimensions.size(); ++i) {
    const Index length = dimensions[static_cast<std::size_t>(variable.dimensions[i])].length;
    if (__builtin_mul_overflow(product, length, &product)) return std::nullopt;
  }
  return product;
}

Status Head::add(Variable variable) {
  if (variable.name.size() > most_name)
    return {Code::argument,
            cat("the name '", variable.name, "' is longer than the ", most_name, " bytes that NetCDF takes")};
  if (std::ranges::count(variables, variable.name, &Variable::name) > 0)
    return {Code::argument, cat("a variable '", variable.name, "' is there already")};
  const std::optional<Index> count = elements(variable);
  Bytes size = 0;
  if (!count || __builtin_mul_overflow(*count, size_of(variable.type), &size) ||
      size > std::numeric_limits<Bytes>::max() - 3)
    return {Code::argument, cat("variable '", variable.name, "' has more than 2^63 bytes")};
  variable.size = padded(size);
  if (version != Version::cdf5) {
    if (variable.size > std::int64_t{4294967292}) return beyond(*this, variable, "has 4 GiB or more");
    if (variable.type == Type::int64) return beyond(*this, variable, "holds integers of 64 bits");
    if (variable.type == Type::uint8) return beyond(*this, variable, "holds unsigned bytes");
  }
  Bytes& end = is_record(variable) ? record_size : fixed_size;
  variable.offset = end;
  if (__builtin_add_overflow(end, variable.size, &end))
    return {Code::argument, cat("with variable '", variable.name, "' a record has more than 2^63 bytes")};
  variables.push_back(std::move(variable));
  if (version != Version::cdf1) return {};
  const Variable& added = variables.back();
  const Bytes begin = static_cast<Bytes>(encode_header(*this, 0).size()) + fixed_size + added.offset;
  // Attributes that are still to come move all variables.
  constexpr Bytes room = 64 << 10;
  if (begin <= std::numeric_limits<std::int32_t>::max() - room) return {};
  return beyond(*this, added, "begins behind 2 GiB");
}

ByteVector encode(const Head& head) {
  ByteVector out = encode_header(head, static_cast<Bytes>(encode_header(head, 0).size()));
  for (const Variable& each : head.variables) {
    if (Head::is_record(each)) continue;
    const ByteVector data = each.data();
    out.insert(out.end(), data.begin(), data.end());
    out.resize(static_cast<std::size_t>(padded(static_cast<Bytes>(out.size()))));
  }
  return out;
}

ByteVector encode_records(Version version, std::int64_t records) {
  return Writer(version).count(records).take();
}

}  // namespace tailrace::cdf
