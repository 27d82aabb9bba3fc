// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "sim/stream.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "layout/memory.hpp"
#include "streams/ledger.hpp"

namespace tailrace::sim {

using comm::Descriptor;
using pipeline::VerdictKind;

Result<std::shared_ptr<const StreamPlan>> StreamPlan::make(std::string pattern, std::string options,
                                                           const std::vector<Variable>& variables,
                                                           bool in_parts) {
  Result<streams::StreamRequest> request = streams::parse_stream(pattern, options);
  TR_TRY(request.status());
  auto plan = std::make_shared<StreamPlan>(
      StreamPlan{pattern, options, std::move(*request), {}, {}, nullptr, 0, in_parts});
  Result<std::unique_ptr<codec::Codec>> codec = codec::make_codec(plan->request.definition);
  TR_TRY(codec.status());
  for (const Variable& variable : variables) {
    Result<streams::FieldRequest> field =
        streams::parse_field(variable.name, static_cast<int>(variable.type), variable.layout.shape(),
                             variable.options, plan->request.definition.format);
    TR_TRY(field.status());
    TR_TRY((*codec)->define(field->definition));
    plan->fields.push_back({std::move(field->definition), variable.layout, plan->layouts.size()});
    plan->layouts.push_back(variable.layout);
  }
  plan->codec = std::move(*codec);
  const int ranks = plan->layouts.front().ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    const bool in_all = std::all_of(plan->layouts.begin(), plan->layouts.end(),
                                    [&](const layout::Layout& each) { return each.count(rank) > 0; });
    if (!in_all) continue;
    plan->reference = rank;
    break;
  }
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

// ---- the calls
// -----------------------------------------------------------------------------------------------------------------

Stream::~Stream() {
  if (id_ != 0) rank_.remove_stream(id_);
}

Task<Status> Stream::create() {
  comm::Vote vote;
  vote.call = cat("tr_stream_create(\"", plan_->pattern, "\", \"", plan_->options, "\")");
  for (const StreamPlan::Field& field : plan_->fields) {
    Result<layout::MemoryMap> map =
        layout::memory_map(field.layout, rank_.me(), field.definition.type,
                           {{}, 0, static_cast<Index>(field.definition.levels.values.size()), 0, {}});
    vote.status = first_cause(vote.status, map.status());
    if (map.is_ok()) maps_.push_back(std::make_shared<const layout::MemoryMap>(std::move(*map)));
  }
  const comm::Verdict verdict = co_await rank_.agree(std::move(vote));
  if (verdict.status.is_ok()) id_ = rank_.add_stream(this);
  co_return verdict.status;
}

void Stream::open() {
  opened_ = true;
  const auto& servers = rank_.roster().server_transport;
  pipeline::Opening opening;
  opening.stream = id_;
  opening.reference = plan_->reference;
  opening.definition = plan_->request.definition;
  for (const StreamPlan::Field& field : plan_->fields) {
    opening.fields.push_back(field.definition);
    opening.layout_of.push_back(static_cast<int>(field.layout_number));
  }
  for (std::size_t i = 0; i < plan_->layouts.size(); ++i) {
    const layout::Layout& layout = plan_->layouts[i];
    const bool in_parts = plan_->in_parts && layout.kind() == "indexed";
    Packer packed;
    opening.in_parts.push_back(in_parts ? 1 : 0);
    if (!in_parts) {
      layout.pack(packed);
    } else {
      packed.put_list(std::span<const Index>(layout.shape()));
      std::vector<Index> own;
      for (const layout::Rows& rows : layout.rows(rank_.me())) {
        for (Index row = 0; row < rows.rows; ++row) {
          for (Index k = 0; k < rows.count; ++k) own.push_back(rows.global + row * rows.stride + k);
        }
      }
      Packer part;
      part.put(pipeline::Message::layout_part).put(id_).put(static_cast<int>(i)).put(rank_.me());
      part.put_list(std::span<const Index>(own));
      for (const int server : servers) rank_.port().send(server, comm::Channel::control, part.bytes());
    }
    opening.layouts.push_back(packed.take());
  }
  if (rank_.me() != 0) return;
  // Every run of a simulation is the same: so is its identity.
  opening.ledger = streams::pack_ledger(plan_->pattern, plan_->options,
                                        *Uuid::parse("00000000-0000-4000-8000-000000000001"));
  Packer out;
  out.put(pipeline::Message::open);
  opening.pack(out);
  for (const int server : servers) rank_.port().send(server, comm::Channel::control, out.bytes());
}

void Stream::latch(const Status& status) {
  if (status.is_ok()) return;
  latched_ = first_cause(latched_, status.at({step_, operation_, rank_.me()}));
}

Task<> Stream::tell(Descriptor::Kind kind, ByteVector bytes) {
  Descriptor descriptor;
  descriptor.kind = kind;
  descriptor.stream = id_;
  descriptor.step = step_;
  descriptor.lead = lead_;
  descriptor.stamp = rank_.port().now();
  const std::function<bool()> attempt = [this, &descriptor, &bytes] {
    return rank_.outlet().tell(descriptor, bytes);
  };
  co_await rank_.publish(attempt);
}

Task<> Stream::begin(std::int64_t lead) {
  if (in_step_) {
    latch(Status(Code::state, "tr_stream_begin inside of a step"));
    co_return;
  }
  if (!opened_) open();
  in_step_ = true;
  ++step_;
  operation_ = 0;
  if (step_ > 0 && lead < lead_) {
    latch(Status(Code::order,
                 cat("lead ", lead, " s goes back in time: the step before was at ", lead_, " s")));
  }
  lead_ = lead;
  co_await tell(Descriptor::Kind::begin, {});
  rank_.pump();
}

Task<> Stream::put(int field, const std::byte* data) {
  const auto number = static_cast<std::size_t>(field);
  const std::shared_ptr<const layout::MemoryMap> map = maps_[number];
  if (!in_step_) {
    latch(Status(Code::state,
                 cat("tr_stream_put('", plan_->fields[number].definition.name, "') outside of a step")));
    co_return;
  }
  if (map->count() == 0 && rank_.me() != plan_->reference) co_return;
  for (Index level = 0; level < plan_->levels(field); ++level, ++operation_) {
    Descriptor descriptor;
    descriptor.kind = Descriptor::Kind::piece;
    descriptor.stream = id_;
    descriptor.step = step_;
    descriptor.field = field;
    descriptor.level = static_cast<std::int32_t>(level);
    const std::function<bool()> attempt = [this, &descriptor, &map, data] {
      return rank_.outlet().put(descriptor, map, data, true);
    };
    co_await rank_.publish(attempt);
  }
  rank_.statistics().streams[plan_->pattern].captured_bytes +=
      plan_->levels(field) * map->count() * map->element;
}

Task<Status> Stream::end() {
  if (!in_step_) {
    latch(Status(Code::state, "tr_stream_end without tr_stream_begin"));
    co_await begin(lead_);
  }
  in_step_ = false;
  const Status mine = std::exchange(latched_, Status());
  Packer packed;
  mine.pack(packed);
  packed.put(rank_.statistics().streams[plan_->pattern]);
  co_await tell(Descriptor::Kind::end, packed.take());
  const bool inline_run = rank_.roster().self_served;
  const std::int64_t needed = inline_run ? step_ : step_ - 1;
  const std::function<bool()> known = [this, needed, inline_run] {
    if (needed < 0) return true;
    return inline_run ? durable_through_ >= needed : accepted_.count(needed) != 0;
  };
  co_await rank_.wait(known, cat("the verdict of step ", needed, " of ", plan_->pattern));
  if (inline_run) co_return first_unreported(step_);
  if (needed < 0) co_return Status();
  co_return report(accepted_.at(needed));
}

Status Stream::report(const Status& status) {
  if (status.is_ok() || !reported_.insert(status.cause().step).second) return {};
  return status;
}

Status Stream::first_unreported(std::int64_t through) {
  Status first;
  int others = 0;
  for (const auto& [step, status] : durable_) {
    if (step > through) break;
    const Status told = report(status);
    if (told.is_ok()) continue;
    if (first.is_ok())
      first = told;
    else
      ++others;
  }
  if (others == 0) return first;
  // One call tells of all: the caller may not make another one.
  return Status(first.code(),
                cat(first.text(), "; ", others, others == 1 ? " later step" : " later steps", " failed too"),
                first.error_number())
      .at(first.cause());
}

Task<Status> Stream::wait(bool durable) {
  const std::function<bool()> known = [this, durable] {
    return step_ < 0 || (durable ? durable_through_ >= step_ : accepted_.count(step_) != 0);
  };
  co_await rank_.wait(known, cat(durable ? "durable" : "captured", " steps of ", plan_->pattern));
  if (durable) co_return first_unreported(step_);
  co_return step_ < 0 ? Status() : report(accepted_.at(step_));
}

Task<Status> Stream::close() {
  Status misuse;
  if (in_step_) {
    latch(Status(Code::state, "tr_stream_close inside of a step: the step is dropped"));
    misuse = co_await end();
  }
  if (!opened_) co_return misuse;
  co_await tell(Descriptor::Kind::close, {});
  const std::function<bool()> finished = [this] { return finished_.has_value(); };
  co_await rank_.wait(finished, cat("durable steps of ", plan_->pattern));
  if (!misuse.is_ok()) co_return misuse;
  const Status status = first_unreported(step_);
  co_return status.is_ok() ? *finished_ : status;
}

void Stream::on_verdict(VerdictKind kind, std::int64_t step, const Status& status) {
  switch (kind) {
    case VerdictKind::accepted:
      accepted_[step] = status;
      while (!accepted_.empty() && accepted_.begin()->first < step_ - 2) accepted_.erase(accepted_.begin());
      break;
    case VerdictKind::durable:
      durable_through_ = step;
      if (!status.is_ok()) durable_[step] = status;
      break;
    case VerdictKind::finished:
      finished_ = status;
      break;
  }
}

}  // namespace tailrace::sim
