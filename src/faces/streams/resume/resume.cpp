// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/resume/resume.hpp"

#include <algorithm>

#include "faces/streams/files/manifest.hpp"
#include "formats/index/ending.hpp"
#include "formats/index/head.hpp"
#include "formats/listings/listings.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::streams {
namespace {

using storage::File;
using storage::OpenMode;
using storage::Target;

// The first byte of a position says what stands behind its failed steps.
constexpr std::uint8_t kPosition = 1, kPositionInInterval = 2;
constexpr std::uint8_t kPositionOfTimes = 3, kPositionOfTimesInInterval = 4;  // first the axis of times
constexpr std::int32_t last_operation = 4;                                    // of operations::Operation
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
  if (!position.interval) return {};
  for (const OpenInterval::Field& field : position.interval->fields) {
    if (field.operation < 0 || field.operation > last_operation || field.puts < 0)
      return {Code::corrupt, cat("a stream's position: field '", field.name, "' contradicts itself")};
  }
  const std::optional<OpenInterval::Failure>& failure = position.interval->failure;
  if (failure && (failure->code <= Code::ok || failure->code > Code::corrupt))
    return {Code::corrupt, "a stream's position: the error within its interval is none"};
  return {};
}

/// Returns true if two files hold the same step, wherever in them.
Result<bool> is_same_step(File& one, const IndexStep& first, File& other, const IndexStep& second) {
  const Bytes size = first.end - first.begin;
  const auto same_record = [&](const IndexRecord& a, const IndexRecord& b) {
    return a.field == b.field && a.level == b.level && a.length == b.length &&
           a.offset - first.begin == b.offset - second.begin;
  };
  if (first.lead != second.lead || size != second.end - second.begin ||
      !std::ranges::equal(first.records, second.records, same_record))
    return false;
  ByteVector left(static_cast<std::size_t>(std::min(size, kCopyPiece)));
  ByteVector right(left.size());
  for (Bytes at = 0; at < size; at += static_cast<Bytes>(left.size())) {
    left.resize(static_cast<std::size_t>(std::min(size - at, kCopyPiece)));
    right.resize(left.size());
    const Result<Bytes> got = one.read(left, first.begin + at);
    TR_TRY(got.status());
    const Result<Bytes> too = other.read(right, second.begin + at);
    TR_TRY(too.status());
    if (*got != *too || left != right) return false;
  }
  return true;
}

}  // namespace

Result<bool> pair_exists(Target& target, const std::string& data_path) {
  const Result<bool> data = target.exists(data_path);
  TR_TRY(data.status());
  if (!*data) return false;
  return target.exists(index_path(data_path));
}

void OpenInterval::pack(Packer& out) const {
  out.put(begin).put(lead).put(static_cast<std::int64_t>(fields.size()));
  for (const Field& field : fields) {
    out.put_text(field.name).put(field.operation).put(field.puts).put(field.leads);
    out.put_text(field.type)
        .put_list(std::span<const Index>(field.shape))
        .put_text(field.levels)
        .put_text(field.missing);
  }
  out.put(length.leads).put(length.months).put(static_cast<std::uint8_t>(failure ? 1 : 0));
  if (failure) out.put(failure->code).put(failure->operation).put(failure->rank).put_text(failure->text);
}

OpenInterval OpenInterval::unpack(Unpacker& in) {
  OpenInterval interval;
  interval.begin = in.get<std::int64_t>();
  interval.lead = in.get<std::int64_t>();
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
    Field field;
    field.name = in.get_text();
    field.operation = in.get<std::int32_t>();
    field.puts = in.get<std::int64_t>();
    field.leads = in.get<std::uint64_t>();
    field.type = in.get_text();
    field.shape = in.get_list<Index>();
    field.levels = in.get_text();
    field.missing = in.get_text();
    if (in.ok()) interval.fields.push_back(std::move(field));
  }
  interval.length.leads = in.get<std::int64_t>();
  interval.length.months = in.get<std::int64_t>();
  if (in.get<std::uint8_t>() == 0) return interval;
  Failure failure;
  failure.code = in.get<Code>();
  failure.operation = in.get<std::int64_t>();
  failure.rank = in.get<std::int32_t>();
  failure.text = in.get_text();
  interval.failure = std::move(failure);
  return interval;
}

ByteVector Position::pack() const {
  Packer out;
  const std::uint8_t kind = time.is_default() ? (interval ? kPositionInInterval : kPosition)
                                              : (interval ? kPositionOfTimesInInterval : kPositionOfTimes);
  out.put(kind).put_text(pattern).put(run).put(steps);
  pack_lead(out, lead);
  pack_lead(out, put_lead);
  out.put(static_cast<std::int64_t>(failed.size()));
  for (const FailedStep& step : failed) out.put(step.step).put(step.lead).put_text(step.text);
  if (!time.is_default()) time.pack(out);
  if (interval) interval->pack(out);
  return out.take();
}

Result<Position> Position::unpack(std::span<const std::byte> bytes) {
  Unpacker in(bytes);
  const auto kind = in.get<std::uint8_t>();
  if (in.ok() && kind > kPositionOfTimesInInterval) {
    return Status(Code::unsupported,
                  cat("a stream's position: version ", static_cast<int>(kind), ", this Tailrace reads up to ",
                      static_cast<int>(kPositionOfTimesInInterval)));
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
  if (in.ok() && kind >= kPositionOfTimes) {
    Result<TimeAxis> time = TimeAxis::unpack(in);
    TR_TRY(time.status().in("a stream's position"));
    position.time = std::move(*time);
  }
  if (in.ok() && (kind == kPositionInInterval || kind == kPositionOfTimesInInterval))
    position.interval = OpenInterval::unpack(in);
  if (!in.ok() || !in.rest().empty() || kind < kPosition) {
    return Status(Code::corrupt,
                  cat("a stream's position: its ", counted(bytes.size(), "byte"), " are not whole"));
  }
  TR_TRY(check_position(position));
  return position;
}

std::string text_of(const Position& position) {
  const std::string within =
      position.interval ? cat(", within an interval at ", position.time.at(position.interval->lead)) : "";
  if (!position.lead) return cat("the beginning", within);
  return cat(position.time.at(*position.lead), " (", position.steps,
             position.steps == 1 ? " step)" : " steps)", within);
}

namespace {

/// Returns Code::corrupt, saying what is missing, if the step on which the checkpoint relies is not in the
/// index.
Status check_has_step(const std::string& path, const IndexContents& contents, const Resuming& resuming) {
  if (!resuming.needs) return {};
  if (std::ranges::count(contents.steps, *resuming.needs, &IndexStep::lead) > 0) return {};
  const std::string last = contents.steps.empty()
                               ? std::string("none")
                               : cat("one up to ", contents.header.time.at(contents.steps.back().lead));
  return {Code::corrupt, cat(path, ": the checkpoint was saved behind the step at ",
                             resuming.position.time.at(*resuming.needs), ", of which the file has ", last,
                             "; put the file and its index back as they were, begin from an earlier "
                             "checkpoint, or give the stream another name: there it begins with the next "
                             "step")};
}

/// Returns Code::corrupt if the data file lacks bytes of the steps up to the position. A file without steps
/// may lack its head, too: its index is made before it, and the run that goes on writes the head again.
Status check_has_data(Target& target, const std::string& path, const IndexContents& contents,
                      const Resuming& resuming) {
  const std::size_t steps = contents.steps_up_to(*resuming.position.lead);
  return steps == 0 ? Status() : storage::check_holds(target, path, contents.end_of(steps));
}

/// True if the file is left over from a run that nobody goes on with. The run of the checkpoint was to
/// replace the file, but every step that it put there failed.
bool is_left_over(const IndexHeader& found, const Resuming& resuming) {
  return found.run != resuming.position.run && !resuming.needs;
}

/// Returns how many of the checkpoint's steps are in the index. Steps that the checkpoint records as failed
/// do not count.
std::size_t recorded_steps(const IndexContents& contents, const Resuming& resuming) {
  return static_cast<std::size_t>(std::ranges::count_if(contents.steps, [&](const IndexStep& step) {
    return step.lead <= *resuming.position.lead &&
           std::ranges::count(resuming.position.failed, step.lead, &FailedStep::lead) == 0;
  }));
}

/// Checks that the checkpoint's steps are in a pair, whole.
Status check_has_recorded(Target& target, const std::string& path, const Result<IndexContents>& contents,
                          const Resuming& resuming) {
  TR_TRY(contents.status());
  TR_TRY(check_has_step(path, *contents, resuming));
  return check_has_data(target, path, *contents, resuming);
}

IndexHeader with_fields_of(IndexHeader now, const IndexHeader& found) {
  if (now.fields.empty()) now.fields = found.fields;
  return now;
}

/// Returns the second pair if it exists, has the checkpoint's steps, and is of the stream in `wanted`, and of
/// its run unless `any_run`. An unsound pair counts as none: the first pair is still whole then.
Result<std::optional<IndexContents>> second_pair(Target& target, const std::string& data_path,
                                                 const IndexHeader& wanted, const Resuming& resuming,
                                                 bool any_run) {
  const std::string again = again_path(data_path);
  const Result<bool> exists = pair_exists(target, again);
  TR_TRY(exists.status());
  if (!*exists) return std::optional<IndexContents>();
  Result<IndexContents> contents = load_index(target, index_path(again));
  const Status recorded = check_has_recorded(target, again, contents, resuming);
  if (recorded.code() == Code::io) return recorded;
  const bool sound =
      recorded.is_ok() && contents->tail != IndexTail::damaged &&
      check_same_stream(again, contents->header, with_fields_of(wanted, contents->header), any_run).is_ok();
  if (!sound) return std::optional<IndexContents>();
  return std::optional<IndexContents>(std::move(*contents));
}

/// Returns the first field of `all` whose name `others` do not have, or nullptr.
const IndexField* first_without(const std::vector<IndexField>& all, const std::vector<IndexField>& others) {
  const auto lacks = [&](const IndexField& each) {
    return std::ranges::find(others, each.name, &IndexField::name) == others.end();
  };
  const auto first = std::ranges::find_if(all, lacks);
  return first == all.end() ? nullptr : &*first;
}

/// Returns what differs between two fields of one name that are not equal.
std::string_view difference_between(const IndexField& one, const IndexField& other) {
  if (one.type != other.type) return "type";
  if (one.shape != other.shape) return "shape";
  return one.section == other.section ? "levels" : "section";
}

/// Checks the fields of a file that the stream goes on in. `file` is its index.
Status check_same_fields(const std::string& file, const IndexHeader& found, const IndexHeader& now) {
  if (const IndexField* const left_out = first_without(found.fields, now.fields))
    return {Code::state,
            cat(file, ": was begun with field '", left_out->name,
                "', which the stream does not have now: all steps of a file have the same fields, "
                "so a run that continues defines what the file has")};
  if (const IndexField* const added = first_without(now.fields, found.fields))
    return {
        Code::state,
        cat(file, ": was begun without field '", added->name,
            "', all steps of a file have the same fields, and no file follows on this one: leave the field "
            "out, give it to another stream, or have files begin with the time, as {valid:%Y%m%d} or "
            "{lead:03h} in the pattern does")};
  for (std::size_t i = 0; i < std::max(found.fields.size(), now.fields.size()); ++i) {
    if (i < found.fields.size() && i < now.fields.size() && found.fields[i] == now.fields[i]) continue;
    const bool is_moved =
        i >= found.fields.size() || i >= now.fields.size() || found.fields[i].name != now.fields[i].name;
    const std::string& name = (i < found.fields.size() ? found : now).fields[i].name;
    return {Code::state, cat(file, ": field ", i, ", '", name,
                             is_moved ? std::string("', comes at another place in what the stream has now")
                                      : cat("', is not what the stream has now: another ",
                                            difference_between(found.fields[i], now.fields[i])),
                             "; a run that continues defines the same stream as before")};
  }
  return {};
}

}  // namespace

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
  if (!(found.time == now.time)) return differs("what its times count");
  if (found.member != now.member) return differs("the member");
  return check_same_fields(file, found, now);
}

Result<std::optional<Pair>> recorded_pair(Target& target, const std::string& data_path,
                                          const IndexHeader& now, const Resuming& resuming, bool any_run) {
  const Result<bool> indexed = target.exists(index_path(data_path));
  TR_TRY(indexed.status());
  Result<IndexContents> first = *indexed ? load_index(target, index_path(data_path)) : IndexContents();
  if (first.status().code() == Code::io) return first.status();
  const bool known = *indexed && first.is_ok();
  if (known) {
    const IndexHeader& header = first->header;
    if (!any_run && is_left_over(header, resuming)) return std::optional<Pair>();
    TR_TRY(check_same_stream(data_path, header, with_fields_of(now, header), any_run));
  }
  const Status recorded = *indexed ? check_has_recorded(target, data_path, first, resuming)
                                   : check_has_step(data_path, {}, resuming);
  if (recorded.code() == Code::io) return recorded;

  // While there is a second pair nothing is written to the first one: the second is the younger.
  Result<std::optional<IndexContents>> second =
      second_pair(target, data_path, known ? first->header : now, resuming, !known && any_run);
  TR_TRY(second.status());
  const bool first_fits = known && recorded.is_ok();
  if (second->has_value() &&
      (!first_fits || recorded_steps(**second, resuming) >= recorded_steps(*first, resuming)))
    return std::optional<Pair>({std::move(**second), true});
  TR_TRY(recorded);
  if (!*indexed) return std::optional<Pair>();
  return std::optional<Pair>({std::move(*first), false});
}

Status check_first_pair(Target& target, const std::string& data_path, const Resuming& resuming) {
  // The index may still have its old name: only a process that writes to the file gives it today's.
  const Result<std::string> index = find_index(target, data_path);
  TR_TRY(index.status());
  const Result<bool> indexed = target.exists(*index);
  TR_TRY(indexed.status());
  if (!*indexed) return check_has_step(data_path, {}, resuming);
  const Result<IndexContents> contents = load_index(target, *index);
  if (contents.is_ok() && is_left_over(contents->header, resuming)) return {};
  return check_has_recorded(target, data_path, contents, resuming);
}

std::string again_path(const std::string& data_path) { return data_path + ".again"; }

Status make_index_durable(Target& target, const std::string& data_path) {
  return storage::make_durable(target, index_path(data_path));
}

Result<IndexWriter> reopen_pair(Target& target, const std::string& data_path,
                                std::optional<std::int64_t> through_lead) {
  const Result<Recovered> recovered = recover(target, data_path, {through_lead});
  TR_TRY(recovered.status());
  TR_TRY(make_index_durable(target, data_path));
  Result<IndexWriter> index = IndexWriter::open_existing(target, index_path(data_path));
  TR_TRY(index.status());
  // The index no longer says that the file is finished: the file loses its ending.
  const Result<bool> exists = target.exists(data_path);
  TR_TRY(exists.status());
  if (*exists && recovered->contents.closed)
    TR_TRY(remove_ending(target, data_path, index->header().format, index->data_end()));
  return index;
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
  // The data are made before the index, and removed after it. Only a replacement that was interrupted leaves
  // an index without data.
  if (*data || !*index) return {};
  // Somebody may have removed the data by hand. Then the index tells of bytes that are not there, and the
  // first pair keeps its own index.
  const Result<IndexContents> moved = load_index(target, index_path(again));
  const Status fits =
      moved.is_ok() ? storage::check_holds(target, data_path, moved->data_end()) : moved.status();
  if (fits.code() == Code::corrupt) return {};
  TR_TRY(fits);
  // A rename of a store may have been interrupted. Opening the store to write completes it.
  Result<std::unique_ptr<File>> data_file = target.open(data_path, OpenMode::existing);
  TR_TRY(data_file.status());
  TR_TRY((*data_file)->close());
  // The rename of the data must not be lost once the index has its new name.
  TR_TRY(target.sync_directory_of(data_path));
  return storage::rename_durably(target, index_path(again), index_path(data_path));
}

Status discard_again(Target& target, const std::string& data_path) {
  const std::string again = again_path(data_path);
  const Result<bool> index = storage::remove_if_there(target, index_path(again));
  TR_TRY(index.status());
  const Result<bool> unfinished = storage::remove_if_there(target, index_path(again) + ".new");
  TR_TRY(unfinished.status());
  const Result<bool> data = target.exists(again);
  TR_TRY(data.status());
  // The removal of the index is made durable before the data go: an index alone would be taken for a
  // replacement on its way. This is done even if the index was gone already, since a process that removed it
  // may have been killed before this.
  if (*index || *unfinished || *data) TR_TRY(target.sync_directory_of(data_path));
  return storage::remove_durably(target, again);
}

Result<IndexWriter> begin_again(Target& target, const std::string& data_path, const IndexHeader& header) {
  TR_TRY(make_index_durable(target, data_path));
  TR_TRY(discard_again(target, data_path));
  const std::string again = again_path(data_path);
  TR_TRY(storage::create_empty(target, again, OpenMode::anew));
  return IndexWriter::create(target, index_path(again), header);
}

Result<IndexWriter> copy_again(Target& target, const std::string& data_path, const IndexContents& published,
                               std::size_t steps) {
  TR_TRY(make_index_durable(target, data_path));
  TR_TRY(discard_again(target, data_path));
  const std::string again = again_path(data_path);
  TR_TRY(storage::check_holds(target, data_path, published.end_of(steps),
                              ranges_of(std::span(published.steps).first(steps))));
  TR_TRY(target.copy(data_path, published.end_of(steps), again));
  TR_TRY(tell_steps(target, again, published.header.format, static_cast<std::int64_t>(steps), true));
  TR_TRY(remove_ending(target, again, published.header.format, published.end_of(steps)));
  TR_TRY(target.sync_directory_of(again));
  const std::string temporary = index_path(again) + ".new";
  TR_TRY(target.copy(index_path(data_path), published.marks[steps].position, temporary));
  TR_TRY(storage::rename_durably(target, temporary, index_path(again)));
  return IndexWriter::open_existing(target, index_path(again));
}

Result<bool> first_holds_again(Target& target, const std::string& data_path) {
  const Result<bool> exists = pair_exists(target, data_path);
  TR_TRY(exists.status());
  if (!*exists) return false;
  const std::string again = again_path(data_path);
  const Result<IndexContents> first = load_index(target, index_path(data_path));
  if (first.status().code() == Code::io) return first.status();
  const Result<IndexContents> second = load_index(target, index_path(again));
  TR_TRY(second.status());
  if (!first.is_ok() || !first->closed || !(first->header == second->header)) return false;
  Result<std::unique_ptr<File>> one = target.open(data_path, OpenMode::read);
  TR_TRY(one.status());
  Result<std::unique_ptr<File>> other = target.open(again, OpenMode::read);
  TR_TRY(other.status());
  const Result<Bytes> size = (*one)->size();
  TR_TRY(size.status());
  if (*size < first->data_end()) return false;
  auto next = first->steps.begin();
  for (const IndexStep& step : second->steps) {
    Result<bool> same = false;
    while (!*same && next != first->steps.end()) {
      same = is_same_step(**one, *next++, **other, step);
      TR_TRY(same.status());
    }
    if (!*same) return false;
  }
  return true;
}

Status replace_by_again(Target& target, const std::string& data_path) {
  // The reference file and the listings tell of the first pair's bytes.
  TR_TRY(storage::remove_durably(target, references_path(data_path)));
  TR_TRY(listings::remove_all(target, data_path));
  TR_TRY(target.rename(again_path(data_path), data_path));
  return end_replacing(target, data_path);
}

Result<Pair> pair_without_checkpoint(Target& target, const std::string& data_path) {
  const std::string again = again_path(data_path);
  Result<IndexContents> first = load_index(target, index_path(data_path));
  TR_TRY(first.status());
  const Result<bool> exists = pair_exists(target, again);
  TR_TRY(exists.status());
  if (!*exists) return Pair{std::move(*first), false};
  Result<IndexContents> second = load_index(target, index_path(again));
  if (second.status().code() == Code::io) return second.status();
  const bool further = second.is_ok() && !second->steps.empty() &&
                       (first->steps.empty() || second->steps.back().lead > first->steps.back().lead);
  if (!further) {
    // The caller removes the second pair. If the first one has lost bytes, the steps of the second may be all
    // that is left.
    if (!first->steps.empty()) TR_TRY(storage::check_holds(target, data_path, first->data_end()));
    return Pair{std::move(*first), false};
  }
  if (second->header == first->header) return Pair{std::move(*second), true};
  return Status(Code::state, cat(again, ": has steps that ", data_path,
                                 " lacks, and is of another run or stream; put the index of ", data_path,
                                 " back as it was, or move ", again, " and its index away"));
}

Status settle_again(Target& target, const std::string& data_path, bool again_holds) {
  if (!again_holds) return discard_again(target, data_path);
  const std::string again = again_path(data_path);
  TR_TRY(recover(target, again).status());
  TR_TRY(make_index_durable(target, again));
  return replace_by_again(target, data_path);
}

}  // namespace tailrace::streams
