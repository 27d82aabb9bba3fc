// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/stream.hpp"

#include <algorithm>

#include "engine/pipeline/handoff_lanes.hpp"
#include "engine/pipeline/method_choice.hpp"
#include "engine/session/call_time.hpp"
#include "faces/streams/files/file_ledger.hpp"
#include "formats/registry/registry.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/log.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/end_job.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::streams {

using node::Descriptor;

namespace {

/// Names this rank in the error about a format that other ranks may have registered.
Status on_this_rank(const session::Session& session, const std::string& options, Status status) {
  const Result<Options> given = Options::parse(options);
  const std::string* const format = given.is_ok() ? given->find("format") : nullptr;
  if (format == nullptr || formats::find(*format).is_ok()) return status;
  return status.in(cat("rank ", session.topology().world_rank()));
}

/// Refuses a method by which several servers write one object, where storage takes objects as a whole.
Status check_writers(const pipeline::Method& method, const std::string& pattern) {
  if (method.has_one_writer() || storage::is_of_files(pattern)) return {};
  std::string possible;
  for (const pipeline::Method& each : pipeline::methods()) {
    if (each.has_one_writer()) possible += cat(possible.empty() ? "" : " or ", "method=", each.name);
  }
  return {Code::unsupported,
          cat(pattern, " lies in a place of whole objects ('", storage::place_kind_of(pattern).name,
              "'), where one server writes each store: choose ", possible)};
}

}  // namespace

Result<std::unique_ptr<Stream>> Stream::create(session::Session& session, const std::string& pattern,
                                               const std::string& options,
                                               const std::optional<Position>& resume,
                                               std::shared_ptr<operations::Kept> kept) {
  const comm::Account::Turn turn(session.board().account(), comm::Routine::message);
  std::unique_ptr<Stream> stream;
  LastFile last;
  const Status mine = guarded([&]() -> Status {
    Result<StreamRequest> request = parse_stream(pattern, options);
    TR_TRY(on_this_rank(session, options, request.status()));
    stream.reset(new Stream(session, std::move(*request), pattern));
    TR_TRY(stream->choose_method());
    TR_TRY(stream->choose_handoff());
    TR_TRY(stream->fields_.begin());
    stream->options_ = options;
    TR_TRY(stream->prepare_operations(resume));
    if (session.rank() != 0) return {};
    TR_TRY(formats::check_keys(stream->request_.definition, stream->request_.open_keys));
    // The files are looked at now: the first step may be hours away.
    Result<std::shared_ptr<void>> lock = lock_stream(session.streams_target(), stream->request_);
    TR_TRY(lock.status());
    stream->lock_ = std::move(*lock);
    stream->look_for_method();
    TR_TRY(stream->try_method());
    TR_TRY(check_existing_files(session.streams_target(), stream->request_, resume));
    if (!resume)
      return find_left_behind(session.streams_target(), stream->request_, stream->left_behind_, last);
    Result<LastFile> found = file_of_position(session.streams_target(), stream->request_, *resume);
    TR_TRY(found.status());
    last = std::move(*found);
    return {};
  });
  const std::string call = cat("tr_stream_create(\"", pattern, "\", \"", options, "\")");
  comm::Vote vote{mine.in(call), call, {}};
  if (resume) vote.call += cat(" continuing from ", text_of(*resume), " of run ", resume->run.text());
  if (session.rank() == 0) {
    Packer run;
    run.put(resume ? resume->run : Uuid::random());
    last.pack(run);
    if (stream) run.put_text(stream->request_.options.method).put_text(stream->why_method_);
    vote.contribution = run.take();
  }
  const comm::Verdict verdict = session.agree(std::move(vote));
  TR_TRY(verdict.status);
  TR_TRY(
      session.memory().open_staging(call, [&](comm::Vote vote) { return session.agree(std::move(vote)); }));
  TR_TRY(stream->open_handoff(call));
  Unpacker from_rank_0(verdict.contributions[0]);
  stream->run_ = from_rank_0.get<Uuid>();
  stream->fields_.go_on_behind(LastFile::unpack(from_rank_0), resume && resume->interval);
  stream->request_.options.method = from_rank_0.get_text();
  stream->why_method_ = from_rank_0.get_text();
  if (resume) stream->continue_from(*resume, std::move(kept));
  session.computing().add_stream(stream->client_);
  stream->fields_.tell(stream->client_.definitions().begin(stream->head()));
  return stream;
}

Status Stream::choose_method() {
  std::string chosen = cat("method=", request_.options.method);
  if (request_.options.method.empty()) {
    const std::vector<SettingValue>& values = session_.settings().values;
    const SettingValue& set = *std::ranges::find(values, "method", &SettingValue::name);
    const bool is_of_files = storage::is_of_files(request_.pattern.text());
    request_.options.method = set.origin != "default" || is_of_files
                                  ? set.value
                                  : std::string(pipeline::default_method_of_one_writer().name);
    chosen = cat(set.origin == "environment" ? environment_name(set.name) : set.name, "=",
                 request_.options.method);
    if (set.value != pipeline::chosen_method) TR_TRY(pipeline::find_method(set.value).status().in(chosen));
  }
  const bool is_chosen = request_.options.method == pipeline::chosen_method;
  const pipeline::Method& method =
      is_chosen ? pipeline::default_method() : **pipeline::find_method(request_.options.method);
  if (!is_chosen) TR_TRY(check_writers(method, request_.pattern.text()).in(chosen));
  const bool is_collective = method.is_collective;
  if (!is_collective && !request_.options.hints.empty())
    return {Code::settings,
            cat("mpiio_hints=\"", request_.options.hints,
                "\": hints are for method=mpiio and mpiio_shared, and the stream has ", chosen)};
  if (!is_collective) return {};
  TR_TRY(session_.check_collective(request_.pattern.text())
             .in(cat(chosen, " is not possible here; choose another method, such as scan")));
  if (!(*pipeline::find_method(request_.options.method))->appends) return {};
  const Result<std::unique_ptr<codec::Codec>> codec = formats::make_codec(request_.definition);
  if (!codec.is_ok() || !(*codec)->fixed_places()) return {};  // fields_.begin() tells what is wrong
  return {Code::unsupported,
          cat(chosen, " is not possible with format=", request_.definition.format,
              ", in which each record has a place of its own: it appends records in the order in which they "
              "become ready; choose another method, such as mpiio")};
}

Status Stream::choose_handoff() {
  const SettingValue& set = *std::ranges::find(session_.settings().values, "handoff", &SettingValue::name);
  const std::string& own = request_.options.handoff;
  const std::string chosen =
      own.empty() ? cat(set.origin == "environment" ? environment_name(set.name) : set.name, "=", set.value)
                  : cat("handoff=", own);
  const Result<pipeline::Handoff> handoff = pipeline::find_handoff(own.empty() ? set.value : own);
  TR_TRY(handoff.status().in(chosen));
  handoff_ = *handoff;
  const exchange::Roster& roster = session_.topology().roster();
  TR_TRY(pipeline::check_handoff(handoff_, roster).in(cat(chosen, " is not possible here")));
  if (pipeline::lane_of(handoff_, roster) == node::LaneKind::usual || session_.memory().quotas().kept.empty())
    return {};
  return {Code::unsupported,
          cat(chosen,
              " is not possible where another server may take the place of the session's server: it "
              "finds what ranks have put in memory of the node alone; choose handoff=shared")};
}

/// Collective. Makes the lane for the stream's data.
Status Stream::open_handoff(const std::string& call) {
  const Result<pipeline::Handoff> opened = session_.computing().open_handoff(handoff_, call);
  TR_TRY(opened.status());
  handoff_ = *opened;
  client_.put_in(pipeline::lane_of(handoff_, session_.topology().roster()));
  return {};
}

/// On one rank, once the stream has its lock: nobody else tries in this place.
Status Stream::try_method() {
  const std::string& name = request_.options.method;
  if (!(*pipeline::find_method(name))->appends) return {};
  return session_.try_appends(cat(path_of_lock(request_), ".trial"))
      .in(cat("method=", name, " is not possible here; choose another method, such as mpiio"));
}

/// On rank 0: with method=auto, takes the method that suits the place of the files. Their directory is there:
/// the lock has made it.
void Stream::look_for_method() {
  if (request_.options.method != pipeline::chosen_method) return;
  const exchange::Roster& roster = session_.topology().roster();
  const std::string& pattern = request_.pattern.text();
  pipeline::Surroundings surroundings;
  if (const auto place = session_.streams_target().system_name(pattern.substr(0, pattern.find('{'))))
    surroundings.files = storage::file_system_of(*place);
  surroundings.has_objects = stores::is_store(pattern);
  surroundings.has_whole_objects = !storage::is_of_files(pattern);
  surroundings.servers = roster.servers();
  surroundings.nodes =
      static_cast<int>(std::set<int>(roster.server_node.begin(), roster.server_node.end()).size());
  const pipeline::MethodChoice choice = pipeline::choose_method(surroundings);
  request_.options.method = choice.method->name;
  why_method_ = choice.why;
  log(LogLevel::info, cat("stream ", name(), ": method=auto takes ", choice.method->name, ": ", choice.why));
}

Status Stream::prepare_operations(const std::optional<Position>& resume) {
  if (resume && !(resume->time == times()))
    return {Code::state,
            cat("the checkpoint has the stream at ", text_of(*resume),
                ", and its time=, lead_unit=, time_units= or time_name= was another: create it as it was")};
  if (request_.options.interval) {
    operations_.emplace(request_);
    return resume ? operations_->resume(*resume) : Status();
  }
  if (!resume || !resume->interval) return {};
  return {Code::state,
          cat("the checkpoint has the stream in the middle of an interval, at ",
              resume->time.at(resume->interval->lead), ": create it with the interval= that it had")};
}

void Stream::continue_from(const Position& position, std::shared_ptr<operations::Kept> kept) {
  continues_ = true;
  from_ = position;
  last_lead_ = position.lead;
  if (position.lead) client_.continue_behind(*position.lead);
  if (position.interval) fields_.continue_within_interval(std::move(kept));
  if (position.interval && position.interval->failure && session_.rank() == 0) {
    const OpenInterval::Failure& failure = *position.interval->failure;
    client_.keep(Status(failure.code, failure.text).at({0, failure.operation, failure.rank}));
  }
  if (session_.rank() == 0)
    log(LogLevel::info, cat("stream ", name(), " continues from ", text_of(position)));
}

Stream::~Stream() {
  if (client_.id() != 0) session_.computing().remove_stream(client_.id());
}

pipeline::Opening Stream::head() const {
  pipeline::Opening opening;
  opening.definition = request_.definition;
  opening.policy = request_.options.policy;
  opening.method_name = request_.options.method;
  opening.hints = request_.options.hints;
  opening.why_method = why_method_;
  opening.handoff = handoff_;
  opening.previous_lead = begins_with_ > 0 ? client_.lead() : from_.lead.value_or(0);
  opening.begins_with = begins_with_;
  if (session_.rank() == 0) {
    opening.ledger = pack_ledger(name(), options_, run_,
                                 continues_ ? std::optional<Position>(from_) : std::nullopt, left_behind_);
  }
  return opening;
}

void Stream::tell(const pipeline::Told& told) {
  const node::LaneKind kind = client_.lane_of(told.descriptor);
  const std::int64_t waited = session_.computing().publish(
      [&] { return session_.computing().lane_writer(kind).tell(told.descriptor, told.bytes); }, kind);
  counters().staging_full += waited;
  counters().staging_full_count += waited > 0;
}

void Stream::begin(std::int64_t lead) {
  if (!times().is_model()) return begin_step(lead, {});
  // The step begins nevertheless, so that its end tells the error.
  begin_step(client_.lead(), {Code::state, cat("tr_stream_begin(\"", name(), "\", ", lead,
                                               "): the stream has time=model: give the time of the step to "
                                               "tr_stream_begin_at")});
}

void Stream::begin_at(double time) {
  const auto call = [&] { return cat("tr_stream_begin_at(\"", name(), "\", ", time, ")"); };
  if (!times().is_model()) {
    return begin_step(lead(), {Code::state, cat(call(),
                                                ": the stream counts leads: give the lead of the step to "
                                                "tr_stream_begin, or create the stream with time=model")});
  }
  const Result<std::int64_t> code = TimeAxis::code_of(time);
  begin_step(code.is_ok() ? *code : client_.lead(), code.status().in(call()));
}

/// Begins a step. If the program asked for it with a wrong call, the step fails with the error `wrong`.
void Stream::begin_step(std::int64_t lead, const Status& wrong) {
  const session::CallTime call(session_, counters());
  stop_if_broken();
  Status order;
  const bool is_timed = operations_ && !client_.in_step();
  if (is_timed) order = begin_timed(lead);
  const bool is_within = is_timed && !operations_->completes();
  Status renewed;
  if (order.is_ok()) renewed = fit_to_last_file(is_within ? operations_->end() : lead, !wrong.is_ok());
  if (renewed.is_ok() && !is_within && wrong.is_ok() && order.is_ok()) renewed = renew_for(lead);
  if (is_within ? !client_.begin_within() : !client_.begin(lead, !wrong.is_ok())) return;
  if (is_timed) client_.put_off_records();
  if (is_timed && operations_->counts()) client_.note_interval(operations_->interval_begin());
  latch(wrong);
  latch(order.in(cat("tr_stream_begin(\"", name(), "\")")));
  latch(renewed);
  latch(fields_.check_all_put().in(cat("tr_stream_begin(\"", name(), "\")")));
  put_.clear();
  has_put_ = false;
  if (is_within) {
    session_.board().pump();
    return;
  }
  if (lead != put_lead_) put_steps_.clear();
  put_lead_ = lead;
  tell({client_.descriptor(Descriptor::Kind::begin), {}});
  session_.board().pump();
}

/// Finds the interval of the step, and begins it if the step before was in another.
Status Stream::begin_timed(std::int64_t lead) {
  const Status order = operations_->begin(lead);
  if (!operations_->begins_interval()) return order;
  for (Field& field : fields_.all()) {
    if (field.timed) field.timed->begin();
  }
  if (!operations_->missed().is_ok()) note_missed(operations_->missed());
  return order;
}

/// Keeps the error for end() of an interval whose end had no step. Drops the errors that were kept for this
/// end: they must not fail the interval that begins.
void Stream::note_missed(const Status& missed) {
  const Status told = missed.in(cat("tr_stream_begin(\"", name(), "\")"));
  untold_ = untold_.is_ok() ? told : Status(told.code(), cat(untold_.text(), "; ", told.text()));
  const Status kept = client_.drop_kept();
  if (!kept.is_ok())
    log(LogLevel::warn, cat("stream ", name(),
                            ": the interval that has no step at its end had failed before: ", kept.text()));
}

Status Stream::put(const std::string& name, const void* data, const ArrayShape* shape) {
  if (client_.out_of_step()) return {};
  const session::CallTime call(session_, counters(), "tr_stream_put");
  const std::optional<int> number = fields_.number_of(name);
  const bool has_time = !number || fields_.all()[static_cast<std::size_t>(*number)].definition.has_time;
  Status status;
  if (client_.in_step()) {
    put_in_step(name, number, data, shape);
    send_on();
  } else if (has_time) {
    latch(Status(Code::state,
                 cat("tr_stream_put('", name, "') outside of a step: tr_stream_begin comes first")));
  } else {
    status = fields_.put_without_time(*number, data, shape,
                                      cat("tr_stream_put(\"", client_.name(), "\", \"", name, "\")"));
    latch(status);  // a program that ignores this error gets it from the next tr_stream_end
  }
  return status;
}

/// The rank sends what lies in its lane of messages or of gets now. Servers cannot look into such a lane, and
/// would hear of the put only at the program's next call.
void Stream::send_on() {
  if (client_.lane_kind() != node::LaneKind::usual) session_.board().pump();
}

void Stream::put_in_step(const std::string& name, std::optional<int> number, const void* data,
                         const ArrayShape* shape) {
  const auto call = [&] { return cat("tr_stream_put('", name, "') at ", times().at(lead())); };
  if (!number) {
    latch(no_such_field(call(), name, fields_.names()));
    return;
  }
  Field& field = fields_.all()[static_cast<std::size_t>(*number)];
  Status status;
  if (!field.definition.has_time) {
    status = Status(Code::state, "the field has time=none: it is put once, before the first step");
  } else if (!takes(*number)) {
    status = not_in_this_file();
  } else if (!put_.insert(*number).second) {
    status = Status(Code::state, "the field was put in this step already");
  } else if (Status again = operations_ ? Status() : check_put_again(*number); !again.is_ok()) {
    status = std::move(again);
  } else if (data == nullptr && field.count > 0) {
    status = Status(Code::argument, "the array is a null pointer");
  } else {
    const Result<const SharedMap*> map = field.map_of(shape, session_.rank());
    status = map.status();
    // An array with its shape may be a compiler's temporary, gone after the call: it is never lent.
    const bool may_lend = shape == nullptr;
    if (map.is_ok() && operations_)
      accumulate(field, static_cast<const std::byte*>(data), ***map);
    else if (map.is_ok())
      status = capture(field, *number, static_cast<const std::byte*>(data), **map, may_lend);
  }
  latch(status.in(call()));
}

/// Refuses a second put of a field at one lead: a reader of the file expects one message for each field,
/// level and lead. A step that failed has left none.
Status Stream::check_put_again(int number) {
  const std::int64_t step = client_.steps() - 1;
  const auto [before, is_first] = put_steps_.try_emplace(number, step);
  if (is_first || request_.options.keeps_same_lead || client_.verdicts().has_failed(before->second)) {
    before->second = step;
    return {};
  }
  return {
      Code::state,
      "an earlier step has the field at this lead already: give each step a lead of its own, or create the "
      "stream with same_lead=keep if both are meant"};
}

Status Stream::capture(Field& field, int number, const std::byte* data,
                       const std::shared_ptr<const layout::MemoryMap>& map, bool may_lend) {
  const codec::Statistic& statistic = field.definition.statistic;
  const bool is_statistic = statistic.process != codec::Process::instant;
  const std::int64_t lead = client_.lead();
  if (is_statistic && lead == 0 && !statistic.write_at_zero) return {};
  codec::RecordKey key{number, 0, lead, 0};
  if (is_statistic && statistic.since == codec::Statistic::Since::duration) {
    key.interval_start = std::max<std::int64_t>(0, lead - statistic.duration);
  }
  TR_TRY(times().check(lead));
  TR_TRY(fields_.codec().check_lead(key));
  has_put_ = has_put_ || field.definition.elements() > 0;
  if (field.count == 0 && session_.rank() != client_.definitions().reference()) return {};
  comm::Account::Turn turn(session_.board().account(), comm::Routine::capture);
  std::int64_t waited = 0;
  Status joined;
  SharedMap its_map = map;
  if (field.joins_levels()) {
    // The other ranks expect this rank's pieces, also if the step fails.
    joined = field.join_levels(*map, data, session_.rank());
    data = field.joined();
    its_map = field.joined_map();
    may_lend = true;
  }
  const auto levels = static_cast<Index>(field.definition.levels.values.size());
  const node::LaneKind kind = client_.lane_kind();
  for (Index level = 0; level < levels; ++level, client_.was_put()) {
    const Descriptor descriptor = client_.piece(number, level, field.timed ? field.timed->calls() : 0);
    const std::int64_t full = session_.computing().publish(
        [&] { return session_.computing().lane_writer(kind).put(descriptor, its_map, data, may_lend); },
        kind);
    counters().staging_full_count += full > 0;
    waited += full;
  }
  counters().captured_bytes += levels * field.count * size_of(field.definition.type);
  counters().staging_full += waited;
  counters().capture += turn.end() - turn.begin() - waited;
  return joined;
}

void Stream::accumulate(Field& field, const std::byte* data, const layout::MemoryMap& map) {
  if (!operations_->counts()) return;
  comm::Account::Turn turn(session_.board().account(), comm::Routine::capture);
  field.timed->add(map, data, operations_->lead());
  counters().capture += turn.end() - turn.begin();
}

/// Puts what the fields have accumulated in the interval that the step completes, in the order of definition.
void Stream::put_results() {
  client_.begin_records();
  for (std::size_t i = 0; i < fields_.all().size(); ++i) {
    Field& field = fields_.all()[i];
    // A field without a place is there only if the change to the next file has failed.
    if (!field.timed || !fields_.holds(static_cast<int>(i))) continue;
    operations::Accumulator& accumulator = field.timed->accumulator();
    if (accumulator.puts() == 0) continue;
    const int number = static_cast<int>(i);
    put_.insert(number);
    Status status = accumulator.finish();
    if (!status.is_ok()) status = status.in(field.place_of(accumulator.offending(), session_.rank()));
    // The other ranks expect this rank's pieces, also if the step fails.
    const Status captured = capture(field, number, accumulator.values(), accumulator.map(), true);
    latch((status.is_ok() ? captured : status)
              .in(cat("tr_stream_end(\"", name(), "\") at ", times().at(operations_->lead()), ", field '",
                      field.definition.name, "'")));
  }
}

/// Ends a step within an interval. It touches no server.
Status Stream::end_within() {
  if (!client_.in_step()) latch(Status(Code::state, "tr_stream_end without tr_stream_begin"));
  client_.end_within();
  if (client_.out_of_step()) return *client_.out_of_step();
  // All ranks have defined the same fields: each rank knows of a missing field now, and in every later step.
  return operations_->check_complete().in(cat("tr_stream_end(\"", name(), "\")"));
}

/// Returns the status of end_step(). If it is OK, returns the error of an interval whose end had no step:
/// every rank knows this error by itself.
Status Stream::end() {
  const Status status = end_step();
  return status.is_ok() ? std::exchange(untold_, Status()) : status;
}

Status Stream::end_step() {
  const session::CallTime call(session_, counters(), "tr_stream_end");
  if (operations_ && (client_.is_within() || !client_.in_step())) return end_within();
  if (operations_ && operations_->completes() && !client_.out_of_step()) put_results();
  if (!client_.in_step()) {
    // An extra step carries the error. All ranks get its verdict, and no rank waits for ever.
    const Status wrong(Code::state, "tr_stream_end without tr_stream_begin");
    latch(wrong);
    begin_step(client_.lead(), wrong);
  } else if (put_.empty() && session_.rank() == client_.definitions().reference() &&
             !request_.options.keeps_empty_steps) {
    // Other ranks may leave out puts of fields of which they own nothing.
    latch(Status(Code::state, cat("the step at ", times().at(client_.lead()),
                                  " has no field: put one, leave the step out, or create the stream with "
                                  "empty_step=keep if it is meant")));
  }
  if (!client_.out_of_step()) ++counters().steps;
  const pipeline::Told ending = client_.end(counters(), session_.computing().spent_so_far());
  if (client_.out_of_step()) return *client_.out_of_step();
  ended_.push_back({client_.lead(), has_put_});
  last_lead_ = std::max(last_lead_.value_or(client_.lead()), client_.lead());
  tell(ending);
  send_on();
  const std::int64_t told = session_.line().now();
  const bool is_known = session_.computing().wait_for_step(
      client_, client_.awaited_step(), cat("tr_stream_end(\"", name(), "\")"), routine_of_wait(false),
      [&] { return client_.end_is_known(); },
      cat("the verdict of step ", client_.awaited_step(), " of ", name()));
  if (!session_.topology().roster().self_served) counters().verdict_wait += session_.line().now() - told;
  if (!is_known) {
    comm::committed("tr_stream_end", [&] { session_.computing().lane_writer().take_in(); });
    stop_if_broken();
  }
  if (client_.out_of_step()) return *client_.out_of_step();
  return client_.end_verdict();
}

/// Stops the stream between steps if the order is broken: servers have heard of each step's end then.
void Stream::stop_if_broken() {
  if (session_.computing().broken() && !client_.in_step() && !client_.out_of_step())
    client_.stop(*session_.computing().broken());
}

/// Ranks that serve themselves mostly wait for the storage of one another.
comm::Routine Stream::routine_of_wait(bool durable) const {
  return durable || session_.topology().roster().self_served ? comm::Routine::wait_for_storage
                                                             : comm::Routine::skew;
}

Status Stream::wait(bool durable) {
  const session::CallTime call(session_, counters());
  stop_if_broken();
  if (client_.out_of_step()) return *client_.out_of_step();
  if (client_.in_step()) {
    // The other ranks may be elsewhere. They hear of the misuse with the step's verdict.
    const Status misuse(Code::state,
                        cat("tr_stream_wait(\"", name(), "\") inside of a step: tr_stream_end comes first"));
    latch(misuse);
    return misuse;
  }
  const bool is_known = session_.computing().wait_for_step(
      client_, client_.steps() - 1, cat("tr_stream_wait(\"", name(), "\")"), routine_of_wait(durable),
      [&] { return client_.wait_is_known(durable); },
      cat(durable ? "durable" : "captured", " steps of ", name()));
  if (!is_known) stop_if_broken();
  if (client_.out_of_step()) return *client_.out_of_step();
  return client_.wait_verdict(durable);
}

Position Stream::position() const {
  Position here =
      with_failures({name(), run_, from_.steps + std::ssize(ended_), last_lead_, {}, {}, {}, times()});
  here.interval = operations_ ? operations_->open() : std::nullopt;
  if (!here.interval) return here;
  for (std::size_t i = 0; i < fields_.all().size(); ++i) {
    const Field& field = fields_.all()[i];
    if (field.timed && !field.is_unrecorded && takes(static_cast<int>(i)))
      here.interval->fields.push_back(field.timed->recorded(field.definition));
  }
  // Fields that a checkpoint has and the program has not defined yet.
  for (const OpenInterval::Field& field :
       from_.interval ? from_.interval->fields : std::vector<OpenInterval::Field>()) {
    if (!fields_.number_of(field.name)) here.interval->fields.push_back(field);
  }
  return here;
}

std::vector<Stream::State> Stream::states() const {
  std::vector<State> states;
  if (!operations_ || !operations_->open()) return states;
  for (std::size_t i = 0; i < fields_.all().size(); ++i) {
    const Field& field = fields_.all()[i];
    if (field.timed && !field.is_unrecorded && takes(static_cast<int>(i)))
      states.push_back({field.definition.name, field.layout.get(), &field.timed->accumulator()});
  }
  return states;
}

std::vector<std::optional<std::int64_t>> Stream::calls() const {
  std::vector<std::optional<std::int64_t>> calls;
  for (const Field& field : fields_.all()) {
    const bool counts = field.timed && (field.count > 0 || session_.rank() == reference());
    calls.push_back(counts ? std::optional(field.timed->calls()) : std::nullopt);
  }
  return calls;
}

bool Stream::is_settled_through(const Position& position) const {
  return client_.verdicts().durable_through() >= position.steps - from_.steps - 1;
}

Position Stream::with_failures(Position position) const {
  position.failed = from_.failed;
  position.put_lead = from_.put_lead;
  const std::int64_t here = position.steps - from_.steps;
  auto failed = client_.verdicts().failures().begin();
  for (std::int64_t step = 0; step < std::min<std::int64_t>(here, std::ssize(ended_)); ++step) {
    const EndedStep& ended = ended_[static_cast<std::size_t>(step)];
    if (failed != client_.verdicts().failures().end() && failed->first == step) {
      position.failed.push_back({from_.steps + step, ended.lead, failed->second.text()});
      ++failed;
    } else if (ended.has_put) {
      position.put_lead = std::max(position.put_lead.value_or(ended.lead), ended.lead);
    }
  }
  return position;
}

Status Stream::failure_up_to(const Position& position) const {
  if (!has_failed_step()) return {};
  const auto& [step, status] = *client_.verdicts().failures().begin();
  if (step >= std::min<std::int64_t>(position.steps - from_.steps, std::ssize(ended_))) return {};
  const std::int64_t lead = ended_[static_cast<std::size_t>(step)].lead;
  return status.in(cat("stream ", name(), " lacks the step at ", times().at(lead)));
}

/// Says what is lost if the stream is closed in the middle of an interval.
void Stream::warn_of_open_interval() const {
  const std::optional<OpenInterval> open = operations_ ? operations_->open() : std::nullopt;
  if (!open || session_.rank() != 0) return;
  log(LogLevel::warn,
      cat("stream ", name(), " is closed within the interval from ", times().at(open->begin), " to ",
          times().text(operations_->end()), ": what was put in it up to ", times().at(open->lead),
          " is not written. A run that goes on from a checkpoint saved there has it"));
}

/// True if no field has time: the servers write the file when the stream is closed.
bool Stream::has_no_times() const {
  return !fields_.all().empty() &&
         std::ranges::none_of(fields_.all(), [](const Field& each) { return each.definition.has_time; });
}

/// Says what is lost if the stream is closed without a step: fields without time are a part of its files.
void Stream::warn_of_unwritten_fields() const {
  if (session_.rank() != 0 || client_.steps() > 0 || is_abandoned_) return;
  if (is_alone()) {
    if (!may_write_alone())
      log(LogLevel::warn,
          cat("stream ", name(), ": its file is not written, and one of an earlier run stays as it is: ",
              refused_.empty()
                  ? "a stream without steps is written by tr_stream_close, and the "
                    "program has ended without it"
                  : cat("it has no step, and the definition of '", *refused_.begin(), "' has failed")));
    return;
  }
  if (from_.steps > 0) return;
  for (const Field& field : fields_.all()) {
    if (field.definition.has_time) continue;
    log(LogLevel::warn, cat("stream ", name(), " is closed without a step, so that no file was begun, and '",
                            field.definition.name, "' is not written: ",
                            has_no_times() ? "fields without time need a file whose name has no time"
                                           : "put fields without time into a stream of their own, whose file "
                                             "is written when it is closed, or begin a step"));
    return;
  }
}

Status Stream::close() {
  const session::CallTime time(session_, counters(), "tr_stream_close");
  const std::string call = cat("tr_stream_close(\"", name(), "\")");
  stop_if_broken();
  Status misuse = client_.out_of_step().value_or(Status());
  if (misuse.is_ok()) {
    if (client_.in_step()) {
      latch(Status(Code::state, "tr_stream_close inside of a step: the step is dropped"));
      misuse = end_step();
    }
    if (misuse.is_ok()) misuse = std::exchange(untold_, Status());
    warn_of_open_interval();
    warn_of_unwritten_fields();
    const bool writes_alone = !is_abandoned_ && is_alone() && may_write_alone();
    if (writes_alone) latch(fields_.check_all_put().in(call));
    // Without the vote, only this rank would know of its errors since its last step.
    const comm::Verdict verdict = session_.agree({client_.closing_vote().in(call), call, {}});
    if (misuse.is_ok()) misuse = verdict.status;
    if (verdict.ended) client_.stop(verdict.status);
    // The run before may have left its last file unfinished, and no step comes to this file any more.
    const bool goes_on =
        !is_abandoned_ && !is_alone() && (continues_ || request_.options.existing == Existing::resume);
    if ((goes_on || (writes_alone && misuse.is_ok())) && client_.steps() == 0 && !client_.out_of_step())
      client_.finish_without_steps();
    if (client_.must_finish() && !client_.out_of_step()) {
      tell({client_.descriptor(Descriptor::Kind::close), {}});
    }
  }
  if (client_.is_unsettled()) return misuse;
  if (!client_.must_finish()) {
    fields_.tell({client_.definitions().forget()});
    return misuse;
  }
  const comm::Account::Turn turn(session_.board().account(), comm::Routine::wait_for_storage);
  session_.wait([&] { return client_.verdicts().finished().has_value(); }, cat("durable steps of ", name()));
  return client_.close_verdict(misuse);
}

}  // namespace tailrace::streams
