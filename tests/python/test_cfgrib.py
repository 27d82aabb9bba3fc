# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""cfgrib takes the index that a stream with index=cfgrib has written: without a warning, without looking at any message, whatever way the
path is spelled; and it sees what it sees without one."""
import hashlib
import logging
import os
import shutil
from pathlib import Path

import pytest
import xarray
from conftest import LEVELS, close, formats

cfgrib = pytest.importorskip("cfgrib")
from cfgrib import cfmessage, dataset, messages  # noqa: E402


@pytest.fixture
def beside(data, tmp_path, monkeypatch):
    """A file with its index, moved to another directory."""
    if "grib2" not in formats():
        pytest.skip("this build writes no GRIB")
    for path in Path(data, "cfgrib").iterdir():
        shutil.copy2(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "fc.grib2"


@pytest.fixture
def scanned(monkeypatch):
    """Counts the messages that cfgrib looks at to find out what a file holds."""
    seen = []
    iterate = messages.FileStreamItems.itervalues

    def counted(self):
        for message in iterate(self):
            seen.append(message)
            yield message
    monkeypatch.setattr(messages.FileStreamItems, "itervalues", counted)
    return seen


def opened(path, **options):
    data = xarray.open_dataset(path, engine="cfgrib", decode_timedelta=True, **options)
    del data.attrs["history"]  # the minute at which it was opened
    return data


def test_the_name_is_that_of_this_version_of_cfgrib():
    keys = dataset.compute_index_keys(("time", "step"), {})
    assert hashlib.md5(repr(sorted(keys)).encode()).hexdigest()[:5] == "5b7b6"


def test_every_spelling_of_the_path_is_served_without_a_look_at_the_messages(beside, scanned, caplog):
    caplog.set_level(logging.WARNING)
    without = opened("fc.grib2", indexpath="")
    assert len(scanned) == 36
    for path in ("fc.grib2", "./fc.grib2", str(beside), beside, f"../{beside.parent.name}/fc.grib2"):
        scanned.clear()
        assert opened(path).identical(without), path
        assert not scanned and not caplog.records, (path, caplog.text)
    assert sorted(name for name in os.listdir(beside.parent) if name.endswith(".idx")) == ["fc.grib2.5b7b6.idx"], "cfgrib has written one of its own"
    for hour in range(6):
        for number, name in enumerate("tu"):
            for level, pressure in enumerate(LEVELS):
                assert close(without[name].isel(step=hour).sel(isobaricInhPa=pressure).values, number, hour, level, "grib2")


def test_a_part_that_is_asked_for_is_found(beside, scanned):
    found = opened("fc.grib2", filter_by_keys={"paramId": 131, "level:float": 850.0})
    assert list(found) == ["u"] and float(found["isobaricInhPa"]) == 850 and not scanned


def test_every_entry_has_the_values_that_cfgrib_finds(beside):
    stream = messages.FileStream("fc.grib2")
    keys = dataset.compute_index_keys(("time", "step"), {})
    theirs = messages.FileIndex.from_fieldset(stream, sorted(keys), cfmessage.COMPUTED_KEYS)
    ours = messages.FileIndex.from_indexpath_or_filestream(stream, sorted(keys), computed_keys=cfmessage.COMPUTED_KEYS)
    assert ours == theirs
    for own, other in zip(ours.field_ids_index, theirs.field_ids_index):
        assert [type(each) for each in own[0]] == [type(each) for each in other[0]]


@pytest.mark.parametrize("name,messages_of", [(name, 13) for name in ("rotated", "lambert", "polar", "northward", "unstructured")] +
                         [("ensemble", 85), ("reduced", 85)])
def test_entries_of_other_grids_levels_and_statistics(data, monkeypatch, scanned, name, messages_of):
    """Those of grids.c, with intervals, minutes, members and levels of many types."""
    if "grib2" not in formats():
        pytest.skip("this build writes no GRIB")
    monkeypatch.chdir(f"{data}/grids")
    stream = messages.FileStream(f"{name}.grib2")
    keys = sorted(dataset.compute_index_keys(("time", "step"), {}))
    ours = messages.FileIndex.from_indexpath_or_filestream(stream, keys, computed_keys=cfmessage.COMPUTED_KEYS).field_ids_index
    assert not scanned
    theirs = messages.FileIndex.from_fieldset(stream, keys, cfmessage.COMPUTED_KEYS).field_ids_index
    assert len(ours) == len(theirs) == len(scanned) == messages_of
    for own, other in zip(ours, theirs):
        told = {key: (a, b) for key, a, b in zip(keys, own[0], other[0]) if (type(a), a) != (type(b), b)}
        # Before it had numbers for the means of skt and 10si and the minimum of 2t, ecCodes gave those of the fields. The writer's may be older
        # than cfgrib's.
        if own[0][keys.index("stepType")] != "instant" and told.get("paramId", (0,))[0] in (235, 207, 167):
            del told["paramId"]
        assert not told and own[1] == other[1], (own[1], told)


def test_an_older_index_is_not_used(beside, scanned, caplog):
    """As when other messages were written since: cfgrib compares the ages."""
    status = beside.stat()
    os.utime(beside, ns=(status.st_atime_ns, os.stat("fc.grib2.5b7b6.idx").st_mtime_ns + 1_000_000))
    assert opened("fc.grib2").sizes["step"] == 6
    assert len(scanned) == 36 and "older" in caplog.text


def test_of_messages_with_the_same_keys_the_first_counts(beside, scanned):
    """As cfgrib has it: an index tells of both, as after same_lead=keep."""
    index = Path("fc.grib2.5b7b6.idx")
    text = index.read_text()
    begin, end = text.index("(((V") + 1, text.index("\nltp9\n") + 6
    again = text[begin:end].replace("t(I0\n", "t(I1234\n")
    index.write_text(text.replace("lp0\n0cbuiltins", again + "lp0\n0cbuiltins"))
    entries = messages.FileIndex.from_indexpath_or_filestream(
        messages.FileStream("fc.grib2"), sorted(dataset.compute_index_keys(("time", "step"), {})), computed_keys=cfmessage.COMPUTED_KEYS).field_ids_index
    assert len(entries) == 36 and entries[0][1] == [0] and not scanned


def test_an_index_that_is_cut_short_is_not_used(beside, scanned, caplog):
    index = Path("fc.grib2.5b7b6.idx")
    for length in (0, 100, 2000, len(index.read_bytes()) - 1):
        scanned.clear()
        index.write_bytes(index.read_bytes()[:length])
        assert opened("fc.grib2").sizes["step"] == 6 and len(scanned) == 36
        shutil.copy2(Path(os.environ["TEST_DATA"], "cfgrib", index.name), index)
    assert "Can't read index file" in caplog.text
