// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/part.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "ground/base/checksum.hpp"

namespace tailrace::checkpoint {

// This status has the highest cause of all. If one rank gives a save up and another rank has failed, the
// failure is the verdict, because its cause is lower.
Status given_up() {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  return Status(Code::state, "the save was given up for a newer one", ECANCELED).at({last, -1, -1});
}

bool is_given_up(const Status& status) {
  return status.code() == Code::state && status.error_number() == ECANCELED;
}

namespace {

/// A write of this size is large enough for storage, and small enough to stay in a cache between gathering,
/// checksum and write.
constexpr Bytes write_bytes = Bytes{4} << 20;
/// Each time so many bytes are written, storage is asked to begin to write them, so that the fsync at the end
/// finds less to do.
constexpr Bytes write_back_bytes = Bytes{32} << 20;

/// Writes blocks to a file; writes blocks that lie side by side at once. The bytes come from an image of the
/// whole part, or the caller puts them into a buffer of `write_bytes`.
class Writer {
 public:
  /// `most`: all bytes that will be written.
  Writer(storage::File& file, Bytes at, const std::byte* image, Bytes most,
         const std::atomic<bool>& cancelled)
      : file_(file), at_(at), image_(image), cancelled_(cancelled) {
    if (image_ == nullptr) buffer_.resize(static_cast<std::size_t>(std::min(most, write_bytes)));
  }

  /// Adds the block at `offset` to the next write, and returns its memory. Without an image, the caller fills
  /// this memory.
  Result<std::byte*> place(Bytes offset, Bytes bytes) {
    if (begin_ != end_ && (offset + bytes - begin_ > write_bytes || offset - end_ >= item_alignment))
      TR_TRY(flush());
    if (begin_ == end_) begin_ = end_ = offset;
    const Bytes before = end_ - begin_;
    end_ = offset + bytes;
    if (image_ != nullptr) return const_cast<std::byte*>(image_) + offset;
    std::memset(buffer_.data() + before, 0, static_cast<std::size_t>(offset - begin_ - before));
    return buffer_.data() + (offset - begin_);
  }
  /// Drops the block that was placed last, which the caller writes in another form.
  void drop(Bytes bytes) { end_ -= bytes; }
  /// Writes `bytes`, the other form of a dropped block, to `offset`.
  Status write(std::span<const std::byte> bytes, Bytes offset) {
    TR_TRY(flush());
    begin_ = end_ = offset + static_cast<Bytes>(bytes.size());
    return put(bytes, offset);
  }
  Status flush() {
    if (begin_ == end_) return {};
    const std::byte* const data = image_ != nullptr ? image_ + begin_ : buffer_.data();
    const std::span<const std::byte> bytes(data, static_cast<std::size_t>(end_ - begin_));
    const Bytes offset = begin_;
    begin_ = end_;
    return put(bytes, offset);
  }

 private:
  Status put(std::span<const std::byte> bytes, Bytes offset) {
    if (cancelled_) return given_up();
    TR_TRY(file_.write(bytes, at_ + offset));
    unsent_ += static_cast<Bytes>(bytes.size());
    if (unsent_ >= write_back_bytes) {
      file_.begin_write_back();
      unsent_ = 0;
    }
    return {};
  }

  storage::File& file_;
  const Bytes at_;
  const std::byte* const image_;
  const std::atomic<bool>& cancelled_;
  ByteVector buffer_;
  Bytes begin_ = 0;  // [begin_, end_) of the part is to be written
  Bytes end_ = 0;
  Bytes unsent_ = 0;
};

}  // namespace

Part::Part(const SaveId& id, int part, int parts, const std::vector<SaveItem>& items, Compression compression)
    : compression_(compression) {
  table_.id = id;
  table_.part = part;
  table_.parts = parts;
  table_.coding = compression.coding;
  table_.block_bytes = default_block_bytes;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const arrays::Owned& owned = items[i].owned;
    if (owned.bytes() == 0) continue;
    auto map = std::find(table_.maps.begin(), table_.maps.end(), owned.rows);
    if (map == table_.maps.end()) map = table_.maps.insert(map, owned.rows);
    PartItem item;
    item.item = static_cast<std::int32_t>(i);
    item.map = static_cast<std::int32_t>(map - table_.maps.begin());
    item.offset = data_bytes_;
    item.bytes = owned.bytes();
    item.blocks.resize(static_cast<std::size_t>(align(item.bytes, table_.block_bytes) / table_.block_bytes));
    table_.items.push_back(std::move(item));
    sources_.push_back(i);
    data_bytes_ = align(data_bytes_ + owned.bytes(), item_alignment);
  }
  table_bytes_ = static_cast<Bytes>(encode(table_).size());
}

void Part::capture(const std::vector<SaveItem>& items, std::byte* image) const {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const SaveItem& source = items[sources_[i]];
    const PartItem& item = table_.items[i];
    source.owned.packed.gather(source.data, 0, item.bytes, image + item.offset);
    const Bytes end = item.offset + item.bytes;
    std::memset(image + end, 0, static_cast<std::size_t>(align(end, item_alignment) - end));
  }
}

Status Part::write_data(storage::File& file, Bytes at, const std::vector<SaveItem>& items,
                        const std::byte* image, const std::atomic<bool>& cancelled) {
  Writer writer(file, at, image, data_bytes_, cancelled);
  Compressor compressor(compression_);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const SaveItem& source = items[sources_[i]];
    PartItem& item = table_.items[i];
    for (std::size_t b = 0; b < item.blocks.size(); ++b) {
      const Bytes begin = static_cast<Bytes>(b) * table_.block_bytes;
      const Bytes bytes = std::min(table_.block_bytes, item.bytes - begin);
      Result<std::byte*> memory = writer.place(item.offset + begin, bytes);
      TR_TRY(memory.status());
      if (image == nullptr) source.owned.packed.gather(source.data, begin, begin + bytes, *memory);
      std::span<const std::byte> stored(*memory, static_cast<std::size_t>(bytes));
      const std::span<const std::byte> small = compressor.compress(stored, grouped_size_of(source.info.type));
      if (!small.empty()) {
        writer.drop(bytes);
        TR_TRY(writer.write(small, item.offset + begin));
        stored = small;
      }
      item.blocks[b] = {
          block_checksum(stored, table_.id, table_.part, item.item, static_cast<std::int64_t>(b)),
          static_cast<Bytes>(stored.size())};
    }
  }
  return writer.flush();
}

Status Part::write_table(storage::File& file, Bytes at) const {
  ByteVector bytes = encode(table_);
  Footer footer{table_.id, table_.part, table_.parts, {data_bytes_, table_bytes_, checksum(bytes)}};
  const ByteVector end = encode(footer);
  bytes.insert(bytes.end(), end.begin(), end.end());
  return file.write(bytes, at + data_bytes_);
}

}  // namespace tailrace::checkpoint
