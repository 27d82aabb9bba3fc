// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/arrays/array.hpp"

#include <algorithm>

#include "engine/arrays/type_text.hpp"
#include "ground/base/text.hpp"

namespace tailrace::arrays {

namespace {

/// A layout, and one rank's memory under it.
struct Part {
  layout::Layout layout;
  layout::MemoryMap memory;
};

Result<Part> part_of(const Array& array, int rank) {
  layout::Allocation allocation;
  allocation.level_axis = array.levels > 0 ? 0 : -1;
  allocation.levels = std::max<Index>(array.levels, 1);
  if (array.halo != nullptr && (array.layout->is_box() || array.layout->is_tiled()))
    allocation.halo = *array.halo;
  allocation.strides = array.strides;
  if (!array.section) {
    Result<layout::MemoryMap> memory = layout::memory_map(*array.layout, rank, array.type, allocation);
    TR_TRY(memory.status());
    return Part{*array.layout, std::move(*memory)};
  }
  TR_TRY(array.section->shape().status());
  if (array.levels > 0) return Status(Code::argument, "a section of an array with levels");
  Result<layout::Layout> layout = layout::section_layout(*array.layout, *array.section);
  TR_TRY(layout.status());
  Result<layout::MemoryMap> memory =
      layout::section_map(*array.layout, rank, array.type, allocation, *array.section);
  TR_TRY(memory.status());
  return Part{std::move(*layout), std::move(*memory)};
}

/// Extends the rows of the first level to all levels.
void add_levels(const Array& array, std::vector<layout::Rows>& rows) {
  const std::size_t first_rows = rows.size();
  for (Index level = 1; level < array.levels; ++level) {
    for (std::size_t i = 0; i < first_rows; ++i) {
      rows.push_back(rows[i]);
      rows.back().global += level * array.layout->elements();
    }
  }
}

/// Extends the maps to the whole array with all of its levels. `rows` and `memory` come with the first level.
void add_levels(const Array& array, std::vector<layout::Rows>& rows, layout::MemoryMap& memory) {
  add_levels(array, rows);
  const std::size_t first_nests = memory.nests.size();
  for (Index level = 1; level < array.levels; ++level) {
    for (std::size_t i = 0; i < first_nests; ++i) {
      memory.nests.push_back(memory.nests[i]);
      memory.nests.back().offset += level * memory.level_stride;
    }
  }
}

/// Maps `count` elements, one after another in a file, to their places in memory.
layout::TransferMap packed_map(Index count, const layout::MemoryMap& memory) {
  const std::vector<layout::Rows> line(count > 0 ? 1 : 0, layout::Rows{0, count, 0, 1});
  return layout::TransferMap::make(line, memory);
}

std::string list(const std::vector<Index>& numbers) {
  std::string text;
  for (const Index number : numbers) text += cat(text.empty() ? "" : ",", number);
  return text;
}

}  // namespace

std::string Array::extents_text() const {
  std::string text = list(layout->shape());
  if (section) {
    text += cat(" section ", list(section->start), " : ", list(section->stop), " : ", list(section->stride));
  }
  return text;
}

Result<std::vector<Index>> Array::shape() const {
  if (section) return section->shape();
  std::vector<Index> extents = layout->shape();
  if (levels > 0) extents.insert(extents.begin(), levels);
  return extents;
}

std::string Array::text() const {
  if (layout == nullptr) return "no layout";
  const std::string of_levels = levels > 0 ? cat(counted(levels, "level"), " of ") : "";
  return cat(type_text(type), " ", layout->kind(), " ", of_levels, extents_text(), " of layout ",
             layout_number);
}

Status check(const Array& array, int rank) {
  if (array.layout == nullptr) return {Code::argument, "the layout is a null pointer"};
  if (size_of(array.type) == 0) {
    return {Code::argument, cat("element type ", static_cast<std::int32_t>(array.type),
                                " is none of TR_I8 .. TR_U64 and TR_TEXT(1) .. TR_TEXT(", most_text, ")")};
  }
  if (array.data == nullptr && array.layout->count(rank) > 0)
    return {Code::argument, cat("the array is a null pointer on rank ", rank, ", which owns a part of it")};
  return {};
}

Result<std::shared_ptr<const ArrayPlan>> make_plan(const Array& array, int rank, Direction direction) {
  TR_TRY(check(array, rank));
  const bool everywhere = array.layout->kind() == "replicated";
  // Every rank reads what rank 0 owns of a replicated array; rank 0 alone writes it.
  const int owner = everywhere && direction == Direction::read ? 0 : rank;
  if (everywhere && array.data == nullptr)
    return Status(Code::argument, cat("the replicated array is a null pointer on rank ", rank));
  Result<Part> part = part_of(array, owner);
  TR_TRY(part.status());
  std::vector<layout::Rows> rows = part->layout.rows(owner);
  add_levels(array, rows, part->memory);
  std::vector<layout::Rows> unowned;
  if (direction == Direction::write) unowned = part->layout.unowned();
  add_levels(array, unowned);
  const Bytes element = size_of(array.type);
  return std::make_shared<const ArrayPlan>(
      ArrayPlan{std::move(part->layout), element, layout::TransferMap::make(rows, part->memory),
                everywhere && direction == Direction::read, array.in_parts,
                layout::TransferMap::of_rows(unowned, element)});
}

Result<std::shared_ptr<const ArrayPlan>> make_local_plan(const Array& array, int rank) {
  TR_TRY(check(array, rank));
  const int owner = array.layout->kind() == "replicated" ? 0 : rank;
  Result<Part> part = part_of(array, owner);
  TR_TRY(part.status());
  const Index count = part->layout.count(owner);
  Result<layout::Layout> line = layout::Layout::replicated({count}, 1);
  TR_TRY(line.status());
  return std::make_shared<const ArrayPlan>(
      ArrayPlan{std::move(*line), size_of(array.type), packed_map(count, part->memory), false, false});
}

Result<Owned> find_owned(const Array& array, int rank) {
  TR_TRY(check(array, rank));
  Result<Part> part = part_of(array, rank);
  TR_TRY(part.status());
  const Result<std::vector<Index>> shape = array.shape();
  TR_TRY(shape.status());
  Owned owned{*shape, part->layout.rows(rank), size_of(array.type), {}};
  add_levels(array, owned.rows, part->memory);
  const Index count = part->layout.count(rank) * std::max<Index>(array.levels, 1);
  owned.packed = packed_map(count, part->memory);
  return owned;
}

}  // namespace tailrace::arrays
