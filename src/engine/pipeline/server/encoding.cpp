// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/encoding.hpp"

#include <algorithm>
#include <cstdint>

#include "formats/codec/missing.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/layout/memory.hpp"

namespace tailrace::pipeline {

void use_up(Lanes& lanes, std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    if (piece.in_lane) lanes.at(piece.rank).use_up(piece.number);
  }
}

bool Claim::begin_move() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::free) return false;
  state_ = State::moving;
  return true;
}

void Claim::end_move() {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::moved;
  }
  end_of_move_.notify_all();
}

bool Claim::take() {
  std::unique_lock lock(mutex_);
  end_of_move_.wait(lock, [this] { return state_ != State::moving; });
  return std::exchange(state_, State::taken) == State::moved;
}

Encoding::Encoding(OpenStream& stream)
    : stream_(stream), workers_(static_cast<std::size_t>(stream.context.executor.count())) {}

void Encoding::announce(const SequenceEntry& record) {
  Chunk& chunk = chunks_[record.chunk];
  chunk.step = record.step;
  ++chunk.open;
}

void Encoding::close_chunk(std::uint64_t number) {
  const auto chunk = chunks_.find(number);
  if (chunk == chunks_.end()) return;
  chunk->second.closed = true;
  report_if_whole(number, chunk->second);
}

bool Encoding::has_room(const SequenceEntry& record) const {
  const Context& context = stream_.context;
  const Bytes bound = stream_.codec->encoded_bound(record.field);
  const bool oldest = chunks_.begin()->first == record.chunk;
  if (!oldest && held_ + bound > context.workspace_per_stream()) return false;
  return encoding_ < 2 * context.executor.count();
}

Bytes Encoding::most_in_pool() const {
  return std::max<Bytes>(stream_.context.workspace_per_stream() - held_, 0);
}

void Encoding::shrink_pool() { pool_.shrink(most_in_pool()); }

void Encoding::take(Gathered gathered) {
  auto work = std::make_shared<Work>();
  work->record = std::move(gathered);
  chunks_.at(work->record.entry.chunk).works.push_back(work);
  if (work->record.poisoned) {
    on_encoded(*work, {});
    return;
  }
  const int field = work->record.entry.field;
  const Bytes bound = stream_.codec->encoded_bound(field);
  if (may_stay(work->record)) {
    work->stays = true;
    ++staying_;
    for (const Piece& piece : work->record.pieces) work->held += static_cast<Bytes>(piece.bytes.size());
    held_ += work->held;
    shrink_pool();
    count(*work);
    on_encoded(*work, {});
    return;
  }
  held_ += bound;
  work->bytes = pool_.kept(bound, most_in_pool());  // if none is kept, the worker allocates, and may fail
  shrink_pool();
  ++encoding_;
  stream_.context.executor.compute([this, work](int worker) { return assemble_and_encode(worker, *work); },
                                   [this, work, bound](const Status& status) {
                                     --encoding_;
                                     held_ += static_cast<Bytes>(work->bytes.size()) - bound;
                                     shrink_pool();
                                     count(*work);
                                     on_encoded(*work, status);
                                   });
}

bool Encoding::may_stay(const Gathered& record) const {
  const auto stays = [this](const Piece& piece) {
    return !piece.in_lane || stream_.lanes.at(piece.rank).reader().may_stay(piece.number);
  };
  const auto plain = stream_.codec->plain(record.entry.field);
  if (stream_.field(record.entry.field).reduction.is_within_level()) return false;
  // The MPI takes whole records from memory that stays as it is.
  const Method& method = stream_.opening.method();
  if (method.is_collective) return false;
  // Writes that are under way need such memory, too. What is sent to the root is put together in its message.
  if (method.is_overlapped && stream_.context.is_home(stream_.opening.reference)) return false;
  return plain && plain->in_small_writes && stream_.plan(record.entry.field).comes_in_stretches() &&
         std::ranges::all_of(record.pieces, stays);
}

/// Returns a stretch of all elements of the record, without memory to put them together in.
layout::Stretch Encoding::stretch_of(const Work& work) const {
  const int field = work.record.entry.field;
  const codec::PlainValues values = *stream_.codec->plain(field);
  const Index elements = stream_.plan(field).layout().elements();
  return {0, elements, size_of(stream_.field(field).type),
          values.order == std::endian::native ? 1 : values.scalar, nullptr};
}

/// Puts a stretch of the record together. Any thread may call it.
void Encoding::put_together(const Work& work, layout::Stretch stretch) const {
  const exchange::RecordPlan& plan = stream_.plan(work.record.entry.field);
  if (!plan.unowned().empty())
    layout::fill_stretch(plan.unowned(), unowned_value(work.record.entry.field, stretch.scalar), stretch);
  for (const Piece& piece : work.record.pieces) {
    if (!plan.meets(piece.rank, stretch)) continue;
    const auto rows = plan.rows(piece.rank);
    if (piece.in_lane)
      stream_.lanes.at(piece.rank).reader().place(piece.number, rows, stretch);
    else
      layout::place_stretch(rows, {piece.bytes.data(), {}, static_cast<Bytes>(piece.bytes.size())}, stretch);
  }
}

/// Returns the bytes of an element that no rank owns, with those of each number of `scalar` bytes reversed.
ByteVector Encoding::unowned_value(int field, Bytes scalar) const {
  const codec::FieldDefinition& definition = stream_.field(field);
  const ByteVector value = codec::missing_element(definition.type, definition.missing.value_or(0));
  if (scalar == 1) return value;
  ByteVector reversed(value.size());
  copy_reversed(reversed.data(), value.data(), std::ssize(value), scalar);
  return reversed;
}

/// Has a worker put a record whose pieces stay together in the workspace.
void Encoding::move(const std::shared_ptr<Work>& work) {
  const Bytes more = work->size - work->held;
  work->held += more;
  held_ += more;
  work->bytes = pool_.take(work->size, most_in_pool());
  shrink_pool();
  Counters& total = stream_.counters();
  total.workspace_peak = std::max(total.workspace_peak, held_ + kept());
  work->moves = true;
  ++moving_;
  moving_bytes_ += work->size;
  stream_.context.executor.compute([this, work](int) { return move_on_worker(*work); },
                                   [this, work, more](const Status&) { on_moved(*work, more); });
}

/// Moves the record, unless a thread has taken it for writing before this worker comes to it.
Status Encoding::move_on_worker(Work& work) {
  if (!work.claim.begin_move()) return {};
  layout::Stretch whole = stretch_of(work);
  whole.out = work.bytes.data();
  const std::int64_t begin = stream_.context.line.now();
  put_together(work, whole);
  work.assemble = stream_.context.line.now() - begin;
  work.moved = true;
  work.claim.end_move();
  return {};
}

void Encoding::on_moved(Work& work, Bytes more) {
  --moving_;
  moving_bytes_ -= work.size;
  work.moves = false;
  stream_.counters().assemble += work.assemble;
  if (work.moved) return let_go(work);
  // The writing thread took the values first. If the record is written by now, it does not count any more.
  if (work.held > 0) {
    work.held -= more;
    held_ -= more;
  }
  pool_.give_back(std::move(work.bytes));
  shrink_pool();
}

/// Gives back the pieces of a record that stays.
void Encoding::let_go(Work& work) {
  if (!std::exchange(work.stays, false)) return;
  --staying_;
  use_up(stream_.lanes, work.record.pieces);
  work.record.pieces.clear();
}

bool Encoding::make_room() {
  const auto waits = [](const auto& lane) { return lane.second.reader().is_full(); };
  if (staying_ == 0 || std::ranges::none_of(stream_.lanes, waits)) return false;
  constexpr Bytes at_once = Bytes{4} << 20;  // afterwards there may be room enough
  const auto fills = [this](const Piece& piece) {
    return piece.in_lane && stream_.lanes.at(piece.rank).reader().is_full();
  };
  bool begun = false;
  for (auto& [number, chunk] : chunks_) {
    const bool oldest = number == chunks_.begin()->first;
    for (const auto& work : chunk.works) {
      if (!work->stays || work->moves || std::ranges::none_of(work->record.pieces, fills)) continue;
      // Lanes free room in their order: no room comes before this chunk is written.
      if (chunk.handed_on) return begun;
      if (moving_ > 0 && moving_bytes_ + work->size > at_once) return begun;
      if (!oldest && held_ + work->size > stream_.context.workspace_per_stream()) return begun;
      move(work);
      begun = true;
    }
  }
  return begun;
}

Status Encoding::assemble_and_encode(int worker, Work& work) {
  const comm::Line& line = stream_.context.line;
  const Gathered& record = work.record;
  work.worker = worker;
  work.began = line.now();
  std::vector<ByteVector>& packed = workers_[static_cast<std::size_t>(worker)].packed;
  packed.resize(std::max(packed.size(), record.pieces.size()));
  std::vector<std::span<const std::byte>> pieces;
  for (std::size_t i = 0; i < record.pieces.size(); ++i)
    pieces.push_back(record.pieces[i].content(stream_.lanes, packed[i]));
  const bool is_reduced = stream_.field(record.entry.field).reduction.is_within_level();
  if (const auto plain = is_reduced ? std::nullopt : stream_.codec->plain(record.entry.field)) {
    work.bytes.resize(static_cast<std::size_t>(stream_.codec->encoded_bound(record.entry.field)));
    assemble_plain(work, *plain, pieces);
    work.assemble = line.now() - work.began;
    return {};
  }
  std::span<std::byte> whole;
  if (is_reduced)
    TR_TRY(reduce(work, pieces, whole));
  else
    whole = assemble(work, pieces);
  const std::int64_t assembled = line.now();
  const Status status = encode(work, whole);
  work.assemble = assembled - work.began;
  work.encode = line.now() - assembled;
  return status;
}

/// Puts the pieces into the record as they are, or with the bytes of their numbers reversed.
void Encoding::assemble_plain(Work& work, codec::PlainValues as, Pieces pieces) {
  const int field = work.record.entry.field;
  const exchange::RecordPlan& plan = stream_.plan(field);
  const Bytes element = size_of(stream_.field(field).type);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto rows = plan.rows(work.record.pieces[i].rank);
    if (as.scalar == 1 || as.order == std::endian::native)
      layout::place_rows(rows, pieces[i].data(), element, work.bytes.data());
    else
      layout::place_rows_reversed(rows, pieces[i].data(), element, as.scalar, work.bytes.data());
  }
  if (plan.unowned().empty()) return;
  const Bytes scalar = as.order == std::endian::native ? 1 : as.scalar;
  layout::fill_rows(plan.unowned(), unowned_value(field, scalar), work.bytes.data());
}

Status Encoding::encode(Work& work, std::span<std::byte> values) {
  auto& encoder = workers_[static_cast<std::size_t>(work.worker)].encoder;
  if (encoder == nullptr) encoder = stream_.codec->encoder();
  const SequenceEntry& entry = work.record.entry;
  const codec::RecordKey key{entry.field, entry.level, entry.lead, entry.interval_start};
  const layout::Layout& layout = stream_.plan(entry.field).layout();
  work.bytes.clear();
  work.bytes.reserve(static_cast<std::size_t>(stream_.codec->encoded_bound(entry.field)));
  const codec::FieldDefinition& field = stream_.field(entry.field);
  Status status = encoder->encode(key, values.data(), field.elements(), work.bytes);
  if (status.is_ok()) {
    work.parts = encoder->parts();
    work.kept_bits = encoder->kept_bits();
    pool_.shorten(work.bytes);
    return {};
  }
  int owner = -1;
  const bool is_reduced = field.reduction.is_within_level();
  if (const Index index = encoder->offending(); index >= 0 && !is_reduced) owner = layout.owner(index);
  if (owner >= 0) status = status.in(cat("rank ", owner));
  return status.at({entry.step, work.record.operation, owner});
}

/// Puts the pieces together, and makes the record of them, in the field's element type: no codec that takes
/// such fields assembles another one. The record lies in the memory of the work's worker.
Status Encoding::reduce(Work& work, Pieces pieces, std::span<std::byte>& whole) {
  const SequenceEntry& entry = work.record.entry;
  const codec::FieldDefinition& field = stream_.field(entry.field);
  const exchange::RecordPlan& plan = stream_.plan(entry.field);
  Worker& worker = workers_[static_cast<std::size_t>(work.worker)];
  const Bytes element = size_of(field.type);
  worker.level.resize(static_cast<std::size_t>(plan.layout().elements() * element));
  for (std::size_t i = 0; i < pieces.size(); ++i)
    layout::place_rows(plan.rows(work.record.pieces[i].rank), pieces[i].data(), element, worker.level.data());
  if (!plan.unowned().empty())
    layout::fill_rows(plan.unowned(), unowned_value(entry.field, 1), worker.level.data());
  worker.assembled.resize(static_cast<std::size_t>(field.elements() * element));
  Status status = worker.reducer.reduce(field, worker.level.data(), worker.assembled.data(),
                                        stream_.weights_of(entry.field, entry.level));
  if (!status.is_ok()) {
    status = status.in(
        cat("field '", field.name, "', level ", field.levels.values[static_cast<std::size_t>(entry.level)]));
    return status.at({entry.step, work.record.operation, -1});
  }
  whole = worker.assembled;
  return {};
}

/// Returns true if the only piece is the record, in the type that the codec takes, and the codec may read it
/// where it lies. A program may have lent an array that is not aligned for its type.
bool Encoding::is_whole(const Work& work, Pieces pieces) const {
  const int field = work.record.entry.field;
  const ElementType type = stream_.field(field).type;
  if (pieces.size() != 1 || !stream_.codec->only_reads(field) || stream_.codec->assembled_type(field) != type)
    return false;
  const exchange::RecordPlan& plan = stream_.plan(field);
  const auto rows = plan.rows(work.record.pieces.front().rank);
  return rows.size() == 1 && rows[0].rows == 1 && rows[0].count == plan.layout().elements() &&
         reinterpret_cast<std::uintptr_t>(pieces[0].data()) % static_cast<std::size_t>(size_of(type)) == 0;
}

/// Puts the pieces together in the memory of the work's worker, in the element type that the codec takes, or
/// returns the piece that is the whole record.
std::span<std::byte> Encoding::assemble(const Work& work, Pieces pieces) {
  const int field = work.record.entry.field;
  if (is_whole(work, pieces))
    // Encoder::encode() takes values that it may change. is_whole() has asked the codec whether it only
    // reads.
    return {const_cast<std::byte*>(pieces[0].data()), pieces[0].size()};
  const ElementType from = stream_.field(field).type;
  const ElementType type = stream_.codec->assembled_type(field);
  const exchange::RecordPlan& plan = stream_.plan(field);
  ByteVector& whole = workers_[static_cast<std::size_t>(work.worker)].assembled;
  whole.resize(static_cast<std::size_t>(plan.layout().elements() * size_of(type)));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto rows = plan.rows(work.record.pieces[i].rank);
    if (type == from) {
      layout::place_rows(rows, pieces[i].data(), size_of(type), whole.data());
    } else {
      layout::place_rows_as_f64(rows, pieces[i].data(), from, reinterpret_cast<double*>(whole.data()));
    }
  }
  if (plan.unowned().empty()) return whole;
  const double missing = codec::missing_in(from, stream_.field(field).missing.value_or(0));
  layout::fill_rows(plan.unowned(),
                    type == from ? unowned_value(field, 1) : codec::missing_element(type, missing),
                    whole.data());
  return whole;
}

void Encoding::count_bits(int number, const codec::KeptBits& kept) {
  const codec::FieldDefinition& field = stream_.field(number);
  Precision& all = stream_.context.statistics.precisions[stream_.name][field.name];
  all.share = field.information.value_or(0);
  all.add(kept);
}

void Encoding::count(const Work& work) {
  Counters& total = stream_.counters();
  total.assemble += work.assemble;
  total.encode += work.encode;
  total.records += 1;
  total.workspace_peak = std::max(total.workspace_peak, held_ + kept());
  if (work.kept_bits) count_bits(work.record.entry.field, *work.kept_bits);
  if (work.stays) return;
  stream_.context.statistics.add_span("encode", 1 + work.worker, work.began,
                                      work.began + work.assemble + work.encode,
                                      [&] { return about(work.record.entry, 1); });
}

Span::About Encoding::about(const SequenceEntry& first, std::size_t records) const {
  const codec::FieldDefinition& field = stream_.field(first.field);
  return {stream_.name, field.name, field.levels.values[static_cast<std::size_t>(first.level)], first.lead,
          static_cast<std::int64_t>(records)};
}

void Encoding::on_encoded(Work& work, const Status& status) {
  if (!work.stays) {
    use_up(stream_.lanes, work.record.pieces);
    work.record.pieces.clear();
  }
  work.size = work.stays ? stream_.codec->encoded_bound(work.record.entry.field)
                         : static_cast<Bytes>(work.bytes.size());
  const std::uint64_t number = work.record.entry.chunk;
  Chunk& chunk = chunks_.at(number);
  chunk.status = first_cause(chunk.status, status);
  chunk.poisoned = chunk.poisoned || work.record.poisoned;
  if (!work.stays) work.held = work.size;
  --chunk.open;
  report_if_whole(number, chunk);
}

void WholeChunk::pack(Packer& out) const {
  out.put(step).put(poisoned);
  status.pack(out);
  out.put(static_cast<std::int64_t>(records.size()));
  for (const placement::Record& each : records)
    out.put(each.field).put(each.level).put(each.offset).put(each.length).put_list<Bytes>(each.parts);
}

WholeChunk WholeChunk::unpack(Unpacker& in) {
  WholeChunk chunk;
  chunk.step = in.get<std::int64_t>();
  chunk.poisoned = in.get<bool>();
  chunk.status = Status::unpack(in);
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
    placement::Record& record = chunk.records.emplace_back();
    record.field = in.get<int>();
    record.level = in.get<Index>();
    record.offset = in.get<Bytes>();
    record.length = in.get<Bytes>();
    record.parts = in.get_list<Bytes>();
  }
  return chunk;
}

void Encoding::report_if_whole(std::uint64_t number, Chunk& chunk) {
  if (!chunk.closed || chunk.open > 0) return;
  // Workers finish in any order, but the file has put order.
  std::ranges::sort(chunk.works, {}, [](const auto& work) { return work->record.number; });
  WholeChunk whole{chunk.step, chunk.poisoned, chunk.status, {}};
  for (const auto& work : chunk.works) {
    const SequenceEntry& entry = work->record.entry;
    whole.records.push_back({entry.field, entry.level, 0, work->size, work->parts});
  }
  if (whole_) return whole_(number, std::move(whole));
  Packer out;
  out.put(Message::encoded).put(stream_.opening.stream).put(number);
  whole.pack(out);
  stream_.send_to_root(out);
}

Encoded Encoding::hand_on(std::uint64_t number) {
  Chunk& chunk = chunks_.at(number);
  chunk.handed_on = true;
  Encoded encoded{chunk.step, {}, {}};
  if (stream_.context.statistics.tracing && !chunk.works.empty())
    encoded.about =
        std::make_shared<const Span::About>(about(chunk.works.front()->record.entry, chunk.works.size()));
  for (const auto& work : chunk.works) {
    EncodedRecord& record = encoded.records.emplace_back();
    if (!work->stays) {
      record.bytes = std::move(work->bytes);
      continue;
    }
    const layout::Stretch whole = stretch_of(*work);
    record.size = work->size;
    record.element = whole.element;
    record.put_together = [this, work, whole](Bytes first, Bytes end, std::byte* out) {
      layout::Stretch stretch = whole;
      stretch.first = first / whole.element;
      stretch.end = end / whole.element;
      stretch.out = out;
      put_together(*work, stretch);
    };
    record.claim = [work]() -> std::optional<ByteVector> {
      if (!work->claim.take()) return std::nullopt;
      return std::move(work->bytes);
    };
  }
  return encoded;
}

void Encoding::forget(std::uint64_t number, Encoded encoded) {
  const auto chunk = chunks_.extract(number);
  for (std::size_t i = 0; i < encoded.records.size(); ++i) {
    const auto& work = chunk.mapped().works[i];
    if (work->record.poisoned) continue;
    ByteVector& bytes = encoded.records[i].bytes;
    // Waits for a worker that still moves a record that is dropped.
    encoded.records[i].settle();
    let_go(*work);
    held_ -= std::exchange(work->held, 0);
    if (bytes.capacity() > 0) pool_.give_back(std::move(bytes));
  }
}

}  // namespace tailrace::pipeline
