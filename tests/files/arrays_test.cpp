// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Tests distributed arrays in collective files. Whatever the mode, the layout, the section, the number of
// ranks, aggregators, threads and the memory, the file holds the bytes that one rank alone would write, and
// every rank reads back its own part and nothing else.
#include "unit/layout/arrays.hpp"
#include "files/world.hpp"

using namespace tailrace;
using namespace tailrace::files_test;
using tailrace::layout::test::any_section;
using tailrace::layout::test::any_type;
using tailrace::layout::test::expand;
using tailrace::layout::test::fill_value;
using tailrace::layout::test::Generator;
using tailrace::layout::test::NaiveArray;

namespace {

/// One random array, the same on every rank, and its bytes in a file.
struct Sample {
  Generator generator;
  layout::Layout layout;
  ElementType type;
  NaiveArray memory;
  std::optional<layout::Section> section;
  std::string file;

  Sample(unsigned seed, std::size_t dims)
      : generator(seed, size()),
        layout(generator.any(generator.shape(dims))),
        type(any_type(generator)),
        memory(own_memory(seed)) {
    if (generator.chance()) section = any_section(generator, layout.shape());
    // Allocations of the files face have no levels.
    for (std::size_t i = 0; i < memory.owned.size(); ++i) place(memory, i);
    make_file();
  }

  [[nodiscard]] Array array() {
    Array array;
    array.data = memory.base();
    array.type = type;
    array.layout = &layout;
    array.halo = &memory.allocation.halo;
    array.strides = memory.allocation.strides;
    array.section = section;
    return array;
  }
  /// Returns the caller's memory with nothing in it.
  [[nodiscard]] NaiveArray blank() {
    NaiveArray empty = memory;
    std::fill(empty.buffer.begin(), empty.buffer.end(), std::byte{0xEE});
    return empty;
  }
  [[nodiscard]] bool selects(Index global) const {
    if (!section) return true;
    const std::vector<Index> at = layout::test::index_tuple(global, layout.shape());
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (at[d] < section->start[d] || at[d] >= section->stop[d]) return false;
      if ((at[d] - section->start[d]) % section->stride[d] != 0) return false;
    }
    return true;
  }
  /// Returns the bytes that reading the file gives.
  [[nodiscard]] std::vector<std::byte> read_back() {
    NaiveArray expected = blank();
    for (std::size_t i = 0; i < expected.owned.size(); ++i) {
      if (selects(expected.owned[i])) place(expected, i);
    }
    return expected.buffer;
  }

 private:
  /// Replicated arrays lie whole on every rank, as on the first.
  [[nodiscard]] int owner() const { return layout.kind() == "replicated" ? 0 : rank(); }
  NaiveArray own_memory(unsigned seed) {
    for (unsigned attempt = 0;; ++attempt) {
      Generator own(seed * 977 + attempt * 31 + static_cast<unsigned>(rank()));
      NaiveArray array(own, layout, owner(), type);
      if (array.allocation.level_axis < 0 && array.allocation.nproma == 0) return array;
    }
  }
  static void place(NaiveArray& array, std::size_t i) {
    fill_value(array.base() + array.offset(static_cast<Index>(i), 0), array.element, array.owned[i], 0);
  }
  void make_file() {
    const Bytes element = size_of(type);
    for (Index global = 0; global < layout.elements(); ++global) {
      if (!selects(global)) continue;
      std::vector<std::byte> value(static_cast<std::size_t>(element));
      fill_value(value.data(), element, global, 0);
      file.append(reinterpret_cast<const char*>(value.data()), value.size());
    }
  }
};

/// In these samples halos may differ between ranks, and strides always do: the library uses those of each
/// rank.
const char* const worlds[] = {
    "parallel_threshold=0",
    "parallel_threshold=0 io_buffer=64KiB aggregators=2",
    "parallel_threshold=0 io_buffer=64KiB io_threads=0 aggregators=3",
    "parallel_threshold=0 io_buffer=64KiB io_threads=1",
};

std::unique_ptr<File> write_sample(World& world, Sample& sample, const std::string& path,
                                   const std::string& letters) {
  std::unique_ptr<File> file = world.open(path, "w+" + letters);
  if (!file) return file;
  const Array arrays[] = {sample.array(), sample.array()};
  const ArrayOutcome written = file->move_arrays("write", arrays, Direction::write);
  CHECK_EQ(written.status.text(), std::string());
  CHECK_EQ(written.elements * size_of(sample.type), 2 * sample.file.size());
  return file;
}

void check_reading(File& file, Sample& sample) {
  file.ask("rewind", [](std::FILE* stream) {
    std::rewind(stream);
    return Outcome{};
  });
  NaiveArray first = sample.blank();
  NaiveArray second = sample.blank();
  Array arrays[] = {sample.array(), sample.array()};
  arrays[0].data = first.base();
  arrays[1].data = second.base();
  const ArrayOutcome read = file.move_arrays("read", arrays, Direction::read);
  CHECK_EQ(read.status.text(), std::string());
  CHECK_EQ(read.elements * size_of(sample.type), 2 * sample.file.size());
  CHECK(file.wait().is_ok());
  CHECK(first.buffer == sample.read_back());
  CHECK(second.buffer == sample.read_back());
}

/// Calls `body` in every kind of world with every mode.
template <typename Body>
void in_all_modes(const Body& body) {
  for (const char* options : worlds) {
    World world(options);
    if (options == worlds[2]) world.service().set_shortest_own_row(0);
    for (const std::string mode : {"", "p", "s", "ps"}) body(world, mode);
  }
}

}  // namespace

MPI_TEST(arrays, lie_in_the_file_as_one_rank_writes_them) {
  const Scratch scratch;
  for (const char* options : worlds) {
    World world(options);
    if (options == worlds[0]) world.service().set_shortest_own_row(0);  // ranks read rows of any length
    for (unsigned seed = 0; seed < 60; ++seed) {
      Sample sample(seed, 1 + seed % 4);
      const char* const letters[] = {"", "p", "s", "ps"};
      const std::string mode = letters[seed % 4];
      std::unique_ptr<File> file = write_sample(world, sample, scratch.path(), mode);
      if (!file) return;
      CHECK(file->flush(false).is_ok());
      if (!CHECK(scratch.bytes() == sample.file + sample.file)) {
        std::fprintf(stderr, "seed %u mode \"%s\" %s: %s\n", seed, mode.c_str(), options,
                     layout::test::describe(sample.layout).c_str());
      }
      check_reading(*file, sample);
      CHECK(file->close().is_ok());
    }
  }
}

MPI_TEST(arrays, of_many_stripes_go_round_the_ring) {
  const Scratch scratch;
  in_all_modes([&](World& world, const std::string& mode) {
    const layout::Layout layout = *layout::Layout::block({300, 401}, size());
    const std::vector<Index> own = expand(layout.rows(rank()));
    std::vector<double> values;
    for (const Index global : own) values.push_back(static_cast<double>(global));
    Array array;
    array.data = reinterpret_cast<std::byte*>(values.data());
    array.layout = &layout;
    std::unique_ptr<File> file = world.open(scratch.path(), "w+" + mode);
    if (!file) return;
    // An odd beginning, so that elements lie across stripes, and text between arrays.
    const auto say = [&](const char* text) {
      file->stream().tell([text](std::FILE* stream) {
        return Outcome{0, std::fputs(text, stream) < 0 ? errno : 0, {}};
      });
    };
    for (int round = 0; round < 3; ++round) {
      say("abc");
      CHECK_EQ(file->move_arrays("write", {&array, 1}, Direction::write).elements, 300 * 401);
      CHECK_EQ(file->move_arrays("write", {&array, 1}, Direction::write).elements, 300 * 401);
    }
    const Outcome end = file->ask("ftell", [](std::FILE* s) { return Outcome{std::ftell(s), 0, {}}; });
    CHECK_EQ(end.value, 3 * (3 + 2 * 300 * 401 * 8));
    for (int round = 0; round < 2; ++round) {
      const long offset = round * (3 + 2 * 300 * 401 * 8) + 3;
      file->ask("fseek", [offset](std::FILE* s) { return Outcome{std::fseek(s, offset, SEEK_SET), 0, {}}; });
      std::vector<double> first(values.size(), -1);
      std::vector<double> second(values.size(), -1);
      Array target = array;
      target.data = reinterpret_cast<std::byte*>(first.data());
      CHECK_EQ(file->move_arrays("read", {&target, 1}, Direction::read).elements, 300 * 401);
      target.data = reinterpret_cast<std::byte*>(second.data());
      CHECK_EQ(file->move_arrays("read", {&target, 1}, Direction::read).elements, 300 * 401);
      // The program writes the array again before it has waited for the reads.
      file->stream().tell([offset](std::FILE* s) { return Outcome{0, std::fseek(s, offset, SEEK_SET), {}}; });
      CHECK_EQ(file->move_arrays("write", {&array, 1}, Direction::write).elements, 300 * 401);
      CHECK(file->wait().is_ok());
      CHECK(first == values);
      CHECK(second == values);
    }
    CHECK(file->close().is_ok());
  });
}

MPI_TEST(arrays, of_ranks_that_know_only_their_own_indices) {
  const Scratch scratch;
  in_all_modes([&](World& world, const std::string& mode) {
    constexpr Index all = 30000;
    std::vector<Index> counts(static_cast<std::size_t>(size()), all / size());
    counts.back() += all % size();
    std::vector<Index> own;
    for (Index i = 0; i < counts[static_cast<std::size_t>(rank())]; ++i)
      own.push_back((rank() * (all / size()) + i) * 7 % all);  // scattered over the whole array
    const layout::Layout layout = *layout::Layout::indexed_part({all}, rank(), size(), own);
    std::vector<double> values(own.begin(), own.end());
    Array array;
    array.data = reinterpret_cast<std::byte*>(values.data());
    array.layout = &layout;
    array.in_parts = true;
    std::unique_ptr<File> file = world.open(scratch.path(), "w+" + mode);
    if (!file) return;
    CHECK_EQ(file->move_arrays("write", {&array, 1}, Direction::write).elements, all);
    CHECK(file->flush(false).is_ok());
    const std::string held = scratch.bytes();
    std::vector<double> expected(all);
    std::iota(expected.begin(), expected.end(), 0.0);
    CHECK(held.size() == all * 8 && std::memcmp(held.data(), expected.data(), all * 8) == 0);
    file->ask("rewind", [](std::FILE* s) { return Outcome{std::fseek(s, 0, SEEK_SET), 0, {}}; });
    std::fill(values.begin(), values.end(), -1.0);
    CHECK_EQ(file->move_arrays("read", {&array, 1}, Direction::read).elements, all);
    CHECK(file->wait().is_ok());
    CHECK(std::equal(own.begin(), own.end(), values.begin()));
    CHECK(file->close().is_ok());
  });
}

MPI_TEST(arrays, stop_at_the_end_of_the_file) {
  const Scratch scratch;
  World world("parallel_threshold=0 io_buffer=64KiB");
  for (const std::string mode : {"", "p"}) {
    if (rank() == 0) std::ofstream(scratch.path()) << std::string(8 * 5000 + 3, 'x');
    MPI_Barrier(state().comm);
    const layout::Layout layout = *layout::Layout::block({10000}, size());
    std::vector<double> values(static_cast<std::size_t>(layout.count(rank())), -1);
    Array array;
    array.data = reinterpret_cast<std::byte*>(values.data());
    array.layout = &layout;
    std::unique_ptr<File> file = world.open(scratch.path(), "r" + mode);
    if (!file) return;
    const ArrayOutcome read = file->move_arrays("read", {&array, 1}, Direction::read);
    CHECK(read.status.is_ok());
    CHECK_EQ(read.elements, 5000);
    const Outcome eof = file->ask("feof", [](std::FILE* s) { return Outcome{std::feof(s) != 0, 0, {}}; });
    CHECK_EQ(eof.value, 1);
    const Index first = layout.rows(rank()).empty() ? 0 : layout.rows(rank()).front().global;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Index global = first + static_cast<Index>(i);
      if (global < 5000) CHECK(values[i] != -1);
      if (global > 5000) CHECK_EQ(values[i], -1);
    }
    CHECK(file->close().is_ok());
  }
}

namespace {

/// Reads ten numbers from byte `begin` of a file of 37 bytes, and writes a letter at the position at which
/// the read has left the file.
void read_to_the_end(World& world, const std::string& path, const std::string& mode, long begin) {
  const layout::Layout layout = *layout::Layout::block({10}, size());
  std::vector<double> values(static_cast<std::size_t>(layout.count(rank())), -1);
  Array array;
  array.data = reinterpret_cast<std::byte*>(values.data());
  array.layout = &layout;
  std::unique_ptr<File> file = world.open(path, "w+" + mode);
  if (!file) return;
  file->ask("fill", [begin](std::FILE* s) {
    std::fputs("five:four numbers are 32 bytes long. ", s);
    return Outcome{std::fflush(s) + std::fseek(s, begin, SEEK_SET), 0, {}};
  });
  const ArrayOutcome read = file->move_arrays("read", {&array, 1}, Direction::read);
  CHECK(read.status.is_ok());
  // An asynchronous read, in mode "s" alone, cannot tell at once how many elements it gets.
  if (mode != "s") CHECK_EQ(read.elements, begin < 37 ? (37 - begin) / 8 : 0);
  CHECK_EQ(file->wait().is_ok(), mode.find('s') == std::string::npos || mode.find('l') != std::string::npos);
  const long expected = std::max(begin, 37L);
  CHECK_EQ(file->ask("ftell", [](std::FILE* s) { return Outcome{std::ftell(s), 0, {}}; }).value, expected);
  CHECK_EQ(file->ask("feof", [](std::FILE* s) { return Outcome{std::feof(s) != 0, 0, {}}; }).value, 1);
  file->ask("write", [](std::FILE* s) {
    std::fseek(s, 0, SEEK_CUR);
    return Outcome{std::fputc('X', s), 0, {}};
  });
  CHECK(file->close().is_ok());
  MPI_Barrier(state().comm);
  if (!CHECK_EQ(static_cast<long>(contents(path).size()), expected + 1))
    std::fprintf(stderr, "  mode w+%s, from byte %ld\n", mode.c_str(), begin);
  MPI_Barrier(state().comm);
}

}  // namespace

MPI_TEST(arrays, that_begin_or_end_behind_the_file_leave_it_where_c_does) {
  const Scratch scratch;
  World world("parallel_threshold=0 io_buffer=64KiB");
  for (const std::string mode : {"", "p", "s", "ps"}) {
    for (const long begin : {100L, 37L, 5L}) read_to_the_end(world, scratch.path(), mode, begin);
  }
  const std::string own = scratch.path() + "." + std::to_string(rank());
  for (const std::string mode : {"l", "ls"}) {
    for (const long begin : {100L, 37L}) read_to_the_end(world, own, mode, begin);
  }
  std::remove(own.c_str());
  std::remove((own + ".layout").c_str());
}

MPI_TEST(arrays, that_end_behind_the_file_are_told_by_wait) {
  const Scratch scratch;
  World world("parallel_threshold=0 io_buffer=64KiB");
  for (const std::string mode : {"s", "ps"}) {
    if (rank() == 0) std::ofstream(scratch.path()) << std::string(8 * 5000, 'x');
    MPI_Barrier(state().comm);
    const layout::Layout layout = *layout::Layout::block({10000}, size());
    std::vector<double> values(static_cast<std::size_t>(layout.count(rank())), -1);
    Array array;
    array.data = reinterpret_cast<std::byte*>(values.data());
    array.layout = &layout;
    std::unique_ptr<File> file = world.open(scratch.path(), "r" + mode);
    if (!file) return;
    CHECK(file->move_arrays("read", {&array, 1}, Direction::read).status.is_ok());
    const Status status = file->wait();
    CHECK(status.text().find("ended after 40000 of the 80000 bytes") != std::string::npos);
    CHECK(same_on_all_ranks(status.text()));
    CHECK(file->wait().is_ok());
    CHECK(file->close().is_ok());
  }
}

MPI_TEST(arrays, that_differ_between_ranks_are_refused_on_all) {
  const Scratch scratch;
  World world("parallel_threshold=0");
  const layout::Layout layout = *layout::Layout::block({100}, size());
  std::vector<double> values(static_cast<std::size_t>(layout.count(rank())), 1.0);
  for (const std::string mode : {"", "p", "s"}) {
    std::unique_ptr<File> file = world.open(scratch.path(), "w" + mode);
    if (!file) return;
    Array array;
    array.data = reinterpret_cast<std::byte*>(values.data());
    array.layout = &layout;
    const auto refuse = [&](const Array& bad, Code code) {
      const ArrayOutcome outcome = file->move_arrays("write", {&bad, 1}, Direction::write);
      CHECK(outcome.status.code() == code);
      CHECK_EQ(outcome.elements, 0);
      CHECK(same_on_all_ranks(outcome.status.text()));
    };
    Array bad = array;
    if (rank() == size() - 1) bad.data = nullptr;
    refuse(bad, Code::argument);
    bad = array;
    bad.layout_number = size() > 1 && rank() == 0 ? 7 : 0;
    if (size() > 1) refuse(bad, Code::order);
    bad = array;
    if (rank() == 0) bad.type = ElementType{77};
    refuse(bad, Code::argument);
    const ArrayOutcome good = file->move_arrays("write", {&array, 1}, Direction::write);
    CHECK_EQ(good.elements, 100);
    const ArrayOutcome read = file->move_arrays("read", {&array, 1}, Direction::read);
    CHECK(read.status.code() == Code::state);
    CHECK(same_on_all_ranks(read.status.text()));
    CHECK(file->close().is_ok());
    CHECK_EQ(scratch.bytes().size(), 800);
  }
}

namespace {

/// Two arrays of one element, or of 2 MiB, on each rank of a group, in a file of its own.
class GroupFile {
 public:
  GroupFile(World& world, MPI_Comm comm, int salt, Index elements)
      : group_(world.group_of(comm)),
        salt_(salt),
        elements_(elements),
        layout_(*layout::Layout::block({elements * group_->size()}, group_->size())),
        path_(scratch_.path() + "." + std::to_string(salt) + ".of" + std::to_string(lowest(comm))),
        file_(world.open_in(group_, path_, "w+ps")) {
    for (int i = 0; i < 2; ++i) {
      values_[i].resize(static_cast<std::size_t>(elements));
      for (Index e = 0; e < elements; ++e)
        values_[i][static_cast<std::size_t>(e)] = value(i, group_->rank(), e);
      read_[i].resize(values_[i].size());
    }
  }
  ~GroupFile() {
    CHECK(file_->close().is_ok());
    MPI_Barrier(state().comm);
    std::remove(path_.c_str());
    MPI_Barrier(state().comm);
  }
  GroupFile(const GroupFile&) = delete;
  GroupFile& operator=(const GroupFile&) = delete;

  void write(int i) { move(values_[i], Direction::write); }
  void read(int i) { move(read_[i], Direction::read); }
  void rewind() {
    file_->ask("rewind", [](std::FILE* stream) { return Outcome{std::fseek(stream, 0, SEEK_SET), 0, {}}; });
  }
  void check() {
    CHECK(file_->wait().is_ok());
    CHECK(read_[0] == values_[0]);
    CHECK(read_[1] == values_[1]);
    std::ifstream file(path_, std::ios::binary);
    std::vector<double> all(static_cast<std::size_t>(2 * layout_.elements()));
    file.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size() * sizeof(double)));
    bool right = file.gcount() == static_cast<std::streamsize>(all.size() * sizeof(double));
    for (int i = 0; i < 2; ++i) {
      for (Index at = 0; at < layout_.elements(); ++at) {
        const double expected = value(i, static_cast<int>(at / elements_), at % elements_);
        right = right && all[static_cast<std::size_t>(i * layout_.elements() + at)] == expected;
      }
    }
    CHECK(right);
  }

 private:
  static int lowest(MPI_Comm comm) {
    int first = rank();
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm);
    return first;
  }
  [[nodiscard]] double value(int array, int owner, Index e) const {
    return salt_ * 1e9 + array * 1e8 + owner * 1e7 + static_cast<double>(e);
  }
  void move(std::vector<double>& values, Direction direction) {
    Array array;
    array.data = reinterpret_cast<std::byte*>(values.data());
    array.layout = &layout_;
    const ArrayOutcome moved = file_->move_arrays("move", {&array, 1}, direction);
    CHECK_EQ(moved.status.text(), std::string());
    CHECK_EQ(moved.elements, layout_.elements());
  }

  const Scratch scratch_;
  std::shared_ptr<Group> group_;
  int salt_;
  Index elements_;
  layout::Layout layout_;
  std::string path_;
  std::unique_ptr<File> file_;
  std::vector<double> values_[2], read_[2];
};

/// Writes two arrays to each file, and reads them back, while the other files do the same.
void write_and_read_at_once(const std::vector<GroupFile*>& files) {
  for (int i = 0; i < 2; ++i) {
    for (GroupFile* each : files) each->write(i);
  }
  for (GroupFile* each : files) each->rewind();
  for (int i = 0; i < 2; ++i) {
    for (GroupFile* each : files) each->read(i);
  }
  for (GroupFile* each : files) each->check();
}

}  // namespace

// Between nodes each group has a thread of its own that exchanges, at the same time as the others.
MPI_TEST(arrays, of_groups_of_the_same_ranks_are_exchanged_at_once) {
  World world("parallel_threshold=0");
  // The first two groups have the same ranks at work, the third has others.
  MPI_Comm same = MPI_COMM_NULL, reversed = MPI_COMM_NULL;
  MPI_Comm_dup(state().comm, &same);
  MPI_Comm_split(state().comm, 0, -rank(), &reversed);
  for (const Index elements : {Index{1}, Index{1} << 18}) {
    GroupFile first(world, state().comm, 1, elements);
    GroupFile second(world, same, 2, elements);
    GroupFile third(world, reversed, 3, elements);
    write_and_read_at_once({&first, &second, &third});
  }
  MPI_Comm_free(&same);
  MPI_Comm_free(&reversed);
}

MPI_TEST(arrays, of_groups_that_overlap_are_exchanged_at_once) {
  World world("parallel_threshold=0 io_buffer=1MiB");
  const int half = (size() + 1) / 2;
  MPI_Comm parts[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
  MPI_Comm_split(state().comm, rank() < half ? 0 : 1, -rank(), &parts[0]);
  MPI_Comm_split(state().comm, rank() / 2 % 2, rank(), &parts[1]);
  {
    GroupFile all(world, state().comm, 1, 30'000);
    GroupFile first(world, parts[0], 2, 30'000);
    GroupFile second(world, parts[1], 3, 30'000);
    write_and_read_at_once({&all, &first, &second});
  }
  for (MPI_Comm& part : parts) MPI_Comm_free(&part);
}

// Built twice: a thread exchanges between nodes where MPI_THREAD_MULTIPLE is asked for.
MPI_TEST_MAIN_WITH(TEST_THREAD_LEVEL)
