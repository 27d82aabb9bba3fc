// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A program that writes a shared file on a file system that becomes full, and goes on once there is room.
//   shared_full DIRECTORY SAFETY PIECES
// The file DIRECTORY/ballast takes the room until it is removed. With SAFETY journal the program first writes
// PIECES pieces while there is room. Then it writes PIECES pieces of a second round, and again those that
// could not be written once there is room. It prints how many writes have failed, and "done".
#include <tailrace.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t piece = 4096;

int rank = 0;
int ranks = 1;
MPI_Comm compute = MPI_COMM_NULL;

void must(bool good, const char* what) {
  if (good) return;
  std::printf("BAD: rank %d: %s: %s\n", rank, what, tr_error());
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

std::vector<char> content(int round, std::int64_t number) {
  std::vector<char> bytes(piece);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(static_cast<std::int64_t>(i) * 31 + number * 7 + round);
  return bytes;
}

/// Writes pieces. Returns those that could not be written. Each failure must say that storage is full.
std::vector<std::int64_t> write_all(tr_shared* file, int round, const std::vector<std::int64_t>& numbers) {
  std::vector<std::int64_t> failed;
  for (const std::int64_t each : numbers) {
    const int code = tr_shared_pwrite(file, content(round, each).data(), piece, each * piece);
    must(code == TR_OK || code == TR_ERR_SPACE, "a write fails otherwise than for lack of space");
    if (code != TR_OK) failed.push_back(each);
  }
  return failed;
}

std::int64_t sum(std::int64_t mine) {
  std::int64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, compute);
  return all;
}

void check(const std::string& path, int round, std::int64_t pieces, const char* when) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  must(file != nullptr, "the file is there");
  std::vector<char> got(piece);
  for (std::int64_t i = 0; i < pieces; ++i)
    must(std::fread(got.data(), 1, piece, file) == piece && got == content(round, i), when);
  must(std::fgetc(file) == EOF, when);
  std::fclose(file);
}

void run(const std::string& directory, const std::string& safety, std::int64_t pieces) {
  const std::string path = directory + "/file";
  std::vector<std::int64_t> mine;
  for (std::int64_t i = rank; i < pieces; i += ranks) mine.push_back(i);
  tr_shared* file = nullptr;
  const std::string options = "page=4KiB memory=" + std::to_string(16 * ranks) + "KiB safety=" + safety;
  // With safety=journal the undo files find no room, otherwise the file itself.
  if (safety == "journal") {
    must(tr_shared_open(path.c_str(), "w+", nullptr, &file) == TR_OK, "the first open");
    must(write_all(file, 1, mine).empty(), "the first round");
    must(tr_shared_close(&file) == TR_OK, "the first close");
  }
  must(tr_shared_open(path.c_str(), safety == "journal" ? "r+" : "w+", options.c_str(), &file) == TR_OK,
       "the open");
  std::vector<std::int64_t> failed = write_all(file, 2, mine);
  const std::int64_t failures = sum(static_cast<std::int64_t>(failed.size()));
  const int flushed = tr_shared_flush(file);
  must(flushed == TR_ERR_SPACE, "a flush on a full disk");
  must(std::strstr(tr_error(), "No space left on device") != nullptr, "its text");
  must(tr_shared_flush(file) == TR_ERR_SPACE, "and another one");
  if (rank == 0) ::unlink((directory + "/ballast").c_str());
  MPI_Barrier(compute);
  must(write_all(file, 2, failed).empty(), "the writes again");
  must(tr_shared_flush(file) == TR_OK, "a flush with room again");
  if (rank == 0) check(path, 2, pieces, "after the flush");
  must(tr_shared_close(&file) == TR_OK, "the close");
  if (rank == 0) check(path, 2, pieces, "after the close");
  if (rank == 0) std::printf("%lld writes failed\ndone\n", static_cast<long long>(failures));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: shared_full DIRECTORY SAFETY PIECES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  must(tr_init(MPI_COMM_WORLD, &compute, nullptr) == TR_OK, "init");
  MPI_Comm_rank(compute, &rank);
  MPI_Comm_size(compute, &ranks);
  run(argv[1], argv[2], std::atoll(argv[3]));
  must(tr_finalize() == TR_OK, "finalize");
  MPI_Finalize();
  return 0;
}
