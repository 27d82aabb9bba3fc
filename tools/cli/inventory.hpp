// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ground/storage/target.hpp"

namespace tailrace::cli {

/// How `tailrace index` shows the inventory of a file without an index.
struct InventoryRequest {
  bool json = false;
  bool records = false;
};

/// Prints the inventory of a file that another program has written. Returns the exit code.
int print_inventory(const std::shared_ptr<storage::Target>& target, const std::string& file,
                    const InventoryRequest& request);

/// Reads the headers of each file, keeps its inventory, and prints it. With `beside` the inventory is kept
/// beside the file, otherwise in the directory of TAILRACE_CACHE. Returns the exit code.
int build_inventories(const std::shared_ptr<storage::Target>& target, const std::vector<std::string>& files,
                      bool beside);

}  // namespace tailrace::cli
