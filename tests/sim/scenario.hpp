// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/index/index.hpp"
#include "formats/registry/registry.hpp"
#include "planned_stream.hpp"
#include "session_world.hpp"

namespace tailrace::sim {

/// A small forecast: the definitions and puts of every rank, and the bytes that must come out of it.
struct Scenario {
  std::string pattern = "fc.data";
  std::string format = "raw";
  std::vector<Variable> variables;
  int steps = 3;
  bool in_parts = false;  // ranks know only their own part of indexed layouts
  std::shared_ptr<const StreamPlan> plan;

  /// Makes the plan of `variables`.
  void prepare();
};

/// Returns a format whose records follow one another, one in which they have fixed places, one whose files
/// are finished by an ending, or one of a program's own.
std::string any_format(std::uint64_t number);
/// Returns a name for a file of a format: a directory of objects has an ending of its own.
std::string name_for(const std::string& name, const std::string& format);

/// Gives the nodes of `job` the least staging memory with which all of its ranks can put `plan`.
void squeeze(Job& job, const StreamPlan& plan);

using Texts = std::vector<std::string>;
/// Lists the ranks that have not ended, for messages.
std::string text_of(const Texts& stuck);

/// Returns how many seeds a test tries: `usual` with TEST_ALL (./dev test --all), else half of them;
/// TAILRACE_SIM_SEEDS times `usual` for a long search.
std::uint64_t seeds(std::uint64_t usual);
/// Returns the count that is expected of as many seeds, if it is `usual` with all of them.
int of_seeds(int usual);

/// Returns one value of the forecast.
float value_of(int field, Index level, std::int64_t step, Index element);

/// Returns what rank `c` hands over of one field at one step: (level, owned elements).
std::vector<float> array_of(const StreamPlan& plan, int c, int field, std::int64_t step);

/// Returns the records of one step, in put order, as one rank alone would write them.
ByteVector bytes_of_step(const StreamPlan& plan, std::int64_t step);

/// Returns the file of these steps, `interval` seconds apart, as one rank alone would write it in the plan's
/// format. Unless it is `finished` it lacks its ending.
ByteVector bytes_of_file(const StreamPlan& plan, const std::vector<std::int64_t>& steps,
                         std::int64_t interval = 3600, bool finished = true);

/// Returns the bytes of a file in simulated storage, empty if there is none.
ByteVector read_file(storage::Target& target, const std::string& path);

/// Makes layouts of all kinds for `ranks` ranks, some of which may own nothing. No extent is above `longest`.
std::vector<Variable> random_variables(Scheduler& dice, int ranks, Index longest = 12);

/// Makes nodes with `ranks` ranks and `servers` servers in all, dealt out at random. A node may have none of
/// either.
std::vector<NodeShape> random_nodes(Scheduler& dice, int ranks, int servers);

/// The answers that a rank got.
struct Told {
  Status created;
  std::vector<Status> ends;  // by step: result of end(), which may be an earlier step's verdict
  std::map<std::int64_t, std::string> failures;  // by step: its own verdict
  Status waited;
  Status closed;
};
void expect_same(const Status& a, const Status& b, const std::string& where);
void expect_same(const Told& a, const Told& b, const std::string& where);

/// Expects that the file holds exactly the steps that did not fail, and that its index names them and nothing
/// else.
void expect_committed(storage::Target& target, const Scenario& scenario,
                      const std::map<std::int64_t, std::string>& failures, const std::string& where);

/// The arrays of a rank; they live as long as the world.
using Arrays = std::map<std::pair<std::int64_t, int>, std::vector<float>>;

/// Runs the whole program of a rank: define, all steps, wait, close.
void forecast(SessionRank& rank, const Scenario& scenario, Arrays& arrays, Told& told);

/// Runs everything behind create().
void forecast_steps(SessionRank& rank, PlannedStream& stream, const Scenario& scenario, Arrays& arrays,
                    Told& told, bool patient = false);

/// Runs the whole program and waits for each step to be durable before the next.
void patient_forecast(SessionRank& rank, const Scenario& scenario, Arrays& arrays, Told& told);

/// Runs the forecast on all ranks and expects the right bytes and an index that names all steps.
void expect_right_bytes(const Job& job, const Scenario& scenario, const std::string& where);

}  // namespace tailrace::sim
