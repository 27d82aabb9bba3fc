// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "commands.hpp"
#include "ground/base/text.hpp"

namespace {

/// Checks the name of the command. Returns Exit::usage if it is unknown, after a line with the nearest name.
/// CLI11 itself would only call it an unexpected argument.
int check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return tailrace::cli::Exit::done;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::count(names.begin(), names.end(), argv[1]) != 0) return tailrace::cli::Exit::done;
  const std::string near = tailrace::nearest(argv[1], names);
  std::fprintf(stderr, "tailrace: unknown command '%s'; %s`tailrace --help` lists them\n", argv[1],
               near.empty() ? "" : tailrace::cat("did you mean '", near, "'? ").c_str());
  return tailrace::cli::Exit::usage;
}

/// Returns Exit::failed, after a line, if standard output has not taken all that was printed: a disk is full,
/// or a pipe is closed.
int check_output() {
  const bool had_failed = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !had_failed) return tailrace::cli::Exit::done;
  std::fprintf(stderr, "tailrace: standard output: %s\n",
               had_failed ? "not all was written" : std::strerror(errno));
  return tailrace::cli::Exit::failed;
}

}  // namespace

int main(int argc, char** argv) {
  namespace cli = tailrace::cli;
  CLI::App app("Looks after the files that programs with Tailrace write. Needs no MPI.", "tailrace");
  app.set_version_flag("--version", TAILRACE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done (wait: durable), 1 failed or locked, 2 usage, 3 timeout, 4 corrupt, 5 ended "
      "without the step.\n"
      "tailrace checkpoint: 0 fine, 1 damaged or different, 2 usage, unreadable or locked.\n"
      "tailrace run-state: 0 all at the checkpoint, 1 to restore, 2 usage, unreadable or locked, 4 lost.\n"
      "`tailrace COMMAND --help` has examples.");
  int exit = cli::Exit::done;
  cli::add_wait(app, exit);
  cli::add_index(app, exit);
  cli::add_plan(app, exit);
  cli::add_repair(app, exit);
  cli::add_verify(app, exit);
  cli::add_checkpoint(app, exit);
  cli::add_run_state(app, exit);
#ifdef TAILRACE_HAVE_RUN
  cli::add_run(app, exit);
#endif
  cli::add_dvm(app, exit);
#ifdef TAILRACE_HAVE_JSON
  cli::add_report(app, exit);
  cli::add_top(app, exit);
#endif
  cli::add_settings(app, exit);
  cli::add_options(app, exit);
  if (const int unknown = check_command(app, argc, argv); unknown != cli::Exit::done) return unknown;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 has codes above 100 for several errors. A shell script needs only one code for all of them.
    exit = app.exit(error) == 0 ? cli::Exit::done : cli::Exit::usage;
  }
  return exit == cli::Exit::done ? check_output() : exit;
}
