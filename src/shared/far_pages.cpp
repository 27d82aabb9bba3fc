// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "shared/far_pages.hpp"

#include <cstring>
#include <utility>

#include "base/text.hpp"
#include "comm/end_job.hpp"
#include "comm/switchboard.hpp"

namespace tailrace::shared {

namespace {

constexpr const char* writing = "writing to another node's pages of a shared file";
constexpr const char* reading = "reading another node's pages of a shared file";

}  // namespace

FarPages::FarPages(comm::Line& line, executor::Threads& threads, Served served)
    : line_(line), threads_(threads), key_(threads.new_own_key()), served_(std::move(served)) {
  line_.on(request_message, [this](int source, Unpacker& in) { on_request(source, in); });
  line_.on(answer_message, [this](int, Unpacker& in) { on_answer(in); });
  work_ = line_.board().add_work([this] { return serve(); });
}

FarPages::~FarPages() {
  line_.board().remove_work(work_);
  threads_.drain(key_);
}

// A request: its number, the size that the sender knows, and the operations. An operation: what it is, its
// offset, and the bytes to be written or the number of bytes to be read or added.

Packer& FarPages::begin_operation(int rank, What what) {
  Outgoing& out = outgoing_[rank];
  ++out.operations;
  out.packed.put(what);
  return out.packed;
}

std::uint64_t FarPages::send(int rank) {
  Outgoing out = std::exchange(outgoing_[rank], {});
  const std::uint64_t number = next_++;
  on_way_[number] = out.bytes;
  bytes_on_way_ += out.bytes;
  Packer message;
  message.put(request_message).put(number).put(served_.size()).put_bytes(out.packed.bytes());
  line_.send(rank, message.take());
  return number;
}

void FarPages::write(int rank, Bytes offset, std::span<const std::byte> bytes) {
  // Half an operation would be read as something else, and a number that never left would be waited for.
  comm::committed(writing, [&] {
    begin_operation(rank, What::write).put(offset).put_bytes(bytes);
    Outgoing& out = outgoing_[rank];
    out.bytes += std::ssize(bytes);
    if (out.bytes >= batch) send(rank);
  });
  if (bytes_on_way_ <= most_on_way) return;
  line_.board().wait([this] { return bytes_on_way_ <= most_on_way / 2 || is_broken(); },
                     "other nodes to take what was written to their pages");
}

Status FarPages::read(std::span<const FarRead> reads) {
  std::map<int, std::vector<const FarRead*>> by_rank;
  std::map<int, std::uint64_t> numbers;
  comm::committed(reading, [&] {
    for (const FarRead& each : reads) {
      begin_operation(each.rank, What::read).put(each.offset).put(std::ssize(each.into));
      by_rank[each.rank].push_back(&each);
    }
    for (const auto& [rank, list] : by_rank) awaited_.insert(numbers[rank] = send(rank));
  });
  Status first;
  for (const auto& [rank, list] : by_rank) {
    const Answer answer = wait_for(numbers[rank]);
    first = first_cause(first, answer.read);
    if (!answer.read.is_ok()) continue;
    std::size_t at = 0;
    for (const FarRead* each : list) {
      std::memcpy(each->into.data(), answer.data.data() + at, each->into.size());
      at += each->into.size();
    }
  }
  return first;
}

Result<Bytes> FarPages::size() { return add_to_size(0); }

Result<Bytes> FarPages::add_to_size(Bytes bytes) {
  const std::uint64_t number = comm::committed(reading, [&] {
    begin_operation(0, What::grow).put(Bytes{0}).put(bytes);
    return *awaited_.insert(send(0)).first;
  });
  const Answer answer = wait_for(number);
  TR_TRY(answer.read);
  Unpacker in(answer.data);
  return in.get<Bytes>();
}

FarPages::Answer FarPages::wait_for(std::uint64_t number) {
  line_.board().wait([&] { return answers_.count(number) != 0 || is_broken(); },
                     "another node's pages of a shared file");
  awaited_.erase(number);
  if (answers_.count(number) == 0) {
    Answer none;
    none.read = *line_.board().order().broken();
    return none;
  }
  return std::move(answers_.extract(number).mapped());
}

void FarPages::settle() {
  comm::committed(writing, [&] {
    for (const auto& [rank, out] : outgoing_)
      if (out.operations > 0) send(rank);
  });
  line_.board().wait([this] { return on_way_.empty() || is_broken(); },
                     "other nodes to take what was written to their pages");
}

Status FarPages::take_failure() { return std::exchange(failure_, {}); }

void FarPages::on_answer(Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  served_.raise_size(in.get<Bytes>());
  Answer answer;
  answer.written = Status::unpack(in);
  answer.read = Status::unpack(in);
  const auto data = in.get_bytes();
  const auto sent = on_way_.find(number);
  failure_ = first_cause(failure_, answer.written);
  bytes_on_way_ -= sent->second;
  on_way_.erase(sent);
  if (awaited_.count(number) == 0) return;
  answer.data.assign(data.begin(), data.end());
  answers_[number] = std::move(answer);
}

void FarPages::on_request(int source, Unpacker& in) {
  Request request;
  request.number = in.get<std::uint64_t>();
  served_.raise_size(in.get<Bytes>());
  const auto operations = in.get_bytes();
  request.operations.assign(operations.begin(), operations.end());
  queues_[source].requests.push_back(std::move(request));
}

bool FarPages::serve() {
  bool moved = false;
  for (auto& [source, queue] : queues_) {
    while (!queue.requests.empty() && serve_first(source, queue)) moved = true;
  }
  return moved;
}

/// Returns false if a thread has still to wait for storage.
bool FarPages::serve_first(int source, Queue& queue) {
  const Request& request = queue.requests.front();
  if (queue.done != nullptr) {
    if (!queue.done->load()) return false;
    queue.done = nullptr;
    reply(source, request.number, std::exchange(queue.answer, {}));
  } else if (is_here(request)) {
    reply(source, request.number, answer(request, false));
  } else {
    queue.done = std::make_shared<std::atomic<bool>>(false);
    threads_.submit(key_, [this, &queue, &request, done = queue.done] {
      queue.answer = answer(request, true);
      done->store(true);
    });
    return false;
  }
  queue.requests.pop_front();
  return true;
}

bool FarPages::is_here(const Request& request) const {
  Unpacker in(request.operations);
  while (!in.rest().empty()) {
    const auto what = in.get<What>();
    const auto offset = in.get<Bytes>();
    if (what == What::write)
      in.get_bytes();
    else
      in.get<Bytes>();
    if (what != What::grow && !served_.is_here(offset)) return false;
  }
  return true;
}

/// Does all operations. One that fails keeps no later one from being done.
FarPages::Answer FarPages::answer(const Request& request, bool waits) const {
  Answer answer;
  const Status out_of_memory = guarded([&]() -> Status {
    Unpacker in(request.operations);
    while (!in.rest().empty()) {
      const auto what = in.get<What>();
      const auto offset = in.get<Bytes>();
      if (what == What::write) {
        answer.written = first_cause(answer.written, served_.write(offset, in.get_bytes(), waits));
        continue;
      }
      const auto bytes = in.get<Bytes>();
      const std::size_t at = answer.data.size();
      answer.data.resize(at + (what == What::read ? static_cast<std::size_t>(bytes) : sizeof(Bytes)));
      const std::span into = std::span(answer.data).subspan(at);
      answer.read = first_cause(answer.read,
                                what == What::read ? served_.read(offset, into, waits) : grow(bytes, into));
    }
    return {};
  });
  answer.written = first_cause(answer.written, out_of_memory);
  answer.read = first_cause(answer.read, out_of_memory);
  return answer;
}

Status FarPages::grow(Bytes bytes, std::span<std::byte> into) const {
  const Result<Bytes> before = served_.add_to_size(bytes);
  TR_TRY(before.status());
  std::memcpy(into.data(), &*before, sizeof *before);
  return {};
}

void FarPages::reply(int source, std::uint64_t number, const Answer& answer) {
  Packer message;
  message.put(answer_message).put(number).put(served_.size());
  answer.written.pack(message);
  answer.read.pack(message);
  message.put_bytes(answer.data);
  line_.send(source, message.take());
}

}  // namespace tailrace::shared
