// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "commands.hpp"

int main(int argc, char** argv) {
  namespace cli = tailrace::cli;
  CLI::App app("Looks after the files that programs with Tailrace write. Needs no MPI.", "tailrace");
  app.set_version_flag("--version", TAILRACE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done (wait: durable), 1 failed or locked, 2 usage, 3 timeout, 4 corrupt, 5 ended "
      "without the step.\n"
      "tailrace checkpoint: 0 fine, 1 damaged or different, 2 usage, unreadable or locked.\n"
      "`tailrace COMMAND --help` has examples.");
  int exit = cli::Exit::done;
  cli::add_wait(app, exit);
  cli::add_index(app, exit);
  cli::add_plan(app, exit);
  cli::add_repair(app, exit);
  cli::add_verify(app, exit);
  cli::add_checkpoint(app, exit);
  cli::add_settings(app, exit);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 has codes of its own above 100; a shell script should have to know one for all of them.
    return app.exit(error) == 0 ? cli::Exit::done : cli::Exit::usage;
  }
  return exit;
}
