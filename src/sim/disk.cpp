// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "sim/disk.hpp"

#include <algorithm>

namespace tailrace::sim {

namespace {

class DiskFile final : public storage::File {
 public:
  DiskFile(std::unique_ptr<File> below, std::shared_ptr<Disk> disk)
      : below_(std::move(below)), disk_(std::move(disk)) {}
  Status write_gathered(storage::Parts parts, Bytes offset) override {
    Bytes total = 0;
    for (const auto& part : parts) total += static_cast<Bytes>(part.size());
    disk_->charge(total);
    return below_->write_gathered(parts, offset);
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override { return below_->read(data, offset); }
  Status sync() override {
    disk_->charge(0);
    return below_->sync();
  }
  Status truncate(Bytes size) override {
    disk_->charge(0);
    return below_->truncate(size);
  }
  Result<Bytes> size() override { return below_->size(); }
  Status close() override { return below_->close(); }

 private:
  const std::unique_ptr<File> below_;
  const std::shared_ptr<Disk> disk_;
};

class DiskTarget final : public storage::Target {
 public:
  DiskTarget(std::shared_ptr<Target> below, std::shared_ptr<Disk> disk)
      : below_(std::move(below)), disk_(std::move(disk)) {}
  Result<std::unique_ptr<storage::File>> open(const std::string& path, storage::OpenMode mode) override {
    Result<std::unique_ptr<storage::File>> file = below_->open(path, mode);
    TR_TRY(file.status());
    return std::unique_ptr<storage::File>(std::make_unique<DiskFile>(std::move(*file), disk_));
  }
  Status rename(const std::string& from, const std::string& to) override { return below_->rename(from, to); }
  Status remove(const std::string& path) override { return below_->remove(path); }
  Result<bool> exists(const std::string& path) override { return below_->exists(path); }
  Status make_directories(const std::string& path) override { return below_->make_directories(path); }
  Status sync_directory_of(const std::string& path) override {
    disk_->charge(0);
    return below_->sync_directory_of(path);
  }
  Result<storage::Space> space(const std::string& path) override { return below_->space(path); }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return below_->list(directory);
  }
  Result<std::shared_ptr<void>> lock(const std::string& path) override { return below_->lock(path); }

 private:
  const std::shared_ptr<Target> below_;
  const std::shared_ptr<Disk> disk_;
};

}  // namespace

void Disk::charge(Bytes bytes) {
  const auto transfer = static_cast<Nanoseconds>(static_cast<double>(bytes) / bytes_per_second_ * 1e9);
  free_at_ = std::max(free_at_, scheduler_.now() + spent_) + transfer;
  spent_ = free_at_ - scheduler_.now() + scheduler_.random(0, latency_);
}

Nanoseconds Disk::take_spent() { return std::exchange(spent_, 0); }

std::shared_ptr<storage::Target> on_disk(std::shared_ptr<storage::Target> below, std::shared_ptr<Disk> disk) {
  return std::make_shared<DiskTarget>(std::move(below), std::move(disk));
}

// ---- workers
// -------------------------------------------------------------------------------------------------------------------

SimWorkers::SimWorkers(Scheduler& scheduler, int count, std::shared_ptr<Disk> disk,
                       std::function<void()> wake)
    : scheduler_(scheduler),
      disk_(std::move(disk)),
      wake_(std::move(wake)),
      idle_(static_cast<std::size_t>(count) + 1, char{1}) {}

void SimWorkers::submit(Task task, Done done) {
  queue_.emplace_back(std::move(task), std::move(done));
  ++pending_;
  begin();
}

void SimWorkers::submit_io(Task task, Done done) {
  storage_queue_.emplace_back(std::move(task), std::move(done));
  ++pending_;
  begin();
}

void SimWorkers::begin() {
  const std::size_t computing = idle_.size() - 1;
  for (std::size_t worker = 0; worker < computing; ++worker) {
    if (!begin(queue_, worker)) break;
  }
  begin(storage_queue_, computing);
}

bool SimWorkers::begin(Queue& queue, std::size_t worker) {
  if (queue.empty()) return false;
  if (idle_[worker] == 0) return true;
  idle_[worker] = 0;
  auto job = std::make_shared<std::pair<Task, Done>>(std::move(queue.front()));
  queue.pop_front();
  scheduler_.after(scheduler_.step_delay(), [this, worker, job] { run(static_cast<int>(worker), job); });
  return true;
}

void SimWorkers::run(int worker, const std::shared_ptr<std::pair<Task, Done>>& job) {
  auto status = std::make_shared<Status>(guarded([&]() -> Status { return job->first(worker); }));
  job->first = nullptr;  // what it captured is freed before anybody hears that it is done
  scheduler_.after(disk_->take_spent() + scheduler_.step_delay(), [this, worker, job, status] {
    finished_.emplace_back(std::move(job->second), *status);
    idle_[static_cast<std::size_t>(worker)] = 1;
    begin();
    wake_();
  });
}

bool SimWorkers::poll() {
  if (finished_.empty()) return false;
  auto finished = std::move(finished_);
  finished_.clear();
  for (auto& [done, status] : finished) {
    --pending_;
    done(std::move(status));
  }
  return true;
}

}  // namespace tailrace::sim
