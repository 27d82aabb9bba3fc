// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Shared files through the C++ face, over the library.
#include <array>
#include <cstdio>
#include <string_view>
#include <tailrace.hpp>

namespace {

constexpr std::int64_t share = 1000;  // bytes of the file that a rank writes

int failures = 0;
int rank = 0;
int ranks = 1;

void check(bool passed, const char* what) {
  if (passed) return;
  ++failures;
  std::fprintf(stderr, "failed: %s: %s\n", what, tr_error());
}

tr::Shared open(const char* mode, const tr::Options& options = {}) {
  auto made = tr::Shared::open("cpp_shared.bin", mode, options);
  check(made.is_ok(), "open");
  return made.is_ok() ? *std::move(made) : tr::Shared();
}

void every_kind_of_memory_passes() {
  const int other = (rank + 1) % ranks;
  tr::Shared file = open("w+", tr::Options().set("page", 4096).set("safety", "journal"));
  const std::vector<double> doubles{1.5 + rank, 2.5};
  const std::array<std::int16_t, 3> shorts{7, 8, static_cast<std::int16_t>(rank)};
  check(file.pwrite(doubles, share * rank).is_ok(), "pwrite of a vector");
  check(file.seek(share * rank + 16).is_ok(), "seek");
  check(file.write(shorts).is_ok(), "write of an array");
  check(file.write(std::string_view("text")).is_ok(), "write of a text");
  check(file.write({doubles.data() + 1, 1}).is_ok(), "write of a pointer and a number");
  check(*file.tell() == share * rank + 16 + 6 + 4 + 8, "tell");
  check(file.flush().is_ok(), "flush");
  std::vector<double> got(2);
  tr::Room room(got);
  const tr::Content content(doubles);
  check(file.pwrite(content, share * rank).is_ok() && file.pread(room, share * rank).is_ok(), "views");
  check(got == doubles && file.sync().is_ok(), "what views have written");
  check(file.pread(got, share * other).is_ok() && got == std::vector<double>({1.5 + other, 2.5}), "pread");
  std::array<std::int16_t, 3> some{};
  std::string text(4, ' ');
  double one = 0;
  std::int64_t position = 0;
  check(file.seek(share * other + 17).is_ok(), "seek");
  check(file.seek(-1, tr::Whence::position, &position).is_ok() && position == share * other + 16,
        "seek back");
  check(file.read(some).is_ok() && some[2] == other, "read of an array");
  check(file.read(text).is_ok() && text == "text", "read of a text");
  check(file.read({&one, 1}).is_ok() && one == 2.5, "read of a pointer and a number");
  check(file.close().is_ok() && file.c_handle() == nullptr, "close");
}

void pieces_pass_together() {
  tr::Shared file = open("w+");
  const std::vector<int> low{rank, rank + 1};
  const std::vector<std::byte> high(5, std::byte{0x2a});
  check(file.writev({tr::from(low, share * rank), tr::from(high, share * rank + 100)}).is_ok(), "writev");
  check(file.sync().is_ok(), "sync");
  std::vector<int> first(2);
  std::vector<std::byte> second(5);
  const std::vector<tr_piece> pieces{tr::into(first, 0), tr::into(second, share * (ranks - 1) + 100)};
  std::int64_t got = 0;
  check(file.readv(pieces).is_ok() && first == std::vector<int>({0, 1}) && second == high, "readv");
  check(file.readv({tr::into(second, 100), tr::into(first, share * ranks)}, &got).is_ok() && got == 5,
        "readv says how much there was");
  check(file.readv({tr::into(first, share * ranks)}).code() == tr::Code::io, "readv of less than asked");
  check(file.close().is_ok(), "close");
}

void the_end_moves() {
  tr::Shared file = open("w+");
  std::int64_t offset = -1;
  const std::array<int, 1> mine{rank};
  check(file.append(mine, &offset).is_ok() && offset % 4 == 0, "append");
  check(file.sync().is_ok(), "sync");
  std::array<int, 1> got{-1};
  check(file.pread(got, offset).is_ok() && got == mine, "append says where");
  check(*file.size() == 4 * ranks, "size");
  std::int64_t bytes = -1;
  check(file.pread(got, 4 * ranks - 1, &bytes).is_ok() && bytes == 1, "pread says how much there was");
  check(file.pread(got, 4 * ranks - 1).code() == tr::Code::io, "less than asked is an error without it");
  check(file.sync().is_ok() && file.resize(10).is_ok() && *file.size() == 10, "resize");
  check(file.seek(0, tr::Whence::end, &offset).is_ok() && offset == 10, "seek from the end");
  check(file.close().is_ok(), "close");
}

void errors_come_back() {
  check(tr::Shared::open("cpp_missing.bin", "r").status().code() == tr::Code::io, "a file that is missing");
  tr::Shared file = open("r");
  check(file.write(std::string_view("no")).code() == tr::Code::state, "write to a file that is only read");
  constexpr tr::Index too_many = std::numeric_limits<tr::Index>::max() / 4;
  double some[2] = {};
  check(file.read({some, too_many}).code() == tr::Code::argument, "more bytes than there are numbers for");
  tr::Shared moved = std::move(file);
  check(file.sync().code() == tr::Code::state, "a handle that was moved from");
  check(moved.close().is_ok(), "close");
}

void some_ranks_open_a_file_of_their_own() {
  const std::string name = "cpp_shared." + std::to_string(rank);
  auto made = tr::Shared::open(MPI_COMM_SELF, name, "w+");
  check(made.is_ok(), "open with a communicator");
  if (!made.is_ok()) return;
  check(made->write(std::vector<int>(static_cast<std::size_t>(rank) + 1)).is_ok(), "write");
  check(*made->size() == 4 * (rank + 1), "a file of this rank alone");
  check(made->close().is_ok(), "close");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm comm = MPI_COMM_NULL;
  check(tr::init(MPI_COMM_WORLD, comm).is_ok(), "init");
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  every_kind_of_memory_passes();
  pieces_pass_together();
  the_end_moves();
  errors_come_back();
  some_ranks_open_a_file_of_their_own();
  check(tr::finalize().is_ok(), "finalize");
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
