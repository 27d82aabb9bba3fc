// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "faces/files/group.hpp"
#include "faces/input/loader.hpp"
#include "faces/input/request.hpp"
#include "faces/input/share.hpp"
#include "faces/streams/definition/placed_layout.hpp"
#include "faces/streams/definition/shaped_arrays.hpp"
#include "ground/node/budget.hpp"
#include "ground/node/node_memory.hpp"

namespace tailrace::input {

/// A field of an input stream on a compute rank: this rank's part of it, and the ring that it comes from.
struct Field {
  Field(FieldRequest given, const streams::PlacedLayout& placed)
      : request(std::move(given)), layout(placed.layout), halo(placed.halo), is_scalar(placed.is_scalar) {
    request.allocation.halo = halo;
  }
  FieldRequest request;
  const layout::Layout layout;
  const std::vector<Index> halo;
  const bool is_scalar;
  layout::Box cut;  // the part that the ranks of the node need
  Share share;      // for arrays allocated as defined
  streams::ShapedArrays<Share> shaped;
  std::unique_ptr<node::Draw> drawn;  // on the first rank of the node
  std::unique_ptr<node::NodeMemory> memory;
  std::unique_ptr<Loader> loader;  // null: the node needs no part of the field
  bool is_served = false;          // a server of the node reads ahead
  /// On the first rank of the node: number of the memory that was handed to a server.
  std::optional<std::uint64_t> given;

  /// Collective over the ranks of the node. Returns the box that they need.
  Result<layout::Box> agree_on_box(files::Group& group, const std::string& call) const;
  /// Local. Returns the share of `rank`, which is this one, in an array of this shape; nullptr: in one that
  /// is allocated as defined. Code::argument if the array does not hold the field. The share stays until the
  /// next call with another shape.
  Result<const Share*> share_of(const streams::ArrayShape* array, int rank);
};

}  // namespace tailrace::input
