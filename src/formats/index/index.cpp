// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/index/index.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "formats/index/ending.hpp"
#include "formats/index/head.hpp"
#include "formats/listings/listings.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::streams {
namespace {

using storage::File;
using storage::OpenMode;
using storage::Target;

Result<IndexContents> load_from(File& file, const std::string& path) {
  return guarded([&]() -> Result<IndexContents> {
    const Result<Bytes> size = file.size();
    TR_TRY(size.status());
    ByteVector bytes(static_cast<std::size_t>(*size));
    const Result<Bytes> got = file.read(bytes, 0);
    TR_TRY(got.status());
    Result<IndexContents> contents = decode_index(std::span(bytes).first(static_cast<std::size_t>(*got)));
    TR_TRY(contents.status().in(path));
    return contents;
  });
}

Status check_tail(const std::string& path, const IndexContents& contents) {
  if (contents.tail != IndexTail::damaged) return {};
  return {Code::corrupt,
          cat(path, ": ", contents.tail_text, "; ", contents.steps.size(),
              " whole steps stand before them, and `tailrace repair --force` keeps just those")};
}

// Cuts the data file to `size`, the end of its last step, and removes its ending. Returns the number of bytes
// cut off.
Result<Bytes> cut_data(Target& target, const std::string& path, std::string_view format, Bytes size) {
  const Result<std::optional<Bytes>> before = storage::size_if_there(target, path);
  TR_TRY(before.status());
  TR_TRY(remove_ending(target, path, format, size));
  TR_TRY(storage::cut_back_durably(target, path, size, OpenMode::existing).status());
  return std::max<Bytes>(0, before->value_or(0) - size);
}

// Returns the number of steps that lie within a data file of `size` bytes. Code::corrupt if the index has
// more, unless `force` is on.
Result<std::size_t> steps_within(const IndexContents& contents, const std::string& data_path, Bytes size,
                                 bool force) {
  std::size_t count = contents.steps.size();
  while (count > 0 && contents.steps[count - 1].end > size) --count;
  if (count == contents.steps.size() || force) return count;
  return Status(Code::corrupt, cat(data_path, ": has ", counted(size, "byte"), ", but its index says that ",
                                   contents.data_end(), " are committed; it was cut by something else. ",
                                   count, " of ", counted(contents.steps.size(), "step"),
                                   " are whole, and `tailrace repair --force` keeps just those"));
}

// Removes whatever names steps other than `steps` to other programs: the reference file, and lines of
// listings.
Status tell_no_more_than(Target& target, const std::string& data_path, std::span<const IndexStep> steps) {
  TR_TRY(storage::remove_durably(target, references_path(data_path)));
  return listings::cut_all(target, data_path, ranges_of(steps));
}

// Returns the number of steps before the first incomplete one among the first `count`. Only a store can lack
// a part in its middle: a file has all bytes before its end.
Result<std::size_t> whole_steps(File& data, const IndexContents& contents, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto step = std::span(contents.steps).subspan(i, 1);
    const Result<bool> holds = data.holds(step.front().end, ranges_of(step));
    TR_TRY(holds.status());
    if (!*holds) return i;
  }
  return count;
}

Status check_run_in(File& file, const std::string& path, const Uuid& run) {
  std::array<std::byte, kIndexPrefix> prefix{};
  const Result<Bytes> got = file.read(prefix, 0);
  TR_TRY(got.status());
  const Result<Uuid> now = decode_run(std::span(prefix).first(static_cast<std::size_t>(*got)));
  TR_TRY(now.status().in(path));
  if (*now == run) return {};
  return {Code::state, cat(path, ": now belongs to run ", now->text(), ", this is run ", run.text(),
                           "; another job writes the same files, stop one of them")};
}

}  // namespace

std::string index_path(const std::string& data_path) { return data_path + ".trx"; }
std::string old_index_path(const std::string& data_path) { return data_path + ".idx"; }
std::string references_path(const std::string& data_path) { return data_path + ".refs.json"; }
std::string lock_path(const std::string& data_path) { return data_path + ".lock"; }

Result<bool> is_index(Target& target, const std::string& path) {
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  if (!*exists) return false;
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  std::array<std::byte, kIndexMark.size()> first{};
  const Result<Bytes> got = (*file)->read(first, 0);
  TR_TRY(got.status());
  return *got == static_cast<Bytes>(first.size()) && begins_as_index(first);
}

Result<std::string> find_index(Target& target, const std::string& data_path) {
  std::string path = index_path(data_path);
  const std::string old_path = old_index_path(data_path);
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  const Result<bool> old_is_index = is_index(target, old_path);
  const int error = old_is_index.status().error_number();
  // With an index under the present name, anything under the old name that is a directory or a pipe, or that
  // we may not read, belongs to somebody else.
  if (*exists && (error == EACCES || error == EISDIR || error == ESPIPE)) return path;
  TR_TRY(old_is_index.status());
  if (!*old_is_index) return path;
  if (!*exists) return old_path;
  return Status(Code::state, cat(data_path, " has two indexes, ", path, " and ", old_path,
                                 ", which an older Tailrace writes; `tailrace index` prints either alone: "
                                 "move away the one that does not belong to the data"));
}

Status rename_old_index(Target& target, const std::string& data_path) {
  const Result<std::string> found = find_index(target, data_path);
  TR_TRY(found.status());
  const std::string path = index_path(data_path);
  if (*found == path) return {};
  return storage::rename_durably(target, *found, path);
}

Result<IndexContents> load_index(Target& target, const std::string& path) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  return load_from(**file, path);
}

Status remove_index(Target& target, const std::string& data_path) {
  return storage::remove_durably(target, index_path(data_path));
}

std::vector<storage::Range> ranges_of(std::span<const IndexStep> steps) {
  std::vector<storage::Range> ranges;
  for (const IndexStep& step : steps) {
    for (const IndexRecord& each : step.records) ranges.push_back({each.offset, each.length});
  }
  return ranges;
}

Status check_run(Target& target, const std::string& path, const Uuid& run) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  TR_TRY(file.status());
  return check_run_in(**file, path, run);
}

Result<Recovered> recover(Target& target, const std::string& data_path, const Reopen& options) {
  TR_TRY(rename_old_index(target, data_path));
  const std::string path = index_path(data_path);
  Result<std::unique_ptr<File>> index = target.open(path, OpenMode::existing);
  TR_TRY(index.status());
  Result<IndexContents> contents = load_from(**index, path);
  TR_TRY(contents.status());
  if (!options.force) TR_TRY(check_tail(path, *contents));

  const Result<bool> exists = target.exists(data_path);
  TR_TRY(exists.status());
  Result<std::unique_ptr<File>> data =
      *exists ? target.open(data_path, OpenMode::existing) : std::unique_ptr<File>();
  TR_TRY(data.status());
  const Result<Bytes> data_size = *exists ? (*data)->size() : Bytes{0};
  TR_TRY(data_size.status());
  Result<std::size_t> whole = steps_within(*contents, data_path, *data_size, options.force);
  if (whole.is_ok() && options.force && *exists) whole = whole_steps(**data, *contents, *whole);
  TR_TRY(whole.status());

  Recovered recovered;
  const std::size_t kept =
      options.through_lead ? std::min(*whole, contents->steps_up_to(*options.through_lead)) : *whole;
  if (kept > 0 && !options.force) {
    const auto last = std::span(contents->steps).subspan(kept - 1, 1);
    TR_TRY(storage::check_holds(target, data_path, last.front().end, ranges_of(last)));
  }
  recovered.steps_cut = contents->steps.size() - kept;
  contents->steps.resize(kept);
  contents->marks.resize(kept + 1);
  // A closed file that keeps all its steps stays closed: a program may be waiting for that.
  contents->closed = contents->closed && recovered.steps_cut == 0;
  // A build that cannot make an ending must not remove one.
  const bool keeps_ending = contents->closed && formats::finishing(contents->header.format) != nullptr;
  if (!keeps_ending) TR_TRY(formats::check_can_finish(contents->header.format).in(data_path));
  const Bytes index_end = contents->marks.back().position + (contents->closed ? kClosedBytes : 0);
  // Readers must not look for steps that are gone, so remove first whatever names them.
  if (recovered.steps_cut > 0) TR_TRY(tell_no_more_than(target, data_path, contents->steps));
  if (*exists && *data_size >= contents->data_end())
    TR_TRY(tell_steps(**data, contents->header.format, static_cast<std::int64_t>(kept), true));
  // The index is cut first. If the data were cut first, a crash in between would leave steps without their
  // bytes.
  const Result<Bytes> index_cut = storage::cut_back_durably(**index, index_end);
  TR_TRY(index_cut.status());
  recovered.index_bytes_cut = *index_cut;
  if (*exists) TR_TRY((*data)->close());
  // A finished file that keeps all its steps keeps its ending, too.
  if (*exists && !keeps_ending) {
    const Result<Bytes> data_cut = cut_data(target, data_path, contents->header.format, contents->data_end());
    TR_TRY(data_cut.status());
    recovered.data_bytes_cut = *data_cut;
  }
  TR_TRY((*index)->close());
  contents->tail = IndexTail::none;
  contents->tail_text.clear();
  recovered.contents = std::move(*contents);
  return recovered;
}

Result<IndexWriter> IndexWriter::create(Target& target, const std::string& path, const IndexHeader& header) {
  TR_TRY(check_header(header).in(path));
  const ByteVector bytes = encode_header(header);
  TR_TRY(storage::replace_file(target, path, bytes, path + ".new"));
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::own_existing);
  TR_TRY(file.status());
  IndexWriter writer(target, path, std::move(*file), header);
  writer.written_.mark = {static_cast<Bytes>(bytes.size()), first_chain(bytes)};
  writer.synced_ = writer.written_;
  return writer;
}

Result<IndexWriter> IndexWriter::open_existing(Target& target, const std::string& path) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  Result<IndexContents> contents = load_from(**file, path);
  TR_TRY(contents.status());
  TR_TRY(check_tail(path, *contents));
  IndexWriter writer(target, path, std::move(*file), std::move(contents->header));
  writer.written_ = {contents->marks.back(), {}, static_cast<std::int64_t>(contents->steps.size())};
  TR_TRY(storage::cut_back_durably(*writer.file_, writer.written_.mark.position).status());
  if (!contents->steps.empty()) {
    writer.written_.last = std::move(contents->steps.back());
    writer.written_.last->records.clear();
  }
  writer.synced_ = writer.written_;
  return writer;
}

// A writer may have lost its lock unnoticed: the file system forgot it, or its job was taken for dead. It
// must not write into a newer run's index. Open the path anew, because our descriptor may belong to a file
// that was replaced.
Status IndexWriter::check_owner() {
  TR_TRY(lost_);
  Status owner = look_for_owner();
  if (owner.code() == Code::state) lost_ = owner;
  return owner;
}

Status IndexWriter::look_for_owner() {
  Result<std::unique_ptr<File>> now = target_->open(path_, OpenMode::read);
  TR_TRY(now.status());
  TR_TRY(check_run_in(**now, path_, header_.run));
  const Result<Bytes> size = (*now)->size();
  TR_TRY(size.status());
  if (*size == written_.mark.position || (dirty_tail_ && *size > written_.mark.position)) return {};
  return {Code::state, cat(path_, ": has ", counted(*size, "byte"), ", this run wrote ",
                           written_.mark.position, "; another job writes the same files, stop one of them")};
}

Status IndexWriter::write(const ByteVector& record) {
  TR_TRY(check_owner());
  const Status written = file_->write(record, written_.mark.position);
  if (!written.is_ok()) {
    dirty_tail_ = !storage::cut_back(*file_, written_.mark.position).is_ok();
    return written;
  }
  // A longer record may have failed here before: cut off its rest.
  if (dirty_tail_)
    TR_TRY(storage::cut_back(*file_, written_.mark.position + static_cast<Bytes>(record.size())).status());
  dirty_tail_ = false;
  written_.mark = {written_.mark.position + static_cast<Bytes>(record.size()),
                   next_chain(written_.mark.chain, record)};
  return {};
}

Status IndexWriter::append(const IndexStep& step) {
  TR_TRY(lost_);
  if (closed_) return {Code::state, cat(path_, ": step ", step.step, " after the index was closed")};
  TR_TRY(check_step(header_, last(), step).in(path_));
  TR_TRY(guarded([&] { return write(encode_step(step, written_.mark.chain)); }));
  written_.last = IndexStep{step.step, step.lead, step.begin, step.end, {}};
  ++written_.steps;
  return {};
}

Status IndexWriter::append_closed() {
  if (closed_) return {};
  TR_TRY(write(encode_closed(data_end(), written_.mark.chain)));
  closed_ = true;
  return {};
}

Status IndexWriter::sync() {
  const Status synced = file_->sync();
  if (synced.is_ok()) {
    synced_ = written_;
    return {};
  }
  // Another run has changed the object since (ObjectFiles): what is there now is not this writer's.
  if (synced.code() == Code::state) return lost_ = synced;
  const Status taken = take_back();
  if (taken.is_ok()) return synced;
  lost_ = taken.in(cat(path_, ": a step that failed could not be taken back"));
  return Status(synced.code(), cat(synced.text(), "; it could not be taken back and may be in the file"),
                synced.error_number());
}

/// Removes the records since the last successful sync. After a failed fsync, later ones of the same
/// descriptor prove nothing, so it uses a new descriptor.
Status IndexWriter::take_back() {
  Result<std::unique_ptr<File>> fresh = target_->open(path_, OpenMode::existing);
  TR_TRY(fresh.status());
  TR_TRY(storage::cut_back(**fresh, synced_.mark.position).status());
  TR_TRY((*fresh)->sync());
  file_ = std::move(*fresh);
  written_ = synced_;
  closed_ = dirty_tail_ = false;
  return {};
}

Status IndexWriter::close() { return file_->close(); }

}  // namespace tailrace::streams
