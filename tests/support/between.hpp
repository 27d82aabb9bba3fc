// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ground/storage/forwarding.hpp"

namespace tailrace::storage {

/// Passes all calls on, and does something else before some of them: so another program comes between two
/// calls of the one that uses this target. Calls of the target are counted from 1, those of its files are
/// not.
class Between final : public ForwardingTarget {
 public:
  /// What is done before the call with this number. Several things may be done before one call.
  using Deeds = std::multimap<int, std::function<void()>>;
  Between(std::shared_ptr<Target> below, Deeds deeds)
      : ForwardingTarget(std::move(below)), deeds_(std::move(deeds)) {}
  [[nodiscard]] int calls() const { return calls_; }

  using Target::open;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override {
    come_between();
    return ForwardingTarget::open(path, mode, permissions);
  }
  Status rename(const std::string& from, const std::string& to) override {
    come_between();
    return ForwardingTarget::rename(from, to);
  }
  Status remove(const std::string& path) override {
    come_between();
    return ForwardingTarget::remove(path);
  }
  Result<bool> exists(const std::string& path) override {
    come_between();
    return ForwardingTarget::exists(path);
  }
  Status sync_directory_of(const std::string& path) override {
    come_between();
    return ForwardingTarget::sync_directory_of(path);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    come_between();
    return ForwardingTarget::list(directory);
  }

 private:
  void come_between() {
    const auto [first, last] = deeds_.equal_range(++calls_);
    for (auto deed = first; deed != last; ++deed) deed->second();
  }

  const Deeds deeds_;
  int calls_ = 0;
};

}  // namespace tailrace::storage
