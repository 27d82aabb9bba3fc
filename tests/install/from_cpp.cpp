// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Writes one raw field of 10 x 12 values, 100 * row + column, into the directory given.
#include <cstdio>
#include <string>
#include <tailrace.hpp>
#include <vector>

static tr::Status write_field(const std::string& directory) {
  auto grid = tr::Layout::block({10, 12});
  if (!grid.is_ok()) return grid.status();
  const tr::Bounds mine = *grid->bounds();
  std::vector<float> field;
  for (tr::Index row = mine.lower[0]; row < mine.upper[0]; row++)
    for (tr::Index column = mine.lower[1]; column < mine.upper[1]; column++)
      field.push_back(100.0f * static_cast<float>(row) + static_cast<float>(column));
  auto out = tr::Stream::create(directory + "/field.raw", "format=raw base=2026-03-01T00:00Z");
  if (!out.is_ok()) return out.status();
  const tr::Status defined = out->define<float>("t", *grid);
  if (!defined.is_ok()) return defined;
  out->begin(0);
  out->put("t", field.data());
  const tr::Status ended = out->end();
  if (!ended.is_ok()) return ended;
  const tr::Status closed = out->close();
  const tr::Status freed = grid->free();
  return closed.is_ok() ? freed : closed;
}

int main(int argc, char** argv) {
  MPI_Comm model = MPI_COMM_NULL;
  MPI_Init(&argc, &argv);
  tr::Status status = tr::init(MPI_COMM_WORLD, model);
  if (status.is_ok() && model != MPI_COMM_NULL) status = write_field(argv[1]);
  if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.text().c_str());
  const tr::Status last = tr::finalize();
  if (!last.is_ok()) std::fprintf(stderr, "%s\n", last.text().c_str());
  MPI_Finalize();
  return status.is_ok() && last.is_ok() ? 0 : 1;
}
