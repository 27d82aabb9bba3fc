// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/messages.hpp"

#include <algorithm>

#include "formats/registry/registry.hpp"
#include "ground/node/handed_memory.hpp"

namespace tailrace::pipeline {

// One line has the messages of both. A kind of which there were two would go to the receiver set last.
static_assert(static_cast<std::uint32_t>(Message::last) < node::first_handed_message);

constexpr const char* kIncomplete = "a stream's definition arrived incomplete";

void Opening::pack(Packer& out, bool with_values) const {
  out.put(reference);
  pack_head(out);
  out.put(static_cast<std::int64_t>(coordinates.size()));
  for (const auto& each : coordinates) {
    if (with_values)
      each->pack(out);
    else
      each->facts().pack(out);
  }
  out.put(static_cast<std::int64_t>(fields.size()));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto its = std::ranges::find(coordinates, fields[i].georeference.coordinates);
    const auto number = its == coordinates.end() ? -1 : static_cast<int>(its - coordinates.begin());
    pack_field(out, fields[i], prepared[i], layout_of[i], number);
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].values && (with_values || is_weights(fields[i].name)))
      out.put(static_cast<std::int32_t>(i)).put_bytes(*fields[i].values);
  }
  out.put(std::int32_t{-1});  // no more values
  out.put(static_cast<std::int64_t>(layouts.size()));
  for (std::size_t i = 0; i < layouts.size(); ++i) pack_layout(out, layouts[i], in_parts[i] != 0);
}

Result<Opening> Opening::unpack(Unpacker& in) {
  const int reference = in.get<int>();
  Result<Opening> opening = unpack_head(in);
  TR_TRY(opening.status());
  opening->reference = reference;
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count)
    TR_TRY(opening->add_coordinates(in));
  const auto fields = in.get<std::int64_t>();
  for (std::int64_t i = 0; i < fields; ++i) TR_TRY(opening->add_field(in));
  while (in.ok() && Unpacker(in.rest()).get<std::int32_t>() >= 0) TR_TRY(opening->add_values(in));
  in.get<std::int32_t>();
  const auto layouts = in.get<std::int64_t>();
  for (std::int64_t i = 0; i < layouts && in.ok(); ++i) opening->add_layout(in);
  const auto has_layout = [&](int i) {
    return i >= 0 && static_cast<std::size_t>(i) < opening->layouts.size();
  };
  if (!in.ok() || !std::ranges::all_of(opening->layout_of, has_layout))
    return Status(Code::corrupt, kIncomplete);
  return opening;
}

void Opening::pack_head(Packer& out) const {
  out.put(stream)
      .put(policy)
      .put(previous_lead)
      .put_text(ledger)
      .put(begins_with)
      .put_text(method_name)
      .put_text(hints)
      .put_text(why_method)
      .put(handoff);
  definition.pack(out);
}

Result<Opening> Opening::unpack_head(Unpacker& in) {
  Opening opening;
  opening.stream = in.get<std::uint32_t>();
  opening.policy = in.get<Policy>();
  opening.previous_lead = in.get<std::int64_t>();
  opening.ledger = in.get_text();
  opening.first_step = opening.begins_with = in.get<std::int64_t>();
  opening.method_name = in.get_text();
  TR_TRY(find_method(opening.method_name).status());
  opening.hints = in.get_text();
  opening.why_method = in.get_text();
  opening.handoff = in.get<Handoff>();
  Result<codec::StreamDefinition> definition = codec::StreamDefinition::unpack(in);
  TR_TRY(definition.status());
  if (!in.ok()) return Status(Code::corrupt, kIncomplete);
  opening.definition = std::move(*definition);
  return opening;
}

void Opening::pack_field(Packer& out, const codec::FieldDefinition& field,
                         std::span<const std::byte> prepared, int layout, int coordinates) {
  field.pack(out);
  out.put_bytes(prepared).put(layout).put(coordinates);
}

Status Opening::add_field(Unpacker& in) {
  Result<codec::FieldDefinition> field = codec::FieldDefinition::unpack(in);
  TR_TRY(field.status());
  fields.push_back(std::move(*field));
  const auto bytes = in.get_bytes();
  prepared.emplace_back(bytes.begin(), bytes.end());
  layout_of.push_back(in.get<int>());
  const int its = in.get<int>();
  if (its >= static_cast<int>(coordinates.size())) return {Code::corrupt, kIncomplete};
  if (its >= 0) fields.back().georeference.coordinates = coordinates[static_cast<std::size_t>(its)];
  return {};
}

Status Opening::add_coordinates(Unpacker& in) {
  Result<codec::Coordinates> told = codec::Coordinates::unpack(in);
  TR_TRY(told.status());
  coordinates.push_back(std::make_shared<const codec::Coordinates>(std::move(*told)));
  return {};
}

bool Opening::is_weights(const std::string& field) const {
  return std::ranges::any_of(fields, [&](const codec::FieldDefinition& each) {
    return each.reduction.is_weighted() && each.reduction.weights == field;
  });
}

Status Opening::add_values(Unpacker& in) {
  const auto field = static_cast<std::size_t>(in.get<std::int32_t>());
  auto values = std::make_shared<const ByteVector>(in.get_list<std::byte>());
  if (!in.ok() || field >= fields.size() || fields[field].has_time ||
      std::ssize(*values) != fields[field].whole_bytes())
    return {Code::corrupt, kIncomplete};
  fields[field].values = std::move(values);
  return {};
}

Status Opening::add_attribute(Unpacker& in) {
  definition.given.push_back(codec::GivenAttribute::unpack(in));
  return in.ok() ? Status() : Status(Code::corrupt, kIncomplete);
}

std::int32_t Opening::defined() const {
  const auto with_values =
      std::ranges::count_if(fields, [](const auto& each) { return each.values != nullptr; });
  return static_cast<std::int32_t>(std::ssize(fields) + with_values + std::ssize(definition.given));
}

void Opening::pack_layout(Packer& out, std::span<const std::byte> layout, bool in_parts) {
  out.put_bytes(layout).put(static_cast<char>(in_parts));
}

void Opening::add_layout(Unpacker& in) {
  const auto bytes = in.get_bytes();
  layouts.emplace_back(bytes.begin(), bytes.end());
  in_parts.push_back(in.get<char>());
}

Result<std::unique_ptr<codec::Codec>> Opening::codec() const {
  Result<std::unique_ptr<codec::Codec>> codec = formats::make_codec(definition);
  TR_TRY(codec.status());
  for (std::size_t i = 0; i < fields.size(); ++i) TR_TRY((*codec)->adopt(fields[i], prepared[i]));
  for (const codec::GivenAttribute& each : definition.given) TR_TRY((*codec)->add_attribute(each));
  return codec;
}

}  // namespace tailrace::pipeline
