// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "faces/shared/definition.hpp"
#include "faces/shared/pages/page_deal.hpp"
#include "faces/shared/pages/page_frames.hpp"
#include "ground/node/budget.hpp"
#include "ground/node/node_memory.hpp"

namespace tailrace::shared {

/// The pages of a file that belong to one node. They lie in frames: memory that the ranks of the node share.
/// A page that is not in a frame is on disk, or was never written. Whoever needs such a page brings it in.
/// Once some frames are made, a page that is stored and was used once makes room; if all are taken, one that
/// was not used lately does, and is stored first if it has changed.
///
/// A rank that copies from or to a frame holds it: it says so in a place of its own, which costs the others
/// nothing, and then looks whether the frame still has the page. Whoever takes a frame away does both in the
/// other order. Writes of the same bytes follow one another: writers lock the strips of the page in which
/// they write, or the page (faces/shared/pages/page_writes.cpp).
class NodePages {
 public:
  struct Plan {
    Bytes page = 0;                                  // a power of 2
    Bytes memory = 0;                                // the most that frames may take
    std::shared_ptr<const PageDeal> deal = nullptr;  // nullptr: all pages belong to this node
    Bytes reused_from = 0;  // frames are used again before they take more than this; 0: before `memory`
  };
  using User = PagesUser;
  static constexpr int services_of_server = 4;

  /// Collective over `node`, the ranks of one node. Returns the same Status on every rank of the node.
  static Result<std::unique_ptr<NodePages>> create(comm::Line& node, const Plan& plan, bool huge_pages,
                                                   node::Budget& budget, Disk disk);
  /// Local. Pages that `ranks` ranks of this node have made, on a server of the node. It stores none: where
  /// only a page that has changed could make room, a call fails, and is_for_later() is true of the failure.
  /// So does a call of User::desk that would have to wait for storage.
  static Result<std::unique_ptr<NodePages>> attach(comm::Transport& transport, const Plan& plan, int ranks,
                                                   node::Budget& budget, Disk disk,
                                                   std::unique_ptr<node::NodeMemory> memory);
  /// On a server, at the end. Returns the bytes drawn for frames, which are the heir's from now on, or 0 if
  /// there is no heir.
  Bytes end_serving(bool has_heir);
  [[nodiscard]] static bool is_for_later(const Status& failure);
  [[nodiscard]] const node::NodeMemory& memory() const { return *memory_; }
  /// Uses the memory for another file. The ranks of the node do it together, when nobody uses the first file
  /// any more, and agree before anybody uses the other.
  void begin_again(Disk disk);
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Returns the bytes that the frames of the node have taken. Nobody may use the pages meanwhile.
  [[nodiscard]] Bytes taken() const { return static_cast<Bytes>(head().made) << page_shift_; }
  /// Returns the bytes that a plan needs at least for so many ranks of a node.
  static Bytes least_memory(Bytes page, int ranks) { return page * frames_of_rank * ranks; }

  // Local. They wait for storage, and for other ranks of the node that use the same page.
  Status read(Index page, Bytes from, std::span<std::byte> bytes, User user = User::program);
  Status write(Index page, Bytes from, std::span<const std::byte> bytes, User user = User::program);
  /// Brings in pages of this node, in the file's order, as far as storage has them and there is room:
  /// frames that are free, or whose pages have not changed and were not used lately. A page that cannot be
  /// read stays out, and the rank that needs it gets the error. Any thread may call it while ranks may read.
  /// No more than `most` of them. Returns how many it has brought in.
  Index bring_ahead(std::span<const Index> pages, Index most);
  /// While the program waits for a page that another rank brings in, NodePages calls `help`. `help` returns
  /// true if it has brought in another page.
  void while_waiting(std::function<bool()> help) { help_ = std::move(help); }
  /// Returns the page's number among those of the node.
  [[nodiscard]] Index near_number(Index page) const {
    return plan_.deal == nullptr ? page : plan_.deal->place_of_page(page).near;
  }
  /// Returns how many of the frames a rank may fill ahead.
  [[nodiscard]] Index most_ahead() const { return frames_ / (Index{frames_of_rank} * ranks_); }
  /// Returns true if storage gives pages as fast as memory is copied, as the cache of the system does. A rank
  /// should bring in its pages by itself then: they are in the cache of its core.
  [[nodiscard]] bool is_storage_fast() const;
  /// Returns true if the page need not be brought in, by now.
  [[nodiscard]] bool has(Index page) const { return find(page).has_value(); }

  /// Returns the file's size as this node knows it.
  [[nodiscard]] Bytes size() const;
  /// Returns a lower bound of the file's size. Costs less than size(), which looks at every rank.
  [[nodiscard]] Bytes least_size() const { return head().size.load(std::memory_order_relaxed); }
  /// Makes it larger. Any thread.
  void raise_size(Bytes size);
  /// The program is about to write up to `end`. Makes the size at least `end`, without writing to memory that
  /// the other ranks use in each call.
  void raise_size_for_write(Bytes end);
  /// Returns the size before, or Code::argument if the file would end behind the last byte that it can have.
  Result<Bytes> add_to_size(Bytes bytes);

  // Storing ahead: a run of pages that were written whole is offered to storage while the ranks write on. One
  // rank of the node stores at a time.
  /// Turns it on. `start` is called by a thread that has written, and has another one call store_offered().
  void store_ahead_by(std::function<Status()> start) { start_ = std::move(start); }
  /// Stores the runs on offer until there are none. A page that cannot be stored stays changed.
  void store_offered();

  // A server of the node needs room, and ranks store pages for it.
  [[nodiscard]] bool is_room_wanted() const { return head().wants_room.load(std::memory_order_relaxed); }
  /// Stores some changed pages. The server hears of a failure. Any thread. Returns true if it has stored any.
  bool make_room();
  void take_over(Bytes drawn) { drawn_.inherit(drawn); }  // by a server, for frames

  // The following calls need the ranks of the node to be in one collective call, so that nobody writes.
  /// Each rank calls it before pages are stored or cut: what it has written no longer makes a page whole.
  void forget_written() { writing_ = {}; }
  void set_size(Bytes size);
  void set_stored(Bytes size) { head().stored = size; }
  /// Returns the end of what the file had when it was opened, or the node has stored since.
  [[nodiscard]] Bytes stored() const { return head().stored; }
  /// Stores share `share` of `shares` of the changed pages, in the file's order.
  Status store_changed(int share, int shares);
  /// Forgets what lies behind `size`. One rank of the node calls it.
  void cut(Bytes size);
  /// Returns true if something was stored since the last call. One rank of the node calls it.
  [[nodiscard]] bool take_stored_since() { return head().stored_since.exchange(false); }

 private:
  using Head = PagesHead;
  static constexpr Bytes frames_of_rank = 4;
  static constexpr int users = 3;

  NodePages(comm::Transport& transport, const Plan& plan, node::Budget& budget, Disk disk)
      : transport_(transport), plan_(plan), drawn_(budget, node::Use::pages), disk_(std::move(disk)) {}
  void lay_out();
  Status make(comm::Line& node, bool huge_pages);
  void push_free(FrameNumber number);
  FrameNumber pop_free();
  void free_frame(FrameNumber number);
  bool free_stored(FrameNumber number, bool is_stored);
  [[nodiscard]] Bytes head_bytes() const;
  [[nodiscard]] Head& head() const { return *reinterpret_cast<Head*>(base_); }
  [[nodiscard]] Index holds() const { return Index{users} * (ranks_ + 1) + services_of_server - 1; }
  [[nodiscard]] Hold* first_hold() const { return reinterpret_cast<Hold*>(&head() + 1); }
  [[nodiscard]] Hold& hold_of(User user) const { return hold_of(user, me_); }
  [[nodiscard]] Hold& hold_of(User user, int rank) const {
    return first_hold()[Index{users} * rank + static_cast<int>(user)];
  }
  Seat seat_of(User user, FrameNumber mark = 0);
  [[nodiscard]] std::atomic<FrameNumber>& bucket(std::uint64_t number) const;
  /// Pages of this node follow one another in its buckets.
  [[nodiscard]] std::atomic<FrameNumber>& bucket_of(Index page) const {
    return bucket(static_cast<std::uint64_t>(near_number(page)) & bucket_mask_);
  }
  [[nodiscard]] Frame& frame(FrameNumber number) const;
  [[nodiscard]] std::byte* memory_of(FrameNumber number) const {
    return base_ + head_bytes_ + static_cast<Bytes>(number) * plan_.page;
  }
  [[nodiscard]] bool is_held(FrameNumber number) const;
  [[nodiscard]] std::optional<FrameNumber> find(Index page) const;
  [[nodiscard]] FrameNumber find_in_chain(Index page) const;
  void link(FrameNumber number, Index page);
  void unlink(FrameNumber number, Index page);
  bool try_hold(FrameNumber number, Index page, Seat& seat) const;
  Result<Held> hold(Index page, std::span<const std::byte> whole, Seat& seat);
  static Status would_wait();
  Status lock(node::SharedLock& lock, User user);
  [[nodiscard]] bool may_wait(User user) const { return stores_ || user != User::desk; }
  Result<Held> bring_in(Index page, std::span<const std::byte> whole, Seat& seat);
  Status fill(FrameNumber number, Index page, std::span<const std::byte> whole);
  Status load(std::span<std::byte> memory, Bytes offset);
  Status give_memory(FrameNumber number);
  void publish(FrameNumber number, Index page, bool is_changed, Era use);
  Status give_up(FrameNumber number, Index page, const Status& why);
  Result<Room> find_room();
  void end_wanting_room();
  Room take_from_others();
  bool take_out(FrameNumber number, Index page);
  [[nodiscard]] FrameNumber frames_for(Bytes bytes) const;
  [[nodiscard]] FrameNumber frames_made_first() const;
  [[nodiscard]] bool are_caches_full() const;
  [[nodiscard]] bool are_first_frames_full() const;
  FrameNumber take_used_once(bool has_waited);
  [[nodiscard]] std::int64_t worth_waiting() const;
  bool waits_for_frame(std::int64_t& until);
  void count_read(FrameNumber number, Index page, Bytes bytes);
  void count_page();
  void note_return(FrameNumber number, Index page);
  void forget_gone();
  FrameNumber take_spare();
  Bytes claim_ahead(std::span<const Index> pages, std::vector<Coming>& coming,
                    std::vector<FrameNumber>& frames);
  bool load_ahead(std::span<Coming> run, Bytes stored);
  Status store(FrameNumber number);
  Status store_run(std::span<const std::pair<Index, FrameNumber>> run);
  Result<bool> may_write_strips(FrameNumber number, Bytes end, Seat& seat);
  Status write_strips(FrameNumber number, Bytes from, std::span<const std::byte> bytes, User user);
  Status write_alone(FrameNumber number, Bytes from, std::span<const std::byte> bytes, User user);
  [[nodiscard]] bool are_strips_written(FrameNumber number) const;
  Status wait_for_writers(FrameNumber number, User user);
  void count_written(FrameNumber number, Index page, Bytes bytes, Bytes end, User user);
  void add_written(const Visit& left);
  [[nodiscard]] bool is_to_be_stored_ahead(FrameNumber number, Index page) const;
  void offer_run_of(Index page);
  Status store_ahead(Index first);
  void touch(FrameNumber number);
  void fill_up_to(FrameNumber number, Bytes end);

  comm::Transport& transport_;
  const Plan plan_;
  node::Draw drawn_;  // by this rank, for the frames that it has made
  Disk disk_;
  std::unique_ptr<node::NodeMemory> memory_;
  std::byte* base_ = nullptr;
  Bytes head_bytes_ = 0;
  int page_shift_ = 0, me_ = 0, ranks_ = 1;
  bool stores_ = true;                        // false on a server
  std::atomic<Index> room_is_for_ = no_page;  // on a server: the page that needs it, of the last request
  FrameNumber frames_ = 0;
  FrameNumber least_ = 0;  // frames that are drawn from the beginning
  std::uint32_t bucket_mask_ = 0;
  Index run_ = 0;                                  // the pages that are stored ahead together; 0: none are
  std::array<std::array<Known, 256>, 2> known_{};  // of the program, and of the desk
  Visit reading_, writing_;
  std::vector<char> touched_;  // by frame: its page tables are made
  std::function<Status()> start_;
  std::function<bool()> help_;
  std::array<std::mutex, services_of_server> services_;  // each has a hold of User::service
};

}  // namespace tailrace::shared
