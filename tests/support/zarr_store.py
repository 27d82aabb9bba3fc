# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Reads stores of Zarr as its specification (version 3) says, with nothing but Python's own library."""
import gzip
import json
import math
import os
import struct

TYPES = {"int8": "b", "uint8": "B", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d"}


def crc32c(data):
    total = 0xFFFFFFFF
    for byte in data:
        total ^= byte
        for _ in range(8):
            total = (total >> 1) ^ (0x82F63B78 if total & 1 else 0)
    return total ^ 0xFFFFFFFF


class Array:
    def __init__(self, path, metadata):
        self.path, self.metadata = path, metadata
        assert metadata["zarr_format"] == 3 and metadata["node_type"] == "array", metadata
        self.shape, self.attributes, self.names = metadata["shape"], metadata["attributes"], metadata["dimension_names"]
        self.chunk_shape = metadata["chunk_grid"]["configuration"]["chunk_shape"]
        self.codecs = [codec["name"] for codec in metadata["codecs"]]

    def decode(self, data, codecs):
        """The values of a chunk that passes these codecs."""
        order = "<"
        for codec in reversed(codecs):
            if codec["name"] == "gzip":
                data = gzip.decompress(data)
            elif codec["name"] == "bytes":
                order = {"little": "<", "big": ">"}[codec.get("configuration", {}).get("endian", "little")]
            else:
                raise ValueError(codec)
        form = TYPES[self.metadata["data_type"]]
        return list(struct.unpack(f"{order}{len(data) // struct.calcsize(form)}{form}", data))

    def fill(self, count):
        value = self.metadata["fill_value"]
        return [float(value) if isinstance(value, str) else value] * count

    def chunk(self, *place):
        """The values of one object: of all inner chunks of a shard, one after another."""
        assert self.metadata["chunk_key_encoding"] == {"name": "default", "configuration": {"separator": "."}}
        path = os.path.join(self.path, ".".join(["c", *map(str, place)]))
        count = math.prod(self.chunk_shape)
        if not os.path.exists(path):
            return self.fill(count)
        with open(path, "rb") as file:
            data = file.read()
        first = self.metadata["codecs"][0]
        if first["name"] != "sharding_indexed":
            return self.decode(data, self.metadata["codecs"])
        setup = first["configuration"]
        assert setup["index_location"] == "end" and [c["name"] for c in setup["index_codecs"]] == ["bytes", "crc32c"], setup
        inner = math.prod(setup["chunk_shape"])
        chunks = count // inner
        index = data[-(16 * chunks + 4):]
        assert struct.unpack("<I", index[-4:])[0] == crc32c(index[:-4]), f"{path}: the index is damaged"
        values = []
        for offset, length in struct.iter_unpack("<QQ", index[:-4]):
            missing = offset == length == 2**64 - 1
            values += self.fill(inner) if missing else self.decode(data[offset:offset + length], setup["codecs"])
        return values

    def step(self, number):
        """The values of one step of an array of many."""
        in_chunk = self.chunk_shape[0]
        values = self.chunk(number // in_chunk, *[0] * (len(self.shape) - 1))
        size = len(values) // in_chunk
        return values[number % in_chunk * size:(number % in_chunk + 1) * size]

    def values(self):
        """All values of an array without steps, or of one value a step."""
        if self.names and self.names[0] == "time":
            return [self.step(number)[0] for number in range(self.shape[0])]
        return self.chunk(*[0] * len(self.shape))


class Store:
    def __init__(self, path):
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as file:
            self.metadata = json.load(file)
        assert self.metadata["zarr_format"] == 3 and self.metadata["node_type"] == "group"
        self.attributes = self.metadata["attributes"]
        self.arrays = {name: Array(os.path.join(path, name), array)
                       for name, array in self.metadata["consolidated_metadata"]["metadata"].items()}

    def __getitem__(self, name):
        return self.arrays[name]

    def own_metadata(self, name):
        with open(os.path.join(self.arrays[name].path, "zarr.json"), encoding="utf-8") as file:
            return json.load(file)


def bytes_of(path):
    """All objects of a store."""
    found = {}
    for directory, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(directory, name), "rb") as file:
                found[os.path.relpath(os.path.join(directory, name), path)] = file.read()
    return found
