// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/cookie.hpp"

#include <stdio_ext.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "ground/base/text.hpp"

namespace tailrace::files {

namespace {

/// The buffer is so large that storage sees large blocks.
constexpr std::size_t stream_buffer = std::size_t{1} << 20;

struct Cookie {
  std::string path;
  journal::Journals& journals;
  std::shared_ptr<journal::LastingFile> file;
  std::shared_ptr<journal::Growth> growth;  // nullptr if the file is only read
  Bytes position = 0;
  std::shared_ptr<std::atomic<Bytes>> least_end;  // nullptr if the stream does not append
  // The C library takes a size only together with a buffer.
  std::unique_ptr<char[]> buffer{new char[stream_buffer]};
};

/// Sets errno to the cause of `status`, and returns `result`: so the following functions tell the C library
/// of a failure.
int fail(const Status& status, int result) {
  errno = status.error_number() != 0 ? status.error_number() : EIO;
  return result;
}

ssize_t read_cookie(void* held, char* buffer, std::size_t size) {
  auto& cookie = *static_cast<Cookie*>(held);
  const Result<Bytes> got =
      cookie.file->read(std::as_writable_bytes(std::span(buffer, size)), cookie.position);
  if (!got.is_ok()) return fail(got.status(), -1);
  cookie.position += *got;
  return static_cast<ssize_t>(*got);
}

Status write_at_end(Cookie& cookie, std::span<const std::byte> data) {
  if (cookie.least_end) {
    const Result<Bytes> size = cookie.file->size();
    TR_TRY(size.status());
    cookie.position = std::max(*size, cookie.least_end->load());
  }
  TR_TRY(cookie.journals.keep(cookie.path, *cookie.file, cookie.position, static_cast<Bytes>(data.size())));
  return cookie.file->write(data, cookie.position);
}

ssize_t write_cookie(void* held, const char* buffer, std::size_t size) {
  auto& cookie = *static_cast<Cookie*>(held);
  const Status status = write_at_end(cookie, std::as_bytes(std::span(buffer, size)));
  if (!status.is_ok()) return fail(status, 0);  // fopencookie(3): never negative
  if (cookie.growth) cookie.growth->stream_wrote(cookie.position, static_cast<Bytes>(size));
  cookie.position += static_cast<Bytes>(size);
  return static_cast<ssize_t>(size);
}

int seek_cookie(void* held, off64_t* offset, int whence) {
  auto& cookie = *static_cast<Cookie*>(held);
  Bytes base = whence == SEEK_CUR ? cookie.position : 0;
  if (whence == SEEK_END) {
    const Result<Bytes> size = cookie.file->size();
    if (!size.is_ok()) return fail(size.status(), -1);
    base = *size;
  }
  if (base + *offset < 0) {
    errno = EINVAL;
    return -1;
  }
  cookie.position = *offset = base + *offset;
  return 0;
}

int close_cookie(void* held) {
  const std::unique_ptr<Cookie> cookie(static_cast<Cookie*>(held));
  const Status status = cookie->file->close();
  return status.is_ok() ? 0 : fail(status, EOF);
}

storage::OpenMode how_to_open(const Mode& mode, bool cuts_later,
                              const std::optional<journal::Position>& from) {
  // If no bytes of the file were recorded, it may be missing: it is then made.
  if (from) return from->size > 0 ? storage::OpenMode::existing : storage::OpenMode::keep;
  if (mode.access == Mode::Access::read)
    return mode.update ? storage::OpenMode::existing : storage::OpenMode::read;
  const bool cuts = mode.access == Mode::Access::write && !cuts_later;
  return cuts ? storage::OpenMode::create : storage::OpenMode::keep;
}

/// Makes the Growth that watches the writes to the file.
Result<std::shared_ptr<journal::Growth>> watch(storage::File& file, const std::string& path, const Mode& mode,
                                               const std::optional<journal::Position>& from,
                                               const journal::Journals& journals) {
  Result<Bytes> end = from ? from->size : Bytes{0};
  if (!from && mode.access != Mode::Access::write) end = file.size();
  TR_TRY(end.status());
  return std::make_shared<journal::Growth>(path, *end, from && !journals.has(path) ? *end : 0);
}

}  // namespace

Result<CStream> open_stream(storage::Target& target, const std::string& path, const Mode& mode,
                            bool may_be_uncut, const std::optional<journal::Position>& from,
                            journal::Journals& journals) {
  CStream opened;
  if (const Result<storage::Kind> kind = target.kind_of(path);
      kind.is_ok() && *kind == storage::Kind::other) {
    // A pipe or a device takes no bytes at offsets, so no target opens it: the C library does.
    opened.stream = std::fopen(path.c_str(), mode.for_libc().c_str());
    if (opened.stream == nullptr) return io_error("open", path, errno);
    return opened;
  }
  const bool is_emptied = mode.access == Mode::Access::write && !from;
  const bool is_kept = is_emptied && journals.has(path);
  Result<std::unique_ptr<storage::File>> file =
      target.open(path, how_to_open(mode, may_be_uncut || is_kept, from));
  TR_TRY(file.status());
  if (from) TR_TRY(journal::bring_back(target, **file, *from));
  if (is_kept) {
    TR_TRY(journals.keep(path, **file, 0, std::numeric_limits<Bytes>::max()));
    TR_TRY((*file)->truncate(0));
  }
  opened.file = std::make_shared<journal::LastingFile>(std::move(*file));
  opened.is_uncut = is_emptied && may_be_uncut && !is_kept;
  if (mode.writes()) {
    Result<std::shared_ptr<journal::Growth>> growth = watch(*opened.file, path, mode, from, journals);
    TR_TRY(growth.status());
    opened.growth = std::move(*growth);
  }
  Bytes position = 0;
  if (mode.access == Mode::Access::append) {
    opened.least_end = std::make_shared<std::atomic<Bytes>>(0);
    const Result<Bytes> size = opened.file->size();
    TR_TRY(size.status());
    if (!mode.update) position = *size;  // with +, glibc begins to read at 0
  }
  auto cookie = std::make_unique<Cookie>(
      Cookie{path, journals, opened.file, opened.growth, position, opened.least_end});
  opened.stream = ::fopencookie(cookie.get(), mode.for_libc().c_str(),
                                {read_cookie, write_cookie, seek_cookie, close_cookie});
  if (opened.stream == nullptr) return io_error("fopencookie", path, errno);
  std::setvbuf(opened.stream, cookie.release()->buffer.get(), _IOFBF, stream_buffer);
  if (from && ::fseeko(opened.stream, from->position, SEEK_SET) != 0) {
    const int error = errno;
    std::fclose(opened.stream);
    return io_error("seek", path, error);
  }
  return opened;
}

int flush_before_seek(std::FILE* stream) { return ::__fwriting(stream) != 0 ? std::fflush(stream) : 0; }

bool seek_to(std::FILE* stream, Bytes position) {
  return flush_before_seek(stream) == 0 && ::fseeko(stream, position, SEEK_SET) == 0;
}

}  // namespace tailrace::files
