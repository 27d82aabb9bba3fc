#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Writes one of each kind of file with two installed versions of the library, and compares names and bytes.

    git worktree add /tmp/old v0.1.0 && cmake ... && cmake --install ... --prefix /tmp/before
    tests/release/compare.py /tmp/before /tmp/after
    tests/release/compare.py /tmp/before /tmp/after --launcher "mpiexec.mpich" --ranks 1 3

Each version compiles the same programs (kinds.c, kinds.f90) against its own headers. Random numbers are the same in both
(same_run.c), and the time of a save too. Exit code 1: the files differ, and it says which and where."""
import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def build(prefix, folder, compilers):
    """Returns the programs that this version has compiled."""
    env = dict(os.environ, PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
    flags = run(["pkg-config", "--cflags", "--libs", "tailrace"], env=env).split() + [f"-Wl,-rpath,{prefix}/lib"]
    folder.mkdir()
    programs = []
    for source, compiler in (("kinds.c", compilers[0]), ("kinds.f90", compilers[1])):
        program = folder / source.replace(".", "_")
        run([compiler, HERE / source, "-o", program, *flags], cwd=folder)
        programs.append(program)
    return programs


def write(program, folder, launcher, ranks, servers, preload):
    folder.mkdir(parents=True)
    env = dict(os.environ, TAILRACE_SERVERS=str(servers), TAILRACE_LOG="error",
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
    # The launcher may set LD_PRELOAD itself.
    with_preload = ["sh", "-c", 'LD_PRELOAD="$0${LD_PRELOAD:+:$LD_PRELOAD}" exec "$1"', preload] if preload else []
    run([*launcher, "-n", ranks + servers, *with_preload, program], cwd=folder, env=env)


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def differences(before, after):
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            yield f"{name}: only the version {'after' if name in after else 'before'} writes it"
        elif before[name] != after[name]:
            one, other = before[name], after[name]
            at = next((i for i, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))
            yield f"{name}: {len(one)} and {len(other)} bytes, different from byte {at} on"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("before", type=Path)
    options.add_argument("after", type=Path)
    options.add_argument("--ranks", type=int, nargs="+", default=[1, 3], help="compute ranks (default: 1 3)")
    options.add_argument("--servers", type=int, nargs="+", default=[0, 1, 2], help="I/O servers (default: 0 1 2)")
    options.add_argument("--launcher", default="mpirun --oversubscribe", help="what starts a job, without -n")
    options.add_argument("--compilers", nargs=2, default=["mpicc", "mpifort"], metavar=("C", "FORTRAN"))
    options.add_argument("--random-differs", action="store_true", help="to see that differences are found")
    args = options.parse_args()
    work = Path(tempfile.mkdtemp(prefix="tailrace_release_"))
    try:
        preload = work / "same_run.so"
        run(["cc", "-shared", "-fPIC", HERE / "same_run.c", "-o", preload])
        versions = {name: build(prefix.absolute(), work / name, args.compilers)
                    for name, prefix in (("before", args.before), ("after", args.after))}
        compared, found = 0, []
        for ranks in args.ranks:
            for servers in args.servers:
                files = {}
                for name, programs in versions.items():
                    folder = work / f"{name}_{ranks}_{servers}"
                    for program in programs:
                        fixed = None if args.random_differs and name == "after" else preload
                        write(program, folder / program.name, shlex.split(args.launcher), ranks, servers, fixed)
                    files[name] = files_of(folder)
                compared += len(files["before"])
                found += [f"{ranks} ranks and {servers} servers: {each}" for each in differences(files["before"], files["after"])]
        for each in found:
            print(each)
        print(f"{compared} files compared, {len(found)} differ")
        return 1 if found or compared == 0 else 0
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
