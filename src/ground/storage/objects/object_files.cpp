// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/objects/object_files.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/storage/objects/object_lock.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::storage {

/// The bytes of a file that somebody in this process has open.
struct ObjectFileContent {
  std::mutex mutex;
  std::string name;
  std::optional<ByteVector> bytes;  // nothing: they were not needed yet
  std::string version;              // of the object from which `bytes` come; "" if there was none
  std::optional<ByteVector> tried;  // what a put that failed may have made of the object
  bool is_changed = false;          // since they were put
  /// The name belongs to no file any more, or to another one. Whoever looks for the name reads it without the
  /// mutex.
  std::atomic<bool> is_removed = false;

  /// Reads the object, unless its bytes are here. The caller holds the mutex.
  Status load(ObjectService& service) {
    if (bytes) return {};
    Result<std::optional<ObjectService::Whole>> whole = service.get(name);
    TR_TRY(whole.status());
    if (!whole->has_value()) return io_error("read", name, ENOENT);
    bytes = std::move((*whole)->bytes);
    version = std::move((*whole)->version);
    return {};
  }
  /// Makes the file empty. Its first put is over the object that there is now.
  Status make_empty(ObjectService& service) {
    if (!is_changed) {
      bytes.reset();
      const Status loaded = load(service);
      if (loaded.error_number() != ENOENT) TR_TRY(loaded);
      if (!loaded.is_ok()) version.clear();
    }
    bytes.emplace();
    is_changed = true;
    return {};
  }
};

namespace {

class ObjectFile final : public File {
 public:
  ObjectFile(std::shared_ptr<ObjectService> service, std::shared_ptr<ObjectFileContent> content,
             std::string path, bool writes, std::string kind)
      : service_(std::move(service)),
        content_(std::move(content)),
        path_(std::move(path)),
        kind_(std::move(kind)),
        writes_(writes) {}

  Status write_gathered(Parts parts, Bytes offset) override {
    TR_TRY(check_range("write", path_, offset, bytes_in(parts)));
    return change("write", offset + bytes_in(parts), [&](ByteVector& bytes) {
      if (bytes_in(parts) == 0) return;
      bytes.resize(std::max(bytes.size(), static_cast<std::size_t>(offset + bytes_in(parts))));
      for (const auto& part : parts) {
        std::ranges::copy(part, bytes.begin() + offset);
        offset += std::ssize(part);
      }
    });
  }

  Status truncate(Bytes size) override {
    TR_TRY(check_range("truncate", path_, size, 0));
    return change("truncate", size, [&](ByteVector& bytes) { bytes.resize(static_cast<std::size_t>(size)); });
  }

  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    TR_TRY(check_range("read", path_, offset, std::ssize(data)));
    const std::lock_guard guard(content_->mutex);
    TR_TRY(check_open("read"));
    if (!is_in_memory()) {
      const Result<std::optional<Bytes>> got = service_->read(content_->name, offset, data);
      TR_TRY(got.status());
      return got->has_value() ? Result<Bytes>(**got) : io_error("read", path_, ENOENT);
    }
    const ByteVector& bytes = *content_->bytes;
    const Bytes count = std::clamp<Bytes>(std::ssize(bytes) - offset, 0, std::ssize(data));
    std::copy_n(bytes.begin() + std::min(offset, std::ssize(bytes)), count, data.begin());
    return count;
  }

  Result<Bytes> size() override {
    const std::lock_guard guard(content_->mutex);
    TR_TRY(check_open("size"));
    if (is_in_memory()) return std::ssize(*content_->bytes);
    const Result<std::optional<Bytes>> size = service_->size_of(content_->name);
    TR_TRY(size.status());
    return size->has_value() ? Result<Bytes>(**size) : io_error("size", path_, ENOENT);
  }

  Status sync() override {
    const std::lock_guard guard(content_->mutex);
    TR_TRY(check_open("sync"));
    return put();
  }

  Status close() override {
    const std::lock_guard guard(content_->mutex);
    TR_TRY(check_open("close"));
    is_open_ = false;
    return put();
  }

 private:
  [[nodiscard]] Status check_open(const char* operation) const {
    return is_open_ ? Status() : Status(Code::state, cat(operation, " ", path_, ": the file is closed"));
  }
  /// True if the service does not have the bytes of the file, or not under its name.
  [[nodiscard]] bool is_in_memory() const { return content_->is_changed || content_->is_removed; }

  template <typename Change>
  Status change(const char* operation, Bytes end, const Change& body) {
    const std::lock_guard guard(content_->mutex);
    TR_TRY(check_open(operation));
    if (!writes_) return io_error(operation, path_, EBADF);
    if (end > ObjectFiles::most_bytes)
      return {Code::unsupported,
              cat(operation, " ", path_, ": would have ", size_text(end), ", and a file among objects ('",
                  kind_, "') at most ", size_text(ObjectFiles::most_bytes),
                  ", since each change puts it whole; let the stream go on in further files, as with "
                  "{valid:%Y%m} in its name")};
    return guarded([&]() -> Status {
      // Bytes that were put stay in memory for the next change. put() finds out whether they are still the
      // object's.
      TR_TRY(content_->load(*service_));
      body(*content_->bytes);
      content_->is_changed = true;
      return {};
    });
  }

  /// A put that failed may have been made, so that the caller cannot know what the service has: the failure
  /// is final for this file.
  Status put() {
    TR_TRY(failure_);
    if (!content_->is_changed || content_->is_removed) return {};
    failure_ = put_over_own();
    if (failure_.is_ok()) content_->is_changed = false;
    return failure_;
  }

  /// Puts the bytes over the object from which they come. If another process has changed that, as a run does
  /// that takes the place of this one, its object stays.
  Status put_over_own() {
    if (content_->tried) TR_TRY(find_whether_tried_was_put());
    const ObjectService::Object object{content_->name, *content_->bytes};
    Result<std::optional<std::string>> put = service_->put_if(object, content_->version);
    if (!put.is_ok()) {
      content_->tried = *content_->bytes;
      return put.status();
    }
    if (!put->has_value())
      return {Code::state,
              cat("sync ", path_,
                  ": another process has changed or removed the file since this one has read it; "
                  "what this one would add is not written")};
    content_->version = std::move(**put);
    return {};
  }
  Status find_whether_tried_was_put() {
    Result<std::optional<ObjectService::Whole>> now = service_->get(content_->name);
    TR_TRY(now.status());
    if (now->has_value() && (*now)->bytes == *content_->tried) content_->version = std::move((*now)->version);
    content_->tried.reset();
    return {};
  }

  const std::shared_ptr<ObjectService> service_;
  const std::shared_ptr<ObjectFileContent> content_;
  const std::string path_;
  const std::string kind_;
  const bool writes_;
  bool is_open_ = true;
  Status failure_;
};

}  // namespace

ObjectFiles::Content ObjectFiles::in_use(const std::string& name) {
  const std::lock_guard guard(mutex_);
  const auto found = open_.find(name);
  const Content content = found == open_.end() ? nullptr : found->second.lock();
  return content != nullptr && content->is_removed ? nullptr : content;
}

ObjectFiles::Content ObjectFiles::shared_content(const std::string& name) {
  const std::lock_guard guard(mutex_);
  std::erase_if(open_, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<ObjectFileContent>& known = open_[name];
  Content content = known.lock();
  if (content == nullptr || content->is_removed) {
    known = content = std::make_shared<ObjectFileContent>();
    content->name = name;
  }
  return content;
}

Result<bool> ObjectFiles::has_file(const std::string& name) {
  if (const Content content = in_use(name)) {
    const std::lock_guard guard(content->mutex);
    if (content->is_changed) return true;
  }
  const Result<std::optional<Bytes>> size = service_->size_of(name);
  TR_TRY(size.status());
  return size->has_value();
}

Result<bool> ObjectFiles::has_below(const std::string& name) {
  if (name.ends_with('/')) return true;  // the prefix alone
  const Result<std::vector<std::string>> any = service_->list(names_below(name), 1);
  TR_TRY(any.status());
  return !any->empty();
}

Result<std::unique_ptr<File>> ObjectFiles::open(const std::string& path, OpenMode mode, unsigned) {
  const std::string name = tidy_path(path);
  const char* const verb = empties(mode) ? "create" : "open";
  const Result<bool> exists = has_file(name);
  TR_TRY(exists.status());
  if (!*exists) {
    const Result<bool> is_directory = has_below(name);
    TR_TRY(is_directory.status());
    if (*is_directory) return io_error(verb, path, mode == OpenMode::read_regular ? ENOENT : EISDIR);
    if (!makes(mode)) return io_error(verb, path, ENOENT);
  }
  const Content content = shared_content(name);
  if (!only_reads(mode)) {
    const std::lock_guard guard(content->mutex);
    if (!*exists || empties(mode)) TR_TRY(content->make_empty(*service_));
    // The file's puts go over the object that there is now, or over none: whoever looks at the file later, as
    // for its owner, sees this object, or one that stays.
    if (!content->is_changed && !content->is_removed) {
      content->bytes.reset();
      TR_TRY(content->load(*service_));
    }
  }
  return std::unique_ptr<File>(
      std::make_unique<ObjectFile>(service_, content, path, !only_reads(mode), kind_));
}

Status ObjectFiles::rename(const std::string& from, const std::string& to) {
  TR_TRY(check_one_directory(from, to));
  const std::string source = tidy_path(from), destination = tidy_path(to);
  const Result<bool> exists = has_file(source);
  TR_TRY(exists.status());
  if (!*exists) return io_error("rename", cat(from, " to ", to), ENOENT);
  if (source == destination) return {};
  const Content moved = in_use(source), replaced = in_use(destination);
  std::mutex of_none, of_none_too;
  const std::scoped_lock both(moved ? moved->mutex : of_none, replaced ? replaced->mutex : of_none_too);
  if (replaced) TR_TRY(keep_bytes(*replaced));
  if (moved != nullptr && moved->is_changed) {
    const ObjectService::Object object{destination, *moved->bytes};
    TR_TRY(service_->put({&object, 1}));
  } else {
    TR_TRY(service_->copy(source, destination));
  }
  if (replaced) replaced->is_removed = true;
  if (moved != nullptr) {
    moved->bytes.reset();  // they come from an object of another version
    moved->tried.reset();
    moved->is_changed = false;
    moved->name = destination;
  }
  const std::lock_guard guard(mutex_);
  open_.erase(source);
  open_.erase(destination);
  if (moved != nullptr) open_[destination] = moved;
  return service_->remove(source);
}

Status ObjectFiles::remove(const std::string& path) {
  const std::string name = tidy_path(path);
  const Result<bool> exists = has_file(name);
  TR_TRY(exists.status());
  if (!*exists) {
    const Result<bool> is_directory = has_below(name);
    TR_TRY(is_directory.status());
    return io_error("remove", path, *is_directory ? EISDIR : ENOENT);
  }
  const Content content = in_use(name);
  if (content == nullptr) return service_->remove(name);
  const std::lock_guard guard(content->mutex);
  TR_TRY(keep_bytes(*content));
  TR_TRY(service_->remove(name));
  content->is_removed = true;
  return {};
}

/// Whoever has the file open keeps its bytes, and changes nothing under the name any more once that is
/// another file's or nobody's: the caller notes that behind the call of the service that makes it so. Holds
/// the content's mutex.
Status ObjectFiles::keep_bytes(ObjectFileContent& content) {
  if (content.is_changed || content.is_removed) return {};
  content.bytes.reset();
  const Status loaded = content.load(*service_);
  if (loaded.error_number() == ENOENT) content.bytes.emplace();
  return loaded.error_number() == ENOENT ? Status() : loaded;
}

Status ObjectFiles::remove_directory(const std::string& path) {
  const Result<bool> any = has_below(tidy_path(path));
  TR_TRY(any.status());
  return *any ? io_error("remove directory", path, ENOTEMPTY) : Status();
}

Result<bool> ObjectFiles::exists(const std::string& path) {
  const Result<Kind> kind = kind_of(path);
  TR_TRY(kind.status());
  return *kind != Kind::nothing;
}

Result<Kind> ObjectFiles::kind_of(const std::string& path) {
  const std::string name = tidy_path(path);
  const Result<bool> is_file = has_file(name);
  TR_TRY(is_file.status());
  if (*is_file) return Kind::file;
  const Result<bool> is_directory = has_below(name);
  TR_TRY(is_directory.status());
  return *is_directory ? Kind::directory : Kind::nothing;
}

Status ObjectFiles::make_directories(const std::string&) { return {}; }

/// What was put is durable, and so is its name.
Status ObjectFiles::sync_directory_of(const std::string&) { return {}; }

Result<Space> ObjectFiles::space(const std::string&) {
  return Space{std::numeric_limits<Bytes>::max(), Bytes{1} << 20};
}

Result<std::vector<std::string>> ObjectFiles::list(const std::string& directory) {
  const std::string name = tidy_path(directory);
  Result<std::vector<std::string>> names = service_->list(names_below(name), all_names);
  TR_TRY(names.status());
  if (!names->empty() || name.ends_with('/')) return names;
  const Result<bool> is_file = has_file(name);
  TR_TRY(is_file.status());
  return io_error("list", directory, *is_file ? ENOTDIR : ENOENT);
}

Result<std::shared_ptr<void>> ObjectFiles::lock(const std::string& path) {
  return lock_object(service_, tidy_path(path));
}

Result<std::shared_ptr<void>> ObjectFiles::share_lock(const std::string& path, std::shared_ptr<void>) {
  return Status(Code::unsupported, cat("lock ", path, ": locks that are objects ('", kind_,
                                       "') have no shares; give the file a name in a file system"));
}

}  // namespace tailrace::storage
