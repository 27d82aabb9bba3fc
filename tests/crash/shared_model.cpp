// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A program that writes the whole shared file again in each step, and flushes it.
//   shared_model FILE MODE OPTIONS STEPS
// First it reads the file, if it exists, and prints "found STEP" (0: nothing), or "BAD ..." if that is not
// the content of one step. Then it opens the file with MODE and OPTIONS, and prints "flushed STEP" after each
// step. After STEPS steps it closes the file, prints "closed STEP", and ends by itself. With STEPS below 0 it
// only opens the file, prints "opened", and closes it. Rank 0 prints these lines, and also writes them to the
// file `told`, which has all of them however the launcher ends. Each process writes its rank to a file named
// after its process id in the directory `pids`.
#include <fcntl.h>
#include <tailrace.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t piece = 1000;

int rank = 0;
int ranks = 1;

/// Ends the program if a call has failed. The code is the same on every rank, so all ranks end.
void must(int code, const char* what) {
  if (code == TR_OK) return;
  std::printf("BAD: %s: %s\n", what, tr_error());
  std::_Exit(3);
}

void tell(const char* what, std::int64_t step) {
  if (rank != 0) return;
  static const int told = ::open("told", O_WRONLY | O_CREAT | O_APPEND, 0666);
  const std::string line = std::string(what) + " " + std::to_string(step) + "\n";
  if (::write(told, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::_Exit(3);
  std::fputs(line.c_str(), stdout);
}

std::int64_t pieces_of(std::int64_t step) { return 150 + step * 37 % 100; }
std::int64_t size_of(std::int64_t step) { return pieces_of(step) * piece - step % 10; }

std::vector<std::int64_t> content(std::int64_t step, std::int64_t number) {
  std::vector<std::int64_t> values(piece / 8);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = step * 1000003 + number * 131 + static_cast<std::int64_t>(i);
  values[0] = step;
  return values;
}

/// Collective. Returns the step whose content the file has, or -1 if it has that of no step.
std::int64_t step_in(MPI_Comm compute, const char* path) {
  tr_shared* file = nullptr;
  must(tr_shared_open(path, "r", nullptr, &file), "open to read");
  std::int64_t step = 0;
  std::int64_t size = 0;
  std::int64_t got = 0;
  must(tr_shared_size(file, &size), "size");
  must(tr_shared_pread(file, &step, 8, 0, &got), "read");
  // A program that was killed before its first flush has left an empty file: step 0.
  const bool is_empty = size == 0 && got == 0;
  int wrong = !is_empty && (got != 8 || size != size_of(step)) ? 1 : 0;
  for (std::int64_t i = rank; wrong == 0 && !is_empty && i < pieces_of(step); i += ranks) {
    std::vector<std::int64_t> there(piece / 8);
    must(tr_shared_pread(file, there.data(), piece, i * piece, &got), "read");
    if (std::memcmp(there.data(), content(step, i).data(), static_cast<std::size_t>(got)) != 0) wrong = 1;
  }
  if (wrong != 0)
    std::printf("BAD: rank %d finds %lld bytes that are not those of step %lld\n", rank,
                static_cast<long long>(size), static_cast<long long>(step));
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, compute);
  must(tr_shared_close(&file), "close");
  return wrong == 0 ? step : -1;
}

/// Cuts the file to half of its pieces, and appends the other half, in any order.
void append_half(tr_shared* file, std::int64_t step) {
  const std::int64_t half = pieces_of(step) / 2;
  must(tr_shared_resize(file, half * piece), "resize to a half");
  for (std::int64_t i = half + rank; i < pieces_of(step); i += ranks) {
    std::int64_t at = 0;
    must(tr_shared_append(file, content(step, i).data(), piece, &at), "append");
    must(tr_shared_pwrite(file, content(step, at / piece).data(), piece, at), "write what was appended");
  }
}

void run(MPI_Comm compute, char** arguments) {
  const char* const path = arguments[1];
  if (std::atoll(arguments[4]) < 0) {
    tr_shared* file = nullptr;
    must(tr_shared_open(path, arguments[2], arguments[3], &file), "open");
    tell("opened", 0);
    must(tr_shared_close(&file), "close");
    return;
  }
  int is_there = ::access(path, F_OK) == 0 ? 1 : 0;
  MPI_Bcast(&is_there, 1, MPI_INT, 0, compute);
  std::int64_t step = is_there != 0 ? step_in(compute, path) : 0;
  tell("found", step);
  if (step < 0) std::_Exit(3);
  const std::int64_t last = step + std::atoll(arguments[4]);
  tr_shared* file = nullptr;
  must(tr_shared_open(path, is_there != 0 ? arguments[2] : "w+", arguments[3], &file), "open");
  while (step < last) {
    ++step;
    // Ranks write pieces in turn, so each page has pieces of several ranks, and any rank may have to store
    // it.
    for (std::int64_t i = rank; i < pieces_of(step); i += ranks)
      must(tr_shared_pwrite(file, content(step, i).data(), piece, i * piece), "write");
    if (step % 3 == 0) append_half(file, step);
    must(tr_shared_resize(file, size_of(step)), "resize");
    if (step == last) break;
    must(tr_shared_flush(file), "flush");
    tell("flushed", step);
  }
  must(tr_shared_close(&file), "close");
  tell("closed", step);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) {
    std::fprintf(stderr, "usage: shared_model FILE MODE OPTIONS STEPS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (FILE* const file = std::fopen(("pids/" + std::to_string(::getpid())).c_str(), "w")) {
    std::fprintf(file, "%d\n", rank);
    std::fclose(file);
  }
  MPI_Comm compute = MPI_COMM_NULL;
  must(tr_init(MPI_COMM_WORLD, &compute, nullptr), "init");
  MPI_Comm_rank(compute, &rank);
  MPI_Comm_size(compute, &ranks);
  run(compute, argv);
  must(tr_finalize(), "finalize");
  MPI_Finalize();
  return 0;
}
