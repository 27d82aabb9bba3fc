// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "as_json.hpp"

#include <nlohmann/json.hpp>

#include "advice.hpp"
#include "comparison.hpp"
#include "figures.hpp"

namespace tailrace::reports {

namespace {

using Json = nlohmann::ordered_json;

Json value_of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json head_of(const Run& run) {
  const Totals totals = totals_of(run);
  Json json{{"path", run.path},
            {"state", name_of(run.state)},
            {"begun", run.begun},
            {"written", run.written},
            {"elapsed_seconds", value_of(run.elapsed)},
            {"compute_ranks", run.compute_ranks},
            {"servers", run.servers},
            {"nodes", run.nodes},
            {"files", value_of(totals.files)},
            {"steps", totals.steps},
            {"bytes_captured", totals.bytes_captured},
            {"bytes_written", totals.bytes_written},
            {"bytes_durable", totals.bytes_durable},
            {"failed_steps", totals.failed_steps},
            {"bytes_read", totals.bytes_read},
            {"bytes_per_second", nullptr},
            {"in_calls_seconds_mean", totals.blocked}};
  if (run.elapsed.value_or(0) > 0) json["bytes_per_second"] = totals.bytes_durable / *run.elapsed;
  if (!run.error.empty()) json["error"] = run.error;
  if (!run.stopped.empty()) json["stopped"] = run.stopped;
  return json;
}

Json role_json(const RoleFigures& role) {
  Json routines = Json::array();
  for (const RoutineFigures& each : role.routines) {
    routines.push_back({{"routine", each.name},
                        {"counts_as", text_of(each.kind)},
                        {"sum", each.sum},
                        {"share", each.share},
                        {"min", each.least},
                        {"median", each.median},
                        {"max", each.most}});
  }
  return {{"role", role.role},
          {"own_threads", !role.of_threads},
          {"processes", role.processes},
          {"threads", role.threads},
          {"seconds", role.seconds},
          {"waits_for_mpi_seconds", role.of(Kind::waits_mpi)},
          {"waits_for_storage_seconds", role.of(Kind::waits_storage)},
          {"routines", std::move(routines)}};
}

Json seconds_json(const Seconds& all) {
  Json json = Json::object();
  for (const auto& [name, seconds] : all) json[name] = seconds;
  return json;
}

Json process_json(const Process& process) {
  return {{"rank", process.rank},
          {"role", process.role},
          {"node", process.node},
          {"threads", process.threads},
          {"encoders", process.encoders},
          {"elapsed_seconds", process.elapsed},
          {"routines", seconds_json(process.routines)},
          {"threads_routines", seconds_json(process.thread_routines)}};
}

Json spread_json(const Spread& spread) {
  return {{"sum", spread.sum},
          {"median", spread.median},
          {"p99", spread.p99},
          {"max", spread.most},
          {"count", spread.count}};
}

Json stream_json(const Stream& stream) {
  Json json{{"name", stream.name}, {"steps", stream.steps}, {"blocked_seconds", spread_json(stream.blocked)}};
  if (stream.is_input) {
    json["gets_in_memory"] = stream.gets_in_memory;
    json["gets_late"] = stream.gets_late;
    json["wait_seconds"] = spread_json(stream.get_wait);
    json["records_read"] = stream.records_read;
    json["bytes_read"] = stream.bytes_read;
    return json;
  }
  json["method"] = stream.method;
  if (!stream.method_chosen.empty()) json["method_chosen"] = stream.method_chosen;
  if (!stream.writes_by.empty()) json["writes_by"] = stream.writes_by;
  if (!stream.offsets.empty()) json["offsets"] = stream.offsets;
  json["records"] = stream.records;
  json["bytes_captured"] = stream.bytes_captured;
  json["bytes_written"] = stream.bytes_written;
  json["ratio"] =
      stream.bytes_written > 0 ? Json(stream.bytes_captured / stream.bytes_written) : Json(nullptr);
  json["files"] = value_of(stream.files);
  json["durable_steps"] = value_of(stream.durable_steps);
  if (!stream.last_durable.empty()) json["last_durable"] = stream.last_durable;
  json["time_to_durable_seconds"] = spread_json(stream.durable);
  return json;
}

/// Texts of a report that this command has cut short may end within a character: it is replaced.
std::string text_of_json(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string report_json(const Run& run, bool processes) {
  Json json{{"run", head_of(run)},
            {"remarks", remarks(run)},
            {"advice", Json::array()},
            {"roles", Json::array()},
            {"streams", Json::array()}};
  for (const Advice& each : advise(run)) {
    Json advice{{"rule", each.rule}, {"text", each.text}};
    if (!each.set.empty()) advice["set"] = each.set;
    json["advice"].push_back(std::move(advice));
  }
  for (const RoleFigures& role : figures_of(run)) json["roles"].push_back(role_json(role));
  for (const Process& process : run.processes) {
    if (processes) json["processes"].push_back(process_json(process));
  }
  for (const Stream& stream : run.streams) json["streams"].push_back(stream_json(stream));
  return text_of_json(json);
}

std::string comparison_json(const Run& before, const Run& after) {
  const Comparison comparison = compare(before, after);
  Json json{{"first", head_of(before)},
            {"second", head_of(after)},
            {"changes", comparison.changes},
            {"remarks", comparison.remarks},
            {"parts", Json::array()}};
  for (const ComparedPart& part : comparison.parts) {
    Json figures = Json::array();
    for (const Compared& each : part.figures) {
      Json figure{{"name", each.name}, {"first", value_of(each.before)}, {"second", value_of(each.after)}};
      if (each.sum_before || each.sum_after) {
        figure["first_sum"] = value_of(each.sum_before);
        figure["second_sum"] = value_of(each.sum_after);
      }
      figures.push_back(std::move(figure));
    }
    json["parts"].push_back({{"title", part.title}, {"figures", std::move(figures)}});
  }
  return text_of_json(json);
}

}  // namespace tailrace::reports
