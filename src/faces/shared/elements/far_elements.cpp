// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/elements/far_elements.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "ground/base/text.hpp"

namespace tailrace::shared {

using exchange::Requests;

Status work_on(NodeElements& elements, Work work, const Named& named, std::span<const std::byte> values,
               ByteVector& answer) {
  const bool are_runs = named.form == Named::Form::runs;
  Index count = are_runs ? 0 : std::ssize(named.numbers);
  bool is_here = true;
  for (std::size_t i = 0; i < named.numbers.size(); i += are_runs ? 2 : 1) {
    const Index run = are_runs ? named.numbers[i + 1] : 1;
    is_here = is_here && elements.has(named.numbers[i], run);
    if (are_runs) count += run;
  }
  const Bytes element_bytes = size_of(elements.type());
  const Bytes bytes = count * element_bytes;
  if (!is_here || (work != Work::get && std::ssize(values) != bytes)) {
    return {Code::argument, cat("another node asked for elements of a global array of ",
                                name_of(elements.type()), " that are not here")};
  }
  const std::size_t before = answer.size();
  if (work == Work::get) answer.resize(before + static_cast<std::size_t>(bytes));
  std::byte* into = answer.data() + before;
  if (!are_runs) {
    if (work == Work::get)
      elements.get({named.numbers}, into);
    else if (work == Work::put)
      elements.put({named.numbers}, values.data());
    else
      elements.add({named.numbers}, values.data(), work == Work::add_locked);
    return {};
  }
  const std::byte* from = values.data();
  for (std::size_t i = 0; i < named.numbers.size(); i += 2) {
    std::byte* const here = elements.element(named.numbers[i]);
    const auto length = static_cast<std::size_t>(named.numbers[i + 1] * element_bytes);
    if (work == Work::get)
      std::memcpy(std::exchange(into, into + length), here, length);
    else
      std::memcpy(here, std::exchange(from, from + length), length);
  }
  return {};
}

FarElements::FarElements(exchange::ProgressEngine& progress, Requests::Peers peers, std::uint64_t epoch,
                         executor::Threads& threads, DoWork do_work)
    : do_work_(std::move(do_work)),
      requests_(progress, std::move(peers), epoch, threads, "elements of a global array",
                {.serve = [this](Unpacker& pieces, bool, Requests::Answer& answer) {
                  serve(pieces, answer);
                  return true;
                }}) {}

// A message has pieces of work. Each is packed as the Work, the form in which the elements are named, their
// numbers, and the values (none for Work::get).

void FarElements::change(int rank, Work work, const Named& named, std::span<const std::byte> values) {
  requests_.change(
      rank, [&](Packer& out) { out.put(work).put(named.form).put_list(named.numbers).put_bytes(values); });
}

std::uint64_t FarElements::ask(int rank, const Named& named) {
  return requests_.ask(
      rank, [&](Packer& out) { out.put(Work::get).put(named.form).put_list(named.numbers).put_bytes({}); });
}

void FarElements::serve(Unpacker& pieces, Requests::Answer& answer) const {
  const auto work = pieces.get<Work>();
  const auto form = pieces.get<Named::Form>();
  const std::vector<Index> numbers = pieces.get_list<Index>();
  const Status done = do_work_(work, {form, numbers}, pieces.get_bytes(), answer.values);
  Status& outcome = work == Work::get ? answer.got : answer.changed;
  outcome = first_cause(outcome, done);
}

}  // namespace tailrace::shared
