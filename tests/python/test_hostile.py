# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Files that are cut short, changed, or lie with right checksums end in an error of this package, and take neither memory nor time.

Memory is limited while these run: what asks for too much ends in a MemoryError, which no case expects."""
import glob
import importlib
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import tailrace as tr
import xxhash
from conftest import formats
from made import Writer, checkpoint, defined, definitions, field, header, netcdf4, netcdf4_head, packed, text
from tailrace.decode_grib import check_message
from tailrace.definitions import read_definitions

parts = importlib.import_module("tailrace.checkpoint")  # tr.checkpoint is the function

SEEDS = 800 if "TEST_ALL" in os.environ else 30  # ./dev test --all
FINE = (tr.FormatError, tr.NotThereError, tr.UnsupportedError, tr.StateError)


@pytest.fixture(autouse=True)
def little_memory():
    """1.5 GiB more than what the process has, and 60 s."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (3 << 29), before[1]))
    begin = time.monotonic()
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
    assert time.monotonic() - begin < 60


def mutated(data, chance):
    """Bytes that differ in one of the ways in which files break."""
    data = bytearray(data)
    way = chance.randrange(6)
    at = chance.randrange(len(data))
    if way == 0:
        return bytes(data[:at])
    if way == 1:
        data[at] ^= 1 << chance.randrange(8)
    elif way == 2:
        data[at:at + 8] = struct.pack("<q", chance.choice((-1, 2**63 - 1, -2**63, 2**31, 2**40, 0)))
    elif way == 3:
        data[at:at + 4] = struct.pack(chance.choice("<>") + "I", chance.choice((2**32 - 1, 2**31, 2**16, 0)))
    elif way == 4:
        data[at:at] = bytes(data[at:at + chance.randrange(1, 200)])
    else:
        length = chance.randrange(1, 200)
        data[at:at + length] = bytes(length)
    return bytes(data)


def flipped(data, chance):
    """The bytes with one bit changed."""
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:]


def resealed(index):
    """An index in which all checksums are right whatever else it says, as far as its lengths lead."""
    if len(index) < 24:
        return index
    length = struct.unpack_from("<I", index, 12)[0]
    if not 24 <= length <= len(index):
        return index
    head = index[:length - 8] + struct.pack("<Q", xxhash.xxh3_64_intdigest(index[:length - 8]))
    seed = previous = struct.unpack("<Q", head[-8:])[0]
    out, at, sequence = head, length, 0
    while at + 40 <= len(index):
        length = struct.unpack_from("<I", index, at + 4)[0]
        if not 40 <= length <= len(index) - at:
            break
        body = index[at:at + 8] + struct.pack("<Qq", previous, sequence) + index[at + 24:at + length - 8]
        previous, sequence = xxhash.xxh3_64_intdigest(body, seed), sequence + 1
        out += body + struct.pack("<Q", previous)
        at += length
    return out + index[at:]


def read_all(path):
    """Everything that a reader may do. Errors of this package are fine, others are not."""
    try:
        run = tr.open(path)
        assert isinstance(run.missing, list)
        for step in run:
            for name in step:
                try:
                    step[name]
                except FINE:
                    pass
        dataset = run.to_xarray()
        for name in dataset.data_vars:
            if dataset[name].size < 10**7:
                try:
                    dataset[name].values
                except FINE:
                    pass
    except FINE:
        return False
    return True


@pytest.mark.parametrize("ending", [ending for ending in formats() if ending != "zarr"])
def test_changed_indexes(data, tmp_path, ending):
    chance = random.Random(1)
    path = tmp_path / f"one.{ending}"
    shutil.copy(f"{data}/{ending}/one.{ending}", path)
    index = open(f"{data}/{ending}/one.{ending}.trx", "rb").read()
    for number in range(SEEDS):
        changed = mutated(index, chance)
        (tmp_path / f"one.{ending}.trx").write_bytes(changed if number % 3 == 0 else resealed(changed))
        read_all(path)


@pytest.mark.parametrize("ending", [ending for ending in formats() if ending in ("bin", "nc")])
def test_changed_data(data, tmp_path, ending):
    """GRIB and HDF5 are decoded by libraries in C, which have a case of their own."""
    chance = random.Random(2)
    path = tmp_path / f"one.{ending}"
    shutil.copy(f"{data}/{ending}/one.{ending}.trx", f"{path}.trx")
    content = open(f"{data}/{ending}/one.{ending}", "rb").read()
    head = 4096 if ending == "nc" else len(content)
    for _ in range(SEEDS):
        path.write_bytes(mutated(content[:head], chance) + content[head:])
        read_all(path)
    for length in (0, 1, 100, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(FINE):
            for step in tr.open(path):
                step["u"]


def test_changed_heads_of_netcdf_4_files_that_are_not_finished(data, tmp_path):
    """Right values, or a FormatError. Another version gives what it gave before there were readers of heads."""
    if "nc4" not in formats():
        pytest.skip("this build writes no NetCDF-4")
    chance = random.Random(7)
    path = tmp_path / "chunks.nc4"
    shutil.copy(f"{data}/nc4/chunks.nc4.trx", f"{path}.trx")
    content = bytes(64) + open(f"{data}/nc4/chunks.nc4", "rb").read()[64:]
    found = tr.load_index(f"{path}.trx").header
    begin = found.data_begin
    path.write_bytes(content)
    values = tr.open(path).step(0)["t"]
    with open(path, "r+b", buffering=0) as file:
        for at in range(begin):
            os.pwrite(file.fileno(), bytes([content[at] ^ 1 << at % 8]), at)
            if at < 64 or at == 71:
                assert (read_definitions(path, found) is None) == (at == 71)
            else:
                with pytest.raises(tr.FormatError):
                    read_definitions(path, found)
            os.pwrite(file.fileno(), content[at:at + 1], at)
        for length in range(begin - 1, -1, -1):
            file.truncate(length)
            with pytest.raises(tr.FormatError):
                read_definitions(path, found)
    for _ in range(3 * SEEDS):
        head = mutated(content[:begin], chance)[:begin].ljust(begin, b"\0")
        path.write_bytes(head + content[begin:])
        is_other_version = head[64:71] == content[64:71] and head[71:72] != b"2"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert np.array_equal(tr.open(path).step(0)["t"], values) and head[64:] == content[64:begin]
        except tr.FormatError:
            assert head[64:] != content[64:begin]
        except tr.UnsupportedError:
            assert is_other_version


def test_changed_definitions_with_right_checksums(data, tmp_path):
    """Whatever they say, they take neither memory nor time, and no other error."""
    if "nc4" not in formats():
        pytest.skip("this build writes no NetCDF-4")
    chance = random.Random(8)
    for name in ("nc4/chunks.nc4", "grids/rotated.nc4"):
        path = tmp_path / os.path.basename(name)
        shutil.copy(f"{data}/{name}.trx", f"{path}.trx")
        content = open(f"{data}/{name}", "rb").read()
        begin, (length,) = tr.load_index(f"{path}.trx").header.data_begin, struct.unpack_from("=q", content, 80)
        for number in range(3 * SEEDS):
            body = content[88:88 + length]
            body = mutated(body, chance)[:begin - 88] if number % 2 else flipped(body, chance)
            head = netcdf4_head(body)
            path.write_bytes(head[:begin].ljust(begin, b"\0") + content[begin:])
            for step in tr.open(path).steps[:1]:
                for each in step:
                    try:
                        step[each]
                    except tr.FormatError:
                        pass


def test_definitions_that_lie_with_right_checksums(tmp_path):
    one = [defined()]
    whole = definitions(one)
    named, layered = packed(b"t") + struct.pack("=i", 6), packed(struct.pack("=dd", 850, 500))
    for body, words in (
            (definitions(one, count=2), "other fields"), (definitions([]), "other fields"), (definitions(one, count=-1), "other fields"),
            *((definitions([defined(**lie)]), "another field") for lie in (
                {"name": "u"}, {"kind": 5}, {"shape": (3, 2)}, {"level_type": "hybrid"}, {"levels": (850.0,)}, {"shape": (2**40, 2**40)})),
            *((definitions([defined(chunks=chunks)]), "chunks") for chunks in (
                "", "0x3", "2", "2x3x1", "-1x3", "2x", "x", "9" * 30 + "x3", "9" * 5000 + "x3", "\u0662x3", "2 x3")),
            (definitions([defined(compress="zstd:3")]), "compress"), (definitions([defined(grid=(9, 2, 3))]), "a grid of kind 9"),
            (definitions([defined(grid=(1, 2, 4))]), "a grid of 2 x 4 points"), (definitions([defined(grid=(1, -2, -3))]), "an extent of -"),
            (definitions([defined(grid=(3, 2**62, 2**62))]), "an extent of"), (whole[:-1], "bytes are left|are told of"),
            (whole.replace(named, packed(b"t") + struct.pack("=i", 77)), "another field"),
            (whole.replace(layered, packed(layered[8:-1])), "a list of 15 bytes"),
            (whole.replace(layered, struct.pack("=q", -1) + layered[8:]), "-1 entries"),
            (whole.replace(layered, struct.pack("=q", 2**62) + layered[8:]), f"{2**62} entries")):
        with pytest.raises(tr.FormatError, match=words):
            tr.open(netcdf4(tmp_path / "one.nc4", netcdf4_head(body), [field()], [(0, 0, bytes(48))])).step(0).read("t", 850)
    for kind, missing in ((5, 1e39), (3, 2.0**31), (3, 0.5), (3, float("nan")), (1, float("inf")), (4, 2.0**63), (9, -1.0)):
        head = netcdf4_head(definitions([defined(kind=kind, missing=missing)]))
        with pytest.raises(tr.FormatError, match="missing="):
            tr.open(netcdf4(tmp_path / "one.nc4", head, [field(kind=kind)], [(0, 0, bytes(48))])).to_xarray()
    for head in (netcdf4_head(whole, b"TRLNC4X2"), netcdf4_head(whole) + bytes(512), netcdf4_head(whole)[:-1] + b"x", bytes(512), bytes(80)):
        with pytest.raises(tr.FormatError, match="head"):
            tr.open(netcdf4(tmp_path / "one.nc4", head, [field()], [(0, 0, bytes(48))])).step(0).read("t", 850)


def test_changed_messages_do_not_reach_ecCodes(data, tmp_path):
    if "grib2" not in formats():
        pytest.skip("this build writes no GRIB")
    index = tr.load_index(f"{data}/grib2/one.grib2.trx")
    record = index.steps[0].records[0]
    with open(f"{data}/grib2/one.grib2", "rb") as file:
        file.seek(int(record["offset"]))
        message = file.read(int(record["length"]))
    check_message(message, 143, "it")
    chance = random.Random(3)
    for length in range(0, len(message), 7):
        with pytest.raises(tr.FormatError):
            check_message(message[:length], 143, "it")
    sections, at = [], 16
    while at < len(message) - 4:
        sections.append(at)
        at += struct.unpack_from(">I", message, at)[0]
    for at in sections:
        for lie in (0, 4, 5, 2**31, 2**32 - 1, len(message)):
            with pytest.raises(tr.FormatError):
                check_message(message[:at] + struct.pack(">I", lie) + message[at + 4:], 143, "it")
    third, fifth = sections[2 if message[sections[1] + 4] == 2 else 1], next(at for at in sections if message[at + 4] == 5)
    for at in (third + 6, fifth + 5):
        with pytest.raises(tr.FormatError, match="points"):
            check_message(message[:at] + struct.pack(">I", 2**31) + message[at + 4:], 143, "it")
    with pytest.raises(tr.FormatError, match="2147483648 points"):
        check_message(message[:third + 6] + struct.pack(">I", 2**31) + message[third + 10:fifth + 5] + struct.pack(">I", 0) + message[fifth + 9:], 2**31, "it")
    # Within the data section ecCodes decodes other values, and no more.
    path = tmp_path / "one.grib2"
    shutil.copy(f"{data}/grib2/one.grib2.trx", f"{path}.trx")
    content = bytearray(open(f"{data}/grib2/one.grib2", "rb").read())
    for _ in range(40):
        changed = bytearray(content)
        changed[int(record["offset"]) + chance.randrange(sections[-1] + 5, len(message) - 4)] ^= 255
        path.write_bytes(changed)
        try:
            assert next(iter(tr.open(path)))["t"].shape == (3, 11, 13)
        except tr.FormatError:
            pass


def test_changed_messages_of_grib1_do_not_reach_ecCodes(data):
    if "grib1" not in formats():
        pytest.skip("this build writes no GRIB")
    record = tr.load_index(f"{data}/grib1/one.grib1.trx").steps[0].records[0]
    with open(f"{data}/grib1/one.grib1", "rb") as file:
        file.seek(int(record["offset"]))
        message = file.read(int(record["length"]))
    check_message(message, 143, "it")
    for length in range(0, len(message), 7):
        with pytest.raises(tr.FormatError):
            check_message(message[:length], 143, "it")
    grid = 8 + int.from_bytes(message[8:11], "big")
    values = grid + int.from_bytes(message[grid:grid + 3], "big")
    for at in (4, 8, grid, values):  # the lengths of the message and of its sections
        for lie in (0, 4, 0x7fffff, 0x800000, 0xffffff, len(message) - 1):
            with pytest.raises(tr.FormatError):
                check_message(message[:at] + lie.to_bytes(3, "big") + message[at + 3:], 143, "it")
    for at, lie in ((grid + 6, 14), (grid + 6, 0xffff), (grid + 8, 0)):  # the sides of the grid
        with pytest.raises(tr.FormatError, match="points|sections"):
            check_message(message[:at] + lie.to_bytes(2, "big") + message[at + 2:], 143, "it")
    with pytest.raises(tr.FormatError, match="32 bits"):
        check_message(message[:values + 10] + b"\x20" + message[values + 11:], 143, "it")
    with pytest.raises(tr.FormatError):
        check_message(message[:15] + bytes([message[15] | 0x40]) + message[16:], 143, "it")  # a bitmap that is not there


def rejected(path, words, writer):
    writer.save()
    with pytest.raises(tr.FormatError, match=words):
        tr.open(path)


def test_lengths_and_counts_that_lie_with_right_checksums(tmp_path):
    path = tmp_path / "fc.bin"
    for head in (header(count=2**32 - 1), header([field(shape=(2**40, 2**40))]), header([field(shape=(-1, 3))]), header([field(levels=())]),
                 header([field(kind=77)]), header(calendar=9), header(base=2**62), header(data_begin=-1), header([field("")]),
                 header([text("t") + struct.pack("<iI", 6, 2**31)])):
        rejected(path, "fc.bin.trx", Writer(path, head))
    rejected(path, "the header has", Writer(path, header()[:12] + struct.pack("<I", 2**32 - 1) + header()[16:]))
    big = Writer(path, header([field(shape=(2**31, 2**30))])).step(0, records=[(0, 0, 0, 0)]).done().save()
    with pytest.raises(tr.FormatError, match="a record of 0 bytes"):
        tr.open(path).steps[0].read("t", 850)
    assert tr.open(path).to_xarray()["t"].shape == (1, 2, 2**31, 2**30) and big
    for changed in ({"count": 2**32 - 1}, {"lead": 2**62}, {"begin": 48}, {"end": -1}, {"number": -1}, {"records": [(1, 0, 0, 48)]},
                    {"records": [(0, 2, 0, 48)]}, {"records": [(0, -1, 0, 48)]}, {"records": [(0, 0, 1, 2**63 - 1)]}, {"records": [(0, 0, 0, 49)]}):
        Writer(path).step(0).step(**{"lead": 3600, **changed}).step(7200).save()
        run = tr.open(path)
        assert len(run) == 1 and "damaged" in run.missing[0], (changed, run.missing)
        with pytest.raises(tr.FormatError):
            list(run.follow(timeout=0))


def test_steps_and_shapes_that_python_does_not_hold(tmp_path):
    path = tmp_path / "fc.bin"
    Writer(path).step(0).record(b"STEP", struct.pack("<qq", 1, 3600)).step(7200).save()
    assert len(tr.open(path)) == 1 and "a step of 48 bytes" in tr.open(path).missing[0]
    Writer(path).step(0).step(86_400 * 10**9).save()
    assert [str(step.lead) for step in tr.open(path).steps] == ["0h"] and "beyond all times" in tr.open(path).missing[0]
    assert str(Writer(path).step(86_400 * 999_999_999).save() and tr.open(path).steps[0].lead)
    Writer(path, header([field(shape=(1,) * 65)])).step(0).save()
    with pytest.raises(tr.UnsupportedError, match="65 dimensions"):
        tr.open(path)
    Writer(path, header([field(shape=(1,) * 29)])).step(0, records=[(0, 0, 0, 8)], end=8).save()
    assert tr.open(path).to_xarray()["t"].ndim == 31


def test_sparse_and_endless_files(tmp_path):
    path = tmp_path / "fc.bin"
    writer = Writer(path).step(0).save()
    os.truncate(f"{path}.trx", 1 << 40)
    assert len(tr.open(path)) == 1 and "damaged" in tr.open(path).missing[0]
    with open(f"{path}.trx", "r+b") as file:
        file.truncate(len(writer.index))
        file.seek(len(writer.index))
        file.write(b"STEP\xff\xff\xff\x00" * 200_000)
    assert "fc.bin" in tr.open(path).missing[0]
    with open(f"{path}.trx", "wb") as file:
        file.write(b"TRLINDEX" + struct.pack("<II", 1, 2**32 - 1))
        file.truncate(1 << 40)
    with pytest.raises(tr.FormatError):
        tr.open(path)
    for name in ("manifest.jsonl", "p.0"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(tr.FormatError, match="no line ends"):
        tr.manifest(tmp_path)
    with pytest.raises(tr.NotThereError):
        tr.checkpoint(tmp_path / "p")


def test_changed_manifests(data, tmp_path):
    chance = random.Random(4)
    content = open(f"{data}/bin/manifest.jsonl", "rb").read()
    for _ in range(SEEDS):
        (tmp_path / "manifest.jsonl").write_bytes(mutated(content, chance))
        try:
            tr.manifest(tmp_path)
        except tr.FormatError:
            pass
    for line in (b"[" * 100_000, b'{"path": 3}', b'{"path":"a","size":true}', b"[]", b'"a"', b"null"):
        (tmp_path / "manifest.jsonl").write_bytes(line + b"\n" + content)
        with pytest.raises(tr.FormatError, match="line 1|object"):
            tr.manifest(tmp_path)


def test_changed_stores(data, tmp_path):
    if "zarr" not in formats():
        pytest.skip("this build writes no Zarr")
    chance = random.Random(5)
    store = tmp_path / "one.zarr"
    shutil.copytree(f"{data}/zarr/one.zarr", store)
    shutil.copy(f"{data}/zarr/one.zarr.trx", f"{store}.trx")
    for name, times in (("zarr.json", SEEDS // 6), ("t/c.1.0.0.0", SEEDS // 8), ("u/c.0.0.0.0", SEEDS // 8)):
        content = (store / name).read_bytes()
        for _ in range(times):
            (store / name).write_bytes(mutated(content, chance))
            read_all(store)
        (store / name).write_bytes(content)
    assert read_all(store)


def repaired(content, chance):
    """A copy of a checkpoint whose directory or table was changed, with right checksums."""
    offset, length = struct.unpack_from("<qq", content, 48)
    if chance.randrange(2):
        directory = mutated(content[offset:offset + length], chance)
        content = content[:offset] + directory
        head = content[:48] + struct.pack("<qqQ", offset, len(directory), xxhash.xxh3_64_intdigest(directory)) + content[72:120]
        return head + struct.pack("<Q", xxhash.xxh3_64_intdigest(head)) + content[128:]
    foot = content.rfind(b"TRCKEND1")
    at, size = struct.unpack_from("<qq", content, foot + 40)
    begin = foot - at - size
    table = mutated(content[begin + at:begin + at + size], chance)[:size].ljust(size, b"\0")
    body = content[foot:foot + 56] + struct.pack("<Q", xxhash.xxh3_64_intdigest(table)) + content[foot + 64:foot + 88]
    return content[:begin + at] + table + body + struct.pack("<Q", xxhash.xxh3_64_intdigest(body)) + content[foot + 96:]


@pytest.mark.parametrize("name", ("parallel-none", "local-none", "parallel-zstd", "parallel-lz4"))
def test_changed_checkpoints(data, tmp_path, name):
    paths = glob.glob(f"{data}/{name}.*")
    if not paths:
        pytest.skip("this build has no such coding")
    chance = random.Random(6)
    paths = [path for path in paths if path[len(f"{data}/{name}"):].startswith(".1")]
    for path in paths:
        shutil.copy(path, tmp_path)
    whole = 0
    for number in range(SEEDS // 2):
        path = paths[number % len(paths)]
        content = open(path, "rb").read()
        is_copy = path.endswith(".1")
        changed = repaired(content, chance) if is_copy and number % 2 and "parallel" in name else mutated(content, chance)
        to = tmp_path / os.path.basename(path)
        to.write_bytes(changed)
        try:
            tr.checkpoint(tmp_path / name, verify=True)
            whole += 1
        except tr.NotThereError:
            pass
        to.write_bytes(content)
    tr.checkpoint(tmp_path / name, verify=True)
    assert whole < SEEDS // 2


def test_records_with_holes_are_not_read(tmp_path):
    """1 TiB that takes no storage, behind fields of 48 bytes."""
    for format_ in ("raw", "grib2", "netcdf4"):
        path = tmp_path / f"fc.{format_}"
        Writer(path, header([field()], format_)).step(0, records=[(0, 0, 0, 1 << 40)], end=1 << 40).save()
        os.truncate(path, 1 << 40)
        with pytest.raises(tr.FormatError, match=f"a record of {1 << 40} bytes, and it takes at most"):
            tr.open(path).steps[0]["t"]


@pytest.mark.parametrize("chunk,records,words", (((2**12, 2**10), [bytes(length) for length in range(13)], "holds no 65536 chunks"),
                                                 ((2**12, 2**10), [bytes(2**16) + struct.pack("<I", 1) * 2**16], "holds no chunks of 2199023255552 bytes"),
                                                 ((2**12, 1), [bytes(100)], "a record of 67108864 chunks")))
def test_chunks_that_are_not_there(tmp_path, chunk, records, words):
    """Records that are shorter than the lengths of their chunks, and 2 TiB of elements of which nothing is there but the lengths."""
    h5py, path, shape = pytest.importorskip("h5py"), tmp_path / "one.nc4", (2**20, 2**18)
    with h5py.File(path, "w") as file:
        time_ = file.create_dataset("time", (1,), "<f8")
        time_.make_scale("time")
        file.create_dataset("t", (1, *shape), "<f8", chunks=(1, *chunk)).dims[0].attach_scale(time_)
    unfinished = netcdf4_head(definitions([defined(shape=shape, chunks=f"{chunk[0]}x{chunk[1]}")]))
    for head in (path.read_bytes(), unfinished):
        for record in records:
            run = tr.open(netcdf4(path, head, [field(shape=shape)], [(0, 0, record)]))
            with pytest.raises(tr.FormatError, match=words):
                run.step(0).read("t", 850)


def test_a_frame_of_zstandard_that_tells_another_size():
    zstandard = pytest.importorskip("zstandard")
    frame = zstandard.ZstdCompressor(write_content_size=True).compress(bytes(64 << 20))
    with pytest.raises(tr.FormatError, match=f"its frame tells of {64 << 20} bytes in place of 100"):
        parts._decompressed(2, frame, 100, "it")
    unknown = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(100))
    assert parts._decompressed(2, unknown, 100, "it") == bytes(100)


def test_maps_of_a_checkpoint_are_looked_at_once(tmp_path):
    """A table of 1 MB names one map for each of 2,000 items."""
    path = checkpoint(tmp_path / "cp.0", 2000, [(at, 1, 0, 1) for at in range(20_000)])
    begin = time.monotonic()
    assert len(tr.checkpoint(path)) == 2000 and time.monotonic() - begin < 5
    assert tr.checkpoint(path)["item0"].tolist()[:3] == [0, 1, 2]
    for group in ((-1, 1, 0, 1), (0, 0, 0, 1), (0, 1, 0, 0), (0, 2, 2, 2), (0, 1, 2**62, 2**62), (2**62, 2**62, 0, 1), (2**63 - 1, 2**63 - 1, 0, 1)):
        with pytest.raises(tr.FormatError, match="a map has a group"):
            parts._Map.of(np.array([(0, 1, 0, 1), group], "<i8"), "it")


def test_an_element_twice_in_a_checkpoint_of_many_runs(tmp_path, monkeypatch):
    path = checkpoint(tmp_path / "cp.0", 1, [(0, 1, 0, 1), (1, 2, 0, 1), (3, 1, 2, 2)])
    twice = checkpoint(tmp_path / "twice.0", 1, [(0, 1, 0, 1), (0, 2, 0, 1), (2, 1, 2, 1), (2, 1, 0, 1)])
    with pytest.raises(tr.NotThereError, match="in two parts, and another one in none"):
        tr.checkpoint(twice)
    with pytest.raises(tr.NotThereError, match="outside of item"):
        tr.checkpoint(path)
    path = checkpoint(tmp_path / "cp.0", 1, [(0, 1, 2, 2), (1, 1, 2, 2)])
    monkeypatch.setattr(parts, "MOST_RUNS", 1)
    assert tr.checkpoint(path)["item0"].tolist() == [0, 2, 1, 3]
    with pytest.raises(tr.FormatError, match="in two parts, and another one in none"):
        tr.checkpoint(twice)["item0"]


def test_nothing_is_what_it_seems(tmp_path):
    """Directories, empty files and names without a meaning."""
    os.makedirs(tmp_path / "fc.bin.trx")
    with pytest.raises((tr.NotThereError, tr.FormatError)):
        tr.open(tmp_path / "fc.bin").to_xarray()
    (tmp_path / "e.bin.trx").write_bytes(b"")
    with pytest.raises(tr.FormatError):
        tr.open(tmp_path / "e.bin")
    Writer(tmp_path / "own.bin", header(format_="recorder")).step(0).save()
    with pytest.raises(tr.UnsupportedError, match="only that program"):
        tr.open(tmp_path / "own.bin").steps[0]["t"]


def test_nobody_waits_for_the_other_end_of_a_pipe(tmp_path):
    Writer(tmp_path / "fc.bin").step(0).save()
    for name in ("p.bin.trx", "manifest.jsonl"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="it is a pipe"):
        tr.manifest(tmp_path)
    with pytest.raises(OSError, match="it is a pipe"):
        tr.load_index(str(tmp_path / "p.bin.trx"))
    with pytest.raises((OSError, tr.TailraceError)):
        tr.open(tmp_path / "p.bin").to_xarray()
    os.remove(tmp_path / "fc.bin")
    os.mkfifo(tmp_path / "fc.bin")
    with pytest.raises((OSError, tr.TailraceError)):
        np.asarray(tr.open(tmp_path / "fc.bin").steps[0]["t"])


FUZZ = """
import glob, random, resource, sys
import numpy as np
import tailrace as tr
from tailrace import decode_grib
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
chance = random.Random(int(sys.argv[1]))
paths = sorted(glob.glob(sys.argv[3] + "/grids/*.grib2")) + [sys.argv[3] + "/grib2/one.grib2"]
for _ in range(int(sys.argv[2])):
    path = chance.choice(paths)
    index = tr.load_index(path + ".trx")
    record = chance.choice(chance.choice(index.steps).records)
    field = index.header.fields[record["field"]]
    with open(path, "rb") as file:
        file.seek(int(record["offset"]))
        message = bytearray(file.read(int(record["length"])))
    sections, at = [], 16
    while at < len(message) - 4:
        sections.append((at, int.from_bytes(message[at:at + 4], "big")))
        at += sections[-1][1]
    for _ in range(chance.randrange(1, 4)):
        begin, length = chance.choice([each for each in sections if each[1] > 5])
        message[begin + 5 + chance.randrange(min(length - 5, 80))] = chance.choice((0, 255, 1, chance.randrange(256)))
    try:
        decode_grib.decode(bytes(message), field.shape, np.dtype("f8"), "it")
        decode_grib.describe(bytes(message), field.name, field.shape, "it", {})
    except tr.TailraceError:
        pass
"""


def test_changed_sections_do_not_crash_ecCodes(data):
    """Sections whose lengths and numbers of points are right, and nothing else need be. In a process of its own: a crash ends that."""
    if "grib2" not in formats():
        pytest.skip("this build writes no GRIB")
    done = subprocess.run([sys.executable, "-c", FUZZ, str(SEEDS), str(3 * SEEDS), data], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
