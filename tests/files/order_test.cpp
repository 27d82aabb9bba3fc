// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// In asynchronous files the operations happen in the program's order, although several ranks may carry them
// out, each with its own queue.
#include <functional>
#include <vector>

#include "files/fixture.hpp"

using namespace tailrace::files_test;

namespace {

/// Two aggregators have a stripe of each array. The storage of the second one is so slow that it has only
/// begun when the I/O rank comes to the next call.
std::string options() {
  return std::string("parallel_threshold=0 io_buffer=64KiB aggregators=2") +
         (rank() == 1 ? " throttle=1GB/s,60ms" : "");
}
constexpr tr_index elements = 2048;
constexpr std::size_t bytes = 3 * elements * sizeof(double);

/// Returns the contents of the file after `bytes` zeros in three arrays, then `more`, and the end.
std::string written(const std::string& mode,
                    const std::function<void(tr_file*, const double*, tr_layout*)>& more) {
  const Session session(options());
  const std::string directory = fresh_directory("order");
  const std::string path = directory + "/file";
  write_file(path, std::string(2 * bytes, 'o'));  // the old contents must go
  MPI_Barrier(state().comm);
  tr_layout* layout = nullptr;
  CHECK_EQ(tr_layout_block(1, &elements, nullptr, &layout), TR_OK);
  const std::vector<double> zeros(elements, 0);
  tr_file* const file = tr_fopen(path.c_str(), mode.c_str());
  std::string held;
  if (CHECK(file != nullptr)) {
    for (int i = 0; i < 3; ++i) CHECK_EQ(tr_fwrite_array(zeros.data(), TR_F64, layout, file), elements);
    more(file, zeros.data(), layout);
    CHECK_EQ(tr_fclose(file), 0);
    MPI_Barrier(state().comm);
    held = contents(path);
  }
  CHECK_EQ(tr_layout_free(&layout), TR_OK);
  remove_directory(directory);
  return held;
}

const char* const modes[] = {"w", "wp", "ws", "wps"};

}  // namespace

MPI_TEST(order, text_behind_a_rewind_comes_after_the_array) {
  const std::string text(bytes - 10, 'x');
  for (const char* mode : modes) {
    const std::string held = written(mode, [&](tr_file* file, const double*, tr_layout*) {
      tr_rewind(file);
      tr_fwrite_nr(text.data(), 1, text.size(), file);
    });
    CHECK(held == text + std::string(10, '\0'));
  }
}

MPI_TEST(order, text_behind_a_seek_comes_after_the_array) {
  for (const char* mode : modes) {
    const std::string held = written(mode, [&](tr_file* file, const double*, tr_layout*) {
      tr_fseek_nr(file, -100, SEEK_CUR);
      tr_fputs_nr("text", file);
    });
    CHECK(held == std::string(bytes - 100, '\0') + "text" + std::string(96, '\0'));
  }
}

MPI_TEST(order, text_between_arrays_stays_between_them) {
  for (const char* mode : modes) {
    const std::string held = written(mode, [&](tr_file* file, const double* zeros, tr_layout* layout) {
      tr_fputs_nr("te", file);
      tr_fputs_nr("xt", file);
      CHECK_EQ(tr_fwrite_array(zeros, TR_F64, layout, file), elements);
    });
    CHECK(held == std::string(bytes, '\0') + "text" + std::string(bytes / 3, '\0'));
  }
}

MPI_TEST(order, text_before_an_array_stays_before_it) {
  for (const char* mode : modes) {
    const std::string held = written(mode, [&](tr_file* file, const double* zeros, tr_layout* layout) {
      CHECK_EQ(tr_fseek(file, 0, SEEK_SET), 0);
      tr_fputs_nr("text", file);
      CHECK_EQ(tr_fwrite_array(zeros, TR_F64, layout, file), elements);
    });
    CHECK(held == "text" + std::string(bytes - 4, '\0'));
  }
}

MPI_TEST(order, appended_arrays_follow_the_end_and_reading_does_not) {
  for (const std::string letters : {"", "p", "s", "ps"}) {
    const Session session(options());
    const std::string directory = fresh_directory("order");
    const std::string path = directory + "/file";
    tr_layout* layout = nullptr;
    CHECK_EQ(tr_layout_block(1, &elements, nullptr, &layout), TR_OK);
    tr_index count = 0;
    CHECK_EQ(tr_layout_count(layout, &count), TR_OK);
    std::vector<double> ones(static_cast<std::size_t>(count), 1);
    const std::vector<double> twos(static_cast<std::size_t>(count), 2);
    if (rank() == 0) write_file(path, std::string(elements * sizeof(double), '\0'));
    MPI_Barrier(state().comm);
    tr_file* const file = tr_fopen(path.c_str(), ("a+" + letters).c_str());
    if (!CHECK(file != nullptr)) return;
    CHECK_EQ(tr_fwrite_array(twos.data(), TR_F64, layout, file), elements);
    CHECK_EQ(tr_fseek(file, 0, SEEK_SET), 0);
    CHECK_EQ(tr_fread_array(ones.data(), TR_F64, layout, file), elements);
    CHECK_EQ(tr_fwait(file), 0);
    CHECK(ones == std::vector<double>(ones.size(), 0));
    CHECK_EQ(tr_fread_array(ones.data(), TR_F64, layout, file), elements);
    CHECK_EQ(tr_fwait(file), 0);
    CHECK(ones == twos);
    CHECK_EQ(tr_fseek(file, 8, SEEK_SET), 0);
    CHECK_EQ(tr_fwrite_array(twos.data(), TR_F64, layout, file), elements);
    CHECK_EQ(tr_fclose(file), 0);
    MPI_Barrier(state().comm);
    const double two = 2;
    std::string expected(elements * sizeof(double), '\0');
    for (tr_index i = 0; i < 2 * elements; ++i)
      expected.append(reinterpret_cast<const char*>(&two), sizeof two);
    CHECK(contents(path) == expected);
    CHECK_EQ(tr_layout_free(&layout), TR_OK);
    remove_directory(directory);
  }
}

MPI_TEST_MAIN
