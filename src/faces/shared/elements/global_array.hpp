// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "faces/files/group.hpp"
#include "faces/files/node_servers.hpp"
#include "faces/shared/elements/far_elements.hpp"
#include "faces/shared/elements/node_elements.hpp"
#include "faces/shared/pages/page_deal.hpp"
#include "faces/shared/safety/conflicts.hpp"

namespace tailrace::shared {

/// The type, size and pages of a global array.
struct GlobalDefinition {
  ElementType type = ElementType::byte;
  Index count = 0;
  Bytes page = 0;  // a power of 2
};

/// Returns Code::argument if no array can have that many elements.
Status check_count(ElementType type, Index count, Bytes page);

/// Elements of one type in the memory of all ranks of a group. The elements of a node lie in memory that its
/// ranks share. Ranks of other nodes ask the owner of the elements' page, or the server of the owner's node.
class GlobalArray {
 public:
  /// Elements that follow one another in the memory of this rank.
  struct LocalPage {
    std::byte* values = nullptr;
    Index first = 0;
    Index count = 0;
  };

  /// Collective over the group; blocks until all ranks have called it. `call` is the call with its arguments,
  /// for the comparison of the ranks' calls and for error texts. `given` is the definition that the caller
  /// has made of the arguments, or the caller's error. Returns the same Status on every rank.
  static Result<std::unique_ptr<GlobalArray>> create(const std::shared_ptr<files::Group>& group,
                                                     const std::string& call,
                                                     const Result<GlobalDefinition>& given);
  ~GlobalArray();
  GlobalArray(const GlobalArray&) = delete;
  GlobalArray& operator=(const GlobalArray&) = delete;

  [[nodiscard]] Index count() const { return what_.count; }
  [[nodiscard]] Bytes element_bytes() const { return size_of(what_.type); }
  /// Returns a name for error texts, such as "float64[1000]".
  [[nodiscard]] std::string name() const;

  // Local. Each returns Code::argument, and does nothing, if the array lacks any of the elements. gather()
  // and read() wait for answers of other nodes, and the others while too many bytes are on their way to other
  // nodes; meanwhile this rank does work for others. `values` may be reused when a call has returned.
  Status gather(std::span<const Index> indices, std::byte* values);
  Status scatter(std::span<const Index> indices, const std::byte* values);
  Status accumulate(std::span<const Index> indices, const std::byte* values, bool is_locked);
  Status read(Index begin, Index count, std::byte* values);
  Status write(Index begin, Index count, const std::byte* values);
  /// Returns page number `number` of those that this rank owns, or an empty page if there is none.
  [[nodiscard]] LocalPage local(Index number) const;

  // Collective. Each returns the same Status on every rank, and blocks until all ranks have called it.
  Status sync();
  Status resize(Index count);
  Status free();

 private:
  /// The elements of one call that this node has, or for which one rank of another node is asked: `where` has
  /// their numbers in their node, `positions` the positions in the caller's list.
  struct Share {
    int rank = 0;
    std::vector<Index> where;
    std::vector<std::uint32_t> positions;
  };
  static constexpr std::uint32_t no_share = ~std::uint32_t{0};
  /// Elements of another node that follow one another.
  struct FarRun {
    int rank = 0;    // that is asked
    Index near = 0;  // the number of the first element in its node
    Index count = 0;
    Bytes at = 0;  // the place of the values in the caller's memory
  };

  GlobalArray(std::shared_ptr<files::Group> group, const GlobalDefinition& what, std::uint64_t epoch);
  Status make();
  Status make_elements(Index count, std::unique_ptr<NodeElements>& elements);
  void hand_elements();
  [[nodiscard]] Status vote(const std::string& call, const Status& mine);
  Status vote_on_servers(const std::string& call, const Status& mine);
  Status meet(const std::string& call);
  void replace_elements(std::unique_ptr<NodeElements> next, Index count);
  void clear_behind();
  void note(Doing doing, std::span<const Index> indices);
  void note(Doing doing, Index begin, Index count) {
    if (conflicts_ != nullptr) conflicts_->note(doing, begin, count);
  }

  [[nodiscard]] Status check(std::span<const Index> indices) const;
  [[nodiscard]] Status check(Index begin, Index count) const;
  void serve();
  void deal_out(std::span<const Index> indices);
  std::size_t share_of(int rank);
  [[nodiscard]] std::span<const Share> asked() const { return std::span(shares_).first(asked_); }
  [[nodiscard]] ByteVector values_of(const Share& share, const std::byte* values) const;
  Status gather_some(std::span<const Index> indices, std::byte* values);
  void change(Work work, std::span<const Index> indices, const std::byte* values);
  void change_near(Work work, const Batch& batch, const std::byte* values);
  template <typename Near, typename Far>
  Status for_each_run(Index begin, Index count, const Near& near, const Far& far) const;
  Status read_far(std::vector<FarRun>& runs, std::byte* values);

  const std::shared_ptr<files::Group> group_;
  GlobalDefinition what_;
  const std::uint64_t epoch_;
  const PageDeal deal_;
  std::unique_ptr<NodeElements> elements_;
  std::unique_ptr<FarElements> far_;             // with several nodes
  std::unique_ptr<files::NodeServers> servers_;  // with several nodes
  std::unique_ptr<Conflicts> conflicts_;         // with the setting check_conflicts
  Share near_;                                   // of the current call: the elements of this node
  // The current call uses the first `asked_` of these, one for each rank that it asks.
  std::vector<Share> shares_;
  std::size_t asked_ = 0;
  std::vector<std::uint32_t> share_of_;  // by rank: its number among the shares, or no_share
};

}  // namespace tailrace::shared
