// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/exchange/progress_engine.hpp"
#include "ground/comm/end_job.hpp"
#include "ground/comm/line.hpp"
#include "ground/executor/threads.hpp"

namespace tailrace::exchange {

/// Carries requests between the ranks of one shared file or global array that are on different nodes, and the
/// answers. A request holds pieces of work. Pieces that change something are gathered for each receiving
/// rank: their request leaves when it is large, when this rank asks the same rank a question, and in
/// settle(). A rank does the requests of another rank in the order in which they were sent. Each message also
/// carries one number of its sender: the size of the file.
///
/// The program's thread makes the public calls. The thread that moves requests on does the work for other
/// ranks: the program's in a call of the library, or the service thread.
class Requests {
 public:
  /// The outcome of one request: the first failure of its changes, the first failure of its questions, and
  /// the values that were asked for.
  struct Answer {
    Status changed;
    Status got;
    ByteVector values;
  };
  /// The functions with which the file or array works for other ranks. Only one thread calls them at a time,
  /// with one exception: up to `at_once` other threads, which may wait for storage, call serve(), each for
  /// another rank.
  struct Served {
    int at_once = 1;
    /// tell() returns the number that this rank adds to each message; hear() takes the number of another
    /// rank's message.
    std::function<Bytes()> tell = [] { return Bytes{0}; };
    std::function<void(Bytes told)> hear = [](Bytes) {};
    /// Unpacks the first of these pieces of work. Returns true if it probably need not wait for storage.
    /// nullptr: no piece waits.
    std::function<bool(Unpacker& pieces)> is_quick = nullptr;
    /// Unpacks the first of these pieces of work, and does it. The pieces after one that fails are done, too.
    /// `waits` is true on a thread that may wait for storage. Returns false if the piece cannot be done now,
    /// or would have to wait where it must not: Requests then comes again with the same piece.
    std::function<bool(Unpacker& pieces, bool waits, Answer& answer)> serve;
    /// A thread that has done work for another rank calls it: the thread that moves requests on then sends
    /// the answer.
    std::function<void()> wake = [] {};
    /// The thread that serves calls it in each pass. Returns true if it has done something for other ranks.
    std::function<bool()> help = [] { return false; };
  };
  /// The line of the ranks that send each other requests, and its members.
  struct Peers {
    comm::LineNumber line = 0;
    std::shared_ptr<const comm::Members> members;
  };
  static Peers peers_of(const comm::Line& line) { return {line.number(), line.members()}; }
  /// The ranks that answer requests. For each rank of the line, `by_rank` names the rank of the transport
  /// that does its work: the rank itself, or a server of its node.
  struct Answering {
    std::vector<int> by_rank;
    int nodes = 0;
    int nodes_with_server = 0;
  };

  /// Local. All ranks of the line must have agreed after their constructors before any of them sends a
  /// request. `progress` and `threads` must outlive this object. `epoch` is the file's or array's number in
  /// its group. `what` names the work in messages: "pages of a shared file". A server that answers for its
  /// node has such an object too, and sends no requests.
  Requests(ProgressEngine& progress, Peers peers, std::uint64_t epoch, executor::Threads& threads,
           const std::string& what, Served served);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  /// Local. Requests go to the ranks of `answering` from now on. With nullptr, and before the first call,
  /// each rank of the line answers for itself. Call it before the first request, or when all requests are
  /// settled.
  void send_to(std::shared_ptr<const Answering> answering);
  /// Local. Logs once who answers, on rank 0 of the line.
  void say_how();

  // Local. Where these calls wait, they wait for answers, and do the work of other ranks meanwhile.
  /// Adds a piece of work that changes something: `pack` packs it. Waits only if more than `most_on_way`
  /// bytes are unanswered.
  template <typename Pack>
  void change(int rank, const Pack& pack) {
    // An exception in here ends the job: the receiver would misread half a piece, and settle() would wait for
    // a request that was never sent.
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
  /// Sends `rank` a question. `pack` packs one piece of work or several. Returns the number of the question,
  /// for answer_to().
  template <typename Pack>
  std::uint64_t ask(int rank, const Pack& pack) {
    return comm::committed(asking_, [&] {
      pack(outgoing_to(rank).message);
      return send(rank, true);
    });
  }
  /// Waits for the answer to `question` and returns its values. Call it once for each question.
  Result<ByteVector> answer_to(std::uint64_t question);
  /// Sends all gathered requests, and waits until every request is answered.
  void settle();
  /// Return the first failure of a change since the last take_failure(). take_failure() also forgets it.
  [[nodiscard]] Status failure() const;
  Status take_failure();
  /// Local. From now on this rank does no work for others that has not begun, and answers no request. Returns
  /// true if no thread works on a request any more: then the destructor does not wait.
  bool end();
  /// Returns a lock. While the caller holds it, this rank begins no work for other ranks.
  [[nodiscard]] std::unique_lock<std::mutex> alone() { return std::unique_lock(progress_.mutex()); }

 private:
  friend class ProgressEngine;
  enum class Kind : std::uint8_t { request, answer };
  /// A request leaves when it has this many bytes.
  static constexpr Bytes batch = Bytes{64} << 10;
  /// All gathered requests leave when together they have more bytes than this: there may be one for each of
  /// thousands of ranks.
  static constexpr Bytes most_gathered = Bytes{4} << 20;
  /// A rank waits while its unanswered requests have more bytes than this.
  static constexpr Bytes most_on_way = Bytes{4} << 20;

  /// A request that has not left. Its number is already in the message.
  struct Outgoing {
    std::uint64_t number = 0;
    Packer message;
    Bytes gathered = 0;  // bytes of changes
  };
  struct Request {
    std::uint64_t number = 0;
    ByteVector message;
    std::size_t begin = 0;  // where its pieces of work begin
    [[nodiscard]] Unpacker pieces() const;
  };
  /// The requests of one rank that this rank still has to do.
  struct Queue {
    std::deque<Request> requests;
    std::shared_ptr<std::atomic<bool>> done;  // a thread does the first one, and sets this
    std::size_t way = 0;                      // number of that thread's way
    bool is_over = false;                     // that thread has done the whole request
    Answer answer;                            // to the first one, so far
  };
  /// A key of the executor. Its jobs run one after another; each does the first request of another rank.
  struct Way {
    executor::Key key;  // a thread of its own: jobs of other keys may wait for the rank that asks
    int jobs = 0;
  };

  [[nodiscard]] ProgressEngine::Address address() const { return {peers_.line, epoch_}; }
  [[nodiscard]] int receiver_of(int rank) const {
    return answering_ != nullptr ? answering_->by_rank[static_cast<std::size_t>(rank)]
                                 : peers_.members->transport_rank(rank);
  }
  /// True if the message is for this object: an answer, or a request of a rank of the line.
  [[nodiscard]] bool is_for_this(const comm::Envelope& envelope) const;
  [[nodiscard]] Packer begin_message(Kind kind, std::uint64_t number) const;
  Outgoing& outgoing_to(int rank);
  std::uint64_t send(int rank, bool is_question);
  void send_message(int receiver, Packer message);
  void send_all();
  void wait_for_room();
  void wait(const std::function<bool()>& done);
  /// True if the order of calls is broken: some ranks may never answer then.
  [[nodiscard]] bool is_broken() const { return progress_.board().order().broken().has_value(); }

  // Call these with the mutex of progress_ locked.
  void deliver(comm::Envelope envelope);
  void on_answer(std::uint64_t number, Unpacker& in);
  /// Returns true if something moved.
  bool serve();
  bool serve_first(int source, Queue& queue);
  void submit(Request& request, Queue& queue);
  /// True if a thread works on one of the requests.
  [[nodiscard]] bool is_waiting() const;
  [[nodiscard]] bool is_quick(const Request& request) const;
  [[nodiscard]] bool work_on(Request& request, bool waits, Answer& answer) const;
  void reply(int source, std::uint64_t number, const Answer& answer);

  ProgressEngine& progress_;
  const Peers peers_;
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
  // The mutex of progress_ guards these.
  std::map<std::uint64_t, Bytes> on_way_;  // sizes of requests without an answer yet
  std::atomic<Bytes> bytes_on_way_{0};
  std::set<std::uint64_t> questions_;
  std::map<std::uint64_t, Answer> answers_;  // to questions
  Status failure_;
  std::map<int, Queue> queues_;  // by rank of the transport: its requests to this rank
  std::vector<Way> ways_;
  bool is_open_ = false;
};

}  // namespace tailrace::exchange
