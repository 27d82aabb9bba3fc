// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Memory that ranks expose in a window of MPI, from which rank 0 gets; and what the self-test of the window
// finds.
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "ground/comm/exposed/mpi_exposed.hpp"
#include "ground/comm/mpi_transport.hpp"
#include "support/mpi_test.hpp"

using namespace tailrace;
using namespace tailrace::mpi_test;

namespace {

/// What MPI_Get and MPI_Win_flush do besides what MPI says.
struct Mistake {
  int flipped = 0;                    // of each get, a bit of the last byte
  std::chrono::milliseconds late{0};  // before a flush
  int late_flushes = 1 << 30;
  bool is_stale = false;  // gets bring what the first ones have brought
  int freed = 0;          // windows
} mistake;

std::byte* last_byte = nullptr;  // of the get that is under way
std::vector<std::byte> first_brought;

constexpr Bytes exposed_bytes = Bytes{3} << 20;

/// Rank 0 gets from all others.
comm::ExposedWindow::Part part() {
  comm::ExposedWindow::Part mine;
  if (rank() > 0) return {exposed_bytes, true, {}};
  for (int other = 1; other < size(); ++other) mine.from.push_back(other);
  return mine;
}

std::int64_t word(int process, int round, std::size_t at) {
  return process * 1'000'003 + round * 10'007 + static_cast<std::int64_t>(at);
}

/// What ranks write in three rounds comes to rank 0 as it was shown, while they are outside of MPI.
MPI_TEST(exposed_memory, comes_as_its_process_has_shown_it_in_every_range) {
  const OwnCommunicator own;
  Result<std::unique_ptr<comm::ExposedWindow>> window = comm::ExposedWindow::create(own.comm(), part());
  if (!window.is_ok()) return skip(window.status().text());
  Result<std::unique_ptr<comm::MpiTransport>> transport = comm::MpiTransport::create(state().comm);
  comm::MpiExposed memory(**window, **transport);
  CHECK_EQ(std::ssize(memory.own()), rank() == 0 ? 0 : exposed_bytes);
  constexpr std::size_t words = exposed_bytes / 8;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t at = 0; at < words && rank() > 0; ++at) {
      const std::int64_t value = word(rank(), round, at);
      std::memcpy(memory.own().data() + 8 * at, &value, 8);
    }
    memory.show();
    MPI_Barrier(own.comm());
    for (int other = 1; other < size() && rank() == 0; ++other) {
      std::vector<std::int64_t> got(words);
      const auto bytes = std::as_writable_bytes(std::span(got));
      // The end, nothing, a few bytes, and the rest.
      int over = 0;
      memory.get(other,
                 {{exposed_bytes / 2, bytes.subspan(exposed_bytes / 2)},
                  {100, {}},
                  {0, bytes.first(24)},
                  {24, bytes.subspan(24, exposed_bytes / 2 - 24)}},
                 [&over] { ++over; });
      while (over == 0) memory.poll();
      CHECK_EQ(over, 1);
      std::size_t wrong = 0;
      for (std::size_t at = 0; at < words; ++at) wrong += got[at] != word(other, round, at);
      CHECK_EQ(wrong, std::size_t{0});
    }
    MPI_Barrier(own.comm());
  }
  (*window)->free();
  (*transport)->free();
}

/// Makes a window with a mistake in the MPI.
std::string refused_with(const Mistake& planted, std::chrono::milliseconds limit) {
  const OwnCommunicator own;
  mistake = planted;
  first_brought.clear();
  const Result<std::unique_ptr<comm::ExposedWindow>> made =
      comm::ExposedWindow::create(own.comm(), part(), limit);
  const int freed = mistake.freed;
  mistake = {};
  if (made.is_ok()) (*made)->free();
  CHECK(made.is_ok() || made.status().code() == Code::unsupported);
  CHECK(made.is_ok() || freed <= 1);
  return made.status().text();
}

bool says(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

/// True if this MPI has such windows, and passes without a mistake.
bool has_windows() {
  const std::string why = refused_with({}, comm::ExposedWindow::patience);
  if (!why.empty()) skip(why);
  return why.empty();
}

MPI_TEST(exposed_window, whose_gets_bring_wrong_or_old_bytes_is_refused_on_all_processes) {
  if (size() == 1 || !has_windows()) return;  // alone, nobody gets
  for (const Mistake& planted : {Mistake{.flipped = 1}, Mistake{.is_stale = true}}) {
    const std::string text = refused_with(planted, comm::ExposedWindow::patience);
    CHECK(same_on_all_ranks(text));
    CHECK(says(text, "wrong bytes"));
  }
}

/// Gets that wait for their target look like gets that come late.
MPI_TEST(exposed_window, whose_gets_do_not_come_in_time_is_refused_on_all_processes) {
  if (size() == 1) return;
  const std::string text =
      refused_with({.late = std::chrono::milliseconds(150)}, std::chrono::milliseconds(50));
  CHECK(same_on_all_ranks(text));
  CHECK(says(text, "no progress") || says(text, "MPI_Win_allocate"));
}

MPI_TEST(exposed_window, whose_gets_come_late_once_has_a_second_chance) {
  if (size() == 1 || !has_windows()) return;
  CHECK_EQ(refused_with({.late = std::chrono::milliseconds(400), .late_flushes = 1},
                        std::chrono::milliseconds(300)),
           "");
}

MPI_TEST(exposed_window, is_freed_and_may_be_made_again) {
  for (int i = 0; i < 3; ++i) {
    const OwnCommunicator own;
    Result<std::unique_ptr<comm::ExposedWindow>> made = comm::ExposedWindow::create(own.comm(), part());
    if (!made.is_ok()) return skip(made.status().text());
    mistake.freed = 0;
    (*made)->free();
    CHECK_EQ(mistake.freed, 1);
  }
}

}  // namespace

// These take the place of the MPI library's functions (MPI 3.1, 14.2.1).
extern "C" __attribute__((visibility("default"))) int MPI_Get(void* to, int count, MPI_Datatype type,
                                                              int process, MPI_Aint place, int their_count,
                                                              MPI_Datatype their_type, MPI_Win window) {
  last_byte = count > 0 ? static_cast<std::byte*>(to) + count - 1 : nullptr;
  return PMPI_Get(to, count, type, process, place, their_count, their_type, window);
}

extern "C" __attribute__((visibility("default"))) int MPI_Win_flush(int process, MPI_Win window) {
  if (mistake.late_flushes-- > 0) std::this_thread::sleep_for(mistake.late);
  const int code = PMPI_Win_flush(process, window);
  if (last_byte == nullptr) return code;
  if (mistake.flipped != 0) *last_byte ^= std::byte{1};
  if (mistake.is_stale) {
    if (first_brought.empty()) first_brought = {*last_byte};
    *last_byte = first_brought.front();
  }
  last_byte = nullptr;
  return code;
}

extern "C" __attribute__((visibility("default"))) int MPI_Win_free(MPI_Win* window) {
  ++mistake.freed;
  return PMPI_Win_free(window);
}

MPI_TEST_MAIN
