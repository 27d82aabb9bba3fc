#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What steps of a stream cost in each format, from the first put of four until the last is durable, against peers that write the same
values in the same run:

  storage   raw, cdf5   one process that writes the bytes of a step by pwrite of 16 MiB and fsync; for cdf5 also PnetCDF on the compute
                        ranks (CDF-5, ncmpi_put_vara_float_all, ncmpi_sync; the better of collective buffering on and off), with each
                        MPI-IO of the MPI
            netcdf4     compressed: HDF5's and netCDF-C's collective writes on as many ranks as the job has, shuffle and deflate 1, with
                        each MPI-IO; not compressed: H5Dwrite of one process
            zarr        zarr-python 3 on as many cores as the job has, with the same codec (--compress); without compression also one
                        process with pwrite
  cache     the same on a file system in memory (/dev/shm), where fsync costs nothing: what the library itself takes

zarr-python is run by the Python that --python or BENCH_PYTHON names (default: python3).

`./dev bench formats` builds and calls this. Medians of at least five, the first turn dropped, with the lowest and the highest; the exit
code is 1 if a bound was missed.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import MIB, Bench, Failure, Figure, bench_parser, run_main, say  # noqa: E402

GROUPS = ("storage", "cache")
FORMATS = ("raw", "cdf5", "netcdf4", "zarr")
TURNS = 6  # of contenders that are programs of their own
IN_TURN = 4  # steps: `burst` of formats/contest.h
COMPRESSIONS = ("blosc_zstd:1", "blosc_lz4:5", "zstd:1", "gzip:1", "none")  # with levels, which peers are told too
# Compute ranks and servers: beside the model, two of them, and without any.
JOBS = ((1, 1), (1, 2), (1, 0), (2, 0))
OVER_PLAIN, OVER_PNETCDF, OVER_PARALLEL, OVER_SERIAL, OVER_ZARR = 0.85, 1.3, 3, 0.9, 2
LAYERS = {"ompio": {"OMPI_MCA_io": "ompio"}, "romio": {"OMPI_MCA_io": "romio321"}}
ZARR_PEER = Path(__file__).resolve().parent / "formats" / "zarr_peer.py"


class Contender:
    """A running program that writes when it is told to: by one line for each turn, which it answers with the seconds and the bytes of
    the values. Between turns it sleeps."""

    def __init__(self, name, process, path, word="ours"):
        self.name, self.process, self.path, self.word = name, process, path, word
        self.rates = []
        self.bytes = 0

    def turn(self):
        self.process.stdin.write(self.word + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            raise Failure(f"{self.name} ended early")
        self.bytes += int(answer[1])
        self.rates.append(int(answer[1]) / 1e6 / float(answer[0]))

    def end(self):
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        if self.process.wait(timeout=120) != 0:
            raise Failure(f"{self.name}: exit code {self.process.returncode}")

    def ratio(self):
        """How much smaller the file is than the values."""
        below = [self.path] if self.path.is_file() else [each for each in self.path.rglob("*") if each.is_file()]
        return self.bytes / sum(each.stat().st_size for each in below)


class FormatsBench(Bench):
    def __init__(self, args):
        super().__init__(args)
        self.size, self.levels = (500, 20) if args.quick else (2000, 10) if args.large else (1000, 10)
        self.steps = 9 if not args.quick and not args.large else 6
        self.zarr_version = None
        self.python = args.python or os.environ.get("BENCH_PYTHON") or "python3"
        say(f"steps of {self.size ** 2 * self.levels * 4 / MIB:.0f} MiB")

    def storage(self):
        self.jobs("storage", self.work)

    def cache(self):
        with tempfile.TemporaryDirectory(prefix="tailrace-bench-", dir="/dev/shm") as directory:
            self.jobs("cache", Path(directory))

    def jobs(self, group, directory):
        for format in self.args.format or FORMATS:
            for ranks, servers in JOBS:
                name = f"{group}.{format}.n{ranks}s{servers}"
                if format in ("raw", "cdf5"):
                    self.job(name, directory, format, ranks, servers)
                    continue
                if format == "netcdf4":
                    for deflate in (1, 0):
                        self.netcdf4(f"{name}.deflate{deflate}", directory, ranks, servers, deflate)
                    continue
                for compress in self.args.compress or ("blosc_zstd:1", "none"):
                    self.zarr(f"{name}.{compress.replace(':', '')}", directory, ranks, servers, compress)

    def job(self, name, directory, format, ranks, servers):
        layers = LAYERS if format == "cdf5" and self.launcher.openmpi else {"": {}}
        figures = []
        for layer, environment in layers.items():
            run = self.launcher.run(ranks + servers, "format_rate", [
                "--format", format, "--size", self.size, "--levels", self.levels, "--steps", self.steps, "--name",
                directory / "rate"], {"servers": servers}, environment=environment, timeout=1200)
            for left in directory.glob("rate.*"):
                left.unlink()
            ours, plain = run["ours"][1:], run["plain"][1:]
            if not figures:
                figures += [Figure(f"{name}.plain_over_ours", [p / o for p, o in zip(plain, ours)], "ratio", OVER_PLAIN, "higher"),
                            Figure(f"{name}.rate", [run["bytes"] / 1e6 / o for o in ours], "MB/s", note="until durable"),
                            Figure(f"{name}.plain_rate", [run["bytes"] / 1e6 / p for p in plain], "MB/s", note="the peer")]
            if format == "cdf5" and "direct" in run:
                best = min(run["direct"][1:], run["buffered"][1:], key=sum)
                figures.append(Figure(f"{name}.pnetcdf_over_ours.{layer}", [b / o for b, o in zip(best, ours)], "ratio", OVER_PNETCDF,
                                      "higher", note="with" if best == run["buffered"][1:] else "without collective buffering"))
        self.show(f"{name}: {ranks} compute rank(s), {servers} server(s)", figures)

    # ---- contenders that are programs of their own

    def start(self, name, program, directory, ranks, compress, servers=0, format="", environment=None, values=False):
        """Starts one of them; ours has its name without the ending, which is the format."""
        path = directory / "rate" if format else directory / f"{name}.nc4"
        arguments = ["--format", format or "none", "--size", self.size, "--levels", self.levels, "--steps", TURNS, "--name", path,
                     "--compress", compress, "--deflate", compress.partition(":")[2] or 0, "--buffering", "disable", "--turns", 1, "--values", int(values)]
        process = self.launcher.start(ranks + servers, program, arguments, {"servers": servers}, environment, stdin=subprocess.PIPE)
        return Contender(name, process, Path(f"{path}.{format}") if format else path)

    @staticmethod
    def cores(processes):
        """The cores that so many processes of ours have: peers get as many ranks or threads."""
        return min(processes, len(os.sched_getaffinity(0)))

    def netcdf4(self, name, directory, ranks, servers, deflate):
        compress = f"deflate:{deflate}" if deflate else "none"
        contenders = [self.start("ours", "format_rate", directory, ranks, compress, servers, "netcdf4")]
        if deflate:
            for program, peer in (("format_hdf5_parallel", "hdf5"), ("format_netcdf4", "netcdf")):
                if self.launcher.find(program) is None:
                    say(f"{name}: {program} was not built, since its library is not installed")
                    continue
                for layer, environment in (LAYERS if self.launcher.openmpi else {"": {}}).items():
                    contenders.append(self.start(f"{peer}.{layer}".rstrip("."), program, directory, self.cores(ranks + servers), compress,
                                                 environment=environment))
        elif self.launcher.find("format_hdf5_serial"):
            contenders.append(self.start("hdf5", "format_hdf5_serial", directory, 1, compress))
        else:
            say(f"{name}: format_hdf5_serial was not built, since its library is not installed")
        bounds = dict.fromkeys((each.name for each in contenders[1:]), OVER_PARALLEL if deflate else OVER_SERIAL)
        self.contest(name, directory, ranks, servers, contenders, bounds)

    def zarr(self, name, directory, ranks, servers, compress):
        contenders = [self.start("ours", "format_rate", directory, ranks, compress, servers, "zarr", values=True)]
        bounds = {}
        if compress == "none":
            contenders.append(Contender("plain", contenders[0].process, directory / "rate.plain", "plain"))
            bounds["plain"] = OVER_PLAIN
        if self.has_zarr():
            cores = self.cores(ranks + servers)
            store = directory / "peer.zarr"
            command = [self.python, ZARR_PEER, "--name", store, "--values", directory / "rate.values", "--size", self.size, "--levels",
                       self.levels, "--steps", TURNS * IN_TURN, "--in-turn", IN_TURN, "--compress", compress, "--cores", cores]
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            contenders.append(Contender("zarr_python", process, store))
            bounds["zarr_python"] = OVER_ZARR
        self.contest(name, directory, ranks, servers, contenders, bounds)

    def has_zarr(self):
        """Whether that Python has zarr-python 3; says so once if it has not."""
        if self.zarr_version is None:
            try:
                answer = subprocess.run([self.python, ZARR_PEER, "--check"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                self.zarr_version = answer.stdout.strip() if answer.returncode == 0 else ""
            except OSError:
                self.zarr_version = ""
            say(f"zarr-python {self.zarr_version}" if self.zarr_version else
                f"the peer of zarr is not installed: {self.python} has no zarr-python 3, so that no ratio is shown; name a Python that has "
                "it by --python or BENCH_PYTHON")
        return bool(self.zarr_version)

    def contest(self, name, directory, ranks, servers, contenders, bounds):
        """In each turn all write once. Ours goes first and last by turns; the first turn is dropped and shown by itself."""
        try:
            for turn in range(TURNS):
                for each in contenders if turn % 2 == 0 else reversed(contenders):
                    each.turn()
            for each in contenders:
                each.end()
            ratios = [each.ratio() for each in contenders]
        finally:
            for each in contenders:
                if each.process.poll() is None:
                    each.process.kill()
                    each.process.wait()
            for left in directory.glob("*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        ours = contenders[0].rates
        figures = [Figure(f"{name}.ours_over_{peer.name}", [o / p for o, p in zip(ours[1:], peer.rates[1:])], "ratio", bounds[peer.name],
                          "higher") for peer in contenders[1:]]
        for each, ratio in zip(contenders, ratios):
            figures.append(Figure(f"{name}.{each.name}_rate", each.rates[1:], "MB/s",
                                  note=f"first {each.rates[0]:.0f}, {ratio:.2f} times smaller"))
        self.show(f"{name}: {ranks} compute rank(s), {servers} server(s)", figures)


def main():
    parser = bench_parser(__doc__, GROUPS, quick="steps of 19 MiB", large="steps of 153 MiB, which take 15 GB")
    parser.add_argument("--format", choices=FORMATS, action="append", help="one format; may be repeated")
    parser.add_argument("--compress", choices=COMPRESSIONS, action="append",
                        help="how both sides compress zarr; may be repeated (default: blosc_zstd:1 and none)")
    parser.add_argument("--python", help="a Python that has zarr-python 3 (default: BENCH_PYTHON, then python3)")
    args = parser.parse_args()
    return FormatsBench(args).measure("formats", GROUPS)


if __name__ == "__main__":
    run_main(main)
