// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/switchboard.hpp"

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/end_job.hpp"
#include "ground/comm/idling.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::comm {

Switchboard::~Switchboard() {
  std::size_t messages = 0;
  for (const auto& [number, envelopes] : early_) messages += envelopes.size();
  if (messages > 0)
    log(LogLevel::info, cat(counted(messages, "message"), " came for lines that this rank never opened"));
}

void Switchboard::open(Line& line) {
  lines_[line.number()] = &line;
  opened_.push_back(line.number());
  numbers_.note_opened(line.number());
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

void Switchboard::end_lines() {
  for (const auto& [number, line] : lines_) end_if_broken(*line);
}

void Switchboard::end_if_broken(Line& line) {
  const LineNumber tag = line_number::tag_of(line.number());
  if (!order_.broken() || tag == line_number::settlement || tag == line_number::without_data) return;
  line.end(*order_.broken());
}

line_number::Tags Switchboard::free_tags() const {
  line_number::Tags free;
  for (LineNumber tag = line_number::first_free; tag < line_number::tags; ++tag) free.set(tag);
  for (const auto& [number, line] : lines_) free.reset(line_number::tag_of(number));
  for (const auto& [source, number] : abandoned_) free.reset(line_number::tag_of(number));
  return free;
}

bool Switchboard::all_sent() const { return abandoned_.empty() && transport_.all_sent(); }

int Switchboard::add_work(std::function<bool()> advance) {
  work_[next_work_] = std::move(advance);
  return next_work_++;
}

bool Switchboard::pump() {
  if (!transport_.is_connected()) return false;
  return committed("moving data on", [this] { return move_on(); });
}

bool Switchboard::move_on() {
  deliver_early();
  bool moved = transport_.progress();
  std::erase_if(abandoned_, [this](const auto& each) {
    return transport_.receive_from(each.first, each.second, Traffic::broadcast).has_value();
  });
  while (std::optional<Envelope> envelope = transport_.receive()) {
    deliver(std::move(*envelope));
    deliver_early();  // a receiver may have opened a line, and later messages on it must not overtake
    moved = true;
  }
  for (const auto& [number, advance] : work_) moved = advance() || moved;
  return moved;
}

void Switchboard::deliver(Envelope envelope) {
  const auto line = lines_.find(envelope.line);
  // Lines with other tags are left out: a rank may take the number of one long before it opens the line.
  const LineNumber tag = line_number::tag_of(envelope.line);
  const bool may_be_closed = tag >= line_number::first_free || tag == line_number::meeting;
  if (line == lines_.end() && may_be_closed && numbers_.was_opened(envelope.line)) {
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

/// Delivers the messages that came for lines before this rank opened them.
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

/// Returns "12 s in tr_finalize for the other ranks". Leaves out "in tr_finalize" if `what` names that call.
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
  if (done()) return;
  const bool has_routine = account_.current() != Routine::model && account_.current() != Routine::idle;
  const Account::Turn turn(account_, has_routine ? account_.current() : Routine::message);
  bool warned = false;
  Idling idling(watch_.has_own_core);
  do {
    watch_.before_each_look();
    if (pump()) {
      idling.moved();
      continue;
    }
    transport_.idle(idling.next(transport_.now()), what);
    const std::int64_t waited = transport_.now() - turn.begin();
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
  } while (!done());
}

}  // namespace tailrace::comm
