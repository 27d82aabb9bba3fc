// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/options.hpp"

namespace tailrace {

/// A key of an options string, and the texts in Markdown that pages and `tailrace options` have about it.
struct OptionInfo {
  std::string_view key;
  std::string_view default_value;  // "" = none
  std::string_view unit;           // "" = none
  std::string_view example;        // an options string with the key; "" = none
  std::string_view meaning;
};

/// The default of a key that cannot be left out. A page names such keys first.
inline constexpr std::string_view required_option = "– (required)";

/// Returns a table of Markdown with a line for each key. Columns in which no key has anything are left out.
std::string options_markdown(const std::vector<OptionInfo>& options);
/// Returns the same as a plain table for a terminal of so many columns: the texts are wrapped, and have no
/// marks of Markdown.
std::string options_text(const std::vector<OptionInfo>& options, std::size_t width);

/// One key of an options string, and the function that stores its value.
template <typename Target>
struct OptionRow {
  OptionInfo info;
  Status (*set)(Target& target, const std::string& value);
};

/// The keys that one call takes. Their order is that in which take() stores them: a value may need what an
/// earlier one has said.
template <typename Target>
class OptionTable {
 public:
  using Row = OptionRow<Target>;

  template <std::size_t count>
  explicit constexpr OptionTable(const Row (&rows)[count]) : rows_(rows) {}

  [[nodiscard]] std::vector<std::string_view> keys() const {
    std::vector<std::string_view> keys;
    for (const Row& row : rows_) keys.push_back(row.info.key);
    return keys;
  }
  /// Returns what a page says of the keys, and behind them `more`.
  [[nodiscard]] std::vector<OptionInfo> infos(std::span<const OptionInfo> more = {}) const {
    std::vector<OptionInfo> infos;
    for (const Row& row : rows_) infos.push_back(row.info);
    infos.insert(infos.end(), more.begin(), more.end());
    return infos;
  }
  /// Returns the row of a key, or nullptr.
  [[nodiscard]] const Row* find(std::string_view key) const {
    for (const Row& row : rows_) {
      if (row.info.key == key) return &row;
    }
    return nullptr;
  }

  /// Returns the first option whose key the table lacks, or nullptr.
  [[nodiscard]] const Option* first_unknown(const Options& given) const {
    for (const Option& option : given.entries()) {
      if (find(option.key) == nullptr) return &option;
    }
    return nullptr;
  }

  /// Stores all values whose keys are in the table, in the table's order. Errors begin with "KEY=VALUE: ".
  /// The caller looks after the other keys.
  Status take(const Options& given, Target& target) const {
    for (const Row& row : rows_) {
      const std::string* const value = given.find(row.info.key);
      if (value != nullptr) TR_TRY(store(row, *value, target));
    }
    return {};
  }
  /// Stores one value. An error begins with "KEY=VALUE: ", unless the table lacks the key.
  Status set(const Option& option, Target& target) const {
    const Row* const row = find(option.key);
    return row == nullptr ? unknown_word("key", option.key, keys()) : store(*row, option.value, target);
  }
  /// Reads an options string that may have no other keys, as take() does. An unknown key comes before any
  /// wrong value.
  Status read(std::string_view text, Target& target) const {
    const Result<Options> given = Options::parse(text);
    TR_TRY(given.status());
    if (const Option* const other = first_unknown(*given)) return set(*other, target);
    return take(*given, target);
  }

 private:
  static Status store(const Row& row, const std::string& value, Target& target) {
    return row.set(target, value).in(text_of({std::string(row.info.key), value}));
  }

  std::span<const Row> rows_;
};

/// Stores a value that was parsed, or returns why there is none.
template <typename T, typename To>
Status take(const Result<T>& value, To& to) {
  TR_TRY(value.status());
  to = static_cast<To>(*value);
  return {};
}

/// Returns the same value, or the same error as one of Code::settings.
template <typename T>
Result<T> as_setting(Result<T> value) {
  if (value.is_ok()) return value;
  return settings_error(value.status().text());
}

}  // namespace tailrace
