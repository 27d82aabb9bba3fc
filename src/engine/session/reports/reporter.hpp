// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/session/reports/report.hpp"
#include "ground/base/status.hpp"
#include "ground/settings/settings.hpp"

namespace tailrace::session {

/// Returns success if the files that TAILRACE_REPORT and TAILRACE_TRACE name can be written. Leaves nothing
/// behind.
Status check_report(const Settings& settings);

/// Marks the report `path` of a running session as that of one that has failed. Does nothing if the file is
/// none. Blocks for 2 s at most: storage may hang, and the job is to end.
void mark_failed(const std::string& path, std::string_view why);

/// Writes the files of TAILRACE_REPORT and TAILRACE_TRACE, and the line at the end, on the one rank that has
/// the figures of all. The report is replaced while the session runs, and never half-written.
class Reporter {
 public:
  /// Runs a job on a thread that may wait.
  using Submit = std::function<void(std::function<void()> job)>;

  Reporter(const Settings& settings, ReportFacts facts, Submit submit);
  /// If the session has not come to its end, marks its report as failed.
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  /// Has the report of the running session written from the figures that are known. Does nothing if the one
  /// before is still being written. A failure is a warning, once.
  void on_figures(std::map<int, pipeline::Statistics> all);
  /// Writes the report and the trace of the whole session, and logs the line. Blocks until they are written.
  void on_end(const std::map<int, pipeline::Statistics>& all);

 private:
  struct Running;

  const Settings& settings_;
  const std::shared_ptr<const ReportFacts> facts_;
  const Submit submit_;
  const std::shared_ptr<Running> running_;
};

}  // namespace tailrace::session
