// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>

#include "exchange/transfer.hpp"
#include "files/file_stream.hpp"

namespace tailrace::files {

/// The way of arrays from a parallel file straight into the memory of their ranks: each rank reads its own
/// rows, and the bytes are copied once. All ranks of a call go this way, or none; they all are on one node,
/// where a rank sees what another one has written.
class OwnReads {
 public:
  /// Both arguments must outlive the object.
  OwnReads(const Opened& file, const FileStream& stream);

  /// Local. Returns the number of the file if this rank can read its rows itself, and they are so long that
  /// this is faster. The first such call opens the file where this rank has not. Zeros: it cannot or should
  /// not.
  storage::FileNumber offer(std::span<const std::shared_ptr<const ArrayPlan>> plans);
  /// Local. Tells what the I/O rank has offered. A rank whose file is another one, since it has another
  /// working directory or the name was given away meanwhile, offers nothing any more.
  void compare(const storage::FileNumber& wanted);

  /// Local. Reads this rank's rows of an array that begins at `position` of the file into the memory at
  /// `base`. Blocks until they are there, and moves everything else on meanwhile.
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
