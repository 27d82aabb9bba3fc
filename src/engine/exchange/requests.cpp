// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/exchange/requests.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ground/base/text.hpp"

namespace tailrace::exchange {

Requests::Requests(ProgressEngine& progress, Peers peers, std::uint64_t epoch, executor::Threads& threads,
                   const std::string& what, Served served)
    : progress_(progress),
      peers_(std::move(peers)),
      epoch_(epoch),
      threads_(threads),
      asking_(cat("asking other nodes for ", what)),
      what_(what),
      served_(std::move(served)) {
  for (int i = 0; i < served_.at_once; ++i) ways_.push_back({threads.new_own_key()});
  progress_.open(address(), *this);
  is_open_ = true;
  send_to(nullptr);
}

void Requests::send_to(std::shared_ptr<const Answering> answering) {
  answering_ = std::move(answering);
  waiting_ = cat("other nodes that have ", what_);
  const bool do_servers = answering_ != nullptr && answering_->nodes_with_server == answering_->nodes;
  if (!do_servers && !progress_.has_thread())
    waiting_ += ", which answer in calls of this library (tr_progress)";
}

void Requests::say_how() {
  if (peers_.members->transport_rank(0) != progress_.board().transport().rank()) return;
  progress_.say_how(answering_ != nullptr ? answering_->nodes_with_server : 0,
                    answering_ != nullptr ? answering_->nodes : 0);
}

Requests::~Requests() {
  (void)end();
  for (const Way& way : ways_) threads_.drain(way.key);
}

bool Requests::end() {
  if (std::exchange(is_open_, false)) progress_.close(address(), *this);
  return std::ranges::all_of(ways_, [this](const Way& way) { return threads_.is_idle(way.key); });
}

// A message holds the epoch, its kind and the number of the request; then the pieces of work of a request, or
// the two statuses and the values of an answer; and last the number from Served::tell().

Packer Requests::begin_message(Kind kind, std::uint64_t number) const {
  Packer message;
  message.put(epoch_).put(kind).put(number);
  return message;
}

void Requests::send_message(int receiver, Packer message) {
  message.put(served_.tell());
  progress_.board().transport().send(receiver, peers_.line, comm::Traffic::request, message.take());
}

Requests::Outgoing& Requests::outgoing_to(int rank) {
  const auto [entry, is_new] = outgoing_.try_emplace(rank);
  Outgoing& out = entry->second;
  if (is_new) {
    out.number = next_++;
    out.message = begin_message(Kind::request, out.number);
  }
  return out;
}

std::uint64_t Requests::send(int rank, bool is_question) {
  Outgoing out = std::move(outgoing_.extract(rank).mapped());
  gathered_ -= out.gathered;
  const Bytes bytes = std::ssize(out.message.bytes());
  {
    const std::lock_guard lock(progress_.mutex());
    on_way_[out.number] = bytes;
    bytes_on_way_ += bytes;
    if (is_question) questions_.insert(out.number);
  }
  send_message(receiver_of(rank), std::move(out.message));
  return out.number;
}

void Requests::wait(const std::function<bool()>& done) {
  progress_.board().wait(
      [&] {
        const std::lock_guard lock(progress_.mutex());
        return done() || is_broken();
      },
      waiting_);
}

void Requests::send_all() {
  while (!outgoing_.empty()) send(outgoing_.begin()->first, false);
}

void Requests::wait_for_room() {
  wait([this] { return bytes_on_way_ <= most_on_way / 2; });
}

Result<ByteVector> Requests::answer_to(std::uint64_t question) {
  wait([&] { return answers_.count(question) != 0; });
  const std::lock_guard lock(progress_.mutex());
  questions_.erase(question);
  if (answers_.count(question) == 0) return *progress_.board().order().broken();
  Answer answer = std::move(answers_.extract(question).mapped());
  TR_TRY(answer.got);
  return std::move(answer.values);
}

void Requests::settle() {
  comm::committed(asking_, [&] { send_all(); });
  wait([this] { return on_way_.empty(); });
}

Status Requests::failure() const {
  const std::lock_guard lock(progress_.mutex());
  return failure_;
}

Status Requests::take_failure() {
  const std::lock_guard lock(progress_.mutex());
  return std::exchange(failure_, {});
}

bool Requests::is_for_this(const comm::Envelope& envelope) const {
  Unpacker in(envelope.bytes);
  in.get<std::uint64_t>();  // the epoch
  return in.get<Kind>() == Kind::answer || peers_.members->find(envelope.source) >= 0;
}

void Requests::deliver(comm::Envelope envelope) {
  const std::span<const std::byte> bytes = envelope.bytes;
  served_.hear(Unpacker(bytes.last(sizeof(Bytes))).get<Bytes>());
  Unpacker in(bytes.first(bytes.size() - sizeof(Bytes)));
  in.get<std::uint64_t>();  // the epoch
  const auto kind = in.get<Kind>();
  const auto number = in.get<std::uint64_t>();
  if (kind == Kind::answer) return on_answer(number, in);
  const std::size_t begin = bytes.size() - sizeof(Bytes) - in.rest().size();
  queues_[envelope.source].requests.push_back({number, std::move(envelope.bytes), begin});
}

void Requests::on_answer(std::uint64_t number, Unpacker& in) {
  const auto asked = on_way_.find(number);
  if (asked == on_way_.end()) return;  // this object did not ask
  Answer answer;
  answer.changed = Status::unpack(in);
  answer.got = Status::unpack(in);
  failure_ = first_cause(failure_, answer.changed);
  bytes_on_way_ -= asked->second;
  on_way_.erase(asked);
  if (questions_.count(number) == 0) return;
  const auto values = in.get_bytes();
  answer.values.assign(values.begin(), values.end());
  answers_[number] = std::move(answer);
}

bool Requests::serve() {
  bool moved = served_.help();
  for (auto each = queues_.begin(); each != queues_.end();) {
    auto& [source, queue] = *each;
    while (!queue.requests.empty() && serve_first(source, queue)) moved = true;
    each = queue.requests.empty() ? queues_.erase(each) : std::next(each);
  }
  return moved;
}

bool Requests::is_waiting() const {
  return std::ranges::any_of(queues_, [](const auto& each) { return each.second.done != nullptr; });
}

/// Does the first request of the queue. Returns false if a thread still works on it, or if it cannot be done
/// now.
bool Requests::serve_first(int source, Queue& queue) {
  Request& request = queue.requests.front();
  const bool is_done = queue.done == nullptr && is_quick(request) && work_on(request, false, queue.answer);
  if (!is_done) {
    if (queue.done == nullptr) submit(request, queue);
    if (!queue.done->load()) return false;
    queue.done = nullptr;
    --ways_[queue.way].jobs;
    if (!queue.is_over) return false;  // the next pass tries again
  }
  reply(source, request.number, std::exchange(queue.answer, {}));
  queue.requests.pop_front();
  return true;
}

/// Gives the request to a thread, on the way with the fewest jobs.
void Requests::submit(Request& request, Queue& queue) {
  const auto way = std::ranges::min_element(ways_, {}, &Way::jobs);
  auto done = std::make_shared<std::atomic<bool>>(false);
  threads_.submit(way->key, [this, &queue, &request, done] {
    queue.is_over = work_on(request, true, queue.answer);
    done->store(true);
    served_.wake();
  });
  queue.done = std::move(done);
  queue.way = static_cast<std::size_t>(way - ways_.begin());
  ++way->jobs;
}

Unpacker Requests::Request::pieces() const {
  const std::span<const std::byte> bytes = message;
  return Unpacker(bytes.first(bytes.size() - sizeof(Bytes)).subspan(begin));
}

bool Requests::is_quick(const Request& request) const {
  if (served_.is_quick == nullptr) return true;
  for (Unpacker pieces = request.pieces(); !pieces.rest().empty();)
    if (!served_.is_quick(pieces)) return false;
  return true;
}

/// Does the pieces of a request and removes those that are done from it. Returns false if some are still to
/// be done.
bool Requests::work_on(Request& request, bool waits, Answer& answer) const {
  Unpacker pieces = request.pieces();
  bool is_over = true;
  const Status out_of_memory = guarded([&] {
    while (is_over && !pieces.rest().empty()) {
      const Unpacker before = pieces;
      const std::size_t values = answer.values.size();
      is_over = served_.serve(pieces, waits, answer);
      if (is_over) continue;
      pieces = before;
      answer.values.resize(values);
    }
    return Status();
  });
  answer.changed = first_cause(answer.changed, out_of_memory);
  answer.got = first_cause(answer.got, out_of_memory);
  request.begin = request.message.size() - sizeof(Bytes) - pieces.rest().size();
  return is_over;
}

void Requests::reply(int source, std::uint64_t number, const Answer& answer) {
  Packer message = begin_message(Kind::answer, number);
  answer.changed.pack(message);
  answer.got.pack(message);
  message.put_bytes(answer.values);
  send_message(source, std::move(message));
}

}  // namespace tailrace::exchange
