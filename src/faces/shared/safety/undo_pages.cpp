// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/safety/undo_pages.hpp"

#include <algorithm>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::shared {

namespace {

/// The largest record of an undo file. A record is made in memory.
constexpr Bytes kept_at_once = Bytes{4} << 20;
/// keep() also keeps pages behind those of the call: as many bytes as it has kept since the last flush, up to
/// this limit. So a file that is written over from its begin costs few synchronisations.
constexpr Bytes most_ahead = Bytes{16} << 20;
/// A call that cuts off more pages than this keeps them in several rounds, since each record takes memory
/// until it is sealed.
constexpr Index most_claimed = 4096;

}  // namespace

/// The pages that the caller's thread keeps: other threads wait for them. If they were not kept when the
/// Claim ends, they may be claimed again.
class UndoPages::Claim {
 public:
  explicit Claim(const UndoPages& of) : of_(of) {}
  ~Claim() {
    for (const Claimed& each : pages) of_.note_of(each.page) = is_kept ? State::kept : each.before;
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  /// Claims the page if nobody has kept or claimed it. Returns the state in which it was.
  State take(Index page) {
    if (pages.size() == pages.capacity()) pages.reserve(2 * pages.size() + 16);
    Note& note = of_.note_of(page);
    State before = note.load();
    while (can_be_kept(before)) {
      if (!note.compare_exchange_weak(before, State::being_kept)) continue;
      pages.push_back({page, before});
      break;
    }
    return before;
  }
  static bool can_be_kept(State state) { return state == State::changeable || state == State::again; }

  struct Claimed {
    Index page = 0;
    State before = State::changeable;
  };
  std::vector<Claimed> pages;  // ascending
  bool is_kept = false;

 private:
  const UndoPages& of_;
};

UndoPages::UndoPages(comm::Line& node, storage::Target& target, node::Budget& budget, Owner owner)
    : node_(node),
      transport_(node.board().transport()),
      target_(target),
      budget_(budget),
      owner_(std::move(owner)) {}

/// Returns how many pages of a file of `size` bytes belong to this node.
Index UndoPages::pages_of_node(Bytes size) const { return owner_.deal->pages_of_node_of(owner_.rank, size); }

/// Returns the first page from `page` on that belongs to this node.
Index UndoPages::own_from(Index page) const {
  while (!owner_.deal->are_near(owner_.deal->place_of_page(page).owner, owner_.rank)) ++page;
  return page;
}

UndoPages::Note& UndoPages::note(Index near) const {
  return reinterpret_cast<Note*>(notes_->memory->part(0))[near];
}

Status UndoPages::prepare(Bytes size) {
  const Index pages = pages_of_node(size);
  next_.reset();
  if (notes_ != nullptr && notes_->pages >= pages) return {};
  const Index most = std::max<Index>(pages + pages / 2, 4096);
  std::unique_ptr<Notes> made;
  std::vector<Bytes> parts(static_cast<std::size_t>(node_.size()), 0);
  parts.front() = most;
  const Status ready = guarded([&] {
    made = std::make_unique<Notes>(budget_);
    made->pages = most;
    return node_.rank() == 0 ? made->drawn.take(most) : Status();
  });
  Result<std::unique_ptr<node::NodeMemory>> memory =
      node::NodeMemory::create(node_, parts, false, node::NodeMemory::everything, ready);
  TR_TRY(memory.status().in("notes of the pages that are kept"));
  made->memory = std::move(*memory);
  next_ = std::move(made);
  return {};
}

/// Returns the state of a page behind a flush, of one in this state before.
UndoPages::State UndoPages::after_flush(State state) const {
  if (!keeps_) return State::changeable;
  const bool stays = state == State::kept || (state == State::again && !is_recorded_);
  return stays ? State::again : State::changeable;
}

void UndoPages::begin(const journal::Flushed& flushed) {
  const std::lock_guard lock(mutex_);
  flushed_ = flushed;
  const std::unique_ptr<Notes> before = next_ != nullptr ? std::exchange(notes_, std::move(next_)) : nullptr;
  if (node_.rank() == 0) {
    const Notes& from = before != nullptr ? *before : *notes_;
    const auto* const states = reinterpret_cast<const Note*>(from.memory->part(0));
    for (Index i = 0; i < notes_->pages; ++i)
      note(i).store(i < from.pages ? after_flush(states[i].load()) : State::changeable);
  }
  is_recorded_ = false;
  staying_ = {};
  old_ = std::exchange(passing_, {}).files;
  kept_ = 0;
}

void UndoPages::keep_earlier() {
  const std::lock_guard lock(mutex_);
  keeps_ = is_recorded_ = true;
  // The save records the last flush: the way back to it needs what was kept since.
  staying_.files.insert(staying_.files.end(), passing_.files.begin(), passing_.files.end());
  passing_ = {};
}

void UndoPages::drop() {
  for (const std::string& each : std::exchange(old_, {})) {
    const Status removed = storage::remove_if_there(target_, each).status();
    if (!removed.is_ok())
      log(LogLevel::warn, cat(removed.text(), ": it counts no longer, and may be removed"));
  }
}

/// Claims pages of this node from `from` on, up to the limit of `most_ahead` or the first page that is
/// claimed or kept already.
void UndoPages::claim_ahead(Index from, Claim& claim) const {
  const Bytes ahead = std::min<Bytes>(kept_, most_ahead);
  for (Bytes bytes = 0; bytes + owner_.page <= ahead && from * owner_.page < flushed_.size;
       bytes += owner_.page, from = own_from(from + 1))
    if (!Claim::can_be_kept(claim.take(from))) return;
}

Status UndoPages::keep(storage::File& file, Bytes offset, Bytes bytes) {
  const Bytes end = offset < flushed_.size ? offset + std::min(bytes, flushed_.size - offset) : offset;
  if (offset >= end) return {};
  const Index last = (end - 1) / owner_.page;
  Index next = 0;
  for (Index page = own_from(offset / owner_.page); page <= last; page = own_from(next)) {
    next = page + most_claimed;
    const Status status = keep_pages(file, page, std::min(last, next - 1));
    if (!status.is_ok())
      return status.in(
          cat("what ", owner_.path, " held at its last flush has to be kept before it is written over"));
  }
  return {};
}

/// Keeps this node's pages from `first` to `last`, and waits until those that others have claimed are kept.
Status UndoPages::keep_pages(storage::File& file, Index first, Index last) {
  for (int tries = 1;; ++tries) {
    bool waits = false;
    TR_TRY(guarded([&]() -> Status {
      Claim claim(*this);
      Index page = first;
      for (; page <= last; page = own_from(page + 1)) waits = claim.take(page) == State::being_kept || waits;
      if (claim.pages.empty()) return {};
      if (!waits) claim_ahead(page, claim);
      TR_TRY(keep_claimed(file, claim));
      claim.is_kept = true;
      return {};
    }));
    // The Claim has ended before this wait, so no two threads wait for each other's claims.
    if (!waits) return {};
    node::SharedLock::wait_a_little(tries, transport_);
  }
}

/// Writes the claimed pages to this rank's undo files, and seals them. After a failure the next record goes
/// to a new undo file, not behind a torn record.
Status UndoPages::keep_claimed(storage::File& file, const Claim& claim) {
  const std::lock_guard lock(mutex_);
  // Undo files that stay have one record of a page for each flush that was recorded, however many flushes
  // come behind it: otherwise they would pile up.
  const auto stays = [&](const Claim::Claimed& each) {
    return keeps_ && (is_recorded_ || each.before == State::changeable);
  };
  Writing* const both[] = {&staying_, &passing_};
  const Status status = guarded([&]() -> Status {
    for (std::size_t at = 0; at < claim.pages.size();) {
      const bool first_stays = stays(claim.pages[at]);
      std::size_t next = at + 1;
      while (next < claim.pages.size() && claim.pages[next].page == claim.pages[next - 1].page + 1 &&
             stays(claim.pages[next]) == first_stays)
        ++next;
      TR_TRY(add(first_stays ? staying_ : passing_, file, claim.pages[at].page * owner_.page,
                 std::min((claim.pages[next - 1].page + 1) * owner_.page, flushed_.size)));
      at = next;
    }
    for (Writing* const each : both) {
      if (each->writer != nullptr) TR_TRY(each->writer->seal());
    }
    return {};
  });
  if (status.is_ok()) {
    kept_ += std::ssize(claim.pages) * owner_.page;
    return status;
  }
  for (Writing* const each : both) {
    if (each->writer != nullptr) each->writer->take_back();
    each->writer.reset();
  }
  return status;
}

/// Reads flushed bytes of the file. A client of NFS may not know yet that other nodes have made the file
/// longer; it asks its server when the file is opened again: close-to-open consistency, nfs(5).
Result<Bytes> UndoPages::read(storage::File& file, std::span<std::byte> into, Bytes at) const {
  Result<Bytes> got = file.read(into, at);
  if (!got.is_ok() || *got == std::ssize(into)) return got;
  const Result<std::unique_ptr<storage::File>> anew = target_.open(owner_.path, storage::OpenMode::read);
  TR_TRY(anew.status());
  return (*anew)->read(into, at);
}

/// Adds the file's bytes from `begin` to `end` to the undo file.
Status UndoPages::add(Writing& to, storage::File& file, Bytes begin, Bytes end) {
  if (to.writer == nullptr) {
    Result<std::unique_ptr<journal::UndoWriter>> made = journal::UndoWriter::create(
        target_, journal::flushed_path(owner_.path), flushed_.generation, journal::name_beside(owner_.path),
        {owner_.rank, owner_.ranks}, file.rights());
    TR_TRY(made.status());
    to.writer = std::move(*made);
    to.files.push_back(to.writer->own_path());
  }
  ByteVector buffer(static_cast<std::size_t>(std::min(kept_at_once, end - begin)));
  for (Bytes at = begin; at < end; at += kept_at_once) {
    const auto part = std::span(buffer).first(static_cast<std::size_t>(std::min(kept_at_once, end - at)));
    const Result<Bytes> got = read(file, part, at);
    TR_TRY(got.status());
    if (*got < std::ssize(part))
      return {Code::corrupt, cat(owner_.path, " ends at byte ", at + *got, ", but ", flushed_.size,
                                 " were flushed: something else has cut it")};
    TR_TRY(to.writer->add(journal::UndoRecord::What::bytes, at, part));
  }
  return {};
}

}  // namespace tailrace::shared
