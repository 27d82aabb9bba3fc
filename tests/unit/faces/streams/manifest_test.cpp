// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/files/manifest.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "ground/storage/faulty.hpp"
#include "index_samples.hpp"
#include "support/crash.hpp"

namespace tailrace::streams {
namespace {

using storage::FaultPlan;
using storage::Target;

const std::string kPath = "manifest.jsonl";

ManifestEntry sample_entry(int number) {
  ManifestEntry entry;
  entry.path = "fc+" + std::to_string(number) + ".grib2";
  entry.size = (Bytes{5} << 32) + number;
  entry.digest = "99aa06d3014798d86001c324468d497f";
  entry.run = *Uuid::parse("123e4567-e89b-42d3-a456-426614174000");
  entry.base = "2026-03-01T00:00:00Z";
  entry.leads = {0, number * 3600};
  entry.records = 202;
  return entry;
}

std::string text_of(Target& target, const std::string& path) {
  const ByteVector bytes = get_bytes(target, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(manifest, lies_beside_the_files) {
  EXPECT_EQ(manifest_path("out/a/fc.grib2"), "out/a/manifest.jsonl");
  EXPECT_EQ(manifest_path("fc.grib2"), "manifest.jsonl");
  EXPECT_EQ(manifest_path("/fc.grib2"), "/manifest.jsonl");
}

TEST(manifest, an_entry_is_made_from_the_index) {
  const Result<IndexContents> contents = decode_index(encode_index(sample_header(), sample_steps(3)));
  const ManifestEntry entry = manifest_entry("out/fc.grib2", *contents);
  EXPECT_EQ(entry.path, "fc.grib2");
  EXPECT_EQ(entry.size, 3 * kSampleStepBytes);
  EXPECT_EQ(entry.leads, (std::vector<std::int64_t>{0, 10800, 21600}));
  EXPECT_EQ(entry.records, 12);
  EXPECT_EQ(entry.base, "2026-03-01T00:00:00Z");
  EXPECT_EQ(entry.run, sample_header().run);
}

TEST(manifest, digests_do_not_depend_on_the_pieces_read) {
  const auto target = storage::memory_target();
  put_bytes(*target, "empty", {});
  EXPECT_EQ(*digest_file(*target, "empty"), "99aa06d3014798d86001c324468d497f");
  put_bytes(*target, "abc", std::as_bytes(std::span(std::string_view("abc"))));
  EXPECT_EQ(*digest_file(*target, "abc"), "06b05ab6733a618578af5f94892f3950");
  ByteVector exact(std::size_t{8} << 20, std::byte{3});
  put_bytes(*target, "exact", exact);
  EXPECT_TRUE(digest_file(*target, "exact").is_ok());
  EXPECT_FALSE(digest_file(*target, "missing").is_ok());
}

TEST(ready_marker, is_made_and_taken_away) {
  const auto target = storage::memory_target();
  EXPECT_TRUE(remove_ready_marker(*target, "fc", ".ready").is_ok());
  EXPECT_TRUE(create_ready_marker(*target, "fc", ".ready").is_ok());
  EXPECT_EQ(size_of_file(*target, "fc.ready"), 0);
  EXPECT_TRUE(create_ready_marker(*target, "fc", ".ready").is_ok());
  EXPECT_TRUE(remove_ready_marker(*target, "fc", ".ready").is_ok());
  EXPECT_FALSE(*target->exists("fc.ready"));
}

TEST(ready_marker, survives_the_loss_of_power_once_made) {
  const auto disk = std::make_shared<storage::CrashTarget>();
  ASSERT_TRUE(disk->make_directories("out").is_ok());
  ASSERT_TRUE(create_ready_marker(*disk, "out/fc", ".ready").is_ok());
  EXPECT_TRUE(*disk->crash({}, 1)->exists("out/fc.ready"));
  ASSERT_TRUE(remove_ready_marker(*disk, "out/fc", ".ready").is_ok());
  EXPECT_FALSE(*disk->crash({}, 1)->exists("out/fc.ready"));
}

#if TAILRACE_HAVE_JSON

TEST(manifest, has_one_line_of_json_for_each_file) {
  const auto target = storage::memory_target();
  EXPECT_FALSE(*target->exists(kPath));
  ASSERT_TRUE(append_to_manifest(*target, kPath, sample_entry(6)).is_ok());
  EXPECT_EQ(text_of(*target, kPath),
            "{\"path\":\"fc+6.grib2\",\"size\":21474836486,\"xxh3_128\":\"99aa06d3014798d86001c324468d497f\","
            "\"run\":\"123e4567-e89b-42d3-a456-426614174000\",\"base\":\"2026-03-01T00:00:00Z\",\"leads\":[0,"
            "21600],"
            "\"records\":202}\n");
  ASSERT_TRUE(append_to_manifest(*target, kPath, sample_entry(9)).is_ok());
  const auto entries = read_manifest(*target, kPath);
  ASSERT_TRUE(entries.is_ok()) << entries.status().text();
  EXPECT_EQ(*entries, (std::vector<ManifestEntry>{sample_entry(6), sample_entry(9)}));
}

TEST(manifest, names_that_json_must_escape_read_back) {
  const auto target = storage::memory_target();
  ManifestEntry entry = sample_entry(0);
  entry.path = "a\"b\\c\nd\tä";
  ASSERT_TRUE(append_to_manifest(*target, kPath, entry).is_ok());
  EXPECT_EQ((*read_manifest(*target, kPath))[0].path, entry.path);
  entry.path = "no utf-8: \xff";
  ASSERT_TRUE(append_to_manifest(*target, kPath, entry).is_ok());
  EXPECT_EQ(read_manifest(*target, kPath)->size(), 2U);
}

TEST(manifest, an_unfinished_last_line_is_passed_over_and_cut_by_the_next_append) {
  const auto target = storage::memory_target();
  ASSERT_TRUE(append_to_manifest(*target, kPath, sample_entry(1)).is_ok());
  const std::string line = text_of(*target, kPath);
  for (const std::string& unfinished :
       {std::string(1, '{'), line.substr(0, line.size() - 1), line.substr(0, 30) + "\n",
        std::string("{\"path\":\"") + std::string(200'000, 'x'), std::string(400, '\0'),
        line.substr(0, 20) + std::string(100, '\0')}) {
    std::string text = line + unfinished;
    put_bytes(*target, kPath, std::as_bytes(std::span(text)));
    EXPECT_EQ(read_manifest(*target, kPath)->size(), 1U);
    ASSERT_TRUE(append_to_manifest(*target, kPath, sample_entry(2)).is_ok());
    EXPECT_EQ(*read_manifest(*target, kPath), (std::vector<ManifestEntry>{sample_entry(1), sample_entry(2)}));
  }
  put_bytes(*target, kPath, std::as_bytes(std::span(line).first(40)));
  ASSERT_TRUE(append_to_manifest(*target, kPath, sample_entry(3)).is_ok());
  EXPECT_EQ(*read_manifest(*target, kPath), (std::vector<ManifestEntry>{sample_entry(3)}));
}

TEST(manifest, of_somebody_else_is_refused_and_stays_as_it_is) {
  const auto target = storage::memory_target();
  ASSERT_TRUE(append_to_manifest(*target, kPath, sample_entry(1)).is_ok());
  const std::string line = text_of(*target, kPath);
  EXPECT_TRUE(check_manifest(*target, kPath).is_ok());
  EXPECT_TRUE(check_manifest(*target, "none/manifest.jsonl").is_ok());
  for (const std::string& foreign :
       {std::string("no newline at all"), std::string("line one\nmy precious notes\n"),
        std::string("{\"name\":\"of another tool\"}\n"), std::string("{\"name\":1}\nand a note\n"),
        std::string("[1, 2]\n") + line.substr(0, 30), line + "my precious notes\n", line + "no newline"}) {
    put_bytes(*target, kPath, std::as_bytes(std::span(foreign)));
    for (const Status& status :
         {check_manifest(*target, kPath), append_to_manifest(*target, kPath, sample_entry(2))}) {
      EXPECT_EQ(status.code(), Code::state) << foreign;
      EXPECT_TRUE(mentions(status.text(), "manifest=off")) << status.text();
    }
    EXPECT_EQ(text_of(*target, kPath), foreign);
  }
}

/// Everybody can know these names before the files are there.
TEST(manifest, and_markers_follow_no_link) {
  std::string name = (std::filesystem::temp_directory_path() / "tailrace-links-XXXXXX").string();
  const std::string directory = ::mkdtemp(name.data());
  const auto target = storage::posix_target();
  for (const bool there : {false, true}) {
    for (const char* const link : {"/manifest.jsonl", "/fc.ready"})
      std::filesystem::create_symlink(directory + "/victim", directory + link);
    if (there) put_bytes(*target, directory + "/victim", {});
    const Status appended = append_to_manifest(*target, directory + "/manifest.jsonl", sample_entry(1));
    EXPECT_TRUE(mentions(appended.text(), "it is a link")) << appended.text();
    const Status marked = create_ready_marker(*target, directory + "/fc", ".ready");
    EXPECT_TRUE(mentions(marked.text(), "it is a link")) << marked.text();
    EXPECT_EQ(std::filesystem::exists(directory + "/victim"), there);
    if (there) EXPECT_EQ(size_of_file(*target, directory + "/victim"), 0);
    for (const char* const link : {"/manifest.jsonl", "/fc.ready"}) std::filesystem::remove(directory + link);
  }
  std::filesystem::remove_all(directory);
}

TEST(manifest, a_bad_line_in_the_middle_is_corrupt_with_its_number) {
  const auto target = storage::memory_target();
  ASSERT_TRUE(append_to_manifest(*target, kPath, sample_entry(1)).is_ok());
  const std::string good = text_of(*target, kPath);
  for (const std::string_view bad :
       {"{}", "[]", "nonsense", "", "{\"path\":1}", "{\"path\":\"x\",\"size\":\"1\"}"}) {
    const std::string text = good + std::string(bad) + "\n" + good;
    put_bytes(*target, kPath, std::as_bytes(std::span(text)));
    const Status status = read_manifest(*target, kPath).status();
    EXPECT_EQ(status.code(), Code::corrupt) << bad;
    EXPECT_TRUE(mentions(status.text(), "manifest.jsonl, line 2")) << status.text();
  }
}

/// A loss of power, or anybody, may leave the manifest sparse and far larger than memory.
TEST(manifest, of_100_gib_without_lines_is_refused_at_once_and_left_as_it_is) {
  constexpr Bytes size = Bytes{100} << 30;
  const auto target = storage::memory_target();
  ASSERT_TRUE(append_to_manifest(*target, kPath, sample_entry(1)).is_ok());
  const std::string line = text_of(*target, kPath);
  // Zeros stand behind a line; before one; between one and two.
  for (const std::vector<Bytes>& places :
       std::vector<std::vector<Bytes>>{{0}, {size}, {0, size, size + std::ssize(line)}}) {
    put_bytes(*target, kPath, {});
    const auto file = *target->open(kPath, storage::OpenMode::existing);
    for (const Bytes at : places) ASSERT_TRUE(file->write(std::as_bytes(std::span(line)), at).is_ok());
    if (places.back() == 0) ASSERT_TRUE(file->truncate(size).is_ok());
    const Bytes before = *file->size();
    const Status read = read_manifest(*target, kPath).status();
    EXPECT_EQ(read.code(), Code::corrupt) << read.text();
    EXPECT_TRUE(mentions(read.text(), "move it away")) << read.text();
    if (places.size() == 3) continue;  // there is a whole line behind which to go on
    EXPECT_EQ(append_to_manifest(*target, kPath, sample_entry(2)).code(), Code::corrupt);
    EXPECT_EQ(*file->size(), before);
  }
}

TEST(manifest, any_flipped_byte_is_an_error_or_whole_entries) {
  const auto target = storage::memory_target();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(append_to_manifest(*target, kPath, sample_entry(i)).is_ok());
  const ByteVector whole = get_bytes(*target, kPath);
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    ByteVector bytes = whole;
    bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % 2 == 0 ? bytes.size() : random() % bytes.size());
    put_bytes(*target, kPath, bytes);
    const auto entries = read_manifest(*target, kPath);
    if (entries.is_ok()) {
      EXPECT_LE(entries->size(), 3U);
    } else {
      EXPECT_EQ(entries.status().code(), Code::corrupt);
    }
  }
}

TEST(manifest, threads_that_append_at_once_all_get_their_line) {
  const auto target = storage::memory_target();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 10; ++i)
        EXPECT_TRUE(append_to_manifest(*target, kPath, sample_entry(thread * 10 + i)).is_ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_manifest(*target, kPath)->size(), 40U);
}

TEST(manifest, a_failed_call_loses_no_earlier_line) {
  for (std::int64_t n = 1;; ++n) {
    const auto below = storage::memory_target();
    ASSERT_TRUE(append_to_manifest(*below, kPath, sample_entry(1)).is_ok());
    const auto faulty =
        storage::faulty_target(below, FaultPlan{n, storage::Fault::io_error, storage::all_calls, false});
    const Status status = append_to_manifest(*faulty, kPath, sample_entry(2));
    ASSERT_EQ(status.is_ok(), !faulty->fired()) << n;
    const auto entries = read_manifest(*below, kPath);
    ASSERT_TRUE(entries.is_ok()) << n << ": " << entries.status().text();
    ASSERT_GE(entries->size(), status.is_ok() ? 2U : 1U);
    ASSERT_EQ((*entries)[0], sample_entry(1));
    if (!faulty->fired()) break;
  }
}

TEST(manifest, a_line_survives_the_loss_of_power_once_appended) {
  const auto disk = std::make_shared<storage::CrashTarget>();
  ASSERT_TRUE(disk->make_directories("out").is_ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(append_to_manifest(*disk, "out/manifest.jsonl", sample_entry(i)).is_ok());
    const auto entries = read_manifest(*disk->crash({}, 1), "out/manifest.jsonl");
    ASSERT_TRUE(entries.is_ok()) << entries.status().text();
    EXPECT_EQ(entries->size(), static_cast<std::size_t>(i + 1));
  }
}

#else

TEST(manifest, without_json_says_so_at_once) {
  const auto target = storage::memory_target();
  const Status status = append_to_manifest(*target, kPath, sample_entry(1));
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_TRUE(mentions(status.text(), "manifest=off")) << status.text();
}

#endif

}  // namespace
}  // namespace tailrace::streams
