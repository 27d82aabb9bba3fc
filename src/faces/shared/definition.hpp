// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::shared {

/// The ways in which a program may use a shared file that it opens, as in open(2).
struct Access {
  bool reads = false;
  bool writes = false;
  bool creates = false;    // it is made if it is not there
  bool exclusive = false;  // it must not be there
  bool empties = false;
  bool appends = false;  // every write at the position goes to the end
  friend bool operator==(const Access&, const Access&) = default;
};

/// The content that a file has after a crash of the program that writes it.
enum class Safety {
  none,    /* the pages stored so far, among older ones */
  rename,  /* the old file's, until the new file is flushed; then as journal */
  journal, /* that of the last flush */
};

struct Definition {
  std::string path;
  Access access;
  std::optional<Bytes> page;    // without it the library chooses
  std::optional<Bytes> memory;  // the most that pages take on a node; likewise
  Safety safety = Safety::none;
  unsigned permissions = storage::usual_permissions;  // of a file that is made, before the umask

  static constexpr Bytes default_page = Bytes{1} << 20;
  static constexpr Bytes least_page = Bytes{4} << 10;
  static constexpr Bytes most_page = Bytes{1} << 30;
  /// The end of a file's last page is a number of bytes, too.
  static constexpr Bytes most_size = std::numeric_limits<Bytes>::max() - most_page;
};

/// The file under the pages. Any thread may call it.
struct Disk {
  /// Fills `bytes` from `offset` on, with zeros behind the end of the file.
  std::function<Status(std::span<std::byte> bytes, Bytes offset)> load;
  std::function<Status(storage::Parts parts, Bytes offset)> store;
};

/// Fills `bytes` with those of the file from `offset` on, and with zeros behind its end.
Status load_page(storage::File& file, std::span<std::byte> bytes, Bytes offset);

/// Returns what a mode of fopen(3) asks for.
Result<Access> read_mode(const std::string& mode);
/// Returns the bytes of a page, as the option page= has them.
Result<Bytes> read_page(const std::string& value);
/// Takes page=, memory= and safety= into `definition`, whose access is known.
Status read_options(const std::string& options, Definition& definition);

}  // namespace tailrace::shared
