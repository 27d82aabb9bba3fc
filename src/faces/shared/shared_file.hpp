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
/// It lies in memory that the ranks of its node share, and ranks of other nodes ask that rank for it.
class SharedFile {
 public:
  /// Collective over the group; blocks. `call` names the call and its arguments, `given` is what the caller
  /// made of them. Returns the same Status on every rank.
  static Result<std::unique_ptr<SharedFile>> open(const std::shared_ptr<files::Group>& group,
                                                  const std::string& call, const Result<Definition>& given);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  [[nodiscard]] const Definition& definition() const { return what_; }

  // Local.
  /// Returns Code::argument if the position would lie before the begin.
  Result<Bytes> seek(Bytes offset, Whence whence);
  [[nodiscard]] Bytes position() const { return position_; }
  void move_to(Bytes position) { position_ = position; }
  /// Read what there is of each sink, and return the number of bytes read. read_here() does it at the
  /// position.
  Result<Bytes> read(std::span<const Sink> sinks);
  Result<Bytes> read_here(std::span<std::byte> bytes);
  Status write(std::span<const Source> sources);
  Status write_here(std::span<const std::byte> bytes);
  /// Returns where the bytes begin.
  Result<Bytes> append(std::span<const std::byte> bytes);
  /// On the I/O rank: takes from the file's permissions what `permissions` lacks.
  Status narrow(unsigned permissions);
  /// Returns the file's size. Waits for rank 0 if there are several nodes.
  Result<Bytes> size();

  // Collective. Each returns the same Status on every rank, and blocks until all ranks have called it.
  Status resize(Bytes size);
  // `call` names the program's.
  Status sync(const std::string& call = "tr_shared_sync");
  Status flush(const std::string& call = "tr_shared_flush");
  Status close(const std::string& call = "tr_shared_close");

 private:
  /// How the pages are dealt out.
  struct Deal {
    Bytes page = 0;
    Bytes memory = 0;      // of this node; on several nodes on the first rank of each
    bool is_kept = false;  // all ranks have such pages from the last file
  };
  SharedFile(std::shared_ptr<files::Group> group, const Definition& what, std::uint64_t epoch);
  [[nodiscard]] Deal proposed() const;
  Result<Deal> agree_on_deal(const std::string& call, Status mine);
  [[nodiscard]] Deal deal_in(const comm::Verdict& verdict) const;
  [[nodiscard]] Bytes kept_page() const;
  void take_kept(const Deal& deal);
  /// Decides which rank serves which page; once.
  const std::shared_ptr<const PageDeal>& deal_out_pages();
  Status make_pages(const Deal& deal, const std::string& call);
  Status take_pages(const Deal& deal);
  [[nodiscard]] Bytes most_kept() const;
  void leave_pages();
  Status open_file(storage::OpenMode mode);
  Status make_or_check();
  /// Returns true if the I/O rank opens the file as soon as it hears that there is memory everywhere. The
  /// others find the size in the pages, which are those of one node.
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
  /// At the end of a call that stores or cuts pages: this rank may store pages for its server again.
  struct ServesAgain {
    explicit ServesAgain(SharedFile& in) : file(in) {}
    ~ServesAgain() { file.may_store_for_server_ = true; }
    ServesAgain(const ServesAgain&) = delete;
    ServesAgain& operator=(const ServesAgain&) = delete;
    SharedFile& file;
  };
  /// While a Flushing of a durable store exists, the system writes to the device what this rank stores as
  /// soon as it is stored, so that less is left when fsync is called.
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
  std::shared_ptr<void> open_;      // a note for checkpoints
  std::unique_ptr<SafeFile> safe_;  // if a crash is to leave a whole file; its lock outlives what stores
  std::unique_ptr<storage::File> file_;
  std::unique_ptr<NodePages> pages_;
  std::unique_ptr<ReadAhead> ahead_;             // if the rank reads, and has the memory
  std::unique_ptr<files::NodeServers> servers_;  // if there are several nodes; a service thread uses it
  std::unique_ptr<FarPages> far_;                // likewise; it ends before all that others' requests use
  std::unique_ptr<Conflicts> conflicts_;         // if they are looked for
  bool is_new_ = false;                          // the file's name is not durable; on the I/O rank
  std::atomic<bool> is_flushing_{false};         // a Flushing of a durable store exists
  bool is_unsynced_ = false;                  // the node has stored what no fsync covers, as the rank knows
  std::optional<executor::Key> storing_key_;  // of the thread that stores behind the program
  std::atomic<bool> may_store_for_server_ = true;
  int calls_to_look_ = 1;       // whether it is time to serve other nodes
  std::int64_t served_at_ = 0;  // by the clock of the transport
  Bytes position_ = 0;
};

}  // namespace tailrace::shared
