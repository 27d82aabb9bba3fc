#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Reads checkpoints with nothing but docs/formats/checkpoint.md: every value, every checksum, the names of the files. A
statement of that page which is not so any more fails here. The arguments are format_save's program and the codings that this
build has; the libraries of XXH3, LZ4 and zstd are the system's.
"""
import ctypes
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

RANKS = 3
TYPES = {1: "b", 2: "h", 3: "i", 4: "q", 5: "f", 6: "d"}
ITEMS = [("step", 4, ()), ("t", 6, (601, 811)), ("dealt", 3, (100,)), ("same", 2, (9,)), ("section", 6, (86, 267))]


def fail(text):
    sys.exit(f"FAILED: {text}")


def library(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


XXH, LZ4, ZSTD = library("libxxhash.so.0"), library("liblz4.so.1"), library("libzstd.so.1")


def xxh3(data, seed=0):
    XXH.XXH3_64bits_withSeed.restype = ctypes.c_uint64
    return XXH.XXH3_64bits_withSeed(ctypes.c_char_p(data), ctypes.c_size_t(len(data)), ctypes.c_uint64(seed))


def decompress(coding, stored, size):
    out = ctypes.create_string_buffer(size)
    if coding == 1:
        got = LZ4.LZ4_decompress_safe(ctypes.c_char_p(stored), out, len(stored), size)
    else:
        ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
        got = ZSTD.ZSTD_decompress(out, ctypes.c_size_t(size), ctypes.c_char_p(stored), ctypes.c_size_t(len(stored)))
    if got != size:
        fail(f"a block of coding {coding} does not decompress")
    return out.raw


class Reader:
    """Fields one after another."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, format_):
        values = struct.unpack_from("<" + format_, self.data, self.at)
        self.at += struct.calcsize("<" + format_)
        return values if len(values) > 1 else values[0]

    def bytes(self):
        length = self.take("q")
        self.at += length
        return self.data[self.at - length:self.at]


def checked(data, magic, what):
    """A header or footer, whose last 8 bytes are the checksum of those before."""
    if data[:8] != magic or struct.unpack("<Q", data[-8:])[0] != xxh3(data[:-8]):
        fail(f"{what}: {data!r}")
    return Reader(data[8:])


def extent(data, base, offset, length, checksum, what):
    found = data[base + offset:base + offset + length]
    if len(found) != length or xxh3(found) != checksum:
        fail(f"{what} is not what its checksum says")
    return Reader(found)


class Copy:
    def __init__(self, path):
        self.path, self.files = Path(path), {}
        self.read_header()
        self.read_directory()
        self.values = [{} for _ in self.items]
        self.codings = set()
        for number in range(self.parts):
            self.read_part(number)

    def file(self, part=None):
        local = part is not None and self.mode == 1
        path = f"{self.path}.r{part:05d}" if local else str(self.path)
        if path not in self.files:
            self.files[path] = Path(path).read_bytes()
        return self.files[path]

    def read_header(self):
        self.mode = 0
        data = self.file()
        head = checked(data[:128], b"TRCKPT1\n", "the header")
        self.id = head.data[:24]
        self.run, self.generation = head.take("16s"), head.take("q")
        self.mode, self.parts, self.time = head.take("i"), head.take("i"), head.take("q")
        self.place, self.committed = head.take("qqQ"), head.take("i")
        if any(data[76:120]):
            fail("the header does not end with zeros")

    def read_directory(self):
        data = self.file()
        offset, length, checksum = self.place
        directory = extent(data, 0, offset, length, checksum, "the directory")
        if offset + length != len(data):
            fail(f"{self.path} does not end with its directory")
        if directory.take("8s") != b"TRCKDIR1" or directory.take("24s") != self.id:
            fail("the directory's beginning")
        self.items = []
        for _ in range(directory.take("q")):
            name, kind, shape = directory.bytes().decode(), directory.take("i"), directory.bytes()
            self.items.append((name, kind, struct.unpack(f"<{len(shape) // 8}q", shape)))
        self.places = [directory.take("qq") for _ in range(directory.take("q"))]
        self.outputs = Reader(directory.bytes())
        if directory.at != length or len(self.places) != self.parts:
            fail("the directory's end")
        at = 4096
        for begin, size in self.places:
            if begin != at:
                fail(f"a part begins at {begin} in place of {at}")
            if self.mode == 0:
                at = (at + size + 4095) // 4096 * 4096
        if offset != at:
            fail(f"the directory begins at {offset} in place of {at}")

    def read_part(self, number):
        data, (begin, size) = self.file(number), self.places[number]
        if self.mode == 1 and len(data) != begin + size:
            fail(f"the file of part {number} does not end with its footer")
        foot = checked(data[begin + size - 96:begin + size], b"TRCKEND1", f"the footer of part {number}")
        if foot.take("24s") != self.id or foot.take("ii") != (number, self.parts):
            fail(f"the footer of part {number} is another one's")
        offset, length, checksum = foot.take("qqQ")
        if offset + length != size - 96 or any(data[begin + size - 32:begin + size - 8]):
            fail(f"the table of part {number} is not before its footer")
        table = extent(data, begin, offset, length, checksum, f"the table of part {number}")
        if table.take("8s") != b"TRCKTAB1" or table.take("24s") != self.id or table.take("ii") != (number, self.parts):
            fail(f"the table of part {number} is another one's")
        coding, _, block_bytes = table.take("iiq")
        maps = []
        for _ in range(table.take("q")):
            rows = table.bytes()
            maps.append([struct.unpack_from("<qqqq", rows, at) for at in range(0, len(rows), 32)])
        for _ in range(table.take("q")):
            item, map_, place, bytes_ = table.take("iiqq")
            if place % 64 != 0:
                fail("an item begins between multiples of 64")
            packed = b""
            for block in range((bytes_ + block_bytes - 1) // block_bytes):
                seed = xxh3(self.id + struct.pack("<iiq", number, item, block))
                raw = min(block_bytes, bytes_ - block * block_bytes)
                packed += self.read_block(data, begin + place + block * block_bytes, table.take("Qq"), seed, raw, coding, item)
            self.place_elements(item, maps[map_], packed)
        if table.at != length:
            fail(f"the table of part {number} has another length")

    def read_block(self, data, at, expected, seed, raw, coding, item):
        checksum, length = expected
        stored = data[at:at + length]
        if xxh3(stored, seed) != checksum:
            fail(f"a block of {self.items[item][0]} at {at} is not what its checksum says")
        if length == raw:
            return stored
        self.codings.add(coding)
        grouped = decompress(coding, stored, raw)
        size = struct.calcsize(TYPES[self.items[item][1]])
        count, out = raw // size, bytearray(raw)
        for byte in range(size):
            out[byte::size] = grouped[byte * count:(byte + 1) * count]
        return bytes(out)

    def place_elements(self, item, rows, packed):
        kind = TYPES[self.items[item][1]]
        values = struct.unpack(f"<{len(packed) // struct.calcsize(kind)}{kind}", packed)
        next_ = 0
        for begin, count, stride, runs in rows:
            for run in range(runs):
                for element in range(begin + run * stride, begin + run * stride + count):
                    if element in self.values[item]:
                        fail(f"element {element} of {self.items[item][0]} is named twice")
                    self.values[item][element] = values[next_]
                    next_ += 1
        if next_ != len(values):
            fail("a map names other elements than there are")


def check_outputs(copy, name):
    """The file beside the copies: ten bytes more in each generation, position 5 in the second."""
    outputs, size = copy.outputs, 10 * copy.generation
    streams, files = outputs.take("qq")
    path, position, held, behind, since = outputs.bytes().decode(), *(outputs.take(kind) for kind in "qqiq")
    expected = (0, 1, f"out/{name}.out", 5 if copy.generation == 2 else size, size, 0, 0)
    if (streams, files, path, position, held, behind, since) != expected or outputs.at != len(outputs.data):
        fail(f"the outputs are {outputs.data!r} in place of {expected}")


def check_values(copy):
    if copy.items != ITEMS:
        fail(f"the items are {copy.items}")
    for (name, _, shape), values in zip(copy.items, copy.values):
        count = 1
        for extent_ in shape:
            count *= extent_
        if sorted(values) != list(range(count)):
            fail(f"{name}: {len(values)} elements in place of {count}")
        for element, value in values.items():
            number = (2 + element // 267 * 7) * 811 + 1 + element % 267 * 3 if name == "section" else element
            if value != 1000 * copy.generation + number:
                fail(f"{name}: element {element} is {value} in generation {copy.generation}")


def check(program, name, options, expected, codings):
    """`expected`: the files, with the generation of each copy and None for parts."""
    command = [*os.environ["TEST_MPIRUN"].split(), "-n", str(RANKS), program, f"out/{name}", options]
    subprocess.run(command, check=True)
    found = sorted(path.name for path in Path("out").glob(f"{name}.*") if path.suffix != ".out")
    if found != sorted(expected):
        fail(f"{options}: the files are {found}")
    runs = set()
    for file, generation in expected.items():
        if generation is None:
            continue
        copy = Copy(f"out/{file}")
        runs.add(copy.run)
        if (copy.generation, copy.parts, copy.committed) != (generation, RANKS, 1):
            fail(f"{file}: generation {copy.generation}, {copy.parts} parts, committed {copy.committed}")
        if copy.mode != int("local" in options) or copy.codings != codings:
            fail(f"{file}: mode {copy.mode}, codings {copy.codings}")
        check_values(copy)
        check_outputs(copy, name)
    if len(runs) != 1:
        fail("the copies of one run have several UUIDs")
    print(f"ok {options}: {len(found)} files")


def main():
    if XXH is None:
        print("skipped: there is no libxxhash.so.0 (Debian's libxxhash0)")
        sys.exit(77)
    shutil.rmtree("out", ignore_errors=True)
    Path("out").mkdir()
    parts = [f".r{part:05d}" for part in range(RANKS)]
    program = sys.argv[1]
    check(program, "p", "mode=parallel", {"p.0": 3, "p.1": 2}, set())
    check(program, "s", "async=off keep_every=2", {"s.0": 1, "s.1": 3, "s.g2": 2}, set())
    local = {"l.0": 3, "l.1": 2, **{f"l.{slot}{part}": None for slot in (0, 1) for part in parts}}
    check(program, "l", "mode=local", local, set())
    if "lz4" in sys.argv and LZ4:
        check(program, "c", "compress=lz4", {"c.0": 3, "c.1": 2}, {1})
    if "zstd" in sys.argv and ZSTD:
        check(program, "z", "compress=zstd", {"z.0": 3, "z.1": 2}, {2})
    shutil.rmtree("out")


main()
