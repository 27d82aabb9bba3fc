// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/load.hpp"

#include <algorithm>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/undo_file.hpp"

namespace tailrace::checkpoint {

Status Candidates::look() {
  found_.clear();
  broken_.clear();
  not_given_ = {};
  const Result<std::vector<std::string>> paths = context_.slots->candidates(context_.target());
  TR_TRY(paths.status());
  found_ = look_at(context_.target(), *paths, read_directory);
  return {};
}

Result<ByteVector> Candidates::next() {
  while (!found_.empty()) {
    Found found = std::move(found_.front());
    found_.erase(found_.begin());
    if (found.missing) continue;
    const Status why = found.copy ? add_undo_files(*found.copy) : found.status;
    if (why.is_ok()) return pack(*found.copy);
    TR_TRY(found.unfinished ? pass_over_unfinished(found.path) : pass_over(found.path, why));
  }
  if (!broken_.empty()) return none_whole();
  return ByteVector();
}

/// Notes in the copy which undo files restore its recorded files.
Status Candidates::add_undo_files(Copy& copy) const {
  Result<std::vector<journal::UndoName>> undo = journal::find_undo_files(context_.target(), context_.name);
  TR_TRY(undo.status());
  const std::int64_t oldest = context_.outputs.oldest_undo(copy);
  std::erase_if(*undo, [&](const journal::UndoName& each) { return each.generation < oldest; });
  copy.undo = std::move(*undo);
  return {};
}

Status Candidates::pass_over_unfinished(const std::string& path) const {
  log(LogLevel::info,
      cat("checkpoint ", context_.name, ": ", path, " holds a save that never came to its end"));
  return {};
}

Status Candidates::pass_over(const std::string& path, const Status& why) {
  context_.slots->broken(path);
  broken_ += cat(broken_.empty() ? "" : "; ", why.text());
  if (not_given_.is_ok() && !is_damage(why)) not_given_ = why;
  log(LogLevel::warn, cat("checkpoint ", context_.name, ": a copy is passed over: ", why.text()));
  return {};
}

/// Returns the error of a load that has found no whole copy. If storage did not give one of the copies, the
/// text says that it may be whole, so that nobody throws it away.
Status Candidates::none_whole() const {
  if (not_given_.is_ok()) return {Code::corrupt, cat("no copy is whole: ", broken_)};
  return {not_given_.code(), cat("no copy can be loaded, but one may be whole: ", broken_),
          not_given_.error_number()};
}

Status Load::check(const std::string& call, std::span<const std::byte> packed) {
  const Status whole = take(call, packed);
  copy_.reset();
  forget_parts();
  return whole;
}

Status Load::begin(const std::string& call) {
  return take_next(call, context_.is_first() ? guarded([&] { return candidates_.look(); }) : Status());
}

/// Collective. Sets copy_ to the newest whole copy among the candidates that are left. Leaves it empty if
/// there never was a copy. `mine` is this rank's own error, if it has one. The Status is the same on every
/// rank.
Status Load::take_next(const std::string& call, Status mine) {
  while (true) {
    copy_.reset();  // after an error, no damaged copy must be left to load from
    Packer told;
    if (context_.is_first() && mine.is_ok()) {
      mine = guarded([&]() -> Status {
        const Result<ByteVector> copy = candidates_.next();
        TR_TRY(copy.status());
        told.put_bytes(*copy);
        return {};
      });
    }
    const comm::Verdict verdict = context_.session.agree({mine, call, told.take()});
    TR_TRY(verdict.status);
    Unpacker in(verdict.contributions.front());
    const auto packed = in.get_bytes();
    if (packed.empty()) return {};
    const Status whole = take(call, packed);
    if (whole.is_ok()) return {};
    const std::string path = copy_ ? copy_->path : std::string();
    copy_.reset();
    if (whole.code() != Code::corrupt && whole.code() != Code::io) return whole;
    if (!context_.is_first()) continue;
    mine = guarded([&] {
      return is_unfinished(context_.target(), path) ? candidates_.pass_over_unfinished(path)
                                                    : candidates_.pass_over(path, whole);
    });
  }
}

/// Collective. Takes a copy that the first rank has found. Checks that every part is there, belongs to this
/// save and is whole, and that every element is in exactly one part. The Status is the same on every rank.
Status Load::take(const std::string& call, std::span<const std::byte> packed) {
  const std::string vote = cat(call, ": the parts of a copy");
  PartDirectory::Messages messages;
  Status read = guarded([&]() -> Status {
    Result<Copy> copy = unpack_copy(packed);
    TR_TRY(copy.status());
    copy_ = std::move(*copy);
    part_directory_.emplace(copy_->directory.items, context_.session.rank(), context_.session.ranks());
    return {};
  });
  std::vector<PartPlace> places;
  // A rank whose read has failed is in the next exchange, with its error. All others leave theirs with it.
  if (read.is_ok() && copy_->header.mode == Mode::local) {
    Result<std::vector<PartPlace>> got = places_of_first(vote);
    TR_TRY(got.status());
    places = std::move(*got);
  }
  if (read.is_ok()) read = guarded([&] { return read_share(messages, places); });
  if (!read.is_ok()) messages.clear();
  const auto told = context_.session.computes().exchange(std::move(messages), {read, vote, {}});
  TR_TRY(told.status());
  const Status whole = guarded([&] {
    for (const auto& [rank, bytes] : *told) part_directory_->take(bytes);
    return part_directory_->check();
  });
  return context_.session.agree({whole.in(copy_->path), vote, {}}).status;
}

/// Returns the first of the parts whose tables a rank reads.
std::int32_t Load::first_part_of(std::int64_t rank) const {
  return static_cast<std::int32_t>(copy_->header.parts * rank / context_.session.ranks());
}

/// Collective. Returns the places of the parts whose tables this rank reads. The first rank reads them from
/// the copy's file: in the local mode the other ranks may have their parts on disks of their nodes, where
/// that file is not. The Status is the same on every rank.
Result<std::vector<PartPlace>> Load::places_of_first(const std::string& vote) {
  PartDirectory::Messages messages;
  Status mine;
  if (context_.is_first()) {
    mine = guarded([&]() -> Status {
      CopyReader reader(context_.target(), *copy_);
      const Result<std::vector<PartPlace>> all = reader.places(0, copy_->header.parts);
      TR_TRY(all.status());
      for (int rank = 0; rank < context_.session.ranks(); ++rank) {
        Packer out;
        for (std::int32_t part = first_part_of(rank); part < first_part_of(rank + 1); ++part)
          out.put((*all)[static_cast<std::size_t>(part)]);
        messages[rank] = out.take();
      }
      return {};
    });
    if (!mine.is_ok()) messages.clear();
  }
  const auto told = context_.session.computes().exchange(std::move(messages), {mine, vote, {}});
  TR_TRY(told.status());
  std::vector<PartPlace> places;
  for (const auto& [rank, bytes] : *told) {
    for (Unpacker in(bytes); in.ok() && !in.rest().empty();) places.push_back(in.get<PartPlace>());
  }
  return places;
}

/// `places` are those of the parts in the local mode; otherwise each rank reads them from the copy's file.
Status Load::read_share(PartDirectory::Messages& told, std::vector<PartPlace> places) {
  const std::int32_t first = first_part_of(context_.session.rank());
  const std::int32_t end = first_part_of(context_.session.rank() + 1);
  own_tables_.clear();
  CopyReader reader(context_.target(), *copy_);
  if (copy_->header.mode != Mode::local) {
    Result<std::vector<PartPlace>> read = reader.places(first, end - first);
    TR_TRY(read.status());
    places = std::move(*read);
  }
  for (std::int32_t part = first; part < end; ++part) {
    Result<Table> table = reader.table(part, places[static_cast<std::size_t>(part - first)]);
    TR_TRY(table.status());
    own_tables_.push_back(std::move(*table));
  }
  told = part_directory_->tell(own_tables_);
  return {};
}

Status Load::end(const Items& items) {
  Status mine = items.error();
  // If an array is missing on one rank, all ranks must hear of it before any rank fills its own.
  if (mine.is_ok() && copy_) {
    mine = guarded([&]() -> Status {
      TR_TRY(items.match(*copy_));
      return items.plans(context_.session.rank()).status();
    });
  }
  if (mine.is_ok() && !copy_ && !items.list().empty())
    mine = Status(Code::state, "items are named, but nothing was found to load them from");
  const comm::Verdict verdict = context_.session.agree(
      {mine, cat("tr_checkpoint_end(", context_.name, ", load", items.text(), ")"), {}});
  TR_TRY(verdict.status);
  return copy_ ? read_from_newest(items) : Status();
}

/// Collective. Reads the items from the newest copy. If a rank finds damage while it reads the elements, all
/// ranks go on with the copy before it. The Status is the same on every rank.
Status Load::read_from_newest(const Items& named) {
  while (true) {
    // Each copy has the outputs of its own moment, so the library's own items differ from copy to copy.
    Items items = named;
    std::vector<Plan> plans;
    Status mine = guarded([&]() -> Status {
      TR_TRY(named.match(*copy_));
      Result<std::vector<NamedItem>> own = context_.outputs.make_own_items(*copy_);
      TR_TRY(own.status());
      items.add_own(std::move(*own));
      Result<std::vector<Plan>> made = items.plans(context_.session.rank());
      TR_TRY(made.status());
      plans = std::move(*made);
      return {};
    });
    mine = find_parts(items, plans, mine);
    if (mine.is_ok()) mine = guarded([&] { return read_items(items, plans); });
    if (copy_->header.mode == Mode::local) mine = share_replicated(items, plans, mine);
    const comm::Verdict verdict = context_.session.agree({mine, "tr_checkpoint_end: reading the items", {}});
    if (verdict.status.is_ok()) {
      if (!context_.is_first() || copy_->header.committed) return {};
      const Status committed = guarded([&] { return commit_copy(context_.target(), *copy_); });
      if (!committed.is_ok()) log(LogLevel::warn, cat("checkpoint ", context_.name, ": ", committed.text()));
      return {};
    }
    if (verdict.status.code() != Code::corrupt && verdict.status.code() != Code::io) return verdict.status;
    mine = {};
    if (context_.is_first())
      mine = guarded([&] { return candidates_.pass_over(copy_->path, verdict.status); });
    TR_TRY(take_next("tr_checkpoint_end: the copy before", mine));
  }
}

/// Collective. Gives every rank the tables that it needs. As a rule, replicated items lie in the first rank's
/// part: the first rank alone asks for them, and sends their tables to the other ranks. One rank alone may
/// fail to take these tables, so the ranks must vote on the Status before they act on it.
Status Load::find_parts(const Items& items, const std::vector<Plan>& plans, Status mine) {
  const std::string call = cat("tr_checkpoint_end(", context_.name, "): finding the parts");
  comm::Line& line = context_.session.computes();
  PartDirectory::Messages messages;
  if (mine.is_ok()) {
    mine = guarded([&]() -> Status {
      const Result<std::vector<PartDirectory::Share>> wanted = shares(items);
      TR_TRY(wanted.status());
      messages = part_directory_->ask(*wanted);
      return {};
    });
  }
  const auto questions = line.exchange(std::move(messages), {mine, call, {}});
  TR_TRY(questions.status());
  messages = {};
  mine = guarded([&]() -> Status {
    for (const auto& [rank, question] : *questions) messages[rank] = part_directory_->answer(question);
    return {};
  });
  const auto answers = line.exchange(std::move(messages), {mine, cat(call, ": the answers"), {}});
  TR_TRY(answers.status());
  ByteVector told;
  mine = guarded([&]() -> Status {
    std::map<std::int32_t, PartPlace> parts;
    for (const auto& [rank, answer] : *answers) PartDirectory::take_answer(answer, parts);
    TR_TRY(read_tables(parts));
    if (context_.is_first()) told = replicated_tables(items, plans);
    return {};
  });
  const comm::Verdict verdict = context_.session.agree({mine, cat(call, ": their tables"), std::move(told)});
  TR_TRY(verdict.status);
  return guarded([&] { return take_tables(verdict.contributions.front()); });
}

/// Returns the elements that this rank owns of each item. The first rank owns all elements of a replicated
/// item.
Result<std::vector<PartDirectory::Share>> Load::shares(const Items& items) const {
  Result<std::vector<SaveItem>> own = to_save(items.list(), context_.session.rank());
  TR_TRY(own.status());
  std::vector<PartDirectory::Share> wanted;
  for (SaveItem& item : *own) wanted.push_back({copy_->find(item.info.name), std::move(item.owned.rows)});
  return wanted;
}

Status Load::read_tables(const std::map<std::int32_t, PartPlace>& parts) {
  copy_->tables.clear();
  CopyReader reader(context_.target(), *copy_);
  for (const auto& [part, place] : parts) {
    const auto own = std::ranges::find(own_tables_, part, &Table::part);
    if (own != own_tables_.end()) {
      copy_->tables.push_back(*own);
      continue;
    }
    Result<Table> table = reader.table(part, place);
    TR_TRY(table.status());
    copy_->tables.push_back(std::move(*table));
  }
  return {};
}

/// On the first rank, packs the tables of the parts that hold replicated items, for the other ranks.
ByteVector Load::replicated_tables(const Items& items, const std::vector<Plan>& plans) const {
  Packer out;
  for (const Table& table : copy_->tables) {
    const auto is_needed = [&](const PartItem& share) {
      for (std::size_t i = 0; i < plans.size(); ++i) {
        if (plans[i]->everywhere && copy_->find(items.list()[i].name) == share.item) return true;
      }
      return false;
    };
    if (std::ranges::any_of(table.items, is_needed)) out.put(table.place).put_bytes(encode(table));
  }
  return out.take();
}

Status Load::take_tables(const ByteVector& bytes) {
  for (Unpacker in(bytes); in.ok() && !in.rest().empty();) {
    const auto place = in.get<PartPlace>();
    Result<Table> table = decode_table(in.get_bytes(), place.bytes);
    TR_TRY(table.status());
    if (std::ranges::find(copy_->tables, table->part, &Table::part) != copy_->tables.end()) continue;
    table->place = place;
    copy_->tables.push_back(std::move(*table));
  }
  return {};
}

Status Load::read_items(const Items& items, const std::vector<Plan>& plans) const {
  CopyReader reader(context_.target(), *copy_);
  const bool all = context_.is_first() || copy_->header.mode != Mode::local;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!all && plans[i]->everywhere) continue;  // it comes from the first rank
    TR_TRY(reader.read(copy_->find(items.list()[i].name), plans[i]->mine, items.list()[i].array.data));
  }
  return {};
}

/// Collective. Gives every rank what the first rank has read of replicated items: they lie in its part, which
/// other ranks may not see. Returns `mine`, or the verdict if that is an error.
Status Load::share_replicated(const Items& items, const std::vector<Plan>& plans, Status mine) const {
  ByteVector read;
  if (mine.is_ok() && context_.is_first()) {
    mine = guarded([&]() -> Status {
      for (std::size_t i = 0; i < plans.size(); ++i) {
        if (!plans[i]->everywhere) continue;
        const std::size_t before = read.size();
        read.resize(before + static_cast<std::size_t>(plans[i]->bytes()));
        plans[i]->mine.gather(items.list()[i].array.data, 0, plans[i]->bytes(), read.data() + before);
      }
      return {};
    });
    if (!mine.is_ok()) read.clear();
  }
  const comm::Verdict verdict =
      context_.session.agree({mine, "tr_checkpoint_end: replicated items", std::move(read)});
  TR_TRY(verdict.status);
  if (context_.is_first()) return {};
  const std::byte* next = verdict.contributions.front().data();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i]->everywhere) continue;
    plans[i]->mine.scatter(items.list()[i].array.data, 0, plans[i]->bytes(), next);
    next += plans[i]->bytes();
  }
  return {};
}

void Load::forget_parts() {
  candidates_.clear();
  part_directory_.reset();
  own_tables_.clear();
}

}  // namespace tailrace::checkpoint
