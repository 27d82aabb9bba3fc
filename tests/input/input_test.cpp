// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Streams that are read: the ranks get what was put, whatever layouts, allocations, orders of levels, types,
// leads and numbers of ranks, threads and servers there are. Errors are the same on every rank.
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "input/put_files.hpp"
#include "input/ranks.hpp"
#include "mpi/scene.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::mpi_test;
using namespace tailrace::scene;
using namespace tailrace::input_test;

namespace {

/// A stream to read, and how.
struct Reading {
  std::string pattern = "/bd+{lead:03h}.grib2";
  std::string options;
  std::string kind = "block";
  int type = TR_F32;
  std::vector<double> hours = {0, 3, 6, 9, 12};
  bool tells_base = true;
  bool is_here = false;  // the program is in the directory of the files
};

void read_and_check(MPI_Comm compute, const Reading& reading) {
  Array array(reading.kind, compute, reading.type);
  CHECK_EQ(array.error(), std::string());
  expect(tr_layout_georeference(array.layout(), grid_keys));
  tr_stream* in = nullptr;
  const std::string options = (reading.tells_base ? base : "") + reading.options;
  const std::string pattern = reading.is_here ? reading.pattern.substr(1) : input() + reading.pattern;
  if (!expect(tr_stream_open(pattern.c_str(), options.c_str(), &in))) return;
  const std::string order = "levels=pressure:500,1000,850 missing=-5000 ";
  for (const std::string& name : names)
    expect(
        tr_stream_define(in, name.c_str(), array.layout(), reading.type, (order + array.options()).c_str()));
  for (const double at : reading.hours) {
    tr_stream_begin(in, static_cast<std::int64_t>(at * hour));
    for (int field = 2; field >= 0; --field) {
      array.fill(7, 99);
      tr_stream_get(in, names[static_cast<std::size_t>(field)].c_str(), array.data());
      if (field == 0) continue;
      check_values(array, field, at, {2, 0, 1}, reading.kind + " at " + std::to_string(at));
    }
    if (expect(tr_stream_end(in)))
      check_values(array, 0, at, {2, 0, 1}, reading.kind + " at " + std::to_string(at));
  }
  expect(tr_stream_close(&in));
}

MPI_TEST(input, every_layout_and_allocation_gets_what_was_put) {
  input();
  on_ranks(size(), 0, "io_threads=2", [&](MPI_Comm compute) {
    for (const std::string& kind : kinds) read_and_check(compute, {.kind = kind});
    read_and_check(compute, {.options = "prefetch=0", .kind = "halo", .type = TR_F64});
    read_and_check(compute, {.pattern = "/all.raw", .kind = "boxes", .type = TR_F64});
    read_and_check(compute, {.pattern = "/all.nc", .kind = "nproma"});
  });
}

MPI_TEST(input, all_ranks_threads_and_servers_get_the_same) {
  input();
  for (int ranks = 1; ranks <= size(); ++ranks) {
    const std::string threads = ranks % 2 == 0 ? "io_threads=0" : "io_threads=1";
    on_ranks(ranks, ranks < size() && ranks % 3 == 0 ? 1 : 0, threads, [&](MPI_Comm compute) {
      read_and_check(compute, {.pattern = "/all.grib2", .kind = "weighted", .tells_base = false});
      // Leads go back, and over steps of the files.
      read_and_check(compute, {.options = "prefetch=3", .kind = "halo", .hours = {12, 9, 6, 0, 9, 3, 3}});
      read_and_check(compute, {.options = "between=linear prefetch=1",
                               .kind = "cyclic",
                               .type = TR_F64,
                               .hours = {0, 1, 1.5, 3, 5.25, 12, 11, 7}});
    });
  }
}

MPI_TEST(input, a_program_may_go_to_the_directory_of_its_files) {
  const std::filesystem::path files = input();
  on_ranks(2, 1, "", [&](MPI_Comm compute) {
    const std::filesystem::path launch = std::filesystem::current_path();
    std::filesystem::current_path(files);
    read_and_check(compute, {.is_here = true});
    std::filesystem::current_path(launch);
  });
}

MPI_TEST(input, an_array_may_come_with_its_shape_and_strides) {
  input();
  on_ranks(3, 0, "", [&](MPI_Comm compute) {
    Array array("halo", compute, TR_F64);
    tr_stream* in = nullptr;
    expect(tr_stream_open((input() + "/all.grib2").c_str(), base, &in));
    expect(tr_stream_define(in, "u", array.layout(), TR_F64, "levels=pressure:850,1000"));
    tr_index lower[2];
    tr_index upper[2];
    expect(tr_layout_bounds(array.layout(), 0, lower, upper));
    const tr_index extents[] = {2, upper[0] - lower[0], upper[1] - lower[1]};
    // Every other element of each row, and the levels behind one another from the last to the first.
    const tr_index row = 2 * extents[2] * 8;
    const tr_index strides[] = {-row * extents[1], row, 16};
    std::vector<double> memory(static_cast<std::size_t>(4 * extents[1] * extents[2]), -1);
    double* const at = memory.data() + 2 * extents[1] * extents[2];
    tr_stream_begin(in, 6 * hour);
    tr_stream_get_array(in, "u", at, TR_F64, 3, extents, strides);
    expect(tr_stream_end(in));
    for (tr_index level = 0; level < 2; ++level)
      for (tr_index y = 0; y < extents[1]; ++y)
        for (tr_index x = 0; x < extents[2]; ++x) {
          const double* const got = at + (level * strides[0] + y * strides[1] + x * strides[2]) / 8;
          const double wanted = value(1, 6 * hour, 1 - level, (lower[0] + y) * nx + lower[1] + x);
          CHECK(std::fabs(got[0] - wanted) <= accuracy && got[1] == -1);
        }
    tr_stream_begin(in, 6 * hour);
    tr_stream_get_array(in, "u", at, TR_F32, 3, extents, nullptr);
    CHECK_EQ(tr_stream_end(in), TR_ERR_ARGUMENT);
    expect(tr_stream_close(&in));
  });
}

/// A stream of one field, whose errors are looked at.
class Small {
 public:
  Small(MPI_Comm compute, const std::string& pattern, const std::string& options,
        const std::string& kind = "block")
      : compute_(compute), array_(kind, compute, TR_F32) {
    expect(tr_layout_georeference(array_.layout(), grid_keys));
    expect(tr_stream_open(pattern.c_str(), (base + options).c_str(), &stream_));
  }
  ~Small() {
    if (stream_ != nullptr) expect(tr_stream_close(&stream_));
  }
  Small(const Small&) = delete;
  Small& operator=(const Small&) = delete;

  [[nodiscard]] tr_stream* stream() { return stream_; }
  [[nodiscard]] Array& array() { return array_; }
  int define(const std::string& options, const char* name = "t") {
    return tr_stream_define(stream_, name, array_.layout(), TR_F32,
                            (options + " " + array_.options()).c_str());
  }
  int step(std::int64_t lead, const char* name = "t") {
    tr_stream_begin(stream_, lead);
    tr_stream_get(stream_, name, array_.data());
    return tr_stream_end(stream_);
  }
  /// The call has failed with this code on every rank, and its text names all of `parts`.
  void fails(int code, int wanted, const std::vector<std::string>& parts) {
    const std::string text = tr_error();
    CHECK_EQ(code, wanted);
    CHECK(same_text(compute_, text));
    for (const std::string& part : parts)
      if (!CHECK(text.find(part) != std::string::npos))
        std::fprintf(stderr, "  \"%s\" is not in: %s\n", part.c_str(), text.c_str());
  }
  void works(std::int64_t lead) {
    if (expect(step(lead)))
      check_values(array_, 0, static_cast<double>(lead) / hour, {0, 1, 2}, "after an error");
  }

 private:
  MPI_Comm compute_;
  Array array_;
  tr_stream* stream_ = nullptr;
};

MPI_TEST(input, opening_and_defining_fail_on_every_rank_alike) {
  const std::string here = input() + "/bd+{lead:03h}.grib2";
  on_ranks(3, 0, "memory=64MiB", [&](MPI_Comm compute) {
    const int me = rank_of(compute);
    tr_stream* in = nullptr;
    Small small(compute, here, "");
    const auto open = [&](const std::string& pattern, const std::string& options) {
      return tr_stream_open(pattern.c_str(), options.c_str(), &in);
    };
    small.fails(open(input() + "/none+{lead:03h}.grib2", base), TR_ERR_IO,
                {"none+{lead:03h}.grib2", "no file"});
    small.fails(open(here, "prefech=3"), TR_ERR_SETTINGS, {"prefech", "prefetch"});
    small.fails(open(here, "timeout=3s"), TR_ERR_SETTINGS, {"follow=on"});
    small.fails(open(here, me == 1 ? "prefetch=3" : "prefetch=4"), TR_ERR_ORDER,
                {"prefetch=3", "prefetch=4"});
    CHECK(in == nullptr);
    small.fails(small.define("levels=hybrid"), TR_ERR_SETTINGS, {"hybrid"});
    small.fails(small.define("levls=surface"), TR_ERR_SETTINGS, {"levls", "levels"});
    small.fails(small.define(me == 1 ? own_levels : "levels=pressure:1000"), TR_ERR_ORDER,
                {"pressure:1000,850"});
    small.fails(tr_stream_define(small.stream(), "t", small.array().layout(), TR_C64, own_levels),
                TR_ERR_ARGUMENT, {"TR_F32"});
    small.fails(small.define("levels=pressure:1-50000"), TR_ERR_MEMORY, {"prefetch=", "TAILRACE_MEMORY"});
    // Keys that only output has are accepted.
    expect(small.define(std::string(own_levels) +
                        " accuracy=0.01 vertical=none.txt statistic=instant at_zero=omit compress=zstd"));
    small.fails(small.define(own_levels), TR_ERR_STATE, {"defined already"});
    small.works(0);
    small.fails(small.define(own_levels, "u"), TR_ERR_STATE, {"before the first step"});
  });
}

MPI_TEST(input, a_step_fails_on_every_rank_alike_and_the_next_one_works) {
  const std::string here = input() + "/bd+{lead:03h}.grib2";
  for (const std::string threads : {"io_threads=0", "io_threads=1"}) {
    on_ranks(3, 0, threads, [&](MPI_Comm compute) {
      const int me = rank_of(compute);
      Small small(compute, here, "");
      expect(small.define(own_levels));
      expect(small.define(std::string(own_levels) + " name=tt", "missing_field"));
      expect(small.define("levels=pressure:1000,700,500", "u"));
      expect(small.define(own_levels, "r"));
      expect(small.define(std::string(own_levels) + " name=t statistic=accum interval=6h", "rain"));
      small.fails(small.step(0, "rain"), TR_ERR_ARGUMENT,
                  {"but not with statistic=accum interval=6h", "statistic=instant"});
      small.fails(small.step(0, "missing_field"), TR_ERR_ARGUMENT,
                  {"no field 'tt'", "nearest is 't'", "name="});
      small.works(0);
      small.fails(small.step(0, "u"), TR_ERR_ARGUMENT, {"level 700", "1000", "850"});
      small.fails(small.step(3 * hour, "r"), TR_ERR_DATA, {"missing=VALUE", "bd+003"});
      small.fails(small.step(hour), TR_ERR_ARGUMENT, {"5 steps", "10800", "between=linear"});
      small.fails(small.step(99 * hour), TR_ERR_ARGUMENT, {"5 steps", "43200"});
      small.fails(small.step(3 * hour, "tt"), TR_ERR_ARGUMENT, {"nearest is 't'"});
      small.fails(small.step(me == 1 ? 3 * hour : 6 * hour), TR_ERR_ORDER, {});
      small.fails(tr_stream_end(small.stream()), TR_ERR_STATE, {"without tr_stream_begin"});
      tr_stream_get(small.stream(), "t", small.array().data());
      small.fails(small.step(0), TR_ERR_STATE, {"outside of a step"});
      CHECK_EQ(tr_stream_put(small.stream(), "t", small.array().data()), TR_ERR_STATE);
      small.fails(small.step(0), TR_ERR_STATE, {"tr_stream_get"});
      CHECK_EQ(tr_stream_wait(small.stream(), TR_DURABLE), TR_ERR_STATE);
      small.fails(small.step(0), TR_ERR_STATE, {"tr_stream_wait"});
      small.fails(tr_stream_seek(small.stream(), hour), TR_ERR_ARGUMENT, {"no step"});
      expect(tr_stream_seek(small.stream(), 12 * hour));
      small.works(12 * hour);
      // Twice is fine, and so is not at all.
      tr_stream_begin(small.stream(), 9 * hour);
      tr_stream_get(small.stream(), "t", small.array().data());
      tr_stream_get(small.stream(), "t", small.array().data());
      expect(tr_stream_end(small.stream()));
      tr_stream_begin(small.stream(), 0);
      expect(tr_stream_end(small.stream()));
      small.works(6 * hour);
    });
  }
}

MPI_TEST(input, a_stream_that_is_written_refuses_to_be_read) {
  const std::string directory = fresh_directory("written");
  on_ranks(2, 0, "", [&](MPI_Comm compute) {
    Array array("block", compute, TR_F32);
    tr_stream* out = nullptr;
    expect(tr_stream_create((directory + "/a.raw").c_str(), "base=2026-03-01 format=raw", &out));
    expect(tr_stream_define(out, "t", array.layout(), TR_F32, own_levels));
    array.fill(0, 0);
    tr_stream_begin(out, 0);
    tr_stream_put(out, "t", array.data());
    CHECK_EQ(tr_stream_get(out, "t", array.data()), TR_ERR_STATE);
    CHECK_EQ(tr_stream_end(out), TR_ERR_STATE);
    CHECK(std::string(tr_error()).find("is written") != std::string::npos);
    expect(tr_stream_close(&out));
  });
}

/// On rank 0 of the world: copies the file of a step, the first `bytes` of it alone.
void copy_part(const std::string& from, const std::string& to, std::size_t bytes) {
  const auto all = contents(from);
  std::ofstream file(to, std::ios::binary);
  file.write(reinterpret_cast<const char*>(all.data()),
             static_cast<std::streamsize>(std::min(bytes, all.size())));
}

/// On rank 0 of the world: writes all messages of a file, and then all once more, with other values and as a
/// process of another type has made them.
void write_twice(const std::string& from, const std::string& to) {
  constexpr std::size_t first = 16, type_of_process = 11, reference = 11;
  const auto number = [](const auto& bytes, std::size_t at) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::size_t>(bytes[at + i]);
    return value;
  };
  const auto all = contents(from);
  auto other = all;
  for (std::size_t begin = 0; begin < all.size(); begin += number(all, begin + 12)) {
    for (std::size_t at = begin + first; at < begin + number(all, begin + 12) - 4; at += number(all, at)) {
      if (all[at + 4] == std::byte{4}) other[at + type_of_process] = std::byte{9};
      if (all[at + 4] == std::byte{5}) std::fill_n(&other[at + reference], 4, std::byte{0});
    }
  }
  std::ofstream file(to, std::ios::binary);
  for (const auto& each : {all, other})
    file.write(reinterpret_cast<const char*>(each.data()), static_cast<std::streamsize>(each.size()));
}

MPI_TEST(input, several_records_are_the_same_error_on_every_rank_until_one_is_chosen) {
  const std::string directory = fresh_directory("several");
  if (rank() == 0) write_twice(input() + "/bd+000.grib2", directory + "/a+000.grib2");
  input();
  quiet_barrier();
  for (const std::string threads : {"io_threads=0", "io_threads=1"}) {
    on_ranks(3, 0, threads, [&](MPI_Comm compute) {
      Small small(compute, directory + "/a+{lead:03h}.grib2", "");
      const std::string levels = own_levels;
      expect(small.define(levels + " name=t", "any"));
      expect(small.define(levels + " statistic=instant keys=\"typeOfGeneratingProcess=2\""));
      expect(small.define(levels + " name=t keys=\"typeOfGeneratingProcess=7\"", "none"));
      small.fails(small.step(0, "any"), TR_ERR_ARGUMENT,
                  {"'t' at lead 0 s 2 times", "keys=\"typeOfGeneratingProcess=2\"", "Process=9"});
      small.fails(small.step(0, "none"), TR_ERR_ARGUMENT, {"Process=7", "Process=2", "Process=9"});
      small.works(0);
    });
  }
}

MPI_TEST(input, other_grids_and_damaged_files_are_found) {
  const std::string directory = fresh_directory("damaged");
  if (rank() == 0) {
    copy_part(input() + "/bd+000.grib2", directory + "/a+000.grib2", 100'000);
    copy_part(input() + "/bd+003.grib2", directory + "/a+003.grib2", 300);
    copy_part(input() + "/bd+006.grib2", directory + "/a+006.grib2", 0);
    copy_part(input() + "/bd+009.grib2", directory + "/a+009.grib2", 100'000);
    std::fstream file(directory + "/a+009.grib2", std::ios::in | std::ios::out | std::ios::binary);
    for (int i = 0; i < 9; ++i) file.seekp(20 + i), file.put('\x7f');
  }
  input();
  quiet_barrier();
  on_ranks(3, 0, "io_threads=1", [&](MPI_Comm compute) {
    Small small(compute, directory + "/a+{lead:03h}.grib2", "");
    expect(small.define(own_levels));
    tr_layout* other = nullptr;
    const tr_index shape[] = {nx, ny};
    expect(tr_layout_block(2, shape, nullptr, &other));
    expect(tr_stream_define(small.stream(), "u", other, TR_F32, own_levels));
    std::vector<float> array(3 * ny * nx);
    small.works(0);
    tr_stream_begin(small.stream(), 0);
    tr_stream_get(small.stream(), "u", array.data());
    small.fails(tr_stream_end(small.stream()), TR_ERR_LAYOUT, {"13 x 11", "11 x 13"});
    for (const std::int64_t at : {3, 6, 9}) {
      const int code = small.step(at * hour);
      CHECK(code == TR_ERR_CORRUPT || code == TR_ERR_FORMAT);
      small.fails(code, code, {"a+00" + std::to_string(at)});
    }
    expect(tr_layout_free(&other));
    small.works(0);
  });
}

/// On rank 0 of the world: writes a classic NetCDF file of one field, lsm, that has neither time nor level.
void write_mask(const std::string& path) {
  std::vector<unsigned char> bytes = {'C', 'D', 'F', 1};
  const auto put = [&](std::uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<unsigned char>(number >> shift));
  };
  const auto put_name = [&](const std::string& name) {
    put(static_cast<std::uint32_t>(name.size()));
    for (std::size_t i = 0; i < 4; ++i)
      bytes.push_back(i < name.size() ? static_cast<unsigned char>(name[i]) : 0);
  };
  for (const std::uint32_t number : {0, 10, 2}) put(number);  // no records; a list of two dimensions
  put_name("y"), put(ny);
  put_name("x"), put(nx);
  for (const std::uint32_t number : {0, 0, 11, 1}) put(number);  // no attributes; a list of one variable
  put_name("lsm");
  for (const std::uint32_t number : {2, 0, 1, 0, 0, 5}) put(number);  // its dimensions, no attributes, float
  put(4 * ny * nx);
  put(static_cast<std::uint32_t>(bytes.size() + 4));
  for (tr_index element = 0; element < ny * nx; ++element) {
    const auto number = static_cast<float>(value(0, 0, 0, element));
    std::uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    put(bits);
  }
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

MPI_TEST(input, a_missing_file_is_the_same_error_on_every_rank_unless_it_may_be_bridged) {
  const std::string directory = fresh_directory("missing");
  input();
  if (rank() == 0)
    for (const std::string at : {"000", "003", "009", "012"})
      copy_part(input() + "/bd+" + at + ".grib2", directory + "/m+" + at + ".grib2", 100'000);
  quiet_barrier();
  on_ranks(3, 0, "io_threads=1", [&](MPI_Comm compute) {
    Small small(compute, directory + "/m+{lead:03h}.grib2", "between=linear");
    expect(small.define(own_levels));
    small.works(hour);
    small.fails(small.step(6 * hour), TR_ERR_ARGUMENT, {"m+006.grib2", "between=bridge"});
    small.works(10 * hour);
    Small bridged(compute, directory + "/m+{lead:03h}.grib2", "between=bridge");
    expect(bridged.define(own_levels));
    expect(bridged.step(6 * hour));
    bridged.works(9 * hour);
  });
}

MPI_TEST(input, a_field_without_a_time_fits_each_step) {
  const std::string directory = fresh_directory("mask");
  if (rank() == 0)
    for (const char* const name : {"/mask.nc", "/m+000.nc", "/m+006.nc"}) write_mask(directory + name);
  quiet_barrier();
  on_ranks(3, 0, "", [&](MPI_Comm compute) {
    const auto check = [&](const std::string& name, std::int64_t lead) {
      Small small(compute, directory + name, "");
      expect(small.define("", "lsm"));
      if (!expect(small.step(lead, "lsm"))) return;
      for (tr_index own = 0; own < small.array().owned(); ++own)
        CHECK_EQ(small.array().get(own, 0),
                 static_cast<double>(static_cast<float>(value(0, 0, 0, small.array().element(own)))));
    };
    check("/mask.nc", 0);
    check("/m+{lead:03h}.nc", 6 * hour);
    tr_stream* open = nullptr;
    expect(tr_stream_open((directory + "/mask.nc").c_str(), "", &open));
    expect(tr_stream_close(&open));
  });
}

MPI_TEST(input, steps_that_come_later_are_waited_for_if_the_stream_follows) {
  const std::string directory = fresh_directory("follow");
  input();
  if (rank() == 0) copy_part(input() + "/bd+000.grib2", directory + "/f+000.grib2", 100'000);
  quiet_barrier();
  const std::string pattern = directory + "/f+{lead:03h}.grib2";
  for (const std::string threads : {"io_threads=0", "io_threads=1"}) {
    on_ranks(3, 0, threads, [&](MPI_Comm compute) {
      Small small(compute, pattern, "follow=on timeout=20s between=linear");
      Small impatient(compute, pattern, "follow=on timeout=0s");
      expect(small.define(own_levels));
      expect(impatient.define(own_levels));
      impatient.fails(impatient.step(99 * hour), TR_ERR_TIMEOUT, {"timeout="});
      // Another thread of the first rank is the program that writes.
      std::thread writer;
      if (rank_of(compute) == 0 && threads == "io_threads=0") {
        writer = std::thread([&] {
          for (const char* const lead : {"003", "006"}) {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            copy_part(input() + "/bd+" + lead + ".grib2", directory + "/f+" + lead + ".grib2", 100'000);
            std::ofstream(directory + "/f+" + lead + ".grib2.ready").flush();
          }
        });
      }
      small.works(0);
      small.works(3 * hour);
      small.works(3 * hour);
      expect(small.step(5 * hour));
      check_values(small.array(), 0, 5, {0, 1, 2}, "between a step and a later one");
      if (writer.joinable()) writer.join();
    });
    if (rank() == 0) std::ofstream(directory + "/f+000.grib2.ready").flush();
    quiet_barrier();
  }
}

MPI_TEST(input, all_fields_of_a_stream_that_follows_have_the_steps_that_came_before_their_definition) {
  const std::string directory = fresh_directory("fields");
  input();
  if (rank() == 0) copy_part(input() + "/bd+000.grib2", directory + "/f+000.grib2", 100'000);
  if (rank() == 0) std::ofstream(directory + "/f+000.grib2.ready").flush();
  quiet_barrier();
  on_ranks(3, 0, "io_threads=1", [&](MPI_Comm compute) {
    Small small(compute, directory + "/f+{lead:03h}.grib2", "follow=on timeout=20s prefetch=1");
    expect(small.define(own_levels));
    // A thread sees these steps at once while the stream has one field, and then none is missing.
    if (rank_of(compute) == 0) {
      copy_part(input() + "/bd+003.grib2", directory + "/f+003.grib2", 100'000);
      copy_part(input() + "/bd+006.grib2", directory + "/f+006.grib2", 100'000);
      std::ofstream(directory + "/f+006.grib2.ready").flush();
      std::ofstream(directory + "/f+003.grib2.ready").flush();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    MPI_Barrier(compute);
    expect(small.define(own_levels, "u"));
    for (const std::int64_t at : {0, 3}) {
      small.works(at * hour);
      if (expect(small.step(at * hour, "u")))
        check_values(small.array(), 1, static_cast<double>(at), {0, 1, 2}, "the second field");
    }
  });
}

MPI_TEST(input, a_stream_that_follows_sees_each_step_that_another_one_has_committed) {
  const std::string directory = fresh_directory("live");
  for (const std::string pattern : {"/live+{lead:03h}.grib2", "/live.grib2", "/live.raw"}) {
    on_ranks(2, 0, "io_threads=1", [&](MPI_Comm compute) {
      const std::string format = pattern == "/live.raw" ? "format=raw" : "";
      Array put("block", compute, TR_F32);
      expect(tr_layout_georeference(put.layout(), grid_keys));
      tr_stream* out = nullptr;
      expect(tr_stream_create((directory + pattern).c_str(), (base + format).c_str(), &out));
      expect(tr_stream_define(out, "t", put.layout(), TR_F32, format.empty() ? put_levels : own_levels));
      Small in(compute, directory + pattern, "follow=on timeout=20s");
      expect(in.define(own_levels));
      for (std::int64_t at = 0; at <= 9; at += 3) {
        put.fill(0, at * hour);
        tr_stream_begin(out, at * hour);
        tr_stream_put(out, "t", put.data());
        expect(tr_stream_end(out));
        expect(tr_stream_wait(out, TR_DURABLE));
        in.works(at * hour);
      }
      expect(tr_stream_close(&out));
    });
  }
}

MPI_TEST(input, a_step_that_is_waited_for_is_no_hang) {
  const std::string directory = fresh_directory("patient");
  input();
  quiet_barrier();
  on_ranks(3, 0, "io_threads=1 timeout=1s", [&](MPI_Comm compute) {
    Small small(compute, directory + "/f+{lead:03h}.grib2", "follow=on timeout=20s");
    expect(small.define(own_levels));
    std::thread writer;
    if (rank_of(compute) == 0) {
      writer = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        copy_part(input() + "/bd+000.grib2", directory + "/f+000.grib2", 100'000);
        std::ofstream(directory + "/f+000.grib2.ready").flush();
      });
    }
    tr_stream_begin(small.stream(), 0);
    // A rank that gets nothing waits in the call that ends the step.
    if (rank_of(compute) != 1) tr_stream_get(small.stream(), "t", small.array().data());
    expect(tr_stream_end(small.stream()));
    if (writer.joinable()) writer.join();
    small.works(0);
  });
}

/// On rank 0: cuts a file back to the steps behind which its index and data had so many bytes. The index is
/// cut first, as a writer does that goes on from a checkpoint.
void cut_back(const std::string& path, std::uintmax_t index_bytes, std::uintmax_t data_bytes) {
  std::filesystem::resize_file(path + ".trx", index_bytes);
  std::filesystem::resize_file(path, data_bytes);
}

/// On rank 0: writes `bytes` behind the end of a file that has the first of them.
void write_on(const std::string& path, const std::vector<std::byte>& bytes) {
  const std::uintmax_t there = std::filesystem::file_size(path);
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(bytes.data()) + there,
             static_cast<std::streamsize>(bytes.size() - there));
}

/// The writer of a file of several steps, which is killed and goes on from an earlier step.
struct Restarted {
  std::string path;
  std::string options;
  std::uintmax_t index_bytes = 0, data_bytes = 0;  // behind the steps that stay
  std::vector<std::byte> index[2], data[2];        // before the restart and behind it

  /// Collective. Puts field number `field` as t at all steps from `from` on.
  void write(MPI_Comm compute, int field, std::int64_t from, const std::string& more) {
    Array put("block", compute, TR_F32);
    expect(tr_layout_georeference(put.layout(), grid_keys));
    tr_stream* out = nullptr;
    expect(tr_stream_create(path.c_str(), (base + options + more).c_str(), &out));
    expect(tr_stream_define(out, "t", put.layout(), TR_F32, options.empty() ? put_levels : own_levels));
    for (std::int64_t at = from; at <= 9; at += 3) {
      put.fill(field, at * hour);
      tr_stream_begin(out, at * hour);
      tr_stream_put(out, "t", put.data());
      expect(tr_stream_end(out));
      expect(tr_stream_wait(out, TR_DURABLE));
      if (from == 0 && at == 3) {
        index_bytes = contents(path + ".trx").size();
        data_bytes = contents(path).size();
      }
    }
    expect(tr_stream_close(&out));
    index[field] = contents(path + ".trx");
    data[field] = contents(path);
    MPI_Barrier(compute);
  }
};

MPI_TEST(input, a_step_that_its_writer_takes_back_is_waited_for_and_comes_with_its_new_values) {
  const std::string directory = fresh_directory("taken_back");
  for (const std::string way : {"io_threads=0", "io_threads=1", "servers"}) {
    const std::string name = way == "io_threads=1" ? "/live.raw" : "/live.grib2";
    const std::string own = "/" + way + name.substr(1);
    on_ranks(3, way == "servers" ? 1 : 0, way == "servers" ? "" : way, [&](MPI_Comm compute) {
      const bool is_first = rank_of(compute) == 0;
      Restarted writer{directory + own, name == "/live.raw" ? "format=raw " : ""};
      writer.write(compute, 0, 0, "");
      if (is_first) cut_back(writer.path, writer.index_bytes, writer.data_bytes);
      MPI_Barrier(compute);
      writer.write(compute, 1, 6, "existing=continue");
      const auto restore = [&](int when) {
        if (is_first) cut_back(writer.path, writer.index_bytes, writer.data_bytes);
        if (is_first) write_on(writer.path, writer.data[when]);
        if (is_first) write_on(writer.path + ".trx", writer.index[when]);
      };
      restore(0);
      MPI_Barrier(compute);
      Small small(compute, writer.path, "follow=on timeout=20s prefetch=3");
      Small impatient(compute, writer.path, "follow=on timeout=0s prefetch=3");
      expect(small.define(own_levels));
      expect(impatient.define(own_levels));
      small.works(3 * hour);
      impatient.works(3 * hour);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // steps 6 and 9 are read ahead
      MPI_Barrier(compute);
      if (is_first) cut_back(writer.path, writer.index_bytes, writer.data_bytes);
      MPI_Barrier(compute);
      impatient.fails(impatient.step(6 * hour), TR_ERR_TIMEOUT, {"timeout="});
      impatient.works(0);
      std::thread restarted;
      if (is_first) {
        restarted = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          write_on(writer.path, writer.data[1]);
          write_on(writer.path + ".trx", writer.index[1]);
        });
      }
      for (const std::int64_t at : {6, 9})
        if (expect(small.step(at * hour)))
          check_values(small.array(), 1, static_cast<double>(at), {0, 1, 2}, "the step's second try");
      if (restarted.joinable()) restarted.join();
    });
  }
}

/// Returns the number behind a key of the report.
std::int64_t reported(const std::string& path, const std::string& key) {
  const auto bytes = contents(path);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = text.find("\"" + key + "\":");
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + key.size() + 3));
}

MPI_TEST(input, a_node_reads_each_record_once_and_the_report_tells) {
  const std::string directory = fresh_directory("report");
  input();
  for (const std::string way : {"io_threads=0", "io_threads=1", "servers"}) {
    const int ranks = size() - 1;
    const std::string report = directory + "/" + way + ".json";
    int nodes = 0;
    on_ranks(ranks, way == "servers" ? 1 : 0, (way == "servers" ? "" : way) + " report=" + report,
             [&](MPI_Comm compute) {
               MPI_Comm node = MPI_COMM_NULL;
               MPI_Comm_split_type(compute, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
               const int first = rank_of(node) == 0 ? 1 : 0;
               MPI_Allreduce(&first, &nodes, 1, MPI_INT, MPI_SUM, compute);
               MPI_Comm_free(&node);
               for (int stream = 0; stream < 2; ++stream) read_and_check(compute, {.kind = "replicated"});
             });
    if (rank() != 0 || !std::filesystem::exists(report)) continue;  // a build without JSON has no report
    CHECK_EQ(reported(report, "records_read"), 2 * 45 * nodes);
    CHECK_EQ(reported(report, "gets_in_memory") + reported(report, "gets_late"), 2 * 15 * ranks);
  }
}

std::set<std::string> threads_of_process() {
  std::set<std::string> threads;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    threads.insert(thread.path().filename());
  return threads;
}

/// Returns how often the threads that are not among `others` have gone to sleep so far.
long sleeps_of_threads_beside(const std::set<std::string>& others) {
  long sleeps = 0;
  for (const std::string& thread : threads_of_process()) {
    if (others.contains(thread)) continue;
    std::ifstream status("/proc/self/task/" + thread + "/status");
    for (std::string word; status >> word;)
      if (long count = 0; word == "voluntary_ctxt_switches:" && status >> count) sleeps += count;
  }
  return sleeps;
}

MPI_TEST(input, a_step_that_leaves_nothing_to_read_wakes_no_thread) {
  constexpr int steps = 100;
  input();
  const std::set<std::string> others = threads_of_process();
  on_ranks(1, 0, "io_threads=1", [&](MPI_Comm compute) {
    Array array("block", compute, TR_F32);
    tr_stream* in = nullptr;
    expect(tr_stream_open((input() + "/bd+{lead:03h}.grib2").c_str(),
                          (base + std::string("prefetch=2 between=linear")).c_str(), &in));
    expect(tr_stream_define(in, "t", array.layout(), TR_F32, own_levels));
    const auto step = [&](std::int64_t lead) {
      tr_stream_begin(in, lead);
      tr_stream_get(in, "t", array.data());
      expect(tr_stream_end(in));
    };
    step(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the next steps are read
    const long before = sleeps_of_threads_beside(others);
    for (std::int64_t lead = 2; lead < 2 + steps; ++lead) {
      step(lead);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a thread that was woken sleeps again
    }
    CHECK(sleeps_of_threads_beside(others) - before < steps / 4);
    expect(tr_stream_close(&in));
  });
}

MPI_TEST(input, tr_finalize_closes_what_is_open) {
  input();
  for (const int servers : {0, 1}) {
    on_ranks(2, servers, "io_threads=1", [&](MPI_Comm compute) {
      Array array("block", compute, TR_F32);
      tr_stream* in = nullptr;
      expect(tr_stream_open((input() + "/all.grib2").c_str(), "prefetch=3", &in));
      expect(tr_stream_define(in, "t", array.layout(), TR_F32, own_levels));
    });
  }
}

}  // namespace

MPI_TEST_MAIN
