// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/exchange/record_plan.hpp"
#include "engine/pipeline/context.hpp"
#include "formats/codec/codec.hpp"

namespace tailrace::pipeline {

/// A stream that is open on this server, as all its stages know it.
struct OpenStream {
  Context& context;
  Opening opening;
  std::string name;
  std::unique_ptr<codec::Codec> codec{};
  std::vector<exchange::RecordPlan> plans{};  // by layout
  bool takes_offsets = false;                 // servers_take_offsets()
  std::map<std::string, std::vector<double>>
      weights{};  // of fields over dimensions, by the field that has them

  node::LaneKind lane_kind;
  Lanes& lanes;  // in which the ranks' pieces come

  OpenStream(Context& context, Opening opening)
      : context(context),
        opening(std::move(opening)),
        name(this->opening.name()),
        lane_kind(lane_of(this->opening.handoff, context.roster)),
        lanes(context.lanes_of(lane_kind)) {}
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;
  /// Makes the codec, the plans and the weights.
  Status prepare();
  /// Notes for the report how the stream's records come to its files.
  void tell_method();
  /// Returns the weights of one level of a field over dimensions, or none.
  [[nodiscard]] std::span<const double> weights_of(int field, Index level) const;
  [[nodiscard]] const exchange::RecordPlan& plan(int field) const {
    return plans[static_cast<std::size_t>(opening.layout_of[static_cast<std::size_t>(field)])];
  }
  [[nodiscard]] const codec::FieldDefinition& field(int field) const {
    return opening.fields[static_cast<std::size_t>(field)];
  }
  [[nodiscard]] bool owns(const SequenceEntry& record) const { return record.owner == context.me; }
  /// Opens a file of the stream for writing, in the way of the stream's method.
  [[nodiscard]] storage::MakeWriter make_writer() const { return opening.method().make_writer; }
  Counters& counters() { return context.statistics.streams[name]; }
  void send_to_root(const Packer& message) {
    context.send_to_server(context.home_of(opening.reference), message);
  }
  /// Tells the root what became of a step here.
  void say(Message message, std::int64_t step, const Status& status) {
    Packer out;
    out.put(message).put(opening.stream).put(step);
    status.pack(out);
    send_to_root(out);
  }
};

}  // namespace tailrace::pipeline
