// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

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

/// One field of a stream: `options` as tr_stream_define takes them. Arrays are (level, owned elements) in
/// packed order.
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
  bool in_parts = false;  // every rank sends its own indices of indexed layouts
  std::optional<streams::Position> resume = std::nullopt;  // where the stream continues

  static Result<std::shared_ptr<const StreamPlan>> make(std::string pattern, std::string options,
                                                        const std::vector<Variable>& variables,
                                                        bool in_parts = false);
  [[nodiscard]] Index levels(int field) const {
    return static_cast<Index>(fields[static_cast<std::size_t>(field)].definition.levels.values.size());
  }
  /// Returns the largest piece of any rank, and the memory for gathering and encoding one record: the least
  /// lane and workspace.
  [[nodiscard]] Bytes largest_piece() const;
  [[nodiscard]] Bytes largest_record() const;
};

/// A stream of the library, with the fields of a plan, which are named by their numbers.
class PlannedStream {
 public:
  PlannedStream(SessionRank& rank, std::shared_ptr<const StreamPlan> plan)
      : rank_(rank), plan_(std::move(plan)) {}

  /// Also defines the fields.
  Status create();
  void begin(std::int64_t lead) { stream_->begin(lead); }
  /// Puts all levels of a field. If ranks serve themselves, `data` must stay as it is until end().
  void put(int field, const std::byte* data) {
    stream_->put(plan_->fields[static_cast<std::size_t>(field)].definition.name, data, nullptr);
  }
  Status end() { return stream_->end(); }
  Status wait(bool durable) { return stream_->wait(durable); }
  Status close() { return stream_->close(); }
  void latch(const Status& status) { stream_->latch(status); }
  [[nodiscard]] const streams::Stream& stream() const { return *stream_; }
  [[nodiscard]] streams::Position position() const { return stream_->position(); }
  /// Returns the steps that failed, with the reasons, by number.
  [[nodiscard]] std::map<std::int64_t, std::string> failures() const;

 private:
  Status define(int field);

  SessionRank& rank_;
  std::shared_ptr<const StreamPlan> plan_;
  std::unique_ptr<streams::Stream> stream_;
};

}  // namespace tailrace::sim
