// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/shared_file.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/storage/identity.hpp"

namespace tailrace::shared {

namespace {

/// The most bytes of a piece that one message carries to another node.
constexpr Bytes largest_far = Bytes{1} << 20;
/// A read asks other nodes for this much at a time.
constexpr Bytes far_at_once = Bytes{4} << 20;

constexpr Bytes most = std::numeric_limits<Bytes>::max();

/// A rank looks at the clock once in `calls_between_looks` reads and writes. It looks for requests of other
/// nodes if `least_between_serving` nanoseconds have passed since the last look for them.
constexpr int calls_between_looks = 64;
constexpr std::int64_t least_between_serving = 5'000'000;

/// A rank reads ahead if it may fill at least this many frames ahead.
constexpr Index least_pages_ahead = 2;

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
      node_(group_->node_ranks().seat(group_->rank()).node) {
  if (what_.access.writes)
    open_ =
        group_->service().journals().note_shared(group_->service().target(), what_.path, group_->rank() == 0);
}

SharedFile::~SharedFile() {
  far_.reset();  // no thread submits a job for the server from now on
  if (storing_key_) group_->threads().drain(*storing_key_);
}

Result<std::unique_ptr<SharedFile>> SharedFile::open(const std::shared_ptr<files::Group>& group,
                                                     const std::string& call,
                                                     const Result<Definition>& given) {
  const std::uint64_t epoch = group->new_epoch();  // also after an error: all ranks count all opens
  std::unique_ptr<SharedFile> made;
  Status mine = given.status();
  if (mine.is_ok()) {
    mine = guarded([&] {
      made.reset(new SharedFile(group, *given, epoch));
      if (given->safety != Safety::none && given->access.writes)
        made->safe_ = std::make_unique<SafeFile>(*group, *given);
      if (group->settings().check_conflicts && group->size() > 1 && given->access.writes)
        made->conflicts_ = std::make_unique<Conflicts>(*group, "byte");
      return Status();
    });
  }
  const Cause cause{-1, -1, group->rank()};
  if (made == nullptr) return group->agree({mine.in(call).at(cause), call, {}}).status;
  const Result<Deal> deal = made->agree_on_deal(call, mine.in(call).at(cause));
  TR_TRY(deal.status());
  // No rank creates the file, and so truncates an old one, before all nodes have memory for its pages.
  TR_TRY(made->make_pages(*deal, call));
  TR_TRY(made->opens_early() ? made->open_elsewhere(call, nullptr) : made->open_on_io_rank(call));
  return made;
}

/// Opens the file on the I/O rank, and then on the others. Not called with opens_early(): then the I/O rank
/// has opened the file before.
Status SharedFile::open_on_io_rank(const std::string& call) {
  const Status mine = guarded([&]() -> Status {
    if (safe_ != nullptr) safe_->place(page_, deal_out_pages());
    return group_->is_io_rank() ? make_or_check() : Status();
  });
  Packer told;
  if (group_->is_io_rank() && mine.is_ok()) {
    told.put(pages_->size());
    if (safe_ != nullptr) safe_->tell(told);
  }
  const comm::Verdict verdict = group_->agree(
      {mine.in(call).at({-1, -1, group_->rank()}), cat(call, " of file ", epoch_), told.take()});
  if (!verdict.status.is_ok()) {
    if (safe_ != nullptr && group_->is_io_rank()) safe_->give_up();
    return verdict.status;
  }
  Unpacker in(verdict.contributions.front());
  const auto size = in.get<Bytes>();
  if (is_first_of_node()) {
    pages_->set_size(size);
    pages_->set_stored(size);
  }
  return open_elsewhere(call, &in);
}

/// Turns reading ahead on, if the program may read the file and there is memory for it: a thread brings in
/// pages before the program reads them, and so does the program's thread while it waits for a page.
void SharedFile::read_ahead() {
  if (!what_.access.reads || pages_->most_ahead() < least_pages_ahead) return;
  (void)guarded([this] {
    ahead_ = std::make_unique<ReadAhead>(group_->threads(), *pages_, group_->rank(), group_->node().size());
    pages_->while_waiting([ahead = ahead_.get()] { return ahead->bring_next(); });
    return Status();
  });
}

/// Turns storing ahead on: a thread stores pages that were written whole, while the program goes on.
void SharedFile::store_ahead() {
  executor::Threads& threads = group_->threads();
  if (!storing_key_) storing_key_ = threads.new_own_key();
  pages_->store_ahead_by([this, &threads]() -> Status {
    if (threads.waiting_threads() == 0) return {Code::unsupported, "the program has no threads for storage"};
    threads.submit(*storing_key_, [pages = pages_.get()] { pages->store_offered(); });
    return {};
  });
}

/// Waits until this rank's jobs behind the program store no more pages. No rank of the node may write
/// meanwhile, since written pages make new jobs.
void SharedFile::end_storing_ahead() {
  if (storing_key_)
    group_->wait([this] { return group_->threads().is_idle(*storing_key_); }, "pages that are being stored");
}

/// Opens the file on all ranks but the I/O rank, which has opened it before. With safety=, `told` is the I/O
/// rank's message to SafeFile::hear() on every rank.
Status SharedFile::open_elsewhere(const std::string& call, Unpacker* told) {
  Status mine;
  if (safe_ != nullptr) mine = safe_->hear(*told);
  if (!group_->is_io_rank() && mine.is_ok()) {
    mine = guarded([&] {
      return open_file(what_.access.writes ? storage::OpenMode::existing : storage::OpenMode::read);
    });
  }
  // Before the vote: other nodes may write to the pages of this node as soon as all ranks have voted.
  if (what_.access.writes && mine.is_ok()) mine = guarded([&] { return store_ahead(), Status(); });
  if (servers_ != nullptr && mine.is_ok()) mine = guarded([&] { return hand_pages(), Status(); });
  const comm::Verdict opened =
      vote_and_bid(call, mine.in(call), servers_ != nullptr ? servers_->bid() : comm::Vote::least_bid);
  if (!opened.status.is_ok() && safe_ != nullptr && group_->is_io_rank()) safe_->give_up();
  if (opened.status.is_ok() && servers_ != nullptr) servers_->conclude(opened.largest_bid, far_->requests());
  return opened.status;
}

/// Hands the pages to the server of this node, which opens the file to read it. The file exists by now, and
/// the pages know its size. The server gets a path from the root, since the program may have changed its
/// working directory.
void SharedFile::hand_pages() {
  Packer more;
  more.put(page_).put(pages_->plan().memory).put(group_->rank());
  const storage::FileNumber number = storage::number_of(stored_path());
  const bool is_in_file_system = number != storage::FileNumber();
  more.put(number);
  more.put_text(is_in_file_system ? storage::path_from_root(stored_path()) : stored_path());
  servers_->hand(node::Handed::pages, pages_->memory(), more);
}

/// Stores pages, on a thread if there is one, if the server of this node waits for room. The progress engine
/// calls this while it serves: inside a call of the library, or on the service thread. Returns true if this
/// call itself has stored a page.
bool SharedFile::make_room_for_server() {
  if (!may_store_for_server_ || !storing_key_ || !pages_->is_room_wanted()) return false;
  const auto make_room = [pages = pages_.get(), servers = servers_.get()] {
    const bool has_stored = pages->make_room();
    servers->ring();
    return has_stored;
  };
  executor::Threads& threads = group_->threads();
  if (threads.waiting_threads() == 0) return make_room();
  if (threads.is_idle(*storing_key_)) threads.submit(*storing_key_, make_room);
  return false;
}

/// Returns the deal that this node proposes. Unless the program has set page=, the page is smaller than usual
/// where the node has little memory.
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

/// Takes the pages that the last file has left, if they have this deal's size and both files have the same
/// memory=.
void SharedFile::take_kept(const Deal& deal) {
  auto kept = std::static_pointer_cast<KeptPages>(std::exchange(group_->kept_pages(), nullptr));
  if (kept == nullptr || kept->asked != what_.memory || kept->pages->plan().page != deal.page) return;
  pages_ = std::move(kept->pages);
  pages_->begin_again(disk());
}

/// Returns the size of the pages that the last file has left, or 0 if there are none or their memory= was
/// another.
Bytes SharedFile::kept_page() const {
  const auto kept = std::static_pointer_cast<KeptPages>(group_->kept_pages());
  return kept != nullptr && kept->asked == what_.memory ? kept->pages->plan().page : 0;
}

/// Agrees on the deal. The first rank of each node proposes one. With one node every rank also tells which
/// pages the last file has left to it; if all have pages of the right size and opens_early(), the I/O rank
/// opens the file within this vote.
Result<SharedFile::Deal> SharedFile::agree_on_deal(const std::string& call, Status mine) {
  Packer told;
  Deal deal;
  deal.page = Definition::most_page;
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
  if (mine.is_ok() && nodes_ == 1 && is_first_of_node()) told.put(deal.page).put(deal.memory);
  if (mine.is_ok() && nodes_ == 1) told.put(kept_page());
  comm::Vote vote{mine, call, told.take()};
  vote.bid = -deal.page;
  if (opens_early() && group_->is_io_rank()) {
    vote.check = [&](const comm::Verdict& verdict) {
      const Deal all = deal_in(verdict);
      if (!all.is_kept) return Status();
      take_kept(all);
      const Status opened = make_or_check();
      if (!opened.is_ok()) leave_pages();
      return opened.in(call);
    };
  }
  const comm::Verdict verdict = group_->agree(std::move(vote));
  TR_TRY(verdict.status);
  Deal all = deal_in(verdict);
  if (nodes_ > 1) all.memory = deal.memory;
  return all;
}

/// Returns the deal on which the ranks have agreed. With several nodes each node votes with its page alone,
/// and all take the smallest: of thousands of nodes a longer message of each would go to every rank.
SharedFile::Deal SharedFile::deal_in(const comm::Verdict& verdict) const {
  Deal all;
  if (nodes_ > 1) {
    all.page = -verdict.largest_bid;
    return all;
  }
  all.is_kept = true;
  for (std::size_t rank = 0; all.is_kept && rank < verdict.contributions.size(); ++rank) {
    Unpacker in(verdict.contributions[rank]);
    if (rank == 0) {
      all.page = in.get<Bytes>();
      all.memory = in.get<Bytes>();
    }
    all.is_kept = in.get<Bytes>() == all.page;
  }
  return all;
}

Status SharedFile::make_pages(const Deal& deal, const std::string& call) {
  page_ = deal.page;
  page_shift_ = std::countr_zero(static_cast<std::uint64_t>(page_));
  if (deal.is_kept) {
    if (pages_ == nullptr) take_kept(deal);
    read_ahead();
    return {};  // every rank has its pages: no vote is needed
  }
  Status mine;
  if (nodes_ > 1) mine = guarded([&] { return deal_out_pages(), Status(); });
  mine = first_cause(mine, take_pages(deal));
  if (mine.is_ok()) read_ahead();
  if (mine.is_ok() && nodes_ > 1) {
    mine = guarded([&] {
      servers_ = std::make_unique<files::NodeServers>(*group_, epoch_);
      if (what_.access.writes) storing_key_ = group_->threads().new_own_key();  // a service thread uses it
      far_ = std::make_unique<FarPages>(group_->service().progress(),
                                        exchange::Requests::peers_of(group_->line()), epoch_,
                                        group_->threads(), served());
      return Status();
    });
  }
  std::function<Status()> then;
  if (opens_early() && group_->is_io_rank()) then = [&] { return make_or_check().in(call); };
  return vote(call, mine.in(call), then);
}

const std::shared_ptr<const PageDeal>& SharedFile::deal_out_pages() {
  if (pages_of_ranks_ == nullptr) pages_of_ranks_ = std::make_shared<PageDeal>(page_, group_->node_ranks());
  return pages_of_ranks_;
}

/// Takes the pages that the last file has left, or makes new ones. With one node it makes new ones: at least
/// one rank has none left.
Status SharedFile::take_pages(const Deal& deal) {
  if (nodes_ > 1) take_kept(deal);
  if (pages_ != nullptr) return {};
  group_->kept_pages() = nullptr;
  // Behind this vote: no rank takes new memory before all ranks have given back their old pages.
  comm::Vote told{{}, "the memory for pages of a shared file", {}};
  if (is_first_of_node()) told.bid = deal.memory;
  const comm::Verdict verdict = group_->node().agree(std::move(told));
  TR_TRY(verdict.status);
  NodePages::Plan plan{page_, verdict.largest_bid, nodes_ > 1 ? pages_of_ranks_ : nullptr};
  if (!what_.memory) plan.reused_from = most_kept() / 2;
  Result<std::unique_ptr<NodePages>> pages =
      NodePages::create(group_->node(), plan, group_->settings().huge_pages, group_->budget(), disk());
  TR_TRY(pages.status());
  pages_ = std::move(*pages);
  return {};
}

/// Returns how many bytes of pages are left to the next file at most.
Bytes SharedFile::most_kept() const { return std::min(largest_kept, group_->budget().limit() / 8); }

/// Leaves the pages to the next file, unless they take more than most_kept(). The next file then needs no
/// fresh memory.
void SharedFile::leave_pages() {
  if (pages_ == nullptr || pages_->taken() > most_kept()) return;
  group_->kept_pages() = std::make_shared<KeptPages>(KeptPages{std::move(pages_), what_.memory});
}

Status SharedFile::open_file(storage::OpenMode mode) {
  // Other users can guess the temporary name, and put a link there: these modes do not follow it.
  const bool is_temporary = safe_ != nullptr && !safe_->has_its_name();
  if (is_temporary && mode == storage::OpenMode::create) mode = storage::OpenMode::anew;
  if (is_temporary && mode == storage::OpenMode::existing) mode = storage::OpenMode::own_existing;
  Result<std::unique_ptr<storage::File>> file = group_->service().target().open(
      stored_path(), mode, safe_ != nullptr ? safe_->permissions() : what_.permissions);
  TR_TRY(file.status());
  file_ = std::move(*file);
  return {};
}

/// Opens the file on the I/O rank, and creates or empties it as the mode says. Afterwards the file exists,
/// and the pages know its size.
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
  // A checkpoint's journal belongs to one rank, but every rank stores pages. So this rank keeps the whole
  // file in its journal now.
  const bool is_kept = access.writes && journals.has(what_.path);
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
  pages_->set_stored(*size);
  is_unsynced_ = access.empties;
  return safe_ != nullptr ? safe_->begin(*file_) : Status();
}

Disk SharedFile::disk() {
  Disk disk;
  disk.load = [this](std::span<std::byte> bytes, Bytes offset) { return load_page(*file_, bytes, offset); };
  disk.store = [this](storage::Parts parts, Bytes offset) -> Status {
    if (safe_ != nullptr) TR_TRY(safe_->keep(*file_, offset, storage::bytes_in(parts)));
    TR_TRY(file_->write_gathered(parts, offset));
    if (is_flushing_) file_->begin_write_back();
    return {};
  };
  return disk;
}

Served SharedFile::served() {
  Served served = served_from(*pages_, page_);
  served.read = [this, read = std::move(served.read)](Bytes offset, std::span<std::byte> into, bool waits) {
    if (ahead_ != nullptr) ahead_->saw_for_others(page_of(offset));
    return read(offset, into, waits);
  };
  served.help = [this] { return make_room_for_server(); };
  return served;
}

/// Agrees on the Status of all ranks. If no rank has failed, the I/O rank calls `then` before the ranks hear
/// the verdict, and a failure of `then` becomes the verdict.
Status SharedFile::vote(const std::string& call, const Status& mine, const std::function<Status()>& then) {
  return vote_and_bid(call, mine, comm::Vote::least_bid, then).status;
}

comm::Verdict SharedFile::vote_and_bid(const std::string& call, const Status& mine, std::int64_t bid,
                                       const std::function<Status()>& then) {
  const Cause cause{-1, -1, group_->rank()};
  comm::Vote vote{mine.at(mine.cause().rank < 0 ? cause : mine.cause()), cat(call, " of file ", epoch_), {}};
  vote.bid = bid;
  if (then != nullptr) vote.check = [&](const comm::Verdict&) { return then(); };
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

/// Cuts a piece into parts that lie in one page each. Calls near(page, from, bytes) for a page of this node,
/// and far(page, offset, bytes) for a page of another node.
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

/// Returns the file's size, or a lower bound that is not before the end of any sink. Rank 0 is asked only if
/// the size that this node knows is too small.
Result<Bytes> SharedFile::end_for(std::span<const Sink> sinks) {
  const auto is_enough = [&](Bytes known) {
    return std::ranges::all_of(sinks, [&](const Sink& sink) {
      return sink.offset <= known && std::ssize(sink.bytes) <= known - sink.offset;
    });
  };
  if (const Bytes least = pages_->least_size(); is_enough(least)) return least;
  const Bytes known = pages_->size();
  return is_enough(known) ? Result<Bytes>(known) : size();
}

/// Serves other nodes if the last time is long ago: their ranks may wait for this rank while its program uses
/// pages of its own node alone. Not in each call: a pass of the switchboard costs as much as hundreds of
/// small reads, and a look at the clock as much as half a small read.
void SharedFile::serve_if_it_is_time() {
  calls_to_look_ = calls_between_looks;
  comm::Switchboard& board = group_->line().board();
  const std::int64_t now = board.transport().now();
  if (now - served_at_ < least_between_serving) return;
  served_at_ = now;
  board.pump();
}

Result<Bytes> SharedFile::read(std::span<const Sink> sinks) {
  TR_TRY(check(what_.access.reads, "reading"));
  serve_now_and_then();
  const Result<Bytes> end = end_for(sinks);
  TR_TRY(end.status());
  std::vector<FarRead> far;
  Bytes waiting = 0;
  Bytes got = 0;
  for (const Sink& sink : sinks) {
    note(Doing::read, sink.offset, std::ssize(sink.bytes));  // also behind the end, which a writer may move
    if (sink.offset >= *end) continue;
    const Bytes there = std::min<Bytes>(std::ssize(sink.bytes), *end - sink.offset);
    TR_TRY(for_each_segment(
        Sink{sink.bytes.first(static_cast<std::size_t>(there)), sink.offset},
        [&](Index page, Bytes from, std::span<std::byte> into) {
          if (ahead_ != nullptr) ahead_->saw(page);
          return pages_->read(page, from, into);
        },
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
  serve_now_and_then();
  for (const Source& source : sources) {
    if (source.bytes.empty()) continue;
    if (source.offset > Definition::most_size - std::ssize(source.bytes)) return too_large(source.offset);
    note(Doing::write, source.offset, std::ssize(source.bytes));
    // The size rises first: a page may be stored at any moment, and only up to the end of the file.
    pages_->raise_size_for_write(source.offset + std::ssize(source.bytes));
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

/// Waits until all writes so far are in their pages, and all ranks know the same size. With Before::change
/// the caller stores or cuts pages next: when meet() returns, no thread stores pages, and none does until the
/// end of the caller's ServesAgain. Returns the same Status on every rank: the first `mine` that is an error,
/// or the first failure of a write that was on its way.
Status SharedFile::meet(const std::string& named, Before before, Status mine) {
  if (before == Before::change) pages_->forget_written();
  if (far_ != nullptr) {
    far_->settle();
    mine = first_cause(mine, far_->failure());
  } else if (before == Before::change) {
    end_storing_ahead();
  }
  // A rank raises the size that its own node knows before it writes. So the largest of these sizes covers the
  // writes of all ranks.
  const comm::Verdict met = vote_and_bid(named, mine.in(named), pages_->size());
  if (met.status.code() == Code::order) return met.status;
  if (far_ != nullptr) pages_->raise_size(met.largest_bid);
  if (far_ != nullptr && before == Before::change) {
    // Before the verdict this rank wrote for ranks of other nodes, and stored pages for its server.
    {
      const auto alone = far_->requests().alone();
      may_store_for_server_ = false;
    }
    end_storing_ahead();
    TR_TRY(vote(cat(named, " and what was being stored"), {}));
  }
  if (conflicts_ != nullptr) conflicts_->compare(pages_->size(), named);
  return met.status;
}

Status SharedFile::sync(const std::string& call) {
  return meet(cat(call, "(", what_.path, ")"), Before::nothing);
}

Status SharedFile::resize(Bytes size) {
  const std::string call = cat("tr_shared_resize(", what_.path, ", ", size, ")");
  // A page that a thread brings in while the file is cut could have bytes that the cut removes.
  const ReadAhead::Pause pause(ahead_.get());
  const ServesAgain at_the_end(*this);
  Status mine = check(what_.access.writes, "writing");
  if (mine.is_ok() && size < 0) mine = Status(Code::argument, "a file has no negative size");
  if (mine.is_ok() && size > Definition::most_size) mine = too_large(size);
  // All ranks agree on the arguments before any rank changes anything. A wrong argument is wrong on all.
  const Status met = meet(call, Before::change, mine);
  if (met.code() == Code::order || !mine.is_ok()) return met;
  bool stored_behind = false;
  if (safe_ != nullptr || nodes_ > 1) {
    const Result<bool> prepared = prepare_cut(size, call);
    TR_TRY(prepared.status());
    stored_behind = *prepared;
  }
  // The file is cut on disk first: if that fails, its pages in memory stay as they are, too.
  mine = group_->is_io_rank() ? guarded([&] { return cut_file(size, stored_behind); }) : Status();
  if (nodes_ == 1 && group_->is_io_rank() && mine.is_ok()) pages_->cut(size);
  TR_TRY(vote(cat(call, ", cutting"), mine.in(call)));
  if (nodes_ == 1) return met;
  if (is_first_of_node()) pages_->cut(size);
  return first_cause(met, vote(cat(call, ", cut"), {}));
}

/// Prepares to cut the file at `size`. Puts the bytes behind `size` into the undo files, with safety=, and
/// synchronises the file on each of several nodes that may have stored bytes there: a client of NFS could
/// otherwise send them to its server after the cut, and make the file longer again. Returns true, on every
/// rank, if any of several nodes may have stored bytes there.
Result<bool> SharedFile::prepare_cut(Bytes size, const std::string& call) {
  Status mine;
  const bool has_more = nodes_ > 1 && is_first_of_node() && pages_->stored() > size;
  // The undo files must hold the bytes behind `size` before the file is cut.
  if (safe_ != nullptr && is_first_of_node()) mine = guarded([&] { return safe_->keep(*file_, size, most); });
  if (has_more && mine.is_ok()) mine = guarded([&] { return file_->sync(); });
  const comm::Verdict verdict = vote_and_bid(cat(call, ", keeping"), mine.in(call), has_more ? 1 : 0);
  TR_TRY(verdict.status);
  return verdict.largest_bid > 0;
}

/// Cuts the file on disk. Otherwise the old bytes would come back when the file grows again.
Status SharedFile::cut_file(Bytes size, bool stored_behind) {
  const Result<Bytes> stored = file_->size();
  TR_TRY(stored.status());
  // A client of NFS may not know yet how long other nodes have made the file, nfs(5).
  if (*stored <= size && !stored_behind) return {};
  is_unsynced_ = true;
  return file_->truncate(size);
}

/// Stores this rank's share of its node's changed pages. The I/O rank also makes the file on disk as long as
/// it is in memory.
Status SharedFile::store_mine() {
  const int writers = std::clamp(group_->settings().aggregators, 1, group_->node().size());
  const int me = group_->node().rank();
  Status mine;
  if (me < writers) mine = pages_->store_changed(me, writers);
  if (!group_->is_io_rank() || !mine.is_ok()) return mine;
  const Result<Bytes> stored = file_->size();
  TR_TRY(stored.status());
  // The file may end with a hole, which has no page. The file is only made longer here, so other nodes may
  // write before this size meanwhile.
  if (*stored < pages_->size()) {
    if (safe_ != nullptr) TR_TRY(safe_->keep(*file_, pages_->size(), 0));
    is_unsynced_ = true;
    TR_TRY(file_->truncate(pages_->size()));
  }
  return {};
}

/// Makes stored bytes durable: one rank of each node calls fsync for all ranks of its node. The I/O rank also
/// makes the name of a new file durable. After a failure every later call fails, too.
Status SharedFile::synchronise() {
  if (is_first_of_node() && pages_->take_stored_since()) is_unsynced_ = true;
  if (is_unsynced_) TR_TRY(file_->sync());
  is_unsynced_ = false;
  if (!is_new_ || safe_ != nullptr) return {};
  // The name comes after the file: fsync of the file writes the file system's journal, which mostly has the
  // name already.
  TR_TRY(group_->service().target().sync_directory_of(what_.path));
  is_new_ = false;
  return {};
}

Status SharedFile::store(const std::string& call, bool durable, bool closes) {
  const std::string named = cat(call, "(", what_.path, ")");
  const bool writes = what_.access.writes;
  durable = writes && (durable || safe_ != nullptr);
  const Flushing flushing(*this, durable);
  const ServesAgain at_the_end(*this);
  // Readers of one node have nothing to tell each other.
  const Status met = writes || far_ != nullptr ? meet(named, Before::change) : Status();
  if (far_ != nullptr) (void)far_->take_failure();  // this call returns it, so no later one may
  // By now all ranks have the answers to their requests. Only where the order of calls is broken may some
  // still ask.
  if (closes) {
    if (servers_ != nullptr) pages_->take_over(servers_->take_back());
    far_.reset();
    if (storing_key_) group_->threads().drain(*storing_key_);  // also where the order is broken
  }
  const Bytes size = pages_->size();  // the same on every rank, until one of them has left this call
  // A rank that alone stores the pages of its node calls fsync right after it has stored them. If nothing
  // must become durable, each rank closes the file right away. In both cases no rank waits for the others
  // first.
  const bool syncs_at_once = group_->settings().aggregators <= 1;
  const bool closes_at_once = closes && !durable && met.code() != Code::order;
  Status mine;
  if (writes && met.code() != Code::order) {
    mine = guarded([&]() -> Status {
      TR_TRY(store_mine());
      return durable && syncs_at_once ? synchronise() : Status();
    });
  }
  if (closes_at_once) mine = first_cause(mine, close_file());
  Status stored = vote(cat(named, ", storing"), mine.in(named));
  if (durable && stored.is_ok()) {
    if (!syncs_at_once)
      stored = vote(cat(named, ", durable"), guarded([&] { return synchronise(); }).in(named));
    if (safe_ != nullptr && stored.is_ok() && met.is_ok())
      stored = safe_->commit(*file_, size, closes, named);
  }
  if (closes && !closes_at_once) {
    mine = close_file();
    if (safe_ != nullptr && !group_->is_io_rank()) safe_->release();
    stored = first_cause(stored, vote(cat(named, ", closing"), mine.in(named)));
  }
  return met.is_ok() ? stored : met;
}

Status SharedFile::narrow(unsigned permissions) {
  const std::optional<storage::Rights> rights = file_->rights();
  return rights ? file_->set_permissions(rights->permissions & permissions & 0777) : Status();
}

Status SharedFile::close_file() {
  return file_ != nullptr ? std::exchange(file_, nullptr)->close() : Status();
}

Status SharedFile::flush(const std::string& call) {
  const ReadAhead::Pause pause(ahead_.get());
  return store(call, true, false);
}

Status SharedFile::close(const std::string& call) {
  if (ahead_ != nullptr) ahead_->stop();
  const Status closed = store(call, false, true);
  ahead_.reset();
  leave_pages();
  pages_.reset();
  // A close that has failed leaves the flush before it: the file goes back there.
  if (safe_ != nullptr && group_->is_io_rank()) closed_flush_ = safe_->kept_flush();
  safe_.reset();
  open_.reset();
  return closed;
}

}  // namespace tailrace::shared
