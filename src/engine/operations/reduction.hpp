// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/codec/definition.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

namespace tailrace::operations {

/// Returns the values of a field without time as weights of others: its missing elements have the weight 0.
/// Empty if the field was not put.
std::vector<double> weights_of(const codec::FieldDefinition& field);

/// Makes records of levels as they are put: along the dimensions that the field has lost, all elements become
/// one. Elements count in C order, whoever owns them, so that the result depends on the values alone. Sums
/// are of float64, with the rounding errors added up beside them (Neumaier). Each thread has a reducer of its
/// own.
class Reducer {
 public:
  /// Returns the bytes beside input and output that reduce() takes for a record of the field.
  static Bytes bytes_of(const codec::FieldDefinition& field);
  /// Turns one level as it is put into a record, both of the field's type. Elements that are missing do not
  /// count; where all are, the record's is missing. Returns Code::data, without the field's name, if the type
  /// cannot hold a result. `weights` are those of the level, as the reduction's strides tell, or none if it
  /// has no weights. Elements whose weight is 0 do not count.
  Status reduce(const codec::FieldDefinition& field, const std::byte* level, std::byte* record,
                std::span<const double> weights = {});

 private:
  struct State {
    double sum = 0;
    double error = 0;  // what rounding has taken from the sum
    std::int64_t count = 0;

    void add(double term);
    [[nodiscard]] double total() const;
  };
  template <typename T>
  struct Walk;
  std::vector<State> states_, weights_;  // by element of the record: of its values, and of their weights
};

}  // namespace tailrace::operations
