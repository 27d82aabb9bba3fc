# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Programs that check themselves, with shared files whose pages lie on two nodes, under Open MPI."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

faked = faked_nodes()
if faked is None:
    print("nodes cannot be faked here: neither MPICH nor root with Open MPI", flush=True)
    sys.exit(77)
flags, settings = faked
stops = [program for program in sys.argv[1:] if os.path.basename(program) == "donio_stops"]
for program in stops:
    # Most programs for DONIO have MPI_Barrier for a barrier, and call MPI_Init.
    code, out, err = run(4, [os.path.abspath(program), "barrier"], launcher=flags, **settings)
    check(code != 0 and "OMPI_MPI_THREAD_LEVEL=3" in err, f"a program that waits in MPI_Barrier is refused on two nodes: {code}, {out} {err}")
    code, out, err = run(4, [os.path.abspath(program), "barrier"], launcher=flags, OMPI_MPI_THREAD_LEVEL="3", **settings)
    check(code == 0 and "the program went on" in out, f"it works with threads: {code}, {out} {err}")
for program in sys.argv[1:]:
    if program in stops:
        continue
    grid = ["41", "41", "31"] if os.path.basename(program).startswith("fem") else []
    code, out, err = run(4, [os.path.abspath(program), *grid], launcher=flags, TAILRACE_DONIO_ERRORS="return", **settings)
    check(code == 0, f"{os.path.basename(program)} on two nodes: {code}, {out} {err}")
finish()
