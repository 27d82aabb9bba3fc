// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/index/head.hpp"

#include <algorithm>

#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

using storage::File;
using storage::OpenMode;
using storage::Target;

namespace {

/// Returns `size` bytes of a file from `offset` on, and fewer at its end.
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

Result<bool> begins_with(Target& target, const std::string& path, std::string_view format,
                         std::span<const std::byte> head) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  constexpr std::size_t most = 64 << 10;
  const auto wanted = head.first(std::min(head.size(), most));
  Result<ByteVector> found = read_bytes(**file, wanted.size(), 0);
  TR_TRY(found.status());
  if (const auto count = formats::step_count(format, 0); count && found->size() == wanted.size())
    std::ranges::copy(count->bytes, found->begin() + count->offset);
  return std::ranges::equal(*found, wanted);
}

Status check_places(const std::string& path, const IndexContents& contents,
                    const std::optional<codec::FixedPlaces>& places) {
  if (!places || contents.steps.empty()) return {};
  const IndexStep& step = contents.steps.back();
  const bool same = step.end - step.begin == places->step &&
                    std::ranges::all_of(step.records, [&](const IndexRecord& each) {
                      const auto field = static_cast<std::size_t>(each.field);
                      const auto level = static_cast<std::size_t>(each.level);
                      return field < places->places.size() && level < places->places[field].size() &&
                             (places->are_packed ? each.offset - step.begin >= places->places[field][level]
                                                 : each.offset - step.begin == places->places[field][level]);
                    });
  if (same) return {};
  return {Code::state, cat(path,
                           ": its variables are not those that the stream has now; a run that continues "
                           "defines the same stream as before")};
}

Status tell_steps(File& file, std::string_view format, std::int64_t steps, bool sync) {
  const std::optional<codec::Patch> count = formats::step_count(format, steps);
  if (!count) return {};
  const Result<ByteVector> found = read_bytes(file, count->bytes.size(), count->offset);
  TR_TRY(found.status());
  // With `sync`, write the number even if it is there: the process that wrote it may have been killed before
  // it was durable.
  if (sync || *found != count->bytes) TR_TRY(file.write(count->bytes, count->offset));
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
