# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Steps closer than a second, days apart, or at times of the model's own."""
import json
import os
import random
import shlex
import struct
import subprocess
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
import tailrace as tr
import xarray
from made import Writer, defined, definitions, field, header, netcdf4, netcdf4_head, packed, sealed, text
from tailrace.calendar import Moment, parse_duration, parse_time
from tailrace.definitions import read_definitions
from tailrace.time_axis import TIME_UNITS, code_of, number_text, time_of

MODEL = os.environ.get("TEST_TIMES", "")
BASE = parse_time("2026-03-01T12:00Z")
MS, DAY = 10**6, 86400 * 10**9
needs_model = pytest.mark.skipif(not MODEL, reason="the program is not there (TEST_TIMES)")


def axis_of(kind=0, has_base=1, nanoseconds=10**9, shown=None, name="time", units=""):
    """The axis of times in an index of version 2."""
    return struct.pack("<iIqq", kind, has_base, nanoseconds, nanoseconds if shown is None else shown) + text(name) + text(units)


def head_of(axis, *args, **about):
    body = bytearray(header(*args, **about)[:-8] + axis)
    body[8:12] = struct.pack("<I", 2)
    return sealed(bytes(body), 12)


def made(path, axis, leads, **about):
    """A raw file with steps at these leads, whose values are the numbers of their steps."""
    writer = Writer(path, head_of(axis, base=BASE.seconds, **about))
    for number, lead in enumerate(leads):
        writer.step(lead, value=number)
    return writer.done().save()


def written(tmp_path, name, options, call, steps=4):
    launcher = shlex.split(os.environ["TEST_LAUNCHER"])
    done = subprocess.run([*launcher, "-n", "1", MODEL, name, options, call, str(steps)], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return str(tmp_path / name)


TIMES = [0.0]
while len(TIMES) < 4:
    TIMES.append(TIMES[-1] + 0.1)
ENDINGS = [("a.nc", ""), ("b.nc", "format=cdf1"), ("a.nc4", ""), ("a.zarr", "")]


@needs_model
@pytest.mark.parametrize("name,options", ENDINGS)
def test_leads_in_milliseconds_that_a_model_has_written(tmp_path, name, options):
    try:
        path = written(tmp_path, name, f"{options} base=2026-03-01T12:00Z lead_unit=ms time_units=s time_name=Times", "lead")
    except AssertionError as error:
        if "TR_ERR_UNSUPPORTED" in str(error):
            pytest.skip("this build lacks the format")
        raise
    run = tr.open(path)
    assert run.missing == [] and run.verify() == [] and [str(step.lead) for step in run] == ["0h", "667ms", "1s334ms", "2s1ms"]
    assert [step.time for step in run] == [0, 0.667, 1.334, 2.001] and run.axis.unit == "ms" and run.axis.name == "Times"
    step = run.step("667ms")
    assert step is not run.step(0.667) and step.number == run.step(time=0.667).number == run.step(np.timedelta64(667, "ms")).number == 1
    assert step.valid.isoformat() == "2026-03-01T12:00:00.667000+00:00" and step["theta"][0, 0] == 100
    data = run.to_xarray()
    assert data["theta"].dims[0] == "lead" and data["theta"][:, 0, 0].values.tolist() == [0, 100, 200, 300]
    assert (data["lead"].values == np.array([0, 667, 1334, 2001], "timedelta64[ms]")).all()
    assert (data["Times"].values == np.datetime64("2026-03-01T12:00:00.000", "ms") + data["lead"].values).all() and "time" not in data
    entry = tr.manifest(tmp_path)[name]
    assert entry.leads == (0, 667, 1334, 2001) and entry.lead_unit == "ms" and entry.times == ()


@needs_model
@pytest.mark.parametrize("name,options", ENDINGS)
def test_times_of_a_model_without_a_date(tmp_path, name, options):
    try:
        path = written(tmp_path, name, f"{options} time=model time_units='Alfven times' time_name=Times", "time")
    except AssertionError as error:
        if "TR_ERR_UNSUPPORTED" in str(error):
            pytest.skip("this build lacks the format")
        raise
    run = tr.open(path)
    assert run.complete and run.verify() == [] and run.base is None and [step.time for step in run] == TIMES
    assert run.step(time=TIMES[3])["theta"][0, 0] == 300 and "time 0.1 Alfven times" in repr(run.step(time=0.1))
    with pytest.raises(tr.NotThereError, match=r"time 0.3 is committed|no step at time 0.3 \(the nearest is at 0.30000000000000004\)"):
        run.step(time=0.3)
    for asked, words in (("lead", "no lead"), ("valid", "no date"), ("base", "no date")):
        with pytest.raises(tr.NotThereError, match=words):
            getattr(run.steps[1], asked)
    with pytest.raises(tr.SettingsError, match="time=model"):
        run.step("6h")
    data = run.to_xarray()
    assert data["theta"].dims[0] == "Times" and data["Times"].dtype == np.float64 and data["Times"].values.tolist() == TIMES
    assert data["Times"].attrs == {"long_name": "time", "units": "Alfven times", "axis": "T"} and not {"lead", "time", "base"} & set(data.variables)
    assert data["theta"].sel(Times=TIMES[2]).values[0, 0] == 200
    entry = tr.manifest(tmp_path)[name]
    assert entry.times == tuple(TIMES) and entry.time_units == "Alfven times" and entry.leads == () and entry.base == ""


@needs_model
def test_a_dataset_is_what_xarray_itself_reads(tmp_path):
    cases = {"ms": ("lead_unit=ms base=2026-03-01T12:00Z", "lead"), "days": ("time=model time_units=days base=2026-03-01T12:00Z", "time")}
    for name, (options, call) in cases.items():
        path = written(tmp_path, f"{name}.nc", f"format=cdf1 {options}", call)
        pytest.importorskip("netCDF4")
        with xarray.open_dataset(path, engine="netcdf4") as own:
            apart = np.abs(tr.open(path).to_xarray()["time"].values.astype("datetime64[ns]") - own["time"].values.astype("datetime64[ns]"))
        assert apart.max() <= np.timedelta64(0 if name == "ms" else 10, "ns" if name == "ms" else "us"), name


@needs_model
@pytest.mark.parametrize("pattern,options,call,names", [
    ("a{time:06.2f}.bin", "time=model", "time", ["a000.00.bin", "a000.10.bin", "a000.20.bin", "a000.30.bin"]),
    ("a_{time}_.bin", "time=model", "time", ["a_0_.bin", "a_0.1_.bin", "a_0.2_.bin", "a_0.30000000000000004_.bin"]),
    ("b{lead:06ms}.bin", "base=2026-03-01T12:00Z lead_unit=ms", "lead", ["b000000.bin", "b000667.bin", "b001334.bin", "b002001.bin"]),
    ("b{lead:us}.bin", "base=2026-03-01T12:00Z lead_unit=ms", "lead", ["b0.bin", "b667000.bin", "b1334000.bin", "b2001000.bin"]),
    ("b{lead:05h}.bin", "base=2026-03-01T12:00Z lead_unit=h", "lead", ["b00000.bin", "b00667.bin", "b01334.bin", "b02001.bin"])])
def test_files_named_by_times(tmp_path, pattern, options, call, names):
    written(tmp_path, pattern, f"format=raw {options}", call)
    wanted = {"times": TIMES} if call == "time" else {"leads": [f"{667 * step}{'h' if 'lead_unit=h' in options else 'ms'}" for step in range(4)]}
    run = tr.open(tmp_path / pattern, **wanted)
    assert [os.path.basename(path) for path in run.files] == names and run.complete and len(list(run.follow(timeout=0))) == 4
    assert run.to_xarray()["theta"][:, 0, 0].values.tolist() == [0, 100, 200, 300]
    os.remove(tmp_path / f"{names[1]}.trx")
    lacking = tr.open(tmp_path / pattern, **wanted).missing
    assert len(lacking) == 1 and lacking[0].endswith(": not committed"), lacking


def test_numbers_are_written_as_the_library_writes_them():
    """The names of files have them."""
    for number, expected in ((0.0, "0"), (-0.0, "0"), (12.0, "12"), (0.1, "0.1"), (0.1 + 0.2, "0.30000000000000004"), (1e4, "10000"), (1e5, "1e+05"),
                             (123000.0, "123000"), (1.5e5, "150000"), (1e-3, "0.001"), (1e-4, "1e-04"), (0.00012, "0.00012"), (1.5e-7, "1.5e-07"), (1e300, "1e+300"),
                             (-2.5, "-2.5"), (1234567.0, "1234567"), (12345678901234567890.0, "12345678901234567168"), (5e-324, "5e-324")):
        assert number_text(number) == expected and float(expected) == number
    chance = random.Random(4)
    for _ in range(2000):
        number = struct.unpack("<d", chance.randbytes(8))[0]
        if number - number == 0:
            assert float(number_text(number)) == number and time_of(code_of(number)) == number


def test_codes_are_ordered_as_times():
    times = [-1e308, -2.5, -0.1, -5e-324, 0.0, 5e-324, 0.1, 0.1 + 0.2, 1e308]
    codes = [code_of(each) for each in times]
    assert codes == sorted(codes) and len(set(codes)) == 9 and code_of(0.0) == code_of(-0.0) == 0


@pytest.mark.parametrize("pattern,axis,lead,name", [
    ("a{lead:09ms}", tr.TimeAxis(nanoseconds=MS), 667, "a000000667"), ("a{lead:ns}", tr.TimeAxis(nanoseconds=1), 2**40 + 1, f"a{2**40 + 1}"),
    ("a{lead:03h}", tr.TimeAxis(nanoseconds=DAY), 5, "a120"), ("a{lead:02m}", tr.TimeAxis(nanoseconds=MS), 120000, "a02"),
    ("{valid:%Y%m%d%H%M%S}", tr.TimeAxis(nanoseconds=MS), 61000, "20260301120101"), ("{valid:%d}_{time:.1f}", tr.TimeAxis(True, True, DAY, DAY, "time", "days"), code_of(1.5), "03_1.5"),
    ("a{time:08.3f}", tr.TimeAxis(True, False, model_units="s"), code_of(-0.5), "a-000.500"), ("a{time}b", tr.TimeAxis(True, False, model_units="1"), code_of(1e5), "a1e+05b")])
def test_names_and_times_go_both_ways(pattern, axis, lead, name):
    context = tr.Context(BASE, None, axis)
    assert tr.Pattern(pattern).expand(lead, context) == name and tr.Pattern(pattern).match(name, context) == lead
    assert tr.Pattern(pattern).match(name + "x", context) is None


def test_locks_have_the_forms_of_times():
    for text_ in ("a{lead:09ms}", "a{time:08.3f}", "a{time}", "a{time:.3f}"):
        assert tr.Pattern(text_).stream_lock(tr.Context()) == f"{text_}.stream.lock"


@pytest.mark.parametrize("pattern,words", [("{time:3}", "no form of a number"), ("{time:.f}", "decimals"), ("{time:.19f}", "decimals"), ("{time:8.3f}", "no width"),
                                           ("{lead:09min}", "needs its unit"), ("{lead:ks}", "needs its unit"), ("{tim}", r"did you mean \{time\}")])
def test_mistakes_are_told(pattern, words):
    with pytest.raises(tr.SettingsError, match=words):
        tr.Pattern(pattern)


def test_what_an_axis_lacks_for_a_pattern(tmp_path):
    for pattern, axis in (("a{lead:s}", tr.TimeAxis(True, False, model_units="s")), ("a{valid}", tr.TimeAxis(True, False, model_units="s")), ("a{time}", tr.TimeAxis())):
        with pytest.raises(tr.SettingsError, match="asks for"):
            tr.Pattern(pattern).expand(0, tr.Context(BASE, None, axis))
    with pytest.raises(tr.SettingsError, match="whole number of {lead:s}"):
        tr.Pattern("a{lead:s}").expand(667, tr.Context(BASE, None, tr.TimeAxis(nanoseconds=MS)))
    made(tmp_path / "m.bin", axis_of(1, 0, units="s"), [0])
    made(tmp_path / "l.bin", axis_of(nanoseconds=MS), [0])
    for given, words in (({"leads": ["6h"]}, "times="), ({"leads": [0], "times": [0]}, "both"), ({"times": [float("inf")]}, "finite")):
        with pytest.raises(tr.SettingsError, match=words):
            assert tr.open(tmp_path / "m.bin", **given).missing is None
    for given in ({"times": [0.0]}, {"leads": ["500us"]}):
        with pytest.raises(tr.SettingsError, match="leads"):
            assert tr.open(tmp_path / "l.bin", **given).missing is None
    assert parse_duration("250ms") == 0.25 and parse_duration("1s500ms") == 1.5


@pytest.mark.parametrize("unit", TIME_UNITS, ids=lambda unit: unit.symbol)
def test_each_unit_of_leads_is_exact(tmp_path, unit):
    leads = [0, 1, 7, 10**5 + 1]
    made(tmp_path / "a.bin", axis_of(nanoseconds=unit.nanoseconds, shown=DAY), leads)
    run = tr.open(tmp_path / "a.bin")
    assert [step.time for step in run] == [float(Fraction(lead * unit.nanoseconds, DAY)) for lead in leads]
    data = run.to_xarray()
    symbol = unit.symbol.replace("min", "m").replace("d", "D")
    assert ((data["lead"].values / np.timedelta64(1, symbol)) == leads).all()
    assert ((data["time"].values - np.datetime64("2026-03-01T12:00", "s")) == data["lead"].values).all()
    assert run.step(f"7{unit.symbol}").number == 2 and data["t"].sel(lead=np.timedelta64(7, symbol))[0, 0, 0] == 2
    encoded = xarray.conventions.encode_cf_variable(data["time"].variable)
    assert encoded.values.tolist() == leads and encoded.attrs["units"].replace("T", " ") == f"{unit.plural} since 2026-03-01 12:00:00", "as xarray writes them"
    if unit.symbol == "ns":
        assert isinstance(run.steps[2].lead, np.timedelta64) and run.steps[2].lead == np.timedelta64(7, "ns")
        assert str(run.steps[2].valid) == "2026-03-01T12:00:00.000000007Z" and "+7ns, valid 2026-03-01T12:00:00.000000007Z" in repr(run.steps[2])
    else:
        assert isinstance(run.steps[2].lead, tr.Lead) and run.steps[2].lead.total_seconds() == pytest.approx(7 * unit.nanoseconds / 1e9)


def test_gaps_of_leads_and_of_times(tmp_path):
    made(tmp_path / "l.bin", axis_of(nanoseconds=MS), [0, 250, 500, 1000, 1250])
    assert tr.open(tmp_path / "l.bin").missing == ["+750ms: not committed"]
    made(tmp_path / "m.bin", axis_of(1, 0, units="s"), [code_of(each) for each in (0, 0.25, 0.5, 1, 1.25)])
    assert tr.open(tmp_path / "m.bin").missing == []
    assert tr.open(tmp_path / "m.bin", times=[0, 0.75]).missing == ["time 0.75 s: not committed"]


def test_times_before_zero_and_two_at_one_time(tmp_path):
    made(tmp_path / "m.bin", axis_of(1, 0, units="1"), [code_of(each) for each in (-1.5, 0, 0, 2)])
    run = tr.open(tmp_path / "m.bin")
    assert [step.time for step in run] == [-1.5, 0, 0, 2] and run.step(time=0).number == 2 and "Step time -1.5, t" in repr(run.steps[0])
    assert run.to_xarray()["t"][:, 0, 0, 0].values.tolist() == [0, 2, 3] and len(list(run.follow(timeout=0))) == 4


def test_times_of_a_model_with_a_date(tmp_path):
    made(tmp_path / "m.bin", axis_of(1, 1, DAY, name="Times", units="days"), [code_of(each) for each in (-0.25, 0, 0.1, 1.5)], member=3)
    run = tr.open(tmp_path / "m.bin", base="2026-03-01T12:00Z")
    assert [f"{step.valid:%d %H:%M:%S}" for step in run] == ["01 06:00:00", "01 12:00:00", "01 14:24:00", "03 00:00:00"] and run.step(time=0.1).number == 2
    data = run.to_xarray()
    assert data["t"].dims[0] == "Times" and data["Times"].values[3] == np.datetime64("2026-03-03T00:00") and int(data["realization"]) == 3
    assert data["base"].values == np.datetime64("2026-03-01T12:00") and "lead" not in data
    assert len(tr.open(tmp_path / "m.bin", base="2026-03-02")) == 0
    made(tmp_path / "far.bin", axis_of(1, 1, DAY, units="days"), [code_of(each) for each in (0, 1e300)])
    far = tr.open(tmp_path / "far.bin").to_xarray()["time"]
    assert far.values.tolist() == [0, 1e300] and far.attrs["units"] == "days since 2026-03-01 12:00:00"
    assert "time 1e+300 days" in repr(tr.open(tmp_path / "far.bin").steps[1])


def test_other_calendars(tmp_path):
    base = parse_time("2026-02-30T00:00Z", 1)
    for unit, name in ((MS, "ms.bin"), (1, "ns.bin"), (DAY, "d.bin")):
        Writer(tmp_path / name, head_of(axis_of(nanoseconds=unit), base=base.seconds, calendar=1)).step(0).step(1500, value=1).done().save()
    found = tr.open(tmp_path / "ms.bin").to_xarray()["time"].values[1]
    assert found.calendar == "360_day" and (found.day, found.second, found.microsecond) == (30, 1, 500000)
    assert str(tr.open(tmp_path / "ms.bin").steps[1].valid) == "2026-02-30T00:00:01.5Z"
    numbers = tr.open(tmp_path / "ns.bin").to_xarray()["time"]
    assert numbers.values.tolist() == [0, 1500] and numbers.attrs["units"] == "nanoseconds since 2026-02-30 00:00:00" and numbers.attrs["calendar"] == "360_day"
    assert tr.open(tmp_path / "d.bin").steps[1].valid == Moment.of(base.seconds + 1500 * 86400, 1)


def test_names_of_the_variable_of_time(tmp_path):
    for name, shown in (("lead", "time"), ("base", "time"), ("a/b", "a_b"), ("t", "t")):
        made(tmp_path / "a.bin", axis_of(name=name), [0, 60])
        data = tr.open(tmp_path / "a.bin").to_xarray()
        assert data[shown].dims == ("lead",) and data["lead"].dtype.kind == "m" and data[shown].values[1] == np.datetime64("2026-03-01T12:01")
        assert ("t_isobaricInhPa" in data) == (name == "t") and tr.open(tmp_path / "a.bin").to_datatree() is not None
        made(tmp_path / "m.bin", axis_of(1, 0, name=name, units="s"), [0])
        assert tr.open(tmp_path / "m.bin").to_xarray()[name.replace("/", "_") if name != "base" else "time"].dims[0] != "base"


def test_what_numpy_does_not_hold_is_named(tmp_path):
    made(tmp_path / "ns.bin", axis_of(nanoseconds=1), [0, 2**63 - 1])
    run = tr.open(tmp_path / "ns.bin")
    assert run.steps[1].lead == np.timedelta64(2**63 - 1, "ns") and run.steps[1].valid.year == 2318 and run.steps[1]["t"][0, 0, 0] == 1
    with pytest.raises(tr.UnsupportedError, match=r"lead 9223372036854775807 ns after 2026-03-01T12:00:00Z is beyond .*datetime64\[ns\]"):
        run.to_xarray()
    made(tmp_path / "d.bin", axis_of(nanoseconds=DAY), [0, 10**10])
    with pytest.raises(tr.UnsupportedError, match="10000000000 d is longer than a timedelta"):
        assert tr.open(tmp_path / "d.bin").steps[1].lead
    assert tr.open(tmp_path / "d.bin").steps[1].time == 1e10 and "+240000000000h" in repr(tr.open(tmp_path / "d.bin").steps[1])


def test_files_with_different_axes_are_of_different_runs(tmp_path):
    made(tmp_path / "fc_20260301.bin", axis_of(nanoseconds=MS), [0])
    Writer(tmp_path / "fc_20260302.bin", header(base=BASE.seconds)).step(86400).done().save()
    run = tr.open(tmp_path / "fc_{valid:%Y%m%d}.bin", base=BASE)
    assert any("different runs" in line and "times in ms" in line for line in run.missing), run.missing
    with pytest.raises(tr.StateError, match="different runs"):
        run.to_xarray()


def test_a_run_is_followed_before_its_axis_is_known(tmp_path):
    pattern = str(tmp_path / "a{lead:04ms}.bin")
    run = tr.open(pattern, leads=["0h", "250ms", "500ms"])
    assert run.missing == ["+0000ms: not written", "+0250ms: not written", "+0500ms: not written"]

    def write():
        for lead in (0, 250, 500):
            time.sleep(0.05)
            made(tmp_path / f"a{lead:04d}.bin", axis_of(nanoseconds=MS, name="Times"), [lead])
    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert [str(step.lead) for step in run.follow(timeout=20)] == ["0h", "250ms", "500ms"]
    finally:
        writer.join()
    assert run.complete


HOSTILE = {"kind": axis_of(2), "negative kind": axis_of(-1), "unit": axis_of(nanoseconds=17), "no unit": axis_of(nanoseconds=0), "shown": axis_of(shown=-1),
           "empty name": axis_of(name=""), "units of leads": axis_of(units="s"), "leads without a date": axis_of(has_base=0),
           "model without units": axis_of(1, 0), "cut": axis_of()[:-3], "more": axis_of() + b"\0", "none": b"",
           "long name": axis_of()[:24] + struct.pack("<I", 2**32 - 1) + b"time" + text("")}


@pytest.mark.parametrize("axis", HOSTILE.values(), ids=HOSTILE)
def test_an_axis_that_contradicts_itself_is_damage(tmp_path, axis):
    Writer(tmp_path / "a.bin", head_of(axis)).step(0).done().save()
    with pytest.raises(tr.FormatError):
        tr.load_index(str(tmp_path / "a.bin.trx"))
    with pytest.raises(tr.FormatError):
        tr.open(tmp_path / "a.bin")


def with_sections(*sections):
    """The head of an index of version 3. A section is the number of its field, and lists of extents, starts, stops and strides."""
    told = struct.pack("<I", len(sections))
    for number, *lists in sections:
        told += struct.pack("<I", number) + b"".join(struct.pack(f"<I{len(each)}q", len(each), *each) for each in lists)
    body = bytearray(header()[:-8] + axis_of() + told)
    body[8:12] = struct.pack("<I", 3)
    return sealed(bytes(body), 12)


def test_sections_of_arrays_are_told(tmp_path):
    Writer(tmp_path / "a.bin", with_sections((0, [9, 7], [1, 0], [8, 7], [3, 2]))).step(0).save()
    read = tr.load_index(str(tmp_path / "a.bin.trx")).header
    assert read.fields[0].section == ((9, 1, 8, 3), (7, 0, 7, 2)) and read.time.is_default and len(list(tr.open(tmp_path / "a.bin"))) == 1
    for wrong in [(0, [9], [9], [9], [1]), (0, [9], [0], [10], [1]), (0, [9], [3], [3], [1]), (0, [9], [0], [9], [0]), (0, [9, 7], [0], [1, 1], [1, 1]), (99, [9], [0], [9], [1])]:
        Writer(tmp_path / "b.bin", with_sections(wrong)).step(0).save()
        with pytest.raises(tr.FormatError, match="section of field"):
            tr.load_index(str(tmp_path / "b.bin.trx"))


def test_another_version_is_named(tmp_path):
    head = bytearray(header()[:-8])
    head[8:12] = struct.pack("<I", 4)
    Writer(tmp_path / "a.bin", sealed(bytes(head), 12)).step(0).save()
    with pytest.raises(tr.UnsupportedError, match="version 4, and this package reads versions 1 to 3"):
        tr.open(tmp_path / "a.bin")


@pytest.mark.parametrize("axis,leads", [(axis_of(1, 0, units="s"), [code_of(float("inf"))]), (axis_of(1, 0, units="s"), [-2**63]), (axis_of(1, 0, units="s"), [2**63 - 1]),
                                        (axis_of(1, 0, units="s"), [code_of(1.0), code_of(-1.0)]), (axis_of(nanoseconds=DAY), [2**62]), (axis_of(nanoseconds=MS), [5, 4])])
def test_steps_at_times_that_are_none_are_damage(tmp_path, axis, leads):
    made(tmp_path / "a.bin", axis, leads)
    index = tr.load_index(str(tmp_path / "a.bin.trx"))
    assert index.tail == "damaged" and "back in time, or beyond" in index.tail_text and len(index.steps) == len(leads) - 1


def test_changed_axes_with_right_checksums(tmp_path):
    """Whatever they say, reading ends in an error of this package or in values."""
    chance = random.Random(5)
    for axis in (axis_of(nanoseconds=MS, shown=DAY), axis_of(1, 1, DAY, name="Times", units="days"), axis_of(1, 0, units="s")):
        for _ in range(100):
            changed = bytearray(axis)
            for _ in range(chance.randrange(1, 4)):
                changed[chance.randrange(len(changed))] = chance.choice((0, 1, 2, 255, chance.randrange(256)))
            writer = Writer(tmp_path / "a.bin", head_of(bytes(changed), base=BASE.seconds))
            writer.step(chance.choice((-5, 0, 7))).step(chance.choice((8, 2**40, 2**62))).done().save()
            try:
                run = tr.open(tmp_path / "a.bin")
                assert isinstance(run.missing, list) and repr(run.steps)
                run.to_xarray().load()
            except (tr.FormatError, tr.UnsupportedError, tr.StateError, tr.NotThereError):
                pass


def test_an_entry_of_a_manifest_that_lies(tmp_path):
    good = {"path": "a", "size": 1, "xxh3_128": "0", "run": "123e4567-e89b-42d3-a456-426614174000", "records": 1, "times": [0.5], "time_units": "s"}
    for change in ({}, {"times": [float("nan")]}, {"times": ["1"]}, {"times": 3}, {"time_units": 4}, {"times": [10**400]}, {"base": 4}):
        (tmp_path / "manifest.jsonl").write_text(json.dumps({**good, **change}) + "\n")
        if not change:
            assert tr.manifest(tmp_path)["a"].times == (0.5,)
            continue
        with pytest.raises(tr.FormatError):
            tr.manifest(tmp_path)
    with_leads = {**{key: value for key, value in good.items() if "time" not in key}, "base": "2026-03-01T00:00:00Z", "leads": [1]}
    (tmp_path / "manifest.jsonl").write_text(json.dumps({**with_leads, "lead_unit": "weeks"}) + "\n")
    with pytest.raises(tr.FormatError, match="lead_unit"):
        tr.manifest(tmp_path)


def test_the_head_of_a_netcdf_4_file_tells_the_axis_of_its_index(tmp_path):
    """A bit of the calendar says that the head tells an axis, and its version says so, too."""
    def told(axis, version=b"3"):
        body = definitions([defined()])
        at = body.index(struct.pack("=q", 1) + packed(b"t"))
        calendar = len(packed(b"netcdf4") + packed(b"")) + struct.calcsize("=qiiiii")
        flag = struct.pack("=i", 1 << 16)
        return netcdf4_head(body[:calendar] + flag + body[calendar + 4:at] + axis + body[at:], b"TRLNC4D" + version)

    milliseconds = struct.pack("=iBqq", 0, 1, MS, MS) + packed(b"time") + packed(b"")
    record = np.arange(6.0).tobytes()
    path = netcdf4(tmp_path / "a.nc4", netcdf4_head(definitions([defined()])), [field()], [(0, 0, record)])
    assert tr.load_index(f"{path}.trx").header.time.is_default
    head = told(milliseconds)
    for axis, is_same in ((axis_of(nanoseconds=MS), True), (axis_of(nanoseconds=1000), False)):
        writer = Writer(tmp_path / "b.nc4", head_of(axis, [field()], "netcdf4", data_begin=len(head)))
        writer.data, writer.end = head, len(head)
        writer.save()
        index = tr.load_index(str(tmp_path / "b.nc4.trx")).header
        if is_same:
            assert len(read_definitions(str(tmp_path / "b.nc4"), index)) == 1
        else:
            with pytest.raises(tr.FormatError):
                read_definitions(str(tmp_path / "b.nc4"), index)
    assert len(read_definitions(str(tmp_path / "a.nc4"), tr.load_index(str(tmp_path / "a.nc4.trx")).header)) == 1
    writer = Writer(tmp_path / "c.nc4", head_of(axis_of(nanoseconds=MS), [field()], "netcdf4", data_begin=len(head)))
    writer.data = told(milliseconds, b"2")
    writer.end = len(writer.data)
    writer.save()
    with pytest.raises(tr.FormatError, match="version 2"):
        read_definitions(str(tmp_path / "c.nc4"), tr.load_index(str(tmp_path / "c.nc4.trx")).header)


def test_definitions_of_netcdf4_may_have_attributes_with_types(tmp_path):
    body = definitions([defined()])
    at = body.index(struct.pack("=q", 1) + packed(b"t"))
    calendar = len(packed(b"netcdf4") + packed(b"")) + struct.calcsize("=qiiiii")
    one = packed(b"t") + packed(b"valid_max") + struct.pack("=i", 6) + packed(struct.pack("=d", 400))
    text_of_file = packed(b"") + packed(b"comment") + struct.pack("=i", 0) + packed(b"noon")
    body = body[:calendar] + struct.pack("=i", 1 << 17) + body[calendar + 4:at] + struct.pack("=q", 2) + one + text_of_file + body[at:]
    for version, is_right in ((b"3", True), (b"2", False)):
        path = netcdf4(tmp_path / f"a{version.decode()}.nc4", netcdf4_head(body, b"TRLNC4D" + version), [field()], [(0, 0, np.arange(6.0).tobytes())])
        told = tr.load_index(f"{path}.trx").header
        if is_right:
            assert len(read_definitions(str(path), told)) == 1
        else:
            with pytest.raises(tr.FormatError, match="version 2"):
                read_definitions(str(path), told)
