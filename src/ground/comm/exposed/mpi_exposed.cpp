// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/exposed/mpi_exposed.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "ground/comm/end_job.hpp"

namespace tailrace::comm {

namespace {

// The memory of the self-test: a word in which a process hears that its bytes were got, and the bytes behind.
constexpr Bytes test_begin = 64;
constexpr Bytes test_bytes = Bytes{32} << 10;
constexpr Bytes least_window = test_begin + test_bytes;
constexpr Bytes large_bytes = Bytes{4} << 20;  // an MPI may take another protocol for large gets

/// What a process is given to get one byte of its part, besides the limit.
constexpr std::chrono::nanoseconds time_for_byte{20};

Status no_exposed(const char* why) { return {Code::unsupported, why}; }

/// Fills with words that differ from those of other processes and rounds, also in their last bytes.
void fill(std::span<std::byte> bytes, int process, int round) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::uint64_t word =
      odd * static_cast<std::uint64_t>(process + 1) + 0x6a09e667f3bcc909U * static_cast<std::uint64_t>(round);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof word, word += odd)
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
}

}  // namespace

Result<std::unique_ptr<ExposedWindow>> ExposedWindow::create(MPI_Comm comm, const Part& part,
                                                             std::chrono::nanoseconds limit) {
  std::unique_ptr<ExposedWindow> window(new ExposedWindow(comm));
  const Status allocated = window->allocate(part.bytes);
  const Status tested = allocated.is_ok() ? window->test(part, limit) : allocated;
  if (tested.is_ok()) return window;
  window->free();
  return tested;
}

Status ExposedWindow::allocate(Bytes bytes) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  const Bytes size = bytes == 0 ? 0 : std::max(bytes, least_window);
  std::byte* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  const bool is_there =
      MPI_Win_allocate(static_cast<MPI_Aint>(size), 1, MPI_INFO_NULL, comm_, &memory, &window) == MPI_SUCCESS;
  int all = is_there ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm_);
  // If others have none, this process cannot free its window, which all would have to do.
  if (all == 0) return no_exposed("MPI_Win_allocate failed");
  window_ = window;
  own_ = {memory, static_cast<std::size_t>(size)};
  MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
  int* model = nullptr;
  int is_known = 0;
  MPI_Win_get_attr(window_, MPI_WIN_MODEL, static_cast<void*>(&model), &is_known);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  int is_unified = is_known != 0 && *model == MPI_WIN_UNIFIED ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &is_unified, 1, MPI_INT, MPI_MIN, comm_);
  return is_unified != 0 ? Status() : no_exposed("the MPI keeps two copies of a window's memory");
}

void ExposedWindow::free() {
  if (window_ == MPI_WIN_NULL) return;
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
}

void ExposedWindow::show() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  MPI_Win_sync(window_);
}

int ExposedWindow::try_get(int process, std::span<const ExposedMemory::Range> ranges) {
  for (const ExposedMemory::Range& range : ranges) {
    const auto count = static_cast<int>(range.into.size());
    const int code = MPI_Get(range.into.data(), count, MPI_BYTE, process, static_cast<MPI_Aint>(range.offset),
                             count, MPI_BYTE, window_);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_Win_flush(process, window_);
}

/// MPI counts by `int`: longer ranges are cut.
void ExposedWindow::get(int process, std::span<const ExposedMemory::Range> ranges) {
  constexpr std::size_t longest = std::size_t{1} << 30;
  std::vector<ExposedMemory::Range> cut;
  for (ExposedMemory::Range range : ranges) {
    while (!range.into.empty()) {
      const std::size_t length = std::min(longest, range.into.size());
      cut.push_back({range.offset, range.into.first(length)});
      range = {range.offset + static_cast<Bytes>(length), range.into.subspan(length)};
    }
  }
  if (try_get(process, cut) != MPI_SUCCESS)
    end_job("MPI itself failed in MPI_Get from the memory of a compute rank (handoff=onesided)");
}

/// The second round finds an MPI that shows only what the memory held at first.
Status ExposedWindow::test(const Part& part, std::chrono::nanoseconds limit) {
  int processes = 0;
  MPI_Comm_size(comm_, &processes);
  const auto mine = static_cast<std::int64_t>(own_.size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(processes));
  MPI_Allgather(&mine, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, comm_);
  int round = 0;
  for (const Bytes most : {test_bytes, test_bytes, large_bytes}) {
    std::vector<Bytes> lengths;
    for (const std::int64_t size : sizes) lengths.push_back(std::min<Bytes>(most, size - test_begin));
    Outcome outcome = test_round(round++, part, lengths, limit);
    if (outcome == Outcome::late) outcome = test_round(round++, part, lengths, limit);
    if (outcome == Outcome::wrong) return no_exposed("MPI_Get brought wrong bytes in its self-test");
    if (outcome == Outcome::late)
      return no_exposed("the MPI makes no progress with one-sided gets while their target is busy elsewhere");
  }
  return {};
}

/// Each process that is asked fills its memory, and calls no MPI until it has heard that another has got it.
ExposedWindow::Outcome ExposedWindow::test_round(int round, const Part& part,
                                                 const std::vector<Bytes>& lengths,
                                                 std::chrono::nanoseconds limit) {
  const auto length_of = [&](int process) { return lengths[static_cast<std::size_t>(process)]; };
  if (part.is_asked) {
    fill(own_.subspan(test_begin, static_cast<std::size_t>(length_of(rank_))), rank_, round);
    if (round == 0) std::memset(own_.data(), 0, sizeof(std::int64_t));
  }
  show();
  // The sum is ready only once every process is here, with its memory filled.
  std::int64_t most = 0;  // that one process gets
  for (const int process : part.from) most += length_of(process);
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, comm_);
  bool is_right = true;
  for (const int process : part.from) is_right = get_and_tell(process, round, length_of(process)) && is_right;
  return same_everywhere(is_right, !part.is_asked || is_told(round, limit + most * time_for_byte));
}

bool ExposedWindow::get_and_tell(int process, int round, Bytes length) {
  ByteVector got(static_cast<std::size_t>(length));
  const ExposedMemory::Range range{test_begin, got};
  const bool came = try_get(process, {&range, 1}) == MPI_SUCCESS;
  const std::int64_t told = round + 1;
  std::int64_t before = 0;
  MPI_Fetch_and_op(&told, &before, MPI_INT64_T, process, 0, MPI_REPLACE, window_);
  MPI_Win_flush(process, window_);
  ByteVector expected(got.size());
  fill(expected, process, round);
  return came && got == expected;
}

/// Waits without a call of MPI.
bool ExposedWindow::is_told(int round, std::chrono::nanoseconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  auto* const word = reinterpret_cast<std::int64_t*>(own_.data());
  while (std::atomic_ref<std::int64_t>(*word).load(std::memory_order_acquire) <= round) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

/// Collective. It is also where a process whose bytes have not been got calls MPI, so that the gets end now.
ExposedWindow::Outcome ExposedWindow::same_everywhere(bool is_right, bool has_come) {
  int verdicts[] = {is_right ? 1 : 0, has_come ? 1 : 0};
  MPI_Allreduce(MPI_IN_PLACE, verdicts, 2, MPI_INT, MPI_MIN, comm_);
  if (verdicts[0] == 0) return Outcome::wrong;
  return verdicts[1] == 0 ? Outcome::late : Outcome::right;
}

}  // namespace tailrace::comm
