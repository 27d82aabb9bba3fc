// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/compression/blosc_chunk.hpp"

#include <blosc.h>

#include <array>
#include <mutex>
#include <shared_mutex>

#include "ground/base/text.hpp"

namespace tailrace::compression {

namespace {

const char* name_of(Method method) { return method == Method::blosc_lz4 ? "lz4" : "zstd"; }

/// One thread of its own: the record's thread.
int call(const Compression& how, std::span<const std::byte> bytes, Bytes element_size,
         std::span<std::byte> out) {
  return blosc_compress_ctx(how.level, element_size > 1 ? BLOSC_SHUFFLE : BLOSC_NOSHUFFLE,
                            static_cast<std::size_t>(element_size), bytes.size(), bytes.data(), out.data(),
                            out.size(), name_of(how.method), static_cast<std::size_t>(blosc_block(how)), 1);
}

/// Returns true if a chunk's blocks are cut into the first bytes of all elements, all second ones, and so on
/// (bit 4 of the flags in README_CHUNK_FORMAT of c-blosc).
bool is_split(std::span<const std::byte> chunk) { return (chunk[2] & std::byte{0x10}) == std::byte{0}; }

/// Returns true if a chunk's blocks are cut as in a process that has not called blosc_set_splitmode
/// (split_block() of c-blosc under BLOSC_FORWARD_COMPAT_SPLIT; elements have no more than 8 bytes).
bool is_split_as_usual(Method method, Bytes element_size, std::span<const std::byte> chunk) {
  constexpr std::size_t fewest_elements = 128;  // MIN_BUFFERSIZE
  std::size_t raw = 0, compressed = 0, block = 0;
  blosc_cbuffer_sizes(chunk.data(), &raw, &compressed, &block);
  const bool usual =
      method == Method::blosc_lz4 && block / static_cast<std::size_t>(element_size) >= fewest_elements;
  return is_split(chunk) == usual;
}

/// Returns true if so many elements of 8 bytes are split.
bool splits(const char* compressor, std::size_t elements) {
  constexpr std::size_t most = 256;
  const std::array<std::byte, most * 8> zeros{};
  std::array<std::byte, most * 8 + BLOSC_MAX_OVERHEAD> chunk{};
  const int size = blosc_compress_ctx(1, BLOSC_NOSHUFFLE, 8, elements * 8, zeros.data(), chunk.data(),
                                      chunk.size(), compressor, 0, 1);
  return size > 0 && is_split(chunk);
}

/// Returns the mode that the program has chosen. c-blosc does not tell it, but each mode cuts one of these
/// chunks in another way. blosclz is in every build of c-blosc.
int mode_of_program() {
  if (splits(BLOSC_BLOSCLZ_COMPNAME, 2)) return BLOSC_ALWAYS_SPLIT;
  if (!splits(BLOSC_BLOSCLZ_COMPNAME, 256)) return BLOSC_NEVER_SPLIT;
  return splits(BLOSC_LZ4_COMPNAME, 256) ? BLOSC_FORWARD_COMPAT_SPLIT : BLOSC_AUTO_SPLIT;
}

}  // namespace

Status check_blosc(Method method, Bytes raw) {
  if (blosc_compname_to_compcode(name_of(method)) < 0) {
    const bool is_lz4 = method == Method::blosc_lz4;
    return {Code::unsupported, cat("the c-blosc of this program was built without ", name_of(method),
                                   " (it has: ", blosc_list_compressors(),
                                   "); say compress=", is_lz4 ? "blosc_zstd" : "blosc_lz4",
                                   " or compress=gzip, or link one that has it")};
  }
  if (raw <= BLOSC_MAX_BUFFERSIZE) return {};
  return {Code::argument, "blosc takes chunks of less than 2 GiB: cut the levels with chunks="};
}

Bytes bound_of_blosc(Bytes raw) { return raw + BLOSC_MAX_OVERHEAD; }

/// blosc_set_splitmode has no context: it is one mode for the process, which blosc_compress also takes from
/// the environment. If a chunk shows another mode than the usual one, it is compressed once more under that,
/// and the program has its own back. Only while it sets the mode in another thread may bytes depend on it.
Result<std::size_t> by_blosc(const Compression& how, std::span<const std::byte> bytes, Bytes element_size,
                             std::span<std::byte> out) {
  static std::shared_mutex mode;  // exclusive: it is not the program's
  int size = 0;
  {
    const std::shared_lock guard(mode);
    size = call(how, bytes, element_size, out);
  }
  if (size > 0 && !is_split_as_usual(how.method, element_size, out)) {
    const std::lock_guard guard(mode);
    const int before = mode_of_program();
    blosc_set_splitmode(BLOSC_FORWARD_COMPAT_SPLIT);
    size = call(how, bytes, element_size, out);
    blosc_set_splitmode(before);
  }
  if (size > 0) return static_cast<std::size_t>(size);
  return Status(Code::format, cat("c-blosc did not compress a chunk of ", counted(bytes.size(), "byte"),
                                  " by ", name_of(how.method), " (it returned ", size, ")"));
}

}  // namespace tailrace::compression
