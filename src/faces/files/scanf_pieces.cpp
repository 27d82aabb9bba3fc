// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/scanf_pieces.hpp"

#include <cerrno>
#include <cwchar>

namespace tailrace::files {

namespace {

using Stores = ScanPiece::Stores;

/// Returns the bytes that a piece has stored at `place`, having read `count` characters.
std::size_t stored_bytes(const ScanPiece& piece, const void* place, int count) {
  const bool wide = piece.size != sizeof(char);
  if (piece.stores == Stores::characters)
    return wide ? piece.count * piece.size : static_cast<std::size_t>(count);
  if (piece.stores != Stores::string) return piece.size;
  return wide ? (std::wcslen(static_cast<const wchar_t*>(place)) + 1) * piece.size
              : static_cast<std::size_t>(count) + 1;
}

/// Stores the lower bytes of `number`, as an assignment to the shorter type would.
void store_number(std::int64_t number, std::size_t size, void* place) {
  const auto narrow = [&]<typename T>(T) {
    const T value = static_cast<T>(number);
    std::memcpy(place, &value, sizeof value);
  };
  if (size == 1) return narrow(std::int8_t{});
  if (size == 2) return narrow(std::int16_t{});
  if (size == 4) return narrow(std::int32_t{});
  narrow(std::int64_t{});
}

}  // namespace

Outcome scan(std::FILE* stream, std::span<const ScanPiece> pieces, std::va_list arguments) {
  Outcome outcome;
  Packer stored;
  std::int64_t position = 0;
  for (const ScanPiece& piece : pieces) {
    void* const place = piece.stores == Stores::nothing ? nullptr : va_arg(arguments, void*);
    if (piece.stores != Stores::nothing && place == nullptr) return {EOF, EFAULT, {}};
    const std::string format = piece.text + "%n";
    int count = -1;  // stays -1 unless the piece was completed
    errno = 0;
    const bool assigns = place != nullptr && piece.stores != Stores::position;
    const int code = assigns ? std::fscanf(stream, format.c_str(), place, &count)
                             : std::fscanf(stream, format.c_str(), &count);
    if (code > 0) ++outcome.value;
    if (count < 0) {
      if (code == EOF && outcome.value == 0) outcome.value = EOF;
      // A read that a signal interrupted was repeated, so its errno means nothing.
      if (code == EOF && (std::ferror(stream) != 0 || errno != EINTR)) outcome.error = errno;
      break;
    }
    position += count;
    if (piece.stores == Stores::position) store_number(position, piece.size, place);
    if (place != nullptr) {
      const auto* bytes = static_cast<const std::byte*>(place);
      stored.put_bytes({bytes, stored_bytes(piece, place, count)});
    }
  }
  outcome.data = stored.take();
  return outcome;
}

bool store_scanned(const ByteVector& data, std::va_list arguments) {
  Unpacker in(data);
  while (!in.rest().empty()) {
    const std::span<const std::byte> bytes = in.get_bytes();
    void* const place = va_arg(arguments, void*);
    if (!in.ok() || place == nullptr) return false;
    std::memcpy(place, bytes.data(), bytes.size());
  }
  return true;
}

}  // namespace tailrace::files
