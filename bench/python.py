#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The Python reader on 48 files of GRIB2 with 40 levels of 3 fields each (--quick: 12 files), written by a real run:

  open     tr.open of the pattern; then run.to_xarray(), lazy, against cfgrib without its index (xarray.open_mfdataset of the same files); each
           time in a new process that has imported everything
  decode   messages decoded for one level of one field in one step: counted; and its time against a bare ecCodes loop over that message
  all      all messages through dask with threads, against a loop of ecCodes in one thread, for orientation

The packages of PyPI are installed once into out/bench/python-venv; --python names an interpreter that has them already (tailrace is taken from
python/src in any case).

`./dev bench python` builds and calls this. Medians of at least five, with the lowest and the highest; the exit code is 1 if a bound was missed.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import Bench, Failure, Figure, bench_parser, run_main, say  # noqa: E402

GROUPS = ("open", "decode", "all")
SOURCE = Path(__file__).resolve().parent.parent
NEEDS = ("numpy", "xarray", "eccodes", "xxhash", "dask", "cfgrib")
OPEN_BOUND, DATASET_BOUND, OVER_CFGRIB = 0.2, 1.0, 10
TURNS, CFGRIB_TURNS = 7, 2

BEGIN = """
import glob, json, sys, time
import numpy, xarray, eccodes, dask, dask.array
import tailrace as tr
import tailrace.dataset
pattern, base = sys.argv[1], "2026-03-01T00:00Z"
"""
CODES = {
    "open": BEGIN + """
begin, used = time.perf_counter(), time.process_time()
run = tr.open(pattern, base=base)
opened, used_to_open = time.perf_counter(), time.process_time()
data = run.to_xarray()
print(json.dumps({"open": opened - begin, "dataset": time.perf_counter() - opened, "open_used": used_to_open - used,
                  "dataset_used": time.process_time() - used_to_open, "shape": data["t"].shape, "decoded": tr.decoded_messages()}))
""",
    "cfgrib": BEGIN + """
import cfgrib, warnings
warnings.simplefilter("ignore")
files = sorted(glob.glob(pattern.replace("{lead:03h}", "*") if "{" in pattern else pattern))
files = [each for each in files if each.endswith(".grib2")]
begin = time.perf_counter()
data = xarray.open_mfdataset(files, engine="cfgrib", combine="nested", concat_dim="step", indexpath="", chunks={}, backend_kwargs={"indexpath": ""})
print(json.dumps({"dataset": time.perf_counter() - begin, "shape": data["t"].shape}))
""",
    "decode": BEGIN + """
run = tr.open(pattern, base=base)
data = run.to_xarray()
out = []
step = run.steps[1]
for turn in range(12):
    before, begin = tr.decoded_messages(), time.perf_counter()
    values = data["t"][1, 20].values
    took, decoded = time.perf_counter() - begin, tr.decoded_messages() - before
    begin = time.perf_counter()
    step.read("t", step._run.fields["t"].levels[20])
    direct = time.perf_counter() - begin
    record = [each for each in step._records if each["field"] == 0 and each["level"] == 20][0]
    begin = time.perf_counter()
    with open(step.path, "rb") as file:
        file.seek(int(record["offset"]))
        handle = eccodes.codes_new_from_message(file.read(int(record["length"])))
    peer = eccodes.codes_get_values(handle)
    eccodes.codes_release(handle)
    out.append({"took": took, "direct": direct, "decoded": decoded, "peer": time.perf_counter() - begin})
    assert abs(peer.reshape(values.shape) - values).max() <= 1e-3 * abs(peer).max()
print(json.dumps(out[2:]))
""",
    "all": BEGIN + """
run = tr.open(pattern, base=base)
data = run.to_xarray(chunks={"lead": 4})
begin = time.perf_counter()
mean = float(data["t"].mean().compute(scheduler="threads"))
took = time.perf_counter() - begin
begin = time.perf_counter()
total, count = 0.0, 0
for step in run:
    with open(step.path, "rb") as file:
        for record in step._records[step._records["field"] == 0]:
            file.seek(int(record["offset"]))
            handle = eccodes.codes_new_from_message(file.read(int(record["length"])))
            values = eccodes.codes_get_values(handle)
            total, count = total + values.sum(), count + values.size
            eccodes.codes_release(handle)
assert abs(total / count - mean) < 1e-3 * abs(mean) + 1e-3
print(json.dumps({"took": took, "peer": time.perf_counter() - begin}))
""",
}


class PythonBench(Bench):
    def __init__(self, args):
        super().__init__(args)
        self.python = args.python or self.environment()
        self.pattern = str(self.work / "fc+{lead:03h}.grib2")
        steps, columns, rows = (12, 120, 96) if args.quick else (48, 156, 126)
        say(f"writing {steps} files of 3 x 40 levels of {columns} x {rows}")
        self.launcher.run(2, "stream_model", ["--columns", columns, "--rows", rows, "--levels", 40, "--fields", 3, "--steps", steps, "--sweeps", 1,
                                              "--file", self.pattern], {"servers": 1})

    @staticmethod
    def environment():
        """An interpreter with the packages of PyPI, made once."""
        venv = SOURCE / "out" / "bench" / "python-venv"
        python = str(venv / "bin" / "python")
        if subprocess.run([python, "-c", f"import {', '.join(NEEDS)}"], capture_output=True).returncode != 0 if venv.exists() else True:
            say(f"installing {', '.join(NEEDS)} into {venv}")
            for command in ([sys.executable, "-m", "venv", str(venv)], [python, "-m", "pip", "install", "--quiet", *NEEDS]):
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    raise Failure(f"{' '.join(command)}: {done.stderr.strip()[-500:]}; give --python with an interpreter that has them")
        return python

    def measured(self, code, timeout=600):
        env = {**os.environ, "PYTHONPATH": str(SOURCE / "python" / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([self.python, "-c", CODES[code], self.pattern], capture_output=True, text=True, env=env, timeout=timeout)
        if done.returncode != 0:
            raise Failure(f"{code}: {done.stderr.strip()[-1500:]}")
        return json.loads(done.stdout)

    def open(self):
        ours = [self.measured("open") for _ in range(TURNS)]
        peers = [self.measured("cfgrib") for _ in range(CFGRIB_TURNS)]
        self.show("Opening", [
            Figure("open.run", [each["open"] for each in ours], "s", OPEN_BOUND),
            Figure("open.to_xarray", [each["dataset"] for each in ours], "s", DATASET_BOUND),
            Figure("open.run.processor", [each["open_used"] for each in ours], "s", note="of the same, as the clock of the process tells"),
            Figure("open.to_xarray.processor", [each["dataset_used"] for each in ours], "s", note="likewise"),
            Figure("open.decoded", [each["decoded"] for each in ours], "messages", 0),
            Figure("open.cfgrib", [each["dataset"] for each in peers], "s", note="the peer, without its index"),
            Figure("open.cfgrib_over_ours", [each["dataset"] / (mine["open"] + mine["dataset"]) for mine in ours for each in peers], "ratio",
                   OVER_CFGRIB, "higher")])

    def decode(self):
        turns = self.measured("decode")
        self.show("One level of one field", [
            Figure("decode.messages", [each["decoded"] for each in turns], "messages", 1),
            Figure("decode.xarray", [each["took"] * 1e3 for each in turns], "ms"),
            Figure("decode.step_read", [each["direct"] * 1e3 for each in turns], "ms"),
            Figure("decode.eccodes", [each["peer"] * 1e3 for each in turns], "ms", note="the peer: open, read, decode")])

    def all(self):
        turns = [self.measured("all") for _ in range(3 if self.args.quick else 5)]
        self.show("All messages of one field", [Figure("all.eccodes_over_ours", [each["peer"] / each["took"] for each in turns], "ratio",
                                                       note="a loop in one thread over dask with threads")])


def main():
    parser = bench_parser(__doc__, GROUPS, "12 files of 120 x 96 points", "the same as without")
    parser.add_argument("--python", help="an interpreter that has " + ", ".join(NEEDS))
    return PythonBench(parser.parse_args()).measure("python", GROUPS)


run_main(main)
