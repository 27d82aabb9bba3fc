// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/cf/conventions.hpp"
#include "formats/codec/codec.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::references {

/// Returns success if this build can write reference files. They need JSON.
Status available();

/// Knows what the files of a stream hold for readers of Zarr: one array for each field, with the metadata of
/// the CF conventions, whose chunks are the stream's records (docs/formats/references.md).
class References {
 public:
  /// `fields` have the keys of their grids. Returns Code::argument if an array cannot hold one of the fields.
  static Result<std::unique_ptr<References>> make(const codec::StreamDefinition& stream,
                                                  const std::vector<codec::FieldDefinition>& fields,
                                                  codec::Decoding decoding);
  /// Adds one more field, likewise. After an error the object is of no use any more.
  Status add(const codec::FieldDefinition& field);
  References(const References&) = delete;
  References& operator=(const References&) = delete;

  /// Returns the text of the reference file for these steps of a data file.
  [[nodiscard]] std::string text(const std::string& data_path,
                                 const std::vector<codec::FinishedStep>& steps) const;
  /// Local; the caller holds the lock of the data file. Writes the reference file `path` anew, for these
  /// steps of the data file. It replaces the one before in one rename, and is durable on return.
  Status write(storage::Target& target, const std::string& path, const std::string& data_path,
               const std::vector<codec::FinishedStep>& steps) const;

 private:
  References(const codec::StreamDefinition& stream, codec::Decoding decoding);
  struct Line;
  [[nodiscard]] std::vector<Line> arrays(const std::vector<codec::FinishedStep>& steps) const;
  [[nodiscard]] ByteVector times_of(std::size_t variable,
                                    const std::vector<codec::FinishedStep>& steps) const;
  [[nodiscard]] const cf::Conventions::Field* field_of(std::size_t variable) const;
  /// Returns the interval that has its bounds in a variable, or null.
  [[nodiscard]] const cf::Conventions::Interval* bounds_in(std::size_t variable) const;
  [[nodiscard]] bool is_told(const cf::Conventions::Interval& interval) const;

  codec::Decoding decoding_;
  cf::Conventions conventions_;
};

}  // namespace tailrace::references
