// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "planned_stream.hpp"

#include <algorithm>

#include "faces/streams/definition/parse.hpp"
#include "formats/registry/registry.hpp"

namespace tailrace::sim {

Result<std::shared_ptr<const StreamPlan>> StreamPlan::make(std::string pattern, std::string options,
                                                           const std::vector<Variable>& variables,
                                                           bool in_parts) {
  const Result<streams::StreamRequest> request = streams::parse_stream(pattern, options);
  TR_TRY(request.status());
  Result<std::unique_ptr<codec::Codec>> codec = formats::make_codec(request->definition);
  TR_TRY(codec.status());
  auto plan = std::make_shared<StreamPlan>(
      StreamPlan{std::move(pattern), std::move(options), request->definition.format, {}, nullptr, in_parts});
  for (const Variable& variable : variables) {
    Result<streams::FieldRequest> field =
        streams::parse_field(variable.name, static_cast<int>(variable.type), variable.layout.shape(),
                             variable.options, request->definition.format);
    TR_TRY(field.status());
    TR_TRY((*codec)->define(field->definition));
    plan->fields.push_back({std::move(field->definition), variable.layout, variable.options});
  }
  plan->codec = std::move(*codec);
  return std::shared_ptr<const StreamPlan>(std::move(plan));
}

Bytes StreamPlan::largest_piece() const {
  Bytes largest = 0;
  for (const Field& field : fields) {
    for (int rank = 0; rank < field.layout.ranks(); ++rank) {
      largest = std::max(largest, field.layout.count(rank) * size_of(field.definition.type));
    }
  }
  return largest;
}

Bytes StreamPlan::largest_record() const {
  Bytes largest = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const int number = static_cast<int>(i);
    largest = std::max(largest, codec->encoded_bound(number) + codec->working_bytes(number) +
                                    fields[i].definition.elements() * size_of(codec->assembled_type(number)));
  }
  return largest;
}

namespace {

/// Returns the global indices that a rank owns, in packed order.
std::vector<Index> indices_of(const layout::Layout& layout, int rank) {
  std::vector<Index> own;
  for (const layout::Rows& rows : layout.rows(rank)) {
    for (Index row = 0; row < rows.rows; ++row) {
      for (Index k = 0; k < rows.count; ++k) own.push_back(rows.global + row * rows.stride + k);
    }
  }
  return own;
}

}  // namespace

Status PlannedStream::create(std::size_t fields) {
  Result<std::unique_ptr<streams::Stream>> made =
      streams::Stream::create(rank_.session(), plan_->pattern, plan_->options, plan_->resume);
  TR_TRY(made.status());
  stream_ = std::move(*made);
  for (std::size_t field = 0; field < std::min(fields, plan_->fields.size()); ++field)
    TR_TRY(define(static_cast<int>(field)));
  return {};
}

Status PlannedStream::define(int field) {
  const StreamPlan::Field& plan = plan_->fields[static_cast<std::size_t>(field)];
  streams::PlacedLayout placed{plan.layout, field, {}, {}, {}, false};
  if (plan_->in_parts && plan.layout.kind() == "indexed") {
    placed.in_parts = true;
    placed.own_indices = indices_of(plan.layout, rank_.rank());
  }
  return stream_->define(plan.definition.name, &placed, static_cast<int>(plan.definition.type), plan.options);
}

std::map<std::int64_t, std::string> PlannedStream::failures() const {
  std::map<std::int64_t, std::string> failures;
  for (const streams::FailedStep& each : stream_->position().failed) failures[each.step] = each.text;
  return failures;
}

}  // namespace tailrace::sim
