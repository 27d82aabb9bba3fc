// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "comm/switchboard.hpp"

#include <algorithm>
#include <chrono>

#include "base/checksum.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "comm/end_job.hpp"
#include "comm/idling.hpp"
#include "comm/line.hpp"

namespace tailrace::comm {

namespace {

std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Switchboard::~Switchboard() {
  std::size_t messages = 0;
  for (const auto& [number, envelopes] : early_) messages += envelopes.size();
  if (messages > 0)
    log(LogLevel::info, cat(counted(messages, "message"), " came for lines that this rank never opened"));
}

void Switchboard::open(Line& line) {
  lines_[line.number()] = &line;
  opened_.push_back(line.number());
  if (line_number::tag_of(line.number()) >= line_number::first_free)
    count_ = std::max(count_, line_number::count_of(line.number()));
  end_if_broken(line);
}

void Switchboard::close(Line& line) {
  lines_.erase(line.number());
  std::erase(opened_, line.number());
}

Line* Switchboard::find(LineNumber line) const {
  const auto found = lines_.find(line);
  return found == lines_.end() ? nullptr : found->second;
}

bool Switchboard::was_opened(LineNumber line) const {
  const std::uint64_t count = line_number::count_of(line);
  switch (line_number::tag_of(line)) {
    case line_number::session:
    case line_number::computes:
    case line_number::settlement:
      return true;
    case line_number::without_data:
      return count <= without_data_;
    case line_number::meeting: {
      const auto met = meetings_.find(count / most_meetings);
      return met != meetings_.end() && (met->second - 1 - count) % most_meetings < most_meetings / 2;
    }
    default:
      return count <= count_;
  }
}

/// A rank may take the number of another kind of line long before it opens the line.
bool Switchboard::is_closed(LineNumber line) const {
  const LineNumber tag = line_number::tag_of(line);
  return (tag >= line_number::first_free || tag == line_number::meeting) && find(line) == nullptr &&
         was_opened(line);
}

LineNumber Switchboard::next_meeting(const Members& members) {
  Packer ranks;
  for (int rank = 0; rank < members.size(); ++rank) ranks.put(members.transport_rank(rank));
  const std::uint64_t hash = checksum(ranks.bytes()) >> 24;
  const std::uint64_t count = meetings_[hash]++;
  return line_number::meeting | (hash * most_meetings + count % most_meetings) << line_number::tag_bits;
}

void Switchboard::end_lines() {
  for (const auto& [number, line] : lines_) end_if_broken(*line);
}

void Switchboard::end_if_broken(Line& line) {
  const LineNumber tag = line_number::tag_of(line.number());
  if (!order_.broken() || tag == line_number::settlement || tag == line_number::without_data) return;
  line.end(*order_.broken());
}

LineNumber Switchboard::next_without_data() {
  return line_number::without_data | ++without_data_ << line_number::tag_bits;
}

std::vector<std::uint64_t> Switchboard::free_tags() const {
  std::vector<std::uint64_t> free(line_number::tags / 64, ~std::uint64_t{0});
  const auto take = [&](LineNumber tag) { free[tag / 64] &= ~(std::uint64_t{1} << tag % 64); };
  for (LineNumber tag = 0; tag < line_number::first_free; ++tag) take(tag);
  for (const auto& [number, line] : lines_) take(line_number::tag_of(number));
  for (const auto& [source, number] : abandoned_) take(line_number::tag_of(number));
  return free;
}

void Switchboard::send(int destination, LineNumber line, Traffic traffic, ByteVector bytes) {
  const std::lock_guard lock(transport_mutex_);
  transport_->send(destination, line, traffic, std::move(bytes));
}

std::optional<ByteVector> Switchboard::receive_from(int source, LineNumber line, Traffic traffic) {
  const std::lock_guard lock(transport_mutex_);
  return committed("taking what another rank has sent",
                   [&] { return transport_->receive_from(source, line, traffic); });
}

Bytes Switchboard::unsent(LineNumber line, Traffic traffic) const {
  const std::lock_guard lock(transport_mutex_);
  return transport_->unsent(line, traffic);
}

bool Switchboard::all_sent() const {
  const std::lock_guard lock(transport_mutex_);
  return abandoned_.empty() && transport_->all_sent();
}

bool Switchboard::progress() {
  const std::lock_guard lock(transport_mutex_);
  return transport_->progress();
}

std::optional<Envelope> Switchboard::receive() {
  const std::lock_guard lock(transport_mutex_);
  return transport_->receive();
}

int Switchboard::add_work(std::function<bool()> advance) {
  work_[next_work_] = std::move(advance);
  return next_work_++;
}

bool Switchboard::pump() {
  if (transport_ == nullptr) return false;
  return committed("moving data on", [this] { return move_on(); });
}

bool Switchboard::move_on() {
  deliver_early();
  bool moved = progress();
  std::erase_if(abandoned_, [this](const auto& each) {
    return receive_from(each.first, each.second, Traffic::broadcast).has_value();
  });
  while (std::optional<Envelope> envelope = receive()) {
    deliver(std::move(*envelope));
    deliver_early();  // a receiver may have opened a line, and later messages on it must not overtake
    moved = true;
  }
  for (const auto& [number, advance] : work_) moved = advance() || moved;
  return moved;
}

void Switchboard::deliver(Envelope envelope) {
  const auto line = lines_.find(envelope.line);
  if (line == lines_.end() && is_closed(envelope.line)) {
    if (Broadcasts::announces(envelope.bytes)) abandon(envelope.source, envelope.line);
    return;
  }
  if (line == lines_.end()) {
    early_[envelope.line].push_back(std::move(envelope));
    return;
  }
  if (line->second->deliver(envelope.source, envelope.bytes)) return;
  ++strays_;
  Unpacker in(envelope.bytes);
  log(LogLevel::error, cat("a message of unknown kind ", in.get<std::uint32_t>(), " from rank ",
                           envelope.source, " on line ", envelope.line));
}

/// Delivers the messages that came for lines before this rank had opened them.
void Switchboard::deliver_early() {
  while (!opened_.empty()) {
    const auto found = early_.find(opened_.back());
    opened_.pop_back();
    if (found == early_.end()) continue;
    std::deque<Envelope> envelopes = std::move(found->second);
    early_.erase(found);
    for (Envelope& envelope : envelopes) deliver(std::move(envelope));
  }
}

/// Before there is a transport, the clock is that of MpiTransport.
std::int64_t Switchboard::now() const { return transport_ != nullptr ? transport_->now() : steady_now(); }

void Switchboard::idle(std::int64_t nanoseconds, const std::string& what) const {
  if (transport_ != nullptr)
    transport_->idle(nanoseconds, what);
  else
    give_core_away(nanoseconds);
}

/// Leaves "in tr_finalize" out if `what` names the call already.
std::string Switchboard::waiting(std::int64_t nanoseconds, const std::string& what) const {
  const bool tell_call = !watch_.call.empty() && what.find(watch_.call) == std::string::npos;
  return cat(nanoseconds / 1'000'000'000, " s ", tell_call ? cat("in ", watch_.call, " ") : "", "for ", what);
}

void Switchboard::wait(const std::function<bool()>& done, const std::string& what, const OrderedWait& ordered,
                       const std::function<std::string()>& missing) {
  struct Waiting {
    Order& order;
    ~Waiting() { order.enter(nullptr); }
  } waiting{order_};
  order_.enter(&ordered);
  wait(done, what, missing);
}

void Switchboard::wait(const std::function<bool()>& done, const std::string& what,
                       const std::function<std::string()>& missing) {
  const auto late = [&] {
    const std::string text = cat(watch_.missing ? watch_.missing() : "", missing ? missing() : "");
    return text.empty() ? text : ":" + text;
  };
  const std::int64_t begin = now();
  bool warned = false;
  Idling idling(watch_.has_own_core);
  while (!done()) {
    watch_.before_each_look();
    if (pump()) {
      idling.moved();
      continue;
    }
    idle(idling.next(now()), what);
    const std::int64_t waited = now() - begin;
    order_.look(waited);
    const auto reached = [&](const std::optional<std::int64_t>& seconds) {
      return seconds && waited > *seconds * 1'000'000'000;
    };
    if (!warned && reached(watch_.warn_seconds)) {
      warned = true;
      log(LogLevel::warn, cat(watch_.who, " has waited ", waiting(waited, what), late()));
    }
    if (reached(watch_.give_up_seconds)) {
      end_job(cat(watch_.who, " gives up (TAILRACE_TIMEOUT) after waiting ", waiting(waited, what), late()));
    }
  }
}

}  // namespace tailrace::comm
