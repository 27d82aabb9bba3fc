// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// One rank's n-th storage call fails, for n = 1, 2, ... until none does. In every mode every rank hears the
// same of every call, somebody is told, nobody hangs, and the next session is as good as new.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <numeric>
#include <optional>

#include "files/world.hpp"
#include "ground/comm/mpi_transport.hpp"
#include "ground/comm/switchboard.hpp"
#include "ground/node/node_memory.hpp"

using namespace tailrace;
using namespace tailrace::files_test;

namespace {

constexpr Index side = 200;

/// The results of one run of the program on this rank, call by call.
struct Heard {
  std::string all;
  int failures = 0;
  bool right = false;  // the bytes read back are the bytes written

  void add(const Status& status) {
    all += status.text() + "\n";
    failures += !status.is_ok();
  }
};

/// Writes two arrays and a line of text, flushes and reads them back, whatever fails.
Heard run_program(World& world, const std::string& path, const std::string& mode) {
  Heard heard;
  Result<std::unique_ptr<File>> file = world.try_to_open(path, "w+" + mode);
  heard.add(file.status());
  if (!file.is_ok()) return heard;
  const layout::Layout layout = *layout::Layout::block({side, side}, size());
  std::vector<double> written(static_cast<std::size_t>(layout.count(rank())));
  std::iota(written.begin(), written.end(), rank() * 1e6 + 1);
  std::vector<double> values = written;
  Array array;
  array.data = reinterpret_cast<std::byte*>(values.data());
  array.layout = &layout;
  const auto move = [&](Direction direction) {
    const ArrayOutcome outcome = (*file)->move_arrays("move", {&array, 1}, direction);
    heard.add(outcome.status);
    heard.all += std::to_string(outcome.elements) + " elements\n";
  };
  move(Direction::write);
  (*file)->stream().tell([](std::FILE* s) { return Outcome{0, std::fputs("text", s) < 0 ? errno : 0, {}}; });
  move(Direction::write);
  heard.add((*file)->flush(true));
  (*file)->ask("rewind", [](std::FILE* s) { return Outcome{std::fseek(s, 0, SEEK_SET), 0, {}}; });
  std::fill(values.begin(), values.end(), 0.0);
  move(Direction::read);
  heard.add((*file)->wait());
  heard.right = values == written;
  (*file)->ask("fseek", [](std::FILE* s) { return Outcome{std::fseek(s, 4, SEEK_CUR), 0, {}}; });
  std::fill(values.begin(), values.end(), 0.0);
  move(Direction::read);
  heard.add((*file)->wait());
  heard.right = heard.right && values == written;
  heard.add((*file)->close());
  return heard;
}

void every_call(const std::string& mode, int victim, const std::string& kind) {
  const Scratch scratch;
  for (int n = 1;; ++n) {
    const std::string fault = "rank=" + std::to_string(victim) + " nth=" + std::to_string(n) + " " + kind;
    bool struck = false;
    bool hidden = false;
    Heard heard;
    {
      World world("parallel_threshold=0 io_buffer=64KiB aggregators=2 fault=\"" + fault + "\"");
      heard = run_program(world, scratch.path(), mode);
      struck = any_rank(world.struck());
      // A rank that is no aggregator opens the file to read its own rows, and goes without if that fails.
      hidden = any_rank(rank() >= 2 && world.struck_call() == storage::Call::open);
    }
    CHECK(same_on_all_ranks(heard.all));
    CHECK(heard.failures > 0 || heard.right);
    CHECK(struck || n > 1 || victim > 0);  // the plan strikes at all
    if (!struck) {
      CHECK_EQ(heard.failures, 0);
      break;
    }
    // The C library reads ahead when it seeks, and does without if that fails.
    const bool harmless = kind == "calls=read" || hidden;
    if (!CHECK(heard.failures > 0 || harmless) && rank() == 0)
      std::fprintf(stderr, "mode \"%s\" %s: nobody was told\n", mode.c_str(), fault.c_str());
    if (!CHECK(n < 300)) break;
  }
  World world("parallel_threshold=0");
  const Heard afterwards = run_program(world, scratch.path(), mode);
  CHECK_EQ(afterwards.failures, 0);
  CHECK(afterwards.right);
}

/// While it lives, this process may open `more` descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::open("/dev/null", O_RDONLY);
    ::close(lowest);
    rlimit now = before_;
    now.rlim_cur = std::min(before_.rlim_cur, static_cast<rlim_t>(lowest) + more);
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace

/// Socket, connection, acceptance and the memory itself take a descriptor each.
MPI_TEST(array_fault, of_handing_the_nodes_memory_round_is_told_to_every_rank) {
  const std::unique_ptr<comm::MpiTransport> transport = std::move(*comm::MpiTransport::create(state().comm));
  comm::Switchboard board;
  board.connect(*transport);
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  comm::Line node(board, comm::line_number::session, std::make_shared<const comm::Members>(all));
  const std::vector<Bytes> parts(static_cast<std::size_t>(size()), Bytes{4096});
  for (int victim = 0; victim < size(); ++victim) {
    std::string told;
    for (rlim_t more = 0;; ++more) {
      std::optional<FewDescriptors> few;
      if (rank() == victim) few.emplace(more);
      const Status status = node::NodeMemory::create(node, parts, false).status();
      few.reset();
      CHECK(same_on_all_ranks(status.text()));
      if (status.is_ok()) break;
      told += status.text() + "\n";
      if (!CHECK(more < 100)) break;
    }
    for (const char* call :
         {victim == 0 ? "listen" : "connect", victim == 0 ? "accept" : "take the descriptor"})
      CHECK(told.find(call) != std::string::npos);
  }
  transport->free();
}

MPI_TEST(array_fault, of_any_call_in_any_mode) {
  for (int victim = 0; victim < size(); ++victim) {
    for (const std::string mode : {"", "p", "s", "ps"}) every_call(mode, victim, "");
  }
}

MPI_TEST(array_fault, of_reading_in_any_mode) {
  for (int victim = 0; victim < size(); ++victim) {
    for (const std::string mode : {"", "p", "s", "ps"}) every_call(mode, victim, "calls=read");
  }
}

namespace {

/// Reads an array of long rows, which each rank reads itself. `path` may name another file on each rank.
Heard read_long_rows(World& world, const std::string& path) {
  Heard heard;
  Result<std::unique_ptr<File>> file = world.try_to_open(path, "rp");
  heard.add(file.status());
  if (!file.is_ok()) return heard;
  const layout::Layout layout = *layout::Layout::block({side, side}, size());
  std::vector<double> values(static_cast<std::size_t>(layout.count(rank())));
  Array array;
  array.data = reinterpret_cast<std::byte*>(values.data());
  array.layout = &layout;
  const ArrayOutcome outcome = (*file)->move_arrays("read", {&array, 1}, Direction::read);
  heard.add(outcome.status);
  heard.right = true;
  const Index first = layout.rows(rank()).front().global;
  for (std::size_t i = 0; i < values.size(); ++i)
    heard.right = heard.right && values[i] == static_cast<double>(first + static_cast<Index>(i));
  const Outcome failed = (*file)->ask("ferror", [&](std::FILE*) {
    return Outcome{(*file)->stream().has_failed() ? 1 : 0, 0, {}};
  });
  heard.all += std::to_string(outcome.elements) + " elements, ferror " + std::to_string(failed.value);
  heard.add((*file)->close());
  return heard;
}

void write_numbers(const std::string& path, double first) {
  std::vector<double> numbers(side * side);
  std::iota(numbers.begin(), numbers.end(), first);
  std::ofstream(path).write(reinterpret_cast<const char*>(numbers.data()), side * side * 8);
}

}  // namespace

MPI_TEST(array_fault, of_a_rank_that_reads_its_own_rows_is_told_to_every_rank) {
  const Scratch scratch;
  if (rank() == 0) write_numbers(scratch.path(), 0);
  MPI_Barrier(state().comm);
  for (int victim = 0; victim < size(); ++victim) {
    for (const std::string kind :
         {" calls=read", " calls=open for=good", " calls=read fault=eintr for=good"}) {
      World world("parallel_threshold=0 fault=\"rank=" + std::to_string(victim) + " nth=1" + kind + "\"");
      const Heard heard = read_long_rows(world, scratch.path());
      CHECK(any_rank(world.struck()));
      CHECK(same_on_all_ranks(heard.all));
      const bool fails = kind == " calls=read" || (victim == 0 && kind == " calls=open for=good");
      CHECK_EQ(heard.failures, fails ? 1 : 0);
      if (!fails) CHECK(heard.right);
      if (kind != " calls=read") continue;
      CHECK(heard.all.find("Input/output error") != std::string::npos);
      CHECK(heard.all.find("ferror 1") != std::string::npos);
    }
  }
}

MPI_TEST(array_fault, of_a_rank_in_another_directory_reads_no_other_file) {
  const Scratch scratch;
  const std::string other = scratch.path() + ".d";
  if (rank() == 0) {
    write_numbers(scratch.path(), 0);
    CHECK(::mkdir(other.c_str(), 0777) == 0);
    write_numbers(other + "/" + scratch.path(), 5);
  }
  MPI_Barrier(state().comm);
  if (rank() == size() - 1 && rank() > 0) CHECK(::chdir(other.c_str()) == 0);
  {
    World world("parallel_threshold=0");
    const Heard heard = read_long_rows(world, scratch.path());
    CHECK_EQ(heard.failures, 0);
    CHECK(heard.right);
  }
  if (rank() == size() - 1 && rank() > 0) CHECK(::chdir("..") == 0);
  MPI_Barrier(state().comm);
  if (rank() != 0) return;
  CHECK(::unlink((other + "/" + scratch.path()).c_str()) == 0);
  CHECK(::rmdir(other.c_str()) == 0);
}

MPI_TEST(array_fault, of_a_disk_that_stays_full) {
  for (const std::string mode : {"", "p", "ps"}) every_call(mode, 0, "fault=enospc calls=write for=good");
}

namespace {

Outcome failed(File& file) {
  return file.ask("ferror", [&](std::FILE*) { return Outcome{file.stream().has_failed() ? 1 : 0, 0, {}}; });
}

/// An array meets a full disk on one rank, and another one ends behind the file, which is no error.
void look_at_ferror(const std::string& path, const std::string& mode, int victim, bool waits) {
  World world("parallel_threshold=0 io_buffer=64KiB aggregators=2 fault=\"rank=" + std::to_string(victim) +
              " nth=1 fault=enospc calls=write\"");
  std::unique_ptr<File> file = world.open(path, "w+" + mode);
  if (!file) return;
  const layout::Layout layout = *layout::Layout::block({side, side}, size());
  std::vector<double> values(static_cast<std::size_t>(layout.count(rank())), 1.5);
  Array array;
  array.data = reinterpret_cast<std::byte*>(values.data());
  array.layout = &layout;
  CHECK_EQ(failed(*file).value, 0);
  (void)file->move_arrays("write", {&array, 1}, Direction::write);
  // Without p the array waits in the buffer of C's stream.
  if (waits || mode.find('p') == std::string::npos) CHECK_EQ(file->flush(false).is_ok(), mode == "p");
  if (!CHECK_EQ(failed(*file).value, 1))
    std::fprintf(stderr, "  mode w+%s, rank %d meets a full disk\n", mode.c_str(), victim);
  CHECK(file->before_move("clearerr").is_ok());
  file->stream().tell([&file](std::FILE*) { return file->stream().clear_failure(), Outcome(); });
  (void)file->wait();
  CHECK_EQ(failed(*file).value, 0);
  (void)file->ask("seek", [](std::FILE* s) { return Outcome{std::fseek(s, 0, SEEK_END), 0, {}}; });
  CHECK(file->move_arrays("read", {&array, 1}, Direction::read).status.is_ok());
  (void)file->wait();
  CHECK_EQ(failed(*file).value, 0);
  CHECK(file->close().is_ok());
}

}  // namespace

MPI_TEST(array_fault, is_told_by_ferror_alike_in_every_mode) {
  const Scratch scratch;
  for (const std::string mode : {"", "p", "s", "ps"}) {
    for (const bool waits : {false, true}) {
      look_at_ferror(scratch.path(), mode, 0, waits);
      const bool second_aggregator = mode.find('p') != std::string::npos && size() > 1;
      if (second_aggregator) look_at_ferror(scratch.path(), mode, 1, waits);
    }
  }
}

MPI_TEST(array_fault, that_the_system_hides_changes_nothing) {
  const Scratch scratch;
  for (const char* kind : {"nth=1 fault=eintr for=good", "nth=1 fault=short for=good"}) {
    for (const std::string mode : {"", "p", "ps"}) {
      World world(std::string("parallel_threshold=0 fault=\"") + kind + "\"");
      const Heard heard = run_program(world, scratch.path(), mode);
      CHECK_EQ(heard.failures, 0);
      CHECK(heard.right);
      CHECK(any_rank(world.struck()));
    }
  }
}

MPI_TEST_MAIN
