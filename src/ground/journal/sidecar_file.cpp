// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/sidecar_file.hpp"

#include "ground/journal/undo_file.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::journal {

namespace {

/// Returns the name that a sidecar has until it is whole.
std::string unfinished(const std::string& name) { return name + ".new"; }

Result<std::string> whole_text(storage::Target& target, const std::string& path) {
  Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  std::string text(static_cast<std::size_t>(*size), '\0');
  TR_TRY((*file)->read(std::as_writable_bytes(std::span(text)), 0).status());
  return text;
}

}  // namespace

std::string sidecar_path(const std::string& path) { return path + ".layout"; }

Result<std::string> sidecar_text(storage::Target& target, const std::string& path) {
  const Result<bool> exists = target.exists(sidecar_path(path));
  TR_TRY(exists.status());
  return *exists ? whole_text(target, sidecar_path(path)) : std::string();
}

Status replace_sidecar(storage::Target& target, const std::string& path, const std::string& text) {
  const std::string name = sidecar_path(path);
  return storage::replace_file(target, name, text, unfinished(name), storage::Durability::none);
}

Status bring_back_sidecar(storage::Target& target, const Position& from) {
  const Result<std::optional<std::string>> text = recorded_sidecar(target, from);
  TR_TRY(text.status());
  if (!*text) return {};
  return (*text)->empty() ? remove_sidecar(target, from.path) : replace_sidecar(target, from.path, **text);
}

Status remove_sidecar(storage::Target& target, const std::string& path) {
  const std::string name = sidecar_path(path);
  Status first;
  for (const std::string& each : {name, unfinished(name)}) {
    const Result<bool> exists = target.exists(each);
    const Status removed = exists.is_ok() && *exists ? target.remove(each) : exists.status();
    if (first.is_ok()) first = removed;
  }
  return first;
}

}  // namespace tailrace::journal
