// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// One stream that is written by one method in the simulated world (docs/design/003-simulated-world.md), on as
// many servers as it is told, on a machine with stated costs. Prints what it took by the clock of that
// machine.
//   --methods (prints the names of all methods, and nothing else)  --costs (prints the costs, likewise)
//   --method NAME  --servers N  --steps N  --records N (for each server in each step)  --record-mib N
//   --storage GB/s (of all processes)
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "arguments.hpp"
#include "engine/pipeline/method.hpp"
#include "sim/method_costs.hpp"

namespace {

using tailrace::sim::Costs;
using tailrace::sim::MethodResult;
using tailrace::sim::MethodShares;
using tailrace::sim::MethodTrial;

void print_methods() {
  const char* between = "[";
  for (const tailrace::pipeline::Method& each : tailrace::pipeline::methods()) {
    std::printf("%s\"%s\"", between, std::string(each.name).c_str());
    between = ", ";
  }
  std::printf("]\n");
}

void print_costs() {
  const Costs costs;
  std::printf(
      "{\"message_latency_us\": %.1f, \"message_gap_us\": %.2f, \"link_gb_s\": %.1f, \"adapter_gb_s\": %.1f, "
      "\"turn_us\": %.2f, \"encoded_gb_s\": %.2f, \"process_gb_s\": %.1f, \"storage_gb_s\": %.0f, "
      "\"call_us\": %.0f, \"sync_us\": %.0f}\n",
      static_cast<double>(costs.message_latency) * 1e-3, static_cast<double>(costs.message_gap) * 1e-3,
      costs.link_bytes_per_second * 1e-9, costs.adapter_bytes_per_second * 1e-9,
      static_cast<double>(costs.turn) * 1e-3, costs.encoded_bytes_per_second * 1e-9,
      costs.process_bytes_per_second * 1e-9, costs.storage_bytes_per_second * 1e-9,
      static_cast<double>(costs.call_latency) * 1e-3, static_cast<double>(costs.sync_latency) * 1e-3);
}

void print_shares(const char* name, const MethodShares& shares) {
  std::printf(
      "\"%s\": {\"encode\": %.4f, \"write\": %.4f, \"fsync\": %.4f, \"data\": %.4f, \"messages\": %.4f, "
      "\"idle\": %.4f}, ",
      name, shares.encoding, shares.writing, shares.syncing, shares.data, shares.messages, shares.idle);
}

double real_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int run(const MethodTrial& trial) {
  const double began = real_seconds();
  const MethodResult result = tailrace::sim::run_trial(trial);
  if (!result.status.is_ok()) {
    std::fprintf(stderr, "bench: %s\n", result.status.text().c_str());
    return 1;
  }
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  std::printf("{\"seconds\": %.6f, \"bytes\": %.0f, \"chunks\": %ld, \"calls\": %ld, ", result.seconds,
              result.bytes, static_cast<long>(result.chunks), static_cast<long>(result.collective_calls));
  print_shares("root", result.root);
  print_shares("servers", result.servers);
  std::printf("\"took_seconds\": %.1f, \"took_mib\": %ld}\n", real_seconds() - began, used.ru_maxrss / 1024);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--methods") == 0) return print_methods(), 0;
  if (argc == 2 && std::strcmp(argv[1], "--costs") == 0) return print_costs(), 0;
  const bench::Arguments given(argc, argv);
  MethodTrial trial;
  trial.method = given.text("--method", "scan");
  trial.servers = static_cast<int>(given.number("--servers", 1));
  trial.steps = static_cast<int>(given.number("--steps", trial.steps));
  trial.records = static_cast<int>(given.number("--records", trial.records));
  trial.record_bytes = given.number("--record-mib", trial.record_bytes >> 20) << 20;
  trial.costs.storage_bytes_per_second =
      1e9 * static_cast<double>(
                given.number("--storage", static_cast<long>(trial.costs.storage_bytes_per_second * 1e-9)));
  return run(trial);
}
