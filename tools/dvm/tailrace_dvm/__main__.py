# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The words of `tailrace dvm`: fc, translate, run."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .diagnostics import TranslationError

TOOLS = Path(os.path.abspath(__file__)).parent.parent / "tools.json"  # compilers, launcher and libraries of this Tailrace
FORTRAN = {".f", ".for", ".ftn", ".f77", ".fpp", ".fdv", ".f90", ".f95", ".f03", ".f08"}
# Options of the compilers whose value may be the next word.
WITH_VALUE = {"-o", "-I", "-D", "-U", "-L", "-l", "-J", "-x", "-include", "-isystem", "-idirafter", "-iquote", "-MF", "-MT", "-MQ",
              "-Xlinker", "-Xpreprocessor", "-Xassembler", "-T", "-u", "-z"}
EXAMPLES = """examples:
  tailrace dvm fc -O3 -o jacobi jacobi.f90 mesh.f90
  tailrace dvm run -n 4 ./jacobi 1000
  tailrace dvm fc -c main.f90 --with mesh.f90
  tailrace dvm translate -o jacobi_mpi.f90 jacobi.f90"""


class Problem(Exception):
    """An error outside of the sources."""


def tools():
    """Returns what this Tailrace was built with. Paths stand relative to the file, so that the tree may be moved."""
    try:
        told = json.loads(TOOLS.read_text())
    except OSError as error:
        raise Problem(f"{TOOLS}: {error.strerror}; it comes with `cmake --install` of a Tailrace with the Fortran face") from error
    for kind in ("modules", "libraries"):
        told[kind] = [os.path.normpath(TOOLS.parent / each) for each in told[kind]]
    return told


def translated(sources, fixed=None):
    """Returns the translations of the sources of one program."""
    try:
        from .fortran.translate import translate_all
    except ModuleNotFoundError as error:
        raise Problem(f"the Python package {error.name} is missing: {sys.executable} -m pip install {error.name}") from error
    texts = []
    for name in sources:
        try:
            texts.append((name, Path(name).read_text(encoding="utf-8", errors="surrogateescape")))
        except OSError as error:
            raise Problem(f"{name}: {error.strerror}") from error
    try:
        return translate_all(texts, fixed)
    except TranslationError as error:
        error.lines = dict(texts).get(error.place.file, "").split("\n")
        raise


def take_with(words):
    """Takes `--with SOURCE` out of the words for the compiler. Returns its values."""
    values = []
    while "--with" in words:
        place = words.index("--with")
        if place + 1 == len(words):
            raise Problem("--with needs the name of a source")
        values.append(words[place + 1])
        del words[place:place + 2]
    return values


def sources_in(words):
    """Returns the places of the sources among the words for the compiler."""
    places, value = [], False
    for place, word in enumerate(words):
        if not value and not word.startswith("-") and Path(word).suffix.lower() in FORTRAN:
            places.append(place)
        value = not value and word in WITH_VALUE
    return places


def write_translations(directory, words, read_along):
    """Puts the names of the translations in the place of those of the sources. Returns the folders of the sources."""
    places = sources_in(words)
    sources = [words[place] for place in places]
    texts = translated([*read_along, *sources])[len(read_along):]
    for number, (place, text) in enumerate(zip(places, texts)):
        source = Path(words[place])
        # .fdv is nothing to the compiler.
        target = Path(directory, str(number), source.stem + (".f" if source.suffix.lower() == ".fdv" else source.suffix))
        target.parent.mkdir()
        target.write_text(text, encoding="utf-8", errors="surrogateescape")
        words[place] = str(target)
    return dict.fromkeys(str(Path(each).parent) for each in sources)


def compile_fortran(words):
    """Translates the sources among the words, and passes all of them to the MPI compiler."""
    if not words or words == ["--help"]:
        print("usage: tailrace dvm fc [--with SOURCE]... WORD...\n\n"
              "Translates the Fortran sources among the words and passes all words to the MPI compiler, with the modules and\n"
              "libraries of this Tailrace. Sources whose modules and procedures others use are given in one command; --with names\n"
              f"sources that are read along and compiled elsewhere.\n\n{EXAMPLES}")
        return 0 if words else 2
    told, words = tools(), list(words)
    read_along = take_with(words)
    with tempfile.TemporaryDirectory(prefix="tailrace_dvm.") as directory:
        folders = [f"-I{folder}" for folder in write_translations(directory, words, read_along)]
        modules = [f"-I{each}" for each in told["modules"]]
        linked = []
        if not {"-c", "-S", "-E", "-fsyntax-only"} & set(words):
            paths = dict.fromkeys(os.path.dirname(each) for each in told["libraries"] if each.endswith(".so"))
            linked = [*told["libraries"], *told["further"], *(f"-Wl,-rpath,{path}" for path in paths)]
        command = [told["fc"], *told["options"], *folders, *modules, *words, *linked]
        try:
            return subprocess.run(command).returncode
        except OSError as error:
            raise Problem(f"{told['fc']}: {error.strerror}; it is the compiler that this Tailrace was built with") from error


def translate(words):
    parser = argparse.ArgumentParser(prog="tailrace dvm translate", description="Prints the translation of a source.")
    parser.add_argument("-o", metavar="FILE", help="writes it to FILE")
    parser.add_argument("--with", metavar="SOURCE", action="append", default=[], dest="read_along",
                        help="another source of the program, for its modules and procedures")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--fixed", action="store_true", help="the sources have fixed form (default: by their names)")
    form.add_argument("--free", action="store_true", help="the sources have free form")
    parser.add_argument("source", metavar="SOURCE")
    given = parser.parse_args(words)
    text = translated([*given.read_along, given.source], True if given.fixed else False if given.free else None)[-1]
    if given.o:
        Path(given.o).write_text(text, encoding="utf-8", errors="surrogateescape")
    else:
        sys.stdout.write(text)
    return 0


def run(words):
    parser = argparse.ArgumentParser(prog="tailrace dvm run", description="Starts a translated program under MPI.")
    parser.add_argument("-n", type=int, default=os.cpu_count(), help="number of processes (default: the processors of this node)")
    parser.add_argument("program", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args(words)
    if given.n < 1:
        parser.error("-n must be at least 1")
    launcher = tools()["launcher"]
    if shutil.which(launcher[0]) is None:
        raise Problem(f"{launcher[0]} is not on the PATH; it is the launcher that this Tailrace was built with")
    here = os.path.join(".", given.program)
    program = here if os.sep not in given.program and os.access(here, os.X_OK) else given.program
    command = [*launcher, "-n", str(given.n), program, *given.arguments]
    sys.stdout.flush()
    os.execvp(command[0], command)


WORDS = {"fc": compile_fortran, "translate": translate, "run": run}


def main():
    parser = argparse.ArgumentParser(
        prog="tailrace dvm", formatter_class=argparse.RawDescriptionHelpFormatter, epilog=EXAMPLES, allow_abbrev=False,
        description="Programs with directives of DVM in Fortran; docs/dvm.md says which are supported.\n\n"
                    "  fc         translates and compiles; its options are those of the compiler\n"
                    "  translate  prints or writes the translation of a source\n"
                    "  run        starts a program")
    parser.add_argument("word", choices=WORDS, metavar="fc|translate|run")
    given = parser.parse_args(sys.argv[1:2])
    try:
        return WORDS[given.word](sys.argv[2:])
    except TranslationError as error:
        print(error.text(error.lines), file=sys.stderr)
    except (Problem, OSError) as error:
        print(f"tailrace dvm: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
