// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/sources/inventory_file.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "ground/base/checksum.hpp"
#include "samples.hpp"

namespace tailrace::sources {
namespace {

using test::same_inventory;
using test::sample_inventory;

TEST(inventory_file, holds_what_was_put) {
  KeptInventory kept{"/data/a.grib", {1234, 5, 6, 7}, sample_inventory(), "ecCodes 2.30.0"};
  kept.inventory.unread = {{"t", {Code::data, "a reason"}}};
  const Result<KeptInventory> read = decode_inventory(encode_inventory(kept));
  ASSERT_TRUE(read.is_ok()) << read.status().text();
  EXPECT_EQ(read->path, kept.path);
  EXPECT_EQ(read->identity, kept.identity);
  EXPECT_EQ(read->maker, kept.maker);
  EXPECT_TRUE(same_inventory(read->inventory, kept.inventory));
  ASSERT_EQ(read->inventory.unread.size(), 1U);
  EXPECT_EQ(read->inventory.unread[0].field, "t");
  EXPECT_EQ(read->inventory.unread[0].why.code(), Code::data);
  EXPECT_EQ(read->inventory.unread[0].why.text(), "a reason");
  const Result<KeptInventory> empty = decode_inventory(encode_inventory({}));
  EXPECT_TRUE(empty.is_ok() && empty->inventory.records.empty());
}

TEST(inventory_file, has_the_bytes_of_its_document) {
  Inventory inventory;
  inventory.format = "GRIB";
  inventory.grids = {{{2, 3}, {{"Ni", "3"}}}};
  inventory.records = {{"t", "surface", 0, 21600, 0, -1, 0, {8, 120, 0, 0}}};
  const ByteVector bytes = encode_inventory({"/a", {128, 1, 2, 3}, inventory});
  std::string hex;
  for (const std::byte each : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    hex += digits[std::to_integer<std::size_t>(each) >> 4];
    hex += digits[std::to_integer<std::size_t>(each) & 15];
  }
  EXPECT_EQ(hex.substr(0, hex.size() - 16),
            "5452494e56454e540500000000000000e500000000000000"
            "8000000000000000010000000000000002000000000000000300000000000000"
            "020000002f6104000000475249420000000000000000"
            "010000000200000002000000000000000300000000000000"
            "01000000020000004e690100000033"
            "0200000001000000740700000073757266616365"
            "0100000000000000"
            "0000000001000000000000000000000060540000000000000000000000000000ffffffff00000000"
            "0800000000000000780000000000000000000000000000000000000000000000"
            "00000000");
}

TEST(inventory_file, refuses_every_change_of_its_bytes) {
  const ByteVector bytes = encode_inventory({"/data/a.grib", {1234, 5, 6, 7}, sample_inventory()});
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ByteVector changed = bytes;
    changed[i] ^= std::byte{16};
    EXPECT_FALSE(decode_inventory(changed).is_ok()) << i;
    changed.resize(i);
    EXPECT_EQ(decode_inventory(changed).status().code(), Code::corrupt) << i;
  }
}

TEST(inventory_file, refuses_contents_that_contradict_themselves) {
  const auto refused = [](const Inventory& inventory) {
    return !decode_inventory(encode_inventory({"/a", {}, inventory})).is_ok();
  };
  Inventory inventory = sample_inventory();
  inventory.records[0].grid = 17;
  EXPECT_TRUE(refused(inventory));
  inventory.records[0].grid = -1;
  EXPECT_TRUE(refused(inventory));
  inventory = sample_inventory();
  inventory.grids[0].shape = {};
  EXPECT_TRUE(refused(inventory));
  inventory.grids[0].shape = {Index{1} << 40, Index{1} << 40};
  EXPECT_TRUE(refused(inventory));
  inventory = sample_inventory();
  inventory.calendar = static_cast<Calendar>(5);
  EXPECT_TRUE(refused(inventory));
}

TEST(inventory_file, of_another_version_is_unsupported) {
  // Version 3 may have wrong times, and version 4 lacks what is not read.
  for (const int version : {3, 4, 6}) {
    ByteVector bytes = encode_inventory({"/a", {}, sample_inventory()});
    bytes[8] = static_cast<std::byte>(version);
    const std::uint64_t sum = checksum(std::span(bytes).first(bytes.size() - 8));
    std::memcpy(&bytes[bytes.size() - 8], &sum, sizeof sum);
    EXPECT_EQ(decode_inventory(bytes).status().code(), Code::unsupported) << version;
  }
}

}  // namespace
}  // namespace tailrace::sources
