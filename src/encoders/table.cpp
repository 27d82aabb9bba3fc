// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "encoders/table.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include "base/text.hpp"

namespace tailrace::encoders {

namespace {

constexpr std::size_t kMostLetters = 32;

struct Table {
  std::mutex mutex;
  std::map<std::string, Registered, std::less<>> entries;
};

Table& table() {
  static Table held;
  return held;
}

bool is_letter(unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; }

bool is_same(const Registered& known, const tr_encoder& functions, const void* user) {
  const tr_encoder& own = known.functions;
  return own.encode == functions.encode && own.bound == functions.bound && own.head == functions.head &&
         own.thread_begin == functions.thread_begin && own.thread_end == functions.thread_end &&
         known.user == user;
}

}  // namespace

Status add(std::string_view name, const tr_encoder* functions, void* user) {
  if (name.empty() || name.size() > kMostLetters || !std::ranges::all_of(name, is_letter)) {
    return {Code::argument, cat("'", name, "' is no name of an encoder: give 1 to ", kMostLetters,
                                " letters, digits, '_' and '-'")};
  }
  if (functions == nullptr || functions->encode == nullptr)
    return {Code::argument, cat("encoder '", name, "' has no function `encode`")};
  Table& held = table();
  const std::lock_guard guard(held.mutex);
  const auto [entry, is_new] =
      held.entries.try_emplace(std::string(name), Registered{std::string(name), *functions, user});
  if (is_new || is_same(entry->second, *functions, user)) return {};
  return {Code::state,
          cat("encoder '", name, "' is registered already, with other functions; choose another name")};
}

const Registered* find(std::string_view name) {
  Table& held = table();
  const std::lock_guard guard(held.mutex);
  const auto found = held.entries.find(name);
  return found == held.entries.end() ? nullptr : &found->second;
}

std::vector<std::string> names() {
  Table& held = table();
  const std::lock_guard guard(held.mutex);
  std::vector<std::string> all;
  for (const auto& [name, entry] : held.entries) all.push_back(name);
  return all;
}

}  // namespace tailrace::encoders
