# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The head of a classic NetCDF file (docs/formats/classic-netcdf.md): dimensions, attributes, and where variables lie."""
from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from .binary import elements_of, open_regular, pread_whole, read_range
from .errors import FormatError
from .head import Coordinate

_TYPES = {1: ">i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 7: ">u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}
MOST_HEAD = 64 << 20  # bytes of names and attributes


@dataclass(frozen=True)
class Variable:
    name: str
    dims: tuple[str, ...]
    attrs: dict[str, Any]
    dtype: np.dtype
    shape: tuple[int, ...]  # without the steps
    begin: int
    has_steps: bool


class _Scanner:
    """Reads the big-endian parts of a head. Raises FormatError for a count that the rest of the bytes cannot hold."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data, self.what, self.at = data, what, 4
        if data[:3] != b"CDF" or data[3:4] not in (b"\1", b"\2", b"\5"):
            raise FormatError(f"{what}: does not begin as a classic NetCDF file")
        self.version = data[3]

    def number(self, code: str) -> int:
        length = struct.calcsize(">" + code)
        if self.at + length > len(self.data):
            raise FormatError(f"{self.what}: the head ends at byte {len(self.data)}, and more is told of")
        self.at += length
        return int(struct.unpack_from(">" + code, self.data, self.at - length)[0])

    def count(self) -> int:
        return self.number("q" if self.version == 5 else "i")

    def some(self, least: int) -> int:
        """Returns the number of entries that follow, of at least `least` bytes each."""
        number = self.count()
        if number < 0 or number > (len(self.data) - self.at) // least:
            raise FormatError(f"{self.what}: the head tells of {number} entries at byte {self.at}, which it cannot hold")
        return number

    def raw(self, length: int) -> bytes:
        padded = (length + 3) // 4 * 4
        if length < 0 or self.at + padded > len(self.data):
            raise FormatError(f"{self.what}: {length} bytes are told of at byte {self.at} of the head, which has {len(self.data)}")
        self.at += padded
        return self.data[self.at - padded:self.at - padded + length]

    def name(self) -> str:
        return self.raw(self.count()).decode("utf-8", "replace")

    def list_length(self, tag: int, least: int) -> int:
        found, number = self.number("i"), self.some(least)
        if found not in (0, tag) or (found == 0 and number):
            raise FormatError(f"{self.what}: a list of kind {found} in place of {tag} at byte {self.at}")
        return number

    def dtype(self) -> np.dtype:
        kind = self.number("i")
        if kind not in _TYPES:
            raise FormatError(f"{self.what}: type {kind} does not exist")
        return np.dtype(_TYPES[kind])

    def attributes(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for _ in range(self.list_length(12, 12)):
            name, dtype = self.name(), self.dtype()
            data = self.raw(self.count() * dtype.itemsize)
            if dtype.kind == "S":
                out[name] = data.decode("utf-8", "replace")
            else:
                values = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
                out[name] = values[0] if values.size == 1 else values
        return out


class ClassicHead:
    """The variables of a file. `data_begin` is taken from the index; the head ends before it."""

    def __init__(self, path: str, data_begin: int) -> None:
        descriptor = open_regular(path)
        try:
            data = pread_whole(descriptor, min(data_begin, MOST_HEAD), 0)
        finally:
            os.close(descriptor)
        scanner = _Scanner(data, path)
        self.path, self.data_begin, self.version = path, data_begin, scanner.version
        self.steps = scanner.count()
        dimensions = [(scanner.name(), scanner.count()) for _ in range(scanner.list_length(10, 8))]
        self.attrs = scanner.attributes()
        self.variables = [self._variable(scanner, dimensions) for _ in range(scanner.list_length(11, 28))]

    @staticmethod
    def _variable(scanner: _Scanner, dimensions: list[tuple[str, int]]) -> Variable:
        name, numbers = scanner.name(), [scanner.count() for _ in range(scanner.some(4))]
        if any(not 0 <= number < len(dimensions) for number in numbers):
            raise FormatError(f'{scanner.what}: variable "{name}" has a dimension that does not exist')
        attrs, dtype = scanner.attributes(), scanner.dtype()
        scanner.count()  # skip its size, which follows from shape and type
        begin = scanner.number("i" if scanner.version == 1 else "q")
        dims = tuple(dimensions[number][0] for number in numbers)
        has_steps = bool(numbers) and dimensions[numbers[0]][1] == 0
        shape = tuple(dimensions[number][1] for number in numbers)[1 if has_steps else 0:]
        elements_of(shape, scanner.what)
        if dtype.kind == "S" and shape and shape[-1] > 0:  # the bytes of a text lie along the last dimension
            dims, shape, dtype = dims[:-1], shape[:-1], np.dtype(f"S{shape[-1]}")
        return Variable(name, dims, attrs, dtype, shape, begin, has_steps)

    def first_of(self, variable: Variable, row: int) -> float:
        """Returns the first element of a variable in step `row`. A step holds all variables with steps, each padded
        to a multiple of 4 bytes."""
        size = sum(-(-elements_of(each.shape, self.path) * each.dtype.itemsize // 4) * 4 for each in self.variables if each.has_steps)
        data = read_range(self.path, variable.begin + row * size, variable.dtype.itemsize)
        return float(np.frombuffer(data, variable.dtype)[0])

    def coordinate(self, variable: Variable) -> Coordinate:
        """Returns a variable without steps as a coordinate. Raises FormatError unless it lies before the first step."""
        length = elements_of(variable.shape, self.path) * variable.dtype.itemsize
        if variable.begin < 0 or variable.begin + length > self.data_begin:
            raise FormatError(f'{self.path}: variable "{variable.name}" of {length} bytes does not lie before the steps')

        def values() -> np.ndarray:
            data = np.frombuffer(read_range(self.path, variable.begin, length), variable.dtype)
            return data.reshape(variable.shape).astype(variable.dtype.newbyteorder("="))
        return Coordinate(variable.dims, values, variable.attrs)


def told_steps(path: str, version: int) -> int:
    """Returns the number of steps in the head, which other readers rely on."""
    data = read_range(path, 4, 8 if version == 5 else 4)
    return int.from_bytes(data, "big")
