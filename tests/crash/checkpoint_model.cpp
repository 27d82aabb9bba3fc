// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A model whose values are computed from step and place. It saves each step until it is killed.
//   checkpoint_model NAME OPTIONS STEPS PAUSE_MS [POINTS [held]]
// It ends by itself after STEPS steps; with 0 it only loads. Rank 0 prints "begun", "none whole" if there are
// copies and none is whole, "loaded STEP" (0: nothing), "BAD ..." if the loaded data is not that step's,
// "committed STEP" and "complete". Each process makes a file named after its process id in the directory
// `pids`. POINTS is the length of the second array. With "held" the program waits for the file go.STEP before
// it saves a step, and then waits for the save. If the save fails, rank 0 prints "no space STEP" or "BAD
// ...", and the program loads the existing copy and goes on.
#include <tailrace.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr tr_index shape[2] = {17, 23};
constexpr tr_index halo[2] = {2, 1};
constexpr tr_index block = 5;
constexpr double untouched = -7.5;

int rank = 0;

/// Ends the program if a call has failed. The code is the same on every rank, so all ranks end.
void must(int code, const char* what) {
  if (code == TR_OK) return;
  if (rank == 0) std::printf("%s: %s\n", what, tr_error());
  std::_Exit(3);
}

void tell(const char* what, std::int64_t step) {
  if (rank == 0) std::printf("%s %lld\n", what, static_cast<long long>(step));
}

double value(std::int64_t step, tr_index element) {
  return static_cast<double>(step) * 1024.0 + static_cast<double>(element) + 0.25;
}
std::int64_t number(std::int64_t step, tr_index element) { return step * 1000003 - element * 7; }

class Model {
 public:
  Model(MPI_Comm compute, tr_index points) : compute_(compute) {
    MPI_Comm_size(compute, &ranks_);
    must(tr_layout_block(2, shape, halo, &blocks_), "layout");
    must(tr_layout_block_cyclic(1, &points, &block, nullptr, &cyclic_), "layout");
    must(tr_layout_bounds(blocks_, 0, lower_, upper_), "bounds");
    tr_index count = 0;
    must(tr_layout_count(cyclic_, &count), "count");
    a_.resize(static_cast<std::size_t>((upper_[0] - lower_[0] + 2 * halo[0]) * pitch()));
    b_.resize(static_cast<std::size_t>(count));
  }
  ~Model() {
    tr_layout_free(&blocks_);
    tr_layout_free(&cyclic_);
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  std::int64_t step = 0;

  void fill() {
    a_.assign(a_.size(), untouched);
    each([](double& here, double expected) { here = expected; });
    for (std::size_t i = 0; i < b_.size(); ++i) b_[i] = number(step, element_of(i));
  }
  /// Collective. True if all loaded data is this step's, and the halo was not changed.
  bool is_right() {
    std::size_t others = a_.size();
    bool right = true;
    each([&](double here, double expected) {
      --others;
      right = right && here == expected;
    });
    for (const double here : a_) others -= here == untouched ? 1 : 0;
    for (std::size_t i = 0; i < b_.size(); ++i) right = right && b_[i] == number(step, element_of(i));
    int wrong = right && others == 0 ? 0 : 1;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, compute_);
    return wrong == 0;
  }
  int transfer(tr_checkpoint* cp, int direction, int* found) {
    const int begun = tr_checkpoint_begin(cp, direction, found);
    if (direction == TR_SAVE || *found != 0) {
      tr_checkpoint_item(cp, "b", b_.data(), TR_I64, cyclic_);
      tr_checkpoint_item(cp, "step", &step, TR_I64, nullptr);
      tr_checkpoint_item(cp, "a", a_.data(), TR_F64, blocks_);
    }
    const int ended = tr_checkpoint_end(cp);
    return begun != TR_OK ? begun : ended;
  }

 private:
  [[nodiscard]] tr_index pitch() const { return upper_[1] - lower_[1] + 2 * halo[1]; }
  [[nodiscard]] tr_index element_of(std::size_t i) const {
    const auto local = static_cast<tr_index>(i);
    return (local / block * ranks_ + rank) * block + local % block;
  }
  template <typename Action>
  void each(const Action& action) {
    for (tr_index y = lower_[0]; y < upper_[0]; ++y) {
      for (tr_index x = lower_[1]; x < upper_[1]; ++x) {
        const tr_index place = (y - lower_[0] + halo[0]) * pitch() + x - lower_[1] + halo[1];
        action(a_[static_cast<std::size_t>(place)], value(step, y * shape[1] + x));
      }
    }
  }

  MPI_Comm compute_;
  int ranks_ = 1;
  tr_layout* blocks_ = nullptr;
  tr_layout* cyclic_ = nullptr;
  tr_index lower_[2] = {}, upper_[2] = {};
  std::vector<double> a_;  // with halo
  std::vector<std::int64_t> b_;
};

void load(Model& model, tr_checkpoint* cp) {
  int found = 0;
  model.step = -1;
  model.fill();
  const int code = model.transfer(cp, TR_LOAD, &found);
  if (code == TR_ERR_CORRUPT && rank == 0) std::printf("none whole: %s\n", tr_error());
  if (code != TR_ERR_CORRUPT) must(code, "load");
  if (code == TR_OK && found != 0) {
    if (!model.is_right()) tell("BAD: these are not the values of step", model.step);
  } else {
    model.step = 0;
  }
  tell("loaded", model.step);
}

/// Collective. True if a call has returned this code on all ranks, with the same text of tr_error().
bool is_told_alike(MPI_Comm compute, int code) {
  const auto words = static_cast<std::int64_t>(std::hash<std::string_view>{}(tr_error()) >> 2U);
  const std::int64_t mine[] = {code, -code, words, -words};
  std::int64_t most[4];
  MPI_Allreduce(mine, most, 4, MPI_INT64_T, MPI_MAX, compute);
  return most[0] == -most[1] && most[2] == -most[3];
}

/// Saves one step once the file go.STEP exists, and waits for the save. Prints a failure, and goes on.
void save_when_let(MPI_Comm compute, Model& model, tr_checkpoint* cp) {
  const std::int64_t step = model.step;
  while (::access(("go." + std::to_string(step)).c_str(), F_OK) != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  int code = model.transfer(cp, TR_SAVE, nullptr);
  if (code == TR_OK) {
    model.step = -1;
    model.fill();  // captured: the data may change
    code = tr_checkpoint_wait(cp);
    model.step = step;
  }
  if (code == TR_OK) {
    tell("committed", step);
    return;
  }
  const bool alike = is_told_alike(compute, code);
  if (rank == 0) std::printf("the words: %s\n", tr_error());
  tell(!alike                 ? "BAD: the ranks were told differently of step"
       : code == TR_ERR_SPACE ? "no space"
                              : "BAD: another error at step",
       step);
  load(model, cp);
  model.step = step;
}

void run(MPI_Comm compute, int count, char** arguments) {
  const bool is_held = count == 7;
  Model model(compute, count > 5 ? std::atoll(arguments[5]) : 211);
  tr_checkpoint* cp = nullptr;
  must(tr_checkpoint_create(arguments[1], arguments[2], &cp), "checkpoint");
  load(model, cp);
  const std::int64_t last = model.step + std::atoll(arguments[3]);
  std::int64_t told = model.step;
  const auto committed = [&](std::int64_t step) {
    if (step > told) tell("committed", step);
    told = std::max(told, step);
  };
  while (model.step < last) {
    ++model.step;
    model.fill();
    if (is_held) {
      save_when_let(compute, model, cp);
      told = model.step;
      continue;
    }
    must(model.transfer(cp, TR_SAVE, nullptr), "save");
    committed(model.step - 1);  // a save begins once the one before is committed
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(arguments[4])));
    if (tr_checkpoint_status(cp) == TR_SAVE_COMMITTED) committed(model.step);
  }
  must(tr_checkpoint_close(&cp), "close");
  committed(model.step);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 5 || argc > 7) {
    std::fprintf(stderr, "usage: checkpoint_model NAME OPTIONS STEPS PAUSE_MS [POINTS [held]]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (FILE* const file = std::fopen(("pids/" + std::to_string(::getpid())).c_str(), "w")) std::fclose(file);
  MPI_Comm compute = MPI_COMM_NULL;
  must(tr_init(MPI_COMM_WORLD, &compute, nullptr), "init");
  MPI_Comm_rank(compute, &rank);
  if (rank == 0) std::printf("begun\n");
  run(compute, argc, argv);
  must(tr_finalize(), "finalize");
  MPI_Finalize();
  if (rank == 0) std::printf("complete\n");
  return 0;
}
