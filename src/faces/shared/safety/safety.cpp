// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/safety/safety.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"
#include "ground/journal/sample.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::shared {

namespace {

Status say_brought_back(const std::string& path, const Result<bool>& brought) {
  if (brought.is_ok() && *brought)
    log(LogLevel::info,
        cat(path, " was not closed by the program that wrote it: it is brought back to its last flush"));
  return brought.status();
}

Status why_not_locked(const Status& status, const std::string& path) {
  if (status.is_ok()) return status;
  return status.in(
      status.code() == Code::state
          ? cat(path,
                " is open with safety= already, and is for one program at a time; after a kill it is open "
                "until all processes of that program have ended")
          : cat(path,
                " cannot be locked, which safety= needs, and a file that a killed program has left (who may "
                "write to its directory brings such a file back with `tailrace repair ",
                path, "`)"));
}

/// Returns a number that no other open of any file has had: see journal::Flushed.
std::uint64_t number_of_open() {
  const Uuid random = Uuid::random();
  std::uint64_t number = 0;
  std::memcpy(&number, random.bytes.data(), sizeof number);
  return number;
}

/// Fails if this program may not write the file: then it must not give earlier flushes up.
Status check_writable(storage::Target& target, const std::string& path) {
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  if (!*exists) return {};
  const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::existing);
  TR_TRY(file.status());
  return (*file)->close();
}

}  // namespace

Status bring_back_before_opening(storage::Target& target, const Definition& what) {
  const std::string path = target.behind_links(what.path);
  const Result<bool> is_left = target.exists(journal::flushed_path(path));
  TR_TRY(is_left.status());
  // Nobody keeps what a program without safety= writes over: nothing may lead back over its writes.
  const Result<bool> is_kept = what.access.writes ? target.exists(journal::kept_path(path)) : false;
  TR_TRY(is_kept.status());
  if (!*is_left && !*is_kept) return {};
  const Result<std::shared_ptr<void>> lock = journal::lock_flushed(target, path);
  if (lock.status().code() == Code::state && !what.access.writes) return {};
  if (!lock.is_ok() && lock.status().code() != Code::state) {
    const Result<bool> is_still_left = target.exists(journal::flushed_path(path));
    if (is_still_left.is_ok() && !*is_still_left && !*is_kept)
      return {};  // its program has closed it meanwhile
  }
  TR_TRY(why_not_locked(lock.status(), path));
  TR_TRY(say_brought_back(path, journal::bring_back_flushed(target, path)));
  if (!*is_kept) return {};
  TR_TRY(check_writable(target, path));
  return journal::give_up_kept(target, path).status();
}

SafeFile::SafeFile(files::Group& group, const Definition& what)
    : group_(group),
      target_(group.service().target()),
      path_(target_.behind_links(what.path)),
      temporary_(path_ + ".tmp-flush"),
      is_renamed_(what.safety != Safety::rename),
      begins_anew_(what.access.empties),
      permissions_(what.permissions) {}

Status SafeFile::lock() {
  Result<std::shared_ptr<void>> lock = journal::lock_flushed(target_, path_);
  TR_TRY(why_not_locked(lock.status(), path_));
  lock_ = std::move(*lock);
  const Result<storage::Kind> there = target_.kind_of(path_);
  if (!is_renamed_ && there.is_ok() && *there != storage::Kind::nothing && *there != storage::Kind::file)
    return {Code::argument, cat(path_, " is no regular file: safety=rename cannot replace it")};
  TR_TRY(say_brought_back(path_, journal::bring_back_flushed(target_, path_)));
  // Before the file is emptied: nothing leads back to the content that it has now.
  if (begins_anew_) {
    TR_TRY(check_writable(target_, path_));
    TR_TRY(give_up_kept());
  }
  TR_TRY(storage::remove_if_there(target_, temporary_).status());
  if (!is_renamed_) TR_TRY(look_at_old());
  return share_lock();
}

/// Takes this rank's share of the lock. Each rank has one, since rank 0 may be killed before the others: as
/// long as any rank may store, no other program may bring the file back, or bytes that the rank stores later
/// would stay in it.
Status SafeFile::share_lock() {
  Result<std::shared_ptr<void>> lock = journal::share_flushed(target_, path_, std::exchange(lock_, nullptr));
  TR_TRY(why_not_locked(lock.status(), path_));
  lock_ = std::move(*lock);
  return {};
}

/// Opens the old file, if there is one, to find out whether this program may replace it, and to give its
/// owner and permissions to the new file. While the new file has its temporary name, only its owner may read
/// it: see permissions().
Status SafeFile::look_at_old() {
  const Result<bool> exists = target_.exists(path_);
  TR_TRY(exists.status());
  if (!*exists) return {};
  // Opened for writing: fopen(3) with "w" fails on a read-only file, so a new file must not replace one.
  Result<std::unique_ptr<storage::File>> old = target_.open(path_, storage::OpenMode::existing);
  TR_TRY(old.status());
  if (!(*old)->rights()) return (*old)->close();
  replaced_ = std::move(*old);
  return {};
}

unsigned SafeFile::permissions() const {
  return replaced_ != nullptr ? unsigned{S_IRUSR | S_IWUSR} : permissions_;
}

/// Gives the new file the owner, group and permissions of the file that it replaces, as far as the system
/// allows. If the new file cannot have the old group, its own group gets no more permissions than all users.
void SafeFile::give_rights(storage::File& file) {
  if (replaced_ == nullptr) return;
  const std::optional<storage::Rights> old = replaced_->rights();
  const std::optional<storage::Rights> now = file.rights();
  if (!old || !now) return;
  const bool is_same = old->user == now->user && old->group == now->group;
  const bool has_user = is_same || file.set_owner(old->user, old->group).is_ok() || old->user == now->user;
  const bool has_group = is_same || file.set_owner({}, old->group).is_ok();
  unsigned permissions = old->permissions;
  if (!has_group) permissions &= ~unsigned{S_ISGID | S_IRWXG} | (permissions & S_IRWXO) << 3;
  if (!has_user) permissions &= ~unsigned{S_ISUID};
  const Status set = file.set_permissions(permissions);
  if (!set.is_ok()) log(LogLevel::warn, set.text());
}

std::optional<SafeFile::LastFlush> SafeFile::last_flush() const {
  if (!is_renamed_) return {};
  return LastFlush{path_, flushed_};
}

/// Returns a sample of what is flushed now: no rank stores meanwhile. The file is opened anew, since a client
/// of NFS asks its server then for what other nodes have stored. 0: the program may not read the file.
Result<std::uint64_t> SafeFile::sample_now(Bytes size) const {
  const Result<std::unique_ptr<storage::File>> file = target_.open(path(), storage::OpenMode::read);
  if (file.status().error_number() == EACCES) return std::uint64_t{0};
  TR_TRY(file.status());
  return journal::sample_of(**file, size);
}

Status SafeFile::begin(storage::File& file) {
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  TR_TRY(take_kept());
  // Old undo files with a higher generation would count once this program's flushes reach that generation.
  const Result<std::int64_t> highest =
      kept_ ? journal::highest_undo(target_, path_) : journal::drop_undo_files(target_, path_);
  TR_TRY(highest.status());
  const std::int64_t before = std::max(*highest, kept_ ? kept_->last : given_up_);
  flushed_ = {before < journal::most_generation ? before + 1 : 1, *size, 0,
              kept_ ? kept_->open : number_of_open()};
  has_begun_ = true;
  if (!is_renamed_) return target_.sync_directory_of(path_);
  const Result<std::uint64_t> sample = sample_now(*size);
  TR_TRY(sample.status());
  flushed_.sample = *sample;
  TR_TRY(file.sync());
  TR_TRY(journal::prepare_flushed(target_, path_, flushed_));
  return journal::commit_flushed(target_, path_);
}

/// Goes on with the earlier flushes that are kept, or gives them up.
Status SafeFile::take_kept() {
  Result<std::optional<journal::KeptFlushes>> kept = journal::read_kept(target_, path_);
  TR_TRY(kept.status());
  if (!*kept) return {};
  const Result<bool> changed = journal::was_changed(target_, path_, **kept);
  TR_TRY(changed.status());
  if (*changed) {
    log(LogLevel::warn, cat(path_,
                            " was changed or replaced since it was closed, by something that keeps nothing: "
                            "no undo files lead back to the flushes that checkpoints have recorded"));
    return give_up_kept();
  }
  const bool has_too_many = (*kept)->opens >= journal::most_opens;
  if (!has_too_many && (*kept)->last < journal::most_generation - journal::flushes_of_an_open) {
    kept_ = std::move(*kept);
    return {};
  }
  log(LogLevel::warn,
      cat(path_, " was opened ", (*kept)->opens,
          " times since a checkpoint has recorded it: no undo files lead back to the recorded flushes from "
          "now on, as each open may keep the whole file"));
  return give_up_kept();
}

Status SafeFile::give_up_kept() {
  const Result<std::int64_t> last = journal::give_up_kept(target_, path_);
  TR_TRY(last.status());
  given_up_ = *last;
  return {};
}

Status SafeFile::keep_for(const std::string& checkpoint) {
  if (!is_renamed_) return {};
  pages_->keep_earlier();
  if (!group_.is_io_rank()) return {};
  const std::string claim = journal::claim_of(target_, path_, checkpoint);
  journal::KeptFlushes next = kept_.value_or(journal::KeptFlushes{flushed_.open});
  if (!kept_) next.from = flushed_.generation;
  const bool has_claim = std::ranges::find(next.claims, claim) != next.claims.end();
  if (has_claim && next.opens == 0) return {};
  if (!has_claim) next.claims.push_back(claim);
  next.opens = 0;
  TR_TRY(journal::write_kept(target_, path_, next));
  kept_ = std::move(next);
  return {};
}

/// Before FILE.undo is gone: the next open begins with a higher generation. The ranks are about to remove
/// `passing` undo files.
Status SafeFile::leave_kept(std::int64_t generation, std::int64_t passing) {
  if (!kept_) return {};
  TR_TRY(journal::note_closed(target_, path_, generation, passing, *kept_));
  kept_->last = generation;
  ++kept_->opens;
  return journal::write_kept(target_, path_, *kept_);
}

void SafeFile::place(Bytes page, const std::shared_ptr<const PageDeal>& deal) {
  pages_ = std::make_unique<UndoPages>(group_.node(), target_, group_.budget(),
                                       UndoPages::Owner{path_, group_.rank(), group_.size(), page, deal});
}

Status SafeFile::hear(Unpacker& in) {
  flushed_ = in.get<journal::Flushed>();
  TR_TRY(pages_->prepare(flushed_.size));
  pages_->begin(flushed_);
  if (in.get<bool>()) pages_->keep_earlier();
  return group_.is_io_rank() ? Status() : share_lock();
}

void SafeFile::give_up() {
  if (!has_begun_) return;  // what is there is another program's
  const std::string left = is_renamed_ ? journal::flushed_path(path_) : temporary_;
  const Status removed = storage::remove_durably(target_, left);
  if (!removed.is_ok()) log(LogLevel::warn, removed.text());
}

Status SafeFile::keep(storage::File& file, Bytes offset, Bytes bytes) {
  TR_TRY(failure_);
  stored_ = true;
  return pages_->keep(file, offset, bytes);
}

/// Returns an error unless the temporary name still leads to the new file: other users who may write to the
/// directory could have put another file there.
Status SafeFile::check_temporary(storage::File& file) const {
  if (file.is_named(temporary_)) return {};
  return {Code::state, cat(temporary_,
                           " is not the file that this program has written: somebody has moved "
                           "or replaced it since, and ",
                           path_,
                           " is left as it was. Write where only this "
                           "program's user may write to the directory")};
}

/// Gives the new file its name.
Status SafeFile::take_name(storage::File& file) {
  TR_TRY(check_temporary(file));
  give_rights(file);
  is_doubtful_ = true;
  TR_TRY(storage::rename_durably(target_, temporary_, path_));
  replaced_.reset();
  return {};
}

/// Makes the flush or close count, on the I/O rank. The first flush with safety=rename gives the file its
/// name before FILE.undo counts, since FILE.undo tells of the file with this name.
Status SafeFile::commit_here(storage::File& file, const journal::Flushed& next, bool closes,
                             std::int64_t passing) {
  if (!is_renamed_) {
    if (!closes) TR_TRY(journal::prepare_flushed(target_, path_, next));
    TR_TRY(take_name(file));
    return closes ? Status() : journal::commit_flushed(target_, path_);
  }
  TR_TRY(closes ? leave_kept(next.generation, passing) : journal::prepare_flushed(target_, path_, next));
  is_doubtful_ = true;
  return closes ? storage::remove_durably(target_, journal::flushed_path(path_))
                : journal::commit_flushed(target_, path_);
}

Status SafeFile::commit(storage::File& file, Bytes size, bool closes, const std::string& call) {
  // If `told` is true on any rank, the largest bid of the verdict is 1 on every rank.
  const auto agree = [&](const Status& mine, const char* what, bool told = false) {
    comm::Vote vote{mine.in(call).at({-1, -1, group_.rank()}), cat(call, ", ", std::string_view(what)), {}};
    vote.bid = told ? 1 : 0;
    if (const std::int64_t passing = closes ? pages_->passing_files() : 0; passing > 0)
      vote.contribution = Packer().put(passing).take();
    return group_.agree(std::move(vote));
  };
  journal::Flushed next{flushed_.generation + 1, size, 0, flushed_.open};
  // After a close no rank stores, so no notes of kept pages are needed.
  const Status ready = !failure_.is_ok() ? failure_ : closes ? Status() : pages_->prepare(size);
  const comm::Verdict durable = agree(ready, "durable", stored_.load());
  TR_TRY(durable.status);
  if (!closes && is_renamed_ && durable.largest_bid == 0) return {};
  is_doubtful_ = false;
  const auto sample_and_commit = [&]() -> Status {
    if (!closes || kept_) {
      if (!is_renamed_) TR_TRY(check_temporary(file));
      const Result<std::uint64_t> now = sample_now(size);
      TR_TRY(now.status());
      next.sample = *now;
    }
    std::int64_t passing = 0;
    for (const ByteVector& each : durable.contributions) {
      if (!each.empty()) passing += Unpacker(each).get<std::int64_t>();
    }
    return commit_here(file, next, closes, passing);
  };
  const Status mine = group_.is_io_rank() ? guarded(sample_and_commit) : Status();
  const comm::Verdict committed = agree(mine, "committed", is_doubtful_);
  if (committed.status.code() == Code::order || committed.ended) {
    // Ranks may not have heard from the I/O rank, and the commit may count.
    failure_ = committed.status;
    return committed.status;
  }
  if (committed.status.is_ok()) {
    is_renamed_ = true;
    flushed_ = next;
    stored_ = false;
    pages_->begin(next);
    (void)guarded([&] {
      pages_->drop();
      return Status();
    });
  } else if (committed.largest_bid == 1) {
    // After a crash the file may get either of two contents, and undo files protect only one: so no rank may
    // change the file any more.
    failure_ = {committed.status.code(),
                cat(path_, " cannot be changed any more, since a flush has failed at its end (",
                    committed.status.text(), "): close it, and open it again"),
                committed.status.error_number()};
  }
  // No rank may store before UndoPages::begin() has returned on all ranks.
  const Status begun = agree({}, "begun").status;
  if (failure_.is_ok()) failure_ = begun;
  return first_cause(committed.status, begun);
}

}  // namespace tailrace::shared
