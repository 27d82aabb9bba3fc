// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/listings/listings.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "formats/registry/registry.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::listings {

namespace {

using codec::Listing;
using storage::File;
using storage::OpenMode;
using storage::Target;

constexpr const char* new_suffix = ".new";

std::string path_of(const std::string& data_path, const Listing& kind) {
  return data_path + std::string(kind.suffix);
}

/// Returns the text of the file, at most its first `most` bytes, or an empty text if there is no file.
Result<std::string> read_text(Target& target, const std::string& path, Bytes most) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::read);
  if (file.status().error_number() == ENOENT) return std::string();
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  std::string text(static_cast<std::size_t>(std::min(*size, most)), '\0');
  const Result<Bytes> got = (*file)->read(std::as_writable_bytes(std::span(text)), 0);
  TR_TRY(got.status());
  text.resize(static_cast<std::size_t>(*got));
  return text;
}

/// Returns the lines of `records`, which are numbered from `number` on.
Result<std::string> lines_of(Target& target, const std::string& data_path, const Listing& kind,
                             std::int64_t number, Records records) {
  Result<std::unique_ptr<File>> data = target.open(data_path, OpenMode::read);
  TR_TRY(data.status());
  const codec::ReadBytes read = [&](std::span<std::byte> to, Bytes at) { return (*data)->read(to, at); };
  std::string text;
  for (const storage::Range& record : records) {
    const Result<std::string> line = kind.line(read, number++, record.offset);
    TR_TRY(line.status().in(data_path));
    text += *line;
  }
  return text;
}

/// Returns the whole listing of these records.
Result<std::string> whole_text(Target& target, const std::string& data_path, const Listing& kind,
                               Records records) {
  Result<std::string> lines = lines_of(target, data_path, kind, 1, records);
  if (!lines.is_ok() || !kind.enclosure) return lines;
  return cat(kind.enclosure->head, *lines, kind.enclosure->tail);
}

/// True if the first line of a text gives the first record the same place and length as `line` does.
bool has_same_place(const Listing& kind, std::string_view text, std::string_view line) {
  if (kind.place_key.empty()) return false;
  text = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
  const std::size_t at = text.rfind(kind.place_key);
  return at != std::string_view::npos && kind.offset_of(text.substr(0, text.size() - 1), 1) == Bytes{0} &&
         text.substr(at) == line.substr(line.rfind(kind.place_key));
}

/// True if the text begins like a listing of the data file.
Result<bool> begins_as_ours(Target& target, const std::string& data_path, const Listing& kind,
                            std::string_view text) {
  if (text.empty()) return true;
  if (kind.enclosure) return text.substr(0, 128).find(kind.enclosure->mark) != std::string_view::npos;
  constexpr storage::Range first{};
  const Result<std::string> line = lines_of(target, data_path, kind, 1, {&first, 1});
  const int error = line.status().error_number();
  if (error == ENOENT || error == EISDIR) return false;
  // Nothing is known of a data file that could not be read.
  const Code code = line.status().code();
  if (!line.is_ok() && code != Code::corrupt && code != Code::format) return line.status();
  return line.is_ok() && (text.starts_with(*line) || has_same_place(kind, text, *line));
}

/// True if there is no file, or one that begins like a listing of the data file.
Result<bool> path_is_ours(Target& target, const std::string& data_path, const Listing& kind,
                          const std::string& path) {
  constexpr Bytes longest_line = 4096;
  const Result<std::string> text = read_text(target, path, longest_line);
  const int error = text.status().error_number();
  if (error == EACCES || error == EISDIR) return false;
  TR_TRY(text.status());
  return begins_as_ours(target, data_path, kind, *text);
}

/// True if the text begins as ours do. Listings that the tool itself has written begin differently.
bool has_enclosure(const Listing& kind, std::string_view text) {
  return !kind.enclosure || text.starts_with(kind.enclosure->head);
}

/// Returns the end of the lines, from the first on, whose places are those of `records`, or 0 if there are
/// none.
std::size_t end_of_matching(const Listing& kind, std::string_view text, Records records) {
  if (!has_enclosure(kind, text)) return 0;
  const std::size_t begin = kind.enclosure ? kind.enclosure->head.size() : 0;
  std::size_t end = begin;
  std::int64_t number = 0;
  for (const storage::Range& record : records) {
    const std::string_view rest = text.substr(end);
    const std::size_t length = rest.find(kind.line_end);
    if (length == std::string_view::npos) break;
    if (kind.offset_of(rest.substr(0, length), ++number) != record.offset) break;
    end += length + kind.line_end.size();
  }
  return end == begin ? 0 : end;
}

/// Returns the length of the whole lines at the beginning in which both texts agree.
std::size_t same_lines(const Listing& kind, std::string_view one, std::string_view other) {
  const auto same = std::ranges::mismatch(one, other).in1 - one.begin();
  const std::size_t end = one.substr(0, static_cast<std::size_t>(same)).rfind(kind.line_end);
  return end == std::string_view::npos ? 0 : end + kind.line_end.size();
}

Status not_ours(const std::string& data_path, const Listing& kind) {
  return {Code::state, cat(path_of(data_path, kind), ": is not the listing of ", data_path, " that index=",
                           kind.word, " writes; move it away, lose it with existing=overwrite, or leave ",
                           kind.word, " out of index=")};
}

/// Reads a listing, which must be ours.
Result<std::string> read_ours(Target& target, const std::string& data_path, const Listing& kind) {
  constexpr Bytes most = Bytes{1} << 40;
  Result<std::string> text = read_text(target, path_of(data_path, kind), most);
  TR_TRY(text.status());
  const Result<bool> ours = begins_as_ours(target, data_path, kind, *text);
  TR_TRY(ours.status());
  if (!*ours) return not_ours(data_path, kind);
  return text;
}

Status create(Target& target, const std::string& path, std::string_view text) {
  return storage::replace_file(target, path, text, path + new_suffix);
}

/// Replaces the end of a listing, from `at` on. A listing with an enclosure has a tail at any time, for tools
/// that read it as a whole: the new end is written before the rest of the old one is cut off.
Status replace_end(Target& target, const std::string& path, const Listing& kind, Bytes at,
                   std::string_view text) {
  Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
  TR_TRY(file.status());
  if (!kind.enclosure) TR_TRY(storage::cut_back(**file, at).status());
  const Status written = text.empty() ? Status() : (*file)->write(std::as_bytes(std::span(text)), at);
  if (!written.is_ok()) {
    // On a full disk, give the space back to the data. A listing with an enclosure is useless without its
    // tail.
    if (kind.enclosure)
      static_cast<void>(storage::remove_if_there(target, path));
    else
      static_cast<void>(storage::cut_back(**file, at));
    return written;
  }
  if (kind.enclosure) TR_TRY(storage::cut_back(**file, at + static_cast<Bytes>(text.size())).status());
  TR_TRY((*file)->sync());
  return (*file)->close();
}

/// Changes a listing from `text` to `wanted`, durably. A listing with an enclosure is written even if nothing
/// differs: its tool compares ages, and the data file may have changed since.
Status bring_up_to(Target& target, const std::string& path, const Listing& kind, std::string_view text,
                   std::string_view wanted) {
  const std::size_t kept = same_lines(kind, text, wanted);
  if (kept == 0) return create(target, path, wanted);
  if (text == wanted && !kind.enclosure) return storage::make_durable(target, path);
  return replace_end(target, path, kind, static_cast<Bytes>(kept), wanted.substr(kept));
}

/// True if the first line that differs is about the same record: the tool itself has made the listing, or a
/// user has changed it.
bool says_it_otherwise(const Listing& kind, std::string_view text, std::string_view wanted) {
  // A killed cfgrib leaves an empty listing, about which it logs an error at each later open: replace it.
  if (kind.enclosure) return !text.empty() && !has_enclosure(kind, text);
  const std::size_t kept = same_lines(kind, text, wanted);
  const auto number = std::ranges::count(wanted.substr(0, kept), '\n') + 1;
  const auto offset = [&, number](std::string_view from) -> std::optional<Bytes> {
    const std::string_view line = from.substr(kept);
    const std::size_t length = line.find('\n');
    if (length == std::string_view::npos) return std::nullopt;
    return kind.offset_of(line.substr(0, length), number);
  };
  return offset(text) && offset(text) == offset(wanted);
}

/// Removes the file, durably. If a listing with an enclosure cannot be removed, only warns: the listing is
/// older than the data file, so its tool does not use it.
Status remove_path(Target& target, const std::string& path, const Listing& kind) {
  if (!kind.enclosure) return storage::remove_durably(target, path);
  const Result<bool> removed = storage::remove_if_there(target, path);
  if (removed.is_ok()) return *removed ? target.sync_directory_of(path) : Status();
  log(LogLevel::warn, cat(path,
                          ": stays, though it does not tell what its data file holds; remove it, or its "
                          "readers do without it: ",
                          removed.status().text()));
  return {};
}

/// Removes unfinished listings, which a killed process has left.
Status remove_unfinished(Target& target, const std::string& data_path) {
  for (const Listing& kind : formats::listings()) {
    const std::string path = path_of(data_path, kind) + new_suffix;
    const Result<bool> exists = target.exists(path);
    TR_TRY(exists.status());
    if (!*exists) continue;
    const Result<bool> ours = path_is_ours(target, data_path, kind, path);
    TR_TRY(ours.status());
    if (*ours) TR_TRY(remove_path(target, path, kind));
  }
  return {};
}

/// Calls `work` for each existing listing that is one of the data file.
Status for_each_of_ours(Target& target, const std::string& data_path,
                        const std::function<Status(const Listing&)>& work) {
  for (const Listing& kind : formats::listings()) {
    const Result<bool> exists = target.exists(path_of(data_path, kind));
    TR_TRY(exists.status());
    if (!*exists) continue;
    const Result<bool> ours = is_ours(target, data_path, kind);
    TR_TRY(ours.status());
    if (*ours) TR_TRY(work(kind));
  }
  return {};
}

}  // namespace

Result<bool> is_ours(Target& target, const std::string& data_path, const Listing& kind) {
  return guarded([&] { return path_is_ours(target, data_path, kind, path_of(data_path, kind)); });
}

Status check_ours(Target& target, const std::string& data_path, const std::vector<Listing>& kinds) {
  for (const Listing& kind : kinds) {
    const Result<bool> ours = is_ours(target, data_path, kind);
    TR_TRY(ours.status());
    if (*ours) continue;
    // Another user's listing that we may not read is no error: a warning at each step says that it lacks
    // lines.
    const Status readable = target.open(path_of(data_path, kind), OpenMode::read).status();
    if (!kind.enclosure || readable.error_number() != EACCES) return not_ours(data_path, kind);
  }
  return {};
}

Status check_field(const codec::Codec& codec, int field, const std::vector<Listing>& kinds) {
  if (kinds.empty()) return {};
  const ByteVector record = codec.example(field);
  const codec::ReadBytes read = [&](std::span<std::byte> to, Bytes at) -> Result<Bytes> {
    const auto rest = std::span(record).subspan(std::min(static_cast<std::size_t>(at), record.size()));
    const auto part = rest.first(std::min(rest.size(), to.size()));
    std::ranges::copy(part, to.begin());
    return static_cast<Bytes>(part.size());
  };
  for (const Listing& kind : kinds) TR_TRY(kind.line(read, 1, 0).status());
  return {};
}

Status remove(Target& target, const std::string& data_path, const Listing& kind) {
  return remove_path(target, path_of(data_path, kind), kind);
}

Status remove_all(Target& target, const std::string& data_path) {
  TR_TRY(guarded([&] { return remove_unfinished(target, data_path); }));
  return for_each_of_ours(target, data_path,
                          [&](const Listing& kind) { return remove(target, data_path, kind); });
}

Status remove_others(Target& target, const std::string& data_path, const std::vector<Listing>& kept) {
  return for_each_of_ours(target, data_path, [&](const Listing& kind) -> Status {
    if (!kind.enclosure || std::ranges::find(kept, kind.word, &Listing::word) != kept.end()) return {};
    return remove(target, data_path, kind);
  });
}

Status cut_all(Target& target, const std::string& data_path, Records kept) {
  TR_TRY(guarded([&] { return remove_unfinished(target, data_path); }));
  return for_each_of_ours(target, data_path, [&](const Listing& kind) -> Status {
    const Result<std::string> text = read_ours(target, data_path, kind);
    TR_TRY(text.status());
    const std::size_t end = end_of_matching(kind, *text, kept);
    const bool is_in_our_words = kind.enclosure && !text->empty() && has_enclosure(kind, *text);
    if (end == 0 && is_in_our_words) return storage::remove_durably(target, path_of(data_path, kind));
    if (end == 0) return remove(target, data_path, kind);
    const std::string_view tail = kind.enclosure ? kind.enclosure->tail : std::string_view();
    if (std::string_view(*text).substr(end) == tail) return {};
    return replace_end(target, path_of(data_path, kind), kind, static_cast<Bytes>(end), tail);
  });
}

Status complete_all(Target& target, const std::string& data_path, Records records) {
  if (records.empty()) return {};
  return for_each_of_ours(target, data_path, [&](const Listing& kind) {
    return guarded([&]() -> Status {
      const Result<std::string> text = read_ours(target, data_path, kind);
      TR_TRY(text.status());
      const Result<std::string> wanted = whole_text(target, data_path, kind, records);
      // Tailrace has no line for one of the records, so the tool itself made the listing.
      if (wanted.status().code() == Code::format) return {};
      TR_TRY(wanted.status());
      if (says_it_otherwise(kind, *text, *wanted)) return {};
      return bring_up_to(target, path_of(data_path, kind), kind, *text, *wanted);
    });
  });
}

Status Writer::add(Target& target, const std::string& data_path, Records step, const AllRecords& all) {
  if (!is_complete()) return complete(target, data_path, all);
  return guarded([&]() -> Status {
    const std::string path = path_of(data_path, kind_);
    const Result<std::optional<Bytes>> size = storage::size_if_there(target, path);
    TR_TRY(size.status());
    // Something else has changed it since.
    if (*size != size_) return complete(target, data_path, all);
    // A failed write may leave a part of the lines: until it has succeeded, their number counts as not known.
    const std::int64_t before = std::exchange(told_, -1);
    const Result<std::string> lines = lines_of(target, data_path, kind_, before + 1, step);
    TR_TRY(lines.status());
    const std::string_view tail = kind_.enclosure ? kind_.enclosure->tail : std::string_view();
    TR_TRY(replace_end(target, path, kind_, size_ - static_cast<Bytes>(tail.size()), cat(*lines, tail)));
    size_ += static_cast<Bytes>(lines->size());
    told_ = before + static_cast<std::int64_t>(step.size());
    return {};
  });
}

Status Writer::finish(Target& target, const std::string& data_path, const AllRecords& all) {
  if (!is_complete()) return complete(target, data_path, all);
  if (!kind_.enclosure) return {};
  return guarded([&]() -> Status {
    const std::string path = path_of(data_path, kind_);
    const Result<std::optional<Bytes>> size = storage::size_if_there(target, path);
    TR_TRY(size.status());
    // Something else has changed it since.
    if (*size != size_) return complete(target, data_path, all);
    Result<std::unique_ptr<File>> file = target.open(path, OpenMode::existing);
    TR_TRY(file.status());
    // Write the last character again, so that the listing becomes younger than the data file.
    const std::string_view last = kind_.enclosure->tail.substr(kind_.enclosure->tail.size() - 1);
    TR_TRY((*file)->write(std::as_bytes(std::span(last)), size_ - 1));
    TR_TRY((*file)->sync());
    return (*file)->close();
  });
}

Status Writer::complete(Target& target, const std::string& data_path, const AllRecords& all) {
  return guarded([&]() -> Status {
    told_ = -1;
    const Result<std::vector<storage::Range>> found = all();
    TR_TRY(found.status());
    const Records records = *found;
    if (records.empty()) return {};
    const Result<std::string> text = read_ours(target, data_path, kind_);
    TR_TRY(text.status());
    // Compare whole lines: a file that was replaced may have other records at the same places.
    const Result<std::string> wanted = whole_text(target, data_path, kind_, records);
    TR_TRY(wanted.status());
    TR_TRY(bring_up_to(target, path_of(data_path, kind_), kind_, *text, *wanted));
    size_ = static_cast<Bytes>(wanted->size());
    told_ = static_cast<std::int64_t>(records.size());
    return {};
  });
}

}  // namespace tailrace::listings
