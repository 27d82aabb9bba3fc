#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A store of Zarr is a file to the demo: it has a digest and a size, goes when the demo begins anew, and cdo gets its arrays as classic
NetCDF, which ncdump reads here."""
import base64
import gzip
import json
import os
import shutil
import struct
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["TEST_SOURCE"]) / "examples" / "weather"))
import demo  # noqa: E402
import formats  # noqa: E402
from zarr_store import crc32c  # noqa: E402

LITTLE, GZIP = {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
NONE = struct.pack("<QQ", 2**64 - 1, 2**64 - 1)


def described(shape, chunk_shape, data_type, fill, codecs, names, **attributes):
    return {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill, "codecs": codecs,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}}, "dimension_names": names,
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}, "attributes": attributes}


def shard(*levels):
    """A shard of chunks, None for a level that was not put."""
    data, index = b"", b""
    for level in levels:
        chunk = b"" if level is None else gzip.compress(struct.pack("<2f", *level))
        index += NONE if level is None else struct.pack("<QQ", len(data), len(chunk))
        data += chunk
    return data + index + struct.pack("<I", crc32c(index))


def make_store(path):
    """Two steps of a field with two levels, as Tailrace writes them; the second step lacks a level."""
    sharded = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1, 2], "codecs": [LITTLE, GZIP], "index_location": "end",
               "index_codecs": [LITTLE, {"name": "crc32c"}]}}
    arrays = {
        "time": described([2], [1024], "float64", "NaN", [BIG], ["time"], units="seconds since 2026-03-01 00:00:00"),
        "pole": described([], [], "int32", 0, [BIG], [], grid_mapping_name="rotated_latitude_longitude", grid_north_pole_latitude=40.0),
        "t": described([2, 2, 2], [1, 2, 2], "float32", -9.0, [sharded], ["time", "lev", "x"], number=3, range=[0.5, 2],
                       _FillValue=base64.b64encode(struct.pack("<d", -9.0)).decode()),
        "n": described([2, 1], [1, 1], "int16", -1, [LITTLE], ["time", "one"], _FillValue=-1)}
    for name, each in arrays.items():
        (path / name).mkdir(parents=True)
        (path / name / "zarr.json").write_text(json.dumps(each))
    (path / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "group", "attributes": {"title": "né"},
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": arrays}}))
    (path / "time" / "c.0").write_bytes(struct.pack(">2d", 0.0, 3600.0) + struct.pack(">d", float("nan")) * 1022)
    (path / "t" / "c.0.0.0").write_bytes(shard((1.0, 2.0), (3.0, 4.5)))
    (path / "t" / "c.1.0.0").write_bytes(shard(None, (7.0, 8.0)))
    (path / "n" / "c.1.0").write_bytes(struct.pack("<h", 258))


class Stores(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.out = Path(self.directory.name)
        self.addCleanup(self.directory.cleanup)
        self.path = self.out / "fc_1.zarr"
        make_store(self.path)

    @unittest.skipUnless(shutil.which("ncdump"), "ncdump is not installed")
    def test_cdo_gets_all_that_a_store_holds(self):
        with formats.for_cdo([self.path]) as (file,):
            self.assertEqual(file.name, "fc_1.nc")
            self.assertEqual(formats.tool("ncdump", "-k", file).strip(), "cdf5")
            dumped = formats.tool("ncdump", file)
        for text in ("time = 2 ;", "lev = 2 ;", "double time(time) ;", "float t(time, lev, x) ;", "short n(time, one) ;", "int pole ;",
                     't:number = 3 ;', "t:range = 0.5, 2. ;", "t:_FillValue = -9.f ;", "n:_FillValue = -1s ;", ':title = "né" ;',
                     'pole:grid_mapping_name = "rotated_latitude_longitude" ;', "pole:grid_north_pole_latitude = 40. ;",
                     "time = 0, 3600 ;", "pole = 0 ;", "t =\n  1, 2,\n  3, 4.5,\n  _, _,\n  7, 8 ;", "n =\n  _,\n  258 ;"):
            self.assertIn(text, dumped)
        self.assertEqual([path.name for path in self.out.iterdir()], ["fc_1.zarr"])

    def test_what_is_no_store_is_named(self):
        shard_of_step = self.path / "t" / "c.1.0.0"
        for spoilt in (shard_of_step.read_bytes()[:-1], b"", b"short"):
            shard_of_step.write_bytes(spoilt)
            with self.assertRaisesRegex(formats.Unreadable, "fc_1.zarr is no whole store"), formats.for_cdo([self.path]):
                pass
        (self.path / "zarr.json").write_text("{}")
        with self.assertRaisesRegex(formats.Unreadable, "fc_1.zarr is no whole store"), formats.for_cdo([self.path]):
            pass

    def test_every_object_counts_in_digest_and_size(self):
        other = self.out / "other.zarr"
        shutil.copytree(self.path, other)
        self.assertEqual(formats.digest(other), formats.digest(self.path))
        whole = formats.size(other)
        (other / "n" / "c.1.0").rename(other / "n" / "c.0.0")
        self.assertNotEqual(formats.digest(other), formats.digest(self.path))
        self.assertEqual(formats.size(other), whole)
        (other / "n" / "c.0.0").unlink()
        self.assertEqual(formats.size(other), whole - 2)

    def test_a_demo_removes_what_an_earlier_one_left_and_nothing_else(self):
        left = ["fc_1.zarr.trx", "fc_1.nc", "fc_1.nc4.trx", "surface_1.grib2", "summary.json"]
        mine = ["mine.zarr", "mine.nc", "notes.txt"]
        for name in [*left, *mine]:
            (self.out / name).touch()
        demo.clean(self.out)
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), sorted(mine))


if __name__ == "__main__":
    unittest.main()
