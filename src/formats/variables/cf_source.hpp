// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/sources/source.hpp"
#include "formats/variables/cf_inventory.hpp"

namespace tailrace::variables {

/// The common part of the sources whose records are variables with CF metadata, in any format. It checks the
/// arguments of read(), and adds file and variable to the texts of errors. Any thread may read.
class CfSource : public Source {
 public:
  Result<Index> read(const RecordPlace& place, const Grid& grid, const layout::Box& cut, ElementType type,
                     std::byte* values, Scratch& scratch) const final;
  [[nodiscard]] bool holds_float32(const RecordPlace& place) const final {
    if (place[0] < 0 || place[0] >= std::ssize(fields_)) return false;
    return fields_[static_cast<std::size_t>(place[0])].unpacking.is_float32();
  }
  [[nodiscard]] std::optional<ElementType> exact_type(const RecordPlace& place) const final {
    if (place[0] < 0 || place[0] >= std::ssize(fields_)) return std::nullopt;
    return fields_[static_cast<std::size_t>(place[0])].unpacking.exact_type();
  }
  [[nodiscard]] Bytes scratch_bound(const RecordPlace& place, const Grid& grid) const final;

 protected:
  /// `noun` is the format's word for a variable.
  CfSource(std::string path, std::string_view noun, CfInventory found)
      : path_(std::move(path)), noun_(noun), fields_(std::move(found.fields)) {
    inventory_ = std::move(found.inventory);
  }

 private:
  [[nodiscard]] virtual const cf::FoundContents& contents() const = 0;
  /// Local. Blocks on storage. As Source::read, for a record that begins at `begin` in the field's variable.
  virtual Result<Index> read_record(const CfField& field, const std::vector<Index>& begin,
                                    const layout::Box& cut, ElementType type, std::byte* values,
                                    Scratch& scratch) const = 0;
  /// As Source::scratch_bound, for a record of this shape that begins at `begin` in the field's variable.
  [[nodiscard]] virtual Bytes record_bound(const CfField& field, const std::vector<Index>& begin,
                                           std::span<const Index> shape) const = 0;

  const std::string path_;
  const std::string_view noun_;
  const std::vector<CfField> fields_;
};

}  // namespace tailrace::variables
