// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/weighted_levels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/operations/elements.hpp"
#include "formats/codec/missing.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"

namespace tailrace::operations {

Bytes WeightedLevels::bytes_of(const Accumulated& what) {
  return what.count * (size_of(what.type) + 2 * static_cast<Bytes>(sizeof(double)));
}

WeightedLevels::WeightedLevels(const Accumulated& what)
    : what_(what),
      values_(static_cast<std::size_t>(what.count * size_of(what.type))),
      sums_(static_cast<std::size_t>(what.count)),
      totals_(sums_.size()) {
  layout::MemoryMap map{size_of(what.type), std::ssize(values_), {}};
  if (what.count > 0) map.nests.push_back({0, {{what.count, map.element}}});
  map_ = std::make_shared<const layout::MemoryMap>(std::move(map));
}

template <typename T>
void WeightedLevels::add_level(std::span<const double> weights) {
  const bool has_missing = what_.missing.has_value(), is_nan = has_missing && std::isnan(*what_.missing);
  const T missing =
      has_missing && !is_nan ? static_cast<T>(codec::missing_in(what_.type, *what_.missing)) : T{};
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const T value = load<T>(values_.data() + i * sizeof(T));
    const double weight = weights.size() == 1 ? weights.front() : weights[i];
    if (weight == 0 || (has_missing && (is_nan ? value != value : value == missing))) continue;
    sums_[i] += weight * static_cast<double>(value);
    totals_[i] += weight;
  }
}

template <typename T>
void WeightedLevels::finish() {
  const bool divides = what_.operation == Operation::mean;
  const T missing = static_cast<T>(codec::missing_in(what_.type, what_.missing.value_or(0)));
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const bool is_missing = totals_[i] == 0 && what_.missing.has_value();
    double value = divides ? sums_[i] / totals_[i] : sums_[i];
    if constexpr (!std::is_floating_point_v<T>) value = std::nearbyint(value);
    const bool fits = is_missing || holds<T>(value);
    if (!fits && offending_ < 0) offending_ = static_cast<Index>(i);
    const T made = is_missing ? missing : fits ? static_cast<T>(value) : T{};
    std::memcpy(values_.data() + i * sizeof(T), &made, sizeof made);
  }
}

Status WeightedLevels::join(const layout::MemoryMap& map, const std::byte* base,
                            std::span<const double> weights) {
  offending_ = -1;
  if (what_.count == 0) return {};
  const DefaultArithmetic arithmetic;  // as in Accumulator::add()
  std::ranges::fill(sums_, 0);
  std::ranges::fill(totals_, 0);
  const std::size_t step = weights.size() / static_cast<std::size_t>(what_.levels);
  with_type(what_.type, [&](auto zero) {
    for (Index level = 0; level < what_.levels; ++level) {
      layout::pack(map, base, level, values_.data());
      add_level<decltype(zero)>(weights.subspan(static_cast<std::size_t>(level) * step, step));
    }
    finish<decltype(zero)>();
  });
  if (offending_ < 0) return {};
  return {Code::data,
          cat("the weighted ", what_.operation == Operation::mean ? "mean" : "sum", " of ",
              counted(what_.levels, "level"), " is no ", name_of(what_.type),
              ": define the field with a type that holds it, or with missing= if all weights are 0")};
}

}  // namespace tailrace::operations
