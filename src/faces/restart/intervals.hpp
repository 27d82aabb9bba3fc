// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "faces/streams/stream.hpp"
#include "ground/base/bytes.hpp"

// Reasons for an interval to fail at its end, found at a save in its middle. A run that goes on from the
// save has none of it in its own memory, and would write a value that nobody should see.
namespace tailrace::restart {

/// Local. Packs, for rank 0, the errors that this rank keeps within the intervals of the open streams, and
/// how often and at which leads it has put their fields. Empty if no stream is within an interval.
ByteVector tell_of_intervals(const std::vector<const streams::Stream*>& open);

/// Local. `told` has by rank what tell_of_intervals() has returned there, `open` and `positions` the same
/// streams in the same order. Gives each position's interval the failure with the lowest cause, as the step
/// would have it that completes the interval.
void note_failures(const std::vector<const streams::Stream*>& open, const std::vector<ByteVector>& told,
                   std::vector<streams::Position>& positions);

}  // namespace tailrace::restart
