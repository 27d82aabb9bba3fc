// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Out-of-core arrays: whatever the shape, the portions, the halo, the depth, the ranks and the threads, every
// element is visited once, with the values of the file. The file then holds what one loop over the whole
// array leaves there. Whatever fails, every rank hears the same of it.
#include <unistd.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "files/fixture.hpp"
#include "support/held_storage.hpp"

using namespace tailrace::files_test;

namespace {

using Tuple = std::vector<tr_index>;

struct Box {
  Tuple lower;
  Tuple upper;
};

/// Calls body(index tuple) for each element of a box in C order.
template <typename Body>
void for_each_element(const Box& box, const Body& body) {
  Tuple at = box.lower;
  while (true) {
    body(at);
    std::size_t d = at.size() - 1;
    for (; ++at[d] == box.upper[d]; --d) {
      at[d] = box.lower[d];
      if (d == 0) return;
    }
  }
}

/// A random array in a file, cut in a random way; the same on every rank.
struct Sample {
  std::mt19937 random;
  Tuple shape, portion, halo;
  int type = TR_BYTE;
  std::size_t element = 1;
  int depth = 0;
  std::size_t offset = 0;
  std::string bytes;  // of the array

  explicit Sample(unsigned seed, bool with_halo) : random(seed) {
    const auto dims = static_cast<std::size_t>(pick(1, 4));
    for (std::size_t d = 0; d < dims; ++d) {
      shape.push_back(pick(1, dims == 1 ? 400 : dims == 2 ? 40 : 9));
      portion.push_back(pick(1, static_cast<int>(shape[d]) + 2));
      halo.push_back(with_halo ? pick(0, 3) : 0);
    }
    const std::pair<int, std::size_t> types[] = {
        {TR_BYTE, 1}, {TR_I16, 2}, {TR_F32, 4}, {TR_F64, 8}, {TR_C128, 16}};
    std::tie(type, element) = types[pick(0, 4)];
    depth = pick(0, 4);
    offset = static_cast<std::size_t>(pick(0, 1) * pick(1, 99));
    bytes.resize(count() * element);
    for (char& byte : bytes) byte = static_cast<char>(random());
  }

  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); }
  [[nodiscard]] std::size_t count() const {
    std::size_t all = 1;
    for (const tr_index extent : shape) all *= static_cast<std::size_t>(extent);
    return all;
  }
  /// Returns where an element's bytes begin in memory that holds `box`.
  [[nodiscard]] std::size_t place(const Box& box, const Tuple& at) const {
    tr_index place = 0;
    for (std::size_t d = 0; d < at.size(); ++d)
      place = place * (box.upper[d] - box.lower[d]) + at[d] - box.lower[d];
    return static_cast<std::size_t>(place) * element;
  }
  [[nodiscard]] Box whole() const { return {Tuple(shape.size(), 0), shape}; }
  [[nodiscard]] Box with_halo(const Box& box) const {
    Box held = box;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      held.lower[d] = std::max<tr_index>(box.lower[d] - halo[d], 0);
      held.upper[d] = std::min(box.upper[d] + halo[d], shape[d]);
    }
    return held;
  }
  /// All portions, in their order.
  [[nodiscard]] std::vector<Box> portions() const {
    Box counts{Tuple(shape.size(), 0), {}};
    for (std::size_t d = 0; d < shape.size(); ++d)
      counts.upper.push_back((shape[d] + portion[d] - 1) / portion[d]);
    std::vector<Box> all;
    for_each_element(counts, [&](const Tuple& number) {
      Box box;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        box.lower.push_back(number[d] * portion[d]);
        box.upper.push_back(std::min(box.lower[d] + portion[d], shape[d]));
      }
      all.push_back(box);
    });
    return all;
  }
  [[nodiscard]] std::string file() const {
    return std::string(offset, 'h') + bytes + "what follows the array";
  }
  [[nodiscard]] tr_window* open(const std::string& path, const char* mode) const {
    tr_window* window = nullptr;
    const std::string options = "offset=" + std::to_string(offset);
    const int code =
        tr_window_open(path.c_str(), mode, type, static_cast<int>(shape.size()), shape.data(), portion.data(),
                       *mode == 'w' ? nullptr : halo.data(), depth, options.c_str(), &window);
    if (!CHECK_EQ(code, TR_OK)) std::fprintf(stderr, "  %s\n", tr_error());
    return window;
  }
};

/// Goes through the caller's portions. They come in order, where they should be, and none is left out.
template <typename Body>
void for_each_portion(const Sample& sample, tr_window* window, const Body& body) {
  const std::vector<Box> all = sample.portions();
  Box got{Tuple(sample.shape.size()), Tuple(sample.shape.size())};
  void* data = nullptr;
  for (auto p = static_cast<std::size_t>(rank()); p < all.size(); p += static_cast<std::size_t>(size())) {
    if (!CHECK_EQ(tr_window_next(window, &data, got.lower.data(), got.upper.data()), TR_OK) ||
        !CHECK(data != nullptr))
      return;
    CHECK(got.lower == all[p].lower && got.upper == all[p].upper);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0);
    CHECK_EQ(tr_window_bounds(window, 1, got.lower.data(), got.upper.data()), TR_OK);
    const Box held = sample.with_halo(all[p]);
    CHECK(got.lower == held.lower && got.upper == held.upper);
    body(p, all[p], held, static_cast<char*>(data));
  }
  for (int again = 0; again < 2; ++again) {
    CHECK_EQ(tr_window_next(window, &data, nullptr, nullptr), TR_OK);
    CHECK(data == nullptr);
  }
  CHECK_EQ(tr_window_bounds(window, 0, got.lower.data(), got.upper.data()), TR_ERR_STATE);
}

bool contains(const Box& box, const Tuple& at) {
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (at[d] < box.lower[d] || at[d] >= box.upper[d]) return false;
  }
  return true;
}

void invert(char* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(~bytes[i]);
}

/// Runs `body` with and without threads, in a directory of its own.
template <typename Body>
void in_sessions(const std::string& name, const Body& body) {
  const std::string directory = fresh_directory(name);
  for (const char* options : {"io_threads=5", "io_threads=0"}) {
    const Session session(options);
    body(directory + "/array");
  }
  remove_directory(directory);
}

/// Runs `body` on the first rank, while the others wait: nobody looks before, and nobody changes anything
/// afterwards.
template <typename Body>
void on_first_rank(const Body& body) {
  MPI_Barrier(state().comm);
  if (rank() == 0) body();
  MPI_Barrier(state().comm);
}

constexpr unsigned samples = 40;

}  // namespace

MPI_TEST(window, gives_every_element_once_with_its_halo) {
  in_sessions("read", [](const std::string& path) {
    for (unsigned seed = 0; seed < samples; ++seed) {
      const Sample sample(seed, true);
      on_first_rank([&] { write_file(path, sample.file()); });
      tr_window* window = sample.open(path, "r");
      if (window == nullptr) return;
      long wrong = 0;
      for_each_portion(sample, window, [&](std::size_t, const Box&, const Box& held, const char* data) {
        for_each_element(held, [&](const Tuple& at) {
          const char* const expected = sample.bytes.data() + sample.place(sample.whole(), at);
          wrong += std::memcmp(data + sample.place(held, at), expected, sample.element) != 0;
        });
      });
      if (!CHECK_EQ(wrong, 0)) std::fprintf(stderr, "  seed %u\n", seed);
      CHECK_EQ(tr_window_close(&window), TR_OK);
      CHECK(window == nullptr);
    }
  });
}

MPI_TEST(window, writes_back_the_portions_that_were_changed_and_nothing_else) {
  in_sessions("update", [](const std::string& path) {
    for (unsigned seed = 0; seed < samples; ++seed) {
      const Sample sample(seed + 1000, seed % 2 == 0);
      on_first_rank([&] { write_file(path, sample.file()); });
      tr_window* window = sample.open(path, "r+");
      if (window == nullptr) return;
      long wrong = 0;
      for_each_portion(sample, window, [&](std::size_t p, const Box& own, const Box& held, char* data) {
        for_each_element(held, [&](const Tuple& at) {
          char* const found = data + sample.place(held, at);
          const char* const before = sample.bytes.data() + sample.place(sample.whole(), at);
          // A neighbour may have been inverted meanwhile, or half of it.
          for (std::size_t i = 0; i < sample.element; ++i)
            wrong +=
                found[i] != before[i] && (contains(own, at) || found[i] != static_cast<char>(~before[i]));
        });
        for_each_element(held, [&](const Tuple& at) {
          char* const element = data + sample.place(held, at);
          if (contains(own, at))
            invert(element, sample.element);
          else
            std::memset(element, 'x', sample.element);  // a halo is never written
        });
        if (p % 3 != 1) CHECK_EQ(tr_window_dirty(window), TR_OK);
      });
      CHECK_EQ(wrong, 0);
      CHECK_EQ(tr_window_close(&window), TR_OK);
      on_first_rank([&] {
        std::string expected = sample.file();
        const std::vector<Box> all = sample.portions();
        for (std::size_t p = 0; p < all.size(); ++p) {
          if (p % 3 == 1) continue;
          for_each_element(all[p], [&](const Tuple& at) {
            invert(expected.data() + sample.offset + sample.place(sample.whole(), at), sample.element);
          });
        }
        if (!CHECK(contents(path) == expected)) std::fprintf(stderr, "  seed %u\n", seed);
      });
    }
  });
}

MPI_TEST(window, makes_a_file_of_what_was_filled_in) {
  in_sessions("write", [](const std::string& path) {
    for (unsigned seed = 0; seed < samples; ++seed) {
      const Sample sample(seed + 2000, false);
      on_first_rank([&] { write_file(path, std::string(seed % 2 * 100000, 'o')); });
      tr_window* window = sample.open(path, "w");
      if (window == nullptr) return;
      for_each_portion(sample, window, [&](std::size_t, const Box& own, const Box&, char* data) {
        for_each_element(own, [&](const Tuple& at) {
          const char* const value = sample.bytes.data() + sample.place(sample.whole(), at);
          std::memcpy(data + sample.place(own, at), value, sample.element);
        });
      });
      CHECK_EQ(tr_window_close(&window), TR_OK);
      on_first_rank([&] {
        if (!CHECK(contents(path) == std::string(sample.offset, '\0') + sample.bytes))
          std::fprintf(stderr, "  seed %u\n", seed);
      });
    }
  });
}

MPI_TEST(window, left_early_has_written_what_was_left_and_zeros) {
  in_sessions("early", [](const std::string& path) {
    const tr_index shape[] = {40}, portion[] = {3};
    tr_window* window = nullptr;
    CHECK_EQ(tr_window_open(path.c_str(), "w", TR_BYTE, 1, shape, portion, nullptr, 2, nullptr, &window),
             TR_OK);
    void* data = nullptr;
    if (rank() == 0) {
      CHECK_EQ(tr_window_next(window, &data, nullptr, nullptr), TR_OK);
      std::memcpy(data, "abc", 3);
    }
    CHECK_EQ(tr_window_close(&window), TR_OK);
    on_first_rank([&] { CHECK(contents(path) == "abc" + std::string(37, '\0')); });
  });
}

MPI_TEST(window, of_an_array_without_elements_has_no_portions) {
  in_sessions("nothing", [](const std::string& path) {
    const tr_index shape[] = {5, 0}, portion[] = {2, 3}, halo[] = {1, 1};
    for (const char* mode : {"w", "r", "r+"}) {
      tr_window* window = nullptr;
      CHECK_EQ(tr_window_open(path.c_str(), mode, TR_F64, 2, shape, portion, *mode == 'w' ? nullptr : halo, 1,
                              "offset=3", &window),
               TR_OK);
      void* data = &window;
      CHECK_EQ(tr_window_next(window, &data, nullptr, nullptr), TR_OK);
      CHECK(data == nullptr);
      CHECK_EQ(tr_window_close(&window), TR_OK);
    }
    on_first_rank([&] { CHECK(contents(path) == std::string(3, '\0')); });
  });
}

MPI_TEST(window, left_open_is_written_when_the_session_ends) {
  const std::string directory = fresh_directory("finalize");
  const std::string path = directory + "/array";
  Session session;
  const tr_index shape[] = {7}, portion[] = {7};
  tr_window* window = nullptr;
  CHECK_EQ(tr_window_open(path.c_str(), "w", TR_BYTE, 1, shape, portion, nullptr, 1, nullptr, &window),
           TR_OK);
  void* data = nullptr;
  CHECK_EQ(tr_window_next(window, &data, nullptr, nullptr), TR_OK);
  if (data != nullptr) std::memcpy(data, "written", 7);
  CHECK_EQ(session.finish(), TR_OK);
  on_first_rank([&] { CHECK(contents(path) == "written"); });
  remove_directory(directory);
}

MPI_TEST(window, goes_on_while_a_portion_is_written) {
  const std::string directory = fresh_directory("overlap");
  const std::chrono::milliseconds own_wait(20);
  tailrace::HeldStorage& storage = tailrace::HeldStorage::get();
  const tr_index shape[] = {2 * size() * 50'000}, portion[] = {50'000};
  for (const bool threads : {true, false}) {
    const Session session(std::string("io_threads=") + (threads ? "5" : "0"));
    tr_window* window = nullptr;
    CHECK_EQ(tr_window_open((directory + "/array").c_str(), "w", TR_BYTE, 1, shape, portion, nullptr, 1,
                            nullptr, &window),
             TR_OK);
    void* data = nullptr;
    storage.hold(own_wait);
    for (int i = 0; i < 2; ++i) CHECK_EQ(tr_window_next(window, &data, nullptr, nullptr), TR_OK);
    CHECK_EQ(storage.own_calls(), threads ? 0 : 1);
    if (threads) storage.wait_for_a_call();  // waits for the first portion, which is not written yet
    double waited = -1;
    CHECK_EQ(tr_window_waited(window, &waited), TR_OK);
    CHECK(waited >= (threads ? 0 : std::chrono::duration<double>(own_wait).count()));
    storage.release();
    CHECK_EQ(tr_window_close(&window), TR_OK);
  }
  remove_directory(directory);
}

namespace {

/// A call that every rank makes, with one wrong argument.
struct Call {
  std::string path, mode = "r";
  int type = TR_F64;
  int ndims = 2;
  Tuple shape = {4, 6}, portion = {2, 6}, halo = {0, 0};
  int depth = 1;
  std::string options;
};

void refused(const Call& call, int code, const std::string& word) {
  tr_window* window = reinterpret_cast<tr_window*>(1);
  const int got =
      tr_window_open(call.path.c_str(), call.mode.c_str(), call.type, call.ndims, call.shape.data(),
                     call.portion.data(), call.halo.data(), call.depth, call.options.c_str(), &window);
  CHECK_EQ(got, code);
  CHECK(window == nullptr);
  CHECK(same_on_all_ranks(tr_error()));
  if (!CHECK(mentions(tr_error(), word)) && rank() == 0)
    std::fprintf(stderr, "  \"%s\" does not say \"%s\"\n", tr_error(), word.c_str());
}

}  // namespace

MPI_TEST(window, refuses_what_makes_no_sense_on_every_rank) {
  in_sessions("refused", [](const std::string& path) {
    on_first_rank([&] { write_file(path, std::string(192, 'a')); });
    const auto with = [&](const auto& change) {
      Call call;
      call.path = path;
      change(call);
      return call;
    };
    const int last = rank() == size() - 1;
    refused(with([](Call& c) { c.path += ".missing"; }), TR_ERR_IO, "No such file");
    refused(with([](Call& c) { c.path += "/deeper", c.mode = "w"; }), TR_ERR_IO, "create");
    refused(with([](Call& c) { c.shape = {4, 7}; }), TR_ERR_LAYOUT, "has 192 bytes");
    refused(with([](Call& c) { c.options = "offset=1"; }), TR_ERR_LAYOUT, "ends at byte 193");
    refused(with([](Call& c) { c.mode = "r+", c.options = "offset=8"; }), TR_ERR_LAYOUT, "ends at byte 200");
    refused(with([](Call& c) { c.options = "ofset=8"; }), TR_ERR_SETTINGS, "offset");
    refused(with([](Call& c) { c.options = "offset=-8"; }), TR_ERR_SETTINGS, "offset");
    refused(with([](Call& c) { c.mode = "a"; }), TR_ERR_ARGUMENT, "\"r+\"");
    refused(with([](Call& c) { c.ndims = 0; }), TR_ERR_ARGUMENT, "ndims");
    refused(with([](Call& c) { c.ndims = 8; }), TR_ERR_ARGUMENT, "ndims");
    refused(with([](Call& c) { c.depth = -1; }), TR_ERR_ARGUMENT, "depth");
    refused(with([](Call& c) { c.mode = "w", c.halo = {0, 1}; }), TR_ERR_ARGUMENT, "no halo");
    refused(with([&](Call& c) { c.type = last ? 77 : TR_F64; }), TR_ERR_ARGUMENT, "element type 77");
    refused(with([&](Call& c) { c.portion[1] = last ? 0 : 6; }), TR_ERR_ARGUMENT, "portion[1] is 0");
    refused(with([&](Call& c) { c.halo[0] = last ? -1 : 0; }), TR_ERR_ARGUMENT, "halo[0] is -1");
    refused(with([&](Call& c) { c.shape[0] = last ? -4 : 4; }), TR_ERR_LAYOUT, "-4");
    const tr_index huge = tr_index{1} << 58;
    // It is refused before anything is done to the file.
    refused(with([&](Call& c) {
              c.mode = "w", c.shape = {huge, 1}, c.portion = {huge, 1};
            }),
            TR_ERR_MEMORY, "smaller");
    refused(with([&](Call& c) { c.mode = "w", c.shape = {huge, 16}; }), TR_ERR_LAYOUT, "last byte");
    if (size() > 1) {
      refused(with([&](Call& c) { c.depth = last ? 2 : 1; }), TR_ERR_ORDER, "depth 2");
      refused(with([&](Call& c) { c.mode = last ? "w" : "r"; }), TR_ERR_ORDER, "\"w\"");
    }
    on_first_rank([&] { CHECK(contents(path) == std::string(192, 'a')); });
    // The ranks are still in step.
    const tr_index shape[] = {4, 6};
    tr_window* window = nullptr;
    CHECK_EQ(tr_window_open(path.c_str(), "r", TR_F64, 2, shape, shape, nullptr, 1, nullptr, &window), TR_OK);
    CHECK_EQ(tr_window_close(&window), TR_OK);
  });
}

MPI_TEST(window, takes_calls_only_where_they_make_sense) {
  const std::string directory = fresh_directory("state");
  const std::string path = directory + "/array";
  const tr_index shape[] = {size()}, portion[] = {1};
  void* data = nullptr;
  tr_window* window = nullptr;
  CHECK_EQ(tr_window_open(path.c_str(), "w", TR_BYTE, 1, shape, portion, nullptr, 1, nullptr, &window),
           TR_ERR_STATE);
  const Session session;
  CHECK_EQ(tr_window_next(nullptr, &data, nullptr, nullptr), TR_ERR_STATE);
  CHECK_EQ(tr_window_close(&window), TR_ERR_STATE);
  CHECK_EQ(tr_window_close(nullptr), TR_ERR_STATE);
  CHECK_EQ(tr_window_open(nullptr, "w", TR_BYTE, 1, shape, portion, nullptr, 1, nullptr, &window),
           TR_ERR_ARGUMENT);
  CHECK_EQ(tr_window_open(path.c_str(), "w", TR_BYTE, 1, shape, portion, nullptr, 1, nullptr, nullptr),
           TR_ERR_ARGUMENT);
  CHECK_EQ(tr_window_open(path.c_str(), "w", TR_BYTE, 1, shape, portion, nullptr, 1, nullptr, &window),
           TR_OK);
  CHECK_EQ(tr_window_dirty(window), TR_ERR_STATE);
  CHECK_EQ(tr_window_close(&window), TR_OK);
  CHECK_EQ(tr_window_open(path.c_str(), "r", TR_BYTE, 1, shape, portion, nullptr, 1, nullptr, &window),
           TR_OK);
  CHECK_EQ(tr_window_next(window, nullptr, nullptr, nullptr), TR_ERR_ARGUMENT);
  CHECK_EQ(tr_window_next(window, &data, nullptr, nullptr), TR_OK);
  CHECK_EQ(tr_window_dirty(window), TR_ERR_STATE);
  CHECK(mentions(tr_error(), "opened for reading"));
  CHECK_EQ(tr_window_close(&window), TR_OK);
  remove_directory(directory);
}

MPI_TEST(window, of_a_file_that_is_cut_short_fails_on_every_rank) {
  in_sessions("cut", [](const std::string& path) {
    on_first_rank([&] { write_file(path, std::string(100'000, 'a')); });
    const tr_index shape[] = {100'000}, portion[] = {100};
    tr_window* window = nullptr;
    CHECK_EQ(tr_window_open(path.c_str(), "r", TR_BYTE, 1, shape, portion, nullptr, 1, nullptr, &window),
             TR_OK);
    on_first_rank([&] { CHECK_EQ(::truncate(path.c_str(), 50'050), 0); });
    void* data = nullptr;
    int code = TR_OK;
    while ((code = tr_window_next(window, &data, nullptr, nullptr)) == TR_OK && data != nullptr) continue;
    CHECK_EQ(code, TR_ERR_IO);
    CHECK(data == nullptr);
    CHECK_EQ(tr_window_next(window, &data, nullptr, nullptr), TR_ERR_IO);
    CHECK_EQ(tr_window_close(&window), TR_ERR_IO);
    CHECK(same_on_all_ranks(tr_error()));
    CHECK(mentions(tr_error(), "portion 500 of 1000") && mentions(tr_error(), "cut short"));
  });
}

namespace {

/// The results of a run on this rank.
struct Heard {
  std::string agreed;  // by the collective calls
  int collective = TR_OK;
  int local = TR_OK;
};

/// Inverts an array of 4 portions a rank, in place or into a new file.
Heard run_program(const std::string& path, const char* mode) {
  const tr_index shape[] = {4 * size(), 50}, portion[] = {1, 50};
  Heard heard;
  tr_window* window = nullptr;
  heard.collective =
      tr_window_open(path.c_str(), mode, TR_BYTE, 2, shape, portion, nullptr, 1, nullptr, &window);
  if (heard.collective != TR_OK) heard.agreed = tr_error();
  if (window == nullptr) return heard;
  void* data = nullptr;
  while ((heard.local = tr_window_next(window, &data, nullptr, nullptr)) == TR_OK && data != nullptr) {
    if (*mode == 'w') std::memset(data, 'a', 50);
    invert(static_cast<char*>(data), 50);
    tr_window_dirty(window);
  }
  heard.collective = tr_window_close(&window);
  if (heard.collective != TR_OK) heard.agreed = tr_error();
  return heard;
}

/// Fails each of one rank's storage calls in turn. Returns the number of calls that were struck.
int fail_every_call(const std::string& path, const char* mode, int victim, const std::string& options) {
  for (int n = 1;; ++n) {
    on_first_rank([&] { write_file(path, std::string(static_cast<std::size_t>(200 * size()), 'a')); });
    Heard heard;
    {
      const Session session(options + " fault=\"rank=" + std::to_string(victim) +
                            " nth=" + std::to_string(n) + " calls=all\"");
      heard = run_program(path, mode);
    }
    CHECK(same_on_all_ranks(std::to_string(heard.collective) + heard.agreed));
    CHECK(heard.local == TR_OK || heard.collective != TR_OK);
    if (heard.collective == TR_OK) {
      const std::string inverted(static_cast<std::size_t>(200 * size()), static_cast<char>(~'a'));
      on_first_rank([&] { CHECK(contents(path) == inverted); });
      return n - 1;
    }
    CHECK_EQ(heard.collective, TR_ERR_IO);
    if (!CHECK(n < 50)) return n;
  }
}

}  // namespace

MPI_TEST(window, storage_error_reaches_every_rank) {
  const std::string directory = fresh_directory("fault");
  for (const char* options : {"log=error io_threads=5", "log=error io_threads=0"}) {
    for (int victim = 0; victim < size(); ++victim) {
      // The calls are opening, 4 reads, 4 writes and closing. The first rank also looks at the size, or sets
      // it.
      const int more = victim == 0 ? 1 : 0;
      CHECK_EQ(fail_every_call(directory + "/array", "r+", victim, options), 10 + more);
      CHECK_EQ(fail_every_call(directory + "/array", "w", victim, options), 6 + more);
    }
  }
  remove_directory(directory);
}

MPI_TEST(window, verdict_names_the_first_portion_that_failed) {
  const std::string directory = fresh_directory("first");
  const std::string path = directory + "/array";
  const struct {
    const char* options;
    int portion;
  } cases[] = {
      // Two threads may write a rank's portions in either order, so all writes of all ranks fail.
      {"io_threads=5 fault=\"nth=1 calls=write fault=enospc for=good\"", 0},
      // One after another: the second write of each rank fails.
      {"io_threads=0 fault=\"nth=2 calls=write fault=enospc\"", size()},
  };
  for (const auto& each : cases) {
    on_first_rank([&] { write_file(path, std::string(static_cast<std::size_t>(200 * size()), 'a')); });
    const Session session(std::string("log=error ") + each.options);
    const Heard heard = run_program(path, "r+");
    CHECK_EQ(heard.collective, TR_ERR_SPACE);
    CHECK(mentions(heard.agreed, "portion " + std::to_string(each.portion) + " of"));
    CHECK(same_on_all_ranks(heard.agreed));
  }
  remove_directory(directory);
}

MPI_TEST_MAIN
