// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/codec/codec.hpp"

// Reads HDF5 files of any writer, with the dimensions of NetCDF-4. The HDF5 library reads only the metadata,
// through the driver ReadFile. Elements are read without the library.
namespace tailrace::netcdf4 {

/// A filter through which the writer has put each chunk.
struct Filter {
  int id = 0;  // as registered with The HDF Group
  std::string name;
  std::vector<unsigned> values;  // its parameters, at most `most_values`

  static constexpr std::size_t most_values = 20;  // as many as scaleoffset has
  /// The most bytes that a filter adds to a chunk whatever its content is: the head of scaleoffset has 21.
  static constexpr Bytes most_added = 32;
};

/// The storage of a variable's elements in the file.
struct Dataset {
  enum class Kind { whole /* one element after the other */, chunked, held /* in the metadata */, unwritten };
  Kind kind = Kind::unwritten;
  std::vector<Index> shape;     // as the file has it; elements beyond are fill values
  std::vector<Index> chunk;     // the shape of a chunk
  std::vector<Filter> filters;  // in the order in which the writer applied them
  Bytes offset = 0;             // in the file, if `kind` is whole
  std::endian order = std::endian::little;
  ByteVector fill;       // one element in the host's byte order
  ByteVector values;     // if `kind` is held: all elements, in the host's byte order
  Status refused;        // the reason why elements cannot be read; OK if they can
  Index along_text = 0;  // > 0: the file has a last dimension of this length, along which a text lies

  /// Returns the bytes of a chunk before the filters.
  [[nodiscard]] Bytes chunk_bytes() const;
};

/// The place of a chunk in the file.
struct StoredChunk {
  Bytes offset = 0;
  Bytes size = 0;
  unsigned left_out = 0;  // bit i is set if the writer did not apply filter i
};

/// An open file. Thread-safe. Its calls of the HDF5 library hold library_mutex(), because some builds of the
/// library have no lock. A program that calls the library at the same time, from other threads, needs a build
/// with the lock.
class Reader {
 public:
  /// Local. Opens a file of `size` bytes, and blocks until storage has given its metadata. Returns
  /// Code::corrupt with the library's words if the metadata contradict themselves, Code::unsupported if they
  /// are newer than the library or the library is not the one of the build, and an error of `read` as it is.
  static Result<std::shared_ptr<Reader>> open(codec::ReadBytes read, Bytes size);
  virtual ~Reader() = default;

  [[nodiscard]] const cf::FoundContents& contents() const { return contents_; }
  [[nodiscard]] const std::vector<Dataset>& datasets() const { return datasets_; }
  /// Local. Finds the chunk whose first element has the indices `begin`. Blocks until storage has given the
  /// pages of the index of chunks. Returns nothing if the chunk was never written.
  virtual Result<std::optional<StoredChunk>> chunk_at(std::size_t variable,
                                                      std::span<const Index> begin) const = 0;
  /// Local. Returns how many bytes of the file hold elements of a variable. Blocks as chunk_at() does.
  [[nodiscard]] virtual Bytes stored_bytes(std::size_t variable) const = 0;

 protected:
  cf::FoundContents contents_;
  std::vector<Dataset> datasets_;  // of the variables
};

/// Larger chunks are not read.
inline constexpr Bytes most_chunk_bytes = Bytes{1} << 30;

/// Returns Code::unsupported if the dataset has a filter that is not read. The error names the first such
/// filter.
Status check_filters(const Dataset& dataset);
/// Undoes the filters of a chunk. `bytes` are those of the file, and are overwritten. `chunk` gets the
/// elements, in the file's byte order. Code::corrupt if the bytes are no chunk of this dataset.
Status undo_filters(const Dataset& dataset, unsigned left_out, ByteVector& bytes, ByteVector& chunk);

}  // namespace tailrace::netcdf4
