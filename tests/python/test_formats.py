# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Each format that a real run has written gives its values and metadata, lazily."""
import datetime
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tailrace as tr
import xarray
from conftest import BASE, LEVELS, NX, NY, close, expected, formats
from made import Writer, field, header
from tailrace.xarray_backend import TailraceBackend


def patterns(data, ending):
    return f"{data}/{ending}/fc_{{base:%Y%m%d%H}}+{{lead:03h}}.{ending}", f"{data}/{ending}/one.{ending}"


@pytest.mark.parametrize("ending", formats())
def test_every_value_is_what_was_put(data, ending):
    for pattern in patterns(data, ending):
        run = tr.open(pattern, base=BASE)
        assert run.complete and not run.missing and len(run) == 6 and list(run.fields) == ["t", "u"]
        for hour, step in enumerate(run):
            assert (str(step.lead), step.lead) == (f"{hour}h", datetime.timedelta(hours=hour))
            assert step.valid == datetime.datetime(2026, 3, 1, hour, tzinfo=datetime.timezone.utc)
            assert f"{step.valid:%d %b %H UTC}, +{step.lead}" == f"01 Mar {hour:02d} UTC, +{hour}h"
            assert list(step) == ["t", "u"] and "t" in step and "v" not in step
            for number, name in enumerate("tu"):
                values = step[name]
                assert values.shape == (3, NY, NX) and values.dtype == (np.float64, np.float32)[number]
                assert all(close(values[level], number, hour, level, ending) for level in range(3))
                values += 1  # it is the caller's own
            assert close(step.read("u", 850), 1, hour, 1, ending)
        with pytest.raises(tr.NotThereError, match="it has 1000, 850, 500"):
            run.step("2h").read("t", 700)
        with pytest.raises(tr.NotThereError, match="there are t, u"):
            run.step("2h")["q"]


@pytest.mark.parametrize("ending", formats())
def test_datasets_have_names_and_units_of_cf(data, ending):
    for pattern in patterns(data, ending):
        dataset = tr.open(pattern, base=BASE).to_xarray()
        t = dataset["t"]
        assert t.dims[:2] == ("lead", "plev") and t.shape == (6, 3, NY, NX) and dataset["plev"].values.tolist() == list(LEVELS)
        # A raw file and its index hold nothing but names.
        named = {"t": {}, "u": {}} if ending == "bin" else {"t": {"standard_name": "air_temperature", "units": "K"},
                                                            "u": {"standard_name": "eastward_wind", "units": "m s-1"}}
        for name, attrs in named.items():
            assert {key: value for key, value in dataset[name].attrs.items() if key in ("standard_name", "units", "long_name")} == attrs, name
        assert dataset["plev"].attrs["units"] == "hPa"
        assert dataset["lead"].values.tolist() == [datetime.timedelta(hours=hour) for hour in range(6)]
        assert str(dataset["time"].values[5]).startswith("2026-03-01T05:00") and str(dataset["base"].values).startswith("2026-03-01T00:00")
        if ending != "bin":
            assert dataset["lat"].values.tolist() == [50.0 - i for i in range(NY)] and dataset["lon"].values.tolist() == [5.0 + i for i in range(NX)]
            assert dataset["lat"].attrs["units"] == "degrees_north"
        assert close(t[4, 2].values, 0, 4, 2, ending)
        assert close(t.isel(lead=slice(1, 6, 2)).isel(plev=[2, 0]).values[1, 0], 0, 3, 2, ending)
        assert abs(float(t[3, 1, 5, 6]) - expected(0, 3, 1)[5, 6]) < 0.02
        assert t[::-1, -1].shape == (6, NY, NX) and t[2:2].values.shape == (0, 3, NY, NX)


@pytest.mark.parametrize("ending", formats())
def test_the_engine_claims_data_files_by_the_index_beside_them(data, ending, tmp_path):
    ours = TailraceBackend()
    path = f"{data}/{ending}/one.{ending}"
    assert ours.guess_can_open(path) and ours.guess_can_open(Path(path)) and ours.guess_can_open(path + ".trx")
    (tmp_path / f"one.{ending}").symlink_to(path)
    assert not ours.guess_can_open(tmp_path / f"one.{ending}"), "no index is beside this one"
    (tmp_path / f"one.{ending}.idx").write_text("1:0:d=2026030100:TMP:850 mb:anl:\n")
    assert not ours.guess_can_open(tmp_path / f"one.{ending}"), "the index is another program's"
    shutil.copy(path + ".trx", tmp_path / f"one.{ending}.idx")
    assert ours.guess_can_open(tmp_path / f"one.{ending}")
    assert not any(ours.guess_can_open(each) for each in (f"{path}.gone", "", tmp_path, b"TRLINDEX", 5, "http://127.0.0.1/one.grib2"))


@pytest.mark.parametrize("ending", formats())
def test_xarray_takes_the_engine_for_data_files_that_no_other_package_claims(data, ending, monkeypatch):
    """Those that it asks before ours and that claim files by their names or first bytes are hidden, whichever are installed."""
    engines = {name: engine for name, engine in xarray.backends.list_engines().items() if name not in ("cfgrib", "netcdf4", "h5netcdf", "scipy")}
    monkeypatch.setattr("xarray.backends.plugins.list_engines", lambda: engines)
    path = f"{data}/{ending}/one.{ending}"
    with xarray.open_dataset(path) as dataset:
        assert dataset.attrs["tailrace_run"] == str(tr.load_index(path + ".trx").header.run)
        assert dataset["u"].shape == (6, 3, NY, NX) and close(dataset["u"][2, 1].values, 1, 2, 1, ending)
    assert list(xarray.open_datatree(path).groups) == ["/", "/isobaricInhPa"]


@pytest.mark.parametrize("ending", formats())
def test_xarray_finds_the_engine_by_the_index(data, ending):
    path = f"{data}/{ending}/one.{ending}"
    with xarray.open_dataset(path + ".trx") as dataset:
        assert dataset["u"].shape == (6, 3, NY, NX)
    with xarray.open_dataset(path, engine="tailrace", chunks={}, drop_variables="u") as dataset:
        assert dataset["t"].chunks[:2] == ((1,) * 6, (1,) * 3) and list(dataset) == ["t"]
        assert abs(float(dataset["t"].mean()) - np.mean([expected(0, hour, level) for hour in range(6) for level in range(3)])) < 0.01
    tree = xarray.open_datatree(path, engine="tailrace")
    assert list(tree.groups) == ["/", "/isobaricInhPa"] and close(tree["isobaricInhPa/t"][1, 1].values, 0, 1, 1, ending)
    with pytest.raises(tr.NotThereError, match="no step is committed"):
        xarray.open_dataset(path + ".gone", engine="tailrace")


def test_one_level_decodes_one_message(data):
    if "grib2" not in formats():
        pytest.skip("this build writes no GRIB")
    run = tr.open(patterns(data, "grib2")[0], base=BASE)
    before = tr.decoded_messages()
    dataset = run.to_xarray()
    tree = run.to_datatree()
    assert tr.decoded_messages() == before, "opening decodes nothing"
    dataset["t"][3, 1].load()
    assert tr.decoded_messages() == before + 1
    tree["isobaricInhPa/u"].isel(lead=2).sel(plev=850, lat=45, method="nearest").load()
    assert tr.decoded_messages() == before + 2
    run.step("4h").read("t", 500)
    assert tr.decoded_messages() == before + 3
    dataset["t"][0].load()
    assert tr.decoded_messages() == before + 6


@pytest.mark.parametrize("name", ("chunks", "plain"))
def test_chunked_and_plain_netcdf_4(data, name):
    if "nc4" not in formats():
        pytest.skip("this build writes no NetCDF-4")
    run = tr.open(f"{data}/nc4/{name}.nc4")
    for hour, step in enumerate(run):
        assert all(close(step["t"][level], 0, hour, level) for level in range(3))
    assert close(run.to_xarray()["u"][2, 2].values, 1, 2, 2)


@pytest.mark.parametrize("ending", formats())
def test_the_manifest_is_compared(data, ending, tmp_path):
    run = tr.open(patterns(data, ending)[0], base=BASE)
    assert run.verify() == []
    entries = tr.manifest(f"{data}/{ending}")
    assert entries[f"one.{ending}"].leads == tuple(hour * 3600 for hour in range(6)) and entries[f"one.{ending}"].records == 36
    if ending == "zarr":
        return
    content = bytearray(open(f"{data}/{ending}/one.{ending}", "rb").read())
    content[-5] ^= 1
    for ending_ in ("", ".trx"):
        (tmp_path / f"one.{ending}{ending_}").write_bytes(content if not ending_ else open(f"{data}/{ending}/one.{ending}.trx", "rb").read())
    (tmp_path / "manifest.jsonl").write_bytes(open(f"{data}/{ending}/manifest.jsonl", "rb").read() + b'{"path":"to')
    assert tr.open(tmp_path / f"one.{ending}").verify() == [f"{tmp_path}/one.{ending}: its bytes are not those of the manifest"]


def test_the_package_is_the_installed_wheel():
    assert "site-packages" in tr.__file__ and os.path.exists(tr.__file__.replace("__init__.py", "py.typed"))
    done = subprocess.run([sys.executable, "-c", "import tailrace, sys; assert 'mpi4py' not in sys.modules and 'eccodes' not in sys.modules"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shape", ((4, 6), (24,)))
def test_netcdf_4_of_two_chunks_as_they_are(tmp_path, shape):
    """The lengths of two chunks have as many bytes as the begin of an interval."""
    h5py, path = pytest.importorskip("h5py"), tmp_path / "one.nc4"
    values = np.arange(24.0).reshape(4, 6)
    with h5py.File(path, "w") as file:
        time = file.create_dataset("time", (1,), "<f8")
        time.make_scale("time")
        for name, chunk in (("t", (1, 4, 3)), ("t_mean", (1, 4, 6))):
            file.create_dataset(name, (1, 4, 6), "<f8", chunks=chunk).dims[0].attach_scale(time)
    begin = path.stat().st_size
    fields = [field("t_mean", shape=shape, levels=(850.0,)), field("t", shape=shape, levels=(850.0,))]
    writer = Writer(path, header(fields, "netcdf4", data_begin=begin))
    record = values[:, :3].tobytes() + values[:, 3:].tobytes() + struct.pack("<II", 96, 96)
    writer.data = path.read_bytes() + record + bytes(192) + struct.pack("<q", 3600)
    writer.end = begin + 400
    writer.step(0, records=[(1, 0, begin, 200), (0, 0, begin + 200, 200)], begin=begin).done().save()
    step = tr.open(path).step(0)
    assert (step["t"].reshape(4, 6) == values).all() and (step["t_mean"] == 0).all()
    # With a head of another version, which nothing is taken from.
    path.write_bytes(b"tail".ljust(64, b"\0") + b"TRLNC4D1" + writer.data[72:])
    step = tr.open(path).step(0)
    with pytest.warns(RuntimeWarning, match="not finished"):
        assert (step["t_mean"] == 0).all()
    with pytest.raises(tr.UnsupportedError, match="cut into chunks"):
        step["t"]


def test_integers_have_the_fill_value_of_their_file(data, tmp_path):
    """Where a level was not put; GRIB has no integers, and gives NaN."""
    h5py, path = pytest.importorskip("h5py"), tmp_path / "one.nc4"
    with h5py.File(path, "w") as file:
        dims = [file.create_dataset(name, (extent,), "<f8") for name, extent in (("time", 1), ("plev", 2), ("y", 2), ("x", 3))]
        t = file.create_dataset("t", (1, 2, 2, 3), "<i4", chunks=(1, 1, 2, 3))
        t.attrs["_FillValue"] = np.int32(-9999)
        for number, dim in enumerate(dims):
            dim.make_scale()
            t.dims[number].attach_scale(dim)
    begin = path.stat().st_size
    writer = Writer(path, header([field(kind=3)], "netcdf4", data_begin=begin))
    writer.data, writer.end = path.read_bytes() + np.arange(6, dtype="<i4").tobytes(), begin + 24
    writer.step(0, records=[(0, 0, begin, 24)], begin=begin).done().save()
    run = tr.open(path)
    for values in (run.step(0)["t"], run.to_xarray()["t"].values[0]):
        assert values.dtype == np.int32 and values[0].tolist() == [[0, 1, 2], [3, 4, 5]] and (values[1] == -9999).all()
    if "grib2" in formats():
        with open(f"{data}/grib2/one.grib2", "rb") as file:
            record = tr.load_index(f"{data}/grib2/one.grib2.trx").steps[0].records[0]
            message = file.read(int(record["offset"] + record["length"]))[int(record["offset"]):]
        writer = Writer(tmp_path / "one.grib2", header([field(kind=3, shape=(NY, NX))], "grib2"))
        writer.data, writer.end = message, len(message)
        writer.step(0, records=[(0, 1, 0, len(message))], begin=0).done().save()
        run = tr.open(tmp_path / "one.grib2")
        for values in (run.step(0)["t"], run.to_xarray()["t"].values[0]):
            assert values.dtype == np.float64 and np.isnan(values[0]).all() and not np.isnan(values[1]).any()


def test_a_directory_without_a_manifest(tmp_path):
    for hour in (0, 1):
        Writer(tmp_path / f"fc+{hour:03d}.bin").step(3600 * hour).done().save()
    found = tr.open(tmp_path / "fc+{lead:03h}.bin").verify()
    assert len(found) == 1 and found[0].startswith(f"{tmp_path}/manifest.jsonl: there is no manifest")


def test_options_that_there_are_not(data):
    for opened in (xarray.open_dataset, xarray.open_datatree):
        with pytest.raises(TypeError, match="menber"):
            opened(f"{data}/bin/one.bin", engine="tailrace", menber=3)
