// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/counters/message_counters.hpp"

#include <utility>

namespace tailrace::comm {

MessageCounters::MessageCounters(Line& line, std::vector<int> ranks, Kinds kinds)
    : line_(line), ranks_(std::move(ranks)), kinds_(kinds), values_(static_cast<std::size_t>(most)) {
  line_.on(kinds_.add, [this](int source, Unpacker& in) { on_add(source, in); });
  line_.on(kinds_.added, [this](int, Unpacker& in) { on_added(in); });
}

MessageCounters::~MessageCounters() {
  for (const std::uint32_t kind : {kinds_.add, kinds_.added}) line_.on(kind, [](int, Unpacker&) {});
}

std::int64_t MessageCounters::add_here(int counter, std::int64_t amount) {
  return std::exchange(values_[static_cast<std::size_t>(counter)],
                       values_[static_cast<std::size_t>(counter)] + amount);
}

void MessageCounters::add(int process, int counter, std::int64_t amount, Taken taken) {
  const int rank = ranks_[static_cast<std::size_t>(process)];
  if (rank == line_.rank()) return taken(add_here(counter, amount));
  unanswered_[++last_] = std::move(taken);
  line_.send(rank, Packer().put(kinds_.add).put(last_).put(counter).put(amount).take());
}

void MessageCounters::on_add(int source, Unpacker& in) {
  const auto question = in.get<std::int64_t>();
  const int counter = in.get<int>();
  const std::int64_t before = add_here(counter, in.get<std::int64_t>());
  line_.send(source, Packer().put(kinds_.added).put(question).put(before).take());
}

void MessageCounters::on_added(Unpacker& in) {
  const auto asked = unanswered_.extract(in.get<std::int64_t>());
  if (!asked.empty()) asked.mapped()(in.get<std::int64_t>());
}

}  // namespace tailrace::comm
