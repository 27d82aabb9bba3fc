// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/stream_client.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tailrace::pipeline {

using node::Descriptor;

Told StreamClient::entry(Packer& packed) const {
  Descriptor descriptor;
  descriptor.kind = Descriptor::Kind::define;
  descriptor.stream = id_;
  return {descriptor, packed.take()};
}

std::vector<Told> StreamClient::define(Opening head) const {
  if (me_ != 0) return {};
  head.stream = id_;
  Packer packed;
  packed.put(Definition::stream);
  head.pack_head(packed);
  return {entry(packed)};
}

std::vector<Told> StreamClient::define(const Field& field) {
  std::vector<Told> told;
  const auto same = std::find_if(layouts_.begin(), layouts_.end(),
                                 [&](const auto& each) { return each.first == field.layout_id; });
  const auto number = static_cast<int>(same - layouts_.begin());
  if (same == layouts_.end()) add_layout(field, told);
  ++fields_;
  if (me_ != 0) return told;
  Opening opening;
  opening.fields.push_back(*field.definition);
  opening.prepared.push_back(field.prepared);
  opening.layout_of.push_back(number);
  Packer packed;
  packed.put(Definition::field);
  opening.pack_field(packed, 0);
  told.push_back(entry(packed));
  return told;
}

void StreamClient::add_layout(const Field& field, std::vector<Told>& told) {
  const auto number = static_cast<int>(layouts_.size());
  layouts_.emplace_back(field.layout_id, field.layout);
  choose_reference();
  if (field.in_parts) {
    has_parts_ = true;
    Packer part;
    part.put(Definition::part).put(number).put_list(field.own_indices);
    told.push_back(entry(part));
  }
  if (me_ != 0) return;
  Packer layout;
  if (field.in_parts)
    layout.put_list(std::span<const Index>(field.layout->shape()));
  else
    field.layout->pack(layout);
  Opening opening;
  opening.layouts.push_back(layout.take());
  opening.in_parts.push_back(field.in_parts ? 1 : 0);
  Packer packed;
  packed.put(Definition::layout);
  opening.pack_layout(packed, 0);
  told.push_back(entry(packed));
}

void StreamClient::choose_reference() {
  for (int rank = 0; rank < roster_.computes(); ++rank) {
    const bool in_all = std::all_of(layouts_.begin(), layouts_.end(),
                                    [&](const auto& each) { return each.second->has_share(rank); });
    if (!in_all) continue;
    reference_ = rank;
    return;
  }
  reference_ = 0;
}

Told StreamClient::forget() const {
  Packer packed;
  packed.put(Definition::forget).put(has_parts_);
  return entry(packed);
}

void StreamClient::latch(const Status& status) {
  if (status.is_ok()) return;
  latched_ = first_cause(latched_, status.at({step_, operation_, me_}));
}

bool StreamClient::begin(std::int64_t lead) {
  if (in_step_) {
    latch(Status(Code::state, cat("tr_stream_begin(lead ", lead, ") inside the step at lead ", lead_,
                                  ": tr_stream_end comes first")));
    return false;
  }
  in_step_ = true;
  if (out_of_step_) return false;
  ++step_;
  operation_ = 0;
  lead_before_ = std::exchange(lead_, lead);
  if (behind_ && lead <= *behind_) {
    latch(Status(Code::order, cat("lead ", lead, " s: the stream continues behind lead ", *behind_,
                                  " s, which its checkpoint has")));
  } else if (last_lead_ && lead < *last_lead_) {
    latch(Status(Code::order,
                 cat("lead ", lead, " s goes back in time: the step before was at ", *last_lead_, " s")));
  } else {
    last_lead_ = lead;
  }
  return true;
}

Descriptor StreamClient::descriptor(Descriptor::Kind kind) const {
  Descriptor descriptor;
  descriptor.kind = kind;
  descriptor.stream = id_;
  descriptor.step = step_;
  descriptor.lead = lead_;
  descriptor.field = fields_;
  descriptor.level = reference_;
  descriptor.stamp = kind == Descriptor::Kind::begin ? lead_before_ : line_.now();
  return descriptor;
}

Descriptor StreamClient::piece(int field, Index level) const {
  Descriptor descriptor;
  descriptor.kind = Descriptor::Kind::piece;
  descriptor.stream = id_;
  descriptor.step = step_;
  descriptor.field = field;
  descriptor.level = static_cast<std::int32_t>(level);
  return descriptor;
}

Told StreamClient::end(const Counters& counters) {
  in_step_ = false;
  Packer packed;
  std::exchange(latched_, Status()).pack(packed);
  packed.put(counters);
  return {descriptor(Descriptor::Kind::end), packed.take()};
}

bool StreamClient::end_is_known() const {
  const std::int64_t needed = awaited_step();
  if (needed < 0) return true;
  return roster_.self_served ? durable_through_ >= needed : accepted_.count(needed) != 0;
}

Status StreamClient::end_verdict() {
  if (roster_.self_served) return first_unreported(step_);
  return awaited_step() < 0 ? Status() : report(accepted_.at(awaited_step()));
}

bool StreamClient::wait_is_known(bool durable) const {
  return step_ < 0 || (durable ? durable_through_ >= step_ : accepted_.count(step_) != 0);
}

Status StreamClient::wait_verdict(bool durable) {
  if (durable) return first_unreported(step_);
  return step_ < 0 ? Status() : report(accepted_.at(step_));
}

Status StreamClient::report(const Status& status) {
  if (status.is_ok() || !reported_.insert(status.cause().step).second) return {};
  return status;
}

Status StreamClient::first_unreported(std::int64_t through) {
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
  // One call tells of all failed steps, since the caller may not make another call.
  return Status(first.code(),
                cat(first.text(), "; ", others, others == 1 ? " later step" : " later steps", " failed too"),
                first.error_number())
      .at(first.cause());
}

/// A server that takes the place of another tells again what that one may have told. It may have succeeded
/// where the other failed: the failure stays.
void StreamClient::on_verdict(VerdictKind kind, std::int64_t step, const Status& status) {
  switch (kind) {
    case VerdictKind::accepted:
      if (!status.is_ok() || accepted_.count(step) == 0) accepted_[step] = status;
      while (!accepted_.empty() && accepted_.begin()->first < step_ - 2) accepted_.erase(accepted_.begin());
      break;
    case VerdictKind::durable:
      if (!status.is_ok()) durable_[step] = status;
      // A verdict that goes to this rank alone may arrive before the previous step is durable.
      if (step > durable_through_) settled_.insert(step);
      while (settled_.erase(durable_through_ + 1) != 0) ++durable_through_;
      break;
    case VerdictKind::finished:
      if (!finished_) finished_ = status;
      break;
  }
}

Status StreamClient::closing_vote() {
  closing_ = true;
  return std::exchange(latched_, Status());
}

Status StreamClient::close_verdict(const Status& misuse) {
  if (!misuse.is_ok()) return misuse;
  const Status status = first_unreported(step_);
  return status.is_ok() && finished_ ? *finished_ : status;
}

std::vector<Told> StreamClient::put_out_of_step(const Status& why, bool servers_know) {
  out_of_step_ = why;
  unsettled_ = false;
  std::vector<Told> told;
  if (!servers_know) return told;
  told_closed_ = true;
  if (in_step_) {
    // The other ranks wait for the step's end, and the step must fail.
    latched_ = why.at({step_, operation_, me_});
    told.push_back(end({}));
    in_step_ = true;
  }
  told.push_back({descriptor(Descriptor::Kind::close), {}});
  return told;
}

}  // namespace tailrace::pipeline
