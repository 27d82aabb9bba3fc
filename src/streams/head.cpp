// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "streams/head.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "formats/registry.hpp"

namespace tailrace::streams {

using storage::File;
using storage::OpenMode;
using storage::Target;

namespace {

/// Returns the bytes of a file from the offset on, fewer at its end.
Result<ByteVector> read_bytes(File& file, std::size_t size, Bytes offset) {
  ByteVector bytes(size);
  const Result<Bytes> got = file.read(bytes, offset);
  TR_TRY(got.status());
  bytes.resize(static_cast<std::size_t>(*got));
  return bytes;
}

}  // namespace

Status write_head(Target& target, const std::string& path, std::span<const std::byte> head) {
  if (head.empty()) return {};
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY((*file)->write(head, 0));
  TR_TRY((*file)->sync());
  return (*file)->close();
}

Status check_head(Target& target, const std::string& path, std::string_view format,
                  std::span<const std::byte> head) {
  if (head.empty()) return {};
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  Result<ByteVector> found = read_bytes(**file, head.size(), 0);
  TR_TRY(found.status());
  if (const auto count = formats::step_count(format, 0); count && found->size() == head.size())
    std::ranges::copy(count->bytes, found->begin() + count->offset);
  if (std::ranges::equal(*found, head)) return {};
  return {Code::state, cat(path,
                           ": its dimensions, attributes or coordinates are not what the stream has now; "
                           "a run that continues defines the same stream as before")};
}

Status tell_steps(File& file, std::string_view format, std::int64_t steps, bool sync) {
  const std::optional<codec::Patch> count = formats::step_count(format, steps);
  if (!count) return {};
  const Result<ByteVector> found = read_bytes(file, count->bytes.size(), count->offset);
  TR_TRY(found.status());
  if (*found != count->bytes) TR_TRY(file.write(count->bytes, count->offset));
  return sync ? file.sync() : Status();
}

Status tell_steps(Target& target, const std::string& path, std::string_view format, std::int64_t steps,
                  bool sync) {
  if (!formats::step_count(format, steps)) return {};
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY(tell_steps(**file, format, steps, sync));
  return (*file)->close();
}

Result<bool> tells_steps(File& file, std::string_view format, std::int64_t steps) {
  const std::optional<codec::Patch> count = formats::step_count(format, steps);
  if (!count) return true;
  const Result<ByteVector> found = read_bytes(file, count->bytes.size(), count->offset);
  TR_TRY(found.status());
  return *found >= count->bytes;  // big-endian numbers are ordered like their bytes
}

}  // namespace tailrace::streams
