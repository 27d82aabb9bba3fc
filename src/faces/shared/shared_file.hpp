// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "faces/files/group.hpp"
#include "faces/files/node_servers.hpp"
#include "faces/shared/definition.hpp"
#include "faces/shared/pages/far_pages.hpp"
#include "faces/shared/pages/node_pages.hpp"
#include "faces/shared/pages/read_ahead.hpp"
#include "faces/shared/safety/conflicts.hpp"
#include "faces/shared/safety/safety.hpp"

namespace tailrace::shared {

/// Bytes in the caller's memory, and their place in the file.
template <typename Byte>
struct Piece {
  std::span<Byte> bytes;
  Bytes offset = 0;
};
using Source = Piece<const std::byte>;
using Sink = Piece<std::byte>;

enum class Whence { begin, position, end };

/// One binary file whose pages lie in the memory of all ranks of a group. Page p belongs to rank p % ranks.
/// The page lies in memory that the ranks of its owner's node share. Ranks of other nodes ask the owner for
/// bytes of the page, or the server of the owner's node.
class SharedFile {
 public:
  /// Collective over the group; blocks until all ranks have called it. `call` is the call with its arguments,
  /// for the comparison of the ranks' calls and for error texts. `given` is the definition that the caller
  /// has made of the arguments, or the caller's error. Returns the same Status on every rank.
  static Result<std::unique_ptr<SharedFile>> open(const std::shared_ptr<files::Group>& group,
                                                  const std::string& call, const Result<Definition>& given);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  [[nodiscard]] const Definition& definition() const { return what_; }
  /// Local. On the I/O rank of a file with safety= that may be written: its last flush.
  [[nodiscard]] std::optional<SafeFile::LastFlush> last_flush() const {
    return safe_ != nullptr && group_->is_io_rank() ? safe_->last_flush() : std::nullopt;
  }

  /// Local. On the I/O rank, of a file that was closed and whose earlier flushes are kept for checkpoints:
  /// what it holds since. If the close has failed: the last flush, to which the file can be brought back.
  [[nodiscard]] const std::optional<SafeFile::LastFlush>& closed_flush() const { return closed_flush_; }
  /// Local, on every rank, within a collective call: SafeFile::keep_for().
  Status keep_for(const std::string& checkpoint) {
    return safe_ != nullptr ? safe_->keep_for(checkpoint) : Status();
  }

  // Local.
  /// Moves the position, and returns the new one. Returns Code::argument, and moves nothing, if it would lie
  /// before the begin or not be a number of bytes. With Whence::end it may wait, as size() does.
  Result<Bytes> seek(Bytes offset, Whence whence);
  [[nodiscard]] Bytes position() const { return position_; }
  void move_to(Bytes position) { position_ = position; }
  /// Read into each sink the bytes that the file has there, and return the number of all bytes read. They
  /// wait for storage, and for answers of other nodes. read_here() reads at the position, and moves it.
  Result<Bytes> read(std::span<const Sink> sinks);
  Result<Bytes> read_here(std::span<std::byte> bytes);
  /// Write each source into its pages; the caller's memory may then be reused. They wait for storage if a
  /// page must be brought in, and for other nodes while too many bytes are on their way to them. write_here()
  /// writes at the position, or at the file's end if the mode appends, and moves the position.
  Status write(std::span<const Source> sources);
  Status write_here(std::span<const std::byte> bytes);
  /// Writes at the file's end, and returns the offset of the first byte. Waits as size() and write() do.
  Result<Bytes> append(std::span<const std::byte> bytes);
  /// On the I/O rank: removes those permissions of the file that are not in `permissions`.
  Status narrow(unsigned permissions);
  /// Returns the file's size. Ranks of other nodes than rank 0's wait for the answer of rank 0.
  Result<Bytes> size();

  // Collective. Each returns the same Status on every rank, and blocks until all ranks have called it.
  Status resize(Bytes size);
  // `call` is the name of the program's call, for error texts.
  Status sync(const std::string& call = "tr_shared_sync");
  Status flush(const std::string& call = "tr_shared_flush");
  Status close(const std::string& call = "tr_shared_close");

 private:
  /// The size of the pages, and the memory for them.
  struct Deal {
    Bytes page = 0;
    Bytes memory = 0;      // of this node; with several nodes only the first rank of each knows it
    bool is_kept = false;  // the last file has left pages of this size to all ranks
  };
  SharedFile(std::shared_ptr<files::Group> group, const Definition& what, std::uint64_t epoch);
  [[nodiscard]] Deal proposed() const;
  Result<Deal> agree_on_deal(const std::string& call, Status mine);
  [[nodiscard]] Deal deal_in(const comm::Verdict& verdict) const;
  [[nodiscard]] Bytes kept_page() const;
  void take_kept(const Deal& deal);
  /// Returns the deal of the pages, which the first call makes.
  const std::shared_ptr<const PageDeal>& deal_out_pages();
  Status make_pages(const Deal& deal, const std::string& call);
  Status take_pages(const Deal& deal);
  [[nodiscard]] Bytes most_kept() const;
  void leave_pages();
  Status open_file(storage::OpenMode mode);
  Status make_or_check();
  /// True if the I/O rank opens the file within the vote on the memory for pages, which saves a vote. The
  /// other ranks then find the file's size in the pages, since all ranks share one node's.
  [[nodiscard]] bool opens_early() const { return nodes_ == 1 && safe_ == nullptr; }
  Status open_on_io_rank(const std::string& call);
  Status open_elsewhere(const std::string& call, Unpacker* told);
  [[nodiscard]] Status check(bool wanted, const char* what) const;
  [[nodiscard]] Disk disk();
  [[nodiscard]] Served served();
  [[nodiscard]] bool is_first_of_node() const { return group_->node().rank() == 0; }
  [[nodiscard]] int owner_of(Index page) const { return pages_of_ranks_->place_of_page(page).owner; }
  [[nodiscard]] int server_of(Index page) const { return servers_->asked_for(owner_of(page)); }
  [[nodiscard]] bool is_near(Index page) const {
    return pages_of_ranks_->are_near(owner_of(page), group_->rank());
  }
  void hand_pages();
  bool make_room_for_server();
  [[nodiscard]] Index page_of(Bytes offset) const { return offset >> page_shift_; }
  [[nodiscard]] Bytes place_in_page(Bytes offset) const { return offset & (page_ - 1); }
  [[nodiscard]] Status vote(const std::string& call, const Status& mine,
                            const std::function<Status()>& then = nullptr);
  comm::Verdict vote_and_bid(const std::string& call, const Status& mine, std::int64_t bid,
                             const std::function<Status()>& then = nullptr);

  template <typename Byte, typename Near, typename Far>
  Status for_each_segment(const Piece<Byte>& piece, const Near& near, const Far& far) const;
  Result<Bytes> end_for(std::span<const Sink> sinks);
  Status read_far(std::vector<FarRead>& reads, Bytes& waiting);
  void serve_now_and_then() {
    if (far_ != nullptr && --calls_to_look_ <= 0) serve_if_it_is_time();
  }
  void serve_if_it_is_time();
  enum class Before { nothing, change };
  /// Its destructor, at the end of a call that stores or cuts pages, lets this rank store pages for its
  /// server again.
  struct ServesAgain {
    explicit ServesAgain(SharedFile& in) : file(in) {}
    ~ServesAgain() { file.may_store_for_server_ = true; }
    ServesAgain(const ServesAgain&) = delete;
    ServesAgain& operator=(const ServesAgain&) = delete;
    SharedFile& file;
  };
  /// While a Flushing with `durable` exists, the system begins to write bytes to the device as soon as this
  /// rank stores them. So fsync finds less to do.
  struct Flushing {
    Flushing(SharedFile& in, bool durable) : file(in) {
      file.is_flushing_ = durable;
      if (durable && file.is_first_of_node()) file.file_->begin_write_back();
    }
    ~Flushing() { file.is_flushing_ = false; }
    Flushing(const Flushing&) = delete;
    Flushing& operator=(const Flushing&) = delete;
    SharedFile& file;
  };
  Status meet(const std::string& named, Before before, Status mine = {});
  void note(Doing doing, Bytes offset, Bytes bytes) {
    if (conflicts_ != nullptr) conflicts_->note(doing, offset, bytes);
  }
  void read_ahead();
  void store_ahead();
  void end_storing_ahead();
  Status store(const std::string& call, bool durable, bool closes);
  Status store_mine();
  Status synchronise();
  Status close_file();
  Result<bool> prepare_cut(Bytes size, const std::string& call);
  Status cut_file(Bytes size, bool stored_behind);
  [[nodiscard]] const std::string& stored_path() const {
    return safe_ == nullptr ? what_.path : safe_->path();
  }

  const std::shared_ptr<files::Group> group_;
  const Definition what_;
  const std::uint64_t epoch_;
  const int nodes_;
  const int node_;  // this rank's
  Bytes page_ = 0;  // a power of 2
  int page_shift_ = 0;
  std::shared_ptr<const PageDeal> pages_of_ranks_;
  std::shared_ptr<void> open_;      // tells checkpoints that the program writes this file
  std::unique_ptr<SafeFile> safe_;  // with safety=; its lock outlives the members that store
  std::optional<SafeFile::LastFlush> closed_flush_;
  std::unique_ptr<storage::File> file_;
  std::unique_ptr<NodePages> pages_;
  std::unique_ptr<ReadAhead> ahead_;             // if the program may read, and there is memory for it
  std::unique_ptr<files::NodeServers> servers_;  // with several nodes; a service thread uses it
  std::unique_ptr<FarPages> far_;                // with several nodes; destroyed before all that requests use
  std::unique_ptr<Conflicts> conflicts_;         // with the setting check_conflicts
  bool is_new_ = false;                          // on the I/O rank: the file's name is not durable
  std::atomic<bool> is_flushing_{false};         // a Flushing with `durable` exists
  bool is_unsynced_ = false;  // as this rank knows, the node has stored bytes since the last fsync
  std::optional<executor::Key> storing_key_;  // of the jobs that store behind the program
  std::atomic<bool> may_store_for_server_ = true;
  int calls_to_look_ = 1;       // calls until the next look at the clock
  std::int64_t served_at_ = 0;  // time of the transport's clock
  Bytes position_ = 0;
};

}  // namespace tailrace::shared
