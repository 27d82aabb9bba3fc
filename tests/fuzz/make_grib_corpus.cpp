// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Writes the small GRIB files and the inventory with which fuzzing begins: make_grib_corpus DIRECTORY. They
// are the same each time.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "formats/grib2/handle.hpp"
#include "formats/sources/inventory_file.hpp"
#include "ground/storage/target.hpp"

namespace {

using namespace tailrace;

constexpr double missing = 9999;

void must(const Status& status) {
  if (status.is_ok()) return;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  std::exit(1);
}
void must(int error, const std::string& what) {
  if (error != 0) must(Status(Code::format, what + ": " + grib2::reason(error)));
}

ByteVector message(int edition, const codec::Keys& keys, const std::string& packing = "", int holes = 0) {
  Result<grib2::Handle> handle = grib2::Handle::from_sample(edition == 1 ? "GRIB1" : "GRIB2");
  must(handle.status());
  const codec::Keys grid{{"Ni", "5"},
                         {"Nj", "4"},
                         {"latitudeOfLastGridPointInDegrees", "57"},
                         {"longitudeOfLastGridPointInDegrees", "4"},
                         {"iDirectionIncrementInDegrees", "1"},
                         {"jDirectionIncrementInDegrees", "1"},
                         {"bitmapPresent", holes > 0 ? "1" : "0"}};
  for (const codec::Keys& each : {grid, keys}) {
    for (const auto& [key, value] : each) must(handle->set_text(key, value), key);
  }
  std::vector<double> values;
  for (int i = 0; i < 20; ++i)
    values.push_back(holes > 0 && i % holes == 0 ? missing : 250 + 30 * std::sin(0.7 * i));
  must(handle->set("values", std::span<const double>(values)), "values");
  if (!packing.empty()) must(handle->set_text("packingType", packing), packing);
  const auto bytes = handle->message();
  return {bytes.begin(), bytes.end()};
}

ByteVector joined(std::initializer_list<ByteVector> parts) {
  ByteVector all;
  for (const ByteVector& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// One message with the fields of two: sections 4 to 7 come twice.
ByteVector two_fields(const ByteVector& first, const ByteVector& second) {
  constexpr std::size_t head = 16, end = 4;
  std::size_t at = head;
  while (second[at + 4] != std::byte{4}) {
    std::size_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | std::to_integer<std::size_t>(second[at + i]);
    at += length;
  }
  ByteVector both(first.begin(), first.end() - end);
  both.insert(both.end(), second.begin() + static_cast<std::ptrdiff_t>(at), second.end());
  both[14] = static_cast<std::byte>(both.size() >> 8);
  both[15] = static_cast<std::byte>(both.size());
  return both;
}

void write(const std::string& directory, const std::string& name, const ByteVector& bytes) {
  const auto file = storage::posix_target()->open(directory + "/" + name, storage::OpenMode::create);
  must(file.status());
  must((*file)->write(bytes, 0));
  must((*file)->close());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "make_grib_corpus DIRECTORY\n");
    return 2;
  }
  const std::string directory = argv[1];
  const codec::Keys t{{"shortName", "t"}};
  const ByteVector simple = message(2, t), simple_1 = message(1, t), holes = message(2, t, "", 3);
  write(directory, "simple", simple);
  write(directory, "simple_1", simple_1);
  write(directory, "odd_bits", message(2, {{"bitsPerValue", "11"}}));
  write(directory, "ccsds", message(2, t, "grid_ccsds"));
  write(directory, "complex", message(2, t, "grid_complex"));
  write(directory, "differences", message(2, t, "grid_complex_spatial_differencing"));
  write(directory, "ieee", message(2, t, "grid_ieee"));
  write(directory, "second_order_1", message(1, t, "grid_second_order"));
  write(directory, "bitmap", holes);
  write(directory, "bitmap_1", message(1, t, "", 4));
  write(directory, "statistic",
        message(2, {{"productDefinitionTemplateNumber", "11"}, {"shortName", "tp"}, {"stepRange", "6-12"}}));
  write(directory, "hybrid", message(2, {{"typeOfLevel", "hybrid"}, {"level", "3"}, {"shortName", "q"}}));
  write(directory, "several", joined({simple_1, ByteVector(9), simple, holes}));
  write(directory, "two_fields", two_fields(holes, message(2, {{"shortName", "q"}}, "", 3)));
  sources::KeptInventory kept{"/a.grib", {400, 1, 2, 3}, {}};
  kept.inventory.format = "GRIB";
  kept.inventory.grids = {{{4, 5}, {{"gridType", "regular_ll"}}}};
  kept.inventory.records = {{"t", "surface", 0, 3600, 0, -1, 0, {0, 200, 0, 0}},
                            {"q", "hybrid", 3, 3600, 0, 2, 0, {200, 200, 0, 0}}};
  write(directory, "inventory", sources::encode_inventory(kept));
  return 0;
}
