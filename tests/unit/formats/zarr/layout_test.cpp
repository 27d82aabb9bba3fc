// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "formats/zarr/codec.hpp"
#include "formats/zarr/crc32c.hpp"
#include "ground/base/text.hpp"
#include "sample.hpp"

namespace tailrace::zarr {
namespace {

std::string text_in(const ByteVector& head) {
  std::int64_t length = 0;
  for (int i = 0; i < 8; ++i)
    length = length << 8 | static_cast<std::int64_t>(head[static_cast<std::size_t>(i)]);
  return {reinterpret_cast<const char*>(head.data()) + frame_bytes, static_cast<std::size_t>(length)};
}

TEST(zarr_layout, the_sum_is_that_of_the_standard) {
  EXPECT_EQ(crc32c(std::as_bytes(std::span(std::string_view("123456789")))), 0xe3069283U);  // RFC 3720, B.4
}

/// Returns the head of a store with one field that has these keys.
ByteVector head_with(const codec::Keys& keys, std::optional<double> missing = {},
                     ElementType type = ElementType::f32, std::optional<double> accuracy = {}) {
  codec::StreamDefinition stream;
  stream.format = "zarr";
  stream.base = {2026, 3, 1, 0, 0, 0};
  const auto codec = *formats::make_codec(stream);
  codec::FieldDefinition field;
  field.name = "t";
  field.type = type;
  field.shape = {6, 6};
  field.keys = keys;
  field.missing = missing;
  field.accuracy = accuracy;
  EXPECT_TRUE(codec->define(field).is_ok());
  return codec->head();
}

// Chunks of another method, or cut otherwise, would be in the store under metadata that readers misread them
// by.
TEST(zarr_layout, a_store_goes_on_only_with_chunks_that_its_metadata_tell) {
  const ByteVector own = head_with({{"compress", "gzip:1"}, {"chunks", "2x3"}});
  EXPECT_TRUE(check_goes_on(own, own).is_ok());
  EXPECT_TRUE(check_goes_on(own, head_with({{"compress", "gzip:4"}, {"chunks", "2x3"}})).is_ok())
      << "chunks of every level are read alike";
  const std::vector<std::pair<ByteVector, std::string>> others{
      {head_with({{"compress", "none"}, {"chunks", "2x3"}}), "compress="},
      {head_with({{"compress", "zstd"}, {"chunks", "2x3"}}), "compress="},
      {head_with({{"compress", "gzip:1"}, {"chunks", "3x2"}}), "chunks="},
      {head_with({{"compress", "gzip:1"}, {"chunks", "2x3"}}, -9.0), "missing="},
      {head_with({{"compress", "gzip:1"}, {"chunks", "2x3"}}, {}, ElementType::i32), "type"},
      {head_with({{"compress", "gzip:1"}, {"chunks", "2x3"}}, {}, ElementType::f32, 0.1), "accuracy="}};
  for (const auto& [other, word] : others) {
    const Status status = check_goes_on(own, other);
    EXPECT_EQ(status.code(), Code::state) << word;
    EXPECT_NE(status.text().find(word), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("'t'"), std::string::npos) << status.text();
  }
}

// A tool that rewrote a store may have left out what was empty for it.
TEST(zarr_layout, a_store_without_attributes_is_no_end_of_the_program) {
  const ByteVector own = head_with({});
  std::string text(reinterpret_cast<const char*>(own.data()), own.size());
  for (std::size_t at = 0; (at = text.find("\"attributes\"", at)) != std::string::npos;) text[at + 1] = 'A';
  const auto bytes = std::as_bytes(std::span(text));
  const Status status = check_goes_on(bytes, own);
  EXPECT_TRUE(status.is_ok()) << status.text();
}

// A store that goes on after years is read by this text alone.
TEST(zarr_layout, metadata_are_these_bytes) {
  const std::string arrays =
      R"("time":{"zarr_format":3,"node_type":"array","shape":[0],"data_type":"float64",)"
      R"("chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1024]}},)"
      R"("chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},"fill_value":"NaN",)"
      R"("codecs":[{"name":"bytes","configuration":{"endian":"big"}}],)";
  const std::string field =
      R"("t":{"zarr_format":3,"node_type":"array","shape":[0,2,2,3],"data_type":"float32",)"
      R"("chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1,2,2,3]}},)"
      R"("chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},)"
      R"("fill_value":9.969209968386869e+36,"codecs":[{"name":"sharding_indexed","configuration":)"
      R"({"chunk_shape":[1,1,2,3],"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],)"
      R"("index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],)"
      R"("index_location":"end"}}],)";
  const std::string single = R"("codecs":[{"name":"bytes","configuration":{"endian":"little"}},)"
                             R"({"name":"gzip","configuration":{"level":1}}])";
  const std::string text = text_in(sample_codec()->head());
  EXPECT_TRUE(
      text.starts_with(R"({"zarr_format":3,"node_type":"group","attributes":{"Conventions":"CF-1.8")"))
      << text;
  for (const std::string& part :
       {arrays, field, single, std::string(R"("dimension_names":["time","plev","y","x"])"),
        std::string(R"("_FillValue":"AAAAAAAAnkc=")")})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(zarr_layout, integers_tell_a_fill_value_only_if_the_program_does) {
  const auto tells = [](const ByteVector& head) {
    return text_in(head).find("_FillValue") != std::string::npos;
  };
  for (const ElementType type : {ElementType::i8, ElementType::i64, ElementType::byte, ElementType::u64}) {
    EXPECT_FALSE(tells(head_with({}, {}, type))) << "xarray would make floats of it";
    EXPECT_TRUE(tells(head_with({}, 9, type)));
  }
  EXPECT_TRUE(tells(head_with({}, {}, ElementType::f32)));
}

TEST(zarr_layout, metadata_are_read_back_and_written_alike) {
  const ByteVector head = sample_codec()->head();
  Result<Layout> layout = Layout::of(text_in(head));
  ASSERT_TRUE(layout.is_ok()) << layout.status().text();
  EXPECT_EQ(layout->head(), std::ssize(head));
  EXPECT_EQ(layout->step(), sample_codec()->fixed_places()->step);
  const ByteVector begin = layout->head_begin(0);
  EXPECT_TRUE(std::equal(begin.begin(), begin.end(), head.begin()));
  const std::string later = layout->group_text(1234);
  EXPECT_EQ(*layout->steps_in(later), 1234);
  EXPECT_EQ(layout->group_text(0), text_in(head));
  EXPECT_NE(later.find("\"shape\":[1234,2,2,3]"), std::string::npos) << later;
  EXPECT_TRUE(layout->array_text(layout->array("t"), 7)
                  .starts_with("{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[7,2,2,3]"));
  EXPECT_NE(later.find(layout->array_text(layout->array("ps"), 1234)), std::string::npos);
  // Another program has changed it: other attributes, another order.
  EXPECT_EQ(*layout->steps_in(R"({"consolidated_metadata":{"metadata":{"a":{},"time":{"shape":[5]}}}})"), 5);
  EXPECT_EQ(layout->steps_in("{}").status().code(), Code::corrupt);
  // A step has times, two levels and their index, and gzip's room.
  EXPECT_EQ(layout->array("time").size, 8);
  EXPECT_EQ(layout->array("t").size, 2 * 24 + index_bytes(2));
  EXPECT_EQ(layout->array("ps").size, most_compressed(48));
  EXPECT_EQ(layout->array("t").object(12), "t/c.12.0.0.0");
}

TEST(zarr_layout, other_metadata_are_refused) {
  for (
      const char* const text :
      {"", "no json", "{}", "[]", R"({"consolidated_metadata":{"metadata":{}}})",
       R"({"consolidated_metadata":{"metadata":{"t":{"shape":[3],"dimension_names":["time"],"data_type":"float64",)"
       R"("chunk_grid":{"configuration":{"chunk_shape":[1]}},"codecs":[]}}}})"})
    EXPECT_EQ(Layout::of(text).status().code(), Code::corrupt) << text;
}

TEST(zarr_layout, names_that_no_array_can_have_are_refused) {
  for (const char* const name : {"a/b", "a\\b", "..", "__mine", ".hidden", "zarr.json", "zarr.json.new"}) {
    codec::StreamDefinition stream;
    stream.format = "zarr";
    stream.base = {2026, 3, 1, 0, 0, 0};
    const auto codec = *formats::make_codec(stream);
    codec::FieldDefinition field;
    field.name = name;
    field.shape = {4};
    EXPECT_EQ(codec->define(field).code(), Code::argument) << name;
  }
}

TEST(zarr_layout, a_shard_ends_with_the_places_of_its_levels) {
  const auto codec = sample_codec();
  // The program has put the second of two levels alone.
  const std::vector<codec::Patch> step = sample_step(*codec, 0, {{0, 1}});
  const codec::Patch& index = step.back();
  EXPECT_EQ(index.offset - step.front().offset, 24);
  ASSERT_EQ(std::ssize(index.bytes), index_bytes(2));
  ByteVector expected(16, std::byte{0xff});
  expected.resize(32);
  expected[24] = std::byte{24};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), index.bytes.begin()));
}

codec::FieldDefinition field_of(std::vector<Index> shape, codec::Keys keys) {
  codec::FieldDefinition field;
  field.name = "q";
  field.shape = std::move(shape);
  field.keys = std::move(keys);
  return field;
}

std::unique_ptr<codec::Codec> codec_of(const codec::FieldDefinition& field, const codec::Keys& stream = {}) {
  codec::StreamDefinition definition;
  definition.format = "zarr";
  definition.base = {2026, 3, 1, 0, 0, 0};
  definition.keys = stream;
  auto codec = *formats::make_codec(definition);
  const Status status = codec->define(field);
  EXPECT_TRUE(status.is_ok()) << status.text();
  return codec;
}

// 3 x 5 values in chunks of 2 x 2: six of them, of which the shard has whole ones.
TEST(zarr_layout, a_level_may_be_cut_into_chunks_that_do_not_fit_its_edges) {
  const auto codec = codec_of(field_of({3, 5}, {{"chunks", "2x2"}}), {{"compress", "none"}});
  Result<Layout> layout = Layout::of(text_in(codec->head()));
  ASSERT_TRUE(layout.is_ok()) << layout.status().text();
  EXPECT_EQ(layout->array("q").size, 6 * 16 + index_bytes(6));
  const std::string text = layout->group_text(1);
  EXPECT_NE(text.find(R"("configuration":{"chunk_shape":[1,4,6]}})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("configuration":{"chunk_shape":[1,2,2],"codecs":)"), std::string::npos) << text;
  std::vector<float> values(15);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  ByteVector out;
  const auto encoder = codec->encoder();
  ASSERT_TRUE(encoder->encode({0, 0, 0, 0}, reinterpret_cast<std::byte*>(values.data()), 15, out).is_ok());
  EXPECT_EQ(encoder->parts(), std::vector<Bytes>(6, 16));
  std::vector<float> found(24);
  ASSERT_EQ(out.size(), 96U);
  std::memcpy(found.data(), out.data(), 96);
  EXPECT_EQ(std::vector<float>(found.begin() + 4, found.begin() + 8), (std::vector<float>{2, 3, 7, 8}));
  const float none = found[9];  // beyond the edge
  EXPECT_GT(none, 9e36F);
  EXPECT_EQ(std::vector<float>(found.begin() + 20, found.end()), (std::vector<float>{14, none, none, none}));
  const codec::Patch index = codec->rest_of_step(0, 0, {{{0, 0, 40, 96, encoder->parts()}}}).back();
  ASSERT_EQ(std::ssize(index.bytes), index_bytes(6));
  EXPECT_EQ(index.bytes[16], std::byte{40 - 8 + 16}) << "the second chunk";
}

TEST(zarr_layout, each_compression_has_room_for_what_does_not_shrink) {
  std::vector<std::uint64_t> noise(5000);
  std::uint64_t last = 1;
  for (std::uint64_t& each : noise) each = last = last * 6364136223846793005U + 1442695040888963407U;
  for (const char* const word :
       {"none", "gzip", "gzip:9", "zstd", "zstd:19", "blosc_lz4", "blosc_zstd", "blosc_zstd:9"}) {
    codec::FieldDefinition field = field_of({5000}, {{"compress", word}});
    field.type = ElementType::f64;
    codec::StreamDefinition stream;
    stream.format = "zarr";
    stream.base = {2026, 3, 1, 0, 0, 0};
    const auto codec = *formats::make_codec(stream);
    const Status defined = codec->define(field);
    if (defined.code() == Code::unsupported) {
      EXPECT_NE(defined.text().find("was built without"), std::string::npos) << defined.text();
      continue;
    }
    ASSERT_TRUE(defined.is_ok()) << defined.text();
    for (const bool noisy : {true, false}) {
      std::vector<std::uint64_t> values = noise;
      if (!noisy) std::ranges::fill(values, 7);
      ByteVector first, second;
      for (ByteVector* const out : {&first, &second}) {
        std::vector<std::uint64_t> copy = values;
        const Status status =
            codec->encoder()->encode({0, 0, 0, 0}, reinterpret_cast<std::byte*>(copy.data()), 5000, *out);
        ASSERT_TRUE(status.is_ok()) << word << ": " << status.text();
      }
      EXPECT_TRUE(first == second) << word;
      EXPECT_LE(std::ssize(first), codec->encoded_bound(0)) << word;
      if (!noisy && std::string_view(word) != "none") EXPECT_LT(first.size(), 2000U) << word;
    }
  }
}

TEST(zarr_layout, values_are_rounded_if_a_field_asks_for_it) {
  codec::FieldDefinition field = field_of({2}, {{"compress", "none"}});
  field.accuracy = 0.5;
  const auto codec = codec_of(field);
  EXPECT_FALSE(codec->plain(0)) << "its values are not as they were";
  std::vector<float> values{1.3F, 2.6F};
  ByteVector out;
  ASSERT_TRUE(
      codec->encoder()->encode({0, 0, 0, 0}, reinterpret_cast<std::byte*>(values.data()), 2, out).is_ok());
  std::memcpy(values.data(), out.data(), out.size());
  EXPECT_EQ(values, (std::vector<float>{1, 3}));
  EXPECT_NE(text_in(codec->head()).find(R"("quantization_step":1)"), std::string::npos);
}

TEST(zarr_layout, the_share_of_information_is_told_by_the_array_and_stays) {
  codec::FieldDefinition field = field_of({40, 50}, {{"compress", "none"}});
  const auto whole = codec_of(field);
  field.information = 0.99;
  const auto codec = codec_of(field);
  EXPECT_FALSE(codec->plain(0));
  EXPECT_NE(text_in(codec->head()).find(R"("quantization_information":0.99)"), std::string::npos);
  EXPECT_TRUE(check_goes_on(codec->head(), codec->head()).is_ok());
  EXPECT_EQ(check_goes_on(codec->head(), whole->head()).code(), Code::state);
  field.information = 0.9;
  EXPECT_EQ(check_goes_on(codec->head(), codec_of(field)->head()).code(), Code::state);
  const auto encoder = codec->encoder();
  std::vector<float> values(2000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 280 + 10 * std::sin(static_cast<float>(i) / 50) + static_cast<float>(i * i % 1009) * 1e-4F;
  ByteVector out;
  ASSERT_TRUE(encoder->encode({0, 0, 0, 0}, reinterpret_cast<std::byte*>(values.data()), 2000, out).is_ok());
  ASSERT_TRUE(encoder->kept_bits());
  EXPECT_FALSE(encoder->kept_bits()->is_whole);
  const std::uint32_t dropped = (1U << (23 - encoder->kept_bits()->bits)) - 1;
  for (const float value : values) EXPECT_EQ(std::bit_cast<std::uint32_t>(value) & dropped, 0U);
}

TEST(zarr_layout, a_field_that_is_refused_leaves_nothing_behind) {
  const auto codec = sample_codec();
  const ByteVector head = codec->head();
  EXPECT_EQ(codec->define(field_of({3, 5}, {{"chunks", "2"}})).code(), Code::argument);
  EXPECT_EQ(codec->define(field_of({3, 5}, {{"compress", "deflate"}})).code(), Code::settings);
  EXPECT_EQ(codec->define(field_of({1000, 1000}, {{"chunks", "1x1"}})).code(), Code::argument);
  EXPECT_FALSE(codec->define(field_of({1 << 15, 1 << 15}, {})).is_ok()) << "blosc: less than 2 GiB";
  codec::FieldDefinition many = field_of({256, 256}, {{"compress", "none"}, {"chunks", "1x1"}});
  many.levels = {"generalVertical", std::vector<double>(17), {}, {}};
  std::iota(many.levels.values.begin(), many.levels.values.end(), 1);
  const Status refused = codec->define(many);
  EXPECT_EQ(refused.code(), Code::argument);
  EXPECT_NE(refused.text().find("17 levels of 65536 chunks"), std::string::npos) << refused.text();
  EXPECT_TRUE(codec->head() == head);
  codec::StreamDefinition stream;
  stream.format = "zarr";
  stream.base = {2026, 3, 1, 0, 0, 0};
  stream.keys = {{"compress", "deflate"}};
  EXPECT_EQ(formats::make_codec(stream).status().code(), Code::settings);
}

}  // namespace
}  // namespace tailrace::zarr
