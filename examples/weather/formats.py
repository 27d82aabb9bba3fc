# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The formats in which the sample forecast is written, and what a file holds: for demo.py and make_page.py."""
import dataclasses
import shutil
import subprocess


class Unreadable(Exception):
    """A file that a tool could not read, or that holds something else than it should, in one line."""


@dataclasses.dataclass(frozen=True)
class Format:
    name: str               # as --format takes it
    title: str              # as people write it
    ending: str
    bytes_per_value: float  # to choose a rate
    about: str              # of the figures, in a sentence
    counter: str | None = None   # a program that counts what a file holds, and its package
    package: str | None = None

    def files(self, directory):
        return sorted(directory.glob("*" + self.ending))

    def readers(self):
        """The programs with which `check` reads a file here."""
        if self.name == "grib2":
            return "ecCodes and cdo"
        return "cdo and ncdump" if shutil.which("ncdump") else "cdo"


FORMATS = {each.name: each for each in (
    Format("grib2", "GRIB2", ".grib2", 0.67,  # of a packed field here, measured
           "GRIB2 packs the values (CCSDS) to the accuracy that the model asks for; the times include that.",
           "grib_count", "libeccodes-tools"),
    Format("cdf5", "NetCDF", ".nc", 4.0,
           "NetCDF holds every value whole, in 4 bytes: about 6 times the bytes of GRIB2, and no time goes into packing."),
)}


def tool(*words):
    """The standard output of a short command; its error output only if it fails."""
    command = [str(word) for word in words]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise Unreadable(f"{' '.join(command)} failed: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def cdo(*words):
    return tool("cdo", "-s", *words)


@dataclasses.dataclass
class Contents:
    """What cdo finds in a file."""
    levels: dict            # of each variable, in the order of the file
    units: dict
    steps: list             # valid times, as texts

    @property
    def records(self):
        return len(self.steps) * sum(self.levels.values())


def contents(path):
    names = cdo("showname", path).split()
    counts = map(int, cdo("nlevel", path).split())
    units = {}
    name = None
    for line in cdo("partab", path).splitlines():
        key, _, value = (word.strip() for word in line.partition("="))
        name = value if key == "name" else name
        if key == "units":
            units[name] = value.strip('"')
    return Contents(dict(zip(names, counts)), units, cdo("showtimestamp", path).split())


def check(form, path, levels, steps):
    """The file holds these variables on so many levels, and so many steps, or Unreadable says what else. Returns what it
    holds."""
    found = contents(path)
    if found.levels != levels:
        raise Unreadable(f"{path}: cdo finds the fields {listed(found.levels)}, expected {listed(levels)}")
    if len(found.steps) != steps:
        raise Unreadable(f"{path} holds {len(found.steps)} steps, expected {steps}")
    if form.counter:
        messages = int(tool(form.counter, path))
        if messages != found.records:
            raise Unreadable(f"{path} holds {messages} messages, expected {found.records}")
    elif shutil.which("ncdump"):
        kind = tool("ncdump", "-k", path).strip()
        if kind not in ("cdf5", "64-bit data"):
            raise Unreadable(f"{path}: ncdump takes it for {kind}, expected cdf5")
    return found


def listed(levels):
    return ", ".join(name if count == 1 else f"{name} on {count} levels" for name, count in levels.items())
