// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "formats/registry.hpp"
#include "sources/source.hpp"
#include "storage/target.hpp"
#include "streams/index.hpp"

// Files of our own streams with their index, put together as the servers of a stream do it, and what is read
// of files.
namespace tailrace::sources::test {

struct OwnStream {
  codec::StreamDefinition stream;
  std::vector<codec::FieldDefinition> fields;
  std::vector<std::int64_t> leads{0, 3600, 7200};  // one step each
  std::size_t committed = 3;                       // how many of them the index tells
  bool is_finished = true;
  /// Records that are put; all if it is empty.
  std::function<bool(std::size_t step, int field, Index level)> is_put;
};

inline codec::FieldDefinition own_field(const std::string& name, ElementType type, codec::Levels levels,
                                        std::vector<Index> shape = {3, 4}) {
  codec::FieldDefinition field;
  field.name = name;
  field.type = type;
  field.shape = std::move(shape);
  field.levels = std::move(levels);
  return field;
}

inline double own_value(std::size_t step, int field, Index level, Index element) {
  return static_cast<double>(step) * 50 + field * 20 + static_cast<double>(level * 13 + element) - 30;
}

inline void append_number(ByteVector& out, ElementType type, double value) {
  const auto put = [&out](auto number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  switch (type) {
    case ElementType::i8:
    case ElementType::byte:
      return put(static_cast<std::int8_t>(value));
    case ElementType::i16:
      return put(static_cast<std::int16_t>(value));
    case ElementType::i32:
      return put(static_cast<std::int32_t>(value));
    case ElementType::i64:
      return put(static_cast<std::int64_t>(value));
    case ElementType::f32:
      return put(static_cast<float>(value));
    default:
      return put(value);
  }
}

/// Writes the file and its index.
inline void write_own(storage::Target& target, const std::string& path, const OwnStream& own) {
  Result<std::unique_ptr<codec::Codec>> made = formats::make_codec(own.stream);
  ASSERT_TRUE(made.is_ok()) << made.status().text();
  codec::Codec& codec = **made;
  streams::IndexHeader header;
  header.run = *Uuid::parse("123e4567-e89b-42d3-a456-426614174000");
  header.format = own.stream.format;
  header.base = own.stream.base;
  header.calendar = own.stream.calendar;
  header.member = own.stream.member;
  for (const codec::FieldDefinition& field : own.fields) {
    const Status defined = codec.define(field);
    ASSERT_TRUE(defined.is_ok()) << defined.text();
    header.fields.push_back({field.name, field.type, field.shape, field.levels.type, field.levels.values});
  }
  const auto file = *target.open(path, storage::OpenMode::create);
  const ByteVector head = codec.head();
  ASSERT_TRUE(file->write(head, 0).is_ok());
  header.data_begin = std::ssize(head);
  ByteVector index = streams::encode_header(header);
  streams::IndexChain chain = streams::first_chain(index);
  const auto places = codec.fixed_places();
  std::vector<codec::FinishedStep> finished;
  Bytes begin = header.data_begin;
  for (std::size_t step = 0; step < own.leads.size(); ++step) {
    streams::IndexStep told{static_cast<std::int64_t>(step), own.leads[step], begin, begin, {}};
    std::vector<codec::FinishedStep::Record> put;
    const auto encoder = codec.encoder();
    for (int f = 0; f < static_cast<int>(own.fields.size()); ++f) {
      const codec::FieldDefinition& field = own.fields[static_cast<std::size_t>(f)];
      Bytes used = 0;
      for (Index level = 0; level < std::ssize(field.levels.values); ++level) {
        if (own.is_put && !own.is_put(step, f, level)) continue;
        ByteVector values, bytes;
        for (Index i = 0; i < field.elements(); ++i)
          append_number(values, codec.assembled_type(f), own_value(step, f, level, i));
        const Status encoded = encoder->encode({f, level, own.leads[step], own.leads[step]}, values.data(),
                                               field.elements(), bytes);
        ASSERT_TRUE(encoded.is_ok()) << encoded.text();
        Bytes at = told.end - begin;
        if (places) {
          const std::vector<Bytes>& of = places->places[static_cast<std::size_t>(f)];
          at = places->are_packed ? of.front() + used : of[static_cast<std::size_t>(level)];
          used += std::ssize(bytes);
        }
        ASSERT_TRUE(file->write(bytes, begin + at).is_ok());
        put.push_back({f, level, at, std::ssize(bytes), encoder->parts()});
        told.records.push_back({f, static_cast<std::int32_t>(level), begin + at, std::ssize(bytes)});
        told.end = std::max(told.end, begin + at + std::ssize(bytes));
      }
    }
    for (const codec::Patch& patch :
         codec.rest_of_step(own.leads[step], step == 0 ? 0 : own.leads[step - 1], put)) {
      for (std::int64_t i = 0; i < patch.times; ++i)
        ASSERT_TRUE(file->write(patch.bytes, begin + patch.offset + i * std::ssize(patch.bytes)).is_ok());
    }
    if (places) told.end = begin + places->step;
    begin = told.end;
    if (step >= own.committed) continue;
    const ByteVector record = streams::encode_step(told, chain);
    chain = streams::next_chain(chain, record);
    index.insert(index.end(), record.begin(), record.end());
    codec::FinishedStep& done = finished.emplace_back(codec::FinishedStep{told.lead, {}});
    for (codec::FinishedStep::Record each : put) {
      each.offset += told.begin;
      done.records.push_back(each);
    }
    if (const auto count = formats::step_count(own.stream.format, static_cast<std::int64_t>(step) + 1); count)
      ASSERT_TRUE(file->write(count->bytes, count->offset).is_ok());
  }
  if (own.is_finished && own.committed == own.leads.size()) {
    const codec::ReadBytes read = [&](std::span<std::byte> to, Bytes offset) {
      return file->read(to, offset);
    };
    const auto ending = codec.ending(read, finished, header.data_begin, begin);
    ASSERT_TRUE(ending.is_ok()) << ending.status().text();
    if (*ending) {
      ASSERT_TRUE(file->write((*ending)->tail, begin).is_ok());
      ASSERT_TRUE(file->write((*ending)->head.bytes, (*ending)->head.offset).is_ok());
    }
  }
  ASSERT_TRUE(file->close().is_ok());
  const auto beside = *target.open(streams::index_path(path), storage::OpenMode::create);
  ASSERT_TRUE(beside->write(index, 0).is_ok());
  ASSERT_TRUE(beside->close().is_ok());
}

inline void write_bytes(storage::Target& target, const std::string& path, const ByteVector& bytes) {
  const auto file = *target.open(path, storage::OpenMode::create);
  ASSERT_TRUE(file->write(bytes, 0).is_ok());
  ASSERT_TRUE(file->close().is_ok());
}

inline std::shared_ptr<storage::Target> target_with(const std::string& path, const ByteVector& bytes) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  write_bytes(*target, path, bytes);
  return target;
}

/// Stands for missing values, so that lists of values can be compared.
inline constexpr double absent = -1e99;

/// The part of a record, or the error; missing values are `absent`.
struct PartRead {
  std::vector<double> values;
  Index missing = 0;
  Status status;
};

template <typename Value>
PartRead part_of(const Source& source, const Record& record, const layout::Box& cut) {
  Index count = 1;
  for (std::size_t d = 0; d < cut.lower.size(); ++d) count *= cut.upper[d] - cut.lower[d];
  std::vector<Value> values(static_cast<std::size_t>(count), Value{-77});
  Scratch scratch;
  const Result<Index> missing =
      source.read(record.place, source.inventory().grids.at(static_cast<std::size_t>(record.grid)), cut,
                  sizeof(Value) == 4 ? ElementType::f32 : ElementType::f64,
                  reinterpret_cast<std::byte*>(values.data()), scratch);
  EXPECT_LE(std::ssize(scratch.bytes) + std::ssize(scratch.decoded),
            source.scratch_bound(source.inventory().grids.at(static_cast<std::size_t>(record.grid))));
  PartRead part;
  part.status = missing.status();
  if (missing.is_ok()) part.missing = *missing;
  for (const Value each : values)
    part.values.push_back(std::isnan(each) ? absent : static_cast<double>(each));
  return part;
}

template <typename Value = double>
PartRead all_of(const Source& source, const Record& record) {
  const Grid& grid = source.inventory().grids.at(static_cast<std::size_t>(record.grid));
  return part_of<Value>(source, record, {std::vector<Index>(grid.shape.size(), 0), grid.shape});
}

/// Returns the records of one field, in their order.
inline std::vector<Record> records_of(const Source& source, const std::string& field) {
  std::vector<Record> records;
  for (const Record& each : source.inventory().records) {
    if (each.field == field) records.push_back(each);
  }
  return records;
}

inline std::string time_text(const Source& source, std::int64_t seconds) {
  return seconds == any_time ? "any" : format_time(from_seconds(seconds, source.inventory().calendar));
}

inline std::string key_of(const Source& source, const Record& record, const std::string& key) {
  const std::string* const found =
      codec::find_key(source.inventory().grids.at(static_cast<std::size_t>(record.grid)).keys, key);
  return found == nullptr ? "(none)" : *found;
}

}  // namespace tailrace::sources::test
