// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "eccodes_loop.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {

namespace {

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "bench: %s: %s\n", what, why);
  std::exit(1);
}

void check(int error, const char* what) {
  if (error != CODES_SUCCESS) give_up(what, codes_get_error_message(error));
}

void set_long(codes_handle* handle, const char* key, long value) {
  check(codes_set_long(handle, key, value), key);
}
void set_double(codes_handle* handle, const char* key, double value) {
  check(codes_set_double(handle, key, value), key);
}

void set_text(codes_handle* handle, const char* key, const char* value) {
  std::size_t length = std::strlen(value);
  check(codes_set_string(handle, key, value, &length), key);
}

constexpr double spacing = 0.02;

}  // namespace

bool is_grib1(const std::string& packing) { return packing.starts_with("grib1_"); }

std::string grid_keys(std::int64_t columns, std::int64_t rows) {
  char text[512];
  std::snprintf(text, sizeof text,
                "gridType=regular_ll, Ni=%lld, Nj=%lld, latitudeOfFirstGridPointInDegrees=%.2f, "
                "longitudeOfFirstGridPointInDegrees=0, latitudeOfLastGridPointInDegrees=%.2f, "
                "longitudeOfLastGridPointInDegrees=%.2f, iDirectionIncrementInDegrees=%.2f, "
                "jDirectionIncrementInDegrees=%.2f, jScansPositively=1",
                static_cast<long long>(columns), static_cast<long long>(rows), 30.0,
                30.0 + spacing * static_cast<double>(rows - 1), spacing * static_cast<double>(columns - 1),
                spacing, spacing);
  return text;
}

EccodesLoop::EccodesLoop(std::int64_t columns, std::int64_t rows, const std::string& packing,
                         const std::string& path, Handles handles)
    : handles_(handles), lead_key_(is_grib1(packing) ? "P1" : "forecastTime"), path_(path) {
  const char* const sample = is_grib1(packing) ? "GRIB1" : "GRIB2";
  prepared_ = codes_grib_handle_new_from_samples(nullptr, sample);
  if (prepared_ == nullptr) give_up("ecCodes has no sample", sample);
  set_long(prepared_, "Ni", columns);
  set_long(prepared_, "Nj", rows);
  set_double(prepared_, "latitudeOfFirstGridPointInDegrees", 30);
  set_double(prepared_, "latitudeOfLastGridPointInDegrees", 30 + spacing * static_cast<double>(rows - 1));
  set_double(prepared_, "longitudeOfFirstGridPointInDegrees", 0);
  set_double(prepared_, "longitudeOfLastGridPointInDegrees", spacing * static_cast<double>(columns - 1));
  set_double(prepared_, "iDirectionIncrementInDegrees", spacing);
  set_double(prepared_, "jDirectionIncrementInDegrees", spacing);
  set_long(prepared_, "jScansPositively", 1);
  set_text(prepared_, "typeOfLevel", "hybrid");
  set_text(prepared_, "shortName", "t");
  set_long(prepared_, "dataDate", 20260301);
  set_long(prepared_, "bitsPerValue", 16);
  if (packing == "grib1_second_order") {
    // The packing of a message of equal values stays simple.
    std::vector<double> some(static_cast<std::size_t>(columns * rows));
    some.back() = 1;
    check(codes_set_double_array(prepared_, "values", some.data(), some.size()), "values");
  }
  set_text(prepared_, "packingType",
           packing == "ccsds"                ? "grid_ccsds"
           : packing == "grib1_second_order" ? "grid_second_order"
                                             : "grid_simple");
  set_long(prepared_, "bitsPerValue", 16);
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) give_up(path.c_str(), std::strerror(errno));
}

EccodesLoop::~EccodesLoop() {
  if (file_ >= 0) ::close(file_);
  for (const auto& [level, handle] : kept_) codes_handle_delete(handle);
  codes_handle_delete(prepared_);
}

codes_handle* EccodesLoop::clone(std::int64_t level) {
  codes_handle* const message = codes_handle_clone(prepared_);
  if (message == nullptr) give_up("ecCodes", "did not clone a message");
  set_long(message, "level", static_cast<long>(level));
  return message;
}

void EccodesLoop::write(const std::vector<double>& values, std::int64_t level, std::int64_t hour) {
  codes_handle* message = nullptr;
  if (handles_ == Handles::cloned) {
    message = clone(level);
  } else {
    codes_handle*& kept = kept_[level];
    if (kept == nullptr) kept = clone(level);
    message = kept;
  }
  set_long(message, lead_key_, static_cast<long>(hour));
  check(codes_set_double_array(message, "values", values.data(), values.size()), "values");
  const void* bytes = nullptr;
  std::size_t length = 0;
  check(codes_get_message(message, &bytes, &length), "message");
  for (std::size_t done = 0; done < length;) {
    const ssize_t written = ::pwrite(file_, static_cast<const char*>(bytes) + done, length - done, offset_);
    if (written <= 0) give_up(path_.c_str(), std::strerror(errno));
    done += static_cast<std::size_t>(written);
    offset_ += written;
  }
  if (handles_ == Handles::cloned) codes_handle_delete(message);
}

void EccodesLoop::sync() const {
  if (::fsync(file_) != 0) give_up(path_.c_str(), std::strerror(errno));
}

void EccodesLoop::rewind(bool empty) {
  offset_ = 0;
  if (empty && ::ftruncate(file_, 0) != 0) give_up(path_.c_str(), std::strerror(errno));
}

}  // namespace bench
