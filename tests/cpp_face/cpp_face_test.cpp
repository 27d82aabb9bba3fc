// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Tests what the C++ face hands to the library. The recorder sees it in the library's place.
#include <gtest/gtest.h>

#include <cstdlib>
#include <tailrace.hpp>

extern "C" const char* recorder_line();
extern "C" const void* recorder_packed(int64_t* bytes);

namespace {

void refuse(const char* function) { setenv("RECORDER_REFUSE", function, 1); }
void refuse_nothing() { unsetenv("RECORDER_REFUSE"); }

TEST(CppFace, LayoutsAreHandedOverInCOrderFromZero) {
  EXPECT_TRUE(tr::Layout::block({30, 20}, {2, 1}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_layout_block shape=30,20 halo=2,1");
  EXPECT_TRUE(tr::Layout::block({30, 20}, {}, {3, 0}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_layout_block_grid shape=30,20 halo=none grid=3,0");
  EXPECT_TRUE(tr::Layout::box({30, 20}, {10, 0}, {30, 10}, {1, 1}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_layout_box shape=30,20 halo=1,1 lower=10,0 upper=30,10");
  EXPECT_TRUE(tr::Layout::boxes({30, 20}, {10, 0, 10, 4}, {30, 4, 20, 10}, {1, 2}, true).is_ok());
  EXPECT_STREQ(recorder_line(),
               "tr_layout_boxes shape=30,20 halo=1,2 count=2 lower=10,0,10,4 upper=30,4,20,10 unowned=1");
  EXPECT_TRUE(tr::Layout::boxes({30, 20}, {}, {}).is_ok());
  EXPECT_EQ(std::string(recorder_line()).find("tr_layout_boxes shape=30,20 halo=none count=0"), 0U);
  EXPECT_TRUE(tr::Layout::block_cyclic({30, 20}, {5, 4}, {2, 1}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_layout_block_cyclic shape=30,20 block=5,4 grid=2,1");
  EXPECT_TRUE(tr::Layout::weighted({30, 20}, {{3, 4, 5.5}, {1, 2}}).is_ok());
  EXPECT_STREQ(recorder_line(),
               "tr_layout_weighted shape=30,20 halo=none grid=3,2 weights0=3,4,5.5 weights1=1,2");
  EXPECT_TRUE(tr::Layout::indexed({100}, {2, 0, 99}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_layout_indexed shape=100 indices=2,0,99 base=0");
  EXPECT_TRUE(tr::Layout::replicated({4, 3, 2}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_layout_replicated shape=4,3,2");
  const int base = 1000;
  EXPECT_TRUE(tr::Layout::callback({30, 20}, [&](const tr::Index* at) {
                return base + static_cast<int>(100 * at[1] + at[0]);
              }).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_layout_callback shape=30,20 owner=2110");
}

TEST(CppFace, BoundsAndCountComeBack) {
  auto grid = tr::Layout::block({30, 20}, {2, 1});
  ASSERT_TRUE(grid.is_ok());
  EXPECT_EQ(grid->bounds()->lower, (tr::Indices{-2, 4}));
  EXPECT_EQ(grid->bounds()->upper, (tr::Indices{32, 26}));
  EXPECT_EQ(grid->bounds(false)->lower, (tr::Indices{0, 5}));
  EXPECT_EQ(*grid->count(), 600);
  EXPECT_TRUE(grid->free().is_ok());
  EXPECT_EQ(grid->c_handle(), nullptr);
}

TEST(CppFace, ArraysThatDoNotMatchTheShapeAreRefusedByTheLibrary) {
  const auto grid = tr::Layout::block({30, 20}, {2, 1, 1});
  EXPECT_FALSE(grid.is_ok());
  EXPECT_EQ(grid.status().code(), tr::Code::argument);
  EXPECT_NE(grid.status().text().find("halo has 3 entries, but shape has 2"), std::string::npos)
      << grid.status().text();
}

TEST(CppFace, OptionsAreQuotedAndNumbersKeepTheirValue) {
  tr::Options options("a=1");
  options.set("keys", "centre=98, x=1").set("hook", "say \"done\"").set("empty", "").set("accuracy", 0.01);
  options.set("single", 0.1F).set("third", 1.0 / 3).set("bits", 12).set("tiny", 1e-300);
  EXPECT_EQ(options.text(),
            "a=1 keys=\"centre=98, x=1\" hook=\"say \"\"done\"\"\" empty=\"\" accuracy=0.01 single=0.1"
            " third=0.3333333333333333 bits=12 tiny=1e-300");
}

TEST(CppFace, AStreamPassesItsArraysWithTypeExtentsAndStrides) {
  auto stream = tr::Stream::create("x_{lead:03h}", tr::Options().set("base", "2026-03-01T00:00Z"));
  ASSERT_TRUE(stream.is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_create [x_{lead:03h}] [base=2026-03-01T00:00Z]");
  auto grid = tr::Layout::block({2, 2});
  ASSERT_TRUE(stream->define<double>("t", *grid, "levels=surface").is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_define [t] type=6 [levels=surface]");
  ASSERT_TRUE(stream->attribute("t", "valid_range", std::vector<double>{-1, 400}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_attribute [t] [valid_range] type=6 count=2 first=-1");
  ASSERT_TRUE(stream->attribute("", "revision", std::int16_t{7}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_attribute [] [revision] type=2 count=1 first=7");
  ASSERT_TRUE(stream->attribute("t", "flag_values", {1, 2, 4}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_attribute [t] [flag_values] type=3 count=3 first=1");
  ASSERT_TRUE(stream->attribute("t", "flag_values", {0}).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_attribute [t] [flag_values] type=3 count=1 first=0");
  ASSERT_TRUE(stream->attribute("t", "comment", "at noon").is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_attribute_text [t] [comment] [at noon]");
  const double values[] = {1, 2, 3, 4, 5, 6, 7, 8};
  stream->begin(5000000000);
  EXPECT_STREQ(recorder_line(), "tr_stream_begin lead=5000000000");
  EXPECT_TRUE(tr::Stream::configure("output.yaml", "base=2026-03-01T00:00Z").is_ok());
  EXPECT_STREQ(recorder_line(), "tr_streams_configure [output.yaml] [base=2026-03-01T00:00Z]");
  EXPECT_TRUE(stream->wants("wanted"));
  EXPECT_FALSE(stream->wants("other"));
  EXPECT_STREQ(recorder_line(), "tr_stream_wants [other]");
  stream->begin_at(0.5);
  EXPECT_STREQ(recorder_line(), "tr_stream_begin_at time=0.5");
  stream->put("t", values, {2, 4});
  EXPECT_STREQ(recorder_line(), "tr_stream_put_array [t] type=6 extents=2,4 strides=none");
  stream->put("t", values + 1, {2, 2}, {32, 16});
  int64_t bytes = 0;
  const auto* packed = static_cast<const double*>(recorder_packed(&bytes));
  ASSERT_EQ(bytes, 32);
  EXPECT_EQ(std::vector<double>(packed, packed + 4), (std::vector<double>{2, 4, 6, 8}));
  EXPECT_TRUE(stream->end().is_ok());
  EXPECT_TRUE(stream->wait(tr::Event::durable).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_wait event=2");
  EXPECT_TRUE(stream->close().is_ok());
  EXPECT_EQ(stream->c_handle(), nullptr);
}

TEST(CppFace, AStreamThatIsReadFillsArrays) {
  auto stream = tr::Stream::open("bd_{lead:03h}", tr::Options("prefetch=2").set("base", "2026-03-01T00:00Z"));
  ASSERT_TRUE(stream.is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_open [bd_{lead:03h}] [prefetch=2 base=2026-03-01T00:00Z]");
  float values[8] = {};
  stream->get("t", values, {2, 4});
  EXPECT_STREQ(recorder_line(), "tr_stream_get_array [t] type=5 extents=2,4 strides=none");
  EXPECT_EQ(std::vector<float>(values, values + 8), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  double wide[8] = {};
  stream->get("t", wide + 1, {2, 2}, {32, 16});
  EXPECT_EQ(std::vector<double>(wide, wide + 8), (std::vector<double>{0, 1, 0, 2, 0, 3, 0, 4}));
  const tr::Kept odd = stream->get("t", wide, {2, 2}, {16});
  EXPECT_EQ(odd.code(), tr::Code::argument);
  EXPECT_NE(odd.text().find("strides and extents have different numbers of entries"), std::string::npos);
  stream->get("flags", static_cast<std::uint16_t*>(nullptr), {2, 4});
  EXPECT_STREQ(recorder_line(), "tr_stream_get_array [flags] type=10 extents=2,4 strides=none");
  char whole[8] = {};
  stream->get("t", whole);
  EXPECT_STREQ(recorder_line(), "tr_stream_get [t]");
  EXPECT_STREQ(whole, "8 bytes");
  EXPECT_TRUE(stream->seek(-5000000000).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_stream_seek lead=-5000000000");
  EXPECT_TRUE(stream->end().is_ok());
  EXPECT_TRUE(stream->close().is_ok());
  refuse("tr_stream_open");
  EXPECT_EQ(tr::Stream::open("x").status().text(), "tr_stream_open: refused by the recorder");
  refuse("tr_stream_get");
  EXPECT_EQ(stream->get("t", values, {2, 4}).code(), tr::Code::io);
  refuse("tr_stream_seek");
  EXPECT_EQ(stream->seek(0).code(), tr::Code::io);
  refuse_nothing();
}

TEST(CppFace, ErrorsCarryCodeAndText) {
  auto stream = tr::Stream::create("x", {});
  ASSERT_TRUE(stream.is_ok());
  refuse("tr_stream_end");
  const tr::Status status = stream->end();
  refuse("tr_stream_create");
  const auto refused = tr::Stream::create("x", {});
  refuse_nothing();
  EXPECT_EQ(status.code(), tr::Code::io);
  EXPECT_EQ(status.text(), "tr_stream_end: refused by the recorder");
  EXPECT_FALSE(refused.is_ok());
  EXPECT_EQ(refused.status().text(), "tr_stream_create: refused by the recorder");
}

TEST(CppFace, AMovedFromHandleIsEmpty) {
  auto made = tr::Stream::create("x", {});
  tr::Stream first = *std::move(made);
  ASSERT_NE(first.c_handle(), nullptr);
  tr_stream* const handle = first.c_handle();
  tr::Stream second = std::move(first);
  EXPECT_EQ(first.c_handle(), nullptr);
  EXPECT_EQ(second.c_handle(), handle);
  EXPECT_TRUE(second.close().is_ok());
}

TEST(CppFace, EveryElementTypeHasItsCode) {
  EXPECT_EQ(tr::type_of<std::int8_t>(), tr::Type::i8);
  EXPECT_EQ(tr::type_of<short>(), tr::Type::i16);
  EXPECT_EQ(tr::type_of<int>(), tr::Type::i32);
  EXPECT_EQ(tr::type_of<long>(), sizeof(long) == 8 ? tr::Type::i64 : tr::Type::i32);
  EXPECT_EQ(tr::type_of<long long>(), tr::Type::i64);
  EXPECT_EQ(tr::type_of<float>(), tr::Type::f32);
  EXPECT_EQ(tr::type_of<double>(), tr::Type::f64);
  EXPECT_EQ(tr::type_of<std::complex<float>>(), tr::Type::c64);
  EXPECT_EQ(tr::type_of<std::complex<double>>(), tr::Type::c128);
  EXPECT_EQ(tr::type_of<std::byte>(), tr::Type::byte);
  EXPECT_EQ(tr::type_of<std::uint8_t>(), tr::Type::u8);
  EXPECT_EQ(tr::type_of<unsigned short>(), tr::Type::u16);
  EXPECT_EQ(tr::type_of<std::uint32_t>(), tr::Type::u32);
  EXPECT_EQ(tr::type_of<unsigned long long>(), tr::Type::u64);
  EXPECT_EQ((tr::type_of<std::array<char, 20>>()), tr::text(20));
  EXPECT_EQ(static_cast<int>(tr::text(20)), TR_TEXT(20));
}

}  // namespace
