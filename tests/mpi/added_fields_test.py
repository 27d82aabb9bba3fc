# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Fields and attributes that a stream gets while it runs: its next file has the bytes that it has in a run that defined all at the start, for any number of ranks and servers, and when the run was killed in between,
also if the run that goes on defines all at once; what no file can take is refused on every rank."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

# GRIB1 has the finder, the listings and the files of GRIB2.
FORMATS = {name: ending for name, ending in written_formats().items() if ALL or name != "grib1"}
FIRST, SECOND = "20260301", "20260302"


def ran(path, options="", steps=(22, 26), add=22, how="", ranks=3, servers=1, code=0):
    ended, _, out = run(ranks, [MODEL, path, f"base=2026-03-01 {options}", str(steps[0]), str(steps[1]), str(add), how], TAILRACE_SERVERS=str(servers))
    check((ended != 0 if code is None else ended == code), f"{path}, {options}, {how}: the model ended with {ended}: {out}")
    return out


def forget_copies():
    for copy in [each for each in os.listdir(".") if each.startswith("added.restart")]:
        (shutil.rmtree if os.path.isdir(copy) else os.remove)(copy)


def goes_on(path, options, last, add, how, servers=1, end=26):
    """A run that is killed behind `last`, and one that defines everything before its first step, in another order."""
    fresh(os.path.dirname(path))
    forget_copies()
    first = 22 if last >= 22 else last - 1
    ran(path, options, (first, last), add, how, code=None)
    more = options if how == "saved" else f"{options} existing=continue"
    return ran(path, more, (last + 1, end), 0, "swapped", ranks=2 + servers, servers=servers)


def expect_files(directory, ending, wanted, days=(FIRST, SECOND)):
    for day in days:
        check(image(f"{directory}/{day}.{ending}") == wanted[day], f"{directory}: the file of {day} differs")


for format, ending in FORMATS.items():
    name = f"{{valid:%Y%m%d}}.{ending}"
    options = f"format={format}"
    is_first = format == "cdf5"
    # The twin has all fields from the beginning. Until the second day nobody puts what the other run adds.
    fresh(f"{format}-twin")
    ran(f"{format}-twin/{name}", options, (24, 26), add=0, ranks=2)
    fresh(f"{format}-few")
    ran(f"{format}-few/{name}", options, (22, 23), add=99, ranks=2)
    wanted = {FIRST: image(f"{format}-few/{FIRST}.{ending}"), SECOND: image(f"{format}-twin/{SECOND}.{ending}")}
    check(None not in wanted.values() and {} not in wanted.values(), f"{format}: the twin has no files")
    for ranks, servers in scenes(is_first) if ALL else scenes(is_first)[-3:] if is_first else ((3, 2),):
        fresh(format)
        ran(f"{format}/{name}", options, ranks=ranks + servers, servers=servers)
        expect_files(format, ending, wanted)
        manifests = [name for name in os.listdir(format) if "manifest" in name]
        check(all(len(contents(f"{format}/{name}").splitlines()) == 2 for name in manifests), f"{format}: the manifest tells of a file twice, or not")

    # Runs that are killed behind the last step of a file, in the middle of one, and before any step of the new file.
    kills = ((23, 22, "saved"), (25, 22, "saved"), (22, 23, "saved"), (23, 22, "killed"), (25, 22, "killed"))
    for last, add, how in (kills if ALL else kills[1:4]) if is_first else kills[:1]:
        fresh(format)
        forget_copies()
        ran(f"{format}/{name}", options, (22, last), add, how, code=None)
        if how == "saved":
            ran(f"{format}/{name}", options, (22, 26), add, "restarted", ranks=4, servers=2)
        else:
            ran(f"{format}/{name}", f"{options} existing=continue", (last + 1, 26), add, ranks=2, servers=0)
        expect_files(format, ending, wanted)
    # The run that goes on defines everything at once: in a file without what comes later, in one that has it, behind the last step of a file, and without a checkpoint.
    restarts = ((22, 99, "saved"), (25, 22, "saved"), (23, 99, "saved"), (22, 99, "killed"), (25, 22, "killed"))
    for number, (last, add, how) in enumerate(restarts if ALL or is_first else (restarts[0], restarts[3]) if format == "zarr" else restarts[:1]):
        goes_on(f"{format}/{name}", options, last, add, how, servers=number % 4)
        expect_files(format, ending, wanted)
    if is_first:
        # A put of what the file lacks fails the step, as in a run that adds it. A stream with one file refuses the field, and so does one that lacks a field of the file.
        fresh(format)
        ran(f"{format}/{name}", options, (22, 22), 99, "killed", code=None)
        out = ran(f"{format}/{name}", f"{options} existing=continue", (23, 26), 0, "early", code=1)
        check(f"{format}/{FIRST}.{ending}" in out and "until then tr_stream_wants returns 0" in out, f"{format}: {out}")
        fresh(format)
        ran(f"{format}/one.{ending}", options, (22, 22), 99, "killed", code=None)
        out = ran(f"{format}/one.{ending}", f"{options} existing=continue", (23, 24), 0, code=1)
        check(f"{format}/one.{ending}" in out and "was begun without field 'late', all steps of a file have the same fields, and no file follows" in out, f"{format}: {out}")
        fresh(format)
        ran(f"{format}/{name}", options, (24, 24), 0, "killed", code=None)
        out = ran(f"{format}/{name}", f"{options} existing=continue", (25, 26), 99, code=1)
        check(f"{format}/{SECOND}.{ending}" in out and "was begun with field 'late', which the stream does not have now" in out, f"{format}: {out}")
        for how, text, days, servers in (("early", "begins with the next file", (SECOND,), 0), ("early", "begins with the next file", (SECOND,), 1),
                                         ("other", "", (FIRST,), 1), ("inside", "inside of a step", (FIRST,), 0),
                                         ("unput", "was not put before the first step of a file that has it", (FIRST,), 0),
                                         ("unput", "was not put before the first step of a file that has it", (FIRST,), 2)):
            fresh(format)
            out = ran(f"{format}/{name}", options, how=how, servers=servers, code=1)
            check(text in out, f"{format}, {how}: {out}")
            expect_files(format, ending, wanted, days)
        for servers in (0, 1) if ALL else (1,):
            fresh(format)
            out = ran(f"{format}/{name}", f"{options} interval=2h", how="unput", servers=servers, ranks=3 + servers, code=1)
            check("was not put before the first step of a file that has it" in out, f"{format}, unput in an interval: {out}")
            # A file that cannot be finished, and one that cannot be announced, are told behind the change as they are without it.
            fresh(format)
            os.environ["CUT_FILE"] = f"{format}/{FIRST}.{ending}"
            out = ran(f"{format}/{name}", options, how="cut", servers=servers, ranks=3 + servers, code=1)
            check(f"{FIRST}.{ending}" in out and not os.path.exists(f"{format}/{SECOND}.{ending}.trx") or "cut" in out, f"{format}, cut: {out}")
            fresh(format)
            os.environ["MARKER"] = f"{format}/{FIRST}.{ending}.ready"
            out = ran(f"{format}/{name}", f"{options} ready=.ready", how="marked", servers=servers, ranks=3 + servers, code=1)
            check(f"{FIRST}.{ending}.ready" in out, f"{format}, ready: {out}")
            expect_files(format, ending, wanted)
        out = ran(f"{format}/one.{ending}", options, code=1)
        check("no file follows on the one that it has" in out, f"{format}: {out}")

    if not (ALL or is_first or format == "zarr"):
        continue
    # Means: what the first interval of the new file takes is put in steps of the day before.
    fresh(f"{format}-twin")
    ran(f"{format}-twin/{name}", f"{options} interval=2h", add=0)
    fresh(f"{format}-few")
    ran(f"{format}-few/{name}", f"{options} interval=2h", (22, 22), add=99)
    for servers in (0, 2) if is_first and ALL else (1,):
        fresh(format)
        ran(f"{format}/{name}", f"{options} interval=2h", ranks=3 + servers, servers=servers)
        expect_files(format, ending, {FIRST: image(f"{format}-few/{FIRST}.{ending}"), SECOND: image(f"{format}-twin/{SECOND}.{ending}")})

    if is_first:
        # Killed in an interval that ends in the file, and in one with which the next file begins: what comes later has no values of its first half.
        means = f"{options} interval=2h"
        goes_on(f"{format}/{name}", means, 21, 99, "saved")
        expect_files(format, ending, {SECOND: image(f"{format}-twin/{SECOND}.{ending}")}, (SECOND,))
        goes_on(f"{format}/{name}", means, 23, 99, "saved", servers=0, end=48)
        expect_files(format, ending, {FIRST: image(f"{format}-few/{FIRST}.{ending}")}, (FIRST,))
        has_late = [b"late" in contents(f"{format}/{day}.{ending}") for day in (FIRST, SECOND, "20260303")]
        check(has_late == [False, False, True], f"{format}: killed in an interval with which a file begins: {has_late}")
        # In the middle of an interval nothing is defined. What is defined behind it, after a restart within it, is in later checkpoints.
        long = f"{options} interval=4h"
        fresh(format)
        out = ran(f"{format}/{name}", long, (21, 24), 22, code=1)
        check("in the middle of an interval" in out, f"{format}, in the first interval: {out}")
        fresh(format)
        forget_copies()
        ran(f"{format}/{name}", long, (21, 21), 99, "saved", code=None)
        out = ran(f"{format}/{name}", long, (22, 24), 22, "restarted", code=1)
        check("in the middle of an interval" in out, f"{format}, in the interval of a restart: {out}")
        fresh(format)
        forget_copies()
        for steps, add in (((21, 21), 99), ((22, 26), 24)):
            ran(f"{format}/{name}", long, steps, add, "saved", code=None)
        ran(f"{format}/{name}", long, (27, 48), 0, "restarted")
        check(b"late" in contents(f"{format}/20260303.{ending}"), f"{format}: a field that a restart within an interval adds")
        if os.environ.get("TEST_JSON") == "1":
            fresh(f"{format}-twin")
            ran(f"{format}-twin/{name}", f"{options} references=on")
            goes_on(f"{format}/{name}", f"{options} references=on", 22, 99, "saved")
            for day in (FIRST, SECOND):
                twin = contents(f"{format}-twin/{day}.{ending}.refs.json").replace(f"{format}-twin/".encode(), f"{format}/".encode()).replace(b"as it began", b"with more")
                check(contents(f"{format}/{day}.{ending}.refs.json") == twin, f"{format}: the references of {day}")

    if is_first or (ALL and format not in ("raw", "grib2", "grib1")):  # an attribute alone
        fresh(f"{format}-twin")
        ran(f"{format}-twin/{name}", options, (24, 26), 0, "few")
        fresh(format)
        ran(f"{format}/{name}", options, how="few")
        expect_files(format, ending, wanted, (FIRST,))
        check(image(f"{format}/{SECOND}.{ending}") == image(f"{format}-twin/{SECOND}.{ending}"), f"{format}: an attribute alone")

fresh("alone")
ran("alone/{valid:%Y%m%d}.raw", "format=raw", how="alone", code=None)
finish()
