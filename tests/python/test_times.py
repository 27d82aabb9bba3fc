# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Patterns, times and durations mean what they mean to the library."""
import datetime
import random

import numpy as np
import pytest
import tailrace as tr
from made import Writer, field, header
from tailrace.calendar import Moment, calendar_number, parse_duration, parse_time

CONTEXT = tr.Context(parse_time("2026-03-01T00:00Z"), 7)


@pytest.mark.parametrize("pattern,lead,name", [
    ("fc+{lead:03h}.grib2", 21600, "fc+006.grib2"), ("fc+{lead:05m}", 21600, "fc+00360"), ("{base}/fc", 0, "2026030100/fc"),
    ("fc_{valid:%Y-%m-%d}", 86400 * 31, "fc_2026-04-01"), ("fc_{member:03}", 0, "fc_007"), ("{{fc}}{lead:h}h", 7200, "{fc}2h"),
    ("{valid:%Y/%j}/a%{lead:s}", 86400, "2026/061/a%86400"), ("{valid:%y%m%d%H%M%S%%}", 5, "260301000005%")])
def test_names(pattern, lead, name):
    made = tr.Pattern(pattern)
    assert made.expand(lead, CONTEXT) == name
    if made.depends_on_lead and "%y" not in pattern:
        assert made.match(name, CONTEXT) == lead
    assert made.match(name + "x", CONTEXT) is None


def test_names_and_leads_go_both_ways():
    chance = random.Random(17)
    for _ in range(300):
        parts = chance.sample(["{lead:03h}", "{lead:h}", "{valid:%Y%m%d%H}", "a", "1", "{base:%d}", "/", "{member:02}", "{valid:%j}"], 4)
        pattern = tr.Pattern("x" + "".join(parts) + "e")
        lead = 3600 * chance.randrange(2000)
        name = pattern.expand(lead, CONTEXT)
        if not pattern.depends_on_lead:
            continue
        found = pattern.match(name, CONTEXT)
        if any(part in ("{lead:03h}", "{lead:h}", "{valid:%Y%m%d%H}") for part in parts):
            assert found is not None and pattern.expand(found, CONTEXT) == name and found <= lead, (pattern, lead, name, found)


@pytest.mark.parametrize("pattern,name,lead", [
    ("bd_{valid:%Y%m%d%H}", "bd_2026030103", -3 * 3600 - 1800), ("bd_{valid:%Y%m%d}", "bd_20260228", -30 * 3600 - 1800), ("{valid:%Y/%j}", "2025/365", -60 * 86400 - 23400),
    ("bd_{valid:%Y%m}", "bd_202601", -59 * 86400 - 23400), ("bd_{valid:%Y%m%d%H%M%S}", "bd_20260301062959", -1),
    # Names of the base time, too, and of later ones.
    ("bd_{valid:%Y%m%d%H}", "bd_2026030106", 0), ("bd_{valid:%Y%m}", "bd_202603", 0), ("bd_{valid:%Y%m%d%H}", "bd_2026030109", 2 * 3600 + 1800),
    # No lead is below zero in a name, and an hour or a day alone may be any.
    ("bd_{valid:%Y%m%d%H}_{lead:03h}", "bd_2026030103_000", None), ("bd_{lead:03h}", "bd_-01", None), ("bd_{valid:%H}", "bd_03", None),
    ("bd_{valid:%m%d}", "bd_0101", None), ("bd_{valid:%Y%d}", "bd_202605", None), ("bd_{valid:%Y%m%H}", "bd_20260103", None),
    ("bd_{valid:%Y%m%d%M}", "bd_2026010130", None), ("bd_{valid:%Y%m%d%H%S}", "bd_202601010030", None)])
def test_names_of_times_before_the_base_time(pattern, name, lead):
    context, made = tr.Context(parse_time("2026-03-01T06:30Z")), tr.Pattern(pattern)
    assert made.match(name, context) == lead
    assert lead is None or made.expand(lead, context) == name


def test_steps_before_the_base_time(tmp_path):
    """No stream of the library writes them. They come first, and files of earlier runs and without an index are passed over."""
    base, pattern = parse_time("2026-03-01T01:00Z"), str(tmp_path / "bd_{valid:%Y%m%d%H}.bin")
    for hour in (-4, -1, 2, 5):
        Writer(tr.Pattern(pattern).expand(3600 * hour, tr.Context(base)), header(base=base.seconds)).step(3600 * hour).done().save()
    expected = [str(tmp_path / f"bd_{time}.bin") for time in ("2026022821", "2026030100", "2026030103", "2026030106")]
    Writer(tmp_path / "bd_2026022800.bin", header(base=base.seconds - 90000)).step(0).done().save()
    (tmp_path / "bd_2026022803.bin").write_bytes(b"")
    (tmp_path / "bd_2026022806.bin.trx").write_bytes(b"TRLINDEX and no more")
    (tmp_path / (pattern.rpartition("/")[2] + ".stream.lock")).write_bytes(b"")
    run = tr.open(pattern, base="2026-03-01T01:00Z")
    assert run.files == expected and [step.path for step in run.follow(timeout=0)] == expected
    assert "still open" in run.missing[0]
    (tmp_path / (pattern.rpartition("/")[2] + ".stream.lock")).unlink()
    assert run.complete and [str(step.lead) for step in run] == ["-4h", "-1h", "2h", "5h"] and "Step -4h, valid 2026-02-28 21:00" in repr(run.step(-14400))
    data = run.to_xarray()
    assert data["t"][:, 0, 0, 0].values.tolist() == [-4, -1, 2, 5] and (data["lead"].values / np.timedelta64(1, "h")).tolist() == [-4, -1, 2, 5]
    assert data["time"].values[0] == np.datetime64("2026-02-28T21:00")
    for ending in ("", ".trx"):
        (tmp_path / f"bd_2026030100.bin{ending}").unlink()
    assert run.missing == []
    assert tr.open(pattern, base=base, leads=[-3600, 7200]).missing == ["-1h: not written"]
    assert len(tr.open(pattern, base="2026-03-01T02:00Z")) == 0
    with pytest.raises(tr.SettingsError, match="below zero"):
        tr.Pattern("fc+{lead:03h}").expand(-3600, CONTEXT)


@pytest.mark.parametrize("pattern,words", [
    ("", "empty"), ("a{", "position 2: \"{\" is never closed"), ("a}", "without"), ("{leed:03h}", "did you mean {lead}"), ("{lead}", "needs its unit"),
    ("{lead:3h}", "no width"), ("{lead:019h}", "no width"), ("{base:%q}", "unknown \"%q\""), ("a/", "directory"), ("{valid:}", "unknown \"\""), ("a\0", "zero")])
def test_mistakes_are_told(pattern, words):
    with pytest.raises(tr.SettingsError, match=words.replace("{", r"\{").replace("}", r"\}")):
        tr.Pattern(pattern)


def test_what_a_pattern_needs():
    with pytest.raises(tr.SettingsError, match="give base="):
        tr.open("fc_{base}")
    with pytest.raises(tr.SettingsError, match="give member="):
        tr.open("fc_{member}")
    with pytest.raises(tr.SettingsError, match="whole number"):
        tr.Pattern("fc+{lead:03h}").expand(5400, CONTEXT)


def test_directories_that_change_with_the_lead(tmp_path):
    pattern = str(tmp_path / "{valid:%Y%m}/{valid:%d}/fc_{lead:h}.bin")
    base = parse_time("2026-03-01T00:00Z")
    names = [tr.Pattern(pattern).expand(lead, tr.Context(base)) for lead in range(0, 86400 * 40, 43200)]
    for lead, name in zip(range(0, 86400 * 40, 43200), names):
        Writer(name).step(lead).done().save()
    (tmp_path / "202603/notes").write_text("")
    run = tr.open(pattern, base="2026-03-01T00:00Z")
    assert run.files == names and run.complete and len(run) == 80
    assert tr.Pattern(pattern).stream_lock(tr.Context(base)) == str(tmp_path / "{valid:%Y%m}_{valid:%d}_fc_{lead:h}.bin.stream.lock")


def test_calendars(tmp_path):
    chance = random.Random(3)
    for calendar in range(5):
        for _ in range(300):
            seconds = chance.randrange(-10**12, 10**12)
            moment = Moment.of(seconds, calendar)
            assert moment.is_valid and moment.seconds == seconds
    assert calendar_number("no_leap") == calendar_number("365_day") == 2 and calendar_number("360day") == 1
    assert Moment.of(1772323200, 0) == parse_time("20260301") and parse_time("2026-02-30T06:30", 1).second == 0
    with pytest.raises(tr.SettingsError, match="does not exist"):
        parse_time("2026-02-30")
    assert str(parse_time("1900-02-29", 3)) == str(Moment.of(parse_time("1900-03-01", 3).seconds - 86400, 3)) == "1900-02-29T00:00:00Z"
    assert parse_time("2070-01-01", 4).seconds == 36600 * 86400 and parse_time("1900-03-01", 3).seconds == -25508 * 86400
    seconds = parse_time("2026-02-29", 1).seconds
    Writer(tmp_path / "o.bin", header(base=seconds, calendar=1)).step(86400).done().save()
    run = tr.open(tmp_path / "o.bin")
    assert f"{next(iter(run)).valid:%Y-%m-%d}" == "2026-02-30" and run.to_xarray()["time"].values[0].calendar == "360_day"
    Writer(tmp_path / "m.bin", header(member=3)).step(0).done().save()
    assert int(tr.open(tmp_path / "m.bin").to_xarray()["realization"]) == 3


@pytest.mark.parametrize("text,seconds", [("20min", 1200), ("6h", 21600), ("1h30m", 5400), ("00:15", 900), ("2d", 172800), (90, 90),
                                          (datetime.timedelta(hours=1), 3600), ("0", 0)])
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ("", "20", "h", "-1h", "1 h"))
def test_no_durations(text):
    with pytest.raises(tr.SettingsError):
        parse_duration(text)


def test_fields_of_one_name_are_told_apart(tmp_path):
    fields = [field("t"), field("t", level_type="surface", levels=(0.0,)), field("t", level_type="heightAboveGround", levels=(2.0,)),
              field("t", levels=(100.0,)), field("lead", kind=6)]
    writer = Writer(tmp_path / "fc.bin", header(fields))
    writer.data, writer.end = b"\0" * 480, 480
    writer.step(0, records=[(0, 0, 0, 48), (0, 1, 48, 48), (1, 0, 96, 48), (2, 0, 144, 48), (3, 0, 192, 48), (4, 0, 240, 48)], begin=0).done().save()
    run = tr.open(tmp_path / "fc.bin")
    assert list(run.fields) == ["t", "t_surface", "t_heightAboveGround", "t_isobaricInhPa", "lead"]
    dataset = run.to_xarray()
    assert dataset["t"].dims == ("lead", "plev", "y", "x") and dataset["t_surface"].dims == ("lead", "y", "x")
    assert float(dataset["height"]) == 2 and float(dataset["plev_2"]) == 100
    assert "lead_isobaricInhPa" in dataset and dataset["lead"].dims == ("lead",)
    tree = run.to_datatree()
    assert sorted(tree.groups) == ["/", "/heightAboveGround", "/isobaricInhPa", "/surface"] and list(tree["surface"].data_vars) == ["t"]
