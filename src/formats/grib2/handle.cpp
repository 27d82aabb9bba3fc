// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/handle.hpp"

#include <eccodes.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string_view>

#include "formats/grib2/sample.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

std::atomic<std::int64_t> messages_opened{0};

struct Waiting {
  std::jmp_buf here;
  During during;
};
/// Where a failed assertion of ecCodes on this thread jumps to. Null outside of without_assertions().
thread_local Waiting* waiting = nullptr;

/// Returns true if ecCodes may hold a lock where this assertion stands. A jump from there would leave the
/// lock held for ever. ecCodes may hold one while it reads definitions, and where memory runs out. The
/// function looks for words in the names of the sources, because the sources have other names since
/// version 2.41 (action/Concept.cc).
bool may_hold_locks(std::string_view message, During during) {
  // This function allocates nothing, because there may be no memory.
  const auto same = [](char one, char other) { return (one >= 'A' && one <= 'Z' ? one + 32 : one) == other; };
  const auto names = [&](std::string_view word) {
    return std::search(message.begin(), message.end(), word.begin(), word.end(), same) != message.end();
  };
  if (names("concept") || names("hash") || names("grib_parse_utils.c") || names("trie")) return true;
  // While values are decoded, definitions have been read already: it is the buffer of the values that fails.
  return during != During::decoding && names("grib_context.c");
}

/// Returns true if the environment tells ecCodes to go on after failed assertions.
bool goes_on_after_assertions() {
  for (const char* const name : {"ECCODES_NO_ABORT", "GRIB_API_NO_ABORT"}) {
    if (const char* const value = std::getenv(name)) return std::atoi(value) != 0;
  }
  return false;
}

extern "C" void tailrace_eccodes_asserts(const char* message) {
  if (waiting != nullptr && !may_hold_locks(message, waiting->during)) std::longjmp(waiting->here, 1);
  // Does what ecCodes does without this handler: its installation is broken, or the program has called it
  // itself.
  std::fprintf(stderr, "%s\n", message);
  if (!goes_on_after_assertions()) std::abort();
}

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

/// Looks only at files: returns false for local templates of the centres, and if the definitions are compiled
/// into ecCodes.
bool lacks_template(int section, long number) {
  constexpr long first_local = 32768;
  if (number >= first_local) return false;
  static auto& known = *new std::map<std::pair<int, long>, bool>;
  const auto lock = lock_definitions();
  const auto [found, is_new] = known.try_emplace({section, number}, false);
  if (!is_new) return found->second;
  const char* const path = codes_definition_path(nullptr);  // the context's own
  std::istringstream directories(path == nullptr ? "" : path);
  bool has_definitions = false;
  for (std::string directory; std::getline(directories, directory, ':');) {
    std::error_code none;
    const auto has = [&](const std::string& name) {
      return std::filesystem::exists(cat(directory, "/grib2/", name), none);
    };
    const std::string name = cat("template.", section, ".", number, ".def");
    has_definitions = has_definitions || has("boot.def");
    if (has(name) || has("templates/" + name)) return false;
  }
  return found->second = has_definitions;
}

int without_assertions(const std::function<int()>& call, During during) {
  // Sets the handler for each call, because the program may have set one of its own in between.
  codes_set_codes_assertion_failed_proc(tailrace_eccodes_asserts);
  Waiting here{{}, during};
  if (setjmp(here.here) != 0) {
    waiting = nullptr;
    return CODES_INTERNAL_ERROR;
  }
  waiting = &here;
  const int error = call();
  waiting = nullptr;
  return error;
}

void Handle::Free::operator()(grib_handle* handle) const {
  // A call that was left in the middle may have destroyed parts of the handle.
  if (is_lost) return;
  (void)without_assertions([&] { return codes_handle_delete(handle); });
}

bool Handle::is_lost() const { return handle_.get_deleter().is_lost; }

int Handle::ask(const std::function<int(grib_handle*)>& call, During during) const {
  bool& is_lost = handle_.get_deleter().is_lost;
  if (is_lost) return CODES_INTERNAL_ERROR;
  is_lost = true;
  const int error = without_assertions(
      [&] {
        const int returned = call(handle_.get());
        is_lost = false;
        return returned;
      },
      during);
  return error;
}

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
  if (const std::optional<ByteVector> known = without_healpix(message))
    return opened([&] { return codes_handle_new_from_message_copy(nullptr, known->data(), known->size()); });
  return opened([&] { return codes_handle_new_from_message_copy(nullptr, message.data(), message.size()); });
}

Result<Handle> Handle::over_message(std::span<const std::byte> message) {
  if (without_healpix(message)) return from_message(message);
  return opened([&] { return codes_handle_new_from_message(nullptr, message.data(), message.size()); });
}

Result<Handle> Handle::opened(const std::function<grib_handle*()>& open) {
  grib_handle* handle = nullptr;
  (void)without_assertions([&] {
    handle = open();
    return CODES_SUCCESS;
  });
  if (handle == nullptr) return Status(Code::corrupt, "ecCodes does not read the message");
  return Handle(handle);
}

int Handle::set(const std::string& key, long value) {
  return ask([&](grib_handle* handle) { return codes_set_long(handle, key.c_str(), value); });
}
int Handle::set(const std::string& key, double value) {
  return ask([&](grib_handle* handle) { return codes_set_double(handle, key.c_str(), value); });
}
int Handle::set(const std::string& key, const std::string& value) {
  std::size_t length = value.size();
  return ask(
      [&](grib_handle* handle) { return codes_set_string(handle, key.c_str(), value.c_str(), &length); });
}
int Handle::set(const std::string& key, std::span<const long> values) {
  return ask([&](grib_handle* handle) {
    return codes_set_long_array(handle, key.c_str(), values.data(), values.size());
  });
}
int Handle::set(const std::string& key, std::span<const double> values) {
  return ask([&](grib_handle* handle) {
    return codes_set_double_array(handle, key.c_str(), values.data(), values.size());
  });
}
int Handle::set_missing(const std::string& key) {
  return ask([&](grib_handle* handle) { return codes_set_missing(handle, key.c_str()); });
}

int Handle::set_text(const std::string& key, const std::string& value) {
  if (value == "missing") return set_missing(key);
  int type = CODES_TYPE_UNDEFINED;
  ask([&](grib_handle* handle) { return codes_get_native_type(handle, key.c_str(), &type); });
  // The digits of a text key (experimentVersionNumber=0001) are set as text, which keeps the zeros.
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

bool Handle::has(const std::string& key) const {
  bool is_there = false;
  ask([&](grib_handle* handle) {
    is_there = codes_is_defined(handle, key.c_str()) != 0;
    return CODES_SUCCESS;
  });
  return is_there;
}

std::vector<std::string> Handle::keys() const {
  std::vector<std::string> names;
  ask([&](grib_handle* handle) {
    codes_keys_iterator* const each =
        codes_keys_iterator_new(handle, CODES_KEYS_ITERATOR_SKIP_DUPLICATES, nullptr);
    while (each != nullptr && codes_keys_iterator_next(each) != 0)
      names.emplace_back(codes_keys_iterator_get_name(each));
    if (each != nullptr) codes_keys_iterator_delete(each);
    return CODES_SUCCESS;
  });
  return names;
}

bool Handle::is_missing(const std::string& key) const {
  bool is_missing = false;
  const int error = ask([&](grib_handle* handle) {
    int told = CODES_SUCCESS;
    is_missing = codes_is_missing(handle, key.c_str(), &told) != 0;
    return told;
  });
  return is_missing && error == CODES_SUCCESS;
}

std::optional<long> Handle::integer(const std::string& key) const {
  long value = 0;
  const int error = ask([&](grib_handle* handle) { return codes_get_long(handle, key.c_str(), &value); });
  return error == CODES_SUCCESS ? std::optional(value) : std::nullopt;
}

std::optional<long> Handle::present_integer(const std::string& key) const {
  if (!has(key) || is_missing(key)) return std::nullopt;
  return integer(key);
}

std::optional<double> Handle::number(const std::string& key) const {
  double value = 0;
  const int error = ask([&](grib_handle* handle) { return codes_get_double(handle, key.c_str(), &value); });
  return error == CODES_SUCCESS ? std::optional(value) : std::nullopt;
}

std::optional<std::string> Handle::text(const std::string& key) const {
  char buffer[1024];
  std::size_t length = sizeof buffer;
  const int error =
      ask([&](grib_handle* handle) { return codes_get_string(handle, key.c_str(), buffer, &length); });
  if (error != CODES_SUCCESS) return std::nullopt;
  return std::string(buffer);
}

std::vector<double> Handle::numbers(const std::string& key) const {
  std::size_t count = 0;
  if (ask([&](grib_handle* handle) { return codes_get_size(handle, key.c_str(), &count); }) != CODES_SUCCESS)
    return {};
  std::vector<double> values(count);
  const int error = ask([&](grib_handle* handle) {
    return codes_get_double_array(handle, key.c_str(), values.data(), &count);
  });
  if (error != CODES_SUCCESS) return {};
  values.resize(count);
  return values;
}

std::vector<std::string> Handle::coded_keys() const {
  std::vector<std::string> names;
  (void)ask([&](grib_handle* handle) {
    codes_keys_iterator* const keys = codes_keys_iterator_new(
        handle, CODES_KEYS_ITERATOR_SKIP_COMPUTED | CODES_KEYS_ITERATOR_SKIP_DUPLICATES, nullptr);
    if (keys == nullptr) return CODES_INTERNAL_ERROR;
    while (codes_keys_iterator_next(keys) != 0) {
      const char* const name = codes_keys_iterator_get_name(keys);
      // Keys with several values are left out: ecCodes prints an error if their text is asked for.
      std::size_t count = 0;
      if (codes_get_size(handle, name, &count) == CODES_SUCCESS && count == 1) names.emplace_back(name);
    }
    return codes_keys_iterator_delete(keys);
  });
  return names;
}

int Handle::count_values(std::size_t& count) const {
  return ask([&](grib_handle* handle) { return codes_get_size(handle, "values", &count); });
}

int Handle::decode(double* values, std::size_t& count) const {
  return ask([&](grib_handle* handle) { return codes_get_double_array(handle, "values", values, &count); },
             During::decoding);
}

std::span<const std::byte> Handle::message() const {
  const void* bytes = nullptr;
  std::size_t length = 0;
  const int error = ask([&](grib_handle* handle) { return codes_get_message(handle, &bytes, &length); });
  if (error != CODES_SUCCESS) return {};
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
