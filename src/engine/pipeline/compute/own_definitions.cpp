// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/compute/own_definitions.hpp"

#include <algorithm>

namespace tailrace::pipeline {

Told OwnDefinitions::entry(Packer& packed) const {
  return {{.kind = node::Descriptor::Kind::define, .stream = stream_}, packed.take()};
}

void OwnDefinitions::set_stream(std::uint32_t stream) {
  stream_ = stream;
  layouts_.clear();
  coordinates_.clear();
  has_parts_ = false;
  fields_ = with_values_ = attributes_ = reference_ = 0;
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
  const auto same = std::ranges::find(layouts_, field.layout_id, &LayoutOfId::first);
  const auto number = static_cast<int>(same - layouts_.begin());
  if (same == layouts_.end()) add_layout(field, told);
  ++fields_;
  if (me_ != 0) return told;
  const int coordinates = number_of(field.definition->georeference.coordinates, told);
  Packer packed;
  packed.put(Definition::field);
  Opening::pack_field(packed, *field.definition, field.prepared, number, coordinates);
  told.push_back(entry(packed));
  return told;
}

/// Returns the number of `coordinates` in the stream, or -1 for nullptr. The first time it appends the entry
/// that defines them to `told`.
int OwnDefinitions::number_of(const std::shared_ptr<const codec::Coordinates>& coordinates,
                              std::vector<Told>& told) {
  if (coordinates == nullptr) return -1;
  const auto same = std::ranges::find_if(
      coordinates_, [&](const codec::Coordinates& each) { return each.are_those_of(*coordinates); });
  const auto number = static_cast<int>(same - coordinates_.begin());
  if (same != coordinates_.end()) return number;
  coordinates_.push_back(coordinates->facts());
  Packer packed;
  packed.put(Definition::coordinates);
  coordinates->pack_front(packed);
  told.push_back(entry(packed));
  told.back().behind = std::shared_ptr<const ByteVector>(coordinates, &coordinates->values);
  return number;
}

std::vector<Told> OwnDefinitions::add_values(int field, const std::shared_ptr<const ByteVector>& values) {
  ++with_values_;
  if (me_ != 0) return {};
  Packer packed;
  packed.put(Definition::values).put(field).put(static_cast<std::int64_t>(values->size()));
  std::vector<Told> told{entry(packed)};
  told.back().behind = values;
  return told;
}

std::vector<Told> OwnDefinitions::add_attribute(const codec::GivenAttribute& given) {
  ++attributes_;
  if (me_ != 0) return {};
  Packer packed;
  packed.put(Definition::attribute);
  given.pack(packed);
  return {entry(packed)};
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
  Packer packed;
  packed.put(Definition::layout);
  Opening::pack_layout(packed, layout.bytes(), field.in_parts);
  told.push_back(entry(packed));
}

void OwnDefinitions::choose_reference() {
  for (reference_ = 0; reference_ < roster_.computes(); ++reference_) {
    if (std::ranges::all_of(layouts_, [&](const auto& each) { return each.second->has_share(reference_); }))
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
