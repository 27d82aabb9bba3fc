// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "checkpoint/checkpoint.hpp"

namespace tailrace::capi {

/// The session's streams and files, as a checkpoint sees them: those that are open, and those that a
/// checkpoint has told of and that the program has not opened yet.
class SessionOutputs final : public checkpoint::Outputs {
 public:
  Result<Standing> stand(files::Overwritten overwritten) override;
  [[nodiscard]] Status check(const std::vector<ByteVector>& told,
                             files::Overwritten overwritten) const override;
  ByteVector positions(const std::vector<ByteVector>& told) override;
  [[nodiscard]] bool are_settled(const ByteVector& positions) const override;
  [[nodiscard]] ByteVector with_failures(const ByteVector& positions) const override;
  void keep_since(const std::string& checkpoint, std::int64_t generation,
                  const ByteVector& positions) override;
  [[nodiscard]] std::int64_t oldest_undo(const ByteVector& positions, std::int64_t generation) const override;
  Status resume(const checkpoint::Copy& copy) override;
};

}  // namespace tailrace::capi
