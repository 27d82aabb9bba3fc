// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The memory that a record needs on its way: what the codec says, and what it really takes.
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <random>
#include <string>

#include "../support/process_memory.hpp"
#include "../unit/formats/grib2/grib_fixture.hpp"
#include "ground/base/byte_pool.hpp"

namespace tailrace::codec::test {
namespace {

constexpr Index rows = 1801, columns = 3600;  // a tenth of a degree

/// Makes the peak count from now on. Returns false if the kernel refuses.
bool forget_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return clear.good();
}

struct Asked {
  const char* packing;
  ElementType type;
  bool accurate;  // up to 32 bits; otherwise 24
  bool missing;
};

/// Prints the name of a case: its octets hold an address.
void PrintTo(const Asked& asked, std::ostream* out) {
  *out << asked.packing << ' ' << name_of(asked.type) << (asked.accurate ? " accuracy" : " bits=24")
       << (asked.missing ? " missing" : "");
}

class RecordMemory : public testing::TestWithParam<Asked> {
 protected:
  void SetUp() override {
    codec_ = codec_of(stream_of(GetParam().packing));
    FieldDefinition field = field_of("t", "hybrid", {7});
    field.georeference.keys = {{"gridType", "unstructured_grid"}};
    field.shape = {rows, columns};
    field.type = GetParam().type;
    if (GetParam().accurate) field.accuracy = 1e-7;
    if (!GetParam().accurate) field.bits = 24;
    if (GetParam().missing) field.missing = -999;
    ASSERT_TRUE(codec_->define(field).is_ok());
  }
  [[nodiscard]] Bytes record() const { return rows * columns * size_of(GetParam().type); }
  [[nodiscard]] Bytes assembled() const { return rows * columns * size_of(codec_->assembled_type(0)); }

  std::unique_ptr<Codec> codec_;
};

INSTANTIATE_TEST_SUITE_P(kind, RecordMemory,
                         testing::Values(Asked{"simple", ElementType::f32, true, false},
                                         Asked{"simple", ElementType::f32, false, true},
                                         Asked{"simple", ElementType::f64, true, false},
                                         Asked{"ccsds", ElementType::f32, true, false},
                                         Asked{"ccsds", ElementType::f32, true, true},
                                         Asked{"ccsds", ElementType::f32, false, false},
                                         Asked{"ccsds", ElementType::f64, true, false}));

TEST_P(RecordMemory, a_record_needs_at_most_three_times_its_size) {
  EXPECT_LE(assembled() + codec_->encoded_bound(0) + codec_->working_bytes(0), 3 * record());
}

/// Values that need 32 bits for an accuracy of 1e-7. A number of tenths of them compress well.
template <typename Value>
void fill(std::vector<std::byte>& bytes, int tenths) {
  std::mt19937 random(43);
  auto* values = reinterpret_cast<Value*>(bytes.data());
  for (Index i = 0; i < rows * columns; ++i)
    values[i] = static_cast<Value>(i / 4096 % 10 < tenths ? i / 64 % 7 : 400.0 * (random() / 4294967296.0));
  values[0] = 0;
  values[1] = 400;
}

TEST_P(RecordMemory, encoding_takes_no_more_than_the_codec_said) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  std::vector<std::byte> values(static_cast<std::size_t>(assembled()));
  constexpr int some = 3;  // the kept record is then a copy, nearly as large as the buffer
  for (const int tenths : {0, some, 10}) {
    if (codec_->assembled_type(0) == ElementType::f32) {
      fill<float>(values, tenths);
    } else {
      fill<double>(values, tenths);
    }
    const auto encoder = codec_->encoder();
    BytePool pool;
    ::malloc_trim(0);
    const Bytes before = process_memory("VmRSS");
    if (!forget_peak() || process_memory("VmHWM") > before + (4 << 20))
      GTEST_SKIP() << "the peak of this process cannot be set back (/proc/self/clear_refs)";
    ByteVector out;
    out.reserve(static_cast<std::size_t>(codec_->encoded_bound(0)));
    const Status status = encoder->encode({0, 0, hour, 0}, values.data(), rows * columns, out);
    ASSERT_TRUE(status.is_ok()) << status.text();
    pool.shorten(out);
    const Bytes added = process_memory("VmHWM") - before;
    constexpr Bytes whole_pages = 4 << 20;  // of tables and of the kernel's counting in batches
    EXPECT_LE(added, codec_->encoded_bound(0) + codec_->working_bytes(0) + whole_pages);
    EXPECT_LE(assembled() + added, 3 * record());
    EXPECT_LE(static_cast<Bytes>(out.capacity()), static_cast<Bytes>(out.size()) * 5 / 4 + 4096);
    EXPECT_GT(added, static_cast<Bytes>(out.size()) / 2) << "the peak was not seen";
  }
}

}  // namespace
}  // namespace tailrace::codec::test
