// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "streams/ledger.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/log.hpp"
#include "base/text.hpp"
#include "streams/index.hpp"
#include "streams/manifest.hpp"
#include "streams/parse.hpp"

namespace tailrace::streams {

namespace {

using pipeline::Opening;
using pipeline::StepEntry;

/// Runs `command` in a shell with the file as $1; a failing hook is reported and changes nothing else.
void run_hook(const std::string& command, const std::string& path) {
  const char* arguments[] = {"sh", "-c", command.c_str(), "tailrace-hook", path.c_str(), nullptr};
  pid_t child = 0;
  int status = posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(arguments), environ);
  if (status == 0) ::waitpid(child, &status, 0);
  if (status != 0)
    log(LogLevel::warn, cat("hook '", command, "' failed for ", path, " (status ", status, ")"));
}

class FileLedger final : public pipeline::Ledger {
 public:
  FileLedger(const Opening& opening, StreamRequest request, Uuid run, std::shared_ptr<storage::Target> target)
      : request_(std::move(request)), target_(std::move(target)) {
    header_.run = run;
    header_.format = opening.definition.format;
    header_.base = opening.definition.base;
    header_.calendar = opening.definition.calendar;
    header_.member = opening.definition.member;
    for (const codec::FieldDefinition& field : opening.fields) {
      header_.fields.push_back({field.name, field.type, field.shape, field.levels.type, field.levels.values});
    }
  }

  Result<std::string> path_of(std::int64_t lead) override {
    return request_.pattern.expand(lead, request_.context());
  }

  Result<Bytes> begin_file(const std::string& path, std::int64_t lead, Bytes expected) override {
    if (finished_.count(path) != 0) {
      return Status(Code::state, cat("the step at lead ", lead, " s belongs to ", path,
                                     ", which was complete when a later step went to another file"));
    }
    if (const auto parent = std::filesystem::path(path).parent_path(); !parent.empty()) {
      TR_TRY(target_->make_directories(parent.string()));
    }
    TR_TRY(wait_for_space(path, expected));
    Result<std::shared_ptr<void>> lock = target_->lock(lock_path(path));
    TR_TRY(lock.status());
    Result<IndexWriter> index = open_index(path, lead);
    TR_TRY(index.status());
    const Bytes start = index->data_end();
    open_.emplace(path, OpenFile{std::move(*lock), std::move(*index)});
    return start;
  }

  Status commit(const StepEntry& entry) override {
    IndexStep step;
    step.step = entry.step;
    step.lead = entry.lead;
    step.begin = entry.begin;
    step.end = entry.end;
    for (const pipeline::RecordEntry& record : entry.records) {
      step.records.push_back(
          {record.field, static_cast<std::int32_t>(record.level), record.offset, record.length});
    }
    IndexWriter& index = open_.at(entry.path).index;
    step.step = index.steps();  // a stream that goes on with a file numbers its steps on
    TR_TRY(index.append(step));
    return index.sync();
  }

  Status cut(const std::string& path, Bytes size) override {
    // Never what the index still tells.
    if (const auto found = open_.find(path); found != open_.end()) TR_TRY(found->second.index.lost());
    Result<std::unique_ptr<storage::File>> file = target_->open(path, storage::OpenMode::existing);
    TR_TRY(file.status());
    TR_TRY((*file)->truncate(size));
    return (*file)->close();
  }

  Status finish_file(const std::string& path) override {
    const auto found = open_.find(path);
    if (found == open_.end()) return {};
    OpenFile file = std::move(found->second);
    open_.erase(found);
    finished_.insert(path);
    if (file.index.steps() == 0) return remove_empty(path, file);
    TR_TRY(file.index.append_closed());
    TR_TRY(file.index.sync());
    TR_TRY(file.index.close());
    const bool wants_manifest = request_.options.manifest.value_or(request_.pattern.depends_on_lead());
    if (wants_manifest) TR_TRY(append_to_manifest(path));
    if (!request_.options.ready_suffix.empty()) {
      TR_TRY(create_ready_marker(*target_, path, request_.options.ready_suffix));
    }
    if (!request_.options.hook.empty()) run_hook(request_.options.hook, path);
    return {};
  }

 private:
  struct OpenFile {
    std::shared_ptr<void> lock;
    IndexWriter index;
  };

  /// Data file and index, empty or continued; the directory entries are durable.
  Result<IndexWriter> open_index(const std::string& path, std::int64_t lead) {
    Result<bool> exists = target_->exists(path);
    TR_TRY(exists.status());
    Result<bool> indexed = target_->exists(index_path(path));
    TR_TRY(indexed.status());
    if (*exists && request_.options.existing == Existing::fail) {
      return Status(Code::state, cat(path,
                                     " exists already (existing=fail): remove it, or say existing=replace or "
                                     "existing=continue"));
    }
    // Data without an index was never committed: a crash between the two creations leaves it.
    if (*indexed && request_.options.existing == Existing::resume) return continue_index(path, lead);
    if (!request_.options.ready_suffix.empty()) {
      TR_TRY(remove_ready_marker(*target_, path, request_.options.ready_suffix));
    }
    TR_TRY(remove_index(*target_, path));
    Result<std::unique_ptr<storage::File>> data = target_->open(path, storage::OpenMode::create);
    TR_TRY(data.status());
    TR_TRY((*data)->close());
    TR_TRY(target_->sync_directory_of(path));
    return IndexWriter::create(*target_, index_path(path), header_);
  }

  Result<IndexWriter> continue_index(const std::string& path, std::int64_t lead) {
    if (!request_.options.ready_suffix.empty()) {
      TR_TRY(remove_ready_marker(*target_, path, request_.options.ready_suffix));
    }
    Result<Recovered> recovered = recover(*target_, path);
    TR_TRY(recovered.status());
    const auto& steps = recovered->contents.steps;
    if (!steps.empty() && steps.back().lead >= lead) {
      return Status(Code::order,
                    cat(path, " goes up to lead ", steps.back().lead, " s already; the step at lead ", lead,
                        " s cannot follow (existing=replace begins anew)"));
    }
    return IndexWriter::open_existing(*target_, index_path(path));
  }

  Status wait_for_space(const std::string& path, Bytes expected) {
    const std::int64_t patience = request_.options.full_wait_seconds.value_or(0);
    for (std::int64_t waited = 0;; ++waited) {
      Result<storage::Space> space = target_->space(path);
      TR_TRY(space.status());
      if (space->free >= expected) return {};
      if (waited >= patience) {
        return Status(Code::space, cat("no space for ", path, ": the first step takes ", expected, " bytes, ",
                                       space->free, " are free"));
      }
      const timespec second{1, 0};
      ::nanosleep(&second, nullptr);
    }
  }

  Status append_to_manifest(const std::string& path) {
    Result<Manifest> manifest = Manifest::open(*target_, manifest_path(path));
    if (manifest.status().code() == Code::unsupported && !request_.options.manifest) return {};
    TR_TRY(manifest.status());
    Result<IndexContents> contents = load_index(*target_, index_path(path));
    TR_TRY(contents.status());
    ManifestEntry entry = manifest_entry(path, *contents);
    Result<std::string> digest = digest_file(*target_, path);
    TR_TRY(digest.status());
    entry.digest = *digest;
    return manifest->append(entry);
  }

  Status remove_empty(const std::string& path, OpenFile& file) {
    TR_TRY(file.index.close());
    TR_TRY(remove_index(*target_, path));
    TR_TRY(target_->remove(path));
    return target_->sync_directory_of(path);
  }

  StreamRequest request_;
  std::shared_ptr<storage::Target> target_;
  IndexHeader header_;
  std::map<std::string, OpenFile> open_;
  std::set<std::string> finished_;
};

}  // namespace

std::string pack_ledger(const std::string& pattern, const std::string& options, const Uuid& run) {
  return cat(pattern, "\n", run.text(), "\n", options);
}

Result<std::unique_ptr<pipeline::Ledger>> make_ledger(const pipeline::Opening& opening,
                                                      std::shared_ptr<storage::Target> target) {
  const std::string& text = opening.ledger;
  const std::size_t first = text.find('\n');
  const std::size_t second = text.find('\n', first + 1);
  Result<Uuid> run = Uuid::parse(std::string_view(text).substr(first + 1, second - first - 1));
  TR_TRY(run.status());
  Result<StreamRequest> request = parse_stream(text.substr(0, first), text.substr(second + 1));
  TR_TRY(request.status());
  return std::unique_ptr<pipeline::Ledger>(
      std::make_unique<FileLedger>(opening, std::move(*request), *run, std::move(target)));
}

}  // namespace tailrace::streams
