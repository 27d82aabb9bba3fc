// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Promise 1: a file has the bytes that a one-rank run writes, whatever the number of ranks and servers, the
// layout, and the way in which the caller's array is allocated. Raw bytes are known beforehand. Other formats
// are compared with a one-rank run in which every field has the plain block layout, and the decoded values of
// that run with the model's (NetCDF: netcdf_test.py, Zarr: zarr_test.py).
#include "mpi/scene.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#if TAILRACE_HAVE_GRIB
#include <eccodes.h>
#endif

using namespace tailrace::mpi_test;
using namespace tailrace::scene;

namespace {

const std::vector<std::int64_t> leads = {0, 5400};
const std::vector<std::string> names = {"t", "u", "v", "q", "r", "w", "z", "gh", "d", "clwc", "pv", "cc"};
const std::vector<int> types = {TR_I8,  TR_I16,  TR_I32,  TR_I64, TR_F32, TR_F64,
                                TR_C64, TR_C128, TR_BYTE, TR_U16, TR_U32, TR_U64};
const std::vector<int> real_types = {TR_I8,  TR_I16,  TR_I32, TR_I64, TR_F32,
                                     TR_F64, TR_BYTE, TR_U16, TR_U32, TR_U64};
constexpr double accuracy = 0.01;

struct File {
  std::string name;
  std::string options;
  std::string field_options;
};

std::vector<File> files() {
  std::vector<File> list = {{"mixed.raw", "format=raw", ""},
                            {"types.raw", "format=raw", ""},
                            {"types.nc", "attributes=\"title=identity\"", ""},
                            {"old.nc", "format=cdf1", ""}};
#if TAILRACE_HAVE_HDF5
  list.push_back({"types.nc4", "compress=deflate:1", ""});
#endif
#if TAILRACE_HAVE_ZARR
  list.push_back({"types.zarr", "compress=gzip", ""});
#endif
#if TAILRACE_HAVE_GRIB
  list.push_back({"simple.grib2", "packing=simple", "accuracy=0.01"});
  list.push_back({"ccsds.grib2", "packing=ccsds", "accuracy=0.01"});
  list.push_back({"odd.grib2", "packing=simple member=7 members=10", "bits=11"});
  list.push_back({"simple.grib1", "centre=98 member=7 members=10", "accuracy=0.01"});
  list.push_back({"second_order.grib1", "centre=98 packing=second_order", "accuracy=0.01"});
#endif
  return list;
}

bool is_grib(const File& file) { return file.name.find(".grib") != std::string::npos; }
bool is_raw(const File& file) { return file.name.find("raw") != std::string::npos; }

int type_of(const File& file, std::size_t field) {
  if (file.name == "types.raw") return types[field];
  if (file.name.starts_with("types.")) return real_types[field];
  if (is_grib(file) && field % 5 == 3) return TR_I16;
  return field % 2 == 0 ? TR_F32 : TR_F64;
}

std::size_t fields_of(const File& file) {
  if (file.name == "types.raw") return types.size();
  return file.name.starts_with("types.") ? real_types.size() : kinds.size();
}

/// Every field of one file, each in another layout; or all in the first one.
class Output {
 public:
  Output(MPI_Comm compute, const std::string& directory, const File& file, bool plain) : file_(file) {
    const std::string options = "base=2026-03-01T00:00Z " + file.options;
    expect(tr_stream_create((directory + "/" + file.name).c_str(), options.c_str(), &stream_));
    for (std::size_t i = 0; i < fields_of(file); ++i) {
      arrays_.push_back(std::make_unique<Array>(plain ? kinds[0] : kinds[i], compute, type_of(file, i)));
      Array& array = *arrays_.back();
      CHECK_EQ(array.error(), std::string());
      if (!is_raw(file)) expect(tr_layout_georeference(array.layout(), grid_keys));
      expect(tr_stream_define(
          stream_, names[i].c_str(), array.layout(), type_of(file, i),
          ("levels=pressure:1000,850,500 " + file.field_options + " " + array.options()).c_str()));
    }
  }
  ~Output() { expect(tr_stream_close(&stream_)); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void step(std::int64_t lead) {
    expect(tr_stream_begin(stream_, lead));
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      arrays_[i]->fill(static_cast<int>(i), lead);
      expect(tr_stream_put(stream_, names[i].c_str(), arrays_[i]->data()));
    }
    expect(tr_stream_end(stream_));
  }

 private:
  static void expect(int code) {
    if (code != TR_OK) CHECK_EQ(std::string(tr_error()), std::string("no error"));
  }
  const File file_;
  tr_stream* stream_ = nullptr;
  std::vector<std::unique_ptr<Array>> arrays_;
};

/// Writes all files at once by the first `ranks + servers` ranks of the world; the others pass by.
void write_files(int ranks, int servers, const std::string& directory, bool plain) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(state().comm, rank() < ranks + servers ? 0 : MPI_UNDEFINED, rank(), &part);
  if (part != MPI_COMM_NULL) {
    MPI_Comm compute = MPI_COMM_NULL;
    const std::string options =
        "servers=" + std::to_string(servers) + " staging=24MiB threads=" + std::to_string(1 + servers % 2);
    CHECK_EQ(tr_init(part, &compute, options.c_str()), TR_OK);
    if (compute != MPI_COMM_NULL) {
      CHECK_EQ(size_of(compute), ranks);
      std::vector<std::unique_ptr<Output>> outputs;
      for (const File& file : files())
        outputs.push_back(std::make_unique<Output>(compute, directory, file, plain));
      for (const std::int64_t lead : leads) {
        for (auto& output : outputs) output->step(lead);
      }
    }
    CHECK_EQ(tr_finalize(), TR_OK);
    MPI_Comm_free(&part);
  }
  quiet_barrier();
}

std::vector<std::byte> expected_raw(const File& file) {
  std::vector<std::byte> bytes;
  for (const std::int64_t lead : leads) {
    for (std::size_t field = 0; field < fields_of(file); ++field) {
      for (tr_index level = 0; level < levels; ++level) {
        append_record(static_cast<int>(field), type_of(file, field), lead, level, bytes);
      }
    }
  }
  return bytes;
}

/// Made once by one rank without servers.
const std::string& reference() {
  static const std::string directory = [] {
    std::string made = fresh_directory("reference");
    write_files(1, 0, made, true);
    return made;
  }();
  return directory;
}

void same_bytes_with(int ranks) {
  const std::string serial = reference();
  for (int servers = 0; servers <= 3; ++servers) {
    const std::string directory =
        fresh_directory("r" + std::to_string(ranks) + "s" + std::to_string(servers));
    write_files(ranks, servers, directory, false);
    if (rank() != 0) continue;
    for (const File& file : files()) {
      const std::vector<std::byte> got = contents(directory + "/" + file.name);
      const std::vector<std::byte> wanted =
          is_raw(file) ? expected_raw(file) : contents(serial + "/" + file.name);
      CHECK(!wanted.empty());
      if (!CHECK(got == wanted))
        std::fprintf(stderr, "  %s/%s differs\n", directory.c_str(), file.name.c_str());
    }
  }
}

}  // namespace

MPI_TEST(identity, on_1_rank_with_0_to_3_servers) { same_bytes_with(1); }
MPI_TEST(identity, on_2_ranks_with_0_to_3_servers) { same_bytes_with(2); }
MPI_TEST(identity, on_3_ranks_with_0_to_3_servers) { same_bytes_with(3); }
MPI_TEST(identity, on_5_ranks_with_0_to_3_servers) { same_bytes_with(5); }
MPI_TEST(identity, on_8_ranks_with_0_to_3_servers) { same_bytes_with(8); }

MPI_TEST(identity, of_the_one_rank_run_with_known_bytes) {
  const std::string serial = reference();
  if (rank() != 0) return;
  for (const File& file : files()) {
    if (is_raw(file)) CHECK(contents(serial + "/" + file.name) == expected_raw(file));
  }
}

#if TAILRACE_HAVE_GRIB
MPI_TEST(grib, decodes_to_the_model_within_its_accuracy) {
  const std::string serial = reference();
  if (rank() != 0) return;
  for (const std::string file : {"simple.grib2", "ccsds.grib2", "simple.grib1", "second_order.grib1"}) {
    FILE* const in = std::fopen((serial + "/" + file).c_str(), "rb");
    CHECK(in != nullptr);
    int error = 0;
    std::size_t message = 0;
    while (codes_handle* handle = codes_handle_new_from_file(nullptr, in, PRODUCT_GRIB, &error)) {
      const std::size_t per_step = kinds.size() * levels;
      const auto field = static_cast<int>(message % per_step / levels);
      const auto level = static_cast<tr_index>(message % levels);
      std::vector<double> values(static_cast<std::size_t>(ny * nx));
      std::size_t count = values.size();
      CHECK_EQ(codes_get_double_array(handle, "values", values.data(), &count), 0);
      CHECK_EQ(count, values.size());
      double worst = 0;
      for (std::size_t i = 0; i < count; ++i) {
        double wanted =
            value(field, leads[message / per_step % leads.size()], level, static_cast<tr_index>(i));
        const int type = type_of({file, "", ""}, static_cast<std::size_t>(field));
        if (type == TR_F32) wanted = static_cast<float>(wanted);
        if (type == TR_I16) wanted = std::trunc(wanted * 30);  // as Array fills it
        worst = std::max(worst, std::abs(values[i] - wanted));
      }
      CHECK(worst <= accuracy);
      codes_handle_delete(handle);
      ++message;
    }
    std::fclose(in);
    CHECK_EQ(message, leads.size() * kinds.size() * levels);
  }
}
#endif

MPI_TEST_MAIN
