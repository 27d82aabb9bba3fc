// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The cost of the calls in messages, counted where they leave: between the library and MPI.
#include <chrono>
#include <thread>
#include <vector>

#include "files/fixture.hpp"

using namespace tailrace::files_test;

namespace {

std::int64_t sent = 0, sent_bytes = 0;

}  // namespace

// The library sends its messages by this call alone; collectives are counted too, in case that changes. The
// build hides symbols that not every mpi.h declares visible. If these were hidden, they would not stand
// before MPI's.
extern "C" __attribute__((visibility("default"))) int MPI_Isend(const void* data, int count,
                                                                MPI_Datatype type, int destination, int tag,
                                                                MPI_Comm comm, MPI_Request* request) {
  ++sent;
  int size = 0;
  PMPI_Type_size(type, &size);
  sent_bytes += std::int64_t{count} * size;
  return PMPI_Isend(data, count, type, destination, tag, comm, request);
}

extern "C" __attribute__((visibility("default"))) int MPI_Bcast(void* data, int count, MPI_Datatype type,
                                                                int root, MPI_Comm comm) {
  ++sent;
  return PMPI_Bcast(data, count, type, root, comm);
}

namespace {

/// Returns the sum of a counter over all ranks.
std::int64_t of_all(std::int64_t mine) {
  std::int64_t total = 0;
  MPI_Allreduce(&mine, &total, 1, MPI_INT64_T, MPI_SUM, state().comm);
  return total;
}

}  // namespace

MPI_TEST(messages, small_calls_without_result_send_none) {
  const std::string directory = fresh_directory("messages");
  {
    const Session session;
    sent = 0;
    tr_file* const file = tr_fopen((directory + "/f").c_str(), "w");
    CHECK(size() == 1 || of_all(sent) > 0);  // what is sent is counted
    sent = 0;
    for (int i = 0; i < 50'000; ++i) {
      tr_fprintf_nr(file, "%d\n", i);
      tr_fputc_nr('x', file);
    }
    tr_rewind(file);
    tr_clearerr(file);
    CHECK_EQ(of_all(sent), 0);
    CHECK_EQ(tr_fclose(file), 0);
  }
  remove_directory(directory);
}

MPI_TEST(messages, large_blocks_that_all_ranks_read_travel_in_memory) {
  const std::string directory = fresh_directory("messages");
  constexpr std::size_t bytes = 8 << 20;
  if (rank() == 0) write_file(directory + "/f", std::string(bytes, 'b'));
  MPI_Barrier(state().comm);
  {
    const Session session("parallel_threshold=1MiB");
    for (const char* mode : {"r", "rp"}) {
      std::string data(bytes, '-');
      tr_file* const file = tr_fopen((directory + "/f").c_str(), mode);
      if (!CHECK(file != nullptr)) return;
      MPI_Barrier(state().comm);
      sent_bytes = 0;
      CHECK_EQ(tr_fread(data.data(), 1, bytes, file), bytes);
      CHECK(of_all(sent_bytes) < 64 << 10);
      CHECK(data == std::string(bytes, 'b'));
      CHECK_EQ(tr_fclose(file), 0);
    }
  }
  remove_directory(directory);
}

MPI_TEST(messages, a_result_costs_one_broadcast) {
  const std::string directory = fresh_directory("messages");
  {
    const Session session;
    tr_file* const file = tr_fopen((directory + "/f").c_str(), "w+");
    sent = 0;
    MPI_Barrier(
        state().comm);  // a rank still inside tr_fopen would pass on the first of these, and then forget it
    constexpr int rounds = 200;
    for (int i = 0; i < rounds; ++i) {
      tr_fputc('x', file);
      tr_fprintf(file, "%d\n", i);
      tr_fseek(file, 0, SEEK_CUR);
      tr_ftell(file);
      tr_feof(file);
    }
    // A broadcast down a tree costs one message to each of the others.
    CHECK_EQ(of_all(sent), std::int64_t{5} * rounds * (size() - 1));
    CHECK_EQ(tr_fclose(file), 0);
  }
  remove_directory(directory);
}

MPI_TEST(messages, that_nobody_takes_do_not_pile_up) {
  const std::string directory = fresh_directory("messages");
  const std::string path = directory + "/f";
  {
    const Session session;
    if (rank() == 0) write_file(path, std::string(8 << 20, 'x'));
    const double begin = MPI_Wtime();  // no rank sleeps before this moment of another
    MPI_Barrier(state().comm);
    tr_file* const file = tr_fopen(path.c_str(), "r");
    if (!CHECK(file != nullptr)) return;
    std::vector<char> block(8 << 20);
    if (rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    for (int i = 0; i < 8; ++i) {
      CHECK_EQ(tr_fread(block.data(), 1, block.size(), file), block.size());
      tr_rewind(file);
    }
    // The I/O rank has gone on for at most 32 MiB, and then waited.
    CHECK(size() == 1 || MPI_Wtime() - begin > 0.4);
    CHECK_EQ(tr_fclose(file), 0);
  }
  remove_directory(directory);
}

MPI_TEST_MAIN
