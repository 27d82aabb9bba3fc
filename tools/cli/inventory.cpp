// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "inventory.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "commands.hpp"
#include "formats/opening/open.hpp"
#include "formats/sources/inventory_cache.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"
#include "ground/compat/environment.hpp"
#include "ground/settings/settings.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>
#endif

namespace tailrace::cli {
namespace {

using sources::FrontEnd;
using sources::Inventory;
using sources::Opening;
using sources::Record;

/// The records of a field on one type of level and one grid.
struct Shown {
  std::set<double> levels;
  std::set<int> members;
  std::int64_t records = 0;
};

/// Returns "2026-03-01T00:00:00Z", with fractions of a second as far as the file has them, or "0.5 s" for
/// times without a date.
std::string time_text(std::int64_t time, const Inventory& inventory) {
  if (time == sources::any_time) return "any time";
  const TimeAxis& axis = inventory.time;
  if (!axis.has_base()) return axis.text(time);
  const std::int64_t seconds = inventory.seconds(time);
  std::string text = format_time(from_seconds(seconds, inventory.calendar));
  constexpr std::int64_t second = 1'000'000'000;
  if (axis.is_model() || axis.nanoseconds() >= second) return text;
  const std::int64_t parts = second / axis.nanoseconds();
  const std::string fraction =
      cat(parts + time - (seconds - inventory.base) * parts);  // 1500 for half a second
  text.insert(text.size() - 1, cat(".", fraction.substr(1)));
  return text;
}

/// Returns a text such as "850" or, for several levels, "1..1000 (37)" with their number.
std::string levels_text(const std::set<double>& levels) {
  if (levels.size() == 1) return cat(*levels.begin());
  return cat(*levels.begin(), "..", *levels.rbegin(), " (", levels.size(), ")");
}

std::string members_text(const std::set<int>& members) {
  if (members.size() == 1) return *members.begin() < 0 ? "" : cat("  member ", *members.begin());
  return cat("  ", counted(members.size(), "member"));
}

std::string steps_text(const Inventory& inventory) {
  std::set<std::int64_t> times;
  for (const Record& record : inventory.records) times.insert(record.valid);
  times.erase(sources::any_time);
  if (times.empty()) return "no step";
  std::string text = cat(counted(times.size(), "step"), ", ", time_text(*times.begin(), inventory));
  if (times.size() > 1) text += cat(" to ", time_text(*times.rbegin(), inventory));
  return text;
}

void print_text(const std::string& path, const Inventory& inventory, bool records) {
  std::map<std::tuple<std::string, std::string, int>, Shown> fields;
  for (const Record& record : inventory.records) {
    Shown& shown = fields[{record.field, record.level_type, record.grid}];
    shown.levels.insert(record.level);
    shown.members.insert(record.member);
    ++shown.records;
  }
  std::string out = cat(path, ": ", inventory.format, ", ", counted(inventory.records.size(), "record"), "\n",
                        steps_text(inventory));
  if (inventory.time.has_base()) out += cat(" (", name_of(inventory.calendar), ")");
  out += "\n";
  for (const auto& [key, shown] : fields) {
    const auto& [field, level_type, grid] = key;
    const std::vector<Index>& shape = inventory.grids[static_cast<std::size_t>(grid)].shape;
    out += cat(field, "  ", level_type.empty() ? "?" : level_type, " ", levels_text(shown.levels), "  ",
               extents(shape), members_text(shown.members), "  ", counted(shown.records, "record"), "\n");
  }
  for (const Record& record : inventory.records) {
    if (!records) break;
    out += cat("  ", record.field, "  ", record.level_type, " ", record.level, "  ",
               time_text(record.valid, inventory), "  at ", record.place[0], " ", record.place[1], " ",
               record.place[2], " ", record.place[3], "\n");
  }
  for (const sources::Unread& each : inventory.unread)
    out += cat(each.field, each.field.empty() ? "" : "  ", "not read: ", each.why.text(), "\n");
  std::fputs(out.c_str(), stdout);
}

#if TAILRACE_HAVE_JSON

int print_json(const std::string& path, const Inventory& inventory) {
  using Json = nlohmann::ordered_json;
  Json json{{"file", path},
            {"format", inventory.format},
            {"calendar", name_of(inventory.calendar)},
            {"grids", Json::array()},
            {"records", Json::array()}};
  for (const sources::Grid& grid : inventory.grids) {
    Json keys = Json::object();
    for (const auto& [key, value] : grid.keys) keys[key] = value;
    json["grids"].push_back({{"shape", grid.shape}, {"keys", keys}});
  }
  for (const Record& record : inventory.records) {
    json["records"].push_back({{"field", record.field},
                               {"level_type", record.level_type},
                               {"level", record.level},
                               {"valid", time_text(record.valid, inventory)},
                               {"reference", time_text(record.reference, inventory)},
                               {"member", record.member < 0 ? Json() : Json(record.member)},
                               {"grid", record.grid},
                               {"place", record.place}});
  }
  for (const sources::Unread& each : inventory.unread)
    json["unread"].push_back({{"field", each.field}, {"why", each.why.text()}});
  std::puts(json.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  return Exit::done;
}

#else

int print_json(const std::string&, const Inventory&) {
  return report("index",
                {Code::unsupported, "--json needs JSON, and this tailrace was built without nlohmann-json"});
}

#endif

/// Reports an error as report() does. But a file of unknown format is no mistake in the command line: returns
/// Exit::failed for it.
int report_file(const Status& status) {
  const int exit = report("index", status);
  return status.code() == Code::format ? Exit::failed : exit;
}

/// Returns the directory of the setting TAILRACE_CACHE.
Result<std::string> cache_of_environment() {
  const Result<Settings> settings = Settings::read("", compat::environment());
  TR_TRY(settings.status());
  return sources::cache_directory(settings->cache);
}

/// Prints how far a scan has come, every second, if standard error is a terminal. The destructor ends the
/// line.
class ProgressLine {
 public:
  ProgressLine() = default;
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (is_begun_) std::fputs("\n", stderr);
  }
  /// Returns the function that prints the progress of a file. The ProgressLine must outlive it.
  sources::Progress of(const std::string& file) {
    if (::isatty(STDERR_FILENO) == 0) return {};
    return [this, file](Bytes done, Bytes of) {
      const auto now = std::chrono::steady_clock::now();
      if (now - last_ < std::chrono::seconds(1)) return;
      last_ = now;
      is_begun_ = true;
      std::fputs(cat("\r", file, ": ", size_text(done), " of ", size_text(of)).c_str(), stderr);
    };
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool is_begun_ = false;
};

/// Opens a file. If the file has just changed, opens it again a little later: by then any further change
/// would show in the file's times.
Result<Opening> look_at_settled(const std::shared_ptr<storage::Target>& target, const std::string& file) {
  Result<Opening> opening = sources::look_at(target, file);
  if (!opening.is_ok() || !opening->identity || opening->is_settled) return opening;
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  return sources::look_at(target, file);
}

Result<Inventory> scan_with_progress(const FrontEnd& front_end, Opening& opening, const std::string& file) {
  ProgressLine line;
  opening.progress = line.of(file);
  Result<Inventory> inventory = front_end.scan(opening);
  opening.progress = {};
  return inventory;
}

Status build_one(const std::shared_ptr<storage::Target>& target, const std::string& file,
                 const std::string& cache) {
  Result<Opening> opening = look_at_settled(target, file);
  TR_TRY(opening.status());
  if (opening->index != nullptr) {
    std::printf("%s: has the index of the stream that wrote it, and needs no inventory\n", file.c_str());
    return {};
  }
  const Result<const FrontEnd*> front_end = sources::front_end_of(*opening);
  TR_TRY(front_end.status());
  const Result<Inventory> inventory = scan_with_progress(**front_end, *opening, file);
  TR_TRY(inventory.status());
  if ((*front_end)->maker == nullptr) {
    print_text(file, *inventory, false);
    std::puts("one header tells all this, and no inventory is kept");
    return {};
  }
  const Result<std::string> place =
      cache.empty() ? Result<std::string>(sources::beside(file)) : sources::place_in(cache, file);
  TR_TRY(place.status());
  TR_TRY(cache.empty() ? sources::keep(**front_end, *opening, *inventory, *place)
                       : sources::keep_in(cache, **front_end, *opening, *inventory));
  print_text(file, *inventory, false);
  std::printf("kept as %s\n", place->c_str());
  return {};
}

}  // namespace

int print_inventory(const std::shared_ptr<storage::Target>& target, const std::string& file,
                    const InventoryRequest& request) {
  const Result<std::string> cache = cache_of_environment();
  if (!cache.is_ok()) return report("index", cache.status());
  const auto source = sources::open(target, file, *cache);
  if (!source.is_ok()) return report_file(source.status());
  if (request.json) return print_json(file, (*source)->inventory());
  print_text(file, (*source)->inventory(), request.records);
  return Exit::done;
}

int build_inventories(const std::shared_ptr<storage::Target>& target, const std::vector<std::string>& files,
                      bool beside) {
  const Result<std::string> cache = beside ? Result<std::string>("") : cache_of_environment();
  if (!cache.is_ok()) return report("index", cache.status());
  if (cache->empty() && !beside)
    return report("index", {Code::settings,
                            "TAILRACE_CACHE=none keeps no inventories; give a directory there, or "
                            "--beside"});
  int exit = Exit::done;
  for (const std::string& file : files) {
    const Status status = build_one(target, file, *cache);
    if (!status.is_ok()) exit = report_file(status);
  }
  return exit;
}

}  // namespace tailrace::cli
