// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "ground/base/option_table.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::shared {

/// The ways in which a program may use a shared file that it opens, as in open(2).
struct Access {
  bool reads = false;
  bool writes = false;
  bool creates = false;    // makes the file if it does not exist
  bool exclusive = false;  // fails if the file exists
  bool empties = false;
  bool appends = false;  // every write at the position goes to the end
  friend bool operator==(const Access&, const Access&) = default;
};

/// The content that a file has after a crash of the program that writes it. The words of safety= have this
/// order.
enum class Safety {
  none,    /* old pages mixed with those that were stored since */
  rename,  /* before the first flush the old file's; afterwards as with journal */
  journal, /* the content at the last flush */
};

struct Definition {
  std::string path;
  Access access;
  std::optional<Bytes> page;    // without a value the library chooses
  std::optional<Bytes> memory;  // the most that pages take on a node; without a value the library chooses
  Safety safety = Safety::none;
  unsigned permissions = storage::usual_permissions;  // of a new file, before the umask

  static constexpr Bytes default_page = Bytes{1} << 20;
  static constexpr Bytes least_page = Bytes{4} << 10;
  static constexpr Bytes most_page = Bytes{1} << 30;
  /// The largest size of a file. The end of the last page must be a number of bytes, too.
  static constexpr Bytes most_size = std::numeric_limits<Bytes>::max() - most_page;
};

/// The file under the pages. Any thread may call both functions, and waits for storage in them.
struct Disk {
  /// Fills `bytes` with those of the file from `offset` on, and with zeros behind its end.
  std::function<Status(std::span<std::byte> bytes, Bytes offset)> load;
  /// Writes the parts to the file one after the other, from `offset` on.
  std::function<Status(storage::Parts parts, Bytes offset)> store;
};

/// Fills `bytes` with those of the file from `offset` on, and with zeros behind its end.
Status load_page(storage::File& file, std::span<std::byte> bytes, Bytes offset);

/// Returns the access for which a mode of fopen(3) asks, or Code::argument.
Result<Access> read_mode(const std::string& mode);

/// The keys of tr_shared_open. The access of the definition must be set before, since safety=rename does not
/// go with every mode.
extern const OptionTable<Definition> shared_options;
/// The keys of tr_global_create. They store the bytes of a page.
extern const OptionTable<Bytes> global_options;

}  // namespace tailrace::shared
