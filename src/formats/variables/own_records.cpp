// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/variables/own_records.hpp"

#include <algorithm>
#include <utility>

#include "formats/variables/cf_inventory.hpp"
#include "formats/variables/strided.hpp"
#include "ground/base/text.hpp"

namespace tailrace::variables {

namespace {

class OwnSource final : public Source {
 public:
  OwnSource(const Opening& opening, OwnRecords records, Inventory inventory)
      : path_(opening.path), file_(opening.file), size_(opening.size), records_(std::move(records)) {
    inventory_ = std::move(inventory);
  }

  Result<Index> read(const RecordPlace& place, const Grid& grid, const layout::Box& cut, ElementType type,
                     std::byte* values, Scratch& scratch) const override {
    if (place[0] < 0 || place[0] >= std::ssize(records_.fields))
      return Status(Code::corrupt, cat(path_, ": expected a record of one of ",
                                       counted(records_.fields.size(), "field"), ", got number ", place[0]));
    const OwnRecords::Field& field = records_.fields[static_cast<std::size_t>(place[0])];
    const std::string context = cat(path_, ": field '", field.name, "'");
    if (field.unpacking.element_bytes() == 0)
      return Status(Code::format, cat(context, ": expected real numbers, got ", name_of(field.type)));
    if (grid.shape != field.grid.shape)
      return Status(Code::corrupt,
                    cat(context, " has no such record: the inventory is that of another file"));
    TR_TRY(check_cut(grid.shape, cut, type).in(context));
    const Bytes element = field.unpacking.element_bytes();
    const Strided record{place[1], strides_of(grid.shape, element), records_.order};
    if (place[1] < 0 || span_of(record, grid.shape, element) > size_ - place[1])
      return Status(Code::corrupt, cat(context, ": expected a record inside of the file's ",
                                       counted(size_, "byte"), ", got one at byte ", place[1]));
    const Result<Index> missing = read_strided(*file_, record, field.unpacking, cut, type, values, scratch);
    TR_TRY(missing.status().in(context));
    return missing;
  }
  [[nodiscard]] bool holds_float32(const RecordPlace& place) const override {
    if (place[0] < 0 || place[0] >= std::ssize(records_.fields)) return false;
    return records_.fields[static_cast<std::size_t>(place[0])].unpacking.is_float32();
  }
  [[nodiscard]] std::optional<ElementType> exact_type(const RecordPlace& place) const override {
    if (place[0] < 0 || place[0] >= std::ssize(records_.fields)) return std::nullopt;
    return records_.fields[static_cast<std::size_t>(place[0])].unpacking.exact_type();
  }
  [[nodiscard]] Bytes scratch_bound(const RecordPlace& place, const Grid&) const override {
    if (place[0] < 0 || place[0] >= std::ssize(records_.fields)) return 0;
    return std::min({most_bytes_at_once, size_, records_.fields[static_cast<std::size_t>(place[0])].bytes});
  }

 private:
  std::string path_;
  std::shared_ptr<storage::File> file_;
  Bytes size_;
  OwnRecords records_;
};

}  // namespace

Result<OwnRecords> own_records_of(const streams::IndexContents& index, std::endian order) {
  OwnRecords own;
  own.order = order;
  for (const streams::IndexField& each : index.header.fields) {
    OwnRecords::Field field;
    field.name = each.name;
    field.type = each.type;
    field.grid.shape = each.shape;
    field.unpacking.type = cf::number_of(each.type);
    if (is_text(each.type)) field.unpacking.text_bytes = size_of(each.type);
    field.bytes = size_of(each.type);
    for (const Index length : each.shape) {
      if (__builtin_mul_overflow(field.bytes, length, &field.bytes))
        return Status(Code::corrupt,
                      cat("the index tells a record of more than 2^63 bytes of '", each.name, "'"));
    }
    own.fields.push_back(std::move(field));
  }
  for (const streams::IndexStep& step : index.steps) {
    for (const streams::IndexRecord& each : step.records) {
      const OwnRecords::Field& field = own.fields[static_cast<std::size_t>(each.field)];
      if (each.length != field.bytes)
        return Status(Code::corrupt,
                      cat("the index has a record of '", field.name, "' of ", counted(each.length, "byte"),
                          " at byte ", each.offset, ": expected ", field.bytes));
    }
  }
  return own;
}

namespace {

/// Adds the records of a field without time, one for each level. `base` is the base time on the axis of the
/// inventory. Returns false if there are too many.
bool add_always(const streams::IndexContents& index, std::int64_t base, const OwnRecords::Field& field,
                const streams::IndexField& described, int grid, std::vector<Record>& records) {
  if (std::ssize(field.always) > most_records - std::ssize(records)) return false;
  for (std::size_t level = 0; level < field.always.size(); ++level) {
    Record record;
    record.field = described.name;
    record.level_type = described.level_type;
    record.level = described.levels[level];
    record.reference = base;
    record.valid = any_time;
    record.member = index.header.member.value_or(-1);
    record.grid = grid;
    record.place = field.always[level];
    records.push_back(std::move(record));
  }
  return true;
}

}  // namespace

Result<Inventory> inventory_of_own(const streams::IndexContents& index, const OwnRecords& records,
                                   std::string format) {
  Inventory inventory;
  inventory.format = std::move(format);
  inventory.calendar = index.header.calendar;
  std::vector<int> grids;
  for (const OwnRecords::Field& each : records.fields) {
    const auto same = [&](const Grid& grid) {
      return grid.shape == each.grid.shape && grid.keys == each.grid.keys;
    };
    const auto known = std::ranges::find_if(inventory.grids, same);
    grids.push_back(static_cast<int>(known - inventory.grids.begin()));
    if (known == inventory.grids.end()) inventory.grids.push_back(each.grid);
  }
  const TimeAxis& time = index.header.time;
  std::int64_t base = to_seconds(index.header.base, index.header.calendar);
  if (time.is_model() || time.nanoseconds() != TimeAxis().nanoseconds()) {
    inventory.time = time;
    inventory.base = std::exchange(base, 0);
  }
  std::vector<bool> has_records(index.header.fields.size());
  for (const streams::IndexStep& step : index.steps) {
    if (std::ssize(step.records) > most_records - std::ssize(inventory.records))
      return Status(Code::corrupt, cat("the index has more than ", most_records, " records"));
    for (const streams::IndexRecord& each : step.records) {
      const auto field = static_cast<std::size_t>(each.field);
      has_records[field] = true;
      const streams::IndexField& described = index.header.fields[field];
      Record record;
      record.field = described.name;
      record.level_type = described.level_type;
      record.level = described.levels[static_cast<std::size_t>(each.level)];
      record.reference = base;
      record.valid = base + step.lead;
      record.member = index.header.member.value_or(-1);
      record.grid = grids[field];
      record.place = {each.field, each.offset, each.length, step.step};
      inventory.records.push_back(std::move(record));
    }
  }
  for (std::size_t field = 0; field < has_records.size(); ++field) {
    if (has_records[field]) continue;
    const OwnRecords::Field& own = records.fields[field];
    const streams::IndexField& described = index.header.fields[field];
    if (own.always.empty() || index.steps.empty())
      inventory.unread.push_back({described.name, {Code::argument, "no step has it: it was not put"}});
    else if (!add_always(index, base, own, described, grids[field], inventory.records))
      return Status(Code::corrupt, cat("the index has more than ", most_records, " records"));
  }
  return inventory;
}

std::shared_ptr<const Source> source_of_own(const Opening& opening, OwnRecords records, Inventory inventory) {
  return std::make_shared<OwnSource>(opening, std::move(records), std::move(inventory));
}

}  // namespace tailrace::variables
