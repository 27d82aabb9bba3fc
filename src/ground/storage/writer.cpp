// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/writer.hpp"

#include <algorithm>
#include <vector>

#include "ground/storage/queue/write_queue.hpp"

namespace tailrace::storage {

namespace {

using PartList = std::vector<std::span<const std::byte>>;

/// Calls `write` for each run of extents that follow one another in the file, until it returns an error.
template <typename Write>
Status for_each_run(std::span<const Extent> extents, Write&& write) {
  PartList parts;
  for (auto extent = extents.begin(); extent != extents.end();) {
    const Bytes begin = extent->offset;
    Bytes end = begin;
    parts.clear();
    for (; extent != extents.end() && extent->offset == end; ++extent) {
      parts.insert(parts.end(), extent->parts.begin(), extent->parts.end());
      end += bytes_in(extent->parts);
    }
    TR_TRY(write(parts, begin));
  }
  return {};
}

class EndedRound final : public Round {
 public:
  explicit EndedRound(Status status) : status_(std::move(status)) {}
  [[nodiscard]] WriteWay way() const override { return WriteWay::calls; }
  Status finish() override { return status_; }

 private:
  const Status status_;
};

class FileWriter final : public Writer {
 public:
  explicit FileWriter(std::unique_ptr<File> file) : file_(std::move(file)) {}

  Status round(std::int64_t /*epoch*/, std::span<const Extent> extents) override {
    return for_each_run(extents,
                        [&](Parts parts, Bytes begin) { return file_->write_gathered(parts, begin); });
  }
  Status sync() override { return file_->sync(); }
  Status close() override { return file_->close(); }

 private:
  std::unique_ptr<File> file_;
};

/// The writes of a round, for its Round and for the writer, whoever comes first.
struct StartedRound {
  std::vector<std::unique_ptr<StartedWrite>> writes;
  WriteWay way = WriteWay::calls;
  Status status;

  Status finish() {
    for (const auto& write : writes) {
      const Status written = guarded([&] { return write->finish(); });
      if (status.is_ok()) status = written;
    }
    writes.clear();  // waits for those whose memory was short
    return status;
  }
};

class OverlappingRound final : public Round {
 public:
  explicit OverlappingRound(std::shared_ptr<StartedRound> started) : started_(std::move(started)) {}
  ~OverlappingRound() override { static_cast<void>(started_->finish()); }
  OverlappingRound(const OverlappingRound&) = delete;
  OverlappingRound& operator=(const OverlappingRound&) = delete;
  [[nodiscard]] WriteWay way() const override { return started_->way; }
  Status finish() override { return started_->finish(); }

 private:
  const std::shared_ptr<StartedRound> started_;
};

class OverlappingWriter final : public Writer {
 public:
  OverlappingWriter(std::unique_ptr<File> file, std::unique_ptr<WriteQueue> queue)
      : queue_(std::move(queue)), file_(std::move(file)) {}
  ~OverlappingWriter() override { wait_for_all(); }
  OverlappingWriter(const OverlappingWriter&) = delete;
  OverlappingWriter& operator=(const OverlappingWriter&) = delete;

  Status round(std::int64_t epoch, std::span<const Extent> extents) override {
    return begin(epoch, extents)->finish();
  }
  std::unique_ptr<Round> begin(std::int64_t epoch, std::span<const Extent> extents) override;
  Status sync() override {
    wait_for_all();
    queue_->rest();  // many files may be open, and each ring has a descriptor
    return file_->sync();
  }
  Status close() override {
    wait_for_all();
    return file_->close();
  }

 private:
  /// Each round tells its own outcome.
  void wait_for_all() {
    for (const std::weak_ptr<StartedRound>& each : rounds_) {
      if (const std::shared_ptr<StartedRound> round = each.lock()) static_cast<void>(round->finish());
    }
    rounds_.clear();
  }

  const std::unique_ptr<WriteQueue> queue_;
  const std::unique_ptr<File> file_;
  std::vector<std::weak_ptr<StartedRound>> rounds_;
};

std::unique_ptr<Round> OverlappingWriter::begin(std::int64_t /*epoch*/, std::span<const Extent> extents) {
  auto started = std::make_shared<StartedRound>();
  auto round = std::make_unique<OverlappingRound>(started);
  std::erase_if(rounds_, [](const auto& each) { return each.expired(); });
  rounds_.push_back(started);
  static_cast<void>(for_each_run(extents, [&](Parts parts, Bytes begin) -> Status {
    started->writes.reserve(started->writes.size() + 1);
    started->writes.push_back(file_->start_write(parts, begin, *queue_));
    started->way = std::max(started->way, started->writes.back()->way());
    return {};
  }));
  return round;
}

}  // namespace

std::unique_ptr<Round> Writer::begin(std::int64_t epoch, std::span<const Extent> extents) {
  return std::make_unique<EndedRound>(round(epoch, extents));
}

std::unique_ptr<Writer> overlapping_writer(std::unique_ptr<File> file, std::unique_ptr<WriteQueue> queue) {
  return std::make_unique<OverlappingWriter>(std::move(file), std::move(queue));
}

Result<std::unique_ptr<Writer>> open_overlapping_writer(Target& target, const std::string& path) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  return overlapping_writer(*std::move(file), write_queue());
}

std::unique_ptr<Writer> file_writer(std::unique_ptr<File> file) {
  return std::make_unique<FileWriter>(std::move(file));
}

Result<std::unique_ptr<Writer>> open_file_writer(Target& target, const std::string& path) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  return file_writer(*std::move(file));
}

}  // namespace tailrace::storage
