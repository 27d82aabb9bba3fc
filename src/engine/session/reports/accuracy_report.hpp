// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>

#include "engine/pipeline/statistics.hpp"

namespace tailrace::session {

/// Returns how many of `records`, by kept bits, come before position `place` has been passed.
inline std::size_t bits_at(const std::vector<std::int64_t>& records, std::int64_t place) {
  std::size_t bits = 0;
  for (std::int64_t passed = records[0]; passed <= place && bits + 1 < records.size();)
    passed += records[++bits];
  return bits;
}

/// Returns what the records of each field with accuracy=auto in a stream have kept, on all ranks.
inline nlohmann::ordered_json accuracy_report(const std::map<int, pipeline::Statistics>& all,
                                              const std::string& stream) {
  std::map<std::string, pipeline::Precision> fields;
  for (const auto& [rank, statistics] : all) {
    const auto found = statistics.precisions.find(stream);
    if (found == statistics.precisions.end()) continue;
    for (const auto& [field, each] : found->second) fields[field].add(each);
  }
  auto report = nlohmann::ordered_json::array();
  for (const auto& [field, each] : fields) {
    const std::int64_t rounded = each.count() - each.whole;
    nlohmann::ordered_json told = {
        {"field", field}, {"information", each.share}, {"records", each.count()}, {"whole", each.whole}};
    if (rounded > 0) {
      told["kept_bits"] = {{"min", bits_at(each.records, 0)},
                           {"median", bits_at(each.records, (rounded - 1) / 2)},
                           {"max", bits_at(each.records, rounded - 1)}};
      told["least_information"] = each.least_information;
      told["most_left_out"] = each.most_left_out;
    }
    report.push_back(std::move(told));
  }
  return report;
}

}  // namespace tailrace::session
