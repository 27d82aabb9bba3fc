// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A model that computes each value from the one before, so that an inexact restart changes everything that
// comes later. Each step is a quarter of an hour. The model writes each step to a stream of any format (its
// second field, which has no grid, only to raw files, and a field without time to files of formats that take
// it), whose times are leads or with time=model its own, and to the files log.txt and log.bin, which it opens
// in mode LOG_MODE, and writes over state.bin. All ranks write pages.bin, a shared file with safety=journal.
// Rank 0 writes own.log without the library; the checkpoint covers it. It saves every third step. When it is
// told to stop, it saves once more and ends in good order. With RESTART_MODEL_COMMITS=1 it saves no data: it
// has restart files of its own, restart.STEP, and commits. With RESTART_MODEL_SILENT=STEP it computes for ten
// minutes behind this step, and calls nothing meanwhile.
//   restart_model PATTERN OPTIONS CHECKPOINT CHECKPOINT_OPTIONS STEPS PAUSE_MS LOG_MODE
// Rank 0 prints "begun", "none whole", "loaded GENERATION STEP", "committed GENERATION STEP" and "complete"
// or "stopped". Each process makes a file named after its process id in the directory `pids`.
#include <tailrace.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/restart_grid.hpp"

using namespace tailrace::restart_grid;

namespace {

constexpr tr_index points = 333;
constexpr tr_index block = 7;

/// Returns the next value of one element. It is below 2^31, so int64 and float64 hold it exactly.
std::int64_t next(std::int64_t value, std::int64_t element, std::int64_t step) {
  return (value * 1103515 + element * 7919 + step * 104729 + 12345) % 2147483647;
}

struct Model {
  std::int64_t step = 0;
  tr_layout* blocks = nullptr;
  tr_layout* cyclic = nullptr;
  tr_index lower[2] = {}, upper[2] = {};
  std::vector<double> t;  // with halo
  std::vector<std::int64_t> u;
  int ranks = 1;

  explicit Model(MPI_Comm compute) {
    MPI_Comm_size(compute, &ranks);
    must(tr_layout_block(2, shape, halo, &blocks), "layout");
    must(tr_layout_block_cyclic(1, &points, &block, nullptr, &cyclic), "layout");
    must(tr_layout_bounds(blocks, 0, lower, upper), "bounds");
    tr_index count = 0;
    must(tr_layout_count(cyclic, &count), "count");
    t.resize(static_cast<std::size_t>((upper[0] - lower[0] + 2 * halo[0]) * pitch()), -1);
    u.resize(static_cast<std::size_t>(count));
  }
  ~Model() {
    tr_layout_free(&blocks);
    tr_layout_free(&cyclic);
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] tr_index pitch() const { return upper[1] - lower[1] + 2 * halo[1]; }

  void advance() {
    ++step;
    for (tr_index y = lower[0]; y < upper[0]; ++y) {
      for (tr_index x = lower[1]; x < upper[1]; ++x) {
        double& here =
            t[static_cast<std::size_t>((y - lower[0] + halo[0]) * pitch() + x - lower[1] + halo[1])];
        if (step == 1) here = 0;
        here = static_cast<double>(next(static_cast<std::int64_t>(here), y * shape[1] + x, step));
      }
    }
    for (std::size_t i = 0; i < u.size(); ++i) u[i] = next(u[i], point(i), step);
  }
  /// Returns the global index of an element of the cyclic layout that this rank owns.
  [[nodiscard]] tr_index point(std::size_t own) const {
    const auto local = static_cast<tr_index>(own);
    return (local / block * ranks + rank) * block + local % block;
  }
  int transfer(tr_checkpoint* cp, int direction, int* found) {
    const int begun = tr_checkpoint_begin(cp, direction, found);
    if (direction == TR_SAVE || *found != 0) {
      tr_checkpoint_item(cp, "step", &step, TR_I64, nullptr);
      tr_checkpoint_item(cp, "t", t.data(), TR_F64, blocks);
      tr_checkpoint_item(cp, "u", u.data(), TR_I64, cyclic);
    }
    const int ended = tr_checkpoint_end(cp);
    return begun != TR_OK ? begun : ended;
  }
};

/// The restart files that rank 0 writes without the library, and the commits that name them. A run that goes
/// on computes the model's values anew up to the step that its file tells.
class OwnRestart {
 public:
  [[nodiscard]] static bool is_wanted() { return std::getenv("RESTART_MODEL_COMMITS") != nullptr; }

  static int load(Model& model, tr_checkpoint* cp, int* found) {
    std::int64_t step = 0;
    const int loaded = tr_checkpoint_resume(cp, &step, found);
    if (loaded != TR_OK || *found == 0) return loaded;
    FILE* const file = std::fopen(name(step).c_str(), "r");
    char text[32] = {};
    const bool is_read = file != nullptr && std::fgets(text, sizeof text, file) != nullptr;
    if (file != nullptr) std::fclose(file);
    must(is_read && std::strtoll(text, nullptr, 10) == step ? TR_OK : TR_ERR_CORRUPT, "own restart file");
    while (model.step < step) model.advance();
    return TR_OK;
  }
  int save(const Model& model, tr_checkpoint* cp) {
    if (rank == 0) {
      FILE* const file = std::fopen(name(model.step).c_str(), "w");
      const bool is_open = file != nullptr;
      if (is_open) std::fprintf(file, "%lld\n", static_cast<long long>(model.step));
      const bool is_written = is_open && std::fclose(file) == 0;
      if (!is_written) std::perror("restart file");
      must(is_written ? TR_OK : TR_ERR_IO, "own restart file");
    }
    const int committed = tr_checkpoint_commit(cp, model.step, name(model.step).c_str());
    // The commit before is committed by now: no run goes on from the one before that any more.
    if (rank == 0 && before_ > 0) std::remove(name(before_).c_str());
    before_ = last_;
    last_ = model.step;
    return committed;
  }

 private:
  static std::string name(std::int64_t step) { return "restart." + std::to_string(step); }
  std::int64_t last_ = 0, before_ = 0;
};

/// Prints each commit once.
class Commits {
 public:
  void saved(std::int64_t step) { step_ = step; }
  void look(tr_checkpoint* cp) {
    if (step_ == 0 || tr_checkpoint_status(cp) != TR_SAVE_COMMITTED) return;
    if (rank == 0)
      std::printf("committed %lld %lld\n", static_cast<long long>(tr_checkpoint_generation(cp)),
                  static_cast<long long>(step_));
    step_ = 0;
  }

 private:
  std::int64_t step_ = 0;  // step of the save on its way; 0: none
};

/// The files that the program writes with calls of stdio: lines, by calls with and without results, and
/// arrays.
class Logs {
 public:
  Logs(const std::string& mode, bool fresh) {
    // A fresh run must not append to files of a run that was killed before its first save.
    for (const char* name : {"log.txt", "log.bin"}) {
      if (fresh && mode.front() == 'a') tr_remove(name);
    }
    text_ = tr_fopen("log.txt", mode.c_str());
    arrays_ = tr_fopen("log.bin", (mode + "b").c_str());
    state_ = tr_fopen("state.bin", ("w+" + mode.substr(1)).c_str());
    must(text_ != nullptr && arrays_ != nullptr && state_ != nullptr ? TR_OK : TR_ERR_IO, "logs");
  }
  void write(Model& model) {
    tr_fprintf_nr(text_, "step %lld\n", static_cast<long long>(model.step));
    const tr_array parts[] = {{model.t.data(), TR_F64, model.blocks, nullptr, nullptr, nullptr},
                              {model.u.data(), TR_I64, model.cyclic, nullptr, nullptr, nullptr}};
    must(tr_fwrite_arrays(parts, 2, arrays_) == shape[0] * shape[1] + points ? TR_OK : TR_ERR_IO, "arrays");
    must(tr_fputs("array\n", arrays_) >= 0 ? TR_OK : TR_ERR_IO, "bytes between arrays");
    must(tr_fputs("written\n", text_) >= 0 ? TR_OK : TR_ERR_IO, "line");
    write_over(model);
  }
  /// Writes a head, an array, and a line at a changing place: over the old contents, or behind them.
  void write_over(Model& model) {
    const auto step = static_cast<long long>(model.step);
    tr_rewind(state_);
    must(tr_fprintf(state_, "step %06lld\n", step) > 0 ? TR_OK : TR_ERR_IO, "head");
    must(tr_fwrite_array(model.t.data(), TR_F64, model.blocks, state_) == shape[0] * shape[1] ? TR_OK
                                                                                              : TR_ERR_IO,
         "array in place");
    must(tr_fseek(state_, static_cast<long>(2000 + step * 977 % 20000), SEEK_SET), "place of a line");
    must(tr_fprintf(state_, "here was step %lld\n", step) > 0 ? TR_OK : TR_ERR_IO, "line in place");
  }
  void close() {
    const int text = tr_fclose(text_), arrays = tr_fclose(arrays_), state = tr_fclose(state_);
    must(text == 0 && arrays == 0 && state == 0 ? TR_OK : TR_ERR_IO, "close of the logs");
  }

 private:
  tr_file* text_ = nullptr;
  tr_file* arrays_ = nullptr;
  tr_file* state_ = nullptr;
};

/// The shared file with safety=journal. In each step each rank writes bytes at changing places of its own
/// parts of the file. So the file's content follows from the number of steps.
class Pages {
 public:
  explicit Pages(const Model& model) : ranks_(model.ranks) {
    must(tr_shared_open("pages.bin", model.step == 0 ? "w+" : "r+", "safety=journal page=4KiB", &file_),
         "pages");
    for (std::int64_t step = 1; step <= model.step; ++step) {
      for (std::int64_t part = 0; part < parts; ++part)
        image_of(step, part).copy(&at(place(step, part)), length);
      if (cuts(step)) image_.resize(static_cast<std::size_t>(size_at(step)));
    }
    // The load has brought the file to what it held at the save.
    if (model.step > 0) must(holds_image() ? TR_OK : TR_ERR_CORRUPT, "pages at the save");
  }
  void write(std::int64_t step) {
    for (std::int64_t part = rank; part < parts; part += ranks_)
      must(tr_shared_pwrite(file_, image_of(step, part).data(), length, place(step, part)), "part of pages");
    if (cuts(step)) must(tr_shared_resize(file_, size_at(step)), "cut of pages");
    // Also between saves: the file is ahead of the last save then.
    if (step % 2 == 0) flush();
  }
  void flush() { must(tr_shared_flush(file_), "flush of pages"); }
  void close() { must(tr_shared_close(&file_), "close of pages"); }

 private:
  static constexpr std::int64_t parts = 8, room = 1600, length = 90;

  static std::int64_t place(std::int64_t step, std::int64_t part) {
    return part * room + (step * 977 + part * 131) % (room - length);
  }
  static bool cuts(std::int64_t step) { return step % 7 == 0; }
  static std::int64_t size_at(std::int64_t step) { return 9000 + step * 10; }
  static std::string image_of(std::int64_t step, std::int64_t part) {
    std::string text = "step " + std::to_string(step) + " part " + std::to_string(part);
    text.resize(length, static_cast<char>('a' + (step + part) % 26));
    return text;
  }
  char& at(std::int64_t place) {
    if (image_.size() < static_cast<std::size_t>(place + length))
      image_.resize(static_cast<std::size_t>(place + length));
    return image_[static_cast<std::size_t>(place)];
  }
  [[nodiscard]] bool holds_image() {
    std::int64_t size = 0, got = 0;
    must(tr_shared_size(file_, &size), "size of pages");
    std::string there(static_cast<std::size_t>(size), ' ');
    must(tr_shared_pread(file_, there.data(), size, 0, &got), "read of pages");
    // No rank may write before all ranks have read.
    must(tr_shared_sync(file_), "sync of pages");
    return there == image_;
  }

  const int ranks_;
  tr_shared* file_ = nullptr;
  std::string image_;  // of the step that was loaded
};

/// A file that the program writes without the library.
class OwnLog {
 public:
  OwnLog(tr_checkpoint* cp, bool fresh) {
    if (rank == 0) file_ = std::fopen("own.log", fresh ? "w" : "a");
    must(rank != 0 || file_ != nullptr ? TR_OK : TR_ERR_IO, "own log");
    must(tr_checkpoint_covers(cp, "own.log"), "cover");
  }
  ~OwnLog() {
    if (file_ != nullptr) std::fclose(file_);
  }
  OwnLog(const OwnLog&) = delete;
  OwnLog& operator=(const OwnLog&) = delete;
  void write(std::int64_t step) {
    if (file_ == nullptr) return;
    std::fprintf(file_, "the program's own line of step %lld\n", static_cast<long long>(step));
    const bool is_written = std::fflush(file_) == 0;
    if (!is_written) std::perror("own.log");
    must(is_written ? TR_OK : TR_ERR_IO, "own line");
  }

 private:
  FILE* file_ = nullptr;
};

/// Begins a step at a quarter of an hour each, or with time=model at times that no double tells exactly.
int begin(tr_stream* stream, std::int64_t step, const std::string& options) {
  if (options.find("time=model") != std::string::npos)
    return tr_stream_begin_at(stream, static_cast<double>(step) * 0.24 + 0.01);
  const bool in_ms = options.find("lead_unit=ms") != std::string::npos;
  return tr_stream_begin(stream, step * step_seconds * (in_ms ? 1000 : 1));
}

/// Runs the model's steps. Returns true if it came to its last step, false if it was told to stop before.
bool steps(Model& model, tr_stream* stream, bool has_u, Logs& logs, Pages& pages, tr_checkpoint* cp,
           char** arguments) {
  OwnLog own(cp, model.step == 0);
  Commits commits;
  OwnRestart own_restart;
  const char* const silent = std::getenv("RESTART_MODEL_SILENT");
  while (model.step < std::atoll(arguments[5])) {
    model.advance();
    must(begin(stream, model.step, arguments[2]), "begin");
    must(tr_stream_put(stream, "t", model.t.data()), "put t");
    if (has_u) must(tr_stream_put(stream, "u", model.u.data()), "put u");
    must(tr_stream_end(stream), "end");
    logs.write(model);
    pages.write(model.step);
    own.write(model.step);
    commits.look(cp);
    const bool stops = tr_should_stop() != 0;
    if (model.step % 3 == 0 || stops) {
      pages.flush();
      must(OwnRestart::is_wanted() ? own_restart.save(model, cp) : model.transfer(cp, TR_SAVE, nullptr),
           "save");
      commits.saved(model.step);
    }
    if (stops) return model.step == std::atoll(arguments[5]);
    if (silent != nullptr && model.step == std::atoll(silent)) {
      if (rank == 0) std::printf("silent %lld\n", static_cast<long long>(model.step));
      std::this_thread::sleep_for(std::chrono::minutes(10));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(arguments[6])));
    commits.look(cp);
  }
  return true;
}

/// Puts the field without time. It has an odd number of bytes.
void put_mask(const Model& model, tr_stream* stream) {
  std::vector<signed char> mask;
  for (std::size_t i = 0; i < model.u.size(); ++i)
    mask.push_back(static_cast<signed char>(next(0, model.point(i), 1) % 128));
  must(tr_stream_define(stream, "mask", model.cyclic, TR_I8, "time=none"), "define mask");
  must(tr_stream_put(stream, "mask", mask.data()), "put mask");
}

void run(MPI_Comm compute, char** arguments) {
  Model model(compute);
  tr_checkpoint* cp = nullptr;
  must(tr_checkpoint_create(arguments[3], arguments[4], &cp), "checkpoint");
  int found = 0;
  // A run that was killed in its very first save leaves a copy that is not whole, and no other.
  const int loaded =
      OwnRestart::is_wanted() ? OwnRestart::load(model, cp, &found) : model.transfer(cp, TR_LOAD, &found);
  if (loaded == TR_ERR_CORRUPT && rank == 0) std::printf("none whole\n");
  if (loaded != TR_ERR_CORRUPT) must(loaded, "load");
  if (rank == 0)
    std::printf("loaded %lld %lld\n", static_cast<long long>(tr_checkpoint_generation(cp)),
                static_cast<long long>(model.step));
  tr_stream* stream = nullptr;
  const bool has_base = std::string(arguments[2]).find("time=model") == std::string::npos;
  const std::string options = std::string(has_base ? "base=2026-03-01T00:00Z " : "") + arguments[2];
  must(tr_stream_create(arguments[1], options.c_str(), &stream), "stream");
  const bool is_raw = options.find("format=raw") != std::string::npos;
  if (!is_raw) must(tr_layout_georeference(model.blocks, grid_keys), "georeference");
  if (!is_raw && options.find("format=grib2") == std::string::npos) put_mask(model, stream);
  must(tr_stream_define(stream, "t", model.blocks, TR_F64, nullptr), "define t");
  if (is_raw) must(tr_stream_define(stream, "u", model.cyclic, TR_I64, nullptr), "define u");
  Logs logs(arguments[7], model.step == 0);
  Pages pages(model);
  const bool complete = steps(model, stream, is_raw, logs, pages, cp, arguments);
  pages.close();
  logs.close();
  must(tr_stream_close(&stream), "close");
  must(tr_checkpoint_close(&cp), "close of the checkpoint");
  // Before tr_finalize: from there on the library does not handle signals, and one would end the program.
  if (rank == 0) std::printf(complete ? "complete\n" : "stopped\n");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 8) {
    std::fprintf(
        stderr,
        "usage: restart_model PATTERN OPTIONS CHECKPOINT CHECKPOINT_OPTIONS STEPS PAUSE_MS LOG_MODE\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (FILE* const file = std::fopen(("pids/" + std::to_string(::getpid())).c_str(), "w")) std::fclose(file);
  MPI_Comm compute = MPI_COMM_NULL;
  must(tr_init(MPI_COMM_WORLD, &compute, nullptr), "init");
  if (compute != MPI_COMM_NULL) {
    MPI_Comm_rank(compute, &rank);
    if (rank == 0) std::printf("begun\n");
    run(compute, argv);
  } else {
    rank = -1;
  }
  must(tr_finalize(), "finalize");
  MPI_Finalize();
  return 0;
}
