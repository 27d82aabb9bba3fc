// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/reports/trace.hpp"

#include <set>

#include "engine/session/reports/routines.hpp"
#include "ground/base/text.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>
#endif

namespace tailrace::session {

#if TAILRACE_HAVE_JSON

namespace {

using nlohmann::ordered_json;
using pipeline::Span;
using pipeline::Statistics;

std::string name_of_thread(std::int64_t thread, const pipeline::Process& process) {
  if (thread == pipeline::calling_thread) return "collective calls";
  // A rank that serves itself does the jobs of both kinds, which have numbers as if it had one worker.
  if (process.threads == 0) return thread == 0 ? "calls" : "jobs inside the calls";
  if (thread == 0) return "messages";
  return thread <= process.encoders ? cat("encoder ", thread) : cat("storage ", thread - process.encoders);
}

ordered_json named(const char* what, int rank, std::int64_t thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

ordered_json event_of(int rank, const Span& span) {
  ordered_json event = {{"ph", "X"},
                        {"name", span.name},
                        {"cat", "tailrace"},
                        {"pid", rank},
                        {"tid", span.thread},
                        {"ts", static_cast<double>(span.begin) * 1e-3},
                        {"dur", static_cast<double>(span.end - span.begin) * 1e-3}};
  const Span::About& about = span.about;
  if (about.records == 0) return event;
  event["args"] = {
      {"stream", about.stream}, {"field", about.field}, {"level", about.level}, {"lead", about.lead}};
  if (about.records > 1) event["args"]["records"] = about.records;
  return event;
}

}  // namespace

std::string trace_text(const exchange::Roster& roster, const std::map<int, Statistics>& all) {
  const std::vector<Role> roles = roles_of(roster);
  ordered_json events = ordered_json::array();
  for (const auto& [rank, statistics] : all) {
    const bool serves = roles[static_cast<std::size_t>(rank)] == Role::server;
    events.push_back(named("process_name", rank, 0, cat(serves ? "server, rank " : "compute, rank ", rank)));
    std::set<std::int64_t> threads;
    for (const Span& span : statistics.spans) threads.insert(span.thread);
    for (const std::int64_t thread : threads)
      events.push_back(named("thread_name", rank, thread, name_of_thread(thread, statistics.process)));
    for (const Span& span : statistics.spans) events.push_back(event_of(rank, span));
  }
  const ordered_json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  // Names of files need not be UTF-8, which JSON has to be.
  return trace.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

#else

std::string trace_text(const exchange::Roster&, const std::map<int, pipeline::Statistics>&) { return {}; }

#endif

}  // namespace tailrace::session
