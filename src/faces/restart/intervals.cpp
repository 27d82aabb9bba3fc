// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/restart/intervals.hpp"

#include <map>
#include <optional>

#include "ground/base/text.hpp"

namespace tailrace::restart {

namespace {

using streams::OpenInterval;
using Calls = std::vector<std::optional<std::int64_t>>;  // as Stream::calls()

/// Consecutive fields with the same calls. Most ranks have one such run.
struct CallRun {
  std::int64_t calls = 0;
  std::int32_t fields = 0;
  std::int32_t counts = 0;
};

void pack_calls(Packer& out, const Calls& calls) {
  std::vector<CallRun> runs;
  for (const std::optional<std::int64_t>& each : calls) {
    const CallRun one{each.value_or(0), 1, each ? 1 : 0};
    const bool goes_on = !runs.empty() && runs.back().calls == one.calls && runs.back().counts == one.counts;
    if (goes_on)
      ++runs.back().fields;
    else
      runs.push_back(one);
  }
  out.put_list(std::span<const CallRun>(runs));
}

Calls unpack_calls(Unpacker& in, std::size_t fields) {
  Calls calls;
  for (const CallRun& run : in.get_list<CallRun>()) {
    for (std::int32_t i = 0; i < run.fields && calls.size() < fields; ++i)
      calls.push_back(run.counts != 0 ? std::optional(run.calls) : std::nullopt);
  }
  calls.resize(fields);
  return calls;
}

/// One rank's state within the interval of one stream.
struct Within {
  Status kept;
  Calls calls;
};

/// Unpacks what a rank has told, by the number of the stream.
std::map<std::size_t, Within> unpack(const ByteVector& told,
                                     const std::vector<const streams::Stream*>& open) {
  std::map<std::size_t, Within> all;
  for (Unpacker in(told); in.ok() && !in.rest().empty();) {
    const auto stream = static_cast<std::size_t>(in.get<std::int32_t>());
    Within within{Status::unpack(in), {}};
    if (!in.ok() || stream >= open.size()) break;
    within.calls = unpack_calls(in, open[stream]->calls().size());
    all[stream] = std::move(within);
  }
  return all;
}

/// Returns an error if a rank has put a field in other steps than the reference. Servers would find the same
/// error in the results.
Status compare(const streams::Stream& stream, int rank, const Calls& calls, const Calls& expected) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i] || !expected[i] || *calls[i] == *expected[i]) continue;
    return Status(Code::order, cat("rank ", rank, " has put field '", stream.name_of_field(i),
                                   "' in other steps of the interval than rank ", stream.reference(),
                                   "; all ranks that own a part of a field put it in the same steps"))
        .at({0, static_cast<std::int64_t>(i), rank});
  }
  return {};
}

}  // namespace

ByteVector tell_of_intervals(const std::vector<const streams::Stream*>& open) {
  Packer told;
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (!open[i]->position().interval) continue;
    told.put(static_cast<std::int32_t>(i));
    const Cause cause = open[i]->kept_error().cause();
    open[i]->kept_error().at({0, cause.operation, cause.rank}).pack(told);
    pack_calls(told, open[i]->calls());
  }
  return told.take();
}

void note_failures(const std::vector<const streams::Stream*>& open, const std::vector<ByteVector>& told,
                   std::vector<streams::Position>& positions) {
  std::vector<std::map<std::size_t, Within>> ranks;
  for (const ByteVector& each : told) ranks.push_back(unpack(each, open));
  for (std::size_t stream = 0; stream < open.size(); ++stream) {
    const auto reference = static_cast<std::size_t>(std::max(open[stream]->reference(), 0));
    if (reference >= ranks.size() || !ranks[reference].contains(stream)) continue;
    const Calls& expected = ranks[reference].at(stream).calls;
    Status failure;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const auto found = ranks[rank].find(stream);
      if (found == ranks[rank].end()) continue;
      failure = first_cause(failure, found->second.kept);
      failure =
          first_cause(failure, compare(*open[stream], static_cast<int>(rank), found->second.calls, expected));
    }
    if (failure.is_ok() || !positions[stream].interval) continue;
    const Cause cause = failure.cause();
    positions[stream].interval->failure =
        OpenInterval::Failure{failure.code(), cause.operation, cause.rank, failure.text()};
  }
}

}  // namespace tailrace::restart
