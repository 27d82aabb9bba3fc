// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/operations/elements.hpp"
#include "formats/codec/missing.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"

namespace tailrace::operations {

using Over = codec::Reduction::Operation;

Bytes Reducer::bytes_of(const codec::FieldDefinition& field) {
  if (!field.reduction.is_within_level()) return 0;
  return field.elements() * static_cast<Bytes>(sizeof(State)) + field.elements_put() * size_of(field.type);
}

/// One pass over the elements of a level.
template <typename T>
struct Reducer::Walk {
  const codec::FieldDefinition& field;
  const std::byte* at;
  std::byte* record;
  std::vector<State>& states;
  bool has_missing = field.missing.has_value();
  bool missing_is_nan = has_missing && std::isnan(*field.missing);
  T missing =
      has_missing && !missing_is_nan ? static_cast<T>(codec::missing_in(field.type, *field.missing)) : T{};

  void take_sum(Index to, T value) {
    State& state = states[static_cast<std::size_t>(to)];
    const auto term = static_cast<double>(value);
    const double sum = state.sum + term;
    state.error +=
        std::abs(state.sum) >= std::abs(term) ? (state.sum - sum) + term : (term - sum) + state.sum;
    state.sum = sum;
    ++state.count;
  }

  void take_extreme(Index to, T value) {
    std::byte* const place = record + to * static_cast<Bytes>(sizeof(T));
    const T before = load<T>(place);
    const bool is_beyond = field.reduction.operation == Over::minimum ? value < before : value > before;
    // An extreme is NaN once a value is NaN.
    if (states[static_cast<std::size_t>(to)].count++ == 0 || is_beyond || value != value)
      std::memcpy(place, &value, sizeof value);
  }

  /// Takes the elements from dimension `d` on. `to` is the element of the record that the first one goes to,
  /// and `step` how many elements of the record one index of `d` makes, if the record has `d`.
  template <typename Take>
  void take_from(std::size_t d, Index to, Index step, const Take& take) {
    const codec::Reduction& reduction = field.reduction;
    const Index count = reduction.shape[d];
    const bool is_lost = reduction.is_lost[d] != 0;
    if (!is_lost) step /= count;
    for (Index i = 0; i < count; ++i) {
      const Index there = is_lost ? to : to + i * step;
      if (d + 1 < reduction.shape.size()) {
        take_from(d + 1, there, step, take);
        continue;
      }
      const T value = load<T>(at);
      at += sizeof(T);
      if (has_missing && (missing_is_nan ? value != value : value == missing)) continue;
      take(there, value);
    }
  }

  Status finish_sums() {
    const bool divides = field.reduction.operation == Over::mean;
    Index wrong = -1;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const State& state = states[i];
      // Infinite values make the error NaN.
      double value = std::isfinite(state.sum) ? state.sum + state.error : state.sum;
      if (divides) value /= static_cast<double>(std::max<std::int64_t>(state.count, 1));
      if constexpr (!std::is_floating_point_v<T>) value = std::nearbyint(value);
      const bool fits = holds<T>(value);
      if (!fits && wrong < 0) wrong = static_cast<Index>(i);
      put(i, fits ? static_cast<T>(value) : T{});
    }
    fill_missing();
    if (wrong < 0) return {};
    return {Code::data,
            cat("the ", name_of(field.reduction.operation), " over ", lost(), " is no ", name_of(field.type),
                " at element ", wrong, " of the record: define the field with a type that holds it")};
  }

  void put(std::size_t i, T value) { std::memcpy(record + i * sizeof(T), &value, sizeof value); }

  void fill_missing() {
    if (!has_missing) return;
    const T none = static_cast<T>(missing_is_nan ? *field.missing : static_cast<double>(missing));
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i].count == 0) put(i, none);
  }

  [[nodiscard]] std::string lost() const {
    Index elements = 1;
    for (std::size_t d = 0; d < field.reduction.shape.size(); ++d)
      if (field.reduction.is_lost[d] != 0) elements *= field.reduction.shape[d];
    return counted(elements, "element");
  }

  Status run() {
    const Index all = field.elements();
    const Over operation = field.reduction.operation;
    if (operation == Over::mean || operation == Over::sum) {
      take_from(0, 0, all, [this](Index to, T value) { take_sum(to, value); });
      return finish_sums();
    }
    take_from(0, 0, all, [this](Index to, T value) { take_extreme(to, value); });
    fill_missing();
    return {};
  }
};

Status Reducer::reduce(const codec::FieldDefinition& field, const std::byte* level, std::byte* record) {
  const DefaultArithmetic arithmetic;  // with 0 servers a thread of the program comes here
  states_.assign(static_cast<std::size_t>(field.elements()), State{});
  Status status;
  with_type(field.type, [&](auto zero) {
    status = Walk<decltype(zero)>{field, level, record, states_}.run();
  });
  return status;
}

}  // namespace tailrace::operations
