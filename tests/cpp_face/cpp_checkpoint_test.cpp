// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Data saved through the C++ face is there after a load: in another run of the program, over another layout,
// and section by section. Mistakes are told with the name of the item.
#include <cstdio>
#include <filesystem>
#include <tailrace.hpp>
#include <vector>

namespace {

constexpr tr::Index kRows = 11;
constexpr tr::Index kColumns = 7;

int rank = 0;
int failures = 0;

void check(bool holds, const std::string& promise) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "rank %d: does not hold: %s\n", rank, promise.c_str());
}
void check_ok(const tr::Status& status, const std::string& what) {
  check(status.is_ok(), what + ": " + status.text());
}
void check_refused(const tr::Status& status, tr::Code code, const std::string& part) {
  check(status.code() == code, "the code of: " + part);
  check(status.text().find(part) != std::string::npos,
        "the text contains " + part + "; got: " + status.text());
}

double value(tr::Index row, tr::Index column) {
  return 100.0 * static_cast<double>(row) + static_cast<double>(column);
}

// The caller's part of a field, halo included; `outside` is what the halo holds.
struct Field {
  tr::Layout grid;
  tr::Bounds with, own;
  std::vector<double> values;

  explicit Field(const std::vector<int>& processors, tr::Index halo) {
    auto made = tr::Layout::block({kRows, kColumns}, {halo, halo}, processors);
    check_ok(made.status(), "the layout");
    grid = *std::move(made);
    with = *grid.bounds();
    own = *grid.bounds(false);
    values.assign(static_cast<std::size_t>(rows() * columns()), 0);
  }
  tr::Index rows() const { return with.upper[0] - with.lower[0]; }
  tr::Index columns() const { return with.upper[1] - with.lower[1]; }
  bool is_own(tr::Index i, tr::Index j) const {
    return i >= own.lower[0] && i < own.upper[0] && j >= own.lower[1] && j < own.upper[1];
  }
  double& at(tr::Index i, tr::Index j) {
    return values[static_cast<std::size_t>((i - with.lower[0]) * columns() + j - with.lower[1])];
  }
  template <typename F>
  void each(F&& f) {
    for (tr::Index i = with.lower[0]; i < with.upper[0]; ++i) {
      for (tr::Index j = with.lower[1]; j < with.upper[1]; ++j) f(i, j, at(i, j));
    }
  }
  void fill(double outside) {
    each([&](tr::Index i, tr::Index j, double& x) { x = is_own(i, j) ? value(i, j) : outside; });
  }
  bool holds(double outside) {
    bool whole = true;
    each([&](tr::Index i, tr::Index j, double& x) {
      whole = whole && x == (is_own(i, j) ? value(i, j) : outside);
    });
    return whole;
  }
};

tr::Checkpoint open(const std::string& name, const tr::Options& options = {}) {
  auto made = tr::Checkpoint::create(name, options);
  check_ok(made.status(), "create");
  return made.is_ok() ? *std::move(made) : tr::Checkpoint();
}
bool begin(tr::Checkpoint& checkpoint, tr::Direction direction) {
  const auto found = checkpoint.begin(direction);
  check_ok(found.status(), "begin");
  return found.is_ok() && *found;
}

void what_is_saved_is_loaded(const std::string& name) {
  Field saved({1, 0}, 2);
  saved.fill(-1);
  std::int64_t step = 40 + rank;
  tr::Checkpoint checkpoint = open(name, "keep=2");
  check(!begin(checkpoint, tr::Direction::load), "nothing is found at first");
  check_ok(checkpoint.end(), "a load that found nothing ends");
  check(checkpoint.status() == tr::SaveStatus::none, "nothing was saved");
  for (int save = 0; save < 3; ++save) {
    begin(checkpoint, tr::Direction::save);
    checkpoint.item("step", step);
    checkpoint.item("temperature", saved.values.data(), saved.grid);
    check_ok(checkpoint.end(), "a save ends");
    step += 100;
    saved.fill(-2);
  }
  check_ok(checkpoint.wait(), "wait");
  check(checkpoint.status() == tr::SaveStatus::committed, "the save is committed");
  check(checkpoint.generation() == 3, "three generations");
  check_ok(checkpoint.close(), "close");
  check_ok(saved.grid.free(), "the layout");
}

// The memory of each rank has another number of elements, another halo, and a longer array around it.
void another_layout_loads_it(const std::string& name) {
  Field halo({0, 1}, 1);
  halo.values.assign(halo.values.size(), 7);
  Field plain({1, 0}, 0);
  std::vector<double> wide(2 * plain.values.size(), -1);
  std::int64_t step = 0;
  tr::Checkpoint checkpoint = open(name);
  check(begin(checkpoint, tr::Direction::load), "the save is found");
  checkpoint.item("temperature", halo.values.data(), halo.grid);
  checkpoint.item("step", step);
  check_ok(checkpoint.end(), "a load ends");
  check(step == 240, "the first rank's scalar is everybody's");
  check(halo.holds(7), "the array, and a halo that is left alone");
  check(begin(checkpoint, tr::Direction::load), "it is found again");
  checkpoint.item("step", step);
  checkpoint.item("temperature", wide.data(), plain.grid, {plain.rows(), plain.columns()},
                  {16 * plain.columns(), 16});
  check_ok(checkpoint.end(), "a load with strides ends");
  for (std::size_t i = 0; i < plain.values.size(); ++i) {
    plain.values[i] = wide[2 * i];
    check(wide[2 * i + 1] == -1, "what lies between the strides is left alone");
  }
  check(plain.holds(0), "the array with strides");
  check_ok(checkpoint.close(), "close");
  check_ok(plain.grid.free(), "the layout");
  check_ok(halo.grid.free(), "the layout");
}

void mistakes_name_the_item(const std::string& name) {
  Field field({1, 0}, 0);
  field.fill(0);
  std::int64_t step = 0;
  double wrong = 0;
  tr::Checkpoint checkpoint = open(name);
  begin(checkpoint, tr::Direction::load);
  checkpoint.item("step", step);
  check_refused(checkpoint.end(), tr::Code::argument, "temperature");
  begin(checkpoint, tr::Direction::load);
  checkpoint.item("step", wrong);
  checkpoint.item("temperature", field.values.data(), field.grid);
  check_refused(checkpoint.end(), tr::Code::argument, "step");
  begin(checkpoint, tr::Direction::load);
  checkpoint.item("step", step);
  checkpoint.item("temperature", field.values.data(), field.grid);
  checkpoint.item("unknown", wrong);
  check_refused(checkpoint.end(), tr::Code::argument, "unknown");
  check(step == 0, "nothing is filled after a mistake");
  begin(checkpoint, tr::Direction::load);
  const std::int64_t constant = 5;
  checkpoint.item("step", constant);
  checkpoint.item("temperature", field.values.data(), field.grid);
  check_refused(checkpoint.end(), tr::Code::argument, "step is const, and cannot be loaded");
  check(constant == 5, "const data is left alone");
  begin(checkpoint, tr::Direction::load);
  checkpoint.item("step", step);
  checkpoint.item("temperature", field.values.data(), field.grid, tr::Section{{0}, {4}});
  check_refused(checkpoint.end(), tr::Code::argument, "section of another number of dimensions");
  check_ok(checkpoint.close(), "close");
  check_ok(field.grid.free(), "the layout");
  check_refused(tr::Checkpoint::create(name, "keeep=2").status(), tr::Code::settings, "keeep");
}

void sections_are_loaded(const std::string& name) {
  Field field({0, 1}, 1);
  field.fill(-1);
  tr::Checkpoint checkpoint = open(name, "async=off");
  begin(checkpoint, tr::Direction::save);
  checkpoint.item("temperature", field.values.data(), field.grid,
                  tr::Section{{1, 0}, {kRows, kColumns}, {2, 3}});
  check_ok(checkpoint.end(), "a save of a section ends");
  check(checkpoint.status() == tr::SaveStatus::committed, "async=off commits");
  field.values.assign(field.values.size(), 7);
  begin(checkpoint, tr::Direction::load);
  checkpoint.item("temperature", field.values.data(), field.grid,
                  tr::Section{{1, 0}, {kRows, kColumns}, {2, 3}});
  check_ok(checkpoint.end(), "a load of a section ends");
  field.each([&](tr::Index i, tr::Index j, double& x) {
    const bool chosen = field.is_own(i, j) && i % 2 == 1 && j % 3 == 0;
    check(x == (chosen ? value(i, j) : 7), "the section, and nothing else");
  });
  check_ok(checkpoint.close(), "close");
  check_ok(field.grid.free(), "the layout");
}

void registered_variables_are_loaded(const std::string& name) {
  Field field({1, 0}, 1);
  field.fill(-1);
  double seconds = 12.5;
  auto made = tr::Checkpoint::create_registered(
      name, {{"seconds", seconds}, {"temperature", field.values.data(), field.grid}},
      {name + "_one", name + "_other"});
  check_ok(made.status(), "create_registered");
  if (!made.is_ok()) return;
  auto found = made->load();
  check(found.is_ok() && !*found, "nothing is found at first");
  check_ok(made->save(true), "save, asynchronously");
  check_ok(made->save(false), "save");
  check(made->status() == tr::SaveStatus::committed, "it is committed");
  seconds = 0;
  field.values.assign(field.values.size(), 7);
  found = made->load();
  check(found.is_ok() && *found, "it is found");
  check(seconds == 12.5 && field.holds(7), "the variables are filled");
  check_ok(made->close(), "close");
  check_ok(field.grid.free(), "the layout");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm compute = MPI_COMM_NULL;
  check_ok(tr::init(MPI_COMM_WORLD, compute), "init");
  if (failures == 0 && compute != MPI_COMM_NULL) {
    int ranks = 0;
    MPI_Comm_rank(compute, &rank);
    MPI_Comm_size(compute, &ranks);
    const std::string folder = "cpp_checkpoint_" + std::to_string(ranks);
    if (rank == 0) std::filesystem::remove_all(folder);
    if (rank == 0) std::filesystem::create_directory(folder);
    MPI_Barrier(compute);
    what_is_saved_is_loaded(folder + "/a");
    another_layout_loads_it(folder + "/a");
    mistakes_name_the_item(folder + "/a");
    sections_are_loaded(folder + "/b");
    registered_variables_are_loaded(folder + "/c");
    MPI_Barrier(compute);
    if (rank == 0) std::filesystem::remove_all(folder);
  }
  check_ok(tr::finalize(), "finalize");
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
