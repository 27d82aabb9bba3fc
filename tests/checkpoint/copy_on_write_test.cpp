// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Saves that are captured while the program goes on (capture=copy_on_write): whatever the program writes, and
// by whichever way, the copy has the values of the moment of the save. If the system gives no such capture,
// the same is true of the copy that is made instead.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "files/fixture.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::files_test;

namespace {

constexpr tr_index columns = 1024;
constexpr tr_index halo = 2;

/// A rank's block of rows, 10 MiB, with halo. It is mapped, so that freed memory is really gone.
class Field {
 public:
  Field() {
    const tr_index shape[] = {rows * size(), columns}, halos[] = {halo, halo};
    const int grid[] = {size(), 1};
    CHECK_EQ(tr_layout_block_grid(2, shape, halos, grid, &layout_), TR_OK);
    values_ = static_cast<double*>(
        mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Field() {
    unmap();
    tr_layout_free(&layout_);
  }
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;

  static constexpr tr_index rows = 1280;
  [[nodiscard]] double* values() const { return values_; }
  [[nodiscard]] tr_layout* layout() const { return layout_; }
  static std::size_t count() { return static_cast<std::size_t>((rows + 2 * halo) * (columns + 2 * halo)); }
  static std::size_t bytes() { return count() * sizeof(double); }
  void fill(double salt) const {
    for (std::size_t i = 0; i < count(); ++i) values_[i] = value(salt, i);
  }
  [[nodiscard]] bool holds(double salt) const {
    for (tr_index y = halo; y < rows + halo; ++y) {
      for (tr_index x = halo; x < columns + halo; ++x) {
        const auto i = static_cast<std::size_t>(y * (columns + 2 * halo) + x);
        if (values_[i] != value(salt, i)) return false;
      }
    }
    return true;
  }
  void unmap() {
    if (values_ != nullptr) munmap(values_, bytes());
    values_ = nullptr;
  }

 private:
  static double value(double salt, std::size_t i) { return salt + static_cast<double>(i) + rank() * 1e8; }
  tr_layout* layout_ = nullptr;
  double* values_ = nullptr;
};

tr_checkpoint* create(const std::string& name, const std::string& options) {
  tr_checkpoint* cp = nullptr;
  if (!CHECK_EQ(tr_checkpoint_create(name.c_str(), options.c_str(), &cp), TR_OK))
    std::fprintf(stderr, "  %s\n", tr_error());
  return cp;
}

int transfer(tr_checkpoint* cp, int direction, const std::vector<const Field*>& fields) {
  int found = 0;
  const int begun = tr_checkpoint_begin(cp, direction, &found);
  for (std::size_t i = 0; i < fields.size(); ++i)
    tr_checkpoint_item(cp, ("t" + std::to_string(i)).c_str(), fields[i]->values(), TR_F64,
                       fields[i]->layout());
  const int ended = tr_checkpoint_end(cp);
  return begun != TR_OK ? begun : ended;
}

/// The ways that a program's memory is written.
void by_stores(const Field& field) { field.fill(-1); }
void by_stores_from_behind(const Field& field) {
  for (std::size_t i = Field::count(); i-- > 0;) field.values()[i] = -1;
}
void by_the_kernel(const Field& field) {
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  CHECK_EQ(read(zeros, field.values(), Field::bytes()), static_cast<ssize_t>(Field::bytes()));
  close(zeros);
}
/// Writes by one message, which MPI copies from process to process if it can, and by many small ones.
void by_messages(const Field& field) {
  const std::vector<double> sent(Field::count(), 3);
  const int to = (rank() + 1) % size(), from = (rank() + size() - 1) % size();
  const auto half = static_cast<int>(Field::count() / 2);
  MPI_Sendrecv(sent.data(), half, MPI_DOUBLE, to, 1, field.values() + half, half, MPI_DOUBLE, from, 1,
               state().comm, MPI_STATUS_IGNORE);
  for (int i = 0; i + 100 < half; i += half / 64)
    MPI_Sendrecv(sent.data(), 100, MPI_DOUBLE, to, 2, field.values() + i, 100, MPI_DOUBLE, from, 2,
                 state().comm, MPI_STATUS_IGNORE);
}

}  // namespace

MPI_TEST(copy_on_write, what_is_written_after_the_save_is_not_in_it) {
  const std::string directory = fresh_directory("copy-on-write");
  const std::vector<std::function<void(const Field&)>> ways = {by_stores, by_stores_from_behind,
                                                               by_the_kernel, by_messages};
  for (const char* options : {"", "mode=local", "compress=lz4", "async=off"}) {
    const Session session;
    const Field field;
    tr_checkpoint* cp = create(directory + "/run", std::string("capture=copy_on_write ") + options);
    double salt = 0.5;
    for (const auto& write : ways) {
      field.fill(++salt);
      if (!CHECK_EQ(transfer(cp, TR_SAVE, {&field}), TR_OK)) std::fprintf(stderr, "  %s\n", tr_error());
      write(field);
      CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
      CHECK(!field.holds(salt));
      CHECK_EQ(transfer(cp, TR_LOAD, {&field}), TR_OK);
      CHECK(field.holds(salt));
    }
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(copy_on_write, levels_that_rotate_are_saved_again_and_again) {
  const std::string directory = fresh_directory("copy-on-write-levels");
  {
    const Session session;
    const Field first, second, third;
    std::vector<const Field*> levels = {&first, &second, &third};
    for (int i = 0; i < 3; ++i) levels[static_cast<std::size_t>(i)]->fill(100 * i);
    tr_checkpoint* cp = create(directory + "/run", "capture=copy_on_write busy=replace");
    tr_checkpoint* beside = create(directory + "/beside", "capture=copy_on_write");
    for (int step = 3; step < 9; ++step) {
      std::rotate(levels.begin(), levels.begin() + 1, levels.end());
      levels[2]->fill(100 * step);
      CHECK_EQ(transfer(cp, TR_SAVE, levels), TR_OK);
      // Memory that is being captured cannot be protected once more: this array is copied.
      if (step == 8) CHECK_EQ(transfer(beside, TR_SAVE, levels), TR_OK);
    }
    for (const Field* level : levels) level->fill(-1);
    for (tr_checkpoint* each : {cp, beside}) {
      CHECK_EQ(transfer(each, TR_LOAD, levels), TR_OK);
      for (int i = 0; i < 3; ++i) CHECK(levels[static_cast<std::size_t>(i)]->holds(100 * (6 + i)));
    }
    CHECK_EQ(tr_checkpoint_close(&beside), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

/// One rank unmaps its array while it is captured. Either it comes too late to matter, or every rank is told.
MPI_TEST(copy_on_write, an_array_that_goes_too_early_fails_the_save_alike_on_all_ranks) {
  const std::string directory = fresh_directory("copy-on-write-gone");
  {
    const Session session("log=error");
    tr_checkpoint* cp = create(directory + "/run", "capture=copy_on_write");
    const Field whole;
    whole.fill(1);
    CHECK_EQ(transfer(cp, TR_SAVE, {&whole}), TR_OK);
    {
      Field going;
      going.fill(2);
      CHECK_EQ(transfer(cp, TR_SAVE, {&going}), TR_OK);
      if (rank() == size() - 1) going.unmap();
      const int code = tr_checkpoint_wait(cp);
      CHECK(code == TR_OK || (code == TR_ERR_ARGUMENT && mentions(tr_error(), "must stay")));
      CHECK(agreed(code, 0));
      CHECK_EQ(transfer(cp, TR_LOAD, {&whole}), TR_OK);
      CHECK(whole.holds(code == TR_OK ? 2 : 1));
    }
    whole.fill(3);
    CHECK_EQ(transfer(cp, TR_SAVE, {&whole}), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

/// A copy does not show how it was captured. The reason for falling back shows that copy-on-write was tried.
MPI_TEST(copy_on_write, shared_memory_is_copied_at_once_with_one_warning) {
  const std::string directory = fresh_directory("copy-on-write-shared");
  for (const std::string capture : {"copy", "copy_on_write"}) {
    const Session session;
    const tr_index shape[] = {tr_index{1} << 21 << (size() > 1 ? 2 : 0)};
    tr_layout* layout = nullptr;
    tr_index count = 0;
    CHECK_EQ(tr_layout_block(1, shape, nullptr, &layout), TR_OK);
    CHECK_EQ(tr_layout_count(layout, &count), TR_OK);
    const auto bytes = static_cast<std::size_t>(count) * sizeof(double);
    auto* const values =
        static_cast<double*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CapturedStderr captured;
    tr_checkpoint* cp = create(directory + "/" + capture, "capture=" + capture);
    for (int step = 1; step <= 2; ++step) {
      std::fill(values, values + count, step);
      CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
      tr_checkpoint_item(cp, "t", values, TR_F64, layout);
      CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
      std::fill(values, values + count, -1);
      CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    }
    int found = 0;
    CHECK_EQ(tr_checkpoint_begin(cp, TR_LOAD, &found), TR_OK);
    tr_checkpoint_item(cp, "t", values, TR_F64, layout);
    CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
    CHECK(std::all_of(values, values + count, [](double each) { return each == 2; }));
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    const std::string told = captured.text();
    const std::size_t first = told.find("captured by copying, not copy_on_write");
    CHECK_EQ(first != std::string::npos, capture == "copy_on_write" && rank() == 0);
    if (first != std::string::npos) CHECK(told.find("captured by copying", first + 1) == std::string::npos);
    munmap(values, bytes);
    tr_layout_free(&layout);
  }
  remove_directory(directory);
}

/// Memory that the node has for each rank alone, and not for all of them together. None of it is ever
/// touched.
MPI_TEST(capture, what_a_node_has_not_for_all_its_ranks_is_refused_before_anything_is_touched) {
  const std::string directory = fresh_directory("capture-memory");
  {
    const Session session("log=error memory=100TiB");  // the node has less than its budget
    long long kibibytes = 0;
    std::ifstream info("/proc/meminfo");
    for (std::string line; std::getline(info, line);)
      std::sscanf(line.c_str(), "MemAvailable: %lld", &kibibytes);
    MPI_Bcast(&kibibytes, 1, MPI_LONG_LONG, 0, state().comm);
    const tr_index each = kibibytes * 1024 / 8 * 3 / (size() > 1 ? 5 : 2);  // 60 %, or 150 %
    const tr_index shape[] = {each * size()};
    tr_layout* layout = nullptr;
    CHECK_EQ(tr_layout_block(1, shape, nullptr, &layout), TR_OK);
    const auto bytes = static_cast<std::size_t>(each) * sizeof(double);
    void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (const char* options : {"capture=copy", "capture=copy_on_write"}) {
      tr_checkpoint* cp = create(directory + "/run", options);
      CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
      tr_checkpoint_item(cp, "t", memory, TR_F64, layout);
      const int code = tr_checkpoint_end(cp);
      CHECK_EQ(code, TR_ERR_MEMORY);
      CHECK(mentions(tr_error(), size() == 1 ? "on this rank" : "ranks)"));
      CHECK(agreed(code, 0));
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    }
    munmap(memory, bytes);
    tr_layout_free(&layout);
  }
  remove_directory(directory);
}

MPI_TEST_MAIN
