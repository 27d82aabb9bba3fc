// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "shared/far_elements.hpp"

#include <utility>
#include <vector>

namespace tailrace::shared {

using exchange::Requests;

FarElements::FarElements(exchange::RequestDesk& desk, comm::Line& line, std::uint64_t epoch,
                         executor::Threads& threads, DoWork do_work)
    : do_work_(std::move(do_work)),
      requests_(
          desk, line, epoch, threads, "elements of a global array",
          {.serve = [this](Unpacker pieces, bool, Requests::Answer& answer) { serve(pieces, answer); }}) {}

// A piece of work: what it is, how elements are named, their numbers, and the values.

void FarElements::change(int rank, Work work, const Named& named, std::span<const std::byte> values) {
  requests_.change(
      rank, [&](Packer& out) { out.put(work).put(named.form).put_list(named.numbers).put_bytes(values); });
}

std::uint64_t FarElements::ask(int rank, const Named& named) {
  return requests_.ask(
      rank, [&](Packer& out) { out.put(Work::get).put(named.form).put_list(named.numbers).put_bytes({}); });
}

void FarElements::serve(Unpacker pieces, Requests::Answer& answer) const {
  while (!pieces.rest().empty()) {
    const auto work = pieces.get<Work>();
    const auto form = pieces.get<Named::Form>();
    const std::vector<Index> numbers = pieces.get_list<Index>();
    const Status done = do_work_(work, {form, numbers}, pieces.get_bytes(), answer.values);
    Status& outcome = work == Work::get ? answer.got : answer.changed;
    outcome = first_cause(outcome, done);
  }
}

}  // namespace tailrace::shared
