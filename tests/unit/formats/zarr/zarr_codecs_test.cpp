// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Chunks that went through the codecs and filters of numcodecs. Bytes and values are those of numcodecs 0.16.
#include <gtest/gtest.h>

#include "../variables/own_file.hpp"
#include "formats/compression/decompressor.hpp"
#include "ground/base/text.hpp"
#include "zarr_store.hpp"

namespace tailrace::variables {
namespace {

using namespace test;
using sources::open;
using Values = std::vector<double>;

ByteVector from_hexadecimal(std::string_view text) {
  ByteVector bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

/// An array of 2 x 3 elements in one chunk.
struct Coded {
  std::string name;
  std::string old_type, type;
  std::string filters, compressor;  // of version 2, without brackets
  std::string codecs;  // of version 3, without those of the library's name; empty: there are none
  std::string chunk;
  Values values;
};

const std::string bytes_codec = R"({"name":"bytes","configuration":{"endian":"little"}})";
const Values six_numbers{0, 1, 2, 10, 11, 12};

std::string codec_3(const std::string& name, const std::string& configuration) {
  return cat(R"({"name":"numcodecs.)", name, R"(","configuration":{)", configuration, "}}");
}

/// Returns a filter of elements in both versions: the configuration is the same.
Coded filtered(const std::string& name, const std::string& type, const std::string& configuration,
               const std::string& chunk, Values values) {
  const std::string kind = type.substr(1, 1), bits = type.substr(2) == "8" ? "64" : "32";
  return {cat(name, " ", configuration),
          type,
          (kind == "f" ? "float" : "int") + bits,
          cat(R"({"id":")", name, "\",", configuration, "}"),
          "null",
          cat(codec_3(name, configuration), ",", bytes_codec),
          chunk,
          std::move(values)};
}

std::vector<Coded> coded() {
  std::vector<Coded> all{
      filtered("delta", "<i4", R"("dtype":"<i4")", "000000000100000001000000080000000100000001000000",
               six_numbers),
      filtered("delta", "<i4", R"("dtype":"<i4","astype":"<i2")", "000001000100080001000100", six_numbers),
      filtered("fixedscaleoffset", "<f8", R"("scale":10,"offset":1000,"dtype":"<f8","astype":"<i2")",
               "f0d8fdd8d7d80fd90000f1d8",
               {0.0, 1.2999999999999545, -2.5, 3.1000000000000227, 1000.0, 0.10000000000002274}),
      filtered("fixedscaleoffset", "<f4", R"("scale":10,"offset":1000,"dtype":"<f4","astype":"|u1")",
               "f0fdd70f00f1", {1024.0, 1025.300048828125, 1021.5, 1001.5, 1000.0, 1024.0999755859375}),
      filtered("fixedscaleoffset", "<f4", R"("scale":10,"offset":0.1,"dtype":"<f4","astype":"<f4")",
               "000080bf000040410000d0c10000f041003c1c4600000000",
               {0.0, 1.3000000715255737, -2.5, 3.0999999046325684, 1000.0, 0.10000000149011612}),
      filtered("quantize", "<f8", R"("digits":2,"dtype":"<f8","astype":"<f4")",
               "000000000000a13f000020c00000494000007a440000d03d",
               {0.0, 1.2578125, -2.5, 3.140625, 1000.0, 0.1015625}),
      filtered("astype", "<f8", R"("encode_dtype":"<f4","decode_dtype":"<f8")",
               "00000000ae47a13f000020c0d00f494000007a44cdcccc3d",
               {0.0, 1.2599999904632568, -2.5, 3.141590118408203, 1000.0, 0.10000000149011612}),
      filtered("bitround", "<f4", R"("keepbits":5)", "000000000000a03f000020c000004840000078440000cc3d",
               {0.0, 1.25, -2.5, 3.125, 992.0, 0.099609375}),
      {"shuffle", "<i4", "int32", R"({"id":"shuffle","elementsize":4})", "null",
       cat(bytes_codec, ",", codec_3("shuffle", R"("elementsize":4)")),
       "0001020a0b0c000000000000000000000000000000000000", six_numbers},
      {"delta and shuffle", "<i4", "int32",
       R"({"id":"delta","dtype":"<i4","astype":"<i2"},{"id":"shuffle","elementsize":2})", "null",
       cat(codec_3("delta", R"("dtype":"<i4","astype":"<i2")"), ",", bytes_codec, ",",
           codec_3("shuffle", R"("elementsize":2)")),
       "000101080101000000000000", six_numbers},
      {"delta, the largest byte first", ">i4", "", R"({"id":"delta","dtype":">i4"})", "null", "",
       "000000000000000100000001000000080000000100000001", six_numbers},
  };
  if (compression::check_reads(compression::Packed::lz4).is_ok())
    all.push_back({"lz4", "<i4", "int32", "", R"({"id":"lz4","acceleration":1})",
                   cat(bytes_codec, ",", codec_3("lz4", R"("acceleration":1)")),
                   "18000000f0090000000001000000020000000a0000000b0000000c000000", six_numbers});
  if (compression::check_reads(compression::Packed::bzip2).is_ok())
    all.push_back({"bz2", "<i4", "int32", "", R"({"id":"bz2","level":1})",
                   cat(bytes_codec, ",", codec_3("bz2", R"("level":1)")),
                   "425a6831314159265359e215c034000001c000701c2000223d260300a8ef72c030bb9229c2848710ae01a0",
                   six_numbers});
  return all;
}

/// Puts the array into a store. Returns false if the version has no such codec.
bool put(Store& store, const Coded& of, int version, const ByteVector& chunk) {
  if (version == 2) {
    store.put(".zarray", cat(R"({"zarr_format":2,"shape":[2,3],"chunks":[2,3],"dtype":")", of.old_type,
                             R"(","fill_value":null,"order":"C","filters":)",
                             of.filters.empty() ? "null" : cat("[", of.filters, "]"), R"(,"compressor":)",
                             of.compressor, "}"));
    store.put("0.0", chunk);
    return true;
  }
  if (of.codecs.empty()) return false;
  store.put("zarr.json",
            cat(R"({"zarr_format":3,"node_type":"array","shape":[2,3],"data_type":")", of.type,
                R"(","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},)",
                R"("chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[)", of.codecs, "]}"));
  store.put("c/0/0", chunk);
  return true;
}

TEST(ZarrCodecs, OfNumcodecsAreUndoneAsNumcodecsDoes) {
  for (const Coded& each : coded()) {
    for (const int version : {2, 3}) {
      SCOPED_TRACE(cat(each.name, ", version ", version));
      Store store;
      if (!put(store, each, version, from_hexadecimal(each.chunk))) continue;
      const auto source = opened(store.target(), store.path());
      ASSERT_NE(source, nullptr);
      ASSERT_EQ(source->inventory().records.size(), 1U);
      const auto got = all_of(*source, source->inventory().records.front());
      ASSERT_TRUE(got.status.is_ok()) << got.status.text();
      EXPECT_EQ(got.values, each.values);
    }
  }
}

// The reader believes nothing that a file says: neither the sizes before compressed bytes nor the types of
// filters.
TEST(ZarrCodecs, WithChangedBytesGiveValuesOrAnErrorOfTheFile) {
  for (const Coded& each : coded()) {
    SCOPED_TRACE(each.name);
    const ByteVector chunk = from_hexadecimal(each.chunk);
    Store store;
    const auto expect_no_crash = [&](const ByteVector& bytes) {
      put(store, each, 2, bytes);
      const auto source = opened(store.target(), store.path());
      ASSERT_NE(source, nullptr);
      const Status status = all_of(*source, source->inventory().records.front()).status;
      EXPECT_TRUE(status.is_ok() || status.code() == Code::corrupt) << status.text();
    };
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      for (const int value : {0x00, 0x7f, 0xff}) {
        ByteVector changed = chunk;
        changed[i] = static_cast<std::byte>(value);
        expect_no_crash(changed);
      }
    }
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, chunk.size() - 1}) {
      ByteVector cut = chunk;
      cut.resize(size);
      put(store, each, 2, cut);
      const auto source = opened(store.target(), store.path());
      ASSERT_NE(source, nullptr);
      EXPECT_EQ(all_of(*source, source->inventory().records.front()).status.code(), Code::corrupt) << size;
    }
  }
}

TEST(ZarrCodecs, ThatAreNotUndoneAreRefusedByTheirNames) {
  const std::string plain(48, '0');
  const std::vector<std::pair<Coded, std::string>> all{
      {{"", "<i4", "", R"({"id":"packbits"})", "null", "", plain, {}}, "'packbits'"},
      {{"", "<i4", "", R"({"id":"delta","dtype":"<f4"})", "null", "", plain, {}}, "'delta'"},
      {{"", "<i4", "", R"({"id":"delta","dtype":">i4"})", "null", "", plain, {}}, "'delta'"},
      {{"", "<i4", "", R"({"id":"delta","dtype":"<i4","astype":"|S4"})", "null", "", plain, {}}, "'delta'"},
      {{"",
        "<i4",
        "",
        R"({"id":"fixedscaleoffset","dtype":"<i4","scale":0,"offset":1})",
        "null",
        "",
        plain,
        {}},
       "'fixedscaleoffset'"},
      {{"",
        "<i4",
        "",
        R"({"id":"shuffle","elementsize":4},{"id":"delta","dtype":"<i4"})",
        "null",
        "",
        plain,
        {}},
       "'delta'"},
      {{"", "<i4", "", "", R"({"id":"lzma"})", "", plain, {}}, "'lzma'"},
  };
  for (const auto& [each, name] : all) {
    Store store;
    put(store, each, 2, from_hexadecimal(plain));
    const auto source = opened(store.target(), store.path());
    ASSERT_NE(source, nullptr);
    const Status status = all_of(*source, source->inventory().records.front()).status;
    EXPECT_EQ(status.code(), Code::unsupported) << status.text();
    EXPECT_NE(status.text().find(name), std::string::npos) << status.text();
  }
  Store store;
  put(store,
      {"",
       "",
       "int32",
       "",
       "",
       cat(R"({"name":"transpose","configuration":{"order":[1,0]}},)", codec_3("delta", R"("dtype":"<i4")"),
           ",", bytes_codec),
       "",
       {}},
      3, from_hexadecimal(plain));
  const auto source = opened(store.target(), store.path());
  ASSERT_NE(source, nullptr);
  const Status status = all_of(*source, source->inventory().records.front()).status;
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.text().find("'transpose' and 'delta'"), std::string::npos) << status.text();
}

// In a store of version 2 whose first index runs fastest the differences follow the memory.
TEST(ZarrCodecs, OfDifferencesFollowTheOrderInMemory) {
  Store store;
  store.put(".zarray",
            std::string(R"({"zarr_format":2,"shape":[2,3],"chunks":[2,3],"dtype":"<i4","fill_value":null,)"
                        R"("order":"F","filters":[{"id":"delta","dtype":"<i4"}],"compressor":null})"));
  // 0 10 1 11 2 12
  store.put("0.0", from_hexadecimal("000000000a000000f7ffffff0a000000f7ffffff0a000000"));
  const auto source = opened(store.target(), store.path());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(all_of(*source, source->inventory().records.front()).values, six_numbers);
}

TEST(ZarrCodecs, TakeNoMoreMemoryThanTheirBytesStandFor) {
  for (const auto& [id, bytes] : {std::pair{"lz4", "ffffff3f1000"}, {"bz2", "425a68393141592653590000"}}) {
    Store store;
    store.put(".zarray",
              cat(R"({"zarr_format":2,"shape":[1,268435456],"chunks":[1,268435456],"dtype":"<i4",)",
                  R"("fill_value":null,"order":"C","filters":null,"compressor":{"id":")", id, R"("}})"));
    store.put("0.0", from_hexadecimal(bytes));
    const auto source = opened(store.target(), store.path());
    ASSERT_NE(source, nullptr);
    const Record& record = source->inventory().records.at(0);
    std::vector<double> value(1);
    Scratch scratch;
    const Grid& grid = source->inventory().grids.at(0);
    const Status status = source
                              ->read(record.place, grid, {{0, 0}, {1, 1}}, ElementType::f64,
                                     reinterpret_cast<std::byte*>(value.data()), scratch)
                              .status();
    EXPECT_TRUE(status.code() == Code::corrupt || status.code() == Code::unsupported) << status.text();
    EXPECT_LT(scratch.bytes.capacity() + scratch.decoded.capacity(), std::size_t{1} << 27);
  }
}

}  // namespace
}  // namespace tailrace::variables
