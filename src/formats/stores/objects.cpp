// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/stores/objects.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "formats/stores/kind.hpp"
#include "formats/stores/times.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::stores {

using storage::File;
using storage::OpenMode;
using zarr::Layout;

namespace {

constexpr std::string_view group = "zarr.json", temporary_ending = ".new";
/// Holds a copy of the metadata with which the store was begun. Other programs may change zarr.json of a
/// finished store, but the order of the objects in the row of bytes must not change with it.
constexpr std::string_view begun_with = zarr_begun_with;

/// Makes a call that opens a file by name and reads, and repeats it after ESTALE. Over NFS the descriptor of
/// a file becomes stale once another machine has removed the file or replaced it. Opening the name again
/// finds the new file, or none.
template <typename Call>
auto by_name(Call&& call) {
  constexpr int most_calls = 5;
  auto result = call();
  for (int calls = 1; result.status().error_number() == ESTALE && calls < most_calls; ++calls)
    result = call();
  return result;
}

Result<std::string> text_of_file(storage::Target& target, const std::string& path) {
  return by_name([&]() -> Result<std::string> {
    Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
    TR_TRY(file.status());
    const Result<Bytes> size = (*file)->size();
    TR_TRY(size.status());
    std::string text(static_cast<std::size_t>(*size), '\0');
    const Result<Bytes> got = (*file)->read(std::as_writable_bytes(std::span(text)), 0);
    TR_TRY(got.status());
    text.resize(static_cast<std::size_t>(*got));
    return text;
  });
}

/// Returns the number of the array's object with this name, or nothing if the array has no such object.
std::optional<std::int64_t> number_of(const Layout::Array& array, const std::string& name) {
  std::int64_t number = 0;
  if (name.starts_with("c.")) std::from_chars(name.data() + 2, name.data() + name.size(), number);
  if (array.object(number) != cat(array.name, "/", name)) return std::nullopt;
  return number;
}

bool is_metadata(std::string_view name, std::string_view metadata) {
  if (name.ends_with(temporary_ending)) name.remove_suffix(temporary_ending.size());
  return name == metadata;
}

}  // namespace

Status Objects::make() {
  const Result<bool> above = below_->exists(storage::parent_of(storage::tidy_path(directory_)));
  TR_TRY(above.status());
  return *above ? below_->make_directories(directory_) : io_error("create", directory_, ENOENT);
}

Result<std::shared_ptr<const Layout>> Objects::load() {
  Result<bool> has_begun = below_->exists(path_of(std::string(begun_with)));
  TR_TRY(has_begun.status());
  if (!*has_begun) {
    const Status own = check_own(nullptr);
    if (own.is_ok()) return std::shared_ptr<const Layout>();
    // Another process may have begun the store since the first look: the foreign files are arrays of its own
    // then.
    has_begun = below_->exists(path_of(std::string(begun_with)));
    if (!has_begun.is_ok() || !*has_begun) return own;
  }
  Result<std::string> text = text_of_file(*below_, path_of(std::string(begun_with)));
  TR_TRY(text.status());
  Result<std::shared_ptr<const Layout>> layout = known_->layout_of(std::move(*text));
  TR_TRY(layout.status().in(cat(directory_, "/", begun_with)));
  return layout;
}

/// Replaces objects by renames. Their bytes are durable on return, their names are not yet. Storage syncs
/// several files at the same time.
Status Objects::replace(std::span<const Text> texts) {
  std::vector<std::unique_ptr<File>> files;
  for (const Text& each : texts) {
    Result<std::unique_ptr<File>> file =
        below_->open(path_of(each.object) + std::string(temporary_ending), OpenMode::anew);
    TR_TRY(file.status());
    files.push_back(std::move(*file));
    TR_TRY(files.back()->write(std::as_bytes(std::span(each.text)), 0));
    files.back()->begin_write_back();
  }
  std::vector<File*> written;
  for (const auto& each : files) written.push_back(each.get());
  TR_TRY(below_->sync_files(written));
  for (const auto& each : files) TR_TRY(each->close());
  for (const Text& each : texts) {
    const std::string path = path_of(each.object);
    TR_TRY(below_->rename(path + std::string(temporary_ending), path));
    names_.insert(path);
  }
  return {};
}

Status Objects::replace(const std::string& object, const std::string& text) {
  const Text one{object, text};
  return replace({&one, 1});
}

Status Objects::replace_when_many(std::vector<Text>& texts) {
  return texts.size() < most_at_once ? Status() : replace(std::exchange(texts, {}));
}

/// Writes .tailrace.json first: a directory without it belongs to no stream. Writes zarr.json of the group
/// last, so that readers find a store with all its arrays.
Status Objects::begin(const Layout& layout, std::span<const std::byte> head) {
  TR_TRY(replace(std::string(begun_with), layout.group_text(0)));
  TR_TRY(settle_names());
  TR_TRY(check_no_links(layout));
  std::vector<Text> texts;
  for (const Array& each : layout.arrays()) {
    const Result<bool> made = below_->exists(path_of(each.name));
    TR_TRY(made.status());
    if (*made)
      return {Code::state,
              cat(directory_, ": '", each.name,
                  "' and another array are one directory here, since the file system does not tell "
                  "upper from lower case; give one of the fields another name")};
    TR_TRY(below_->make_directories(path_of(each.name)));
    texts.push_back({cat(each.name, "/", group), layout.array_text(each, 0)});
    TR_TRY(replace_when_many(texts));
    if (each.has_steps) continue;
    const auto bytes =
        head.subspan(static_cast<std::size_t>(each.begin), static_cast<std::size_t>(each.size));
    TR_TRY(write(each, 0, 0, {&bytes, 1}));
  }
  TR_TRY(replace(texts));
  TR_TRY(settle());
  return tell(layout, 0);
}

Status Objects::check_no_links(const Layout& layout) {
  for (const Array& each : layout.arrays()) {
    const std::string path = path_of(each.name);
    const Result<bool> is_link = below_->is_link(path);
    TR_TRY(is_link.status());
    if (*is_link)
      return {Code::state, cat(path,
                               ": is a link, and somebody else's files may be behind it; remove the link, "
                               "and put the array's directory in its place if the store has steps")};
  }
  return {};
}

Result<bool> Objects::is_begun(const Layout& layout) {
  std::vector<std::string> objects{std::string(group)};
  for (const Array& each : layout.arrays()) {
    objects.push_back(cat(each.name, "/", group));
    if (!each.has_steps) objects.push_back(each.object(0));
  }
  for (const std::string& object : objects) {
    const Result<bool> exists = below_->exists(path_of(object));
    if (!exists.is_ok() || !*exists) return exists;
  }
  return true;
}

Status Objects::tell(const Layout& layout, std::int64_t steps) {
  return replace(std::string(group), layout.group_text(steps));
}

Result<std::optional<std::int64_t>> Objects::told(const Layout& layout) {
  const Result<std::string> text = text_of_file(*below_, path_of(std::string(group)));
  if (text.status().error_number() == ENOENT) return std::optional<std::int64_t>(0);
  TR_TRY(text.status());
  const Result<std::int64_t> steps = layout.steps_in(*text);
  return steps.is_ok() ? std::optional(*steps) : std::nullopt;
}

Status Objects::tell_arrays(const Layout& layout, std::int64_t steps) {
  std::vector<Text> texts;
  for (const Array& each : layout.arrays()) {
    Text told{cat(each.name, "/", group), layout.array_text(each, steps)};
    const Result<std::string> found = text_of_file(*below_, path_of(told.object));
    if (found.status().error_number() != ENOENT) TR_TRY(found.status());
    if (!found.is_ok() || *found != told.text) texts.push_back(std::move(told));
    TR_TRY(replace_when_many(texts));
  }
  return replace(texts);
}

/// Writes to an object. Opens it each time: another server may have removed an object that is still open
/// here, and bytes written to a removed file are lost. An object of times is filled with "no time" when it is
/// made.
Status Objects::write(const Array& array, std::int64_t number, Bytes offset, storage::Parts parts) {
  const std::string path = path_of(array.object(number));
  // The process that makes an object makes its name durable. Objects left by a killed process were removed
  // before.
  const Result<bool> exists = below_->exists(path);
  TR_TRY(exists.status());
  bool is_new = !*exists;
  Result<std::unique_ptr<File>> file = below_->open(path, OpenMode::own);
  TR_TRY(file.status());
  if (array.in_chunk > 0) {
    const Bytes whole = array.in_chunk * array.size;
    const Result<Bytes> size = (*file)->size();
    TR_TRY(size.status());
    if (*size < whole) TR_TRY((*file)->write(no_times(whole), 0));
    // A killed process may have made the object of times without making its name durable.
    is_new = is_new || *size < whole || offset < array.size;
  }
  if (is_new) names_.insert(path);
  TR_TRY((*file)->write_gathered(parts, offset));
  keep_open(path, std::move(*file));
  return {};
}

/// Returns success instead of ESTALE if the object is gone. Over NFS a descriptor becomes stale once another
/// server has removed the object, as it does when it cuts the step: the bytes need not be durable then. If
/// the object still exists, it has lost bytes, and the error stays.
Status Objects::unless_removed(const std::string& path, const Status& status) {
  if (status.error_number() != ESTALE) return status;
  const Result<bool> exists = below_->exists(path);
  return exists.is_ok() && !*exists ? Status() : status;
}

/// Keeps the descriptor of a write until settle(). Errors here are returned by settle(), and not by the
/// write: after a failed settle() the caller opens the store anew, after a failed write it does not.
void Objects::keep_open(const std::string& path, std::unique_ptr<File> file) {
  if (const auto before = written_.find(path); before != written_.end()) {
    // A stale descriptor belongs to a removed object of the same name.
    const Status closed = before->second.file->close();
    if (closed.error_number() != ESTALE) failure_ = first_cause(failure_, closed);
    before->second.file = std::move(file);
    before->second.number = ++writes_;
    return;
  }
  written_.try_emplace(path, std::move(file), *known_).first->second.number = ++writes_;
  if (known_->descriptors() > most_open) close_oldest();
}

/// Makes the objects durable whose last write is longest ago, and closes them: they are least likely to be
/// written again in this step. Storage syncs several of them at the same time.
void Objects::close_oldest() {
  using Each = std::map<std::string, Written>::iterator;
  std::vector<Each> all;
  for (auto each = written_.begin(); each != written_.end(); ++each) all.push_back(each);
  std::ranges::sort(all, {}, [](const Each& each) { return each->second.number; });
  all.resize(std::min(all.size(), most_at_once));
  std::map<std::string, Written> oldest;
  for (const Each& each : all) oldest.insert(written_.extract(each));
  sync_and_close(oldest);
}

void Objects::sync_and_close(const std::map<std::string, Written>& all) {
  std::vector<File*> files;
  for (const auto& [path, written] : all) {
    written.file->begin_write_back();
    files.push_back(written.file.get());
  }
  Status synced = below_->sync_files(files);
  if (synced.error_number() == ESTALE) {
    synced = {};  // find out which file has failed
    for (const auto& [path, written] : all)
      synced = first_cause(synced, unless_removed(path, written.file->sync()));
  }
  failure_ = first_cause(failure_, synced);
  for (const auto& [path, written] : all)
    failure_ = first_cause(failure_, unless_removed(path, written.file->close()));
}

Result<Bytes> Objects::read(const Array& array, std::int64_t number, Bytes offset,
                            std::span<std::byte> data) {
  return by_name([&]() -> Result<Bytes> {
    std::ranges::fill(data, std::byte{0});
    Result<std::unique_ptr<File>> file = below_->open(path_of(array.object(number)), OpenMode::read);
    if (file.status().error_number() == ENOENT) return Bytes{0};
    TR_TRY(file.status());
    return (*file)->read(data, offset);
  });
}

Result<std::optional<Bytes>> Objects::size_of(const Array& array, std::int64_t number) {
  return by_name([&] { return storage::size_if_there(*below_, path_of(array.object(number))); });
}

Result<std::vector<std::int64_t>> Objects::numbers(const Array& array) {
  std::vector<std::int64_t> found;
  const Result<std::vector<std::string>> names = below_->list(path_of(array.name));
  if (names.status().error_number() == ENOENT) return found;
  TR_TRY(names.status());
  for (const std::string& name : *names) {
    if (const std::optional<std::int64_t> number = number_of(array, name)) found.push_back(*number);
  }
  std::ranges::sort(found);
  return found;
}

Status Objects::forget_times(const Array& array, std::int64_t steps) {
  const Result<std::vector<std::int64_t>> found = numbers(array);
  TR_TRY(found.status());
  for (const std::int64_t number : *found) {
    const std::int64_t kept = std::clamp<std::int64_t>(steps - number * array.in_chunk, 0, array.in_chunk);
    ByteVector there(static_cast<std::size_t>((array.in_chunk - kept) * array.size));
    const std::string path = path_of(array.object(number));
    if (kept == 0) {
      TR_TRY(below_->remove(path));
      names_.insert(path);
    } else if (kept < array.in_chunk) {
      const ByteVector none = no_times(std::ssize(there));
      const Result<Bytes> got = read(array, number, kept * array.size, there);
      TR_TRY(got.status());
      const std::span<const std::byte> bytes = none;
      if (there != none) TR_TRY(write(array, number, kept * array.size, {&bytes, 1}));
    }
  }
  return {};
}

/// Removes the last step first, so that an interruption leaves the first steps whole. Removes times last:
/// they have to be written, and on a full disk the removals make room for that.
Status Objects::remove_from(const Layout& layout, std::int64_t step) {
  for (const Array& each : layout.arrays()) {
    if (!each.has_steps || each.in_chunk > 0) continue;
    Result<std::vector<std::int64_t>> found = numbers(each);
    TR_TRY(found.status());
    for (; !found->empty() && found->back() >= step; found->pop_back()) {
      const std::string path = path_of(each.object(found->back()));
      TR_TRY(below_->remove(path));
      names_.insert(path);
    }
  }
  for (const Array& each : layout.arrays()) {
    if (each.in_chunk > 0) TR_TRY(forget_times(each, step));
  }
  return {};
}

Status Objects::copy_before(const Layout& layout, std::int64_t step, Objects& to) {
  for (const Array& each : layout.arrays()) {
    if (!each.has_steps) continue;
    const Result<std::vector<std::int64_t>> found = numbers(each);
    TR_TRY(found.status());
    for (const std::int64_t number : *found) {
      if (number * std::max<Index>(each.in_chunk, 1) >= step) continue;
      const Result<std::optional<Bytes>> size = size_of(each, number);
      TR_TRY(size.status());
      const std::string object = each.object(number);
      TR_TRY(below_->copy(path_of(object), size->value_or(0), to.path_of(object)));
      to.names_.insert(to.path_of(object));
    }
    if (each.in_chunk > 0) TR_TRY(to.forget_times(each, step));
  }
  return to.settle();
}

Status Objects::check_own(const Layout* layout) {
  const auto foreign = [&](const std::string& name) {
    return Status(Code::state, cat(directory_, ": is a directory with '", name,
                                   "', which no stream has written; move one of them away, or choose another "
                                   "name for the stream's"));
  };
  const Result<std::vector<std::string>> names = below_->list(directory_);
  if (names.status().error_number() == ENOTDIR)
    return {Code::state, cat(directory_,
                             ": is a file, and a stream writes a directory of this name; move it "
                             "away, or choose another name")};
  TR_TRY(names.status());
  if (layout) TR_TRY(check_no_links(*layout));
  for (const std::string& name : *names) {
    // NFS keeps a removed file under a name with .nfs while a process has it open.
    if (name.starts_with(".nfs")) continue;
    // A new directory may hold the temporary file of its first object.
    if (is_metadata(name, begun_with) || (layout && is_metadata(name, group))) continue;
    const Array* const array = layout ? layout->find(name) : nullptr;
    if (array == nullptr) return foreign(name);
    const Result<std::vector<std::string>> inside = below_->list(path_of(name));
    TR_TRY(inside.status());
    for (const std::string& each : *inside) {
      if (!is_metadata(each, group) && !number_of(*array, each)) return foreign(cat(name, "/", each));
    }
  }
  return {};
}

Status Objects::remove_all(const Layout* layout) {
  TR_TRY(check_own(layout));
  written_.clear();
  if (layout) {
    const Result<bool> exists = below_->exists(path_of(std::string(group)));
    TR_TRY(exists.status());
    if (*exists) TR_TRY(tell(*layout, 0));
    TR_TRY(settle_names());
    for (const Array& array : layout->arrays()) {
      const Result<std::vector<std::string>> names = below_->list(path_of(array.name));
      if (names.status().error_number() == ENOENT) continue;
      TR_TRY(names.status());
      for (const std::string& each : *names) TR_TRY(below_->remove(path_of(cat(array.name, "/", each))));
      TR_TRY(below_->remove_directory(path_of(array.name)));
    }
    names_.insert(path_of(std::string(group)));
    TR_TRY(settle_names());
  }
  for (const std::string_view object : {group, begun_with}) {
    for (const std::string& path : {path_of(cat(object, temporary_ending)), path_of(std::string(object))}) {
      const Result<bool> removed = storage::remove_if_there(*below_, path);
      TR_TRY(removed.status());
      if (*removed) names_.insert(path);
    }
    TR_TRY(settle_names());
  }
  return {};
}

Status Objects::settle_names() {
  std::set<std::string> directories;
  std::vector<std::string> paths;  // one name in each directory
  for (const std::string& path : std::exchange(names_, {})) {
    if (directories.insert(storage::parent_of(path)).second) paths.push_back(path);
  }
  failure_ = first_cause(failure_, below_->sync_directories_of(paths));
  return failure_;
}

Status Objects::settle() {
  TR_TRY(failure_);
  sync_and_close(std::exchange(written_, {}));
  TR_TRY(failure_);
  return settle_names();
}

}  // namespace tailrace::stores
