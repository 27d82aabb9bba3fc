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

/// An inventory, and the file that it was made of.
struct KeptInventory {
  std::string path;
  storage::Identity identity;
  Inventory inventory;
  std::string maker = {};  // FrontEnd::maker
};

ByteVector encode_inventory(const KeptInventory& kept);

/// Never reads out of bounds and never allocates more than a few times the given bytes, whatever they are.
/// Code::corrupt if they are no inventory, Code::unsupported for another version.
Result<KeptInventory> decode_inventory(std::span<const std::byte> bytes);

}  // namespace tailrace::sources
