// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/exchange/request_desk.hpp"
#include "ground/comm/end_job.hpp"
#include "ground/comm/line.hpp"
#include "ground/executor/threads.hpp"

namespace tailrace::exchange {

/// Work on one shared file or global array that its ranks ask ranks of other nodes to do, and the answers.
/// Work that changes something is gathered for each rank: a request leaves when it is large, when something
/// is asked of the same rank, and in settle(). A rank does another one's requests in their order. Each
/// message also tells a number of its sender's: the size of the file.
///
/// The program's thread makes the public calls. Whoever moves the desk on does the work of others.
class Requests {
 public:
  /// The outcome of the pieces of work of one request: the first failure of each kind, and what was asked
  /// for.
  struct Answer {
    Status changed;
    Status got;
    ByteVector values;
  };
  /// The work as the file or array does it. One thread at a time calls these; beside it, `at_once` threads
  /// that may wait for storage call serve(), each for another rank.
  struct Served {
    int at_once = 1;
    /// tell() returns the number that each message tells; hear() takes the one that another rank has told.
    std::function<Bytes()> tell = [] { return Bytes{0}; };
    std::function<void(Bytes told)> hear = [](Bytes) {};
    /// Returns true if these pieces of work need not wait for storage, as it looks.
    std::function<bool(Unpacker pieces)> is_quick = [](Unpacker) { return true; };
    /// Does all of these pieces, and returns true. One that fails keeps no later one from being done. With
    /// `waits` it is called by a thread that may wait for storage. Returns false if it cannot go on for now,
    /// or must not wait and would have to: `pieces` are then those that are to be done later.
    std::function<bool(Unpacker& pieces, bool waits, Answer& answer)> serve;
    /// Called by a thread that has done work for another rank: the desk is to be moved on.
    std::function<void()> wake = [] {};
    /// Called in each pass, by whoever serves. Returns true if it has done something for others.
    std::function<bool()> help = [] { return false; };
  };
  /// The ranks among which requests go, and the line by which they are known.
  struct Place {
    comm::LineNumber line = 0;
    std::shared_ptr<const comm::Members> members;
  };
  static Place place_of(const comm::Line& line) { return {line.number(), line.members()}; }
  /// The ranks of the transport that answer: of each rank of the line the one that does its work.
  struct Answering {
    std::vector<int> by_rank;
    int nodes = 0;
    int nodes_with_server = 0;
  };

  /// Local; the ranks of the line agree afterwards, before anybody asks for anything. The references must
  /// outlive it. `epoch` is the file's or array's number in its group. `what` is for texts: "pages of a
  /// shared file". A server of a node has one, too, which answers and asks for nothing.
  Requests(RequestDesk& desk, Place place, std::uint64_t epoch, executor::Threads& threads,
           const std::string& what, Served served);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  /// Local. From now on requests go to these ranks. Without the call each rank of the line answers for
  /// itself. Nobody has asked for anything yet, or all requests are settled.
  void send_to(std::shared_ptr<const Answering> answering);
  /// Local. Logs once who answers, on rank 0 of the line.
  void say_how();

  // Local. Calls that wait do so for answers, and do the work of other ranks meanwhile.
  /// Adds a piece of work that changes something: `pack` packs it. Waits only while too many bytes are on
  /// their way.
  template <typename Pack>
  void change(int rank, const Pack& pack) {
    // Half a piece would be read as something else, and a number that never left would be waited for.
    comm::committed(asking_, [&] {
      Outgoing& out = outgoing_to(rank);
      const Bytes before = std::ssize(out.message.bytes());
      pack(out.message);
      const Bytes bytes = std::ssize(out.message.bytes());
      out.gathered += bytes - before;
      gathered_ += bytes - before;
      if (bytes >= batch) send(rank, false);
      if (gathered_ > most_gathered) send_all();
    });
    if (bytes_on_way_ > most_on_way) wait_for_room();
  }
  /// Asks for something: `pack` packs one piece of work or several. Returns the number of the question.
  template <typename Pack>
  std::uint64_t ask(int rank, const Pack& pack) {
    return comm::committed(asking_, [&] {
      pack(outgoing_to(rank).message);
      return send(rank, true);
    });
  }
  /// Returns what was asked for; waits. Call it once for each question.
  Result<ByteVector> answer_to(std::uint64_t question);
  /// Waits until all changes have been made.
  void settle();
  /// Returns the first failure of a change since take_failure().
  [[nodiscard]] Status failure() const;
  Status take_failure();
  /// Local. Drops, without an answer, work that was not begun and all that others ask for from now on.
  /// Returns true once no thread does any: then the destructor waits for nobody.
  bool end();
  /// Keeps this rank from doing others' work as long as it is held.
  [[nodiscard]] std::unique_lock<std::mutex> alone() { return std::unique_lock(desk_.mutex()); }

 private:
  friend class RequestDesk;
  enum class Kind : std::uint8_t { request, answer };
  /// A request leaves when it has this many bytes.
  static constexpr Bytes batch = Bytes{64} << 10;
  /// All requests leave when they have more bytes than these together: there may be thousands of ranks.
  static constexpr Bytes most_gathered = Bytes{4} << 20;
  /// A rank waits while more bytes than these are on their way from it.
  static constexpr Bytes most_on_way = Bytes{4} << 20;

  /// A request that has not left: its number is in it.
  struct Outgoing {
    std::uint64_t number = 0;
    Packer message;
    Bytes gathered = 0;  // of changes
  };
  struct Request {
    std::uint64_t number = 0;
    ByteVector message;
    std::size_t begin = 0;  // of its pieces of work
    [[nodiscard]] Unpacker pieces() const;
  };
  /// The requests of one rank that are to be done.
  struct Queue {
    std::deque<Request> requests;
    std::shared_ptr<std::atomic<bool>> done;  // of a thread that does the first one
    std::size_t way = 0;                      // by which it does that
    bool is_over = false;                     // as that thread leaves it
    Answer answer;                            // so far
  };
  /// A key of the executor, whose jobs do the first requests of different ranks one after another.
  struct Way {
    executor::Key key;  // its own: other jobs may wait for the rank that asks
    int jobs = 0;
  };

  [[nodiscard]] RequestDesk::Address address() const { return {place_.line, epoch_}; }
  [[nodiscard]] int receiver_of(int rank) const {
    return answering_ != nullptr ? answering_->by_rank[static_cast<std::size_t>(rank)]
                                 : place_.members->transport_rank(rank);
  }
  /// Returns true if the message is for these requests: an answer, or work of a rank of the line.
  [[nodiscard]] bool is_for_this(const comm::Envelope& envelope) const;
  [[nodiscard]] Packer begin_message(Kind kind, std::uint64_t number) const;
  Outgoing& outgoing_to(int rank);
  std::uint64_t send(int rank, bool is_question);
  void send_message(int receiver, Packer message);
  void send_all();
  void wait_for_room();
  void wait(const std::function<bool()>& done);
  /// Returns true if ranks turned out to be in different collective calls: some of them may answer no more.
  [[nodiscard]] bool is_broken() const { return desk_.board().order().broken().has_value(); }

  // Under the desk's mutex.
  void deliver(comm::Envelope envelope);
  void on_answer(std::uint64_t number, Unpacker& in);
  /// Returns true if something moved.
  bool serve();
  bool serve_first(int source, Queue& queue);
  void submit(Request& request, Queue& queue);
  /// Returns true if a thread does one of the requests.
  [[nodiscard]] bool is_waiting() const;
  [[nodiscard]] bool work_on(Request& request, bool waits, Answer& answer) const;
  void reply(int source, std::uint64_t number, const Answer& answer);

  RequestDesk& desk_;
  const Place place_;
  const std::uint64_t epoch_;
  executor::Threads& threads_;
  const std::string asking_;
  const std::string what_;
  std::string waiting_;
  const Served served_;
  std::shared_ptr<const Answering> answering_;
  // The program's thread alone uses these.
  std::map<int, Outgoing> outgoing_;
  Bytes gathered_ = 0;  // in all of them
  std::uint64_t next_ = 0;
  // The desk's mutex guards these.
  std::map<std::uint64_t, Bytes> on_way_;  // requests that are not answered, with their sizes
  std::atomic<Bytes> bytes_on_way_{0};
  std::set<std::uint64_t> questions_;
  std::map<std::uint64_t, Answer> answers_;  // to questions
  Status failure_;
  std::map<int, Queue> queues_;  // of the ranks of the transport that have requests here
  std::vector<Way> ways_;
  bool is_open_ = false;
};

}  // namespace tailrace::exchange
