// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/ring.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <new>

#include "ground/base/text.hpp"

namespace tailrace::input {

namespace {

constexpr Bytes line = 64;

Bytes round_up(Bytes bytes) { return (bytes + line - 1) / line * line; }

/// The most steps that may be added while the stream is read. Beyond it the oldest steps are forgotten.
constexpr Index most_new_leads = 16'384;

constexpr std::int64_t first_pause = 10'000'000;  // nanoseconds
constexpr std::int64_t longest_pause = 1'000'000'000;

Index room_for_leads(const FilesDefinition& files) {
  return std::ssize(files.leads) + (files.follows ? most_new_leads : 0);
}

ByteVector packed(const FilesDefinition& files, const FieldDefinition& field) {
  Packer out;
  files.pack(out);
  field.pack(out);
  return out.take();
}

}  // namespace

Ring::Places Ring::places_of(Bytes definition_bytes, Index leads, Index slots, Index levels,
                             Bytes level_bytes) {
  Places places;
  places.definition = round_up(static_cast<Bytes>(sizeof(Head)));
  places.leads = round_up(places.definition + definition_bytes);
  places.slots = round_up(places.leads + leads * static_cast<Bytes>(sizeof(std::int64_t)));
  places.tasks = round_up(places.slots + slots * static_cast<Bytes>(sizeof(Slot)));
  places.values = round_up(places.tasks + slots * levels * static_cast<Bytes>(sizeof(Task)));
  places.end = places.values + slots * levels * round_up(level_bytes);
  return places;
}

Bytes Ring::bytes_for(const FilesDefinition& files, const FieldDefinition& field) {
  return places_of(std::ssize(packed(files, field)), room_for_leads(files), files.slots(),
                   std::ssize(field.levels.values), field.level_bytes())
      .end;
}

void Ring::make(std::byte* memory, const FilesDefinition& files, const FieldDefinition& field) {
  const ByteVector definition = packed(files, field);
  const Index levels = std::ssize(field.levels.values);
  const Places places =
      places_of(std::ssize(definition), room_for_leads(files), files.slots(), levels, field.level_bytes());
  auto* const head = new (memory) Head();
  head->definition_bytes = std::ssize(definition);
  std::ranges::copy(definition, memory + places.definition);
  for (Index number = 0; number < files.slots(); ++number)
    new (memory + places.slots + number * static_cast<Bytes>(sizeof(Slot))) Slot();
  for (Index number = 0; number < files.slots() * levels; ++number)
    new (memory + places.tasks + number * static_cast<Bytes>(sizeof(Task))) Task();
  std::ranges::copy(files.leads, reinterpret_cast<std::int64_t*>(memory + places.leads));
  head->leads = std::ssize(files.leads);
  if (!files.leads.empty()) head->lead = files.leads.front();
}

Ring::Ring(std::byte* memory, comm::Transport& transport) : memory_(memory), transport_(transport) {
  const Places front = places_of(head().definition_bytes, 0, 0, 0, 0);
  Unpacker in({memory + front.definition, static_cast<std::size_t>(head().definition_bytes)});
  files_ = FilesDefinition::unpack(in);
  field_ = FieldDefinition::unpack(in);
  slots_ = files_.slots();
  levels_ = std::ssize(field_.levels.values);
  level_bytes_ = field_.level_bytes();
  places_ = places_of(head().definition_bytes, room_for_leads(files_), slots_, levels_, level_bytes_);
}

std::int64_t Ring::begin(std::int64_t step, std::int64_t lead) {
  const node::Locked lock(head().lock, transport_);
  Head& all = head();
  if (all.step >= step) return all.lead;
  // A second try of the same step says nothing about the direction.
  if (!all.has_started || lead != all.lead) all.is_backward = all.has_started && lead < all.lead;
  all.has_started = true;
  all.step = step;
  all.lead = lead;
  all.chosen_count = 0;
  drop_stale();
  plan();
  for (Index number = 0; number < slots_; ++number) {
    if (slot(number).position == unwanted) continue;
    for (Index level = 0; level < levels_; ++level) {
      State failed = State::failed;
      task(number, level).state.compare_exchange_strong(failed, State::wanted);
    }
  }
  return lead;
}

std::int64_t Ring::step() {
  const node::Locked lock(head().lock, transport_);
  return head().step;
}

void Ring::seek(std::int64_t step, std::int64_t lead) {
  const node::Locked lock(head().lock, transport_);
  if (head().step >= step) return;
  head().is_backward = false;
  head().has_started = false;  // the next step's lead does not show a direction
  head().lead = lead;
  head().chosen_count = 0;
  drop_stale();
  plan();
}

/// Returns the files' steps that make the step at the head's lead, and keeps the first answer with any.
Result<std::vector<std::int64_t>> Ring::choose() {
  Head& all = head();
  if (all.chosen_count > 0) return std::vector(all.chosen.begin(), all.chosen.begin() + all.chosen_count);
  Result<std::vector<std::int64_t>> leads_now = files_.around(leads(), all.lead);
  if (!leads_now.is_ok() || leads_now->empty()) return leads_now;
  all.chosen_count = std::ssize(*leads_now);
  std::ranges::copy(*leads_now, all.chosen.begin());
  return leads_now;
}

Result<std::vector<std::int64_t>> Ring::around(std::int64_t lead) {
  const node::Locked lock(head().lock, transport_);
  return lead == head().lead ? choose() : files_.around(leads(), lead);
}

void Ring::make_of(std::span<const std::int64_t> leads_now) {
  const node::Locked lock(head().lock, transport_);
  Head& all = head();
  if (std::ranges::equal(leads_now, std::span(all.chosen).first(static_cast<std::size_t>(all.chosen_count))))
    return;
  all.chosen_count = std::ssize(leads_now);
  std::ranges::copy(leads_now, all.chosen.begin());
  merge(leads_now);
  plan();
}

std::vector<std::int64_t> Ring::steps() {
  const node::Locked lock(head().lock, transport_);
  return {leads().begin(), leads().end()};
}

std::vector<std::int64_t> Ring::wanted() {
  Result<std::vector<std::int64_t>> leads_now = choose();
  if (!leads_now.is_ok()) return {};
  return files_.wanted(leads(), std::move(*leads_now), head().lead, head().is_backward);
}

bool Ring::lacks_steps() {
  const node::Locked lock(head().lock, transport_);
  return std::ssize(wanted()) < files_.slots();
}

bool Ring::may_look() {
  const std::int64_t now = transport_.now();
  const node::Locked lock(head().lock, transport_);
  Head& all = head();
  if (now < all.next_look) return false;
  all.pause = std::clamp(2 * all.pause, first_pause, longest_pause);
  all.next_look = now + all.pause;
  return true;
}

/// Adds steps. Returns true if some of them are new.
bool Ring::merge(std::span<const std::int64_t> more) {
  std::vector<std::int64_t> all;
  std::ranges::set_union(leads(), more, std::back_inserter(all));
  if (std::ssize(all) == head().leads) return false;
  const Index room = room_for_leads(files_);
  if (std::ssize(all) > room) all.erase(all.begin(), all.end() - room);
  head().leads = std::ssize(all);
  std::ranges::copy(all, leads().begin());
  return true;
}

void Ring::add_steps(std::span<const std::int64_t> more) {
  const node::Locked lock(head().lock, transport_);
  if (!merge(more)) return;
  head().pause = 0;
  plan();
  bell().ring();
}

void Ring::forget_steps(std::span<const std::int64_t> gone) {
  const node::Locked lock(head().lock, transport_);
  const auto is_gone = [&](std::int64_t lead) { return std::ranges::count(gone, lead) > 0; };
  const auto rest = std::ranges::remove_if(leads(), is_gone);
  if (rest.empty()) return;
  head().leads -= std::ssize(rest);
  head().pause = head().next_look = 0;
  const auto chosen = std::span(head().chosen).first(static_cast<std::size_t>(head().chosen_count));
  for (Index number = 0; number < slots_; ++number) {
    Slot& each = slot(number);
    if (!each.is_used || !is_gone(each.lead)) continue;
    // Ranks may be copying from this slot: keep it, so that all ranks get the same values.
    const bool is_open = std::ranges::count(chosen, each.lead) > 0;
    each.is_stale = is_open;
    each.is_used = is_open;
  }
  plan();
}

/// Frees the slots of steps that were taken back while the program's step used them.
void Ring::drop_stale() {
  for (Index number = 0; number < slots_; ++number) {
    Slot& each = slot(number);
    if (each.is_stale) each.is_used = false;
    each.is_stale = false;
  }
}

void Ring::renew(std::int64_t step, std::int64_t lead, std::uint64_t version_now) {
  const node::Locked lock(head().lock, transport_);
  if (head().step >= step) return;
  for (Index number = 0; number < slots_; ++number) {
    Slot& each = slot(number);
    if (!each.is_used || each.lead != lead) continue;
    for (Index level = 0; level < levels_; ++level)
      if (state(number, level) == State::ready && version(number, level) != version_now) each.is_used = false;
  }
}

bool Ring::is_busy(Index number) const {
  for (Index level = 0; level < levels_; ++level)
    if (task(number, level).state.load(std::memory_order_relaxed) == State::loading) return true;
  return false;
}

void Ring::take_for(Slot& taken, Index number, std::int64_t lead) {
  taken.lead = lead;
  taken.is_used = true;
  taken.is_stale = false;
  for (Index level = 0; level < levels_; ++level) task(number, level).state = State::wanted;
}

/// Gives slots to the wanted steps. A slot into which a worker decodes is left until the worker is done; a
/// step waits for it. The caller has the lock.
void Ring::plan() {
  const std::vector<std::int64_t> steps = wanted();
  std::map<std::int64_t, std::int32_t> positions;
  for (const std::int64_t lead : steps) positions.emplace(lead, static_cast<std::int32_t>(positions.size()));
  std::vector<bool> has_slot(steps.size());
  for (Index number = 0; number < slots_; ++number) {
    Slot& each = slot(number);
    const auto found = each.is_used ? positions.find(each.lead) : positions.end();
    each.position = found == positions.end() ? unwanted : found->second;
    if (each.position != unwanted) has_slot[static_cast<std::size_t>(each.position)] = true;
  }
  Index free = 0;
  head().lacks_slot = false;
  for (std::size_t position = 0; position < steps.size(); ++position) {
    if (has_slot[position]) continue;
    while (free < slots_ && (slot(free).position != unwanted || is_busy(free))) ++free;
    head().lacks_slot = free == slots_;
    if (free == slots_) return;
    take_for(slot(free), free, steps[position]);
    slot(free).position = static_cast<std::int32_t>(position);
  }
}

Ring::Claim Ring::claimed(Index number, Index level) {
  task(number, level).state = State::loading;
  std::byte* const values = memory_ + places_.values + (number * levels_ + level) * round_up(level_bytes_);
  return {number, level, slot(number).lead, {values, static_cast<std::size_t>(level_bytes_)}};
}

/// Plans again if a step waits for a slot: a worker may be done with one by now.
void Ring::plan_again() {
  if (head().lacks_slot) plan();
}

bool Ring::has_task(Index number) const {
  for (Index level = 0; level < levels_; ++level)
    if (task(number, level).state.load(std::memory_order_relaxed) == State::wanted) return true;
  return false;
}

/// Returns the slot of the first step with a task to claim that is needed at most `ahead` steps from now.
std::optional<Index> Ring::first_with_task(Index ahead) {
  plan_again();
  std::optional<Index> best;
  for (Index number = 0; number < slots_; ++number) {
    const std::int32_t position = slot(number).position;
    if (position == unwanted || position > ahead) continue;
    if (best && slot(*best).position <= position) continue;
    if (has_task(number)) best = number;
  }
  return best;
}

std::optional<Index> Ring::soonest() {
  const node::Locked lock(head().lock, transport_);
  const std::optional<Index> first = first_with_task(slots_);
  return first ? std::optional<Index>(slot(*first).position) : std::nullopt;
}

std::optional<Ring::Claim> Ring::claim(Index ahead) {
  const node::Locked lock(head().lock, transport_);
  const std::optional<Index> best = first_with_task(ahead);
  if (!best) return {};
  Index level = 0;
  while (task(*best, level).state.load(std::memory_order_relaxed) != State::wanted) ++level;
  return claimed(*best, level);
}

std::optional<Ring::Claim> Ring::claim(Index number, Index level) {
  const node::Locked lock(head().lock, transport_);
  if (task(number, level).state.load(std::memory_order_relaxed) != State::wanted) return {};
  return claimed(number, level);
}

void Ring::put_back(const Claim& claim) {
  task(claim.slot, claim.level).state.store(State::wanted, std::memory_order_release);
}

void Ring::finish(const Claim& claim, const Status& status, std::uint64_t version_read) {
  Task& done = task(claim.slot, claim.level);
  done.version = version_read;
  if (!status.is_ok()) {
    done.code = status.code();
    done.error_number = status.error_number();
    const std::size_t length = std::min(status.text().size(), text_bytes - 1);
    std::memcpy(done.text, status.text().data(), length);
    done.text[length] = '\0';
  }
  done.state.store(status.is_ok() ? State::ready : State::failed, std::memory_order_release);
  bell().ring();
}

std::optional<Index> Ring::find(std::int64_t lead) {
  const node::Locked lock(head().lock, transport_);
  plan_again();
  for (Index number = 0; number < slots_; ++number)
    if (slot(number).position != unwanted && slot(number).lead == lead) return number;
  return {};
}

Ring::State Ring::state(Index slot, Index level) const {
  return task(slot, level).state.load(std::memory_order_acquire);
}

std::uint64_t Ring::version(Index slot, Index level) const { return task(slot, level).version; }

Status Ring::error(Index slot, Index level) const {
  const Task& failed = task(slot, level);
  return {failed.code, failed.text, failed.error_number};
}

const std::byte* Ring::values(Index slot, Index level) const {
  return memory_ + places_.values + (slot * levels_ + level) * round_up(level_bytes_);
}

}  // namespace tailrace::input
