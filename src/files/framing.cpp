// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/framing.hpp"

#include <algorithm>

namespace tailrace::files {

void Framing::insert(Bytes before, ByteVector bytes) {
  if (bytes.empty()) return;
  inserted_ += static_cast<Bytes>(bytes.size());
  inserts_.push_back({before, std::move(bytes)});
}

template <typename Inner, typename Outer>
void Framing::for_each(Bytes begin, Bytes end, const Inner& inner, const Outer& outer) const {
  Bytes ahead = 0;
  Bytes at = begin;
  for (const Insert& insert : inserts_) {
    const bool is_here =
        insert.before >= begin && (insert.before < end || (insert.before == end && end == array_bytes_));
    if (is_here) {
      if (insert.before > at && !inner(at, insert.before, ahead)) return;
      at = insert.before;
      if (!outer(insert.bytes, at + ahead)) return;
    }
    if (!is_here && insert.before >= end) break;
    ahead += static_cast<Bytes>(insert.bytes.size());
  }
  if (at < end) inner(at, end, ahead);
}

Status Framing::write(std::span<const std::byte> bytes, Bytes at, const exchange::WriteBytes& writer,
                      Bytes position) const {
  ByteVector turned;
  if (unit_ > 1) {
    turned.assign(bytes.begin(), bytes.end());
    swap_units(turned, unit_);
    bytes = turned;
  }
  Status status;
  for_each(
      at, at + static_cast<Bytes>(bytes.size()),
      [&](Bytes begin, Bytes end, Bytes ahead) {
        status =
            writer(bytes.subspan(static_cast<std::size_t>(begin - at), static_cast<std::size_t>(end - begin)),
                   position + begin + ahead);
        return status.is_ok();
      },
      [&](const ByteVector& inserted, Bytes offset) {
        status = writer(inserted, position + offset);
        return status.is_ok();
      });
  return status;
}

Result<Bytes> Framing::read(std::span<std::byte> bytes, Bytes at, const exchange::ReadBytes& reader,
                            Bytes position) const {
  Status status;
  Bytes got = 0;
  const auto take = [&](std::span<std::byte> room, Bytes offset) -> Bytes {
    const Result<Bytes> read = reader(room, offset);
    status = read.status();
    return read.is_ok() ? *read : 0;
  };
  for_each(
      at, at + static_cast<Bytes>(bytes.size()),
      [&](Bytes begin, Bytes end, Bytes ahead) {
        const auto room =
            bytes.subspan(static_cast<std::size_t>(begin - at), static_cast<std::size_t>(end - begin));
        const Bytes now = take(room, position + begin + ahead);
        got += now;
        return now == end - begin;
      },
      [&](const ByteVector& inserted, Bytes offset) {
        ByteVector passed(inserted.size());
        return take(passed, position + offset) == static_cast<Bytes>(passed.size());
      });
  TR_TRY(status);
  swap_units(bytes.first(static_cast<std::size_t>(got)), unit_);
  return got;
}

exchange::WriteBytes framed(exchange::WriteBytes writer, std::shared_ptr<const Framing> framing,
                            Bytes position) {
  if (framing == nullptr) return writer;
  return
      [writer = std::move(writer), framing = std::move(framing), position](
          std::span<const std::byte> bytes, Bytes at) { return framing->write(bytes, at, writer, position); };
}

exchange::ReadBytes framed(exchange::ReadBytes reader, std::shared_ptr<const Framing> framing,
                           Bytes position) {
  if (framing == nullptr) return reader;
  return [reader = std::move(reader), framing = std::move(framing), position](
             std::span<std::byte> bytes, Bytes at) { return framing->read(bytes, at, reader, position); };
}

void swap_units(std::span<std::byte> bytes, Bytes unit) {
  if (unit <= 1) return;
  const auto size = static_cast<std::size_t>(unit);
  for (std::size_t at = 0; at + size <= bytes.size(); at += size)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
}

}  // namespace tailrace::files
