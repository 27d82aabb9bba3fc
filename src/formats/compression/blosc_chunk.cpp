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

/// Compresses in the calling thread; c-blosc starts no others.
int call(const Compression& how, std::span<const std::byte> bytes, Bytes element_size,
         std::span<std::byte> out) {
  return blosc_compress_ctx(how.level, element_size > 1 ? BLOSC_SHUFFLE : BLOSC_NOSHUFFLE,
                            static_cast<std::size_t>(element_size), bytes.size(), bytes.data(), out.data(),
                            out.size(), name_of(how.method), static_cast<std::size_t>(blosc_block(how)), 1);
}

/// Returns true if the blocks of a chunk are split: the first bytes of all elements are compressed by
/// themselves, then all second bytes, and so on (bit 4 of the flags in README_CHUNK_FORMAT of c-blosc).
bool is_split(std::span<const std::byte> chunk) { return (chunk[2] & std::byte{0x10}) == std::byte{0}; }

/// Returns true if the blocks of a chunk are split, or not, as in a process that has not called
/// blosc_set_splitmode (split_block() of c-blosc under BLOSC_FORWARD_COMPAT_SPLIT; elements have at most 8
/// bytes).
bool is_split_as_usual(Method method, Bytes element_size, std::span<const std::byte> chunk) {
  constexpr std::size_t fewest_elements = 128;  // MIN_BUFFERSIZE
  std::size_t raw = 0, compressed = 0, block = 0;
  blosc_cbuffer_sizes(chunk.data(), &raw, &compressed, &block);
  const bool usual =
      method == Method::blosc_lz4 && block / static_cast<std::size_t>(element_size) >= fewest_elements;
  return is_split(chunk) == usual;
}

/// Returns true if c-blosc splits a chunk of so many elements of 8 bytes.
bool splits(const char* compressor, std::size_t elements) {
  constexpr std::size_t most = 256;
  const std::array<std::byte, most * 8> zeros{};
  std::array<std::byte, most * 8 + BLOSC_MAX_OVERHEAD> chunk{};
  const int size = blosc_compress_ctx(1, BLOSC_NOSHUFFLE, 8, elements * 8, zeros.data(), chunk.data(),
                                      chunk.size(), compressor, 0, 1);
  return size > 0 && is_split(chunk);
}

/// Returns the mode that the program has set. c-blosc has no call that returns it, but each mode splits a
/// different set of these three chunks. blosclz is in every build of c-blosc.
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

/// The split mode belongs to the whole process; blosc_compress also takes it from the environment. If the
/// chunk shows that the mode is not the usual one, this function compresses once more in the usual mode, and
/// then sets the program's mode again. The chunk may depend on the program's mode only if another thread of
/// the program sets it meanwhile.
Result<std::size_t> by_blosc(const Compression& how, std::span<const std::byte> bytes, Bytes element_size,
                             std::span<std::byte> out) {
  static std::shared_mutex mode;  // held exclusively while the mode is not the program's
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
