// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "compression/decompressor.hpp"

#include "base/text.hpp"

#ifdef TAILRACE_HAVE_DEFLATE
#include <libdeflate.h>
#endif
#ifdef TAILRACE_HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef TAILRACE_HAVE_BLOSC
#include <blosc.h>
#endif

namespace tailrace::compression {

/// The working memory of the libraries, used again for each chunk.
struct DecompressionTables {
#ifdef TAILRACE_HAVE_DEFLATE
  struct FreeInflate {
    void operator()(libdeflate_decompressor* each) const { libdeflate_free_decompressor(each); }
  };
  std::unique_ptr<libdeflate_decompressor, FreeInflate> inflate{};
#endif
#ifdef TAILRACE_HAVE_ZSTD
  struct FreeUnzstd {
    void operator()(ZSTD_DCtx* each) const { ZSTD_freeDCtx(each); }
  };
  std::unique_ptr<ZSTD_DCtx, FreeUnzstd> zstd{};
#endif
};

namespace {

std::string_view name_of(Packed how) {
  switch (how) {
    case Packed::zlib:
      return "zlib";
    case Packed::gzip:
      return "gzip";
    case Packed::zstd:
      return "zstd";
    case Packed::blosc:
      return "blosc";
  }
  return "unknown";
}

Status not_packed(Packed how, std::span<const std::byte> bytes, std::span<std::byte> out) {
  return {Code::corrupt, cat("expected ", counted(bytes.size(), "byte"), " of ", name_of(how),
                             " that hold at most ", out.size(), ", got other bytes")};
}

#ifdef TAILRACE_HAVE_DEFLATE
Result<Bytes> inflate(DecompressionTables& tables, Packed how, std::span<const std::byte> bytes,
                      std::span<std::byte> out) {
  if (!tables.inflate) tables.inflate.reset(libdeflate_alloc_decompressor());
  if (!tables.inflate) return Status(Code::memory, "no memory for the tables of deflate");
  const auto call = how == Packed::gzip ? libdeflate_gzip_decompress : libdeflate_zlib_decompress;
  std::size_t size = 0;
  if (call(tables.inflate.get(), bytes.data(), bytes.size(), out.data(), out.size(), &size) !=
      LIBDEFLATE_SUCCESS)
    return not_packed(how, bytes, out);
  return static_cast<Bytes>(size);
}
#endif

#ifdef TAILRACE_HAVE_ZSTD
Result<Bytes> unzstd(DecompressionTables& tables, std::span<const std::byte> bytes,
                     std::span<std::byte> out) {
  if (!tables.zstd) tables.zstd.reset(ZSTD_createDCtx());
  if (!tables.zstd) return Status(Code::memory, "no memory for the tables of zstd");
  const std::size_t size =
      ZSTD_decompressDCtx(tables.zstd.get(), out.data(), out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(size) != 0) return not_packed(Packed::zstd, bytes, out);
  return static_cast<Bytes>(size);
}
#endif

#ifdef TAILRACE_HAVE_BLOSC
Result<Bytes> unblosc(std::span<const std::byte> bytes, std::span<std::byte> out) {
  std::size_t size = 0;
  if (bytes.size() < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(bytes.data(), bytes.size(), &size) != 0 || size > out.size())
    return not_packed(Packed::blosc, bytes, out);
  // The variant without state of its own, as the compressor: threads call it side by side.
  const int got = blosc_decompress_ctx(bytes.data(), out.data(), out.size(), 1);
  if (got < 0 || static_cast<std::size_t>(got) != size) return not_packed(Packed::blosc, bytes, out);
  return static_cast<Bytes>(got);
}
#endif

}  // namespace

Status check_reads(Packed how) {
#ifndef TAILRACE_HAVE_DEFLATE
  if (how == Packed::zlib || how == Packed::gzip)
    return {Code::unsupported, "this build reads no deflate: install libdeflate-dev and configure again"};
#endif
#ifndef TAILRACE_HAVE_ZSTD
  if (how == Packed::zstd)
    return {Code::unsupported, "this build reads no zstd: install libzstd-dev and configure again"};
#endif
#ifndef TAILRACE_HAVE_BLOSC
  if (how == Packed::blosc)
    return {Code::unsupported, "this build reads no blosc: install libblosc-dev and configure again"};
#endif
  (void)how;
  return {};
}

Decompressor::Decompressor() : tables_(std::make_unique<DecompressionTables>()) {}
Decompressor::~Decompressor() = default;
Decompressor::Decompressor(Decompressor&&) noexcept = default;

Result<Bytes> Decompressor::decompress(Packed how, std::span<const std::byte> bytes,
                                       std::span<std::byte> out) {
  TR_TRY(check_reads(how));
  switch (how) {
#ifdef TAILRACE_HAVE_DEFLATE
    case Packed::zlib:
    case Packed::gzip:
      return inflate(*tables_, how, bytes, out);
#endif
#ifdef TAILRACE_HAVE_ZSTD
    case Packed::zstd:
      return unzstd(*tables_, bytes, out);
#endif
#ifdef TAILRACE_HAVE_BLOSC
    case Packed::blosc:
      return unblosc(bytes, out);
#endif
    default:
      break;
  }
  return not_packed(how, bytes, out);
}

}  // namespace tailrace::compression
