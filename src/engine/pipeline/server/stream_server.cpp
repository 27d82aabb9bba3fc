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
  if (!write || placed.chunk.size() == 0)
    done({}, std::move(placed.chunk));
  else
    writing_.write(std::move(placed), done);
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
