# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A data file with its index, which may grow, be cut back or be replaced at any time."""
from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .binary import open_regular
from .errors import FormatError, NotThereError, StateError, TailraceError
from .formats import source_of
from .index import Index, IndexHeader, IndexStep, find_index, holds_still, index_again, load_index
from .source import Source
from .tables import CALENDARS

_TRIES = 5
T = TypeVar("T")


def told(header: IndexHeader) -> str:
    """Returns a description of a file's run, for texts of errors."""
    base = f"base time {header.base}" if header.time.has_base else "no base time"
    times = "" if header.time.is_default else f", times in {header.time.unit}"
    return f"{base}, calendar {CALENDARS[header.base.calendar]}, member {'none' if header.member is None else header.member}{times}, run {header.run}"


class DataFile:
    """One file of a run. `index` is None as long as the file has none. `lead` is the one that its name tells."""

    def __init__(self, path: str, lead: int) -> None:
        self.path, self.lead = path, lead
        self.index: Index | None = None
        #: Only files of this run are read; None: of any run with the same base time, member and fields.
        self.run: uuid.UUID | None = None
        self._source: tuple[int, Source] | None = None
        self._looks = 0
        self._rows: tuple[Index | None, dict[int, int]] = (None, {})  # the first row of each lead in this index

    def refresh(self, anew: bool = False) -> bool:
        """Looks at the index again. Returns True if it was read. Every 16th call reads it in any case, because an
        index may change while its size and time stay the same."""
        self._looks += 1
        for last in (False, True):
            try:
                return self._look(anew)
            except FileNotFoundError:
                # The index was renamed between finding and opening it.
                if last:
                    self.index = None
            except NotThereError:
                self.index = None
                break
        return True

    def _look(self, anew: bool) -> bool:
        path = find_index(self.path)
        if not anew and self.index is not None and self.index.path == path and self._looks % 16:
            status = os.stat(path)
            if self.index.stamp == (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns):
                return False
        self.index = load_index(path)
        return True

    @property
    def steps(self) -> tuple[IndexStep, ...]:
        return self.index.steps if self.index else ()

    @property
    def is_closed(self) -> bool:
        return self.index is not None and self.index.closed

    @property
    def source(self) -> Source:
        index = self.index
        if index is None:
            raise StateError(f"{self.path}: its index has gone")
        if self._source is None or self._source[0] != index.header.checksum:
            self._source = (index.header.checksum, source_of(self.path, index.header))
        return self._source[1]

    def find(self, lead: int, ordinal: int) -> tuple[int, IndexStep]:
        """Returns the step with number `ordinal` among those at this lead, and its position in the file."""
        index = self.index
        if index is not None:
            rows = self._rows
            if rows[0] is not index:
                # Leads never decrease, so steps of one lead follow one another.
                rows = self._rows = index, {step.lead: row for row, step in reversed(list(enumerate(index.steps)))}
            row = rows[1].get(lead, len(index.steps)) + ordinal
            if row < len(index.steps) and index.steps[row].lead == lead:
                return row, index.steps[row]
        where = index.header.time.at(lead) if index else f"lead {lead}"
        raise StateError(f"{self.path}: the step at {where} was cut back or replaced since it was looked at")

    def _number_in(self, header: IndexHeader, known: IndexHeader, number: int) -> int:
        """Returns the number in the file's present header of the field that has `number` in the header `known`."""
        if header.checksum == known.checksum:
            return number
        if header.identity != known.identity or self.run not in (None, header.run):
            raise StateError(f"{self.path}: is of another run since it was looked at: {told(header)} in place of {told(known)}; open the run again")
        field = known.fields[number]
        same = [place for place, each in enumerate(header.fields) if each == field]
        earlier = known.fields[:number].count(field)
        if earlier >= len(same):
            raise StateError(f'{self.path}: was begun anew since it was looked at, and has no field "{field.name}" of the same type, shape and levels '
                             "any more; open the run again")
        return same[earlier]

    def record(self, known: IndexHeader, lead: int, ordinal: int, number: int, level: int) -> np.ndarray:
        """Returns the values of one level of a field in a step. `number` is the field's number in `known`, the
        header when the step was taken."""
        return self._read(known, lead, ordinal, number, level, lambda source, *place: source.values(*place))

    def interval_begin(self, known: IndexHeader, lead: int, ordinal: int, number: int, level: int) -> int | None:
        """Returns the lead at which a record's interval begins, or None if the file does not state it."""
        return self._read(known, lead, ordinal, number, level, lambda source, *place: source.interval_begin(*place))

    def _read(self, known: IndexHeader, lead: int, ordinal: int, number: int, level: int, read: Callable[[Source, int, IndexStep, np.void], T]) -> T:
        """Reads something of a record with `read`. If the index no longer has the step after reading, the bytes may
        be another step's: looks for the step and reads again."""
        error: Exception | None = None
        is_fresh = False
        for _ in range(_TRIES):
            index = self.index
            try:
                row, step = self.find(lead, ordinal)
                source = self.source
                place = self._number_in(source.header, known, number)
            except StateError:
                if is_fresh:
                    raise
                is_fresh = self.refresh(anew=True)
                continue
            found = np.flatnonzero((step.records["field"] == place) & (step.records["level"] == level))
            if not len(found) and not is_fresh:
                is_fresh = self.refresh(anew=True)
                continue
            if not len(found):
                raise NotThereError(f'{self.path}: level {level} of "{known.fields[number].name}" was not put at {known.time.at(lead)}')
            try:
                values, error = read(source, row, step, step.records[found[-1]]), None
            except (TailraceError, OSError) as raised:
                error = raised
            if index is not None and index_again(self.path) in (None, index.path) and holds_still(index.path, step):
                if error is not None:
                    raise error
                return values
            is_fresh = self.refresh(anew=True)
        raise StateError(f"{self.path}: the step at {known.time.at(lead)} was replaced again and again while it was read") from error

    def static(self, known: IndexHeader, number: int) -> np.ndarray | None:
        """Returns all levels of a field without time, or None if the file has no such variable."""
        source = self.source
        return source.static(self._number_in(source.header, known, number))

    def fill(self, known: IndexHeader, number: int) -> Any:
        """Returns the value that means "no value" in a field, or None if the file states none. A step with the field
        must exist."""
        source = self.source
        place = self._number_in(source.header, known, number)
        for step in self.steps:
            for record in step.records[step.records["field"] == place][:1]:
                return source.described(place, step, record).fill
        return None

    def durable_steps(self) -> int:
        """Returns the number of steps that are on storage, by the same rules as `tailrace wait`: the index is
        synchronised, the data are as long as the index says, and the format's own number of steps includes the step."""
        index = self.index
        if index is None or not index.steps:
            return 0
        try:
            descriptor = open_regular(index.path)
        except FileNotFoundError:
            return 0
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (22, 30):  # EINVAL, EROFS: a file system that synchronises nothing
                raise
        finally:
            os.close(descriptor)
        try:
            self.source.check_size(index.steps[-1].end)
            count = len(index.steps)
            while count and not self.source.tells(count - 1):
                count -= 1
        except (FormatError, OSError):
            if holds_still(index.path, index.steps[-1]):
                raise
            return 0
        return count if holds_still(index.path, index.steps[-1]) else 0
