// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/taking_offsets.hpp"

#include <utility>

#include "ground/base/text.hpp"

namespace tailrace::pipeline {

void TakingOffsets::take(std::uint64_t number, WholeChunk chunk) {
  Waiting waiting{number, std::move(chunk)};
  const WholeChunk& its = waiting.chunk;
  if (!its.status.is_ok() || its.poisoned || its.size() == 0) return drop(std::move(waiting));
  if (its.step == step_.number) return begin(std::move(waiting));
  waiting_[its.step].push_back(std::move(waiting));
}

void TakingOffsets::on_begun(Unpacker& in) {
  step_.number = in.get<std::int64_t>();
  step_.is_written = in.get<bool>();
  step_.path = in.get_text();
  step_.committed = in.get<Bytes>();
  step_.begin = in.get<Bytes>();
  step_.counter = in.get<int>();
  auto chunks = waiting_.extract(step_.number);
  if (chunks.empty()) return;
  for (Waiting& each : chunks.mapped()) begin(std::move(each));
}

void TakingOffsets::begin(Waiting waiting) {
  if (!step_.is_written) return drop(std::move(waiting));
  const int root = stream_.context.home_of(stream_.opening.reference);
  const Bytes size = waiting.chunk.size();
  stream_.context.offsets->add(root, step_.counter, size,
                               [this, waiting = std::make_shared<Waiting>(std::move(waiting))](
                                   std::int64_t before) { write(std::move(*waiting), before); });
}

/// Nothing may fail between the add and the write but the write itself: then the step fails, and is cut off.
/// The server does not write a chunk to which a counter gives an offset of an earlier step: a verdict may
/// have called the bytes there durable, and no cut brings them back.
void TakingOffsets::write(Waiting waiting, Bytes offset) {
  if (offset < step_.begin)
    return drop(std::move(waiting),
                Status(Code::corrupt,
                       cat(step_.path, ": a counter gave ", offset, " to records of a step that begins at ",
                           step_.begin, ": the servers' offsets are wrong")));
  Placed placed{encoding_.hand_on(waiting.number), step_.path, {}, step_.committed};
  for (placement::Record& record : waiting.chunk.records) {
    record.offset = offset;
    placed.offsets.push_back(offset);
    offset += record.length;
  }
  writing_.write(std::move(placed), [this, waiting = std::make_shared<Waiting>(std::move(waiting))](
                                        const Status& status, Encoded encoded) {
    encoding_.forget(waiting->number, std::move(encoded));
    say(*waiting, status);
  });
}

void TakingOffsets::drop(Waiting waiting, const Status& why) {
  encoding_.forget(waiting.number, encoding_.hand_on(waiting.number));
  waiting.chunk.records.clear();
  say(waiting, why);
}

void TakingOffsets::say(const Waiting& over, const Status& written) {
  Packer out;
  out.put(Message::taken).put(stream_.opening.stream).put(over.number);
  over.chunk.pack(out);
  written.pack(out);
  stream_.send_to_root(out);
}

}  // namespace tailrace::pipeline
