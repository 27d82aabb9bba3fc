// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Writes fields of denormal, tiny and ordinary numbers, which are given by their bits. Meanwhile the model's
// floating-point unit flushes denormals to zero (this source is compiled with -Ofast, too), or traps every
// floating-point exception.
//   floating_point DIRECTORY [trap|flush]
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fenv.h>
#include <mpi.h>
#include <tailrace.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

constexpr tr_index ny = 12;
constexpr tr_index nx = 10;
int failures = 0;

void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  std::fprintf(stderr, "%s\n", tr_error());
}

/// Returns the model's floating-point state, which the library must not change.
unsigned state() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3FU;  // without the sticky flags
#else
  return static_cast<unsigned>(fegetexcept());
#endif
}

/// Enables the same traps as gfortran's -ffpe-trap=invalid,zero,overflow,underflow,denormal.
void trap_everything() {
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() & ~0x0100U);  // the mask of denormal operands
#endif
}

/// Returns the bits of a value. Field 0 has denormals, field 1 denormals between ordinary numbers, field 2
/// numbers from the smallest to large ones.
std::uint64_t double_bits(int field, tr_index i) {
  const auto n = static_cast<std::uint64_t>(i + 1);
  if (field == 0) return n * 0x0000012345678ULL;
  if (field == 1) return i % 3 == 0 ? n * 0x12345ULL : 0x3FF0000000000000ULL + (n << 40);
  return ((n * 13) % 1400 + 300) << 52;
}

std::uint32_t float_bits(int field, tr_index i) {
  const auto n = static_cast<std::uint32_t>(i + 1);
  if (field == 0) return n * 0x1234U;
  if (field == 1) return i % 3 == 0 ? n * 0x123U : 0x3F800000U + (n << 12);
  return ((n * 7) % 200 + 20) << 23;
}

template <typename Bits>
std::vector<Bits> field_of(int field, const tr_index* lower, const tr_index* upper,
                           Bits (*bits)(int, tr_index)) {
  std::vector<Bits> values;
  for (tr_index y = lower[0]; y < upper[0]; ++y) {
    for (tr_index x = lower[1]; x < upper[1]; ++x) values.push_back(bits(field, y * nx + x));
  }
  values.push_back(0);  // never empty
  return values;
}

void write(const std::string& directory, const char* packing) {
  const tr_index shape[] = {ny, nx};
  tr_layout* layout = nullptr;
  tr_stream* stream = nullptr;
  expect(tr_layout_block(2, shape, nullptr, &layout));
  expect(tr_layout_georeference(layout,
                                "keys=\"gridType=regular_ll, latitudeOfFirstGridPointInDegrees=50, "
                                "longitudeOfFirstGridPointInDegrees=5, latitudeOfLastGridPointInDegrees=39, "
                                "longitudeOfLastGridPointInDegrees=14\""));
  const std::string path = directory + "/" + packing + ".grib2";
  expect(tr_stream_create(path.c_str(), (std::string("base=2026-03-01T00:00Z packing=") + packing).c_str(),
                          &stream));
  const char* const doubles[] = {"t", "u", "v"};
  const char* const floats[] = {"q", "r", "w"};
  for (int field = 0; field < 3; ++field) {
    expect(tr_stream_define(stream, doubles[field], layout, TR_F64, "levels=pressure:850 bits=16"));
    expect(tr_stream_define(stream, floats[field], layout, TR_F32,
                            "levels=pressure:850 relative_accuracy=0.001"));
  }
  tr_index lower[2];
  tr_index upper[2];
  expect(tr_layout_bounds(layout, 0, lower, upper));
  for (int step = 0; step < 2; ++step) {
    std::vector<std::vector<std::uint64_t>> wide;
    std::vector<std::vector<std::uint32_t>> narrow;
    expect(tr_stream_begin(stream, 3600 * step));
    for (int field = 0; field < 3; ++field) {
      wide.push_back(field_of(field, lower, upper, double_bits));
      narrow.push_back(field_of(field, lower, upper, float_bits));
      expect(tr_stream_put(stream, doubles[field], wide.back().data()));
      expect(tr_stream_put(stream, floats[field], narrow.back().data()));
    }
    expect(tr_stream_end(stream));
  }
  expect(tr_stream_close(&stream));
  expect(tr_layout_free(&layout));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm compute = MPI_COMM_NULL;
  const bool trap = argc > 2 && std::strcmp(argv[2], "trap") == 0;
  if (trap) trap_everything();
#if defined(__x86_64__)
  if (argc > 2 && std::strcmp(argv[2], "flush") == 0 && (_mm_getcsr() & 0x8040U) != 0x8040U) {
    ++failures;
    std::fprintf(stderr, "this program was to flush denormals to zero, but does not\n");
  }
#endif
  const unsigned before = state();
  expect(tr_init(MPI_COMM_WORLD, &compute, nullptr));
  if (compute != MPI_COMM_NULL) {
    for (const char* packing : {"simple", "ccsds"}) write(argv[1], packing);
  }
  expect(tr_finalize());
  if (state() != before) {
    ++failures;
    std::fprintf(stderr, "the floating-point state was %x and became %x\n", before, state());
  }
  fedisableexcept(FE_ALL_EXCEPT);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
