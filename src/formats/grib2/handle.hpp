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

/// The purpose of a call of ecCodes: `decoding` = it decodes values.
enum class During { anything, decoding };
/// Runs `call`, which calls ecCodes. A failed assertion of ecCodes would end the program; here it leaves
/// `call` in the middle, and the function returns the number of an internal error. So `call` must have no C++
/// objects that need their destructors. Two kinds of failed assertions end the program all the same, because
/// ecCodes may hold locks: those about its definitions, and those about a lack of memory (except while values
/// are decoded). Replaces the process's handler of failed assertions. The new handler treats the program's
/// own calls of ecCodes as ecCodes does without a handler.
int without_assertions(const std::function<int()>& call, During during = During::anything);

/// A handle of ecCodes, freed by the destructor. Setters return ecCodes' own error number, 0 for success. The
/// caller decides which errors matter: ecCodes refuses many keys, and reading back the finished message shows
/// better whether that is wrong.
class Handle {
 public:
  /// Opens one of the messages that ecCodes is installed with.
  static Result<Handle> from_sample(const std::string& name);
  static Result<Handle> from_message(std::span<const std::byte> message);
  /// Opens a message without copying it. The bytes must outlive the handle.
  static Result<Handle> over_message(std::span<const std::byte> message);
  /// Returns true if a failed assertion of ecCodes left a call in the middle. After that the handle asks
  /// ecCodes nothing more, keys seem to be missing, and the message is never freed.
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
  /// Returns an integer key of the message, or nothing if the message lacks it or says "missing".
  [[nodiscard]] std::optional<long> present_integer(const std::string& key) const;
  [[nodiscard]] std::optional<double> number(const std::string& key) const;
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const;
  [[nodiscard]] std::vector<double> numbers(const std::string& key) const;
  /// Returns the names of the keys that have octets of their own and one value, in the order of the message.
  [[nodiscard]] std::vector<std::string> coded_keys() const;
  [[nodiscard]] int count_values(std::size_t& count) const;
  /// Decodes all values. `count` is the room in `values`, and afterwards the number of values.
  [[nodiscard]] int decode(double* values, std::size_t& count) const;
  /// Returns how many messages this process has opened so far. Opening them is nearly all the cost of
  /// definitions.
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

/// Returns a lock that a thread holds while ecCodes may read its definitions. ecCodes 2.28 reads each file of
/// definitions when a handle first needs it, and leaks memory if two threads need the same file at once.
std::unique_lock<std::mutex> lock_definitions();

/// Returns a text with the version of ecCodes and the place of its definitions, from which names and levels
/// come.
std::string library_text();
/// Returns true if ecCodes' definitions surely lack the GRIB2 template `section`.`number` (section 3 or 4).
/// ecCodes would print errors to standard error about a message with it. Takes lock_definitions() itself.
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
