// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/files/pairs.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "faces/streams/files/existing_files.hpp"
#include "faces/streams/files/manifest.hpp"
#include "formats/index/ending.hpp"
#include "formats/index/head.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::streams {

using pipeline::Begun;
using pipeline::Opening;

namespace {

Result<OpenPair> opened(Result<IndexWriter> index, bool again) {
  TR_TRY(index.status());
  return OpenPair{nullptr, std::move(*index), again, false, {}, {}};
}

Status give_listings(storage::Target& target, const std::string& path, OpenPair& pair,
                     std::string_view format, const std::vector<codec::Listing>& kinds) {
  for (const codec::Listing& kind : kinds) pair.listings.emplace_back(kind);
  const Result<const formats::Format*> found = formats::find(format);
  const bool has_listings = found.is_ok() && !(*found)->listings.empty();
  // Until a second pair is complete, the first one and its listings stay.
  return pair.again || !has_listings ? Status() : listings::remove_others(target, path, kinds);
}

/// Says what else the user may do where a stream is refused to go on in a file. Behind a checkpoint existing=
/// does not count.
std::string_view advice(bool behind_checkpoint) {
  return behind_checkpoint ? " (or give the stream another name: it begins anew there)"
                           : " (existing=replace begins anew; or choose another pattern)";
}

/// True if all of the stream's fields have no time, and are there: its file is a head.
bool has_head_alone(const Opening& opening, const StreamRequest& request) {
  return !opening.fields.empty() && !request.pattern.depends_on_lead() &&
         std::ranges::all_of(opening.fields, [](const codec::FieldDefinition& field) {
           return !field.has_time && field.values != nullptr;
         });
}

/// Returns an error if the stream's steps cannot follow those in the file. Call it before anything changes
/// the file.
Status check_fits(storage::Target& target, const std::string& data, const IndexContents& contents,
                  const Pairs::Frame& frame, bool behind_checkpoint) {
  const Status places = check_places(data, contents, frame.places);
  if (!places.is_ok()) return {places.code(), cat(places.text(), advice(behind_checkpoint))};
  if (contents.steps.empty()) return {};
  return check_goes_on(target, data, contents.header, frame.head, advice(behind_checkpoint));
}

}  // namespace

std::string written_to(const std::string& path, bool again) { return again ? again_path(path) : path; }

Pairs::Pairs(const Opening& opening, StreamRequest request, Uuid run, std::optional<Resuming> resuming,
             std::shared_ptr<storage::Target> target, Frame frame, std::vector<LeftBehind> left_behind)
    : opening_(opening),
      request_(std::move(request)),
      resuming_(std::move(resuming)),
      target_(std::move(target)),
      frame_(std::move(frame)),
      left_behind_(std::move(left_behind)) {
  const codec::StreamDefinition& stream = opening.definition;
  header_ = {
      run, stream.format, stream.base, stream.calendar, stream.member, static_cast<Bytes>(frame_.head.size()),
      {},  stream.time};
  for (const codec::FieldDefinition& field : opening.fields) {
    header_.fields.push_back(
        {field.name,
         field.type,
         field.shape,
         field.levels.type,
         field.levels.values,
         {field.section.whole, field.section.start, field.section.stop, field.section.stride}});
  }
  is_alone_ = has_head_alone(opening, request_);
  note_left_open();
}

Result<std::string> Pairs::path_of(std::int64_t lead) const {
  if (resuming_ && resuming_->has_passed(lead)) {
    return Status(Code::order, cat("the stream continues behind ", times().at(*resuming_->position.lead),
                                   "; the step at ", times().at(lead), " cannot follow"));
  }
  return request_.pattern.expand(lead, request_.context());
}

Result<Pairs::Beginning> Pairs::begin(const std::string& path, std::int64_t lead, Bytes expected) {
  if (const std::string parent = storage::parent_of(storage::tidy_path(path)); parent != ".")
    TR_TRY(target_->make_directories(parent));
  TR_TRY(wait_for_space(path, expected));
  Result<std::shared_ptr<void>> lock = lock_pair(path);
  TR_TRY(lock.status());
  TR_TRY(check_listings(path));
  Result<std::optional<Pair>> pair = taken_over_pair(path);
  TR_TRY(pair.status());
  if (pair->has_value()) return take_over(path, **pair, std::move(*lock));
  const bool goes_on = resuming_ && opening_.begins_with == 0 && path == resuming_->path;
  Result<OpenPair> file = goes_on ? go_on_with(path) : open_file(path, lead);
  TR_TRY(file.status());
  TR_TRY(begin_data(path, *file));
  file->lock = std::move(*lock);
  TR_TRY(give_listings(*target_, path, *file, header_.format, request_.options.listings));
  return Beginning{{file->index.data_end(), written_to(path, file->again)}, std::move(*file)};
}

Result<std::optional<WholePair>> Pairs::finish(const std::string& path, OpenPair& file) {
  // This run neither finishes nor removes a file that another run has taken.
  if (!file.closed) {
    const Status owner = file.index.check_owner();
    if (owner.code() == Code::state) return owner;
  }
  if (file.index.steps() == 0) {
    TR_TRY(remove_empty(path, file));
    return std::optional<WholePair>();
  }
  if (!file.closed) {
    const std::string data = written_to(path, file.again);
    TR_TRY(storage::check_holds(*target_, data, file.index.data_end()));
    if (!frame_.head.empty()) TR_TRY(file.index.check_owner());
    TR_TRY(tell_steps(*target_, data, header_.format, file.index.steps(), true));
    TR_TRY(end_data(data));
    TR_TRY(file.index.append_closed());
    TR_TRY(file.index.sync());
    file.closed = true;
    TR_TRY(file.index.close());
  }
  if (file.again) TR_TRY(put_in_place(path));
  return std::optional(WholePair{std::move(file.lock), !file.again});
}

/// Takes the lock of both pairs of the file. Ends a replacement that a process before this one has begun: all
/// that looks at the file under the lock relies on that.
Result<std::shared_ptr<void>> Pairs::lock_pair(const std::string& path) {
  Result<std::shared_ptr<void>> lock = target_->lock(lock_path(path));
  TR_TRY(lock.status());
  TR_TRY(end_replacing(*target_, path));
  return lock;
}

/// Writes the ending of the file, if its format has one. The index tells where everything lies.
Status Pairs::end_data(const std::string& data) {
  if (formats::finishing(header_.format) == nullptr) return {};
  const Result<IndexContents> contents = load_index(*target_, index_path(data));
  TR_TRY(contents.status());
  return write_ending(*target_, data, *contents);
}

/// Writes the file of a stream without steps: the head, and in the index one step at lead 0 that has no
/// bytes. So whatever reads, repairs or announces files of streams finds a whole one.
Result<std::optional<WholePair>> Pairs::write_alone(const std::string& path) {
  if (const std::string parent = storage::parent_of(storage::tidy_path(path)); parent != ".")
    TR_TRY(target_->make_directories(parent));
  Result<std::shared_ptr<void>> lock = lock_pair(path);
  TR_TRY(lock.status());
  const Result<bool> is_there = is_written_alone(path);
  TR_TRY(is_there.status());
  if (*is_there) {
    TR_TRY(make_index_durable(*target_, path));
    return std::optional(WholePair{std::move(*lock)});
  }
  TR_TRY(wait_for_space(path, std::ssize(frame_.head)));
  Result<OpenPair> file = begin_anew(path);
  TR_TRY(file.status());
  file->lock = std::move(*lock);
  TR_TRY(begin_data(path, *file));
  const Bytes end = file->index.data_end();
  TR_TRY(file->index.append({0, 0, end, end, {}}));
  TR_TRY(file->index.sync());
  return finish(path, *file);
}

/// Looks at a pair in whose place the file of a stream without steps would come. Returns what it is to this
/// run, or an error if it is a file to go on with and has what this stream lacks: nothing of it may be lost.
Result<Pairs::FoundAlone> Pairs::find_alone(const std::string& data) {
  const Result<bool> indexed = target_->exists(index_path(data));
  TR_TRY(indexed.status());
  if (!*indexed) return FoundAlone::none;
  const Result<IndexContents> found = load_index(*target_, index_path(data));
  if (found.status().code() == Code::io) return found.status();
  if (!found.is_ok()) return goes_on_with_others() ? found.status() : Result<FoundAlone>(FoundAlone::none);
  if (found->header.run != header_.run && !goes_on_with_others()) return FoundAlone::none;
  IndexHeader now = header_;  // the file tells no times
  now.base = found->header.base;
  now.calendar = found->header.calendar;
  now.time = found->header.time;
  const auto with_advice = [&](const Status& status) {
    return resuming_ ? status : Status(status.code(), cat(status.text(), advice(false)));
  };
  const Status same = check_same_stream(data, found->header, now, true);
  if (!same.is_ok()) return with_advice(same);
  if (std::ranges::any_of(found->steps, [](const IndexStep& step) { return !step.records.empty(); }))
    return with_advice(
        {Code::state, cat(data, ": has steps, and all fields of the stream have time=none now")});
  if (!found->closed) return FoundAlone::begun;
  TR_TRY(check_fits(*target_, data, *found, frame_, resuming_.has_value()));
  return FoundAlone::whole;
}

/// Returns true if the file of a stream without steps is there, and this run goes on with it. A run that goes
/// on with other definitions or values gets an error. So does one that would write over steps of its own, or
/// with existing=continue over those of another run.
Result<bool> Pairs::is_written_alone(const std::string& path) {
  TR_TRY(find_alone(again_path(path)).status());
  const Result<FoundAlone> found = find_alone(path);
  TR_TRY(found.status());
  const Result<bool> exists = target_->exists(path), indexed = target_->exists(index_path(path));
  TR_TRY(exists.status());
  TR_TRY(indexed.status());
  if (*exists && *found == FoundAlone::whole) return true;
  if (*exists && *found == FoundAlone::none && request_.options.existing == Existing::fail) {
    const Result<bool> begun_only = is_begun_only(path, *indexed);
    TR_TRY(begun_only.status());
    if (!*begun_only) return exists_already(path);
  }
  return false;
}

Result<std::optional<WholePair>> Pairs::finish_left_open(const std::string& path) {
  if (is_alone_) return write_alone(path);
  if (is_left_behind(path)) {
    Result<std::optional<WholePair>> whole = finish_left_behind(path);
    const int error = whole.status().error_number();
    const bool is_of_storage = whole.status().code() == Code::io || whole.status().code() == Code::space;
    const bool is_tried_again = is_of_storage && error != EACCES && error != EPERM && error != EROFS;
    // This run's own files, behind a change of definitions, must be finished before steps follow.
    if (whole.is_ok() || is_tried_again || opening_.begins_with > 0) return whole;
    // Another user's file, a locked one or a damaged one is not in the way of steps in other files.
    const Result<IndexContents> contents = load_index(*target_, index_path(path));
    if (!contents.is_ok() || !contents->closed)
      log(LogLevel::warn,
          cat(path, ": a run before has left it unfinished, and it stays so: ", whole.status().text()));
    return std::optional<WholePair>();
  }
  if (const std::string parent = storage::parent_of(storage::tidy_path(path)); parent != ".")
    TR_TRY(target_->make_directories(parent));
  Result<std::shared_ptr<void>> lock = lock_pair(path);
  TR_TRY(lock.status());
  const bool another_server = opening_.is_taken_over && (takes_over_steps() || !resuming_);
  if (!another_server) {
    Result<bool> skipped = path == resuming_->path ? was_taken_away(*target_, *resuming_) : is_settled(path);
    TR_TRY(skipped.status());
    if (*skipped) return std::optional<WholePair>();
  }
  Result<std::optional<Pair>> pair = another_server ? taken_over_pair(path) : find_left_open(path, false);
  TR_TRY(pair.status());
  if (!pair->has_value()) return std::optional<WholePair>();
  if ((*pair)->again || !(*pair)->contents.closed) {
    Result<OpenPair> file = another_server   ? reopen(path, (*pair)->again)
                            : (*pair)->again ? reopen(path, true, resuming_->position.lead)
                                             : cut_back(path);
    TR_TRY(file.status());
    file->lock = std::move(*lock);
    return finish(path, *file);
  }
  TR_TRY(discard_again(*target_, path));
  TR_TRY(make_index_durable(*target_, path));
  return std::optional(WholePair{std::move(*lock)});
}

/// Finishes a file that existing=continue has found. Whatever the file is, this run goes on without it.
Result<std::optional<WholePair>> Pairs::finish_left_behind(const std::string& path) {
  Result<std::shared_ptr<void>> lock = lock_pair(path);
  TR_TRY(lock.status());
  const Result<bool> exists = pair_exists(*target_, path);
  TR_TRY(exists.status());
  if (!*exists) return std::optional<WholePair>();
  const Result<Pair> pair = pair_without_checkpoint(*target_, path);
  TR_TRY(pair.status());
  if (pair->contents.steps.empty()) return std::optional<WholePair>();
  TR_TRY(settle_again(*target_, path, pair->again));
  if (pair->contents.closed && !pair->again) {
    TR_TRY(make_index_durable(*target_, path));
    return std::optional(WholePair{std::move(*lock)});
  }
  Result<OpenPair> file = reopen(path, false);
  TR_TRY(file.status());
  file->lock = std::move(*lock);
  Result<std::optional<WholePair>> whole = finish(path, *file);
  if (whole.is_ok() && opening_.begins_with == 0)
    log(LogLevel::warn, cat(path, ": a run before has left it unfinished; it is finished with its ",
                            counted(file->index.steps(), "step")));
  return whole;
}

/// Lists the files for left_open(). If this server takes over, the file in which the server before was
/// writing comes last.
void Pairs::note_left_open() {
  const auto note = [&](const std::string& path) {
    if (!path.empty() && std::ranges::count(left_open_, path) == 0) left_open_.push_back(path);
  };
  if (is_alone_) {
    left_behind_.clear();
    const Result<std::string> path = request_.pattern.expand(0, request_.context());
    if (path.is_ok()) note(*path);
    return;
  }
  Result<std::string> last = Status(Code::state, "no step has a verdict");
  if (takes_over_steps()) last = request_.pattern.expand(opening_.previous_lead, request_.context());
  std::erase_if(left_behind_, [&](const LeftBehind& each) { return last.is_ok() && each.path == *last; });
  for (const LeftBehind& each : left_behind_) note(each.path);
  if (takes_over_steps()) {
    if (last.is_ok()) note(*last);
    return;
  }
  // A stream with new definitions goes on behind files that the one before it has finished.
  if (!resuming_ || opening_.begins_with > 0) return;
  note(resuming_->before);
  note(resuming_->path);
}

bool Pairs::is_left_behind(const std::string& path) const {
  return std::ranges::count(left_behind_, path, &LeftBehind::path) > 0;
}

/// Returns true if steps that have their verdict may be in the file.
bool Pairs::has_decided_steps(const std::string& path) const {
  return takes_over_steps() && !left_open_.empty() && path == left_open_.back();
}

Status Pairs::wait_for_space(const std::string& path, Bytes expected) {
  const Patience patience = request_.options.policy.patience_for_space(std::chrono::seconds(1));
  bool has_told = patience.limit == patience.limit.zero();
  return try_patiently(patience, [&]() -> Status {
    Result<storage::Space> space = target_->space(path);
    TR_TRY(space.status());
    if (space->free >= expected) return {};
    if (!std::exchange(has_told, true))
      log(LogLevel::warn, cat("no space for ", path, " yet; the stream waits for room (on_full=wait)"));
    return {Code::space, cat("no space for ", path, ": the first step takes ", counted(expected, "byte"),
                             ", ", space->free, " are free")};
  });
}

/// Returns the pair that a server before this one has begun in this run, if there is any. In a run that
/// continues, a file without decided steps may be one of its earlier jobs': such a file is written again.
Result<std::optional<Pair>> Pairs::taken_over_pair(const std::string& path) {
  if (!opening_.is_taken_over) return std::optional<Pair>();
  const bool decided = has_decided_steps(path);
  if (!decided && (resuming_ || goes_on_with_others())) return std::optional<Pair>();
  for (const bool again : {true, false}) {
    const std::string data = written_to(path, again);
    const Result<bool> exists = pair_exists(*target_, data);
    TR_TRY(exists.status());
    if (!*exists) continue;
    Result<IndexContents> contents = load_index(*target_, index_path(data));
    if (contents.status().code() == Code::io) return contents.status();
    const bool own = contents.is_ok() && (contents->header.run == header_.run || goes_on_with_others());
    if (!own) continue;
    TR_TRY(check_fits(*target_, data, *contents, frame_, resuming_.has_value()));
    return std::optional(Pair{std::move(*contents), again});
  }
  return std::optional<Pair>();
}

Result<Pairs::Beginning> Pairs::take_over(const std::string& path, const Pair& pair,
                                          std::shared_ptr<void> lock) {
  Begun begun{pair.contents.data_end(), written_to(path, pair.again)};
  for (const IndexStep& step : pair.contents.steps) begun.leads.push_back(step.lead);
  begun.is_finished = pair.contents.closed && !pair.again;
  if (begun.is_finished) return Beginning{std::move(begun), std::nullopt};
  Result<OpenPair> file = reopen(path, pair.again);
  TR_TRY(file.status());
  TR_TRY(begin_data(path, *file));
  file->lock = std::move(lock);
  TR_TRY(give_listings(*target_, path, *file, header_.format, request_.options.listings));
  return Beginning{std::move(begun), std::move(*file)};
}

/// A file without steps gets its head, and an index that tells the head's size. A file with steps keeps its
/// head.
Status Pairs::begin_data(const std::string& path, OpenPair& pair) {
  if (frame_.head.empty()) return {};
  const std::string data = written_to(path, pair.again);
  if (pair.index.steps() > 0) {
    const Result<bool> same = begins_with(*target_, data, header_.format, frame_.head);
    TR_TRY(same.status());
    if (!*same)
      log(LogLevel::warn, cat(data,
                              ": keeps the attributes and coordinates with which it was begun; those of the "
                              "stream are others now"));
    return {};
  }
  if (pair.index.data_end() != header_.data_begin) {
    TR_TRY(pair.index.close());
    Result<IndexWriter> index = IndexWriter::create(*target_, index_path(data), header_);
    TR_TRY(index.status());
    pair.index = std::move(*index);
  }
  return write_head(*target_, data, frame_.head);
}

/// Opens data file and index, empty or continued. Their directory entries are durable.
Result<OpenPair> Pairs::open_file(const std::string& path, std::int64_t lead) {
  Result<bool> exists = target_->exists(path);
  TR_TRY(exists.status());
  Result<bool> indexed = target_->exists(index_path(path));
  TR_TRY(indexed.status());
  TR_TRY(check_is_later(path, *indexed));
  if (resuming_ && *indexed) {
    const Result<IndexContents> found = load_index(*target_, index_path(path));
    if (found.status().code() == Code::io) return found.status();
    const bool own = found.is_ok() && found->header.run == header_.run;
    if (own && found->closed && *exists) return opened(begin_again(*target_, path, header_), true);
    if (own) return begin_anew(path);
  }
  if (!*exists && !*indexed && !resuming_) {
    const Result<bool> taken = take_second_alone(path);
    TR_TRY(taken.status());
    exists = *taken;
    indexed = *taken;
  }
  if (*exists && request_.options.existing == Existing::fail) {
    Result<bool> begun_only = is_begun_only(path, *indexed);
    TR_TRY(begun_only.status());
    if (!*begun_only) return exists_already(path);
  }
  if (goes_on_with_others() && !resuming_ && !*indexed) {
    Result<bool> again = index_again(path);
    TR_TRY(again.status());
    indexed = *again;
  }
  if (*indexed && goes_on_with_others()) {
    const Result<bool> moot = is_begun_by_others(path);
    TR_TRY(moot.status());
    if (!*moot) return opened(continue_index(path, lead), false);
  }
  return begin_anew(path);
}

/// A stream with new definitions does not know which files were finished under those before. Refuses a name
/// that an earlier file of the run has had.
Status Pairs::check_is_later(const std::string& path, bool indexed) const {
  if (opening_.begins_with == 0 || !indexed) return {};
  const Result<IndexContents> found = load_index(*target_, index_path(path));
  if (found.status().code() == Code::io) return found.status();
  if (!found.is_ok() || found->header.run != header_.run || found->steps.empty()) return {};
  if (found->steps.back().lead > opening_.previous_lead) return {};
  return {Code::state, cat(path, ": was complete when a later step went to another file")};
}

/// A second pair has all steps of its file. If the first pair is gone, they are all that is left:
/// existing=continue goes on with them, existing=fail refuses to lose them. Returns true if the second pair
/// has taken the first one's place.
Result<bool> Pairs::take_second_alone(const std::string& path) {
  if (!goes_on_with_others() && request_.options.existing != Existing::fail) return false;
  const std::string again = again_path(path);
  const Result<bool> there = pair_exists(*target_, again);
  TR_TRY(there.status());
  if (!*there) return false;
  const Result<IndexContents> contents = load_index(*target_, index_path(again));
  if (contents.status().code() == Code::io) return contents.status();
  if (!contents.is_ok() || contents->steps.empty()) return false;
  if (!goes_on_with_others()) return exists_already(again);
  TR_TRY(settle_again(*target_, path, true));
  return true;
}

/// Returns true for an empty file without an index: the run that this one continues may have been killed
/// between the creations of data and index.
Result<bool> Pairs::is_begun_only(const std::string& path, bool indexed) {
  if (!resuming_ || indexed) return false;
  const Result<std::optional<Bytes>> size = storage::size_if_there(*target_, path);
  TR_TRY(size.status());
  return *size == 0;
}

/// Returns the steps of a file that has lost its index. The codec recognises the stream's records by their
/// bytes.
Result<FoundSteps> Pairs::find_own_steps(const std::string& path) {
  const Result<std::unique_ptr<codec::Codec>> codec = opening_.codec();
  TR_TRY(codec.status());
  const std::unique_ptr<codec::Finder> finder = (*codec)->finder();
  Result<FoundSteps> found = find_steps(*target_, path, header_, finder.get());
  TR_TRY(found.status());
  for (const IndexStep& step : found->steps) {
    const Result<std::string> named = request_.pattern.expand(step.lead, request_.context());
    if (named.is_ok() && *named == path) continue;
    return Status(Code::state, cat(path, ": has the step at ", times().at(step.lead),
                                   ", which belongs to another file of the stream, and no index beside it; "
                                   "move it away, or lose it with existing=overwrite"));
  }
  return found;
}

/// For existing=continue: indexes a file that has lost its index again, with the whole steps in it. Returns
/// false if there is nothing to index.
Result<bool> Pairs::index_again(const std::string& path) {
  Result<bool> nothing = is_empty_or_indexed(*target_, path);
  TR_TRY(nothing.status());
  if (*nothing) return false;
  // A new index would name another run than the second pair does, and nobody would go on with the second
  // pair's steps then.
  const Result<bool> again = target_->exists(again_path(path));
  TR_TRY(again.status());
  if (*again) {
    return Status(Code::state,
                  cat(path, ": has no index, and steps that follow may be in ", again_path(path), "; put ",
                      index_path(path), " back, or move ", again_path(path), " and its index away"));
  }
  Result<FoundSteps> found = find_own_steps(path);
  TR_TRY(found.status());
  TR_TRY(keep_whole_steps(path, header_, *found));
  TR_TRY(write_index(*target_, path, header_, found->steps));
  log(LogLevel::warn, cat(path, ": had no index and was indexed again from its messages: ",
                          found->steps.size(), found->steps.size() == 1 ? " step" : " steps",
                          found->torn ? "; what lies behind them was not finished and is cut off" : ""));
  return true;
}

/// Refuses to empty a file that this library has not written.
Status Pairs::check_ours(const std::string& path) {
  // A directory stays, and what is beside it.
  if (request_.options.existing == Existing::overwrite)
    return storage::size_if_there(*target_, path).status();
  Result<bool> known = is_empty_or_indexed(*target_, path);
  TR_TRY(known.status());
  return *known ? Status() : find_own_steps(path).status();
}

/// Refuses to write over what somebody else has beside the file under the name of a listing.
Status Pairs::check_listings(const std::string& path) {
  if (request_.options.existing == Existing::overwrite) return {};
  return listings::check_ours(*target_, path, request_.options.listings);
}

Result<OpenPair> Pairs::begin_anew(const std::string& path) {
  TR_TRY(check_ours(path));
  TR_TRY(target_->check_removable(path));
  TR_TRY(remove_ready_marker(*target_, path, request_.options.ready_suffix));
  TR_TRY(discard_again(*target_, path));
  TR_TRY(storage::remove_durably(*target_, references_path(path)));
  TR_TRY(listings::remove_all(*target_, path));
  if (request_.options.existing == Existing::overwrite) {
    for (const codec::Listing& kind : request_.options.listings)
      TR_TRY(listings::remove(*target_, path, kind));
  }
  Result<bool> exists = target_->exists(path);
  TR_TRY(exists.status());
  // One rename puts the new index in the place of the old one. Old data without any index would count as
  // somebody else's.
  if (*exists) {
    Result<IndexWriter> index = IndexWriter::create(*target_, index_path(path), header_);
    TR_TRY(index.status());
    TR_TRY(storage::create_empty(*target_, path));
    return opened(std::move(index), false);
  }
  TR_TRY(remove_index(*target_, path));
  TR_TRY(storage::create_empty(*target_, path));
  Result<IndexWriter> index = IndexWriter::create(*target_, index_path(path), header_);
  // A full disk has room for an empty file and none for its index; nothing tells people whose file it is
  // then.
  if (!index.is_ok()) (void)storage::remove_durably(*target_, path).is_ok();
  return opened(std::move(index), false);
}

/// For existing=continue: returns true if the file has no step, and was begun with other fields. Nothing is
/// lost if it is begun anew.
Result<bool> Pairs::is_begun_by_others(const std::string& path) {
  const Result<Pair> before = pair_without_checkpoint(*target_, path);
  TR_TRY(before.status());
  return before->contents.steps.empty() && !before->contents.closed && !header_.fields.empty() &&
         !has_our_fields(before->contents);
}

/// For existing=continue: continues the file of an earlier run, or of this one if a stream comes back to
/// it.
Result<IndexWriter> Pairs::continue_index(const std::string& path, std::int64_t lead) {
  const Result<Pair> before = pair_without_checkpoint(*target_, path);
  TR_TRY(before.status());
  // The index has room for one set of fields: readers would take steps of other fields for steps of these.
  if (!header_.fields.empty()) {
    const Status same = check_same_stream(path, before->contents.header, header_, true);
    if (!same.is_ok()) return resuming_ ? same : Status(same.code(), cat(same.text(), advice(false)));
  }
  TR_TRY(
      check_fits(*target_, written_to(path, before->again), before->contents, frame_, resuming_.has_value()));
  // A file that cannot be continued stays as it is, closed if it was.
  if (const auto& steps = before->contents.steps; !resuming_ && !steps.empty() && steps.back().lead >= lead) {
    return Status(Code::order,
                  cat(path, " goes up to ", times().at(steps.back().lead), " already; the step at ",
                      times().at(lead), " cannot follow (existing=replace begins anew)"));
  }
  TR_TRY(remove_ready_marker(*target_, path, request_.options.ready_suffix));
  TR_TRY(settle_again(*target_, path, before->again));
  // Steps from `lead` on are cut off: the killed run has written them behind the checkpoint's position.
  return reopen_pair(*target_, path, resuming_ ? std::optional(lead - 1) : std::nullopt);
}

/// Finds the pair of a file that the run before has left. Returns none if no step ever came to this file. If
/// a step comes to it (`goes_on`), the pair must fit to the stream. Otherwise it is finished with the fields
/// and attributes that it has.
Result<std::optional<Pair>> Pairs::find_left_open(const std::string& path, bool goes_on) {
  IndexHeader now = header_;
  if (!goes_on) now.fields.clear();
  Result<std::optional<Pair>> pair = recorded_pair(*target_, path, now, *resuming_, goes_on_with_others());
  TR_TRY(pair.status());
  if (pair->has_value() && goes_on)
    TR_TRY(check_fits(*target_, written_to(path, (*pair)->again), (*pair)->contents, frame_, true));
  return pair;
}

Result<OpenPair> Pairs::go_on_with(const std::string& path) {
  Result<std::optional<Pair>> pair = find_left_open(path, true);
  TR_TRY(pair.status());
  const std::int64_t lead = *resuming_->position.lead;
  if (!pair->has_value()) return open_file(path, lead);
  if ((*pair)->again) return reopen(path, true, lead);
  const IndexContents& contents = (*pair)->contents;
  if (!contents.closed) return cut_back(path);
  return opened(copy_again(*target_, path, contents, contents.steps_up_to(lead)), true);
}

Result<OpenPair> Pairs::cut_back(const std::string& path) {
  TR_TRY(discard_again(*target_, path));
  return reopen(path, false, resuming_->position.lead);
}

/// Opens a pair with its committed steps, up to `through_lead`.
Result<OpenPair> Pairs::reopen(const std::string& path, bool again,
                               std::optional<std::int64_t> through_lead) {
  return opened(reopen_pair(*target_, written_to(path, again), through_lead), again);
}

/// For a file before that of the last step. Returns true if there is nothing to finish: the file is gone, or
/// another run's, and nobody misses it.
Result<bool> Pairs::is_settled(const std::string& path) {
  const Result<bool> indexed = target_->exists(index_path(path));
  TR_TRY(indexed.status());
  if (!*indexed) return true;
  const Result<IndexContents> contents = load_index(*target_, index_path(path));
  TR_TRY(contents.status());
  return contents->header.run != header_.run;
}

/// Puts the second pair in the place of the published one, unless the published pair holds the same bytes, as
/// it does as a rule. Then the published file stays, even with steps to which this run has not come, and
/// programs that wait for the file see no change.
Status Pairs::put_in_place(const std::string& path) {
  // An earlier try may have failed between the two renames.
  TR_TRY(end_replacing(*target_, path));
  const Result<bool> exists = pair_exists(*target_, again_path(path));
  TR_TRY(exists.status());
  Result<bool> held = !*exists;
  if (*exists) held = first_holds_again(*target_, path);
  TR_TRY(held.status());
  return *held ? discard_again(*target_, path) : replace_by_again(*target_, path);
}

Status Pairs::remove_empty(const std::string& path, OpenPair& file) {
  if (!std::exchange(file.closed, true)) TR_TRY(file.index.close());
  // The published file stays.
  if (file.again) return discard_again(*target_, path);
  // A head without an index would look like somebody else's file if this process were killed in between.
  if (!frame_.head.empty()) {
    TR_TRY(storage::create_empty(*target_, path));
    TR_TRY(storage::make_durable(*target_, path));
  }
  TR_TRY(remove_index(*target_, path));
  TR_TRY(storage::remove_if_there(*target_, path).status());
  return target_->sync_directory_of(path);
}

}  // namespace tailrace::streams
