// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The figures of a run as cells of tables, which the terminal and the page show.
#pragma once

#include <string>
#include <vector>

#include "figures.hpp"
#include "words.hpp"

namespace tailrace::reports {

/// A table with its heading. The first `left` columns are texts.
struct Titled {
  std::string title;
  Cells cells;
  std::size_t left = 1;
};

/// Returns what a run was, in a few lines: state, ranks, files, bytes and rates.
std::vector<std::string> headline(const Run& run);
/// Returns sentences about what the report does not have, or what is strange about it.
std::vector<std::string> remarks(const Run& run);

/// Returns the seconds of a role's routines, and behind them its waiting for MPI and for storage. What does
/// not fit into `width` is left out: first the median, then the least.
Titled role_table(const RoleFigures& role, std::size_t width = 100000);
/// Returns the seconds of each process of a role in each of its routines.
Titled process_table(const Run& run, const RoleFigures& role);
/// Return the streams that are written, and those that are read; without cells if there is none.
Titled output_table(const Run& run);
Titled input_table(const Run& run);
/// Returns a sentence for each stream that is written: its method and why, its files, its last durable step.
std::vector<std::string> stream_notes(const Run& run);

/// Return the tables of all rules and routines, in Markdown's words.
Cells rules_table();
Cells routines_table();
/// Returns such a table as paragraphs for a terminal of so many columns.
std::string paragraphs_of(const Cells& table, std::size_t width);

/// Returns all of a report as text for a terminal of so many columns; with `processes` also each process.
std::string report_text(const Run& run, bool processes, std::size_t width);

}  // namespace tailrace::reports
