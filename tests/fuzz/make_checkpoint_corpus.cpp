// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Writes the small copies with which fuzzing begins: make_checkpoint_corpus DIRECTORY. They are the same each
// time.
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "faces/checkpoint/copy.hpp"
#include "faces/checkpoint/saving.hpp"
#include "ground/base/checksum.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::checkpoint;

constexpr int ranks = 2;

void must(const Status& status) {
  if (status.is_ok()) return;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  std::exit(1);
}
template <typename T>
T must(Result<T> result) {
  must(result.status());
  return *std::move(result);
}

SaveId id_of(std::int64_t generation) {
  SaveId id;
  for (std::size_t i = 0; i < id.run.bytes.size(); ++i) id.run.bytes[i] = static_cast<std::uint8_t>(i + 1);
  id.generation = generation;
  return id;
}

/// One item. All ranks' arrays have the same numbers.
struct Source {
  std::string name;
  ElementType type;
  std::vector<Index> shape;  // empty: a scalar
  bool cyclic = false;

  [[nodiscard]] SaveItem item(int rank, std::vector<double>& values) const {
    static const std::vector<Index> no_halo;
    const std::vector<Index> extents = shape.empty() ? std::vector<Index>{1} : shape;
    const layout::Layout owners =
        shape.empty() ? must(layout::Layout::replicated(extents, ranks))
        : cyclic ? must(layout::Layout::block_cyclic(extents, ranks, std::vector<Index>(extents.size(), 2)))
                 : must(layout::Layout::block(extents, ranks));
    arrays::Array array;
    array.data = std::as_writable_bytes(std::span(values)).data();
    array.type = type;
    array.layout = &owners;
    array.halo = &no_halo;
    SaveItem saved;
    saved.info = {name, type, shape};
    saved.owned = must(arrays::find_owned(array, rank));
    saved.data = array.data;
    return saved;
  }
};

void save(storage::Target& target, const std::string& path, Compression compression,
          const std::vector<Source>& sources, bool commit) {
  std::vector<double> values(4096);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 280.0 + 0.25 * static_cast<double>(i);
  const SavePlan plan{path, Mode::parallel, id_of(3), compression, 1'772'323'200};
  std::vector<std::unique_ptr<Saving>> all;
  std::vector<Bytes> sizes;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<SaveItem> items;
    for (const Source& source : sources) items.push_back(source.item(rank, values));
    all.push_back(std::make_unique<Saving>(target, plan, rank, ranks, std::move(items)));
    sizes.push_back(all.back()->part_bytes());
  }
  Bytes before = 0;
  for (const auto& each : all) {
    each->place_behind(before);
    before += each->placed_bytes();
    if (each == all.front()) each->place(sizes);
    each->set_outputs(ByteVector(5, std::byte{9}));
    must(each->write());
    must(each->seal());
  }
  if (commit) must(all.front()->commit());
  for (const auto& each : all) must(each->close());
}

/// Writes a copy with blocks of 64 bytes, which no real save of so little data has.
void save_small_blocks(storage::Target& target, const std::string& path) {
  Table table{id_of(1), 0, 1, Coding::raw, 64, {{{0, 40, 0, 1}}, {{0, 3, 5, 4}, {3, 2, 5, 4}}}, {}};
  const std::vector<ItemInfo> items = {{"x", ElementType::f64, {40}}, {"y", ElementType::c128, {4, 5}}};
  const ByteVector data(640, std::byte{1});
  for (std::int32_t i = 0; i < 2; ++i) {
    PartItem item{i, i, 320 * i, 320, {}};
    for (std::int64_t b = 0; b < 5; ++b) {
      const auto block = std::span(data).subspan(static_cast<std::size_t>(320 * i + 64 * b), 64);
      item.blocks.push_back({block_checksum(block, table.id, 0, i, b), 64});
    }
    table.items.push_back(std::move(item));
  }
  const ByteVector encoded = encode(table);
  const auto table_bytes = static_cast<Bytes>(encoded.size());
  const ByteVector footer = encode(Footer{table.id, 0, 1, {640, table_bytes, checksum(encoded)}});
  const Bytes part = 640 + table_bytes + Footer::size;
  const ByteVector directory = encode(Directory{table.id, items, {{Header::size, part}}, {}});
  const Header header{
      table.id,      Mode::parallel,
      true,          1,
      1'772'323'200, {Header::size + part, static_cast<Bytes>(directory.size()), checksum(directory)}};
  const auto file = must(target.open(path, storage::OpenMode::create));
  Bytes at = Header::size;
  must(file->write(encode(header), 0));
  for (const ByteVector* bytes : {&data, &encoded, &footer, &directory}) {
    must(file->write(*bytes, at));
    at += static_cast<Bytes>(bytes->size());
  }
}

/// Writes the structures of a copy into files of their own.
void cut_out(storage::Target& target, const std::string& path, const std::string& directory) {
  const Copy copy = must(read_copy(target, path));
  const auto put = [&](const char* name, const ByteVector& bytes) {
    must(must(target.open(directory + name, storage::OpenMode::create))->write(bytes, 0));
  };
  put("header", encode(copy.header));
  put("directory", encode(copy.directory));
  put("table", encode(copy.tables[1]));
  put("footer", encode(Footer{copy.header.id, 1, 2, {192, 300, 5}}));
}

/// Makes a copy that says that the table of its last part is at the largest possible offset.
void misplace_table(storage::Target& target, const std::string& from, const std::string& path) {
  const Copy copy = must(read_copy(target, from));
  const auto source = must(target.open(from, storage::OpenMode::read));
  ByteVector bytes(static_cast<std::size_t>(must(source->size())));
  must(source->read(bytes, 0));
  const PartPlace& last = copy.directory.parts.back();
  const ByteVector footer =
      encode(Footer{copy.header.id, 1, 2, {std::numeric_limits<Bytes>::max() - 100, 100, 0}});
  const auto file = must(target.open(path, storage::OpenMode::create));
  must(file->write(bytes, 0));
  must(file->write(footer, last.offset + last.bytes - Footer::size));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string directory = std::string(argv[1]) + "/";
  const auto target = storage::posix_target();
  const std::vector<Source> some = {{"step", ElementType::i64, {}},
                                    {"t", ElementType::f64, {6, 5}},
                                    {"wave", ElementType::c64, {7}, true},
                                    {"mask", ElementType::byte, {3, 3}, true},
                                    {"none", ElementType::f32, {0, 4}}};
  const std::vector<Source> smooth = {{"t", ElementType::f64, {32, 16}},
                                      {"s", ElementType::i16, {300}, true}};
  save(*target, directory + "raw", {}, some, true);
  save(*target, directory + "sealed", {}, some, false);
  save(*target, directory + "zstd", must(parse_compression("zstd")), smooth, true);
  save(*target, directory + "lz4", must(parse_compression("lz4")), smooth, true);
  save_small_blocks(*target, directory + "small_blocks");
  misplace_table(*target, directory + "raw", directory + "far_table");
  cut_out(*target, directory + "raw", directory);
  return 0;
}
