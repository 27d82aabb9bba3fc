// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "stores/store_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/text.hpp"
#include "storage/paths.hpp"

namespace tailrace::stores {

using storage::File;
using storage::OpenMode;
using zarr::Layout;

namespace {

constexpr Bytes time_bytes = 8;

/// The value of a time that no step has: NaN, big-endian.
constexpr std::array<std::byte, 8> no_time{std::byte{0x7f}, std::byte{0xf8}};

std::int64_t from_big_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (const std::byte each : bytes) value = value << 8 | static_cast<std::uint64_t>(each);
  return static_cast<std::int64_t>(value);
}

Result<std::string> text_of_file(storage::Target& target, const std::string& path) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  std::string text(static_cast<std::size_t>(*size), '\0');
  const Result<Bytes> got = (*file)->read(std::as_writable_bytes(std::span(text)), 0);
  TR_TRY(got.status());
  text.resize(static_cast<std::size_t>(*got));
  return text;
}

ByteVector no_times(Bytes size) {
  ByteVector none;
  while (std::ssize(none) < size) none.insert(none.end(), no_time.begin(), no_time.end());
  return none;
}

/// Returns the parts from `begin` on, `size` bytes of them.
std::vector<std::span<const std::byte>> slice(storage::Parts parts, Bytes begin, Bytes size) {
  std::vector<std::span<const std::byte>> slices;
  for (const std::span<const std::byte> part : parts) {
    const auto length = std::ssize(part);
    const Bytes from = std::min(begin, length);
    const Bytes count = std::min(size, length - from);
    if (count > 0)
      slices.push_back(part.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(count)));
    begin -= from;
    size -= count;
  }
  return slices;
}

}  // namespace

Result<std::unique_ptr<StoreFile>> StoreFile::open(std::shared_ptr<storage::Target> below,
                                                   std::string directory, OpenMode mode) {
  std::unique_ptr<StoreFile> file(new StoreFile(std::move(below), std::move(directory), mode));
  const Result<bool> exists = file->below_->exists(file->directory_);
  TR_TRY(exists.status());
  if (!*exists) {
    if (mode != OpenMode::create && mode != OpenMode::keep) return io_error("open", file->directory_, ENOENT);
    // The directory above must be there, as for a file.
    const Result<bool> above = file->below_->exists(storage::parent_of(storage::tidy_path(file->directory_)));
    TR_TRY(above.status());
    if (!*above) return io_error("create", file->directory_, ENOENT);
    TR_TRY(file->below_->make_directories(file->directory_));
    return file;
  }
  TR_TRY(file->load());
  if (mode == OpenMode::create) TR_TRY(file->truncate(0));
  return file;
}

/// Reads zarr.json. A directory with nothing in it is an empty store.
Status StoreFile::load() {
  const Result<bool> has_head = below_->exists(path_of("zarr.json"));
  TR_TRY(has_head.status());
  if (!*has_head) {
    const Result<std::vector<std::string>> names = below_->list(directory_);
    TR_TRY(names.status());
    const auto is_ours = [](const std::string& name) { return name == "zarr.json.new"; };
    if (std::ranges::all_of(*names, is_ours)) return {};
    return {Code::state, cat(directory_, ": a directory with '", names->front(),
                             "' and without zarr.json, which no stream has written; move it away, or choose "
                             "another name")};
  }
  const Result<std::string> text = text_of_file(*below_, path_of("zarr.json"));
  TR_TRY(text.status());
  Result<Layout> layout = Layout::of(*text);
  TR_TRY(layout.status().in(directory_));
  layout_ = std::move(*layout);
  return {};
}

Status StoreFile::check_open(const char* operation) const {
  if (is_closed_) return {Code::state, cat(operation, " ", directory_, ": the file is closed")};
  return {};
}

/// `offset` is behind the head.
StoreFile::Piece StoreFile::piece_at(Bytes offset) const {
  const Bytes behind = offset - layout_->head();
  const std::int64_t step = behind / layout_->step();
  const Bytes within = behind % layout_->step();
  Piece piece;
  for (const Layout::Array& each : layout_->arrays()) {
    if (!each.has_steps || within < each.begin || within >= each.begin + each.size) continue;
    piece.array = &each;
    piece.number = each.in_chunk > 0 ? step / each.in_chunk : step;
    piece.offset = within - each.begin + (each.in_chunk > 0 ? step % each.in_chunk * each.size : 0);
    piece.size = each.begin + each.size - within;
  }
  return piece;
}

/// Objects are opened for each write: another server may have cut the step of an open one, and bytes in a
/// removed file are lost. An object of times has all values of its chunk from the beginning.
Status StoreFile::write_piece(const Piece& piece, storage::Parts parts) {
  Result<std::unique_ptr<File>> file =
      below_->open(path_of(piece.array->object(piece.number)), OpenMode::keep);
  TR_TRY(file.status());
  if (piece.array->in_chunk > 0) {
    const Bytes whole = piece.array->in_chunk * piece.array->size;
    const Result<Bytes> size = (*file)->size();
    TR_TRY(size.status());
    if (*size < whole) TR_TRY((*file)->write(no_times(whole), 0));
  }
  TR_TRY((*file)->write_gathered(parts, piece.offset));
  return (*file)->close();
}

Status StoreFile::write_gathered(storage::Parts parts, Bytes offset) {
  TR_TRY(storage::check_range("write", directory_, offset, storage::bytes_in(parts)));
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("write"));
  if (!writes_) return io_error("write", directory_, EBADF);
  const Bytes total = storage::bytes_in(parts);
  if (total == 0) return {};
  const auto all = [&] {
    ByteVector bytes;
    for (const auto& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
  };
  if (offset == 0) return write_head(all());
  if (layout_ && offset == zarr::steps_offset && total == time_bytes) return write_steps(all());
  if (!layout_ || offset < layout_->head())
    return {Code::state, cat("write ", directory_, ": its metadata are written whole")};
  for (Bytes done = 0; done < total;) {
    const Piece piece = piece_at(offset + done);
    const Bytes count = std::min(piece.size, total - done);
    const std::string path = path_of(piece.array->object(piece.number));
    has_written_ = true;
    written_.insert(path);
    entries_.insert(path);
    TR_TRY(write_piece(piece, slice(parts, done, count)));
    done += count;
  }
  return {};
}

/// The bytes are durable when the name is.
Status StoreFile::replace(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  Result<std::unique_ptr<File>> file = below_->open(temporary, OpenMode::create);
  TR_TRY(file.status());
  TR_TRY((*file)->write(std::as_bytes(std::span(text)), 0));
  TR_TRY((*file)->sync());
  TR_TRY((*file)->close());
  TR_TRY(below_->rename(temporary, path));
  entries_.insert(path);
  return {};
}

/// zarr.json of the group comes first, durably: what lies in a directory without it is nobody's.
Status StoreFile::write_head(std::span<const std::byte> head) {
  const auto length = static_cast<std::size_t>(
      std::max<std::int64_t>(std::ssize(head) < zarr::frame_bytes ? 0 : from_big_endian(head.first(8)), 0));
  if (length == 0 || length > head.size() - zarr::frame_bytes)
    return {Code::state, cat("write ", directory_, ": its metadata are written whole")};
  const std::string text(reinterpret_cast<const char*>(head.data()) + zarr::frame_bytes, length);
  Result<Layout> layout = Layout::of(text);
  TR_TRY(layout.status().in(directory_));
  if (layout->head() != std::ssize(head))
    return {Code::state, cat("write ", directory_, ": its metadata are written whole")};
  layout_ = std::move(*layout);
  layout_->set_steps(from_big_endian(head.subspan(zarr::steps_offset, 8)));
  TR_TRY(replace(path_of("zarr.json"), layout_->group_text(layout_->steps())));
  TR_TRY(below_->sync_directory_of(path_of("zarr.json")));
  for (const Layout::Array& each : layout_->arrays()) {
    TR_TRY(below_->make_directories(path_of(each.name)));
    TR_TRY(replace(path_of(each.name + "/zarr.json"), layout_->array_text(each, layout_->steps())));
    if (each.has_steps) continue;
    const std::string path = path_of(each.object(0));
    Result<std::unique_ptr<File>> file = below_->open(path, OpenMode::create);
    TR_TRY(file.status());
    TR_TRY((*file)->write(
        head.subspan(static_cast<std::size_t>(each.begin), static_cast<std::size_t>(each.size)), 0));
    TR_TRY((*file)->sync());
    TR_TRY((*file)->close());
    entries_.insert(path);
  }
  return {};
}

/// Readers of the group see the steps at once. The arrays' own metadata follow with the next sync.
Status StoreFile::write_steps(std::span<const std::byte> count) {
  const std::int64_t steps = from_big_endian(count);
  TR_TRY(replace(path_of("zarr.json"), layout_->group_text(steps)));
  layout_->set_steps(steps);
  return {};
}

/// Returns how many of the bytes there are. The others are zeros.
Result<Bytes> StoreFile::read_piece(const Piece& piece, std::span<std::byte> data) {
  std::ranges::fill(data, std::byte{0});
  Result<std::unique_ptr<File>> file =
      below_->open(path_of(piece.array->object(piece.number)), OpenMode::read);
  if (file.status().error_number() == ENOENT) return Bytes{0};
  TR_TRY(file.status());
  return (*file)->read(data, piece.offset);
}

Result<Bytes> StoreFile::read(std::span<std::byte> data, Bytes offset) {
  TR_TRY(storage::check_range("read", directory_, offset, std::ssize(data)));
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("read"));
  if (!layout_) return Bytes{0};
  // Finding the end takes a look at all names, and a reader of the head needs none of it.
  const bool within_head = offset + std::ssize(data) <= layout_->head();
  if (!within_head && (!knows_end_ || writes_)) {
    const Result<std::int64_t> steps = steps_there();
    TR_TRY(steps.status());
    end_ = layout_->head() + *steps * layout_->step();
    knows_end_ = true;
  }
  const Bytes end = within_head ? layout_->head() : end_;
  const Bytes total = std::clamp<Bytes>(end - offset, 0, std::ssize(data));
  const ByteVector begin = offset < layout_->head() ? layout_->head_begin(layout_->steps()) : ByteVector();
  for (Bytes done = 0; done < total;) {
    const Bytes at = offset + done;
    Piece piece;
    if (at < std::ssize(begin)) {
      const Bytes count = std::min(std::ssize(begin) - at, total - done);
      std::copy_n(begin.begin() + at, count, data.begin() + done);
      done += count;
      continue;
    }
    if (at < layout_->head()) {
      for (const Layout::Array& each : layout_->arrays()) {
        if (!each.has_steps && at >= each.begin && at < each.begin + each.size)
          piece = {&each, 0, at - each.begin, each.begin + each.size - at};
      }
    } else {
      piece = piece_at(at);
    }
    const Bytes count = std::min(piece.size, total - done);
    const Result<Bytes> got =
        read_piece(piece, data.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)));
    TR_TRY(got.status());
    done += count;
  }
  return total;
}

/// Brings the arrays' own metadata up to date. Those of the group may be as they should be, and not durable:
/// the process that wrote them may have been killed.
Status StoreFile::settle_metadata() {
  if (!layout_ || !writes_) return {};
  TR_TRY(load());  // another process may have told more steps since this file was opened
  for (const Layout::Array& each : layout_->arrays()) {
    const std::string path = path_of(each.name + "/zarr.json");
    const std::string text = layout_->array_text(each, layout_->steps());
    const Result<bool> exists = below_->exists(path);
    TR_TRY(exists.status());
    const Result<std::string> found = *exists ? text_of_file(*below_, path) : std::string();
    TR_TRY(found.status());
    if (*found != text) TR_TRY(replace(path, text));
    entries_.insert(path);
  }
  entries_.insert(path_of("zarr.json"));
  return {};
}

/// A server that writes steps makes them durable. Who has written none means the metadata, which the root of
/// the stream alone changes.
Status StoreFile::sync() {
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("sync"));
  TR_TRY(sync_failure_);
  if (!has_written_) TR_TRY(settle_metadata());
  return settle_objects();
}

Status StoreFile::settle_objects() {
  for (const std::string& path : std::exchange(written_, {})) {
    // Another server may have cut the step of an object meanwhile.
    Result<std::unique_ptr<File>> file = below_->open(path, OpenMode::existing);
    if (file.status().error_number() == ENOENT) continue;
    sync_failure_ = file.is_ok() ? (*file)->sync() : file.status();
    TR_TRY(sync_failure_);
  }
  std::set<std::string> directories;
  for (const std::string& path : std::exchange(entries_, {})) {
    if (!directories.insert(storage::parent_of(path)).second) continue;
    sync_failure_ = below_->sync_directory_of(path);
    TR_TRY(sync_failure_);
  }
  return {};
}

Result<std::vector<std::int64_t>> StoreFile::numbers(const Layout::Array& array) {
  std::vector<std::int64_t> found;
  const Result<bool> exists = below_->exists(path_of(array.name));
  TR_TRY(exists.status());
  if (!*exists) return found;
  const Result<std::vector<std::string>> names = below_->list(path_of(array.name));
  TR_TRY(names.status());
  for (const std::string& name : *names) {
    std::int64_t number = 0;
    if (!name.starts_with("c.")) continue;
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + 2, end, number).ec != std::errc()) continue;
    if (array.object(number) == cat(array.name, "/", name)) found.push_back(number);
  }
  std::ranges::sort(found);
  return found;
}

Result<bool> StoreFile::has_step(std::int64_t step) {
  const Layout::Array& times = layout_->arrays().front();
  std::array<std::byte, time_bytes> value{};
  const Result<Bytes> got =
      read_piece({&times, step / times.in_chunk, step % times.in_chunk * times.size, times.size}, value);
  TR_TRY(got.status());
  return *got == time_bytes && value != no_time;
}

/// Returns the number of steps whose times are there.
Result<std::int64_t> StoreFile::steps_with_times(std::int64_t chunk) {
  const Layout::Array& times = layout_->arrays().front();
  ByteVector values(static_cast<std::size_t>(times.in_chunk * times.size));
  const Result<Bytes> got = read_piece({&times, chunk, 0, std::ssize(values)}, values);
  TR_TRY(got.status());
  for (Bytes end = *got / time_bytes; end > 0; --end) {
    if (!std::ranges::equal(
            std::span(values).subspan(static_cast<std::size_t>((end - 1) * time_bytes), time_bytes), no_time))
      return chunk * times.in_chunk + end;
  }
  return chunk * times.in_chunk;
}

/// Returns the number of steps of which anything lies here.
Result<std::int64_t> StoreFile::steps_there() {
  std::int64_t steps = 0;
  for (const Layout::Array& each : layout_->arrays()) {
    const bool is_time = &each == &layout_->arrays().front();
    if (!each.has_steps || (each.in_chunk > 0 && !is_time)) continue;
    const Result<std::vector<std::int64_t>> found = numbers(each);
    TR_TRY(found.status());
    if (found->empty()) continue;
    const Result<std::int64_t> there = is_time ? steps_with_times(found->back()) : found->back() + 1;
    TR_TRY(there.status());
    steps = std::max(steps, *there);
  }
  return steps;
}

Result<Bytes> StoreFile::size() {
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("size"));
  if (!layout_) return Bytes{0};
  const Result<std::int64_t> steps = steps_there();
  TR_TRY(steps.status());
  return layout_->head() + *steps * layout_->step();
}

/// The time of a step is written behind its records, and looking at it costs less than listing all objects.
Result<bool> StoreFile::holds(Bytes end) {
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("size"));
  if (end <= 0) return true;
  if (!layout_) return false;
  if (end <= layout_->head()) return true;
  return has_step((end - layout_->head() - 1) / layout_->step());
}

Status StoreFile::forget_times(const Layout::Array& array, std::int64_t steps) {
  const Result<std::vector<std::int64_t>> found = numbers(array);
  TR_TRY(found.status());
  for (const std::int64_t number : *found) {
    const std::int64_t kept = std::clamp<std::int64_t>(steps - number * array.in_chunk, 0, array.in_chunk);
    const std::string path = path_of(array.object(number));
    if (kept == 0) {
      TR_TRY(below_->remove(path));
      entries_.insert(path);
    } else if (kept < array.in_chunk) {
      Result<std::unique_ptr<File>> file = below_->open(path, OpenMode::existing);
      TR_TRY(file.status());
      TR_TRY((*file)->write(no_times((array.in_chunk - kept) * array.size), kept * array.size));
      TR_TRY((*file)->sync());
      TR_TRY((*file)->close());
    }
  }
  return {};
}

/// Steps go backwards: the last one first, so that an interruption leaves the first ones whole. Readers hear
/// of it before.
Status StoreFile::truncate(Bytes size) {
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("truncate"));
  if (!writes_) return io_error("truncate", directory_, EBADF);
  if (!layout_) return {};
  if (size < layout_->head()) {
    const Status removed = remove_all();
    if (removed.is_ok()) layout_.reset();
    return removed;
  }
  const std::int64_t steps = (size - layout_->head()) / layout_->step();
  if (layout_->steps() > steps) {
    TR_TRY(replace(path_of("zarr.json"), layout_->group_text(steps)));
    layout_->set_steps(steps);
    TR_TRY(below_->sync_directory_of(path_of("zarr.json")));
  }
  for (const Layout::Array& each : layout_->arrays()) {
    if (!each.has_steps) continue;
    if (each.in_chunk > 0) {
      TR_TRY(forget_times(each, steps));
      continue;
    }
    Result<std::vector<std::int64_t>> found = numbers(each);
    TR_TRY(found.status());
    for (; !found->empty() && found->back() >= steps; found->pop_back()) {
      const std::string path = path_of(each.object(found->back()));
      TR_TRY(below_->remove(path));
      entries_.insert(path);
    }
  }
  return {};
}

Status StoreFile::remove_all() {
  written_.clear();
  entries_.clear();
  Result<std::vector<std::string>> names = below_->list(directory_);
  TR_TRY(names.status());
  const auto is_array = [&](const std::string& name) {
    return layout_ && std::ranges::count(layout_->arrays(), name, &Layout::Array::name) > 0;
  };
  for (const std::string& name : *names) {
    if (!is_array(name) && name != "zarr.json" && name != "zarr.json.new")
      return {Code::state, cat("remove ", directory_, ": has '", name,
                               "', which no stream has written; move it away, or choose another name")};
  }
  for (const std::string& name : *names) {
    if (!is_array(name)) continue;
    const Result<std::vector<std::string>> objects = below_->list(path_of(name));
    TR_TRY(objects.status());
    for (const std::string& each : *objects) TR_TRY(below_->remove(path_of(cat(name, "/", each))));
    TR_TRY(below_->remove_directory(path_of(name)));
  }
  for (const std::string_view name : {"zarr.json.new", "zarr.json"})
    TR_TRY(storage::remove_if_there(*below_, path_of(std::string(name))).status());
  return below_->sync_directory_of(path_of("zarr.json"));
}

Status StoreFile::copy_to(StoreFile& to, std::int64_t steps) {
  ByteVector head(static_cast<std::size_t>(layout_->head()));
  const Result<Bytes> got = read(head, 0);
  TR_TRY(got.status());
  ByteVector none(8);
  std::ranges::copy(none, head.begin() + zarr::steps_offset);
  TR_TRY(to.write(head, 0));
  for (const Layout::Array& each : layout_->arrays()) {
    if (!each.has_steps) continue;
    const Result<std::vector<std::int64_t>> found = numbers(each);
    TR_TRY(found.status());
    for (const std::int64_t number : *found) {
      if (number * std::max<Index>(each.in_chunk, 1) >= steps) continue;
      const std::string path = path_of(each.object(number)), copy = to.path_of(each.object(number));
      const Result<std::optional<Bytes>> size = storage::size_if_there(*below_, path);
      TR_TRY(size.status());
      TR_TRY(below_->copy(path, size->value_or(0), copy));
      to.entries_.insert(copy);
    }
    if (each.in_chunk > 0) TR_TRY(to.forget_times(each, steps));
  }
  return to.sync();
}

Status StoreFile::close() {
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("close"));
  is_closed_ = true;
  // Who opens the store again, to synchronise it, does not know what was written here.
  return written_.empty() ? Status() : settle_objects();
}

}  // namespace tailrace::stores
