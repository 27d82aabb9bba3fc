// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/sidecar.hpp"

#include <iterator>
#include <limits>
#include <sstream>

#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::files {

namespace {

constexpr std::string_view first_line = "tailrace local file 1";

/// The second part of the key of an array with bytes. It sorts behind the digests of arrays of which the rank
/// owns nothing at the same offset.
constexpr std::uint64_t key_of_bytes = std::numeric_limits<std::uint64_t>::max();

Sidecar::Key key_of(Bytes offset, const Sidecar::Entry& entry) {
  return {offset, entry.bytes > 0 ? key_of_bytes : entry.digest};
}

}  // namespace

void Sidecar::note(Bytes offset, const Entry& entry) { entries[key_of(offset, entry)] = entry; }

void Sidecar::forget(Bytes offset) { entries.erase({offset, key_of_bytes}); }

const Sidecar::Entry* Sidecar::find(Bytes offset, const Entry& wanted) const {
  if (const auto found = entries.find(key_of(offset, wanted)); found != entries.end()) return &found->second;
  const auto behind = entries.upper_bound({offset, key_of_bytes});
  if (behind == entries.begin()) return nullptr;
  const auto last = std::prev(behind);
  return last->first.first == offset ? &last->second : nullptr;
}

Sidecar::Entry sidecar_entry(const arrays::Array& array, int rank, Bytes bytes) {
  Sidecar::Entry entry;
  entry.bytes = bytes;
  entry.array = cat(name_of(array.type), " ", array.layout->kind(), " ", array.extents_text(), ", rank ",
                    rank, " of ", array.layout->ranks());
  Packer packed;
  array.layout->pack(packed);
  packed.put_text(entry.array);
  entry.digest = checksum(packed.bytes());
  return entry;
}

Status check_sidecar(const Sidecar& sidecar, Bytes offset, const Sidecar::Entry& wanted) {
  if (!sidecar.exists) return {};
  const Sidecar::Entry* const written = sidecar.find(offset, wanted);
  if (written == nullptr)
    return {Code::layout, cat("no array was written at byte ", offset, "; this one is ", wanted.array)};
  if (written->digest == wanted.digest && written->bytes == wanted.bytes) return {};
  return {Code::layout,
          cat("the array at byte ", offset, " was written as ", written->array, " and is read as ",
              wanted.array, written->array == wanted.array ? " (of another distribution)" : "",
              ": local files are read with the layout that wrote them")};
}

Sidecar read_sidecar(storage::Target& target, const std::string& path, const Mode& mode,
                     const std::optional<journal::Position>& from) {
  Sidecar sidecar;
  sidecar.exists = mode.access == Mode::Access::write;
  if (sidecar.exists && !from) return sidecar;
  const Result<std::string> text = sidecar_text(target, path);
  if (!text.is_ok()) return sidecar;
  std::istringstream lines(*text);
  std::string line;
  if (!std::getline(lines, line) || line != first_line) return sidecar;
  sidecar.exists = true;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    Bytes offset = 0;
    Sidecar::Entry entry;
    words >> offset >> entry.bytes >> std::hex >> entry.digest >> std::ws;
    std::getline(words, entry.array);
    const bool is_behind = from && offset + entry.bytes > from->size;
    if (!words.fail() && !is_behind) sidecar.note(offset, entry);
  }
  return sidecar;
}

Status write_sidecar(storage::Target& target, const std::string& path, const Sidecar& sidecar) {
  if (sidecar.entries.empty() && !sidecar.exists) return {};
  std::ostringstream lines;
  lines << first_line << '\n';
  for (const auto& [key, entry] : sidecar.entries)
    lines << std::dec << key.first << ' ' << entry.bytes << ' ' << std::hex << entry.digest << ' '
          << entry.array << '\n';
  const std::string text = lines.str();
  // If nothing has changed, no file is written: some programs write the same layout again and again.
  const Result<std::string> old = sidecar_text(target, path);
  if (old.is_ok() && *old == text) return {};
  return replace_sidecar(target, path, text);
}

}  // namespace tailrace::files
