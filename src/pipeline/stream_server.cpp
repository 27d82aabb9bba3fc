// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/stream_server.hpp"

#include "base/log.hpp"
#include "layout/memory.hpp"

namespace tailrace::pipeline {

using node::Descriptor;
using Kind = SequenceEntry::Kind;

Result<std::unique_ptr<StreamServer>> StreamServer::create(Context& context, Opening opening,
                                                           const std::map<int, std::int64_t>& fences) {
  std::unique_ptr<StreamServer> stream(new StreamServer(context, std::move(opening)));
  TR_TRY(guarded([&] { return stream->prepare(); }));
  for (const auto& [c, number] : fences) stream->on_fence(c, number);
  return stream;
}

Status StreamServer::prepare() {
  opening_name_ = opening_.name();
  Result<std::unique_ptr<codec::Codec>> codec = opening_.codec();
  TR_TRY(codec.status());
  codec_ = std::move(*codec);
  for (const ByteVector& packed : opening_.layouts) {
    Unpacker in(packed);
    Result<layout::Layout> layout = layout::Layout::unpack(in);
    TR_TRY(layout.status());
    plans_.push_back(
        std::make_shared<exchange::RecordPlan>(std::move(*layout), context_.roster, context_.me));
  }
  encoders_.resize(static_cast<std::size_t>(context_.executor.count()));
  assembled_.resize(encoders_.size());
  homed_ = context_.roster.homed(context_.me);
  for (const auto& [c, cursor] : context_.lanes) lanes_[c].next = opening_.first_step;
  if (const auto first = context_.lanes.find(0); first != context_.lanes.end()) {
    node::KeptDefinitions* const kept = first->second.reader().kept();
    progress_ = kept == nullptr ? nullptr : kept->progress(opening_.stream);
  }
  if (progress_ != nullptr) progress_->decided = opening_.first_step;
  return {};
}

void StreamServer::say(Message message, std::int64_t number, const Status& status) {
  Packer out;
  out.put(message).put(opening_.stream).put(number);
  status.pack(out);
  context_.send_to_server(context_.home_of(opening_.reference), out);
}

std::string StreamServer::call_text(int c, int field, int level) const {
  const auto& definition = opening_.fields[static_cast<std::size_t>(field)];
  return cat("rank ", c, " puts '", definition.name, "' (level ", level, ")");
}

void StreamServer::on_sequence(std::span<const SequenceEntry> entries) {
  for (const SequenceEntry& entry : entries) {
    switch (entry.kind) {
      case Kind::begin: {
        Step& step = steps_[entry.step];
        step.lead = entry.lead;
        step.previous_lead = entry.interval_start;
        step.first_record = end_record();
        step.fences_at_begin = fences_;
        step_records_.clear();
        break;
      }
      case Kind::record:
        announce(entry);
        break;
      case Kind::end_chunk:
        if (const auto chunk = chunks_.find(entry.chunk); chunk != chunks_.end()) {
          chunk->second.closed = true;
          report(entry.chunk, chunk->second);
        }
        break;
      case Kind::end_step: {
        Step& step = steps_[entry.step];
        step.end_record = end_record();
        step.complete = true;
        step.fences_at_end = fences_;
        check_staging(step);
        break;
      }
      case Kind::fence:
        fences_ = entry.step;
        break;
    }
  }
}

bool StreamServer::needs_piece(const Record& record, int c) const {
  if (plan(record.entry.field).count(c) == 0) return false;
  if (record.entry.owner == context_.me) return true;
  const auto& sent = plan(record.entry.field).sent_to(record.entry.owner);
  return std::ranges::find(sent, c) != sent.end();
}

void StreamServer::announce(const SequenceEntry& entry) {
  const std::uint64_t number = end_record();
  Record& record = records_.emplace_back();
  record.entry = entry;
  record.operation = static_cast<std::int64_t>(number - steps_[entry.step].first_record);
  const exchange::RecordPlan& plan = this->plan(entry.field);
  for (const auto& [c, lane] : lanes_) {
    if (plan.count(c) == 0) continue;
    ++record.unmatched;
    if (needs_piece(record, c)) ++record.missing;
  }
  if (entry.owner == context_.me) {
    record.senders.insert(plan.senders().begin(), plan.senders().end());
    Chunk& chunk = chunks_[entry.chunk];
    chunk.step = entry.step;
    ++chunk.open;
    if (const auto early = early_.extract(number); !early.empty()) {
      for (const ByteVector& bytes : early.mapped()) {
        Unpacker in(bytes);
        on_pieces(number, in);
      }
    }
  }
  for (auto& [c, lane] : lanes_) {
    if (lane.skipping && lane.step == entry.step) skip_announced(c, lane);
  }
  const auto field = static_cast<std::size_t>(entry.field);
  ++step_records_[{opening_.layout_of[field], size_of(opening_.fields[field].type)}];
}

namespace {

/// Compares what ranks need for a step with the share that each has, and keeps the rank that lacks most.
struct Lack {
  int rank = -1;
  std::int64_t needed = 0, share = 1;

  [[nodiscard]] double ratio() const { return static_cast<double>(needed) / static_cast<double>(share); }
  void consider(const Lack& other) {
    if (other.ratio() > std::max(ratio(), 1.0)) *this = other;
  }
};

std::string size_text(Bytes bytes) {
  constexpr Bytes mebibyte = Bytes{1} << 20;
  return bytes < mebibyte ? cat((bytes + 1023) >> 10, " KiB")
                          : cat((bytes + mebibyte - 1) / mebibyte, " MiB");
}

}  // namespace

/// Ranks whose share of the staging memory is less than a step needs wait for the servers inside of their
/// calls, step by step. One server names the rank that lacks most, once for the stream.
void StreamServer::check_staging(const Step& step) {
  if (told_of_staging_ || context_.quotas.empty() || !context_.is_home(opening_.reference)) return;
  Lack data, puts;
  for (int c = 0; c < context_.roster.computes(); ++c) {
    Bytes needed = 0, largest = 0;
    std::int64_t descriptors = 2;  // two for begin and end
    for (const auto& [kind, records] : step_records_) {
      const Bytes piece = plans_[static_cast<std::size_t>(kind.first)]->count(c) * kind.second;
      needed += records * node::room_in_lane(piece);
      largest = std::max(largest, piece);
      if (piece > 0) descriptors += records;
    }
    needed += largest;  // room that may stay empty at the end of the ring
    const node::LaneCut lane = node::cut_lane(context_.quotas[static_cast<std::size_t>(c)]);
    data.consider({c, needed, lane.data});
    puts.consider({c, descriptors, static_cast<std::int64_t>(lane.descriptors)});
  }
  told_of_staging_ = data.rank >= 0 || puts.rank >= 0;
  // No setting gives a rank more descriptors than the most. Otherwise what suffices for the greater lack
  // suffices for both.
  const bool beyond = puts.needed > static_cast<std::int64_t>(node::LaneCut::most_descriptors);
  const auto warn = [&](const Lack& lack, const std::string& what, const std::string& has,
                        bool setting_helps) {
    log(LogLevel::warn,
        cat(opening_.step_text(step.lead), ": rank ", lack.rank, " puts ", what,
            " in it, and its share of the staging memory ", has,
            ": in such steps it waits for the servers to make room",
            setting_helps ? cat("; set ", context_.staging_for(lack.needed, lack.share)) : std::string()));
  };
  if (data.rank >= 0 && (beyond || data.ratio() >= puts.ratio()))
    warn(data, size_text(data.needed), cat("is ", size_text(data.share)), true);
  if (puts.rank >= 0 && (beyond || puts.ratio() > data.ratio()))
    warn(puts, cat(puts.needed - 2, " levels"), cat("takes ", puts.share, " at a time"), !beyond);
}

void StreamServer::on_pieces(std::uint64_t number, Unpacker& in) {
  if (number >= end_record()) {
    const auto rest = in.rest();
    early_[number].emplace_back(rest.begin(), rest.end());
    return;
  }
  Record& record = this->record(number);
  record.senders.erase(in.get<int>());
  record.poisoned = in.get<bool>() || record.poisoned;
  for (auto count = in.get<std::int32_t>(); count > 0; --count) {
    const int rank = in.get<int>();
    const auto bytes = in.get_bytes();
    record.pieces.push_back({rank, 0, false, ByteVector(bytes.begin(), bytes.end())});
  }
}

std::set<int> StreamServer::waits_for() const {
  // Only records at the front get data. Data for later ones stays with its sender, which bounds the memory.
  std::set<int> servers;
  int looked = 0;
  for (std::uint64_t number = next_work_; number < end_record() && looked < 2; ++number) {
    const Record& record = records_[static_cast<std::size_t>(number - first_record_)];
    if (record.entry.owner != context_.me || record.started) continue;
    ++looked;
    servers.insert(record.senders.begin(), record.senders.end());
  }
  return servers;
}

bool StreamServer::advance() {
  bool moved = false;
  for (auto c = fenced_.begin(); c != fenced_.end();) moved = catch_up(*c++) || moved;
  moved = start_work() || moved;
  retire();
  return moved;
}

bool StreamServer::start_work() {
  bool moved = false;
  for (std::uint64_t number = std::max(next_work_, first_record_); number < end_record(); ++number) {
    Record& record = this->record(number);
    const bool own = record.entry.owner == context_.me;
    if (!record.started && !own) {
      if (record.missing == 0 && !send_pieces(number)) return moved;
    } else if (!record.started) {
      if (record.missing > 0 || !record.senders.empty()) return moved;
      const Bytes bound = codec_->encoded_bound(record.entry.field);
      const bool oldest = chunks_.begin()->first == record.entry.chunk;
      if (!oldest && held_ + bound > context_.workspace_per_stream()) return moved;
      if (encoding_ >= 2 * context_.executor.count()) return moved;
      encode(number);
    }
    if (!record.started) return moved;
    moved = true;
    next_work_ = number + 1;
  }
  return moved;
}

/// Returns false if the transport has enough to carry for now.
bool StreamServer::send_pieces(std::uint64_t number) {
  Record& record = this->record(number);
  const auto& ranks = plan(record.entry.field).sent_to(record.entry.owner);
  if (!ranks.empty()) {
    if (context_.line.unsent_data() > context_.workspace_per_stream() / 4) return false;
    const std::span<const Piece> sent = record.poisoned ? std::span<const Piece>() : record.pieces;
    Packer out;
    out.put(opening_.stream).put(number).put(context_.me);
    out.put(record.poisoned).put(static_cast<std::int32_t>(sent.size()));
    ByteVector scratch;
    for (const Piece& piece : sent)
      out.put(piece.rank).put_bytes(context_.lanes.at(piece.rank).reader().bytes(piece.number, scratch));
    counters().sent_bytes += static_cast<std::int64_t>(out.bytes().size());
    context_.line.send_data(context_.rank_of_server(record.entry.owner), out.take());
    finish_pieces(record);
  }
  record.started = record.done = true;
  return true;
}

void StreamServer::finish_pieces(Record& record) {
  for (const Piece& piece : record.pieces) {
    if (piece.in_lane) context_.lanes.at(piece.rank).use_up(piece.number);
  }
  record.pieces.clear();
}

void StreamServer::encode(std::uint64_t number) {
  Record& record = this->record(number);
  record.started = true;
  auto encoded = std::make_shared<Encoded>();
  encoded->record = number;
  encoded->entry = record.entry;
  Chunk& chunk = chunks_.at(record.entry.chunk);
  chunk.records.push_back(encoded);
  if (record.poisoned) {
    on_encoded(number, encoded, {});
    return;
  }
  const Bytes bound = codec_->encoded_bound(record.entry.field);
  held_ += bound;
  ++encoding_;
  // The record stays where it is in the deque until it is done. Only this task reads its pieces meanwhile.
  context_.executor.compute(
      [this, &record, encoded](int worker) { return assemble_and_encode(worker, record, *encoded); },
      [this, number, encoded, bound](const Status& status) {
        --encoding_;
        held_ += static_cast<Bytes>(encoded->bytes.size()) - bound;
        Counters& total = counters();
        total.assemble += encoded->assemble;
        total.encode += encoded->encode;
        total.records += 1;
        total.workspace_peak = std::max(total.workspace_peak, held_);
        context_.statistics.add_span("encode", 1 + encoded->worker, encoded->began,
                                     encoded->began + encoded->assemble + encoded->encode);
        on_encoded(number, encoded, status);
      });
}

Status StreamServer::assemble_and_encode(int worker, const Record& record, Encoded& out) {
  out.worker = worker;
  out.began = context_.line.now();
  std::vector<ByteVector> scratch(record.pieces.size());
  std::vector<std::span<const std::byte>> pieces;
  for (std::size_t i = 0; i < record.pieces.size(); ++i) {
    const Piece& piece = record.pieces[i];
    pieces.push_back(piece.in_lane ? context_.lanes.at(piece.rank).reader().bytes(piece.number, scratch[i])
                                   : std::span<const std::byte>(piece.bytes));
  }
  const std::int64_t begin = context_.line.now();
  const codec::FieldDefinition& field = opening_.fields[static_cast<std::size_t>(record.entry.field)];
  const exchange::RecordPlan& plan = this->plan(record.entry.field);
  const ElementType type = codec_->assembled_type(record.entry.field);
  ByteVector& whole = assembled_[static_cast<std::size_t>(worker)];
  const Index elements = plan.layout().elements();
  whole.resize(static_cast<std::size_t>(elements * size_of(type)));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto rows = plan.rows(record.pieces[i].rank);
    if (type == field.type) {
      layout::place_rows(rows, pieces[i].data(), size_of(type), whole.data());
    } else {
      layout::place_rows_as_f64(rows, pieces[i].data(), field.type, reinterpret_cast<double*>(whole.data()));
    }
  }
  const std::int64_t assembled = context_.line.now();
  auto& encoder = encoders_[static_cast<std::size_t>(worker)];
  if (encoder == nullptr) encoder = codec_->encoder();
  const codec::RecordKey key{record.entry.field, record.entry.level, record.entry.lead,
                             record.entry.interval_start};
  Status status = encoder->encode(key, whole.data(), elements, out.bytes);
  out.assemble = assembled - begin;
  out.encode = context_.line.now() - assembled;
  if (status.is_ok()) return {};
  int owner = -1;
  if (const Index index = encoder->offending(); index >= 0) owner = plan.layout().owner(index);
  if (owner >= 0) status = status.in(cat("rank ", owner));
  return status.at({record.entry.step, record.operation, owner});
}

void StreamServer::on_encoded(std::uint64_t number, const std::shared_ptr<Encoded>& encoded,
                              const Status& status) {
  Record& record = this->record(number);
  finish_pieces(record);
  record.done = true;
  Chunk& chunk = chunks_.at(encoded->entry.chunk);
  chunk.status = first_cause(chunk.status, status);
  chunk.poisoned = chunk.poisoned || record.poisoned;
  chunk.held += static_cast<Bytes>(encoded->bytes.size());
  --chunk.open;
  report(encoded->entry.chunk, chunk);
}

void StreamServer::report(std::uint64_t number, Chunk& chunk) {
  if (chunk.reported || !chunk.closed || chunk.open > 0) return;
  chunk.reported = true;
  // Workers finish in any order, but the file has put order.
  std::ranges::sort(chunk.records, {}, [](const auto& encoded) { return encoded->record; });
  Packer out;
  out.put(Message::encoded).put(opening_.stream).put(number).put(chunk.poisoned);
  chunk.status.pack(out);
  out.put(static_cast<std::int64_t>(chunk.records.size()));
  for (const auto& encoded : chunk.records)
    out.put(encoded->entry.field).put(encoded->entry.level).put(static_cast<Bytes>(encoded->bytes.size()));
  context_.send_to_server(context_.home_of(opening_.reference), out);
}

std::string StreamServer::waiting_for() const {
  std::string text;
  for (const auto& [number, step] : steps_) {
    // The step's end is in the put order: one rank at least has ended it.
    if (!step.complete || step.stamps.size() == homed_.size()) continue;
    text += cat(" ", opening_name_, " step at lead ", step.lead, " s: not ended by compute rank");
    for (const int c : homed_) {
      if (step.stamps.count(c) == 0) text += cat(" ", c);
    }
    text += ";";
  }
  // A descriptor that stays in front of a lane waits for the put order, which one rank makes.
  const bool behind = std::any_of(lanes_.begin(), lanes_.end(), [this](const auto& lane) {
    const Descriptor* front = context_.lanes.at(lane.first).front();
    return front != nullptr && front->stream == opening_.stream && front->kind != Descriptor::Kind::farewell;
  });
  if (behind)
    text += cat(" ", opening_name_, ": others have come further than compute rank ", opening_.reference, ";");
  return text;
}

void StreamServer::retire() {
  while (!records_.empty() && records_.front().done && records_.front().unmatched == 0 &&
         first_record_ < next_work_) {
    records_.pop_front();
    ++first_record_;
  }
}

}  // namespace tailrace::pipeline
