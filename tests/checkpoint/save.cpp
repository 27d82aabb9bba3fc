// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Saves checkpoints with known values, for tests that look at the files:
//   save NAME OPTIONS GENERATIONS ROWSxCOLUMNS SALT [OUTPUT [OVER]]
// OUTPUT is a file to which the program appends ten bytes before each save. After the save it writes OVER
// over the file's begin; if OVER is "anew", it opens the file anew, and appends five bytes from then on. In
// generation g, element e of every array but `mask` has the value SALT + 1000 g + e, and of `mask` the value
// e.
#include <mpi.h>
#include <tailrace.h>

#include <complex>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void must(int code, const char* what) {
  if (code == TR_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, tr_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// This rank's part of an array in blocks.
template <typename T>
struct Field {
  tr_layout* layout = nullptr;
  std::vector<T> values;
  std::vector<tr_index> global;

  explicit Field(const std::vector<tr_index>& shape) {
    const int dims = static_cast<int>(shape.size());
    must(tr_layout_block(dims, shape.data(), nullptr, &layout), "tr_layout_block");
    std::vector<tr_index> lower(shape.size()), upper(shape.size());
    must(tr_layout_bounds(layout, 0, lower.data(), upper.data()), "tr_layout_bounds");
    tr_index count = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) count *= upper[d] - lower[d];
    for (tr_index e = 0; e < count; ++e) {
      tr_index number = 0, rest = e, stride = 1;
      for (std::size_t d = shape.size(); d-- > 0;) {
        const tr_index extent = upper[d] - lower[d];
        number += (lower[d] + rest % extent) * stride;
        rest /= extent;
        stride *= shape[d];
      }
      global.push_back(number);
    }
    values.resize(global.size());
  }
  ~Field() { tr_layout_free(&layout); }
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;

  void fill(double first) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(first + static_cast<double>(global[i]));
  }
};

struct State {
  Field<double> t;
  Field<float> wind{{7, 11}};
  Field<std::complex<float>> wave{{3, 5}};
  Field<std::int16_t> soil{{101}};
  Field<std::int8_t> mask{{2, 2, 2}};
  Field<double> none{{0, 4}};

  State(tr_index rows, tr_index columns) : t({rows, columns}) {}

  void save(tr_checkpoint* checkpoint, std::int64_t step, double first) {
    t.fill(first);
    wind.fill(first);
    wave.fill(first);
    soil.fill(first);
    mask.fill(0);
    must(tr_checkpoint_begin(checkpoint, TR_SAVE, nullptr), "tr_checkpoint_begin");
    tr_checkpoint_item(checkpoint, "step", &step, TR_I64, nullptr);
    tr_checkpoint_item(checkpoint, "t", t.values.data(), TR_F64, t.layout);
    tr_checkpoint_item(checkpoint, "wind/10 m", wind.values.data(), TR_F32, wind.layout);
    tr_checkpoint_item(checkpoint, "wave", wave.values.data(), TR_C64, wave.layout);
    tr_checkpoint_item(checkpoint, "soil", soil.values.data(), TR_I16, soil.layout);
    tr_checkpoint_item(checkpoint, "mask", mask.values.data(), TR_BYTE, mask.layout);
    tr_checkpoint_item(checkpoint, "none", none.values.data(), TR_F64, none.layout);
    must(tr_checkpoint_end(checkpoint), "tr_checkpoint_end");
  }
};

void write_over(tr_file*& output, const char* path, const std::string& text) {
  if (text == "anew") {
    must(tr_fclose(output) == 0 ? TR_OK : TR_ERR_IO, "tr_fclose");
    output = tr_fopen(path, "w");
    must(output != nullptr ? TR_OK : TR_ERR_IO, "tr_fopen");
    return;
  }
  const bool done = tr_fseek(output, 0, SEEK_SET) == 0 && tr_fputs(text.c_str(), output) >= 0 &&
                    tr_fseek(output, 0, SEEK_END) == 0;
  must(done ? TR_OK : TR_ERR_IO, "writing over");
}

void save_all(char** argv) {
  char* end = nullptr;
  const tr_index rows = std::strtoll(argv[4], &end, 10);
  const tr_index columns = std::strtoll(end + 1, nullptr, 10);
  const double salt = std::strtod(argv[5], nullptr);
  tr_checkpoint* checkpoint = nullptr;
  must(tr_checkpoint_create(argv[1], argv[2], &checkpoint), "tr_checkpoint_create");
  State state(rows, columns);
  const char* const over = argv[6] == nullptr ? nullptr : argv[7];
  const bool is_anew = over != nullptr && std::string(over) == "anew";
  tr_file* output = argv[6] == nullptr ? nullptr : tr_fopen(argv[6], "w");
  for (std::int64_t step = 1; step <= std::atoi(argv[3]); ++step) {
    const char* const text = is_anew && step > 1 ? "01234" : "0123456789";
    if (output != nullptr) must(tr_fputs(text, output) >= 0 ? TR_OK : TR_ERR_IO, "tr_fputs");
    state.save(checkpoint, step, salt + 1000.0 * static_cast<double>(step));
    if (output != nullptr && over != nullptr) write_over(output, argv[6], over);
  }
  must(tr_checkpoint_close(&checkpoint), "tr_checkpoint_close");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 6 || argc > 8) {
    std::fprintf(stderr, "save NAME OPTIONS GENERATIONS ROWSxCOLUMNS SALT [OUTPUT [OVER]]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm compute = MPI_COMM_NULL;
  must(tr_init(MPI_COMM_WORLD, &compute, nullptr), "tr_init");
  save_all(argv);
  must(tr_finalize(), "tr_finalize");
  MPI_Finalize();
  return 0;
}
