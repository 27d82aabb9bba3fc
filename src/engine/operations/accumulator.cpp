// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/accumulator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "engine/operations/elements.hpp"
#include "formats/codec/missing.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"

namespace tailrace::operations {

namespace {

constexpr bool is_sum(Operation operation) {
  return operation == Operation::mean || operation == Operation::accum;
}

ElementType type_of_state(const Accumulated& what) {
  return is_sum(what.operation) ? ElementType::f64 : what.type;
}

/// Elements of the caller's array at equal distances.
struct Run {
  const std::byte* from = nullptr;
  Bytes stride = 0;
  Index count = 0;
};

/// Calls body(Run) for each turn of the outer loops, in packed order.
template <typename Body>
void for_each_run(std::span<const layout::Loop> loops, const std::byte* at, const Body& body) {
  if (loops.size() == 1) return body(Run{at, loops.front().stride, loops.front().count});
  for (Index i = 0; i < loops.front().count; ++i)
    for_each_run(loops.subspan(1), at + i * loops.front().stride, body);
}

/// How a value is joined with the values before it. A minimum or maximum is NaN once a value is NaN. There
/// are no branches, so that the compiler makes vectors of the loops.
struct Sum {
  static constexpr bool adds = true;
  template <typename T>
  static double join(double before, T value) {
    return before + static_cast<double>(value);
  }
};
struct Minimum {
  static constexpr bool adds = false;
  template <typename T>
  static T join(T before, T value) {
    return (static_cast<int>(value < before) | static_cast<int>(value != value)) != 0 ? value : before;
  }
};
struct Maximum {
  static constexpr bool adds = false;
  template <typename T>
  static T join(T before, T value) {
    return (static_cast<int>(value > before) | static_cast<int>(value != value)) != 0 ? value : before;
  }
};

template <typename How, bool first, typename T, typename State>
void add_run(const Run& run, State* __restrict state) {
  const auto each = [&](auto stride) {
    for (Index i = 0; i < run.count; ++i) {
      const T value = load<T>(run.from + i * stride);
      if constexpr (first)
        state[i] = static_cast<State>(value);
      else
        state[i] = How::join(state[i], value);
    }
  };
  // Most arrays are contiguous. A constant stride lets the compiler make vectors of the loop.
  if (run.stride == Bytes{sizeof(T)}) return each(std::integral_constant<Bytes, sizeof(T)>{});
  each(run.stride);
}

template <typename How, bool first, bool missing_is_nan, typename T, typename State>
void add_run_but_missing(const Run& run, T missing, State* __restrict state,
                         std::int32_t* __restrict counts) {
  const auto each = [&](auto stride) {
    for (Index i = 0; i < run.count; ++i) {
      const T value = load<T>(run.from + i * stride);
      const bool there = missing_is_nan ? value == value : value != missing;
      const std::int32_t before = first ? 0 : counts[i];
      if constexpr (How::adds) {
        state[i] = (first ? State{} : state[i]) + (there ? static_cast<State>(value) : State{});
      } else {
        const State joined = before == 0 ? value : How::join(state[i], value);
        state[i] = there ? joined : first ? value : state[i];
      }
      counts[i] = before + static_cast<std::int32_t>(there);
    }
  };
  if (run.stride == Bytes{sizeof(T)}) return each(std::integral_constant<Bytes, sizeof(T)>{});
  each(run.stride);
}

/// The caller's array, and the memory into which it is accumulated.
struct Task {
  const layout::MemoryMap& map;
  const std::byte* base;
  const Accumulated& what;
  Accumulator::Memory& memory;
  bool first;
};

template <typename Body>
void for_each_run_of(const Task& task, const Body& body) {
  Index at = 0;
  for (Index level = 0; level < task.what.levels; ++level) {
    for (const layout::Nest& nest : task.map.nests) {
      const std::byte* const from = task.base + level * task.map.level_stride + nest.offset;
      for_each_run(nest.loops, from, [&](const Run& run) {
        body(run, at);
        at += run.count;
      });
    }
  }
}

template <typename How, typename T>
void add_all(const Task& task) {
  using State = std::conditional_t<How::adds, double, T>;
  auto* const state = reinterpret_cast<State*>(task.memory.values.data());
  if (!task.what.missing) {
    if (task.first)
      return for_each_run_of(task, [&](const Run& run, Index at) { add_run<How, true, T>(run, state + at); });
    return for_each_run_of(task, [&](const Run& run, Index at) { add_run<How, false, T>(run, state + at); });
  }
  std::int32_t* const counts = task.memory.counts.data();
  const bool is_nan = std::isnan(*task.what.missing);
  const T missing = is_nan ? T{} : static_cast<T>(codec::missing_in(task.what.type, *task.what.missing));
  const auto add = [&](auto first, auto nan) {
    for_each_run_of(task, [&](const Run& run, Index at) {
      add_run_but_missing<How, first(), nan()>(run, missing, state + at, counts + at);
    });
  };
  const auto add_at = [&](auto first) {
    if (is_nan) return add(first, std::true_type{});
    add(first, std::false_type{});
  };
  if (task.first) return add_at(std::true_type{});
  add_at(std::false_type{});
}

/// Returns true if an element of the type can be equal to the number, once it is rounded to a shorter type.
template <typename T>
bool is_value_of(double number) {
  if constexpr (std::is_floating_point_v<T>)
    return !std::isfinite(number) || std::abs(number) <= static_cast<double>(std::numeric_limits<T>::max());
  else
    return holds<T>(number) && std::trunc(number) == number;
}

constexpr std::size_t portion = 512;  // elements that are converted at once

/// Turns sums into values of type T in their place. A value never takes more room than its sum: values
/// overwrite no sums of later portions. Returns the first element that the type cannot hold, or -1.
template <typename T>
Index turn_sums(const Accumulated& what, std::int64_t puts, Accumulator::Memory& memory) {
  const bool divides = what.operation == Operation::mean;
  const auto missing = static_cast<T>(codec::missing_in(what.type, what.missing.value_or(0)));
  Index wrong = -1;
  std::array<double, portion> sums;
  std::array<T, portion> values;
  const std::size_t all = static_cast<std::size_t>(what.levels * what.count);
  for (std::size_t at = 0; at < all; at += portion) {
    const std::size_t size = std::min(portion, all - at);
    std::memcpy(sums.data(), memory.values.data() + at * sizeof(double), size * sizeof(double));
    if (divides && !what.missing) {
      const auto by = static_cast<double>(puts);
      for (std::size_t i = 0; i < size; ++i) sums[i] /= by;
    } else if (divides) {
      for (std::size_t i = 0; i < size; ++i)
        sums[i] /= static_cast<double>(std::max(memory.counts[at + i], 1));
    }
    for (std::size_t i = 0; i < size; ++i) {
      const double value = std::is_floating_point_v<T> ? sums[i] : std::nearbyint(sums[i]);
      const bool fits = holds<T>(value);
      values[i] = fits ? static_cast<T>(value) : T{};
      if (!fits && wrong < 0) wrong = static_cast<Index>(at + i);
    }
    if (what.missing) {
      for (std::size_t i = 0; i < size; ++i) values[i] = memory.counts[at + i] == 0 ? missing : values[i];
    }
    std::memcpy(memory.values.data() + at * sizeof(T), values.data(), size * sizeof(T));
  }
  return wrong;
}

template <typename How>
void add_as(const Task& task) {
  with_type(task.what.type, [&](auto zero) { add_all<How, decltype(zero)>(task); });
}

}  // namespace

Status check_operation(Operation operation, ElementType type, std::optional<double> missing) {
  if (operation == Operation::instant) return {};
  if (!is_complex(type)) {
    bool is_held = true;
    if (missing) with_type(type, [&](auto zero) { is_held = is_value_of<decltype(zero)>(*missing); });
    if (is_held) return {};
    return {Code::settings,
            cat("missing=", *missing, " is no ", name_of(type), ": give a value that an element can have")};
  }
  return {Code::settings,
          cat("operation=", name_of(operation), " needs integers or real numbers, and the elements are ",
              name_of(type), "; operation=instant takes them")};
}

Bytes Accumulator::bytes_of(const Accumulated& what) {
  const Bytes counts = what.missing && what.operation != Operation::instant ? sizeof(std::int32_t) : 0;
  return what.levels * what.count * (size_of(type_of_state(what)) + counts);
}

Accumulator::Accumulator(const Accumulated& what) : what_(what), memory_(std::make_shared<Memory>()) {
  const auto elements = static_cast<std::size_t>(what.levels * what.count);
  memory_->values.resize(elements * static_cast<std::size_t>(size_of(state_type())));
  if (what.operation == Operation::instant) what_.missing.reset();  // a missing value may be the last value
  if (what_.missing) memory_->counts.resize(elements);
  layout::MemoryMap map{size_of(what.type), what.count * size_of(what.type), {}};
  if (what.count > 0) map.nests.push_back({0, {{what.count, map.element}}});
  map_ = std::make_shared<const layout::MemoryMap>(std::move(map));
}

ElementType Accumulator::state_type() const { return type_of_state(what_); }

void Accumulator::add(const layout::MemoryMap& map, const std::byte* base) {
  const bool first = puts_++ == 0;
  if (what_.count == 0) return;
  if (what_.operation == Operation::instant) {
    std::byte* to = memory_->values.data();
    for (Index level = 0; level < what_.levels; ++level, to += what_.count * map.element)
      layout::pack(map, base, level, to);
    return;
  }
  // The program's traps and flush-to-zero must not change the bytes.
  const DefaultArithmetic arithmetic;
  const Task task{map, base, what_, *memory_, first};
  if (what_.operation == Operation::minimum) return add_as<Minimum>(task);
  if (what_.operation == Operation::maximum) return add_as<Maximum>(task);
  add_as<Sum>(task);
}

Status Accumulator::finish() {
  offending_ = -1;
  if (what_.count == 0) return {};
  const DefaultArithmetic arithmetic;
  if (is_sum(what_.operation)) {
    with_type(what_.type, [&](auto zero) { offending_ = turn_sums<decltype(zero)>(what_, puts_, *memory_); });
  }
  if (offending_ < 0) return {};
  return {Code::data, cat("the ", name_of(what_.operation), " of ", counted(puts_, "put"), " is no ",
                          name_of(what_.type), ": define the field with a type that holds it")};
}

}  // namespace tailrace::operations
