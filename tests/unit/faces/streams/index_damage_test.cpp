// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "ground/base/checksum.hpp"
#include "index_samples.hpp"

// Whatever happens to the bytes of an index, a reader gets a prefix of the steps that were written or a clear
// error, and never a step that was not written.
namespace tailrace::streams {
namespace {

class IndexDamage : public ::testing::Test {
 protected:
  const std::vector<IndexStep> steps_ = sample_steps(5);
  const ByteVector open_ = encode_index(sample_header(), steps_);
  const ByteVector closed_ = encode_index(sample_header(), steps_, true);

  // Returns the number of steps read, or -1 for a clear error.
  int check(std::span<const std::byte> bytes) const {
    const Result<IndexContents> contents = decode_index(bytes);
    if (!contents.is_ok()) {
      EXPECT_EQ(contents.status().code(), Code::corrupt) << contents.status().text();
      EXPECT_FALSE(contents.status().text().empty());
      return -1;
    }
    EXPECT_LE(contents->steps.size(), steps_.size());
    EXPECT_EQ(contents->header, sample_header());
    for (std::size_t i = 0; i < contents->steps.size(); ++i) EXPECT_EQ(contents->steps[i], steps_[i]);
    EXPECT_EQ(contents->marks.size(), contents->steps.size() + 1);
    if (contents->closed) EXPECT_EQ(contents->steps.size(), steps_.size());
    return static_cast<int>(contents->steps.size());
  }
};

TEST_F(IndexDamage, any_flipped_bit_leaves_the_steps_before_it) {
  for (const ByteVector& whole : {open_, closed_}) {
    const Result<IndexContents> sound = decode_index(whole);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      // The steps that a reader must still find: all that end before the damage.
      int expected = -1;
      for (const IndexMark& mark : sound->marks) expected += static_cast<Bytes>(at) >= mark.position ? 1 : 0;
      for (int bit = 0; bit < 8; ++bit) {
        ByteVector bytes = whole;
        bytes[at] ^= static_cast<std::byte>(1 << bit);
        ASSERT_EQ(check(bytes), expected) << "byte " << at << " bit " << bit;
      }
    }
  }
}

TEST_F(IndexDamage, any_cut_leaves_the_steps_before_it) {
  for (std::size_t size = 0; size < closed_.size(); ++size) {
    const Result<IndexContents> sound = decode_index(closed_);
    int expected = -1;
    for (const IndexMark& mark : sound->marks) expected += static_cast<Bytes>(size) >= mark.position ? 1 : 0;
    ASSERT_EQ(check(std::span(closed_).first(size)), expected) << size;
    const Result<IndexContents> contents = decode_index(std::span(closed_).first(size));
    if (contents.is_ok()) ASSERT_NE(contents->tail, IndexTail::damaged) << size;
  }
}

TEST_F(IndexDamage, any_wrong_byte_anywhere_never_invents_a_step) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    ByteVector bytes = round % 2 == 0 ? open_ : closed_;
    for (std::size_t i = 0; i <= random() % 8; ++i)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    check(bytes);
    if (HasFailure()) FAIL() << round;
  }
}

TEST_F(IndexDamage, pieces_moved_repeated_or_left_out_never_invent_a_step) {
  std::mt19937_64 random(2);
  const Result<IndexContents> sound = decode_index(open_);
  const auto record = [&](std::size_t i) {
    return std::span(open_).subspan(
        static_cast<std::size_t>(sound->marks[i].position),
        static_cast<std::size_t>(sound->marks[i + 1].position - sound->marks[i].position));
  };
  for (int round = 0; round < 5000; ++round) {
    ByteVector bytes(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(sound->marks[0].position));
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < random() % 7; ++i) {
      order.push_back(random() % steps_.size());
      const auto piece = record(order.back());
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    std::size_t in_order = 0;
    while (in_order < order.size() && order[in_order] == in_order) ++in_order;
    ASSERT_EQ(check(bytes), static_cast<int>(in_order));
    EXPECT_EQ(decode_index(bytes)->tail, in_order < order.size() ? IndexTail::damaged : IndexTail::none);
  }
}

TEST_F(IndexDamage, random_bytes_are_no_index) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 5000; ++round) {
    ByteVector bytes(random() % 500);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (random() % 2 == 0 && bytes.size() >= 16) std::copy_n(open_.begin(), 16, bytes.begin());
    ASSERT_EQ(check(bytes), -1);
  }
}

// The damage has a right checksum, as a program with a fault, or an attacker, would write it.
TEST_F(IndexDamage, any_header_with_a_right_checksum_is_read_or_refused) {
  std::mt19937_64 random(4);
  const ByteVector head = encode_header(sample_header());
  for (int round = 0; round < 50000; ++round) {
    ByteVector bytes = head;
    for (std::size_t i = 0; i <= random() % 4; ++i) {
      const std::size_t at = 16 + random() % (bytes.size() - 24);
      bytes[at] = random() % 2 == 0 ? std::byte{0xFF} : static_cast<std::byte>(random());
    }
    const std::uint64_t sum = checksum(std::span(bytes).first(bytes.size() - 8));
    for (std::size_t i = 0; i < 8; ++i) bytes[bytes.size() - 8 + i] = static_cast<std::byte>(sum >> (8 * i));
    const Result<IndexContents> contents = decode_index(bytes);
    if (contents.is_ok()) {
      ASSERT_TRUE(check_header(contents->header).is_ok());
    } else {
      ASSERT_EQ(contents.status().code(), Code::corrupt);
    }
  }
}

TEST_F(IndexDamage, any_step_with_a_right_checksum_is_read_or_ends_the_steps) {
  std::mt19937_64 random(5);
  const ByteVector head = encode_header(sample_header());
  const IndexChain chain = first_chain(head);
  for (int round = 0; round < 50000; ++round) {
    ByteVector record = encode_step(steps_[0], chain);
    for (std::size_t i = 0; i <= random() % 3; ++i) {
      const std::size_t at = 8 + random() % (record.size() - 16);
      record[at] = random() % 2 == 0 ? std::byte{0xFF} : static_cast<std::byte>(random());
    }
    const std::uint64_t sum = checksum(std::span(record).first(record.size() - 8), chain.file);
    for (std::size_t i = 0; i < 8; ++i)
      record[record.size() - 8 + i] = static_cast<std::byte>(sum >> (8 * i));
    ByteVector bytes = head;
    bytes.insert(bytes.end(), record.begin(), record.end());
    const Result<IndexContents> contents = decode_index(bytes);
    ASSERT_TRUE(contents.is_ok());
    if (contents->steps.empty()) {
      ASSERT_EQ(contents->tail, IndexTail::damaged);
    } else {
      ASSERT_TRUE(check_step(contents->header, nullptr, contents->steps[0]).is_ok());
    }
  }
}

TEST_F(IndexDamage, an_unfinished_record_is_torn_and_a_harmed_committed_one_is_damaged) {
  ByteVector zeros = open_;
  zeros.resize(zeros.size() + 200);
  EXPECT_EQ(decode_index(zeros)->tail, IndexTail::torn);
  EXPECT_TRUE(mentions(decode_index(zeros)->tail_text, "the last 200 bytes"));
  EXPECT_EQ(decode_index(std::span(open_).first(open_.size() - 1))->tail, IndexTail::torn);

  ByteVector harmed = open_;
  harmed[static_cast<std::size_t>(decode_index(open_)->marks[2].position) + 30] ^= std::byte{1};
  const Result<IndexContents> contents = decode_index(harmed);
  EXPECT_EQ(contents->steps.size(), 2U);
  EXPECT_EQ(contents->tail, IndexTail::damaged);
  EXPECT_TRUE(mentions(contents->tail_text, "damaged")) << contents->tail_text;

  ByteVector behind_the_end = closed_;
  behind_the_end.push_back(std::byte{0});
  EXPECT_EQ(decode_index(behind_the_end)->tail, IndexTail::damaged);
}

TEST_F(IndexDamage, steps_of_another_file_do_not_pass_for_its_own) {
  IndexHeader other = sample_header();
  other.run = Uuid::random();
  const ByteVector foreign = encode_index(other, steps_);
  ByteVector bytes = encode_header(sample_header());
  bytes.insert(bytes.end(), foreign.begin() + static_cast<std::ptrdiff_t>(bytes.size()), foreign.end());
  EXPECT_EQ(check(bytes), 0);
}

}  // namespace
}  // namespace tailrace::streams
