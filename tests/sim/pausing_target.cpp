// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pausing_target.hpp"

#include "ground/storage/forwarding.hpp"

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
  void begin_write_back() override { below_->begin_write_back(); }
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

class PausingTarget final : public storage::ForwardingTarget {
 public:
  PausingTarget(std::shared_ptr<Target> below, Pauses pauses)
      : ForwardingTarget(std::move(below)), pauses_(pauses) {}
  Result<std::unique_ptr<storage::File>> open(const std::string& path, storage::OpenMode mode,
                                              unsigned permissions) override {
    Result<std::unique_ptr<storage::File>> file = below_->open(path, mode, permissions);
    TR_TRY(file.status());
    return std::unique_ptr<storage::File>(std::make_unique<PausingFile>(std::move(*file), pauses_));
  }

 private:
  const Pauses pauses_;
};

}  // namespace

std::shared_ptr<storage::Target> pausing_target(std::shared_ptr<storage::Target> below, FibreRank& rank,
                                                Scheduler& dice) {
  return std::make_shared<PausingTarget>(std::move(below), Pauses{rank, dice});
}

}  // namespace tailrace::sim
