// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/encoders/table.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <mutex>

#include "ground/base/text.hpp"

namespace tailrace::encoders {

namespace {

constexpr std::size_t kMostLetters = 32;

struct Table {
  std::mutex mutex;
  std::map<std::string, Registered, std::less<>> entries;
};

Table& table() {
  static Table& held = *new Table;
  return held;
}

bool is_letter(unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; }

bool is_same(const Registered& known, const tr_encoder& functions, const void* user) {
  const tr_encoder& own = known.functions;
  return own.encode == functions.encode && own.bound == functions.bound && own.head == functions.head &&
         own.thread_begin == functions.thread_begin && own.thread_end == functions.thread_end &&
         known.user == user;
}

/// Copies the functions that this library knows to `known`. The program may have been compiled with the
/// header of another version, and so may have fewer functions or more.
Status copy_known(const tr_encoder* functions, tr_encoder& known) {
  if (functions == nullptr) return {Code::argument, "no functions were given"};
  const std::size_t size = functions->size;
  constexpr std::size_t least = sizeof(std::size_t) + 5 * sizeof(void*);  // of the first version
  static_assert(least <= sizeof(tr_encoder));
  constexpr std::size_t most = 1024;
  if (size < least || size > most || size % sizeof(void*) != 0)
    return {Code::argument, cat("its tr_encoder says that it has ", counted(size, "byte"), ", where it has ",
                                least, ": begin it with TR_ENCODER, as tr_encoder functions = TR_ENCODER;")};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(functions);
  if (size > sizeof known &&
      std::any_of(bytes + sizeof known, bytes + size, [](unsigned char byte) { return byte != 0; }))
    return {Code::unsupported,
            "it has functions of which this Tailrace knows nothing: the program was compiled "
            "with a later version of tailrace/encoders.h"};
  std::memcpy(&known, functions, std::min(size, sizeof known));
  return {};
}

}  // namespace

Status add(std::string_view name, const tr_encoder* functions, void* user) {
  if (name.empty() || name.size() > kMostLetters || !std::ranges::all_of(name, is_letter)) {
    return {Code::argument, cat("'", name, "' is no name of an encoder: give 1 to ", kMostLetters,
                                " letters, digits, '_' and '-'")};
  }
  tr_encoder known = TR_ENCODER;
  TR_TRY(copy_known(functions, known).in(cat("encoder '", name, "'")));
  if (known.encode == nullptr) return {Code::argument, cat("encoder '", name, "' has no function `encode`")};
  Table& held = table();
  const std::lock_guard guard(held.mutex);
  const auto [entry, is_new] =
      held.entries.try_emplace(std::string(name), Registered{std::string(name), known, user});
  if (is_new || is_same(entry->second, known, user)) return {};
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
