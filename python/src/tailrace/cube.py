# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""One field over all leads of a run. Its values are read only when they are asked for."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from .data_file import DataFile
from .errors import TailraceError
from .threads import side_by_side
from .variables import Variable, absent

if TYPE_CHECKING:
    from .index import IndexHeader, IndexStep


class Cube(BackendArray):
    """Lazy values (lead, level, y, x), or (lead, y, x) with one level. `places` has, for each lead and level, the
    position in `steps` of the step with the record, or -1 if it was not put."""

    def __init__(self, variable: Variable, dtype: np.dtype, leads: int) -> None:
        self.variable = variable
        self.dtype = dtype
        #: The file's fill value, for records that were not put.
        self.fill: Any = None
        self.has_levels = len(variable.levels) > 1
        self.shape = (leads, *variable.shape)
        self.places = np.full((leads, len(variable.levels)), -1, np.int64)
        # Of each step: file, header of the file, step, its number among the steps of its lead, number of the field.
        self.steps: list[tuple[DataFile, IndexHeader, IndexStep, int, int]] = []

    def add(self, row: int, file: DataFile, step: IndexStep, ordinal: int, number: int) -> None:
        """Adds the records of field `number` in a step, whose lead has position `row`. Of two steps at one lead the
        later one counts."""
        self.places[row, step.records["level"][step.records["field"] == number]] = len(self.steps)
        assert file.index is not None
        self.steps.append((file, file.index.header, step, ordinal, number))

    def first(self) -> tuple[DataFile, IndexStep, int, np.void]:
        """Returns one record of the field, with its file, for questions about the field."""
        file, _, step, _, number = self.steps[0]
        return file, step, number, step.records[np.flatnonzero(step.records["field"] == number)[0]]

    def begins(self) -> list[int | None]:
        """Returns the begin of the field's interval for each lead, as a lead: None if it is unknown or the field was not put. A file that cannot be read counts as unknown here; reading its values
        raises the error."""
        def begin(lead: int) -> int | None:
            put = np.flatnonzero(self.places[lead] >= 0)
            if not len(put):
                return None
            file, header, step, ordinal, number = self.steps[self.places[lead, put[0]]]
            try:
                return file.interval_begin(header, step.lead, ordinal, number, int(put[0]))
            except (TailraceError, OSError):
                return None
        return side_by_side(begin, list(range(len(self.places))))

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._outer)

    def _outer(self, key: tuple[Any, ...]) -> np.ndarray:
        if not self.has_levels:
            key = (key[0], 0, *key[1:])
        leads, levels = (np.atleast_1d(np.arange(length)[each]) for length, each in zip(self.places.shape, key))
        cut = _cut(key[2:])
        wanted = [(lead, level) for lead in leads for level in levels]
        parts = side_by_side(lambda each: cut(self._record(*each)), wanted)
        out_shape = [len(each) for each, one in ((leads, key[0]), (levels, key[1])) if not isinstance(one, (int, np.integer))]
        if not parts:
            return np.empty((*out_shape, *cut(absent(self.variable.field.shape, self.dtype, self.fill)).shape), self.dtype)
        return np.stack(parts).reshape((*out_shape, *parts[0].shape)).astype(self.dtype, copy=False)

    def _record(self, lead: int, level: int) -> np.ndarray:
        place = self.places[lead, level]
        if place < 0:
            return absent(self.variable.field.shape, self.dtype, self.fill)
        file, header, step, ordinal, number = self.steps[place]
        return file.record(header, step.lead, ordinal, number, int(level))


def _cut(keys: tuple[Any, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a function that selects points of a record. It starts with the last dimension, so that earlier ones
    keep their positions."""
    def cut(record: np.ndarray) -> np.ndarray:
        for axis in range(len(keys) - 1, -1, -1):
            record = record[(slice(None),) * axis + (keys[axis],)]
        return record
    return cut
