// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/json.hpp"

#include <gtest/gtest.h>

#include "ground/base/text.hpp"

namespace tailrace::cf {
namespace {

std::string key(int number) { return cat("field_", number); }

std::string object_of(int members) {
  std::string text = "{";
  for (int i = 0; i < members; ++i) text += cat(i > 0 ? "," : "", "\"", key(i), "\":", i);
  return text + "}";
}

TEST(Json, ObjectsKeepTheOrderOfTheirMembersHoweverManyThereAre) {
  for (const int members : {0, 1, 16, 17, 18, 1000}) {
    const Json read = Json::parse(object_of(members));
    Json made = Json::object();
    for (int i = 0; i < members; ++i) made[key(i)] = i;
    EXPECT_EQ(read, made);
    EXPECT_EQ(text_of(read), object_of(members));
    for (int i = 0; i < members; ++i) EXPECT_EQ(read.at(key(i)), i);
    EXPECT_FALSE(read.contains("other"));
    EXPECT_THROW(static_cast<void>(read.at("other")), Json::exception);
  }
}

TEST(Json, MembersAreFoundAfterOthersWereSetErasedCopiedAndMoved) {
  Json json = Json::parse(object_of(100));
  json["field_7"] = "seven";
  EXPECT_EQ(json.size(), 100U);
  EXPECT_EQ(json.erase("field_0"), 1U);
  EXPECT_EQ(json.erase("field_0"), 0U);
  json["new"] = true;
  Json copied = json, moved = std::move(json);
  for (const Json* each : {&copied, &moved}) {
    EXPECT_EQ(each->size(), 100U);
    EXPECT_EQ(each->begin().key(), "field_1");
    EXPECT_EQ(each->at("field_7"), "seven");
    EXPECT_EQ(each->at("field_99"), 99);
    EXPECT_EQ(each->at("new"), true);
    EXPECT_FALSE(each->contains("field_0"));
  }
  copied.clear();
  EXPECT_TRUE(copied.empty());
  for (int i = 0; i < 40; ++i) copied[key(i)] = i;
  EXPECT_EQ(copied.at("field_39"), 39);
  EXPECT_EQ(Json::parse(R"({"a":1,"b":2,"a":3})"), (Json{{"a", 3}, {"b", 2}}));
}

// Less than a second; a map that compares each key with all others takes an hour.
TEST(Json, AMillionMembersAreReadAtOnce) {
  const Json read = Json::parse(object_of(1'000'000));
  EXPECT_EQ(read.size(), 1'000'000U);
  EXPECT_EQ(read.at(key(999'999)), 999'999);
}

}  // namespace
}  // namespace tailrace::cf
