// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

struct grib_handle;

namespace tailrace::grib2 {

/// Calls ecCodes, by a function that leaves no C++ object behind when it is left in the middle. A failed
/// assertion of ecCodes, which would end the program, becomes the error number of an internal error.
/// Assertions about ecCodes' definitions end it all the same: while these are read, ecCodes holds locks. So
/// does a lack of memory, but for one while values are decoded. The process's handler of such assertions is
/// ours from then on; in calls of the program itself it does what ecCodes does without one.
enum class During { anything, decoding };
int without_assertions(const std::function<int()>& call, During during = During::anything);

/// An ecCodes handle that frees itself. Setters return ecCodes' own error number, 0 for success. The caller
/// decides which errors matter, because many keys are refused for reasons that the read-back judges better.
class Handle {
 public:
  /// Opens one of the messages that ecCodes is installed with.
  static Result<Handle> from_sample(const std::string& name);
  static Result<Handle> from_message(std::span<const std::byte> message);
  /// Opens a message that outlives the handle, without a copy.
  static Result<Handle> over_message(std::span<const std::byte> message);
  /// Returns true if a call failed in the middle: nothing was asked since, keys seem to be missing, and the
  /// handle is never freed.
  [[nodiscard]] bool is_lost() const;

  [[nodiscard]] int set(const std::string& key, long value);
  [[nodiscard]] int set(const std::string& key, double value);
  [[nodiscard]] int set(const std::string& key, const std::string& value);
  [[nodiscard]] int set(const std::string& key, std::span<const long> values);
  [[nodiscard]] int set(const std::string& key, std::span<const double> values);
  [[nodiscard]] int set_missing(const std::string& key);
  /// Sets a key from text as users write it: an integer, a number, "missing", a list of numbers with commas,
  /// or a word.
  [[nodiscard]] int set_text(const std::string& key, const std::string& value);

  [[nodiscard]] bool has(const std::string& key) const;
  /// Returns the names of the keys that the message has.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] bool is_missing(const std::string& key) const;
  [[nodiscard]] std::optional<long> integer(const std::string& key) const;
  [[nodiscard]] std::optional<double> number(const std::string& key) const;
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const;
  [[nodiscard]] std::vector<double> numbers(const std::string& key) const;
  /// Returns the names of the keys that have octets of their own and one value, in the order of the message.
  [[nodiscard]] std::vector<std::string> coded_keys() const;
  [[nodiscard]] int count_values(std::size_t& count) const;
  /// Decodes all values. `count` is the room for them, and how many they are.
  [[nodiscard]] int decode(double* values, std::size_t& count) const;
  /// Returns how many messages this process has opened so far: nearly all the cost of definitions.
  [[nodiscard]] static std::int64_t opened();
  /// Returns the whole message; valid until the handle is changed.
  [[nodiscard]] std::span<const std::byte> message() const;

 private:
  static Result<Handle> opened(const std::function<grib_handle*()>& open);
  struct Free {
    Free() : is_lost(false) {}
    void operator()(grib_handle* handle) const;
    mutable bool is_lost;
  };
  explicit Handle(grib_handle* handle) : handle_(handle) {}
  int ask(const std::function<int(grib_handle*)>& call, During during = During::anything) const;
  std::unique_ptr<grib_handle, Free> handle_;
};

/// Returns a lock to be held while definitions are asked for. ecCodes 2.28 reads them when a handle first
/// needs them, file by file, and loses memory if two threads need the same one at once.
std::unique_lock<std::mutex> lock_definitions();

/// Returns the version of ecCodes, and where it finds its definitions: names and levels come from these.
std::string library_text();
/// Returns true if ecCodes' definitions have no GRIB2 template 3.number or 4.number: about a message that has
/// it ecCodes prints errors to standard error. Holds lock_definitions() on the way.
bool lacks_template(int section, long number);
/// Returns what ecCodes says about one of its error numbers.
std::string reason(int error);
/// Returns true if the error says that the key does not exist in this template.
bool is_absent(int error);

std::optional<long> as_integer(const std::string& text);
std::optional<double> as_number(const std::string& text);
/// Parses "1,2,3". Returns an empty list if the text is no list of at least two numbers.
std::vector<double> as_list(const std::string& text);

}  // namespace tailrace::grib2
