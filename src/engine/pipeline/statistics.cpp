// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/statistics.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>

namespace tailrace::pipeline {

namespace {

void pack_texts(Packer& out, const std::map<std::string, std::string>& texts) {
  out.put(static_cast<std::int64_t>(texts.size()));
  for (const auto& [name, text] : texts) out.put_text(name).put_text(text);
}

}  // namespace

void Span::About::pack(Packer& out) const {
  out.put(records);
  if (records > 0) out.put_text(stream).put_text(field).put(level).put(lead);
}

Span::About Span::About::unpack(Unpacker& in) {
  About about;
  about.records = in.get<std::int64_t>();
  if (about.records == 0) return about;
  about.stream = in.get_text();
  about.field = in.get_text();
  about.level = in.get<double>();
  about.lead = in.get<std::int64_t>();
  return about;
}

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
  for (const auto* texts : {&why_method, &last_durable, &failed}) pack_texts(out, *texts);
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
  out.put(process).put_text(error).put_text(stopped);
  out.put(static_cast<std::int64_t>(spans.size()));
  for (const Span& span : spans) {
    out.put_text(span.name).put(span.thread).put(span.begin).put(span.end);
    span.about.pack(out);
  }
}

Statistics Statistics::unpack(Unpacker& in) {
  Statistics statistics;
  const auto for_each_name = [&in](const auto& take) {
    for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) take(in.get_text());
  };
  for_each_name([&](const std::string& name) { statistics.streams[name] = in.get<Counters>(); });
  for_each_name([&](const std::string& name) { statistics.durable[name] = in.get_list<double>(); });
  for (auto* texts : {&statistics.why_method, &statistics.last_durable, &statistics.failed})
    for_each_name([&](const std::string& name) { (*texts)[name] = in.get_text(); });
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
  statistics.process = in.get<Process>();
  statistics.error = in.get_text();
  statistics.stopped = in.get_text();
  for_each_name([&](const std::string& name) {
    Span& span = statistics.spans.emplace_back();
    span.name = name;
    span.thread = in.get<std::int64_t>();
    span.begin = in.get<std::int64_t>();
    span.end = in.get<std::int64_t>();
    span.about = Span::About::unpack(in);
  });
  return statistics;
}

Statistics Statistics::so_far() const {
  Statistics copy;
  copy.streams = streams;
  for (const auto& [name, seconds] : durable) {
    const auto kept = std::min(std::ssize(seconds), most_durable_so_far);
    copy.durable[name].assign(seconds.end() - kept, seconds.end());
  }
  copy.why_method = why_method;
  copy.last_durable = last_durable;
  copy.failed = failed;
  copy.precisions = precisions;
  copy.process = process;
  copy.error = error;
  copy.stopped = stopped;
  return copy;
}

}  // namespace tailrace::pipeline
