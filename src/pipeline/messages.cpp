// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/messages.hpp"

#include <algorithm>

namespace tailrace::pipeline {

void Opening::pack(Packer& out) const {
  out.put(stream).put(reference).put(policy).put(previous_lead).put_text(ledger);
  definition.pack(out);
  out.put(static_cast<std::int64_t>(fields.size()));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i].pack(out);
    out.put_bytes(prepared[i]).put(layout_of[i]);
  }
  out.put(static_cast<std::int64_t>(layouts.size()));
  for (std::size_t i = 0; i < layouts.size(); ++i) out.put_bytes(layouts[i]).put(in_parts[i]);
}

Result<Opening> Opening::unpack(Unpacker& in) {
  Opening opening;
  opening.stream = in.get<std::uint32_t>();
  opening.reference = in.get<int>();
  opening.policy = in.get<Policy>();
  opening.previous_lead = in.get<std::int64_t>();
  opening.ledger = in.get_text();
  Result<codec::StreamDefinition> definition = codec::StreamDefinition::unpack(in);
  TR_TRY(definition.status());
  opening.definition = std::move(*definition);
  const auto fields = in.get<std::int64_t>();
  for (std::int64_t i = 0; i < fields; ++i) {
    Result<codec::FieldDefinition> field = codec::FieldDefinition::unpack(in);
    TR_TRY(field.status());
    opening.fields.push_back(std::move(*field));
    const auto prepared = in.get_bytes();
    opening.prepared.emplace_back(prepared.begin(), prepared.end());
    opening.layout_of.push_back(in.get<int>());
  }
  const auto layouts = in.get<std::int64_t>();
  for (std::int64_t i = 0; i < layouts && in.ok(); ++i) {
    const auto bytes = in.get_bytes();
    opening.layouts.emplace_back(bytes.begin(), bytes.end());
    opening.in_parts.push_back(in.get<char>());
  }
  const auto has_layout = [&](int i) {
    return i >= 0 && static_cast<std::size_t>(i) < opening.layouts.size();
  };
  if (!in.ok() || !std::all_of(opening.layout_of.begin(), opening.layout_of.end(), has_layout)) {
    return Status(Code::corrupt, "a stream's definition arrived incomplete");
  }
  return opening;
}

Result<std::unique_ptr<codec::Codec>> Opening::codec() const {
  Result<std::unique_ptr<codec::Codec>> codec = codec::make_codec(definition);
  TR_TRY(codec.status());
  for (std::size_t i = 0; i < fields.size(); ++i) TR_TRY((*codec)->adopt(fields[i], prepared[i]));
  return codec;
}

}  // namespace tailrace::pipeline
