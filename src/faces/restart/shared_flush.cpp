// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <utility>

#include "faces/checkpoint/slots.hpp"
#include "faces/restart/recorded.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/flushed.hpp"
#include "ground/journal/journal.hpp"
#include "ground/journal/sample.hpp"

namespace tailrace::restart {

void put_flushes(Packer& out, const std::vector<SharedFlush>& all) {
  out.put(static_cast<std::int64_t>(all.size()));
  for (const SharedFlush& each : all)
    out.put_text(each.path).put(each.generation).put(each.size).put(each.sample);
  for (const SharedFlush& each : all) out.put(each.open);  // last, since early versions had none
}

Result<std::vector<SharedFlush>> get_flushes(Unpacker& in) {
  std::vector<SharedFlush> all;
  auto count = in.get<std::int64_t>();
  bool is_whole = count >= 0;
  for (; count > 0 && in.ok() && is_whole; --count) {
    SharedFlush each;
    each.path = in.get_text();
    each.generation = in.get<std::int64_t>();
    each.size = in.get<Bytes>();
    each.sample = in.get<std::uint64_t>();
    is_whole = in.ok() && !each.path.empty() && each.generation >= 0 && each.size >= 0;
    all.push_back(std::move(each));
  }
  const bool knows_opens = is_whole && !in.rest().empty();
  for (SharedFlush& each : all) each.open = knows_opens ? in.get<std::uint64_t>() : 0;
  if (!in.ok() || !is_whole) return Status(Code::corrupt, "the flushes of the shared files are damaged");
  return all;
}

namespace {

/// How a file that was left open stands. Only flushes of one open of the file have numbers that can be
/// compared. Of those that early versions have recorded, without a number, the bytes at both ends tell.
void judge_left_open(const SharedFlush& from, const journal::Flushed& last, FlushStanding& standing) {
  const bool is_same_open = last.open == from.open;
  standing.is_there = last.size == from.size &&
                      (is_same_open ? last.generation == from.generation
                                    : from.open == 0 && last.sample == from.sample && from.sample != 0);
  const std::int64_t later = is_same_open ? last.generation - from.generation : 0;
  if (later < 0) {
    standing.text =
        "left open on its way back to an earlier flush than that of the checkpoint: nothing leads to that "
        "one";
    return;
  }
  standing.text =
      standing.is_there ? "left open: to be brought back to its last flush, that of the checkpoint"
      : later > 0       ? cat("left open, ", counted(later, "flush", "flushes"),
                              " ahead of the checkpoint: to be brought back to its last flush, nothing leads "
                                    "back further")
                  : "left open by a program that has opened it anew since the checkpoint: to be brought "
                    "back to the last flush of that program, nothing leads back further";
}

/// How a file that is closed, or was brought back, stands, as far as its size and both ends tell.
Status judge_closed(storage::Target& target, const SharedFlush& from, FlushStanding& standing) {
  const Result<bool> exists = target.exists(from.path);
  TR_TRY(exists.status());
  if (!*exists) {
    standing.text = "is not there";
    return {};
  }
  const Result<std::unique_ptr<storage::File>> file = target.open(from.path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  standing.size = *size;
  if (*size == from.size) {
    const Result<std::uint64_t> sample = journal::sample_of(**file, *size);
    TR_TRY(sample.status());
    standing.is_there = from.sample == 0 || *sample == from.sample;
  }
  if (!standing.is_there)
    standing.text = "has other bytes than at its flush before the checkpoint, and nothing leads back there";
  return {};
}

/// How the file stands, if undo files lead to the flush.
Status judge_way_back(storage::Target& target, const SharedFlush& from, const journal::Position& way,
                      bool is_left_open, bool is_last, FlushStanding& standing) {
  const Result<std::unique_ptr<storage::File>> file = target.open(from.path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<journal::Difference> found = journal::difference(target, **file, way, "the checkpoint");
  TR_TRY(found.status());
  standing.leads_back = true;
  standing.is_left_open = is_left_open;
  standing.size = found->size;
  standing.put_back = found->put_back;
  standing.is_there = !is_left_open && found->put_back == 0 && found->size == from.size;
  if (is_left_open)
    standing.text =
        is_last ? "left open: to be brought back to its last flush, that of the checkpoint"
                : "left open, ahead of the checkpoint: to be brought back to the flush of the checkpoint";
  if (const Bytes behind = found->behind(way); behind > 0)
    standing.text += cat(standing.text.empty() ? "" : ", ", counted(behind, "byte"), " to be cut");
  if (standing.put_back > 0)
    standing.text +=
        cat(standing.text.empty() ? "" : ", ", counted(standing.put_back, "byte"), " to be put back");
  if (!standing.is_there && standing.text.empty())
    standing.text = "shorter than at the checkpoint: to be put back";
  return {};
}

}  // namespace

namespace {

Result<FlushStanding> standing_now(storage::Target& target, const SharedFlush& from) {
  FlushStanding standing;
  std::string why;
  const Result<std::optional<journal::Position>> way = journal::way_back(target, from, &why);
  TR_TRY(way.status());
  if (*way) {
    const Result<std::optional<journal::Flushed>> last = journal::read_flushed(target, from.path);
    TR_TRY(last.status());
    const bool is_last = *last && (*last)->generation == from.generation;
    TR_TRY(judge_way_back(target, from, **way, last->has_value(), is_last, standing));
    return standing;
  }
  const Result<std::optional<journal::Flushed>> last = journal::read_flushed(target, from.path);
  TR_TRY(last.status());
  const Result<std::optional<Bytes>> size = storage::size_if_there(target, from.path);
  TR_TRY(size.status());
  standing.size = size->value_or(0);
  if (*last && *size)
    judge_left_open(from, **last, standing);
  else
    TR_TRY(judge_closed(target, from, standing));
  standing.is_left_open = last->has_value();
  // Both ends may be as recorded, but not what lies between: whatever keeps nothing may have written there.
  if (why.empty() && standing.is_there && from.open != 0)
    why = "was begun anew since the checkpoint, or written by something that keeps nothing";
  if (!why.empty()) {
    standing.is_there = false;
    standing.text = why + ": nothing leads back to its flush before the checkpoint";
  }
  return standing;
}

}  // namespace

Result<FlushStanding> standing_of(storage::Target& target, const SharedFlush& from) {
  return journal::despite_removals([&] { return standing_now(target, from); },
                                   [&]() -> Result<FlushStanding> {
                                     FlushStanding standing;
                                     standing.text =
                                         "has undo files that are gone once they are read: nothing leads "
                                         "back to its flush before the checkpoint";
                                     return standing;
                                   });
}

namespace {

/// The result of reading all copies of a checkpoint for a shared file.
struct Needing {
  bool are_whole = true;  // all could be read: one may be unfinished
  bool record_it = false;
};

/// Lowers `needed` to the oldest flush of the file, of those that compare with `open`, that the copies have
/// recorded. The number alone tells the file: its path may have other spellings. Fails if storage does not
/// give a copy.
Result<Needing> note_needed(storage::Target& target, const std::vector<std::string>& copies,
                            std::uint64_t open, std::int64_t& needed) {
  Needing found;
  for (const std::string& each : copies) {
    const Result<checkpoint::Copy> copy = checkpoint::read_directory(target, each);
    if (!copy.is_ok() && !checkpoint::is_damage(copy.status())) return copy.status();
    found.are_whole = found.are_whole && copy.is_ok();
    if (!copy.is_ok()) continue;
    const Result<Recorded> recorded = Recorded::unpack(copy->directory.outputs);
    if (!recorded.is_ok()) return recorded.status();
    for (const SharedFlush& flush : recorded->shared) {
      if (flush.open != open) continue;
      needed = std::min(needed, flush.generation);
      found.record_it = true;
    }
  }
  return found;
}

/// Returns one path of each shared file that the copies have recorded, perhaps by several spellings.
std::vector<std::string> shared_in(storage::Target& target, const std::vector<std::string>& copies) {
  std::map<std::string, std::string> all;  // by the name behind links
  for (const std::string& each : copies) {
    const Result<checkpoint::Copy> copy = checkpoint::read_directory(target, each);
    if (!copy.is_ok()) continue;
    const Result<Recorded> recorded = Recorded::unpack(copy->directory.outputs);
    if (!recorded.is_ok()) continue;
    for (const SharedFlush& flush : recorded->shared)
      all.emplace(journal::name_behind_links(target, flush.path), flush.path);
  }
  std::vector<std::string> paths;
  for (const auto& [name, path] : all) paths.push_back(path);
  return paths;
}

/// Returns the lowest generation that any copy of any checkpoint needs, or nothing if no undo files may go.
Result<std::optional<std::int64_t>> lowest_needed(storage::Target& target, const std::string& checkpoint,
                                                  const std::vector<std::string>& copies,
                                                  const std::string& path, const journal::KeptFlushes& kept) {
  const std::optional<std::int64_t> unknown;
  std::int64_t needed = std::numeric_limits<std::int64_t>::max();
  TR_TRY(note_needed(target, copies, kept.open, needed).status());
  const std::string own = journal::claim_of(target, path, checkpoint);
  for (const std::string& claim : kept.claims) {
    if (claim == own) continue;
    const Result<std::vector<std::string>> others =
        checkpoint::find_copies(target, journal::claimant(path, claim));
    TR_TRY(others.status());
    const Result<Needing> of = note_needed(target, *others, kept.open, needed);
    TR_TRY(of.status());
    // Copies may lie in places that nobody finds by its name, or its first save with the file may be under
    // way.
    if (!of->record_it || !of->are_whole) return unknown;
  }
  // No copy of this content any more, or not yet: the file may have been begun anew.
  if (needed == std::numeric_limits<std::int64_t>::max()) return unknown;
  return std::optional(needed);
}

}  // namespace

Result<std::vector<UselessFlushFiles>> useless_flush_files(storage::Target& target,
                                                           const std::string& checkpoint,
                                                           const std::vector<std::string>& copies) {
  std::vector<UselessFlushFiles> useless;
  for (const std::string& path : shared_in(target, copies)) {
    const Result<std::optional<journal::KeptFlushes>> kept = journal::read_kept(target, path);
    TR_TRY(kept.status());
    if (!*kept) continue;
    const Result<std::optional<std::int64_t>> needed =
        lowest_needed(target, checkpoint, copies, path, **kept);
    TR_TRY(needed.status());
    if (!*needed) continue;
    const Result<std::vector<journal::UndoName>> all =
        journal::find_undo_files(target, journal::flushed_path(path));
    TR_TRY(all.status());
    // Meanwhile a program may have begun the file anew: then other undo files have these names.
    const Result<std::optional<journal::KeptFlushes>> now = journal::read_kept(target, path);
    TR_TRY(now.status());
    // Or another checkpoint may have recorded it.
    if (!*now || (*now)->open != (*kept)->open || (*now)->claims != (*kept)->claims) continue;
    // A restore to a flush before the lowest that copies record is under way: it needs undo files that no
    // copy needs.
    const Result<std::optional<journal::Flushed>> last = journal::read_flushed(target, path);
    TR_TRY(last.status());
    if (*last && journal::is_restore(**last) && (*last)->generation < **needed) continue;
    UselessFlushFiles of{path, (*kept)->open, **needed};
    for (const journal::UndoName& each : *all) {
      if (each.generation < of.needed) of.files.push_back(each.path);
    }
    if (!of.files.empty()) useless.push_back(std::move(of));
  }
  return useless;
}

Result<std::vector<AbsentCheckpoint>> absent_checkpoints(storage::Target& target,
                                                         const std::string& checkpoint,
                                                         const std::vector<std::string>& copies) {
  std::vector<AbsentCheckpoint> absent;
  for (const std::string& path : shared_in(target, copies)) {
    const Result<std::optional<journal::KeptFlushes>> kept = journal::read_kept(target, path);
    TR_TRY(kept.status());
    if (!*kept) continue;
    for (const std::string& claim : (*kept)->claims) {
      if (claim == journal::claim_of(target, path, checkpoint)) continue;
      const std::string name = journal::claimant(path, claim);
      const Result<std::vector<std::string>> others = checkpoint::find_copies(target, name);
      TR_TRY(others.status());
      std::int64_t needed = 0;
      const Result<Needing> of = note_needed(target, *others, (*kept)->open, needed);
      TR_TRY(of.status());
      if (of->are_whole && !of->record_it) absent.push_back({name, path});
    }
  }
  return absent;
}

Status claim_closed(storage::Target& target, const SharedFlush& flush, const std::string& checkpoint) {
  const std::string claim = journal::claim_of(target, flush.path, checkpoint);
  const auto has_claim = [&](const std::optional<journal::KeptFlushes>& kept) {
    return kept && std::ranges::find(kept->claims, claim) != kept->claims.end();
  };
  const Result<std::optional<journal::KeptFlushes>> before = journal::read_kept(target, flush.path);
  TR_TRY(before.status());
  if (has_claim(*before)) return {};
  const Result<std::shared_ptr<void>> lock = journal::lock_flushed(target, flush.path);
  TR_TRY(lock.status());
  Result<std::optional<journal::KeptFlushes>> kept = journal::read_kept(target, flush.path);
  TR_TRY(kept.status());
  if (has_claim(*kept)) return {};
  if (!*kept || (*kept)->open != flush.open)
    return {Code::state, cat(flush.path, " was begun anew, or written without safety=")};
  (*kept)->claims.push_back(claim);
  return journal::write_kept(target, flush.path, **kept);
}

Status forget_checkpoint(storage::Target& target, const std::string& path, const std::string& checkpoint) {
  // A program that holds the checkpoint may save at any time. Without its directory there is none.
  const Result<std::shared_ptr<void>> held = target.lock(checkpoint::lock_path(checkpoint));
  if (held.status().error_number() != ENOENT) TR_TRY(held.status());
  const Result<std::shared_ptr<void>> lock = journal::lock_flushed(target, path);
  TR_TRY(lock.status());
  Result<std::optional<journal::KeptFlushes>> kept = journal::read_kept(target, path);
  TR_TRY(kept.status());
  const std::string claim = journal::claim_of(target, path, checkpoint);
  if (!*kept || std::ranges::find((*kept)->claims, claim) == (*kept)->claims.end()) {
    std::string others;
    for (const std::string& each : *kept ? (*kept)->claims : std::vector<std::string>())
      others += cat(others.empty() ? "; they stay for " : ", ", journal::claimant(path, each));
    return {Code::argument, cat("no undo files of ", path, " stay for checkpoint ", checkpoint, others)};
  }
  const Result<std::vector<std::string>> copies = checkpoint::find_copies(target, checkpoint);
  TR_TRY(copies.status());
  std::int64_t needed = 0;
  const Result<Needing> of = note_needed(target, *copies, (*kept)->open, needed);
  TR_TRY(of.status());
  if (of->record_it || !of->are_whole)
    return {Code::state,
            cat("checkpoint ", checkpoint, " has ", counted(std::ssize(*copies), "copy", "copies"),
                " under its name (", copies->front(), "), which may need undo files of ", path,
                ": remove the copies first")};
  std::erase((*kept)->claims, claim);
  if (!(*kept)->claims.empty()) return journal::write_kept(target, path, **kept);
  TR_TRY(journal::bring_back_flushed(target, path).status());
  return journal::give_up_kept(target, path).status();
}

}  // namespace tailrace::restart
