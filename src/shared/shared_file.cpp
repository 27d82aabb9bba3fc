// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "shared/shared_file.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/text.hpp"

namespace tailrace::shared {

namespace {

/// The most that one message carries for another node.
constexpr Bytes largest_far = Bytes{1} << 20;
/// A read asks other nodes for this much at a time.
constexpr Bytes far_at_once = Bytes{4} << 20;

constexpr Bytes most = std::numeric_limits<Bytes>::max();

/// More memory than this is not kept from one file to the next.
constexpr Bytes largest_kept = Bytes{256} << 20;

struct KeptPages {
  std::unique_ptr<NodePages> pages;
  std::optional<Bytes> asked;  // memory=
};

Status too_large(Bytes size) {
  return {Code::argument, cat("byte ", size,
                              " lies, or the bytes from there on end, behind the last byte that a "
                              "shared file can have (",
                              Definition::most_size, ")")};
}

}  // namespace

SharedFile::SharedFile(std::shared_ptr<files::Group> group, const Definition& what, std::uint64_t epoch)
    : group_(std::move(group)),
      what_(what),
      epoch_(epoch),
      nodes_(group_->node_ranks().nodes()),
      node_(group_->node_ranks().seat(group_->rank()).node) {}

SharedFile::~SharedFile() = default;

Result<std::unique_ptr<SharedFile>> SharedFile::open(const std::shared_ptr<files::Group>& group,
                                                     const std::string& call,
                                                     const Result<Definition>& given) {
  const std::uint64_t epoch = group->new_epoch();  // also if this rank has nothing to open
  std::unique_ptr<SharedFile> made;
  Status mine = given.status();
  if (mine.is_ok()) {
    mine = guarded([&] {
      made.reset(new SharedFile(group, *given, epoch));
      if (given->safety != Safety::none && given->access.writes)
        made->safe_ = std::make_unique<SafeFile>(*group, *given);
      return Status();
    });
  }
  const Cause cause{-1, -1, group->rank()};
  if (made == nullptr) return group->agree({mine.in(call).at(cause), call, {}}).status;
  const Result<Deal> deal = made->agree_on_deal(call, mine.in(call).at(cause));
  TR_TRY(deal.status());
  // Nobody creates, and so truncates, a file before there is memory for it everywhere.
  TR_TRY(made->make_pages(*deal, call));
  mine = guarded([&]() -> Status {
    if (made->safe_ != nullptr) made->safe_->place(made->page_, made->nodes_, made->node_);
    return group->is_io_rank() ? made->make_or_check() : Status();
  });
  Packer told;
  if (group->is_io_rank() && mine.is_ok()) {
    told.put(made->pages_->size());
    if (made->safe_ != nullptr) made->safe_->tell(told);
  }
  const comm::Verdict verdict =
      group->agree({mine.in(call).at(cause), cat(call, " of file ", epoch), told.take()});
  if (!verdict.status.is_ok()) {
    if (made->safe_ != nullptr && group->is_io_rank()) made->safe_->give_up();
    return verdict.status;
  }
  Unpacker in(verdict.contributions.front());
  const auto size = in.get<Bytes>();
  if (made->is_first_of_node()) {
    made->pages_->set_size(size);
    made->pages_->set_stored(size);
  }
  TR_TRY(made->open_elsewhere(call, in));
  return made;
}

/// The I/O rank has opened the file; the others follow. `told` is what it says to them.
Status SharedFile::open_elsewhere(const std::string& call, Unpacker& told) {
  Status mine;
  if (safe_ != nullptr) {
    mine = safe_->hear(told);
  }
  if (!group_->is_io_rank() && mine.is_ok()) {
    mine = guarded([&] {
      return open_file(what_.access.writes ? storage::OpenMode::existing : storage::OpenMode::read);
    });
  }
  const Status opened = vote(call, mine.in(call));
  if (!opened.is_ok() && safe_ != nullptr && group_->is_io_rank()) safe_->give_up();
  return opened;
}

/// Returns what the caller's node can do: the page is made smaller if the memory is small.
SharedFile::Deal SharedFile::proposed() const {
  Deal deal;
  deal.memory = what_.memory.value_or(group_->budget().left() / 2);
  deal.page = what_.page.value_or(Definition::default_page);
  const int ranks = group_->node().size();
  while (!what_.page && deal.page > Definition::least_page &&
         NodePages::least_memory(deal.page, ranks) > deal.memory)
    deal.page /= 2;
  return deal;
}

/// The first rank of each node says what its node can do.
Result<SharedFile::Deal> SharedFile::agree_on_deal(const std::string& call, Status mine) {
  Deal deal{Definition::most_page, 0};
  if (mine.is_ok() && is_first_of_node()) {
    deal = proposed();
    const Bytes least = NodePages::least_memory(deal.page, group_->node().size());
    if (least > deal.memory) {
      mine = Status(Code::memory,
                    cat(call, ": pages may take ", size_text(deal.memory), " on a node, but ",
                        counted(group_->node().size(), "rank"), " with pages of ", size_text(deal.page),
                        " need at least ", size_text(least), ": set memory= higher or page= lower"))
                 .at({-1, -1, group_->rank()});
    }
  }
  // The smallest page that a node proposes is everybody's.
  comm::Vote vote{mine, call, {}};
  vote.bid = -deal.page;
  const comm::Verdict verdict = group_->agree(std::move(vote));
  TR_TRY(verdict.status);
  deal.page = -verdict.largest_bid;
  return deal;
}

Status SharedFile::make_pages(const Deal& deal, const std::string& call) {
  page_ = deal.page;
  page_shift_ = std::countr_zero(static_cast<std::uint64_t>(page_));
  Status mine = take_pages(deal);
  if (mine.is_ok() && nodes_ > 1) {
    mine = guarded([&] {
      far_ = std::make_unique<FarPages>(group_->service().desk(), group_->line(), epoch_, group_->threads(),
                                        served());
      return Status();
    });
  }
  return vote(call, mine.in(call));
}

/// Takes the pages that the last file has left, or makes new ones.
Status SharedFile::take_pages(const Deal& deal) {
  auto kept = std::static_pointer_cast<KeptPages>(std::exchange(group_->kept_pages(), nullptr));
  if (kept != nullptr && kept->asked == what_.memory && kept->pages->plan().page == page_) {
    pages_ = std::move(kept->pages);
    pages_->begin_again(disk());
    return {};
  }
  kept.reset();
  comm::Vote told{{}, "the memory for pages of a shared file", {}};
  if (is_first_of_node()) told.bid = deal.memory;
  const comm::Verdict memory = group_->node().agree(std::move(told));
  TR_TRY(memory.status);
  Result<std::unique_ptr<NodePages>> pages =
      NodePages::create(group_->node(), {page_, memory.largest_bid, nodes_}, group_->settings().huge_pages,
                        group_->budget(), disk());
  TR_TRY(pages.status());
  pages_ = std::move(*pages);
  return {};
}

/// Leaves the pages to the next file, which then need not take fresh memory, if they are not too large.
void SharedFile::leave_pages() {
  const Bytes most_kept = std::min(largest_kept, group_->budget().limit() / 8);
  if (pages_ == nullptr || pages_->taken() > most_kept) return;
  group_->kept_pages() = std::make_shared<KeptPages>(KeptPages{std::move(pages_), what_.memory});
}

Status SharedFile::open_file(storage::OpenMode mode) {
  Result<std::unique_ptr<storage::File>> file = group_->service().target().open(stored_path(), mode);
  TR_TRY(file.status());
  file_ = std::move(*file);
  return {};
}

/// Does the I/O rank's part of opening. Afterwards the file is there, and its size is known.
Status SharedFile::make_or_check() {
  const Access& access = what_.access;
  storage::Target& target = group_->service().target();
  if (access.creates) {
    const Result<bool> exists = target.exists(what_.path);
    TR_TRY(exists.status());
    if (*exists && access.exclusive) return io_error("create", what_.path, EEXIST);
    is_new_ = !*exists;
  }
  TR_TRY(safe_ != nullptr ? safe_->lock() : bring_back_before_opening(target, what_));
  journal::Journals& journals = group_->service().journals();
  const bool is_kept = access.empties && journals.has(what_.path);
  if (is_kept && what_.safety == Safety::rename)
    return {Code::unsupported, cat("a checkpoint keeps what is written over in ", what_.path,
                                   ", and cannot if another file takes its name: use safety=journal")};
  TR_TRY(open_file(!access.writes                                 ? storage::OpenMode::read
                   : access.empties && access.creates && !is_kept ? storage::OpenMode::create
                   : access.creates                               ? storage::OpenMode::keep
                                                                  : storage::OpenMode::existing));
  if (is_kept) TR_TRY(journals.keep(what_.path, *file_, 0, most));
  if (access.empties && (is_kept || !access.creates)) TR_TRY(file_->truncate(0));
  const Result<Bytes> size = file_->size();
  TR_TRY(size.status());
  pages_->set_size(*size);
  is_unsynced_ = access.empties;
  return safe_ != nullptr ? safe_->begin(*file_) : Status();
}

Disk SharedFile::disk() {
  Disk disk;
  disk.load = [this](std::span<std::byte> bytes, Bytes offset) -> Status {
    const Result<Bytes> got = file_->read(bytes, offset);
    TR_TRY(got.status());
    std::ranges::fill(bytes.subspan(static_cast<std::size_t>(*got)), std::byte{0});
    return {};
  };
  disk.store = [this](storage::Parts parts, Bytes offset) -> Status {
    if (safe_ != nullptr) TR_TRY(safe_->keep(*file_, offset, storage::bytes_in(parts)));
    journal::Journals& journals = group_->service().journals();
    if (journals.has(what_.path)) TR_TRY(journals.keep(what_.path, *file_, offset, storage::bytes_in(parts)));
    return file_->write_gathered(parts, offset);
  };
  return disk;
}

Served SharedFile::served() {
  const auto user = [](bool waits) { return waits ? NodePages::User::service : NodePages::User::program; };
  Served served;
  served.size = [this] { return pages_->size(); };
  served.raise_size = [this](Bytes size) { pages_->raise_size(size); };
  served.add_to_size = [this](Bytes bytes) { return pages_->add_to_size(bytes); };
  served.is_here = [this](Bytes offset) { return pages_->has(page_of(offset)); };
  served.read = [this, user](Bytes offset, std::span<std::byte> into, bool waits) {
    return pages_->read(page_of(offset), place_in_page(offset), into, user(waits));
  };
  served.write = [this, user](Bytes offset, std::span<const std::byte> bytes, bool waits) {
    pages_->raise_size(offset + std::ssize(bytes));
    return pages_->write(page_of(offset), place_in_page(offset), bytes, user(waits));
  };
  return served;
}

/// The pages of a node are dealt to its ranks in turn.
int SharedFile::server_of(Index page) const {
  const std::span<const int> ranks = group_->node_ranks().of(static_cast<int>(page % nodes_));
  return ranks[static_cast<std::size_t>(page / nodes_) % ranks.size()];
}

Status SharedFile::vote(const std::string& call, const Status& mine) {
  return vote_and_bid(call, mine, comm::Vote::least_bid).status;
}

comm::Verdict SharedFile::vote_and_bid(const std::string& call, const Status& mine, std::int64_t bid) {
  const Cause cause{-1, -1, group_->rank()};
  comm::Vote vote{mine.at(mine.cause().rank < 0 ? cause : mine.cause()), cat(call, " of file ", epoch_), {}};
  vote.bid = bid;
  return group_->agree(std::move(vote));
}

Status SharedFile::check(bool wanted, const char* what) const {
  if (wanted) return {};
  return {Code::state, cat(what_.path, " was not opened for ", std::string_view(what))};
}

Result<Bytes> SharedFile::seek(Bytes offset, Whence whence) {
  Bytes from = 0;
  if (whence == Whence::position) from = position_;
  if (whence == Whence::end) {
    const Result<Bytes> end = size();
    TR_TRY(end.status());
    from = *end;
  }
  Bytes to = 0;
  if (__builtin_add_overflow(from, offset, &to) || to < 0) {
    return Status(Code::argument, cat("byte ", from, " of ", what_.path, " and ", offset,
                                      " lie before the file's begin, or "
                                      "behind the last byte that a file can have"));
  }
  position_ = to;
  return to;
}

/// Calls near(page, from, bytes) and far(offset, bytes) for the parts of a piece that lie in one page each.
template <typename Byte, typename Near, typename Far>
Status SharedFile::for_each_segment(const Piece<Byte>& piece, const Near& near, const Far& far) const {
  Bytes offset = piece.offset;
  std::span<Byte> rest = piece.bytes;
  while (!rest.empty()) {
    const Index page = page_of(offset);
    const Bytes from = place_in_page(offset);
    Bytes length = std::min<Bytes>(page_ - from, std::ssize(rest));
    const bool is_here = nodes_ == 1 || is_near(page);
    if (!is_here) length = std::min(length, largest_far);
    const auto part = rest.first(static_cast<std::size_t>(length));
    TR_TRY(is_here ? near(page, from, part) : far(page, offset, part));
    offset += length;
    rest = rest.subspan(part.size());
  }
  return {};
}

Result<Bytes> SharedFile::size() {
  if (nodes_ == 1 || node_ == 0) return pages_->size();
  return far_->size();
}

/// Returns a size of the file that shows how much there is of each sink.
Result<Bytes> SharedFile::end_for(std::span<const Sink> sinks) {
  const Bytes known = pages_->size();
  const bool is_enough = std::ranges::all_of(sinks, [&](const Sink& sink) {
    return sink.offset <= known && std::ssize(sink.bytes) <= known - sink.offset;
  });
  return is_enough ? Result<Bytes>(known) : size();
}

Result<Bytes> SharedFile::read(std::span<const Sink> sinks) {
  TR_TRY(check(what_.access.reads, "reading"));
  const Result<Bytes> end = end_for(sinks);
  TR_TRY(end.status());
  std::vector<FarRead> far;
  Bytes waiting = 0;
  Bytes got = 0;
  for (const Sink& sink : sinks) {
    if (sink.offset >= *end) continue;
    const Bytes there = std::min<Bytes>(std::ssize(sink.bytes), *end - sink.offset);
    TR_TRY(for_each_segment(
        Sink{sink.bytes.first(static_cast<std::size_t>(there)), sink.offset},
        [&](Index page, Bytes from, std::span<std::byte> into) { return pages_->read(page, from, into); },
        [&](Index page, Bytes offset, std::span<std::byte> into) {
          far.push_back({server_of(page), offset, into});
          waiting += std::ssize(into);
          return waiting < far_at_once ? Status() : read_far(far, waiting);
        }));
    got += there;
  }
  TR_TRY(read_far(far, waiting));
  return got;
}

Status SharedFile::read_far(std::vector<FarRead>& reads, Bytes& waiting) {
  waiting = 0;
  if (reads.empty()) return {};
  const Status status = far_->read(reads);
  reads.clear();
  return status;
}

Result<Bytes> SharedFile::read_here(std::span<std::byte> bytes) {
  const Sink sinks[] = {{bytes, position_}};
  const Result<Bytes> got = read(sinks);
  if (got.is_ok()) position_ += *got;
  return got;
}

Status SharedFile::write(std::span<const Source> sources) {
  TR_TRY(check(what_.access.writes, "writing"));
  for (const Source& source : sources) {
    if (source.bytes.empty()) continue;
    if (source.offset > Definition::most_size - std::ssize(source.bytes)) return too_large(source.offset);
    // A page may be stored at any moment, and only up to the end of the file.
    pages_->raise_size(source.offset + std::ssize(source.bytes));
    TR_TRY(for_each_segment(
        source,
        [&](Index page, Bytes from, std::span<const std::byte> bytes) {
          return pages_->write(page, from, bytes);
        },
        [&](Index page, Bytes offset, std::span<const std::byte> bytes) {
          far_->write(server_of(page), offset, bytes);
          return Status();
        }));
  }
  return {};
}

Status SharedFile::write_here(std::span<const std::byte> bytes) {
  if (what_.access.appends) {
    const Result<Bytes> begin = append(bytes);
    if (begin.is_ok()) position_ = *begin + std::ssize(bytes);
    return begin.status();
  }
  const Source sources[] = {{bytes, position_}};
  TR_TRY(write(sources));
  position_ += std::ssize(bytes);
  return {};
}

Result<Bytes> SharedFile::append(std::span<const std::byte> bytes) {
  TR_TRY(check(what_.access.writes, "writing"));
  Result<Bytes> before = Bytes{0};
  if (nodes_ == 1 || node_ == 0) {
    before = pages_->add_to_size(std::ssize(bytes));
  } else {
    before = far_->add_to_size(std::ssize(bytes));
  }
  TR_TRY(before.status());
  const Bytes begin = *before;
  const Source sources[] = {{bytes, begin}};
  TR_TRY(write(sources));
  return begin;
}

/// Afterwards all writes so far are in their pages, and all ranks know the same size. Returns the same Status
/// on every rank: the first failure of a write that was on its way.
Status SharedFile::meet(const std::string& call) {
  Status mine;
  if (far_ != nullptr) {
    far_->settle();
    mine = far_->failure();
  }
  const std::string named = cat(call, "(", what_.path, ")");
  // A rank raises the size of its own node before it writes: the writes of all ranks count in the largest.
  const comm::Verdict met = vote_and_bid(named, mine.in(named), pages_->size());
  if (met.status.code() != Code::order) pages_->raise_size(met.largest_bid);
  return met.status;
}

Status SharedFile::sync(const std::string& call) { return meet(call); }

Status SharedFile::resize(Bytes size) {
  const std::string call = cat("tr_shared_resize(", what_.path, ", ", size, ")");
  Status mine = check(what_.access.writes, "writing");
  if (mine.is_ok() && size < 0) mine = Status(Code::argument, "a file has no negative size");
  if (mine.is_ok() && size > Definition::most_size) mine = too_large(size);
  // Before anybody changes anything, all agree on the arguments.
  TR_TRY(vote(call, mine.in(call)));
  const Status met = meet("tr_shared_resize");
  if (met.code() == Code::order) return met;
  // The undo files must hold the bytes behind `size` before the file is cut.
  if (safe_ != nullptr && is_first_of_node()) mine = guarded([&] { return safe_->keep(*file_, size, most); });
  TR_TRY(vote(cat(call, ", keeping"), mine.in(call)));
  // A file that cannot be cut stays as it is, in memory, too.
  mine = group_->is_io_rank() ? guarded([&] { return cut_file(size); }) : Status();
  TR_TRY(vote(cat(call, ", cutting"), mine.in(call)));
  if (is_first_of_node()) pages_->cut(size);
  return first_cause(met, vote(cat(call, ", cut"), {}));
}

/// Cuts the file on disk. Otherwise the old bytes would come back when the file grows again.
Status SharedFile::cut_file(Bytes size) {
  journal::Journals& journals = group_->service().journals();
  const Result<Bytes> stored = file_->size();
  TR_TRY(stored.status());
  if (*stored <= size) return {};
  if (journals.has(what_.path)) TR_TRY(journals.keep(what_.path, *file_, size, *stored - size));
  is_unsynced_ = true;
  return file_->truncate(size);
}

/// Stores what this rank is to store of its node's pages, and on the I/O rank the size.
Status SharedFile::store_mine(bool durable) {
  const int writers = std::clamp(group_->settings().aggregators, 1, group_->node().size());
  const int me = group_->node().rank();
  Status mine;
  if (me < writers) mine = pages_->store_changed(me, writers);
  if (!group_->is_io_rank() || !mine.is_ok()) return mine;
  const Result<Bytes> stored = file_->size();
  TR_TRY(stored.status());
  // Holes at the end are part of the file. Other nodes may be writing below this size.
  if (*stored < pages_->size()) {
    if (safe_ != nullptr) TR_TRY(safe_->keep(*file_, pages_->size(), 0));
    is_unsynced_ = true;
    TR_TRY(file_->truncate(pages_->size()));
  }
  if (!durable || !is_new_ || safe_ != nullptr) return {};
  TR_TRY(group_->service().target().sync_directory_of(what_.path));
  is_new_ = false;
  return {};
}

/// One rank of each node synchronises what all of its ranks have stored. What failed once fails again.
Status SharedFile::synchronise() {
  if (is_first_of_node() && pages_->take_stored_since()) is_unsynced_ = true;
  if (!is_unsynced_) return {};
  TR_TRY(file_->sync());
  is_unsynced_ = false;
  return {};
}

Status SharedFile::store(const std::string& call, bool durable, bool closes) {
  const Status met = meet(call);
  if (far_ != nullptr) (void)far_->take_failure();  // it is told here
  // All ranks have what they asked for, or gave up after their calls broke the order: then some may still
  // ask.
  if (closes) far_.reset();
  const Bytes size = pages_->size();  // the same on every rank, until one of them has left this call
  durable = durable || safe_ != nullptr;
  const std::string named = cat(call, "(", what_.path, ")");
  Status mine;
  if (what_.access.writes && met.code() != Code::order) mine = guarded([&] { return store_mine(durable); });
  Status stored = vote(cat(named, ", storing"), mine.in(named));
  if (durable && what_.access.writes && stored.is_ok()) {
    mine = synchronise();
    stored = vote(cat(named, ", durable"), mine.in(named));
    if (safe_ != nullptr && stored.is_ok() && met.is_ok()) stored = safe_->commit(size, closes, named);
  }
  if (closes) {
    if (file_ != nullptr) mine = std::exchange(file_, nullptr)->close();
    stored = first_cause(stored, vote(cat(named, ", closing"), mine.in(named)));
  }
  return met.is_ok() ? stored : met;
}

Status SharedFile::flush(const std::string& call) { return store(call, true, false); }

Status SharedFile::close(const std::string& call) {
  const Status closed = store(call, false, true);
  leave_pages();
  pages_.reset();
  safe_.reset();
  return closed;
}

}  // namespace tailrace::shared
