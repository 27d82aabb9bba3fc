// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <time.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <mutex>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/storage/forwarding.hpp"

namespace tailrace::storage {

namespace {

using Nanoseconds = std::int64_t;
constexpr double per_second = 1e9;

Nanoseconds now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return Nanoseconds{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Sleeps until an absolute time. So signals do not shorten the sleep, and repeated sleeps do not add up to a
/// longer one.
void sleep_until(Nanoseconds time) {
  const timespec until{static_cast<time_t>(time / 1'000'000'000), static_cast<long>(time % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) continue;
}

/// One disk. It serves bytes one after another, in the order in which they come.
class Disk {
 public:
  explicit Disk(Throttle throttle) : throttle_(throttle) {}
  [[nodiscard]] bool serves_reads() const { return throttle_.reads; }

  /// Books `bytes` and returns the time at which they will have been served. Does not wait.
  Nanoseconds book(Bytes bytes) {
    const auto latency = static_cast<Nanoseconds>(throttle_.latency_seconds * per_second);
    const Nanoseconds arrival = now();
    if (throttle_.bytes_per_second <= 0 || bytes == 0) return arrival + latency;
    const double duration = static_cast<double>(bytes) / throttle_.bytes_per_second * per_second;
    const std::lock_guard guard(mutex_);
    free_at_ = std::max(free_at_, static_cast<double>(arrival - late_)) + duration;
    late_ = 0;
    return static_cast<Nanoseconds>(free_at_) + latency;
  }

  /// Waits until the time `served`. The machine wakes the thread up late, but the disk is not late: the next
  /// booking may begin as if the thread had woken up in time. Otherwise many small writes would fall far
  /// below the stated rate.
  void wait_until(Nanoseconds served) {
    sleep_until(served);
    const Nanoseconds woken = now();
    const std::lock_guard guard(mutex_);
    late_ = std::max(woken - served, Nanoseconds{0});
  }

 private:
  const Throttle throttle_;
  std::mutex mutex_;
  // In nanoseconds. The fraction keeps the time that many small writes would lose by rounding.
  double free_at_ = 0;
  Nanoseconds late_ = 0;
};

/// A write that is over once the disk has served it.
class ThrottledWrite final : public StartedWrite {
 public:
  ThrottledWrite(std::unique_ptr<StartedWrite> below, std::shared_ptr<Disk> disk, Nanoseconds served)
      : below_(std::move(below)), disk_(std::move(disk)), served_(served) {}
  [[nodiscard]] WriteWay way() const override { return below_->way(); }
  Status finish() override {
    TR_TRY(below_->finish());
    if (!std::exchange(is_served_, true)) disk_->wait_until(served_);
    return {};
  }

 private:
  const std::unique_ptr<StartedWrite> below_;
  const std::shared_ptr<Disk> disk_;
  const Nanoseconds served_;
  bool is_served_ = false;
};

class ThrottledFile final : public File {
 public:
  ThrottledFile(std::unique_ptr<File> below, std::shared_ptr<Disk> disk)
      : below_(std::move(below)), disk_(std::move(disk)) {}

  // The write below runs within the booked time: the stated rate includes it.
  Status write_gathered(Parts parts, Bytes offset) override {
    const Nanoseconds served = disk_->book(bytes_in(parts));
    TR_TRY(below_->write_gathered(parts, offset));
    disk_->wait_until(served);
    return {};
  }
  std::unique_ptr<StartedWrite> start_write(Parts parts, Bytes offset, WriteQueue& queue) override {
    const Nanoseconds served = disk_->book(bytes_in(parts));
    return std::make_unique<ThrottledWrite>(below_->start_write(parts, offset, queue), disk_, served);
  }
  Status sync() override {
    const Nanoseconds served = disk_->book(0);
    TR_TRY(below_->sync());
    disk_->wait_until(served);
    return {};
  }
  void begin_write_back() override { below_->begin_write_back(); }
  Bytes next_data(Bytes offset) override { return below_->next_data(offset); }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    if (!disk_->serves_reads()) return below_->read(data, offset);
    const Nanoseconds served = disk_->book(static_cast<Bytes>(data.size()));
    const Result<Bytes> count = below_->read(data, offset);
    if (count.is_ok()) disk_->wait_until(served);
    return count;
  }
  Status reserve(std::span<const Range> ranges) override { return below_->reserve(ranges); }
  void give_back_room() override { below_->give_back_room(); }
  Status truncate(Bytes size) override { return below_->truncate(size); }
  Result<Bytes> size() override { return below_->size(); }
  std::optional<Rights> rights() override { return below_->rights(); }
  Status set_owner(std::optional<unsigned> user, unsigned group) override {
    return below_->set_owner(user, group);
  }
  Status set_permissions(unsigned permissions) override { return below_->set_permissions(permissions); }
  bool is_named(const std::string& path) override { return below_->is_named(path); }
  FileNumber number() override { return below_->number(); }
  [[nodiscard]] int descriptors() const override { return below_->descriptors(); }
  Status close() override { return below_->close(); }

 private:
  const std::unique_ptr<File> below_;
  const std::shared_ptr<Disk> disk_;
};

class ThrottledTarget final : public ForwardingTarget {
 public:
  ThrottledTarget(std::shared_ptr<Target> below, Throttle throttle)
      : ForwardingTarget(std::move(below)), disk_(std::make_shared<Disk>(throttle)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override {
    auto file = below_->open(path, mode, permissions);
    if (!file.is_ok()) return file;
    return std::unique_ptr<File>(std::make_unique<ThrottledFile>(*std::move(file), disk_));
  }
  Status count_write(const std::string& path, Bytes size) override {
    disk_->wait_until(disk_->book(size));
    return below_->count_write(path, size);
  }

 private:
  const std::shared_ptr<Disk> disk_;
};

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array rate_units{Unit{"B/s", 1},           Unit{"kB/s", 1e3},   Unit{"MB/s", 1e6},
                                Unit{"GB/s", 1e9},        Unit{"KiB/s", 1024}, Unit{"MiB/s", 1048576},
                                Unit{"GiB/s", 1073741824}};
constexpr std::array time_units{Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};

template <typename Units>
bool parse_quantity(std::string_view text, const Units& units, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) return false;
  const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    value *= unit.factor;
    return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<Target> throttled_target(std::shared_ptr<Target> below, Throttle throttle) {
  return std::make_shared<ThrottledTarget>(std::move(below), throttle);
}

Result<Throttle> parse_throttle(std::string_view text) {
  constexpr std::string_view reads = ",reads";
  const std::string_view whole = text;
  Throttle throttle;
  throttle.reads = text.ends_with(reads);
  if (throttle.reads) text.remove_suffix(reads.size());
  const std::size_t comma = text.find(',');
  // A rate of 0 would sleep forever. For no throttle, the setting is left out.
  if (parse_quantity(text.substr(0, comma), rate_units, throttle.bytes_per_second) &&
      throttle.bytes_per_second > 0 &&
      (comma == std::string_view::npos ||
       parse_quantity(text.substr(comma + 1), time_units, throttle.latency_seconds))) {
    return throttle;
  }
  return Status(
      Code::settings,
      cat("\"", whole,
          "\" is no throttle: expected a rate and perhaps a latency, as in \"50MB/s\" or "
          "\"50MB/s,2ms\" (B, kB, MB, GB, KiB, MiB, GiB per s; us, ms, s), and \",reads\" behind them "
          "to slow reads, too"));
}

}  // namespace tailrace::storage
