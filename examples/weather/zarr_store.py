# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Reads stores of Zarr as its specification (version 3) says, with nothing but Python's own library: for the demo, whose cdo reads
none, and for the tests."""
import array
import gzip
import itertools
import json
import math
import os
import struct
import sys

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


class Array:
    """One array of a store. Its chunks may cut its first extent, the steps, and no other one."""

    def __init__(self, path, metadata):
        self.path, self.metadata = path, metadata
        expect(metadata["zarr_format"] == 3 and metadata["node_type"] == "array", path, "expected an array of Zarr 3")
        self.shape, self.attributes, self.names = metadata["shape"], metadata["attributes"], metadata["dimension_names"]
        self.chunk_shape = metadata["chunk_grid"]["configuration"]["chunk_shape"]
        expect(self.chunk_shape[1:] == self.shape[1:], path, f"expected chunks of whole steps, got {self.chunk_shape}")
        self.codecs = [codec["name"] for codec in metadata["codecs"]]

    def decode(self, data, codecs, count):
        """The `count` values of a chunk that passes these codecs."""
        order = "little"
        for codec in reversed(codecs):
            if codec["name"] == "gzip":
                data = gzip.decompress(data)
            elif codec["name"] == "bytes":
                order = codec.get("configuration", {}).get("endian", order)
            else:
                raise ValueError(f"{self.path}: the codec {codec['name']} is not one of those that Tailrace writes")
        values = array.array(TYPES[self.metadata["data_type"]], data)
        expect(len(values) == count, self.path, f"a chunk has {len(values)} values, expected {count}")
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
            return self.fill(count)
        with open(path, "rb") as file:
            data = file.read()
        first = self.metadata["codecs"][0]
        if first["name"] != "sharding_indexed":
            return self.decode(data, self.metadata["codecs"], count)
        setup = first["configuration"]
        expect(setup["index_location"] == "end" and [c["name"] for c in setup["index_codecs"]] == ["bytes", "crc32c"], self.path,
               f"unknown kind of shards: {setup}")
        inner = math.prod(setup["chunk_shape"])
        index = data[-(16 * (count // inner) + 4):]
        expect(struct.unpack("<I", index[-4:])[0] == crc32c(index[:-4]), path, "the index is damaged")
        values = self.fill(0)
        for offset, length in struct.iter_unpack("<QQ", index[:-4]):
            missing = offset == length == 2**64 - 1
            values += self.fill(inner) if missing else self.decode(data[offset:offset + length], setup["codecs"], inner)
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
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as file:
            self.metadata = json.load(file)
        expect(self.metadata["zarr_format"] == 3 and self.metadata["node_type"] == "group", path, "expected a group of Zarr 3")
        self.attributes = self.metadata["attributes"]
        self.arrays = {name: Array(os.path.join(path, name), metadata)
                       for name, metadata in self.metadata["consolidated_metadata"]["metadata"].items()}

    def __getitem__(self, name):
        return self.arrays[name]

    def own_metadata(self, name):
        with open(os.path.join(self.arrays[name].path, "zarr.json"), encoding="utf-8") as file:
            return json.load(file)


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
