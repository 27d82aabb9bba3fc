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
    plans.emplace_back(std::move(*layout), context.roster, context.me);
  }
  counters().method = &opening.method() - pipeline::methods().data();
  return {};
}

Result<std::unique_ptr<StreamServer>> StreamServer::create(Context& context, Opening opening,
                                                           const std::map<int, std::int64_t>& fences) {
  return guarded([&]() -> Result<std::unique_ptr<StreamServer>> {
    std::unique_ptr<StreamServer> stream(new StreamServer(context, std::move(opening)));
    TR_TRY(stream->stream_.prepare());
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
  Context& context = stream_.context;
  constexpr Bytes head = 64;  // of the message, and of each record
  const auto records = std::ssize(placed.chunk.records);
  auto shared = std::make_shared<Placed>(std::move(placed));
  auto out = std::make_shared<Packer>(context.line.data_memory(shared->chunk.size() + head * (records + 1) +
                                                               static_cast<Bytes>(shared->path.size())));
  out->put(stream_.opening.stream).put(context.me).put(Data::chunk).put(number).put(shared->chunk.step);
  out->put_text(shared->path).put(shared->committed).put(static_cast<std::int64_t>(records));
  context.executor.compute(
      [shared, out](int) {
        return guarded([&]() -> Status {
          ByteVector values;
          for (std::size_t i = 0; i < shared->chunk.records.size(); ++i) {
            EncodedRecord& record = shared->chunk.records[i];
            record.settle();
            out->put(shared->offsets[i]);
            if (!record.put_together) {
              out->put_bytes(record.bytes);
              continue;
            }
            values.resize(static_cast<std::size_t>(record.size));
            record.put_together(0, record.size, values.data());
            out->put_bytes(values);
          }
          return {};
        });
      },
      [this, number, shared, out](const Status& status) {
        Context& sender = stream_.context;
        // A chunk without records tells why it could not be sent.
        if (!status.is_ok()) {
          *out = Packer();
          out->put(stream_.opening.stream)
              .put(sender.me)
              .put(Data::chunk)
              .put(number)
              .put(shared->chunk.step);
          out->put_text(shared->path).put(shared->committed).put(std::int64_t{-1});
          status.pack(*out);
        }
        stream_.counters().sent_bytes += static_cast<std::int64_t>(out->bytes().size());
        sender.line.send_data(sender.rank_of_server(sender.home_of(stream_.opening.reference)), out->take());
        encoding_.forget(number, std::move(shared->chunk));
      });
}

void StreamServer::on_chunk(Unpacker in, const std::shared_ptr<const ByteVector>& message,
                            std::function<void()> done) {
  Placed placed;
  placed.chunk.step = in.get<std::int64_t>();
  placed.path = in.get_text();
  placed.committed = in.get<Bytes>();
  const auto records = in.get<std::int64_t>();
  for (std::int64_t i = 0; i < records; ++i) {
    placed.offsets.push_back(in.get<Bytes>());
    EncodedRecord& record = placed.chunk.records.emplace_back();
    record.sent = in.get_bytes();
    record.message = message;
  }
  const auto written = [this, step = placed.chunk.step, done = std::move(done)](const Status& status,
                                                                                const Encoded&) {
    stream_.say(Message::written, step, status);
    done();
  };
  if (records < 0)
    written(Status::unpack(in), {});
  else
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
