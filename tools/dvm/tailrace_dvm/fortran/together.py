# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Unformatted files that all ranks read and write together: the Fortran files of the library, by their units."""

import re

from ..diagnostics import TranslationError
from .text import masked, names, split, squeezed, uses

_OPEN = ("unit", "file", "access", "form", "action", "status", "position", "convert", "iostat", "iomsg", "err")
_INQUIRE = ("unit", "opened", "name", "access", "form", "action", "pos", "size", "iostat", "err")


class Together:
    def __init__(self, files):
        self.files = files
        self.writer = files.writer

    @property
    def known(self):
        return self.writer.program.units_together

    def opens(self, statement, given, mode):
        """Whether the file that is opened here belongs to all ranks. Notes its unit."""
        access = squeezed(given.get("access", "'sequential'")).strip("'\"")
        form = squeezed(given.get("form", "'unformatted'" if access in ("stream", "direct") else "'formatted'"))
        letters = set(mode.modes) if mode else set()
        if form.strip("'\"") != "unformatted" or access == "direct":
            if "local" in letters:
                raise TranslationError(mode.place, "IO_MODE(LOCAL) of a formatted or a direct access file is not supported yet")
            return False
        unit = squeezed(given["unit"])
        found = ("l" if "local" in letters else "p" if "parallel" in letters else "") + ("s" if "async" in letters else "")
        if self.known.setdefault(unit, found) != found:
            raise self.files.fail(f"the unit {given['unit']} is opened with two modes: that is not supported", statement,
                                  hint="Take another unit number.")
        return True

    def has(self, given):
        return "unit" in given and squeezed(given["unit"]) in self.known

    def statement(self, statement, word, given, items):
        """Returns (statements before, statements)."""
        self.writer.declare("dvmf", "type(tr_file), pointer :: dvmf")
        unit = given["unit"]
        lines = [f"dvmf => dvm_unit(int({unit}))"]
        status, behind = self._status(given)
        if word == "open":
            lines += self._open(statement, given, status)
        elif word == "close":
            how = f"status={given['status']}" if "status" in given else ""
            lines += [f"call dvmf%close({_list(how, status)})", f"call dvm_close(int({unit}))"]
        elif word in ("rewind", "backspace", "endfile", "flush"):
            lines.append(f"call dvmf%{word}({status})")
        elif word == "inquire":
            self._check(statement, given, _INQUIRE, word)
            wanted = [f"{k}={v}" for k, v in given.items() if k not in ("unit", "err", "iostat")]
            lines.append(f"call dvmf%inquire({', '.join(wanted)})")
        else:
            before, moved = self._items(statement, word, given, items)
            lines += moved + [f"call dvmf%end({status})"]
            if word == "read" and "s" in self.known[squeezed(unit)]:
                wait = f"call dvmf%wait({status})"
                lines.append(wait if not status else f"if ({status.split('=')[1]} == 0) {wait}")
            return before, lines + behind
        return [], lines + behind

    def _status(self, given):
        """Returns the argument with which errors come back, and what is done with it."""
        labels = [(k, given[k]) for k in ("err", "end") if k in given]
        variable = given.get("iostat")
        if labels and variable is None:
            variable = self.writer.integer("dvm_status")
        behind = []
        for kind, label in labels:
            test = f"{variable} > 0" if kind == "err" else f"is_iostat_end({variable})"
            behind.append(f"if ({test}) go to {label}")
        return (f"iostat={variable}" if variable else ""), behind

    def _check(self, statement, given, known, word):
        for key in given:
            if key not in known:
                raise self.files.fail(f"{word.upper()} with {key.upper()}= is not supported for a file of all ranks",
                                      statement, key)

    def _open(self, statement, given, status):
        self._check(statement, given, _OPEN, "open")
        if "file" not in given:
            raise self.files.fail("OPEN of an unformatted file needs FILE=", statement)
        letters = self.known[squeezed(given["unit"])]
        local = ".true." if "l" in letters else ".false."
        parts = [f"dvm_mode({given['file']}, {local})"]
        parts += [f"{k}={given[k]}" for k in ("access", "form", "action", "status", "position", "convert", "iomsg") if k in given]
        if "form" not in given:
            parts.append("form='unformatted'")
        if letters:
            parts.append(f"mode='{letters}'")
        if status:
            parts.append(status)
        return [f"call dvmf%open({', '.join(parts)})"]

    def _items(self, statement, word, given, items):
        self._check(statement, given, ("unit", "iostat", "iomsg", "err", "end", "pos"), word)
        fetcher = self.writer.fetcher(statement)
        lines = []
        if "pos" in given:
            lines.append(f"call dvmf%seek({given['pos']})")
        lines.append(f"call dvmf%begin_{word}()")
        for item in items:
            found = uses(item)
            whole = bool(found) and found[0].start == 0 and found[0].end == len(item)
            if whole and self.writer.mapping(found[0].name) and \
                    (found[0].subscripts is None or any(":" in masked(s) for s in found[0].subscripts)):
                lines += self._array(statement, word, found[0], fetcher)
            elif item.startswith("("):
                raise self.files.fail("an implied loop in an unformatted file is not supported", statement,
                                      hint="Write a section, as A(1:N, 3).")
            elif word == "read" and any(self.writer.mapping(n) for n in names(item)):
                raise self.files.fail(f"READ of an element of {found[0].name} from an unformatted file is not supported",
                                      statement, found[0].name, "Read the section of one element, as A(3:3, 4:4).")
            else:
                lines.append(f"call dvmf%{word}({fetcher.expression(item)})")
        return fetcher.lines, lines

    def _array(self, statement, word, use, fetcher):
        name = use.name
        rank = self.writer.rank(name)
        layout, made = self.files.layout(name)
        section = ""
        if use.subscripts is not None:
            if len(use.subscripts) != rank:
                raise self.files.fail(f"{name} has {rank} dimensions", statement, name)
            section = ", " + self._section(name, use.subscripts, fetcher)
        return made + [f"call dvmf%{word}({name}, {layout}{section})", f"call {layout}%free()"]

    def _section(self, name, subscripts, fetcher):
        handle = self.writer.handle(name)
        low, high, steps = [], [], []
        for n, s in enumerate(subscripts, 1):
            parts = [fetcher.expression(p) for p in split(s, ":")]
            if len(parts) == 1:
                parts = [parts[0], parts[0]]
            low.append(f"{parts[0] or f'dvm_lbound({handle}, {n})'} - dvm_lbound({handle}, {n}) + 1")
            high.append(f"{parts[1] or f'dvm_ubound({handle}, {n})'} - dvm_lbound({handle}, {n}) + 1")
            steps.append(parts[2] if len(parts) > 2 else "1")
        stride = "" if all(s == "1" for s in steps) else f", [{', '.join(steps)}]"
        return f"tr_section([{', '.join(low)}], [{', '.join(high)}]{stride})"


def _list(*parts):
    return ", ".join(p for p in parts if p)
