// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// How a whole file takes a name. Readers, and runs after a crash or a loss of power, find the old contents or
// the new ones, and never a part: the bytes are written and synchronised under a temporary name, then the
// file is renamed, then the directory is synchronised. And how a file loses what lies behind its last whole
// record. docs/design/032-five-ways-to-commit.md says who uses which of these functions in which order.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// Local, like all functions here; each blocks on storage. Writes a new file of these bytes, under a name
/// that only the library uses. On return the bytes are durable; the name is not. After a failure the file is
/// removed, which gives its space back on a full disk.
Status write_durably(Target& target, const std::string& path, std::span<const std::byte> bytes);

/// Gives the file `from` the name `to`. The name is durable on return.
Status rename_durably(Target& target, const std::string& from, const std::string& to);

/// Says whether replace_file() makes the new file durable. If it does not, a loss of power may leave any
/// bytes under the name, and the file must tell its readers whether it is whole.
enum class Durability { none, bytes_and_name };

/// Makes `bytes` the contents of the file `path`, whether it exists or not. `temporary` is the name that the
/// file has before, in the same directory. After a failure nothing has the temporary name.
Status replace_file(Target& target, const std::string& path, std::span<const std::byte> bytes,
                    const std::string& temporary, Durability durability = Durability::bytes_and_name);
inline Status replace_file(Target& target, const std::string& path, std::string_view text,
                           const std::string& temporary, Durability durability = Durability::bytes_and_name) {
  return replace_file(target, path, std::as_bytes(std::span(text)), temporary, durability);
}

/// Cuts the file off behind its first `size` bytes. A shorter file stays as it is: zeros in the place of lost
/// bytes would hide the loss. Returns the number of bytes cut off.
Result<Bytes> cut_back(File& file, Bytes size);
/// Opens the file, cuts it and closes it. `mode` says whether a link may lead to the file:
/// OpenMode::own_existing refuses links, OpenMode::existing follows them, which is for names that users give.
Result<Bytes> cut_back(Target& target, const std::string& path, Bytes size,
                       OpenMode mode = OpenMode::own_existing);
/// Cut as cut_back() does, and synchronise the file if bytes were cut off: otherwise a loss of power could
/// bring them back, and nothing would cut a file again that gets no further record.
Result<Bytes> cut_back_durably(File& file, Bytes size);
Result<Bytes> cut_back_durably(Target& target, const std::string& path, Bytes size,
                               OpenMode mode = OpenMode::own_existing);

}  // namespace tailrace::storage
