# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Reads the values of a data file, record by record, in each format that streams write."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from . import classic, decode_grib
from .binary import elements_of, read_range
from .errors import FormatError, NotThereError
from .head import Coordinate, Described, plain_dims
from .index import MOST_FAR_LEAD, IndexField, IndexHeader, IndexStep


_LATEST = 1 << 53  # up to here float64 holds every whole number


class CfVariable(Protocol):
    """A variable in a format that keeps CF metadata."""

    @property
    def name(self) -> str: ...
    @property
    def dims(self) -> tuple[str, ...]: ...
    @property
    def attrs(self) -> dict[str, Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def has_steps(self) -> bool: ...


class Source:
    """A data file with the header of its index. Reads raw records, and is the base of the readers of other formats."""

    def __init__(self, path: str, header: IndexHeader) -> None:
        self.path, self.header = path, header
        self._described: dict[int, Described] = {}

    def values(self, row: int, step: IndexStep, record: np.void) -> np.ndarray:
        """Returns one record of the step at position `row` of the file, in a new array with the shape of the field."""
        field = self.header.fields[record["field"]]
        values = self.decoded(self.bytes_of(step, record), field, self.what(step, record))
        fill = self.described(int(record["field"]), step, record).fill
        if fill is not None and values.dtype.kind in "fc" and fill == fill:
            values[values == np.asarray(fill, values.dtype)] = np.nan
        return values

    def bytes_of(self, step: IndexStep, record: np.void) -> bytes:
        """Returns the bytes of a record. Checks their number against the field first, because a file with holes can
        claim any size."""
        length, what = int(record["length"]), self.what(step, record)
        most = self.most_bytes(self.header.fields[record["field"]], what)
        if length > most:
            raise FormatError(f"{what}: a record of {length} bytes, and it takes at most {most}")
        return read_range(self.path, int(record["offset"]), length)

    def most_bytes(self, field: IndexField, what: str) -> int:
        """Returns an upper bound of the bytes of a record of the field."""
        return elements_of(field.shape, what) * field.dtype.itemsize

    def what(self, step: IndexStep, record: np.void) -> str:
        """Returns the words by which errors name a record."""
        field = self.header.fields[record["field"]]
        return f'{self.path}: "{field.name}", level {field.levels[record["level"]]:g}, {self.header.time.at(step.lead)}'

    def decoded(self, data: bytes, field: IndexField, what: str) -> np.ndarray:
        return _plain(data, field.dtype, field.shape, what)

    def described(self, number: int, step: IndexStep, record: np.void) -> Described:
        """Returns the metadata of a field that the file holds. `record` is one of the field's records."""
        if number not in self._described:
            self._described[number] = self._describe(number, step, record)
        return self._described[number]

    def _describe(self, number: int, step: IndexStep, record: np.void) -> Described:
        return Described(plain_dims(self.header.fields[number].shape))

    def static(self, number: int) -> np.ndarray | None:
        """Returns all levels of a field without time, in a new array, or None if the file has no such variable. Raises
        NotThereError if the file does not tell yet."""
        return None

    def cf_described(self, number: int) -> Described:
        """Returns the metadata of a field by its variable in the file."""
        return Described(plain_dims(self.header.fields[number].shape))

    def attributes(self) -> dict[str, Any]:
        """Returns the attributes of the file; none in formats that have none, and of a file that does not tell them yet."""
        return {}

    def interval_begin(self, row: int, step: IndexStep, record: np.void) -> int | None:
        """Returns the lead at which the interval of a record in step `row` begins, or None if the file does not state
        it."""
        return None

    def check_size(self, end: int) -> None:
        """Raises FormatError if the file is shorter than its committed bytes."""
        size = os.stat(self.path).st_size
        if size < end:
            raise FormatError(f"{self.path}: has {size} bytes, but its index says that {end} are committed")

    def tells(self, row: int) -> bool:
        """Returns True if other readers of the format find step `row`, too: some formats have their own number of
        steps in the file."""
        return True


def _plain(data: bytes, dtype: np.dtype, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Returns elements that have nothing around them, in this machine's byte order."""
    if len(data) != elements_of(shape, what) * dtype.itemsize:
        raise FormatError(f"{what}: a record of {len(data)} bytes in place of {elements_of(shape, what) * dtype.itemsize}")
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))


class GribSource(Source):
    """Each record is a message."""

    def __init__(self, path: str, header: IndexHeader) -> None:
        super().__init__(path, header)
        self.grids: dict[bytes, Described] = {}

    def most_bytes(self, field: IndexField, what: str) -> int:
        # Room for values of at most 64 bits, a bitmap, and sections, of which the longest lists rows.
        return 16 * elements_of(field.shape, what) + (128 << 20)

    def values(self, row: int, step: IndexStep, record: np.void) -> np.ndarray:
        field, what = self.header.fields[record["field"]], self.what(step, record)
        message = self.bytes_of(step, record)
        return decode_grib.decode(message, field.shape, np.dtype(np.float32 if field.type == 5 else np.float64), what)

    def interval_begin(self, row: int, step: IndexStep, record: np.void) -> int | None:
        what, length = self.what(step, record), int(record["length"])
        begin = None
        # Try a short read first: only section 3 of a reduced grid is longer, with a number for each row.
        for most in (1024, 1 << 20):
            try:
                begin = decode_grib.interval_begin(read_range(self.path, int(record["offset"]), min(length, most)), what)
                break
            except FormatError:
                if most >= length or most > 1024:
                    raise
        return None if begin is None else self.header.time.lead_at(begin)

    def _describe(self, number: int, step: IndexStep, record: np.void) -> Described:
        field = self.header.fields[number]
        message = self.bytes_of(step, record)
        return decode_grib.describe(message, field.name, field.shape, self.what(step, record), self.grids)


class CfSource(Source):
    """A format that keeps the metadata of CF in the file."""

    def __init__(self, path: str, header: IndexHeader) -> None:
        super().__init__(path, header)
        self._bounds: dict[int, CfVariable | None] = {}

    def _describe(self, number: int, step: IndexStep, record: np.void) -> Described:
        return self.cf_described(number)

    def cf_variables(self) -> Sequence[CfVariable] | None:
        """Returns the variables of the file, or None if the file does not list them yet."""
        raise NotImplementedError

    def coordinate(self, variable: Any) -> Coordinate:
        """Returns a variable without steps."""
        raise NotImplementedError

    def static(self, number: int) -> np.ndarray | None:
        variables = self.cf_variables()
        field = self.header.fields[number]
        if variables is None:
            raise NotThereError(f'{self.path}: no step has "{field.name}". If it has no time (time=none), it is read once the file is finished')
        found = _static(self.header.fields, number, variables)
        if found is None:
            return None
        values = np.array(self.coordinate(found).values(), field.dtype.newbyteorder("="))
        fill = found.attrs.get("_FillValue")
        if fill is not None and values.dtype.kind == "f" and fill == fill:
            values[values == np.asarray(fill, values.dtype)] = np.nan
        return values.reshape((*found.shape[:len(found.shape) - len(field.shape)], *field.shape))

    def bounds_at(self, variable: Any, row: int) -> float:
        """Returns the begin of the interval in step `row`, from a variable with the bounds of a time. NaN if it is
        not there."""
        raise NotImplementedError

    def interval_begin(self, row: int, step: IndexStep, record: np.void) -> int | None:
        number = int(record["field"])
        if number not in self._bounds:
            variables = self.cf_variables()
            if variables is None:
                return None
            self._bounds[number] = _bounds_of(self.header, number, variables)
        bounds = self._bounds[number]
        begin = self.bounds_at(bounds, row) if bounds is not None else np.nan
        axis = self.header.time
        if not np.isfinite(begin) or (not axis.is_model and abs(begin) >= _LATEST):
            return None
        lead = axis.lead_of_number(begin)
        return lead if axis.holds(lead, MOST_FAR_LEAD) else None


def _bounds_of(header: IndexHeader, number: int, variables: Sequence[CfVariable]) -> CfVariable | None:
    """Returns the variable with the intervals of a field: the bounds of the field's time."""
    found, name = assigned(header.fields, variables).get(number), header.time.name
    if found is None:
        return None
    by_name = {each.name: each for each in variables if each.has_steps}
    listed = [each for each in str(found.attrs.get("coordinates", "")).split() if each in by_name and by_name[each].dims == (name,) and "bounds" in by_name[each].attrs]
    time = by_name.get(listed[0] if listed else name)
    bounds = by_name.get(str(time.attrs.get("bounds", ""))) if time is not None else None
    return bounds if bounds is not None and bounds.shape == (2,) else None


def cf_described(fields: Sequence[IndexField], number: int, variables: Sequence[CfVariable], coordinate: Callable[[Any], Coordinate]) -> Described:
    """Returns metadata and coordinates of a field, from its variable among those of the file."""
    found = assigned(fields, variables).get(number) or _static(fields, number, variables)
    field = fields[number]
    if found is None:
        return Described(plain_dims(field.shape))
    before = 1 if found.has_steps else 0  # dimensions before those of levels
    attrs = dict(found.attrs)
    fill = attrs.pop("_FillValue", None)
    has_levels = len(found.dims) == len(field.shape) + before + 1
    dims = found.dims[before + (1 if has_levels else 0):]
    by_name = {each.name: each for each in variables if not each.has_steps}
    if found.shape[1 if has_levels else 0:] != field.shape:
        return Described(plain_dims(field.shape), attrs, fill)
    listed = str(attrs.pop("coordinates", "")).split()
    wanted = [*found.dims[before:], *listed, str(attrs.get("grid_mapping", ""))]
    wanted += [str(by_name[name].attrs["bounds"]) for name in list(wanted) if name in by_name and "bounds" in by_name[name].attrs]
    for name in list(wanted):
        terms = str(by_name[name].attrs.get("formula_terms", "")).split() if name in by_name else []
        wanted += [term for term in terms if not term.endswith(":")]
    coordinates = {name: coordinate(by_name[name]) for name in dict.fromkeys(wanted) if name in by_name}
    level = found.dims[before] if has_levels else next((each for each in listed if each in by_name and by_name[each].attrs.get("axis") == "Z"), None)
    return Described(dims, attrs, fill, coordinates, level)


V = TypeVar("V", bound=CfVariable)


def _static(fields: Sequence[IndexField], number: int, variables: Sequence[V]) -> V | None:
    """Returns the variable of a field without time, which is no coordinate of its own dimension, or None."""
    field = fields[number]
    shape = ((len(field.levels),) if len(field.levels) > 1 else ()) + field.shape
    names = (field.name, f"{field.name}_{field.level_type}")
    found = [each for each in variables if not each.has_steps and each.name in names and each.name not in each.dims and each.shape == shape]
    return found[0] if found and number not in assigned(fields, variables) else None


def assigned(fields: Sequence[IndexField], variables: Sequence[V]) -> dict[int, V]:
    """Returns the variable of each field. Both lists are in the order of the definitions. If several fields have one
    name, the later ones' variables also have the type of level in their names."""
    has_scalars = any(not field.shape for field in fields)  # else a variable along time alone is no field
    left = [each for each in variables if each.has_steps and (has_scalars or len(each.dims) > 1)]
    out: dict[int, V] = {}
    for number, field in enumerate(fields):
        fits = [each for each in left if len(each.dims) - 1 in (len(field.shape), len(field.shape) + 1) or each.name == field.name]
        named = [each for each in fits if each.name == field.name]
        longer = [each for each in fits if each.name.startswith(f"{field.name}_{field.level_type}")]
        again = any(other.name == field.name for other in fields[:number])
        chosen = (longer or named) if again else (named or longer)
        if chosen:
            out[number] = chosen[0]
            left.remove(chosen[0])
    return out


class ClassicSource(CfSource):
    """A record is one level of a variable, big-endian."""

    _head: classic.ClassicHead | None = None

    def head(self) -> classic.ClassicHead:
        if self._head is None:
            self._head = classic.ClassicHead(self.path, self.header.data_begin)
        return self._head

    def decoded(self, data: bytes, field: IndexField, what: str) -> np.ndarray:
        return _plain(data, field.dtype.newbyteorder(">"), field.shape, what)

    def cf_described(self, number: int) -> Described:
        return cf_described(self.header.fields, number, self.head().variables, self.coordinate)

    def cf_variables(self) -> Sequence[CfVariable]:
        return self.head().variables

    def attributes(self) -> dict[str, Any]:
        return dict(self.head().attrs)

    def coordinate(self, variable: classic.Variable) -> Coordinate:
        return self.head().coordinate(variable)

    def bounds_at(self, variable: classic.Variable, row: int) -> float:
        return self.head().first_of(variable, row)

    def tells(self, row: int) -> bool:
        return classic.told_steps(self.path, self.head().version) > row
