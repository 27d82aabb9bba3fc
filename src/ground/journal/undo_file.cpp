// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/undo_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/ranges.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::journal {

namespace {

/// A device writes a whole sector at once: writing a head or a tail again harms no neighbour.
constexpr Bytes sector = 512;
/// The longest head. It has a path in it, of at most 4096 bytes (PATH_MAX).
constexpr Bytes longest_head = 16 * sector;
constexpr std::string_view head_magic = "TRUNDOH1";
constexpr std::string_view tail_magic = "TRUNDOT1";

/// The longest record that is written. A length beyond it comes from a damaged or foreign head, and must not
/// make the reader allocate memory.
constexpr Bytes longest_record = Bytes{1} << 30;

constexpr Bytes padded(Bytes bytes) { return (bytes + sector - 1) / sector * sector; }

Status lost(const std::string& text) { return {Code::corrupt, text, EIO}; }

/// Reads the number at the beginning of `text`, up to `end`, and removes both from `text`.
template <typename Number>
bool take_number(std::string_view& text, std::string_view end, int base, Number& number) {
  const std::size_t length = end.empty() ? text.size() : text.find(end);
  if (length == std::string_view::npos || length == 0 || text.front() == '-') return false;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + length, number, base);
  if (error != std::errc{} || stop != text.data() + length) return false;
  text.remove_prefix(length + end.size());
  return true;
}

}  // namespace

std::uint64_t undo_key(const std::string& path) {
  const std::string tidy = storage::tidy_path(path);
  return checksum(std::as_bytes(std::span(tidy)));
}

std::string undo_path(const std::string& name, std::int64_t generation, std::uint64_t key,
                      std::int64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(key));
  return cat(name, ".u", generation, ".", text, ".", number);
}

Result<std::vector<UndoName>> find_undo_files(storage::Target& target, const std::string& name) {
  const std::string directory = name.substr(0, name.rfind('/') + 1);  // npos + 1 is 0
  const std::string begin = cat(name.substr(directory.size()), ".u");
  const Result<std::vector<std::string>> names = target.list(storage::parent_of(storage::tidy_path(name)));
  std::vector<UndoName> found;
  if (names.status().error_number() == ENOENT) return found;
  TR_TRY(names.status());
  for (const std::string& each : *names) {
    if (!each.starts_with(begin)) continue;
    UndoName undo{cat(directory, each)};
    std::string_view rest = std::string_view(each).substr(begin.size());
    if (take_number(rest, ".", 10, undo.generation) && take_number(rest, ".", 16, undo.key) &&
        take_number(rest, "", 10, undo.number) && undo.generation <= most_generation &&
        undo.path == undo_path(name, undo.generation, undo.key, undo.number))
      found.push_back(std::move(undo));
  }
  std::ranges::sort(found, std::ranges::greater(),
                    [](const UndoName& each) { return std::tuple(each.generation, each.number, each.key); });
  return found;
}

std::vector<UndoName> undo_files_of(const Position& file, std::int64_t generation,
                                    const std::vector<UndoName>& all) {
  const std::uint64_t key = undo_key(file.path);
  const std::int64_t since = file.since > 0 ? file.since : generation;
  std::vector<UndoName> found = all;
  std::erase_if(found, [&](const UndoName& each) { return each.key != key || each.generation < since; });
  return found;
}

/// The head of a record. It stands before the record's bytes, and again behind them once the record is
/// sealed.
struct UndoHead {
  std::int64_t generation = 0;
  std::int64_t number = 0;
  UndoRecord::What what = UndoRecord::What::bytes;
  Bytes offset = 0;
  Bytes length = 0;
  std::uint64_t sum = 0;
  std::string path;

  [[nodiscard]] Bytes size() const {
    return padded(static_cast<Bytes>(head_magic.size() + 4 + 5 * sizeof(std::int64_t) + 8 + path.size() + 8));
  }
  [[nodiscard]] ByteVector encode(std::string_view magic) const {
    Packer out;
    for (const char letter : magic) out.put(letter);
    out.put(static_cast<std::int32_t>(what)).put(generation).put(number).put(offset).put(length).put(sum);
    out.put_text(path);
    out.put(checksum(out.bytes()));
    ByteVector bytes = out.take();
    bytes.resize(static_cast<std::size_t>(padded(static_cast<Bytes>(bytes.size()))));
    return bytes;
  }
  static std::optional<UndoHead> decode(std::span<const std::byte> bytes, std::string_view magic) {
    Unpacker in(bytes);
    for (const char letter : magic) {
      if (in.get<char>() != letter) return {};
    }
    UndoHead head;
    head.what = static_cast<UndoRecord::What>(in.get<std::int32_t>());
    head.generation = in.get<std::int64_t>();
    head.number = in.get<std::int64_t>();
    head.offset = in.get<Bytes>();
    head.length = in.get<Bytes>();
    head.sum = in.get<std::uint64_t>();
    head.path = in.get_text();
    const std::size_t covered = bytes.size() - in.rest().size();
    const bool good = in.get<std::uint64_t>() == checksum(bytes.first(covered)) && in.ok();
    if (!good || head.offset < 0 || head.length < 0 || head.length > longest_record) return {};
    return head;
  }
};

namespace {

constexpr unsigned for_owner = S_IRUSR | S_IWUSR;

/// Gives the readers and writers of a file with rights `file` access to an undo file, which so far only its
/// owner has. If the undo file cannot get that file's group, its own group and everybody get the rights that
/// the file grants to both its group and everybody. A file with an access control list grants more than its
/// permissions show: then nobody gets access.
void open_as(const std::optional<storage::Rights>& file, storage::File& undo) {
  const std::optional<storage::Rights> own = undo.rights();
  if (!file || !own || file->has_list) return;
  const bool has_group = own->group == file->group || undo.set_owner({}, file->group).is_ok();
  unsigned granted = file->permissions & storage::usual_permissions;
  if (!has_group) {
    const unsigned everybody = granted & granted >> 3 & S_IRWXO;
    granted = everybody | everybody << 3;
  }
  (void)undo.set_permissions(granted | for_owner).is_ok();
}

}  // namespace

Result<std::unique_ptr<UndoWriter>> UndoWriter::create(storage::Target& target, const std::string& name,
                                                       std::int64_t generation, const std::string& path,
                                                       Numbers numbers,
                                                       const std::optional<storage::Rights>& rights) {
  UndoName own{"", generation, undo_key(path), numbers.first};
  // Takes the first free number: an earlier run that continued from the same generation may have left undo
  // files, which also count.
  for (;; own.number += numbers.step) {
    own.path = undo_path(name, generation, own.key, own.number);
    const Result<bool> exists = target.exists(own.path);
    TR_TRY(exists.status());
    if (!*exists) break;
  }
  Result<std::unique_ptr<storage::File>> file = target.open(own.path, storage::OpenMode::anew, for_owner);
  TR_TRY(file.status());
  open_as(rights, **file);
  return std::unique_ptr<UndoWriter>(
      new UndoWriter(target, std::move(own), storage::tidy_path(path), std::move(*file)));
}

Status UndoWriter::add(UndoRecord::What what, Bytes offset, std::span<const std::byte> bytes) {
  if (static_cast<Bytes>(bytes.size()) > longest_record)
    return {Code::argument, cat(name_.path, ": a record of ", counted(bytes.size(), "byte"),
                                " is longer than ", longest_record, ", and would not be read again")};
  const UndoHead head{name_.generation, records_, what, offset, static_cast<Bytes>(bytes.size()),
                      checksum(bytes),  path_};
  const ByteVector ahead = head.encode(head_magic);
  const std::span<const std::byte> parts[] = {ahead, bytes};
  TR_TRY(file_->write_gathered(parts, end_));
  const Bytes behind = end_ + head.size() + padded(head.length);
  tails_.push_back({behind, head.encode(tail_magic)});
  end_ = behind + head.size();
  ++records_;
  return {};
}

Status UndoWriter::seal() {
  if (tails_.empty()) return {};
  TR_TRY(file_->sync());
  if (!has_name_) TR_TRY(target_.sync_directory_of(name_.path));
  has_name_ = true;
  // The tails do not need to be durable. They only tell a damaged record from a record that a loss of power
  // has torn before it counted.
  for (const Tail& tail : tails_) TR_TRY(file_->write(tail.bytes, tail.offset));
  tails_.clear();
  sealed_ = end_;
  return {};
}

void UndoWriter::take_back() {
  if (sealed_ == 0)
    (void)target_.remove(name_.path).is_ok();
  else
    (void)storage::cut_back(*file_, sealed_).is_ok();
}

Result<UndoReader> UndoReader::open(storage::Target& target, const UndoName& name) {
  Result<std::unique_ptr<storage::File>> file = target.open(name.path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  return UndoReader(name, std::move(*file), *size);
}

Status UndoReader::damaged(const std::string& what) const {
  return lost(cat(name_.path, " is damaged: ", what));
}

Result<std::optional<UndoHead>> UndoReader::head_at(Bytes at, bool tail) {
  ByteVector bytes(static_cast<std::size_t>(std::clamp(size_ - at, Bytes{0}, longest_head)));
  const Result<Bytes> got = file_->read(bytes, at);
  TR_TRY(got.status());
  bytes.resize(static_cast<std::size_t>(*got));
  std::optional<UndoHead> head = UndoHead::decode(bytes, tail ? tail_magic : head_magic);
  if (head && head->length > size_) head.reset();
  return head;
}

/// Finds the first tail of this record, or of a later one, wherever it lies. Skips holes, and reads the rest
/// in large pieces, because a file may be a thousand times as long as its contents.
Result<std::optional<UndoHead>> UndoReader::find_tail() {
  ByteVector piece(static_cast<std::size_t>(std::clamp(size_ - at_, Bytes{0}, Bytes{1} << 20)));
  for (Bytes at = at_; at < size_;) {
    at = std::max(at, file_->next_data(at) / sector * sector);
    if (at >= size_) break;
    const Result<Bytes> got = file_->read(piece, at);
    TR_TRY(got.status());
    for (Bytes i = 0; i + std::ssize(tail_magic) <= *got; i += sector) {
      if (std::memcmp(piece.data() + i, tail_magic.data(), tail_magic.size()) != 0) continue;
      Result<std::optional<UndoHead>> tail = head_at(at + i, true);
      TR_TRY(tail.status());
      if (!*tail || (*tail)->number < records_) continue;
      const bool fits =
          (*tail)->number == records_ && at + i == at_ + (*tail)->size() + padded((*tail)->length);
      if (!fits) return damaged(cat("record ", records_, " is not there"));
      return tail;
    }
    if (*got < std::ssize(piece)) break;
    at += *got;
  }
  return std::optional<UndoHead>();
}

/// Returns a record, or nothing if its bytes do not match its head.
Result<std::optional<UndoRecord>> UndoReader::read(const UndoHead& head) {
  const Bytes begin = at_ + head.size();
  if (head.length > size_ - begin) return std::optional<UndoRecord>();
  UndoRecord record{head.what, head.path, head.offset, ByteVector(static_cast<std::size_t>(head.length))};
  const Result<Bytes> got = file_->read(record.bytes, begin);
  TR_TRY(got.status());
  if (*got < head.length || checksum(record.bytes) != head.sum) return std::optional<UndoRecord>();
  return std::optional(std::move(record));
}

Result<std::optional<UndoRecord>> UndoReader::next() {
  Result<std::optional<UndoHead>> head = head_at(at_, false);
  TR_TRY(head.status());
  const bool has_head = head->has_value();
  if (!has_head) {
    // Either the file ends here or this record is damaged. A record that counts has a tail.
    head = find_tail();
    TR_TRY(head.status());
    if (!*head) return std::optional<UndoRecord>();
  }
  if ((*head)->generation != name_.generation)
    return damaged(cat("it is of generation ", (*head)->generation));
  if ((*head)->number != records_) return damaged(cat("record ", records_, " is not there"));
  Result<std::optional<UndoRecord>> record = read(**head);
  TR_TRY(record.status());
  if (!*record) {
    const Result<std::optional<UndoHead>> tail = find_tail();
    TR_TRY(tail.status());
    if (*tail) return damaged(cat("the bytes of record ", records_, " are not those that were kept"));
    return record;
  }
  at_ += 2 * (*head)->size() + padded((*head)->length);
  ++records_;
  return record;
}

namespace {

template <typename Body>
Status for_each_record(storage::Target& target, const Position& from, UndoRecord::What what,
                       const Body& body) {
  const std::string path = storage::tidy_path(from.path);
  for (const UndoName& name : from.undo) {
    Result<UndoReader> reader = UndoReader::open(target, name);
    TR_TRY(reader.status());
    while (true) {
      const Result<std::optional<UndoRecord>> record = reader->next();
      TR_TRY(record.status());
      if (!*record) break;
      if ((*record)->what == what && (*record)->path == path) TR_TRY(body(**record));
    }
  }
  return {};
}

/// Returns an error if the file is shorter than recorded and no undo record fills the gap. The gap must be
/// checked before any record is put back: a record behind the end makes the file long enough, and leaves a
/// hole.
Status check_end(storage::Target& target, storage::File& file, const Position& from,
                 std::string_view recorder) {
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  if (*size >= from.size) return {};
  Ranges kept;
  TR_TRY(for_each_record(target, from, UndoRecord::What::bytes, [&](const UndoRecord& record) -> Status {
    if (!record.bytes.empty()) kept.add(record.offset, record.offset + std::ssize(record.bytes));
    return {};
  }));
  if (kept.gaps(*size, from.size).empty()) return {};
  return lost(cat(from.path, " has ", counted(*size, "byte"), ", ", recorder, " has recorded ", from.size,
                  ": it cannot go on there"));
}

/// Makes the undo files durable. A process that was killed may have left undo files that were never
/// synchronised. Once their bytes are put back, the file relies on them.
Status make_durable(storage::Target& target, const Position& from) {
  for (const UndoName& name : from.undo) {
    TR_TRY(storage::sync_file(target, name.path, storage::OpenMode::read));
  }
  return from.undo.empty() ? Status() : target.sync_directory_of(from.undo.front().path);
}

}  // namespace

/// Puts the records back, newest first: the oldest record of each byte counts, and comes last.
Status bring_back(storage::Target& target, storage::File& file, const Position& from,
                  std::string_view recorder) {
  const std::string what = cat(from.path, " cannot be brought back to what ", recorder, " has recorded");
  TR_TRY(check_end(target, file, from, recorder).in(what));
  TR_TRY(make_durable(target, from).in(what));
  const Status put =
      for_each_record(target, from, UndoRecord::What::bytes, [&](const UndoRecord& record) -> Status {
        const Bytes bytes = std::min(static_cast<Bytes>(record.bytes.size()), from.size - record.offset);
        if (bytes <= 0) return {};
        return file.write(std::span(record.bytes).first(static_cast<std::size_t>(bytes)), record.offset);
      });
  TR_TRY(put.in(what));
  return storage::cut_back(file, from.size).status();
}

namespace {

/// Returns how many bytes in [begin, end) of the file are not `bytes`. Bytes that the file lacks count.
Result<Bytes> differing(storage::File& file, std::span<const std::byte> bytes, Bytes begin) {
  ByteVector there(bytes.size());
  const Result<Bytes> got = file.read(there, begin);
  TR_TRY(got.status());
  Bytes count = std::ssize(bytes) - *got;
  for (std::size_t i = 0; i < static_cast<std::size_t>(*got); ++i) count += there[i] != bytes[i] ? 1 : 0;
  return count;
}

}  // namespace

/// Goes through the records oldest first: the first record of a byte is the one that counts.
Result<Difference> difference(storage::Target& target, storage::File& file, const Position& from,
                              std::string_view recorder) {
  TR_TRY(check_end(target, file, from, recorder));
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  Difference found{*size, 0};
  Position oldest_first = from;
  std::ranges::reverse(oldest_first.undo);
  Ranges seen;
  const auto look = [&](const UndoRecord& record) -> Status {
    const Bytes end = std::min(record.offset + std::ssize(record.bytes), from.size);
    for (const auto& [begin, stop] : seen.gaps(record.offset, end)) {
      const auto part = std::span(record.bytes)
                            .subspan(static_cast<std::size_t>(begin - record.offset),
                                     static_cast<std::size_t>(stop - begin));
      const Result<Bytes> count = differing(file, part, begin);
      TR_TRY(count.status());
      found.put_back += *count;
    }
    if (record.offset < end) seen.add(record.offset, end);
    return {};
  };
  TR_TRY(for_each_record(target, oldest_first, UndoRecord::What::bytes, look));
  return found;
}

Status for_each_kept(storage::Target& target, const Position& from,
                     const std::function<Status(Bytes, std::span<const std::byte>)>& body) {
  return for_each_record(target, from, UndoRecord::What::bytes,
                         [&](const UndoRecord& record) { return body(record.offset, record.bytes); });
}

Result<std::optional<std::string>> recorded_sidecar(storage::Target& target, const Position& from) {
  std::optional<std::string> text;
  TR_TRY(for_each_record(target, from, UndoRecord::What::sidecar, [&](const UndoRecord& record) -> Status {
    text.emplace(reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size());
    return {};
  }));
  return text;
}

}  // namespace tailrace::journal
