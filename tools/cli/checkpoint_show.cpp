// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstdio>

#include "checkpoint.hpp"
#include "engine/arrays/type_text.hpp"
#include "faces/restart/recorded.hpp"
#include "ground/base/text.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>
#endif

namespace tailrace::cli {
namespace {

using checkpoint::Copy;
using checkpoint::CopyReader;
using checkpoint::Found;
using checkpoint::ItemInfo;
using restart::Recorded;

/// One line of the table.
struct Row {
  Found found;
  Result<checkpoint::Header> header = Status(Code::io, "not read");
  Bytes bytes = 0;

  [[nodiscard]] std::string_view state() const {
    if (!found.status.is_ok()) return "broken";
    return header.is_ok() && header->committed ? "committed" : "whole";
  }
};

std::vector<Row> rows_of(storage::Target& target, const std::vector<std::string>& paths) {
  std::vector<Row> rows;
  for (Found& found : checkpoint::look_at(target, paths)) {
    Row row;
    row.header = checkpoint::read_header(target, found.path);
    row.bytes = bytes_of_files(target, found.path);
    row.found = std::move(found);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Prints a table. Each column is as wide as its widest entry.
void print_table(const std::vector<std::vector<std::string>>& table) {
  std::vector<std::size_t> widths;
  for (const auto& line : table) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : table) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += line[i];
      if (i + 1 < line.size()) out.append(widths[i] + 2 - line[i].size(), ' ');
    }
    std::puts(out.c_str());
  }
}

void print_text(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> table = {
      {"COPY", "GENERATION", "STATE", "SAVED", "PARTS", "MODE", "BYTES"}};
  for (const Row& row : rows) {
    const bool known = row.header.is_ok();
    table.push_back({row.found.path, known ? cat(row.found.generation) : "-", std::string(row.state()),
                     known ? saved_text(row.header->saved_at) : "-", known ? cat(row.header->parts) : "-",
                     known ? std::string(mode_text(row.header->mode)) : "-", cat(row.bytes)});
  }
  print_table(table);
  for (const Row& row : rows) {
    if (!row.found.status.is_ok()) std::printf("broken: %s\n", row.found.status.text().c_str());
  }
}

#if TAILRACE_HAVE_JSON
using Json = nlohmann::ordered_json;

void print(const Json& json) { std::puts(json.dump(1, ' ', false, Json::error_handler_t::replace).c_str()); }

Status print_json(const std::vector<Row>& rows) {
  Json copies = Json::array();
  for (const Row& row : rows) {
    Json json{{"path", row.found.path}, {"state", row.state()}, {"bytes", row.bytes}};
    if (row.header.is_ok()) {
      json["generation"] = row.found.generation;
      json["run"] = row.header->id.run.text();
      json["saved_at"] = row.header->saved_at;
      json["parts"] = row.header->parts;
      json["mode"] = mode_text(row.header->mode);
    }
    if (!row.found.status.is_ok()) json["why"] = row.found.status.text();
    copies.push_back(std::move(json));
  }
  print(copies);
  return {};
}
#else
Status no_json() {
  return {Code::unsupported, "--json needs JSON, and this tailrace was built without nlohmann-json"};
}
Status print_json(const std::vector<Row>&) { return no_json(); }
#endif

int list(const std::vector<std::string>& names, bool json) {
  const std::shared_ptr<storage::Target> target = storage::default_target();
  std::vector<Row> all;
  int answer = Answer::fine;
  for (const std::string& name : names) {
    const Result<std::vector<std::string>> paths = copies_named(*target, name);
    if (!paths.is_ok()) {
      answer = report_checkpoint("ls", paths.status());
      continue;
    }
    for (Row& row : rows_of(*target, *paths)) all.push_back(std::move(row));
  }
  if (json) {
    const Status status = print_json(all);
    return status.is_ok() ? answer : report_checkpoint("ls", status);
  }
  if (!all.empty()) print_text(all);
  return answer;
}

struct ShowArguments {
  std::string name;
  Index values = 0;
  bool parts = false;
  bool json = false;
};

/// The bytes that an item takes in the files of a copy.
struct Stored {
  Bytes bytes = 0;
  bool compressed = false;
};

Stored stored_of(const Copy& copy, std::size_t item) {
  Stored stored;
  for (const checkpoint::Table& table : copy.tables) {
    for (const checkpoint::PartItem& share : table.items) {
      if (static_cast<std::size_t>(share.item) != item) continue;
      for (const checkpoint::Block& block : share.blocks) stored.bytes += block.stored;
    }
  }
  const ItemInfo& info = copy.directory.items[item];
  stored.compressed = stored.bytes < info.elements() * size_of(info.type);
  return stored;
}

/// Returns the name of the coding of a copy's first part. All parts of a copy that the library has written
/// have the same one.
std::string_view coding_text(const Copy& copy) {
  if (copy.tables.empty()) return "none";
  switch (copy.tables.front().coding) {
    case checkpoint::Coding::raw:
      return "none";
    case checkpoint::Coding::lz4:
      return "lz4";
    case checkpoint::Coding::zstd:
      return "zstd";
  }
  return "unknown";
}

/// Returns the first `most` values of an item as texts.
Result<std::vector<std::string>> first_values(CopyReader& reader, const Copy& copy, std::size_t item,
                                              Index most) {
  const ItemInfo& info = copy.directory.items[item];
  const Index count = std::min(most, info.elements());
  const Bytes element = size_of(info.type);
  ByteVector bytes(static_cast<std::size_t>(count * element));
  TR_TRY(read_elements(reader, copy, static_cast<int>(item), 0, count, bytes.data()));
  std::vector<std::string> texts;
  for (Index i = 0; i < count; ++i) texts.push_back(value_text(info.type, bytes.data() + i * element));
  return texts;
}

Status show_items(const Copy& copy, CopyReader& reader, Index values) {
  for (std::size_t i = 0; i < copy.directory.items.size(); ++i) {
    const ItemInfo& info = copy.directory.items[i];
    const Stored stored = stored_of(copy, i);
    std::string line =
        cat("  ", info.name, "  ", info.text(), "  ", counted(info.elements() * size_of(info.type), "byte"));
    if (stored.compressed) line += cat(", stored in ", stored.bytes);
    std::puts(line.c_str());
    if (values == 0) continue;
    const Result<std::vector<std::string>> texts = first_values(reader, copy, i, values);
    TR_TRY(texts.status());
    std::string out = "   ";
    for (const std::string& text : *texts) out += cat(" ", text);
    std::puts(out.c_str());
  }
  return {};
}

/// Prints the positions of the streams and files that a run that goes on from this copy continues.
void show_outputs(const Recorded& outputs) {
  if (!outputs.streams.empty() || !outputs.files.empty()) std::puts("outputs that go on");
  for (const streams::Position& stream : outputs.streams)
    std::puts(cat("  stream ", stream.pattern, "  at ", streams::text_of(stream)).c_str());
  for (const journal::Position& file : outputs.files) {
    std::string line = cat("  file ", file.path, "  at byte ", file.position, " of ", file.size);
    if (!file.undo.empty())
      line += cat(", ", file.undo.size(), file.undo.size() == 1 ? " undo file" : " undo files");
    std::puts(line.c_str());
  }
}

/// Returns the positions of streams and files that a copy has recorded. After an error the caller still shows
/// the rest of the copy.
Result<Recorded> outputs_of(storage::Target& target, const Copy& copy) {
  Result<Recorded> outputs = Recorded::unpack(copy.directory.outputs);
  TR_TRY(outputs.status());
  TR_TRY(restart::find_undo_files(target, copy, *outputs));
  return outputs;
}

Bytes data_bytes(const Copy& copy) {
  Bytes bytes = 0;
  for (const ItemInfo& item : copy.directory.items) bytes += item.elements() * size_of(item.type);
  return bytes;
}

Status show_text(storage::Target& target, const Copy& copy, const ShowArguments& arguments) {
  CopyReader reader(target, copy);
  Bytes stored = 0;
  for (std::size_t i = 0; i < copy.directory.items.size(); ++i) stored += stored_of(copy, i).bytes;
  std::printf("%s: generation %lld of run %s, saved %s, %s\n", copy.path.c_str(),
              static_cast<long long>(copy.generation()), copy.header.id.run.text().c_str(),
              saved_text(copy.header.saved_at).c_str(),
              copy.header.committed ? "committed" : "whole, but not committed");
  std::printf("%s\n", cat(counted(copy.header.parts, "part"), ", mode ", mode_text(copy.header.mode),
                          ", compression ", coding_text(copy), ", ", counted(data_bytes(copy), "byte"),
                          " of elements, stored in ", stored)
                          .c_str());
  std::printf("%zu items\n", copy.directory.items.size());
  TR_TRY(show_items(copy, reader, arguments.values));
  const Result<Recorded> outputs = outputs_of(target, copy);
  if (outputs.is_ok())
    show_outputs(*outputs);
  else
    std::puts(cat("outputs: ", outputs.status().text()).c_str());
  if (!arguments.parts) return {};
  for (std::size_t part = 0; part < copy.tables.size(); ++part) {
    const checkpoint::PartPlace& place = copy.directory.parts[part];
    std::puts(cat("part ", part, "  ",
                  checkpoint::part_path(copy.path, copy.header.mode, static_cast<int>(part)), "  bytes ",
                  place.offset, "+", place.bytes)
                  .c_str());
    for (const checkpoint::PartItem& share : copy.tables[part].items) {
      std::puts(cat("  ", copy.directory.items[static_cast<std::size_t>(share.item)].name, "  bytes ",
                    place.offset + share.offset, "+", share.bytes, "  ",
                    counted(share.blocks.size(), "block"))
                    .c_str());
    }
  }
  return {};
}

#if TAILRACE_HAVE_JSON
Json parts_json(const Copy& copy) {
  Json parts = Json::array();
  for (std::size_t part = 0; part < copy.tables.size(); ++part) {
    Json items = Json::array();
    for (const checkpoint::PartItem& share : copy.tables[part].items) {
      items.push_back({{"item", copy.directory.items[static_cast<std::size_t>(share.item)].name},
                       {"offset", copy.directory.parts[part].offset + share.offset},
                       {"bytes", share.bytes},
                       {"blocks", share.blocks.size()}});
    }
    parts.push_back({{"file", checkpoint::part_path(copy.path, copy.header.mode, static_cast<int>(part))},
                     {"offset", copy.directory.parts[part].offset},
                     {"bytes", copy.directory.parts[part].bytes},
                     {"items", std::move(items)}});
  }
  return parts;
}

void add_outputs(Json& json, const Recorded& outputs) {
  json["streams"] = Json::array();
  for (const streams::Position& stream : outputs.streams) {
    Json added{{"pattern", stream.pattern}, {"steps", stream.steps}};
    if (stream.lead && !stream.time.is_model()) added["lead"] = *stream.lead;
    if (stream.lead && stream.time.is_model()) added["time"] = TimeAxis::time_of(*stream.lead);
    if (!stream.time.is_default())
      added[stream.time.is_model() ? "time_units" : "lead_unit"] = stream.time.unit();
    json["streams"].push_back(std::move(added));
  }
  json["files"] = Json::array();
  for (const journal::Position& file : outputs.files) {
    Json undo = Json::array();
    for (const journal::UndoName& each : file.undo) undo.push_back(each.path);
    json["files"].push_back({{"path", file.path},
                             {"position", file.position},
                             {"bytes", file.size},
                             {"undo_files", std::move(undo)}});
  }
}

Status show_json(storage::Target& target, const Copy& copy, const ShowArguments& arguments) {
  CopyReader reader(target, copy);
  Json json{{"path", copy.path},
            {"generation", copy.generation()},
            {"run", copy.header.id.run.text()},
            {"saved_at", copy.header.saved_at},
            {"committed", copy.header.committed},
            {"parts", copy.header.parts},
            {"mode", mode_text(copy.header.mode)},
            {"compression", coding_text(copy)},
            {"items", Json::array()}};
  for (std::size_t i = 0; i < copy.directory.items.size(); ++i) {
    const ItemInfo& info = copy.directory.items[i];
    Json item{{"name", info.name},
              {"type", type_text(info.type)},
              {"shape", info.shape},
              {"bytes", info.elements() * size_of(info.type)},
              {"stored", stored_of(copy, i).bytes}};
    if (arguments.values > 0) {
      const Result<std::vector<std::string>> texts = first_values(reader, copy, i, arguments.values);
      TR_TRY(texts.status());
      item["values"] = *texts;
    }
    json["items"].push_back(std::move(item));
  }
  const Result<Recorded> outputs = outputs_of(target, copy);
  if (outputs.is_ok())
    add_outputs(json, *outputs);
  else
    json["outputs"] = outputs.status().text();
  if (arguments.parts) json["part_list"] = parts_json(copy);
  print(json);
  return {};
}
#else
Status show_json(storage::Target&, const Copy&, const ShowArguments&) { return no_json(); }
#endif

int show(const ShowArguments& arguments) {
  const std::shared_ptr<storage::Target> target = storage::default_target();
  const Result<Copy> copy = newest_copy(*target, arguments.name);
  if (!copy.is_ok()) return report_checkpoint("show", copy.status());
  const Status status =
      arguments.json ? show_json(*target, *copy, arguments) : show_text(*target, *copy, arguments);
  return status.is_ok() ? Answer::fine : report_checkpoint("show", status);
}

}  // namespace

void add_checkpoint_ls(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("ls", "Lists the copies of checkpoints, the newest first");
  const auto names = std::make_shared<std::vector<std::string>>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *names, "names of checkpoints, or paths of copies")->required();
  command->add_flag("--json", *json, "as JSON");
  command->footer(
      "A copy is committed, whole (everything is there, but the program has not come to say so) or broken,\n"
      "with the reason. The elements themselves are not read: see verify.\n\n"
      "Exit codes: 0 listed, 2 usage, or nothing is there\n\n"
      "Examples:\n"
      "  tailrace checkpoint ls run/state\n"
      "  tailrace checkpoint ls --json run/state | jq '.[0].generation'");
  command->callback([names, json, &exit] { exit = answer_of("ls", [&] { return list(*names, *json); }); });
}

void add_checkpoint_show(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand(
      "show", "Prints what is in a copy: items, types, shapes, bytes, and where outputs go on");
  const auto arguments = std::make_shared<ShowArguments>();
  command
      ->add_option("NAME-or-PATH", arguments->name,
                   "a checkpoint, of which the newest whole copy is taken, or one copy")
      ->required();
  command->add_option("--values", arguments->values, "print the first N values of each item")
      ->check(CLI::Range(Index{0}, Index{1'000'000}));
  command->add_flag("--parts", arguments->parts, "print where each part lies");
  command->add_flag("--json", arguments->json, "as JSON");
  command->footer(
      "Of each file that goes on it tells how many undo files (NAME.uN...) bring it back; --json has their "
      "names.\n\n"
      "Exit codes: 0 printed, 1 no copy is whole, 2 usage, or unreadable\n\n"
      "Examples:\n"
      "  tailrace checkpoint show run/state\n"
      "  tailrace checkpoint show run/state.1 --values 5 --parts");
  command->callback([arguments, &exit] { exit = answer_of("show", [&] { return show(*arguments); }); });
}

}  // namespace tailrace::cli
