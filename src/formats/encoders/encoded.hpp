// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ground/base/status.hpp"
#include "tailrace/encoders.h"

/// The output of one call of a program's own encoder. The bytes go behind those that `out` already holds.
struct tr_encoded {
  /// The request to the encoder. The error names it if the encoder appends more than the limit.
  enum class What { record, head, bound };
  /// The encoder may append at most `limit` bytes to `out`.
  tr_encoded(tailrace::ByteVector& out, tailrace::Bytes limit, What what = What::record);
  tr_encoded(const tr_encoded&) = delete;
  tr_encoded& operator=(const tr_encoded&) = delete;

  /// Appends `count` bytes for the encoder to fill, and returns them. If they go beyond the limit, records a
  /// failure. Returns nothing after a failure.
  std::span<std::byte> grow(std::int64_t count);
  /// Keeps only the first `count` bytes of the last growth. Returns false, and records a failure, if it had
  /// fewer.
  bool keep_of_last(std::int64_t count);
  /// Records a failure, unless there is one already.
  void fail(tailrace::Code code, std::string_view text, tailrace::Index index = -1);
  /// Ends the call. `code` is the value that the encoder returned. Returns the failure, if any, and sets
  /// `out` back to what it held before. If `out` was empty before, it has little unused room afterwards.
  tailrace::Status finish(int code);

  [[nodiscard]] tailrace::Index offending() const { return offending_; }

 private:
  [[nodiscard]] std::string too_much() const;
  tailrace::ByteVector& out_;
  const std::size_t before_;
  const tailrace::Bytes limit_;
  const What what_;
  std::size_t last_ = 0;  // offset of the last growth
  tailrace::Status failure_;
  tailrace::Index offending_ = -1;
};
