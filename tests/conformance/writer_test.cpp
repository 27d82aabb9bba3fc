// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/writer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <functional>

#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/queue/write_queue.hpp"
#include "ground/storage/scratch.hpp"
#include "support/crash.hpp"

namespace tailrace::storage {
namespace {

struct Candidate {
  std::string name;
  MakeWriter make;
  std::function<std::shared_ptr<Target>()> target;
  bool on_disk = false;
};

Result<std::unique_ptr<Writer>> open_posix_aio_writer(Target& target, const std::string& path) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  return overlapping_writer(*std::move(file), posix_aio_write_queue());
}

/// Each writer of files on every kind of the registry that this machine grants, and on what wraps one.
std::vector<Candidate> candidates() {
  std::vector<Candidate> all;
  for (const TargetKind& kind : target_kinds()) {
    if (!kind.make().is_ok()) continue;
    const auto target = [&kind] { return *kind.make(); };
    all.push_back({cat("file_on_", kind.name), open_file_writer, target, kind.for_programs});
    all.push_back({cat("overlapping_on_", kind.name), open_overlapping_writer, target, kind.for_programs});
  }
  all.push_back({"posix_aio_on_posix", open_posix_aio_writer,
                 [] { return std::shared_ptr<Target>(posix_target()); }, true});
  all.push_back({"overlapping_on_throttled", open_overlapping_writer, [] {
                   return throttled_target(memory_target(), {4e9, 1e-6});
                 }});
  all.push_back({"overlapping_on_throttled_posix", open_overlapping_writer,
                 [] {
                   return throttled_target(posix_target(), {4e9, 1e-6});
                 },
                 true});
  all.push_back({"file_on_throttled", open_file_writer, [] {
                   return throttled_target(memory_target(), {4e9, 1e-6});
                 }});
  all.push_back({"file_on_crash", open_file_writer, [] { return crash_target(); }});
  return all;
}

/// Every target stands below a faulty one, which fails nothing until a test says so.
class WriterConformance : public testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    const auto below = GetParam().target();
    ASSERT_NE(below, nullptr);
    target = faulty_target(below, {});
    path = (GetParam().on_disk ? scratch.path() : "/conformance/root") + "/a";
    ASSERT_TRUE(GetParam().on_disk || target->make_directories("/conformance/root").is_ok());
    ASSERT_TRUE(put_file(*target, path, "").is_ok());
    writer = make();
  }
  std::unique_ptr<Writer> make() {
    auto made = GetParam().make(*target, path);
    EXPECT_TRUE(made.is_ok()) << made.status().text();
    return made.is_ok() ? *std::move(made) : nullptr;
  }
  template <typename Call>
  static auto with_extents(const std::vector<std::pair<Bytes, std::string>>& texts, const Call& call) {
    std::vector<std::array<std::span<const std::byte>, 2>> parts;
    for (const auto& [offset, text] : texts) {
      const auto bytes = std::as_bytes(std::span(text));
      parts.push_back({bytes.first(bytes.size() / 2), bytes.subspan(bytes.size() / 2)});
    }
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < texts.size(); ++i) extents.push_back({texts[i].first, parts[i]});
    return call(std::span<const Extent>(extents));
  }
  /// Writes one round of texts at offsets, each cut into two parts.
  Status round(std::int64_t epoch, const std::vector<std::pair<Bytes, std::string>>& texts) {
    return with_extents(texts,
                        [&](std::span<const Extent> extents) { return writer->round(epoch, extents); });
  }
  /// Begins such a round. The texts must stay.
  std::unique_ptr<Round> begin(std::int64_t epoch, const std::vector<std::pair<Bytes, std::string>>& texts) {
    return with_extents(texts,
                        [&](std::span<const Extent> extents) { return writer->begin(epoch, extents); });
  }
  [[nodiscard]] std::string contents() { return contents_of(*target, path); }

  ScratchDirectory scratch;
  std::shared_ptr<FaultyTarget> target;
  std::string path;
  std::unique_ptr<Writer> writer;
};

TEST_P(WriterConformance, bytes_stand_at_their_offsets) {
  ASSERT_TRUE(round(0, {{3, "hello"}}).is_ok());
  EXPECT_EQ(contents(), std::string("\0\0\0hello", 8));
  ASSERT_TRUE(round(0, {{0, "abc"}}).is_ok());
  EXPECT_EQ(contents(), "abchello");
  EXPECT_TRUE(writer->sync().is_ok());
  EXPECT_TRUE(writer->close().is_ok());
  EXPECT_EQ(contents(), "abchello");
}

TEST_P(WriterConformance, a_round_has_several_extents_in_any_order) {
  ASSERT_TRUE(round(0, {{8, "ijk"}, {2, "cde"}, {5, "fgh"}, {0, "ab"}, {20, "z"}}).is_ok());
  EXPECT_EQ(contents(), std::string("abcdefghijk\0\0\0\0\0\0\0\0\0z", 21));
}

TEST_P(WriterConformance, extents_behind_one_another_are_one_write) {
  target->restart({0, Fault::io_error, set_of(Call::write)});
  ASSERT_TRUE(round(0, {{0, "ab"}, {2, "cd"}, {4, "ef"}, {10, "kl"}, {12, "mn"}}).is_ok());
  EXPECT_EQ(target->calls(), 2);
  EXPECT_EQ(contents(), std::string("abcdef\0\0\0\0klmn", 14));
}

TEST_P(WriterConformance, an_empty_round_writes_nothing) {
  ASSERT_TRUE(round(0, {{0, "abc"}}).is_ok());
  EXPECT_TRUE(round(0, {}).is_ok());
  EXPECT_TRUE(round(1, {{100, ""}}).is_ok());
  EXPECT_EQ(contents(), "abc");
  EXPECT_TRUE(round(7, {}).is_ok()) << "epochs without a round of this writer may lie between";
  EXPECT_TRUE(writer->sync().is_ok());
}

TEST_P(WriterConformance, a_later_round_writes_over_an_earlier_one) {
  for (std::int64_t epoch = 0; epoch < 50; ++epoch) {
    const std::string text(100, static_cast<char>('a' + epoch % 26));
    ASSERT_TRUE(round(epoch, {{epoch, text}, {200 + epoch, text}}).is_ok());
  }
  std::string expected(349, '\0');
  for (std::size_t epoch = 0; epoch < 50; ++epoch) {
    const std::string text(100, static_cast<char>('a' + epoch % 26));
    expected.replace(epoch, 100, text).replace(200 + epoch, 100, text);
  }
  EXPECT_EQ(contents(), expected);
}

TEST_P(WriterConformance, offsets_beyond_4_gib_are_exact) {
  const Bytes far = (Bytes{5} << 30) + 3;
  ASSERT_TRUE(round(0, {{3, "near"}, {far, "far"}}).is_ok());
  const auto file = *target->open(path, OpenMode::read);
  EXPECT_EQ(*file->size(), far + 3);
  ByteVector buffer(3);
  EXPECT_EQ(*file->read(buffer, far), 3);
  EXPECT_EQ(text_of(buffer), "far");
}

/// Fails the n-th write of a round, for each n until none fires. A round that is tried again is whole.
TEST_P(WriterConformance, a_write_that_fails_fails_its_round) {
  const std::vector<std::pair<Bytes, std::string>> texts{{0, "abc"}, {10, "klm"}, {20, "uvw"}};
  for (const Fault fault : {Fault::io_error, Fault::no_space}) {
    for (int n = 1;; ++n) {
      target->restart({n, fault, set_of(Call::write)});
      const Status status = round(n, texts);
      if (!target->fired()) {
        EXPECT_TRUE(status.is_ok()) << status.text();
        EXPECT_EQ(n, 4);
        break;
      }
      EXPECT_EQ(status.code(), fault == Fault::no_space ? Code::space : Code::io) << n;
      EXPECT_EQ(status.error_number(), error_number_of(fault)) << n;
      EXPECT_NE(status.text().find(path), std::string::npos) << status.text();
      EXPECT_TRUE(round(n, texts).is_ok()) << n;
      EXPECT_EQ(contents(), std::string("abc\0\0\0\0\0\0\0klm\0\0\0\0\0\0\0uvw", 23)) << n;
    }
  }
}

TEST_P(WriterConformance, rounds_that_are_under_way_are_all_written) {
  constexpr std::size_t rounds = 20;
  std::vector<std::vector<std::pair<Bytes, std::string>>> texts;
  std::string expected;
  for (std::size_t i = 0; i < rounds; ++i) {
    texts.push_back(
        {{static_cast<Bytes>(expected.size()), std::string(50'000, static_cast<char>('a' + i))},
         {static_cast<Bytes>(expected.size()) + 60'000, std::string(10, static_cast<char>('A' + i))}});
    expected += texts.back()[0].second + std::string(10'000, '\0') + texts.back()[1].second;
  }
  std::vector<std::unique_ptr<Round>> under_way;
  for (std::size_t i = 0; i < rounds; ++i) under_way.push_back(begin(static_cast<std::int64_t>(i), texts[i]));
  for (std::size_t i = rounds; i-- > 0;) {
    EXPECT_TRUE(under_way[i]->finish().is_ok()) << "in any order";
    EXPECT_TRUE(under_way[i]->finish().is_ok()) << "as often as one asks";
  }
  EXPECT_TRUE(contents() == expected);
}

TEST_P(WriterConformance, sync_covers_rounds_that_are_under_way_and_rounds_outlive_their_writer) {
  const std::vector<std::pair<Bytes, std::string>> first{{0, std::string(100'000, 'x')}};
  const std::vector<std::pair<Bytes, std::string>> second{{100'000, std::string(100'000, 'y')}};
  const auto synced = begin(0, first);
  ASSERT_TRUE(writer->sync().is_ok());
  EXPECT_EQ(contents(), first[0].second);
  auto dropped = begin(1, second);
  dropped.reset();
  EXPECT_EQ(contents(), first[0].second + second[0].second) << "its bytes are free now";
  const auto closed = begin(2, first);
  ASSERT_TRUE(writer->close().is_ok());
  writer.reset();
  EXPECT_TRUE(synced->finish().is_ok());
  EXPECT_TRUE(closed->finish().is_ok());
}

/// Fails the n-th write of three rounds that are begun before the first one is finished.
TEST_P(WriterConformance, of_rounds_that_are_under_way_the_one_fails_whose_write_has_failed) {
  const std::vector<std::vector<std::pair<Bytes, std::string>>> texts{
      {{0, "abc"}, {10, "klm"}}, {{20, "uvw"}, {30, "xyz"}}, {{40, "ABC"}, {50, "KLM"}}};
  for (std::size_t n = 1; n <= 6; ++n) {
    target->restart({static_cast<std::int64_t>(n), Fault::no_space, set_of(Call::write)});
    std::vector<std::unique_ptr<Round>> under_way;
    for (const auto& each : texts) under_way.push_back(begin(0, each));
    EXPECT_TRUE(target->fired());
    int failed = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Status status = under_way[i]->finish();
      if (status.is_ok()) continue;
      ++failed;
      EXPECT_EQ(i, (n - 1) / 2) << n;
      EXPECT_EQ(status.code(), Code::space) << n;
      EXPECT_NE(status.text().find(path), std::string::npos) << status.text();
      EXPECT_TRUE(round(0, texts[i]).is_ok()) << n;
    }
    EXPECT_EQ(failed, 1) << n;
    std::string expected(53, '\0');
    for (const auto& each : texts)
      for (const auto& [offset, text] : each) expected.replace(static_cast<std::size_t>(offset), 3, text);
    EXPECT_EQ(contents(), expected) << n;
  }
}

TEST_P(WriterConformance, a_failed_sync_stays_failed_until_the_file_is_opened_anew) {
  ASSERT_TRUE(round(0, {{0, "abc"}}).is_ok());
  target->restart({1, Fault::io_error, set_of(Call::sync)});
  EXPECT_EQ(writer->sync().code(), Code::io);
  EXPECT_EQ(writer->sync().code(), Code::io) << "bytes that were lost once do not come back";
  EXPECT_TRUE(round(1, {{3, "def"}}).is_ok());
  EXPECT_EQ(writer->sync().code(), Code::io);
  static_cast<void>(writer->close());
  writer = make();
  EXPECT_TRUE(round(1, {{3, "def"}}).is_ok());
  EXPECT_TRUE(writer->sync().is_ok());
}

TEST_P(WriterConformance, a_close_that_fails_is_told) {
  ASSERT_TRUE(round(0, {{0, "abc"}}).is_ok());
  target->restart({1, Fault::io_error, set_of(Call::close)});
  EXPECT_EQ(writer->close().code(), Code::io);
}

TEST_P(WriterConformance, a_closed_writer_refuses_every_call) {
  ASSERT_TRUE(writer->close().is_ok());
  EXPECT_EQ(round(0, {{0, "abc"}}).code(), Code::state);
  EXPECT_EQ(writer->sync().code(), Code::state);
  EXPECT_EQ(writer->close().code(), Code::state);
  EXPECT_EQ(contents(), "");
}

INSTANTIATE_TEST_SUITE_P(every_writer, WriterConformance, testing::ValuesIn(candidates()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tailrace::storage
