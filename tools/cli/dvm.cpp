// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cli {
namespace {

/// Becomes the translator, which is a Python package beside the command: TAILRACE_DVM_DIRECTORY is its place
/// from there. Returns only if there is no Python.
int become_translator(const std::vector<std::string>& words) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path package = (own / TAILRACE_DVM_DIRECTORY).lexically_normal();
  if (!fs::exists(package / "tailrace_dvm", error)) {
    return report("dvm", Status(Code::state, cat(package.string(),
                                                 "/tailrace_dvm: the translator is not installed "
                                                 "there; it comes with `cmake --install`")));
  }
  const char* const before = std::getenv("PYTHONPATH");
  const std::string path =
      before == nullptr || *before == '\0' ? package.string() : cat(package.string(), ":", before);
  ::setenv("PYTHONPATH", path.c_str(), 1);
  ::setenv("PYTHONDONTWRITEBYTECODE", "1", 0);  // the tree may be somebody else's
  std::vector<std::string> command = {"python3", "-m", "tailrace_dvm"};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  return report("dvm", Status(Code::io, cat("python3 cannot be started: ", std::strerror(errno),
                                            "; the translator needs Python 3.9 or later on the PATH")));
}

}  // namespace

void add_dvm(CLI::App& app, int& exit) {
  CLI::App* command =
      app.add_subcommand("dvm", "Translates, compiles and starts programs with directives of DVM");
  command->prefix_command();
  command->set_help_flag();  // the translator's own
  command->footer("`tailrace dvm --help` has examples. docs/dvm.md says what is supported.");
  command->callback([command, &exit] { exit = become_translator(command->remaining()); });
}

}  // namespace tailrace::cli
