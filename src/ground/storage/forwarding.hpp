// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// Passes all calls on to other storage. Derived classes override some of them.
class ForwardingTarget : public Target {
 public:
  explicit ForwardingTarget(std::shared_ptr<Target> below) : below_(std::move(below)) {}
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override {
    return below_->open(path, mode, permissions);
  }
  Status rename(const std::string& from, const std::string& to) override { return below_->rename(from, to); }
  Status remove(const std::string& path) override { return below_->remove(path); }
  Status remove_directory(const std::string& path) override { return below_->remove_directory(path); }
  Result<bool> exists(const std::string& path) override { return below_->exists(path); }
  Result<Kind> kind_of(const std::string& path) override { return below_->kind_of(path); }
  Result<Identity> identity_of(const std::string& path) override { return below_->identity_of(path); }
  std::string behind_links(const std::string& path) override { return below_->behind_links(path); }
  Result<bool> is_link(const std::string& path) override { return below_->is_link(path); }
  std::optional<std::string> system_name(const std::string& path) override {
    return below_->system_name(path);
  }
  Status count_write(const std::string& path, Bytes size) override { return below_->count_write(path, size); }
  Status make_directories(const std::string& path) override { return below_->make_directories(path); }
  Status sync_directory_of(const std::string& path) override { return below_->sync_directory_of(path); }
  Result<Space> space(const std::string& path) override { return below_->space(path); }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return below_->list(directory);
  }
  Result<std::shared_ptr<void>> lock(const std::string& path) override { return below_->lock(path); }
  Result<std::shared_ptr<void>> share_lock(const std::string& path, std::shared_ptr<void> own) override {
    return below_->share_lock(path, std::move(own));
  }

 protected:
  const std::shared_ptr<Target> below_;
};

}  // namespace tailrace::storage
