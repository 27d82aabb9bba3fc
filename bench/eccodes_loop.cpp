// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "eccodes_loop.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "give_up.hpp"

namespace bench {

namespace {

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

std::string Eccodes::version() const {
  const long number = api_version();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

void EccodesLoop::check(int error, const char* what) const {
  if (error != CODES_SUCCESS) give_up(what, library_.error_message(error));
}

void EccodesLoop::set_long(codes_handle* handle, const char* key, long value) const {
  check(library_.set_long(handle, key, value), key);
}

void EccodesLoop::set_double(codes_handle* handle, const char* key, double value) const {
  check(library_.set_double(handle, key, value), key);
}

void EccodesLoop::set_text(codes_handle* handle, const char* key, const char* value) const {
  std::size_t length = std::strlen(value);
  check(library_.set_string(handle, key, value, &length), key);
}

EccodesLoop::EccodesLoop(const Eccodes& library, const Written& what, const std::string& path,
                         Handles handles)
    : library_(library),
      handles_(handles),
      lead_key_(is_grib1(what.packing) ? "P1" : "forecastTime"),
      path_(path) {
  const char* const sample = is_grib1(what.packing) ? "GRIB1" : "GRIB2";
  prepared_ = library_.new_from_samples(nullptr, sample);
  if (prepared_ == nullptr) give_up("ecCodes has no sample", sample);
  set_long(prepared_, "Ni", what.columns);
  set_long(prepared_, "Nj", what.rows);
  set_double(prepared_, "latitudeOfFirstGridPointInDegrees", 30);
  set_double(prepared_, "latitudeOfLastGridPointInDegrees",
             30 + spacing * static_cast<double>(what.rows - 1));
  set_double(prepared_, "longitudeOfFirstGridPointInDegrees", 0);
  set_double(prepared_, "longitudeOfLastGridPointInDegrees", spacing * static_cast<double>(what.columns - 1));
  set_double(prepared_, "iDirectionIncrementInDegrees", spacing);
  set_double(prepared_, "jDirectionIncrementInDegrees", spacing);
  set_long(prepared_, "jScansPositively", 1);
  set_text(prepared_, "typeOfLevel", "hybrid");
  set_text(prepared_, "shortName", "t");
  set_long(prepared_, "dataDate", 20260301);
  set_long(prepared_, "bitsPerValue", what.bits);
  const bool is_second_order = what.packing == "grib1_second_order";
  if (is_second_order) {
    // The packing of a message of equal values stays simple.
    std::vector<double> some(static_cast<std::size_t>(what.columns * what.rows));
    some.back() = 1;
    check(library_.set_double_array(prepared_, "values", some.data(), some.size()), "values");
  }
  set_text(prepared_, "packingType",
           what.packing == "ccsds" ? "grid_ccsds"
           : is_second_order       ? "grid_second_order"
                                   : "grid_simple");
  set_long(prepared_, "bitsPerValue", what.bits);
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) give_up(path.c_str(), std::strerror(errno));
}

EccodesLoop::~EccodesLoop() {
  if (file_ >= 0) ::close(file_);
  for (const auto& [level, handle] : kept_) library_.free(handle);
  library_.free(prepared_);
}

codes_handle* EccodesLoop::clone(std::int64_t level) {
  codes_handle* const message = library_.clone(prepared_);
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
  check(library_.set_double_array(message, "values", values.data(), values.size()), "values");
  const void* bytes = nullptr;
  std::size_t length = 0;
  check(library_.get_message(message, &bytes, &length), "message");
  for (std::size_t done = 0; done < length;) {
    const ssize_t written = ::pwrite(file_, static_cast<const char*>(bytes) + done, length - done, offset_);
    if (written <= 0) give_up(path_.c_str(), std::strerror(errno));
    done += static_cast<std::size_t>(written);
    offset_ += written;
  }
  if (handles_ == Handles::cloned) library_.free(message);
}

void EccodesLoop::sync() const {
  if (::fsync(file_) != 0) give_up(path_.c_str(), std::strerror(errno));
}

Span EccodesLoop::write_step(const std::vector<std::vector<double>>& records, std::int64_t hour) {
  // The file begins anew, or all turns would fill the memory of /dev/shm. Its pages are new in any case.
  offset_ = 0;
  if (::ftruncate(file_, 0) != 0) give_up(path_.c_str(), std::strerror(errno));
  return timed([&] {
    for (std::size_t level = 0; level < records.size(); ++level)
      write(records[level], static_cast<std::int64_t>(level) + 1, hour);
    sync();
  });
}

}  // namespace bench
