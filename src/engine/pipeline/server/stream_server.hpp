// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/pipeline/server/collective_writing.hpp"
#include "engine/pipeline/server/gathering.hpp"
#include "engine/pipeline/server/put_order.hpp"
#include "engine/pipeline/server/taking_offsets.hpp"
#include "engine/pipeline/server/writing.hpp"

namespace tailrace::pipeline {

/// One stream on one server: its stages, and which of them each message is for. Records go through PutOrder,
/// Gathering and Encoding; the root places them; Writing takes them from there. It is a state machine: every
/// method returns at once, and `advance` moves on what has become possible.
class StreamServer {
 public:
  /// `fences` has, for each compute rank whose lane is read here, the number of the last agreement that it
  /// has come to.
  static Result<std::unique_ptr<StreamServer>> create(Context& context, Opening opening,
                                                      const std::map<int, std::int64_t>& fences);

  [[nodiscard]] const Opening& opening() const { return stream_.opening; }
  [[nodiscard]] const codec::Codec& codec() const { return *stream_.codec; }
  /// Returns the kind of the lanes in which its pieces come, and the lanes.
  [[nodiscard]] node::LaneKind lane_kind() const { return stream_.lane_kind; }
  [[nodiscard]] Lanes& lanes() { return stream_.lanes; }
  /// Takes the next descriptor of compute rank `c`. Returns false if the put order is not known that far yet.
  bool on_descriptor(int c, const node::Descriptor& descriptor) {
    return order_.on_descriptor(c, descriptor);
  }
  void on_fence(int c, std::int64_t number) { order_.on_fence(c, number); }
  [[nodiscard]] bool has_closed(int c) const { return order_.has_closed(c); }
  void on_sequence(std::span<const SequenceEntry> entries);
  void on_pieces(int sender, Unpacker in, const std::shared_ptr<const ByteVector>& message) {
    gathering_.take_sent(sender, in, message);
  }
  [[nodiscard]] std::vector<int> waits_for() const { return gathering_.waits_for(); }
  [[nodiscard]] bool waits_for(int server) const { return gathering_.waits_for(server); }
  void on_place(Unpacker& in);
  /// On the root, with Method::is_sent: takes a chunk of another server, whose bytes are in `message`, and
  /// writes it. `done` runs when it is written, or has failed.
  void on_chunk(Unpacker in, const std::shared_ptr<const ByteVector>& message, std::function<void()> done);
  /// With Method::takes_offsets: takes what the root says of a step.
  void on_begun(Unpacker& in) { taking_.on_begun(in); }
  void on_sync(Unpacker& in);
  /// Returns the stage that makes the stream's collective calls.
  [[nodiscard]] CollectiveWriting& collective() { return collective_; }
  void on_verdict(VerdictKind kind, std::int64_t step, const Status& status);
  bool advance();
  /// True if records or chunks of this server cannot go on before another server sends something.
  [[nodiscard]] bool waits_for_servers() const {
    return gathering_.lacks_pieces_of_servers() || encoding_.waits_for_place();
  }
  /// Says that the server has another stream, with which this one shares the workspace.
  void on_stream_added() { encoding_.shrink_pool(); }
  [[nodiscard]] bool is_closed() const { return order_.is_closed() && encoding_.is_idle(); }
  [[nodiscard]] std::string waiting_for() const { return order_.waiting_for(); }

 private:
  StreamServer(Context& context, Opening opening) : stream_(context, std::move(opening)) {}
  void send_chunk(std::uint64_t number, Placed placed);
  Packer packed_chunk(std::uint64_t number, Placed& placed) const;
  [[nodiscard]] Packer refused_chunk(std::uint64_t number, std::int64_t step, const Status& why) const;

  OpenStream stream_;
  Encoding encoding_{stream_};
  Gathering gathering_{stream_, encoding_};
  PutOrder order_{stream_, gathering_};
  Writing writing_{stream_};
  CollectiveWriting collective_{stream_, encoding_};
  TakingOffsets taking_{stream_, encoding_, writing_};
};

}  // namespace tailrace::pipeline
