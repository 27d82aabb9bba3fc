// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/saves.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/node/available_memory.hpp"

namespace tailrace::checkpoint {

namespace {

constexpr const char* room_vote = "the link in the place of a checkpoint's file";
constexpr const char* parts_vote = "the parts of a checkpoint";
constexpr const char* commit_vote = "the commit of a checkpoint";
constexpr std::int64_t longest_delay = 100'000'000;  // nanoseconds

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

/// One rank's contribution to the vote on a save, for the first rank alone.
struct ForFirst {
  node::MemoryNeed memory;
  Bytes part_bytes = 0;
};

/// Packs this rank's contribution for all ranks: its outputs and, on the first rank, what this rank has
/// decided. Returns no bytes if there is neither.
ByteVector for_all(const ByteVector& standing, const SavePlan* decided) {
  if (standing.empty() && decided == nullptr) return {};
  Packer out;
  out.put_bytes(standing);
  if (decided != nullptr) {
    out.put(decided->id.generation).put(decided->saved_at);
    out.put_text(decided->path).put(decided->is_given).put(decided->is_link);
  }
  return out.take();
}

/// Takes over the first rank's decisions.
void take_decisions(const comm::Verdict& verdict, SavePlan& plan) {
  Unpacker in(verdict.contributions.front());
  in.get_bytes();  // the first rank's outputs
  plan.id.generation = in.get<std::int64_t>();
  plan.saved_at = in.get<std::int64_t>();
  plan.path = in.get_text();
  plan.is_given = in.get<bool>();
  plan.is_link = in.get<bool>();
}

/// Checks that the captures of all ranks fit into their nodes. Only the first rank knows how much memory each
/// rank needs.
Status check_memory(const comm::Verdict& verdict) {
  std::vector<node::MemoryNeed> needs;
  for (const ByteVector& each : verdict.for_first) needs.push_back(Unpacker(each).get<ForFirst>().memory);
  return node::check_nodes(needs, "an asynchronous save captures", "async=off saves without a capture");
}

/// Returns each rank's Standing::told.
std::vector<ByteVector> standings_of(const comm::Verdict& verdict) {
  std::vector<ByteVector> standings;
  for (const ByteVector& each : verdict.contributions) {
    const auto standing = Unpacker(each).get_bytes();
    standings.emplace_back(standing.begin(), standing.end());
  }
  return standings;
}

/// On the first rank: returns each rank's Standing::told_first.
std::vector<ByteVector> standings_for_first(const comm::Verdict& verdict) {
  std::vector<ByteVector> standings;
  for (const ByteVector& each : verdict.for_first) {
    Unpacker in(each);
    (void)in.get<ForFirst>();
    const auto standing = in.get_bytes();
    standings.emplace_back(standing.begin(), standing.end());
  }
  return standings;
}

/// Writes and seals a part in one task. If there is a gate, the sealing waits for it, and a gate that is shut
/// leaves it out.
Status write_and_seal(Saving& saving, SealGate* gate) {
  TR_TRY(saving.write());
  if (gate != nullptr && !gate->pass()) return {};
  return saving.seal();
}

}  // namespace

void SaveCapture::open() {
  if (context_.options.capture != Options::Capture::copy_on_write) return;
  Result<std::unique_ptr<capture::CopyOnWrite>> made = capture::CopyOnWrite::create();
  if (!context_.has_threads())
    made = Status(Code::unsupported, "no thread may write (TAILRACE_IO_THREADS=0)");
  if (made.is_ok())
    copy_on_write_ = std::move(*made);
  else
    tell_fallback(made.status());
}

void SaveCapture::tell_fallback(const Status& why) {
  if (std::exchange(fallback_told_, true)) return;
  log(context_.is_first() ? LogLevel::warn : LogLevel::info,
      cat("checkpoint ", context_.name, ": captured by copying, not copy_on_write: ", why.text()));
}

/// Adds room to the estimate: for small items, and for the gap that a mirror leaves before the first large
/// item.
void SaveCapture::expect(Bytes bytes) {
  if (bytes > 0 && !knows_items_) prepare(bytes + 2 * capture::CopyOnWrite::unit);
}

void SaveCapture::expect(const std::vector<NamedItem>& items) {
  const Status expected = guarded([&]() -> Status {
    Result<std::vector<SaveItem>> list = to_save(items, context_.session.rank());
    TR_TRY(list.status());
    Saving saving(context_.target(), {}, context_.session.rank(), context_.session.ranks(), std::move(*list));
    knows_items_ = true;
    prepare(bytes_of(saving));
    return {};
  });
  // If the program saves these items, the save returns the error.
  if (!expected.is_ok()) log(LogLevel::debug, cat("checkpoint ", context_.name, ": ", expected.text()));
}

/// Has a thread make memory for the first save. The ranks of a node together take at most half of the memory
/// that is available, since the program may need the rest. Without threads, each save makes the memory that
/// it needs.
void SaveCapture::prepare(Bytes bytes) {
  if (!context_.options.async || !context_.has_threads()) return;
  const Status prepared = guarded([&]() -> Status {
    const session::Topology& topology = context_.session.topology();
    const int ranks = topology.ranks_on(topology.node());
    memory_.prepare(bytes, [ranks] { return node::available_memory() / (2 * ranks); });
    return {};
  });
  if (!prepared.is_ok()) log(LogLevel::debug, cat("checkpoint ", context_.name, ": ", prepared.text()));
}

Bytes SaveCapture::bytes_of(Saving& saving) const {
  return copy_on_write_ != nullptr ? saving.mirror_bytes() : saving.data_bytes();
}

void SaveCapture::take(Saving& saving) {
  memory_.touch();
  if (copy_on_write_ == nullptr) {
    saving.capture(memory_.data());
    return;
  }
  const Status behind = saving.capture_behind(memory_.data(), *copy_on_write_);
  if (!behind.is_ok()) tell_fallback(behind);
}

RunningSave::RunningSave(Context& context, comm::Line& line, executor::Key key,
                         std::unique_ptr<Saving> saving)
    : context_(context), line_(line), key_(key), saving_(std::move(saving)), began_(now()) {}

void RunningSave::start(const comm::Verdict& begun, SaveCapture* capture) {
  const Status placed = guarded([&]() -> Status {
    place(begun);
    if (capture != nullptr) capture->take(*saving_);
    return {};
  });
  if (!placed.is_ok()) {
    vote(Stage::agreeing, placed);
    return;
  }
  worked_ = age();
  // This rank begins to write only when the other ranks of its node have probably captured, too: at the same
  // time, or one after another if they share the cores. Otherwise the writing would take a core from them.
  const bool alone = context_.session.ranks() == 1 || !context_.has_threads();
  const bool at_once = capture != nullptr && capture->is_at_once();
  const std::int64_t all = worked_ * context_.session.topology().ranks_of_a_core();
  delay_ = at_once && !alone ? std::min(all, longest_delay) : 0;
  if (!plan().is_link) return write();
  // No rank may open the file before the first rank has removed the link. The first rank removes it only now,
  // since all ranks have voted for the save: until then a load needs the copy behind the link.
  stage_ = Stage::making_room;
  if (context_.is_first())
    submit([](Saving& each) { return each.make_room(); });
  else
    vote(Stage::making_room, {});
}

void RunningSave::write() {
  // Once the first rank has sealed its part, the copy counts. The outputs that the copy records must be
  // durable before that, and the program must go on knowing which steps failed.
  const Outputs& outputs = context_.outputs;
  const bool can_seal =
      unknown_.is_ok() && outputs.are_settled(outputs_) && outputs.unknown_failure(outputs_).is_ok();
  const bool must_wait = context_.is_first() && !can_seal;
  if (stage_ == Stage::making_room) saving_->set_outputs(outputs_);  // steps may have failed meanwhile
  stage_ = must_wait ? Stage::writing : Stage::sealing;
  // The thread can wait for steps alone: a failure that the program does not know fails the save.
  const bool may_seal = unknown_.is_ok() && outputs.unknown_failure(outputs_).is_ok();
  std::function<std::optional<bool>()> settled;
  if (must_wait && may_seal && context_.has_threads()) settled = outputs.settled_for_threads();
  if (settled) gate_ = std::make_shared<SealGate>(std::move(settled));
  const bool only_writes = must_wait && !gate_;
  submit([only_writes, gate = gate_](
             Saving& each) { return only_writes ? each.write() : write_and_seal(each, gate.get()); },
         std::exchange(delay_, 0));
}

/// Evaluates the vote that begins the save: the first rank's decisions, the outputs of all ranks, and the
/// place of this rank's part. The first rank also places the parts of all ranks.
void RunningSave::place(const comm::Verdict& begun) {
  SavePlan plan = saving_->plan();
  take_decisions(begun, plan);
  saving_->know(plan);
  if (context_.slots) {
    context_.slots->begun(plan.id.generation, plan.path);
    saving_->set_failed(context_.slots->failed());
    clean_up_undo_files();
  }
  outputs_ = context_.outputs.with_failures(
      context_.outputs.positions(standings_of(begun), standings_for_first(begun)));
  if (context_.options.overwritten == journal::Overwritten::journal)
    context_.outputs.keep_since(context_.name, plan.id.generation, outputs_);
  saving_->place_behind(begun.before);
  if (context_.is_first()) {
    std::vector<Bytes> part_bytes;
    for (const ByteVector& each : begun.for_first)
      part_bytes.push_back(Unpacker(each).get<ForFirst>().part_bytes);
    saving_->place(part_bytes);
  }
  saving_->set_outputs(outputs_);
}

/// Has the save remove the undo files that no copy needs any more, once this copy is committed.
void RunningSave::clean_up_undo_files() {
  saving_->set_clean_up([&context = context_]() -> Status {
    const auto oldest = [&](const Copy& copy) { return context.outputs.oldest_undo(copy); };
    const Result<std::vector<std::string>> paths = context.slots->candidates(context.target());
    TR_TRY(paths.status());
    const Result<std::vector<journal::UndoName>> useless =
        useless_undo_files(context.target(), context.name, *paths, oldest);
    TR_TRY(useless.status());
    for (const journal::UndoName& each : *useless)
      TR_TRY(storage::remove_if_there(context.target(), each.path).status());
    return context.outputs.clean_up(context.name, *paths);
  });
}

void RunningSave::submit(std::function<Status(Saving&)> body, std::int64_t delay) {
  task_ = std::make_shared<Task>();
  const auto job = [task = task_, saving = saving_.get(), body = std::move(body), delay] {
    if (delay > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(delay));
    const auto begin = std::chrono::steady_clock::now();
    task->status = guarded([&] { return body(*saving); });
    task->nanoseconds = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    task->done.store(true, std::memory_order_release);
  };
  context_.session.threads().submit(key_, job);
}

void RunningSave::vote(Stage next, const Status& mine) {
  stage_ = next;
  const char* const about = next == Stage::making_room ? room_vote
                            : next == Stage::agreeing  ? parts_vote
                                                       : commit_vote;
  vote_ = line_.agreements().post({mine, about, {}});
}

bool RunningSave::advance() {
  if (stage_ <= Stage::waiting_for_outputs) outputs_ = context_.outputs.with_failures(outputs_);
  if (task_ != nullptr) {
    if (!task_->done.load(std::memory_order_acquire)) return gate_ && decide_gate();
    after_task();
    return true;
  }
  if (stage_ == Stage::waiting_for_outputs) return settle_outputs();
  const std::optional<comm::Verdict> verdict = line_.agreements().take(vote_);
  if (!verdict) return false;
  after_vote(verdict->status);
  return true;
}

/// The streams that know of the failures will be gone when the data is written. The program may have been
/// told by the call that closes a stream, but nobody sees whether it goes on: the save fails.
void RunningSave::take_failures() {
  if (stage_ > Stage::waiting_for_outputs) return;
  outputs_ = context_.outputs.with_failures(outputs_);
  if (unknown_.is_ok() && context_.is_first()) unknown_ = context_.outputs.unknown_failure(outputs_);
}

/// Returns true once this rank knows how every step has ended that the copy records. unknown_ is then the
/// failure that the program does not know, if there is one.
bool RunningSave::know_outputs() {
  if (!unknown_.is_ok()) return true;
  if (!context_.outputs.are_settled(outputs_)) return false;
  unknown_ = context_.outputs.unknown_failure(outputs_);
  return true;
}

/// While the thread waits at the gate: decides about the gate as settle_outputs() does about the sealing.
/// Returns true if it has decided; the thread may have done so before.
bool RunningSave::decide_gate() {
  if (!gate_->is_awaited() || !know_outputs()) return false;
  if (!unknown_.is_ok()) return gate_->shut();
  return gate_->open([this] { saving_->set_outputs(outputs_); });
}

/// Seals the part once every step that the copy records is durable or has failed. Fails the save if a step
/// has failed and the program has not gone on knowing it: a program that stops for the failure must find a
/// copy from before the step, since a run that loads a later copy never writes the step. Returns false if
/// there is more to wait for.
bool RunningSave::settle_outputs() {
  if (!know_outputs()) return false;
  if (unknown_.is_ok()) {
    stage_ = Stage::sealing;
    saving_->set_outputs(outputs_);
    submit([](Saving& each) { return each.seal(); });
  } else {
    vote(Stage::agreeing,
         unknown_.in(cat("checkpoint ", context_.name, ": generation ", plan().id.generation,
                         " is not committed, so that a run can go on before a step that has failed")));
  }
  return true;
}

void RunningSave::after_task() {
  Status status = task_->status;
  worked_ += task_->nanoseconds;
  if (stage_ == Stage::writing && gate_) worked_ -= gate_->waited();
  task_.reset();
  const bool is_sealed = gate_ && gate_->is_open();
  if (stage_ == Stage::writing && status.is_ok() && !is_sealed) {
    stage_ = Stage::waiting_for_outputs;
    return;
  }
  if (!status.is_ok())
    status = status.in(cat("checkpoint ", context_.name, ": saving generation ", plan().id.generation));
  vote(stage_ == Stage::making_room  ? Stage::making_room
       : stage_ == Stage::committing ? Stage::confirming
                                     : Stage::agreeing,
       status);
}

void RunningSave::after_vote(const Status& verdict) {
  if (!verdict.is_ok() || stage_ == Stage::confirming) {
    verdict_ = verdict;
  } else if (stage_ == Stage::making_room) {
    write();
  } else if (context_.is_first()) {
    stage_ = Stage::committing;
    submit([](Saving& each) { return each.commit(); });
  } else {
    vote(Stage::confirming, {});
  }
}

void RunningSave::close() {
  const bool failed = !verdict_->is_ok();
  if (failed) saving_->abandon();
  const Status closed = saving_->close();
  if (failed && context_.slots && !context_.slots->has(plan().path)) saving_->remove();
  if (!closed.is_ok()) log(LogLevel::info, closed.text());  // everything that counts was synchronised before
}

Saves::Saves(Context& context, comm::LineNumber number)
    : context_(context),
      line_(context.session.board(), number, context.session.computes().members()),
      key_(context.session.threads().new_own_key()),
      work_(line_.board().add_work([this] { return advance(); })),
      capture_(context) {}

Saves::~Saves() {
  stop_waiting();
  context_.session.threads().drain(key_);
  line_.board().remove_work(work_);
}

namespace {

/// Takes the program's items, and those that the library adds to them.
Status take_items(const Items& named, const Outputs& outputs, Items& items) {
  return guarded([&]() -> Status {
    items = named;
    if (!named.list().empty()) items.add_own(outputs.own_items());
    return {};
  });
}

}  // namespace

Status Saves::decide(SavePlan& plan) {
  Slots& slots = *context_.slots;
  plan.id.generation = slots.next_generation();
  plan.path = slots.place_for(plan.id.generation);
  plan.is_given = slots.are_given();
  const Result<bool> is_link = slots.check(context_.target(), plan.path, plan.mode, context_.session.ranks());
  TR_TRY(is_link.status());
  plan.is_link = *is_link;
  plan.saved_at = std::time(nullptr);
  return {};
}

Status Saves::save(const Items& named, bool async) {
  Items items;
  const Status made = take_items(named, context_.outputs, items);
  const std::string call = cat("tr_checkpoint_end(", context_.name, ", save", items.text(), ")");
  session::Session& session = context_.session;
  SavePlan plan{{}, context_.options.mode, {context_.run, 1}, context_.options.compression};
  comm::Vote vote{{}, call, {}};
  std::unique_ptr<Saving> saving;
  // Every rank brings its outputs to rest, even if its items have an error.
  Result<Outputs::Standing> standing =
      guarded([&] { return context_.outputs.stand(context_.name, context_.options.overwritten); });
  vote.status = items.error().is_ok() ? standing.status() : items.error();
  if (!made.is_ok()) vote.status = made;
  if (context_.slots && vote.status.is_ok()) vote.status = context_.slots->check_next_generation();
  if (vote.status.is_ok()) {
    vote.status = guarded([&]() -> Status {
      Result<std::vector<SaveItem>> list = to_save(items.list(), session.rank());
      TR_TRY(list.status());
      if (context_.slots) TR_TRY(decide(plan));
      saving = std::make_unique<Saving>(context_.target(), plan, session.rank(), session.ranks(),
                                        std::move(*list));
      saving->set_make_durable(std::move(standing->make_durable));
      ForFirst told{{}, saving->part_bytes()};
      if (async) {
        TR_TRY(capture_.reserve(*saving));
        told.memory = capture_.need();
      }
      vote.contribution = for_all(standing->told, context_.slots ? &plan : nullptr);
      vote.for_first = Packer().put(told).put_bytes(standing->told_first).take();
      vote.addend = saving->placed_bytes();
      return {};
    });
  }
  if (context_.is_first()) {
    vote.check = [this](const comm::Verdict& begun) -> Status {
      TR_TRY(check_memory(begun));
      return context_.outputs.check(standings_of(begun), standings_for_first(begun),
                                    context_.options.overwritten);
    };
  }
  const comm::Verdict begun = session.agree(std::move(vote));
  const bool passed = begun.status.is_ok();
  if (!async || !passed) capture_.give_back(!passed);
  if (!passed) {
    // The save has touched no copy, but the items are not saved.
    note_failure(begun.status, true);
    return begun.status;
  }
  left_out_ = false;
  running_.emplace(context_, line_, key_, std::move(saving));
  running_->start(begun, async ? &capture_ : nullptr);
  if (async) return {};
  wait("tr_checkpoint_end");
  return take_failure();
}

bool Saves::advance() {
  if (!running_) return false;
  const bool moved = running_->advance();
  if (running_->verdict()) end_running();
  return moved;
}

void Saves::end_running() {
  running_->close();
  const Status status = *running_->verdict();
  failure_is_of_step_ = running_->lacks_step();
  const SavePlan& plan = running_->plan();
  if (status.is_ok()) {
    context_.session.stops().note_save_seconds(seconds(running_->worked()));
    progress_ = Progress::committed;
    generation_ = plan.id.generation;
    failure_ = {};
    failure_told_ = true;
    if (context_.slots) {
      context_.slots->committed(plan.id.generation, plan.path,
                                plan.mode == Mode::local ? context_.session.ranks() : 0);
      context_.slots->forget_failed();
      log(LogLevel::info, cat("checkpoint ", context_.name, ": generation ", plan.id.generation,
                              " is committed in ", plan.path, " after ", seconds(running_->age()), " s"));
    }
  } else if (is_given_up(status)) {
    // The verdict decides whether the save was given up, and not whether this rank has cancelled it: if the
    // save has failed otherwise, the failure is the verdict, and all ranks must return the same.
    progress_ = Progress::dropped;
  } else {
    note_failure(status, false);
  }
  running_.reset();
}

/// Keeps a failure. The program hears of the failure, and not of a save that was dropped before.
void Saves::note_failure(const Status& failure, bool told) {
  left_out_ = false;
  progress_ = Progress::failed;
  failure_ = failure;
  failure_told_ = told;
}

void Saves::wait(const char* call) {
  if (!running_) return;
  context_.session.wait([&] { return !running_; },
                        cat("the save before to end, in ", call, "(", context_.name, ")"));
}

Status Saves::take_failure() {
  if (std::exchange(failure_told_, true)) return {};
  if (failure_is_of_step_) context_.outputs.note_told();
  return failure_;
}

void Saves::note_loaded(std::int64_t generation) {
  generation_ = generation;
  left_out_ = false;
  progress_ = Progress::committed;
}

Progress Saves::progress() const {
  if (left_out_) return Progress::dropped;
  if (!running_) return progress_;
  return running_->is_written() ? Progress::written : Progress::captured;
}

}  // namespace tailrace::checkpoint
