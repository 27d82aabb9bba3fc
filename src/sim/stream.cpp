// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "sim/stream.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "layout/memory.hpp"
#include "streams/ledger.hpp"

namespace tailrace::sim {

using comm::Descriptor;

Result<std::shared_ptr<const StreamPlan>> StreamPlan::make(std::string pattern, std::string options,
                                                           const std::vector<Variable>& variables,
                                                           bool in_parts) {
  Result<streams::StreamRequest> request = streams::parse_stream(pattern, options);
  TR_TRY(request.status());
  auto plan = std::make_shared<StreamPlan>(
      StreamPlan{pattern, options, std::move(*request), {}, {}, nullptr, in_parts});
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

Stream::Stream(Rank& rank, std::shared_ptr<const StreamPlan> plan)
    : rank_(rank), plan_(std::move(plan)), client_(rank.line(), rank.roster(), rank.me(), plan_->pattern) {
  client_.on_wanted([this] { open(); });
  if (plan_->resume && plan_->resume->lead) client_.continue_behind(*plan_->resume->lead);
}

Stream::~Stream() {
  if (client_.id() != 0) rank_.client().remove(client_.id());
}

namespace {

/// The indices of a rank, in packed order.
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
  if (!verdict.status.is_ok()) co_return verdict.status;
  rank_.client().add(client_);
  for (std::size_t i = 0; i < plan_->layouts.size(); ++i) {
    const layout::Layout& layout = plan_->layouts[i];
    if (plan_->is_in_parts(layout)) client_.send_part(static_cast<int>(i), indices_of(layout, rank_.me()));
  }
  co_return Status();
}

void Stream::open() {
  pipeline::Opening opening;
  opening.definition = plan_->request.definition;
  // Every run of a simulation is the same: so is its identity.
  opening.ledger = streams::pack_ledger(plan_->pattern, plan_->options,
                                        *Uuid::parse("00000000-0000-4000-8000-000000000001"), plan_->resume);
  if (plan_->resume) opening.previous_lead = plan_->resume->lead.value_or(0);
  std::vector<pipeline::StreamClient::Field> fields;
  for (const StreamPlan::Field& field : plan_->fields) {
    fields.push_back({&field.definition, plan_->codec->prepared(static_cast<int>(fields.size())),
                      &field.layout, static_cast<std::int64_t>(field.layout_number),
                      plan_->is_in_parts(field.layout)});
  }
  client_.open(std::move(opening), fields);
}

Task<> Stream::begin(std::int64_t lead) {
  if (!client_.begin(lead)) co_return;
  if (!client_.is_open()) open();
  co_await rank_.tell({client_.descriptor(Descriptor::Kind::begin), {}});
  rank_.pump();
}

Task<> Stream::put(int field, const std::byte* data) {
  const auto number = static_cast<std::size_t>(field);
  const std::shared_ptr<const layout::MemoryMap> map = maps_[number];
  if (client_.out_of_step()) co_return;
  if (!client_.in_step()) {
    latch(Status(Code::state,
                 cat("tr_stream_put('", plan_->fields[number].definition.name, "') outside of a step")));
    co_return;
  }
  if (map->count() == 0 && rank_.me() != client_.reference()) co_return;
  for (Index level = 0; level < plan_->levels(field); ++level, client_.was_put()) {
    const Descriptor descriptor = client_.piece(field, level);
    const std::function<bool()> attempt = [this, &descriptor, &map, data] {
      return rank_.outlet().put(descriptor, map, data, true);
    };
    co_await rank_.publish(attempt);
  }
  rank_.statistics().streams[plan_->pattern].captured_bytes +=
      plan_->levels(field) * map->count() * map->element;
}

Task<Status> Stream::end() {
  if (!client_.in_step()) {
    latch(Status(Code::state, "tr_stream_end without tr_stream_begin"));
    co_await begin(client_.lead());
  }
  pipeline::Told ending = client_.end(rank_.statistics().streams[plan_->pattern]);
  if (client_.out_of_step()) co_return *client_.out_of_step();
  co_await rank_.tell(std::move(ending));
  const std::function<bool()> known = [this] { return client_.end_is_known(); };
  co_await rank_.wait(known, cat("the verdict of step ", client_.awaited_step(), " of ", plan_->pattern));
  co_return client_.end_verdict();
}

Task<Status> Stream::wait(bool durable) {
  if (client_.out_of_step()) co_return *client_.out_of_step();
  if (client_.in_step()) {
    const Status misuse(Code::state, "tr_stream_wait inside of a step");
    latch(misuse);
    co_return misuse;
  }
  const std::function<bool()> known = [this, durable] { return client_.wait_is_known(durable); };
  co_await rank_.wait(known, cat(durable ? "durable" : "captured", " steps of ", plan_->pattern));
  co_return client_.wait_verdict(durable);
}

Task<Status> Stream::close() {
  Status misuse = client_.out_of_step().value_or(Status());
  if (misuse.is_ok()) {
    if (client_.in_step()) {
      latch(Status(Code::state, "tr_stream_close inside of a step: the step is dropped"));
      misuse = co_await end();
    }
    comm::Vote vote;
    vote.call = cat("tr_stream_close(\"", plan_->pattern, "\")");
    vote.status = client_.closing_vote().in(vote.call);
    const comm::Verdict verdict = co_await rank_.agree(std::move(vote));
    if (misuse.is_ok()) misuse = verdict.status;
    if (plan_->resume && client_.steps() == 0 && !client_.out_of_step()) {
      if (!client_.is_open()) open();
      client_.finish_without_steps();
    }
    if (client_.must_finish() && !client_.out_of_step()) {
      co_await rank_.tell({client_.descriptor(Descriptor::Kind::close), {}});
    }
  }
  if (!client_.must_finish()) co_return misuse;
  const std::function<bool()> finished = [this] { return client_.is_finished(); };
  co_await rank_.wait(finished, cat("durable steps of ", plan_->pattern));
  co_return client_.close_verdict(misuse);
}

}  // namespace tailrace::sim
