# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Reads stores of Zarr as its specification (version 3) says: for the demo, whose cdo reads none, and for the tests. Python's own
library is enough for `compress=gzip` and `none`. Chunks of blosc and zstd need the package numcodecs, or the shared libraries that
Tailrace itself was linked with (libblosc, libzstd)."""
import array
import ctypes
import ctypes.util
import functools
import gzip
import itertools
import json
import math
import os
import struct
import sys
import zlib

TYPES = {"int8": "b", "uint8": "B", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d"}


def expect(holds, path, text):
    if not holds:
        raise ValueError(f"{path}: {text}")


def crc32c(data):
    total = 0xFFFFFFFF
    for byte in data:
        total ^= byte
        for _ in range(8):
            total = (total >> 1) ^ (0x82F63B78 if total & 1 else 0)
    return total ^ 0xFFFFFFFF


def json_of(path):
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


@functools.cache
def numcodecs_decoder(name):
    """The decoder that the package numcodecs has, or None without it."""
    try:
        import numcodecs  # an option
    except ImportError:
        return None
    return {"blosc": numcodecs.Blosc, "zstd": numcodecs.Zstd}[name]().decode


@functools.cache
def library(name):
    """A shared library of the system, or None."""
    for each in (ctypes.util.find_library(name), f"lib{name}.so.1"):
        try:
            return ctypes.CDLL(each) if each else None
        except OSError:
            pass
    return None


def unpack_blosc(data, size):
    blosc, told = library("blosc"), ctypes.c_size_t()
    if blosc.blosc_cbuffer_validate(data, ctypes.c_size_t(len(data)), ctypes.byref(told)) < 0:
        return None
    out = ctypes.create_string_buffer(max(size, 1))
    got = blosc.blosc_decompress_ctx(data, out, ctypes.c_size_t(size), ctypes.c_int(1))
    return out.raw[:size] if got == size else None


def unpack_zstd(data, size):
    zstd = library("zstd")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(max(size, 1))
    got = zstd.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    return out.raw[:size] if got == size else None


def unpack(name, data, size, path):
    """The bytes of a chunk that passed blosc or zstd; None if it did not."""
    # What follows takes a chunk of blosc by its header alone: its length, and that of the values (README_CHUNK_FORMAT of c-blosc).
    if name == "blosc" and (len(data) < 16 or struct.unpack_from("<III", data, 4)[::2] != (size, len(data))):
        return None
    decoder = numcodecs_decoder(name)
    if decoder is not None:
        return bytes(decoder(data))
    if library(name) is None:
        raise ImportError(f"{path}: its chunks are compressed by {name}, for which this Python has neither numcodecs nor lib{name}: "
                          f"`pip install numcodecs`, or let the stream write compress=gzip")
    return {"blosc": unpack_blosc, "zstd": unpack_zstd}[name](data, size)


def decompress(name, data, size, path):
    """The `size` bytes of a chunk in the object `path` that passed the codec of this name."""
    expect(name in ("gzip", "blosc", "zstd"), path, f"the codec {name} is not one of those that Tailrace writes")
    try:
        unpacked = gzip.decompress(data) if name == "gzip" else unpack(name, data, size, path)
    except ImportError as error:
        raise ValueError(str(error)) from error
    except (EOFError, MemoryError, OSError, RuntimeError, ValueError, zlib.error) as error:  # what gzip and numcodecs raise
        raise ValueError(f"{path}: a chunk is damaged, or no data of {name}: {error}") from error
    expect(unpacked is not None, path, f"a chunk is damaged, or no data of {name}")
    expect(len(unpacked) == size, path, f"a chunk has {len(unpacked)} bytes, expected {size}: it is damaged")
    return unpacked


class Array:
    """One array of a store. Its objects may cut its first extent, the steps, and no other one; the chunks of a shard may cut all."""

    def __init__(self, path, metadata):
        self.path, self.metadata = path, metadata
        expect(metadata["zarr_format"] == 3 and metadata["node_type"] == "array", path, "expected an array of Zarr 3")
        self.shape, self.attributes, self.names = metadata["shape"], metadata["attributes"], metadata["dimension_names"]
        self.chunk_shape = metadata["chunk_grid"]["configuration"]["chunk_shape"]
        expect(all(chunk >= extent for chunk, extent in zip(self.chunk_shape[1:], self.shape[1:])), path,
               f"expected objects of whole steps, got {self.chunk_shape}")
        self.codecs = [codec["name"] for codec in metadata["codecs"]]

    def decode(self, data, codecs, count, path):
        """The `count` values of a chunk in the object `path` that passes these codecs."""
        order, letter = "little", TYPES[self.metadata["data_type"]]
        size = count * struct.calcsize(letter)
        for codec in reversed(codecs):
            if codec["name"] == "bytes":
                order = codec.get("configuration", {}).get("endian", order)
            else:
                data = decompress(codec["name"], data, size, path)
        expect(len(data) == size, path, f"a chunk has {len(data)} bytes, expected {size}: it is damaged")
        values = array.array(letter, data)
        if order != sys.byteorder:
            values.byteswap()
        return values

    def fill(self, count):
        value = self.metadata["fill_value"]
        return array.array(TYPES[self.metadata["data_type"]], [float(value) if isinstance(value, str) else value]) * count

    def chunk(self, *place):
        """The values of one object: of all inner chunks of a shard, one after another."""
        encoding = self.metadata["chunk_key_encoding"]
        expect(encoding == {"name": "default", "configuration": {"separator": "."}}, self.path, f"unknown keys of chunks: {encoding}")
        path = os.path.join(self.path, ".".join(["c", *map(str, place)]))
        count = math.prod(self.chunk_shape)
        if not os.path.exists(path):
            return self.fill(math.prod([*self.chunk_shape[:1], *self.shape[1:]]))
        with open(path, "rb") as file:
            data = file.read()
        first = self.metadata["codecs"][0]
        if first["name"] != "sharding_indexed":
            return self.decode(data, self.metadata["codecs"], count, path)
        setup = first["configuration"]
        expect(setup["index_location"] == "end" and [c["name"] for c in setup["index_codecs"]] == ["bytes", "crc32c"], self.path,
               f"unknown kind of shards: {setup}")
        inner = math.prod(setup["chunk_shape"])
        index = data[-(16 * (count // inner) + 4):]
        expect(len(index) == 16 * (count // inner) + 4, path, "it is too short for a shard")
        expect(struct.unpack("<I", index[-4:])[0] == crc32c(index[:-4]), path, "the index is damaged")
        chunks = []
        for offset, length in struct.iter_unpack("<QQ", index[:-4]):
            missing = offset == length == 2**64 - 1
            expect(missing or offset + length <= len(data), path, f"its index tells of a chunk beyond its {len(data)} bytes")
            chunks.append(self.fill(inner) if missing else self.decode(data[offset:offset + length], setup["codecs"], inner, path))
        return self.joined(chunks, setup["chunk_shape"])

    def joined(self, chunks, shape):
        """The values of one step in the order of the array, from chunks of this shape in theirs."""
        whole = [1, *self.shape[1:]]
        numbers = [extent // length for extent, length in zip(self.chunk_shape, shape)]
        values = self.fill(math.prod(whole))
        for number, chunk in zip(itertools.product(*map(range, numbers)), chunks):
            begin = [place * length for place, length in zip(number, shape)]
            row = min(shape[-1], whole[-1] - begin[-1])
            for at, place in enumerate(itertools.product(*map(range, shape[:-1]))):
                index = [first + inside for first, inside in zip(begin, place)]
                if row <= 0 or any(each >= extent for each, extent in zip(index, whole)):
                    continue
                to = 0
                for each, extent in zip([*index, begin[-1]], whole):
                    to = to * extent + each
                values[to:to + row] = chunk[at * shape[-1]:at * shape[-1] + row]
        return values

    def step(self, number):
        """The values of one step of an array of many."""
        in_chunk = self.chunk_shape[0]
        values = self.chunk(number // in_chunk, *[0] * (len(self.shape) - 1))
        size = len(values) // in_chunk
        return values[number % in_chunk * size:(number % in_chunk + 1) * size]

    def pieces(self):
        """All values in order, one chunk at a time."""
        if not self.shape:
            yield self.chunk()
            return
        in_chunk, left = self.chunk_shape[0], math.prod(self.shape)
        for number in range(-(-self.shape[0] // in_chunk)):
            values = self.chunk(number, *[0] * (len(self.shape) - 1))[:left]
            left -= len(values)
            yield values

    def values(self):
        return list(itertools.chain.from_iterable(self.pieces()))


class Store:
    def __init__(self, path):
        self.metadata = json_of(os.path.join(path, "zarr.json"))
        expect(self.metadata["zarr_format"] == 3 and self.metadata["node_type"] == "group", path, "expected a group of Zarr 3")
        self.attributes = self.metadata["attributes"]
        self.arrays = {name: Array(os.path.join(path, name), metadata)
                       for name, metadata in self.metadata["consolidated_metadata"]["metadata"].items()}

    def __getitem__(self, name):
        return self.arrays[name]

    def own_metadata(self, name):
        return json_of(os.path.join(self.arrays[name].path, "zarr.json"))


def objects(path):
    """The names of all objects of a store below it, sorted."""
    return sorted(os.path.relpath(os.path.join(directory, name), path) for directory, _, names in os.walk(path) for name in names)


def bytes_of(path):
    """All objects of a store."""
    found = {}
    for name in objects(path):
        with open(os.path.join(path, name), "rb") as file:
            found[name] = file.read()
    return found
