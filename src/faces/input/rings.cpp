// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/rings.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::input {

namespace {

/// The most ranks of a node that read ahead. Each of them opens all files, and has to look through them. More
/// ranks at work only pay where a get waits, and then the waiting rank reads itself.
constexpr int most_readers = 8;

}  // namespace

Rings::Rings(std::shared_ptr<files::Group> group, std::string stream, FilesDefinition files, Opener open)
    : group_(std::move(group)),
      stream_(std::move(stream)),
      files_(std::move(files)),
      open_(std::move(open)),
      opened_(std::make_shared<Files>(files_, open_, &group_->service().session().streams_target())),
      follower_(files_.follows ? std::make_unique<Follower>(files_) : nullptr),
      scratch_(group_->budget()),
      key_(group_->threads().new_own_key()) {}

Rings::~Rings() {
  is_closed_ = true;
  group_->threads().drain(key_);
  for (Field* const field : fields_)
    if (field->given) group_->service().session().giver().abandon(*field->given);
}

void Rings::stop() {
  is_closed_ = true;
  group_->wait([this] { return group_->threads().is_idle(key_); },
               cat("records of ", stream_, " that are read"));
}

void Rings::add(Field& field) {
  const std::lock_guard lock(mutex_);
  fields_.push_back(&field);
}

Status Rings::make(const FieldDefinition& definition, const std::string& call, Field& field) {
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
    if (Ring* const other = first(); other != nullptr)
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
std::optional<int> Rings::serving_rank() const {
  const session::Topology& topology = group_->service().session().topology();
  return topology.roster().self_served ? std::nullopt : topology.first_server_on(topology.node());
}

/// Hands the ring to a server of the node, which then reads ahead. Without one, the ranks' threads do.
void Rings::hand_over(Field& field) {
  const std::optional<int> server = serving_rank();
  if (!server) return;
  const Result<std::uint64_t> given =
      group_->service().session().giver().hand(*server, node::Handed::input, *field.memory, {});
  if (given.is_ok())
    field.given = *given;
  else
    log(LogLevel::warn, cat("stream ", stream_, ": the server of this node cannot read for it (",
                            given.status().text(), "): the I/O threads of its compute ranks do"));
}

void Rings::take_back(Field& field) {
  if (!field.given) return;
  const ByteVector told = group_->service().session().giver().take_back(*std::exchange(field.given, {}));
  Unpacker in(told);
  counts_.records += in.get<std::int64_t>();
  counts_.bytes += in.get<std::int64_t>();
}

Ring* Rings::first() const {
  for (const Field* const field : fields_)
    if (field->loader != nullptr) return &field->loader->ring();
  return nullptr;
}

Result<std::vector<std::int64_t>> Rings::around(std::int64_t lead) const {
  Ring* const ring = first();
  if (ring != nullptr) return ring->around(lead);
  return files_.around(files_.leads, lead);
}

Result<std::vector<std::int64_t>> Rings::begin(std::int64_t step, std::int64_t lead, bool disagreed) {
  renew(step, lead, disagreed);
  Result<std::vector<std::int64_t>> leads = around(lead);
  TR_TRY(leads.status());
  const Ring* const chooser = first();
  for (const Field* const field : fields_) {
    if (field->loader == nullptr) continue;
    Ring& ring = field->loader->ring();
    const std::int64_t begun = ring.begin(step, lead);
    if (begun != lead)
      return Status(Code::order,
                    cat("another rank of this node has begun the step at ", files_.time.at(begun)));
    if (&ring == chooser) leads = ring.around(lead);
    TR_TRY(leads.status());
    if (!leads->empty()) ring.make_of(*leads);
  }
  return leads;
}

void Rings::seek(std::int64_t step, std::int64_t lead) {
  for (const Field* const field : fields_)
    if (field->loader != nullptr) field->loader->ring().seek(step, lead);
}

/// True if a thread that looked now would find a record to read or a step to look for. For most steps between
/// two of the files there is nothing, and a thread woken in vain takes the model's core.
bool Rings::has_work_ahead() {
  const auto is_needed = [](Loader* loader) { return loader->ring().soonest().has_value(); };
  const auto lacks_steps = [](Loader* loader) { return loader->ring().lacks_steps(); };
  if (files_.follows && std::ranges::any_of(loaders(true), lacks_steps)) return true;
  if (files_.prefetch <= 0 && !files_.follows) return false;
  // Look at the last field first: it most likely has no records yet.
  const std::vector<Loader*> all = loaders(false);
  return std::any_of(all.rbegin(), all.rend(), is_needed);
}

void Rings::read_ahead() {
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
void Rings::work() {
  std::int64_t asked = 0;
  do {
    asked = asked_;
    const Status worked = guarded([&]() -> Status {
      while (!is_closed_) {
        TR_TRY(work_on_all([this] { return loaders(false); }, is_closed_, scratch_));
        if (!follow()) break;
      }
      return {};
    });
    is_busy_ = false;
    if (!worked.is_ok()) return;  // the ranks read when they need it
  } while (asked_ != asked && !is_busy_.exchange(true));
}

std::vector<Loader*> Rings::loaders(bool served_too) {
  std::vector<Loader*> all;
  const std::lock_guard lock(mutex_);
  for (const Field* const field : fields_)
    if (field->loader != nullptr && (served_too || !field->is_served)) all.push_back(field->loader.get());
  return all;
}

/// Looks for steps that are to come, and then rests. Returns false if no ring needs another step.
bool Rings::follow() {
  if (follower_ == nullptr || is_closed_) return false;
  const std::vector<Loader*> all = loaders(true);
  if (std::ranges::none_of(all, [](Loader* loader) { return loader->ring().lacks_steps(); })) return false;
  look_for_steps(all.front()->ring());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return true;
}

void Rings::look_for_steps(Ring& ring) {
  if (!ring.may_look()) return;
  const std::lock_guard lock(look_mutex_);
  const auto there = guarded([&]() -> Result<std::vector<std::int64_t>> {
    return follower_->look(group_->service().session().streams_target(), open_, group_->line().now());
  });
  if (!there.is_ok()) return;  // the next look may succeed
  const std::vector<std::int64_t> gone = follower_->taken_back(ring.steps());
  for (Loader* const loader : loaders(true)) loader->ring().add_steps(*there);
  forget_steps(gone);
}

Status Rings::last_failure() {
  const std::lock_guard lock(look_mutex_);
  return follower_ == nullptr ? Status() : follower_->last_failure();
}

void Rings::forget_steps(const std::vector<std::int64_t>& gone) {
  if (gone.empty()) return;
  for (Loader* const loader : loaders(true)) loader->ring().forget_steps(gone);
}

/// Looks at the indexes before a step is begun. The files' steps may have been taken back since they were
/// read ahead, and new ones may have come between them. Only ranks that begin before others of their node
/// look. A file that cannot be looked at now fails when it is read.
void Rings::renew(std::int64_t step, std::int64_t lead, bool disagreed) {
  Ring* const known = first();
  if (follower_ == nullptr || known == nullptr || known->step() >= step) return;
  if (disagreed) {
    std::vector<std::int64_t> behind = known->steps();
    std::erase_if(behind, [&](std::int64_t each) { return each <= lead; });
    forget_steps(behind);
    look_for_steps(*known);
  }
  const Result<std::vector<std::int64_t>> leads = known->around(lead);
  if (!leads.is_ok()) return;
  for (const std::int64_t each : *leads) {
    const Result<std::shared_ptr<const CommittedSteps>> commits = opened_->commits(each);
    if (!commits.is_ok() || *commits == nullptr) continue;
    const std::optional<std::uint64_t> version = (*commits)->version(each);
    if (!version) forget_steps(opened_->taken_back(each, **commits, known->steps()));
    if (version)
      for (Loader* const loader : loaders(true)) loader->ring().renew(step, each, *version);
  }
}

}  // namespace tailrace::input
