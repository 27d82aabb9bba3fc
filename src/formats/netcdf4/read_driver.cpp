// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/read_driver.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

#include "formats/netcdf4/driver.hpp"
#include "ground/base/text.hpp"

namespace tailrace::netcdf4 {

namespace {

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t width) {
  std::uint64_t number = 0;
  for (std::size_t i = width; i-- > 0;)
    number =
        number << 8 | std::to_integer<std::uint64_t>(at + i < bytes.size() ? bytes[at + i] : std::byte{});
  return number;
}

constexpr std::uint64_t aligned(std::uint64_t length) { return (length + 7) / 8 * 8; }

/// Returns true if the lengths in a global heap are sound. A global heap (HDF5 File Format Specification 3.0,
/// III.E) consists of objects behind one another. The library goes from object to object by their lengths,
/// and checks none: a length of 0 would make it go on for ever, and a large one would lead it out of the
/// heap.
bool is_sound(std::span<const std::byte> heap, std::size_t width) {
  const std::uint64_t head = aligned(8 + width);
  for (std::uint64_t at = head; at + head <= heap.size();) {
    const std::uint64_t number = number_at(heap, at, 2), length = number_at(heap, at + 8, width);
    if (length > heap.size() || (number == 0 && length == 0)) return false;
    at += number == 0 ? length : head + aligned(length);
    if (at > heap.size()) return false;
  }
  return true;
}

}  // namespace

/// The functions of the driver, which the library calls. No exception leaves them.
struct ReadDriver : DriverOf<ReadFile> {
  static haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return opened(file).end; }
  static herr_t set_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    opened(file).end = end;
    return 0;
  }
  static haddr_t get_size(const H5FD_t* file, H5FD_mem_t) { return static_cast<haddr_t>(of(file).size_); }
  static herr_t read(H5FD_t* from, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* to) {
    ReadFile& file = of(from);
    try {
      const Status status = file.read_at(static_cast<Bytes>(offset), {static_cast<std::byte*>(to), size});
      if (status.is_ok()) return 0;
      if (file.error_.is_ok()) file.error_ = status;
    } catch (const std::exception&) {  // out of memory
    }
    return -1;
  }
  static herr_t refuse(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

  static H5FD_class_t description() {
    H5FD_class_t driver = DriverOf::description("tailrace_read", 510);
    driver.get_eoa = get_end;
    driver.set_eoa = set_end;
    driver.get_eof = get_size;
    driver.read = read;
    driver.write = refuse;
    return driver;
  }
};

ReadFile::~ReadFile() { close(); }

void ReadFile::close() {
  if (driver_ >= 0) H5FDunregister(std::exchange(driver_, -1));
}

Status ReadFile::read_at(Bytes offset, std::span<std::byte> to) {
  const Result<Bytes> got = read_(to, offset);
  TR_TRY(got.status());
  if (*got == std::ssize(to)) return check_heaps(offset, to);
  return {Code::corrupt,
          cat("expected ", counted(to.size(), "byte"), " of metadata at byte ", offset, ", got ", *got)};
}

/// Checks each global heap that begins in `bytes`, which the library has read at `offset`. The library may
/// read a heap in parts, and a heap inside of another one from memory; this function reads each heap whole.
/// In a file that a library has written, heaps lie side by side. So the function returns Code::corrupt once
/// the heaps take much more than the file's size; the limit leaves room for other bytes that look like a
/// heap.
Status ReadFile::check_heaps(Bytes offset, std::span<const std::byte> bytes) {
  constexpr std::string_view mark("GCOL\1\0\0\0", 8);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t found = text.find(mark); found != text.npos; found = text.find(mark, found + 1)) {
    const Bytes at = offset + static_cast<Bytes>(found);
    if (checked_.contains(at)) continue;
    std::array<std::byte, 16> superblock{}, head{};
    TR_TRY(read_(superblock, 0).status());
    TR_TRY(read_(head, at).status());
    const std::size_t width =
        std::to_integer<std::size_t>(superblock[superblock[8] < std::byte{2} ? 14 : 10]);
    if (width > 8) continue;  // the library itself refuses such files
    const std::uint64_t length = number_at(head, 8, width);
    if (length > static_cast<std::uint64_t>(size_ - at)) continue;  // likewise
    constexpr std::uint64_t smallest = 4096, slack = 1 << 20;       // the library makes no smaller heaps
    heap_bytes_ += std::max(length, smallest);
    if (heap_bytes_ > 4 * static_cast<std::uint64_t>(size_) + slack)
      return {Code::corrupt, cat("the global heap at byte ", at,
                                 ": expected heaps that lie side by side, got many inside each other")};
    ByteVector heap(static_cast<std::size_t>(length));
    TR_TRY(read_(heap, at).status());
    if (!is_sound(heap, width))
      return {Code::corrupt, cat("the global heap at byte ", at,
                                 ": expected objects that fill it, got lengths that contradict its own")};
    checked_.insert(at);
  }
  return {};
}

hid_t ReadFile::access() {
  static const H5FD_class_t driver = ReadDriver::description();
  return ReadDriver::access(this, driver, driver_);
}

}  // namespace tailrace::netcdf4
