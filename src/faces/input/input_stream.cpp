// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/input_stream.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/session/call_time.hpp"
#include "faces/input/interpolation.hpp"
#include "faces/streams/definition/parse.hpp"
#include "formats/opening/open.hpp"
#include "formats/sources/inventory_cache.hpp"
#include "ground/base/log.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"
#include "ground/storage/identity.hpp"

namespace tailrace::input {

namespace {

/// The longest time in nanoseconds that a rank waits for memory to decode a record while no rank of its node
/// decodes.
constexpr std::int64_t room_comes_within = 1'000'000'000;

/// Returns a pointer that owns nothing: the session's storage outlives its streams.
std::shared_ptr<storage::Target> borrowed(storage::Target& target) {
  return {std::shared_ptr<void>(), &target};
}

/// Keeps TAILRACE_TIMEOUT from ending the job while it lives: waiting for a step to come is no hang.
class Excused {
 public:
  explicit Excused(comm::Switchboard& board) : seconds_(board.watch().give_up_seconds), before_(seconds_) {
    seconds_.reset();
  }
  ~Excused() { seconds_ = before_; }
  Excused(const Excused&) = delete;
  Excused& operator=(const Excused&) = delete;

 private:
  std::optional<std::int64_t>& seconds_;
  const std::optional<std::int64_t> before_;
};

Opener opener_of(files::Group& group, const std::string& cache) {
  return [target = borrowed(group.service().session().streams_target()), cache](const std::string& path) {
    return sources::open(target, path, cache);
  };
}

}  // namespace

Result<std::unique_ptr<InputStream>> InputStream::open(const std::shared_ptr<files::Group>& group,
                                                       const std::string& pattern, const std::string& options,
                                                       Opener open) {
  const std::uint64_t epoch = group->new_epoch();  // also if this rank has nothing to open
  const std::string call = cat("tr_stream_open(\"", pattern, "\", \"", options, "\")");
  const std::string cache = sources::cache_directory(group->settings().cache);
  if (open == nullptr) open = opener_of(*group, cache);
  std::unique_ptr<InputStream> stream(new InputStream(group, pattern));
  stream->epoch_ = epoch;
  Packer told;
  // The first rank looks for the files: all ranks must see the same steps.
  const Status mine = guarded([&]() -> Status {
    const Result<OpenRequest> request = parse_open(pattern, options);
    TR_TRY(request.status());
    if (!group->is_io_rank()) return {};
    Result<FilesDefinition> found =
        find_steps(group->service().session().streams_target(), *request, cache, open);
    TR_TRY(found.status());
    found->directory = storage::path_from_root("");
    found->pack(told);
    return {};
  });
  const comm::Verdict verdict = stream->agree(call, mine.in(call), told.take());
  TR_TRY(verdict.status);
  Unpacker in(verdict.contributions.front());
  stream->rings_ = std::make_unique<Rings>(group, pattern, FilesDefinition::unpack(in), std::move(open));
  const Result<OpenRequest> request = parse_open(pattern, options);
  TR_TRY(request.status());
  if (request->timeout_seconds) stream->timeout_ = *request->timeout_seconds * 1'000'000'000;
  stream->counters().is_input = 1;
  return stream;
}

/// Agrees with all ranks. The epoch keeps streams of one name apart.
comm::Verdict InputStream::agree(const std::string& call, const Status& mine, ByteVector told,
                                 ByteVector versions) {
  const Cause cause{mine.cause().step, mine.cause().operation, group_->rank()};
  comm::Vote vote{mine.at(cause), cat(call, " of stream ", epoch_), std::move(told)};
  vote.for_first = std::move(versions);
  if (follows())
    vote.check = [time = times()](const comm::Verdict& verdict) {
      return StepVersions::check(verdict.for_first, time);
    };
  return group_->agree(std::move(vote));
}

void InputStream::latch(const Status& status) {
  if (latched_.is_ok() && !status.is_ok()) latched_ = status.at({step_, operation_, group_->rank()});
}

Status InputStream::define(const std::string& name, const streams::PlacedLayout* layout, int type,
                           const std::string& options) {
  const std::string call =
      cat("tr_stream_define(\"", name_, "\", \"", name, "\", type ", type, ", \"", options, "\")");
  std::unique_ptr<Field> field;
  FieldDefinition definition;
  const Status mine = guarded([&]() -> Status {
    if (step_ > 0 || in_step_) return {Code::state, "fields are defined before the first step"};
    if (layout == nullptr) return {Code::argument, "no layout was given"};
    if (field_called(name) != nullptr) return {Code::state, cat("field '", name, "' is defined already")};
    Result<FieldRequest> request = parse_field(name, type, layout->layout.shape(), options);
    TR_TRY(request.status());
    if (is_text(request->type) && rings_->files().is_linear)
      return {Code::argument,
              "between=linear and bridge give numbers between two steps, and the field is of texts: open a "
              "stream without between= for it"};
    if (is_integer(request->type) && rings_->files().is_linear)
      return {Code::argument,
              cat("between=linear and bridge give numbers between two steps, and ", name_of(request->type),
                  " holds integers alone: define the field as TR_F32 or TR_F64, or open a stream without "
                  "between= for it")};
    definition = {request->in_file,
                  request->levels,
                  request->takes_any_level,
                  request->shape,
                  request->type,
                  {},
                  request->missing,
                  {layout->georeference.sample, layout->georeference.keys},
                  request->choice};
    field = std::make_unique<Field>(std::move(*request), *layout);
    // Finds an allocation that does not fit before memory is taken for it.
    return layout::memory_map(field->layout, group_->rank(), field->request.type, field->request.allocation)
        .status();
  });
  const std::string shape = layout == nullptr
                                ? "no layout"
                                : cat(layout->layout.kind(), " layout ", extents(layout->layout.shape()));
  TR_TRY(agree(cat(call, " on a ", shape), mine.in(call)).status);
  // First the ranks of a node agree on their box and take their memory, then all nodes agree on the result.
  const Result<layout::Box> box = field->agree_on_box(*group_, call);
  Status ready = box.status();
  if (ready.is_ok()) {
    definition.cut = field->cut = *box;
    ready = rings_->make(definition, call, *field);
  }
  if (ready.is_ok())
    ready = guarded([&]() -> Status {
      Result<Share> share = make_share(field->layout, group_->rank(), field->request.type,
                                       field->request.allocation, field->cut);
      TR_TRY(share.status());
      field->share = std::move(*share);
      return {};
    });
  const Status made = agree(call, ready.in(call)).status;
  if (!made.is_ok()) {
    rings_->take_back(*field);
    return made;
  }
  by_name_.emplace(name, field.get());
  fields_.push_back(std::move(field));
  rings_->add(*fields_.back());
  // The thread looks at all rings. With many fields it is woken only about 64 times in all, and the first
  // step makes it read the rest.
  constexpr Index looks = 64;
  const Index fields = std::ssize(fields_);
  if (fields % std::max<Index>(1, fields / looks) == 0) rings_->read_ahead();
  return {};
}

Field* InputStream::field_called(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

void InputStream::begin(std::int64_t lead) {
  if (!times().is_model()) return begin_step("tr_stream_begin", times().at(lead), lead);
  begin_step(
      "tr_stream_begin", cat("lead ", lead),
      Status(Code::state, cat("the files have times of a model", times().has_base() ? "" : ", from no date",
                              ": give the time of the step to tr_stream_begin_at")));
}

void InputStream::begin_at(double time) {
  if (times().is_model()) {
    const Result<std::int64_t> code = TimeAxis::code_of(time);
    return begin_step("tr_stream_begin_at", code.is_ok() ? times().at(*code) : cat("time ", time), code);
  }
  begin_step("tr_stream_begin_at", cat("time ", time),
             Status(Code::state, cat("the stream counts leads in ", times().unit(),
                                     ": give the lead of the step to tr_stream_begin; time=model reads files "
                                     "whose times count from no date")));
}

/// Begins a step. If the program asked for it with a wrong call, the step fails with the error in `lead`.
void InputStream::begin_step(std::string_view function, std::string step, const Result<std::int64_t>& lead) {
  const session::CallTime time(group_->service().session(), counters());
  const std::string call = cat(function, "(\"", name_, "\", ", step, ")");
  if (in_step_) {
    latch(Status(Code::state, cat(call, ": the step ", step_text(), " is open: tr_stream_end comes first")));
    return;
  }
  in_step_ = true;
  step_name_ = std::move(step);
  now_.reset();
  versions_.clear();
  operation_ = 0;
  began_ = time.begin();
  if (lead.is_ok()) lead_ = *lead;
  const Status begun = guarded([&]() -> Status {
    TR_TRY(lead.status());
    Result<std::vector<std::int64_t>> leads = rings_->begin(step_, lead_, std::exchange(disagreed_, false));
    TR_TRY(leads.status());
    set_now(std::move(*leads));
    tell_gap();
    return {};
  });
  if (!begun.is_ok()) {
    latch(begun.in(call));
    now_.reset();
  }
  if (lead.is_ok()) rings_->read_ahead();
}

/// Warns, once for each gap, that a followed stream is interpolated over a longer distance than before: a
/// file may be missing, or steps have become rarer.
void InputStream::tell_gap() {
  Ring* const ring = rings_->first();
  const FilesDefinition& files = rings_->files();
  if (!files.follows || !files.is_linear || files.bridges) return;
  if (ring == nullptr || !group_->is_io_rank()) return;
  const std::vector<std::int64_t> steps = ring->steps();
  const auto behind = std::ranges::lower_bound(steps, lead_);
  if (behind == steps.end() || *behind == lead_ || told_gap_ == *behind) return;
  const std::optional<std::int64_t> missing = files.missing_step(steps, lead_);
  if (!missing) return;
  told_gap_ = *behind;
  log(LogLevel::warn, cat("stream ", name_, ": ", times().at(lead_), " is interpolated between ",
                          times().text(*std::prev(behind)), " and ", times().text(*behind), "; a step at ",
                          times().at(*missing), " may be missing"));
}

void InputStream::set_now(std::vector<std::int64_t> leads) {
  now_ = Between{std::move(leads), 0};
  if (now_->leads.size() == 2)
    now_->weight = rings_->files().weight(now_->leads.front(), lead_, now_->leads.back());
}

/// Waits until the step has come, will not come, or is too late.
Status InputStream::await_step() {
  Ring& ring = *rings_->first();
  Status status;
  std::optional<Excused> excused(std::in_place, group_->line().board());
  group_->wait(
      [&] {
        const std::uint32_t ticket = ring.bell().ticket();
        Result<std::vector<std::int64_t>> leads = ring.around(lead_);
        status = leads.status();
        const bool is_late = timeout_ >= 0 && now() - began_ >= timeout_;
        if (status.is_ok() && leads->empty() && !is_late) {
          rings_->look_for_steps(ring);
          group_->line().board().transport().park(ring.bell(), ticket, std::chrono::milliseconds(5));
          return false;
        }
        ring.bell().cancel();
        if (status.is_ok() && leads->empty())
          status = Status(Code::timeout,
                          cat("the step has not come within ", timeout_ / 1'000'000'000, " s (timeout=)"));
        else if (status.is_ok())
          set_now(std::move(*leads));
        return true;
      },
      cat("the step of ", name_, " ", step_text(), " to come (follow=on)"));
  excused.reset();
  if (status.code() != Code::timeout) return status;
  const Status failure = rings_->last_failure();
  return failure.is_ok()
             ? status
             : Status(Code::timeout, cat(status.text(), "; a file could not be read: ", failure.text()));
}

void InputStream::get(const std::string& name, void* data, const streams::ArrayShape* shape) {
  const session::CallTime time(group_->service().session(), counters());
  ++operation_;
  if (!in_step_) {
    latch(Status(Code::state,
                 cat("tr_stream_get('", name, "') outside of a step: tr_stream_begin comes first")));
    return;
  }
  if (!now_) return;  // begin() has latched the reason
  const std::string call = cat("tr_stream_get('", name, "') ", step_text());
  Field* const field = field_called(name);
  if (field == nullptr) {
    std::vector<std::string> names;
    for (const auto& each : fields_) names.push_back(each->request.name);
    latch(streams::no_such_field(call, name, names));
    return;
  }
  const Status status = guarded([&]() -> Status {
    const Result<const Share*> share = field->share_of(shape, group_->rank());
    TR_TRY(share.status());
    if ((*share)->map.is_empty()) return {};
    if (data == nullptr) return {Code::argument, "the array is a null pointer"};
    return get_all(*field, static_cast<std::byte*>(data), **share);
  });
  scratch_.release();
  latch(status.in(call));
}

Status InputStream::get_all(Field& field, std::byte* data, const Share& share) {
  Ring& ring = field.loader->ring();
  bool is_late = now_->leads.empty();
  if (is_late) {
    comm::Account::Turn late(group_->line().board().account(), comm::Routine::get_wait);
    const Status come = await_step();
    counters().get_wait += late.end() - late.begin();
    TR_TRY(come);
  }
  ring.make_of(now_->leads);
  const std::vector<Index> slots = slots_of(field);
  const Index levels = std::ssize(ring.field().levels.values);
  for (Index level = 0; level < levels; ++level) {
    for (const Index slot : slots) {
      if (ring.state(slot, level) == Ring::State::ready) continue;
      is_late = true;
      comm::Account::Turn late(group_->line().board().account(), comm::Routine::get_wait);
      const Status status = wait_for(field, slot, level);
      counters().get_wait += late.end() - late.begin();
      TR_TRY(status);
    }
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (const Status noted = versions_.note(now_->leads[i], ring.version(slots[i], level), times());
          !noted.is_ok())
        return noted.in(cat("'", field.request.in_file, "'"));
    copy_level(field, level, slots, data + level * share.level_stride, share);
  }
  ++(is_late ? counters().gets_late : counters().gets_in_memory);
  return {};
}

/// Returns the slots of the files' steps that make this step. Waits while a worker still decodes into a
/// needed slot for the step that had it before.
std::vector<Index> InputStream::slots_of(Field& field) {
  Ring& ring = field.loader->ring();
  std::vector<Index> slots;
  group_->wait(
      [&] {
        const std::uint32_t ticket = ring.bell().ticket();
        slots.clear();
        for (const std::int64_t lead : now_->leads) {
          if (const std::optional<Index> slot = ring.find(lead)) slots.push_back(*slot);
        }
        if (slots.size() == now_->leads.size()) {
          ring.bell().cancel();
          return true;
        }
        group_->line().board().transport().park(ring.bell(), ticket, std::chrono::milliseconds(1));
        return false;
      },
      cat("memory for ", name_, " ", step_text()));
  return slots;
}

/// Waits for a record. Reads it if no other worker does, and otherwise reads other records of the step
/// meanwhile. Code::memory if there is no memory to decode it, and no rank decodes that would give some back.
Status InputStream::wait_for(Field& field, Index slot, Index level) {
  Ring& ring = field.loader->ring();
  std::optional<std::int64_t> refused_at;  // first refusal since a rank was last decoding
  const auto is_done = [&] {
    const Ring::State state = ring.state(slot, level);
    return state == Ring::State::ready || state == Ring::State::failed;
  };
  group_->wait(
      [&] {
        if (is_done()) return true;
        scratch_.forget_refusal();
        if (field.loader->work_on(slot, level, scratch_)) return true;
        const std::uint32_t ticket = ring.bell().ticket();
        if (is_done()) {
          ring.bell().cancel();
          return true;
        }
        if (scratch_.refused().is_ok() && field.loader->work_once(std::ssize(now_->leads) - 1, scratch_)) {
          ring.bell().cancel();
          refused_at.reset();
          return is_done();
        }
        scratch_.release();
        // If another worker has the record, nothing says that this rank would be refused memory: do not start
        // the clock.
        const bool is_refused = !scratch_.refused().is_ok();
        if (scratch_.is_anyone_decoding())
          refused_at.reset();
        else if (is_refused && !refused_at)
          refused_at = now();
        if (is_refused && refused_at && now() - *refused_at > room_comes_within) {
          ring.bell().cancel();
          return true;
        }
        group_->line().board().transport().park(ring.bell(), ticket, std::chrono::milliseconds(1));
        return is_done();
      },
      cat("'", field.request.name, "' of ", name_, " ", step_text(),
          ", which is read: storage is slower than the model, or prefetch= is too small"));
  if (!is_done()) return scratch_.refused();
  return ring.state(slot, level) == Ring::State::failed ? ring.error(slot, level) : Status();
}

/// Copies this rank's part of a level whose records are ready.
void InputStream::copy_level(Field& field, Index level, const std::vector<Index>& slots, std::byte* data,
                             const Share& share) {
  const Ring& ring = field.loader->ring();
  const Bytes begin = share.map.begin();
  const Bytes end = share.map.end();
  const std::byte* const first = ring.values(slots.front(), level) + begin;
  const std::optional<double>& missing = field.request.missing;
  if (slots.size() == 1 && !(rings_->files().is_linear && missing))
    return share.map.scatter(data, begin, end, first);
  const std::byte* const second = slots.size() == 1 ? nullptr : ring.values(slots.back(), level) + begin;
  constexpr Bytes portion = Bytes{16} << 10;  // stays in the nearest cache between the two copies
  between_.resize(static_cast<std::size_t>(std::min(portion, end - begin)));
  for (Bytes at = begin; at < end; at += portion) {
    const Bytes bytes = std::min(portion, end - at);
    const std::byte* const b = second == nullptr ? nullptr : second + (at - begin);
    if (field.request.type == ElementType::f32)
      interpolate<float>(first + (at - begin), b, now_->weight, bytes, missing, between_.data());
    else
      interpolate<double>(first + (at - begin), b, now_->weight, bytes, missing, between_.data());
    share.map.scatter(data, at, at + bytes, between_.data());
  }
}

Status InputStream::end() {
  const session::CallTime time(group_->service().session(), counters());
  const std::string call = cat("tr_stream_end(\"", name_, "\")");
  if (!in_step_) latch(Status(Code::state, cat(call, " without tr_stream_begin")));
  const std::string place = in_step_ ? cat(call, " ", step_text()) : call;
  // Other ranks may still be waiting for the step: this one may have got it before it was taken back, or need
  // no part of it.
  std::optional<Excused> excused;
  if (follows()) excused.emplace(group_->line().board());
  ByteVector versions;
  latch(guarded([&] {
    if (follows()) versions = versions_.packed();
    return Status();
  }));
  const Status status = agree(place, std::exchange(latched_, Status()), {}, std::move(versions)).status;
  excused.reset();
  // The step may have come only since it was begun, with a gap before it.
  if (status.is_ok()) tell_gap();
  disagreed_ = rings_->files().is_linear && status.code() == Code::state;
  in_step_ = false;
  ++step_;
  pipeline::Counters& counts = counters();
  ++counts.steps;
  take_counts();
  return status;
}

/// Adds this stream's new counts: streams of one pattern share their counters.
void InputStream::take_counts() {
  const std::int64_t records = rings_->counts().records;
  const std::int64_t bytes = rings_->counts().bytes;
  counters().records_read += records - std::exchange(told_records_, records);
  counters().read_bytes += bytes - std::exchange(told_bytes_, bytes);
}

Status InputStream::seek(std::int64_t lead) {
  const std::string call = cat("tr_stream_seek(\"", name_, "\", ",
                               times().is_model() ? cat("lead ", lead) : times().at(lead), ")");
  const auto check = [&]() -> Status {
    if (in_step_) return {Code::state, "inside of a step: tr_stream_end comes first"};
    if (times().is_model())
      return {Code::state,
              "the files have times of a model, and no leads: begin the step with "
              "tr_stream_begin_at, which reads ahead from there"};
    return rings_->around(lead).status();
  };
  Status mine = std::exchange(latched_, Status());
  if (mine.is_ok()) mine = check().in(call);
  TR_TRY(agree(call, mine).status);
  rings_->seek(step_, lead);
  rings_->read_ahead();
  return {};
}

Status InputStream::close() {
  const session::CallTime time(group_->service().session(), counters());
  const std::string call = cat("tr_stream_close(\"", name_, "\")");
  if (in_step_) latch(Status(Code::state, cat(call, " inside of a step: tr_stream_end comes first")));
  rings_->stop();
  const Status status = agree(call, std::exchange(latched_, Status())).status;
  for (const auto& field : fields_) rings_->take_back(*field);
  take_counts();
  return status;
}

}  // namespace tailrace::input
