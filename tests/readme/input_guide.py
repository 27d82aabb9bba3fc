# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Checks the tables of docs/input.md: the library takes the example of each option, and each error in the table comes where
the table says."""
import re
import subprocess
import sys
from pathlib import Path

from streams_guide import code, table

PATTERN = "c_{base:%Y%m%d%H}+{lead:03h}.grib2"
BASE = "base=2026-03-01T00:00Z"


def fail(text):
    sys.exit(f"FAILED: docs/input.md: {text}")


def trials(page):
    """Yields (what is checked, the line for one_get, "ok" or a part of the error)."""
    for row in table(page, "Options of the stream"):
        example = code(row[2])
        stream = example if "base=" in example else f"{BASE} {example}"
        lead = "" if "calendar=" in example else "21600000" if example == "lead_unit=ms" else "21600"
        # GRIB's times have a date.
        refused = "a stream with time=model does not have" if example == "time=model" else "ok"
        yield example, (PATTERN, stream, lead, "t", "levels=pressure:500"), refused
    for row in table(page, "Options of a field"):
        example = code(row[2])
        name = "t" if "pressure" in example else "rain" if "name=" in example else "tp"
        # The forecast has no layers and no percentiles.
        refused = "depthBelowLand" if "bottom=" in example else "percentile" if "percentile=" in example else "ok"
        yield example, (PATTERN, BASE, "21600", name, example), refused
    between = (PATTERN, f"{BASE} between=linear", "30000", "t", "levels=pressure:500")
    yield "a lead between two steps", between, "ok"
    yield "the same without between=linear", (PATTERN, BASE, "30000", "t", "levels=pressure:500"), "30000"
    yield "no such file", ("none_{lead:03h}.grib2", BASE, "", "t", ""), "no file has a name of the pattern"
    yield "no such field", (PATTERN, BASE, "21600", "q", "levels=pressure:500"), "'q'|\"q\""
    yield "no such level", (PATTERN, BASE, "21600", "t", "levels=pressure:700"), "700"
    yield "an unknown key", (PATTERN, f"{BASE} prefech=2", "", "t", ""), "prefetch"


def check(source, here, env, launcher):
    """Checks the page. The directory `here` has the files that the programs of docs/streams.md have written."""
    page = (source / "docs/input.md").read_text()
    program = here / "one_get"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "tailrace"], env=env, text=True, check=True,
                           stdout=subprocess.PIPE).stdout.split()
    subprocess.run(["mpicc", str(Path(__file__).with_name("one_get.c")), "-o", str(program), *flags], env=env, check=True)
    tried = list(trials(page))
    answer = subprocess.run([*launcher, "-n", "1", str(program)], input="".join("\t".join(line) + "\n" for _, line, _ in tried),
                            text=True, cwd=here, env=env, stdout=subprocess.PIPE)
    told = answer.stdout.splitlines()
    if answer.returncode or len(told) != len(tried):
        fail(f"one_get ended with {answer.returncode} after {len(told)} of {len(tried)} lines: {told}")
    for (what, _, expected), text in zip(tried, told):
        if not re.search(expected if expected != "ok" else "^ok$", text):
            fail(f"{what}: expected '{expected}', got '{text}'")
