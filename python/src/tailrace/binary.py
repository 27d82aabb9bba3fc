# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Reading of bytes within the bounds of a file, and checksums."""
from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import xxhash

from .errors import FormatError

# The types of elements, by their numbers in indexes and checkpoints. All are little-endian.
ELEMENT_TYPES = {1: "<i1", 2: "<i2", 3: "<i4", 4: "<i8", 5: "<f4", 6: "<f8", 7: "<c8", 8: "<c16", 9: "<u1",
                 10: "<u2", 11: "<u4", 12: "<u8"}
_TEXT_TYPES, _MOST_TEXT = 4096, 4096
MOST_ELEMENTS = 1 << 62


def element_type(number: int) -> str | None:
    """Returns the type with this number, or None if there is none."""
    if 0 < number - _TEXT_TYPES <= _MOST_TEXT:
        return f"S{number - _TEXT_TYPES}"
    return ELEMENT_TYPES.get(number)


def xxh3_64(data: bytes | memoryview, seed: int = 0) -> int:
    """Returns the XXH3-64 of xxHash 0.8."""
    return int(xxhash.xxh3_64_intdigest(data, seed))


class Fields:
    """Reads numbers and texts from bytes, one after another. Raises FormatError, beginning with `what`, if the bytes
    end too early. `order` is the numbers' byte order, as in `struct`."""

    def __init__(self, data: bytes, what: str, order: Literal["<", "="] = "<") -> None:
        self.data, self.at, self.what, self.order = data, 0, what, order

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def raw(self, length: int) -> bytes:
        if length < 0 or length > self.left:
            raise FormatError(f"{self.what}: {length} bytes are told of at byte {self.at}, and {self.left} are left")
        self.at += length
        return self.data[self.at - length:self.at]

    def many(self, code: str) -> tuple[Any, ...]:
        """Returns the next numbers; `code` has their types as in `struct`."""
        return struct.unpack(self.order + code, self.raw(struct.calcsize(self.order + code)))

    def u32(self) -> int:
        return int(self.many("I")[0])

    def i32(self) -> int:
        return int(self.many("i")[0])

    def i64(self) -> int:
        return int(self.many("q")[0])

    def count(self, length_of_one: int, wide: bool = False) -> int:
        """Returns the number of entries that follow. Raises FormatError if the rest of the bytes cannot hold so many
        entries of at least `length_of_one` bytes."""
        number = self.i64() if wide else self.u32()
        if number < 0 or number > self.left // max(length_of_one, 1):
            raise FormatError(f"{self.what}: {number} entries are told of at byte {self.at}, and {self.left} bytes are left")
        return number

    def array(self, dtype: str, number: int) -> np.ndarray:
        return np.frombuffer(self.raw(number * np.dtype(dtype).itemsize), dtype)

    def end(self) -> None:
        if self.left:
            raise FormatError(f"{self.what}: {self.left} bytes are behind its last part")


def text_of(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{what}: a text is no UTF-8") from error


def elements_of(shape: Sequence[int], what: str) -> int:
    """Returns the number of elements of a shape. Raises FormatError for negative extents and for more than 2^62
    elements."""
    elements = 1
    for extent in shape:
        elements *= extent
        if extent < 0 or elements > MOST_ELEMENTS:
            raise FormatError(f"{what}: an extent of {extent}")
    return elements


def pread_whole(descriptor: int, length: int, offset: int) -> bytes:
    """Returns `length` bytes from `offset` on, and fewer at the end of the file. Repeats the call, because one
    system call reads less than 2 GiB."""
    parts: list[bytes] = []
    while length > 0:
        part = os.pread(descriptor, min(length, 1 << 30), offset)
        if not part:
            break
        parts.append(part)
        length -= len(part)
        offset += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_regular(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.ESPIPE, "it is a pipe, a socket or a device, and no regular file", path)


def open_regular(path: str) -> int:
    """Opens a regular file for reading and returns its descriptor. Raises OSError for anything else. Never waits for
    the other end of a pipe."""
    _check_regular(os.stat(path).st_mode, path)
    # Look at the opened file, because another one may take its place in between.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_regular(os.fstat(descriptor).st_mode, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_range(path: str, offset: int, length: int) -> bytes:
    """Returns `length` bytes of a file from `offset` on. Raises FormatError if the file is shorter."""
    descriptor = open_regular(path)
    try:
        size = os.fstat(descriptor).st_size
        if offset < 0 or length < 0 or offset + length > size:
            raise FormatError(f"{path}: has {size} bytes, and bytes {offset} to {offset + length} are needed: it was cut short")
        data = pread_whole(descriptor, length, offset)
    finally:
        os.close(descriptor)
    if len(data) != length:
        raise FormatError(f"{path}: ended at byte {offset + len(data)} while it was read, and bytes up to {offset + length} are needed")
    return data
