// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace {

struct Option {
  std::string key;
  std::string value;
  friend bool operator==(const Option&, const Option&) = default;
};

/// The entries of an options string, in its order: key=value key="value with blanks" key='one, "two"'. Inside
/// quotes, a doubled quote of the same kind stands for one. A key that comes twice is an error.
class Options {
 public:
  /// Parses entries separated by blanks, tabs or line ends. Every error is Code::settings and names the
  /// position.
  static Result<Options> parse(std::string_view text);
  /// Parses a list inside a value, in which commas separate entries too: "centre=98, perturbationNumber=7".
  static Result<Options> parse_list(std::string_view text);

  [[nodiscard]] const std::vector<Option>& entries() const { return entries_; }
  /// Returns the value of `key`, or nullptr.
  [[nodiscard]] const std::string* find(std::string_view key) const;

 private:
  std::vector<Option> entries_;
};

/// Returns `value` as it has to be written after "key=", in quotes if needed.
std::string quote_option(std::string_view value);
/// Returns the option as it is written: "key=value", with quotes if needed.
std::string text_of(const Option& option);

Status settings_error(std::string_view text);
/// Returns the error of a word that is none of `known`: what it is, such as "key" or "value", the nearest
/// known one, and all of them.
Status unknown_word(std::string_view what, std::string_view word, const std::vector<std::string_view>& known);

// One function for each kind of value. An error is Code::settings and tells what was given and what is
// accepted.
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t least, std::int64_t most);
Result<double> parse_real(std::string_view text);   // "nan" and "inf" included
Result<Bytes> parse_bytes(std::string_view text);   // "512MiB", "1.5GB", "4096"
Result<bool> parse_boolean(std::string_view text);  // on off yes no true false 1 0
/// Returns the position of `text` in `known`. Otherwise returns an error that suggests the nearest entry.
Result<std::size_t> parse_choice(std::string_view text, const std::vector<std::string_view>& known);
/// Returns 1, 5, 7, 8, 9 for "1,5,7-9". A range may fall: "3-1". More than `most` numbers are an error.
Result<std::vector<double>> parse_number_list(std::string_view text, std::size_t most = 1'000'000);

/// Returns the parts of `text` between the separators, without the blanks around each part.
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

}  // namespace tailrace
