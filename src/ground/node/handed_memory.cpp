// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/handed_memory.hpp"

#include <iterator>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::node {

namespace {

enum class HandedMessage : std::uint32_t {
  hand = first_handed_message,  // giver -> server: number, token, the memory's parts, kind, description
  taken,                        // server -> giver: number, status
  take_back,                    // giver -> server: number, does the giver wait
  ended,                        // server -> giver: number, Work::end()'s bytes
};
static_assert(static_cast<std::uint32_t>(HandedMessage::ended) == last_handed_message);

constexpr std::string_view handed_name = "memory for a server of its node";

std::uint32_t kind_of(HandedMessage message) { return static_cast<std::uint32_t>(message); }

}  // namespace

MemoryGiver::MemoryGiver(comm::Line& line) : line_(line) {
  line_.on(kind_of(HandedMessage::taken), [this](int, Unpacker& in) { on_taken(in); });
  line_.on(kind_of(HandedMessage::ended), [this](int, Unpacker& in) { on_ended(in); });
}

Result<std::uint64_t> MemoryGiver::hand(int server, Handed kind, const NodeMemory& memory,
                                        ByteVector description) {
  DescriptorSocket socket(handed_name);
  TR_TRY(socket.listen());
  const std::uint64_t number = next_++;
  Given& given = given_[number];
  given.server = server;
  Packer message;
  message.put(HandedMessage::hand).put(number).put(socket.token());
  memory.tell(message);
  message.put(kind).put_bytes(description);
  line_.send(server, message.take());
  const Status answered = give(socket, memory, given);
  if (answered.is_ok()) return number;
  given_.erase(number);
  return answered;
}

/// Gives the descriptor once the server has connected, and waits for its answer.
Status MemoryGiver::give(DescriptorSocket& socket, const NodeMemory& memory, Given& given) {
  Status mine;
  line_.board().wait(
      [&] {
        if (socket.is_listening() && socket.given() == 0) {
          const Status gave = socket.answer(memory.descriptor(), DescriptorSocket::Clock::now());
          // The server notices this, and answers.
          if (!gave.is_ok() && gave.code() != Code::timeout) {
            mine = gave;
            socket.hang_up();
          }
        }
        // The message may not have arrived yet when the server looked last.
        ring();
        return given.taken.has_value();
      },
      cat("server rank ", given.server, " to map memory of its node"));
  return given.taken->is_ok() ? Status() : first_cause(mine, *given.taken);
}

ByteVector MemoryGiver::take_back(std::uint64_t number) {
  Given& given = given_.at(number);
  line_.send(given.server, Packer().put(HandedMessage::take_back).put(number).put(true).take());
  line_.board().wait(
      [&] {
        ring();
        return given.ended.has_value();
      },
      cat("server rank ", given.server, " to let go of memory of its node"));
  ByteVector told = std::move(*given.ended);
  given_.erase(number);
  return told;
}

void MemoryGiver::abandon(std::uint64_t number) {
  line_.send(given_.at(number).server, Packer().put(HandedMessage::take_back).put(number).put(false).take());
  given_.erase(number);
}

void MemoryGiver::on_taken(Unpacker& in) {
  const auto given = given_.find(in.get<std::uint64_t>());
  if (given != given_.end()) given->second.taken = Status::unpack(in);
}

void MemoryGiver::on_ended(Unpacker& in) {
  const auto given = given_.find(in.get<std::uint64_t>());
  if (given == given_.end()) return;  // it was abandoned
  const auto told = in.get_bytes();
  given->second.ended = ByteVector(told.begin(), told.end());
}

MemoryTaker::MemoryTaker(comm::Line& line) : line_(line) {
  line_.on(kind_of(HandedMessage::hand), [this](int source, Unpacker& in) { on_hand(source, in); });
  line_.on(kind_of(HandedMessage::take_back), [this](int source, Unpacker& in) { on_take_back(source, in); });
}

void MemoryTaker::on_hand(int source, Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  Taken& taken = taken_[{source, number}];
  const auto rest = in.rest();
  taken.message.assign(rest.begin(), rest.end());
  taken.deadline = DescriptorSocket::Clock::now() + DescriptorSocket::limit;
  taken.socket = std::make_unique<DescriptorSocket>(handed_name);
}

void MemoryTaker::on_take_back(int source, Unpacker& in) {
  const auto taken = taken_.find({source, in.get<std::uint64_t>()});
  if (taken == taken_.end()) return;
  taken->second.is_ending = true;
  taken->second.does_giver_hear = in.get<bool>();
}

void MemoryTaker::drop_all() {
  begins_.clear();
  taken_.clear();
}

bool MemoryTaker::advance() {
  bool moved = false;
  for (auto each = taken_.begin(); each != taken_.end();) {
    const auto next = std::next(each);
    moved = move_on(each->first, each->second) || moved;
    const Taken& taken = each->second;
    if (taken.socket == nullptr && taken.work == nullptr) taken_.erase(each);
    each = next;
  }
  return moved;
}

/// Moves one memory on, from its socket to work to its end. If it has neither socket nor work afterwards, it
/// is over. If the work throws, it has not begun.
bool MemoryTaker::move_on(const Name& name, Taken& taken) {
  if (taken.socket != nullptr) {
    Unpacker in(taken.message);
    const Result<int> descriptor = receive(*taken.socket, in);
    if (descriptor.status().code() == Code::timeout && DescriptorSocket::Clock::now() < taken.deadline)
      return false;
    Status status = descriptor.status();
    if (status.is_ok()) status = guarded([&] { return begin(name.first, *descriptor, in, taken.work); });
    taken.socket = nullptr;
    taken.message = {};
    if (!status.is_ok()) return answer(name, status), true;
  }
  if (!taken.has_begun) {
    std::optional<Status> begun;
    const Status thrown = guarded([&] { return begun = taken.work->begun(), Status(); });
    if (!thrown.is_ok()) begun = thrown;
    if (!begun) return false;
    taken.has_begun = true;
    if (!begun->is_ok()) taken.work = nullptr;
    answer(name, *begun);
    return true;
  }
  if (!taken.is_ending) return false;
  const std::optional<ByteVector> told = taken.work->end(taken.does_giver_hear);
  if (!told) return false;
  taken.work = nullptr;
  if (taken.does_giver_hear)
    line_.send(name.first, Packer().put(HandedMessage::ended).put(name.second).put_bytes(*told).take());
  return true;
}

void MemoryTaker::answer(const Name& name, const Status& status) {
  Packer message;
  message.put(HandedMessage::taken).put(name.second);
  status.pack(message);
  line_.send(name.first, message.take());
}

/// Returns the descriptor, or Code::timeout as long as it has not arrived.
Result<int> MemoryTaker::receive(DescriptorSocket& socket, Unpacker& in) {
  const auto token = in.get<std::uint64_t>();
  if (!socket.has_connected()) TR_TRY(socket.connect(token));
  TR_TRY(socket.await(DescriptorSocket::Clock::now()));
  return socket.take();
}

Status MemoryTaker::begin(int giver, int descriptor, Unpacker& in, std::unique_ptr<Work>& work) {
  Result<std::unique_ptr<NodeMemory>> memory = NodeMemory::attach(descriptor, in);
  TR_TRY(memory.status());
  const auto kind = in.get<Handed>();
  const auto begin = begins_.find(kind);
  if (begin == begins_.end())
    return {Code::unsupported, cat("this server does not work on memory of kind ", static_cast<int>(kind))};
  Result<std::unique_ptr<Work>> made = begin->second(giver, std::move(*memory), Unpacker(in.get_bytes()));
  TR_TRY(made.status());
  work = std::move(*made);
  return {};
}

}  // namespace tailrace::node
