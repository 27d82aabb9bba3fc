// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ground/base/status.hpp"
#include "tailrace/encoders.h"

/// The bytes that an encoder of the program's own appends, behind what `out` held before.
struct tr_encoded {
  /// The encoder was asked for this. The error names it if the encoder gives more than the limit.
  enum class What { record, head, bound };
  /// `out` gets at most `limit` bytes more.
  tr_encoded(tailrace::ByteVector& out, tailrace::Bytes limit, What what = What::record);
  tr_encoded(const tr_encoded&) = delete;
  tr_encoded& operator=(const tr_encoded&) = delete;

  /// Returns the new bytes, or nothing once the encoder has failed or does not keep to its limit.
  std::span<std::byte> grow(std::int64_t count);
  /// Drops the end of the last growth. Returns false if there was less.
  bool keep_of_last(std::int64_t count);
  /// Keeps the first failure.
  void fail(tailrace::Code code, std::string_view text, tailrace::Index index = -1);
  /// Ends the record. Returns the encoder's failure; `out` is then as it was before. An `out` that came empty
  /// leaves with little unused room. `code` is what the encoder returned.
  tailrace::Status finish(int code);

  [[nodiscard]] tailrace::Index offending() const { return offending_; }

 private:
  [[nodiscard]] std::string too_much() const;
  tailrace::ByteVector& out_;
  const std::size_t before_;
  const tailrace::Bytes limit_;
  const What what_;
  std::size_t last_ = 0;  // where the last growth begins
  tailrace::Status failure_;
  tailrace::Index offending_ = -1;
};
