// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Global arrays through the C++ face, over the library.
#include <cstdio>
#include <tailrace.hpp>

namespace {

int failures = 0;

void check(bool passed, const char* what) {
  if (passed) return;
  ++failures;
  std::fprintf(stderr, "failed: %s: %s\n", what, tr_error());
}

void use(MPI_Comm comm) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  auto made = tr::Global<double>::create(1000, tr::Options().set("page", "4KiB"));
  check(made.is_ok(), "create");
  if (!made.is_ok()) return;
  tr::Global<double> global = std::move(*made);
  const tr::Indices indices{999, 0, 999};
  const std::vector<double> values{1, 2, 4};
  for (int i = 0; i < 50; ++i)
    check(global.accumulate(3, indices.data(), values.data(), tr::Lock::page).is_ok(), "accumulate");
  check(global.sync().is_ok(), "sync");
  auto got = global.gather({0, 999, 1});
  check(got.is_ok() && *got == std::vector<double>({100.0 * ranks, 250.0 * ranks, 0}), "gather");
  check(global.gather({0, 1000}).status().code() == tr::Code::argument, "a bad number");
  check(global.sync().is_ok(), "sync");
  for (tr::Index part = 0;; ++part) {
    const auto page = global.local(part);
    check(page.is_ok(), "local");
    if (!page.is_ok() || page->count == 0) break;
    for (tr::Index i = 0; i < page->count; ++i) page->values[i] = static_cast<double>(page->first + i);
  }
  check(global.resize(1500).is_ok() && *global.count() == 1500, "resize");
  std::vector<double> all(1500, -1);
  check(global.read(0, 1500, all.data()).is_ok(), "read");
  for (std::size_t i = 0; i < all.size(); ++i)
    check(all[i] == (i < 1000 ? static_cast<double>(i) : 0.0), "value");
  check(global.sync().is_ok(), "sync");
  if (rank == 0) check(global.write(1, 2, values.data()).is_ok(), "write");
  if (rank == 0) check(global.scatter(1, indices.data(), values.data()).is_ok(), "scatter");
  check(global.sync().is_ok(), "sync");
  got = global.gather({1, 2, 999});
  check(got.is_ok() && *got == std::vector<double>({1, 2, 1}), "gather");
  check(global.free().is_ok() && global.c_handle() == nullptr, "free");
  auto of_some = tr::Global<std::int32_t>::create(MPI_COMM_SELF, 10);
  check(of_some.is_ok() && of_some->free().is_ok(), "create with a communicator");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm comm = MPI_COMM_NULL;
  check(tr::init(MPI_COMM_WORLD, comm).is_ok(), "init");
  use(comm);
  check(tr::finalize().is_ok(), "finalize");
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
