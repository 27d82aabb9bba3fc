// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/store/store_file.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "formats/zarr/store/times.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::zarr {

using storage::OpenMode;

namespace {

std::int64_t from_big_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (const std::byte each : bytes) value = value << 8 | static_cast<std::uint64_t>(each);
  return static_cast<std::int64_t>(value);
}

/// Hands out the bytes of the parts, in order. Each part is visited once.
class PartsInTurn {
 public:
  explicit PartsInTurn(storage::Parts parts) : rest_(parts) {}

  /// Returns the next `size` bytes.
  std::vector<std::span<const std::byte>> next(Bytes size) {
    std::vector<std::span<const std::byte>> slices;
    while (size > 0 && !rest_.empty()) {
      const auto part = rest_.front().subspan(static_cast<std::size_t>(taken_));
      const Bytes count = std::min(size, std::ssize(part));
      if (count > 0) slices.push_back(part.first(static_cast<std::size_t>(count)));
      size -= count;
      taken_ += count;
      if (count < std::ssize(part)) continue;
      rest_ = rest_.subspan(1);
      taken_ = 0;
    }
    return slices;
  }

 private:
  storage::Parts rest_;
  Bytes taken_ = 0;  // bytes of the first part that were handed out
};

}  // namespace

Result<std::unique_ptr<StoreFile>> StoreFile::open(const storage::ObjectsAt& at, std::shared_ptr<Known> known,
                                                   std::string directory, OpenMode mode) {
  std::unique_ptr<StoreFile> file(new StoreFile(at, std::move(known), std::move(directory), mode));
  Objects& objects = file->objects_;
  const Result<bool> exists = objects.is_made();
  TR_TRY(exists.status());
  if (!*exists) {
    if (!storage::makes(mode)) return io_error("open", objects.directory(), ENOENT);
    TR_TRY(objects.make());
    return file;
  }
  Result<std::shared_ptr<const Layout>> layout = objects.load();
  TR_TRY(layout.status());
  file->layout_ = std::move(*layout);
  if (file->writes_ && file->layout_) TR_TRY(objects.check_no_links(*file->layout_));
  if (storage::empties(mode)) TR_TRY(file->truncate(0));
  return file;
}

codec::StoreOpener StoreFile::opener(storage::ObjectsAt objects) {
  return [objects = std::move(objects), known = std::make_shared<Known>()](
             const std::string& directory, OpenMode mode) -> Result<std::unique_ptr<codec::Store>> {
    Result<std::unique_ptr<StoreFile>> file = open(objects, known, directory, mode);
    TR_TRY(file.status());
    return std::unique_ptr<codec::Store>(std::move(*file));
  };
}

Status StoreFile::check_open(const char* operation) const {
  if (is_closed_) return {Code::state, cat(operation, " ", objects_.directory(), ": the file is closed")};
  return {};
}

StoreFile::Piece StoreFile::piece_at(Bytes offset) const {
  const bool is_in_head = offset < layout_->head();
  const std::int64_t step = is_in_head ? 0 : (offset - layout_->head()) / layout_->step();
  const Bytes within = is_in_head ? offset : (offset - layout_->head()) % layout_->step();
  Piece piece;
  piece.array = is_in_head ? layout_->in_head(within) : layout_->in_step(within);
  if (piece.array == nullptr) return piece;
  const Layout::Array& of = *piece.array;
  piece.number = of.in_chunk > 0 ? step / of.in_chunk : step;
  piece.offset = within - of.begin + (of.in_chunk > 0 ? step % of.in_chunk * of.size : 0);
  piece.size = of.begin + of.size - within;
  return piece;
}

Status StoreFile::write_gathered(storage::Parts parts, Bytes offset) {
  TR_TRY(storage::check_range("write", objects_.directory(), offset, storage::bytes_in(parts)));
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("write"));
  if (!writes_) return io_error("write", objects_.directory(), EBADF);
  const Bytes total = storage::bytes_in(parts);
  if (total == 0) return {};
  const auto all = [&] {
    ByteVector bytes;
    for (const auto& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
  };
  if (offset == 0) return write_head(all());
  if (layout_ && offset == steps_offset && total == time_bytes) {
    told_ = from_big_endian(all());
    return objects_.tell(*layout_, *told_);
  }
  if (!layout_ || offset < layout_->head())
    return {Code::state, cat("write ", objects_.directory(), ": its metadata are written whole")};
  PartsInTurn in_turn(parts);
  for (Bytes done = 0; done < total;) {
    const Piece piece = piece_at(offset + done);
    const Bytes count = std::min(piece.size, total - done);
    TR_TRY(objects_.write(*piece.array, piece.number, piece.offset, in_turn.next(count)));
    done += count;
  }
  return {};
}

/// Begins the store anew with this head. Removes all objects of an older store first, as the new layout may
/// not know them.
Status StoreFile::write_head(std::span<const std::byte> head) {
  const Status not_whole(Code::state,
                         cat("write ", objects_.directory(), ": its metadata are written whole"));
  const std::int64_t length = std::ssize(head) < frame_bytes ? 0 : from_big_endian(head.first(8));
  if (length <= 0 || length > std::ssize(head) - frame_bytes) return not_whole;
  Result<std::shared_ptr<const Layout>> layout = known_->layout_of(std::string(
      reinterpret_cast<const char*>(head.data()) + frame_bytes, static_cast<std::size_t>(length)));
  TR_TRY(layout.status().in(objects_.directory()));
  if ((*layout)->head() != std::ssize(head)) return not_whole;
  TR_TRY(objects_.remove_all(layout_.get()));
  layout_ = std::move(*layout);
  told_.reset();  // the arrays' own metadata are written with the head
  return objects_.begin(*layout_, head);
}

/// Returns the end of the row, or of the head if only the head is read: finding the end means listing all
/// objects.
Result<Bytes> StoreFile::end_for(Bytes offset, Bytes size) {
  if (offset + size <= layout_->head()) return layout_->head();
  if (end_ && !writes_) return *end_;
  const Result<std::int64_t> steps = steps_there();
  TR_TRY(steps.status());
  end_ = layout_->head() + *steps * layout_->step();
  return *end_;
}

Result<Bytes> StoreFile::read(std::span<std::byte> data, Bytes offset) {
  TR_TRY(storage::check_range("read", objects_.directory(), offset, std::ssize(data)));
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("read"));
  if (!layout_) return Bytes{0};
  const Result<Bytes> end = end_for(offset, std::ssize(data));
  TR_TRY(end.status());
  ByteVector begin;
  if (offset < layout_->head()) {
    const Result<std::optional<std::int64_t>> told = objects_.told(*layout_);
    TR_TRY(told.status());
    begin = layout_->head_begin(told->value_or(0));
  }
  const Bytes total = std::clamp<Bytes>(*end - offset, 0, std::ssize(data));
  for (Bytes done = 0; done < total;) {
    const Bytes at = offset + done;
    if (at < std::ssize(begin)) {
      const Bytes count = std::min(std::ssize(begin) - at, total - done);
      std::copy_n(begin.begin() + at, count, data.begin() + done);
      done += count;
      continue;
    }
    const Piece piece = piece_at(at);
    const Bytes count = std::min(piece.size, total - done);
    const auto part = data.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count));
    const Result<Bytes> got = objects_.read(*piece.array, piece.number, piece.offset, part);
    TR_TRY(got.status());
    done += count;
  }
  return total;
}

/// Makes everything durable. Only the root of a stream writes the number of steps, so only the root writes
/// metadata here.
Status StoreFile::sync() {
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("sync"));
  if (told_) TR_TRY(objects_.tell_arrays(*layout_, *told_));
  TR_TRY(objects_.settle());
  told_.reset();
  return {};
}

Result<bool> StoreFile::has_step(std::int64_t step) {
  const Layout::Array& times = layout_->times();
  std::array<std::byte, time_bytes> value{};
  const Result<Bytes> got =
      objects_.read(times, step / times.in_chunk, step % times.in_chunk * times.size, value);
  TR_TRY(got.status());
  return *got == time_bytes && value != no_time;
}

/// Returns the number of steps up to the last one with a time, if `chunk` is the last object of times.
Result<std::int64_t> StoreFile::steps_with_times(std::int64_t chunk) {
  const Layout::Array& times = layout_->times();
  ByteVector values(static_cast<std::size_t>(times.in_chunk * times.size));
  const Result<Bytes> got = objects_.read(times, chunk, 0, values);
  TR_TRY(got.status());
  Bytes end = *got / time_bytes;
  const auto value = [&](Bytes number) {
    return std::span(values).subspan(static_cast<std::size_t>(number * time_bytes), time_bytes);
  };
  while (end > 0 && std::ranges::equal(value(end - 1), no_time)) --end;
  return chunk * times.in_chunk + end;
}

/// Returns the number of steps up to the last one of which any object or time exists.
Result<std::int64_t> StoreFile::steps_there() {
  std::int64_t steps = 0;
  for (const Layout::Array& each : layout_->arrays()) {
    const bool is_time = layout_->has_steps() && &each == &layout_->times();
    if (!each.has_steps || (each.in_chunk > 0 && !is_time)) continue;
    const Result<std::vector<std::int64_t>> found = objects_.numbers(each);
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
  // A process that was killed while it began or emptied the store has left a part of the head. The size is 0
  // then, and the next writer writes the whole head again. Emptying removes times first, so a store with
  // times has a whole head.
  Result<std::vector<std::int64_t>> times = std::vector<std::int64_t>();
  if (layout_->has_steps()) times = objects_.numbers(layout_->times());
  TR_TRY(times.status());
  const Result<bool> has_head = times->empty() ? objects_.is_begun(*layout_) : Result<bool>(true);
  TR_TRY(has_head.status());
  return *has_head ? layout_->head() + *steps * layout_->step() : Bytes{0};
}

/// True if the last step before `end` is complete and the objects of `ranges` have exactly their size. The
/// time of a step is written after its records, and looking at it costs less than listing all objects. An
/// object must not be longer either: readers find the index of a shard by the end of the object, and
/// additional zeros would not show in the row.
Result<bool> StoreFile::holds(Bytes end, std::span<const storage::Range> ranges) {
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("size"));
  if (end <= 0) return true;
  if (!layout_) return false;
  if (!layout_->has_steps() && end == layout_->head()) return objects_.is_begun(*layout_);
  if (end <= layout_->head() || !layout_->has_steps()) return end <= layout_->head();
  const Result<bool> has = has_step((end - layout_->head() - 1) / layout_->step());
  if (!has.is_ok() || !*has) return has;
  std::map<std::pair<const Layout::Array*, std::int64_t>, Bytes> ends;  // ends of the objects
  for (const storage::Range& each : ranges) {
    const Piece piece = piece_at(each.offset);
    if (piece.array == nullptr || piece.array->in_chunk > 0) return false;
    Bytes& least = ends[{piece.array, piece.number}];
    least = std::max(least, piece.offset + each.size);
  }
  for (const auto& [object, least] : ends) {
    const Result<std::optional<Bytes>> size = objects_.size_of(*object.first, object.second);
    TR_TRY(size.status());
    if (size->value_or(0) != least + object.first->index) return false;
  }
  return true;
}

/// Writes the smaller number of steps into the metadata before it removes the first object, so that readers
/// do not look for removed steps.
Status StoreFile::truncate(Bytes size) {
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("truncate"));
  if (!writes_) return io_error("truncate", objects_.directory(), EBADF);
  // A store with an incomplete head counts as empty. A head can be longer than the index says if a process
  // was killed after it wrote the index of a new store and before it emptied the old one.
  if (size == 0 || (layout_ && size < layout_->head())) {
    TR_TRY(objects_.remove_all(layout_.get()));
    layout_.reset();
    told_.reset();
    return {};
  }
  if (!layout_)
    return {Code::state,
            cat("truncate ", objects_.directory(), ": it has no metadata yet, which come first")};
  if (!layout_->has_steps()) return {};
  const std::int64_t steps = (size - layout_->head() + layout_->step() - 1) / layout_->step();
  const Result<std::optional<std::int64_t>> told = objects_.told(*layout_);
  TR_TRY(told.status());
  if (told->value_or(steps + 1) > steps) {
    told_ = steps;
    TR_TRY(objects_.tell(*layout_, steps));
    TR_TRY(objects_.settle());
  }
  return objects_.remove_from(*layout_, steps);
}

Status StoreFile::copy_to(const std::string& directory, Bytes size) {
  Result<std::unique_ptr<StoreFile>> made = open(at_, known_, directory, OpenMode::create);
  TR_TRY(made.status());
  const Result<bool> whole = holds(size, {});
  TR_TRY(whole.status());
  if (!*whole)
    return {Code::corrupt,
            cat(objects_.directory(), ": lacks steps that its index has; something else has removed them")};
  TR_TRY(copy_before(size, **made));
  return (*made)->close();
}

Status StoreFile::remove() {
  TR_TRY(objects_.remove_all(layout_.get()));
  return objects_.unmake();
}

/// Copies the first `size` bytes to an empty store.
Status StoreFile::copy_before(Bytes size, StoreFile& to) {
  if (!layout_ || size < layout_->head()) return {};
  ByteVector head(static_cast<std::size_t>(layout_->head()));
  const Result<Bytes> got = read(head, 0);
  TR_TRY(got.status());
  TR_TRY(to.write(head, 0));
  if (!layout_->has_steps()) return {};
  return objects_.copy_before(*layout_, (size - layout_->head()) / layout_->step(), to.objects_);
}

Status StoreFile::close() {
  const std::lock_guard guard(mutex_);
  TR_TRY(check_open("close"));
  is_closed_ = true;
  // Settle before closing: a later StoreFile of the store does not know what was written here.
  return objects_.settle();
}

}  // namespace tailrace::zarr
