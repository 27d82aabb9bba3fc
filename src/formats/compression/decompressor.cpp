// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/compression/decompressor.hpp"

#include <algorithm>
#include <limits>

#include "ground/base/text.hpp"

#ifdef TAILRACE_HAVE_DEFLATE
#include <libdeflate.h>
#endif
#ifdef TAILRACE_HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef TAILRACE_HAVE_BLOSC
#include <blosc.h>
#endif
#ifdef TAILRACE_HAVE_LZ4
#include <lz4.h>
#endif
#ifdef TAILRACE_HAVE_BZIP2
#include <bzlib.h>
#endif

namespace tailrace::compression {

/// The working memory of the libraries. A decompressor keeps it for all its chunks.
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
    case Packed::lz4:
      return "lz4";
    case Packed::bzip2:
      return "bz2";
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
  // This variant of the call has no state in the process, so that threads can call it at the same time.
  const int got = blosc_decompress_ctx(bytes.data(), out.data(), out.size(), 1);
  if (got < 0 || static_cast<std::size_t>(got) != size) return not_packed(Packed::blosc, bytes, out);
  return static_cast<Bytes>(got);
}
#endif

#ifdef TAILRACE_HAVE_LZ4
Result<Bytes> unlz4(std::span<const std::byte> bytes, std::span<std::byte> out) {
  constexpr std::size_t before = 4;
  if (bytes.size() < before || bytes.size() - before > LZ4_MAX_INPUT_SIZE)
    return not_packed(Packed::lz4, bytes, out);
  std::uint32_t told = 0;
  for (std::size_t i = 0; i < before; ++i) told |= static_cast<std::uint32_t>(bytes[i]) << (8 * i);
  if (told > out.size() || told > LZ4_MAX_INPUT_SIZE) return not_packed(Packed::lz4, bytes, out);
  const std::span<const std::byte> block = bytes.subspan(before);
  const int got =
      LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()), reinterpret_cast<char*>(out.data()),
                          static_cast<int>(block.size()), static_cast<int>(told));
  if (got < 0 || static_cast<std::uint32_t>(got) != told) return not_packed(Packed::lz4, bytes, out);
  return static_cast<Bytes>(got);
}
#endif

#ifdef TAILRACE_HAVE_BZIP2
Result<Bytes> unbzip2(std::span<const std::byte> bytes, std::span<std::byte> out) {
  constexpr std::size_t most = std::numeric_limits<unsigned>::max();
  if (bytes.size() > most) return not_packed(Packed::bzip2, bytes, out);
  ByteVector own(bytes.begin(), bytes.end());  // the library's call takes no constant bytes
  auto size = static_cast<unsigned>(std::min(out.size(), most));
  const int made = BZ2_bzBuffToBuffDecompress(reinterpret_cast<char*>(out.data()), &size,
                                              reinterpret_cast<char*>(own.data()),
                                              static_cast<unsigned>(own.size()), 0, 0);
  if (made == BZ_MEM_ERROR) return Status(Code::memory, "no memory for the tables of bz2");
  if (made != BZ_OK) return not_packed(Packed::bzip2, bytes, out);
  return static_cast<Bytes>(size);
}
#endif

}  // namespace

/// From 1 byte, deflate makes at most 1032 and LZ4 at most 255. From a block of 4 bytes, zstd (also inside of
/// blosc) makes at most 128 KiB. From a block of 32 bytes, bzip2 makes at most 45,899,235.
Bytes most_unpacked(Packed how, Bytes packed) {
  switch (how) {
    case Packed::zlib:
    case Packed::gzip:
      return (packed + 64) * 1100;
    case Packed::lz4:
      return (packed + 64) * 255;
    case Packed::bzip2:
      return (packed + 64) * 1'500'000;
    default:
      return (packed + 64) * 33'000;
  }
}

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
#ifndef TAILRACE_HAVE_LZ4
  if (how == Packed::lz4)
    return {Code::unsupported, "this build reads no lz4: install liblz4-dev and configure again"};
#endif
#ifndef TAILRACE_HAVE_BZIP2
  if (how == Packed::bzip2)
    return {Code::unsupported, "this build reads no bz2: install libbz2-dev and configure again"};
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
#ifdef TAILRACE_HAVE_LZ4
    case Packed::lz4:
      return unlz4(bytes, out);
#endif
#ifdef TAILRACE_HAVE_BZIP2
    case Packed::bzip2:
      return unbzip2(bytes, out);
#endif
    default:
      break;
  }
  return not_packed(how, bytes, out);
}

}  // namespace tailrace::compression
