// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/comm/line.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::arrays {

/// Values that this rank has for each element of a layout that it owns.
struct OwnPart {
  ByteVector values;  // in packed order, in the host's byte order; the values of one element side by side
  Bytes size = 0;     // of one value
  Index width = 1;    // number of values for each element
};

/// A gathering of parts to rank 0, in portions of about 8 MiB.
struct Gathering {
  comm::Line& line;
  const std::function<comm::Verdict(comm::Vote)>& agree;
  const std::string& call;
  std::string what;  // in texts of errors: "coordinates"
  const layout::Layout& layout;
  std::span<const layout::Rows> rows;  // what this rank owns
  std::span<const OwnPart> parts;      // on every rank as many, of the same sizes
};

/// Collective over the line, whose ranks vote by `agree`. Blocks until all have called it. On rank 0 fills
/// `whole`, which has the size of all values: big-endian, one part after the other, in C order of the layout.
/// Then all ranks agree; `told` makes what rank 0 contributes to this agreement. The verdict has the same
/// status on every rank.
comm::Verdict gather(const Gathering& gathering, ByteVector& whole,
                     const std::function<ByteVector()>& told = nullptr);

/// Calls each(first global number, count, first owned number) for each run of elements that follow one
/// another both in the layout and in packed order.
template <typename Each>
void for_each_run(std::span<const layout::Rows> all, Each each) {
  Index owned = 0;
  for (const layout::Rows& rows : all) {
    for (Index row = 0; row < rows.rows; ++row, owned += rows.count)
      each(rows.global + row * rows.stride, rows.count, owned);
  }
}

}  // namespace tailrace::arrays
