# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Tiles: several for a rank or none, with halos, of many sizes, and without those on land. All files have the bytes that one block for each rank gives, but for
collective files, which have zeros where nobody owns an element. Other decompositions read them and load the checkpoints. Calls that do not fit are refused."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

ENDINGS = list(written_formats().values())
NX, NY, LAND = 15, 12, (1, 4, 8)
# Of 5 ranks one has no box. Each line: a layout, its ranks and servers; the layout that reads its files, its ranks and servers.
CASES = [(("block", 3, 1), ("land-tiles", 5, 0)), (("tiles", 1, 1), None), (("patches", 2, 0), None), (("land-tiles", 3, 2), ("land-patches", 2, 1)),
         (("land-patches", 1, 0), ("tiles", 3, 0)), (("land-tiles", 5, 0), ("block", 1, 0))]


def ran(*arguments, ranks=3, servers=0):
    ended, out, error = run(ranks + servers, [MODEL, *arguments], TAILRACE_SERVERS=str(servers))
    check(ended == 0, f"{arguments} on {ranks} ranks and {servers} servers ended with {ended}: {out} {error}")
    return out


def without_land(file):
    """The collective file of a layout in which nobody owns land."""
    zeros = bytearray(file)
    for y in range(NY):
        for x in range(NX):
            if y // 4 * 3 + x // 5 in LAND:
                at = y * NX + x
                zeros[8 * at:8 * at + 8] = bytes(8)
                zeros[8 * NX * NY + 4 * at:8 * NX * NY + 4 * at + 4] = bytes(4)
    return bytes(zeros)


def bitmaps(path):
    """GRIB's own tool finds the elements that nobody owns in a bitmap."""
    listed = subprocess.run(["grib_get", "-p", "bitmapPresent,numberOfMissing", path], capture_output=True, text=True)
    check(listed.returncode == 0 and set(listed.stdout.splitlines()) == {f"1 {20 * len(LAND)}"}, f"{path}: grib_get shows {listed.stdout} {listed.stderr}")


def layouts():
    names = ["mean.nc"] + [f"a.{ending}" for ending in ENDINGS]
    for (layout, ranks, servers), reader in CASES:
        where = fresh(f"{layout}-{ranks}")
        ran("write", where, layout, *ENDINGS, ranks=ranks, servers=servers)
        images = {name: image(f"{where}/{name}") for name in names}
        file = contents(f"{where}/file")
        if layout == "block":
            expected, owned = images, file
            check(all(expected.values()) and len(file) == 12 * NX * NY and struct.unpack_from("<d", file)[0] == 280, f"the files of blocks are {expected}")
        of = f"of {layout} on {ranks} ranks and {servers} servers"
        for name in names:
            check(images[name] == expected[name], f"{name} {of} differs from that of blocks")
        check(file == (without_land(owned) if "land" in layout else owned), f"the collective file {of} is wrong")
        check(struct.pack(">f", -999) * NX * NY in contents(f"{where}/nothing.nc"), f"where nobody owns anything, the file {of} has no missing values")
        if "grib2" in ENDINGS and "land" in layout and shutil.which("grib_get"):
            bitmaps(f"{where}/a.grib2")
        if reader:
            ran("read", where, reader[0], *ENDINGS, ranks=reader[1], servers=reader[2])


def refusals():
    out = ran("wrong", ranks=3)
    texts = {}
    for line in out.splitlines():
        if line.startswith("rank "):
            rank, text = line.split(": ", 1)
            texts.setdefault(rank, []).append(text)
    check(len(texts) == 3 and len({str(each) for each in texts.values()}) == 1, f"the ranks got different errors: {texts}")
    wanted = ["is in two boxes of rank 0", "is in boxes of both rank 0 and rank 1", "box 1: the box of rank 0 reaches index 4", "is in no rank's boxes", "the number of boxes is -1",
              "the number of boxes is 1099511627776", "null pointer", "missing= says which value", "is no int16", "is no uint16", "level_axis", "over= needs numbers, and the elements are texts", "the field has no dimension 'x'", "points without coordinates"]
    told = next(iter(texts.values()), [])
    check(len(told) == len(wanted) and all(part in text for part, text in zip(wanted, told)), f"the errors are {told}")


layouts()
refusals()
finish()
