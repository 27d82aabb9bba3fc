// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/safety/conflicts.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::shared {

namespace {

/// Rank 0 prints at most so many conflicts: one mistake often makes thousands.
constexpr std::size_t most_printed = 8;
/// To be compared, the file or array is cut into stretches of one length, which the ranks get in turn. The
/// length is at least `least_stretch`, and a rank gets at most `stretches_of_rank`: so a noted range that is
/// the whole file is not cut into too many parts.
constexpr Index least_stretch = Index{64} << 10;
constexpr Index stretches_of_rank = 16;
/// A rank tells rank 0 of at most so many conflicts. A conflict over the whole file counts once for each
/// stretch.
constexpr std::size_t most_told = most_printed + stretches_of_rank + 1;
/// A list of ranges begins with room for so many ranges.
constexpr std::size_t least_room = 256;

constexpr std::size_t number(Doing doing) { return static_cast<std::size_t>(doing); }

/// Sorts the ranges, and joins those that overlap or touch each other.
void join(std::vector<Range>& ranges) {
  std::ranges::sort(ranges, {}, &Range::begin);
  std::size_t kept = 0;
  for (const Range& each : ranges) {
    if (kept > 0 && each.begin <= ranges[kept - 1].end)
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, each.end);
    else
      ranges[kept++] = each;
  }
  ranges.resize(kept);
}

/// For each Doing, the ranks that do it at one place.
using Active = std::array<std::set<int>, doings>;

/// Returns one of the ranks that is not `rank`.
std::optional<int> other_than(int rank, const std::set<int>& ranks) {
  for (const int each : ranks)
    if (each != rank) return each;
  return std::nullopt;
}

/// Returns two ranks that are in conflict at one place, and what each of them does there, if any are.
std::optional<std::pair<Conflict::Side, Conflict::Side>> conflicting(const Active& active) {
  const auto pair_of = [&](int rank, Doing doing, Doing others) {
    const std::optional<int> other = other_than(rank, active[number(others)]);
    return other ? std::optional(std::pair(Conflict::Side{rank, doing}, Conflict::Side{*other, others}))
                 : std::nullopt;
  };
  // A writer is in conflict with every other rank at this place, so the first writer shows any conflict.
  if (const std::set<int>& writers = active[number(Doing::write)]; !writers.empty()) {
    for (const Doing others : {Doing::write, Doing::add, Doing::read})
      if (const auto pair = pair_of(*writers.begin(), Doing::write, others)) return pair;
    return std::nullopt;
  }
  for (const int rank : active[number(Doing::add)])
    if (const auto pair = pair_of(rank, Doing::add, Doing::read)) return pair;
  return std::nullopt;
}

}  // namespace

std::vector<Conflict> find_conflicts(const std::vector<Done>& done) {
  struct Event {
    Index at = 0;
    bool begins = false;
    const Done* what = nullptr;
  };
  std::vector<Event> events;
  events.reserve(2 * done.size());
  for (const Done& each : done) {
    events.push_back({each.range.begin, true, &each});
    events.push_back({each.range.end, false, &each});
  }
  // Ends sort before begins at the same place: a rank may have another range of the same kind right behind.
  std::ranges::sort(events, {}, [](const Event& event) { return std::pair(event.at, event.begins); });
  Active active;
  std::vector<Conflict> found;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    std::set<int>& ranks = active[number(event.what->doing)];
    if (event.begins)
      ranks.insert(event.what->rank);
    else
      ranks.erase(event.what->rank);
    if (i + 1 == events.size() || events[i + 1].at == event.at) continue;
    const auto sides = conflicting(active);
    if (!sides) continue;
    const Conflict here{{event.at, events[i + 1].at}, sides->first, sides->second};
    if (!found.empty() && found.back().range.end == event.at && found.back().first == here.first &&
        found.back().second == here.second)
      found.back().range.end = here.range.end;
    else
      found.push_back(here);
  }
  return found;
}

void Conflicts::note(Doing doing, Index begin, Index count) {
  if (count <= 0) return;
  Index end = 0;
  if (__builtin_add_overflow(begin, count, &end)) end = std::numeric_limits<Index>::max();
  Ranges& ranges = noted_[number(doing)];
  if (!ranges.empty() && begin >= ranges.back().begin && begin <= ranges.back().end) {
    ranges.back().end = std::max(ranges.back().end, end);
    return;
  }
  if (is_full_) return;
  if (ranges.size() == ranges.capacity() && !make_room(ranges))
    is_full_ = true;
  else
    ranges.push_back({begin, end});
}

/// Joins ranges of a full list, and takes more memory if that frees less than half of the list. Returns true
/// if the list has room.
bool Conflicts::make_room(Ranges& ranges) {
  join(ranges);
  if (ranges.size() < ranges.capacity() / 2) return true;
  std::size_t all = 0;
  for (const Ranges& each : noted_) all += each.capacity();
  const std::size_t more = std::max(ranges.capacity(), least_room);
  const auto bytes = static_cast<Bytes>(more * sizeof(Range));
  // The last quarter of the memory budget is left to the program's other calls.
  const bool is_little = group_.budget().left() - bytes >= group_.budget().limit() / 4 || ranges.empty();
  const bool is_allowed = is_little && static_cast<Bytes>(all * sizeof(Range)) + bytes <= most_bytes &&
                          drawn_.take(bytes).is_ok();
  if (is_allowed) {
    const Status taken = guarded([&] {
      ranges.reserve(ranges.capacity() + more);
      return Status();
    });
    if (taken.is_ok()) return true;
    drawn_.give_back(bytes);
  }
  // With less than an eighth free, the list would soon be full, and sorted, again: it counts as full.
  return ranges.size() < ranges.capacity() - ranges.capacity() / 8;
}

void Conflicts::compare(Index end, const std::string& call) {
  std::map<int, ByteVector> messages;
  Status mine = guarded([&] {
    messages = deal_out(end);
    return Status();
  });
  const Cause cause{-1, -1, group_.rank()};
  const Result<std::map<int, ByteVector>> arrived =
      group_.line().exchange(std::move(messages), {mine.at(cause), cat(call, ", comparing ranges"), {}});
  const bool was_full = std::exchange(is_full_, false);
  for (Ranges& each : noted_) each.clear();
  ByteVector found;
  mine = arrived.status();
  if (mine.is_ok()) {
    mine = guarded([&] {
      found = found_in(*arrived, was_full);
      return Status();
    });
  }
  const comm::Verdict verdict =
      group_.agree({mine.at(cause), cat(call, ", conflicts"), {}, std::move(found)});
  if (!group_.is_io_rank()) return;
  if (verdict.status.is_ok())
    print(verdict.for_first, call);
  else
    log(LogLevel::warn, cat(call, ": conflicts were not looked for: ", verdict.status.text()));
}

/// Returns for each rank a message with this rank's ranges, cut where the stretches end, in the stretches
/// that the other rank compares.
std::map<int, ByteVector> Conflicts::deal_out(Index end) {
  const Index ranks = group_.size();
  const Index stretch = std::max(least_stretch, end / (ranks * stretches_of_rank) + 1);
  std::map<int, Noted> parts;
  for (std::size_t doing = 0; doing < doings; ++doing) {
    join(noted_[doing]);
    for (const Range& each : noted_[doing]) {
      const Index last = std::min(each.end, end);
      for (Index at = each.begin; at < last;) {
        const Index next = std::min(last, (at / stretch + 1) * stretch);
        parts[static_cast<int>(at / stretch % ranks)][doing].push_back({at, next});
        at = next;
      }
    }
  }
  std::map<int, ByteVector> messages;
  for (const auto& [rank, lists] : parts) {
    Packer message;
    for (const Ranges& each : lists) message.put_list(std::span<const Range>(each));
    messages[rank] = message.take();
  }
  return messages;
}

/// Returns a message for rank 0 with the conflicts in the ranges of all ranks that have arrived here, or an
/// empty one if there is nothing to print. `was_full` says that this rank could not note all it did.
ByteVector Conflicts::found_in(const std::map<int, ByteVector>& messages, bool was_full) {
  std::vector<Done> done;
  for (const auto& [rank, message] : messages) {
    Unpacker in(message);
    for (std::size_t doing = 0; doing < doings; ++doing)
      for (const Range& each : in.get_list<Range>()) done.push_back({each, rank, static_cast<Doing>(doing)});
  }
  const std::vector<Conflict> found = find_conflicts(done);
  if (found.empty() && !was_full) return {};
  Packer told;
  told.put(was_full).put(static_cast<std::int64_t>(found.size()));
  told.put_list(std::span(found).first(std::min(found.size(), most_told)));
  return told.take();
}

void Conflicts::print(const std::vector<ByteVector>& found, const std::string& call) const {
  std::int64_t all = 0;
  int full = 0;
  std::vector<Conflict> first;
  for (const ByteVector& each : found) {
    if (each.empty()) continue;
    Unpacker in(each);
    full += in.get<bool>() ? 1 : 0;
    all += in.get<std::int64_t>();
    for (const Conflict& conflict : in.get_list<Conflict>()) first.push_back(conflict);
  }
  std::ranges::sort(first, {}, [](const Conflict& conflict) { return conflict.range.begin; });
  for (std::size_t lines = 0, at = 0; at < first.size() && lines < most_printed; ++lines) {
    // Two ranks have found the parts of a conflict that crosses the end of a stretch: they are joined here.
    Conflict here = first[at];
    for (--all; ++at < first.size() && first[at].range.begin == here.range.end &&
                first[at].first == here.first && first[at].second == here.second;
         --all)
      here.range.end = first[at].range.end;
    log(LogLevel::warn, cat(call, ": ", text(here)));
  }
  if (all > 0) log(LogLevel::warn, cat(call, ": ", counted(all, "more conflict"), " of this kind"));
  if (full > 0) {
    log(LogLevel::warn,
        cat(call, ": ", counted(full, "rank"), " used more places since the last sync than can be noted in ",
            size_text(most_bytes), ", or in what the memory budget leaves; the rest was not compared"));
  }
}

std::string Conflicts::text(const Conflict& conflict) const {
  constexpr std::array<std::string_view, doings> verbs{" read ", " wrote ", " added to "};
  const bool is_one = conflict.range.end - conflict.range.begin == 1;
  const std::string range = is_one ? cat(unit_, " ", conflict.range.begin)
                                   : cat(unit_, "s ", conflict.range.begin, " to ", conflict.range.end - 1);
  return cat("rank ", conflict.first.rank, verbs[number(conflict.first.doing)], range, ", and rank ",
             conflict.second.rank, verbs[number(conflict.second.doing)], is_one ? "it" : "them",
             conflict.first.doing == conflict.second.doing ? " too" : "", ", without a sync between the two");
}

}  // namespace tailrace::shared
