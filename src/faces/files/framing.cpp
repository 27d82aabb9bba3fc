// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/framing.hpp"

#include <algorithm>

namespace tailrace::files {

void Framing::insert(Bytes before, ByteVector bytes) {
  if (bytes.empty()) return;
  inserted_ += static_cast<Bytes>(bytes.size());
  inserts_.push_back({before, std::move(bytes)});
}

std::vector<Framing::Run> Framing::runs(Bytes begin, Bytes end) const {
  std::vector<Run> list;
  Bytes ahead = 0;
  Bytes at = begin;
  for (const Insert& insert : inserts_) {
    const bool is_here =
        insert.before >= begin && (insert.before < end || (insert.before == end && end == array_bytes_));
    if (is_here) {
      if (insert.before > at) list.push_back({at + ahead, at - begin, insert.before - at, {}});
      at = insert.before;
      list.push_back({at + ahead, 0, 0, insert.bytes});
    }
    if (!is_here && insert.before >= end) break;
    ahead += static_cast<Bytes>(insert.bytes.size());
  }
  if (at < end) list.push_back({at + ahead, at - begin, end - at, {}});
  return list;
}

Status Framing::write(std::span<const std::byte> bytes, Bytes at, const exchange::WriteBytes& writer,
                      Bytes position) const {
  ByteVector turned;
  if (unit_ > 1) {
    turned.assign(bytes.begin(), bytes.end());
    swap_units(turned, unit_);
    bytes = turned;
  }
  for (const Run& run : runs(at, at + std::ssize(bytes)))
    TR_TRY(writer(run.inserted.empty() ? run.of(bytes) : run.inserted, position + run.offset));
  return {};
}

Result<Bytes> Framing::read(std::span<std::byte> bytes, Bytes at, const exchange::ReadBytes& reader,
                            Bytes position) const {
  Bytes got = 0;
  for (const Run& run : runs(at, at + std::ssize(bytes))) {
    ByteVector passed(run.inserted.size());
    const std::span<std::byte> room = passed.empty() ? run.of(bytes) : std::span(passed);
    const Result<Bytes> read = reader(room, position + run.offset);
    TR_TRY(read.status());
    if (passed.empty()) got += *read;
    if (*read < std::ssize(room)) break;
  }
  swap_units(bytes.first(static_cast<std::size_t>(got)), unit_);
  return got;
}

exchange::WriteBytes framed(exchange::WriteBytes writer, std::shared_ptr<const Framing> framing,
                            Bytes position) {
  if (framing == nullptr) return writer;
  return [writer = std::move(writer), framing = std::move(framing), position](
             std::span<const std::byte> bytes, Bytes at) {
    return guarded([&] { return framing->write(bytes, at, writer, position); });
  };
}

exchange::ReadBytes framed(exchange::ReadBytes reader, std::shared_ptr<const Framing> framing,
                           Bytes position) {
  if (framing == nullptr) return reader;
  return [reader = std::move(reader), framing = std::move(framing), position](std::span<std::byte> bytes,
                                                                              Bytes at) {
    return guarded([&] { return framing->read(bytes, at, reader, position); });
  };
}

void swap_units(std::span<std::byte> bytes, Bytes unit) {
  if (unit <= 1) return;
  const auto size = static_cast<std::size_t>(unit);
  for (std::size_t at = 0; at + size <= bytes.size(); at += size)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
}

}  // namespace tailrace::files
