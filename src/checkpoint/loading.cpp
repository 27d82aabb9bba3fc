// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "checkpoint/checkpoint.hpp"
#include "journal/undo_file.hpp"

namespace tailrace::checkpoint {

/// On the first rank, returns the newest copy that may be whole, packed and without the places of its parts,
/// or nothing if there is none. Logs each copy that it passes over.
ByteVector Checkpoint::next_candidate() {
  while (!candidates_.empty()) {
    const Found found = candidates_.front();
    candidates_.erase(candidates_.begin());
    if (found.missing) continue;
    if (found.unfinished) {
      pass_over_unfinished(found.path);
      continue;
    }
    Status why = found.status;
    if (why.is_ok()) {
      Result<Copy> copy = guarded([&] { return read_directory(service_.target(), found.path); });
      if (copy.is_ok()) copy = with_undo_files(std::move(*copy));
      if (copy.is_ok()) {
        copy->directory.parts.clear();
        return pack(*copy);
      }
      why = copy.status();
    }
    pass_over(found.path, why);
  }
  return {};
}

void Checkpoint::pass_over_unfinished(const std::string& path) const {
  log(LogLevel::info, cat("checkpoint ", name_, ": ", path, " holds a save that never came to its end"));
}

/// Collective. Sets copy_ to the newest whole copy among the candidates that are left. Leaves it empty if
/// there never was a copy. `mine` is this rank's own error, if it has one. The Status is the same on every
/// rank.
Status Checkpoint::take_next(const std::string& call, Status mine) {
  while (true) {
    copy_.reset();  // nothing is loaded from a copy that is not whole, also where no other is
    Packer told;
    if (service_.rank() == 0 && mine.is_ok()) {
      mine = guarded([&]() -> Status {
        const ByteVector copy = next_candidate();
        if (copy.empty() && !broken_.empty()) return none_whole();
        told.put_bytes(copy);
        return {};
      });
    }
    const comm::Verdict verdict = service_.session().agree({mine, call, told.take()});
    TR_TRY(verdict.status);
    TR_TRY(take_copy(verdict));
    if (!copy_) return {};
    const Status whole = check_parts();
    if (whole.is_ok()) return {};
    const std::string path = std::exchange(copy_, std::nullopt)->path;
    if (whole.code() != Code::corrupt && whole.code() != Code::io) return whole;
    mine = {};
    if (service_.rank() != 0) continue;
    mine = guarded([&]() -> Status {
      if (is_unfinished(service_.target(), path))
        pass_over_unfinished(path);
      else
        pass_over(path, whole);
      return {};
    });
  }
}

/// Adds the undo files that restore the files that the copy records.
Result<Copy> Checkpoint::with_undo_files(Copy copy) {
  Result<std::vector<journal::UndoName>> undo = journal::find_undo_files(service_.target(), name_);
  TR_TRY(undo.status());
  const std::int64_t oldest = outputs_.oldest_undo(copy.directory.outputs, copy.generation());
  for (journal::UndoName& each : *undo) {
    if (each.generation >= oldest) copy.undo.push_back(std::move(each));
  }
  return copy;
}

void Checkpoint::pass_over(const std::string& path, const Status& why) {
  slots_->broken(path);
  broken_ += cat(broken_.empty() ? "" : "; ", why.text());
  if (not_given_.is_ok() && !is_damage(why)) not_given_ = why;
  log(LogLevel::warn, cat("checkpoint ", name_, ": a copy is passed over: ", why.text()));
}

/// If storage did not give a copy, the text says that it may be whole, so that nobody throws it away.
Status Checkpoint::none_whole() const {
  if (not_given_.is_ok()) return {Code::corrupt, cat("no copy is whole: ", broken_)};
  return {not_given_.code(), cat("no copy can be loaded, but one may be whole: ", broken_),
          not_given_.error_number()};
}

Status Checkpoint::begin_load(bool* found) {
  const std::string call = cat("tr_checkpoint_begin(", name_, ", TR_LOAD)");
  copy_.reset();
  Status mine;
  if (service_.rank() == 0) {
    candidates_.clear();
    broken_.clear();
    not_given_ = {};
    mine = guarded([&]() -> Status {
      const Result<std::vector<std::string>> paths = slots_->candidates(service_.target());
      TR_TRY(paths.status());
      candidates_ = look_at_directories(service_.target(), *paths);
      return {};
    });
  }
  TR_TRY(take_next(call, mine));
  if (found != nullptr) *found = copy_.has_value();
  return {};
}

/// Takes the copy that the first rank has found, if any.
Status Checkpoint::take_copy(const comm::Verdict& verdict) {
  copy_.reset();
  Unpacker in(verdict.contributions.front());
  const auto bytes = in.get_bytes();
  if (bytes.empty()) return {};
  Result<Copy> copy = unpack_copy(bytes);
  TR_TRY(copy.status());
  copy_ = std::move(*copy);
  return {};
}

Status Checkpoint::end_load() {
  std::string call = cat("tr_checkpoint_end(", name_, ", load");
  for (const NamedItem& item : items_)
    call += cat("; ", item.name, " ", item.scalar ? "scalar" : item.array.text());
  Status mine = latched_;
  if (mine.is_ok() && copy_) mine = check_items(*copy_);
  std::vector<Plan> plans;
  // If an array is missing on one rank, all ranks must hear of it before any rank fills its own.
  if (mine.is_ok() && copy_) mine = guarded([&] { return make_plans(plans); });
  if (mine.is_ok() && !copy_ && !items_.empty())
    mine = Status(Code::state, "items are named, but nothing was found to load them from");
  const comm::Verdict verdict = service_.session().agree({mine, call + ")", {}});
  TR_TRY(verdict.status);
  return copy_ ? load_newest(plans) : Status();
}

/// Collective. A rank may find damage only when it reads the elements of a copy. All ranks then go on with
/// the copy before it. The Status is the same on every rank.
Status Checkpoint::load_newest(const std::vector<Plan>& plans) {
  while (true) {
    Status mine = find_parts(plans, check_items(*copy_));
    if (mine.is_ok()) mine = guarded([&] { return read_items(*copy_, plans); });
    const comm::Verdict verdict =
        service_.session().agree({mine, "tr_checkpoint_end: reading the items", {}});
    if (verdict.status.is_ok()) {
      if (service_.rank() == 0 && !copy_->header.committed)
        mine = guarded([&] { return commit_copy(service_.target(), *copy_); });
      if (!mine.is_ok()) log(LogLevel::warn, cat("checkpoint ", name_, ": ", mine.text()));
      mine = guarded([&] { return loaded(*copy_); });
      return service_.session().agree({mine, "tr_checkpoint_end: going on", {}}).status;
    }
    if (verdict.status.code() != Code::corrupt && verdict.status.code() != Code::io) return verdict.status;
    mine = {};
    if (service_.rank() == 0) {
      mine = guarded([&]() -> Status {
        pass_over(copy_->path, verdict.status);
        return {};
      });
    }
    TR_TRY(take_next("tr_checkpoint_end: the copy before", mine));
  }
}

Status Checkpoint::check_items(const Copy& copy) const {
  const auto& items = copy.directory.items;
  for (const NamedItem& named : items_) {
    const int number = copy.find(named.name);
    if (number < 0) {
      std::string known;
      for (const ItemInfo& item : items) known += cat(known.empty() ? "" : ", ", item.name);
      return {Code::argument, cat("item ", named.name, " is not in ", copy.path, ", which has ", known)};
    }
    ItemInfo mine{named.name, named.array.type, {}};
    if (!named.scalar) {
      if (named.array.layout == nullptr)
        return {Code::argument, cat("item ", named.name, ": the layout is a null pointer")};
      Result<std::vector<Index>> shape = named.array.shape();
      if (!shape.is_ok()) return shape.status().in(cat("item ", named.name));
      mine.shape = std::move(*shape);
    }
    const ItemInfo& saved = items[static_cast<std::size_t>(number)];
    if (mine != saved)
      return {Code::argument, cat("item ", named.name, ": the program has ", mine.text(), ", ", copy.path,
                                  " has ", saved.text())};
  }
  for (const ItemInfo& item : items) {
    const auto is_it = [&](const NamedItem& named) { return named.name == item.name; };
    if (std::none_of(items_.begin(), items_.end(), is_it))
      return {Code::argument,
              cat("item ", item.name, " (", item.text(), ") of ", copy.path, " is not named by the program")};
  }
  return {};
}

Status Checkpoint::make_plans(std::vector<Plan>& plans) const {
  for (const NamedItem& named : items_) {
    arrays::Array array = named.array;
    if (named.scalar) array.layout = named.scalar.get();
    if (!named.halo.empty()) array.halo = &named.halo;
    Result<Plan> plan = arrays::make_plan(array, service_.rank(), arrays::Direction::read);
    if (!plan.is_ok()) return plan.status().in(cat("item ", named.name));
    plans.push_back(std::move(*plan));
  }
  return {};
}

Status Checkpoint::read_items(const Copy& copy, const std::vector<Plan>& plans) {
  CopyReader reader(service_.target(), copy);
  for (std::size_t i = 0; i < items_.size(); ++i)
    TR_TRY(reader.read(copy.find(items_[i].name), plans[i]->mine, items_[i].array.data));
  return {};
}

Status Checkpoint::loaded(const Copy& copy) {
  if (slots_ && copy.header.committed) slots_->committed(copy.generation(), copy.path);
  generation_ = copy.generation();
  left_out_ = false;
  progress_ = Progress::committed;
  if (service_.rank() == 0) {
    log(LogLevel::info, cat("checkpoint ", name_, ": generation ", generation_, " of ",
                            counted(copy.header.parts, "rank"), " is loaded from ", copy.path));
  }
  candidates_.clear();
  part_directory_.reset();
  own_tables_.clear();
  expect(items_);  // what was loaded is what will be saved
  return outputs_.resume(copy);
}

}  // namespace tailrace::checkpoint
