// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mutex>
#include <vector>

#include "faces/shared/pages/node_pages.hpp"
#include "ground/executor/threads.hpp"

namespace tailrace::shared {

/// Follows which pages a rank reads. While the rank reads forward, a thread brings in the pages that the rank
/// will probably read next: a guess. Each right guess makes the next one longer, up to 16 MiB. After a wrong
/// guess the rank must read forward for longer before the next one. Without threads only bring_next() brings
/// pages in.
class ReadAhead {
 public:
  /// `pages` are those of this rank's node, which has `ranks` ranks. The arguments must outlive the
  /// ReadAhead.
  ReadAhead(executor::Threads& threads, NodePages& pages, int rank, int ranks);
  ~ReadAhead() { stop(); }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Local. saw() notes that the program reads the page, and only the program's thread calls it.
  /// saw_for_others() notes that another node reads the page; any thread may call it.
  void saw(Index page) {
    if (page != own_.page) follow(own_, page);
  }
  void saw_for_others(Index page);
  /// Called while the program waits for the page that it saw last, which another rank brings in. Brings in
  /// the next page that no rank brings in yet, if storage is as fast as memory. Returns true if it has
  /// brought a page in.
  bool bring_next();
  /// Waits until the thread brings in no page. No page is brought in from then on until go_on().
  void stop();
  void go_on();

  /// No thread reads ahead as long as a Pause exists.
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

  /// How a rank reads: page after page, or always the same number of pages further, as one of several ranks
  /// that take turns.
  struct Reader {
    Index page = -1;  // the page that was read last
    // The following pages are numbers among the pages of the node.
    Index at = -1;                  // the page that was read last
    Index step = 0;                 // how many pages the reader goes forward at a time; 0: it does not
    int steps = 0;                  // how many steps of this size it has made
    int patience = least_patience;  // so many steps are needed before a guess
    Index window = 0;               // the pages of the last guess; 0: there was none
    Index begin = 0;                // of all guesses since the reader goes forward
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
  std::mutex mutex_;      // guards the members below
  Pages next_;            // the pages to bring in
  bool is_busy_ = false;  // a thread runs work(), and will look at `next_`
  bool is_stopped_ = false;
};

}  // namespace tailrace::shared
