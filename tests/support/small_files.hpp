// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Small shared files, and what lies beside them, as programs with safety= have left them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ground/journal/kept_flushes.hpp"
#include "ground/storage/memory.hpp"

namespace tailrace::journal {

inline ByteVector bytes_in(storage::Target& target, const std::string& path) {
  const auto file = *target.open(path, storage::OpenMode::read);
  ByteVector bytes(static_cast<std::size_t>(*file->size()));
  EXPECT_TRUE(file->read(bytes, 0).is_ok());
  return bytes;
}

inline void put_in(storage::Target& target, const std::string& path, const ByteVector& bytes) {
  EXPECT_TRUE((*target.open(path, storage::OpenMode::create))->write(bytes, 0).is_ok());
}

/// Keeps the bytes that the file `f` has at `offset`, and writes `length` letters over them.
inline void write_over(storage::Target& target, std::int64_t generation, Bytes offset, std::size_t length,
                       char letter) {
  const auto file = *target.open("f", storage::OpenMode::existing);
  ByteVector bytes(length);
  EXPECT_TRUE(file->read(bytes, offset).is_ok());
  const auto writer = *UndoWriter::create(target, flushed_path("f"), generation, name_beside("f"));
  EXPECT_TRUE(writer->add(UndoRecord::What::bytes, offset, bytes).is_ok() && writer->seal().is_ok());
  EXPECT_TRUE(file->write(ByteVector(length, static_cast<std::byte>(letter)), offset).is_ok());
}

/// A file `f` with three flushes, of which each has written over a quarter, and its close. Checkpoints with
/// these claims have recorded flushes of it, and its opens have the number 7.
inline std::shared_ptr<storage::Target> with_three_flushes(std::vector<std::string> claims = {"cp"}) {
  const auto target = storage::memory_target();
  put_in(*target, "f", ByteVector(100, std::byte{'a'}));
  KeptFlushes kept{7, 4, 0, std::move(claims), {}, 1};
  for (const std::int64_t generation : {1, 2, 3}) write_over(*target, generation, generation * 25, 25, 'b');
  EXPECT_TRUE(note_closed(*target, "f", 4, 0, kept).is_ok() && write_kept(*target, "f", kept).is_ok());
  return target;
}

/// What the file of with_three_flushes() held at the flush of this generation; its close is 4.
inline ByteVector flush_of_three(std::int64_t generation) {
  ByteVector bytes(100, std::byte{'a'});
  std::fill_n(bytes.begin() + 25, 25 * (generation - 1), std::byte{'b'});
  return bytes;
}

}  // namespace tailrace::journal
