// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "formats/index/bytes/index_format.hpp"
#include "ground/base/uuid.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::streams {

/// One finished file, one line of manifest.jsonl (docs/formats/manifest.md).
struct ManifestEntry {
  std::string path;  // relative to the manifest's directory
  Bytes size = 0;
  std::string digest;  // XXH3-128 of the bytes, as Digest::hex gives it
  Uuid run;
  TimeAxis time;                    // what leads count
  std::string base;                 // format_time of the base time; "" = none
  std::vector<std::int64_t> leads;  // of its steps
  std::int64_t records = 0;
  friend bool operator==(const ManifestEntry&, const ManifestEntry&) = default;
};

/// Returns "out/manifest.jsonl" for "out/fc+006.grib2".
std::string manifest_path(const std::string& data_path);

/// Returns what an index tells about its file. digest_file fills in the digest.
ManifestEntry manifest_entry(const std::string& data_path, const IndexContents& contents);

/// Local. Reads the whole file in pieces of 4 MiB.
Result<std::string> digest_file(storage::Target& target, const std::string& path);

/// Local, like the functions that follow. Several streams and runs may append to the manifest of a directory.
/// Returns Code::unsupported if this build has no JSON library.
Status manifest_available();
/// Returns Code::state, saying what to do, if the file has lines that no stream has written: nobody may
/// append to it then. Success if there is none, or if this process cannot look.
Status check_manifest(storage::Target& target, const std::string& path);
/// Appends one line, durable on return. Holds the lock PATH.lock meanwhile, and waits up to 10 s for another
/// process that holds it (then returns Code::timeout). Cuts the remains of a crash off the end first. Returns
/// what check_manifest does, with nothing changed, for a foreign file.
Status append_to_manifest(storage::Target& target, const std::string& path, const ManifestEntry& entry);
/// Appends a line, unless the file's last line says just this already. Durable on return. Returns true if a
/// line was added.
Result<bool> ensure_in_manifest(storage::Target& target, const std::string& path, const ManifestEntry& entry);

/// Returns all whole lines, in their order. For a reader, a later line about the same path replaces an
/// earlier one. The remains of a crash at the end are passed over. Any other bad line is Code::corrupt with
/// its number.
Result<std::vector<ManifestEntry>> read_manifest(storage::Target& target, const std::string& path);

/// Creates DATA+SUFFIX, empty, durable on return. Call it only once the data and their index are durable.
Status create_ready_marker(storage::Target& target, const std::string& data_path, const std::string& suffix);
/// Removes an old marker, durably, before its file is written to again. Success if there is
/// none, or no suffix.
Status remove_ready_marker(storage::Target& target, const std::string& data_path, const std::string& suffix);

}  // namespace tailrace::streams
