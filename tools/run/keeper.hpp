// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kept_pages.hpp"
#include "wire.hpp"

namespace tailrace::run {

/// Keeps the pages of the files that the programs of one group share on a node, and does their input and
/// output. The keeper is a process of its own: it outlives programs that are killed, and ends after the last
/// process of its group.
class Keeper {
 public:
  /// `memory` is the most bytes that all pages may take together, `page` the bytes of one page.
  struct Plan {
    std::string group;  // the whole name
    std::uint64_t memory = 0;
    std::uint64_t page = 0;
    bool is_verbose = false;
  };
  Keeper(int listener, const Plan& plan) : listener_(listener), plan_(plan) {}
  ~Keeper();
  /// Serves requests until the last process of the group has gone; blocks. Returns 0, or 1 after an error,
  /// which it has printed.
  int serve();

 private:
  using Clock = std::chrono::steady_clock;
  /// A process that has connected to the keeper: a `tailrace run`, or a program.
  struct Peer {
    int socket = -1;  // -1: exec has closed it; the process lives, and its new program may connect
    int process_descriptor = -1;
    pid_t process = 0;
    std::uint32_t counters = nobody;
    bool is_launcher = false;
    bool is_forgotten = false;
    bool is_foreign = false;  // the process is in another PID namespace: the keeper only answers EXDEV
    std::set<std::uint32_t> descriptions;  // the process has descriptors of these
    std::map<std::uint32_t, int> locks;    // by file: a descriptor for the process's own locks (POSIX)
  };
  /// A description as the keeper alone knows it.
  struct Kept {
    int holders = 0;  // processes that have descriptors of it
    int spare = -1;   // the file while no process holds the description: a new program may inherit it soon
    int lock = -1;    // a descriptor for locks of the description
    bool is_writable = false;  // the file was open for writing, too
    std::string path;
    Clock::time_point left;
  };

  int start();
  void accept_peer();
  [[nodiscard]] std::size_t members() const;
  void turn_away(int error);
  void tell_full(int error);
  bool receive(Peer& peer);
  void handle(Peer& peer, const Request& request, int descriptor);
  int perform(Peer& peer, const Request& request, int& descriptor, Answer& answer);
  void reply(const Peer& peer, const Answer& answer, int descriptor);
  int hello(Peer& peer, bool is_first, Answer& answer);
  int open(Peer& peer, const Request& request, int& descriptor, Answer& answer);
  template <class Work>
  int retried(const Work& work);
  int lend_lock(Peer& peer, const Request& request, int& lent);
  static void unlock(Peer& peer, std::uint32_t file);
  int close(Peer& peer, std::uint32_t description);
  int attach(Peer& peer, std::uint64_t inode, Answer& answer);
  int reopen(Kept& kept, std::uint32_t& file);
  int let_go(std::uint32_t description);
  void lost(Peer& peer);
  void ended(Peer& peer);
  void forget(Peer& peer);
  void erase_forgotten();
  void finish_leaving();
  void free_description(std::uint32_t description);
  bool free_removed();
  void free_descriptions(std::size_t most, Clock::time_point now);
  void count(std::uint32_t counters);
  void failed(const std::string& path, const char* what, int error);
  void print_summary() const;

  int listener_;
  const Plan plan_;
  int waiter_ = -1;
  int reserve_ = -1;     // a descriptor that the keeper closes when it has no other left
  int own_numbers_ = 0;  // the number of PID namespaces in which the keeper has a process number
  bool has_turned_away_ = false;
  std::size_t most_left_ = 32;
  KeptPages pages_;
  std::map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  std::uint64_t next_peer_ = 1;
  std::vector<Kept> kept_ = std::vector<Kept>(most_descriptions);
  std::deque<std::uint32_t> unused_;
  std::deque<std::uint32_t> left_;  // descriptions that no process holds, the oldest first
  std::vector<std::uint32_t> counters_unused_;
  std::vector<Peer*> leaving_;
  std::set<std::string> paths_;
  bool has_served_ = false;
  bool has_printed_ = false;
  bool has_started_ = false;  // the program that `tailrace run` started has said hello
  int failures_ = 0;
  std::uint64_t reads_ = 0, writes_ = 0, read_bytes_ = 0, written_bytes_ = 0, others_ = 0;
  std::uint64_t locks_refused_ = 0, maps_refused_ = 0, others_refused_ = 0;
};

}  // namespace tailrace::run
