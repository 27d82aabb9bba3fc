// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Fields and attributes that come while a stream runs: they begin with its next file.
#include <algorithm>
#include <ranges>
#include <utility>

#include "faces/streams/stream.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

/// Returns an error if nothing can be defined now. The servers have the definitions of a file before its
/// first step: behind the first step of the stream a definition is for the next file.
Status Fields::may_define() const {
  if (client_.out_of_step()) return *client_.out_of_step();
  if (client_.in_step()) return {Code::state, "inside of a step: call it behind tr_stream_end"};
  // Steps within an interval do not count, but a value that began without the field would be told for the
  // whole interval.
  const bool is_in_interval = operations_ && operations_->open() && !may_go_on_;
  if (client_.steps() == 0 && !is_in_interval) return {};
  if (is_in_interval)
    return {Code::state, "the stream is in the middle of an interval: call it behind a step that ends one"};
  if (!request_.pattern.depends_on_lead()) {
    return {
        Code::state,
        cat("the stream has begun its steps, and no file follows on the one that it has: define everything "
            "before the first step, or have files begin with the time, as {valid:%Y%m%d} or {lead:03h} in "
            "the pattern does; what comes later begins with the next file")};
  }
  for (const Field& field : fields_) {
    if (session_.rank() == 0 && field.definition.georeference.coordinates && field.of_layout.expired())
      return {Code::state, cat("field '", field.definition.name,
                               "' has coordinates, which the next file needs, too, and its layout was freed "
                               "or has other coordinates now: "
                               "keep layouts with coordinates until all fields are defined")};
  }
  return {};
}

/// Notes in which file the stream is, when the first definition comes that does not hold yet. Keeps what the
/// servers must hear again: layouts may be freed from now on.
void Fields::note_file_without() {
  if (has_later()) return;
  for (Field& field : fields_) field.coordinates = field.of_layout.lock();
  const std::optional<std::int64_t>& lead = client_.last_lead();
  Result<std::string> path = lead ? request_.pattern.expand(*lead, request_.context()) : std::string();
  file_without_ = path.is_ok() ? std::move(*path) : std::string();
}

/// Any rank may be the first that begins the stream: servers hear of a field as soon as it is agreed.
void Fields::tell_field(std::size_t number) {
  Field& field = fields_[number];
  const PlacedLayout& layout = *field.layout;
  ByteVector prepared;
  if (session_.rank() == 0) prepared = codec_->prepared(static_cast<int>(number));
  const auto facts = field.definition.georeference.coordinates;
  if (facts) field.definition.georeference.coordinates = field.coordinates;
  tell(client_.definitions().add({&field.definition, std::move(prepared), &layout.layout, layout.id,
                                  layout.in_parts, layout.own_indices}));
  field.definition.georeference.coordinates = facts;
  // The servers have their values: no rank keeps them for the stream.
  if (!keeps_told_) field.coordinates = nullptr;
}

/// Tells the servers of a stream with a new number the first fields and attributes: those that hold.
void Fields::tell_first(std::size_t fields, std::size_t attributes) {
  for (std::size_t i = 0; i < fields; ++i) {
    tell_field(i);
    if (fields_[i].is_put) tell(client_.definitions().add_values(static_cast<int>(i), fields_[i].values));
  }
  for (std::size_t i = 0; i < attributes; ++i) tell(client_.definitions().add_attribute(attributes_[i]));
  held_fields_ = fields;
  attributes_are_later_ = attributes < attributes_.size();
}

void Fields::tell_all() {
  keeps_told_ = false;
  tell_first(fields_.size(), attributes_.size());
}

void Fields::go_on_behind(LastFile last, bool is_within_interval) {
  last_file_ = std::move(last);
  may_go_on_ = keeps_told_ = is_within_interval || !last_file_.fields.empty();
}

std::optional<Fields::Order> Fields::decide_order(bool goes_on) {
  may_go_on_ = false;
  is_within_interval_ = false;  // what is defined from now on has nothing in the checkpoint
  const auto decide = [&]() -> std::optional<Order> {
    Order order;
    for (const std::string& name : last_file_.fields) {
      const std::optional<int> number = number_of(name);
      // The ledger tells what the file has and the stream has not. Another file has the order of the program.
      if (!number && goes_on) return {};
      if (number) order.fields.push_back(static_cast<std::size_t>(*number));
    }
    if (order.fields.size() < last_file_.fields.size()) order.fields.clear();
    std::vector<std::size_t> later;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (std::ranges::count(order.fields, i) > 0) continue;
      (goes_on || fields_[i].is_unrecorded ? later : order.fields).push_back(i);
    }
    // A file is all that a stream has whose pattern has no time: the ledger tells which field it lacks.
    if (!later.empty() && !request_.pattern.depends_on_lead()) return {};
    if (later.empty() && std::ranges::is_sorted(order.fields)) return {};
    order.held = order.fields.size();
    std::ranges::copy(later, std::back_inserter(order.fields));
    return order;
  };
  std::optional<Order> order = decide();
  keeps_told_ = order && order->held < fields_.size();
  for (Field& field : fields_) {
    field.is_unrecorded = false;
    if (!order) field.coordinates = nullptr;
  }
  return order;
}

/// Returns the coordinates of dimensions that each field brings in this order: the first one whose layout had
/// them when it was defined.
std::vector<std::vector<codec::Axis>> Fields::axes_in(const std::vector<std::size_t>& order) const {
  std::vector<std::vector<codec::Axis>> axes(order.size());
  for (std::size_t bringer = 0; bringer < fields_.size(); ++bringer) {
    for (const codec::Axis& axis : fields_[bringer].definition.axes) {
      const auto brings = [&](std::size_t number) {
        return std::ranges::count(fields_[number].with_axes, axis.dimension) > 0;
      };
      const auto first = std::ranges::find_if(order, brings) - order.begin();
      axes[static_cast<std::size_t>(first)].push_back(axis);
    }
  }
  return axes;
}

/// Attributes of fields that are added later, and of dimensions that only these have, come later, too.
Status Fields::prepare_order(Order& order) const {
  Result<std::unique_ptr<codec::Codec>> codec = formats::make_codec(request_.definition);
  TR_TRY(codec.status());
  order.axes = axes_in(order.fields);
  std::vector<codec::GivenAttribute> later;
  for (std::size_t i = 0; i <= order.fields.size(); ++i) {
    if (i == order.held) {
      for (const codec::GivenAttribute& each : attributes_)
        ((*codec)->add_attribute(each).is_ok() ? order.attributes : later).push_back(each);
    }
    if (i == order.fields.size()) break;
    const std::size_t number = order.fields[i];
    codec::FieldDefinition definition = fields_[number].definition;
    definition.axes = order.axes[i];
    TR_TRY((*codec)->define_again(definition, *codec_, static_cast<int>(number)));
  }
  order.held_attributes = order.attributes.size();
  for (codec::GivenAttribute& each : later) {
    TR_TRY((*codec)->add_attribute(each));
    order.attributes.push_back(std::move(each));
  }
  order.codec = std::move(*codec);
  return {};
}

void Fields::take_order(Order order, const std::string& file) {
  std::vector<Field> fields;
  for (const std::size_t number : order.fields) {
    numbers_[fields_[number].definition.name] = static_cast<int>(fields.size());
    fields.push_back(std::move(fields_[number]));
    fields.back().definition.axes = std::move(order.axes[fields.size() - 1]);
  }
  fields_ = std::move(fields);
  attributes_ = std::move(order.attributes);
  codec_ = std::move(order.codec);
  codec_is_ahead_ = false;
  references_.reset();
  file_without_ = file;
  tell_first(order.held, order.held_attributes);
}

/// Collective if the first step goes on in a file of a run before that has other fields than the stream, or
/// has them in another order. The fields keep the places that they have in the file. Those that it lacks
/// begin with the next file, as if they were defined behind the step. Returns the error with which the step
/// fails, on every rank.
Status Stream::fit_to_last_file(std::int64_t lead, bool is_lead_wrong) {
  if (!fields_.may_go_on() || client_.in_step() || client_.out_of_step()) return {};
  const std::string last = fields_.last_file().path;
  const Result<std::string> path = request_.pattern.expand(lead, request_.context());
  const bool is_behind = client_.last_lead() && lead < *client_.last_lead();
  const bool is_in_last = !path.is_ok() || *path == last || is_lead_wrong || is_behind;
  const bool goes_on = !fields_.last_file().fields.empty() && is_in_last;
  std::optional<Fields::Order> order = fields_.decide_order(goes_on);
  if (!order) return {};
  const std::string call = cat("tr_stream_begin(\"", name(), "\") of the first step, ",
                               goes_on ? cat("which goes on in ", last) : "which begins a file");
  const Status mine = guarded([&] { return fields_.prepare_order(*order); });
  const comm::Verdict verdict = session_.agree({mine.in(call), call, {}});
  if (verdict.ended) client_.stop(verdict.status);
  TR_TRY(verdict.status);
  tell(client_.definitions().forget());
  begin_again();
  fields_.take_order(std::move(*order), goes_on || !path.is_ok() ? last : *path);
  return {};
}

/// Gives the stream a new number, and tells the servers of it.
void Stream::begin_again() {
  session_.computing().remove_stream(client_.id());
  session_.computing().add_stream(client_);
  fields_.tell(client_.definitions().begin(head()));
}

/// Collective if the step at `lead` is the first of a file, and something was defined since the file before
/// was begun: blocks until the files before are finished, and has all definitions hold. Returns the error
/// with which the step fails, on every rank.
Status Stream::renew_for(std::int64_t lead) {
  const bool is_moot = !fields_.has_later() || client_.in_step() || client_.out_of_step().has_value();
  if (is_moot || (client_.last_lead() && lead < *client_.last_lead())) return {};
  const Result<std::string> path = request_.pattern.expand(lead, request_.context());
  if (!path.is_ok() || *path == fields_.file_without()) return {};
  const std::string call =
      cat("tr_stream_begin(\"", name(), "\") of the first step in ", *path, ", with what was defined for it");
  const comm::Verdict verdict = session_.agree({fields_.check_all_put(true).in(call), call, {}});
  if (verdict.ended) client_.stop(verdict.status);
  TR_TRY(verdict.status);
  renew();
  return {};
}

/// Ends the stream towards the servers, and begins another of the same name and run, whose steps are counted
/// on, with all that is defined.
void Stream::renew() {
  tell({client_.descriptor(node::Descriptor::Kind::close), {}});
  const comm::Account::Turn turn(session_.board().account(), comm::Routine::wait_for_storage);
  session_.wait([&] { return client_.verdicts().finished().has_value(); },
                cat("durable steps of ", name(), ", whose next file has other fields or attributes"));
  // No later step tells of a failure that the program has not heard of: the servers forget it with the
  // stream.
  const Status untold = client_.verdicts().report_failures(client_.steps() - 1);
  if (untold_.is_ok())
    untold_ = untold;
  else if (!untold.is_ok())
    untold_ = Status(untold_.code(), cat(untold_.text(), "; ", untold.text()));
  const bool is_whole = client_.verdicts().finished()->is_ok();
  client_.verdicts().go_on();
  begins_with_ = client_.steps();
  if (is_whole) left_behind_.clear();
  // The servers try again to finish or announce these files, before steps in the next one become durable.
  for (; !is_whole && ended_before_ < ended_.size(); ++ended_before_)
    note_left_behind(ended_[ended_before_].lead);
  ended_before_ = ended_.size();
  begin_again();
  fields_.tell_all();
}

/// Its steps lie before the one that begins now, which may have the lead of a step that has failed.
void Stream::note_left_behind(std::int64_t lead) {
  const Result<std::string> path = request_.pattern.expand(lead, request_.context());
  if (path.is_ok() && std::ranges::count(left_behind_, *path, &LeftBehind::path) == 0)
    left_behind_.push_back({*path, client_.last_lead().value_or(0) - 1});
}

/// True if the file of the current step has the field, or that of the interval in which the step lies.
bool Stream::takes(int number) const {
  if (fields_.holds(number)) return true;
  if (!operations_) return false;
  const Result<std::string> path = request_.pattern.expand(operations_->end(), request_.context());
  return path.is_ok() && *path != fields_.file_without();
}

Status Stream::not_in_this_file() const {
  return {Code::state, cat("the field was defined when ", fields_.file_without(),
                           " had begun without it: it begins with the next file; until then tr_stream_wants "
                           "returns 0")};
}

bool Stream::wants(const std::string& name) const {
  const std::optional<int> number = fields_.number_of(name);
  return number && (!client_.in_step() || takes(*number));
}

}  // namespace tailrace::streams
