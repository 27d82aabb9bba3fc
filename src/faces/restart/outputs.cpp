// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/restart/outputs.hpp"

#include <algorithm>
#include <set>

#include "faces/restart/intervals.hpp"
#include "faces/restart/run_state.hpp"
#include "formats/index/index.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::restart {

namespace {

using checkpoint::NamedItem;
using streams::Position;

/// Returns the item of an array that a checkpoint has kept.
NamedItem item_of(std::string name, operations::KeptArray& kept) {
  NamedItem item;
  item.name = std::move(name);
  item.array.data = kept.memory->bytes.data();
  item.array.type = kept.type;
  item.array.layout = kept.blocks.get();
  item.keep = kept.memory;
  return item;
}

/// Returns the open stream of a position, or nullptr if the program has closed it: each of its steps is then
/// durable or has failed, and the running saves have its failures (Checkpoint::take_failures()).
const streams::Stream* stream_of(const std::vector<const streams::Stream*>& open, const Position& position) {
  for (const streams::Stream* stream : open) {
    if (stream->name() == position.pattern && stream->position().run == position.run) return stream;
  }
  return nullptr;
}

void note_covered(std::vector<std::string>& all, const std::string& path) {
  const auto is_it = [&](const std::string& other) { return journal::is_same_path(other, path); };
  if (!std::ranges::any_of(all, is_it)) all.push_back(path);
}

/// True if a checkpoint may record the file. Pipes are left out: perhaps nobody reads from them. A rank that
/// does not hold the stream cannot see that the file is a pipe, but has nothing to write to it.
bool may_be_recorded(const OpenFile& each) {
  const files::File& file = *each.file;
  if (file.is_adopted() || !file.mode().writes()) return false;
  return each.records != nullptr || !file.holds_stream() || file.has_position();
}

bool is_recorded(const OpenFile& each) {
  return !each.temporary && each.file->holds_stream() && each.file->has_position();
}

/// Returns the item of one array that a stream has accumulated.
NamedItem item_of(std::string name, ElementType type, const void* data, const streams::Stream::State& state) {
  NamedItem item;
  item.name = std::move(name);
  item.array.data = const_cast<std::byte*>(static_cast<const std::byte*>(data));  // a save only reads it
  item.array.type = type;
  item.array.layout = &state.layout->layout;
  item.array.layout_number = state.layout->id;
  item.array.in_parts = state.layout->in_parts;
  item.array.levels = state.accumulator->what().levels;
  item.keep = state.accumulator->memory();
  return item;
}

/// Packs how far the streams are within intervals. Only the reference of a stream tells, since its puts
/// count.
void put_intervals(Packer& told, const std::vector<const streams::Stream*>& open,
                   const session::Session& session) {
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (open[i]->reference() != session.rank()) continue;
    const std::optional<streams::OpenInterval> interval = open[i]->position().interval;
    if (!interval) continue;
    told.put(static_cast<std::int32_t>(i));
    interval->pack(told);
  }
}

/// The part of a rank's contribution that is for rank 0 alone.
struct ForFirst {
  ByteVector intervals;             // the result of tell_of_intervals()
  std::vector<std::string> shared;  // open shared files of which this rank tells the others
  std::vector<CoveredFile> covered = {};
  std::vector<SharedFlush> flushes = {};
  std::vector<SharedFlush> closed_flushes = {};

  [[nodiscard]] ByteVector pack() const {
    if (intervals.empty() && shared.empty() && covered.empty() && flushes.empty() && closed_flushes.empty())
      return {};  // as on most ranks
    Packer out;
    out.put_bytes(intervals);
    Packer packed;
    put_flushes(packed, flushes);
    out.put_bytes(packed.bytes());
    packed = Packer();
    put_flushes(packed, closed_flushes);
    out.put_bytes(packed.bytes());
    out.put(static_cast<std::int64_t>(covered.size()));
    for (const CoveredFile& each : covered)
      out.put_text(each.path).put(each.size).put(each.sample).put(each.is_restart);
    for (const std::string& path : shared) out.put_text(path);
    return out.take();
  }
  static ForFirst unpack(const ByteVector& told) {
    ForFirst all;
    if (told.empty()) return all;
    Unpacker in(told);
    const auto within = in.get_bytes();
    all.intervals.assign(within.begin(), within.end());
    for (std::vector<SharedFlush>* const list : {&all.flushes, &all.closed_flushes}) {
      Unpacker packed(in.get_bytes());
      if (Result<std::vector<SharedFlush>> flushes = get_flushes(packed); flushes.is_ok())
        *list = std::move(*flushes);
    }
    for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
      CoveredFile each{in.get_text()};
      each.size = in.get<Bytes>();
      each.sample = in.get<std::uint64_t>();
      each.is_restart = in.get<bool>();
      all.covered.push_back(std::move(each));
    }
    while (in.ok() && !in.rest().empty()) all.shared.push_back(in.get_text());
    return all;
  }
};

/// The files that a rank has written to, held until they are durable.
struct Written {
  std::vector<std::shared_ptr<storage::File>> files;
  std::set<std::string> names;     // one name in each directory that has to be synchronised
  std::set<std::string> sidecars;  // of local files
  std::set<std::string> covered;
  journal::ClosedFiles::Due closed;

  void add(const OpenText& text) {
    std::shared_ptr<storage::File> file = text.hold();
    if (file == nullptr) return;
    files.push_back(std::move(file));
    add_directory_of(text.path);
  }
  void add(const CoveredFile& file) {
    covered.insert(file.path);
    add_directory_of(file.path);
  }
  void add_directory_of(const std::string& path) {
    names.insert(storage::parent_of(storage::tidy_path(path)) + "/file");
  }
  void add(const files::File& file) {
    if (std::shared_ptr<storage::File> held = file.hold(); held != nullptr) files.push_back(std::move(held));
    if (!file.holds_stream()) return;
    if (file.owner().group == nullptr) sidecars.insert(files::sidecar_path(file.path()));
    add_directory_of(file.path());
  }
  Status sync(storage::Target& target);
};

Status Written::sync(storage::Target& target) {
  for (const std::shared_ptr<storage::File>& file : files) TR_TRY(file->sync());
  for (const std::string& sidecar : sidecars) TR_TRY(journal::sync_if_there(target, sidecar));
  for (const std::string& path : covered) TR_TRY(journal::sync_if_there(target, path));
  for (const std::string& name : names) TR_TRY(target.sync_directory_of(name));
  files.clear();  // they may be closed now
  return closed.sync(target);
}

}  // namespace

Result<journal::Position> Outputs::position_of(const OpenFile& each, journal::Overwritten overwritten) {
  Result<journal::Position> position =
      each.records ? each.records->recorded_position(overwritten) : each.file->position(overwritten);
  TR_TRY(position.status());
  if (overwritten == journal::Overwritten::journal) return position;  // nothing will be lost
  each.file->note_recorded(position->size);
  files_.note(*position);
  return position;
}

/// Brings every file to rest, even if another one has failed before. A rank that left out a file would
/// disagree with the other ranks on what the file still has to write.
Result<Outputs::Standing> Outputs::stand(const std::string& checkpoint, journal::Overwritten overwritten) {
  checkpoint_ = checkpoint;
  Status first;
  const auto count = [&first](const Status& status) {
    if (first.is_ok()) first = status;
  };
  std::vector<journal::Position> open;
  auto written = std::make_shared<Written>();
  const Open now = open_();
  for (const OpenFile& each : now.files) {
    if (!may_be_recorded(each)) continue;
    count(each.records ? each.records->rest() : each.file->rest());
    if (!each.temporary) written->add(*each.file);
    if (!first.is_ok() || !is_recorded(each)) continue;
    Result<journal::Position> position = position_of(each, overwritten);
    count(position.status());
    if (position.is_ok()) open.push_back(std::move(*position));
  }
  for (const OpenText& text : now.texts) {
    if (service_.session().rank() != 0) break;
    const Result<std::optional<journal::Position>> position =
        guarded([&] { return text.position(overwritten); });
    count(position.status());
    if (!position.is_ok() || !*position) continue;
    if (overwritten == journal::Overwritten::refuse) files_.note(**position);
    open.push_back(**position);
    written->add(text);
  }
  if (now.keep_shared) count(guarded([&] { return now.keep_shared(checkpoint); }));
  const Result<std::vector<CoveredFile>> covered = stand_covered(checkpoint);
  count(covered.status());
  if (covered.is_ok())
    for (const CoveredFile& each : *covered) written->add(each);
  for (const streams::Stream* stream : now.streams) {
    if (stream->in_step() && stream->accumulates())
      count({Code::state,
             cat("stream ", stream->name(),
                 " is inside of a step, of which it has accumulated a part: tr_stream_end comes before "
                 "the save")});
  }
  written->closed = closed_.due();
  TR_TRY(first);
  Packer told;
  const std::vector<std::int64_t> taken = files_.taken();
  Packer intervals;
  put_intervals(intervals, now.streams, service_.session());
  // Most ranks have nothing to tell.
  if (!open.empty() || !taken.empty() || !intervals.bytes().empty()) {
    journal::put_positions(told, open);
    told.put_list(std::span<const std::int64_t>(taken)).put_bytes(intervals.bytes());
  }
  ForFirst first_told{tell_of_intervals(now.streams), {}, *covered, now.shared};
  for (const SharedFlush& each : now.shared) closed_shared_.erase(name_of_shared(each));
  for (const auto& [path, flush] : closed_shared_) first_told.closed_flushes.push_back(flush);
  if (overwritten == journal::Overwritten::journal) first_told.shared = service_.journals().told_shared();
  Standing standing{told.take(), first_told.pack(), {}};
  if (!written->files.empty() || !written->covered.empty() || !written->closed.is_empty())
    standing.make_durable = [written, target = &service_.target()] { return written->sync(*target); };
  return standing;
}

/// On rank 0. Returns what the covered files of the checkpoint hold now.
Result<std::vector<CoveredFile>> Outputs::stand_covered(const std::string& checkpoint) const {
  std::vector<CoveredFile> all;
  if (service_.session().rank() != 0) return all;
  if (const auto found = covered_.find(checkpoint); found != covered_.end()) {
    for (const std::string& path : found->second) {
      Result<CoveredFile> now = guarded([&] { return covered_now(service_.target(), path); });
      TR_TRY(now.status().in("a file that the checkpoint covers"));
      all.push_back(std::move(*now));
    }
  }
  if (restart_file_.empty()) return all;
  if (!storage::is_file(service_.target(), restart_file_))
    return Status(Code::argument, cat(restart_file_,
                                      " is no file: write and close the restart file before "
                                      "the commit that names it"));
  Result<CoveredFile> restart = guarded([&] { return covered_now(service_.target(), restart_file_); });
  TR_TRY(restart.status().in("the restart file of the commit"));
  restart->is_restart = true;
  all.push_back(std::move(*restart));
  return all;
}

Status Outputs::can_cover(const std::string& path) const {
  if (path.empty()) return {Code::argument, "the name of the file is empty"};
  if (service_.session().rank() != 0) return {};
  const Result<storage::Kind> kind = service_.target().kind_of(path);
  TR_TRY(kind.status());
  if (*kind == storage::Kind::directory || *kind == storage::Kind::other)
    return {Code::argument, cat(path, " is no file: a checkpoint covers files that only grow")};
  return {};
}

void Outputs::cover(const std::string& checkpoint, const std::string& path) {
  note_covered(covered_[checkpoint], path);
}

void Outputs::note_closing(const files::File& file) {
  if (file.is_adopted() || !file.mode().writes() || file.hold() == nullptr) return;
  if (!storage::is_file(service_.target(), file.path())) return;
  note_closed(file.path());
  if (file.owner().group == nullptr) note_closed(files::sidecar_path(file.path()));
}

/// Refuses files that more than one rank has open for itself, and shared files: a journal belongs to one
/// rank, and does not see what other ranks or a shared file write over.
Status Outputs::check(const std::vector<ByteVector>& told, const std::vector<ByteVector>& told_first,
                      journal::Overwritten overwritten) const {
  if (overwritten == journal::Overwritten::refuse) return {};
  std::map<std::string, std::size_t> shared;
  for (std::size_t rank = 0; rank < told_first.size(); ++rank) {
    for (const std::string& path : ForFirst::unpack(told_first[rank]).shared) shared.emplace(path, rank);
  }
  std::map<std::string, std::size_t> ranks;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    if (told[rank].empty()) continue;
    Unpacker in(told[rank]);
    const Result<std::vector<journal::Position>> open = journal::get_positions(in);
    TR_TRY(open.status());
    for (const journal::Position& each : *open) {
      const auto found = shared.empty()
                             ? shared.end()
                             : shared.find(journal::name_behind_links(service_.target(), each.path));
      if (found != shared.end())
        return {Code::state,
                cat(each.path, " is open as a shared file, too (tr_shared_open, on rank ", found->second,
                    "): overwritten=journal cannot keep what is written over there; close it before the "
                    "save")};
      const auto [other, is_new] = ranks.emplace(storage::tidy_path(each.path), rank);
      if (is_new || other->second == rank) continue;
      return {Code::state, cat(each.path, " is open on ranks ", other->second, " and ", rank,
                               ", on each for itself: overwritten=journal keeps what is written over only of "
                               "files that are open once; open it on a communicator of these ranks")};
    }
  }
  return {};
}

std::vector<NamedItem> Outputs::own_items() const {
  std::vector<NamedItem> items;
  for (const streams::Stream* stream : open_().streams) {
    for (const streams::Stream::State& state : stream->states()) {
      const operations::Accumulator& accumulator = *state.accumulator;
      items.push_back(item_of(operations::name_of_values(stream->name(), state.field),
                              accumulator.state_type(), accumulator.values(), state));
      if (!accumulator.what().missing) continue;
      items.push_back(item_of(operations::name_of_counts(stream->name(), state.field), ElementType::i32,
                              accumulator.memory()->counts.data(), state));
    }
  }
  // Arrays of the loaded checkpoint that no stream has taken yet are saved once more.
  for (auto& [name, kept] : *kept_) items.push_back(item_of(name, kept));
  return items;
}

/// The name of an item tells which stream and field its array belongs to. The field's layout is not known
/// before the program defines the field: until then the array lies in blocks over the ranks.
Result<std::vector<NamedItem>> Outputs::make_own_items(const checkpoint::Copy& copy) {
  loaded_ = std::make_shared<operations::Kept>();
  session::Session& session = service_.session();
  std::vector<NamedItem> items;
  for (const checkpoint::ItemInfo& item : copy.directory.items) {
    if (!checkpoint::is_own_name(item.name)) continue;
    Index elements = 1;
    for (const Index extent : item.shape) elements *= extent;
    Result<operations::KeptArray> kept = operations::make_kept(item.type, elements, session.rank(),
                                                               session.ranks(), session.memory().budget());
    TR_TRY(kept.status().in(item.name));
    items.push_back(item_of(item.name, loaded_->emplace(item.name, std::move(*kept)).first->second));
  }
  return items;
}

ByteVector Outputs::positions(const std::vector<ByteVector>& told,
                              const std::vector<ByteVector>& told_first) {
  Recorded recorded;
  const std::vector<const streams::Stream*> streams = open_().streams;
  for (const streams::Stream* stream : streams) recorded.streams.push_back(stream->position());
  for (const auto& [pattern, position] : streams_) recorded.streams.push_back(position);
  for (const ByteVector& each : told) {
    if (each.empty()) continue;
    Unpacker in(each);
    const Result<std::vector<journal::Position>> open = journal::get_positions(in);
    if (open.is_ok()) recorded.files.insert(recorded.files.end(), open->begin(), open->end());
    files_.take(in.get_list<std::int64_t>());
    const auto intervals = in.get_bytes();
    for (Unpacker rest(intervals); rest.ok() && !rest.rest().empty();) {
      const auto stream = static_cast<std::size_t>(rest.get<std::int32_t>());
      streams::OpenInterval interval = streams::OpenInterval::unpack(rest);
      if (rest.ok() && stream < recorded.streams.size())
        recorded.streams[stream].interval = std::move(interval);
    }
  }
  std::vector<ByteVector> within;
  for (const ByteVector& each : told_first) {
    ForFirst first = ForFirst::unpack(each);
    within.push_back(std::move(first.intervals));
    recorded.covered.insert(recorded.covered.end(), first.covered.begin(), first.covered.end());
  }
  const std::set<std::string> open_shared = know_shared(told_first);
  for (const auto& [name, flush] : shared_) {
    if (open_shared.contains(name) || may_record_closed(flush)) recorded.shared.push_back(flush);
  }
  note_failures(streams, within, recorded.streams);
  const std::vector<journal::Position> left = files_.left();
  recorded.files.insert(recorded.files.end(), left.begin(), left.end());
  return recorded.pack();
}

/// On rank 0. Notes the flushes of all shared files: of those that are open, and of the others that can be
/// brought back. Returns the names of those that are open.
std::set<std::string> Outputs::know_shared(const std::vector<ByteVector>& told_first) {
  std::vector<SharedFlush> open;
  for (const ByteVector& each : told_first) {
    const ForFirst first = ForFirst::unpack(each);
    open.insert(open.end(), first.flushes.begin(), first.flushes.end());
    for (const SharedFlush& closed : first.closed_flushes) {
      const auto [known, is_new] = shared_.emplace(name_of_shared(closed), closed);
      // Generations of two opens do not compare: FILE.undo.kept tells which open the file has now.
      if (!is_new && (known->second.open != closed.open || known->second.generation < closed.generation)) {
        const Result<std::optional<journal::KeptFlushes>> kept =
            journal::read_kept(service_.target(), closed.path);
        if (kept.is_ok() && *kept && (*kept)->open == closed.open) known->second = closed;
      }
    }
  }
  std::map<std::string, SharedFlush> now;
  for (const SharedFlush& each : open) now[name_of_shared(each)] = each;
  std::erase_if(shared_, [&](const auto& known) {
    const Result<std::optional<journal::KeptFlushes>> kept =
        guarded([&] { return journal::read_kept(service_.target(), known.second.path); });
    const bool is_lost = kept.is_ok() && (!*kept || (*kept)->open != known.second.open);
    if (is_lost && !now.contains(known.first)) warn_of_lost(known.second);
    return is_lost;
  });
  std::set<std::string> names;
  for (const auto& [name, flush] : now) {
    shared_[name] = flush;
    names.insert(name);
  }
  return names;
}

/// On rank 0. Has undo files stay for the checkpoint that is being saved, before its copy counts: the flush
/// was recorded for another checkpoint, whose saves may leave it behind.
bool Outputs::may_record_closed(const SharedFlush& flush) const {
  const Status claimed = guarded([&] { return claim_closed(service_.target(), flush, checkpoint_); });
  if (claimed.is_ok()) return true;
  log(LogLevel::warn, cat("checkpoint ", checkpoint_, " does not record shared file ", flush.path,
                          ", and a load of this save leaves it as it is: ", claimed.text()));
  return false;
}

/// On rank 0. Something that keeps nothing has written a closed file, or begun it anew: saves record it no
/// more, and a load leaves it as it is.
void Outputs::warn_of_lost(const SharedFlush& flush) {
  if (!told_lost_.emplace(flush.path, flush.open).second) return;
  const Result<bool> exists = service_.target().exists(flush.path);
  if (exists.is_ok() && !*exists) return;  // the program, or somebody else, has no need of it any more
  log(LogLevel::warn, cat("shared file ", flush.path,
                          " was begun anew or written without safety= since this run has closed it: saves do "
                          "not record it any more, and a load leaves it as it is"));
}

void Outputs::note_closed_shared(const SharedFlush& last) { closed_shared_[name_of_shared(last)] = last; }

/// Programs may open a file by several names: it must be recorded once.
std::string Outputs::name_of_shared(const SharedFlush& flush) const {
  return journal::name_behind_links(service_.target(), flush.path);
}

Status Outputs::clean_up(const std::string& checkpoint, const std::vector<std::string>& copies) const {
  storage::Target& target = service_.target();
  const Result<std::vector<UselessFlushFiles>> useless = useless_flush_files(target, checkpoint, copies);
  TR_TRY(useless.status());
  for (const UselessFlushFiles& of : *useless) {
    const Status said = journal::raise_lowest_kept(target, of.path, of.open, of.needed);
    if (said.code() == Code::state) continue;  // a restore needs them: they go with the next commit
    TR_TRY(said);
    for (const std::string& each : of.files) TR_TRY(storage::remove_if_there(target, each).status());
  }
  return {};
}

bool Outputs::are_settled(const ByteVector& positions) const {
  const Result<Recorded> recorded = Recorded::unpack(positions);
  if (!recorded.is_ok()) return true;
  const std::vector<const streams::Stream*> open = open_().streams;
  for (const Position& position : recorded->streams) {
    const streams::Stream* const stream = stream_of(open, position);
    if (stream != nullptr && !stream->is_settled_through(position)) return false;
  }
  return true;
}

ByteVector Outputs::with_failures(const ByteVector& positions) const {
  Result<Recorded> recorded = Recorded::unpack(positions);
  if (!recorded.is_ok()) return positions;
  const std::vector<const streams::Stream*> open = open_().streams;
  for (Position& position : recorded->streams) {
    if (const streams::Stream* const stream = stream_of(open, position); stream != nullptr)
      position = stream->with_failures(position);
  }
  return recorded->pack();
}

Status Outputs::unknown_failure(const ByteVector& positions) const {
  const Result<Recorded> recorded = Recorded::unpack(positions);
  if (!recorded.is_ok()) return {};
  const std::vector<const streams::Stream*> open = open_().streams;
  for (const Position& position : recorded->streams) {
    const streams::Stream* const stream = stream_of(open, position);
    if (stream != nullptr && !goes_on_.contains(position.pattern)) TR_TRY(stream->failure_up_to(position));
  }
  return {};
}

void Outputs::note_told() {
  for (const streams::Stream* stream : open_().streams) {
    if (stream->has_failed_step()) told_by_saves_.insert(stream->name());
  }
}

void Outputs::note_going_on() {
  for (const streams::Stream* stream : open_().streams) {
    if (stream->has_told_failure()) goes_on_.insert(stream->name());
  }
  goes_on_.merge(told_by_saves_);
}

Status Outputs::can_keep(const ByteVector& positions) const {
  const Result<Recorded> recorded = Recorded::unpack(positions);
  return recorded.is_ok() ? check_not_shared(*recorded) : Status();  // the caller reports what is damaged
}

/// Returns Code::state if a recorded file is open as a shared file: the shared file keeps what is written
/// over only if the checkpoint had recorded the file before the program opened it.
Status Outputs::check_not_shared(const Recorded& recorded) const {
  for (const journal::Position& position : recorded.files) {
    if (service_.journals().is_shared(service_.target(), position.path))
      return {Code::state, cat(position.path,
                               " is open as a shared file (tr_shared_open), and was recorded to be kept when "
                               "it is written over: open the checkpoint first, then the file")};
  }
  return {};
}

void Outputs::keep_since(const std::string& checkpoint, std::int64_t generation,
                         const ByteVector& positions) {
  const Result<Recorded> recorded = Recorded::unpack(positions);
  if (!recorded.is_ok()) return;  // the caller makes or checks `positions`
  service_.journals().of(service_.target(), checkpoint).begin(generation, recorded->files);
}

std::optional<Position> Outputs::stream(const std::string& pattern) const {
  const auto found = streams_.find(pattern);
  return found != streams_.end() ? std::optional(found->second) : std::nullopt;
}

Status Outputs::prepare_resume(const std::string& checkpoint, const checkpoint::Copy& copy) {
  Result<Recorded> recorded = Recorded::unpack(copy.directory.outputs);
  TR_TRY(recorded.status());
  TR_TRY(check_not_open(*recorded));
  const bool is_first = service_.session().rank() == 0;
  prepared_ = {};
  prepared_.all_covered = covered_;
  if (is_first) {
    for (const CoveredFile& each : recorded->covered) TR_TRY(prepare_covered(each));
  }
  // They stay covered: a program need not name them again.
  for (const CoveredFile& each : recorded->covered) {
    if (!each.is_restart) note_covered(prepared_.all_covered[checkpoint], each.path);
  }
  prepared_.changes_files = !recorded->covered.empty() || !recorded->shared.empty();
  if (is_first) TR_TRY(prepare_shared(std::move(recorded->shared)));
  prepared_.covered = std::move(recorded->covered);
  prepared_.files.load(std::move(recorded->files), copy.generation(), copy.undo);
  for (const Position& position : recorded->streams) {
    for (const streams::FailedStep& failed : position.failed) {
      if (is_first)
        log(LogLevel::warn, cat("stream ", position.pattern, " lacks the step at ",
                                position.time.at(failed.lead), ": ", failed.text));
    }
    prepared_.streams.emplace(position.pattern, position);
  }
  return {};
}

/// On rank 0. Checks that the covered file can be cut back, or notes that it stays as it is.
Status Outputs::prepare_covered(const CoveredFile& file) {
  const Status found = behind_covered(service_.target(), file).status();
  const auto& values = service_.session().settings().values;
  const auto lost_logs = std::ranges::find(values, "lost_logs", &SettingValue::name);
  const bool goes_on = lost_logs != values.end() && lost_logs->value == "go_on";
  if (found.code() != Code::corrupt || file.is_restart || !goes_on) return found;
  log(LogLevel::warn, cat("lost_logs=go_on: the run goes on without what the checkpoint has of ", file.path,
                          ": ", found.text()));
  prepared_.lost.insert(file.path);
  return {};
}

bool Outputs::changes_files() const { return prepared_.changes_files; }

Status Outputs::resume() {
  streams_ = std::move(prepared_.streams);
  files_ = std::move(prepared_.files);
  covered_ = std::move(prepared_.all_covered);
  // Only now: a load that fails must leave nothing in later saves.
  if (loaded_) kept_ = std::move(loaded_);
  closed_shared_.clear();
  shared_.clear();
  if (service_.session().rank() != 0) return {};
  for (const SharedFlush& each : prepared_.shared) {
    const Result<bool> is_back =
        prepared_.shared_there.contains(each.path) ? Result<bool>(true) : bring_shared_back(each);
    TR_TRY(is_back.status());
    if (*is_back) shared_[name_of_shared(each)] = each;
  }
  for (const CoveredFile& each : prepared_.covered)
    if (prepared_.lost.count(each.path) == 0) TR_TRY(cut_covered(service_.target(), each));
  return {};
}

/// On rank 0. Brings a shared file back to the flush that the checkpoint has recorded. Returns Code::state
/// while a program has it open. Warns, leaves the file as it is and returns false if its undo files are
/// damaged, or have gone since prepare_shared() has looked.
Result<bool> Outputs::bring_shared_back(const SharedFlush& to) const {
  const Result<bool> done = guarded([&] { return restore_shared_file(service_.target(), to.path, &to); });
  const std::string what = cat("shared file ", to.path, " is not brought back to its flush before the save");
  if (done.status().code() == Code::state)
    return done.status().in(
        cat(what, ", as a program has it open; after a kill until all its processes have ended"));
  if (!done.is_ok() && done.status().code() != Code::corrupt) return done;
  if (!done.is_ok()) log(LogLevel::warn, cat(what, ": ", done.status().text()));
  if (done.is_ok() && !*done)
    log(LogLevel::warn, cat(what,
                            ": while it was loaded, something has changed the file, or undo files that led "
                            "there were removed"));
  return done.is_ok() && *done;
}

void Outputs::warn_of_left_streams() const {
  if (service_.session().rank() != 0) return;
  for (const auto& [pattern, position] : streams_) {
    std::vector<OutputState> states;
    look_at_stream(service_.target(), position, {}, states);
    for (const OutputState& each : states) {
      if (each.path.empty()) continue;
      const Result<streams::IndexContents> contents =
          streams::load_index(service_.target(), streams::index_path(each.path));
      if (!contents.is_ok() || contents->closed) continue;
      log(LogLevel::warn,
          cat("stream ", pattern, " of the loaded checkpoint was not created by this run: ", each.path,
              " stays unfinished, with ", counted(contents->steps.size(), "step"), "; `tailrace repair ",
              each.path, "` makes it readable, or remove it if nobody needs it"));
    }
  }
}

/// On rank 0. Notes the shared files that are to be brought back. Warns of those to whose recorded flush
/// nothing leads: what the program does about them is its own affair. Fails if storage does.
Status Outputs::prepare_shared(std::vector<SharedFlush> recorded) {
  for (SharedFlush& each : recorded) {
    if (service_.journals().is_shared(service_.target(), each.path)) {
      log(LogLevel::warn,
          cat("shared file ", each.path,
              " was opened before the checkpoint was loaded, and stays as it is: load first"));
      continue;
    }
    const Result<FlushStanding> standing = guarded([&] { return standing_of(service_.target(), each); });
    if (!standing.is_ok() && standing.status().code() != Code::corrupt)
      return standing.status().in(cat("shared file ", each.path));
    if (!standing.is_ok()) {
      log(LogLevel::warn, cat("shared file ", each.path, ": ", standing.status().text()));
    } else if (!standing->is_there && !standing->leads_back) {
      log(LogLevel::warn, cat("shared file ", each.path, " ", standing->text));
    } else {
      if (standing->is_there && !standing->is_left_open) prepared_.shared_there.insert(each.path);
      prepared_.shared.push_back(std::move(each));
    }
  }
  return {};
}

Status Outputs::check_not_open(const Recorded& recorded) const {
  const Open now = open_();
  const auto refused = [](const char* kind, const std::string& name, const char* done) {
    return Status(Code::state, cat(kind, " ", name, " was ", done,
                                   " before the checkpoint was loaded: it cannot go on where the checkpoint "
                                   "has it; load first"));
  };
  TR_TRY(check_not_shared(recorded));
  for (const journal::Position& position : recorded.files) {
    const auto is_it = [&](const std::string& path) { return journal::is_same_path(path, position.path); };
    const auto writes_it = [&](const OpenFile& each) {
      return each.file->mode().writes() && is_it(each.file->path());
    };
    if (std::ranges::any_of(now.files, writes_it) || std::ranges::any_of(now.texts, is_it, &OpenText::path))
      return refused("file", position.path, "opened");
  }
  for (const Position& position : recorded.streams) {
    if (std::ranges::find(now.streams, position.pattern, &streams::Stream::name) != now.streams.end())
      return refused("stream", position.pattern, "created");
  }
  return {};
}

}  // namespace tailrace::restart
