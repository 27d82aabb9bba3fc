// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "fault/forecast.hpp"

#include "ground/storage/posix.hpp"

namespace tailrace::fault {

using namespace mpi_test;
using namespace scene;

namespace {

constexpr int compute_ranks = 3;

}  // namespace

const std::string& directory() {
  static const std::string path = fresh_directory("fault");
  return path;
}

void in_sessions(const std::function<void(MPI_Comm, const std::string&)>& body, const std::string& options) {
  for (const int servers : {0, 2}) session(servers, options, body);
}

void session(int servers, const std::string& options,
             const std::function<void(MPI_Comm, const std::string&)>& body) {
  directory();  // here, since all ranks of the world must make it together
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(state().comm, mpi_test::rank() < compute_ranks + servers ? 0 : MPI_UNDEFINED,
                 mpi_test::rank(), &part);
  if (part != MPI_COMM_NULL) {
    MPI_Comm compute = MPI_COMM_NULL;
    const std::string all = "staging=16MiB watchdog=10s servers=" + std::to_string(servers) + " " + options;
    if (!CHECK_EQ(tr_init(part, &compute, all.c_str()), TR_OK)) std::fprintf(stderr, "  %s\n", tr_error());
    if (compute != MPI_COMM_NULL) body(compute, "s" + std::to_string(servers));
    CHECK_EQ(tr_finalize(), TR_OK);
    MPI_Comm_free(&part);
  }
  quiet_barrier();
}

Forecast::Forecast(MPI_Comm compute, const std::string& name, const std::string& format,
                   const std::string& precision)
    : compute_(compute), path_(directory() + "/" + name + (format == "format=raw" ? ".raw" : ".grib2")) {
  const std::string options = "base=2026-03-01T00:00Z " + format;
  defined_ = CHECK_EQ(tr_stream_create(path_.c_str(), options.c_str(), &stream_), TR_OK);
  for (const char* field : {"t", "u"}) {
    auto& array = arrays_[field] = std::make_unique<Array>("block", compute, TR_F64);
    if (format != "format=raw") CHECK_EQ(tr_layout_georeference(array->layout(), grid_keys), TR_OK);
    const std::string levels = "levels=pressure:1000,850,500 " + precision;
    const int code = tr_stream_define(stream_, field, array->layout(), TR_F64, levels.c_str());
    if (code != TR_OK) std::fprintf(stderr, "  %s\n", tr_error());
    defined_ = CHECK_EQ(code, TR_OK) && defined_;
  }
  fill(0);
}

void Forecast::fill(std::int64_t lead) {
  int number = 0;
  for (auto& [name, array] : arrays_) array->fill(number++, lead);
}

void Forecast::put(const std::string& field) {
  const auto found = arrays_.find(field);
  tr_stream_put(stream_, field.c_str(), found == arrays_.end() ? nullptr : found->second->data());
}

void Forecast::good_step(std::int64_t lead) {
  fill(lead);
  tr_stream_begin(stream_, lead);
  put("t");
  put("u");
  end();
}

void Forecast::end() { keep(tr_stream_end(stream_)); }

void Forecast::wait(int event) { keep(tr_stream_wait(stream_, event)); }

void Forecast::close() {
  if (stream_ != nullptr) keep(tr_stream_close(&stream_));
}

void Forecast::keep(int code) {
  if (code == TR_OK) return;
  codes_.push_back(code);
  texts_.emplace_back(tr_error());
}

bool Forecast::agreed() const {
  std::string all;
  for (std::size_t i = 0; i < texts_.size(); ++i) all += std::to_string(codes_[i]) + " " + texts_[i] + "\n";
  return same_text(compute_, all);
}

Result<streams::IndexContents> Forecast::index() const {
  const Result<std::shared_ptr<storage::Target>> target = storage::make_target("posix");
  return streams::load_index(**target, streams::index_path(path_));
}

bool Forecast::is_finished() const {
  const Result<streams::IndexContents> found = index();
  return found.is_ok() && found->closed;
}

std::vector<std::int64_t> Forecast::steps_in_index() const {
  const Result<streams::IndexContents> index = this->index();
  std::vector<std::int64_t> leads;
  if (!index.is_ok()) return leads;
  for (const streams::IndexStep& step : index->steps) leads.push_back(step.lead);
  return leads;
}

bool Forecast::holds_steps(const std::vector<std::int64_t>& leads) const {
  int right = 1;
  if (rank() == 0) {
    std::vector<std::byte> wanted;
    for (const std::int64_t lead : leads) {
      for (int field = 0; field < 2; ++field) {
        for (tr_index level = 0; level < levels; ++level) append_record(field, TR_F64, lead, level, wanted);
      }
    }
    const std::vector<std::byte> got = contents(path_);
    right = got == wanted && steps_in_index() == leads ? 1 : 0;
    if (right == 0) {
      std::fprintf(stderr, "  %s has %zu bytes where %zu are right; its index tells", path_.c_str(),
                   got.size(), wanted.size());
      for (const std::int64_t lead : steps_in_index())
        std::fprintf(stderr, " %lld", static_cast<long long>(lead));
      std::fprintf(stderr, "\n");
    }
  }
  MPI_Bcast(&right, 1, MPI_INT, 0, compute_);
  return right != 0;
}

}  // namespace tailrace::fault
