# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Builds wheel and sdist of the Python package, installs the wheel with its extras into a virtual environment that was empty, writes files of
each format with real runs, and lets the cases beside this script (pytest) read them. What is installed from the sdist reads a file, too. If the
environment has mypy, that checks the types.

The environment is BUILD/python-venv. It is made once, and again when python/pyproject.toml has changed: that needs PyPI. Without it the test is
skipped. TAILRACE_TEST_PYTHON_INDEX names another index.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
INDEX = os.environ.pop("TAILRACE_TEST_PYTHON_INDEX", "")  # the library would take it for a misspelt setting
from small_model import COMMAND, LIMIT, MODEL, MPIRUN, arguments, check, environment, finish, fresh, run  # noqa: E402

SOURCE, BUILD = Path(os.environ["TEST_SOURCE"]), Path(os.environ["TEST_BUILD"])
VENV = BUILD / "python-venv"
PYTHON = str(VENV / "bin" / "python")
BUILDERS = ["build", "setuptools>=77"]
# cfgrib's index has the keys of its version (docs/formats/other-indexes.md).
TOOLS = ["pytest", "cftime", "matplotlib", "cfgrib==0.9.15.1"]
HAS = os.environ["TEST_HAS"].split(",")


def skip(why):
    print(f"skipped: {why}", flush=True)
    sys.exit(77)


def own_pip():
    """Returns the command of this Python's pip, or None if it is older than 22.3 and cannot install into another
    environment. A pip in each environment would cost more than all small packages."""
    command = [sys.executable, "-m", "pip", "--python", PYTHON]
    asked = subprocess.run([*command, "--version"], capture_output=True, text=True)
    return command if asked.returncode == 0 else None


def pip(*args, limit=400):
    # Python compiles what the tests import, a third of the modules, and keeps it (PYTHONPYCACHEPREFIX).
    command = [*(own_pip() or [PYTHON, "-m", "pip"]), "--disable-pip-version-check", "install", "--quiet", "--no-compile", "--retries", "1",
               "--timeout", "20"]
    return subprocess.run([*command, *(["--index-url", INDEX] if INDEX else []), *args], capture_output=True, text=True, timeout=limit)


def built():
    """Makes the wheel and the sdist from a copy of the package, so that nothing is left in the source tree."""
    copy, out = Path("package").resolve(), Path("dist").resolve()
    for each in (copy, out):
        shutil.rmtree(each, ignore_errors=True)
    shutil.copytree(SOURCE / "python", copy, ignore=shutil.ignore_patterns("*.egg-info", "build", "dist", "__pycache__"))
    done = subprocess.run([PYTHON, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)], capture_output=True, text=True)
    check(done.returncode == 0, f"python -m build: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    found = sorted(path.name.split("-")[0] + path.suffix for path in out.glob("*"))
    if not check(found == ["tailrace.gz", "tailrace.whl"], f"python -m build made {found}"):
        finish()
    return next(out.glob("*.whl"))


def check_sdist(data):
    """Installs the sdist into a directory of its own, and reads a file with it."""
    directory = os.path.abspath(fresh("from-sdist"))
    done = pip("--no-deps", "--no-build-isolation", "--target", directory, str(next(Path("dist").glob("*.tar.gz"))))
    check(done.returncode == 0, f"the sdist cannot be installed: {done.stderr[-2000:]}")
    reading = "import sys, tailrace as tr; run = tr.open(sys.argv[1]); print(tr.__file__, run.complete, len(run), run.step('5h')['t'].shape)"
    read = subprocess.run([PYTHON, "-c", reading, f"{data}/bin/one.bin"], env={**environment(), "PYTHONPATH": directory}, capture_output=True, text=True,
                          timeout=LIMIT)
    check(read.stdout == f"{directory}/tailrace/__init__.py True 6 (3, 11, 13)\n", f"with what the sdist installs: {read.stdout}{read.stderr[-2000:]}")


def check_types():
    if subprocess.run([PYTHON, "-c", "import mypy"], capture_output=True).returncode != 0:
        print("the types are not checked: mypy is not installed (CONTRIBUTING.md)", flush=True)
        return
    done = subprocess.run([PYTHON, "-m", "mypy", "--cache-dir", str(VENV / "mypy")], cwd="package", capture_output=True, text=True, timeout=LIMIT)
    check(done.returncode == 0, f"mypy: {done.stdout[-4000:]}{done.stderr[-2000:]}")


def environment_of_tests():
    """Makes the virtual environment if it does not exist, and installs the wheel. A new environment also gets the
    packages that the wheel's metadata name, and the tools of the cases."""
    stamp = VENV / "made-for"
    wanted = hashlib.sha256((SOURCE / "python/pyproject.toml").read_bytes() + repr((BUILDERS, TOOLS)).encode()).hexdigest()
    is_new = not stamp.exists() or stamp.read_text() != wanted
    if is_new:
        shutil.rmtree(VENV, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(VENV)], capture_output=True, text=True)
        if made.returncode == 0 and own_pip() is None:
            made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
        if made.returncode != 0:
            skip(f"python3 -m venv: {(made.stdout + made.stderr).strip().splitlines()[-1:]} (Debian's python3-venv)")
        tools = pip(*BUILDERS)
        if tools.returncode != 0:
            skip(f"PyPI was not reached: {tools.stderr.strip().splitlines()[-1:]}")
    wheel = built()
    installed = pip(f"{wheel}[all]", *TOOLS) if is_new else pip("--no-deps", "--force-reinstall", str(wheel))
    if installed.returncode != 0 and re.search("connection broken|timed out|Max retries", installed.stderr):
        shutil.rmtree(VENV)
        skip(f"PyPI was not reached: {installed.stderr.strip().splitlines()[-1:]}")
    if check(installed.returncode == 0, f"the wheel cannot be installed: {installed.stderr[-2000:]}"):
        stamp.write_text(wanted)
    else:
        finish()


def written(data):
    """Writes six steps of two fields in each format that this build has, to a file for each step and to one file; and
    checkpoints."""
    formats = {"bin": "format=raw", "nc": "", **{ending: "" for ending, part in (("grib2", "GRIB"), ("grib1", "GRIB"), ("nc4", "HDF5"), ("zarr", "ZARR")) if part in HAS}}
    for ending, options in formats.items():
        name = f"{data}/{ending}/fc_{{base:%Y%m%d%H}}+{{lead:03h}}.{ending}"
        for path, ranks, servers in ((name, 2, 0), (f"{data}/{ending}/one.{ending}", 3, 1)):
            code, _, err = run(ranks, arguments(path, f"{options} conventions=weather", 5), TAILRACE_SERVERS=str(servers))
            check(code == 0, f"{path}: {code}, {err}")
    if "grib2" in formats:
        os.mkdir(f"{data}/cfgrib")
        code, _, err = run(2, arguments(f"{data}/cfgrib/fc.grib2", "index=cfgrib centre=98 member=7 members=51", 5), TAILRACE_SERVERS="1")
        check(code == 0, f"index=cfgrib: {code}, {err}")
    if "nc4" in formats:
        for name, fields in (("chunks", "chunks=4x5"), ("plain", "compress=none")):
            code, _, err = run(1, arguments(f"{data}/nc4/{name}.nc4", "", 2), SMALL_MODEL_FIELDS=fields)
            check(code == 0, f"{name}: {code}, {err}")
    if "GRIB" in HAS:
        grids = subprocess.run([*MPIRUN, "-n", "1", sys.argv[3], fresh(f"{data}/grids"), *(ending for ending in formats if ending not in ("bin", "grib1"))],
                               env=environment(), capture_output=True, text=True, timeout=LIMIT)
        check(grids.returncode == 0, f"grids: {grids.stderr}")
    for coding in ("none", *(name for name in ("lz4", "zstd") if name.upper() in HAS)):
        for mode in ("parallel", "local"):
            save(f"{data}/{mode}-{coding}", f"mode={mode} compress={coding}" if coding != "none" else f"mode={mode}")


def save(name, options):
    """Writes three generations of a checkpoint. The program also writes a file NAME.out."""
    done = subprocess.run([*MPIRUN, "-n", "3", sys.argv[2], name, options], env=environment(), capture_output=True, text=True, timeout=LIMIT)
    check(done.returncode == 0, f"{name}: {done.returncode}, {done.stderr}")


# Installing waits for the network, and runs write files.
directory = os.path.abspath(fresh("data"))
with ThreadPoolExecutor() as pool:
    made = pool.submit(environment_of_tests)
    written(directory)
    made.result()
check_sdist(directory)
check_types()
variables = {key: value for key, value in environment().items() if key != "PYTHONPATH"}
variables.update(TEST_DATA=directory, TEST_MODEL=MODEL, TEST_RESTART_MODEL=sys.argv[4], TEST_TIMES=sys.argv[5], TEST_STATIC_FIELDS=sys.argv[6], TEST_SCALARS=sys.argv[7], TEST_TYPES=sys.argv[8], TEST_WEATHER="".join(sys.argv[9:]), TEST_LAUNCHER=os.environ["TEST_MPIRUN"], TEST_COMMAND=COMMAND, MPLBACKEND="Agg",
                 PYTHONPYCACHEPREFIX=str(VENV / "pycache"))
cases = subprocess.run([PYTHON, "-P" if sys.version_info >= (3, 11) else "-s", "-m", "pytest", "-q", "-x", "--durations=8", "-p", "no:cacheprovider", "-o", "python_files=test_*.py",
                        "--rootdir", str(SOURCE / "tests/python"), str(SOURCE / "tests/python")], env=variables, timeout=500)
check(cases.returncode == 0, f"pytest ended with {cases.returncode}")
finish()
