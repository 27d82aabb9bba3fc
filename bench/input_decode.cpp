// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Reads and decodes all records of a GRIB file, in turn by a bare loop over ecCodes and by sources::Source,
// on the same threads. It uses modules of the library, not its public calls: nothing else stands between.
#include <eccodes.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "eccodes_decoding.hpp"
#include "formats/opening/open.hpp"
#include "formats/sources/source.hpp"
#include "peer_process.hpp"

namespace {

using namespace tailrace;

[[noreturn]] void give_up(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "input_decode: %s: %s\n", what.c_str(), why.c_str());
  std::exit(1);
}

void check(int error, const char* what) {
  if (error != CODES_SUCCESS) give_up(what, codes_get_error_message(error));
}

/// Appends records of smooth waves with noise in their last bits.
void write_file(const std::string& path, long size, long records, const std::string& packing, long bits) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file) give_up(path, "cannot be written");
  const std::unique_ptr<codes_handle, int (*)(codes_handle*)> handle(
      codes_grib_handle_new_from_samples(nullptr, "GRIB2"), codes_handle_delete);
  if (!handle) give_up("ecCodes", "has no sample GRIB2");
  check(codes_set_long(handle.get(), "Ni", size), "Ni");
  check(codes_set_long(handle.get(), "Nj", size), "Nj");
  std::vector<double> values(static_cast<std::size_t>(size * size));
  unsigned noise = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    noise = noise * 1664525U + 1013904223U;
    const auto x = static_cast<double>(i % static_cast<std::size_t>(size)),
               y = static_cast<double>(i) / static_cast<double>(size);
    values[i] = 280 + 30 * std::sin(x / 90) * std::cos(y / 70) + 1e-2 * (noise >> 16) / 65536.0;
  }
  check(codes_set_long(handle.get(), "bitsPerValue", bits), "bitsPerValue");
  check(codes_set_double_array(handle.get(), "values", values.data(), values.size()), "values");
  std::size_t length = packing.size();
  check(codes_set_string(handle.get(), "packingType", packing.c_str(), &length), packing.c_str());
  for (long record = 0; record < records; ++record) {
    check(codes_set_long(handle.get(), "forecastTime", record), "forecastTime");
    const void* bytes = nullptr;
    check(codes_get_message(handle.get(), &bytes, &length), "message");
    if (std::fwrite(bytes, 1, length, file.get()) != length) give_up(path, "cannot be written");
  }
}

/// The memory of a thread. It is used again for each record, as in the loop over ecCodes.
struct Room {
  std::vector<double> values;
  sources::Scratch scratch;
};

void print_list(const char* name, const std::vector<double>& values) {
  std::printf(", \"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.6f", i == 0 ? "" : ", ", values[i]);
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  const std::string path = arguments.text("--path", "input_decode.grib");
  const long size = arguments.number("--size", 1000), records = arguments.number("--records", 40);
  const auto threads = static_cast<int>(arguments.number("--threads", 1));
  write_file(path, size, records, arguments.text("--packing", "grid_simple"), arguments.number("--bits", 16));
  const auto source = sources::open(storage::default_target(), path, "");
  if (!source.is_ok()) give_up(path, source.status().text());
  const sources::Inventory& inventory = (*source)->inventory();
  const sources::Grid& grid = inventory.grids.front();
  const layout::Box whole{{0, 0}, grid.shape};
  std::vector<Room> rooms(static_cast<std::size_t>(threads));
  for (Room& room : rooms) room.values.resize(static_cast<std::size_t>(size * size));
  bench::EccodesDecoding decoding(bench::linked_eccodes(), path, static_cast<std::size_t>(size * size),
                                  threads);
  std::optional<bench::PeerProcess> newest;
  if (arguments.has("--newest"))
    newest.emplace(
        "eccodes_turns",
        std::vector<std::string>{"--library", arguments.text("--newest", ""), "--decode", path, "--values",
                                 std::to_string(size * size), "--threads", std::to_string(threads)},
        arguments.text("--newest-path", ""));
  const auto ours = [&](ElementType type) {
    return bench::on_threads(threads, inventory.records.size(), [&, type](int thread, std::size_t record) {
      Room& room = rooms[static_cast<std::size_t>(thread)];
      const Result<Index> read =
          (*source)->read(inventory.records[record].place, grid, whole, type,
                          reinterpret_cast<std::byte*>(room.values.data()), room.scratch);
      if (!read.is_ok()) give_up(path, read.status().text());
    });
  };
  std::vector<double> eccodes, other, wide, narrow;
  for (long turn = 0; turn < arguments.number("--turns", 6); ++turn) {
    eccodes.push_back(decoding.run());
    if (newest) other.push_back(newest->turn().at(0));
    wide.push_back(ours(ElementType::f64));
    narrow.push_back(ours(ElementType::f32));
  }
  std::printf("{\"values\": %ld, \"version\": \"%s\"", size * size * records,
              bench::linked_eccodes().version().c_str());
  print_list("eccodes", eccodes);
  if (newest) {
    std::printf(", \"newest_version\": \"%s\"", newest->about().c_str());
    print_list("newest", other);
  }
  print_list("f64", wide);
  print_list("f32", narrow);
  std::printf("}\n");
  return 0;
}
