// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/compression/compressor.hpp"

#include <algorithm>
#include <array>

#include "ground/base/text.hpp"

#ifdef TAILRACE_HAVE_DEFLATE
#include <libdeflate.h>
#endif
#ifdef TAILRACE_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif
#ifdef TAILRACE_HAVE_BLOSC
#include "formats/compression/blosc_chunk.hpp"
#endif

namespace tailrace::compression {

/// The working memory of the compression libraries. A compressor keeps it for all its chunks.
struct Tables {
#ifdef TAILRACE_HAVE_DEFLATE
  struct FreeDeflate {
    void operator()(libdeflate_compressor* each) const { libdeflate_free_compressor(each); }
  };
  std::unique_ptr<libdeflate_compressor, FreeDeflate> deflate{};
  int deflate_level = -1;
#endif
#ifdef TAILRACE_HAVE_ZSTD
  struct FreeZstd {
    void operator()(ZSTD_CCtx* each) const { ZSTD_freeCCtx(each); }
  };
  std::unique_ptr<ZSTD_CCtx, FreeZstd> zstd{};
#endif
};

namespace {

struct Chunk {
  std::span<const std::byte> bytes;
  Bytes element_size = 1;
};

using Check = Status (*)(Method method, Bytes raw);
using Bound = Bytes (*)(Bytes raw);
/// Compresses a chunk into `out`, which has room for bound() bytes. Returns the size of the result.
using Compress = Result<std::size_t> (*)(Tables& tables, const Compression& how, const Chunk& chunk,
                                         std::span<std::byte> out);

/// One compression method: its library, and its functions. The functions are null if this build lacks the
/// library.
struct Way {
  Method method = Method::none;
  std::string_view library, package;
  std::string_view instead;  // the option that the error proposes to users
  Check check = nullptr;     // null: the method takes every chunk
  Bound bound = nullptr;
  Compress compress = nullptr;
};

#ifdef TAILRACE_HAVE_DEFLATE
Bytes bound_of_deflate(Bytes raw) {
  return static_cast<Bytes>(libdeflate_zlib_compress_bound(nullptr, static_cast<std::size_t>(raw)));
}

Bytes bound_of_gzip(Bytes raw) {
  return static_cast<Bytes>(libdeflate_gzip_compress_bound(nullptr, static_cast<std::size_t>(raw)));
}

Result<std::size_t> deflate(Tables& tables, const Compression& how, const Chunk& chunk,
                            std::span<std::byte> out) {
  if (tables.deflate_level != how.level) {
    tables.deflate.reset(libdeflate_alloc_compressor(how.level));
    tables.deflate_level = tables.deflate ? how.level : -1;
  }
  if (!tables.deflate) return Status(Code::memory, "no memory for the tables of deflate");
  const auto call = how.method == Method::gzip ? libdeflate_gzip_compress : libdeflate_zlib_compress;
  const std::size_t size =
      call(tables.deflate.get(), chunk.bytes.data(), chunk.bytes.size(), out.data(), out.size());
  if (size > 0) return size;
  return Status(Code::format, cat("libdeflate did not fit a chunk of ", counted(chunk.bytes.size(), "byte"),
                                  " into the ", out.size(), " that it promises"));
}
#else
constexpr Bound bound_of_deflate = nullptr, bound_of_gzip = nullptr;
constexpr Compress deflate = nullptr;
#endif

#ifdef TAILRACE_HAVE_ZSTD
Bytes bound_of_zstd(Bytes raw) {
  return static_cast<Bytes>(ZSTD_compressBound(static_cast<std::size_t>(raw)));
}

Result<std::size_t> zstd(Tables& tables, const Compression& how, const Chunk& chunk,
                         std::span<std::byte> out) {
  if (!tables.zstd) tables.zstd.reset(ZSTD_createCCtx());
  if (!tables.zstd) return Status(Code::memory, "no memory for the tables of zstd");
  const std::size_t size = ZSTD_compressCCtx(tables.zstd.get(), out.data(), out.size(), chunk.bytes.data(),
                                             chunk.bytes.size(), how.level);
  if (ZSTD_isError(size) == 0) return size;
  const std::string text = counted(chunk.bytes.size(), "byte");
  if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation)
    return Status(Code::memory, cat("no memory for zstd to compress a chunk of ", text,
                                    "; a lower level takes less, and so do smaller chunks (chunks=)"));
  return Status(Code::format, cat("zstd did not compress a chunk of ", text, ": ",
                                  std::string_view(ZSTD_getErrorName(size))));
}
#else
constexpr Bound bound_of_zstd = nullptr;
constexpr Compress zstd = nullptr;
#endif

#ifdef TAILRACE_HAVE_BLOSC
Result<std::size_t> blosc(Tables&, const Compression& how, const Chunk& chunk, std::span<std::byte> out) {
  return by_blosc(how, chunk.bytes, chunk.element_size, out);
}
#else
constexpr Check check_blosc = nullptr;
constexpr Bound bound_of_blosc = nullptr;
constexpr Compress blosc = nullptr;
#endif

constexpr std::array<Way, 5> ways{{
    {Method::deflate, "libdeflate", "libdeflate-dev", "compress=none", nullptr, bound_of_deflate, deflate},
    {Method::gzip, "libdeflate", "libdeflate-dev", "compress=none", nullptr, bound_of_gzip, deflate},
    {Method::zstd, "zstd", "libzstd-dev", "compress=gzip", nullptr, bound_of_zstd, zstd},
    {Method::blosc_lz4, "c-blosc", "libblosc-dev", "compress=gzip", check_blosc, bound_of_blosc, blosc},
    {Method::blosc_zstd, "c-blosc", "libblosc-dev", "compress=gzip", check_blosc, bound_of_blosc, blosc},
}};

/// Returns the entry of a method, or null for Method::none.
const Way* way_of(Method method) {
  const auto* const found = std::ranges::find(ways, method, &Way::method);
  return found == ways.end() ? nullptr : found;
}

}  // namespace

Status check(const Compression& how, Bytes raw) {
  const Way* const way = way_of(how.method);
  if (way == nullptr) return {};
  if (way->compress == nullptr) {
    return {Code::unsupported, cat("this Tailrace was built without ", way->library, "; install ",
                                   way->package, " and configure again, or say ", way->instead)};
  }
  return way->check == nullptr ? Status() : way->check(how.method, raw);
}

Bytes bound(const Compression& how, Bytes raw) {
  const Way* const way = way_of(how.method);
  return way == nullptr || way->bound == nullptr ? raw : way->bound(raw);
}

Compressor::Compressor() = default;
Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;

Status Compressor::compress(const Compression& how, std::span<const std::byte> bytes, Bytes element_size,
                            ByteVector& out) {
  const Way* const way = way_of(how.method);
  if (way == nullptr) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return {};
  }
  if (way->compress == nullptr) return check(how, std::ssize(bytes));
  if (!tables_) tables_ = std::make_unique<Tables>();
  const std::size_t before = out.size();
  out.resize(before + static_cast<std::size_t>(way->bound(std::ssize(bytes))));
  const Result<std::size_t> size =
      way->compress(*tables_, how, {bytes, element_size}, std::span(out).subspan(before));
  out.resize(before + (size.is_ok() ? *size : 0));
  return size.status();
}

}  // namespace tailrace::compression
