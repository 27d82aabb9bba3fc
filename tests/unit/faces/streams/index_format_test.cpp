// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/index/bytes/index_format.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "ground/base/checksum.hpp"
#include "index_samples.hpp"

namespace tailrace::streams {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte byte : bytes) {
    out += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> 4];
    out += "0123456789abcdef"[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
}

TEST(index_format, everything_reads_back_as_it_was_written) {
  IndexHeader header = sample_header();
  header.calendar = Calendar::day_360;
  header.base = {2026, 2, 30, 12, 0, 5};
  header.format = "raw";
  header.data_begin = 100;
  header.fields.push_back({"näme", ElementType::c128, {1, 2, 3, 4, 5, 6, 7}, "x", {-1.5, 1e300}});
  std::vector<IndexStep> steps{{3, 0, 100, 100, {}}, {7, 0, 100, 150, {{2, 1, 100, 50}, {0, 0, 150, 0}}}};
  for (const bool closed : {false, true}) {
    const Result<IndexContents> contents = decode_index(encode_index(header, steps, closed));
    ASSERT_TRUE(contents.is_ok()) << contents.status().text();
    EXPECT_EQ(contents->header, header);
    EXPECT_EQ(contents->steps, steps);
    EXPECT_EQ(contents->closed, closed);
    EXPECT_EQ(contents->tail, IndexTail::none);
    EXPECT_EQ(contents->data_end(), 150);
    EXPECT_EQ(contents->marks.size(), 3U);
  }
}

TEST(index_format, another_axis_of_times_is_told_and_read_back) {
  IndexHeader header = sample_header();
  header.time = TimeAxis::of_leads(*find_time_unit("ms"));
  header.time.set_name("Times");
  std::vector<IndexStep> steps{{0, 667, 0, 0, {}}};
  EXPECT_EQ(decode_index(encode_index(header, steps))->header, header);
  header.time = TimeAxis::of_model();
  steps = {{0, *TimeAxis::code_of(-0.5), 0, 0, {}}, {1, *TimeAxis::code_of(0.1 + 0.2), 0, 0, {}}};
  const Result<IndexContents> contents = decode_index(encode_index(header, steps));
  ASSERT_TRUE(contents.is_ok()) << contents.status().text();
  EXPECT_EQ(contents->header, header);
  EXPECT_EQ(contents->steps, steps);
  const std::vector<IndexStep> no_time{{0, std::numeric_limits<std::int64_t>::min(), 0, 0, {}}};
  EXPECT_EQ(decode_index(encode_index(header, no_time))->tail, IndexTail::damaged);
  EXPECT_EQ(std::to_integer<int>(encode_header(header)[8]), 2);
  EXPECT_EQ(std::to_integer<int>(encode_header(sample_header())[8]), 1);
}

TEST(index_format, sections_are_told_and_read_back_with_any_axis_of_times) {
  IndexHeader header = sample_header();
  header.fields[0].shape = {95, 156};
  header.fields[0].section = {{378, 468}, {1, 0}, {378, 466}, {4, 3}};
  EXPECT_EQ(std::to_integer<int>(encode_header(header)[8]), 3);
  EXPECT_EQ(decode_index(encode_index(header, sample_steps(2)))->header, header);
  header.time = TimeAxis::of_model();
  header.fields[1].section = {{378, 468}, {377, 0}, {378, 468}, {1, 1}};
  EXPECT_EQ(decode_index(encode_index(header, {}))->header, header);
  EXPECT_NE(header.fields[0], sample_header().fields[0]);
  const auto refused = [&](auto&& change) {
    IndexHeader wrong = header;
    change(wrong.fields[0].section);
    return check_header(wrong).code() == Code::argument &&
           decode_index(encode_index(wrong, {})).status().code() == Code::corrupt;
  };
  EXPECT_TRUE(refused([](IndexSection& each) { each.start[0] = -1; }));
  EXPECT_TRUE(refused([](IndexSection& each) { each.start[0] = 378; }));
  EXPECT_TRUE(refused([](IndexSection& each) { each.stop[0] = 379; }));
  EXPECT_TRUE(refused([](IndexSection& each) { each.stop[0] = 1; }));
  EXPECT_TRUE(refused([](IndexSection& each) { each.stop.pop_back(); }));
  EXPECT_TRUE(refused([](IndexSection& each) { each.stride[1] = 0; }));
  EXPECT_TRUE(refused([](IndexSection& each) { each.stride.pop_back(); }));
  // The number of sections, their fields, and a version that has none.
  const ByteVector good = encode_header(header);
  const std::size_t one_section = 4 + 4 * (4 + 2 * 8), count = good.size() - 8 - 2 * one_section - 4;
  const auto changed = [&](std::size_t at, int value) {
    ByteVector bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    const std::uint64_t sum = checksum(std::span(bytes).first(bytes.size() - 8));
    for (std::size_t i = 0; i < 8; ++i) bytes[bytes.size() - 8 + i] = static_cast<std::byte>(sum >> (8 * i));
    return decode_index(bytes).status().code();
  };
  EXPECT_EQ(changed(count, 2), Code::ok);
  for (const int number : {0, 1, 3, 255}) EXPECT_EQ(changed(count, number), Code::corrupt) << number;
  EXPECT_EQ(changed(count + 4, 9), Code::corrupt);
  EXPECT_EQ(changed(count + 4, 1), Code::corrupt) << "a field has two sections";
  EXPECT_EQ(changed(8, 2), Code::corrupt);
}

TEST(index_format, without_steps_the_data_end_where_they_begin) {
  IndexHeader header = sample_header();
  header.data_begin = 5;
  header.member.reset();
  header.fields.clear();
  const Result<IndexContents> contents = decode_index(encode_index(header, {}));
  ASSERT_TRUE(contents.is_ok()) << contents.status().text();
  EXPECT_TRUE(contents->steps.empty());
  EXPECT_FALSE(contents->header.member.has_value());
  EXPECT_EQ(contents->data_end(), 5);
}

// The bytes that docs/formats/index.md shows. If this fails, files of released versions can no longer be
// read.
TEST(index_format, the_bytes_are_those_of_the_document) {
  IndexHeader header = sample_header();
  header.fields = {{"t", ElementType::f32, {2, 3}, "surface", {0}}};
  const ByteVector head = encode_header(header);
  EXPECT_EQ(hex(std::span(head).first(head.size() - 8)),
            "54524c494e444558"  // TRLINDEX
            "01000000"
            "81000000"                          // version, length
            "123e4567e89b42d3a456426614174000"  // run
            "0000000000000000"                  // data begin
            "8081a36900000000"                  // base: 1772323200
            "00000000"
            "07000000"  // calendar, member
            "05000000"
            "6772696232"  // grib2
            "01000000"    // one field
            "01000000"
            "74"        // t
            "05000000"  // float32
            "02000000"
            "0200000000000000"
            "0300000000000000"
            "07000000"
            "73757266616365"  // surface
            "01000000"
            "0000000000000000");
  const IndexChain chain = first_chain(head);
  EXPECT_EQ(chain.file, checksum(std::span(head).first(head.size() - 8)));
  const ByteVector step =
      encode_step({4, 3600, 16, 26, {{0, 0, 16, 10}}}, IndexChain{chain.file, 0x1122334455667788, 9});
  EXPECT_EQ(hex(std::span(step).first(step.size() - 8)),
            "53544550"
            "60000000"          // STEP, length
            "8877665544332211"  // previous
            "0900000000000000"  // sequence
            "0400000000000000"
            "100e000000000000"
            "1000000000000000"
            "1a00000000000000"
            "01000000"
            "00000000"  // records
            "00000000"
            "00000000"
            "1000000000000000"
            "0a00000000000000");
  EXPECT_EQ(next_chain(chain, step).previous, checksum(std::span(step).first(step.size() - 8), chain.file));
}

TEST(index_format, another_version_is_unsupported_and_says_so) {
  ByteVector head = encode_header(sample_header());
  head[8] = std::byte{4};
  const std::uint64_t sum = checksum(std::span(head).first(head.size() - 8));
  for (std::size_t i = 0; i < 8; ++i) head[head.size() - 8 + i] = static_cast<std::byte>(sum >> (8 * i));
  const Status status = decode_index(head).status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_TRUE(mentions(status.text(), "version 4")) << status.text();
}

TEST(index_format, what_is_no_index_is_corrupt) {
  const std::string text = "this is a text file and no index at all, however long it may be";
  EXPECT_EQ(decode_index({}).status().code(), Code::corrupt);
  EXPECT_EQ(decode_index(std::as_bytes(std::span(text))).status().code(), Code::corrupt);
  EXPECT_EQ(decode_run(std::as_bytes(std::span(text))).status().code(), Code::corrupt);
  EXPECT_EQ(decode_run({}).status().code(), Code::corrupt);
}

TEST(index_format, the_run_is_read_from_the_prefix_alone) {
  const ByteVector head = encode_header(sample_header());
  EXPECT_EQ(*decode_run(std::span(head).first(kIndexPrefix)), sample_header().run);
}

TEST(index_format, a_step_that_cannot_follow_is_named) {
  const IndexHeader header = sample_header();
  const IndexStep before = sample_step(1, 0);
  const IndexStep good = sample_step(2, before.end);
  EXPECT_TRUE(check_step(header, &before, good).is_ok());
  const auto error = [&](auto&& change) {
    IndexStep step = good;
    change(step);
    const Status status = check_step(header, &before, step);
    EXPECT_EQ(status.code(), Code::argument);
    return status.text();
  };
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.step = 1; }), "does not follow step 1"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.lead = 10799; }), "goes back in time"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.lead = std::numeric_limits<std::int64_t>::max(); }),
                       "more than 10^9 years away"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.begin += 1; }), "the step before ended at 46"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.end = s.begin - 1; }), "takes bytes"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.records[0].field = 2; }), "field 2"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.records[0].field = -1; }), "field -1"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.records[0].level = 3; }), "level 3 of field \"t\""));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.records[0].offset -= 1; }), "outside of its bytes"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.records[3].length += 1; }), "outside of its bytes"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.records[0].length = -1; }), "outside of its bytes"));
  EXPECT_TRUE(mentions(error([](IndexStep& s) { s.records[0].length = std::numeric_limits<Bytes>::max(); }),
                       "outside"));
}

TEST(index_format, a_header_that_means_nothing_is_refused) {
  const auto refused = [](auto&& change) {
    IndexHeader header = sample_header();
    change(header);
    return check_header(header).code() == Code::argument;
  };
  EXPECT_TRUE(check_header(sample_header()).is_ok());
  EXPECT_TRUE(refused([](IndexHeader& h) { h.data_begin = -1; }));
  EXPECT_TRUE(refused([](IndexHeader& h) { h.format = ""; }));
  EXPECT_TRUE(refused([](IndexHeader& h) { h.base.month = 13; }));
  EXPECT_TRUE(refused([](IndexHeader& h) { h.member = -2; }));
  EXPECT_TRUE(refused([](IndexHeader& h) { h.fields[0].name = ""; }));
  EXPECT_FALSE(refused([](IndexHeader& h) { h.fields[0].shape = {}; }));  // a number of a step
  EXPECT_TRUE(refused([](IndexHeader& h) { h.fields[0].shape = {-1}; }));
  EXPECT_TRUE(refused([](IndexHeader& h) { h.fields[0].shape = {1LL << 40, 1LL << 40}; }));
  EXPECT_TRUE(refused([](IndexHeader& h) { h.fields[0].levels = {}; }));
  EXPECT_TRUE(refused([](IndexHeader& h) { h.fields[0].type = static_cast<ElementType>(77); }));
}

TEST(index_format, offsets_beyond_4_GiB_are_kept) {
  const Bytes far = Bytes{5} << 40;
  IndexHeader header = sample_header();
  header.data_begin = far;
  const std::vector<IndexStep> steps{{0, 0, far, far + (Bytes{3} << 32), {{0, 0, far + 7, Bytes{3} << 31}}}};
  EXPECT_EQ(decode_index(encode_index(header, steps))->steps, steps);
}

}  // namespace
}  // namespace tailrace::streams
