// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Collective files beyond 4 GiB, arrays of more bytes than a 32-bit number counts, and parts of more than 2
// GiB.
#include <tailrace.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/mpi_test.hpp"

using namespace tailrace::mpi_test;

namespace {

constexpr tr_index rows = 66'000;
constexpr tr_index columns = 66'000;  // 4.36e9 bytes

class Session {
 public:
  Session() { CHECK_EQ(tr_init(state().comm, &compute_, nullptr), TR_OK); }
  ~Session() { CHECK_EQ(tr_finalize(), TR_OK); }

 private:
  MPI_Comm compute_ = MPI_COMM_NULL;
};

signed char value_at(tr_index element) { return static_cast<signed char>(element % 119); }

}  // namespace

MPI_TEST(large_files, hold_an_array_beyond_32_bits) {
  const Session session;
  const std::string path = "large_files_test." + std::to_string(size());
  const tr_index shape[] = {rows, columns};
  tr_layout* layout = nullptr;
  tr_index lower[2];
  tr_index upper[2];
  CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout), TR_OK);
  CHECK_EQ(tr_layout_bounds(layout, 0, lower, upper), TR_OK);
  const tr_index width = upper[1] - lower[1];
  std::vector<signed char> values(static_cast<std::size_t>((upper[0] - lower[0]) * width));
  const auto each = [&](const auto& body) {
    for (tr_index y = lower[0]; y < upper[0]; ++y)
      for (tr_index x = lower[1]; x < upper[1]; ++x)
        body(values[static_cast<std::size_t>((y - lower[0]) * width + x - lower[1])],
             value_at(y * columns + x));
  };
  each([](signed char& value, signed char expected) { value = expected; });
  tr_file* file = tr_fopen(path.c_str(), "w+p");
  if (!CHECK(file != nullptr)) return;
  CHECK_EQ(tr_fputs("head\n", file) >= 0, true);
  CHECK_EQ(tr_fwrite_array(values.data(), TR_I8, layout, file), static_cast<std::size_t>(rows * columns));
  CHECK_EQ(tr_ftell(file), rows * columns + 5);
  CHECK_EQ(tr_fputs("tail\n", file) >= 0, true);
  CHECK_EQ(tr_fflush(file), 0);
  CHECK_EQ(std::filesystem::file_size(path), static_cast<std::uintmax_t>(rows * columns + 10));
  std::fill(values.begin(), values.end(), static_cast<signed char>(-1));
  CHECK_EQ(tr_fseek(file, 5, SEEK_SET), 0);
  CHECK_EQ(tr_fread_array(values.data(), TR_I8, layout, file), static_cast<std::size_t>(rows * columns));
  bool right = true;
  each([&](signed char& value, signed char expected) { right = right && value == expected; });
  CHECK(right);
  char line[8] = "";
  CHECK(tr_fgets(line, sizeof line, file) == line);
  CHECK_EQ(std::string(line), "tail\n");
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_remove(path.c_str()), 0);
  tr_layout_free(&layout);
}

MPI_TEST_MAIN
