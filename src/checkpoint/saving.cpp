// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint/saving.hpp"

#include <utility>

#include "base/checksum.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "checkpoint/slots.hpp"

namespace tailrace::checkpoint {

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

Header Saving::header(bool committed) const {
  Header header;
  header.id = plan_.id;
  header.mode = plan_.mode;
  header.committed = committed;
  header.parts = ranks_;
  header.saved_at = plan_.saved_at;
  header.directory = directory_place_;
  return header;
}

Status Saving::open() {
  const auto open = [&](const std::string& path) { return target_.open(path, storage::OpenMode::keep); };
  Result<std::unique_ptr<storage::File>> own = open(part_path(plan_.path, plan_.mode, rank_));
  TR_TRY(own.status());
  own_ = std::move(*own);
  if (!is_first()) return {};
  if (plan_.mode == Mode::local) {
    Result<std::unique_ptr<storage::File>> copy = open(plan_.path);
    TR_TRY(copy.status());
    copy_ = std::move(*copy);
  }
  // From here on the file holds neither the old copy nor a new one.
  storage::File& file = copy_ ? *copy_ : *own_;
  return file.write(ByteVector(static_cast<std::size_t>(Header::record)), 0);
}

Status Saving::write() {
  if (behind_ != nullptr) TR_TRY(behind_->wait());
  TR_TRY(open());
  return part_.write_data(*own_, place_.offset, items_, image_, cancelled_);
}

/// Cuts off the bytes that an older, larger copy has left behind `end`. No rank writes there.
Status Saving::cut(storage::File& file, Bytes end) {
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  return *size > end ? file.truncate(end) : Status();
}

Status Saving::seal() {
  // The outputs must be durable before the copy says so.
  if (make_durable_) TR_TRY(std::exchange(make_durable_, nullptr)());
  TR_TRY(part_.write_table(*own_, place_.offset));
  if (plan_.mode == Mode::local) TR_TRY(cut(*own_, place_.bytes));
  if (is_first()) {
    storage::File& file = copy_ ? *copy_ : *own_;
    const ByteVector bytes = encode(directory_);
    directory_place_.bytes = static_cast<Bytes>(bytes.size());
    directory_place_.checksum = checksum(bytes);
    TR_TRY(file.write(bytes, directory_place_.offset));
    TR_TRY(cut(file, directory_place_.offset + directory_place_.bytes));
    TR_TRY(file.write(encode(header(false)), 0));
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
  storage::File& file = copy_ ? *copy_ : *own_;
  TR_TRY(file.write(encode(header(true)), 0));
  TR_TRY(file.sync());
  remove_parts(plan_.mode == Mode::local ? ranks_ : 0);
  if (clean_up_) clean_up_();
  return {};
}

/// No copy needs these files any more: a failure here does not fail the save.
void Saving::remove_parts(int from) {
  const Result<std::vector<int>> parts = local_parts(target_, plan_.path);
  if (!parts.is_ok()) return;
  for (const int part : *parts) {
    if (part < from) continue;
    const Status removed = target_.remove(part_path(plan_.path, Mode::local, part));
    if (!removed.is_ok()) log(LogLevel::info, removed.text());
  }
}

void Saving::abandon() {
  storage::File* const file = copy_ ? copy_.get() : own_.get();
  if (is_first() && file != nullptr) make_void(*file, 0, Header::record);
}

void Saving::remove() {
  const Status removed = target_.remove(plan_.path);
  if (!removed.is_ok()) log(LogLevel::info, removed.text());
  remove_parts(0);
}

/// Nothing more can be done if this fails: storage has failed already.
void Saving::make_void(storage::File& file, Bytes offset, Bytes bytes) {
  const Status written = file.write(ByteVector(static_cast<std::size_t>(bytes)), offset);
  if (!written.is_ok()) log(LogLevel::info, written.text());
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
