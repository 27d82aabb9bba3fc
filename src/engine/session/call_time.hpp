// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "engine/session/session.hpp"

namespace tailrace::session {

/// Counts the time that a compute rank spends in a call about a stream. A call that another one makes counts
/// as a part of it.
class CallTime {
 public:
  /// With `span`, the call is a span of this name in the trace.
  CallTime(Session& session, pipeline::Counters& counters, const char* span = nullptr)
      : session_(session),
        counters_(counters),
        span_(span),
        turn_(session.board().account(), routine(session)) {}
  ~CallTime() {
    const std::int64_t left = turn_.end();
    if (turn_.before() == comm::Routine::model) counters_.blocked += left - turn_.begin();
    if (span_ == nullptr) return;
    // Without memory the trace lacks the span. A destructor must not throw.
    static_cast<void>(guarded([&]() -> Status {
      session_.statistics().add_span(span_, 0, turn_.begin(), left);
      return {};
    }));
  }
  CallTime(const CallTime&) = delete;
  CallTime& operator=(const CallTime&) = delete;

  [[nodiscard]] std::int64_t begin() const { return turn_.begin(); }

 private:
  static comm::Routine routine(Session& session) {
    const comm::Routine current = session.board().account().current();
    return current == comm::Routine::model ? comm::Routine::message : current;
  }

  Session& session_;
  pipeline::Counters& counters_;
  const char* const span_;
  comm::Account::Turn turn_;
};

}  // namespace tailrace::session
