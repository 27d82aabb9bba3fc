// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "capi/outputs.hpp"

#include "base/log.hpp"
#include "base/text.hpp"
#include "capi/state.hpp"

namespace tailrace::capi {

namespace {

using streams::Position;

ByteVector pack(const std::vector<Position>& positions) {
  if (positions.empty()) return {};
  Packer out;
  out.put(static_cast<std::int64_t>(positions.size()));
  for (const Position& position : positions) out.put_bytes(position.pack());
  return out.take();
}

Result<std::vector<Position>> unpack(const ByteVector& bytes) {
  std::vector<Position> positions;
  if (bytes.empty()) return positions;
  Unpacker in(bytes);
  const auto count = in.get<std::int64_t>();
  for (std::int64_t i = 0; i < count && in.ok(); ++i) {
    Result<Position> position = Position::unpack(in.get_bytes());
    TR_TRY(position.status());
    positions.push_back(std::move(*position));
  }
  if (!in.ok()) return Status(Code::corrupt, "the positions of the streams are damaged");
  return positions;
}

/// The open stream that a position is of; nullptr once it is closed, when all of it is durable or told as
/// failed.
const streams::Stream* stream_of(const Position& position) {
  for (const tr_stream* handle : state().streams) {
    if (handle->stream->name() == position.pattern && handle->stream->position().run == position.run)
      return handle->stream.get();
  }
  return nullptr;
}

}  // namespace

ByteVector SessionOutputs::positions() const {
  std::vector<Position> positions;
  for (const tr_stream* handle : state().streams) positions.push_back(handle->stream->position());
  for (const auto& [pattern, position] : state().resuming) positions.push_back(position);
  return pack(positions);
}

bool SessionOutputs::are_settled(const ByteVector& positions) const {
  const Result<std::vector<Position>> list = unpack(positions);
  if (!list.is_ok()) return true;
  for (const Position& position : *list) {
    const streams::Stream* const stream = stream_of(position);
    if (stream != nullptr && !stream->is_settled_through(position)) return false;
  }
  return true;
}

ByteVector SessionOutputs::with_failures(const ByteVector& positions) const {
  Result<std::vector<Position>> list = unpack(positions);
  if (!list.is_ok()) return positions;
  for (Position& position : *list) {
    if (const streams::Stream* const stream = stream_of(position); stream != nullptr)
      position = stream->with_failures(position);
  }
  return pack(*list);
}

Status SessionOutputs::resume(const ByteVector& positions) {
  const Result<std::vector<Position>> list = unpack(positions);
  TR_TRY(list.status());
  state().resuming.clear();
  for (const Position& position : *list) {
    for (const tr_stream* handle : state().streams) {
      if (handle->stream->name() == position.pattern)
        return {Code::state, cat("stream ", position.pattern,
                                 " was created before the checkpoint was loaded: it cannot go on "
                                 "where the checkpoint has it; load first")};
    }
    if (state().session->rank() == 0) {
      for (const streams::FailedStep& failed : position.failed)
        log(LogLevel::warn,
            cat("stream ", position.pattern, " lacks the step at lead ", failed.lead, " s: ", failed.text));
    }
    state().resuming.emplace(position.pattern, position);
  }
  return {};
}

}  // namespace tailrace::capi
