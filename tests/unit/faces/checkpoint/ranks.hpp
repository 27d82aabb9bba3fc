// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A job of several ranks in one thread. The library's own classes make each rank's share of a save; the votes
// between the steps are counted here. A loader takes the newest whole copy.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faces/checkpoint/saving.hpp"
#include "faces/checkpoint/slots.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::checkpoint {

/// Returns the value of an element in a generation. No two generations have a value in common.
inline double value_of(std::int64_t generation, Index element) {
  return static_cast<double>(generation) * 1e6 + static_cast<double>(element);
}

/// The data of every rank: a scalar, a field cut into blocks, and one cut into cyclic blocks.
class RankData {
 public:
  static constexpr Index rows = 24, columns = 10;

  RankData(int rank, int ranks)
      : rank_(rank),
        layouts_{*layout::Layout::replicated({1}, ranks), *layout::Layout::block({rows, columns}, ranks),
                 *layout::Layout::block_cyclic({rows * columns}, ranks, {7})} {
    for (const layout::Layout& layout : layouts_)
      values_.emplace_back(static_cast<std::size_t>(layout.kind() == "replicated" ? 1 : layout.count(rank)));
  }
  void fill(std::int64_t generation) {
    for (std::size_t i = 0; i < layouts_.size(); ++i)
      for_each(i, [&](double& value, Index element) { value = value_of(generation, element); });
  }
  void spoil() {
    for (auto& values : values_) values.assign(values.size(), -1);
  }
  [[nodiscard]] bool holds(std::int64_t generation) {
    bool all = true;
    for (std::size_t i = 0; i < layouts_.size(); ++i)
      for_each(i, [&](double& value, Index element) { all = all && value == value_of(generation, element); });
    return all;
  }
  [[nodiscard]] arrays::Array array(std::size_t item) {
    arrays::Array array;
    array.data = reinterpret_cast<std::byte*>(values_[item].data());
    array.type = ElementType::f64;
    array.layout = &layouts_[item];
    return array;
  }
  [[nodiscard]] std::size_t size() const { return layouts_.size(); }
  [[nodiscard]] std::vector<SaveItem> items() {
    std::vector<SaveItem> list;
    for (std::size_t i = 0; i < size(); ++i) {
      Result<arrays::Owned> owned = arrays::find_owned(array(i), rank_);
      std::vector<Index> shape = i == 0 ? std::vector<Index>() : owned->shape;
      list.push_back({{name(i), ElementType::f64, std::move(shape)}, std::move(*owned), array(i).data});
    }
    return list;
  }
  static std::string name(std::size_t item) { return "item" + std::to_string(item); }

 private:
  template <typename Body>
  void for_each(std::size_t item, const Body& body) {
    std::size_t at = 0;
    for (const layout::Rows& each : layouts_[item].rows(item == 0 ? 0 : rank_)) {
      for (Index row = 0; row < each.rows; ++row) {
        for (Index i = 0; i < each.count; ++i) body(values_[item][at++], each.global + row * each.stride + i);
      }
    }
  }

  int rank_;
  std::vector<layout::Layout> layouts_;
  std::vector<std::vector<double>> values_;
};

/// One run of a job: its ranks, each with storage of its own, and the first rank's slots.
class Job {
 public:
  using Targets = std::vector<std::shared_ptr<storage::Target>>;

  Job(Targets targets, Mode mode, Compression compression = {})
      : targets_(std::move(targets)),
        mode_(mode),
        compression_(compression),
        slots_("run", Slots::paths("run", 2), 0) {
    for (std::size_t rank = 0; rank < targets_.size(); ++rank)
      data_.emplace_back(static_cast<int>(rank), static_cast<int>(targets_.size()));
    begun_ = slots_.look(*targets_.front()).status();
  }
  [[nodiscard]] const Status& begun() const { return begun_; }
  [[nodiscard]] Slots& slots() { return slots_; }

  /// Does one save. Returns the verdict, which all ranks are told. With `captured` the data is captured, and
  /// changes before it is written.
  Status save(std::int64_t generation, bool captured) {
    SavePlan plan{slots_.place_for(generation), mode_, {run_, generation}, compression_, 1'700'000'000};
    TR_TRY(slots_.check(*targets_.front(), plan.path, mode_, static_cast<int>(targets_.size())).status());
    slots_.begun(generation, plan.path);
    std::vector<std::unique_ptr<Saving>> ranks;
    std::vector<ByteVector> images(targets_.size());
    std::vector<Bytes> sizes;
    const int count = static_cast<int>(targets_.size());
    for (int r = 0; r < count; ++r) {
      const auto at = static_cast<std::size_t>(r);
      data_[at].fill(generation);
      ranks.push_back(std::make_unique<Saving>(*targets_[at], plan, r, count, data_[at].items()));
      sizes.push_back(ranks.back()->part_bytes());
    }
    ranks.front()->set_failed(slots_.failed());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r]->place(sizes);
      if (!captured) continue;
      images[r].resize(static_cast<std::size_t>(ranks[r]->data_bytes()));
      ranks[r]->capture(images[r].data());
      data_[r].spoil();
    }
    const Status status = write(ranks, generation);
    if (!status.is_ok())
      ranks.front()->abandon();
    else
      slots_.committed(generation, plan.path, mode_ == Mode::local ? count : 0);
    for (auto& rank : ranks) (void)rank->close().is_ok();
    return status;
  }

 private:
  Status write(std::vector<std::unique_ptr<Saving>>& ranks, std::int64_t generation) {
    Status verdict;
    // The order of the ranks differs each time, and the first rank is neither the first nor the last.
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Saving& rank = *ranks[(i + static_cast<std::size_t>(generation)) % ranks.size()];
      Status mine = rank.write();
      if (mine.is_ok()) mine = rank.seal();
      if (verdict.is_ok()) verdict = mine;
    }
    return verdict.is_ok() ? ranks.front()->commit() : verdict;
  }

  Targets targets_;
  Mode mode_;
  Compression compression_;
  Slots slots_;
  Uuid run_ = Uuid::random();
  std::vector<RankData> data_;
  Status begun_;
};

/// Loads the newest whole copy into `ranks` ranks, and commits it as a run does. Returns its generation, or
/// 0. The test fails if the copy has other values than those of its generation.
inline std::int64_t load(storage::Target& target, int ranks) {
  const Result<std::vector<std::string>> paths = find_copies(target, "run");
  if (!paths.is_ok()) return 0;
  for (const Found& found : look_at(target, *paths)) {
    if (found.missing || !found.status.is_ok()) continue;
    Result<Copy> copy = read_copy(target, found.path);
    if (!copy.is_ok()) continue;
    bool whole = true;
    for (int rank = 0; whole && rank < ranks; ++rank) {
      RankData data(rank, ranks);
      data.spoil();
      CopyReader reader(target, *copy);
      for (std::size_t i = 0; whole && i < data.size(); ++i) {
        const arrays::Array array = data.array(i);
        const auto plan = arrays::make_plan(array, rank, arrays::Direction::read);
        whole = reader.read(copy->find(RankData::name(i)), (*plan)->mine, array.data).is_ok();
      }
      if (whole)
        EXPECT_TRUE(data.holds(copy->generation()))
            << "generation " << copy->generation() << " of " << found.path;
    }
    if (!whole) continue;
    if (!copy->header.committed) (void)commit_copy(target, *copy).is_ok();
    return copy->generation();
  }
  return 0;
}

}  // namespace tailrace::checkpoint
