# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""GRIB messages: values by ecCodes, one message at a time, and the headers' description of field and grid.

ecCodes is a library in C that trusts its input. So the sections and the numbers of points in them are checked here
before ecCodes gets a message."""
from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .errors import FormatError, UnsupportedError
from .head import Coordinate, Described, plain_dims
from .names import cf_units
from .projection import Earth, lambert, polar
from .tables import QUANTITIES

# A message beyond both limits counts as damaged: so many points fit into so few bytes only if all values are equal.
MOST_POINTS, MOST_POINTS_PER_BYTE = 1 << 27, 4096
_MISSING = 9.96921e36  # stands for missing values while a message is decoded
_decoded = 0
_guard = threading.Lock()


def decoded_messages() -> int:
    """Returns the number of messages that this process has decoded so far, without those of which only the header
    was read."""
    return _decoded


def _eccodes() -> Any:
    try:
        import eccodes
    except (ImportError, RuntimeError) as error:
        raise UnsupportedError(f"GRIB needs ecCodes, which cannot be loaded ({error}): pip install eccodes") from error
    return eccodes


def _number(message: bytes, at: int) -> int:
    """Returns a number of three octets, or 0 where the message ends before."""
    return int.from_bytes(message[at:at + 3], "big") if len(message) >= at + 3 else 0


_LARGE = 0x800000  # in the length of a message of GRIB1: it counts units of 120 bytes (ECMWF's form of long messages)


def _sections_1(message: bytes) -> tuple[dict[int, tuple[int, int]], int]:
    """Returns the begin and the length of each section of a message of GRIB1, and the length that it states."""
    stated, flags, at = _number(message, 4), message[15], 8
    sections = {}
    for number, is_there in ((1, True), (2, flags & 0x80), (3, flags & 0x40)):
        if is_there:
            sections[number] = (at, _number(message, at))
            at += sections[number][1]
    length = _number(message, at)
    if stated & _LARGE and length < 120:
        stated = (stated - _LARGE) * 120 - length + 4
        length = stated - 4 - at
    sections[4] = (at, length)
    return sections, stated


def _check_edition_1(message: bytes, points: int, what: str) -> None:
    least = {1: 28, 2: 32, 3: 6, 4: 11}
    sections, stated = _sections_1(message)
    if stated != len(message) or message[-4:] != b"7777":
        raise FormatError(f"{what}: the message does not have the {len(message)} bytes that the index says, or does not end there")
    if 2 not in sections or any(length < least[number] or begin + length > len(message) - 4 for number, (begin, length) in sections.items()):
        raise FormatError(f"{what}: the sections of the message contradict their lengths, or one is missing")
    if sum(sections[4]) != len(message) - 4:
        raise FormatError(f"{what}: section 4 does not end where the message does")
    if _points_1(message, *sections[2]) != points:
        raise FormatError(f"{what}: the message tells of {_points_1(message, *sections[2])} points, and the index of {points} points")
    if 3 in sections and (sections[3][1] - 6) * 8 < points:
        raise FormatError(f"{what}: a bitmap of {sections[3][1]} bytes for {points} points")
    bits, is_simple = message[sections[4][0] + 10], message[sections[4][0] + 3] & 0xf0 == 0
    if is_simple and 3 not in sections and (sections[4][1] - 11) * 8 < bits * points:
        raise FormatError(f"{what}: {points} points of {bits} bits in a section of {sections[4][1]} bytes")


def _points_1(message: bytes, at: int, length: int) -> int:
    """Returns the points of the grid in section 2 of a message of GRIB1: the product of its sides, or the sum of its rows."""
    rows, columns = struct.unpack_from(">H", message, at + 8)[0], struct.unpack_from(">H", message, at + 6)[0]
    if columns != 0xffff:
        return int(rows * columns)
    begin = message[at + 4] - 1 + 4 * message[at + 3]  # the list of rows lies behind the vertical coordinates
    if begin + 2 * rows > length:
        return -1
    return int(sum(struct.unpack_from(f">{rows}H", message, at + begin)))


def check_message(message: bytes, points: int, what: str) -> None:
    """Raises FormatError unless the sections of the message fit together and state `points` points."""
    if len(message) < 40 or message[:4] != b"GRIB" or message[7] not in (1, 2):
        raise FormatError(f"{what}: no message of GRIB begins where the index says")
    if points > MOST_POINTS and points > MOST_POINTS_PER_BYTE * len(message):
        raise FormatError(f"{what}: {points} points in a message of {len(message)} bytes")
    if message[7] == 1:
        _check_edition_1(message, points, what)
        return
    if struct.unpack_from(">Q", message, 8)[0] != len(message) or message[-4:] != b"7777":
        raise FormatError(f"{what}: the message does not have the {len(message)} bytes that the index says, or does not end there")
    at, sections, told = 16, [], {}
    while at < len(message) - 4:
        if at + 5 > len(message) - 4:
            raise FormatError(f"{what}: a section begins within the last bytes of the message")
        length, number = struct.unpack_from(">IB", message, at)
        if length < 5 or at + length > len(message) - 4:
            raise FormatError(f"{what}: section {number} has {length} bytes, and {len(message) - 4 - at} are left")
        if number in (3, 5) and length >= 11:
            told[number] = struct.unpack_from(">I", message, at + (6 if number == 3 else 5))[0]
        sections.append(number)
        at += length
    if [each for each in sections if each != 2] != [1, 3, 4, 5, 6, 7]:
        raise FormatError(f"{what}: a message with the sections {sections} in place of 1 to 7, each once")
    if told.get(3) != points or told.get(5, points + 1) > points:
        raise FormatError(f"{what}: the message tells of {told.get(3)} points and {told.get(5)} values, and the index of {points} points")


class Message:
    """A checked message that is open in ecCodes, for the length of a `with`."""

    def __init__(self, message: bytes, points: int, what: str) -> None:
        check_message(message, points, what)
        self._library, self._what = _eccodes(), what
        try:
            self._handle = self._library.codes_new_from_message(message)
        except self._library.CodesInternalError as error:
            raise FormatError(f"{what}: ecCodes takes no such message: {error}") from error

    def __enter__(self) -> Message:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.codes_release(self._handle)

    def get(self, key: str, otherwise: Any = None) -> Any:
        try:
            return self._library.codes_get(self._handle, key)
        except self._library.CodesInternalError:
            return otherwise

    def array(self, key: str) -> np.ndarray:
        try:
            return np.asarray(self._library.codes_get_array(self._handle, key))
        except self._library.CodesInternalError as error:
            raise FormatError(f"{self._what}: {key}: {error}") from error

    def values(self) -> np.ndarray:
        """Returns all points as float64, NaN for missing values."""
        global _decoded
        with _guard:
            _decoded += 1
        try:
            bitmap = bool(self._library.codes_get(self._handle, "bitmapPresent"))
            if bitmap:
                self._library.codes_set(self._handle, "missingValue", _MISSING)
            values = np.asarray(self._library.codes_get_values(self._handle), dtype=np.float64)
        except self._library.CodesInternalError as error:
            raise FormatError(f"{self._what}: the values cannot be decoded: {error}") from error
        if bitmap:
            values[values == _MISSING] = np.nan
        return self._rows_one_way(values)

    def _rows_one_way(self, values: np.ndarray) -> np.ndarray:
        """Returns the values with all rows in the same direction: some files store every second row the other way
        round (alternativeRowScanning)."""
        if not self.get("alternativeRowScanning", 0):
            return values
        length = self.get("Nj" if self.get("jPointsAreConsecutive", 0) else "Ni") if not self.get("PLPresent", 0) else None
        if not length or length < 1 or values.size % length:
            raise UnsupportedError(f"{self._what}: its rows go in alternating directions and have different lengths, which is not read")
        rows = values.reshape(-1, length)
        rows[1::2] = rows[1::2, ::-1].copy()
        return values


def decode(message: bytes, shape: tuple[int, ...], dtype: np.dtype, what: str) -> np.ndarray:
    """Returns the values of a message. Missing values are NaN."""
    points = int(np.prod(shape, dtype=object))
    with Message(message, points, what) as opened:
        values = opened.values()
    if values.size != points:
        raise FormatError(f"{what}: {values.size} values in place of {points}")
    return values.reshape(shape).astype(dtype, copy=False)


def section_3(message: bytes) -> bytes:
    """Returns the section that describes the grid (GRIB1: section 2): equal bytes mean equal grids."""
    if message[7] == 1:
        begin, length = _sections_1(message)[0][2]
        return message[begin:begin + length]
    at = 16
    while at + 5 <= len(message):
        length, number = struct.unpack_from(">IB", message, at)
        if number == 3 or length < 5:
            return message[at:at + length]
        at += length
    return b""


_UNITS = {0: 60, 1: 3600, 2: 86400, 10: 10800, 11: 21600, 12: 43200, 13: 1}  # seconds of the units of code table 4.4
_OF_INTERVALS = range(8, 15)  # product definition templates
_UNITS_1 = {**_UNITS, 13: 900, 14: 1800, 254: 1}  # of code table 4 of GRIB1
_OF_INTERVALS_1 = range(2, 6)  # time range indicators


def interval_begin(header: bytes, what: str) -> int | None:
    """Returns the begin of a message's interval in seconds after the base time, or None if its values are for a
    moment. `header` holds the sections before the values."""
    if header[7:8] == b"\1":
        if len(header) < 36:
            raise FormatError(f"{what}: section 1 is cut short")
        unit, begin, _, indicator = header[25:29]
        return _UNITS_1[unit] * begin if indicator in _OF_INTERVALS_1 and unit in _UNITS_1 else None
    at = 16
    while at + 34 <= len(header):
        length, number = struct.unpack_from(">IB", header, at)
        if number == 4:
            if struct.unpack_from(">H", header, at + 7)[0] not in _OF_INTERVALS:
                return None
            unit, begin = struct.unpack_from(">BI", header, at + 17)
            return _UNITS[unit] * begin if unit in _UNITS and begin < 1 << 31 else None
        if length < 5:
            break
        at += length
    raise FormatError(f"{what}: section 4 is missing or cut short")


_METHODS = {"accum": "time: sum", "avg": "time: mean", "max": "time: maximum", "min": "time: minimum"}


def describe(message: bytes, name: str, shape: tuple[int, ...], what: str, grids: dict[bytes, Described]) -> Described:
    """Returns names, units and grid of a field, from the header of one of its messages. `grids` keeps the grids that
    were seen."""
    with Message(message, int(np.prod(shape, dtype=object)), what) as opened:
        key = section_3(message) + repr(shape).encode()
        if key not in grids:
            grids[key] = _grid(opened, shape)
        grid = grids[key]
        units = cf_units(opened.get("units", "1"))
        attrs: dict[str, Any] = {}
        if name in QUANTITIES and QUANTITIES[name][1] == units:
            attrs["standard_name"] = QUANTITIES[name][0]
        elif opened.get("cfName", "unknown") != "unknown":
            attrs["standard_name"] = opened.get("cfName")
        if "grid_mapping" in grid.attrs:
            turned = {"eastward_wind": "x_wind", "northward_wind": "y_wind"}
            if attrs.get("standard_name") in turned:
                attrs["standard_name"] = turned[attrs["standard_name"]]
        # ecCodes takes 0.06 s to load the table of each kind of name, so a field with a standard name gets no long
        # name.
        if "standard_name" not in attrs:
            attrs["long_name"] = opened.get("name", name)
        attrs["units"] = units
        if opened.get("stepType") in _METHODS:
            attrs["cell_methods"] = _METHODS[opened.get("stepType")]
        attrs.update(grid.attrs, GRIB_shortName=name)
    return Described(grid.dims, attrs, None, grid.coordinates)


_ON_GLOBE = {"lat": {"standard_name": "latitude", "long_name": "latitude", "units": "degrees_north"},
             "lon": {"standard_name": "longitude", "long_name": "longitude", "units": "degrees_east"}}


def _constant(values: np.ndarray | int, dims: tuple[str, ...], attrs: dict[str, Any]) -> Coordinate:
    array = np.asarray(values)
    return Coordinate(dims, lambda: array, attrs)


def _grid(opened: Message, shape: tuple[int, ...]) -> Described:
    """Returns dimensions and coordinates of the points."""
    kind = opened.get("gridType", "unknown")
    if len(shape) != 2 or kind not in ("regular_ll", "regular_gg", "rotated_ll", "lambert", "polar_stereographic"):
        return Described(plain_dims(shape), {"GRIB_gridType": kind})
    latitudes, longitudes = opened.array("latitudes").reshape(shape), opened.array("longitudes").reshape(shape)
    if kind in ("regular_ll", "regular_gg"):
        return Described(("lat", "lon"), {"GRIB_gridType": kind}, None, {
            "lat": _constant(latitudes[:, 0].copy(), ("lat",), {**_ON_GLOBE["lat"], "axis": "Y"}),
            "lon": _constant(longitudes[0, :].copy(), ("lon",), {**_ON_GLOBE["lon"], "axis": "X"})})
    longitudes = (longitudes + 180) % 360 - 180
    if kind == "rotated_ll":
        dims: tuple[str, ...] = ("rlat", "rlon")
        mapping, coordinates = "rotated_pole", _rotated(opened, shape)
    else:
        dims, mapping, coordinates = _projected(opened, shape, kind)
    coordinates["lat"] = _constant(latitudes, dims, _ON_GLOBE["lat"])
    coordinates["lon"] = _constant(longitudes, dims, _ON_GLOBE["lon"])
    return Described(dims, {"GRIB_gridType": kind, "grid_mapping": mapping}, None, coordinates)


def _rotated(opened: Message, shape: tuple[int, ...]) -> dict[str, Coordinate]:
    out: dict[str, Coordinate] = {}
    for name, key, points, standard, axis in (("rlat", "latitude", shape[0], "grid_latitude", "Y"),
                                              ("rlon", "longitude", shape[1], "grid_longitude", "X")):
        first = opened.get(f"{key}OfFirstGridPointInDegrees", 0.0)
        last = opened.get(f"{key}OfLastGridPointInDegrees", 0.0)
        if key == "longitude" and not opened.get("iScansNegatively", 0) and last < first:
            first -= 360
        out[name] = _constant(np.linspace(first, last, points), (name,), {"standard_name": standard, "long_name": f"{key} in the rotated grid",
                                                                           "units": "degrees", "axis": axis})
    pole = opened.get("longitudeOfSouthernPoleInDegrees", 0.0) + 180
    out["rotated_pole"] = _constant(0, (), {
        "grid_mapping_name": "rotated_latitude_longitude", "grid_north_pole_latitude": -opened.get("latitudeOfSouthernPoleInDegrees", -90.0),
        "grid_north_pole_longitude": (pole + 180) % 360 - 180})
    return out


def _projected(opened: Message, shape: tuple[int, ...], kind: str) -> tuple[tuple[str, ...], str, dict[str, Coordinate]]:
    """Returns the grid mapping, and y and x in metres as Tailrace writes them into NetCDF. Without y and x if the
    message is on no such map."""
    attrs: dict[str, Any]
    major = opened.get("earthMajorAxisInMetres") if opened.get("earthIsOblate", 0) else opened.get("radius")
    minor = opened.get("earthMinorAxisInMetres") if opened.get("earthIsOblate", 0) else major
    first = opened.get("latitudeOfFirstGridPointInDegrees", 0.0), opened.get("longitudeOfFirstGridPointInDegrees", 0.0)
    earth = Earth(float(major or 0), float(minor or 0))
    place: Callable[[], tuple[float, float]]
    if kind == "lambert":
        parallels = opened.get("Latin1InDegrees", 0.0), opened.get("Latin2InDegrees", 0.0)
        central, origin = opened.get("LoVInDegrees", 0.0), opened.get("LaDInDegrees", 0.0)
        name = "lambert_conformal_conic"
        attrs = {"standard_parallel": parallels[0] if parallels[0] == parallels[1] else list(parallels),
                 "longitude_of_central_meridian": central, "latitude_of_projection_origin": origin}
        place = partial(lambert, earth, parallels, origin, central, *first)
    else:
        name, south = "polar_stereographic", bool(opened.get("projectionCentreFlag", 0) & 128)
        parallel, central = abs(opened.get("LaDInDegrees", 0.0)), opened.get("orientationOfTheGridInDegrees", 0.0)
        attrs = {"straight_vertical_longitude_from_pole": central,
                 "latitude_of_projection_origin": -90.0 if south else 90.0, "standard_parallel": -parallel if south else parallel}
        place = partial(polar, earth, parallel, south, central, *first)
    attrs.update(false_easting=0.0, false_northing=0.0)
    if major:
        attrs.update({"earth_radius": earth.major} if earth.major == earth.minor else {"semi_major_axis": earth.major, "semi_minor_axis": earth.minor})
    out = {name: _constant(0, (), {"grid_mapping_name": name, **attrs})}
    try:
        x, y = place()
    except (ValueError, ZeroDivisionError, OverflowError):
        return ("y", "x"), name, out
    for letter, begin, key, points, falls in (("y", y, "DyInMetres", shape[0], not opened.get("jScansPositively", 0)),
                                              ("x", x, "DxInMetres", shape[1], opened.get("iScansNegatively", 0))):
        spacing = opened.get(key)
        if not spacing or not np.isfinite(begin):
            continue
        values = begin + (-spacing if falls else spacing) * np.arange(points)
        out[letter] = _constant(values, (letter,), {"standard_name": f"projection_{letter}_coordinate", "long_name": f"{letter} in the projection",
                                                    "units": "m", "axis": letter.upper()})
    return ("y", "x"), name, out
