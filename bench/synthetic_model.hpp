// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// A value like those of weather: waves over the domain and some noise, about 15 bits of it in use.
float weather_like(std::int64_t field, std::int64_t level, std::int64_t y, std::int64_t x);

/// All records of a step of one field, one vector for each level.
std::vector<std::vector<double>> weather_records(std::int64_t levels, std::int64_t rows,
                                                 std::int64_t columns);

/// One rank's part of a model without physics: float32 arrays (level, y, x) with a halo, of realistic shape,
/// and a stencil that moves through all of them. It exchanges no halos: only its use of memory and time
/// matters.
class SyntheticModel {
 public:
  struct Shape {
    std::int64_t fields = 1;
    std::int64_t levels = 1;
    std::int64_t lower_y = 0;  // the owned box, in global indices
    std::int64_t upper_y = 0;
    std::int64_t lower_x = 0;
    std::int64_t upper_x = 0;
    std::int64_t halo = 2;
  };
  explicit SyntheticModel(const Shape& shape);

  /// Makes one pass of the stencil over every field: each point becomes a mean of its neighbours and of a
  /// fixed pattern, so that values stay as compressible as they were.
  void sweep();
  [[nodiscard]] const float* field(std::int64_t number) const {
    return arrays_[static_cast<std::size_t>(number)].data();
  }
  /// Returns the bytes of one output of all fields.
  [[nodiscard]] std::size_t owned_bytes() const;
  /// The peer of a capture: copies the owned part of every field, row by row with memcpy, into memory that
  /// was touched before.
  void copy_owned();
  /// Keeps the compiler from dropping a copy that nobody reads.
  [[nodiscard]] float checksum() const;

 private:
  void sweep_level(float* now, const float* pattern) const;

  Shape shape_;
  std::int64_t rows_ = 0;  // allocated, halo included
  std::int64_t columns_ = 0;
  std::vector<std::vector<float>> arrays_;
  std::vector<float> pattern_;  // one level, shared by all
  std::vector<float> copy_;
};

}  // namespace bench
