// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/opening/open.hpp"

#include <algorithm>
#include <cerrno>

#include "formats/index/index.hpp"
#include "formats/registry/registry.hpp"
#include "formats/sources/inventory_cache.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::sources {

namespace {

/// "GRIB..." -> "47 52 49 42".
std::string octets(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte each : bytes.first(std::min<std::size_t>(bytes.size(), 8))) {
    const auto value = std::to_integer<unsigned>(each);
    text += cat(text.empty() ? "" : " ", digits[value >> 4], digits[value & 15]);
  }
  return text.empty() ? "nothing" : text;
}

Status check_index(const Opening& opening, const std::string& path) {
  const streams::IndexContents& index = *opening.index;
  if (index.tail == streams::IndexTail::damaged)
    return {Code::corrupt, cat(path, ": ", index.tail_text, "; `tailrace repair` says what can be saved")};
  if (opening.file == nullptr || index.data_end() <= opening.size) return {};
  if (index.steps.empty())
    return {Code::state,
            cat(opening.path, ": has no steps yet: its writer has just begun it, or was ended then")};
  return {Code::corrupt, cat(opening.path, ": has ", counted(opening.size, "byte"),
                             ", but its index says that ", index.data_end(),
                             " are committed; it was cut by something else, and `tailrace repair` says "
                             "what can be saved")};
}

Status find_index_of(Opening& opening) {
  const Result<std::string> path = streams::find_index(*opening.target, opening.path);
  TR_TRY(path.status());
  const Result<bool> exists = opening.target->exists(*path);
  TR_TRY(exists.status());
  if (!*exists) return {};
  Result<streams::IndexContents> contents = streams::load_index(*opening.target, *path);
  TR_TRY(contents.status());
  opening.index = std::make_shared<const streams::IndexContents>(std::move(*contents));
  if (opening.file != nullptr) {
    // Read the size after the index: a program may still be writing, and the index names a step only after
    // the file has its bytes.
    const Result<Bytes> size = opening.file->size();
    TR_TRY(size.status());
    opening.size = *size;
  }
  return check_index(opening, *path);
}

/// Returns success if `path` is a directory or another place of objects, and `refused` if nothing has this
/// name. Only a directory contains "/.".
Status check_place(const std::shared_ptr<storage::Target>& of, const std::string& path,
                   const Status& refused) {
  if (!storage::is_of_files(path)) {
    const Result<bool> is_made = storage::objects_at(of, storage::OpenMode::read_regular)(path)->is_made();
    TR_TRY(is_made.status());
    return *is_made ? Status() : refused;
  }
  storage::Target& target = *of;
  const Result<bool> is_directory = target.exists(path + "/.");
  TR_TRY(is_directory.status());
  if (*is_directory) return {};
  const Result<bool> exists = target.exists(path);
  if (!exists.is_ok() || !*exists) return refused;
  return {Code::io, cat(path, ": expected a file or a directory, got a pipe or a device")};
}

Result<Inventory> inventory_of(const FrontEnd& front_end, const Opening& opening, const std::string& cache) {
  if (opening.index != nullptr) return front_end.scan(opening);
  if (front_end.maker == nullptr) return Inventory();
  return kept_or_scanned(front_end, opening, cache);
}

}  // namespace

Result<Opening> look_at(const std::shared_ptr<storage::Target>& target, const std::string& path) {
  Opening opening;
  opening.target = target;
  opening.path = path;
  if (const Result<storage::Identity> identity = target->identity_of(path); identity.is_ok()) {
    opening.identity = *identity;
    opening.is_settled = storage::shows_changes(*identity);
  }
  Result<std::unique_ptr<storage::File>> file = target->open(path, storage::OpenMode::read_regular);
  // Targets that present stores as files answer Code::state for a store of another program.
  if (file.status().error_number() == ENOENT || file.status().code() == Code::state) {
    if (file.status().code() != Code::state) TR_TRY(check_place(target, path, file.status()));
    TR_TRY(find_index_of(opening));
    return opening;
  }
  TR_TRY(file.status());
  opening.file = std::move(*file);
  opening.head.resize(head_bytes);
  const Result<Bytes> got = opening.file->read(opening.head, 0);
  if (!got.is_ok() && got.status().error_number() != EISDIR) return got.status();
  opening.head.resize(static_cast<std::size_t>(got.is_ok() ? *got : 0));
  if (got.is_ok()) {
    // Ask for the size after reading the first bytes: if the file grows meanwhile, the size covers all that
    // was read.
    const Result<Bytes> size = opening.file->size();
    TR_TRY(size.status());
    opening.size = *size;
  } else {
    opening.file = nullptr;
  }
  TR_TRY(find_index_of(opening));
  // Targets that present our own stores as files need the index of the store. A store without an index is
  // read like a store of another program: as a directory.
  if (opening.index == nullptr && opening.file != nullptr) {
    const Result<bool> is_store = stores::has_begun(target, path);
    TR_TRY(is_store.status());
    if (*is_store) {
      opening.file = nullptr;
      opening.head.clear();
      opening.size = 0;
    }
  }
  return opening;
}

std::span<const FrontEnd* const> front_ends() {
  static const auto& ordered = *new const std::vector<const FrontEnd*>([] {
    std::vector<const FrontEnd*> all;
    for (const formats::Format& format : formats::all()) {
      if (format.reading != nullptr && std::ranges::count(all, format.reading) == 0)
        all.push_back(format.reading);
    }
    std::ranges::stable_sort(all, {}, &FrontEnd::sign);
    return all;
  }());
  return ordered;
}

Result<const FrontEnd*> front_end_of(const Opening& opening) {
  const std::span<const FrontEnd* const> all = front_ends();
  const auto found = std::ranges::find_if(all, [&](const FrontEnd* f) { return f->fits(opening); });
  if (found != all.end() && (*found)->scan != nullptr) return *found;
  if (found != all.end())
    return Status(Code::unsupported,
                  cat(opening.path, ": is ", (*found)->name, ": ",
                      std::ranges::find(formats::all(), *found, &formats::Format::reading)->why));
  std::string known;
  for (const FrontEnd* const each : all) known += cat(known.empty() ? "" : ", ", each->name);
  return Status(Code::format,
                cat(opening.path, ": is in no format that is read (", known, "): it ",
                    opening.file == nullptr ? "is a directory" : cat("begins with ", octets(opening.head)),
                    opening.index == nullptr
                        ? cat(", and no index lies beside it (", streams::index_path(opening.path), ")")
                        : ""));
}

Result<std::shared_ptr<const Source>> open(const std::shared_ptr<storage::Target>& target,
                                           const std::string& path, const std::string& cache) {
  return guarded([&]() -> Result<std::shared_ptr<const Source>> {
    const Result<Opening> opening = look_at(target, path);
    TR_TRY(opening.status());
    const Result<const FrontEnd*> front_end = front_end_of(*opening);
    TR_TRY(front_end.status());
    Result<Inventory> inventory = inventory_of(**front_end, *opening, cache);
    TR_TRY(inventory.status());
    return (*front_end)->make(*opening, std::move(*inventory));
  });
}

}  // namespace tailrace::sources
