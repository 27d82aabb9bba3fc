# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Arrays of several groups of ranks on two nodes, in a thread of each rank and in the callers, under Open MPI. Under MPICH
the same programs run on two nodes without a script."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

CASES = ["groups_of_the_same", "groups_that_overlap"]

faked = faked_nodes()
if faked is None:
    print("nodes cannot be faked here: neither MPICH nor root with Open MPI", flush=True)
    sys.exit(77)
flags, settings = faked
for program, way in zip(sys.argv[1:], ("the array calls themselves", "a thread of each rank"), strict=True):
    code, out, err = run(2, [os.path.abspath(program), *CASES], launcher=flags, TAILRACE_LOG="info", **settings)
    check(code == 0 and out.count("ok ") == len(CASES), f"{program} on two nodes: {code}, {out} {err}")
    check(f"exchanged between nodes by {way}" in err, f"{program}: not by {way}: {err}")
finish()
