// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/operations/elements.hpp"
#include "formats/codec/missing.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"

namespace tailrace::operations {

using Over = codec::Reduction::Operation;

std::vector<double> weights_of(const codec::FieldDefinition& field) {
  std::vector<double> weights;
  if (!field.values) return weights;
  const Bytes size = size_of(field.type);
  ByteVector values = *field.values;
  copy_ordered(values.data(), field.values->data(), std::ssize(values), size, std::endian::big);
  weights.reserve(values.size() / static_cast<std::size_t>(size));
  with_type(field.type, [&](auto zero) {
    const double missing = field.missing ? codec::missing_in(field.type, *field.missing) : 0;
    for (Bytes at = 0; at < std::ssize(values); at += size) {
      const auto value = static_cast<double>(load<decltype(zero)>(values.data() + at));
      const bool is_missing = field.missing && (value == missing || (value != value && missing != missing));
      weights.push_back(is_missing ? 0 : value);
    }
  });
  return weights;
}

void Reducer::State::add(double term) {
  const double after = sum + term;
  error += std::abs(sum) >= std::abs(term) ? (sum - after) + term : (term - after) + sum;
  sum = after;
  ++count;
}

/// Infinite values make the error NaN.
double Reducer::State::total() const { return std::isfinite(sum) ? sum + error : sum; }

Bytes Reducer::bytes_of(const codec::FieldDefinition& field) {
  if (!field.reduction.is_within_level()) return 0;
  const Bytes states = field.reduction.is_weighted() ? 2 : 1;
  return field.elements() * states * static_cast<Bytes>(sizeof(State)) +
         field.elements_put() * size_of(field.type);
}

/// One pass over the elements of a level.
template <typename T>
struct Reducer::Walk {
  const codec::FieldDefinition& field;
  const std::byte* at;
  std::byte* record;
  std::vector<State>& states;
  std::vector<State>& totals;  // of weights
  const double* weights = nullptr;
  bool has_missing = field.missing.has_value();
  bool missing_is_nan = has_missing && std::isnan(*field.missing);
  T missing =
      has_missing && !missing_is_nan ? static_cast<T>(codec::missing_in(field.type, *field.missing)) : T{};

  void take_sum(Index to, T value) { states[static_cast<std::size_t>(to)].add(static_cast<double>(value)); }

  void take_weighted(Index to, T value, double weight) {
    if (weight == 0) return;
    states[static_cast<std::size_t>(to)].add(weight * static_cast<double>(value));
    totals[static_cast<std::size_t>(to)].add(weight);
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
  /// and `step` how many elements of the record one index of `d` makes, if the record has `d`. `weight` is
  /// the number of the first one's weight.
  template <typename Take>
  void take_from(std::size_t d, Index to, Index step, Index weight, const Take& take) {
    const codec::Reduction& reduction = field.reduction;
    const Index count = reduction.shape[d];
    const bool is_lost = reduction.is_lost[d] != 0;
    const Index stride = weights != nullptr ? reduction.weight_strides[d] : 0;
    if (!is_lost) step /= count;
    for (Index i = 0; i < count; ++i, weight += stride) {
      const Index there = is_lost ? to : to + i * step;
      if (d + 1 < reduction.shape.size()) {
        take_from(d + 1, there, step, weight, take);
        continue;
      }
      const T value = load<T>(at);
      at += sizeof(T);
      if (has_missing && (missing_is_nan ? value != value : value == missing)) continue;
      take(there, value, weight);
    }
  }

  Status finish_sums() {
    const bool divides = field.reduction.operation == Over::mean;
    Index wrong = -1;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const State& state = states[i];
      double value = state.total();
      // Without missing= the mean of elements that all have the weight 0 is NaN.
      if (divides && weights != nullptr && (!has_missing || state.count > 0)) value /= totals[i].total();
      if (divides && weights == nullptr) value /= static_cast<double>(std::max<std::int64_t>(state.count, 1));
      if constexpr (!std::is_floating_point_v<T>) value = std::nearbyint(value);
      const bool fits = holds<T>(value);
      if (!fits && wrong < 0) wrong = static_cast<Index>(i);
      put(i, fits ? static_cast<T>(value) : T{});
    }
    fill_missing();
    if (wrong < 0) return {};
    return {Code::data,
            cat("the ", name_of(field.reduction.operation), " over ", lost(), " is no ", name_of(field.type),
                " at element ", wrong, " of the record: define the field with a type that holds it",
                weights != nullptr ? ", or with missing= if all weights are 0" : "")};
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
    if (weights != nullptr) {
      take_from(0, 0, all, 0,
                [this](Index to, T value, Index weight) { take_weighted(to, value, weights[weight]); });
      return finish_sums();
    }
    if (operation == Over::mean || operation == Over::sum) {
      take_from(0, 0, all, 0, [this](Index to, T value, Index) { take_sum(to, value); });
      return finish_sums();
    }
    take_from(0, 0, all, 0, [this](Index to, T value, Index) { take_extreme(to, value); });
    fill_missing();
    return {};
  }
};

Status Reducer::reduce(const codec::FieldDefinition& field, const std::byte* level, std::byte* record,
                       std::span<const double> weights) {
  const codec::Reduction& reduction = field.reduction;
  Index last = 0;  // number of the last weight
  for (std::size_t d = 0; reduction.is_weighted() && d < reduction.shape.size(); ++d)
    last += (reduction.shape[d] - 1) * reduction.weight_strides[d];
  if (reduction.is_weighted() && (last < 0 || last >= std::ssize(weights)))
    return {Code::state, cat("field '", reduction.weights, "' has no values, and they are its weights")};
  const DefaultArithmetic arithmetic;  // with 0 servers a thread of the program comes here
  states_.assign(static_cast<std::size_t>(field.elements()), State{});
  weights_.assign(reduction.is_weighted() ? states_.size() : 0, State{});
  Status status;
  with_type(field.type, [&](auto zero) {
    const double* const used = reduction.is_weighted() ? weights.data() : nullptr;
    status = Walk<decltype(zero)>{field, level, record, states_, weights_, used}.run();
  });
  return status;
}

}  // namespace tailrace::operations
