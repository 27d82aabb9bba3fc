# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The fields of a run's files, each under one name, and the values of levels that a step lacks."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .index import IndexField


@dataclass(frozen=True)
class Variable:
    """A field of a run: its name (with the type of level behind it if another field has the name), type of level and levels."""

    name: str
    field: IndexField

    @property
    def level_type(self) -> str:
        return self.field.level_type

    @property
    def levels(self) -> tuple[float, ...]:
        return self.field.levels

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all levels in one step. A field with one level has no dimension for levels."""
        return ((len(self.levels),) if len(self.levels) > 1 else ()) + self.field.shape


class Variables:
    """The fields of all files. Each field appears once, under a name of its own."""

    def __init__(self) -> None:
        self._by_field: dict[tuple[object, ...], Variable] = {}
        self._of_header: dict[tuple[IndexField, ...], tuple[Variable, ...]] = {}
        self.by_name: dict[str, Variable] = {}

    def of(self, fields: tuple[IndexField, ...]) -> tuple[Variable, ...]:
        """Returns the variables of a file's fields, in their order."""
        if fields not in self._of_header:
            seen: dict[IndexField, int] = {}
            found = []
            for field in fields:
                seen[field] = seen.get(field, 0) + 1
                key = (field.name, field.level_type, field.levels, field.shape, seen[field])
                if key not in self._by_field:
                    self._by_field[key] = Variable(self._free_name(field), field)
                    self.by_name[self._by_field[key].name] = self._by_field[key]
                found.append(self._by_field[key])
            self._of_header[fields] = tuple(found)
        return self._of_header[fields]

    def _free_name(self, field: IndexField) -> str:
        name = field.name if field.name not in self.by_name else f"{field.name}_{field.level_type}"
        number = 2
        while name in self.by_name:
            name, number = f"{field.name}_{field.level_type}_{number}", number + 1
        return name


# Integers have no NaN: these are the NetCDF library's values for "no value" (netcdf.h, NC_FILL_*).
INTEGER_FILL = {"i1": -127, "u1": 255, "i2": -32767, "i4": -2147483647, "i8": -9223372036854775806,
                "u2": 65535, "u4": 4294967295, "u8": 18446744073709551614}


def absent(shape: tuple[int, ...], dtype: np.dtype, fill: Any) -> np.ndarray:
    """Returns a level that was not put: NaN, in integers the file's fill value, or empty texts."""
    if dtype.kind == "S":
        return np.zeros(shape, dtype)
    value = INTEGER_FILL.get(dtype.str[1:], np.nan)
    if dtype.kind in "iu" and isinstance(fill, (int, np.integer)) and np.iinfo(dtype).min <= fill <= np.iinfo(dtype).max:
        value = int(fill)
    return np.full(shape, value, dtype)
