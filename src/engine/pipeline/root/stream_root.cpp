// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/root/stream_root.hpp"

#include <algorithm>

namespace tailrace::pipeline {

using node::Descriptor;
using Kind = SequenceEntry::Kind;

StreamRoot::StreamRoot(Context& context, const Opening& opening, const codec::Codec& codec,
                       Result<std::unique_ptr<Ledger>> ledger)
    : context_(context),
      opening_(opening),
      codec_(codec),
      sequencer_(opening, codec, owners_of(opening.method().deal, context.roster.servers(), context.me)),
      servers_take_offsets_(servers_take_offsets(opening.method(), codec)),
      placement_(servers_take_offsets_ ? placement::make_placement_of_taken()
                                       : opening.method().make_placement(codec)),
      rounds_(opening.method().is_collective
                  ? std::make_unique<Rounds>(context, opening,
                                             [this](std::int64_t step, int chunks, const Status& status) {
                                               commits_.on_round(step, chunks, status);
                                             })
                  : nullptr),
      commits_(context, opening, codec, *placement_, rounds_.get(), std::move(ledger)),
      counter_(servers_take_offsets_ ? context.offsets->make() : Result<int>(0)) {}

StreamRoot::~StreamRoot() {
  if (servers_take_offsets_ && counter_.is_ok()) context_.offsets->remove(*counter_);
}

void StreamRoot::on_reference(const Descriptor& descriptor, std::vector<SequenceEntry>& fresh) {
  const auto known = static_cast<std::ptrdiff_t>(fresh.size());
  const Status status = sequencer_.add(descriptor, context_.workspace_per_stream() / 2, fresh);
  for (auto entry = fresh.begin() + known; entry != fresh.end(); ++entry) {
    switch (entry->kind) {
      case Kind::begin:
        commits_.on_begin(*entry, descriptor.kind == Descriptor::Kind::begin_failed);
        break;
      case Kind::record:
        commits_.note(entry->step, status);
        commits_.on_record(entry->step, codec_.encoded_bound(entry->field));
        if (!chunks_.try_emplace(entry->chunk, Chunk{entry->step, entry->owner}).second) break;
        placement_->announce(entry->chunk);
        commits_.on_chunk(entry->step);
        if (servers_take_offsets_)
          commits_.note(entry->step, counter_.status().in("method=offset_sharing").at({entry->step, -1, -1}));
        break;
      case Kind::end_step:
        commits_.on_end(entry->step);
        break;
      case Kind::end_chunk:
      case Kind::fence:
        break;
    }
  }
}

void StreamRoot::on_encoded(Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  Chunk& chunk = chunks_.at(number);
  WholeChunk whole = WholeChunk::unpack(in);
  chunk.size = whole.size();
  chunk.records = std::move(whole.records);
  commits_.on_encoded(chunk.step, chunk.size, whole.poisoned, whole.status);
  placement_->on_encoded(number, chunk.step);
}

void StreamRoot::on_taken(Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  WholeChunk whole = WholeChunk::unpack(in);
  const auto chunk = chunks_.extract(number);
  commits_.on_encoded(whole.step, whole.size(), whole.poisoned, whole.status);
  // A chunk with records has taken its offsets in the step whose turn it is. That step waits for it.
  if (!whole.records.empty()) {
    placement_->place(number, whole.records);
    commits_.add(chunk.mapped().owner, whole.records);
  }
  commits_.on_written(whole.step, Status::unpack(in));
}

/// Has the servers take offsets in the step whose turn it is, from the end of all steps before on, or leave
/// its chunks out. They hear of it once.
bool StreamRoot::begin_step() {
  const std::int64_t step = commits_.turn();
  if (step <= begun_step_ || !commits_.has_chunks(step)) return false;
  const Commits::Fate fate = commits_.fate(false);
  if (fate == Commits::Fate::waits) return false;
  begun_step_ = step;
  const StreamFiles::File& file = commits_.file();
  const bool is_written = fate == Commits::Fate::written;
  if (is_written) context_.offsets->set(*counter_, file.end);
  Packer out;
  out.put(Message::begun).put(opening_.stream).put(step).put(is_written);
  out.put_text(file.start.path).put(file.committed).put(file.end).put(is_written ? *counter_ : -1);
  context_.send_to_servers(out);
  return true;
}

bool StreamRoot::advance() {
  bool moved = servers_take_offsets_ ? begin_step() : place();
  moved = commits_.advance() || moved;
  return (rounds_ && rounds_->advance()) || moved;
}

std::vector<int> StreamRoot::awaited() const {
  std::vector<int> owners;
  for (const auto& [number, sent] : sent_)
    if (!sent.has_come) owners.push_back(sent.owner);
  return owners;
}

bool StreamRoot::awaits(int server) const {
  return std::ranges::any_of(
      sent_, [server](const auto& each) { return !each.second.has_come && each.second.owner == server; });
}

bool StreamRoot::on_come(std::uint64_t chunk) {
  const auto sent = sent_.find(chunk);
  if (sent == sent_.end()) return false;
  sent->second.has_come = true;
  return true;
}

/// True if another server has the chunk, and this one writes it.
bool StreamRoot::comes_here(const Chunk& chunk) const {
  return opening_.method().is_sent && chunk.owner != context_.me && chunk.size > 0;
}

/// True if the chunk's bytes may come now: they take half of the stream's workspace at most, or are the only
/// ones. Until a chunk has its place, its bytes stay with the server that has encoded them.
bool StreamRoot::has_room(const Chunk& chunk) const {
  Bytes held = chunk.size;
  for (const auto& [number, sent] : sent_) held += sent.size;
  return sent_.empty() || held <= context_.workspace_per_stream() / 2;
}

bool StreamRoot::place() {
  bool moved = false;
  // A step may fail as a whole until it is settled. Therefore only chunks of the first step that is not
  // settled get places.
  while (const auto number = placement_->next(commits_.turn())) {
    Chunk& chunk = chunks_.at(*number);
    const bool is_sent = comes_here(chunk);
    if (is_sent && !has_room(chunk)) break;
    const Commits::Fate fate = commits_.fate(chunk.size == 0);
    if (fate == Commits::Fate::waits) break;
    if (fate == Commits::Fate::dropped) {
      placement_->drop(*number);
    } else {
      placement_->place(*number, chunk.records);
      commits_.add(is_sent ? context_.me : chunk.owner, chunk.records);
      if (is_sent) sent_[*number] = {.owner = chunk.owner, .size = chunk.size};
    }
    send_to_owner(*number, chunk, fate);
    chunks_.erase(*number);
    moved = true;
  }
  return moved;
}

/// Tells the chunk's owner where it goes, or that it is left out. Collective calls tell it later, with the
/// chunk's round.
void StreamRoot::send_to_owner(std::uint64_t number, const Chunk& chunk, Commits::Fate fate) {
  const StreamFiles::File& file = commits_.file();
  std::vector<Bytes> offsets, lengths;
  for (const RecordEntry& record : chunk.records) {
    if (fate != Commits::Fate::written) break;
    offsets.push_back(record.offset);
    lengths.push_back(record.length);
  }
  if (rounds_ && fate == Commits::Fate::written)
    return rounds_->add(file.start.path, chunk.step, file.committed,
                        {number, chunk.owner, std::move(offsets), std::move(lengths)});
  Packer out;
  out.put(Message::place).put(opening_.stream).put(number);
  out.put(fate == Commits::Fate::written).put_list<Bytes>(offsets);
  out.put_text(file.start.path).put(file.committed);
  context_.send_to_server(chunk.owner, out);
}

}  // namespace tailrace::pipeline
