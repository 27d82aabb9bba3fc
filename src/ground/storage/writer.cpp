// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/writer.hpp"

#include <vector>

namespace tailrace::storage {

namespace {

class FileWriter final : public Writer {
 public:
  explicit FileWriter(std::unique_ptr<File> file) : file_(std::move(file)) {}

  Status round(std::int64_t /*epoch*/, std::span<const Extent> extents) override {
    std::vector<std::span<const std::byte>> parts;
    for (auto extent = extents.begin(); extent != extents.end();) {
      const Bytes begin = extent->offset;
      Bytes end = begin;
      parts.clear();
      for (; extent != extents.end() && extent->offset == end; ++extent) {
        parts.insert(parts.end(), extent->parts.begin(), extent->parts.end());
        end += bytes_in(extent->parts);
      }
      TR_TRY(file_->write_gathered(parts, begin));
    }
    return {};
  }
  Status sync() override { return file_->sync(); }
  Status close() override { return file_->close(); }

 private:
  std::unique_ptr<File> file_;
};

}  // namespace

std::unique_ptr<Writer> file_writer(std::unique_ptr<File> file) {
  return std::make_unique<FileWriter>(std::move(file));
}

Result<std::unique_ptr<Writer>> open_file_writer(Target& target, const std::string& path) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  return file_writer(*std::move(file));
}

}  // namespace tailrace::storage
