# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Records of NetCDF-4 files (docs/formats/netcdf4.md). Tailrace's index says where they lie, so steps can be read
before HDF5 can open the file. In a finished file, h5py gives names, units, coordinates and chunks; before, the head
gives chunks and missing values."""
from __future__ import annotations

import itertools
import os
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .binary import elements_of, read_range
from .definitions import Record, read_definitions
from .errors import FormatError, UnsupportedError
from .head import Coordinate, Described, plain_dims
from .index import IndexField, IndexHeader
from .source import CfSource, assigned, cf_described

_OWN = ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates")
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"  # netCDF-C's name of a dimension without coordinates
MOST_CHUNKS, MOST_STEPS = 1 << 16, 1 << 22
MOST_INFLATION = 1040  # a byte of deflate stands for less than 1,032 (zlib's technical details)


@dataclass(frozen=True)
class Variable:
    name: str
    dims: tuple[str, ...]
    attrs: dict[str, Any]
    shape: tuple[int, ...]
    has_steps: bool
    chunk: tuple[int, ...] | None


class Netcdf4Source(CfSource):
    """Reads chunks that are plain, or shuffled and deflated."""

    _variables: list[Variable] | None = None

    def __init__(self, path: str, header: IndexHeader) -> None:
        super().__init__(path, header)
        self._begins: dict[str, tuple[tuple[int, ...], np.ndarray]] = {}
        self._records: list[tuple[Record, ...] | None] = []  # empty until first needed

    @property
    def is_finished(self) -> bool:
        return read_range(self.path, 0, 4) == b"\x89HDF"

    def cf_described(self, number: int) -> Described:
        if not self.is_finished:
            records = self.records()
            return Described(plain_dims(self.header.fields[number].shape), fill=records[number].fill if records else None)
        return cf_described(self.header.fields, number, self.variables(), self.coordinate)

    def described(self, number: int, step: Any, record: np.void) -> Described:
        # Do not keep this description: the finished file will hold more.
        if number not in self._described and not self.is_finished:
            if self.records() is None:
                warnings.warn("a NetCDF-4 file that is not finished tells its missing values (missing=) in a way that this version of the package does "
                              "not know: they come as they are, not as NaN, until its stream has closed the file", RuntimeWarning, stacklevel=2)
            return self._describe(number, step, record)
        return super().described(number, step, record)

    def records(self) -> tuple[Record, ...] | None:
        """Returns the layout of each field's records, from the head, or None if another version has written the
        head."""
        if not self._records:
            self._records = [read_definitions(self.path, self.header)]
        return self._records[0]

    def variables(self) -> list[Variable]:
        if self._variables is None:
            with _opened(self.path) as file:
                self._variables = [_variable(name, each, self.header.time.name) for name, each in file.items()
                                   if hasattr(each, "shape") and not bytes(each.attrs.get("NAME", b"")).startswith(_NO_VARIABLE)]
        return self._variables

    def cf_variables(self) -> list[Variable] | None:
        return self.variables() if self.is_finished else None

    def attributes(self) -> dict[str, Any]:
        if not self.is_finished:
            return {}
        with _opened(self.path) as file:
            return {key: _attribute(file.attrs[key]) for key in file.attrs if key not in _OWN}

    def bounds_at(self, variable: Variable, row: int) -> float:
        # A stream that continues opens a finished file again and adds steps, so look whether the file has changed.
        status = os.stat(self.path)
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if variable.name not in self._begins or self._begins[variable.name][0] != stamp:
            if not self.is_finished:
                return np.nan
            try:
                with _opened(self.path) as file:
                    dataset = file[variable.name]
                    steps = min(dataset.shape[0], MOST_STEPS)
                    self._begins[variable.name] = stamp, np.asarray(dataset[:steps, 0], np.float64)
            except (KeyError, OSError, RuntimeError, TypeError, ValueError, IndexError) as error:
                raise FormatError(f'{self.path}: "{variable.name}" cannot be read: {error!r}') from error
        begins = self._begins[variable.name][1]
        return float(begins[row]) if row < len(begins) else np.nan

    def coordinate(self, variable: Variable) -> Coordinate:
        def values() -> np.ndarray:
            with _opened(self.path) as file:
                stored = np.asarray(file[variable.name][()])
                return _as_texts(stored) if _is_text(file[variable.name]) else stored
        return Coordinate(variable.dims, values, {name: value for name, value in variable.attrs.items() if name != "_FillValue"})

    def most_bytes(self, field: IndexField, what: str) -> int:
        # Chunks at the edges have their whole size, and data that cannot be compressed grow a little.
        return (super().most_bytes(field, what) << (len(field.shape) + 1)) + (1 << 20)

    def decoded(self, data: bytes, field: IndexField, what: str) -> np.ndarray:
        size = elements_of(field.shape, what) * field.dtype.itemsize
        is_finished = self.is_finished
        records = None if is_finished else self.records()
        if records is not None:
            return _as_told(data, field, next(each for each, its in zip(records, self.header.fields) if its is field), what)
        # A record's length does not show whether it is a single chunk.
        shape, chunk = (self._cut_of(field) if is_finished else None) or (field.shape, field.shape)
        if any(part < extent for part, extent in zip(chunk, shape)):
            if elements_of(chunk, what) * field.dtype.itemsize > size * 2 ** len(chunk):
                raise FormatError(f"{what}: the file tells chunks of the shape {chunk} for records of {shape}")
            return _joined(data, field.dtype, shape, chunk, what).reshape(field.shape)
        whole = None if not is_finished and _may_be_cut(data) else _one_chunk(data, field.dtype, size)
        if whole is not None:
            return whole.reshape(field.shape)
        if not is_finished:
            raise UnsupportedError(f"{what}: the field is cut into chunks, whose shape this version of the package knows once the file is finished")
        raise FormatError(f"{what}: the record is none of {size} bytes, and the file tells no chunks for it")

    def _cut_of(self, field: IndexField) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Returns the shapes of a record and of its chunks in the file, whose dimensions may differ from those of
        the program's array."""
        found = next((each for number, each in assigned(self.header.fields, self.variables()).items() if self.header.fields[number] is field), None)
        if found is None or not found.chunk:
            return None
        elements = elements_of(field.shape, field.name)
        for shape in (found.shape, found.shape[1:] if found.shape[:1] == (len(field.levels),) else ()):
            if shape and elements_of(shape, field.name) == elements:
                return shape, found.chunk[-len(shape):]
        return None


def _opened(path: str) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise UnsupportedError(f"{path}: h5py is needed to read what a NetCDF-4 file says of its fields: pip install 'tailrace[netcdf4]'") from error
    try:
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        raise FormatError(f"{path}: HDF5 cannot open it: {error}") from error


def _variable(name: str, dataset: Any, time: str) -> Variable:
    dims = tuple(dim[0].name.lstrip("/") if len(dim) else "" for dim in dataset.dims)
    if dataset.attrs.get("CLASS") == b"DIMENSION_SCALE" and dataset.ndim == 1:
        dims = (name,)
    attrs = {key: _attribute(dataset.attrs[key]) for key in dataset.attrs if key not in _OWN}  # lists of references are slow to read
    has_steps = bool(dims) and dims[0] == time
    shape, chunk = tuple(dataset.shape[1 if has_steps else 0:]), dataset.chunks
    if _is_text(dataset):
        dims, shape, chunk = dims[:-1], shape[:-1], chunk and chunk[:-1]
    return Variable(name, dims, attrs, shape, has_steps, chunk)


def _is_text(dataset: Any) -> bool:
    """Returns True if the bytes of a text lie along the last dimension."""
    return bool(dataset.dtype == "S1" and dataset.ndim and dataset.shape[-1])


def _as_texts(stored: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(stored).view(f"S{stored.shape[-1]}").reshape(stored.shape[:-1])


def _attribute(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.size == 1:
        return value.reshape(-1)[0]
    return value


def _as_told(data: bytes, field: IndexField, record: Record, what: str) -> np.ndarray:
    """Returns the elements of a record whose layout is known."""
    trailers = (8,) if record.has_interval else (0,)
    if record.chunk != record.shape:
        return _joined(data, field.dtype, record.shape, record.chunk, what, trailers, record.is_deflated).reshape(field.shape)
    size = elements_of(field.shape, what) * field.dtype.itemsize
    whole = _one_chunk(data, field.dtype, size, trailers, record.is_deflated)
    if whole is None:
        raise FormatError(f"{what}: the record is none of {size} bytes")
    return whole.reshape(field.shape)


def _one_chunk(data: bytes, dtype: np.dtype, size: int, trailers: Sequence[int] = (0, 8), is_deflated: bool | None = None) -> np.ndarray | None:
    """Returns the elements of a record of one chunk, which the begin of its interval may follow, or None if it is
    not such a record. If `is_deflated` is None, the bytes show whether it is deflated."""
    if not is_deflated and len(data) - size in trailers and (is_deflated is False or not _is_deflated(data, size)):
        return np.frombuffer(data[:size], dtype).astype(dtype.newbyteorder("="))
    inflated = None if is_deflated is False else _inflated(data, size)
    if inflated is None or inflated[1] not in trailers:
        return None
    return _unshuffled(inflated[0], dtype)


def _may_be_cut(data: bytes) -> bool:
    """Returns True if the record may end with the lengths of its chunks: numbers whose sum is the number of bytes
    before them."""
    for trailer in (0, 8):
        end = len(data) - trailer
        number = min(max(end, 0) // 4, MOST_CHUNKS)
        sums = np.cumsum(np.frombuffer(data[end - 4 * number:end], "<u4")[::-1], dtype=np.int64)
        if ((sums == end - 4 * np.arange(1, number + 1)) & (sums > 0))[1:].any():
            return True
    return False


def _is_deflated(data: bytes, size: int) -> bool:
    found = _inflated(data, size)
    return found is not None and found[1] in (0, 8)


def _inflated(data: bytes, size: int) -> tuple[bytes, int] | None:
    """Returns the inflated data if they have this size, and the number of bytes behind them. Inflates at most one
    byte more than `size`."""
    inflate = zlib.decompressobj()
    try:
        out = inflate.decompress(data, size + 1)
    except zlib.error:
        return None
    return (out, len(inflate.unused_data)) if inflate.eof and len(out) == size else None


def _unshuffled(data: bytes, dtype: np.dtype) -> np.ndarray:
    if dtype.itemsize == 1 or dtype.kind == "S":  # texts are not shuffled
        return np.frombuffer(data, dtype).copy()
    grouped = np.frombuffer(data, np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(grouped.T).reshape(-1).view(dtype).astype(dtype.newbyteorder("="))


def _joined(data: bytes, dtype: np.dtype, shape: tuple[int, ...], chunk: tuple[int, ...], what: str, trailers: Sequence[int] = (0, 8),
            is_deflated: bool | None = None) -> np.ndarray:
    """Returns the elements of a record of several chunks, which follow one another, with their lengths behind them."""
    counts = [-(-extent // length) for extent, length in zip(shape, chunk)]
    number = elements_of(counts, what)
    size = elements_of(chunk, what) * dtype.itemsize
    if not 1 < number <= MOST_CHUNKS:
        raise FormatError(f"{what}: a record of {number} chunks")
    for trailer in trailers:
        end = len(data) - trailer - 4 * number  # end of the chunks
        lengths = np.frombuffer(data[end:end + 4 * number] if end >= 0 else b"", "<u4")
        if len(lengths) and int(lengths.sum(dtype=np.int64)) == end:
            break
    else:
        raise FormatError(f"{what}: a record of {len(data)} bytes holds no {number} chunks")
    if number * size > MOST_INFLATION * len(data):
        raise FormatError(f"{what}: a record of {len(data)} bytes holds no chunks of {number * size} bytes")
    out = np.empty(shape, dtype.newbyteorder("="))
    at = 0
    for place, length in zip(itertools.product(*(range(count) for count in counts)), lengths):
        elements = _one_chunk(data[at:at + int(length)], dtype, size, (0,), is_deflated)
        if elements is None:
            raise FormatError(f"{what}: a chunk of {length} bytes does not hold {size} bytes")
        at += int(length)
        begins = [number_ * extent for number_, extent in zip(place, chunk)]
        inside = tuple(slice(0, min(extent, total - begin)) for begin, extent, total in zip(begins, chunk, shape))
        out[tuple(slice(begin, begin + part.stop) for begin, part in zip(begins, inside))] = elements.reshape(chunk)[inside]
    return out
