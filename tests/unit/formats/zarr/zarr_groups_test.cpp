// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Arrays below the root of a store, arrays with odd names, and arrays that are far larger than what is there.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../variables/own_file.hpp"
#include "ground/base/text.hpp"
#include "zarr_store.hpp"

namespace tailrace::variables {
namespace {

using namespace test;
using sources::open;
using Values = std::vector<double>;

const std::string group_text = R"({"zarr_format":3,"node_type":"group","attributes":{}})";

std::string array_3(const std::string& shape, const std::string& names, const std::string& attributes = "{}",
                    const std::string& chunk = "") {
  return cat(R"({"zarr_format":3,"node_type":"array","shape":[)", shape,
             R"(],"data_type":"int32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[)",
             chunk.empty() ? shape : chunk,
             R"(]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes",)",
             R"("configuration":{"endian":"little"}}],"attributes":)", attributes, R"(,"dimension_names":[)",
             names, "]}");
}

ByteVector int32s(const std::vector<std::int32_t>& values) {
  ByteVector bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

const std::string since_march = R"({"units":"hours since 2026-03-01","standard_name":"time"})";
const std::string pressures = R"({"units":"hPa","positive":"down"})";

/// A group `day` with its own times, and a group in it that has none. Both have a level axis around them.
std::vector<std::pair<std::string, std::string>> grouped_nodes() {
  return {{"lev", array_3("2", R"("lev")", pressures)},
          {"day/time", array_3("2", R"("time")", since_march)},
          {"day/t", array_3("2,2,3", R"("time","lev","x")")},
          {"day/deep/q", array_3("2,3", R"("time","x")")},
          {"night/time", array_3("1", R"("time")", since_march)},
          {"night/t", array_3("1,3", R"("time","x")")}};
}

void put_chunks(Store& store) {
  store.put("lev/c/0", int32s({1000, 850}));
  store.put("day/time/c/0", int32s({6, 12}));
  store.put("day/t/c/0/0/0", int32s({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  store.put("day/deep/q/c/0/0", int32s({1, 2, 3, 4, 5, 6}));
  store.put("night/time/c/0", int32s({18}));
  store.put("night/t/c/0/0", int32s({7, 8, 9}));
}

void expect_groups(const Source& source) {
  const std::vector<Record> t = records_of(source, "day/t"), q = records_of(source, "day/deep/q"),
                            night = records_of(source, "night/t");
  ASSERT_EQ(t.size(), 4U);
  EXPECT_EQ(time_text(source, t[2].valid), "2026-03-01T12:00:00Z");
  EXPECT_EQ(t[3].level_type, "isobaricInhPa");
  EXPECT_EQ(t[3].level, 850);
  EXPECT_EQ(all_of(source, t[3]).values, (Values{10, 11, 12}));
  ASSERT_EQ(q.size(), 2U) << "the times of the group around it";
  EXPECT_EQ(time_text(source, q[1].valid), "2026-03-01T12:00:00Z");
  EXPECT_EQ(all_of(source, q[1]).values, (Values{4, 5, 6}));
  ASSERT_EQ(night.size(), 1U);
  EXPECT_EQ(time_text(source, night[0].valid), "2026-03-01T18:00:00Z");
  EXPECT_EQ(all_of(source, night[0]).values, (Values{7, 8, 9}));
}

TEST(ZarrGroups, HaveFieldsUnderTheNamesOfGroupAndArray) {
  for (const bool consolidated : {true, false}) {
    SCOPED_TRACE(consolidated);
    Store store;
    if (consolidated) {
      std::string members;
      for (const auto& [name, text] : grouped_nodes())
        members += cat(members.empty() ? "" : ",", "\"", name, "\":", text);
      for (const std::string group : {"day", "day/deep", "night"})
        members += cat(",\"", group, "\":", group_text);
      store.put("zarr.json", cat(R"({"zarr_format":3,"node_type":"group","attributes":{},)",
                                 R"("consolidated_metadata":{"metadata":{)", members, "}}}"));
    } else {
      for (const std::string group : {"", "day/", "day/deep/", "night/"})
        store.put(group + "zarr.json", group_text);
      for (const auto& [name, text] : grouped_nodes()) store.put(name + "/zarr.json", text);
    }
    put_chunks(store);
    const auto source = opened(store.target(), store.path());
    ASSERT_NE(source, nullptr);
    expect_groups(*source);
  }
}

TEST(ZarrGroups, OfVersion2AreReadToo) {
  const auto array = [](const std::string& shape) {
    return cat(R"({"zarr_format":2,"shape":[)", shape, R"(],"chunks":[)", shape,
               R"(],"dtype":"<i4","fill_value":null,"order":"C","filters":null,"compressor":null})");
  };
  Store store;
  for (const std::string group : {"", "day/"})
    store.put(group + ".zgroup", std::string(R"({"zarr_format":2})"));
  store.put("day/time/.zarray", array("2"));
  store.put("day/time/.zattrs",
            std::string(R"({"_ARRAY_DIMENSIONS":["time"],"units":"hours since 2026-03-01"})"));
  store.put("day/time/0", int32s({6, 12}));
  store.put("day/t/.zarray", array("2,3"));
  store.put("day/t/.zattrs", std::string(R"({"_ARRAY_DIMENSIONS":["time","x"]})"));
  store.put("day/t/0.0", int32s({1, 2, 3, 4, 5, 6}));
  const auto source = opened(store.target(), store.path());
  ASSERT_NE(source, nullptr);
  const std::vector<Record> t = records_of(*source, "day/t");
  ASSERT_EQ(t.size(), 2U);
  EXPECT_EQ(time_text(*source, t[1].valid), "2026-03-01T12:00:00Z");
  EXPECT_EQ(all_of(*source, t[1]).values, (Values{4, 5, 6}));
}

TEST(ZarrGroups, ThatLeadBackToThemselvesEndInAnError) {
  Store store;
  store.put("zarr.json", group_text);
  store.put("a/zarr.json", array_3("2,3", R"("y","x")"));
  std::filesystem::create_directory_symlink(store.path(), store.path() + "/one");
  std::filesystem::create_directory_symlink(store.path(), store.path() + "/two");
  const Status status = open(store.target(), store.path(), "").status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("groups"), std::string::npos) << status.text();
}

TEST(ZarrNames, AreThoseOfTheArraysWhateverCharactersTheyHave) {
  for (const std::string name :
       {"a\\b", "a\"b", "a b", "a..b", "..a", "\xc3\xa4\xe6\xb0\xb4", "a\nb", "~", "a:b*?", "%s"}) {
    for (const bool consolidated : {true, false}) {
      SCOPED_TRACE(name);
      Store store;
      const std::string array = array_3("2,3", R"("y","x")");
      nlohmann::json group = nlohmann::json::parse(group_text);
      if (consolidated) group["consolidated_metadata"]["metadata"][name] = nlohmann::json::parse(array);
      store.put("zarr.json", group.dump());
      if (!consolidated && name.starts_with(".")) continue;  // hidden directories are no arrays
      if (!consolidated) store.put(name + "/zarr.json", array);
      store.put(name + "/c/0/0", int32s({1, 2, 3, 4, 5, 6}));
      const auto source = opened(store.target(), store.path());
      ASSERT_NE(source, nullptr);
      ASSERT_EQ(records_of(*source, name).size(), 1U);
      EXPECT_EQ(all_of(*source, records_of(*source, name).front()).values, (Values{1, 2, 3, 4, 5, 6}));
    }
  }
}

TEST(ZarrNames, ThatLeadOutOfTheStoreAreRefused) {
  for (const std::string name : {"../a", "a/../../b", "/a", "a//b", "a/", ".", "a\\u0000b"}) {
    Store store;
    store.put("zarr.json",
              cat(R"({"zarr_format":3,"node_type":"group","attributes":{},"consolidated_metadata":)",
                  R"({"metadata":{")", name, "\":", array_3("2,3", R"("y","x")"), "}}}"));
    const Status status = open(store.target(), store.path(), "").status();
    EXPECT_EQ(status.code(), Code::corrupt) << name;
    EXPECT_NE(status.text().find("inside of the store"), std::string::npos) << status.text();
  }
}

// A few kB of metadata took 2.8 GB.
TEST(ZarrStores, ThatDeclareFarMoreRecordsThanTheyHoldKeepTheirOtherArrays) {
  for (const std::string shape : {"16000001,2,2", "1100000,2,3"}) {
    Store store;
    store.put("zarr.json", group_text);
    store.put("a/zarr.json", array_3("2,3", R"("y","x")"));
    store.put("a/c/0/0", int32s({1, 2, 3, 4, 5, 6}));
    store.put("huge/zarr.json", array_3(shape, R"("n","v","u")", "{}", "1,2,3"));
    store.put("huge/c/0/0/0", int32s({1, 2, 3, 4, 5, 6}));
    const auto source = opened(store.target(), store.path());
    ASSERT_NE(source, nullptr);
    EXPECT_EQ(source->inventory().records.size(), 1U);
    EXPECT_LE(source->inventory().records.capacity(), 1000U);
    ASSERT_EQ(source->inventory().unread.size(), 1U);
    const std::string why = source->inventory().unread.front().why.text();
    EXPECT_NE(why.find("variable 'huge': its metadata tell of " + shape.substr(0, shape.find(','))),
              std::string::npos)
        << why;
    EXPECT_NE(why.find("only 24 bytes"), std::string::npos) << why;
  }
}

TEST(ZarrStores, OfMoreThanAMillionRecordsThatAreThereAreRead) {
  Store store;
  store.put("zarr.json", group_text);
  store.put("many/zarr.json", array_3("1100000,2,2", R"("n","v","u")", "{}", "1100000,2,2"));
  std::vector<std::int32_t> values(4'400'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
  store.put("many/c/0/0/0", int32s(values));
  const auto source = opened(store.target(), store.path());
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(source->inventory().records.size(), 1'100'000U);
  EXPECT_EQ(all_of(*source, source->inventory().records.back()).values,
            (Values{4'399'996, 4'399'997, 4'399'998, 4'399'999}));
}

}  // namespace
}  // namespace tailrace::variables
