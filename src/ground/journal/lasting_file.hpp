// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <mutex>

#include "ground/base/log.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::journal {

/// A file of storage that stays open as long as anybody holds it, even after the program has closed it: an
/// asynchronous save makes it durable later. The save needs this very open file and not a second one, because
/// a sync that has failed must fail forever.
class LastingFile final : public storage::File, public std::enable_shared_from_this<LastingFile> {
 public:
  explicit LastingFile(std::unique_ptr<storage::File> below) : below_(std::move(below)) {}

  /// Returns the file below. It stays open until the last copy of this pointer is destroyed.
  [[nodiscard]] std::shared_ptr<storage::File> hold() {
    const std::lock_guard lock(mutex_);
    ++holders_;
    return {below_.get(), [self = shared_from_this()](storage::File*) { self->let_go(); }};
  }

  Status write_gathered(storage::Parts parts, Bytes offset) override {
    return below_->write_gathered(parts, offset);
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override { return below_->read(data, offset); }
  Status sync() override { return below_->sync(); }
  void begin_write_back() override { below_->begin_write_back(); }
  Bytes next_data(Bytes offset) override { return below_->next_data(offset); }
  Status truncate(Bytes size) override { return below_->truncate(size); }
  Result<Bytes> size() override { return below_->size(); }
  std::optional<storage::Rights> rights() override { return below_->rights(); }
  Status set_owner(std::optional<unsigned> user, unsigned group) override {
    return below_->set_owner(user, group);
  }
  Status set_permissions(unsigned permissions) override { return below_->set_permissions(permissions); }
  bool is_named(const std::string& path) override { return below_->is_named(path); }
  storage::FileNumber number() override { return below_->number(); }
  [[nodiscard]] int descriptors() const override { return below_->descriptors(); }
  /// Closes the file, unless somebody holds it. Then the last holder closes it, and a failure is written to
  /// the log.
  Status close() override {
    const std::lock_guard lock(mutex_);
    if (closed_) return {Code::state, "close: the file is closed"};
    closed_ = true;
    return holders_ > 0 ? Status() : below_->close();
  }

 private:
  void let_go() {
    const std::lock_guard lock(mutex_);
    if (--holders_ > 0 || !closed_) return;
    const Status closed = below_->close();
    if (!closed.is_ok()) log(LogLevel::warn, closed.text());
  }

  const std::unique_ptr<storage::File> below_;
  std::mutex mutex_;
  int holders_ = 0;
  bool closed_ = false;
};

}  // namespace tailrace::journal
