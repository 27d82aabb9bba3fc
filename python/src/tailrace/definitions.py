# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The definitions in the head of a NetCDF-4 file (docs/formats/netcdf4.md). They describe how records are cut into
chunks and compressed, and which value means "no value", before HDF5 has written anything."""
from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import xxhash

from .binary import Fields, elements_of, read_range
from .errors import FormatError
from .index import MOST_HEADER, IndexField, IndexHeader
from .time_axis import TimeAxis

_BEGIN, _MARK, _VERSIONS, _ALIGNMENT = 64, b"TRLNC4D", (b"2", b"3"), 512
_MORE = 1 << 16  # in the calendar and in a field's type: more stands at the end
_REDUCTION = 1 << 18  # in a field's type: the field is what is left over some of its dimensions, and behind the rest stands of which
_WEIGHTS = 1 << 8  # in a field's operation over dimensions: its weights stand behind the names of dimensions
_ATTRIBUTES = 1 << 17  # in the calendar: attributes with types stand at the end
_ORDER: Final = "="  # numbers have the byte order of the machine that writes
_UNKNOWN, _TOLD = 0, 6  # kinds of grids between these two have dimensions of their own
# The NetCDF library's fill values, by the numbers of the types of elements.
_FILLS = {1: -127, 2: -32767, 3: -2147483647, 4: -9223372036854775806, 5: 9.969209968386869e36, 6: 9.969209968386869e36, 9: 255,
          10: 65535, 11: 4294967295, 12: 18446744073709551614}
#: Definitions with more bytes are not read: the checksum would need all of them.
MOST_DEFINITIONS = 4 << 30


@dataclass(frozen=True)
class Record:
    """The layout of a field's records in the file: shape of a record and of its chunks, and the element that means
    "no value"."""

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    is_deflated: bool
    has_interval: bool
    fill: Any


def read_definitions(path: str, header: IndexHeader) -> tuple[Record, ...] | None:
    """Returns the records of the index's fields. Returns None if another version of Tailrace has written the
    definitions, or if they have too many bytes."""
    parts = Fields(read_range(path, _BEGIN, 24), path, _ORDER)
    mark, version = parts.raw(len(_MARK)), parts.raw(1)
    if mark != _MARK:
        raise FormatError(f"{path}: its head holds no definitions")
    if version not in _VERSIONS:
        return None
    checksum, length = parts.many("Qq")
    begin = _BEGIN + 24
    if not 0 <= header.data_begin - begin - length < _ALIGNMENT:
        raise FormatError(f"{path}: its head tells of {length} bytes of definitions, and the data begin at byte {header.data_begin}")
    if length > MOST_DEFINITIONS:
        return None
    # Keep only the first bytes: the rest holds values of coordinates, which may be many.
    body, digest = b"", xxhash.xxh3_64()
    for at in range(0, length, MOST_HEADER):
        part = read_range(path, begin + at, min(length - at, MOST_HEADER))
        digest.update(part)
        body = body or part
    if digest.intdigest() != checksum or any(read_range(path, begin + length, header.data_begin - begin - length)):
        raise FormatError(f"{path}: the definitions in its head are damaged")
    parts = Fields(body, f"{path}: the definitions in its head", _ORDER)
    records, has_more = _records(parts, header)
    if has_more != (version == b"3"):
        raise FormatError(f"{parts.what} contradict their version {version.decode()}")
    return records


def _records(parts: Fields, header: IndexHeader) -> tuple[tuple[Record, ...], bool]:
    """Returns the records, and True if the stream or a field tells more than definitions of version 2 do."""
    has_attributes = _pass_stream(parts, header)
    if parts.i64() != len(header.fields):
        raise FormatError(f"{parts.what} are those of other fields than its index has")
    told = [_record(parts, field) for field in header.fields]
    return tuple(record for record, _ in told), has_attributes or not header.time.is_default or any(has_more for _, has_more in told)


def _pass_stream(parts: Fields, header: IndexHeader) -> bool:
    """Returns True if the program has given attributes with types."""
    _pass(parts, _bytes, _bytes)  # format, name
    calendar = parts.many("qiiiii" + "i" + "bibi")[6]  # base time, calendar, member and members
    _pass(parts, _bytes, _keys, _keys)  # packing, options, attributes
    axis = _axis(header.time) if calendar & _MORE else b""
    if bool(axis) == header.time.is_default or parts.raw(len(axis)) != axis:
        raise FormatError(f"{parts.what} are those of another axis of times than its index has")
    if not calendar & _ATTRIBUTES:
        return False
    for _ in range(parts.count(28, wide=True)):  # attributes: owner, name, type, values
        _pass(parts, _bytes, _bytes, Fields.i32, _bytes)
    return True


def _axis(time: TimeAxis) -> bytes:
    """Returns an axis of times as definitions have it."""
    texts = [each.encode("utf-8", "surrogateescape") for each in (time.name, time.model_units)]
    return struct.pack(f"{_ORDER}iBqq", time.is_model, time.has_base, time.nanoseconds, time.shown) + b"".join(
        struct.pack(f"{_ORDER}q", len(each)) + each for each in texts)


def _record(parts: Fields, field: IndexField) -> tuple[Record, bool]:
    name, kind, shape = _bytes(parts), parts.i32(), _list(parts, "i8")
    has_more, is_reduced, kind = kind & _MORE != 0, kind & _REDUCTION != 0, kind & ~(_MORE | _REDUCTION)
    has_shape_of_grid = True
    _pass(parts, _bytes, _keys)  # the grid as the program has given it
    level_type, levels = _bytes(parts), _list(parts, "f8")
    _pass(parts, _bytes, _bytes)  # bottoms of the levels, coefficients
    process, since, _, _ = parts.many("iiqb")
    is_missing, missing = parts.many("bd" + "bd" + "bi" + "bd")[6:]  # behind accuracies and bits
    keys = _keys(parts)
    _pass(parts, _keys)  # attributes
    if has_more:
        _pass(parts, *[_bytes] * parts.count(8, wide=True))  # names of dimensions
        for _ in range(parts.count(36, wide=True)):  # coordinates: name, type, values, bounds, attributes
            _pass(parts, _bytes, Fields.i32, _bytes, _bytes, _keys)
        parts.raw(1)  # whether it has time
    if is_reduced:
        is_weighted = parts.i32() & _WEIGHTS != 0  # operation
        _pass(parts, _bytes)  # shape of a level as it is put
        has_shape_of_grid = not any(_bytes(parts))  # which dimensions are lost
        _pass(parts, _bytes)  # type of the levels that are lost
        _pass(parts, *[_bytes] * parts.count(8, wide=True))  # names of dimensions
        if is_weighted:
            _pass(parts, _bytes, _bytes)  # the field of the weights, distances in its values
            parts.many("q")  # from one level to the next
    prepared = Fields(_bytes(parts), parts.what, _ORDER)
    told = IndexField(_text(name), kind, shape, _text(level_type), levels)
    if told != field or _bytes(prepared) != name:
        raise FormatError(f'{parts.what} are those of another field than "{field.name}" in its index')
    in_file = _shape(prepared, field) if has_shape_of_grid else field.shape
    return Record(in_file, _chunk(keys.get(b"chunks"), in_file, parts.what), _is_deflated(keys.get(b"compress"), parts.what),
                  process != 0 and since == 1, _fill(field, missing if is_missing else None, parts.what)), has_more


def _pass(parts: Fields, *kinds: Callable[[Fields], object]) -> None:
    for take in kinds:
        take(parts)


def _bytes(parts: Fields) -> bytes:
    return parts.raw(parts.count(1, wide=True))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _list(parts: Fields, dtype: Literal["i8", "f8"]) -> tuple[Any, ...]:
    data = _bytes(parts)
    if len(data) % 8:
        raise FormatError(f"{parts.what}: a list of {len(data)} bytes")
    return tuple(np.frombuffer(data, dtype).tolist())


def _keys(parts: Fields) -> dict[bytes, bytes]:
    """Reads a list of keys. Of two keys with one name the first counts."""
    keys: dict[bytes, bytes] = {}
    for _ in range(parts.count(16, wide=True)):
        name, value = _bytes(parts), _bytes(parts)
        keys.setdefault(name, value)
    return keys


def _shape(prepared: Fields, field: IndexField) -> tuple[int, ...]:
    """Returns the shape of a record in the file. On a known grid it has rows and columns, whatever the shape of the
    program's array."""
    kind, _, _, rows, _, _, columns = prepared.many("iddqddq")
    if not _UNKNOWN <= kind <= _TOLD:
        raise FormatError(f"{prepared.what} tell of a grid of kind {kind}")
    if kind in (_UNKNOWN, _TOLD):
        return field.shape
    if elements_of((rows, columns), prepared.what) != elements_of(field.shape, prepared.what):
        raise FormatError(f'{prepared.what} tell of a grid of {rows} x {columns} points for "{field.name}"')
    return rows, columns


def _chunk(asked: bytes | None, shape: tuple[int, ...], what: str) -> tuple[int, ...]:
    if asked is None:
        return shape
    if not re.fullmatch(rb"[0-9]{1,19}(x[0-9]{1,19})*", asked) or asked.count(b"x") != len(shape) - 1:
        raise FormatError(f"{what} tell of chunks={asked[:80]!r} for records of {shape}")
    chunk = tuple(min(int(part), extent) for part, extent in zip(asked.split(b"x"), shape))
    if 0 in chunk:
        raise FormatError(f"{what} tell of chunks without elements")
    return chunk


def _is_deflated(compress: bytes | None, what: str) -> bool:
    method = (compress or b"deflate").partition(b":")[0]
    if method not in (b"deflate", b"none"):
        raise FormatError(f"{what} tell of compress={method[:80]!r}")
    return method == b"deflate"


def _fill(field: IndexField, missing: float | None, what: str) -> Any:
    dtype = field.dtype.newbyteorder("=")
    if dtype.kind == "S":
        return None
    if field.type not in _FILLS:
        raise FormatError(f'{what} tell of elements of the type {dtype} in "{field.name}"')
    if missing is None:
        return dtype.type(_FILLS[field.type]) if dtype.kind == "f" else None  # as in the finished file
    if dtype.kind == "f":
        holds = not math.isfinite(missing) or abs(missing) <= float(np.finfo(dtype).max)
    else:
        holds = np.iinfo(dtype).min <= missing <= np.iinfo(dtype).max and missing == int(missing)
    if not holds:
        raise FormatError(f'{what} tell of missing={missing} for "{field.name}", whose elements are {dtype}')
    return dtype.type(missing if dtype.kind == "f" else int(missing))
