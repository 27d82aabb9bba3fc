// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/own_definitions.hpp"

#include <algorithm>

namespace tailrace::pipeline {

using node::Descriptor;

Told OwnDefinitions::entry(Packer& packed) const {
  Descriptor descriptor;
  descriptor.kind = Descriptor::Kind::define;
  descriptor.stream = stream_;
  return {descriptor, packed.take()};
}

std::vector<Told> OwnDefinitions::begin(Opening head) const {
  if (me_ != 0) return {};
  head.stream = stream_;
  Packer packed;
  packed.put(Definition::stream);
  head.pack_head(packed);
  return {entry(packed)};
}

std::vector<Told> OwnDefinitions::add(const Field& field) {
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

void OwnDefinitions::add_layout(const Field& field, std::vector<Told>& told) {
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

void OwnDefinitions::choose_reference() {
  for (int rank = 0; rank < roster_.computes(); ++rank) {
    const bool in_all = std::all_of(layouts_.begin(), layouts_.end(),
                                    [&](const auto& each) { return each.second->has_share(rank); });
    if (!in_all) continue;
    reference_ = rank;
    return;
  }
  reference_ = 0;
}

Told OwnDefinitions::forget() const {
  Packer packed;
  packed.put(Definition::forget).put(has_parts_);
  return entry(packed);
}

}  // namespace tailrace::pipeline
