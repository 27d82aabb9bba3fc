// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "shared/far_elements.hpp"

#include <utility>

#include "comm/end_job.hpp"

namespace tailrace::shared {

namespace {

constexpr const char* asking = "asking another node for elements of a global array";
constexpr const char* changing = "other nodes to change elements of a global array";

}  // namespace

FarElements::FarElements(comm::Line& line, DoWork do_work) : line_(line), do_work_(std::move(do_work)) {
  line_.on(request_message, [this](int source, Unpacker& in) { on_request(source, in); });
  line_.on(answer_message, [this](int, Unpacker& in) { on_answer(in); });
}

// A request: its number, and one piece of work after the other. A piece: what it is, how elements are named,
// their numbers, and the values. An answer: the number of the request, a status, and the values.

FarElements::Outgoing& FarElements::begin_work(int rank, Work work, const Named& named) {
  const auto [entry, is_new] = outgoing_.try_emplace(rank);
  Outgoing& out = entry->second;
  if (is_new) {
    out.number = next_++;
    out.message.put(request_message).put(out.number);
  }
  out.message.put(work).put(named.form).put_list(named.numbers);
  return out;
}

std::uint64_t FarElements::send(int rank) {
  Outgoing out = std::move(outgoing_.extract(rank).mapped());
  const Bytes bytes = std::ssize(out.message.bytes());
  on_way_[out.number] = bytes;
  bytes_on_way_ += bytes;
  line_.send(rank, out.message.take());
  return out.number;
}

void FarElements::change(int rank, Work work, const Named& named, std::span<const std::byte> values) {
  // The owner would read half a piece of work as something else.
  comm::committed(asking, [&] {
    Outgoing& out = begin_work(rank, work, named);
    out.message.put_bytes(values);
    if (std::ssize(out.message.bytes()) >= batch) send(rank);
  });
  if (bytes_on_way_ <= most_on_way) return;
  line_.board().wait([this] { return bytes_on_way_ <= most_on_way / 2 || is_broken(); }, changing);
}

std::uint64_t FarElements::ask(int rank, const Named& named) {
  return comm::committed(asking, [&] {
    begin_work(rank, Work::get, named).message.put_bytes({});
    return *questions_.insert(send(rank)).first;
  });
}

Result<ByteVector> FarElements::answer_to(std::uint64_t question) {
  line_.board().wait(
      [&] { return answers_.count(question) != 0 || is_broken(); },
      "the owner of elements of a global array, which answers in calls of this library (tr_progress)");
  questions_.erase(question);
  if (answers_.count(question) == 0) return *line_.board().order().broken();
  Answer answer = std::move(answers_.extract(question).mapped());
  TR_TRY(answer.status);
  return std::move(answer.values);
}

void FarElements::settle() {
  comm::committed(asking, [&] {
    while (!outgoing_.empty()) send(outgoing_.begin()->first);
  });
  line_.board().wait([this] { return on_way_.empty() || is_broken(); }, changing);
}

Status FarElements::take_failure() { return std::exchange(failure_, {}); }

void FarElements::on_request(int source, Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  ByteVector values;
  const Status done = guarded([&]() -> Status {
    while (!in.rest().empty()) {
      const auto work = in.get<Work>();
      const auto form = in.get<Named::Form>();
      const std::vector<Index> numbers = in.get_list<Index>();
      TR_TRY(do_work_(work, {form, numbers}, in.get_bytes(), values));
    }
    return {};
  });
  Packer message;
  message.put(answer_message).put(number);
  done.pack(message);
  message.put_bytes(values);
  line_.send(source, message.take());
}

void FarElements::on_answer(Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  const Status done = Status::unpack(in);
  bytes_on_way_ -= on_way_.extract(number).mapped();
  if (questions_.count(number) == 0) {
    failure_ = first_cause(failure_, done);
    return;
  }
  const auto values = in.get_bytes();
  answers_[number] = {done, ByteVector(values.begin(), values.end())};
}

}  // namespace tailrace::shared
