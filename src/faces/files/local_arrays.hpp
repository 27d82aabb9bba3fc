// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "faces/files/array_calls.hpp"
#include "faces/files/sidecar.hpp"

namespace tailrace::files {

/// The arrays of a file of the local mode, with the sidecar that tells of them. All functions are local.
class LocalArrays {
 public:
  /// Both arguments must outlive the object.
  LocalArrays(const Opened& file, FileStream& stream)
      : file_(file), stream_(stream), drawn_(file.owner.service->budget(), node::Use::stripes) {}

  /// Reads the sidecar. With `from` the sidecar is first brought back to what a checkpoint has recorded.
  Status open(const std::optional<journal::Position>& from);
  /// Does the work of File::move_arrays(): every array goes to, or comes from, the stream of this rank alone.
  ArrayOutcome move(const std::string& name, std::span<const Array> arrays, Direction direction,
                    const Status& mine, const std::shared_ptr<const Framing>& framing);
  /// Writes the sidecar of a local file that is written, or removes it if there are no arrays.
  Status store_sidecar();

 private:
  [[nodiscard]] std::optional<Bytes> end_where_it_stands();
  Result<Bytes> check(const Array& array, Direction direction, Bytes bytes, const Framing* framing);
  Bytes move_one(const Array& array, const std::shared_ptr<const ArrayPlan>& plan, Direction direction,
                 const std::shared_ptr<const Framing>& framing, Status& status);
  Bytes write(const std::byte* base, const ArrayPlan& plan, const exchange::WriteBytes& writer,
              Status& status);
  Bytes read(std::byte* base, const ArrayPlan& plan, const exchange::ReadBytes& reader, Status& status);
  void write_later(const std::byte* base, const ArrayPlan& plan, const exchange::WriteBytes& writer);

  const Opened& file_;
  FileStream& stream_;
  Sidecar sidecar_;
  std::atomic<Bytes> captured_bytes_{0};  // not written yet
  node::Draw drawn_;                      // captured_bytes_, except those that did not fit the budget
};

}  // namespace tailrace::files
