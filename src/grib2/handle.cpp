// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "grib2/handle.hpp"

#include <eccodes.h>

#include <atomic>
#include <cmath>
#include <cstdlib>

#include "base/text.hpp"

namespace tailrace::grib2 {

namespace {

std::atomic<std::int64_t> messages_opened{0};

}  // namespace

std::int64_t Handle::opened() { return messages_opened; }

std::unique_lock<std::mutex> lock_definitions() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

std::string library_text() {
  const char* const path = codes_definition_path(nullptr);  // the context's own
  const long version = codes_get_api_version();
  return cat("ecCodes ", version / 10000, ".", version / 100 % 100, ".", version % 100, ", definitions in ",
             path == nullptr ? "none" : path);
}

void Handle::Free::operator()(grib_handle* handle) const { codes_handle_delete(handle); }

Result<Handle> Handle::from_sample(const std::string& name) {
  ++messages_opened;
  grib_handle* handle = codes_grib_handle_new_from_samples(nullptr, name.c_str());
  if (handle == nullptr)
    return Status(Code::unsupported,
                  cat("ecCodes does not find its sample '", name,
                      "'; codes_info prints where it looks, ECCODES_SAMPLES_PATH changes it"));
  return Handle(handle);
}

Result<Handle> Handle::from_message(std::span<const std::byte> message) {
  ++messages_opened;
  grib_handle* handle = codes_handle_new_from_message_copy(nullptr, message.data(), message.size());
  if (handle == nullptr) return Status(Code::corrupt, "ecCodes does not read the message");
  return Handle(handle);
}

int Handle::set(const std::string& key, long value) {
  return codes_set_long(handle_.get(), key.c_str(), value);
}
int Handle::set(const std::string& key, double value) {
  return codes_set_double(handle_.get(), key.c_str(), value);
}
int Handle::set(const std::string& key, const std::string& value) {
  std::size_t length = value.size();
  return codes_set_string(handle_.get(), key.c_str(), value.c_str(), &length);
}
int Handle::set(const std::string& key, std::span<const long> values) {
  return codes_set_long_array(handle_.get(), key.c_str(), values.data(), values.size());
}
int Handle::set(const std::string& key, std::span<const double> values) {
  return codes_set_double_array(handle_.get(), key.c_str(), values.data(), values.size());
}
int Handle::set_missing(const std::string& key) { return codes_set_missing(handle_.get(), key.c_str()); }

int Handle::set_text(const std::string& key, const std::string& value) {
  if (value == "missing") return set_missing(key);
  int type = CODES_TYPE_UNDEFINED;
  codes_get_native_type(handle_.get(), key.c_str(), &type);
  // Numbers in text keys (experimentVersionNumber=0001) keep their zeros as text.
  if (type == CODES_TYPE_STRING && set(key, value) == CODES_SUCCESS && text(key) == value)
    return CODES_SUCCESS;
  if (const auto integer = as_integer(value)) return set(key, *integer);
  if (const auto number = as_number(value)) return set(key, *number);
  if (const auto list = as_list(value); !list.empty()) {
    std::vector<long> integers;
    for (const double x : list) {
      if (std::nearbyint(x) == x) integers.push_back(static_cast<long>(x));
    }
    if (integers.size() == list.size()) return set(key, std::span<const long>(integers));
    return set(key, std::span<const double>(list));
  }
  return set(key, value);
}

bool Handle::has(const std::string& key) const { return codes_is_defined(handle_.get(), key.c_str()) != 0; }

bool Handle::is_missing(const std::string& key) const {
  int error = 0;
  return codes_is_missing(handle_.get(), key.c_str(), &error) != 0 && error == CODES_SUCCESS;
}

std::optional<long> Handle::integer(const std::string& key) const {
  long value = 0;
  if (codes_get_long(handle_.get(), key.c_str(), &value) != CODES_SUCCESS) return std::nullopt;
  return value;
}

std::optional<double> Handle::number(const std::string& key) const {
  double value = 0;
  if (codes_get_double(handle_.get(), key.c_str(), &value) != CODES_SUCCESS) return std::nullopt;
  return value;
}

std::optional<std::string> Handle::text(const std::string& key) const {
  char buffer[1024];
  std::size_t length = sizeof buffer;
  if (codes_get_string(handle_.get(), key.c_str(), buffer, &length) != CODES_SUCCESS) return std::nullopt;
  return std::string(buffer);
}

std::vector<double> Handle::numbers(const std::string& key) const {
  std::size_t count = 0;
  if (codes_get_size(handle_.get(), key.c_str(), &count) != CODES_SUCCESS) return {};
  std::vector<double> values(count);
  if (codes_get_double_array(handle_.get(), key.c_str(), values.data(), &count) != CODES_SUCCESS) return {};
  values.resize(count);
  return values;
}

std::span<const std::byte> Handle::message() const {
  const void* bytes = nullptr;
  std::size_t length = 0;
  if (codes_get_message(handle_.get(), &bytes, &length) != CODES_SUCCESS) return {};
  return {static_cast<const std::byte*>(bytes), length};
}

std::string reason(int error) { return codes_get_error_message(error); }
bool is_absent(int error) { return error == CODES_NOT_FOUND; }

std::optional<long> as_integer(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

std::optional<double> as_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

std::vector<double> as_list(const std::string& text) {
  std::vector<double> list;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const auto number = as_number(text.substr(at, comma - at));
    if (!number) return {};
    list.push_back(*number);
    at = comma + 1;
  }
  return list.size() < 2 ? std::vector<double>{} : list;
}

}  // namespace tailrace::grib2
