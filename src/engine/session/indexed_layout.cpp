// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/indexed_layout.hpp"

#include <map>
#include <optional>
#include <span>

#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::session {

namespace {

std::map<int, ByteVector> packed(const std::map<int, std::vector<Index>>& lists) {
  std::map<int, ByteVector> bytes;
  for (const auto& [rank, list] : lists) bytes[rank] = Packer().put_list(std::span<const Index>(list)).take();
  return bytes;
}

std::map<int, std::vector<Index>> unpacked(const std::map<int, ByteVector>& bytes) {
  std::map<int, std::vector<Index>> lists;
  for (const auto& [rank, each] : bytes) lists[rank] = Unpacker(each).get_list<Index>();
  return lists;
}

}  // namespace

Result<layout::Layout> make_indexed(Session& session, const std::string& call, std::vector<Index> shape,
                                    const Result<std::vector<Index>>& given) {
  std::optional<layout::Directory> directory;
  std::map<int, ByteVector> requests;
  const Status mine = guarded([&]() -> Status {
    TR_TRY(given.status());
    TR_TRY(layout::check_shape(shape));
    directory.emplace(layout::product(shape), session.ranks());
    const Result<std::map<int, std::vector<Index>>> sorted = directory->requests(session.rank(), *given);
    TR_TRY(sorted.status());
    requests = packed(*sorted);
    return {};
  });
  comm::Vote vote{mine.in(call), call, {}};
  if (given.is_ok() && given->empty()) vote.contribution.resize(1);  // tells all that this rank owns nothing
  comm::Verdict verdict = session.agree(std::move(vote));
  TR_TRY(verdict.status);

  const Result<std::map<int, ByteVector>> received =
      session.computes().exchange(std::move(requests), {{}, cat(call, ": whose indices are whose"), {}});
  TR_TRY(received.status());
  Result<layout::Layout> made = guarded([&]() -> Result<layout::Layout> {
    TR_TRY(directory->check(session.rank(), unpacked(*received)));
    std::vector<int> idle;
    for (std::size_t rank = 0; rank < verdict.contributions.size(); ++rank) {
      if (!verdict.contributions[rank].empty()) idle.push_back(static_cast<int>(rank));
    }
    return layout::Layout::indexed_part(std::move(shape), session.rank(), session.ranks(), *given,
                                        std::move(idle));
  });
  verdict = session.agree({made.status().in(call), call, {}});
  TR_TRY(verdict.status);
  return made;
}

}  // namespace tailrace::session
