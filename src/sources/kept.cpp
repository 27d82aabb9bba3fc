// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "sources/kept.hpp"

namespace tailrace::sources {

Result<Inventory> kept_or_scanned(const FrontEnd& front_end, const Opening& opening,
                                  const std::string& /*cache*/) {
  return front_end.scan(opening);
}

}  // namespace tailrace::sources
