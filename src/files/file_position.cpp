// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The functions of a file that are for checkpoints.
#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/text.hpp"
#include "files/file.hpp"

namespace tailrace::files {

Status File::rest() {
  const std::string call = cat("a save, which brings ", path_, " to rest");
  wait_for_tasks(call);
  wait_for_deliveries(call);
  Status mine = take_failure();
  errno = 0;
  // A stream that is being read is not flushed: fflush would take back what ungetc has given.
  if (mine.is_ok() && stream_.stream != nullptr && flush_before_seek(stream_.stream) != 0)
    mine = io_error("write", path_, errno);
  if (mine.is_ok()) mine = store_sidecar();
  return mine.in(path_).at({-1, -1, place_.rank});
}

Result<journal::Position> File::position(journal::Overwritten overwritten) {
  const off_t position = ::ftello(stream_.stream);
  if (position < 0) return io_error("ftell", path_, errno);
  const Result<Bytes> size = stream_.file->size();
  TR_TRY(size.status());
  const std::optional<Bytes> at = stream_.growth->overwritten_at();
  if (at && overwritten == journal::Overwritten::refuse) {
    return Status(
        Code::state,
        cat(path_, " was written over at byte ", *at,
            ": a checkpoint records only files that grow, since others cannot be brought back to what "
            "they were. Save with overwritten=journal, close it before the save, or write what changes to "
            "a file that is made anew"));
  }
  // This rank may not see yet what other aggregators have written.
  return journal::Position{path_, position, std::max(*size, stream_.growth->end()), false};
}

void File::note_recorded(Bytes size) { stream_.growth->record(size); }

std::vector<std::shared_ptr<storage::File>> File::hold() const {
  std::vector<std::shared_ptr<storage::File>> held;
  if (stream_.file != nullptr) held.push_back(stream_.file->hold());
  if (opened_beside()) held.push_back(shared_->hold());
  return held;
}

void File::write_over(Bytes position, ByteVector bytes) {
  tell([this, position, bytes = std::move(bytes)](std::FILE* stream) {
    if (!unheard_failure().is_ok()) return Outcome();
    errno = 0;
    bool failed = flush_before_seek(stream) != 0 || ::fseeko(stream, position, SEEK_SET) != 0;
    if (!failed) {
      std::optional<journal::Growth::Completing> completing;
      if (stream_.growth) completing.emplace(*stream_.growth);
      failed = std::fwrite(bytes.data(), 1, bytes.size(), stream) < bytes.size() || std::fflush(stream) != 0;
    }
    return Outcome{0, failed ? (errno != 0 ? errno : EIO) : 0, {}};
  });
}

Status File::will_cut(Bytes size) {
  if (!stream_.growth) return {};
  TR_TRY(keep(size, std::numeric_limits<Bytes>::max()));
  stream_.growth->cut(size);
  return {};
}

Status File::keep(Bytes offset, Bytes bytes) {
  if (stream_.file == nullptr) return {};
  return place_.service->journals().keep(path_, *stream_.file, offset, bytes);
}

void File::forget(Bytes from) {
  tell([this, from](std::FILE* stream) {
    flush_before_seek(stream);
    if (stream_.growth) stream_.growth->forget(from);
    return Outcome();
  });
}

}  // namespace tailrace::files
