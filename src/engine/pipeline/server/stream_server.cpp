// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/stream_server.hpp"

namespace tailrace::pipeline {

Status OpenStream::prepare() {
  Result<std::unique_ptr<codec::Codec>> made = opening.codec();
  TR_TRY(made.status());
  codec = std::move(*made);
  for (const ByteVector& packed : opening.layouts) {
    Unpacker in(packed);
    Result<layout::Layout> layout = layout::Layout::unpack(in);
    TR_TRY(layout.status());
    plans.emplace_back(std::move(*layout), context.roster_of(lane_kind), context.me);
  }
  takes_offsets = servers_take_offsets(opening.method(), *codec);
  if (takes_offsets && !context.offsets) context.make_offsets();
  tell_method();
  for (const codec::FieldDefinition& each : opening.fields) {
    const std::string& name = each.reduction.weights;
    if (!each.reduction.is_weighted() || weights.count(name) > 0) continue;
    const auto its = std::ranges::find(opening.fields, name, &codec::FieldDefinition::name);
    if (its != opening.fields.end()) weights[name] = operations::weights_of(*its);
  }
  return {};
}

/// An earlier stream of the session may have had the same name and another method.
void OpenStream::tell_method() {
  counters().method = &opening.method() - pipeline::methods().data();
  counters().handoff = static_cast<std::int64_t>(opening.handoff);
  OffsetsBy by = OffsetsBy::none;
  if (takes_offsets && context.roster.servers() > 1)
    by = context.offsets->are_one_sided() ? OffsetsBy::one_sided : OffsetsBy::messages;
  counters().offsets = static_cast<std::int64_t>(by);
  if (opening.why_method.empty())
    context.statistics.why_method.erase(name);
  else
    context.statistics.why_method[name] = opening.why_method;
}

std::span<const double> OpenStream::weights_of(int number, Index level) const {
  const codec::Reduction& reduction = field(number).reduction;
  if (!reduction.is_weighted()) return {};
  const auto found = weights.find(reduction.weights);
  if (found == weights.end()) return {};
  const std::span<const double> all(found->second);
  return all.subspan(std::min(all.size(), static_cast<std::size_t>(level * reduction.weight_level)));
}

Result<std::unique_ptr<StreamServer>> StreamServer::create(Context& context, Opening opening,
                                                           const std::map<int, std::int64_t>& fences) {
  return guarded([&]() -> Result<std::unique_ptr<StreamServer>> {
    std::unique_ptr<StreamServer> stream(new StreamServer(context, std::move(opening)));
    TR_TRY(stream->stream_.prepare());
    if (stream->stream_.takes_offsets) {
      stream->encoding_.tell([&to = stream->taking_](std::uint64_t number, WholeChunk chunk) {
        to.take(number, std::move(chunk));
      });
    }
    for (const auto& [c, number] : fences) stream->on_fence(c, number);
    return stream;
  });
}

void StreamServer::on_sequence(std::span<const SequenceEntry> entries) {
  for (const SequenceEntry& entry : entries) {
    order_.on_entry(entry);
    if (entry.kind == SequenceEntry::Kind::end_chunk) encoding_.close_chunk(entry.chunk);
  }
}

void StreamServer::on_place(Unpacker& in) {
  const auto chunk = in.get<std::uint64_t>();
  const bool write = in.get<bool>();
  Placed placed{encoding_.hand_on(chunk), {}, {}, 0};
  placed.offsets = in.get_list<Bytes>();
  placed.path = in.get_text();
  placed.committed = in.get<Bytes>();
  const auto done = [this, chunk, step = placed.chunk.step](const Status& status, Encoded encoded) {
    encoding_.forget(chunk, std::move(encoded));
    stream_.say(Message::written, step, status);
  };
  // StreamRoot::comes_here() asks the same on the root.
  const bool is_sent = stream_.opening.method().is_sent &&
                       stream_.context.home_of(stream_.opening.reference) != stream_.context.me;
  if (!write || placed.chunk.size() == 0)
    done({}, std::move(placed.chunk));
  else if (is_sent)
    send_chunk(chunk, std::move(placed));
  else
    writing_.write(std::move(placed), done);
}

/// Packs the chunk on a worker and sends it to the root, which says what became of it.
void StreamServer::send_chunk(std::uint64_t number, Placed placed) {
  struct Work {
    Placed placed;
    Packer message;
    std::int64_t begin = 0, end = 0;
    int worker = 0;
  };
  auto work = std::make_shared<Work>();
  work->placed = std::move(placed);
  stream_.context.executor.compute(
      [this, number, work](int worker) {
        work->worker = worker;
        work->begin = stream_.context.line.now();
        Status packed = guarded([&]() -> Status {
          work->message = packed_chunk(number, work->placed);
          return {};
        });
        work->end = stream_.context.line.now();
        return packed;
      },
      [this, number, work](const Status& status) {
        Context& context = stream_.context;
        const int root = context.home_of(stream_.opening.reference);
        if (!status.is_ok()) work->message = refused_chunk(number, work->placed.chunk.step, status);
        const auto node_of = [&](int server) {
          return context.roster.server_node[static_cast<std::size_t>(server)];
        };
        if (node_of(root) != node_of(context.me))
          stream_.counters().sent_bytes += static_cast<std::int64_t>(work->message.bytes().size());
        stream_.counters().assemble += work->end - work->begin;
        context.statistics.add_span("pack", 1 + work->worker, work->begin, work->end,
                                    work->placed.chunk.about);
        context.line.send_data(context.rank_of_server(root), work->message.take());
        encoding_.forget(number, std::move(work->placed.chunk));
      });
}

/// On a worker. Returns the message that on_chunk() takes, which has its head already.
Packer StreamServer::packed_chunk(std::uint64_t number, Placed& placed) const {
  constexpr Bytes head = 64;  // of the message, and of each record
  std::vector<EncodedRecord>& records = placed.chunk.records;
  Packer out(stream_.context.line.data_memory(placed.chunk.size() + head * (std::ssize(records) + 1) +
                                              static_cast<Bytes>(placed.path.size())));
  out.put(stream_.opening.stream).put(stream_.context.me).put(Data::chunk).put(number);
  out.put(placed.chunk.step).put(static_cast<std::int64_t>(records.size()));
  out.put_text(placed.path).put(placed.committed);
  (placed.chunk.about ? *placed.chunk.about : Span::About()).pack(out);
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].settle();
    out.put(placed.offsets[i]);
    if (records[i].put_together)
      records[i].put_together(0, records[i].size,
                              out.put_room(static_cast<std::size_t>(records[i].size)).data());
    else
      out.put_bytes(records[i].bytes);
  }
  return out;
}

/// Returns the message that tells why a chunk could not be sent: it has less than no records.
Packer StreamServer::refused_chunk(std::uint64_t number, std::int64_t step, const Status& why) const {
  Packer out;
  out.put(stream_.opening.stream).put(stream_.context.me).put(Data::chunk).put(number);
  out.put(step).put(std::int64_t{-1});
  why.pack(out);
  return out;
}

void StreamServer::on_chunk(Unpacker in, const std::shared_ptr<const ByteVector>& message,
                            std::function<void()> done) {
  Placed placed;
  placed.chunk.step = in.get<std::int64_t>();
  const auto records = in.get<std::int64_t>();
  const auto written = [this, step = placed.chunk.step, done = std::move(done)](const Status& status,
                                                                                const Encoded&) {
    stream_.say(Message::written, step, status);
    done();
  };
  if (records < 0) return written(Status::unpack(in), {});
  placed.path = in.get_text();
  placed.committed = in.get<Bytes>();
  if (const Span::About about = Span::About::unpack(in); about.records > 0)
    placed.chunk.about = std::make_shared<const Span::About>(about);
  for (std::int64_t i = 0; i < records; ++i) {
    placed.offsets.push_back(in.get<Bytes>());
    EncodedRecord& record = placed.chunk.records.emplace_back();
    record.sent = in.get_bytes();
    record.message = message;
  }
  writing_.write(std::move(placed), written);
}

void StreamServer::on_sync(Unpacker& in) {
  const auto step = in.get<std::int64_t>();
  const std::string path = in.get_text();
  std::vector<codec::Patch> patches;
  for (auto count = in.get<std::int64_t>(); count > 0; --count) {
    const auto offset = in.get<Bytes>();
    const auto bytes = in.get_bytes();
    patches.push_back({offset, ByteVector(bytes.begin(), bytes.end()), in.get<std::int64_t>()});
  }
  writing_.sync(path, step, std::move(patches),
                [this, step](const Status& status) { stream_.say(Message::synced, step, status); });
}

void StreamServer::on_verdict(VerdictKind kind, std::int64_t step, const Status& status) {
  if (kind == VerdictKind::durable) writing_.on_verdict(step, status);
  if (kind == VerdictKind::finished) writing_.forget_files();
  order_.on_verdict(kind, step, status);
}

bool StreamServer::advance() {
  const bool ordered = order_.advance();
  const bool gathered = gathering_.advance();
  return encoding_.make_room() || ordered || gathered;
}

}  // namespace tailrace::pipeline
