// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/index/index.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include "commands.hpp"
#include "engine/arrays/type_text.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/text.hpp"
#include "inventory.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>
#endif

namespace tailrace::cli {
namespace {

using streams::IndexContents;
using streams::IndexField;
using streams::IndexRecord;
using streams::IndexStep;
using streams::IndexTail;

struct IndexArguments {
  std::vector<std::string> files;
  bool json = false;
  bool records = false;
  bool build = false;
  bool beside = false;
};

std::string_view name_of(IndexTail tail) {
  switch (tail) {
    case IndexTail::none:
      return "none";
    case IndexTail::torn:
      return "torn";
    case IndexTail::damaged:
      return "damaged";
  }
  return "unknown";
}

void print_text(const std::string& path, const IndexContents& contents, bool records) {
  const streams::IndexHeader& header = contents.header;
  std::string out = cat(path, ": ", header.format, ", ");
  if (!header.time.is_default() && header.time.unit() != "1")
    out += cat("times in ", header.time.unit(), ", ");
  if (header.time.has_base())
    out += cat("base ", format_time(header.base), " (", tailrace::name_of(header.calendar), "), ");
  out += cat("run ", header.run.text());
  if (header.member) out += cat(", member ", *header.member);
  out += cat("\n", contents.steps.size(), contents.steps.size() == 1 ? " step, " : " steps, ",
             counted(contents.data_end(), "byte"), ", ",
             contents.closed ? "closed" : "open: more steps may follow", "\n");
  for (const IndexStep& step : contents.steps) {
    out += cat("step ", step.step, "  ", at_text(header.time, step.lead), "  bytes ", step.begin, "..",
               step.end, "  ", step.records.size(), step.records.size() == 1 ? " record\n" : " records\n");
    if (!records) continue;
    for (const IndexRecord& record : step.records) {
      const IndexField& field = header.fields[static_cast<std::size_t>(record.field)];
      out += cat("  ", field.name, "  ", field.level_type, " ",
                 field.levels[static_cast<std::size_t>(record.level)], "  bytes ", record.offset, "+",
                 record.length, "\n");
    }
  }
  if (contents.tail != IndexTail::none)
    out += cat(name_of(contents.tail), " tail: ", contents.tail_text, "\n");
  std::fputs(out.c_str(), stdout);
}

#if TAILRACE_HAVE_JSON

using Json = nlohmann::ordered_json;

Json json_of(const IndexField& field) {
  Json json{{"name", field.name},
            {"type", tailrace::type_text(field.type)},
            {"shape", field.shape},
            {"level_type", field.level_type},
            {"levels", field.levels}};
  const auto& [whole, start, stop, stride] = field.section;
  if (field.section.is_given())
    json["section"] = {{"whole", whole}, {"start", start}, {"stop", stop}, {"stride", stride}};
  return json;
}

Json json_of(const IndexStep& step, const TimeAxis& times) {
  Json records = Json::array();
  for (const IndexRecord& record : step.records) {
    records.push_back({{"field", record.field},
                       {"level", record.level},
                       {"offset", record.offset},
                       {"length", record.length}});
  }
  Json json{{"step", step.step}};
  if (!times.is_model()) json["lead"] = step.lead;
  if (!times.is_default()) json["time"] = times.number(step.lead);
  json.update({{"begin", step.begin}, {"end", step.end}, {"records", records}});
  return json;
}

int print_json(const std::string& path, const IndexContents& contents) {
  Json json{{"file", path},
            {"format", contents.header.format},
            {"run", contents.header.run.text()},
            {"base", format_time(contents.header.base)},
            {"calendar", tailrace::name_of(contents.header.calendar)},
            {"member", nullptr},
            {"data_begin", contents.header.data_begin},
            {"data_end", contents.data_end()},
            {"closed", contents.closed},
            {"tail", name_of(contents.tail)},
            {"fields", Json::array()},
            {"steps", Json::array()}};
  const TimeAxis& times = contents.header.time;
  if (!times.has_base()) json["base"] = json["calendar"] = nullptr;
  if (!times.is_default()) json["time_units"] = times.units(contents.header.base);
  if (!times.is_default() && !times.is_model()) json["lead_unit"] = times.unit();
  if (contents.header.member) json["member"] = *contents.header.member;
  for (const IndexField& field : contents.header.fields) json["fields"].push_back(json_of(field));
  for (const IndexStep& step : contents.steps) json["steps"].push_back(json_of(step, times));
  std::puts(json.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  return Exit::done;
}

#else

int print_json(const std::string&, const IndexContents&) {
  return report("index",
                {Code::unsupported, "--json needs JSON, and this tailrace was built without nlohmann-json"});
}

#endif

/// Returns the path of an index: `file` itself if it is one, or the index of the data file `file`.
Result<std::string> index_of(storage::Target& target, const std::string& file) {
  const std::string data_path = data_path_of(file);
  if (data_path != file) {
    const Result<bool> is_index = streams::is_index(target, file);
    TR_TRY(is_index.status());
    if (*is_index) return file;
  }
  return streams::find_index(target, data_path);
}

/// True if the data file exists, and no index: then another program has written the file.
bool is_without_index(storage::Target& target, const std::string& path, const std::string& index) {
  const Result<bool> indexed = target.exists(index), there = target.exists(path);
  return indexed.is_ok() && !*indexed && there.is_ok() && *there;
}

int run_index(const IndexArguments& arguments) {
  const std::shared_ptr<storage::Target> target = stores::with_stores(storage::default_target());
  if (arguments.build) return build_inventories(target, arguments.files, arguments.beside);
  if (arguments.files.size() > 1)
    return report("index", {Code::argument, cat("expected one file, got ", arguments.files.size(),
                                                "; only --build takes several")});
  const std::string& file = arguments.files.front();
  const std::string path = data_path_of(file);
  const Result<std::string> index = index_of(*target, file);
  if (!index.is_ok()) return report("index", index.status());
  if (is_without_index(*target, path, *index))
    return print_inventory(target, path, {arguments.json, arguments.records});
  const Result<IndexContents> contents = streams::load_index(*target, *index);
  if (contents.status().error_number() == ENOENT) return report("index", io_error("open", path, ENOENT));
  if (!contents.is_ok()) return report("index", contents.status());
  if (arguments.json) {
    const int printed = print_json(path, *contents);
    if (printed != Exit::done) return printed;
  } else {
    print_text(path, *contents, arguments.records);
  }
  return contents->tail == IndexTail::damaged ? Exit::corrupt : Exit::done;
}

}  // namespace

void add_index(CLI::App& app, int& exit) {
  CLI::App* command =
      app.add_subcommand("index",
                         "Prints which steps of a file are committed, or what a file of another "
                         "program holds");
  const auto arguments = std::make_shared<IndexArguments>();
  command->add_option("FILE", arguments->files, "the data file, or its index; several with --build")
      ->required();
  command->add_flag("--records", arguments->records, "print where each record lies, too");
  command->add_flag("--json", arguments->json, "everything, as JSON");
  CLI::Option* const build = command->add_flag("--build", arguments->build,
                                               "make the inventories of files of other programs, so that "
                                               "opening them takes no time, and keep them where "
                                               "TAILRACE_CACHE says");
  command->add_flag("--beside", arguments->beside, "keep each beside its file")->needs(build);
  command->footer(
      "Exit codes: 0 printed, 1 no index or unreadable, 2 usage, 4 committed steps are damaged\n\n"
      "Examples:\n"
      "  tailrace index out/fc+006.grib2\n"
      "  tailrace index --json out/fc+006.grib2 | jq '.steps[-1].lead'\n"
      "  tailrace index --build boundaries/*.grib");
  command->callback([arguments, &exit] { exit = run_index(*arguments); });
}

}  // namespace tailrace::cli
