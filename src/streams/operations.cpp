// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "streams/operations.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tailrace::streams {

using operations::Operation;

namespace {

constexpr int bits_of_leads = 40;  // of calls(), below the number of puts

Status settings_error(std::string text) { return {Code::settings, std::move(text)}; }

codec::Process process_of(Operation operation) {
  switch (operation) {
    case Operation::instant:
      return codec::Process::instant;
    case Operation::mean:
      return codec::Process::average;
    case Operation::accum:
      return codec::Process::accum;
    case Operation::minimum:
      return codec::Process::minimum;
    case Operation::maximum:
      return codec::Process::maximum;
  }
  return codec::Process::instant;
}

}  // namespace

Result<std::unique_ptr<TimedField>> TimedField::make(const operations::Accumulated& what,
                                                     node::Budget& budget) {
  const Bytes bytes = operations::Accumulator::bytes_of(what);
  node::Draw enough(budget, node::Use::intervals);
  TR_TRY(enough.take(bytes).in(
      cat("operation=", name_of(what.operation), " takes ", counted(bytes, "byte"), " on this rank")));
  enough.give_back();
  std::unique_ptr<TimedField> made(new TimedField(what, budget));
  TR_TRY(made->drawn_.take(bytes));
  return made;
}

void TimedField::begin() {
  accumulator_.begin();
  leads_ = 0;
}

void TimedField::add(const layout::MemoryMap& map, const std::byte* base, std::int64_t lead) {
  accumulator_.add(map, base);
  leads_ = leads_ * 1'000'003 + static_cast<std::uint64_t>(lead);
}

void TimedField::restore(const OpenInterval::Field& recorded) {
  accumulator_.restore(recorded.puts);
  leads_ = recorded.leads;
}

OpenInterval::Field TimedField::recorded(const std::string& name) const {
  return {name, static_cast<std::int32_t>(accumulator_.what().operation), accumulator_.puts(), leads_};
}

std::int64_t TimedField::calls() const {
  const auto leads = static_cast<std::int64_t>(leads_ & ((std::uint64_t{1} << bits_of_leads) - 1));
  return (accumulator_.puts() << bits_of_leads) | leads;
}

Status Operations::resume(const Position& position) {
  last_ = position.lead;
  if (position.lead && !intervals_.is_end(*position.lead)) {
    return {Code::state,
            cat("the checkpoint has the stream behind lead ", *position.lead, " s, where no interval of ",
                text_of(intervals_.length()), " ends: create the stream with the interval= that it had")};
  }
  if (!position.interval) return {};
  recorded_ = position.interval;
  last_ = recorded_->lead;
  begin_ = intervals_.begin_of(*last_);
  for (const OpenInterval::Field& field : recorded_->fields) awaited_.insert(field.name);
  if (*begin_ == recorded_->begin && !intervals_.is_end(*last_)) return {};
  return {Code::state,
          cat("the checkpoint has an interval that began at lead ", recorded_->begin,
              " s and had come to lead ", recorded_->lead, " s, which is none of ",
              text_of(intervals_.length()), ": create the stream with the interval= that it had")};
}

Status Operations::define(FieldRequest& field) const {
  codec::Statistic& statistic = field.definition.statistic;
  const Operation operation = field.operation.value_or(Operation::instant);
  TR_TRY(operations::check_operation(operation, field.definition.type, field.definition.missing));
  if (operation == Operation::instant) return {};
  if (field.has_statistic && statistic.process != process_of(operation))
    return settings_error(cat("statistic= contradicts operation=", name_of(operation),
                              ", from which the statistic follows: leave statistic= out"));
  using Since = codec::Statistic::Since;
  const std::int64_t seconds = intervals_.length().seconds;
  statistic = {process_of(operation), seconds > 0 ? Since::duration : Since::last_output, seconds};
  return {};
}

std::optional<OpenInterval::Field> Operations::recorded(const std::string& field) const {
  if (!recorded_) return {};
  const auto found = std::ranges::find(recorded_->fields, field, &OpenInterval::Field::name);
  return found == recorded_->fields.end() ? std::nullopt : std::optional(*found);
}

Status Operations::take_recorded(const std::string& field, Operation operation) {
  if (!recorded_) return {};
  awaited_.erase(field);
  const std::optional<OpenInterval::Field> found = recorded(field);
  if (!found)
    return {Code::state, cat("the checkpoint is in the middle of an interval, and has no values of field '",
                             field, "' in it: define the fields that the stream had")};
  if (found->operation == static_cast<std::int32_t>(operation)) return {};
  return {Code::state,
          cat("the checkpoint is in the middle of an interval, in which field '", field,
              "' has operation=", operations::operation_names[static_cast<std::size_t>(found->operation)],
              ", and not ", name_of(operation))};
}

Status Operations::check_order(std::int64_t lead) const {
  if (lead < 0) return {Code::argument, cat("lead ", lead, " s is before the base time")};
  if (last_ && lead <= *last_)
    return {Code::order, cat("lead ", lead, " s does not lie behind that of the step before, ", *last_,
                             " s: with interval= each step has a lead of its own, above the one before")};
  if (!awaited_.empty())
    return {Code::state, cat("the checkpoint is in the middle of an interval, and field '", *awaited_.begin(),
                             "', of which it has values, is not defined")};
  return {};
}

Status Operations::begin(std::int64_t lead) {
  lead_ = lead;
  counts_ = begins_ = false;
  TR_TRY(check_order(lead));
  const std::int64_t before = std::exchange(last_, lead).value_or(-1);
  if (lead == 0) return {};  // it ends an interval without a step
  counts_ = true;
  const std::int64_t begin = intervals_.begin_of(lead);
  begins_ = begin_ != begin || intervals_.is_end(before);
  begin_ = begin;
  // A first step may lie in any interval of seconds. An interval of months has no other sign of its begin
  // than the step before.
  const bool is_first = before < 0;
  if (is_first && intervals_.length().seconds > 0) return {};
  const std::int64_t due = intervals_.end_of(is_first ? 1 : before + 1);
  if (lead <= due) return {};
  return {Code::order, cat("lead ", lead, " s passes over lead ", due, " s, where an interval of ",
                           text_of(intervals_.length()), " ends, ",
                           is_first ? "as the first step" : cat("behind lead ", before, " s"),
                           ": a step lies at the end of each interval")};
}

std::optional<OpenInterval> Operations::open() const {
  if (!last_ || *last_ == 0 || intervals_.is_end(*last_)) return {};
  return OpenInterval{*begin_, *last_, {}};
}

}  // namespace tailrace::streams
