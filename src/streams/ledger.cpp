// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "streams/ledger.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "streams/index.hpp"
#include "streams/look.hpp"
#include "streams/manifest.hpp"
#include "streams/parse.hpp"
#include "streams/reindex.hpp"
#include "streams/resume.hpp"

namespace tailrace::streams {

namespace {

using pipeline::Begun;
using pipeline::Opening;
using pipeline::StepEntry;

/// Starts a shell with the signals of a program that a user starts: threads of the library block all of them,
/// and servers ignore TERM.
int spawn_shell(pid_t& child, const char* const* arguments) {
  posix_spawnattr_t attributes;
  if (const int error = posix_spawnattr_init(&attributes); error != 0) return error;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error =
      posix_spawn(&child, "/bin/sh", nullptr, &attributes, const_cast<char* const*>(arguments), environ);
  posix_spawnattr_destroy(&attributes);
  return error;
}

/// Runs `command` in a shell with the file as $1. A failing hook is reported and changes nothing else.
void run_hook(const std::string& command, const std::string& path) {
  const char* arguments[] = {"sh", "-c", command.c_str(), "tailrace-hook", path.c_str(), nullptr};
  pid_t child = 0;
  const int error = spawn_shell(child, arguments);
  int status = 0;
  if (error == 0) ::waitpid(child, &status, 0);
  if (error == 0 && status == 0) return;
  const std::string why = error != 0                   ? cat("/bin/sh: ", std::strerror(error))
                          : WIFSIGNALED(status)        ? cat("ended by signal ", WTERMSIG(status))
                          : WEXITSTATUS(status) == 127 ? std::string("exit status 127: command not found")
                                                       : cat("exit status ", WEXITSTATUS(status));
  log(LogLevel::warn, cat("hook '", command, "' failed for ", path, " (", why, ")"));
}

class FileLedger final : public pipeline::Ledger {
 public:
  FileLedger(const Opening& opening, StreamRequest request, Uuid run, std::optional<Resuming> resuming,
             std::shared_ptr<storage::Target> target)
      : opening_(opening),
        request_(std::move(request)),
        resuming_(std::move(resuming)),
        target_(std::move(target)) {
    const codec::StreamDefinition& stream = opening.definition;
    header_ = {run, stream.format, stream.base, stream.calendar, stream.member, 0, {}};
    for (const codec::FieldDefinition& field : opening.fields) {
      header_.fields.push_back({field.name, field.type, field.shape, field.levels.type, field.levels.values});
    }
    note_left_open();
    to_finish_.insert(left_open_.begin(), left_open_.end());
  }

  Result<std::string> path_of(std::int64_t lead) override {
    if (resuming_ && resuming_->has_passed(lead)) {
      return Status(Code::order, cat("the stream continues behind lead ", *resuming_->position.lead,
                                     " s; the step at lead ", lead, " s cannot follow"));
    }
    return request_.pattern.expand(lead, request_.context());
  }

  [[nodiscard]] std::vector<std::string> left_open() const override { return left_open_; }

  Result<Begun> begin_file(const std::string& path, std::int64_t lead, Bytes expected) override {
    if (is_finished(path)) {
      return Status(Code::state, cat("the step at lead ", lead, " s belongs to ", path,
                                     ", which was complete when a later step went to another file"));
    }
    if (const auto parent = std::filesystem::path(path).parent_path(); !parent.empty()) {
      TR_TRY(target_->make_directories(parent.string()));
    }
    TR_TRY(wait_for_space(path, expected));
    Result<std::shared_ptr<void>> lock = target_->lock(lock_path(path));
    TR_TRY(lock.status());
    TR_TRY(end_replacing(*target_, path));
    Result<std::optional<Pair>> pair = taken_over_pair(path);
    TR_TRY(pair.status());
    if (pair->has_value()) return take_over(path, **pair, std::move(*lock));
    Result<OpenFile> file = resuming_ && path == resuming_->path ? go_on_with(path) : open_file(path, lead);
    TR_TRY(file.status());
    Begun begun{file->index.data_end(), written_to(path, file->again)};
    keep_open(path, std::move(*file), std::move(*lock));
    return begun;
  }

  Status commit(const StepEntry& entry) override {
    OpenFile& file = *find_open(entry.path);
    TR_TRY(storage::check_holds(*target_, written_to(entry.path, file.again), entry.end));
    IndexWriter& index = file.index;
    // A stream that continues a file continues its numbers of steps.
    IndexStep step{index.steps(), entry.lead, entry.begin, entry.end, {}};
    for (const pipeline::RecordEntry& record : entry.records) {
      step.records.push_back(
          {record.field, static_cast<std::int32_t>(record.level), record.offset, record.length});
    }
    TR_TRY(index.append(step));
    return index.sync();
  }

  Status cut(const std::string& path, Bytes size) override {
    OpenFile* const open = find_open(path);
    // Data that the index still tells of are never cut.
    if (open != nullptr) TR_TRY(open->index.lost());
    Result<std::unique_ptr<storage::File>> file =
        target_->open(open != nullptr ? written_to(path, open->again) : path, storage::OpenMode::existing);
    TR_TRY(file.status());
    const Result<Bytes> found = (*file)->size();
    TR_TRY(found.status());
    // Something else has cut the file. Zeros in place of the lost bytes would hide the loss.
    if (*found > size) {
      TR_TRY((*file)->truncate(size));
      // The file may be complete without a further step, and its index closed. Then nothing cuts it again.
      TR_TRY((*file)->sync());
    }
    return (*file)->close();
  }

  Status finish_file(const std::string& path) override {
    std::unique_lock guard(mutex_);
    auto taken = open_.extract(path);
    if (taken.empty() && to_finish_.count(path) == 0) return {};
    finished_.insert(path);
    guard.unlock();
    Result<std::optional<Whole>> whole =
        taken.empty() ? finish_left_open(path) : finish(path, taken.mapped());
    guard.lock();
    if (!whole.is_ok()) {
      if (!taken.empty()) open_.insert(std::move(taken));
      return whole.status();
    }
    to_finish_.erase(path);
    if (*whole) to_announce_.emplace(path, std::move(**whole));
    return {};
  }

  Status announce(const std::string& path) override {
    std::unique_lock guard(mutex_);
    auto taken = to_announce_.extract(path);
    guard.unlock();
    if (taken.empty()) return {};
    Whole& whole = taken.mapped();
    const Status status = announce(path, whole);
    if (status.is_ok()) return {};
    whole.tried = true;
    guard.lock();
    to_announce_.insert(std::move(taken));
    return status;
  }

 private:
  struct OpenFile {
    std::shared_ptr<void> lock;
    IndexWriter index;
    bool again = false;   // the file is that of the second pair
    bool closed = false;  // no step will follow
  };
  /// A file that is finished and not announced.
  struct Whole {
    std::shared_ptr<void> lock;
    bool is_new = false;  // nobody can have heard of the file
    bool tried = false;   // an earlier try to announce it may have done a part
  };

  void note_left_open() {
    if (takes_over_steps()) {
      const Result<std::string> path = request_.pattern.expand(opening_.previous_lead, request_.context());
      if (path.is_ok()) left_open_.push_back(*path);
      return;
    }
    if (!resuming_) return;
    for (const std::string& path : {resuming_->before, resuming_->path}) {
      if (!path.empty()) left_open_.push_back(path);
    }
  }

  /// Returns true if another server has told the verdict of steps of this stream.
  [[nodiscard]] bool takes_over_steps() const { return opening_.is_taken_over && opening_.first_step > 0; }

  /// Returns true if steps that have their verdict may be in the file.
  [[nodiscard]] bool has_decided_steps(const std::string& path) const {
    return takes_over_steps() && !left_open_.empty() && path == left_open_.front();
  }

  /// Returns the pair that a server before this one has begun in this run, if there is any. A run that
  /// continues from a checkpoint may find files of its earlier jobs under other names: it writes those again.
  Result<std::optional<Pair>> taken_over_pair(const std::string& path) {
    if (!opening_.is_taken_over) return std::optional<Pair>();
    const bool decided = has_decided_steps(path);
    if (!decided && (resuming_ || goes_on_with_others())) return std::optional<Pair>();
    for (const bool again : {true, false}) {
      const std::string data = written_to(path, again);
      const Result<bool> exists = pair_exists(*target_, data);
      TR_TRY(exists.status());
      if (!*exists) continue;
      Result<IndexContents> contents = load_index(*target_, index_path(data));
      if (contents.status().code() == Code::io) return contents.status();
      const bool own = contents.is_ok() && (contents->header.run == header_.run || goes_on_with_others());
      if (own) return std::optional(Pair{std::move(*contents), again});
    }
    return std::optional<Pair>();
  }

  Result<Begun> take_over(const std::string& path, const Pair& pair, std::shared_ptr<void> lock) {
    Begun begun{pair.contents.data_end(), written_to(path, pair.again)};
    for (const IndexStep& step : pair.contents.steps) begun.leads.push_back(step.lead);
    begun.is_finished = pair.contents.closed && !pair.again;
    if (begun.is_finished) {
      const std::lock_guard guard(mutex_);
      to_finish_.insert(path);
      return begun;
    }
    Result<OpenFile> file = reopen(path, pair.again);
    TR_TRY(file.status());
    keep_open(path, std::move(*file), std::move(lock));
    return begun;
  }

  void keep_open(const std::string& path, OpenFile file, std::shared_ptr<void> lock) {
    file.lock = std::move(lock);
    const std::lock_guard guard(mutex_);
    open_.emplace(path, std::move(file));
  }

  [[nodiscard]] bool is_finished(const std::string& path) {
    const std::lock_guard guard(mutex_);
    return finished_.count(path) != 0;
  }

  /// Returns the entry of an open file. Only jobs of the file itself touch it.
  [[nodiscard]] OpenFile* find_open(const std::string& path) {
    const std::lock_guard guard(mutex_);
    const auto found = open_.find(path);
    return found == open_.end() ? nullptr : &found->second;
  }

  static std::string written_to(const std::string& path, bool again) {
    return again ? again_path(path) : path;
  }

  [[nodiscard]] bool goes_on_with_others() const { return request_.options.existing == Existing::resume; }

  /// Opens data file and index, empty or continued. Their directory entries are durable.
  Result<OpenFile> open_file(const std::string& path, std::int64_t lead) {
    Result<bool> exists = target_->exists(path);
    TR_TRY(exists.status());
    Result<bool> indexed = target_->exists(index_path(path));
    TR_TRY(indexed.status());
    if (resuming_ && *indexed) {
      const Result<IndexContents> found = load_index(*target_, index_path(path));
      if (found.status().code() == Code::io) return found.status();
      const bool own = found.is_ok() && found->header.run == header_.run;
      if (own && found->closed && *exists) return opened(begin_again(*target_, path, header_), true);
      if (own) return begin_anew(path);
    }
    if (*exists && request_.options.existing == Existing::fail) {
      Result<bool> left_behind = is_left_behind(path, *indexed);
      TR_TRY(left_behind.status());
      if (!*left_behind) return exists_already(path);
    }
    if (goes_on_with_others() && !resuming_ && !*indexed) {
      Result<bool> again = index_again(path);
      TR_TRY(again.status());
      indexed = *again;
    }
    if (*indexed && goes_on_with_others()) return opened(continue_index(path, lead), false);
    return begin_anew(path);
  }

  static Result<OpenFile> opened(Result<IndexWriter> index, bool again) {
    TR_TRY(index.status());
    return OpenFile{nullptr, std::move(*index), again, false};
  }

  /// Opens a pair with its committed steps, up to `through_lead`.
  Result<OpenFile> reopen(const std::string& path, bool again,
                          std::optional<std::int64_t> through_lead = {}) {
    return opened(reopen_pair(*target_, written_to(path, again), through_lead), again);
  }

  /// Returns true for an empty file without an index: the run that this one continues may have been killed
  /// between the creations of data and index.
  Result<bool> is_left_behind(const std::string& path, bool indexed) {
    if (!resuming_ || indexed) return false;
    const Result<std::optional<Bytes>> size = storage::size_if_there(*target_, path);
    TR_TRY(size.status());
    return *size == 0;
  }

  /// Returns the steps of a file that has lost its index. The definitions know them by their bytes.
  Result<FoundSteps> find_own_steps(const std::string& path) {
    const Result<std::unique_ptr<codec::Codec>> codec = opening_.codec();
    TR_TRY(codec.status());
    const std::unique_ptr<codec::Finder> finder = (*codec)->finder();
    Result<FoundSteps> found = find_steps(*target_, path, header_.fields, finder.get());
    TR_TRY(found.status());
    for (const IndexStep& step : found->steps) {
      const Result<std::string> named = request_.pattern.expand(step.lead, request_.context());
      if (named.is_ok() && *named == path) continue;
      return Status(Code::state,
                    cat(path, ": has the step at lead ", step.lead,
                        " s, which belongs to another file of the stream, and no index beside it; "
                        "move it away, or lose it with existing=overwrite"));
    }
    return found;
  }

  /// For existing=continue without an index: makes a new one of the whole steps. Returns false if there is
  /// nothing to tell of.
  Result<bool> index_again(const std::string& path) {
    Result<bool> nothing = is_empty_or_indexed(*target_, path);
    TR_TRY(nothing.status());
    if (*nothing) return false;
    // A new index would name another run than the second pair does, and nobody would go on with the second
    // pair's steps then.
    const Result<bool> again = target_->exists(again_path(path));
    TR_TRY(again.status());
    if (*again) {
      return Status(Code::state,
                    cat(path, ": has no index, and steps that follow may be in ", again_path(path), "; put ",
                        index_path(path), " back, or move ", again_path(path), " and its index away"));
    }
    Result<FoundSteps> found = find_own_steps(path);
    TR_TRY(found.status());
    TR_TRY(keep_whole_steps(path, header_.fields, *found));
    TR_TRY(write_index(*target_, path, header_, found->steps));
    log(LogLevel::warn, cat(path, ": had no index and was indexed again from its messages: ",
                            found->steps.size(), found->steps.size() == 1 ? " step" : " steps",
                            found->torn ? "; what lies behind them was not finished and is cut off" : ""));
    return true;
  }

  /// Refuses to empty a file that this library has not written.
  Status check_ours(const std::string& path) {
    if (request_.options.existing == Existing::overwrite) return {};
    Result<bool> known = is_empty_or_indexed(*target_, path);
    TR_TRY(known.status());
    return *known ? Status() : find_own_steps(path).status();
  }

  Result<OpenFile> begin_anew(const std::string& path) {
    TR_TRY(check_ours(path));
    TR_TRY(remove_ready_marker(*target_, path, request_.options.ready_suffix));
    TR_TRY(discard_again(*target_, path));
    Result<bool> exists = target_->exists(path);
    TR_TRY(exists.status());
    // Old data lose their index to the new one in one rename. Without any index they would be nobody's.
    if (*exists) {
      Result<IndexWriter> index = IndexWriter::create(*target_, index_path(path), header_);
      TR_TRY(index.status());
      TR_TRY(storage::create_empty(*target_, path));
      return opened(std::move(index), false);
    }
    TR_TRY(remove_index(*target_, path));
    TR_TRY(storage::create_empty(*target_, path));
    return opened(IndexWriter::create(*target_, index_path(path), header_), false);
  }

  /// For existing=continue: continues the file of an earlier run, or of this one if a stream comes back to
  /// it.
  Result<IndexWriter> continue_index(const std::string& path, std::int64_t lead) {
    const Result<Pair> before = pair_without_checkpoint(*target_, path);
    TR_TRY(before.status());
    // The index has room for one set of fields: readers would take steps of other fields for steps of these.
    if (!header_.fields.empty()) {
      const Status same = check_same_stream(path, before->contents.header, header_, true);
      const std::string_view advice = " (existing=replace begins anew; or choose another pattern)";
      if (!same.is_ok()) return resuming_ ? same : Status(same.code(), cat(same.text(), advice));
    }
    // A file that cannot be continued stays as it is, closed if it was.
    if (const auto& steps = before->contents.steps;
        !resuming_ && !steps.empty() && steps.back().lead >= lead) {
      return Status(Code::order,
                    cat(path, " goes up to lead ", steps.back().lead, " s already; the step at lead ", lead,
                        " s cannot follow (existing=replace begins anew)"));
    }
    TR_TRY(remove_ready_marker(*target_, path, request_.options.ready_suffix));
    TR_TRY(settle_again(*target_, path, before->again));
    // The killed run has written the steps behind a checkpoint's position.
    return reopen_pair(*target_, path, resuming_ ? std::optional(lead - 1) : std::nullopt);
  }

  /// Finds the pair to go on with, which must fit to the stream. Returns none if no step ever came to that
  /// file.
  Result<std::optional<Pair>> find_left_open(const std::string& path) {
    Result<std::optional<Pair>> pair =
        recorded_pair(*target_, path, header_, *resuming_, goes_on_with_others());
    TR_TRY(pair.status());
    // A stream that is closed at once may have no fields: then it has no steps to put either.
    if (pair->has_value() && header_.fields.empty()) header_.fields = (*pair)->contents.header.fields;
    return pair;
  }

  Result<OpenFile> go_on_with(const std::string& path) {
    Result<std::optional<Pair>> pair = find_left_open(path);
    TR_TRY(pair.status());
    const std::int64_t lead = *resuming_->position.lead;
    if (!pair->has_value()) return open_file(path, lead);
    if ((*pair)->again) return reopen(path, true, lead);
    const IndexContents& contents = (*pair)->contents;
    if (!contents.closed) return cut_back(path);
    return opened(copy_again(*target_, path, contents, contents.steps_up_to(lead)), true);
  }

  Result<OpenFile> cut_back(const std::string& path) {
    TR_TRY(discard_again(*target_, path));
    return reopen(path, false, resuming_->position.lead);
  }

  /// No step comes to that file any more. Does everything that the killed run, or the server that is
  /// replaced, had not done yet.
  Result<std::optional<Whole>> finish_left_open(const std::string& path) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (!parent.empty()) TR_TRY(target_->make_directories(parent));
    Result<std::shared_ptr<void>> lock = target_->lock(lock_path(path));
    TR_TRY(lock.status());
    TR_TRY(end_replacing(*target_, path));
    const bool another_server = opening_.is_taken_over && (takes_over_steps() || !resuming_);
    if (!another_server) {
      Result<bool> skipped =
          path == resuming_->path ? was_taken_away(*target_, *resuming_) : is_settled(path);
      TR_TRY(skipped.status());
      if (*skipped) return std::optional<Whole>();
    }
    Result<std::optional<Pair>> pair = another_server ? taken_over_pair(path) : find_left_open(path);
    TR_TRY(pair.status());
    if (!pair->has_value()) return std::optional<Whole>();
    if ((*pair)->again || !(*pair)->contents.closed) {
      Result<OpenFile> file = another_server   ? reopen(path, (*pair)->again)
                              : (*pair)->again ? reopen(path, true, resuming_->position.lead)
                                               : cut_back(path);
      TR_TRY(file.status());
      file->lock = std::move(*lock);
      return finish(path, *file);
    }
    TR_TRY(discard_again(*target_, path));
    TR_TRY(make_index_durable(*target_, path));
    return std::optional(Whole{std::move(*lock)});
  }

  /// For a file before the one of the last step. Returns true also if the file is gone, or another run's:
  /// nobody misses it.
  Result<bool> is_settled(const std::string& path) {
    const Result<bool> indexed = target_->exists(index_path(path));
    TR_TRY(indexed.status());
    if (!*indexed) return true;
    const Result<IndexContents> contents = load_index(*target_, index_path(path));
    TR_TRY(contents.status());
    return contents->header.run != header_.run;
  }

  /// A file without steps has nothing left to announce.
  Result<std::optional<Whole>> finish(const std::string& path, OpenFile& file) {
    if (file.index.steps() == 0) {
      TR_TRY(remove_empty(path, file));
      return std::optional<Whole>();
    }
    if (!file.closed) {
      TR_TRY(storage::check_holds(*target_, written_to(path, file.again), file.index.data_end()));
      TR_TRY(file.index.append_closed());
      TR_TRY(file.index.sync());
      file.closed = true;
      TR_TRY(file.index.close());
    }
    if (file.again) TR_TRY(put_in_place(path));
    return std::optional(Whole{std::move(file.lock), !file.again});
  }

  /// Equal bytes are the rule. Then the published file stays, even with steps to which this run has not come,
  /// and so does what waits for it.
  Status put_in_place(const std::string& path) {
    // An earlier try may have failed between the two renames.
    TR_TRY(end_replacing(*target_, path));
    const Result<bool> exists = pair_exists(*target_, again_path(path));
    TR_TRY(exists.status());
    Result<bool> held = !*exists;
    if (*exists) held = first_holds_again(*target_, path);
    TR_TRY(held.status());
    return *held ? discard_again(*target_, path) : replace_by_again(*target_, path);
  }

  /// An earlier run may have announced a file that is not new: it gets line, marker and hook if that run had
  /// not come to them.
  Status announce(const std::string& path, const Whole& whole) {
    bool told = false;
    bool news = whole.is_new;
    if (request_.options.manifest.value_or(true)) {
      const Result<bool> added = add_to_manifest(path, !whole.is_new || whole.tried);
      TR_TRY(added.status());
      told = true;
      news = news || *added;
    }
    if (const std::string& suffix = request_.options.ready_suffix; !suffix.empty()) {
      const Result<bool> marked = target_->exists(path + suffix);
      TR_TRY(marked.status());
      TR_TRY(create_ready_marker(*target_, path, suffix));
      told = true;
      news = news || !*marked;
    }
    // If nothing tells whether the hook has run, one more run does less harm than none.
    if (!request_.options.hook.empty() && (news || !told)) run_hook(request_.options.hook, path);
    return {};
  }

  Status wait_for_space(const std::string& path, Bytes expected) {
    const std::int64_t patience = request_.options.full_wait_seconds.value_or(0);
    for (std::int64_t waited = 0;; ++waited) {
      Result<storage::Space> space = target_->space(path);
      TR_TRY(space.status());
      if (space->free >= expected) return {};
      if (waited >= patience) {
        return Status(Code::space, cat("no space for ", path, ": the first step takes ",
                                       counted(expected, "byte"), ", ", space->free, " are free"));
      }
      const timespec second{1, 0};
      ::nanosleep(&second, nullptr);
    }
  }

  /// With `once` it adds a line only if the manifest's last line about the file does not say the same.
  /// Returns true if the manifest has a new line.
  Result<bool> add_to_manifest(const std::string& path, bool once) {
    const Status available = manifest_available();
    if (!available.is_ok() && !request_.options.manifest) return false;
    TR_TRY(available);
    Result<IndexContents> contents = load_index(*target_, index_path(path));
    TR_TRY(contents.status());
    ManifestEntry entry = manifest_entry(path, *contents);
    Result<std::string> digest = digest_file(*target_, path);
    TR_TRY(digest.status());
    entry.digest = *digest;
    if (once) return ensure_in_manifest(*target_, manifest_path(path), entry);
    TR_TRY(append_to_manifest(*target_, manifest_path(path), entry));
    return true;
  }

  Status remove_empty(const std::string& path, OpenFile& file) {
    if (!std::exchange(file.closed, true)) TR_TRY(file.index.close());
    // The published file stays.
    if (file.again) return discard_again(*target_, path);
    TR_TRY(remove_index(*target_, path));
    TR_TRY(storage::remove_if_there(*target_, path).status());
    return target_->sync_directory_of(path);
  }

  const Opening& opening_;
  StreamRequest request_;
  std::optional<Resuming> resuming_;
  std::shared_ptr<storage::Target> target_;
  IndexHeader header_;
  std::mutex mutex_;  // for the two members below
  std::map<std::string, OpenFile> open_;
  std::set<std::string> finished_;
  std::vector<std::string> left_open_;
  std::set<std::string> to_finish_;  // of left_open_
  std::map<std::string, Whole> to_announce_;
};

}  // namespace

std::string pack_ledger(const std::string& pattern, const std::string& options, const Uuid& run,
                        const std::optional<Position>& resume) {
  const ByteVector position = resume ? resume->pack() : ByteVector();
  return cat(pattern, "\n", run.text(), "\n", position.size(), "\n",
             std::string_view(reinterpret_cast<const char*>(position.data()), position.size()), options);
}

Result<std::unique_ptr<pipeline::Ledger>> make_ledger(const pipeline::Opening& opening,
                                                      std::shared_ptr<storage::Target> target) {
  std::string_view text = opening.ledger;
  const std::string_view pattern = take_line(text);
  Result<Uuid> run = Uuid::parse(take_line(text));
  TR_TRY(run.status());
  const std::size_t length = std::stoul(std::string(take_line(text)));
  const std::string_view packed = text.substr(0, length);
  Result<StreamRequest> request = parse_stream(pattern, text.substr(length));
  TR_TRY(request.status());
  std::optional<Resuming> resuming;
  if (length > 0) {
    Result<Position> position = Position::unpack(std::as_bytes(std::span(packed)));
    TR_TRY(position.status());
    Result<Resuming> from = resuming_from(std::move(*position), *request);
    TR_TRY(from.status());
    resuming = std::move(*from);
  }
  return std::unique_ptr<pipeline::Ledger>(std::make_unique<FileLedger>(
      opening, std::move(*request), *run, std::move(resuming), std::move(target)));
}

}  // namespace tailrace::streams
