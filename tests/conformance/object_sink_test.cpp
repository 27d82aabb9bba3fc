// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "sinks/sink.hpp"
#include "storage/crash.hpp"
#include "storage/faulty.hpp"
#include "storage/scratch.hpp"

namespace tailrace::sinks {
namespace {

using storage::bytes_of;
using storage::changing_calls;
using storage::crash_target;
using storage::CrashPolicy;
using storage::Fault;
using storage::faulty_target;
using storage::memory_target;
using storage::posix_target;
using storage::ScratchDirectory;
using storage::Target;
using storage::text_of;

struct Candidate {
  std::string name;
  std::unique_ptr<ObjectSink> (*make)(const ScratchDirectory& scratch);
};

class ObjectSinkConformance : public testing::TestWithParam<Candidate> {
 protected:
  ScratchDirectory scratch;
  std::unique_ptr<ObjectSink> sink = GetParam().make(scratch);

  std::string get(const std::string& key) {
    const auto bytes = sink->get(key);
    return bytes.is_ok() ? text_of(*bytes) : "error: " + bytes.status().text();
  }
};

TEST_P(ObjectSinkConformance, an_object_is_there_once_put) {
  ASSERT_TRUE(sink->put("t/c/0/1", bytes_of("chunk")).is_ok());
  EXPECT_EQ(get("t/c/0/1"), "chunk");
  ASSERT_TRUE(sink->put("empty", {}).is_ok());
  EXPECT_EQ(get("empty"), "");
  EXPECT_TRUE(sink->commit().is_ok());
}

TEST_P(ObjectSinkConformance, putting_again_replaces_the_whole_object) {
  ASSERT_TRUE(sink->put("a", bytes_of("a long one")).is_ok());
  ASSERT_TRUE(sink->put("a", bytes_of("short")).is_ok());
  EXPECT_EQ(get("a"), "short");
}

TEST_P(ObjectSinkConformance, a_missing_object_is_ENOENT_and_named) {
  const auto bytes = sink->get("nothing");
  ASSERT_FALSE(bytes.is_ok());
  EXPECT_EQ(bytes.status().error_number(), ENOENT);
  EXPECT_NE(bytes.status().text().find("nothing"), std::string::npos) << bytes.status().text();
}

TEST_P(ObjectSinkConformance, metadata_appears_with_the_commit_and_not_before) {
  ASSERT_TRUE(sink->put("c/0", bytes_of("data")).is_ok());
  ASSERT_TRUE(sink->put_metadata("zarr.json", bytes_of("first")).is_ok());
  EXPECT_EQ(sink->get("zarr.json").status().error_number(), ENOENT);
  ASSERT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(get("zarr.json"), "first");
  ASSERT_TRUE(sink->put_metadata("zarr.json", bytes_of("second")).is_ok());
  ASSERT_TRUE(sink->put_metadata("zarr.json", bytes_of("third")).is_ok());
  EXPECT_EQ(get("zarr.json"), "first");
  ASSERT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(get("zarr.json"), "third");
}

TEST_P(ObjectSinkConformance, keys_are_complete_and_sorted) {
  EXPECT_EQ(*sink->keys(), std::vector<std::string>{});
  for (const char* key : {"t/c/1", "t/c/0", "zarr.json", ".zgroup", "u"}) {
    ASSERT_TRUE(sink->put(key, bytes_of(key)).is_ok());
  }
  EXPECT_EQ(*sink->keys(), (std::vector<std::string>{".zgroup", "t/c/0", "t/c/1", "u", "zarr.json"}));
}

TEST_P(ObjectSinkConformance, keys_that_could_lead_elsewhere_are_refused) {
  for (const char* key : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "a.tailrace-tmp"}) {
    EXPECT_EQ(sink->put(key, bytes_of("x")).code(), Code::argument) << key;
    EXPECT_EQ(sink->put_metadata(key, bytes_of("x")).code(), Code::argument) << key;
    EXPECT_EQ(sink->get(key).status().code(), Code::argument) << key;
  }
  EXPECT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(*sink->keys(), std::vector<std::string>{});
}

TEST_P(ObjectSinkConformance, a_failed_put_fails_the_commit_once_and_keeps_the_old_metadata) {
  ASSERT_TRUE(sink->put_metadata("meta", bytes_of("old")).is_ok());
  ASSERT_TRUE(sink->put("a", bytes_of("object")).is_ok());
  ASSERT_TRUE(sink->commit().is_ok());
  const Status failed = sink->put("a/below", bytes_of("x"));
  ASSERT_FALSE(failed.is_ok());
  ASSERT_TRUE(sink->put_metadata("meta", bytes_of("new")).is_ok());
  EXPECT_EQ(sink->commit().text(), failed.text());
  EXPECT_EQ(get("meta"), "old");
  EXPECT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(get("meta"), "old");
}

TEST_P(ObjectSinkConformance, no_key_is_the_directory_of_another) {
  ASSERT_TRUE(sink->put("t/c/0", bytes_of("x")).is_ok());
  EXPECT_FALSE(sink->put("t/c", bytes_of("x")).is_ok());
  EXPECT_FALSE(sink->put("t/c/0/1", bytes_of("x")).is_ok());
  EXPECT_EQ(*sink->keys(), std::vector<std::string>{"t/c/0"});
}

TEST_P(ObjectSinkConformance, threads_put_side_by_side) {
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string key = "c/" + std::to_string(i % 3) + "/" + std::to_string(i * 4 + t);
        if (!sink->put(key, bytes_of(key)).is_ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  ASSERT_TRUE(sink->commit().is_ok());
  const auto keys = sink->keys();
  ASSERT_EQ(keys->size(), 80u);
  for (const std::string& key : *keys) EXPECT_EQ(get(key), key);
}

INSTANTIATE_TEST_SUITE_P(every_object_sink, ObjectSinkConformance,
                         testing::Values(Candidate{"memory",
                                                   [](const ScratchDirectory&) { return memory_objects(); }},
                                         Candidate{"on_memory",
                                                   [](const ScratchDirectory&) {
                                                     return target_objects(memory_target(), "/x/store");
                                                   }},
                                         Candidate{"on_posix",
                                                   [](const ScratchDirectory& scratch) {
                                                     return target_objects(posix_target(), scratch / "store");
                                                   }}),
                         [](const auto& instance) { return instance.param.name; });

// Only objects on a target promise the following.

/// Puts two objects and the metadata that makes them one version.
Status save(ObjectSink& sink, const std::string& version) {
  TR_TRY(sink.put("c/0", bytes_of(version + " zero")));
  TR_TRY(sink.put("c/1", bytes_of(version + " one")));
  TR_TRY(sink.put_metadata("meta/" + version, bytes_of(version)));
  TR_TRY(sink.put_metadata("latest", bytes_of(version)));
  return sink.commit();
}

void expect_whole_version(Target& disk, const Status& saved) {
  const auto sink = target_objects(std::shared_ptr<Target>(&disk, [](Target*) {}), "/store");
  const auto latest = sink->get("latest");
  ASSERT_TRUE(latest.is_ok()) << latest.status().text();
  const std::string version = text_of(*latest);
  EXPECT_TRUE(version == "old" || version == "new") << version;
  if (saved.is_ok()) EXPECT_EQ(version, "new");
  // An object may be newer than the metadata, never older, and never half.
  for (const auto& [key, rest] : {std::pair{"c/0", " zero"}, std::pair{"c/1", " one"}}) {
    const auto object = sink->get(key);
    ASSERT_TRUE(object.is_ok()) << object.status().text();
    const std::string text = text_of(*object);
    EXPECT_TRUE(text == std::string("new") + rest || (version == "old" && text == std::string("old") + rest))
        << text;
  }
  if (version == "new") EXPECT_TRUE(sink->get("meta/new").is_ok());
}

TEST(objects_on_a_target, survive_a_failure_of_any_call_and_a_loss_of_power_after_it) {
  for (std::int64_t n = 1;; ++n) {
    const auto disk = crash_target();
    ASSERT_TRUE(save(*target_objects(disk, "/store"), "old").is_ok());
    const auto faulty = faulty_target(disk, {n, Fault::io_error, changing_calls, true});
    const Status saved = save(*target_objects(faulty, "/store"), "new");
    EXPECT_EQ(saved.is_ok(), !faulty->fired()) << "call " << n << ": " << saved.text();
    for (const auto writes :
         {CrashPolicy::Writes::dropped, CrashPolicy::Writes::kept, CrashPolicy::Writes::garbage}) {
      for (const auto entries :
           {CrashPolicy::Entries::lost, CrashPolicy::Entries::kept, CrashPolicy::Entries::some}) {
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
          SCOPED_TRACE(testing::Message() << "call " << n << " seed " << seed);
          expect_whole_version(*disk->crash({writes, entries}, seed), saved);
        }
      }
    }
    if (!faulty->fired()) break;
    ASSERT_LT(n, 1000);
  }
}

TEST(objects_on_a_target, temporary_files_of_a_killed_run_are_no_objects) {
  const auto disk = memory_target();
  ASSERT_TRUE(disk->make_directories("/store").is_ok());
  ASSERT_TRUE(put_file(*disk, "/store/a.tailrace-tmp", "half").is_ok());
  const auto sink = target_objects(disk, "/store/");
  EXPECT_EQ(*sink->keys(), std::vector<std::string>{});
  ASSERT_TRUE(sink->put("a", bytes_of("whole")).is_ok());
  EXPECT_EQ(*disk->list("/store"), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace tailrace::sinks
