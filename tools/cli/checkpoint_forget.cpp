// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint.hpp"
#include "faces/restart/recorded.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cli {
namespace {

struct ForgetArguments {
  std::string name;
  std::vector<std::string> files;
};

int run_forget(const ForgetArguments& arguments) {
  const std::shared_ptr<storage::Target> target = storage::default_target();
  for (const std::string& file : arguments.files) {
    // Undo files lie beside the file itself.
    const std::string path = target->behind_links(file);
    const Status forgotten = restart::forget_checkpoint(*target, path, arguments.name);
    if (!forgotten.is_ok()) return report_checkpoint("forget", forgotten);
    std::puts(cat(path, ": no undo files stay for checkpoint ", arguments.name).c_str());
  }
  return Answer::fine;
}

}  // namespace

void add_checkpoint_forget(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand(
      "forget", "Has shared files keep no undo files for a checkpoint that was removed for good");
  const auto arguments = std::make_shared<ForgetArguments>();
  command->add_option("NAME", arguments->name, "the name that the checkpoint had")->required();
  command->add_option("FILE", arguments->files, "shared files that it has recorded")->required();
  command->footer(
      "Undo files (FILE.undo*) of a shared file stay as long as a checkpoint that has recorded it may have "
      "a\n"
      "copy that needs them. Of one that was removed, or has its copies under names of its own, no copy is\n"
      "found: `prune` of another checkpoint names it then. This command gives up the way back to what it "
      "has\n"
      "recorded: the next commit or prune removes undo files that no other one needs, and without another "
      "one\n"
      "they go at once. Refuses while a program has the file or the checkpoint open, and while copies\n"
      "NAME.0, NAME.1, ... that have recorded the file are there.\n\n"
      "Exit codes: 0 done, 2 usage, no undo files stay for it, copies are there, locked, or storage "
      "failed\n\n"
      "Example:\n"
      "  rm run/trial.0 run/trial.1 && tailrace checkpoint forget run/trial run/pages.bin");
  command->callback(
      [arguments, &exit] { exit = answer_of("forget", [&] { return run_forget(*arguments); }); });
}

}  // namespace tailrace::cli
