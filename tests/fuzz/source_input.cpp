// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "formats/index/index.hpp"
#include "formats/opening/open.hpp"
#include "formats/sources/front_end.hpp"
#include "formats/sources/inventory_file.hpp"
#include "formats/sources/source.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"
#include "inputs.hpp"

namespace tailrace::fuzz {

namespace {

using namespace sources;

/// Larger grids are not read: a constant field of 100 bytes may have 4e9 points. Programs compare grids
/// before they read.
constexpr Index most_points = 65536;
/// Further records are not read: a small file may list very many, which differ only in their places.
constexpr std::size_t most_reads = 64;
constexpr const char* path = "a";

bool read_record(const Source& source, const Record& record) {
  const Result<std::optional<Traits>> traits = source.traits(record, {{"centre", "98"}});
  must(!traits.is_ok() || !*traits || (*traits)->answers.size() == 1,
       "each key that is asked for is answered");
  const Grid& grid = source.inventory().grids.at(static_cast<std::size_t>(record.grid));
  const Index points = layout::product(grid.shape);
  if (points > most_points) return false;
  Scratch scratch;
  std::vector<double> all(static_cast<std::size_t>(points));
  layout::Box box{std::vector<Index>(grid.shape.size(), 0), grid.shape};
  const Result<Index> missing = source.read(record.place, grid, box, ElementType::f64,
                                            reinterpret_cast<std::byte*>(all.data()), scratch);
  if (!missing.is_ok()) return false;
  must(*missing >= 0 && *missing <= points, "no more values are missing than there are points");
  const auto used = static_cast<Bytes>(scratch.bytes.size() + scratch.decoded.size());
  must(used <= source.scratch_bound(record.place, grid), "a read takes no more memory than it says");
  if (points < 2) return true;
  box.lower.back() = box.upper.back() / 2;
  std::vector<float> part(static_cast<std::size_t>(points));
  const Result<Index> fewer = source.read(record.place, grid, box, ElementType::f32,
                                          reinterpret_cast<std::byte*>(part.data()), scratch);
  must(fewer.is_ok() && *fewer <= *missing, "a part is read where the whole is");
  return true;
}

bool read_records(const Source& source) {
  const std::vector<Record>& records = source.inventory().records;
  bool all_read = !records.empty();
  for (std::size_t i = 0; i < records.size() && i < most_reads; ++i)
    all_read = read_record(source, records[i]) && all_read;
  if (records.size() > most_reads) all_read = read_record(source, records.back()) && all_read;
  return all_read;
}

/// Writes the checksum of all bytes before it to the last 8 bytes.
void seal(std::span<std::byte> bytes, std::uint64_t seed) {
  const std::uint64_t sum = checksum(bytes.first(bytes.size() - sizeof seed), seed);
  std::memcpy(&bytes[bytes.size() - sizeof sum], &sum, sizeof sum);
}

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
  Number number{};
  if (at + sizeof number <= bytes.size()) std::memcpy(&number, &bytes[at], sizeof number);
  return number;
}

/// Returns an index with right checksums: seals its header and records, as long as each has the length that
/// it says, and chains them.
ByteVector sealed_index(std::span<const std::byte> input) {
  ByteVector index(input.begin(), input.end());
  std::span<std::byte> rest(index);
  std::uint64_t file = 0, previous = 0;
  for (std::size_t length_at = 12, least = 40; rest.size() >= least; length_at = 4) {
    const std::size_t length = number_at<std::uint32_t>(rest, length_at);
    if (length < least || length > rest.size()) break;
    const auto record = rest.first(length);
    if (length_at == 4) std::memcpy(&record[8], &previous, sizeof previous);
    seal(record, file);
    previous = number_at<std::uint64_t>(record, length - 8);
    if (length_at != 4) file = previous;
    rest = rest.subspan(length);
  }
  return index;
}

void read_index(std::span<const std::byte> bytes) {
  const Result<streams::IndexContents> read = streams::decode_index(bytes);
  if (!read.is_ok()) return;
  ByteVector again = streams::encode_header(read->header);
  streams::IndexChain chain = streams::first_chain(again);
  for (const streams::IndexStep& step : read->steps) {
    const ByteVector record = streams::encode_step(step, chain);
    chain = streams::next_chain(chain, record);
    again.insert(again.end(), record.begin(), record.end());
  }
  const Result<streams::IndexContents> once_more = streams::decode_index(again);
  must(once_more.is_ok() && once_more->header == read->header && once_more->steps == read->steps,
       "an index stays what it is");
}

/// Reads the file by an inventory, which may be that of another file.
void read_inventory(const std::shared_ptr<storage::Target>& target, std::span<const std::byte> bytes) {
  Result<KeptInventory> kept = decode_inventory(bytes);
  if (!kept.is_ok()) return;
  must(decode_inventory(encode_inventory(*kept)).is_ok(),
       "an inventory that was read can be written and read");
  const Result<Opening> opening = look_at(target, path);
  if (!opening.is_ok()) return;
  const Result<const FrontEnd*> front_end = front_end_of(*opening);
  if (!front_end.is_ok() || (*front_end)->maker == nullptr) return;
  const auto source = (*front_end)->make(*opening, std::move(kept->inventory));
  if (source.is_ok()) read_records(**source);
}

void put(storage::Target& target, const std::string& name, std::span<const std::byte> bytes) {
  if (const std::size_t slash = name.rfind('/'); slash != std::string::npos)
    (void)target.make_directories(name.substr(0, slash));
  const auto file = target.open(name, storage::OpenMode::create);
  if (file.is_ok()) must((*file)->write(bytes, 0).is_ok(), "memory takes bytes");
}

}  // namespace

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::vector<Piece> pieces_of(std::span<const std::byte> input) {
  constexpr std::string_view mark = "\n=== ";
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  if (!text.starts_with(mark.substr(1))) return {{"", input}};
  std::vector<Piece> pieces;
  for (std::size_t at = mark.size() - 1; at < text.size();) {
    const std::size_t line = std::min(text.find('\n', at), text.size());
    const std::size_t begin = std::min(line + 1, text.size()),
                      end = std::min(text.find(mark, line), text.size());
    const std::size_t length = end > begin ? end - begin : 0;
    pieces.push_back({text.substr(at, line - at), input.subspan(begin, length)});
    at = end + mark.size();
  }
  return pieces;
}

bool read_source_input(std::span<const std::byte> bytes) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const std::vector<Piece> pieces = pieces_of(bytes);
  for (const Piece& piece : pieces) {
    if (piece.name == "index") {
      const ByteVector index = sealed_index(piece.bytes);
      read_index(index);
      put(*target, streams::index_path(path), index);
    } else if (piece.name != "inventory") {
      put(*target, piece.name.empty() ? path : cat(path, "/", piece.name), piece.bytes);
    }
  }
  for (const Piece& piece : pieces) {
    if (piece.name == "inventory" || pieces.size() == 1) read_inventory(target, piece.bytes);
  }
  const auto source = open(target, path, "");
  return source.is_ok() && read_records(**source);
}

}  // namespace tailrace::fuzz
