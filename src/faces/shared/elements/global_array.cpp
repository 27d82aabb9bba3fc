// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/elements/global_array.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::shared {

namespace {

/// A call with more listed elements than this deals them out to their owners in several rounds.
constexpr std::size_t elements_at_once = std::size_t{1} << 17;
/// One question asks for so many elements at most. MPI sends a question of this size eagerly, without first
/// asking the receiver; and the receiver answers one question while the next is on its way.
constexpr std::size_t elements_in_message = 4096;
/// A read of a range asks other nodes for so many bytes at a time.
constexpr Bytes run_bytes_at_once = Bytes{4} << 20;
/// One piece of work on a range of another node has at most so many bytes.
constexpr Bytes largest_far_run = Bytes{1} << 20;

/// Calls `call` with the size of an element, as a constant for the common sizes: the compiler then makes one
/// move of a copy.
template <typename Call>
void with_common_size(Bytes bytes, const Call& call) {
  if (bytes == 8)
    call(std::integral_constant<std::size_t, 8>{});
  else if (bytes == 4)
    call(std::integral_constant<std::size_t, 4>{});
  else
    call([bytes] { return static_cast<std::size_t>(bytes); });
}

}  // namespace

Status check_count(ElementType type, Index count, Bytes page) {
  Bytes bytes = 0;
  if (count < 0) return {Code::argument, cat("count is ", count, ", below 0")};
  if (__builtin_mul_overflow(count, size_of(type), &bytes)) {
    return {Code::argument,
            cat(counted(count, "element"), " of ", name_of(type), " have more bytes than 64 bits count")};
  }
  if (bytes / page < PageDeal::most_pages) return {};
  return {Code::argument, cat(counted(count, "element"), " of ", name_of(type), " need more than ",
                              PageDeal::most_pages, " pages of ", size_text(page), ": set page= higher")};
}

GlobalArray::GlobalArray(std::shared_ptr<files::Group> group, const GlobalDefinition& what,
                         std::uint64_t epoch)
    : group_(std::move(group)),
      what_(what),
      epoch_(epoch),
      deal_(what.page / size_of(what.type), group_->node_ranks()) {}

GlobalArray::~GlobalArray() = default;

std::string GlobalArray::name() const { return cat(name_of(what_.type), "[", what_.count, "]"); }

Result<std::unique_ptr<GlobalArray>> GlobalArray::create(const std::shared_ptr<files::Group>& group,
                                                         const std::string& call,
                                                         const Result<GlobalDefinition>& given) {
  const std::uint64_t epoch = group->new_epoch();  // also after an error: all ranks count all arrays
  std::unique_ptr<GlobalArray> made;
  Status mine = given.status();
  if (mine.is_ok()) {
    mine = guarded([&] {
      made.reset(new GlobalArray(group, *given, epoch));
      return Status();
    });
  }
  TR_TRY(group->agree({mine.in(call).at({-1, -1, group->rank()}), call, {}}).status);
  mine = guarded([&] { return made->make(); });
  TR_TRY(made->vote_on_servers(call, mine.in(call)));
  made->elements_->map();
  return made;
}

Status GlobalArray::make() {
  if (group_->settings().check_conflicts && group_->size() > 1)
    conflicts_ = std::make_unique<Conflicts>(*group_, "element");
  TR_TRY(make_elements(what_.count, elements_));
  if (group_->node().size() == group_->size()) return {};
  share_of_.assign(static_cast<std::size_t>(group_->size()), no_share);
  far_ = std::make_unique<FarElements>(
      group_->service().progress(), exchange::Requests::peers_of(group_->line()), epoch_, group_->threads(),
      [this](Work work, const Named& named, std::span<const std::byte> values, ByteVector& answer) {
        return work_on(*elements_, work, named, values, answer);
      });
  servers_ = std::make_unique<files::NodeServers>(*group_, epoch_);
  hand_elements();
  return {};
}

void GlobalArray::hand_elements() {
  servers_->hand(node::Handed::elements, elements_->memory(), Packer().put(elements_->plan()));
}

/// Collective over the node. Allocates this node's elements of an array of `count` elements.
Status GlobalArray::make_elements(Index count, std::unique_ptr<NodeElements>& elements) {
  const Index pages = deal_.pages_of_node_of(group_->rank(), count);
  Result<std::unique_ptr<NodeElements>> made = NodeElements::create(
      group_->node(), {what_.type, what_.page, pages, group_->settings().huge_pages}, group_->budget());
  TR_TRY(made.status());
  elements = std::move(*made);
  return {};
}

Status GlobalArray::vote(const std::string& call, const Status& mine) {
  const Cause cause{-1, -1, group_->rank()};
  return group_
      ->agree(
          {mine.at(mine.cause().rank < 0 ? cause : mine.cause()), cat(call, " of global array ", epoch_), {}})
      .status;
}

/// Agrees whether all ranks have their new elements, and which ranks answer from now on: the servers of all
/// nodes, or if one server could not take its node's elements, the ranks themselves.
Status GlobalArray::vote_on_servers(const std::string& call, const Status& mine) {
  if (servers_ == nullptr) return vote(call, mine);
  comm::Vote own{mine.at(mine.cause().rank < 0 ? Cause{-1, -1, group_->rank()} : mine.cause()),
                 cat(call, " of global array ", epoch_),
                 {}};
  own.bid = servers_->bid();
  const comm::Verdict verdict = group_->agree(std::move(own));
  // Also after an error: a program may go on, and its ranks must ask the processes that have the elements.
  if (verdict.status.code() != Code::order && far_ != nullptr)
    servers_->conclude(verdict.largest_bid, far_->requests());
  return verdict.status;
}

Status GlobalArray::check(std::span<const Index> indices) const {
  // The highest bit of the first term is set if the index is below 0, of the second if it is behind the end.
  std::uint64_t outside = 0;
  const auto last = static_cast<std::uint64_t>(what_.count) - 1;
  for (const Index index : indices)
    outside |= static_cast<std::uint64_t>(index) | (last - static_cast<std::uint64_t>(index));
  if (outside >> 63 == 0) return {};
  const auto bad =
      std::ranges::find_if(indices, [&](Index index) { return index < 0 || index >= what_.count; });
  if (bad == indices.end()) return {};
  return {Code::argument, cat("indices[", bad - indices.begin(), "] is ", *bad, ", but the array has ",
                              counted(what_.count, "element"), ", numbered from 0; nothing was done")};
}

Status GlobalArray::check(Index begin, Index count) const {
  if (begin >= 0 && count >= 0 && begin <= what_.count && count <= what_.count - begin) return {};
  return {Code::argument,
          cat(counted(count, "element"), " from ", begin, " on are not all in the array, which has ",
              counted(what_.count, "element"), ", numbered from 0; nothing was done")};
}

void GlobalArray::note(Doing doing, std::span<const Index> indices) {
  if (conflicts_ == nullptr) return;
  for (const Index index : indices) conflicts_->note(doing, index, 1);
}

/// Does work for other nodes, whose ranks may wait for this rank.
void GlobalArray::serve() { group_->line().board().pump(); }

/// Sorts the elements by whom the caller asks for them: fills `near_` and the first `asked_` of `shares_`.
void GlobalArray::deal_out(std::span<const Index> indices) {
  const auto clear = [](Share& share) {
    share.where.clear();
    share.positions.clear();
  };
  clear(near_);
  for (std::size_t i = 0; i < asked_; ++i) {
    clear(shares_[i]);
    share_of_[static_cast<std::size_t>(shares_[i].rank)] = no_share;
  }
  asked_ = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const PageDeal::ElementPlace place = deal_.place(indices[i]);
    const bool is_near = deal_.are_near(place.owner, group_->rank());
    Share& share = is_near ? near_ : shares_[share_of(servers_->asked_for(place.owner))];
    share.where.push_back(place.near);
    share.positions.push_back(static_cast<std::uint32_t>(i));
  }
}

/// Returns the number of a rank's share in `shares_`. Shares of earlier calls are used again, for any rank,
/// so that their memory stays.
std::size_t GlobalArray::share_of(int rank) {
  std::uint32_t& number = share_of_[static_cast<std::size_t>(rank)];
  if (number != no_share) return number;
  if (asked_ == shares_.size()) shares_.emplace_back();
  shares_[asked_].rank = rank;
  number = static_cast<std::uint32_t>(asked_++);
  return number;
}

ByteVector GlobalArray::values_of(const Share& share, const std::byte* values) const {
  ByteVector packed(share.where.size() * static_cast<std::size_t>(element_bytes()));
  with_common_size(element_bytes(), [&](auto size) {
    for (std::size_t i = 0; i < share.positions.size(); ++i)
      std::memcpy(packed.data() + i * size(), values + share.positions[i] * size(), size());
  });
  return packed;
}

Status GlobalArray::gather(std::span<const Index> indices, std::byte* values) {
  TR_TRY(check(indices));
  note(Doing::read, indices);
  if (far_ == nullptr) {
    elements_->get({indices}, values);
    return {};
  }
  serve();
  for (std::size_t at = 0; at < indices.size(); at += elements_at_once) {
    const auto some = indices.subspan(at, std::min(elements_at_once, indices.size() - at));
    TR_TRY(gather_some(some, values + static_cast<Bytes>(at) * element_bytes()));
  }
  return {};
}

Status GlobalArray::gather_some(std::span<const Index> indices, std::byte* values) {
  struct Part {
    std::uint64_t question = 0;
    std::span<const std::uint32_t> positions;
  };
  deal_out(indices);
  std::vector<Part> parts;
  for (const Share& share : asked()) {
    for (std::size_t at = 0; at < share.where.size(); at += elements_in_message) {
      const std::size_t count = std::min(elements_in_message, share.where.size() - at);
      parts.push_back({far_->ask(share.rank, {Named::Form::each, std::span(share.where).subspan(at, count)}),
                       std::span(share.positions).subspan(at, count)});
    }
  }
  elements_->get({near_.where, near_.positions.data()}, values);
  Status first;
  for (const Part& part : parts) {
    const Result<ByteVector> answer = far_->answer_to(part.question);
    first = first_cause(first, answer.status());
    if (!answer.is_ok()) continue;
    with_common_size(element_bytes(), [&](auto size) {
      for (std::size_t i = 0; i < part.positions.size(); ++i)
        std::memcpy(values + part.positions[i] * size(), answer->data() + i * size(), size());
    });
  }
  return first;
}

Status GlobalArray::scatter(std::span<const Index> indices, const std::byte* values) {
  TR_TRY(check(indices));
  note(Doing::write, indices);
  change(Work::put, indices, values);
  return {};
}

Status GlobalArray::accumulate(std::span<const Index> indices, const std::byte* values, bool is_locked) {
  if (!NodeElements::adds(what_.type)) {
    return {Code::argument, cat("elements of ", name_of(what_.type),
                                " cannot be added: int32, int64, uint32, uint64, float32, float64, "
                                "complex64 and complex128 can")};
  }
  TR_TRY(check(indices));
  // Without the lock another rank's addition between the load and the store is lost: that is a write.
  note(is_locked ? Doing::add : Doing::write, indices);
  change(is_locked ? Work::add_locked : Work::add, indices, values);
  return {};
}

void GlobalArray::change(Work work, std::span<const Index> indices, const std::byte* values) {
  if (far_ == nullptr) return change_near(work, {indices}, values);
  serve();
  for (std::size_t at = 0; at < indices.size(); at += elements_at_once) {
    const std::byte* const from = values + static_cast<Bytes>(at) * element_bytes();
    deal_out(indices.subspan(at, std::min(elements_at_once, indices.size() - at)));
    for (const Share& share : asked())
      far_->change(share.rank, work, {Named::Form::each, share.where}, values_of(share, from));
    change_near(work, {near_.where, near_.positions.data()}, from);
  }
}

void GlobalArray::change_near(Work work, const Batch& batch, const std::byte* values) {
  if (work == Work::put)
    elements_->put(batch, values);
  else
    elements_->add(batch, values, work == Work::add_locked);
}

/// Cuts a range into parts that lie in one page each. Calls near(number, count, at) for the parts of this
/// node, and far(run) for those of others. `at` is the place of a part's values in the caller's, in bytes.
/// With one node the whole range is one part.
template <typename Near, typename Far>
Status GlobalArray::for_each_run(Index begin, Index count, const Near& near, const Far& far) const {
  if (far_ == nullptr) {
    near(begin, count, 0);
    return {};
  }
  for (Index done = 0; done < count;) {
    const Index element = begin + done;
    const PageDeal::ElementPlace place = deal_.place(element);
    Index run = std::min(deal_.page_elements() - element % deal_.page_elements(), count - done);
    const Bytes at = done * element_bytes();
    if (deal_.are_near(place.owner, group_->rank())) {
      near(place.near, run, at);
    } else {
      run = std::min(run, largest_far_run / element_bytes());
      TR_TRY(far(FarRun{servers_->asked_for(place.owner), place.near, run, at}));
    }
    done += run;
  }
  return {};
}

Status GlobalArray::read(Index begin, Index count, std::byte* values) {
  TR_TRY(check(begin, count));
  note(Doing::read, begin, count);
  if (far_ != nullptr) serve();
  std::vector<FarRun> runs;
  Bytes waiting = 0;
  TR_TRY(for_each_run(
      begin, count,
      [&](Index number, Index run, Bytes at) {
        const auto bytes = static_cast<std::size_t>(run * element_bytes());
        if (bytes > 0) std::memcpy(values + at, elements_->element(number), bytes);
      },
      [&](const FarRun& run) {
        runs.push_back(run);
        waiting += run.count * element_bytes();
        if (waiting < run_bytes_at_once) return Status();
        waiting = 0;
        return read_far(runs, values);
      }));
  return read_far(runs, values);
}

Status GlobalArray::read_far(std::vector<FarRun>& runs, std::byte* values) {
  std::ranges::stable_sort(runs, {}, &FarRun::rank);
  std::vector<std::pair<std::uint64_t, std::span<const FarRun>>> questions;
  for (std::size_t at = 0; at < runs.size();) {
    std::vector<Index> numbers;
    std::size_t end = at;
    for (; end < runs.size() && runs[end].rank == runs[at].rank; ++end) {
      numbers.push_back(runs[end].near);
      numbers.push_back(runs[end].count);
    }
    questions.emplace_back(far_->ask(runs[at].rank, {Named::Form::runs, numbers}),
                           std::span(runs).subspan(at, end - at));
    at = end;
  }
  Status first;
  for (const auto& [question, asked] : questions) {
    const Result<ByteVector> answer = far_->answer_to(question);
    first = first_cause(first, answer.status());
    if (!answer.is_ok()) continue;
    const std::byte* from = answer->data();
    for (const FarRun& run : asked) {
      const auto bytes = static_cast<std::size_t>(run.count * element_bytes());
      std::memcpy(values + run.at, std::exchange(from, from + bytes), bytes);
    }
  }
  runs.clear();
  return first;
}

Status GlobalArray::write(Index begin, Index count, const std::byte* values) {
  TR_TRY(check(begin, count));
  note(Doing::write, begin, count);
  if (far_ != nullptr) serve();
  return for_each_run(
      begin, count,
      [&](Index number, Index run, Bytes at) {
        const auto bytes = static_cast<std::size_t>(run * element_bytes());
        if (bytes > 0) std::memcpy(elements_->element(number), values + at, bytes);
      },
      [&](const FarRun& run) {
        const Index numbers[] = {run.near, run.count};
        const auto bytes = static_cast<std::size_t>(run.count * element_bytes());
        far_->change(run.rank, Work::put, {Named::Form::runs, numbers}, {values + run.at, bytes});
        return Status();
      });
}

GlobalArray::LocalPage GlobalArray::local(Index number) const {
  const Index pages = deal_.pages(what_.count);
  const bool has_any = group_->rank() < pages;
  if (!has_any || number < 0 || number > (pages - 1 - group_->rank()) / deal_.ranks()) return {};
  const Index first = (number * deal_.ranks() + group_->rank()) * deal_.page_elements();
  return {elements_->element(deal_.place(first).near), first,
          std::min(deal_.page_elements(), what_.count - first)};
}

/// Waits until all changes of all ranks so far have been made. Returns the same Status on every rank: the
/// first failure of a change that was on its way to another node.
Status GlobalArray::meet(const std::string& call) {
  Status mine;
  if (far_ != nullptr) {
    far_->settle();
    mine = far_->take_failure();
  }
  // This rank's stores into shared memory must come before its vote, and its loads after the verdict.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Status met = vote(call, mine.in(call));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (conflicts_ != nullptr && met.code() != Code::order) conflicts_->compare(what_.count, call);
  return met;
}

Status GlobalArray::sync() { return meet(cat("tr_global_sync(", name(), ")")); }

Status GlobalArray::resize(Index count) {
  const std::string call = cat("tr_global_resize(", name(), ", ", count, ")");
  // All ranks agree on the arguments before any rank changes anything.
  TR_TRY(vote(call, check_count(what_.type, count, what_.page).in(call)));
  TR_TRY(meet(call));
  std::unique_ptr<NodeElements> next;
  const bool is_new = deal_.pages_of_node_of(group_->rank(), count) != elements_->pages();
  Status mine;
  if (is_new) mine = guarded([&] { return make_elements(count, next); });
  if (mine.is_ok() && is_new) next->copy_own_pages(*elements_);
  TR_TRY(vote(cat(call, ", copying"), mine.in(call)));
  // From here to the last vote no rank asks for elements, until all ranks have the new ones.
  const bool is_handed = is_new && servers_ != nullptr && servers_->do_answer();
  mine = guarded([&] {
    if (is_handed) servers_->take_back();
    replace_elements(std::move(next), count);
    if (is_handed) hand_elements();
    return Status();
  });
  if (!mine.is_ok() && is_handed) servers_->give_up();
  // A rank that leaves this call may ask others for elements: all must have the new ones by then.
  return vote_on_servers(cat(call, ", the new elements"), mine.in(call));
}

/// Makes `next` this node's elements. `next` is nullptr where the elements so far have the right number of
/// pages for `count`.
void GlobalArray::replace_elements(std::unique_ptr<NodeElements> next, Index count) {
  const auto alone = far_ != nullptr ? far_->alone() : std::unique_lock<std::mutex>();
  if (next != nullptr) {
    elements_ = std::move(next);
    elements_->map();
  }
  const bool is_cut = count < what_.count;
  what_.count = count;
  if (is_cut) clear_behind();
}

/// Clears the elements behind the last one in its page, so that they are zeros if the array grows again. Only
/// the owner of the page does it.
void GlobalArray::clear_behind() {
  const Index behind = what_.count % deal_.page_elements();
  if (behind == 0) return;
  const PageDeal::ElementPlace place = deal_.place(what_.count);
  if (place.owner != group_->rank()) return;
  const Index rest = deal_.page_elements() - behind;
  std::memset(elements_->element(place.near), 0, static_cast<std::size_t>(rest * element_bytes()));
}

Status GlobalArray::free() {
  const Status met = meet(cat("tr_global_free(", name(), ")"));
  if (servers_ != nullptr) servers_->take_back();
  far_.reset();
  elements_.reset();
  return met;
}

}  // namespace tailrace::shared
