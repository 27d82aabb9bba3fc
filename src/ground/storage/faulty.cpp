// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/faulty.hpp"

#include <cerrno>

#include "ground/base/text.hpp"

namespace tailrace::storage {

namespace {

/// Makes one call of `kind`: counts it in `clock`, and fails it as planned or lets `below` do it. Repeats an
/// interrupted call, as a target must, so that only the count shows the interruption.
template <typename Below>
auto play(FaultClock& clock, Call kind, std::string_view operation, std::string_view path, Below&& below)
    -> decltype(below()) {
  while (clock.strikes(kind)) {
    const Fault fault = clock.plan().fault;
    if (fault != Fault::interrupted) return io_error(operation, path, error_number_of(fault));
  }
  return below();
}

/// As play(), for a call that takes part in a write and writes nothing itself. It cannot be short.
template <typename Body>
Status play_part_of_write(FaultClock& clock, std::string_view call, const std::string& path, Body below) {
  if (clock.plan().fault == Fault::short_write) return below();
  return play(clock, Call::write, call, path, below);
}

using PartList = std::vector<std::span<const std::byte>>;

/// Removes the first `count` bytes from `parts` and returns them.
PartList take_first(PartList& parts, Bytes count) {
  PartList taken, rest;
  for (const auto& part : parts) {
    const auto step = std::min(part.size(), static_cast<std::size_t>(count));
    if (step > 0) taken.push_back(part.first(step));
    if (step < part.size()) rest.push_back(part.subspan(step));
    count -= static_cast<Bytes>(step);
  }
  parts = std::move(rest);
  return taken;
}

class FaultyFile final : public File {
 public:
  FaultyFile(std::unique_ptr<File> below, std::string path, std::shared_ptr<FaultClock> clock)
      : below_(std::move(below)), path_(std::move(path)), clock_(std::move(clock)) {}

  Status write_gathered(Parts parts, Bytes offset) override {
    return play_write(parts, offset, [&](Parts rest, Bytes at) { return below_->write_gathered(rest, at); });
  }

  /// The write is counted, and fails, as it begins. The caller hears of it when it is over.
  std::unique_ptr<StartedWrite> start_write(Parts parts, Bytes offset, WriteQueue& queue) override {
    std::unique_ptr<StartedWrite> started;
    Status status = play_write(parts, offset, [&](Parts rest, Bytes at) -> Status {
      started = below_->start_write(rest, at, queue);
      return {};
    });
    return started ? std::move(started) : ended_write(std::move(status));
  }

  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    return play(*clock_, Call::read, cat("read of ", data.size(), " bytes at offset ", offset, " of"), path_,
                [&] { return below_->read(data, offset); });
  }

  Bytes next_data(Bytes offset) override { return below_->next_data(offset); }
  void begin_write_back() override { below_->begin_write_back(); }

  Status sync() override {
    const std::lock_guard guard(mutex_);
    if (!sync_failure_.is_ok()) return sync_failure_;
    bool reached = false;
    const Status status = play(*clock_, Call::sync, "fsync", path_, [&] {
      reached = true;
      return below_->sync();
    });
    // Remembers only planned failures. The file below remembers its own, and a sync of a closed file is no
    // failed sync.
    if (!reached) sync_failure_ = status;
    return status;
  }

  Status reserve(std::span<const Range> ranges) override {
    return play_part_of_write(*clock_, "room for a write of", path_, [&] { return below_->reserve(ranges); });
  }

  void give_back_room() override { below_->give_back_room(); }

  Status truncate(Bytes size) override {
    return play(*clock_, Call::truncate, cat("truncate to ", size, " bytes of"), path_,
                [&] { return below_->truncate(size); });
  }

  Result<Bytes> size() override {
    return play(*clock_, Call::size, "size of", path_, [&] { return below_->size(); });
  }

  std::optional<Rights> rights() override { return below_->rights(); }
  Status set_owner(std::optional<unsigned> user, unsigned group) override {
    return below_->set_owner(user, group);
  }
  Status set_permissions(unsigned permissions) override { return below_->set_permissions(permissions); }
  bool is_named(const std::string& path) override { return below_->is_named(path); }
  FileNumber number() override { return below_->number(); }
  [[nodiscard]] int descriptors() const override { return below_->descriptors(); }

  Status close() override {
    const Status closed = below_->close();
    TR_TRY(closed);
    return play(*clock_, Call::close, "close", path_, [] { return Status(); });
  }

 private:
  /// Makes a write, whose last or only part `last` makes.
  template <typename Last>
  Status play_write(Parts parts, Bytes offset, Last&& last) {
    PartList rest(parts.begin(), parts.end());
    for (;;) {
      if (!clock_->strikes(Call::write)) return last(rest, offset);
      const Fault fault = clock_->plan().fault;
      if (fault == Fault::interrupted) continue;
      if (fault == Fault::stopped) return io_error("write", path_, error_number_of(fault));
      const Bytes size = bytes_in(rest), half = fault == Fault::short_write ? (size + 1) / 2 : size / 2;
      TR_TRY(below_->write_gathered(take_first(rest, half), offset));
      if (fault != Fault::short_write) {
        return io_error(cat("write of ", size, " bytes at offset ", offset, " of"), path_,
                        error_number_of(fault));
      }
      if (rest.empty()) return {};
      offset += half;
    }
  }

  const std::unique_ptr<File> below_;
  const std::string path_;
  const std::shared_ptr<FaultClock> clock_;
  std::mutex mutex_;
  Status sync_failure_;
};

}  // namespace

int error_number_of(Fault fault) {
  constexpr int numbers[] = {EIO, ENOSPC, EDQUOT, EINTR, 0, EIO};  // in the order of Fault
  return numbers[static_cast<std::size_t>(fault)];
}

bool FaultClock::strikes(Call call) {
  const std::lock_guard guard(mutex_);
  if ((plan_.calls & set_of(call)) == 0) return false;
  if (plan_.fault == Fault::short_write && call != Call::write) return false;
  ++calls_;
  if (plan_.nth <= 0 || calls_ < plan_.nth) return false;
  const std::int64_t late = calls_ - plan_.nth;
  if (late > 0 && !plan_.for_good) return false;
  // Every second call succeeds: a call that is always interrupted would be repeated forever.
  if (plan_.fault == Fault::interrupted && late % 2 == 1) return false;
  struck_ = call;
  return fired_ = true;
}

FaultPlan FaultClock::plan() const {
  const std::lock_guard guard(mutex_);
  return plan_;
}

void FaultClock::restart(FaultPlan plan) {
  const std::lock_guard guard(mutex_);
  plan_ = plan;
  calls_ = 0;
  fired_ = false;
  struck_.reset();
}

std::optional<Call> FaultClock::struck() const {
  const std::lock_guard guard(mutex_);
  return struck_;
}

bool FaultClock::fired() const {
  const std::lock_guard guard(mutex_);
  return fired_;
}

std::int64_t FaultClock::calls() const {
  const std::lock_guard guard(mutex_);
  return calls_;
}

FaultyTarget::FaultyTarget(std::shared_ptr<Target> below, FaultPlan plan)
    : below_(std::move(below)), clock_(std::make_shared<FaultClock>(plan)) {}

Result<std::unique_ptr<File>> FaultyTarget::open(const std::string& path, OpenMode mode,
                                                 unsigned permissions) {
  const char* verb = empties(mode) ? "create" : "open";
  auto file = play(*clock_, Call::open, verb, path, [&] { return below_->open(path, mode, permissions); });
  if (!file.is_ok()) return file;
  return std::unique_ptr<File>(std::make_unique<FaultyFile>(*std::move(file), path, clock_));
}

Status FaultyTarget::rename(const std::string& from, const std::string& to) {
  return play(*clock_, Call::rename, "rename", cat(from, " to ", to),
              [&] { return below_->rename(from, to); });
}

Status FaultyTarget::remove(const std::string& path) {
  return play(*clock_, Call::remove, "remove", path, [&] { return below_->remove(path); });
}

Status FaultyTarget::remove_directory(const std::string& path) {
  return play(*clock_, Call::remove, "remove directory", path,
              [&] { return below_->remove_directory(path); });
}

Result<bool> FaultyTarget::exists(const std::string& path) {
  return play(*clock_, Call::exists, "look up", path, [&] { return below_->exists(path); });
}

Status FaultyTarget::count_write(const std::string& path, Bytes size) {
  return play_part_of_write(*clock_, cat("write of ", size, " bytes of"), path,
                            [&] { return below_->count_write(path, size); });
}

Status FaultyTarget::make_directories(const std::string& path) {
  return play(*clock_, Call::make_directories, "make directory", path,
              [&] { return below_->make_directories(path); });
}

Status FaultyTarget::sync_directory_of(const std::string& path) {
  return play(*clock_, Call::sync_directory, "fsync directory of", path,
              [&] { return below_->sync_directory_of(path); });
}

Result<Space> FaultyTarget::space(const std::string& path) {
  return play(*clock_, Call::space, "space of", path, [&] { return below_->space(path); });
}

Result<std::vector<std::string>> FaultyTarget::list(const std::string& directory) {
  return play(*clock_, Call::list, "list", directory, [&] { return below_->list(directory); });
}

Result<std::shared_ptr<void>> FaultyTarget::lock(const std::string& path) {
  return play(*clock_, Call::lock, "lock", path, [&] { return below_->lock(path); });
}

Result<std::shared_ptr<void>> FaultyTarget::share_lock(const std::string& path, std::shared_ptr<void> own) {
  return play(*clock_, Call::lock, "share lock", path,
              [&] { return below_->share_lock(path, std::move(own)); });
}

std::shared_ptr<FaultyTarget> faulty_target(std::shared_ptr<Target> below, FaultPlan plan) {
  return std::make_shared<FaultyTarget>(std::move(below), plan);
}

}  // namespace tailrace::storage
