// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "support/crash.hpp"

#include <algorithm>
#include <random>

#include "ground/storage/paths.hpp"

namespace tailrace::storage {

namespace {

using Writes = CrashPolicy::Writes;
using Entries = CrashPolicy::Entries;
using Random = std::mt19937_64;

constexpr Bytes sector_bytes = 512;

bool coin(Random& random) { return random() % 2 == 0; }

/// Applies the policy to the piece of an unsynced write that lies in one sector.
void lay_piece(SparseBytes& disk, std::span<const std::byte> piece, Bytes offset, Writes policy,
               Random& random) {
  const auto fate = random() % (policy == Writes::garbage ? 3 : 2);
  if (fate == 0) return;
  if (fate == 1) return disk.write(piece, offset);
  ByteVector garbage(piece.size());
  for (std::byte& byte : garbage) byte = static_cast<std::byte>(random() % 256);
  disk.write(garbage, offset);
}

void tear(SparseBytes& disk, const ContentChange& change, Writes policy, Random& random) {
  if (change.cut) {
    if (coin(random)) disk.resize(change.offset);
    return;
  }
  const Bytes end = change.offset + static_cast<Bytes>(change.bytes.size());
  // The size is metadata: it may survive without the data.
  if (coin(random)) disk.resize(std::max(disk.size(), end));
  std::span<const std::byte> rest = change.bytes;
  for (Bytes offset = change.offset; offset < end;) {
    const Bytes step = std::min(end, (offset / sector_bytes + 1) * sector_bytes) - offset;
    lay_piece(disk, rest.first(static_cast<std::size_t>(step)), offset, policy, random);
    rest = rest.subspan(static_cast<std::size_t>(step));
    offset += step;
  }
}

std::shared_ptr<MemoryInode> surviving(MemoryInode& inode, Writes policy, Random& random) {
  const auto left = std::make_shared<MemoryInode>();
  const std::lock_guard guard(inode.mutex);
  left->journalled = true;
  left->durable = policy == Writes::kept ? inode.now : inode.durable;
  if (policy == Writes::torn || policy == Writes::garbage) {
    for (const ContentChange& change : inode.unsynced) tear(left->durable, change, policy, random);
  }
  left->now = left->durable;
  return left;
}

MemoryFiles surviving_entries(MemoryFiles files, const std::vector<EntryChange>& unsynced, Entries policy,
                              Random& random) {
  for (const EntryChange& change : unsynced) {
    if (policy == Entries::lost || (policy == Entries::some && coin(random))) continue;
    if (!change.erased.empty()) files.erase(change.erased);
    if (!change.set.empty()) files[change.set] = change.inode;
  }
  return files;
}

/// Takes back a change of a directory's name that has not survived.
void take_back(const DirectoryChange& change, MemoryFiles& files, std::set<std::string>& directories,
               Entries policy, Random& random) {
  if (!change.to.empty()) {
    rename_below(files, change.to, change.from);
    rename_below(directories, change.to, change.from);
    return;
  }
  directories.insert(change.from);
  for (const auto& each : surviving_entries(change.files, change.unsynced, policy, random))
    files.insert(each);
}

}  // namespace

std::shared_ptr<CrashTarget> CrashTarget::crash(CrashPolicy policy, std::uint64_t seed) const {
  Random random(seed);
  const auto left = std::make_shared<CrashTarget>();
  const std::lock_guard guard(mutex_);
  left->directories_ = directories_;
  // Files are visited by name, so that the random numbers are used in the same order in every run. A file
  // with two names survives once.
  std::map<const MemoryInode*, std::shared_ptr<MemoryInode>> survivors;
  MemoryFiles files = surviving_entries(durable_files_, unsynced_, policy.entries, random);
  std::size_t kept = policy.entries == Entries::kept ? moved_.size() : 0;
  if (policy.entries == Entries::some && !moved_.empty()) kept = random() % (moved_.size() + 1);
  for (std::size_t i = moved_.size(); i-- > kept;)
    take_back(moved_[i], files, left->directories_, policy.entries, random);
  for (const auto& [path, inode] : files) {
    auto& survivor = survivors[inode.get()];
    if (!survivor) survivor = surviving(*inode, policy.writes, random);
    left->files_[path] = survivor;
  }
  left->durable_files_ = left->files_;
  return left;
}

void CrashTarget::fail_write_back(const std::string& path) {
  const std::lock_guard guard(mutex_);
  const auto found = files_.find(tidy_path(path));
  if (found == files_.end()) return;
  MemoryInode& inode = *found->second;
  const std::lock_guard contents(inode.mutex);
  std::erase_if(inode.unsynced, [](const ContentChange& change) { return !change.cut; });
}

std::shared_ptr<CrashTarget> crash_target() { return std::make_shared<CrashTarget>(); }

}  // namespace tailrace::storage
