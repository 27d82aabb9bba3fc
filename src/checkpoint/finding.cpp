// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The ranks that load a copy find the parts that they need. First each rank reads the tables of a share of
// the parts and tells the watchers of their elements (PartDirectory). The watchers check that no element is
// missing. Then each rank asks the watchers of its own elements, and reads the tables of the parts that have
// its elements.
#include <algorithm>

#include "base/text.hpp"
#include "checkpoint/checkpoint.hpp"

namespace tailrace::checkpoint {

/// Collective. Checks that every part is there, belongs to this save and is whole, and that every element is
/// in exactly one part. The Status is the same on every rank.
Status Checkpoint::check_parts() {
  const std::string call = cat("tr_checkpoint_begin(", name_, "): the parts of ", copy_->path);
  PartDirectory::Messages messages;
  const Status read = guarded([&] {
    part_directory_.emplace(copy_->directory.items, service_.rank(), service_.size());
    return read_share(messages);
  });
  if (!read.is_ok()) messages.clear();
  const auto told = service_.session().computes().exchange(std::move(messages), {read, call, {}});
  TR_TRY(told.status());
  const Status whole = guarded([&] {
    for (const auto& [rank, bytes] : *told) part_directory_->take(bytes);
    return part_directory_->check();
  });
  return service_.session().agree({whole.in(copy_->path), call, {}}).status;
}

Status Checkpoint::read_share(PartDirectory::Messages& told) {
  const std::int64_t parts = copy_->header.parts;
  const auto first = static_cast<std::int32_t>(parts * service_.rank() / service_.size());
  const auto end = static_cast<std::int32_t>(parts * (service_.rank() + 1) / service_.size());
  own_tables_.clear();
  PartReader reader(service_.target(), *copy_);
  const Result<std::vector<PartPlace>> places = reader.places(first, end - first);
  TR_TRY(places.status());
  for (std::int32_t part = first; part < end; ++part) {
    Result<Table> table = reader.table(part, (*places)[static_cast<std::size_t>(part - first)]);
    TR_TRY(table.status());
    own_tables_.push_back(std::move(*table));
  }
  told = part_directory_->tell(own_tables_);
  return {};
}

/// Collective. Gives every rank the tables that it needs. As a rule, replicated items lie in the first rank's
/// part: the first rank alone asks for them, and sends their tables to the other ranks. A rank may fail alone
/// to take these tables, so the caller must vote on the Status before it acts on it.
Status Checkpoint::find_parts(const std::vector<Plan>& plans, Status mine) {
  const std::string call = cat("tr_checkpoint_end(", name_, "): finding the parts");
  comm::Line& line = service_.session().computes();
  PartDirectory::Messages messages;
  if (mine.is_ok()) {
    mine = guarded([&]() -> Status {
      const Result<std::vector<PartDirectory::Share>> wanted = shares();
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
    if (service_.rank() == 0) told = replicated_tables(plans);
    return {};
  });
  const comm::Verdict verdict =
      service_.session().agree({mine, cat(call, ": their tables"), std::move(told)});
  TR_TRY(verdict.status);
  return guarded([&] { return take_tables(verdict.contributions.front()); });
}

/// Returns the elements that this rank owns of each item. The first rank owns all elements of a replicated
/// item.
Result<std::vector<PartDirectory::Share>> Checkpoint::shares() const {
  Result<std::vector<SaveItem>> items = save_items(items_);
  TR_TRY(items.status());
  std::vector<PartDirectory::Share> wanted;
  for (SaveItem& item : *items) wanted.push_back({copy_->find(item.info.name), std::move(item.owned.rows)});
  return wanted;
}

Status Checkpoint::read_tables(const std::map<std::int32_t, PartPlace>& parts) {
  copy_->tables.clear();
  PartReader reader(service_.target(), *copy_);
  for (const auto& [part, place] : parts) {
    const auto own = std::find_if(own_tables_.begin(), own_tables_.end(),
                                  [number = part](const Table& each) { return each.part == number; });
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
ByteVector Checkpoint::replicated_tables(const std::vector<Plan>& plans) const {
  Packer out;
  for (const Table& table : copy_->tables) {
    const auto is_needed = [&](const PartItem& share) {
      for (std::size_t i = 0; i < items_.size(); ++i) {
        if (plans[i]->everywhere && copy_->find(items_[i].name) == share.item) return true;
      }
      return false;
    };
    if (std::any_of(table.items.begin(), table.items.end(), is_needed))
      out.put(table.place).put_bytes(encode(table));
  }
  return out.take();
}

Status Checkpoint::take_tables(const ByteVector& bytes) {
  for (Unpacker in(bytes); in.ok() && !in.rest().empty();) {
    const auto place = in.get<PartPlace>();
    Result<Table> table = decode_table(in.get_bytes(), place.bytes);
    TR_TRY(table.status());
    const bool is_known = std::any_of(copy_->tables.begin(), copy_->tables.end(),
                                      [&](const Table& each) { return each.part == table->part; });
    if (is_known) continue;
    table->place = place;
    copy_->tables.push_back(std::move(*table));
  }
  return {};
}

}  // namespace tailrace::checkpoint
