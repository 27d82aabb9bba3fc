// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "synthetic_model.hpp"

#include <cmath>
#include <cstring>

namespace bench {

float weather_like(std::int64_t field, std::int64_t level, std::int64_t y, std::int64_t x) {
  const double u = 0.021 * static_cast<double>(x) + 0.3 * static_cast<double>(field);
  const double v = 0.034 * static_cast<double>(y) + 0.05 * static_cast<double>(level);
  std::uint64_t bits = static_cast<std::uint64_t>(((field * 61 + level) * 8191 + y) * 8191 + x + 1);
  bits *= 0x9e3779b97f4a7c15ull;  // Fibonacci hashing: noise that needs no state
  const double noise = static_cast<double>(bits >> 40) / static_cast<double>(1 << 24) - 0.5;
  return static_cast<float>(270 + 20 * std::sin(u) * std::cos(v) + 3 * std::sin(5 * u + 2 * v) +
                            0.05 * noise);
}

std::vector<std::vector<double>> weather_records(std::int64_t levels, std::int64_t rows,
                                                 std::int64_t columns) {
  std::vector<std::vector<double>> records;
  for (std::int64_t level = 0; level < levels; ++level) {
    std::vector<double>& values = records.emplace_back();
    values.reserve(static_cast<std::size_t>(rows * columns));
    for (std::int64_t y = 0; y < rows; ++y) {
      for (std::int64_t x = 0; x < columns; ++x) values.push_back(weather_like(0, level, y, x));
    }
  }
  return records;
}

SyntheticModel::SyntheticModel(const Shape& shape)
    : shape_(shape),
      rows_(shape.upper_y - shape.lower_y + 2 * shape.halo),
      columns_(shape.upper_x - shape.lower_x + 2 * shape.halo) {
  const auto level_size = static_cast<std::size_t>(rows_ * columns_);
  pattern_.resize(level_size);
  for (std::int64_t y = 0; y < rows_; ++y) {
    for (std::int64_t x = 0; x < columns_; ++x) {
      pattern_[static_cast<std::size_t>(y * columns_ + x)] =
          weather_like(0, 0, shape.lower_y - shape.halo + y, shape.lower_x - shape.halo + x);
    }
  }
  for (std::int64_t field = 0; field < shape.fields; ++field) {
    std::vector<float>& array = arrays_.emplace_back(level_size * static_cast<std::size_t>(shape.levels));
    for (std::size_t i = 0; i < array.size(); ++i) {
      array[i] = pattern_[i % level_size] +
                 0.1f * static_cast<float>(i / level_size + static_cast<std::size_t>(field));
    }
  }
  copy_.assign(owned_bytes() / sizeof(float), 1.0f);
}

std::size_t SyntheticModel::owned_bytes() const {
  const std::int64_t points = (shape_.upper_y - shape_.lower_y) * (shape_.upper_x - shape_.lower_x);
  return static_cast<std::size_t>(shape_.fields * shape_.levels * points) * sizeof(float);
}

void SyntheticModel::sweep_level(float* now, const float* pattern) const {
  for (std::int64_t y = 1; y < rows_ - 1; ++y) {
    float* const row = now + y * columns_;
    const float* const fixed = pattern + y * columns_;
    for (std::int64_t x = 1; x < columns_ - 1; ++x) {
      row[x] = 0.5f * fixed[x] + 0.25f * row[x] + 0.125f * (row[x + columns_] + row[x - columns_]);
    }
  }
}

void SyntheticModel::sweep() {
  for (std::vector<float>& array : arrays_) {
    for (std::int64_t level = 0; level < shape_.levels; ++level) {
      sweep_level(array.data() + level * rows_ * columns_, pattern_.data());
    }
  }
}

void SyntheticModel::copy_owned() {
  const std::int64_t height = shape_.upper_y - shape_.lower_y;
  const auto width = static_cast<std::size_t>(shape_.upper_x - shape_.lower_x);
  float* to = copy_.data();
  for (const std::vector<float>& array : arrays_) {
    for (std::int64_t level = 0; level < shape_.levels; ++level) {
      for (std::int64_t y = 0; y < height; ++y) {
        const std::int64_t row = level * rows_ + y + shape_.halo;
        std::memcpy(to, array.data() + row * columns_ + shape_.halo, width * sizeof(float));
        to += width;
      }
    }
  }
}

float SyntheticModel::checksum() const {
  float sum = 0;
  for (std::size_t i = 0; i < copy_.size(); i += 4099) sum += copy_[i];
  return sum;
}

}  // namespace bench
