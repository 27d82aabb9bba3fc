// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/codec/codec.hpp"

// HDF5 files of any writer, with the dimensions of NetCDF-4. The HDF5 library reads the metadata, through a
// driver of ours; elements are read without it.
namespace tailrace::netcdf4 {

/// One change that a writer has made to each chunk; the first one comes first.
struct Filter {
  int id = 0;  // as registered with The HDF Group
  std::string name;
  std::vector<unsigned> values;  // its parameters, at most `most_values`

  static constexpr std::size_t most_values = 20;  // as many as scaleoffset has
  /// The most bytes by which a filter makes a chunk of any content larger: the head of scaleoffset has 21.
  static constexpr Bytes most_added = 32;
};

/// The storage of a variable's elements in the file.
struct Dataset {
  enum class Kind { whole /* one element after the other */, chunked, held /* in the metadata */, unwritten };
  Kind kind = Kind::unwritten;
  std::vector<Index> shape;  // what the file has; elements beyond are fill values
  std::vector<Index> chunk;
  std::vector<Filter> filters;
  Bytes offset = 0;  // whole
  std::endian order = std::endian::little;
  ByteVector fill;    // one element of the host's byte order
  ByteVector values;  // held, of the host's byte order
  Status refused;     // why its elements are not read

  /// Returns the bytes of a chunk before the filters.
  [[nodiscard]] Bytes chunk_bytes() const;
};

/// A chunk as it lies in the file.
struct StoredChunk {
  Bytes offset = 0;
  Bytes size = 0;
  unsigned left_out = 0;  // a bit for each filter that was not applied
};

/// An open file. Thread-safe. Calls of the HDF5 library hold a mutex of ours, because the library has one
/// lock at best: a program that calls it from other threads at the same time needs a build of it with that
/// lock.
class Reader {
 public:
  /// Local. Blocks until storage has given the metadata of a file of `size` bytes. Code::corrupt with the
  /// library's words if it contradicts itself, an error of `read` as it is.
  static Result<std::shared_ptr<Reader>> open(codec::ReadBytes read, Bytes size);
  virtual ~Reader() = default;

  [[nodiscard]] const cf::FoundContents& contents() const { return contents_; }
  [[nodiscard]] const std::vector<Dataset>& datasets() const { return datasets_; }
  /// Local. Finds the chunk with this first element, and blocks until storage has given the pages of the
  /// chunks' index. Nothing if it was never written.
  virtual Result<std::optional<StoredChunk>> chunk_at(std::size_t variable,
                                                      std::span<const Index> begin) const = 0;
  /// Local. Returns how many bytes of a variable's elements the file holds, and blocks as chunk_at().
  [[nodiscard]] virtual Bytes stored_bytes(std::size_t variable) const = 0;

 protected:
  cf::FoundContents contents_;
  std::vector<Dataset> datasets_;  // of the variables
};

/// The most bytes of a chunk that is read.
inline constexpr Bytes most_chunk_bytes = Bytes{1} << 30;

/// Returns an error that names the first filter that is not read.
Status check_filters(const Dataset& dataset);
/// Undoes the filters of a chunk. `bytes` is what the file has and may be overwritten; `chunk` gets the
/// elements, of the file's byte order. Code::corrupt if the bytes are no such chunk.
Status undo_filters(const Dataset& dataset, unsigned left_out, ByteVector& bytes, ByteVector& chunk);

}  // namespace tailrace::netcdf4
