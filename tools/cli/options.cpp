// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "faces/checkpoint/options.hpp"
#include "faces/input/request.hpp"
#include "faces/outofcore/options.hpp"
#include "faces/shared/definition.hpp"
#include "faces/streams/definition/parse.hpp"
#include "ground/base/option_table.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cli {

namespace {

/// The options of one call of the library.
struct CallOptions {
  std::string_view name;  // on the command line
  std::string_view call;
  std::vector<OptionInfo> (*infos)();
};
constexpr CallOptions kCalls[] = {
    {"stream", "tr_stream_create", streams::stream_option_infos},
    {"field", "tr_stream_define", streams::field_option_infos},
    {"axis", "tr_layout_axis", [] { return streams::axis_options.infos(); }},
    {"georeference", "tr_layout_georeference", [] { return streams::georeference_options.infos(); }},
    {"input", "tr_stream_open", [] { return input::open_options.infos(); }},
    {"input_field", "tr_stream_define for a stream that is read",
     [] { return input::field_options.infos(); }},
    {"checkpoint", "tr_checkpoint_create", [] { return checkpoint::option_table.infos(); }},
    {"shared", "tr_shared_open", [] { return shared::shared_options.infos(); }},
    {"global", "tr_global_create", [] { return shared::global_options.infos(); }},
    {"window", "tr_window_open", [] { return outofcore::window_options.infos(); }},
};

/// Returns the tables of one call, or of all if there is no name.
std::string tables_of(const std::string& name, bool markdown) {
  std::string text;
  for (const CallOptions& each : kCalls) {
    if (name.empty()) text += cat(text.empty() ? "" : "\n", each.name, ": options of ", each.call, "\n\n");
    if (name.empty() || name == each.name)
      text += markdown ? options_markdown(each.infos()) : options_text(each.infos(), width_of_output());
  }
  return text;
}

}  // namespace

void add_options(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("options", "Lists the options that calls of the library take");
  const auto name = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const CallOptions& each : kCalls) names.emplace_back(each.name);
  command->add_option("what", *name, "the options of one call alone; otherwise all")
      ->check(CLI::IsMember(names));
  const auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "as the tables in the pages of docs/");
  command->footer(
      "Examples:\n"
      "  tailrace options\n"
      "  tailrace options field\n"
      "  tailrace options field --markdown");
  command->callback([name, markdown, &exit] {
    std::fputs(tables_of(*name, *markdown).c_str(), stdout);
    exit = Exit::done;
  });
}

}  // namespace tailrace::cli
