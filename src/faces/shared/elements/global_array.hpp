// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
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

/// Elements of one type in the memory of all ranks of a group. In a node they lie in memory that its ranks
/// share, and those of other nodes ask the rank that owns the page.
class GlobalArray {
 public:
  /// Elements that follow one another in the memory of this rank.
  struct LocalPage {
    std::byte* values = nullptr;
    Index first = 0;
    Index count = 0;
  };

  /// Collective over the group; blocks. `call` names the call and its arguments, `given` is what the caller
  /// made of them. Returns the same Status on every rank.
  static Result<std::unique_ptr<GlobalArray>> create(const std::shared_ptr<files::Group>& group,
                                                     const std::string& call,
                                                     const Result<GlobalDefinition>& given);
  ~GlobalArray();
  GlobalArray(const GlobalArray&) = delete;
  GlobalArray& operator=(const GlobalArray&) = delete;

  [[nodiscard]] Index count() const { return what_.count; }
  [[nodiscard]] Bytes element_bytes() const { return size_of(what_.type); }
  /// Returns a name for texts of errors, as "float64[1000]".
  [[nodiscard]] std::string name() const;

  // Local. They return Code::argument, and do nothing, if the array lacks any of the elements.
  Status gather(std::span<const Index> indices, std::byte* values);
  Status scatter(std::span<const Index> indices, const std::byte* values);
  Status accumulate(std::span<const Index> indices, const std::byte* values, bool is_locked);
  Status read(Index begin, Index count, std::byte* values);
  Status write(Index begin, Index count, const std::byte* values);
  /// Returns the rank's own page of this number, or none behind the last one.
  [[nodiscard]] LocalPage local(Index number) const;

  // Collective. Each returns the same Status on every rank, and blocks until all ranks have called it.
  Status sync();
  Status resize(Index count);
  Status free();

 private:
  /// The elements of one call that one rank owns, or this node.
  struct Share {
    int rank = 0;
    std::vector<Index> where;
    std::vector<std::uint32_t> positions;
  };
  static constexpr std::uint32_t no_share = ~std::uint32_t{0};
  /// A run of elements in the memory of another node, and its values in the caller's.
  struct FarRun {
    int rank = 0;
    Index near = 0;
    Index count = 0;
    Bytes at = 0;
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
  std::unique_ptr<FarElements> far_;             // if there are several nodes
  std::unique_ptr<files::NodeServers> servers_;  // likewise
  std::unique_ptr<Conflicts> conflicts_;         // if they are looked for
  Share near_;                                   // of the call that goes on
  // The call that goes on has the first `asked_` of these, one for each rank that it asks.
  std::vector<Share> shares_;
  std::size_t asked_ = 0;
  std::vector<std::uint32_t> share_of_;  // by rank: its number among the shares, or no_share
};

}  // namespace tailrace::shared
