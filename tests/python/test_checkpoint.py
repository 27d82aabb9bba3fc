# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Checkpoints of a real program (tests/checkpoint/format_save.cpp): items, copies that take turns, and damage."""
import glob
import os
import shutil

import numpy as np
import pytest
import tailrace as tr

NAMES = sorted({os.path.basename(path)[:-2] for path in glob.glob(f"{os.environ['TEST_DATA']}/*-*.0")})


def copied(data, name, to):
    for path in glob.glob(f"{data}/{name}.*"):
        shutil.copy(path, to)
    return f"{to}/{name}"


@pytest.mark.parametrize("name", NAMES)
def test_items_are_what_was_saved(data, name):
    copy = tr.checkpoint(f"{data}/{name}")
    assert copy.generation == 3 and tr.checkpoint(f"{data}/{name}", generation=2).generation == 2
    assert list(copy) == ["step", "t", "dealt", "same", "section"] and copy.is_local == name.startswith("local")
    assert copy["step"].shape == () and int(copy["step"]) == 3000
    assert copy["t"].dtype == np.float64 and (copy["t"] == 3000 + np.arange(601 * 811).reshape(601, 811)).all()
    assert copy["dealt"].dtype == np.int32 and (copy["dealt"] == 3000 + np.arange(100)).all()
    assert copy["same"].dtype == np.int16 and (copy["same"] == 3000 + np.arange(9)).all()
    rows, columns = np.meshgrid(2 + 7 * np.arange(86), 1 + 3 * np.arange(267), indexing="ij")
    assert (copy["section"] == 3000 + rows * 811 + columns).all()
    dataset = copy.to_xarray()
    assert dataset["t"][3:5, -1].values.tolist() == [3000 + 3 * 811 + 810, 3000 + 4 * 811 + 810] and dataset.attrs["generation"] == 3
    copy.verify()
    with pytest.raises(tr.NotThereError, match="there are step, t"):
        copy["u"]
    with pytest.raises(tr.NotThereError, match="of generation 1: .* is generation 3"):
        tr.checkpoint(f"{data}/{name}", generation=1)


@pytest.mark.parametrize("name", [name for name in NAMES if "none" in name])
def test_the_last_good_copy_is_taken(data, name, tmp_path):
    base = copied(data, name, tmp_path)
    newest = next(path for path in glob.glob(base + ".?") if tr.checkpoint(path).generation == 3)
    part = newest + ".r00001" if name.startswith("local") else newest
    content = bytearray(open(part, "rb").read())
    content[(4096 if name.startswith("local") else 8192) + 100] ^= 4
    open(part, "wb").write(content)
    assert tr.checkpoint(base).generation == 3, "blocks are checked when they are read"
    with pytest.raises(tr.FormatError, match="its checksum is wrong"):
        tr.checkpoint(base).verify()
    assert tr.checkpoint(base, verify=True).generation == 2
    open(part, "wb").write(content[:len(content) // 2])
    assert tr.checkpoint(base).generation == 2
    for path in glob.glob(base + ".?"):
        with open(path, "r+b") as file:
            file.write(bytes(128))
    with pytest.raises(tr.NotThereError, match="no whole copy: .*header"):
        tr.checkpoint(base)
    with pytest.raises(tr.NotThereError, match="there are no files"):
        tr.checkpoint(tmp_path / "never")
