// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/index/ending.hpp"

#include <algorithm>

#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::streams {

using storage::File;
using storage::OpenMode;
using storage::Target;

namespace {

/// Returns `size` bytes of a file from `offset` on, and fewer at its end.
Result<ByteVector> read_from(File& file, Bytes size, Bytes offset) {
  return guarded([&]() -> Result<ByteVector> {
    ByteVector bytes(static_cast<std::size_t>(std::max<Bytes>(size, 0)));
    const Result<Bytes> got = file.read(bytes, offset);
    TR_TRY(got.status());
    bytes.resize(static_cast<std::size_t>(*got));
    return bytes;
  });
}

Result<bool> holds(File& file, std::span<const std::byte> bytes, Bytes offset) {
  const Result<ByteVector> found = read_from(file, std::ssize(bytes), offset);
  TR_TRY(found.status());
  return std::ranges::equal(*found, bytes);
}

codec::ReadBytes reader_of(File& file) {
  return [&file](std::span<std::byte> to, Bytes offset) { return file.read(to, offset); };
}

/// Returns the codec that the head of the file describes. The head may be large; its memory is free on
/// return.
Result<std::unique_ptr<codec::Codec>> codec_of(const formats::Finishing& format, File& file,
                                               Bytes data_begin) {
  const Result<ByteVector> head = read_from(file, data_begin, 0);
  TR_TRY(head.status());
  return format.reopen(*head);
}

Result<codec::Ending> make_ending(const formats::Finishing& format, File& file,
                                  const IndexContents& contents) {
  const Bytes data_begin = contents.header.data_begin;
  const Result<std::unique_ptr<codec::Codec>> codec = codec_of(format, file, data_begin);
  TR_TRY(codec.status());
  const std::vector<codec::FinishedStep> steps = finished_steps(contents);
  Result<std::optional<codec::Ending>> ending =
      (*codec)->ending(reader_of(file), steps, data_begin, contents.data_end());
  TR_TRY(ending.status());
  return *ending ? std::move(**ending) : codec::Ending{};
}

/// Writes the tail, and then the head that points to it. Writes both even if the file seems to hold them:
/// after a failed fsync, it may hold bytes that never reach storage.
Status write_parts(File& file, const codec::Patch& mark, const codec::Ending& ending, Bytes data_end) {
  // A head must not point into a half-written tail, so mark the file as unfinished first.
  const Result<bool> marked = holds(file, mark.bytes, mark.offset);
  TR_TRY(marked.status());
  if (!*marked) {
    TR_TRY(file.write(mark.bytes, mark.offset));
    TR_TRY(file.sync());
  }
  TR_TRY(file.write(ending.tail, data_end));
  TR_TRY(storage::cut_back(file, data_end + std::ssize(ending.tail)).status());
  TR_TRY(file.sync());
  TR_TRY(file.write(ending.head.bytes, ending.head.offset));
  return file.sync();
}

/// True if the index says that the file is closed, and the file is finished: its ending is durable then.
Result<bool> is_finished(const formats::Finishing& format, File& file, const IndexContents& contents) {
  if (!contents.closed) return false;
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  return format.is_finished(reader_of(file), contents.data_end(), *size);
}

}  // namespace

std::vector<codec::FinishedStep> finished_steps(const IndexContents& contents) {
  std::vector<codec::FinishedStep> steps;
  for (const IndexStep& each : contents.steps) {
    codec::FinishedStep& step = steps.emplace_back(codec::FinishedStep{each.lead, {}});
    for (const IndexRecord& record : each.records)
      step.records.push_back({record.field, record.level, record.offset, record.length});
  }
  return steps;
}

Status write_ending(Target& target, const std::string& path, const IndexContents& contents) {
  const formats::Finishing* const format = formats::finishing(contents.header.format);
  if (format == nullptr || contents.steps.empty()) return {};
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  const Result<bool> finished = is_finished(*format, **file, contents);
  TR_TRY(finished.status());
  if (*finished) return (*file)->close();
  TR_TRY(formats::check_can_finish(contents.header.format).in(path));
  const Result<codec::Ending> ending = make_ending(*format, **file, contents);
  TR_TRY(ending.status().in(path));
  TR_TRY(write_parts(**file, format->unfinished(), *ending, contents.data_end()));
  return (*file)->close();
}

Result<bool> has_ending(Target& target, const std::string& path, const IndexContents& contents) {
  const formats::Finishing* const format = formats::finishing(contents.header.format);
  if (format == nullptr || contents.steps.empty()) return true;
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  return format->is_finished(reader_of(**file), contents.data_end(), *size);
}

Status remove_ending(Target& target, const std::string& path, std::string_view format_name, Bytes data_end) {
  const formats::Finishing* const format = formats::finishing(format_name);
  if (format == nullptr) return {};
  TR_TRY(formats::check_can_finish(format_name).in(path));
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  const codec::Patch mark = format->unfinished();
  // A file without steps may have no head yet. Write the mark even if it is there: it may not be on storage.
  if (*size >= mark.offset + std::ssize(mark.bytes)) {
    TR_TRY((*file)->write(mark.bytes, mark.offset));
    TR_TRY((*file)->sync());
  }
  TR_TRY(storage::cut_back_durably(**file, data_end).status());
  return (*file)->close();
}

Status check_goes_on(Target& target, const std::string& path, const IndexHeader& header,
                     std::span<const std::byte> now, std::string_view advice) {
  TR_TRY(formats::check_can_finish(header.format).in(path));
  if (!formats::has_heads(header.format)) return {};
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  const Result<ByteVector> own = read_from(**file, header.data_begin, 0);
  TR_TRY(own.status());
  const Status goes_on = formats::check_goes_on(header.format, *own, now).in(path);
  return goes_on.code() == Code::state ? Status(Code::state, cat(goes_on.text(), advice)) : goes_on;
}

}  // namespace tailrace::streams
