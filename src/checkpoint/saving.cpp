// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint/saving.hpp"

#include <cerrno>
#include <utility>

#include "base/checksum.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "checkpoint/slots.hpp"

namespace tailrace::checkpoint {

namespace {

/// A failed clean-up does not fail a save: no copy needs the files any more, or storage has failed already.
void log_failure(const Status& status) {
  if (!status.is_ok()) log(LogLevel::info, status.text());
}

void make_void(storage::File& file, Bytes offset, Bytes bytes) {
  log_failure(file.write(ByteVector(static_cast<std::size_t>(bytes)), offset));
}

/// Cuts off the bytes that an older, larger copy has left behind `end`. No rank writes there.
Status cut(storage::File& file, Bytes end) {
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  return *size > end ? file.truncate(end) : Status();
}

}  // namespace

Saving::Saving(storage::Target& target, SavePlan plan, int rank, int ranks, std::vector<SaveItem> items)
    : target_(target),
      plan_(std::move(plan)),
      rank_(rank),
      ranks_(ranks),
      items_(std::move(items)),
      part_(plan_.id, rank, ranks, items_, plan_.compression) {}

void Saving::know(const SavePlan& plan) {
  plan_ = plan;
  part_.name(plan.id);
}

void Saving::place_behind(Bytes before) {
  place_ = {plan_.mode == Mode::local ? 0 : Header::size + before, part_bytes()};
}

void Saving::place(const std::vector<Bytes>& part_bytes) {
  directory_.id = plan_.id;
  for (const SaveItem& item : items_) directory_.items.push_back(item.info);
  Bytes at = Header::size;
  for (const Bytes bytes : part_bytes) {
    const bool local = plan_.mode == Mode::local;
    directory_.parts.push_back({local ? 0 : at, bytes});
    if (!local) at = align(at + bytes, part_alignment);
  }
  directory_place_.offset = at;
  place_ = directory_.parts[static_cast<std::size_t>(rank_)];
}

void Saving::capture(std::byte* image) {
  part_.capture(items_, image);
  image_ = image;
}

Bytes Saving::mirror_bytes() {
  if (!mirror_) mirror_.emplace(items_);
  return mirror_->bytes();
}

Status Saving::capture_behind(std::byte* memory, capture::CopyOnWrite& behind) {
  Status done = mirror_->take(items_, memory, behind);
  if (done.is_ok()) behind_ = &behind;
  return done;
}

Status Saving::open() {
  const auto open = [&](const std::string& path, storage::OpenMode mode,
                        std::unique_ptr<storage::File>& file) -> Status {
    Result<std::unique_ptr<storage::File>> opened = target_.open(path, mode);
    TR_TRY(opened.status());
    file = std::move(*opened);
    return {};
  };
  const auto whole = plan_.is_given ? storage::OpenMode::keep : storage::OpenMode::own;
  const std::string path = part_path(plan_.path, plan_.mode, rank_);
  Status opened = open(path, plan_.mode == Mode::local ? storage::OpenMode::own : whole, own_);
  // A part that is a link may be another run's. This rank alone opens it.
  if (plan_.mode == Mode::local && opened.error_number() == ELOOP)
    opened = open(path, storage::OpenMode::anew, own_);
  TR_TRY(opened);
  if (!is_first()) return {};
  if (plan_.mode == Mode::local) TR_TRY(open(plan_.path, whole, copy_));
  const Result<std::string> beginning = file_beginning(*copy_file());
  TR_TRY(beginning.status());
  // From here on the file holds neither the old copy nor a new one.
  std::string head(static_cast<std::size_t>(has_mark(*beginning) ? Header::record : mark_offset), '\0');
  if (!has_mark(*beginning)) head += file_mark;
  return copy_file()->write(std::as_bytes(std::span(head)), 0);
}

Status Saving::write_header(bool committed) {
  return copy_file()->write(
      encode(Header{plan_.id, plan_.mode, committed, ranks_, plan_.saved_at, directory_place_}), 0);
}

Status Saving::write() {
  if (behind_ != nullptr) TR_TRY(behind_->wait());
  TR_TRY(open());
  return part_.write_data(*own_, place_.offset, items_, image_, cancelled_);
}

Status Saving::seal() {
  // The outputs must be durable before the copy says so.
  if (make_durable_) TR_TRY(std::exchange(make_durable_, nullptr)());
  TR_TRY(part_.write_table(*own_, place_.offset));
  if (plan_.mode == Mode::local) TR_TRY(cut(*own_, place_.bytes));
  if (is_first()) {
    const ByteVector bytes = encode(directory_);
    directory_place_.bytes = static_cast<Bytes>(bytes.size());
    directory_place_.checksum = checksum(bytes);
    TR_TRY(copy_file()->write(bytes, directory_place_.offset));
    TR_TRY(cut(*copy_file(), directory_place_.offset + directory_place_.bytes));
    TR_TRY(write_header(false));
    if (copy_) TR_TRY(copy_->sync());
  }
  Status synced = own_->sync();
  // After a failed fsync, the kernel still takes the pages for written: a later run would find a whole part
  // in memory.
  if (!synced.is_ok()) make_void(*own_, place_.offset + place_.bytes - Footer::size, Footer::size);
  return synced;
}

Status Saving::commit() {
  TR_TRY(target_.sync_directory_of(plan_.path));
  TR_TRY(write_header(true));
  TR_TRY(copy_file()->sync());
  remove_parts(plan_.mode == Mode::local ? ranks_ : 0);
  if (clean_up_) log_failure(guarded(clean_up_));
  return {};
}

void Saving::remove_parts(int from) {
  const Result<std::vector<int>> parts = local_parts(target_, plan_.path);
  if (!parts.is_ok()) return;
  for (const int part : *parts) {
    if (part >= from) log_failure(target_.remove(part_path(plan_.path, Mode::local, part)));
  }
}

void Saving::abandon() {
  if (is_first() && copy_file() != nullptr) make_void(*copy_file(), 0, Header::record);
}

void Saving::remove() {
  log_failure(target_.remove(plan_.path));
  remove_parts(0);
}

Status Saving::close() {
  Status first;
  for (auto* file : {&own_, &copy_}) {
    if (*file == nullptr) continue;
    const Status closed = (*file)->close();
    if (first.is_ok()) first = closed;
    file->reset();
  }
  return first;
}

}  // namespace tailrace::checkpoint
