// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "streams/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/text.hpp"
#include "streams/ledger.hpp"

namespace tailrace::streams {

using comm::Descriptor;
using pipeline::VerdictKind;

namespace {

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return io_error("read", path, errno != 0 ? errno : ENOENT);
  return text.str();
}

std::string shape_text(const std::vector<Index>& shape) {
  std::string text;
  for (const Index extent : shape) text += cat(text.empty() ? "" : "x", extent);
  return text;
}

}  // namespace

Result<std::unique_ptr<Stream>> Stream::create(session::Session& session, const std::string& pattern,
                                               const std::string& options) {
  std::unique_ptr<Stream> stream;
  const Status mine = guarded([&]() -> Status {
    Result<StreamRequest> request = parse_stream(pattern, options);
    TR_TRY(request.status());
    Result<std::unique_ptr<codec::Codec>> codec = codec::make_codec(request->definition);
    TR_TRY(codec.status());
    stream.reset(new Stream(session, std::move(*request)));
    stream->codec_ = std::move(*codec);
    stream->options_ = options;
    stream->name_ = pattern;
    return {};
  });
  const std::string call = cat("tr_stream_create(\"", pattern, "\", \"", options, "\")");
  const comm::Verdict verdict = session.agree({mine.in(call), call, {}});
  TR_TRY(verdict.status);
  stream->id_ = session.add_stream(stream.get());
  return stream;
}

Stream::~Stream() {
  if (id_ != 0) session_.remove_stream(id_);
}

// ---- definition
// -----------------------------------------------------------------------------------------------------------

Status Stream::define(const std::string& field, const PlacedLayout* layout, int type,
                      const std::string& options) {
  const std::string call =
      cat("tr_stream_define(\"", name_, "\", \"", field, "\", type ", type, ", \"", options, "\")");
  Status mine;
  ByteVector vertical;
  if (opened_) {
    mine = Status(Code::state, "fields are defined before the first step");
  } else if (layout == nullptr) {
    mine = Status(Code::argument, "no layout was given");
  }
  if (mine.is_ok()) {
    Result<FieldRequest> request =
        parse_field(field, type, layout->layout.shape(), options, request_.definition.format);
    mine = request.status();
    if (mine.is_ok() && !request->vertical_file.empty()) {
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
  }
  Field fresh;
  const bool had_codec = mine.is_ok();
  if (mine.is_ok()) {
    mine = guarded([&] { return prepare_field(field, layout, type, options, vertical, fresh); });
  }
  const std::string shape = layout == nullptr
                                ? "no layout"
                                : cat(layout->layout.kind(), " layout ", shape_text(layout->layout.shape()));
  const comm::Verdict verdict = session_.agree({mine.in(call), cat(call, " on a ", shape), {}});
  if (verdict.status.is_ok()) {
    numbers_[field] = static_cast<int>(fields_.size());
    fields_.push_back(std::move(fresh));
    return {};
  }
  if (had_codec && mine.is_ok()) {
    // Another rank refused what this one had already defined: begin the codec anew with what all have.
    Result<std::unique_ptr<codec::Codec>> codec = codec::make_codec(request_.definition);
    TR_TRY(codec.status());
    for (const Field& each : fields_) TR_TRY((*codec)->define(each.definition));
    codec_ = std::move(*codec);
  }
  return verdict.status;
}

Status Stream::prepare_field(const std::string& field, const PlacedLayout* layout, int type,
                             const std::string& options, const ByteVector& vertical, Field& out) {
  if (numbers_.count(field) != 0) return {Code::state, cat("field '", field, "' is defined already")};
  Result<FieldRequest> request =
      parse_field(field, type, layout->layout.shape(), options, request_.definition.format);
  TR_TRY(request.status());
  if (!request->vertical_file.empty()) {
    const std::string text(reinterpret_cast<const char*>(vertical.data()), vertical.size());
    TR_TRY(set_vertical(request->definition, text, request->vertical_file));
  }
  out.definition = std::move(request->definition);
  out.definition.georeference = layout->georeference;
  out.layout = std::make_shared<PlacedLayout>(*layout);
  out.allocation = std::move(request->allocation);
  out.allocation.halo = layout->halo;
  out.count = layout->layout.count(session_.rank());
  Result<layout::MemoryMap> map =
      layout::memory_map(layout->layout, session_.rank(), out.definition.type, out.allocation);
  TR_TRY(map.status());
  out.map = std::make_shared<const layout::MemoryMap>(std::move(*map));

  const Bytes piece = out.count * size_of(out.definition.type);
  if (const Bytes most = session_.outlet().largest_piece(); most > 0 && piece > most) {
    return {Code::memory,
            cat("one level takes ", piece, " bytes on rank ", session_.rank(),
                ", whose share of the "
                "staging memory is ",
                most, ": set TAILRACE_STAGING to at least ", (piece / most + 1), " times what it is")};
  }
  // The end of a step takes its error with it: one that never fitted would be waited for without end.
  constexpr Bytes least = Bytes{16} << 10;
  if (const Bytes most = session_.outlet().largest_piece(); most > 0 && most < least) {
    return {Code::memory,
            cat("the share of the staging memory of rank ", session_.rank(), " is ", most, " bytes, where ",
                least, " are needed for messages: set TAILRACE_STAGING to at least ", (least / most + 1),
                " times what it is")};
  }
  TR_TRY(codec_->define(out.definition));
  const int number = static_cast<int>(fields_.size());
  const Bytes needed = codec_->encoded_bound(number) + codec_->working_bytes(number) +
                       out.definition.elements() * size_of(codec_->assembled_type(number));
  const Bytes workspace = session_.smallest_workspace();
  if (needed > workspace) {
    return {Code::memory,
            cat("gathering and encoding one record takes ", needed, " bytes, a server has ", workspace,
                ": set TAILRACE_STAGING to at least ", (needed / workspace + 1), " times what it is")};
  }
  return {};
}

/// Tells all servers of the stream, before the first step. Local: definitions were agreed one by one.
void Stream::open() {
  opened_ = true;
  pipeline::Opening opening;
  opening.stream = id_;
  opening.definition = request_.definition;
  opening.policy.wait_for_space_seconds = request_.options.full_wait_seconds.value_or(0);
  opening.policy.deadline_seconds = request_.options.deadline_seconds.value_or(0);
  std::vector<const PlacedLayout*> layouts;
  for (const Field& field : fields_) {
    const auto same = std::find_if(layouts.begin(), layouts.end(),
                                   [&](const PlacedLayout* each) { return each->id == field.layout->id; });
    opening.layout_of.push_back(static_cast<int>(same - layouts.begin()));
    if (same == layouts.end()) layouts.push_back(field.layout.get());
    opening.fields.push_back(field.definition);
  }
  // The put order is that of one rank: the first that has a share in every field.
  for (int rank = 0; rank < session_.ranks(); ++rank) {
    const bool in_all = std::all_of(layouts.begin(), layouts.end(),
                                    [&](const PlacedLayout* each) { return each->layout.count(rank) > 0; });
    if (!in_all) continue;
    reference_ = rank;
    break;
  }
  opening.reference = reference_;
  const auto& servers = session_.roster().server_transport;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    Packer packed;
    opening.in_parts.push_back(layouts[i]->in_parts ? 1 : 0);
    if (!layouts[i]->in_parts) {
      layouts[i]->layout.pack(packed);
    } else {
      packed.put_list(std::span<const Index>(layouts[i]->layout.shape()));
      Packer part;
      part.put(pipeline::Message::layout_part).put(id_).put(static_cast<int>(i)).put(session_.rank());
      part.put_list(std::span<const Index>(layouts[i]->own_indices));
      for (const int server : servers)
        session_.transport().send(server, comm::Channel::control, part.bytes());
    }
    opening.layouts.push_back(packed.take());
  }
  if (session_.rank() != 0) return;
  opening.ledger = pack_ledger(name_, options_, Uuid::random());
  Packer out;
  out.put(pipeline::Message::open);
  opening.pack(out);
  for (const int server : servers) session_.transport().send(server, comm::Channel::control, out.bytes());
}

// ---- steps
// ----------------------------------------------------------------------------------------------------------------

void Stream::latch(const Status& status) {
  if (status.is_ok()) return;
  latched_ = first_cause(latched_, status.at({step_, operation_, session_.rank()}));
}

void Stream::tell(Descriptor::Kind kind, std::span<const std::byte> bytes) {
  Descriptor descriptor;
  descriptor.kind = kind;
  descriptor.stream = id_;
  descriptor.step = step_;
  descriptor.lead = lead_;
  descriptor.stamp = session_.transport().now();
  const std::int64_t waited = session_.publish([&] { return session_.outlet().tell(descriptor, bytes); });
  counters().staging_full += waited;
  counters().staging_full_count += waited > 0;
}

void Stream::begin(std::int64_t lead) {
  const std::int64_t entered = session_.transport().now();
  if (in_step_) {
    latch(Status(Code::state, cat("tr_stream_begin(lead ", lead, ") inside the step at lead ", lead_,
                                  ": tr_stream_end comes first")));
    return;
  }
  if (!opened_) open();
  in_step_ = true;
  ++step_;
  operation_ = 0;
  put_.clear();
  lead_ = lead;
  if (last_lead_ && lead < *last_lead_) {
    latch(Status(Code::order,
                 cat("lead ", lead, " s goes back in time: the step before was at ", *last_lead_, " s")));
  } else {
    last_lead_ = lead;
  }
  tell(Descriptor::Kind::begin, {});
  session_.pump();
  counters().blocked += session_.transport().now() - entered;
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
  const std::int64_t entered = session_.transport().now();
  const auto call = [&] { return cat("tr_stream_put('", name, "') at lead ", lead_, " s"); };
  if (!in_step_) {
    latch(Status(Code::state,
                 cat("tr_stream_put('", name, "') outside of a step: tr_stream_begin comes first")));
    return;
  }
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) {
    std::vector<std::string> known;
    for (const auto& [each, number] : numbers_) known.push_back(each);
    latch(Status(Code::argument, known.empty()
                                     ? cat(call(), ": no field was defined; tr_stream_define comes first")
                                     : cat(call(), ": no such field was defined; the nearest is '",
                                           nearest(name, known), "'")));
    return;
  }
  Field& field = fields_[static_cast<std::size_t>(found->second)];
  Status status;
  if (!put_.insert(found->second).second) {
    status = Status(Code::state, "the field was put in this step already");
  } else if (data == nullptr && field.count > 0) {
    status = Status(Code::argument, "the array is a null pointer");
  } else {
    Result<std::shared_ptr<const layout::MemoryMap>> map = map_of(field, shape);
    status = map.status();
    // An array that comes with its shape may be a compiler's temporary, gone after the call: it is never
    // lent.
    const bool may_lend = shape == nullptr;
    if (map.is_ok())
      status = capture(field, found->second, static_cast<const std::byte*>(data), *map, may_lend);
  }
  latch(status.in(call()));
  session_.statistics().add_span("tr_stream_put", 0, entered, session_.transport().now());
  counters().blocked += session_.transport().now() - entered;
}

Status Stream::capture(Field& field, int number, const std::byte* data,
                       const std::shared_ptr<const layout::MemoryMap>& map, bool may_lend) {
  const codec::Statistic& statistic = field.definition.statistic;
  const bool is_statistic = statistic.process != codec::Process::instant;
  if (is_statistic && lead_ == 0 && !statistic.write_at_zero) return {};
  codec::RecordKey key{number, 0, lead_, 0};
  if (is_statistic && statistic.since == codec::Statistic::Since::duration) {
    key.interval_start = std::max<std::int64_t>(0, lead_ - statistic.duration_seconds);
  }
  TR_TRY(codec_->check_lead(key));
  if (field.count == 0 && session_.rank() != reference_) return {};
  const std::int64_t begin = session_.transport().now();
  std::int64_t waited = 0;
  const auto levels = static_cast<Index>(field.definition.levels.values.size());
  for (Index level = 0; level < levels; ++level, ++operation_) {
    Descriptor descriptor;
    descriptor.kind = Descriptor::Kind::piece;
    descriptor.stream = id_;
    descriptor.step = step_;
    descriptor.field = number;
    descriptor.level = static_cast<std::int32_t>(level);
    const std::int64_t full =
        session_.publish([&] { return session_.outlet().put(descriptor, map, data, may_lend); });
    counters().staging_full_count += full > 0;
    waited += full;
  }
  counters().captured_bytes += levels * field.count * size_of(field.definition.type);
  counters().staging_full += waited;
  counters().capture += session_.transport().now() - begin - waited;
  return {};
}

Status Stream::end() {
  const std::int64_t entered = session_.transport().now();
  if (!in_step_) {
    // A step of its own carries the error, so that this rank's verdict is everybody's and nobody waits for
    // ever.
    latch(Status(Code::state, "tr_stream_end without tr_stream_begin"));
    begin(lead_);
  }
  in_step_ = false;
  const Status mine = std::exchange(latched_, Status());
  ++counters().steps;
  Packer packed;
  mine.pack(packed);
  packed.put(counters());
  tell(Descriptor::Kind::end, packed.bytes());
  const std::int64_t told = session_.transport().now();
  const bool inline_run = session_.roster().self_served;
  const std::int64_t needed = inline_run ? step_ : step_ - 1;
  session_.wait(
      [&] {
        if (needed < 0) return true;
        return inline_run ? durable_through_ >= needed : accepted_.count(needed) != 0;
      },
      cat("the verdict of step ", needed, " of ", name_));
  const std::int64_t left = session_.transport().now();
  if (!inline_run) counters().verdict_wait += left - told;
  counters().blocked += left - entered;
  session_.statistics().add_span("tr_stream_end", 0, entered, left);
  if (inline_run) return first_unreported(step_);
  if (needed < 0) return {};
  return report(accepted_.at(needed));
}

Status Stream::report(const Status& status) {
  if (status.is_ok() || !reported_.insert(status.cause().step).second) return {};
  return status;
}

Status Stream::first_unreported(std::int64_t through) {
  Status first;
  int others = 0;
  for (const auto& [step, status] : durable_) {
    if (step > through) break;
    const Status told = report(status);
    if (told.is_ok()) continue;
    if (first.is_ok())
      first = told;
    else
      ++others;
  }
  if (others == 0) return first;
  // One call tells of all: the caller may not make another one.
  return Status(first.code(),
                cat(first.text(), "; ", others, others == 1 ? " later step" : " later steps", " failed too"),
                first.error_number())
      .at(first.cause());
}

Status Stream::wait(bool durable) {
  const std::int64_t entered = session_.transport().now();
  if (in_step_) {
    const std::string call =
        cat("tr_stream_wait(\"", name_, "\") inside of a step: tr_stream_end comes first");
    return session_.agree({Status(Code::state, call), call, {}}).status;
  }
  session_.wait(
      [&] { return step_ < 0 || (durable ? durable_through_ >= step_ : accepted_.count(step_) != 0); },
      cat(durable ? "durable" : "captured", " steps of ", name_));
  counters().blocked += session_.transport().now() - entered;
  if (durable) return first_unreported(step_);
  return step_ < 0 ? Status() : report(accepted_.at(step_));
}

Status Stream::close() {
  const std::int64_t entered = session_.transport().now();
  Status misuse;
  if (in_step_) {
    latch(Status(Code::state, "tr_stream_close inside of a step: the step is dropped"));
    misuse = end();
  }
  // What a rank did wrong since its last step would otherwise be known to it alone.
  const std::string call = cat("tr_stream_close(\"", name_, "\")");
  const comm::Verdict verdict = session_.agree({std::exchange(latched_, Status()).in(call), call, {}});
  if (misuse.is_ok()) misuse = verdict.status;
  if (!opened_) return misuse;
  tell(Descriptor::Kind::close, {});
  session_.wait([&] { return finished_.has_value(); }, cat("durable steps of ", name_));
  counters().blocked += session_.transport().now() - entered;
  session_.statistics().add_span("tr_stream_close", 0, entered, session_.transport().now());
  if (!misuse.is_ok()) return misuse;
  const Status status = first_unreported(step_);
  return status.is_ok() ? *finished_ : status;
}

void Stream::on_verdict(VerdictKind kind, std::int64_t step, const Status& status) {
  switch (kind) {
    case VerdictKind::accepted:
      accepted_[step] = status;
      while (!accepted_.empty() && accepted_.begin()->first < step_ - 2) accepted_.erase(accepted_.begin());
      break;
    case VerdictKind::durable:
      durable_through_ = step;
      if (!status.is_ok()) durable_[step] = status;
      break;
    case VerdictKind::finished:
      finished_ = status;
      break;
  }
}

}  // namespace tailrace::streams
