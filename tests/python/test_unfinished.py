# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A NetCDF-4 file gives the same values while it is written as once it is finished: its head tells chunks, compression and missing values."""
import glob
import os
import shutil
import struct
import warnings
import zlib

import numpy as np
import pytest
import tailrace as tr
from conftest import formats
from made import Writer, defined, definitions, field, header, netcdf4, netcdf4_head
from writers import job


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def values_of(path):
    """All values, field by field and step by step, as steps have them; and as a Dataset has them."""
    run = tr.open(path)
    dataset = run.to_xarray()
    return [step[name] for step in run for name in step], [dataset[name].values for name in run.fields]


def are_same(one, other):
    return all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(one, other, strict=True))


@pytest.mark.skipif("nc4" not in formats(), reason="this build writes no NetCDF-4")
@pytest.mark.parametrize("options", ("chunks=4x5 missing=0", "chunks=3x13 missing=0 compress=none statistic=average since=last"))
def test_values_while_the_model_writes_and_afterwards(tmp_path, monkeypatch, options):
    monkeypatch.setenv("SMALL_MODEL_FIELDS", options)
    path = f"{tmp_path}/one.nc4"
    writer = job(tmp_path, path, "", 3, awaits=2)
    try:
        followed = tr.open(path).follow(timeout="100s")
        before = [step[name] for step in (next(followed), next(followed)) for name in "tu"]
        steps, whole = values_of(path)
        assert open(path, "rb").read(8) == b"tailrace"
    finally:
        (tmp_path / "go").touch()
        assert writer.ended_within(100)
    assert open(path, "rb").read(4) == b"\x89HDF"
    # small_model puts 0 at the first place of the first hour and level.
    assert all(np.argwhere(np.isnan(each)).tolist() == [[0, 0, 0]] for each in before[:2]) and not any(np.isnan(each).any() for each in before[2:])
    finished, all_of_it = values_of(path)
    assert len(finished) == 8 and are_same(before, finished[:4]) and are_same(steps, finished[:4])
    assert are_same(whole, [each[:2] for each in all_of_it])


@pytest.mark.skipif("nc4" not in formats(), reason="this build writes no NetCDF-4")
def test_values_of_each_kind_of_grid_and_field(data, tmp_path):
    """A finished file keeps its head. One that goes on has the text of a file that is not finished in its first 64 bytes."""
    paths = [path for path in glob.glob(f"{data}/*/*.nc4") if "+" not in path]
    assert len(paths) >= 3
    missing = 0
    for path in paths:
        to = tmp_path / os.path.basename(path)
        shutil.copy(f"{path}.trx", f"{to}.trx")
        to.write_bytes(bytes(64) + open(path, "rb").read()[64:])
        (steps, whole), (steps_finished, whole_finished) = values_of(to), values_of(path)
        assert are_same(steps, steps_finished) and are_same(whole, whole_finished), path
        missing += sum(int(np.isnan(each).sum()) for each in steps)
    assert missing or "grib2" not in formats(), "sp is missing at each fifth place"


def deflated(values):
    """Through shuffle and deflate."""
    data = np.frombuffer(values.tobytes(), np.uint8).reshape(-1, values.itemsize)
    return zlib.compress(np.ascontiguousarray(data.T).tobytes())


def test_elements_in_a_row_on_a_grid_with_rows_and_columns(tmp_path, monkeypatch):
    """The program's array has one dimension, the chunks are those of the grid. Of coordinates behind the definitions, which may be many bytes,
    the checksum is taken part by part."""
    monkeypatch.setattr("tailrace.definitions.MOST_HEADER", 600)
    values = np.arange(24, dtype="<f4").reshape(4, 6)
    chunks = [np.full((3, 4), 7, "<f4") for _ in range(4)]
    for number, chunk in enumerate(chunks):
        part = values[3 * (number // 2):, 4 * (number % 2):][:3, :4]
        chunk[:part.shape[0], :part.shape[1]] = part
    about = {"kind": 5, "shape": (24,), "levels": (850.0,)}
    for compress, encoded in (("none", [chunk.tobytes() for chunk in chunks]), ("deflate:1", [deflated(chunk) for chunk in chunks])):
        for since in (None, 0, 1):
            head = netcdf4_head(definitions([defined(**about, grid=(1, 4, 6), missing=7, since=since, chunks="3x4", compress=compress)], behind=bytes(900)))
            record, begin = b"".join(encoded) + struct.pack("<4I", *map(len, encoded)), struct.pack("<q", 3600)
            run = tr.open(netcdf4(tmp_path / "one.nc4", head, [field(**about)], [(0, 0, record + (begin if since == 1 else b""))]))
            for got in (run.step(0)["t"], run.to_xarray()["t"].values[0]):
                assert got.shape == (24,) and np.isnan(got[7]) and np.array_equal(np.delete(got, 7), np.delete(np.arange(24), 7))
            run = tr.open(netcdf4(tmp_path / "one.nc4", head, [field(**about)], [(0, 0, record + (b"" if since == 1 else begin))]))
            with pytest.raises(tr.FormatError, match="holds no 4 chunks"):
                run.step(0)["t"]
    # Chunks are at most the record.
    head = netcdf4_head(definitions([defined(**about, grid=(1, 4, 6), chunks="4x7")]))
    assert tr.open(netcdf4(tmp_path / "one.nc4", head, [field(**about)], [(0, 0, deflated(values))])).step(0)["t"].tolist() == list(range(24))


@pytest.mark.parametrize("kind,missing,fill", ((3, -5, -5), (3, None, -2147483647), (4, None, -9223372036854775806), (1, None, -127), (2, None, -32767), (9, None, 255)))
def test_integers_have_the_fill_value_that_the_head_tells(tmp_path, kind, missing, fill):
    head = netcdf4_head(definitions([defined(kind=kind, missing=missing)]))
    values = np.arange(6).astype(np.dtype(tr.binary.ELEMENT_TYPES[kind]))
    run = tr.open(netcdf4(tmp_path / "one.nc4", head, [field(kind=kind)], [(0, 0, deflated(values))]))
    for got in (run.step(0)["t"], run.to_xarray()["t"].values[0]):
        assert got.dtype == values.dtype and (got[0].reshape(-1) == values).all() and (got[1] == fill).all()


def test_bytes_that_could_be_deflated_or_not(tmp_path):
    """The head tells it: elements may be the deflated bytes of as many others."""
    wanted = ((length, zlib.compress(bytes(range(part)) + bytes(length - part))) for length in range(64, 256, 8) for part in range(length))
    length, data = next((length, each) for length, each in wanted if len(each) == length)
    about = {"kind": 9, "shape": (length,), "levels": (850.0,)}
    for compress, record, values in (("none", data, data), ("deflate", data, zlib.decompress(data)), ("none", zlib.compress(data), None),
                                     ("deflate", bytes(length), None), ("none", data + bytes(8), None), ("deflate", data + bytes(8), None)):
        head = netcdf4_head(definitions([defined(**about, compress=compress)]))
        step = tr.open(netcdf4(tmp_path / "one.nc4", head, [field(**about)], [(0, 0, record)])).step(0)
        if values is None:
            with pytest.raises(tr.FormatError, match="is none of"):
                step["t"]
        else:
            assert step["t"].tobytes() == values


def test_a_head_that_takes_too_long_to_read(tmp_path):
    """1 TiB of coordinates: values are those of a file of which nothing tells more than the index."""
    path, begin = tmp_path / "one.nc4", 1 << 40
    writer = Writer(path, header([field()], "netcdf4", data_begin=begin))
    writer.data, writer.end = bytes(64) + b"TRLNC4D2" + struct.pack("=Qq", 0, begin - 88), begin + 48
    writer.step(0, records=[(0, 0, begin, 48)], begin=begin).save()
    with open(path, "r+b") as file:
        file.seek(begin)
        file.write(np.arange(6.0).tobytes())
    with pytest.warns(RuntimeWarning, match="not finished"):
        assert tr.open(path).step(0).read("t", 850).reshape(-1).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_file_of_another_program_is_named_as_one(tmp_path):
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "theirs.nc"
    path.write_bytes(b"CDF\x05" + bytes(60))
    for opened in (lambda: xarray.open_dataset(path, engine="tailrace"), lambda: xarray.open_datatree(path, engine="tailrace"), lambda: tr.open(path).to_xarray(),
                   lambda: tr.open(path).step("6h")):
        with pytest.raises(tr.NotThereError, match="theirs.nc.trx beside it. Another program has written the file"):
            opened()
    with pytest.raises(tr.NotThereError, match="no step is committed"):
        tr.open(tmp_path / "not_yet.nc").to_xarray()
