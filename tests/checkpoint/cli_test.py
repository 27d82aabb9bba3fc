# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""`tailrace checkpoint` tells what is in the files of checkpoints, whatever is done to them, and never crashes."""
import ctypes
import fcntl
import glob
import json
import os
import random
import struct
import sys
from array import array

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

SAVE, SWAP, FAIL_DIRECTORIES = MODEL, os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
JSON = tailrace("checkpoint", "ls", "--json", "nothing")[2].count("built without") == 0
CONFIGURATIONS = {"plain": "mode=parallel compress=none", "local": "mode=local compress=none", "zstd": "mode=parallel compress=zstd",
                  "local-zstd": "mode=local compress=zstd"}
ITEMS = {"step": ("<q", 1), "t": ("<d", 40 * 30), "wind/10 m": ("<f", 77), "soil": ("<h", 101), "mask": ("<B", 8), "none": ("<d", 0)}


def checkpoint(*args):
    """Whatever the files are, the command ends by itself with one of its codes."""
    code, out, err = tailrace("checkpoint", *args)
    check(code in (0, 1, 2), f"checkpoint {args}: ended with {code}: {err[-1000:]}")
    check(code == 0 or out or err, f"checkpoint {args}: {code} without a word")
    return code, out, err


def save(name, options, generations=2, extents="40x30", salt=0, ranks=3):
    code, _, err = run(ranks, [SAVE, name, options, str(generations), extents, str(salt)])
    return check(code == 0, f"save {name} {options}: {code}: {err}")


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)


def values(item, generation, salt=0):
    first = salt + 1000 * generation
    if item == "step":
        return [generation]
    return [(0 if item == "mask" else first) + e for e in range(ITEMS[item][1])]


def as_bytes(item, generation):
    return b"".join(struct.pack(ITEMS[item][0], value) for value in values(item, generation))


# ---- whole copies

def whole_copies(name):
    code, out, _ = checkpoint("ls", name)
    check(code == 0 and [line.split()[:3] for line in out.splitlines()] ==
          [["COPY", "GENERATION", "STATE"], [f"{name}.1", "2", "committed"], [f"{name}.0", "1", "committed"]], f"ls {name}: {out}")
    check(out.splitlines()[1].split()[4:6] == ["3", "local" if "local" in name else "parallel"], f"ls {name}: {out}")
    size = sum(os.path.getsize(path) for path in glob.glob(f"{name}.1*"))
    check(out.splitlines()[1].split()[6] == str(size), f"ls {name}: {size} bytes: {out}")
    check(checkpoint("ls", f"{name}.0")[1].splitlines()[1:] == [out.splitlines()[2]], f"ls {name}.0")
    code, out, _ = checkpoint("verify", name)
    check(code == 0 and out.count("is whole") == 2, f"verify {name}: {code}: {out}")
    code, out, _ = checkpoint("show", name, "--values", "3", "--parts")
    check(code == 0 and "generation 2 of run" in out and "t  float64 (40, 30)  9600 bytes" in out
          and "\n    2000 2001 2002\n" in out and "step  int64 scalar" in out and "(2000, 0) (2001, 0)" in out
          and out.count("\npart ") == 3, f"show {name}: {code}: {out}")
    check(("compression zstd" in out) == ("zstd" in name) and ("stored in" in out.split("items")[1]) == ("zstd" in name),
          f"show {name}: compression: {out}")
    check("generation 1 of run" in checkpoint("show", f"{name}.0")[1], f"show {name}.0")


def extracted(name):
    for item in ITEMS:
        for source, generation in ((name, 2), (f"{name}.0", 1)):
            code, _, err = checkpoint("extract", source, item, "-o", "out.bin")
            check(code == 0 and contents("out.bin") == as_bytes(item, generation), f"extract {source} {item}: {code} {err}")
    check(not glob.glob("out.bin.*"), "extract leaves something behind")
    # A link that somebody has put where the command might write: its process id is known once it runs.
    put("victim", b"not to be written over")
    linked = subprocess.run([COMMAND, "checkpoint", "extract", name, "t", "-o", "out.bin"], capture_output=True, text=True, check=False,
                            preexec_fn=lambda: os.symlink("victim", f"out.bin.tmp{os.getpid()}"))
    check(linked.returncode == 0 and contents("out.bin") == as_bytes("t", 2) and contents("victim") == b"not to be written over",
          f"extract beside a link: {linked.returncode}: {linked.stderr}")
    check(not os.path.islink("out.bin") and os.stat("out.bin").st_mode & 0o777 == os.stat("victim").st_mode & 0o777, "extract: its mode")
    for link in glob.glob("out.bin.*"):
        os.remove(link)
    # A link that takes the place of the temporary file while it is written.
    for out in ("swapped.bin", "swapped.nc"):
        subprocess.run([COMMAND, "checkpoint", "extract", name, "t", "-o", out], capture_output=True, check=False,
                       env=dict(os.environ, LD_PRELOAD=SWAP))
        check((os.path.islink(out) or out.endswith(".nc")) and contents("victim") == b"not to be written over",
              f"extract to {out}, whose temporary file was swapped")
        for link in glob.glob(f"{out}*"):
            os.remove(link)
    # A name that is not durable is none that the command may report.
    os.mkdir("unnamed")
    lost = subprocess.run([COMMAND, "checkpoint", "extract", name, "t", "-o", "unnamed/t.bin"], capture_output=True, text=True, check=False,
                          env=dict(os.environ, LD_PRELOAD=FAIL_DIRECTORIES))
    check(lost.returncode == 2 and not lost.stdout and "fsync directory" in lost.stderr and not glob.glob("unnamed/*.tmp-*"),
          f"extract to a name that is not durable: {lost.returncode}: {lost.stdout}{lost.stderr}")
    shutil.rmtree("unnamed")
    code, _, err = checkpoint("extract", name, "tt", "-o", "no.bin")
    check(code == 2 and 'did you mean "t"?' in err and contents("no.bin") is None, f"extract tt: {code} {err}")
    check(checkpoint("extract", name, "t", "-o", "missing/t.bin")[0] == 2, "extract into a missing directory")
    check(checkpoint("extract", name, "t", "-o", "t.bin", "--format", "hdf")[0] == 2, "extract --format hdf")


def netcdf(name):
    """A variable without chunks lies in the file as it lies in memory."""
    code, _, err = checkpoint("extract", name, "t", "-o", "t.nc")
    if "without NetCDF" in err:
        check(code == 2, f"extract without NetCDF: {code}")
        return
    data = contents("t.nc") or b""
    check(code == 0 and data[:4] == b"\x89HDF" and as_bytes("t", 2) in data and b"d1_t" in data, f"extract t.nc: {code} {err}")
    for item in ("step", "wind/10 m", "wave", "soil", "mask", "none"):
        code, _, err = checkpoint("extract", name, item, "-o", "item", "--format", "netcdf")
        check(code == 0 and (item == "wave" or as_bytes(item, 2) in contents("item")), f"extract {item} as NetCDF: {code} {err}")
    if shutil.which("ncdump"):
        checkpoint("extract", name, "wind/10 m", "-o", "wind.nc")
        out = subprocess.run(["ncdump", "wind.nc"], capture_output=True, text=True).stdout
        check("float wind_10_m(d0_wind_10_m, d1_wind_10_m)" in out and 'item = "wind/10 m"' in out and "2000, 2001, 2002" in out,
              f"ncdump: {out}")


def machine_readable(name):
    if not JSON:
        return
    listed = json.loads(checkpoint("ls", "--json", name)[1])
    check([(each["generation"], each["state"], each["parts"]) for each in listed] == [(2, "committed", 3), (1, "committed", 3)],
          f"ls --json: {listed}")
    shown = json.loads(checkpoint("show", "--json", "--values", "2", "--parts", name)[1])
    check([item["name"] for item in shown["items"]] == ["step", "t", "wind/10 m", "wave", "soil", "mask", "none"]
          and shown["items"][1]["shape"] == [40, 30] and shown["items"][1]["values"] == ["2000", "2001"]
          and len(shown["part_list"]) == 3, f"show --json: {shown}")
    verified = json.loads(checkpoint("verify", "--json", name)[1])
    check([each["whole"] for each in verified] == [True, True], f"verify --json: {verified}")


def outputs_are_told():
    code, _, err = run(3, [SAVE, "outputs/s", "", "2", "40x30", "0", "outputs/log"])
    check(code == 0, f"save outputs/s: {code}: {err}")
    code, out, _ = checkpoint("show", "outputs/s")
    check(code == 0 and out.endswith("outputs that go on\n  file outputs/log  at byte 20 of 20\n"), f"show outputs/s: {code}: {out}")
    check("at byte 10 of 10\n" in checkpoint("show", "outputs/s.0")[1], "show outputs/s.0")
    check("outputs that go on" not in checkpoint("show", "plain/s")[1], "show of a copy without outputs")
    if JSON:
        shown = json.loads(checkpoint("show", "--json", "outputs/s")[1])
        check((shown["streams"], shown["files"]) == ([], [{"path": "outputs/log", "position": 20, "bytes": 20, "undo_files": []}]),
              f"show --json: {shown}")


# ---- diff

def differences():
    save("diff/a", "mode=parallel compress=zstd")
    save("diff/b", "mode=local", ranks=2)
    save("diff/c", "", salt=0.25)
    save("diff/d", "", extents="40x31")
    check(checkpoint("diff", "diff/a", "diff/b")[:2] == (0, ""), "the same values from 3 and from 2 ranks differ")
    code, out, _ = checkpoint("diff", "diff/a", "diff/c")
    check(code == 1 and out.splitlines() == ["t: 1200 of 1200 elements differ, the first at (0, 0), by 0.25 at most",
                                             "wind/10 m: 77 of 77 elements differ, the first at (0, 0), by 0.25 at most",
                                             "wave: 15 of 15 elements differ, the first at (0, 0), by 0.25 at most"],
          f"diff: {code} {out}")
    code, out, _ = checkpoint("diff", "diff/a.0", "diff/a.1")
    check(code == 1 and "step: 1 of 1 elements differ\n" in out and "soil: 101 of 101 elements differ, the first at (0)\n" in out,
          f"diff of generations: {code} {out}")
    code, out, _ = checkpoint("diff", "diff/a", "diff/d")
    check(code == 1 and out == "t: float64 (40, 30) in diff/a.1, float64 (40, 31) in diff/d.1\n", f"diff of shapes: {code} {out}")
    if JSON:
        found = json.loads(checkpoint("diff", "--json", "diff/a", "diff/c")[1])
        check(found[0] == {"item": "t", "elements": 1200, "differing": 1200, "first": [0, 0], "largest": 0.25}, f"diff --json: {found}")
    check(checkpoint("diff", "diff/a", "diff/none")[0] == 2, "diff with nothing")


def more_than_a_portion():
    """72 MB: more than what is held at once, in rows that do not fit into it evenly."""
    save("large/a", "keep=2", 1, "3001x3000")
    save("large/b", "mode=local", 1, "3001x3000", ranks=2)
    check(checkpoint("diff", "large/a", "large/b")[:2] == (0, ""), "diff of large arrays")
    wanted = array("d", range(1000, 1000 + 3001 * 3000)).tobytes()
    check(checkpoint("extract", "large/a", "t", "-o", "large/t.bin")[0] == 0 and contents("large/t.bin") == wanted,
          "extract of a large array")
    code, _, err = checkpoint("extract", "large/b", "t", "-o", "large/t.nc")
    check((code == 0 and wanted in contents("large/t.nc")) or "without NetCDF" in err, f"NetCDF of a large array: {code} {err}")
    shutil.rmtree("large")


# ---- prune

def files_of(name):
    return sorted(glob.glob(f"{name}.*"))


def parts_of(*copies):
    return sorted(path for copy in copies for path in (copy, *(f"{copy}.r{part:05}" for part in range(3))))


def pruned():
    save("prune/s", "keep=3 mode=local keep_every=2", 5)
    before = files_of("prune/s")
    code, out, _ = checkpoint("prune", "prune/s", "--keep", "2", "--dry-run")
    check(code == 0 and files_of("prune/s") == before and out.count("would remove") == 12, f"prune --dry-run: {code} {out}")
    with open("prune/s.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("tailrace lock: host other pid 1\n")
        lock.flush()
        code, _, err = checkpoint("prune", "prune/s", "--keep", "1")
        check(code == 2 and "held by host other pid 1" in err and set(before) <= set(files_of("prune/s")), f"prune, locked: {code} {err}")
    os.remove("prune/s.0")  # its parts are orphans
    put("prune/s.2.r00007", b"of a save with more parts")
    put("prune/s.9", b"no copy")
    put("prune/s.notes", b"the user's")
    put("prune/s.0.rest", b"the user's")
    code, out, _ = checkpoint("prune", "prune/s", "--keep", "2")
    check(code == 0 and files_of("prune/s") == sorted(parts_of("prune/s.2", "prune/s.g4") + ["prune/s.0.rest", "prune/s.notes"]),
          f"prune: {code} {out} {files_of('prune/s')}")
    check(checkpoint("verify", "prune/s")[0] == 0, "verify after prune")
    put("prune/s.2", b"broken")
    check(checkpoint("prune", "prune/s", "--keep", "1")[0] == 0 and checkpoint("show", "prune/s")[1].startswith("prune/s.g4"),
          "the newest whole copy stays")
    put("prune/s.g4", b"broken")
    left = files_of("prune/s")
    check(checkpoint("prune", "prune/s", "--keep", "1")[0] == 1 and files_of("prune/s") == left, "nothing whole, nothing removed")
    for args in (("--keep", "0"), (), ("--keep", "x")):
        check(checkpoint("prune", "prune/s", *args)[0] == 2, f"prune {args}")
    check(checkpoint("prune", "prune/none", "--keep", "1")[0] == 2, "prune of nothing")


# ---- run-state

def run_state(code, text, *args):
    found, out, err = tailrace("run-state", *args)
    check(found == code and text in out + err, f"run-state {args}: {found} without '{text}': {out}{err}")
    return out


def run_states():
    log = os.path.abspath("states/log")
    code, _, err = run(3, [SAVE, "states/s", "overwritten=journal", "2", "40x30", "0", log, "XYZ"])
    saved = b"XYZ3456789" + b"0123456789"
    check(code == 0 and contents(log) == saved, f"save states/s: {code}: {err}")
    run_state(0, "everything is at generation 2\n", "states/s")
    put(log, b"abcdefghij" + saved[10:] + b"behind")
    run_state(1, "a restart would put back 1 file\n", "states/s")
    run_state(1, f"  file {log}  ahead, 26 bytes (20 at the checkpoint): 6 bytes to be cut, 10 bytes to be put back\n", "states")
    with open("states/s.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("tailrace lock: host other pid 1\n")
        lock.flush()
        run_state(2, "held by host other pid 1", "states", "--restore")
        run_state(1, "s.lock is there: a program runs, and may be ahead", "states")
    run_state(2, "states/s.1 is newer and whole, and the next run loads it: `--to 1` sets it aside", "states/s.0", "--restore")
    run_state(4, ": no whole copy has generation 7:\n  s.1: generation 2\n  s.0: generation 1\n", "states", "--to", "7", "--restore")
    run_state(2, "states/s.0 is one copy: --to goes with the name of a checkpoint", "states/s.0", "--to", "1")
    run_state(1, "s.0: generation 1", "states", "--to", "1")
    run_state(1, "s.1: generation 2", "./states//s.1")
    os.symlink("s.7", "states/s.7")  # leads to itself: storage does not give it
    for args in (("states/s",), ("states/s", "--restore"), ("states/s.1", "--restore")):
        run_state(2, "states/s.7 cannot be read, so that its generation is not known", *args)
    run_state(1, "a restart would put back 1 file", "states/s.1")
    os.remove("states/s.7")
    for name in ("states/kept", "states/s.0.kept"):
        shutil.copy("states/s.0", name)
        for args in ((name,), (name, "--restore")):
            run_state(2, f"{name}: is not called NAME.0, NAME.1, ...: the lock and the undo files", *args)
        os.remove(name)
    check(len(contents(log)) == 26, "a restore that was refused changed a file")
    run_state(0, "done: put back 1 file; everything is at generation 2\n", "-C", "states", "s", "--restore")
    check(contents(log) == saved, "the file is not as it was saved")
    run_state(0, "nothing was to do; everything is at generation 2\n", "states/s", "--restore")
    if JSON:
        told = json.loads(run_state(0, "", "states", "--json"))
        check(told["generation"] == 2 and told["outputs"][0]["state"] == "agrees" and not told["restored"] and len(told["copies"]) == 2,
              f"run-state --json: {told}")
    older_states(log, saved)
    lost_states(log)


def older_states(log, saved):
    """Goes back to generation 1 and forth again, by hand; then a program goes on from generation 1."""
    kept = {path: contents(path) for path in glob.glob("states/s.u*")}
    for path in kept:
        os.remove(path)
    run_state(0, "everything is at generation 2", "states/s")
    put(log, b"XYZ")  # as if it were begun anew, but generation 2 has not recorded that
    run_state(4, f"generation 1 cannot be reached: {log} has 3 bytes, the checkpoint has recorded 10", "states/s", "--to", "1", "--restore")
    check(os.path.exists("states/s.1") and contents(log) == b"XYZ", "a restore that cannot be done set a copy aside")
    for path, data in kept.items():
        put(path, data)
    put(log, saved + b"behind")
    for number in ("", "2"):
        run_state(0, f"done: put back 1 file; set aside states/s.1.aside{number}; everything is at generation 1\n", "states/s", "--to", "1", "--restore")
        check(contents(log) == b"0123456789", f"the file is not as it was at generation 1: {contents(log)}")
        check(not os.path.exists("states/s.1"), "the newer copy is still there")
        run_state(0, "everything is at generation 1", "states/s")
        shutil.copy(f"states/s.1.aside{number}", "states/s.1")
        put(log, saved)
    found, out, err = tailrace("checkpoint", "show", "states/s.1.aside", "--values", "1")
    check(found == 0 and "generation 2" in out + err, f"a copy that was set aside: {out}{err}")
    for path in glob.glob("states/s.1.aside*"):
        os.remove(path)
    begun_anew()


def begun_anew():
    log = os.path.abspath("states/anew")
    code, _, err = run(2, [SAVE, "states/a", "mode=local", "2", "20x10", "0", log, "anew"])
    check(code == 0 and contents(log) == b"", f"save states/a: {code}: {err}")
    put(log, b"0123456789" * 2)
    out = run_state(4, f"generation 1 cannot be reached: {log} was begun anew behind generation 1, which has recorded 10 bytes of it: generation 2 has 5 ",
                    "states/a", "--to", "1", "--restore")
    check("nothing was changed" in out and os.path.exists("states/a.1.r00001"), f"a file that was begun anew: {out}")
    os.remove(log)
    code, _, err = run(2, [SAVE, "states/a", "mode=local", "2", "20x10", "0"])
    check(code == 0, f"save states/a: {code}: {err}")
    names = [os.path.basename(path) for path in sorted(glob.glob("states/a.*"))]
    run_state(0, "done: set aside states/a.1.aside; everything is at generation 3", "states/a", "--to", "3", "--restore")
    found = [os.path.basename(path) for path in sorted(glob.glob("states/a.*"))]
    check(found == sorted(name.replace("a.1", "a.1.aside") for name in names), f"parts that were set aside: {found}")
    for path in glob.glob("states/a*"):
        os.remove(path)


def lost_states(log):
    for undo in glob.glob("states/s.u*"):
        os.remove(undo)
    put(log, b"0123456789" * 3)
    run_state(1, "a restart would cut 1 file\n", "states/s")
    put(log, b"short")
    run_state(4, f"generation 2 cannot be reached: {log} has 5 bytes, the checkpoint has recorded 20", "states")
    out = run_state(4, "; nothing was changed\n", "states", "--restore")
    check("lock is there" not in out, f"the command's own lock: {out}")
    check(contents(log) == b"short", "a restore that cannot be done changed a file")
    os.remove(log)
    run_state(4, f"{log} is not there", "states/s")
    save("states/other", "")
    run_state(2, "has the checkpoints other, s; name one", "states")
    for copy in ("states/s.0", "states/s.1"):
        put(copy, b"broken")
    run_state(4, "states/s: no copy is whole:", "states/s")
    run_state(2, "no checkpoint has this name", "states/none")
    run_state(2, "", "states", "--unknown")


# ---- undo files, by docs/formats/undo-files.md

SECTOR = 512


def library(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


XXH = library("libxxhash.so.0")


def xxh3(data):
    XXH.XXH3_64bits.restype = ctypes.c_uint64
    return XXH.XXH3_64bits(ctypes.c_char_p(data), ctypes.c_size_t(len(data)))


def padded(data):
    return data + bytes(-len(data) % SECTOR)


def undo_record(path, generation, number, offset, kept, what=0):
    """(head, the bytes that were kept, tail), each in sectors of its own."""
    fields = struct.pack("<iqqqqQq", what, generation, number, offset, len(kept), xxh3(kept), len(path)) + path.encode()
    head, tail = (mark + fields + struct.pack("<Q", xxh3(mark + fields)) for mark in (b"TRUNDOH1", b"TRUNDOT1"))
    return padded(head), padded(kept), padded(tail)


def undo_file(path, generation, *records, sealed=True):
    """`records`: (offset, bytes). Not `sealed`: the last has no tail yet."""
    parts = [undo_record(path, generation, number, *record) for number, record in enumerate(records)]
    data = b"".join(b"".join(part) for part in parts)
    return data if sealed else data[:-len(parts[-1][2])]


def undo_name(name, generation, path, number=0):
    return f"{name}.u{generation}.{xxh3(path.encode()):016x}.{number}"


def undo_verdict(name, path, code, text):
    """What verify says of one undo file of a checkpoint whose copies are whole."""
    found, out, err = checkpoint("verify", name)
    check(found == code and text in out and out.count("is whole") == 2 + (code == 0), f"verify {path}: {found} {out} {err}")
    found, out, err = checkpoint("verify", "--quiet", name)
    check(found == code and (out == "") == (code == 0), f"verify --quiet {path}: {found} {out} {err}")
    if JSON:
        found, out, err = checkpoint("verify", "--json", name)
        told = [each for each in json.loads(out) if each["path"] == path]
        check(found == code and len(told) == 1 and told[0]["whole"] == (code == 0) and bool(told[0]["problems"]) == (code != 0),
              f"verify --json {path}: {found} {told}")
    check(checkpoint("verify", f"{name}.0")[0] == 0, f"verify {name}.0 reads no undo files")


def written_over():
    """A program that writes over what it saved. Each save but the last two is of no use any more, and so are its undo files."""
    log = "undo/log"
    code, _, err = run(3, [SAVE, "undo/s", "overwritten=journal", "4", "40x30", "0", log, "XYZ"])
    check(code == 0 and contents(log) == b"XYZ" + b"3456789" + b"0123456789" * 3, f"save undo/s: {code}: {err}")
    third, fourth = undo_name("undo/s", 3, log), undo_name("undo/s", 4, log)
    check(files_of("undo/s") == ["undo/s.0", "undo/s.1", third, fourth], f"undo files: {files_of('undo/s')}")
    held = b"XYZ" + b"3456789" + b"0123456789" * 3
    check(contents(third) == undo_file(log, 3, (0, held[:30])) and contents(fourth) == undo_file(log, 4, (0, held)),
          f"the undo files are {contents(third)} and {contents(fourth)}")
    code, out, _ = checkpoint("verify", "undo/s")
    check(code == 0 and f"{fourth}: undo file of generation 4 is whole, 40 bytes kept\n{third}: " in out, f"verify undo/s: {code} {out}")
    check("at byte 40 of 40, 1 undo file\n" in checkpoint("show", "undo/s")[1]
          and "at byte 30 of 30, 2 undo files\n" in checkpoint("show", "undo/s.0")[1], f"show undo/s: {checkpoint('show', 'undo/s')}")
    if JSON:
        shown = json.loads(checkpoint("show", "--json", "undo/s.0")[1])
        check(shown["files"][0]["undo_files"] == [fourth, third], f"show --json undo/s.0: {shown['files']}")
    before = files_of("undo/s")
    code, out, _ = checkpoint("prune", "undo/s", "--keep", "1", "--dry-run")
    check(code == 0 and out == f"would remove undo/s.0 (generation 3, whole)\nwould remove {third} (of no copy any more)\n"
          and files_of("undo/s") == before, f"prune --dry-run undo/s: {code} {out}")
    check(checkpoint("prune", "undo/s", "--keep", "2")[1] == "undo/s: nothing to remove\n" and files_of("undo/s") == before,
          "prune of undo files that are needed")
    return third, fourth


def pruned_undo_files(third, fourth):
    code, out, _ = checkpoint("prune", "undo/s", "--keep", "1")
    check(code == 0 and files_of("undo/s") == ["undo/s.1", fourth], f"prune undo/s: {code} {out} {files_of('undo/s')}")
    other = undo_name("undo/s", 2, "of another file", 7)
    for path in (third, other, "undo/s.u3.notes", f"{fourth}x", "undo/s.u03.0123456789abcdef.0"):
        put(path, b"")
    code, out, _ = checkpoint("prune", "undo/s", "--keep", "1")
    check(code == 0 and out == f"removed {third} (of no copy any more)\nremoved {other} (of no copy any more)\n",
          f"prune of orphaned undo files: {code} {out}")
    check(checkpoint("prune", "undo/s", "--keep", "1")[1] == "undo/s: nothing to remove\n", "prune undo/s again")
    for path in ("undo/s.u3.notes", f"{fourth}x", "undo/s.u03.0123456789abcdef.0"):
        check(os.path.exists(path), f"prune removes {path}, which is no undo file")


def damaged_undo_files(rng):
    """A record that was sealed is missed if it is damaged, one that was not counts for nothing."""
    save("undo/d", "")
    log, first, second = "undo/other", (0, rng.randbytes(700)), (4096, rng.randbytes(100))
    path = undo_name("undo/d", 2, log)

    def check_file(data, code, text):
        put(path, data)
        undo_verdict("undo/d", path, code, text)

    whole, head = undo_file(log, 2, first, second), len(undo_record(log, 2, 0, *first)[0])
    check_file(whole, 0, f"{path}: undo file of generation 2 is whole, 800 bytes kept\n")
    check_file(b"", 0, "is whole, 0 bytes kept\n")
    check_file(undo_file(log, 2, first, second, sealed=False), 0, "is whole, 800 bytes kept\n")  # power was lost before it
    torn = undo_file(log, 2, first, second, sealed=False)[:-SECTOR]
    check_file(torn, 0, "is whole, 700 bytes kept\n")
    check_file(torn + rng.randbytes(SECTOR), 0, "is whole, 700 bytes kept\n")
    for place in (3, 20, 36, rng.randrange(60)):  # in the head: the tail stands in for it
        check_file(flipped(whole, place, rng.randrange(8)), 0, "is whole, 800 bytes kept\n")
    for place in (head, head + rng.randrange(700)):
        check_file(flipped(whole, place, rng.randrange(8)), 1, f"DAMAGED: {path} is damaged: the bytes of record 0 ")
    tail = head + len(padded(first[1]))
    check_file(flipped(flipped(whole, 3, 0), tail, 0), 1, f"DAMAGED: {path} is damaged: record 0 is not there")
    check_file(whole[tail + head:], 1, f"DAMAGED: {path} is damaged: record 0 is not there")
    check_file(undo_file(log, 1, first), 1, f"DAMAGED: {path} is damaged: it is of generation 1")
    for _ in range(10):
        place, bit = rng.randrange(len(whole)), rng.randrange(8)
        put(path, flipped(whole, place, bit))
        check(checkpoint("verify", "undo/d")[0] in (0, 1), f"verify of an undo file, bit {bit} of byte {place}")
    put(path, flipped(whole, head, 0))
    check("undo/d.1: generation 2 is whole" in checkpoint("verify", "undo/d")[1] and checkpoint("show", "undo/d")[0] == 0,
          "a copy is as whole as before if an undo file is damaged")
    os.remove(path)
    os.makedirs(path)
    check(checkpoint("verify", "undo/d")[0] == 2, "an undo file that cannot be read")


def undo_files():
    if XXH is None:
        print("not tested without libxxhash.so.0: undo files")
        return
    pruned_undo_files(*written_over())
    damaged_undo_files(random.Random(20261122))


# ---- damage

def regions(path, compressed):
    """Where in which file of a copy a changed bit must be noticed: (kind, file, begin, end)."""
    shown = json.loads(checkpoint("show", "--json", "--parts", path)[1])
    found = [("header", path, 0, 128)]
    directory, length = struct.unpack_from("<qq", contents(path), 48)
    found.append(("directory", path, directory, directory + length))
    for part in shown["part_list"]:
        end = part["offset"] + part["bytes"]
        found.append(("footer", part["file"], end - 96, end))
        table, length = struct.unpack_from("<qq", contents(part["file"]), end - 96 + 40)
        found.append(("table", part["file"], part["offset"] + table, part["offset"] + table + length))
        for item in part["items"]:
            # Only the beginning of a compressed item is sure to be stored.
            stored = min(item["bytes"], 8) if compressed else item["bytes"]
            found.append(("data", part["file"], item["offset"], item["offset"] + stored))
    return found


class Damaged:
    """A file with other contents, until the end of the block."""

    def __init__(self, path, data):
        self.path, self.data, self.whole = path, data, contents(path)

    def __enter__(self):
        put(self.path, self.data)

    def __exit__(self, *_):
        put(self.path, self.whole)


def flipped(data, place, bit):
    changed = bytearray(data)
    changed[place] ^= 1 << bit
    return bytes(changed)


def poke(path, reference, what, must_notice):
    """All commands on a damaged copy: none crashes, and none passes wrong values off for right ones."""
    code, out, err = checkpoint("verify", path)
    check(code == 1 if must_notice else code in (0, 1), f"{what}: verify: {code} {out} {err}")
    check(code != 1 or "DAMAGED: " in out, f"{what}: verify does not say what: {out}")
    check(checkpoint("ls", path)[0] == 0, f"{what}: ls")
    checkpoint("show", path, "--values", "100000", "--parts")
    same, out, err = checkpoint("diff", path, reference)
    check((same == 0) == (code == 0) and " differ" not in out, f"{what}: diff: {same} {out} {err}")
    if checkpoint("extract", path, "t", "-o", "damaged.bin")[0] == 0:
        check(contents("damaged.bin") == as_bytes("t", 2), f"{what}: extract")


def damaged(name, rng):
    path, reference = f"{name}.1", f"reference/{os.path.basename(name)}.1"
    os.makedirs("reference", exist_ok=True)
    for file in glob.glob(f"{name}.1*"):
        shutil.copy(file, os.path.join("reference", os.path.basename(file)))
    places = regions(path, "zstd" in name) if JSON else []
    for kind in ("header", "directory", "footer", "table", "data"):
        for _ in range(5):
            chosen = [region for region in places if region[0] == kind]
            if chosen:
                _, file, begin, end = rng.choice(chosen)
                place, bit = rng.randrange(begin, end), rng.randrange(8)
                with Damaged(file, flipped(contents(file), place, bit)):
                    poke(path, reference, f"{kind} of {file}, bit {bit} of byte {place}", True)
    files = sorted(glob.glob(f"{name}.1*"))
    for _ in range(25):
        file = rng.choice(files)
        place, bit = rng.randrange(os.path.getsize(file)), rng.randrange(8)
        with Damaged(file, flipped(contents(file), place, bit)):
            poke(path, reference, f"{file}, bit {bit} of byte {place}", False)
    for _ in range(10):
        file = rng.choice(files)
        size = rng.randrange(os.path.getsize(file))
        with Damaged(file, contents(file)[:size]):
            poke(path, reference, f"{file} cut to {size} bytes", True)
    for data in (b"", b"just some text\n" * 40, bytes(8192)):
        with Damaged(path, data):
            poke(path, reference, f"{path} with other contents", True)
    check(checkpoint("verify", name)[0] == 0, f"{name}: the test repairs what it damages")


def other_damage():
    """Parts that belong elsewhere, and things that are no files."""
    one, two = "local/s.0.r00001", "local/s.1.r00001"
    first, second = contents(one), contents(two)
    with Damaged(one, second), Damaged(two, first):
        code, out, _ = checkpoint("verify", "local/s")
        check(code == 1 and out.count("DAMAGED") == 2 and "belongs to generation 1" in out, f"swapped parts: {code} {out}")
    part = contents(two)
    os.remove(two)
    code, out, _ = checkpoint("verify", "local/s")
    check(code == 1 and two in out and "local/s.0: generation 1 is whole" in out, f"a part is missing: {code} {out}")
    check(checkpoint("show", "local/s")[1].startswith("local/s.0: generation 1"), "show takes the newest whole copy")
    put(two, part)
    os.makedirs("odd/d.0", exist_ok=True)
    for command in (("ls", "odd/d"), ("ls", "odd"), ("show", "odd"), ("verify", "odd/d.0"), ("diff", "odd", "odd"),
                    ("extract", "odd/d", "t", "-o", "no"), ("prune", "odd/d", "--keep", "1")):
        code, _, _ = checkpoint(*command)
        check(code == 2 or command[0] == "ls", f"{command}: {code}")
    for command in ("ls", "show", "verify"):
        check(checkpoint(command, "nothing/here")[0] == 2, f"{command} of nothing")


def kept_copies():
    """Copies that no run leaves behind at will: without its commit, in small blocks, and with a table far away."""
    corpus = os.path.join(os.environ["TEST_SOURCE"], "tests", "fuzz", "checkpoint_corpus")
    sealed, small, far = (os.path.join(corpus, name) for name in ("sealed", "small_blocks", "far_table"))
    out = checkpoint("ls", sealed)[1]
    check(out.splitlines()[1].split()[1:3] == ["3", "whole"], f"ls of a copy without its commit: {out}")
    code, out, _ = checkpoint("show", sealed)
    check(code == 0 and "whole, but not committed" in out, f"show of a copy without its commit: {out}")
    check(checkpoint("diff", sealed, os.path.join(corpus, "raw"))[:2] == (0, ""), "a commit changes no elements")
    code, out, _ = checkpoint("show", small, "--parts")
    check(code == 0 and "5 blocks" in out and checkpoint("verify", small)[0] == 0, f"show of small blocks: {out}")
    code, out, _ = checkpoint("verify", far)
    check(code == 1 and "ends before its table of part 1" in out, f"verify of a table that is far away: {code} {out}")


def help_texts():
    for command in ("ls", "show", "verify", "diff", "extract", "prune"):
        code, out, _ = checkpoint(command, "--help")
        check(code == 0 and "Examples:" in out and "Exit codes:" in out, f"{command} --help")
        check(checkpoint(command)[0] == 2, f"{command} without arguments")


for directory in ("outputs", "diff", "large", "prune", "odd", "states", "undo", "reference", *CONFIGURATIONS):
    fresh(directory)
seeded = random.Random(20260301)
for directory, options in CONFIGURATIONS.items():
    if save(f"{directory}/s", options):
        whole_copies(f"{directory}/s")
        extracted(f"{directory}/s")
        machine_readable(f"{directory}/s")
        damaged(f"{directory}/s", seeded)
netcdf("zstd/s")
netcdf("local/s")
outputs_are_told()
differences()
more_than_a_portion()
pruned()
run_states()
undo_files()
other_damage()
kept_copies()
help_texts()
finish()
