# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Zarr stores (docs/formats/zarr.md). zarr-python decodes their chunks."""
from __future__ import annotations

import base64
import json
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .binary import open_regular
from .errors import FormatError, StateError, UnsupportedError
from .head import Coordinate, Described
from .index import IndexHeader, IndexStep
from .source import CfSource, assigned, cf_described

T = TypeVar("T")
MOST_METADATA = 64 << 20
PATIENCE = 2.0  # seconds to wait for zarr.json after a commit in the index


@dataclass(frozen=True)
class Variable:
    name: str
    dims: tuple[str, ...]
    attrs: dict[str, Any]
    shape: tuple[int, ...]
    has_steps: bool
    steps: int


def variables_of(path: str, time: str) -> list[Variable]:
    """Returns the arrays that `zarr.json` of a store lists. `time` is the dimension of the steps."""
    return _told(path, lambda group: [_variable(name, each, time) for name, each in group["consolidated_metadata"]["metadata"].items()
                                      if each.get("node_type") == "array"])


def _told(path: str, take: Callable[[dict[str, Any]], T]) -> T:
    """Returns what `take` finds in `zarr.json` of a store."""
    file = os.path.join(path, "zarr.json")
    if os.stat(file).st_size > MOST_METADATA:
        raise FormatError(f"{file}: has more than {MOST_METADATA >> 20} MiB")
    with open(open_regular(file), "rb") as opened:
        try:
            return take(json.load(opened))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"{file}: this is no metadata of a store that Tailrace has written ({error!r})") from error


def _variable(name: str, metadata: dict[str, Any], time: str) -> Variable:
    dims, shape = tuple(map(str, metadata["dimension_names"])), tuple(map(int, metadata["shape"]))
    if len(dims) != len(shape):
        raise ValueError(f'array "{name}" has {len(dims)} names of {len(shape)} dimensions')
    attrs = dict(metadata.get("attributes", {}))
    if "_FillValue" in attrs:
        attrs["_FillValue"] = _fill(attrs["_FillValue"])
    has_steps = bool(dims) and dims[0] == time
    return Variable(name, dims, attrs, shape[1:] if has_steps else shape, has_steps, shape[0] if has_steps else 0)


def _fill(value: Any) -> Any:
    """Returns a fill value, which is stored as an integer or as the base64 of a little-endian float64."""
    if not isinstance(value, str):
        return value
    data = base64.b64decode(value)
    if len(data) != 8:
        raise ValueError(f"fill value {value!r}")
    return struct.unpack("<d", data)[0]


class ZarrSource(CfSource):
    """A record is one level of an array in one step."""

    def __init__(self, path: str, header: IndexHeader) -> None:
        super().__init__(path, header)
        self._arrays: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    def _library(self) -> Any:
        try:
            import zarr
        except ImportError as error:
            raise UnsupportedError(f"{self.path}: Zarr stores need zarr-python: pip install 'tailrace[zarr]'") from error
        return zarr

    def cf_described(self, number: int) -> Described:
        return cf_described(self.header.fields, number, variables_of(self.path, self.header.time.name), self.coordinate)

    def cf_variables(self) -> list[Variable]:
        return variables_of(self.path, self.header.time.name)

    def attributes(self) -> dict[str, Any]:
        return _told(self.path, lambda group: dict(group.get("attributes", {})))

    def bounds_at(self, variable: Variable, row: int) -> float:
        array = self.array(variable.name, row + 1)
        if array.ndim != 2 or array.shape[0] <= row:
            return float("nan")
        try:
            return float(array[row, 0])
        except Exception as error:  # codecs of several packages raise errors of their own
            raise FormatError(f'{self.path}: array "{variable.name}" cannot be decoded: {error!r}') from error

    def coordinate(self, variable: Variable) -> Coordinate:
        return Coordinate(variable.dims, lambda: np.asarray(self.array(variable.name, 0)[...]),
                          {name: value for name, value in variable.attrs.items() if name != "_FillValue"})

    def array(self, name: str, steps: int) -> Any:
        """Returns an array. Opens it again if the opened one has fewer steps than `steps`."""
        found = self._arrays.get(name)
        if found is None or (found.ndim and found.shape[0] < steps):
            try:
                found = self._library().open_group(self.path, mode="r")[name]
            except (ValueError, KeyError, OSError, TypeError) as error:
                raise FormatError(f'{self.path}: array "{name}" cannot be opened: {error!r}') from error
            self._arrays[name] = found
        return found

    def values(self, row: int, step: IndexStep, record: np.void) -> np.ndarray:
        number = int(record["field"])
        field, what = self.header.fields[number], self.what(step, record)
        array = self.array(self._name(number), row + 1)
        # A writer commits a step in the index a moment before it changes zarr.json.
        until = time.monotonic() + PATIENCE
        while array.shape[0] <= row and time.monotonic() < until:
            time.sleep(0.01)
            array = self.array(self._name(number), row + 1)
        if array.shape[0] <= row:
            raise StateError(f"{what}: committed, but zarr.json tells of {array.shape[0]} steps only, also {PATIENCE} s later: its writer was stopped in between; "
                             "run tailrace repair if none is running")
        has_levels = array.ndim == len(field.shape) + 2
        if (has_levels and array.shape[1] != len(field.levels)) or int(np.prod(array.shape[2 if has_levels else 1:], dtype=object)) != \
                int(np.prod(field.shape, dtype=object)):
            raise FormatError(f"{what}: an array of the shape {array.shape}, and records of {field.shape} in the index")
        try:
            values = np.array(array[(row, int(record["level"])) if has_levels else (row,)])
        except Exception as error:  # codecs of several packages raise errors of their own
            raise FormatError(f"{what}: the chunk cannot be decoded: {error!r}") from error
        fill = self.described(number, step, record).fill
        if fill is not None and values.dtype.kind == "f" and fill == fill:
            values[values == np.asarray(fill, values.dtype)] = np.nan
        return values.reshape(field.shape)

    def _name(self, number: int) -> str:
        if number not in self._names:
            found = assigned(self.header.fields, variables_of(self.path, self.header.time.name)).get(number)
            if found is None:
                raise FormatError(f'{self.path}: the store has no array of field "{self.header.fields[number].name}"')
            self._names[number] = found.name
        return self._names[number]

    def check_size(self, end: int) -> None:
        if not os.path.exists(os.path.join(self.path, "zarr.json")):
            raise FormatError(f"{self.path}: has no zarr.json, but its index has steps")

    def tells(self, row: int) -> bool:
        return all(each.steps > row for each in variables_of(self.path, self.header.time.name) if each.has_steps)
