// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/operations.hpp"

#include <algorithm>

#include "ground/base/options.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

using operations::Operation;

namespace {

constexpr int bits_of_leads = 40;  // lower bits of calls(); the number of puts stands above

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

/// Returns "hybrid:1,2", with the other surface of layers as "10-0".
std::string levels_text(const codec::Levels& levels) {
  std::string text = levels.type;
  for (std::size_t i = 0; i < levels.values.size(); ++i) {
    text += cat(i == 0 ? ":" : ",", levels.values[i]);
    if (i < levels.bottoms.size()) text += cat("-", levels.bottoms[i]);
  }
  return text;
}

/// Returns " of section=0:9:2", or "" for a whole array.
std::string section_text(const codec::Section& section) {
  std::string text;
  for (std::size_t i = 0; i < section.whole.size(); ++i)
    text +=
        cat(i == 0 ? " of section=" : ",", section.start[i], ":", section.stop[i], ":", section.stride[i]);
  return text;
}

}  // namespace

Result<std::unique_ptr<TimedField>> TimedField::make(const operations::Accumulated& what,
                                                     node::Budget& budget) {
  const Bytes bytes = operations::Accumulator::bytes_of(what);
  const auto drawn = std::make_shared<node::Draw>(budget, node::Use::intervals);
  TR_TRY(drawn->take(bytes).in(
      cat("operation=", name_of(what.operation), " takes ", counted(bytes, "byte"), " on this rank")));
  std::unique_ptr<TimedField> made(new TimedField(what));
  made->accumulator_.memory()->drawn = drawn;
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

OpenInterval::Field TimedField::recorded(const codec::FieldDefinition& definition) const {
  return {definition.name,
          static_cast<std::int32_t>(accumulator_.what().operation),
          accumulator_.puts(),
          leads_,
          cat(name_of(definition.type), section_text(definition.section)),
          definition.shape,
          levels_text(definition.levels),
          definition.missing ? cat(*definition.missing) : ""};
}

std::int64_t TimedField::calls() const {
  const auto leads = static_cast<std::int64_t>(leads_ & ((std::uint64_t{1} << bits_of_leads) - 1));
  return (accumulator_.puts() << bits_of_leads) | leads;
}

Status Operations::resume(const Position& position) {
  last_ = position.lead;
  if (position.lead && !intervals_.is_end(*position.lead)) {
    return {Code::state, cat("the checkpoint has the stream behind ", time_.at(*position.lead),
                             ", where no interval of ", text_of(intervals_.length(), time_),
                             " ends: create the stream with the interval= that it had")};
  }
  if (!position.interval) return {};
  recorded_ = position.interval;
  for (const OpenInterval::Field& field : recorded_->fields) awaited_.insert(field.name);
  if (!(recorded_->length == intervals_.length()))
    return {Code::state,
            cat("the checkpoint is in the middle of an interval of ", text_of(recorded_->length, time_),
                ", and not of ", text_of(intervals_.length(), time_),
                ": create the stream with the interval= that it had")};
  refused_ = recorded_->begin == recorded_->lead;
  if (refused_ && recorded_->lead == last_.value_or(0)) return {};  // no step has counted yet
  last_ = recorded_->lead;
  begin_ = intervals_.begin_of(*last_);
  if (*begin_ == recorded_->begin && !intervals_.is_end(*last_)) return {};
  return {Code::state,
          cat("the checkpoint has an interval that began at ", time_.at(recorded_->begin),
              " and had come to ", time_.at(recorded_->lead), ", which is none of ",
              text_of(intervals_.length(), time_), ": create the stream with the interval= that it had")};
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
  const std::int64_t length = intervals_.length().leads;
  statistic = {process_of(operation), length > 0 ? Since::duration : Since::last_output, length};
  return {};
}

std::optional<OpenInterval::Field> Operations::recorded(const std::string& field) const {
  if (!recorded_) return {};
  const auto found = std::ranges::find(recorded_->fields, field, &OpenInterval::Field::name);
  return found == recorded_->fields.end() ? std::nullopt : std::optional(*found);
}

Status Operations::check_recorded(const OpenInterval::Field& now) const {
  if (!recorded_) return {};
  const std::optional<OpenInterval::Field> found = recorded(now.name);
  if (!found)
    return {Code::state, cat("the checkpoint is in the middle of an interval, and has no values of field '",
                             now.name, "' in it: define the fields that the stream had")};
  const auto operation = [](const OpenInterval::Field& field) {
    return std::string(operations::operation_names[static_cast<std::size_t>(field.operation)]);
  };
  const auto array = [](const OpenInterval::Field& field) {
    return cat("records of ", extents(field.shape), " ", field.type);
  };
  const auto missing = [](const OpenInterval::Field& field) {
    return field.missing.empty() ? std::string("no missing=") : cat("missing=", field.missing);
  };
  const auto check = [&](const std::string& before, const std::string& after) -> Status {
    if (before == after) return {};
    return {Code::state,
            cat("the checkpoint is in the middle of an interval, in which field '", now.name, "' has ",
                before, ", and not ", after, ": define it as it was when the checkpoint was saved")};
  };
  TR_TRY(check(cat("operation=", operation(*found)), cat("operation=", operation(now))));
  TR_TRY(check(array(*found), array(now)));
  TR_TRY(check(cat("levels=", found->levels), cat("levels=", now.levels)));
  return check(missing(*found), missing(now));
}

Status Operations::check_complete() const {
  if (awaited_.empty()) return {};
  return {Code::state, cat("the checkpoint is in the middle of an interval, and field '", *awaited_.begin(),
                           "', of which it has values, is not defined: define the fields that the stream had "
                           "before its first step")};
}

Status Operations::check_order(std::int64_t lead) const {
  TR_TRY(time_.check(lead));
  if (last_ && lead <= *last_)
    return {Code::order,
            cat(time_.at(lead), " does not lie behind that of the step before, ", time_.text(*last_),
                ": with interval= each step has a lead of its own, above the one before")};
  return check_complete();
}

/// Returns what missed() does. `before` is the lead of the step before, or -1.
Status Operations::check_ends(std::int64_t before) const {
  if (before < 0) return {};  // a first step may lie in any interval
  const std::int64_t due = intervals_.end_of(before + 1);
  if (lead_ <= due) return {};
  return {Code::order,
          cat(time_.at(lead_), " passes over ", time_.at(due), ", where an interval of ",
              text_of(intervals_.length(), time_), " ends, behind ", time_.at(before),
              ": nothing is written at ", time_.at(due),
              ", and the step counts in its own interval; a step lies at the end of each interval")};
}

Status Operations::begin(std::int64_t lead) {
  lead_ = lead;
  counts_ = begins_ = false;
  missed_ = {};
  if (Status order = check_order(lead); !order.is_ok()) {
    refused_ = true;
    return order;
  }
  const std::int64_t before = std::exchange(last_, lead).value_or(-1);
  if (lead == 0) return {};  // it ends an interval without a step
  counts_ = true;
  const std::int64_t begin = intervals_.begin_of(lead);
  begins_ = begin_ != begin || intervals_.is_end(before);
  begin_ = begin;
  missed_ = check_ends(before);
  if (completes() || !missed_.is_ok()) refused_ = false;
  return {};
}

std::optional<OpenInterval> Operations::open() const {
  const std::int64_t last = last_.value_or(0);
  if (last > 0 && !intervals_.is_end(last)) return OpenInterval{*begin_, last, {}, intervals_.length()};
  if (refused_) return OpenInterval{last, last, {}, intervals_.length()};
  return {};
}

}  // namespace tailrace::streams
