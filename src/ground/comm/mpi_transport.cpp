// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/mpi_transport.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "ground/base/text.hpp"
#include "ground/comm/end_job.hpp"
#include "ground/comm/idling.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::comm {

namespace {

constexpr int control_tag = 0;
constexpr int request_tag = 1 + 2 * static_cast<int>(line_number::tags);  // after the tags of all lines
/// The largest single MPI message. Counts are int, and some MPI transports fail at 2 GiB.
constexpr Bytes largest_part = Bytes{1} << 30;
/// Memory smaller than this comes from the heap, which keeps freed memory by itself.
constexpr Bytes least_in_pool = Bytes{64} << 10;

int tag_of(LineNumber line, Traffic traffic) {
  if (traffic == Traffic::control) return control_tag;
  if (traffic == Traffic::request) return request_tag;
  return 1 + 2 * static_cast<int>(line_number::tag_of(line)) + (traffic == Traffic::broadcast ? 1 : 0);
}

void check(int code, const char* operation) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  end_job(cat("MPI itself failed in ", std::string_view(operation), ": ",
              std::string_view(text, static_cast<std::size_t>(length))));
}

}  // namespace

Result<std::unique_ptr<MpiTransport>> MpiTransport::create(MPI_Comm parent) {
  MPI_Comm comm = MPI_COMM_NULL;
  int failed = MPI_Comm_dup(parent, &comm) == MPI_SUCCESS ? 0 : 1;
  const bool mine = failed == 0;
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, parent);
  if (failed != 0) {
    if (mine) MPI_Comm_free(&comm);
    return Status(Code::mpi, "MPI_Comm_dup of the session's communicator failed");
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return std::unique_ptr<MpiTransport>(new MpiTransport(comm));
}

MpiTransport::MpiTransport(MPI_Comm comm) : comm_(comm), control_{control_tag}, requests_{request_tag} {
  MPI_Comm_rank(comm, &rank_);
}

/// Takes and drops all messages that have arrived, of any kind.
void MpiTransport::drop_all(std::list<Incoming>& dropped) {
  while (receive() || receive_request()) continue;
  while (probe(MPI_ANY_SOURCE, MPI_ANY_TAG, dropped)) continue;
  std::erase_if(dropped, is_complete);
}

// Messages that nobody takes do harm. A sender waits for a large one forever. And MPICH gives the number of a
// freed communicator to the next one, so that the next session would receive them.
void MpiTransport::meet_at_the_end() {
  std::list<Incoming> dropped;
  Idling idling(false);
  MPI_Request met = MPI_REQUEST_NULL;
  bool has_come = false;
  for (int have_met = 0; have_met == 0; idle(idling.next(now()), "the end of the session")) {
    progress();
    drop_all(dropped);
    if (!has_come && all_sent()) {
      has_come = true;
      check(MPI_Ibarrier(comm_, &met), "MPI_Ibarrier");
    }
    if (has_come) check(MPI_Test(&met, &have_met, MPI_STATUS_IGNORE), "MPI_Test");
  }
  // MPI may still be writing into the memory of messages that have begun to arrive.
  do {
    drop_all(dropped);
    for (FromAnyone* from : {&control_, &requests_}) dropped.splice(dropped.end(), from->incoming);
    for (auto& [way, incoming] : data_) dropped.splice(dropped.end(), incoming);
    std::erase_if(dropped,
                  [](Incoming& each) { return is_complete(each) || each.request == MPI_REQUEST_NULL; });
  } while (!dropped.empty());
}

void MpiTransport::free() {
  // The verdict that made this rank give up may not have left for other ranks yet.
  while (!all_sent()) progress();
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

void MpiTransport::send(int destination, LineNumber line, Traffic traffic, ByteVector bytes) {
  if (destination == rank_) {
    if (is_from_anyone(traffic))
      (traffic == Traffic::control ? control_ : requests_).own.push_back({rank_, line, std::move(bytes)});
    else
      own_data_[{line, traffic}].push_back(std::move(bytes));
    return;
  }
  const int tag = tag_of(line, traffic);
  if (is_from_anyone(traffic)) {
    const auto number = std::as_bytes(std::span(&line, 1));
    bytes.insert(bytes.end(), number.begin(), number.end());
  }
  // A part of the largest size tells the receiver that another part follows. So no message needs a header,
  // for which it would have to be copied.
  auto whole = std::make_shared<ByteVector>(std::move(bytes));
  const auto length = static_cast<Bytes>(whole->size());
  for (Bytes at = 0; at <= length; at += largest_part) {
    const Bytes part = std::min(largest_part, length - at);
    Outgoing out{.bytes = whole, .size = part};
    check(MPI_Isend(whole->data() + at, static_cast<int>(part), MPI_BYTE, destination, tag, comm_,
                    &out.request),
          "MPI_Isend");
    add(destination, {line, traffic}, std::move(out));
  }
}

void MpiTransport::add(int destination, const Way& way, Outgoing out) {
  unsent_[way] += out.size;
  Queue& queue = outgoing_.try_emplace({destination, way}, Queue{way, destination}).first->second;
  queue.messages.push_back(std::move(out));
  if (queue.messages.size() > 1) return;
  fronts_.push_back(queue.messages.front().request);
  queues_.push_back(&queue);
}

void MpiTransport::keep_memory(Bytes most) {
  most_in_pool_ = most;
  pool_.shrink(most);
}

ByteVector MpiTransport::memory(Bytes size) {
  return size < least_in_pool ? ByteVector(static_cast<std::size_t>(size)) : pool_.take(size, most_in_pool_);
}

void MpiTransport::give_back(ByteVector bytes) {
  if (static_cast<Bytes>(bytes.capacity()) < least_in_pool) return;
  pool_.give_back(std::move(bytes));
  pool_.shrink(most_in_pool_);
}

Bytes MpiTransport::unsent(LineNumber line, Traffic traffic) const {
  const auto found = unsent_.find({line, traffic});
  return found == unsent_.end() ? 0 : found->second;
}

/// Removes the oldest message of a queue. It has left.
void MpiTransport::finish(Queue& queue) {
  Outgoing& out = queue.messages.front();
  const auto unsent = unsent_.find(queue.way);
  if (unsent != unsent_.end() && (unsent->second -= out.size) == 0) unsent_.erase(unsent);
  if (out.bytes.use_count() == 1) give_back(std::move(*out.bytes));
  queue.messages.pop_front();
}

/// Removes the front of queue `at`, which has left, and the messages behind it that have left as well. If the
/// queue is then empty, the last queue takes its place in the list.
void MpiTransport::finish_front(std::size_t at) {
  Queue& queue = *queues_[at];
  int complete = 1;
  while (complete != 0) {
    finish(queue);
    if (queue.messages.empty()) break;
    check(MPI_Test(&queue.messages.front().request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
  }
  if (!queue.messages.empty()) {
    fronts_[at] = queue.messages.front().request;
    return;
  }
  fronts_[at] = fronts_.back();
  queues_[at] = queues_.back();
  fronts_.pop_back();
  queues_.pop_back();
  outgoing_.erase({queue.destination, queue.way});
}

// Tests only the oldest message of each queue, in one call of MPI, whose cost does not depend on the number
// of messages behind them. If ranks outnumber cores, Open MPI yields the core in each test of a message that
// has not left.
bool MpiTransport::progress() {
  if (fronts_.empty()) return false;
  int count = 0;
  complete_.resize(fronts_.size());
  check(MPI_Testsome(static_cast<int>(fronts_.size()), fronts_.data(), &count, complete_.data(),
                     MPI_STATUSES_IGNORE),
        "MPI_Testsome");
  if (count <= 0) return false;
  std::sort(complete_.begin(), complete_.begin() + count, std::greater<>());
  for (int each = 0; each < count; ++each) {
    finish_front(static_cast<std::size_t>(complete_[static_cast<std::size_t>(each)]));
  }
  return true;
}

bool MpiTransport::probe(int source, int tag, std::list<Incoming>& into) {
  // A buffer must not grow, and so move, while MPI still writes a part of the message into it.
  for (const Incoming& open : into) {
    if (open.request != MPI_REQUEST_NULL && open.continues) return false;
  }
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  check(MPI_Improbe(source, tag, comm_, &found, &message, &status), "MPI_Improbe");
  if (found == 0) return false;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  const auto same = std::find_if(into.begin(), into.end(), [&](const Incoming& open) {
    return open.source == status.MPI_SOURCE && open.continues;
  });
  Incoming& incoming = same != into.end() ? *same : into.emplace_back();
  incoming.source = status.MPI_SOURCE;
  const std::size_t filled = incoming.bytes.size();
  if (filled == 0)
    incoming.bytes = memory(size);
  else
    incoming.bytes.resize(filled + static_cast<std::size_t>(size));
  incoming.continues = size == largest_part;
  check(MPI_Imrecv(incoming.bytes.data() + filled, size, MPI_BYTE, &message, &incoming.request),
        "MPI_Imrecv");
  return true;
}

bool MpiTransport::is_complete(Incoming& incoming) {
  if (incoming.request != MPI_REQUEST_NULL) {
    int complete = 0;
    check(MPI_Test(&incoming.request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
  }
  return incoming.request == MPI_REQUEST_NULL && !incoming.continues;
}

std::optional<Envelope> MpiTransport::receive_any(FromAnyone& from) {
  if (!from.own.empty()) {
    Envelope envelope = std::move(from.own.front());
    from.own.pop_front();
    return envelope;
  }
  std::list<Incoming>& waiting = from.incoming;
  probe(MPI_ANY_SOURCE, from.tag, waiting);
  for (auto incoming = waiting.begin(); incoming != waiting.end(); ++incoming) {
    if (!is_complete(*incoming)) continue;
    const bool overtakes = std::any_of(waiting.begin(), incoming, [&](const Incoming& earlier) {
      return earlier.source == incoming->source;
    });
    if (overtakes) continue;
    Envelope envelope{incoming->source, 0, std::move(incoming->bytes)};
    waiting.erase(incoming);
    const std::size_t length = envelope.bytes.size() - sizeof envelope.line;
    std::memcpy(&envelope.line, envelope.bytes.data() + length, sizeof envelope.line);
    envelope.bytes.resize(length);
    return envelope;
  }
  return std::nullopt;
}

std::optional<ByteVector> MpiTransport::receive_from(int source, LineNumber line, Traffic traffic) {
  if (source == rank_) {
    const auto own = own_data_.find({line, traffic});
    if (own == own_data_.end()) return std::nullopt;
    ByteVector bytes = std::move(own->second.front());
    own->second.pop_front();
    if (own->second.empty()) own_data_.erase(own);
    return bytes;
  }
  const int tag = tag_of(line, traffic);
  std::list<Incoming>& waiting = data_[{source, tag}];
  // Only one message at a time is received: the next one stays with its sender until this one was taken.
  if (waiting.empty() || waiting.front().continues) probe(source, tag, waiting);
  std::optional<ByteVector> bytes;
  if (!waiting.empty() && is_complete(waiting.front())) {
    bytes = std::move(waiting.front().bytes);
    waiting.pop_front();
  }
  if (waiting.empty()) data_.erase({source, tag});
  return bytes;
}

}  // namespace tailrace::comm
