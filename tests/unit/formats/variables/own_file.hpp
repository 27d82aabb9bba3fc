// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "formats/index/index.hpp"
#include "formats/registry/registry.hpp"
#include "formats/variables/names.hpp"
#include "ground/storage/target.hpp"
#include "reading.hpp"

// Makes files of the library's own streams with their index, as the servers of a stream do it.
namespace tailrace::variables::test {

struct OwnStream {
  codec::StreamDefinition stream;
  std::vector<codec::FieldDefinition> fields;
  std::vector<std::int64_t> leads{0, 3600, 7200};  // one for each step
  std::size_t committed = 3;                       // how many steps are in the index
  bool is_finished = true;
  /// True if a record is put. All records are put if it is empty.
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
  header.time = own.stream.time;
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
      if (!field.has_time) continue;
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

/// Returns a stream with a member, a calendar, levels, a field with missing values, and three steps.
inline OwnStream own_stream(const std::string& format) {
  OwnStream own;
  own.stream.format = format;
  own.stream.base = {2026, 3, 1, 6, 0, 0};
  own.stream.calendar = Calendar::no_leap;
  own.stream.member = 4;
  codec::FieldDefinition t = own_field("t", ElementType::f32, {"isobaricInhPa", {1000, 850}, {}, {}});
  t.georeference.keys = {{"gridType", "regular_ll"},
                         {"Ni", "4"},
                         {"Nj", "3"},
                         {"latitudeOfFirstGridPointInDegrees", "60"},
                         {"latitudeOfLastGridPointInDegrees", "40"},
                         {"longitudeOfFirstGridPointInDegrees", "0"},
                         {"longitudeOfLastGridPointInDegrees", "3"}};
  codec::FieldDefinition with_missing = own_field("m", ElementType::f64, {});
  with_missing.missing = own_value(1, 1, 0, 2);
  if (format == "raw") with_missing.missing.reset();
  own.fields = {t, with_missing, own_field("n", ElementType::i16, {"heightAboveGround", {2}, {}, {}}, {5})};
  return own;
}

/// Makes a field without time, with the values of step 0 of the field with this number.
inline codec::FieldDefinition fixed_field(const std::string& name, ElementType type, codec::Levels levels,
                                          int number) {
  codec::FieldDefinition field = own_field(name, type, std::move(levels));
  field.has_time = false;
  ByteVector values;
  for (Index level = 0; level < std::ssize(field.levels.values); ++level) {
    for (Index i = 0; i < field.elements(); ++i) {
      ByteVector one;
      append_number(one, type, own_value(0, number, level, i));
      values.insert(values.end(), one.rbegin(), one.rend());
    }
  }
  field.values = std::make_shared<const ByteVector>(std::move(values));
  return field;
}

/// Returns own_stream() with fields without time: one with levels and a missing value, and one that readers
/// of other programs' files take for a coordinate.
inline OwnStream own_stream_with_fixed(const std::string& format) {
  OwnStream own = own_stream(format);
  own.fields.push_back(fixed_field("area", ElementType::i16, {"heightAboveGround", {2, 10}, {}, {}}, 3));
  own.fields.back().missing = own_value(0, 3, 1, 2);
  own.fields.push_back(fixed_field("north", ElementType::f64, {}, 4));
  own.fields.back().attributes = {{"units", "degrees_north"}};
  return own;
}

/// Expects the fields without time of own_stream_with_fixed(), as the index tells them.
inline void expect_fixed(const Source& source) {
  const std::vector<Record> area = records_of(source, "area"), north = records_of(source, "north");
  ASSERT_EQ(area.size(), 2U);
  ASSERT_EQ(north.size(), 1U);
  EXPECT_EQ(area[1].level_type, "heightAboveGround");
  EXPECT_EQ(area[1].level, 10);
  EXPECT_EQ(time_text(source, area[1].reference), "2026-03-01T06:00:00Z");
  EXPECT_EQ(source.inventory().records.back().field, "north") << "they stand behind the steps";
  for (const Record& each : {area[0], area[1], north[0]}) {
    EXPECT_EQ(each.valid, any_time);
    EXPECT_EQ(each.member, 4);
    std::vector<double> expected;
    for (Index e = 0; e < 12; ++e)
      expected.push_back(own_value(0, each.field == "area" ? 3 : 4, each.level == 10 ? 1 : 0, e));
    if (each.level == 10) expected[2] = absent;
    EXPECT_EQ(all_of<float>(source, each).values, expected);
    EXPECT_EQ(part_of<double>(source, each, {{1, 1}, {3, 3}}).values,
              (std::vector<double>{expected[5], expected[6], expected[9], expected[10]}));
  }
}

/// Expects that the first `steps` steps have the values of own_stream().
inline void expect_own(const Source& source, std::size_t steps) {
  EXPECT_EQ(source.inventory().calendar, Calendar::no_leap);
  const std::vector<Record> t = records_of(source, "t"), n = records_of(source, "n");
  ASSERT_EQ(t.size(), 2 * steps);
  EXPECT_EQ(t[1].level_type, "isobaricInhPa");
  EXPECT_EQ(t[1].level, 850);
  EXPECT_EQ(t[1].member, 4);
  EXPECT_EQ(time_text(source, t[3].valid), "2026-03-01T07:00:00Z");
  EXPECT_EQ(key_of(source, t[0], "gridType"), "regular_ll");
  for (std::size_t i = 0; i < t.size(); ++i) {
    std::vector<double> expected;
    for (Index e = 0; e < 12; ++e) expected.push_back(own_value(i / 2, 0, static_cast<Index>(i % 2), e));
    EXPECT_EQ(all_of<float>(source, t[i]).values, expected);
    EXPECT_EQ(part_of<double>(source, t[i], {{1, 1}, {3, 3}}).values,
              (std::vector<double>{expected[5], expected[6], expected[9], expected[10]}));
  }
  EXPECT_EQ(n.at(0).level_type, "heightAboveGround");
  EXPECT_EQ(part_of<double>(source, n.at(1), {{1}, {3}}).values,
            (std::vector<double>{own_value(1, 2, 0, 1), own_value(1, 2, 0, 2)}));
  EXPECT_EQ(all_of(source, records_of(source, "m").at(1)).missing, 1);
  EXPECT_EQ(all_of(source, records_of(source, "m").at(1)).values[2], absent);
}

}  // namespace tailrace::variables::test
