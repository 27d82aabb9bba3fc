// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The files of a stream, seen and cut back without the stream's options. The checkpoint has the stream's
// pattern and run; what else the names depend on (base time, calendar, member) is in the indexes beside the
// files.
#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "faces/restart/run_state.hpp"
#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/files/manifest.hpp"
#include "formats/index/ending.hpp"
#include "formats/listings/listings.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::restart {

namespace {

using storage::Target;
using streams::IndexContents;
using streams::Pattern;
using streams::Position;

constexpr std::string_view again_suffix = ".again";

/// The files of the recorded run that the stream's pattern names.
struct OwnFiles {
  streams::StreamRequest request;              // as far as names depend on it
  streams::IndexHeader header;                 // of the stream, without fields
  bool is_known = false;                       // a file has told it
  std::map<std::string, IndexContents> files;  // by the path of the data
  std::set<std::string> seconds;               // paths of data with a second pair
  std::set<std::string> directories;           // in which files of these names may lie
  std::set<std::string> without_index;         // paths of data, perhaps of somebody else
  std::map<std::string, Status> unread;        // paths of data whose index this process may not read
  bool has_own = false;                        // a file of the recorded run itself has told it
  bool is_ambiguous = false;                   // only files of other runs have, and they disagree
};

/// The directory that is the same for all names of a pattern, with its slash, and how many levels of
/// directories change below it.
struct Top {
  std::string directory;
  std::ptrdiff_t levels = 0;

  explicit Top(const std::string& pattern) {
    const std::string fixed = pattern.substr(0, pattern.find('{'));
    directory = fixed.substr(0, fixed.rfind('/') + 1);  // npos + 1 is 0
    levels = std::count(pattern.begin() + std::ssize(directory), pattern.end(), '/');
  }
};

bool is_name_of(const Pattern& pattern, const std::string& path, const IndexContents& contents) {
  const streams::IndexHeader& header = contents.header;
  const streams::PatternContext context{header.base, header.calendar, header.member, header.time};
  if (contents.steps.empty() && pattern.depends_on_lead())
    return pattern.match(path, context, true).has_value();
  const std::int64_t lead = contents.steps.empty() ? 0 : contents.steps.front().lead;
  const Result<std::string> name = pattern.expand(lead, context);
  return name.is_ok() && *name == path;
}

/// True if the names of two runs' files, or what is in them, depend on different things.
bool is_other_run(const streams::IndexHeader& a, const streams::IndexHeader& b) {
  return a.base != b.base || a.calendar != b.calendar || a.member != b.member || a.time != b.time;
}

class Search {
 public:
  Search(Target& target, const Position& position, bool any_run, OwnFiles& own)
      : target_(target), position_(position), any_run_(any_run), own_(own) {}

  Status into(const std::string& directory, std::ptrdiff_t levels) {
    const Result<std::vector<std::string>> names = target_.list(directory.empty() ? "." : directory);
    const int error = names.status().error_number();
    if (error == ENOENT || error == ENOTDIR) return {};
    TR_TRY(names.status());
    if (levels == 0) own_.directories.insert(directory);
    const std::string ending = streams::index_path("");
    const std::set<std::string_view> all(names->begin(), names->end());
    for (const std::string& name : *names) {
      const std::string path = directory + name;
      if (levels > 0) {
        const Status inside = into(path + "/", levels - 1);
        if (inside.error_number() != EACCES) TR_TRY(inside);
      } else if (name.ends_with(ending)) {
        TR_TRY(take(path.substr(0, path.size() - ending.size())));
      } else if (!all.contains(streams::index_path(name))) {
        own_.without_index.insert(path);
      }
    }
    return {};
  }

 private:
  Status take(std::string data) {
    const bool again = data.ends_with(again_suffix);
    Result<IndexContents> contents = streams::load_index(target_, streams::index_path(data));
    if (!contents.is_ok()) return take_unread(data, contents.status());
    if (again) data.resize(data.size() - again_suffix.size());
    const bool is_own = contents->header.run == position_.run;
    if ((!is_own && !any_run_) || !is_name_of(own_.request.pattern, data, *contents)) return {};
    if (!is_own && own_.is_known && !own_.has_own && is_other_run(own_.header, contents->header))
      own_.is_ambiguous = true;
    if (is_own) own_.has_own = true;
    if (is_own || !own_.is_known) {
      own_.header = contents->header;
      own_.header.run = position_.run;
      own_.header.fields.clear();
      own_.is_known = true;
    }
    if (again)
      own_.seconds.insert(data);
    else
      own_.files.emplace(data, std::move(*contents));
    return {};
  }

  Status take_unread(const std::string& data, const Status& why) {
    const int error = why.error_number();
    if (error == EACCES) own_.unread.emplace(data, why);
    // A directory or a pipe with the name of an index is none.
    const bool is_none = error == ENOENT || error == EISDIR || error == ESPIPE;
    return why.code() == Code::io && error != EACCES && !is_none ? why : Status();
  }

  Target& target_;
  const Position& position_;
  const bool any_run_;
  OwnFiles& own_;
};

Result<OwnFiles> find_own(Target& target, const Position& position, bool any_run) {
  OwnFiles own;
  Result<Pattern> pattern = Pattern::parse(position.pattern);
  TR_TRY(pattern.status());
  own.request.pattern = std::move(*pattern);
  own.header.run = position.run;
  own.header.time = position.time;
  const Top top(position.pattern);
  TR_TRY(Search(target, position, any_run, own).into(top.directory, top.levels));
  if (own.is_ambiguous && !own.has_own)
    return Status(Code::io,
                  "files of several runs have names of the pattern: which one the run went on with "
                  "is not known; move the files of the others away");
  // Other names follow from the pattern alone.
  const Pattern& names = own.request.pattern;
  own.is_known = own.is_known || !(names.uses_time() || names.uses_member());
  own.request.definition.base = own.header.base;
  own.request.definition.calendar = own.header.calendar;
  own.request.definition.member = own.header.member;
  own.request.definition.time = own.header.time;
  if (!own.is_known) return own;
  const streams::PatternContext context{own.header.base, own.header.calendar, own.header.member,
                                        own.header.time};
  for (const auto& [path, why] : own.unread) {
    if (names.match(path, context, true)) return why;
  }
  std::erase_if(own.without_index, [&](const std::string& path) {
    const std::optional<std::int64_t> lead = names.match(path, context, true);
    return !lead || (position.lead && *lead <= *position.lead);
  });
  return own;
}

/// The step that restore_stream() takes on a file.
enum class Act { none, end_replacing, cut_first, cut_second, drop_second, remove };
struct Plan {
  OutputState state;
  Act act = Act::none;
};

Plan plan_for(const Position& position, const std::string& path, Outlook outlook, std::string text,
              Act act = Act::none) {
  Plan plan;
  plan.state.name = position.pattern;
  plan.state.path = path;
  plan.state.outlook = outlook;
  plan.state.text = std::move(text);
  plan.act = act;
  return plan;
}

Plan plan_of_error(const Position& position, const std::string& path, const Status& error) {
  const bool is_unread = error.code() == Code::io || error.code() == Code::memory;
  return plan_for(position, path, is_unread ? Outlook::unknown : Outlook::lost, error.text());
}

/// Returns what a killed process has left behind the committed bytes of a pair that is not closed. The ending
/// of a file that is to be finished again counts for nothing.
Result<Bytes> loose_bytes(Target& target, const std::string& data, const IndexContents& contents) {
  if (formats::finishing(contents.header.format) != nullptr) return Bytes{0};
  const Result<std::optional<Bytes>> size = storage::size_if_there(target, data);
  TR_TRY(size.status());
  return std::max<Bytes>(0, size->value_or(0) - contents.data_end());
}

/// Plans the pair in which a run goes on.
Result<Plan> plan_of_pair(Target& target, const Position& position, const std::string& path,
                          const streams::Pair& pair) {
  const IndexContents& contents = pair.contents;
  if (contents.tail == streams::IndexTail::damaged)
    return plan_for(position, path, Outlook::lost, cat(streams::index_path(path), ": ", contents.tail_text));
  const std::string data = pair.again ? streams::again_path(path) : path;
  Plan plan = plan_for(position, path, Outlook::agrees, "");
  plan.state.steps = std::ssize(contents.steps);
  plan.state.kept_steps = static_cast<std::int64_t>(contents.steps_up_to(*position.lead));
  const std::int64_t more = plan.state.steps - plan.state.kept_steps;
  if (contents.closed && !pair.again) {
    if (more > 0)
      plan.state.text = cat("finished, with ", counted(more, "step"),
                            " behind the checkpoint: it stays as it is, and a run writes what is behind the "
                            "checkpoint once more beside it");
    return plan;
  }
  const Result<Bytes> loose = loose_bytes(target, data, contents);
  TR_TRY(loose.status());
  const Result<bool> second = target.exists(streams::index_path(streams::again_path(path)));
  TR_TRY(second.status());
  // Its index is removed first, so that a process that was killed may have left its data alone.
  const Result<bool> second_data = target.exists(streams::again_path(path));
  TR_TRY(second_data.status());
  const bool drops_second = !pair.again && (*second || *second_data);
  plan.act = pair.again ? Act::cut_second : Act::cut_first;
  if (more > 0) plan.state.text = cat(counted(more, "step"), " to be cut");
  if (*loose > 0 || contents.tail == streams::IndexTail::torn)
    plan.state.text += cat(plan.state.text.empty() ? "" : ", ", "an unfinished step to be cut off");
  if (drops_second)
    plan.state.text += cat(plan.state.text.empty() ? "" : ", ", "an older second version to be removed");
  if (!plan.state.text.empty()) plan.state.outlook = Outlook::ahead;
  if (pair.again) plan.state.text += cat(plan.state.text.empty() ? "" : "; ", "goes on in ", data);
  return plan;
}

/// Plans the file of the last step that the checkpoint has recorded.
Result<Plan> plan_of_recorded(Target& target, const Position& position, const OwnFiles& own,
                              const streams::Resuming& resuming, bool any_run) {
  const std::string& path = resuming.path;
  const std::string again = streams::again_path(path);
  const Result<bool> data = target.exists(again);
  TR_TRY(data.status());
  const Result<bool> index = target.exists(streams::index_path(again));
  TR_TRY(index.status());
  if (*index && !*data) {
    // Only then the data have their new name already: otherwise somebody has removed them.
    const Result<IndexContents> moved = streams::load_index(target, streams::index_path(again));
    if (moved.is_ok() && storage::check_holds(target, path, moved->data_end()).is_ok())
      return plan_for(position, path, Outlook::ahead, "a replacement was interrupted, and is to be ended",
                      Act::end_replacing);
  }
  const Result<bool> taken = streams::was_taken_away(target, resuming);
  TR_TRY(taken.status());
  if (*taken)
    return plan_for(position, path, Outlook::agrees, "finished and moved away; the manifest has its line");
  const Result<std::optional<streams::Pair>> pair =
      streams::recorded_pair(target, path, own.header, resuming, any_run);
  TR_TRY(pair.status());
  if (!pair->has_value()) return plan_for(position, path, Outlook::agrees, "no step has come to it");
  return plan_of_pair(target, position, path, **pair);
}

/// Plans a file of which the checkpoint has no step: the run that goes on begins it anew.
Result<Plan> plan_behind(Target& target, const Position& position, const OwnFiles& own,
                         const std::string& path, const IndexContents& contents) {
  Plan plan = plan_for(position, path, Outlook::ahead, "behind the checkpoint: to be removed", Act::remove);
  plan.state.steps = std::ssize(contents.steps);
  if (!contents.closed) return plan;
  plan.state.outlook = Outlook::agrees;
  plan.act = Act::none;
  plan.state.text =
      "finished behind the checkpoint: it stays as it is, and a run writes it once more beside it";
  const Result<bool> second_data = target.exists(streams::again_path(path));
  TR_TRY(second_data.status());
  if (!own.seconds.contains(path) && !*second_data) return plan;
  plan.state.outlook = Outlook::ahead;
  plan.act = Act::drop_second;
  plan.state.text += "; what a run has begun to write is to be removed";
  plan.state.kept_steps = plan.state.steps;
  return plan;
}

/// Plans the empty files for steps behind the checkpoint that have no index: the run may have ended between
/// the creations of data and index. A run that goes on takes such a file for its own, too.
std::vector<Plan> plan_begun_only(Target& target, const Position& position, const OwnFiles& own) {
  std::vector<Plan> plans;
  for (const std::string& path : own.without_index) {
    const Result<std::optional<Bytes>> size = storage::size_if_there(target, path);
    if (!size.is_ok() || *size != Bytes{0}) continue;
    plans.push_back(plan_for(position, path, Outlook::ahead,
                             "begun behind the checkpoint, and empty: to be removed", Act::remove));
  }
  return plans;
}

bool is_behind(const Position& position, const IndexContents& contents) {
  return contents.header.run == position.run &&
         (contents.steps.empty() || !position.lead || contents.steps.front().lead > *position.lead);
}

/// True if the manifest in a directory of the names has the step on which the checkpoint relies.
bool is_in_manifest(Target& target, const Position& position, const OwnFiles& own) {
  return std::ranges::any_of(own.directories, [&](const std::string& directory) {
    const Result<std::vector<streams::ManifestEntry>> manifest =
        streams::read_manifest(target, streams::manifest_path(directory + "file"));
    if (!manifest.is_ok()) return false;
    return std::ranges::any_of(*manifest, [&](const streams::ManifestEntry& entry) {
      return entry.run == position.run && std::ranges::count(entry.leads, *position.put_lead) > 0;
    });
  });
}

/// Plans a stream none of whose files is there to tell its names.
Plan plan_without_files(Target& target, const Position& position, const OwnFiles& own) {
  const bool failed = position.put_lead &&
                      std::ranges::count(position.failed, *position.put_lead, &streams::FailedStep::lead) > 0;
  if (!position.put_lead || failed) return plan_for(position, "", Outlook::agrees, "no file yet");
  if (is_in_manifest(target, position, own))
    return plan_for(position, "", Outlook::agrees, "its files were moved away; the manifest has their lines");
  if (!own.unread.empty()) return plan_of_error(position, "", own.unread.begin()->second);
  return plan_for(position, "", Outlook::lost,
                  cat("none of its files is there, and the checkpoint was saved behind the step at ",
                      position.time.at(*position.put_lead),
                      "; relative names count from the directory in which the program ran"));
}

/// Plans all files of the stream that are not as a run that goes on would leave them.
Result<std::vector<Plan>> plan_stream(Target& target, const Position& position, const OwnFiles& own,
                                      bool any_run) {
  std::vector<Plan> plans;
  if (!own.is_known) {
    plans.push_back(plan_without_files(target, position, own));
    return plans;
  }
  const Result<streams::Resuming> resuming = streams::resuming_from(position, own.request);
  TR_TRY(resuming.status());
  if (!resuming->path.empty()) {
    Result<Plan> plan = plan_of_recorded(target, position, own, *resuming, any_run);
    plans.push_back(plan.is_ok() ? std::move(*plan) : plan_of_error(position, resuming->path, plan.status()));
  }
  for (const auto& [path, contents] : own.files) {
    if (path == resuming->path || !is_behind(position, contents)) continue;
    Result<Plan> plan = plan_behind(target, position, own, path, contents);
    TR_TRY(plan.status());
    plans.push_back(std::move(*plan));
  }
  for (Plan& plan : plan_begun_only(target, position, own)) plans.push_back(std::move(plan));
  if (plans.empty()) plans.push_back(plan_for(position, "", Outlook::agrees, "no file yet"));
  return plans;
}

/// Removes a pair that a killed run has begun. The index goes last: by it a repeated restore finds the rest,
/// and for a run an index without data is no file. Data without an index would look like somebody else's.
Status remove_pair(Target& target, const std::string& path) {
  TR_TRY(target.check_removable(path));
  TR_TRY(streams::discard_again(target, path));
  TR_TRY(storage::remove_durably(target, streams::references_path(path)));
  TR_TRY(listings::remove_all(target, path));
  TR_TRY(storage::remove_durably(target, path));
  return streams::remove_index(target, path);
}

/// Cuts the pair back as a run does. What the run would do at its next step is not done: the file is left so
/// that others can read it.
Status cut_pair(Target& target, const std::string& path, bool again, std::int64_t lead) {
  if (!again) TR_TRY(streams::discard_again(target, path));
  const std::string data = again ? streams::again_path(path) : path;
  Result<streams::IndexWriter> index = streams::reopen_pair(target, data, lead);
  TR_TRY(index.status());
  TR_TRY(index->close());
  if (again) return {};
  const Result<IndexContents> contents = streams::load_index(target, streams::index_path(path));
  TR_TRY(contents.status());
  TR_TRY(listings::complete_all(target, path, streams::ranges_of(contents->steps)));
  return streams::write_ending(target, path, *contents);
}

Status carry_out(Target& target, const Plan& plan, std::int64_t lead) {
  const std::string& path = plan.state.path;
  switch (plan.act) {
    case Act::cut_first:
      return cut_pair(target, path, false, lead);
    case Act::cut_second:
      return cut_pair(target, path, true, lead);
    case Act::drop_second:
      return streams::discard_again(target, path);
    case Act::remove:
      return remove_pair(target, path);
    case Act::end_replacing:
    case Act::none:
      return {};
  }
  return {};
}

}  // namespace

void look_at_stream(Target& target, const Position& position, RunStateOptions options,
                    std::vector<OutputState>& states) {
  const Result<std::vector<Plan>> plans = guarded([&]() -> Result<std::vector<Plan>> {
    const Result<OwnFiles> own = find_own(target, position, options.any_run);
    TR_TRY(own.status());
    return plan_stream(target, position, *own, options.any_run);
  });
  if (!plans.is_ok()) {
    states.push_back(plan_of_error(position, "", plans.status()).state);
    return;
  }
  for (const Plan& plan : *plans) states.push_back(plan.state);
}

Status check_stream_free(Target& target, const Position& position, RunStateOptions options) {
  const Result<OwnFiles> own = find_own(target, position, options.any_run);
  TR_TRY(own.status());
  return own->is_known ? streams::lock_stream(target, own->request).status() : Status();
}

Status restore_stream(Target& target, const Position& position, RunStateOptions options) {
  const Result<OwnFiles> first = find_own(target, position, options.any_run);
  TR_TRY(first.status());
  if (!first->is_known) return {};
  const Result<std::shared_ptr<void>> stream = streams::lock_stream(target, first->request);
  TR_TRY(stream.status());
  Result<std::vector<Plan>> plans = plan_stream(target, position, *first, options.any_run);
  TR_TRY(plans.status());
  std::vector<std::shared_ptr<void>> locks;
  for (const Plan& plan : *plans) {
    if (plan.act == Act::none) continue;
    Result<std::shared_ptr<void>> lock = target.lock(streams::lock_path(plan.state.path));
    TR_TRY(lock.status());
    TR_TRY(streams::end_replacing(target, plan.state.path));
    locks.push_back(std::move(*lock));
  }
  // Under the locks: what was seen before may have changed, by ended replacements, too.
  const Result<OwnFiles> own = find_own(target, position, options.any_run);
  TR_TRY(own.status());
  plans = plan_stream(target, position, *own, options.any_run);
  TR_TRY(plans.status());
  for (const Plan& plan : *plans) {
    if (plan.state.outlook > Outlook::ahead)
      return {plan.state.outlook == Outlook::lost ? Code::corrupt : Code::io, plan.state.text};
    TR_TRY(carry_out(target, plan, position.lead.value_or(0)));
  }
  return {};
}

}  // namespace tailrace::restart
