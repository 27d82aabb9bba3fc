// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "mpi/scene.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>

namespace tailrace::scene {

namespace {

template <typename T>
void append_as(T number, std::vector<std::byte>& out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&number);
  out.insert(out.end(), bytes, bytes + sizeof number);
}

int owner_by_place(const tr_index* index, void* context) {
  return static_cast<int>((3 * index[0] + 5 * index[1]) % *static_cast<int*>(context));
}

}  // namespace

const char* const grid_keys =
    "keys=\"gridType=regular_ll, latitudeOfFirstGridPointInDegrees=50, longitudeOfFirstGridPointInDegrees=5, "
    "latitudeOfLastGridPointInDegrees=40, longitudeOfLastGridPointInDegrees=17\"";

double value(int field, std::int64_t lead, tr_index level, tr_index element) {
  const auto place = static_cast<double>(element);
  const auto time = static_cast<double>(lead) / 3600.0;
  return 100.0 * (field + 1) * std::sin(0.05 * place + 0.3 * static_cast<double>(level) + 0.1 * time) /
             (1.0 + field) +
         place - 10.0 * static_cast<double>(level);
}

tr_index element_bytes(int type) {
  switch (type) {
    case TR_I8:
    case TR_BYTE:
      return 1;
    case TR_I16:
    case TR_U16:
      return 2;
    case TR_I32:
    case TR_U32:
    case TR_F32:
      return 4;
    case TR_C128:
      return 16;
    default:
      return 8;
  }
}

void append(int type, double number, std::vector<std::byte>& out) {
  switch (type) {
    case TR_I8:
      append_as(static_cast<std::int8_t>(static_cast<int>(number) % 100), out);
      break;
    case TR_BYTE:
      append_as(static_cast<std::uint8_t>(static_cast<int>(number) & 255), out);
      break;
    case TR_I16:
      append_as(static_cast<std::int16_t>(number * 30), out);
      break;
    case TR_I32:
      append_as(static_cast<std::int32_t>(number * 1e6), out);
      break;
    case TR_I64:
      append_as(static_cast<std::int64_t>(number * 1e15), out);
      break;
    case TR_U16:
      append_as(static_cast<std::uint16_t>(static_cast<std::int64_t>(number * 100)), out);
      break;
    case TR_U32:
      append_as(static_cast<std::uint32_t>(static_cast<std::int64_t>(number * 1e7)), out);
      break;
    case TR_U64:
      append_as(static_cast<std::uint64_t>(static_cast<std::int64_t>(number * 1e15)), out);
      break;
    case TR_F32:
      append_as(static_cast<float>(number), out);
      break;
    case TR_F64:
      append_as(number, out);
      break;
    case TR_C64:
      append_as(std::complex<float>(static_cast<float>(number), 1.5F), out);
      break;
    case TR_C128:
      append_as(std::complex<double>(number, -number), out);
      break;
    default:
      break;
  }
}

void append_record(int field, int type, std::int64_t lead, tr_index level, std::vector<std::byte>& out) {
  for (tr_index element = 0; element < ny * nx; ++element)
    append(type, value(field, lead, level, element), out);
}

Array::Array(const std::string& kind, MPI_Comm compute, int type) : type_(type) {
  const int rank = rank_of(compute);
  const int ranks = size_of(compute);
  if (kind == "cyclic" || kind == "callback" || kind == "indexed" || kind == "nproma_indexed") {
    make_scattered(kind, rank, ranks);
  } else {
    make_box(kind, rank, ranks);
  }
  is_replica_ = kind == "replicated" && rank != 0;
  if (kind == "nproma" || kind == "nproma_indexed") {
    nproma_ = 4;
    options_ = "nproma=4";
    size_ = (owned() + nproma_ - 1) / nproma_ * nproma_ * levels;
  }
  if (kind == "ikj") options_ = "level_axis=1";
  if (kind == "fastest") options_ = "level_axis=2";
  bytes_.resize(static_cast<std::size_t>(std::max<tr_index>(size_, 1) * element_bytes(type)));
}

void Array::keep(int code) {
  if (code != TR_OK && error_.empty()) error_ = tr_error();
}

void Array::make_box(const std::string& kind, int rank, int ranks) {
  const tr_index shape[] = {ny, nx};
  const tr_index halo[] = {2, 1};
  const tr_index none[] = {0, 0};
  if (kind == "weighted") {
    std::vector<double> even(1, 1.0);
    std::vector<double> uneven;
    for (int i = 0; i < ranks; ++i) uneven.push_back(i == 1 ? 0.0 : 1.0 + i);  // the second rank owns nothing
    const int grid[] = {1, ranks};
    const double* const weights[] = {even.data(), uneven.data()};
    keep(tr_layout_weighted(2, shape, halo, grid, weights, &layout_));
    if (layout_ != nullptr) own_box(halo, 0);
  } else if (kind == "boxes") {
    // The ranks get columns from right to left; the middle rank gets none.
    const int parts = ranks < 3 ? ranks : ranks - 1;
    const int part = ranks < 3 || rank < ranks / 2 ? rank : rank - 1;
    const bool empty = ranks >= 3 && rank == ranks / 2;
    const tr_index lower[] = {0, empty ? 0 : nx - nx * (part + 1) / parts};
    const tr_index upper[] = {empty ? 0 : ny, empty ? 0 : nx - nx * part / parts};
    keep(tr_layout_box(2, shape, nullptr, lower, upper, &layout_));
    if (layout_ != nullptr) own_box(none, 0);
  } else if (kind == "replicated") {
    keep(tr_layout_replicated(2, shape, &layout_));
    for (tr_index element = 0; element < ny * nx; ++element) {
      elements_.push_back(element);
      offsets_.push_back(element);
    }
    level_stride_ = ny * nx;
    size_ = levels * ny * nx;
  } else {
    const bool has_halo = kind == "halo" || kind == "fastest";
    keep(tr_layout_block(2, shape, has_halo ? halo : nullptr, &layout_));
    if (layout_ != nullptr) own_box(has_halo ? halo : none, kind == "ikj" ? 1 : kind == "fastest" ? 2 : 0);
  }
}

void Array::own_box(const tr_index* halo, int level_axis) {
  tr_index lower[2];
  tr_index upper[2];
  keep(tr_layout_bounds(layout_, 0, lower, upper));
  const tr_index rows = upper[0] - lower[0] + 2 * halo[0];
  const tr_index columns = upper[1] - lower[1] + 2 * halo[1];
  // The strides of y, x and level depend on the place of the level among the axes.
  const tr_index y_stride = level_axis == 0 ? columns : columns * levels;
  const tr_index x_stride = level_axis == 2 ? levels : 1;
  level_stride_ = level_axis == 0 ? rows * columns : level_axis == 1 ? columns : 1;
  size_ = rows * columns * levels;
  for (tr_index y = lower[0]; y < upper[0]; ++y) {
    for (tr_index x = lower[1]; x < upper[1]; ++x) {
      elements_.push_back(y * nx + x);
      offsets_.push_back((y - lower[0] + halo[0]) * y_stride + (x - lower[1] + halo[1]) * x_stride);
    }
  }
}

void Array::make_scattered(const std::string& kind, int rank, int ranks) {
  const tr_index shape[] = {ny, nx};
  const tr_index block[] = {2, 3};
  const int grid[] = {ranks % 2 == 0 ? 2 : 1, ranks % 2 == 0 ? ranks / 2 : ranks};
  for (tr_index y = 0; y < ny; ++y) {
    for (tr_index x = 0; x < nx; ++x) {
      const tr_index index[] = {y, x};
      int owner = static_cast<int>((7 * (y * nx + x) + y) % ranks);
      if (kind == "callback") owner = owner_by_place(index, &ranks);
      if (kind == "cyclic") {
        owner = static_cast<int>(y / block[0] % grid[0]) * grid[1] + static_cast<int>(x / block[1] % grid[1]);
      }
      if (owner == rank) elements_.push_back(y * nx + x);
    }
  }
  if (kind == "cyclic") {
    keep(tr_layout_block_cyclic(2, shape, block, grid, &layout_));
  } else if (kind == "callback") {
    keep(tr_layout_callback(2, shape, owner_by_place, &ranks, &layout_));
  } else {
    std::reverse(elements_.begin(), elements_.end());  // an indexed layout may have any order
    std::vector<tr_index> from_one(elements_);
    for (tr_index& each : from_one) ++each;
    keep(tr_layout_indexed(2, shape, owned(), from_one.data(), 1, &layout_));
  }
  for (tr_index i = 0; i < owned(); ++i) offsets_.push_back(i);
  level_stride_ = owned();
  size_ = owned() * levels;
}

tr_index Array::place(tr_index owned, tr_index level) const {
  if (nproma_ == 0) return offsets_[static_cast<std::size_t>(owned)] + level * level_stride_;
  return (owned / nproma_ * levels + level) * nproma_ + owned % nproma_;
}

void Array::fill(int field, std::int64_t lead) {
  std::vector<std::byte> nonsense;
  append(type_, type_ == TR_F32 || type_ == TR_F64 ? std::numeric_limits<double>::quiet_NaN() : 77.0,
         nonsense);
  for (std::size_t at = 0; at + nonsense.size() <= bytes_.size(); at += nonsense.size()) {
    std::memcpy(bytes_.data() + at, nonsense.data(), nonsense.size());
  }
  if (is_replica_) return;
  for (tr_index i = 0; i < owned(); ++i) {
    for (tr_index level = 0; level < levels; ++level) {
      set(i, level, value(field, lead, level, elements_[static_cast<std::size_t>(i)]));
    }
  }
}

void Array::set(tr_index owned, tr_index level, double number) {
  std::vector<std::byte> element;
  append(type_, number, element);
  std::memcpy(bytes_.data() + place(owned, level) * element_bytes(type_), element.data(), element.size());
}

double Array::get(tr_index owned, tr_index level) const {
  const std::byte* const at = bytes_.data() + place(owned, level) * element_bytes(type_);
  if (type_ == TR_F64) {
    double number = 0;
    std::memcpy(&number, at, sizeof number);
    return number;
  }
  float number = 0;
  std::memcpy(&number, at, sizeof number);
  return static_cast<double>(number);
}

int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

void quiet_barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(mpi_test::state().comm, &request);
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

namespace {

std::vector<std::byte> contents_below(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::recursive_directory_iterator(directory)) {
    if (each.is_regular_file()) names.push_back(each.path().lexically_relative(directory).string());
  }
  std::sort(names.begin(), names.end());
  std::vector<std::byte> all;
  for (const std::string& name : names) {
    const auto text = std::as_bytes(std::span(name));
    const std::vector<std::byte> bytes = contents(directory + "/" + name);
    all.insert(all.end(), text.begin(), text.end());
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace

std::vector<std::byte> contents(const std::string& path) {
  if (std::filesystem::is_directory(path)) return contents_below(path);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

std::string fresh_directory(const std::string& name) {
  const std::string path = "files-" + name + "-n" + std::to_string(mpi_test::size());
  if (mpi_test::rank() == 0) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  quiet_barrier();
  return path;
}

bool same_text(MPI_Comm comm, const std::string& text) {
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, comm);
  std::string first(text);
  first.resize(static_cast<std::size_t>(length));
  MPI_Bcast(first.data(), length, MPI_CHAR, 0, comm);
  int differs = first != text ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &differs, 1, MPI_INT, MPI_MAX, comm);
  return differs == 0;
}

}  // namespace tailrace::scene
