// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "run.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "ground/base/calendar.hpp"
#include "ground/base/text.hpp"
#include "words.hpp"

namespace tailrace::reports {

namespace {

using Json = nlohmann::ordered_json;

/// Returns the value of a key, or nullptr. What is no object has no keys.
const Json* find(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

/// More than any count, size or time: sums of what is not larger stay numbers, and sizes fit into Bytes.
constexpr double kMost = 1e18;

/// Returns a number from 0 on. What is none (NaN is written as null) is missing.
std::optional<double> number_of(const Json& json) {
  if (!json.is_number()) return {};
  const auto value = json.get<double>();
  if (!std::isfinite(value)) return {};
  return std::clamp(value, 0.0, kMost);
}
std::optional<double> number(const Json& json, const char* key) {
  const Json* const value = find(json, key);
  return value == nullptr ? std::nullopt : number_of(*value);
}
double amount(const Json& json, const char* key) { return number(json, key).value_or(0); }

std::int64_t integer(const Json& json, const char* key) {
  return static_cast<std::int64_t>(std::min(amount(json, key), 9e15));
}

std::string text(const Json& json, const char* key) {
  const Json* const value = find(json, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

/// Returns the entries of a list. What is no list has none.
const Json& list(const Json& json, const char* key) {
  static const Json& none = *new Json(Json::array());
  const Json* const value = find(json, key);
  return value != nullptr && value->is_array() ? *value : none;
}

Spread spread(const Json& json, const char* key) {
  const Json* const value = find(json, key);
  if (value == nullptr) return {};
  return {amount(*value, "sum"), amount(*value, "median"), amount(*value, "p99"), amount(*value, "max"),
          amount(*value, "count")};
}

Seconds seconds(const Json& json, const char* key) {
  Seconds all;
  const Json* const value = find(json, key);
  if (value == nullptr || !value->is_object()) return all;
  for (const auto& [name, each] : value->items()) {
    if (const std::optional<double> spent = number_of(each)) all.emplace_back(name, *spent);
  }
  return all;
}

Process process_of(const Json& json) {
  Process process;
  process.rank = integer(json, "rank");
  process.role = text(json, "role");
  if (process.role.empty()) process.role = "compute";
  process.node = integer(json, "node");
  process.threads = amount(json, "threads");
  process.encoders = amount(json, "encoders");
  if (process.encoders == 0) process.encoders = process.threads;
  process.elapsed = amount(json, "elapsed_seconds");
  process.routines = seconds(json, "routines");
  process.thread_routines = seconds(json, "threads_routines");
  return process;
}

void take_input(const Json& input, Stream& stream) {
  stream.is_input = true;
  stream.gets_in_memory = amount(input, "gets_in_memory");
  stream.gets_late = amount(input, "gets_late");
  stream.get_wait = spread(input, "wait_seconds");
  stream.records_read = amount(input, "records_read");
  stream.bytes_read = amount(input, "bytes_read");
}

Stream stream_of(const Json& json) {
  static const Json& nothing = *new Json(Json::object());
  const auto part = [&json](const char* key) -> const Json& {
    const Json* const found = find(json, key);
    return found == nullptr ? nothing : *found;
  };
  Stream stream;
  stream.name = text(json, "name");
  stream.steps = amount(json, "steps");
  stream.method = text(json, "method");
  stream.method_chosen = text(json, "method_chosen");
  stream.writes_by = text(json, "writes_by");
  stream.offsets = text(json, "offsets");
  if (const Json* const input = find(json, "input")) take_input(*input, stream);
  stream.records = amount(json, "records");
  stream.bytes_captured = amount(json, "bytes_captured");
  stream.bytes_written = amount(json, "bytes_written");
  const Json &compute = part("compute"), &servers = part("servers");
  stream.blocked = spread(compute, "blocked_seconds");
  stream.capture = spread(compute, "capture_seconds");
  stream.staging_full = spread(compute, "staging_full_seconds");
  stream.staging_full_count = amount(compute, "staging_full_count");
  stream.skew = spread(compute, "skew_seconds");
  stream.assemble = spread(servers, "assemble_seconds");
  stream.encode = spread(servers, "encode_seconds");
  stream.write = spread(servers, "write_seconds");
  stream.fsync = spread(servers, "fsync_seconds");
  stream.commit = spread(servers, "commit_seconds");
  stream.waits_for_space = amount(servers, "waits_for_space");
  stream.durable = spread(json, "time_to_durable_seconds");
  stream.files = number(json, "files");
  stream.durable_steps = number(json, "durable_steps");
  stream.durable_bytes = number(json, "durable_bytes");
  stream.failed_steps = amount(json, "failed_steps");
  stream.bytes_staged_per_step = number(json, "bytes_staged_per_step");
  stream.last_durable = text(json, "last_durable");
  return stream;
}

State state_of(const std::string& name) {
  for (const State state : {State::running, State::ended, State::failed}) {
    if (name == name_of(state)) return state;
  }
  return State::unknown;
}

std::vector<std::string> missing_of(const Json& json) {
  constexpr std::array<std::pair<const char*, const char*>, 5> parts{{
      {"state", "whether the run has ended"},
      {"elapsed_seconds", "how long it ran"},
      {"written", "when the report was written"},
      {"processes", "where the time of each process went"},
      {"staging_bytes", "how large the staging memory was"},
  }};
  std::vector<std::string> missing;
  for (const auto& [key, meaning] : parts) {
    if (find(json, key) == nullptr) missing.emplace_back(meaning);
  }
  return missing;
}

Run run_of(const std::string& path, const Json& json) {
  Run run;
  run.path = path;
  if (const std::optional<double> version = number(json, "version"))
    run.version = static_cast<std::int64_t>(std::min(*version, 1e9));
  run.tailrace = text(json, "tailrace");
  run.state = state_of(text(json, "state"));
  run.begun = text(json, "begun");
  run.written = text(json, "written");
  run.error = text(json, "error");
  run.stopped = text(json, "stopped");
  run.elapsed = number(json, "elapsed_seconds");
  run.nodes = std::max(1.0, number(json, "nodes").value_or(1));
  run.compute_ranks = amount(json, "compute_ranks");
  run.servers = amount(json, "servers");
  run.staging_bytes = number(json, "staging_bytes");
  run.staging_used_bytes = number(json, "staging_used_bytes");
  for (const Json& process : list(json, "processes")) {
    if (process.is_object()) run.processes.push_back(process_of(process));
  }
  for (const Json& stream : list(json, "streams")) {
    if (stream.is_object()) run.streams.push_back(stream_of(stream));
  }
  run.missing = missing_of(json);
  return run;
}

/// Closes a file at the end of its life.
struct Closing {
  explicit Closing(int file) : file(file) {}
  ~Closing() { ::close(file); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  int file;
};

}  // namespace

Result<Run> parse_run(const std::string& path, const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return Status(Code::corrupt,
                  cat(path, ": is empty; a report is replaced as a whole, never written in place"));
  try {
    // Names may have the bytes of an older encoding. They do not take the figures with them.
    const Json json = Json::parse(as_utf8(text));
    const Json* const streams = find(json, "streams");
    if (streams == nullptr || !streams->is_array() || find(json, "compute_ranks") == nullptr) {
      const bool is_trace = find(json, "traceEvents") != nullptr;
      return Status(Code::format,
                    cat(path,
                        is_trace ? ": is a trace (TAILRACE_TRACE), which Perfetto shows"
                                 : ": is JSON, but no report: it has no compute_ranks and streams",
                        "; TAILRACE_REPORT=run.json has the library write a report"));
    }
    return run_of(path, json);
  } catch (const Json::parse_error& error) {
    if (error.byte >= text.size())
      return Status(Code::corrupt, cat(path, ": ends in the middle, after ", counted(text.size(), "byte"),
                                       "; the library replaces a report as a whole: was it copied halfway?"));
    return Status(Code::format, cat(path, ": is no report: no JSON from byte ", error.byte,
                                    " on; TAILRACE_REPORT=run.json has the library write a report"));
  } catch (const Json::exception&) {  // a number that no double holds
    return Status(Code::format,
                  cat(path, ": is no report of the library: it has a number that is too large"));
  }
}

Result<std::string> read_text(const std::string& path, Reads reads) {
  constexpr std::size_t most = std::size_t{1} << 30;
  const int flags = reads == Reads::files ? O_RDONLY | O_CLOEXEC | O_NONBLOCK : O_RDONLY | O_CLOEXEC;
  const int file = ::open(path.c_str(), flags);
  if (file < 0) return io_error("open", path, errno);
  const Closing closing{file};
  struct stat status {};
  if (reads == Reads::files && ::fstat(file, &status) == 0 && !S_ISREG(status.st_mode) &&
      !S_ISDIR(status.st_mode))
    return Status(Code::format,
                  cat(path, ": is a pipe or a device, which cannot be looked at again and again"));
  std::string text;
  std::vector<char> buffer(65536);
  for (;;) {
    const ssize_t got = ::read(file, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read", path, errno);
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > most) return Status(Code::format, cat(path, ": is no report: it has more than 1 GiB"));
  }
}

Result<Run> read_run(const std::string& path) {
  const Result<std::string> text = read_text(path, Reads::all);
  TR_TRY(text.status());
  return parse_run(path, *text);
}

std::string_view name_of(State state) {
  switch (state) {
    case State::running:
      return "running";
    case State::ended:
      return "ended";
    case State::failed:
      return "failed";
    default:
      return "unknown";
  }
}

std::optional<double> age_of(const Run& run) {
  if (run.written.empty()) return {};
  const Result<DateTime> written = parse_time(run.written, Calendar::proleptic_gregorian);
  if (!written.is_ok()) return {};
  const std::int64_t then = to_seconds(*written, Calendar::proleptic_gregorian);
  return std::max(0.0, static_cast<double>(std::int64_t{std::time(nullptr)} - then));
}

}  // namespace tailrace::reports
