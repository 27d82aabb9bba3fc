// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// What the routines of a report mean, and for whom a thread waits in them.
#pragma once

#include <span>
#include <string_view>

namespace tailrace::reports {

/// What a thread does in a routine. Waiting for MPI and for storage are never in one figure.
enum class Kind {
  program,
  work,
  waits_servers,
  waits_ranks,
  waits_input,
  waits_mpi,
  waits_storage,
  waits,
  idle
};

struct Routine {
  std::string_view name;  // in the report
  Kind kind = Kind::work;
  std::string_view who;  // whose time it is
  std::string_view meaning;
  std::string_view remedy;  // what to do where it is much
};

/// Returns the routines in the order of tables and charts.
std::span<const Routine> routines();
/// Returns the routine of that name; a name that a newer library has made counts as work, without a meaning.
const Routine& routine_named(std::string_view name);
/// Returns "waits for MPI" and the like: what tables say behind a routine. "" for the program and for work.
std::string_view text_of(Kind kind);

}  // namespace tailrace::reports
