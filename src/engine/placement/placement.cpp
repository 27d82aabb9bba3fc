// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/placement/placement.hpp"

#include "engine/placement/arrival.hpp"
#include "engine/placement/fixed.hpp"
#include "engine/placement/packed.hpp"
#include "engine/placement/scan.hpp"
#include "engine/placement/taken.hpp"

namespace tailrace::placement {

std::unique_ptr<Placement> make_placement(const codec::Codec& codec) {
  std::optional<codec::FixedPlaces> places = codec.fixed_places();
  if (!places) return std::make_unique<Scan>();
  if (places->are_packed) return std::make_unique<Packed>(*std::move(places));
  return std::make_unique<Fixed>(*std::move(places));
}

std::unique_ptr<Placement> make_placement_by_arrival(const codec::Codec& codec) {
  if (codec.fixed_places()) return make_placement(codec);
  return std::make_unique<Arrival>();
}

std::unique_ptr<Placement> make_placement_of_taken() { return std::make_unique<Taken>(); }

}  // namespace tailrace::placement
