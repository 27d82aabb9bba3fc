// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/slots.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/journal/undo_file.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::checkpoint {

namespace {

/// Returns the number that the whole of `text` is, or -1 if it is none.
std::int64_t number_of(std::string_view text) {
  std::int64_t number = -1;
  if (text.empty() || text.front() < '0' || text.front() > '9') return -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : -1;
}

/// Returns the names in the directory of `path` that begin with its last component and `suffix`, without that
/// beginning.
Result<std::vector<std::string>> endings(storage::Target& target, const std::string& path,
                                         std::string_view suffix) {
  const std::string begin = cat(path.substr(path.rfind('/') + 1), suffix);
  Result<std::vector<std::string>> names = target.list(storage::parent_of(path));
  if (names.status().error_number() == ENOENT) return std::vector<std::string>();
  TR_TRY(names.status());
  std::erase_if(*names, [&](const std::string& name) { return !name.starts_with(begin); });
  for (std::string& name : *names) name.erase(0, begin.size());
  return names;
}

/// True if a checkpoint has written the file that begins so. A header of zeros counts, since a save begins
/// with one. An empty file counts, too: a job that was killed before may have left it.
bool is_ours(std::string_view beginning) {
  const std::string_view header = beginning.substr(0, static_cast<std::size_t>(Header::record));
  return header.starts_with(file_mark) || header.find_first_not_of('\0') == std::string_view::npos ||
         has_mark(beginning);
}

Status foreign(const std::string& path, const char* kind) {
  return {Code::state, cat(path, ": is a ", kind,
                           " that no checkpoint has written, and a save would take its name; move it "
                           "away, or choose another name for the checkpoint")};
}

using Check = Result<bool> (*)(storage::File&, const std::string&);

/// Opens the file at `path` and passes it to `check`. Returns success if nothing is there.
Status check_named(storage::Target& target, const std::string& path, Check check) {
  const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
  if (file.status().error_number() == ENOENT) return {};
  if (file.status().error_number() == EISDIR) return foreign(path, "directory");
  TR_TRY(file.status());
  return check(**file, path).status();
}

/// Returns `status` if it refuses a foreign file, and success otherwise. A failure of storage is left to the
/// save, which opens the same file and reports it.
Status only_foreign(const Status& status) { return status.code() == Code::state ? status : Status(); }

bool is_marked(storage::Target& target, const std::string& path) {
  const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
  if (!file.is_ok()) return false;
  const Result<bool> mark = check_ours(**file, path);
  return mark.is_ok() && *mark;
}

Found look_at_one(storage::Target& target, const std::string& path, Read read) {
  Found found;
  found.path = path;
  const auto know = [&](const Header& header) {
    found.generation = header.id.generation;
    found.committed = header.committed;
  };
  found.status = guarded([&] {
    Result<Copy> copy = read(target, path);
    if (!copy.is_ok()) return copy.status();
    copy->tables = std::vector<Table>();
    copy->directory.parts = std::vector<PartPlace>();
    found.copy = std::move(*copy);
    know(found.copy->header);
    return Status();
  });
  if (found.copy) return found;
  const Result<bool> exists = target.exists(path);
  found.missing = exists.is_ok() && !*exists;
  if (found.missing) return found;
  const Result<Header> header = read_header(target, path);
  // A directory of this name belongs to another program: a copy is a file.
  found.unreadable = header.status().code() == Code::io && header.status().error_number() != EISDIR;
  if (header.is_ok()) know(*header);
  found.unfinished = is_unfinished(target, path);
  found.foreign = check_named(target, path, check_ours).code() == Code::state;
  return found;
}

}  // namespace

bool is_damage(const Status& status) {
  if (status.code() == Code::corrupt) return true;
  const int number = status.error_number();
  // A directory of this name belongs to another program: a copy is a file.
  return status.code() == Code::io && (number == ENOENT || number == ENOTDIR || number == EISDIR);
}

bool is_unfinished(storage::Target& target, const std::string& path) {
  Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
  ByteVector bytes(static_cast<std::size_t>(Header::record));
  if (!file.is_ok()) return false;
  const Result<Bytes> got = (*file)->read(bytes, 0);
  if (!got.is_ok()) return false;
  bytes.resize(static_cast<std::size_t>(*got));
  if (std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; })) return true;
  const Result<Header> header = decode_header(bytes);
  return header.is_ok() && !header->committed;
}

std::vector<Found> look_at(storage::Target& target, const std::vector<std::string>& paths, Read read) {
  std::vector<Found> all;
  for (const std::string& path : paths) all.push_back(look_at_one(target, path, read));
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const Found& each) { return std::pair(each.generation, each.committed); });
  return all;
}

std::string lock_path(const std::string& name) { return name + ".lock"; }

Result<std::vector<std::string>> find_copies(storage::Target& target, const std::string& name) {
  const Result<std::vector<std::string>> found = endings(target, name, ".");
  TR_TRY(found.status());
  std::vector<std::string> paths;
  for (const std::string& ending : *found) {
    const std::string_view text(ending);
    if (number_of(text) >= 0 || (text.starts_with('g') && number_of(text.substr(1)) > 0))
      paths.push_back(cat(name, ".", text));
  }
  return paths;
}

Result<std::string> set_aside(storage::Target& target, const std::string& path) {
  std::string aside = path + ".aside";
  for (int number = 2;; ++number) {
    const Result<bool> exists = target.exists(aside);
    TR_TRY(exists.status());
    if (!*exists) break;
    aside = cat(path, ".aside", number);
  }
  const Result<std::vector<int>> parts = local_parts(target, path);
  TR_TRY(parts.status());
  // From here on no load finds the copy. Parts without it are nobody's, and the next save in its place takes
  // their names.
  TR_TRY(storage::rename_durably(target, path, aside));
  for (const int part : *parts)
    TR_TRY(target.rename(part_path(path, Mode::local, part), part_path(aside, Mode::local, part)));
  if (!parts->empty()) TR_TRY(target.sync_directory_of(path));
  return aside;
}

Result<bool> check_ours(storage::File& file, const std::string& path) {
  const Result<std::string> beginning = file_beginning(file);
  TR_TRY(beginning.status());
  if (!is_ours(*beginning)) return foreign(path, "file");
  return has_mark(*beginning);
}

/// A part that an older version has written has no mark. If the part is whole, its footer shows that a
/// checkpoint has written it.
Result<bool> check_part_ours(storage::File& file, const std::string& path) {
  Result<bool> ours = check_ours(file, path);
  if (ours.status().code() != Code::state) return ours;
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  ByteVector end(static_cast<std::size_t>(Footer::size));
  if (*size < Footer::size) return ours;
  const Result<Bytes> got = file.read(end, *size - Footer::size);
  TR_TRY(got.status());
  return *got == Footer::size && decode_footer(end).is_ok() ? Result<bool>(false) : ours;
}

Result<std::vector<int>> local_parts(storage::Target& target, const std::string& path) {
  const Result<std::vector<std::string>> found = endings(target, path, ".r");
  TR_TRY(found.status());
  std::vector<int> parts;
  for (const std::string& ending : *found) {
    const std::int64_t number = number_of(ending);
    if (number >= 0 && number <= std::numeric_limits<int>::max()) parts.push_back(static_cast<int>(number));
  }
  return parts;
}

std::vector<std::string> Slots::paths(const std::string& name, int keep) {
  std::vector<std::string> paths;
  for (int slot = 0; slot < keep; ++slot) paths.push_back(cat(name, ".", slot));
  return paths;
}

Result<std::vector<std::string>> Slots::candidates(storage::Target& target) const {
  Result<std::vector<std::string>> paths = find_copies(target, name_);
  TR_TRY(paths.status());
  for (const Slot& slot : slots_) {
    if (std::ranges::find(*paths, slot.path) == paths->end()) paths->push_back(slot.path);
  }
  return paths;
}

Result<std::vector<Found>> Slots::look(storage::Target& target) {
  const Result<std::vector<std::string>> paths = candidates(target);
  TR_TRY(paths.status());
  // Undo files belong to generations that were begun, even if never committed.
  const Result<std::vector<journal::UndoName>> undo = journal::find_undo_files(target, name_);
  TR_TRY(undo.status());
  for (const journal::UndoName& each : *undo) highest_ = std::max(highest_, each.generation);
  std::vector<Found> all = look_at(target, *paths, read_directory);
  for (const Found& found : all) {
    // Any program may have written a file whose directory is not whole. Its generation counts only up to a
    // limit, as a generation in the name of an undo file does.
    if (found.status.is_ok() || found.generation <= journal::most_generation)
      highest_ = std::max(highest_, found.generation);
    // The unknown generation may be as high as the next one, or higher: then no load would take the next
    // save.
    if (found.unreadable)
      return found.status.in(cat(found.path, " cannot be read, so that its generation is not known"));
    const bool good = found.status.is_ok() && found.committed;
    // The commit record may be in memory alone: the process that wrote it may have been killed before its
    // fsync.
    if (good) TR_TRY(storage::sync_file(target, found.path));
    if (found.unfinished && found.generation == 0 && is_marked(target, found.path))
      failed_.push_back(found.path);
    if (found.foreign) foreign_.insert(found.path);
    set({found.path,
         good            ? Has::copy
         : found.missing ? Has::nothing
                         : Has::broken,
         found.committed ? found.generation : 0,
         good && found.copy->header.mode == Mode::local ? found.copy->header.parts : 0});
  }
  return all;
}

std::vector<std::string> Slots::good() const {
  std::vector<std::string> paths;
  for (const Slot& slot : slots_) {
    if (slot.has == Has::copy) paths.push_back(slot.path);
  }
  return paths;
}

Status Slots::check_next_generation() const {
  if (next_generation() <= Header::most_generation) return {};
  return {Code::corrupt,
          cat("a copy of checkpoint ", name_, " says that it is of generation ", highest_,
              ", the last that there can be: nothing saved after it could be loaded; move that "
              "copy away (tailrace checkpoint ls ",
              name_, " tells which it is)")};
}

std::string Slots::place_for(std::int64_t generation) const {
  if (keep_every_ > 0 && generation % keep_every_ == 0) return cat(name_, ".g", generation);
  const auto turn = [](const Slot& slot) { return std::pair(slot.has, slot.generation); };
  return std::ranges::min_element(slots_, {}, turn)->path;
}

bool Slots::has(const std::string& path) const {
  return std::ranges::find(slots_, path, &Slot::path) != slots_.end();
}

void Slots::begun(std::int64_t generation, const std::string& path) {
  highest_ = std::max(highest_, generation);
  set({path, Has::broken, 0, 0});
  std::erase(failed_, path);
}

void Slots::broken(const std::string& path) {
  if (const auto slot = std::ranges::find(slots_, path, &Slot::path); slot != slots_.end())
    *slot = {path, Has::broken, slot->generation, 0};
}

void Slots::set(const Slot& slot) { std::ranges::replace(slots_, slot.path, slot, &Slot::path); }

Result<bool> Slots::check(storage::Target& target, const std::string& path, Mode mode, int ranks) {
  for (auto each = foreign_.begin(); each != foreign_.end();) {
    if (*each != path && !has(*each)) {
      ++each;
      continue;
    }
    TR_TRY(check_named(target, *each, check_ours));
    each = foreign_.erase(each);
  }
  // Another program may have put a file there since look().
  TR_TRY(only_foreign(check_named(target, path, check_ours)));
  if (mode == Mode::local) TR_TRY(check_parts(target, path, ranks));
  return are_given_ ? Result<bool>(false) : target.is_link(path);
}

/// The parts of a whole copy are known to be its own, and are not opened again: with very many of them that
/// would take the first rank long.
Status Slots::check_parts(storage::Target& target, const std::string& path, int ranks) const {
  const auto slot = std::ranges::find(slots_, path, &Slot::path);
  const int known = slot != slots_.end() ? slot->own_parts : 0;
  if (known >= ranks) return {};
  const Result<std::vector<int>> parts = local_parts(target, path);
  if (!parts.is_ok()) return {};
  for (const int part : *parts) {
    if (part >= known && part < ranks)
      TR_TRY(only_foreign(check_named(target, part_path(path, Mode::local, part), check_part_ours)));
  }
  return {};
}

Result<std::vector<journal::UndoName>> useless_undo_files(
    storage::Target& target, const std::string& name, const std::vector<std::string>& copies,
    const std::function<std::int64_t(const Copy&)>& oldest) {
  Result<std::vector<journal::UndoName>> undo = journal::find_undo_files(target, name);
  TR_TRY(undo.status());
  if (undo->empty()) return undo;
  std::int64_t needed = std::numeric_limits<std::int64_t>::max();
  for (const std::string& path : copies) {
    const Result<Copy> copy = read_directory(target, path);
    if (!copy.is_ok() && !is_damage(copy.status())) return copy.status();
    if (copy.is_ok()) needed = std::min(needed, oldest(*copy));
  }
  std::erase_if(*undo, [&](const journal::UndoName& each) { return each.generation >= needed; });
  return undo;
}

}  // namespace tailrace::checkpoint
