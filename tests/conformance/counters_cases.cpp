// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "counters_cases.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "ground/base/text.hpp"

namespace tailrace::comm {

namespace {

using Told = std::shared_ptr<std::optional<std::int64_t>>;

Told add(CountersEnd& end, int process, int counter, std::int64_t amount) {
  const Told told = std::make_shared<std::optional<std::int64_t>>();
  end.counters().add(process, counter, amount, [told](std::int64_t before) { *told = before; });
  return told;
}

std::int64_t wait(CountersEnd& end, const Told& told) {
  while (!told->has_value()) end.idle();
  return **told;
}

/// Makes a counter. All processes get the same number, since all make theirs alike.
int make(CountersEnd& end, std::int64_t value) {
  const Result<int> made = end.counters().make();
  end.check(made.is_ok(), cat("make: ", made.status().text()));
  const int counter = made.is_ok() ? *made : 0;
  end.counters().set(counter, value);
  end.meet();
  return counter;
}

/// What the adds of all processes to one counter have taken lies side by side, without a gap: what servers
/// rely on that write there.
void adds_of_all_processes_take_ranges_without_gap_or_overlap(CountersEnd& end) {
  constexpr std::int64_t begin = 1000;
  const int counter = make(end, begin);
  constexpr int times = 20;
  for (int process = 0; process < end.size(); ++process) {
    std::vector<std::int64_t> ranges;
    std::vector<Told> adds;
    for (int i = 0; i < times; ++i) {
      const std::int64_t amount = 1 + (end.rank() * 7 + i * 3) % 11;
      ranges.insert(ranges.end(), {0, amount});
      adds.push_back(add(end, process, counter, amount));
      if (i % 3 == 0) wait(end, adds.back());
    }
    for (std::size_t i = 0; i < adds.size(); ++i) ranges[2 * i] = wait(end, adds[i]);
    const std::vector<std::int64_t> all = end.gather(ranges);
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (std::size_t i = 0; i < all.size(); i += 2) taken.emplace_back(all[i], all[i + 1]);
    std::ranges::sort(taken);
    std::int64_t next = begin;
    for (const auto& [first, length] : taken) {
      end.check(first == next, cat("a range begins at ", first, ", expected ", next));
      next = first + length;
    }
    end.check(wait(end, add(end, process, counter, 0)) == next, "an add of nothing tells the value");
  }
  end.meet();
}

void an_add_goes_on_from_the_value_set_before_it_was_told(CountersEnd& end) {
  const int counter = make(end, 0);
  for (const std::int64_t value :
       {std::int64_t{5}, std::int64_t{1} << 45, std::int64_t{-3}, std::int64_t{0}}) {
    end.counters().set(counter, value + end.rank());
    end.meet();
    const int other = (end.rank() + 1) % end.size();
    const std::int64_t before = wait(end, add(end, other, counter, std::int64_t{1} << 40));
    end.check(before == value + other, cat("before ", before, ", set ", value + other));
    end.meet();
    const std::int64_t now = wait(end, add(end, end.rank(), counter, -1));
    end.check(now == value + end.rank() + (std::int64_t{1} << 40), cat("now ", now));
    end.meet();
  }
}

void counters_do_not_disturb_each_other(CountersEnd& end) {
  std::vector<int> counters;
  for (int i = 0; i < 5; ++i) counters.push_back(make(end, 100 * i));
  const int other = end.size() - 1 - end.rank();
  for (int round = 0; round < 4; ++round) {
    std::vector<Told> adds;
    for (std::size_t i = 0; i < counters.size(); ++i)
      adds.push_back(add(end, other, counters[i], static_cast<std::int64_t>(i)));
    for (std::size_t i = 0; i < counters.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const std::int64_t before = wait(end, adds[i]);
      end.check(before == 100 * number + round * number, cat("counter ", i, " has ", before));
    }
  }
  end.meet();
}

void a_counter_that_is_made_again_begins_at_zero(CountersEnd& end) {
  const int first = make(end, 7);
  wait(end, add(end, 0, first, 5));
  end.meet();
  end.counters().remove(first);
  const Result<int> again = end.counters().make();
  end.meet();
  end.check(again.is_ok() && *again == first, "its number is used again");
  const int last = end.size() - 1;
  if (end.rank() == 0) end.check(wait(end, add(end, last, first, 2)) == 0, "it begins at zero");
  end.meet();
}

void their_number_is_bounded(CountersEnd& end) {
  std::vector<int> made;
  for (int i = 0; i < Counters::most; ++i) made.push_back(*end.counters().make());
  std::ranges::sort(made);
  end.check(std::ranges::adjacent_find(made) == made.end(), "each is another");
  const Result<int> more = end.counters().make();
  end.check(more.status().code() == Code::unsupported, "one more is refused");
  end.meet();
  const int other = (end.rank() + 1) % end.size();
  end.check(wait(end, add(end, other, made.back(), 3)) == 0, "the last one counts");
  end.meet();
  end.counters().remove(made[17]);
  const Result<int> again = end.counters().make();
  end.check(again.is_ok() && *again == made[17], "one that was given back is made again");
  end.meet();
}

}  // namespace

const std::vector<CountersCase>& counters_cases() {
  static const std::vector<CountersCase> cases = {
      {"adds_of_all_processes_take_ranges_without_gap_or_overlap",
       adds_of_all_processes_take_ranges_without_gap_or_overlap},
      {"an_add_goes_on_from_the_value_set_before_it_was_told",
       an_add_goes_on_from_the_value_set_before_it_was_told},
      {"counters_do_not_disturb_each_other", counters_do_not_disturb_each_other},
      {"a_counter_that_is_made_again_begins_at_zero", a_counter_that_is_made_again_begins_at_zero},
      {"their_number_is_bounded", their_number_is_bounded},
  };
  return cases;
}

}  // namespace tailrace::comm
