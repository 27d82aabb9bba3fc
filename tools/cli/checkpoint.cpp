// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <complex>
#include <cstdio>
#include <cstring>
#include <exception>

#include "commands.hpp"
#include "ground/base/calendar.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cli {

namespace {

constexpr Bytes portion_bytes = Bytes{64} << 20;

template <typename T>
T value_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Returns the shortest text that reads back as the same float. The text of the same number as a double is
/// longer.
std::string real_text(float value) {
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), written.ptr};
}
std::string real_text(double value) { return cat(value); }

template <typename T>
std::string complex_text(const std::byte* bytes) {
  const auto value = value_at<std::complex<T>>(bytes);
  return cat("(", real_text(value.real()), ", ", real_text(value.imag()), ")");
}

}  // namespace

int report_checkpoint(const char* command, const Status& status) {
  std::fprintf(stderr, "tailrace checkpoint %s: %s\n", command, status.text().c_str());
  return status.code() == Code::corrupt ? Answer::differs : Answer::trouble;
}

int answer_of(const char* command, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& thrown) {
    return report_checkpoint(command, {Code::memory, thrown.what()});
  }
}

Result<std::vector<std::string>> copies_named(storage::Target& target, const std::string& text) {
  // `text` is the path of a copy if that file begins with a copy's header. Otherwise it is first taken for
  // the name of a checkpoint, which another file or a directory may have, too.
  if (checkpoint::read_header(target, text).is_ok()) return std::vector<std::string>{text};
  Result<std::vector<std::string>> copies = checkpoint::find_copies(target, text);
  TR_TRY(copies.status());
  if (!copies->empty()) return copies;
  const Result<bool> exists = target.exists(text);
  TR_TRY(exists.status());
  if (*exists) return std::vector<std::string>{text};
  return Status(Code::io, cat(text, ": no copy of a checkpoint has this path, and no checkpoint this name (",
                              text, ".0, ", text, ".1, ...)"));
}

Result<checkpoint::Copy> newest_copy(storage::Target& target, const std::string& text) {
  const Result<std::vector<std::string>> paths = copies_named(target, text);
  TR_TRY(paths.status());
  const std::vector<checkpoint::Found> all = checkpoint::look_at(target, *paths);
  for (const checkpoint::Found& found : all) {
    if (found.status.is_ok()) return checkpoint::read_copy(target, found.path);
  }
  if (all.size() == 1) {
    const Code code = is_damage(target, all[0]) ? Code::corrupt : Code::io;
    return Status(code, all[0].status.text());
  }
  std::string reasons;
  for (const checkpoint::Found& found : all) reasons += cat("\n  ", found.status.text());
  return Status(Code::corrupt, cat(text, ": none of its copies is whole:", reasons));
}

bool is_damage(storage::Target& target, const checkpoint::Found& found) {
  if (found.status.is_ok() || found.missing) return false;
  if (found.status.code() == Code::corrupt) return true;
  // A missing part is damage. A copy that this user may not read is not damaged.
  return found.status.error_number() == ENOENT && checkpoint::read_header(target, found.path).is_ok();
}

namespace {

Bytes size_of_file(storage::Target& target, const std::string& path) {
  const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
  if (!file.is_ok()) return 0;
  const Result<Bytes> size = (*file)->size();
  return size.is_ok() ? *size : 0;
}

}  // namespace

Bytes bytes_of_files(storage::Target& target, const std::string& path) {
  Bytes bytes = size_of_file(target, path);
  const Result<checkpoint::Header> header = checkpoint::read_header(target, path);
  const Result<std::vector<int>> parts = checkpoint::local_parts(target, path);
  if (!header.is_ok() || header->mode != checkpoint::Mode::local || !parts.is_ok()) return bytes;
  for (const int part : *parts) {
    if (part < header->parts)
      bytes += size_of_file(target, checkpoint::part_path(path, checkpoint::Mode::local, part));
  }
  return bytes;
}

std::string saved_text(std::int64_t saved_at) {
  // A damaged header with a right checksum may hold any number, but format_time() needs years of four digits.
  constexpr std::int64_t most = 253402300799;
  if (saved_at < 0 || saved_at > most) return cat(saved_at, " s");
  return format_time(from_seconds(saved_at, Calendar::proleptic_gregorian));
}

std::string_view mode_text(checkpoint::Mode mode) {
  return mode == checkpoint::Mode::local ? "local" : "parallel";
}

Status read_elements(checkpoint::CopyReader& reader, const checkpoint::Copy& copy, int item, Index begin,
                     Index count, std::byte* out) {
  if (count == 0) return {};
  const Bytes element = size_of(copy.directory.items[static_cast<std::size_t>(item)].type);
  const std::array<layout::Rows, 1> rows = {layout::Rows{begin, count, 0, 1}};
  const layout::MemoryMap memory{element, 0, {{0, {{count, element}}}}};
  return reader.read(item, layout::TransferMap::make(rows, memory), out);
}

Index elements_at_once(ElementType type) { return portion_bytes / size_of(type); }

std::string value_text(ElementType type, const std::byte* value) {
  if (is_text(type)) {
    const std::string_view text(reinterpret_cast<const char*>(value),
                                static_cast<std::size_t>(size_of(type)));
    return cat('"', text.substr(0, text.find('\0')), '"');
  }
  switch (type) {
    case ElementType::i8:
      return std::to_string(value_at<std::int8_t>(value));
    case ElementType::i16:
      return std::to_string(value_at<std::int16_t>(value));
    case ElementType::i32:
      return std::to_string(value_at<std::int32_t>(value));
    case ElementType::i64:
      return std::to_string(value_at<std::int64_t>(value));
    case ElementType::f32:
      return real_text(value_at<float>(value));
    case ElementType::f64:
      return cat(value_at<double>(value));
    case ElementType::c64:
      return complex_text<float>(value);
    case ElementType::c128:
      return complex_text<double>(value);
    case ElementType::byte:
      return std::to_string(value_at<std::uint8_t>(value));
    case ElementType::u16:
      return std::to_string(value_at<std::uint16_t>(value));
    case ElementType::u32:
      return std::to_string(value_at<std::uint32_t>(value));
    case ElementType::u64:
      return std::to_string(value_at<std::uint64_t>(value));
  }
  return "?";
}

std::string index_text(const std::vector<Index>& shape, Index element) {
  std::string text;
  for (std::size_t d = shape.size(); d-- > 0;) {
    text = cat(element % shape[d], text.empty() ? "" : ", ", text);
    element /= shape[d];
  }
  return cat("(", text, ")");
}

void add_checkpoint(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("checkpoint", "Looks after the copies of checkpoints");
  command->require_subcommand(1);
  command->footer(
      "A checkpoint is named as in tr_checkpoint_create; its copies are NAME.0, NAME.1, ... and NAME.gN. "
      "Where\n"
      "NAME-or-PATH is asked for, the path of one copy is taken, too.\n\n"
      "Exit codes: 0 fine, 1 damaged or different, 2 usage, unreadable or locked\n\n"
      "Examples:\n"
      "  tailrace checkpoint ls run/state\n"
      "  tailrace checkpoint verify run/state && tailrace checkpoint prune run/state --keep 3");
  add_checkpoint_ls(*command, exit);
  add_checkpoint_show(*command, exit);
  add_checkpoint_verify(*command, exit);
  add_checkpoint_diff(*command, exit);
  add_checkpoint_extract(*command, exit);
  add_checkpoint_prune(*command, exit);
  add_checkpoint_forget(*command, exit);
}

}  // namespace tailrace::cli
