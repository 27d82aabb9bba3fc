// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Saves three generations of known values; format_test.py reads the files. The first argument is the name of
// the checkpoint, the second its options. In generation g, element e of each array has the value 1000 g + e.
// A file beside the copies has ten bytes more in each generation; in the second its position is byte 5.
#include <tailrace.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

void must(bool ok) {
  if (ok) return;
  std::fprintf(stderr, "format_save: %s\n", tr_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// A block of a float64 array of two dimensions, with a halo that holds -1.
struct Block {
  tr_layout* layout = nullptr;
  std::vector<double> values;
  tr_index lower[2], upper[2], shape[2];

  explicit Block(tr_index rows, tr_index columns) : shape{rows, columns} {
    const tr_index halo[] = {1, 2};
    must(tr_layout_block(2, shape, halo, &layout) == TR_OK);
    must(tr_layout_bounds(layout, 0, lower, upper) == TR_OK);
  }
  void fill(int generation) {
    values.clear();
    for (tr_index i = lower[0] - 1; i < upper[0] + 1; ++i) {
      for (tr_index j = lower[1] - 2; j < upper[1] + 2; ++j) {
        const bool own = i >= lower[0] && i < upper[0] && j >= lower[1] && j < upper[1];
        values.push_back(own ? 1000. * generation + static_cast<double>(i * shape[1] + j) : -1.);
      }
    }
  }
};

/// An int32 array whose elements are dealt out one by one. Each rank lists its elements from the last to the
/// first.
struct Dealt {
  tr_layout* layout = nullptr;
  std::vector<tr_index> mine;
  std::vector<std::int32_t> values;

  Dealt(tr_index count, int rank, int ranks) {
    for (tr_index e = count - 1; e >= 0; --e) {
      if (e % ranks == rank) mine.push_back(e);
    }
    must(tr_layout_indexed(1, &count, static_cast<tr_index>(mine.size()), mine.data(), 0, &layout) == TR_OK);
  }
  void fill(int generation) {
    values.clear();
    for (const tr_index e : mine) values.push_back(static_cast<std::int32_t>(1000 * generation + e));
  }
};

void save(tr_checkpoint* checkpoint, int generation, Block& field, Dealt& dealt,
          const tr_layout* replicated) {
  std::int64_t step = 1000 * generation;
  std::vector<std::int16_t> replica;
  for (int e = 0; e < 9; ++e) replica.push_back(static_cast<std::int16_t>(1000 * generation + e));
  field.fill(generation);
  dealt.fill(generation);
  const tr_index start[] = {2, 1}, stop[] = {600, 800}, stride[] = {7, 3};
  const tr_array section = {field.values.data(), TR_F64, field.layout, start, stop, stride};
  must(tr_checkpoint_begin(checkpoint, TR_SAVE, nullptr) == TR_OK);
  tr_checkpoint_item(checkpoint, "step", &step, TR_I64, nullptr);
  tr_checkpoint_item(checkpoint, "t", field.values.data(), TR_F64, field.layout);
  tr_checkpoint_item(checkpoint, "dealt", dealt.values.data(), TR_I32, dealt.layout);
  tr_checkpoint_item(checkpoint, "same", replica.data(), TR_I16, replicated);
  tr_checkpoint_item_section(checkpoint, "section", &section);
  must(tr_checkpoint_end(checkpoint) == TR_OK);
}

void save_all(const char* name, const char* options, MPI_Comm compute) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(compute, &rank);
  MPI_Comm_size(compute, &ranks);
  Block field(601, 811);  // several blocks of each rank, the last one short
  Dealt dealt(100, rank, ranks);
  const tr_index nine = 9;
  tr_layout* replicated = nullptr;
  must(tr_layout_replicated(1, &nine, &replicated) == TR_OK);
  const std::string path = std::string(name) + ".out";
  tr_file* const output = tr_fopen(path.c_str(), "w");
  must(output != nullptr);
  tr_checkpoint* checkpoint = nullptr;
  must(tr_checkpoint_create(name, options, &checkpoint) == TR_OK);
  for (int generation = 1; generation <= 3; ++generation) {
    must(tr_fputs("0123456789", output) >= 0);
    must(tr_fseek(output, generation == 2 ? 5 : 0, generation == 2 ? SEEK_SET : SEEK_END) == 0);
    save(checkpoint, generation, field, dealt, replicated);
    must(tr_fseek(output, 0, SEEK_END) == 0);
  }
  must(tr_fclose(output) == 0);
  must(tr_checkpoint_close(&checkpoint) == TR_OK);
  for (tr_layout* layout : {field.layout, dealt.layout, replicated}) must(tr_layout_free(&layout) == TR_OK);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Comm compute = MPI_COMM_NULL;
  MPI_Init(&argc, &argv);
  must(tr_init(MPI_COMM_WORLD, &compute, nullptr) == TR_OK);
  save_all(argv[1], argc > 2 ? argv[2] : "", compute);
  must(tr_finalize() == TR_OK);
  MPI_Finalize();
  return 0;
}
