// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "layout/layout.hpp"
#include "pipeline/stream_client.hpp"
#include "sim/rank.hpp"
#include "streams/parse.hpp"
#include "streams/resume.hpp"

namespace tailrace::sim {

/// One field of a stream: `options` as tr_stream_define takes them. Arrays are (level, owned elements) in
/// packed order.
struct Variable {
  std::string name;
  layout::Layout layout;
  std::string options;
  ElementType type = ElementType::f32;
};

/// Everything that is the same on all ranks, made once: thousands of ranks share it.
struct StreamPlan {
  struct Field {
    codec::FieldDefinition definition;
    layout::Layout layout;
    std::size_t layout_number = 0;
  };
  std::string pattern;
  std::string options;
  streams::StreamRequest request;
  std::vector<Field> fields;
  std::vector<layout::Layout> layouts;
  std::shared_ptr<const codec::Codec> codec;
  bool in_parts = false;  // every rank sends its own indices of indexed layouts
  std::optional<streams::Position> resume = std::nullopt;  // where the stream continues

  static Result<std::shared_ptr<const StreamPlan>> make(std::string pattern, std::string options,
                                                        const std::vector<Variable>& variables,
                                                        bool in_parts = false);
  [[nodiscard]] Index levels(int field) const {
    return static_cast<Index>(fields[static_cast<std::size_t>(field)].definition.levels.values.size());
  }
  [[nodiscard]] bool is_in_parts(const layout::Layout& layout) const {
    return in_parts && layout.kind() == "indexed";
  }
  /// The largest piece of any rank, and what gathering and encoding one record takes: the least lane and
  /// workspace.
  [[nodiscard]] Bytes largest_piece() const;
  [[nodiscard]] Bytes largest_record() const;
};

/// An output stream on a simulated rank: the calls of streams::Stream, which see for what each does, around
/// the same class for their numbers and verdicts.
class Stream {
 public:
  Stream(Rank& rank, std::shared_ptr<const StreamPlan> plan);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Task<Status> create();
  Task<> begin(std::int64_t lead);
  /// All levels of a field; `data` must stay as it is until end() where ranks serve themselves.
  Task<> put(int field, const std::byte* data);
  Task<Status> end();
  Task<Status> wait(bool durable);
  Task<Status> close();
  /// An error of this rank alone, kept for end().
  void latch(const Status& status) { client_.latch(status); }
  [[nodiscard]] std::int64_t durable_through() const { return client_.durable_through(); }
  /// The steps that failed, by number.
  [[nodiscard]] const std::map<std::int64_t, Status>& failures() const { return client_.failures(); }

 private:
  void open();

  Rank& rank_;
  std::shared_ptr<const StreamPlan> plan_;
  pipeline::StreamClient client_;
  std::vector<std::shared_ptr<const layout::MemoryMap>> maps_;
};

}  // namespace tailrace::sim
