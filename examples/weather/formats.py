# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The formats in which the sample forecast is written, and what a file holds: for demo.py and make_page.py. A store of Zarr, a
directory, counts as a file."""
import contextlib
import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import math
import shutil
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

from zarr_store import objects
from zarr_to_netcdf import convert


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
    kinds: tuple = ()            # what `ncdump -k` may call a file

    def files(self, directory):
        return sorted(directory.glob("*" + self.ending))

    def readers(self):
        """The programs with which `check` reads a file here."""
        if self.name == "grib2":
            return "ecCodes and cdo"
        if self.name == "zarr":
            return "cdo (by way of classic NetCDF)" + (", zarr-python and xarray" if have_xarray() else "")
        return "cdo and ncdump" if shutil.which("ncdump") else "cdo"


FORMATS = {each.name: each for each in (
    Format("grib2", "GRIB2", ".grib2", 0.67,  # of a packed field here, measured
           "GRIB2 packs the values (CCSDS) to the accuracy that the model asks for; the times include that.",
           "grib_count", "libeccodes-tools"),
    Format("cdf5", "NetCDF", ".nc", 4.0,
           "NetCDF holds every value whole, in 4 bytes: about 6 times the bytes of GRIB2, and no time goes into packing.",
           kinds=("cdf5", "64-bit data")),
    Format("netcdf4", "NetCDF-4", ".nc4", 1.1,  # measured, as below
           "NetCDF-4 keeps the bits of each value that the model's accuracy needs and compresses them; the times include that.",
           kinds=("netCDF-4",)),
    Format("zarr", "Zarr", ".zarr", 3.5,
           "Zarr compresses the values and keeps every bit of them; the times include that. cdo reads no Zarr 3: it gets the stores "
           "as classic NetCDF."),
)}


def have_xarray():
    """Whether zarr-python 3 and xarray are installed."""
    if None in map(importlib.util.find_spec, ("zarr", "xarray")):
        return False
    return int(importlib.metadata.version("zarr").split(".")[0]) >= 3


def parts(path):
    """The names of what is digested of a file: of all objects of a store, or "" for the file itself."""
    return objects(path) if path.is_dir() else [""]


def digest(path):
    """SHA-256 of a file, or of the names, sizes and bytes of all objects of a store."""
    sha = hashlib.sha256()
    for name in parts(path):
        if name:
            sha.update(f"{name}\0{(path / name).stat().st_size}\0".encode())
        with open(path / name, "rb") as file:
            while block := file.read(1 << 22):
                sha.update(block)
    return sha.hexdigest()


def size(path):
    return sum((path / name).stat().st_size for name in parts(path))


@contextlib.contextmanager
def for_cdo(paths):
    """These files as cdo reads them: themselves, or classic NetCDF that is made of stores and lasts as long as the block."""
    if not any(path.is_dir() for path in paths):
        yield paths
        return
    with tempfile.TemporaryDirectory(prefix="for-cdo-", dir=paths[0].parent) as directory:
        yield [made_of(path, Path(directory) / f"{path.stem}.nc") for path in paths]


def made_of(store, path):
    try:
        return convert(store, path)
    except (ValueError, KeyError, OSError, EOFError, struct.error, zlib.error) as error:
        raise Unreadable(f"{store} is no whole store of Zarr 3: {error!r}") from None


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
    with for_cdo([path]) as (file,):
        names = cdo("showname", file).split()
        counts = map(int, cdo("nlevel", file).split())
        units = {}
        name = None
        for line in cdo("partab", file).splitlines():
            key, _, value = (word.strip() for word in line.partition("="))
            name = value if key == "name" else name
            if key == "units":
                units[name] = value.strip('"')
        return Contents(dict(zip(names, counts)), units, cdo("showtimestamp", file).split())


def check_with_xarray(path, found):
    """xarray and zarr-python find in a store what cdo has found, and a value at each point."""
    import xarray
    with xarray.open_zarr(path) as data:
        levels = {name: math.prod(each.shape[1:-2]) for name, each in data.data_vars.items() if each.ndim > 2}
        if levels != found.levels or data.sizes["time"] != len(found.steps):
            raise Unreadable(f"{path}: xarray finds {data.sizes['time']} steps of the fields {listed(levels)}, expected "
                             f"{len(found.steps)} of {listed(found.levels)}")
        for name in levels:
            if not bool(data[name].notnull().all()):
                raise Unreadable(f"{path}: xarray finds points of {name} without a value")


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
    elif form.kinds and shutil.which("ncdump"):
        kind = tool("ncdump", "-k", path).strip()
        if kind not in form.kinds:
            raise Unreadable(f"{path}: ncdump takes it for {kind}, expected {form.kinds[0]}")
    elif form.name == "zarr" and have_xarray():
        check_with_xarray(path, found)
    return found


def listed(levels):
    return ", ".join(name if count == 1 else f"{name} on {count} levels" for name, count in levels.items())
