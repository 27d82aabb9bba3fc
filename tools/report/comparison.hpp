// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Two runs side by side. Routines and streams are matched by name. Times are compared as means of a process:
// sums of different numbers of ranks would mislead.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tables.hpp"

namespace tailrace::reports {

enum class Unit { count, seconds, bytes, bytes_per_second, share };

/// A figure of both runs; one that a run does not have is missing.
struct Compared {
  std::string name;
  Unit unit = Unit::count;
  std::optional<double> before;
  std::optional<double> after;
  std::optional<double> sum_before;  // of a time: over all processes
  std::optional<double> sum_after;
};

/// Figures with a heading: the whole run, a role, or a stream.
struct ComparedPart {
  std::string title;
  std::vector<Compared> figures;
};

struct Comparison {
  std::vector<std::string> changes;  // what changed, the most first
  std::vector<std::string> remarks;  // in what the jobs were not the same, and what a report lacks
  std::vector<ComparedPart> parts;
};

Comparison compare(const Run& before, const Run& after);
std::string text_of(Unit unit, const std::optional<double>& value);
/// Returns the tables of a comparison.
std::vector<Titled> comparison_tables(const Comparison& comparison);
/// Returns all of it as text for a terminal of so many columns.
std::string comparison_text(const Run& before, const Run& after, std::size_t width);

}  // namespace tailrace::reports
