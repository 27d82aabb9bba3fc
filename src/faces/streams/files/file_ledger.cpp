// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/files/file_ledger.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/files/manifest.hpp"
#include "faces/streams/files/pairs.hpp"
#include "formats/index/ending.hpp"
#include "formats/index/head.hpp"
#include "formats/references/references.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::streams {

namespace {

using pipeline::Begun;
using pipeline::Opening;
using pipeline::StepEntry;
using references::References;

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
  /// `references` is null unless the stream asks for reference files.
  FileLedger(Pairs pairs, std::unique_ptr<References> references)
      : pairs_(std::move(pairs)), references_(std::move(references)) {
    to_finish_.insert(pairs_.left_open().begin(), pairs_.left_open().end());
  }

  Result<std::string> path_of(std::int64_t lead) override {
    Result<std::string> path = pairs_.path_of(lead);
    const std::lock_guard guard(mutex_);
    if (path.is_ok()) least_lead_ = std::min(least_lead_, lead);
    return path;
  }

  [[nodiscard]] std::vector<std::string> left_open() const override { return pairs_.left_open(); }

  Result<Begun> begin_file(const std::string& path, std::int64_t lead, Bytes expected) override {
    if (is_finished(path)) {
      return Status(Code::state, cat("the step at ", pairs_.times().at(lead), " belongs to ", path,
                                     ", which was complete when a later step went to another file"));
    }
    TR_TRY(check_open_ones());
    Result<Pairs::Beginning> beginning = pairs_.begin(path, lead, expected);
    TR_TRY(beginning.status());
    const std::lock_guard guard(mutex_);
    if (beginning->pair)
      open_.emplace(path, std::move(*beginning->pair));
    else
      to_finish_.insert(path);
    return std::move(beginning->begun);
  }

  Status check_owner(const std::string& path) override {
    OpenPair* const open = find_open(path);
    return open != nullptr ? open->index.check_owner() : Status();
  }

  Status commit(const StepEntry& entry) override {
    OpenPair& file = *find_open(entry.path);
    std::vector<storage::Range> records;
    for (const pipeline::RecordEntry& record : entry.records)
      records.push_back({record.offset, record.length});
    TR_TRY(storage::check_holds(pairs_.target(), written_to(entry.path, file.again), entry.end, records));
    IndexWriter& index = file.index;
    // A stream that continues a file continues its numbers of steps.
    IndexStep step{index.steps(), entry.lead, entry.begin, entry.end, {}};
    for (const pipeline::RecordEntry& record : entry.records) {
      step.records.push_back(
          {record.field, static_cast<std::int32_t>(record.level), record.offset, record.length});
    }
    TR_TRY(index.append(step));
    TR_TRY(index.sync());
    // The step is durable now. If the number of steps cannot be written into the file, the next step writes
    // it, or finish_file.
    const Status told = tell_steps(pairs_.target(), written_to(entry.path, file.again),
                                   pairs_.request().definition.format, index.steps());
    if (!told.is_ok())
      log(LogLevel::warn, cat(entry.path, ": readers do not see its last step yet: ", told.text()));
    refresh_references(entry.path, file);
    add_to_listings(entry.path, file, records);
    return {};
  }

  Status cut(const std::string& path, Bytes size) override {
    OpenPair* const open = find_open(path);
    // Data that the index still tells of are never cut, and neither are those of another run that has taken
    // the file meanwhile: a process that was stopped for a time finds them when it wakes.
    if (open != nullptr) TR_TRY(open->index.check_owner());
    const std::string data = open != nullptr ? written_to(path, open->again) : path;
    const Result<std::unique_ptr<storage::File>> file =
        pairs_.target().open(data, storage::OpenMode::existing);
    TR_TRY(file.status());
    TR_TRY(storage::cut_back_durably(**file, size).status());
    (*file)->give_back_room();  // that a collective method has taken for the step
    return (*file)->close();
  }

  Status finish_file(const std::string& path) override {
    std::unique_lock guard(mutex_);
    auto taken = open_.extract(path);
    if (taken.empty() && comes_later(path)) to_finish_.erase(path);
    if (taken.empty() && to_finish_.count(path) == 0) return {};
    finished_.insert(path);
    guard.unlock();
    // The reference file may tell all steps already: of a file with one step, or with slow steps.
    const bool are_told = !taken.empty() && taken.mapped().references.told() == taken.mapped().index.steps();
    // A second pair gets its listings when it takes the place of the first.
    std::vector<listings::Writer> writers;
    if (!taken.empty() && !taken.mapped().again) writers = taken.mapped().listings;
    Result<std::optional<WholePair>> whole =
        taken.empty() ? pairs_.finish_left_open(path) : pairs_.finish(path, taken.mapped());
    if (whole.is_ok() && *whole && !are_told) static_cast<void>(write_references(path));
    if (whole.is_ok() && *whole) finish_listings(path, std::move(writers));
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
    WholePair& whole = taken.mapped();
    const Status status = announce(path, whole);
    if (status.is_ok()) return {};
    whole.tried = true;
    guard.lock();
    to_announce_.insert(std::move(taken));
    return status;
  }

 private:
  /// True if a run before has left the file, and the file's last step does not lie before the first step of
  /// this run: the stream may still come to the file. The caller holds the mutex.
  [[nodiscard]] bool comes_later(const std::string& path) const {
    const auto found = std::ranges::find(pairs_.left_behind(), path, &LeftBehind::path);
    return found != pairs_.left_behind().end() && found->lead >= least_lead_;
  }

  [[nodiscard]] bool is_finished(const std::string& path) {
    const std::lock_guard guard(mutex_);
    return finished_.count(path) != 0;
  }

  /// Writes the reference file anew. Returns false if the stream asks for none, or if writing fails. A
  /// failure is only logged: the data file is as durable without it, and what an older reference file tells
  /// stays right.
  bool write_references(const std::string& path) {
    if (references_ == nullptr) return false;
    const Status written = guarded([&]() -> Status {
      const Result<IndexContents> contents = load_index(pairs_.target(), index_path(path));
      TR_TRY(contents.status());
      // A file of a run before may have other fields. The reference file of that run stays.
      if (!pairs_.has_our_fields(*contents)) return {};
      return references_->write(pairs_.target(), references_path(path), path, finished_steps(*contents));
    });
    if (!written.is_ok())
      log(LogLevel::warn, cat(references_path(path), " does not tell the last steps: ", written.text()));
    return written.is_ok();
  }

  /// Writes the references after a commit, if that takes a small share of the time.
  void refresh_references(const std::string& path, OpenPair& file) {
    const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
    const std::int64_t begin = now();
    // The second pair of a name gets references when it takes the place of the first.
    const std::int64_t steps = file.index.steps();
    if (references_ == nullptr || file.again || !file.references.may_write(begin, steps)) return;
    const bool are_told = write_references(path);
    file.references.wrote(begin, now(), steps, are_told);
  }

  [[nodiscard]] listings::AllRecords records_of(const std::string& path) const {
    return [this, path]() -> Result<std::vector<storage::Range>> {
      const Result<IndexContents> contents = load_index(pairs_.target(), index_path(path));
      TR_TRY(contents.status());
      return ranges_of(contents->steps);
    };
  }

  static void warn_of_listing(const std::string& path, const codec::Listing& kind, const Status& status) {
    if (status.is_ok()) return;
    const std::string name = path + std::string(kind.suffix);
    log(LogLevel::warn, status.text().starts_with(name)
                            ? status.text()
                            : cat(name, " does not tell the last steps: ", status.text()));
  }

  /// The step is durable whether the listings tell of it or not. They get the lines that they lack with the
  /// next step, or when the file is finished.
  void add_to_listings(const std::string& path, OpenPair& file, const std::vector<storage::Range>& records) {
    if (file.again) return;
    for (listings::Writer& listing : file.listings) {
      const Status added = listing.add(pairs_.target(), path, records, records_of(path));
      warn_of_listing(path, listing.kind(), added);
    }
  }

  /// `writers` are those that have written the listings, or none.
  void finish_listings(const std::string& path, std::vector<listings::Writer> writers) {
    if (writers.empty()) {
      for (const codec::Listing& kind : options().listings) writers.emplace_back(kind);
    }
    for (listings::Writer& listing : writers) {
      const Status finished = listing.finish(pairs_.target(), path, records_of(path));
      warn_of_listing(path, listing.kind(), finished);
    }
  }

  /// Returns Code::state if another run has taken one of the open files: it has taken the stream, and with
  /// existing=replace this run would remove the next file of the other one. Jobs of those files may run now.
  Status check_open_ones() {
    std::vector<std::pair<std::string, Uuid>> indexes;
    {
      const std::lock_guard guard(mutex_);
      for (const auto& [path, file] : open_)
        indexes.emplace_back(index_path(written_to(path, file.again)), file.index.header().run);
    }
    for (const auto& [index, run] : indexes) {
      const Status owner = check_run(pairs_.target(), index, run);
      if (owner.code() == Code::state) return owner;
    }
    return {};
  }

  /// Returns the entry of an open file. Only jobs of the file itself touch it.
  [[nodiscard]] OpenPair* find_open(const std::string& path) {
    const std::lock_guard guard(mutex_);
    const auto found = open_.find(path);
    return found == open_.end() ? nullptr : &found->second;
  }

  /// Tells others of a file by manifest, ready marker and hook. An earlier run may have announced a file that
  /// is not new: such a file gets only what that run had not come to.
  Status announce(const std::string& path, const WholePair& whole) {
    bool told = false;
    bool news = whole.is_new;
    if (options().manifest.value_or(true)) {
      const Result<bool> added = add_to_manifest(path, !whole.is_new || whole.tried);
      TR_TRY(added.status());
      told = true;
      news = news || *added;
    }
    if (const std::string& suffix = options().ready_suffix; !suffix.empty()) {
      const Result<bool> marked = whole.is_new ? Result<bool>(false) : pairs_.target().exists(path + suffix);
      TR_TRY(marked.status());
      TR_TRY(create_ready_marker(pairs_.target(), path, suffix));
      told = true;
      news = news || !*marked;
    }
    // If nothing tells whether the hook has run, one more run does less harm than none.
    if (!options().hook.empty() && (news || !told)) run_hook(options().hook, path);
    return {};
  }

  /// With `once` it adds a line only if the manifest's last line about the file does not say the same.
  /// Returns true if the manifest has a new line.
  Result<bool> add_to_manifest(const std::string& path, bool once) {
    const Status available = manifest_available();
    if (!available.is_ok() && !options().manifest) return false;
    TR_TRY(available);
    Result<IndexContents> contents = load_index(pairs_.target(), index_path(path));
    TR_TRY(contents.status());
    ManifestEntry entry = manifest_entry(path, *contents);
    Result<std::string> digest = digest_file(pairs_.target(), path);
    TR_TRY(digest.status());
    entry.digest = *digest;
    // Some formats have an ending behind the last step.
    Result<std::optional<Bytes>> size = storage::size_if_there(pairs_.target(), path);
    TR_TRY(size.status());
    entry.size = size->value_or(entry.size);
    if (once) return ensure_in_manifest(pairs_.target(), manifest_path(path), entry);
    TR_TRY(append_to_manifest(pairs_.target(), manifest_path(path), entry));
    return true;
  }

  [[nodiscard]] const StreamOptions& options() const { return pairs_.request().options; }

  Pairs pairs_;
  const std::unique_ptr<References> references_;
  std::mutex mutex_;  // for the members below
  std::map<std::string, OpenPair> open_;
  std::set<std::string> finished_;
  std::set<std::string> to_finish_;  // of left_open(), and what another server has finished
  std::map<std::string, WholePair> to_announce_;
  std::int64_t least_lead_ = std::numeric_limits<std::int64_t>::max();  // of all steps so far
};

std::vector<LeftBehind> unpack_left_behind(std::string_view packed) {
  std::vector<LeftBehind> left;
  Unpacker in(std::as_bytes(std::span(packed)));
  while (!in.rest().empty() && in.ok()) {
    LeftBehind each;
    each.path = in.get_text();
    each.lead = in.get<std::int64_t>();
    left.push_back(std::move(each));
  }
  return left;
}

}  // namespace

std::string pack_ledger(const std::string& pattern, const std::string& options, const Uuid& run,
                        const std::optional<Position>& resume, const std::vector<LeftBehind>& left_behind) {
  const ByteVector position = resume ? resume->pack() : ByteVector();
  Packer left;
  for (const LeftBehind& each : left_behind) left.put_text(each.path).put(each.lead);
  const auto text_of = [](const ByteVector& bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  return cat(pattern, "\n", run.text(), "\n", position.size(), "\n", left.bytes().size(), "\n",
             text_of(position), text_of(left.bytes()), options);
}

Result<std::unique_ptr<pipeline::Ledger>> make_ledger(const pipeline::Opening& opening,
                                                      const codec::Codec& codec,
                                                      std::shared_ptr<storage::Target> target) {
  std::string_view text = opening.ledger;
  const std::string_view pattern = take_line(text);
  Result<Uuid> run = Uuid::parse(take_line(text));
  TR_TRY(run.status());
  const std::size_t length = std::stoul(std::string(take_line(text)));
  const std::size_t left_length = std::stoul(std::string(take_line(text)));
  const std::string_view packed = text.substr(0, length);
  const std::string_view packed_left = text.substr(length, left_length);
  Result<StreamRequest> request = parse_stream(pattern, text.substr(length + left_length));
  TR_TRY(request.status());
  std::optional<Resuming> resuming;
  if (length > 0) {
    Result<Position> position = Position::unpack(std::as_bytes(std::span(packed)));
    TR_TRY(position.status());
    Result<Resuming> from = resuming_from(std::move(*position), *request);
    TR_TRY(from.status());
    resuming = std::move(*from);
  }
  std::unique_ptr<References> references;
  // A stream that is closed without fields finishes files, and does not know their arrays. What the run
  // before has told of them stays right.
  if (request->options.references && !opening.fields.empty()) {
    Result<std::unique_ptr<References>> made =
        References::make(opening.definition, opening.fields, codec.decoding().value_or(codec::Decoding{}));
    TR_TRY(made.status());
    references = std::move(*made);
  }
  return std::unique_ptr<pipeline::Ledger>(std::make_unique<FileLedger>(
      Pairs(opening, std::move(*request), *run, std::move(resuming), std::move(target),
            Pairs::Frame{codec.head(), codec.fixed_places()}, unpack_left_behind(packed_left)),
      std::move(references)));
}

}  // namespace tailrace::streams
