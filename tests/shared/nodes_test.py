# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A test program (argument 1) with as many cases as argument 2 says, of ranks on two nodes, or with --all also each on its own: shared files or global arrays,
whose pages or elements travel as messages, under Open MPI. Under MPICH the same programs run on two nodes without a script. Argument 4: the number of ranks
of a program with servers, which are on nodes of compute ranks."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

faked = faked_nodes()
if faked is None:
    print("nodes cannot be faked here: neither MPICH nor root with Open MPI", flush=True)
    sys.exit(77)
# The runs of MPICH have no threads. With argument 3 other nodes are answered by service threads.
ways = [("2", {"MPI_TEST_THREADS": "1"} if sys.argv[3:4] == ["service_threads"] else {})]
ranks = int(sys.argv[4]) if sys.argv[4:] else 4
if ALL:
    ways = [("2", {}), ("0", {}), ("2", {"MPI_TEST_THREADS": "1"})]


def run_on(nodes, flags, settings, threads, level):
    code, out, err = run(ranks, [os.path.abspath(sys.argv[1])], launcher=flags, TAILRACE_IO_THREADS=threads, **level, **settings)
    check(code == 0 and sys.argv[2] in out, f"on {nodes} nodes, {threads} threads, {level}: {code}, {out} {err}")


for threads, level in ways:
    run_on(2, *faked, threads, level)
    if ALL and not sys.argv[4:]:
        run_on(ranks, *faked_nodes(ranks), threads, level)
finish()
