// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>

#include "engine/exchange/transfer.hpp"
#include "faces/files/file_stream.hpp"

namespace tailrace::files {

/// Reads arrays of a parallel file straight into the memory of their ranks: each rank reads its own rows, and
/// the bytes are copied only once. In a call, all ranks read this way or none does. All of them are on one
/// node, where each rank sees what the others have written.
class OwnReads {
 public:
  /// Both arguments must outlive the object.
  OwnReads(const Opened& file, const FileStream& stream);

  /// Local. Returns the number of the file if this rank can read its rows itself and they are so long that
  /// this is faster, and zeros otherwise. The first call with such rows opens the file, if this rank has not
  /// opened it yet.
  storage::FileNumber offer(std::span<const std::shared_ptr<const ArrayPlan>> plans);
  /// Local. `wanted` is what the I/O rank has offered. If this rank has opened another file, it offers
  /// nothing from now on: the rank may have another working directory, or the name may have been given to
  /// another file meanwhile.
  void compare(const storage::FileNumber& wanted);

  /// Local. Reads this rank's rows of an array that begins at `position` of the file into the memory at
  /// `base`. Blocks until they are there; meanwhile, all other work of the library on this rank goes on.
  void read(std::byte* base, const ArrayPlan& plan, Bytes position, exchange::Tally& tally);

 private:
  void open();

  const Opened& opened_;
  const FileStream& stream_;
  const executor::Key key_;
  bool has_tried_ = false;
  std::shared_ptr<storage::File> file_;
  storage::FileNumber number_;
};

}  // namespace tailrace::files
