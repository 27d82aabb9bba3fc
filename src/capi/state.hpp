// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "session/session.hpp"
#include "streams/stream.hpp"
#include "tailrace.h"

/// The handles of the C face.
struct tr_layout {
  tailrace::streams::PlacedLayout placed;
};
struct tr_stream {
  std::unique_ptr<tailrace::streams::Stream> stream;
};

namespace tailrace::capi {

/// What the library holds in this process: one session at a time.
struct State {
  std::unique_ptr<session::Session> session;
  std::vector<tr_stream*> streams;  // open ones, in the order of creation (the same on every rank)
  std::int64_t layouts_made = 0;
  bool served = false;  // a server rank that has returned from its work
};
State& state();

/// Keeps the text for tr_error() and returns the code.
int fail(const Status& status);
inline int result(const Status& status) { return status.is_ok() ? TR_OK : fail(status); }
/// The session, if this rank computes in one; otherwise TR_ERR_STATE is kept under the name of `call`.
session::Session* session_for(const char* call);

}  // namespace tailrace::capi
