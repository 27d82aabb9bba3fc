// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/sim/disk.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "ground/storage/forwarding.hpp"

namespace tailrace::sim {

namespace {

/// A write that the disk makes at the last moment: whoever relies on it earlier, or frees its bytes, is
/// found.
class LateWrite final : public storage::StartedWrite {
 public:
  LateWrite(storage::File& below, storage::Parts parts, Bytes offset)
      : below_(below), parts_(parts.begin(), parts.end()), offset_(offset) {}
  ~LateWrite() override { static_cast<void>(finish()); }
  LateWrite(const LateWrite&) = delete;
  LateWrite& operator=(const LateWrite&) = delete;
  Status finish() override {
    if (!std::exchange(is_over_, true)) status_ = below_.write_gathered(parts_, offset_);
    return status_;
  }

 private:
  storage::File& below_;
  const std::vector<std::span<const std::byte>> parts_;
  const Bytes offset_;
  bool is_over_ = false;
  Status status_;
};

class DiskFile final : public storage::File {
 public:
  DiskFile(std::unique_ptr<File> below, std::shared_ptr<Disk> disk, int process, std::string path)
      : below_(std::move(below)), disk_(std::move(disk)), process_(process), path_(std::move(path)) {}
  Status write_gathered(storage::Parts parts, Bytes offset) override {
    Bytes total = 0;
    for (const auto& part : parts) total += static_cast<Bytes>(part.size());
    disk_->charge_write(process_, path_, total);
    return below_->write_gathered(parts, offset);
  }
  std::unique_ptr<storage::StartedWrite> start_write(storage::Parts parts, Bytes offset,
                                                     storage::WriteQueue& /*queue*/) override {
    return std::make_unique<LateWrite>(*this, parts, offset);
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override { return below_->read(data, offset); }
  Status sync() override {
    disk_->charge_sync(process_);
    return below_->sync();
  }
  Status truncate(Bytes size) override {
    disk_->charge_call(process_);
    return below_->truncate(size);
  }
  Result<Bytes> size() override { return below_->size(); }
  std::optional<storage::Rights> rights() override { return below_->rights(); }
  Status set_owner(std::optional<unsigned> user, unsigned group) override {
    return below_->set_owner(user, group);
  }
  Status set_permissions(unsigned permissions) override { return below_->set_permissions(permissions); }
  bool is_named(const std::string& path) override { return below_->is_named(path); }
  storage::FileNumber number() override { return below_->number(); }
  [[nodiscard]] int descriptors() const override { return below_->descriptors(); }
  Status close() override { return below_->close(); }

 private:
  const std::unique_ptr<File> below_;
  const std::shared_ptr<Disk> disk_;
  const int process_;
  const std::string path_;
};

class DiskTarget final : public storage::ForwardingTarget {
 public:
  DiskTarget(std::shared_ptr<Target> below, std::shared_ptr<Disk> disk, int process)
      : ForwardingTarget(std::move(below)), disk_(std::move(disk)), process_(process) {}
  Result<std::unique_ptr<storage::File>> open(const std::string& path, storage::OpenMode mode,
                                              unsigned permissions) override {
    Result<std::unique_ptr<storage::File>> file = below_->open(path, mode, permissions);
    TR_TRY(file.status());
    disk_->charge_call(process_);
    return std::unique_ptr<storage::File>(
        std::make_unique<DiskFile>(std::move(*file), disk_, process_, path));
  }
  Status sync_directory_of(const std::string& path) override {
    disk_->charge_sync(process_);
    return below_->sync_directory_of(path);
  }

 private:
  const std::shared_ptr<Disk> disk_;
  const int process_;
};

}  // namespace

Nanoseconds Disk::latency(Nanoseconds stated) {
  return costs_.is_random ? scheduler_.random(0, stated) : stated;
}

void Disk::spend_until(Nanoseconds end, BusyTime& on) {
  on.add(scheduler_.now() + spent_, end);
  spent_ = end - scheduler_.now();
}

void Disk::charge_write(int process, const std::string& path, Bytes bytes) {
  const Bytes full = path == costs_.of_file ? costs_.in_full(bytes) : bytes;
  const auto number = static_cast<std::size_t>(process);
  const Nanoseconds begin = scheduler_.now() + spent_;
  Nanoseconds& own = free_at_[number];
  own = std::max(own, begin) + time_for(full, costs_.process_bytes_per_second);
  const Nanoseconds pass = time_for(full, costs_.storage_bytes_per_second);
  // A later write of a job leaves the disk to others until it begins.
  storage_free_at_ = std::max(storage_free_at_, scheduler_.now()) + pass;
  const double equal_part = static_cast<double>(pass) * writers();
  const Nanoseconds all = std::min(storage_free_at_, begin + static_cast<Nanoseconds>(equal_part));
  const Nanoseconds end = std::max(own, all);
  ends_.push(end);
  spend_until(end + latency(costs_.call_latency), accounts_[number].writing);
}

/// Returns the number of writes that are under way, with the one that begins.
double Disk::writers() {
  while (!ends_.empty() && ends_.top() <= scheduler_.now()) ends_.pop();
  return static_cast<double>(ends_.size() + 1);
}

void Disk::charge_call(int process) {
  spend_until(scheduler_.now() + spent_ + latency(costs_.call_latency),
              accounts_[static_cast<std::size_t>(process)].writing);
}

void Disk::charge_sync(int process) {
  spend_until(scheduler_.now() + spent_ + latency(costs_.sync_latency),
              accounts_[static_cast<std::size_t>(process)].syncing);
}

void Disk::charge_encoding(Bytes values) {
  spend_until(scheduler_.now() + spent_ + time_for(costs_.in_full(values), costs_.encoded_bytes_per_second),
              accounts_[static_cast<std::size_t>(running_)].encoding);
}

std::shared_ptr<storage::Target> on_disk(std::shared_ptr<storage::Target> below, std::shared_ptr<Disk> disk,
                                         int process) {
  return std::make_shared<DiskTarget>(std::move(below), std::move(disk), process);
}

void SimThreads::compute(Job job, Done done) {
  computing_.emplace_back(std::move(job), std::move(done));
  begin_computing();
}

void SimThreads::begin_computing() {
  for (std::size_t worker = 0; worker < idle_.size() && !computing_.empty(); ++worker) {
    if (std::exchange(idle_[worker], char{0}) == 0) continue;
    auto job = std::move(computing_.front());
    computing_.pop_front();
    begin(static_cast<int>(worker), std::move(job), [this, worker] {
      idle_[worker] = 1;
      begin_computing();
    });
  }
}

void SimThreads::wait(executor::Key key, Job job, Done done) {
  Queue& queue = waiting_[key];
  queue.emplace_back(std::move(job), std::move(done));
  most_waiting_ = std::max(most_waiting_, static_cast<int>(waiting_.size()));
  if (queue.size() == 1) begin_waiting(key);
}

void SimThreads::begin_waiting(executor::Key key) {
  begin(count(), std::move(waiting_.at(key).front()), [this, key] {
    const auto queue = waiting_.find(key);
    queue->second.pop_front();
    if (queue->second.empty())
      waiting_.erase(queue);
    else
      begin_waiting(key);
  });
}

void SimThreads::begin(int worker, std::pair<Job, Done> job, std::function<void()> next) {
  const auto mine = std::make_shared<std::pair<Job, Done>>(std::move(job));
  after(scheduler_.step_delay(), [this, worker, mine, next = std::move(next)] {
    if (disk_ != nullptr) disk_->enter(process_);
    auto status = std::make_shared<Status>(guarded([&]() -> Status { return mine->first(worker); }));
    mine->first = nullptr;  // frees the job's captures before its end is told
    const Nanoseconds spent = disk_ != nullptr ? disk_->take_spent() : 0;
    after(spent + scheduler_.step_delay(), [this, mine, status, next] {
      finished_.emplace_back(std::move(mine->second), *status);
      next();
      wake_();
    });
  });
}

void SimThreads::after(Nanoseconds delay, std::function<void()> event) {
  scheduler_.after(delay, [is_there = is_there_, event = std::move(event)] {
    if (*is_there) event();
  });
}

bool SimThreads::poll() {
  const auto finished = std::exchange(finished_, {});
  for (const auto& [done, status] : finished) done(status);
  return !finished.empty();
}

}  // namespace tailrace::sim
