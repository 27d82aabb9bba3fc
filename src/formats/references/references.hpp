// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/cf/conventions.hpp"
#include "formats/codec/codec.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::references {

/// Returns success if this build can write reference files, for which it needs JSON; otherwise
/// Code::unsupported.
Status available();

/// Makes the reference files of a stream, for readers of Zarr. A reference file describes one array for each
/// field, with CF metadata. The chunks of the arrays are the records in the data file
/// (docs/formats/references.md).
class References {
 public:
  /// Local. Returns the References of a stream with these fields. `fields` must have the keys of their grids.
  /// Code::argument if an array cannot hold one of the fields.
  static Result<std::unique_ptr<References>> make(const codec::StreamDefinition& stream,
                                                  const std::vector<codec::FieldDefinition>& fields,
                                                  codec::Decoding decoding);
  /// Local. Adds one more field; errors as of `make`. After an error the object must not be used any more.
  Status add(const codec::FieldDefinition& field);
  /// Local. Adds an attribute of the file, of a field or of a dimension with a coordinate.
  Status add_attribute(const codec::GivenAttribute& given);
  References(const References&) = delete;
  References& operator=(const References&) = delete;

  /// Local. Returns the text of the reference file of a data file with these steps.
  [[nodiscard]] std::string text(const std::string& data_path,
                                 const std::vector<codec::FinishedStep>& steps) const;
  /// Local. Blocks on storage. The caller holds the lock of the data file. Writes the reference file `path`
  /// for these steps of the data file, durable on return. Replaces an earlier one by a rename, so that
  /// readers find one or the other.
  Status write(storage::Target& target, const std::string& path, const std::string& data_path,
               const std::vector<codec::FinishedStep>& steps) const;

 private:
  References(const codec::StreamDefinition& stream, codec::Decoding decoding);
  struct Line;
  [[nodiscard]] std::vector<Line> arrays(const std::vector<codec::FinishedStep>& steps) const;
  [[nodiscard]] ByteVector times_of(std::size_t variable,
                                    const std::vector<codec::FinishedStep>& steps) const;
  [[nodiscard]] const cf::Conventions::Field* field_of(std::size_t variable) const;
  /// Returns the interval whose bounds are in this variable, or null.
  [[nodiscard]] const cf::Conventions::Interval* bounds_in(std::size_t variable) const;
  [[nodiscard]] bool is_told(const cf::Conventions::Interval& interval) const;

  codec::Decoding decoding_;
  cf::Conventions conventions_;
};

}  // namespace tailrace::references
