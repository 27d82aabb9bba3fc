// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/mirror.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tailrace::checkpoint {

namespace {

constexpr Bytes least_bytes = 4 * capture::CopyOnWrite::unit;
/// True if a mirror is worth while: it copies the gaps as well, so they must be narrow.
bool is_dense(Bytes extent, Bytes bytes) { return extent <= bytes + bytes / 4; }

std::uintptr_t number_of(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// Returns a place, at `at` or behind, for the copy of a region. Each byte keeps its offset within a unit, so
/// that huge pages of the copy and of the region match.
Bytes place_for(Bytes at, const std::byte* begin) {
  const auto within =
      static_cast<Bytes>(number_of(begin) % static_cast<std::uintptr_t>(capture::CopyOnWrite::unit));
  return align(at, capture::CopyOnWrite::unit) + within;
}

}  // namespace

Mirror::Mirror(const std::vector<SaveItem>& items) {
  for (const SaveItem& item : items) {
    const layout::MemoryExtent extent = item.owned.packed.memory_extent();
    const Bytes bytes = item.owned.bytes();
    const bool is_mirrored = bytes >= least_bytes && is_dense(extent.bytes(), bytes);
    packed_places_.push_back(is_mirrored ? -1 : bytes_);
    if (is_mirrored)
      regions_.push_back({item.data + extent.lowest, item.data + extent.end, 0});
    else
      bytes_ = align(bytes_ + bytes, item_alignment);
  }
  std::ranges::sort(regions_, {}, &Region::begin);
  std::vector<Region> joined;
  for (const Region& region : regions_) {
    if (!joined.empty() && region.begin < joined.back().end)
      joined.back().end = std::max(joined.back().end, region.end);
    else
      joined.push_back(region);
  }
  regions_ = std::move(joined);
  for (Region& region : regions_) {
    region.place = place_for(bytes_, region.begin);
    bytes_ = region.place + (region.end - region.begin);
  }
}

/// Returns the whole units of a region, which can be protected. The rest of the region shares its units with
/// other memory.
Mirror::Region Mirror::whole_units(const Region& region) {
  const auto unit = static_cast<std::uintptr_t>(capture::CopyOnWrite::unit);
  const auto head = static_cast<Bytes>((unit - number_of(region.begin) % unit) % unit);
  const auto tail = static_cast<Bytes>(number_of(region.end) % unit);
  if (region.end - region.begin < head + tail) return {region.begin, region.begin, region.place};
  return {region.begin + head, region.end - tail, region.place + head};
}

Status Mirror::take(std::vector<SaveItem>& items, std::byte* memory, capture::CopyOnWrite& behind) const {
  const auto copy = [&](const Region& region, const std::byte* begin, const std::byte* end) {
    std::memcpy(memory + region.place + (begin - region.begin), begin, static_cast<std::size_t>(end - begin));
  };
  std::vector<capture::CopiedRange> ranges;
  for (const Region& region : regions_) {
    const Region inner = whole_units(region);
    if (inner.begin != inner.end)
      ranges.push_back({inner.begin, inner.end - inner.begin, memory + inner.place});
  }
  Status protection = behind.begin(std::move(ranges));
  for (const Region& region : regions_) {
    const Region inner = whole_units(region);
    copy(region, region.begin, inner.begin);
    if (!protection.is_ok()) copy(region, inner.begin, inner.end);
    copy(region, inner.end, region.end);
  }
  for (std::size_t i = 0; i < items.size(); ++i) redirect(items[i], packed_places_[i], memory);
  return protection;
}

void Mirror::redirect(SaveItem& item, Bytes packed_place, std::byte* memory) const {
  const Bytes bytes = item.owned.bytes();
  if (bytes == 0) return;
  if (packed_place >= 0) {
    item.owned.packed.gather(item.data, 0, bytes, memory + packed_place);
    item.owned.packed = layout::TransferMap::of_rows(
        std::vector<layout::Rows>{{0, bytes / item.owned.element, 0, 1}}, item.owned.element);
    item.data = memory + packed_place;
    return;
  }
  const std::byte* const first = item.data + item.owned.packed.memory_extent().lowest;
  const auto region = std::ranges::upper_bound(regions_, first, {}, &Region::end);
  item.data = memory + region->place + (item.data - region->begin);
}

}  // namespace tailrace::checkpoint
