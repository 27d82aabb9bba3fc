// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/settings/settings.hpp"

#include <cstdio>
#include <memory>

#include "commands.hpp"

namespace tailrace::cli {

void add_settings(CLI::App& app, int& exit) {
  CLI::App* command =
      app.add_subcommand("settings", "Lists all settings: name, default, type, unit and meaning");
  const auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "as the page docs/settings.md");
  command->footer(
      "Examples:\n"
      "  tailrace settings\n"
      "  tailrace settings --markdown > docs/settings.md");
  command->callback([markdown, &exit] {
    const std::string text = *markdown ? settings_markdown() : settings_text();
    std::fputs(text.c_str(), stdout);
    exit = Exit::done;
  });
}

}  // namespace tailrace::cli
