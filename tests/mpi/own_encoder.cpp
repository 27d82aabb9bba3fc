// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// own_encoder.c in C++. In the mode `fail` its encoder throws.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <tailrace.hpp>

namespace {

int world_rank = 0;

struct Run {
  std::int32_t count;
  double value;
};

template <typename T>
void append_runs(const T* values, tr::Index count, tr::Encoded& out) {
  Run run{0, 0};
  for (tr::Index i = 0; i < count; ++i) {
    ++run.count;
    run.value = static_cast<double>(values[i]);
    if (i + 1 < count && values[i + 1] == values[i]) continue;
    out.append(&run.count, sizeof run.count);
    out.append(&run.value, sizeof run.value);
    run.count = 0;
  }
}

tr::Encoder encoder(bool fails, bool refuses) {
  tr::Encoder made;
  made.encode = [fails](const tr::Record& record, tr::Encoded& out) {
    if (fails && record.level == 850 && record.lead == 7200) throw std::runtime_error("too hot");
    out.append(record.field);
    out.append(&record.level, sizeof record.level);
    out.append(&record.lead, sizeof record.lead);
    if (const float* narrow = tr::values<float>(record)) append_runs(narrow, record.count, out);
    if (const double* wide = tr::values<double>(record)) append_runs(wide, record.count, out);
  };
  made.bound = [refuses](const tr::Record& field) {
    if (refuses) throw std::runtime_error("no bound for that");
    return 64 + 12 * field.count;
  };
  made.head = [](const std::vector<tr::Record>& fields, tr::Encoded& out) {
    for (const tr::Record& field : fields) out.append(field.field + std::string(" "));
  };
  return made;
}

bool say(const char* call, std::int64_t step, const tr::Status& status) {
  std::printf("rank %d: %s %lld: %d %s\n", world_rank, call, static_cast<long long>(step),
              static_cast<int>(status.code()), status.text().c_str());
  return status.is_ok();
}

void run(const char* pattern, const char* options, std::int64_t first, std::int64_t last) {
  auto grid = tr::Layout::block({6, 8});
  auto out = tr::Stream::create(pattern, options);
  if (!out.is_ok()) return static_cast<void>(say("create", 0, out.status()));
  tr::Status status = out->define<float>("t", *grid, "levels=pressure:1000,850 quality=3");
  if (status.is_ok()) status = out->define<double>("q", *grid, "levels=surface");
  if (!status.is_ok()) say("define", 0, status);
  const tr::Bounds mine = *grid->bounds(false);
  for (std::int64_t step = first; status.is_ok() && step <= last; ++step) {
    std::vector<float> t;
    std::vector<double> q;
    for (int level = 0; level < 2; ++level) {
      for (tr::Index j = mine.lower[0]; j < mine.upper[0]; ++j) {
        for (tr::Index i = mine.lower[1]; i < mine.upper[1]; ++i) {
          t.push_back(static_cast<float>(step + 100 * level + (8 * j + i) / 3) + 0.25F);
          if (level == 0) q.push_back(static_cast<double>(j * step));
        }
      }
    }
    out->begin(3600 * step);
    out->put("t", t.data());
    out->put("q", q.data());
    tr::Status ended = out->end();
    if (ended.is_ok()) ended = out->wait(tr::Event::durable);
    say("step", step, ended);
  }
  say("close", 0, out->close());
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Comm model;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  tr::Status status =
      tr::register_encoder("runs", encoder(std::string(argv[3]) == "fail", std::string(argv[3]) == "bound"));
  if (status.is_ok()) status = tr::init(MPI_COMM_WORLD, model);
  if (!status.is_ok())
    say("init", 0, status);
  else if (model != MPI_COMM_NULL)
    run(argv[1], argv[2], std::atoi(argv[4]), std::atoi(argv[5]));
  const bool finished = tr::finalize().is_ok();
  return MPI_Finalize() || !finished;
}
