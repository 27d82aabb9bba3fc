// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

#include "ground/storage/memory.hpp"

// The fault model of a loss of power. A CrashTarget is a tree of files in memory that knows which bytes and
// names are durable. crash() returns the tree that the next boot finds.
//
//  - Durable, and never harmed by any policy: the contents that a successful sync() of the file covered,
//    and the entries (creation, rename, removal) that a successful sync_directory_of() of their directory
//    covered. Directories themselves are durable once made, as make_directories() promises, and renamed
//    or removed once a sync_directory_of() has covered their own entry.
//  - Contents and entries are independent. A synced file without a synced entry is gone. A synced entry of
//    an unsynced file is there, with the part of the file that survived.
//  - Each unsynced write survives as Writes says, piece by piece and in no order. A piece is the part of a
//    write that lies in one 512-byte sector; the other bytes of that sector never change (power-safe
//    overwrite). The size may grow without the data, which then reads as zeros. An unsynced truncation
//    happened or did not.
//  - Each unsynced entry change survives as Entries says. A rename is one change: both names or neither.
//    Renames and removals of directories survive in their order: with `some`, all up to a random one.
//  - After fail_write_back() of a file no later sync() covers the bytes written to it before, although they
//    can be read. Linux treats pages in this way if their write to the device has failed.
//  - Locks are gone. Later calls of the running program on the old target change nothing in the new one.
//  - Not modelled: storage that lies about fsync; damage to bytes that were synced.
//
// To simulate a loss of power in the middle of a run, put a FaultyTarget above that fails every call from the
// n-th on, then call crash().

namespace tailrace::storage {

struct CrashPolicy {
  enum class Writes {
    dropped,  // none survives
    kept,     // all survive
    torn,     // each piece survives or not
    garbage,  // each piece survives, or does not, or becomes arbitrary bytes
  };
  enum class Entries {
    lost,  // none survives
    kept,  // all survive
    some,  // each survives or not
  };
  Writes writes = Writes::dropped;
  Entries entries = Entries::lost;
};

class CrashTarget final : public MemoryTarget {
 public:
  CrashTarget() : MemoryTarget(true) {}
  /// Returns the tree that a loss of power at this moment would leave. The same policy, seed and history
  /// always give the same tree. This target does not change, so that one run can be crashed in many ways.
  [[nodiscard]] std::shared_ptr<CrashTarget> crash(CrashPolicy policy, std::uint64_t seed) const;
  /// Makes the writes to the file that no sync() has covered stay undurable forever. Does nothing if there is
  /// no such file.
  void fail_write_back(const std::string& path);
};

std::shared_ptr<CrashTarget> crash_target();

}  // namespace tailrace::storage
