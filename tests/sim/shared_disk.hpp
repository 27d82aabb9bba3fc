// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The storage of tests of shared files that lose power: a disk with one file, and all ways of losing it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "scenario.hpp"
#include "support/crash.hpp"

namespace tailrace::sim {

using CrashDisk = std::shared_ptr<storage::CrashTarget>;

/// Returns one of 12 ways in which a loss of power leaves what was not durable.
inline storage::CrashPolicy any_way_of_losing(std::uint64_t number) {
  using Writes = storage::CrashPolicy::Writes;
  using Entries = storage::CrashPolicy::Entries;
  constexpr Writes writes[] = {Writes::dropped, Writes::kept, Writes::torn, Writes::garbage};
  constexpr Entries entries[] = {Entries::lost, Entries::kept, Entries::some};
  return {writes[number % 4], entries[number / 4 % 3]};
}

/// Returns a disk with a durable file of this content.
inline CrashDisk disk_with(const std::string& path, const std::string& content) {
  CrashDisk disk = storage::crash_target();
  const std::size_t slash = path.find('/');
  EXPECT_TRUE(slash == std::string::npos || disk->make_directories(path.substr(0, slash)).is_ok());
  const auto file = *disk->open(path, storage::OpenMode::create);
  EXPECT_TRUE(file->write(std::as_bytes(std::span(content)), 0).is_ok() && file->sync().is_ok() &&
              disk->sync_directory_of(path).is_ok());
  return disk;
}

/// Returns the same disk for another program: nobody holds a lock in it.
inline CrashDisk copy_of(const CrashDisk& disk) {
  return disk->crash({storage::CrashPolicy::Writes::kept, storage::CrashPolicy::Entries::kept}, 1);
}

/// Returns what the file holds, "" if there is none.
inline std::string content_of(storage::Target& disk, const std::string& path) {
  const ByteVector bytes = read_file(disk, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace tailrace::sim
