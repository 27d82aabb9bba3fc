// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/objects/file_objects.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::storage {

namespace {

constexpr std::string_view temporary_ending = ".new";

std::string temporary_of(const std::string& path) { return path + std::string(temporary_ending); }

class FoundFile final : public FoundObject {
 public:
  explicit FoundFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  Result<Bytes> size() override { return file_->size(); }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override { return file_->read(data, offset); }

 private:
  const std::unique_ptr<File> file_;
};

}  // namespace

ObjectsAt FileObjects::at(const std::shared_ptr<Target>& target, OpenMode reading) {
  return [target, reading, open = std::make_shared<OpenDescriptors>(0)](std::string directory) {
    return std::make_unique<FileObjects>(target, open, std::move(directory), reading);
  };
}

Status FileObjects::make() {
  const Result<bool> above = target_->exists(parent_of(tidy_path(directory_)));
  TR_TRY(above.status());
  return *above ? target_->make_directories(directory_) : io_error("create", directory_, ENOENT);
}

Result<bool> FileObjects::make_group(const std::string& group) {
  const std::string path = name_of(group);
  const Result<bool> exists = target_->exists(path);
  TR_TRY(exists.status());
  if (*exists) return false;
  TR_TRY(target_->make_directories(path));
  return true;
}

Status FileObjects::remove_group(const std::string& group) {
  const std::string path = name_of(group);
  names_.insert(path);  // even if the group is not there: the process that has removed it may be killed
  const Result<std::vector<std::string>> names = target_->list(path);
  if (names.status().error_number() == ENOENT) return {};
  TR_TRY(names.status());
  for (const std::string& each : *names) TR_TRY(target_->remove(cat(path, "/", each)));
  return target_->remove_directory(path);
}

Result<std::unique_ptr<FoundObject>> FileObjects::find(const std::string& key) {
  Result<std::unique_ptr<File>> file = target_->open(name_of(key), reading_);
  const int error = file.status().error_number();
  if (error == ENOENT || (error == ENOTDIR && reading_ == OpenMode::read_regular))
    return std::unique_ptr<FoundObject>();
  TR_TRY(file.status());
  return std::unique_ptr<FoundObject>(std::make_unique<FoundFile>(std::move(*file)));
}

Result<std::vector<std::string>> FileObjects::list(const std::string& group) {
  return target_->list(group.empty() ? directory_ : name_of(group));
}

std::string_view FileObjects::finished_name(std::string_view name) const {
  if (name.ends_with(temporary_ending)) name.remove_suffix(temporary_ending.size());
  return name;
}

/// Storage syncs several files at the same time.
Status FileObjects::put(std::span<const Text> objects) {
  std::vector<std::unique_ptr<File>> files;
  for (const Text& each : objects) {
    Result<std::unique_ptr<File>> file = target_->open(temporary_of(name_of(each.key)), OpenMode::anew);
    TR_TRY(file.status());
    files.push_back(std::move(*file));
    TR_TRY(files.back()->write(std::as_bytes(std::span(each.text)), 0));
    files.back()->begin_write_back();
  }
  std::vector<File*> written;
  for (const auto& each : files) written.push_back(each.get());
  TR_TRY(target_->sync_files(written));
  for (const auto& each : files) TR_TRY(each->close());
  for (const Text& each : objects) {
    const std::string path = name_of(each.key);
    TR_TRY(target_->rename(temporary_of(path), path));
    names_.insert(path);
  }
  return {};
}

/// Opens the object each time: another server may have removed an object that is still open here, and bytes
/// written to a removed file are lost.
Status FileObjects::write(const std::string& key, Bytes offset, Parts parts,
                          std::span<const std::byte> begin) {
  const std::string path = name_of(key);
  // The process that makes an object makes its name durable. Objects left by a killed process were removed
  // before.
  const Result<bool> exists = target_->exists(path);
  TR_TRY(exists.status());
  bool is_new = !*exists;
  Result<std::unique_ptr<File>> file = target_->open(path, OpenMode::own);
  TR_TRY(file.status());
  if (!begin.empty()) {
    const Result<Bytes> size = (*file)->size();
    TR_TRY(size.status());
    const bool is_short = *size < std::ssize(begin);
    if (is_short) TR_TRY((*file)->write(begin, 0));
    // A killed process may have made the object with these bytes without making its name durable.
    is_new = is_new || is_short || offset == 0;
  }
  if (is_new) names_.insert(path);
  TR_TRY((*file)->write_gathered(parts, offset));
  keep_open(path, std::move(*file));
  return {};
}

/// Returns success instead of ESTALE if the object is gone. Over NFS a descriptor becomes stale once another
/// server has removed the object, as it does when it cuts the step: the bytes need not be durable then. If
/// the object still exists, it has lost bytes, and the error stays.
Status FileObjects::unless_removed(const std::string& path, const Status& status) {
  if (status.error_number() != ESTALE) return status;
  const Result<bool> exists = target_->exists(path);
  return exists.is_ok() && !*exists ? Status() : status;
}

/// Keeps the descriptor of a write until sync(). Errors here are returned by sync(), and not by the write:
/// after a failed sync() the caller opens the store anew, after a failed write it does not.
void FileObjects::keep_open(const std::string& path, std::unique_ptr<File> file) {
  if (const auto before = written_.find(path); before != written_.end()) {
    // A stale descriptor belongs to a removed object of the same name.
    const Status closed = before->second.file->close();
    if (closed.error_number() != ESTALE) failure_ = first_cause(failure_, closed);
    before->second.file = std::move(file);
    before->second.number = ++writes_;
    return;
  }
  written_.try_emplace(path, std::move(file), *open_).first->second.number = ++writes_;
  if (*open_ > most_open) close_oldest();
}

/// Makes the objects durable whose last write is longest ago, and closes them: they are least likely to be
/// written again in this step. Storage syncs several of them at the same time.
void FileObjects::close_oldest() {
  using Each = std::map<std::string, Written>::iterator;
  std::vector<Each> all;
  for (auto each = written_.begin(); each != written_.end(); ++each) all.push_back(each);
  std::ranges::sort(all, {}, [](const Each& each) { return each->second.number; });
  all.resize(std::min(all.size(), most_at_once));
  std::map<std::string, Written> oldest;
  for (const Each& each : all) oldest.insert(written_.extract(each));
  sync_and_close(oldest);
}

void FileObjects::sync_and_close(const std::map<std::string, Written>& all) {
  std::vector<File*> files;
  for (const auto& [path, written] : all) {
    written.file->begin_write_back();
    files.push_back(written.file.get());
  }
  Status synced = target_->sync_files(files);
  if (synced.error_number() == ESTALE) {
    synced = {};  // find out which file has failed
    for (const auto& [path, written] : all)
      synced = first_cause(synced, unless_removed(path, written.file->sync()));
  }
  failure_ = first_cause(failure_, synced);
  for (const auto& [path, written] : all)
    failure_ = first_cause(failure_, unless_removed(path, written.file->close()));
}

Status FileObjects::copy_from(const std::string& place, const std::string& key, Bytes size) {
  const std::string path = name_of(key);
  TR_TRY(target_->copy(cat(place, "/", key), size, path));
  names_.insert(path);
  return {};
}

Status FileObjects::remove(const std::string& key) {
  const std::string path = name_of(key);
  TR_TRY(target_->remove(path));
  names_.insert(path);
  return {};
}

Status FileObjects::remove_if_there(const std::string& key) {
  const std::string object = name_of(key);
  for (const std::string& path : {temporary_of(object), object}) {
    const Result<bool> removed = storage::remove_if_there(*target_, path);
    TR_TRY(removed.status());
    if (*removed) names_.insert(path);
  }
  return {};
}

Status FileObjects::sync_keys() {
  std::set<std::string> directories;
  std::vector<std::string> paths;  // one name in each directory
  for (const std::string& path : std::exchange(names_, {})) {
    if (directories.insert(parent_of(path)).second) paths.push_back(path);
  }
  failure_ = first_cause(failure_, target_->sync_directories_of(paths));
  return failure_;
}

Status FileObjects::sync() {
  TR_TRY(failure_);
  sync_and_close(std::exchange(written_, {}));
  TR_TRY(failure_);
  return sync_keys();
}

}  // namespace tailrace::storage
