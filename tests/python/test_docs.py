# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The code of docs/python.md and the example run."""
import glob
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import formats
from made import Writer, field, header
from writers import job

SOURCE = Path(os.environ["TEST_SOURCE"])


@pytest.fixture
def beside_files(data, tmp_path, monkeypatch):
    """A directory with the files that the page names."""
    if "grib2" not in formats():
        pytest.skip("this build writes no GRIB")
    for path in glob.glob(f"{data}/grib2/*"):
        shutil.copy(path, tmp_path)
    for path in glob.glob(f"{data}/parallel-none.?"):
        shutil.copy(path, tmp_path / path.replace(f"{data}/parallel-none", "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_code_of_the_guide_runs(beside_files, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "docs/python.md").read_text(), re.M | re.S)
    assert len(blocks) >= 7
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/python.md, block {number + 1}", "exec"), names)
    printed = capsys.readouterr().out
    assert "01 Mar 03 UTC, +3h: 70.6 K" in printed and "air_temperature K 2026-03-01T03" in printed and "'dealt': (100,)" in printed


def test_the_example_draws_each_step(beside_files):
    command = [sys.executable, str(SOURCE / "python/examples/live_maps.py"), "fc_{base}+{lead:03h}.grib2", "t", "--base", "2026-03-01", "--timeout", "5s"]
    done = subprocess.run([*command, "--level", "850"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    maps = sorted(os.listdir("maps"))
    assert maps == [f"t+{60 * hour:05d}min.png" for hour in range(6)]
    assert all(Path("maps", each).read_bytes()[:4] == b"\x89PNG" for each in maps)


@pytest.mark.skipif("grib2" not in formats(), reason="this build writes no GRIB")
def test_the_example_draws_maps_while_the_writer_is_still_there(tmp_path):
    """The writer waits before its third step until two maps were looked at."""
    pattern, maps = f"{tmp_path}/fc+{{lead:03h}}.grib2", tmp_path / "maps"
    command = [sys.executable, str(SOURCE / "python/examples/live_maps.py"), pattern, "t", "--level", "850", "--timeout", "100s"]
    example = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    writer = None
    try:
        writer = job(tmp_path, pattern, "", 3, awaits=2)
        for hour in range(2):
            line = example.stdout.readline()
            assert line == f"maps/t+{60 * hour:05d}min.png\n", example.stderr.read()
            assert (tmp_path / line.strip()).read_bytes()[:4] == b"\x89PNG"
        assert writer.process.poll() is None and example.poll() is None
        assert sorted(os.listdir(maps)) == ["t+00000min.png", "t+00060min.png"], "the step that is begun is not there"
        (tmp_path / "go").touch()
        assert writer.ended_within(100) and writer.process.returncode == 0, writer.lines[-20:]
        _, told = example.communicate(timeout=150)
        assert example.returncode == 0 and told == "", told
    finally:
        example.kill()
        if writer is not None and writer.process.poll() is None:
            writer.kill_all()
    assert sorted(os.listdir(maps)) == [f"t+{60 * hour:05d}min.png" for hour in range(4)]


def test_the_example_draws_cells_and_leads_of_half_a_minute(tmp_path):
    writer = Writer(tmp_path / "one.bin", header([field(shape=(6,), levels=(850.0,))])).step(0, levels=(0,)).step(30, levels=(0,))
    writer.done().save()
    command = [sys.executable, str(SOURCE / "python/examples/live_maps.py"), "one.bin", "t", "--timeout", "5s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path / "maps")) == ["t+00000min.png", "t+00000min30s.png"]
