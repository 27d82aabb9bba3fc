// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Streams with interval=: the file has the bytes that a one-rank program writes which accumulates by itself,
// whatever the number of ranks and servers, also if a job ends within an interval and another one goes on
// from its checkpoint. Errors are the same on every rank.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "mpi/scene.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::mpi_test;
using namespace tailrace::scene;

namespace {

constexpr std::int64_t hour = 3600;
constexpr std::int64_t last_hour = 12;  // two intervals of six hours
constexpr std::int64_t saved_at = 8;    // hours, within the second one

struct Field {
  std::string name;
  std::string kind;  // layout and allocation
  int type;
  std::string options;
  std::string operation;
};

struct File {
  std::string name;
  std::vector<Field> fields;
};

std::vector<File> files() {
  const std::string on = "levels=pressure:1000,850,500";
  const std::vector<Field> plain = {{"mean", "halo", TR_F32, on, "mean"},
                                    {"sum", "nproma", TR_F64, on, "accum"},
                                    {"least", "cyclic", TR_F32, on, "minimum"},
                                    {"most", "ikj", TR_I32, on, "maximum"},
                                    {"counted", "indexed", TR_I32, on, "mean"},
                                    {"last", "replicated", TR_F32, on, "instant"},
                                    {"holes", "block", TR_F32, on + " missing=-5000", "mean"}};
  std::vector<File> list = {{"timed.raw", plain}, {"timed.nc", plain}};
#if TAILRACE_HAVE_GRIB
  const std::string packed = on + " accuracy=0.001";
  list.push_back({"timed.grib2",
                  {{"t", "halo", TR_F32, packed, "mean"},
                   {"u", "fastest", TR_F64, packed, "maximum"},
                   {"v", "weighted", TR_F32, packed, "minimum"},
                   {"q", "boxes", TR_F32, packed, "accum"},
                   {"r", "block", TR_F32, packed, "instant"}}});
#endif
  return list;
}

std::string statistic_of(const std::string& operation) {
  if (operation == "instant") return "";
  return " statistic=" + (operation == "mean" ? "average" : operation) + " since=6h";
}

std::string format_options(const File& file) {
  return std::string("base=2026-03-01T00:00Z") +
         (file.name.find(".raw") != std::string::npos ? " format=raw" : "");
}

bool expect(int code) {
  return CHECK_EQ(code == TR_OK ? std::string("no error") : std::string(tr_error()), std::string("no error"));
}

/// Returns the model's value of one element in the step at `at` hours.
double model_value(int field, const Field& of, std::int64_t at, tr_index level, tr_index element) {
  if (of.name == "holes" && (element % 5 == 0 || (element + at) % 3 == 0)) return -5000;
  const double number = value(field, at * hour, level, element);
  if (of.type == TR_I32) return std::trunc(number * 30);
  return of.type == TR_F32 ? static_cast<double>(static_cast<float>(number)) : number;
}

/// Returns the value of an element that a program gets which accumulates the six hours up to `end` by itself.
double result(int field, const Field& of, std::int64_t end, tr_index level, tr_index element) {
  std::optional<double> state;
  int count = 0;
  for (std::int64_t at = end - 5; at <= end; ++at) {
    const double number = model_value(field, of, at, level, element);
    if (of.name == "holes" && number == -5000) continue;
    ++count;
    if (!state || of.operation == "instant")
      state = number;
    else if (of.operation == "minimum")
      state = std::min(*state, number);
    else if (of.operation == "maximum")
      state = std::max(*state, number);
    else
      *state += number;
  }
  if (!state) return -5000;
  if (of.operation == "mean") *state /= count;
  return of.type == TR_I32 ? std::nearbyint(*state) : *state;
}

/// All files of one job.
class Outputs {
 public:
  Outputs(MPI_Comm compute, const std::string& directory, bool accumulates_itself)
      : plain_(accumulates_itself) {
    for (const File& file : files()) {
      Open& open = open_.emplace_back();
      open.file = file;
      expect(tr_stream_create((directory + "/" + file.name).c_str(),
                              (format_options(file) + (plain_ ? "" : " interval=6h")).c_str(), &open.stream));
      for (const Field& field : file.fields) {
        open.arrays.push_back(std::make_unique<Array>(field.kind, compute, field.type));
        Array& array = *open.arrays.back();
        CHECK_EQ(array.error(), std::string());
        if (file.name.find(".raw") == std::string::npos)
          expect(tr_layout_georeference(array.layout(), grid_keys));
        const std::string how = plain_ ? statistic_of(field.operation) : " operation=" + field.operation;
        expect(tr_stream_define(open.stream, field.name.c_str(), array.layout(), field.type,
                                (field.options + how + " " + array.options()).c_str()));
      }
    }
  }
  ~Outputs() {
    for (Open& open : open_) expect(tr_stream_close(&open.stream));
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  void step(std::int64_t at) {
    if (plain_ && (at == 0 || at % 6 != 0)) return;
    for (Open& open : open_) {
      expect(tr_stream_begin(open.stream, at * hour));
      for (std::size_t i = 0; i < open.arrays.size(); ++i) {
        const Field& field = open.file.fields[i];
        const int number = static_cast<int>(i);
        Array& array = *open.arrays[i];
        for (tr_index level = 0; level < levels; ++level) {
          for (tr_index own = 0; own < array.owned(); ++own) {
            const tr_index element = array.element(own);
            const double model = plain_ ? result(number, field, at, level, element)
                                        : model_value(number, field, at, level, element);
            // Array takes millionths for integers, and cuts what is behind the point.
            array.set(own, level, field.type == TR_I32 ? (model + std::copysign(0.5, model)) * 1e-6 : model);
          }
        }
        expect(tr_stream_put(open.stream, field.name.c_str(), array.data()));
      }
      expect(tr_stream_end(open.stream));
    }
  }

 private:
  struct Open {
    File file;
    tr_stream* stream = nullptr;
    std::vector<std::unique_ptr<Array>> arrays;
  };
  const bool plain_;
  std::vector<Open> open_;
};

/// Runs `body` on the first `ranks` ranks of the world, served by `servers` more.
void on_ranks(int ranks, int servers, const std::function<void(MPI_Comm)>& body,
              const std::string& settings = "") {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(state().comm, rank() < ranks + servers ? 0 : MPI_UNDEFINED, rank(), &part);
  if (part != MPI_COMM_NULL) {
    MPI_Comm compute = MPI_COMM_NULL;
    const std::string options = "servers=" + std::to_string(servers) + " staging=8MiB " + settings;
    expect(tr_init(part, &compute, options.c_str()));
    if (compute != MPI_COMM_NULL) body(compute);
    expect(tr_finalize());
    MPI_Comm_free(&part);
  }
  quiet_barrier();
}

const std::string& reference() {
  static const std::string directory = [] {
    std::string made = fresh_directory("reference");
    on_ranks(1, 0, [&](MPI_Comm compute) {
      Outputs outputs(compute, made, true);
      for (std::int64_t at = 0; at <= last_hour; ++at) outputs.step(at);
    });
    return made;
  }();
  return directory;
}

void expect_reference(const std::string& directory, const std::string& where) {
  if (rank() == 0) {
    for (const File& file : files()) {
      const auto expected = contents(reference() + "/" + file.name);
      CHECK(expected.size() > 2000);
      if (!CHECK(contents(directory + "/" + file.name) == expected))
        std::fprintf(stderr, "  %s, %s\n", file.name.c_str(), where.c_str());
    }
  }
  quiet_barrier();
}

MPI_TEST(operations, the_file_is_that_of_a_program_that_accumulates_by_itself_on_any_ranks_and_servers) {
  reference();
  for (const int ranks : {1, 2, 3, 5}) {
    for (const int servers : {0, 1}) {
      const std::string directory = fresh_directory("timed");
      on_ranks(ranks, servers, [&](MPI_Comm compute) {
        Outputs outputs(compute, directory, false);
        for (std::int64_t at = 0; at <= last_hour; ++at) outputs.step(at);
      });
      expect_reference(directory, std::to_string(ranks) + " ranks, " + std::to_string(servers) + " servers");
    }
  }
}

/// Returns the hour behind which the run goes on.
std::int64_t load(tr_checkpoint* cp) {
  std::int64_t at = -1;
  int found = 0;
  expect(tr_checkpoint_begin(cp, TR_LOAD, &found));
  if (found != 0) tr_checkpoint_item(cp, "at", &at, TR_I64, nullptr);
  expect(tr_checkpoint_end(cp));
  return at;
}

void save(tr_checkpoint* cp, std::int64_t at) {
  expect(tr_checkpoint_begin(cp, TR_SAVE, nullptr));
  tr_checkpoint_item(cp, "at", &at, TR_I64, nullptr);
  expect(tr_checkpoint_end(cp));
}

MPI_TEST(operations, a_run_that_goes_on_within_an_interval_leaves_the_same_bytes_on_other_ranks_and_servers) {
  reference();
  struct Shape {
    int ranks, servers;
  };
  for (const auto& [before, after] : std::vector<std::pair<Shape, Shape>>{
           {{3, 1}, {2, 0}}, {{1, 0}, {5, 1}}, {{5, 0}, {3, 2}}, {{2, 1}, {4, 1}}}) {
    const std::string directory = fresh_directory("again");
    const char* const how = before.ranks % 2 == 1 ? "capture=copy_on_write" : "async=off";
    on_ranks(before.ranks, before.servers, [&](MPI_Comm compute) {
      tr_checkpoint* cp = nullptr;
      expect(tr_checkpoint_create((directory + "/cp").c_str(), how, &cp));
      CHECK_EQ(load(cp), -1);
      {
        Outputs outputs(compute, directory, false);
        for (std::int64_t at = 0; at <= saved_at + 2; ++at) {
          outputs.step(at);
          if (at == saved_at) save(cp, at);
        }
      }
      expect(tr_checkpoint_close(&cp));
    });
    on_ranks(after.ranks, after.servers, [&](MPI_Comm compute) {
      tr_checkpoint* cp = nullptr;
      expect(tr_checkpoint_create((directory + "/cp").c_str(), how, &cp));
      CHECK_EQ(load(cp), saved_at);
      {
        Outputs outputs(compute, directory, false);
        // This save is in the same interval again.
        save(cp, saved_at);
        for (std::int64_t at = saved_at + 1; at <= last_hour; ++at) outputs.step(at);
      }
      expect(tr_checkpoint_close(&cp));
    });
    expect_reference(directory,
                     "from " + std::to_string(before.ranks) + " ranks to " + std::to_string(after.ranks));
  }
}

/// The save runs while the next step changes the sums that it copies.
MPI_TEST(operations, a_save_that_copies_on_write_has_the_sums_of_its_moment) {
  const std::string directory = fresh_directory("moment");
  constexpr tr_index rows = 256;
  constexpr tr_index columns = 384;
  constexpr tr_index all = 8 * rows * columns;  // 3 MiB of sums on each rank
  const auto work = [&](const std::function<void(tr_stream*, tr_checkpoint*, std::vector<float>&)>& body) {
    on_ranks(2, 0, [&](MPI_Comm) {
      tr_checkpoint* cp = nullptr;
      tr_stream* stream = nullptr;
      tr_layout* layout = nullptr;
      expect(tr_checkpoint_create((directory + "/cp").c_str(), "capture=copy_on_write", &cp));
      load(cp);
      const tr_index shape[] = {rows, columns};
      expect(tr_layout_block(2, shape, nullptr, &layout));
      expect(tr_stream_create((directory + "/a.raw").c_str(), "base=2026-03-01 format=raw interval=1h",
                              &stream));
      expect(tr_stream_define(stream, "t", layout, TR_F32, "levels=hybrid:1-8 operation=mean"));
      std::vector<float> array(all);
      body(stream, cp, array);
      expect(tr_stream_close(&stream));
      expect(tr_layout_free(&layout));
      expect(tr_checkpoint_close(&cp));
    });
  };
  const auto step = [](tr_stream* stream, std::int64_t lead, std::vector<float>& array, float value) {
    std::ranges::fill(array, value);
    tr_stream_begin(stream, lead);
    tr_stream_put(stream, "t", array.data());
    expect(tr_stream_end(stream));
  };
  work([&](tr_stream* stream, tr_checkpoint* cp, std::vector<float>& array) {
    step(stream, 900, array, 1);
    save(cp, 900);
    step(stream, 1800, array, 100);  // the save does not have it
  });
  work([&](tr_stream* stream, tr_checkpoint*, std::vector<float>& array) { step(stream, hour, array, 5); });
  if (rank() == 0) {
    const auto bytes = contents(directory + "/a.raw");
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    CHECK_EQ(values.size(), static_cast<std::size_t>(all));
    CHECK(std::ranges::all_of(values, [](float value) { return value == 3; }));
  }
  quiet_barrier();
}

/// A stream of one field, whose errors are looked at.
struct Small {
  tr_stream* stream = nullptr;
  std::unique_ptr<Array> array;

  Small(MPI_Comm compute, const std::string& path, const std::string& options) {
    expect(tr_stream_create(path.c_str(), ("base=2026-03-01 format=raw " + options).c_str(), &stream));
    array = std::make_unique<Array>("block", compute, TR_F32);
    array->fill(0, 0);
  }
  int define(const char* options) {
    return tr_stream_define(stream, "t", array->layout(), TR_F32,
                            (std::string("levels=pressure:1000,850,500 ") + options).c_str());
  }
  int step(std::int64_t lead, bool puts = true) {
    tr_stream_begin(stream, lead);
    if (puts) tr_stream_put(stream, "t", array->data());
    return tr_stream_end(stream);
  }
  /// Ends what is left. Returns the first failure that was not told.
  int close() { return tr_stream_close(&stream); }
};

bool tells(const std::string& text) {
  const std::string error = tr_error();
  const bool told = CHECK(error.find(text) != std::string::npos);
  if (!told) std::fprintf(stderr, "  expected \"%s\" in: %s\n", text.c_str(), error.c_str());
  return told;
}

MPI_TEST(operations, definitions_that_contradict_each_other_are_refused) {
  const std::string directory = fresh_directory("errors");
  on_ranks(2, 1, [&](MPI_Comm compute) {
    Small timed(compute, directory + "/a.raw", "interval=1h");
    CHECK_EQ(timed.define("operation=mean statistic=accum"), TR_ERR_SETTINGS);
    tells("statistic= contradicts operation=mean");
    CHECK_EQ(timed.define("operation=mean statistic=average since=start"), TR_ERR_SETTINGS);
    tells("a statistic that the program makes itself");
    CHECK_EQ(timed.define("operation=median"), TR_ERR_SETTINGS);
    expect(timed.define("operation=mean statistic=average"));
    expect(timed.close());
    Small plain(compute, directory + "/b.raw", "");
    CHECK_EQ(plain.define("operation=mean"), TR_ERR_SETTINGS);
    tells("create the stream with interval=");
    expect(plain.close());
    tr_stream* none = nullptr;
    CHECK_EQ(tr_stream_create("c.raw", "base=2026-03-01 format=raw interval=1h same_lead=keep", &none),
             TR_ERR_SETTINGS);
    CHECK_EQ(tr_stream_create("c.raw", "base=2026-03-31 format=raw interval=1mo", &none), TR_ERR_SETTINGS);
  });
}

MPI_TEST(operations, a_step_that_passes_over_the_end_of_an_interval_is_an_error_that_names_both_leads) {
  const std::string directory = fresh_directory("errors");
  for (const int servers : {0, 1}) {
    on_ranks(2, servers, [&](MPI_Comm compute) {
      Small timed(compute, directory + "/a.raw", "interval=1h");
      expect(timed.define("operation=mean"));
      expect(timed.step(1800));
      CHECK_EQ(timed.step(5400), TR_ERR_ORDER);
      tells("lead 5400 s passes over lead 3600 s");
      expect(timed.step(7200));  // the interval of the late step
      expect(tr_stream_wait(timed.stream, TR_DURABLE));
      expect(timed.step(10800));  // the stream goes on
      expect(tr_stream_wait(timed.stream, TR_DURABLE));
      expect(timed.step(12600));
      expect(timed.step(12600));
      const int again = timed.step(14400);
      const int late = tr_stream_wait(timed.stream, TR_DURABLE);
      CHECK_EQ(again != TR_OK ? again : late, TR_ERR_ORDER);
      tells("each step has a lead of its own");
      expect(timed.close());
    });
  }
}

MPI_TEST(operations, ranks_that_put_a_field_in_other_steps_of_an_interval_are_told) {
  const std::string directory = fresh_directory("errors");
  for (const int servers : {0, 1}) {
    on_ranks(3, servers, [&](MPI_Comm compute) {
      Small timed(compute, directory + "/a.raw", "interval=1h");
      expect(timed.define("operation=mean"));
      expect(timed.step(900));
      expect(timed.step(1800, rank_of(compute) != 2));
      const int ended = timed.step(3600);
      const int waited = tr_stream_wait(timed.stream, TR_DURABLE);
      CHECK_EQ(ended != TR_OK ? ended : waited, TR_ERR_ORDER);
      tells("in other steps of the interval");
      CHECK(timed.close() == TR_OK || servers == 0);
    });
  }
}

MPI_TEST(operations, an_error_of_a_put_within_an_interval_is_told_with_the_step_that_completes_it) {
  const std::string directory = fresh_directory("errors");
  for (const int servers : {0, 1}) {
    for (const int victim : {0, 1, 2}) {
      on_ranks(3, servers, [&](MPI_Comm compute) {
        Small timed(compute, directory + "/a.raw", "interval=1h");
        expect(timed.define("operation=mean"));
        tr_stream_begin(timed.stream, 900);
        const bool fails = rank_of(compute) == victim;
        tr_stream_put(timed.stream, "t", fails ? nullptr : timed.array->data());
        expect(tr_stream_end(timed.stream));
        expect(timed.step(1800));
        const int ended = timed.step(3600);
        const int waited = tr_stream_wait(timed.stream, TR_DURABLE);
        CHECK_EQ(ended != TR_OK ? ended : waited, TR_ERR_ARGUMENT);
        tells("tr_stream_put('t') at lead 900 s");
        tells("the array is a null pointer");
        expect(timed.step(7200));
        expect(timed.close());
      });
    }
  }
}

MPI_TEST(operations, a_nan_is_told_as_without_an_interval) {
  const std::string directory = fresh_directory("errors");
#if TAILRACE_HAVE_GRIB
  std::vector<std::string> texts;
  for (const bool timed : {false, true}) {
    on_ranks(2, 0, [&](MPI_Comm compute) {
      tr_stream* stream = nullptr;
      expect(tr_stream_create((directory + "/n.grib2").c_str(),
                              timed ? "base=2026-03-01 interval=1h" : "base=2026-03-01", &stream));
      Array array("block", compute, TR_F32);
      expect(tr_layout_georeference(array.layout(), grid_keys));
      expect(tr_stream_define(stream, "t", array.layout(), TR_F32,
                              timed ? "levels=pressure:1000,850,500 operation=instant"
                                    : "levels=pressure:1000,850,500 accuracy=0.01"));
      array.fill(0, 0);
      if (rank_of(compute) == 1) array.set(3, 1, std::nan(""));
      if (timed) {
        tr_stream_begin(stream, 1800);
        tr_stream_put(stream, "t", array.data());
        expect(tr_stream_end(stream));
      }
      tr_stream_begin(stream, 3600);
      if (!timed) tr_stream_put(stream, "t", array.data());
      CHECK_EQ(tr_stream_end(stream), TR_ERR_DATA);
      texts.emplace_back(tr_error());
      CHECK_EQ(tr_stream_close(&stream), TR_OK);
    });
  }
  if (texts.size() == 2) {
    CHECK(texts[0].find("rank 1") != std::string::npos);
    CHECK_EQ(texts[0], texts[1]);
  }
#endif
}

MPI_TEST(operations, a_save_inside_of_a_step_is_refused_and_what_does_not_fit_is_told_at_the_definition) {
  const std::string directory = fresh_directory("errors");
  on_ranks(2, 1, [&](MPI_Comm compute) {
    Small timed(compute, directory + "/a.raw", "interval=1h");
    expect(timed.define("operation=mean"));
    tr_checkpoint* cp = nullptr;
    expect(tr_checkpoint_create((directory + "/cp").c_str(), "", &cp));
    tr_stream_begin(timed.stream, 900);
    tr_stream_put(timed.stream, "t", timed.array->data());
    std::int64_t at = 900;
    expect(tr_checkpoint_begin(cp, TR_SAVE, nullptr));
    tr_checkpoint_item(cp, "at", &at, TR_I64, nullptr);
    CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_STATE);
    tells("is inside of a step, of which it has accumulated a part");
    expect(tr_stream_end(timed.stream));
    save(cp, 900);
    expect(tr_checkpoint_begin(cp, TR_SAVE, nullptr));
    tr_checkpoint_item(cp, "tailrace:mine", &at, TR_I64, nullptr);
    CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_ARGUMENT);
    expect(tr_checkpoint_close(&cp));
    expect(timed.close());
  });
}

MPI_TEST(operations, what_does_not_fit_the_budget_is_told_at_the_definition) {
  const std::string directory = fresh_directory("errors");
  on_ranks(
      2, 1,
      [&](MPI_Comm) {
        tr_stream* stream = nullptr;
        tr_layout* layout = nullptr;
        const tr_index shape[] = {200, 200};
        expect(tr_layout_block(2, shape, nullptr, &layout));
        expect(tr_stream_create((directory + "/a.raw").c_str(), "base=2026-03-01 format=raw interval=1h",
                                &stream));
        const char* const most = "levels=hybrid:1-100 operation=mean";  // 16 MB on each rank
        CHECK_EQ(tr_stream_define(stream, "t", layout, TR_F32, most), TR_ERR_MEMORY);
        tells("operation=mean takes 16000000 bytes on this rank");
        tells("TAILRACE_MEMORY");
        expect(tr_stream_define(stream, "t", layout, TR_F32, "levels=hybrid:1-4 operation=mean"));
        expect(tr_stream_close(&stream));
        tr_layout_free(&layout);
      },
      "memory=12MiB");
}

MPI_TEST(operations, a_stream_that_is_closed_within_an_interval_warns_and_the_report_has_its_memory) {
  const std::string directory = fresh_directory("errors");
  CapturedStderr captured;
  on_ranks(
      2, 1,
      [&](MPI_Comm compute) {
        Small timed(compute, directory + "/a.raw", "interval=1h");
        expect(timed.define("operation=mean"));
        expect(timed.step(3600));
        expect(timed.step(5400));
        expect(timed.close());
      },
      "report=" + directory + "/report.json");
  const std::string told = captured.text();
  if (rank() == 0) {
    CHECK(told.find("is closed within the interval from lead 3600 s to 7200 s") != std::string::npos);
    CHECK(told.find("up to lead 5400 s is not written") != std::string::npos);
    CHECK_EQ(contents(directory + "/a.raw").size(), static_cast<std::size_t>(levels * ny * nx * 4));
#if TAILRACE_HAVE_JSON
    const auto report = contents(directory + "/report.json");
    const std::string text(reinterpret_cast<const char*>(report.data()), report.size());
    CHECK(text.find("\"bytes_in_intervals\": " + std::to_string(levels * ny * nx * 8)) != std::string::npos);
#endif
  }
  quiet_barrier();
}

}  // namespace

MPI_TEST_MAIN
