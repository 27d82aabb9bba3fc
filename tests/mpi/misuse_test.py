# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Calls of tr_init and tr_log where they do not belong end in an error or a message, never in silence or a crash."""
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

STATE, MPI_FAILED = 3, 11


def log_at_any_time():
    code, out, err = run(2, [MODEL, "log"])
    check(code == 0, f"tr_log outside of MPI: {code}, {out} {err}")
    check(err.count("before MPI_Init") == 2, f"before MPI_Init no rank is known, and each process prints: {err}")
    check(err.count("after MPI_Finalize") == 1, f"behind MPI_Finalize rank 0 prints: {err}")
    check(out.count(f"tr_init returned {STATE}, compute null") == 2, f"tr_init behind MPI_Finalize: {out}")


def init_on_one_rank():
    code, out, err = run(3, [MODEL, "one"], TAILRACE_WATCHDOG="1s", TAILRACE_TIMEOUT="2s")
    check(code != 0, f"tr_init on one rank alone came through: {out} {err}")
    check(re.search(r"rank 0 has waited \d+ s for the other ranks in tr_init", err), f"the watchdog says nothing: {err}")
    check(re.search(r"rank 0 gives up \(TAILRACE_TIMEOUT\)", err), f"the time-out says nothing: {err}")


def init_twice():
    for servers in "0", "1":
        code, out, err = run(3, [MODEL, "twice"], TAILRACE_SERVERS=servers, TAILRACE_TIMEOUT="20s")
        told = re.findall(r"tr_init returned (\d+), compute (\w+)", out)
        check(code == 0, f"tr_init twice, {servers} servers: {code}, {out} {err}")
        check(sorted(told)[-3:] == [(str(STATE), "null")] * 3, f"tr_init twice, {servers} servers: {told}")
        check(out.count("tr_finalize returned 0") == 3, f"tr_init twice, {servers} servers: {out}")


def a_session_that_cannot_begin():
    code, out, err = run(3, [MODEL, "duplication"], TAILRACE_TIMEOUT="20s")
    check(code == 0 and "WRONG" not in out, f"communicators that fail: {code}, {out} {err}")
    # The session's alone, without servers and with one, for each of three victims: files and checkpoints make none.
    failed = re.findall(rf"duplication (\d) failed on rank -?\d: {MPI_FAILED}", out)
    check(failed == ["0"] * 6, f"what failed: {out}")


def a_window_that_cannot_be_made():
    """A communicator that one rank cannot duplicate is one that none has: the data travel in messages, and rank 0 says why."""
    code, out, err = run(3, [MODEL, "window"], TAILRACE_TIMEOUT="20s")
    check(code == 0 and "WRONG" not in out, f"a window's communicator fails: {code}, {out} {err}")
    check(len(re.findall(r"create for victim (?:-1|[0-2]) returned 0, calls left -1", out)) == 8, f"each rank has made the call: {out}")
    check(err.count("ranks send messages in place of handoff=onesided: MPI_Comm_dup failed") == 4, f"rank 0 says why: {err}")
    for victim in range(-1, 3):
        check(contents(f"window{victim}.raw") == struct.pack("<f", 1.5) * 48, f"window{victim}.raw has other bytes")


def ranks_in_different_calls():
    """Each rank is told both calls, the others come through tr_finalize, and nobody waits for ever."""
    ORDER = 4
    for case, call in (("create", "tr_stream_create"), ("layout", "tr_layout_block"), ("open", "tr_fopen"), ("open_comm", "tr_fopen")):
        for ranks in (3,) if case.startswith("open") else (2, 3):
            code, out, err = run(ranks, [MODEL, "alone", case], TAILRACE_TIMEOUT="20s")
            told = f"{call} on rank 0 of {ranks} alone: {code}, {out} {err}"
            check(code == 0, f"did not come through: {told}")
            texts = re.findall(r"rank 0: its call failed: .*ranks disagree: (.*)", out)
            check(len(texts) == 1 and call in texts[0] and "tr_finalize" in texts[0], f"rank 0 is not told both calls: {told}")
            for rank in range(1, ranks):
                check(f"rank {rank}: tr_finalize returned {ORDER}" in out, f"rank {rank} is not told: {told}")
            check("tr_fclose" not in err and "stdin" not in err, f"nobody has called that: {told}")


def the_first_array_on_one_rank():
    """What arrays need is made once all ranks have come to the same call."""
    code, out, err = run(3, [MODEL, "differ"], TAILRACE_TIMEOUT="20s")
    check(code == 0 and out.count(": failed: ") == 3, f"a first array beside another call: {code}, {out} {err}")
    check("tr_fwrite_array" in out and out.count("tr_finalize returned 0") == 3, f"a first array beside another call: {out} {err}")


def world_in_place_of_the_models_communicator():
    """The servers say what the model may wait for, a rank that is asked says where, and the time-out ends the job."""
    for where in "init", "step":
        code, out, err = run(3, [MODEL, "world", where], TAILRACE_SERVERS="1", TAILRACE_WATCHDOG="1s", TAILRACE_TIMEOUT="4s", TAILRACE_CHECK_WORLD="on")
        told = f"MPI_Barrier(MPI_COMM_WORLD) beside a server: {code}, {out} {err}"
        check(code != 0 and "tr_finalize returned" not in out, f"came through: {told}")
        check(len(re.findall(r"server 0: no compute rank has called the library for \d s.*MPI_COMM_WORLD", err)) == 1, f"not told once: {told}")
        check(re.search(r"server 0 gives up \(TAILRACE_TIMEOUT\)", err), f"the time-out says nothing: {told}")
        for rank in 0, 1:
            check(re.search(rf"compute rank {rank} has not called the library for \d s, and is in MPI_Barrier, called from .*misuse", err), f"the call is not found: {told}")


def exit_in_a_collective_call():
    """A rank that exits without tr_finalize waits for no rank that stays away: the launcher then ends the job."""
    began = time.monotonic()
    code, out, err = run(2, [MODEL, "exit"], limit=60, TAILRACE_SERVERS="0")
    told = f"exit(3) with method=mpiio: {code} in {time.monotonic() - began:.0f} s, {out} {err}"
    check(code == 3 and "rank 0: exits" in out and "WRONG" not in out, told)


log_at_any_time()
exit_in_a_collective_call()
init_on_one_rank()
init_twice()
world_in_place_of_the_models_communicator()
a_session_that_cannot_begin()
a_window_that_cannot_be_made()
ranks_in_different_calls()
the_first_array_on_one_rank()
finish()
