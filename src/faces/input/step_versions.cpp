// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/step_versions.hpp"

#include "ground/base/text.hpp"

namespace tailrace::input {

namespace {

Status changed(std::int64_t lead, const TimeAxis& time) {
  return {Code::state, cat("the writer of the files has taken the step at ", time.at(lead),
                           " back and written it once more while it was read: try the step again")};
}

}  // namespace

Status StepVersions::note(std::int64_t lead, std::uint64_t version, const TimeAxis& time) {
  return versions_.emplace(lead, version).first->second == version ? Status() : changed(lead, time);
}

ByteVector StepVersions::packed() const {
  Packer out;
  for (const auto& [lead, version] : versions_) out.put(lead).put(version);
  return out.take();
}

Status StepVersions::check(const std::vector<ByteVector>& of_ranks, const TimeAxis& time) {
  std::map<std::int64_t, std::uint64_t> all;
  std::size_t ranks = 0;
  std::map<std::int64_t, std::size_t> ranks_of;
  for (const ByteVector& each : of_ranks) {
    if (!each.empty()) ++ranks;
    for (Unpacker in(each); !in.rest().empty();) {
      const auto lead = in.get<std::int64_t>();
      const auto version = in.get<std::uint64_t>();
      if (!in.ok()) break;
      if (all.emplace(lead, version).first->second != version) return changed(lead, time);
      ++ranks_of[lead];
    }
  }
  for (const auto& [lead, count] : ranks_of) {
    if (count < ranks)
      return {Code::state, cat("some nodes interpolated from the step at ", time.at(lead),
                               " and others from one that came later: try the step again")};
  }
  return {};
}

}  // namespace tailrace::input
