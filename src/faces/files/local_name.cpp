// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/local_name.hpp"

#include <cctype>
#include <cerrno>
#include <charconv>
#include <optional>

#include "faces/files/sidecar.hpp"
#include "ground/base/text.hpp"

namespace tailrace::files {

namespace {

/// A pattern, taken apart into text, rank, text.
struct Parts {
  std::string before;
  std::string after;
  bool has_rank = false;
  bool zeros = false;
  std::size_t width = 0;

  [[nodiscard]] std::string name(std::int64_t rank) const {
    if (!has_rank) return before;
    std::string digits = cat(rank);
    if (digits.size() < width) digits.insert(0, width - digits.size(), zeros ? '0' : ' ');
    return before + digits + after;
  }
};

constexpr std::size_t widest = 19;       // digits of a 64-bit number
constexpr std::size_t width_behind = 4;  // of the rank behind a name that lacks it

Status refuse(std::string_view pattern, std::string_view why) {
  return {Code::argument, cat("the name \"", pattern, "\" of local files ", why), EINVAL};
}

/// Reads the conversion that begins at pattern[at], just behind the percent sign.
Status read_conversion(std::string_view pattern, std::size_t& at, Parts& parts) {
  const std::size_t begin = at;
  parts.zeros = at < pattern.size() && pattern[at] == '0';
  while (at < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[at])) != 0) ++at;
  parts.width = 0;
  std::from_chars(pattern.data() + begin, pattern.data() + at, parts.width);
  if (at == pattern.size() || pattern[at] != 'd')
    return refuse(pattern, cat("has the conversion %", pattern.substr(begin, at + 1 - begin),
                               "; only %d stands for the rank, with a width as in %04d, and %% for %"));
  if (parts.width > widest) return refuse(pattern, cat("has a width above ", widest));
  if (parts.has_rank) return refuse(pattern, "has the rank twice");
  parts.has_rank = true;
  ++at;
  return {};
}

Result<Parts> take_apart(std::string_view pattern) {
  Parts parts;
  for (std::size_t at = 0; at < pattern.size();) {
    const char letter = pattern[at++];
    std::string& text = parts.has_rank ? parts.after : parts.before;
    if (letter != '%') {
      text += letter;
    } else if (at < pattern.size() && pattern[at] == '%') {
      text += '%';
      ++at;
    } else {
      TR_TRY(read_conversion(pattern, at, parts));
    }
  }
  return parts;
}

/// Returns the rank for which the pattern gives `name`.
std::optional<std::int64_t> rank_of(const std::string& name, const Parts& parts) {
  if (name.size() <= parts.before.size() + parts.after.size()) return std::nullopt;
  const char* const begin = name.data() + parts.before.size();
  const char* first = begin;
  while (first < name.data() + name.size() && *first == ' ') ++first;
  std::int64_t rank = -1;
  if (std::from_chars(first, name.data() + name.size() - parts.after.size(), rank).ec != std::errc{})
    return std::nullopt;
  return parts.name(rank) == name ? std::optional(rank) : std::nullopt;
}

/// Returns the parts of `pattern`. If the pattern lacks the rank, it comes behind the end.
Result<Parts> with_rank(std::string_view pattern) {
  Result<Parts> parts = take_apart(pattern);
  if (parts.is_ok() && !parts->has_rank) *parts = {parts->before + '.', "", true, true, width_behind};
  return parts;
}

/// Returns the directory of a pattern's files, with the slash, or "".
Result<std::string> directory_of(const std::string& pattern) {
  std::string directory = pattern.substr(0, pattern.rfind('/') + 1);  // npos + 1 is 0
  if (directory.find('%') == std::string::npos) return directory;
  return refuse(pattern, "has a % in the name of a directory; work on these files one by one");
}

}  // namespace

Result<std::string> local_name(std::string_view pattern, int rank, int ranks) {
  const Result<Parts> parts = ranks > 1 ? with_rank(pattern) : take_apart(pattern);
  TR_TRY(parts.status());
  return parts->name(rank);
}

Result<std::vector<LocalFile>> local_files(storage::Target& target, const std::string& pattern) {
  const Result<std::string> directory = directory_of(pattern);
  TR_TRY(directory.status());
  const std::string in_directory = pattern.substr(directory->size());
  const Result<Parts> given = take_apart(in_directory);
  TR_TRY(given.status());
  const Result<Parts> parts = with_rank(in_directory);
  TR_TRY(parts.status());
  const Result<std::vector<std::string>> names = target.list(directory->empty() ? "." : *directory);
  TR_TRY(names.status());
  std::vector<LocalFile> found;
  for (const std::string& name : *names) {
    const std::optional<std::int64_t> rank = rank_of(name, *parts);
    if (rank || (!given->has_rank && name == given->before)) found.push_back({*directory + name, rank});
  }
  return found;
}

Result<std::vector<LocalFile>> local_file_of(storage::Target& target, const std::string& pattern, int rank,
                                             int ranks) {
  const Result<std::string> name = local_name(pattern, rank, ranks);
  TR_TRY(name.status());
  const Result<bool> exists = target.exists(*name);
  TR_TRY(exists.status());
  std::vector<LocalFile> found;
  if (*exists) found.push_back({*name, rank});
  return found;
}

Result<std::string> local_name_as(const LocalFile& file, const std::string& pattern) {
  const Result<Parts> parts = file.rank ? with_rank(pattern) : take_apart(pattern);
  TR_TRY(parts.status());
  if (!file.rank && parts->has_rank)
    return refuse(pattern, cat("has the rank, and the name of ", file.path, " has none"));
  return parts->name(file.rank.value_or(0));
}

Status remove_local(storage::Target& target, const LocalFile& file) {
  const Status removed = target.remove(file.path);
  const Status beside = remove_sidecar(target, file.path);
  return removed.is_ok() || removed.error_number() == ENOENT ? beside : removed;
}

}  // namespace tailrace::files
