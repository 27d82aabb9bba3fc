# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The index beside a data file (docs/formats/index.md): the committed steps, and the place of each record."""
from __future__ import annotations

import errno
import os
import struct
import uuid
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from .binary import Fields, element_type, elements_of, open_regular, pread_whole, text_of, xxh3_64
from .calendar import MOST_SECONDS, Moment
from .errors import FormatError, NotThereError, StateError, UnsupportedError
from .tables import CALENDARS
from .time_axis import TimeAxis

MARK = b"TRLINDEX"
RECORD = np.dtype([("field", "<i4"), ("level", "<i4"), ("offset", "<i8"), ("length", "<i8")])
_FIXED, _CLOSED = 72, 40  # bytes of a step without its records, and of the closing record
# No run reaches these limits. A file that claims to is damaged, and is not read into memory.
MOST_HEADER, MOST_RECORD, MOST_TAIL = 64 << 20, 256 << 20, 64 << 20
MOST_TEXT = 1 << 20
MOST_LEAD = 999_999_999 * 86_400  # seconds that a timedelta holds
MOST_FAR_LEAD = 10**9 * 31_557_600  # seconds, on other axes than that of seconds: the limit of the format
MOST_DIMENSIONS = 29  # numpy has 32 at least; of a Dataset two are lead and level


@dataclass(frozen=True)
class IndexField:
    """A field as its stream defined it. `shape` is the shape of one record, slowest dimension first."""

    name: str
    type: int
    shape: tuple[int, ...]
    level_type: str
    levels: tuple[float, ...]
    section: tuple[tuple[int, int, int, int], ...] = field(default=(), compare=False)
    """Of each dimension of the program's array its extent, and start and stride of the elements that records have; empty: all."""

    @property
    def dtype(self) -> np.dtype:
        """The type of an element in the program that wrote it, little-endian."""
        return np.dtype(element_type(self.type))


@dataclass(frozen=True)
class IndexHeader:
    """The part of an index that holds for all steps of its file."""

    run: uuid.UUID
    data_begin: int
    base: Moment
    member: int | None
    format: str
    fields: tuple[IndexField, ...]
    length: int
    checksum: int
    time: TimeAxis = TimeAxis()

    @property
    def identity(self) -> tuple[object, ...]:
        """Base time, member and axis of times: two files of one run have the same."""
        return self.base if self.time.has_base else None, self.member, self.time


@dataclass(frozen=True, eq=False)
class IndexStep:
    """One committed step. `lead` is counted as the header's axis of times says. `records` is an array of RECORD. `position`, `length` and `checksum` are those of the
    step's own record in the index."""

    number: int
    lead: int
    begin: int
    end: int
    records: np.ndarray
    position: int
    length: int
    checksum: int


@dataclass(frozen=True)
class Index:
    """The contents of an index: the committed steps, and how its bytes end."""

    path: str
    header: IndexHeader
    steps: tuple[IndexStep, ...]
    closed: bool
    tail: Literal["whole", "torn", "damaged"] = "whole"
    tail_text: str = ""
    stamp: tuple[int, ...] = field(default=(), compare=False)

    @property
    def data_end(self) -> int:
        """The end of the committed bytes in the data file."""
        return self.steps[-1].end if self.steps else self.header.data_begin


def begins_as_index(path: str) -> bool:
    """Returns True if the file exists and begins as an index does."""
    try:
        with open(open_regular(path), "rb") as file:
            return file.read(len(MARK)) == MARK
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ESPIPE):
            return False
        raise


def index_again(data_path: str) -> str | None:
    """Returns the index of a replaced data file, FILE.again.trx (docs/formats/index.md, Writing), if the new data
    have been renamed to FILE already and the index has not."""
    again = data_path + ".again"
    if not begins_as_index(again + ".trx") or os.path.lexists(again):
        return None
    try:
        is_long_enough = os.path.isdir(data_path) or os.stat(data_path).st_size >= load_index(again + ".trx").data_end
    except (FileNotFoundError, FormatError):
        return None
    return again + ".trx" if is_long_enough else None


def find_index(data_path: str) -> str:
    """Returns the path of a data file's index, under the present name or the old one. Raises NotThereError if there
    is none."""
    if again := index_again(data_path):
        return again
    path, old = data_path + ".trx", data_path + ".idx"
    try:
        old_is_index = begins_as_index(old)
    except PermissionError:
        if not os.path.exists(path):
            raise
        old_is_index = False
    if not old_is_index:
        if os.path.isfile(path):
            return path
        raise NotThereError(f"{data_path}: there is no index {path} beside it; only files that Tailrace has written have one")
    if not os.path.exists(path):
        return old
    if not begins_as_index(old):  # a writer has renamed it meanwhile
        return path
    raise StateError(f"{data_path} has two indexes, {path} and {old}, which an older Tailrace writes: move away the one that does not belong "
                     "to the data")


def stamp_of(descriptor: int) -> tuple[int, ...]:
    """Returns numbers that change when the file is replaced or written to."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def load_index(path: str) -> Index:
    """Reads an index. Raises FormatError if its header is damaged; damage behind the header is reported in `tail`."""
    descriptor = open_regular(path)
    try:
        for last in (False, False, False, False, True):
            stamp = stamp_of(descriptor)
            index = _Reading(path, descriptor, stamp[2], stamp).read()
            # Damage is real only if the index did not change while it was read: a writer may have cut it and written it
            # again.
            if last or index.tail != "damaged" or stamp_of(descriptor) == stamp:
                break
        return index
    finally:
        os.close(descriptor)


class _Reading:
    """Reads an index of `size` bytes. Compares each length with `size` before it reads so much into memory."""

    def __init__(self, path: str, descriptor: int, size: int, stamp: tuple[int, ...] = ()) -> None:
        self.path, self.descriptor, self.size, self.stamp = path, descriptor, size, stamp

    def read(self) -> Index:
        header = self.header()
        # Most indexes are small, so that one read gets everything.
        window_begin, window = 0, pread_whole(self.descriptor, min(self.size, 4 << 20), 0)
        steps: list[IndexStep] = []
        closed, at, previous, sequence = False, header.length, header.checksum, 0
        while not closed:
            if at + 64 > window_begin + len(window) or at + _length_at(window, at - window_begin) > window_begin + len(window):
                if at + _CLOSED > self.size:
                    break
                prefix = pread_whole(self.descriptor, 64, at)
                length = _length_at(prefix, 0)
                if length > self.size - at or length > MOST_RECORD:
                    break
                window_begin, window = at, pread_whole(self.descriptor, min(self.size - at, max(length, 4 << 20)), at)
            record = _whole_record(window, at - window_begin, header.checksum)
            if record is None:
                break
            try:
                end = steps[-1].end if steps else header.data_begin
                step = _take(record, at, header, steps[-1] if steps else None, end, previous, sequence)
            except FormatError as error:
                return Index(self.path, header, tuple(steps), False, "damaged", f"record {sequence}: {error}", self.stamp)
            if step is None:
                closed = True
            else:
                steps.append(step)
            previous, sequence = struct.unpack_from("<Q", record, len(record) - 8)[0], sequence + 1
            at += len(record)
        return self.judged(header, steps, closed, at)

    def header(self) -> IndexHeader:
        prefix = pread_whole(self.descriptor, 16, 0)
        if prefix[:8] != MARK:
            raise FormatError(f"{self.path}: its first bytes are not those of an index")
        length = struct.unpack("<I", prefix[12:])[0] if len(prefix) == 16 else 0
        if length < 60 or length > self.size or length > MOST_HEADER:
            raise FormatError(f"{self.path}: the header has {length} bytes, the file {self.size}")
        data = pread_whole(self.descriptor, length, 0)
        if len(data) != length or xxh3_64(memoryview(data)[:-8]) != struct.unpack("<Q", data[-8:])[0]:
            raise FormatError(f"{self.path}: the header's checksum is wrong: its bytes were changed after they were written")
        version = struct.unpack_from("<I", data, 8)[0]
        if version not in (1, 2, 3):
            raise UnsupportedError(f"{self.path}: an index of version {version}, and this package reads versions 1 to 3")
        return _header(data, self.path, version)

    def judged(self, header: IndexHeader, steps: list[IndexStep], closed: bool, at: int) -> Index:
        left = self.size - at
        if left <= 0:
            return Index(self.path, header, tuple(steps), closed, stamp=self.stamp)
        damaged = closed or left > MOST_RECORD or _holds_record(pread_whole(self.descriptor, left, at), header.checksum)
        text = (f"bytes {at} and on are damaged, and committed steps or a closed file's end were among them" if damaged else
                f"the last {left} bytes are a record that was begun and not finished")
        return Index(self.path, header, tuple(steps), closed, "damaged" if damaged else "torn", text, self.stamp)


def _header(data: bytes, path: str, version: int) -> IndexHeader:
    """Returns the header in these bytes, whose checksum has been checked."""
    parts = Fields(data[:-8], path)
    parts.raw(16)
    run = uuid.UUID(bytes=parts.raw(16))
    data_begin, base, calendar, member = parts.many("qqii")
    if not 0 <= calendar < len(CALENDARS) or abs(base) > MOST_SECONDS or data_begin < 0:
        raise FormatError(f"{path}: base time {base}, calendar {calendar} or data begin {data_begin} does not exist")
    name = text_of(parts.raw(parts.count(1)), path)
    fields = tuple(_field(parts, path) for _ in range(parts.count(28)))
    axis = _time_axis(parts, path) if version >= 2 else TimeAxis()
    if version == 3:
        fields = _with_sections(fields, parts, path)
    parts.end()
    if not name:
        raise FormatError(f"{path}: the format has no name")
    return IndexHeader(run, data_begin, Moment.of(base, calendar), member if member >= 0 else None, name, fields, len(data),
                       struct.unpack("<Q", data[-8:])[0], axis)


def _with_sections(fields: tuple[IndexField, ...], parts: Fields, path: str) -> tuple[IndexField, ...]:
    out = list(fields)
    for _ in range(parts.count(16)):
        number = parts.u32()
        whole, start, stop, stride = ([int(each) for each in parts.array("<i8", parts.count(8))] for _ in range(4))
        sound = number < len(out) and not out[number].section and len(whole) == len(start) == len(stop) == len(stride) > 0
        if not sound or any(not 0 <= first < end <= extent or step < 1 for extent, first, end, step in zip(whole, start, stop, stride)):
            raise FormatError(f"{path}: the section of field {number} is damaged")
        out[number] = replace(out[number], section=tuple(zip(whole, start, stop, stride)))
    return tuple(out)


def _time_axis(parts: Fields, path: str) -> TimeAxis:
    kind, has_base, nanoseconds, shown = parts.many("iIqq")
    name, units = (parts.raw(parts.count(1)).decode("utf-8", "surrogateescape") for _ in range(2))
    if max(len(name), len(units)) > MOST_TEXT:
        raise FormatError(f"{path}: the variable of time has a name or units of more than {MOST_TEXT} characters")
    return TimeAxis.of_parts(kind, has_base != 0, nanoseconds, shown, name, units, path)


def _field(parts: Fields, path: str) -> IndexField:
    # In raw files a name need not be UTF-8: keep the other bytes, too, so that names stay different.
    name = parts.raw(parts.count(1)).decode("utf-8", "surrogateescape")
    kind = parts.i32()
    shape = tuple(int(extent) for extent in parts.array("<i8", parts.count(8)))
    level_type = parts.raw(parts.count(1)).decode("utf-8", "surrogateescape")
    levels = tuple(float(level) for level in parts.array("<f8", parts.count(8)))
    if not name or len(name) > MOST_TEXT or element_type(kind) is None or not levels:
        raise FormatError(f'{path}: field "{name[:80]}" has no name, level or known type')
    if len(shape) > MOST_DIMENSIONS:
        raise UnsupportedError(f'{path}: field "{name}" has {len(shape)} dimensions, and this package reads at most {MOST_DIMENSIONS}')
    elements_of(shape, f'{path}: field "{name}"')
    return IndexField(name, kind, shape, level_type, levels)


def _length_at(data: bytes, at: int) -> int:
    """Returns the length of the record at `at`, 0 if none begins there."""
    if data[at:at + 4] not in (b"STEP", b"DONE") or at + 8 > len(data):
        return 0
    return int(struct.unpack_from("<I", data, at + 4)[0])


def _whole_record(data: bytes, at: int, seed: int) -> bytes | None:
    """Returns the record at `at`, or None if its length or checksum is wrong."""
    length = _length_at(data, at)
    if length < _CLOSED or length > MOST_RECORD or at + length > len(data):
        return None
    record = data[at:at + length]
    return record if xxh3_64(memoryview(record)[:-8], seed) == struct.unpack_from("<Q", record, length - 8)[0] else None


def _holds_record(tail: bytes, seed: int) -> bool:
    """Returns True if a whole record of this file begins anywhere in the tail. Gives up, and returns True, after
    more hashing than any torn record needs."""
    budget, at = MOST_TAIL + 4 * len(tail), 0
    while at + _CLOSED <= len(tail):
        found = [each for each in (tail.find(b"STEP", at), tail.find(b"DONE", at)) if each >= 0]
        if not found:
            return False
        at = min(found)
        budget -= min(_length_at(tail, at), len(tail) - at)
        if budget < 0 or _whole_record(tail, at, seed) is not None:
            return True
        at += 1
    return False


def _take(record: bytes, at: int, header: IndexHeader, before: IndexStep | None, end: int, previous: int, sequence: int) -> IndexStep | None:
    """Returns the step of a whole record, None for the closing record. Raises FormatError if the record cannot stand
    here."""
    if struct.unpack_from("<Qq", record, 8) != (previous, sequence):
        raise FormatError("it is missing or was replaced: another one stands in its place")
    if record[:4] == b"DONE":
        if struct.unpack_from("<q", record, 24)[0] != end:
            raise FormatError("the closing record disagrees with the last step")
        return None
    if len(record) < _FIXED:
        raise FormatError(f"it is a step of {len(record)} bytes, and each has {_FIXED}")
    number, lead, begin, step_end, count = struct.unpack_from("<qqqqI", record, 24)
    if len(record) != _FIXED + RECORD.itemsize * count:
        raise FormatError(f"it has {len(record)} bytes and tells of {count} records")
    records = np.frombuffer(record, RECORD, count, 64)
    step = IndexStep(number, lead, begin, step_end, records, at, len(record), struct.unpack_from("<Q", record, len(record) - 8)[0])
    _check(step, header, before, end)
    return step


def _check(step: IndexStep, header: IndexHeader, before: IndexStep | None, end: int) -> None:
    axis = header.time
    where = f"step {step.number} ({axis.at(step.lead)})" if axis.holds(step.lead, 2**63) else f"step {step.number} (lead {step.lead})"
    if step.number < 0 or (before and step.number <= before.number):
        raise FormatError(f"{where} does not follow step {before.number if before else -1}")
    if (before and step.lead < before.lead) or not axis.holds(step.lead, MOST_LEAD if axis.is_default else MOST_FAR_LEAD):
        raise FormatError(f"{where} goes back in time, or beyond all times")
    if step.begin != end or step.end < step.begin:
        raise FormatError(f"{where} takes bytes {step.begin} to {step.end}, but the step before ended at {end}")
    records = step.records
    if not len(records):
        return
    numbers, levels, offsets, lengths = records["field"], records["level"], records["offset"], records["length"]
    if numbers.min() < 0 or numbers.max() >= len(header.fields):
        raise FormatError(f"{where} has a record of a field that the header does not name")
    most = np.array([len(each.levels) for each in header.fields])
    if levels.min() < 0 or (levels >= most[numbers]).any():
        raise FormatError(f"{where} has a record of a level that its field does not have")
    # Keep this order: offset + length may not fit into 64 bits.
    if lengths.min() < 0 or offsets.min() < step.begin or offsets.max() > step.end or (lengths > step.end - offsets).any():
        raise FormatError(f"{where} has a record outside of its bytes {step.begin} to {step.end}")


def holds_still(path: str, step: IndexStep) -> bool:
    """Returns True if the index still has this step: the index was neither cut back nor replaced."""
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        return False
    try:
        data = os.pread(descriptor, 8, step.position + step.length - 8)
    finally:
        os.close(descriptor)
    return len(data) == 8 and struct.unpack("<Q", data)[0] == step.checksum
