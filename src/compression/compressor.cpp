// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "compression/compressor.hpp"

#include "base/text.hpp"

#ifdef TAILRACE_HAVE_DEFLATE
#include <libdeflate.h>
#endif
#ifdef TAILRACE_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif
#ifdef TAILRACE_HAVE_BLOSC
#include "compression/blosc_chunk.hpp"
#endif

namespace tailrace::compression {

struct Compressor::Tables {
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

  /// Compresses into `out`, which has bound() bytes. Returns their number.
  Result<std::size_t> compress(const Compression& how, std::span<const std::byte> bytes, Bytes element_size,
                               std::span<std::byte> out);
  Result<std::size_t> by_deflate(const Compression& how, std::span<const std::byte> bytes,
                                 std::span<std::byte> out);
  Result<std::size_t> by_zstd(const Compression& how, std::span<const std::byte> bytes,
                              std::span<std::byte> out);
};

namespace {

[[maybe_unused]] Status lacking(std::string_view library, std::string_view package,
                                std::string_view instead) {
  return {Code::unsupported, cat("this Tailrace was built without ", library, "; install ", package,
                                 " and configure again, or say ", instead)};
}

}  // namespace

#ifdef TAILRACE_HAVE_DEFLATE
Result<std::size_t> Compressor::Tables::by_deflate(const Compression& how, std::span<const std::byte> bytes,
                                                   std::span<std::byte> out) {
  if (deflate_level != how.level) {
    deflate.reset(libdeflate_alloc_compressor(how.level));
    deflate_level = deflate ? how.level : -1;
  }
  if (!deflate) return Status(Code::memory, "no memory for the tables of deflate");
  const auto call = how.method == Method::gzip ? libdeflate_gzip_compress : libdeflate_zlib_compress;
  const std::size_t size = call(deflate.get(), bytes.data(), bytes.size(), out.data(), out.size());
  if (size > 0) return size;
  return Status(Code::format, cat("libdeflate did not fit a chunk of ", counted(bytes.size(), "byte"),
                                  " into the ", out.size(), " that it promises"));
}
#endif

#ifdef TAILRACE_HAVE_ZSTD
Result<std::size_t> Compressor::Tables::by_zstd(const Compression& how, std::span<const std::byte> bytes,
                                                std::span<std::byte> out) {
  if (!zstd) zstd.reset(ZSTD_createCCtx());
  if (!zstd) return Status(Code::memory, "no memory for the tables of zstd");
  const std::size_t size =
      ZSTD_compressCCtx(zstd.get(), out.data(), out.size(), bytes.data(), bytes.size(), how.level);
  if (ZSTD_isError(size) == 0) return size;
  const std::string chunk = counted(bytes.size(), "byte");
  if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation)
    return Status(Code::memory, cat("no memory for zstd to compress a chunk of ", chunk,
                                    "; a lower level takes less, and so do smaller chunks (chunks=)"));
  return Status(Code::format, cat("zstd did not compress a chunk of ", chunk, ": ",
                                  std::string_view(ZSTD_getErrorName(size))));
}
#endif

Result<std::size_t> Compressor::Tables::compress([[maybe_unused]] const Compression& how,
                                                 [[maybe_unused]] std::span<const std::byte> bytes,
                                                 [[maybe_unused]] Bytes element_size,
                                                 [[maybe_unused]] std::span<std::byte> out) {
  switch (how.method) {
    case Method::none:
      break;
    case Method::deflate:
    case Method::gzip:
#ifdef TAILRACE_HAVE_DEFLATE
      return by_deflate(how, bytes, out);
#else
      break;
#endif
    case Method::zstd:
#ifdef TAILRACE_HAVE_ZSTD
      return by_zstd(how, bytes, out);
#else
      break;
#endif
    case Method::blosc_lz4:
    case Method::blosc_zstd:
#ifdef TAILRACE_HAVE_BLOSC
      return by_blosc(how, bytes, element_size, out);
#else
      break;
#endif
  }
  return Status(Code::unsupported, "this Tailrace was built without this compression");
}

Status check(const Compression& how, [[maybe_unused]] Bytes raw) {
  switch (how.method) {
    case Method::none:
      return {};
    case Method::deflate:
    case Method::gzip:
#ifdef TAILRACE_HAVE_DEFLATE
      return {};
#else
      return lacking("libdeflate", "libdeflate-dev", "compress=none");
#endif
    case Method::zstd:
#ifdef TAILRACE_HAVE_ZSTD
      return {};
#else
      return lacking("zstd", "libzstd-dev", "compress=gzip");
#endif
    case Method::blosc_lz4:
    case Method::blosc_zstd:
#ifdef TAILRACE_HAVE_BLOSC
      return check_blosc(how.method, raw);
#else
      return lacking("c-blosc", "libblosc-dev", "compress=gzip");
#endif
  }
  return {};
}

Bytes bound(const Compression& how, Bytes raw) {
  switch (how.method) {
    case Method::deflate:
#ifdef TAILRACE_HAVE_DEFLATE
      return static_cast<Bytes>(libdeflate_zlib_compress_bound(nullptr, static_cast<std::size_t>(raw)));
#else
      break;
#endif
    case Method::gzip:
#ifdef TAILRACE_HAVE_DEFLATE
      return static_cast<Bytes>(libdeflate_gzip_compress_bound(nullptr, static_cast<std::size_t>(raw)));
#else
      break;
#endif
    case Method::zstd:
#ifdef TAILRACE_HAVE_ZSTD
      return static_cast<Bytes>(ZSTD_compressBound(static_cast<std::size_t>(raw)));
#else
      break;
#endif
    case Method::blosc_lz4:
    case Method::blosc_zstd:
#ifdef TAILRACE_HAVE_BLOSC
      return bound_of_blosc(raw);
#else
      break;
#endif
    case Method::none:
      break;
  }
  return raw;
}

Compressor::Compressor() = default;
Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;

Status Compressor::compress(const Compression& how, std::span<const std::byte> bytes, Bytes element_size,
                            ByteVector& out) {
  if (how.method == Method::none) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return {};
  }
  if (!tables_) tables_ = std::make_unique<Tables>();
  const std::size_t before = out.size();
  out.resize(before + static_cast<std::size_t>(bound(how, std::ssize(bytes))));
  const Result<std::size_t> size =
      tables_->compress(how, bytes, element_size, std::span(out).subspan(before));
  out.resize(before + (size.is_ok() ? *size : 0));
  return size.status();
}

}  // namespace tailrace::compression
