// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::checkpoint {

namespace {

Status state_error(std::string text) { return {Code::state, std::move(text)}; }

/// Returns an error unless there are two files or more, each of another name: a save into a single file would
/// write over the only copy.
Status check_files(const std::vector<std::string>& files) {
  std::set<std::string> different;
  for (const std::string& file : files) different.insert(storage::tidy_path(file));
  if (different.size() == files.size() && files.size() > 1) return {};
  return {
      Code::argument,
      "a checkpoint needs two files or more, each of another name: one alone is lost while it is written"};
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::create(session::Session& session, Outputs& outputs,
                                                       const std::string& name, const std::string& how,
                                                       Result<Options> options,
                                                       std::vector<std::string> files) {
  // This rank takes the number even if it fails below, so that the next checkpoint's number is the same on
  // all ranks.
  const comm::LineNumber number = session.board().numbers().next_without_data();
  std::string call;
  std::string arguments;
  std::unique_ptr<Checkpoint> made;
  Packer told;
  const Status mine = guarded([&]() -> Status {
    call = cat("tr_checkpoint_create(", name, ")");
    arguments = cat("tr_checkpoint_create(", name, ", \"", how, "\"");
    for (const std::string& file : files) arguments += cat(", ", file);
    arguments += ")";
    TR_TRY(options.status());
    if (name.empty()) return {Code::argument, "the name of a checkpoint is empty"};
    if (!files.empty()) TR_TRY(check_files(files));
    made.reset(new Checkpoint({session, outputs, name, *options, {}, {}}, number));
    made->saves_.capture().open();
    if (session.rank() != 0) return {};
    told.put(Uuid::random());
    return made->open_slots(std::move(files), told);
  });
  const comm::Verdict verdict = session.agree({mine, std::move(arguments), told.take()});
  TR_TRY(verdict.status.in(call));
  Unpacker in(verdict.contributions.front());
  made->context_.run = in.get<Uuid>();
  TR_TRY(made->check_copies(call, in).in(call));
  if (made->context_.options.overwritten == journal::Overwritten::journal) {
    const Status kept = guarded([&] { return made->keep_recorded(in); });
    TR_TRY(session.agree({kept, cat(call, ", keeping what is recorded"), {}}).status.in(call));
  }
  return made;
}

/// On the first rank: keeps other programs out by the lock, looks at the copies, and packs for all ranks what
/// it has found.
Status Checkpoint::open_slots(std::vector<std::string> files, Packer& told) {
  storage::Target& target = context_.target();
  if (const std::string parent = storage::parent_of(storage::tidy_path(context_.name)); parent != ".")
    TR_TRY(target.make_directories(parent));
  TR_TRY(take_lock(target));
  const bool are_given = !files.empty();
  context_.slots.emplace(context_.name,
                         are_given ? std::move(files) : Slots::paths(context_.name, context_.options.keep),
                         context_.options.keep_every, are_given);
  const Result<std::vector<Found>> found = context_.slots->look(target);
  TR_TRY(found.status());
  tell_copies(*found, told);
  return tell_recorded(*found, told);
}

/// Takes the lock. One that a killed run has left is the sign by which `tailrace run-state --restore` knows
/// that the run has not ended well: a job that neither loads nor saves leaves it behind.
Status Checkpoint::take_lock(storage::Target& target) {
  const std::string path = lock_path(context_.name);
  const Result<bool> is_left = target.exists(path);
  TR_TRY(is_left.status());
  Result<std::shared_ptr<void>> lock = target.lock(path);
  // A full disk must not keep a program from loading.
  if (lock.status().code() == Code::space) {
    log(LogLevel::warn,
        cat("checkpoint ", context_.name, ": no other program is kept out: ", lock.status().text()));
    return {};
  }
  TR_TRY(lock.status());
  lock_ = std::move(*lock);
  if (*is_left)
    sign_ = std::shared_ptr<void>(nullptr, [this, &target, path](void*) {
      if (!goes_on_) static_cast<void>(target.open(path, storage::OpenMode::keep));
    });
  return {};
}

/// Packs the copies in which the first rank has found no damage. It has not looked at their parts:
/// check_copies() does.
void Checkpoint::tell_copies(const std::vector<Found>& found, Packer& told) const {
  const std::vector<std::string> good = context_.slots->good();
  told.put(static_cast<std::int32_t>(good.size()));
  for (const std::string& path : good)
    told.put_bytes(pack(*std::ranges::find(found, path, &Found::path)->copy));
}

/// Collective. All ranks together check the parts of the copies. The first rank notes which copies are
/// damaged, since saves take their places first: otherwise a save could write over the only whole copy. A
/// copy that storage does not give now is not noted: it may be whole.
Status Checkpoint::check_copies(const std::string& call, Unpacker& told) {
  const std::vector<std::string> paths =
      context_.is_first() ? context_.slots->good() : std::vector<std::string>();
  const auto copies = told.get<std::int32_t>();
  for (std::int32_t copy = 0; copy < copies; ++copy) {
    const Status whole = load_.check(call, told.get_bytes());
    if (whole.is_ok()) continue;
    if (whole.code() != Code::corrupt && whole.code() != Code::io) return whole;
    if (!context_.is_first()) continue;
    if (is_damage(whole)) context_.slots->broken(paths[static_cast<std::size_t>(copy)]);
    log(LogLevel::info, cat("checkpoint ", context_.name, ": a copy is not whole: ", whole.text()));
  }
  return {};
}

/// With overwritten=journal: packs the last generation that was begun, and the outputs that each copy has
/// recorded.
Status Checkpoint::tell_recorded(const std::vector<Found>& found, Packer& told) const {
  if (context_.options.overwritten != journal::Overwritten::journal) return {};
  told.put(context_.slots->next_generation() - 1);
  for (const Found& each : found) {
    if (each.copy)
      told.put_bytes(each.copy->directory.outputs);
    else if (!is_damage(each.status))
      return each.status;
  }
  return {};
}

/// Makes the outputs keep the bytes that any copy has recorded: the program may load any copy, or none, and
/// then write over bytes that the other copies have recorded.
Status Checkpoint::keep_recorded(Unpacker& told) {
  const auto generation = told.get<std::int64_t>();
  std::vector<ByteVector> all(1);
  while (!told.rest().empty() && told.ok()) {
    const auto outputs = told.get_bytes();
    all.emplace_back(outputs.begin(), outputs.end());
  }
  for (const ByteVector& outputs : all) TR_TRY(context_.outputs.can_keep(outputs));
  for (const ByteVector& outputs : all) context_.outputs.keep_since(context_.name, generation, outputs);
  return {};
}

Status Checkpoint::close() {
  const std::string call = cat("tr_checkpoint_close(", context_.name, ")");
  const bool open = bracket_.has_value();
  bracket_.reset();
  const comm::Verdict verdict = context_.session.agree({{}, call, {}});
  // The ranks can no longer agree. Do not wait for a running save here: it may wait for steps of streams, and
  // the steps for tr_finalize. The save is given up. The destructor waits for running writes before it
  // releases the lock.
  if (verdict.ended) return verdict.status.in(call);
  saves_.wait("tr_checkpoint_close");
  lock_.reset();
  sign_.reset();
  TR_TRY(verdict.status.in(call));
  TR_TRY(saves_.take_failure());
  if (open) return state_error(cat(call, ": a bracket was open: nothing of it was saved or loaded"));
  return {};
}

Status Checkpoint::begin(Direction direction, bool* found) {
  if (found != nullptr) *found = false;
  Status mine;
  if (bracket_) {
    mine = state_error("the bracket before has not ended (tr_checkpoint_end)");
  } else if (!items_.error().is_ok()) {  // of an item outside of any bracket
    mine = state_error(items_.error().text());
    items_.clear();
  }
  const bool saves = direction == Direction::save;
  if (saves) context_.outputs.note_going_on();
  const std::string call = cat("tr_checkpoint_begin(", context_.name, saves ? ", TR_SAVE)" : ", TR_LOAD)");
  // The ranks vote before they wait for a running save. The save may wait for steps of streams, and the steps
  // for a rank that is in tr_finalize: that rank ends this vote, and nobody waits in vain.
  const comm::Verdict verdict = context_.session.agree({mine, call, ByteVector(saves_.is_running() ? 1 : 0)});
  TR_TRY(verdict.status.in(call));
  bracket_ = direction;
  items_.clear();
  dropped_ = false;
  const bool busy =
      std::ranges::any_of(verdict.contributions, [](const ByteVector& each) { return !each.empty(); });
  // A load waits for a running save, so that it finds the newest copy.
  const auto policy = saves ? context_.options.busy : Options::Busy::wait;
  if (busy && policy == Options::Busy::drop) {
    dropped_ = true;
    log(LogLevel::info, cat("checkpoint ", context_.name,
                            ": a save is dropped, since the one before is still being written"));
    return {};
  }
  if (policy == Options::Busy::replace) saves_.cancel();
  saves_.wait("tr_checkpoint_begin");
  if (saves) return saves_.take_failure();
  TR_TRY(load_.begin(call).in(call));
  if (found != nullptr) *found = load_.copy().has_value();
  return {};
}

void Checkpoint::item(NamedItem item) {
  if (bracket_) {
    items_.add(std::move(item));
    return;
  }
  latch(state_error(cat("item ", item.name,
                        " stands outside of tr_checkpoint_begin and tr_checkpoint_end on rank ",
                        context_.session.rank())));
}

Status Checkpoint::end(bool async) {
  const std::string call = cat("tr_checkpoint_end(", context_.name, ")");
  Status status;
  if (!bracket_) {
    const Status mine = state_error("no bracket was begun (tr_checkpoint_begin)");
    status = context_.session.agree({mine, call, {}}).status;
  } else if (*bracket_ == Direction::load) {
    status = end_load();
  } else if (dropped_) {
    saves_.leave_out();
  } else {
    status = saves_.save(items_, async);
    goes_on_ = goes_on_ || status.is_ok();
  }
  bracket_.reset();
  items_.clear();
  return status.in(call);
}

Status Checkpoint::end_commit(const std::string& restart) {
  context_.outputs.name_restart_file(restart);
  Status ended = end();
  context_.outputs.name_restart_file("");
  return ended;
}

Status Checkpoint::end_load() {
  TR_TRY(load_.end(items_));
  if (!load_.copy()) return {};
  const Copy& copy = *load_.copy();
  // No rank changes an output before each knows that all can go on.
  const Status can = guarded([&] { return loaded(copy); });
  TR_TRY(context_.session.agree({can, "tr_checkpoint_end: going on", {}}).status);
  Status mine = guarded([&] { return context_.outputs.resume(); });
  if (context_.outputs.changes_files())
    mine = context_.session.agree({mine, "tr_checkpoint_end: bringing outputs back", {}}).status;
  goes_on_ = goes_on_ || mine.is_ok();
  return mine;
}

Status Checkpoint::loaded(const Copy& copy) {
  if (context_.slots && copy.header.committed)
    context_.slots->committed(copy.generation(), copy.path,
                              copy.header.mode == Mode::local ? copy.header.parts : 0);
  saves_.note_loaded(copy.generation());
  if (context_.is_first()) {
    log(LogLevel::info, cat("checkpoint ", context_.name, ": generation ", copy.generation(), " of ",
                            counted(copy.header.parts, "rank"), " is loaded from ", copy.path));
  }
  load_.forget_parts();
  expect(items_.list());  // the first save will probably have the same items
  return context_.outputs.prepare_resume(context_.name, copy);
}

Status Checkpoint::cover(const std::string& path) {
  const std::string call = cat("tr_checkpoint_covers(", context_.name, ", ", path, ")");
  const Status mine = guarded([&] { return context_.outputs.can_cover(path); });
  TR_TRY(context_.session.agree({mine, call, {}}).status.in(call));
  return guarded([&]() -> Status {
    context_.outputs.cover(context_.name, path);
    return {};
  });
}

Status Checkpoint::wait() {
  const std::string call = cat("tr_checkpoint_wait(", context_.name, ")");
  const comm::Verdict verdict = context_.session.agree({{}, call, {}});
  TR_TRY(verdict.status.in(call));
  saves_.wait("tr_checkpoint_wait");
  return saves_.take_failure();
}

}  // namespace tailrace::checkpoint
