// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <set>

#include "checkpoint.hpp"
#include "faces/checkpoint/slots.hpp"
#include "faces/restart/recorded.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::cli {
namespace {

using checkpoint::Found;

struct PruneArguments {
  std::string name;
  int keep = 0;
  bool dry_run = false;
};

/// A file to be removed.
struct Removal {
  std::string path;
  std::string why;
};

/// A file with one part of a copy, which it shows by its name: "state.0.r00003".
struct PartFile {
  std::string path;
  std::string copy;
  int part = 0;
};

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Returns all part files of the checkpoint, also those whose copy is gone.
Result<std::vector<PartFile>> part_files(storage::Target& target, const std::string& name) {
  const std::string tidy = storage::tidy_path(name);
  const std::size_t slash = name.rfind('/');
  const std::string begin = name.substr(0, slash == std::string::npos ? 0 : slash + 1);
  const std::string file = cat(name.substr(begin.size()), ".");
  const Result<std::vector<std::string>> names = target.list(storage::parent_of(tidy));
  TR_TRY(names.status());
  std::vector<PartFile> found;
  for (const std::string& each : *names) {
    const std::size_t dot = each.rfind(".r");
    if (!each.starts_with(file) || dot == std::string::npos || dot < file.size()) continue;
    std::string_view copy = std::string_view(each).substr(file.size(), dot - file.size());
    if (copy.starts_with('g')) copy.remove_prefix(1);
    const std::string_view number = std::string_view(each).substr(dot + 2);
    int part = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), part);
    if (!is_number(copy) || !is_number(number) || error != std::errc{} ||
        end != number.data() + number.size())
      continue;
    found.push_back({cat(begin, each), cat(begin, each.substr(0, dot)), part});
  }
  return found;
}

/// Returns the copies to be removed: the damaged ones, and the whole ones but for the newest `keep`. Returns
/// Code::corrupt if no copy is whole.
Result<std::vector<Removal>> copies_to_remove(storage::Target& target, const std::vector<Found>& all,
                                              const PruneArguments& arguments) {
  std::vector<Removal> removals;
  int whole = 0;
  for (const Found& found : all) {
    if (found.status.is_ok()) {
      if (++whole > arguments.keep)
        removals.push_back({found.path, cat("generation ", found.generation, ", whole")});
    } else if (is_damage(target, found)) {
      removals.push_back({found.path, cat("broken: ", found.status.text())});
    } else if (!found.missing) {
      return found.status.in("nothing was removed, as it is not known whether a copy is whole");
    }
  }
  if (whole > 0) return removals;
  return Status(Code::corrupt, cat(arguments.name,
                                   ": no copy is whole, and something may be saved of a broken one: nothing "
                                   "was removed"));
}

/// Returns the part files to be removed: those of removed copies, and those that no copy counts as its own.
std::vector<Removal> parts_to_remove(storage::Target& target, const std::vector<PartFile>& parts,
                                     const std::set<std::string>& removed) {
  std::vector<Removal> removals;
  for (const PartFile& part : parts) {
    if (removed.contains(part.copy)) {
      removals.push_back({part.path, "its part"});
      continue;
    }
    const Result<checkpoint::Header> header = checkpoint::read_header(target, part.copy);
    const bool gone = !header.is_ok() && header.status().error_number() == ENOENT;
    if (gone || (header.is_ok() && (header->mode != checkpoint::Mode::local || part.part >= header->parts)))
      removals.push_back({part.path, "orphaned part"});
  }
  return removals;
}

/// Returns the undo files to be removed: those that no remaining copy needs to bring files back. Says beside
/// shared files that nothing leads further back any more.
Result<std::vector<Removal>> undo_files_to_remove(storage::Target& target, const std::string& name,
                                                  std::vector<std::string> copies,
                                                  const std::set<std::string>& removed, bool dry_run) {
  std::erase_if(copies, [&](const std::string& path) { return removed.contains(path); });
  const Result<std::vector<journal::UndoName>> useless = checkpoint::useless_undo_files(
      target, name, copies, [](const checkpoint::Copy& copy) { return restart::oldest_undo(copy); });
  TR_TRY(useless.status());
  std::vector<Removal> removals;
  for (const journal::UndoName& undo : *useless) removals.push_back({undo.path, "of no copy any more"});
  const auto flushes = restart::useless_flush_files(target, name, copies);
  TR_TRY(flushes.status());
  for (const restart::UselessFlushFiles& of : *flushes) {
    const Status said = dry_run ? Status() : journal::raise_lowest_kept(target, of.path, of.open, of.needed);
    if (said.code() == Code::state) {
      std::puts(cat("undo files of ", of.path, " stay: ", said.text()).c_str());
      continue;
    }
    TR_TRY(said);
    for (const std::string& path : of.files) removals.push_back({path, "of no copy any more"});
  }
  return removals;
}

/// Says why undo files of shared files stay.
Status print_absent(storage::Target& target, const std::string& name,
                    const std::vector<std::string>& copies) {
  const Result<std::vector<restart::AbsentCheckpoint>> absent =
      restart::absent_checkpoints(target, name, copies);
  TR_TRY(absent.status());
  for (const restart::AbsentCheckpoint& each : *absent)
    std::puts(cat("undo files of ", each.path, " stay for checkpoint ", each.name,
                  ", and no copy under its name has recorded that file: `tailrace checkpoint forget ",
                  each.name, " ", each.path, "` if it has none elsewhere")
                  .c_str());
  return {};
}

Status remove_all(storage::Target& target, const std::vector<Removal>& removals, bool dry_run) {
  for (const Removal& each : removals) {
    if (!dry_run) TR_TRY(storage::remove_if_there(target, each.path).status());
    std::puts(cat(dry_run ? "would remove " : "removed ", each.path, " (", each.why, ")").c_str());
  }
  if (dry_run || removals.empty()) return {};
  return target.sync_directory_of(removals.front().path);
}

Status prune(storage::Target& target, const PruneArguments& arguments) {
  // The lock is held to the end: no program saves meanwhile.
  const Result<std::shared_ptr<void>> lock = target.lock(checkpoint::lock_path(arguments.name));
  TR_TRY(lock.status());
  const Result<std::vector<std::string>> paths = checkpoint::find_copies(target, arguments.name);
  TR_TRY(paths.status());
  if (paths->empty())
    return {Code::io, cat(arguments.name, ": no checkpoint has this name (", arguments.name, ".0, ",
                          arguments.name, ".1, ...)")};
  const Result<std::vector<Removal>> copies =
      copies_to_remove(target, checkpoint::look_at(target, *paths), arguments);
  TR_TRY(copies.status());
  const Result<std::vector<PartFile>> files = part_files(target, arguments.name);
  TR_TRY(files.status());
  std::set<std::string> removed;
  for (const Removal& copy : *copies) removed.insert(copy.path);
  const std::vector<Removal> parts = parts_to_remove(target, *files, removed);
  const Result<std::vector<Removal>> undo =
      undo_files_to_remove(target, arguments.name, *paths, removed, arguments.dry_run);
  TR_TRY(undo.status());
  // The file with a copy's header is removed first, durably. So whenever this program ends, no half of a copy
  // counts. What is left then are parts and undo files of no copy, which the next prune removes.
  TR_TRY(remove_all(target, *copies, arguments.dry_run));
  TR_TRY(remove_all(target, parts, arguments.dry_run));
  TR_TRY(remove_all(target, *undo, arguments.dry_run));
  if (copies->empty() && parts.empty() && undo->empty())
    std::puts(cat(arguments.name, ": nothing to remove").c_str());
  return print_absent(target, arguments.name, *paths);
}

int run_prune(const PruneArguments& arguments) {
  const std::shared_ptr<storage::Target> target = storage::default_target();
  const Status status = prune(*target, arguments);
  return status.is_ok() ? Answer::fine : report_checkpoint("prune", status);
}

}  // namespace

void add_checkpoint_prune(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("prune", "Removes old and broken copies");
  const auto arguments = std::make_shared<PruneArguments>();
  command->add_option("NAME", arguments->name, "the name of the checkpoint")->required();
  command->add_option("--keep", arguments->keep, "how many of the newest whole copies stay")
      ->required()
      ->check(CLI::Range(1, 1'000'000'000));
  command->add_flag("--dry-run", arguments->dry_run, "only print what would be removed");
  command->footer(
      "Copies that keep_every= has set aside (NAME.gN) count like the others. The newest whole copy always\n"
      "stays; where none is whole nothing is removed. Parts and undo files (NAME.uN...) that no copy needs "
      "any\n"
      "more go, too. Elements are not read: verify first. Refuses while a program has the checkpoint "
      "open.\n\n"
      "Exit codes: 0 done, 1 no copy is whole, 2 usage, locked, or storage failed\n\n"
      "Examples:\n"
      "  tailrace checkpoint prune run/state --keep 3 --dry-run\n"
      "  tailrace checkpoint verify run/state && tailrace checkpoint prune run/state --keep 1");
  command->callback([arguments, &exit] { exit = answer_of("prune", [&] { return run_prune(*arguments); }); });
}

}  // namespace tailrace::cli
