// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/restart/run_state.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "checkpoint.hpp"
#include "commands.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>
#endif

namespace tailrace::cli {
namespace {

using checkpoint::Copy;
using checkpoint::Found;
using restart::Outlook;
using restart::OutputState;
using restart::Recorded;

/// The exit codes of this command. Documented in --help and docs/cli.md.
enum State : int {
  at_generation = 0,
  to_restore = 1,
  unread = 2,  // the command line makes no sense, a file cannot be read or written, or a program runs
  lost = 4,    // an output cannot be brought to the generation
};

struct RunStateArguments {
  std::string name;
  std::string directory;
  bool restore = false;
  bool any_run = false;
  bool leave_lost = false;
  bool json = false;
  std::int64_t generation = 0;  // to which the command line wants to go; 0 if it does not say
};

/// A checkpoint, its copies, and the outputs that one of them has recorded.
struct Run {
  std::string name;
  std::vector<Found> copies;  // the newest first
  Copy copy;
  Recorded recorded;
  std::vector<OutputState> outputs;
  std::string only;      // the path of the copy that the command line names; "" if it names the checkpoint
  bool is_held = false;  // this command has the checkpoint's lock
  bool restored = false;
  std::vector<std::string> aside = {};           // new names of newer copies
  std::map<std::string, std::string> left = {};  // shared files that could not be brought back, and why
};

int report_run(const Status& status) {
  std::fprintf(stderr, "tailrace run-state: %s\n", status.text().c_str());
  return status.code() == Code::corrupt ? State::lost : State::unread;
}

/// Returns the name of the checkpoint to which a copy belongs: "state" for "state.0" and for "state.g12".
/// Returns "" for other names.
std::string checkpoint_of(const std::string& copy) {
  const std::size_t dot = copy.rfind('.');
  if (dot == std::string::npos || dot + 1 == copy.size()) return {};
  const std::size_t number = copy[dot + 1] == 'g' ? dot + 2 : dot + 1;
  const bool is_number =
      number < copy.size() && copy.find_first_not_of("0123456789", number) == std::string::npos;
  return is_number ? copy.substr(0, dot) : std::string();
}

/// Returns the only checkpoint in the working directory.
Result<std::string> checkpoint_here(storage::Target& target, const std::string& directory) {
  const Result<std::vector<std::string>> names = target.list(".");
  TR_TRY(names.status());
  std::set<std::string> found;
  for (const std::string& each : *names) {
    const std::string name = checkpoint_of(each);
    if (!name.empty() && checkpoint::read_header(target, each).is_ok()) found.insert(name);
  }
  if (found.size() == 1) return *found.begin();
  if (found.empty()) return Status(Code::io, cat(directory, ": no checkpoint lies here; name one"));
  std::string all;
  for (const std::string& name : found) all += cat(all.empty() ? "" : ", ", name);
  return Status(Code::argument,
                cat(directory, ": has the checkpoints ", all, "; name one: `tailrace run-state -C ",
                    directory, " ", *found.begin(), "`"));
}

/// Finds the copy to look at: that of the given path, or the newest whole one. Goes to the directory in which
/// the program ran.
Result<Run> find_run(storage::Target& target, const RunStateArguments& arguments) {
  Run run;
  std::error_code failed;
  if (!arguments.directory.empty()) std::filesystem::current_path(arguments.directory, failed);
  if (failed) return Status(Code::io, cat(arguments.directory, ": ", failed.message()));
  const bool is_copy = checkpoint::read_header(target, arguments.name).is_ok();
  run.name = is_copy ? checkpoint_of(arguments.name) : arguments.name;
  Result<std::vector<std::string>> paths = checkpoint::find_copies(target, run.name);
  TR_TRY(paths.status());
  const Result<storage::Kind> kind = target.kind_of(arguments.name);
  if (paths->empty() && kind.is_ok() && *kind == storage::Kind::directory) {
    std::filesystem::current_path(arguments.name, failed);
    if (failed) return Status(Code::io, cat(arguments.name, ": ", failed.message()));
    Result<std::string> name = checkpoint_here(target, arguments.name);
    TR_TRY(name.status());
    run.name = std::move(*name);
    paths = checkpoint::find_copies(target, run.name);
    TR_TRY(paths.status());
  }
  if (is_copy && arguments.generation > 0)
    return Status(Code::argument,
                  cat(arguments.name, " is one copy: --to goes with the name of a checkpoint"));
  if (is_copy) {
    const auto named = std::ranges::find(*paths, storage::tidy_path(arguments.name), storage::tidy_path);
    if (run.name.empty() || named == paths->end())
      return Status(Code::argument, cat(arguments.name,
                                        ": is not called NAME.0, NAME.1, ...: the lock and the undo files of "
                                        "its checkpoint cannot be found"));
    run.only = *named;
  }
  if (paths->empty())
    return Status(Code::io, cat(run.name, ": no checkpoint has this name (", run.name, ".0, ", run.name,
                                ".1, ...), and no directory"));
  run.copies = checkpoint::look_at(target, *paths);
  return run;
}

/// Tells why no whole copy has the generation that the command line names.
Status no_generation(const Run& run, const RunStateArguments& arguments) {
  std::string text;
  for (const Found& each : run.copies) {
    if (each.missing) continue;
    text += cat("\n  ", each.path, ": ");
    text += each.status.is_ok() ? cat("generation ", each.generation) : each.status.text();
  }
  return {Code::corrupt, cat(run.name, ": no whole copy has generation ", arguments.generation, ":", text)};
}

/// Reads what the copy has recorded.
Status read_run(storage::Target& target, const RunStateArguments& arguments, Run& run) {
  const bool is_copy = !run.only.empty();
  if (!is_copy || arguments.restore) {
    // It may be the newest: a run refuses there, too.
    for (const Found& each : run.copies) {
      if (each.unreadable)
        return each.status.in(cat(each.path, " cannot be read, so that its generation is not known"));
    }
  }
  const auto chosen = std::ranges::find_if(run.copies, [&](const Found& each) {
    if (arguments.generation > 0) return each.status.is_ok() && each.generation == arguments.generation;
    return is_copy ? each.path == run.only : each.status.is_ok();
  });
  if (chosen == run.copies.end() && arguments.generation > 0) return no_generation(run, arguments);
  if (chosen == run.copies.end() || !chosen->status.is_ok()) {
    std::string reasons;
    for (const Found& each : run.copies) {
      if (!is_copy || each.path == run.only) reasons += cat("\n  ", each.status.text());
    }
    return {Code::corrupt, cat(run.name, ": no copy is whole:", reasons)};
  }
  Result<Copy> copy = checkpoint::read_copy(target, chosen->path);
  TR_TRY(copy.status());
  run.copy = std::move(*copy);
  Result<Recorded> recorded = Recorded::unpack(run.copy.directory.outputs);
  TR_TRY(recorded.status());
  run.recorded = std::move(*recorded);
  return restart::find_undo_files(target, run.copy, run.recorded);
}

/// Returns the directories in which the outputs lie.
std::vector<std::string> directories_of(const Run& run) {
  std::vector<std::string> all{storage::parent_of(storage::tidy_path(run.name))};
  for (const journal::Position& file : run.recorded.files)
    all.push_back(storage::parent_of(storage::tidy_path(file.path)));
  for (const OutputState& state : run.outputs) {
    if (!state.path.empty()) all.push_back(storage::parent_of(storage::tidy_path(state.path)));
  }
  return all;
}

/// Finds files that were begun anew behind the generation: a newer copy has recorded fewer bytes of them, and
/// no undo file has the old ones.
void note_begun_anew(Run& run) {
  for (const Found& each : run.copies) {
    if (each.path == run.copy.path) return;
    if (!each.status.is_ok()) continue;
    const Result<Recorded> newer = Recorded::unpack(each.copy->directory.outputs);
    if (!newer.is_ok()) continue;
    for (const journal::Position& file : run.recorded.files) {
      const auto later = std::ranges::find(newer->files, file.path, &journal::Position::path);
      if (!file.undo.empty() || later == newer->files.end() || later->size >= file.size) continue;
      for (OutputState& state : run.outputs) {
        if (state.kind != OutputState::Kind::file || state.path != file.path ||
            state.outlook > Outlook::ahead)
          continue;
        state.outlook = Outlook::lost;
        state.text = cat(file.path, " was begun anew behind generation ", run.copy.generation(),
                         ", which has recorded ", counted(file.size, "byte"), " of it: generation ",
                         each.generation, " has ", later->size, " (overwritten=journal keeps old bytes)");
      }
    }
  }
}

void look(storage::Target& target, const RunStateArguments& arguments, Run& run) {
  run.outputs = restart::look_at_outputs(target, run.recorded, {arguments.any_run, arguments.leave_lost});
  note_begun_anew(run);
  const std::vector<OutputState> shared =
      restart::look_at_shared_files(target, directories_of(run), run.recorded.shared);
  run.outputs.insert(run.outputs.end(), shared.begin(), shared.end());
  for (OutputState& each : run.outputs) {
    const auto left = run.left.find(each.path);
    if (left == run.left.end() || each.kind != OutputState::Kind::shared) continue;
    each.outlook = Outlook::stays;
    each.text = left->second;
  }
}

int exit_of(const Run& run) {
  const auto was_left = [&](const OutputState& each) {
    return run.restored && each.kind == OutputState::Kind::covered && each.outlook == Outlook::stays;
  };
  std::vector<OutputState> others = run.outputs;
  std::erase_if(others, was_left);
  switch (restart::worst_of(others)) {
    case Outlook::agrees:
      return State::at_generation;
    case Outlook::ahead:
      return State::to_restore;
    case Outlook::stays:
      return run.restored ? State::lost : State::to_restore;
    case Outlook::lost:
      return State::lost;
    case Outlook::unknown:
      return std::ranges::count(run.outputs, Outlook::lost, &OutputState::outlook) > 0 ? State::lost
                                                                                       : State::unread;
  }
  return State::unread;
}

/// Returns what a restart does, or has done, with the outputs, such as "cut 3 steps of history.nc and put
/// back 2 files".
std::string deeds_of(const std::vector<OutputState>& outputs) {
  std::int64_t steps = 0, cut = 0, back = 0, others = 0;
  std::set<std::string> streams;
  for (const OutputState& each : outputs) {
    if (each.outlook != Outlook::ahead) continue;
    if (each.steps_cut() > 0) {
      steps += each.steps_cut();
      streams.insert(each.path);
    } else if (each.kind == OutputState::Kind::file || each.kind == OutputState::Kind::covered ||
               (each.kind == OutputState::Kind::shared && each.put_back > 0)) {
      ++(each.bytes > each.recorded_bytes && each.put_back == 0 ? cut : back);
    } else {
      ++others;
    }
  }
  std::vector<std::string> deeds;
  if (steps > 0)
    deeds.push_back(cat("cut ", counted(steps, "step"), " of ",
                        streams.size() == 1 ? *streams.begin() : counted(streams.size(), "file")));
  if (cut > 0) deeds.push_back(cat("cut ", counted(cut, "file")));
  if (back > 0) deeds.push_back(cat("put back ", counted(back, "file")));
  if (others > 0) deeds.push_back(cat("tidy ", counted(others, "file"), " that a killed program has left"));
  std::string text;
  for (std::size_t i = 0; i < deeds.size(); ++i)
    text += cat(i == 0 ? "" : i + 1 < deeds.size() ? ", " : " and ", deeds[i]);
  return text;
}

std::string verdict_of(const Run& run) {
  const std::string generation = cat("generation ", run.copy.generation());
  for (const OutputState& each : run.outputs) {
    if (each.outlook == Outlook::lost) return cat(generation, " cannot be reached: ", each.text);
  }
  for (const OutputState& each : run.outputs) {
    if (each.outlook == Outlook::unknown) return cat("not known: ", each.text);
  }
  std::string stay;
  for (const OutputState& each : run.outputs) {
    if (each.outlook == Outlook::stays) stay += cat("; ", each.path, " ", each.text);
  }
  const std::string deeds = deeds_of(run.outputs);
  if (deeds.empty())
    return cat(stay.empty() ? "everything is at " : "everything else is at ", generation, stay);
  return cat("a restart would ", deeds, stay);
}

std::string_view word_of(Outlook outlook) {
  switch (outlook) {
    case Outlook::agrees:
      return "at the checkpoint";
    case Outlook::ahead:
      return "ahead";
    case Outlook::stays:
      return "at another flush";
    case Outlook::lost:
      return "LOST";
    case Outlook::unknown:
      return "not known";
  }
  return "";
}

std::string_view name_of(OutputState::Kind kind) {
  switch (kind) {
    case OutputState::Kind::stream:
      return "stream";
    case OutputState::Kind::file:
      return "file";
    case OutputState::Kind::covered:
      return "covered";
    case OutputState::Kind::shared:
      return "shared";
  }
  return "";
}

std::string line_of(const OutputState& state) {
  const bool is_stream = state.kind == OutputState::Kind::stream;
  const bool is_shared = state.kind == OutputState::Kind::shared;
  std::string line = "    ";
  if (!is_stream)
    line = cat("  ", name_of(state.kind), state.kind == OutputState::Kind::file ? " " : " file ");
  const bool is_held = is_shared && state.outlook == Outlook::agrees && !state.text.empty();
  line += cat(state.path.empty() ? std::string("-") : state.path, "  ",
              is_held                                         ? "in use"
              : !is_shared && state.outlook == Outlook::stays ? "LOST"
                                                              : word_of(state.outlook));
  if (is_stream && state.steps > 0) line += cat(", ", counted(state.steps, "step"));
  if (is_stream && state.steps > state.kept_steps) line += cat(" (", state.kept_steps, " at the checkpoint)");
  if (!is_stream && state.outlook < Outlook::lost)
    line += cat(", ", counted(state.bytes, "byte"), " (", state.recorded_bytes, " at the ",
                is_shared ? "flush)" : "checkpoint)");
  return state.text.empty() ? line : cat(line, ": ", state.text);
}

/// True if a program holds the checkpoint's lock, or has left its lock file.
bool may_run(storage::Target& target, const Run& run) {
  const Result<bool> exists = target.exists(checkpoint::lock_path(run.name));
  return exists.is_ok() && *exists;
}

void print_copies(const Run& run) {
  for (const Found& each : run.copies) {
    if (!each.status.is_ok()) {
      std::puts(cat(each.path, ": broken: ", each.status.text()).c_str());
      continue;
    }
    std::puts(cat(each.path, ": generation ", each.generation, ", saved ",
                  saved_text(each.copy->header.saved_at),
                  each.committed ? ", committed" : ", whole, but not committed",
                  each.path == run.copy.path ? "  <- looked at" : "")
                  .c_str());
  }
}

void print_text(storage::Target& target, const Run& run) {
  print_copies(run);
  if (!run.is_held && may_run(target, run))
    std::puts(cat(checkpoint::lock_path(run.name),
                  " is there: a program runs, and may be ahead of its last checkpoint, or it was killed")
                  .c_str());
  std::string stream;
  std::size_t next = 0;
  for (const OutputState& state : run.outputs) {
    if (state.kind == OutputState::Kind::stream && state.name != stream) {
      stream = state.name;
      while (next < run.recorded.streams.size() && run.recorded.streams[next].pattern != stream) ++next;
      std::puts(cat("  stream ", stream, "  at ",
                    next < run.recorded.streams.size() ? streams::text_of(run.recorded.streams[next]) : "")
                    .c_str());
    }
    std::puts(line_of(state).c_str());
  }
}

#if TAILRACE_HAVE_JSON
Status print_json(const Run& run, const std::string& verdict) {
  using Json = nlohmann::ordered_json;
  Json copies = Json::array();
  for (const Found& each : run.copies) {
    Json copy{{"path", each.path}, {"whole", each.status.is_ok()}};
    if (each.status.is_ok()) {
      copy["generation"] = each.generation;
      copy["saved_at"] = each.copy->header.saved_at;
      copy["committed"] = each.committed;
    } else {
      copy["why"] = each.status.text();
    }
    copies.push_back(std::move(copy));
  }
  Json outputs = Json::array();
  for (const OutputState& each : run.outputs) {
    const bool is_stream = each.kind == OutputState::Kind::stream;
    Json output{{"kind", name_of(each.kind)},
                {"name", each.name},
                {"path", each.path},
                {"state", each.outlook == Outlook::lost      ? "lost"
                          : each.outlook == Outlook::unknown ? "unknown"
                          : each.outlook == Outlook::stays   ? "stays"
                          : each.outlook == Outlook::ahead   ? "ahead"
                                                             : "agrees"},
                {"text", each.text}};
    if (is_stream) {
      output["steps"] = each.steps;
      output["steps_at_checkpoint"] = each.kept_steps;
    } else {
      output["bytes"] = each.bytes;
      output["bytes_at_checkpoint"] = each.recorded_bytes;
      output["bytes_to_put_back"] = each.put_back;
    }
    outputs.push_back(std::move(output));
  }
  const Json json{{"checkpoint", run.name},        {"generation", run.copy.generation()},
                  {"copy", run.copy.path},         {"copies", std::move(copies)},
                  {"outputs", std::move(outputs)}, {"verdict", verdict},
                  {"restored", run.restored}};
  std::puts(json.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  return {};
}
#else
Status print_json(const Run&, const std::string&) {
  return {Code::unsupported, "--json needs JSON, and this tailrace was built without nlohmann-json"};
}
#endif

int print_run(storage::Target& target, const RunStateArguments& arguments, const Run& run,
              const std::string& verdict) {
  if (arguments.json) {
    const Status printed = print_json(run, verdict);
    return printed.is_ok() ? exit_of(run) : report_run(printed);
  }
  print_text(target, run);
  std::puts(verdict.c_str());
  return exit_of(run);
}

/// Refuses to go behind a newer copy that is whole, or that storage does not give and may be whole: the next
/// run would load that one, and miss what was cut. --to sets whole ones aside.
Status check_newest(const Run& run, const RunStateArguments& arguments) {
  for (const Found& each : run.copies) {
    if (each.path == run.copy.path) return {};
    if (each.status.is_ok() && arguments.generation > 0) continue;
    if (each.status.is_ok() || !checkpoint::is_damage(each.status))
      return {Code::state,
              cat(each.path, " is newer and ", each.status.is_ok() ? "whole" : "may be whole",
                  ", and the next run loads it: ",
                  each.status.is_ok() ? cat("`--to ", run.copy.generation(), "` sets it aside")
                                      : cat("move it and its parts away before you restore an older "
                                            "generation (",
                                            each.status.text(), ")"))};
  }
  return {};
}

/// Sets all copies aside that are newer than the one to go to, the newest first: whenever this command ends,
/// the next run loads the newest copy that is left, and itself brings the outputs to it.
Status set_newer_aside(storage::Target& target, Run& run) {
  for (const Found& each : run.copies) {
    if (each.path == run.copy.path) return {};
    if (!each.status.is_ok()) continue;  // no run loads it
    Result<std::string> aside = checkpoint::set_aside(target, each.path);
    TR_TRY(aside.status());
    run.aside.push_back(std::move(*aside));
  }
  return {};
}

Status restore(storage::Target& target, const RunStateArguments& arguments, Run& run) {
  if (arguments.generation > 0) {
    TR_TRY(restart::check_streams_free(target, run.recorded, {arguments.any_run, arguments.leave_lost}));
    TR_TRY(set_newer_aside(target, run));
  }
  for (OutputState& each : run.outputs) {
    if (each.kind != OutputState::Kind::shared || each.outlook != Outlook::ahead) continue;
    const auto recorded = std::ranges::find(run.recorded.shared, each.path, &restart::SharedFlush::path);
    const Result<bool> restored =
        restart::restore_shared_file(target, each.path, each.leads_back ? &*recorded : nullptr);
    // A program has taken it meanwhile, perhaps one of another job.
    if (restored.status().code() == Code::state)
      each.outlook = Outlook::agrees;
    else if (restored.status().code() == Code::corrupt)
      run.left[each.path] = restored.status().text();
    else
      TR_TRY(restored.status());
    // The other outputs are brought back all the same.
    if (run.left.contains(each.path)) each.outlook = Outlook::stays;
    // What led back has gone meanwhile. The look behind the restore says why.
    if (restored.is_ok() && !*restored) each.outlook = Outlook::stays;
  }
  TR_TRY(restart::restore_outputs(target, run.recorded, {arguments.any_run, arguments.leave_lost}));
  run.restored = true;
  return {};
}

/// True if the run has ended well behind the generation: it has left no lock, some stream is finished behind
/// it, and no stream is ahead, but files are. A restart cuts these before it writes its steps once more;
/// without one their last lines would be lost.
bool has_ended_well(const Run& run, bool left_lock) {
  const auto is_finished_behind = [](const OutputState& each) {
    return each.kind == OutputState::Kind::stream && each.outlook == Outlook::agrees &&
           each.steps > each.kept_steps;
  };
  const auto may_be_kept = [](const OutputState& each) {
    return each.outlook != Outlook::ahead || each.kind == OutputState::Kind::covered ||
           each.kind == OutputState::Kind::file || each.kind == OutputState::Kind::shared;
  };
  const auto is_ahead = [](const OutputState& each) { return each.outlook == Outlook::ahead; };
  return !left_lock && std::ranges::any_of(run.outputs, is_ahead) &&
         std::ranges::any_of(run.outputs, is_finished_behind) &&
         std::ranges::all_of(run.outputs, may_be_kept);
}

int run_restore(storage::Target& target, const RunStateArguments& arguments, Run& run) {
  const bool left_lock = may_run(target, run);
  // Runs behind the end of this command's own lock: a restore that changes nothing leaves the sign of a
  // killed run, by which the next one knows that the run has not ended well.
  const std::shared_ptr<void> sign(nullptr, [&](void*) {
    if (left_lock && run.is_held && !run.restored)
      static_cast<void>(target.open(checkpoint::lock_path(run.name), storage::OpenMode::keep));
  });
  const Result<std::shared_ptr<void>> lock = target.lock(checkpoint::lock_path(run.name));
  if (!lock.is_ok()) return report_run(lock.status().in("a program runs, or another restore does"));
  run.is_held = true;
  // Under the lock: no program saves any more.
  const Result<std::vector<std::string>> paths = checkpoint::find_copies(target, run.name);
  if (!paths.is_ok()) return report_run(paths.status());
  if (!paths->empty()) run.copies = checkpoint::look_at(target, *paths);
  Status ready = read_run(target, arguments, run);
  if (ready.is_ok()) ready = check_newest(run, arguments);
  if (!ready.is_ok()) return report_run(ready);
  look(target, arguments, run);
  if (restart::worst_of(run.outputs) >= Outlook::lost)
    return print_run(target, arguments, run, cat(verdict_of(run), "; nothing was changed"));
  if (arguments.generation == 0 && has_ended_well(run, left_lock)) {
    const int printed =
        print_run(target, arguments, run,
                  cat("nothing was changed: the run has ended well, with finished files behind generation ",
                      run.copy.generation(), "; `--to ", run.copy.generation(),
                      "` brings its files back all the same"));
    return printed == State::to_restore ? static_cast<int>(State::at_generation) : printed;
  }
  if (const Status done = restore(target, arguments, run); !done.is_ok()) {
    std::string text = done.text();
    for (const std::string& each : run.aside) text += cat("; set aside ", each);
    return report_run(Status(done.code(), text));
  }
  std::string deeds = deeds_of(run.outputs);
  for (const std::string& each : run.aside) deeds += cat(deeds.empty() ? "" : "; ", "set aside ", each);
  look(target, arguments, run);
  return print_run(target, arguments, run,
                   cat(deeds.empty() ? "nothing was to do" : cat("done: ", deeds), "; ", verdict_of(run)));
}

int run_state(const RunStateArguments& arguments) {
  const std::shared_ptr<storage::Target> target = stores::with_stores(storage::default_target());
  Result<Run> run = find_run(*target, arguments);
  if (!run.is_ok()) return report_run(run.status());
  if (arguments.restore) return run_restore(*target, arguments, *run);
  if (const Status read = read_run(*target, arguments, *run); !read.is_ok()) return report_run(read);
  look(*target, arguments, *run);
  return print_run(*target, arguments, *run, verdict_of(*run));
}

}  // namespace

void add_run_state(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand(
      "run-state", "Shows how a run's outputs stand to its checkpoint, or brings them all there");
  const auto arguments = std::make_shared<RunStateArguments>();
  command
      ->add_option(
          "CHECKPOINT-or-DIR", arguments->name,
          "a checkpoint, of which the newest whole copy is taken; one copy; or the directory where the "
          "program ran, if one checkpoint lies there")
      ->required();
  command->add_option("-C,--directory", arguments->directory,
                      "the directory in which the program ran: all relative names count from there");
  command->add_flag("--restore", arguments->restore,
                    "bring all outputs to the generation, without the program");
  command
      ->add_option("--to", arguments->generation,
                   "look at the copy of this generation; with --restore, copies that are newer are set aside "
                   "(NAME.1.aside), so that the next run goes on from this one")
      ->check(CLI::PositiveNumber)
      ->type_name("GENERATION");
  command->add_flag("--any-run", arguments->any_run,
                    "also take files that another run has begun, as streams with existing=continue do");
  command->add_flag("--leave-lost", arguments->leave_lost,
                    "leave covered logs as they are that are gone or were replaced, as a run with "
                    "TAILRACE_LOST_LOGS=go_on does");
  command->add_flag("--json", arguments->json, "as JSON");
  command->footer(
      "A checkpoint records how far each open stream and file was. This command shows which of them are\n"
      "ahead of it and what a restart would cut or put back; --restore does it: afterwards everything is at\n"
      "the generation, and a run that goes on from the checkpoint finds what it would have made itself. It\n"
      "may be killed and repeated. Files that streams have finished are never cut. Refuses while a program\n"
      "holds the checkpoint or a stream. Other files have no lock: a program must not close its checkpoint\n"
      "before them. Passes over shared files with safety= that a program holds. Changes nothing if an\n"
      "output is lost, or if the run has ended well: it left no lock, its streams are finished, and no\n"
      "stream is ahead.\n\n"
      "Exit codes: 0 everything is at the generation, or the run has ended well (--restore), 1 a restart "
      "would cut or put back something,\n"
      "2 usage, unreadable or locked, 4 an output cannot be brought there, or no copy is whole\n\n"
      "Examples:\n"
      "  tailrace run-state run\n"
      "  tailrace run-state -C run restart/state --json\n"
      "  tailrace run-state -C run restart/state --restore\n"
      "  tailrace run-state -C run restart/state --to 11 --restore");
  command->callback([arguments, &exit] {
    try {
      exit = run_state(*arguments);
    } catch (const std::exception& thrown) {
      exit = report_run({Code::memory, thrown.what()});
    }
  });
}

}  // namespace tailrace::cli
