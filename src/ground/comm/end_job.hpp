// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <new>
#include <string>
#include <string_view>

namespace tailrace::comm {

/// Prints `why` on standard error and ends the whole job. Only for cases in which nothing else is possible.
/// Does not return.
[[noreturn]] void end_job(std::string_view why);

/// Ends the whole job. The caller has printed the reason. Does not return.
[[noreturn]] void end_job();

/// Has end_job() call `tell` with its reason, or with "" if it is not known, before the job ends. One owner
/// at a time; without `tell` nothing is called for this owner any more. Any thread.
void before_job_ends(const void* owner, std::function<void(std::string_view why)> tell);

/// Gives the reason for an end_job() that gets none.
void note_why_job_ends(std::string_view why);

/// Runs `body`, on whose effect other ranks already count. If memory runs out, the job ends, because the
/// other ranks would wait forever.
template <typename Body>
auto committed(std::string_view call, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    end_job(std::string(call) + ": out of memory while the other ranks count on this one's part");
  }
}

}  // namespace tailrace::comm
