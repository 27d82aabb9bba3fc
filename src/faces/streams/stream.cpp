// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <ranges>
#include <sstream>

#include "engine/arrays/array.hpp"
#include "faces/streams/files/file_ledger.hpp"
#include "formats/cf/fields.hpp"
#include "formats/listings/listings.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/log.hpp"
#include "ground/base/options.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/end_job.hpp"

namespace tailrace::streams {

using node::Descriptor;

namespace {

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return io_error("read", path, errno != 0 ? errno : ENOENT);
  return text.str();
}

/// Names this rank in the error about a format that other ranks may have registered.
Status on_this_rank(const session::Session& session, const std::string& options, Status status) {
  const Result<Options> given = Options::parse(options);
  const std::string* const format = given.is_ok() ? given->find("format") : nullptr;
  if (format == nullptr || formats::find(*format).is_ok()) return status;
  return status.in(cat("rank ", session.topology().world_rank()));
}

/// Returns the part of a layout that a stream keeps. Coordinates may be large: they are left out.
PlacedLayout without_grid(PlacedLayout layout) {
  layout.georeference = {};
  return layout;
}

Status check_references(const codec::StreamDefinition& stream, const codec::Codec& codec) {
  TR_TRY(references::available());
  if (codec.decoding()) return {};
  return {Code::settings, cat("references=on: no other program knows how to decode records of format=",
                              stream.format, "; leave it out")};
}

}  // namespace

Result<std::unique_ptr<Stream>> Stream::create(session::Session& session, const std::string& pattern,
                                               const std::string& options,
                                               const std::optional<Position>& resume,
                                               std::shared_ptr<operations::Kept> kept) {
  std::unique_ptr<Stream> stream;
  const Status mine = guarded([&]() -> Status {
    Result<StreamRequest> request = parse_stream(pattern, options);
    TR_TRY(on_this_rank(session, options, request.status()));
    Result<std::unique_ptr<codec::Codec>> codec = formats::make_codec(request->definition);
    TR_TRY(codec.status());
    TR_TRY(session.servers_encoders().check(request->definition.format));
    if (request->options.references) TR_TRY(check_references(request->definition, **codec));
    stream.reset(new Stream(session, std::move(*request), pattern));
    stream->codec_ = std::move(*codec);
    stream->options_ = options;
    stream->kept_ = std::move(kept);
    TR_TRY(stream->prepare_operations(resume));
    if (session.rank() != 0) return {};
    TR_TRY(formats::check_keys(stream->request_.definition, stream->request_.open_keys));
    // The files are looked at now: the first step may be hours away.
    Result<std::shared_ptr<void>> lock = lock_stream(session.streams_target(), stream->request_);
    TR_TRY(lock.status());
    stream->lock_ = std::move(*lock);
    TR_TRY(look_ahead(session.streams_target(), stream->request_, resume));
    if (resume) return {};
    return find_left_behind(session.streams_target(), stream->request_, stream->left_behind_);
  });
  const std::string call = cat("tr_stream_create(\"", pattern, "\", \"", options, "\")");
  comm::Vote vote{mine.in(call), call, {}};
  if (resume) vote.call += cat(" continuing from ", text_of(*resume), " of run ", resume->run.text());
  if (session.rank() == 0) {
    Packer run;
    run.put(resume ? resume->run : Uuid::random());
    vote.contribution = run.take();
  }
  const comm::Verdict verdict = session.agree(std::move(vote));
  TR_TRY(verdict.status);
  TR_TRY(
      session.memory().open_staging(call, [&](comm::Vote vote) { return session.agree(std::move(vote)); }));
  stream->run_ = Unpacker(verdict.contributions[0]).get<Uuid>();
  if (resume) stream->continue_from(*resume);
  session.computing().add_stream(stream->client_);
  stream->tell_definitions(stream->client_.definitions().begin(stream->head()));
  return stream;
}

Status Stream::prepare_operations(const std::optional<Position>& resume) {
  if (request_.options.interval) {
    operations_.emplace(request_);
    return resume ? operations_->resume(*resume) : Status();
  }
  if (!resume || !resume->interval) return {};
  return {Code::state, cat("the checkpoint has the stream in the middle of an interval, at lead ",
                           resume->interval->lead, " s: create it with the interval= that it had")};
}

void Stream::continue_from(const Position& position) {
  continues_ = true;
  from_ = position;
  last_lead_ = position.lead;
  if (position.lead) client_.continue_behind(*position.lead);
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

Status Stream::define(const std::string& field, const PlacedLayout* layout, int type,
                      const std::string& options) {
  const std::string call =
      cat("tr_stream_define(\"", name(), "\", \"", field, "\", type ", type, ", \"", options, "\")");
  Result<FieldRequest> request = [&]() -> Result<FieldRequest> {
    if (client_.steps() > 0) return Status(Code::state, "fields are defined before the first step");
    if (layout == nullptr) return Status(Code::argument, "no layout was given");
    return parse_field(field, type, layout->layout.shape(), options, request_.definition.format);
  }();
  ByteVector vertical;
  if (request.is_ok() && !request->vertical_file.empty()) {
    comm::Vote vote{{}, cat(call, " reading vertical=", request->vertical_file), {}};
    if (session_.rank() == 0) {
      Result<std::string> text = read_text(request->vertical_file);
      vote.status = text.status().in(call);
      if (text.is_ok()) {
        const auto bytes = std::as_bytes(std::span(*text));
        vote.contribution.assign(bytes.begin(), bytes.end());
      }
    }
    comm::Verdict read = session_.agree(std::move(vote));
    TR_TRY(read.status);
    vertical = std::move(read.contributions[0]);
  }
  Field fresh;
  Status mine = request.status();
  const bool had_codec = mine.is_ok();
  if (had_codec) mine = guarded([&] { return prepare_field(*request, *layout, vertical, fresh); });
  const std::string shape = layout == nullptr
                                ? "no layout"
                                : cat(layout->layout.kind(), " layout ", extents(layout->layout.shape()));
  const comm::Verdict verdict = session_.agree({mine.in(call), cat(call, " on a ", shape), {}});
  Status status = verdict.status;
  if (status.is_ok()) status = restore(fresh);
  if (status.is_ok()) {
    add_field(field, std::move(fresh));
    return status;
  }
  // If the codec cannot be renewed now, the next definition tries again and tells all ranks.
  codec_is_ahead_ = codec_is_ahead_ || had_codec;
  references_.reset();  // they may hold the refused field, too
  if (codec_is_ahead_) static_cast<void>(guarded([&] { return renew_codec(); }));
  return status;
}

/// The codec may hold a field that this or another rank refused afterwards. A new codec takes the fields that
/// all agreed on.
Status Stream::renew_codec() {
  Result<std::unique_ptr<codec::Codec>> codec = formats::make_codec(request_.definition);
  TR_TRY(codec.status());
  for (std::size_t i = 0; i < fields_.size(); ++i)
    TR_TRY((*codec)->adopt(fields_[i].definition, codec_->prepared(static_cast<int>(i))));
  codec_ = std::move(*codec);
  codec_is_ahead_ = false;
  return {};
}

Status Stream::prepare_field(FieldRequest& request, const PlacedLayout& layout, const ByteVector& vertical,
                             Field& out) {
  const std::string& name = request.definition.name;
  if (numbers_.count(name) != 0) return {Code::state, cat("field '", name, "' is defined already")};
  if (!request.vertical_file.empty()) {
    const std::string_view text(reinterpret_cast<const char*>(vertical.data()), vertical.size());
    TR_TRY(set_vertical(request.definition, text, request.vertical_file));
  }
  if (operations_)
    TR_TRY(operations_->define(request));
  else if (request.operation)
    return {Code::settings,
            "operation= is over the steps of an interval: create the stream with interval=, as interval=1h"};
  out.definition = std::move(request.definition);
  out.definition.georeference = layout.georeference;
  const auto told = layout.georeference.coordinates;
  const bool needs_coordinates = codec_->has_coordinates() || request_.options.references;
  const auto facts =
      told && needs_coordinates ? std::make_shared<const codec::Coordinates>(told->facts()) : nullptr;
  out.definition.georeference.coordinates = facts;
  // The indices of a layout may take more memory than its fields, so they are kept once.
  const auto known = layouts_.find(layout.id);
  out.layout =
      known != layouts_.end() ? known->second : std::make_shared<const PlacedLayout>(without_grid(layout));
  out.allocation = std::move(request.allocation);
  out.allocation.halo = layout.halo;
  out.count = layout.layout.count(session_.rank());
  Result<layout::MemoryMap> map =
      layout::memory_map(layout.layout, session_.rank(), out.definition.type, out.allocation);
  TR_TRY(map.status());
  out.map = std::make_shared<const layout::MemoryMap>(std::move(*map));
  if (operations_) {
    const auto levels = static_cast<Index>(out.definition.levels.values.size());
    Result<std::unique_ptr<TimedField>> timed =
        TimedField::make({request.operation.value_or(operations::Operation::instant), out.definition.type,
                          out.definition.missing, levels, out.count},
                         session_.memory().budget());
    TR_TRY(timed.status());
    out.timed = std::move(*timed);
    TR_TRY(check_recorded(out));
  }

  if (codec_is_ahead_) TR_TRY(renew_codec().in("making the codec anew without the field refused before"));
  TR_TRY(with_default_format(request_, codec_->define(out.definition)));
  if (session_.rank() == 0)
    TR_TRY(listings::check_field(*codec_, static_cast<int>(fields_.size()), request_.options.listings));
  out.definition.georeference = {};  // the codec has taken what it needs
  out.definition.georeference.coordinates = facts;
  if (request_.options.references) TR_TRY(prepare_references(out.definition, layout.georeference));
  if (facts) {
    out.coordinates = told;
    TR_TRY(draw_coordinates(out));
  }
  return prepare_staging(out, static_cast<int>(fields_.size()));
}

Status Stream::prepare_references(codec::FieldDefinition& fresh, const codec::Georeference& georeference) {
  Result<codec::Keys> keys = cf::grid_keys(georeference);
  TR_TRY(keys.status());
  fresh.georeference.keys = std::move(*keys);
  if (references_ == nullptr) {
    std::vector<codec::FieldDefinition> agreed;
    for (const Field& each : fields_) agreed.push_back(each.definition);
    Result<std::unique_ptr<references::References>> made =
        references::References::make(request_.definition, agreed, *codec_->decoding());
    TR_TRY(made.status());
    references_ = std::move(*made);
  }
  return references_->add(fresh);
}

/// The root keeps the values until the stream is closed: as they came, and in the head of the file. Rank 0
/// draws for it, since all ranks must hear at definition if the budget is too small.
Status Stream::draw_coordinates(Field& field) const {
  if (session_.rank() != 0) return {};
  const codec::Coordinates& told = *field.coordinates;
  const bool is_drawn = std::ranges::any_of(fields_, [&](const Field& each) {
    const auto& its = each.definition.georeference.coordinates;
    return its && its->are_those_of(told);
  });
  if (is_drawn) return {};
  constexpr Bytes copies = 2;
  const Bytes bytes = copies * std::ssize(told.values);
  field.drawn = std::make_unique<node::Draw>(session_.memory().budget(), node::Use::coordinates);
  return field.drawn->take(bytes).in(
      cat("while the stream is open the coordinates of the layout take ", size_text(bytes),
          " for the heads of its files: set TAILRACE_MEMORY to more, or close other streams before"));
}

Status Stream::prepare_staging(const Field& field, int number) const {
  struct Part {
    Bytes needed;
    Bytes share;  // of the staging memory; 0: no limit
    std::string text;
  };
  pipeline::Outlet& outlet = session_.computing().outlet();
  const Bytes most = outlet.largest_piece();
  const Bytes workspace = session_.memory().smallest_workspace();
  const Bytes piece = field.count * size_of(field.definition.type);
  // The end of a step carries the step's error. If that never fitted, the rank would wait for room for ever.
  constexpr Bytes least = Bytes{16} << 10;
  const Bytes record = codec_->encoded_bound(number) + codec_->working_bytes(number) +
                       field.definition.elements() * size_of(codec_->assembled_type(number));
  const std::string rank = cat("rank ", session_.rank());
  const Part parts[] = {{piece, most,
                         cat("one level takes ", counted(piece, "byte"), " on ", rank,
                             ", whose share of the staging memory is ", most)},
                        {least, most,
                         cat("the share of the staging memory of ", rank, " is ", counted(most, "byte"),
                             ", where ", least, " are needed for messages")},
                        {record, std::max<Bytes>(workspace, 1),
                         cat("gathering and encoding one record takes ", counted(record, "byte"), ", ",
                             session_.topology().roster().self_served ? "each rank" : "a server", " has ",
                             counted(workspace, "byte"), " of the staging memory for it")}};
  // The error tells the part that lacks most: what suffices for it suffices for all.
  const auto lack = [](const Part& part) {
    return part.share > 0 ? static_cast<double>(part.needed) / static_cast<double>(part.share) : 0;
  };
  const Part& worst = *std::ranges::max_element(parts, {}, lack);
  if (lack(worst) <= 1)
    return outlet.expect(std::ssize(field.definition.levels.values) * node::room_in_lane(piece));
  return {Code::memory, cat(worst.text, ": set ", session_.memory().staging_for(worst.needed, worst.share))};
}

/// Servers hear of a field as soon as it is agreed: any rank may be the first that begins the stream.
void Stream::add_field(const std::string& name, Field field) {
  numbers_[name] = static_cast<int>(fields_.size());
  if (field.timed)
    counters().interval_bytes += operations::Accumulator::bytes_of(field.timed->accumulator().what());
  fields_.push_back(std::move(field));
  const std::shared_ptr<const PlacedLayout>& layout = fields_.back().layout;
  layouts_.emplace(layout->id, layout);
  ByteVector prepared;
  if (session_.rank() == 0) prepared = codec_->prepared(static_cast<int>(fields_.size()) - 1);
  // The servers get the coordinates' values. No rank keeps them for the stream.
  codec::FieldDefinition& definition = fields_.back().definition;
  const auto facts = definition.georeference.coordinates;
  if (facts) definition.georeference.coordinates = std::exchange(fields_.back().coordinates, nullptr);
  tell_definitions(
      client_.definitions().add({&fields_.back().definition, std::move(prepared), &layout->layout, layout->id,
                                 layout->in_parts, layout->own_indices}));
  definition.georeference.coordinates = facts;
}

/// Checks a field that goes on in the middle of an interval against what the checkpoint has of it.
Status Stream::check_recorded(const Field& field) const {
  if (!from_.interval) return {};
  TR_TRY(operations_->check_recorded(field.timed->recorded(field.definition)));
  const operations::Accumulator& accumulator = field.timed->accumulator();
  const Index elements = accumulator.what().levels * field.definition.elements();
  const auto check = [&](const std::string& item, ElementType type) -> Status {
    const auto found = kept_ ? kept_->find(item) : operations::Kept::iterator();
    if (kept_ && found != kept_->end() && found->second.type == type &&
        found->second.blocks->elements() == elements)
      return {};
    return {Code::state, cat("the checkpoint has no item ", item, " of ", elements, " elements of ",
                             name_of(type), ", though it is in the middle of an interval")};
  };
  const std::string& field_name = field.definition.name;
  TR_TRY(check(operations::name_of_values(name(), field_name), accumulator.state_type()));
  if (!accumulator.what().missing) return {};
  return check(operations::name_of_counts(name(), field_name), ElementType::i32);
}

/// Collective. Takes the values that a checkpoint has kept of a field, if the stream goes on in the middle of
/// an interval. If that fails, nothing is lost: the program may define the field again.
Status Stream::restore(const Field& field) {
  if (!operations_ || !from_.interval) return {};
  const std::string& field_name = field.definition.name;
  const std::string call = cat("tr_stream_define(\"", name(), "\", \"", field_name, "\")");
  const operations::Accumulator& accumulator = field.timed->accumulator();
  operations::Accumulator::Memory& memory = *accumulator.memory();
  arrays::Array array;
  array.layout = &field.layout->layout;
  array.levels = accumulator.what().levels;
  array.data = memory.values.data();
  const Result<arrays::Owned> owned =
      guarded([&]() -> Result<arrays::Owned> { return arrays::find_owned(array, session_.rank()); });
  const std::span<const layout::Rows> rows =
      owned.is_ok() ? std::span<const layout::Rows>(owned->rows) : std::span<const layout::Rows>();
  const auto take = [&](const std::string& item, std::byte* to) {
    return take_kept(session_.computes(), kept_->at(item), rows, to, owned.status(), call);
  };
  const std::string values = operations::name_of_values(name(), field_name);
  const std::string counts = operations::name_of_counts(name(), field_name);
  TR_TRY(take(values, memory.values.data()));
  if (accumulator.what().missing) TR_TRY(take(counts, reinterpret_cast<std::byte*>(memory.counts.data())));
  kept_->erase(values);
  kept_->erase(counts);
  field.timed->restore(*operations_->recorded(field_name));
  operations_->take_recorded(field_name);
  return {};
}

pipeline::Opening Stream::head() const {
  pipeline::Opening opening;
  opening.definition = request_.definition;
  opening.policy = request_.options.policy;
  opening.previous_lead = from_.lead.value_or(0);
  if (session_.rank() == 0) {
    opening.ledger = pack_ledger(name(), options_, run_,
                                 continues_ ? std::optional<Position>(from_) : std::nullopt, left_behind_);
  }
  return opening;
}

void Stream::tell(const pipeline::Told& told) {
  const std::int64_t waited = session_.computing().publish(
      [&] { return session_.computing().outlet().tell(told.descriptor, told.bytes); });
  counters().staging_full += waited;
  counters().staging_full_count += waited > 0;
}

/// Puts the entries into the lane, in pieces if they are too large for it.
void Stream::tell_definitions(const std::vector<pipeline::Told>& all) {
  constexpr Bytes usual = Bytes{64} << 10;
  const Bytes most = session_.computing().outlet().largest_piece();
  const auto piece = static_cast<std::size_t>(most == 0 ? usual : std::clamp<Bytes>(most / 2, 64, usual));
  for (const pipeline::Told& told : all) {
    std::span<const std::byte> rest = told.bytes, behind;
    if (told.coordinates) behind = told.coordinates->values;
    Descriptor descriptor = told.descriptor;
    do {
      const auto bytes = rest.first(std::min(piece, rest.size()));
      rest = rest.subspan(bytes.size());
      if (rest.empty()) rest = std::exchange(behind, {});
      descriptor.level = rest.empty() ? 0 : 1;
      session_.computing().publish([&] { return session_.computing().outlet().tell(descriptor, bytes); });
    } while (!rest.empty());
  }
}

void Stream::begin(std::int64_t lead) {
  const std::int64_t entered = session_.line().now();
  stop_if_broken();
  Status order;
  const bool is_timed = operations_ && !client_.in_step();
  if (is_timed) order = begin_timed(lead);
  const bool is_within = is_timed && !operations_->completes();
  if (is_within ? !client_.begin_within() : !client_.begin(lead)) return;
  if (is_timed) client_.put_off_records();
  if (is_timed && operations_->counts()) client_.note_interval(operations_->interval_begin());
  latch(order.in(cat("tr_stream_begin(\"", name(), "\")")));
  put_.clear();
  has_put_ = false;
  if (is_within) {
    session_.board().pump();
    counters().blocked += session_.line().now() - entered;
    return;
  }
  if (lead != put_lead_) put_steps_.clear();
  put_lead_ = lead;
  tell({client_.descriptor(Descriptor::Kind::begin), {}});
  session_.board().pump();
  counters().blocked += session_.line().now() - entered;
}

/// Finds the interval of the step, and begins it if the step before was in another.
Status Stream::begin_timed(std::int64_t lead) {
  const Status order = operations_->begin(lead);
  if (!operations_->begins_interval()) return order;
  for (Field& field : fields_) field.timed->begin();
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

Result<std::shared_ptr<const layout::MemoryMap>> Stream::map_of(Field& field, const ArrayShape* shape) {
  if (shape == nullptr) return field.map;
  if (shape->type != field.definition.type) {
    return Status(Code::argument, cat("the array holds ", name_of(shape->type), ", the field was defined as ",
                                      name_of(field.definition.type)));
  }
  if (field.last_map && field.last_extents == shape->extents && field.last_strides == shape->strides) {
    return field.last_map;
  }
  const layout::Layout& layout = field.layout->layout;
  layout::Allocation allocation = field.allocation;
  if (allocation.nproma == 0) {
    Result<layout::Allocation> matched =
        layout::match_extents(layout, session_.rank(), std::move(allocation), shape->extents);
    TR_TRY(matched.status());
    allocation = std::move(*matched);
  }
  allocation.strides = shape->strides;
  Result<layout::MemoryMap> map =
      layout::memory_map(layout, session_.rank(), field.definition.type, allocation);
  TR_TRY(map.status());
  field.last_extents = shape->extents;
  field.last_strides = shape->strides;
  field.last_map = std::make_shared<const layout::MemoryMap>(std::move(*map));
  return field.last_map;
}

void Stream::put(const std::string& name, const void* data, const ArrayShape* shape) {
  const std::int64_t entered = session_.line().now();
  const auto call = [&] { return cat("tr_stream_put('", name, "') at lead ", lead(), " s"); };
  if (client_.out_of_step()) return;
  if (!client_.in_step()) {
    latch(Status(Code::state,
                 cat("tr_stream_put('", name, "') outside of a step: tr_stream_begin comes first")));
    return;
  }
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) {
    std::vector<std::string> names;
    for (const auto& [each, number] : numbers_) names.push_back(each);
    latch(no_such_field(call(), name, names));
    return;
  }
  Field& field = fields_[static_cast<std::size_t>(found->second)];
  Status status;
  if (!put_.insert(found->second).second) {
    status = Status(Code::state, "the field was put in this step already");
  } else if (Status again = operations_ ? Status() : check_put_again(found->second); !again.is_ok()) {
    status = std::move(again);
  } else if (data == nullptr && field.count > 0) {
    status = Status(Code::argument, "the array is a null pointer");
  } else {
    Result<std::shared_ptr<const layout::MemoryMap>> map = map_of(field, shape);
    status = map.status();
    // An array with its shape may be a compiler's temporary, gone after the call: it is never lent.
    const bool may_lend = shape == nullptr;
    if (map.is_ok() && operations_)
      accumulate(field, static_cast<const std::byte*>(data), **map);
    else if (map.is_ok())
      status = capture(field, found->second, static_cast<const std::byte*>(data), *map, may_lend);
  }
  latch(status.in(call()));
  session_.statistics().add_span("tr_stream_put", 0, entered, session_.line().now());
  counters().blocked += session_.line().now() - entered;
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
    key.interval_start = std::max<std::int64_t>(0, lead - statistic.duration_seconds);
  }
  TR_TRY(codec_->check_lead(key));
  has_put_ = has_put_ || field.definition.elements() > 0;
  if (field.count == 0 && session_.rank() != client_.definitions().reference()) return {};
  const std::int64_t begin = session_.line().now();
  std::int64_t waited = 0;
  const auto levels = static_cast<Index>(field.definition.levels.values.size());
  for (Index level = 0; level < levels; ++level, client_.was_put()) {
    const Descriptor descriptor = client_.piece(number, level, field.timed ? field.timed->calls() : 0);
    const std::int64_t full = session_.computing().publish(
        [&] { return session_.computing().outlet().put(descriptor, map, data, may_lend); });
    counters().staging_full_count += full > 0;
    waited += full;
  }
  counters().captured_bytes += levels * field.count * size_of(field.definition.type);
  counters().staging_full += waited;
  counters().capture += session_.line().now() - begin - waited;
  return {};
}

void Stream::accumulate(Field& field, const std::byte* data, const layout::MemoryMap& map) {
  if (!operations_->counts()) return;
  const std::int64_t begin = session_.line().now();
  field.timed->add(map, data, operations_->lead());
  counters().capture += session_.line().now() - begin;
}

/// Puts what the fields have accumulated in the interval that the step completes, in the order of definition.
void Stream::put_results() {
  client_.begin_records();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    Field& field = fields_[i];
    operations::Accumulator& accumulator = field.timed->accumulator();
    if (accumulator.puts() == 0) continue;
    const int number = static_cast<int>(i);
    put_.insert(number);
    Status status = accumulator.finish();
    if (!status.is_ok()) status = status.in(place_of(field, accumulator.offending()));
    // The other ranks expect this rank's pieces, also if the step fails.
    const Status captured = capture(field, number, accumulator.values(), accumulator.map(), true);
    latch((status.is_ok() ? captured : status)
              .in(cat("tr_stream_end(\"", name(), "\") at lead ", operations_->lead(), " s, field '",
                      field.definition.name, "'")));
  }
}

/// Returns the place of an accumulated element as texts of errors name it.
std::string Stream::place_of(const Field& field, Index element) const {
  if (field.count == 0 || element < 0) return "";
  const auto level = static_cast<std::size_t>(element / field.count);
  Index rest = element % field.count;
  for (const layout::Rows& rows : field.layout->layout.rows(session_.rank())) {
    if (rest >= rows.rows * rows.count) {
      rest -= rows.rows * rows.count;
      continue;
    }
    const Index global = rows.global + rest / rows.count * rows.stride + rest % rows.count;
    return cat("rank ", session_.rank(), ", level ", field.definition.levels.values[level], ", index ",
               global);
  }
  return "";
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
  const std::int64_t entered = session_.line().now();
  if (operations_ && (client_.is_within() || !client_.in_step())) {
    const Status status = end_within();
    counters().blocked += session_.line().now() - entered;
    return status;
  }
  if (operations_ && operations_->completes() && !client_.out_of_step()) put_results();
  if (!client_.in_step()) {
    // An extra step carries the error. All ranks get its verdict, and no rank waits for ever.
    latch(Status(Code::state, "tr_stream_end without tr_stream_begin"));
    begin(client_.lead());
  } else if (put_.empty() && session_.rank() == client_.definitions().reference() &&
             !request_.options.keeps_empty_steps) {
    // Other ranks may leave out puts of fields of which they own nothing.
    latch(Status(Code::state, cat("the step at lead ", client_.lead(),
                                  " s has no field: put one, leave the step out, or create the stream with "
                                  "empty_step=keep if it is meant")));
  }
  if (!client_.out_of_step()) ++counters().steps;
  const pipeline::Told ending = client_.end(counters());
  if (client_.out_of_step()) return *client_.out_of_step();
  ended_.push_back({client_.lead(), has_put_});
  last_lead_ = std::max(last_lead_.value_or(client_.lead()), client_.lead());
  tell(ending);
  const std::int64_t told = session_.line().now();
  const bool is_known = session_.computing().wait_for_step(
      client_, client_.awaited_step(), cat("tr_stream_end(\"", name(), "\")"),
      [&] { return client_.end_is_known(); },
      cat("the verdict of step ", client_.awaited_step(), " of ", name()));
  const std::int64_t left = session_.line().now();
  if (!session_.topology().roster().self_served) counters().verdict_wait += left - told;
  counters().blocked += left - entered;
  session_.statistics().add_span("tr_stream_end", 0, entered, left);
  if (!is_known) {
    comm::committed("tr_stream_end", [&] { session_.computing().outlet().take_in(); });
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

Status Stream::wait(bool durable) {
  const std::int64_t entered = session_.line().now();
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
      client_, client_.steps() - 1, cat("tr_stream_wait(\"", name(), "\")"),
      [&] { return client_.wait_is_known(durable); },
      cat(durable ? "durable" : "captured", " steps of ", name()));
  counters().blocked += session_.line().now() - entered;
  if (!is_known) stop_if_broken();
  if (client_.out_of_step()) return *client_.out_of_step();
  return client_.wait_verdict(durable);
}

Position Stream::position() const {
  Position here = with_failures({name(), run_, from_.steps + std::ssize(ended_), last_lead_, {}, {}});
  here.interval = operations_ ? operations_->open() : std::nullopt;
  if (!here.interval) return here;
  for (const Field& field : fields_) here.interval->fields.push_back(field.timed->recorded(field.definition));
  // Fields that a checkpoint has and the program has not defined yet.
  for (const OpenInterval::Field& field :
       from_.interval ? from_.interval->fields : std::vector<OpenInterval::Field>()) {
    if (numbers_.count(field.name) == 0) here.interval->fields.push_back(field);
  }
  return here;
}

std::vector<Stream::State> Stream::states() const {
  std::vector<State> states;
  if (!operations_ || !operations_->open()) return states;
  for (const Field& field : fields_)
    states.push_back({field.definition.name, field.layout.get(), &field.timed->accumulator()});
  return states;
}

std::vector<std::optional<std::int64_t>> Stream::calls() const {
  std::vector<std::optional<std::int64_t>> calls;
  for (const Field& field : fields_) {
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

/// Says what is lost if the stream is closed in the middle of an interval.
void Stream::warn_of_open_interval() const {
  const std::optional<OpenInterval> open = operations_ ? operations_->open() : std::nullopt;
  if (!open || session_.rank() != 0) return;
  log(LogLevel::warn, cat("stream ", name(), " is closed within the interval from lead ", open->begin,
                          " s to ", operations_->end(), " s: what was put in it up to lead ", open->lead,
                          " s is not written. A run that goes on from a checkpoint saved there has it"));
}

Status Stream::close() {
  const std::int64_t entered = session_.line().now();
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
    // Without the vote, only this rank would know of its errors since its last step.
    const comm::Verdict verdict = session_.agree({client_.closing_vote().in(call), call, {}});
    if (misuse.is_ok()) misuse = verdict.status;
    if (verdict.ended) client_.stop(verdict.status);
    // The run before may have left its last file unfinished, and no step comes to this file any more.
    const bool goes_on = continues_ || request_.options.existing == Existing::resume;
    if (goes_on && client_.steps() == 0 && !client_.out_of_step()) client_.finish_without_steps();
    if (client_.must_finish() && !client_.out_of_step()) {
      tell({client_.descriptor(Descriptor::Kind::close), {}});
    }
  }
  if (client_.is_unsettled()) return misuse;
  if (!client_.must_finish()) {
    tell_definitions({client_.definitions().forget()});
    return misuse;
  }
  session_.wait([&] { return client_.verdicts().finished().has_value(); }, cat("durable steps of ", name()));
  counters().blocked += session_.line().now() - entered;
  session_.statistics().add_span("tr_stream_close", 0, entered, session_.line().now());
  return client_.close_verdict(misuse);
}

}  // namespace tailrace::streams
