// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "engine/pipeline/messages.hpp"

namespace tailrace::pipeline {

/// Pack and unpack a part of the put order. Every server gets all of it, so its size counts: with 4,096
/// records and as many servers, entries of 64 bytes would keep the root's adapter busy for 86 ms in each step
/// (25 GB/s). An entry that continues like those of its kind before takes two bytes: field, level, owner and
/// chunk of most records grow by what they grew by before.
void pack_sequence(Packer& out, std::span<const SequenceEntry> entries);
std::vector<SequenceEntry> unpack_sequence(Unpacker& in);

}  // namespace tailrace::pipeline
