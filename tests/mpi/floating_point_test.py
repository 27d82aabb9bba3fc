# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The same bytes whether the model flushes denormals to zero (-Ofast), traps floating-point exceptions or does neither, inline and
with servers. Arguments: the plain program, and the one built with -Ofast."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

PLAIN, FAST = sys.argv[1:3]
files = ("simple.grib2", "ccsds.grib2")
fresh("reference")
code, _, err = run(1, [PLAIN, "reference"])
check(code == 0, f"the plain program on one rank: {code}, {err}")
for program, mode in ((PLAIN, ""), (PLAIN, "trap"), (FAST, "flush")):
    for servers in (0, 2):
        what = f"{os.path.basename(program)} {mode} with {servers} servers"
        directory = fresh("other")
        code, _, err = run(2 + servers, [program, directory, mode], TAILRACE_SERVERS=str(servers))
        check(code == 0, f"{what}: {code}, {err}")
        for name in files:
            check(contents(f"reference/{name}") == contents(f"{directory}/{name}"), f"{what}: other bytes in {name}")
finish()
