// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "checkpoint/checkpoint.hpp"
#include "files/closed_files.hpp"
#include "files/file.hpp"

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

  /// The program has closed this file, or is about to. It is durable once the next save is committed.
  void note_closed(const std::string& path);
  /// The program has renamed a file.
  void note_renamed(const std::string& from, const std::string& to);

 private:
  files::ClosedFiles closed_;
};

/// Local. The program is about to close the file, of which this rank may have written some.
void note_closing(const files::File& file);
/// Local. A formatted file of the first rank.
void note_closing_text(const std::string& path);
/// Local. A file has another name now.
void note_renamed(const std::string& from, const std::string& to);

}  // namespace tailrace::capi
