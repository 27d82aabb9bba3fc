// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Zarr stores of our own streams, and stores that are put together here with each codec.
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "../../ground/storage/scratch.hpp"
#include "../variables/own_file.hpp"
#include "../variables/own_numbers.hpp"
#include "formats/compression/compressor.hpp"
#include "formats/stores/stores.hpp"
#include "formats/zarr/crc32c.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "zarr_store.hpp"

namespace tailrace::variables {
namespace {

using namespace test;
using sources::open;
using Values = std::vector<double>;

Values counted_values(std::size_t count, double first = 0) {
  Values values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(first + static_cast<double>(i));
  return values;
}

/// Elements of int32 that begin with `first`, in this byte order.
ByteVector integers(const std::vector<std::int32_t>& values, std::endian order = std::endian::little) {
  ByteVector bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  copy_ordered(bytes.data(), bytes.data(), std::ssize(bytes), 4, order);
  return bytes;
}

ByteVector compressed(compression::Method method, const ByteVector& bytes) {
  ByteVector out;
  compression::Compressor compressor;
  EXPECT_TRUE(compressor.compress({method, 1}, bytes, 4, out).is_ok());
  return out;
}

ByteVector with_sum(ByteVector bytes) {
  const std::uint32_t sum = zarr::crc32c(bytes);
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(sum >> (8 * i)));
  return bytes;
}

/// An array of 3 x 5 int32 in chunks of 2 x 3. Element (j, i) is 10 j + i.
std::string metadata_3(const std::string& codecs, const std::string& chunk = "2,3",
                       const std::string& more = "") {
  return cat(
      R"({"zarr_format":3,"node_type":"array","shape":[3,5],"data_type":"int32","chunk_grid":{"name":"regular",)",
      R"("configuration":{"chunk_shape":[)", chunk, R"(]}},"chunk_key_encoding":{"name":"default"},)",
      R"("fill_value":-7,"codecs":[)", codecs, R"(],"attributes":{"units":"K","_FillValue":-7},)",
      R"("dimension_names":["y","x"])", more, "}");
}

std::vector<std::int32_t> chunk_values(Index j, Index i, bool transposed = false) {
  std::vector<std::int32_t> values;
  for (Index a = 0; a < (transposed ? 3 : 2); ++a) {
    for (Index b = 0; b < (transposed ? 2 : 3); ++b) {
      const Index y = 2 * j + (transposed ? b : a), x = 3 * i + (transposed ? a : b);
      values.push_back(y < 3 && x < 5 ? static_cast<std::int32_t>(10 * y + x) : -7);
    }
  }
  return values;
}

void expect_array(const Source& source, bool lacks_last = false) {
  ASSERT_EQ(source.inventory().records.size(), 1U);
  const Record& record = source.inventory().records.front();
  EXPECT_EQ(record.field, "data");
  EXPECT_EQ(record.valid, any_time);
  Values expected;
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 5; ++x) expected.push_back(lacks_last && y == 2 && x >= 3 ? absent : 10 * y + x);
  }
  EXPECT_EQ(all_of(source, record).values, expected);
  EXPECT_EQ(all_of(source, record).missing, lacks_last ? 2 : 0);
  EXPECT_EQ(part_of<float>(source, record, {{1, 2}, {3, 4}}).values,
            (Values{12, 13, 22, lacks_last ? absent : 23}));
}

struct Way {
  std::string codecs;
  std::function<ByteVector(Index j, Index i)> chunk;
};

std::vector<Way> ways() {
  using compression::Method;
  const std::string little = R"({"name":"bytes","configuration":{"endian":"little"}})";
  const std::string big = R"({"name":"bytes","configuration":{"endian":"big"}})";
  const auto plain = [](Index j, Index i) { return integers(chunk_values(j, i)); };
  std::vector<Way> all{
      {little, plain},
      {big, [](Index j, Index i) { return integers(chunk_values(j, i), std::endian::big); }},
      {little + R"(,{"name":"gzip","configuration":{"level":1}})",
       [=](Index j, Index i) { return compressed(Method::gzip, plain(j, i)); }},
      {little + R"(,{"name":"numcodecs.zlib","configuration":{"level":1}})",
       [=](Index j, Index i) { return compressed(Method::deflate, plain(j, i)); }},
      {little + R"(,{"name":"crc32c"})", [=](Index j, Index i) { return with_sum(plain(j, i)); }},
      {R"({"name":"transpose","configuration":{"order":[1,0]}},)" + big,
       [](Index j, Index i) { return integers(chunk_values(j, i, true), std::endian::big); }},
      {little + R"(,{"name":"gzip","configuration":{"level":1}},{"name":"crc32c"})",
       [=](Index j, Index i) { return with_sum(compressed(Method::gzip, plain(j, i))); }},
      {little + R"(,{"name":"crc32c"},{"name":"gzip","configuration":{"level":1}})",
       [=](Index j, Index i) { return compressed(Method::gzip, with_sum(plain(j, i))); }},
  };
  if (compression::check({Method::zstd, 1}, 24).is_ok())
    all.push_back({little + R"(,{"name":"zstd","configuration":{"level":1,"checksum":false}})",
                   [=](Index j, Index i) { return compressed(Method::zstd, plain(j, i)); }});
  if (compression::check({Method::blosc_lz4, 1}, 24).is_ok())
    all.push_back(
        {little +
             R"(,{"name":"blosc","configuration":{"typesize":4,"cname":"lz4","clevel":1,"shuffle":"shuffle","blocksize":0}})",
         [=](Index j, Index i) { return compressed(Method::blosc_lz4, plain(j, i)); }});
  return all;
}

TEST(ZarrStores, AreReadThroughEachCodec) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.codecs);
    Store store;
    store.put("zarr.json", std::string(R"({"zarr_format":3,"node_type":"group","attributes":{}})"));
    store.put("data/zarr.json", metadata_3(way.codecs));
    for (Index j = 0; j < 2; ++j) {
      for (Index i = 0; i < 2; ++i) store.put(cat("data/c/", j, "/", i), way.chunk(j, i));
    }
    const auto source = opened(store.target(), store.path());
    ASSERT_NE(source, nullptr);
    expect_array(*source);
    const auto among_stores = opened(stores::with_stores(store.target()), store.path());
    ASSERT_NE(among_stores, nullptr);
    expect_array(*among_stores);
    // A chunk that was never written holds the fill value.
    ASSERT_TRUE(store.target()->remove(store.path() + "/data/c/1/1").is_ok());
    expect_array(*source, true);
  }
}

ByteVector shard_of(const Way& way, bool index_at_end, bool lacks_last) {
  ByteVector index, body;
  const Bytes begin = index_at_end ? 0 : 4 * 16 + 4;
  for (Index chunk = 0; chunk < 4; ++chunk) {
    const bool lacks = lacks_last && chunk == 3;
    const ByteVector bytes = lacks ? ByteVector() : way.chunk(chunk / 2, chunk % 2);
    const std::uint64_t place[] = {
        lacks ? ~std::uint64_t{0} : static_cast<std::uint64_t>(begin + std::ssize(body)),
        lacks ? ~std::uint64_t{0} : bytes.size()};
    const auto raw = std::as_bytes(std::span(place));
    index.insert(index.end(), raw.begin(), raw.end());
    body.insert(body.end(), bytes.begin(), bytes.end());
  }
  index = with_sum(std::move(index));
  ByteVector shard = index_at_end ? body : index;
  const ByteVector& last = index_at_end ? index : body;
  shard.insert(shard.end(), last.begin(), last.end());
  return shard;
}

std::string sharded(const std::string& codecs, bool index_at_end) {
  return cat(
      R"({"name":"sharding_indexed","configuration":{"chunk_shape":[2,3],"codecs":[)", codecs,
      R"(],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],"index_location":")",
      index_at_end ? "end" : "start", R"("}})");
}

TEST(ZarrStores, TakeNoRoomForTheChunksOfOtherArrays) {
  const std::string little = R"({"name":"bytes","configuration":{"endian":"little"}})";
  Store store;
  store.put(
      "zarr.json",
      cat(R"({"zarr_format":3,"node_type":"group","attributes":{},"consolidated_metadata":{"metadata":{"data":)",
          metadata_3(little), R"(,"large":)", metadata_3(little, "2000,3000"), "}}}"));
  const auto source = opened(store.target(), store.path());
  ASSERT_NE(source, nullptr);
  EXPECT_LE(bound_of(*source, records_of(*source, "data").at(0)), Bytes{200} << 10);
  EXPECT_GE(bound_of(*source, records_of(*source, "large").at(0)), Bytes{24'000'000});
}

TEST(ZarrStores, HaveShards) {
  for (const Way& way : ways()) {
    for (const bool index_at_end : {true, false}) {
      for (const bool lacks_last : {true, false}) {
        Store store;
        store.put(
            "zarr.json",
            cat(R"({"zarr_format":3,"node_type":"group","attributes":{},"consolidated_metadata":{"metadata":{"data":)",
                metadata_3(sharded(way.codecs, index_at_end), "4,6"), "}}}"));
        store.put("data/c/0/0", shard_of(way, index_at_end, lacks_last));
        const auto source = opened(store.target(), store.path());
        ASSERT_NE(source, nullptr);
        expect_array(*source, lacks_last);
      }
    }
  }
}

TEST(ZarrStores, OfVersion2AreReadInBothOrders) {
  for (const bool columns_first : {false, true}) {
    for (const bool consolidated : {false, true}) {
      Store store;
      const std::string array =
          cat(R"({"zarr_format":2,"shape":[3,5],"chunks":[2,3],"dtype":")", columns_first ? ">i4" : "<i4",
              R"(","compressor":{"id":"gzip","level":1},"fill_value":-7,"filters":null,"order":")",
              columns_first ? "F" : "C", R"(","dimension_separator":")", columns_first ? "/" : ".", R"("})");
      const std::string attributes = R"({"_ARRAY_DIMENSIONS":["y","x"]})";
      store.put(".zgroup", std::string(R"({"zarr_format":2})"));
      if (consolidated) {
        store.put(
            ".zmetadata",
            cat(R"({"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2},"data/.zarray":)",
                array, R"(,"data/.zattrs":)", attributes, "}}"));
      } else {
        store.put("data/.zarray", array);
        store.put("data/.zattrs", attributes);
      }
      for (Index chunk = 0; chunk < 3; ++chunk)
        store.put(cat("data/", chunk / 2, columns_first ? "/" : ".", chunk % 2),
                  compressed(compression::Method::gzip,
                             integers(chunk_values(chunk / 2, chunk % 2, columns_first),
                                      columns_first ? std::endian::big : std::endian::little)));
      const auto source = opened(store.target(), store.path());
      ASSERT_NE(source, nullptr);
      expect_array(*source, true);
    }
  }
}

// Metadata of others are as deep as they like.
TEST(ZarrStores, WithMetadataThatAreVeryDeepAreRefused) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const std::string quoted = R"({"note":"\"[[[\\","data":"[[[[[[[["})";
  for (const bool is_deep : {true, false}) {
    for (const bool is_old : {true, false}) {
      Store store;
      const std::string& more = is_deep ? deep : quoted;
      if (is_old) {
        store.put(".zmetadata",
                  cat(R"({"metadata":{".zgroup":{"zarr_format":2},"data/.zarray":{"shape":[1],)",
                      R"("chunks":[1],"dtype":"<i4","compressor":null,"fill_value":null,)",
                      R"("filters":null,"order":"C"},"data/.zattrs":{"more":)", more, "}}}"));
      } else {
        std::string array = metadata_3(R"({"name":"bytes"})");
        array.insert(array.rfind('}'), cat(R"(,"more":)", more));
        store.put("zarr.json",
                  cat(R"({"zarr_format":3,"node_type":"group","consolidated_metadata":{"metadata":)",
                      R"({"data":)", array, "}}}"));
      }
      const auto source = open(store.target(), store.path(), "");
      EXPECT_EQ(source.status().code(), is_deep ? Code::corrupt : Code::ok) << source.status().text();
      if (is_deep)
        EXPECT_NE(source.status().text().find("at most 100 values inside of one another"), std::string::npos)
            << source.status().text();
    }
  }
}

// Work for each pair of arrays would take 64 times as long for 8 times as many.
TEST(ZarrStores, OfManyArraysAreOpenedInProportionToTheirNumber) {
  const auto seconds_for = [](int arrays) {
    std::string members;
    for (int i = 0; i < arrays; ++i)
      members += cat(i > 0 ? "," : "", "\"field_", i, "\":", metadata_3(R"({"name":"bytes"})"));
    Store store;
    store.put("zarr.json",
              cat(R"({"zarr_format":3,"node_type":"group","attributes":{},"consolidated_metadata":)",
                  R"({"metadata":{)", members, "}}}"));
    const std::clock_t begin = std::clock();
    const auto source = opened(store.target(), store.path());
    const std::clock_t end = std::clock();
    EXPECT_EQ(source->inventory().records.size(), static_cast<std::size_t>(arrays));
    return static_cast<double>(end - begin) / CLOCKS_PER_SEC;
  };
  const double few = seconds_for(1000), many = seconds_for(8000);
  EXPECT_LT(many, 24 * std::max(few, 0.02)) << few << " s for 1000 arrays";
}

TEST(OwnZarrStores, OfManyFieldsAreOpenedInProportionToTheirNumber) {
  const auto seconds_for = [](int fields) {
    OwnStream own = own_stream("zarr");
    own.fields.clear();
    own.leads = {0};
    own.committed = 1;
    for (int i = 0; i < fields; ++i) {
      own.fields.push_back(own_field(cat("field_", i), ElementType::f32, {}, {1, 2}));
      own.fields.back().keys = {{"compress", "none"}};
    }
    own.is_put = [](std::size_t, int field, Index) { return field == 0; };
    const std::shared_ptr<storage::Target> memory = storage::memory_target();
    const std::string path = "own.zarr";
    write_own(*stores::with_stores(memory), path, own);
    const std::clock_t begin = std::clock();
    const auto source = opened(memory, path);
    const std::clock_t end = std::clock();
    EXPECT_EQ(source->inventory().records.size(), 1U);
    return static_cast<double>(end - begin) / CLOCKS_PER_SEC;
  };
  const double few = seconds_for(500), many = seconds_for(4000);
  EXPECT_LT(many, 24 * std::max(few, 0.02)) << few << " s for 500 fields";
}

TEST(ZarrStores, WithChunksOfFarMoreBytesThanTheirObjectsAreRefused) {
  const std::string codecs = R"({"name":"bytes"},{"name":"gzip"})";
  for (const std::string more : {"", R"(,{"name":"gzip"})"}) {
    Store store;
    store.put("zarr.json", metadata_3(codecs + more, "16384,16384"));
    store.put("c/0/0", compressed(compression::Method::gzip, ByteVector(100)));
    const auto source = opened(store.target(), store.path());
    ASSERT_NE(source, nullptr);
    const Record& record = source->inventory().records.at(0);
    std::vector<double> values(15);
    Scratch scratch;
    const Status status = source
                              ->read(record.place, source->inventory().grids.at(0), {{0, 0}, {3, 5}},
                                     ElementType::f64, reinterpret_cast<std::byte*>(values.data()), scratch)
                              .status();
    EXPECT_EQ(status.code(), Code::corrupt) << status.text();
    EXPECT_LT(scratch.bytes.capacity() + scratch.decoded.capacity(), std::size_t{1} << 20)
        << "1 GiB for a few bytes";
  }
}

TEST(ZarrStores, WithCodecsThatAreNotReadAreRefusedByTheCodecsName) {
  Store store;
  store.put("zarr.json", std::string(R"({"zarr_format":3,"node_type":"group","attributes":{}})"));
  store.put("data/zarr.json", metadata_3(R"({"name":"bytes"},{"name":"numcodecs.lzma"})"));
  const auto source = opened(store.target(), store.path());
  ASSERT_NE(source, nullptr);
  const Status status = all_of(*source, source->inventory().records.front()).status;
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.text().find("array 'data': its chunks went through the codec 'numcodecs.lzma'"),
            std::string::npos)
      << status.text();
}

TEST(ZarrStores, HaveFillValuesAndAttributesThatJsonHasNoNumbersFor) {
  Store store;
  const auto array = [](const std::string& fill, const std::string& attributes,
                        const std::string& type = "float32") {
    return cat(
        R"({"zarr_format":3,"node_type":"array","shape":[2,2],"data_type":")", type,
        R"(","chunk_grid":{"name":"regular",)",
        R"("configuration":{"chunk_shape":[2,2]}},"chunk_key_encoding":{"name":"v2","configuration":{"separator":"."}},"fill_value":)",
        fill, R"(,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":)", attributes,
        "}");
  };
  store.put("zarr.json", std::string(R"({"zarr_format":3,"node_type":"group","attributes":{}})"));
  store.put("a/zarr.json", array(R"("NaN")", "{}"));
  store.put("b/zarr.json", array(R"("0x40490fdb")", "{}"));
  store.put("c/zarr.json", array("2", R"({"_FillValue":"AAAAAAAAAEA="})"));
  store.put("d/zarr.json", array("9007199254740993", R"({"_FillValue":9007199254740993})", "uint64"));
  const auto source = opened(store.target(), store.path());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(all_of<float>(*source, records_of(*source, "a").at(0)).missing, 4);
  EXPECT_EQ(all_of<float>(*source, records_of(*source, "b").at(0)).values, Values(4, 3.14159274101257324));
  EXPECT_EQ(all_of<float>(*source, records_of(*source, "c").at(0)).missing, 4) << "2.0 in base64";
  EXPECT_EQ(all_of<double>(*source, records_of(*source, "d").at(0)).missing, 4) << "2^53 + 1";
}

TEST(ZarrStores, WithOneArrayThatNobodyUnderstandsAreReadBesideIt) {
  const auto array = [](const std::string& shape, const std::string& names, const std::string& fill,
                        const std::string& codec, const std::string& attributes) {
    return cat(R"({"zarr_format":3,"node_type":"array","data_type":"float64","shape":[)", shape,
               R"(],"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[)", shape,
               R"(]}},"chunk_key_encoding":{"name":"default"},"fill_value":)", fill,
               R"(,"dimension_names":[)", names,
               R"(],"codecs":[{"name":"bytes","configuration":{"endian":"little"}})", codec,
               R"(],"attributes":)", attributes, "}");
  };
  Store store;
  store.put("zarr.json", std::string(R"({"zarr_format":3,"node_type":"group","attributes":{}})"));
  store.put("a/zarr.json", array("2,2", R"("y","x")", "7", "", "{}"));
  store.put("b/zarr.json", array("2,2", R"("y","x")", R"("seven")", "", "{}"));
  store.put("c/zarr.json", std::string(R"({"zarr_format":3,"node_type":"array"})"));
  store.put("time/zarr.json", array("2", R"("time")", "0", R"(,{"name":"numcodecs.lzma"})",
                                    R"({"units":"hours since 2026-03-01"})"));
  store.put("time/c/0", ByteVector(16));
  store.put("d/zarr.json", array("2,2", R"("time","x")", "0", "", "{}"));
  const auto source = opened(store.target(), store.path());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->inventory().records.size(), 1U);
  EXPECT_EQ(all_of(*source, records_of(*source, "a").at(0)).values, Values(4, 7));
  for (const auto& [field, words] :
       std::vector<std::pair<std::string, std::string>>{{"b", "expected a fill value of float64"},
                                                        {"c", "the metadata of 'c'"},
                                                        {"d", "numcodecs.lzma"}}) {
    const auto& unread = source->inventory().unread;
    const auto found = std::ranges::find(unread, field, &sources::Unread::field);
    ASSERT_NE(found, unread.end()) << field;
    EXPECT_NE(found->why.text().find(words), std::string::npos) << found->why.text();
  }
}

TEST(OwnZarrStores, AreReadWithTheirIndexAndWithoutIt) {
  for (const std::string compress : {"none", "gzip:1", "zstd:1", "blosc_lz4:1"}) {
    for (const std::string chunks : {"", "2x3"}) {
      for (const std::size_t committed : {std::size_t{3}, std::size_t{2}}) {
        OwnStream own = own_stream("zarr");
        own.committed = committed;
        own.fields[0].keys = {{"compress", compress}};
        own.fields[1].keys = own.fields[2].keys = {{"compress", "gzip:1"}};
        if (!chunks.empty()) own.fields[0].keys.emplace_back("chunks", chunks);
        const storage::ScratchDirectory scratch;
        const std::shared_ptr<storage::Target> posix = storage::posix_target();
        const std::string path = scratch / "own.zarr";
        write_own(*stores::with_stores(posix), path, own);
        const auto source = opened(posix, path);
        ASSERT_NE(source, nullptr);
        EXPECT_EQ(time_text(*source, records_of(*source, "t").at(0).reference), "2026-03-01T06:00:00Z");
        expect_own(*source, committed);
        ASSERT_TRUE(posix->remove(path + ".trx").is_ok());
        const auto without = opened(posix, path);
        ASSERT_NE(without, nullptr);
        expect_own(*without, committed);
      }
    }
  }
}

TEST(OwnZarrStores, HaveFieldsWithoutTime) {
  OwnStream own = own_stream_with_fixed("zarr");
  const storage::ScratchDirectory scratch;
  const std::shared_ptr<storage::Target> posix = storage::posix_target();
  const std::string path = scratch / "own.zarr";
  write_own(*stores::with_stores(posix), path, own);
  const auto source = opened(posix, path);
  ASSERT_NE(source, nullptr);
  expect_own(*source, 3);
  expect_fixed(*source);
  ASSERT_TRUE(posix->remove(path + ".trx").is_ok());
  const auto without = opened(posix, path);
  ASSERT_NE(without, nullptr);
  EXPECT_EQ(records_of(*without, "area").at(1).valid, any_time);
  EXPECT_EQ(all_of(*without, records_of(*without, "area").at(1)).missing, 1);
}

TEST(OwnZarrStores, HaveNumbersThatLookLikeCoordinates) {
  for (const bool has_model_times : {false, true}) {
    const OwnStream own = own_stream_with_number("zarr", has_model_times);
    const std::shared_ptr<storage::Target> memory = storage::memory_target();
    write_own(*stores::with_stores(memory), "own.zarr", own);
    const auto source = opened(memory, "own.zarr");
    ASSERT_NE(source, nullptr) << has_model_times;
    expect_number(*source, own);
  }
}

/// Writes a store of ours and its index.
std::string own_store(const storage::ScratchDirectory& scratch, const std::string& chunks = "") {
  OwnStream own = own_stream("zarr");
  for (codec::FieldDefinition& each : own.fields) each.keys = {{"compress", "gzip:1"}};
  if (!chunks.empty()) own.fields[0].keys.emplace_back("chunks", chunks);
  const std::string path = scratch / "own.zarr";
  write_own(*stores::with_stores(storage::posix_target()), path, own);
  return path;
}

// zarr.consolidate_metadata sorts the arrays by their names.
TEST(OwnZarrStores, HaveNoValuesWhereIntegersWereNotPut) {
  const storage::ScratchDirectory scratch;
  OwnStream own = own_stream("zarr");
  for (codec::FieldDefinition& each : own.fields) each.keys = {{"compress", "gzip:1"}};
  own.is_put = [](std::size_t step, int field, Index) { return field != 2 || step != 1; };
  const std::string path = scratch / "own.zarr";
  const std::shared_ptr<storage::Target> posix = storage::posix_target();
  write_own(*stores::with_stores(posix), path, own);
  ASSERT_TRUE(posix->remove(path + ".trx").is_ok());
  const auto source = opened(posix, path);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(all_of(*source, records_of(*source, "n").at(0)).missing, 0);
  EXPECT_EQ(all_of(*source, records_of(*source, "n").at(1)).missing, 5);
}

TEST(OwnZarrStores, WhoseArraysAreInAnotherOrderAreReadByTheirNames) {
  const storage::ScratchDirectory scratch;
  const std::string path = own_store(scratch);
  std::ifstream in(path + "/zarr.json");
  nlohmann::json metadata = nlohmann::json::parse(in);
  nlohmann::ordered_json turned = metadata, &arrays = turned["consolidated_metadata"]["metadata"];
  arrays = nlohmann::ordered_json::object();
  for (const std::string name : {"n", "m", "t"}) {
    nlohmann::json& all = metadata["consolidated_metadata"]["metadata"];
    ASSERT_TRUE(all.contains(name));
    arrays[name] = all[name];
    all.erase(name);
  }
  arrays.update(metadata["consolidated_metadata"]["metadata"]);
  std::ofstream(path + "/zarr.json") << turned.dump();
  const auto source = opened(storage::posix_target(), path);
  ASSERT_NE(source, nullptr);
  expect_own(*source, 3);
}

TEST(OwnZarrStores, WhoseArraysAreNotThoseOfTheIndexAreCorrupt) {
  for (const std::string change : {R"("shape")", R"("m")"}) {
    const storage::ScratchDirectory scratch;
    const std::string path = own_store(scratch);
    std::ifstream in(path + "/zarr.json");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    nlohmann::json metadata = nlohmann::json::parse(text);
    nlohmann::json& all = metadata["consolidated_metadata"]["metadata"];
    if (change == R"("m")") {
      all["q"] = all["m"];
      all.erase("m");
    } else {
      all["m"] = all["n"];
    }
    std::ofstream(path + "/zarr.json") << metadata.dump();
    const Status status = open(storage::posix_target(), path, "").status();
    EXPECT_EQ(status.code(), Code::corrupt);
    EXPECT_TRUE(status.text().starts_with(path)) << status.text();
    EXPECT_NE(status.text().find("'m'"), std::string::npos) << status.text();
  }
}

TEST(OwnZarrStores, ThatLostObjectsOfCommittedRecordsAreCorrupt) {
  const storage::ScratchDirectory scratch;
  const std::string path = own_store(scratch);
  const auto source = opened(storage::posix_target(), path);
  ASSERT_NE(source, nullptr);
  const std::vector<Record> t = records_of(*source, "t");
  int lost = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(path + "/t")) {
    if (each.is_regular_file() && each.path().filename() != "zarr.json")
      lost += ::unlink(each.path().c_str()) + 1;
  }
  ASSERT_GT(lost, 0);
  for (const Record& each : t) {
    const Status status = all_of(*source, each).status;
    EXPECT_EQ(status.code(), Code::corrupt);
    EXPECT_NE(status.text().find("array 't': "), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("no such object"), std::string::npos) << status.text();
  }
}

TEST(ZarrStores, FaultsOfStorageAreErrorsOfTheCall) {
  const storage::ScratchDirectory scratch;
  const std::shared_ptr<storage::Target> posix = storage::posix_target();
  OwnStream own = own_stream("zarr");
  for (codec::FieldDefinition& each : own.fields) each.keys = {{"compress", "gzip:1"}};
  const std::string with = scratch / "own.zarr", without = scratch / "without.zarr";
  write_own(*stores::with_stores(posix), with, own);
  write_own(*stores::with_stores(posix), without, own);
  ASSERT_TRUE(posix->remove(without + ".trx").is_ok());
  for (const std::string& path : {with, without}) {
    std::int64_t n = 1;
    for (bool fired = true; fired && n < 1000; ++n) {
      const storage::CallSet calls = storage::all_calls & ~storage::set_of(storage::Call::close);
      const auto faulty = storage::faulty_target(posix, {.nth = n, .calls = calls});
      const Result<std::shared_ptr<const Source>> source = open(faulty, path, "");
      Status status = source.status();
      if (status.is_ok()) status = all_of(**source, records_of(**source, "t").at(1)).status;
      fired = faulty->fired();
      // A look that only asks whether this is a store is asked again by those who read it.
      if (status.is_ok() && fired) continue;
      EXPECT_EQ(status.is_ok(), !fired) << path << " " << n << ": " << status.text();
      if (fired) EXPECT_EQ(status.code(), Code::io) << status.text();
      if (fired) EXPECT_NE(status.text().find(path), std::string::npos) << status.text();
    }
    EXPECT_GT(n, 10);
    EXPECT_LT(n, 1000);
  }
}

// Changed metadata and shards end in an error or in values, never in a crash or a large allocation.
TEST(ZarrStores, ChangedBytesAreReadOrRefused) {
  const std::string little = R"({"name":"bytes","configuration":{"endian":"little"}})";
  const std::string metadata = metadata_3(sharded(little + R"(,{"name":"crc32c"})", true), "4,6");
  const ByteVector shard =
      shard_of({"", [](Index j, Index i) { return with_sum(integers(chunk_values(j, i))); }}, true, false);
  std::mt19937_64 random(20260301);
  Store store;
  int whole = 0, refused = 0;
  for (int i = 0; i < 200; ++i) {
    std::string text = metadata;
    ByteVector bytes = shard;
    constexpr std::string_view letters = "0123456789-{}[],:\"ex";
    if (i % 2 == 0) {
      for (std::uint64_t n = 1 + random() % 2; n > 0; --n)
        text[random() % text.size()] = letters[random() % letters.size()];
    } else {
      // The sum of the index is made right again: what it tells is looked at, too.
      ByteVector index(bytes.end() - 68, bytes.end() - 4);
      index[random() % index.size()] = static_cast<std::byte>(random());
      bytes.resize(bytes.size() - 68);
      const ByteVector summed = with_sum(std::move(index));
      bytes.insert(bytes.end(), summed.begin(), summed.end());
    }
    store.put(
        "zarr.json",
        cat(R"({"zarr_format":3,"node_type":"group","attributes":{},"consolidated_metadata":{"metadata":{"data":)",
            text, "}}}"));
    store.put("data/c/0/0", bytes);
    const Result<std::shared_ptr<const Source>> source = open(store.target(), store.path(), "");
    Status status = source.status();
    if (source.is_ok()) {
      for (const Record& record : (*source)->inventory().records) {
        const Grid& grid = (*source)->inventory().grids.at(static_cast<std::size_t>(record.grid));
        ASSERT_LE(bound_of(**source, record), Bytes{5} << 30);
        Bytes points = 1;
        bool small = true;
        for (const Index length : grid.shape)
          small = small && !__builtin_mul_overflow(points, length, &points) && points < 100'000;
        if (small) status = all_of(**source, record).status;
      }
    }
    whole += status.is_ok() ? 1 : 0;
    if (status.is_ok()) continue;
    ++refused;
    const Code code = status.code();
    EXPECT_TRUE(code == Code::corrupt || code == Code::format || code == Code::unsupported) << status.text();
    EXPECT_TRUE(status.text().starts_with(store.path())) << status.text();
  }
  EXPECT_GT(whole, 15);
  EXPECT_GT(refused, 60);
}

}  // namespace
}  // namespace tailrace::variables
