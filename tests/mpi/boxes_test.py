# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Tiles: several for a rank or none, with halos, of many sizes, and without those on land. Streams have the bytes that one block for each rank gives; they are
read again on another decomposition; collective files and checkpoints; calls that do not fit."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

FORMATS = {"raw": "raw", "cdf5": "nc"}
if os.environ.get("TEST_HDF5") == "1":
    FORMATS["netcdf4"] = "nc4"
if os.environ.get("TEST_ZARR") == "1":
    FORMATS["zarr"] = "zarr"
NX, NY, LAND = 15, 12, (1, 4, 8)
CASES = [("tiles", 1, 1), ("patches", 2, 0), ("land-tiles", 2, 1), ("land-patches", 3, 2), ("land-tiles", 5, 0), ("land-patches", 1, 0)]


def ran(*arguments, ranks=2, servers=1):
    ended, out, error = run(ranks + servers, [MODEL, *arguments], TAILRACE_SERVERS=str(servers))
    check(ended == 0, f"{arguments} on {ranks} ranks and {servers} servers ended with {ended}: {out} {error}")
    return out


def image(path):
    """The bytes of a file, or of all objects of a store by name."""
    if os.path.isfile(path):
        return contents(path)
    return {os.path.relpath(os.path.join(folder, name), path): contents(os.path.join(folder, name))
            for folder, _, names in os.walk(path) for name in names}


def streams():
    for format, ending in FORMATS.items():
        fresh(format)
        options = f"format={format} base=2026-03-01"
        fixed = ["static"] if format not in ("raw", "grib2") else []
        path = f"{format}/a.{ending}"
        ran("write", path, options, "block", *fixed, ranks=3)
        expected = image(path)
        check(bool(expected), f"{path} is empty")
        for layout, ranks, servers in CASES:
            fresh(format)
            ran("write", path, options, layout, *fixed, ranks=ranks, servers=servers)
            check(image(path) == expected, f"{path} of {layout} on {ranks} ranks and {servers} servers differs from that of blocks")
        for layout, ranks, servers in (("land-patches", 2, 1), ("tiles", 3, 0), ("block", 4, 0)):
            ran("read", path, "", layout, ranks=ranks, servers=servers)


def means():
    """Each rank accumulates what it owns."""
    fresh("means")
    options = "format=cdf5 base=2026-03-01 interval=1h"
    ran("write", "means/a.nc", options, "block", ranks=2)
    expected = image("means/a.nc")
    for layout, ranks in (("land-tiles", 3), ("land-patches", 2)):
        fresh("means")
        ran("write", "means/a.nc", options, layout, ranks=ranks)
        check(image("means/a.nc") == expected, f"means of {layout} on {ranks} ranks differ from those of blocks")


def files():
    fresh("files")
    ran("file", "files/a", "block", ranks=3)
    expected = contents("files/a")
    zeros = bytearray(expected)
    for y in range(NY):
        for x in range(NX):
            if y // 4 * 3 + x // 5 in LAND:
                at = y * NX + x
                zeros[8 * at:8 * at + 8] = bytes(8)
                zeros[8 * NX * NY + 4 * at:8 * NX * NY + 4 * at + 4] = bytes(4)
    check(len(expected) == 12 * NX * NY and struct.unpack_from("<d", expected)[0] == 280, "the file of blocks is another one")
    for layout, ranks, servers in CASES:
        fresh("files")
        ran("file", "files/a", layout, ranks=ranks, servers=servers)
        check(contents("files/a") == (bytes(zeros) if "land" in layout else expected), f"the file of {layout} on {ranks} ranks is wrong")


def checkpoints():
    for saved, ranks, loaded, others in (("land-tiles", 3, "land-patches", 2), ("land-patches", 2, "block", 4), ("tiles", 2, "land-tiles", 5), ("block", 3, "patches", 1)):
        fresh("saves")
        ran("save", "saves/c", saved, ranks=ranks)
        ran("load", "saves/c", loaded, ranks=others)


def refusals():
    out = ran("wrong", ranks=3)
    texts = {}
    for line in out.splitlines():
        if line.startswith("rank "):
            rank, text = line.split(": ", 1)
            texts.setdefault(rank, []).append(text)
    check(len(texts) == 3 and len({str(each) for each in texts.values()}) == 1, f"the ranks got different errors: {texts}")
    wanted = ["is in two boxes of rank 0", "is in boxes of both rank 0 and rank 1", "box 1: the box of rank 0 reaches index 4", "is in no rank's boxes", "the number of boxes is -1",
              "null pointer", "missing= says which value", "is no int16", "level_axis", "points without coordinates"]
    told = next(iter(texts.values()), [])
    check(len(told) == len(wanted) and all(part in text for part, text in zip(wanted, told)), f"the errors are {told}")


streams()
means()
files()
checkpoints()
refusals()
finish()
