// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/input_stream.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ranges>
#include <thread>
#include <utility>

#include "faces/input/interpolation.hpp"
#include "faces/streams/definition/parse.hpp"
#include "formats/sources/inventory_cache.hpp"
#include "ground/base/log.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"
#include "ground/storage/identity.hpp"

namespace tailrace::input {

namespace {

/// The most ranks of a node that read ahead. Each of them opens all files, and has to look through them. More
/// ranks at work only pay where a get waits, and then the waiting rank reads itself.
constexpr int most_readers = 8;

/// The longest time in nanoseconds that a rank waits for memory to decode a record while no rank of its node
/// decodes.
constexpr std::int64_t room_comes_within = 1'000'000'000;

/// Returns a pointer that owns nothing: the session's storage outlives its streams.
std::shared_ptr<storage::Target> borrowed(storage::Target& target) {
  return {std::shared_ptr<void>(), &target};
}

Status changed(std::int64_t lead) {
  return {Code::state, cat("the writer of the files has taken the step at lead ", lead,
                           " s back and written it once more while it was read: try the step again")};
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

/// Returns Code::state if two nodes have got different versions of a step, or have interpolated between
/// different steps because files came in another order than their steps. Ranks that got nothing are left out.
Status check_versions(const std::vector<ByteVector>& told) {
  std::map<std::int64_t, std::uint64_t> all;
  std::size_t ranks = 0;
  std::map<std::int64_t, std::size_t> ranks_of;
  for (const ByteVector& each : told) {
    if (!each.empty()) ++ranks;
    for (Unpacker in(each); !in.rest().empty();) {
      const auto lead = in.get<std::int64_t>();
      const auto version = in.get<std::uint64_t>();
      if (!in.ok()) break;
      if (all.emplace(lead, version).first->second != version) return changed(lead);
      ++ranks_of[lead];
    }
  }
  for (const auto& [lead, count] : ranks_of) {
    if (count < ranks)
      return {Code::state, cat("some nodes interpolated from the step at lead ", lead,
                               " s and others from one that came later: try the step again")};
  }
  return {};
}

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
  std::unique_ptr<InputStream> stream(new InputStream(group, pattern, std::move(open)));
  stream->epoch_ = epoch;
  Packer told;
  // The first rank looks for the files: all ranks must see the same steps.
  const Status mine = guarded([&]() -> Status {
    const Result<OpenRequest> request = parse_open(pattern, options);
    TR_TRY(request.status());
    if (!group->is_io_rank()) return {};
    Result<FilesDefinition> found =
        find_steps(group->service().session().streams_target(), *request, cache, stream->open_);
    TR_TRY(found.status());
    found->directory = storage::path_from_root("");
    found->pack(told);
    return {};
  });
  const comm::Verdict verdict = stream->agree(call, mine.in(call), told.take());
  TR_TRY(verdict.status);
  Unpacker in(verdict.contributions.front());
  stream->files_ = FilesDefinition::unpack(in);
  stream->opened_ =
      std::make_shared<Files>(stream->files_, stream->open_, &group->service().session().streams_target());
  const Result<OpenRequest> request = parse_open(pattern, options);
  TR_TRY(request.status());
  if (request->timeout_seconds) stream->timeout_ = *request->timeout_seconds * 1'000'000'000;
  if (request->follows) stream->follower_ = std::make_unique<Follower>(stream->files_);
  stream->key_ = group->threads().new_own_key();
  stream->counters().is_input = 1;
  return stream;
}

InputStream::~InputStream() {
  is_closed_ = true;
  if (opened_ != nullptr) group_->threads().drain(key_);
  for (const auto& field : fields_)
    if (field->given) group_->service().session().giver().abandon(*field->given);
}

/// Agrees with all ranks. The epoch keeps streams of one name apart.
comm::Verdict InputStream::agree(const std::string& call, const Status& mine, ByteVector told,
                                 ByteVector versions) {
  const Cause cause{mine.cause().step, mine.cause().operation, group_->rank()};
  comm::Vote vote{mine.at(cause), cat(call, " of stream ", epoch_), std::move(told)};
  vote.for_first = std::move(versions);
  if (follower_ != nullptr)
    vote.check = [](const comm::Verdict& verdict) { return check_versions(verdict.for_first); };
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
  const Result<layout::Box> box = agree_on_box(*field, call);
  Status ready = box.status();
  if (ready.is_ok()) {
    definition.cut = field->cut = *box;
    ready = make_ring(definition, call, *field);
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
    take_back(*field);
    return made;
  }
  {
    const std::lock_guard lock(mutex_);
    by_name_.emplace(name, field.get());
    fields_.push_back(std::move(field));
  }
  // The thread looks at all rings. With many fields it is woken only about 64 times in all, and the first
  // step makes it read the rest.
  constexpr Index looks = 64;
  const Index fields = std::ssize(fields_);
  if (fields % std::max<Index>(1, fields / looks) == 0) read_ahead();
  return {};
}

/// Returns the box that the ranks of this node need. Collective over them.
Result<layout::Box> InputStream::agree_on_box(const Field& field, const std::string& call) {
  Packer told;
  const Status mine = guarded([&]() -> Status {
    const layout::Box box = box_of(field.layout, group_->rank(), field.halo);
    told.put_list(std::span<const Index>(box.lower)).put_list(std::span<const Index>(box.upper));
    return {};
  });
  const comm::Verdict verdict = group_->node().agree({mine, cat(call, ": the node's box"), told.take()});
  TR_TRY(verdict.status);
  layout::Box all{std::vector<Index>(field.layout.shape().size()),
                  std::vector<Index>(field.layout.shape().size())};
  for (const ByteVector& each : verdict.contributions) {
    Unpacker in(each);
    layout::Box box{in.get_list<Index>(), {}};
    box.upper = in.get_list<Index>();
    all = joined(all, box);
  }
  return all;
}

/// Makes the field's ring. Collective over the ranks of the node.
Status InputStream::make_ring(const FieldDefinition& definition, const std::string& call, Field& field) {
  if (definition.elements() == 0) return {};
  const auto levels = std::ssize(definition.levels.values);
  Bytes all_values = 0;
  const bool is_too_large =
      __builtin_mul_overflow(definition.elements(), size_of(definition.type) * files_.slots(), &all_values) ||
      __builtin_mul_overflow(all_values, 2 * levels, &all_values);
  if (is_too_large)
    return {Code::memory, cat(counted(files_.slots(), "step"), " of '", field.request.name, "', ",
                              counted(levels, "level"), " of ", counted(definition.elements(), "point"),
                              " each, take more bytes than there are numbers: set prefetch= lower")};
  const Bytes bytes = Ring::bytes_for(files_, definition);
  Status ready;
  if (group_->node().rank() == 0) {
    field.drawn = std::make_unique<node::Draw>(group_->budget(), node::Use::input);
    ready = field.drawn->take(bytes).in(
        cat(counted(files_.slots(), "step"), " of '", field.request.name, "', ", counted(levels, "level"),
            " of ", size_text(definition.level_bytes()), " each, take ", size_text(bytes),
            " on this node: set prefetch= lower or TAILRACE_MEMORY higher"));
  }
  std::vector<Bytes> parts(static_cast<std::size_t>(group_->node().size()), 0);
  parts.front() = bytes;
  // Huge pages for small rings would take far more memory than was drawn on the budget.
  constexpr Bytes least_for_huge_pages = Bytes{1} << 20;
  const bool huge_pages = group_->settings().huge_pages && bytes >= least_for_huge_pages;
  // A server can map only memory of this kind, which keeps a descriptor open for each field.
  const node::NodeMemory::Growth growth =
      serving_rank() ? node::NodeMemory::Growth::by_any : node::NodeMemory::Growth::none;
  Result<std::unique_ptr<node::NodeMemory>> memory = node::NodeMemory::create(
      group_->node(), parts, huge_pages, node::NodeMemory::everything, ready, growth);
  TR_TRY(memory.status());
  field.memory = std::move(*memory);
  Packer told;
  const Status mine = guarded([&]() -> Status {
    if (group_->node().rank() != 0) return {};
    Ring::make(field.memory->part(0), files_, definition);
    // Steps that came after the stream was opened are known to the rings of other fields.
    if (Ring* const other = any_ring(); other != nullptr)
      Ring(field.memory->part(0), group_->line().board().transport()).add_steps(other->steps());
    hand_over(field);
    told.put(field.given.has_value());
    return {};
  });
  // No rank may use the ring before it is made.
  const comm::Verdict verdict = group_->node().agree({mine, cat(call, ": the node's memory"), told.take()});
  TR_TRY(verdict.status);
  field.is_served = Unpacker(verdict.contributions.front()).get<bool>();
  return guarded([&] {
    field.loader =
        std::make_unique<Loader>(field.memory->part(0), group_->line().board().transport(), opened_, counts_);
    return Status();
  });
}

/// Returns the server that reads for the ranks of this node, or nothing.
std::optional<int> InputStream::serving_rank() const {
  const session::Topology& topology = group_->service().session().topology();
  return topology.roster().self_served ? std::nullopt : topology.first_server_on(topology.node());
}

/// Hands the ring to a server of the node, which then reads ahead. Without one, the ranks' threads do.
void InputStream::hand_over(Field& field) {
  const std::optional<int> server = serving_rank();
  if (!server) return;
  const Result<std::uint64_t> given =
      group_->service().session().giver().hand(*server, node::Handed::input, *field.memory, {});
  if (given.is_ok())
    field.given = *given;
  else
    log(LogLevel::warn, cat("stream ", name_, ": the server of this node cannot read for it (",
                            given.status().text(), "): the I/O threads of its compute ranks do"));
}

/// Takes the ring back: the server does not use it any more on return.
void InputStream::take_back(Field& field) {
  if (!field.given) return;
  const ByteVector told = group_->service().session().giver().take_back(*std::exchange(field.given, {}));
  Unpacker in(told);
  counts_.records += in.get<std::int64_t>();
  counts_.bytes += in.get<std::int64_t>();
}

InputStream::Field* InputStream::field_called(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

/// True if a thread that looked now would find a record to read or a step to look for. For most steps between
/// two of the files there is nothing, and a thread woken in vain takes the model's core.
bool InputStream::has_work_ahead() {
  const auto is_needed = [](Loader* loader) { return loader->ring().soonest().has_value(); };
  const auto lacks_steps = [](Loader* loader) { return loader->ring().lacks_steps(); };
  if (files_.follows && std::ranges::any_of(loaders(true), lacks_steps)) return true;
  if (files_.prefetch <= 0 && !files_.follows) return false;
  // Look at the last field first: it most likely has no records yet.
  const std::vector<Loader*> all = loaders(false);
  return std::any_of(all.rbegin(), all.rend(), is_needed);
}

/// Wakes the thread that reads ahead, if this rank has one and there is work.
void InputStream::read_ahead() {
  executor::Threads& threads = group_->threads();
  if (group_->node().rank() >= most_readers || threads.waiting_threads() == 0) return;
  bool has_work = true;
  static_cast<void>(guarded([&] {
    has_work = has_work_ahead();
    return Status();
  }));
  if (!has_work) return;
  ++asked_;
  if (is_busy_.exchange(true)) return;
  const Status queued = guarded([&] {
    threads.submit(key_, [this] { work(); });
    return Status();
  });
  if (!queued.is_ok()) is_busy_ = false;  // the ranks read when they need it
}

/// Works until nothing is left. A caller that found the thread busy has raised asked_: look again then.
void InputStream::work() {
  std::int64_t asked = 0;
  do {
    asked = asked_;
    const Status worked = guarded([&]() -> Status {
      while (!is_closed_) {
        TR_TRY(work_on_all([this] { return loaders(false); }, is_closed_, thread_scratch_));
        if (!follow()) break;
      }
      return {};
    });
    is_busy_ = false;
    if (!worked.is_ok()) return;  // the ranks read when they need it
  } while (asked_ != asked && !is_busy_.exchange(true));
}

std::vector<Loader*> InputStream::loaders(bool served_too) {
  std::vector<Loader*> all;
  const std::lock_guard lock(mutex_);
  for (const auto& field : fields_)
    if (field->loader != nullptr && (served_too || !field->is_served)) all.push_back(field->loader.get());
  return all;
}

/// Looks for steps that are to come, and then rests. Returns false if no ring needs another step.
bool InputStream::follow() {
  if (follower_ == nullptr || is_closed_) return false;
  const std::vector<Loader*> all = loaders(true);
  if (std::ranges::none_of(all, [](Loader* loader) { return loader->ring().lacks_steps(); })) return false;
  look_for_steps(all.front()->ring());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return true;
}

/// Looks once for new steps, if it is this rank's turn on the node. `ring` is that of the first field.
void InputStream::look_for_steps(Ring& ring) {
  if (!ring.may_look()) return;
  const std::lock_guard lock(look_mutex_);
  const auto there = guarded([&]() -> Result<std::vector<std::int64_t>> {
    return follower_->look(group_->service().session().streams_target(), open_, now());
  });
  if (!there.is_ok()) return;  // the next look may succeed
  const std::vector<std::int64_t> gone = follower_->taken_back(ring.steps());
  for (Loader* const loader : loaders(true)) loader->ring().add_steps(*there);
  forget_steps(gone);
}

void InputStream::forget_steps(const std::vector<std::int64_t>& gone) {
  if (gone.empty()) return;
  for (Loader* const loader : loaders(true)) loader->ring().forget_steps(gone);
}

/// Looks at the indexes before a step is begun. The files' steps may have been taken back since they were
/// read ahead, and new ones may have come between them. Only ranks that begin before others of their node
/// look. A file that cannot be looked at now fails when it is read.
void InputStream::renew_step() {
  Ring* const first = any_ring();
  const bool disagreed = std::exchange(disagreed_, false);
  if (follower_ == nullptr || first == nullptr || first->step() >= step_) return;
  if (disagreed) {
    std::vector<std::int64_t> behind = first->steps();
    std::erase_if(behind, [&](std::int64_t lead) { return lead <= lead_; });
    forget_steps(behind);
    look_for_steps(*first);
  }
  const Result<std::vector<std::int64_t>> leads = first->around(lead_);
  if (!leads.is_ok()) return;
  for (const std::int64_t lead : *leads) {
    const Result<std::shared_ptr<const CommittedSteps>> commits = opened_->commits(lead);
    if (!commits.is_ok() || *commits == nullptr) continue;
    const std::optional<std::uint64_t> version = (*commits)->version(files_.valid(lead));
    if (!version) forget_steps(opened_->taken_back(lead, **commits, first->steps()));
    if (version)
      for (Loader* const loader : loaders(true)) loader->ring().renew(step_, lead, *version);
  }
}

std::string InputStream::step_text() const { return cat("at lead ", lead_, " s"); }

void InputStream::begin(std::int64_t lead) {
  const std::int64_t entered = now();
  const std::string call = cat("tr_stream_begin(\"", name_, "\", lead ", lead, " s)");
  if (in_step_) {
    latch(Status(Code::state,
                 cat(call, ": the step at lead ", lead_, " s is open: tr_stream_end comes first")));
    return;
  }
  in_step_ = true;
  lead_ = lead;
  now_.reset();
  versions_.clear();
  operation_ = 0;
  began_ = entered;
  const Status begun = guarded([&] { return begin_rings(); });
  if (!begun.is_ok()) {
    latch(begun.in(call));
    now_.reset();
  }
  read_ahead();
  counters().blocked += now() - entered;
}

/// Begins the step in all rings. The first ring chooses the files' steps that make it.
Status InputStream::begin_rings() {
  renew_step();
  Result<std::vector<std::int64_t>> leads = around(lead_);
  TR_TRY(leads.status());
  const Ring* const first = any_ring();
  for (const auto& field : fields_) {
    if (field->loader == nullptr) continue;
    Ring& ring = field->loader->ring();
    const std::int64_t begun = ring.begin(step_, lead_);
    if (begun != lead_)
      return {Code::order, cat("another rank of this node has begun the step at lead ", begun, " s")};
    if (&ring == first) leads = ring.around(lead_);
    TR_TRY(leads.status());
    if (!leads->empty()) ring.make_of(*leads);
  }
  set_now(std::move(*leads));
  tell_gap();
  return {};
}

/// Warns, once for each gap, that a followed stream is interpolated over a longer distance than before: a
/// file may be missing, or steps have become rarer.
void InputStream::tell_gap() {
  Ring* const ring = any_ring();
  if (follower_ == nullptr || !files_.is_linear || files_.bridges) return;
  if (ring == nullptr || !group_->is_io_rank()) return;
  const std::vector<std::int64_t> steps = ring->steps();
  const auto behind = std::ranges::lower_bound(steps, lead_);
  if (behind == steps.end() || *behind == lead_ || told_gap_ == *behind) return;
  const std::optional<std::int64_t> missing = FilesDefinition::missing_step(steps, lead_);
  if (!missing) return;
  told_gap_ = *behind;
  log(LogLevel::warn,
      cat("stream ", name_, ": lead ", lead_, " s is interpolated between ", *std::prev(behind), " s and ",
          *behind, " s; a step at lead ", *missing, " s may be missing"));
}

void InputStream::set_now(std::vector<std::int64_t> leads) {
  now_ = Between{std::move(leads), 0};
  if (now_->leads.size() == 2)
    now_->weight = static_cast<double>(lead_ - now_->leads.front()) /
                   static_cast<double>(now_->leads.back() - now_->leads.front());
}

/// Returns the ring of the first field that this node needs, or nullptr.
Ring* InputStream::any_ring() const {
  for (const auto& field : fields_)
    if (field->loader != nullptr) return &field->loader->ring();
  return nullptr;
}

Result<std::vector<std::int64_t>> InputStream::around(std::int64_t lead) const {
  Ring* const ring = any_ring();
  if (ring != nullptr) return ring->around(lead);
  return files_.around(files_.leads, lead);
}

/// Waits until the step has come, will not come, or is too late.
Status InputStream::await_step() {
  Ring& ring = *any_ring();
  Status status;
  std::optional<Excused> excused(std::in_place, group_->line().board());
  group_->wait(
      [&] {
        const std::uint32_t ticket = ring.bell().ticket();
        Result<std::vector<std::int64_t>> leads = ring.around(lead_);
        status = leads.status();
        const bool is_late = timeout_ >= 0 && now() - began_ >= timeout_;
        if (status.is_ok() && leads->empty() && !is_late) {
          look_for_steps(ring);
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
  const std::lock_guard lock(look_mutex_);
  return follower_->last_failure().is_ok()
             ? status
             : Status(Code::timeout,
                      cat(status.text(), "; a file could not be read: ", follower_->last_failure().text()));
}

void InputStream::get(const std::string& name, void* data, const streams::ArrayShape* shape) {
  const std::int64_t entered = now();
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
    const Result<const Share*> share = share_of(*field, shape);
    TR_TRY(share.status());
    if ((*share)->map.is_empty()) return {};
    if (data == nullptr) return {Code::argument, "the array is a null pointer"};
    return get_all(*field, static_cast<std::byte*>(data), **share);
  });
  scratch_.release();
  latch(status.in(call));
  counters().blocked += now() - entered;
}

Result<const Share*> InputStream::share_of(Field& field, const streams::ArrayShape* shape) const {
  if (shape == nullptr) return &field.share;
  if (shape->type != field.request.type) {
    return Status(Code::argument, cat("the array holds ", name_of(shape->type), ", the field was defined as ",
                                      name_of(field.request.type)));
  }
  if (field.last_share && field.last_extents == shape->extents && field.last_strides == shape->strides)
    return &*field.last_share;
  layout::Allocation allocation = field.request.allocation;
  const int rank = field.layout.kind() == "replicated" ? 0 : group_->rank();
  if (allocation.nproma == 0) {
    Result<layout::Allocation> matched =
        layout::match_extents(field.layout, rank, std::move(allocation), shape->extents);
    TR_TRY(matched.status());
    allocation = std::move(*matched);
  }
  allocation.strides = shape->strides;
  Result<Share> share = make_share(field.layout, group_->rank(), field.request.type, allocation, field.cut);
  TR_TRY(share.status());
  field.last_extents = shape->extents;
  field.last_strides = shape->strides;
  field.last_share = std::move(*share);
  return &*field.last_share;
}

/// Notes the version of a record. Code::state if other records of the step had another: it was written again
/// meanwhile.
Status InputStream::note_version(std::int64_t lead, std::uint64_t version, const Field& field) {
  if (versions_.emplace(lead, version).first->second == version) return {};
  return changed(lead).in(cat("'", field.request.in_file, "'"));
}

/// Returns the versions of the steps that this rank has got, for end() to compare over all ranks.
ByteVector InputStream::versions_told() {
  Packer told;
  if (follower_ != nullptr)
    for (const auto& [lead, version] : versions_) told.put(lead).put(version);
  return told.take();
}

Status InputStream::get_all(Field& field, std::byte* data, const Share& share) {
  Ring& ring = field.loader->ring();
  bool is_late = now_->leads.empty();
  if (is_late) {
    const std::int64_t entered = now();
    const Status come = await_step();
    counters().get_wait += now() - entered;
    TR_TRY(come);
  }
  ring.make_of(now_->leads);
  const std::vector<Index> slots = slots_of(field);
  const Index levels = std::ssize(ring.field().levels.values);
  for (Index level = 0; level < levels; ++level) {
    for (const Index slot : slots) {
      if (ring.state(slot, level) == Ring::State::ready) continue;
      is_late = true;
      const std::int64_t entered = now();
      const Status status = wait_for(field, slot, level);
      counters().get_wait += now() - entered;
      TR_TRY(status);
    }
    for (std::size_t i = 0; i < slots.size(); ++i)
      TR_TRY(note_version(now_->leads[i], ring.version(slots[i], level), field));
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
  if (slots.size() == 1 && !(files_.is_linear && missing)) return share.map.scatter(data, begin, end, first);
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
  const std::int64_t entered = now();
  const std::string call = cat("tr_stream_end(\"", name_, "\")");
  if (!in_step_) latch(Status(Code::state, cat(call, " without tr_stream_begin")));
  const std::string place = in_step_ ? cat(call, " ", step_text()) : call;
  // Other ranks may still be waiting for the step: this one may have got it before it was taken back, or need
  // no part of it.
  std::optional<Excused> excused;
  if (follower_ != nullptr) excused.emplace(group_->line().board());
  ByteVector versions;
  latch(guarded([&] {
    versions = versions_told();
    return Status();
  }));
  const Status status = agree(place, std::exchange(latched_, Status()), {}, std::move(versions)).status;
  excused.reset();
  // The step may have come only since it was begun, with a gap before it.
  if (status.is_ok()) tell_gap();
  disagreed_ = files_.is_linear && status.code() == Code::state;
  in_step_ = false;
  ++step_;
  pipeline::Counters& counts = counters();
  ++counts.steps;
  take_counts();
  counts.blocked += now() - entered;
  return status;
}

/// Adds this stream's new counts: streams of one pattern share their counters.
void InputStream::take_counts() {
  const std::int64_t records = counts_.records;
  const std::int64_t bytes = counts_.bytes;
  counters().records_read += records - std::exchange(told_records_, records);
  counters().read_bytes += bytes - std::exchange(told_bytes_, bytes);
}

Status InputStream::seek(std::int64_t lead) {
  const std::string call = cat("tr_stream_seek(\"", name_, "\", lead ", lead, " s)");
  const auto check = [&]() -> Status {
    if (in_step_) return {Code::state, "inside of a step: tr_stream_end comes first"};
    return around(lead).status();
  };
  Status mine = std::exchange(latched_, Status());
  if (mine.is_ok()) mine = check().in(call);
  TR_TRY(agree(call, mine).status);
  for (const auto& field : fields_)
    if (field->loader != nullptr) field->loader->ring().seek(step_, lead);
  read_ahead();
  return {};
}

Status InputStream::close() {
  const std::int64_t entered = now();
  const std::string call = cat("tr_stream_close(\"", name_, "\")");
  if (in_step_) latch(Status(Code::state, cat(call, " inside of a step: tr_stream_end comes first")));
  is_closed_ = true;
  group_->wait([this] { return group_->threads().is_idle(key_); },
               cat("records of ", name_, " that are read"));
  const Status status = agree(call, std::exchange(latched_, Status())).status;
  for (const auto& field : fields_) take_back(*field);
  take_counts();
  counters().blocked += now() - entered;
  return status;
}

}  // namespace tailrace::input
