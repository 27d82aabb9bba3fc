// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/described/described_streams.hpp"

#include <algorithm>
#include <span>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {
namespace {

void keep_first(Status& first, const Status& status) {
  if (first.is_ok()) first = status;
}

/// Collective. Returns what compute rank 0 reads from a file, on every rank.
Result<std::string> read_on_rank_0(session::Session& session, const std::string& path,
                                   const std::string& call) {
  comm::Vote vote{{}, call, {}};
  if (session.rank() == 0) {
    vote.status = guarded([&]() -> Status {
                    const Result<std::string> text = read_description_text(path);
                    TR_TRY(text.status());
                    const auto bytes = std::as_bytes(std::span(*text));
                    vote.contribution.assign(bytes.begin(), bytes.end());
                    return {};
                  }).in(call);
  }
  const comm::Verdict read = session.agree(std::move(vote));
  TR_TRY(read.status);
  const ByteVector& bytes = read.contributions[0];
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

Result<std::unique_ptr<DescribedStreams>> DescribedStreams::configure(session::Session& session,
                                                                      const std::string& path,
                                                                      const std::string& options, Face face) {
  const std::string call = cat("tr_streams_configure(\"", path, "\", \"", options, "\")");
  const Result<std::string> text = read_on_rank_0(session, path, call);
  TR_TRY(text.status());
  std::unique_ptr<DescribedStreams> made;
  const Status mine = guarded([&]() -> Status {
    Result<Description> description = Description::parse(*text, path, options);
    TR_TRY(description.status());
    made.reset(new DescribedStreams(session, std::move(*description), std::move(face)));
    return {};
  });
  const comm::Verdict verdict = session.agree({mine.in(call), call, {}});
  TR_TRY(verdict.status);
  TR_TRY(made->make_streams(call));
  return made;
}

/// Collective. Makes all streams, or none.
Status DescribedStreams::make_streams(const std::string& call) {
  for (const DescribedStream& described : description_.streams()) {
    const Result<Stream*> stream = face_.make(described.pattern, described.options);
    if (!stream.is_ok()) {
      for (const Member& member : members_) member.stream->abandon();
      static_cast<void>(close_streams());
      return stream.status().in(
          cat(call, ": ", description_.text_of(described.place), ": stream ", described.name));
    }
    const bool takes_attributes = takes_field_option(described.request.definition.format, "attributes");
    for (const WrittenField& field : described.fields)
      asked_[field.name].push_back({members_.size(), &field});
    members_.push_back({&described, *stream, false, takes_attributes});
  }
  return {};
}

/// Returns `status` with the place in the description. Texts of Code::order stay as they are: they say which
/// calls the ranks are in, and these are not the same.
Status DescribedStreams::at(Place place, const Member& member, const Status& status) const {
  if (status.code() == Code::order) return status;
  return status.in(cat(description_.text_of(place), ": stream ", member.described->name));
}

/// Local. Returns the first error that a stream has of the definition, as far as it is known before the
/// stream has it.
Status DescribedStreams::check_definition(const std::string& field, const PlacedLayout& layout, int type,
                                          const std::string& options) const {
  for (const Use& use : uses_of(field)) {
    const Member& member = members_[use.member];
    const Result<std::string> all = description_.options_of(*member.described, *use.field, options);
    Status status = member.stream->may_define();
    if (status.is_ok()) status = all.status();
    if (status.is_ok()) {
      const codec::StreamDefinition& definition = member.described->request.definition;
      const Result<FieldRequest> request =
          parse_field(use.field->in_file, type, layout.shape(), *all, definition.format, definition.time);
      status = request.status();
      if (status.is_ok()) status = resolve_section(request->section, layout.shape()).status();
    }
    if (!status.is_ok()) return at(use.field->place, member, status);
  }
  return {};
}

const std::vector<DescribedStreams::Use>& DescribedStreams::uses_of(const std::string& field) const {
  static const auto& none = *new const std::vector<Use>();
  const auto found = asked_.find(field);
  return found == asked_.end() ? none : found->second;
}

Status DescribedStreams::define(const std::string& field, const PlacedLayout* layout, int type,
                                const std::string& options) {
  const std::vector<Use>& uses = uses_of(field);
  const Status late = has_begun_ ? check_late(field) : Status();
  if (uses.empty() || defined_.count(field) != 0 || !late.is_ok()) {
    const std::string call =
        cat("tr_stream_define(\"", name(), "\", \"", field, "\", type ", type, ", \"", options, "\")");
    const Status mine = [&]() -> Status {
      TR_TRY(late);
      if (defined_.count(field) != 0) return {Code::state, cat("field '", field, "' is defined already")};
      if (layout == nullptr) return {Code::argument, "no layout was given"};
      if (field.empty()) return {Code::argument, "the field's name is empty"};
      return Options::parse(options).status();
    }();
    const comm::Verdict verdict = session_.agree({mine.in(call), call, {}});
    TR_TRY(verdict.status);
  }
  if (uses.size() > 1) {
    // A field that one stream refuses goes to no stream. The first stream refuses one without a layout.
    const std::string call = cat("tr_stream_define(\"", name(), "\", \"", field, "\", type ", type, ")");
    const Status mine = layout == nullptr
                            ? Status()
                            : guarded([&] { return check_definition(field, *layout, type, options); });
    const comm::Verdict verdict = session_.agree({mine.in(call), call, {}});
    if (!verdict.status.is_ok())
      for (const Use& use : uses) members_[use.member].stream->note_refused(use.field->in_file);
    TR_TRY(verdict.status);
  }
  for (const Use& use : uses) {
    Member& member = members_[use.member];
    const Result<std::string> all =
        guarded([&] { return description_.options_of(*member.described, *use.field, options); });
    // Wrong options of the program are refused by the stream, on every rank.
    const Status status =
        member.stream->define(use.field->in_file, layout, type, all.is_ok() ? *all : options);
    TR_TRY(at(use.field->place, member, status.is_ok() ? all.status() : status));
    for (const codec::Axis& axis : layout->axes)
      if (member.stream->has_dimension(axis.dimension)) member.axes.insert(axis.dimension);
  }
  for (const codec::Axis& axis : layout->axes) axes_.insert(axis.dimension);
  defined_.insert(field);
  if (has_begun_) added_.insert(field);
  return {};
}

/// Returns an error if the field cannot be defined behind the first step. Every rank gets the same.
Status DescribedStreams::check_late(const std::string& field) const {
  if (!incomplete_.is_ok()) return incomplete_;
  if (in_step_) return {Code::state, "inside of a step: call it behind tr_stream_end"};
  for (const Use& use : uses_of(field)) {
    if (use.field->is_later) continue;
    return at(use.field->place, members_[use.member],
              {Code::state, "fields are defined before the first step, but for those with later: true"});
  }
  return {};
}

/// Gives an attribute to each stream that has what it is of, under the name that the stream has for it. What
/// the description gives wins.
template <typename Give>
Status DescribedStreams::give_attribute(const std::string& call, const std::string& of,
                                        const std::string& attribute, const Give& give) {
  if (has_begun_ && added_.count(of) == 0) {
    const Status late(Code::state,
                      "attributes are given before the first step, and those of a field that is defined "
                      "behind it after its definition");
    return session_.agree({late.in(call), call, {}}).status;
  }
  Status first;
  bool is_told = false;
  const auto give_to = [&](const Member& member, const std::string& name, const WrittenField* field) {
    if (!member.takes_attributes) return;
    const bool has_own = field != nullptr ? description_.gives_attribute(*member.described, *field, attribute)
                                          : of.empty() && member.described->attributes.count(attribute) != 0;
    if (has_own) return;
    keep_first(first, give(*member.stream, name));
    is_told = true;
  };
  const bool is_field = defined_.count(of) != 0;
  if (is_field) {
    for (const Use& use : uses_of(of)) give_to(members_[use.member], use.field->in_file, use.field);
  } else {
    for (const Member& member : members_)
      if (of.empty() || member.axes.count(of) != 0) give_to(member, of, nullptr);
  }
  if (is_told) return first;
  const bool is_known = of.empty() || is_field || axes_.count(of) != 0;
  const Status mine =
      is_known ? Status()
               : Status(Code::argument,
                        cat("there is no field '", of, "', and no dimension of this name has a coordinate"));
  return session_.agree({mine.in(call), call, {}}).status;
}

Status DescribedStreams::attribute(const std::string& of, const std::string& name, int type,
                                   std::int64_t count, const void* values) {
  return give_attribute(cat("tr_stream_attribute(\"", this->name(), "\", \"", of, "\", \"", name, "\")"), of,
                        name, [&](Stream& stream, const std::string& its) {
                          return stream.attribute(its, name, type, count, values);
                        });
}

Status DescribedStreams::text_attribute(const std::string& of, const std::string& name, const char* value) {
  return give_attribute(
      cat("tr_stream_attribute_text(\"", this->name(), "\", \"", of, "\", \"", name, "\")"), of, name,
      [&](Stream& stream, const std::string& its) { return stream.text_attribute(its, name, value); });
}

/// Returns the error of the first field of the description that the program has not defined: of all streams,
/// or `of_alone` only of those without any field that has time.
Status DescribedStreams::check_all_defined(bool of_alone) const {
  for (const Member& member : members_) {
    if (of_alone && !member.stream->is_alone()) continue;
    const DescribedStream& stream = *member.described;
    for (const WrittenField& field : stream.fields) {
      if (field.is_later || defined_.count(field.name) != 0) continue;
      constexpr std::size_t most = 50;
      std::string list;
      std::size_t count = 0;
      for (const std::string& each : defined_)
        if (count++ < most) list += cat(list.empty() ? "" : ", ", each);
      if (count > most) list += cat(" and ", count - most, " more");
      return error_at(name(), field.place,
                      cat("stream ", stream.name, " has the field \"", field.name,
                          "\", which the program did not define before its first step; it has ",
                          list.empty() ? std::string("none") : list));
    }
  }
  return {};
}

/// Begins the step in each stream that has one at `lead`, without it in all of them. `begin` begins it in
/// one.
template <typename Begin>
void DescribedStreams::begin_step(const Begin& begin, std::optional<std::int64_t> lead) {
  if (!has_begun_) {
    has_begun_ = true;
    incomplete_ = check_all_defined();
    // No stream gets a step. Files of the run before are not finished as if they had all of theirs.
    if (!incomplete_.is_ok())
      for (const Member& member : members_) member.stream->abandon();
    warn_of_undefined(false);
  }
  if (in_step_) latch({Code::state, "tr_stream_begin within a step: tr_stream_end comes first"});
  in_step_ = true;
  if (!incomplete_.is_ok()) return;
  for (Member& member : members_) {
    // A stream without any field that has time has its file without steps.
    if (member.stream->is_alone() || (lead && !member.described->is_due(*lead))) continue;
    member.is_in_step = true;
    begin(*member.stream);
  }
}

/// Names parts of the description that no field of the program has, once its first step has begun, and fields
/// with later: true that have never come, when it has ended.
void DescribedStreams::warn_of_undefined(bool has_ended) const {
  if (session_.rank() != 0 || !incomplete_.is_ok()) return;
  const auto warn = [&](const WrittenField& field, const std::string& name) {
    log(LogLevel::warn, cat(description_.text_of(field.place), ": the program ",
                            has_ended ? "has never defined the field \"" : "has no field \"", name, "\""));
  };
  for (const auto& [name, shared] : description_.shared()) {
    const auto comes_later = [](const Use& use) { return use.field->is_later; };
    const bool may_come = std::ranges::any_of(uses_of(name), comes_later);
    if (!has_ended && !may_come && defined_.count(name) == 0) warn(shared, name);
  }
  for (const DescribedStream& stream : description_.streams()) {
    for (const WrittenField& field : stream.fields)
      if (has_ended && field.is_later && defined_.count(field.name) == 0) warn(field, field.name);
  }
}

void DescribedStreams::begin(std::int64_t lead) {
  begin_step([&](Stream& stream) { stream.begin(lead); }, lead);
}

void DescribedStreams::begin_at(double time) {
  begin_step([&](Stream& stream) { stream.begin_at(time); }, std::nullopt);
}

Status DescribedStreams::put(const std::string& field, const void* data, const ArrayShape* shape) {
  const std::vector<Use>& uses = uses_of(field);
  if (defined_.count(field) == 0) {
    const Status status =
        no_such_field(cat("tr_stream_put('", field, "')"), field, {defined_.begin(), defined_.end()});
    latch(status);
    return in_step_ ? Status() : status;
  }
  // No stream of these fields has steps, and another one tells of the wrong call.
  const auto is_alone = [&](const Use& use) { return members_[use.member].stream->is_alone(); };
  if (in_step_ && !uses.empty() && std::ranges::all_of(uses, is_alone)) {
    latch({Code::state, cat("tr_stream_put('", field,
                            "'): the field has time=none: it is put once, before the first step")});
    return {};
  }
  Status first;
  for (const Use& use : uses) {
    const Member& member = members_[use.member];
    if (member.takes(use.field->in_file, in_step_))
      keep_first(first, member.stream->put(use.field->in_file, data, shape));
  }
  return first;
}

Status DescribedStreams::end() {
  const bool was_in_step = std::exchange(in_step_, false);
  if (!incomplete_.is_ok()) return incomplete_.in(cat("tr_stream_end(\"", name(), "\")"));
  if (members_.empty()) return {};  // close() tells all ranks of errors
  // The first stream tells all ranks of the wrong call.
  if (!was_in_step) return members_.front().stream->end();
  Status first;
  for (Member& member : members_)
    if (std::exchange(member.is_in_step, false)) keep_first(first, member.stream->end());
  return first;
}

Status DescribedStreams::wait(bool durable) {
  if (in_step_) {
    // A stream whose step is open tells of the wrong call, and fails its step on every rank.
    for (const Member& member : members_)
      if (member.is_in_step) return member.stream->wait(durable);
    return {Code::state, cat("tr_stream_wait(\"", name(), "\") inside of a step: tr_stream_end comes first")};
  }
  Status first;
  for (const Member& member : members_) keep_first(first, member.stream->wait(durable));
  return first;
}

/// Returns an error if a stream without steps, whose file would be written now, lacks a field.
Status DescribedStreams::check_alone() const {
  const auto is_alone = [](const Member& member) { return member.stream->is_alone(); };
  if (has_begun_ || std::ranges::none_of(members_, is_alone)) return {};
  return check_all_defined(true);
}

Status DescribedStreams::close() {
  if (has_begun_) warn_of_undefined(true);
  if (!members_.empty()) {
    const Status lacking = check_alone();
    for (const Member& member : members_)
      if (!lacking.is_ok() && member.stream->is_alone()) member.stream->abandon();
    const Status closed = close_streams();
    return lacking.is_ok() ? closed : lacking.in(cat("tr_stream_close(\"", name(), "\")"));
  }
  // No step of a stream tells the other ranks of this rank's errors.
  const std::string call = cat("tr_stream_close(\"", name(), "\")");
  return session_.agree({std::exchange(kept_, Status()).in(call), call, {}}).status;
}

Status DescribedStreams::close_streams() {
  Status first;
  for (const Member& member : members_) keep_first(first, face_.close(member.stream));
  members_.clear();
  return first;
}

bool DescribedStreams::wants(const std::string& field) const {
  for (const Use& use : uses_of(field))
    if (members_[use.member].takes(use.field->in_file, in_step_)) return true;
  return false;
}

/// Returns a stream that can tell all ranks of an error in this step, at best at its end and not only at that
/// of an interval. If no stream has the step, the first one tells with its next step.
Stream* DescribedStreams::stream_for_error() const {
  const auto tells_now = [](const Member& each) { return each.is_in_step && !each.stream->accumulates(); };
  auto found = std::ranges::find_if(members_, tells_now);
  if (found == members_.end()) found = std::ranges::find(members_, true, &Member::is_in_step);
  if (found == members_.end())
    found = std::ranges::find_if(members_, [](const Member& each) { return !each.stream->is_alone(); });
  return (found == members_.end() ? members_.front() : *found).stream;
}

void DescribedStreams::latch(const Status& status) {
  if (members_.empty())
    keep_first(kept_, status);
  else
    stream_for_error()->latch(status);
}

}  // namespace tailrace::streams
