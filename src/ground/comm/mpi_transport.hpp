// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ground/base/byte_pool.hpp"
#include "ground/comm/transport.hpp"

namespace tailrace::comm {

/// Sends messages as MPI point-to-point messages on a private duplicate of a communicator. A control message
/// or request ends with the number of its line. The tag of any other message tells its line and kind of
/// traffic. An error of MPI ends the job with a message: after an error MPI promises nothing (MPI 3.1, 8.3).
class MpiTransport final : public Transport {
 public:
  /// Collective over `parent`.
  static Result<std::unique_ptr<MpiTransport>> create(MPI_Comm parent);
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  void send(int destination, LineNumber line, Traffic traffic, ByteVector bytes) override;
  bool progress() override;
  std::optional<Envelope> receive() override { return receive_any(control_); }
  std::optional<Envelope> receive_request() override { return receive_any(requests_); }
  std::optional<ByteVector> receive_from(int source, LineNumber line, Traffic traffic) override;
  [[nodiscard]] Bytes unsent(LineNumber line, Traffic traffic) const override;
  [[nodiscard]] bool all_sent() const override { return fronts_.empty(); }
  void keep_memory(Bytes most) override;
  [[nodiscard]] ByteVector memory(Bytes size) override;
  void give_back(ByteVector bytes) override;
  /// Collective, at the end of a session. Blocks until all ranks have called it, and all messages have left
  /// and arrived. Drops the messages that arrive: if the order of calls was broken, nobody waits for them.
  void meet_at_the_end();
  /// Returns the duplicate. Between create() and meet_at_the_end() the transport makes no collective call
  /// with it.
  [[nodiscard]] MPI_Comm communicator() const { return comm_; }
  /// Collective. Blocks until everything that this rank has sent has left, then frees the communicator.
  void free();

 private:
  using Way = std::pair<LineNumber, Traffic>;
  struct Outgoing {
    MPI_Request request = MPI_REQUEST_NULL;
    std::shared_ptr<ByteVector> bytes;
    Bytes size = 0;
  };
  /// The messages of one line and kind of traffic to one rank that have not left yet, oldest first.
  struct Queue {
    Way way;
    int destination = 0;
    std::deque<Outgoing> messages = {};
  };
  struct Incoming {
    int source = 0;
    ByteVector bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    bool continues = false;  // another part of the same message follows
  };
  /// Messages with this tag, from any rank.
  struct FromAnyone {
    int tag = 0;
    std::list<Incoming> incoming = {};
    std::deque<Envelope> own = {};
  };
  explicit MpiTransport(MPI_Comm comm);
  std::optional<Envelope> receive_any(FromAnyone& from);
  bool probe(int source, int tag, std::list<Incoming>& into);
  static bool is_complete(Incoming& incoming);
  void add(int destination, const Way& way, Outgoing out);
  void finish(Queue& queue);
  void finish_front(std::size_t at);
  void drop_all(std::list<Incoming>& dropped);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::map<Way, Bytes> unsent_;                    // bytes not sent yet; only ways that have any
  std::map<std::pair<int, Way>, Queue> outgoing_;  // by destination and way; only those that have any
  // The request of the oldest message of each queue, and the queue. MPI completes messages of one way nearly
  // in order.
  std::vector<MPI_Request> fronts_;
  std::vector<Queue*> queues_;
  std::vector<int> complete_;  // results of MPI_Testsome
  FromAnyone control_;
  FromAnyone requests_;
  std::map<std::pair<int, int>, std::list<Incoming>> data_;  // by source and tag; only those that have any
  std::map<Way, std::deque<ByteVector>> own_data_;
  BytePool pool_;
  Bytes most_in_pool_ = 0;
};

}  // namespace tailrace::comm
