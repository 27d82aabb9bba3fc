// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <array>
#include <charconv>

#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"

namespace tailrace::storage {

namespace {

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

constexpr std::array faults{Named<Fault>{"eio", Fault::io_error}, Named<Fault>{"enospc", Fault::no_space},
                            Named<Fault>{"edquot", Fault::quota}, Named<Fault>{"eintr", Fault::interrupted},
                            Named<Fault>{"short", Fault::short_write}};

constexpr std::array calls{
    Named<CallSet>{"open", set_of(Call::open)},
    Named<CallSet>{"write", set_of(Call::write)},
    Named<CallSet>{"sync", set_of(Call::sync)},
    Named<CallSet>{"truncate", set_of(Call::truncate)},
    Named<CallSet>{"close", set_of(Call::close)},
    Named<CallSet>{"rename", set_of(Call::rename)},
    Named<CallSet>{"remove", set_of(Call::remove)},
    Named<CallSet>{"sync_directory", set_of(Call::sync_directory)},
    Named<CallSet>{"make_directories", set_of(Call::make_directories)},
    Named<CallSet>{"read", set_of(Call::read)},
    Named<CallSet>{"size", set_of(Call::size)},
    Named<CallSet>{"exists", set_of(Call::exists)},
    Named<CallSet>{"list", set_of(Call::list)},
    Named<CallSet>{"space", set_of(Call::space)},
    Named<CallSet>{"lock", set_of(Call::lock)},
    Named<CallSet>{"changing", changing_calls},
    Named<CallSet>{"all", all_calls},
};

/// Removes the part of `text` before `separator` and returns it.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view first = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return first;
}

Status unknown(std::string_view what, std::string_view word, const std::vector<std::string_view>& known) {
  return {Code::settings, cat("fault plan: unknown ", what, " \"", word, "\"", did_you_mean(word, known))};
}

template <typename Table, typename Value>
Status look_up(std::string_view what, std::string_view word, const Table& table, Value& value) {
  std::vector<std::string_view> names;
  for (const auto& entry : table) {
    names.push_back(entry.name);
    if (entry.name != word) continue;
    value = entry.value;
    return {};
  }
  return unknown(what, word, names);
}

Status set_calls(std::string_view list, FaultPlan& plan) {
  plan.calls = 0;
  do {
    CallSet one = 0;
    TR_TRY(look_up("call", cut(list, ','), calls, one));
    plan.calls |= one;
  } while (!list.empty());
  return {};
}

Status set_nth(std::string_view text, FaultPlan& plan) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), plan.nth);
  if (error == std::errc{} && end == text.data() + text.size() && plan.nth > 0) return {};
  return {Code::settings, cat("fault plan: nth=", text, ": expected a whole number from 1 on")};
}

Status set(std::string_view key, std::string_view value, FaultPlan& plan) {
  if (key == "nth") return set_nth(value, plan);
  if (key == "fault") return look_up("fault", value, faults, plan.fault);
  if (key == "calls") return set_calls(value, plan);
  if (key != "for") return unknown("key", key, {"nth", "fault", "calls", "for"});
  if (value != "good" && value != "once") return unknown("duration", value, {"good", "once"});
  plan.for_good = value == "good";
  return {};
}

}  // namespace

Result<FaultPlan> parse_fault(std::string_view text) {
  FaultPlan plan;
  while (!text.empty()) {
    std::string_view word = cut(text, ' ');
    if (word.empty()) continue;
    const std::string_view key = cut(word, '=');
    TR_TRY(set(key, word, plan));
  }
  if (plan.nth == 0)
    return Status(Code::settings, "fault plan: nth=N is missing, as in \"nth=3 fault=enospc calls=write\"");
  return plan;
}

}  // namespace tailrace::storage
