// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <climits>
#include <deque>
#include <vector>

#include "ground/base/text.hpp"
#include "ground/storage/posix_system.hpp"
#include "ground/storage/queue/write_queue.hpp"

namespace tailrace::storage {

namespace {

constexpr std::size_t parts_of_one_call = 1024;  // Linux's limit, IOV_MAX

/// A write of a file in pieces, each of which is one call of the system.
class PiecewiseWrite final : public StartedWrite {
 public:
  PiecewiseWrite(int descriptor, std::string path, WriteQueue& queue)
      : descriptor_(descriptor), path_(std::move(path)), queue_(queue) {}
  ~PiecewiseWrite() override {
    for (const Piece& piece : pieces_) queue_.wait(piece.call);
  }
  PiecewiseWrite(const PiecewiseWrite&) = delete;
  PiecewiseWrite& operator=(const PiecewiseWrite&) = delete;

  void start(Parts parts, Bytes offset);
  [[nodiscard]] WriteWay way() const override { return queue_.way(); }
  Status finish() override;

 private:
  struct Piece {
    std::vector<iovec> parts{};
    std::size_t first = 0;  // the first part that is not completely written
    Bytes offset = 0;       // of what is not written
    Bytes size = 0;
    int interruptions = 0;
    QueuedWrite call{};
  };
  void submit(Piece& piece);
  bool take_result(Piece& piece);
  void fail(const Piece& piece, int error);

  const int descriptor_;
  const std::string path_;
  WriteQueue& queue_;
  std::deque<Piece> pieces_;  // their addresses stay
  Bytes end_ = 0;
  Status status_;
};

/// All pieces are made before the first one begins: memory that is short fails the write as a whole.
void PiecewiseWrite::start(Parts parts, Bytes offset) {
  end_ = offset;
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      if (pieces_.empty() || pieces_.back().size >= WriteQueue::most_at_once ||
          pieces_.back().parts.size() >= parts_of_one_call)
        pieces_.emplace_back().offset = end_;
      Piece& piece = pieces_.back();
      const auto taken =
          part.first(std::min(part.size(), static_cast<std::size_t>(WriteQueue::most_at_once - piece.size)));
      // The kernel only reads through the iovec of a write.
      piece.parts.push_back({const_cast<std::byte*>(taken.data()), taken.size()});
      piece.size += static_cast<Bytes>(taken.size());
      end_ += static_cast<Bytes>(taken.size());
      part = part.subspan(taken.size());
    }
  }
  for (Piece& piece : pieces_) submit(piece);
}

void PiecewiseWrite::submit(Piece& piece) {
  piece.call.descriptor = descriptor_;
  piece.call.parts = std::span<const iovec>(piece.parts).subspan(piece.first);
  piece.call.offset = piece.offset;
  piece.call.is_over = false;
  queue_.start(piece.call);
}

void PiecewiseWrite::fail(const Piece& piece, int error) {
  if (!status_.is_ok()) return;
  status_ =
      io_error(cat("write of ", end_ - piece.offset, " bytes at offset ", piece.offset, " of"), path_, error);
}

/// Notes what the call has written. Returns true if there is nothing left to write, or the call has failed.
bool PiecewiseWrite::take_result(Piece& piece) {
  const ssize_t result = piece.call.result;
  // A completion with EAGAIN has moved nothing, as an interrupted call.
  if ((result == -EINTR || result == -EAGAIN) && ++piece.interruptions < most_interruptions) return false;
  // A write that moves nothing and returns no error would otherwise be repeated for ever.
  if (result <= 0) {
    fail(piece, result == 0 ? EIO : static_cast<int>(-result));
    return true;
  }
  piece.interruptions = 0;
  piece.offset += static_cast<Bytes>(result);
  piece.size -= static_cast<Bytes>(result);
  auto left = static_cast<std::size_t>(result);
  while (left > 0) {
    iovec& part = piece.parts[piece.first];
    const std::size_t step = std::min(left, part.iov_len);
    part.iov_base = static_cast<std::byte*>(part.iov_base) + step;
    part.iov_len -= step;
    left -= step;
    if (part.iov_len == 0) ++piece.first;
  }
  return piece.size == 0;
}

/// The pieces that were submitted behind one that fails are waited for, and not repeated.
Status PiecewiseWrite::finish() {
  for (Piece& piece : pieces_) {
    queue_.wait(piece.call);
    while (!take_result(piece) && status_.is_ok()) {
      submit(piece);
      queue_.wait(piece.call);
    }
  }
  pieces_.clear();
  return status_;
}

}  // namespace

std::unique_ptr<StartedWrite> start_queued_write(int descriptor, std::string path, Parts parts, Bytes offset,
                                                 WriteQueue& queue) {
  auto write = std::make_unique<PiecewiseWrite>(descriptor, std::move(path), queue);
  write->start(parts, offset);
  return write;
}

}  // namespace tailrace::storage
