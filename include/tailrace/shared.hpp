// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Shared files in C++: tailrace/shared.h says what each call does. Included by tailrace.hpp.
#ifndef TAILRACE_SHARED_HPP
#define TAILRACE_SHARED_HPP

#include <tailrace.hpp>

#include <cstdio>
#include <iterator>

namespace tr {

/// The place from which Shared::seek counts.
enum class Whence : int { begin = SEEK_SET, position = SEEK_CUR, end = SEEK_END };

/// Local. Returns the bytes of `count` elements. If 64 bits cannot count them, returns -1, which the library
/// refuses.
template <typename T>
constexpr std::int64_t bytes_of(Index count) {
  static_assert(std::is_trivially_copyable_v<T>, "elements of a file are copied byte by byte");
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  return count > std::numeric_limits<std::int64_t>::max() / size ? -1 : count * size;
}

/// Elements that a call writes, byte for byte: a std::vector, std::array, std::string, std::string_view or
/// std::span (C++20), or a pointer and a number of elements. They need to live only until the call returns.
class Content {
 public:
  template <typename C, typename T = std::remove_pointer_t<decltype(std::data(std::declval<const C&>()))>,
            typename = decltype(std::size(std::declval<const C&>())),
            typename = std::enable_if_t<!std::is_array_v<C>>>
  Content(const C& elements) : Content(std::data(elements), static_cast<Index>(std::size(elements))) {}
  template <typename T>
  Content(const T* first, Index count) : data_(first), bytes_(bytes_of<T>(count)) {}
  [[nodiscard]] const void* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  const void* data_;
  std::int64_t bytes_;
};

/// Elements that a call fills: as Content, but not const.
class Room {
 public:
  template <typename C, typename T = std::remove_pointer_t<decltype(std::data(std::declval<C&>()))>,
            typename = decltype(std::size(std::declval<C&>())),
            typename = std::enable_if_t<!std::is_const_v<T>>>
  Room(C&& elements) : Room(std::data(elements), static_cast<Index>(std::size(elements))) {}
  template <typename T>
  Room(T* first, Index count) : data_(first), bytes_(bytes_of<T>(count)) {}
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  void* data_;
  std::int64_t bytes_;
};

/// Local. Returns a piece for Shared::readv: the bytes of the file from `offset` on are copied to `room`.
inline tr_piece into(Room room, std::int64_t offset) { return {room.data(), room.bytes(), offset}; }
/// Local. Returns a piece for Shared::writev: the bytes of `content` are copied to the file from `offset` on.
inline tr_piece from(Content content, std::int64_t offset) {
  return {const_cast<void*>(content.data()), content.bytes(), offset};
}

/// One binary file in which every rank reads and writes small pieces anywhere. Offsets, positions and sizes
/// are in bytes. Destroying the handle does not close the file: close() or tr::finalize() does.
///
/// Each member says whether it is collective. It waits and fails as the call of tailrace/shared.h that it
/// names. Collective members return the same Status on every rank. A member that reads returns an error if
/// there are fewer bytes than asked, unless the caller passes `got`.
class Shared {
 public:
  Shared() = default;
  Shared(Shared&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Shared& operator=(Shared&& other) noexcept {
    handle_ = std::exchange(other.handle_, nullptr);
    return *this;
  }

  /// Collective over the compute ranks; blocks as tr_shared_open.
  static Result<Shared> open(const std::string& path, const std::string& mode, const Options& options = {}) {
    Shared file;
    const int code = tr_shared_open(path.c_str(), mode.c_str(), options.text().c_str(), &file.handle_);
    if (code != TR_OK) return Status(code);
    return file;
  }
  /// Collective over `comm`; blocks as tr_shared_open_comm.
  static Result<Shared> open(MPI_Comm comm, const std::string& path, const std::string& mode,
                             const Options& options = {}) {
    Shared file;
    const int code =
        tr_shared_open_comm(comm, path.c_str(), mode.c_str(), options.text().c_str(), &file.handle_);
    if (code != TR_OK) return Status(code);
    return file;
  }

  /// Local: tr_shared_seek. Waits only with Whence::end.
  [[nodiscard]] Status seek(std::int64_t offset, Whence whence = Whence::begin,
                            std::int64_t* position = nullptr) {
    return Status(tr_shared_seek(handle_, offset, static_cast<int>(whence), position));
  }
  /// Local; waits for nobody: tr_shared_tell.
  [[nodiscard]] Result<std::int64_t> tell() const {
    std::int64_t position = 0;
    if (const int code = tr_shared_tell(handle_, &position)) return Status(code);
    return position;
  }

  /// Local: tr_shared_read, at the position, and tr_shared_pread. They may wait for storage and other nodes.
  [[nodiscard]] Status read(Room room, std::int64_t* got = nullptr) {
    return Status(tr_shared_read(handle_, room.data(), room.bytes(), got));
  }
  [[nodiscard]] Status pread(Room room, std::int64_t offset, std::int64_t* got = nullptr) {
    return Status(tr_shared_pread(handle_, room.data(), room.bytes(), offset, got));
  }
  /// Local: tr_shared_write, at the position, and tr_shared_pwrite. They may wait for room and storage.
  [[nodiscard]] Status write(Content content) {
    return Status(tr_shared_write(handle_, content.data(), content.bytes()));
  }
  [[nodiscard]] Status pwrite(Content content, std::int64_t offset) {
    return Status(tr_shared_pwrite(handle_, content.data(), content.bytes(), offset));
  }
  /// Local: tr_shared_readv. May wait as pread(). into() makes each piece.
  [[nodiscard]] Status readv(const std::vector<tr_piece>& pieces, std::int64_t* got = nullptr) {
    return Status(tr_shared_readv(handle_, pieces.data(), static_cast<std::int64_t>(pieces.size()), got));
  }
  /// Local: tr_shared_writev. May wait as pwrite(). from() makes each piece.
  [[nodiscard]] Status writev(const std::vector<tr_piece>& pieces) {
    return Status(tr_shared_writev(handle_, pieces.data(), static_cast<std::int64_t>(pieces.size())));
  }
  /// Local: tr_shared_append. May wait as pwrite(), and for rank 0. `offset` becomes the place where the
  /// bytes begin.
  [[nodiscard]] Status append(Content content, std::int64_t* offset = nullptr) {
    return Status(tr_shared_append(handle_, content.data(), content.bytes(), offset));
  }

  /// Local: tr_shared_size. On several nodes it waits for rank 0.
  [[nodiscard]] Result<std::int64_t> size() const {
    std::int64_t size = 0;
    if (const int code = tr_shared_size(handle_, &size)) return Status(code);
    return size;
  }
  /// Collective; blocks until all ranks have called it: tr_shared_resize.
  [[nodiscard]] Status resize(std::int64_t size) { return Status(tr_shared_resize(handle_, size)); }
  /// Collective; blocks until all ranks have called it: tr_shared_sync.
  [[nodiscard]] Status sync() { return Status(tr_shared_sync(handle_)); }
  /// Collective; blocks until everything is durable: tr_shared_flush.
  [[nodiscard]] Status flush() { return Status(tr_shared_flush(handle_)); }
  /// Collective; blocks until everything is in the file: tr_shared_close. The handle is gone, whatever is
  /// returned.
  [[nodiscard]] Status close() { return Status(tr_shared_close(&handle_)); }
  /// Local. Returns the handle for the C face. This object keeps it.
  [[nodiscard]] tr_shared* c_handle() const { return handle_; }

 private:
  tr_shared* handle_ = nullptr;
};

}  // namespace tr

#endif
