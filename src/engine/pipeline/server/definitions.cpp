// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/definitions.hpp"

#include <algorithm>

namespace tailrace::pipeline {

Definitions::Definitions(Context& context, std::function<void(Opening)> open,
                         std::function<void(const Status&)> give_up)
    : context_(context), open_(std::move(open)), give_up_(std::move(give_up)) {
  context_.on(Message::wanted, [this](int, Unpacker& in) { on_wanted(in.get<Wanted>()); });
  context_.on(Message::open, [this](int, Unpacker& in) { on_open(in); });
  context_.on(Message::layout_part, [this](int, Unpacker& in) { on_part(in); });
  context_.on(Message::forgotten, [this](int, Unpacker& in) { on_forgotten(in); });
}

void Definitions::on_entry(int c, const node::Descriptor& descriptor, std::span<const std::byte> bytes) {
  ByteVector& beginning = beginnings_[c];
  const bool is_last = descriptor.level == 0;
  if (!is_last || !beginning.empty()) {
    const Status kept = guarded([&]() -> Status {
      beginning.insert(beginning.end(), bytes.begin(), bytes.end());
      return {};
    });
    if (!kept.is_ok()) return give_up_(kept);
  }
  if (!is_last) return;
  const ByteVector whole = std::exchange(beginning, {});
  Unpacker in(whole.empty() ? bytes : std::span<const std::byte>(whole));
  take_entry(c, descriptor.stream, in);
}

void Definitions::take_entry(int c, std::uint32_t stream, Unpacker& in) {
  const auto kind = in.get<Definition>();
  if (kind == Definition::part) return pass_on(Message::layout_part, stream, c, in.rest());
  if (kind == Definition::forget && in.get<bool>()) pass_on(Message::forgotten, stream, c, {});
  if (c != 0) return;
  const Status status = guarded([&] { return collect(stream, kind, in); });
  if (!status.is_ok()) return give_up_(status);
  tell_if_complete(stream);
}

Status Definitions::collect(std::uint32_t stream, Definition kind, Unpacker& in) {
  switch (kind) {
    case Definition::stream: {
      Result<Opening> head = Opening::unpack_head(in);
      TR_TRY(head.status());
      newest_ = stream;
      collected_[stream] = std::move(*head);
      return {};
    }
    case Definition::layout:
      collected_.at(stream).add_layout(in);
      return {};
    case Definition::coordinates:
      return collected_.at(stream).add_coordinates(in);
    case Definition::field:
      return collected_.at(stream).add_field(in);
    case Definition::values:
      return collected_.at(stream).add_values(in);
    case Definition::attribute:
      return collected_.at(stream).add_attribute(in);
    case Definition::forget:
      collected_.erase(stream);
      return {};
    case Definition::part:
      return {};
  }
  return {};
}

void Definitions::pass_on(Message message, std::uint32_t stream, int c, std::span<const std::byte> bytes) {
  context_.send_to_servers(Packer().put(message).put(stream).put(c).put_bytes(bytes));
}

void Definitions::want(const node::Descriptor& begun) {
  if (!asked_.insert(begun.stream).second) return;
  const Wanted wanted{begun.stream, begun.field, begun.level};
  context_.send_to_server(context_.home_of(0), Packer().put(Message::wanted).put(wanted));
}

/// Most servers ask after another server has asked. The definitions then went to all servers already, and the
/// question needs no answer.
void Definitions::on_wanted(const Wanted& wanted) {
  if (wanted.stream <= newest_ && collected_.count(wanted.stream) == 0) return;
  wanted_[wanted.stream] = wanted;
  tell_if_complete(wanted.stream);
}

/// Other ranks may begin a stream before the lane of compute rank 0 has brought its last field here.
void Definitions::tell_if_complete(std::uint32_t stream) {
  const auto wanted = wanted_.find(stream);
  const auto collected = collected_.find(stream);
  if (wanted == wanted_.end() || collected == collected_.end()) return;
  if (collected->second.defined() < wanted->second.fields) return;
  Opening opening = std::move(collected->second);
  opening.reference = wanted->second.reference;
  collected_.erase(collected);
  wanted_.erase(wanted);
  const Status told = guarded([&]() -> Status {
    tell(std::move(opening));
    return {};
  });
  if (!told.is_ok()) give_up_(told);
}

/// The values of coordinates and of fields without time may be large, and only the root puts them into files.
void Definitions::tell(Opening opening) {
  const int root = context_.home_of(opening.reference);
  Packer out;
  opening.pack(out.put(Message::open), false);
  for (int server = 0; server < context_.roster.servers(); ++server) {
    if (server != root) context_.send_to_server(server, out);
  }
  Packer with_values;
  opening.pack(with_values.put(Message::open), true);
  opening = {};  // the message alone has the values from here on
  context_.send_to_server(root, with_values.take());
}

void Definitions::on_open(Unpacker& in) {
  Result<Opening> opening = guarded([&] { return Opening::unpack(in); });
  if (!opening.is_ok()) return give_up_(opening.status());
  if (opening->reference < 0 || opening->reference >= context_.roster.computes())
    return give_up_({Code::corrupt, "a stream's definition arrived with a rank that is none"});
  const std::uint32_t stream = opening->stream;
  told_[stream] = std::move(*opening);
  open_if_whole(stream);
}

void Definitions::on_part(Unpacker& in) {
  const auto stream = in.get<std::uint32_t>();
  const int c = in.get<int>();
  Unpacker part(in.get_bytes());
  const int layout = part.get<int>();
  parts_[stream][{layout, c}] = part.get_list<Index>();
  open_if_whole(stream);
}

void Definitions::on_forgotten(Unpacker& in) {
  const auto stream = in.get<std::uint32_t>();
  const int c = in.get<int>();
  const auto parts = parts_.find(stream);
  if (parts == parts_.end()) return;
  std::erase_if(parts->second, [c](const auto& part) { return part.first.second == c; });
  if (parts->second.empty()) parts_.erase(parts);
}

void Definitions::open_if_whole(std::uint32_t stream) {
  const auto told = told_.find(stream);
  if (told == told_.end()) return;
  const auto needed = std::ranges::count(told->second.in_parts, 1) * context_.roster.computes();
  if (static_cast<std::ptrdiff_t>(parts_[stream].size()) < needed) return;
  Opening opening = std::move(told->second);
  told_.erase(told);
  const Status joined = guarded([&] { return join_parts(opening); });
  parts_.erase(stream);
  asked_.erase(stream);
  if (!joined.is_ok()) return give_up_(joined);
  open_(std::move(opening));
}

/// Makes whole each layout of which each rank knew only its own part: servers assemble whole records.
Status Definitions::join_parts(Opening& opening) {
  for (std::size_t i = 0; i < opening.layouts.size(); ++i) {
    if (opening.in_parts[i] == 0) continue;
    Unpacker in(opening.layouts[i]);
    std::vector<Index> shape = in.get_list<Index>();
    std::vector<std::vector<Index>> lists;
    for (int c = 0; c < context_.roster.computes(); ++c)
      lists.push_back(std::move(parts_[opening.stream][{static_cast<int>(i), c}]));
    Result<layout::Layout> layout = layout::Layout::indexed(std::move(shape), std::move(lists));
    TR_TRY(layout.status());
    Packer packed;
    layout->pack(packed);
    opening.layouts[i] = packed.take();
  }
  return {};
}

}  // namespace tailrace::pipeline
