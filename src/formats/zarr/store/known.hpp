// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "formats/zarr/layout.hpp"

namespace tailrace::zarr {

/// The layouts that all stores of a target share. Thread-safe.
class Known {
 public:
  /// Returns Layout::of(text). Keeps the layouts of the last texts, because a store is opened several
  /// times for each step.
  Result<std::shared_ptr<const Layout>> layout_of(std::string text) {
    constexpr std::size_t most_kept = 8;
    const std::lock_guard guard(mutex_);
    for (const Kept& each : layouts_) {
      if (each.first == text) return each.second;
    }
    Result<Layout> layout = Layout::of(text);
    TR_TRY(layout.status());
    layouts_.emplace_front(std::move(text), std::make_shared<const Layout>(std::move(*layout)));
    if (layouts_.size() > most_kept) layouts_.pop_back();
    return layouts_.front().second;
  }

 private:
  using Kept = std::pair<std::string, std::shared_ptr<const Layout>>;
  std::mutex mutex_;
  std::deque<Kept> layouts_;  // the texts and their layouts, newest first
};

}  // namespace tailrace::zarr
