// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "resume_samples.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "faces/streams/definition/parse.hpp"
#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/files/manifest.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "index_samples.hpp"

namespace tailrace::streams {
namespace {

const std::string kPattern = "out/fc_{valid:%Y%m%d}.raw";
const std::string kOptions = "base=2026-03-01 ready=.ready";

/// Returns the bytes of a step. With `other` the length differs, too, so that later steps have other places
/// than those that they replace.
ByteVector random_bytes(int step, bool other) {
  ByteVector bytes(static_cast<std::size_t>(700 + 130 * step + (other ? 77 : 0)));
  std::mt19937_64 random(static_cast<std::uint64_t>(step * 2 + (other ? 1 : 0)));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

const ByteVector& bytes_of(int step, bool other) {
  static std::map<std::pair<int, bool>, ByteVector> made;
  ByteVector& bytes = made[{step, other}];
  if (bytes.empty()) bytes = random_bytes(step, other);
  return bytes;
}

/// Repeats the part of pipeline::StreamRoot that decides in which order a ledger's calls come.
class Root {
 public:
  Root(std::shared_ptr<storage::Target> target, const Plan& run, const std::vector<LeftBehind>& left_behind)
      : target_(std::move(target)),
        run_(run),
        ledger_(make_sample_ledger(target_, run.from, run.field, run.options, {}, left_behind)) {
    before_ = ledger_->left_open();
    if (before_.empty()) return;
    current_ = before_.back();
    before_.pop_back();
  }

  Status put(int step) {
    TR_TRY(finish_before());
    const std::int64_t lead = lead_of(step, run_.per_day);
    const Result<std::string> path = ledger_->path_of(lead);
    TR_TRY(path.status());
    const bool rolls = *path != current_;
    const bool left_open = !current_.empty() && begun_.path.empty();
    if (rolls && !current_.empty() && (left_open || !run_.ahead)) TR_TRY(finish_file(current_));
    if (rolls || begun_.path.empty()) {
      const Result<pipeline::Begun> begun = ledger_->begin_file(*path, lead, 1);
      TR_TRY(begun.status());
      begun_ = *begun;
    }
    const bool other =
        run_.others.empty() ? step >= run_.differs_from : run_.others[static_cast<std::size_t>(step)];
    const ByteVector& bytes = bytes_of(step, other);
    TR_TRY(write(bytes));
    if (rolls && !current_.empty() && !left_open && run_.ahead) TR_TRY(finish_file(current_));
    current_ = *path;
    pipeline::StepEntry entry;
    entry.step = step;
    entry.lead = lead;
    entry.path = *path;
    entry.begin = begun_.end;
    entry.end = begun_.end + static_cast<Bytes>(bytes.size());
    entry.records = {{0, 0, entry.begin, entry.end - entry.begin}};
    TR_TRY(ledger_->commit(entry));
    begun_.end = entry.end;
    return {};
  }

  Status finish() {
    TR_TRY(finish_before());
    return current_.empty() ? Status() : finish_file(current_);
  }

 private:
  Status finish_before() {
    for (const std::string& path : std::exchange(before_, {})) TR_TRY(finish_file(path));
    return {};
  }

  Status finish_file(const std::string& path) {
    TR_TRY(ledger_->finish_file(path));
    return ledger_->announce(path);
  }

  Status write(const ByteVector& bytes) {
    Result<std::unique_ptr<storage::File>> file = target_->open(begun_.path, storage::OpenMode::existing);
    TR_TRY(file.status());
    TR_TRY((*file)->write(bytes, begun_.end));
    TR_TRY((*file)->sync());
    return (*file)->close();
  }

  std::shared_ptr<storage::Target> target_;
  const Plan& run_;
  std::unique_ptr<pipeline::Ledger> ledger_;
  std::vector<std::string> before_;
  std::string current_;
  pipeline::Begun begun_;
};

}  // namespace

std::int64_t lead_of(int step, int per_day) { return step * std::int64_t{86400} / per_day; }
std::string path_of(int step, int per_day) { return cat("out/fc_2026030", step / per_day + 1, ".raw"); }

Position position_behind(int steps, int per_day) {
  Position position;
  position.pattern = kPattern;
  position.run = sample_header().run;
  position.steps = steps;
  if (steps > 0) position.lead = position.put_lead = lead_of(steps - 1, per_day);
  return position;
}

std::shared_ptr<storage::CrashTarget> make_disk() {
  auto disk = std::make_shared<storage::CrashTarget>();
  EXPECT_TRUE(disk->make_directories("out").is_ok());
  return disk;
}

std::unique_ptr<pipeline::Ledger> make_sample_ledger(std::shared_ptr<storage::Target> target,
                                                     const std::optional<Position>& from,
                                                     const std::string& field, const std::string& more,
                                                     std::optional<int> decided,
                                                     const std::vector<LeftBehind>& left_behind) {
  const bool has_format = more.find("format=") != std::string::npos;
  const std::string options = cat(kOptions, has_format ? " " : " format=raw ", more);
  static std::deque<pipeline::Opening> openings;  // each must outlive its ledger
  pipeline::Opening& opening = openings.emplace_back();
  opening.definition = parse_stream(kPattern, options)->definition;
  opening.fields.emplace_back();
  opening.fields.back().name = field;
  opening.fields.back().shape = {3, 5};
  const std::unique_ptr<codec::Codec> codec = *formats::make_codec(opening.definition);
  EXPECT_TRUE(codec->define(opening.fields.back()).is_ok());
  opening.prepared = {codec->prepared(0)};
  opening.ledger = pack_ledger(kPattern, options, from ? from->run : sample_header().run, from, left_behind);
  opening.is_taken_over = decided.has_value();
  opening.first_step = decided.value_or(0);
  if (opening.first_step > 0) opening.previous_lead = lead_of(*decided - 1);
  Result<std::unique_ptr<pipeline::Ledger>> ledger =
      make_ledger(opening, **opening.codec(), std::move(target));
  EXPECT_TRUE(ledger.is_ok()) << ledger.status().text();
  return std::move(*ledger);
}

Outcome forecast(const std::shared_ptr<storage::Target>& target, const Plan& run) {
  Outcome outcome;
  std::vector<LeftBehind> left_behind;
  LastFile last;
  if (run.looks_behind)
    outcome.status = find_left_behind(
        *target, *parse_stream(kPattern, cat(kOptions, " format=raw ", run.options)), left_behind, last);
  if (!outcome.status.is_ok()) return outcome;
  Root root(target, run, left_behind);
  for (int step = run.from ? static_cast<int>(run.from->steps) : run.first; step < run.until; ++step) {
    outcome.status = root.put(step);
    if (!outcome.status.is_ok()) return outcome;
    outcome.durable.push_back(position_behind(step + 1, run.per_day));
  }
  if (!run.stays_open || run.finishes) outcome.status = root.finish();
  return outcome;
}

std::map<std::string, ByteVector> files_of(storage::Target& target) {
  std::map<std::string, ByteVector> found;
  const auto names = target.list("out");
  for (const std::string& name : *names) {
    if (name != "manifest.jsonl") found["out/" + name] = get_bytes(target, "out/" + name);
  }
  return found;
}

const std::map<std::string, ByteVector>& truth() {
  static const std::map<std::string, ByteVector> files = [] {
    const auto disk = make_disk();
    EXPECT_TRUE(forecast(disk, {}).status.is_ok());
    auto found = files_of(*disk);
    EXPECT_EQ(found.size(), 9U);
    return found;
  }();
  return files;
}

void expect_truth(storage::Target& target, const std::string& what) { expect_files(target, truth(), what); }

void expect_files(storage::Target& target, const std::map<std::string, ByteVector>& expected,
                  const std::string& what) {
  const auto there = files_of(target);
  const auto names = [](const std::map<std::string, ByteVector>& files) {
    std::vector<std::string> paths;
    for (const auto& [path, bytes] : files) paths.push_back(path);
    return paths;
  };
  ASSERT_EQ(names(there), names(expected)) << what;
  for (const auto& [path, bytes] : expected) ASSERT_TRUE(there.at(path) == bytes) << what << ": " << path;
#if TAILRACE_HAVE_JSON
  const Result<std::vector<ManifestEntry>> manifest = read_manifest(target, "out/manifest.jsonl");
  ASSERT_TRUE(manifest.is_ok()) << what << ": " << manifest.status().text();
  for (const auto& [path, bytes] : expected) {
    if (!path.ends_with(".raw")) continue;
    ManifestEntry wanted = manifest_entry(path, *load_index(target, index_path(path)));
    wanted.size = std::ssize(bytes);  // includes the ending in formats that have one
    wanted.digest = *digest_file(target, path);
    ManifestEntry last;
    for (const ManifestEntry& entry : *manifest) {
      if (entry.path == wanted.path) last = entry;
    }
    ASSERT_EQ(last, wanted) << what << ": " << wanted.path;
  }
#endif
}

}  // namespace tailrace::streams
