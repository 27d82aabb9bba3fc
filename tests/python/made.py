# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Makes indexes and raw files for the cases, step by step, with right checksums: also files that no writer would
make."""
import os
import struct

import numpy as np
import xxhash

RUN = bytes(range(16))


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def field(name="t", kind=6, shape=(2, 3), level_type="isobaricInhPa", levels=(850.0, 500.0)):
    return (text(name) + struct.pack("<iI", kind, len(shape)) + struct.pack(f"<{len(shape)}q", *shape) + text(level_type) +
            struct.pack("<I", len(levels)) + struct.pack(f"<{len(levels)}d", *levels))


def sealed(body, at, seed=0):
    """Returns `body` with its length written at `at`, and its checksum behind it."""
    body = body[:at] + struct.pack("<I", len(body) + 8) + body[at + 4:]
    return body + struct.pack("<Q", xxhash.xxh3_64_intdigest(body, seed))


def header(fields=None, format_="raw", base=1772323200, calendar=0, member=-1, data_begin=0, run=RUN, count=None):
    fields = [field()] if fields is None else fields
    body = b"TRLINDEX" + struct.pack("<II", 1, 0) + run + struct.pack("<qqii", data_begin, base, calendar, member) + text(format_)
    return sealed(body + struct.pack("<I", len(fields) if count is None else count) + b"".join(fields), 12)


def packed(data):
    """Returns bytes with their length before them, as the head of a NetCDF-4 file has them."""
    return struct.pack("=q", len(data)) + data


def options(pairs):
    return struct.pack("=q", len(pairs)) + b"".join(packed(name.encode()) + packed(value.encode()) for name, value in pairs.items())


def defined(name="t", kind=6, shape=(2, 3), level_type="isobaricInhPa", levels=(850.0, 500.0), missing=None, grid=(0, 0, 0), since=None, **keys):
    """Returns the definition of a field in the head of a NetCDF-4 file. `grid` has its kind, rows and columns; `since`
    is that of a mean."""
    prepared = packed(name.encode()) + struct.pack("=iddqddqdd", grid[0], 0, 0, grid[1], 0, 0, grid[2], -90, 0)
    return (packed(name.encode()) + struct.pack("=i", kind) + packed(struct.pack(f"={len(shape)}q", *shape)) + packed(b"") + options({}) +
            packed(level_type.encode()) + packed(struct.pack(f"={len(levels)}d", *levels)) + packed(b"") + packed(b"") +
            struct.pack("=iiqb", since is not None and 2, since or 0, 0, 1) +
            struct.pack("=bdbdbibd", 0, 0, 0, 0, 0, 0, missing is not None, missing or 0) + options(keys) + options({}) + packed(prepared))


def definitions(fields, behind=b"", count=None):
    """Returns the definitions in the head of a NetCDF-4 file. Coordinates come behind the fields."""
    stream = packed(b"netcdf4") + packed(b"") + struct.pack("=qiiiiiibibi", 2026, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0) + packed(b"") + options({}) + options({})
    return stream + struct.pack("=q", len(fields) if count is None else count) + b"".join(fields) + behind


def netcdf4_head(body, mark=b"TRLNC4D2"):
    head = b"tailrace: NetCDF-4, not finished".ljust(64, b"\0") + mark + struct.pack("=Q", xxhash.xxh3_64_intdigest(body)) + packed(body)
    return head.ljust(-(-len(head) // 512) * 512, b"\0")


class Writer:
    """Writes an index, and the raw file of float64 beside it."""

    def __init__(self, path, head=None, run=RUN):
        self.path, self.head = str(path), head or header(run=run)
        self.seed = self.previous = struct.unpack("<Q", self.head[-8:])[0]
        self.sequence, self.end, self.number = 0, 0, 0
        self.index = self.head
        self.data = b""
        self.marks = [(len(self.head), self.previous, 0, 0)]

    def record(self, mark, body):
        record = sealed(mark + struct.pack("<IQq", 0, self.previous, self.sequence) + body, 4, self.seed)
        self.previous, self.sequence = struct.unpack("<Q", record[-8:])[0], self.sequence + 1
        self.index += record
        return self

    def step(self, lead, levels=(0, 1), value=None, records=None, **changed):
        """Adds a step. Field 0 has elements with the value of the lead in hours plus the level, unless `records` gives
        the places of records."""
        begin = self.end
        if records is None:
            records = []
            for level in levels:
                self.data += np.full((2, 3), (lead / 3600 if value is None else value) + level, "<f8").tobytes()
                records.append((0, level, self.end, 48))
                self.end += 48
        about = {"number": self.number, "lead": lead, "begin": begin, "end": self.end, "count": len(records), **changed}
        self.record(b"STEP", struct.pack("<qqqqII", *(about[name] for name in ("number", "lead", "begin", "end", "count")), 0) +
                    b"".join(struct.pack("<iiqq", *each) for each in records))
        self.number += 1
        self.marks.append((len(self.index), self.previous, self.sequence, self.end))
        return self

    def done(self):
        return self.record(b"DONE", struct.pack("<q", self.end))

    def save(self):
        """Writes both files: the data first, as a stream does."""
        directory = os.path.dirname(self.path)
        os.makedirs(directory or ".", exist_ok=True)
        with open(self.path, "wb") as file:
            file.write(self.data)
        with open(self.path + ".trx.new", "wb") as file:
            file.write(self.index)
        os.rename(self.path + ".trx.new", self.path + ".trx")
        return self

    def cut(self, steps):
        """Takes back all steps behind the first `steps`, in the index first."""
        length, self.previous, self.sequence, self.end = self.marks[steps]
        self.index, self.data = self.index[:length], self.data[:self.end]
        self.marks, self.number = self.marks[:steps + 1], steps
        return self


def netcdf4(path, head, fields, records):
    """Writes a NetCDF-4 file that begins with `head`, with one step of `records`, which are (field, level, bytes)."""
    writer = Writer(path, header(fields, "netcdf4", data_begin=len(head)))
    writer.data, places = head, []
    for number, level, record in records:
        places.append((number, level, len(writer.data), len(record)))
        writer.data += record
    writer.end = len(writer.data)
    writer.step(0, records=places, begin=len(head)).save()
    return path


def checkpoint(path, items, rows, generation=1):
    """Writes a copy of one part. All items are int8, and share the elements and one map, whose groups are `rows`:
    (global, count, stride, rows)."""
    identity = RUN + struct.pack("<q", generation)
    elements = sum(count * number for _, count, _, number in rows)
    content = bytes(range(256)) * (elements // 256 + 1)
    whole = struct.pack("<q", len(rows) * 32) + np.array(rows, "<i8").tobytes()
    stored = [struct.pack("<iiqqQQ", number, 0, 0, elements, xxhash.xxh3_64_intdigest(
        content[:elements], xxhash.xxh3_64_intdigest(identity + struct.pack("<iiq", 0, number, 0))), elements) for number in range(items)]
    table = b"TRCKTAB1" + identity + struct.pack("<iiiiqq", 0, 1, 0, 0, 1 << 30, 1) + whole + struct.pack("<q", items) + b"".join(stored)
    # The part has the bytes of all items, and they are a hole.
    at = elements * items
    foot = b"TRCKEND1" + identity + struct.pack("<iiqqQ", 0, 1, at, len(table), xxhash.xxh3_64_intdigest(table)) + bytes(24)
    foot += struct.pack("<Q", xxhash.xxh3_64_intdigest(foot))
    names = [f"item{number}".encode() for number in range(items)]
    directory = b"TRCKDIR1" + identity + struct.pack("<q", items) + b"".join(
        struct.pack("<q", len(name)) + name + struct.pack("<iqq", 1, 8, elements) for name in names)
    directory += struct.pack("<qqqq", 1, 128, at + len(table) + 96, 0)
    begin = 128 + at + len(table) + 96
    head = b"TRCKPT1\n" + identity + struct.pack("<iiqqqQ", 0, 1, 0, begin, len(directory), xxhash.xxh3_64_intdigest(directory))
    head = head.ljust(120, b"\0")
    with open(path, "wb") as file:
        file.write(head + struct.pack("<Q", xxhash.xxh3_64_intdigest(head)) + content[:elements])
        file.seek(128 + at)
        file.write(table + foot + directory)
    return str(path)
