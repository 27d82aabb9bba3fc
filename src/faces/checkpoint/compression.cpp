// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/compression.hpp"

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

#ifdef TAILRACE_HAVE_ZSTD
#include <zstd.h>
#else
#define TAILRACE_HAVE_ZSTD 0
#endif
#ifdef TAILRACE_HAVE_LZ4
#include <lz4.h>
#else
#define TAILRACE_HAVE_LZ4 0
#endif

namespace tailrace::checkpoint {

namespace {

constexpr bool have_zstd = TAILRACE_HAVE_ZSTD != 0;
constexpr bool have_lz4 = TAILRACE_HAVE_LZ4 != 0;

void group(std::span<const std::byte> raw, std::size_t element, std::byte* out) {
  const std::size_t count = raw.size() / element;
  for (std::size_t b = 0; b < element; ++b) {
    for (std::size_t i = 0; i < count; ++i) *out++ = raw[i * element + b];
  }
}

void ungroup(const std::byte* in, std::size_t element, std::span<std::byte> raw) {
  const std::size_t count = raw.size() / element;
  for (std::size_t b = 0; b < element; ++b) {
    for (std::size_t i = 0; i < count; ++i) raw[i * element + b] = *in++;
  }
}

Status unsupported(std::string_view name) {
  return {Code::unsupported, cat("this build of the library has no ", name)};
}

}  // namespace

#if TAILRACE_HAVE_ZSTD
struct Compressor::Zstd {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  Zstd() = default;
  ~Zstd() { ZSTD_freeCCtx(context); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
};
#else
struct Compressor::Zstd {};
#endif

Result<Compression> parse_compression(std::string_view text) {
  const std::size_t colon = text.find(':');
  const Result<std::size_t> choice = parse_choice(text.substr(0, colon), {"none", "lz4", "zstd"});
  TR_TRY(choice.status());
  Compression compression;
  compression.coding = static_cast<Coding>(*choice);
  if (compression.coding == Coding::zstd && !have_zstd) return unsupported("zstd: compress=none");
  if (compression.coding == Coding::lz4 && !have_lz4) return unsupported("LZ4: compress=none");
  if (colon == std::string_view::npos) return compression;
  if (compression.coding != Coding::zstd) return Status(Code::settings, "only zstd takes a level");
  const Result<std::int64_t> level = parse_integer(text.substr(colon + 1), -7, 19);
  TR_TRY(level.status());
  compression.level = static_cast<int>(*level);
  return compression;
}

Compressor::Compressor(Compression compression) : compression_(compression) {
  if (compression_.coding == Coding::zstd) zstd_ = std::make_unique<Zstd>();
}

Compressor::~Compressor() = default;

std::span<const std::byte> Compressor::compress(std::span<const std::byte> raw, Bytes element) {
  if (compression_.coding == Coding::raw) return {};
  grouped_.resize(raw.size());
  out_.resize(raw.size() - 1);
  group(raw, static_cast<std::size_t>(element), grouped_.data());
  std::size_t size = 0;
#if TAILRACE_HAVE_ZSTD
  if (compression_.coding == Coding::zstd) {
    size = ZSTD_compressCCtx(zstd_->context, out_.data(), out_.size(), grouped_.data(), grouped_.size(),
                             compression_.level);
    if (ZSTD_isError(size) != 0) size = 0;  // no room: it would be no smaller
  }
#endif
#if TAILRACE_HAVE_LZ4
  if (compression_.coding == Coding::lz4) {
    size = static_cast<std::size_t>(LZ4_compress_default(
        reinterpret_cast<const char*>(grouped_.data()), reinterpret_cast<char*>(out_.data()),
        static_cast<int>(grouped_.size()), static_cast<int>(out_.size())));
  }
#endif
  return std::span<const std::byte>(out_).first(size);
}

Status decompress(Coding coding, std::span<const std::byte> stored, Bytes element, std::span<std::byte> raw,
                  ByteVector& scratch) {
  scratch.resize(raw.size());
  bool good = false;
#if TAILRACE_HAVE_ZSTD
  if (coding == Coding::zstd)
    good = ZSTD_decompress(scratch.data(), scratch.size(), stored.data(), stored.size()) == raw.size();
#endif
#if TAILRACE_HAVE_LZ4
  if (coding == Coding::lz4) {
    good = LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()),
                               reinterpret_cast<char*>(scratch.data()), static_cast<int>(stored.size()),
                               static_cast<int>(scratch.size())) == static_cast<int>(raw.size());
  }
#endif
  if (coding == Coding::zstd && !have_zstd) return unsupported("zstd, with which this block is compressed");
  if (coding == Coding::lz4 && !have_lz4) return unsupported("LZ4, with which this block is compressed");
  if (!good) return {Code::corrupt, "a compressed block does not decompress"};
  ungroup(scratch.data(), static_cast<std::size_t>(element), raw);
  return {};
}

}  // namespace tailrace::checkpoint
