// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/stream_client.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tailrace::pipeline {

using comm::Descriptor;

// ---- definition
// -----------------------------------------------------------------------------------------------------------

void StreamClient::send_part(int layout, std::span<const Index> indices) {
  Packer part;
  part.put(Message::layout_part).put(id_).put(layout).put(me_);
  part.put_list(indices);
  for (const int server : roster_.server_transport) {
    line_.send(server, part.bytes());
  }
}

void StreamClient::open_if_wanted() {
  if (wanted_ && !opened_) open_();
}

/// The put order is that of one rank: the first that has a share in every field.
void StreamClient::choose_reference(std::span<const layout::Layout* const> layouts) {
  for (int rank = 0; rank < roster_.computes(); ++rank) {
    const bool in_all = std::all_of(layouts.begin(), layouts.end(),
                                    [&](const layout::Layout* each) { return each->count(rank) > 0; });
    if (!in_all) continue;
    reference_ = rank;
    return;
  }
}

void StreamClient::open(Opening opening, std::span<Field> fields) {
  opened_ = true;
  std::vector<const layout::Layout*> layouts;
  std::vector<std::int64_t> ids;
  for (const Field& field : fields) {
    const auto same = std::find(ids.begin(), ids.end(), field.layout_id);
    opening.layout_of.push_back(static_cast<int>(same - ids.begin()));
    if (same != ids.end()) continue;
    ids.push_back(field.layout_id);
    layouts.push_back(field.layout);
    opening.in_parts.push_back(field.in_parts ? 1 : 0);
  }
  choose_reference(layouts);
  if (me_ != 0) return;
  opening.stream = id_;
  opening.reference = reference_;
  for (Field& field : fields) {
    opening.fields.push_back(*field.definition);
    opening.prepared.push_back(std::move(field.prepared));
  }
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    Packer packed;
    if (opening.in_parts[i] == 0)
      layouts[i]->pack(packed);
    else
      packed.put_list(std::span<const Index>(layouts[i]->shape()));
    opening.layouts.push_back(packed.take());
  }
  Packer out;
  out.put(Message::open);
  opening.pack(out);
  for (const int server : roster_.server_transport) {
    line_.send(server, out.bytes());
  }
}

// ---- steps
// ----------------------------------------------------------------------------------------------------------------

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
  lead_ = lead;
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
  descriptor.stamp = line_.now();
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
  // One call tells of all: the caller may not make another one.
  return Status(first.code(),
                cat(first.text(), "; ", others, others == 1 ? " later step" : " later steps", " failed too"),
                first.error_number())
      .at(first.cause());
}

void StreamClient::on_verdict(VerdictKind kind, std::int64_t step, const Status& status) {
  switch (kind) {
    case VerdictKind::accepted:
      accepted_[step] = status;
      while (!accepted_.empty() && accepted_.begin()->first < step_ - 2) accepted_.erase(accepted_.begin());
      break;
    case VerdictKind::durable:
      if (!status.is_ok()) durable_[step] = status;
      // A rank that is told alone of a step may hear of it before the one before is durable.
      if (step > durable_through_) settled_.insert(step);
      while (settled_.erase(durable_through_ + 1) != 0) ++durable_through_;
      break;
    case VerdictKind::finished:
      finished_ = status;
      break;
  }
}

// ---- the end of the stream
// ----------------------------------------------------------------------------------------------------

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
    // The others wait for its end, and the step must fail.
    latched_ = why.at({step_, operation_, me_});
    told.push_back(end({}));
    in_step_ = true;
  }
  told.push_back({descriptor(Descriptor::Kind::close), {}});
  return told;
}

}  // namespace tailrace::pipeline
