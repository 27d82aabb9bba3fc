# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What is said and done when something comes late: `deadline=` on a slow disk, TAILRACE_WATCHDOG and TAILRACE_TIMEOUT when a rank
does not come."""
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

LATE = r"lead (\d+) s is not durable 1 s after it ended \(deadline\)"


def deadline(servers):
    what = f"deadline=1s with {servers} servers"
    path = f"late/deadline-s{servers}.raw"
    slow = f"{STEP_BYTES / 2 / 1000:.3f}kB/s"  # a step takes two seconds
    # A disk that was told late that a step had been served makes up for it in the next: where the machine stops for a second, the second step comes in time.
    for _ in range(5):
        code, _, err = run(2 + servers, arguments(path, "format=raw deadline=1s", 1), TAILRACE_SERVERS=str(servers),
                           TAILRACE_THROTTLE=slow)
        check(code == 0 and raw_steps(path, 0, 1), f"{what}: {code}, {err}")
        late = sorted(re.findall(LATE, err))
        check(len(late) == len(set(late)), f"{what}: a late step is told twice: {err}")
        if late == ["0", "3600"]:
            break
    check(late == ["0", "3600"], f"{what}: each late step is told: {err}")
    code, _, err = run(2 + servers, arguments(path, "format=raw deadline=1m", 1), TAILRACE_SERVERS=str(servers),
                       TAILRACE_THROTTLE=slow)
    check(code == 0 and "deadline" not in err, f"{what}: a step in time is warned of: {code}, {err}")


def watchdog(servers, ranks, stalls, words):
    """The rank that does not come is named, and the job goes on when it does."""
    what = f"TAILRACE_WATCHDOG with {servers} servers and rank {stalls} asleep"
    path = f"late/watchdog-s{servers}-{stalls}.raw"
    code, _, err = run(ranks + servers, arguments(path, "format=raw", 2), TAILRACE_SERVERS=str(servers),
                       TAILRACE_WATCHDOG="1s", SMALL_MODEL_STALLS=f"{stalls}:4")
    check(code == 0 and raw_steps(path, 0, 2), f"{what}: {code}, {err}")
    check(re.search(words, err), f"{what}: no line has '{words}': {err}")
    code, _, err = run(ranks + servers, arguments(path, "format=raw", 2), TAILRACE_SERVERS=str(servers),
                       TAILRACE_WATCHDOG="off", SMALL_MODEL_STALLS=f"{stalls}:2")
    check(code == 0 and "wait" not in err.replace("the model waited", ""), f"{what}: said though it is off: {code}, {err}")


def timeout(servers):
    what = f"TAILRACE_TIMEOUT with {servers} servers"
    path = f"late/timeout-s{servers}.raw"
    started = time.time()
    code, _, err = run(3 + servers, arguments(path, "format=raw", 2), limit=90, TAILRACE_SERVERS=str(servers),
                       TAILRACE_TIMEOUT="2s", SMALL_MODEL_STALLS="1:100")
    took = time.time() - started
    check(code != 0 and took < 90, f"{what}: ended with {code} after {took:.0f} s: {err}")
    check(re.search(r"compute rank [02] gives up \(TAILRACE_TIMEOUT\) after waiting \d+ s for ", err), f"{what}: {err}")
    check((contents(path) or b"")[:STEP_BYTES] == whole[:STEP_BYTES], f"{what}: the step before it is not there")


fresh("late")
code, _, err = run(1, arguments("late/whole.raw", "format=raw", 2))
whole = contents("late/whole.raw") or b""
check(code == 0 and raw_steps("late/whole.raw", 0, 2), f"the run in which nothing is late: {code}, {err}")
for servers in (0, 1):
    deadline(servers)
    timeout(servers)
watchdog(1, 3, 1, r"server 0 waits:.* step at lead 3600 s: not ended by compute rank 1;")
watchdog(0, 3, 1, r"compute rank [02] has waited \d+ s for .*rank 1")
finish()
