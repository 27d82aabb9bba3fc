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

/// Prints what a file of another program holds. Returns the exit code.
int print_inventory(const std::shared_ptr<storage::Target>& target, const std::string& file,
                    const InventoryRequest& request);

/// Looks through each file, keeps its inventory, beside it or in the cache, and prints what it found. Returns
/// the exit code.
int build_inventories(const std::shared_ptr<storage::Target>& target, const std::vector<std::string>& files,
                      bool beside);

}  // namespace tailrace::cli
