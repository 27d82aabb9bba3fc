// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/kept_flushes.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "ground/base/checksum.hpp"
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
  const bool good = in.ok() && in.rest().empty() && kept.open != 0 && kept.last >= 0;
  return good ? std::optional(std::move(kept)) : std::nullopt;
}

bool is_gone(const KeptFlushes& kept, std::int64_t generation) {
  return std::ranges::any_of(
      kept.gone, [&](const auto& range) { return range.first < generation && generation <= range.second; });
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
Result<std::optional<Position>> undo_leading_to(storage::Target& target, const RecordedFlush& to) {
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
    const std::int64_t through = std::max((*last)->generation, (*last)->through);
    std::erase_if(from.undo, [&](const UndoName& each) { return each.generation > through; });
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
  return std::max(last, *highest);
}

void leave_out_gone(const KeptFlushes& kept, std::vector<UndoName>& undo) {
  std::erase_if(undo, [&](const UndoName& each) {
    return std::ranges::any_of(kept.gone, [&](const auto& range) {
      return range.first <= each.generation && each.generation <= range.second;
    });
  });
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

Result<std::optional<Position>> way_back(storage::Target& target, const RecordedFlush& to) {
  Result<std::optional<Position>> found = undo_leading_to(target, to);
  TR_TRY(found.status());
  if (!*found || to.sample == 0) return found;
  const Result<std::unique_ptr<storage::File>> file = target.open(to.path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<std::uint64_t> sample = sample_behind(target, **file, **found);
  TR_TRY(sample.status());
  if (*sample != to.sample) return std::optional<Position>();
  return found;
}

Result<bool> bring_back_to(storage::Target& target, const RecordedFlush& to) {
  const Result<std::optional<Position>> way = way_back(target, to);
  TR_TRY(way.status());
  if (!*way) return false;
  const Result<std::optional<Flushed>> last = read_flushed(target, to.path);
  TR_TRY(last.status());
  if (!*last || (*last)->generation != to.generation) {
    // Nothing may be begun that cannot be completed, as with a damaged undo file.
    const Result<std::unique_ptr<storage::File>> file = target.open(to.path, storage::OpenMode::read);
    TR_TRY(file.status());
    const Result<Difference> found = difference(target, **file, **way, "the checkpoint");
    TR_TRY(found.status());
    if (!*last && (*way)->undo.empty() && found->size == to.size) return true;
    const Result<std::int64_t> highest = highest_undo(target, to.path);
    TR_TRY(highest.status());
    const Result<std::optional<KeptFlushes>> kept = read_kept(target, to.path);
    TR_TRY(kept.status());
    Flushed back{to.generation, to.size, to.sample, to.open};
    back.through = std::max({*highest, to.generation, *kept ? (*kept)->last : 0});
    if (*last) back.through = std::max({back.through, (*last)->generation, (*last)->through});
    // From this rename on the file goes back to that flush, whoever opens it next.
    TR_TRY(prepare_flushed(target, to.path, back));
    TR_TRY(commit_flushed(target, to.path));
  }
  return bring_back_flushed(target, to.path);
}

}  // namespace tailrace::journal
