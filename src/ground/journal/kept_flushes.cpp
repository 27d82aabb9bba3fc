// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/kept_flushes.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>

#include "ground/base/checksum.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/journal.hpp"
#include "ground/journal/sample.hpp"
#include "ground/storage/identity.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::journal {

namespace {

constexpr std::string_view kept_magic = "TRFKEPT1";
/// A longer file is not the library's, and must not make the reader allocate memory.
constexpr Bytes longest_kept_file = Bytes{16} << 20;
/// More ranges than this are not remembered. The oldest are those of copies that are long gone.
constexpr std::size_t most_gone = 64;

ByteVector encode_kept(const KeptFlushes& kept) {
  Packer out;
  for (const char letter : kept_magic) out.put(letter);
  out.put(kept.open).put(kept.last).put(kept.opens);
  out.put(static_cast<std::int64_t>(kept.claims.size()));
  for (const std::string& claim : kept.claims) out.put_text(claim);
  out.put(static_cast<std::int64_t>(kept.gone.size()));
  for (const auto& [first, second] : kept.gone) out.put(first).put(second);
  out.put(kept.from).put(kept.closed.size).put(kept.closed.modified);
  out.put(static_cast<std::int64_t>(kept.undo_files.size()));
  for (const auto& [generation, files] : kept.undo_files) out.put(generation).put(files);
  out.put(checksum(out.bytes()));
  return out.take();
}

std::optional<KeptFlushes> decode_kept(std::span<const std::byte> bytes) {
  if (bytes.size() < kept_magic.size() + sizeof(std::uint64_t)) return {};
  const auto covered = bytes.first(bytes.size() - sizeof(std::uint64_t));
  if (Unpacker(bytes.subspan(covered.size())).get<std::uint64_t>() != checksum(covered)) return {};
  Unpacker in(covered);
  for (const char letter : kept_magic) {
    if (in.get<char>() != letter) return {};
  }
  KeptFlushes kept;
  kept.open = in.get<std::uint64_t>();
  kept.last = in.get<std::int64_t>();
  kept.opens = in.get<std::int64_t>();
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count)
    kept.claims.push_back(in.get_text());
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
    const auto first = in.get<std::int64_t>();
    kept.gone.emplace_back(first, in.get<std::int64_t>());
  }
  kept.from = in.get<std::int64_t>();
  kept.closed.size = in.get<Bytes>();
  kept.closed.modified = in.get<std::int64_t>();
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
    const auto generation = in.get<std::int64_t>();
    kept.undo_files.emplace_back(generation, in.get<std::int64_t>());
  }
  const bool good = in.ok() && in.rest().empty() && kept.open != 0 && kept.last >= 0;
  return good ? std::optional(std::move(kept)) : std::nullopt;
}

bool is_gone(const KeptFlushes& kept, std::int64_t generation) {
  return std::ranges::any_of(
      kept.gone, [&](const auto& range) { return range.first < generation && generation <= range.second; });
}

/// Files of this name say to which generation undo files lead, of opens of one number: FILE.undo.f<open>.<g>
std::string lowest_begin(const std::string& path, std::uint64_t open) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = flushed_path(path) + ".f";
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[open >> shift & 15];
  return text + ".";
}

/// Returns the names in the directory of the file that begin so, with what follows.
Result<std::vector<std::pair<std::string, std::string>>> names_beside(storage::Target& target,
                                                                      const std::string& begin) {
  std::vector<std::pair<std::string, std::string>> found;
  const std::string directory = begin.substr(0, begin.rfind('/') + 1);  // npos + 1 is 0
  const std::string last = begin.substr(directory.size());
  const Result<std::vector<std::string>> names =
      target.list(storage::parent_of(storage::tidy_path(begin + "0")));
  if (names.status().error_number() == ENOENT) return found;
  TR_TRY(names.status());
  for (const std::string& each : *names) {
    if (each.starts_with(last)) found.emplace_back(directory + each, each.substr(last.size()));
  }
  return found;
}

/// Returns the files that raise_lowest_kept() has made for this number of the open, with their generations.
Result<std::vector<std::pair<std::string, std::int64_t>>> lowest_files(storage::Target& target,
                                                                       const std::string& path,
                                                                       std::uint64_t open) {
  const auto names = names_beside(target, lowest_begin(path, open));
  TR_TRY(names.status());
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const auto& [name, rest] : *names) {
    std::int64_t generation = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), generation);
    if (error == std::errc() && end == rest.data() + rest.size()) found.emplace_back(name, generation);
  }
  return found;
}

/// Returns what the file is now. All 0: storage does not tell.
Result<storage::Identity> identity_now(storage::Target& target, const std::string& path) {
  Result<storage::Identity> now = target.identity_of(path);
  if (now.status().code() == Code::unsupported) return storage::Identity();
  TR_TRY(now.status());
  // A copy of the directory that keeps the times is the same file.
  now->changed = 0;
  now->inode = 0;
  return now;
}

/// Returns Code::state if somebody brings the file back to a flush before `generation`. Whoever restores
/// announces that in FILE.undo and then asks lowest_kept(); whoever removes undo files says first, in a file
/// that lowest_kept() reads, how far, and then asks this function. So one of the two sees the other.
Status check_not_restored_below(storage::Target& target, const std::string& path, std::int64_t generation) {
  const Result<std::optional<Flushed>> last = read_flushed(target, path);
  TR_TRY(last.status());
  if (!*last || !is_restore(**last) || (*last)->generation >= generation) return {};
  return {Code::state, cat(path,
                           " is being brought back to an earlier flush, and needs undo files that no copy "
                           "of a checkpoint needs any more: they stay until the next commit or prune")};
}

/// Returns the sample of the content that the file has once it is brought back to `from`.
Result<std::uint64_t> sample_behind(storage::Target& target, storage::File& file, const Position& from) {
  Sampled sampled(from.size);
  TR_TRY(sampled.read(file));
  TR_TRY(for_each_kept(target, from, [&](Bytes offset, std::span<const std::byte> bytes) {
    sampled.put(offset, bytes);
    return Status();
  }));
  return sampled.sum();
}

/// Returns all undo files that lead to that flush, if the files beside the file say that any do.
Result<std::optional<Position>> undo_leading_to(storage::Target& target, const RecordedFlush& to,
                                                std::string& why) {
  const std::optional<Position> nothing;
  if (to.open == 0) return nothing;
  const Result<bool> exists = target.exists(to.path);
  TR_TRY(exists.status());
  if (!*exists) return nothing;
  const Result<std::optional<Flushed>> last = read_flushed(target, to.path);
  TR_TRY(last.status());
  const Result<std::optional<KeptFlushes>> kept = read_kept(target, to.path);
  TR_TRY(kept.status());
  const bool is_last = *last && (*last)->open == to.open && (*last)->generation == to.generation;
  const bool is_kept = *kept && (*kept)->open == to.open && !is_gone(**kept, to.generation) &&
                       (*last ? (*last)->open == to.open && to.generation < (*last)->generation
                              : to.generation <= (*kept)->last);
  if (!is_last && !is_kept) return nothing;
  if (!*last) {
    const Result<bool> changed = was_changed(target, to.path, **kept);
    TR_TRY(changed.status());
    if (*changed) {
      why = "was changed or replaced since it was closed, by something that keeps nothing";
      return nothing;
    }
  }
  const Result<std::vector<UndoName>> all = find_undo_files(target, flushed_path(to.path));
  TR_TRY(all.status());
  Position from;
  from.path = name_beside(to.path);
  // Somebody has renamed the file and all that lies beside it: its undo files know it by the old name.
  const auto has_other_name = [key = undo_key(from.path)](const UndoName& each) { return each.key != key; };
  if (std::ranges::any_of(*all, has_other_name)) return nothing;
  from.size = to.size;
  from.since = to.generation;
  from.undo = undo_files_of(from, to.generation, *all);
  if (*kept) leave_out_gone(**kept, from.undo);
  if (is_last) {
    if (*kept && is_restore(**last)) {
      const Status can = check_can_restore(target, to.path, **last, **kept);
      if (can.code() == Code::corrupt) {
        why = "was about to go back to this flush, and undo files that this needs are gone";
        return nothing;
      }
      TR_TRY(can);
    }
    const std::int64_t through = std::max((*last)->generation, (*last)->through);
    std::erase_if(from.undo, [&](const UndoName& each) { return each.generation > through; });
    return std::optional(std::move(from));
  }
  // Not earlier: whoever removes undo files raises this before.
  const Result<std::int64_t> lowest = lowest_kept(target, to.path, **kept);
  TR_TRY(lowest.status());
  if (to.generation < *lowest || to.generation <= highest_missing(**kept, from.undo)) {
    why = "was written over since the checkpoint, and its undo files are gone";
    return nothing;
  }
  return std::optional(std::move(from));
}

}  // namespace

std::string kept_path(const std::string& path) { return flushed_path(path) + ".kept"; }

std::string claim_of(storage::Target& target, const std::string& path, const std::string& checkpoint) {
  // A name has no directory to be followed to where there is none (name_behind_links()).
  const std::filesystem::path named = storage::path_from_root(name_behind_links(target, checkpoint));
  const std::filesystem::path beside =
      storage::parent_of(storage::path_from_root(name_behind_links(target, path)));
  const std::filesystem::path relative = named.lexically_relative(beside);
  return relative.empty() ? named.string() : relative.string();
}

std::string claimant(const std::string& path, const std::string& claim) {
  if (claim.starts_with('/') || storage::prefix_length(claim) > 0) return claim;
  const std::string directory = storage::parent_of(storage::tidy_path(path));
  return storage::tidy_path(directory == "." ? claim : cat(directory, "/", claim));
}

Result<std::optional<KeptFlushes>> read_kept(storage::Target& target, const std::string& path) {
  const std::string name = kept_path(path);
  const Result<bool> exists = target.exists(name);
  TR_TRY(exists.status());
  if (!*exists) return std::optional<KeptFlushes>();
  Result<std::unique_ptr<storage::File>> file = target.open(name, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  ByteVector bytes(static_cast<std::size_t>(std::min(*size, longest_kept_file)));
  const Result<Bytes> got = (*file)->read(bytes, 0);
  TR_TRY(got.status());
  std::optional<KeptFlushes> kept = decode_kept(std::span(bytes).first(static_cast<std::size_t>(*got)));
  if (kept) return kept;
  return Status(Code::corrupt,
                cat(name, " has to tell which flushes of ", path,
                    " are kept for checkpoints, and does not: it is damaged, of a later version, or of "
                    "another program. If ",
                    path, " is good as it is, move ", name, " away"),
                EIO);
}

Status write_kept(storage::Target& target, const std::string& path, const KeptFlushes& kept) {
  return storage::replace_file(target, kept_path(path), encode_kept(kept), kept_path(path) + ".new");
}

Result<std::int64_t> give_up_kept(storage::Target& target, const std::string& path) {
  const Result<bool> exists = target.exists(kept_path(path));
  TR_TRY(exists.status());
  if (!*exists) return std::int64_t{0};
  const Result<std::optional<KeptFlushes>> kept = read_kept(target, path);
  if (!kept.is_ok() && kept.status().code() != Code::corrupt) return kept.status();
  const std::int64_t last = kept.is_ok() && *kept ? (*kept)->last : 0;
  TR_TRY(storage::remove_durably(target, kept_path(path)));
  const Result<std::int64_t> highest = drop_undo_files(target, path);
  TR_TRY(highest.status());
  const auto said = names_beside(target, flushed_path(path) + ".f");
  TR_TRY(said.status());
  for (const auto& [name, rest] : *said) {
    if (rest.size() > 17 && rest[16] == '.') TR_TRY(storage::remove_if_there(target, name).status());
  }
  return std::max(last, *highest);
}

void leave_out_gone(const KeptFlushes& kept, std::vector<UndoName>& undo) {
  std::erase_if(undo, [&](const UndoName& each) {
    return std::ranges::any_of(kept.gone, [&](const auto& range) {
      return range.first <= each.generation && each.generation <= range.second;
    });
  });
}

Result<std::int64_t> lowest_kept(storage::Target& target, const std::string& path, const KeptFlushes& kept) {
  const auto files = lowest_files(target, path, kept.open);
  TR_TRY(files.status());
  std::int64_t lowest = kept.from;
  for (const auto& [name, generation] : *files) lowest = std::max(lowest, generation);
  return lowest;
}

Status raise_lowest_kept(storage::Target& target, const std::string& path, std::uint64_t open,
                         std::int64_t generation) {
  const auto before = lowest_files(target, path, open);
  TR_TRY(before.status());
  const std::string name = cat(lowest_begin(path, open), generation);
  TR_TRY(storage::write_durably(target, name, {}));
  TR_TRY(target.sync_directory_of(name));
  const Status free = check_not_restored_below(target, path, generation);
  if (!free.is_ok()) {
    // Nothing was removed by this file, if nobody had said so before.
    const bool is_new =
        std::ranges::find(*before, name, [](const auto& each) { return each.first; }) == before->end();
    if (is_new) TR_TRY(storage::remove_if_there(target, name).status());
    return free;
  }
  for (const auto& [old, lower] : *before) {
    if (lower < generation) TR_TRY(storage::remove_if_there(target, old).status());
  }
  return {};
}

Result<bool> was_changed(storage::Target& target, const std::string& path, const KeptFlushes& kept) {
  const Result<storage::Identity> now = identity_now(target, path);
  TR_TRY(now.status());
  return *now != kept.closed;
}

Status note_closed(storage::Target& target, const std::string& path, std::int64_t end, std::int64_t passing,
                   KeptFlushes& kept) {
  const Result<storage::Identity> now = identity_now(target, path);
  TR_TRY(now.status());
  Result<std::vector<UndoName>> all = find_undo_files(target, flushed_path(path));
  TR_TRY(all.status());
  leave_out_gone(kept, *all);
  const std::int64_t missing = highest_missing(kept, *all);
  const Result<std::int64_t> lowest = lowest_kept(target, path, kept);
  TR_TRY(lowest.status());
  if (missing >= *lowest) {
    log(LogLevel::warn, cat("undo files of ", path, " are gone: nothing leads back to earlier flushes"));
    kept.from = missing + 1;
  }
  kept.closed = *now;
  kept.undo_files.clear();
  std::map<std::int64_t, std::int64_t> files;
  for (const UndoName& each : *all) {
    if (each.generation < end) ++files[each.generation];
  }
  if (const auto last = files.find(end - 1); last != files.end())
    last->second = std::max<std::int64_t>(last->second - passing, 0);
  kept.undo_files.assign(files.begin(), files.end());
  return {};
}

std::int64_t highest_missing(const KeptFlushes& kept, const std::vector<UndoName>& undo) {
  const auto is_out = [&](std::int64_t generation) {
    return std::ranges::any_of(kept.gone, [&](const auto& range) {
      return range.first <= generation && generation <= range.second;
    });
  };
  std::map<std::int64_t, std::int64_t> files;
  for (const UndoName& each : undo) ++files[each.generation];
  std::int64_t highest = -1;
  for (const auto& [generation, count] : kept.undo_files) {
    if (!is_out(generation) && files[generation] < count) highest = std::max(highest, generation);
  }
  return highest;
}

Result<std::int64_t> highest_undo(storage::Target& target, const std::string& path) {
  const Result<std::vector<UndoName>> all = find_undo_files(target, flushed_path(path));
  TR_TRY(all.status());
  return all->empty() ? 0 : all->front().generation;
}

void note_brought_back(KeptFlushes& kept, std::int64_t to, std::int64_t last) {
  kept.last = std::max(kept.last, last);
  if (kept.last <= to) return;
  std::erase_if(kept.gone, [&](const auto& range) { return range.first >= to; });
  kept.gone.emplace_back(to, kept.last);
  if (kept.gone.size() > most_gone) kept.gone.erase(kept.gone.begin());
}

namespace {

Result<std::optional<Position>> way_back_now(storage::Target& target, const RecordedFlush& to,
                                             std::string* why) {
  std::string reason;
  Result<std::optional<Position>> found = undo_leading_to(target, to, reason);
  if (why != nullptr) *why = reason;
  TR_TRY(found.status());
  if (!*found || to.sample == 0) return found;
  const Result<std::unique_ptr<storage::File>> file = target.open(to.path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<std::uint64_t> sample = sample_behind(target, **file, **found);
  TR_TRY(sample.status());
  if (*sample != to.sample) return std::optional<Position>();
  return found;
}

/// The state of a file that a restore has read and not changed yet.
struct Restore {
  Position way;
  std::optional<Flushed> last;  // FILE.undo
  bool is_announced = false;    // FILE.undo has this flush already
  bool is_there = false;        // the closed file has its bytes
};

Result<std::optional<Restore>> plan_restore(storage::Target& target, const RecordedFlush& to) {
  const Result<std::optional<Position>> way = way_back(target, to);
  TR_TRY(way.status());
  if (!*way) return std::optional<Restore>();
  const Result<std::optional<Flushed>> last = read_flushed(target, to.path);
  TR_TRY(last.status());
  Restore restore{**way, *last, *last && (*last)->generation == to.generation};
  if (restore.is_announced) return std::optional(std::move(restore));
  // Nothing may be begun that cannot be completed, as with a damaged undo file.
  const Result<std::unique_ptr<storage::File>> file = target.open(to.path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<Difference> found = difference(target, **file, **way, "the checkpoint");
  TR_TRY(found.status());
  restore.is_there = !*last && (*way)->undo.empty() && found->size == to.size;
  return std::optional(std::move(restore));
}

/// From this rename on undo files of the way stay. Returns what FILE.undo is then.
Result<Flushed> announce(storage::Target& target, const RecordedFlush& to,
                         const std::optional<Flushed>& last) {
  const Result<std::int64_t> highest = highest_undo(target, to.path);
  TR_TRY(highest.status());
  const Result<std::optional<KeptFlushes>> kept = read_kept(target, to.path);
  TR_TRY(kept.status());
  Flushed back{to.generation, to.size, to.sample, to.open};
  back.through = std::max({*highest, to.generation, *kept ? (*kept)->last : 0});
  if (last) back.through = std::max({back.through, last->generation, last->through});
  back.announced.emplace();
  if (last && last->announced)
    back.announced = last->announced;  // that restore has changed nothing
  else if (last)
    back.announced = BeforeRestore{last->generation, last->size, last->sample, last->through};
  TR_TRY(prepare_flushed(target, to.path, back));
  TR_TRY(commit_flushed(target, to.path));
  return back;
}

/// Returns false if undo files of the way are gone, or somebody has said that they may go.
Result<bool> is_still_there(storage::Target& target, const RecordedFlush& to, const Flushed& announced,
                            const Position& way) {
  const Result<std::optional<KeptFlushes>> kept = read_kept(target, to.path);
  TR_TRY(kept.status());
  if (*kept) {
    const Status leads = check_can_restore(target, to.path, announced, **kept);
    if (leads.code() == Code::corrupt) return false;
    TR_TRY(leads);
  }
  for (const UndoName& each : way.undo) {
    const Result<bool> exists = target.exists(each.path);
    if (!exists.is_ok() || !*exists) return exists;
  }
  return true;
}

}  // namespace

Result<std::optional<Position>> way_back(storage::Target& target, const RecordedFlush& to, std::string* why) {
  return despite_removals([&] { return way_back_now(target, to, why); },
                          [&] {
                            if (why != nullptr) *why = "has undo files that are gone once they are read";
                            return Result<std::optional<Position>>(std::nullopt);
                          });
}

Status check_can_restore(storage::Target& target, const std::string& path, const Flushed& restore,
                         const KeptFlushes& kept) {
  const Result<std::int64_t> lowest = restore.announced ? lowest_kept(target, path, kept) : 0;
  TR_TRY(lowest.status());
  const Result<std::vector<UndoName>> all = find_undo_files(target, flushed_path(path));
  TR_TRY(all.status());
  if (restore.generation >= *lowest && restore.generation > highest_missing(kept, *all)) return {};
  return {
      Code::corrupt,
      cat("a restore of ", path, " to an earlier flush has begun, and undo files ", flushed_path(path),
          ".u* that it needs are gone. If ", path, " is good as it is, move ", flushed_path(path), " away"),
      EIO};
}

Result<bool> bring_back_to(storage::Target& target, const RecordedFlush& to) {
  const Result<std::optional<Restore>> restore = despite_removals(
      [&] { return plan_restore(target, to); }, [] { return Result<std::optional<Restore>>(std::nullopt); });
  TR_TRY(restore.status());
  if (!*restore) return false;
  if ((*restore)->is_there) return true;
  const Result<Flushed> back =
      (*restore)->is_announced ? *(*restore)->last : announce(target, to, (*restore)->last);
  TR_TRY(back.status());
  if (back->announced) {
    // Undo files may have gone since they were read. From here on nobody removes those that this needs.
    const Result<bool> is_whole = is_still_there(target, to, *back, (*restore)->way);
    if (!is_whole.is_ok() || !*is_whole) {
      TR_TRY(take_back_restore(target, to.path, *back));
      return is_whole;
    }
    // Who says from now on that they may go, and is stopped before he looks, must not stop this restore.
    TR_TRY(begin_restore(target, to.path, *back));
  }
  return bring_back_flushed(target, to.path);
}

}  // namespace tailrace::journal
