// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "faces/streams/stream.hpp"
#include "ground/base/bytes.hpp"

// A save may come in the middle of an interval that is going to fail. At the end of the interval, the ranks
// find the failure by what they remember: errors, and the steps in which each has put its fields. A run that
// goes on from the save remembers none of these, and would write a wrong value: so the save records the
// failure.
namespace tailrace::restart {

/// Local. Packs for rank 0 the errors that this rank keeps within the intervals of the open streams, and how
/// often and at which leads it has put their fields. Returns no bytes if no stream is within an interval.
ByteVector tell_of_intervals(const std::vector<const streams::Stream*>& open);

/// Local. Notes in each position's interval the failure with the lowest cause: the one that the step which
/// completes the interval would return. `told` has each rank's result of tell_of_intervals(); `open` and
/// `positions` have the same streams in the same order.
void note_failures(const std::vector<const streams::Stream*>& open, const std::vector<ByteVector>& told,
                   std::vector<streams::Position>& positions);

}  // namespace tailrace::restart
