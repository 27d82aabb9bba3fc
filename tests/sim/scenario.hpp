// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/stream.hpp"
#include "sim/world.hpp"
#include "streams/index.hpp"

namespace tailrace::sim {

/// A small forecast: what every rank defines and puts, and the bytes that must come out of it.
struct Scenario {
  std::string pattern = "fc.raw";
  std::vector<Variable> variables;
  int steps = 3;
  bool in_parts = false;  // ranks know only their own part of indexed layouts
  std::shared_ptr<const StreamPlan> plan;

  /// Makes the plan of `variables`.
  void prepare();
  /// A staging and a workspace that just hold one record.
  void squeeze(Shape& shape) const;
};

/// How many seeds a test tries: `usual`, or TAILRACE_SIM_SEEDS times as many, for a long search.
std::uint64_t seeds(std::uint64_t usual);

/// One value of the forecast.
float value_of(int field, Index level, std::int64_t step, Index element);

/// What rank `c` hands over of one field at one step: (level, owned elements).
std::vector<float> array_of(const StreamPlan& plan, int c, int field, std::int64_t step);

/// The records of one step, in put order, as one rank alone would write them.
ByteVector bytes_of_step(const StreamPlan& plan, std::int64_t step);

/// The bytes of a file in simulated storage; empty if there is none.
ByteVector read_file(storage::Target& target, const std::string& path);

/// Layouts of all kinds for `ranks` ranks, some of which may own nothing.
std::vector<Variable> random_variables(Scheduler& dice, int ranks);

/// Nodes with `ranks` ranks and `servers` servers in all, dealt out at random; a node may have none of
/// either.
std::vector<NodeShape> random_nodes(Scheduler& dice, int ranks, int servers);

/// What a rank was told.
struct Told {
  std::vector<Status> ends;  // by step: what end() returned, which may be an earlier step's verdict
  std::map<std::int64_t, Status> failures;  // by step: its own verdict
  Status waited;
  Status closed;
};
void expect_same(const Status& a, const Status& b, const std::string& where);
void expect_same(const Told& a, const Told& b, const std::string& where);

/// Expects that the file holds exactly the steps that did not fail, and that its index names them and nothing
/// else.
void expect_committed(storage::Target& target, const Scenario& scenario,
                      const std::map<std::int64_t, Status>& failures, const std::string& where);

/// The arrays of a rank; they live as long as the world.
using Arrays = std::map<std::pair<std::int64_t, int>, std::vector<float>>;

/// The whole program of a rank: define, all steps, wait, close, leave.
Task<> forecast(Rank& rank, const Scenario& scenario, Arrays& arrays, Told& told);

/// The same, waiting for each step to be durable before the next.
Task<> patient_forecast(Rank& rank, const Scenario& scenario, Arrays& arrays, Told& told);

/// Runs the forecast on all ranks and expects the right bytes and an index that names all steps.
void expect_right_bytes(const Shape& shape, const Scenario& scenario, const std::string& where);

}  // namespace tailrace::sim
