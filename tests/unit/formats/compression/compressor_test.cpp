// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/compression/compressor.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "ground/base/text.hpp"

#ifdef TAILRACE_HAVE_BLOSC
#include <blosc.h>
#endif
#ifdef TAILRACE_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

namespace {

// What the libraries answer in this program where these are set.
std::string lacking;  // a compressor that c-blosc was built without
std::optional<int> blosc_answer;
std::optional<std::size_t> zstd_answer;

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// The program's own functions come before those of shared libraries.
#ifdef TAILRACE_HAVE_BLOSC
extern "C" int blosc_compname_to_compcode(const char* name) {
  return name == lacking ? -1
                         : real<decltype(blosc_compname_to_compcode)>("blosc_compname_to_compcode")(name);
}
extern "C" int blosc_compress_ctx(int level, int shuffle, size_t size, size_t count, const void* from,
                                  void* to, size_t room, const char* name, size_t block, int threads) {
  if (blosc_answer) return *blosc_answer;
  return real<decltype(blosc_compress_ctx)>("blosc_compress_ctx")(level, shuffle, size, count, from, to, room,
                                                                  name, block, threads);
}
#endif
#ifdef TAILRACE_HAVE_ZSTD
extern "C" size_t ZSTD_compressCCtx(ZSTD_CCtx* context, void* to, size_t room, const void* from, size_t count,
                                    int level) {
  if (zstd_answer) return *zstd_answer;
  return real<decltype(ZSTD_compressCCtx)>("ZSTD_compressCCtx")(context, to, room, from, count, level);
}
#endif

namespace tailrace::compression {
namespace {

class Compressing : public testing::Test {
 protected:
  void TearDown() override {
    lacking.clear();
    blosc_answer.reset();
    zstd_answer.reset();
  }
  static Result<ByteVector> compressed(const Compression& how, std::size_t count) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(0.01 * static_cast<double>(i));
    ByteVector out;
    const Status status = Compressor().compress(how, std::as_bytes(std::span(values)), 8, out);
    if (!status.is_ok()) EXPECT_TRUE(out.empty());
    return status.is_ok() ? Result<ByteVector>(out) : status;
  }
};

#ifdef TAILRACE_HAVE_BLOSC
TEST_F(Compressing, by_a_blosc_that_lacks_the_method_is_refused_at_once) {
  for (const auto& [method, name, other] : {std::tuple(Method::blosc_lz4, "lz4", "compress=blosc_zstd"),
                                            {Method::blosc_zstd, "zstd", "compress=blosc_lz4"}}) {
    EXPECT_TRUE(check({method, 1}, 100).is_ok());
    lacking = name;
    const Status refused = check({method, 1}, 100);
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_NE(refused.text().find(cat("was built without ", name)), std::string::npos) << refused.text();
    EXPECT_NE(refused.text().find(other), std::string::npos) << refused.text();
    lacking.clear();
  }
}

TEST_F(Compressing, by_blosc_tells_what_it_returned) {
  blosc_answer = -1;
  const Status failed = compressed({Method::blosc_zstd, 1}, 100).status();
  EXPECT_EQ(failed.code(), Code::format);
  EXPECT_NE(failed.text().find("c-blosc did not compress a chunk of 800 bytes by zstd (it returned -1)"),
            std::string::npos)
      << failed.text();
}

/// Returns the chunk that c-blosc makes of these elements under the mode of the process.
ByteVector by_this_mode(const char* compressor, std::size_t elements) {
  const ByteVector values(elements * 8);
  ByteVector out(values.size() + BLOSC_MAX_OVERHEAD);
  EXPECT_GT(blosc_compress_ctx(1, BLOSC_SHUFFLE, 8, values.size(), values.data(), out.data(), out.size(),
                               compressor, 0, 1),
            0);
  return out;
}

// A program may use blosc as well. Its mode is one for the whole process.
TEST_F(Compressing, by_blosc_makes_the_same_bytes_whatever_mode_the_program_has_set) {
  for (const std::size_t count : {10U, 100U, 1000U, 100000U}) {
    for (const Method method : {Method::blosc_lz4, Method::blosc_zstd}) {
      blosc_set_splitmode(BLOSC_FORWARD_COMPAT_SPLIT);
      const ByteVector usual = *compressed({method, 1}, count);
      for (const int mode :
           {BLOSC_ALWAYS_SPLIT, BLOSC_NEVER_SPLIT, BLOSC_AUTO_SPLIT, BLOSC_FORWARD_COMPAT_SPLIT}) {
        blosc_set_splitmode(mode);
        const auto of_program = [] {
          return std::array{by_this_mode("blosclz", 2), by_this_mode("blosclz", 1000),
                            by_this_mode("lz4", 1000), by_this_mode("zstd", 1000)};
        };
        const auto before = of_program();
        EXPECT_TRUE(*compressed({method, 1}, count) == usual) << count << " values, mode " << mode;
        EXPECT_TRUE(of_program() == before) << "the program's mode " << mode << " has become another one";
      }
    }
  }
}

TEST_F(Compressing, by_the_low_levels_of_blosc_zstd_takes_a_megabyte_at_once) {
  constexpr std::size_t count = 500000;
  for (const auto& [method, level] : {std::pair(Method::blosc_zstd, 1),
                                      {Method::blosc_zstd, 3},
                                      {Method::blosc_zstd, 5},
                                      {Method::blosc_lz4, 1}}) {
    const ByteVector chunk = *compressed({method, level}, count);
    std::size_t raw = 0, size = 0, block = 0;
    blosc_cbuffer_sizes(chunk.data(), &raw, &size, &block);
    EXPECT_EQ(block == std::size_t{1} << 20, method == Method::blosc_zstd && level <= 3)
        << level << ": " << block;
    EXPECT_EQ(blosc_block({method, level}) > 0, method == Method::blosc_zstd && level <= 3);
  }
}
#endif

#ifdef TAILRACE_HAVE_ZSTD
TEST_F(Compressing, by_zstd_tells_a_lack_of_memory_from_other_failures) {
  zstd_answer = static_cast<std::size_t>(-ZSTD_error_memory_allocation);
  const Status memory = compressed({Method::zstd, 19}, 100).status();
  EXPECT_EQ(memory.code(), Code::memory);
  EXPECT_NE(memory.text().find("a lower level takes less"), std::string::npos) << memory.text();
  zstd_answer = static_cast<std::size_t>(-ZSTD_error_parameter_outOfBound);
  const Status other = compressed({Method::zstd, 19}, 100).status();
  EXPECT_EQ(other.code(), Code::format);
  EXPECT_NE(other.text().find(ZSTD_getErrorName(*zstd_answer)), std::string::npos) << other.text();
}
#endif

}  // namespace
}  // namespace tailrace::compression
