// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mutex>
#include <vector>

#include "faces/shared/pages/node_pages.hpp"
#include "ground/executor/threads.hpp"

namespace tailrace::shared {

/// Sees which pages a rank reads, and has the next ones brought in by a thread while it reads forward. Each
/// guess that was right makes the next one longer, up to 16 MiB. After a wrong one the rank must read forward
/// for longer before the next. Without threads only bring_next() does something.
class ReadAhead {
 public:
  /// `pages` are those of the node of this rank, which has `ranks` ranks. The arguments must outlive it.
  ReadAhead(executor::Threads& threads, NodePages& pages, int rank, int ranks);
  ~ReadAhead() { stop(); }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Local. The program reads this page, or another node does. One thread calls saw().
  void saw(Index page) {
    if (page != own_.page) follow(own_, page);
  }
  void saw_for_others(Index page);
  /// Another rank brings in the page that the program saw last, and the program waits. Brings in the next
  /// page that no rank brings in yet, if storage is as fast as memory. Returns false if no page was brought
  /// in.
  bool bring_next();
  /// Waits until nothing is being brought in, and keeps it so until go_on().
  void stop();
  void go_on();

  /// Nothing is read ahead as long as it lives.
  class Pause {
   public:
    explicit Pause(ReadAhead* ahead) : ahead_(ahead) {
      if (ahead_ != nullptr) ahead_->stop();
    }
    ~Pause() {
      if (ahead_ != nullptr) ahead_->go_on();
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    ReadAhead* ahead_;
  };

 private:
  static constexpr int least_patience = 2;
  static constexpr int most_patience = 256;
  static constexpr Index first_window = 4;

  /// How somebody reads: page after page, or always the same number of pages further, as one of several ranks
  /// that take turns.
  struct Reader {
    Index page = -1;  // the last one
    // From here on pages are counted among those of the node.
    Index at = -1;
    Index step = 0;
    int steps = 0;                  // of this size, one after the other
    int patience = least_patience;  // so many before a guess
    Index window = 0;               // of the last guess; 0: there was none
    Index begin = 0;                // of all guesses
    Index end = 0;
  };

  /// Pages by their numbers among those of the node.
  struct Pages {
    Index first = 0;
    Index count = 0;
  };

  void follow(Reader& reader, Index page);
  static void judge(Reader& reader);
  void guess(Reader& reader);
  bool submit(Index first, Index count);
  void work();
  [[nodiscard]] Index pages_here() const;
  [[nodiscard]] Index page_of(Index near) const;
  [[nodiscard]] std::vector<Index> list(const Pages& pages) const;

  executor::Threads& threads_;
  const executor::Key key_;  // its own: jobs of other keys may wait for this rank
  NodePages& pages_;
  const int rank_;
  const Index longest_step_;
  const Index longest_window_;
  Reader own_;
  std::mutex others_mutex_;
  Reader others_;
  std::mutex mutex_;      // guards what follows
  Pages next_;            // that are to be brought in
  bool is_busy_ = false;  // a thread is about to look for them
  bool is_stopped_ = false;
};

}  // namespace tailrace::shared
