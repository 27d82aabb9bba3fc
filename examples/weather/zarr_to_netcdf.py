#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Turns a store of Zarr that Tailrace has written into a file of classic NetCDF (CDF-5) with the same arrays, values and
attributes, for programs that read no Zarr 3, such as cdo. Python's own library is all that it takes, unless chunks are compressed by
blosc or zstd (zarr_store.py says what these take).

  python3 examples/weather/zarr_to_netcdf.py out/demo/surface_2026030100.zarr surface.nc

The bytes are those of the specification in https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html, with
CDF-5's wider counts (https://parallel-netcdf.github.io/doc/c-reference/pnetcdf-c/CDF_002d5-file-format-specification.html).
"""
import base64
import math
import os
import struct
import sys

from zarr_store import TYPES, Store

DIMENSIONS, VARIABLES, ATTRIBUTES = 10, 11, 12                # tags of lists
CHAR, INT, DOUBLE, INT64 = 2, 4, 6, 10                        # types of attributes
FORMS = {INT: "i", DOUBLE: "d", INT64: "q"}
OF_THE_VARIABLE = ("valid_min", "valid_max", "valid_range", "actual_range", "flag_values", "flag_masks")  # of its type, as CF asks
CODES = {"int8": 1, "uint8": 7, "int16": 3, "int32": INT, "int64": INT64, "float32": 5, "float64": DOUBLE}


def padded(data):
    return data + bytes(-len(data) % 4)


def text(words):
    data = words.encode()
    return struct.pack(">q", len(data)) + padded(data)


def listed(tag, entries):
    return struct.pack(">iq", tag if entries else 0, len(entries)) + b"".join(entries)


def attribute(name, value, data_type=None):
    if name == "_FillValue" and data_type is not None:
        # The base64 of a little-endian float64, or an integer: see docs/formats/zarr.md.
        (value,) = struct.unpack("<d", base64.b64decode(value)) if isinstance(value, str) else (value,)
        code, count, data = CODES[data_type], 1, struct.pack(">" + TYPES[data_type], value)
    elif isinstance(value, str):
        code, data = CHAR, value.encode()
        count = len(data)
    else:
        values = value if isinstance(value, list) else [value]
        if name in OF_THE_VARIABLE and data_type is not None:
            data = struct.pack(f">{len(values)}{TYPES[data_type]}", *values)
            return text(name) + struct.pack(">iq", CODES[data_type], len(values)) + padded(data)
        whole = all(isinstance(each, int) for each in values)
        code = DOUBLE if not whole else INT if all(-2**31 <= each < 2**31 for each in values) else INT64
        count, data = len(values), struct.pack(f">{len(values)}{FORMS[code]}", *values)
    return text(name) + struct.pack(">iq", code, count) + padded(data)


def attributes(of, data_type=None):
    return listed(ATTRIBUTES, [attribute(name, value, data_type) for name, value in of.items()])


def dimensions(store):
    """Extents by their names, those of the steps among them."""
    extents = {}
    for name, each in store.arrays.items():
        for dimension, extent in zip(each.names, each.shape):
            if extents.setdefault(dimension, extent) != extent:
                raise ValueError(f"{name}: its {dimension} has {extent} values, expected {extents[dimension]}")
    return extents


def size_of(each):
    length = math.prod(each.shape) * struct.calcsize(TYPES[each.metadata["data_type"]])
    return length + -length % 4


def is_empty(each):
    """Whether it waits for its first step. An extent of 0 makes the steps' dimension the unlimited one, without records."""
    return 0 in each.shape


def size_told(each):
    """The size in the header: that of one record where there is none yet."""
    if not is_empty(each):
        return size_of(each)
    length = math.prod(each.shape[1:]) * struct.calcsize(TYPES[each.metadata["data_type"]])
    return length + -length % 4


def header(store, begin):
    """The bytes before the values, which begin at `begin`."""
    extents, variables = dimensions(store), []
    numbers = {name: number for number, name in enumerate(extents)}
    end = begin + sum(size_of(each) for each in store.arrays.values())
    for name, each in store.arrays.items():
        data_type = each.metadata["data_type"]
        variables.append(text(name) + struct.pack(f">q{len(each.names)}q", len(each.names), *map(numbers.get, each.names))
                         + attributes(each.attributes, data_type) + struct.pack(">iqq", CODES[data_type], size_told(each),
                                                                            end if is_empty(each) else begin))
        begin += size_of(each)
        end += size_told(each) if is_empty(each) else 0  # records would follow one another behind all other values
    return (b"CDF\x05" + struct.pack(">q", 0)
            + listed(DIMENSIONS, [text(name) + struct.pack(">q", extent) for name, extent in extents.items()])
            + attributes(store.attributes) + listed(VARIABLES, variables))


def convert(source, target):
    """Writes the store `source` to the file `target`, and returns the latter. ValueError if the store is not whole: then a file that
    had the name stays as it was."""
    store, unfinished = Store(source), f"{target}.part"
    try:
        with open(unfinished, "wb") as file:
            file.write(header(store, len(header(store, 0))))
            for each in store.arrays.values():
                end = file.tell() + size_of(each)
                for values in each.pieces():
                    if sys.byteorder == "little":
                        values.byteswap()
                    file.write(values.tobytes())
                file.write(bytes(end - file.tell()))
        os.replace(unfinished, target)
    except BaseException:
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise
    return target


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: zarr_to_netcdf.py STORE.zarr FILE.nc")
    try:
        convert(*sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(f"zarr_to_netcdf.py: {error}")
