// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Loops over an ecCodes that it loads, one turn for each line of standard input: another version than the
// one that the library is linked with. It says the version first, and the seconds of each turn: those that
// passed and those of processor time, cloned and kept, or those that passed of decoding.
//   --library PATH  --core N
// encoding (cloned and kept): --columns --rows --levels  --packing simple|ccsds  --bits N  --file PATH
// decoding:                   --decode PATH  --values N (of a record)  --threads N
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "clocks.hpp"
#include "eccodes_decoding.hpp"
#include "eccodes_loop.hpp"
#include "synthetic_model.hpp"

namespace {

class Encoding {
 public:
  Encoding(const bench::Eccodes& library, const bench::Arguments& given)
      : what_{given.number("--columns", 1000), given.number("--rows", 1000),
              given.text("--packing", "simple"), given.number("--bits", 16)},
        records_(bench::weather_records(given.number("--levels", 40), what_.rows, what_.columns)),
        cloning_(library, what_, given.text("--file", "turns.grib2") + ".cloned"),
        keeping_(library, what_, given.text("--file", "turns.grib2") + ".kept",
                 bench::EccodesLoop::Handles::kept) {}
  void turn() {
    const bench::Span cloned = cloning_.write_step(records_, hour_);
    const bench::Span kept = keeping_.write_step(records_, hour_);
    ++hour_;
    std::printf("%.9f %.9f %.9f %.9f\n", cloned.wall, cloned.cpu, kept.wall, kept.cpu);
  }

 private:
  bench::Written what_;
  std::vector<std::vector<double>> records_;
  bench::EccodesLoop cloning_, keeping_;
  std::int64_t hour_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given(argc, argv);
  if (given.has("--core")) bench::pin_to_core(static_cast<int>(given.number("--core", 0)));
  const bench::Eccodes library = bench::loaded_eccodes(given.text("--library", "libeccodes.so.0"));
  std::optional<Encoding> encoding;
  std::optional<bench::EccodesDecoding> decoding;
  if (given.has("--decode"))
    decoding.emplace(library, given.text("--decode", ""),
                     static_cast<std::size_t>(given.number("--values", 1000000)),
                     static_cast<int>(given.number("--threads", 1)));
  else
    encoding.emplace(library, given);
  std::printf("%s\n", library.version().c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    if (decoding)
      std::printf("%.9f\n", decoding->run());
    else
      encoding->turn();
    std::fflush(stdout);
  }
  return 0;
}
