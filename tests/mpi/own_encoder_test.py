# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Encoders of the program's own, in C, C++ and Fortran: the same bytes for any number of ranks and servers, errors that every
rank gets, files that are continued, and what the tailrace command makes of them."""
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

PROGRAMS = sys.argv[1:]  # C first
SETTINGS, FORMAT, DATA = 2, 6, 7
SCENES = ((1, 0), (3, 0), (2, 1), (3, 2))  # ranks that compute, servers
FIELDS = (("t", (1000.0, 850.0)), ("q", (0.0,)))


def value(field, level, step, j, i):
    return step + 100 * level + (8 * j + i) // 3 + 0.25 if field == "t" else float(j * step)


def record(field, number, level, step):
    """The bytes that the encoders give, made by nobody's library."""
    values = [value(field, number, step, j, i) for j in range(6) for i in range(8)]
    out = field.encode() + struct.pack("=dq", level, 3600 * step)
    while values:
        run = next((i for i, other in enumerate(values) if other != values[0]), len(values))
        out += struct.pack("=id", run, values[0])
        values = values[run:]
    return out


def file(steps):
    return b"t q " + b"".join(record(field, number, level, step) for step in steps for field, levels in FIELDS
                              for number, level in enumerate(levels))


def launch(program, ranks, servers, path, mode="ok", first=0, last=3, options="", **settings):
    """Runs a program. Returns what each compute rank said: {"step 2": (code, text), ...}, the same on all."""
    args = [program, path, f"base=2026-03-01 format=runs mode=fine {options}", mode, str(first), str(last)]
    code, out, err = run(ranks + servers, args, TAILRACE_SERVERS=str(servers), TAILRACE_TIMEOUT="30s", **settings)
    check(code == 0, f"{args} on {ranks} ranks, {servers} servers: {code}, {out} {err}")
    said = {}
    for rank, call, number, text in re.findall(r"rank (\d+): (\w+ \d+): (\d+) (.*)", out):
        said.setdefault(int(rank), {})[call] = (int(number), text.strip())
    all_said = list(said.values())
    check(len(all_said) == ranks and all(each == all_said[0] for each in all_said), f"{args}: ranks differ: {said} {err}")
    return all_said[0] if all_said else {}


def bytes_are_the_same_for_any_ranks_servers_and_languages():
    directory = fresh("own-bytes")
    for program in PROGRAMS:
        for ranks, servers in SCENES:
            path = f"{directory}/{os.path.basename(program)}-{ranks}-{servers}"
            launch(program, ranks, servers, path)
            check(contents(path) == file(range(4)), f"{path} has other bytes")


def a_failing_encoder_fails_its_step_on_every_rank_and_no_other():
    directory = fresh("own-failing")
    for program in PROGRAMS:
        for ranks, servers in SCENES[1:]:
            path = f"{directory}/{os.path.basename(program)}-{ranks}-{servers}"
            said = launch(program, ranks, servers, path, "fail")
            code, text = said["step 2"]
            # An exception names no value.
            check(code == (FORMAT if program.endswith("_cpp") else DATA), f"{path}: {said}")
            check(all(word in text for word in ("format=runs", "'t'", "850", "7200", "too hot")), f"{path}: {text}")
            if not program.endswith("_cpp"):
                owner = 1 if ranks == 3 else 0  # of the value in row 1, column 3
                check("index 11" in text and f"rank {owner}" in text, f"the value's owner is not named: {text}")
            check([said[f"step {step}"][0] for step in (0, 1, 3)] == [0, 0, 0], f"{path}: {said}")
            check(contents(path) == file((0, 1, 3)), f"{path} holds other steps")


def an_encoder_that_exceeds_its_bound_fails_its_step():
    directory = fresh("own-bound")
    for ranks, servers in SCENES[1:3]:
        path = f"{directory}/{ranks}-{servers}"
        code, text = launch(PROGRAMS[0], ranks, servers, path, "big")["step 2"]
        check(code == FORMAT and "640 bytes" in text and "bound" in text, f"{path}: {code} {text}")
        check(contents(path) == file((0, 1, 3)), f"{path} holds other steps")
    code, text = launch(PROGRAMS[0], 2, 1, f"{directory}/head", "head")["define 0"]
    check(code == FORMAT and "no head for that" in text and "'t'" in text, f"a head that fails: {code} {text}")
    for program in PROGRAMS:
        code, text = launch(program, 2, 1, f"{directory}/bound", "bound")["define 0"]
        check(code == FORMAT and "no bound for that" in text and "'t'" in text, f"a bound that fails: {code} {text}")


def every_rank_hears_of_a_rank_that_lacks_the_encoder():
    directory = fresh("own-lacking")
    for ranks, servers, mode in ((3, 0, "without1"), (2, 1, "without2"), (2, 1, "without0"), (2, 1, "late")):
        code, text = launch(PROGRAMS[0], ranks, servers, f"{directory}/file", mode)["create 0"]
        check(code == SETTINGS and "tr_encoder_register" in text and "runs" in text, f"{mode}: {code} {text}")
        lacking = 2 if mode == "late" else int(mode[-1])
        check(f"rank {lacking}" in text, f"{mode}: rank {lacking} is not named: {text}")
    check(os.listdir(directory) == [], f"files were made: {os.listdir(directory)}")


def a_file_is_continued_with_its_head_and_steps():
    directory = fresh("own-continued")
    for program in PROGRAMS:
        path = f"{directory}/{os.path.basename(program)}"
        launch(program, 2, 1, path, last=1)
        said = launch(program, 3, 0, path, first=2, last=3, options="existing=continue")
        check(contents(path) == file(range(4)), f"{path} was not continued: {said}")


def the_command_reads_the_index_and_needs_no_encoder():
    directory = fresh("own-command")
    path = f"{directory}/file"
    launch(PROGRAMS[0], 2, 1, path)
    shown = subprocess.run([COMMAND, "index", "--records", path], capture_output=True, text=True)
    check(shown.returncode == 0 and "runs" in shown.stdout and "850" in shown.stdout, f"index: {shown.stdout} {shown.stderr}")
    for args in (["verify", path], ["wait", "--timeout", "5s", "--base", "2026-03-01", "--lead", "3h", path], ["repair", path]):
        done = subprocess.run([COMMAND, *args], capture_output=True, text=True)
        check(done.returncode == 0, f"{args}: {done.returncode} {done.stdout} {done.stderr}")
    check(contents(path) == file(range(4)), "a command has changed the file")
    os.remove(f"{path}.trx")
    code, text = launch(PROGRAMS[0], 2, 1, path, first=4, last=4, options="existing=continue").get("step 4", (0, ""))
    check(code != 0 and path in text, f"a file that has lost its index was continued: {text}")
    check(contents(path) == file(range(4)), "a file without an index was changed")


bytes_are_the_same_for_any_ranks_servers_and_languages()
a_failing_encoder_fails_its_step_on_every_rank_and_no_other()
an_encoder_that_exceeds_its_bound_fails_its_step()
every_rank_hears_of_a_rank_that_lacks_the_encoder()
a_file_is_continued_with_its_head_and_steps()
if COMMAND:
    the_command_reads_the_index_and_needs_no_encoder()
finish()
