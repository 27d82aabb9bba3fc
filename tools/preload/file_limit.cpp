// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The limit on the size of files (RLIMIT_FSIZE, ulimit -f). The kernel would enforce it, but writes to shared
// files do not reach the kernel. So this library does.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

#include "preload.hpp"

namespace tailrace::run {

namespace {

constexpr std::uint64_t unknown = 0;  // every other value is one more than the limit
std::atomic<std::uint64_t> known{unknown};

}  // namespace

std::int64_t file_limit() {
  std::uint64_t limit = known.load(std::memory_order_relaxed);
  if (limit == unknown) {
    rlimit now = {};
    if (getrlimit(RLIMIT_FSIZE, &now) != 0 || now.rlim_cur > static_cast<rlim_t>(INT64_MAX))
      now.rlim_cur = static_cast<rlim_t>(INT64_MAX);
    limit = std::uint64_t{now.rlim_cur} + 1;
    known.store(limit, std::memory_order_relaxed);
  }
  return static_cast<std::int64_t>(limit - 1);
}

void forget_file_limit() { known.store(unknown, std::memory_order_relaxed); }

int over_file_limit() {
  (void)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGXFSZ);
  return EFBIG;
}

}  // namespace tailrace::run

using namespace tailrace::run;

TR_CATCH(int, setrlimit, (int resource, const rlimit* limit)) {
  const int answer = real_setrlimit(resource, limit);
  forget_file_limit();
  return answer;
}
TR_ALSO(int, setrlimit64, setrlimit, (int resource, const rlimit* limit));
TR_CATCH(int, prlimit, (pid_t process, int resource, const rlimit* limit, rlimit* before)) {
  const int answer = real_prlimit(process, resource, limit, before);
  forget_file_limit();
  return answer;
}
TR_ALSO(int, prlimit64, prlimit, (pid_t process, int resource, const rlimit* limit, rlimit* before));
