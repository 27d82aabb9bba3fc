# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A program that has put a field without time, and not come to the fields of its steps, loses no step of an earlier run: neither by the close of its stream nor by tr_finalize, and not behind a checkpoint. A file of fields without time alone that a kill has left is written again."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

FILE, INDEX = "setups/a.nc", "setups/a.nc.trx"


def written(options, how, code=0):
    ended, _, out = run(1, [MODEL, FILE, f"base=2026-03-01 {options}", how], TAILRACE_SERVERS="0")
    check(ended != 0 if code is None else ended == code, f"{options}, {how}: the program ended with {ended}: {out}")
    return out


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def expect_kept(options, how, text, code=0):
    before, index = contents(FILE), contents(INDEX)
    out = written(options, how, code)
    check(text in out, f"{options}, {how}: nothing says '{text}': {out}")
    check(contents(FILE) == before and contents(INDEX) == index, f"{options}, {how}: the file of the earlier run is another one: {out}")


REFUSED = "a.nc: its file is not written, and one of an earlier run stays as it is: it has no step, and the definition of 't' has failed"
UNCLOSED = "a.nc: its file is not written, and one of an earlier run stays as it is"
for before, code in (("steps", 0), ("steps killed", None)):
    for options, how, text, ended in (("existing=continue", "refused", REFUSED, 0), ("existing=continue", "refused unclosed", UNCLOSED, 0), ("", "refused", REFUSED, 0),
                                      ("", "refused unclosed", UNCLOSED, 0), ("", "unclosed", UNCLOSED, 0), ("existing=continue", "", "was begun with field 't'", 1)):
        fresh("setups")
        written("", before, code)
        expect_kept(options, how, text, ended)
    fresh("setups")
    written("", f"{before} saved", code)
    expect_kept("", "saved refused", REFUSED)
    expect_kept("", "saved", "was begun with field 't'", 1)

# Who says that the file is to be replaced, and means it, replaces it; a definition that was mended counts.
fresh("setups")
written("", "steps")
long = len(contents(INDEX))
written("", "refused mended")
check(len(contents(INDEX)) < long, "a stream of fields without time did not replace the file")
whole, index = contents(FILE), contents(INDEX)

# A kill when the index was made, within the head, and behind the step: the run that goes on writes the file again.
header = struct.unpack_from("<I", index, 12)[0]
step = struct.unpack_from("<I", index, header + 4)[0]
for data, its in ((0, header), (len(whole) // 2, header), (len(whole), header), (len(whole), header + step)):
    write(FILE, whole[:data])
    write(INDEX, index[:its])
    written("existing=continue", "mended")
    check(contents(FILE) == whole and len(contents(INDEX)) == len(index), f"killed at {data} of {len(whole)} bytes, with {its} of {len(index)} of the index")
finish()
