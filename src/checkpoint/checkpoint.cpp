// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint/checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "base/options.hpp"
#include "base/text.hpp"
#include "checkpoint/undo.hpp"
#include "node/available_memory.hpp"

namespace tailrace::checkpoint {

using Direction = Checkpoint::Direction;

namespace {

Status state_error(std::string text) { return {Code::state, std::move(text)}; }

constexpr const char* parts_vote = "the parts of a checkpoint";
constexpr const char* commit_vote = "the commit of a checkpoint";
constexpr std::int64_t longest_delay = 100'000'000;  // nanoseconds

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

/// Returns an error for a single file: the library would lose its copy while it writes the next one.
Status check_files(const std::vector<std::string>& files) {
  std::set<std::filesystem::path> different;
  for (const std::string& file : files) different.insert(std::filesystem::path(file).lexically_normal());
  if (different.size() == files.size() && files.size() > 1) return {};
  return {
      Code::argument,
      "a checkpoint needs two files or more, each of another name: one alone is lost while it is written"};
}

/// The first rank's decisions about a save.
struct Decided {
  std::int64_t generation = 0;
  std::int64_t saved_at = 0;
  std::string path;
};

/// One rank's contribution to the vote on a save, for the first rank alone.
struct ForFirst {
  node::MemoryNeed memory;
  Bytes part_bytes = 0;
};

/// Packs this rank's contribution for all ranks. It is empty unless this is the first rank or has outputs.
ByteVector for_all(const ByteVector& standing, const std::optional<Decided>& decided) {
  if (standing.empty() && !decided) return {};
  Packer out;
  out.put_bytes(standing);
  if (decided) out.put(decided->generation).put(decided->saved_at).put_text(decided->path);
  return out.take();
}

void bring(comm::Vote& vote, const ForFirst& told, const Saving* saving) {
  Packer for_first;
  vote.for_first = for_first.put(told).take();
  if (saving != nullptr) vote.addend = saving->placed_bytes();
}

Decided decisions_in(const comm::Verdict& verdict) {
  Unpacker in(verdict.contributions.front());
  in.get_bytes();  // its outputs
  Decided decided;
  decided.generation = in.get<std::int64_t>();
  decided.saved_at = in.get<std::int64_t>();
  decided.path = in.get_text();
  return decided;
}

/// Returns the contributions of all ranks on the first rank, and nothing on the others.
std::vector<ForFirst> told_first(const comm::Verdict& verdict) {
  std::vector<ForFirst> all;
  for (const ByteVector& each : verdict.for_first) all.push_back(Unpacker(each).get<ForFirst>());
  return all;
}

Status check_memory(const comm::Verdict& verdict) {
  std::vector<node::MemoryNeed> needs;
  for (const ForFirst& each : told_first(verdict)) needs.push_back(each.memory);
  return node::check_nodes(needs, "an asynchronous save captures", "async=off saves without a capture");
}

std::vector<ByteVector> standings_of(const comm::Verdict& verdict) {
  std::vector<ByteVector> standings;
  for (const ByteVector& each : verdict.contributions) {
    const auto standing = Unpacker(each).get_bytes();
    standings.emplace_back(standing.begin(), standing.end());
  }
  return standings;
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::create(Service& service, Outputs& outputs,
                                                       const std::string& name, const std::string& how,
                                                       Result<Options> options,
                                                       std::vector<std::string> files) {
  // This rank takes the number even if it fails below, so that the next checkpoint's number is the same on
  // all ranks.
  const comm::LineNumber number = service.session().board().next_without_data();
  std::string call = cat("tr_checkpoint_create(", name, ", \"", how, "\"");
  for (const std::string& file : files) call += cat(", ", file);
  call += ")";
  Status mine = options.status();
  if (mine.is_ok() && name.empty()) mine = Status(Code::argument, "the name of a checkpoint is empty");
  if (mine.is_ok() && !files.empty()) mine = check_files(files);
  std::unique_ptr<Checkpoint> made(
      new Checkpoint(service, outputs, number, name, options.is_ok() ? *options : Options()));
  const Status opened = guarded([&]() -> Status {
    made->open_copy_on_write();
    return {};
  });
  if (mine.is_ok()) mine = opened;
  Packer told;
  if (service.rank() == 0 && mine.is_ok()) {
    mine = guarded([&] { return made->open_slots(std::move(files)); });
    told.put(Uuid::random().bytes);
    if (mine.is_ok()) mine = guarded([&] { return made->tell_recorded(told); });
  }
  const comm::Verdict verdict = service.session().agree({mine, call, told.take()});
  if (!verdict.status.is_ok()) return verdict.status.in(cat("tr_checkpoint_create(", name, ")"));
  Unpacker in(verdict.contributions.front());
  made->run_.bytes = in.get<std::array<std::uint8_t, 16>>();
  made->keep_recorded(in);
  return made;
}

Checkpoint::Checkpoint(Service& service, Outputs& outputs, comm::LineNumber number, std::string name,
                       Options options)
    : service_(service),
      outputs_(outputs),
      name_(std::move(name)),
      options_(options),
      line_(service.session().board(), number, service.session().computes().shared_members()),
      key_(service.threads().new_own_key()),
      work_(line_.board().add_work([this] { return advance(); })),
      memory_(service.session().budget()) {}

Checkpoint::~Checkpoint() {
  service_.threads().drain(key_);
  line_.board().remove_work(work_);
}

/// Each rank decides for itself whether it captures by copy on write: the saved file does not show it.
void Checkpoint::open_copy_on_write() {
  if (options_.capture != Options::Capture::copy_on_write) return;
  Result<std::unique_ptr<capture::CopyOnWrite>> made = capture::CopyOnWrite::create();
  if (service_.threads().waiting_threads() == 0)
    made = Status(Code::unsupported, "no thread may write (TAILRACE_IO_THREADS=0)");
  if (made.is_ok())
    copy_on_write_ = std::move(*made);
  else
    tell_fallback(made.status());
}

void Checkpoint::tell_fallback(const Status& why) {
  if (!fallback_told_)
    log(service_.rank() == 0 ? LogLevel::warn : LogLevel::info,
        cat("checkpoint ", name_, ": captured by copying, not copy_on_write: ", why.text()));
  fallback_told_ = true;
}

Status Checkpoint::open_slots(std::vector<std::string> files) {
  storage::Target& target = service_.target();
  if (const auto parent = std::filesystem::path(name_).parent_path(); !parent.empty())
    TR_TRY(target.make_directories(parent.string()));
  Result<std::shared_ptr<void>> lock = target.lock(cat(name_, ".lock"));
  // A full disk must not keep a program from loading.
  if (lock.status().code() == Code::space)
    log(LogLevel::warn, cat("checkpoint ", name_, ": no other program is kept out: ", lock.status().text()));
  else if (!lock.is_ok())
    return lock.status();
  else
    lock_ = std::move(*lock);
  slots_.emplace(name_, files.empty() ? Slots::paths(name_, options_.keep) : std::move(files),
                 options_.keep_every);
  return slots_->look(target);
}

/// On the first rank, packs for all ranks the last generation that was begun, and the outputs that each copy
/// has recorded.
Status Checkpoint::tell_recorded(Packer& told) const {
  if (options_.overwritten != journal::Overwritten::journal) return {};
  const Result<std::vector<std::string>> paths = slots_->candidates(service_.target());
  TR_TRY(paths.status());
  told.put(slots_->next_generation() - 1);
  for (const std::string& path : *paths) {
    const Result<Copy> copy = read_directory(service_.target(), path);
    if (!copy.is_ok() && !is_damage(copy.status())) return copy.status();
    if (copy.is_ok()) told.put_bytes(copy->directory.outputs);
  }
  return {};
}

/// Keeps the bytes that any copy has recorded: the program may load any copy, or none, and then write over
/// bytes that the other copies have recorded.
void Checkpoint::keep_recorded(Unpacker& told) {
  if (options_.overwritten != journal::Overwritten::journal) return;
  const auto generation = told.get<std::int64_t>();
  outputs_.keep_since(name_, generation, {});
  while (!told.rest().empty() && told.ok()) {
    const auto outputs = told.get_bytes();
    outputs_.keep_since(name_, generation, {outputs.begin(), outputs.end()});
  }
}

Status Checkpoint::close() {
  const std::string call = cat("tr_checkpoint_close(", name_, ")");
  const bool open = bracket_.has_value();
  bracket_.reset();
  const comm::Verdict verdict = service_.session().agree({{}, call, {}});
  // A save may wait for steps of streams, and the steps for tr_finalize. This save is given up. The
  // destructor waits for running writes before it lets go of the lock.
  if (verdict.ended) return verdict.status.in(call);
  wait_behind("tr_checkpoint_close");
  lock_.reset();
  TR_TRY(verdict.status.in(call));
  TR_TRY(take_failure());
  if (open) return state_error(cat(call, ": a bracket was open: nothing of it was saved or loaded"));
  return {};
}

void Checkpoint::latch(const Status& status) {
  if (latched_.is_ok()) latched_ = status;
}

Status Checkpoint::begin(Direction direction, bool* found) {
  if (found != nullptr) *found = false;
  Status mine;
  if (bracket_)
    mine = state_error("the bracket before has not ended (tr_checkpoint_end)");
  else if (!latched_.is_ok())  // latched by an item that belongs to no bracket
    mine = state_error(std::exchange(latched_, Status()).text());
  const bool saves = direction == Direction::save;
  const std::string call = cat("tr_checkpoint_begin(", name_, saves ? ", TR_SAVE)" : ", TR_LOAD)");
  const comm::Verdict verdict = service_.session().agree({mine, call, ByteVector(behind_ ? 1 : 0)});
  TR_TRY(verdict.status.in(call));
  bracket_ = direction;
  items_.clear();
  dropped_ = false;
  bool busy = false;
  for (const ByteVector& each : verdict.contributions) busy = busy || !each.empty();
  // A load waits for a running save, so that it finds the newest copy.
  const auto policy = saves ? options_.busy : Options::Busy::wait;
  if (busy && policy == Options::Busy::drop) {
    dropped_ = true;
    log(LogLevel::info,
        cat("checkpoint ", name_, ": a save is dropped, since the one before is still being written"));
    return {};
  }
  if (behind_ && policy == Options::Busy::replace) behind_->saving->cancel();
  wait_behind("tr_checkpoint_begin");
  if (!saves) return begin_load(found).in(call);
  return take_failure();
}

void Checkpoint::item(NamedItem item) {
  if (!bracket_) {
    latch(state_error(cat("item ", item.name,
                          " stands outside of tr_checkpoint_begin and tr_checkpoint_end on rank ",
                          service_.rank())));
    return;
  }
  if (item.name.empty()) latch(Status(Code::argument, "the name of an item is empty"));
  for (const NamedItem& other : items_) {
    if (other.name == item.name) latch(Status(Code::argument, cat("item ", item.name, " is named twice")));
  }
  items_.push_back(std::move(item));
}

Status Checkpoint::end() { return end(options_.async); }

Status Checkpoint::end(bool async) {
  const std::string call = cat("tr_checkpoint_end(", name_, ")");
  if (!bracket_) {
    latched_ = {};
    const comm::Verdict verdict =
        service_.session().agree({state_error("no bracket was begun (tr_checkpoint_begin)"), call, {}});
    return verdict.status.in(call);
  }
  const Direction direction = *bracket_;
  const Status status = direction == Direction::save ? end_save(async) : end_load();
  bracket_.reset();
  items_.clear();
  latched_ = {};
  return status.in(call);
}

Status Checkpoint::wait() {
  const std::string call = cat("tr_checkpoint_wait(", name_, ")");
  const comm::Verdict verdict = service_.session().agree({{}, call, {}});
  TR_TRY(verdict.status.in(call));
  wait_behind("tr_checkpoint_wait");
  return take_failure();
}

Progress Checkpoint::progress() const {
  if (left_out_) return Progress::dropped;
  if (!behind_) return progress_;
  using Stage = Behind::Stage;
  const bool here = behind_->stage == Stage::agreeing || behind_->stage == Stage::committing ||
                    behind_->stage == Stage::confirming;
  return here ? Progress::written : Progress::captured;
}

Status Checkpoint::take_failure() {
  if (failure_told_) return {};
  failure_told_ = true;
  return failure_;
}

Result<std::vector<SaveItem>> Checkpoint::save_items(const std::vector<NamedItem>& items) const {
  TR_TRY(latched_);
  if (items.empty()) return Status(Code::argument, "nothing is to be saved: no item was named");
  std::vector<SaveItem> list;
  for (const NamedItem& item : items) {
    arrays::Array array = item.array;
    if (item.scalar) array.layout = item.scalar.get();
    if (!item.halo.empty()) array.halo = &item.halo;
    Result<arrays::Owned> owned = arrays::find_owned(array, service_.rank());
    if (!owned.is_ok()) return owned.status().in(cat("item ", item.name));
    ItemInfo info{item.name, array.type, item.scalar ? std::vector<Index>() : owned->shape};
    list.push_back({std::move(info), std::move(*owned), array.data});
  }
  return list;
}

Status Checkpoint::end_save(bool async) {
  if (dropped_) {
    left_out_ = true;
    return {};
  }
  Result<std::vector<SaveItem>> items = guarded([&] { return save_items(items_); });
  std::string call = cat("tr_checkpoint_end(", name_, ", save");
  for (const NamedItem& item : items_)
    call += cat("; ", item.name, " ", item.scalar ? "scalar" : item.array.text());
  SavePlan plan{{}, options_.mode, {run_, 1}, options_.compression};
  std::optional<Decided> decided;
  ForFirst told;
  // Every rank brings its outputs to rest, even if its items have an error.
  Result<Outputs::Standing> standing = guarded([&] { return outputs_.stand(options_.overwritten); });
  Status mine = items.is_ok() ? standing.status() : items.status();
  std::unique_ptr<Saving> saving;
  if (slots_ && mine.is_ok()) mine = slots_->check_next_generation();
  if (slots_ && mine.is_ok()) {
    plan.id.generation = slots_->next_generation();
    plan.path = slots_->place_for(plan.id.generation);
    plan.saved_at = std::time(nullptr);
    decided = {plan.id.generation, plan.saved_at, plan.path};
  }
  if (mine.is_ok()) {
    mine = guarded([&]() -> Status {
      saving = std::make_unique<Saving>(service_.target(), plan, service_.rank(), service_.size(),
                                        std::move(*items));
      saving->set_make_durable(std::move(standing->make_durable));
      told.part_bytes = saving->part_bytes();
      TR_TRY(async ? memory_.reserve(capture_bytes(*saving)) : Status());
      if (async) told.memory = memory_.need(service_.session().my_node());
      return {};
    });
  }
  comm::Vote vote{mine, call + ")", for_all(standing.is_ok() ? standing->told : ByteVector(), decided)};
  bring(vote, told, saving.get());
  const comm::Verdict verdict = service_.session().agree(std::move(vote));
  Status agreed = verdict.status;
  // Only the first rank knows how much memory every rank needs.
  if (agreed.is_ok())
    agreed = service_.session().agree({check_memory(verdict), call + "): memory", {}}).status;
  if (agreed.is_ok()) agreed = outputs_.check(standings_of(verdict), options_.overwritten);
  if (!async || !agreed.is_ok()) memory_.give_back(!agreed.is_ok());
  if (!agreed.is_ok()) {
    // The save has touched no copy, but the items are not saved.
    left_out_ = false;
    progress_ = Progress::failed;
    failure_ = agreed;
    failure_told_ = true;
    return agreed;
  }
  start(std::move(saving), verdict, async);
  if (async) return {};
  wait_behind("tr_checkpoint_end");
  return take_failure();
}

/// From here on the save runs behind the program. The vote on the parts tells all ranks of later failures.
void Checkpoint::start(std::unique_ptr<Saving> saving, const comm::Verdict& verdict, bool async) {
  left_out_ = false;
  behind_.emplace();
  behind_->began = service_.now();
  behind_->saving = std::move(saving);
  const Status placed = guarded([&]() -> Status {
    TR_TRY(place_parts(verdict));
    if (async) capture(*behind_->saving);
    return {};
  });
  if (!placed.is_ok()) {
    behind_->stage = Behind::Stage::agreeing;
    behind_->vote = line_.agreements().post({placed, parts_vote, {}});
    return;
  }
  behind_->worked = service_.now() - behind_->began;
  // The other ranks of the node capture at the same time, or one after another if they share its cores.
  // Writing must not take a core from them meanwhile.
  const bool alone = service_.size() == 1 || service_.threads().waiting_threads() == 0;
  const bool at_once = async && copy_on_write_ == nullptr;
  const std::int64_t all = behind_->worked * service_.session().ranks_of_a_core();
  const std::int64_t delay = at_once && !alone ? std::min(all, longest_delay) : 0;
  // The copy counts once the first rank's part is sealed. The contents of the outputs must be durable before
  // that.
  const bool must_wait = service_.rank() == 0 && !outputs_.are_settled(behind_->outputs);
  behind_->stage = must_wait ? Behind::Stage::writing : Behind::Stage::sealing;
  if (must_wait) {
    submit([](Saving& each) { return each.write(); }, delay);
  } else {
    submit(
        [](Saving& each) {
          const Status written = each.write();
          return written.is_ok() ? each.seal() : written;
        },
        delay);
  }
}

Bytes Checkpoint::capture_bytes(Saving& saving) const {
  return copy_on_write_ != nullptr ? saving.mirror_bytes() : saving.data_bytes();
}

/// The estimate has room for small items, and for what a mirror leaves free before the first large one.
void Checkpoint::expect(Bytes bytes) {
  if (bytes > 0 && !knows_items_) prepare(bytes + 2 * capture::CopyOnWrite::unit);
}

/// Until its first save, the program keeps half of the memory that the ranks of its node share. Without
/// threads, each save makes the memory that it needs.
void Checkpoint::prepare(Bytes bytes) {
  if (!options_.async || service_.threads().waiting_threads() == 0) return;
  const Status prepared = guarded([&]() -> Status {
    const int ranks = service_.session().ranks_of_my_node();
    memory_.prepare(bytes, [ranks] { return node::available_memory() / (2 * ranks); });
    return {};
  });
  if (!prepared.is_ok()) log(LogLevel::debug, cat("checkpoint ", name_, ": ", prepared.text()));
}

void Checkpoint::expect(const std::vector<NamedItem>& items) {
  const Status expected = guarded([&]() -> Status {
    Result<std::vector<SaveItem>> list = save_items(items);
    TR_TRY(list.status());
    Saving saving(service_.target(), {}, service_.rank(), service_.size(), std::move(*list));
    knows_items_ = true;
    prepare(capture_bytes(saving));
    return {};
  });
  // If the program saves these items, the save returns the error.
  if (!expected.is_ok()) log(LogLevel::debug, cat("checkpoint ", name_, ": ", expected.text()));
}

void Checkpoint::capture(Saving& saving) {
  memory_.touch();
  if (copy_on_write_ == nullptr) {
    saving.capture(memory_.data());
    return;
  }
  const Status behind = saving.capture_behind(memory_.data(), *copy_on_write_);
  if (!behind.is_ok()) tell_fallback(behind);
}

/// Evaluates the vote of a save: the first rank's decisions, the outputs of all ranks, and the place of this
/// rank's part. The first rank also places the parts of all ranks.
Status Checkpoint::place_parts(const comm::Verdict& verdict) {
  SavePlan plan = behind_->saving->plan();
  const Decided first = decisions_in(verdict);
  plan.id.generation = first.generation;
  plan.saved_at = first.saved_at;
  plan.path = first.path;
  behind_->saving->know(plan);
  if (slots_) slots_->begun(plan.id.generation, plan.path);
  behind_->outputs = outputs_.with_failures(outputs_.positions(standings_of(verdict)));
  if (options_.overwritten == journal::Overwritten::journal)
    outputs_.keep_since(name_, plan.id.generation, behind_->outputs);
  if (slots_) clean_up_undo_files(*behind_->saving);
  behind_->saving->place_behind(verdict.before);
  if (service_.rank() == 0) {
    std::vector<Bytes> part_bytes;
    for (const ForFirst& each : told_first(verdict)) part_bytes.push_back(each.part_bytes);
    behind_->saving->place(part_bytes);
  }
  behind_->saving->set_outputs(behind_->outputs);
  return {};
}

/// Once this copy is committed, the save removes the undo files that no copy needs any more.
void Checkpoint::clean_up_undo_files(Saving& saving) {
  const auto oldest = [this](const Copy& copy) {
    return outputs_.oldest_undo(copy.directory.outputs, copy.generation());
  };
  saving.set_clean_up([this, oldest] {
    const Status removed = guarded([&]() -> Status {
      const Result<std::vector<std::string>> paths = slots_->candidates(service_.target());
      TR_TRY(paths.status());
      const Result<std::vector<journal::UndoName>> useless =
          useless_undo_files(service_.target(), name_, *paths, oldest);
      TR_TRY(useless.status());
      for (const journal::UndoName& each : *useless) TR_TRY(service_.target().remove(each.path));
      return {};
    });
    if (!removed.is_ok()) log(LogLevel::info, removed.text());
  });
}

void Checkpoint::submit(Status (*body)(Saving&), std::int64_t delay) {
  behind_->task = std::make_shared<Behind::Task>();
  service_.threads().submit(key_, [task = behind_->task, saving = behind_->saving.get(), body, delay] {
    if (delay > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(delay));
    const auto begin = std::chrono::steady_clock::now();
    task->status = guarded([&] { return body(*saving); });
    task->nanoseconds = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    task->done.store(true, std::memory_order_release);
  });
}

bool Checkpoint::advance() {
  using Stage = Behind::Stage;
  if (!behind_) return false;
  // Take the failures now: the program may close the streams that know of them before the data is written.
  const bool outputs_open = behind_->stage == Stage::writing || behind_->stage == Stage::waiting_for_outputs;
  if (outputs_open) behind_->outputs = outputs_.with_failures(behind_->outputs);
  if (behind_->task != nullptr) {
    if (!behind_->task->done.load(std::memory_order_acquire)) return false;
    after_task();
    return true;
  }
  if (behind_->stage == Stage::waiting_for_outputs) {
    if (!outputs_.are_settled(behind_->outputs)) return false;
    behind_->stage = Stage::sealing;
    behind_->saving->set_outputs(behind_->outputs);
    submit([](Saving& each) { return each.seal(); });
    return true;
  }
  const std::optional<comm::Verdict> verdict = line_.agreements().take(behind_->vote);
  if (!verdict) return false;
  after_vote(verdict->status);
  return true;
}

void Checkpoint::after_task() {
  using Stage = Behind::Stage;
  Status status = behind_->task->status;
  behind_->worked += behind_->task->nanoseconds;
  behind_->task.reset();
  if (behind_->stage == Stage::writing && status.is_ok()) {
    behind_->stage = Stage::waiting_for_outputs;
    return;
  }
  if (!status.is_ok())
    status =
        status.in(cat("checkpoint ", name_, ": saving generation ", behind_->saving->plan().id.generation));
  const bool sealed = behind_->stage != Stage::committing;
  behind_->stage = sealed ? Stage::agreeing : Stage::confirming;
  behind_->vote = line_.agreements().post({status, sealed ? parts_vote : commit_vote, {}});
}

void Checkpoint::after_vote(const Status& verdict) {
  using Stage = Behind::Stage;
  if (!verdict.is_ok() || behind_->stage == Stage::confirming) {
    end_behind(verdict);
    return;
  }
  if (service_.rank() == 0) {
    behind_->stage = Stage::committing;
    submit([](Saving& each) { return each.commit(); });
    return;
  }
  behind_->stage = Stage::confirming;
  behind_->vote = line_.agreements().post({{}, commit_vote, {}});
}

void Checkpoint::end_behind(const Status& status) {
  const SavePlan& plan = behind_->saving->plan();
  const double took = seconds(service_.now() - behind_->began);
  if (!status.is_ok()) behind_->saving->abandon();
  const Status closed = behind_->saving->close();
  // No other save will take this place.
  if (!status.is_ok() && slots_ && !slots_->has(plan.path)) behind_->saving->remove();
  if (!closed.is_ok()) log(LogLevel::info, closed.text());  // everything that counts was synchronised before
  if (status.is_ok()) {
    service_.session().note_save_seconds(seconds(behind_->worked));
    progress_ = Progress::committed;
    generation_ = plan.id.generation;
    failure_ = {};
    failure_told_ = true;
    if (slots_) {
      slots_->committed(plan.id.generation, plan.path);
      log(LogLevel::info, cat("checkpoint ", name_, ": generation ", plan.id.generation, " is committed in ",
                              plan.path, " after ", took, " s"));
    }
  } else if (is_given_up(status)) {
    // The verdict decides, and not whether this rank has cancelled. If the save failed otherwise, some ranks
    // may have known the failure before they cancelled, and all ranks must return the same.
    progress_ = Progress::dropped;
  } else {
    left_out_ = false;  // a failure that the program has not heard of counts more
    progress_ = Progress::failed;
    failure_ = status;
    failure_told_ = false;
  }
  behind_.reset();
}

void Checkpoint::wait_behind(const char* call) {
  if (!behind_) return;
  service_.session().wait([&] { return !behind_; },
                          cat("the save before to end, in ", call, "(", name_, ")"));
}

}  // namespace tailrace::checkpoint
