// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/statistics.hpp"

namespace tailrace::pipeline {

void Statistics::pack(Packer& out) const {
  out.put(static_cast<std::int64_t>(streams.size()));
  for (const auto& [name, counters] : streams) out.put_text(name).put(counters);
  out.put(static_cast<std::int64_t>(durable.size()));
  for (const auto& [name, seconds] : durable) out.put_text(name).put_list(std::span<const double>(seconds));
  out.put(static_cast<std::int64_t>(why_method.size()));
  for (const auto& [name, why] : why_method) out.put_text(name).put_text(why);
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
    statistics.spans.push_back(
        {name, in.get<std::int64_t>(), in.get<std::int64_t>(), in.get<std::int64_t>()});
  });
  return statistics;
}

}  // namespace tailrace::pipeline
