// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A raw stream written through the C++ face holds the global field, whatever the number of ranks, and one
// that is read gives each rank its part of it and the halo.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <tailrace.hpp>
#include <vector>

namespace {

constexpr tr::Index kRows = 11;
constexpr tr::Index kColumns = 7;
constexpr tr::Index kHalo = 2;

double value(tr::Index row, tr::Index column) {
  return 100.0 * static_cast<double>(row) + static_cast<double>(column);
}

tr::Status write(const std::string& name) {
  auto grid = tr::Layout::block({kRows, kColumns}, {kHalo, kHalo});
  if (!grid.is_ok()) return grid.status();
  const auto with = grid->bounds();
  const auto own = grid->bounds(false);
  if (!with.is_ok()) return with.status();
  const tr::Index rows = with->upper[0] - with->lower[0];
  const tr::Index columns = with->upper[1] - with->lower[1];
  std::vector<double> field(static_cast<std::size_t>(rows * columns), -1);
  for (tr::Index i = own->lower[0]; i < own->upper[0]; ++i) {
    for (tr::Index j = own->lower[1]; j < own->upper[1]; ++j) {
      field[static_cast<std::size_t>((i - with->lower[0]) * columns + j - with->lower[1])] = value(i, j);
    }
  }
  auto stream =
      tr::Stream::create(name, tr::Options("format=raw existing=replace").set("base", "2026-03-01T00:00Z"));
  if (!stream.is_ok()) return stream.status();
  if (tr::Status s = stream->define<double>("t", *grid); !s.is_ok()) return s;
  stream->begin(0);
  stream->put("t", field.data());
  if (tr::Status s = stream->end(); !s.is_ok()) return s;
  stream->begin(3600);
  stream->put("t", field.data(), {rows, columns});
  if (tr::Status s = stream->end(); !s.is_ok()) return s;
  if (tr::Status s = grid->free(); !s.is_ok()) return s;
  return stream->close();
}

bool holds_the_field_twice(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<double> expected;
  for (int step = 0; step < 2; ++step) {
    for (tr::Index i = 0; i < kRows; ++i) {
      for (tr::Index j = 0; j < kColumns; ++j) expected.push_back(value(i, j));
    }
  }
  const auto* first = reinterpret_cast<const char*>(expected.data());
  return bytes == std::vector<char>(first, first + expected.size() * sizeof(double));
}

tr::Status read(const std::string& name, bool& is_right) {
  is_right = true;
  auto grid = tr::Layout::block({kRows, kColumns}, {kHalo, kHalo});
  if (!grid.is_ok()) return grid.status();
  const auto with = grid->bounds();
  if (!with.is_ok()) return with.status();
  const tr::Index rows = with->upper[0] - with->lower[0];
  const tr::Index columns = with->upper[1] - with->lower[1];
  auto stream = tr::Stream::open(name, tr::Options("prefetch=1").set("base", "2026-03-01T00:00Z"));
  if (!stream.is_ok()) return stream.status();
  if (tr::Status s = stream->define<float>("t", *grid); !s.is_ok()) return s;
  for (const std::int64_t lead : {0, 3600, 0}) {
    std::vector<float> field(static_cast<std::size_t>(rows * columns), -1);
    if (tr::Status s = lead == 0 ? stream->seek(lead) : tr::Status(); !s.is_ok()) return s;
    stream->begin(lead);
    if (lead == 0) {
      stream->get("t", field.data(), {rows, columns});
    } else {
      stream->get("t", field.data());
    }
    if (tr::Status s = stream->end(); !s.is_ok()) return s;
    for (tr::Index i = with->lower[0]; i < with->upper[0]; ++i) {
      for (tr::Index j = with->lower[1]; j < with->upper[1]; ++j) {
        const bool inside = i >= 0 && i < kRows && j >= 0 && j < kColumns;
        const float got =
            field[static_cast<std::size_t>((i - with->lower[0]) * columns + j - with->lower[1])];
        is_right = is_right && got == (inside ? static_cast<float>(value(i, j)) : -1);
      }
    }
  }
  std::vector<float> field(static_cast<std::size_t>(rows * columns));
  stream->begin(1800);
  stream->get("t", field.data());
  if (stream->end().is_ok()) return {TR_ERR_STATE, "a lead that the file does not have was read"};
  if (tr::Status s = grid->free(); !s.is_ok()) return s;
  return stream->close();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm compute = MPI_COMM_NULL;
  std::string why;
  if (tr::Status s = tr::init(MPI_COMM_WORLD, compute, "time_limit=off"); !s.is_ok()) why = s.text();
  if (why.empty() && compute != MPI_COMM_NULL) {
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(compute, &rank);
    MPI_Comm_size(compute, &ranks);
    const std::string name = "cpp_face_" + std::to_string(ranks) + ".raw";
    if (tr::Status s = write(name); !s.is_ok()) why = s.text();
    if (tr::should_stop()) why = "nothing asks to stop, and should_stop() does";
    if (why.empty() && rank == 0 && !holds_the_field_twice(name)) why = name + " differs from the field";
    bool is_right = false;
    if (tr::Status s = why.empty() ? read(name, is_right) : tr::Status(); !s.is_ok()) why = s.text();
    if (why.empty() && !is_right) why = name + ": a rank got other values than were written";
    MPI_Barrier(compute);
    if (rank == 0) {
      std::remove(name.c_str());
      std::remove((name + ".trx").c_str());
    }
  }
  if (tr::Status s = tr::finalize(); !s.is_ok() && why.empty()) why = s.text();
  if (!why.empty()) std::fprintf(stderr, "%s\n", why.c_str());
  MPI_Finalize();
  return why.empty() ? 0 : 1;
}
