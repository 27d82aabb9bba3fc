# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What pyproject.toml of the Python package says, checked against its sources without PyPI: the version is the library's, what it names exists,
each module compiles, and each imports only what the package requires, the rest inside of functions. Where numpy and its other needs are
installed, the package is imported from the tree. The test python_package builds and installs it.
"""
import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

try:
    import tomllib
except ImportError:
    print("skipped: Python before 3.11 reads no TOML")
    sys.exit(77)

ROOT = Path(os.environ["TEST_SOURCE"]) / "python"
SOURCE = ROOT / "src" / "tailrace"
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"FAILED: {what}", flush=True)


def names(requirements):
    return {re.match(r"[A-Za-z0-9_-]+", each)[0] for each in requirements}


def imported(nodes):
    """Returns the modules that these statements import from elsewhere."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"tailrace"}


metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())
project = metadata["project"]
check(project["version"] == os.environ["TEST_VERSION"], f"the package is version {project['version']}, the library {os.environ['TEST_VERSION']}")
check((ROOT / project["readme"]).is_file(), f"there is no {project['readme']}")
for pattern in project["license-files"]:
    check(any(ROOT.glob(pattern)), f"there is no file {pattern}")
for name in metadata["tool"]["setuptools"]["package-data"]["tailrace"]:
    check((SOURCE / name).is_file(), f"there is no {name}")
extras = project["optional-dependencies"]
in_parts = set().union(*(names(each) for part, each in extras.items() if part != "all"))
check(names(extras["all"]) == in_parts, f"the extra all is {names(extras['all'])}, the others together {in_parts}")

needed, optional = names(project["dependencies"]), in_parts | {"cftime"}  # a calendar that numpy lacks works without cftime
modules = sorted(SOURCE.glob("*.py"))
check(len(modules) > 20, f"only {len(modules)} modules")
for path in modules:
    tree = ast.parse(path.read_text(), str(path))
    top = imported(tree.body)
    check(top <= needed, f"{path.name} imports {top - needed}, which the package does not require")
    rest = imported(ast.walk(tree)) - needed
    check(rest <= optional, f"{path.name} imports {rest - optional}, which no extra has")
for group in project["entry-points"].values():
    for target in group.values():
        module, name = target.split(":")
        tree = ast.parse((SOURCE / f"{module.removeprefix('tailrace.')}.py").read_text())
        check(any(isinstance(node, ast.ClassDef) and node.name == name for node in tree.body), f"there is no {target}")

missing = sorted(each for each in needed if importlib.util.find_spec(each) is None)
if missing:
    print(f"the package is not imported: {', '.join(missing)} not installed", flush=True)
else:
    done = subprocess.run([sys.executable, "-B", "-c", "import tailrace; tailrace.open"], env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                          capture_output=True, text=True, timeout=50)
    check(done.returncode == 0, f"import tailrace: {done.stderr[-2000:]}")
sys.exit(1 if failures else 0)
