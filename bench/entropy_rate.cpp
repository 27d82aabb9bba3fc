// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The entropy coder of CCSDS packing alone, on one thread: compresses and decompresses codes that lie in
// memory, in turn by the library's coder, in each way that this processor has, and by libaec. It uses a
// module of the library: no public call compresses alone.
//   --values N  --bits B (of a code)  --noise B (of the difference between two)  --turns N
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "clocks.hpp"
#include "formats/entropy/decoder.hpp"
#include "formats/entropy/libaec.hpp"

namespace {

using namespace tailrace;
using entropy::Way;

constexpr int block = 32, interval = 128;  // as ecCodes writes
constexpr struct {
  Way way;
  const char* name;
} ways[] = {{Way::portable, "portable"}, {Way::avx2, "avx2"}, {Way::avx512, "avx512"}};

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "entropy_rate: %s\n", why.c_str());
  std::exit(1);
}

/// Returns a walk in the middle of the codes' range.
template <typename Number>
std::vector<Number> walk(std::size_t count, int bits, int noise) {
  const std::int64_t most = (std::int64_t{1} << bits) - 1, step = std::int64_t{1} << noise;
  std::vector<Number> codes;
  std::uint64_t random = 1;
  std::int64_t code = most / 2;
  for (std::size_t i = 0; i < count; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::int64_t next =
        code + static_cast<std::int64_t>(random >> 33) % step - step / 2 + (i / 5000 % 2 == 0 ? 1 : 0);
    code = next < most / 8 || next > most - most / 8 ? most / 2 : next;
    codes.push_back(static_cast<Number>(code));
  }
  return codes;
}

void print_list(const std::string& name, const std::vector<double>& values) {
  std::printf(", \"%s\": [", name.c_str());
  for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.9f", i == 0 ? "" : ", ", values[i]);
  std::printf("]");
}

/// What one of the coders took, turn by turn.
struct Times {
  std::vector<double> encode, decode;
};

template <typename Number>
class Contest {
 public:
  Contest(std::size_t count, int bits, int noise)
      : parameters_{bits, block, interval}, codes_(walk<Number>(count, bits, noise)), decoded_(count) {
    stream_.resize(static_cast<std::size_t>(entropy::bound(parameters_, size()) + entropy::libaec_spare));
  }

  void by_way(Way way, Times& times) {
    times.encode.push_back(
        bench::timed([&] {
          length_ = entropy::Encoder(parameters_, way).encode(codes_.data(), size(), true, stream_.data());
        }).cpu);
    times.decode.push_back(bench::timed([&] {
                             const Status status =
                                 entropy::decode(parameters_, octets(), size(), decoded_.data(), way);
                             if (!status.is_ok()) give_up(status.text());
                           }).cpu);
    check();
  }

  void by_libaec(Times& times) {
    const entropy::LibaecParameters same{entropy::usual_flags, block, interval, parameters_.bits};
    times.encode.push_back(bench::timed([&] {
                             const Result<Bytes> length = entropy::LibaecEncoder(same).encode(
                                 std::as_bytes(std::span(codes_)), true, stream_);
                             if (!length.is_ok()) give_up(length.status().text());
                             length_ = *length;
                           }).cpu);
    times.decode.push_back(bench::timed([&] {
                             const Status status = entropy::libaec_decode(
                                 same, octets(), std::as_writable_bytes(std::span(decoded_)));
                             if (!status.is_ok()) give_up(status.text());
                           }).cpu);
    check();
  }

  [[nodiscard]] double bits_a_value() const {
    return static_cast<double>(length_) * 8 / static_cast<double>(codes_.size());
  }

 private:
  [[nodiscard]] Index size() const { return static_cast<Index>(codes_.size()); }
  [[nodiscard]] std::span<const std::byte> octets() const {
    return std::span<const std::byte>(stream_).first(static_cast<std::size_t>(length_));
  }
  void check() {
    if (decoded_ != codes_) give_up("the decoded codes are others");
    std::fill(decoded_.begin(), decoded_.end(), Number{0});
  }

  entropy::Parameters parameters_;
  std::vector<Number> codes_, decoded_;
  ByteVector stream_;
  Bytes length_ = 0;
};

template <typename Number>
void measure(std::size_t count, int bits, int noise, long turns) {
  Contest<Number> contest(count, bits, noise);
  Times own[std::size(ways)], libaec;
  for (long turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < std::size(ways); ++i) {
      if (entropy::has(ways[i].way)) contest.by_way(ways[i].way, own[i]);
    }
    if (entropy::has_libaec()) contest.by_libaec(libaec);
  }
  std::printf("{\"values\": %zu, \"bits_a_value\": %.3f", count, contest.bits_a_value());
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    print_list(std::string(ways[i].name) + ".encode", own[i].encode);
    print_list(std::string(ways[i].name) + ".decode", own[i].decode);
  }
  print_list("libaec.encode", libaec.encode);
  print_list("libaec.decode", libaec.decode);
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  const auto count = static_cast<std::size_t>(arguments.number("--values", 1000000));
  const auto bits = static_cast<int>(arguments.number("--bits", 16)),
             noise = static_cast<int>(arguments.number("--noise", 6));
  const long turns = arguments.number("--turns", 12);
  constexpr int fewest = 9;  // narrower codes lie in single octets for libaec alone
  if (bits < fewest || bits > 32 || noise < 0 || noise >= bits)
    give_up("codes of 9 to 32 bits, and noise of fewer");
  if (bits <= entropy::most_narrow_bits)
    measure<std::uint16_t>(count, bits, noise, turns);
  else
    measure<std::uint32_t>(count, bits, noise, turns);
  return 0;
}
