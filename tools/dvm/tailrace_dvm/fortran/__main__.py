# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Translates Fortran sources of one program: python -m tailrace_dvm.fortran [-o FILE] SOURCE..."""

import argparse
import sys
from pathlib import Path

from ..diagnostics import TranslationError
from .translate import translate_all


def main():
    parser = argparse.ArgumentParser(prog="tailrace_dvm.fortran", description="Translates Fortran with directives of DVM.")
    parser.add_argument("-o", metavar="FILE", help="where the translation of the last source goes (default: standard output)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--fixed", action="store_true", help="the sources have fixed form (default: by their names)")
    form.add_argument("--free", action="store_true", help="the sources have free form")
    parser.add_argument("sources", nargs="+")
    given = parser.parse_args()
    texts = []
    for name in given.sources:
        try:
            texts.append((name, Path(name).read_text(encoding="utf-8", errors="surrogateescape")))
        except OSError as error:
            sys.exit(f"{name}: {error.strerror}")
    try:
        out = translate_all(texts, True if given.fixed else False if given.free else None)[-1]
    except TranslationError as error:
        lines = dict(texts).get(error.place.file, "").split("\n")
        sys.exit(error.text(lines))
    if given.o:
        Path(given.o).write_text(out, encoding="utf-8", errors="surrogateescape")
    else:
        sys.stdout.write(out)


main()
