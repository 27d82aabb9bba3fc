# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A data file with its index, which may grow, be cut back or be replaced at any time."""
from __future__ import annotations

import os

import numpy as np

from .errors import FormatError, NotThereError, StateError, TailraceError
from .index import Index, IndexStep, find_index, holds_still, load_index
from .source import Source, source_of

_TRIES = 5


class DataFile:
    """One file of a run. `index` is None as long as there is none."""

    def __init__(self, path: str, lead: int) -> None:
        self.path, self.lead = path, lead
        self.index: Index | None = None
        self._source: tuple[int, Source] | None = None
        self._looks = 0

    def refresh(self, anew: bool = False) -> bool:
        """Looks at the index again. Returns whether it was read. Equal sizes and times may hide other contents; so every 16th look reads
        in any case."""
        self._looks += 1
        try:
            path = find_index(self.path)
            if not anew and self.index is not None and self.index.path == path and self._looks % 16:
                status = os.stat(path)
                if self.index.stamp == (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns):
                    return False
            self.index = load_index(path)
        except (NotThereError, FileNotFoundError):
            self.index = None
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
        """The step at this lead, of several with one lead the one with this number, and its place in the file."""
        for row, step in enumerate(self.steps):
            if step.lead == lead:
                if ordinal == 0:
                    return row, step
                ordinal -= 1
        raise StateError(f"{self.path}: the step at lead {lead} s was cut back or replaced since it was looked at")

    def record(self, lead: int, ordinal: int, number: int, level: int) -> np.ndarray:
        """The values of a field's level in a step. A step that is not in the index any more when its bytes were read is looked for again: they
        may be another step's."""
        error: Exception | None = None
        for _ in range(_TRIES):
            row, step = self.find(lead, ordinal)
            index, source = self.index, self.source
            found = np.flatnonzero((step.records["field"] == number) & (step.records["level"] == level))
            if not len(found):
                raise NotThereError(f"{self.path}: field {number}, level {level} was not put at lead {lead} s")
            try:
                values, error = source.values(row, step, step.records[found[-1]]), None
            except (TailraceError, OSError) as raised:
                error = raised
            if index is not None and holds_still(index.path, step):
                if error is not None:
                    raise error
                return values
            self.refresh(anew=True)
        raise StateError(f"{self.path}: the step at lead {lead} s was replaced again and again while it was read") from error

    def durable_steps(self) -> int:
        """How many of the steps are on storage, as `tailrace wait` says: the index is synchronised, the data are as long as it says, and
        the number of steps that the format tells, too."""
        index = self.index
        if index is None or not index.steps:
            return 0
        try:
            descriptor = os.open(index.path, os.O_RDONLY | os.O_CLOEXEC)
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
