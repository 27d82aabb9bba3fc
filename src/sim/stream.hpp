// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "layout/layout.hpp"
#include "pipeline/messages.hpp"
#include "sim/rank.hpp"
#include "streams/parse.hpp"

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
  int reference = 0;
  bool in_parts = false;  // every rank sends its own indices of indexed layouts

  static Result<std::shared_ptr<const StreamPlan>> make(std::string pattern, std::string options,
                                                        const std::vector<Variable>& variables,
                                                        bool in_parts = false);
  [[nodiscard]] Index levels(int field) const {
    return static_cast<Index>(fields[static_cast<std::size_t>(field)].definition.levels.values.size());
  }
  /// The largest piece of any rank, and what gathering and encoding one record takes: the least lane and
  /// workspace.
  [[nodiscard]] Bytes largest_piece() const;
  [[nodiscard]] Bytes largest_record() const;
};

/// An output stream on a simulated rank: the calls of streams::Stream, which see for what each does, with the
/// same verdicts.
class Stream {
 public:
  Stream(Rank& rank, std::shared_ptr<const StreamPlan> plan) : rank_(rank), plan_(std::move(plan)) {}
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
  void latch(const Status& status);
  void on_verdict(pipeline::VerdictKind kind, std::int64_t step, const Status& status);
  [[nodiscard]] std::int64_t durable_through() const { return durable_through_; }
  /// The steps that failed, by number.
  [[nodiscard]] const std::map<std::int64_t, Status>& failures() const { return durable_; }

 private:
  void open();
  Task<> tell(comm::Descriptor::Kind kind, ByteVector bytes);
  Status report(const Status& status);
  Status first_unreported(std::int64_t through);

  Rank& rank_;
  std::shared_ptr<const StreamPlan> plan_;
  std::uint32_t id_ = 0;
  std::vector<std::shared_ptr<const layout::MemoryMap>> maps_;
  bool opened_ = false;
  bool in_step_ = false;
  std::int64_t step_ = -1;
  std::int64_t lead_ = 0;
  std::int64_t operation_ = 0;
  Status latched_;
  std::map<std::int64_t, Status> accepted_;
  std::map<std::int64_t, Status> durable_;
  std::int64_t durable_through_ = -1;
  std::set<std::int64_t> reported_;
  std::optional<Status> finished_;
};

}  // namespace tailrace::sim
