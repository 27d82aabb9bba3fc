// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faces/streams/stream.hpp"
#include "formats/codec/codec.hpp"
#include "ground/layout/layout.hpp"
#include "session_world.hpp"

namespace tailrace::sim {

/// One field of a stream. `options` are those of tr_stream_define. A rank's array of the field has the shape
/// (level, owned elements) and packed order.
struct Variable {
  std::string name;
  layout::Layout layout;
  std::string options;
  ElementType type = ElementType::f32;
};

/// The definition of a stream, the same on all ranks.
struct StreamPlan {
  struct Field {
    codec::FieldDefinition definition;
    layout::Layout layout;
    std::string options;
  };
  std::string pattern;
  std::string options;
  std::string format;
  std::vector<Field> fields;
  std::shared_ptr<const codec::Codec> codec;
  bool in_parts = false;  // ranks know only their own indices of indexed layouts, and send them
  std::optional<streams::Position> resume = std::nullopt;  // the position at which the stream goes on

  static Result<std::shared_ptr<const StreamPlan>> make(std::string pattern, std::string options,
                                                        const std::vector<Variable>& variables,
                                                        bool in_parts = false);
  [[nodiscard]] Index levels(int field) const {
    return static_cast<Index>(fields[static_cast<std::size_t>(field)].definition.levels.values.size());
  }
  /// Return the bytes of the largest piece of any rank, which a lane must hold, and the bytes that gathering
  /// and encoding one record take, which the workspace must hold.
  [[nodiscard]] Bytes largest_piece() const;
  [[nodiscard]] Bytes largest_record() const;
};

/// A stream of the library with the fields of a plan. A field is named by its number in the plan.
class PlannedStream {
 public:
  PlannedStream(SessionRank& rank, std::shared_ptr<const StreamPlan> plan)
      : rank_(rank), plan_(std::move(plan)) {}

  /// Creates the stream, and defines its first `fields` fields; without it, all of them.
  Status create(std::size_t fields = std::numeric_limits<std::size_t>::max());
  /// Defines the field with this number, which create() has left out.
  Status define(int field);
  void begin(std::int64_t lead) { stream_->begin(lead); }
  /// Puts all levels of a field. If ranks serve themselves, `data` must stay as it is until end().
  void put(int field, const std::byte* data) {
    (void)stream_->put(plan_->fields[static_cast<std::size_t>(field)].definition.name, data, nullptr);
  }
  Status end() { return stream_->end(); }
  Status wait(bool durable) { return stream_->wait(durable); }
  Status close() { return stream_->close(); }
  void latch(const Status& status) { stream_->latch(status); }
  [[nodiscard]] const streams::Stream& stream() const { return *stream_; }
  [[nodiscard]] streams::Position position() const { return stream_->position(); }
  /// Returns by step number the reasons of the steps that have failed.
  [[nodiscard]] std::map<std::int64_t, std::string> failures() const;

 private:
  SessionRank& rank_;
  std::shared_ptr<const StreamPlan> plan_;
  std::unique_ptr<streams::Stream> stream_;
};

}  // namespace tailrace::sim
