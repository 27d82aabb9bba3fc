// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "copy_input.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "faces/checkpoint/copy.hpp"

namespace tailrace::fuzz {

namespace {

using namespace checkpoint;

/// Items with more elements are not read: no input has bytes for so many.
constexpr Index most_elements = Index{1} << 24;

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void decode_all(std::span<const std::byte> bytes) {
  if (const Result<Header> header = decode_header(bytes); header.is_ok())
    must(decode_header(encode(*header)).is_ok(), "a header that was read can be written and read");
  if (const Result<Directory> directory = decode_directory(bytes); directory.is_ok())
    must(encode(*decode_directory(encode(*directory))) == encode(*directory), "a directory stays what it is");
  const auto size = static_cast<Bytes>(bytes.size());
  if (const Result<Table> table = decode_table(bytes, size); table.is_ok())
    must(encode(*decode_table(encode(*table), size)) == encode(*table), "a table stays what it is");
  if (const Result<Footer> footer = decode_footer(bytes); footer.is_ok())
    must(decode_footer(encode(*footer)).is_ok(), "a footer that was read can be written and read");
}

/// Reads all elements of an item at once, and then every second one backwards, which other code does.
void read_item(storage::Target& target, const Copy& copy, int number) {
  const ItemInfo& item = copy.directory.items[static_cast<std::size_t>(number)];
  const Index count = item.elements();
  if (count == 0 || count > most_elements) return;
  const Bytes element = size_of(item.type);
  CopyReader reader(target, copy);
  ByteVector whole(static_cast<std::size_t>(count * element));
  const std::array<layout::Rows, 1> all = {layout::Rows{0, count, 0, 1}};
  const layout::MemoryMap memory{element, 0, {{0, {{count, element}}}}};
  const Status read = reader.read(number, layout::TransferMap::make(all, memory), whole.data());
  const Index half = (count + 1) / 2;
  ByteVector second(static_cast<std::size_t>(half * element));
  const std::array<layout::Rows, 1> every = {layout::Rows{0, 1, 2, half}};
  const layout::MemoryMap backwards{element, 0, {{(half - 1) * element, {{half, -element}}}}};
  const Status again = reader.read(number, layout::TransferMap::make(every, backwards), second.data());
  must(!read.is_ok() || again.is_ok(), "what can be read whole can be read in part");
}

bool read_copy_of(storage::Target& target, const std::string& path) {
  const Result<Copy> copy = read_copy(target, path);
  if (!copy.is_ok()) return false;
  const Result<Copy> travelled = unpack_copy(pack(*copy));
  must(travelled.is_ok() && pack(*travelled) == pack(*copy), "a copy arrives as it was sent");
  CopyReader reader(target, *copy);
  for (std::size_t part = 0; part < copy->tables.size(); ++part) (void)reader.check(static_cast<int>(part));
  for (std::size_t item = 0; item < copy->directory.items.size(); ++item)
    read_item(target, *copy, static_cast<int>(item));
  return true;
}

}  // namespace

bool read_input(std::span<const std::byte> bytes) {
  decode_all(bytes);
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  const Result<std::unique_ptr<storage::File>> file = target->open("copy", storage::OpenMode::create);
  must(file.is_ok() && (*file)->write(bytes, 0).is_ok(), "memory takes the input");
  return read_copy_of(*target, "copy");
}

}  // namespace tailrace::fuzz
