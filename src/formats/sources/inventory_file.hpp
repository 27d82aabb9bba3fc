// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>

#include "formats/sources/source.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/storage/identity.hpp"

// The bytes of a kept inventory, as docs/formats/inventory.md defines them. Nothing here touches a file.
namespace tailrace::sources {

/// An inventory with the name and identity of the file whose records it lists.
struct KeptInventory {
  std::string path;
  storage::Identity identity;
  Inventory inventory;
  std::string maker = {};  // FrontEnd::maker
};

ByteVector encode_inventory(const KeptInventory& kept);

/// Returns the inventory in `bytes`. The bytes may be anything: the function never reads out of bounds and
/// never allocates more than a few times their number. Code::corrupt if they are no inventory,
/// Code::unsupported for another version.
Result<KeptInventory> decode_inventory(std::span<const std::byte> bytes);

}  // namespace tailrace::sources
