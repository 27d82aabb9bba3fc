// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "../report/follow.hpp"
#include "commands.hpp"

namespace tailrace::cli {

namespace {

int run_top(const reports::FollowRequest& request) {
  const Result<reports::Followed> followed = guarded([&] { return reports::follow(request); });
  if (!followed.is_ok()) return report("top", followed.status());
  // The shell is to see that a signal has ended the command, so that its loops end, too.
  if (followed->signal != 0) std::raise(followed->signal);
  return followed->state == reports::State::failed ? Exit::failed : Exit::done;
}

}  // namespace

void add_top(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("top", "Follows a running job by its report");
  const auto request = std::make_shared<reports::FollowRequest>();
  command->add_option("REPORT", request->path, "the file that TAILRACE_REPORT names")->required();
  command->add_flag(
      "--lines", request->lines,
      "prints a line for each news in place of drawing on the terminal; so does output that is no terminal");
  command->add_flag(
      "--wait", request->waits,
      "waits for a file that is not there yet, or that is of a run that has ended: for the next run's");
  command->add_option("--interval", request->interval, "seconds between two looks (default: 1)")
      ->check(CLI::Validator(
          [](std::string& text) {
            // No range refuses what is no number: every comparison with it is false.
            return std::isfinite(std::strtod(text.c_str(), nullptr)) ? std::string() : "must be a number";
          },
          ""))
      ->check(CLI::Range(0.05, 3600.0));
  command->footer(
      "Ends when the job has ended. q or Ctrl-C ends it before; the job does not notice.\n\n"
      "Exit codes: 0 the job has ended, 1 it failed, or there is no report, 2 usage, or the file is no "
      "report,\n"
      "4 it ends in the middle\n\n"
      "Examples:\n"
      "  tailrace top run.json\n"
      "  tailrace top run.json --wait --lines --interval 60 >> run.log &");
  command->callback([request, &exit] { exit = run_top(*request); });
}

}  // namespace tailrace::cli
