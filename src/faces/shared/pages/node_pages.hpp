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
/// A page that is not in a frame is on disk, or was never written. A rank that needs such a page brings it
/// in. Once Plan::reused_from bytes of frames are made, a new page takes the frame of a stored page that was
/// used only once. Once all frames are made, a new page takes the frame of a page that was not used lately;
/// if that page has changed, it is stored first.
///
/// A rank that copies from or to a frame holds it: the rank first writes the frame's number to its own Hold,
/// which costs the other ranks nothing, and then checks that the frame still has the page. A rank that takes
/// a frame away first removes the page from it, and then checks that no Hold has the frame's number. Writes
/// of the same bytes follow one another: a writer locks the strips of the page to which it writes, or the
/// whole page (faces/shared/pages/page_writes.cpp).
class NodePages {
 public:
  struct Plan {
    Bytes page = 0;                                  // a power of 2
    Bytes memory = 0;                                // the most that frames may take
    std::shared_ptr<const PageDeal> deal = nullptr;  // nullptr: all pages belong to this node
    Bytes reused_from = 0;  // frames are used again once they take this much; 0: only once they take `memory`
  };
  using User = PagesUser;
  static constexpr int services_of_server = 4;

  /// Collective over `node`, the ranks of one node. Returns the same Status on every rank of the node.
  static Result<std::unique_ptr<NodePages>> create(comm::Line& node, const Plan& plan, bool huge_pages,
                                                   node::Budget& budget, Disk disk);
  /// Local, on a server: uses the pages that the `ranks` ranks of its node have made, in `memory`. A server
  /// stores no pages. So a call fails where only a changed page could make room, and is_for_later() is true
  /// of its failure. So does a call of User::progress that would have to wait for storage.
  static Result<std::unique_ptr<NodePages>> attach(comm::Transport& transport, const Plan& plan, int ranks,
                                                   node::Budget& budget, Disk disk,
                                                   std::unique_ptr<node::NodeMemory> memory);
  /// On a server, at the end. With an heir, returns the bytes of the budget that the server has drawn for
  /// frames: they belong to the heir from now on. Without one returns 0.
  Bytes end_serving(bool has_heir);
  /// True if a read or write with this failure is to be tried again later.
  [[nodiscard]] static bool is_for_later(const Status& failure);
  [[nodiscard]] const node::NodeMemory& memory() const { return *memory_; }
  /// Uses the memory for another file. All ranks of the node call it when no thread uses the first file any
  /// more, and agree before any of them uses the other file.
  void begin_again(Disk disk);
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Returns the bytes that the frames of the node have taken. No thread may use the pages meanwhile.
  [[nodiscard]] Bytes taken() const { return static_cast<Bytes>(head().made) << page_shift_; }
  /// Returns the least memory that a plan may have for `ranks` ranks of a node.
  static Bytes least_memory(Bytes page, int ranks) { return page * frames_of_rank * ranks; }

  // Local. Copy bytes from or to a page, from byte `from` of the page on. They wait for storage, and for
  // other ranks of the node that use the same page.
  Status read(Index page, Bytes from, std::span<std::byte> bytes, User user = User::program);
  Status write(Index page, Bytes from, std::span<const std::byte> bytes, User user = User::program);
  /// Brings in at most `most` of `pages`, which are pages of this node in the file's order, before a rank
  /// needs them. Takes frames that are free, or whose pages have not changed and were not used lately, and
  /// ends if there are none, or at the end of the bytes on storage. A page that cannot be read stays out, and
  /// the rank that needs it gets the error. Any thread may call it at a time at which ranks may read; waits
  /// for storage. Returns how many pages it has brought in.
  Index bring_ahead(std::span<const Index> pages, Index most);
  /// Sets a function for the time in which the program waits for a page that another rank brings in:
  /// NodePages then calls `help`, which returns true if it has brought in another page.
  void while_waiting(std::function<bool()> help) { help_ = std::move(help); }
  /// Returns the page's number among those of the node.
  [[nodiscard]] Index near_number(Index page) const {
    return plan_.deal == nullptr ? page : plan_.deal->place_of_page(page).near;
  }
  /// Returns how many of the frames a rank may fill ahead.
  [[nodiscard]] Index most_ahead() const { return frames_ / (Index{frames_of_rank} * ranks_); }
  /// True if storage gives pages as fast as memory is copied, as the cache of the system does. Then a rank
  /// should bring in its pages itself, so that they are in the cache of its core.
  [[nodiscard]] bool is_storage_fast() const;
  /// True if the page has a frame at this moment.
  [[nodiscard]] bool has(Index page) const { return find(page).has_value(); }

  /// Returns the file's size as this node knows it.
  [[nodiscard]] Bytes size() const;
  /// Returns a lower bound of the file's size. Costs less than size(), which reads a Hold of every rank.
  [[nodiscard]] Bytes least_size() const { return head().size.load(std::memory_order_relaxed); }
  /// Makes the size at least `size`. Any thread.
  void raise_size(Bytes size);
  /// Makes the size at least `end`: the program is about to write up to `end`. Most calls write only to
  /// memory of this rank's own.
  void raise_size_for_write(Bytes end);
  /// Adds to the size, and returns the size before. Returns Code::argument if the file would end behind the
  /// last byte that it can have.
  Result<Bytes> add_to_size(Bytes bytes);

  // Storing ahead: NodePages offers runs of pages that were written whole, and one rank of the node at a time
  // stores them while the ranks write on.
  /// Turns it on. A thread that has offered a run while no rank stores calls `start`, which makes another
  /// thread call store_offered().
  void store_ahead_by(std::function<Status()> start) { start_ = std::move(start); }
  /// Stores offered runs until there are none; waits for storage. A page that cannot be stored stays changed.
  void store_offered();

  // Room for a server of the node, which stores no pages: ranks store pages for it.
  [[nodiscard]] bool is_room_wanted() const { return head().wants_room.load(std::memory_order_relaxed); }
  /// Stores some changed pages if the server waits for a frame; waits for storage. The server gets the error
  /// of a page that cannot be stored. Any thread. Returns true if it has tried to store a page.
  bool make_room();
  void take_over(Bytes drawn) { drawn_.inherit(drawn); }  // bytes that a server has drawn for frames

  // For the following calls the ranks of the node must be in one collective call, so that no rank writes.
  /// Each rank calls it before pages are stored or cut: the bytes that this rank has counted so far no longer
  /// help to make a page whole.
  void forget_written() { writing_ = {}; }
  void set_size(Bytes size);
  void set_stored(Bytes size) { head().stored = size; }
  /// Returns the end of the bytes that the file had on disk when it was opened or that this node has stored
  /// since.
  [[nodiscard]] Bytes stored() const { return head().stored; }
  /// Stores share `share` of `shares` of the changed pages, in the file's order; waits for storage.
  Status store_changed(int share, int shares);
  /// Makes `size` the file's size, and all bytes behind it zeros. One rank of the node calls it.
  void cut(Bytes size);
  /// True if the node has stored a page since the last call. One rank of the node calls it.
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
  void free_stored(FrameNumber number, bool is_stored);
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
  /// Pages of this node that follow one another have buckets that do so, too.
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
  [[nodiscard]] bool may_wait(User user) const { return stores_ || user != User::progress; }
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
  std::atomic<Index> room_is_for_ = no_page;  // on a server: the page for which the last request needs room
  FrameNumber frames_ = 0;                    // the most frames of the node
  FrameNumber least_ = 0;                     // frames whose bytes are drawn at the beginning
  std::uint32_t bucket_mask_ = 0;
  Index run_ = 0;  // how many pages are stored ahead together; 0: none is stored ahead
  std::array<std::array<Known, 256>, 2> known_{};  // of the program, and of the progress engine
  Visit reading_, writing_;
  std::vector<char> touched_;  // by frame: this process has its page tables
  std::function<Status()> start_;
  std::function<bool()> help_;
  std::array<std::mutex, services_of_server> services_;  // each guards a Hold of User::service
};

}  // namespace tailrace::shared
