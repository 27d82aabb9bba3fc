# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Grids and levels (grids.c): the package tells from GRIB the places that the library writes into NetCDF, NetCDF-4 and Zarr."""
import os
import shutil

import numpy as np
import pytest
import tailrace as tr
import xarray
from conftest import formats
from made import Writer, field, header
from tailrace import decode_grib

GRIDS = ("rotated", "lambert", "polar", "northward", "unstructured")
POINTS = np.arange(48).reshape(6, 8)


@pytest.fixture(autouse=True)
def need_grib():
    if "grib2" not in formats():
        pytest.skip("this build writes no GRIB")


def dataset(data, name, ending):
    return tr.open(f"{data}/grids/{name}.{ending}").to_xarray()


@pytest.mark.parametrize("name", GRIDS)
def test_grib_tells_the_places_that_netcdf_has(data, name):
    grib, cdf = dataset(data, name, "grib2"), dataset(data, name, "nc")
    horizontal = {"rotated": ("rlat", "rlon"), "northward": ("lat", "lon"), "unstructured": ("cell",)}.get(name, ("y", "x"))
    assert grib["u"].dims == cdf["u"].dims == ("lead", "lev", *horizontal)
    for coordinate in ("lat", "lon", "rlat", "rlon", "y", "x"):
        assert (coordinate in grib.coords) == (coordinate in cdf.coords), coordinate
        if coordinate in grib.coords:
            assert grib[coordinate].dims == cdf[coordinate].dims and grib[coordinate].attrs["units"] == cdf[coordinate].attrs["units"]
            assert np.allclose(grib[coordinate], cdf[coordinate], atol=2e-5), coordinate
            assert all(grib[coordinate].attrs[key] == value for key, value in cdf[coordinate].attrs.items() if key != "bounds"), coordinate
    if "grid_mapping" in cdf["u"].attrs:
        mapping = cdf["u"].attrs["grid_mapping"]
        assert grib["u"].attrs["grid_mapping"] == mapping and grib["u"].attrs["standard_name"] == cdf["u"].attrs["standard_name"] == "x_wind"
        for key, value in cdf[mapping].attrs.items():
            assert np.allclose(grib[mapping].attrs[key], value) if not isinstance(value, str) else grib[mapping].attrs[key] == value, key
    assert grib["2t"].attrs["units"] == cdf["2t"].attrs["units"] == "K" and float(grib["height"]) == float(cdf["height"]) == 2
    assert grib["tp"].attrs["cell_methods"] == cdf["tp"].attrs["cell_methods"] == "time: sum"
    assert grib["tp"].attrs["units"] == cdf["tp"].attrs["units"] == "kg m-2" and int(grib["realization"]) == 3


@pytest.mark.parametrize("ending", [ending for ending in formats() if ending not in ("bin", "grib1")])
@pytest.mark.parametrize("name", GRIDS)
def test_values_missing_ones_and_fields_that_were_not_put(data, name, ending):
    run = tr.open(f"{data}/grids/{name}.{ending}")
    shape = (48,) if name == "unstructured" else (6, 8)
    first, second = run.steps
    assert list(first) == ["u", "sp", "2t", "skt"] and list(second) == ["u", "sp", "2t", "tp", "skt"] and first.member == 3
    assert np.abs(second["u"] - (0.5 * np.arange(144) + 2).reshape(3, *shape)).max() < 0.011
    missing = (POINTS % 5 == 0).reshape(shape)
    sp = first["sp"]
    assert (np.isnan(sp) == missing).all() and np.abs(sp - (100000 + POINTS.reshape(shape)))[~missing].max() < 1.01
    data_set = run.to_xarray()
    assert np.isnan(data_set["tp"][0].values).all() and np.abs(data_set["tp"][1].values - 2 * POINTS.reshape(shape)).max() < 0.011
    assert (np.isnan(data_set["sp"][1].values) == missing).all() and data_set["2t"].dtype == np.float64
    assert sorted(run.to_datatree().groups) == ["/", "/heightAboveGround", "/hybrid", "/surface"]


@pytest.mark.parametrize("ending", [ending for ending in formats() if ending not in ("bin", "grib1")])
def test_intervals_have_bounds(data, ending):
    opened = dataset(data, "lambert", ending)
    rain, mean = opened["tp"].attrs["time_bounds"], opened["skt"].attrs["time_bounds"]
    assert "time_bounds" not in opened["u"].attrs and {rain, mean} == {"time_bnds", "time_2_bnds"}
    hours = {name: ((opened[name] - opened["base"]) / np.timedelta64(1, "h")).values.tolist() for name in (rain, mean)}
    assert hours[mean] == [[0, 1], [1, 2]] and hours[rain][1] == [0, 2] and np.isnan(hours[rain][0]).all(), "rain was put at hour 2 alone"
    assert opened["time"].attrs["bounds"] == "time_bnds" and opened["time_2"].attrs["bounds"] == "time_2_bnds"
    assert np.array_equal(opened["time_2"], opened["time"])


def test_rows_that_alternate_in_the_file_go_one_way(data):
    import eccodes
    index = tr.load_index(f"{data}/grids/lambert.grib2.trx")
    record = index.steps[0].records[0]
    with open(f"{data}/grids/lambert.grib2", "rb") as file:
        file.seek(int(record["offset"]))
        message = file.read(int(record["length"]))
    plain = decode_grib.decode(message, (6, 8), np.dtype("f8"), "it")
    handle = eccodes.codes_new_from_message(message)
    eccodes.codes_set(handle, "alternativeRowScanning", 1)
    turned = decode_grib.decode(eccodes.codes_get_message(handle), (6, 8), np.dtype("f8"), "it")
    eccodes.codes_release(handle)
    assert len(np.unique(plain)) > 8 and np.array_equal(turned[::2], plain[::2]) and np.array_equal(turned[1::2], plain[1::2, ::-1])


def means(data, directory, *hours_of_more):
    """A file for each of two hours with a mean, and others that were put at these hours alone, of the same message. Returns the run."""
    source = tr.load_index(f"{data}/grids/lambert.grib2.trx")
    number = [each.name for each in source.header.fields].index("skt")
    content = open(f"{data}/grids/lambert.grib2", "rb").read()
    fields = [field(f"skt{each}", 5, (6, 8), "surface", (0.0,)) for each in range(len(hours_of_more) + 1)]
    for step in source.steps:
        record = step.records[step.records["field"] == number][0]
        begin, length = int(record["offset"]), int(record["length"])
        put = [0, *(each + 1 for each, hours in enumerate(hours_of_more) if step.lead // 3600 in hours)]
        writer = Writer(directory / f"fc+{step.lead // 3600:03d}.grib2", header(fields, "grib2", member=3))
        writer.data, writer.end = content[begin:begin + length] * len(put), length * len(put)
        writer.step(step.lead, records=[(each, 0, place * length, length) for place, each in enumerate(put)], begin=0).done().save()
    return tr.open(directory / "fc+{lead:03h}.grib2")


def hours_of(opened, name):
    """The bounds of a field's time, in hours. None where there is none."""
    hours = (opened[opened[name].attrs["time_bounds"]] - opened["base"]) / np.timedelta64(1, "h")
    return [None if np.isnan(each).all() else each.tolist() for each in hours.values]


def test_a_damaged_file_stops_the_reading_of_its_values_alone(data, tmp_path):
    """Its interval is not known, and the run is opened."""
    run, last = means(data, tmp_path), tmp_path / "fc+002.grib2"
    assert hours_of(run.to_xarray(), "skt0") == [[0, 1], [1, 2]]
    last.write_bytes(bytes(last.stat().st_size))
    opened = run.to_xarray()
    assert hours_of(opened, "skt0") == [[0, 1], None] and not np.isnan(opened["skt0"][0]).any()
    with pytest.raises(tr.FormatError, match="fc.002.grib2"):
        opened["skt0"].load()
    last.unlink()
    assert hours_of(run.to_xarray(), "skt0") == [[0, 1], None]


def test_bounds_are_shared_by_fields_that_were_put_at_the_same_leads(data, tmp_path):
    opened = means(data, tmp_path, (2,), (1, 2)).to_xarray()
    assert hours_of(opened, "skt0") == hours_of(opened, "skt2") == [[0, 1], [1, 2]] and hours_of(opened, "skt1") == [None, [1, 2]]
    assert opened["skt0"].attrs["time_bounds"] == opened["skt2"].attrs["time_bounds"] == "time_bnds"


def test_bounds_of_a_file_that_is_finished_while_the_run_is_open(data, tmp_path):
    if "nc4" not in formats():
        pytest.skip("this build writes no NetCDF-4")
    for name in ("fc+001.nc4", "fc+002.nc4"):
        for ending in ("", ".trx"):
            shutil.copy(f"{data}/grids/lambert.nc4{ending}", tmp_path / f"{name}{ending}")
    last = tmp_path / "fc+002.nc4"
    finished = last.read_bytes()
    last.write_bytes(b"tail" + finished[4:])
    run = tr.open(tmp_path / "fc+{lead:03h}.nc4")
    assert "time_bounds" not in run.to_xarray()["skt"].attrs, "steps of the later file count, and it tells no intervals yet"
    last.write_bytes(finished)
    assert hours_of(run.to_xarray(), "skt") == [[0, 1], [1, 2]]
    # A stream that goes on opens a file again, and finishes it with more steps.
    with pytest.importorskip("h5py").File(last, "r+") as file:
        file[file["time_2"].attrs["bounds"].decode() if "time_2" in file else "time_bnds"].resize(1, axis=0)
    run = tr.open(run.pattern.text)
    assert hours_of(run.to_xarray(), "skt") == [[0, 1], None]
    last.write_bytes(finished)
    assert hours_of(run.to_xarray(), "skt") == [[0, 1], [1, 2]]


@pytest.mark.parametrize("ending", [ending for ending in ("nc", "nc4", "zarr") if ending in formats()])
def test_coefficients_of_hybrid_levels_are_there(data, ending):
    opened = dataset(data, "rotated", ending)
    assert opened["lev_ap"].values.tolist() == [50, 150, 100] and opened["lev_b"].attrs["units"] == "1"
    assert "ap: lev_ap b: lev_b ps: sp" in opened["lev"].attrs["formula_terms"]


def test_other_readers_of_netcdf_see_the_same(data):
    """xarray decodes what the library has written by itself, where a package for it is there."""
    if "nc4" not in formats():
        pytest.skip("this build writes no NetCDF-4")
    pytest.importorskip("h5netcdf")
    ours = dataset(data, "rotated", "nc4")
    with xarray.open_dataset(f"{data}/grids/rotated.nc4", engine="h5netcdf") as theirs:
        for name in ("u", "sp", "2t"):
            assert np.array_equal(ours[name].values, theirs[name].values, equal_nan=True)
    assert os.path.exists(f"{data}/grids/rotated.nc4.trx")
