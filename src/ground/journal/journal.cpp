// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/journal.hpp"

#include <algorithm>
#include <filesystem>

#include "ground/base/text.hpp"
#include "ground/storage/identity.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::journal {

namespace {

/// The largest record in bytes. Its bytes are held in memory.
constexpr Bytes kept_at_once = Bytes{4} << 20;
/// Keeps more bytes than asked for: as many as were kept already, between these limits. A file that is
/// rewritten from its beginning then costs few synchronisations. A file in which a number is changed now and
/// then costs little room.
constexpr Bytes least_ahead = Bytes{64} << 10;
constexpr Bytes most_ahead = Bytes{16} << 20;
/// The most bytes that one call keeps before it seals: each record that is not sealed takes memory.
constexpr Bytes most_unsealed = Bytes{1} << 30;

}  // namespace

void Journal::begin(std::int64_t generation, std::span<const Position> positions) {
  const std::lock_guard lock(mutex_);
  generation_ = generation;
  for (const auto& [path, kept] : files_) {
    const std::lock_guard kept_lock(kept->mutex);
    kept->generation = generation_;
    kept->ranges.clear();
    kept->bytes = 0;
    kept->sidecar = false;
    kept->writer.reset();
  }
  for (const Position& each : positions) {
    std::shared_ptr<Kept>& kept = files_[storage::tidy_path(each.path)];
    if (kept == nullptr) kept = std::make_shared<Kept>();
    const std::lock_guard kept_lock(kept->mutex);
    kept->generation = generation_;
    kept->size = std::max(kept->size, each.size);
  }
}

std::shared_ptr<Journal::Kept> Journal::find(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(storage::tidy_path(path));
  return found == files_.end() ? nullptr : found->second;
}

bool Journal::has(const std::string& path) const {
  const std::shared_ptr<Kept> kept = find(path);
  if (kept == nullptr) return false;
  const std::lock_guard lock(kept->mutex);
  return kept->size > 0;
}

Status Journal::add(Kept& kept, const std::string& path, UndoRecord::What what, Bytes offset,
                    std::span<const std::byte> bytes) const {
  if (kept.writer == nullptr) {
    Result<std::unique_ptr<UndoWriter>> made =
        UndoWriter::create(target_, name_, kept.generation, path, {0, 1}, kept.rights);
    TR_TRY(made.status());
    kept.writer = std::move(*made);
  }
  return kept.writer->add(what, offset, bytes);
}

Status Journal::keep_range(Kept& kept, const std::string& path, storage::File& file, Bytes begin,
                           Bytes end) const {
  ByteVector buffer(static_cast<std::size_t>(std::min(kept_at_once, end - begin)));
  for (Bytes at = begin; at < end; at += kept_at_once) {
    const Bytes wanted = std::min(kept_at_once, end - at);
    const Result<Bytes> got = file.read(std::span(buffer).first(static_cast<std::size_t>(wanted)), at);
    TR_TRY(got.status());
    if (*got > 0)
      TR_TRY(add(kept, path, UndoRecord::What::bytes, at,
                 std::span(buffer).first(static_cast<std::size_t>(*got))));
    // The file was cut, and the bytes behind its end were kept at that time.
    if (*got < wanted) break;
  }
  return {};
}

/// Adds records by `add`, and makes them durable. After a failure the next record goes to a new undo file,
/// not behind a torn record.
template <typename Add>
Status Journal::seal(Kept& kept, const Add& add) {
  const Status status = guarded([&]() -> Status {
    TR_TRY(add());
    return kept.writer == nullptr ? Status() : kept.writer->seal();
  });
  if (status.is_ok() || kept.writer == nullptr) return status;
  kept.writer->take_back();
  kept.writer.reset();
  return status;
}

Status Journal::keep(const std::string& path, storage::File& file, Bytes offset, Bytes bytes) {
  const std::shared_ptr<Kept> found = find(path);
  if (found == nullptr) return {};
  Kept& kept = *found;
  const std::lock_guard lock(kept.mutex);
  const Bytes asked = offset < kept.size ? offset + std::min(bytes, kept.size - offset) : offset;
  for (Bytes from = offset; from < asked; from += most_unsealed)
    TR_TRY(keep_part(kept, path, file, from, from + std::min(asked - from, most_unsealed)));
  return {};
}

/// Keeps the bytes from `offset` to `asked`, and some more behind them. The caller has the lock.
Status Journal::keep_part(Kept& kept, const std::string& path, storage::File& file, Bytes offset,
                          Bytes asked) const {
  if (kept.ranges.gaps(offset, asked).empty()) return {};
  const Bytes ahead = std::clamp(kept.bytes, least_ahead, most_ahead);
  const Bytes end = std::min(std::max(asked, offset + ahead), kept.size);
  const auto to_keep = kept.ranges.gaps(offset, end);
  if (kept.writer == nullptr) kept.rights = file.rights();
  const Status status = seal(kept, [&]() -> Status {
    for (const auto& [from, to] : to_keep) TR_TRY(keep_range(kept, path, file, from, to));
    return {};
  });
  if (!status.is_ok())
    return status.in(
        cat("what ", path, " holds has to be kept for checkpoint ", name_, " before it is written over"));
  for (const auto& [from, to] : to_keep) {
    kept.ranges.add(from, to);
    kept.bytes += to - from;
  }
  return {};
}

Status Journal::keep_sidecar(const std::string& path, const std::string& text) {
  const std::shared_ptr<Kept> found = find(path);
  if (found == nullptr) return {};
  Kept& kept = *found;
  const std::lock_guard lock(kept.mutex);
  // In a file that only grows the old bytes stay, and the old sidecar need not be kept.
  if (kept.ranges.empty() || kept.sidecar) return {};
  const Status status = seal(
      kept, [&] { return add(kept, path, UndoRecord::What::sidecar, 0, std::as_bytes(std::span(text))); });
  kept.sidecar = status.is_ok();
  return status;
}

Journal& Journals::of(storage::Target& target, const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Journal>& journal = journals_[name];
  if (journal == nullptr) journal = std::make_shared<Journal>(target, name);
  any_ = true;
  return *journal;
}

std::vector<std::shared_ptr<Journal>> Journals::all() const {
  std::vector<std::shared_ptr<Journal>> list;
  if (!any_) return list;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, journal] : journals_) list.push_back(journal);
  return list;
}

bool Journals::has(const std::string& path) const {
  return std::ranges::any_of(all(), [&](const auto& journal) { return journal->has(path); });
}

Status Journals::keep(const std::string& path, storage::File& file, Bytes offset, Bytes bytes) {
  for (const auto& journal : all()) TR_TRY(journal->keep(path, file, offset, bytes));
  return {};
}

std::string name_behind_links(storage::Target& target, const std::string& path) {
  // Not tidied before: the ".." of "link/../file" belongs to the directory behind the link.
  const std::filesystem::path name = target.behind_links(path);
  const Result<std::string> directory =
      storage::whole_path(name.has_parent_path() ? name.parent_path().string() : ".");
  // A target that is no file system has no links.
  if (!directory.is_ok()) return storage::tidy_path(name.string());
  return storage::tidy_path(cat(*directory, "/", name.filename().string()));
}

std::shared_ptr<void> Journals::note_shared(storage::Target& target, const std::string& path, bool tells) {
  const std::string name = name_behind_links(target, path);
  const std::lock_guard lock(mutex_);
  const auto noted = shared_.emplace(name, tells);
  return {this, [noted](void* journals) {
            auto* const of = static_cast<Journals*>(journals);
            const std::lock_guard lock(of->mutex_);
            of->shared_.erase(noted);
          }};
}

bool Journals::is_shared(storage::Target& target, const std::string& path) const {
  const auto is_any = [this] {
    const std::lock_guard lock(mutex_);
    return !shared_.empty();
  };
  if (!is_any()) return false;
  const std::string name = name_behind_links(target, path);  // asks storage, so without the lock
  const std::lock_guard lock(mutex_);
  return shared_.contains(name);
}

std::vector<std::string> Journals::told_shared() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> told;
  for (const auto& [path, tells] : shared_) {
    if (tells) told.push_back(path);
  }
  return told;
}

Status Journals::keep_sidecar(const std::string& path, const std::string& text) {
  for (const auto& journal : all()) TR_TRY(journal->keep_sidecar(path, text));
  return {};
}

}  // namespace tailrace::journal
