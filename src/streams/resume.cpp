// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "streams/resume.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "streams/manifest.hpp"

namespace tailrace::streams {
namespace {

using storage::File;
using storage::OpenMode;
using storage::Target;

constexpr std::uint8_t kPositionVersion = 1;
constexpr Bytes kCopyPiece = Bytes{4} << 20;

void pack_lead(Packer& out, const std::optional<std::int64_t>& lead) {
  out.put(static_cast<std::uint8_t>(lead ? 1 : 0)).put(lead.value_or(0));
}

std::optional<std::int64_t> unpack_lead(Unpacker& in) {
  const bool there = in.get<std::uint8_t>() != 0;
  const auto lead = in.get<std::int64_t>();
  return there ? std::optional(lead) : std::nullopt;
}

Status check_position(const Position& position) {
  std::int64_t before = -1;
  for (const FailedStep& failed : position.failed) {
    if (failed.step <= before || failed.step >= position.steps)
      return {Code::corrupt, cat("a stream's position: step ", failed.step, " cannot have failed there")};
    before = failed.step;
  }
  if (position.steps < 0 || position.pattern.empty() || position.lead.has_value() != (position.steps > 0))
    return {Code::corrupt, "a stream's position contradicts itself"};
  return {};
}

Result<bool> pair_exists(Target& target, const std::string& data_path) {
  const Result<bool> data = target.exists(data_path);
  TR_TRY(data.status());
  if (!*data) return false;
  return target.exists(index_path(data_path));
}

Status remove_if_there(Target& target, const std::string& path, bool& removed) {
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  if (!*exists) return {};
  removed = true;
  return target.remove(path);
}

Result<std::unique_ptr<File>> create_empty(Target& target, const std::string& path) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::create);
  TR_TRY(file.status());
  TR_TRY(target.sync_directory_of(path));
  return file;
}

Status copy_bytes(Target& target, const std::string& from, Bytes size, File& to) {
  Result<std::unique_ptr<File>> source = target.open(from, OpenMode::read);
  TR_TRY(source.status());
  ByteVector piece(static_cast<std::size_t>(std::min(size, kCopyPiece)));
  for (Bytes at = 0; at < size;) {
    const auto part = std::span(piece).first(static_cast<std::size_t>(std::min(size - at, kCopyPiece)));
    const Result<Bytes> got = (*source)->read(part, at);
    TR_TRY(got.status());
    if (*got < static_cast<Bytes>(part.size())) {
      return {Code::corrupt, cat(from, ": ends at byte ", at + *got, ", but its index says that ", size,
                                 " are committed; it was cut by something else")};
    }
    TR_TRY(to.write(part, at));
    at += *got;
  }
  return to.sync();
}

}  // namespace

// ---- positions
// --------------------------------------------------------------------------------------------------------

ByteVector Position::pack() const {
  Packer out;
  out.put(kPositionVersion).put_text(pattern).put(run).put(steps);
  pack_lead(out, lead);
  pack_lead(out, put_lead);
  out.put(static_cast<std::int64_t>(failed.size()));
  for (const FailedStep& step : failed) out.put(step.step).put(step.lead).put_text(step.text);
  return out.take();
}

Result<Position> Position::unpack(std::span<const std::byte> bytes) {
  Unpacker in(bytes);
  if (const auto version = in.get<std::uint8_t>(); in.ok() && version > kPositionVersion) {
    return Status(Code::unsupported, cat("a stream's position: version ", static_cast<int>(version),
                                         ", this Tailrace reads up to ", static_cast<int>(kPositionVersion)));
  }
  Position position;
  position.pattern = in.get_text();
  position.run = in.get<Uuid>();
  position.steps = in.get<std::int64_t>();
  position.lead = unpack_lead(in);
  position.put_lead = unpack_lead(in);
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
    FailedStep failed;
    failed.step = in.get<std::int64_t>();
    failed.lead = in.get<std::int64_t>();
    failed.text = in.get_text();
    if (in.ok()) position.failed.push_back(std::move(failed));
  }
  if (!in.ok() || !in.rest().empty() || bytes.front() != std::byte{kPositionVersion}) {
    return Status(Code::corrupt, cat("a stream's position: its ", bytes.size(), " bytes are not whole"));
  }
  TR_TRY(check_position(position));
  return position;
}

std::string text_of(const Position& position) {
  if (!position.lead) return "the beginning";
  return cat("lead ", *position.lead, " s (", position.steps, position.steps == 1 ? " step)" : " steps)");
}

// ---- what must be there
// ------------------------------------------------------------------------------------------------

Status check_same_stream(const std::string& path, const IndexHeader& found, const IndexHeader& now,
                         bool any_run) {
  const std::string file = index_path(path);
  if (!any_run && found.run != now.run) {
    return {Code::state, cat(file, ": written by run ", found.run.text(), ", the checkpoint is of run ",
                             now.run.text(), "; continue in the directory of that run")};
  }
  const auto differs = [&](const std::string& what) {
    return Status(Code::state, cat(file, ": ", what,
                                   " is not what the stream has now; a run that continues "
                                   "defines the same stream as before"));
  };
  if (found.format != now.format) return differs(cat("the format '", found.format, "'"));
  if (found.base != now.base || found.calendar != now.calendar) return differs("the base time");
  if (found.member != now.member) return differs("the member");
  for (std::size_t i = 0; i < std::max(found.fields.size(), now.fields.size()); ++i) {
    if (i < found.fields.size() && i < now.fields.size() && found.fields[i] == now.fields[i]) continue;
    if (i >= found.fields.size()) return differs(cat("the lack of field '", now.fields[i].name, "'"));
    return differs(cat("field ", i, ", '", found.fields[i].name, "',"));
  }
  return {};
}

std::size_t steps_up_to(const IndexContents& contents, std::int64_t lead) {
  const auto beyond = std::find_if(contents.steps.begin(), contents.steps.end(),
                                   [lead](const IndexStep& step) { return step.lead > lead; });
  return static_cast<std::size_t>(beyond - contents.steps.begin());
}

Status check_has_step(const std::string& path, const IndexContents& contents, const Resuming& resuming) {
  if (!resuming.needs) return {};
  const bool found = std::any_of(contents.steps.begin(), contents.steps.end(),
                                 [&](const IndexStep& step) { return step.lead == *resuming.needs; });
  if (found) return {};
  const std::string last =
      contents.steps.empty() ? std::string("none") : cat("one up to lead ", contents.steps.back().lead, " s");
  return {Code::corrupt, cat(path, ": the checkpoint was saved behind the step at lead ", *resuming.needs,
                             " s, of which the file has ", last,
                             "; put the file and its index back as they were, or begin from an earlier "
                             "checkpoint")};
}

Status check_has_data(Target& target, const std::string& path, const IndexContents& contents,
                      const Resuming& resuming) {
  const std::size_t steps = steps_up_to(contents, *resuming.position.lead);
  const Bytes end = steps == 0 ? 0 : contents.steps[steps - 1].end;
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  Bytes size = 0;
  if (*exists) {
    Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
    TR_TRY(file.status());
    const Result<Bytes> found = (*file)->size();
    TR_TRY(found.status());
    size = *found;
  }
  if (size >= end) return {};
  return {
      Code::corrupt,
      cat(path, *exists ? cat(": has ", size, " bytes") : std::string(": is missing"), ", but ", end,
          " bytes were durable when the checkpoint was saved; put the file back as it was, or begin from an "
          "earlier checkpoint")};
}

// ---- the second pair
// ---------------------------------------------------------------------------------------------------

std::string again_path(const std::string& data_path) { return data_path + ".again"; }

Status make_index_durable(Target& target, const std::string& data_path) {
  Result<std::unique_ptr<File>> file = target.open(index_path(data_path), OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY((*file)->sync());
  TR_TRY((*file)->close());
  return target.sync_directory_of(data_path);
}

Status end_replacing(Target& target, const std::string& data_path) {
  const std::string again = again_path(data_path);
  // An earlier Tailrace may have left either pair.
  TR_TRY(rename_old_index(target, data_path));
  TR_TRY(rename_old_index(target, again));
  const Result<bool> data = target.exists(again);
  TR_TRY(data.status());
  const Result<bool> index = target.exists(index_path(again));
  TR_TRY(index.status());
  // The data are made before the index and removed after it: only replacing leaves the index alone.
  if (*data || !*index) return {};
  // The data's rename must not be lost once the index has its new name.
  TR_TRY(target.sync_directory_of(data_path));
  TR_TRY(target.rename(index_path(again), index_path(data_path)));
  return target.sync_directory_of(data_path);
}

Status discard_again(Target& target, const std::string& data_path) {
  const std::string again = again_path(data_path);
  bool any = false;
  TR_TRY(remove_if_there(target, index_path(again), any));
  TR_TRY(remove_if_there(target, index_path(again) + ".new", any));
  const Result<bool> data = target.exists(again);
  TR_TRY(data.status());
  // Durable before the data go: the index alone would be taken for a replacement on its way. Also where it
  // was gone already, by the hand of a process that may have been killed before this.
  if (any || *data) TR_TRY(target.sync_directory_of(data_path));
  if (!*data) return {};
  TR_TRY(target.remove(again));
  return target.sync_directory_of(data_path);
}

Result<IndexWriter> begin_again(Target& target, const std::string& data_path, const IndexHeader& header) {
  TR_TRY(make_index_durable(target, data_path));
  TR_TRY(discard_again(target, data_path));
  const std::string again = again_path(data_path);
  Result<std::unique_ptr<File>> data = create_empty(target, again);
  TR_TRY(data.status());
  TR_TRY((*data)->close());
  return IndexWriter::create(target, index_path(again), header);
}

Result<IndexWriter> copy_again(Target& target, const std::string& data_path, const IndexContents& published,
                               std::size_t steps) {
  TR_TRY(make_index_durable(target, data_path));
  TR_TRY(discard_again(target, data_path));
  const std::string again = again_path(data_path);
  const Bytes end = steps == 0 ? published.header.data_begin : published.steps[steps - 1].end;
  Result<std::unique_ptr<File>> data = create_empty(target, again);
  TR_TRY(data.status());
  TR_TRY(copy_bytes(target, data_path, end, **data));
  TR_TRY((*data)->close());
  const std::string temporary = index_path(again) + ".new";
  Result<std::unique_ptr<File>> index = target.open(temporary, OpenMode::create);
  TR_TRY(index.status());
  TR_TRY(copy_bytes(target, index_path(data_path), published.marks[steps].position, **index));
  TR_TRY((*index)->close());
  TR_TRY(target.rename(temporary, index_path(again)));
  TR_TRY(target.sync_directory_of(again));
  return IndexWriter::open_existing(target, index_path(again));
}

Result<std::optional<IndexWriter>> adopt_again(Target& target, const std::string& data_path,
                                               const IndexHeader& header, std::int64_t lead,
                                               std::size_t least_steps) {
  const std::string again = again_path(data_path);
  const Result<bool> exists = pair_exists(target, again);
  TR_TRY(exists.status());
  if (!*exists) return std::optional<IndexWriter>();
  const Result<IndexContents> contents = load_index(target, index_path(again));
  if (contents.status().code() == Code::io) return contents.status();
  const bool sound = contents.is_ok() && contents->tail != IndexTail::damaged &&
                     check_same_stream(again, contents->header, header, false).is_ok();
  if (!sound || steps_up_to(*contents, lead) < least_steps) return std::optional<IndexWriter>();
  TR_TRY(recover(target, again, {header.run, lead, false}).status());
  TR_TRY(make_index_durable(target, again));
  Result<IndexWriter> writer = IndexWriter::open_existing(target, index_path(again));
  TR_TRY(writer.status());
  return std::optional<IndexWriter>(std::move(*writer));
}

Result<bool> again_is_same(Target& target, const std::string& data_path) {
  const std::string again = again_path(data_path);
  for (const auto& [one, other] : {std::pair(data_path, again), {index_path(data_path), index_path(again)}}) {
    const Result<std::string> first = digest_file(target, one);
    TR_TRY(first.status());
    const Result<std::string> second = digest_file(target, other);
    TR_TRY(second.status());
    if (*first != *second) return false;
  }
  return true;
}

Status replace_by_again(Target& target, const std::string& data_path) {
  TR_TRY(target.rename(again_path(data_path), data_path));
  return end_replacing(target, data_path);
}

}  // namespace tailrace::streams
