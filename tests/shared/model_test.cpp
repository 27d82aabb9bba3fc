// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Shared files against a model: random operations of each rank, as fsx does them on one. In a round each
// block of the file belongs to one rank, which writes there as it likes and sees what it wrote. After the
// round all ranks see all of it. All ranks draw from the same numbers, so that each of them knows what the
// file holds.
#include <algorithm>
#include <random>
#include <vector>

#include "files/fixture.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::files_test;

namespace {

constexpr tr_index block = 1000;  // not a multiple of any page

/// How a case goes; the seed decides the rest.
struct Sample {
  unsigned seed = 0;
  std::string options;
  tr_index most = 0;  // bytes in the file
  int rounds = 0;
};

/// The numbers of one rank's operations; every rank draws those of all.
class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {}

  tr_index pick(tr_index least, tr_index most) {
    return std::uniform_int_distribution<tr_index>(least, most)(random_);
  }
  bool once_in(int times) { return pick(1, times) == 1; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] tr_index size() const { return static_cast<tr_index>(bytes_.size()); }
  void resize(tr_index size) { bytes_.resize(static_cast<std::size_t>(size)); }
  void write(tr_index offset, const std::string& bytes) {
    const auto end = static_cast<std::size_t>(offset) + bytes.size();
    if (bytes_.size() < end) bytes_.resize(end);
    bytes_.replace(static_cast<std::size_t>(offset), bytes.size(), bytes);
  }
  std::string some(tr_index count) {
    std::string bytes(static_cast<std::size_t>(count), ' ');
    for (char& each : bytes) each = static_cast<char>(random_());
    return bytes;
  }
  [[nodiscard]] std::string part(tr_index offset, tr_index count) const {
    if (offset >= size()) return {};
    return bytes_.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
  }

 private:
  std::mt19937 random_;
  std::string bytes_;
};

void check_read(const Model& model, tr_shared* file, tr_index offset, tr_index count) {
  std::string got(static_cast<std::size_t>(count), '?');
  tr_index bytes = -1;
  ok(tr_shared_pread(file, got.data(), count, offset, &bytes), "pread");
  const std::string wanted = model.part(offset, count);
  if (!CHECK_EQ(bytes, static_cast<tr_index>(wanted.size()))) return;
  got.resize(wanted.size());
  if (CHECK(got == wanted)) return;
  const auto at =
      static_cast<std::size_t>(std::mismatch(got.begin(), got.end(), wanted.begin()).first - got.begin());
  std::fprintf(stderr, "  rank %d: read of %lld from %lld differs at %lld\n", rank(),
               static_cast<long long>(count), static_cast<long long>(offset),
               static_cast<long long>(offset) + static_cast<long long>(at));
}

/// A piece of a rank's block.
struct Place {
  tr_index offset = 0;
  tr_index count = 0;
};
Place place_in(Model& model, tr_index number) {
  const tr_index from = model.pick(0, block - 1);
  return {number * block + from, model.pick(1, block - from)};
}

void write_somehow(Model& model, tr_shared* file, tr_index number, bool mine) {
  const tr_index way = model.pick(1, 3);
  std::vector<Place> places;
  for (tr_index i = way == 3 ? model.pick(1, 5) : 1; i > 0; --i) places.push_back(place_in(model, number));
  std::vector<std::string> texts;
  std::vector<tr_piece> pieces;
  for (const Place& place : places) texts.push_back(model.some(place.count));
  for (std::size_t i = 0; i < places.size(); ++i)
    pieces.push_back({texts[i].data(), places[i].count, places[i].offset});
  if (mine && way == 1)
    ok(tr_shared_pwrite(file, texts[0].data(), places[0].count, places[0].offset), "pwrite");
  if (mine && way == 2) {
    tr_index at = 0;
    ok(tr_shared_seek(file, places[0].offset, SEEK_SET, &at), "seek");
    ok(tr_shared_write(file, texts[0].data(), places[0].count), "write");
    ok(tr_shared_tell(file, &at), "tell");
    CHECK_EQ(at, places[0].offset + places[0].count);
  }
  if (mine && way == 3) ok(tr_shared_writev(file, pieces.data(), std::ssize(pieces)), "writev");
  for (std::size_t i = 0; i < places.size(); ++i) model.write(places[i].offset, texts[i]);
  if (!mine) return;
  for (const Place& place : places) check_read(model, file, place.offset, place.count);
}

/// Every block belongs to one rank.
void write_round(Model& model, tr_shared* file, const Sample& sample) {
  const tr_index blocks = sample.most / block;
  for (tr_index i = model.pick(0, 2 * blocks); i > 0; --i) {
    const tr_index number = model.pick(0, blocks - 1);
    const bool mine = (number * 31 + sample.seed) % size() == rank();
    write_somehow(model, file, number, mine);
  }
}

void check_all(Model& model, tr_shared* file) {
  tr_index bytes = -1;
  ok(tr_shared_size(file, &bytes), "size");
  CHECK_EQ(bytes, model.size());
  for (int i = 0; i < 5; ++i) {
    const tr_index offset = model.pick(0, model.size() + 10);
    check_read(model, file, offset, model.pick(0, 3 * block));
  }
  if (model.once_in(4)) check_read(model, file, 0, model.size() + 5);
  if (model.once_in(4))  // forward, so that pages are read ahead
    for (tr_index at = 0; at < model.size(); at += 2 * block) check_read(model, file, at, 2 * block);
}

tr_shared* open(const std::string& path, const char* mode, const std::string& options) {
  tr_shared* file = nullptr;
  ok(tr_shared_open(path.c_str(), mode, options.c_str(), &file), "open");
  return file;
}

void close(tr_shared*& file) {
  ok(tr_shared_close(&file), "close");
  CHECK(file == nullptr);
  MPI_Barrier(state().comm);
}

/// Checks what a crash at this moment would leave: a copy of the file and of its undo files is brought back
/// to the last flush. Nobody writes meanwhile.
void check_safety(const std::string& path, const std::string& flushed) {
  namespace fs = std::filesystem;
  MPI_Barrier(state().comm);
  if (!any_rank(rank() == 0 && fs::exists(path + ".undo"))) return;  // it has no name yet
  const fs::path copy = path + ".copy";
  if (rank() == 0) {
    fs::create_directory(copy);
    for (const auto& each : fs::directory_iterator(fs::path(path).parent_path())) {
      const std::string name = each.path().filename();
      if (name == "file" || (name.starts_with("file.undo") && !name.ends_with(".lock")))
        fs::copy(each.path(), copy / name);
    }
  }
  MPI_Barrier(state().comm);
  tr_shared* file = open(copy / "file", "r", "");
  if (file != nullptr) close(file);
  if (rank() == 0) CHECK(contents(copy / "file") == flushed);
  if (rank() == 0) CHECK_EQ(std::distance(fs::directory_iterator(copy), fs::directory_iterator()), 1);
  if (rank() == 0) fs::remove_all(copy);
  MPI_Barrier(state().comm);
}

void run(const std::string& path, const Sample& sample) {
  Model model(sample.seed);
  bool is_safe = sample.options.find("safety=") != std::string::npos;
  std::string flushed;
  tr_shared* file = open(path, "w+", sample.options);
  for (int round = 0; round < sample.rounds && file != nullptr; ++round) {
    write_round(model, file, sample);
    const tr_index end = model.pick(1, 6);
    if (end == 1) {
      ok(tr_shared_flush(file), "flush");
      flushed = model.bytes();
      if (rank() == 0) CHECK(contents(path) == flushed);
      MPI_Barrier(state().comm);
    } else if (end == 2) {
      const tr_index bytes = model.pick(0, sample.most);
      ok(tr_shared_resize(file, bytes), "resize");
      model.resize(bytes);
    } else if (end == 3) {
      close(file);
      if (rank() == 0) CHECK(contents(path) == model.bytes());
      MPI_Barrier(state().comm);
      flushed = model.bytes();
      const std::size_t rename = sample.options.find("safety=rename");
      file = open(path, "r+", sample.options.substr(0, rename));
      if (rename != std::string::npos) is_safe = false;
    } else {
      ok(tr_shared_sync(file), "sync");
    }
    if (file == nullptr) return;
    check_all(model, file);
    ok(tr_shared_sync(file), "sync");  // nobody writes before all have read
    if (is_safe) check_safety(path, flushed);
  }
  close(file);
  if (rank() == 0) CHECK(contents(path) == model.bytes());
  MPI_Barrier(state().comm);
}

void run_samples(const std::string& name, const std::vector<std::string>& options, tr_index most, int rounds,
                 const std::string& settings = "", unsigned seeds = 12) {
  const std::string directory = fresh_directory("shared-" + name);
  const Session session("aggregators=2 " + settings);
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    const std::string& chosen = options[seed % options.size()];
    const std::int64_t before = state().failures;
    run(directory + "/file", {seed, chosen, most, rounds});
    if (any_rank(state().failures != before)) {
      std::fprintf(stderr, "rank %d: seed %u, options \"%s\"\n", rank(), seed, chosen.c_str());
      break;
    }
  }
  remove_directory(directory);
}

std::string tiny_memory() { return "page=4KiB memory=" + std::to_string(16 * 1024 * size()); }
/// Little, but enough to read ahead.
std::string little_memory() { return "page=4KiB memory=" + std::to_string(48 * 1024 * size()); }

}  // namespace

MPI_TEST(shared, holds_what_a_model_holds) {
  run_samples("model", {"", "page=4KiB", "page=64KiB"}, 300'000, 6);
}

MPI_TEST(shared, holds_what_a_model_holds_when_pages_must_make_room) {
  run_samples("room", {tiny_memory(), little_memory()}, 400'000, 6);
}

MPI_TEST(shared, a_copy_at_any_moment_goes_back_to_the_last_flush) {
  run_samples("safety",
              {tiny_memory() + " safety=journal", "safety=journal", "page=4KiB safety=rename",
               tiny_memory() + " safety=rename"},
              400'000, 8);
}

/// Writes all of the file in large pieces, dealt out to the ranks, and then again some of what was whole.
void write_whole(Model& model, tr_shared* file, tr_index most, int round) {
  constexpr tr_index piece = 64 * 1024;
  for (int pass = 0; pass < 2; ++pass) {
    for (tr_index at = 0; at < most; at += piece) {
      if (pass == 1 && !model.once_in(10)) continue;
      const tr_index count = pass == 0 ? piece : 100;
      const std::string text(static_cast<std::size_t>(count), static_cast<char>(model.pick(0, 255)));
      if ((at / piece * 7 + round) % size() == rank())
        ok(tr_shared_pwrite(file, text.data(), count, at + 10 * pass), "pwrite");
      model.write(at + 10 * pass, text);
    }
  }
}

MPI_TEST(shared, pages_that_are_stored_behind_the_program_hold_what_a_model_holds) {
  const std::string directory = fresh_directory("shared-behind");
  const std::string path = directory + "/file";
  const Session session;
  constexpr tr_index most = 12 * 1024 * 1024 + 100;
  const std::string little = "page=1MiB memory=" + std::to_string(4 * size()) + "MiB";
  for (const std::string& options :
       {std::string(), std::string("page=64KiB"), little, std::string("safety=journal")}) {
    Model model(3);
    tr_shared* file = open(path, "w+", options);
    for (int round = 0; round < 4; ++round) {
      write_whole(model, file, most, round);
      if (round == 1) {
        ok(tr_shared_resize(file, 5'000'003), "resize");
        model.resize(5'000'003);
      }
      ok(round % 2 == 0 ? tr_shared_sync(file) : tr_shared_flush(file), "sync or flush");
      check_all(model, file);
      ok(tr_shared_sync(file), "sync");
      if (rank() == 0) ok(tr_shared_append(file, "the end", 7, nullptr), "append");
      MPI_Barrier(state().comm);  // others' next writes would come before it
      model.write(model.size(), "the end");
      if (round != 2) continue;
      close(file);
      if (rank() == 0) CHECK(contents(path) == model.bytes());
      file = open(path, "r+", options);
    }
    close(file);
    if (rank() == 0) CHECK(contents(path) == model.bytes());
    MPI_Barrier(state().comm);
  }
  remove_directory(directory);
}

MPI_TEST(shared, a_model_that_synchronises_has_no_conflicts) {
  CapturedStderr printed;
  run_samples("conflicts", {"", tiny_memory(), "page=4KiB"}, 300'000, 4, "check_conflicts=on", 3);
  CHECK_EQ(printed.text(), std::string());
}

MPI_TEST(shared, conflicts_are_told_with_both_ranks_and_the_bytes) {
  if (size() == 1) return;
  const std::string directory = fresh_directory("shared-told");
  CapturedStderr printed;
  {
    const Session session("check_conflicts=on");
    tr_shared* file = open(directory + "/file", "w+", "");
    const std::string text(100, 'x');
    if (rank() == 0) ok(tr_shared_pwrite(file, text.data(), 100, 2'000'000), "pwrite");
    if (rank() == size() - 1) ok(tr_shared_pwrite(file, text.data(), 100, 2'000'050), "pwrite");
    close(file);
  }
  const std::string wanted = "tailrace: warning: tr_shared_close(" + directory +
                             "/file): rank 0 wrote bytes 2000050 to 2000099, and rank " +
                             std::to_string(size() - 1) + " wrote them too, without a sync between the two\n";
  CHECK_EQ(printed.text(), rank() == 0 ? wanted : std::string());
  remove_directory(directory);
}

MPI_TEST(shared, two_files_at_once_keep_apart) {
  const std::string directory = fresh_directory("shared-two");
  const Session session;
  Model models[] = {Model(5), Model(6)};
  tr_shared* files[] = {open(directory + "/a", "w+", ""), open(directory + "/b", "w+", tiny_memory())};
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 2; ++i) write_round(models[i], files[i], {static_cast<unsigned>(i), "", 150'000, 0});
    for (int i = 0; i < 2; ++i) {
      ok(tr_shared_sync(files[i]), "sync");
      check_all(models[i], files[i]);
      ok(tr_shared_sync(files[i]), "sync");
    }
  }
  for (int i = 0; i < 2; ++i) close(files[i]);
  if (rank() == 0) CHECK(contents(directory + "/a") == models[0].bytes());
  if (rank() == 0) CHECK(contents(directory + "/b") == models[1].bytes());
  remove_directory(directory);
}

MPI_TEST(shared, appends_of_all_ranks_follow_one_another) {
  const std::string directory = fresh_directory("shared-append");
  const std::string path = directory + "/file";
  const Session session;
  constexpr int records = 200;
  const std::string record(50, static_cast<char>('a' + rank()));
  for (const char* mode : {"w", "a"}) {
    tr_shared* file = open(path, mode, "page=4KiB");
    for (int i = 0; i < records; ++i) {
      tr_index offset = -1;
      if (*mode == 'w') {
        ok(tr_shared_append(file, record.data(), 50, &offset), "append");
        CHECK_EQ(offset % 50, 0);
      } else {
        ok(tr_shared_write(file, record.data(), 50), "write");
      }
    }
    close(file);
  }
  const std::string all = contents(path);
  CHECK_EQ(all.size(), static_cast<std::size_t>(2 * records * 50 * size()));
  std::vector<int> counts(static_cast<std::size_t>(size()), 0);
  for (std::size_t at = 0; at + 50 <= all.size(); at += 50) {
    CHECK(std::count(all.begin() + static_cast<std::ptrdiff_t>(at),
                     all.begin() + static_cast<std::ptrdiff_t>(at) + 50, all[at]) == 50);
    ++counts[static_cast<std::size_t>(all[at] - 'a') % counts.size()];
  }
  for (const int count : counts) CHECK_EQ(count, 2 * records);
  remove_directory(directory);
}

MPI_TEST(shared, bytes_that_nobody_wrote_are_zeros) {
  const std::string directory = fresh_directory("shared-holes");
  const std::string path = directory + "/file";
  const Session session;
  tr_shared* file = open(path, "w+", "");
  // The page is written, cut and extended again: nothing of it comes back.
  const std::string text(5000, 'x');
  if (rank() == 0) ok(tr_shared_pwrite(file, text.data(), 5000, 0), "pwrite");
  ok(tr_shared_flush(file), "flush");
  ok(tr_shared_resize(file, 100), "resize");
  ok(tr_shared_resize(file, 3'000'000), "resize");
  if (rank() == size() - 1) ok(tr_shared_pwrite(file, "end", 3, 7'000'000), "pwrite");
  close(file);
  std::string wanted(7'000'003, '\0');
  wanted.replace(0, 100, std::string(100, 'x'));
  wanted.replace(7'000'000, 3, "end");
  if (rank() == 0) CHECK(contents(path) == wanted);
  MPI_Barrier(state().comm);
  file = open(path, "r", tiny_memory());
  std::string got(wanted.size(), '?');
  tr_index bytes = 0;
  ok(tr_shared_read(file, got.data(), static_cast<tr_index>(got.size()), &bytes), "read");
  CHECK(got == wanted);
  ok(tr_shared_read(file, got.data(), 10, &bytes), "read");
  CHECK_EQ(bytes, 0);
  close(file);
  remove_directory(directory);
}

MPI_TEST_MAIN
