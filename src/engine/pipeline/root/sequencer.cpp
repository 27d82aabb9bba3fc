// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/root/sequencer.hpp"

#include <algorithm>

namespace tailrace::pipeline {

using node::Descriptor;
using Kind = SequenceEntry::Kind;

Sequencer::Sequencer(const Opening& opening, const codec::Codec& codec, std::vector<int> owners)
    : opening_(opening),
      codec_(codec),
      owners_(std::move(owners)),
      takes_once_(codec.fixed_places().has_value()),
      previous_lead_(opening.previous_lead) {
  double step_cost = 0;  // predicted, all fields
  for (std::size_t i = 0; i < opening.fields.size(); ++i) {
    const auto levels = static_cast<double>(opening.fields[i].levels.values.size());
    step_cost += codec.cost(static_cast<int>(i)) * levels;
  }
  // An owner gets several runs of records a step, so that the first is written while the next is encoded.
  chunk_cost_ = step_cost / (4.0 * static_cast<double>(owners_.size()));
}

Status Sequencer::add(const Descriptor& descriptor, Bytes most, std::vector<SequenceEntry>& fresh) {
  switch (descriptor.kind) {
    case Descriptor::Kind::begin:
    case Descriptor::Kind::begin_failed:
      begin_step(descriptor, fresh);
      break;
    case Descriptor::Kind::piece:
      add_record(descriptor, most, fresh);
      return check_is_new(descriptor);
    case Descriptor::Kind::end:
      close_chunk(fresh);
      fresh.push_back({.kind = Kind::end_step, .step = step_});
      previous_lead_ = lead_;
      break;
    case Descriptor::Kind::fence:
      fresh.push_back({.kind = Kind::fence, .step = descriptor.step});
      break;
    case Descriptor::Kind::close:
    case Descriptor::Kind::farewell:
    case Descriptor::Kind::define:
      break;
  }
  return {};
}

void Sequencer::begin_step(const Descriptor& descriptor, std::vector<SequenceEntry>& fresh) {
  step_ = descriptor.step;
  lead_ = descriptor.lead;
  put_.clear();
  // The interval of this step may begin later than the step before: then no step was at the end of the
  // interval before.
  previous_lead_ = std::max(previous_lead_, descriptor.stamp);
  fresh.push_back({.kind = Kind::begin, .step = step_, .lead = lead_, .interval_start = previous_lead_});
}

void Sequencer::add_record(const Descriptor& descriptor, Bytes most, std::vector<SequenceEntry>& fresh) {
  const double cost = codec_.cost(descriptor.field);
  const Bytes bound = codec_.encoded_bound(descriptor.field);
  if (open_cost_ + cost > chunk_cost_ * 1.0001 || open_bound_ + bound > most) close_chunk(fresh);
  chunk_open_ = true;
  open_cost_ += cost;
  open_bound_ += bound;
  const auto& field = opening_.fields[static_cast<std::size_t>(descriptor.field)];
  fresh.push_back({.kind = Kind::record,
                   .field = descriptor.field,
                   .level = descriptor.level,
                   .owner = owners_[owner_],
                   .chunk = chunk_,
                   .step = step_,
                   .lead = lead_,
                   .interval_start = field.statistic.interval_start(lead_, previous_lead_),
                   .calls = descriptor.lead});
}

void Sequencer::close_chunk(std::vector<SequenceEntry>& fresh) {
  if (!chunk_open_) return;
  fresh.push_back({.kind = Kind::end_chunk, .chunk = chunk_, .step = step_});
  chunk_open_ = false;
  ++chunk_;
  owner_ = (owner_ + 1) % owners_.size();
  open_cost_ = 0;
  open_bound_ = 0;
}

Status Sequencer::check_is_new(const Descriptor& descriptor) {
  if (!takes_once_) return {};
  const auto operation = static_cast<std::int64_t>(put_.size());
  if (put_.emplace(descriptor.field, descriptor.level).second) return {};
  const std::string& name = opening_.fields[static_cast<std::size_t>(descriptor.field)].name;
  return Status(Code::argument,
                cat("field '", name, "' (level ", descriptor.level, ") is put twice in the step; format ",
                    opening_.definition.format, " has one place for it"))
      .at({step_, operation, opening_.reference});
}

}  // namespace tailrace::pipeline
