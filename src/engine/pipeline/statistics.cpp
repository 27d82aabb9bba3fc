// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/statistics.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace tailrace::pipeline {

void Precision::add(const codec::KeptBits& kept) {
  if (kept.is_whole) {
    ++whole;
    return;
  }
  ++records[std::min(static_cast<std::size_t>(std::max(kept.bits, 0)), most_bits)];
  least_information = std::min(least_information, kept.information);
  most_left_out = std::max(most_left_out, kept.left_out);
}

void Precision::add(const Precision& other) {
  share = std::max(share, other.share);
  whole += other.whole;
  for (std::size_t bits = 0; bits <= most_bits; ++bits) records[bits] += other.records[bits];
  least_information = std::min(least_information, other.least_information);
  most_left_out = std::max(most_left_out, other.most_left_out);
}

std::int64_t Precision::count() const { return std::accumulate(records.begin(), records.end(), whole); }

void Statistics::pack(Packer& out) const {
  out.put(static_cast<std::int64_t>(streams.size()));
  for (const auto& [name, counters] : streams) out.put_text(name).put(counters);
  out.put(static_cast<std::int64_t>(durable.size()));
  for (const auto& [name, seconds] : durable) out.put_text(name).put_list(std::span<const double>(seconds));
  out.put(static_cast<std::int64_t>(why_method.size()));
  for (const auto& [name, why] : why_method) out.put_text(name).put_text(why);
  out.put(static_cast<std::int64_t>(precisions.size()));
  for (const auto& [name, fields] : precisions) {
    out.put_text(name).put(static_cast<std::int64_t>(fields.size()));
    for (const auto& [field, each] : fields)
      out.put_text(field)
          .put(each.share)
          .put(each.whole)
          .put_list(std::span<const std::int64_t>(each.records))
          .put(each.least_information)
          .put(each.most_left_out);
  }
  out.put(static_cast<std::int64_t>(spans.size()));
  for (const Span& span : spans) out.put_text(span.name).put(span.thread).put(span.begin).put(span.end);
}

Statistics Statistics::unpack(Unpacker& in) {
  Statistics statistics;
  const auto for_each_name = [&in](const auto& take) {
    for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) take(in.get_text());
  };
  for_each_name([&](const std::string& name) { statistics.streams[name] = in.get<Counters>(); });
  for_each_name([&](const std::string& name) { statistics.durable[name] = in.get_list<double>(); });
  for_each_name([&](const std::string& name) { statistics.why_method[name] = in.get_text(); });
  for_each_name([&](const std::string& name) {
    auto& fields = statistics.precisions[name];
    for_each_name([&](const std::string& field) {
      Precision& each = fields[field];
      each.share = in.get<double>();
      each.whole = in.get<std::int64_t>();
      each.records = in.get_list<std::int64_t>();
      each.records.resize(Precision::most_bits + 1);
      each.least_information = in.get<double>();
      each.most_left_out = in.get<double>();
    });
  });
  for_each_name([&](const std::string& name) {
    statistics.spans.push_back(
        {name, in.get<std::int64_t>(), in.get<std::int64_t>(), in.get<std::int64_t>()});
  });
  return statistics;
}

}  // namespace tailrace::pipeline
