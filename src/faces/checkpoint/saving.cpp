// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/saving.hpp"

#include <cerrno>
#include <utility>

#include "faces/checkpoint/slots.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::checkpoint {

namespace {

/// Logs that a clean-up has failed. The save does not fail by it: no copy needs the files any more, or
/// storage has failed already.
void log_failure(const Status& status) {
  if (!status.is_ok()) log(LogLevel::info, status.text());
}

void make_void(storage::File& file, Bytes offset, Bytes bytes) {
  log_failure(file.write(ByteVector(static_cast<std::size_t>(bytes)), offset));
}

/// Removes a part that a save of more ranks has left. Another program's file of that name stays.
Status remove_part(storage::Target& target, const std::string& path) {
  const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  TR_TRY(check_part_ours(**file, path).status());
  return target.remove(path);
}

/// Marks a new file as a checkpoint's before its header is written. Otherwise a loss of power could leave
/// random bytes and no mark, and later saves would refuse to overwrite a file that could be anybody's.
Status mark(storage::File& file) {
  TR_TRY(file.write(std::as_bytes(std::span(file_mark)), mark_offset));
  return file.sync();
}

/// Writes the zeros again with which a failed save has overwritten its header, and makes them durable. Leaves
/// what is behind a link alone: another run may be saving there, and this run has no lock on it.
Status make_void_durably(storage::Target& target, const std::string& path) {
  const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::own_existing);
  const int error = file.status().error_number();
  if (error == ENOENT || error == ELOOP) return {};
  TR_TRY(file.status());
  TR_TRY((*file)->write(ByteVector(static_cast<std::size_t>(Header::record)), 0));
  TR_TRY((*file)->sync());
  return (*file)->close();
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
  place_ = {Header::size + (plan_.mode == Mode::local ? 0 : before), part_bytes()};
}

void Saving::place(const std::vector<Bytes>& part_bytes) {
  directory_.id = plan_.id;
  for (const SaveItem& item : items_) directory_.items.push_back(item.info);
  Bytes at = Header::size;
  for (const Bytes bytes : part_bytes) {
    const bool local = plan_.mode == Mode::local;
    directory_.parts.push_back({local ? Header::size : at, bytes});
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

Status Saving::make_room() {
  const Result<bool> is_link = target_.is_link(plan_.path);  // the link may be gone by now
  TR_TRY(is_link.status());
  return *is_link ? target_.remove(plan_.path) : Status();
}

/// The first rank has checked these names before the save. Another program may have put a file there since:
/// open() checks once more, and leaves such a file alone.
Status Saving::open() {
  const bool is_local = plan_.mode == Mode::local;
  if (is_local) TR_TRY(open_part());
  if (!is_local || is_first()) TR_TRY(open_copy(is_local ? copy_ : own_));
  if (!is_first()) return {};
  const Result<bool> has_mark = check_ours(*copy_file(), plan_.path);
  if (!has_mark.is_ok()) {
    (is_local ? copy_ : own_).reset();
    return has_mark.status();
  }
  has_begun_ = true;
  if (!*has_mark) TR_TRY(mark(*copy_file()));
  // From here on the file holds neither the old copy nor a new one.
  return copy_file()->write(ByteVector(static_cast<std::size_t>(Header::record)), 0);
}

Status Saving::open_copy(std::unique_ptr<storage::File>& file) {
  Result<std::unique_ptr<storage::File>> opened =
      target_.open(plan_.path, plan_.is_given ? storage::OpenMode::keep : storage::OpenMode::own);
  TR_TRY(opened.status());
  file = std::move(*opened);
  return {};
}

/// If the name of the part is a link, it may lead to a part of another run: a new file takes its name. That
/// needs no vote, since no other rank opens it.
Status Saving::open_part() {
  const std::string path = part_path(plan_.path, plan_.mode, rank_);
  Result<std::unique_ptr<storage::File>> opened = target_.open(path, storage::OpenMode::own);
  if (opened.status().error_number() == ELOOP) opened = target_.open(path, storage::OpenMode::anew);
  TR_TRY(opened.status());
  const Result<bool> has_mark = check_part_ours(**opened, path);
  TR_TRY(has_mark.status());
  if (!*has_mark) TR_TRY(mark(**opened));
  own_ = std::move(*opened);
  return {};
}

Status Saving::write_header(bool committed) {
  has_header_ = true;
  return copy_file()->write(
      encode(Header{plan_.id, plan_.mode, committed, ranks_, plan_.saved_at, directory_place_}), 0);
}

Status Saving::write() {
  if (behind_ != nullptr) TR_TRY(behind_->wait());
  TR_TRY(open());
  return part_.write_data(*own_, place_.offset, items_, image_, cancelled_);
}

Status Saving::seal() {
  // The outputs must be durable before a copy that records them counts.
  if (make_durable_) TR_TRY(std::exchange(make_durable_, nullptr)());
  TR_TRY(part_.write_table(*own_, place_.offset));
  // An older, larger copy may have left bytes behind the end of this one. No rank writes there.
  if (plan_.mode == Mode::local) TR_TRY(storage::cut_back(*own_, place_.offset + place_.bytes).status());
  if (is_first()) {
    const ByteVector bytes = encode(directory_);
    directory_place_.bytes = static_cast<Bytes>(bytes.size());
    directory_place_.checksum = checksum(bytes);
    TR_TRY(copy_file()->write(bytes, directory_place_.offset));
    TR_TRY(storage::cut_back(*copy_file(), directory_place_.offset + directory_place_.bytes).status());
    TR_TRY(write_header(false));
    if (copy_) TR_TRY(copy_->sync());
  }
  Status synced = own_->sync();
  // After a failed fsync, the kernel takes the pages for written: a later run would find a whole part in the
  // kernel's memory, although storage may have lost it.
  if (!synced.is_ok()) make_void(*own_, place_.offset + place_.bytes - Footer::size, Footer::size);
  return synced;
}

Status Saving::commit() {
  // A failed save's header could come back with a loss of power. Its generation may be this one, or higher.
  for (const std::string& path : failed_)
    TR_TRY(make_void_durably(target_, path).in("overwriting the header of a failed save again"));
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
    if (part >= from) log_failure(remove_part(target_, part_path(plan_.path, Mode::local, part)));
  }
}

void Saving::abandon() {
  if (!is_first() || copy_file() == nullptr) return;
  make_void(*copy_file(), 0, Header::record);
  // A loss of power could bring the header back. A part that is not sealed has none.
  if (has_header_) log_failure(copy_file()->sync());
}

void Saving::remove() {
  if (!has_begun_) return;
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
