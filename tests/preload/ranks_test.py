# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""An unchanged MPI program (argument 1) on several ranks under `tailrace run`: all see one file, and storage sees large blocks."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

RANKS, TRANSFER, BLOCKS = 3, 1000, 700


def place(pattern, rank, n):
    if pattern == "segmented":
        return (rank * BLOCKS + n) * TRANSFER
    if pattern == "strided":
        return (n * RANKS + rank) * TRANSFER
    return (rank * BLOCKS + n) * 7919 % (BLOCKS * RANKS) * TRANSFER


def expected(pattern):
    whole = bytearray(RANKS * BLOCKS * TRANSFER)
    for rank in range(RANKS):
        for n in range(BLOCKS):
            begin = rank * 31 + n * 7
            at = place(pattern, rank, n)
            whole[at:at + TRANSFER] = bytes((begin + i) & 255 for i in range(TRANSFER))
    return bytes(whole)


directory = fresh(os.path.abspath("files"))
for pattern, sync in (("segmented", "none"), ("strided", "fsync"), ("random", "small"), *((("random", "none"), ("random", "fsync")) if ALL else ())):
    path = f"{directory}/{pattern}-{sync}.bin"
    # Once with less memory than the file has bytes.
    small = ["--page", "4KiB", "--memory", "256KiB"] if sync == "small" else []
    code, out, err = run(RANKS, [COMMAND, "run", "--shared", f"{directory}/*.bin", *small, "--", MODEL, path, pattern, sync])
    check(code == 0, f"{pattern} {sync}: {code}, {out} {err}")
    check(contents(path) == expected(pattern), f"{pattern} {sync}: other bytes in the file")
    # One keeper has served all ranks: it alone prints a summary, once.
    told = re.findall(r"tailrace run: 1 file: (\d+) writes .* became (\d+) writes? \((\S+) MiB\)", err)
    check(len(told) == 1 and int(told[0][0]) == RANKS * BLOCKS, f"{pattern} {sync}: the summary is {err}")
    if sync == "small":
        continue
    # fsync of each rank stores what has changed by then.
    check(told and int(told[0][1]) <= (4 * RANKS if sync == "fsync" else 2), f"{pattern} {sync}: storage saw small writes: {err}")

faked = faked_nodes() if MPI == "openmpi" else None
if faked is not None:
    flags, settings = faked
    code, out, err = run(2, [COMMAND, "run", "--shared", f"{directory}/*.bin", "--", MODEL, f"{directory}/far.bin", "random", "none"],
                         launcher=flags, **settings)
    check(code != 0 and "1 of the job's 2 ranks are on this node" in err and "tr_shared_open" in err, f"two nodes: {code}, {err}")
    check(not os.path.exists(f"{directory}/far.bin"), "a job on two nodes began")
finish()
