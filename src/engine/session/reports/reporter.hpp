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

/// Makes the names of these files absolute: the program may change its directory before they are written.
void fix_places(Settings& settings);

/// Marks the report `path` of the running session as that of one that has failed. Does nothing if the file is
/// none. Many ranks may call this at once: one of them marks. Blocks for 0.2 s, in which the session's own
/// writer may replace the report once more, and for 2 s at most: storage may hang, and the job is to end.
void mark_failed(const std::string& path, const std::string& session, std::string_view why);

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

  /// Returns false while on_figures() would do nothing: the report before is still being written, or has
  /// taken long.
  [[nodiscard]] bool wants_figures() const;
  /// Has the report of the running session written from the figures that are known, if it wants some. A
  /// failure is a warning, once.
  void on_figures(pipeline::Figures all);
  /// Writes the report and the trace of the whole session, and logs the line. Blocks until they are written.
  void on_end(const std::map<int, pipeline::Statistics>& all);

 private:
  struct Running;

  Status write_end(const std::map<int, pipeline::Statistics>& all);

  const Settings& settings_;
  const std::shared_ptr<const ReportFacts> facts_;
  const Submit submit_;
  const std::shared_ptr<Running> running_;
};

}  // namespace tailrace::session
