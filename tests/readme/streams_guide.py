# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Checks the tables of docs/streams.md: the library takes each example, each default is the default, each pattern gives
its name, and each interval and each choice of servers is what the table says."""
import re
import shlex
import subprocess
import sys
from pathlib import Path

GRID = ("keys='gridType=regular_ll, latitudeOfFirstGridPointInDegrees=50, longitudeOfFirstGridPointInDegrees=5, "
        "iDirectionIncrementInDegrees=1, jDirectionIncrementInDegrees=1'")
LEAD = "21600"
# Options of fields that need something of the stream: a format that has them, or an interval.
STREAM_OPTIONS = {"over": "format=cdf5", "weights": "format=cdf5", "attributes": "format=cdf5", "time": "format=cdf5", "compress": "format=netcdf4", "chunks": "format=netcdf4", "operation": "interval=1h"}


def fail(text):
    sys.exit(f"FAILED: docs/streams.md: {text}")


def code(cell):
    """Returns the text in a cell's first backticks, or None."""
    found = re.search(r"`([^`]+)`", cell)
    return found and found.group(1)


def table(page, title):
    """Returns the rows of the first table below a title, as lists of cells, without the table's head."""
    section = re.split(r"^#+ ", page.split(f"# {title}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    lines = re.search(r"(?:^\|.*\n)+", section, re.M).group().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


class Trial:
    """The lines for one_step.c, and what to check after it has run."""

    def __init__(self):
        self.lines, self.what, self.checks = [], [], []

    def add(self, what, pattern=None, lead=LEAD, shape="6x8", stream="", name="t", field="", grid=GRID):
        pattern = pattern or f"t{len(self.lines):02}.out"
        if "base=" not in stream:
            stream = f"base=2026-03-01T00:00Z {stream}"
        self.lines.append("\t".join((pattern, lead, shape, stream, name, field, grid)))
        self.what.append(what)
        return pattern

    def run(self, launcher, program, folder, env):
        answer = subprocess.run([*launcher, "-n", "1", str(program)], input="\n".join(self.lines) + "\n", text=True,
                                cwd=folder, env=env, stdout=subprocess.PIPE)
        told = answer.stdout.splitlines()
        if answer.returncode or len(told) != len(self.lines):
            fail(f"one_step ended with {answer.returncode} after {len(told)} of {len(self.lines)} lines")
        for what, text in zip(self.what, told):
            if text != "ok":
                fail(f"{what} is refused: {text}")
        for check in self.checks:
            check(folder)


def same_bytes(what, one, other):
    def check(folder):
        if (folder / one).read_bytes() != (folder / other).read_bytes():
            fail(f"{what} is not the default")
    return check


def exists(what, name):
    def check(folder):
        if not (folder / name).exists():
            fail(f"{what} makes no file {name}")
    return check


def finds(what, name, key, wanted):
    def check(folder):
        found = subprocess.run(["grib_get", "-p", key, name], text=True, stdout=subprocess.PIPE, cwd=folder).stdout.split()
        if found != wanted:
            fail(f"{what}: {key} of the records is {found} instead of {wanted}")
    return check


def shows(what, name, text):
    def check(folder):
        header = subprocess.run(["ncdump", "-h", name], text=True, stdout=subprocess.PIPE, cwd=folder).stdout
        if text not in header:
            fail(f"{what}: the header of the file has no '{text}': {header}")
    return check


def try_options(trial, rows, place):
    """Adds each option's example, and its default, which must have the same effect as no value beside the example's
    other options."""
    for row in rows:
        key, default, example = code(row[0]), code(row[1]), code(row[3])
        stream = STREAM_OPTIONS.get(key, "")
        made = trial.add(example, **{"stream": stream, place: example})
        if key == "attributes":
            name, text = re.search(r"(\w+)='([^']+)'", example).groups()
            trial.checks.append(shows(example, made, f'{name} = "{text}"'))
        if default is None:
            continue
        beside = " ".join(word for word in shlex.split(example) if not word.startswith(f"{key}="))
        lead = "0" if key == "at_zero" else LEAD
        plain = trial.add(f"{example} without {key}", lead=lead, **{"stream": stream, place: beside})
        given = trial.add(f"{key}={default}", lead=lead, **{"stream": stream, place: f"{beside} {key}={default}"})
        trial.checks.append(same_bytes(f"{key}={default}", plain, given))


def try_tables(page):
    trial = Trial()
    try_options(trial, table(page, "Options of a stream"), "stream")
    try_options(trial, table(page, "Fields"), "field")
    for _, _, pattern, name in table(page, "Names"):
        trial.add(pattern, pattern=code(pattern), stream="member=7")
        trial.checks.append(exists(pattern, code(name)))
    for _, kind, _, field, example, coordinate in table(page, "Levels"):
        made = trial.add(example, name=code(field), field=code(example))
        levels = code(example).partition(":")[2]
        count = 40 if levels == "1-40" else len(levels.split(","))
        trial.checks.append(finds(example, made, "typeOfLevel", count * [code(kind)]))
        made = trial.add(f"{example} in NetCDF", stream="format=cdf5", name="a", field=code(example))
        if code(coordinate):
            trial.checks.append(shows(example, made, f'{code(coordinate)}:long_name = "{code(kind)}"'))
    for given, intervals in table(page, "Statistics"):
        made = trial.add(given, lead="21600,43200,86400", name="tp", field=code(given))
        trial.checks.append(finds(given, made, "stepRange", re.findall(r"`([^`]+)`", intervals)))
    for name, shape, example in table(page, "Grids"):
        trial.add(f"the grid '{name}'", shape=shape, grid=code(example))
    for row in table(page, "GRIB keys"):
        trial.add(row[2], stream=code(row[2]))
    marked = trial.add("ready=.ready", stream="ready=.ready")
    trial.checks.append(exists("ready=.ready", marked + ".ready"))
    trial.checks.append(exists("the example of hook=", "finished.txt"))
    return trial


def check_servers(page, command, env):
    """Checks which ranks serve, by the command that the page names."""
    for choice, ranks, _ in table(page, "How many servers, and where"):
        wanted = re.search(r"ranks? ([\d, ]+)$", ranks)
        if not wanted:
            continue
        plan = subprocess.run([command, "plan", "--ranks", "64", "--nodes", "4", "--options", f"servers={code(choice)}"],
                              text=True, stdout=subprocess.PIPE, env=env).stdout
        found = re.search(r"world ranks ([\d ]+)\)", plan)
        if not found or found.group(1).split() != wanted.group(1).replace(",", " ").split():
            fail(f"servers={code(choice)} makes other servers than {wanted.group(1)}: {plan.strip()}")


def check(source, here, env, launcher, command):
    """Checks the page. The directory `here` has the files that the page's programs have written."""
    page = (source / "docs/streams.md").read_text()
    (here / "vcoord.txt").write_text("# a and b, from the top\n0 0\n100 0.5\n0 1\n")
    program = here / "one_step"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "tailrace"], env=env, text=True, check=True,
                           stdout=subprocess.PIPE).stdout.split()
    subprocess.run(["mpicc", str(Path(__file__).with_name("one_step.c")), "-o", str(program), *flags], env=env, check=True)
    try_tables(page).run(launcher, program, here, env)
    if command:
        check_servers(page, command, env)
