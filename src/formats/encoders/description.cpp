// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/encoders/description.hpp"

#include <array>
#include <limits>

#include "formats/codec/missing.hpp"

namespace tailrace::encoders {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

const char* name_of(codec::Process process) {
  constexpr std::array names{"instant", "accum", "average", "maximum", "minimum"};
  return names[static_cast<std::size_t>(process)];
}

}  // namespace

Description::Description(const codec::StreamDefinition& stream, const codec::FieldDefinition& field,
                         int number)
    : field_(field),
      stream_(stream.name),
      base_time_(stream.time.has_base() ? format_time(stream.base) : ""),
      calendar_(tailrace::name_of(stream.calendar)),
      time_units_(stream.time.units(stream.base)),
      axis_(stream.time),
      options_(field.keys) {
  // The field's keys come first, because tr_record_key returns the first key with a name.
  options_.insert(options_.end(), stream.keys.begin(), stream.keys.end());
  for (const auto& [name, value] : options_) keys_.insert(keys_.end(), {name.c_str(), value.c_str()});
  keys_.push_back(nullptr);
  record_.stream = stream_.c_str();
  record_.field = field_.name.c_str();
  record_.type = static_cast<std::int32_t>(field_.type);
  record_.ndims = static_cast<std::int32_t>(field_.shape.size());
  record_.shape = field_.shape.data();
  record_.count = field_.elements();
  record_.level_type = field_.levels.type.c_str();
  record_.levels = static_cast<std::int64_t>(field_.levels.values.size());
  record_.level_values = field_.levels.values.data();
  record_.field_number = number;
  record_.statistic = name_of(field_.statistic.process);
  record_.base_time = base_time_.c_str();
  record_.calendar = calendar_.c_str();
  record_.member = stream.member.value_or(-1);
  record_.bits = field_.bits.value_or(0);
  record_.accuracy = field_.accuracy.value_or(kNone);
  record_.relative_accuracy = field_.relative_accuracy.value_or(kNone);
  record_.missing = codec::missing_in(field_.type, field_.missing.value_or(0));
  record_.has_missing = field_.missing.has_value() ? 1 : 0;
  record_.keys = keys_.data();
  record_.time_units = time_units_.c_str();
  record_ = record({number, 0, 0, 0}, nullptr);
}

tr_record Description::record(const codec::RecordKey& key, const std::byte* values) const {
  tr_record record = record_;
  const auto level = static_cast<std::size_t>(key.level);
  record.values = values;
  record.level_number = key.level;
  record.level = field_.levels.values[level];
  record.level_bottom = level < field_.levels.bottoms.size() ? field_.levels.bottoms[level] : record.level;
  const bool instant = field_.statistic.process == codec::Process::instant;
  const std::int64_t begin = instant ? key.lead : key.interval_start;
  record.time = axis_.number(key.lead);
  record.interval_begin = axis_.number(begin);
  if (axis_.is_model()) return record;
  record.lead = key.lead;
  record.interval_start = begin;
  return record;
}

}  // namespace tailrace::encoders
