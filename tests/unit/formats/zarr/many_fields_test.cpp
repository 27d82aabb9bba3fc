// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A store of many fields costs no more than in proportion to their number.
#include <gtest/gtest.h>

#include <ctime>

#include "formats/stores/stores.hpp"
#include "formats/zarr/layout.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/memory.hpp"
#include "sample.hpp"

namespace tailrace::zarr {
namespace {

/// Returns the seconds of the processor that a call takes, whatever else runs.
template <typename Call>
double seconds_of(const Call& call) {
  const std::clock_t begin = std::clock();
  call();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

std::unique_ptr<codec::Codec> codec_of(int fields) {
  std::unique_ptr<codec::Codec> made = empty_codec();
  codec::FieldDefinition field;
  field.shape = {2, 2};
  field.keys = {{"compress", "none"}};
  for (int i = 0; i < fields; ++i) {
    field.name = cat("field_", i);
    EXPECT_TRUE(made->define(field).is_ok());
  }
  return made;
}

/// Defines the fields, and does what the stages of a server do for a step. Returns the head.
ByteVector prepare_step(int fields) {
  const auto codec = codec_of(fields);
  ByteVector head = codec->head();
  const codec::FixedPlaces places = *codec->fixed_places();
  std::vector<codec::FinishedStep::Record> records;
  for (int i = 0; i < fields; ++i)
    records.push_back({i, 0, places.places[static_cast<std::size_t>(i)].front(), 16, {}});
  EXPECT_EQ(codec->rest_of_step(0, 0, records).size(), 1U);
  return head;
}

constexpr int few = 1000, many = 8000;
/// Work in proportion has a ratio of 8, and work for each pair of fields one of 64.
constexpr double most = 24;

TEST(ManyFields, AreDefinedInProportionToTheirNumber) {
  static_cast<void>(prepare_step(few));
  const double once = seconds_of([] { static_cast<void>(prepare_step(few)); });
  const double all = seconds_of([] { static_cast<void>(prepare_step(many)); });
  EXPECT_LT(all, most * std::max(once, 0.02)) << once << " s for " << few << " fields";
}

// The records of a step lie one behind the other, and a server writes very many of them in one call.
TEST(ManyFields, FindTheirObjectsInProportionToTheirNumber) {
  const auto find_all = [](const Layout& layout) {
    for (const Layout::Array& each : layout.arrays()) {
      const Layout::Array* const at =
          each.has_steps ? layout.in_step(each.begin) : layout.in_head(each.begin);
      ASSERT_EQ(at, &each);
      ASSERT_EQ(layout.find(each.name), &each);
    }
    EXPECT_EQ(layout.in_step(layout.step()), nullptr);
    EXPECT_EQ(layout.find("none"), nullptr);
  };
  const auto layout_of = [](int fields) {
    const ByteVector head = prepare_step(fields);
    std::string text(reinterpret_cast<const char*>(head.data()) + frame_bytes, head.size() - frame_bytes);
    text.resize(text.rfind('}') + 1);
    return *Layout::of(std::move(text));
  };
  const Layout small = layout_of(few), large = layout_of(many);
  const double once = seconds_of([&] { find_all(small); });
  const double all = seconds_of([&] { find_all(large); });
  EXPECT_LT(all, most * std::max(once, 0.02)) << once << " s for " << few << " fields";
}

TEST(ManyFields, ArePutInOneWriteOfManyParts) {
  const auto codec = codec_of(few);
  const auto target = stores::with_stores(storage::memory_target());
  ASSERT_TRUE(target->make_directories("d").is_ok());
  ASSERT_TRUE(storage::create_empty(*target, "d/fc.zarr").is_ok());
  Result<std::unique_ptr<storage::File>> file = target->open("d/fc.zarr", storage::OpenMode::existing);
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE((*file)->write(codec->head(), 0).is_ok());
  const Bytes begin = std::ssize(codec->head()), first = codec->fixed_places()->places.front().front();
  // Parts that end elsewhere than the fields' rooms, some of them empty.
  ByteVector values(static_cast<std::size_t>(few) * 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i % 251);
  std::vector<std::span<const std::byte>> parts;
  for (std::size_t at = 0, size = 0; at < values.size(); at += size, size = (size + 7) % 23) {
    size = std::min(size, values.size() - at);
    parts.push_back(std::span(values).subspan(at, size));
  }
  ASSERT_TRUE((*file)->write_gathered(parts, begin + first).is_ok());
  ByteVector read(values.size());
  ASSERT_EQ(*(*file)->read(read, begin + first), std::ssize(values));
  EXPECT_EQ(read, values);
}

}  // namespace
}  // namespace tailrace::zarr
