// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "commands.hpp"
#include "faces/streams/resume/resume.hpp"
#include "formats/index/ending.hpp"
#include "formats/index/index.hpp"
#include "formats/listings/listings.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/calendar.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/flushed.hpp"
#include "ground/journal/kept_flushes.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::cli {
namespace {

constexpr std::string_view again_suffix = ".again";

struct RepairArguments {
  std::string file;
  std::string through_lead;
  bool force = false;
};

/// Brings a shared file back to its last flush. Returns false, and does nothing, if it is no shared file, or
/// if its program has closed it. Follows symbolic links, since the undo files lie beside the file itself.
Result<bool> repair_shared_file(const std::string& name) {
  if (!storage::is_of_files(name)) return false;  // a place of whole objects has no shared files
  const std::shared_ptr<storage::Target> target = storage::default_target();
  const std::string path = target->behind_links(name);
  const Result<bool> is_left = journal::is_left_open(*target, path);
  TR_TRY(is_left.status());
  if (!*is_left) return false;
  const Result<bool> is_open = target->exists(journal::flushed_path(path));
  TR_TRY(is_open.status());
  const Result<std::shared_ptr<void>> lock = journal::lock_flushed(*target, path);
  TR_TRY(lock.status());
  const Result<bool> brought = journal::bring_back_flushed(*target, path);
  TR_TRY(brought.status());
  // With FILE.undo.kept they lead back to flushes that checkpoints have recorded.
  const Result<bool> is_kept = target->exists(journal::kept_path(path));
  TR_TRY(is_kept.status());
  if (!*is_open && !*is_kept) TR_TRY(journal::drop_undo_files(*target, path).status());
  std::printf("%s: %s\n", path.c_str(),
              *brought   ? "brought back to its last flush"
              : *is_open ? "not there; its undo files are removed"
                         : "not changed since it was opened; what was left beside it is removed");
  return true;
}

/// Returns the lead that a text means in a file: a length such as 6h or 250ms, or a time of the model.
Result<std::int64_t> through_lead(storage::Target& target, const std::string& path, const std::string& text) {
  const Result<streams::IndexContents> contents = streams::load_index(target, streams::index_path(path));
  TR_TRY(contents.status());
  if (!contents->header.time.is_model()) return contents->header.time.parse_length(text);
  const Result<double> time = parse_real(text);
  TR_TRY(time.status());
  return TimeAxis::code_of(*time);
}

/// Returns what is wrong with a text that is neither a length nor a time in any file, or "".
std::string wrong_time(const std::string& text) {
  if (parse_real(text).is_ok()) return {};
  return TimeAxis::of_leads(*find_time_unit("ns")).parse_length(text).status().text();
}

int run_repair(const RepairArguments& arguments) {
  const Result<bool> is_shared = repair_shared_file(arguments.file);
  if (!is_shared.is_ok()) return report("repair", is_shared.status());
  if (*is_shared) return Exit::done;
  const std::string path = data_path_of(arguments.file);
  const std::shared_ptr<storage::Target> target = stores::with_stores(storage::default_target());
  streams::Reopen options;
  options.force = arguments.force;
  // FILE with its index, and FILE.again with its index, have one lock.
  const std::string file =
      path.ends_with(again_suffix) ? path.substr(0, path.size() - again_suffix.size()) : path;
  const Result<std::shared_ptr<void>> lock = target->lock(streams::lock_path(file));
  if (!lock.is_ok()) return report("repair", lock.status());
  // A run that was killed between two renames leaves new data beside the old index. Without this call the
  // repair would cut the new data by the old index.
  if (const Status ended = streams::end_replacing(*target, file); !ended.is_ok())
    return report("repair", ended);
  if (!arguments.through_lead.empty()) {
    const Result<std::int64_t> lead = through_lead(*target, path, arguments.through_lead);
    if (!lead.is_ok()) return report("repair", lead.status().in("--through-lead"));
    options.through_lead = *lead;
  }
  if (!arguments.force) {
    const Result<streams::IndexContents> contents = streams::load_index(*target, streams::index_path(path));
    // streams::recover() reports a damaged index, and cuts off steps behind the end of the data.
    const Result<std::optional<Bytes>> size = storage::size_if_there(*target, path);
    if (contents.is_ok() && size.is_ok() && size->value_or(0) >= contents->data_end()) {
      const std::size_t kept =
          options.through_lead ? contents->steps_up_to(*options.through_lead) : contents->steps.size();
      const auto steps = std::span(contents->steps).first(kept);
      const Status whole =
          storage::check_holds(*target, path, contents->end_of(kept), streams::ranges_of(steps));
      if (!whole.is_ok())
        return report("repair",
                      whole.code() != Code::corrupt
                          ? whole
                          : Status(whole.code(), cat(whole.text(),
                                                     "; `tailrace repair --force` keeps the steps before the "
                                                     "first that lacks any")));
    }
  }
  const Result<streams::Recovered> recovered = streams::recover(*target, path, options);
  if (!recovered.is_ok()) return report("repair", recovered.status());
  const streams::IndexContents& kept = recovered->contents;
  // A crash may have come after the commit of the last step, and before the step's lines in the listings.
  Status ended = listings::complete_all(*target, path, streams::ranges_of(kept.steps));
  if (ended.is_ok()) ended = streams::write_ending(*target, path, kept);
  if (!ended.is_ok()) return report("repair", ended);
  const std::string last = kept.steps.empty() ? "none"
                                              : cat("step ", kept.steps.back().step, " at ",
                                                    at_text(kept.header.time, kept.steps.back().lead));
  std::printf(
      "%s: %zu whole step%s kept (last: %s), %zu whole step%s dropped, %lld bytes cut off the data, %lld off "
      "the index%s\n",
      path.c_str(), kept.steps.size(), kept.steps.size() == 1 ? "" : "s", last.c_str(), recovered->steps_cut,
      recovered->steps_cut == 1 ? "" : "s", static_cast<long long>(recovered->data_bytes_cut),
      static_cast<long long>(recovered->index_bytes_cut), kept.closed ? ", closed: no step follows" : "");
  return Exit::done;
}

}  // namespace

void add_repair(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand(
      "repair",
      "Cuts a file and its index back to the last committed step, or a shared file to its last flush");
  const auto arguments = std::make_shared<RepairArguments>();
  command->add_option("FILE", arguments->file, "the data file, or its index; or a shared file")->required();
  command
      ->add_option("--through-lead", arguments->through_lead,
                   "keep only the steps up to this lead, as 6h or 250ms, or up to this time of a stream "
                   "with time=model, as 0.5")
      ->check(wrong_time, "");
  command->add_flag("--force", arguments->force,
                    "give up committed steps that are damaged, and keep the whole ones before them");
  command->footer(
      "Refuses while a program holds the file. Without --force nothing that was committed is lost: what a\n"
      "crash left behind the last committed step is cut off, and a damaged file is left as it is.\n\n"
      "Exit codes: 0 repaired, 1 failed or locked, 2 usage, 4 committed steps are damaged (see --force)\n\n"
      "Examples:\n"
      "  tailrace repair out/fc+006.grib2\n"
      "  tailrace repair --through-lead 12h out/surface.grib2\n"
      "  tailrace repair --force out/fc+006.grib2");
  command->callback([arguments, &exit] { exit = run_repair(*arguments); });
}

}  // namespace tailrace::cli
