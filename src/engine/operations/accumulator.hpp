// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/layout/memory.hpp"

namespace tailrace::operations {

/// How the values of a field in the steps of an interval become one value in the file. Checkpoints hold the
/// numbers of the enum: append only.
enum class Operation : std::int32_t { instant = 0, mean = 1, accum = 2, minimum = 3, maximum = 4 };
constexpr std::array<std::string_view, 5> operation_names{"instant", "mean", "accum", "minimum", "maximum"};
constexpr std::string_view name_of(Operation operation) {
  return operation_names[static_cast<std::size_t>(operation)];
}

/// One rank's elements of one field, and their operation.
struct Accumulated {
  Operation operation = Operation::instant;
  ElementType type = ElementType::f32;
  std::optional<double> missing;
  Index levels = 1;
  Index count = 0;  // of one level
};

/// Returns Code::settings if the operation has no meaning for elements of the type, or if no element of the
/// type can be equal to the missing value.
Status check_operation(Operation operation, ElementType type, std::optional<double> missing);

/// Accumulates the values of one field on one rank, element by element. Sums are of float64 and grow in the
/// order of the puts; minima, maxima and last values have the field's type. Elements lie in packed order,
/// level after level. All functions are local.
class Accumulator {
 public:
  /// The memory of an accumulator. A save of a checkpoint shares it until the save has ended.
  struct Memory {
    ByteVector values;
    std::vector<std::int32_t> counts;   // by element, how many values were not missing; fields with missing=
    std::shared_ptr<const void> drawn;  // the draw on the budget for these bytes
  };

  /// Returns the bytes that the constructor takes.
  static Bytes bytes_of(const Accumulated& what);
  /// May throw std::bad_alloc.
  explicit Accumulator(const Accumulated& what);

  /// Begins an interval: forgets all values.
  void begin() { puts_ = 0; }
  /// Takes all levels of the field from the array at `base`, which lies in memory as `map` says.
  void add(const layout::MemoryMap& map, const std::byte* base);
  /// Returns how often add() was called in the interval.
  [[nodiscard]] std::int64_t puts() const { return puts_; }
  /// Ends the interval. From now on until begin(), values() has elements of the field's type. Returns
  /// Code::data, without the name of the field, if the type cannot hold a value. offending() then returns the
  /// number of the first such element.
  Status finish();
  [[nodiscard]] Index offending() const { return offending_; }
  [[nodiscard]] const Accumulated& what() const { return what_; }

  // The state within an interval, for checkpoints.
  [[nodiscard]] ElementType state_type() const;
  [[nodiscard]] const std::shared_ptr<Memory>& memory() const { return memory_; }
  /// Says that memory() holds the state after `puts` puts.
  void restore(std::int64_t puts) { puts_ = puts; }

  [[nodiscard]] const std::byte* values() const { return memory_->values.data(); }
  /// Returns the map of values() after finish().
  [[nodiscard]] const std::shared_ptr<const layout::MemoryMap>& map() const { return map_; }

 private:
  Accumulated what_;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<const layout::MemoryMap> map_;
  std::int64_t puts_ = 0;
  Index offending_ = -1;
};

}  // namespace tailrace::operations
