// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/order.hpp"

#include <algorithm>
#include <utility>

#include "ground/comm/line.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::comm {

namespace {

/// Longer than the ranks of a working program usually wait for each other, and shorter than the time after
/// which users begin to worry.
constexpr std::int64_t asks_after_nanoseconds = 1'000'000'000;

}  // namespace

void Order::connect(Line& computes) {
  computes_ = &computes;
  computes.on(question_message, [this](int source, Unpacker& in) {
    const auto entry = in.get<OrderedCall>();
    questions_[source] = {entry, in.get<std::uint64_t>(), 0};
  });
  computes.on(answer_message, [this](int source, Unpacker& in) { on_answer(source, in); });
  computes.on(broken_message, [this](int, Unpacker& in) { on_broken(Status::unpack(in)); });
}

void Order::enter(const OrderedWait* wait) {
  wait_ = wait;
  ++waits_;
  has_asked_ = false;
}

void Order::look(std::int64_t waited_nanoseconds) {
  if (wait_ == nullptr || computes_ == nullptr || broken_) return;
  if (waited_nanoseconds < asks_after_nanoseconds) return;
  if (!std::exchange(has_asked_, true)) ask();
  std::erase_if(questions_, [this](const auto& each) { return has_come(each.second.entry); });
  for (auto& [source, question] : questions_) {
    if (question.answered != waits_) answer(source, question);
  }
}

bool Order::has_come(const OrderedCall& entry) const {
  if (entry.kind == OrderedCall::Kind::step) return has_come_to_step_(entry);
  Line* const line = board_.find(entry.line);
  // If this rank has closed the line, it has made all calls on it.
  if (line == nullptr) return board_.numbers().was_opened(entry.line);
  return entry.kind == OrderedCall::Kind::agreement ? line->agreements().has_posted(entry.number)
                                                    : line->broadcasts().has_posted(entry.number);
}

void Order::ask() {
  const Members& members = *board_.find(wait_->entry.line)->members();
  for (const int rank : wait_->awaited) {
    const int compute = computes_->members()->find(members.transport_rank(rank));
    if (compute < 0 || compute == computes_->rank()) continue;
    computes_->send(compute, Packer().put(question_message).put(wait_->entry).put(waits_).take());
  }
}

/// Answers a question, if the asking rank must make this rank's current call too. Only then can the two ranks
/// make the two calls in a different order.
void Order::answer(int source, Question& question) {
  question.answered = waits_;
  const Members& members = *board_.find(wait_->entry.line)->members();
  if (members.find(computes_->members()->transport_rank(source)) < 0) return;
  Packer out;
  out.put(answer_message).put(question.asking).put(wait_->entry).put_text(wait_->call);
  computes_->send(source, out.take());
}

/// When the other rank answered, it waited in its own call and had not come to this rank's call, in which
/// this rank was already. If this rank has still not come to the other's call, the two make the calls in
/// different order.
void Order::on_answer(int source, Unpacker& in) {
  const auto asking = in.get<std::uint64_t>();
  const auto theirs = in.get<OrderedCall>();
  if (wait_ == nullptr || waits_ != asking || broken_ || has_come(theirs)) return;
  const Status differs =
      disagreement({computes_->rank(), std::string(wait_->call)}, {source, in.get_text()},
                   ". Every further collective call fails, until tr_finalize ends the session");
  if (computes_->rank() == 0) return on_broken(differs);
  Packer out;
  out.put(broken_message);
  differs.pack(out);
  computes_->send(0, out.take());
}

/// Marks the order as broken. Compute rank 0 gets here by the first report, the other ranks by a message that
/// goes down a tree.
void Order::on_broken(const Status& why) {
  if (broken_) return;
  broken_ = why;
  Packer out;
  out.put(broken_message);
  why.pack(out);
  for (const int child : computes_->agreements().children()) computes_->send(child, out.bytes());
  board_.end_lines();
}

}  // namespace tailrace::comm
