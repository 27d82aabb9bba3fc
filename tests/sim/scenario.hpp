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

/// A small forecast: the fields and steps that every rank puts. The functions below return the bytes that the
/// file must have.
struct Scenario {
  std::string pattern = "fc.data";
  std::string format = "raw";
  std::string method = "";   // of the stream; "": the default one
  std::string handoff = "";  // likewise
  std::vector<Variable> variables;
  int steps = 3;
  bool in_parts = false;  // ranks know only their own part of indexed layouts
  std::shared_ptr<const StreamPlan> plan;
  std::string options = "";  // of the stream, beside those above

  /// Makes the plan of `variables`.
  void prepare();
};

/// Returns one of several formats, by number: one whose records follow one another, one whose records have
/// fixed places, one whose files get an ending, or one of a program's own encoder.
std::string any_format(std::uint64_t number);
/// Returns one of the methods, by number.
std::string any_method(std::uint64_t number);
/// Returns `name`, or for a format of stores the name with the ending that such a directory needs.
std::string name_for(const std::string& name, const std::string& format);

/// Gives the nodes of `job` the least staging memory with which all of its ranks can put `plan`.
void squeeze(Job& job, const StreamPlan& plan);

using Texts = std::vector<std::string>;
/// Joins the texts about ranks that have not ended, for messages.
std::string text_of(const Texts& stuck);

/// Returns how many seeds a test tries: `usual` with TEST_ALL (./dev test --all), otherwise a quarter of
/// them. For a long search set TAILRACE_SIM_SEEDS: the test then tries `usual` times its value.
std::uint64_t seeds(std::uint64_t usual);
/// Returns the count to expect of something that happens `usual` times with all seeds of seeds().
int of_seeds(int usual);

/// Returns one value of the forecast.
float value_of(int field, Index level, std::int64_t step, Index element);

/// Returns the array that compute rank `c` puts of one field at one step: (level, owned elements).
std::vector<float> array_of(const StreamPlan& plan, int c, int field, std::int64_t step);

/// Returns the records of one step, in put order, as one rank alone would write them.
ByteVector bytes_of_step(const StreamPlan& plan, std::int64_t step);

/// Returns the file of these steps, `interval` seconds apart, as one rank alone would write it in the plan's
/// format: with its ending if it is `finished`.
ByteVector bytes_of_file(const StreamPlan& plan, const std::vector<std::int64_t>& steps,
                         std::int64_t interval = 3600, bool finished = true);

/// Returns the bytes of a file in simulated storage, empty if there is none.
ByteVector read_file(storage::Target& target, const std::string& path);

/// Makes layouts of all kinds for `ranks` ranks, some of which may own nothing. No extent is above `longest`.
std::vector<Variable> random_variables(Scheduler& dice, int ranks, Index longest = 12);

/// Returns nodes with `ranks` ranks and `servers` servers in all, dealt out at random. A node may have no
/// rank or no server.
std::vector<NodeShape> random_nodes(Scheduler& dice, int ranks, int servers);
/// Likewise, but each node has a server, so that every handoff is possible. `servers` is above 0.
std::vector<NodeShape> nodes_with_servers(Scheduler& dice, int ranks, int servers);

/// What a rank was told by the calls of its forecast.
struct Told {
  Status created;
  std::vector<Status> ends;  // by step: what end() returned, which may be the verdict of an earlier step
  std::map<std::int64_t, std::string> failures;  // by step: the step's own verdict, if it failed
  Status waited;
  Status closed;
};
void expect_same(const Status& a, const Status& b, const std::string& where);
void expect_same(const Told& a, const Told& b, const std::string& where);

/// Expects that the file `name` holds exactly `steps`, `interval` seconds apart. With `has_any_order` the
/// records of a step may stand in any order, as `index` tells.
void expect_steps(storage::Target& target, const std::string& name, const StreamPlan& plan,
                  const streams::IndexContents& index, const std::vector<std::int64_t>& steps,
                  std::int64_t interval, bool has_any_order, const std::string& where);
/// True if the records of a step may stand in any order: the method may give them one, and the format has no
/// places for them.
bool has_any_order(const Scenario& scenario);

/// Expects that the file and its index hold exactly the steps that did not fail. A method may give the
/// records of a step any order.
void expect_committed(storage::Target& target, const Scenario& scenario,
                      const std::map<std::int64_t, std::string>& failures, const std::string& where);

/// The arrays of a rank. They must live as long as the world.
using Arrays = std::map<std::pair<std::int64_t, int>, std::vector<float>>;

/// Runs the whole program of a rank: define, all steps, wait, close.
void forecast(SessionRank& rank, const Scenario& scenario, Arrays& arrays, Told& told);

/// Runs the program of a rank from the first step on, after create(). If it is `patient`, it waits for each
/// step to be durable.
void forecast_steps(SessionRank& rank, PlannedStream& stream, const Scenario& scenario, Arrays& arrays,
                    Told& told, bool patient = false);

/// Runs the whole program and waits for each step to be durable before the next.
void patient_forecast(SessionRank& rank, const Scenario& scenario, Arrays& arrays, Told& told);

/// Runs the forecast on all ranks and expects the right bytes and an index that names all steps.
void expect_right_bytes(const Job& job, const Scenario& scenario, const std::string& where);

}  // namespace tailrace::sim
