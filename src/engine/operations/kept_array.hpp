// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "engine/operations/accumulator.hpp"
#include "ground/base/bytes.hpp"
#include "ground/comm/line.hpp"
#include "ground/layout/layout.hpp"
#include "ground/node/budget.hpp"

namespace tailrace::operations {

/// This rank's share of an array that a checkpoint has kept. Each rank has one block of about equal size,
/// because the layout of the array's field is not known before the program defines the field.
struct KeptArray {
  struct Memory {
    explicit Memory(node::Budget& budget) : drawn(budget, node::Use::intervals) {}
    node::Draw drawn;
    ByteVector bytes;
  };
  ElementType type = ElementType::f64;
  std::shared_ptr<const layout::Layout> blocks;  // of the array's elements, levels included, as one line
  std::shared_ptr<Memory> memory;                // a save shares it until the save has ended
};

/// The kept arrays, each by its name in the checkpoint.
using Kept = std::map<std::string, KeptArray>;

/// Returns an array without values for a rank. Errors: Code::layout; Code::memory if the budget has no room.
Result<KeptArray> make_kept(ElementType type, Index elements, int rank, int ranks, node::Budget& budget);

/// Return the names under which a checkpoint has the state of a field of a stream.
std::string name_of_values(const std::string& stream, const std::string& field);
std::string name_of_counts(const std::string& stream, const std::string& field);

/// Collective. Copies the elements in `rows` of the global array from the ranks that have them to `to`, one
/// after another. Blocks until they are there. A rank that has an error brings it as `mine`. Returns the same
/// Status on every rank. `call` is the program's.
Status take_kept(comm::Line& line, const KeptArray& kept, std::span<const layout::Rows> rows, std::byte* to,
                 const Status& mine, const std::string& call);

}  // namespace tailrace::operations
