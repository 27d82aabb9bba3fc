// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pausing_target.hpp"

#include <utility>

namespace tailrace::sim {

namespace {

struct Pauses {
  FibreRank& rank;
  Scheduler& dice;
  void take() const {
    if (!dice.once_in(3)) rank.stall(dice.random(1, dice.once_in(20) ? 1'000'000 : 20'000));
  }
};

class PausingFile final : public storage::File {
 public:
  PausingFile(std::unique_ptr<File> below, Pauses pauses) : below_(std::move(below)), pauses_(pauses) {}
  Status write_gathered(storage::Parts parts, Bytes offset) override {
    pauses_.take();
    return below_->write_gathered(parts, offset);
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    Result<Bytes> got = below_->read(data, offset);
    pauses_.take();
    return got;
  }
  Status sync() override {
    pauses_.take();
    return below_->sync();
  }
  Status truncate(Bytes size) override {
    pauses_.take();
    return below_->truncate(size);
  }
  Result<Bytes> size() override { return below_->size(); }
  Status close() override { return below_->close(); }

 private:
  const std::unique_ptr<File> below_;
  const Pauses pauses_;
};

class PausingTarget final : public storage::Target {
 public:
  PausingTarget(std::shared_ptr<Target> below, Pauses pauses) : below_(std::move(below)), pauses_(pauses) {}
  Result<std::unique_ptr<storage::File>> open(const std::string& path, storage::OpenMode mode,
                                              unsigned permissions) override {
    Result<std::unique_ptr<storage::File>> file = below_->open(path, mode, permissions);
    TR_TRY(file.status());
    return std::unique_ptr<storage::File>(std::make_unique<PausingFile>(std::move(*file), pauses_));
  }
  Status rename(const std::string& from, const std::string& to) override { return below_->rename(from, to); }
  Status remove(const std::string& path) override { return below_->remove(path); }
  Status remove_directory(const std::string& path) override { return below_->remove_directory(path); }
  Result<bool> exists(const std::string& path) override { return below_->exists(path); }
  Status make_directories(const std::string& path) override { return below_->make_directories(path); }
  Status sync_directory_of(const std::string& path) override { return below_->sync_directory_of(path); }
  Result<storage::Space> space(const std::string& path) override { return below_->space(path); }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return below_->list(directory);
  }
  Result<std::shared_ptr<void>> lock(const std::string& path) override { return below_->lock(path); }
  Result<std::shared_ptr<void>> share_lock(const std::string& path, std::shared_ptr<void> own) override {
    return below_->share_lock(path, std::move(own));
  }

 private:
  const std::shared_ptr<Target> below_;
  const Pauses pauses_;
};

}  // namespace

std::shared_ptr<storage::Target> pausing_target(std::shared_ptr<storage::Target> below, FibreRank& rank,
                                                Scheduler& dice) {
  return std::make_shared<PausingTarget>(std::move(below), Pauses{rank, dice});
}

}  // namespace tailrace::sim
