// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Fields and attributes that come while a stream runs: they begin with its next file.
#include <algorithm>
#include <ranges>
#include <utility>

#include "faces/streams/stream.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

/// Returns an error if nothing can be defined now. The servers have the definitions of a file before its
/// first step: behind the first step of the stream a definition is for the next file.
Status Fields::may_define() const {
  if (client_.out_of_step()) return *client_.out_of_step();
  if (client_.in_step()) return {Code::state, "inside of a step: call it behind tr_stream_end"};
  if (client_.steps() == 0) return {};
  if (!request_.pattern.depends_on_lead()) {
    return {
        Code::state,
        cat("the stream has begun its steps, and no file follows on the one that it has: define everything "
            "before the first step, or have files begin with the time, as {valid:%Y%m%d} or {lead:03h} in "
            "the pattern does; what comes later begins with the next file")};
  }
  if (operations_ && operations_->open()) {
    return {Code::state, "the stream is in the middle of an interval: call it behind a step that ends one"};
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
  field.coordinates = nullptr;  // the servers have their values: no rank keeps them for the stream
}

void Fields::tell_all() {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    tell_field(i);
    if (!fields_[i].definition.has_time)
      tell(client_.definitions().add_values(static_cast<int>(i), fields_[i].values));
  }
  for (const codec::GivenAttribute& each : attributes_) tell(client_.definitions().add_attribute(each));
  held_fields_ = fields_.size();
  attributes_are_later_ = false;
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
  session_.computing().remove_stream(client_.id());
  session_.computing().add_stream(client_);
  begins_with_ = client_.steps();
  if (is_whole) left_behind_.clear();
  // The servers try again to finish or announce these files, before steps in the next one become durable.
  for (; !is_whole && ended_before_ < ended_.size(); ++ended_before_)
    note_left_behind(ended_[ended_before_].lead);
  ended_before_ = ended_.size();
  fields_.tell(client_.definitions().begin(head()));
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
