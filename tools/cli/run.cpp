// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

#include "../run/launch.hpp"
#include "commands.hpp"
#include "ground/base/options.hpp"

namespace tailrace::cli {
namespace {

struct RunArguments {
  run::Launch launch;
  std::string memory;
  std::string page;
};

int start_run(RunArguments& arguments) {
  for (const auto& [text, bytes, name] : {std::tuple{&arguments.memory, &arguments.launch.memory, "--memory"},
                                          std::tuple{&arguments.page, &arguments.launch.page, "--page"}}) {
    if (text->empty()) continue;
    const Result<Bytes> size = parse_bytes(*text);
    if (!size.is_ok()) {
      report("run", size.status().in(name));
      return Exit::usage;
    }
    *bytes = static_cast<std::uint64_t>(*size);
  }
  const char* const level = std::getenv("TAILRACE_LOG");
  const std::string_view told = level != nullptr ? level : "";
  if (told == "info" || told == "debug") arguments.launch.is_verbose = true;
  return run::launch(arguments.launch);
}

}  // namespace

void add_run(CLI::App& app, int& exit) {
  CLI::App* command =
      app.add_subcommand("run", "Runs a program as it is, with files in memory that its processes share");
  const auto arguments = std::make_shared<RunArguments>();
  command
      ->add_option("--shared", arguments->launch.patterns,
                   "which files, by name: * and ? as in a shell, DIR/** for all below DIR")
      ->required()
      ->allow_extra_args(false);
  command->add_option(
      "--memory", arguments->memory,
      "the most memory that pages take on this node, as 2GiB (default: a quarter of what is available)");
  command->add_option("--page", arguments->page,
                      "what is brought in and stored at once, a power of 2 (default: 1MiB)");
  command->add_option(
      "--group", arguments->launch.group,
      "runs of one group and user on a node share their files (default: the ranks of an MPI job do)");
  command->add_flag("--verbose", arguments->launch.is_verbose, "list what cannot be taken over");
  command->add_option("COMMAND", arguments->launch.command, "the program and its arguments, behind --")
      ->required();
  command->footer(
      "Reads and writes of files whose names match become copies in memory; storage sees large blocks. The "
      "program\n"
      "needs no change, but must be linked dynamically. A summary is printed when the last program has "
      "ended.\n\n"
      "Mappings (mmap) and jobs on several nodes are refused in words. docs/run.md has the rules.\n\n"
      "Exit codes: those of the program; 1 if it was 0 and its files could not be stored, 2 usage\n\n"
      "Examples:\n"
      "  tailrace run --shared '/scratch/*.bin' -- ./a.out input.nml\n"
      "  mpirun -n 4 tailrace run --shared '/scratch/run7/**' --memory 4GiB -- ./model\n"
      "  tailrace run --shared '/scratch/x.db*' -- python3 -c \"import sqlite3;\n"
      "      sqlite3.connect('/scratch/x.db').execute('create table t (a)')\"");
  command->callback([arguments, &exit] { exit = start_run(*arguments); });
}

}  // namespace tailrace::cli
