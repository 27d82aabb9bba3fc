// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/committed_steps.hpp"

#include "formats/index/index.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::input {

namespace {

/// Reads an index, again if it changes meanwhile, at most 10 times. `stamp` is its identity, before and
/// after.
Result<streams::IndexContents> load_unchanged(storage::Target& target, const std::string& path,
                                              std::optional<storage::Identity>& stamp) {
  constexpr int most_tries = 10;
  for (int tries = 1;; ++tries) {
    Result<streams::IndexContents> contents = streams::load_index(target, path);
    Result<std::optional<storage::Identity>> now = stamp_of(target, path);
    TR_TRY(now.status());
    if (*now == stamp || tries == most_tries) return contents;
    stamp = *now;
    if (!stamp) return Status(Code::state, cat(path, ": was removed while it was read"));
  }
}

}  // namespace

/// Returns the identity of the file, or a checksum of its bytes if the target tells no identities.
Result<std::optional<storage::Identity>> stamp_of(storage::Target& target, const std::string& path) {
  if (const Result<storage::Identity> told = target.identity_of(path); told.is_ok())
    return std::optional(*told);
  const Result<std::optional<Bytes>> size = storage::size_if_there(target, path);
  TR_TRY(size.status());
  if (!*size) return std::optional<storage::Identity>();
  const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  ByteVector bytes(static_cast<std::size_t>(**size));
  const Result<Bytes> got = (*file)->read(bytes, 0);
  TR_TRY(got.status());
  storage::Identity stamp{.size = *got};
  stamp.inode = checksum(std::span(bytes).first(static_cast<std::size_t>(*got)));
  return std::optional(stamp);
}

Result<CommittedSteps> CommittedSteps::read(storage::Target& target, const std::string& data_path,
                                            const FilesDefinition& files) {
  CommittedSteps commits;
  const Result<std::string> path = streams::find_index(target, data_path);
  TR_TRY(path.status());
  commits.index_path_ = *path;
  Result<std::optional<storage::Identity>> stamp = stamp_of(target, *path);
  TR_TRY(stamp.status());
  commits.stamp_ = *stamp;
  if (!commits.stamp_) return commits;
  const bool shows_changes = storage::shows_changes(**stamp);
  Result<streams::IndexContents> contents = load_unchanged(target, *path, commits.stamp_);
  TR_TRY(contents.status());
  commits.shows_changes_ = shows_changes && commits.stamp_ == *stamp;
  const std::int64_t base = to_seconds(contents->header.base, contents->header.calendar);
  // If several steps have the same lead, the last one counts: readers take its records, too.
  for (std::size_t i = 0; i < contents->steps.size(); ++i) {
    const std::optional<std::int64_t> lead =
        files.lead_of(contents->header.time, base, contents->steps[i].lead);
    if (lead) commits.versions_[*lead] = contents->marks[i + 1].chain.previous;
  }
  return commits;
}

std::optional<std::uint64_t> CommittedSteps::version(std::int64_t lead) const {
  const auto found = versions_.find(lead);
  return found == versions_.end() ? std::nullopt : std::optional(found->second);
}

Result<bool> CommittedSteps::is_current(storage::Target& target) const {
  const Result<std::optional<storage::Identity>> now = stamp_of(target, index_path_);
  TR_TRY(now.status());
  return *now == stamp_ && shows_changes_;
}

}  // namespace tailrace::input
