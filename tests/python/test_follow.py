# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Steps come as they are durable, while the writer is there, killed, restarted or cut back; never one that was not committed, and none twice."""
import json
import os
import shlex
import shutil
import threading
import time
import uuid

import numpy as np
import pytest
import tailrace as tr
from conftest import BASE, close, formats
from made import RUN, Writer, field, header
from tailrace import index
from writers import Job, job


# Cases that ./dev test --all adds.
EXTRA = (("bin", "fc+{lead:03h}"), ("grib2", "one"), ("nc", "fc+{lead:03h}"), ("zarr", "fc+{lead:03h}")) if "TEST_ALL" in os.environ else ()


@pytest.mark.parametrize("ending,name", [each for each in (("grib2", "fc+{lead:03h}"), ("nc", "one"), ("zarr", "one"), *EXTRA) if each[0] in formats()])
def test_a_writer_that_is_killed_and_begins_again(tmp_path, ending, name):
    pattern, options = f"{tmp_path}/{name}.{ending}", "format=raw" if ending == "bin" else ""
    run = tr.open(pattern)
    assert len(run) == 0 and run.missing
    first = job(tmp_path, pattern, options, 5, awaits=4)
    steps = run.follow(timeout="100s")
    got = []
    try:
        for hour in range(4):
            step = next(steps)
            got.append(step.lead)
            assert all(close(step["t"][level], 0, hour, level, ending) for level in range(3))
        assert len(tr.open(pattern)) == 4, "the step that is begun is not there"
        assert not run.complete and any("not finished" in each for each in run.missing), run.missing
    finally:
        first.kill_all()
    # All steps once more: the files are emptied, and begun anew.
    second = job(tmp_path, pattern, options, 5, servers=1)
    try:
        for step in steps:
            got.append(step.lead)
            assert all(close(step["u"][level], 1, len(got) - 1, level, ending) for level in range(3))
    finally:
        assert second.ended_within(100)
    assert [str(lead) for lead in got] == [f"{hour}h" for hour in range(6)]
    assert run.complete, run.missing


@pytest.mark.parametrize("ending,format_", [(ending, format_) for ending, format_ in (("grib2", "grib2"), ("nc", "cdf5")) if ending in formats()])
def test_a_run_that_goes_on_from_its_checkpoint(tmp_path, ending, format_):
    """It saves every third step, is killed behind some more, and writes those once more."""
    pattern = f"{tmp_path}/fc_{{valid:%Y%m%d%H}}.{ending}"
    command = [*shlex.split(os.environ["TEST_LAUNCHER"]), "-n", "2", os.environ["TEST_RESTART_MODEL"], pattern, f"format={format_}", "cp", "overwritten=journal async=off",
               "20", "60", "w"]
    run = tr.open(pattern, base=BASE)
    first = Job(command, dict(os.environ), str(tmp_path))
    got = {}
    killed = second = None
    try:
        for step in run.follow(timeout="100s"):
            assert step.lead not in got
            got[step.lead] = step["t"]
            if killed is None and len(got) == 8:
                first.kill_all()
                killed = len(tr.open(pattern, base=BASE))
                second = Job(command, dict(os.environ), str(tmp_path))
    finally:
        first.kill_all()
        ended = second is not None and second.ended_within(100)
    assert ended, (first.lines[-20:], got)
    # Steps are numbered from 1; the loaded one is behind the last that was saved, and before the last that was committed.
    (loaded,) = second.matches(r"loaded \d+ (\d+)")
    assert int(loaded[0]) <= killed and list(got) == sorted(got) and len(got) == len(run) >= 20
    assert run.complete, run.missing
    for step in tr.open(pattern, base=BASE):
        assert np.array_equal(step["t"], got[step.lead])


def later(*actions, pause=0.05):
    """Does one thing after the other beside the case."""
    def work():
        for action in actions:
            time.sleep(pause)
            action()
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_cut_back_to_a_step_and_written_again(tmp_path):
    writer = Writer(tmp_path / "fc.bin").step(0).step(3600).step(7200).save()
    run = tr.open(tmp_path / "fc.bin")
    held = run.step("2h")
    thread = later(lambda: writer.cut(1).save(), lambda: writer.step(3600).save(), lambda: writer.step(7200).step(10800).save(),
                   lambda: writer.done().save())
    leads = [str(step.lead) for step in run.follow(timeout=20)]
    thread.join()
    assert leads == ["0h", "1h", "2h", "3h"] and run.complete
    assert held["t"][1, 0, 0] == 3, "a step that was written again has its values"
    writer.cut(1).save()
    with pytest.raises(tr.StateError, match="cut back"):
        held["t"]


def test_a_step_of_another_run_in_its_place_is_read_from_its_new_place(tmp_path):
    Writer(tmp_path / "fc.bin").step(0).step(3600).save()
    step = tr.open(tmp_path / "fc.bin").step("1h")
    Writer(tmp_path / "fc.bin", run=RUN[::-1]).step(0, levels=(0,)).step(3600, value=50).save()
    assert step["t"][:, 0, 0].tolist() == [50, 51]


def test_what_is_not_committed_is_not_visible(tmp_path):
    path = tmp_path / "fc.bin"
    writer = Writer(path).step(0).step(3600).save()
    whole = writer.index
    for length in range(len(writer.head), len(whole)):
        (tmp_path / "fc.bin.trx").write_bytes(whole[:length])
        assert len(tr.open(path)) == (1 if length >= writer.marks[1][0] else 0)
        assert tr.open(path).missing == [f"{path}: not finished"]
    (tmp_path / "fc.bin.trx").write_bytes(whole)
    (tmp_path / "fc.bin").write_bytes(writer.data[:-1])
    with pytest.raises(tr.FormatError, match="192 are committed"):
        next(tr.open(path).follow(timeout=0))


def test_a_step_of_a_classic_file_waits_until_the_file_tells_it(data, tmp_path):
    for ending in ("", ".trx"):
        (tmp_path / f"one.nc{ending}").write_bytes(open(f"{data}/nc/one.nc{ending}", "rb").read())
    with open(tmp_path / "one.nc", "r+b") as file:
        file.seek(4)
        file.write((3).to_bytes(8, "big"))
    run = tr.open(tmp_path / "one.nc")
    assert [str(step.lead) for step in run.follow(timeout=0.1)] == ["0h", "1h", "2h"]


def test_what_is_missing_is_named(tmp_path):
    pattern = str(tmp_path / "fc+{lead:03h}.bin")
    for hour in (*range(0, 43, 3), 51):
        Writer(pattern.replace("{lead:03h}", f"{hour:03d}")).step(hour * 3600).done().save()
    (tmp_path / "fc+048.bin").write_bytes(b"")
    run = tr.open(pattern)
    assert run.missing == ["+045h: not written", "+048h: not committed"] and not run.complete
    assert [step.lead.total_seconds() / 3600 for step in run.follow(timeout=0)] == [*range(0, 43, 3), 51]
    assert tr.open(pattern, leads=["0h", "6h"]).missing == ["+048h: not committed"]
    assert tr.open(pattern, leads=[0, "51h", "54h"]).missing == ["+048h: not committed", "+054h: not written"]
    for hour in (45, 48):
        Writer(pattern.replace("{lead:03h}", f"{hour:03d}")).step(hour * 3600).done().save()
    assert run.complete
    assert tr.open(pattern, run="00010203-0405-0607-0809-0a0b0c0d0e0f").complete
    assert tr.open(pattern, run="123e4567-e89b-42d3-a456-426614174000").missing == [f"{pattern}: not written"]
    (tmp_path / "fc+{lead:03h}.bin.stream.lock").write_bytes(b"")
    assert "still open" in run.missing[0]


def test_a_run_may_change_its_spacing(tmp_path):
    pattern = str(tmp_path / "fc+{lead:03h}.bin")
    for hour in (0, 1, 2, 3, 6, 9, 12):
        Writer(pattern.replace("{lead:03h}", f"{hour:03d}")).step(hour * 3600).done().save()
    assert tr.open(pattern).complete


def test_follow_ends_after_its_time_and_waits_for_leads(tmp_path):
    begin = time.monotonic()
    assert list(tr.open(tmp_path / "never.bin").follow(timeout="1s")) == [] and 1 <= time.monotonic() - begin < 20
    writer = Writer(tmp_path / "fc.bin").step(0).done().save()
    assert len(list(tr.open(tmp_path / "fc.bin").follow())) == 1, "a closed stream is not waited for"
    thread = later(lambda: writer.cut(1).step(3600).done().save(), pause=0.3)
    assert len(list(tr.open(tmp_path / "fc.bin", leads=[0, 3600]).follow(timeout=20))) == 2
    thread.join()


def test_steps_of_one_lead_and_levels_that_were_not_put(tmp_path):
    Writer(tmp_path / "fc.bin").step(0, levels=(1,)).step(0, value=7).step(3600, levels=(0,)).done().save()
    run = tr.open(tmp_path / "fc.bin")
    assert [str(step.lead) for step in run.follow(timeout=5)] == ["0h", "0h", "1h"]
    first, second, third = run.steps
    assert np.isnan(first["t"][0]).all() and first["t"][1, 0, 0] == 1 and second["t"][1, 0, 0] == 8
    dataset = run.to_xarray()
    assert dataset["t"].shape == (2, 2, 2, 3) and dataset["t"][0, :, 0, 0].values.tolist() == [7, 8]
    assert np.isnan(dataset["t"][1, 1].values).all() and not np.isnan(dataset["t"][1, 0].values).any()
    with pytest.raises(tr.NotThereError):
        third.read("t", 500)


def test_two_indexes_and_foreign_ones(tmp_path):
    writer = Writer(tmp_path / "fc.bin").step(0).done().save()
    (tmp_path / "fc.bin.idx").write_text("1:0:d=2026030100:TMP:850 mb:anl:\n")
    assert len(tr.open(tmp_path / "fc.bin")) == 1
    (tmp_path / "fc.bin.idx").write_bytes(writer.index)
    with pytest.raises(tr.StateError, match="two indexes"):
        tr.open(tmp_path / "fc.bin")
    os.remove(tmp_path / "fc.bin.trx")
    assert len(tr.open(tmp_path / "fc.bin")) == 1


def test_a_file_that_is_of_another_run_since(tmp_path):
    """Its values are not those of the step; a field is found by its definition, not by its number."""
    path = tmp_path / "fc.bin"
    t, u = field("t", levels=(850.0,)), field("u", levels=(850.0,))

    def written(fields, run=RUN, **about):
        writer = Writer(path, header(fields, run=run, **about))
        writer.data = np.full((2, 3), 1.0).tobytes() + np.full((2, 3), 2.0).tobytes()
        writer.end = 96
        return writer.step(0, records=[(0, 0, 0, 48), (1, 0, 48, 48)], begin=0, end=96).done().save()

    written([t, u])
    step, pinned = tr.open(path).step(0), tr.open(path, run=uuid.UUID(bytes=RUN)).step(0)
    dataset = tr.open(path).to_xarray()
    assert step["t"][0, 0] == 1 and step["u"][0, 0] == 2
    written([u, t])
    assert step["t"][0, 0] == 2 and step["u"][0, 0] == 1 and dataset["t"].values[0, 0, 0] == 2
    written([t, u], run=RUN[::-1])
    assert step["t"][0, 0] == 1
    with pytest.raises(tr.StateError, match="is of another run"):
        pinned["t"]
    written([u, field("t", levels=(500.0,))])
    for values in (lambda: step["t"], lambda: tr.open(path).to_xarray() and dataset["t"].values):
        with pytest.raises(tr.StateError, match='has no field "t"'):
            values()
    for about in ({"base": 1772323200 - 86400}, {"member": 3}, {"calendar": 2}):
        written([t, u], **about)
        with pytest.raises(tr.StateError, match="is of another run"):
            step["t"]


def test_files_of_other_runs_are_not_mixed(tmp_path):
    pattern, today = str(tmp_path / "fc+{lead:03h}.bin"), 1772323200

    def written(hour, value=None, run=RUN, **about):
        Writer(pattern.replace("{lead:03h}", f"{hour:03d}"), header(run=run, **about)).step(hour * 3600, value=value).done().save()

    for hour in (0, 1):
        written(hour, base=today, member=1)
    written(2, 99, base=today - 86400, member=1)
    written(3, 99, base=today, member=2)
    mixed = tr.open(pattern)
    assert len(mixed.missing) == 1 and "files of different runs" in mixed.missing[0] and "fc+002.bin" in mixed.missing[0] and not mixed.complete
    for make in (mixed.to_xarray, mixed.to_datatree):
        with pytest.raises(tr.StateError, match="files of different runs"):
            make()
    ours = tr.open(pattern, base=BASE, member=1)
    assert len(ours) == 2 and ours.complete and len(list(ours.follow())) == 2 and ours.to_xarray()["t"].shape[0] == 2
    assert "another run has its name" in tr.open(pattern, base=BASE, member=1, leads=["0h", "1h", "2h"]).missing[0]
    for given in ({"base": BASE, "calendar": "360_day"}, {"base": "2026-03-05"}, {"member": 7}):
        other = tr.open(pattern, **given)
        assert len(other) == 0 and "is of another run" in other.missing[1]
        with pytest.raises(tr.StateError, match="is of another run"):
            other.to_xarray()
    for hour in (2, 3):
        written(hour, base=today, member=1, run=RUN[::-1])
    whole = tr.open(pattern)
    assert whole.complete and len(whole.to_xarray().attrs["tailrace_run"].split()) == 2, "a run that was continued"


def test_a_data_file_without_an_index(tmp_path):
    """It holds later ones back while the stream is open, and nobody waits for it afterwards."""
    pattern = str(tmp_path / "fc+{lead:03h}.bin")
    for hour in (0, 2):
        Writer(pattern.replace("{lead:03h}", f"{hour:03d}")).step(hour * 3600).done().save()
    (tmp_path / "fc+001.bin").write_bytes(b"")
    lock = tmp_path / "fc+{lead:03h}.bin.stream.lock"
    lock.write_bytes(b"")
    run = tr.open(pattern)
    assert [str(step.lead) for step in run.follow(timeout=0.1)] == ["0h"]
    lock.unlink()
    begin = time.monotonic()
    assert [str(step.lead) for step in run.follow(timeout=60)] == ["0h", "2h"] and time.monotonic() - begin < 30
    assert run.missing == ["+001h: not committed"]


def test_the_index_of_data_that_were_written_again_and_renamed(tmp_path):
    path = tmp_path / "fc.bin"
    Writer(path).step(0).step(3600).done().save()
    held = tr.open(path).step("1h")
    again = Writer(tmp_path / "fc.bin.again").step(0, levels=(0,)).step(3600, value=50).step(7200).done().save()
    assert len(tr.open(path)) == 2, "the second pair is not there yet"
    os.rename(again.path, path)
    assert len(tr.open(path)) == 3 and held["t"][:, 0, 0].tolist() == [50, 51]
    os.rename(again.path + ".trx", f"{path}.trx")
    assert len(tr.open(path)) == 3 and held["t"][:, 0, 0].tolist() == [50, 51]
    # One whose data somebody has removed is not that of others.
    Writer(tmp_path / "fc.bin.again").step(0).step(3600).step(7200).step(10800).save()
    os.remove(again.path)
    assert len(tr.open(path)) == 3


def test_a_store_tells_a_step_a_moment_after_its_commit(data, tmp_path, monkeypatch):
    if "zarr" not in formats():
        pytest.skip("this build writes no Zarr")
    store = tmp_path / "one.zarr"
    shutil.copytree(f"{data}/zarr/one.zarr", store)
    shutil.copy(f"{data}/zarr/one.zarr.trx", f"{store}.trx")
    whole = (store / "zarr.json").read_text()
    metadata = json.loads(whole)
    for array in metadata["consolidated_metadata"]["metadata"].values():
        if array.get("dimension_names", [""])[:1] == ["time"]:
            array["shape"][0] -= 1
    (store / "zarr.json").write_text(json.dumps(metadata))
    step = tr.open(store).step("5h")
    thread = later(lambda: os.replace(tmp_path / "new", store / "zarr.json") if (tmp_path / "new").write_text(whole) else None, pause=0.3)
    assert close(step["t"][1], 0, 5, 1)
    thread.join()
    (store / "zarr.json").write_text(json.dumps(metadata))
    monkeypatch.setattr("tailrace.stores.PATIENCE", 0.1)
    with pytest.raises(tr.StateError, match="tells of 5 steps only"):
        tr.open(store).step("5h")["t"]


def test_bytes_that_change_between_two_reads_are_no_damage(tmp_path, monkeypatch):
    writer = Writer(tmp_path / "fc.bin").step(0).save()
    with open(f"{tmp_path}/fc.bin.trx", "ab") as file:
        file.write(b"STEP")
    holds = index._holds_record

    def continued(*args):
        if writer.number == 1:
            with open(f"{tmp_path}/fc.bin.trx", "wb") as file:
                file.write(writer.step(3600).index)
            return True
        return holds(*args)
    monkeypatch.setattr(index, "_holds_record", continued)
    found = tr.load_index(f"{tmp_path}/fc.bin.trx")
    assert (found.tail, len(found.steps)) == ("whole", 2)


def test_an_old_index_that_is_renamed_while_it_is_looked_for(tmp_path, monkeypatch):
    Writer(tmp_path / "fc.bin").step(0).save()
    os.rename(tmp_path / "fc.bin.trx", tmp_path / "fc.bin.idx")
    begins = index.begins_as_index

    def renamed(path):
        found = begins(path)
        if path.endswith(".idx") and found:
            os.rename(path, path[:-4] + ".trx")
        return found
    monkeypatch.setattr(index, "begins_as_index", renamed)
    assert len(tr.open(tmp_path / "fc.bin")) == 1
