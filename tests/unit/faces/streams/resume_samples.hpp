// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "faces/streams/files/file_ledger.hpp"
#include "support/crash.hpp"

// A forecast, usually of six steps in three files, which is written as the root of a stream does it.
namespace tailrace::streams {

constexpr int kSteps = 6;

struct Plan {
  std::optional<Position> from{};  // without a value: a fresh run
  int until = kSteps;              // the run ends behind this many steps
  int differs_from = kSteps;       // steps from this one on have other bytes
  bool ahead = false;              // the next file is begun before the last one is finished
  bool stays_open = false;         // the run is killed before the stream is closed
  bool finishes = false;           // with stays_open: the last file is finished nevertheless
  std::string field = "t";
  std::vector<bool> others{};  // by step: true if it has other bytes; replaces differs_from
  int per_day = 2;             // steps in a day, and so in one file
  int first = 0;               // the first step of a run that continues from no checkpoint
  std::string options{};       // further options beside the usual ones, such as format=raw
  bool looks_behind = false;   // with existing=continue: for files that earlier runs have left unfinished
};

struct Outcome {
  Status status;
  std::vector<Position> durable;  // positions that a checkpoint may have recorded
};

std::int64_t lead_of(int step, int per_day = 2);
std::string path_of(int step, int per_day = 2);
Position position_behind(int steps, int per_day = 2);
std::shared_ptr<storage::CrashTarget> make_disk();
/// Makes a ledger. `left_behind` are files of earlier runs. With `decided` it is the ledger
/// of a server that takes the stream over after so many steps.
std::unique_ptr<pipeline::Ledger> make_sample_ledger(std::shared_ptr<storage::Target> target,
                                                     const std::optional<Position>& from,
                                                     const std::string& field = "t",
                                                     const std::string& options = "",
                                                     std::optional<int> decided = {},
                                                     const std::vector<LeftBehind>& left_behind = {});

/// Runs until the first error, as after a loss of power.
Outcome forecast(const std::shared_ptr<storage::Target>& target, const Plan& run);

/// Returns the files in the directory, all but the manifest.
std::map<std::string, ByteVector> files_of(storage::Target& target);
/// Returns the files of an undisturbed run.
const std::map<std::string, ByteVector>& truth();
/// Expects exactly the files of truth(), with the right bytes, and a manifest that lists each of them.
void expect_truth(storage::Target& target, const std::string& what);
void expect_files(storage::Target& target, const std::map<std::string, ByteVector>& expected,
                  const std::string& what);

}  // namespace tailrace::streams
