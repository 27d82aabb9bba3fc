// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/superblock.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

namespace tailrace::netcdf4 {

namespace {

using std::rotl;

// A superblock of version 2 ("HDF5 File Format Specification", II.A): signature, version, sizes of offsets
// and lengths, flags, and then four addresses and the checksum.
constexpr Bytes superblock_size = 48;
constexpr Bytes smallest_user_block = 512;
constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
constexpr std::size_t version_at = 8, base_at = 12, end_at = 28, root_at = 36, sum_at = 44;
constexpr std::string_view group_mark = "OHDR";  // begins an object header of version 2

template <typename T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;)
    value = static_cast<T>(value << 8 | static_cast<T>(bytes[at + i]));
  return value;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::ranges::equal(bytes.first(text.size()), std::as_bytes(std::span(text)));
}

}  // namespace

std::uint32_t metadata_checksum(std::span<const std::byte> bytes) {
  std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size()), b = a, c = a;
  if (bytes.empty()) return c;
  const auto add = [&](std::span<const std::byte> part) {
    std::array<std::byte, 12> whole{};
    std::ranges::copy(part, whole.begin());
    a += number_at<std::uint32_t>(whole, 0);
    b += number_at<std::uint32_t>(whole, 4);
    c += number_at<std::uint32_t>(whole, 8);
  };
  for (; bytes.size() > 12; bytes = bytes.subspan(12)) {
    add(bytes.first(12));
    a = (a - c) ^ rotl(c, 4), c += b;
    b = (b - a) ^ rotl(a, 6), a += c;
    c = (c - b) ^ rotl(b, 8), b += a;
    a = (a - c) ^ rotl(c, 16), c += b;
    b = (b - a) ^ rotl(a, 19), a += c;
    c = (c - b) ^ rotl(b, 4), b += a;
  }
  add(bytes);
  c = (c ^ b) - rotl(b, 14);
  a = (a ^ c) - rotl(c, 11);
  b = (b ^ a) - rotl(a, 25);
  c = (c ^ b) - rotl(b, 16);
  a = (a ^ c) - rotl(c, 4);
  b = (b ^ a) - rotl(a, 14);
  return (c ^ b) - rotl(b, 24);
}

Result<bool> is_finished(const codec::ReadBytes& read, Bytes data_end, Bytes size) {
  std::array<std::byte, superblock_size> block{};
  const Result<Bytes> got = read(block, 0);
  TR_TRY(got.status());
  const std::span<const std::byte> bytes(block);
  const std::array<std::byte, 3> kind{std::byte{2}, std::byte{8}, std::byte{8}};
  if (*got < superblock_size || !begins_with(bytes, signature) ||
      !std::ranges::equal(bytes.subspan(version_at, kind.size()), kind) ||
      number_at<std::uint32_t>(bytes, sum_at) != metadata_checksum(bytes.first(sum_at)))
    return false;
  const auto root = static_cast<Bytes>(number_at<std::uint64_t>(bytes, root_at));
  if (number_at<std::uint64_t>(bytes, base_at) != 0 ||
      static_cast<Bytes>(number_at<std::uint64_t>(bytes, end_at)) != size || root < data_end || root >= size)
    return false;
  std::array<std::byte, group_mark.size()> group{};
  const Result<Bytes> found = read(group, root);
  TR_TRY(found.status());
  return begins_with(std::span(group).first(static_cast<std::size_t>(*found)), group_mark);
}

Result<std::optional<Bytes>> find_superblock(const codec::ReadBytes& read, Bytes size) {
  std::array<std::byte, signature.size()> begin{};
  for (Bytes at = 0; at <= size - std::ssize(begin); at = std::max(2 * at, smallest_user_block)) {
    const Result<Bytes> got = read(begin, at);
    TR_TRY(got.status());
    if (begins_with(std::span(begin).first(static_cast<std::size_t>(*got)), signature))
      return std::optional(at);
  }
  return std::optional<Bytes>();
}

}  // namespace tailrace::netcdf4
