// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/flushed.hpp"

#include <algorithm>
#include <cerrno>

#include "ground/base/checksum.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/kept_flushes.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::journal {

namespace {

constexpr std::string_view flushed_magic = "TRFLUSH2";
/// With a further number: Flushed::through. Files without it stay readable for earlier versions.
constexpr std::string_view restoring_magic = "TRFLUSH3";
/// A restore that is announced: with what FILE.undo was before, too.
constexpr std::string_view announced_magic = "TRFLUSH4";
constexpr Bytes flushed_bytes = 88;  // of the longest
/// Early versions wrote files with this one, without the sample and the number of the open. They are read,
/// since a program of that version may have been killed and left one.
constexpr std::string_view early_magic = "TRFLUSH1";

std::string prepared_path(const std::string& path) { return flushed_path(path) + ".new"; }

/// Makes and removes a file in the directory, so that a client of NFS asks its server again. The client may
/// still know the directory as it was a minute ago (nfs(5)), without the files of a program on another node.
/// On a full disk the file cannot be made; this must not keep anybody from bringing the shared file back.
Status look_anew(storage::Target& target, const std::string& path) {
  const Status made = target.open(prepared_path(path), storage::OpenMode::anew).status();
  if (made.error_number() == ENOSPC || made.error_number() == EDQUOT)
    return storage::remove_if_there(target, prepared_path(path)).status();
  TR_TRY(made);
  return target.remove(prepared_path(path));
}

ByteVector encode(const Flushed& flushed) {
  Packer out;
  const bool restores = is_restore(flushed);
  const BeforeRestore* const before = restores && flushed.announced ? &*flushed.announced : nullptr;
  for (const char letter : before ? announced_magic : restores ? restoring_magic : flushed_magic)
    out.put(letter);
  out.put(flushed.generation).put(flushed.size).put(flushed.sample).put(flushed.open);
  if (restores) out.put(flushed.through);
  if (before) out.put(before->generation).put(before->size).put(before->sample).put(before->through);
  out.put(checksum(out.bytes()));
  return out.take();
}

std::optional<Flushed> decode(std::span<const std::byte> bytes) {
  Unpacker in(bytes);
  std::string magic(flushed_magic.size(), 0);
  for (char& letter : magic) letter = in.get<char>();
  const bool is_announced = magic == announced_magic;
  if (!is_announced && magic != restoring_magic && magic != flushed_magic && magic != early_magic) return {};
  Flushed flushed;
  flushed.generation = in.get<std::int64_t>();
  flushed.size = in.get<Bytes>();
  if (magic != early_magic) {
    flushed.sample = in.get<std::uint64_t>();
    flushed.open = in.get<std::uint64_t>();
  }
  if (is_announced || magic == restoring_magic) flushed.through = in.get<std::int64_t>();
  if (is_announced) {
    BeforeRestore& before = flushed.announced.emplace();
    before.generation = in.get<std::int64_t>();
    before.size = in.get<Bytes>();
    before.sample = in.get<std::uint64_t>();
    before.through = in.get<std::int64_t>();
  }
  const auto sum = in.get<std::uint64_t>();
  const bool good = in.ok() && in.rest().empty() && flushed.generation >= 0 && flushed.size >= 0;
  if (!good || sum != checksum(bytes.first(bytes.size() - sizeof sum))) return {};
  return flushed;
}

Status put_back(storage::Target& target, const std::string& path, const Flushed& flushed,
                const std::optional<KeptFlushes>& kept) {
  Result<std::vector<UndoName>> all = find_undo_files(target, flushed_path(path));
  TR_TRY(all.status());
  Position from;
  from.path = name_beside(path);
  const std::int64_t last = std::max(flushed.generation, flushed.through);
  const auto counts = [&](const UndoName& each) {
    return flushed.generation <= each.generation && each.generation <= last;
  };
  const bool has_other_name = std::ranges::any_of(
      *all, [&](const UndoName& each) { return counts(each) && each.key != undo_key(from.path); });
  if (has_other_name) {
    return {Code::corrupt,
            cat("the files ", flushed_path(path), ".* keep what a file of another name held: give ", path,
                " and them the names that they had"),
            EIO};
  }
  from.size = flushed.size;
  from.undo = undo_files_of(from, flushed.generation, *all);
  // A crash before a commit leaves undo files of the next generation. They do not belong to the last flush.
  std::erase_if(from.undo, [&](const UndoName& each) { return !counts(each); });
  if (kept) leave_out_gone(*kept, from.undo);
  Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY(bring_back(target, **file, from,
                    last > flushed.generation ? "the flush of a checkpoint" : "its last flush"));
  TR_TRY((*file)->sync());
  return (*file)->close();
}

/// The file has the content of `flushed`. Has FILE.undo.kept tell so before FILE.undo is gone, and removes
/// the undo files that nobody needs to go back further.
Status keep_earlier(storage::Target& target, const std::string& path, const Flushed& flushed,
                    KeptFlushes kept) {
  const Result<std::vector<UndoName>> all = find_undo_files(target, flushed_path(path));
  TR_TRY(all.status());
  const std::int64_t highest = all->empty() ? 0 : all->front().generation;
  const std::int64_t last = std::max({flushed.generation, flushed.through, highest});
  if (is_restore(flushed))
    note_brought_back(kept, flushed.generation, last);
  else
    kept.last = std::max(kept.last, last);
  kept.opens = is_restore(flushed) ? 0 : kept.opens + 1;
  TR_TRY(note_closed(target, path, flushed.generation, 0, kept));
  TR_TRY(write_kept(target, path, kept));
  TR_TRY(storage::remove_durably(target, flushed_path(path)));
  for (const UndoName& each : *all) {
    if (each.generation >= flushed.generation) TR_TRY(storage::remove_if_there(target, each.path).status());
  }
  return {};
}

}  // namespace

std::string flushed_path(const std::string& path) { return path + ".undo"; }

std::string flushed_lock_path(const std::string& path) { return flushed_path(path) + ".lock"; }

std::string name_beside(const std::string& path) {
  const std::string tidy = storage::tidy_path(path);
  return tidy.substr(tidy.rfind('/') + 1);  // npos + 1 is 0
}

Result<std::shared_ptr<void>> lock_flushed(storage::Target& target, const std::string& path) {
  Result<std::shared_ptr<void>> lock = target.lock(flushed_lock_path(path));
  TR_TRY(lock.status());
  TR_TRY(look_anew(target, path));
  return lock;
}

Result<std::shared_ptr<void>> share_flushed(storage::Target& target, const std::string& path,
                                            std::shared_ptr<void> own) {
  return target.share_lock(flushed_lock_path(path), std::move(own));
}

Result<bool> is_left_open(storage::Target& target, const std::string& path) {
  const Result<bool> exists = target.exists(flushed_path(path));
  if (!exists.is_ok() || *exists) return exists;
  return target.exists(prepared_path(path));
}

Result<std::optional<Flushed>> read_flushed(storage::Target& target, const std::string& path) {
  const std::string name = flushed_path(path);
  const Result<bool> exists = target.exists(name);
  TR_TRY(exists.status());
  if (!*exists) return std::optional<Flushed>();
  Result<std::unique_ptr<storage::File>> file = target.open(name, storage::OpenMode::read);
  TR_TRY(file.status());
  ByteVector bytes(static_cast<std::size_t>(flushed_bytes) + 1);
  const Result<Bytes> got = (*file)->read(bytes, 0);
  TR_TRY(got.status());
  const std::optional<Flushed> flushed = decode(std::span(bytes).first(static_cast<std::size_t>(*got)));
  if (flushed) return flushed;
  return Status(Code::corrupt,
                cat(name, " has to tell how ", path,
                    " was flushed last, and does not: it is damaged, or of another program. If ", path,
                    " is good as it is, move ", name, " away"),
                EIO);
}

Status prepare_flushed(storage::Target& target, const std::string& path, const Flushed& flushed) {
  return storage::write_durably(target, prepared_path(path), encode(flushed));
}

Status commit_flushed(storage::Target& target, const std::string& path) {
  return storage::rename_durably(target, prepared_path(path), flushed_path(path));
}

Status begin_restore(storage::Target& target, const std::string& path, Flushed announced) {
  announced.announced.reset();
  TR_TRY(prepare_flushed(target, path, announced));
  return commit_flushed(target, path);
}

Status take_back_restore(storage::Target& target, const std::string& path, const Flushed& announced) {
  const BeforeRestore& before = *announced.announced;
  if (before.generation < 0) return storage::remove_durably(target, flushed_path(path));
  TR_TRY(prepare_flushed(target, path,
                         {before.generation, before.size, before.sample, announced.open, before.through}));
  return commit_flushed(target, path);
}

Result<bool> bring_back_flushed(storage::Target& target, const std::string& path) {
  const Result<std::optional<Flushed>> flushed = read_flushed(target, path);
  TR_TRY(flushed.status());
  if (!*flushed) return false;
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  Result<std::optional<KeptFlushes>> kept = read_kept(target, path);
  TR_TRY(kept.status());
  if (*exists && is_restore(**flushed)) {
    const bool is_known = *kept && (*kept)->open == (*flushed)->open;
    const Status leads = is_known ? check_can_restore(target, path, **flushed, **kept) : Status();
    if ((*flushed)->announced && (!is_known || leads.code() == Code::corrupt)) {
      log(LogLevel::warn, cat(path,
                              " does not go back to an earlier flush: undo files that this needs have gone "
                              "before it has begun"));
      TR_TRY(take_back_restore(target, path, **flushed));
      TR_TRY(bring_back_flushed(target, path).status());
      return true;
    }
    TR_TRY(leads);
    if ((*flushed)->announced) TR_TRY(begin_restore(target, path, **flushed));
  }
  // If somebody has removed the file, without knowing of the files beside it, there is nothing to put back.
  if (*exists) TR_TRY(put_back(target, path, **flushed, *kept));
  if (!*kept || !*exists || (*kept)->open != (*flushed)->open) {
    if (*kept) TR_TRY(storage::remove_durably(target, kept_path(path)));
    TR_TRY(storage::remove_durably(target, flushed_path(path)));
    TR_TRY(drop_undo_files(target, path).status());
    return *exists;
  }
  TR_TRY(keep_earlier(target, path, **flushed, **kept));
  return true;
}

Result<std::int64_t> drop_undo_files(storage::Target& target, const std::string& path) {
  const Result<std::vector<UndoName>> all = find_undo_files(target, flushed_path(path));
  TR_TRY(all.status());
  std::int64_t highest = 0;
  for (const UndoName& each : *all) {
    highest = std::max(highest, each.generation);
    // A save may remove them at the same time.
    TR_TRY(storage::remove_if_there(target, each.path).status());
  }
  return highest;
}

}  // namespace tailrace::journal
