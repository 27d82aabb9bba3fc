// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "ground/storage/target.hpp"

// The fault model: what FaultyTarget does to the target below it. (Tests have another target for a loss of
// power.)
//
//  - Calls are counted from 1 in the order in which they arrive, over all files of the target. Only calls
//    whose kind is in FaultPlan::calls count.
//  - A call fails before it has any effect, with three exceptions. A write that fails leaves the first half
//    of its bytes in the file. A sync that fails makes nothing durable and stays failed for that file,
//    whatever the plan says later. A close that fails has closed the file all the same.
//  - `interrupted` and `short_write` happen to system calls, and a target must hide them. The wrapper makes
//    the call in steps, each of which counts, and the caller sees success. `short_write` concerns writes
//    only. If these faults strike for good, every second step is interrupted, and every write is halved
//    until one byte is left: so calls come to an end.
//  - Not modelled: a rename or removal that fails although it took place; bytes that change by themselves.

namespace tailrace::storage {

enum class Call : std::uint32_t {
  open = 1,
  write = 2,
  sync = 4,
  truncate = 8,
  close = 16,
  rename = 32,
  remove = 64,
  sync_directory = 128,
  make_directories = 256,
  read = 512,
  size = 1024,
  exists = 2048,
  list = 4096,
  space = 8192,
  lock = 16384,
};
using CallSet = std::uint32_t;
constexpr CallSet set_of(Call call) { return static_cast<CallSet>(call); }
template <typename... More>
constexpr CallSet set_of(Call call, More... more) {
  return static_cast<CallSet>(call) | set_of(more...);
}

/// The calls that change storage. A plan counts these unless it names others.
inline constexpr CallSet changing_calls = 511;
inline constexpr CallSet all_calls = 32767;

enum class Fault {
  io_error /* EIO */,
  no_space /* ENOSPC */,
  quota /* EDQUOT */,
  interrupted,
  short_write,
  stopped /* EIO for good: the process is gone, and a write leaves nothing */
};

/// Returns the errno of a fault, or 0 for short_write.
int error_number_of(Fault fault);

struct FaultPlan {
  std::int64_t nth = 0;  // number of the counted call that fails; 0: none
  Fault fault = Fault::io_error;
  CallSet calls = changing_calls;
  bool for_good = false;  // all later calls fail, too
};

/// Counts calls and decides which of them fail. Thread-safe.
class FaultClock {
 public:
  explicit FaultClock(FaultPlan plan) : plan_(plan) {}
  /// Counts one call. Returns true if the call has to fail.
  bool strikes(Call call);
  [[nodiscard]] FaultPlan plan() const;
  /// Sets another plan and counts from 1 again. Calls that failed for good work again.
  void restart(FaultPlan plan);
  /// fired() is true if any call has failed since the plan was set. calls() returns how many calls were
  /// counted since then.
  [[nodiscard]] bool fired() const;
  [[nodiscard]] std::int64_t calls() const;
  /// Returns the last call that has failed since the plan was set.
  [[nodiscard]] std::optional<Call> struck() const;

 private:
  mutable std::mutex mutex_;
  FaultPlan plan_;
  std::int64_t calls_ = 0;
  bool fired_ = false;
  std::optional<Call> struck_;
};

class FaultyTarget final : public Target {
 public:
  FaultyTarget(std::shared_ptr<Target> below, FaultPlan plan);

  [[nodiscard]] bool fired() const { return clock_->fired(); }
  [[nodiscard]] std::int64_t calls() const { return clock_->calls(); }
  [[nodiscard]] std::optional<Call> struck() const { return clock_->struck(); }
  void restart(FaultPlan plan) { clock_->restart(plan); }

  using Target::open;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<Kind> kind_of(const std::string& path) override { return below_->kind_of(path); }
  Result<Identity> identity_of(const std::string& path) override { return below_->identity_of(path); }
  std::string behind_links(const std::string& path) override { return below_->behind_links(path); }
  Result<bool> is_link(const std::string& path) override { return below_->is_link(path); }
  std::optional<std::string> system_name(const std::string& path) override {
    return below_->system_name(path);
  }
  Status count_write(const std::string& path, Bytes size) override;
  Status make_directories(const std::string& path) override;
  Status sync_directory_of(const std::string& path) override;
  Result<Space> space(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<std::shared_ptr<void>> lock(const std::string& path) override;
  Result<std::shared_ptr<void>> share_lock(const std::string& path, std::shared_ptr<void> own) override;

 private:
  const std::shared_ptr<Target> below_;
  const std::shared_ptr<FaultClock> clock_;
};

std::shared_ptr<FaultyTarget> faulty_target(std::shared_ptr<Target> below, FaultPlan plan);

/// Reads a plan such as "nth=3" or "nth=3 fault=enospc calls=write,sync for=good". Faults: eio, enospc,
/// edquot, eintr, short. Calls: the names of Call, or "all" or "changing". Any other word gives
/// Code::settings with the nearest name.
Result<FaultPlan> parse_fault(std::string_view text);

}  // namespace tailrace::storage
